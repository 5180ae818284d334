//! Animation of an FBX scene, sampled: curves, layers, pivots and rotation orders become keys at every frame.

use super::geometry::Parts;
use super::{FbxOptions, vector};
use crate::ParseError;
use crate::assembly::joint;
use crate::names::UniqueNames;
use glam::DQuat;
use std::sync::Arc;
use ufbx::{Anim, AnimStack, Scene};
use understudy_core::{BoneTrack, JointProperty, KeyedClip, Track, TrackInterpolation, WeightTrack};

/// Reads every take that moves something.
pub(super) fn read(
    scene: &Scene,
    parts: &Parts,
    options: &FbxOptions,
    size: usize,
    warnings: &mut Vec<String>,
) -> Result<Vec<KeyedClip>, ParseError> {
    /// Keys that a file of any size may become, and how many more for every byte.
    const SMALL: f64 = 400_000.0;
    const GROWTH: f64 = 64.0;
    let mut left = SMALL + GROWTH * size as f64;
    let rate = options.rate.unwrap_or(scene.settings.frames_per_second);
    let rate = if rate.is_finite() && (0.1..=10_000.0).contains(&rate) { rate } else { 30.0 };
    let mut names = UniqueNames::default();
    let mut clips = Vec::new();
    for stack in &scene.anim_stacks {
        let name = names.take(stack.element.name.as_ref());
        let (begin, end) = span_of(stack);
        let span = end - begin;
        if !(span.is_finite() && begin.is_finite() && span >= 0.0) || stack.layers.is_empty() {
            continue;
        }
        let frames = (span * rate + 1e-3).floor() + 1.0;
        left -= frames * (parts.bones.len() + parts.shapes.len()) as f64;
        if left < 0.0 {
            let problem = format!("{frames} frames are more than the file's size tells");
            return Err(ParseError::new(format!("animation '{name}'"), problem));
        }
        let times: Vec<f64> = (0..frames as usize).map(|frame| begin + frame as f64 / rate).collect();
        let start = if options.file_times { 0.0 } else { begin };
        if times[0] < start {
            warnings.push(format!("animation '{name}' begins {:.3} s before zero", -times[0]));
        }
        let seconds: Arc<[f32]> = times.iter().map(|time| (time - start) as f32).collect();
        let ascending = seconds[0] >= 0.0 && seconds.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending {
            warnings.push(format!(
                "animation '{name}' is skipped: its times, {begin} to {end} s, cannot be kept"
            ));
            continue;
        }
        let mut clip = KeyedClip { name, rate: rate as f32, bones: Vec::new(), weights: Vec::new() };
        read_bones(scene, &stack.anim, parts, &times, &seconds, &mut clip)?;
        read_shapes(scene, &stack.anim, parts, &times, &seconds, &mut clip)?;
        if !(clip.bones.is_empty() && clip.weights.is_empty()) {
            clips.push(clip);
        }
    }
    Ok(clips)
}

/// From when to when an animation plays: as it says itself, else from its first key to its last, since programs leave out
/// what is the default of theirs.
fn span_of(stack: &AnimStack) -> (f64, f64) {
    if stack.time_end > stack.time_begin {
        return (stack.time_begin, stack.time_end);
    }
    let values = stack.layers.iter().flat_map(|layer| layer.anim_values.iter());
    let curves = values.flat_map(|value| value.curves.iter().filter_map(|curve| curve.as_ref()));
    let times = curves.flat_map(|curve| curve.keyframes.iter().map(|key| key.time));
    let keys = times.fold(None, |range: Option<(f64, f64)>, time| {
        Some(range.map_or((time, time), |(first, last)| (first.min(time), last.max(time))))
    });
    keys.unwrap_or((stack.time_begin, stack.time_end))
}

fn read_bones(
    scene: &Scene,
    anim: &Anim,
    parts: &Parts,
    times: &[f64],
    seconds: &Arc<[f32]>,
    clip: &mut KeyedClip,
) -> Result<(), ParseError> {
    let mut bones: Vec<(u32, usize)> = parts.bones.iter().map(|(node, bone)| (*node, *bone)).collect();
    bones.sort_unstable_by_key(|(_, bone)| *bone);
    for (node, bone) in bones {
        let Some(node) = scene.nodes.get(node as usize) else { continue };
        let mut channels = [const { Vec::new() }; 3];
        for &time in times {
            let local = ufbx::evaluate_transform(anim, node, time);
            let r = local.rotation;
            let rotation = DQuat::from_xyzw(r.x, r.y, r.z, r.w);
            let local = joint(vector(local.scale), rotation, vector(local.translation));
            if !local.is_finite() {
                let place = format!("animation '{}'", clip.name);
                return Err(ParseError::new(
                    place,
                    format!("node '{}' is not finite", node.element.name.as_ref()),
                ));
            }
            channels[0].extend(local.translation.to_array());
            channels[1].extend(local.rotation.to_array());
            channels[2].extend(local.scale.to_array());
        }
        // What stands still needs one key: it may rest elsewhere.
        let rest = &node.local_transform;
        let r = rest.rotation;
        let rest = joint(vector(rest.scale), DQuat::from_xyzw(r.x, r.y, r.z, r.w), vector(rest.translation));
        let rests = [
            rest.translation.to_array().to_vec(),
            rest.rotation.to_array().to_vec(),
            rest.scale.to_array().to_vec(),
        ];
        let kinds = [JointProperty::Translation, JointProperty::Rotation, JointProperty::Scale];
        for ((property, values), rest) in kinds.into_iter().zip(channels).zip(rests) {
            let width = rest.len();
            let still = values.chunks_exact(width).all(|value| value == &values[..width]);
            if still && values[..width] == rest[..] {
                continue;
            }
            let fail = |problem: String| ParseError::new(format!("animation '{}'", clip.name), problem);
            let (keys, values) = match still {
                true => (Arc::from(&seconds[..1]), values[..width].to_vec()),
                false => (seconds.clone(), values),
            };
            let track = match property {
                JointProperty::Rotation => Track::rotations(keys, values, TrackInterpolation::Linear),
                _ => Track::new(keys, values, width, TrackInterpolation::Linear),
            };
            clip.bones.push(BoneTrack { bone, property, track: track.map_err(fail)? });
        }
    }
    Ok(())
}

fn read_shapes(
    scene: &Scene,
    anim: &Anim,
    parts: &Parts,
    times: &[f64],
    seconds: &Arc<[f32]>,
    clip: &mut KeyedClip,
) -> Result<(), ParseError> {
    let mut shapes = Vec::new();
    let mut columns: Vec<Vec<f32>> = Vec::new();
    for &(channel, shape) in &parts.shapes {
        let Some(channel) = scene.blend_channels.get(channel as usize) else { continue };
        let weights = times.iter().map(|time| ufbx::evaluate_blend_weight(anim, channel, *time) as f32);
        let weights: Vec<f32> = weights.map(|weight| if weight.is_finite() { weight } else { 0.0 }).collect();
        if weights.iter().any(|weight| *weight != channel.weight as f32) {
            shapes.push(Some(shape));
            columns.push(weights);
        }
    }
    if shapes.is_empty() {
        return Ok(());
    }
    let values = (0..times.len()).flat_map(|frame| columns.iter().map(move |column| column[frame])).collect();
    let track = Track::new(seconds.clone(), values, shapes.len(), TrackInterpolation::Linear)
        .map_err(|problem| ParseError::new(format!("animation '{}'", clip.name), problem))?;
    clip.weights.push(WeightTrack { shapes, track });
    Ok(())
}
