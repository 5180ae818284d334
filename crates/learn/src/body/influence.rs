//! What each group's network must see: the bones, and the controls that move no bone, that change the
//! group's residual.

use super::{LearnError, Poses};
use rayon::prelude::*;
use understudy_core::{Affine3A, Controls, Random, Skeleton, Vec3};
use understudy_rigs::{Rig, RigPose};

/// A residual that changes by less is taken for unchanged, cm.
const VERTEX_THRESHOLD: f32 = 0.005;
/// A bone's transform in its parent's frame that changes by less is taken for unchanged.
const BONE_THRESHOLD: f32 = 1e-4;
/// Random poses in which every control is moved.
const PROBE_POSES: u64 = 4;

/// What a group's network sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupInputs {
    /// Bones, ascending; roots are never among them.
    pub bones: Vec<u32>,
    /// Controls that move no bone, ascending.
    pub controls: Vec<u32>,
}

impl GroupInputs {
    /// The same bones with their parents, for networks that see all bones from `own`: a bone's place in
    /// its parent's frame follows from both. `own` itself never changes there.
    pub(super) fn with_parents(mut self, skeleton: &Skeleton, own: u32) -> Self {
        let parent = |bone: &u32| skeleton.bones()[*bone as usize].parent.map(|parent| parent as u32);
        let parents: Vec<u32> = self.bones.iter().filter_map(parent).collect();
        self.bones.extend(parents);
        self.bones.sort_unstable();
        self.bones.dedup();
        self.bones.retain(|bone| *bone != own);
        self
    }
}

/// Moves every control of the live rig at several random poses, to both ends of its range and to a
/// random value, and records which bones move in their parents' frames and which groups' residuals
/// change. `groups`: the bone and the vertices of each.
pub fn probe(rig: &dyn Rig, groups: &[(u32, Vec<u32>)]) -> Result<Vec<GroupInputs>, LearnError> {
    let skeleton = rig.skeleton().ok_or(LearnError::Count { what: "bones of the rig", got: 0, want: 1 })?;
    let rest = rig.mesh().positions();
    let specs = rig.specs();
    let inverse_rest: Vec<Affine3A> = skeleton.rest_global().iter().map(Affine3A::inverse).collect();
    let measure = |pose: &RigPose| -> Vec<Vec<Vec3>> {
        let residual = |bone: u32, vertex: u32| {
            let to_bone = pose.global.0[bone as usize].inverse();
            to_bone.transform_point3(pose.vertices[vertex as usize])
                - inverse_rest[bone as usize].transform_point3(rest[vertex as usize])
        };
        groups.iter().map(|(bone, members)| members.iter().map(|v| residual(*bone, *v)).collect()).collect()
    };
    let relative = |pose: &RigPose| {
        let mut out = Vec::new();
        skeleton.relative_to_parent(&pose.global, &mut out);
        out
    };
    // Per control: the bones it moves and the groups it changes.
    type Found = (Vec<bool>, Vec<bool>);
    let found: Vec<Found> = (0..specs.len())
        .into_par_iter()
        .map_init(RigPose::default, |pose, control| -> Result<Found, LearnError> {
            let mut moved = (vec![false; skeleton.len()], vec![false; groups.len()]);
            for index in 0..PROBE_POSES {
                let mut random = Random::stream(0x1f1_0e4ce, index);
                let draw: Vec<f32> = specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
                let mut controls = if index == 0 { specs.defaults() } else { Controls(draw) };
                rig.evaluate(&controls, pose)?;
                let (residuals, bones) = (measure(pose), relative(pose));
                let spec = specs.get(control);
                let other = Random::stream(control as u64, index).uniform(spec.low, spec.high);
                for value in [spec.low, spec.high, other] {
                    controls.0[control] = value;
                    rig.evaluate(&controls, pose)?;
                    for (flag, (a, b)) in moved.0.iter_mut().zip(bones.iter().zip(&relative(pose))) {
                        *flag |= !a.abs_diff_eq(*b, BONE_THRESHOLD);
                    }
                    for (flag, (a, b)) in moved.1.iter_mut().zip(residuals.iter().zip(&measure(pose))) {
                        *flag |= a.iter().zip(b).any(|(a, b)| a.distance(*b) > VERTEX_THRESHOLD);
                    }
                }
            }
            Ok(moved)
        })
        .collect::<Result<_, _>>()?;
    let roots: Vec<bool> = skeleton.bones().iter().map(|bone| bone.parent.is_none()).collect();
    let inputs = |group: usize| {
        let mut seen = vec![false; skeleton.len()];
        let mut controls = Vec::new();
        for (control, (bones, _)) in found.iter().enumerate().filter(|(_, (_, changed))| changed[group]) {
            if bones.iter().any(|moved| *moved) {
                seen.iter_mut().zip(bones).for_each(|(seen, moved)| *seen |= moved);
            } else {
                controls.push(control as u32);
            }
        }
        let bones = (0..seen.len()).filter(|bone| seen[*bone] && !roots[*bone]).map(|b| b as u32).collect();
        GroupInputs { bones, controls }
    };
    Ok((0..groups.len()).map(inputs).collect())
}

