//! One weight's curve over a take: `min Σ ½a_t x_t² − r_t x_t + ½λ Σ (x_{t−1} − 2x_t + x_{t+1})²` over
//! `0 ≤ x_t ≤ u_t`. Projected Newton steps on the free points, each a banded solve, linear in the number of
//! frames. Where a stiff curve lies along its bounds those steps get short; then an interior path finds
//! which points are free, and Newton finishes. The value never rises.

/// The problem and its solution so far.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    smooth: f64,
    /// `a_t ≥ 0`.
    curvature: Vec<f64>,
    /// `r_t`.
    pull: Vec<f64>,
    upper: Vec<f64>,
    values: Vec<f64>,
}

impl Curve {
    /// Newton steps before the interior path is taken; a handful is usual.
    const MAX_STEPS: usize = 12;
    /// Steps of the interior path at most; two dozen are usual.
    const MAX_INTERIOR: usize = 80;
    /// Halvings of a step at most.
    const MAX_HALVINGS: usize = 30;
    /// Nearer to a bound than this, the interior path means the bound.
    const SNAP: f64 = 1e-7;

    pub(crate) fn new(smooth: f64, frames: usize) -> Self {
        let empty = || Vec::with_capacity(frames);
        Self { smooth, curvature: empty(), pull: empty(), upper: empty(), values: empty() }
    }

    /// The next frame: where its weight is, slope and curvature of its cost there, and its upper bound.
    pub(crate) fn push(&mut self, here: f64, slope: f64, curvature: f64, upper: f64) {
        self.values.push(here);
        self.curvature.push(curvature);
        self.pull.push(curvature * here - slope);
        self.upper.push(upper);
    }

