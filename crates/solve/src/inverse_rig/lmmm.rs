//! LMMM (eq. 18): majorisation–minimisation of the quadratic rig, `‖Bw + Σ w_i w_j b_ij − b̂‖² + α1ᵀw`.
//!
//! With `p_i` the residual of mesh coordinate `i`, `q_i` its gradient and `D_i` the symmetric matrix of its
//! pair correctives, an increment `v` gives `(p_i + q_iᵀv + vᵀD_iv)²`. From `(a + b)² ≤ 2a² + 2b²`,
//! `|q_iᵀv| ≤ ‖q_i‖‖v‖`, `p_i vᵀD_iv ≤ p_iλ_i‖v‖²` and `‖v‖⁴ ≤ m Σv_j⁴` the objective stays below
//! a sum of separate quartics `c₄v_j⁴ + c₂v_j² + c₁ⱼv_j`, each minimised in closed form:
//! `c₁ = 2Σp_iq_i + α`, `c₂ = 2Σ(p_iλ_i + ‖q_i‖²)`, `c₄ = 2mΣσ(D_i)²`.
//! `Σp_iq_i` and `Σ‖q_i‖²` come from the Gram matrix; only `Σp_iλ_i` needs the mesh.

use super::blocks::{PAD, ShapeBlocks};
use super::descent::{Descent, Model};
use super::kernels::offsets;
use super::order::{Course, Stop};
use super::polynomial::cubic_roots;
use super::terms::TermTable;
use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_core::linear_algebra::SymmetricEigen;

/// The extreme eigenvalues of `D_i` for the three coordinates of one vertex.
#[derive(Debug, Clone, Copy)]
struct Extremes {
    vertex: u32,
    low: [f64; 3],
    high: [f64; 3],
}

/// What the bound needs to know about the mesh, prepared once.
#[derive(Debug, Clone)]
pub(crate) struct Curvature {
    extremes: Vec<Extremes>,
}

/// Buffers of one solve.
#[derive(Debug, Clone)]
pub(crate) struct LmmmScratch {
    offsets: Vec<[f64; 3]>,
    step: Vec<f64>,
    trial: Descent,
}

impl LmmmScratch {
    pub(crate) fn new(table: &TermTable, count: usize, vertex_count: usize) -> Self {
        Self {
            offsets: vec![[0.0; 3]; vertex_count],
            step: vec![0.0; table.shape_count()],
            trial: Descent::new(table, count),
        }
    }
}

impl Curvature {
    /// Larger multiples of an increment that are tried, and the increment itself, which cannot fail.
    const STRETCHES: [f64; 5] = [50.0, 20.0, 10.0, 5.0, 1.0];
    /// A solve ends when an iteration lowers the objective by less than this share, or after the most
    /// iterations.
    const TOLERANCE: f64 = 5e-4;
    const MAX_ITERATIONS: usize = 200;

    pub(crate) fn new(shapes: &ShapeBlocks, table: &TermTable) -> Self {
        let pairs = table.shape_count() as u32..table.count(Some(2)) as u32;
        let block = |index: usize| {
            let block = &shapes.blocks[index];
            let vertices = block.vertices.into_iter().enumerate().filter(|(_, vertex)| *vertex != PAD);
            let extremes = vertices.filter_map(|(lane, vertex)| {
                let mut edges: Vec<(u32, [f32; 3])> = Vec::new();
                for panel in block.panels.clone() {
                    for (column, term) in shapes.terms[panel].iter().enumerate() {
                        let delta = [0, 1, 2].map(|axis| shapes.panels[panel][3 * lane + axis][column]);
                        if pairs.contains(term) && delta != [0.0; 3] {
                            edges.push((*term, delta));
                        }
                    }
                }
                if edges.is_empty() {
                    return None;
                }
                let axis = |axis: usize| {
                    let axis_edges = edges.iter().map(|(term, delta)| {
                        let factors = table.factors(*term as usize);
                        (factors[0], factors[1], 0.5 * f64::from(delta[axis]))
                    });
                    extreme_eigenvalues(axis_edges)
                };
                let found = [0, 1, 2].map(axis);
                Some(Extremes { vertex, low: found.map(|(low, _)| low), high: found.map(|(_, high)| high) })
            });
            extremes.collect::<Vec<_>>()
        };
        let extremes = (0..shapes.blocks.len()).into_par_iter().flat_map_iter(block).collect();
        Self { extremes }
    }

