//! Which bone each vertex follows, and how few bones suffice.

use super::{Armature, Recording};
use rayon::prelude::*;
use understudy_core::Affine3A;

/// Poses that suffice to rank bones; more change no assignment but take time in proportion.
const MOST_POSES: usize = 400;

/// Every vertex with its bone.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// `[V]`.
    pub bone_of_vertex: Vec<u32>,
    /// Bones that have vertices, ascending.
    pub bones: Vec<u32>,
    /// Squared error (2.7) of the best assignment, a pose and vertex, cm².
    pub best_error: f64,
    /// The same after bones were dropped.
    pub error: f64,
}

/// `b_k = argmin_j Σ_i ‖v_k^i − X_j^i (X_j^0)^-1 (v_k^0 − t_j^0) − t_j^i‖²`, then the bone with the fewest
/// vertices is dropped and its vertices go to their next best, again and again, while the error stays
/// below `tolerance · e₀` (τ of the paper, 1.1 to 1.5).
pub fn assign(poses: &Recording, armature: &Armature, tolerance: f64) -> Assignment {
    let chosen = poses.spread(MOST_POSES);
    let bones = poses.skeleton().len();
    let carriers: Vec<Vec<Affine3A>> =
        chosen.iter().map(|pose| armature.carriers(poses.bones_of(*pose))).collect();
    let rest = poses.mesh.positions();
    // [V × J], each row by itself: the same sums whatever the thread count.
    let costs: Vec<Vec<f64>> = (0..rest.len())
        .into_par_iter()
        .map(|vertex| {
            let mut row = vec![0.0f64; bones];
            for (pose, carrier) in chosen.iter().zip(&carriers) {
                let truth = poses.vertices_of(*pose)[vertex];
                for (cost, matrix) in row.iter_mut().zip(carrier) {
                    *cost += f64::from(matrix.transform_point3(rest[vertex]).distance_squared(truth));
                }
            }
            row
        })
        .collect();

    let mut active = vec![true; bones];
    let best = |row: &[f64], active: &[bool]| {
        let open = (0..bones).filter(|bone| active[*bone]);
        open.min_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0) as u32
    };
    let mut owner: Vec<u32> = costs.iter().map(|row| best(row, &active)).collect();
    let sum =
        |owner: &[u32]| -> f64 { owner.iter().zip(&costs).map(|(bone, row)| row[*bone as usize]).sum() };
    let scale = 1.0 / (chosen.len() * rest.len()) as f64;
    let best_error = sum(&owner) * scale;
    let mut error = best_error;
    loop {
        let mut members = vec![0usize; bones];
        owner.iter().for_each(|bone| members[*bone as usize] += 1);
        for bone in 0..bones {
            // A bone without vertices costs nothing, and stays out of the next choices.
            active[bone] &= members[bone] > 0;
        }
        let open = (0..bones).filter(|bone| active[*bone]);
        let Some(smallest) = open.min_by_key(|bone| members[*bone]) else { break };
        if active.iter().filter(|a| **a).count() <= 1 {
            break;
        }
        active[smallest] = false;
        let moved: Vec<u32> = owner
            .iter()
            .zip(&costs)
            .map(|(bone, row)| if *bone as usize == smallest { best(row, &active) } else { *bone })
            .collect();
        let worse = sum(&moved) * scale;
        if worse > tolerance * best_error.max(1e-12) {
            break;
        }
        (owner, error) = (moved, worse);
    }
    let mut bones: Vec<u32> = owner.clone();
    bones.sort_unstable();
    bones.dedup();
    Assignment { bone_of_vertex: owner, bones, best_error, error }
}
