//! `export --glb`: the linear part of a twin with bones as a plain skinned GLB with clips, for engines that run no
//! code. Start at `export_glb`; what the networks add is lost, and the report says how much that is.

use super::data::{Loaded, named_or_live_rig};
use super::kinds::{OwnSkin, kind};
use crate::convert::{linear_colours, local_pose};
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, threads};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_core::metrics::{distances, summarise};
use understudy_core::{
    Affine3A, ControlSpec, ControlSpecs, Controls, GlobalPose, JointClip, Mesh, Skeleton, Vec3,
};
use understudy_io::gltf::{GltfScene, to_glb_bytes};
use understudy_learn::Recording;
use understudy_learn::baselines::{Examples, Skinned};
use understudy_rigs::sampling::SamplingConfig;
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::{Pose, Twin};

/// Poses that the skin is fitted to: as many as the baseline `lbs4` looks at.
const POSES: usize = 200;
/// Bones a vertex: what every engine plays.
const INFLUENCES: usize = 4;
/// Bones a vertex that are tried.
const CANDIDATES: usize = 16;
/// How far the file may play beside the fitted skin before the report warns, mm.
const PLAYBACK_MM: f64 = 0.01;

/// How a GLB is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GlbSettings {
    /// The rig, where it is not where the twin says.
    pub rig: Option<String>,
    /// The dataset that the skin is fitted to. `None`: the twin's own linear part where it blends at most four
    /// bones, else random poses of its rig.
    pub train: Option<PathBuf>,
    /// Clips of the rig by name, or datasets that were recorded from clips; all clips of the rig when empty.
    pub clips: Vec<String>,
    /// Frames a second at which the rig's clips are read; a dataset has its own.
    pub rate: Option<f32>,
    /// Threads; the file does not depend on it.
    pub threads: usize,
}

impl Default for GlbSettings {
    fn default() -> Self {
        Self { rig: None, train: None, clips: Vec::new(), rate: None, threads: threads::available() }
    }
}

/// Where the weights came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightSource {
    /// Fitted to the dataset that was named.
    Dataset,
    /// The twin's own linear part.
    Twin,
    /// Fitted to random poses of the rig.
    Rig,
}

/// What was exported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportGlbReport {
    /// The file.
    pub output: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// Vertices of the mesh.
    pub vertices: usize,
    /// Joints.
    pub bones: usize,
    /// Most bones per vertex.
    pub influences: usize,
    /// Where the weights came from.
    pub weights: WeightSource,
    /// The clips.
    pub clips: Vec<GlbClip>,
}

/// One clip of the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlbClip {
    /// Its name.
    pub name: String,
    /// Frames.
    pub frames: usize,
    /// Frames a second.
    pub rate: f32,
    /// How far the skin is from the original, mean over vertices and frames, mm.
    pub mean_mm: f64,
    /// The worst vertex, mm.
    pub max_mm: f64,
    /// How far the joints of the file are from the fitted skin, worst vertex, mm: zero but for rounding
    /// unless bones shear, which joints cannot.
    pub playback_mm: f64,
}

/// Frames of one clip as the original plays them.
pub(super) struct Take {
    pub name: String,
    pub rate: f32,
    /// Of the twin, in its order.
    pub controls: Vec<Vec<f32>>,
    pub bones: Vec<Vec<Affine3A>>,
    pub vertices: Vec<Vec<Vec3>>,
}

