//! Which features each anchor's mini-network sees: those that move the anchor. Found on the live rig by moving every
//! control at random poses by large steps, as the paper does; else estimated from the poses. On the way it is seen which
//! controls move nothing at all.

use super::features::Features;
use super::linear::Linear;
use super::nonlinear::Unskinning;
use super::{DiffLearnError, DiffSettings};
use crate::Recording;
use rayon::prelude::*;
use understudy_core::{Affine3A, Controls, Random, Vec3};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::diff::BONE_INPUTS;

/// An anchor that moves by less stays where it is, cm.
const MOVED: f32 = 0.002;
/// A feature that changes by less, in deviations, stays as it is.
const CHANGED: f32 = 1e-3;
/// A vertex that moves by less stays where it is, cm: on a body of two metres that is rounding.
const ROUNDING: f32 = 1e-4;
/// Poses that suffice for an estimate.
const MOST_POSES: usize = 1500;

/// What the live rig says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Influence {
    /// For every anchor the features that move it, ascending.
    pub of_anchors: Vec<Vec<u32>>,
    /// Controls that moved no vertex anywhere, ascending.
    pub idle: Vec<usize>,
}

/// Moves every control. `parents`: see [`Features::new`].
pub fn probe(
    rig: &dyn Rig,
    unskinning: &Unskinning,
    parents: &[Option<usize>],
    features: &Features,
    anchors: &[u32],
    settings: &DiffSettings,
) -> Result<Influence, DiffLearnError> {
    let specs = rig.specs();
    let bones = parents.len();
    let measure = |pose: &RigPose, controls: &Controls| -> (Vec<Vec3>, Vec<f32>) {
        let global = if bones > 0 { &pose.global.0[..] } else { &[] };
        let matrices = unskinning.skinning_matrices(global);
        let place = |v: &u32| unskinning.displacement(*v as usize, &matrices, pose.vertices[*v as usize]).0;
        let number = |(input, scale): (&u32, &f32)| {
            let input = *input as usize;
            scale
                * match input.checked_sub(bones * BONE_INPUTS) {
                    Some(control) => controls.0[features.controls[control] as usize],
                    None => {
                        let bone = input / BONE_INPUTS;
                        let parent =
                            parents[bone].map_or(Affine3A::IDENTITY, |parent| global[parent].inverse());
                        (parent * global[bone]).to_cols_array()[input % BONE_INPUTS]
                    }
                }
        };
        let seen = features.parts.inputs.iter().zip(&features.parts.scale).map(number).collect();
        (anchors.iter().map(place).collect(), seen)
    };
    let base = |index: usize| {
        let mut random = Random::stream(settings.seed ^ 0x0a11_c402, index as u64);
        let draw = specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
        let controls = if index == 0 { specs.defaults() } else { Controls(draw) };
        let mut pose = RigPose::default();
        rig.evaluate(&controls, &mut pose)?;
        let (places, seen) = measure(&pose, &controls);
        Ok::<_, DiffLearnError>((controls, places, seen, pose.vertices))
    };
    let bases =
        (0..=settings.probe_poses).into_par_iter().map(base).collect::<Result<Vec<_>, DiffLearnError>>()?;
    // Per control: the anchors that it moves, the features that tell of it, and whether it moves any vertex.
    let one = |pose: &mut RigPose, control: usize| -> Result<(Vec<bool>, Vec<bool>, bool), DiffLearnError> {
        let mut found = (vec![false; anchors.len()], vec![false; features.count()], false);
        let spec = specs.get(control);
        for (index, (controls, places, seen, vertices)) in bases.iter().enumerate() {
            let mut controls = controls.clone();
            let other = Random::stream(control as u64, index as u64).uniform(spec.low, spec.high);
            for value in [spec.low, spec.high, other] {
                controls.0[control] = value;
                rig.evaluate(&controls, pose)?;
                let now = measure(pose, &controls);
                let moved = found.0.iter_mut().zip(places.iter().zip(&now.0));
                moved.for_each(|(flag, (a, b))| *flag |= a.distance(*b) > MOVED);
                let changed = found.1.iter_mut().zip(seen.iter().zip(&now.1));
                changed.for_each(|(flag, (a, b))| *flag |= (a - b).abs() > CHANGED);
                found.2 =
                    found.2 || vertices.iter().zip(&pose.vertices).any(|(a, b)| a.distance(*b) > ROUNDING);
            }
        }
        Ok(found)
    };
    let found: Vec<(Vec<bool>, Vec<bool>, bool)> =
        (0..specs.len()).into_par_iter().map_init(RigPose::default, one).collect::<Result<_, _>>()?;
    let of = |anchor: usize| {
        let mut seen = vec![false; features.count()];
        for (_, tells, _) in found.iter().filter(|(moves, ..)| moves[anchor]) {
            seen.iter_mut().zip(tells).for_each(|(seen, tells)| *seen |= tells);
        }
        (0u32..).zip(seen).filter(|(_, seen)| *seen).map(|(feature, _)| feature).collect()
    };
    let idle = (0..specs.len()).filter(|control| !found[*control].2).collect();
    Ok(Influence { of_anchors: (0..anchors.len()).map(of).collect(), idle })
}

