//! The best that linear methods can do with a rig, so that tests can say how far from linear it is:
//! linear blend skinning fitted to example poses, and linear regression from controls.

use understudy_core::metrics::{EnvelopingError, best_bone_per_vertex};
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Example poses of a rig with bones: skinning matrices (inverse bind included) and vertices of each.
pub type BonePoses = [(Vec<Affine3A>, Vec<Vec3>)];

/// Solves `min ½ wᵀ G w` over `w ≥ 0, Σw = 1` by projected coordinate exchange: mass moves
/// between the pair of entries that gains most until nothing gains. Exact in the limit for the convex
/// problem; `G` is small, `[c × c]` row-major.
fn simplex_least_squares(gram: &[f64], weights: &mut [f64]) {
    let count = weights.len();
    let slope = |i: usize, weights: &[f64]| (0..count).map(|j| gram[i * count + j] * weights[j]).sum::<f64>();
    let mut gradient: Vec<f64> = (0..count).map(|i| slope(i, weights)).collect();
    for _ in 0..200 {
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
        weights[up] += step;
        weights[down] -= step;
        for i in 0..count {
            gradient[i] += step * (gram[i * count + up] - gram[i * count + down]);
        }
    }
}

/// Linear blend skinning fitted by convex least squares: per vertex the `candidates` bones that explain
/// it best alone, weights over all of them, then the `influences` heaviest, weights again.
///
/// # Panics
/// When there are no poses.
pub fn fit_skinning(rest: &[Vec3], poses: &BonePoses, influences: usize, candidates: usize) -> SkinWeights {
    let bones = poses[0].0.len();
    let rows: Vec<Vec<(u16, f32)>> = (0..rest.len())
        .map(|vertex| {
            let moved = |bone: usize, pose: usize| poses[pose].0[bone].transform_point3(rest[vertex]);
            let miss = |bone: usize| -> f32 {
                (0..poses.len()).map(|i| moved(bone, i).distance_squared(poses[i].1[vertex])).sum()
            };
            let mut ranked: Vec<(f32, usize)> = (0..bones).map(|bone| (miss(bone), bone)).collect();
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut chosen: Vec<usize> = ranked.iter().take(candidates).map(|(_, bone)| *bone).collect();
            let mut weights = solve_vertex(&chosen, poses, vertex, moved);
            let mut order: Vec<usize> = (0..chosen.len()).collect();
            order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
            chosen = order.iter().take(influences).map(|place| chosen[*place]).collect();
            weights = solve_vertex(&chosen, poses, vertex, moved);
            chosen.iter().zip(&weights).map(|(bone, weight)| (*bone as u16, *weight as f32)).collect()
        })
        .collect();
    SkinWeights::from_rows(&rows, bones).expect("weights are convex by construction")
}

fn solve_vertex(
    chosen: &[usize],
    poses: &BonePoses,
    vertex: usize,
    moved: impl Fn(usize, usize) -> Vec3,
) -> Vec<f64> {
    let count = chosen.len();
    let mut gram = vec![0.0; count * count];
    for pose in 0..poses.len() {
        // Relative to the truth: the weights sum to one, so the target becomes zero and digits are saved.
        let target = poses[pose].1[vertex];
        let misses: Vec<Vec3> = chosen.iter().map(|bone| moved(*bone, pose) - target).collect();
        for i in 0..count {
            for j in 0..count {
                gram[i * count + j] += f64::from(misses[i].dot(misses[j]));
            }
        }
    }
    let mut weights = vec![1.0 / count as f64; count];
    simplex_least_squares(&gram, &mut weights);
    weights
}

/// The enveloping error (eq. 2.9) that fitted linear blend skinning leaves on held-out poses, and the
/// mean distance in cm.
pub fn skinning_error(
    rest: &[Vec3],
    fitted: &SkinWeights,
    train: &BonePoses,
    test: &BonePoses,
) -> (f64, f64) {
    let owner = best_bone_per_vertex(rest, train);
    let mut error = EnvelopingError::default();
    let (mut approximation, mut rigid) = (vec![Vec3::ZERO; rest.len()], vec![Vec3::ZERO; rest.len()]);
    let mut distance = 0.0;
    for (matrices, truth) in test {
        fitted.linear_blend(matrices, rest, &mut approximation);
        for vertex in 0..rest.len() {
            rigid[vertex] = matrices[owner[vertex]].transform_point3(rest[vertex]);
            distance += f64::from(truth[vertex].distance(approximation[vertex]));
        }
        error.add(truth, &approximation, &rigid);
    }
    (error.value(), distance / (rest.len() * test.len()) as f64)
}

