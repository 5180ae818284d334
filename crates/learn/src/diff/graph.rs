//! The mesh as a graph, its Laplacian `L_s = D − A`, and the factor of `L̃ᵀL̃` (eq. 4, 15) in f64. Vertices at one
//! place of the rest mesh (split at texture seams) are joined by an edge: any graph reconstructs exactly what was put
//! into its coordinates, and the pieces of a split mesh need no anchors of their own. Local offsets are the same thing
//! with the identity in place of the Laplacian.

use super::Coordinates;
use faer::linalg::solvers::SolveCore;
use faer::sparse::linalg::solvers::Llt;
use faer::sparse::{SparseColMat, Triplet};
use faer::{Conj, Mat, Side};
use rayon::prelude::*;
use std::collections::HashMap;
use understudy_core::{Mesh, Random, Vec3};

/// Right-hand sides that are solved together.
const COLUMNS: usize = 24;

/// An edge's share of the mean cotangent weight is kept between these: flat and needle-shaped triangles have weights
/// that are negative or huge, and no edge may vanish.
const COTANGENTS: [f64; 2] = [0.05, 10.0];

/// Who is next to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Neighbours with the weights of their edges.
    neighbours: Vec<Vec<(u32, f32)>>,
    /// What is added to the diagonal of the Laplacian: nothing, or one where it stands for the identity.
    own: f32,
    /// For every vertex the number of its island, by lowest vertex.
    pub island: Vec<u32>,
    /// Number of islands.
    pub islands: usize,
    /// Edges that join vertices of one place.
    pub joined: usize,
}

impl Graph {
    /// Of a mesh.
    pub fn new(mesh: &Mesh, coordinates: Coordinates) -> Self {
        let adjacency = mesh.adjacency();
        let count = mesh.vertex_count();
        let mut neighbours: Vec<Vec<u32>> = (0..count).map(|v| adjacency.neighbours(v).to_vec()).collect();
        let cotangents = match coordinates {
            Coordinates::Cotangent => cotangent_weights(mesh),
            Coordinates::Uniform | Coordinates::Local => HashMap::new(),
        };
        for (from, to) in cotangents.keys() {
            // Diagonals of quads, which are no edges of the mesh.
            if !neighbours[*from as usize].contains(to) {
                neighbours[*from as usize].push(*to);
                neighbours[*to as usize].push(*from);
            }
        }
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
        let weigh = |(from, list): (usize, Vec<u32>)| {
            let weight =
                |to: u32| cotangents.get(&ordered(from as u32, to)).map_or(1.0, |weight| *weight as f32);
            list.into_iter().map(|to| (to, weight(to))).collect::<Vec<_>>()
        };
        let local = coordinates == Coordinates::Local;
        let neighbours = match local {
            true => vec![Vec::new(); count],
            false => neighbours.into_iter().enumerate().map(weigh).collect(),
        };
        let own = if local { 1.0 } else { 0.0 };
        Self { neighbours, own, island, islands: islands as usize, joined }
    }

    /// Whether every island needs an anchor to be placed.
    pub fn needs_anchors(&self) -> bool {
        self.own == 0.0
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    /// `L_s x`, or `x` itself for local offsets, of numbers that lie `width` apart (three for places): `[V × width]` in and out.
    pub fn laplacian<T>(&self, x: &[T], width: usize) -> Vec<T>
    where
        T: Copy + From<f32> + std::ops::Sub<Output = T> + std::ops::Mul<Output = T> + std::ops::AddAssign,
    {
        let mut out = Vec::with_capacity(x.len());
        for (vertex, neighbours) in self.neighbours.iter().enumerate() {
            for slot in 0..width {
                let own = x[vertex * width + slot];
                let mut sum = T::from(self.own) * own;
                for (neighbour, weight) in neighbours {
                    sum += T::from(*weight) * (own - x[*neighbour as usize * width + slot]);
                }
                out.push(sum);
            }
        }
        out
    }
}

/// The two ends of an edge, the lower first.
fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Of every edge of the rest mesh's triangles half the cotangents of the angles that see it, their mean one.
fn cotangent_weights(mesh: &Mesh) -> HashMap<(u32, u32), f64> {
    let mut weights: HashMap<(u32, u32), f64> = HashMap::new();
    let place = |vertex: u32| mesh.positions()[vertex as usize];
    for face in mesh.faces() {
        for triangle in face.triangles() {
            for corner in 0..3 {
                let [apex, a, b] = [0, 1, 2].map(|step| triangle[(corner + step) % 3]);
                let [to_a, to_b]: [Vec3; 2] = [a, b].map(|end| place(end) - place(apex));
                let (along, area) = (f64::from(to_a.dot(to_b)), f64::from(to_a.cross(to_b).length()));
                *weights.entry(ordered(a, b)).or_default() += 0.5 * along / area.max(f64::MIN_POSITIVE);
            }
        }
    }
    // Of degenerate triangles nothing is known: their edges count as the mean of the others.
    let mut known: Vec<f64> = weights.values().copied().filter(|w| w.is_finite() && w.abs() < 1e3).collect();
    // The order of a hash map changes from run to run, and with it the last digit of a sum.
    known.sort_by(f64::total_cmp);
    let sum: f64 = known.iter().sum();
    let mean = if sum > 0.0 { sum / known.len() as f64 } else { 1.0 };
    for weight in weights.values_mut() {
        let share = *weight / mean;
        let [least, most] = COTANGENTS;
        *weight = if share.is_finite() && share.abs() < 1e3 { share.clamp(least, most) } else { 1.0 };
    }
    weights
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
            let degree: f64 = neighbours.iter().map(|(_, weight)| f64::from(*weight)).sum();
            let own = (vertex, f64::from(graph.own) + degree);
            let others = neighbours.iter().map(|(n, weight)| (*n as usize, -f64::from(*weight)));
            let row: Vec<(usize, f64)> = std::iter::once(own).chain(others).collect();
            // Every row of L adds its outer product with itself; equal places are summed.
            for (i, a) in &row {
                entries.extend(row.iter().map(|(j, b)| Triplet::new(*i, *j, a * b)));
            }
        }
        entries.extend(anchors.iter().map(|(v, w)| Triplet::new(*v as usize, *v as usize, w * w)));
        let mut held = vec![false; graph.islands];
        anchors.iter().for_each(|(v, w)| held[graph.island[*v as usize] as usize] |= *w > 0.0);
        if graph.needs_anchors() && held.iter().any(|held| !held) {
            return None;
        }
        let matrix = SparseColMat::<usize, f64>::try_new_from_triplets(count, count, &entries).ok()?;
        let factor = matrix.sp_cholesky(Side::Lower).ok()?;
        Some(Self { graph, anchors: anchors.to_vec(), factor })
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.graph.len()
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