/// Fits the skin, turns the bones into joints and writes the GLB. `path` is the twin's.
pub(super) fn export_glb(
    twin: &Twin,
    path: &Path,
    output: &Path,
    config: &GlbSettings,
    watch: &dyn Watch,
) -> Result<ExportGlbReport, JobError> {
    let clips = config.clips.iter().map(Path::new);
    check_file(output, &config.train.as_deref().into_iter().chain(clips).collect::<Vec<_>>())?;
    if let Some(rate) = config.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
        return Err(JobError::setting("rate", format!("{rate} frames per second; more than 0 is wanted")));
    }
    if let Some(own) = kind(twin).own_skin() {
        return export_own_skin(twin, own, path, output, config, watch);
    }
    if twin.header().inputs.bones.is_empty() {
        let problem =
            "this twin has no bones and so no skin; learn one from its dataset with 'understudy learn lbs'";
        return Err(JobError::setting("--glb", problem));
    }
    let pool = threads::pool(config.threads)?;
    let train = match &config.train {
        None => None,
        Some(folder) => Some(Loaded::read_for(twin, folder, POSES, watch)?),
    };
    let rig = named_or_live_rig(twin, path, config.rig.as_deref(), watch)?;
    // The rig as it is now comes first: its colours go with it.
    let (mesh, skeleton) = match (&rig, &train) {
        (Some(rig), _) => (rig.mesh().clone(), rig.skeleton().cloned()),
        (None, Some(loaded)) => (loaded.recording.mesh.clone(), loaded.recording.skeleton.clone()),
        (None, None) => {
            let problem = format!(
                "holds no faces, and its rig '{}' is not at hand; name the dataset that it was trained on with --train",
                twin.header().rig
            );
            return Err(JobError::unusable(path, problem));
        }
    };
    let skeleton = bound_as_twin(twin, skeleton, path)?;
    let (skin, weights) =
        pool.install(|| fit_skin(twin, &mesh, &skeleton, train, rig.as_deref(), path, watch))?;
    let takes = pool.install(|| takes(config, twin, rig.as_deref(), watch))?;
    if takes.is_empty() {
        watch.event(Event::Note { message: "there is no clip: the file holds the rest pose alone" });
    }

    let (mut clips, mut reports) = (Vec::new(), Vec::new());
    for take in &takes {
        let (clip, report) = joint_clip(take, &skeleton, &skin)?;
        if report.playback_mm > PLAYBACK_MM {
            let message = format!(
                "clip '{}': joints cannot shear as the rig's bones do; the file is up to {:.3} mm beside the skin",
                report.name, report.playback_mm
            );
            watch.event(Event::Warning { message: &message });
        }
        clips.push(clip);
        reports.push(report);
    }
    let colours = rig.as_deref().and_then(linear_colours);
    let scene = GltfScene {
        skin: Some((&skeleton, &skin.weights)),
        clips: &clips,
        colours: colours.as_deref(),
        ..GltfScene::new(&twin.header().rig, &mesh)
    };
    let bytes = to_glb_bytes(&scene).map_err(|error| JobError::unusable(path, error))?;
    understudy_io::write_atomic(output, &bytes)?;
    Ok(ExportGlbReport {
        output: output.to_owned(),
        bytes: bytes.len(),
        vertices: mesh.vertex_count(),
        bones: skeleton.len(),
        influences: skin.weights.max_influences(),
        weights,
        clips: reports,
    })
}

/// Values of the twin's controls, in its order; those that the rig no longer has are at rest.
fn own_controls(twin: &Twin, specs: &ControlSpecs, values: &[f32]) -> Vec<f32> {
    let value = |spec: &ControlSpec| specs.find(&spec.name).map_or(spec.default, |place| values[place]);
    twin.header().inputs.controls.iter().map(value).collect()
}

/// A twin that moves bones of its own: these, and clips as the twin plays them.
fn export_own_skin(
    twin: &Twin,
    mut own: OwnSkin,
    path: &Path,
    output: &Path,
    config: &GlbSettings,
    watch: &dyn Watch,
) -> Result<ExportGlbReport, JobError> {
    if config.train.is_some() {
        let problem = "this twin has bones and weights of its own; nothing is fitted";
        return Err(JobError::setting("--train", problem));
    }
    let pool = threads::pool(config.threads)?;
    let rig = named_or_live_rig(twin, path, config.rig.as_deref(), watch)?;
    let takes = pool.install(|| takes(config, twin, rig.as_deref(), watch))?;
    if takes.is_empty() {
        watch.event(Event::Note { message: "there is no clip: the file holds the rest pose alone" });
    }
    let unfit = |error: &dyn std::fmt::Display| JobError::unusable(path, error.to_string());
    let count = twin.vertex_count();
    let (mut played, mut twins) = (vec![Vec3::ZERO; count], vec![Vec3::ZERO; count]);
    let (mut player, mut global) = (twin.player(1), GlobalPose::default());
    let rest = own.mesh.positions().to_vec();
    let (mut clips, mut reports) = (Vec::new(), Vec::new());
    for take in &takes {
        let (mut poses, mut misses, mut playback) = (Vec::new(), Vec::new(), 0.0f32);
        for (controls, truth) in take.controls.iter().zip(&take.vertices) {
            let joints = (own.pose)(controls).map_err(|error| unfit(&error))?;
            own.skeleton.forward(&joints, &mut global).map_err(|error| unfit(&error))?;
            let bound = global.0.iter().zip(own.skeleton.inverse_bind());
            let matrices: Vec<Affine3A> = bound.map(|(bone, inverse)| *bone * *inverse).collect();
            own.weights.linear_blend(&matrices, &rest, &mut played);
            player.pose(Pose::Controls(controls), &mut twins).map_err(|error| unfit(&error))?;
            misses.extend(distances(&played, truth));
            playback = distances(&played, &twins).into_iter().fold(playback, f32::max);
            poses.push(joints);
        }
        let summary = summarise(&misses);
        let report = GlbClip {
            name: take.name.clone(),
            frames: poses.len(),
            rate: take.rate,
            mean_mm: summary.mean * 10.0,
            max_mm: summary.max * 10.0,
            playback_mm: f64::from(playback) * 10.0,
        };
        if report.playback_mm > PLAYBACK_MM {
            let message = format!(
                "clip '{}': a skin has no principal components; the file is up to {:.3} mm beside the twin",
                report.name, report.playback_mm
            );
            watch.event(Event::Warning { message: &message });
        }
        clips.push(JointClip { name: take.name.clone(), rate: take.rate, poses, shape_weights: Vec::new() });
        reports.push(report);
    }
    let colours = rig.as_deref().and_then(linear_colours);
    // The rig as it is now comes first: its texture coordinates and colours go with it.
    let mesh = rig.as_deref().map_or(&own.mesh, |rig| rig.mesh());
    let scene = GltfScene {
        skin: Some((&own.skeleton, &own.weights)),
        clips: &clips,
        colours: colours.as_deref(),
        ..GltfScene::new(&twin.header().rig, mesh)
    };
    let bytes = to_glb_bytes(&scene).map_err(|error| JobError::unusable(path, error))?;
    understudy_io::write_atomic(output, &bytes)?;
    Ok(ExportGlbReport {
        output: output.to_owned(),
        bytes: bytes.len(),
        vertices: count,
        bones: own.skeleton.len(),
        influences: own.weights.max_influences(),
        weights: WeightSource::Twin,
        clips: reports,
    })
}

