//! Which controls move a bone in its parent's frame: found by moving each on the live rig, else estimated from the
//! poses by forward selection.

use super::fit::{Design, Family, families_of, residual};
use super::targets::{Target, difference};
use super::{MechanismLearnError, PosedBones};
use rayon::prelude::*;
use std::collections::HashSet;
use understudy_core::{Affine3A, Channel, ControlKind, Controls, Random};
use understudy_rigs::{Rig, RigPose};

/// Random poses in which every control is moved, besides the rest pose; fewer of a rig that takes longer than so many ms.
const PROBE_POSES: u64 = 4;
const PROBE_POSES_SLOW: u64 = 2;
const SLOW_MS: f64 = 5.0;
/// Transforms that are kept at most.
const MOST_KEPT: usize = 8_000_000;

/// What every control does to every bone, as the live rig shows it.
pub(super) struct Probes {
    size: f32,
    controls: usize,
    /// World transforms of all bones in each base pose, with their inverses.
    bases: Vec<(Vec<Affine3A>, Vec<Affine3A>)>,
    /// The control that was moved, in which base pose, and the bones after it with their inverses.
    moved: Vec<(usize, usize, Vec<Affine3A>, Vec<Affine3A>)>,
}

impl Probes {
    /// Moves every control to both ends of its range and to a random value, from rest and from random poses.
    pub fn new(rig: &dyn Rig, poses: &PosedBones) -> Result<Self, MechanismLearnError> {
        const VALUES: u64 = 3;
        let specs = rig.specs();
        let count = poses.names.len();
        let room = MOST_KEPT / (2 * VALUES as usize * specs.len() * count).max(1);
        let bases = if rig.pose_ms().is_some_and(|ms| ms > SLOW_MS) { PROBE_POSES_SLOW } else { PROBE_POSES };
        let bases = bases.min(room.max(1) as u64 - 1);
        let draw = |index: u64| -> Controls {
            let mut random = Random::stream(0x3ec4_a215, index);
            let draw: Vec<f32> = specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
            if index == 0 { specs.defaults() } else { Controls(draw) }
        };
        let world = |controls: &Controls| -> Result<(Vec<Affine3A>, Vec<Affine3A>), MechanismLearnError> {
            let mut pose = RigPose::default();
            rig.evaluate(controls, &mut pose)?;
            let mut bones = pose.global.0;
            bones.append(&mut pose.guides);
            bones.truncate(count);
            let inverses = bones.iter().map(Affine3A::inverse).collect();
            Ok((bones, inverses))
        };
        let base: Vec<_> = (0..=bases).map(|index| world(&draw(index))).collect::<Result<_, _>>()?;
        let one = |job: u64| -> Result<_, MechanismLearnError> {
            let (control, index, value) =
                ((job / VALUES / (bases + 1)) as usize, job / VALUES % (bases + 1), job % VALUES);
            let spec = specs.get(control);
            let mut controls = draw(index);
            controls.0[control] = match value {
                0 => spec.low,
                1 => spec.high,
                _ => Random::stream(control as u64, index).uniform(spec.low, spec.high),
            };
            let (bones, inverses) = world(&controls)?;
            Ok((control, index as usize, bones, inverses))
        };
        let jobs = specs.len() as u64 * (bases + 1) * VALUES;
        let moved = (0..jobs).into_par_iter().map(one).collect::<Result<_, _>>()?;
        let size = poses.rest.iter().map(|bone| bone.translation.length()).fold(1.0, f32::max);
        Ok(Self { size, controls: specs.len(), bases: base, moved })
    }

    /// How far each control moves a bone in the frame of another, the strongest first; those that do not are left out.
    pub fn strengths(&self, bone: usize, frame: Option<usize>) -> Vec<(f32, u32)> {
        let local = |bones: &[Affine3A], inverses: &[Affine3A]| match frame {
            Some(frame) => inverses[frame] * bones[bone],
            None => bones[bone],
        };
        let before: Vec<Affine3A> =
            self.bases.iter().map(|(bones, inverses)| local(bones, inverses)).collect();
        let mut strengths = vec![0.0f32; self.controls];
        for (control, base, bones, inverses) in &self.moved {
            let far = difference(&before[*base], &local(bones, inverses), self.size);
            strengths[*control] = strengths[*control].max(far);
        }
        let mut found: Vec<(f32, u32)> =
            strengths.into_iter().zip(0..).filter(|(strength, _)| *strength > 0.0).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found
    }

