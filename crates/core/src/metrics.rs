//! How far a deformation is from the truth. Lengths keep their unit (cm); angles are degrees.

use crate::mesh::Face;
use crate::normals::face_normals;
use glam::{Affine3A, Vec3};

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
    let mut sorted = distances.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let count = sorted.len().max(1) as f64;
    let sum: f64 = sorted.iter().map(|d| f64::from(*d)).sum();
    let squares: f64 = sorted.iter().map(|d| f64::from(*d).powi(2)).sum();
    ErrorSummary {
        mean: sum / count,
        rmse: (squares / count).sqrt(),
        p50: percentile(&sorted, 50.0),
        p95: percentile(&sorted, 95.0),
        p99: percentile(&sorted, 99.0),
        max: sorted.last().map_or(0.0, |d| f64::from(*d)),
    }
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
/// `EE = 100 · sqrt( Σ‖v − v̂‖² / Σ‖v − c(v⁰)‖² )`, where `c` moves each rest vertex rigidly with the
/// single bone that explains it best. 100 is as good as rigid skinning; lower is better.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EnvelopingError {
    error: f64,
    rigid: f64,
}

impl EnvelopingError {
    /// Adds one pose: the truth, the approximation and the rigidly skinned vertices.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn add(&mut self, truth: &[Vec3], approximation: &[Vec3], rigid: &[Vec3]) {
        self.error += squared_distance(truth, approximation);
        self.rigid += squared_distance(truth, rigid);
    }

    /// The error so far; 0 when both sums are zero, infinite when only the rigid one is.
    pub fn value(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { 100.0 * (self.error / self.rigid).sqrt() }
    }
}

/// For every vertex the one bone whose rigid motion explains it best over all poses (M1):
/// `argmin_j Σ_i ‖v_k^i − M_j^i v_k^0‖²`. `poses`: skinning matrices and vertices of each pose.
pub fn best_bone_per_vertex(rest: &[Vec3], poses: &[(Vec<Affine3A>, Vec<Vec3>)]) -> Vec<usize> {
    let bones = poses.first().map_or(0, |(matrices, _)| matrices.len());
    let cost = |vertex: usize, bone: usize| -> f64 {
        let miss = |(matrices, vertices): &(Vec<Affine3A>, Vec<Vec3>)| {
            f64::from(matrices[bone].transform_point3(rest[vertex]).distance_squared(vertices[vertex]))
        };
        poses.iter().map(miss).sum()
    };
    let best = |vertex: usize| {
        (0..bones)
            .map(|bone| (cost(vertex, bone), bone))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(0, |(_, b)| b)
    };
    (0..rest.len()).map(best).collect()
}

fn squared_distance(a: &[Vec3], b: &[Vec3]) -> f64 {
    assert_eq!(a.len(), b.len(), "vertices come in pairs");
    a.iter().zip(b).map(|(a, b)| f64::from(a.distance_squared(*b))).sum()
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

    #[test]
    fn summary_of_known_numbers() {
        let summary = summarise(&[3.0, 1.0, 2.0, 4.0, 0.0]);
        assert_eq!((summary.mean, summary.p50, summary.max), (2.0, 2.0, 4.0));
        assert!((summary.rmse - 6.0f64.sqrt()).abs() < 1e-12);
        assert!((summary.p95 - 3.8).abs() < 1e-12);
        assert_eq!(summarise(&[]).max, 0.0);
    }

    #[test]
    fn enveloping_error_of_rigid_skinning_is_a_hundred() {
        let (truth, rigid) = ([Vec3::X, Vec3::Y], [Vec3::ZERO, Vec3::Z]);
        let mut error = EnvelopingError::default();
        error.add(&truth, &rigid, &rigid);
        assert!((error.value() - 100.0).abs() < 1e-12);
        let mut none = EnvelopingError::default();
        none.add(&truth, &truth, &rigid);
        assert_eq!(none.value(), 0.0);
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

    #[test]
    fn the_right_bone_is_found() {
        let rest = [Vec3::X, Vec3::Y];
        let (a, b) = (Affine3A::from_translation(Vec3::Z), Affine3A::from_rotation_z(1.0));
        let moved = vec![b.transform_point3(rest[0]), a.transform_point3(rest[1])];
        assert_eq!(best_bone_per_vertex(&rest, &[(vec![a, b], moved)]), [1, 0]);
    }
}
