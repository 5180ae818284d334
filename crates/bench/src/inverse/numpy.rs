//! The same algorithm in NumPy, in a process of its own, asked for one frame at a time, so that both run alternately in
//! one run.

use crate::environment::Script;
use serde::Deserialize;
use std::path::Path;
use understudy_core::{BlendshapeRig, SparseDeltas, Vec3};
use understudy_io::npz::NpzWriter;
use understudy_jobs::{JobError, Watch};

const SCRIPT: &str = include_str!("../python/inverse.py");

/// A running interpreter.
pub(super) struct NumPy(Script);

/// What it answers.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Answer {
    pub seconds: f64,
    pub weights: Vec<f64>,
}

impl NumPy {
    /// Writes the problem and starts the interpreter.
    pub(super) fn start(
        folder: &Path,
        rig: &BlendshapeRig,
        targets: &[Vec<Vec3>],
        alpha: f64,
        passes: usize,
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let problem = folder.join("rig.npz");
        write_problem(&problem, rig, targets, alpha, passes)?;
        let mut script = Script::start(folder, "inverse.py", SCRIPT, &problem, watch)?;
        match script.line()?.as_str() {
            "ready" => Ok(Self(script)),
            other => Err(JobError::Machine(format!("inverse.py did not start: {other}"))),
        }
    }

    /// Solves one frame in a form: `direct`, `residual` or `gram`.
    pub(super) fn ask(&mut self, form: &str, frame: usize) -> Result<Answer, JobError> {
        let answer = self.0.ask(&format!("{form} {frame}"))?;
        serde_json::from_value(answer).map_err(|error| JobError::Machine(format!("inverse.py: {error}")))
    }
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
