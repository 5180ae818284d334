//! Everything that can become a GLB: meshes, skins with morph targets as they are, other rigs clip by
//! clip, baked.

use super::bake::{Bake, bake};
use super::exact::skin_and_shapes;
use super::influences::Influences;
use super::{BakeReport, Written};
use crate::{Event, JobError, Watch};
use understudy_core::{
    BlendshapeRig, Clip, JointClip, Mesh, Shape, Skeleton, SkinWeights, SparseDeltas, Vec3,
};
use understudy_io::Model;
use understudy_io::gltf::{GltfScene, SceneError, Surface, to_glb_bytes};
use understudy_rigs::Rig;

/// A model again, with everything that was read: keys as they are, or frames at another rate.
pub(super) fn model(
    name: &str,
    model: &Model,
    rate: Option<f32>,
    influences: Option<usize>,
) -> Result<Written, JobError> {
    let sampled: Vec<JointClip>;
    let frames = || model.clips.iter().filter_map(|clip| model.frames(clip, None).ok()).collect();
    let kept = model
        .bound()
        .map(|(skeleton, skin)| Influences::new(skeleton, skin, model.mesh.positions(), influences, frames));
    let mut scene = model.scene(name);
    scene.skin = model.skeleton.as_ref().zip(kept.as_ref().map(Influences::weights));
    if let Some(rate) = rate {
        let frames = model.clips.iter().map(|clip| model.frames(clip, Some(rate)));
        sampled = frames.collect::<Result<_, _>>().map_err(|error| JobError::setting("rate", error))?;
        scene = GltfScene { keyed_clips: &[], clips: &sampled, ..scene };
    }
    let bytes = to_glb_bytes(&scene).map_err(scene_error(name))?;
    let shapes = model.shapes.as_ref().map_or(0, |shapes| shapes.shapes().len());
    let mut lines =
        contents(&model.mesh, model.skeleton.as_ref().map(Skeleton::len), shapes, model.clips.len());
    if let Some([materials, textures, images]) =
        model.surface.as_ref().map(Surface::counts).filter(|[materials, ..]| *materials > 0)
    {
        lines.push(format!("{materials} materials, {textures} textures and {images} images as they were"));
    }
    lines.extend(kept.and_then(|kept| kept.line()));
    Ok(Written::new(bytes, lines))
}

/// A rig that is nothing but a skin and shapes; any other is refused with a hint at baking.
pub(super) fn rig(
    rig: &dyn Rig,
    clips: &[Clip],
    rate: Option<f32>,
    influences: Option<usize>,
) -> Result<Written, JobError> {
    let parts = skin_and_shapes(rig, clips, rate)?;
    let kept = parts.skin.as_ref().map(|(skeleton, weights)| {
        Influences::new(skeleton, weights, rig.mesh().positions(), influences, || parts.clips.clone())
    });
    let colours = linear_colours(rig);
    let scene = GltfScene {
        skin: parts.skin.as_ref().zip(kept.as_ref()).map(|((skeleton, _), kept)| (skeleton, kept.weights())),
        shapes: parts.shapes.as_ref(),
        rest_weights: &parts.rest_weights,
        clips: &parts.clips,
        colours: colours.as_deref(),
        ..GltfScene::new(rig.name(), rig.mesh())
    };
    let bytes = to_glb_bytes(&scene).map_err(scene_error(rig.name()))?;
    let shapes = parts.shapes.as_ref().map_or(0, |shapes| shapes.shapes().len());
    let bones = parts.skin.as_ref().map(|(skeleton, _)| skeleton.len());
    let mut lines = contents(rig.mesh(), bones, shapes, parts.clips.len());
    lines.push(format!("within {:.4} mm of the rig in every pose tried", parts.max_error * 10.0));
    lines.extend(kept.and_then(|kept| kept.line()));
    Ok(Written::new(bytes, lines))
}

/// Bones and their motion on a figure of sticks.
pub(super) fn motion(
    name: &str,
    skeleton: &Skeleton,
    figure: &(Mesh, SkinWeights),
    clips: &[JointClip],
) -> Result<Written, JobError> {
    let scene = GltfScene { skin: Some((skeleton, &figure.1)), clips, ..GltfScene::new(name, &figure.0) };
    let bytes = to_glb_bytes(&scene).map_err(scene_error(name))?;
    Ok(Written::new(bytes, contents(&figure.0, Some(skeleton.len()), 0, clips.len())))
}

