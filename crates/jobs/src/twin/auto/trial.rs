//! One kind of twin at a small budget: trained on some poses, measured by others, its figures kept until the whole
//! command is done.

use super::AutoConfig;
use crate::twin::data::{Guides, open_twin};
use crate::twin::kinds::Learning;
use crate::twin::learn::{LearnConfig, Source, learn_from};
use crate::twin::mechanism::MechanismChoice;
use crate::{Event, JobError, Watch};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;
use understudy_core::Vec3;
use understudy_core::metrics::{distances, summarise};
use understudy_io::dataset::content_hash;
use understudy_io::{read_bytes, write_atomic};
use understudy_learn::{Method, PlayedTwin, Recording};
use understudy_rigs::Rig;
use understudy_runtime::Twin;

/// Fewer poses tell no kind from another.
pub(super) const FEWEST_POSES: usize = 20;
/// Poses that are held out together: next to one that was trained on, a frame of a clip says little.
const RUN: usize = 5;
/// One run in so many is held out.
const EVERY: usize = 8;
/// Poses that are timed.
const TIMED: usize = 24;
/// How often each of them is.
const RUNS: usize = 5;

/// Figures of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// `body`, `face` and so on.
    pub kind: &'static str,
    /// Mean distance of a vertex on held-out poses, mm.
    pub mean_mm: f64,
    /// 95 % of the vertices are nearer, mm.
    pub p95_mm: f64,
    /// The worst vertex of all poses, mm.
    pub max_mm: f64,
    /// Milliseconds per pose on one thread, median.
    pub ms: f64,
    /// Size of the file.
    pub bytes: usize,
    /// Duration of the training.
    pub seconds: f64,
    /// Whether an earlier run of the same command had finished it.
    pub kept: bool,
}

impl Trial {
    /// For people.
    pub fn line(&self) -> String {
        let Self { kind, mean_mm, max_mm, ms, bytes, seconds, .. } = self;
        format!(
            "{kind}: {mean_mm:.3} mm on average, {max_mm:.2} mm at most, {ms:.3} ms, {:.2} MB, after {seconds:.0} s of \
             training",
            *bytes as f64 / 1e6
        )
    }
}

/// A kind that does not fit the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// `body`, `face` and so on.
    pub kind: &'static str,
    /// In one line.
    pub reason: String,
}

/// What is kept of a trial.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    figures: Result<[f64; 4], String>,
    bytes: usize,
    seconds: f64,
}

/// Poses to train on, and poses to measure by.
pub(super) fn split(data: &Path, all: Recording) -> Result<(Recording, Recording), JobError> {
    if all.len() < FEWEST_POSES {
        let problem =
            format!("{} poses are too few to try twins on; record at least {FEWEST_POSES}", all.len());
        return Err(JobError::unusable(data, problem));
    }
    // Short recordings are split pose by pose: a run would be too much of them.
    let run = if all.len() >= 2 * RUN * EVERY { RUN } else { 1 };
    let is_held = |pose: usize| (pose / run) % EVERY == EVERY / 2;
    let part = |held: bool| {
        let chosen = || (0..all.len()).filter(move |pose| is_held(*pose) == held);
        Recording {
            mesh: all.mesh.clone(),
            skeleton: all.skeleton.clone(),
            specs: all.specs.clone(),
            bones: chosen().flat_map(|pose| all.bones_of(pose)).copied().collect(),
            controls: chosen().flat_map(|pose| all.controls_of(pose)).copied().collect(),
            vertices: chosen().flat_map(|pose| all.vertices_of(pose)).copied().collect(),
        }
    };
    Ok((part(false), part(true)))
}

/// What all trials share.
pub(super) struct Bench<'a> {
    pub config: &'a AutoConfig,
    /// Where trials are kept.
    pub folder: &'a Path,
    pub data: &'a Path,
    pub rig_name: &'a str,
    pub rig: Option<&'a dyn Rig>,
    pub trained: &'a Recording,
    pub held: &'a Recording,
    pub watch: &'a dyn Watch,
}

