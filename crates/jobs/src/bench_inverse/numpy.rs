//! The same algorithm in NumPy, in a process of its own: the benchmark makes a virtual environment once and
//! asks it for one frame at a time, so that both run alternately in one run.

use crate::JobError;
use serde::Deserialize;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use understudy_core::{BlendshapeRig, SparseDeltas, Vec3};
use understudy_io::npz::NpzWriter;

const SCRIPT: &str = include_str!("direct.py");

/// A running interpreter.
pub(super) struct NumPy {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What it answers.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Answer {
    pub seconds: f64,
    pub weights: Vec<f64>,
}

impl NumPy {
    /// Makes the environment where it is missing, writes the problem and starts the interpreter.
    pub(super) fn start(
        folder: &Path,
        rig: &BlendshapeRig,
        targets: &[Vec<Vec3>],
        alpha: f64,
        passes: usize,
    ) -> Result<Self, JobError> {
        let python = environment(folder)?;
        let problem = folder.join("rig.npz");
        write_problem(&problem, rig, targets, alpha, passes)?;
        let script = folder.join("direct.py");
        understudy_io::write_atomic(&script, SCRIPT.as_bytes())?;
        let mut child = Command::new(&python)
            .arg(&script)
            .arg(&problem)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| machine(&python, error))?;
        let input = child.stdin.take().expect("piped above");
        let mut output = BufReader::new(child.stdout.take().expect("piped above"));
        let mut line = String::new();
        output.read_line(&mut line).map_err(|error| machine(&python, error))?;
        if line.trim() != "ready" {
            return Err(machine(&script, "did not start"));
        }
        Ok(Self { child, input, output })
    }

    /// Solves one frame in a form: `direct` or `residual`.
    pub(super) fn ask(&mut self, form: &str, frame: usize) -> Result<Answer, JobError> {
        let script = Path::new("direct.py");
        writeln!(self.input, "{form} {frame}").map_err(|error| machine(script, error))?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| machine(script, error))?;
        serde_json::from_str(&line).map_err(|error| machine(script, error))
    }
}

impl Drop for NumPy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter of a virtual environment with NumPy.
fn environment(folder: &Path) -> Result<PathBuf, JobError> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let works = || {
        let check = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
        check.is_ok_and(|status| status.success())
    };
    if works() {
        return Ok(python);
    }
    std::fs::create_dir_all(folder).map_err(|error| machine(folder, error))?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "numpy"]))?;
    if works() { Ok(python) } else { Err(machine(&python, "NumPy cannot be imported")) }
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

fn write_problem(
    path: &Path,
    rig: &BlendshapeRig,
    targets: &[Vec<Vec3>],
    alpha: f64,
    passes: usize,
) -> Result<(), JobError> {
    let n = rig.neutral().len();
    let mut terms: Vec<f32> = Vec::new();
    let mut factors: Vec<i32> = Vec::new();
    let mut add = |deltas: &SparseDeltas, shapes: &[u32]| {
        terms.extend(deltas.to_dense(n).iter().flat_map(|d| d.to_array()));
        factors.extend((0..4).map(|place| shapes.get(place).map_or(-1, |shape| *shape as i32)));
    };
    for (index, shape) in rig.shapes().iter().enumerate() {
        add(&shape.deltas, &[index as u32]);
    }
    for corrective in rig.correctives() {
        add(&corrective.deltas, &corrective.shapes);
    }
    let count = factors.len() / 4;
    let offset = |(to, from): (&Vec3, &Vec3)| (*to - *from).to_array();
    let wanted: Vec<f32> =
        targets.iter().flat_map(|t| t.iter().zip(rig.neutral()).flat_map(offset)).collect();
    let mut npz = NpzWriter::new();
    npz.f32("terms", &[count, 3 * n], &terms);
    npz.i32("factors", &[count, 4], &factors);
    npz.f32("targets", &[targets.len(), 3 * n], &wanted);
    npz.i32("shapes", &[], &[rig.shapes().len() as i32]);
    npz.f32("alpha", &[], &[alpha as f32]);
    npz.i32("passes", &[], &[passes as i32]);
    Ok(npz.write(path)?)
}

fn machine(path: &Path, error: impl ToString) -> JobError {
    JobError::Machine(format!("{}: {}", path.display(), error.to_string()))
}