    /// `x`.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    fn cost(&self, x: &[f64]) -> f64 {
        let own = |t: usize| x[t] * (0.5 * self.curvature[t] * x[t] - self.pull[t]);
        let bend: f64 = x.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).powi(2)).sum();
        (0..x.len()).map(own).sum::<f64>() + 0.5 * self.smooth * bend
    }

    fn gradient(&self, x: &[f64], t: usize) -> f64 {
        let bend = second_difference_gradient(x.len(), t, |s| x[s]);
        self.curvature[t] * x[t] - self.pull[t] + self.smooth * bend
    }

    /// Moves `x` to the minimum.
    pub(crate) fn minimise(&mut self) {
        if self.descend() {
            return;
        }
        let (before, cost) = (self.values.clone(), self.cost(&self.values));
        self.walk_inside();
        self.descend();
        if self.cost(&self.values) > cost {
            self.values = before;
        }
    }

    /// Projected Newton steps (Bertsekas 1982). Says whether they reached the minimum.
    fn descend(&mut self) -> bool {
        let frames = self.values.len();
        let scale = self.pull.iter().zip(&self.curvature).fold(0.0f64, |s, (p, c)| s.max(p.abs()).max(*c));
        let mut trial = vec![0.0; frames];
        for _ in 0..Self::MAX_STEPS {
            let gradient: Vec<f64> = (0..frames).map(|t| self.gradient(&self.values, t)).collect();
            // A point at its bound that would go further out is not free.
            let free: Vec<usize> = (0..frames)
                .filter(|t| {
                    let held_low = self.values[*t] <= 0.0 && gradient[*t] >= 0.0;
                    let held_high = self.values[*t] >= self.upper[*t] && gradient[*t] <= 0.0;
                    !held_low && !held_high
                })
                .collect();
            let steepest = free.iter().map(|t| gradient[*t].abs()).fold(0.0, f64::max);
            if steepest <= 1e-13 * (scale + self.smooth) {
                return true;
            }
            let right: Vec<f64> = free.iter().map(|t| -gradient[*t]).collect();
            let step = self.solve_banded(&free, |t| self.curvature[t], right);
            let before = self.cost(&self.values);
            let mut length = 1.0;
            let mut accepted = false;
            for _ in 0..Self::MAX_HALVINGS {
                trial.copy_from_slice(&self.values);
                let mut along = 0.0;
                for (t, step) in free.iter().zip(&step) {
                    trial[*t] = (self.values[*t] + length * step).clamp(0.0, self.upper[*t]);
                    along += gradient[*t] * (trial[*t] - self.values[*t]);
                }
                if along < 0.0 && self.cost(&trial) <= before + 1e-4 * along {
                    accepted = true;
                    break;
                }
                length *= 0.5;
            }
            if !accepted {
                return false;
            }
            std::mem::swap(&mut self.values, &mut trial);
        }
        false
    }

    /// A primal-dual interior path: as many steps however many points end at a bound.
    fn walk_inside(&mut self) {
        // Points that may not move at all are no variables; all others get a room of their own.
        let inside: Vec<usize> = (0..self.values.len()).filter(|t| self.upper[*t] > 0.0).collect();
        if inside.is_empty() {
            return;
        }
        let room = |t: usize| 0.01 * self.upper[t].min(1.0);
        for t in &inside {
            self.values[*t] = self.values[*t].clamp(room(*t), self.upper[*t] - room(*t));
        }
        let bounds = inside.iter().map(|t| 1 + usize::from(self.upper[*t].is_finite())).sum::<usize>() as f64;
        let size =
            inside.iter().map(|t| self.gradient(&self.values, *t).abs()).fold(0.0, f64::max).max(1e-12);
        let (mut low, mut high) = (vec![size; inside.len()], vec![0.0; inside.len()]);
        for (high, t) in high.iter_mut().zip(&inside) {
            *high = if self.upper[*t].is_finite() { size } else { 0.0 };
        }
        for _ in 0..Self::MAX_INTERIOR {
            let gap: f64 = inside
                .iter()
                .zip(low.iter().zip(&high))
                .map(|(t, (low, high))| {
                    let above = if *high > 0.0 { high * (self.upper[*t] - self.values[*t]) } else { 0.0 };
                    low * self.values[*t] + above
                })
                .sum::<f64>()
                / bounds;
            if gap <= 1e-16 * size {
                break;
            }
            let goal = 0.1 * gap;
            let mut extra = vec![0.0; self.values.len()];
            let mut right = Vec::with_capacity(inside.len());
            for (place, t) in inside.iter().enumerate() {
                let (below, above) = (self.values[*t], self.upper[*t] - self.values[*t]);
                extra[*t] = low[place] / below + if high[place] > 0.0 { high[place] / above } else { 0.0 };
                let push = goal / below - if high[place] > 0.0 { goal / above } else { 0.0 };
                right.push(-self.gradient(&self.values, *t) + push);
            }
            let step = self.solve_banded(&inside, |t| self.curvature[t] + extra[t], right);
            // As far as the nearest bound allows, primal and dual each for itself.
            let (mut primal, mut dual) = (1.0f64, 1.0f64);
            let mut changes = Vec::with_capacity(inside.len());
            for (place, t) in inside.iter().enumerate() {
                let (below, above, d) = (self.values[*t], self.upper[*t] - self.values[*t], step[place]);
                let low_change = (goal - low[place] * d) / below - low[place];
                let high_change =
                    if high[place] > 0.0 { (goal + high[place] * d) / above - high[place] } else { 0.0 };
                if d < 0.0 {
                    primal = primal.min(-0.99 * below / d);
                } else if d > 0.0 {
                    primal = primal.min(0.99 * above / d);
                }
                for (value, change) in [(low[place], low_change), (high[place], high_change)] {
                    if change < 0.0 {
                        dual = dual.min(-0.99 * value / change);
                    }
                }
                changes.push((low_change, high_change));
            }
            for (place, t) in inside.iter().enumerate() {
                self.values[*t] += primal * step[place];
                low[place] += dual * changes[place].0;
                high[place] += dual * changes[place].1;
            }
        }
        for t in inside {
            if self.values[t] < Self::SNAP {
                self.values[t] = 0.0;
            } else if self.values[t] > self.upper[t] - Self::SNAP {
                self.values[t] = self.upper[t];
            }
        }
    }

    /// Solves `(diag(own) + λDᵀD) x = right` on the free points. Free points at most two apart in time are at
    /// most two apart in the list, so the matrix keeps its five bands.
    fn solve_banded(&self, free: &[usize], own: impl Fn(usize) -> f64, right: Vec<f64>) -> Vec<f64> {
        let frames = self.values.len();
        let n = free.len();
        // L D Lᵀ with two bands below the diagonal.
        let (mut diagonal, mut below, mut further) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut x = right;
        let entry = |row: usize, column: usize| {
            let (row, column) = (free[row], free[column]);
            let own = if row == column { own(row) } else { 0.0 };
            own + self.smooth * second_difference_entry(frames, row, column)
        };
        for i in 0..n {
            if i >= 2 {
                further[i] = entry(i, i - 2) / diagonal[i - 2];
            }
            if i >= 1 {
                let mut value = entry(i, i - 1);
                if i >= 2 {
                    value -= further[i] * diagonal[i - 2] * below[i - 1];
                }
                below[i] = value / diagonal[i - 1];
            }
            let mut pivot = entry(i, i);
            let floor = pivot.max(f64::MIN_POSITIVE) * 1e-14;
            if i >= 1 {
                pivot -= below[i] * below[i] * diagonal[i - 1];
            }
            if i >= 2 {
                pivot -= further[i] * further[i] * diagonal[i - 2];
            }
            // Directions without curvature (a straight line nobody holds) get a little.
            diagonal[i] = pivot.max(floor);
            if i >= 1 {
                x[i] -= below[i] * x[i - 1];
            }
            if i >= 2 {
                x[i] -= further[i] * x[i - 2];
            }
        }
        for i in (0..n).rev() {
            x[i] /= diagonal[i];
            if i + 1 < n {
                x[i] -= below[i + 1] * x[i + 1];
            }
            if i + 2 < n {
                x[i] -= further[i + 2] * x[i + 2];
            }
        }
        x
    }
}

