//! Conversion between formats. Start at [`convert`]; what can be read is an `Input`, what can be written is decided in
//! one table, `write`.

pub mod bake;
mod exact;
mod influences;
pub mod posed;
mod sticks;
mod tables;
mod to_glb;

use crate::clips::{self, one_of};
use crate::outputs::check_file;
use crate::rigs::{Names, model_rig};
use crate::watch::Remember;
use crate::{Event, JobError, Watch, inputs, rigs};
pub(crate) use exact::local_pose;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
pub(crate) use sticks::stick_figure;
pub(crate) use to_glb::linear_colours;
use understudy_core::remesh::remeshed;
use understudy_core::{Clip, JointClip, Mesh, Vec3};
use understudy_io::gltf::Surface;
use understudy_io::{Format, Model, OpenOptions, Scene, usd};
use understudy_rigs::{Rig, RigPose};

/// What is read.
enum Input {
    /// A rig by name, or a model that shall play a clip from another file.
    Rig(Box<dyn Rig>),
    /// A file or a dataset.
    Scene(Scene),
}

impl Input {
    fn read(config: &ConvertConfig, watch: &dyn Watch) -> Result<Self, JobError> {
        if Names::contains(&config.input) {
            return Ok(Self::Rig(rigs::open(&config.input, watch)?.rig));
        }
        let path = Path::new(&config.input);
        let wanted = format!("{} or a dataset folder", Format::readable());
        let scene = inputs::open_with(path, &OpenOptions { surface: true }, &wanted, watch)?;
        let clip = config.bake.as_ref().or(config.clip.as_ref());
        match scene {
            Scene::Model(model)
                if clip.is_some_and(|clip| model.find_clip(clip).is_none() && clips::is_file(clip)) =>
            {
                let rig = model_rig(&inputs::stem(path), &model);
                Ok(Self::Rig(Box::new(rig.map_err(|error| JobError::unusable(path, error))?)))
            }
            scene => Ok(Self::Scene(scene)),
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Self::Rig(_) => "a rig",
            Self::Scene(scene) => scene.describe(),
        }
    }
}

