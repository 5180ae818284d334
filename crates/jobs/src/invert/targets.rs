//! Reads the meshes that a rig shall match: archives of frames, OBJ files, glTF animations.

use super::InvertConfig;
use crate::clips::Played;
use crate::{JobError, Watch, inputs};
use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, ReadError, Scene};

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
        const WANTED: &str = "an .npz or .abc of frames, an .obj, .glb or .gltf file";
        let mut targets = Self { frames: Vec::new(), rate: None, sources: Vec::new() };
        let mut clip_used = false;
        for path in &config.targets {
            targets.sources.push((targets.frames.len(), path.clone()));
            let before = targets.frames.len();
            match inputs::open(path, WANTED, watch)? {
                Scene::Sequence(sequence) => {
                    targets.rate = sequence.rate.or(targets.rate);
                    for frame in 0..sequence.frames.len() {
                        targets.frames.push(sequence.frames.read(frame).map_err(ReadError::content(path))?);
                    }
                }
                Scene::Model(model) => {
                    let moves = model.skin.is_some() || !model.clips.is_empty();
                    clip_used |= moves;
                    let clip = config.clip.as_deref().filter(|_| moves);
                    match Played::new(&model, path, clip, watch)? {
                        Some(played) => {
                            targets.rate = Some(played.rate());
                            for frame in 0..played.len() {
                                targets.frames.push(played.frame(frame)?);
                            }
                        }
                        None => targets.frames.push(model.rest_vertices()),
                    }
                }
                other => return Err(inputs::wrong_kind(path, &other, WANTED)),
            }
            if let Some(frame) = targets.frames[before..].iter().find(|frame| frame.len() != vertices) {
                let problem =
                    format!("has {} vertices, the rig '{}' has {vertices}", frame.len(), config.rig);
                return Err(JobError::unusable(path, problem));
            }
        }
        if config.clip.is_some() && !clip_used {
            let problem = "is not used: no target has clips to choose from";
            return Err(JobError::setting("clip", problem));
        }
        if targets.frames.is_empty() {
            return Err(JobError::setting("targets", "the files hold no frame"));
        }
        Ok(targets)
    }

    /// Frames that were made, not read.
    pub(super) fn of_frames(frames: Vec<Vec<Vec3>>, rate: f32, source: PathBuf) -> Self {
        Self { frames, rate: Some(rate), sources: vec![(0, source)] }
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
