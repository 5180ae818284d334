//! `motion play`: a script in, frames of controls out, as a table, a model with its animation, or a film.

use super::film::{Film, Take};
use super::open;
use crate::outputs::check_file;
use crate::{Event, JobError, Watch, rigs};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_io::live_link::{WeightTable, write_weights};
use understudy_runtime::motion::{Command, Motion, MotionPlayer, PlayConfig, parse_script};

/// What to play.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlayMotionConfig {
    /// The file of motion.
    pub motion: PathBuf,
    /// The script's file.
    pub script: PathBuf,
    /// The take: `.csv`, `.glb`, `.gif` or `.mp4`.
    pub output: PathBuf,
    /// The label to begin in; the first where none is named.
    pub label: Option<String>,
    /// The rig for anything but `.csv`, where it is not at the place where it was learned.
    pub rig: Option<String>,
    /// From where a film looks at it.
    pub view: String,
    /// Side of a film's picture, pixels.
    pub size: usize,
    /// Forces and seed.
    pub synthesis: PlayConfig,
}

impl Default for PlayMotionConfig {
    fn default() -> Self {
        Self {
            motion: PathBuf::new(),
            script: PathBuf::new(),
            output: PathBuf::new(),
            label: None,
            rig: None,
            view: "three-quarter".into(),
            size: 384,
            synthesis: PlayConfig::default(),
        }
    }
}

/// Most frames of one run.
const MOST: usize = 1_000_000;
/// A script longer than this is none, bytes.
const MAX_SCRIPT: u64 = 1 << 22;

/// What was played.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlayMotionReport {
    /// The take.
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

/// Plays a script and writes the take.
pub fn play(config: &PlayMotionConfig, watch: &dyn Watch) -> Result<PlayMotionReport, JobError> {
    let film = Film::of(&config.output, config.size, &config.view)?;
    check_file(&config.output, &[&config.motion, &config.script])?;
    let motion = open(&config.motion)?.shared();
    let failed = |error: std::io::Error| JobError::unusable(&config.script, error);
    if std::fs::metadata(&config.script).map_err(failed)?.len() > MAX_SCRIPT {
        return Err(JobError::unusable(&config.script, "is too long for a script"));
    }
    let text = std::fs::read_to_string(&config.script).map_err(failed)?;
    let lines = parse_script(&text).map_err(|error| JobError::unusable(&config.script, error))?;
    let label = config.label.as_deref();
    let mut player = MotionPlayer::new(motion.clone(), label, config.synthesis)
        .map_err(|error| JobError::setting("label", error))?;
    // Every mistake of a script is found before a minute of it is played.
    player.clone().script(&text).map_err(|error| JobError::unusable(&config.script, error))?;
    watch.event(Event::Started { what: "playing", total: lines.len() as u64, unit: "commands" });
    let started = Instant::now();
    let mut frames: Vec<Vec<f32>> = Vec::new();
    let mut labels: Vec<(usize, String)> = vec![(0, player.label().to_owned())];
    let mut largest_distance = 0.0f64;
    for (done, line) in lines.iter().enumerate() {
        let wrong =
            |problem: String| JobError::unusable(&config.script, format!("line {}: {problem}", line.line));
        if matches!(line.command, Command::Idle { seconds: None, .. }) {
            return Err(wrong("an idle of a script needs a time: 'idle 4s'".into()));
        }
        player.command(line.command.clone()).map_err(|error| wrong(error.to_string()))?;
        while player.is_busy() {
            if frames.len() >= MOST {
                return Err(wrong(format!("the script makes more than {MOST} frames")));
            }
            player.step();
            frames.push(player.controls().to_vec());
            largest_distance = largest_distance.max(player.situation().distance);
            if labels.last().is_none_or(|(_, label)| label != player.label()) {
                labels.push((frames.len() - 1, player.label().to_owned()));
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
    write_take(film, &config.output, &motion, config.rig.as_deref(), frames, watch)?;
    Ok(PlayMotionReport {
        output: config.output.clone(),
        rig: motion.rig().to_owned(),
        frames: count,
        rate: motion.rate(),
        labels,
        largest_distance,
        frames_per_second,
    })
}

/// Writes frames of a motion as a table, or as a film of its rig.
pub(super) fn write_take(
    film: Option<Film>,
    output: &Path,
    motion: &Motion,
    rig: Option<&str>,
    frames: Vec<Vec<f32>>,
    watch: &dyn Watch,
) -> Result<(), JobError> {
    let names: Vec<String> = motion.controls().iter().map(|spec| spec.name.clone()).collect();
    let Some(film) = film else {
        let table = WeightTable { names, frames, rate: Some(motion.rate()) };
        return Ok(write_weights(output, &table)?);
    };
    let name = rig.unwrap_or(motion.rig());
    let rig = rigs::open(name, watch)?.rig;
    let own: Vec<&str> = rig.specs().iter().map(|spec| spec.name.as_str()).collect();
    if own != names.iter().map(String::as_str).collect::<Vec<_>>() {
        return Err(JobError::unusable(name, "is not the rig of this motion: its controls are others"));
    }
    let take = Take { rig: rig.as_ref(), frames: &frames, rate: motion.rate() };
    film.write(&take, output, watch)
}