/// Without a live rig: keeps the bones whose motion explains a share of the residuals' variance that
/// chance does not. Controls were drawn independently, so one bone at a time suffices: the squared
/// multiple correlation of each of a few random projections of the residual with the bone's twelve
/// numbers and their squares, against the level that `k` useless regressors reach in `n` poses,
/// `k/n + 4 sqrt(2k)/n`.
pub fn estimate(poses: &Poses<'_>, groups: &[(u32, Vec<u32>)]) -> Vec<GroupInputs> {
    const PROJECTIONS: usize = 6;
    let chosen = poses.spread(1500);
    let skeleton = poses.skeleton;
    let mut relative = vec![Vec::new(); chosen.len()];
    for (slot, pose) in relative.iter_mut().zip(&chosen) {
        let global = understudy_core::GlobalPose(poses.bones_of(*pose).to_vec());
        skeleton.relative_to_parent(&global, slot);
    }
    let columns: Vec<Vec<Vec<f64>>> = (0..skeleton.len()).map(|bone| regressors(&relative, bone)).collect();
    let inverse_rest: Vec<Affine3A> = skeleton.rest_global().iter().map(Affine3A::inverse).collect();
    let rest = poses.mesh.positions();
    let group_inputs = |(index, (bone, members)): (usize, &(u32, Vec<u32>))| {
        let mut random = Random::stream(0x0e57, index as u64);
        let weights: Vec<Vec3> = (0..members.len() * PROJECTIONS)
            .map(|_| Vec3::from_array([0; 3].map(|_| random.normal() as f32)))
            .collect();
        let mut targets = vec![vec![0.0f64; chosen.len()]; PROJECTIONS];
        for (row, pose) in chosen.iter().enumerate() {
            let to_bone = poses.bones_of(*pose)[*bone as usize].inverse();
            let vertices = poses.vertices_of(*pose);
            for (place, vertex) in members.iter().enumerate() {
                let local = inverse_rest[*bone as usize].transform_point3(rest[*vertex as usize]);
                let residual = to_bone.transform_point3(vertices[*vertex as usize]) - local;
                for (projection, target) in targets.iter_mut().enumerate() {
                    target[row] += f64::from(residual.dot(weights[projection * members.len() + place]));
                }
            }
        }
        targets.iter_mut().for_each(|target| centre(target));
        let explains = |candidate: usize| {
            let basis = &columns[candidate];
            let level = (basis.len() as f64 + 4.0 * (2.0 * basis.len() as f64).sqrt()) / chosen.len() as f64;
            targets.iter().any(|target| {
                let whole: f64 = target.iter().map(|t| t * t).sum();
                let dot = |b: &Vec<f64>| b.iter().zip(target).map(|(b, t)| b * t).sum::<f64>();
                let part: f64 = basis.iter().map(|b| dot(b).powi(2)).sum();
                whole > 1e-12 && part / whole > level
            })
        };
        let candidates = (0..skeleton.len()).filter(|b| skeleton.bones()[*b].parent.is_some());
        GroupInputs {
            bones: candidates.filter(|b| explains(*b)).map(|b| b as u32).collect(),
            controls: vec![],
        }
    };
    groups.par_iter().enumerate().map(group_inputs).collect()
}

fn centre(numbers: &mut [f64]) {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    numbers.iter_mut().for_each(|n| *n -= mean);
}

/// An orthonormal basis of a bone's twelve numbers and their squares over the poses, mean removed.
fn regressors(relative: &[Vec<Affine3A>], bone: usize) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for power in [1, 2] {
        for number in 0..12 {
            let value = |pose: &Vec<Affine3A>| f64::from(pose[bone].to_cols_array()[number]).powi(power);
            let mut column: Vec<f64> = relative.iter().map(value).collect();
            centre(&mut column);
            let before = column.iter().map(|c| c * c).sum::<f64>().sqrt();
            for other in &basis {
                let along: f64 = other.iter().zip(&column).map(|(o, c)| o * c).sum();
                column.iter_mut().zip(other).for_each(|(c, o)| *c -= along * o);
            }
            let length = column.iter().map(|c| c * c).sum::<f64>().sqrt();
            if length > 1e-4 * before.max(1e-3) {
                column.iter_mut().for_each(|c| *c /= length);
                basis.push(column);
            }
        }
    }
    basis
}
