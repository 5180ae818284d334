//! The likelihood of a latent space whose frames speak through few inducing points `Z`: cost `N M²`, so that thousands of
//! frames train in minutes. Titsias' lower bound (2009) with the latent points as they are:
//!
//! `L = −d/2 [(N−M) log s² + log|A| − log|K_uu|] − (1/2s²) [tr(YYᵀ) − tr(Pᵀ A⁻¹ P)] − (d/2s²) [N σ² − tr(K_uu⁻¹ C)]`
//! with `A = s² K_uu + C`, `C = K_uf K_fu`, `P = K_uf Y`. It never exceeds the likelihood of all frames, and equals it
//! where `Z` are the frames.

use crate::dense::{add_symmetric, smooth};
use crate::latent::{JITTER, Logs};
use crate::matrix::{By, add_product, dot, product, product_transposed};
use understudy_core::linear_algebra::Cholesky;
use understudy_runtime::motion::Covariance;

fn log_determinant(factor: &Cholesky, n: usize) -> f64 {
    let lower = factor.lower();
    (0..n).map(|i| 2.0 * lower[i * n + i].ln()).sum()
}

/// `K_uu` with what makes it invertible.
fn inducing(kernel: &Covariance, z: &[f64], q: usize) -> Vec<f64> {
    let m = z.len() / q;
    let mut k = smooth(kernel, z, None, q);
    (0..m).for_each(|i| k[i * m + i] += JITTER * kernel.variance);
    k
}

/// The bound without constants, and its gradient added; `None` where something cannot be inverted.
/// `x`: `[N][q]`, `z`: `[M][q]`, `y`: `[N][d]`.
pub(crate) fn bound(
    kernel: &Covariance,
    x: &[f64],
    z: &[f64],
    y: &[f64],
    q: usize,
    by_x: &mut [f64],
    by_z: &mut [f64],
    by_logs: &mut Logs,
) -> Option<f64> {
    let (n, m) = (x.len() / q, z.len() / q);
    let d = y.len() / n;
    let (s, count) = (kernel.white + JITTER, d as f64);
    let kuu = inducing(kernel, z, q);
    let kuf = smooth(kernel, z, Some(x), q);
    let c = product_transposed(&kuf, &kuf, m, n, m);
    let a: Vec<f64> = kuu.iter().zip(&c).map(|(k, c)| s * k + c).collect();
    let (kuu_factor, a_factor) = (Cholesky::new(&kuu, m)?, Cholesky::new(&a, m)?);
    let (kuu_inverse, a_inverse) = (kuu_factor.inverse(), a_factor.inverse());
    let p = product(&kuf, y, m, n, d);
    let b = product(&a_inverse, &p, m, m, d);
    let explained = dot(&kuu_inverse, &c);
    let (whole, fitted) = (dot(y, y), dot(&p, &b));
    let left = n as f64 * kernel.variance - explained;
    let value = -0.5
        * count
        * ((n as f64 - m as f64) * s.ln() + log_determinant(&a_factor, m) - log_determinant(&kuu_factor, m))
        - 0.5 / s * (whole - fitted)
        - 0.5 * count / s * left;
    // ∂L/∂K_uf = [−d A⁻¹ − BBᵀ/s + (d/s) K_uu⁻¹] K_uf + BYᵀ/s.
    let mut middle: Vec<f64> = a_inverse.iter().zip(&kuu_inverse).map(|(a, k)| count * (k / s - a)).collect();
    add_product(&mut middle, 1.0, -1.0 / s, By::rows(&b), By::columns(&b), [m, d, m]);
    let mut by_kuf = product(&middle, &kuf, m, m, n);
    add_product(&mut by_kuf, 1.0, 1.0 / s, By::rows(&b), By::columns(y), [m, d, n]);
    // ∂L/∂K_uu = −(d s/2) A⁻¹ + d/2 K_uu⁻¹ − ½ BBᵀ − (d/2s) K_uu⁻¹ C K_uu⁻¹.
    let half = product(&kuu_inverse, &c, m, m, m);
    let mut by_kuu: Vec<f64> =
        a_inverse.iter().zip(&kuu_inverse).map(|(a, k)| 0.5 * count * (k - s * a)).collect();
    add_product(&mut by_kuu, 1.0, -0.5, By::rows(&b), By::columns(&b), [m, d, m]);
    add_product(&mut by_kuu, 1.0, -0.5 * count / s, By::rows(&half), By::rows(&kuu_inverse), [m, m, m]);
    let through_kuu = product(&kuu, &b, m, m, d);
    let by_s = -0.5 * count * ((n as f64 - m as f64) / s + dot(&a_inverse, &kuu))
        + 0.5 / (s * s) * (whole - fitted)
        - 0.5 / s * dot(&b, &through_kuu)
        + 0.5 * count / (s * s) * left;
    by_logs[2] += by_s * kernel.white;
    // N σ² of the trace.
    by_logs[0] -= 0.5 * count / s * n as f64 * kernel.variance;
    // What makes K_uu invertible grows with σ² too; `add_symmetric` adds σ² alone on the diagonal.
    by_logs[0] += JITTER * kernel.variance * (0..m).map(|i| by_kuu[i * m + i]).sum::<f64>();
    let mut exact = kuu;
    (0..m).for_each(|i| exact[i * m + i] = kernel.variance);
    add_symmetric(&by_kuu, &exact, kernel, z, q, by_z, by_logs);
    for u in 0..m {
        for f in 0..n {
            let weight = by_kuf[u * n + f] * kuf[u * n + f];
            let mut squared = 0.0;
            for c in 0..q {
                let apart = z[u * q + c] - x[f * q + c];
                squared += apart * apart;
                let pull = weight / kernel.length_squared * apart;
                by_z[u * q + c] -= pull;
                by_x[f * q + c] += pull;
            }
            by_logs[0] += weight;
            by_logs[1] += weight * 0.5 * squared / kernel.length_squared;
        }
    }
    Some(value)
}