/// The bones, bound where the twin takes them to be.
fn bound_as_twin(twin: &Twin, skeleton: Option<Skeleton>, path: &Path) -> Result<Skeleton, JobError> {
    let own = |bones: &Skeleton| {
        bones.bones().iter().map(|b| &b.name).eq(twin.header().inputs.bones.iter().map(|b| &b.name))
    };
    let skeleton = skeleton.filter(own).ok_or_else(|| {
        JobError::unusable(
            path,
            format!("its rig no longer has the twin's {} bones", twin.header().inputs.bones.len()),
        )
    })?;
    let inverse = twin.rest_bones().iter().map(Affine3A::inverse).collect();
    skeleton.with_inverse_bind(inverse).map_err(|error| JobError::unusable(path, error))
}

fn fit_skin(
    twin: &Twin,
    mesh: &Mesh,
    skeleton: &Skeleton,
    train: Option<Loaded>,
    rig: Option<&dyn Rig>,
    path: &Path,
    watch: &dyn Watch,
) -> Result<(Skinned, WeightSource), JobError> {
    let inverse_rest = skeleton.inverse_bind();
    let fit = |poses: &Recording| {
        let examples = Examples { poses, rest: mesh.positions(), inverse_rest, weights: None };
        Skinned::fit("lbs4", &examples, INFLUENCES, CANDIDATES)
    };
    match (train, kind(twin).skin(), rig) {
        (Some(train), ..) => Ok((fit(&train.recording), WeightSource::Dataset)),
        // One bone per vertex is no skin worth showing: poses of the rig give a better one.
        (None, Some(base), _) if (2..=INFLUENCES).contains(&base.max_influences()) => {
            let rest = mesh.positions().to_vec();
            let skin =
                Skinned { name: "lbs4".into(), rest, inverse_rest: inverse_rest.to_vec(), weights: base };
            Ok((skin, WeightSource::Twin))
        }
        (None, _, Some(rig)) => {
            let failed = |error| JobError::sampling(rig.name())(error);
            let source = SamplingConfig::default().build(rig.specs(), rig.clips()).map_err(failed)?;
            let controls: Vec<_> = (0..POSES as u64).map(|pose| source.pose(pose)).collect();
            let what = format!("posing {}", rig.name());
            watch.event(Event::Started { what: &what, total: POSES as u64, unit: "poses" });
            let (bones, vertices) = evaluate(rig, &controls)?;
            watch.event(Event::Finished);
            let poses = Recording {
                mesh: mesh.clone(),
                skeleton: Some(skeleton.clone()),
                bones: bones.concat(),
                controls: Vec::new(),
                specs: ControlSpecs::default(),
                vertices: vertices.concat(),
            };
            Ok((fit(&poses), WeightSource::Rig))
        }
        (None, _, None) => Err(JobError::unusable(path, "there are no poses to fit a skin to")),
    }
}

type BonesAndVertices = (Vec<Vec<Affine3A>>, Vec<Vec<Vec3>>);

/// World transforms and vertices of every pose.
fn evaluate(rig: &dyn Rig, controls: &[Controls]) -> Result<BonesAndVertices, JobError> {
    let one = |pose: &mut RigPose, controls: &Controls| {
        rig.evaluate(controls, pose).map_err(JobError::rig(rig.name()))?;
        Ok((pose.global.0.clone(), pose.vertices.clone()))
    };
    let poses: Result<Vec<_>, JobError> = controls.par_iter().map_init(RigPose::default, one).collect();
    Ok(poses?.into_iter().unzip())
}

