//! Rigid motions fitted to points: what moves teeth along with the flesh around them, and its derivative.
//! Rotations are found in f64: a tooth must stay a tooth to a thousandth of a millimetre.

use understudy_core::{DMat3, DQuat, DVec3, Vec3};

/// `v ↦ R (v − from) + to`, the rigid motion that carries points at rest to where they are now with the
/// least sum of squares (face-twin paper, eq. 3.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RigidFit {
    /// The rotation.
    pub rotation: DMat3,
    /// Middle of the points at rest.
    pub from: DVec3,
    /// Middle of the points now.
    pub to: DVec3,
    /// `Rᵀ M` with the covariance `M`, symmetric: what the derivative needs.
    stretch: DMat3,
}

/// Sweeps of Jacobi rotations over a 4×4 matrix; it is diagonal to rounding after five or six.
const SWEEPS: usize = 12;

impl RigidFit {
    /// Fits; without points, the identity.
    pub fn new(rest: &[Vec3], now: &[Vec3]) -> Self {
        let count = rest.len().min(now.len()).max(1) as f64;
        let middle = |points: &[Vec3]| points.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / count;
        let (from, to) = (middle(rest), middle(now));
        let mut covariance = DMat3::ZERO;
        for (rest, now) in rest.iter().zip(now) {
            let (a, b) = (rest.as_dvec3() - from, now.as_dvec3() - to);
            covariance += DMat3::from_cols(b * a.x, b * a.y, b * a.z);
        }
        let rotation = nearest_rotation(&covariance);
        Self { rotation, from, to, stretch: rotation.transpose() * covariance }
    }

    /// Moves a point.
    pub fn apply(&self, point: Vec3) -> Vec3 {
        (self.rotation * (point.as_dvec3() - self.from) + self.to).as_vec3()
    }

    /// The derivative by the points that were fitted, from `by_rotation` and `by_to`: adds to `out`.
    ///
    /// With `M = R S`, a change `dM` turns `R` by `ω` with `(tr S · 1 − S) ω = axial(RᵀdM − dMᵀR)`; so
    /// `∂/∂M = R [b]×` with `(tr S · 1 − S) b = axial(Rᵀ ∂/∂R)`. Points that leave the rotation open (all
    /// in one line) get no derivative through it.
    pub fn backward(&self, rest: &[Vec3], by_rotation: &DMat3, by_to: DVec3, out: &mut [DVec3]) {
        let trace = self.stretch.x_axis.x + self.stretch.y_axis.y + self.stretch.z_axis.z;
        let system = DMat3::from_diagonal(DVec3::splat(trace)) - self.stretch;
        let a = self.rotation.transpose() * *by_rotation;
        // glam's axes are columns: x_axis.z is row 3 of column 1.
        let axial = DVec3::new(a.y_axis.z - a.z_axis.y, a.z_axis.x - a.x_axis.z, a.x_axis.y - a.y_axis.x);
        let size = trace.abs().max(f64::MIN_POSITIVE);
        let open = system.determinant().abs() < 1e-9 * size.powi(3);
        let b = if open { DVec3::ZERO } else { system.inverse() * axial };
        let skew = DMat3::from_cols(
            DVec3::new(0.0, b.z, -b.y),
            DVec3::new(-b.z, 0.0, b.x),
            DVec3::new(b.y, -b.x, 0.0),
        );
        let by_covariance = self.rotation * skew;
        let share = by_to / rest.len().max(1) as f64;
        for (slope, rest) in out.iter_mut().zip(rest) {
            *slope += by_covariance * (rest.as_dvec3() - self.from) + share;
        }
    }
}

/// The rotation `R` with the largest `tr(Rᵀ M)`, by Horn's quaternion (1987): the eigenvector of the
/// largest eigenvalue of a symmetric 4×4 matrix, by hand because the run time links no linear algebra. Never a
/// reflection.
pub fn nearest_rotation(m: &DMat3) -> DMat3 {
    let scale = m.to_cols_array().iter().fold(0.0f64, |most, v| most.max(v.abs()));
    if scale < 1e-150 {
        return DMat3::IDENTITY;
    }
    let m = *m * (1.0 / scale);
    let at = |row: usize, column: usize| m.col(column)[row];
    // Rows w, x, y, z; `at(i, j)` pairs coordinate i of the points now with j of the points at rest.
    let (xx, yy, zz) = (at(0, 0), at(1, 1), at(2, 2));
    let mut n = [
        [xx + yy + zz, at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1)],
        [0.0, xx - yy - zz, at(0, 1) + at(1, 0), at(0, 2) + at(2, 0)],
        [0.0, 0.0, yy - xx - zz, at(1, 2) + at(2, 1)],
        [0.0, 0.0, 0.0, zz - xx - yy],
    ];
    for row in 0..4 {
        for column in 0..row {
            n[row][column] = n[column][row];
        }
    }
    let mut vectors = [[0.0f64; 4]; 4];
    (0..4).for_each(|k| vectors[k][k] = 1.0);
    for _ in 0..SWEEPS {
        let off: f64 =
            (0..4).flat_map(|p| (p + 1..4).map(move |q| (p, q))).map(|(p, q)| n[p][q].powi(2)).sum();
        if off < 1e-30 {
            break;
        }
        for p in 0..3 {
            for q in p + 1..4 {
                jacobi(&mut n, &mut vectors, p, q);
            }
        }
    }
    let mut best = 0;
    for k in 1..4 {
        if n[k][k] > n[best][best] {
            best = k;
        }
    }
    let q = |row: usize| vectors[row][best];
    DMat3::from_quat(DQuat::from_xyzw(q(1), q(2), q(3), q(0)).normalize())
}

