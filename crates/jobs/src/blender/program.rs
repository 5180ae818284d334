//! Finds Blender: what `UNDERSTUDY_BLENDER` names, a `blender` program on the path, or the `bpy` wheel in an environment
//! of our own, which [`install`] makes. Keeps our Python program where Blender can read it.

use crate::{Event, JobError, Watch};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use understudy_io::dataset::content_hash;
use understudy_io::write_atomic;

/// Names a Blender program, or a Python that has `bpy`.
const VARIABLE: &str = "UNDERSTUDY_BLENDER";
/// Names the folder for what can be made again.
const CACHE_VARIABLE: &str = "UNDERSTUDY_CACHE";
/// The wheel that is installed, and what it needs.
const WHEELS: [&str; 2] = ["bpy==5.0.1", "numpy<2"];
/// Of which Python there is such a wheel.
const PYTHON: &str = "3.11";
/// Megabytes of the environment with the wheels that it is made from, for the progress.
const MEGABYTES: u64 = 1330;

/// Our Python program, file by file.
const SOURCES: [(&str, &str); 8] = [
    ("main.py", include_str!("python/main.py")),
    ("serve.py", include_str!("python/serve.py")),
    ("stage.py", include_str!("python/stage.py")),
    ("controls.py", include_str!("python/controls.py")),
    ("inputs.py", include_str!("python/inputs.py")),
    ("clips.py", include_str!("python/clips.py")),
    ("tree.py", include_str!("python/tree.py")),
    ("survey.py", include_str!("python/survey.py")),
];

/// Something that runs Python inside Blender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A Blender program.
    Blender(PathBuf),
    /// A Python whose `bpy` is Blender.
    Python(PathBuf),
}

impl Program {
    /// The one to use; an error says how to get one.
    pub fn find(install_it: bool, watch: &dyn Watch) -> Result<Self, JobError> {
        if let Some(named) = std::env::var_os(VARIABLE) {
            let path = PathBuf::from(named);
            let python = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
            return match path.is_file() {
                true if python => Ok(Self::Python(path)),
                true => Ok(Self::Blender(path)),
                false => Err(JobError::setting(VARIABLE, format!("there is no {}", path.display()))),
            };
        }
        if let Some(path) = on_path("blender") {
            return Ok(Self::Blender(path));
        }
        let folder = environment()?;
        if folder.join(WHOLE).is_file() {
            return Ok(Self::Python(python_of(&folder)));
        }
        if install_it {
            install(&folder, watch)?;
            return Ok(Self::Python(python_of(&folder)));
        }
        Err(JobError::setting(
            "Blender",
            format!(
                "there is no 'blender' on the path: install Blender, name it in {VARIABLE}, or give --install-blender \
                 once (Python {PYTHON}, 1 GB into {})",
                folder.display()
            ),
        ))
    }

    /// A command line that runs our program with these words.
    pub(super) fn words(&self, words: &[&str]) -> Result<Vec<String>, JobError> {
        let main = sources()?.join("main.py");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut line: Vec<String> = match self {
            Self::Python(python) => vec![text(python), text(&main)],
            // Blender prints to standard output before any script runs: the protocol has descriptor 3.
            Self::Blender(blender) => {
                let script = "exec 3>&1 1>&2; UNDERSTUDY_PIPE=3 exec \"$0\" \"$@\"";
                let start = ["sh", "-c", script].map(String::from);
                let options = ["--background", "--factory-startup", "--python-exit-code", "3", "--python"];
                let start = start.into_iter().chain([text(blender)]).chain(options.map(String::from));
                start.chain([text(&main), "--".into()]).collect()
            }
        };
        line.extend(words.iter().map(|word| (*word).to_owned()));
        Ok(line)
    }

    /// What distinguishes it from another, for caches.
    pub(super) fn identity(&self) -> String {
        let (Self::Blender(path) | Self::Python(path)) = self;
        path.display().to_string()
    }
}

/// A folder for what can be made again: surveys, the wheel, our Python program.
pub(super) fn cache_folder() -> Result<PathBuf, JobError> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || named("HOME").or_else(|| named("USERPROFILE")).map(|home| home.join(".cache"));
    let above = named("XDG_CACHE_HOME").or_else(|| named("LOCALAPPDATA")).or_else(home);
    let found = named(CACHE_VARIABLE).or_else(|| above.map(|folder| folder.join("understudy")));
    found.ok_or_else(|| JobError::setting(CACHE_VARIABLE, "name a folder: this system has no home folder"))
}

/// Our program as files, in a folder of its own for every version of it.
fn sources() -> Result<PathBuf, JobError> {
    let folder = cache_folder()?.join("blender").join(&sources_hash()[..16]);
    for (name, text) in SOURCES {
        let path = folder.join(name);
        if std::fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes()) {
            continue;
        }
        write_atomic(&path, text.as_bytes())?;
    }
    Ok(folder)
}

