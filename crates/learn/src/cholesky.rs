//! The Cholesky factor of a small dense matrix, in double precision: what least squares are solved with.

/// `G = L Lᵀ`, `[n × n]` by rows.
pub(crate) struct Cholesky {
    n: usize,
    /// `L`; what is above the diagonal is not read.
    lower: Vec<f64>,
}

impl Cholesky {
    /// Of a symmetric matrix that is positive definite but for rounding: a pivot that rounding made negative counts as
    /// the smallest number there is.
    pub fn new(mut gram: Vec<f64>, n: usize) -> Self {
        for row in 0..n {
            let (before, own) = gram.split_at_mut(row * n);
            for column in 0..row {
                let other = &before[column * n..column * n + n];
                let sum: f64 = own[..column].iter().zip(other).map(|(a, b)| a * b).sum();
                own[column] = (own[column] - sum) / other[column];
            }
            let sum: f64 = own[..row].iter().map(|a| a * a).sum();
            own[row] = (own[row] - sum).max(f64::MIN_POSITIVE).sqrt();
        }
        Self { n, lower: gram }
    }

    /// `x ← L⁻¹ x`, rows of `width` numbers, `[n × width]`.
    pub fn forward(&self, x: &mut [f64], width: usize) {
        for row in 0..self.n {
            for column in 0..row {
                subtract_row(x, width, row, column, self.lower[row * self.n + column]);
            }
            let pivot = self.lower[row * self.n + row];
            x[row * width..(row + 1) * width].iter_mut().for_each(|x| *x /= pivot);
        }
    }

    /// `x ← L⁻ᵀ x`, rows of `width` numbers, `[n × width]`.
    pub fn backward(&self, x: &mut [f64], width: usize) {
        for row in (0..self.n).rev() {
            for later in row + 1..self.n {
                subtract_row(x, width, row, later, self.lower[later * self.n + row]);
            }
            let pivot = self.lower[row * self.n + row];
            x[row * width..(row + 1) * width].iter_mut().for_each(|x| *x /= pivot);
        }
    }

    /// `x ← G⁻¹ x`, rows of `width` numbers, `[n × width]`.
    pub fn solve(&self, x: &mut [f64], width: usize) {
        self.forward(x, width);
        self.backward(x, width);
    }
}

/// `row_i −= factor · row_k`.
fn subtract_row(rows: &mut [f64], m: usize, i: usize, k: usize, factor: f64) {
    if factor == 0.0 {
        return;
    }
    let (low, high) = rows.split_at_mut(i.max(k) * m);
    let (target, source) = if i > k {
        (&mut high[..m], &low[k * m..(k + 1) * m])
    } else {
        (&mut low[i * m..(i + 1) * m], &high[..m])
    };
    target.iter_mut().zip(source).for_each(|(t, s)| *t -= factor * s);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve_and_both_halves_make_the_whole() {
        let g = vec![4.0, 2.0, 0.6, 2.0, 5.0, 1.0, 0.6, 1.0, 3.0];
        let cholesky = Cholesky::new(g.clone(), 3);
        let right = vec![1.0, -1.0, 2.0, 0.5, 3.0, 0.0];
        let mut x = right.clone();
        cholesky.solve(&mut x, 2);
        for row in 0..3 {
            for column in 0..2 {
                let product: f64 = (0..3).map(|k| g[row * 3 + k] * x[k * 2 + column]).sum();
                assert!((product - right[row * 2 + column]).abs() < 1e-12);
            }
        }
    }
}
