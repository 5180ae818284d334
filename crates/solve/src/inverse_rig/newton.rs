//! Newton steps on all weights at once. Coordinate descent crawls where shapes are nearly dependent (brow
//! up and brow down are almost opposite): it needs tens of thousands of passes for what a few steps do here.
//!
//! About the present weights the rig is nearly linear, `f(w + s) ≈ f(w) + Φ s`, and the cost is the quadratic
//! `½ sᵀ H s + gᵀ s` with `H = ΦᵀΦ` from the Gram matrix (exact for a linear rig). It is minimised over the
//! box by an active-set method; the real cost then decides how much of the step is taken, and never rises.

use super::descent::{Descent, Model};
use super::kernels::{add_scaled, dot, factorise, remove_row};
use super::terms::TermTable;

/// Buffers, made once.
#[derive(Debug, Clone)]
pub(crate) struct Newton {
    /// The shapes that may move, one per tied pair.
    shapes: Vec<u32>,
    /// `∂p_k/∂w` of one variable after the other, flat, and where each begins.
    columns: Vec<(u32, f64)>,
    starts: Vec<u32>,
    /// `Σ_k (∂p_k/∂w) G_k` of one variable, `[count]`.
    row: Vec<f64>,
    /// `H`, scaled to a unit diagonal.
    hessian: Vec<f64>,
    /// `g`, scaled alike.
    gradient: Vec<f64>,
    /// `1/sqrt(H_aa)`.
    scale: Vec<f64>,
    /// The box of the step, scaled alike.
    low: Vec<f64>,
    high: Vec<f64>,
    step: Vec<f64>,
    /// `H s + g`.
    slope: Vec<f64>,
    state: Vec<Bound>,
    working: Vec<u32>,
    factor: Vec<f64>,
    direction: Vec<f64>,
    trial: Vec<f64>,
    saved: Vec<f64>,
}

/// Where a variable of the active-set method is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Free,
    Low,
    High,
}

impl Newton {
    /// Rigs of more shapes are left to coordinate descent: the matrices would be larger than caches.
    const MAX_SHAPES: usize = 1024;
    /// A pivot of the unit-diagonal matrix below this is rounding: the shape depends on those before it.
    const SINGULAR: f64 = 1e-13;
    /// Gains below this share of the target's energy are rounding.
    const ROUNDING: f64 = 1e-15;

    /// `None` where the rig is too large.
    pub(crate) fn new(table: &TermTable, count: usize) -> Option<Self> {
        let m = table.shape_count();
        (m <= Self::MAX_SHAPES).then(|| Self {
            shapes: Vec::with_capacity(m),
            columns: Vec::with_capacity(2 * table.use_count()),
            starts: Vec::with_capacity(m + 1),
            row: vec![0.0; count],
            hessian: vec![0.0; m * m],
            gradient: vec![0.0; m],
            scale: vec![0.0; m],
            low: vec![0.0; m],
            high: vec![0.0; m],
            step: vec![0.0; m],
            slope: vec![0.0; m],
            state: vec![Bound::Free; m],
            working: Vec::with_capacity(m),
            factor: vec![0.0; m * m],
            direction: vec![0.0; m],
            trial: vec![0.0; m],
            saved: vec![0.0; m],
        })
    }

