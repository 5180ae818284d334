//! What keeps a latent space in order beyond the data: frames that follow one another stay close (the dynamics prior,
//! one Gaussian process in time per clip), and similar frames of different clips find each other (the connectivity
//! prior, a diffusion over the graph of all latent points).
//!
//! Connectivity: `W_ij = (‖x_i − x_j‖² + ε)^(−p/2)` with zero diagonal, `D` its row sums, `H = D^-½ (W − D) D^-½`,
//! `K = exp(β H)`, `ψ = w Σ_ij ln max(K_ij, 1e-16)`. Its gradient uses the divided differences of `exp(βλ)`.

use crate::MotionError;
use crate::matrix::{product, squared_distance, transposed_product};
use serde::{Deserialize, Serialize};
use understudy_core::linear_algebra::{Cholesky, SymmetricEigen};

/// Constants of both priors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriorConfig {
    /// Weight of the dynamics prior; 0 leaves it out.
    pub dynamics: f64,
    /// Length scale of the process in time, frames.
    pub dynamics_frames: f64,
    /// Variance of the process that is not smooth, as a share of the one that is.
    pub dynamics_noise: f64,
    /// Weight of the connectivity prior per data point, `w = weight / N`; 0, the default, leaves it out.
    pub connectivity: f64,
    /// Diffusion time per data point, `β = diffusion · N`.
    pub diffusion: f64,
    /// `p`.
    pub power: f64,
}

impl Default for PriorConfig {
    fn default() -> Self {
        Self {
            dynamics: 1.0,
            dynamics_frames: 8.0,
            dynamics_noise: 1e-3,
            connectivity: 0.0,
            diffusion: 1.0,
            power: 4.0,
        }
    }
}

/// Coinciding points are this far apart, in the unit of a latent space of variance one.
const SOFTENING: f64 = 1e-4;
/// Smaller diffusion counts as this.
const LEAST: f64 = 1e-16;

/// `−½ Σ_dims xᵀ K_t⁻¹ x` per clip, with what does not depend on `X` left out.
pub(crate) struct Dynamics {
    /// First frame and inverse kernel of every clip.
    clips: Vec<(usize, usize, Vec<f64>)>,
    weight: f64,
}

impl Dynamics {
    /// `lengths`: frames of every clip, in the order of the points.
    pub fn new(lengths: &[usize], config: &PriorConfig) -> Result<Self, MotionError> {
        let mut clips = Vec::new();
        let mut first = 0;
        for &length in lengths {
            let mut kernel = vec![0.0; length * length];
            for i in 0..length {
                for j in 0..length {
                    let apart = (i as f64 - j as f64) / config.dynamics_frames;
                    kernel[i * length + j] = (-0.5 * apart * apart).exp();
                }
                kernel[i * length + i] += config.dynamics_noise;
            }
            let factor = Cholesky::new(&kernel, length).ok_or(MotionError::Numbers)?;
            clips.push((first, length, factor.inverse()));
            first += length;
        }
        Ok(Self { clips, weight: config.dynamics })
    }

    /// Adds the gradient to `[N][q]` and returns the value.
    pub fn add(&self, x: &[f64], q: usize, gradient: &mut [f64]) -> f64 {
        let mut value = 0.0;
        for (first, length, inverse) in &self.clips {
            let points = &x[first * q..(first + length) * q];
            let pull = product(inverse, points, *length, *length, q);
            let own = &mut gradient[first * q..(first + length) * q];
            for ((slot, pull), point) in own.iter_mut().zip(&pull).zip(points) {
                *slot -= self.weight * pull;
                value -= 0.5 * self.weight * pull * point;
            }
        }
        value
    }
}

