//! Animations of a mesh, wherever they come from: datasets, archives of frames, glTF clips, OBJ files.

use super::DecomposeConfig;
use crate::clips::Played;
use crate::inputs::{self, stem};
use crate::{Event, JobError, Silent, Watch};
use std::path::{Path, PathBuf};
use understudy_core::{Mesh, Vec3};
use understudy_io::dataset::DatasetReader;
use understudy_io::mesh_sequence::MeshSequence;
use understudy_io::{Format, Model, ReadError, Scene};

/// Frames a second where nothing says so.
pub(super) const RATE: f32 = 30.0;

/// A mesh that moves.
pub(super) struct Source {
    /// Of the mesh and its clip.
    pub name: String,
    /// Topology and rest pose.
    pub mesh: Mesh,
    /// `[F][V]` cm.
    pub frames: Vec<Vec<Vec3>>,
    /// Frames a second, where the data says.
    pub rate: Option<f32>,
}

/// What can be decomposed.
const WANTED: &str = "a dataset, an .npz or .abc of frames, a .glb or .gltf animation, or .obj files";

impl Source {
    pub(super) fn read(config: &DecomposeConfig, watch: &dyn Watch) -> Result<Self, JobError> {
        let most = config.frames.unwrap_or(usize::MAX);
        let clip = config.clip.as_deref();
        let [path] = &config.data[..] else { return Self::meshes(&config.data, clip, most, watch) };
        if path.is_dir() && Format::of(path).is_none() {
            return Self::meshes(&meshes_in(path)?, clip, most, watch);
        }
        let scene = inputs::open(path, WANTED, watch)?;
        if clip.is_some()
            && scene.clips().is_empty()
            && !matches!(&scene, Scene::Model(m) if m.skin.is_some())
        {
            return Err(no_clips());
        }
        match scene {
            Scene::Dataset(reader) => Self::dataset(path, &reader, most, watch),
            Scene::Sequence(sequence) => Self::archive(path, *sequence, most),
            Scene::Model(model) => Self::model(path, &model, clip, most, watch),
            other => Err(inputs::wrong_kind(path, &other, WANTED)),
        }
    }

    fn dataset(
        folder: &Path,
        reader: &DatasetReader,
        most: usize,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let header = reader.header();
        let what = format!("reading {}", folder.display());
        watch.event(Event::Started { what: &what, total: reader.chunk_count() as u64, unit: "chunks" });
        let mut chosen = spread(header.poses, most).peekable();
        let mut frames = Vec::new();
        for index in 0..reader.chunk_count() {
            let range = header.chunk_poses(index);
            // Chunks without a chosen pose are not even opened.
            let mut chunk = None;
            while let Some(pose) = chosen.next_if(|pose| range.contains(pose)) {
                if chunk.is_none() {
                    chunk = Some(reader.chunk(index)?);
                }
                frames.extend(chunk.as_ref().map(|chunk| chunk.vertices_of(pose - range.start)));
            }
            watch.event(Event::Step { done: index as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        // Poses that were found at random have no rate.
        let rate = header.settings.get("rate").filter(|_| header.method == "clips");
        let rate = rate.and_then(|text| text.parse::<f32>().ok());
        let rate = rate.map(|rate| rate * frames.len() as f32 / header.poses as f32);
        Ok(Self { name: stem(folder), mesh: reader.rest().mesh.clone(), frames, rate })
    }

    fn archive(path: &Path, mut file: MeshSequence, most: usize) -> Result<Self, JobError> {
        if let Some((frame, vertex)) = file.first_gap() {
            return Err(JobError::unusable(path, format!("frame {frame}: vertex {vertex} is missing (NaN)")));
        }
        let mesh =
            file.mesh.take().ok_or_else(|| JobError::unusable(path, "has no array 'faces' or 'polys'"))?;
        let count = file.frames.len();
        let read = |frame| file.frames.read(frame).map_err(ReadError::content(path));
        let frames: Vec<Vec<Vec3>> = spread(count, most).map(read).collect::<Result<_, _>>()?;
        let rate = file.rate.map(|rate| rate * frames.len() as f32 / count as f32);
        Ok(Self { name: stem(path), mesh, frames, rate })
    }

    /// A clip of a model; a mesh that nothing moves is one frame.
    fn model(
        path: &Path,
        model: &Model,
        clip: Option<&str>,
        most: usize,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let rest = model.rest_vertices();
        let mesh = model.mesh.with_positions(&rest).map_err(|error| JobError::unusable(path, error))?;
        if model.skin.is_none() && model.clips.is_empty() {
            return Ok(Self { name: stem(path), mesh, frames: vec![rest], rate: None });
        }
        let played = Played::new(model, path, clip, watch)?;
        let played = played.ok_or_else(|| JobError::unusable(path, "has no animation"))?;
        let frames = spread(played.len(), most).map(|frame| played.frame(frame));
        let frames: Vec<Vec<Vec3>> = frames.collect::<Result<_, _>>()?;
        let rate = played.rate() * frames.len() as f32 / played.len() as f32;
        Ok(Self { name: played.name().into(), mesh, frames, rate: Some(rate) })
    }

    /// Meshes in the order given; the first is the rest pose too.
    fn meshes(
        paths: &[PathBuf],
        clip: Option<&str>,
        most: usize,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        if clip.is_some() {
            return Err(no_clips());
        }
        const ONE_OF_SEVERAL: &str = "an .obj file, where several are given,";
        let mut first: Option<Mesh> = None;
        let mut frames = Vec::new();
        for index in spread(paths.len(), most) {
            let path = &paths[index];
            let scene = match &first {
                None => inputs::open(path, ONE_OF_SEVERAL, watch)?,
                // What was converted is said once.
                Some(_) => inputs::open(path, ONE_OF_SEVERAL, &Silent)?,
            };
            let mesh = match scene {
                Scene::Model(model) if model.skin.is_none() && model.shapes.is_none() => model.mesh,
                other => return Err(inputs::wrong_kind(path, &other, ONE_OF_SEVERAL)),
            };
            frames.push(mesh.positions().to_vec());
            match &first {
                None => first = Some(mesh),
                Some(first) if mesh.topology_hash() != first.topology_hash() => {
                    let whose = format!("that of {}", paths[0].display());
                    let want = (first.vertex_count(), first.topology_hash());
                    return Err(JobError::other_topology(path, &mesh, &whose, want));
                }
                Some(_) => {}
            }
        }
        let mesh = first.ok_or_else(|| JobError::setting("data", "no animation is named"))?;
        Ok(Self { name: stem(&paths[0]), mesh, frames, rate: None })
    }
}

fn no_clips() -> JobError {
    JobError::setting("clip", "is not used: only a model has clips to choose from")
}

/// The OBJ files of a folder by name.
fn meshes_in(folder: &Path) -> Result<Vec<PathBuf>, JobError> {
    let entries = std::fs::read_dir(folder).map_err(|error| JobError::unusable(folder, error))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| Format::of(path) == Some(Format::Obj))
        .collect();
    if paths.is_empty() {
        return Err(JobError::unusable(folder, "is neither a dataset nor a folder of .obj files"));
    }
    paths.sort();
    Ok(paths)
}

/// At most so many of `count`, spread evenly, ascending.
fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let kept = count.min(most);
    (0..kept).map(move |index| index * count / kept)
}
