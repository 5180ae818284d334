//! Where the training of a stage stands.

use crate::JobError;
use crate::twin::checkpoint::Checkpoints;
use serde::{Deserialize, Serialize};
use understudy_learn::face::trainer::Trainer;
use understudy_learn::face::{Progress, Schedule};

/// Where a stage stood when it was kept.
pub(crate) struct Standing {
    pub progress: Progress,
    pub schedule: Schedule,
    pub clock: Option<Clock>,
}

/// Time of a run that has a limit, in seconds since it began; interruptions do not count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// Now.
    pub now: f64,
    /// When the stage ends.
    pub end: f64,
}

/// Names of the four arrays of a network's state.
const ARRAYS: [&str; 4] = ["parameters", "first", "second", "best"];

/// Keeps the state of a stage.
pub(super) fn save(
    checkpoints: &Checkpoints,
    stage: &str,
    trainer: &Trainer<'_>,
    progress: &Progress,
    schedule: &Schedule,
    clock: Option<Clock>,
) -> Result<(), JobError> {
    checkpoints.save(stage, |writer| {
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        writer.metadata("progress", json(serde_json::to_string(progress)));
        writer.metadata("schedule", json(serde_json::to_string(schedule)));
        writer.metadata("clock", json(serde_json::to_string(&clock)));
        for (net, arrays) in trainer.state().iter().enumerate() {
            for (name, array) in ARRAYS.iter().zip(arrays) {
                writer.f32(&format!("{net}.{name}"), &[array.len()], array);
            }
        }
    })
}

/// Takes a stage's state over; `None` where there is none, or another run's.
pub(super) fn load(
    checkpoints: &Checkpoints,
    stage: &str,
    trainer: &Trainer<'_>,
) -> Result<Option<Standing>, JobError> {
    let kept = checkpoints.load(stage, |kept| {
        let mut state = Vec::new();
        while kept.contains(&format!("{}.{}", state.len(), ARRAYS[0])) {
            let mut arrays: [Vec<f32>; 4] = Default::default();
            for (name, slot) in ARRAYS.iter().zip(&mut arrays) {
                *slot = kept.floats(&format!("{}.{name}", state.len()))?;
            }
            state.push(arrays);
        }
        let standing = Standing {
            progress: kept.json("progress")?,
            schedule: kept.json("schedule")?,
            clock: kept.json("clock")?,
        };
        Ok((state, standing))
    })?;
    Ok(kept.and_then(|(state, standing)| trainer.set_state(&state).then_some(standing)))
}
