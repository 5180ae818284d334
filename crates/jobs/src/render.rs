//! A picture of a rig in a pose, of moments of a clip, of poses of a dataset, or of a mesh file.

use crate::outputs::check_file;
use crate::stage::{Shot, Stage, View};
use crate::{Event, JobError, Watch, clips, inputs, rigs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_core::{Clip, Controls, Mesh, Vec3};
use understudy_io::dataset::Chunk;
use understudy_io::{Format, Scene};
use understudy_rigs::{Rig, RigPose};

/// What to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RenderConfig {
    /// A rig by name, a file with a mesh, or a dataset folder.
    pub rig: String,
    /// The PNG file.
    pub output: PathBuf,
    /// Controls to set, within their ranges; on top of a clip where one is given.
    pub settings: Vec<(String, f32)>,
    /// A clip to take poses from: one of the rig's own, or a file whose motion it shall play.
    pub clip: Option<String>,
    /// The moment of the clip, seconds; 0 when left out.
    pub time: Option<f32>,
    /// So many moments of the clip or poses of the dataset, first and last included.
    pub frames: Option<usize>,
    /// Views by name or `YAW,PITCH`.
    pub views: Vec<String>,
    /// Side of each picture, pixels.
    pub size: usize,
    /// A dark backdrop.
    pub dark: bool,
}

impl Default for RenderConfig {
    fn default() -> Self {
        Self {
            rig: String::new(),
            output: PathBuf::new(),
            settings: Vec::new(),
            clip: None,
            time: None,
            frames: None,
            views: vec!["three-quarter".into()],
            size: 768,
            dark: false,
        }
    }
}

impl RenderConfig {
    const SIZES: std::ops::RangeInclusive<usize> = 16..=8192;
    /// Pixels of all pictures of a sheet together: what fits into memory with room to spare.
    const MAX_PIXELS: usize = 200_000_000;

    fn check(&self) -> Result<Vec<View>, JobError> {
        if !Self::SIZES.contains(&self.size) {
            return Err(JobError::setting(
                "size",
                format!("{} is not between 16 and 8192 pixels", self.size),
            ));
        }
        if self.frames == Some(0) || self.views.is_empty() {
            return Err(JobError::setting("frames", "at least one picture is wanted"));
        }
        let count = self.frames.unwrap_or(1).saturating_mul(self.views.len());
        if count.saturating_mul(self.size * self.size) > Self::MAX_PIXELS {
            let problem = format!("{count} pictures of {0} × {0} pixels are too many", self.size);
            return Err(JobError::setting("size", problem));
        }
        let dataset = Format::of(Path::new(&self.rig)) == Some(Format::Dataset);
        if self.clip.is_none() && (self.time.is_some() || (self.frames.is_some() && !dataset)) {
            return Err(JobError::setting("clip", "a time or a number of frames needs a clip or a dataset"));
        }
        if !self.output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
            return Err(JobError::unusable(&self.output, "pictures are written as .png"));
        }
        self.views.iter().map(|view| View::parse(view)).collect()
    }
}

/// What was drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderReport {
    /// The file.
    pub file: PathBuf,
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// Pictures on the sheet.
    pub pictures: usize,
}

/// Draws and writes the file.
pub fn render(config: &RenderConfig, watch: &dyn Watch) -> Result<RenderReport, JobError> {
    let views = config.check()?;
    let clip = config.clip.as_deref().map_or(Path::new(""), clips::file_of);
    check_file(&config.output, &[&rigs::source_file(&config.rig), clip])?;
    let path = Path::new(&config.rig);
    if Format::of(path) == Some(Format::Dataset) {
        return render_dataset(config, path, &views, watch);
    }
    let rig = rigs::open(&config.rig, watch)?.rig;
    if rig.specs().is_empty() && (config.clip.is_some() || !config.settings.is_empty()) {
        return Err(JobError::unusable(path, "a mesh has neither controls nor clips"));
    }
    let clip = config.clip.as_ref().map(|clip| clips::resolve(rig.as_ref(), clip, watch)).transpose()?;
    let shots = shots(rig.as_ref(), config, clip.as_ref())?;
    let title = clip.map_or_else(|| rig.name().into(), |clip| format!("{}, {}", rig.name(), clip.name));
    draw(config, &title, rig.mesh(), rig.colours(), &shots, &views, watch)
}

