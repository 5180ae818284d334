//! `motion project`: where poses that nobody learned lie in the latent spaces, and how near those come to them.

use super::mesh::MeshDistance;
use super::open;
use super::turns::Turns;
use crate::{Event, JobError, Watch, clips, rigs};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use understudy_runtime::motion::Workspace;

/// What to project.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectMotionConfig {
    /// The file of motion.
    pub motion: PathBuf,
    /// A clip of the rig, or a file with one.
    pub clip: String,
    /// The label to project into; the nearest of all where none is named.
    pub label: Option<String>,
    /// The rig, where it is not at the place where it was learned.
    pub rig: Option<String>,
}

/// A pose in a latent space.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Projected {
    /// Frame of the clip.
    pub frame: usize,
    /// The label whose pose is nearest.
    pub label: String,
    /// Where it lies there.
    pub point: Vec<f64>,
    /// `log p(x|M)` there.
    pub density: f64,
    /// Mean distance of a vertex to the pose itself, mm.
    pub mean_mm: f32,
}

/// Where a clip lies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectMotionReport {
    /// The clip.
    pub clip: String,
    /// Its frames.
    pub frames: Vec<Projected>,
    /// Mean over the frames, mm.
    pub mean_mm: f32,
}

/// Projects every frame of a clip.
pub fn project(config: &ProjectMotionConfig, watch: &dyn Watch) -> Result<ProjectMotionReport, JobError> {
    let motion = open(&config.motion)?;
    let name = config.rig.as_deref().unwrap_or(motion.rig());
    let rig = rigs::open(name, watch)?.rig;
    if rig.specs() != motion.controls() {
        let problem = format!("is not the rig of {}: its controls are others", config.motion.display());
        return Err(JobError::unusable(name, problem));
    }
    let clip = clips::resolve(rig.as_ref(), &config.clip, watch)?;
    let sampled =
        clip.sample(rig.specs(), motion.rate()).map_err(|error| JobError::unusable(rig.name(), error))?;
    let only = config.label.as_deref().map(|label| motion.label(label)).transpose();
    let only = only.map_err(|error| JobError::setting("label", error))?;
    let mut work = Workspace::new(&motion);
    let turns = Turns::new(rig.specs());
    let mut mesh = MeshDistance::new(rig.as_ref());
    let mut frames = Vec::new();
    watch.event(Event::Started { what: "projecting", total: sampled.frames.len() as u64, unit: "frames" });
    for (frame, controls) in sampled.frames.iter().enumerate() {
        let mut best: Option<Projected> = None;
        for (place, model) in motion.models().iter().enumerate() {
            if only.is_some_and(|only| only != place) {
                continue;
            }
            // The angles that the label was learned with, of all that mean the same turn.
            let mut near = controls.0.clone();
            turns.bring(&mut near, &model.basis().parts().rest);
            let (point, _) = model.project(&near, &mut work);
            let mean_mm = mesh.mean_mm(&near, &model.pose(point))?;
            if best.as_ref().is_none_or(|other| mean_mm < other.mean_mm) {
                let (density, _) = model.space().density(point, &mut work);
                let point = point.coordinates(model.space().dimensions()).to_vec();
                let label = model.label().to_owned();
                best = Some(Projected { frame, label, point, density, mean_mm });
            }
        }
        frames.extend(best);
        watch.event(Event::Step { done: frame as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    let mean_mm = frames.iter().map(|frame| frame.mean_mm).sum::<f32>() / frames.len().max(1) as f32;
    Ok(ProjectMotionReport { clip: clip.name, frames, mean_mm })
}
