//! Where coarse maps leave most, and the regions that get maps of their own: one square after another by
//! what was measured (ours), or the paper's way.
//!
//! There, the best that any map can do is estimated by writing vertex offsets into a map (polyharmonic
//! interpolation with the linear kernel `φ(r) = r`) and reading them back (3.2). Weighted k-means of the
//! texture coordinates with that error gives centres, the elbow of its cost their number, and vertices
//! within a square about a centre form a region.

use super::Recording;
use rayon::prelude::*;
use understudy_core::linear_algebra::solve;
use understudy_core::{Vec2, Vec3};
use understudy_runtime::face::sample::BilinearSample;

/// Poses by which errors are estimated.
const MOST_POSES: usize = 100;
/// Vertices that a pixel is interpolated from. The paper interpolates from all at once; with the linear
/// kernel the nearest screen the others off, and a few dozen suffice.
const NEAREST: usize = 24;
/// Rounds of k-means.
const ROUNDS: usize = 100;

/// Vertices with a map of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// The segment that they belong to.
    pub segment: usize,
    /// Centre in texture coordinates.
    pub centre: Vec2,
    /// Which vertices of the mesh.
    pub vertices: Vec<u32>,
}

/// What lies within it may belong to a region.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Square {
    segment: usize,
    centre: Vec2,
    half: f32,
}

impl Square {
    fn holds(&self, point: &Weighted) -> bool {
        point.segment == self.segment && (point.uv - self.centre).abs().max_element() <= self.half
    }
}

/// Mean squared error of the best map of `side` pixels, a vertex, cm² (3.2). `coordinates` in pixels.
pub fn map_error(poses: &Recording, vertices: &[u32], coordinates: &[Vec2], side: usize) -> Vec<f64> {
    let samples: Vec<BilinearSample> = coordinates.iter().map(|c| BilinearSample::at(*c, side)).collect();
    let seen = understudy_runtime::face::sample::sampled_pixels(&samples, side);
    let grid = Grid::new(coordinates, side);
    let pixel = |pixel: usize| match seen[pixel] {
        true => grid.weights(Vec2::new((pixel % side) as f32, (pixel / side) as f32), coordinates),
        false => Vec::new(),
    };
    let writers: Vec<Vec<(u32, f32)>> = (0..side * side).into_par_iter().map(pixel).collect();
    let rest = poses.mesh.positions();
    let chosen = poses.spread(MOST_POSES);
    let one = |pose: &usize| -> Vec<f64> {
        let now = poses.vertices_of(*pose);
        let offset = |v: &u32| now[*v as usize] - rest[*v as usize];
        let offsets: Vec<Vec3> = vertices.iter().map(offset).collect();
        let draw = |writer: &Vec<(u32, f32)>| -> Vec3 {
            writer.iter().map(|(place, weight)| offsets[*place as usize] * *weight).sum()
        };
        let map: Vec<Vec3> = writers.iter().map(draw).collect();
        let miss = |(offset, sample): (&Vec3, &BilinearSample)| {
            let pixels = sample.pixels(side).into_iter().zip(sample.weights);
            let read: Vec3 = pixels.map(|(pixel, weight)| map[pixel] * weight).sum();
            f64::from(read.distance_squared(*offset))
        };
        offsets.iter().zip(&samples).map(miss).collect()
    };
    let all: Vec<Vec<f64>> = chosen.par_iter().map(one).collect();
    let mut out = vec![0.0; vertices.len()];
    for row in &all {
        out.iter_mut().zip(row).for_each(|(sum, miss)| *sum += miss / chosen.len() as f64);
    }
    out
}

/// Vertices by pixel, to find the nearest.
struct Grid {
    cells: Vec<Vec<u32>>,
    side: usize,
}

impl Grid {
    fn new(coordinates: &[Vec2], side: usize) -> Self {
        let mut cells = vec![Vec::new(); side * side];
        for (index, place) in (0u32..).zip(coordinates) {
            let (x, y) = (place.x.round() as usize, place.y.round() as usize);
            cells[y.min(side - 1) * side + x.min(side - 1)].push(index);
        }
        Self { cells, side }
    }

