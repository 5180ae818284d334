//! The bones' half of an iteration: with all weights fixed, every bone of every frame by weighted absolute
//! orientation, one after another. Tables of the weights make a pass independent of the number of vertices,
//! so that many passes cost nothing.

use super::animation::{Animation, Offset, motion_of, offset_of};
use super::search::State;
use super::simplex::Row;
use rayon::prelude::*;
use understudy_core::rotation::{RigidMotion, best_rotation};
use understudy_core::{DMat3, DVec3};

/// A rotation that the vertices leave open (a bone with one or two of them) stays near where it was: the
/// weight of that wish, relative to the spread of the bone's vertices.
const HOLD: f64 = 1e-9;

/// What all frames need to know of the weights: `C_jk = Σ_i w_ij w_ik P_i P_iᵀ` with `P = [p; 1]`.
pub struct WeightTables {
    pub(super) bones: usize,
    /// For each bone the bones that it shares vertices with, itself included, and their `C`, 4×4 by rows.
    pub(super) shared: Vec<Vec<(usize, [f64; 16])>>,
}

impl WeightTables {
    /// `point`: `[p; 1]` of a vertex.
    pub fn new(
        bones: usize,
        rows: &[Row],
        members: &[Vec<(u32, f64)>],
        point: impl Fn(usize) -> [f64; 4] + Sync,
    ) -> Self {
        let table = |members: &Vec<(u32, f64)>| {
            let mut sums = vec![[0.0f64; 16]; bones];
            let mut touched = vec![false; bones];
            for &(vertex, weight) in members {
                let p = point(vertex as usize);
                for &(other, other_weight) in &rows[vertex as usize] {
                    let both = weight * other_weight;
                    touched[usize::from(other)] = true;
                    let sum = &mut sums[usize::from(other)];
                    for row in 0..4 {
                        for column in 0..4 {
                            sum[row * 4 + column] += both * p[row] * p[column];
                        }
                    }
                }
            }
            let kept = (0..bones).filter(|bone| touched[*bone]).map(|bone| (bone, sums[bone]));
            kept.collect()
        };
        Self { bones, shared: members.par_iter().map(table).collect() }
    }

    /// Passes over the bones of one frame until a pass moves the vertices by less than `tolerance` (root
    /// mean square) or `passes` are done. `targets`: `D_j = Σ_i w_ij δ_i P_iᵀ`, `[B]`. Every single step
    /// is the best for its bone, so the sum of squares never rises.
    pub fn settle(
        &self,
        targets: &[Offset],
        offsets: &mut [Offset],
        vertices: usize,
        tolerance: f64,
        passes: usize,
    ) {
        for _pass in 0..passes {
            let mut moved = 0.0;
            for bone in 0..self.bones {
                moved += self.step(bone, targets, offsets);
            }
            if moved <= tolerance * tolerance * vertices as f64 {
                return;
            }
        }
    }

    /// Moves one bone to its best place. Returns the squared distance that its share of the vertices moved.
    fn step(&self, bone: usize, targets: &[Offset], offsets: &mut [Offset]) -> f64 {
        // Σ_i w_ij q_i P_iᵀ for q_i = δ_i + w_ij p_i − Σ_{k≠j} w_ik N_k P_i: what this bone has to make up for.
        let mut wanted = targets[bone];
        let mut own = None;
        for (other, c) in &self.shared[bone] {
            if *other == bone {
                own = Some(c);
            } else {
                subtract_product(&mut wanted, &offsets[*other], c);
            }
        }
        let Some(own) = own else { return 0.0 };
        let total = own[15];
        if total <= 0.0 {
            return 0.0;
        }
        for (row, entry) in wanted.iter_mut().enumerate() {
            *entry += own[(row / 4) * 4 + row % 4];
        }
        let from = DVec3::new(own[3], own[7], own[11]) / total;
        let to = DVec3::new(wanted[3], wanted[7], wanted[11]) / total;
        // Covariance Σ a bᵀ of the rest positions (a) and their targets (b), about both means.
        let column = |axis: usize| {
            DVec3::new(wanted[axis * 4], wanted[axis * 4 + 1], wanted[axis * 4 + 2])
                - from * (to[axis] * total)
        };
        let covariance = DMat3::from_cols(column(0), column(1), column(2));
        let spread = own[0] + own[5] + own[10] - total * from.length_squared();
        let before = motion_of(&offsets[bone]);
        let hold = HOLD * spread.max(0.0) + f64::MIN_POSITIVE;
        let rotation = best_rotation(covariance + before.rotation.transpose() * hold);
        let after = offset_of(&RigidMotion { rotation, translation: to - rotation * from });
        let change: Offset = std::array::from_fn(|i| after[i] - offsets[bone][i]);
        offsets[bone] = after;
        square(&change, &change, own)
    }