/// Adds the gradient of the connectivity prior to `[N][q]` and returns its value.
pub(crate) fn add_connectivity(
    x: &[f64],
    q: usize,
    config: &PriorConfig,
    gradient: &mut [f64],
) -> Result<f64, MotionError> {
    let n = x.len() / q;
    let point = |i: usize| &x[i * q..(i + 1) * q];
    let half = 0.5 * config.power;
    let mut weights = vec![0.0; n * n];
    let mut degree = vec![0.0; n];
    for i in 0..n {
        for j in 0..i {
            let w = (squared_distance(point(i), point(j)) + SOFTENING).powf(-half);
            weights[i * n + j] = w;
            weights[j * n + i] = w;
            degree[i] += w;
            degree[j] += w;
        }
    }
    let root: Vec<f64> = degree.iter().map(|d| 1.0 / d.max(1e-300).sqrt()).collect();
    let mut normal = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            normal[i * n + j] = weights[i * n + j] * root[i] * root[j];
        }
    }
    let mut laplacian = normal.clone();
    (0..n).for_each(|i| laplacian[i * n + i] -= 1.0);
    let eigen = SymmetricEigen::new(&laplacian, n).map_err(|_| MotionError::Numbers)?;
    let beta = config.diffusion * n as f64;
    let grown: Vec<f64> = eigen.values.iter().map(|v| (beta * v.min(0.0)).exp()).collect();
    // Rows of `vectors` are eigenvectors: K = Vᵀ diag V.
    let mut scaled = eigen.vectors.clone();
    for (row, grown) in scaled.chunks_exact_mut(n).zip(&grown) {
        row.iter_mut().for_each(|v| *v *= grown);
    }
    let kernel = transposed_product(&eigen.vectors, &scaled, n, n, n);
    let weight = config.connectivity / n as f64;
    let mut value = 0.0;
    let slope: Vec<f64> = kernel
        .iter()
        .map(|k| {
            value += weight * k.max(LEAST).ln();
            if *k > LEAST { weight / k } else { 0.0 }
        })
        .collect();
    // ∂ψ/∂H = Vᵀ [(V P Vᵀ) ∘ Φ] V with the divided differences Φ of exp(βλ).
    let left = product(&eigen.vectors, &slope, n, n, n);
    let mut middle = crate::matrix::product_transposed(&left, &eigen.vectors, n, n, n);
    for i in 0..n {
        for j in 0..n {
            let (a, b) = (eigen.values[i], eigen.values[j]);
            let gap = a - b;
            middle[i * n + j] *= if (beta * gap).abs() < 1e-6 {
                beta * (0.5 * beta * (a + b).min(0.0)).exp()
            } else {
                (grown[i] - grown[j]) / gap
            };
        }
    }
    let half_way = transposed_product(&eigen.vectors, &middle, n, n, n);
    let by_laplacian = product(&half_way, &eigen.vectors, n, n, n);
    let by_degree: Vec<f64> = (0..n)
        .map(|k| {
            let row = k * n..(k + 1) * n;
            let sum: f64 = by_laplacian[row.clone()].iter().zip(&normal[row]).map(|(q, h)| q * h).sum();
            -sum / degree[k].max(1e-300)
        })
        .collect();
    for i in 0..n {
        for j in 0..n {
            if i == j {
                continue;
            }
            let pair = (by_laplacian[i * n + j] + by_laplacian[j * n + i]) * root[i] * root[j]
                + by_degree[i]
                + by_degree[j];
            let squared = squared_distance(point(i), point(j)) + SOFTENING;
            let bend = -config.power * weights[i * n + j] / squared * pair;
            for k in 0..q {
                gradient[i * q + k] += bend * (x[i * q + k] - x[j * q + k]);
            }
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_testkit::gradient::directional_miss;

    fn points(n: usize, q: usize) -> Vec<f64> {
        let mut random = Random::new(5);
        (0..n * q).map(|_| random.normal()).collect()
    }

    #[test]
    fn both_gradients_are_the_derivatives() {
        let (n, q) = (14, 3);
        let x = points(n, q);
        let config = PriorConfig { connectivity: 1.0, diffusion: 0.4, ..PriorConfig::default() };
        let mut gradient = vec![0.0; n * q];
        add_connectivity(&x, q, &config, &mut gradient).expect("finite");
        let value = |x: &[f64]| add_connectivity(x, q, &config, &mut vec![0.0; n * q]).expect("finite");
        let miss = directional_miss(value, &x, &gradient, 1e-5, 12, 3);
        assert!(miss < 1e-5, "connectivity: {miss}");

        let dynamics = Dynamics::new(&[9, 5], &config).expect("positive definite");
        let mut gradient = vec![0.0; n * q];
        dynamics.add(&x, q, &mut gradient);
        let value = |x: &[f64]| dynamics.add(x, q, &mut vec![0.0; n * q]);
        let miss = directional_miss(value, &x, &gradient, 1e-4, 12, 3);
        assert!(miss < 1e-6, "dynamics: {miss}");
    }

    #[test]
    fn smooth_clips_and_connected_points_are_likelier() {
        let (n, q) = (20, 2);
        let smooth: Vec<f64> = (0..n * q).map(|i| ((i / q) as f64 * 0.15 + (i % q) as f64).sin()).collect();
        let mut random = Random::new(2);
        let rough: Vec<f64> = smooth.iter().map(|x| x + 0.3 * random.normal()).collect();
        let config = PriorConfig { connectivity: 1.0, ..PriorConfig::default() };
        let dynamics = Dynamics::new(&[n], &config).expect("positive definite");
        let value = |x: &[f64]| dynamics.add(x, q, &mut vec![0.0; n * q]);
        assert!(value(&smooth) > value(&rough) + 10.0);
        // Two heaps of points, far apart and nearer; coinciding points do no harm.
        let heaps = |gap: f64| -> Vec<f64> {
            (0..n * q).map(|i| 0.1 * ((i * i) as f64).sin() + if i < n { 0.0 } else { gap }).collect()
        };
        let connected = |x: &[f64]| add_connectivity(x, q, &config, &mut vec![0.0; n * q]).expect("finite");
        assert!(connected(&heaps(1.0)) > connected(&heaps(3.0)) + 1.0);
        assert!(connected(&vec![0.5; n * q]).is_finite());
    }
}