    /// The nearest vertices of a place, nearest first.
    fn nearest(&self, at: Vec2, coordinates: &[Vec2]) -> Vec<u32> {
        let mut found: Vec<(f32, u32)> = Vec::new();
        let (x, y) = (at.x as i32, at.y as i32);
        for ring in 0..self.side as i32 {
            for (dx, dy) in (-ring..=ring).flat_map(|dy| (-ring..=ring).map(move |dx| (dx, dy))) {
                let inside = |v: i32| (0..self.side as i32).contains(&v);
                if dx.abs().max(dy.abs()) == ring && inside(x + dx) && inside(y + dy) {
                    let cell = &self.cells[(y + dy) as usize * self.side + (x + dx) as usize];
                    found.extend(cell.iter().map(|v| (coordinates[*v as usize].distance(at), *v)));
                }
            }
            // Whatever lies in a further ring is farther than this.
            let sure = ring as f32 - 0.5;
            if found.iter().filter(|(distance, _)| *distance <= sure).count() >= NEAREST {
                break;
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found.truncate(NEAREST);
        found.into_iter().map(|(_, vertex)| vertex).collect()
    }

    /// Weights that interpolate at a place: the solution of `[Φ 1; 1ᵀ 0] [w; λ] = [φ; 1]`. Vertices in one
    /// place would make it singular: the diagonal gets a thousandth of a pixel, which averages them.
    fn weights(&self, at: Vec2, coordinates: &[Vec2]) -> Vec<(u32, f32)> {
        let near = self.nearest(at, coordinates);
        let n = near.len();
        let size = n + 1;
        let mut system = vec![0.0f64; size * size];
        let mut right = vec![1.0; size];
        let distance = |a: Vec2, b: Vec2| f64::from(a.distance(b));
        for i in 0..n {
            let own = coordinates[near[i] as usize];
            for j in 0..n {
                system[i * size + j] = distance(own, coordinates[near[j] as usize]);
            }
            // −r is the positive kernel: a nugget has the other sign.
            system[i * size + i] -= 1e-3;
            system[i * size + n] = 1.0;
            system[n * size + i] = 1.0;
            right[i] = distance(own, at);
        }
        match solve(&system, &right, 1e-12) {
            Some(weights) => near.iter().copied().zip(weights.iter().map(|w| *w as f32)).collect(),
            None => near.first().map(|v| (*v, 1.0)).into_iter().collect(),
        }
    }
}

/// A vertex as clustering sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// In the mesh.
    pub vertex: u32,
    /// Its segment: a cluster never crosses segments, whose textures may overlap.
    pub segment: usize,
    /// Texture coordinates.
    pub uv: Vec2,
    /// Its map error (3.2).
    pub weight: f64,
}

/// Centres of `k` clusters, and the cost `Σ w ‖u − c‖²`, distances as shares of the segment's width: what
/// counts is how coarse its own map is. A point of a segment without a centre costs as much as half of its
/// width. Starts from the heaviest point, then always where the cost is
/// largest: the same points always give the same clusters.
pub fn cluster(points: &[Weighted], k: usize, widths: &[f32]) -> (Vec<(usize, Vec2)>, f64) {
    let cost = |point: &Weighted, centres: &[(usize, Vec2)]| -> (f64, usize) {
        let own = centres.iter().enumerate().filter(|(_, (segment, _))| *segment == point.segment);
        let width = widths[point.segment].max(1e-9);
        own.map(|(i, (_, c))| (f64::from((*c - point.uv).length_squared() / (width * width)), i))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((0.25, usize::MAX))
    };
    let mut centres: Vec<(usize, Vec2)> = Vec::new();
    while centres.len() < k {
        let worth = |p: &Weighted| p.weight * cost(p, &centres).0;
        let Some(best) = points.iter().reduce(|a, b| if worth(b) > worth(a) { b } else { a }) else { break };
        if worth(best) <= 0.0 {
            break;
        }
        centres.push((best.segment, best.uv));
    }
    for _ in 0..ROUNDS {
        let mut sums = vec![(Vec2::ZERO.as_dvec2(), 0.0f64); centres.len()];
        for point in points {
            let (_, owner) = cost(point, &centres);
            if let Some((sum, weight)) = sums.get_mut(owner) {
                *sum += point.uv.as_dvec2() * point.weight;
                *weight += point.weight;
            }
        }
        let before = centres.clone();
        for ((_, centre), (sum, weight)) in centres.iter_mut().zip(&sums) {
            if *weight > 0.0 {
                *centre = (*sum / *weight).as_vec2();
            }
        }
        if centres == before {
            break;
        }
    }
    let total = points.iter().map(|p| p.weight * cost(p, &centres).0).sum();
    (centres, total)
}

/// The number of clusters at the elbow: where the cost lies farthest beneath the line from the first to
/// the last. `costs[i]` is the cost of `i + 1` clusters.
pub fn elbow(costs: &[f64]) -> usize {
    let (Some(first), Some(last)) = (costs.first(), costs.last()) else { return 0 };
    if costs.len() < 3 || first <= last {
        return costs.len().min(1);
    }
    let span = (costs.len() - 1) as f64;
    let beneath = |i: usize| (first - costs[i]) / (first - last) - i as f64 / span;
    let best = (0..costs.len()).fold(0, |best, i| if beneath(i) > beneath(best) + 1e-12 { i } else { best });
    best + 1
}

/// How centres of regions are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Centres {
    /// Weighted k-means, as many as the elbow says: the paper's way.
    Means,
    /// One square after another, each where it holds most of the weight that is left. Means are drawn to
    /// the middle between what is wrong here and what is wrong there, which a square may then miss.
    Greedy,
}

