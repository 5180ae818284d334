//! Errors that name the file and the place, and the two doors to the disk.

use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What is wrong inside a file, and where: a line, an accessor, an array, a byte.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct ParseError {
    /// Such as `line 12`, `accessor 3`, `array 'deltas'`, `byte 1024`.
    pub place: String,
    /// Such as `9 numbers expected, 7 found`. No line breaks.
    pub problem: String,
}

impl ParseError {
    /// A problem at a place; line breaks in the problem become spaces, so that it stays one line.
    pub fn new(place: impl Into<String>, problem: impl ToString) -> Self {
        let problem = problem.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { place: place.into(), problem }
    }
}

/// A file that could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The content is wrong.
    #[error("{path}: {source}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: ParseError,
    },
}

impl ReadError {
    /// Puts the file's name before a [`ParseError`].
    pub fn content(path: &Path) -> impl Fn(ParseError) -> Self + '_ {
        |source| Self::Content { path: path.into(), source }
    }
}

/// A file that could not be written.
#[derive(Debug, Error)]
#[error("{path}: {problem}", path = path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub problem: String,
}

impl WriteError {
    /// A problem with a file.
    pub fn new(path: &Path, problem: impl ToString) -> Self {
        Self { path: path.into(), problem: problem.to_string() }
    }
}

/// The whole file in memory.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    fs::read(path).map_err(|source| ReadError::Open { path: path.into(), source })
}

/// Writes a file so that it is there whole or not at all: into a sibling, flushed to the disk, then
/// renamed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    use std::io::Write as _;
    let failed = |error: std::io::Error| WriteError::new(path, error);
    let name = path.file_name().ok_or_else(|| WriteError::new(path, "is not a file name"))?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut sibling = name.to_owned();
    sibling.push(format!(".{}.tmp", std::process::id()));
    let sibling = path.with_file_name(sibling);
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&sibling)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&sibling, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&sibling);
        failed(error)
    })
}
