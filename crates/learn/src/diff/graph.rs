//! The mesh as a graph, its uniform Laplacian `L_s = D − A`, and the factor of `L̃ᵀL̃` (eq. 4, 15) in f64. Vertices at one
//! place of the rest mesh (split at texture seams) are joined by an edge: any graph reconstructs exactly what was put
//! into its coordinates, and the pieces of a split mesh need no anchors of their own.

use faer::linalg::solvers::SolveCore;
use faer::sparse::linalg::solvers::Llt;
use faer::sparse::{SparseColMat, Triplet};
use faer::{Conj, Mat, Side};
use rayon::prelude::*;
use std::collections::HashMap;
use understudy_core::{Mesh, Random};

/// Right-hand sides that are solved together.
const COLUMNS: usize = 24;

/// Who is next to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    neighbours: Vec<Vec<u32>>,
    /// For every vertex the number of its island, by lowest vertex.
    pub island: Vec<u32>,
    /// Number of islands.
    pub islands: usize,
    /// Edges that join vertices of one place.
    pub joined: usize,
}

impl Graph {
    /// Of a mesh.
    pub fn new(mesh: &Mesh) -> Self {
        let adjacency = mesh.adjacency();
        let count = mesh.vertex_count();
        let mut neighbours: Vec<Vec<u32>> = (0..count).map(|v| adjacency.neighbours(v).to_vec()).collect();
        // In a chain, from one duplicate to the next: a point where many meet stays sparse.
        let mut last: HashMap<[u32; 3], u32> = HashMap::new();
        let mut joined = 0;
        for (vertex, place) in mesh.positions().iter().enumerate() {
            // −0 is 0.
            let key = place.to_array().map(|n| (n + 0.0).to_bits());
            if let Some(other) = last.insert(key, vertex as u32)
                && !neighbours[vertex].contains(&other)
            {
                neighbours[vertex].push(other);
                neighbours[other as usize].push(vertex as u32);
                joined += 1;
            }
        }
        neighbours.iter_mut().for_each(|list| list.sort_unstable());
        let mut island = vec![u32::MAX; count];
        let (mut islands, mut stack) = (0, Vec::new());
        for start in 0..count {
            if island[start] != u32::MAX {
                continue;
            }
            island[start] = islands;
            stack.push(start as u32);
            while let Some(vertex) = stack.pop() {
                for &next in &neighbours[vertex as usize] {
                    if island[next as usize] == u32::MAX {
                        island[next as usize] = islands;
                        stack.push(next);
                    }
                }
            }
            islands += 1;
        }
        Self { neighbours, island, islands: islands as usize, joined }
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    /// `L_s x` of numbers that lie `width` apart (three for places): `[V × width]` in and out.
    pub fn laplacian<T>(&self, x: &[T], width: usize) -> Vec<T>
    where
        T: Copy + From<f32> + std::ops::Sub<Output = T> + std::ops::AddAssign,
    {
        let mut out = Vec::with_capacity(x.len());
        for (vertex, neighbours) in self.neighbours.iter().enumerate() {
            for slot in 0..width {
                let own = x[vertex * width + slot];
                let mut sum = T::from(0.0);
                neighbours.iter().for_each(|n| sum += own - x[*n as usize * width + slot]);
                out.push(sum);
            }
        }
        out
    }
}

/// `L̃ᵀL̃ = L_s² + Ω²`, factored.
pub struct Reconstruction<'a> {
    graph: &'a Graph,
    /// The anchors and their ω.
    pub anchors: Vec<(u32, f64)>,
    factor: Llt<usize, f64>,
}

impl<'a> Reconstruction<'a> {
    /// Factors. `None` where some island has no anchor.
    pub fn new(graph: &'a Graph, anchors: &[(u32, f64)]) -> Option<Self> {
        let count = graph.len();
        let mut entries = Vec::new();
        for (vertex, neighbours) in graph.neighbours.iter().enumerate() {
            let own = (vertex, neighbours.len() as f64);
            let row: Vec<(usize, f64)> =
                std::iter::once(own).chain(neighbours.iter().map(|n| (*n as usize, -1.0))).collect();
            // Every row of L adds its outer product with itself; equal places are summed.
            for (i, a) in &row {
                entries.extend(row.iter().map(|(j, b)| Triplet::new(*i, *j, a * b)));
            }
        }
        entries.extend(anchors.iter().map(|(v, w)| Triplet::new(*v as usize, *v as usize, w * w)));
        let mut held = vec![false; graph.islands];
        anchors.iter().for_each(|(v, w)| held[graph.island[*v as usize] as usize] |= *w > 0.0);
        if held.iter().any(|held| !held) {
            return None;
        }
        let matrix = SparseColMat::<usize, f64>::try_new_from_triplets(count, count, &entries).ok()?;
        let factor = matrix.sp_cholesky(Side::Lower).ok()?;
        Some(Self { graph, anchors: anchors.to_vec(), factor })
    }

    /// Solves for many right-hand sides: columns of `[V]` each, in place. The result does not depend on threads.
    pub fn solve(&self, columns: &mut [Vec<f64>]) {
        columns.par_chunks_mut(COLUMNS).for_each(|columns| {
            let mut right = Mat::from_fn(self.graph.len(), columns.len(), |row, column| columns[column][row]);
            self.factor.solve_in_place_with_conj(Conj::No, right.as_mut());
            for (column, numbers) in columns.iter_mut().enumerate() {
                numbers.iter_mut().enumerate().for_each(|(row, number)| *number = right[(row, column)]);
            }
        });
    }

    /// `L̃ᵀ δ̃` of one coordinate: differential coordinates `[V]` and displacements of the anchors.
    pub fn right_side(&self, delta: &[f64], anchors: &[f64]) -> Vec<f64> {
        let mut out = self.graph.laplacian(delta, 1);
        for ((vertex, weight), place) in self.anchors.iter().zip(anchors) {
            out[*vertex as usize] += weight * weight * place;
        }
        out
    }

    /// `L̃ᵀL̃ x`.
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.graph.laplacian(&self.graph.laplacian(x, 1), 1);
        self.anchors.iter().for_each(|(v, w)| out[*v as usize] += w * w * x[*v as usize]);
        out
    }

    /// The condition number of `L̃ᵀL̃`, by power iteration on it and on its inverse.
    pub fn condition(&self) -> f64 {
        const ITERATIONS: usize = 40;
        let length = |x: &[f64]| x.iter().map(|n| n * n).sum::<f64>().sqrt();
        let start = || {
            let mut random = Random::new(11);
            (0..self.graph.len()).map(|_| random.normal()).collect::<Vec<f64>>()
        };
        let grown = |step: &dyn Fn(Vec<f64>) -> Vec<f64>| {
            let (mut x, mut growth) = (start(), 0.0);
            for _ in 0..ITERATIONS {
                let size = length(&x).max(f64::MIN_POSITIVE);
                x.iter_mut().for_each(|n| *n /= size);
                x = step(x);
                growth = length(&x);
            }
            growth
        };
        let largest = grown(&|x| self.apply(&x));
        let inverse = grown(&|x| {
            let mut columns = [x];
            self.solve(&mut columns);
            let [x] = columns;
            x
        });
        largest * inverse
    }
}
