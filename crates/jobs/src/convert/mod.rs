//! Conversion between formats, by file extension. Start at [`convert`]; what can be read is a `Content`,
//! what can be written is decided in one table, `write`.

pub mod bake;
mod content;
mod exact;
mod influences;
mod sticks;
mod tables;
mod to_glb;

use crate::outputs::{check_file, extension};
use crate::watch::Remember;
use crate::{Event, JobError, Watch};
pub(crate) use content::Content;
pub(crate) use exact::local_pose;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
pub(crate) use to_glb::linear_colours;
use understudy_core::remesh::remeshed;
use understudy_core::{JointClip, Mesh, Vec3};
use understudy_io::gltf::{GltfAsset, Surface};
use understudy_rigs::{Rig, RigPose};

/// What to convert into what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvertConfig {
    /// A file, a dataset folder or a rig by name.
    pub input: String,
    /// The file to write; its extension says the format.
    pub output: PathBuf,
    /// A clip to write as morph targets.
    pub bake: Option<String>,
    /// The clip to write, where the output holds one only.
    pub clip: Option<String>,
    /// Largest distance of any vertex in any frame of a baked clip, mm.
    pub tolerance_mm: f32,
    /// Frames per second of clips; `None` for each clip's own, or 30.
    pub rate: Option<f32>,
    /// Write the rest mesh with another topology, the same surface and the same texture coordinates.
    pub remesh: bool,
    /// Influences per vertex of a skin in a GLB; `None` for four, which is what every engine plays.
    pub influences: Option<usize>,
}

impl Default for ConvertConfig {
    fn default() -> Self {
        let (bake, clip, rate) = (None, None, None);
        let (input, output) = (String::new(), PathBuf::new());
        Self { input, output, bake, clip, tolerance_mm: 0.1, rate, remesh: false, influences: None }
    }
}

impl ConvertConfig {
    fn check(&self) -> Result<(), JobError> {
        if !(self.tolerance_mm.is_finite() && self.tolerance_mm > 0.0) {
            return Err(JobError::setting(
                "tolerance",
                format!("{} mm; more than 0 is wanted", self.tolerance_mm),
            ));
        }
        if let Some(rate) = self.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(JobError::setting(
                "rate",
                format!("{rate} frames per second; more than 0 is wanted"),
            ));
        }
        let format = extension(&self.output);
        if self.influences == Some(0) {
            return Err(JobError::setting("influences", "0 per vertex; at least 1 is wanted"));
        }
        if self.influences.is_some() && (format != "glb" || self.bake.is_some()) {
            return Err(JobError::setting("influences", "only a skin in a .glb has influences"));
        }
        if !["obj", "glb", "npz", "bvh", "csv"].contains(&format.as_str()) {
            return Err(JobError::unusable(&self.output, "is none of .obj, .glb, .npz, .bvh, .csv"));
        }
        if self.bake.is_some() && format != "glb" {
            return Err(JobError::unusable(&self.output, "a baked clip is written as .glb"));
        }
        if self.remesh && (format != "obj" || self.bake.is_some()) {
            return Err(JobError::unusable(&self.output, "a mesh with another topology is written as .obj"));
        }
        check_file(&self.output, &[&crate::rigs::source_file(&self.input)])
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConvertReport {
    /// What was read.
    pub input: String,
    /// The file.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What is in it, a line each.
    pub contents: Vec<String>,
    /// How a clip was baked.
    pub baked: Option<BakeReport>,
    /// Conversions of units and axes, and what readers skipped.
    pub notes: Vec<String>,
}

/// A clip as morph targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BakeReport {
    /// The clip.
    pub clip: String,
    /// Its frames.
    pub frames: usize,
    /// Frames a second.
    pub rate: f32,
    /// Morph targets.
    pub targets: usize,
    /// What was asked for, mm.
    pub tolerance_mm: f32,
    /// The largest distance of any vertex in any frame, mm.
    pub max_error_mm: f32,
    /// The mean distance, mm.
    pub mean_error_mm: f32,
}

/// A file in memory.
struct Written {
    bytes: Vec<u8>,
    contents: Vec<String>,
    baked: Option<BakeReport>,
}

impl Written {
    fn new(bytes: Vec<u8>, contents: Vec<String>) -> Self {
        Self { bytes, contents, baked: None }
    }
}

/// Reads, converts and writes; the output is whole or not there at all.
pub fn convert(config: &ConvertConfig, watch: &dyn Watch) -> Result<ConvertReport, JobError> {
    config.check()?;
    let watch = Remember::new(watch);
    let content = Content::read(&config.input, &watch)?;
    check_used(config, &content)?;
    let written = match &config.bake {
        Some(clip) => bake_clip(config, &content, clip, &watch)?,
        None => write(config, &content, &watch)?,
    };
    understudy_io::write_atomic(&config.output, &written.bytes)?;
    Ok(ConvertReport {
        input: config.input.clone(),
        file: config.output.clone(),
        bytes: written.bytes.len() as u64,
        contents: written.contents,
        baked: written.baked,
        notes: watch.messages(),
    })
}