/// Linear regression `v = v₀ + B [p; 1]` by normal equations with a trace of ridge. Gives on the test
/// poses the share of the displacement from rest that it leaves: `sqrt(Σ‖v − v̂‖² / Σ‖v − v₀‖²)`.
/// `train` and `test`: controls and vertices of each pose.
pub fn regression_residual(
    rest: &[Vec3],
    train: &[(Vec<f32>, Vec<Vec3>)],
    test: &[(Vec<f32>, Vec<Vec3>)],
) -> f64 {
    let inputs = train[0].0.len() + 1;
    let outputs = rest.len() * 3;
    let extended = |controls: &[f32]| -> Vec<f64> {
        controls.iter().map(|c| f64::from(*c)).chain(std::iter::once(1.0)).collect()
    };
    let displacement = |vertices: &[Vec3]| -> Vec<f64> {
        vertices.iter().zip(rest).flat_map(|(v, r)| (*v - *r).as_dvec3().to_array()).collect()
    };
    let mut gram = vec![0.0f64; inputs * inputs];
    let mut right = vec![0.0f64; inputs * outputs];
    for (controls, vertices) in train {
        let (x, y) = (extended(controls), displacement(vertices));
        for i in 0..inputs {
            if x[i] == 0.0 {
                continue;
            }
            for j in 0..inputs {
                gram[i * inputs + j] += x[i] * x[j];
            }
            let row = &mut right[i * outputs..(i + 1) * outputs];
            row.iter_mut().zip(&y).for_each(|(sum, y)| *sum += x[i] * y);
        }
    }
    for i in 0..inputs {
        gram[i * inputs + i] *= 1.0 + 1e-9;
    }
    solve_cholesky(&mut gram, inputs, &mut right, outputs);
    let (mut left, mut whole) = (0.0, 0.0);
    for (controls, vertices) in test {
        let (x, y) = (extended(controls), displacement(vertices));
        let mut prediction = vec![0.0; outputs];
        for i in 0..inputs {
            let row = &right[i * outputs..(i + 1) * outputs];
            prediction.iter_mut().zip(row).for_each(|(sum, b)| *sum += x[i] * b);
        }
        left += y.iter().zip(&prediction).map(|(y, p)| (y - p).powi(2)).sum::<f64>();
        whole += y.iter().map(|y| y * y).sum::<f64>();
    }
    (left / whole).sqrt()
}

/// Solves `G X = R` in place, `G` symmetric positive definite `[n × n]`, `R` `[n × m]`, row-major.
fn solve_cholesky(gram: &mut [f64], n: usize, right: &mut [f64], m: usize) {
    for j in 0..n {
        for k in 0..j {
            let factor = gram[j * n + k];
            for i in j..n {
                gram[i * n + j] -= gram[i * n + k] * factor;
            }
        }
        let pivot = gram[j * n + j].max(f64::MIN_POSITIVE).sqrt();
        for i in j..n {
            gram[i * n + j] /= pivot;
        }
    }
    for i in 0..n {
        for k in 0..i {
            subtract_row(right, m, i, k, gram[i * n + k]);
        }
        right[i * m..(i + 1) * m].iter_mut().for_each(|r| *r /= gram[i * n + i]);
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            subtract_row(right, m, i, k, gram[k * n + i]);
        }
        right[i * m..(i + 1) * m].iter_mut().for_each(|r| *r /= gram[i * n + i]);
    }
}

/// `row_i −= factor · row_k`.
fn subtract_row(rows: &mut [f64], m: usize, i: usize, k: usize, factor: f64) {
    let (low, high) = rows.split_at_mut(i.max(k) * m);
    let (target, source) = if i > k {
        (&mut high[..m], &low[k * m..(k + 1) * m])
    } else {
        (&mut low[i * m..(i + 1) * m], &high[..m])
    };
    target.iter_mut().zip(source).for_each(|(t, s)| *t -= factor * s);
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Quat, Random};

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
        let (enveloping, mean) = skinning_error(&rest, &fitted, &poses[..20], &poses[20..]);
        assert!(enveloping < 0.1 && mean < 0.02, "{enveloping} {mean}");
    }

    #[test]
    fn regression_recovers_a_linear_map_and_not_a_square() {
        let mut random = Random::new(8);
        let rest = [Vec3::ZERO];
        let mut poses = |square: f32| -> Vec<(Vec<f32>, Vec<Vec3>)> {
            let mut pose = || {
                let p = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
                (p.to_vec(), vec![Vec3::new(p[0] + 2.0 * p[1], square * p[0] * p[0], 0.3)])
            };
            (0..200).map(|_| pose()).collect()
        };
        let (linear, curved) = (poses(0.0), poses(3.0));
        assert!(regression_residual(&rest, &linear[..100], &linear[100..]) < 1e-5);
        assert!(regression_residual(&rest, &curved[..100], &curved[100..]) > 0.2);
    }
}
