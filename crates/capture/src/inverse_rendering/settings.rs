//! How a frame is solved, checked once, and what came of it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which part of the camera or head is solved with the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freedom {
    /// In-plane rotation and centre of projection, as with a camera on a helmet.
    #[default]
    InPlane,
    /// All six of a head that turns before a camera.
    Head,
}

impl Freedom {
    /// Number of unknowns.
    pub fn count(self) -> usize {
        match self {
            Self::InPlane => 3,
            Self::Head => 6,
        }
    }
}

/// Weights of the objective (6.4) and how it is minimised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RenderSettings {
    /// Points on the face whose colour is compared.
    pub samples: usize,
    /// w_photo, of colours in linear light, 0 to 1.
    pub photo: f64,
    /// w_land, of pixels in a picture of 512 rows.
    pub land: f64,
    /// w_smooth.
    pub smooth: f64,
    /// w_reg: the price of a full weight.
    pub sparse: f64,
    /// Where the smoothed L1 of colours turns from a parabola to a line, in linear light.
    pub corner: f64,
    /// σ of (6.8), pixels in a picture of 512 rows.
    pub still: f64,
    /// Most iterations per frame.
    pub iterations: usize,
    /// Most iterations of the first frame, which has no frame before it.
    pub first_iterations: usize,
    /// Ends when an iteration lowers the cost by less than this share of it.
    pub tolerance: f64,
    /// What moves beside the weights.
    pub freedom: Freedom,
    /// Times that pictures are smoothed by (1 2 1)/4 before they are compared.
    pub smoothing: usize,
    /// Of the sampled points.
    pub seed: u64,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self {
            samples: 1000,
            photo: 1.0,
            land: 2e-4,
            smooth: 1e-4,
            sparse: 5e-6,
            corner: 0.01,
            still: 0.5,
            iterations: 10,
            first_iterations: 40,
            tolerance: 1e-4,
            freedom: Freedom::InPlane,
            smoothing: 1,
            seed: 1,
        }
    }
}

/// What is wrong with settings.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{setting} {problem}")]
pub struct SettingsError {
    /// Which.
    pub setting: &'static str,
    /// Why.
    pub problem: &'static str,
}

impl RenderSettings {
    /// Fails on what cannot be meant.
    pub fn check(&self) -> Result<(), SettingsError> {
        let error = |setting, problem| Err(SettingsError { setting, problem });
        let weights =
            [("photo", self.photo), ("land", self.land), ("smooth", self.smooth), ("sparse", self.sparse)];
        for (setting, value) in weights {
            if !(value >= 0.0 && value.is_finite()) {
                return error(setting, "must be a number that is not negative");
            }
        }
        if self.photo == 0.0 && self.land == 0.0 {
            return error("photo", "and land are both zero: nothing would hold the face to its picture");
        }
        if self.samples == 0 || self.samples > 1_000_000 {
            return error("samples", "must be 1 to 1000000");
        }
        for (setting, value) in [("corner", self.corner), ("still", self.still)] {
            if !(value > 0.0 && value.is_finite()) {
                return error(setting, "must be above zero");
            }
        }
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            return error("tolerance", "must not be negative");
        }
        Ok(())
    }
}

/// Why the solver stopped at a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The cost hardly fell any more.
    Settled,
    /// No step along the last direction lowered the cost.
    NoStep,
    /// All iterations were used.
    Iterations,
}

/// The terms of the objective, weighted; their sum is the cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Terms {
    /// w_photo E_photo.
    pub photo: f64,
    /// w_land E_land.
    pub land: f64,
    /// w_smooth E_smooth.
    pub smooth: f64,
    /// w_reg E_reg.
    pub sparse: f64,
}

impl Terms {
    /// The cost (6.4).
    pub fn total(&self) -> f64 {
        self.photo + self.land + self.smooth + self.sparse
    }
}

/// How one frame went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrameReport {
    /// Why it stopped.
    pub ended: Ended,
    /// The cost before the first iteration and after each: it never rises.
    pub costs: Vec<f64>,
    /// Its terms at the end.
    pub terms: Terms,
    /// Samples that were seen.
    pub visible: usize,
}
