//! Fits a linear basis of poses: controls scaled by what they do to the mesh, then principal components of what is left.
//! Equations (5.1)–(5.3) of the paper; the run time's `PoseBasis` goes there and back.

use crate::MotionError;
use crate::matrix::{dot, transposed_product};
use understudy_core::linear_algebra::SymmetricEigen;
use understudy_runtime::motion::BasisParts;

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

/// The fewest components that keep a share of the variance, and the share that they keep. `mean`, `scale`: `[C]`, the
/// scale zero for a control that never moves.
pub fn fit(
    frames: &[Vec<f32>],
    mean: &[f64],
    scale: &[f64],
    variance: f64,
) -> Result<(BasisParts, f64), MotionError> {
    let moving: Vec<usize> = (0..scale.len()).filter(|c| scale[*c] > 0.0).collect();
    let n = moving.len();
    if n == 0 {
        return Err(MotionError::Still);
    }
    let z: Vec<f64> = frames
        .iter()
        .flat_map(|frame| moving.iter().map(|&c| scale[c] * (f64::from(frame[c]) - mean[c])))
        .collect();
    let covariance = transposed_product(&z, &z, n, frames.len(), n);
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
    let components = (0..count.max(1)).flat_map(|k| eigen.vector(k).iter().map(|v| *v as f32)).collect();
    let parts = BasisParts {
        rest: mean.iter().map(|v| *v as f32).collect(),
        moving: moving.iter().map(|c| *c as u32).collect(),
        scale: moving.iter().map(|c| scale[*c] as f32).collect(),
        components,
    };
    Ok((parts, kept / total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_runtime::motion::PoseBasis;

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
        let basis = |variance| {
            let (parts, kept) = fit(&frames, &mean, &scale, variance).expect("it moves");
            let outputs = parts.components.len() / parts.moving.len();
            (PoseBasis::new(parts, 4, outputs).expect("sound"), outputs, kept)
        };
        let (whole, all, _) = basis(1.0);
        for frame in &frames {
            let back = whole.decode(&whole.encode(frame));
            assert!(back.iter().zip(frame).all(|(a, b)| (a - b).abs() < 1e-4), "{back:?} {frame:?}");
        }
        let (_, fewer, kept) = basis(0.9);
        assert!(fewer < all && kept >= 0.9);
        assert_eq!(fit(&frames, &mean, &[0.0; 4], 0.9), Err(MotionError::Still));
    }
}