pub(super) fn takes(
    config: &GlbSettings,
    twin: &Twin,
    rig: Option<&dyn Rig>,
    watch: &dyn Watch,
) -> Result<Vec<Take>, JobError> {
    let every = || {
        let clips = rig.iter().flat_map(|rig| rig.clips()).filter(|clip| !clip.is_for_motion());
        clips.map(|clip| clip.name.clone()).collect()
    };
    let names: Vec<String> = if config.clips.is_empty() { every() } else { config.clips.clone() };
    let mut takes = Vec::new();
    for name in &names {
        let folder = Path::new(name);
        if folder.is_dir() {
            takes.extend(recorded(folder, twin, watch)?);
            continue;
        }
        let rig = rig.ok_or_else(|| {
            let problem = format!("is no dataset, and the rig '{}' is not at hand", twin.header().rig);
            JobError::unusable(folder, problem)
        })?;
        let clip = crate::clips::resolve(rig, name, watch)?;
        let rate = config.rate.unwrap_or_else(|| clip.own_rate());
        let sampled = clip.sample(rig.specs(), rate).map_err(|error| JobError::setting("rate", error))?;
        let (bones, vertices) = evaluate(rig, &sampled.frames)?;
        let controls = sampled.frames.iter().map(|frame| own_controls(twin, rig.specs(), &frame.0)).collect();
        takes.push(Take { name: clip.name, rate, controls, bones, vertices });
    }
    Ok(takes)
}

/// The clips that a dataset was recorded from, frame by frame.
fn recorded(folder: &Path, twin: &Twin, watch: &dyn Watch) -> Result<Vec<Take>, JobError> {
    let loaded = Loaded::read_for(twin, folder, usize::MAX, watch)?;
    let header = loaded.header.clone();
    let list = |key: &str| -> Vec<String> {
        header.settings.get(key).map(|text| text.split(", ").map(str::to_owned).collect()).unwrap_or_default()
    };
    let frames: Vec<usize> = list("clip_frames").iter().filter_map(|text| text.parse().ok()).collect();
    let names = list("clips");
    let mut rates: Vec<f32> = list("rate").iter().filter_map(|text| text.parse().ok()).collect();
    rates.retain(|rate| rate.is_finite() && *rate > 0.0);
    if let [rate] = rates[..] {
        rates.resize(names.len(), rate);
    }
    if header.method != "clips" || names.len() != frames.len() || names.len() != rates.len() {
        let problem = format!("holds no clip: its poses were found by the method '{}'", header.method);
        return Err(JobError::unusable(folder, problem));
    };
    let poses = loaded.recording;
    let mut takes = Vec::new();
    let mut start = 0;
    for ((name, count), rate) in names.into_iter().zip(frames).zip(rates) {
        // A dataset may hold fewer poses than its clips have frames.
        let range = start..(start + count).min(poses.len());
        start += count;
        if range.is_empty() {
            break;
        }
        let bones = range.clone().map(|pose| poses.bones_of(pose).to_vec()).collect();
        let own = |pose| own_controls(twin, &poses.specs, poses.controls_of(pose));
        let controls = range.clone().map(own).collect();
        let vertices = range.map(|pose| poses.vertices_of(pose).to_vec()).collect();
        takes.push(Take { name, rate, controls, bones, vertices });
    }
    Ok(takes)
}

/// World transforms as joints, and how far skin and joints are from what they stand for.
fn joint_clip(take: &Take, skeleton: &Skeleton, skin: &Skinned) -> Result<(JointClip, GlbClip), JobError> {
    let count = skin.rest.len();
    let (mut blended, mut played) = (vec![Vec3::ZERO; count], vec![Vec3::ZERO; count]);
    let (mut poses, mut misses, mut playback) = (Vec::new(), Vec::new(), 0.0f32);
    let mut global = GlobalPose::default();
    for (bones, truth) in take.bones.iter().zip(&take.vertices) {
        let joints = local_pose(skeleton, &GlobalPose(bones.clone()));
        let forward = skeleton.forward(&joints, &mut global);
        forward.map_err(|error| JobError::unusable(&take.name, error))?;
        skin.skin(bones, &mut blended);
        skin.skin(&global.0, &mut played);
        misses.extend(distances(&blended, truth));
        playback = distances(&blended, &played).into_iter().fold(playback, f32::max);
        poses.push(joints);
    }
    let summary = summarise(&misses);
    let report = GlbClip {
        name: take.name.clone(),
        frames: poses.len(),
        rate: take.rate,
        mean_mm: summary.mean * 10.0,
        max_mm: summary.max * 10.0,
        playback_mm: f64::from(playback) * 10.0,
    };
    let clip = JointClip { name: take.name.clone(), rate: take.rate, poses, shape_weights: Vec::new() };
    Ok((clip, report))
}
