//! Reading a dataset back, one chunk in memory at a time, every chunk held against its recorded hash.

use super::chunk::parse_noted;
use super::header::Manifest;
use super::writer::read_manifest;
use super::{
    Chunk, ChunkShape, DatasetError, DatasetHeader, DatasetRest, MANIFEST, REST, chunk_path, content_hash,
    parse_rest,
};
use crate::{ParseError, ReadError, read_bytes};
use std::path::{Path, PathBuf};
use understudy_core::{Controls, GlobalPose, Vec3};

/// A complete dataset.
#[derive(Debug)]
pub struct DatasetReader {
    folder: PathBuf,
    manifest: Manifest,
    header: DatasetHeader,
    rest: DatasetRest,
}

/// One pose of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct PoseRecord {
    /// Its number in the whole dataset.
    pub index: usize,
    /// What went in.
    pub controls: Controls,
    /// Bone → world; empty for a rig without bones.
    pub skeleton: GlobalPose,
    /// What came out, `[n]` cm.
    pub vertices: Vec<Vec3>,
}

impl DatasetReader {
    /// Checks the header and the rest; chunks are checked as they are read.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        let manifest = read_manifest(&folder.join(MANIFEST))?;
        let header = manifest.header();
        let chunks = header.chunk_count();
        if !manifest.complete {
            let missing = (0..chunks).filter(|chunk| !chunk_path(folder, *chunk).exists()).count();
            return Err(DatasetError::Incomplete { folder: folder.into(), missing, chunks });
        }
        let path = folder.join(REST);
        let bytes = read_bytes(&path)?;
        let damaged = |problem: &str| ReadError::content(&path)(ParseError::new("content", problem));
        if content_hash([bytes.as_slice()]) != manifest.rest_sha256 {
            return Err(damaged("does not match its hash in dataset.toml").into());
        }
        let rest = parse_rest(&bytes).map_err(ReadError::content(&path))?;
        let topology = format!("{:016x}", rest.mesh.topology_hash());
        let found = (rest.mesh.vertex_count(), rest.bone_count(), &topology);
        let want = (manifest.vertices, manifest.bones, &manifest.topology_hash);
        if found != want {
            let say = |(vertices, bones, topology): (usize, usize, &String)| {
                format!("{vertices} vertices, {bones} bones, topology {topology}")
            };
            return Err(damaged(&format!("has {}, dataset.toml says {}", say(found), say(want))).into());
        }
        Ok(Self { folder: folder.into(), manifest, header, rest })
    }

    /// What was sampled and how.
    pub fn header(&self) -> &DatasetHeader {
        &self.header
    }

    /// Milliseconds per pose of the rig, where it was evaluated by another program.
    pub fn rig_ms(&self) -> Option<f64> {
        self.manifest.rig_ms
    }

    /// The rest mesh, bones and weights.
    pub fn rest(&self) -> &DatasetRest {
        &self.rest
    }

    /// How many numbers a pose has.
    pub fn shape(&self) -> ChunkShape {
        self.manifest.shape()
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.header.chunk_count()
    }

    /// Reads a chunk; damage is found by its hash.
    ///
    /// # Panics
    /// When there is no such chunk.
    pub fn chunk(&self, index: usize) -> Result<Chunk, DatasetError> {
        let path = chunk_path(&self.folder, index);
        let bytes = read_bytes(&path)?;
        let (chunk, note) = parse_noted(&bytes).map_err(ReadError::content(&path))?;
        let wrong = |problem: String| ReadError::content(&path)(ParseError::new("content", problem));
        if note.sha256 != self.manifest.chunk_sha256[index] {
            return Err(wrong("does not match its hash in dataset.toml".into()).into());
        }
        let want = self.header.chunk_poses(index).len();
        if chunk.shape() != self.shape() || chunk.len() != want {
            let (got, shape) = (chunk.len(), chunk.shape());
            return Err(
                wrong(format!("{got} poses of {shape:?}, expected {want} of {:?}", self.shape())).into()
            );
        }
        Ok(chunk)
    }

    /// All poses in order, one chunk in memory at a time.
    pub fn poses(&self) -> impl Iterator<Item = Result<PoseRecord, DatasetError>> + '_ {
        (0..self.chunk_count()).flat_map(move |index| {
            let (chunk, failed) = match self.chunk(index) {
                Ok(chunk) => (Some(chunk), None),
                Err(error) => (None, Some(Err(error))),
            };
            let start = self.header.chunk_poses(index).start;
            let count = chunk.as_ref().map_or(0, Chunk::len);
            let record = move |pose: usize| {
                let chunk = chunk.as_ref().expect("count is zero without a chunk");
                Ok(PoseRecord {
                    index: start + pose,
                    controls: chunk.controls_of(pose),
                    skeleton: chunk.skeleton_of(pose),
                    vertices: chunk.vertices_of(pose),
                })
            };
            failed.into_iter().chain((0..count).map(record))
        })
    }
}
