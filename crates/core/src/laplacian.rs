//! Mesh operators as sparse rows: uniform and cotangent Laplacians of surfaces and of tetrahedra, and their lumped
//! masses. Sign convention: `L = D − A`, positive semi-definite, rows sum to zero. What solves systems with them is in
//! `sparse_cholesky`, behind the feature `linear-algebra`.

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

    /// The rows end to end: where each starts (and the end), columns, values.
    pub fn compressed(&self) -> (&[u32], &[u32], &[f64]) {
        (&self.offsets, &self.columns, &self.values)
    }

    /// The diagonal, `[n]`.
    pub fn diagonal(&self) -> Vec<f64> {
        let element = |row: usize| self.row(row).filter(|(column, _)| *column == row).map(|(_, v)| v).sum();
        (0..self.size()).map(element).collect()
    }

    /// `A x`, `[n]`.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.size()).map(|row| self.row(row).map(|(column, value)| x[column] * value).sum()).collect()
    }

    /// Rows and columns `kept`, ascending: `A_kk`.
    pub fn principal(&self, kept: &[u32]) -> Self {
        let mut place = vec![u32::MAX; self.size()];
        (0u32..).zip(kept).for_each(|(new, old)| place[*old as usize] = new);
        let mut out = Self { offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        for &row in kept {
            for (column, value) in self.row(row as usize).filter(|(column, _)| place[*column] != u32::MAX) {
                out.columns.push(place[column]);
                out.values.push(value);
            }
            out.offsets.push(out.columns.len() as u32);
        }
        out
    }

    /// `Aᵀ diag(d) A` of a symmetric matrix, `[n][n]`.
    pub fn sandwich(&self, diagonal: &[f64]) -> Self {
        let n = self.size();
        let mut out = Self { offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        let (mut sums, mut touched) = (vec![0.0; n], Vec::new());
        let mut seen = vec![u32::MAX; n];
        for row in 0..n {
            for (middle, left) in self.row(row) {
                for (column, right) in self.row(middle) {
                    if seen[column] != row as u32 {
                        seen[column] = row as u32;
                        sums[column] = 0.0;
                        touched.push(column as u32);
                    }
                    sums[column] += left * diagonal[middle] * right;
                }
            }
            touched.sort_unstable();
            out.values.extend(touched.iter().map(|column| sums[*column as usize]));
            out.columns.append(&mut touched);
            out.offsets.push(out.columns.len() as u32);
        }
        out
    }

    /// `factor · A + diag(d)`; every diagonal element must be stored.
    pub fn scaled_plus_diagonal(&self, factor: f64, diagonal: &[f64]) -> Self {
        let mut out = self.clone();
        for row in 0..out.size() {
            for place in out.offsets[row] as usize..out.offsets[row + 1] as usize {
                let own = out.columns[place] as usize == row;
                out.values[place] = factor * out.values[place] + if own { diagonal[row] } else { 0.0 };
            }
        }
        out
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
    let points: Vec<DVec3> = mesh.positions().iter().map(|p| p.as_dvec3()).collect();
    triangle_laplacian(&points, &mesh.triangles())
}

/// [`cotangent_laplacian`] of loose triangles.
pub fn triangle_laplacian(points: &[DVec3], triangles: &[[u32; 3]]) -> SparseRows {
    let at = |v: u32| points[v as usize];
    let mut triplets = Vec::with_capacity(12 * triangles.len());
    for triangle in triangles {
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
    SparseRows::from_triplets(points.len(), triplets)
}

/// Area that belongs to each vertex, `[V]`: its Voronoi cell, and in obtuse triangles half or a quarter of the triangle
/// (Meyer et al. 2003). A vertex without a face has none.
pub fn voronoi_mass(points: &[DVec3], triangles: &[[u32; 3]]) -> Vec<f64> {
    let mut mass = vec![0.0; points.len()];
    for triangle in triangles {
        let [a, b, c] = triangle.map(|v| points[v as usize]);
        let double_area = (b - a).cross(c - a).length();
        if double_area < 1e-12 {
            continue;
        }
        let dots = [(b - a).dot(c - a), (c - b).dot(a - b), (a - c).dot(b - c)];
        let squares = [(c - b).length_squared(), (a - c).length_squared(), (b - a).length_squared()];
        let obtuse = dots.iter().any(|dot| *dot < 0.0);
        for corner in 0..3 {
            let (next, last) = ((corner + 1) % 3, (corner + 2) % 3);
            mass[triangle[corner] as usize] += match obtuse {
                // Each edge at the corner times the cotangent of the angle opposite to it.
                false => (squares[next] * dots[next] + squares[last] * dots[last]) / (8.0 * double_area),
                true if dots[corner] < 0.0 => double_area / 4.0,
                true => double_area / 8.0,
            };
        }
    }
    mass
}

/// The stiffness matrix of linear tetrahedra, `L_ij = Σ V ∇φ_i · ∇φ_j`.
pub fn tetrahedral_laplacian(points: &[DVec3], tetrahedra: &[[u32; 4]]) -> SparseRows {
    let mut triplets = Vec::with_capacity(16 * tetrahedra.len());
    for tetrahedron in tetrahedra {
        let p = tetrahedron.map(|v| points[v as usize]);
        let volume = (p[1] - p[0]).dot((p[2] - p[0]).cross(p[3] - p[0])).abs() / 6.0;
        if volume < 1e-18 {
            continue;
        }
        // The gradient of a corner's function is across the face opposite to it, one over the height long.
        let gradients: [DVec3; 4] = std::array::from_fn(|corner| {
            let [a, b, c] = [1, 2, 3].map(|step| p[(corner + step) % 4]);
            let normal = (b - a).cross(c - a);
            normal / normal.dot(p[corner] - a)
        });
        for i in 0..4 {
            for j in 0..4 {
                triplets.push((tetrahedron[i], tetrahedron[j], volume * gradients[i].dot(gradients[j])));
            }
        }
    }
    SparseRows::from_triplets(points.len(), triplets)
}

/// A quarter of the volume of every tetrahedron at a vertex, `[V]`. In the tetrahedra of a body-centred lattice, whose
/// faces are alike, that is the vertex's Voronoi cell.
pub fn tetrahedral_mass(points: &[DVec3], tetrahedra: &[[u32; 4]]) -> Vec<f64> {
    let mut mass = vec![0.0; points.len()];
    for tetrahedron in tetrahedra {
        let [a, b, c, d] = tetrahedron.map(|v| points[v as usize]);
        let volume = (b - a).dot((c - a).cross(d - a)).abs() / 6.0;
        tetrahedron.iter().for_each(|v| mass[*v as usize] += volume / 4.0);
    }
    mass
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

    #[test]
    fn masses_add_up_to_area_and_volume_and_linear_functions_have_no_laplacian_inside() {
        let mesh = grid(&[0.3, 0.1, -0.4, 0.2, 0.0].repeat(5));
        let points: Vec<DVec3> = mesh.positions().iter().map(|p| p.as_dvec3()).collect();
        let area = |t: &[u32; 3]| {
            let [a, b, c] = t.map(|v| points[v as usize]);
            (b - a).cross(c - a).length() / 2.0
        };
        let triangles = mesh.triangles();
        let total: f64 = triangles.iter().map(area).sum();
        let mass = voronoi_mass(&points, &triangles);
        assert!((mass.iter().sum::<f64>() - total).abs() < 1e-12 * total);
        assert!(mass.iter().all(|m| *m > 0.0));
        // A unit cube as five tetrahedra, its far corner moved out.
        let mut points: Vec<DVec3> =
            (0..8).map(|i| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2))).collect();
        points[7] *= 1.5;
        let tetrahedra = [[0, 1, 2, 4], [3, 1, 2, 7], [5, 1, 4, 7], [6, 2, 4, 7], [1, 2, 4, 7]];
        let laplacian = tetrahedral_laplacian(&points, &tetrahedra);
        let energy = |x: &[f64]| laplacian.times(x).iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        let volume: f64 = tetrahedral_mass(&points, &tetrahedra).iter().sum();
        // The Dirichlet energy of a linear function is its gradient's square times the volume.
        let linear: Vec<f64> = points.iter().map(|p| 2.0 * p.x - p.y + 3.0 * p.z + 5.0).collect();
        assert!((energy(&linear) - 14.0 * volume).abs() < 1e-12 * volume);
        assert!(energy(&[4.0; 8]).abs() < 1e-12);
    }

    #[test]
    fn products_and_parts_of_matrices_are_those_of_dense_ones() {
        let laplacian = cotangent_laplacian(&grid(&[0.1; 25]));
        let diagonal: Vec<f64> = (0..25).map(|i| 1.0 + f64::from(i)).collect();
        let both = laplacian.sandwich(&diagonal);
        let x: Vec<f64> = (0..25).map(|i| f64::from(i).sin()).collect();
        let scaled: Vec<f64> = laplacian.times(&x).iter().zip(&diagonal).map(|(a, b)| a * b).collect();
        let want = laplacian.times(&scaled);
        assert!(both.times(&x).iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-10));
        let kept = [3, 4, 9, 20];
        let part = both.principal(&kept);
        for (row, &old) in kept.iter().enumerate() {
            for (column, value) in part.row(row) {
                assert!(both.row(old as usize).any(|entry| entry == (kept[column] as usize, value)));
            }
        }
        let shifted = laplacian.scaled_plus_diagonal(2.0, &diagonal).times(&x);
        let want =
            laplacian.times(&x).into_iter().zip(x.iter().zip(&diagonal)).map(|(l, (x, d))| 2.0 * l + d * x);
        assert!(shifted.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(laplacian.diagonal().iter().enumerate().all(|(i, d)| laplacian.row(i).any(|e| e == (i, *d))));
    }
}
