//! What the networks see (eq. 9): of every bone the twelve numbers of its transform in its parent's frame, so that the
//! motion of the root is no input, and of every control its value. Translations are normalised together, and so are axes;
//! every control by itself.

use super::DiffLearnError;
use crate::Recording;
use rayon::prelude::*;
use understudy_core::ControlKind;
use understudy_runtime::diff::{BONE_INPUTS, FeatureParts};

/// Numbers of a bone that are axes; the others are a place.
const AXES: usize = 9;
/// A number that changes by less, root mean square, is taken for constant: degrees, cm or a share.
const CONSTANT: f64 = 1e-5;

/// No normalised control is larger than one over this.
const FARTHEST: f64 = 0.25;

/// Features of all poses.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// For the twin; `inputs` are indices into `12 · J` numbers of bones and the `controls` below.
    pub parts: FeatureParts,
    /// The recorded controls that the twin has as inputs: all of them without bones, else those that vary and are no
    /// channel of a joint.
    pub controls: Vec<u32>,
    /// `[N × F]`.
    pub values: Vec<f32>,
}

impl Features {
    /// Of all poses; constants are left out, means and scales are those of the poses that are trained on. `parents`: the
    /// bone in whose frame each is seen; none where the twin has no bones.
    pub fn new(
        poses: &Recording,
        parents: &[Option<usize>],
        trained: &[usize],
    ) -> Result<Self, DiffLearnError> {
        let bones = parents.len();
        let raw = |pose: usize| -> Vec<f32> {
            let mut numbers = Vec::with_capacity(bones * BONE_INPUTS + poses.specs.len());
            let global = if bones > 0 { poses.bones_of(pose) } else { &[] };
            for (bone, parent) in global.iter().zip(parents) {
                match parent {
                    Some(parent) => numbers.extend((global[*parent].inverse() * *bone).to_cols_array()),
                    None => numbers.extend([0.0; BONE_INPUTS]),
                }
            }
            numbers.extend_from_slice(poses.controls_of(pose));
            numbers
        };
        let rows: Vec<Vec<f32>> = (0..poses.len()).into_par_iter().map(raw).collect();
        let width = bones * BONE_INPUTS + poses.specs.len();
        let (mut mean, mut variance) = (vec![0.0f64; width], vec![0.0f64; width]);
        let count = trained.len().max(1) as f64;
        for pose in trained {
            mean.iter_mut().zip(&rows[*pose]).for_each(|(sum, n)| *sum += f64::from(*n) / count);
        }
        for pose in trained {
            let numbers = variance.iter_mut().zip(&rows[*pose]).zip(&mean);
            numbers.for_each(|((sum, n), mean)| *sum += (f64::from(*n) - mean).powi(2) / count);
        }
        // A control that clips seldom use has a small deviation: its few large values would swamp a network.
        let mut farthest = vec![0.0f64; width];
        for pose in trained {
            let numbers = farthest.iter_mut().zip(&rows[*pose]).zip(&mean);
            numbers.for_each(|((most, n), mean)| *most = most.max((f64::from(*n) - mean).abs()));
        }
        let of_bones = bones * BONE_INPUTS;
        let beside = |spec: usize| bones == 0 || poses.specs.get(spec).kind == ControlKind::Number;
        let seen = |number: &usize| {
            variance[*number].sqrt() > CONSTANT && (*number < of_bones || beside(*number - of_bones))
        };
        let kept: Vec<usize> = (0..width).filter(seen).collect();
        if kept.is_empty() {
            return Err(DiffLearnError::NothingSeen);
        }
        // Without bones the header names all controls of the rig, as a face twin's does.
        let controls: Vec<u32> = match bones {
            0 => (0..poses.specs.len() as u32).collect(),
            _ => kept.iter().filter(|n| **n >= of_bones).map(|n| (*n - of_bones) as u32).collect(),
        };
        let place = |control: usize| {
            let place = controls.binary_search(&(control as u32)).expect("controls of features are inputs");
            of_bones + place
        };
        let together = |axes: bool| {
            let own = kept.iter().filter(|n| **n < of_bones && (**n % BONE_INPUTS < AXES) == axes);
            let (sum, count) = own.fold((0.0, 0.0), |(sum, count), n| (sum + variance[*n], count + 1.0));
            if count > 0.0 { (sum / count).sqrt() } else { 1.0 }
        };
        let [axes, places] = [true, false].map(together);
        let deviation = |number: usize| match number {
            n if n >= of_bones => variance[n].sqrt().max(FARTHEST * farthest[n]),
            n if n % BONE_INPUTS < AXES => axes,
            _ => places,
        };
        let index = |n: usize| if n < of_bones { n } else { place(n - of_bones) } as u32;
        let parts = FeatureParts {
            inputs: kept.iter().map(|n| index(*n)).collect(),
            mean: kept.iter().map(|n| mean[*n] as f32).collect(),
            scale: kept.iter().map(|n| (1.0 / deviation(*n)) as f32).collect(),
        };
        let normalised = |row: &Vec<f32>| {
            let numbers = kept.iter().zip(parts.mean.iter().zip(&parts.scale));
            numbers.map(|(n, (mean, scale))| (row[*n] - mean) * scale).collect::<Vec<f32>>()
        };
        let values = rows.iter().flat_map(normalised).collect();
        Ok(Self { parts, controls, values })
    }

    /// Number of features.
    pub fn count(&self) -> usize {
        self.parts.inputs.len()
    }

    /// Of one pose.
    pub fn of(&self, pose: usize) -> &[f32] {
        &self.values[pose * self.count()..(pose + 1) * self.count()]
    }
}