/// `B = A⁻¹ P`, `[M][d]`, and `K_uu⁻¹ − s² A⁻¹`: mean and variance of the model.
pub(crate) fn predictor(
    kernel: &Covariance,
    x: &[f64],
    z: &[f64],
    y: &[f64],
    q: usize,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let (n, m) = (x.len() / q, z.len() / q);
    let d = y.len() / n;
    let s = kernel.white + JITTER;
    let kuu = inducing(kernel, z, q);
    let kuf = smooth(kernel, z, Some(x), q);
    let mut a = product_transposed(&kuf, &kuf, m, n, m);
    a.iter_mut().zip(&kuu).for_each(|(a, k)| *a += s * k);
    let (kuu_inverse, a_inverse) = (Cholesky::new(&kuu, m)?.inverse(), Cholesky::new(&a, m)?.inverse());
    let p = product(&kuf, y, m, n, d);
    let weights = product(&a_inverse, &p, m, m, d);
    let precision = kuu_inverse.iter().zip(&a_inverse).map(|(k, a)| k - s * a).collect();
    Some((weights, precision))
}

/// Indices of so many points that are far from each other, from the first on.
pub(crate) fn spread(x: &[f64], q: usize, count: usize) -> Vec<usize> {
    let n = x.len() / q;
    let mut near = vec![f64::INFINITY; n];
    let mut chosen = vec![0];
    while chosen.len() < count.min(n) {
        let last = chosen[chosen.len() - 1];
        for (i, near) in near.iter_mut().enumerate() {
            let apart = crate::matrix::squared_distance(&x[i * q..(i + 1) * q], &x[last * q..(last + 1) * q]);
            *near = near.min(apart);
        }
        let farthest = (0..n).max_by(|a, b| near[*a].total_cmp(&near[*b])).unwrap_or(0);
        chosen.push(farthest);
    }
    chosen.sort_unstable();
    chosen
}
