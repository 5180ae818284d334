//! Where results go. An output is checked before any work begins, so that a wrong path costs no time and
//! leaves nothing behind.

use crate::JobError;
use std::path::{Path, PathBuf};
use understudy_io::Format;

/// Where a run that learns a twin keeps what is done until the twin is whole: beside it.
pub fn checkpoint_folder(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".parts");
    output.with_file_name(name)
}

/// A file beside a command's result: [`BesideFile::check`] before the work, [`BesideFile::write`] after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BesideFile(PathBuf);

impl BesideFile {
    /// Fails where it cannot be written, or would replace an input or another output.
    pub fn check(path: &Path, inputs: &[&Path], outputs: &[&Path]) -> Result<Self, JobError> {
        check_file(path, inputs)?;
        for output in outputs {
            check_distinct(&[("the result", output), ("its report", path)])?;
        }
        Ok(Self(path.into()))
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, text: &str) -> Result<(), JobError> {
        Ok(understudy_io::write_atomic(&self.0, text.as_bytes())?)
    }
}

/// Fails unless a file could be written there without harm to what the command reads: inputs are files, or
/// folders whose files are read (a dataset, meshes). Creates nothing.
pub(crate) fn check_file(path: &Path, inputs: &[&Path]) -> Result<(), JobError> {
    let target =
        understudy_io::output_target(path).map_err(|error| JobError::unusable(path, error.problem))?;
    check_folder_above(&target).map_err(|error| match error {
        // A link's own name is what was typed.
        JobError::Unusable { problem, .. } => JobError::unusable(path, problem),
        other => other,
    })?;
    match inputs.iter().find_map(|input| read_from(&target, input)) {
        None => Ok(()),
        Some(file) if file == path => {
            Err(JobError::unusable(path, "is the input too; choose another output"))
        }
        Some(file) => {
            let problem = format!("is the input {} too; choose another output", file.display());
            Err(JobError::unusable(path, problem))
        }
    }
}

/// Fails where two outputs of one command are the same file.
pub(crate) fn check_distinct(outputs: &[(&str, &Path)]) -> Result<(), JobError> {
    let place = |path: &Path| {
        let target = understudy_io::output_target(path).unwrap_or_else(|_| path.into());
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        folder.map_or_else(|_| target.clone(), |folder| folder.join(target.file_name().unwrap_or_default()))
    };
    for (index, (name, path)) in outputs.iter().enumerate() {
        if let Some((other, _)) = outputs[..index].iter().find(|(_, other)| place(other) == place(path)) {
            return Err(JobError::unusable(path, format!("is the file of {other} and of {name}")));
        }
    }
    Ok(())
}

/// The file of an input that `target` is, where it is one.
fn read_from(target: &Path, input: &Path) -> Option<PathBuf> {
    if !input.is_dir() {
        return same_file(target, input).then(|| input.to_path_buf());
    }
    let dataset = input.join("dataset.toml").is_file();
    let is_read = |path: &PathBuf| match dataset {
        true => is_of_dataset(&path.file_name().unwrap_or_default().to_string_lossy()),
        false => Format::of(path) == Some(Format::Obj),
    };
    let entries = std::fs::read_dir(input).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(is_read).find(|path| same_file(target, path))
}

/// Beside the chunks of a dataset: which poses its rig failed to give at first, or at all.
pub(crate) const FAILED_POSES: &str = "failed-poses.csv";

/// Beside the chunks of a dataset from a Blender file: what is known of that file, so that it is opened the same way again.
pub(crate) const BLENDER_SURVEY: &str = "blender.json";

/// Beside the chunks of a dataset: ten of its poses as a picture, made before the others are recorded.
pub(crate) const CONTACT_SHEET: &str = "contact-sheet.png";

/// Whether a dataset keeps a file of this name.
pub(crate) fn is_of_dataset(name: &str) -> bool {
    ["dataset.toml", "rest.safetensors", "chunk-", FAILED_POSES, BLENDER_SURVEY, CONTACT_SHEET]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whether two paths lead to one file that exists, by whatever names and links.
fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let of = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
        of(a).is_some_and(|a| Some(a) == of(b))
    }
    #[cfg(not(unix))]
    {
        a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
    }
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
        check_file(&folder.path().join("a/b/picture.png"), &[folder.path()]).expect("can be made");
        check_folder(&folder.path().join("a/b")).expect("can be made");
        check_folder(folder.path()).expect("exists");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    #[test]
    fn bad_places_are_named() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = folder.path().join("file");
        std::fs::write(&file, b"x").expect("writable");
        let bad = [check_file(folder.path(), &[]), check_file(&file.join("x.png"), &[]), check_folder(&file)];
        for result in bad {
            let error = result.expect_err("not a place to write");
            assert!(error.is_bad_input() && error.to_string().contains("folder"), "{error}");
        }
        assert!(check_folder(&file.join("deep/er")).is_err());
    }

    #[test]
    fn inputs_are_recognised_by_any_name() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let at = |name: &str| folder.path().join(name);
        let data = at("data");
        std::fs::create_dir(&data).expect("writable");
        for name in ["dataset.toml", "chunk-000000.safetensors", "own.twin"] {
            std::fs::write(data.join(name), b"x").expect("writable");
        }
        std::fs::hard_link(data.join("dataset.toml"), at("hard")).expect("a link");
        for path in [data.join("dataset.toml"), data.join("../data/chunk-000000.safetensors"), at("hard")] {
            let error = check_file(&path, &[&data]).expect_err("an input");
            assert!(error.is_bad_input() && error.to_string().contains("input"), "{error}");
        }
        check_file(&data.join("own.twin"), &[&data]).expect("no part of the dataset");
        let pair = |a: &Path, b: &Path| check_distinct(&[("--onnx", a), ("--glb", b)]);
        assert!(pair(&at("x"), &at("data/../x")).is_err(), "one file, although it does not exist yet");
        pair(&at("x"), &at("y")).expect("two files");
    }
}
