//! Animations as clips: keys of nodes and morph weights, linear, stepped or cubic, sampled at a rate.

use super::accessor::Accessors;
use super::metres::vector_to_cm;
use super::morph::Morphs;
use super::nodes::{NodeBones, Nodes, UniqueNames, at_least_smallest, unit};
use super::sampler::{Curve, detect_rate};
use crate::ParseError;
use ::gltf::json::Root;
use ::gltf::json::animation::{Animation, Property};
use ::gltf::json::validation::Checked;
use glam::{Quat, Vec3};
use serde::{Deserialize, Serialize};
use understudy_core::{JointClip, JointPose};

/// `extras` of an animation: the rate that our own writer sampled at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct AnimationExtras {
    pub rate: Option<f32>,
}

/// What a curve moves.
enum Target {
    Bone(usize, Property),
    /// The weight column of each value; `None` for a corrective.
    Weights(Vec<Option<usize>>),
}

/// Which nodes some animation moves.
pub(super) fn animated_nodes(root: &Root) -> Result<Vec<bool>, ParseError> {
    let mut animated = vec![false; root.nodes.len()];
    for (index, animation) in root.animations.iter().enumerate() {
        for (number, channel) in animation.channels.iter().enumerate() {
            let node = channel.target.node.value();
            let slot = animated.get_mut(node).ok_or_else(|| {
                ParseError::new(
                    place(index, animation),
                    format!("channel {number} moves node {node}, which does not exist"),
                )
            })?;
            *slot |= !matches!(channel.target.path, Checked::Valid(Property::MorphTargetWeights));
        }
    }
    Ok(animated)
}

/// All animations of the document.
pub(super) fn read_clips(
    root: &Root,
    nodes: &Nodes,
    bones: &NodeBones,
    morphs: &Morphs,
    rate: Option<f32>,
    accessors: &Accessors<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<JointClip>, ParseError> {
    let mut names = UniqueNames::default();
    let mut clips = Vec::with_capacity(root.animations.len());
    for (index, animation) in root.animations.iter().enumerate() {
        let place = place(index, animation);
        let curves = read_curves(root, nodes, bones, morphs, animation, &place, accessors)?;
        let noted: Option<AnimationExtras> =
            animation.extras.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        let noted =
            noted.and_then(|e| e.rate).filter(|rate| rate.is_finite() && (1.0..=1000.0).contains(rate));
        let rate = rate.or(noted).unwrap_or_else(|| {
            detect_rate(curves.iter().map(|(_, curve)| curve.times())).unwrap_or_else(|| {
                warnings.push(format!("{place}: keys lie on no common frame rate, sampled at 30"));
                30.0
            })
        });
        let name = match animation.name.as_ref().filter(|name| !name.is_empty()) {
            Some(name) => names.take(name),
            None => names.take(&format!("animation {index}")),
        };
        clips.push(sample(name, rate, &curves, bones, morphs, &place, accessors)?);
    }
    Ok(clips)
}

fn place(index: usize, animation: &Animation) -> String {
    match &animation.name {
        Some(name) => format!("animation {index} ('{name}')"),
        None => format!("animation {index}"),
    }
}

fn read_curves(
    root: &Root,
    nodes: &Nodes,
    bones: &NodeBones,
    morphs: &Morphs,
    animation: &Animation,
    place: &str,
    accessors: &Accessors<'_>,
) -> Result<Vec<(Target, Curve)>, ParseError> {
    let mut curves = Vec::with_capacity(animation.channels.len());
    for (number, channel) in animation.channels.iter().enumerate() {
        let fail = |problem: String| ParseError::new(format!("{place} channel {number}"), problem);
        let node = channel.target.node.value();
        let Checked::Valid(property) = channel.target.path else { continue };
        let target = match property {
            Property::MorphTargetWeights => {
                let mesh = root.nodes[node].mesh.map(|mesh| mesh.value()).filter(|_| nodes.in_scene[node]);
                let Some(columns) = mesh.and_then(|mesh| morphs.of_target.get(&mesh)) else { continue };
                Target::Weights(columns.clone())
            }
            property => match bones.of_node[node] {
                Some(bone) => Target::Bone(bone, property),
                None => continue,
            },
        };
        let width = match (&target, property) {
            (Target::Weights(columns), _) => columns.len(),
            (_, Property::Rotation) => 4,
            _ => 3,
        };
        let sampler = animation.samplers.get(channel.sampler.value());
        let sampler = sampler.ok_or_else(|| fail("names a sampler that does not exist".into()))?;
        let Checked::Valid(interpolation) = sampler.interpolation else {
            return Err(fail("has an unknown interpolation".into()));
        };
        let times = accessors.floats(sampler.input.value(), 1)?;
        let element = if matches!(target, Target::Weights(_)) { 1 } else { width };
        let values = accessors.floats(sampler.output.value(), element)?;
        let turns = property == Property::Rotation;
        curves.push((target, Curve::new(times, values, width, interpolation, turns).map_err(fail)?));
    }
    Ok(curves)
}

fn sample(
    name: String,
    rate: f32,
    curves: &[(Target, Curve)],
    bones: &NodeBones,
    morphs: &Morphs,
    place: &str,
    accessors: &Accessors<'_>,
) -> Result<JointClip, ParseError> {
    let fail = |problem: String| ParseError::new(place, problem);
    let duration = curves.iter().map(|(_, curve)| curve.end()).fold(0.0, f64::max);
    let last = (duration * f64::from(rate)).round();
    let moves_shapes = curves.iter().any(|(target, _)| matches!(target, Target::Weights(_)));
    let shape_count = if moves_shapes { morphs.shapes.len() } else { 0 };
    let numbers = (last + 1.0) * (10 * bones.bones.len() + shape_count + curves.len()) as f64;
    // Casting a float saturates, so a duration of 1e30 s is charged as more than there is.
    accessors.charge(place, numbers as u64)?;
    let rest = JointPose(bones.bones.iter().map(|bone| bone.rest).collect());
    let frames = last as usize + 1;
    let mut clip = JointClip { name, rate, poses: vec![rest; frames], shape_weights: Vec::new() };
    if moves_shapes {
        clip.shape_weights = vec![morphs.rest_weights.clone(); frames];
    }
    let mut buffer = Vec::new();
    for (target, curve) in curves {
        for frame in 0..frames {
            curve.at(frame as f64 / f64::from(rate), 1.0 / f64::from(rate), &mut buffer);
            match target {
                Target::Bone(bone, property) => {
                    let joint = &mut clip.poses[frame].0[*bone];
                    match property {
                        Property::Rotation => {
                            let turn = unit(Quat::from_slice(&buffer));
                            joint.rotation = turn
                                .ok_or_else(|| fail(format!("a rotation of no length in frame {frame}")))?;
                        }
                        Property::Translation => joint.translation = vector_to_cm(Vec3::from_slice(&buffer)),
                        _ => joint.scale = at_least_smallest(Vec3::from_slice(&buffer)),
                    }
                    if !joint.is_finite() {
                        return Err(fail(format!("a transform that is not finite in frame {frame}")));
                    }
                }
                Target::Weights(columns) => {
                    for (column, &weight) in columns.iter().zip(&buffer) {
                        if let Some(column) = column {
                            clip.shape_weights[frame][*column] = weight;
                        }
                    }
                }
            }
        }
    }
    if clip.shape_weights.iter().flatten().any(|weight| !weight.is_finite()) {
        return Err(fail("a shape weight that is not finite".into()));
    }
    Ok(clip)
}