    /// Moves all weights towards the minimum of the quadratic model as far as the cost falls. Gives the
    /// largest move of a weight, 0 where nothing was gained.
    pub(crate) fn step(
        &mut self,
        model: &Model<'_>,
        state: &mut Descent,
        projection: &[f64],
        energy: f64,
    ) -> f64 {
        self.linearise(model, state);
        if self.shapes.is_empty() {
            return 0.0;
        }
        self.minimise();
        let before = state.objective;
        self.saved.copy_from_slice(&state.weights);
        let least = Self::ROUNDING * energy.max(f64::MIN_POSITIVE);
        let mut length = 1.0;
        for _ in 0..12 {
            let mut largest = 0.0f64;
            for (place, shape) in self.shapes.iter().enumerate() {
                let shape = *shape as usize;
                let from = self.saved[shape];
                let to = match self.state[place] {
                    // A bound is met exactly, not to rounding; what is not seen stays.
                    Bound::Low if length == 1.0 && self.scale[place] > 0.0 => 0.0,
                    Bound::High if length == 1.0 && self.scale[place] > 0.0 => model.plan.upper,
                    _ => from + length * self.step[place] * self.scale[place],
                };
                let to = to.clamp(0.0, model.plan.upper);
                for member in [Some(shape), model.plan.tied(shape)].into_iter().flatten() {
                    state.weights[member] = to;
                }
                largest = largest.max((to - from).abs());
            }
            state.begin(model, projection, energy);
            if state.objective < before - least {
                return largest;
            }
            if largest == 0.0 {
                break;
            }
            length *= 0.5;
        }
        state.weights.copy_from_slice(&self.saved);
        state.begin(model, projection, energy);
        0.0
    }

    /// The quadratic model at the present weights.
    fn linearise(&mut self, model: &Model<'_>, state: &mut Descent) {
        let plan = model.plan;
        self.shapes.clear();
        self.columns.clear();
        self.starts.clear();
        self.starts.push(0);
        for shape in 0..state.weights.len() {
            if !state.is_candidate(model, shape) || !self.may_switch_on(model, state, shape) {
                continue;
            }
            let begin = self.columns.len();
            state.push_derivative(model, shape, &mut self.columns);
            let along = |(term, rest): &(u32, f64)| rest * state.residuals[*term as usize];
            let slope: f64 = self.columns[begin..].iter().map(along).sum();
            let place = self.shapes.len();
            self.gradient[place] = slope + plan.alpha * if plan.tied(shape).is_some() { 2.0 } else { 1.0 };
            if let Some(other) = plan.soft(shape) {
                self.gradient[place] += plan.strength * (state.weights[shape] - state.weights[other]);
            }
            self.shapes.push(shape as u32);
            self.starts.push(self.columns.len() as u32);
        }
        let n = self.shapes.len();
        let column = |starts: &[u32], place: usize| starts[place] as usize..starts[place + 1] as usize;
        for a in 0..n {
            self.row.fill(0.0);
            for (term, rest) in &self.columns[column(&self.starts, a)] {
                add_scaled(&mut self.row, *rest, model.gram.row(*term as usize));
            }
            for b in 0..=a {
                let entries = &self.columns[column(&self.starts, b)];
                let value: f64 = entries.iter().map(|(term, rest)| rest * self.row[*term as usize]).sum();
                self.hessian[a * n + b] = value;
            }
            let shape = self.shapes[a] as usize;
            // What is not seen has no curvature, however rounding puts it.
            if self.hessian[a * n + a] <= model.zero_norm[shape] {
                self.hessian[a * n..=a * n + a].fill(0.0);
            }
        }
        for a in 0..n {
            let Some(other) = plan.soft(self.shapes[a] as usize) else { continue };
            self.hessian[a * n + a] += plan.strength;
            if let Ok(b) = self.shapes.binary_search(&(other as u32))
                && b < a
            {
                self.hessian[a * n + b] -= plan.strength;
            }
        }
        for a in 0..n {
            let shape = self.shapes[a] as usize;
            let diagonal = self.hessian[a * n + a];
            self.scale[a] = if diagonal > 0.0 { diagonal.sqrt().recip() } else { 0.0 };
            let weight = state.weights[shape];
            // A variable without curvature has an empty box: it stays.
            let seen = f64::from(diagonal > 0.0);
            self.low[a] = -seen * weight * diagonal.sqrt();
            self.high[a] = if diagonal > 0.0 { (plan.upper - weight) * diagonal.sqrt() } else { 0.0 };
            self.gradient[a] *= self.scale[a];
            self.step[a] = 0.0;
            self.slope[a] = self.gradient[a];
            self.state[a] = match weight {
                0.0 => Bound::Low,
                weight if weight == plan.upper => Bound::High,
                _ if diagonal > 0.0 => Bound::Free,
                _ => Bound::Low,
            };
        }
        for a in 0..n {
            for b in 0..=a {
                let value = self.hessian[a * n + b] * self.scale[a] * self.scale[b];
                self.hessian[a * n + b] = value;
                self.hessian[b * n + a] = value;
            }
        }
    }

