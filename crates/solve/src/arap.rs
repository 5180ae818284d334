//! As-rigid-as-possible deformation of a whole mesh (Sorkine and Alexa 2007): some vertices are put somewhere, the others follow so
//! that the neighbourhood of every vertex turns rather than stretches. It is the slow, exact relative of `runtime::drag`.
//!
//! `E = Σ_i Σ_{j ∈ N(i)} w̃_ij ‖(p'_i − p'_j) − R_i (p_i − p_j)‖²`, `w̃` cotangent weights of the rest mesh. Rotations and
//! vertices take turns; neither raises `E`. The factor of the free vertices is made once, in [`Arap::new`].

use rayon::prelude::*;
use thiserror::Error;
use understudy_core::laplacian::{SparseRows, cotangent_laplacian};
use understudy_core::rotation::best_rotation;
use understudy_core::sparse_cholesky::SparseCholesky;
use understudy_core::{DMat3, DQuat, DVec3, Mesh, Vec3};

/// Turns of a rotation towards the best one per iteration; from one iteration to the next they are small.
const TURNS: usize = 3;
/// A turn smaller than this (sine of it) is the last.
const SMALLEST: f64 = 1e-9;
/// Where the first estimate is farther than this (sine), it is found by singular values.
const FAR: f64 = 0.5;

/// Why nothing can be deformed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ArapError {
    /// A vertex that does not exist, or one that is held twice.
    #[error("vertex {vertex} cannot be held: it is named twice, or there are only {count}")]
    Vertex {
        /// The vertex.
        vertex: u32,
        /// How many exist.
        count: usize,
    },
    /// Nothing is held.
    #[error("no vertex is held")]
    Nothing,
    /// A part of the mesh hangs on nothing that is held, or has no area.
    #[error("a part of the mesh holds no vertex that is held, or has no area")]
    Loose,
    /// Positions of the wrong number, or not finite.
    #[error("{got} positions for {want} held vertices, or one is not finite")]
    Targets {
        /// Given.
        got: usize,
        /// Wanted.
        want: usize,
    },
}

/// A mesh that is ready to be deformed by some of its vertices.
#[derive(Clone)]
pub struct Arap {
    laplacian: SparseRows,
    rest: Vec<DVec3>,
    held: Vec<u32>,
    is_held: Vec<bool>,
    free: Vec<u32>,
    factor: Option<SparseCholesky>,
    rotations: Vec<DMat3>,
    positions: Vec<DVec3>,
}

impl Arap {
    /// Holds vertices; everything is at rest.
    pub fn new(mesh: &Mesh, held: &[u32]) -> Result<Self, ArapError> {
        let count = mesh.vertex_count();
        let mut is_held = vec![false; count];
        for &vertex in held {
            match is_held.get_mut(vertex as usize) {
                Some(is_held) if !*is_held => *is_held = true,
                _ => return Err(ArapError::Vertex { vertex, count }),
            }
        }
        if held.is_empty() {
            return Err(ArapError::Nothing);
        }
        let laplacian = cotangent_laplacian(mesh);
        let free: Vec<u32> = (0..count as u32).filter(|v| !is_held[*v as usize]).collect();
        let factor = match free.is_empty() {
            true => None,
            false => Some(SparseCholesky::new(&laplacian.principal(&free)).ok_or(ArapError::Loose)?),
        };
        let rest: Vec<DVec3> = mesh.positions().iter().map(|p| p.as_dvec3()).collect();
        Ok(Self {
            laplacian,
            positions: rest.clone(),
            rotations: vec![DMat3::IDENTITY; count],
            rest,
            held: held.to_vec(),
            is_held,
            free,
            factor,
        })
    }

    /// Puts held vertices at `targets` and iterates; goes on from where the last call ended.
    pub fn deform(&mut self, targets: &[Vec3], iterations: usize) -> Result<(), ArapError> {
        if targets.len() != self.held.len() || targets.iter().any(|target| !target.is_finite()) {
            return Err(ArapError::Targets { got: targets.len(), want: self.held.len() });
        }
        for (vertex, target) in self.held.iter().zip(targets) {
            self.positions[*vertex as usize] = target.as_dvec3();
        }
        for _ in 0..iterations {
            self.turn();
            self.place();
        }
        Ok(())
    }

