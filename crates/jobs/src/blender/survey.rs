//! What is known of a Blender file before anything is sampled, found by our Python program inside Blender and kept in
//! the user's cache folder until the file, the options or the program change. Start at [`Survey::make`].

use super::BlenderOptions;
use super::controls_file::ControlsFile;
use super::program::{Program, cache_folder, sources_hash};
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, UNIX_EPOCH};
use understudy_io::dataset::content_hash;
use understudy_io::{read_bytes, write_atomic};

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlenderFacts {
    /// The version of Blender.
    pub blender: String,
    /// Every mesh of the file that is no custom shape.
    pub objects: Vec<ObjectFacts>,
    /// Controls that poses vary.
    pub controls: Vec<SurveyedControl>,
    /// Channels that could be controls and are held at rest.
    pub held: Vec<HeldFacts>,
    /// Channels that were moved and moved nothing.
    pub moves_nothing: Vec<String>,
    /// Custom properties that choose a mechanism: held as they are, or as `--set` says.
    pub switches: Vec<SwitchFacts>,
    /// Numbers of inputs recorded by kind: bone, segment, object, shape, value.
    pub inputs: BTreeMap<String, usize>,
    /// Bones of all armatures that the meshes depend on.
    pub bones: usize,
    /// Constraints of these bones.
    pub constraints: usize,
    /// Drivers.
    pub drivers: usize,
    /// Drivers that call Python and are dead.
    pub dead_drivers: usize,
    /// The control that moves the whole figure.
    pub root: String,
    /// Vertices that do not follow it.
    pub stray: Vec<StrayFacts>,
    /// Milliseconds per pose in Blender, over random poses.
    pub pose_ms: f64,
    /// Seconds to open the file.
    pub open_seconds: f64,
    /// By how much the same pose differs when it comes again, mm.
    pub repeat_mm: f64,
    /// Files that the file links to.
    pub libraries: Vec<String>,
}

/// About a mesh object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFacts {
    /// Its name.
    pub name: String,
    /// Vertices of its base mesh.
    pub vertices: usize,
    /// Whether it is recorded.
    pub recorded: bool,
    /// Why it is not.
    pub why: String,
    /// Its modifiers: name and type.
    pub modifiers: Vec<String>,
}

/// A control with its range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyedControl {
    /// Its name.
    pub name: String,
    /// Lower end.
    pub low: f32,
    /// Upper end.
    pub high: f32,
    /// At rest.
    pub default: f32,
    /// Where the range comes from: `limit`, `action`, `kind`, `property`, `slider`, `file`.
    pub from: String,
    /// Vertices that it moves.
    pub moved_vertices: usize,
}

/// A channel that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFacts {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchFacts {
    /// As `--set` takes it: `bone["property"]`.
    pub name: String,
    /// Its value.
    pub value: f32,
    /// Lower end of its range.
    pub low: f32,
    /// Upper end of its range.
    pub high: f32,
}

/// Vertices of an object that stay behind when the whole figure moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrayFacts {
    /// The object.
    pub object: String,
    /// How many.
    pub count: usize,
    /// The first of them.
    pub vertices: Vec<usize>,
}

/// What our Python program is asked.
#[derive(Serialize)]
struct Request<'a> {
    file: &'a Path,
    objects: &'a [String],
    controls: &'a [String],
    set: &'a [String],
    trust_scripts: bool,
    keep_subdivision: bool,
    edits: serde_json::Value,
}

/// The part of its answer that is read here; workers read all of it.
#[derive(Deserialize)]
struct Found {
    report: BlenderFacts,
}

/// A surveyed file.
pub struct Survey {
    /// The Blender file.
    pub file: PathBuf,
    /// What was found.
    pub facts: BlenderFacts,
    /// All of it as JSON, for workers.
    pub(super) path: PathBuf,
    pub(super) program: Program,
}

