//! `import`: poses that another program recorded, as a dataset: a skinned file and a cache of its vertices, frame by
//! frame (`pairs`), or plain arrays (`arrays`). Start at [`import`].

mod align;
mod arrays;
mod objects;
mod pairs;

use crate::outputs::{check_folder, is_of_dataset};
use crate::watch::Remember;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::{ControlSpecs, Controls, GlobalPose, Vec3};
use understudy_io::dataset::{Chunk, DatasetHeader, DatasetRest, DatasetWriter};

/// Among a dataset's settings: that it was imported, so that there is no rig to ask for more.
pub(crate) const IMPORTED: &str = "imported";

/// What to import.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportConfig {
    /// Arrays of a NumPy archive; instead of a mesh and a cache.
    pub arrays: Option<PathBuf>,
    /// The rest mesh with its skin, and mostly with its bones' animation: `.fbx`, `.glb`, `.gltf`, `.usda`.
    pub mesh: Option<PathBuf>,
    /// The bones' animation, where it is in a file of its own.
    pub skeleton: Option<PathBuf>,
    /// The vertices in every frame: `.abc`, or an `.npz` of frames.
    pub cache: Option<PathBuf>,
    /// Folder of the dataset.
    pub output: PathBuf,
    /// Which animation of the file; its only or longest one when `None`.
    pub clip: Option<String>,
    /// Meshes to import, by name; all that are in both files when empty.
    pub objects: Vec<String>,
    /// Centimetres in one unit of the cache; found by comparison when `None`.
    pub cache_scale: Option<f32>,
    /// The cache's up axis, `y` or `z`; found by comparison when `None`.
    pub cache_up: Option<String>,
    /// Frames of the animation that pass before the cache's first; found by comparison when `None`.
    pub offset: Option<f64>,
    /// The last share of the frames is left out, for tests.
    pub hold_out: f32,
    /// Import what `hold_out` leaves out, and nothing else.
    pub held_out: bool,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportReport {
    /// Folder of the dataset.
    pub folder: PathBuf,
    /// Poses in it.
    pub poses: usize,
    /// Vertices.
    pub vertices: usize,
    /// Bones.
    pub bones: usize,
    /// Controls.
    pub controls: usize,
    /// How the cache was laid onto the bones; for a mesh and a cache alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Alignment>,
    /// Duration.
    pub seconds: f64,
    /// What was converted, found or skipped.
    pub notes: Vec<String>,
}

/// How a cache was laid onto bones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alignment {
    /// Numbers of the cache, after its own unit became centimetres, were multiplied by this.
    pub scale: f64,
    /// The turn from the cache's axes, such as `x −z y`.
    pub axes: String,
    /// Frames of the animation before the cache's first, at the animation's rate.
    pub offset_frames: f64,
    /// Mean distance between the cache and the skinned mesh, mm: what the twin has to learn.
    pub mean_mm: f64,
    /// The largest.
    pub max_mm: f64,
    /// Vertices that are far from where their bones put them in every frame: vertex and distance in mm, the worst
    /// first.
    pub far: Vec<(usize, f64)>,
    /// How many there are; the list may hold fewer.
    pub far_count: usize,
}

/// Recorded poses, read one after another.
trait Source {
    /// What the poses deform.
    fn rest(&self) -> &DatasetRest;
    /// What a pose has a value for.
    fn specs(&self) -> &ControlSpecs;
    /// Number of poses.
    fn len(&self) -> usize;
    /// One of them.
    fn pose(&mut self, index: usize, out: &mut Pose) -> Result<(), JobError>;
}

/// A pose: what goes in and what comes out.
#[derive(Default)]
struct Pose {
    controls: Controls,
    bones: GlobalPose,
    vertices: Vec<Vec3>,
}

