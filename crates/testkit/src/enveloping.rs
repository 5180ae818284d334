//! The enveloping error straight from its definition, slow and in f64: what `core::metrics` is held to.

use understudy_core::{Affine3A, DVec3, Vec3, Vec3A};

/// Skinning matrices (inverse bind included) and true vertices of each pose.
type Poses = [(Vec<Affine3A>, Vec<Vec3>)];

/// `c_j(v⁰)` (2.10), the matrix product written out.
fn moved(matrix: &Affine3A, point: Vec3) -> DVec3 {
    let [x, y, z] = [matrix.matrix3.x_axis, matrix.matrix3.y_axis, matrix.matrix3.z_axis];
    let exact = |column: Vec3A| Vec3::from(column).as_dvec3();
    let p = point.as_dvec3();
    exact(x) * p.x + exact(y) * p.y + exact(z) * p.z + exact(matrix.translation)
}

/// `Σ_i ‖v_k^i − c_j(v_k⁰)‖²` of one vertex and one bone.
fn squared(rest: &[Vec3], poses: &Poses, vertex: usize, bone: usize) -> f64 {
    let mut sum = 0.0;
    for (matrices, truth) in poses {
        let miss = truth[vertex].as_dvec3() - moved(&matrices[bone], rest[vertex]);
        sum += miss.length_squared();
    }
    sum
}

/// The bone that explains each vertex best over the poses; the first of equals.
pub fn best_bones(rest: &[Vec3], poses: &Poses) -> Vec<usize> {
    let bones = poses.first().map_or(0, |(matrices, _)| matrices.len());
    let mut out = Vec::new();
    for vertex in 0..rest.len() {
        let mut best = 0;
        for bone in 1..bones {
            if squared(rest, poses, vertex, bone) < squared(rest, poses, vertex, best) {
                best = bone;
            }
        }
        out.push(best);
    }
    out
}

/// Equations (2.9) and (2.10) of the body-twin paper; `approximations` `[poses][V]`.
pub fn enveloping_error(rest: &[Vec3], poses: &Poses, approximations: &[Vec<Vec3>]) -> f64 {
    let (mut above, mut below) = (0.0, 0.0);
    for ((_, truth), approximation) in poses.iter().zip(approximations) {
        for (v, other) in truth.iter().zip(approximation) {
            above += (v.as_dvec3() - other.as_dvec3()).length_squared();
        }
    }
    for (vertex, bone) in best_bones(rest, poses).into_iter().enumerate() {
        below += if poses.is_empty() { 0.0 } else { squared(rest, poses, vertex, bone) };
    }
    if above == 0.0 { 0.0 } else { 100.0 * (above / below).sqrt() }
}