/// What to convert into what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvertConfig {
    /// A file, a dataset folder or a rig by name.
    pub input: String,
    /// The file to write; its extension says the format.
    pub output: PathBuf,
    /// A clip to write as morph targets: one of the input's own, or a file whose motion it shall play.
    pub bake: Option<String>,
    /// The clip to write, where the output holds one only: one of the input's own, or a file whose motion it shall
    /// play.
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
        let format = self.format();
        if self.influences == Some(0) {
            return Err(JobError::setting("influences", "0 per vertex; at least 1 is wanted"));
        }
        if self.influences.is_some() && (format != Some(Format::Glb) || self.bake.is_some()) {
            return Err(JobError::setting("influences", "only a skin in a .glb has influences"));
        }
        if format.is_none() {
            return Err(JobError::unusable(&self.output, "is none of .obj, .glb, .usda, .npz, .bvh, .csv"));
        }
        if self.bake.is_some() && format != Some(Format::Glb) {
            return Err(JobError::unusable(&self.output, "a baked clip is written as .glb"));
        }
        if self.remesh && (format != Some(Format::Obj) || self.bake.is_some()) {
            return Err(JobError::unusable(&self.output, "a mesh with another topology is written as .obj"));
        }
        let clip =
            self.bake.as_ref().or(self.clip.as_ref()).map_or(Path::new(""), |clip| clips::file_of(clip));
        check_file(&self.output, &[&rigs::source_file(&self.input), clip])
    }

    /// The format of the output, where it can be written.
    fn format(&self) -> Option<Format> {
        let written = [Format::Obj, Format::Glb, Format::Usda, Format::Npz, Format::Bvh, Format::Csv];
        Format::of(&self.output).filter(|format| written.contains(format))
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
    let input = Input::read(config, &watch)?;
    let format = config.format().expect("it was checked");
    check_used(config, &input, format)?;
    let written = match &config.bake {
        Some(clip) => bake_clip(config, &input, clip, &watch)?,
        None => write(config, &input, format, &watch)?,
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
fn check_used(config: &ConvertConfig, input: &Input, format: Format) -> Result<(), JobError> {
    let has_clips = match input {
        Input::Rig(_) => true,
        Input::Scene(scene) => !scene.clips().is_empty(),
    };
    let used = |formats: &[Format]| has_clips && formats.contains(&format);
    let reason = |one: &str| match has_clips {
        false => format!("is not used: {} has no clips to choose from", input.describe()),
        true => format!("is not used: a .{} file holds {one}", format.extension()),
    };
    if let Some(clip) = &config.clip {
        // A file's motion goes into a .glb by itself; the clips of the input all go there together.
        let by_itself = format == Format::Glb && matches!(input, Input::Rig(_)) && clips::is_file(clip);
        if !used(&[Format::Bvh, Format::Csv]) && !by_itself {
            let holds = if format == Format::Glb { "every clip" } else { "the rest pose alone" };
            return Err(JobError::setting("clip", reason(holds)));
        }
    }
    let rate = match input {
        Input::Scene(Scene::Motion(_)) => true,
        Input::Scene(Scene::Weights(_)) => format == Format::Csv,
        _ => used(&[Format::Glb, Format::Bvh, Format::Csv]),
    };
    if config.rate.is_some() && !rate {
        return Err(JobError::setting("rate", reason("no frames")));
    }
    Ok(())
}

/// The table of what can become what.
fn write(
    config: &ConvertConfig,
    input: &Input,
    format: Format,
    watch: &dyn Watch,
) -> Result<Written, JobError> {
    use Format::{Bvh, Csv, Glb, Npz, Obj, Usda};
    let name = inputs::stem(Path::new(&config.input));
    let scene = match input {
        Input::Rig(rig) => return write_rig(config, rig.as_ref(), format, watch),
        Input::Scene(scene) => scene,
    };
    match (scene, format) {
        (Scene::Model(model), Obj) => posed_obj(config, &model.mesh, &model.rest_vertices()),
        (Scene::Model(model), Glb) => {
            warn_left_out(&config.input, model, watch);
            to_glb::model(&name, model, config.rate, config.influences)
        }
        (Scene::Model(model), Usda) => {
            let text = usd::to_usda_string(model, &name)
                .map_err(|problem| JobError::unusable(&config.input, problem))?;
            let clips = model.clips.len();
            let contents =
                vec![format!("a mesh of {} vertices, {clips} animations", model.mesh.vertex_count())];
            Ok(Written::new(text.into_bytes(), contents))
        }
        (Scene::Model(model), Npz) => tables::model_npz(model, &config.input),
        (Scene::Model(model), Bvh) => {
            let clip = one_clip(config, model)?;
            let bones = || JobError::unusable(&config.input, "has no bones");
            tables::bvh(model.skeleton.as_ref().ok_or_else(bones)?, &clip, &config.input)
        }
        (Scene::Model(model), Csv) => {
            let clip = one_clip(config, model)?;
            let names =
                model.shapes.iter().flat_map(|shapes| shapes.shapes()).map(|s| s.name.clone()).collect();
            tables::csv(names, &clip.shape_weights, clip.rate, &config.input)
        }

        (Scene::Motion(motion), Glb) => {
            let figure =
                stick_figure(&motion.skeleton).map_err(|error| JobError::unusable(&config.input, error))?;
            let clip = match config.rate {
                Some(rate) => motion.clip.resample(rate).map_err(|error| JobError::setting("rate", error))?,
                None => motion.clip.clone(),
            };
            to_glb::motion(&name, &motion.skeleton, &figure, &[clip])
        }
        (Scene::Motion(motion), Bvh) => tables::bvh_again(motion, config.rate, &config.input),

        (Scene::Take(take), Csv) => tables::csv(take.names.clone(), &take.frames, take.rate, &config.input),
        (Scene::Take(take), Npz) => {
            tables::weights_npz(&take.names, &take.frames, Some(take.rate), &config.input)
        }
        (Scene::Weights(table), Csv) => tables::live_link(table, config.rate, &config.input),
        (Scene::Weights(table), Npz) => {
            tables::weights_npz(&table.names, &table.frames, table.rate, &config.input)
        }

        (Scene::Dataset(reader), Npz) => tables::dataset_npz(reader, &config.input),
        (Scene::Dataset(_) | Scene::Sequence(_), Obj) => match scene.mesh() {
            Some(mesh) => Ok(mesh_obj(config, mesh)),
            None => Err(JobError::unusable(&config.input, "has vertices, but no faces")),
        },
        (scene, format) => Err(cannot_become(config, scene.describe(), format)),
    }
}

fn write_rig(
    config: &ConvertConfig,
    rig: &dyn Rig,
    format: Format,
    watch: &dyn Watch,
) -> Result<Written, JobError> {
    match format {
        Format::Obj => {
            let mut pose = RigPose::default();
            rig.evaluate(&rig.specs().defaults(), &mut pose).map_err(JobError::rig(&config.input))?;
            posed_obj(config, rig.mesh(), &pose.vertices)
        }
        Format::Glb => {
            let named = config.clip.as_ref().map(|clip| clips::resolve(rig, clip, watch)).transpose()?;
            let clips = named.map_or_else(|| shown_clips(rig), |clip| vec![clip]);
            to_glb::rig(rig, &clips, config.rate, config.influences)
        }
        Format::Npz => {
            let parts = exact::skin_and_shapes(rig, &shown_clips(rig), config.rate)?;
            match (parts.skin, parts.shapes) {
                (None, Some(shapes)) => tables::shapes_npz(rig.mesh(), &shapes, &config.input),
                _ => Err(JobError::unusable(
                    &config.input,
                    "is more than blendshapes, which is all that .npz holds",
                )),
            }
        }
        Format::Csv => {
            let clip = sampled_clip(config, rig, watch)?;
            let names = rig.specs().iter().map(|spec| spec.name.clone()).collect();
            let rate = clip.rate;
            let rows: Vec<Vec<f32>> = clip.frames.into_iter().map(|frame| frame.0).collect();
            tables::csv(names, &rows, rate, &config.input)
        }
        format => Err(cannot_become(config, "a rig", format)),
    }
}

fn cannot_become(config: &ConvertConfig, what: &str, format: Format) -> JobError {
    JobError::unusable(&config.input, format!("{what} cannot become .{}", format.extension()))
}

/// Says once what of a file's look does not fit into the file that is written.
fn warn_left_out(input: &str, model: &Model, watch: &dyn Watch) {
    let left_out = model.surface.iter().flat_map(|surface| &surface.left_out);
    let left_out: Vec<&str> = left_out.map(String::as_str).collect();
    if !left_out.is_empty() {
        let message = format!("{input}: left out: {}", left_out.join(", "));
        watch.event(Event::Warning { message: &message });
    }
}

fn bake_clip(
    config: &ConvertConfig,
    input: &Input,
    clip: &str,
    watch: &dyn Watch,
) -> Result<Written, JobError> {
    let name = inputs::stem(Path::new(&config.input));
    match input {
        Input::Rig(rig) => {
            let clip = clips::resolve(rig.as_ref(), clip, watch)?;
            let (rate, frames) = to_glb::evaluate_clip(rig.as_ref(), &clip, config.rate, watch)?;
            let (mesh, colours) = (rig.mesh(), linear_colours(rig.as_ref()));
            let baked = to_glb::Baked { name: &name, mesh, colours, surface: None, clip: &clip.name, rate };
            to_glb::baked(&baked, &frames, config.tolerance_mm, watch)
        }
        Input::Scene(Scene::Model(model)) if !model.clips.is_empty() => {
            let found = one_of(&model.clips, Some(clip), &config.input)?;
            let rate = config.rate.unwrap_or(found.rate);
            let count = found.frame_count(rate).map_err(|error| JobError::setting("rate", error))?;
            let time = |frame: usize| frame as f64 / f64::from(rate);
            let frames: Vec<Vec<Vec3>> =
                (0..count).map(|frame| model.evaluate_at(found, time(frame))).collect();
            let colours = model.colours.clone();
            warn_left_out(&config.input, model, watch);
            // The base of a baked clip is another shape: its normals are its own.
            let surface = model.surface.as_ref().map(Surface::for_another_shape);
            let baked = to_glb::Baked { name: &name, mesh: &model.mesh, colours, surface, clip, rate };
            to_glb::baked(&baked, &frames, config.tolerance_mm, watch)
        }
        other => Err(JobError::unusable(&config.input, format!("{} has no clips to bake", other.describe()))),
    }
}

/// Frames of a mesh as a GLB: the first alone, or morph targets that follow all within a tenth of a millimetre.
pub(crate) fn baked_glb(
    name: &str,
    mesh: &Mesh,
    rig: Option<&dyn Rig>,
    frames: &[Vec<Vec3>],
    rate: f32,
    watch: &dyn Watch,
) -> Result<Vec<u8>, JobError> {
    let baked =
        to_glb::Baked { name, mesh, colours: rig.and_then(linear_colours), surface: None, clip: name, rate };
    Ok(to_glb::baked(&baked, frames, ConvertConfig::default().tolerance_mm, watch)?.bytes)
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
fn one_clip(config: &ConvertConfig, model: &Model) -> Result<JointClip, JobError> {
    let clip = match (&config.clip, &model.clips[..]) {
        (None, [_, _, ..]) => {
            let known = model.clips.iter().map(|clip| clip.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(JobError::unusable(
                &config.input,
                format!("has several clips, choose one with --clip: {known}"),
            ));
        }
        (name, clips) => one_of(clips, name.as_deref(), &config.input)?,
    };
    model.frames(clip, config.rate).map_err(|error| JobError::setting("rate", error))
}

/// All clips of a rig but the many that motion is learned from, which are converted one by one.
fn shown_clips(rig: &dyn Rig) -> Vec<Clip> {
    rig.clips().iter().filter(|clip| !clip.is_for_motion()).cloned().collect()
}

/// The same for what a rig plays.
fn sampled_clip(
    config: &ConvertConfig,
    rig: &dyn Rig,
    watch: &dyn Watch,
) -> Result<understudy_core::SampledClip, JobError> {
    let Some(name) = &config.clip else {
        let known = rig.clips().iter().map(|clip| clip.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(JobError::unusable(&config.input, format!("choose a clip with --clip: {known}")));
    };
    let clip = clips::resolve(rig, name, watch)?;
    let rate = config.rate.unwrap_or_else(|| clip.own_rate());
    clip.sample(rig.specs(), rate).map_err(|error| JobError::setting("rate", error))
}
