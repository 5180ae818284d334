//! Vertices as a linear function of the bones: `D = A X`, with `D` `[V × 3]` the displacements of a pose, `A` `[V × 4 B]`
//! the rows `w_ij [v_i⁰ − centre_j; 1]`, and `X` `[4 B × 3]` the bones.
//!
//! The squared error of the vertices is then exactly quadratic in the bones. With `G = AᵀA / V = L Lᵀ` the mean squared
//! distance of a vertex is `‖Lᵀ(X − X*)‖²` plus what the best bones `X* = G⁻¹AᵀD / V` leave. A network that is trained on
//! `Y = LᵀX` by plain least squares therefore minimises the error of all vertices, at the cost of the bones alone; `L⁻ᵀ` goes
//! into its last layer.

use crate::Recording;
use crate::cholesky::Cholesky;
use rayon::prelude::*;
use understudy_core::{SkinWeights, Vec3};
use understudy_runtime::DenseParts;
use understudy_runtime::skin::BONE_NUMBERS;

/// What the vertices leave open (how a bone stretches across a flat patch) is decided for the smallest numbers: the weight
/// of that wish, relative to the mean of the diagonal of `G`. Numbers of size one then cost far less than a micrometre, and
/// none is so large that 16 bits show.
const RIDGE: f64 = 1e-6;

pub(super) struct Design<'a> {
    bones: usize,
    weights: &'a SkinWeights,
    centres: &'a [Vec3],
    rest: &'a [Vec3],
    cholesky: Cholesky,
}

/// What the network must give: `Y` of every pose, then coefficients of components.
pub(super) struct Targets {
    /// `[N × height]`.
    pub numbers: Vec<f32>,
    pub height: usize,
    /// Mean squared distance of a vertex that the best bones and coefficients leave, cm², `[N]`.
    left: Vec<f64>,
}

impl Targets {
    /// What the best bones leave of some poses, root mean square over vertices, mean over poses, cm.
    pub fn left_cm(&self, poses: &[u32]) -> f64 {
        let sum: f64 = poses.iter().map(|pose| self.left[*pose as usize].sqrt()).sum();
        sum / poses.len().max(1) as f64
    }
}

impl<'a> Design<'a> {
    pub fn new(weights: &'a SkinWeights, centres: &'a [Vec3], rest: &'a [Vec3]) -> Self {
        let n = 4 * centres.len();
        let mut gram = vec![0.0; n * n];
        let share = 1.0 / rest.len().max(1) as f64;
        for vertex in 0..rest.len() {
            let row = row(weights, centres, rest, vertex);
            for (bone, a) in &row {
                for (other, b) in &row {
                    for (i, a) in a.iter().enumerate() {
                        for (j, b) in b.iter().enumerate() {
                            gram[(4 * bone + i) * n + 4 * other + j] += a * b * share;
                        }
                    }
                }
            }
        }
        let ridge =
            RIDGE * (0..n).map(|i| gram[i * n + i]).sum::<f64>() / n.max(1) as f64 + f64::MIN_POSITIVE;
        (0..n).for_each(|i| gram[i * n + i] += ridge);
        Self { bones: centres.len(), weights, centres, rest, cholesky: Cholesky::new(gram, n) }
    }

    /// `AᵀD / V`, `[4 B × 3]`.
    fn project(&self, vertices: &[Vec3]) -> Vec<f64> {
        let share = 1.0 / self.rest.len().max(1) as f64;
        let mut out = vec![0.0; self.bones * BONE_NUMBERS];
        for (vertex, place) in vertices.iter().enumerate() {
            let moved = (place.as_dvec3() - self.rest[vertex].as_dvec3()) * share;
            for (bone, a) in row(self.weights, self.centres, self.rest, vertex) {
                for (row, a) in out[bone * BONE_NUMBERS..][..BONE_NUMBERS].chunks_exact_mut(3).zip(a) {
                    row.iter_mut().zip(moved.to_array()).for_each(|(sum, moved)| *sum += a * moved);
                }
            }
        }
        out
    }

