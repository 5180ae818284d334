//! The weight step: convex, with an l1 term, bounds, sums and handle conditions, by splitting (ADMM). Copies of what
//! weights make are kept apart: `P = A(W)` (deformed nodes), `X = W`, `Y = L X` (bends), `Z = W` (rows of the simplex).
//! Then `(1 + ρ) I + λ₂ L` and `I + c LᵀL` are factored once for all rounds, and only a block of handles per node
//! changes with the transforms. The result is the best point between the old weights and the new ones, so the energy
//! never rises.

use super::super::WeightsError;
use super::super::simplex::project;
use super::Sparsity;
use super::problem::{Problem, State};
use rayon::prelude::*;
use understudy_core::DVec3;
use understudy_core::laplacian::SparseRows;
use understudy_core::sparse_cholesky::SparseCholesky;

/// Penalty of `P = A(W)`, as a share of the data term.
const DEFORMED: f64 = 1.0;
/// Penalties of `X = W` and `Z = W` per example: about what the data term of a mesh of unit size weighs.
const COPIES: f64 = 0.002;
/// Bends of about this size are where the penalty of `Y = L X` meets the l1 term.
const BEND: f64 = 0.1;
/// How much longer the first weight step is.
const FIRST: usize = 4;
/// Iterations between two looks at the energy.
const LOOK: usize = 15;

pub(super) struct Splitting {
    penalty_deformed: f64,
    penalty_copy: f64,
    penalty_bend: f64,
    deformed_system: Option<SparseCholesky>,
    bend_system: Option<SparseCholesky>,
    copies: Option<Copies>,
}

/// Copies and scaled multipliers, kept from round to round.
struct Copies {
    /// `[N][columns]` by rows.
    x: Vec<f64>,
    z: Vec<f64>,
    x_dual: Vec<f64>,
    z_dual: Vec<f64>,
    /// `[columns][N]`.
    bend_dual: Vec<f64>,
    /// `[m][N]`.
    p: Vec<Vec<DVec3>>,
    p_dual: Vec<Vec<DVec3>>,
}

impl Splitting {
    pub fn new(problem: &Problem<'_>) -> Result<Self, WeightsError> {
        let n = problem.nodes();
        let m = problem.examples.len() as f64;
        let penalty_deformed = DEFORMED * problem.settings.data.max(0.1);
        let penalty_copy = COPIES * m;
        let penalty_bend = (m * problem.sparsity / BEND).clamp(1e-3 * penalty_copy, 10.0 * penalty_copy);
        let failed = || WeightsError::Factor { unknowns: n, why: "a part of the mesh is degenerate" };
        let deformed_system = match problem.rigidity > 0.0 {
            true => {
                let diagonal = vec![problem.settings.data + penalty_deformed; n];
                let matrix = problem.laplacian.scaled_plus_diagonal(problem.rigidity, &diagonal);
                Some(SparseCholesky::new(&matrix).ok_or_else(failed)?)
            }
            false => None,
        };
        let bend_system = match problem.sparsity > 0.0 {
            true => {
                let squared: SparseRows = problem.laplacian.sandwich(&vec![1.0; n]);
                let matrix = squared.scaled_plus_diagonal(penalty_bend, &vec![penalty_copy; n]);
                Some(SparseCholesky::new(&matrix).ok_or_else(failed)?)
            }
            false => None,
        };
        Ok(Self { penalty_deformed, penalty_copy, penalty_bend, deformed_system, bend_system, copies: None })
    }

    /// Forgets copies of earlier rounds.
    pub fn restart(&mut self) {
        self.copies = None;
    }

    /// Iterations of the next weight step.
    pub fn iterations(&self, problem: &Problem<'_>) -> usize {
        // Without copies of an earlier round there is further to go.
        problem.settings.weight_iterations * if self.copies.is_none() { FIRST } else { 1 }
    }

