//! Writing a dataset: chunks in any order from any thread, each whole or absent, so that a killed run
//! continues where it was and ends with the same bytes.

use super::chunk::{ChunkNote, parse_noted};
use super::header::Manifest;
use super::{
    Chunk, ChunkShape, DatasetError, DatasetHeader, DatasetRest, MANIFEST, REST, chunk_path, content_hash,
};
use crate::{ParseError, ReadError, WriteError, read_bytes, write_atomic};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A dataset under way.
#[derive(Debug)]
pub struct DatasetWriter {
    folder: PathBuf,
    manifest: Manifest,
    identity: String,
    /// The content hash of every chunk that is on the disk.
    written: Mutex<Vec<Option<String>>>,
}

impl DatasetWriter {
    /// Starts a dataset in a folder that holds none.
    pub fn create(folder: &Path, header: &DatasetHeader, rest: &DatasetRest) -> Result<Self, DatasetError> {
        let (writer, rest_bytes) = Self::prepare(folder, header, rest)?;
        let taken = folder.join(MANIFEST).exists() || chunk_path(folder, 0).exists();
        if taken {
            return Err(DatasetError::Exists { folder: folder.into() });
        }
        writer.write_start(&rest_bytes)?;
        Ok(writer)
    }

    /// Continues a dataset made with the same header and rest (another one is an error), or starts it
    /// where the folder holds none. Leftovers of a killed run are removed; a damaged chunk counts as missing.
    pub fn resume(folder: &Path, header: &DatasetHeader, rest: &DatasetRest) -> Result<Self, DatasetError> {
        let (mut writer, rest_bytes) = Self::prepare(folder, header, rest)?;
        let path = folder.join(MANIFEST);
        if !path.exists() {
            remove_leftovers(folder)?;
            writer.write_start(&rest_bytes)?;
            writer.find_chunks()?;
            return Ok(writer);
        }
        let found = read_manifest(&path)?;
        writer.manifest = writer.manifest.continued(&found);
        writer.identity = writer.manifest.identity();
        if let Some(field) = writer.manifest.difference(&found) {
            return Err(DatasetError::HeaderDiffers { folder: folder.into(), field });
        }
        remove_leftovers(folder)?;
        let whole = fs::read(folder.join(REST)).is_ok_and(|bytes| bytes == rest_bytes);
        if !whole {
            write_atomic(&folder.join(REST), &rest_bytes)?;
        }
        writer.find_chunks()?;
        Ok(writer)
    }

    fn prepare(
        folder: &Path,
        header: &DatasetHeader,
        rest: &DatasetRest,
    ) -> Result<(Self, Vec<u8>), DatasetError> {
        header.check()?;
        rest.check().map_err(|problem| DatasetError::BadHeader { problem })?;
        let rest_bytes = rest.to_bytes();
        let manifest = Manifest::new(header, rest, content_hash([rest_bytes.as_slice()]));
        let written = Mutex::new(vec![None; header.chunk_count()]);
        let identity = manifest.identity();
        Ok((Self { folder: folder.into(), manifest, identity, written }, rest_bytes))
    }

    fn write_start(&self, rest_bytes: &[u8]) -> Result<(), DatasetError> {
        write_atomic(&self.folder.join(REST), rest_bytes)?;
        write_atomic(&self.folder.join(MANIFEST), self.manifest.to_text().as_bytes())?;
        Ok(())
    }

    /// Notes the chunks of this dataset that are whole on the disk.
    fn find_chunks(&self) -> Result<(), DatasetError> {
        for index in 0..self.header().chunk_count() {
            let path = chunk_path(&self.folder, index);
            if !path.exists() {
                continue;
            }
            let bytes = read_bytes(&path)?;
            let Ok((chunk, note)) = parse_noted(&bytes) else { continue };
            if self.is_its_own(index, &chunk, &note) {
                self.lock()[index] = Some(note.sha256);
            }
        }
        Ok(())
    }

    /// Whether a chunk was written for this dataset, in that place.
    pub(super) fn is_its_own(&self, index: usize, chunk: &Chunk, note: &ChunkNote) -> bool {
        let ours = note.index == Some(index) && note.dataset == self.identity;
        ours && chunk.shape() == self.shape() && chunk.len() == self.header().chunk_poses(index).len()
    }

