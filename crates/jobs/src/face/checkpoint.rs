//! Where training stands, kept beside the twin until it is whole: a run that was killed goes on where it
//! stopped, to the same bytes.

use crate::JobError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use understudy_io::tensors::{TensorWriter, Tensors};
use understudy_io::{Dim, ReadError, read_bytes};
use understudy_learn::face::trainer::Trainer;
use understudy_learn::face::{Progress, Schedule};

/// The folder of checkpoints of one training run.
pub(crate) struct Checkpoints {
    folder: PathBuf,
    /// What was trained on what: another run's states are not taken.
    key: String,
}

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

impl Checkpoints {
    /// Beside the output.
    pub fn new(output: &Path, key: String) -> Self {
        Self { folder: crate::checkpoint_folder(output), key }
    }

    fn path(&self, stage: &str) -> PathBuf {
        self.folder.join(format!("{stage}.safetensors"))
    }

    /// Keeps the state of a stage.
    pub fn save(
        &self,
        stage: &str,
        trainer: &Trainer<'_>,
        progress: &Progress,
        schedule: &Schedule,
        clock: Option<Clock>,
    ) -> Result<(), JobError> {
        let mut writer = TensorWriter::new();
        writer.metadata("key", self.key.clone());
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        writer.metadata("progress", json(serde_json::to_string(progress)));
        writer.metadata("schedule", json(serde_json::to_string(schedule)));
        writer.metadata("clock", json(serde_json::to_string(&clock)));
        for (net, arrays) in trainer.state().iter().enumerate() {
            for (name, array) in ARRAYS.iter().zip(arrays) {
                writer.f32(&format!("{net}.{name}"), &[array.len()], array);
            }
        }
        Ok(writer.write(&self.path(stage))?)
    }

    /// Takes a stage's state over; `None` where there is none, or another run's.
    pub fn load(&self, stage: &str, trainer: &Trainer<'_>) -> Result<Option<Standing>, JobError> {
        let path = self.path(stage);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read_bytes(&path)?;
        let content = ReadError::content(&path);
        let tensors = Tensors::parse(&bytes).map_err(&content)?;
        let text = |key: &str| tensors.metadata().get(key).cloned().unwrap_or_default();
        if text("key") != self.key {
            return Ok(None);
        }
        let broken = |error: serde_json::Error| JobError::unusable(&path, error);
        let progress: Progress = serde_json::from_str(&text("progress")).map_err(broken)?;
        let schedule: Schedule = serde_json::from_str(&text("schedule")).map_err(broken)?;
        let clock: Option<Clock> = serde_json::from_str(&text("clock")).map_err(broken)?;
        let mut state = Vec::new();
        while tensors.contains(&format!("{}.{}", state.len(), ARRAYS[0])) {
            let mut arrays: [Vec<f32>; 4] = Default::default();
            for (name, slot) in ARRAYS.iter().zip(&mut arrays) {
                let name = format!("{}.{name}", state.len());
                *slot = tensors.f32(&name, &[Dim::Any("n")]).map_err(&content)?.data;
            }
            state.push(arrays);
        }
        Ok(trainer.set_state(&state).then_some(Standing { progress, schedule, clock }))
    }

    /// The twin is whole: nothing of this is needed any more.
    pub fn remove(&self) {
        // A folder that stays behind does no harm: its key protects the next run.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
