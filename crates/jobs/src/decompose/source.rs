//! Animations of a mesh, wherever they come from: datasets, archives of frames, glTF clips, OBJ files.

use super::DecomposeConfig;
use crate::outputs::extension;
use crate::rigs::{not_a_file, report, stem};
use crate::{Event, JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_core::{Mesh, Vec3};
use understudy_io::dataset::DatasetReader;

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

impl Source {
    pub(super) fn read(config: &DecomposeConfig, watch: &dyn Watch) -> Result<Self, JobError> {
        let most = config.frames.unwrap_or(usize::MAX);
        let animation = |path: &PathBuf| matches!(extension(path).as_str(), "glb" | "gltf");
        if config.clip.is_some() && !(config.data.len() == 1 && animation(&config.data[0])) {
            let problem = "is not used: only a .glb or .gltf file has clips to choose from";
            return Err(JobError::setting("clip", problem));
        }
        let [path] = &config.data[..] else { return Self::meshes(&config.data, most, watch) };
        if path.join("dataset.toml").is_file() {
            return Self::dataset(path, most, watch);
        }
        if path.is_dir() {
            return Self::meshes(&meshes_in(path)?, most, watch);
        }
        match extension(path).as_str() {
            "npz" => Self::archive(path, most, watch),
            "glb" | "gltf" => Self::animation(path, config.clip.as_deref(), most, watch),
            "obj" => Self::meshes(&config.data, most, watch),
            _ => Err(not_a_file(path, "a dataset, an .npz, .glb or .gltf file, or .obj files")),
        }
    }

    fn dataset(folder: &Path, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let reader = DatasetReader::open(folder)?;
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

    fn archive(path: &Path, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let mut file = understudy_io::mesh_sequence::read(path)?;
        report(&file.conversion.to_string(), &[], path, watch);
        let (count, all) = (file.frames.len(), std::mem::take(&mut file.frames));
        let frames = thin(all, most);
        let rate = file.rate.map(|rate| rate * frames.len() as f32 / count as f32);
        Ok(Self { name: stem(path), mesh: file.mesh, frames, rate })
    }

    fn animation(path: &Path, clip: Option<&str>, most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let asset = understudy_io::gltf::read(path)?;
        report(&asset.conversion.to_string(), &asset.warnings, path, watch);
        let known = asset.clips.iter().map(|clip| clip.name.as_str());
        let clip = match clip {
            Some(name) => asset
                .find_clip(name)
                .ok_or_else(|| JobError::unknown_clip(&path.to_string_lossy(), name, known))?,
            None => asset.clips.first().ok_or_else(|| JobError::unusable(path, "has no animation"))?,
        };
        let count = clip.own_frames();
        let frames: Vec<Vec<Vec3>> = spread(count, most).map(|frame| asset.evaluate(clip, frame)).collect();
        let rate = clip.rate * frames.len() as f32 / count as f32;
        let rest = asset.rest_vertices();
        let mesh = asset.mesh.with_positions(&rest).map_err(|error| JobError::unusable(path, error))?;
        Ok(Self { name: clip.name.clone(), mesh, frames, rate: Some(rate) })
    }

    /// OBJ files in the order given; the first is the rest pose too.
    fn meshes(paths: &[PathBuf], most: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let mut mesh: Option<Mesh> = None;
        let mut frames = Vec::new();
        for index in spread(paths.len(), most) {
            let path = &paths[index];
            if extension(path) != "obj" {
                return Err(not_a_file(path, "an .obj file, where several are given"));
            }
            let file = understudy_io::obj::read(path)?;
            if mesh.is_none() {
                report(&file.conversion.to_string(), &file.warnings, path, watch);
            }
            let first = mesh.get_or_insert_with(|| file.mesh.clone());
            if file.mesh.topology_hash() != first.topology_hash() {
                let whose = format!("that of {}", paths[0].display());
                let want = (first.vertex_count(), first.topology_hash());
                return Err(JobError::other_topology(path, &file.mesh, &whose, want));
            }
            frames.push(file.mesh.positions().to_vec());
        }
        let mesh = mesh.ok_or_else(|| JobError::setting("data", "no animation is named"))?;
        Ok(Self { name: stem(&paths[0]), mesh, frames, rate: None })
    }
}

/// The OBJ files of a folder by name.
fn meshes_in(folder: &Path) -> Result<Vec<PathBuf>, JobError> {
    let entries = std::fs::read_dir(folder).map_err(|error| JobError::unusable(folder, error))?;
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| extension(path) == "obj").collect();
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

fn thin(frames: Vec<Vec<Vec3>>, most: usize) -> Vec<Vec<Vec3>> {
    let mut chosen = spread(frames.len(), most).peekable();
    let all = frames.into_iter().enumerate();
    all.filter_map(|(index, frame)| chosen.next_if_eq(&index).map(|_| frame)).collect()
}
