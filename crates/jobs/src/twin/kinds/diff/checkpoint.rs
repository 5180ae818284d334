//! Mini-networks that are done, and where the differential network stands.

use crate::JobError;
use crate::twin::checkpoint::Checkpoints;
use understudy_learn::diff::{TrainedAnchor, TrainerState};
use understudy_runtime::diff::LayerNumbers;

/// Anchors in one file: thousands of files would cost more time than training.
pub(super) const RUN: usize = 16;

fn name(run: usize) -> String {
    format!("anchors-{run:04}")
}

/// Keeps a run of anchors.
pub(super) fn save_anchors(
    checkpoints: &Checkpoints,
    run: usize,
    anchors: &[TrainedAnchor],
) -> Result<(), JobError> {
    checkpoints.save(&name(run), |writer| {
        let errors: Vec<u64> = anchors.iter().map(|anchor| anchor.validation_cm.to_bits()).collect();
        writer.metadata("errors", serde_json::to_string(&errors).unwrap_or_default());
        let layers: Vec<usize> = anchors.iter().map(|anchor| anchor.layers.len()).collect();
        writer.metadata("layers", serde_json::to_string(&layers).unwrap_or_default());
        for (index, anchor) in anchors.iter().enumerate() {
            writer.f32(&format!("{index}.mean"), &[3], &anchor.mean);
            for (layer, data) in anchor.layers.iter().enumerate() {
                writer.f32(&format!("{index}.{layer}.weights"), &[data.weights.len()], &data.weights);
                writer.f32(&format!("{index}.{layer}.bias"), &[data.bias.len()], &data.bias);
            }
        }
    })
}

/// A run of anchors, where it was kept.
pub(super) fn load_anchors(
    checkpoints: &Checkpoints,
    run: usize,
) -> Result<Option<Vec<TrainedAnchor>>, JobError> {
    checkpoints.load(&name(run), |kept| {
        let (errors, layers): (Vec<u64>, Vec<usize>) = (kept.json("errors")?, kept.json("layers")?);
        let mut anchors = Vec::with_capacity(errors.len());
        for (index, (error, count)) in errors.iter().zip(&layers).enumerate() {
            let mut own = Vec::with_capacity(*count);
            for layer in 0..*count {
                own.push(LayerNumbers {
                    weights: kept.floats(&format!("{index}.{layer}.weights"))?,
                    bias: kept.floats(&format!("{index}.{layer}.bias"))?,
                });
            }
            let mean = kept.floats(&format!("{index}.mean"))?;
            let mean = [0, 1, 2].map(|axis| mean.get(axis).copied().unwrap_or(0.0));
            anchors.push(TrainedAnchor { layers: own, mean, validation_cm: f64::from_bits(*error) });
        }
        Ok(anchors)
    })
}

/// Keeps the differential network.
pub(super) fn save_state(checkpoints: &Checkpoints, state: &TrainerState) -> Result<(), JobError> {
    checkpoints.save("differential", |writer| {
        writer.metadata("step", state.step.to_string());
        writer.f32("parameters", &[state.parameters.len()], &state.parameters);
        for (name, numbers) in ["first", "second"].iter().zip(&state.averages) {
            writer.f32(name, &[numbers.len()], numbers);
        }
    })
}

/// The differential network, where it was kept.
pub(super) fn load_state(checkpoints: &Checkpoints) -> Result<Option<TrainerState>, JobError> {
    checkpoints.load("differential", |kept| {
        Ok(TrainerState {
            step: kept.json("step")?,
            parameters: kept.floats("parameters")?,
            averages: [kept.floats("first")?, kept.floats("second")?],
        })
    })
}
