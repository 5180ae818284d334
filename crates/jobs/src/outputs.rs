//! Where results go. An output is checked before any work begins, so that a wrong path costs no time and
//! leaves nothing behind.

use crate::JobError;
use std::path::{Path, PathBuf};

/// The extension in lower case; empty without one.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Fails unless a file could be written there. Creates nothing.
pub(crate) fn check_file(path: &Path) -> Result<(), JobError> {
    if path.file_name().is_none() {
        return Err(JobError::unusable(path, "is not a file name"));
    }
    if path.is_dir() {
        return Err(JobError::unusable(path, "is a folder, a file is wanted"));
    }
    check_folder_above(path)
}

/// Fails unless files could be written into that folder. Creates nothing.
pub(crate) fn check_folder(path: &Path) -> Result<(), JobError> {
    if path.as_os_str().is_empty() {
        return Err(JobError::setting("output", "is empty"));
    }
    match path.symlink_metadata() {
        Ok(_) if !path.is_dir() => Err(JobError::unusable(path, "is a file, a folder is wanted")),
        Ok(_) => probe_folder(path, path),
        Err(_) => check_folder_above(path),
    }
}

fn check_folder_above(path: &Path) -> Result<(), JobError> {
    let folders = path.ancestors().skip(1);
    for folder in folders {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        match folder.metadata() {
            Ok(data) if data.is_dir() => return probe_folder(folder, path),
            Ok(_) => return Err(JobError::unusable(path, format!("{} is not a folder", folder.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(JobError::unusable(path, error)),
        }
    }
    Err(JobError::unusable(path, "no folder above it exists"))
}

/// Whether the system lets us write is best asked by writing.
fn probe_folder(folder: &Path, path: &Path) -> Result<(), JobError> {
    let probe: PathBuf = folder.join(format!(".understudy-{}.tmp", std::process::id()));
    std::fs::File::create(&probe)
        .map_err(|error| JobError::unusable(path, format!("cannot be written: {error}")))?;
    std::fs::remove_file(&probe).map_err(|error| JobError::unusable(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_places_pass_and_stay_empty() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        check_file(&folder.path().join("a/b/picture.png")).expect("can be made");
        check_folder(&folder.path().join("a/b")).expect("can be made");
        check_folder(folder.path()).expect("exists");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    #[test]
    fn bad_places_are_named() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = folder.path().join("file");
        std::fs::write(&file, b"x").expect("writable");
        let bad = [check_file(folder.path()), check_file(&file.join("x.png")), check_folder(&file)];
        for result in bad {
            let error = result.expect_err("not a place to write");
            assert!(error.is_bad_input() && error.to_string().contains("folder"), "{error}");
        }
        assert!(check_folder(&file.join("deep/er")).is_err());
    }
}