    /// What the best bones leave of a pose, `[3 V]`.
    pub fn left(&self, vertices: &[Vec3]) -> Vec<f64> {
        let mut bones = self.project(vertices);
        self.cholesky.solve(&mut bones, 3);
        let mut out = Vec::with_capacity(3 * vertices.len());
        for (vertex, place) in vertices.iter().enumerate() {
            let mut left = (place.as_dvec3() - self.rest[vertex].as_dvec3()).to_array();
            for (bone, a) in row(self.weights, self.centres, self.rest, vertex) {
                for (row, a) in bones[bone * BONE_NUMBERS..][..BONE_NUMBERS].chunks_exact(3).zip(a) {
                    left.iter_mut().zip(row).for_each(|(left, x)| *left -= a * x);
                }
            }
            out.extend(left);
        }
        out
    }

    /// Of all poses. `basis`: components, `[K][3 V]`, orthogonal with unit root mean square per vertex.
    pub fn targets(&self, poses: &Recording, basis: &[Vec<f64>]) -> Targets {
        let height = self.bones * BONE_NUMBERS + basis.len();
        let share = 1.0 / self.rest.len().max(1) as f64;
        let mut numbers = vec![0.0f32; poses.len() * height];
        let left = numbers
            .par_chunks_mut(height)
            .enumerate()
            .map(|(pose, out)| {
                let vertices = poses.vertices_of(pose);
                let pairs = vertices.iter().zip(self.rest);
                let mut left =
                    pairs.map(|(v, r)| v.as_dvec3().distance_squared(r.as_dvec3())).sum::<f64>() * share;
                let mut y = self.project(vertices);
                self.cholesky.forward(&mut y, 3);
                if !basis.is_empty() {
                    let rest = self.left(vertices);
                    y.extend(
                        basis
                            .iter()
                            .map(|way| way.iter().zip(&rest).map(|(w, r)| w * r).sum::<f64>() * share),
                    );
                }
                for (out, y) in out.iter_mut().zip(y) {
                    *out = y as f32;
                    left -= y * y;
                }
                left.max(0.0)
            })
            .collect();
        Targets { numbers, height, left }
    }

    /// A last layer that gives `Y` becomes one that gives the bones as a twin has them: `[A | t]` by rows.
    pub fn unfold(&self, layer: &DenseParts, components: usize) -> DenseParts {
        let rows = layer.bias.len();
        let columns = layer.weights.len() / rows.max(1);
        // `[4 B × 3 (columns + 1)]`: weights and bias, for x, y and z.
        let (width, whitened) = (columns + 1, rows - components);
        let at = |row: usize, column: usize| match column < columns {
            true => layer.weights[row * columns + column],
            false => layer.bias[row],
        };
        let mut x = Vec::with_capacity(whitened * width);
        for row in 0..whitened {
            x.extend((0..width).map(|column| f64::from(at(row, column))));
        }
        self.cholesky.backward(&mut x, 3 * width);
        let mut out =
            DenseParts { weights: Vec::with_capacity(rows * columns), bias: Vec::with_capacity(rows) };
        for bone in 0..self.bones {
            for number in 0..BONE_NUMBERS {
                let (axis, column) = (number / 4, number % 4);
                let row = &x[((4 * bone + column) * 3 + axis) * width..][..width];
                out.weights.extend(row[..columns].iter().map(|w| *w as f32));
                out.bias.push(row[columns] as f32);
            }
        }
        for row in whitened..rows {
            out.weights.extend_from_slice(&layer.weights[row * columns..(row + 1) * columns]);
            out.bias.push(layer.bias[row]);
        }
        out
    }
}

/// The entries of a row of `A`: bones and `w [v⁰ − centre; 1]`.
fn row(weights: &SkinWeights, centres: &[Vec3], rest: &[Vec3], vertex: usize) -> Vec<(usize, [f64; 4])> {
    let entry = |(bone, weight): (usize, f32)| {
        let local = (rest[vertex].as_dvec3() - centres[bone].as_dvec3()) * f64::from(weight);
        (bone, [local.x, local.y, local.z, f64::from(weight)])
    };
    weights.row(vertex).map(entry).collect()
}

/// Components `[K][3 V]` as a twin has them, `[3 V × K]`.
pub(super) fn by_vertex(basis: &[Vec<f64>]) -> Vec<f32> {
    let height = basis.first().map_or(0, Vec::len);
    (0..height).flat_map(|row| basis.iter().map(move |way| way[row] as f32)).collect()
}
