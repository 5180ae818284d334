//! Principal components of a group's residuals: what the frozen last layer of its network holds.

use crate::matrix::{View, multiply};
use understudy_core::Random;
use understudy_core::linear_algebra::{SymmetricEigen, orthonormalise_columns};

/// An orthonormal basis and a mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Components {
    /// `[width]`.
    pub mean: Vec<f32>,
    /// `[count × width]`, rows orthonormal, most variance first.
    pub basis: Vec<f32>,
    /// Number of components.
    pub count: usize,
    /// Mean distance a vertex between rows and their projections, cm.
    pub error: f64,
}

/// How many components are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Mean error a vertex that may be left, cm.
    pub error: f64,
    /// The same as a share of the mean length of a vertex's residual; the smaller of both counts …
    pub share: f64,
    /// … but no less than this is asked for, cm.
    pub least: f64,
    /// Never more than that many.
    pub most: usize,
}

/// The fewest components whose mean error a vertex is below what is wanted. `rows`: `[all × width]`, three
/// numbers a vertex; components are fitted to the first `n`, the mean is removed from all in place. By subspace iteration on a random
/// start (Halko, Martinsson and Tropp 2011) with two rounds.
pub fn fit(rows: &mut [f32], width: usize, n: usize, centred: bool, wanted: Wanted, seed: u64) -> Components {
    let mut sums = vec![0.0f64; width];
    for row in rows.chunks_exact(width).take(n) {
        sums.iter_mut().zip(row).for_each(|(sum, r)| *sum += f64::from(*r));
    }
    let mut mean: Vec<f32> = sums.iter().map(|sum| (sum / n as f64) as f32).collect();
    if !centred {
        mean.fill(0.0);
    }
    for row in rows.chunks_exact_mut(width) {
        row.iter_mut().zip(&mean).for_each(|(r, m)| *r -= m);
    }
    let rows = &rows[..n * width];
    let limit = wanted.most.min(width).min(n);
    let mut most = limit.min(FIRST);
    loop {
        let mut basis = strongest(rows, width, n, most, seed);
        let (count, error, met) = fewest(rows, n, width, &basis, Wanted { most, ..wanted });
        if met || most == limit {
            basis.truncate(count * width);
            return Components { mean, basis, count, error };
        }
        most = (2 * most).min(limit);
    }
}

/// So many components are looked for first, then twice as many until they suffice: time goes with their square.
const FIRST: usize = 64;

/// The `most` strongest directions and a few more, one per row, most variance first.
fn strongest(rows: &[f32], width: usize, n: usize, most: usize, seed: u64) -> Vec<f32> {
    let wide = (most + 8).min(width).min(n);
    let mut random = Random::new(seed);
    let mut axes: Vec<f32> = (0..width * wide).map(|_| random.normal() as f32).collect();
    let mut scores = vec![0.0f32; n * wide];
    for _round in 0..3 {
        // scores = rows · axes, axes = rowsᵀ · scores: one power of the covariance.
        multiply(&mut scores, 0.0, View::new(rows, n, width), View::new(&axes, width, wide));
        orthonormalise_columns(&mut scores, n, wide);
        multiply(&mut axes, 0.0, View::new(rows, n, width).transposed(), View::new(&scores, n, wide));
        orthonormalise_columns(&mut axes, width, wide);
    }
    sort_by_variance(rows, n, width, &axes, wide)
}

/// The axes `[width × wide]` turned so that coefficients are uncorrelated, most variance first, one per row.
fn sort_by_variance(rows: &[f32], n: usize, width: usize, axes: &[f32], wide: usize) -> Vec<f32> {
    let mut scores = vec![0.0f32; n * wide];
    multiply(&mut scores, 0.0, View::new(rows, n, width), View::new(axes, width, wide));
    let mut covariance = vec![0.0f32; wide * wide];
    multiply(&mut covariance, 0.0, View::new(&scores, n, wide).transposed(), View::new(&scores, n, wide));
    let covariance: Vec<f64> = covariance.iter().map(|c| f64::from(*c)).collect();
    let eigen = SymmetricEigen::new(&covariance, wide)
        .expect("residuals are lengths that single precision can square, so their covariance is finite");
    let turn: Vec<f32> = eigen.vectors.iter().map(|v| *v as f32).collect();
    let mut basis = vec![0.0f32; wide * width];
    multiply(&mut basis, 0.0, View::new(&turn, wide, wide), View::new(axes, width, wide).transposed());
    basis
}

