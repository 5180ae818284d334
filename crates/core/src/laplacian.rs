//! Mesh operators as sparse rows: uniform and cotangent Laplacians and the lumped mass matrix.
//! Sign convention: `L = D − A`, positive semi-definite, rows sum to zero.

use crate::mesh::{Adjacency, Mesh};
use glam::{DVec3, Vec3};

/// A square sparse matrix in compressed rows, column indices ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl SparseRows {
    /// Sums triplets `(row, column, value)` into rows; order of the triplets does not matter for the
    /// pattern, equal places are added in the order given.
    pub fn from_triplets(size: usize, mut triplets: Vec<(u32, u32, f64)>) -> Self {
        triplets.sort_by_key(|(row, column, _)| (*row, *column));
        let mut out = Self { offsets: vec![0; size + 1], columns: Vec::new(), values: Vec::new() };
        let mut last = None;
        for (row, column, value) in triplets {
            if last == Some((row, column)) {
                *out.values.last_mut().expect("an entry was pushed before") += value;
            } else {
                out.columns.push(column);
                out.values.push(value);
                out.offsets[row as usize + 1] = out.columns.len() as u32;
                last = Some((row, column));
            }
        }
        for row in 0..size {
            out.offsets[row + 1] = out.offsets[row + 1].max(out.offsets[row]);
        }
        out
    }

    /// Number of rows.
    pub fn size(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Columns and values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        self.columns[range.clone()].iter().map(|c| *c as usize).zip(self.values[range].iter().copied())
    }

    /// `out_i = Σ_j a_ij x_j` on vectors, `[V]`.
    pub fn apply(&self, x: &[Vec3]) -> Vec<DVec3> {
        (0..self.size()).map(|r| self.row(r).map(|(c, value)| x[c].as_dvec3() * value).sum()).collect()
    }
}

/// The uniform Laplacian, `L_s = D − A`.
pub fn uniform_laplacian(adjacency: &Adjacency) -> SparseRows {
    let mut triplets = Vec::new();
    for vertex in 0..adjacency.vertex_count() {
        let neighbours = adjacency.neighbours(vertex);
        triplets.push((vertex as u32, vertex as u32, neighbours.len() as f64));
        triplets.extend(neighbours.iter().map(|n| (vertex as u32, *n, -1.0)));
    }
    SparseRows::from_triplets(adjacency.vertex_count(), triplets)
}

/// The cotangent Laplacian of the triangulated mesh, `L_ij = −½(cot α_ij + cot β_ij)`.
/// A triangle without area contributes nothing.
pub fn cotangent_laplacian(mesh: &Mesh) -> SparseRows {
    let at = |v: u32| mesh.positions()[v as usize].as_dvec3();
    let mut triplets = Vec::new();
    for triangle in mesh.triangles() {
        for corner in 0..3 {
            let (o, a, b) = (triangle[corner], triangle[(corner + 1) % 3], triangle[(corner + 2) % 3]);
            let (u, v) = (at(a) - at(o), at(b) - at(o));
            let double_area = u.cross(v).length();
            if double_area < 1e-12 {
                continue;
            }
            let half_cotangent = 0.5 * u.dot(v) / double_area;
            triplets.push((a, b, -half_cotangent));
            triplets.push((b, a, -half_cotangent));
            triplets.push((a, a, half_cotangent));
            triplets.push((b, b, half_cotangent));
        }
    }
    SparseRows::from_triplets(mesh.vertex_count(), triplets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Face, MeshParts};
    use proptest::prelude::*;

    fn grid(heights: &[f32]) -> Mesh {
        let side = 5u32;
        let positions = (0..side * side)
            .map(|i| Vec3::new((i % side) as f32, heights[i as usize], (i / side) as f32))
            .collect();
        let mut faces = Vec::new();
        for z in 0..side - 1 {
            for x in 0..side - 1 {
                let a = z * side + x;
                let (b, c, d) = (a + side, a + side + 1, a + 1);
                if (x + z) % 2 == 0 {
                    faces.push(Face::quad(a, b, c, d));
                } else {
                    faces.extend([Face::triangle(a, b, c), Face::triangle(a, c, d)]);
                }
            }
        }
        MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a grid is valid")
    }

    proptest! {
        #[test]
        fn rows_sum_to_zero_and_matrices_are_symmetric(heights in prop::collection::vec(-2.0f32..2.0, 25)) {
            let mesh = grid(&heights);
            for matrix in [uniform_laplacian(&mesh.adjacency()), cotangent_laplacian(&mesh)] {
                for row in 0..matrix.size() {
                    let scale: f64 = matrix.row(row).map(|(_, v)| v.abs()).sum();
                    let sum: f64 = matrix.row(row).map(|(_, v)| v).sum();
                    prop_assert!(sum.abs() <= 1e-12 * scale);
                    for (column, value) in matrix.row(row) {
                        let mirrored = matrix.row(column).find(|(c, _)| *c == row).map(|(_, v)| v);
                        prop_assert!(mirrored.is_some_and(|m| (m - value).abs() <= 1e-12 * scale));
                    }
                }
            }
        }
    }

    #[test]
    fn cotangent_laplacian_of_a_plane_is_zero_inside() {
        let mesh = grid(&[0.0; 25]);
        let curvature = cotangent_laplacian(&mesh).apply(mesh.positions());
        assert!(curvature[12].length() < 1e-9, "{}", curvature[12]);
    }
}
