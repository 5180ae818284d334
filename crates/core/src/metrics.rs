//! How far a deformation is from the truth. Lengths keep their unit (cm); angles are degrees.

use crate::mesh::Face;
use crate::normals::face_normals;
use glam::{Affine3A, DVec3, Vec3};

/// Distances of vertices, summed up.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ErrorSummary {
    /// Mean distance.
    pub mean: f64,
    /// Root of the mean squared distance.
    pub rmse: f64,
    /// Half of the vertices are nearer.
    pub p50: f64,
    /// 95 % are nearer.
    pub p95: f64,
    /// 99 % are nearer.
    pub p99: f64,
    /// The worst vertex.
    pub max: f64,
}

/// `‖a_i − b_i‖` a vertex.
///
/// # Panics
/// When the lengths differ.
pub fn distances(a: &[Vec3], b: &[Vec3]) -> Vec<f32> {
    assert_eq!(a.len(), b.len(), "vertices come in pairs");
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).collect()
}

/// Sums distances up; all zero for an empty list.
pub fn summarise(distances: &[f32]) -> ErrorSummary {
    let mut values = distances.to_vec();
    let count = values.len().max(1) as f64;
    let sum: f64 = values.iter().map(|d| f64::from(*d)).sum();
    let squares: f64 = values.iter().map(|d| f64::from(*d).powi(2)).sum();
    let max = values.iter().copied().max_by(f32::total_cmp).map_or(0.0, f64::from);
    // From the top down: each search looks only at what lies below the last one.
    let (p99, rest) = select(&mut values, 99.0, distances.len());
    let (p95, rest) = select(&mut values[..rest], 95.0, distances.len());
    let (p50, _) = select(&mut values[..rest], 50.0, distances.len());
    ErrorSummary { mean: sum / count, rmse: (squares / count).sqrt(), p50, p95, p99, max }
}

