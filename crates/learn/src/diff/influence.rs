//! Which features each anchor's mini-network sees: those that move the anchor. Found on the live rig by moving every
//! control at random poses by large steps, as the paper does; else estimated from the poses.

use super::features::Features;
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
/// Poses that suffice for an estimate.
const MOST_POSES: usize = 1500;

/// For every anchor the features that move it, ascending. `parents`: see [`Features::new`].
pub fn probe(
    rig: &dyn Rig,
    unskinning: &Unskinning,
    parents: &[Option<usize>],
    features: &Features,
    anchors: &[u32],
    settings: &DiffSettings,
) -> Result<Vec<Vec<u32>>, DiffLearnError> {
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
        Ok::<_, DiffLearnError>((controls, places, seen))
    };
    let bases =
        (0..=settings.probe_poses).into_par_iter().map(base).collect::<Result<Vec<_>, DiffLearnError>>()?;
    // Per control: the anchors that it moves and the features that tell of it.
    let one = |pose: &mut RigPose, control: usize| -> Result<(Vec<bool>, Vec<bool>), DiffLearnError> {
        let mut found = (vec![false; anchors.len()], vec![false; features.count()]);
        let spec = specs.get(control);
        for (index, (controls, places, seen)) in bases.iter().enumerate() {
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
            }
        }
        Ok(found)
    };
    let found: Vec<(Vec<bool>, Vec<bool>)> =
        (0..specs.len()).into_par_iter().map_init(RigPose::default, one).collect::<Result<_, _>>()?;
    let of = |anchor: usize| {
        let mut seen = vec![false; features.count()];
        for (_, tells) in found.iter().filter(|(moves, _)| moves[anchor]) {
            seen.iter_mut().zip(tells).for_each(|(seen, tells)| *seen |= tells);
        }
        (0u32..).zip(seen).filter(|(_, seen)| *seen).map(|(feature, _)| feature).collect()
    };
    Ok((0..anchors.len()).map(of).collect())
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
