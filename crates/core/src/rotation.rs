//! Singular values of 3×3 matrices and the rotation or rigid motion that fits two point sets best.

use glam::{DMat3, DVec3, Vec3};

/// `A = U Σ Vᵀ` with orthogonal `U`, `V` and descending, non-negative `Σ`.
#[derive(Debug, Clone, Copy)]
pub struct Svd3 {
    /// Left vectors as columns.
    pub u: DMat3,
    /// Descending, ≥ 0.
    pub sigma: DVec3,
    /// Right vectors as columns.
    pub v: DMat3,
}

/// One-sided Jacobi: rotates the columns of `A` until they are orthogonal. Unlike the eigenvectors of
/// `AᵀA` it keeps small singular values accurate, and it converges for every finite matrix.
pub fn svd3(a: DMat3) -> Svd3 {
    let mut work = [a.x_axis, a.y_axis, a.z_axis];
    let mut v = [DVec3::X, DVec3::Y, DVec3::Z];
    for _sweep in 0..30 {
        let mut off = 0.0f64;
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            let (alpha, beta) = (work[p].length_squared(), work[q].length_squared());
            let gamma = work[p].dot(work[q]);
            if gamma == 0.0 || gamma.abs() <= 1e-15 * (alpha * beta).sqrt() {
                continue;
            }
            off = off.max(gamma.abs() / (alpha * beta).sqrt());
            let zeta = (beta - alpha) / (2.0 * gamma);
            let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
            let c = 1.0 / (1.0 + t * t).sqrt();
            let s = c * t;
            for columns in [&mut work, &mut v] {
                let (old_p, old_q) = (columns[p], columns[q]);
                columns[p] = c * old_p - s * old_q;
                columns[q] = s * old_p + c * old_q;
            }
        }
        if off < 1e-15 {
            break;
        }
    }
    let mut order = [0, 1, 2];
    order.sort_by(|&i, &j| work[j].length_squared().total_cmp(&work[i].length_squared()));
    let work = order.map(|i| work[i]);
    let v = order.map(|i| v[i]);
    let sigma = DVec3::new(work[0].length(), work[1].length(), work[2].length());
    // A column without length has no direction of its own: complete the basis.
    let tiny = sigma.x * 1e-14;
    let u0 = if sigma.x > 0.0 { work[0] / sigma.x } else { DVec3::X };
    let u1 = if sigma.y > tiny { (work[1] / sigma.y).normalize() } else { u0.any_orthonormal_vector() };
    let u2 = if sigma.z > tiny { (work[2] / sigma.z).normalize() } else { u0.cross(u1) };
    Svd3 { u: DMat3::from_cols(u0, u1, u2), sigma, v: DMat3::from_cols(v[0], v[1], v[2]) }
}

/// The rotation `R` that maximises `tr(R S)` for the covariance `S = Σ w a bᵀ` (from `a` to `b`):
/// `R = V diag(1, 1, det(V Uᵀ)) Uᵀ`. The determinant fix makes it a rotation even where the best
/// orthogonal matrix is a reflection.
pub fn best_rotation(covariance: DMat3) -> DMat3 {
    let Svd3 { u, v, .. } = svd3(covariance);
    let sign = if (v * u.transpose()).determinant() < 0.0 { -1.0 } else { 1.0 };
    v * DMat3::from_diagonal(DVec3::new(1.0, 1.0, sign)) * u.transpose()
}

/// A rotation and a translation, `x ↦ R x + t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RigidMotion {
    /// Rotation.
    pub rotation: DMat3,
    /// cm.
    pub translation: DVec3,
}

impl RigidMotion {
    /// Moves a point.
    pub fn apply(&self, point: Vec3) -> Vec3 {
        (self.rotation * point.as_dvec3() + self.translation).as_vec3()
    }
}

/// The rigid motion that minimises `Σ ‖R a_i + t − b_i‖²`. Empty input gives the identity.
///
/// # Panics
/// When the two sets differ in length.
pub fn fit_rigid(from: &[Vec3], to: &[Vec3]) -> RigidMotion {
    fit_rigid_weighted(from, to, |_| 1.0)
}