/// Frames of a clip as a mean shape, morph targets and their animated weights.
pub(super) fn baked(
    rig: &Baked<'_>,
    frames: &[Vec<Vec3>],
    tolerance_mm: f32,
    watch: &dyn Watch,
) -> Result<Written, JobError> {
    let what = format!("baking '{}'", rig.clip);
    watch.event(Event::Started { what: &what, total: 2, unit: "steps" });
    let result = bake(frames, tolerance_mm / 10.0)
        .map_err(JobError::bake(format!("{}: clip '{}'", rig.name, rig.clip)))?;
    watch.event(Event::Step { done: 1 });
    let bytes = baked_bytes(rig, &result)?;
    watch.event(Event::Finished);
    let report = BakeReport {
        clip: rig.clip.into(),
        frames: frames.len(),
        rate: rig.rate,
        targets: result.targets.len(),
        tolerance_mm,
        max_error_mm: result.max_error * 10.0,
        mean_error_mm: result.mean_error * 10.0,
    };
    let mut lines = contents(rig.mesh, None, report.targets, 1);
    lines.push(format!(
        "{} morph targets follow the {} frames of '{}' within {:.4} mm (mean {:.4} mm, tolerance {tolerance_mm} mm)",
        report.targets, report.frames, report.clip, report.max_error_mm, report.mean_error_mm,
    ));
    Ok(Written { bytes, contents: lines, baked: Some(report) })
}

/// What a baked file needs beside the frames.
pub(super) struct Baked<'a> {
    /// Name of the rig.
    pub name: &'a str,
    /// Topology.
    pub mesh: &'a Mesh,
    /// Linear RGB a vertex.
    pub colours: Option<Vec<Vec3>>,
    /// The look of the file that the mesh was read from.
    pub surface: Option<Surface>,
    /// Name of the clip.
    pub clip: &'a str,
    /// Frames a second.
    pub rate: f32,
}

fn baked_bytes(rig: &Baked<'_>, result: &Bake) -> Result<Vec<u8>, JobError> {
    let failed = |error: &dyn std::fmt::Display| JobError::unusable(rig.name, error);
    let mesh = rig.mesh.with_positions(&result.base).map_err(|error| failed(&error))?;
    let shape = |(k, target): (usize, &Vec<Vec3>)| Shape {
        name: format!("{}_{k:03}", rig.clip),
        deltas: SparseDeltas::from_dense(target, 0.0),
    };
    let shapes: Vec<Shape> = result.targets.iter().enumerate().map(shape).collect();
    let still = shapes.is_empty();
    let shapes =
        BlendshapeRig::new(result.base.clone(), shapes, Vec::new()).map_err(|error| failed(&error))?;
    let clip = JointClip {
        name: rig.clip.into(),
        rate: rig.rate,
        poses: Vec::new(),
        shape_weights: result.weights.clone(),
    };
    let clips = [clip];
    let mut scene = GltfScene {
        colours: rig.colours.as_deref(),
        surface: rig.surface.as_ref(),
        ..GltfScene::new(rig.name, &mesh)
    };
    // The first frame is what a viewer shows that plays nothing.
    let first = result.weights[0].clone();
    if !still {
        scene = GltfScene { shapes: Some(&shapes), rest_weights: &first, clips: &clips, ..scene };
    }
    to_glb_bytes(&scene).map_err(scene_error(rig.name))
}

/// Every frame of a rig's clip, evaluated in parallel, and the frames per second.
pub(super) fn evaluate_clip(
    rig: &dyn Rig,
    clip: &Clip,
    rate: Option<f32>,
    watch: &dyn Watch,
) -> Result<(f32, Vec<Vec<Vec3>>), JobError> {
    let rate = rate.unwrap_or_else(|| clip.own_rate());
    let sampled = clip.sample(rig.specs(), rate).map_err(|error| JobError::setting("frame rate", error))?;
    if sampled.frames.len() > super::bake::MAX_FRAMES {
        let error = super::bake::BakeError::TooLong { frames: sampled.frames.len() };
        return Err(JobError::setting(format!("clip '{}'", clip.name), error));
    }
    let what = format!("evaluating '{}'", clip.name);
    watch.event(Event::Started { what: &what, total: sampled.frames.len() as u64, unit: "frames" });
    let frames = crate::clips::evaluate(rig, &sampled.frames);
    watch.event(Event::Finished);
    Ok((rate, frames?))
}

/// Colours of a rig as files hold them.
pub(crate) fn linear_colours(rig: &dyn Rig) -> Option<Vec<Vec3>> {
    let channel = |v: f32| if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
    let linear = |c: &Vec3| Vec3::from_array(c.to_array().map(|v| channel(v.clamp(0.0, 1.0))));
    rig.colours().map(|colours| colours.iter().map(linear).collect())
}

fn contents(mesh: &Mesh, bones: Option<usize>, shapes: usize, clips: usize) -> Vec<String> {
    let mut parts = vec![format!("{} vertices", mesh.vertex_count())];
    parts.extend(bones.map(|bones| format!("{bones} bones")));
    parts.push(format!("{shapes} morph targets"));
    parts.push(format!("{clips} clips"));
    vec![parts.join(", ")]
}

fn scene_error(name: &str) -> impl Fn(SceneError) -> JobError + '_ {
    move |error| JobError::unusable(name, error)
}
