//! The peers' Python: one virtual environment with pinned versions, made once, and processes in it that answer one
//! JSON line with another.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use understudy_io::write_atomic;
use understudy_jobs::{Event, JobError, Watch};

/// What is installed, to the version.
const REQUIREMENTS: &str = include_str!("python/requirements.txt");

/// The interpreter of the environment in that folder, which is made where it is missing or has other versions.
pub fn python(folder: &Path, watch: &dyn Watch) -> Result<PathBuf, JobError> {
    python_with(REQUIREMENTS, folder, watch)
}

/// [`python`] with other packages: some peers need older ones than the rest.
fn python_with(requirements: &str, folder: &Path, watch: &dyn Watch) -> Result<PathBuf, JobError> {
    let home = folder.join("venv");
    let python = home.join("bin/python");
    let ready = folder.join("venv.ready");
    if python.exists() && std::fs::read_to_string(&ready).is_ok_and(|text| text == requirements) {
        return Ok(python);
    }
    let wanted = requirements.split_whitespace().collect::<Vec<_>>().join(", ");
    watch.event(Event::Note { message: &format!("making a Python environment once: {wanted}") });
    let list = folder.join("requirements.txt");
    write_atomic(&list, requirements.as_bytes())?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r"]).arg(&list))?;
    write_atomic(&ready, requirements.as_bytes())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), JobError> {
    let name = format!("{command:?}");
    let output = command.output().map_err(|error| JobError::Machine(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(JobError::Machine(format!("{name}: {}", said.lines().last().unwrap_or("failed"))))
}

/// Of races with libigl alone: nothing else is worth waiting for.
pub const LIBIGL: &str = include_str!("python/libigl-requirements.txt");

/// A running script.
pub struct Script {
    name: String,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Script {
    /// Writes a script into the folder of the environment and starts it with one argument.
    pub fn start(
        folder: &Path,
        name: &str,
        text: &str,
        argument: &Path,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        Self::start_with(REQUIREMENTS, folder, name, text, argument, watch)
    }

    /// [`Self::start`] in an environment with other packages.
    pub fn start_with(
        requirements: &str,
        folder: &Path,
        name: &str,
        text: &str,
        argument: &Path,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let python = python_with(requirements, folder, watch)?;
        let path = folder.join(name);
        write_atomic(&path, text.as_bytes())?;
        let mut child = Command::new(python)
            .arg(&path)
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| JobError::Machine(format!("{name} does not start: {error}")))?;
        let requests = child.stdin.take().expect("standard input is piped");
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Ok(Self { name: name.into(), child, requests, answers })
    }

    /// The next line.
    pub fn line(&mut self) -> Result<String, JobError> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) | Err(_) => {
                Err(JobError::Machine(format!("{} ended early; see its message above", self.name)))
            }
            Ok(_) => Ok(line.trim().to_owned()),
        }
    }

    /// One request, one answer.
    pub fn ask(&mut self, request: &str) -> Result<serde_json::Value, JobError> {
        let failed = |name: &str, error: String| JobError::Machine(format!("{name}: {error}"));
        let sent = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        sent.map_err(|error| failed(&self.name, error.to_string()))?;
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| failed(&self.name, error.to_string()))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
