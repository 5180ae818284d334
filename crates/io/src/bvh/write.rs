//! From [`Bvh`] to text: the file's own channels and rotation orders, in centimetres or any other unit.

use super::{Bvh, BvhChannel, euler, transform};
use crate::{WriteError, write_atomic};
use std::fmt::Write as _;
use std::path::Path;
use understudy_core::{JointTransform, Vec3};

/// How far a joint may be from where its channels can put it, cm.
pub(super) const POSITION_TOLERANCE: f32 = 1e-3;
/// How far a joint may be turned from what its channels can express, radians.
const ROTATION_TOLERANCE: f32 = 2e-3;

/// Writes a file, whole or not at all. `cm_per_unit`: 1 for centimetres,
/// `bvh.conversion.scale` for the unit of the file it came from.
pub fn write(path: &Path, bvh: &Bvh, cm_per_unit: f32) -> Result<(), WriteError> {
    let text = to_text(bvh, cm_per_unit).map_err(|problem| WriteError::new(path, problem))?;
    write_atomic(path, text.as_bytes())
}

/// [`fn@write`] into a string.
pub fn to_text(bvh: &Bvh, cm_per_unit: f32) -> Result<String, String> {
    check(bvh, cm_per_unit)?;
    let mut out = String::from("HIERARCHY\n");
    let order = write_hierarchy(bvh, cm_per_unit, &mut out);
    let frames = &bvh.clip.poses;
    let _ =
        write!(out, "MOTION\nFrames: {}\nFrame Time: {:.9}\n", frames.len(), 1.0 / f64::from(bvh.clip.rate));
    let mut before: Vec<Vec<f64>> = bvh.channels.iter().map(|_| Vec::new()).collect();
    for (frame, pose) in frames.iter().enumerate() {
        let mut separator = "";
        for &joint in &order {
            let values = joint_values(bvh, joint, &pose.0[joint], &mut before[joint]).map_err(|problem| {
                format!("joint '{}', frame {frame}: {problem}", bvh.skeleton.bones()[joint].name)
            })?;
            for (channel, value) in bvh.channels[joint].iter().zip(values) {
                let value = match channel {
                    BvhChannel::Position(_) => value / f64::from(cm_per_unit),
                    BvhChannel::Rotation(_) => value,
                };
                let _ = write!(out, "{separator}{}", Number(value));
                separator = " ";
            }
        }
        out.push('\n');
    }
    Ok(out)
}

/// Six decimals, and no minus before a zero.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 1e6).round() / 1e6;
        write!(f, "{:.6}", rounded + 0.0)
    }
}

fn check(bvh: &Bvh, cm_per_unit: f32) -> Result<(), String> {
    let count = bvh.skeleton.len();
    if bvh.channels.len() != count {
        return Err(format!("channels for {} joints, but the skeleton has {count}", bvh.channels.len()));
    }
    if bvh.channels.iter().all(Vec::is_empty) {
        return Err("no joint has a channel".into());
    }
    for channels in &bvh.channels {
        for (place, channel) in channels.iter().enumerate() {
            let (BvhChannel::Position(axis) | BvhChannel::Rotation(axis)) = *channel;
            if axis > 2 || channels[..place].contains(channel) {
                return Err(format!("a joint has {channel:?} twice, or it is no axis"));
            }
        }
    }
    if let Some(joint) = bvh.end_sites.iter().map(|(joint, _)| *joint).find(|joint| *joint >= count) {
        return Err(format!("an end site on joint {joint}, but there are {count}"));
    }
    if bvh.clip.poses.is_empty() {
        return Err("the clip has no frames".into());
    }
    if let Some(frame) = bvh.clip.poses.iter().position(|pose| pose.0.len() != count) {
        return Err(format!(
            "frame {frame} has {} joints, the skeleton {count}",
            bvh.clip.poses[frame].0.len()
        ));
    }
    for (what, value) in [("frame rate", bvh.clip.rate), ("scale", cm_per_unit)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(format!("a {what} of {value}"));
        }
    }
    Ok(())
}

