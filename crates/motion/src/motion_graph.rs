//! The baseline: motion graphs (Kovar, Gleicher and Pighin 2002) in the space of scaled controls. Clips are walked as they
//! are; where a stretch of one looks like a stretch of another, a blend of some frames leads over. What lies outside the
//! largest strongly connected part cannot be returned from and is left out.

use crate::matrix::product_transposed;

/// From a frame of one clip to a frame of another, by a blend that begins at both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// The first frame of the stretch that is left.
    pub from: usize,
    /// The first frame of the stretch that is entered.
    pub to: usize,
    /// Root mean square distance of both stretches, in the unit of the scaled controls.
    pub distance: f64,
}

/// Clips and the ways between them.
#[derive(Debug, Clone)]
pub struct MotionGraph {
    lengths: Vec<usize>,
    window: usize,
    transitions: Vec<Transition>,
}

impl MotionGraph {
    /// Finds the ways. `frames`: `[N][d]`, scaled controls or their components; `lengths`: frames of every clip; `window`:
    /// frames of a blend; stretches farther apart than `limit` are not joined. Only the locally nearest pairs are taken.
    pub fn new(frames: &[Vec<f64>], lengths: &[usize], window: usize, limit: f64) -> Self {
        let n = frames.len();
        let flat: Vec<f64> = frames.iter().flatten().copied().collect();
        let d = flat.len() / n.max(1);
        let mut apart = product_transposed(&flat, &flat, n, d, n);
        let squares: Vec<f64> = (0..n).map(|i| apart[i * n + i]).collect();
        for i in 0..n {
            for j in 0..n {
                apart[i * n + j] = (squares[i] + squares[j] - 2.0 * apart[i * n + j]).max(0.0);
            }
        }
        let window = window.max(1);
        let starts: Vec<usize> = lengths
            .iter()
            .scan(0, |first, length| {
                let own = *first;
                *first += length;
                Some(own)
            })
            .collect();
        let mut transitions = Vec::new();
        for (a, (&from, &long)) in starts.iter().zip(lengths).enumerate() {
            for (b, (&to, &wide)) in starts.iter().zip(lengths).enumerate() {
                if long < window || wide < window {
                    continue;
                }
                let (rows, columns) = (long - window + 1, wide - window + 1);
                let stretch = |i: usize, j: usize| -> f64 {
                    (0..window).map(|k| apart[(from + i + k) * n + to + j + k]).sum::<f64>() / window as f64
                };
                let sums: Vec<f64> =
                    (0..rows * columns).map(|at| stretch(at / columns, at % columns)).collect();
                for i in 0..rows {
                    for j in 0..columns {
                        // Within a clip, what is near in time is no transition.
                        if a == b && (from + i).abs_diff(to + j) <= window {
                            continue;
                        }
                        let own = sums[i * columns + j];
                        let around = (i.saturating_sub(1)..(i + 2).min(rows))
                            .flat_map(|x| (j.saturating_sub(1)..(j + 2).min(columns)).map(move |y| (x, y)));
                        let least = around.map(|(x, y)| sums[x * columns + y]).fold(f64::INFINITY, f64::min);
                        if own <= least && own.sqrt() <= limit {
                            let transition = Transition { from: from + i, to: to + j, distance: own.sqrt() };
                            transitions.push(transition);
                        }
                    }
                }
            }
        }
        Self { lengths: lengths.to_vec(), window, transitions }
    }

