//! Dense linear algebra in f64 on row-major slices: the one door to `faer`. [`SymmetricEigen`] for principal
//! components, [`Cholesky`] for normal equations, [`solve`] for systems that are not positive definite.
//! Behind the feature `linear-algebra`, which the run time never asks for. 3×3 matrices live in
//! [`crate::rotation`]: inner loops decompose millions of them, and a call of `faer` allocates. Factors that gain
//! and lose rows from one solve to the next stay with their solvers: `faer` would begin anew each time.

use faer::linalg::solvers::{Llt, SolveCore};
use faer::{Conj, Mat, MatMut, MatRef, Side};
use thiserror::Error;

/// Why a matrix has no decomposition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EigenError {
    /// The array is not `[n][n]`.
    #[error("{got} numbers for a square matrix of {size} rows")]
    Count {
        /// Given.
        got: usize,
        /// Rows of the matrix.
        size: usize,
    },
    /// A number is NaN or infinite.
    #[error("the matrix is not finite in row {row}, column {column}")]
    NonFinite {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
    },
    /// An off-diagonal element did not go to zero.
    #[error("the eigenvalues did not converge")]
    NoConvergence,
}

/// `A = Σ_k λ_k q_k q_kᵀ` with orthonormal `q_k`, eigenvalues descending.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricEigen {
    /// `λ_k`, `[n]`, descending.
    pub values: Vec<f64>,
    /// `q_k` one per row, `[n][n]`. The largest component of each is positive, so that the same matrix
    /// always gives the same vectors.
    pub vectors: Vec<f64>,
}

impl SymmetricEigen {
    /// Decomposes `matrix`, `[n][n]` by rows; only its lower triangle counts.
    pub fn new(matrix: &[f64], n: usize) -> Result<Self, EigenError> {
        if matrix.len() != n * n {
            return Err(EigenError::Count { got: matrix.len(), size: n });
        }
        if let Some(place) = matrix.iter().position(|value| !value.is_finite()) {
            return Err(EigenError::NonFinite { row: place / n, column: place % n });
        }
        if n == 0 {
            return Ok(Self { values: Vec::new(), vectors: Vec::new() });
        }
        // A power of two brings the numbers near one without rounding, so that no square over- or underflows.
        let largest = matrix.iter().fold(0.0f64, |best, v| best.max(v.abs()));
        let exponent = if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0) as i32 } else { 0 };
        let scale = 2f64.powi(exponent);
        let scaled: Vec<f64> = matrix.iter().map(|v| v / scale).collect();
        let eigen = MatRef::from_row_major_slice(&scaled, n, n)
            .self_adjoint_eigen(Side::Lower)
            .map_err(|_| EigenError::NoConvergence)?;
        // Ascending there, descending here.
        let values = eigen.S().column_vector().iter().rev().map(|value| value * scale).collect();
        let mut vectors = Vec::with_capacity(n * n);
        for column in eigen.U().col_iter().rev() {
            let largest = column.iter().fold(0.0f64, |best, v| if v.abs() > best.abs() { *v } else { best });
            let sign = if largest < 0.0 { -1.0 } else { 1.0 };
            vectors.extend(column.iter().map(|v| v * sign));
        }
        Ok(Self { values, vectors })
    }

    /// Eigenvector `k`, `[n]`.
    pub fn vector(&self, k: usize) -> &[f64] {
        let n = self.values.len();
        &self.vectors[k * n..(k + 1) * n]
    }
}

/// `A = L Lᵀ` of a symmetric positive definite matrix, factored once for many right-hand sides.
#[derive(Debug, Clone)]
pub struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Factors `matrix`, `[n][n]` by rows, of which only the lower triangle counts; `None` where it is not
    /// positive definite.
    pub fn new(matrix: &[f64], n: usize) -> Option<Self> {
        let factor = MatRef::from_row_major_slice(matrix, n, n).llt(Side::Lower).ok()?;
        // A NaN compares with nothing and would pass for a pivot.
        let usable = factor.L().diagonal().column_vector().iter().all(|pivot| pivot.is_finite());
        usable.then_some(Self(factor))
    }

    /// `right ← A⁻¹ right`, `[n][columns]` by rows.
    pub fn solve(&self, right: &mut [f64], columns: usize) {
        let n = self.0.L().nrows();
        self.0.solve_in_place_with_conj(Conj::No, MatMut::from_row_major_slice_mut(right, n, columns));
    }

    /// `A⁻¹`, `[n][n]`.
    pub fn inverse(&self) -> Vec<f64> {
        let n = self.0.L().nrows();
        let mut inverse = vec![0.0; n * n];
        (0..n).for_each(|k| inverse[k * n + k] = 1.0);
        self.solve(&mut inverse, n);
        inverse
    }

    /// `L`, `[n][n]` by rows, zero above the diagonal.
    pub fn lower(&self) -> Vec<f64> {
        let lower = self.0.L();
        let row = |i: usize| (0..lower.ncols()).map(move |j| if j <= i { lower[(i, j)] } else { 0.0 });
        (0..lower.nrows()).flat_map(row).collect()
    }

    /// The least square on the diagonal of `L`: how much of some row those before it leave unexplained.
    pub fn least_pivot(&self) -> f64 {
        self.0
            .L()
            .diagonal()
            .column_vector()
            .iter()
            .fold(f64::INFINITY, |least, pivot| least.min(pivot * pivot))
    }
}

