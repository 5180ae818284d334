//! What keeps a latent space in order beyond the data: frames that follow one another stay close (the dynamics prior,
//! one Gaussian process in time per clip, here), and similar frames of different clips find each other (the connectivity
//! prior, in `connectivity`).

use crate::MotionError;
use crate::matrix::product;
use serde::{Deserialize, Serialize};
use understudy_core::linear_algebra::Cholesky;

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
    /// Weight of the connectivity prior beside the likelihood, `w = weight · N d / N²`; 0 leaves it out.
    pub connectivity: f64,
    /// Diffusion time per point, `β = diffusion · N`.
    pub diffusion: f64,
    /// `p`.
    pub power: f64,
    /// `ε`: points nearer than this, in the unit of a latent space of variance one, count as so far apart.
    pub guard: f64,
    /// Most points of the graph; more frames are thinned evenly, since its cost grows with their cube.
    pub nodes: usize,
}

impl Default for PriorConfig {
    fn default() -> Self {
        Self {
            dynamics: 1.0,
            dynamics_frames: 8.0,
            dynamics_noise: 1e-3,
            connectivity: 0.3,
            diffusion: 1.0,
            power: 4.0,
            guard: 0.3,
            nodes: 200,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn the_gradient_is_the_derivative_and_smooth_clips_are_likelier() {
        let (n, q) = (20, 2);
        let smooth: Vec<f64> = (0..n * q).map(|i| ((i / q) as f64 * 0.15 + (i % q) as f64).sin()).collect();
        let mut random = Random::new(2);
        let rough: Vec<f64> = smooth.iter().map(|x| x + 0.3 * random.normal()).collect();
        let dynamics = Dynamics::new(&[12, 8], &PriorConfig::default()).expect("positive definite");
        let value = |x: &[f64]| dynamics.add(x, q, &mut vec![0.0; n * q]);
        assert!(value(&smooth) > value(&rough) + 10.0);
        let mut gradient = vec![0.0; n * q];
        dynamics.add(&rough, q, &mut gradient);
        let miss = directional_miss(value, &rough, &gradient, 1e-4, 12, 3);
        assert!(miss < 1e-6, "{miss}");
    }
}
