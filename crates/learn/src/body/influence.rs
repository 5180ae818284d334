//! What each group's network must see: the bones, and the controls that move no bone, that change the
//! group's residual. Found on the live rig by [`probe`], else estimated from the poses by [`estimate`].

use super::{Armature, LearnError, Recording};
use rayon::prelude::*;
use understudy_core::{ControlKind, Controls, Random, Vec3};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::body::InputFrame;

/// A residual that changes by less is taken for unchanged, cm.
const VERTEX_THRESHOLD: f32 = 0.005;
/// A number of a bone in its parent's frame that changes by less is taken for unchanged.
const BONE_THRESHOLD: f32 = 1e-4;
/// Random poses in which every control is moved.
const PROBE_POSES: u64 = 4;

/// What a group's network sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupInputs {
    /// Bones, ascending; never the one root that carries everything.
    pub bones: Vec<u32>,
    /// Controls that move no bone, ascending.
    pub controls: Vec<u32>,
}

impl GroupInputs {
    /// The same bones with their parents, for networks that see all bones from `own`: a bone's place in
    /// its parent's frame follows from both. `own` itself never changes there.
    pub(super) fn with_parents(mut self, armature: &Armature, own: u32) -> Self {
        let parent = |bone: &u32| armature.parents[*bone as usize].map(|parent| parent as u32);
        let parents: Vec<u32> = self.bones.iter().filter_map(parent).collect();
        self.bones.extend(parents);
        self.bones.sort_unstable();
        self.bones.dedup();
        self.bones.retain(|bone| *bone != own);
        self
    }
}

/// Whether a network may see a bone at all. In their parents' frames, as the paper has it, a bone that hangs on
/// nothing would bring the place of the whole body in.
fn may_see(armature: &Armature, frame: InputFrame, bone: usize) -> bool {
    match frame {
        InputFrame::Parent => armature.parents[bone].is_some(),
        InputFrame::Group => armature.tells_shape(bone),
    }
}

/// Moves every control of the live rig at several random poses, to both ends of its range and to a
/// random value, and records which bones move in their parents' frames and which groups' residuals
/// change. `groups`: the bone and the vertices of each.
pub fn probe(
    rig: &dyn Rig,
    armature: &Armature,
    groups: &[(u32, Vec<u32>)],
    frame: InputFrame,
) -> Result<Vec<GroupInputs>, LearnError> {
    let rest = rig.mesh().positions();
    let specs = rig.specs();
    let bone_count = armature.parents.len();
    let measure = |pose: &RigPose| -> Vec<Vec<Vec3>> {
        let group = |(bone, members): &(u32, Vec<u32>)| {
            let bone = *bone as usize;
            let global = pose.global.0[bone];
            let (carrier, to_frame) = (global * armature.inverse_bind[bone], armature.to_frame(&global));
            let residual = |vertex: &u32| {
                let linear = carrier.transform_point3(rest[*vertex as usize]);
                to_frame.transform_vector3(pose.vertices[*vertex as usize] - linear)
            };
            members.iter().map(residual).collect()
        };
        groups.iter().map(group).collect()
    };
    let relative = |pose: &RigPose| -> Vec<[f32; 12]> {
        let numbers = |bone| armature.numbers(&pose.global.0, armature.parents[bone], bone);
        (0..bone_count).map(numbers).collect()
    };
    // Per control: the bones it moves and the groups it changes.
    type Found = (Vec<bool>, Vec<bool>);
    let found: Vec<Found> = (0..specs.len())
        .into_par_iter()
        .map_init(RigPose::default, |pose, control| -> Result<Found, LearnError> {
            let mut moved = (vec![false; bone_count], vec![false; groups.len()]);
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
                        *flag |= a.iter().zip(b).any(|(a, b)| (a - b).abs() > BONE_THRESHOLD);
                    }
                    for (flag, (a, b)) in moved.1.iter_mut().zip(residuals.iter().zip(&measure(pose))) {
                        *flag |= a.iter().zip(b).any(|(a, b)| a.distance(*b) > VERTEX_THRESHOLD);
                    }
                }
            }
            Ok(moved)
        })
        .collect::<Result<_, _>>()?;
    let inputs = |group: usize| {
        let mut seen = vec![false; bone_count];
        let mut controls = Vec::new();
        for (control, (bones, _)) in found.iter().enumerate().filter(|(_, (_, changed))| changed[group]) {
            if bones.iter().any(|moved| *moved) {
                seen.iter_mut().zip(bones).for_each(|(seen, moved)| *seen |= moved);
            } else {
                controls.push(control as u32);
            }
        }
        let bones = (0..bone_count).filter(|bone| seen[*bone] && may_see(armature, frame, *bone));
        GroupInputs { bones: bones.map(|b| b as u32).collect(), controls }
    };
    Ok((0..groups.len()).map(inputs).collect())
}