impl Bench<'_> {
    /// Trains and measures a kind; the inner error says why it does not fit the data.
    pub fn run(&self, learning: &Learning) -> Result<Result<Trial, LeftOut>, JobError> {
        let kind = learning.name();
        let limited = learning.limited(self.config.trial_minutes);
        let key = self.key(&limited)?;
        let file = self.folder.join(format!("{kind}.json"));
        let trial = |kept: Kept, was_kept: bool| match kept.figures {
            Ok([mean_mm, p95_mm, max_mm, ms]) => Ok(Trial {
                kind,
                mean_mm,
                p95_mm,
                max_mm,
                ms,
                bytes: kept.bytes,
                seconds: kept.seconds,
                kept: was_kept,
            }),
            Err(reason) => Err(LeftOut { kind, reason }),
        };
        let kept = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        if let Some(kept) = kept.filter(|kept| kept.key == key) {
            return Ok(trial(kept, true));
        }
        let output = self.folder.join(format!("{kind}.twin"));
        let start = Instant::now();
        let (figures, bytes) = match self.learned(limited, &output) {
            Ok(bytes) => (Ok(measure(&output, self.held)?), bytes),
            // The data or the settings do not fit: that is what is asked here. Anything else is a failure.
            Err(error @ (JobError::Unusable { .. } | JobError::Setting { .. })) => {
                (Err(short(&error, self.data)), 0)
            }
            Err(other) => return Err(other),
        };
        let kept = Kept { key, figures, bytes, seconds: start.elapsed().as_secs_f64() };
        let text = serde_json::to_vec(&kept).map_err(|error| JobError::Machine(error.to_string()))?;
        write_atomic(&file, &text)?;
        Ok(trial(kept, false))
    }

    /// Trains it; the size of its file.
    fn learned(&self, learning: Learning, output: &Path) -> Result<usize, JobError> {
        std::fs::create_dir_all(self.folder).map_err(|error| JobError::unusable(self.folder, error))?;
        let config = LearnConfig {
            half: self.config.half,
            threads: self.config.threads,
            // Trials are weighed by their bones.
            mechanism: MechanismChoice::None,
            ..LearnConfig::new(self.data, output, learning)
        };
        let source = Source {
            rig_name: self.rig_name,
            poses: self.trained.clone(),
            // Trials are weighed by bones.
            guides: Guides::default(),
            rig: self.rig,
            rig_ms: None,
            data: None,
        };
        let said = Quiet { listener: self.watch, kind: config.learning.name() };
        Ok(learn_from(&config, source, &said, Instant::now())?.bytes)
    }

    /// What makes a trial the same: settings, poses, threads do not.
    fn key(&self, learning: &Learning) -> Result<String, JobError> {
        let manifest = read_bytes(&self.data.join("dataset.toml"))?;
        let settings =
            serde_json::to_string(learning).map_err(|error| JobError::Machine(error.to_string()))?;
        let poses = format!("{} {} {}", self.config.trial_poses, self.config.half, self.rig.is_some());
        Ok(content_hash([settings.as_bytes(), b"\0", poses.as_bytes(), b"\0", &manifest]))
    }
}

/// The problem without the name of the dataset, which is said once.
fn short(error: &JobError, data: &Path) -> String {
    match error {
        JobError::Unusable { path, problem } if path.as_path() == data => problem.clone(),
        other => other.to_string(),
    }
}

/// Passes progress on; what a short training has to remark would only disturb.
struct Quiet<'a> {
    listener: &'a dyn Watch,
    kind: &'static str,
}

impl Watch for Quiet<'_> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Note { .. } | Event::Warning { .. } | Event::TimeLeft { .. } => {}
            Event::Started { what, total, unit } => {
                let what = format!("trying {}: {what}", self.kind);
                self.listener.event(Event::Started { what: &what, total, unit });
            }
            Event::Figure { name, value } => {
                let name = format!("{}: {name}", self.kind);
                self.listener.event(Event::Figure { name: &name, value });
            }
            other => self.listener.event(other),
        }
    }

    fn should_stop(&self) -> bool {
        self.listener.should_stop()
    }
}

/// A method that plays a twin's file.
fn player(file: &Path, poses: &Recording) -> Result<PlayedTwin, JobError> {
    let twin: Twin = open_twin(file)?;
    PlayedTwin::new("twin", 0, &twin, &poses.specs).map_err(|error| JobError::unusable(file, error))
}

/// Mean, 95 % and maximum, mm, and milliseconds per pose.
fn measure(file: &Path, held: &Recording) -> Result<[f64; 4], JobError> {
    let mut method = player(file, held)?;
    let mut out = vec![Vec3::ZERO; held.mesh.vertex_count()];
    let mut misses = Vec::with_capacity(held.vertices.len());
    for pose in 0..held.len() {
        let frame = held.frame(pose);
        method.pose(frame, &mut out).map_err(|error| JobError::unusable(file, error))?;
        misses.extend(distances(&out, frame.vertices));
    }
    let summary = summarise(&misses);
    let ms = milliseconds(file, held)?;
    Ok([summary.mean * 10.0, summary.p95 * 10.0, summary.max * 10.0, ms])
}

/// The median over some poses, one at a time on one thread. Of each the fastest of a few runs counts: others may use the
/// machine, and a choice must not depend on them.
pub(super) fn milliseconds(file: &Path, poses: &Recording) -> Result<f64, JobError> {
    let mut method = player(file, poses)?;
    let mut out = vec![Vec3::ZERO; poses.mesh.vertex_count()];
    let mut times = Vec::new();
    for pose in poses.spread(TIMED) {
        let mut run = || {
            let start = Instant::now();
            let posed = method.pose(poses.frame(pose), &mut out);
            posed.map(|()| start.elapsed().as_secs_f64() * 1e3)
        };
        let mut fastest = f64::INFINITY;
        for _ in 0..RUNS {
            fastest = fastest.min(run().map_err(|error| JobError::unusable(file, error))?);
        }
        times.push(fastest);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(0.0))
}