    /// Starts again from other positions, such as those of another solver.
    ///
    /// # Panics
    /// When there is not one position per vertex.
    pub fn start_from(&mut self, positions: &[Vec3]) {
        assert_eq!(positions.len(), self.positions.len(), "one position per vertex");
        self.positions = positions.iter().map(|p| p.as_dvec3()).collect();
        self.rotations.fill(DMat3::IDENTITY);
    }

    /// The mesh as it is, cm.
    pub fn positions(&self) -> Vec<Vec3> {
        self.positions.iter().map(|p| p.as_vec3()).collect()
    }

    /// The energy of any positions, with the best rotations for them.
    pub fn energy(&self, positions: &[Vec3]) -> f64 {
        let positions: Vec<DVec3> = positions.iter().map(|p| p.as_dvec3()).collect();
        let of = |vertex: usize| -> f64 {
            let rotation = best_rotation(covariance(&self.laplacian, &self.rest, &positions, vertex));
            let edges = self.laplacian.row(vertex).filter(|(other, _)| *other != vertex);
            edges
                .map(|(other, value)| {
                    let rest = rotation * (self.rest[vertex] - self.rest[other]);
                    -value * (positions[vertex] - positions[other] - rest).length_squared()
                })
                .sum()
        };
        (0..positions.len()).into_par_iter().map(of).collect::<Vec<f64>>().iter().sum()
    }

    /// Local step: the best rotation of every neighbourhood.
    fn turn(&mut self) {
        let (laplacian, rest, positions) = (&self.laplacian, &self.rest, &self.positions);
        self.rotations.par_iter_mut().enumerate().with_min_len(256).for_each(|(vertex, rotation)| {
            *rotation = nearest(covariance(laplacian, rest, positions, vertex), *rotation);
        });
    }

    /// Global step: `Σ_j w̃ (p'_i − p'_j) = Σ_j w̃ ½ (R_i + R_j)(p_i − p_j)` for free vertices.
    fn place(&mut self) {
        let Some(factor) = &self.factor else { return };
        let m = self.free.len();
        let sums: Vec<DVec3> = self
            .free
            .par_iter()
            .with_min_len(256)
            .map(|vertex| {
                let vertex = *vertex as usize;
                let mut sum = DVec3::ZERO;
                for (other, value) in self.laplacian.row(vertex).filter(|(other, _)| *other != vertex) {
                    let edge = self.rest[vertex] - self.rest[other];
                    sum += (self.rotations[vertex] * edge + self.rotations[other] * edge) * (-0.5 * value);
                    if self.is_held[other] {
                        sum -= self.positions[other] * value;
                    }
                }
                sum
            })
            .collect();
        let mut right = vec![0.0; 3 * m];
        for (place, sum) in sums.iter().enumerate() {
            (0..3).for_each(|axis| right[axis * m + place] = sum[axis]);
        }
        factor.solve(&mut right);
        for (place, vertex) in self.free.iter().enumerate() {
            self.positions[*vertex as usize] =
                DVec3::new(right[place], right[m + place], right[2 * m + place]);
        }
    }
}

/// `Σ_j w̃ e e'ᵀ` of a vertex's edges, from rest to now.
fn covariance(laplacian: &SparseRows, rest: &[DVec3], now: &[DVec3], vertex: usize) -> DMat3 {
    let mut sum = DMat3::ZERO;
    for (other, value) in laplacian.row(vertex).filter(|(other, _)| *other != vertex) {
        let from = (rest[vertex] - rest[other]) * -value;
        let to = now[vertex] - now[other];
        sum += DMat3::from_cols(from * to.x, from * to.y, from * to.z);
    }
    sum
}