/// A hash of our program.
pub(super) fn sources_hash() -> String {
    content_hash(SOURCES.iter().map(|(_, text)| text.as_bytes()))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).map(|folder| folder.join(&file)).find(|file| file.is_file())
}

/// Beside a whole environment.
const WHOLE: &str = "whole";

/// Where the wheel is installed.
fn environment() -> Result<PathBuf, JobError> {
    Ok(cache_folder()?.join(WHEELS[0].replace("==", "-")))
}

fn python_of(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts/python.exe") } else { folder.join("bin/python") }
}

/// Makes an environment with the `bpy` wheel in the user's cache folder; from then on no network is needed. An
/// interrupted installation is begun anew.
pub fn install(folder: &Path, watch: &dyn Watch) -> Result<(), JobError> {
    let python = [format!("python{PYTHON}"), "python3".into(), "python".into()];
    let python = python.iter().find(|name| is_wanted(name)).ok_or_else(|| {
        JobError::setting("install-blender", format!("Python {PYTHON} is needed, and none is on the path"))
    })?;
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| JobError::unusable(folder, error))?;
    }
    let what = format!("installing {}", WHEELS[0]);
    watch.event(Event::Started { what: &what, total: MEGABYTES, unit: "MB" });
    run(Command::new(python).arg("-m").arg("venv").arg(folder), folder, watch)?;
    // pip loads the wheel into a temporary folder: inside ours its growth is seen.
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary).map_err(|error| JobError::unusable(&temporary, error))?;
    let mut pip = Command::new(python_of(folder));
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]);
    run(pip.args(WHEELS).env("TMPDIR", &temporary), folder, watch)?;
    run(Command::new(python_of(folder)).args(["-c", "import bpy"]), folder, watch)?;
    let _ = std::fs::remove_dir_all(&temporary);
    write_atomic(&folder.join(WHOLE), WHEELS.join("\n").as_bytes())?;
    watch.event(Event::Step { done: MEGABYTES });
    watch.event(Event::Finished);
    Ok(())
}

fn is_wanted(python: &str) -> bool {
    let script = "import sys; print('%d.%d' % sys.version_info[:2])";
    let answer = Command::new(python).args(["-c", script]).stderr(Stdio::null()).output();
    answer.is_ok_and(|answer| answer.status.success() && answer.stdout.trim_ascii() == PYTHON.as_bytes())
}

/// Runs a step of the installation to its end and shows how the folder grows.
fn run(command: &mut Command, folder: &Path, watch: &dyn Watch) -> Result<(), JobError> {
    let failed = |problem: String| JobError::Machine(format!("{}: {problem}", folder.display()));
    let log = std::env::temp_dir().join(format!("understudy-install-{}.log", std::process::id()));
    let file = std::fs::File::create(&log).map_err(|error| failed(error.to_string()))?;
    let copy = file.try_clone().map_err(|error| failed(error.to_string()))?;
    let child = command.stdin(Stdio::null()).stdout(file).stderr(copy).spawn();
    let mut child = child.map_err(|error| failed(error.to_string()))?;
    let status = loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) => break status,
            None if watch.should_stop() => {
                let _ = child.kill();
                let _ = child.wait();
                let _ = std::fs::remove_file(&log);
                return Err(JobError::Stopped);
            }
            None => std::thread::sleep(Duration::from_millis(500)),
        }
        watch.event(Event::Step { done: (bytes_of(folder) / 1_000_000).min(MEGABYTES) });
    };
    let said = std::fs::read(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    let errors = said.lines().rev().filter(|line| !line.trim().is_empty());
    let line = errors.clone().find(|line| line.contains("ERROR") || line.contains("Error"));
    let line = line.or(errors.clone().next()).unwrap_or("no message");
    Err(failed(format!("the installation failed ({status}): {}", line.trim())))
}

/// Bytes of all files below a folder.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_of(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |data| data.len()),
        _ => 0,
    };
    entries.map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blender_program_has_the_protocol_on_a_descriptor_of_its_own() {
        let python = Program::Python("/x/python".into()).words(&["serve", "s.json"]).expect("a cache folder");
        assert_eq!((python[0].as_str(), python.len()), ("/x/python", 4));
        assert!(Path::new(&python[1]).is_file(), "our program is on disk");
        let blender = Program::Blender("/x/blender".into()).words(&["serve", "s.json"]).expect("words");
        assert_eq!(blender[..2], ["sh".to_owned(), "-c".to_owned()]);
        assert!(blender[2].contains("3>&1") && blender.contains(&"--factory-startup".to_owned()));
        assert_eq!(blender[blender.len() - 3..], ["--", "serve", "s.json"].map(String::from));
    }

    #[test]
    fn all_of_our_program_is_kept() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/blender/python");
        let files = std::fs::read_dir(folder).expect("readable").flatten();
        let mut files: Vec<String> =
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        files.retain(|name| name.ends_with(".py"));
        files.sort();
        let mut kept: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        kept.sort_unstable();
        assert_eq!(files, kept);
    }
}
