//! The few products of dense matrices that latent spaces need, by rows, in f64.

/// `A B`: `a` is `[m][k]`, `b` is `[k][n]`, the result `[m][n]`, all by rows.
pub(crate) fn product(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    add_product(&mut out, 0.0, 1.0, By::rows(a), By::rows(b), [m, k, n]);
    out
}

/// `A Bᵀ`: `a` is `[m][k]`, `b` is `[n][k]`.
pub(crate) fn product_transposed(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    add_product(&mut out, 0.0, 1.0, By::rows(a), By::columns(b), [m, k, n]);
    out
}

/// `Aᵀ B`: `a` is `[k][m]`, `b` is `[k][n]`.
pub(crate) fn transposed_product(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    add_product(&mut out, 0.0, 1.0, By::columns(a), By::rows(b), [m, k, n]);
    out
}

/// A matrix as it lies in memory: by rows, or as the transpose of one by rows.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    numbers: &'a [f64],
    transposed: bool,
}

impl<'a> By<'a> {
    /// As it is.
    pub fn rows(numbers: &'a [f64]) -> Self {
        Self { numbers, transposed: false }
    }

    /// Its transpose.
    pub fn columns(numbers: &'a [f64]) -> Self {
        Self { numbers, transposed: true }
    }

    /// Steps from row to row and from column to column of a `[rows][columns]` operand.
    fn steps(self, rows: usize, columns: usize) -> (isize, isize) {
        if self.transposed { (1, rows as isize) } else { (columns as isize, 1) }
    }
}

/// `out ← old · out + new · A B`, `A` of `[m][k]`, `B` of `[k][n]`.
pub(crate) fn add_product(out: &mut [f64], old: f64, new: f64, a: By<'_>, b: By<'_>, [m, k, n]: [usize; 3]) {
    assert!(
        a.numbers.len() == m * k && b.numbers.len() == k * n && out.len() == m * n,
        "matrices have the sizes that are given"
    );
    if m * n == 0 {
        return;
    }
    let ((a_row, a_column), (b_row, b_column)) = (a.steps(m, k), b.steps(k, n));
    // SAFETY: the assertion holds all three to their sizes, and the steps stay within them (each is by rows or its
    // transpose).
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            old != 0.0,
            a.numbers.as_ptr(),
            a_column,
            a_row,
            b.numbers.as_ptr(),
            b_column,
            b_row,
            old,
            new,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
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
        let mut more = slow.clone();
        add_product(&mut more, -2.0, 3.0, By::rows(&a), By::rows(&b), [m, k, n]);
        assert!(same(more));
    }
}