/// The rotation `R` that maximises `tr(R S)`, turned from a near one; by singular values where none is near.
fn nearest(covariance: DMat3, start: DMat3) -> DMat3 {
    // R S symmetric: columns of R follow those of Sᵀ.
    let a = covariance.transpose();
    let mut rotation = start;
    for turn in 0..TURNS {
        let torque = rotation.x_axis.cross(a.x_axis)
            + rotation.y_axis.cross(a.y_axis)
            + rotation.z_axis.cross(a.z_axis);
        let along =
            rotation.x_axis.dot(a.x_axis) + rotation.y_axis.dot(a.y_axis) + rotation.z_axis.dot(a.z_axis);
        if along <= 0.0 || torque.length() > FAR * along {
            return best_rotation(covariance);
        }
        // Newton's step: the curvature of `tr(R S)` is `tr(M) − M`, `M = Σ aᵢ rᵢᵀ`. With `torque / along` in its place, as for
        // full neighbourhoods, flat ones would come only half way each time.
        let outer = |a: DVec3, r: DVec3| DMat3::from_cols(a * r.x, a * r.y, a * r.z);
        let m = outer(a.x_axis, rotation.x_axis)
            + outer(a.y_axis, rotation.y_axis)
            + outer(a.z_axis, rotation.z_axis);
        let curvature = DMat3::from_diagonal(DVec3::splat(along)) - (m + m.transpose()) * 0.5;
        if curvature.determinant() <= 1e-9 * along.powi(3) {
            return best_rotation(covariance);
        }
        let step = curvature.inverse() * torque;
        let angle = step.length();
        if angle < SMALLEST {
            break;
        }
        rotation = DMat3::from_quat(DQuat::from_axis_angle(step / angle, angle)) * rotation;
        if turn + 1 == TURNS {
            // Rounding adds up over iterations.
            let x = rotation.x_axis.normalize();
            let y = (rotation.y_axis - x * x.dot(rotation.y_axis)).normalize();
            rotation = DMat3::from_cols(x, y, x.cross(y));
        }
    }
    rotation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skin_weights::tests::card;
    use understudy_core::Quat;

    #[test]
    fn a_rigid_motion_costs_nothing_and_no_iteration_raises_the_energy() {
        let mesh = card(14, 9);
        let held = [0, 13, 8 * 14, 8 * 14 + 13];
        let mut arap = Arap::new(&mesh, &held).expect("a card");
        let turn = Quat::from_axis_angle(Vec3::new(1.0, 2.0, 0.5).normalize(), 1.1);
        let moved: Vec<Vec3> =
            mesh.positions().iter().map(|p| turn * *p + Vec3::new(3.0, -1.0, 2.0)).collect();
        let targets: Vec<Vec3> = held.iter().map(|v| moved[*v as usize]).collect();
        arap.deform(&targets, 800).expect("four targets");
        assert!(arap.energy(&arap.positions()) < 1e-4 * arap.energy(&vec![Vec3::ZERO; 126]));
        let worst = arap.positions().iter().zip(&moved).fold(0.0f32, |most, (a, b)| most.max(a.distance(*b)));
        assert!(worst < 0.2, "{worst}");
        let mut arap = Arap::new(&mesh, &held).expect("a card");
        let bent: Vec<Vec3> =
            targets.iter().enumerate().map(|(k, p)| *p + Vec3::Z * (k % 2) as f32 * 4.0).collect();
        let mut last = f64::INFINITY;
        for _ in 0..30 {
            arap.deform(&bent, 1).expect("four targets");
            let energy = arap.energy(&arap.positions());
            assert!(energy <= last * (1.0 + 1e-6), "{energy} after {last}");
            last = energy;
        }
    }

    #[test]
    fn what_cannot_be_held_is_named() {
        let mesh = card(4, 3);
        assert!(matches!(Arap::new(&mesh, &[]), Err(ArapError::Nothing)));
        assert!(matches!(Arap::new(&mesh, &[3, 3]), Err(ArapError::Vertex { vertex: 3, .. })));
        assert!(matches!(Arap::new(&mesh, &[12]), Err(ArapError::Vertex { vertex: 12, count: 12 })));
        let mut arap = Arap::new(&mesh, &[0]).expect("a card");
        assert_eq!(arap.deform(&[], 1), Err(ArapError::Targets { got: 0, want: 1 }));
        assert!(arap.deform(&[Vec3::splat(f32::NAN)], 1).is_err());
    }
}