impl Centres {
    /// Half the side of a square in a segment of such a width, both in texture coordinates. The paper's square is a
    /// quarter of the whole texture. Ours is a share of what the segment takes of it, for a face may fill any part:
    /// twice as many squares of half the area cost less, since their maps can be smaller, and are told apart by
    /// twice as many dense layers.
    fn half_side(self, width: f32) -> f32 {
        match self {
            Self::Means => 0.5 * 0.25,
            Self::Greedy => 0.17 * width,
        }
    }
}

/// The regions of a mesh, at most `most`. `widths`: that of every segment in the texture. `room`: vertices that a
/// region of ours may have. The paper's are as many as the elbow says; of ours, squares are added until they hold a
/// fixed share of the weight.
pub fn find(points: &[Weighted], most: usize, widths: &[f32], room: usize, centres: Centres) -> Vec<Region> {
    let halves: Vec<f32> = widths.iter().map(|width| centres.half_side(*width)).collect();
    let best = match centres {
        Centres::Means => {
            let costs: Vec<f64> = (1..=most).map(|k| cluster(points, k, widths).1).collect();
            let square =
                |&(segment, centre): &(usize, Vec2)| Square { segment, centre, half: halves[segment] };
            let own: Vec<Square> = cluster(points, elbow(&costs), widths).0.iter().map(square).collect();
            assign(points, &own)
        }
        Centres::Greedy => {
            let whole: f64 = points.iter().map(|p| p.weight).sum();
            let held = |members: &[(Square, Vec<&Weighted>)]| -> f64 {
                members.iter().flat_map(|(_, own)| own.iter().map(|p| p.weight)).sum()
            };
            let all = squares(points, most, &halves, room);
            let mut best = Vec::new();
            for k in 1..=all.len() {
                best = assign(points, &all[..k]);
                if held(&best) >= COVERAGE * whole {
                    break;
                }
            }
            best
        }
    };
    let region = |(square, members): (Square, Vec<&Weighted>)| Region {
        segment: square.segment,
        centre: square.centre,
        vertices: members.iter().map(|p| p.vertex).collect(),
    };
    best.into_iter().filter(|(_, members)| members.len() >= FEWEST).map(region).collect()
}

/// Share of the error that regions should hold.
const COVERAGE: f64 = 0.9;
/// Fewer vertices are not worth a network.
const FEWEST: usize = 4;

/// Squares, each where it holds most of the weight that earlier ones do not. One that would hold more points
/// than there is `room` for is smaller; one that would hold few is larger, until half of the room is used.
fn squares(points: &[Weighted], most: usize, halves: &[f32], room: usize) -> Vec<Square> {
    let mut left: Vec<f64> = points.iter().map(|p| p.weight).collect();
    let fitting = |centre: &Weighted| {
        let own = points.iter().filter(|point| point.segment == centre.segment);
        let mut distances: Vec<f32> = own.map(|p| (p.uv - centre.uv).abs().max_element()).collect();
        distances.sort_unstable_by(f32::total_cmp);
        let least = distances[(room / 2).clamp(1, distances.len()) - 1];
        // The nearest that finds no room ends the square.
        let most = distances.get(room).map_or(f32::INFINITY, |outside| outside.next_down().max(0.0));
        let half = halves[centre.segment].max(least).min(most);
        Square { segment: centre.segment, centre: centre.uv, half }
    };
    let tried: Vec<&Weighted> = points.iter().step_by(points.len().div_ceil(CANDIDATES).max(1)).collect();
    let candidates: Vec<Square> = tried.into_par_iter().map(fitting).collect();
    let mut out: Vec<Square> = Vec::new();
    while out.len() < most {
        let held = |square: &Square| -> f64 {
            points.iter().zip(&left).filter(|(p, _)| square.holds(p)).map(|(_, weight)| weight).sum()
        };
        let worth: Vec<f64> = candidates.par_iter().map(held).collect();
        let best = (0..worth.len()).reduce(|a, b| if worth[b] > worth[a] { b } else { a });
        let Some(best) = best.filter(|best| worth[*best] > 0.0) else { break };
        let square = candidates[best];
        out.push(square);
        for (point, weight) in points.iter().zip(&mut left) {
            if square.holds(point) {
                *weight = 0.0;
            }
        }
    }
    out
}

/// Places that are tried for a square.
const CANDIDATES: usize = 4000;

