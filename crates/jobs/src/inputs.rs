//! What commands read: files and datasets through the one door, `understudy_io::open`, with what its readers
//! converted, skipped or mended told to the listener, and one message for what cannot be used.

use crate::rigs::Names;
use crate::{Event, JobError, Watch};
use std::path::Path;
use understudy_io::{Conversion, Format, OpenOptions, ReadError, Scene};

/// Opens what a command reads. `wanted` says what it could use, for the message where this is nothing of the kind.
pub(crate) fn open(path: &Path, wanted: &str, watch: &dyn Watch) -> Result<Scene, JobError> {
    open_with(path, &OpenOptions::default(), wanted, watch)
}

/// [`open`] with options.
pub(crate) fn open_with(
    path: &Path,
    options: &OpenOptions,
    wanted: &str,
    watch: &dyn Watch,
) -> Result<Scene, JobError> {
    if !path.exists() && Format::of(path).is_none() {
        return Err(not_a_file(path, wanted));
    }
    match understudy_io::open_with(path, options) {
        Ok(scene) => {
            report(scene.conversion(), scene.warnings(), path, watch);
            Ok(scene)
        }
        Err(ReadError::Format { .. }) => Err(not_a_file(path, wanted)),
        Err(ReadError::Dataset(error)) => Err((*error).into()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a small file that people write.
pub(crate) fn toml_file<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, JobError> {
    let text = String::from_utf8(understudy_io::read_bytes(path)?);
    let text = text.map_err(|_| JobError::unusable(path, "is no text in UTF-8"))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let place = line.map_or(String::new(), |line| format!("line {line}: "));
        JobError::unusable(path, format!("{place}{}", error.message()))
    })
}

/// Says what a reader converted, skipped or mended.
pub(crate) fn report(conversion: Option<&Conversion>, warnings: &[String], path: &Path, watch: &dyn Watch) {
    if let Some(conversion) = conversion {
        watch.event(Event::Note { message: &format!("{}: {conversion}", path.display()) });
    }
    for warning in warnings {
        watch.event(Event::Warning { message: &format!("{}: {warning}", path.display()) });
    }
}

/// What was read is of another kind than a command can use.
pub(crate) fn wrong_kind(path: &Path, scene: &Scene, wanted: &str) -> JobError {
    JobError::unusable(
        path,
        format!("is {}, which cannot be used here; {wanted} is wanted", scene.describe()),
    )
}

/// Why something is neither a rig nor a file of a wanted kind.
pub(crate) fn not_a_file(path: &Path, wanted: &str) -> JobError {
    if path.exists() {
        return JobError::unusable(path, format!("cannot be used here; {wanted} is wanted"));
    }
    let known = [Names::EMBEDDED, Names::REAL].concat();
    let mut problem = format!("there is no such file, and no character of that name ({})", known.join(", "));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files: Vec<String> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(close) =
        crate::names::closest(&name, known.into_iter().chain(files.iter().map(String::as_str)))
    {
        problem += &format!("; did you mean '{close}'?");
    }
    JobError::unusable(path, problem)
}

/// A file's name without folder and extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "rig".into(), |stem| stem.to_string_lossy().into_owned())
}
