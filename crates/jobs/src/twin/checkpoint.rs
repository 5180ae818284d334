//! What is done of a training run, kept beside the twin until it is whole: training goes on after a kill where it
//! stopped, to the same bytes.

use crate::JobError;
use std::path::{Path, PathBuf};
use understudy_io::tensors::{TensorWriter, Tensors};
use understudy_io::{ReadError, read_bytes};

/// The folder of checkpoints of one training run.
pub(crate) struct Checkpoints {
    folder: PathBuf,
    /// What was trained on what: another run's states are not taken.
    key: String,
}

impl Checkpoints {
    /// Beside the output.
    pub fn new(output: &Path, key: String) -> Self {
        Self { folder: crate::checkpoint_folder(output), key }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.safetensors"))
    }

    /// Keeps what `fill` writes.
    pub fn save(&self, name: &str, fill: impl FnOnce(&mut TensorWriter)) -> Result<(), JobError> {
        let mut writer = TensorWriter::new();
        writer.metadata("key", self.key.clone());
        fill(&mut writer);
        Ok(writer.write(&self.path(name))?)
    }

    /// What was kept under a name, read by `take`; `None` where there is nothing, or another run's.
    pub fn load<T>(
        &self,
        name: &str,
        take: impl FnOnce(&Kept<'_>) -> Result<T, JobError>,
    ) -> Result<Option<T>, JobError> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read_bytes(&path)?;
        let tensors = Tensors::parse(&bytes).map_err(ReadError::content(&path))?;
        let kept = Kept { tensors, path: &path };
        if kept.text("key") != self.key {
            return Ok(None);
        }
        take(&kept).map(Some)
    }

    /// The twin is whole: nothing of this is needed any more.
    pub fn remove(&self) {
        // A folder that stays behind does no harm: its key protects the next run.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// One checkpoint.
pub(crate) struct Kept<'a> {
    tensors: Tensors<'a>,
    path: &'a Path,
}

impl Kept<'_> {
    fn text(&self, key: &str) -> String {
        self.tensors.metadata().get(key).cloned().unwrap_or_default()
    }

    /// Something that was kept as JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<T, JobError> {
        serde_json::from_str(&self.text(key)).map_err(|error| JobError::unusable(self.path, error))
    }

    /// Whether an array is there.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains(name)
    }

    /// A list of numbers.
    pub fn floats(&self, name: &str) -> Result<Vec<f32>, JobError> {
        let array = self.tensors.f32(name, &[understudy_io::Dim::Any("n")]);
        Ok(array.map_err(ReadError::content(self.path))?.data)
    }

    /// A list of whole numbers.
    pub fn integers(&self, name: &str) -> Result<Vec<u32>, JobError> {
        let array = self.tensors.u32(name, &[understudy_io::Dim::Any("n")]);
        Ok(array.map_err(ReadError::content(self.path))?.data)
    }
}
