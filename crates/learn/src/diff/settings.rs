//! How to learn a differential twin.

use super::DiffLearnError;
use crate::dense::Optimiser;
use crate::dense::train::{RateSchedule, TrainSettings};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use understudy_runtime::diff::HiddenActivation;

/// Where `T_i` (eq. 11) comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkinSource {
    /// The first of the others that the rig allows.
    #[default]
    Auto,
    /// The rig's own skin weights.
    Rig,
    /// Rest vertices of the live rig are moved by one unit (eq. 12, 13), and weights are fitted to what that does.
    Probe,
    /// Weights are fitted to the recorded vertices.
    Fit,
    /// No skinning: the networks learn all of the motion.
    None,
}

impl FromStr for SkinSource {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "rig" => Ok(Self::Rig),
            "probe" => Ok(Self::Probe),
            "fit" => Ok(Self::Fit),
            "none" => Ok(Self::None),
            _ => Err("auto, rig, probe, fit or none is wanted".into()),
        }
    }
}

/// What the differential network learns of the displacement before skinning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coordinates {
    /// Differences to the neighbours, all of one weight, as the paper has it.
    #[default]
    Uniform,
    /// Differences to the neighbours with cotangent weights, for comparison.
    Cotangent,
    /// The displacement itself, without anchors and without a solve: the paper's "Local", for comparison.
    Local,
}

impl FromStr for Coordinates {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "uniform" => Ok(Self::Uniform),
            "cotangent" => Ok(Self::Cotangent),
            "local" => Ok(Self::Local),
            _ => Err("uniform, cotangent or local is wanted".into()),
        }
    }
}

/// What the differential network minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Absolute differences of differential coordinates, as the paper has it.
    #[default]
    L1,
    /// Squared differences, for comparison.
    L2,
}

/// How to learn a differential twin. The defaults reach the paper's relations on two cores in minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiffSettings {
    /// Where `T_i` comes from.
    pub skin: SkinSource,
    /// Whether what is linear in the features is fitted first, and networks learn the rest.
    pub linear: bool,
    /// What the deep network learns.
    pub coordinates: Coordinates,
    /// Principal components of the differential coordinates, per cent of the number of vertices.
    pub components_percent: f64,
    /// Or the fewest whose mean reprojection error of a vertex's differential coordinate is below this, mm.
    pub components_mm: Option<f64>,
    /// Anchors, per cent of the number of vertices; every island has one at least.
    pub anchors_percent: f64,
    /// ω of eq. 4, on which every anchor's own accuracy is put; `None` takes the best of a sweep on held-back poses.
    pub anchor_weight: Option<f64>,
    /// Hidden layers of the differential network.
    pub widths: Vec<usize>,
    /// Hidden layers of every mini-network.
    pub anchor_widths: Vec<usize>,
    /// One network for all anchors in place of mini-networks, for comparison. Every anchor of the twin gets a copy.
    pub single_network: bool,
    /// After every hidden layer.
    pub activation: HiddenActivation,
    /// Of the differential network.
    pub loss: Loss,
    /// Vertices whose differential coordinates a training step looks at, drawn anew for every step; 0 for all. The
    /// expected gradient is that of all, at a fraction of the cost.
    pub loss_vertices: usize,
    /// How parameters follow the gradient.
    pub optimiser: Optimiser,
    /// How the rate goes on.
    pub schedule: RateSchedule,
    /// First learning rate.
    pub rate: f32,
    /// Poses a step.
    pub batch: usize,
    /// Steps of the differential network.
    pub steps: usize,
    /// Steps of every mini-network.
    pub anchor_steps: usize,
    /// Passes over the poses instead of numbers of steps, for all networks.
    pub epochs: Option<usize>,
    /// Random poses of the live rig in which every control is moved to find what moves an anchor.
    pub probe_poses: usize,
    /// Share of the poses that are held back.
    pub validation: f32,
    /// Same seed, same twin.
    pub seed: u64,
}