    /// The hash of a chunk that is on the disk.
    pub(super) fn hash_of(&self, index: usize) -> Option<String> {
        self.lock()[index].clone()
    }

    /// Takes over the file of a chunk of this dataset, which lies elsewhere.
    pub(super) fn take(&self, index: usize, bytes: &[u8], hash: String) -> Result<(), DatasetError> {
        write_atomic(&chunk_path(&self.folder, index), bytes)?;
        self.lock()[index] = Some(hash);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<String>>> {
        // The list is valid after every single assignment, so a panic elsewhere does not spoil it.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is being sampled.
    pub fn header(&self) -> DatasetHeader {
        self.manifest.header()
    }

    /// How many numbers a pose must have.
    pub fn shape(&self) -> ChunkShape {
        self.manifest.shape()
    }

    /// The chunks still to be written, ascending.
    pub fn missing(&self) -> Vec<usize> {
        let written = self.lock();
        (0..written.len()).filter(|chunk| written[*chunk].is_none()).collect()
    }

    /// Reads back a chunk that is on the disk; `None` where it is still to be written.
    pub fn chunk(&self, index: usize) -> Result<Option<Chunk>, DatasetError> {
        let Some(hash) = self.lock().get(index).cloned().flatten() else { return Ok(None) };
        let path = chunk_path(&self.folder, index);
        let (chunk, note) = parse_noted(&read_bytes(&path)?).map_err(ReadError::content(&path))?;
        if note.sha256 != hash || !self.is_its_own(index, &chunk, &note) {
            let problem = ParseError::new("content", "was changed by another program");
            return Err(ReadError::content(&path)(problem).into());
        }
        Ok(Some(chunk))
    }

    /// Writes a chunk, whole or not at all. Chunks may come in any order and from any thread.
    pub fn write_chunk(&self, index: usize, chunk: &Chunk) -> Result<(), DatasetError> {
        let bad = |problem: String| DatasetError::BadChunk { chunk: index, problem };
        let header = self.header();
        if index >= header.chunk_count() {
            return Err(bad(format!("there are only {}", header.chunk_count())));
        }
        let want = header.chunk_poses(index).len();
        if chunk.shape() != self.shape() {
            return Err(bad(format!("{:?}, expected {:?}", chunk.shape(), self.shape())));
        }
        if chunk.len() != want {
            return Err(bad(format!("{} poses, expected {want}", chunk.len())));
        }
        let (bytes, hash) = chunk.to_bytes(index, &self.identity);
        write_atomic(&chunk_path(&self.folder, index), &bytes)?;
        self.lock()[index] = Some(hash);
        Ok(())
    }

    /// Writes the final `dataset.toml`; an error while chunks are missing.
    pub fn finish(self) -> Result<(), DatasetError> {
        self.finish_timed(None)
    }

    /// [`Self::finish`] with the time that the rig takes per pose, ms, where this run has measured one.
    pub fn finish_timed(self, rig_ms: Option<f64>) -> Result<(), DatasetError> {
        let written = self.lock().clone();
        let hashes: Vec<String> = written.iter().flatten().cloned().collect();
        if hashes.len() != written.len() {
            let missing = written.len() - hashes.len();
            return Err(DatasetError::Incomplete { folder: self.folder, missing, chunks: written.len() });
        }
        let rig_ms = rig_ms.or(self.manifest.rig_ms);
        let manifest = Manifest { complete: true, chunk_sha256: hashes, rig_ms, ..self.manifest.clone() };
        write_atomic(&self.folder.join(MANIFEST), manifest.to_text().as_bytes())?;
        Ok(())
    }
}

pub(super) fn read_manifest(path: &Path) -> Result<Manifest, ReadError> {
    let bytes = read_bytes(path)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| ParseError::new(format!("byte {}", error.valid_up_to()), "is not UTF-8"));
    text.and_then(Manifest::parse).map_err(ReadError::content(path))
}

/// Removes what a killed run left half written.
fn remove_leftovers(folder: &Path) -> Result<(), DatasetError> {
    let failed = |error: std::io::Error| WriteError::new(folder, error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error).into()),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = ["chunk-", REST, MANIFEST].iter().any(|start| name.starts_with(start));
        if ours && name.ends_with(".tmp") {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}
