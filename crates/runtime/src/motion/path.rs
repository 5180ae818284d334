//! Paths through a latent space: straight, or the shortest way over the training frames, where going from one to another
//! costs `‖x_i − x_j‖⁴`, so that many short steps are cheaper than one long one.
//!
//! The paper prints the exponent −4, which is a likeness and not a cost: with it the longest jump would be the best.
//! Of the complete graph only few edges can lie on a shortest way ([`useful_edges`]); a file holds those, and the search
//! finds what it would find among all of them.

use super::point::LatentPoint;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Frames in which a walk comes to its pace, and to its end: a path that starts at once jerks.
const EASE: u32 = 6;

/// The cost of a step.
fn cost(a: LatentPoint, b: LatentPoint) -> f64 {
    let squared = (a - b).length_squared();
    squared * squared
}

/// Pairs of points, the smaller index first, that no third point makes a cheaper way between: every shortest way over the
/// complete graph can be made of them.
pub fn useful_edges(points: &[LatentPoint]) -> Vec<[u32; 2]> {
    let mut edges = Vec::new();
    let mut order: Vec<(f64, usize)> = Vec::with_capacity(points.len());
    for (i, point) in points.iter().enumerate() {
        order.clear();
        order.extend(points.iter().enumerate().filter(|(j, _)| *j != i).map(|(j, p)| (cost(*point, *p), j)));
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (place, (direct, j)) in order.iter().enumerate() {
            // A point on a cheaper way is nearer to both ends than they are to each other.
            let shorter =
                |(first, k): &(f64, usize)| *k != i && first + cost(points[*k], points[*j]) < *direct;
            if i < *j && !order[..place].iter().any(shorter) {
                edges.push([i as u32, *j as u32]);
            }
        }
    }
    edges
}

/// Neighbours of every frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edges {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Edges {
    pub fn new(frames: usize, pairs: &[[u32; 2]]) -> Self {
        let mut starts = vec![0u32; frames + 1];
        pairs.iter().flatten().for_each(|frame| starts[*frame as usize + 1] += 1);
        (0..frames).for_each(|frame| starts[frame + 1] += starts[frame]);
        let mut next = starts.clone();
        let mut ends = vec![0u32; 2 * pairs.len()];
        for &[a, b] in pairs {
            for (from, to) in [(a, b), (b, a)] {
                ends[next[from as usize] as usize] = to;
                next[from as usize] += 1;
            }
        }
        Self { starts, ends }
    }

    fn of(&self, frame: usize) -> &[u32] {
        &self.ends[self.starts[frame] as usize..self.starts[frame + 1] as usize]
    }
}

/// A frame on the way, cheapest first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Open(f64, u32);

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

/// Memory of a search.
#[derive(Debug, Clone, Default)]
pub(super) struct PathSearch {
    costs: Vec<f64>,
    before: Vec<u32>,
    open: BinaryHeap<Open>,
}

/// Marks the start in `before`.
const START: u32 = u32::MAX;

impl PathSearch {
    pub fn fit(&mut self, frames: usize, edges: &Edges) {
        let most = self.costs.len().max(frames);
        self.costs.resize(most, 0.0);
        self.before.resize(most, START);
        // Every edge may open a frame once more.
        self.open.reserve(frames + edges.ends.len());
    }

    /// Writes the frames that the cheapest way from one point to another passes, in order.
    pub fn shortest(
        &mut self,
        frames: usize,
        point: impl Fn(usize) -> LatentPoint,
        edges: &Edges,
        [from, to]: [LatentPoint; 2],
        way: &mut Vec<u32>,
    ) {
        way.clear();
        self.open.clear();
        let direct = cost(from, to);
        for frame in 0..frames {
            self.costs[frame] = cost(from, point(frame));
            self.before[frame] = START;
            // What is dearer than the direct way is on no cheaper one.
            if self.costs[frame] < direct {
                self.open.push(Open(self.costs[frame], frame as u32));
            }
        }
        let (mut best, mut last) = (direct, START);
        while let Some(Open(reached, frame)) = self.open.pop() {
            if reached >= best {
                break;
            }
            let here = frame as usize;
            if reached > self.costs[here] {
                continue;
            }
            let place = point(here);
            let whole = reached + cost(place, to);
            if whole < best {
                (best, last) = (whole, frame);
            }
            for &other in edges.of(here) {
                let there = reached + cost(place, point(other as usize));
                if there < self.costs[other as usize] {
                    self.costs[other as usize] = there;
                    self.before[other as usize] = frame;
                    self.open.push(Open(there, other));
                }
            }
        }
        while last != START {
            way.push(last);
            last = self.before[last as usize];
        }
        way.reverse();
    }
}

