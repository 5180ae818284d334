//! Poses as few numbers, linearly: controls scaled by what they do to the mesh, then principal components of what is
//! left. Equations (5.1)–(5.3) of the paper; [`LinearPoses::encode`] and [`LinearPoses::decode`] go there and back.

use crate::MotionError;
use crate::matrix::dot;
use serde::{Deserialize, Serialize};
use understudy_core::linear_algebra::SymmetricEigen;

/// Where the mesh is asked about a control, in standard deviations of it.
pub const PROBES: [f64; 4] = [-2.0, -1.0, 1.0, 2.0];

/// A control that varies by less than this share of its range never moves.
const STILL: f64 = 1e-6;

/// `w = argmin Σ_n (‖e(p̄) − e(p̄ + n σ)‖ − w |n| σ)²` (5.3). `distances`: what the mesh moves at [`PROBES`].
pub fn influence(distances: [f64; 4], sigma: f64) -> f64 {
    let steps = PROBES.map(|n| n.abs() * sigma);
    dot(&distances, &steps) / dot(&steps, &steps).max(1e-300)
}

/// Mean and standard deviation of every control over some frames, `[C]` each; zero for one that never moves.
/// `frames`: `[N][C]`, `ranges`: `[C]`.
pub fn statistics(frames: &[Vec<f32>], ranges: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let count = frames.len().max(1) as f64;
    let controls = ranges.len();
    let mean = |c: usize| frames.iter().map(|frame| f64::from(frame[c])).sum::<f64>() / count;
    let means: Vec<f64> = (0..controls).map(mean).collect();
    let deviation = |c: usize| {
        let sum: f64 = frames.iter().map(|frame| (f64::from(frame[c]) - means[c]).powi(2)).sum();
        let deviation = (sum / count).sqrt();
        if deviation < STILL * f64::from(ranges[c]) { 0.0 } else { deviation }
    };
    let deviations = (0..controls).map(deviation).collect();
    (means, deviations)
}

/// Controls as principal components of what they do to the mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearPoses {
    /// `p̄`, `[C]`.
    pub mean: Vec<f64>,
    /// `w`, `[C]`, mesh per unit of the control; zero for a control that never moves.
    pub scale: Vec<f64>,
    /// `T`, `[d][C]`, orthonormal rows.
    pub components: Vec<Vec<f64>>,
    /// Share of the variance that they keep.
    pub kept: f64,
}

impl LinearPoses {
    /// The fewest components that keep a share of the variance.
    pub fn fit(
        frames: &[Vec<f32>],
        mean: Vec<f64>,
        scale: Vec<f64>,
        variance: f64,
    ) -> Result<Self, MotionError> {
        let moving: Vec<usize> = (0..scale.len()).filter(|c| scale[*c] > 0.0).collect();
        let n = moving.len();
        if n == 0 {
            return Err(MotionError::Still);
        }
        let mut covariance = vec![0.0; n * n];
        for frame in frames {
            let z: Vec<f64> = moving.iter().map(|&c| scale[c] * (f64::from(frame[c]) - mean[c])).collect();
            for i in 0..n {
                for j in 0..=i {
                    covariance[i * n + j] += z[i] * z[j];
                }
            }
        }
        let eigen = SymmetricEigen::new(&covariance, n).map_err(|_| MotionError::Numbers)?;
        let total: f64 = eigen.values.iter().map(|v| v.max(0.0)).sum();
        if total <= 0.0 {
            return Err(MotionError::Still);
        }
        let (mut kept, mut count) = (0.0, 0);
        while count < n && kept < variance * total {
            kept += eigen.values[count].max(0.0);
            count += 1;
        }
        let spread = |k: usize| {
            let mut row = vec![0.0; scale.len()];
            moving.iter().zip(eigen.vector(k)).for_each(|(c, v)| row[*c] = *v);
            row
        };
        let components = (0..count.max(1)).map(spread).collect();
        Ok(Self { mean, scale, components, kept: kept / total })
    }

    /// `y = T W (p − p̄)`, `[d]`.
    pub fn encode(&self, controls: &[f32]) -> Vec<f64> {
        let z: Vec<f64> = controls
            .iter()
            .zip(self.mean.iter().zip(&self.scale))
            .map(|(value, (mean, scale))| scale * (f64::from(*value) - mean))
            .collect();
        self.components.iter().map(|row| dot(row, &z)).collect()
    }

    /// `p = W⁻¹ Tᵀ y + p̄`, `[C]`.
    pub fn decode(&self, y: &[f64]) -> Vec<f32> {
        let value = |c: usize| {
            if self.scale[c] <= 0.0 {
                return self.mean[c] as f32;
            }
            let z: f64 = self.components.iter().zip(y).map(|(row, y)| row[c] * y).sum();
            (self.mean[c] + z / self.scale[c]) as f32
        };
        (0..self.mean.len()).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn influence_is_the_slope_of_a_linear_mesh_and_its_mean_of_a_bent_one() {
        let slope = |n: f64| 3.0 * n.abs() * 0.2;
        assert!((influence(PROBES.map(slope), 0.2) - 3.0).abs() < 1e-12);
        let bent = influence([0.0, 0.0, 0.6, 1.2], 0.2);
        assert!((bent - 1.5).abs() < 1e-12, "{bent}");
    }

    #[test]
    fn all_components_lose_nothing_and_controls_that_rest_stay() {
        let frames: Vec<Vec<f32>> = (0..30)
            .map(|i| {
                let t = i as f32 * 0.3;
                vec![t.sin(), 0.25, 10.0 * t.cos(), t.sin() * 0.5 + 0.01 * (t * 3.0).cos()]
            })
            .collect();
        let (mean, deviation) = statistics(&frames, &[1.0, 1.0, 20.0, 1.0]);
        assert_eq!(deviation[1], 0.0);
        let scale = vec![2.0, 0.0, 0.1, 2.0];
        let whole = LinearPoses::fit(&frames, mean.clone(), scale.clone(), 1.0).expect("it moves");
        for frame in &frames {
            let back = whole.decode(&whole.encode(frame));
            assert!(back.iter().zip(frame).all(|(a, b)| (a - b).abs() < 1e-4), "{back:?} {frame:?}");
        }
        let cut = LinearPoses::fit(&frames, mean.clone(), scale, 0.9).expect("it moves");
        assert!(cut.components.len() < whole.components.len() && cut.kept >= 0.9);
        assert_eq!(LinearPoses::fit(&frames, mean, vec![0.0; 4], 0.9), Err(MotionError::Still));
    }
}
