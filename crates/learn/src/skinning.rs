//! Linear blend skinning fitted to example poses by convex least squares: the linear part of body twins, and a
//! baseline. Start at [`fit_skinning`].

use rayon::prelude::*;
use understudy_core::metrics::{best_bones, enveloping_error, squared_distance};
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Example poses of a rig with bones: skinning matrices (inverse bind included) and vertices of each.
pub type BonePoses = [(Vec<Affine3A>, Vec<Vec3>)];

/// Solves `min ½ wᵀ G w` over `w ≥ 0, Σw = 1` by projected coordinate exchange: mass moves
/// between the pair of entries that gains most until nothing gains. Exact in the limit for the convex
/// problem; `G` is small, `[c × c]` row-major.
fn simplex_least_squares(gram: &[f64], weights: &mut [f64]) {
    // Enough for all 117 bones of a film body; four influences are done within a few dozen.
    const MOST_STEPS: usize = 4000;
    let count = weights.len();
    let slope = |i: usize, weights: &[f64]| (0..count).map(|j| gram[i * count + j] * weights[j]).sum::<f64>();
    let mut gradient: Vec<f64> = (0..count).map(|i| slope(i, weights)).collect();
    let mut cost = 0.5 * (0..count).map(|i| weights[i] * gradient[i]).sum::<f64>();
    for _ in 0..MOST_STEPS {
        // Steepest pair: raise the entry with the lowest gradient, lower the one with the highest.
        let lowest = (0..count).min_by(|a, b| gradient[*a].total_cmp(&gradient[*b]));
        let highest =
            (0..count).filter(|i| weights[*i] > 0.0).max_by(|a, b| gradient[*a].total_cmp(&gradient[*b]));
        let (Some(up), Some(down)) = (lowest, highest) else { return };
        let gain = gradient[down] - gradient[up];
        let curvature = gram[up * count + up] + gram[down * count + down] - 2.0 * gram[up * count + down];
        if gain <= 1e-12 || curvature <= 0.0 {
            return;
        }
        let step = (gain / curvature).min(weights[down]);
        let won = step * (gain - 0.5 * step * curvature);
        if won < 1e-9 * cost {
            return;
        }
        cost -= won;
        weights[up] += step;
        weights[down] -= step;
        for i in 0..count {
            gradient[i] += step * (gram[i * count + up] - gram[i * count + down]);
        }
    }
}

/// Linear blend skinning fitted by convex least squares: per vertex the `candidates` bones that explain
/// it best alone, weights over all of them, then the `influences` heaviest, weights again. All bones as
/// candidates cost little more: those that would lower the error are taken in until none would.
///
/// # Panics
/// When there are no poses.
pub fn fit_skinning(rest: &[Vec3], poses: &BonePoses, influences: usize, candidates: usize) -> SkinWeights {
    let all: Vec<usize> = (0..poses[0].0.len()).collect();
    fit_skinning_among(rest, poses, influences, candidates, |_| &all, 0.0)
}

/// As [`fit_skinning`], with a choice of bones for every vertex; influences below `least` are left out.
///
/// # Panics
/// When there are no poses, or a vertex has no bone to choose.
pub fn fit_skinning_among<'a>(
    rest: &[Vec3],
    poses: &BonePoses,
    influences: usize,
    candidates: usize,
    bones_of: impl Fn(usize) -> &'a [usize] + Sync,
    least: f64,
) -> SkinWeights {
    let bones = poses[0].0.len();
    let rows: Vec<Vec<(u16, f32)>> = (0..rest.len())
        .into_par_iter()
        .map(|vertex| {
            let moved = |bone: usize, pose: usize| poses[pose].0[bone].transform_point3(rest[vertex]);
            let miss = |bone: usize| -> f32 {
                (0..poses.len()).map(|i| moved(bone, i).distance_squared(poses[i].1[vertex])).sum()
            };
            let mut ranked: Vec<(f32, usize)> =
                bones_of(vertex).iter().map(|bone| (miss(*bone), *bone)).collect();
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            let start = if candidates < ranked.len() { candidates } else { candidates.min(FIRST_CANDIDATES) };
            let mut chosen: Vec<usize> = ranked.iter().take(start).map(|(_, bone)| *bone).collect();
            let mut weights = solve_vertex(&chosen, poses, vertex, moved);
            if start < candidates.min(ranked.len()) {
                take_in_others(&ranked, &mut chosen, &mut weights, poses, vertex, moved);
            }
            let mut order: Vec<usize> = (0..chosen.len()).collect();
            order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
            chosen = order.iter().take(influences).map(|place| chosen[*place]).collect();
            weights = solve_vertex(&chosen, poses, vertex, moved);
            if weights.iter().any(|weight| *weight < least) {
                let heavy = chosen.iter().zip(&weights).filter(|(_, weight)| **weight >= least);
                chosen = heavy.map(|(bone, _)| *bone).collect();
                weights = solve_vertex(&chosen, poses, vertex, moved);
            }
            chosen.iter().zip(&weights).map(|(bone, weight)| (*bone as u16, *weight as f32)).collect()
        })
        .collect();
    SkinWeights::from_rows(&rows, bones).expect("weights are convex by construction")
}