/// The rigid motion that minimises `Σ ω_i ‖R a_i + t − b_i‖²`. Points of weight 0 may be anything, NaN
/// included; where no weight is left it is the identity.
///
/// # Panics
/// When the two sets differ in length.
pub fn fit_rigid_weighted(from: &[Vec3], to: &[Vec3], weight: impl Fn(usize) -> f64) -> RigidMotion {
    assert_eq!(from.len(), to.len(), "points come in pairs");
    let pairs = || {
        let pair = |i: usize| (weight(i), from[i].as_dvec3(), to[i].as_dvec3());
        (0..from.len()).map(pair).filter(|(weight, ..)| *weight > 0.0)
    };
    let (mut total, mut ca, mut cb) = (0.0, DVec3::ZERO, DVec3::ZERO);
    for (weight, a, b) in pairs() {
        total += weight;
        ca += a * weight;
        cb += b * weight;
    }
    if total == 0.0 {
        return RigidMotion { rotation: DMat3::IDENTITY, translation: DVec3::ZERO };
    }
    (ca, cb) = (ca / total, cb / total);
    let mut covariance = DMat3::ZERO;
    for (weight, a, b) in pairs() {
        let (a, b) = ((a - ca) * weight, b - cb);
        covariance += DMat3::from_cols(a * b.x, a * b.y, a * b.z);
    }
    let rotation = best_rotation(covariance);
    RigidMotion { rotation, translation: cb - rotation * ca }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{DQuat, EulerRot};
    use proptest::prelude::*;

    fn close(a: DMat3, b: DMat3, tolerance: f64) -> bool {
        a.abs_diff_eq(b, tolerance)
    }

    proptest! {
        #[test]
        fn decomposition_multiplies_back(m in prop::array::uniform9(-10.0f64..10.0), rank in 0usize..4) {
            let mut a = DMat3::from_cols_array(&m);
            if rank < 3 { a.z_axis = a.x_axis * 0.5; }
            if rank < 2 { a.y_axis = a.x_axis * -2.0; }
            if rank < 1 { a = DMat3::ZERO; }
            let Svd3 { u, sigma, v } = svd3(a);
            prop_assert!(close(u * DMat3::from_diagonal(sigma) * v.transpose(), a, 1e-11));
            prop_assert!(close(u * u.transpose(), DMat3::IDENTITY, 1e-11));
            prop_assert!(close(v * v.transpose(), DMat3::IDENTITY, 1e-11));
            prop_assert!(sigma.x >= sigma.y && sigma.y >= sigma.z && sigma.z >= 0.0);
        }

        #[test]
        fn fit_finds_the_motion(x in -3.0f64..3.0, y in -1.5f64..1.5, z in -3.0f64..3.0, t in -50.0f32..50.0) {
            let rotation = DMat3::from_quat(DQuat::from_euler(EulerRot::XYZ, x, y, z));
            let truth = RigidMotion { rotation, translation: DVec3::new(1.0, f64::from(t), -3.0) };
            // Planar points: the covariance has rank 2, where a reflection fits as well as a rotation.
            let from: Vec<Vec3> = (0..6).map(|i| Vec3::new(i as f32, (i * i) as f32 * 0.3, 0.0)).collect();
            let to: Vec<Vec3> = from.iter().map(|p| truth.apply(*p)).collect();
            let fit = fit_rigid(&from, &to);
            prop_assert!((fit.rotation.determinant() - 1.0).abs() < 1e-9);
            for (a, b) in from.iter().zip(&to) {
                prop_assert!((fit.apply(*a) - *b).length() < 1e-4);
            }
        }
    }

    #[test]
    fn points_without_weight_do_not_count() {
        let motion =
            RigidMotion { rotation: DMat3::from_rotation_z(0.7), translation: DVec3::new(1.0, 2.0, 3.0) };
        let from = [Vec3::X, Vec3::Y, Vec3::Z, Vec3::ONE, Vec3::NAN];
        let mut to = from.map(|p| motion.apply(p));
        to[3] = Vec3::splat(50.0);
        let fit = fit_rigid_weighted(&from, &to, |i| if i < 3 { 0.5 } else { 0.0 });
        assert!(from[..4].iter().all(|p| (fit.apply(*p) - motion.apply(*p)).length() < 1e-5));
        let none = fit_rigid_weighted(&from, &to, |_| 0.0);
        assert_eq!(none.apply(Vec3::ONE), Vec3::ONE);
        assert_eq!(fit_rigid(&[], &[]), none);
    }

    #[test]
    fn a_mirror_image_still_gives_a_rotation() {
        let from = [Vec3::X, Vec3::Y, Vec3::Z, Vec3::ONE];
        let to = from.map(|p| Vec3::new(-p.x, p.y, p.z));
        assert!((fit_rigid(&from, &to).rotation.determinant() - 1.0).abs() < 1e-9);
    }
}
