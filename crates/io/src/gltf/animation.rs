//! Animations as clips of keys: bones and morph weights, linear, stepped or cubic, as the file has them.

use super::accessor::Accessors;
use super::metres::to_cm;
use super::morph::Morphs;
use super::nodes::{NodeBones, Nodes};
use super::rate::detect_rate;
use crate::ParseError;
use crate::names::UniqueNames;
use ::gltf::json::Root;
use ::gltf::json::animation::{Animation, Interpolation, Property};
use ::gltf::json::validation::Checked;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use understudy_core::{BoneTrack, JointProperty, KeyedClip, Track, TrackInterpolation, WeightTrack};

/// `extras` of an animation: the rate that our own writer sampled at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct AnimationExtras {
    pub rate: Option<f32>,
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

/// What reading an animation needs to know.
pub(super) struct ClipReader<'a> {
    pub root: &'a Root,
    pub nodes: &'a Nodes,
    pub bones: &'a NodeBones,
    pub morphs: &'a Morphs,
    /// Frames per second, where the caller knows better than the keys.
    pub rate: Option<f32>,
    pub accessors: &'a Accessors<'a>,
}

impl ClipReader<'_> {
    /// All animations of the document.
    pub fn read(&self, warnings: &mut Vec<String>) -> Result<Vec<KeyedClip>, ParseError> {
        let mut names = UniqueNames::default();
        let mut times = HashMap::new();
        let mut clips = Vec::with_capacity(self.root.animations.len());
        let mut uneven = Vec::new();
        for (index, animation) in self.root.animations.iter().enumerate() {
            let place = place(index, animation);
            let name = match animation.name.as_ref().filter(|name| !name.is_empty()) {
                Some(name) => names.take(name),
                None => names.take(&format!("animation {index}")),
            };
            let mut clip = KeyedClip { name, rate: 30.0, bones: Vec::new(), weights: Vec::new() };
            self.read_tracks(animation, &place, &mut times, &mut clip)?;
            let noted: Option<AnimationExtras> =
                animation.extras.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
            let noted =
                noted.and_then(|e| e.rate).filter(|rate| rate.is_finite() && (1.0..=1000.0).contains(rate));
            let bones = clip.bones.iter().map(|bone| bone.track.times());
            let tracks = bones.chain(clip.weights.iter().map(|weights| weights.track.times()));
            clip.rate = self.rate.or(noted).unwrap_or_else(|| {
                detect_rate(tracks).unwrap_or_else(|| {
                    uneven.push(clip.name.clone());
                    30.0
                })
            });
            self.check_length(&clip, &place)?;
            clips.push(clip);
        }
        if let Some(first) = uneven.first() {
            warnings.push(format!(
                "keys of {} of {} animations ('{first}' first) lie on no common frame rate: frames are counted at \
                 30 per second",
                uneven.len(),
                clips.len()
            ));
        }
        Ok(clips)
    }

    fn read_tracks(
        &self,
        animation: &Animation,
        place: &str,
        times_of: &mut HashMap<usize, Arc<[f32]>>,
        clip: &mut KeyedClip,
    ) -> Result<(), ParseError> {
        for (number, channel) in animation.channels.iter().enumerate() {
            let fail = |problem: String| ParseError::new(format!("{place} channel {number}"), problem);
            let node = channel.target.node.value();
            let Checked::Valid(property) = channel.target.path else { continue };
            let sampler = animation.samplers.get(channel.sampler.value());
            let sampler = sampler.ok_or_else(|| fail("names a sampler that does not exist".into()))?;
            let interpolation = match sampler.interpolation {
                Checked::Valid(Interpolation::Step) => TrackInterpolation::Step,
                Checked::Valid(Interpolation::Linear) => TrackInterpolation::Linear,
                Checked::Valid(Interpolation::CubicSpline) => TrackInterpolation::CubicSpline,
                Checked::Invalid => return Err(fail("has an unknown interpolation".into())),
            };
            let mut times = || -> Result<Arc<[f32]>, ParseError> {
                let input = sampler.input.value();
                if let Some(times) = times_of.get(&input) {
                    return Ok(times.clone());
                }
                let times: Arc<[f32]> = self.accessors.floats(input, 1)?.into();
                times_of.insert(input, times.clone());
                Ok(times)
            };
            let output = sampler.output.value();
            if property == Property::MorphTargetWeights {
                let mesh = self.root.nodes[node].mesh.map(|mesh| mesh.value());
                let mesh = mesh.filter(|_| self.nodes.in_scene[node]);
                let Some(shapes) = mesh.and_then(|mesh| self.morphs.of_target.get(&mesh)) else { continue };
                let values = self.accessors.floats(output, 1)?;
                let track = Track::new(times()?, values, shapes.len(), interpolation).map_err(fail)?;
                clip.weights.push(WeightTrack { shapes: shapes.clone(), track });
                continue;
            }
            let Some(bone) = self.bones.of_node[node] else { continue };
            let (property, track) = match property {
                Property::Rotation => {
                    let values = self.accessors.floats(output, 4)?;
                    (JointProperty::Rotation, Track::rotations(times()?, values, interpolation))
                }
                Property::Translation => {
                    let metres = self.accessors.floats(output, 3)?;
                    let values = metres.into_iter().map(to_cm).collect();
                    (JointProperty::Translation, Track::new(times()?, values, 3, interpolation))
                }
                _ => {
                    let values = self.accessors.floats(output, 3)?;
                    (JointProperty::Scale, Track::new(times()?, values, 3, interpolation))
                }
            };
            clip.bones.push(BoneTrack { bone, property, track: track.map_err(fail)? });
        }
        Ok(())
    }

    /// Whether the clip's frames fit into memory. Casting a float saturates, so a duration of 1e30 s is
    /// charged as more than there is.
    fn check_length(&self, clip: &KeyedClip, place: &str) -> Result<(), ParseError> {
        let last = (clip.duration() * f64::from(clip.rate)).round();
        let shapes = if clip.weights.is_empty() { 0 } else { self.morphs.shapes.len() };
        let per_frame = 10 * self.bones.bones.len() + shapes + clip.bones.len() + clip.weights.len();
        self.accessors.charge(place, ((last + 1.0) * per_frame as f64) as u64)
    }
}

fn place(index: usize, animation: &Animation) -> String {
    match &animation.name {
        Some(name) => format!("animation {index} ('{name}')"),
        None => format!("animation {index}"),
    }
}