impl Default for DiffSettings {
    fn default() -> Self {
        Self {
            skin: SkinSource::Auto,
            linear: true,
            coordinates: Coordinates::Uniform,
            components_percent: 5.0,
            components_mm: None,
            anchors_percent: 2.0,
            anchor_weight: None,
            widths: vec![512; 2],
            anchor_widths: vec![32; 2],
            single_network: false,
            activation: HiddenActivation::Relu,
            loss: Loss::L1,
            loss_vertices: 256,
            optimiser: Optimiser::Adam,
            schedule: RateSchedule::Cosine,
            rate: 1e-3,
            batch: 128,
            steps: 6000,
            anchor_steps: 1500,
            epochs: None,
            probe_poses: 4,
            validation: 0.05,
            seed: 1,
        }
    }
}

impl DiffSettings {
    /// The recipe of the paper: five hidden layers of 2048, mini-networks of three layers of 64, the whole decode in the
    /// loss, stochastic gradient descent at a rate of 0.1 that decays by 1e-6 a step, 10,000 epochs, 100 probed poses. ω
    /// has no value there: 1.
    pub fn paper() -> Self {
        Self {
            linear: false,
            anchor_weight: Some(1.0),
            widths: vec![2048; 5],
            anchor_widths: vec![64; 3],
            loss_vertices: 0,
            optimiser: Optimiser::Sgd,
            schedule: RateSchedule::InverseTime,
            rate: 0.1,
            epochs: Some(10_000),
            probe_poses: 100,
            ..Self::default()
        }
    }

    /// Every number makes sense.
    pub fn check(&self) -> Result<(), DiffLearnError> {
        let setting = |what, value, want, fine| match fine {
            true => Ok(()),
            false => Err(DiffLearnError::Setting { what, value, want }),
        };
        let percent = |what, value: f64| {
            setting(what, value, "more than 0, at most 100", value > 0.0 && value <= 100.0)
        };
        percent("share of components", self.components_percent)?;
        percent("share of anchors", self.anchors_percent)?;
        let positive =
            |what, value: f64| setting(what, value, "more than 0", value.is_finite() && value > 0.0);
        if let Some(error) = self.components_mm {
            positive("error of components", error)?;
        }
        if let Some(weight) = self.anchor_weight {
            positive("weight of anchors", weight)?;
        }
        positive("learning rate", f64::from(self.rate))?;
        let narrowest = self.widths.iter().chain(&self.anchor_widths).min().copied().unwrap_or(0);
        setting("width", narrowest as f64, "1 or more", narrowest > 0)?;
        setting("batch", self.batch as f64, "1 or more", self.batch > 0)?;
        setting("number of steps", self.steps as f64, "1 or more", self.steps > 0)?;
        setting("number of anchor steps", self.anchor_steps as f64, "1 or more", self.anchor_steps > 0)?;
        let epochs = self.epochs.unwrap_or(1);
        setting("number of epochs", epochs as f64, "1 or more", epochs > 0)?;
        let held = f64::from(self.validation);
        setting("validation share", held, "0 to 0.5", (0.0..=0.5).contains(&held))
    }

    /// Steps of the differential network on so many poses.
    pub fn steps_for(&self, poses: usize) -> usize {
        let each = (poses / self.batch.clamp(1, poses.max(1))).max(1);
        self.epochs.map_or(self.steps, |epochs| epochs * each)
    }

    /// What losses are measured in, cm: the size of what is learned, so that a rate serves any character; centimetres in the
    /// paper's gradient descent, whose rate belongs to them.
    pub(super) fn loss_unit(&self, size: f64) -> f64 {
        match self.optimiser {
            Optimiser::Sgd => 1.0,
            Optimiser::Adam => size,
        }
    }

    /// How a mini-network trains on so many poses.
    pub(super) fn anchor_training(&self, poses: usize, anchor: usize) -> TrainSettings {
        let each = (poses / self.batch.clamp(1, poses.max(1))).max(1);
        let epochs = self.epochs.unwrap_or(self.anchor_steps.div_ceil(each)).max(1);
        TrainSettings {
            epochs,
            batch: self.batch,
            optimiser: self.optimiser,
            rate: if self.optimiser == Optimiser::Adam { 3.0 * self.rate } else { self.rate },
            schedule: self.schedule,
            decay: 0.0,
            sparsity: 0.0,
            judge_by_mean: false,
            validation: self.validation,
            patience: usize::MAX,
            seed: self.seed.wrapping_mul(1_000_003).wrapping_add(anchor as u64),
        }
    }
}
