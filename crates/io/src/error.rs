//! Errors that name the file and the place, and the two doors to the disk.

use crate::Format;
use crate::dataset::DatasetError;
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
    /// No reader knows it.
    #[error("{path}: is of no format that is read here ({known})", path = path.display(), known = Format::readable())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A dataset that could not be opened.
    #[error(transparent)]
    Dataset(#[from] Box<DatasetError>),
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

/// The regular file that writing to `path` makes or replaces: symbolic links are followed to their end, also
/// when nothing is there yet. What exists and is no regular file is refused: renaming over it would destroy it.
pub fn output_target(path: &Path) -> Result<PathBuf, WriteError> {
    /// As many as Linux follows.
    const MAX_LINKS: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..=MAX_LINKS {
        if target.file_name().is_none() {
            return Err(WriteError::new(path, "is not a file name"));
        }
        let Ok(data) = target.symlink_metadata() else { return Ok(target) };
        if data.is_symlink() {
            let next = fs::read_link(&target).map_err(|error| WriteError::new(path, error))?;
            // A relative link starts at the folder that holds it.
            target = target.parent().unwrap_or(Path::new("")).join(next);
        } else if data.is_file() {
            return Ok(target);
        } else {
            let what = special_file(data.file_type());
            return Err(WriteError::new(path, format!("is {what}, a file is wanted")));
        }
    }
    Err(WriteError::new(path, "is a symbolic link that leads nowhere"))
}

/// What something that is neither a regular file nor a link is called.
fn special_file(kind: fs::FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        if kind.is_fifo() {
            return "a named pipe";
        } else if kind.is_socket() {
            return "a socket";
        } else if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a folder" } else { "a special file" }
}

/// Writes a file so that it is there whole or not at all: into a sibling, flushed to the disk, then
/// renamed. Where it goes and what is refused: [`output_target`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    use std::io::Write as _;
    let failed = |error: std::io::Error| WriteError::new(path, error);
    let target = output_target(path)?;
    let name = target.file_name().expect("a target has a name");
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut sibling = name.to_owned();
    sibling.push(format!(".{}.tmp", std::process::id()));
    let sibling = target.with_file_name(sibling);
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&sibling)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&sibling, &target)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&sibling);
        failed(error)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn links_are_written_through_and_stay_links() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).expect("writable");
        symlink("second", at("first")).expect("a link");
        symlink("deep/file", at("second")).expect("a link");
        for content in [b"new".as_slice(), b"again"] {
            write_atomic(&at("first"), content).expect("written through both links");
            assert_eq!(fs::read(at("deep/file")).expect("there"), content);
            assert!(at("first").is_symlink() && at("second").is_symlink());
        }
        symlink("round", at("round")).expect("a link");
        assert!(write_atomic(&at("round"), b"x").is_err());
    }

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        symlink("/dev/null", folder.path().join("device")).expect("a link");
        for (path, what) in [
            (socket, "a socket"),
            (folder.path().to_path_buf(), "a folder"),
            (folder.path().join("device"), "a device"),
            (PathBuf::from("/dev/null"), "a device"),
            (folder.path().join(".."), "not a file name"),
        ] {
            let error = write_atomic(&path, b"x").expect_err("no regular file").to_string();
            assert!(error.contains(what), "{error}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 2);
    }
}
