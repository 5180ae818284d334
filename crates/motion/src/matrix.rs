//! The few products of dense matrices that latent spaces need, by rows, in f64.

/// `A B`: `a` is `[m][k]`, `b` is `[k][n]`, the result `[m][n]`, all by rows.
pub(crate) fn product(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    multiply(a, b, [m, k, n], [k as isize, 1], [n as isize, 1])
}

/// `A Bᵀ`: `a` is `[m][k]`, `b` is `[n][k]`.
pub(crate) fn product_transposed(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    multiply(a, b, [m, k, n], [k as isize, 1], [1, k as isize])
}

/// `Aᵀ B`: `a` is `[k][m]`, `b` is `[k][n]`.
pub(crate) fn transposed_product(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    multiply(a, b, [m, k, n], [1, m as isize], [n as isize, 1])
}

/// Strides are from row to row and from column to column.
fn multiply(a: &[f64], b: &[f64], [m, k, n]: [usize; 3], a_step: [isize; 2], b_step: [isize; 2]) -> Vec<f64> {
    assert!(a.len() == m * k && b.len() == k * n, "matrices have the sizes that are given");
    let mut out = vec![0.0; m * n];
    if m * n * k == 0 {
        return out;
    }
    // SAFETY: the assertion holds both inputs to their sizes, the strides stay within them (each is by rows or its
    // transpose), and `out` has `m` rows of `n` numbers.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            a_step[1],
            a_step[0],
            b.as_ptr(),
            b_step[1],
            b_step[0],
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
    out
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_sums_that_they_stand_for() {
        let (m, k, n) = (3, 4, 5);
        let a: Vec<f64> = (0..m * k).map(|i| (i as f64 * 1.7).sin()).collect();
        let b: Vec<f64> = (0..k * n).map(|i| (i as f64 * 0.9).cos()).collect();
        let transpose = |x: &[f64], rows: usize, columns: usize| -> Vec<f64> {
            (0..rows * columns).map(|i| x[(i % rows) * columns + i / rows]).collect()
        };
        let slow: Vec<f64> =
            (0..m * n).map(|i| (0..k).map(|j| a[(i / n) * k + j] * b[j * n + i % n]).sum()).collect();
        let same = |x: Vec<f64>| x.iter().zip(&slow).all(|(x, y)| (x - y).abs() < 1e-12);
        assert!(same(product(&a, &b, m, k, n)));
        assert!(same(product_transposed(&a, &transpose(&b, k, n), m, k, n)));
        assert!(same(transposed_product(&transpose(&a, m, k), &b, m, k, n)));
    }
}