/// Which second differences hold frame `t`, as `(middle frame, factor)`.
fn stencil(frames: usize, t: usize) -> impl Iterator<Item = (usize, f64)> {
    let around = [(t.wrapping_sub(1), 1.0), (t, -2.0), (t + 1, 1.0)];
    around.into_iter().filter(move |(middle, _)| *middle >= 1 && *middle < frames.saturating_sub(1))
}

/// `(DᵀD x)_t` for the second differences `D` of a curve.
pub(crate) fn second_difference_gradient(frames: usize, t: usize, x: impl Fn(usize) -> f64) -> f64 {
    let bend = |middle: usize| x(middle - 1) - 2.0 * x(middle) + x(middle + 1);
    stencil(frames, t).map(|(middle, factor)| factor * bend(middle)).sum()
}

/// `(DᵀD)_tt`.
pub(crate) fn second_difference_diagonal(frames: usize, t: usize) -> f64 {
    stencil(frames, t).map(|(_, factor)| factor * factor).sum()
}

/// `(DᵀD)_st`.
fn second_difference_entry(frames: usize, s: usize, t: usize) -> f64 {
    let pairs = stencil(frames, s)
        .flat_map(|(m, a)| stencil(frames, t).filter(move |(other, _)| *other == m).map(move |(_, b)| a * b));
    pairs.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Projected gradient steps, many of them: slow and simple.
    fn slow_minimum(curve: &Curve) -> Vec<f64> {
        let mut x = curve.values.clone();
        let steepness = curve.curvature.iter().fold(0.0f64, |a, b| a.max(*b)) + 16.0 * curve.smooth;
        for _ in 0..200_000 {
            let gradient: Vec<f64> = (0..x.len()).map(|t| curve.gradient(&x, t)).collect();
            for t in 0..x.len() {
                x[t] = (x[t] - gradient[t] / steepness).clamp(0.0, curve.upper[t]);
            }
        }
        x
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_minimum_is_found(
            points in prop::collection::vec((0.0f64..1.0, -3.0f64..3.0, 0.01f64..2.0, prop::bool::weighted(0.2)), 1..14),
            smooth in prop::sample::select(vec![0.0, 0.1, 1.0, 30.0]),
        ) {
            let mut curve = Curve::new(smooth, points.len());
            for (here, slope, curvature, shut) in points {
                let upper = if shut { 0.0 } else { 1.0 };
                curve.push(here.min(upper), slope, curvature, upper);
            }
            let before = curve.cost(&curve.values);
            let slow = slow_minimum(&curve);
            curve.minimise();
            let after = curve.cost(&curve.values);
            prop_assert!(after <= before + 1e-12);
            prop_assert!(after <= curve.cost(&slow) + 1e-9, "{after} {}", curve.cost(&slow));
            prop_assert!(curve.values.iter().zip(&curve.upper).all(|(x, u)| (0.0..=*u).contains(x)));
        }
    }

    #[test]
    fn long_stiff_curves_converge_along_their_bounds() {
        for (smooth, swing) in [(1e6, 0.4), (1e4, 1.3), (1e2, 1.3), (1.0, 3.0)] {
            let mut curve = Curve::new(smooth, 2000);
            for t in 0..2000 {
                let wanted = swing * (t as f64 * 0.03).sin() + 0.05 * ((t * 7919 % 13) as f64 - 6.0);
                curve.push(0.0, -wanted, 1.0, 1.0);
            }
            curve.minimise();
            let at_bound = curve.values.iter().filter(|x| **x == 0.0 || **x == 1.0).count();
            assert!(at_bound > 500 || smooth > 1e5, "{at_bound}");
            // At the minimum, a step against the gradient stays inside the box or leads nowhere.
            for t in 0..2000 {
                let step = curve.gradient(&curve.values, t) / (1.0 + 6.0 * smooth);
                let moved = (curve.values[t] - step).clamp(0.0, 1.0) - curve.values[t];
                assert!(moved.abs() < 1e-9, "{smooth} {t} {moved}");
            }
        }
    }

    #[test]
    fn short_curves_do_not_bend() {
        for frames in 0..3 {
            let mut curve = Curve::new(5.0, frames);
            (0..frames).for_each(|_| curve.push(0.0, -0.3, 1.0, 1.0));
            curve.minimise();
            assert!(curve.values().iter().all(|x| (x - 0.3).abs() < 1e-12));
        }
    }
}