/// The solution of `A x = right` by elimination with row pivots; `A` is `[n][n]` by rows. `None` where a pivot
/// is at or below `least`.
pub fn solve(matrix: &[f64], right: &[f64], least: f64) -> Option<Vec<f64>> {
    let n = right.len();
    let factor = MatRef::from_row_major_slice(matrix, n, n).partial_piv_lu();
    if !factor.U().diagonal().column_vector().iter().all(|pivot| pivot.abs() > least) {
        return None;
    }
    let mut out = right.to_vec();
    factor.solve_in_place_with_conj(Conj::No, MatMut::from_column_major_slice_mut(&mut out, n, 1));
    out.iter().all(|value| value.is_finite()).then_some(out)
}

/// Orthonormal columns that span those of `matrix`, `[rows][columns]` by rows, with `rows ≥ columns`, in place.
/// Columns that depend on others become directions of their own.
pub fn orthonormalise_columns(matrix: &mut [f32], rows: usize, columns: usize) {
    let basis: Mat<f32> = MatRef::from_row_major_slice(matrix, rows, columns).qr().compute_thin_Q();
    MatMut::from_row_major_slice_mut(matrix, rows, columns).copy_from(basis);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use proptest::prelude::*;

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Largest element of `|A − QΛQᵀ|` and of `|QQᵀ − I|`.
    fn misfit(a: &[f64], n: usize, eigen: &SymmetricEigen) -> (f64, f64) {
        let (mut fit, mut orthogonal) = (0.0f64, 0.0f64);
        let mut weighted = vec![0.0; n * n];
        for k in 0..n {
            for i in 0..n {
                weighted[i * n + k] = eigen.vector(k)[i] * eigen.values[k];
            }
        }
        let mut columns = vec![0.0; n * n];
        for k in 0..n {
            for i in 0..n {
                columns[i * n + k] = eigen.vector(k)[i];
            }
        }
        for i in 0..n {
            for j in 0..=i {
                let value = dot(&weighted[i * n..(i + 1) * n], &columns[j * n..(j + 1) * n]);
                fit = fit.max((value - a[i * n + j]).abs());
                let unit = dot(eigen.vector(i), eigen.vector(j));
                orthogonal = orthogonal.max((unit - f64::from(u8::from(i == j))).abs());
            }
        }
        (fit, orthogonal)
    }

    fn random_symmetric(n: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let value = random.normal();
                a[i * n + j] = value;
                a[j * n + i] = value;
            }
        }
        a
    }

    /// What rounding can do to an n × n product of numbers of size `scale`.
    fn tolerance(n: usize, scale: f64) -> f64 {
        30.0 * n as f64 * f64::EPSILON * scale.max(1.0)
    }

    #[test]
    fn known_matrix() {
        // Second difference of length 3: 2 − √2, 2, 2 + √2.
        let a = [2.0, -1.0, 0.0, -1.0, 2.0, -1.0, 0.0, -1.0, 2.0];
        let eigen = SymmetricEigen::new(&a, 3).expect("finite");
        let root = 2f64.sqrt();
        for (value, want) in eigen.values.iter().zip([2.0 + root, 2.0, 2.0 - root]) {
            assert!((value - want).abs() < tolerance(3, 4.0));
        }
        let want = [0.5f64, -root / 2.0, 0.5];
        assert!(eigen.vector(0).iter().zip(want).all(|(a, b)| (a + b).abs() < tolerance(3, 1.0)));
    }

    #[test]
    fn decomposition_holds_at_many_sizes() {
        for n in [0, 1, 2, 3, 4, 5, 17, 64, 101] {
            let a = random_symmetric(n, n as u64);
            let eigen = SymmetricEigen::new(&a, n).expect("finite");
            let (fit, orthogonal) = misfit(&a, n, &eigen);
            assert!(fit <= tolerance(n, (n as f64).sqrt() * 2.0), "{n}: {fit}");
            assert!(orthogonal <= tolerance(n, 1.0), "{n}: {orthogonal}");
            assert!(eigen.values.windows(2).all(|pair| pair[0] >= pair[1]));
        }
    }

    #[test]
    fn four_hundred_rows_take_a_moment() {
        let n = 400;
        let a = random_symmetric(n, 7);
        let start = std::time::Instant::now();
        let eigen = SymmetricEigen::new(&a, n).expect("finite");
        let seconds = start.elapsed().as_secs_f64();
        let (fit, orthogonal) = misfit(&a, n, &eigen);
        assert!(fit < tolerance(n, 40.0) && orthogonal < tolerance(n, 1.0), "{fit} {orthogonal}");
        // Takes a tenth of that on an idle core; the bound only catches a slip in the order of growth.
        assert!(seconds < 5.0, "{seconds} s");
    }

    #[test]
    fn gram_matrices_of_low_rank_have_that_many_values() {
        // Rank 3 of 40: the rest is zero to rounding, and nothing is clearly negative.
        let (n, rank) = (40, 3);
        let mut random = Random::new(11);
        let factors: Vec<f64> = (0..n * rank).map(|_| random.normal() * 100.0).collect();
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = dot(&factors[i * rank..(i + 1) * rank], &factors[j * rank..(j + 1) * rank]);
            }
        }
        let eigen = SymmetricEigen::new(&a, n).expect("finite");
        assert!(eigen.values[2] > 1e4);
        assert!(eigen.values[3..].iter().all(|v| v.abs() < tolerance(n, eigen.values[0])));
    }

    #[test]
    fn frames_that_repeat_do_not_stall() {
        // A cycle walked several times: rows repeat exactly, and only a few directions are there at all.
        let n = 61;
        for (rank, period) in [(1, 2), (2, 2), (3, 5), (11, 60), (4, 1), (7, 3)] {
            let mut random = Random::new(rank as u64);
            let frames: Vec<f64> = (0..period * rank).map(|_| random.normal()).collect();
            let row = |i: usize| &frames[i % period * rank..(i % period + 1) * rank];
            let a: Vec<f64> = (0..n * n).map(|place| dot(row(place / n), row(place % n))).collect();
            let eigen = SymmetricEigen::new(&a, n).expect("converges");
            let (fit, orthogonal) = misfit(&a, n, &eigen);
            assert!(fit <= tolerance(n, eigen.values[0]), "rank {rank}, period {period}: {fit}");
            assert!(orthogonal <= tolerance(n, 1.0), "rank {rank}, period {period}: {orthogonal}");
        }
    }

    #[test]
    fn equal_and_zero_matrices_work() {
        let zero = SymmetricEigen::new(&[0.0; 25], 5).expect("finite");
        assert_eq!(zero.values, [0.0; 5]);
        let mut identity = vec![0.0; 36];
        (0..6).for_each(|k| identity[k * 7] = 3.0);
        let eigen = SymmetricEigen::new(&identity, 6).expect("finite");
        assert_eq!(eigen.values, [3.0; 6]);
        assert!(misfit(&identity, 6, &eigen).0 == 0.0);
    }

    #[test]
    fn bad_matrices_are_named() {
        assert_eq!(SymmetricEigen::new(&[1.0; 3], 2), Err(EigenError::Count { got: 3, size: 2 }));
        let nan = SymmetricEigen::new(&[1.0, 0.0, f64::NAN, 1.0], 2);
        assert_eq!(nan, Err(EigenError::NonFinite { row: 1, column: 0 }));
    }

    proptest! {
        #[test]
        fn trace_and_squares_are_kept(n in 1usize..24, seed in 0u64..1000, exponent in -300i32..300) {
            let scale = 10f64.powi(exponent);
            let a: Vec<f64> = random_symmetric(n, seed).into_iter().map(|v| v * scale).collect();
            let eigen = SymmetricEigen::new(&a, n).expect("finite");
            let trace: f64 = (0..n).map(|k| a[k * n + k]).sum();
            let norm = a.iter().map(|v| (v / scale).powi(2)).sum::<f64>().sqrt();
            let kept = eigen.values.iter().map(|v| (v / scale).powi(2)).sum::<f64>().sqrt();
            let tolerance = 100.0 * (n * n) as f64 * f64::EPSILON * norm;
            prop_assert!((eigen.values.iter().sum::<f64>() - trace).abs() <= tolerance * scale);
            prop_assert!((kept - norm).abs() <= tolerance);
        }
    }

    /// `[n][n]` times `[n][columns]`.
    fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
        let columns = b.len() / n;
        let element = |place: usize| {
            (0..n).map(|k| a[place / columns * n + k] * b[k * columns + place % columns]).sum()
        };
        (0..b.len()).map(element).collect()
    }

    fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
    }

    #[test]
    fn factors_inverses_and_solutions_multiply_back() {
        for n in [1, 2, 5, 17, 60] {
            let root = random_symmetric(n, n as u64);
            let mut a = product(&root, &root, n);
            (0..n).for_each(|k| a[k * n + k] += 1.0);
            let factor = Cholesky::new(&a, n).expect("positive definite");
            let lower = factor.lower();
            let transposed: Vec<f64> = (0..n * n).map(|place| lower[place % n * n + place / n]).collect();
            let tolerance = tolerance(n, 10.0 * n as f64);
            assert!(largest_difference(&product(&lower, &transposed, n), &a) < tolerance);
            assert!((0..n).all(|i| lower[i * n + i + 1..(i + 1) * n].iter().all(|above| *above == 0.0)));
            let pivots = (0..n).map(|k| lower[k * n + k].powi(2)).fold(f64::INFINITY, f64::min);
            assert_eq!(factor.least_pivot(), pivots);
            let mut identity = vec![0.0; n * n];
            (0..n).for_each(|k| identity[k * n + k] = 1.0);
            assert!(largest_difference(&product(&a, &factor.inverse(), n), &identity) < tolerance);
            let right: Vec<f64> = (0..3 * n).map(|k| (k as f64).sin()).collect();
            let mut x = right.clone();
            factor.solve(&mut x, 3);
            assert!(largest_difference(&product(&a, &x, n), &right) < tolerance);
            // Only the lower triangle counts.
            let mut half = a.clone();
            (0..n).for_each(|i| half[i * n + i + 1..(i + 1) * n].fill(f64::NAN));
            assert_eq!(Cholesky::new(&half, n).expect("the lower half is the same").lower(), lower);
        }
        assert!(Cholesky::new(&[1.0, 2.0, 2.0, 1.0], 2).is_none(), "indefinite");
        assert!(Cholesky::new(&[f64::NAN], 1).is_none());
    }

    #[test]
    fn systems_with_zeros_on_the_diagonal_are_solved_and_singular_ones_refused() {
        let a = [0.0, 2.0, 1.0, 2.0, 0.0, 1.0, 1.0, 1.0, 0.0];
        let x = solve(&a, &[3.0, 4.0, 5.0], 1e-12).expect("regular");
        assert!(largest_difference(&product(&a, &x, 3), &[3.0, 4.0, 5.0]) < tolerance(3, 5.0));
        assert_eq!(solve(&[1.0, 2.0, 2.0, 4.0], &[1.0, 1.0], 1e-12), None);
        assert_eq!(solve(&[f64::NAN], &[1.0], 1e-12), None);
    }

    #[test]
    fn columns_become_orthonormal_and_span_the_same() {
        let (rows, columns) = (30, 4);
        let mut random = Random::new(3);
        let mut matrix: Vec<f32> = (0..rows * columns).map(|_| random.normal() as f32).collect();
        // The third column depends on the first two.
        matrix.chunks_exact_mut(columns).for_each(|row| row[2] = row[0] + row[1]);
        let before = matrix.clone();
        orthonormalise_columns(&mut matrix, rows, columns);
        let column = |of: &[f32], k: usize| -> Vec<f64> {
            of.iter().skip(k).step_by(columns).map(|x| f64::from(*x)).collect()
        };
        let basis: Vec<Vec<f64>> = (0..columns).map(|k| column(&matrix, k)).collect();
        for k in 0..columns {
            for other in 0..columns {
                let unit = f64::from(u8::from(k == other));
                assert!((dot(&basis[k], &basis[other]) - unit).abs() < 1e-5, "{k} {other}");
            }
            let mut left = column(&before, k);
            for axis in &basis {
                let along = dot(&left, axis);
                left.iter_mut().zip(axis).for_each(|(l, a)| *l -= along * a);
            }
            assert!(dot(&left, &left).sqrt() < 1e-5, "{k}");
        }
    }
}