/// Every point within a square goes to the one whose centre is nearest.
fn assign<'a>(points: &'a [Weighted], squares: &[Square]) -> Vec<(Square, Vec<&'a Weighted>)> {
    let mut out: Vec<(Square, Vec<&Weighted>)> = squares.iter().map(|s| (*s, Vec::new())).collect();
    for point in points {
        let inside = squares.iter().enumerate().filter(|(_, square)| square.holds(point));
        let nearest = inside.min_by(|a, b| {
            let distance = |square: &Square| square.centre.distance_squared(point.uv);
            distance(a.1).total_cmp(&distance(b.1)).then(a.0.cmp(&b.0))
        });
        if let Some((owner, _)) = nearest {
            out[owner].1.push(point);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::coordinates::fill;
    use super::super::tests::small_face;
    use super::*;

    #[test]
    fn what_a_map_can_hold_is_held_and_what_is_too_fine_is_not() {
        let face = small_face(3, 40);
        let poses = face.poses();
        let vertices: Vec<u32> = poses.mesh.segments().vertices(0);
        let uvs = poses.mesh.vertex_uvs().expect("has UVs");
        let own: Vec<Vec2> = vertices.iter().map(|v| uvs[*v as usize]).collect();
        let error = |side: usize| {
            let coordinates: Vec<Vec2> = fill(&own).iter().map(|c| *c * (side - 1) as f32).collect();
            map_error(&poses, &vertices, &coordinates, side).iter().sum::<f64>()
        };
        assert!(error(64) < 0.2 * error(6), "{} {}", error(64), error(6));
        assert!(error(6).is_finite());
    }

    #[test]
    fn a_linear_field_is_interpolated_and_doubled_points_do_no_harm() {
        let mut points: Vec<Vec2> =
            (0..100).map(|i| Vec2::new((i % 10) as f32 * 0.7, (i / 10) as f32 * 0.7)).collect();
        points.push(points[33]);
        let grid = Grid::new(&points, 8);
        for at in [Vec2::new(3.0, 3.0), Vec2::new(2.0, 5.0)] {
            let weights = grid.weights(at, &points);
            let sum: f32 = weights.iter().map(|(_, w)| w).sum();
            let read: Vec2 = weights.iter().map(|(v, w)| points[*v as usize] * *w).sum();
            assert!((sum - 1.0).abs() < 1e-4 && read.distance(at) < 0.05, "{sum} {read}");
        }
    }

    #[test]
    fn clusters_and_their_elbow() {
        let mut random = understudy_core::Random::new(1);
        let mut points = Vec::new();
        for (segment, centre) in
            [(0, Vec2::new(0.2, 0.3)), (0, Vec2::new(0.8, 0.7)), (1, Vec2::new(0.2, 0.3))]
        {
            for _ in 0..60 {
                let jitter = Vec2::new(random.uniform(-0.02, 0.02), random.uniform(-0.02, 0.02));
                points.push(Weighted {
                    vertex: points.len() as u32,
                    segment,
                    uv: centre + jitter,
                    weight: 1.0,
                });
            }
        }
        // Points without an error do not pull.
        points.push(Weighted { vertex: 180, segment: 0, uv: Vec2::new(0.5, 0.5), weight: 0.0 });
        let clouds = points;
        for centres in [Centres::Means, Centres::Greedy] {
            let regions = find(&clouds, 6, &[0.5, 0.5], 100, centres);
            // Ours hold nine tenths of the weight; the paper's are as many as the elbow says, which may leave a cloud out.
            let costs: Vec<f64> = (1..=6).map(|k| cluster(&clouds, k, &[0.5, 0.5]).1).collect();
            let wanted = if centres == Centres::Greedy { 3 } else { elbow(&costs) };
            assert_eq!(regions.len(), wanted, "{centres:?} {costs:?}");
            for region in &regions {
                assert!((60..=61).contains(&region.vertices.len()), "{centres:?}");
            }
        }
        assert_eq!(elbow(&[10.0, 4.0, 1.0, 0.9, 0.8]), 3);
        assert_eq!(elbow(&[1.0]), 1);
        assert!(find(&[], 6, &[], 1024, Centres::Means).is_empty());
        assert!(find(&[], 6, &[], 1024, Centres::Greedy).is_empty());
        // The paper's squares are a quarter of the texture, whatever the segment takes of it.
        let line: Vec<Weighted> = (0..=100)
            .map(|i| Weighted {
                vertex: i,
                segment: 0,
                uv: Vec2::new(i as f32 * 0.01, 0.5),
                weight: if i == 50 { 1.0 } else { 0.0 },
            })
            .collect();
        let sizes =
            [0.2, 0.5, 1.0].map(|width| find(&line, 6, &[width], 1024, Centres::Means)[0].vertices.len());
        assert_eq!(sizes, [25; 3]);
        let small = find(&clouds, 6, &[0.5, 0.5], 25, Centres::Greedy);
        assert_eq!(small.len(), 6, "smaller squares, as many as may be");
        assert!(small.iter().all(|region| (4..=25).contains(&region.vertices.len())), "{small:?}");
    }
}
