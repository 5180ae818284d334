//! Eigenvalues and eigenvectors of a dense symmetric matrix, in f64: what a principal component analysis
//! of a few hundred frames needs. Start at [`SymmetricEigen::new`]. Large sparse systems live elsewhere.

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
    #[error("eigenvalue {index} did not converge")]
    NoConvergence {
        /// Which.
        index: usize,
    },
}

/// `A = Σ_k λ_k q_k q_kᵀ` with orthonormal `q_k`, eigenvalues descending.
#[derive(Debug, Clone, PartialEq)]
pub struct SymmetricEigen {
    /// `λ_k`, `[n]`, descending.
    pub values: Vec<f64>,
    /// `q_k` one a row, `[n][n]`. The largest component of each is positive, so that the same matrix
    /// always gives the same vectors.
    pub vectors: Vec<f64>,
}

impl SymmetricEigen {
    /// Rotations spent on one eigenvalue before giving up; a few are usual.
    const MAX_ROUNDS: usize = 60;

    /// Decomposes `matrix`, `[n][n]` by rows; only its lower triangle counts. Householder reflections
    /// make it tridiagonal, then implicit QL steps with Wilkinson's shift make it diagonal (Golub and
    /// Van Loan, Matrix Computations, section 8.3).
    pub fn new(matrix: &[f64], n: usize) -> Result<Self, EigenError> {
        if matrix.len() != n * n {
            return Err(EigenError::Count { got: matrix.len(), size: n });
        }
        if let Some(place) = matrix.iter().position(|value| !value.is_finite()) {
            return Err(EigenError::NonFinite { row: place / n, column: place % n });
        }
        // A power of two brings the numbers near one without rounding, so that no square over- or underflows.
        let largest = matrix.iter().fold(0.0f64, |best, v| best.max(v.abs()));
        let exponent = if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0) as i32 } else { 0 };
        let scale = 2f64.powi(exponent);
        let mut full: Vec<f64> = matrix.iter().map(|v| v / scale).collect();
        for row in 0..n {
            for column in 0..row {
                full[column * n + row] = full[row * n + column];
            }
        }
        let (mut diagonal, mut beside, mut rows) = tridiagonalise(&mut full, n);
        diagonalise(&mut diagonal, &mut beside, &mut rows, Self::MAX_ROUNDS)?;

        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| diagonal[*b].total_cmp(&diagonal[*a]));
        let values = order.iter().map(|k| diagonal[*k] * scale).collect();
        let mut vectors = Vec::with_capacity(n * n);
        for k in order {
            let row = &rows[k * n..(k + 1) * n];
            let largest = row.iter().fold(0.0f64, |best, v| if v.abs() > best.abs() { *v } else { best });
            let sign = if largest < 0.0 { -1.0 } else { 1.0 };
            vectors.extend(row.iter().map(|v| v * sign));
        }
        Ok(Self { values, vectors })
    }

    /// Eigenvector `k`, `[n]`.
    pub fn vector(&self, k: usize) -> &[f64] {
        let n = self.values.len();
        &self.vectors[k * n..(k + 1) * n]
    }
}

