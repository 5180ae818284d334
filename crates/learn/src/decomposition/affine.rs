//! The bones' half of an iteration when bones may stretch and shear: with all weights fixed the vertices are linear in the
//! bones, so that all bones of a frame come from one least-squares problem whose matrix is the same for all frames.

use super::animation::{Animation, Offset};
use super::bones::{WeightTables, members, targets};
use super::search::State;
use crate::cholesky::Cholesky;
use rayon::prelude::*;

/// What the vertices leave open (how a bone stretches across a flat patch) is decided for the smallest numbers: the weight
/// of that wish, relative to the mean of the matrix' diagonal.
const RIDGE: f64 = 1e-8;

/// Moves all bones of all frames to their best affine places; returns the sum of squares that is left.
pub(super) fn solve_bones(animation: &Animation, state: &mut State) -> f64 {
    let bones = state.bones;
    let members = members(bones, &state.rows);
    let tables = WeightTables::new(bones, &state.rows, &members, |vertex| animation.point(vertex));
    let targets = targets(animation, &members);
    let cholesky = factor(&tables);
    let energies: Vec<f64> = state
        .offsets
        .par_chunks_mut(bones)
        .zip(targets.par_chunks(bones))
        .map(|(offsets, targets)| {
            // `[4 B × 3]`: the columns are x, y and z.
            let mut x = vec![0.0; bones * 12];
            for (rows, target) in x.chunks_exact_mut(12).zip(targets) {
                (0..12).for_each(|i| rows[(i % 4) * 3 + i / 4] = target[i]);
            }
            cholesky.solve(&mut x, 3);
            for (offset, rows) in offsets.iter_mut().zip(x.chunks_exact(12)) {
                let offset: &mut Offset = offset;
                (0..12).for_each(|i| offset[i] = rows[(i % 4) * 3 + i / 4]);
            }
            tables.energy(targets, offsets)
        })
        .collect();
    energies.iter().sum::<f64>() + animation.squares.iter().sum::<f64>()
}

fn factor(tables: &WeightTables) -> Cholesky {
    let n = 4 * tables.bones;
    let mut gram = vec![0.0; n * n];
    for (bone, shared) in tables.shared.iter().enumerate() {
        for (other, c) in shared {
            for (place, entry) in c.iter().enumerate() {
                gram[(4 * bone + place / 4) * n + 4 * other + place % 4] = *entry;
            }
        }
    }
    let ridge = RIDGE * (0..n).map(|i| gram[i * n + i]).sum::<f64>() / n as f64 + f64::MIN_POSITIVE;
    (0..n).for_each(|i| gram[i * n + i] += ridge);
    Cholesky::new(gram, n)
}
