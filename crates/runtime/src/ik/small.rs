//! Small dense systems, a few dozen unknowns: what steps of inverse kinematics solve.

/// `Σ a b`, in eight sums, so that it runs in lanes.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (a8, b8) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a8.0.iter().zip(b8.0) {
        (0..8).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    sums.iter().sum::<f64>() + a8.1.iter().zip(b8.1).map(|(a, b)| a * b).sum::<f64>()
}

/// Solves `A x = b` for a symmetric positive definite `A` `[n × n]` by Cholesky's method, in place: `A` is overwritten by
/// its factor, `b` by the answer. `false`, with nothing said of `b`, where `A` is not positive definite or not finite.
pub fn solve_positive(a: &mut [f64], b: &mut [f64]) -> bool {
    let n = b.len();
    for column in 0..n {
        for row in column..n {
            let sum = dot(&a[row * n..][..column], &a[column * n..][..column]);
            let rest = a[row * n + column] - sum;
            if row > column {
                a[row * n + column] = rest / a[column * n + column];
            } else if rest > 0.0 && rest.is_finite() {
                a[row * n + column] = rest.sqrt();
            } else {
                return false;
            }
        }
    }
    for row in 0..n {
        let sum: f64 = (0..row).map(|k| a[row * n + k] * b[k]).sum();
        b[row] = (b[row] - sum) / a[row * n + row];
    }
    for row in (0..n).rev() {
        let sum: f64 = (row + 1..n).map(|k| a[k * n + row] * b[k]).sum();
        b[row] = (b[row] - sum) / a[row * n + row];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved_and_a_singular_one_refused() {
        let a = [4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 2.0];
        let x = [1.0, -2.0, 0.5];
        let mut b: Vec<f64> = (0..3).map(|row| (0..3).map(|k| a[row * 3 + k] * x[k]).sum()).collect();
        assert!(solve_positive(&mut a.clone(), &mut b));
        assert!(b.iter().zip(x).all(|(b, x)| (b - x).abs() < 1e-12), "{b:?}");
        assert!(!solve_positive(&mut [1.0, 1.0, 1.0, 1.0], &mut [1.0, 2.0]));
        assert!(!solve_positive(&mut [f64::NAN], &mut [1.0]));
    }
}
