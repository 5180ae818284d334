//! Groups that are done, kept beside the twin until it is whole: training goes on after a kill where it
//! stopped, to the same bytes.

use crate::JobError;
use std::path::{Path, PathBuf};
use understudy_io::tensors::{TensorWriter, Tensors};
use understudy_io::{Dim, ReadError, read_bytes};
use understudy_learn::body::{GroupReport, TrainedGroup};
use understudy_runtime::Activation;
use understudy_runtime::body::{GroupParts, LayerParts, Storage};

/// The folder of checkpoints of one training run.
pub(crate) struct Checkpoints {
    folder: PathBuf,
    /// What was trained on what: groups of another run are not taken.
    key: String,
}

impl Checkpoints {
    /// Beside the output.
    pub fn new(output: &Path, key: String) -> Self {
        Self { folder: crate::checkpoint_folder(output), key }
    }

    fn path(&self, group: usize) -> PathBuf {
        self.folder.join(format!("group-{group:04}.safetensors"))
    }

    /// Keeps a group.
    pub fn save(&self, group: usize, trained: &TrainedGroup) -> Result<(), JobError> {
        let path = self.path(group);
        let parts = &trained.parts;
        let mut writer = TensorWriter::new();
        writer.metadata("key", self.key.clone());
        writer.metadata("report", serde_json::to_string(&trained.report).unwrap_or_default());
        writer.metadata("bone", parts.bone.to_string());
        let tanh: Vec<bool> = parts.layers.iter().map(|l| l.activation == Activation::Tanh).collect();
        writer.metadata("tanh", serde_json::to_string(&tanh).unwrap_or_default());
        writer.u32("vertices", &[parts.vertices.len()], &parts.vertices);
        writer.u32("ghosts", &[parts.ghosts.len()], &parts.ghosts);
        writer.u32("inputs", &[parts.inputs.len()], &parts.inputs);
        writer.f32("mean", &[parts.mean.len()], &parts.mean);
        writer.f32("scale", &[parts.scale.len()], &parts.scale);
        for (index, layer) in parts.layers.iter().enumerate() {
            writer.f32(&format!("{index}.weights"), &[layer.weights.len()], &layer.weights);
            writer.f32(&format!("{index}.bias"), &[layer.bias.len()], &layer.bias);
        }
        Ok(writer.write(&path)?)
    }

    /// A group that an earlier run finished; `None` where there is none, or another run's.
    pub fn load(&self, group: usize) -> Result<Option<TrainedGroup>, JobError> {
        let path = self.path(group);
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
        let report: GroupReport = serde_json::from_str(&text("report")).map_err(broken)?;
        let bone: usize = serde_json::from_str(&text("bone")).map_err(broken)?;
        let tanh: Vec<bool> = serde_json::from_str(&text("tanh")).map_err(broken)?;
        let floats =
            |name: &str| tensors.f32(name, &[Dim::Any("n")]).map(|array| array.data).map_err(&content);
        let integers =
            |name: &str| tensors.u32(name, &[Dim::Any("n")]).map(|array| array.data).map_err(&content);
        let mut layers = Vec::new();
        for (index, tanh) in tanh.into_iter().enumerate() {
            layers.push(LayerParts {
                weights: floats(&format!("{index}.weights"))?,
                bias: floats(&format!("{index}.bias"))?,
                activation: if tanh { Activation::Tanh } else { Activation::None },
                storage: Storage::Plain,
            });
        }
        let parts = GroupParts {
            bone,
            vertices: integers("vertices")?,
            ghosts: integers("ghosts")?,
            inputs: integers("inputs")?,
            mean: floats("mean")?,
            scale: floats("scale")?,
            layers,
        };
        Ok(Some(TrainedGroup { parts, report }))
    }

    /// The twin is whole: nothing of this is needed any more.
    pub fn remove(&self) {
        // A folder that stays behind does no harm: its key protects the next run.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_learn::dense::train::{Stop, TrainReport};

    #[test]
    fn a_group_comes_back_bit_by_bit() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let checkpoints = Checkpoints::new(&folder.path().join("a.twin"), "key".into());
        let mut random = Random::new(3);
        for group in 0..200 {
            // Every bit of a mantissa counts: a decimal that is read back carelessly is off by one.
            let mut number =
                || f64::from(random.uniform(0.0, 1.0)) / 3.0 + f64::from(random.uniform(0.0, 1e-9));
            let report = GroupReport {
                bone: "hip".into(),
                vertices: 2,
                inputs: 0,
                components: 1,
                width: 4,
                validation_cm: number(),
                training: Some(TrainReport {
                    epochs: 3,
                    steps: 9,
                    validation: number(),
                    stop: Stop::Patience,
                }),
            };
            let parts = GroupParts {
                bone: 1,
                vertices: vec![0, 1],
                ghosts: vec![],
                inputs: vec![],
                mean: vec![number() as f32],
                scale: vec![number() as f32],
                layers: vec![],
            };
            let trained = TrainedGroup { parts, report };
            checkpoints.save(group, &trained).expect("writable");
            let back = checkpoints.load(group).expect("readable").expect("the same run");
            assert_eq!((back.parts, back.report), (trained.parts, trained.report), "group {group}");
        }
    }
}
