//! Groups that are done.

use crate::JobError;
use crate::twin::checkpoint::Checkpoints;
use understudy_learn::body::TrainedGroup;
use understudy_runtime::Activation;
use understudy_runtime::body::{GroupParts, LayerParts, Storage};

fn name(group: usize) -> String {
    format!("group-{group:04}")
}

/// Keeps a group.
pub(super) fn save(checkpoints: &Checkpoints, group: usize, trained: &TrainedGroup) -> Result<(), JobError> {
    let parts = &trained.parts;
    checkpoints.save(&name(group), |writer| {
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
    })
}

/// A group that an earlier run finished; `None` where there is none, or another run's.
pub(super) fn load(checkpoints: &Checkpoints, group: usize) -> Result<Option<TrainedGroup>, JobError> {
    checkpoints.load(&name(group), |kept| {
        let mut layers = Vec::new();
        for (index, tanh) in kept.json::<Vec<bool>>("tanh")?.into_iter().enumerate() {
            layers.push(LayerParts {
                weights: kept.floats(&format!("{index}.weights"))?,
                bias: kept.floats(&format!("{index}.bias"))?,
                activation: if tanh { Activation::Tanh } else { Activation::None },
                storage: Storage::Plain,
            });
        }
        let parts = GroupParts {
            bone: kept.json("bone")?,
            vertices: kept.integers("vertices")?,
            ghosts: kept.integers("ghosts")?,
            inputs: kept.integers("inputs")?,
            mean: kept.floats("mean")?,
            scale: kept.floats("scale")?,
            layers,
        };
        Ok(TrainedGroup { parts, report: kept.json("report")? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_learn::body::GroupReport;
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
            save(&checkpoints, group, &trained).expect("writable");
            let back = load(&checkpoints, group).expect("readable").expect("the same run");
            assert_eq!((back.parts, back.report), (trained.parts, trained.report), "group {group}");
        }
    }
}
