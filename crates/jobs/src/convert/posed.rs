//! A pose or a clip of an open rig as a file in memory, for programs that hand it on: what [`super::convert`] writes for a
//! command.

use super::to_glb::{Baked, baked, evaluate_clip, linear_colours};
use super::{ConvertConfig, tables};
use crate::{JobError, Watch};
use understudy_core::{Clip, Controls};
use understudy_io::gltf::{GltfScene, to_glb_bytes};
use understudy_rigs::{Rig, RigPose};

/// The mesh of one pose, `glb` (with the rig's colours) or `obj`.
pub fn pose(rig: &dyn Rig, controls: &[f32], format: &str) -> Result<Vec<u8>, JobError> {
    let mut pose = RigPose::default();
    rig.evaluate(&Controls(controls.to_vec()), &mut pose).map_err(JobError::rig(rig.name()))?;
    let failed = |error: &dyn std::fmt::Display| JobError::unusable(rig.name(), error);
    let mesh = rig.mesh().with_positions(&pose.vertices).map_err(|error| failed(&error))?;
    match format {
        "glb" => {
            let colours = linear_colours(rig);
            let scene = GltfScene { colours: colours.as_deref(), ..GltfScene::new(rig.name(), &mesh) };
            to_glb_bytes(&scene).map_err(|error| failed(&error))
        }
        "obj" => Ok(tables::obj(&mesh).bytes),
        other => Err(JobError::setting("format", format!("a pose is written as glb or obj, not {other}"))),
    }
}

/// A clip: `glb` as morph targets, within the usual tolerance of a tenth of a millimetre, or `csv` with its controls.
pub fn clip(rig: &dyn Rig, clip: &Clip, format: &str, watch: &dyn Watch) -> Result<Vec<u8>, JobError> {
    let tolerance_mm = ConvertConfig::default().tolerance_mm;
    match format {
        "glb" => {
            let (rate, frames) = evaluate_clip(rig, clip, None, watch)?;
            let (name, mesh, colours) = (rig.name(), rig.mesh(), linear_colours(rig));
            let scene = Baked { name, mesh, colours, surface: None, clip: &clip.name, rate };
            Ok(baked(&scene, &frames, tolerance_mm, watch)?.bytes)
        }
        "csv" => {
            let sampled = clip
                .sample(rig.specs(), clip.own_rate())
                .map_err(|error| JobError::setting("rate", error))?;
            let names = rig.specs().iter().map(|spec| spec.name.clone()).collect();
            let rows: Vec<Vec<f32>> = sampled.frames.into_iter().map(|frame| frame.0).collect();
            Ok(tables::csv(names, &rows, sampled.rate, rig.name())?.bytes)
        }
        other => Err(JobError::setting("format", format!("a clip is written as glb or csv, not {other}"))),
    }
}
