//! What every learning of a label begins with, and what does not change with the settings of its latent space: which
//! controls move, about what, and how much each of them does to the mesh.

use super::LearnMotionConfig;
use super::corpus::{LabelFrames, moves_eyes};
use crate::clips::evaluate;
use crate::{Event, JobError, Watch};
use std::time::Instant;
use understudy_core::{ControlSpec, Controls, Vec3};
use understudy_motion::{PROBES, influence, statistics};
use understudy_rigs::Rig;

/// Frames of a label with the scale of their controls.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedLabel {
    /// The frames.
    pub label: LabelFrames,
    /// The controls that may be learned: all but those that only look. `[C]`.
    pub used: Vec<bool>,
    /// `p̄`, the default of controls that are left out. `[C]`.
    pub mean: Vec<f64>,
    /// `w` of (5.3), cm of the mesh per unit; zero for controls that never move. `[C]`.
    pub scale: Vec<f64>,
    /// How long that took.
    pub seconds: f64,
}

/// Prepares labels. Where nobody named them, those in which nothing moves that may be learned are left out with a note.
pub fn prepare(
    rig: &dyn Rig,
    labels: Vec<LabelFrames>,
    config: &LearnMotionConfig,
    watch: &dyn Watch,
) -> Result<Vec<PreparedLabel>, JobError> {
    let include: Vec<String> = config.include.iter().map(|part| part.to_lowercase()).collect();
    let left = |spec: &ControlSpec| {
        moves_eyes(spec) && !include.iter().any(|part| spec.name.to_lowercase().contains(part.as_str()))
    };
    let used: Vec<bool> = rig.specs().iter().map(|spec| !left(spec)).collect();
    let mut prepared = Vec::new();
    for label in labels {
        let started = Instant::now();
        let name = label.label.clone();
        let (mean, scale) = measure(rig, &label, &used, config.scaled)?;
        if config.labels.is_empty() && scale.iter().all(|scale| *scale == 0.0) {
            let message = format!("label '{name}' is left out: nothing moves in it that is learned");
            watch.event(Event::Note { message: &message });
            continue;
        }
        let seconds = started.elapsed().as_secs_f64();
        prepared.push(PreparedLabel { label, used: used.clone(), mean, scale, seconds });
    }
    Ok(prepared)
}

/// Mean and scale of every control.
fn measure(
    rig: &dyn Rig,
    label: &LabelFrames,
    used: &[bool],
    scaled: bool,
) -> Result<(Vec<f64>, Vec<f64>), JobError> {
    let specs = rig.specs();
    let ranges: Vec<f32> = specs.iter().map(|spec| spec.high - spec.low).collect();
    let (mut mean, deviation) = statistics(&label.frames, &ranges);
    for (control, spec) in specs.iter().enumerate().filter(|(control, _)| !used[*control]) {
        mean[control] = spec.default.into();
    }
    let moving: Vec<usize> =
        (0..specs.len()).filter(|control| used[*control] && deviation[*control] > 0.0).collect();
    let scale = match scaled {
        true => influences(rig, &mean, &deviation, &moving)?,
        false => {
            let mut scale = vec![0.0; specs.len()];
            moving.iter().for_each(|control| scale[*control] = 1.0 / f64::from(ranges[*control]));
            scale
        }
    };
    Ok((mean, scale))
}

/// What every moving control does to the mesh (5.3), cm per unit; zero for the others.
fn influences(
    rig: &dyn Rig,
    mean: &[f64],
    deviation: &[f64],
    moving: &[usize],
) -> Result<Vec<f64>, JobError> {
    let base: Vec<f32> = mean.iter().map(|value| *value as f32).collect();
    let mut poses = vec![Controls(base.clone())];
    for &control in moving {
        for step in PROBES {
            let mut moved = base.clone();
            moved[control] += (step * deviation[control]) as f32;
            poses.push(Controls(moved));
        }
    }
    let mut scale = vec![0.0; mean.len()];
    let middle = evaluate(rig, &poses[..1])?.remove(0);
    // A few controls at a time: all meshes at once would fill the memory.
    for (chunk, controls) in poses[1..].chunks(4 * 16).zip(moving.chunks(16)) {
        let meshes = evaluate(rig, chunk)?;
        for (four, &control) in meshes.chunks(4).zip(controls) {
            let moved = |mesh: &Vec<Vec3>| {
                mesh.iter().zip(&middle).map(|(a, b)| f64::from(a.distance_squared(*b))).sum::<f64>().sqrt()
            };
            let distances: Vec<f64> = four.iter().map(moved).collect();
            let weight =
                influence([distances[0], distances[1], distances[2], distances[3]], deviation[control]);
            // A control without any effect would be divided by nothing.
            scale[control] = if weight > 1e-9 { weight } else { 0.0 };
        }
    }
    Ok(scale)
}
