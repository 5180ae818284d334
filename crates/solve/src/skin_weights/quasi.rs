//! Quasi-harmonic weights (after Wang and Solomon 2021): weights that solve a second-order equation
//! `Σ_k c_ik (w_i − w_k) = 0` lie between 0 and 1 and sum to one by the maximum principle, with no bound to enforce. The
//! conductances `c` of edges are what is optimised, so that the weights' Laplacian energy `½ Σ_j w_jᵀ L M⁻¹ L w_j` falls:
//! a few linear systems of one pattern instead of a bounded quartic problem. The paper optimises a tensor per element;
//! a positive number per edge spans the same directions and keeps the discrete maximum principle on any mesh.

use super::WeightsError;
use rayon::prelude::*;
use understudy_core::laplacian::SparseRows;
use understudy_core::sparse_cholesky::{SparseCholesky, SparsePattern};

/// The first and largest step of a logarithm of a conductance.
const STEP: f64 = 0.6;
/// Decay of the averages of the gradient and of its square (Adam).
const DECAY: [f64; 2] = [0.7, 0.9];

pub(super) struct QuasiSystem<'a> {
    pub laplacian: &'a SparseRows,
    pub stiffness: &'a SparseRows,
    pub free: &'a [u32],
    pub columns: usize,
    pub steps: usize,
}

/// How a solve went.
#[derive(Debug, Clone)]
pub(super) struct QuasiLeft {
    /// The Laplacian energy of harmonic weights, and after every step.
    pub energies: Vec<f64>,
    /// Edges with an end that is solved for, and their conductances in the result.
    edges: Vec<(u32, u32, f64)>,
}

impl QuasiLeft {
    /// The second-order operator of `n` nodes that the result solves; rows of held nodes are not complete.
    pub fn operator(&self, n: usize) -> SparseRows {
        let of = |(a, b, c): &(u32, u32, f64)| [(*a, *a, *c), (*b, *b, *c), (*a, *b, -c), (*b, *a, -c)];
        SparseRows::from_triplets(n, self.edges.iter().flat_map(of).collect())
    }
}

