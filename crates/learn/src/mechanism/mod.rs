//! Controls → bones of a rig that shows no mechanism: for every bone a small function of the controls that move it, in
//! its parent's frame (`docs/methods/controls-to-bones.md`). Start at [`learn_mechanism`]. Which controls move a bone is
//! found in `inputs`, the function in `fit`; what comes out is played by `understudy_runtime::mechanism`.

mod fit;
mod frames;
mod inputs;
#[cfg(test)]
mod limb_tests;
mod targets;
#[cfg(test)]
mod tests;

use fit::{Fitted, fit_bone};
use frames::Placing;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use targets::Target;
use thiserror::Error;
use understudy_core::skeleton::rotation_of;
use understudy_core::{Affine3A, ControlSpecs};
use understudy_rigs::{Rig, RigError};
use understudy_runtime::mechanism::learned::LearnedBoneParts;
use understudy_runtime::{Mechanism, MechanismFigures, TwinError};

/// One pose of so many is not learned from: what figures are of.
const HELD_BACK: usize = 10;

/// Bones and controls of recorded poses: all that a mechanism is learned from.
#[derive(Debug, Clone)]
pub struct PosedBones {
    /// The controls, `[C]`.
    pub specs: ControlSpecs,
    /// Names of the bones, `[J]`.
    pub names: Vec<String>,
    /// In whose frame each is learned.
    pub parents: Vec<Option<usize>>,
    /// World transforms at rest, `[J]`.
    pub rest: Vec<Affine3A>,
    /// World transforms, `[N · J]`.
    pub bones: Vec<Affine3A>,
    /// Values, `[N · C]`.
    pub controls: Vec<f32>,
    /// How many of the last bones are guides: they move no vertex, and nobody asks for them, but others are simple in
    /// their frames.
    pub guides: usize,
}

impl PosedBones {
    /// Number of poses.
    pub fn len(&self) -> usize {
        self.bones.len().checked_div(self.names.len()).unwrap_or(0)
    }

    /// Whether there is no pose.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// World transforms of a pose.
    pub fn bones_of(&self, pose: usize) -> &[Affine3A] {
        &self.bones[pose * self.names.len()..][..self.names.len()]
    }

    /// Control values of a pose.
    pub fn controls_of(&self, pose: usize) -> &[f32] {
        &self.controls[pose * self.specs.len()..][..self.specs.len()]
    }

    /// Without guides.
    fn without_guides(&self) -> Self {
        let all = self.names.len();
        let kept = all - self.guides;
        let bones = self.bones.chunks_exact(all.max(1)).flat_map(|pose| &pose[..kept]);
        Self {
            names: self.names[..kept].to_vec(),
            parents: self.parents[..kept].to_vec(),
            rest: self.rest[..kept].to_vec(),
            bones: bones.copied().collect(),
            guides: 0,
            ..self.clone()
        }
    }

    /// Poses that are held back, and the others.
    pub fn split(&self) -> (Vec<usize>, Vec<usize>) {
        (0..self.len()).partition(|pose| pose % HELD_BACK == HELD_BACK / 2)
    }
}

/// Sizes and training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MechanismSettings {
    /// Terms of a bone in closed form at most.
    pub terms: usize,
    /// Controls of a bone at most, the strongest.
    pub inputs: usize,
    /// Hidden units of each of the two layers of a network.
    pub hidden: usize,
    /// Steps that a network is trained.
    pub steps: usize,
    /// A bone whose closed form misses held-back poses by less needs no network: radians, or lengths as seen from
    /// [`LEVER_CM`].
    pub enough: f64,
    /// Same seed, same mechanism.
    pub seed: u64,
}

impl Default for MechanismSettings {
    fn default() -> Self {
        Self { terms: 256, inputs: 24, hidden: 32, steps: 4000, enough: 1.5e-4, seed: 1 }
    }
}

/// What a length is divided by to be weighed beside an angle, cm.
pub const LEVER_CM: f32 = 20.0;

/// Why no mechanism could be learned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MechanismLearnError {
    /// Somebody asked.
    #[error("stopped")]
    Stopped,
    /// Too few poses.
    #[error("{0} poses are too few to learn how controls move bones")]
    TooFewPoses(usize),
    /// The rig failed.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// What was learned cannot be packed.
    #[error(transparent)]
    Twin(#[from] TwinError),
}

/// About one bone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoneFit {
    /// Its name.
    pub name: String,
    /// Controls that it sees.
    pub inputs: usize,
    /// Terms of its closed form.
    pub terms: usize,
    /// What the closed form leaves on held-back poses, root mean square, radians (lengths from [`LEVER_CM`]).
    pub closed: f64,
    /// The same with a network, where there is one.
    pub network: Option<f64>,
}

