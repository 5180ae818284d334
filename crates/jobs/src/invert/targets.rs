//! Reads the meshes that a rig shall match: archives of frames, OBJ files, glTF animations.

use super::InvertConfig;
use crate::outputs::extension;
use crate::rigs::{not_a_file, report};
use crate::{JobError, Watch};
use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, ParseError, ReadError};

/// All frames, and which file each came from.
pub(super) struct Targets {
    /// `[F][V]` cm; NaN where a vertex is missing.
    pub frames: Vec<Vec<Vec3>>,
    /// Frames a second, where a file says.
    pub rate: Option<f32>,
    /// First frame and file, ascending.
    sources: Vec<(usize, PathBuf)>,
}

impl Targets {
    /// Reads all files; every one must have the rig's number of vertices.
    pub(super) fn read(config: &InvertConfig, vertices: usize, watch: &dyn Watch) -> Result<Self, JobError> {
        let animated = |path: &PathBuf| matches!(extension(path).as_str(), "glb" | "gltf");
        if config.clip.is_some() && !config.targets.iter().any(animated) {
            let problem = "is not used: only .glb and .gltf targets have clips to choose from";
            return Err(JobError::setting("clip", problem));
        }
        let mut targets = Self { frames: Vec::new(), rate: None, sources: Vec::new() };
        for path in &config.targets {
            targets.sources.push((targets.frames.len(), path.clone()));
            let before = targets.frames.len();
            match extension(path).as_str() {
                "npz" => targets.add_archive(path, vertices, watch)?,
                "obj" => {
                    let file = understudy_io::obj::read(path)?;
                    report(&file.conversion.to_string(), &file.warnings, path, watch);
                    targets.frames.push(file.mesh.positions().to_vec());
                }
                "glb" | "gltf" => targets.add_animation(path, config.clip.as_deref(), watch)?,
                _ => return Err(not_a_file(path, "an .npz, .obj, .glb or .gltf file")),
            }
            if let Some(frame) = targets.frames[before..].iter().find(|frame| frame.len() != vertices) {
                let problem =
                    format!("has {} vertices, the rig '{}' has {vertices}", frame.len(), config.rig);
                return Err(JobError::unusable(path, problem));
            }
        }
        if targets.frames.is_empty() {
            return Err(JobError::setting("targets", "the files hold no frame"));
        }
        Ok(targets)
    }

    fn add_archive(&mut self, path: &Path, vertices: usize, watch: &dyn Watch) -> Result<(), JobError> {
        let npz = NpzReader::read(path)?;
        let content = |error: ParseError| ReadError::content(path)(error);
        let one = npz.shape("vertices").is_some_and(|shape| shape.len() == 2);
        let frame = [Dim::Exactly(vertices), Dim::Exactly(3)];
        let want: Vec<Dim> = if one { frame.to_vec() } else { [&[Dim::Any("frames")], &frame[..]].concat() };
        let array = npz.f32_with_gaps("vertices", &want).map_err(content)?;
        let unit =
            if npz.contains("unit_cm") { npz.f32("unit_cm", &[]).map_err(content)?.data[0] } else { 1.0 };
        if !(unit.is_finite() && unit > 0.0) {
            return Err(JobError::unusable(path, format!("array 'unit_cm': {unit} is not a unit of length")));
        }
        if npz.contains("rate") {
            self.rate = Some(npz.f32("rate", &[]).map_err(content)?.data[0]).filter(|rate| *rate > 0.0);
        }
        let said = if npz.contains("unit_cm") {
            "the file says so"
        } else {
            "the file names no unit: centimetres assumed"
        };
        report(&format!("1 unit is {unit} cm ({said})"), &[], path, watch);
        for frame in array.data.chunks_exact(3 * vertices.max(1)) {
            self.frames.push(frame.chunks_exact(3).map(|v| Vec3::new(v[0], v[1], v[2]) * unit).collect());
        }
        Ok(())
    }

    fn add_animation(&mut self, path: &Path, clip: Option<&str>, watch: &dyn Watch) -> Result<(), JobError> {
        let asset = understudy_io::gltf::read(path)?;
        report(&asset.conversion.to_string(), &asset.warnings, path, watch);
        let clip = match clip {
            Some(name) => Some(asset.find_clip(name).ok_or_else(|| {
                JobError::unknown_clip(
                    &path.to_string_lossy(),
                    name,
                    asset.clips.iter().map(|c| c.name.as_str()),
                )
            })?),
            None => asset.clips.first(),
        };
        match clip {
            Some(clip) => {
                self.rate = Some(clip.rate);
                self.frames.extend((0..clip.own_frames()).map(|frame| asset.evaluate(clip, frame)));
            }
            None => self.frames.push(asset.rest_vertices()),
        }
        Ok(())
    }

    /// The file of a frame, and the frame's place in it where it holds several.
    pub(super) fn place(&self, frame: usize) -> (&Path, Option<String>) {
        let source = self.sources.partition_point(|(first, _)| *first <= frame).saturating_sub(1);
        let (first, path) = &self.sources[source];
        let end = self.sources.get(source + 1).map_or(self.frames.len(), |(next, _)| *next);
        (path, (end - first > 1).then(|| format!("frame {}", frame - first)))
    }
}

/// How much each vertex counts: `weights [n]` of an archive.
pub(super) fn vertex_weights(path: &Path, vertices: usize) -> Result<Vec<f32>, JobError> {
    let npz = NpzReader::read(path)?;
    Ok(npz.f32("weights", &[Dim::Exactly(vertices)]).map_err(ReadError::content(path))?.data)
}