impl QuasiSystem<'_> {
    /// Weights, `[columns][N]`; `w` holds values at handles.
    pub fn solve(
        &self,
        w: &mut [f64],
        hear: &dyn Fn(usize, usize) -> bool,
    ) -> Result<QuasiLeft, WeightsError> {
        let (n, m, h) = (self.laplacian.size(), self.free.len(), self.columns);
        if m == 0 {
            return Ok(QuasiLeft { energies: vec![0.0], edges: Vec::new() });
        }
        let mut place = vec![u32::MAX; n];
        (0u32..).zip(self.free).for_each(|(new, old)| place[*old as usize] = new);
        // Edges with an end that is solved for. A negative cotangent would break the maximum principle.
        let mean = self.laplacian.diagonal().iter().sum::<f64>() / n as f64;
        let mut edges: Vec<(u32, u32, f64)> = Vec::new();
        for a in 0..n {
            for (b, value) in self.laplacian.row(a).filter(|(b, _)| *b > a) {
                if place[a] != u32::MAX || place[b] != u32::MAX {
                    edges.push((a as u32, b as u32, (-value).max(1e-3 * mean)));
                }
            }
        }
        let mut logarithms = vec![0.0f64; edges.len()];
        let (mut first, mut second) = (vec![0.0f64; edges.len()], vec![0.0f64; edges.len()]);
        // The pattern of the free block, with the places of every edge's four entries in it.
        let base = self.laplacian.principal(self.free);
        let pattern = SparsePattern::new(&base);
        let failed = || WeightsError::Factor { unknowns: m, why: "a part of the mesh is degenerate" };
        let pattern = pattern.ok_or_else(failed)?;
        let mut energies = Vec::new();
        let mut best = (f64::INFINITY, Vec::new(), Vec::new());
        for step in 0..=self.steps {
            let conductance: Vec<f64> = edges.iter().zip(&logarithms).map(|(e, l)| e.2 * l.exp()).collect();
            let factor = self.factor(&edges, &conductance, &place, &base, &pattern).ok_or_else(failed)?;
            // Weights.
            let mut x = vec![0.0; m * h];
            for ((a, b, _), c) in edges.iter().zip(&conductance) {
                for (free, held) in [(*a, *b), (*b, *a)] {
                    if place[free as usize] != u32::MAX && place[held as usize] == u32::MAX {
                        for j in 0..h {
                            x[j * m + place[free as usize] as usize] += c * w[j * n + held as usize];
                        }
                    }
                }
            }
            x.par_chunks_mut(m).for_each(|column| factor.solve(column));
            w.par_chunks_mut(n).zip(x.par_chunks(m)).for_each(|(w, x)| {
                self.free.iter().zip(x).for_each(|(node, x)| w[*node as usize] = *x);
            });
            let bent: Vec<Vec<f64>> = w.par_chunks(n).map(|w| self.stiffness.times(w)).collect();
            let energy: f64 = bent
                .iter()
                .zip(w.chunks_exact(n))
                .map(|(bent, w)| 0.5 * bent.iter().zip(w).map(|(a, b)| a * b).sum::<f64>())
                .sum();
            energies.push(energy);
            if energy < best.0 {
                best = (energy, w.to_vec(), conductance.clone());
            }
            if !hear(step + 1, self.steps + 1) {
                return Err(WeightsError::Stopped);
            }
            if step == self.steps {
                break;
            }
            // Adjoint: L_c p = A w on free nodes; dE/dc_ik = −Σ_j (p_i − p_k)(w_i − w_k).
            let mut p = vec![0.0; n * h];
            p.par_chunks_mut(n).zip(&bent).for_each(|(p, bent)| {
                let mut right: Vec<f64> = self.free.iter().map(|node| bent[*node as usize]).collect();
                factor.solve(&mut right);
                self.free.iter().zip(&right).for_each(|(node, x)| p[*node as usize] = *x);
            });
            let gradient: Vec<f64> = edges
                .par_iter()
                .zip(&conductance)
                .map(|((a, b, _), c)| {
                    let (a, b) = (*a as usize, *b as usize);
                    let of = |j: usize| (p[j * n + a] - p[j * n + b]) * (w[j * n + a] - w[j * n + b]);
                    -c * (0..h).map(of).sum::<f64>()
                })
                .collect();
            let rate = STEP / (1.0 + step as f64).sqrt();
            let power = (step + 1) as i32;
            for e in 0..edges.len() {
                first[e] = DECAY[0] * first[e] + (1.0 - DECAY[0]) * gradient[e];
                second[e] = DECAY[1] * second[e] + (1.0 - DECAY[1]) * gradient[e] * gradient[e];
                let mean = first[e] / (1.0 - DECAY[0].powi(power));
                let size = (second[e] / (1.0 - DECAY[1].powi(power))).sqrt();
                if size > 0.0 {
                    logarithms[e] = (logarithms[e] - rate * mean / size).clamp(-6.0, 6.0);
                }
            }
        }
        w.copy_from_slice(&best.1);
        edges.iter_mut().zip(&best.2).for_each(|(edge, conductance)| edge.2 = *conductance);
        Ok(QuasiLeft { energies, edges })
    }

    fn factor(
        &self,
        edges: &[(u32, u32, f64)],
        conductance: &[f64],
        place: &[u32],
        base: &SparseRows,
        pattern: &SparsePattern,
    ) -> Option<SparseCholesky> {
        let m = self.free.len();
        let mut diagonal = vec![0.0; m];
        let mut triplets = Vec::with_capacity(2 * edges.len() + m);
        for ((a, b, _), c) in edges.iter().zip(conductance) {
            let (a, b) = (place[*a as usize], place[*b as usize]);
            for end in [a, b] {
                if end != u32::MAX {
                    diagonal[end as usize] += c;
                }
            }
            if a != u32::MAX && b != u32::MAX {
                triplets.push((a, b, -c));
                triplets.push((b, a, -c));
            }
        }
        (0u32..).zip(&diagonal).for_each(|(node, d)| triplets.push((node, node, *d)));
        let matrix = SparseRows::from_triplets(m, triplets);
        let same = matrix.compressed().1 == base.compressed().1;
        if same { pattern.factor(&matrix) } else { SparseCholesky::new(&matrix) }
    }
}