    /// Lowers the energy by other weights, or leaves them. `look` gets iterations that are done now and then; `false`
    /// ends it.
    pub fn fit_weights(
        &mut self,
        problem: &Problem<'_>,
        state: &mut State,
        look: &dyn Fn(usize) -> bool,
    ) -> Result<(), WeightsError> {
        let (n, h, m) = (problem.nodes(), problem.columns(), problem.examples.len());
        let carried: Vec<Vec<DVec3>> = state.transforms.par_iter().map(|t| problem.carried(t)).collect();
        let blocks = self.blocks(problem, &carried);
        let turned: Vec<Vec<DVec3>> = (0..m)
            .into_par_iter()
            .map(|k| problem.turned_edges(&state.groups, &state.rotations[k]))
            .collect();
        let deform = |w: &[f64], k: usize, node: usize| -> DVec3 {
            let places = &carried[k][node * h..(node + 1) * h];
            w[node * h..(node + 1) * h].iter().zip(places).map(|(w, p)| *p * *w).sum()
        };
        let mixing = problem.mixing_costs(&carried);
        let iterations = self.iterations(problem);
        let mut copies = self.copies.take().unwrap_or_else(|| Copies {
            x: state.weights.clone(),
            z: state.weights.clone(),
            x_dual: vec![0.0; n * h],
            z_dual: vec![0.0; n * h],
            bend_dual: vec![0.0; n * h],
            p: (0..m).map(|k| (0..n).map(|node| deform(&state.weights, k, node)).collect()).collect(),
            p_dual: vec![vec![DVec3::ZERO; n]; m],
        });
        let before = problem.energy(state).total();
        let mut best = (before, state.weights.clone());
        let (rho, copy, bend) = (self.penalty_deformed, self.penalty_copy, self.penalty_bend);
        let mut w = state.weights.clone();
        let has_bends = self.bend_system.is_some();
        for iteration in 1..=iterations {
            // Every node on its own: (ρ Σ BᵀB + 2c I) w = ρ Σ Bᵀ(P − U) + c (X − V) + c (Z − S) − ½ μ d.
            w.par_chunks_mut(h).enumerate().for_each(|(node, row)| {
                let at = node * h..(node + 1) * h;
                if problem.held[node].is_some() {
                    row.copy_from_slice(&state.weights[at]);
                    return;
                }
                for (j, value) in row.iter_mut().enumerate() {
                    let place = node * h + j;
                    *value = copy * (copies.z[place] - copies.z_dual[place]) - 0.5 * mixing[place];
                    if has_bends {
                        *value += copy * (copies.x[place] - copies.x_dual[place]);
                    }
                }
                for k in 0..m {
                    let wanted = (copies.p[k][node] - copies.p_dual[k][node]) * rho;
                    row.iter_mut()
                        .zip(&carried[k][at.clone()])
                        .for_each(|(w, place)| *w += place.dot(wanted));
                }
                solve_block(&blocks[node * h * h..(node + 1) * h * h], row);
            });
            // Bends: L X + Q, shrunk, and X from (c I + ρ LᵀL) X = c (W + V) + ρ L (Y − Q).
            if let Some(system) = &self.bend_system {
                let threshold = m as f64 * problem.sparsity / (2.0 * bend);
                let columns: Vec<(Vec<f64>, Vec<f64>)> = copies
                    .bend_dual
                    .par_chunks(n)
                    .enumerate()
                    .map(|(j, dual)| {
                        let x: Vec<f64> = (0..n).map(|node| copies.x[node * h + j]).collect();
                        let bends = problem.laplacian.times(&x);
                        let shrink = |(bend_here, dual): (&f64, &f64)| {
                            let value = bend_here + dual;
                            match problem.settings.norm {
                                Sparsity::L1 => value.signum() * (value.abs() - threshold).max(0.0),
                                Sparsity::L2 => value / (1.0 + 2.0 * threshold),
                            }
                        };
                        let y: Vec<f64> = bends.iter().zip(dual).map(shrink).collect();
                        let toward: Vec<f64> = y.iter().zip(dual).map(|(y, q)| y - q).collect();
                        let mut right: Vec<f64> = problem.laplacian.times(&toward);
                        for (node, right) in right.iter_mut().enumerate() {
                            let place = node * h + j;
                            *right = bend * *right + copy * (w[place] + copies.x_dual[place]);
                        }
                        system.solve(&mut right);
                        let bent = problem.laplacian.times(&right);
                        let dual = (0..n).map(|node| dual[node] + bent[node] - y[node]).collect();
                        (right, dual)
                    })
                    .collect();
                for (j, (x, dual)) in columns.into_iter().enumerate() {
                    (0..n).for_each(|node| copies.x[node * h + j] = x[node]);
                    copies.bend_dual[j * n..(j + 1) * n].copy_from_slice(&dual);
                }
                for place in 0..n * h {
                    copies.x_dual[place] += w[place] - copies.x[place];
                }
            }
            // Deformed nodes: ((1 + ρ) I + λ₂ L) P = q + λ₂ b + ρ (A(W) + U).
            let weights = &w;
            copies.p.par_iter_mut().zip(&mut copies.p_dual).enumerate().for_each(|(k, (p, dual))| {
                let moved: Vec<DVec3> = (0..n).map(|node| deform(weights, k, node)).collect();
                let mut right = vec![0.0; 3 * n];
                for node in 0..n {
                    let value = problem.examples[k][node] * problem.settings.data
                        + turned[k][node] * problem.rigidity
                        + (moved[node] + dual[node]) * rho;
                    (0..3).for_each(|axis| right[axis * n + node] = value[axis]);
                }
                match &self.deformed_system {
                    Some(system) => system.solve(&mut right),
                    None => right.iter_mut().for_each(|x| *x /= problem.settings.data + rho),
                }
                for node in 0..n {
                    p[node] = DVec3::new(right[node], right[n + node], right[2 * n + node]);
                    dual[node] += moved[node] - p[node];
                }
            });
            // Rows of the simplex.
            let allowed = state.allowed.as_deref();
            let rows = copies.z.par_chunks_mut(h).zip(copies.z_dual.par_chunks_mut(h)).enumerate();
            rows.for_each(|(node, (z, dual))| {
                for j in 0..h {
                    z[j] = weights[node * h + j] + dual[j];
                }
                match (problem.held[node], allowed) {
                    (Some(_), _) => z.copy_from_slice(&state.weights[node * h..(node + 1) * h]),
                    (None, Some(allowed)) => project_some(z, &allowed[node * h..(node + 1) * h]),
                    (None, None) => project(z),
                }
                for j in 0..h {
                    dual[j] += weights[node * h + j] - z[j];
                }
            });
            if iteration % LOOK == 0 || iteration == iterations {
                if !look(iteration) {
                    return Err(WeightsError::Stopped);
                }
                let energy = problem.energy_of(state, &copies.z).total();
                if energy < best.0 {
                    best = (energy, copies.z.clone());
                }
            }
        }
        // The energy is convex in the weights: between the old and the last ones may be a better point still.
        for share in [0.25, 0.5, 0.75] {
            let blend: Vec<f64> =
                state.weights.iter().zip(&copies.z).map(|(a, b)| a + share * (b - a)).collect();
            let energy = problem.energy_of(state, &blend).total();
            if energy < best.0 {
                best = (energy, blend);
            }
        }
        state.weights = best.1;
        self.copies = Some(copies);
        Ok(())
    }