    /// The controls that move a bone in the frame of another, the strongest first.
    pub fn controls(&self, bone: usize, frame: Option<usize>) -> Vec<u32> {
        self.strengths(bone, frame).into_iter().map(|(_, control)| control).collect()
    }
}

/// The same from the poses alone. Controls that are channels of the bone itself come first; then, one after another, the
/// control that explains most of what a fit to those before leaves, as long as it explains more than `k` useless
/// regressors would by chance in `n` poses.
pub(super) fn estimate(poses: &PosedBones, target: &Target, name: &str) -> Vec<u32> {
    /// Poses and controls that suffice.
    const POSES: usize = 1500;
    const MOST: usize = 16;
    /// What is left is rounding, radians.
    const NOTHING: f64 = 1e-4;
    /// Terms of the fits between.
    const TERMS: usize = 96;
    if target.width() == 0 {
        return Vec::new();
    }
    let count = poses.len().min(POSES);
    let rows: Vec<usize> = (0..count).map(|row| row * poses.len() / count).collect();
    let varies = |control: &usize| {
        let spec = poses.specs.get(*control);
        let values = rows.iter().map(|row| poses.controls_of(*row)[*control]);
        let (low, high) = values.fold((f32::MAX, f32::MIN), |(low, high), v| (low.min(v), high.max(v)));
        high - low > 1e-4 * (spec.high - spec.low)
    };
    let candidates: Vec<usize> = (0..poses.specs.len()).filter(varies).collect();
    let own = |control: &usize| {
        let kind = &poses.specs.get(*control).kind;
        matches!(kind, ControlKind::Joint { bone, .. } if bone == name)
    };
    let mut chosen: Vec<u32> = candidates.iter().filter(|c| own(c)).map(|c| *c as u32).collect();
    let column = |control: usize| -> Vec<f64> {
        let mut values: Vec<f64> =
            rows.iter().map(|row| f64::from(poses.controls_of(*row)[control])).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter_mut().for_each(|value| *value -= mean);
        let size = (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt().max(1e-30);
        values.iter_mut().for_each(|value| *value /= size);
        values
    };
    let columns: Vec<Vec<f64>> = candidates.iter().map(|control| column(*control)).collect();
    loop {
        let families: Vec<Family> =
            chosen.iter().map(|control| families_of(&poses.specs, *control)[0]).collect();
        let design = Design::new(poses, target, &chosen, &families, TERMS.min(count / 4));
        let left = residual(poses, target, &design, &rows);
        let width = target.width();
        let power: f64 = left.iter().map(|n| n * n).sum::<f64>() / count as f64;
        if power.sqrt() < NOTHING || chosen.len() >= MOST {
            return chosen;
        }
        let known: Vec<&Vec<f64>> = chosen
            .iter()
            .filter_map(|c| candidates.iter().position(|other| *other == *c as usize))
            .map(|place| &columns[place])
            .collect();
        let score = |place: usize| -> (f64, usize) {
            let x = &columns[place];
            let mut basis: Vec<Vec<f64>> = Vec::new();
            let products = known.iter().take(6).map(|k| x.iter().zip(*k).map(|(a, b)| a * b).collect());
            let powers =
                [x.clone(), x.iter().map(|v| v * v).collect(), x.iter().map(|v| v * v * v).collect()];
            for mut column in powers.into_iter().chain(products) {
                orthonormalise(&mut column, &basis);
                if column.iter().any(|v| *v != 0.0) {
                    basis.push(column);
                }
            }
            let mut explained = 0.0;
            for number in 0..width {
                for basis in &basis {
                    let along: f64 =
                        basis.iter().enumerate().map(|(row, b)| b * left[row * width + number]).sum();
                    explained += along * along;
                }
            }
            (explained / count as f64, basis.len())
        };
        let scores = (0..candidates.len()).filter(|place| !chosen.contains(&(candidates[*place] as u32)));
        let best = scores.map(|place| (score(place), place)).max_by(|a, b| a.0.0.total_cmp(&b.0.0));
        let Some(((explained, size), place)) = best else { return chosen };
        let chance = 2.0 * (size as f64 + 4.0 * (2.0 * size as f64).sqrt()) / count as f64;
        let more = match explained < chance * power {
            false => vec![candidates[place] as u32],
            // Two may do together what neither does alone: the swing of a joint changes how far it twists.
            true => couple(&columns, &left, width)
                .map(|couple| couple.map(|place| candidates[place] as u32).to_vec())
                .unwrap_or_default(),
        };
        let before = chosen.len();
        chosen.extend(more.into_iter().flat_map(|control| with_its_joint(poses, control, &candidates)));
        let mut seen = HashSet::new();
        chosen.retain(|control| seen.insert(*control));
        if chosen.len() == before {
            return chosen;
        }
    }
}

/// A control, and where it is a rotation of a joint, the joint's other rotations: they act together.
fn with_its_joint(poses: &PosedBones, control: u32, candidates: &[usize]) -> Vec<u32> {
    let turns = |control: usize| match &poses.specs.get(control).kind {
        ControlKind::Joint { bone, channel: Channel::RotateX | Channel::RotateY | Channel::RotateZ } => {
            Some(bone)
        }
        _ => None,
    };
    let mut all = vec![control];
    if let Some(bone) = turns(control as usize) {
        let others = candidates.iter().filter(|other| turns(**other) == Some(bone));
        all.extend(others.map(|other| *other as u32));
    }
    all
}

/// The two whose product explains most of what is left, where that is more than the best of so many products explains by
/// chance.
fn couple(columns: &[Vec<f64>], left: &[f64], width: usize) -> Option<[usize; 2]> {
    let count = left.len() / width;
    let power: f64 = left.iter().map(|n| n * n).sum();
    let one = |b: usize| -> (f64, [usize; 2]) {
        let mut best = (0.0, [0, b]);
        for a in 0..b {
            let mut along = vec![0.0; width];
            let mut size = 0.0;
            for (row, (x, y)) in columns[a].iter().zip(&columns[b]).enumerate() {
                let product = x * y;
                size += product * product;
                let row = &left[row * width..][..width];
                along.iter_mut().zip(row).for_each(|(sum, n)| *sum += product * n);
            }
            let explained = along.iter().map(|n| n * n).sum::<f64>() / size.max(1e-30);
            if explained > best.0 {
                best = (explained, [a, b]);
            }
        }
        best
    };
    let best = (1..columns.len()).map(one).max_by(|x, y| x.0.total_cmp(&y.0))?;
    let tried = (columns.len() * columns.len() / 2).max(2) as f64;
    // The largest of so many squares of normal numbers, twice.
    (best.0 > 4.0 * tried.ln() / count as f64 * power).then_some(best.1)
}

/// Makes a column of zero mean perpendicular to others and of length one; zero where nothing is left.
fn orthonormalise(column: &mut [f64], basis: &[Vec<f64>]) {
    let mean = column.iter().sum::<f64>() / column.len() as f64;
    column.iter_mut().for_each(|value| *value -= mean);
    let before = column.iter().map(|c| c * c).sum::<f64>().sqrt();
    for other in basis {
        let along: f64 = other.iter().zip(&*column).map(|(o, c)| o * c).sum();
        column.iter_mut().zip(other).for_each(|(c, o)| *c -= along * o);
    }
    let length = column.iter().map(|c| c * c).sum::<f64>().sqrt();
    let scale = if length > 1e-4 * before { 1.0 / length } else { 0.0 };
    column.iter_mut().for_each(|c| *c *= scale);
}
