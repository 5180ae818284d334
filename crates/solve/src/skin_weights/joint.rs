//! Bounded biharmonic weights of all handles at once: the sum of every node's weights is one inside the problem (eq. 4).
//! Splitting (ADMM): all handles solve one prefactored system, `(A + ρM) w_j = ρM(z_j − u_j) − …`, and every node's row
//! is then projected on the simplex.

use super::WeightsError;
use super::simplex::project;
use rayon::prelude::*;
use understudy_core::laplacian::SparseRows;
use understudy_core::sparse_cholesky::{SparseCholesky, SparsePattern};

/// Over-relaxation.
const RELAXATION: f64 = 1.7;
/// Iterations between two looks at the balance of the residuals.
const LOOK: usize = 25;
/// Residuals this far apart change the penalty.
const BALANCE: f64 = 4.0;

pub(super) struct JointSystem<'a> {
    pub stiffness: &'a SparseRows,
    pub mass: &'a [f64],
    pub free: &'a [u32],
    pub columns: usize,
    pub tolerance: f64,
    pub iterations: usize,
}

/// How a joint solve ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct JointLeft {
    pub iterations: usize,
    /// The largest change that is left in a weight, about.
    pub residual: f64,
}

impl JointSystem<'_> {
    /// Weights of all handles, `[columns][N]`: `w` holds values at handles and a first guess (rows that sum to one)
    /// elsewhere. `hear` may end it.
    pub fn solve(
        &self,
        w: &mut [f64],
        hear: &dyn Fn(usize, usize) -> bool,
    ) -> Result<JointLeft, WeightsError> {
        let (n, m, h) = (self.mass.len(), self.free.len(), self.columns);
        let matrix = self.stiffness.principal(self.free);
        let mass: Vec<f64> = self.free.iter().map(|node| self.mass[*node as usize]).collect();
        // What held nodes pull, `−A_fk w_k` for every handle.
        let mut held = w.to_vec();
        for column in held.chunks_exact_mut(n) {
            self.free.iter().for_each(|node| column[*node as usize] = 0.0);
        }
        let gather = |all: &[f64]| -> Vec<f64> {
            all.chunks_exact(n).flat_map(|c| self.free.iter().map(|node| c[*node as usize])).collect()
        };
        let pull: Vec<f64> = held.chunks_exact(n).flat_map(|column| self.stiffness.times(column)).collect();
        let pull = gather(&pull);
        let mut z = gather(w);
        let mut u = vec![0.0; m * h];
        // The penalty starts between the slow and the fast modes.
        let mean: f64 =
            matrix.diagonal().iter().zip(&mass).map(|(a, m)| a / m).sum::<f64>() / m.max(1) as f64;
        let mut penalty = 1e-4 * mean;
        let pattern = SparsePattern::new(&matrix);
        let factor = |penalty: f64| -> Result<SparseCholesky, WeightsError> {
            let diagonal: Vec<f64> = mass.iter().map(|m| penalty * m).collect();
            let shifted = matrix.scaled_plus_diagonal(1.0, &diagonal);
            let found = pattern.as_ref().and_then(|pattern| pattern.factor(&shifted));
            found.ok_or(WeightsError::Factor { unknowns: m, why: "a part of the mesh is degenerate" })
        };
        let mut system = factor(penalty)?;
        let mut residual = f64::INFINITY;
        let mut done = 0;
        for iteration in 1..=self.iterations {
            done = iteration;
            let mut x: Vec<f64> = vec![0.0; m * h];
            for (k, x) in x.iter_mut().enumerate() {
                *x = penalty * mass[k % m] * (z[k] - u[k]) - pull[k];
            }
            x.par_chunks_mut(m.max(1)).for_each(|column| system.solve(column));
            let before = z.clone();
            // Relaxed, moved by the multipliers, projected row by row.
            let relaxed: Vec<f64> =
                x.iter().zip(&before).map(|(x, z)| RELAXATION * x + (1.0 - RELAXATION) * z).collect();
            let mut row = vec![0.0; h];
            for node in 0..m {
                (0..h).for_each(|j| row[j] = relaxed[j * m + node] + u[j * m + node]);
                project(&mut row);
                (0..h).for_each(|j| z[j * m + node] = row[j]);
            }
            for k in 0..m * h {
                u[k] += relaxed[k] - z[k];
            }
            let largest =
                |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            let (primal, dual) = (largest(&x, &z), largest(&z, &before));
            residual = primal.max(dual);
            // Slow modes creep: the change per iteration must be well below what is wanted.
            if residual < 1e-3 * self.tolerance {
                break;
            }
            if iteration % LOOK == 0 {
                if !hear(iteration, self.iterations) {
                    return Err(WeightsError::Stopped);
                }
                let factor_by = match primal / dual.max(f64::MIN_POSITIVE) {
                    ratio if ratio > BALANCE => 2.0,
                    ratio if ratio < 1.0 / BALANCE => 0.5,
                    _ => 1.0,
                };
                if factor_by != 1.0 {
                    penalty *= factor_by;
                    u.iter_mut().for_each(|u| *u /= factor_by);
                    system = factor(penalty)?;
                }
            }
        }
        for (column, z) in w.chunks_exact_mut(n).zip(z.chunks_exact(m.max(1))) {
            self.free.iter().zip(z).for_each(|(node, z)| column[*node as usize] = *z);
        }
        Ok(JointLeft { iterations: done, residual })
    }
}