/// Poses of a dataset, spread evenly from the first to the last; the first where no number is given.
fn render_dataset(
    config: &RenderConfig,
    folder: &Path,
    views: &[View],
    watch: &dyn Watch,
) -> Result<RenderReport, JobError> {
    if config.clip.is_some() || !config.settings.is_empty() {
        return Err(JobError::unusable(
            folder,
            "a dataset has recorded poses, neither clips nor controls to set",
        ));
    }
    let scene = inputs::open(folder, "a dataset", watch)?;
    let Scene::Dataset(reader) = scene else { return Err(inputs::wrong_kind(folder, &scene, "a dataset")) };
    let (poses, chunk_size) = (reader.header().poses, reader.header().chunk_size);
    let count = config.frames.unwrap_or(1);
    if count > poses {
        let problem = format!("{count} are asked for, the dataset has {poses} poses");
        return Err(JobError::setting("frames", problem));
    }
    let mut shots = Vec::with_capacity(count);
    let mut open: Option<(usize, Chunk)> = None;
    for index in 0..count {
        let pose = index * (poses - 1) / (count - 1).max(1);
        let number = pose / chunk_size;
        let chunk = match open.take().filter(|(place, _)| *place == number) {
            Some((_, chunk)) => chunk,
            None => reader.chunk(number)?,
        };
        let vertices = chunk.vertices_of(pose - reader.header().chunk_poses(number).start);
        shots.push(Shot { vertices, caption: format!("pose {pose}") });
        open = Some((number, chunk));
    }
    // The recording has no colours; its rig has them, where it is at hand.
    let mesh = &reader.rest().mesh;
    let rig = rigs::open_recorded(&reader.header().rig, &crate::Silent).ok().map(|open| open.rig);
    let rig = rig.filter(|rig| rig.mesh().topology_hash() == mesh.topology_hash());
    let colours = rig.as_ref().and_then(|rig| rig.colours());
    draw(config, &inputs::stem(folder), mesh, colours, &shots, views, watch)
}

fn draw(
    config: &RenderConfig,
    title: &str,
    mesh: &Mesh,
    colours: Option<&[Vec3]>,
    shots: &[Shot],
    views: &[View],
    watch: &dyn Watch,
) -> Result<RenderReport, JobError> {
    let pictures = shots.len() * views.len();
    watch.event(Event::Started { what: "drawing", total: 1, unit: "sheets" });
    let stage = Stage { mesh, colours, size: config.size, dark: config.dark };
    let picture = match (shots, views) {
        ([_], [view]) => stage.pictures(shots, view).remove(0),
        _ => stage.sheet(title, "", shots, views),
    };
    understudy_io::write_atomic(&config.output, &picture.to_png())?;
    watch.event(Event::Finished);
    Ok(RenderReport {
        file: config.output.clone(),
        width: picture.width(),
        height: picture.height(),
        pictures,
    })
}

/// The poses that a configuration asks for.
fn shots(rig: &dyn Rig, config: &RenderConfig, clip: Option<&Clip>) -> Result<Vec<Shot>, JobError> {
    let mut moments = match clip {
        None => vec![(rig.specs().defaults(), String::new())],
        Some(clip) => clip_moments(rig, clip, config.time, config.frames)?,
    };
    let bad = JobError::controls(&config.rig, rig.specs());
    for (name, value) in &config.settings {
        // A value is checked by itself, so that the message names the one that is wrong.
        rig.specs().with([(name.as_str(), *value)]).map_err(&bad)?;
        let control = rig.specs().find(name).expect("it was just found");
        moments.iter_mut().for_each(|(controls, _)| controls.0[control] = *value);
    }
    let mut pose = RigPose::default();
    let shoot = |(controls, caption): (Controls, String)| {
        rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
        Ok(Shot { vertices: pose.vertices.clone(), caption })
    };
    moments.into_iter().map(shoot).collect()
}

/// One moment of a clip, or several spread evenly from its first to its last.
pub(crate) fn clip_moments(
    rig: &dyn Rig,
    clip: &Clip,
    time: Option<f32>,
    frames: Option<usize>,
) -> Result<Vec<(Controls, String)>, JobError> {
    let times: Vec<f32> = match (time, frames) {
        (_, Some(frames)) => {
            let last = frames.saturating_sub(1).max(1) as f32;
            (0..frames).map(|frame| clip.duration * frame as f32 / last).collect()
        }
        (time, None) => vec![time.unwrap_or(0.0)],
    };
    let moment = |time: f32| {
        if !(0.0..=clip.duration).contains(&time) {
            let (name, length) = (&clip.name, clip.duration);
            let problem = format!("{time} s is outside the clip '{name}', which lasts {length} s");
            return Err(JobError::setting("time", problem));
        }
        let mut moment =
            clip.at([f64::from(time)], rig.specs()).map_err(|error| JobError::unusable(rig.name(), error))?;
        Ok((moment.remove(0), format!("{time:.2} s")))
    };
    times.into_iter().map(moment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::gltf_reference::ReferenceModel;
    use understudy_testkit::shared_data;

    #[test]
    fn moments_are_the_files_own_between_keys() {
        let Some(data) = shared_data() else { return };
        for file in ["gltf/RobotExpressive.glb", "kaykit/Rogue.glb", "gltf/SimpleMorph/SimpleMorph.gltf"] {
            let path = data.join(file);
            let reference = ReferenceModel::open(&path);
            let rig = rigs::open(&path.display().to_string(), &crate::Silent).expect("a rig").rig;
            for (number, clip) in rig.clips().iter().enumerate() {
                let config = RenderConfig {
                    rig: file.into(),
                    time: Some(clip.duration * 0.617),
                    ..RenderConfig::default()
                };
                let shot = shots(rig.as_ref(), &config, Some(clip)).expect("a moment").remove(0);
                let truth = reference.evaluate(number, f64::from(clip.duration * 0.617));
                let miss = |(a, b): (&Vec3, &[f64; 3])| a.distance(Vec3::from_array(b.map(|v| v as f32)));
                let worst = shot.vertices.iter().zip(&truth).map(miss).fold(0.0, f32::max);
                assert!(worst <= 1e-3, "{file}, '{}': {} mm", clip.name, worst * 10.0);
            }
        }
    }
}
