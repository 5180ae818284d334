//! The closed-form baselines on the linear rig: pseudo-inverse (Joshi, eq. 3) and ridge (Çetinaslan,
//! eq. 17). One eigendecomposition of the shapes' Gram matrix serves both, for every α.

use super::error::InverseError;
use super::gram::Gram;
use understudy_core::linear_algebra::SymmetricEigen;

/// `BᵀB = Σ_k λ_k v_k v_kᵀ`.
#[derive(Debug, Clone)]
pub(crate) struct Spectrum {
    eigen: SymmetricEigen,
    /// Eigenvalues at or below this are zero: the shapes are dependent there.
    zero: f64,
}

impl Spectrum {
    pub(crate) fn new(gram: &Gram, shape_count: usize) -> Result<Self, InverseError> {
        let rows = (0..shape_count).flat_map(|row| &gram.row(row)[..shape_count]).copied();
        let eigen = SymmetricEigen::new(&rows.collect::<Vec<_>>(), shape_count)?;
        let largest = eigen.values.first().map_or(0.0, |value| value.abs());
        Ok(Self { eigen, zero: largest * shape_count as f64 * f64::EPSILON })
    }

    /// `w = (BᵀB + 2αI)⁻¹ c`; for `α = 0` the pseudo-inverse, which leaves out the directions in which the
    /// shapes are dependent. `coordinates` is scratch, `[m]`.
    pub(crate) fn solve(&self, alpha: f64, projection: &[f64], coordinates: &mut [f64], weights: &mut [f64]) {
        for (k, coordinate) in coordinates.iter_mut().enumerate() {
            let value = self.eigen.values[k].max(0.0);
            let along: f64 = self.eigen.vector(k).iter().zip(projection).map(|(v, c)| v * c).sum();
            let divisor = value + 2.0 * alpha;
            let kept = divisor > 0.0 && (alpha > 0.0 || value > self.zero);
            *coordinate = if kept { along / divisor } else { 0.0 };
        }
        weights.fill(0.0);
        for (k, coordinate) in coordinates.iter().enumerate() {
            for (weight, v) in weights.iter_mut().zip(self.eigen.vector(k)) {
                *weight += coordinate * v;
            }
        }
    }

    /// How many directions the shapes span.
    pub(crate) fn rank(&self) -> usize {
        self.eigen.values.iter().filter(|value| **value > self.zero).count()
    }
}