/// How many components reach the threshold, what they leave, and whether they reach it at all; measured on a few
/// hundred rows.
fn fewest(rows: &[f32], n: usize, width: usize, basis: &[f32], wanted: Wanted) -> (usize, f64, bool) {
    let step = n.div_ceil(400);
    let mut left: Vec<Vec<f32>> = rows.chunks_exact(width).step_by(step).map(<[f32]>::to_vec).collect();
    let distance = |left: &[Vec<f32>]| {
        let vertex = |v: &[f32]| f64::from((v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt());
        let sum: f64 = left.iter().flat_map(|row| row.chunks_exact(3)).map(vertex).sum();
        sum / (left.len() * width / 3).max(1) as f64
    };
    let mut error = distance(&left);
    let threshold = wanted.error.min((wanted.share * error).max(wanted.least));
    for count in 0..wanted.most {
        if error < threshold {
            return (count, error, true);
        }
        let axis = &basis[count * width..(count + 1) * width];
        for row in &mut left {
            let along: f32 = row.iter().zip(axis).map(|(r, a)| r * a).sum();
            row.iter_mut().zip(axis).for_each(|(r, a)| *r -= along * a);
        }
        error = distance(&left);
    }
    (wanted.most, error, error < threshold)
}

/// Zeroes, vertex by vertex, the last components that move it by less than `limit` (root mean square, cm).
/// `weights`: `[3P × count]`; `strengths`: root mean squares of the coefficients. Gives what that costs, root
/// mean square over the vertices.
pub fn trim(weights: &mut [f32], strengths: &[f64], limit: f64) -> f64 {
    let count = strengths.len();
    let (mut sum, mut vertices) = (0.0, 0);
    for rows in weights.chunks_exact_mut((3 * count).max(1)) {
        let mut tail = 0.0f64;
        for component in (0..count).rev() {
            let squares: f64 = (0..3).map(|axis| f64::from(rows[axis * count + component]).powi(2)).sum();
            let with = tail + squares * strengths[component].powi(2);
            if with > limit * limit {
                break;
            }
            tail = with;
            (0..3).for_each(|axis| rows[axis * count + component] = 0.0);
        }
        sum += tail;
        vertices += 1;
    }
    (sum / f64::from(vertices.max(1))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_components_that_move_little_are_trimmed() {
        let strengths = [10.0, 1.0, 0.1];
        // Two vertices: one that all components move, one that only the first does.
        let mut weights = vec![0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5];
        weights.extend([0.5, 0.001, 0.001, 0.5, 0.001, 0.001, 0.5, 0.001, 0.001]);
        let cost = trim(&mut weights, &strengths, 0.01);
        assert!(weights[..9].iter().all(|w| *w == 0.5));
        assert_eq!(weights[9..12], [0.5, 0.0, 0.0]);
        let expected = (3.0f64 * (1e-6 + 1e-8) / 2.0).sqrt();
        assert!((cost - expected).abs() < 1e-6, "{cost} {expected}");
    }

    const WANTED: Wanted = Wanted { error: 1e-4, share: 1.0, least: 1e-4, most: 20 };

    #[test]
    fn as_many_components_as_the_error_needs_are_found_unless_that_is_forbidden() {
        // A hundred directions of equal strength: no fewer will do.
        let (n, width, rank) = (400, 300, 100);
        let mut random = Random::new(4);
        let rows: Vec<f32> = (0..n)
            .flat_map(|_| {
                let scores: Vec<f32> = (0..rank).map(|_| random.normal() as f32).collect();
                (0..width).map(move |i| if i < rank { scores[i] } else { 0.0 })
            })
            .collect();
        let fit = |most| fit(&mut rows.clone(), width, n, true, Wanted { most, error: 0.01, ..WANTED }, 1);
        let free = fit(usize::MAX);
        assert!((95..=rank).contains(&free.count) && free.error < 0.01, "{} {}", free.count, free.error);
        assert_eq!(free.basis.len(), free.count * width);
        let capped = fit(64);
        assert!(capped.count == 64 && capped.error > 0.01, "{}", capped.error);
    }

    #[test]
    fn data_of_rank_three_needs_three_components() {
        let (n, width) = (300, 60);
        let mut random = Random::new(9);
        let axes: Vec<f32> = (0..3 * width).map(|_| random.normal() as f32).collect();
        let mut rows = Vec::new();
        for _ in 0..n {
            let scores: Vec<f32> = [5.0, 1.0, 0.3].iter().map(|s| s * random.normal() as f32).collect();
            rows.extend(
                (0..width).map(|i| 7.0 + (0..3).map(|k| scores[k] * axes[k * width + i]).sum::<f32>()),
            );
        }
        let components = fit(&mut rows, width, n, true, WANTED, 1);
        assert_eq!(components.count, 3, "error {}", components.error);
        for a in 0..3 {
            for b in 0..3 {
                let row = |k: usize| &components.basis[k * width..(k + 1) * width];
                let dot: f32 = row(a).iter().zip(row(b)).map(|(x, y)| x * y).sum();
                assert!((dot - f32::from(u8::from(a == b))).abs() < 1e-4, "{a} {b} {dot}");
            }
        }
        let mut constant = vec![2.0; 30 * 6];
        assert_eq!(fit(&mut constant, 6, 30, true, WANTED, 1).count, 0);
    }
}
