//! A clip of a rig, or of a file that it plays, recorded in memory: what `sample` would write, for commands that need it once.

use crate::{Event, JobError, Watch, clips};
use rayon::prelude::*;
use understudy_learn::Recording;
use understudy_rigs::{Rig, RigPose};

/// Every frame of a clip, at the clip's own rate, and the clip's name.
pub(super) fn record_clip(
    rig: &dyn Rig,
    clip: &str,
    watch: &dyn Watch,
) -> Result<(String, Recording), JobError> {
    let clip = clips::resolve(rig, clip, watch)?;
    let sampled =
        clip.sample(rig.specs(), clip.own_rate()).map_err(|error| JobError::setting("rate", error))?;
    let what = format!("playing {}", clip.name);
    watch.event(Event::Started { what: &what, total: sampled.frames.len() as u64, unit: "frames" });
    let one = |pose: &mut RigPose, controls: &understudy_core::Controls| {
        rig.evaluate(controls, pose).map_err(JobError::rig(rig.name()))?;
        Ok((pose.global.0.clone(), pose.vertices.clone()))
    };
    let poses: Vec<_> =
        sampled.frames.par_iter().map_init(RigPose::default, one).collect::<Result<_, JobError>>()?;
    watch.event(Event::Finished);
    let (bones, vertices): (Vec<_>, Vec<_>) = poses.into_iter().unzip();
    let recording = Recording {
        mesh: rig.mesh().clone(),
        skeleton: rig.skeleton().cloned(),
        specs: rig.specs().clone(),
        bones: if rig.skeleton().is_some() { bones.concat() } else { Vec::new() },
        controls: sampled.frames.iter().flat_map(|frame| frame.0.iter().copied()).collect(),
        vertices: vertices.concat(),
    };
    Ok((clip.name, recording))
}
