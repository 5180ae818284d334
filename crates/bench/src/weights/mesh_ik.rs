//! Mesh-based inverse kinematics (Sumner et al. 2005), a rival that blends deformation gradients of examples: rotations as axis
//! and angle, stretches as they are. Vertices and the weights of the examples are found together by Gauss–Newton steps, one
//! sparse solve per example each, so that its time grows with their number.

use anyhow::{Result, anyhow};
use rayon::prelude::*;
use understudy_core::laplacian::{SparseRows, cotangent_laplacian};
use understudy_core::linear_algebra::Cholesky;
use understudy_core::rotation::best_rotation;
use understudy_core::sparse_cholesky::SparseCholesky;
use understudy_core::{DMat3, DQuat, DVec3, Mesh, Vec3};

/// Pull of example weights towards the rest, as a share of the energy's own scale: otherwise little determines them.
const PULL: f64 = 1e-4;

/// Rotation (axis times angle) and stretch of a triangle.
#[derive(Clone, Copy)]
struct Feature {
    turn: DVec3,
    stretch: DMat3,
}

pub struct MeshIk {
    rest: Vec<DVec3>,
    triangles: Vec<[u32; 3]>,
    /// Half cotangents opposite to corners, `[T]`.
    cotangents: Vec<DVec3>,
    /// Per example and triangle.
    examples: Vec<Vec<Feature>>,
    laplacian: SparseRows,
    held: Vec<u32>,
    free: Vec<u32>,
    factor: SparseCholesky,
    weights: Vec<f64>,
}

impl MeshIk {
    pub fn new(mesh: &Mesh, examples: &[&[Vec3]], held: &[u32]) -> Result<Self> {
        let n = mesh.vertex_count();
        let rest: Vec<DVec3> = mesh.positions().iter().map(|p| p.as_dvec3()).collect();
        let triangles = mesh.triangles();
        let cotangent = |t: &[u32; 3]| {
            let p = t.map(|v| rest[v as usize]);
            let at = |k: usize| {
                let (a, b) = (p[(k + 1) % 3] - p[k], p[(k + 2) % 3] - p[k]);
                0.5 * a.dot(b) / a.cross(b).length().max(1e-12)
            };
            DVec3::new(at(0), at(1), at(2))
        };
        let cotangents = triangles.iter().map(cotangent).collect();
        let gradients = |example: &&[Vec3]| {
            let frame = |p: [DVec3; 3]| {
                let (a, b) = (p[1] - p[0], p[2] - p[0]);
                let normal = a.cross(b);
                DMat3::from_cols(a, b, normal / normal.length().sqrt().max(1e-12))
            };
            let of = |t: &[u32; 3]| {
                let before = frame(t.map(|v| rest[v as usize]));
                let after = frame(t.map(|v| example[v as usize].as_dvec3()));
                let gradient = after * before.inverse();
                let rotation = best_rotation(gradient.transpose());
                let (axis, angle) = DQuat::from_mat3(&rotation).to_axis_angle();
                let angle = if angle > std::f64::consts::PI { angle - std::f64::consts::TAU } else { angle };
                Feature { turn: axis * angle, stretch: rotation.transpose() * gradient }
            };
            triangles.iter().map(of).collect::<Vec<Feature>>()
        };
        let examples: Vec<Vec<Feature>> = examples.iter().map(gradients).collect();
        let mut is_held = vec![false; n];
        held.iter().for_each(|v| is_held[*v as usize] = true);
        let free: Vec<u32> = (0..n as u32).filter(|v| !is_held[*v as usize]).collect();
        let laplacian = cotangent_laplacian(mesh);
        let factor = SparseCholesky::new(&laplacian.principal(&free))
            .ok_or_else(|| anyhow!("a part of the mesh holds no handle"))?;
        let weights = vec![0.0; examples.len()];
        Ok(Self {
            rest,
            triangles,
            cotangents,
            examples,
            laplacian,
            held: held.to_vec(),
            free,
            factor,
            weights,
        })
    }

    /// Forgets the weights of examples that the last pose had.
    pub fn restart(&mut self) {
        self.weights.fill(0.0);
    }