/// Bones that are tried first where all are candidates.
const FIRST_CANDIDATES: usize = 16;

/// The weights are best over all bones when none of the others has a smaller gradient `Σ_i a_j·r` than the
/// residual `Σ_i r·r` itself (`a_j`: how far bone `j` alone misses, `r = Σ w_j a_j`). Those that have are taken in,
/// the steepest first, and those that came out without weight leave.
fn take_in_others(
    ranked: &[(f32, usize)],
    chosen: &mut Vec<usize>,
    weights: &mut Vec<f64>,
    poses: &BonePoses,
    vertex: usize,
    moved: impl Fn(usize, usize) -> Vec3 + Copy,
) {
    const ROUNDS: usize = 12;
    const AT_ONCE: usize = 8;
    const TOLERANCE: f64 = 1e-4;
    for _ in 0..ROUNDS {
        let blend = |pose: usize| -> Vec3 {
            let parts = chosen.iter().zip(weights.iter());
            parts.map(|(bone, weight)| moved(*bone, pose) * *weight as f32).sum::<Vec3>()
                - poses[pose].1[vertex]
        };
        let left: Vec<Vec3> = (0..poses.len()).map(blend).collect();
        let squared: f64 = left.iter().map(|r| f64::from(r.length_squared())).sum();
        let gradient = |bone: usize| -> f64 {
            let part =
                |(pose, r): (usize, &Vec3)| f64::from((moved(bone, pose) - poses[pose].1[vertex]).dot(*r));
            left.iter().enumerate().map(part).sum()
        };
        let others = ranked.iter().map(|(_, bone)| *bone).filter(|bone| !chosen.contains(bone));
        let mut steep: Vec<(f64, usize)> = others.map(|bone| (gradient(bone), bone)).collect();
        steep.retain(|(gradient, _)| *gradient < (1.0 - TOLERANCE) * squared);
        if steep.is_empty() {
            return;
        }
        steep.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut kept = weights.iter();
        chosen.retain(|_| kept.next().is_some_and(|weight| *weight > 0.0));
        chosen.extend(steep.iter().take(AT_ONCE).map(|(_, bone)| *bone));
        *weights = solve_vertex(chosen, poses, vertex, moved);
    }
}

fn solve_vertex(
    chosen: &[usize],
    poses: &BonePoses,
    vertex: usize,
    moved: impl Fn(usize, usize) -> Vec3,
) -> Vec<f64> {
    let count = chosen.len();
    let mut gram = vec![0.0f64; count * count];
    for pose in 0..poses.len() {
        // Relative to the truth: the weights sum to one, so the target becomes zero and digits are saved.
        let target = poses[pose].1[vertex];
        let misses: Vec<Vec3> = chosen.iter().map(|bone| moved(*bone, pose) - target).collect();
        for i in 0..count {
            for j in 0..=i {
                gram[i * count + j] += f64::from(misses[i].dot(misses[j]));
            }
        }
    }
    for i in 0..count {
        for j in 0..i {
            gram[j * count + i] = gram[i * count + j];
        }
    }
    // From the best bone alone: most bones end at zero.
    let best = (0..count).min_by(|a, b| gram[a * count + a].total_cmp(&gram[b * count + b])).unwrap_or(0);
    let mut weights = vec![0.0; count];
    weights[best] = 1.0;
    simplex_least_squares(&gram, &mut weights);
    weights
}