    /// Of an exclusive group at most one shape moves in a step: the one that is on.
    fn may_switch_on(&self, model: &Model<'_>, state: &Descent, shape: usize) -> bool {
        state.weights[shape] > 0.0 || model.plan.rivals(shape).next().is_none()
    }

    /// The least value of `½ sᵀ H s + gᵀ s` in the box: solve for the free variables, walk there until the
    /// first bounds (or project, where that is better), free what a bound holds back against its slope.
    fn minimise(&mut self) {
        let n = self.shapes.len();
        let tiny = 1e-14 * self.gradient[..n].iter().fold(0.0f64, |most, g| most.max(g.abs()));
        // All at once at first; one at a time when that led nowhere, which cannot cycle.
        let mut one_by_one = false;
        for _ in 0..4 * n + 20 {
            let mut released = None::<(f64, usize)>;
            for a in 0..n {
                let inward = match self.state[a] {
                    Bound::Free => continue,
                    Bound::Low => -self.slope[a],
                    Bound::High => self.slope[a],
                };
                if inward <= tiny || self.high[a] <= self.low[a] {
                    continue;
                }
                if !one_by_one {
                    self.state[a] = Bound::Free;
                }
                if released.is_none_or(|(most, _)| inward > most) {
                    released = Some((inward, a));
                }
            }
            if let Some((_, a)) = released {
                self.state[a] = Bound::Free;
            }
            let gain = self.descend();
            if gain <= 0.0 {
                if one_by_one || released.is_none() {
                    return;
                }
                one_by_one = true;
            } else if released.is_none() {
                return;
            }
        }
    }

    /// Goes to the minimum over the free variables, bounding those that reach a bound on the way. Gives how
    /// much the quadratic fell.
    fn descend(&mut self) -> f64 {
        self.gather();
        let mut fallen = 0.0;
        while !self.working.is_empty() {
            self.solve_working();
            // How far until the first bound; variables already there that would leave the box are bounded.
            let mut length = 1.0f64;
            let mut outside = false;
            for (place, a) in self.working.iter().enumerate() {
                let a = *a as usize;
                let (by, here) = (self.direction[place], self.step[a]);
                let (room, bound) = match by < 0.0 {
                    true => (here - self.low[a], Bound::Low),
                    false => (self.high[a] - here, Bound::High),
                };
                if by != 0.0 && room <= 0.0 {
                    self.state[a] = bound;
                    outside = true;
                } else if by.abs() > room {
                    length = length.min(room / by.abs());
                }
            }
            if !outside {
                if length == 1.0 {
                    return fallen + self.advance(1.0);
                }
                // The projected step bounds several variables at once; it counts where it lowers the
                // quadratic more than the walk to the first bound, `−½ t(2 − t) slopeᵀ d`.
                let along: f64 =
                    self.working.iter().zip(&self.direction).map(|(a, d)| self.slope[*a as usize] * d).sum();
                let direct = -0.5 * length * (2.0 - length) * along;
                fallen += if self.fall(1.0) > direct { self.advance(1.0) } else { self.advance(length) };
            }
            self.drop_bounded();
        }
        fallen
    }