/// Makes `n[p][q]` zero by a rotation of rows and columns `p` and `q`.
fn jacobi(n: &mut [[f64; 4]; 4], vectors: &mut [[f64; 4]; 4], p: usize, q: usize) {
    if n[p][q].abs() < 1e-300 {
        return;
    }
    let theta = (n[q][q] - n[p][p]) / (2.0 * n[p][q]);
    let t = 1.0f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
    let c = t.hypot(1.0).recip();
    let s = t * c;
    for k in 0..4 {
        let (a, b) = (n[k][p], n[k][q]);
        n[k][p] = c * a - s * b;
        n[k][q] = s * a + c * b;
    }
    for k in 0..4 {
        let (a, b) = (n[p][k], n[q][k]);
        n[p][k] = c * a - s * b;
        n[q][k] = s * a + c * b;
        let (a, b) = (vectors[k][p], vectors[k][q]);
        vectors[k][p] = c * a - s * b;
        vectors[k][q] = s * a + c * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use understudy_core::{Quat, Random};
    use understudy_testkit::gradient::directional_miss;

    fn cloud(random: &mut Random, count: usize) -> Vec<Vec3> {
        (0..count).map(|_| Vec3::from_array([0; 3].map(|_| random.uniform(-3.0, 3.0)))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]
        #[test]
        fn a_rigid_motion_is_found_again(seed in 0u64..500, count in 3usize..12) {
            let mut random = Random::new(seed);
            let rest = cloud(&mut random, count);
            let axis = cloud(&mut random, 1)[0];
            let (turn, shift) = (Quat::from_scaled_axis(axis), cloud(&mut random, 1)[0] * 20.0);
            let now: Vec<Vec3> = rest.iter().map(|p| turn * *p + shift).collect();
            let fit = RigidFit::new(&rest, &now);
            for (rest, now) in rest.iter().zip(&now) {
                prop_assert!(fit.apply(*rest).distance(*now) < 1e-4);
            }
            prop_assert!((fit.rotation.determinant() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn mirrored_and_flat_points_still_give_a_rotation() {
        let rest = [Vec3::X, Vec3::Y, Vec3::Z, -Vec3::ONE];
        let mirrored = rest.map(|p| Vec3::new(-p.x, p.y, p.z));
        for (a, b) in
            [(&rest[..], &mirrored[..]), (&rest[..2], &rest[2..]), (&rest[..1], &rest[1..2]), (&[], &[])]
        {
            let fit = RigidFit::new(a, b);
            assert!((fit.rotation.determinant() - 1.0).abs() < 1e-9);
            let unit = fit.rotation * fit.rotation.transpose() - DMat3::IDENTITY;
            assert!(unit.to_cols_array().iter().all(|v| v.abs() < 1e-9));
        }
    }

    #[test]
    fn the_derivative_meets_the_checker() {
        let mut random = Random::new(4);
        let rest = cloud(&mut random, 10);
        let carried = cloud(&mut random, 7);
        let wanted = cloud(&mut random, 7);
        let turn = Quat::from_scaled_axis(Vec3::new(0.4, -0.7, 0.2));
        let now: Vec<f64> = rest
            .iter()
            .flat_map(|p| (turn * *p + cloud(&mut random, 1)[0] * 0.2).as_dvec3().to_array())
            .collect();
        // f64 throughout: the fit takes f32 points, so the cost is written down with its parts.
        let cost = |x: &[f64]| -> f64 {
            let points: Vec<DVec3> = x.chunks_exact(3).map(DVec3::from_slice).collect();
            let from = rest.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / 10.0;
            let to = points.iter().sum::<DVec3>() / 10.0;
            let mut m = DMat3::ZERO;
            for (a, b) in rest.iter().zip(&points) {
                let (a, b) = (a.as_dvec3() - from, *b - to);
                m += DMat3::from_cols(b * a.x, b * a.y, b * a.z);
            }
            let r = nearest_rotation(&m);
            let miss =
                |(p, w): (&Vec3, &Vec3)| (r * (p.as_dvec3() - from) + to - w.as_dvec3()).length_squared();
            carried.iter().zip(&wanted).map(miss).sum::<f64>() * 0.5
        };
        let points: Vec<Vec3> = now.chunks_exact(3).map(|p| DVec3::from_slice(p).as_vec3()).collect();
        let fit = RigidFit::new(&rest, &points);
        let (mut by_rotation, mut by_to) = (DMat3::ZERO, DVec3::ZERO);
        for (p, w) in carried.iter().zip(&wanted) {
            let local = p.as_dvec3() - fit.from;
            let slope = fit.rotation * local + fit.to - w.as_dvec3();
            by_to += slope;
            by_rotation += DMat3::from_cols(slope * local.x, slope * local.y, slope * local.z);
        }
        let mut gradient = vec![DVec3::ZERO; 10];
        fit.backward(&rest, &by_rotation, by_to, &mut gradient);
        let gradient: Vec<f64> = gradient.iter().flat_map(|g| g.to_array()).collect();
        let at: Vec<f64> = points.iter().flat_map(|p| p.as_dvec3().to_array()).collect();
        let miss = directional_miss(cost, &at, &gradient, 1e-5, 30, 1);
        assert!(miss < 1e-6, "{miss}");
    }
}