/// The enveloping error (eq. 2.9) that fitted linear blend skinning leaves on held-out poses, and the
/// mean distance in cm.
pub fn skinning_error(rest: &[Vec3], fitted: &SkinWeights, test: &BonePoses) -> (f64, f64) {
    let mut out = vec![Vec3::ZERO; rest.len()];
    let (mut squared, mut distance) = (0.0, 0.0);
    for (matrices, truth) in test {
        fitted.linear_blend(matrices, rest, &mut out);
        squared += squared_distance(truth, &out);
        distance += truth.iter().zip(&out).map(|(a, b)| f64::from(a.distance(*b))).sum::<f64>();
    }
    let enveloping = enveloping_error(squared, best_bones(rest, test).squared);
    (enveloping, distance / (rest.len() * test.len()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Quat, Random};

    #[test]
    fn more_influences_never_fit_worse() {
        let mut random = Random::new(8);
        let mut point = |scale: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-scale, scale)));
        let rest: Vec<Vec3> = (0..30).map(|_| point(50.0)).collect();
        let poses: Vec<(Vec<Affine3A>, Vec<Vec3>)> = (0..60)
            .map(|_| {
                let turn = |p: Vec3| Affine3A::from_rotation_translation(Quat::from_scaled_axis(p * 0.03), p);
                let matrices: Vec<Affine3A> = (0..40).map(|_| turn(point(20.0))).collect();
                // Bends that no skin can follow, so that many bones help a little.
                let bend =
                    |v: Vec3| matrices[3].transform_point3(v) * 0.5 + matrices[7].transform_point3(v) * 0.5;
                (matrices.clone(), rest.iter().map(|v| bend(*v) + point(2.0)).collect())
            })
            .collect();
        let error = |influences: usize, candidates: usize| {
            let fitted = fit_skinning(&rest, &poses, influences, candidates);
            let mut out = vec![Vec3::ZERO; rest.len()];
            let miss = |(matrices, truth): &(Vec<Affine3A>, Vec<Vec3>)| {
                fitted.linear_blend(matrices, &rest, &mut out);
                out.iter().zip(truth).map(|(a, b)| f64::from(a.distance_squared(*b))).sum::<f64>()
            };
            poses.iter().map(miss).sum::<f64>()
        };
        let (one, four, all) = (error(1, 1), error(4, 16), error(usize::MAX, usize::MAX));
        assert!(all < four && four < one, "{one} {four} {all}");
    }

    #[test]
    fn only_the_bones_of_choice_are_used_and_small_influences_are_left_out() {
        let rest = [Vec3::new(10.0, 0.0, 0.0), Vec3::new(0.0, 10.0, 0.0)];
        let turn = |angle: f32| Affine3A::from_rotation_z(angle);
        let poses: Vec<(Vec<Affine3A>, Vec<Vec3>)> = (0..20)
            .map(|i| {
                let angle = 0.05 * i as f32;
                let matrices = vec![turn(angle), turn(-angle), turn(0.3 * angle)];
                // 1 % of the second bone.
                let place =
                    |v: Vec3| matrices[0].transform_point3(v) * 0.99 + matrices[1].transform_point3(v) * 0.01;
                (matrices.clone(), rest.iter().map(|v| place(*v)).collect())
            })
            .collect();
        let choice = [vec![0, 1], vec![1, 2]];
        let fitted = fit_skinning_among(&rest, &poses, 4, 16, |vertex| &choice[vertex], 0.02);
        assert_eq!(fitted.row(0).collect::<Vec<_>>(), [(0, 1.0)]);
        assert!(fitted.row(1).all(|(bone, _)| bone != 0), "not its choice");
    }

    #[test]
    fn a_linear_rig_is_recovered_exactly() {
        let mut random = Random::new(4);
        let mut point = |scale: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-scale, scale)));
        let rest: Vec<Vec3> = (0..40).map(|_| point(50.0)).collect();
        let rows: Vec<Vec<(u16, f32)>> =
            (0..40).map(|v| vec![(v % 6, 0.5), ((v + 1) % 6, 0.3), ((v + 3) % 6, 0.2)]).collect();
        let truth = SkinWeights::from_rows(&rows, 6).expect("valid rows");
        let poses: Vec<(Vec<Affine3A>, Vec<Vec3>)> = (0..30)
            .map(|_| {
                let turn = |p: Vec3| Affine3A::from_rotation_translation(Quat::from_scaled_axis(p * 0.05), p);
                let matrices: Vec<Affine3A> = (0..6).map(|_| turn(point(20.0))).collect();
                let mut vertices = vec![Vec3::ZERO; 40];
                truth.linear_blend(&matrices, &rest, &mut vertices);
                (matrices, vertices)
            })
            .collect();
        let fitted = fit_skinning(&rest, &poses[..20], 4, 6);
        let (enveloping, mean) = skinning_error(&rest, &fitted, &poses[20..]);
        assert!(enveloping < 0.1 && mean < 0.02, "{enveloping} {mean}");
    }
}