    /// Puts held vertices at `targets`; gives all vertices.
    pub fn solve(&mut self, targets: &[Vec3], iterations: usize) -> Vec<Vec3> {
        let n = self.rest.len();
        let m = self.examples.len();
        let mut fixed = vec![DVec3::ZERO; n];
        self.held.iter().zip(targets).for_each(|(v, t)| fixed[*v as usize] = t.as_dvec3());
        let mut out = vec![DVec3::ZERO; n];
        for _ in 0..iterations {
            let base = self.transforms(&self.weights);
            // Columns: the base with its constraints, then the derivative by every example's weight.
            let step = 1e-4;
            let columns: Vec<(Vec<DVec3>, Vec<DMat3>)> = (0..=m)
                .into_par_iter()
                .map(|column| {
                    let change = match column {
                        0 => base.clone(),
                        k => {
                            let mut moved = self.weights.clone();
                            moved[k - 1] += step;
                            let moved = self.transforms(&moved);
                            moved.iter().zip(&base).map(|(a, b)| (*a - *b) * (1.0 / step)).collect()
                        }
                    };
                    let mut right = self.divergence(&change);
                    if column == 0 {
                        for v in 0..n {
                            let pull: DVec3 = self.laplacian.row(v).map(|(o, value)| fixed[o] * value).sum();
                            right[v] -= pull;
                        }
                    }
                    let mut solved = self.place(&right);
                    if column == 0 {
                        self.held.iter().for_each(|v| solved[*v as usize] = fixed[*v as usize]);
                    }
                    (solved, change)
                })
                .collect();
            // Residual per triangle edge: (x_i − x_j) − J (p_i − p_j), linear in the weights' change.
            let k = m + 1;
            let sums = (0..self.triangles.len())
                .into_par_iter()
                .fold(
                    || vec![0.0; k * k],
                    |mut sums, t| {
                        for (corner, weight) in self.cotangents[t].to_array().into_iter().enumerate() {
                            let (a, b) = (
                                self.triangles[t][(corner + 1) % 3] as usize,
                                self.triangles[t][(corner + 2) % 3] as usize,
                            );
                            let edge = self.rest[a] - self.rest[b];
                            let residual: Vec<DVec3> =
                                columns.iter().map(|(x, j)| (x[a] - x[b]) - j[t] * edge).collect();
                            for row in 0..k {
                                for column in 0..=row {
                                    sums[row * k + column] += weight * residual[row].dot(residual[column]);
                                }
                            }
                        }
                        sums
                    },
                )
                .reduce(
                    || vec![0.0; k * k],
                    |mut a, b| {
                        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                        a
                    },
                );
            let mut gram = vec![0.0; m * m];
            let mut right = vec![0.0; m];
            let scale: f64 = (1..k).map(|d| sums[d * k + d]).sum::<f64>() / m.max(1) as f64;
            for row in 0..m {
                for column in 0..=row {
                    gram[row * m + column] = sums[(row + 1) * k + column + 1];
                }
                gram[row * m + row] += PULL * scale + 1e-12;
                right[row] = -sums[(row + 1) * k] - PULL * scale * self.weights[row];
            }
            // Examples that say nothing leave no step: the gradient alone is not one.
            match Cholesky::new(&gram, m) {
                Some(factor) => factor.solve(&mut right, 1),
                None => right.fill(0.0),
            }
            self.weights.iter_mut().zip(&right).for_each(|(w, d)| *w += d);
            out = columns[0].0.clone();
            for (column, change) in columns[1..].iter().zip(&right) {
                out.iter_mut().zip(&column.0).for_each(|(x, y)| *x += *y * *change);
            }
        }
        out.iter().map(|p| p.as_vec3()).collect()
    }

    fn transforms(&self, weights: &[f64]) -> Vec<DMat3> {
        let of = |t: usize| {
            let (mut turn, mut stretch) = (DVec3::ZERO, DMat3::IDENTITY);
            for (example, weight) in self.examples.iter().zip(weights) {
                turn += example[t].turn * *weight;
                stretch += (example[t].stretch - DMat3::IDENTITY) * *weight;
            }
            DMat3::from_quat(DQuat::from_scaled_axis(turn)) * stretch
        };
        (0..self.triangles.len()).map(of).collect()
    }

    /// `Σ w̃ J (p_i − p_j)` of every vertex.
    fn divergence(&self, transforms: &[DMat3]) -> Vec<DVec3> {
        let mut sums = vec![DVec3::ZERO; self.rest.len()];
        for ((t, cotangents), transform) in self.triangles.iter().zip(&self.cotangents).zip(transforms) {
            for (corner, weight) in cotangents.to_array().into_iter().enumerate() {
                let (a, b) = (t[(corner + 1) % 3] as usize, t[(corner + 2) % 3] as usize);
                let edge = *transform * (self.rest[a] - self.rest[b]) * weight;
                sums[a] += edge;
                sums[b] -= edge;
            }
        }
        sums
    }

    /// Free vertices from the right side; held ones are zero.
    fn place(&self, right: &[DVec3]) -> Vec<DVec3> {
        let m = self.free.len();
        let mut flat = vec![0.0; 3 * m];
        for (place, v) in self.free.iter().enumerate() {
            (0..3).for_each(|axis| flat[axis * m + place] = right[*v as usize][axis]);
        }
        self.factor.solve(&mut flat);
        let mut out = vec![DVec3::ZERO; right.len()];
        for (place, v) in self.free.iter().enumerate() {
            out[*v as usize] = DVec3::new(flat[place], flat[m + place], flat[2 * m + place]);
        }
        out
    }
}