/// Fails for a clip or a rate that the conversion would not look at.
fn check_used(config: &ConvertConfig, content: &Content) -> Result<(), JobError> {
    let format = extension(&config.output);
    let has_clips = matches!(content, Content::Asset(_) | Content::Rig(_));
    let used = |formats: &[&str]| has_clips && formats.contains(&format.as_str());
    let reason = |one: &str| match has_clips {
        false => format!("is not used: {} has no clips to choose from", content.describe()),
        true => format!("is not used: a .{format} file holds {one}"),
    };
    if config.clip.is_some() && !used(&["bvh", "csv"]) {
        let holds = if format == "glb" { "every clip" } else { "the rest pose alone" };
        return Err(JobError::setting("clip", reason(holds)));
    }
    let rate = match content {
        Content::Motion(_) => true,
        Content::Weights(_) => format == "csv",
        _ => used(&["glb", "bvh", "csv"]),
    };
    if config.rate.is_some() && !rate {
        return Err(JobError::setting("rate", reason("no frames")));
    }
    Ok(())
}

/// The table of what can become what.
fn write(config: &ConvertConfig, content: &Content, watch: &dyn Watch) -> Result<Written, JobError> {
    let name = crate::rigs::stem(Path::new(&config.input));
    match (content, extension(&config.output).as_str()) {
        (Content::Mesh(mesh), "obj") => Ok(mesh_obj(config, mesh)),
        (Content::Mesh(mesh), "glb") => to_glb::mesh(&name, mesh),

        (Content::Asset(asset), "obj") => posed_obj(config, &asset.mesh, &asset.rest_vertices()),
        (Content::Asset(asset), "glb") => {
            warn_left_out(&config.input, asset, watch);
            to_glb::asset(&name, asset, config.rate, config.influences)
        }
        (Content::Asset(asset), "npz") => tables::asset_npz(asset, &config.input),
        (Content::Asset(asset), "bvh") => {
            let clip = one_clip(config, asset)?;
            tables::bvh(&asset.skeleton, &clip, &config.input)
        }
        (Content::Asset(asset), "csv") => {
            let clip = one_clip(config, asset)?;
            let names =
                asset.shapes.iter().flat_map(|shapes| shapes.shapes()).map(|s| s.name.clone()).collect();
            tables::csv(names, &clip.shape_weights, clip.rate, &config.input)
        }

        (Content::Shapes(file), "obj") => Ok(mesh_obj(config, &file.mesh)),
        (Content::Shapes(file), "glb") => to_glb::rig(
            &crate::rigs::shape_rig(&name, file.as_ref().clone()).map_err(JobError::rig(&config.input))?,
            config.rate,
            config.influences,
        ),
        (Content::Shapes(file), "npz") => tables::shapes_npz(&file.mesh, &file.rig, &config.input),

        (Content::Rig(rig), "obj") => {
            let mut pose = RigPose::default();
            rig.evaluate(&rig.specs().defaults(), &mut pose).map_err(JobError::rig(&config.input))?;
            posed_obj(config, rig.mesh(), &pose.vertices)
        }
        (Content::Rig(rig), "glb") => to_glb::rig(rig.as_ref(), config.rate, config.influences),
        (Content::Rig(rig), "npz") => {
            let parts = exact::skin_and_shapes(rig.as_ref(), config.rate)?;
            match (parts.skin, parts.shapes) {
                (None, Some(shapes)) => tables::shapes_npz(rig.mesh(), &shapes, &config.input),
                _ => Err(JobError::unusable(
                    &config.input,
                    "is more than blendshapes, which is all that .npz holds",
                )),
            }
        }
        (Content::Rig(rig), "csv") => {
            let clip = sampled_clip(config, rig.as_ref())?;
            let names = rig.specs().iter().map(|spec| spec.name.clone()).collect();
            let rate = clip.rate;
            let rows: Vec<Vec<f32>> = clip.frames.into_iter().map(|frame| frame.0).collect();
            tables::csv(names, &rows, rate, &config.input)
        }

        (Content::Motion(motion), "glb") => {
            let figure = sticks::stick_figure(&motion.skeleton)
                .map_err(|error| JobError::unusable(&config.input, error))?;
            let clip = match config.rate {
                Some(rate) => motion.clip.resample(rate).map_err(|error| JobError::setting("rate", error))?,
                None => motion.clip.clone(),
            };
            to_glb::motion(&name, &motion.skeleton, &figure, &[clip])
        }
        (Content::Motion(motion), "bvh") => tables::bvh_again(motion, config.rate, &config.input),

        (Content::Take(take), "csv") => {
            tables::csv(take.names.clone(), &take.frames, take.rate, &config.input)
        }
        (Content::Take(take), "npz") => {
            tables::weights_npz(&take.names, &take.frames, Some(take.rate), &config.input)
        }
        (Content::Weights(table), "csv") => tables::live_link(table, config.rate, &config.input),
        (Content::Weights(table), "npz") => {
            tables::weights_npz(&table.names, &table.frames, table.rate, &config.input)
        }

        (Content::Dataset(reader), "npz") => tables::dataset_npz(reader, &config.input),
        (Content::Dataset(reader), "obj") => Ok(mesh_obj(config, &reader.rest().mesh)),
        (content, format) => {
            Err(JobError::unusable(&config.input, format!("{} cannot become .{format}", content.describe())))
        }
    }
}