    /// Improves `state`, which has begun at its start weights, until it stands still.
    pub(crate) fn run(
        &self,
        model: &Model<'_>,
        shapes: &ShapeBlocks,
        neutral: &[Vec3],
        target: &[Vec3],
        projection: &[f64],
        energy: f64,
        state: &mut Descent,
        scratch: &mut LmmmScratch,
    ) -> Course {
        let plan = model.plan;
        let objective = |state: &Descent| state.squared_error(plan) + state.penalty(plan);
        let vertex_weights = model.gram.vertex_weights();
        let spread: f64 =
            self.extremes.iter().map(|e| f64::from(vertex_weights[e.vertex as usize]) * e.spread()).sum();
        let quartic = 2.0 * state.weights.len() as f64 * spread;
        let mut current = objective(state);
        for iteration in 1..=Self::MAX_ITERATIONS {
            let mut square = 0.0;
            for shape in 0..state.weights.len() {
                let (slope, norm) = state.probe(model, shape);
                scratch.step[shape] = 2.0 * slope + plan.alpha;
                square += norm;
            }
            offsets(shapes, &state.products, &mut scratch.offsets);
            for extreme in &self.extremes {
                let vertex = extreme.vertex as usize;
                let weight = f64::from(vertex_weights[vertex]);
                if weight > 0.0 {
                    let wanted = (target[vertex].as_dvec3() - neutral[vertex].as_dvec3()).to_array();
                    square += weight * extreme.bound(&scratch.offsets[vertex], &wanted);
                }
            }
            for (step, weight) in scratch.step.iter_mut().zip(&state.weights) {
                *step = least(*step, 2.0 * square, quartic).clamp(-weight, plan.upper - weight);
            }
            let mut best = (current, 0.0);
            for stretch in Self::STRETCHES {
                let found = scratch.attempt(model, state, stretch, projection, energy);
                if found < best.0 {
                    best = (found, stretch);
                }
            }
            if best.1 == 0.0 {
                return Course {
                    stop: Stop::Converged,
                    passes: iteration,
                    visits: iteration,
                    newton_steps: 0,
                };
            }
            if best.1 != Self::STRETCHES[Self::STRETCHES.len() - 1] {
                scratch.attempt(model, state, best.1, projection, energy);
            }
            std::mem::swap(state, &mut scratch.trial);
            let before = std::mem::replace(&mut current, best.0);
            if before - current <= Self::TOLERANCE * before {
                return Course {
                    stop: Stop::Converged,
                    passes: iteration,
                    visits: iteration,
                    newton_steps: 0,
                };
            }
        }
        let iterations = Self::MAX_ITERATIONS;
        Course { stop: Stop::Passes, passes: iterations, visits: iterations, newton_steps: 0 }
    }
}

impl LmmmScratch {
    /// The objective with the increment stretched; leaves the trial there.
    fn attempt(
        &mut self,
        model: &Model<'_>,
        state: &Descent,
        stretch: f64,
        projection: &[f64],
        energy: f64,
    ) -> f64 {
        let trial = &mut self.trial;
        for (shape, weight) in trial.weights.iter_mut().enumerate() {
            *weight = (state.weights[shape] + stretch * self.step[shape]).clamp(0.0, model.plan.upper);
        }
        trial.begin(model, projection, energy);
        trial.squared_error(model.plan) + trial.penalty(model.plan)
    }
}

impl Extremes {
    /// `Σ σ_max(D_i)²` of the three coordinates.
    fn spread(&self) -> f64 {
        (0..3).map(|axis| self.high[axis].max(-self.low[axis]).powi(2)).sum()
    }

    /// `Σ p_i λ_i`: the largest eigenvalue where the residual is positive, the smallest where negative.
    fn bound(&self, offset: &[f64; 3], wanted: &[f64; 3]) -> f64 {
        let axis = |axis: usize| {
            let residual = offset[axis] - wanted[axis];
            residual * if residual > 0.0 { self.high[axis] } else { self.low[axis] }
        };
        axis(0) + axis(1) + axis(2)
    }
}