/// Writes the joints depth first and returns them in that order, which the numbers of a frame follow.
fn write_hierarchy(bvh: &Bvh, cm_per_unit: f32, out: &mut String) -> Vec<usize> {
    let bones = bvh.skeleton.bones();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); bones.len()];
    let mut roots = Vec::new();
    for (joint, bone) in bones.iter().enumerate() {
        match bone.parent {
            Some(parent) => children[parent].push(joint),
            None => roots.push(joint),
        }
    }
    enum Step {
        Enter(usize, usize),
        Leave(usize),
    }
    let mut order = Vec::new();
    let mut stack: Vec<Step> = roots.into_iter().rev().map(|root| Step::Enter(root, 0)).collect();
    while let Some(step) = stack.pop() {
        let (joint, depth) = match step {
            Step::Enter(joint, depth) => (joint, depth),
            Step::Leave(depth) => {
                let _ = writeln!(out, "{}}}", "\t".repeat(depth));
                continue;
            }
        };
        order.push(joint);
        let tabs = "\t".repeat(depth);
        let kind = if depth == 0 { "ROOT" } else { "JOINT" };
        let name =
            bones[joint].name.split_whitespace().collect::<Vec<_>>().join(" ").replace(['{', '}'], "_");
        let _ = write!(out, "{tabs}{kind} {name}\n{tabs}{{\n");
        write_offset(bones[joint].rest.translation / cm_per_unit, depth + 1, out);
        let _ = write!(out, "{tabs}\tCHANNELS {}", bvh.channels[joint].len());
        for channel in &bvh.channels[joint] {
            let _ = write!(out, " {}", channel.name());
        }
        out.push('\n');
        for (_, offset) in bvh.end_sites.iter().filter(|(at, _)| *at == joint) {
            let _ = write!(out, "{tabs}\tEnd Site\n{tabs}\t{{\n");
            write_offset(*offset / cm_per_unit, depth + 2, out);
            let _ = writeln!(out, "{tabs}\t}}");
        }
        stack.push(Step::Leave(depth));
        stack.extend(children[joint].iter().rev().map(|child| Step::Enter(*child, depth + 1)));
    }
    order
}

fn write_offset(offset: Vec3, depth: usize, out: &mut String) {
    let [x, y, z] = offset.to_array().map(|value| Number(value.into()));
    let _ = writeln!(out, "{}OFFSET {x} {y} {z}", "\t".repeat(depth));
}

/// One value per channel: cm and degrees.
fn joint_values(
    bvh: &Bvh,
    joint: usize,
    pose: &JointTransform,
    before: &mut Vec<f64>,
) -> Result<Vec<f64>, &'static str> {
    if !pose.is_finite() {
        return Err("a transform that is not finite");
    }
    let channels = &bvh.channels[joint];
    let axes: Vec<usize> = channels
        .iter()
        .filter_map(|channel| match channel {
            BvhChannel::Rotation(axis) => Some(*axis),
            BvhChannel::Position(_) => None,
        })
        .collect();
    let rotation = pose.rotation.as_dquat().normalize();
    let angles = if axes.is_empty() { Vec::new() } else { euler::angles(rotation, &axes, before) };
    let mut next_angle = angles.iter().map(|angle| angle.to_degrees());
    let values: Vec<f64> = channels
        .iter()
        .map(|channel| match channel {
            BvhChannel::Position(axis) => f64::from(pose.translation[*axis]),
            BvhChannel::Rotation(_) => next_angle.next().unwrap_or(0.0),
        })
        .collect();
    // What the channels cannot say must not be lost without a word.
    let said = transform(bvh.skeleton.bones()[joint].rest.translation, channels, &values);
    if said.translation.distance(pose.translation) > POSITION_TOLERANCE {
        return Err("moves along an axis that its channels do not have");
    }
    if said.rotation.angle_between(pose.rotation.normalize()) > ROTATION_TOLERANCE {
        return Err("turns about an axis that its channels do not have");
    }
    if pose.scale.distance(Vec3::ONE) > POSITION_TOLERANCE {
        return Err("is scaled, which BVH cannot say");
    }
    *before = angles;
    Ok(values)
}
