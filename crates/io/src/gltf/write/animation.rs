//! Clips as animations: a linear key a frame where something moves, two where it stands still away from
//! its rest, none where it rests.

use super::super::animation::AnimationExtras;
use super::super::metres::vector_to_metres;
use super::super::nodes::unit;
use super::packer::{Draft, Packer, bounds};
use super::{GltfScene, SceneError, index, raw};
use ::gltf::json::accessor::Type;
use ::gltf::json::animation::{Animation, Channel, Interpolation, Property, Sampler, Target};
use ::gltf::json::validation::Checked::Valid;
use ::gltf::json::{Index, Node};
use understudy_core::JointClip;

/// Arrays of one clip, to share one view of the buffer.
struct Sheet {
    values: Vec<f32>,
    drafts: Vec<Draft>,
    /// Accessor numbers of input and output of each channel, counted among the drafts.
    channels: Vec<(usize, usize, Index<Node>, Property)>,
    /// Drafts with the times of all frames, and of the first and the last.
    times: [Option<usize>; 2],
    frames: usize,
    rate: f32,
}

/// `None` for a clip that has nothing to move.
pub(super) fn clip_animation(
    scene: &GltfScene<'_>,
    clip: &JointClip,
    name: String,
    mesh_node: Index<Node>,
    packer: &mut Packer,
) -> Result<Option<Animation>, SceneError> {
    let frames = clip.poses.len().max(clip.shape_weights.len());
    let mut sheet = Sheet {
        values: Vec::new(),
        drafts: Vec::new(),
        channels: Vec::new(),
        times: [None; 2],
        frames,
        rate: clip.rate,
    };
    if let Some((skeleton, _)) = scene.skin {
        for (bone, data) in skeleton.bones().iter().enumerate() {
            let fail = || SceneError::Rotation { bone: data.name.clone() };
            let rest = unit(data.rest.rotation).ok_or_else(fail)?;
            let mut turns = Vec::with_capacity(frames);
            let mut last = rest;
            for pose in &clip.poses {
                let turn = unit(pose.0[bone].rotation).ok_or_else(fail)?;
                // Neighbouring keys on one half of the sphere: programs that blend linearly stay right.
                last = if last.dot(turn) < 0.0 { -turn } else { turn };
                turns.push(last.to_array());
            }
            let moves: Vec<_> =
                clip.poses.iter().map(|p| vector_to_metres(p.0[bone].translation).to_array()).collect();
            let scales: Vec<_> = clip.poses.iter().map(|p| p.0[bone].scale.to_array()).collect();
            sheet.push(
                index(bone),
                Property::Translation,
                &moves,
                vector_to_metres(data.rest.translation).to_array(),
            );
            sheet.push(index(bone), Property::Rotation, &turns, rest.to_array());
            sheet.push(index(bone), Property::Scale, &scales, data.rest.scale.to_array());
        }
        if sheet.channels.is_empty() && clip.shape_weights.is_empty() {
            // A clip that rests throughout still has a length.
            let rest = skeleton.bones()[0].rest.scale.to_array();
            sheet.channel(index(0), Property::Scale, &vec![rest; frames]);
        }
    }
    if scene.shape_count() > 0 && !clip.shape_weights.is_empty() {
        let rows: Vec<Vec<f32>> = clip.shape_weights.iter().map(|w| scene.target_weights(w)).collect();
        sheet.weights(mesh_node, &rows);
    }
    Ok(sheet.finish(name, packer))
}

impl Sheet {
    fn push<const N: usize>(
        &mut self,
        node: Index<Node>,
        property: Property,
        values: &[[f32; N]],
        rest: [f32; N],
    ) {
        if values.iter().any(|value| *value != rest) {
            self.channel(node, property, values);
        }
    }

    fn channel<const N: usize>(&mut self, node: Index<Node>, property: Property, values: &[[f32; N]]) {
        let rows: Vec<&[f32]> = values.iter().map(|value| value.as_slice()).collect();
        let (input, rows) = self.thin_out(&rows);
        let kind = if N == 4 { Type::Vec4 } else { Type::Vec3 };
        let output = self.draft(&rows.concat(), rows.len(), kind, None);
        self.channels.push((input, output, node, property));
    }

    fn weights(&mut self, node: Index<Node>, rows: &[Vec<f32>]) {
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let (input, rows) = self.thin_out(&rows);
        let values = rows.concat();
        let output = self.draft(&values, values.len(), Type::Scalar, None);
        self.channels.push((input, output, node, Property::MorphTargetWeights));
    }

    /// Times and rows of the keys that are needed: all, or the first and the last.
    fn thin_out<'v>(&mut self, rows: &[&'v [f32]]) -> (usize, Vec<&'v [f32]>) {
        let still = rows.len() > 2 && rows.iter().all(|row| *row == rows[0]);
        let ends = [0, self.frames - 1];
        let kept: Vec<&[f32]> = if still { ends.map(|frame| rows[frame]).to_vec() } else { rows.to_vec() };
        let input = match self.times[usize::from(still)] {
            Some(input) => input,
            None => {
                let at = |frame: usize| (frame as f64 / f64::from(self.rate)) as f32;
                let times: Vec<f32> =
                    if still { ends.map(at).to_vec() } else { (0..self.frames).map(at).collect() };
                let limits = bounds(times.iter().map(|time| [*time]));
                let input = self.draft(&times, times.len(), Type::Scalar, limits);
                self.times[usize::from(still)] = Some(input);
                input
            }
        };
        (input, kept)
    }

    fn draft(
        &mut self,
        values: &[f32],
        count: usize,
        kind: Type,
        bounds: Option<(Vec<f32>, Vec<f32>)>,
    ) -> usize {
        self.drafts.push(Draft { offset: 4 * self.values.len(), count, kind, bounds });
        self.values.extend_from_slice(values);
        self.drafts.len() - 1
    }

    fn finish(self, name: String, packer: &mut Packer) -> Option<Animation> {
        if self.channels.is_empty() {
            return None;
        }
        let accessors = packer.floats_with(&self.values, self.drafts);
        let (mut channels, mut samplers) = (Vec::new(), Vec::new());
        for (input, output, node, property) in self.channels {
            channels.push(Channel {
                sampler: index(samplers.len()),
                target: Target { node, path: Valid(property), extensions: None, extras: None },
                extensions: None,
                extras: None,
            });
            samplers.push(Sampler {
                input: accessors[input],
                output: accessors[output],
                interpolation: Valid(Interpolation::Linear),
                extensions: None,
                extras: None,
            });
        }
        let extras = raw(&AnimationExtras { rate: Some(self.rate) });
        Some(Animation { name: Some(name), channels, samplers, extras, extensions: None })
    }
}
