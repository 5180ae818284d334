//! A convex quadratic program with bounds alone: `minimise ½ dᵀH d + gᵀd`, `low ≤ d ≤ high`. Active sets change in blocks
//! (Portugal, Júdice and Vicente 1994), one by one where blocks would go round in circles, so that it always ends.

/// Rounds of block changes without progress before bounds change one at a time.
const PATIENCE: usize = 3;

/// The solution of a program of `n` variables; `hessian` is symmetric and positive definite, `[n][n]`.
///
/// The dual of (6.4)'s step in the paper is Goldfarb and Idnani's; with bounds alone a primal-dual active set is enough.
pub fn box_qp(hessian: &[f64], gradient: &[f64], low: &[f64], high: &[f64]) -> Vec<f64> {
    let n = gradient.len();
    assert!(hessian.len() == n * n && low.len() == n && high.len() == n, "sizes of one program");
    // −1 at the lower bound, 1 at the upper one, 0 free.
    let mut active = vec![0i8; n];
    let mut d = vec![0.0; n];
    let scale = gradient.iter().fold(0.0f64, |most, g| most.max(g.abs())).max(1e-300);
    let (mut fewest, mut patience) = (usize::MAX, PATIENCE);
    // Each round of single changes strictly descends in Murty's order; the cap only guards against rounding.
    for _ in 0..50 * n + 100 {
        solve_free(hessian, gradient, low, high, &active, &mut d);
        let mut wrong = Vec::new();
        for i in 0..n {
            let to = match active[i] {
                0 if d[i] < low[i] - 1e-12 => -1,
                0 if d[i] > high[i] + 1e-12 => 1,
                0 => continue,
                side => {
                    let slope = gradient[i] + (0..n).map(|j| hessian[i * n + j] * d[j]).sum::<f64>();
                    // Held by its bound while the cost would fall beyond it.
                    if f64::from(side) * slope <= 1e-12 * scale || low[i] == high[i] {
                        continue;
                    }
                    0
                }
            };
            wrong.push((i, to));
        }
        let Some(&(last, to)) = wrong.last() else { break };
        if wrong.len() < fewest {
            (fewest, patience) = (wrong.len(), PATIENCE);
        } else if patience > 0 {
            patience -= 1;
        } else {
            active[last] = to;
            continue;
        }
        wrong.iter().for_each(|(i, to)| active[*i] = *to);
    }
    (0..n).for_each(|i| d[i] = d[i].clamp(low[i], high[i]));
    d
}

/// `d` with the active variables at their bounds and the others where the slope is nothing.
fn solve_free(h: &[f64], g: &[f64], low: &[f64], high: &[f64], active: &[i8], d: &mut [f64]) {
    let n = g.len();
    let free: Vec<usize> = (0..n).filter(|i| active[*i] == 0).collect();
    for i in 0..n {
        match active[i] {
            -1 => d[i] = low[i],
            1 => d[i] = high[i],
            _ => {}
        }
    }
    let m = free.len();
    let held: Vec<usize> = (0..n).filter(|i| active[*i] != 0 && d[*i] != 0.0).collect();
    let mut right: Vec<f64> =
        free.iter().map(|i| -g[*i] - held.iter().map(|j| h[i * n + j] * d[*j]).sum::<f64>()).collect();
    let mut factor = vec![0.0; m * m];
    for (row, i) in free.iter().enumerate() {
        for (column, j) in free[..=row].iter().enumerate() {
            factor[row * m + column] = h[i * n + j];
        }
    }
    cholesky(&mut factor, m);
    for row in 0..m {
        let sum: f64 = (0..row).map(|k| factor[row * m + k] * right[k]).sum();
        right[row] = (right[row] - sum) / factor[row * m + row];
    }
    for row in (0..m).rev() {
        let sum: f64 = (row + 1..m).map(|k| factor[k * m + row] * right[k]).sum();
        right[row] = (right[row] - sum) / factor[row * m + row];
    }
    free.iter().zip(&right).for_each(|(i, value)| d[*i] = *value);
}

/// `A = L Lᵀ` in the lower triangle; a pivot that rounding ate is held up.
fn cholesky(a: &mut [f64], n: usize) {
    let most = (0..n).fold(0.0f64, |most, i| most.max(a[i * n + i])).max(1e-300);
    for row in 0..n {
        for column in 0..=row {
            let (before, here) = a.split_at_mut(row * n);
            let left = &here[..column];
            let value = if column == row {
                let sum: f64 = left.iter().map(|v| v * v).sum();
                (here[row] - sum).max(1e-14 * most).sqrt()
            } else {
                let above = &before[column * n..column * n + column];
                let sum: f64 = left.iter().zip(above).map(|(a, b)| a * b).sum();
                (here[column] - sum) / before[column * n + column]
            };
            here[column] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clarabel::algebra::CscMatrix;
    use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SupportedConeT};
    use understudy_core::Random;

    /// A program like a frame's: few rows more than columns, bounds that bind, some variables pinned.
    fn program(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let rows: Vec<f64> = (0..(n + 3) * n).map(|_| random.normal()).collect();
        let mut h = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                h[i * n + j] = (0..n + 3).map(|r| rows[r * n + i] * rows[r * n + j]).sum::<f64>() / n as f64;
            }
            h[i * n + i] += 1e-3;
        }
        let g = (0..n).map(|_| random.normal()).collect();
        let low: Vec<f64> = (0..n).map(|_| -random.unit()).collect();
        let high = low.iter().enumerate().map(|(i, low)| if i % 7 == 6 { *low } else { low + 1.0 }).collect();
        (h, g, low, high)
    }

    #[test]
    fn bounded_programs_agree_with_an_interior_point_solver() {
        for (n, seed) in [(1, 1), (2, 2), (8, 3), (60, 4), (60, 5), (97, 6)] {
            let (h, g, low, high) = program(n, seed);
            let d = box_qp(&h, &g, &low, &high);
            let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
            for j in 0..n {
                for i in 0..=j {
                    rows.push(i);
                    values.push(h[i * n + j]);
                }
                starts.push(rows.len());
            }
            let quadratic = CscMatrix::new(n, n, starts, rows, values);
            let constraint = CscMatrix::new(
                2 * n,
                n,
                (0..=n).map(|j| 2 * j).collect(),
                (0..n).flat_map(|j| [j, n + j]).collect(),
                vec![[1.0, -1.0]; n].concat(),
            );
            let right = [high.clone(), low.iter().map(|v| -v).collect()].concat();
            let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
            let cones = [SupportedConeT::NonnegativeConeT(2 * n)];
            let mut solver = DefaultSolver::new(&quadratic, &g, &constraint, &right, &cones, settings)
                .expect("a valid program");
            solver.solve();
            let cost = |d: &[f64]| {
                let quadratic: f64 =
                    (0..n).map(|i| (0..n).map(|j| d[i] * h[i * n + j] * d[j]).sum::<f64>()).sum();
                0.5 * quadratic + g.iter().zip(d).map(|(g, d)| g * d).sum::<f64>()
            };
            let (ours, theirs) = (cost(&d), cost(&solver.solution.x));
            assert!(ours <= theirs + 1e-6 * theirs.abs().max(1.0), "{n}: {ours} {theirs}");
            assert!(d.iter().zip(low.iter().zip(&high)).all(|(d, (low, high))| d >= low && d <= high));
        }
    }

    #[test]
    fn no_variables_is_no_problem() {
        assert!(box_qp(&[], &[], &[], &[]).is_empty());
    }
}
