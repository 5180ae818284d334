//! Products with sparse matrices as gathers and sums of a fixed order: `out_r = Σ_k w_rk x_{i_rk}`, where
//! `x` and `out` are `[poses, 3, …]`. Long rows are summed in pieces, level by level, so that no thread of a
//! GPU walks far. Start at [`Sparse::new`].

use burn_tensor::backend::Backend;
use burn_tensor::{Int, Tensor, TensorData};

/// Entries of every row: where, and its weight.
pub(super) type Rows = Vec<Vec<(u32, f32)>>;

/// Most entries that one thread sums.
const WIDEST: usize = 32;

/// The matrix whose columns are these rows.
pub(super) fn transposed(rows: &Rows, columns: usize) -> Rows {
    let mut out = vec![Vec::new(); columns];
    for (row, entries) in (0u32..).zip(rows) {
        for (column, weight) in entries {
            out[*column as usize].push((row, *weight));
        }
    }
    out
}

/// A matrix on the device.
pub(super) struct Sparse<B: Backend> {
    levels: Vec<Level<B>>,
}

struct Level<B: Backend> {
    /// `[width · rows]`: first entries of all rows, then the second ones, and so on.
    indices: Tensor<B, 1, Int>,
    /// `[1, 1, width · rows]`; zero where a row has no entry.
    weights: Tensor<B, 3>,
    width: usize,
    rows: usize,
}

impl<B: Backend> Sparse<B> {
    /// Puts a matrix there.
    pub fn new(rows: Rows, device: &B::Device) -> Self {
        let mut levels = Vec::new();
        let mut rows = rows;
        loop {
            let (level, next) = Level::new(&rows, device);
            levels.push(level);
            match next {
                None => return Self { levels },
                Some(next) => rows = next,
            }
        }
    }

    /// The product.
    pub fn apply(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        self.levels.iter().fold(x, |x, level| level.apply(x))
    }
}

/// The width that moves the fewest numbers.
fn best_width(rows: &Rows) -> usize {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let cost = |width: usize| {
        let pieces: usize = rows.iter().map(|row| row.len().div_ceil(width).max(1)).sum();
        // Numbers that are gathered here, and pieces that are written and gathered again.
        pieces * width + if longest > width { 3 * pieces } else { 0 }
    };
    // Pieces of one entry would make no row shorter.
    (2.min(longest)..=WIDEST.min(longest)).min_by_key(|width| cost(*width)).unwrap_or(1)
}

impl<B: Backend> Level<B> {
    /// Sums pieces of rows; the second answer sums the pieces where a row has more than one.
    fn new(rows: &Rows, device: &B::Device) -> (Self, Option<Rows>) {
        let width = best_width(rows);
        let mut pieces: Vec<&[(u32, f32)]> = Vec::new();
        let mut next: Rows = Vec::with_capacity(rows.len());
        for row in rows {
            let first = pieces.len() as u32;
            if row.is_empty() {
                pieces.push(&[]);
            }
            pieces.extend(row.chunks(width));
            next.push((first..pieces.len() as u32).map(|piece| (piece, 1.0)).collect());
        }
        let entry = |place: usize| {
            let (slot, piece) = (place / pieces.len(), place % pieces.len());
            pieces[piece].get(slot).copied().unwrap_or((0, 0.0))
        };
        let count = width * pieces.len();
        let indices: Vec<i32> = (0..count).map(|place| entry(place).0 as i32).collect();
        let weights: Vec<f32> = (0..count).map(|place| entry(place).1).collect();
        let level = Self {
            indices: Tensor::from_data(TensorData::new(indices, [count]), device),
            weights: Tensor::from_data(TensorData::new(weights, [1, 1, count]), device),
            width,
            rows: pieces.len(),
        };
        let split = pieces.len() > rows.len();
        (level, split.then_some(next))
    }

    fn apply(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let [poses, three, _] = x.dims();
        let terms = x.select(2, self.indices.clone()).mul(self.weights.clone());
        match self.width {
            1 => terms,
            width => {
                terms.reshape([poses, three, width, self.rows]).sum_dim(2).reshape([poses, three, self.rows])
            }
        }
    }
}