/// Where `c₁v + c₂v² + c₄v⁴` with `c₂, c₄ ≥ 0` is least.
fn least(linear: f64, square: f64, quartic: f64) -> f64 {
    let (roots, count) = cubic_roots([linear, 2.0 * square, 0.0, 4.0 * quartic]);
    if count > 0 { roots[0] } else { 0.0 }
}

/// The smallest and largest eigenvalue of a symmetric matrix of zero diagonal, given by its entries above
/// it. Shapes that are not connected through entries do not mix, so every component is solved alone.
fn extreme_eigenvalues(entries: impl Iterator<Item = (u32, u32, f64)>) -> (f64, f64) {
    let entries: Vec<(u32, u32, f64)> = entries.filter(|(.., value)| *value != 0.0).collect();
    let mut component: Vec<usize> = (0..entries.len()).collect();
    for edge in 0..entries.len() {
        for earlier in 0..edge {
            let touch = [entries[edge].0, entries[edge].1]
                .iter()
                .any(|shape| *shape == entries[earlier].0 || *shape == entries[earlier].1);
            if touch && component[earlier] != component[edge] {
                let (keep, replaced) = (component[edge], component[earlier]);
                component.iter_mut().filter(|c| **c == replaced).for_each(|c| *c = keep);
            }
        }
    }
    let (mut low, mut high) = (0.0f64, 0.0f64);
    for edge in 0..entries.len() {
        if component[..edge].contains(&component[edge]) {
            continue;
        }
        let members = (0..entries.len()).filter(|e| component[*e] == component[edge]).map(|e| entries[e]);
        let members: Vec<_> = members.collect();
        if let [(.., value)] = members[..] {
            low = low.min(-value.abs());
            high = high.max(value.abs());
            continue;
        }
        let mut shapes: Vec<u32> = members.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let place =
            |shape: u32| shapes.binary_search(&shape).expect("every shape of the component is listed");
        let n = shapes.len();
        let mut matrix = vec![0.0; n * n];
        for (a, b, value) in &members {
            matrix[place(*a) * n + place(*b)] += value;
            matrix[place(*b) * n + place(*a)] += value;
        }
        match SymmetricEigen::new(&matrix, n) {
            Ok(eigen) => {
                high = high.max(eigen.values[0]);
                low = low.min(eigen.values[n - 1]);
            }
            // The sum of all entries bounds every eigenvalue: the steps become smaller, not wrong.
            Err(_) => {
                let bound: f64 = members.iter().map(|(.., value)| 2.0 * value.abs()).sum();
                high = high.max(bound);
                low = low.min(-bound);
            }
        }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvalues_of_paths_and_pairs() {
        // A path of three with entries 3 and 4 has eigenvalues 0 and ±5; a lone pair ±value.
        let entries = [(0, 1, 3.0), (1, 2, 4.0), (5, 9, -5.5), (7, 8, 0.0)];
        let (low, high) = extreme_eigenvalues(entries.into_iter());
        assert!((low + 5.5).abs() < 1e-12 && (high - 5.5).abs() < 1e-12);
        let (low, high) = extreme_eigenvalues(entries[..2].iter().copied());
        assert!((low + 5.0).abs() < 1e-12 && (high - 5.0).abs() < 1e-12);
        // A triangle of ones: 2 and −1.
        let (low, high) = extreme_eigenvalues([(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0)].into_iter());
        assert!((low + 1.0).abs() < 1e-12 && (high - 2.0).abs() < 1e-12);
    }

    #[test]
    fn separate_quartics_are_least_where_they_say() {
        for (linear, square, quartic) in
            [(1.0, 2.0, 3.0), (-5.0, 0.1, 10.0), (2.0, 1.0, 0.0), (0.0, 1.0, 1.0)]
        {
            let value = |v: f64| linear * v + square * v * v + quartic * v.powi(4);
            let best = least(linear, square, quartic);
            assert!(value(best) <= value(best + 1e-4) && value(best) <= value(best - 1e-4));
        }
        assert_eq!(least(1.0, 0.0, 0.0), 0.0);
    }
}
