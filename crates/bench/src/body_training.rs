//! The race of training: steps a second of the same networks, ours on all threads against PyTorch in as
//! many processes of one thread each, in turn. Start at [`race`].

use crate::environment::python;
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use understudy_core::Random;
use understudy_io::write_atomic;
use understudy_jobs::twin::bench::median;
use understudy_jobs::{Event, JobError, Watch, threads};
use understudy_learn::dense::Net;
use understudy_learn::dense::train::{TrainSettings, train};
use understudy_runtime::body::BodyTwin;

const SCRIPT: &str = include_str!("python/body_training.py");
/// Poses in memory, and passes over them: 16 × 4 steps a network and round.
const ROWS: usize = 2048;
const EPOCHS: usize = 4;

/// Who trains faster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingRace {
    /// Steps a second, one network and batch a step, median over the rounds.
    pub understudy_steps_s: f64,
    /// The same in PyTorch, the faster of two ways: processes of one thread, one process of several.
    pub torch_steps_s: f64,
    /// Poses a step.
    pub batch: usize,
    /// Threads of each.
    pub threads: usize,
    /// Networks, with the sizes of the twin's.
    pub networks: usize,
}

/// Sizes of the twin's networks without their frozen last layers.
fn sizes(twin: &BodyTwin) -> Vec<[usize; 4]> {
    let hidden = |group: &understudy_runtime::body::GroupParts| match &group.layers[..] {
        [first, second, third, _frozen] => {
            Some([group.inputs.len(), first.bias.len(), second.bias.len(), third.bias.len()])
        }
        _ => None,
    };
    twin.parts().groups.iter().filter_map(hidden).collect()
}

/// Races `rounds` times on both cores.
pub(crate) fn race(
    twin: &BodyTwin,
    folder: &Path,
    rounds: usize,
    watch: &dyn Watch,
) -> Result<TrainingRace, JobError> {
    let (sizes, threads) = (sizes(twin), threads::available());
    let python = python(folder, watch)?;
    let script = folder.join("body_training.py");
    write_atomic(&script, SCRIPT.as_bytes())?;
    let settings = TrainSettings { epochs: EPOCHS, validation: 0.0, ..TrainSettings::default() };
    let mut random = Random::new(7);
    let data: Vec<(Vec<f32>, Vec<f32>)> = sizes
        .iter()
        .map(|[inputs, .., outputs]| {
            let mut draw = |count: usize| (0..count).map(|_| random.normal() as f32).collect::<Vec<f32>>();
            (draw(ROWS * inputs), draw(ROWS * outputs))
        })
        .collect();
    let pool = threads::pool(threads)?;
    let ours = || {
        let start = Instant::now();
        let steps: usize = pool.install(|| {
            let one = |(size, (x, y)): (&[usize; 4], &(Vec<f32>, Vec<f32>))| {
                let mut net = Net::new(size, &mut Random::new(1));
                train(&mut net, x, y, &[0], &settings, |_, _| true).steps
            };
            sizes.par_iter().zip(&data).map(one).sum()
        });
        steps as f64 / start.elapsed().as_secs_f64()
    };
    let text = serde_json::json!({
        "sizes": sizes, "rows": ROWS, "epochs": EPOCHS, "batch": settings.batch, "threads": threads,
    });
    write_atomic(&folder.join("race.json"), text.to_string().as_bytes())?;
    let theirs = || -> Result<f64, JobError> {
        let output = Command::new(&python).arg(&script).arg(folder).output();
        let output = output.map_err(|error| JobError::Machine(format!("PyTorch does not start: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| {
            JobError::Machine(format!("PyTorch: {text} {}", String::from_utf8_lossy(&output.stderr)))
        })
    };
    watch.event(Event::Started { what: "racing in training", total: rounds as u64, unit: "rounds" });
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        own.push(ours());
        other.push(theirs()?);
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    Ok(TrainingRace {
        understudy_steps_s: median(own),
        torch_steps_s: median(other),
        batch: settings.batch,
        threads,
        networks: sizes.len(),
    })
}