impl Survey {
    /// Surveys a file, or finds an earlier survey of it.
    pub(super) fn make(
        file: &Path,
        options: &BlenderOptions,
        edits: Option<&ControlsFile>,
        program: Program,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let file = file.canonicalize().map_err(|error| JobError::unusable(file, error))?;
        let machine = |error: serde_json::Error| JobError::Machine(error.to_string());
        let request = Request {
            file: &file,
            objects: &options.objects,
            controls: &options.controls,
            set: &options.set,
            trust_scripts: options.trust_scripts,
            keep_subdivision: options.keep_subdivision,
            edits: serde_json::to_value(edits.map(ControlsFile::edits).unwrap_or_default())
                .map_err(machine)?,
        };
        let request = serde_json::to_vec(&request).map_err(machine)?;
        let content = read_bytes(&file)?;
        let maker = format!("{} {}", sources_hash(), program.identity());
        let key = &content_hash([&request[..], b"\0", maker.as_bytes(), b"\0", &content])[..24];
        let folder = cache_folder()?.join("surveys");
        let path = folder.join(format!("{key}.json"));
        if let Some(facts) = read(&path).ok().filter(|facts| is_older(&facts.libraries, &path)) {
            return Ok(Self { file, facts, path, program });
        }
        let asked = folder.join(format!("{key}.request.json"));
        write_atomic(&asked, &request)?;
        let new = folder.join(format!("{key}.{}.new", std::process::id()));
        let words = program.words(&["survey", &asked.to_string_lossy(), &new.to_string_lossy()])?;
        let result = run(&words, &file, watch).and_then(|()| read(&new));
        let _ = std::fs::remove_file(&asked);
        if result.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        let facts = result?;
        std::fs::rename(&new, &path).map_err(|error| JobError::unusable(&path, error))?;
        Ok(Self { file, facts, path, program })
    }

    /// The survey of a file's last recording, while the file is the same.
    pub(super) fn as_sampled(file: &Path) -> Option<PathBuf> {
        sampled_path(file).ok().filter(|path| path.is_file())
    }

    /// A survey that a dataset kept, of a file that may lie elsewhere by now. What a dataset says of trust counts for
    /// nothing: this user must have given it.
    pub(super) fn read(survey: &Path, file: &Path, program: Program) -> Result<Self, JobError> {
        let bad = |error: serde_json::Error| JobError::unusable(survey, error);
        let file = file.canonicalize().map_err(|error| JobError::unusable(file, error))?;
        let bytes = read_bytes(survey)?;
        let mut all: serde_json::Value = serde_json::from_slice(&bytes).map_err(bad)?;
        let facts = serde_json::from_value(all["report"].clone()).map_err(bad)?;
        if !all["request"].is_object() {
            return Err(JobError::unusable(survey, "is no survey of a Blender file"));
        }
        all["request"]["file"] = serde_json::json!(file);
        all["request"]["trust_scripts"] = Trust::of(&file)?.is_given().into();
        let bytes = serde_json::to_vec(&all).map_err(bad)?;
        let key = &content_hash([bytes.as_slice()])[..24];
        let path = cache_folder()?.join("surveys").join(format!("{key}.json"));
        write_atomic(&path, &bytes)?;
        Ok(Self { file, facts, path, program })
    }
}

/// Keeps a survey as that of the file's last recording. A cache that cannot be written is no mistake.
pub(super) fn note_sampled(file: &Path, survey: &[u8]) {
    if let Ok(path) = sampled_path(file) {
        let _ = write_atomic(&path, survey);
    }
}

fn sampled_path(file: &Path) -> Result<PathBuf, JobError> {
    let hash = content_hash([read_bytes(file)?.as_slice()]);
    Ok(cache_folder()?.join("sampled").join(format!("{}.json", &hash[..24])))
}

fn read(path: &Path) -> Result<BlenderFacts, JobError> {
    let found: Found =
        serde_json::from_slice(&read_bytes(path)?).map_err(|error| JobError::unusable(path, error))?;
    Ok(found.report)
}

/// Whether linked files are older than a survey.
fn is_older(files: &[String], survey: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).unwrap_or(UNIX_EPOCH);
    let own = time(survey);
    files.iter().all(|file| time(Path::new(file)) <= own)
}

