//! The likelihood of a latent space with a covariance among all frames: cost `N³`.
//!
//! `log p(Y|X) = −d/2 log|K| − ½ tr(K⁻¹ Y Yᵀ)` (5.4, corrected; `Y` has one row per frame here), with
//! `k(x, x') = σ² exp(−‖x − x'‖² / 2l²) + δ s²` (5.5).

use crate::latent::{JITTER, Logs};
use crate::matrix::{By, add_product, dot, product};
use understudy_core::linear_algebra::Cholesky;
use understudy_runtime::motion::Covariance;

/// `σ² exp(−‖a_i − b_j‖² / 2l²)`, `[n][m]`; without `b` among `a` themselves.
pub(crate) fn smooth(kernel: &Covariance, a: &[f64], b: Option<&[f64]>, q: usize) -> Vec<f64> {
    let factor = -0.5 / kernel.length_squared;
    let (n, m) = (a.len() / q, b.unwrap_or(a).len() / q);
    let mut out = vec![0.0; n * m];
    for i in 0..n {
        let x = &a[i * q..(i + 1) * q];
        let columns = if b.is_some() { m } else { i };
        let others = &b.unwrap_or(a)[..columns * q];
        for (slot, other) in out[i * m..i * m + columns].iter_mut().zip(others.chunks_exact(q)) {
            let squared: f64 = x.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum();
            *slot = kernel.variance * (factor * squared).exp();
        }
        if b.is_none() {
            out[i * m + i] = kernel.variance;
        }
    }
    if b.is_none() {
        for i in 0..n {
            (0..i).for_each(|j| out[j * n + i] = out[i * n + j]);
        }
    }
    out
}

/// Adds `∂ log p/∂K ∘ ∂K/∂(X, σ², l²)` for a symmetric slope `[n][n]` and the smooth covariance `k`.
pub(crate) fn add_symmetric(
    slope: &[f64],
    k: &[f64],
    kernel: &Covariance,
    x: &[f64],
    q: usize,
    by_x: &mut [f64],
    by_logs: &mut Logs,
) {
    let n = x.len() / q;
    for i in 0..n {
        let row = i * n;
        by_logs[0] += slope[row + i] * k[row + i];
        let (before, own) = by_x.split_at_mut(i * q);
        for j in 0..i {
            let weight = 2.0 * slope[row + j] * k[row + j];
            let mut squared = 0.0;
            for c in 0..q {
                let apart = x[i * q + c] - x[j * q + c];
                squared += apart * apart;
                let pull = weight / kernel.length_squared * apart;
                own[c] -= pull;
                before[j * q + c] += pull;
            }
            by_logs[0] += weight;
            by_logs[1] += weight * 0.5 * squared / kernel.length_squared;
        }
    }
}

/// `log p(Y|X)` without constants, and its gradient added; `None` where the covariance cannot be inverted.
/// `x`: `[N][q]`, `y`: `[N][d]`.
pub(crate) fn likelihood(
    kernel: &Covariance,
    x: &[f64],
    y: &[f64],
    q: usize,
    by_x: &mut [f64],
    by_logs: &mut Logs,
) -> Option<f64> {
    let n = x.len() / q;
    let d = y.len() / n;
    let mut k = smooth(kernel, x, None, q);
    (0..n).for_each(|i| k[i * n + i] += kernel.white + JITTER);
    let factor = Cholesky::new(&k, n)?;
    (0..n).for_each(|i| k[i * n + i] = kernel.variance);
    let lower = factor.lower();
    let log_determinant: f64 = (0..n).map(|i| 2.0 * lower[i * n + i].ln()).sum();
    let mut slope = factor.inverse();
    let solved = product(&slope, y, n, n, d);
    let value = -0.5 * d as f64 * log_determinant - 0.5 * dot(&solved, y);
    // ∂ log p / ∂K = ½ (A Aᵀ − d K⁻¹), A = K⁻¹ Y.
    add_product(&mut slope, -0.5 * d as f64, 0.5, By::rows(&solved), By::columns(&solved), [n, d, n]);
    by_logs[2] += (0..n).map(|i| slope[i * n + i]).sum::<f64>() * kernel.white;
    add_symmetric(&slope, &k, kernel, x, q, by_x, by_logs);
    Some(value)
}