    /// `Σ_i ‖Σ_j w_ij N_j P_i − δ_i‖²` of a frame less the constant `Σ‖δ_i‖²`.
    pub fn energy(&self, targets: &[Offset], offsets: &[Offset]) -> f64 {
        let mut sum = 0.0;
        for bone in 0..self.bones {
            let dot: f64 = targets[bone].iter().zip(&offsets[bone]).map(|(d, n)| d * n).sum();
            sum -= 2.0 * dot;
            for (other, c) in &self.shared[bone] {
                sum += square(&offsets[bone], &offsets[*other], c);
            }
        }
        sum
    }
}

/// `a −= n · c`, `[3 × 4] · [4 × 4]`.
fn subtract_product(a: &mut Offset, n: &Offset, c: &[f64; 16]) {
    // Written out: this is the innermost loop of a pass.
    for (a, n) in a.chunks_exact_mut(4).zip(n.chunks_exact(4)) {
        for column in 0..4 {
            a[column] -=
                n[0] * c[column] + n[1] * c[4 + column] + n[2] * c[8 + column] + n[3] * c[12 + column];
        }
    }
}

/// `tr(a c bᵀ)`.
fn square(a: &Offset, b: &Offset, c: &[f64; 16]) -> f64 {
    let mut product = [0.0; 12];
    subtract_product(&mut product, b, c);
    -a.iter().zip(product).map(|(a, p)| a * p).sum::<f64>()
}

/// For each bone its vertices and their weights.
pub fn members(bones: usize, rows: &[Row]) -> Vec<Vec<(u32, f64)>> {
    let mut out = vec![Vec::new(); bones];
    for (vertex, row) in rows.iter().enumerate() {
        for (bone, weight) in row {
            out[usize::from(*bone)].push((vertex as u32, *weight));
        }
    }
    out
}

/// `D_j = Σ_i w_ij δ_i P_iᵀ` of all frames, `[F][B]`.
pub fn targets(animation: &Animation, members: &[Vec<(u32, f64)>]) -> Vec<Offset> {
    let (frames, bones) = (animation.frames(), members.len());
    let sums: Vec<Vec<f64>> = members
        .par_iter()
        .map(|members| {
            // By columns of P: `[4][F · 3]`, so that the inner loop runs along memory.
            let width = frames * 3;
            let mut sums = vec![0.0f64; 4 * width];
            for &(vertex, weight) in members {
                let (point, row) = (animation.point(vertex as usize), animation.row(vertex as usize));
                for (sum, p) in sums.chunks_exact_mut(width).zip(point) {
                    let factor = weight * p;
                    for (sum, d) in sum.iter_mut().zip(row) {
                        *sum += factor * f64::from(*d);
                    }
                }
            }
            sums
        })
        .collect();
    let mut out = vec![[0.0; 12]; frames * bones];
    for (bone, sums) in sums.iter().enumerate() {
        for frame in 0..frames {
            let at = |i: usize| sums[(i % 4) * frames * 3 + frame * 3 + i / 4];
            out[frame * bones + bone] = std::array::from_fn(at);
        }
    }
    out
}

/// Moves all bones of all frames; returns the sum of squares that is left. `tolerance`: see
/// [`WeightTables::settle`].
pub fn solve_bones(animation: &Animation, state: &mut State, tolerance: f64, passes: usize) -> f64 {
    let members = members(state.bones, &state.rows);
    let tables = WeightTables::new(state.bones, &state.rows, &members, |vertex| animation.point(vertex));
    let targets = targets(animation, &members);
    let energies: Vec<f64> = state
        .offsets
        .par_chunks_mut(state.bones)
        .zip(targets.par_chunks(state.bones))
        .map(|(offsets, targets)| {
            tables.settle(targets, offsets, animation.vertices(), tolerance, passes);
            tables.energy(targets, offsets)
        })
        .collect();
    energies.iter().sum::<f64>() + animation.squares.iter().sum::<f64>()
}