/// Says once what of a file's look does not fit into the file that is written.
fn warn_left_out(input: &str, asset: &GltfAsset, watch: &dyn Watch) {
    let left_out = asset.surface.iter().flat_map(|surface| &surface.left_out);
    let left_out: Vec<&str> = left_out.map(String::as_str).collect();
    if !left_out.is_empty() {
        let message = format!("{input}: left out: {}", left_out.join(", "));
        watch.event(Event::Warning { message: &message });
    }
}

fn bake_clip(
    config: &ConvertConfig,
    content: &Content,
    clip: &str,
    watch: &dyn Watch,
) -> Result<Written, JobError> {
    let name = crate::rigs::stem(Path::new(&config.input));
    match content {
        Content::Rig(rig) => {
            let (rate, frames) = to_glb::evaluate_clip(rig.as_ref(), clip, config.rate, watch)?;
            let colours = linear_colours(rig.as_ref());
            let baked = to_glb::Baked { name: &name, mesh: rig.mesh(), colours, surface: None, clip, rate };
            to_glb::baked(&baked, &frames, config.tolerance_mm, watch)
        }
        Content::Asset(asset) => {
            let names = || asset.clips.iter().map(|clip| clip.name.as_str());
            let found =
                asset.find_clip(clip).ok_or_else(|| JobError::unknown_clip(&config.input, clip, names()))?;
            let rate = config.rate.unwrap_or(found.rate);
            let count = found.frame_count(rate).map_err(|error| JobError::setting("rate", error))?;
            let time = |frame: usize| frame as f64 / f64::from(rate);
            let frames: Vec<Vec<Vec3>> =
                (0..count).map(|frame| asset.evaluate_at(found, time(frame))).collect();
            let colours = asset.colours.clone();
            warn_left_out(&config.input, asset, watch);
            // The base of a baked clip is another shape: its normals are its own.
            let surface = asset.surface.as_ref().map(Surface::for_another_shape);
            let baked = to_glb::Baked { name: &name, mesh: &asset.mesh, colours, surface, clip, rate };
            to_glb::baked(&baked, &frames, config.tolerance_mm, watch)
        }
        other => Err(JobError::unusable(&config.input, format!("{} has no clips to bake", other.describe()))),
    }
}

fn posed_obj(config: &ConvertConfig, mesh: &Mesh, vertices: &[Vec3]) -> Result<Written, JobError> {
    let mesh = mesh.with_positions(vertices).map_err(|error| JobError::unusable(&config.input, error))?;
    Ok(mesh_obj(config, &mesh))
}

/// A mesh as it is, or cut up anew.
fn mesh_obj(config: &ConvertConfig, mesh: &Mesh) -> Written {
    if config.remesh { tables::obj(&remeshed(mesh)) } else { tables::obj(mesh) }
}

/// The clip that `--clip` names, or the only one, frame by frame.
fn one_clip(config: &ConvertConfig, asset: &GltfAsset) -> Result<JointClip, JobError> {
    let clips = &asset.clips[..];
    let names = || clips.iter().map(|clip| clip.name.as_str());
    let clip = match (&config.clip, clips) {
        (Some(name), _) => clips
            .iter()
            .find(|clip| clip.name == *name)
            .ok_or_else(|| JobError::unknown_clip(&config.input, name, names()))?,
        (None, [only]) => only,
        (None, []) => return Err(JobError::unusable(&config.input, "has no clip")),
        (None, _) => {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(JobError::unusable(
                &config.input,
                format!("has several clips, choose one with --clip: {known}"),
            ));
        }
    };
    asset.frames(clip, config.rate).map_err(|error| JobError::setting("rate", error))
}

/// The same for a rig's own clips.
fn sampled_clip(config: &ConvertConfig, rig: &dyn Rig) -> Result<understudy_core::SampledClip, JobError> {
    let names = || rig.clips().iter().map(|clip| clip.name.as_str());
    let clip = match &config.clip {
        Some(name) => {
            rig.find_clip(name).ok_or_else(|| JobError::unknown_clip(&config.input, name, names()))?
        }
        None => {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(JobError::unusable(&config.input, format!("choose a clip with --clip: {known}")));
        }
    };
    let rate = config.rate.unwrap_or_else(|| clip.own_rate());
    clip.sample(rig.specs(), rate).map_err(|error| JobError::setting("rate", error))
}