/// `A = Q T Qᵀ` with tridiagonal `T`: gives the diagonal of `T` `[n]`, the elements beside it
/// (`[i]` couples `i` and `i + 1`, the last is 0) and `Qᵀ` by rows. Overwrites `a`.
fn tridiagonalise(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut beside = vec![0.0; n];
    let mut reflections: Vec<Option<Vec<f64>>> = Vec::with_capacity(n);
    let mut product = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let first = k + 1;
        // Row k equals column k; the reflection sends it to a multiple of the first unit vector.
        let mut v: Vec<f64> = a[k * n + first..(k + 1) * n].to_vec();
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let tail: f64 = v[1..].iter().map(|x| x.abs()).sum();
        // Rows that repeat leave residues that shrink by a factor of the rounding unit at every step, until
        // their squares underflow. The matrix is scaled to one: what is this small is nothing.
        if tail < 1e-100 {
            beside[k] = v[0];
            reflections.push(None);
            continue;
        }
        let target = if v[0] > 0.0 { -length } else { length };
        beside[k] = target;
        v[0] -= target;
        let scale = v.iter().map(|x| x * x).sum::<f64>().sqrt().recip();
        v.iter_mut().for_each(|x| *x *= scale);
        // A ← H A H on the trailing block, H = I − 2 v vᵀ: A − v wᵀ − w vᵀ with w = 2 (A v − v (vᵀ A v)).
        let size = n - first;
        for row in 0..size {
            product[row] = dot(&a[(first + row) * n + first..][..size], &v);
        }
        let middle = dot(&product[..size], &v);
        for row in 0..size {
            product[row] = 2.0 * (product[row] - middle * v[row]);
        }
        for row in 0..size {
            let (vr, wr) = (v[row], product[row]);
            let line = &mut a[(first + row) * n + first..][..size];
            for column in 0..size {
                line[column] -= vr * product[column] + wr * v[column];
            }
        }
        reflections.push(Some(v));
    }
    let diagonal = (0..n).map(|k| a[k * n + k]).collect();

    // Qᵀ = H_last … H_0, built from the left, so that only the trailing block is ever full.
    let mut rows = vec![0.0; n * n];
    for k in 0..n {
        rows[k * n + k] = 1.0;
    }
    for (k, v) in reflections.iter().enumerate().rev() {
        let Some(v) = v else { continue };
        let first = k + 1;
        for row in first..n {
            let line = &mut rows[row * n + first..(row + 1) * n];
            let along = 2.0 * dot(line, v);
            line.iter_mut().zip(v).for_each(|(x, v)| *x -= along * v);
        }
    }
    (diagonal, beside, rows)
}

/// Implicit QL on a tridiagonal matrix; every rotation also turns two of `rows`.
fn diagonalise(d: &mut [f64], e: &mut [f64], rows: &mut [f64], max_rounds: usize) -> Result<(), EigenError> {
    let n = d.len();
    // Beside the size of the whole matrix: where it has lost rank, neighbours on the diagonal are rounding
    // noise themselves, and to be small beside them means nothing.
    let size = d.iter().zip(&*e).fold(0.0f64, |most, (d, e)| most.max(d.abs() + e.abs()));
    for low in 0..n {
        let mut rounds = 0;
        loop {
            let negligible = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs()).max(size);
            let high = (low..n - 1).find(|i| negligible(*i)).unwrap_or(n - 1);
            if high == low {
                break;
            }
            rounds += 1;
            if rounds > max_rounds {
                return Err(EigenError::NoConvergence { index: low });
            }
            let ratio = (d[low + 1] - d[low]) / (2.0 * e[low]);
            let shift = d[low] - e[low] / (ratio + ratio.hypot(1.0).copysign(ratio));
            // Chase the bulge from the bottom of the unreduced block up to its top.
            let (mut cosine, mut sine, mut taken) = (1.0, 1.0, 0.0);
            let mut bulge = d[high] - shift;
            let mut split = false;
            for i in (low..high).rev() {
                let (out, inside) = (sine * e[i], cosine * e[i]);
                let radius = out.hypot(bulge);
                e[i + 1] = radius;
                if radius == 0.0 {
                    d[i + 1] -= taken;
                    e[high] = 0.0;
                    split = true;
                    break;
                }
                sine = out / radius;
                cosine = bulge / radius;
                let start = d[i + 1] - taken;
                let change = (d[i] - start) * sine + 2.0 * cosine * inside;
                taken = sine * change;
                d[i + 1] = start + taken;
                bulge = cosine * change - inside;
                rotate_rows(rows, n, i, cosine, sine);
            }
            if !split {
                d[low] -= taken;
                e[low] = bulge;
                e[high] = 0.0;
            }
        }
    }
    Ok(())
}

/// Rows `i` and `i + 1` ← their rotation.
fn rotate_rows(rows: &mut [f64], n: usize, i: usize, cosine: f64, sine: f64) {
    let (a, b) = rows[i * n..(i + 2) * n].split_at_mut(n);
    for (a, b) in a.iter_mut().zip(b) {
        let keep = *b;
        *b = sine * *a + cosine * keep;
        *a = cosine * *a - sine * keep;
    }
}

/// Four partial sums: the order of additions is fixed, and they run side by side.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a4.zip(b4) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use proptest::prelude::*;

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
}
