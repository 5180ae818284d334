//! The report of poses that a rig failed to give while it was sampled: told at once, kept for the result, and written
//! beside the dataset, so that an interrupted night loses none of it.

use crate::outputs::FAILED_POSES;
use crate::{Event, JobError, Watch};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use understudy_rigs::Incident;

/// What became of a pose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Asked for once more.
    TriedAgain,
    /// Given up, and another random pose recorded in its place.
    Replaced,
    /// Given up.
    Failed,
}

/// Poses that the rig failed to give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedPoses {
    /// Number of the first.
    pub first: usize,
    /// Number of the last: the same, or the end of a batch that was lost as a whole.
    pub last: usize,
    /// What became of them.
    pub outcome: Outcome,
    /// One line.
    pub problem: String,
}

/// Collects them, from any thread.
pub(crate) struct Failures<'a> {
    file: PathBuf,
    watch: &'a dyn Watch,
    all: Mutex<Vec<FailedPoses>>,
}

impl<'a> Failures<'a> {
    pub fn new(folder: &Path, watch: &'a dyn Watch) -> Self {
        Self { file: folder.join(FAILED_POSES), watch, all: Mutex::new(Vec::new()) }
    }

    /// Notes poses of a batch whose first one has the number `start`, and tells the listener.
    pub fn note(&self, start: usize, incident: Incident, outcome: Outcome) {
        let first = start + incident.poses.start;
        let last = (start + incident.poses.end).saturating_sub(1).max(first);
        let poses = if first == last { format!("pose {first}") } else { format!("poses {first} to {last}") };
        let end = match outcome {
            Outcome::TriedAgain => "tried again",
            Outcome::Replaced => "replaced by another",
            Outcome::Failed => "given up",
        };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let message = format!("{poses}: {}; {end}", incident.problem);
        self.watch.event(Event::Warning { message: &message });
        all.push(FailedPoses { first, last, outcome, problem: incident.problem });
    }

    /// So far, by number.
    pub fn all(&self) -> Vec<FailedPoses> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by_key(|failed| (failed.first, failed.last));
        all
    }

    /// Adds this run's to the file in the dataset's folder. Without any, there is none.
    pub fn write(&self) -> Result<(), JobError> {
        let all = self.all();
        if all.is_empty() {
            return Ok(());
        }
        let mut text =
            std::fs::read_to_string(&self.file).unwrap_or_else(|_| "first,last,outcome,problem\n".into());
        for FailedPoses { first, last, outcome, problem } in all {
            let outcome = match outcome {
                Outcome::TriedAgain => "tried_again",
                Outcome::Replaced => "replaced",
                Outcome::Failed => "failed",
            };
            text += &format!("{first},{last},{outcome},\"{}\"\n", problem.replace('"', "\"\""));
        }
        Ok(understudy_io::write_atomic(&self.file, text.as_bytes())?)
    }
}