    /// Cholesky factors of every node's block, `[N][columns][columns]`, lower triangles.
    fn blocks(&self, problem: &Problem<'_>, carried: &[Vec<DVec3>]) -> Vec<f64> {
        let (n, h) = (problem.nodes(), problem.columns());
        let mut blocks = vec![0.0; n * h * h];
        let ridge = self.penalty_copy * if self.bend_system.is_some() { 2.0 } else { 1.0 };
        blocks.par_chunks_mut(h * h).enumerate().for_each(|(node, block)| {
            for places in carried {
                let places = &places[node * h..(node + 1) * h];
                for row in 0..h {
                    for column in 0..=row {
                        block[row * h + column] += self.penalty_deformed * places[row].dot(places[column]);
                    }
                }
            }
            (0..h).for_each(|d| block[d * h + d] += ridge);
            for row in 0..h {
                for column in 0..=row {
                    let mut sum = block[row * h + column];
                    for k in 0..column {
                        sum -= block[row * h + k] * block[column * h + k];
                    }
                    block[row * h + column] = match row == column {
                        true => sum.max(f64::MIN_POSITIVE).sqrt(),
                        false => sum / block[column * h + column],
                    };
                }
            }
        });
        blocks
    }
}

/// `x ← (L Lᵀ)⁻¹ x`.
fn solve_block(lower: &[f64], x: &mut [f64]) {
    let h = x.len();
    for row in 0..h {
        let sum: f64 = (0..row).map(|k| lower[row * h + k] * x[k]).sum();
        x[row] = (x[row] - sum) / lower[row * h + row];
    }
    for row in (0..h).rev() {
        let sum: f64 = (row + 1..h).map(|k| lower[k * h + row] * x[k]).sum();
        x[row] = (x[row] - sum) / lower[row * h + row];
    }
}

/// Projects on the simplex of the handles that are allowed.
fn project_some(row: &mut [f64], allowed: &[bool]) {
    let mut some: Vec<f64> = row.iter().zip(allowed).filter(|(_, a)| **a).map(|(w, _)| *w).collect();
    project(&mut some);
    let mut next = some.into_iter();
    for (w, allowed) in row.iter_mut().zip(allowed) {
        *w = if *allowed { next.next().unwrap_or(0.0) } else { 0.0 };
    }
}