/// Without a live rig: keeps the bones and controls whose motion explains a share of the residuals' variance that
/// chance does not. Controls were drawn independently, so one at a time suffices: the squared multiple
/// correlation of each of a few random projections of the residual with a bone's twelve numbers, or a control's
/// one, and their squares, against the level that `k` useless regressors reach in `n` poses,
/// `k/n + 4 sqrt(2k)/n`. A control that some bone gives away is not asked for: the bone is.
pub fn estimate(
    poses: &Recording,
    armature: &Armature,
    groups: &[(u32, Vec<u32>)],
    frame: InputFrame,
) -> Vec<GroupInputs> {
    const PROJECTIONS: usize = 6;
    let chosen = poses.spread(1500);
    let bones: Vec<Vec<Vec<f64>>> = (0..armature.parents.len())
        .into_par_iter()
        .map(|bone| {
            let seen_from = armature.parents[bone];
            let row = |pose: &usize| armature.numbers(poses.bones_of(*pose), seen_from, bone).to_vec();
            regressors(&chosen.iter().map(row).collect::<Vec<_>>())
        })
        .collect();
    let controls = free_controls(poses, &chosen, &bones);
    let rest = poses.mesh.positions();
    let group_inputs = |(index, (bone, members)): (usize, &(u32, Vec<u32>))| {
        let bone = *bone as usize;
        let mut random = Random::stream(0x0e57, index as u64);
        let weights: Vec<Vec3> = (0..members.len() * PROJECTIONS)
            .map(|_| Vec3::from_array([0; 3].map(|_| random.normal() as f32)))
            .collect();
        let mut targets = vec![vec![0.0f64; chosen.len()]; PROJECTIONS];
        for (row, pose) in chosen.iter().enumerate() {
            let global = poses.bones_of(*pose)[bone];
            let (carrier, to_frame) = (global * armature.inverse_bind[bone], armature.to_frame(&global));
            let vertices = poses.vertices_of(*pose);
            for (place, vertex) in members.iter().enumerate() {
                let linear = carrier.transform_point3(rest[*vertex as usize]);
                let residual = to_frame.transform_vector3(vertices[*vertex as usize] - linear);
                for (projection, target) in targets.iter_mut().enumerate() {
                    target[row] += f64::from(residual.dot(weights[projection * members.len() + place]));
                }
            }
        }
        targets.iter_mut().for_each(|target| centre(target));
        let explains = |basis: &[Vec<f64>]| {
            let level = (basis.len() as f64 + 4.0 * (2.0 * basis.len() as f64).sqrt()) / chosen.len() as f64;
            targets.iter().any(|target| explained(basis, target) > level)
        };
        let seen = (0..bones.len()).filter(|bone| may_see(armature, frame, *bone) && explains(&bones[*bone]));
        let told = controls.iter().filter(|(_, basis)| explains(basis));
        GroupInputs {
            bones: seen.map(|bone| bone as u32).collect(),
            controls: told.map(|(control, _)| *control).collect(),
        }
    };
    groups.par_iter().enumerate().map(group_inputs).collect()
}

/// Controls that no bone gives away, with their regressors: shapes, drivers, and what else deforms by itself.
fn free_controls(poses: &Recording, chosen: &[usize], bones: &[Vec<Vec<f64>>]) -> Vec<(u32, Vec<Vec<f64>>)> {
    /// A bone whose motion explains that much of a control's variance stands for it.
    const GIVEN_AWAY: f64 = 0.9;
    let of_bone = |kind: &ControlKind| match kind {
        ControlKind::Joint { bone, .. } => poses.skeleton().find(bone).is_some(),
        ControlKind::Number => false,
    };
    let basis = |control: usize| -> Option<(u32, Vec<Vec<f64>>)> {
        if of_bone(&poses.specs.get(control).kind) {
            return None;
        }
        let rows: Vec<Vec<f32>> = chosen.iter().map(|pose| vec![poses.controls_of(*pose)[control]]).collect();
        let mut values: Vec<f64> = rows.iter().map(|row| f64::from(row[0])).collect();
        centre(&mut values);
        let basis = regressors(&rows);
        let given_away = || bones.iter().any(|bone| explained(bone, &values) > GIVEN_AWAY);
        (!basis.is_empty() && !given_away()).then_some((control as u32, basis))
    };
    (0..poses.specs.len()).into_par_iter().filter_map(basis).collect()
}

/// The share of a target's variance that an orthonormal basis explains; none of one that does not vary.
fn explained(basis: &[Vec<f64>], target: &[f64]) -> f64 {
    let whole: f64 = target.iter().map(|t| t * t).sum();
    let dot = |b: &Vec<f64>| b.iter().zip(target).map(|(b, t)| b * t).sum::<f64>();
    let part: f64 = basis.iter().map(|b| dot(b).powi(2)).sum();
    if whole > 1e-12 { part / whole } else { 0.0 }
}

fn centre(numbers: &mut [f64]) {
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    numbers.iter_mut().for_each(|n| *n -= mean);
}

/// An orthonormal basis of some numbers and their squares over the poses, mean removed. `rows`: the numbers of
/// each pose.
fn regressors<R: AsRef<[f32]>>(rows: &[R]) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let width = rows.first().map_or(0, |row| row.as_ref().len());
    for power in [1, 2] {
        for number in 0..width {
            let value = |row: &R| f64::from(row.as_ref()[number]).powi(power);
            let mut column: Vec<f64> = rows.iter().map(value).collect();
            centre(&mut column);
            let before = column.iter().map(|c| c * c).sum::<f64>().sqrt();
            for other in &basis {
                let along: f64 = other.iter().zip(&column).map(|(o, c)| o * c).sum();
                column.iter_mut().zip(other).for_each(|(c, o)| *c -= along * o);
            }
            let length = column.iter().map(|c| c * c).sum::<f64>().sqrt();
            // What rounding alone moves says nothing.
            if length > 1e-4 * before && before > 1e-6 * (rows.len() as f64).sqrt() {
                column.iter_mut().for_each(|c| *c /= length);
                basis.push(column);
            }
        }
    }
    basis
}