/// Runs our program to its end; its lines become events.
fn run(words: &[String], file: &Path, watch: &dyn Watch) -> Result<(), JobError> {
    let unusable = |problem: String| JobError::unusable(file, problem);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| unusable(format!("{}: {error}", words[0])))?;
    let (lines, heard) = channel();
    if let Some(errors) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(errors);
            let mut line = Vec::new();
            while reader.by_ref().take(1 << 16).read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if lines.send(text).is_err() {
                    return;
                }
            }
        });
    }
    let mut listener = Listener { file, watch, phase: String::new(), error: None, last: String::new() };
    loop {
        match heard.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => listener.hear(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if watch.should_stop() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(JobError::Stopped);
        }
    }
    let status = child.wait().map_err(|error| unusable(error.to_string()))?;
    listener.finish();
    match (status.success(), listener.error) {
        (true, None) => Ok(()),
        (_, Some(error)) => Err(unusable(error)),
        (false, None) => {
            Err(unusable(format!("Blender ended ({status}); its last words: {}", listener.last)))
        }
    }
}

/// Turns lines of a survey into events.
struct Listener<'a> {
    file: &'a Path,
    watch: &'a dyn Watch,
    phase: String,
    error: Option<String>,
    last: String,
}

impl Listener<'_> {
    fn hear(&mut self, line: String) {
        let Some((kind, text)) = line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) else {
            if !line.is_empty() {
                self.last = line;
            }
            return;
        };
        match kind {
            "progress" => self.progress(text),
            "error" => self.error = Some(text.to_owned()),
            // Warnings are part of the description, and told when the rig is opened.
            _ => {}
        }
    }

    /// `DONE TOTAL PHASE`.
    fn progress(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        let (Some(done), Some(total), Some(phase)) =
            (number(words.next()), number(words.next()), words.next())
        else {
            return;
        };
        if phase != self.phase {
            self.finish();
            phase.clone_into(&mut self.phase);
            let what = format!("looking at {}: {phase}", self.file.display());
            self.watch.event(Event::Started { what: &what, total, unit: "steps" });
        }
        self.watch.event(Event::Step { done: done + 1 });
    }

    fn finish(&self) {
        if !self.phase.is_empty() {
            self.watch.event(Event::Finished);
        }
    }
}

/// Where a user has allowed the Python of a file to run: for this content, on this machine.
pub(super) struct Trust(PathBuf);

impl Trust {
    pub fn of(file: &Path) -> Result<Self, JobError> {
        let hash = content_hash([read_bytes(file)?.as_slice()]);
        Ok(Self(cache_folder()?.join("trusted").join(hash)))
    }

    pub fn is_given(&self) -> bool {
        self.0.is_file()
    }

    /// A cache that cannot be written is no mistake: the user says it again.
    pub fn remember(&self) {
        let _ = write_atomic(&self.0, b"");
    }
}

/// The survey that lies in a dataset's folder.
pub fn survey_beside(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(crate::outputs::BLENDER_SURVEY)).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Watch for Heard {
        fn event(&self, event: Event<'_>) {
            self.0.lock().expect("no listener panicked").push(format!("{event:?}"));
        }
    }

    #[test]
    fn lines_become_events_and_errors() {
        let heard = Heard::default();
        let script = "echo '@progress 0 2 channels' >&2; echo '@progress 1 2 channels' >&2; echo Blender 5 >&2; \
                      echo '@progress x' >&2";
        let words = |script: &str| ["sh", "-c", script].map(String::from).to_vec();
        let file = Path::new("hero.blend");
        run(&words(script), file, &heard).expect("it ends well");
        let events = heard.0.lock().expect("no listener panicked").clone();
        assert_eq!(events.len(), 4, "{events:?}");
        assert!(events[0].contains("hero.blend: channels") && events[0].contains("total: 2"), "{events:?}");
        assert!(events[2].contains("done: 2") && events[3] == "Finished", "{events:?}");
        let fails = run(&words("echo '@error no mesh is moved' >&2; exit 3"), file, &heard);
        assert_eq!(fails.expect_err("it says so").to_string(), "hero.blend: no mesh is moved");
        let crash = run(&words("echo Segmentation fault >&2; exit 139"), file, &heard);
        let crash = crash.expect_err("it crashed").to_string();
        assert!(crash.contains("139") && crash.contains("Segmentation fault"), "{crash}");
        assert!(
            run(&words("exec sleep 60"), file, &Stops).is_err_and(|error| matches!(error, JobError::Stopped))
        );
    }

    struct Stops;

    impl Watch for Stops {
        fn event(&self, _: Event<'_>) {}

        fn should_stop(&self) -> bool {
            true
        }
    }
}