/// Reads the recording and writes the dataset.
pub fn import(config: &ImportConfig, watch: &dyn Watch) -> Result<ImportReport, JobError> {
    check(config)?;
    let start = Instant::now();
    let watch = Remember::new(watch);
    let mut settings = BTreeMap::new();
    let mut rate = None;
    let (mut source, alignment): (Box<dyn Source>, _) = match (&config.arrays, &config.mesh, &config.cache) {
        (Some(path), ..) => {
            settings.insert(IMPORTED.into(), name_of(path));
            let arrays = arrays::Arrays::read(path, &watch)?;
            rate = rate.or(arrays.rate);
            (Box::new(arrays), None)
        }
        (None, Some(mesh), Some(cache)) => {
            settings.insert(IMPORTED.into(), format!("{}, {}", name_of(mesh), name_of(cache)));
            let pairs = pairs::Pairs::read(config, mesh, cache, &watch)?;
            rate = rate.or(pairs.rate);
            let alignment = pairs.alignment.clone();
            (Box::new(pairs), Some(alignment))
        }
        _ => return Err(JobError::setting("import", "either arrays, or --mesh and --cache are wanted")),
    };
    let chosen = frames(config, source.len())?;
    let name =
        config.output.file_name().map_or_else(|| "hero".into(), |name| name.to_string_lossy().into_owned());
    settings.insert("clips".into(), name.clone());
    settings.insert("clip_frames".into(), chosen.len().to_string());
    settings.insert("rate".into(), rate.unwrap_or(30.0).to_string());
    let header = DatasetHeader {
        rig: name,
        rig_file: None,
        method: "clips".into(),
        seed: 0,
        settings,
        controls: source.specs().clone(),
        poses: chosen.len(),
        chunk_size: DatasetHeader::CHUNK_SIZE,
    };
    write(&config.output, &header, source.as_mut(), chosen.start, &watch)?;
    let rest = source.rest();
    Ok(ImportReport {
        folder: config.output.clone(),
        poses: header.poses,
        vertices: rest.mesh.vertex_count(),
        bones: rest.bone_count(),
        controls: header.controls.len(),
        alignment,
        seconds: start.elapsed().as_secs_f64(),
        notes: watch.messages(),
    })
}

fn check(config: &ImportConfig) -> Result<(), JobError> {
    check_folder(&config.output)?;
    let entries = std::fs::read_dir(&config.output).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    if let Some(other) = names.into_iter().find(|name| !is_of_dataset(name)) {
        return Err(JobError::unusable(&config.output, format!("holds '{other}'; choose an empty folder")));
    }
    if !(0.0..=0.9).contains(&config.hold_out) {
        return Err(JobError::setting("hold-out", format!("{} is no share from 0 to 0.9", config.hold_out)));
    }
    if config.held_out && config.hold_out == 0.0 {
        return Err(JobError::setting("held-out", "is not used: --hold-out says which share that is"));
    }
    if config.cache_scale.is_some_and(|scale| !(scale.is_finite() && scale > 0.0)) {
        return Err(JobError::setting("cache-scale", "is no length above 0"));
    }
    if config.cache_up.as_deref().is_some_and(|up| up != "y" && up != "z") {
        return Err(JobError::setting("cache-up", "is neither y nor z"));
    }
    if config.offset.is_some_and(|offset| !offset.is_finite()) {
        return Err(JobError::setting("offset", "is no number of frames"));
    }
    Ok(())
}

/// The frames to import: all but the last share, or the last share.
fn frames(config: &ImportConfig, all: usize) -> Result<std::ops::Range<usize>, JobError> {
    let kept = all - (all as f64 * f64::from(config.hold_out)).round() as usize;
    let range = if config.held_out { kept..all } else { 0..kept };
    if range.is_empty() {
        return Err(JobError::setting("hold-out", format!("leaves nothing of {all} frames")));
    }
    Ok(range)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One chunk in memory at a time.
fn write(
    folder: &Path,
    header: &DatasetHeader,
    source: &mut dyn Source,
    first: usize,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let writer = DatasetWriter::resume(folder, header, source.rest())?;
    let what = format!("importing {}", folder.display());
    watch.event(Event::Started { what: &what, total: header.poses as u64, unit: "poses" });
    let mut chunk = Chunk::with_capacity(writer.shape(), header.chunk_size.min(header.poses));
    let mut pose = Pose::default();
    for index in writer.missing() {
        chunk.clear();
        let poses = header.chunk_poses(index);
        for place in poses.clone() {
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
            source.pose(first + place, &mut pose)?;
            chunk.push(&pose.controls, &pose.bones, &pose.vertices).map_err(|problem| {
                JobError::setting(format!("{}: pose {place}", folder.display()), problem)
            })?;
        }
        writer.write_chunk(index, &chunk)?;
        watch.event(Event::Step { done: poses.end as u64 });
    }
    writer.finish()?;
    watch.event(Event::Finished);
    Ok(())
}
