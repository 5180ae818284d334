//! Joining the shards of one recording, which several machines made: their chunks become one dataset, byte for byte that of
//! a single machine.

use super::chunk::parse_noted;
use super::header::Manifest;
use super::writer::read_manifest;
use super::{DatasetError, DatasetHeader, DatasetWriter, MANIFEST, REST, chunk_path, parse_rest};
use crate::{ParseError, ReadError, read_bytes};
use std::path::PathBuf;

/// The shards of one recording, checked to be that.
#[derive(Debug)]
pub struct Shards {
    folders: Vec<PathBuf>,
    manifest: Manifest,
    /// Mean over the shards that measured it.
    rig_ms: Option<f64>,
}

impl Shards {
    /// Reads what the shards say about themselves; an error where two are of different recordings.
    pub fn open(folders: &[PathBuf]) -> Result<Self, DatasetError> {
        let mut first: Option<Manifest> = None;
        let mut times = Vec::new();
        for folder in folders {
            let found = read_manifest(&folder.join(MANIFEST))?;
            times.extend(found.rig_ms);
            match &first {
                None => first = Some(found),
                Some(first) => {
                    if let Some(field) = first.difference(&found) {
                        return Err(DatasetError::HeaderDiffers { folder: folder.clone(), field });
                    }
                }
            }
        }
        let nothing = || DatasetError::BadHeader { problem: "there are no shards to merge".into() };
        let manifest = first.ok_or_else(nothing)?;
        let rig_ms = (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64);
        Ok(Self { folders: folders.to_vec(), manifest, rig_ms })
    }

    /// What was sampled and how.
    pub fn header(&self) -> DatasetHeader {
        self.manifest.header()
    }

    /// Copies every chunk that `folder` lacks, `step` hears how many are there, and finishes the dataset. Chunks that no shard
    /// has are an error that says how many; what was copied by then stays, and a later merge goes on.
    pub fn merge(
        &self,
        folder: &std::path::Path,
        header: &DatasetHeader,
        step: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), DatasetError> {
        let path = self.folders[0].join(REST);
        let rest = parse_rest(&read_bytes(&path)?).map_err(ReadError::content(&path))?;
        let writer = DatasetWriter::resume(folder, header, &rest)?;
        let total = header.chunk_count();
        for chunk in 0..total {
            for shard in &self.folders {
                let path = chunk_path(shard, chunk);
                if !path.exists() {
                    continue;
                }
                let bytes = read_bytes(&path)?;
                let (content, note) = parse_noted(&bytes).map_err(ReadError::content(&path))?;
                let wrong = |problem: &str| ReadError::content(&path)(ParseError::new("content", problem));
                if !writer.is_its_own(chunk, &content, &note) {
                    return Err(wrong("is a chunk of another recording").into());
                }
                match writer.hash_of(chunk) {
                    None => writer.take(chunk, &bytes, note.sha256)?,
                    Some(hash) if hash == note.sha256 => {}
                    Some(_) => {
                        let problem = "differs from the same chunk of another shard: the rig did not give the same twice";
                        return Err(wrong(problem).into());
                    }
                }
            }
            if !step(chunk + 1) {
                return Ok(());
            }
        }
        writer.finish_timed(self.rig_ms)
    }
}