/// Without a live rig: controls among the features that nothing follows beyond chance. What is linear says so by its
/// weight: of a control that moves nothing it is about as large as `√(energy / poses)` of what the linear part leaves. Of
/// what is not linear, no anchor sees it. Nothing is said where there are no anchors to ask.
pub fn estimate_idle(
    features: &Features,
    linear: &Linear,
    energy: &[f64],
    of_anchors: &[Vec<u32>],
    bones: usize,
    poses: usize,
) -> Vec<usize> {
    /// Squared, in deviations: the largest of some hundred thousand random numbers stays below.
    const CHANCE: f64 = 25.0;
    if of_anchors.is_empty() {
        return Vec::new();
    }
    let count = features.count();
    let is_idle = |feature: usize| {
        let unseen = of_anchors.iter().all(|seen| seen.binary_search(&(feature as u32)).is_err());
        let mut rows = linear.weights.chunks_exact(3 * count).zip(energy);
        unseen
            && rows.all(|(rows, energy)| {
                let limit = CHANCE * energy / poses.max(1) as f64 + f64::from(ROUNDING).powi(2);
                rows.iter().skip(feature).step_by(count).all(|weight| f64::from(*weight).powi(2) < limit)
            })
    };
    let control = |(feature, input): (usize, &u32)| {
        let control = (*input as usize).checked_sub(bones * BONE_INPUTS)?;
        is_idle(feature).then(|| features.controls[control] as usize)
    };
    features.parts.inputs.iter().enumerate().filter_map(control).collect()
}

/// Without a live rig: features with which an anchor's displacement, or its square, correlates more than chance does in
/// so many poses. `places`: `[N × 3A]`.
pub fn estimate(
    poses: &Recording,
    features: &Features,
    trained: &[usize],
    places: &[f32],
    anchors: usize,
) -> Vec<Vec<u32>> {
    debug_assert_eq!(places.len(), poses.len() * 3 * anchors, "three numbers an anchor and pose");
    let count = trained.len().min(MOST_POSES);
    let chosen: Vec<usize> = (0..count).map(|i| trained[i * trained.len() / count]).collect();
    // Squared correlations of useless numbers are about 1/n; the largest of thousands of them stays below this.
    let chance = 14.0 / count as f64;
    let standard = |mut numbers: Vec<f64>| {
        let mean = numbers.iter().sum::<f64>() / count as f64;
        numbers.iter_mut().for_each(|n| *n -= mean);
        let length = numbers.iter().map(|n| n * n).sum::<f64>().sqrt();
        numbers.iter_mut().for_each(|n| *n = if length > 1e-9 { *n / length } else { 0.0 });
        numbers
    };
    let feature = |feature: usize| {
        let values: Vec<f64> = chosen.iter().map(|pose| f64::from(features.of(*pose)[feature])).collect();
        let squares = values.iter().map(|v| v * v).collect();
        [standard(values), standard(squares)]
    };
    let columns: Vec<[Vec<f64>; 2]> = (0..features.count()).map(feature).collect();
    let of = |anchor: usize| {
        let coordinate = |axis: usize| {
            standard(
                chosen.iter().map(|pose| f64::from(places[(pose * anchors + anchor) * 3 + axis])).collect(),
            )
        };
        let truth = [0, 1, 2].map(coordinate);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let tells = |columns: &[Vec<f64>; 2]| {
            columns.iter().any(|column| truth.iter().any(|truth| dot(column, truth).powi(2) > chance))
        };
        (0u32..).zip(&columns).filter(|(_, columns)| tells(columns)).map(|(feature, _)| feature).collect()
    };
    (0..anchors).into_par_iter().map(of).collect()
}