/// Points of the cheapest way between two places over a set of points, both ends included.
pub fn shortest(points: &[LatentPoint], from: LatentPoint, to: LatentPoint) -> Vec<LatentPoint> {
    let edges = Edges::new(points.len(), &useful_edges(points));
    let mut search = PathSearch::default();
    search.fit(points.len(), &edges);
    let mut way = Vec::new();
    search.shortest(points.len(), |frame| points[frame], &edges, [from, to], &mut way);
    let middle = way.into_iter().map(|frame| points[frame as usize]);
    std::iter::once(from).chain(middle).chain(std::iter::once(to)).collect()
}

/// Length of a way.
pub fn length(corners: &[LatentPoint]) -> f64 {
    corners.windows(2).map(|pair| pair[0].distance(pair[1])).sum()
}

/// A way that is walked, the same distance every frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Walk {
    /// Frames between the ends.
    pub middle: Vec<u32>,
    pub from: LatentPoint,
    pub to: LatentPoint,
    /// The next corner, counted over `middle` and the end.
    next: usize,
    /// Where it is.
    here: LatentPoint,
    /// How far it goes in a frame at full pace.
    step: f64,
    /// Frames of either end in which it gets there.
    ease: u32,
    /// Whether it goes to the end.
    whole: bool,
    /// Frames of the whole walk and those left.
    pub frames: u32,
    pub left: u32,
    /// Frames that were walked: fewer than `frames - left` where it was cut.
    gone: u32,
}

impl Walk {
    /// For ways over so many frames.
    pub fn with_room(frames: usize) -> Self {
        Self { middle: Vec::with_capacity(frames), ..Self::default() }
    }

    fn corner(&self, index: usize, point: &impl Fn(usize) -> LatentPoint) -> LatentPoint {
        self.middle.get(index).map_or(self.to, |frame| point(*frame as usize))
    }

    /// Length of the way.
    pub fn length(&self, point: impl Fn(usize) -> LatentPoint) -> f64 {
        let mut place = self.from;
        let mut sum = 0.0;
        for index in 0..=self.middle.len() {
            let corner = self.corner(index, &point);
            sum += place.distance(corner);
            place = corner;
        }
        sum
    }

    /// Begins to walk it in so many frames: as fast everywhere, but for the [`EASE`] frames at both ends.
    pub fn begin(&mut self, length: f64, frames: u32) {
        (self.next, self.here, self.whole) = (0, self.from, true);
        (self.frames, self.left, self.gone) = (frames, frames, 0);
        self.ease = EASE.min(frames / 2);
        self.step = length / f64::from((frames - self.ease).max(1));
    }

    /// Frames of a way that takes so many at full pace.
    pub fn eased(frames: u32) -> u32 {
        frames.saturating_add(EASE.min(frames))
    }

    /// Brings it to a stop as soon as it can without a jerk: one that has just begun is as slow as it was, and needs less.
    pub fn brake(&mut self) {
        self.cut(self.ease.min(self.gone));
    }

    /// The share of the full pace in the frame that is walked, `left` being what is left after it.
    fn speed(&self) -> f64 {
        let ramp = |frames: u32| f64::from(frames) / f64::from(self.ease + 1);
        ramp(self.gone).min(ramp(self.left + 1)).min(1.0)
    }

    /// Ends it after so many frames, wherever that is.
    pub fn cut(&mut self, frames: u32) {
        if frames < self.left {
            self.left = frames;
            self.whole = false;
        }
    }

    /// The place at the end of the next frame.
    pub fn advance(&mut self, point: impl Fn(usize) -> LatentPoint) -> Option<LatentPoint> {
        self.left = self.left.checked_sub(1)?;
        self.gone += 1;
        if self.left == 0 && self.whole {
            self.here = self.to;
            return Some(self.to);
        }
        let mut wanted = self.step * self.speed();
        loop {
            let corner = self.corner(self.next, &point);
            let there = self.here.distance(corner);
            if there >= wanted {
                self.here += (corner - self.here) * (wanted / there.max(f64::MIN_POSITIVE));
                return Some(self.here);
            }
            wanted -= there;
            self.here = corner;
            if self.next == self.middle.len() {
                return Some(self.here);
            }
            self.next += 1;
        }
    }

