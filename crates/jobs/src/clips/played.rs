//! Vertices over time: a model that plays one of its clips, or the motion of another file.

use super::{is_file, resolve};
use crate::inputs::stem;
use crate::rigs::model_rig;
use crate::{JobError, Watch};
use rayon::prelude::*;
use std::path::Path;
use understudy_core::{Controls, KeyedClip, SampledClip, Vec3};
use understudy_io::Model;
use understudy_rigs::{Rig, RigPose, StackRig};

/// A model in motion, frame by frame at the clip's own rate.
pub(crate) struct Played<'a> {
    model: &'a Model,
    motion: Frames<'a>,
}

enum Frames<'a> {
    /// Keys of the model itself.
    Own(&'a KeyedClip),
    /// Controls of the rig that the model makes.
    Given(Box<StackRig>, SampledClip),
}

impl<'a> Played<'a> {
    /// The clip of a name, of a file, or the model's first; `None` for a model without clips that is asked for none.
    pub fn new(
        model: &'a Model,
        path: &Path,
        clip: Option<&str>,
        watch: &dyn Watch,
    ) -> Result<Option<Self>, JobError> {
        let motion = match clip {
            None if model.clips.is_empty() => return Ok(None),
            Some(name) if model.find_clip(name).is_none() && is_file(name) => {
                let rig = model_rig(&stem(path), model).map_err(|error| JobError::unusable(path, error))?;
                let clip = resolve(&rig, name, watch)?;
                let frames = clip.sample(rig.specs(), clip.own_rate());
                Frames::Given(Box::new(rig), frames.map_err(|error| JobError::setting("clip", error))?)
            }
            name => Frames::Own(one_of(&model.clips, name, &path.to_string_lossy())?),
        };
        Ok(Some(Self { model, motion }))
    }

    pub fn name(&self) -> &str {
        match &self.motion {
            Frames::Own(clip) => &clip.name,
            Frames::Given(_, clip) => &clip.name,
        }
    }

    pub fn rate(&self) -> f32 {
        match &self.motion {
            Frames::Own(clip) => clip.rate,
            Frames::Given(_, clip) => clip.rate,
        }
    }

    pub fn len(&self) -> usize {
        match &self.motion {
            Frames::Own(clip) => clip.own_frames(),
            Frames::Given(_, clip) => clip.frames.len(),
        }
    }

    /// Vertices of a frame, `[V]` cm.
    pub fn frame(&self, frame: usize) -> Result<Vec<Vec3>, JobError> {
        match &self.motion {
            Frames::Own(clip) => Ok(self.model.evaluate(clip, frame)),
            Frames::Given(rig, clip) => {
                let mut pose = RigPose::default();
                rig.evaluate(&clip.frames[frame], &mut pose).map_err(JobError::rig(rig.name()))?;
                Ok(pose.vertices)
            }
        }
    }
}

/// The clip of that name, or the first where none is named.
pub(crate) fn one_of<'a>(
    clips: &'a [KeyedClip],
    name: Option<&str>,
    owner: &str,
) -> Result<&'a KeyedClip, JobError> {
    match name {
        None => clips.first().ok_or_else(|| JobError::unusable(owner, "has no animation")),
        Some(name) => clips
            .iter()
            .find(|clip| clip.name == name)
            .ok_or_else(|| JobError::unknown_clip(owner, name, clips.iter().map(|clip| clip.name.as_str()))),
    }
}

/// Vertices of some poses of a rig, evaluated in parallel.
pub(crate) fn evaluate(rig: &dyn Rig, poses: &[Controls]) -> Result<Vec<Vec<Vec3>>, JobError> {
    let one = |pose: &mut RigPose, controls: &Controls| {
        rig.evaluate(controls, pose).map_err(JobError::rig(rig.name()))?;
        Ok(pose.vertices.clone())
    };
    poses.par_iter().map_init(RigPose::default, one).collect()
}