/// What was learned.
#[derive(Debug, Clone)]
pub struct LearnedBones {
    /// To be attached to a twin; figures of vertices are still zero.
    pub mechanism: Mechanism,
    /// Bones that move in their parents' frames.
    pub fits: Vec<BoneFit>,
    /// Whether controls were found on the live rig; estimated from the poses otherwise.
    pub probed: bool,
}

/// Learns how controls move bones. `watch(done)` is told how many bones are done and may stop it.
pub fn learn_mechanism(
    poses: &PosedBones,
    rig: Option<&dyn Rig>,
    settings: &MechanismSettings,
    watch: &(dyn Fn(usize) -> bool + Sync),
) -> Result<LearnedBones, MechanismLearnError> {
    /// Fewer say nothing about products.
    const FEWEST: usize = 40;
    if poses.len() < FEWEST {
        return Err(MechanismLearnError::TooFewPoses(poses.len()));
    }
    let plain;
    let (poses, placings) = match rig {
        Some(rig) => (poses, Some(frames::choose(poses, &inputs::Probes::new(rig, poses)?))),
        None if poses.guides > 0 => {
            plain = poses.without_guides();
            (&plain, None)
        }
        None => (poses, None),
    };
    let probed = placings.is_some();
    let own = |bone: usize| Placing { parent: poses.parents[bone], ..Placing::default() };
    let placings = placings.unwrap_or_else(|| (0..poses.names.len()).map(own).collect());
    let place =
        |(bone, placing): (usize, &Placing)| Target::new(poses, bone, placing.parent, placing.aim.clone());
    let targets: Vec<Target> = placings.par_iter().enumerate().map(place).collect();
    let done = AtomicUsize::new(0);
    let one = |bone: usize| -> Result<Fitted, MechanismLearnError> {
        let target = &targets[bone];
        let inputs = match probed {
            true => placings[bone].inputs.clone(),
            false => inputs::estimate(poses, target, &poses.names[bone]),
        };
        let fitted = fit_bone(poses, target, inputs, settings, bone as u64);
        match watch(done.fetch_add(1, Ordering::Relaxed) + 1) {
            true => Ok(fitted),
            false => Err(MechanismLearnError::Stopped),
        }
    };
    let fitted: Vec<Fitted> = (0..targets.len()).into_par_iter().map(one).collect::<Result<_, _>>()?;
    let mut fits = Vec::new();
    let mut parts: Vec<LearnedBoneParts> = Vec::with_capacity(fitted.len());
    for (fitted, name) in fitted.into_iter().zip(&poses.names) {
        if fitted.parts.moves.numbers() > 0 {
            fits.push(BoneFit {
                name: name.clone(),
                inputs: fitted.parts.inputs.len(),
                terms: fitted.parts.terms.len(),
                closed: fitted.closed,
                network: fitted.network,
            });
        }
        parts.push(fitted.parts);
    }
    let mut mechanism = Mechanism::learned_with_guides(poses.specs.clone(), parts, poses.guides)?;
    mechanism.figures = Some(figures(poses, &mechanism));
    Ok(LearnedBones { mechanism, fits, probed })
}

/// How far bones are from the rig's on the poses that were held back.
fn figures(poses: &PosedBones, mechanism: &Mechanism) -> MechanismFigures {
    let (held, _) = poses.split();
    let of_pose = |pose: &usize| -> (f64, f64, f64) {
        let own = mechanism.evaluate(poses.controls_of(*pose));
        let (mut sum, mut most, mut away) = (0.0f64, 0.0f64, 0.0f64);
        for (own, truth) in own.iter().zip(poses.bones_of(*pose)) {
            let turn = rotation_of(own).inverse() * rotation_of(truth);
            // `acos` of the real part would not see angles below a fiftieth of a degree.
            let sine = f64::from(turn.xyz().length());
            let angle = (2.0 * sine.atan2(f64::from(turn.w.abs()))).to_degrees();
            (sum, most) = (sum + angle, most.max(angle));
            away += f64::from(own.translation.distance(truth.translation)) * 10.0;
        }
        let count = own.len().max(1) as f64;
        (sum / count, most, away / count)
    };
    let each: Vec<(f64, f64, f64)> = held.par_iter().map(of_pose).collect();
    let count = each.len().max(1) as f64;
    MechanismFigures {
        poses: held.len(),
        mean_degrees: each.iter().map(|(mean, ..)| mean).sum::<f64>() / count,
        max_degrees: each.iter().map(|(_, most, _)| *most).fold(0.0, f64::max),
        mean_origin_mm: each.iter().map(|(.., away)| away).sum::<f64>() / count,
        ..MechanismFigures::default()
    }
}