/// A percentile of `whole` values of which the lowest are given in any order, and how many lie at or below its
/// ranks. As [`percentile`], in linear time.
fn select(values: &mut [f32], percent: f64, whole: usize) -> (f64, usize) {
    if values.is_empty() {
        return (0.0, 0);
    }
    let place = percent / 100.0 * (whole - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(values.len() - 1);
    let (_, b, _) = values.select_nth_unstable_by(above, f32::total_cmp);
    let b = f64::from(*b);
    let a = values[..above].iter().copied().max_by(f32::total_cmp).map_or(b, f64::from);
    let a = if below == above { b } else { a };
    (a + (b - a) * (place - below as f64), above + 1)
}

/// The percentile of ascending values, linear between ranks as NumPy does; 0 for an empty list.
pub fn percentile(sorted: &[f32], percent: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let place = (percent / 100.0).clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (a, b) = (f64::from(sorted[below]), f64::from(sorted[above]));
    a + (b - a) * (place - below as f64)
}

/// The enveloping error (body-twin paper, eq. 2.9):
/// `EE = 100 · sqrt( Σ_i Σ_k ‖v_k^i − v̂_k^i‖² / Σ_i Σ_k ‖v_k^i − c(v_k⁰)‖² )`, both sums over the poses that are
/// measured. The numerator is summed by [`squared_distance`], the denominator is [`BestBones::squared`]: 100 is as
/// good as the best rigid skinning of these poses, lower is better. 0 when both sums are zero, infinite when only
/// the rigid one is.
pub fn enveloping_error(squared: f64, rigid_squared: f64) -> f64 {
    if squared == 0.0 { 0.0 } else { 100.0 * (squared / rigid_squared).sqrt() }
}

/// The single best bone of every vertex over some poses, and what rigid skinning by it leaves there.
#[derive(Debug, Clone, PartialEq)]
pub struct BestBones {
    /// `b_k = argmin_j Σ_i ‖v_k^i − c_j(v_k⁰)‖²`, `[V]`; the first of equals.
    pub bones: Vec<usize>,
    /// `Σ_k Σ_i ‖v_k^i − c_{b_k}(v_k⁰)‖²`, cm².
    pub squared: f64,
}

/// Finds them. `c_j` (eq. 2.10) moves a rest vertex rigidly with bone `j`; `poses` are skinning matrices `[J]` (the
/// inverse bind included) and vertices `[V]` of each pose.
///
/// The result is that of trying every bone on every pose, but most bones are told by a few poses: all are ranked
/// there first, and a bone is given up as soon as its sum exceeds the best whole one.
///
/// # Panics
/// When poses have unequal numbers of bones, or other vertices than `rest`.
pub fn best_bones<M: AsRef<[Affine3A]>, V: AsRef<[Vec3]>>(rest: &[Vec3], poses: &[(M, V)]) -> BestBones {
    // Poses that rank the bones, spread over all.
    const FIRST: usize = 8;
    let count = poses.first().map_or(0, |(matrices, _)| matrices.as_ref().len());
    let stride = poses.len().div_ceil(FIRST).max(1);
    let (first, others): (Vec<usize>, Vec<usize>) = (0..poses.len()).partition(|pose| pose % stride == 0);
    let miss = |vertex: usize, bone: usize, pose: &usize| {
        let (matrices, vertices) = &poses[*pose];
        let moved = matrices.as_ref()[bone].transform_point3(rest[vertex]);
        f64::from(moved.distance_squared(vertices.as_ref()[vertex]))
    };
    let mut out = BestBones { bones: Vec::with_capacity(rest.len()), squared: 0.0 };
    let mut ranked: Vec<(f64, usize)> = Vec::with_capacity(count);
    for vertex in 0..rest.len() {
        ranked.clear();
        ranked.extend((0..count).map(|bone| (first.iter().map(|pose| miss(vertex, bone, pose)).sum(), bone)));
        ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut best = (f64::INFINITY, 0);
        for (begun, bone) in &ranked {
            let mut sum = *begun;
            for pose in &others {
                if sum > best.0 {
                    break;
                }
                sum += miss(vertex, *bone, pose);
            }
            if sum < best.0 || (sum == best.0 && *bone < best.1) {
                best = (sum, *bone);
            }
        }
        out.bones.push(best.1);
        // Which bone is best single precision tells; the sum over all vertices is kept exactly.
        let exact = |(matrices, vertices): &(M, V)| {
            let moved = exactly_moved(&matrices.as_ref()[best.1], rest[vertex]);
            moved.distance_squared(vertices.as_ref()[vertex].as_dvec3())
        };
        out.squared += if count == 0 { 0.0 } else { poses.iter().map(exact).sum() };
    }
    out
}

/// A point moved in double precision.
fn exactly_moved(matrix: &Affine3A, point: Vec3) -> DVec3 {
    let [x, y, z] = [matrix.matrix3.x_axis, matrix.matrix3.y_axis, matrix.matrix3.z_axis];
    let [x, y, z, t] = [x, y, z, matrix.translation].map(|column| Vec3::from(column).as_dvec3());
    let point = point.as_dvec3();
    x * point.x + y * point.y + z * point.z + t
}

/// `Σ ‖a_i − b_i‖²`, in double precision.
///
/// # Panics
/// When the lengths differ.
pub fn squared_distance(a: &[Vec3], b: &[Vec3]) -> f64 {
    assert_eq!(a.len(), b.len(), "vertices come in pairs");
    a.iter().zip(b).map(|(a, b)| a.as_dvec3().distance_squared(b.as_dvec3())).sum()
}

/// Angle between face normals, degrees a face (face-twin paper, eq. 3.6); 0 where either has no area.
pub fn normal_angles(faces: &[Face], truth: &[Vec3], approximation: &[Vec3]) -> Vec<f32> {
    let angle = |(a, b): (&Vec3, &Vec3)| {
        if *a == Vec3::ZERO || *b == Vec3::ZERO {
            return 0.0;
        }
        // The arcsine of the cross product keeps small angles, which the arccosine rounds away.
        a.cross(*b).length().atan2(a.dot(*b)).to_degrees()
    };
    let (a, b) = (face_normals(faces, truth), face_normals(faces, approximation));
    a.iter().zip(&b).map(angle).collect()
}

/// Roughness of a weight curve, `Σ_t (w_{t−1} − 2 w_t + w_{t+1})²` (inverse-rig paper, eq. 16).
pub fn roughness(curve: &[f32]) -> f64 {
    let second = |w: &[f32]| f64::from(w[0]) - 2.0 * f64::from(w[1]) + f64::from(w[2]);
    curve.windows(3).map(|w| second(w).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use glam::Quat;

    #[test]
    fn summary_of_known_numbers() {
        let summary = summarise(&[3.0, 1.0, 2.0, 4.0, 0.0]);
        assert_eq!((summary.mean, summary.p50, summary.max), (2.0, 2.0, 4.0));
        assert!((summary.rmse - 6.0f64.sqrt()).abs() < 1e-12);
        assert!((summary.p95 - 3.8).abs() < 1e-12);
        assert_eq!(summarise(&[]).max, 0.0);
    }

    #[test]
    fn percentiles_are_those_of_sorted_values() {
        let mut random = Random::new(3);
        for count in [1, 2, 3, 20, 21, 99, 100, 101, 1000] {
            let values: Vec<f32> = (0..count).map(|_| random.uniform(0.0, 9.0).round()).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f32::total_cmp);
            let summary = summarise(&values);
            for (found, percent) in [(summary.p50, 50.0), (summary.p95, 95.0), (summary.p99, 99.0)] {
                let want = percentile(&sorted, percent);
                assert!((found - want).abs() < 1e-12, "{percent} % of {count}: {found} {want}");
            }
        }
    }

    /// Bones at random, and vertices that follow one of them with noise.
    fn noisy_poses(seed: u64, bones: usize, vertices: usize, poses: usize) -> (Vec<Vec3>, RandomPoses) {
        let mut random = Random::new(seed);
        let mut point = |scale: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-scale, scale)));
        let rest: Vec<Vec3> = (0..vertices).map(|_| point(50.0)).collect();
        let pose = |_| {
            let turn = |p: Vec3| Affine3A::from_rotation_translation(Quat::from_scaled_axis(p * 0.05), p);
            let matrices: Vec<Affine3A> = (0..bones).map(|_| turn(point(20.0))).collect();
            let follow = |(k, v): (usize, &Vec3)| matrices[k % bones].transform_point3(*v) + point(15.0);
            let moved = rest.iter().enumerate().map(follow).collect();
            (matrices, moved)
        };
        let poses = (0..poses).map(pose).collect();
        (rest, poses)
    }

    type RandomPoses = Vec<(Vec<Affine3A>, Vec<Vec3>)>;

    #[test]
    fn the_best_bones_and_the_enveloping_error_are_those_of_the_definition() {
        for (seed, poses) in [(1, 0), (2, 1), (3, 5), (4, 8), (5, 9), (6, 40)] {
            let (rest, poses) = noisy_poses(seed, 12, 60, poses);
            let fast = best_bones(&rest, &poses);
            let plain = understudy_testkit::enveloping::best_bones(&rest, &poses);
            assert_eq!(fast.bones, plain, "{} poses", poses.len());
            let still: Vec<Vec<Vec3>> = poses.iter().map(|_| rest.clone()).collect();
            let squared: f64 = poses.iter().map(|(_, truth)| squared_distance(truth, &rest)).sum();
            let ours = enveloping_error(squared, fast.squared);
            let expected = understudy_testkit::enveloping::enveloping_error(&rest, &poses, &still);
            assert!((ours - expected).abs() <= 1e-6 * expected, "{ours} {expected}");
        }
    }

    #[test]
    fn no_choice_of_single_bones_is_below_a_hundred() {
        let (rest, poses) = noisy_poses(7, 5, 20, 30);
        let best = best_bones(&rest, &poses);
        let error = |bones: &[usize]| {
            let rigid = |matrices: &[Affine3A]| -> Vec<Vec3> {
                rest.iter().zip(bones).map(|(v, bone)| matrices[*bone].transform_point3(*v)).collect()
            };
            let squared = poses.iter().map(|(m, truth)| squared_distance(truth, &rigid(m))).sum();
            enveloping_error(squared, best.squared)
        };
        // Vertices are moved in single precision here, in double precision there.
        assert!((error(&best.bones) - 100.0).abs() < 1e-4);
        let mut other = best.bones.clone();
        for vertex in 0..rest.len() {
            other[vertex] = (other[vertex] + 1) % 5;
            assert!(error(&other) > 100.0);
        }
        assert_eq!(enveloping_error(0.0, 0.0), 0.0);
        assert_eq!(enveloping_error(1.0, 0.0), f64::INFINITY);
    }

    #[test]
    fn normals_and_roughness() {
        let flat = [Vec3::ZERO, Vec3::X, Vec3::Y];
        let tilted = [Vec3::ZERO, Vec3::X, Vec3::new(0.0, 1.0, 1.0)];
        let angles = normal_angles(&[Face::triangle(0, 1, 2)], &flat, &tilted);
        assert!((angles[0] - 45.0).abs() < 1e-4);
        assert_eq!(roughness(&[0.0, 1.0, 2.0, 3.0]), 0.0);
        assert_eq!(roughness(&[0.0, 1.0, 0.0]), 4.0);
    }
}