    /// The working set from the free variables, and its factor.
    fn gather(&mut self) {
        let n = self.shapes.len();
        self.working.clear();
        self.working.extend((0..n as u32).filter(|a| self.state[*a as usize] == Bound::Free));
        for (i, a) in self.working.iter().enumerate() {
            let row = &self.hessian[*a as usize * n..][..n];
            for (j, b) in self.working.iter().enumerate().skip(i) {
                self.factor[i * n + j] = row[*b as usize];
            }
        }
        factorise(&mut self.factor, n, self.working.len(), Self::SINGULAR);
    }

    /// Takes variables that have reached a bound out of the working set and out of the factor.
    fn drop_bounded(&mut self) {
        let n = self.shapes.len();
        let bounded = |state: &[Bound], a: u32| state[a as usize] != Bound::Free;
        let leaving = self.working.iter().filter(|a| bounded(&self.state, **a)).count();
        // One update costs about as much as a twelfth of a factor of this size.
        if 12 * leaving > self.working.len() {
            return self.gather();
        }
        for place in (0..self.working.len()).rev() {
            if bounded(&self.state, self.working[place]) {
                remove_row(&mut self.factor, n, self.working.len(), place, &mut self.trial, Self::SINGULAR);
                self.working.remove(place);
            }
        }
    }

    /// Where a working variable would be.
    #[inline]
    fn target(&self, place: usize, length: f64) -> f64 {
        let a = self.working[place] as usize;
        (self.step[a] + length * self.direction[place]).clamp(self.low[a], self.high[a])
    }

    /// How much the quadratic falls on the way, without going. `trial` holds the change of the slopes.
    fn fall(&mut self, length: f64) -> f64 {
        let n = self.shapes.len();
        self.trial[..n].fill(0.0);
        for place in 0..self.working.len() {
            let a = self.working[place] as usize;
            let by = self.target(place, length) - self.step[a];
            if by != 0.0 {
                add_scaled(&mut self.trial[..n], by, &self.hessian[a * n..(a + 1) * n]);
            }
        }
        let change = |(place, a): (usize, &u32)| {
            let a = *a as usize;
            let by = self.target(place, length) - self.step[a];
            by * (self.slope[a] + 0.5 * self.trial[a])
        };
        -self.working.iter().enumerate().map(change).sum::<f64>()
    }

    /// Goes there and bounds what has reached a bound.
    fn advance(&mut self, length: f64) -> f64 {
        let n = self.shapes.len();
        let fallen = self.fall(length);
        for place in 0..self.working.len() {
            let a = self.working[place] as usize;
            let to = self.target(place, length);
            // Room within rounding of a bound is the bound.
            let near = 1e-14 * (self.high[a] - self.low[a]).min(1.0);
            if self.direction[place] < 0.0 && to <= self.low[a] + near {
                (self.step[a], self.state[a]) = (self.low[a], Bound::Low);
            } else if self.direction[place] > 0.0 && to >= self.high[a] - near {
                (self.step[a], self.state[a]) = (self.high[a], Bound::High);
            } else {
                self.step[a] = to;
            }
        }
        for a in 0..n {
            self.slope[a] += self.trial[a];
        }
        fallen
    }

    /// `direction = −H⁻¹ slope` over the working set, by its factor; a shape that depends on those before it
    /// stays where it is.
    fn solve_working(&mut self) {
        let (n, k) = (self.shapes.len(), self.working.len());
        for (direction, a) in self.direction.iter_mut().zip(&self.working) {
            *direction = -self.slope[*a as usize];
        }
        for i in 0..k {
            let (known, rest) = self.direction[..k].split_at_mut(i + 1);
            known[i] *= self.factor[i * n + i];
            add_scaled(rest, -known[i], &self.factor[i * n + i + 1..i * n + k]);
        }
        for i in (0..k).rev() {
            let row = &self.factor[i * n..i * n + k];
            let known = dot(&row[i + 1..], &self.direction[i + 1..k]);
            self.direction[i] = (self.direction[i] - known) * row[i];
        }
    }
}