    /// All ways between stretches.
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// Frames of the largest strongly connected part: what can be played for ever.
    pub fn usable(&self) -> Vec<bool> {
        let n: usize = self.lengths.iter().sum();
        let mut next = vec![Vec::new(); n];
        let mut first = 0;
        for length in &self.lengths {
            (first + 1..first + length).for_each(|frame| next[frame - 1].push(frame));
            first += length;
        }
        // A blend that begins at `from` and `to` ends so many frames on.
        for transition in &self.transitions {
            next[transition.from].push(transition.to + self.window - 1);
        }
        let mut before = vec![Vec::new(); n];
        (0..n).for_each(|i| next[i].iter().for_each(|j| before[*j].push(i)));
        // Kosaraju: finish times forwards, parts backwards.
        let mut order = Vec::with_capacity(n);
        let mut seen = vec![false; n];
        for root in 0..n {
            let mut stack = vec![(root, 0)];
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            while let Some((node, at)) = stack.pop() {
                match next[node].get(at) {
                    Some(&other) => {
                        stack.push((node, at + 1));
                        if !std::mem::replace(&mut seen[other], true) {
                            stack.push((other, 0));
                        }
                    }
                    None => order.push(node),
                }
            }
        }
        let mut part = vec![usize::MAX; n];
        let mut sizes = Vec::new();
        for &root in order.iter().rev() {
            if part[root] != usize::MAX {
                continue;
            }
            let own = sizes.len();
            let mut size = 0;
            let mut stack = vec![root];
            part[root] = own;
            while let Some(node) = stack.pop() {
                size += 1;
                for &other in &before[node] {
                    if part[other] == usize::MAX {
                        part[other] = own;
                        stack.push(other);
                    }
                }
            }
            sizes.push(size);
        }
        let Some(largest) = (0..sizes.len()).max_by_key(|own| sizes[*own]) else { return Vec::new() };
        // A part of one frame is no loop.
        part.iter().map(|own| *own == largest && sizes[largest] > 1).collect()
    }

    /// Controls over a transition: `lead` frames of the clip that is left, the blend, `lead` frames of the other, as far
    /// as the clips go. Blended controls are `α A + (1 − α) B`, `α = 2p³ − 3p² + 1` (Kovar's, continuous slopes).
    pub fn over(&self, controls: &[Vec<f32>], transition: &Transition, lead: usize) -> Vec<Vec<f32>> {
        let bounds = |frame: usize| {
            let mut first = 0;
            for length in &self.lengths {
                if frame < first + length {
                    return (first, first + length);
                }
                first += length;
            }
            (first, first)
        };
        let (start, _) = bounds(transition.from);
        let (_, end) = bounds(transition.to);
        let before = transition.from.saturating_sub(lead).max(start);
        let mut out: Vec<Vec<f32>> = controls[before..transition.from].to_vec();
        for k in 0..self.window {
            let p = (k + 1) as f32 / (self.window + 1) as f32;
            let share = 2.0 * p * p * p - 3.0 * p * p + 1.0;
            let (a, b) = (&controls[transition.from + k], &controls[transition.to + k]);
            out.push(a.iter().zip(b).map(|(a, b)| share * a + (1.0 - share) * b).collect());
        }
        let after = transition.to + self.window;
        out.extend(controls[after.min(end)..(after + lead).min(end)].iter().cloned());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip(from: f64, frames: usize) -> Vec<Vec<f64>> {
        (0..frames).map(|i| vec![(from + i as f64 * 0.2).sin(), (from + i as f64 * 0.2).cos()]).collect()
    }

    #[test]
    fn clips_on_one_circle_are_joined_and_a_clip_elsewhere_is_left_out() {
        let mut frames = clip(0.0, 60);
        frames.extend(clip(1.0, 50));
        frames.extend(clip(0.0, 30).into_iter().map(|p| vec![p[0] + 9.0, 0.1 * p[1] + p[0]]));
        let graph = MotionGraph::new(&frames, &[60, 50, 30], 6, 0.25);
        let usable = graph.usable();
        let share = |range: std::ops::Range<usize>| usable[range].iter().filter(|u| **u).count();
        assert!(share(0..60) > 30 && share(60..110) > 20, "{} {}", share(0..60), share(60..110));
        assert_eq!(share(110..140), 0);
        let way = graph.transitions().iter().find(|t| t.from < 60 && (60..110).contains(&t.to)).expect("one");
        let controls: Vec<Vec<f32>> =
            frames.iter().map(|frame| frame.iter().map(|v| *v as f32).collect()).collect();
        let over = graph.over(&controls, way, 4);
        let step = |pair: &[Vec<f32>]| (pair[0][0] - pair[1][0]).hypot(pair[0][1] - pair[1][1]);
        assert!(over.len() >= 6 && over.windows(2).all(|pair| step(pair) < 0.35));
        assert!(MotionGraph::new(&frames, &[60, 50, 30], 6, 0.0).usable().iter().all(|u| !u));
    }
}
