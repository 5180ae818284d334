//! The commands `motion learn`, `motion info` and `motion play`: latent spaces of an artist's clips, and scripts that
//! walk them. The mathematics is `understudy_motion`; here it meets rigs and files.

mod corpus;
pub mod game;
mod learn;
mod play;

pub use corpus::{ClipPart, LabelSpec};
pub use learn::{LabelReport, LearnMotionConfig, LearnMotionReport, learn};
pub use play::{PlayMotionConfig, PlayMotionReport, play};

use crate::{JobError, Watch};
use serde::Serialize;
use std::path::{Path, PathBuf};
use understudy_motion::MotionFile;

/// A file of motion is not larger than this.
const MAX_BYTES: u64 = 1 << 30;

/// Reads and checks a file of motion.
pub fn open(path: &Path) -> Result<MotionFile, JobError> {
    let failed = |error: std::io::Error| JobError::unusable(path, error);
    if std::fs::metadata(path).map_err(failed)?.len() > MAX_BYTES {
        return Err(JobError::unusable(path, "is too large for a file of motion"));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let file: MotionFile = serde_json::from_slice(&bytes)
        .map_err(|error| JobError::unusable(path, format!("is no file of motion: {error}")))?;
    match file.problem() {
        Some(problem) => Err(JobError::unusable(path, problem)),
        None => Ok(file),
    }
}

/// TEMPORARY until the engine's own: reads what the run time plays.
pub fn open_motion(path: &Path) -> Result<understudy_runtime::motion::Motion, JobError> {
    let bytes = std::fs::read(path).map_err(|error| JobError::unusable(path, error))?;
    understudy_runtime::motion::Motion::parse(&bytes).map_err(|error| JobError::unusable(path, error))
}

/// A label of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelInfo {
    /// Such as `happy`.
    pub label: String,
    /// The clips with their frames.
    pub clips: Vec<(String, usize)>,
    /// Training frames.
    pub frames: usize,
    /// Principal components.
    pub components: usize,
    /// Dimensions of the latent space.
    pub dimensions: usize,
    /// Controls that move.
    pub controls: usize,
}

/// Bridges between two labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BridgeInfo {
    /// A label.
    pub from: String,
    /// The other.
    pub to: String,
    /// How many.
    pub bridges: usize,
    /// The smallest jump, mm.
    pub least_mm: f32,
}

/// What is in a file of motion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MotionInfo {
    /// The file.
    pub file: PathBuf,
    /// Whose controls.
    pub rig: String,
    /// Frames per second.
    pub rate: f32,
    /// The labels.
    pub labels: Vec<LabelInfo>,
    /// The bridges.
    pub bridges: Vec<BridgeInfo>,
}

/// Says what is in a file of motion.
pub fn info(path: &Path, _watch: &dyn Watch) -> Result<MotionInfo, JobError> {
    let file = open(path)?;
    Ok(describe(&file, path))
}

fn describe(file: &MotionFile, path: &Path) -> MotionInfo {
    let label = |model: &understudy_motion::MotionModel| LabelInfo {
        label: model.label.clone(),
        clips: model.clips.iter().map(|clip| (clip.name.clone(), clip.frames)).collect(),
        frames: model.space.len(),
        components: model.linear.components.len(),
        dimensions: model.space.dimensions(),
        controls: model.linear.scale.iter().filter(|scale| **scale > 0.0).count(),
    };
    let mut bridges: Vec<BridgeInfo> = Vec::new();
    for bridge in &file.bridges {
        let (a, b) = (bridge.from.min(bridge.to), bridge.from.max(bridge.to));
        let (from, to) = (file.models[a].label.clone(), file.models[b].label.clone());
        match bridges.iter_mut().find(|known| known.from == from && known.to == to) {
            Some(known) => {
                known.bridges += 1;
                known.least_mm = known.least_mm.min(bridge.millimetres);
            }
            None => bridges.push(BridgeInfo { from, to, bridges: 1, least_mm: bridge.millimetres }),
        }
    }
    MotionInfo {
        file: path.into(),
        rig: file.rig.clone(),
        rate: file.rate,
        labels: file.models.iter().map(label).collect(),
        bridges,
    }
}