    /// What is left of the way: where it is, and the corners that follow.
    pub fn rest<'a>(
        &'a self,
        point: impl Fn(usize) -> LatentPoint + 'a,
    ) -> impl Iterator<Item = LatentPoint> + 'a {
        let corners = self.next..self.middle.len() + 1;
        std::iter::once(self.here).chain(corners.map(move |index| self.corner(index, &point)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    /// Dijkstra's algorithm on the complete graph, the slow reference; gives the cost.
    fn complete(points: &[LatentPoint], from: LatentPoint, to: LatentPoint) -> f64 {
        let mut places = points.to_vec();
        places.extend([from, to]);
        let n = points.len();
        let mut costs = vec![f64::INFINITY; n + 2];
        let mut done = vec![false; n + 2];
        costs[n] = 0.0;
        while let Some(node) = (0..n + 2).filter(|i| !done[*i]).min_by(|a, b| costs[*a].total_cmp(&costs[*b]))
        {
            done[node] = true;
            for other in 0..n + 2 {
                costs[other] = costs[other].min(costs[node] + cost(places[node], places[other]));
            }
        }
        costs[n + 1]
    }

    #[test]
    fn few_edges_give_the_ways_of_the_complete_graph() {
        let mut random = Random::new(11);
        for n in [0, 1, 2, 60] {
            let mut draw = || LatentPoint::new(&[random.normal(), random.normal(), random.normal()]);
            let points: Vec<LatentPoint> = (0..n).map(|_| draw()).collect();
            let edges = useful_edges(&points);
            assert!(edges.len() <= 12 * n, "{} edges of {n} points", edges.len());
            for _ in 0..20 {
                let (from, to) = (draw(), draw());
                let way = shortest(&points, from, to);
                let own: f64 = way.windows(2).map(|pair| cost(pair[0], pair[1])).sum();
                let want = complete(&points, from, to);
                assert!((own - want).abs() <= 1e-9 * want, "{own} {want}");
            }
        }
    }

    #[test]
    fn the_shortest_way_goes_over_the_points_and_not_across() {
        let at = |i: usize| {
            let (s, c) = (i as f64 * std::f64::consts::PI / 20.0).sin_cos();
            LatentPoint::new(&[c, s])
        };
        let circle: Vec<LatentPoint> = (0..=20).map(at).collect();
        let way = shortest(&circle, at(0), at(20));
        assert!(way.len() > 15, "{} corners", way.len());
        assert!((length(&way) - std::f64::consts::PI).abs() < 0.05);
        assert_eq!(shortest(&[], at(0), at(1)), [at(0), at(1)]);
    }

    #[test]
    fn a_walk_eases_in_and_out_goes_the_same_distance_between_and_ends_at_the_end() {
        let points = [LatentPoint::new(&[1.0, 0.0]), LatentPoint::new(&[1.0, 0.0])];
        let mut walk = Walk { middle: vec![0, 1], to: LatentPoint::new(&[1.0, 3.0]), ..Walk::default() };
        let length = walk.length(|frame| points[frame]);
        assert!((length - 4.0).abs() < 1e-12);
        walk.begin(length, 30);
        let mut places: Vec<LatentPoint> = vec![walk.from];
        places.extend(std::iter::from_fn(|| walk.advance(|frame| points[frame])));
        assert_eq!((places.len(), places[30]), (31, walk.to));
        // Along the corner the way is longer than the distance of two places.
        let gone: Vec<f64> = places
            .windows(2)
            .map(|pair| {
                let d = pair[1] - pair[0];
                d.0[0].abs() + d.0[1].abs()
            })
            .collect();
        let (full, ease) = (4.0 / 24.0, 6);
        assert!(gone[ease..30 - ease].iter().all(|one| (one - full).abs() < 1e-12), "{gone:?}");
        for k in 0..ease {
            let share = (k + 1) as f64 / (ease + 1) as f64;
            assert!((gone[k] - share * full).abs() < 1e-12 && (gone[29 - k] - share * full).abs() < 1e-12);
        }
        // Broken off, it slows down as at its end.
        walk.begin(length, 30);
        for _ in 0..12 {
            walk.advance(|frame| points[frame]);
        }
        walk.brake();
        let mut last = walk.here;
        let mut slower = std::iter::from_fn(|| walk.advance(|frame| points[frame])).map(|to| {
            let d = to - std::mem::replace(&mut last, to);
            d.0[0].abs() + d.0[1].abs()
        });
        let slower: Vec<f64> = slower.by_ref().collect();
        assert!(slower.len() == ease && slower.windows(2).all(|pair| pair[1] < pair[0]), "{slower:?}");
        // Neither that, nor a walk that is cut before it begins, is ever faster than it was by more than a step of the ramp.
        let ramp = full / (ease + 1) as f64 + 1e-12;
        for (walked, left) in [(2, None), (0, Some(10)), (0, None)] {
            walk.begin(length, 30);
            let (mut last, mut speed) = (walk.from, 0.0);
            for frame in 0.. {
                match left {
                    None if frame == walked => walk.brake(),
                    Some(frames) if frame == walked => walk.cut(frames),
                    _ => {}
                }
                let Some(to) = walk.advance(|frame| points[frame]) else { break };
                let now = last.distance(to);
                assert!((now - speed).abs() <= ramp, "from {speed} to {now} in frame {frame}");
                (last, speed) = (to, now);
            }
            assert!(speed <= ramp, "it stops from {speed}");
        }
        let mut still = Walk::default();
        still.begin(0.0, 3);
        assert_eq!(std::iter::from_fn(|| still.advance(|frame| points[frame])).count(), 3);
    }
}
