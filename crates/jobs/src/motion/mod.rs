//! The commands `motion learn`, `info`, `play`, `project` and `game`: latent spaces of an artist's clips, and scripts that walk
//! them. Learning is `understudy_motion`, playing `understudy_runtime::motion`; here they meet rigs and files.

mod corpus;
mod film;
pub mod game;
mod learn;
mod mesh;
mod page;
mod play;
mod prepare;
mod project;
mod turns;

pub(crate) use corpus::own_labels;
pub use corpus::{ClipPart, LabelFrames, LabelSpec, corpus};
pub use learn::{LabelReport, LearnMotionConfig, LearnMotionReport, learn, learn_frames, learn_labels};
pub use mesh::MeshDistance;
pub(crate) use page::latent_plot;
pub use page::page;
pub use play::{PlayMotionConfig, PlayMotionReport, play};
pub use prepare::{PreparedLabel, prepare};
pub use project::{ProjectMotionConfig, ProjectMotionReport, Projected, project};

use crate::{JobError, Watch};
use serde::Serialize;
use std::path::{Path, PathBuf};
use understudy_runtime::motion::{Model, Motion};

/// A file of motion is not larger than this.
const MAX_BYTES: u64 = 1 << 30;

/// Reads and checks a file of motion.
pub fn open(path: &Path) -> Result<Motion, JobError> {
    let failed = |error: std::io::Error| JobError::unusable(path, error);
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err(JobError::unusable(path, "is no file"));
    }
    if about.len() > MAX_BYTES {
        return Err(JobError::unusable(path, "is too large for a file of motion"));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    Motion::parse(&bytes).map_err(|error| JobError::unusable(path, error))
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
    /// Centres of the covariance: the frames, or fewer in a sparse model.
    pub centres: usize,
    /// Directions that the density is made of.
    pub rank: usize,
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

/// Says what is in a file of motion; with `page` also shows it: the latent spaces and poses on both ends of bridges.
pub fn info(path: &Path, picture: Option<&Path>, watch: &dyn Watch) -> Result<MotionInfo, JobError> {
    if let Some(picture) = picture {
        page::check(picture, path)?;
    }
    let motion = open(path)?;
    let info = describe(&motion, path);
    if let Some(picture) = picture {
        page(&motion, &info, picture, watch)?;
    }
    Ok(info)
}

fn describe(motion: &Motion, path: &Path) -> MotionInfo {
    let label = |model: &Model| LabelInfo {
        label: model.label().to_owned(),
        clips: model.clips().iter().map(|clip| (clip.name.clone(), clip.frames)).collect(),
        frames: model.space().len(),
        centres: model.space().centres(),
        rank: model.space().rank(),
        components: model.space().outputs(),
        dimensions: model.space().dimensions(),
        controls: model.basis().moving().len(),
    };
    let mut bridges: Vec<BridgeInfo> = Vec::new();
    for bridge in motion.bridges() {
        let (a, b) = (bridge.from.min(bridge.to), bridge.from.max(bridge.to));
        let name = |model: usize| motion.models()[model].label().to_owned();
        let (from, to) = (name(a), name(b));
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
        rig: motion.rig().to_owned(),
        rate: motion.rate(),
        labels: motion.models().iter().map(label).collect(),
        bridges,
    }
}
