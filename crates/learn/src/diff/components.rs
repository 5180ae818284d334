//! Principal components by snapshots: of the differential coordinates for the frozen last layer, and of reconstructed
//! vertices for the folded map. Products of poses (`X Xᵀ`) are far smaller than those of coordinates (`Xᵀ X`) and have
//! the same spectrum.

use crate::matrix::{View, multiply};
use rayon::prelude::*;
use understudy_core::linear_algebra::SymmetricEigen;

/// Columns whose products are summed at once.
const CHUNK: usize = 2048;
/// Components of which the variance is a smaller share of the first one's are rounding errors.
const LEAST_SHARE: f64 = 1e-11;

/// An orthonormal basis about a mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    /// `[width]`.
    pub mean: Vec<f32>,
    /// `[count × width]`, rows orthonormal, most variance first.
    pub rows: Vec<f32>,
    /// Root mean squares of the coefficients.
    pub deviations: Vec<f64>,
}

impl Basis {
    /// At most `most` components of `rows` `[n × width]`, from which the mean is taken in place.
    pub fn new(rows: &mut [f32], width: usize, most: usize) -> Self {
        let n = rows.len() / width.max(1);
        let mut sums = vec![0.0f64; width];
        for row in rows.chunks_exact(width) {
            sums.iter_mut().zip(row).for_each(|(sum, r)| *sum += f64::from(*r));
        }
        let mean: Vec<f32> = sums.iter().map(|sum| (sum / n.max(1) as f64) as f32).collect();
        rows.par_chunks_exact_mut(width).for_each(|row| row.iter_mut().zip(&mean).for_each(|(r, m)| *r -= m));
        let rows = &*rows;
        // In f64, as small components would drown in the rounding of large ones; summed in the order of columns.
        let chunk = |start: usize| {
            let size = CHUNK.min(width - start);
            let part: Vec<f64> = rows
                .chunks_exact(width)
                .flat_map(|row| row[start..start + size].iter().map(|r| f64::from(*r)))
                .collect();
            let mut products = vec![0.0f64; n * n];
            let view = View::new(&part, n, size);
            multiply(&mut products, 0.0, view, view.transposed());
            products
        };
        let starts: Vec<usize> = (0..width).step_by(CHUNK).collect();
        let mut gram = vec![0.0f64; n * n];
        // A few at a time: every chunk has a matrix of its own.
        for starts in starts.chunks(8) {
            let products: Vec<Vec<f64>> = starts.par_iter().map(|start| chunk(*start)).collect();
            for product in products {
                gram.iter_mut().zip(product).for_each(|(sum, own)| *sum += own);
            }
        }
        let Ok(eigen) = SymmetricEigen::new(&gram, n) else {
            return Self { mean, rows: Vec::new(), deviations: Vec::new() };
        };
        let first = eigen.values.first().copied().unwrap_or(0.0);
        let least = (LEAST_SHARE * first).max(f64::MIN_POSITIVE);
        let count = eigen.values.iter().take(most).take_while(|value| **value > least).count();
        let mut basis = vec![0.0f32; count * width];
        basis.par_chunks_mut(16 * width).enumerate().for_each(|(block, out)| {
            let own = block * 16..count.min(block * 16 + 16);
            let mut turn = Vec::with_capacity(own.len() * n);
            for k in own.clone() {
                let length = eigen.values[k].sqrt();
                turn.extend(eigen.vector(k).iter().map(|q| (q / length) as f32));
            }
            multiply(out, 0.0, View::new(&turn, own.len(), n), View::new(rows, n, width));
        });
        let deviations = eigen.values[..count].iter().map(|value| (value / n as f64).sqrt()).collect();
        Self { mean, rows: basis, deviations }
    }

    /// Number of components.
    pub fn count(&self) -> usize {
        self.deviations.len()
    }

    /// Keeps the first components.
    pub fn truncate(&mut self, count: usize) {
        self.rows.truncate(count * self.mean.len());
        self.deviations.truncate(count);
    }

    /// The fewest components, in steps of a few, that leave a residual of `rows` (about the mean, overwritten) which is
    /// good enough; all where none does.
    pub fn fewest(&self, rows: &mut [f32], enough: impl Fn(&[f32]) -> bool) -> usize {
        const STEP: usize = 8;
        let width = self.mean.len();
        let mut count = 0;
        while count < self.count() && !enough(rows) {
            let next = self.count().min(count + STEP);
            let axes = &self.rows[count * width..next * width];
            rows.par_chunks_mut(32 * width).for_each(|rows| {
                let (n, size) = (rows.len() / width, next - count);
                let mut scores = vec![0.0f32; n * size];
                let basis = View::new(axes, size, width);
                multiply(&mut scores, 0.0, View::new(rows, n, width), basis.transposed());
                scores.iter_mut().for_each(|score| *score = -*score);
                multiply(rows, 1.0, View::new(&scores, n, size), basis);
            });
            count = next;
        }
        count
    }
}

/// The mean length of triples.
pub fn mean_length(numbers: &[f32]) -> f64 {
    let length = |v: &[f32]| f64::from((v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt());
    numbers.chunks_exact(3).map(length).sum::<f64>() / (numbers.len() / 3).max(1) as f64
}
