//! `motion play`: a script in, frames of controls out.

use super::open;
use crate::outputs::check_file;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use understudy_io::live_link::{WeightTable, write_weights};
use understudy_motion::script::parse;
use understudy_motion::{Synthesis, SynthesisConfig};

/// What to play.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlayMotionConfig {
    /// The file of motion.
    pub motion: PathBuf,
    /// The script's file.
    pub script: PathBuf,
    /// The table of weights, `.csv`.
    pub output: PathBuf,
    /// The label to begin in; the first where none is named.
    pub label: Option<String>,
    /// Forces and seed.
    pub synthesis: SynthesisConfig,
}

/// Most frames of one run.
const MOST: usize = 1_000_000;
/// A script longer than this is none, bytes.
const MAX_SCRIPT: u64 = 1 << 22;

/// What was played.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlayMotionReport {
    /// The table.
    pub output: PathBuf,
    /// Whose controls.
    pub rig: String,
    /// Frames.
    pub frames: usize,
    /// Per second.
    pub rate: f32,
    /// When which label was on, from which frame.
    pub labels: Vec<(usize, String)>,
    /// The largest distance of the particle to its path, in radii.
    pub largest_distance: f64,
    /// Frames that one core makes in a second.
    pub frames_per_second: f64,
}

/// TEMPORARY.
pub(super) fn check_take(output: &std::path::Path) -> Result<(), JobError> {
    if !output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        return Err(JobError::unusable(output, "frames are written as .csv"));
    }
    Ok(())
}

/// TEMPORARY.
pub(super) fn write_take(
    output: &std::path::Path,
    motion: &understudy_runtime::motion::Motion,
    frames: Vec<Vec<f32>>,
    _watch: &dyn Watch,
) -> Result<(), JobError> {
    let names = motion.controls().iter().map(|spec| spec.name.clone()).collect();
    Ok(write_weights(output, &WeightTable { names, frames, rate: Some(motion.rate()) })?)
}

/// Plays a script and writes the controls frame by frame.
pub fn play(config: &PlayMotionConfig, watch: &dyn Watch) -> Result<PlayMotionReport, JobError> {
    if !config.output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        let problem =
            "frames are written as .csv, which `--clip` plays: render it, or convert the rig to .glb with it";
        return Err(JobError::unusable(&config.output, problem));
    }
    check_file(&config.output, &[&config.motion, &config.script])?;
    let file = open(&config.motion)?;
    let failed = |error: std::io::Error| JobError::unusable(&config.script, error);
    if std::fs::metadata(&config.script).map_err(failed)?.len() > MAX_SCRIPT {
        return Err(JobError::unusable(&config.script, "is too long for a script"));
    }
    let text = std::fs::read_to_string(&config.script).map_err(failed)?;
    let lines = parse(&text).map_err(|error| JobError::unusable(&config.script, error))?;
    let label = config.label.as_deref();
    let mut synthesis =
        Synthesis::new(&file, label, config.synthesis).map_err(|error| JobError::setting("label", error))?;
    watch.event(Event::Started { what: "playing", total: lines.len() as u64, unit: "commands" });
    let started = Instant::now();
    let mut frames = Vec::new();
    let mut labels: Vec<(usize, String)> = vec![(0, synthesis.label().to_owned())];
    let mut largest_distance = 0.0f64;
    for (done, line) in lines.iter().enumerate() {
        let place = |error| JobError::unusable(&config.script, format!("line {}: {error}", line.line));
        synthesis.command(line.command.clone()).map_err(place)?;
        while synthesis.is_busy() {
            if frames.len() >= MOST {
                let problem = format!("line {}: the script makes more than {MOST} frames", line.line);
                return Err(JobError::unusable(&config.script, problem));
            }
            frames.push(synthesis.next_frame().map_err(place)?);
            largest_distance = largest_distance.max(synthesis.strain().0);
            if labels.last().is_none_or(|(_, label)| label != synthesis.label()) {
                labels.push((frames.len() - 1, synthesis.label().to_owned()));
            }
        }
        watch.event(Event::Step { done: done as u64 + 1 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    if frames.is_empty() {
        return Err(JobError::unusable(&config.script, "has no commands"));
    }
    let frames_per_second = frames.len() as f64 / started.elapsed().as_secs_f64().max(1e-9);
    watch.event(Event::Finished);
    let count = frames.len();
    let table = WeightTable { names: file.controls.clone(), frames, rate: Some(file.rate) };
    write_weights(&config.output, &table)?;
    Ok(PlayMotionReport {
        output: config.output.clone(),
        rig: file.rig,
        frames: count,
        rate: file.rate,
        labels,
        largest_distance,
        frames_per_second,
    })
}
