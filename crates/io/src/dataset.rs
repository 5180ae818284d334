//! Datasets on disk: a folder of poses with what the rig made of them, written chunk by chunk so that
//! memory stays flat, and resumable after a kill at any moment. Start at [`DatasetWriter::create`] and
//! [`DatasetReader::open`].
//!
//! | file | holds |
//! |---|---|
//! | `dataset.toml` | rig, method, seed, units, axes, controls with ranges, counts, hashes, `complete` |
//! | `rest.safetensors` | rest mesh, bones, skin weights |
//! | `chunk-000000.safetensors` … | `poses [c,k]`, `vertices [c,n,3]` and, with bones, `skeletons [c,J,12]` (row-major 3×4, bone → world), all f32, cm, Y-up |
//!
//! In Python:
//! ```python
//! import glob, tomllib; from safetensors.numpy import load_file
//! header = tomllib.load(open("data/hero/dataset.toml", "rb"))
//! chunks = [load_file(name) for name in sorted(glob.glob("data/hero/chunk-*.safetensors"))]
//! ```
//! A chunk's `sha256` (in its metadata and in `dataset.toml`) covers its bytes after the JSON header; the one in
//! the first line of `dataset.toml` covers all that follows that line (`tail -n +2 dataset.toml | sha256sum`).
//! Datasets that earlier versions wrote have no such line and are read all the same.

mod chunk;
mod header;
mod merge;
mod reader;
mod rest;
mod writer;

pub use chunk::{Chunk, ChunkShape, parse_chunk};
pub use header::{DatasetHeader, RigFile, parse_manifest};
pub use merge::Shards;
pub use reader::{DatasetReader, PoseRecord};
pub use rest::{DatasetRest, parse_rest};
pub use writer::DatasetWriter;

use crate::{ReadError, WriteError};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What can go wrong with a dataset as a whole.
#[derive(Debug, Error)]
pub enum DatasetError {
    /// A file could not be read, or is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A new dataset was to be made where one is.
    #[error("{folder}: already holds a dataset; resume it or choose another folder", folder = folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// The dataset in the folder was made with other settings.
    #[error("{folder}: holds a dataset with another {field}; choose another folder", folder = folder.display())]
    HeaderDiffers {
        /// The folder.
        folder: PathBuf,
        /// What differs: "seed", "rest mesh or skeleton".
        field: &'static str,
    },
    /// Chunks are missing.
    #[error("{folder}: {missing} of {chunks} chunks are missing; resume the sampling with the same settings",
            folder = folder.display())]
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// How many are missing.
        missing: usize,
        /// How many there should be.
        chunks: usize,
    },
    /// Settings that cannot be recorded.
    #[error("dataset: {problem}")]
    BadHeader {
        /// Why.
        problem: String,
    },
    /// Arrays for a chunk that do not fit.
    #[error("chunk {chunk}: {problem}")]
    BadChunk {
        /// The chunk.
        chunk: usize,
        /// Why.
        problem: String,
    },
}

pub(crate) const MANIFEST: &str = "dataset.toml";
pub(crate) const REST: &str = "rest.safetensors";

fn chunk_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("chunk-{index:06}.safetensors"))
}

/// SHA-256 in hexadecimal of some pieces of bytes, end to end.
pub fn content_hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
