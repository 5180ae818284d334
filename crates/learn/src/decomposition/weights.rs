//! The weights' half of an iteration: with all bones fixed, every vertex by itself. The Gram matrix of a
//! vertex comes from tables of the bones and one matrix product with its displacements.

use super::animation::Animation;
use super::search::State;
use super::simplex::{Gram, Simplex};
use crate::matrix::{View, multiply};
use rayon::prelude::*;

/// Vertices a matrix product.
const BLOCK: usize = 64;

/// What all vertices need to know of the bones.
///
/// A bone alone would miss vertex `i` by `a_j = N_j P_i − δ_i`, stacked over frames, with `P = [p; 1]`. So
/// `G_jk = a_jᵀa_k = Pᵀ Q_jk P − b_j − b_k + ‖δ‖²` with `Q_jk = Σ_t N_jᵀN_k` and `b_j = Pᵀ Σ_t N_jᵀδ`.
pub struct BoneTables {
    bones: usize,
    frames: usize,
    /// `N` of all bones and frames, `[B · 4][F · 3]`.
    matrix: Vec<f64>,
    /// `Pᵀ Q_jk P` as coefficients of the ten products of `P`, for `k ≤ j`.
    pairs: Vec<[f64; 10]>,
}

impl BoneTables {
    pub fn new(state: &State, frames: usize) -> Self {
        let bones = state.bones;
        let width = frames * 3;
        let mut matrix = vec![0.0; bones * 4 * width];
        for bone in 0..bones {
            for frame in 0..frames {
                let offset = state.offset(frame, bone);
                for column in 0..4 {
                    for axis in 0..3 {
                        matrix[(bone * 4 + column) * width + frame * 3 + axis] = offset[axis * 4 + column];
                    }
                }
            }
        }
        let rows = bones * 4;
        let mut products = vec![0.0; rows * rows];
        let view = View::new(&matrix, rows, width);
        multiply(&mut products, 0.0, view, view.transposed());
        let mut pairs = Vec::with_capacity(bones * (bones + 1) / 2);
        for j in 0..bones {
            for k in 0..=j {
                let q = |a: usize, b: usize| products[(j * 4 + a) * rows + k * 4 + b];
                let both = |a: usize, b: usize| q(a, b) + q(b, a);
                pairs.push([
                    q(0, 0),
                    both(0, 1),
                    both(0, 2),
                    both(0, 3),
                    q(1, 1),
                    both(1, 2),
                    both(1, 3),
                    q(2, 2),
                    both(2, 3),
                    q(3, 3),
                ]);
            }
        }
        Self { bones, frames, matrix, pairs }
    }

    /// `Σ_t N_jᵀ δ` for a run of vertices, `[vertices][B · 4]`.
    fn project(&self, animation: &Animation, first: usize, count: usize, out: &mut Vec<f64>) {
        let width = self.frames * 3;
        let rows = &animation.displacements[first * width..(first + count) * width];
        let rows: Vec<f64> = rows.iter().map(|d| f64::from(*d)).collect();
        out.clear();
        out.resize(count * self.bones * 4, 0.0);
        let bones = View::new(&self.matrix, self.bones * 4, width);
        multiply(out, 0.0, View::new(&rows, count, width), bones.transposed());
    }

    /// The Gram matrix of a vertex, `[B × B]`. `own`: room for `[B]` numbers.
    fn gram(&self, point: [f64; 4], square: f64, projection: &[f64], own: &mut Vec<f64>, out: &mut [f64]) {
        let [x, y, z, _] = point;
        let products = [x * x, x * y, x * z, x, y * y, y * z, y, z * z, z, 1.0];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        own.clear();
        own.extend(projection.chunks_exact(4).map(|b| dot(b, &point)));
        let mut pair = self.pairs.iter();
        for j in 0..self.bones {
            for (k, coefficients) in pair.by_ref().take(j + 1).enumerate() {
                let entry = dot(coefficients, &products) - own[j] - own[k] + square;
                out[j * self.bones + k] = entry;
                out[k * self.bones + j] = entry;
            }
        }
    }

    /// Calls `each` with every vertex and its Gram matrix, blocks in parallel; results in order.
    fn for_vertices<S: Default, T: Send>(
        &self,
        animation: &Animation,
        each: impl Fn(&mut S, usize, &Gram<'_>) -> T + Sync,
    ) -> Vec<T> {
        let block = |first: usize| {
            let count = BLOCK.min(animation.vertices() - first);
            let (mut projections, mut own) = (Vec::new(), Vec::new());
            self.project(animation, first, count, &mut projections);
            let mut entries = vec![0.0; self.bones * self.bones];
            let mut scratch = S::default();
            let mut results = Vec::with_capacity(count);
            for (vertex, projection) in (first..).zip(projections.chunks_exact(self.bones * 4)) {
                let (point, square) = (animation.point(vertex), animation.squares[vertex]);
                self.gram(point, square, projection, &mut own, &mut entries);
                let gram = Gram { entries: &entries, count: self.bones };
                results.push(each(&mut scratch, vertex, &gram));
            }
            results
        };
        let firsts: Vec<usize> = (0..animation.vertices()).step_by(BLOCK).collect();
        let blocks: Vec<Vec<T>> = firsts.into_par_iter().map(block).collect();
        blocks.into_iter().flatten().collect()
    }

    /// The one bone that carries each vertex best, and the squared distance that it leaves.
    pub fn nearest(&self, animation: &Animation) -> Vec<(usize, f64)> {
        self.for_vertices(animation, |_: &mut (), _, gram| {
            let costs = (0..gram.count).map(|bone| (bone, gram.entries[bone * gram.count + bone]));
            let (bone, cost) = costs.min_by(|a, b| a.1.total_cmp(&b.1)).expect("at least one bone");
            (bone, cost.max(0.0))
        })
    }
}

/// How the bones and vertices of a state do.
pub struct Review {
    /// Squared distance of every vertex, summed over frames.
    pub costs: Vec<f64>,
    /// By how much the sum of squares would grow without each bone, if the others took over.
    pub losses: Vec<f64>,
}

/// Solves the weights of all vertices; no vertex gets worse.
pub fn solve_weights(animation: &Animation, state: &mut State, influences: usize) {
    let tables = BoneTables::new(state, animation.frames());
    let rows = &state.rows;
    state.rows = tables.for_vertices(animation, |simplex: &mut Simplex, vertex, gram| {
        let mut row = rows[vertex].clone();
        simplex.solve(gram, &mut row, influences);
        row
    });
}

/// Which bones are missed least and which vertices are missed most.
pub fn review(animation: &Animation, state: &State) -> Review {
    let tables = BoneTables::new(state, animation.frames());
    let each = tables.for_vertices(animation, |simplex: &mut Simplex, vertex, gram| {
        let row = &state.rows[vertex];
        let mut losses = Vec::with_capacity(row.len());
        simplex.losses(gram, row, &mut losses);
        (gram.cost(row).max(0.0), losses)
    });
    let mut review = Review { costs: Vec::with_capacity(each.len()), losses: vec![0.0; state.bones] };
    for (row, (cost, losses)) in state.rows.iter().zip(each) {
        for ((bone, _), loss) in row.iter().zip(losses) {
            review.losses[usize::from(*bone)] += loss.max(0.0);
        }
        review.costs.push(cost);
    }
    review
}
