//! Clips as animations. Frames become a linear key each where something moves, two where it stands still
//! away from its rest, none where it rests; keys stay the keys they are.

use super::super::animation::AnimationExtras;
use super::super::metres::{to_metres, vector_to_metres};
use super::super::nodes::unit;
use super::packer::{Draft, Packer, bounds};
use super::{GltfScene, SceneError, index, raw};
use ::gltf::json::accessor::Type;
use ::gltf::json::animation::{Animation, Channel, Interpolation, Property, Sampler, Target};
use ::gltf::json::validation::Checked::Valid;
use ::gltf::json::{Index, Node};
use std::collections::HashMap;
use understudy_core::{JointClip, JointProperty, KeyedClip, TrackInterpolation};

/// Arrays of one clip, to share one view of the buffer.
struct Sheet {
    values: Vec<f32>,
    drafts: Vec<Draft>,
    channels: Vec<DraftChannel>,
    /// The draft of every row of times that was written, by its bits.
    inputs: HashMap<Vec<u32>, usize>,
    frames: usize,
    rate: f32,
}

/// A channel whose accessors are counted among the drafts.
struct DraftChannel {
    input: usize,
    output: usize,
    node: Index<Node>,
    property: Property,
    interpolation: Interpolation,
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
    let mut sheet = Sheet::new(frames, clip.rate);
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

/// Keys as they are; `None` for a clip that has nothing to move.
pub(super) fn keyed_animation(
    scene: &GltfScene<'_>,
    clip: &KeyedClip,
    name: String,
    mesh_node: Index<Node>,
    packer: &mut Packer,
) -> Option<Animation> {
    let mut sheet = Sheet::new(0, clip.rate);
    for bone in &clip.bones {
        let (property, kind) = match bone.property {
            JointProperty::Translation => (Property::Translation, Type::Vec3),
            JointProperty::Rotation => (Property::Rotation, Type::Vec4),
            JointProperty::Scale => (Property::Scale, Type::Vec3),
        };
        let track = &bone.track;
        let mut values = track.values().to_vec();
        if property == Property::Translation {
            values.iter_mut().for_each(|value| *value = to_metres(*value));
        }
        let (input, count) = (sheet.input(track.times()), values.len() / track.width());
        let output = sheet.draft(&values, count, kind, None);
        let interpolation = interpolation_name(track.interpolation());
        sheet.channels.push(DraftChannel { input, output, node: index(bone.bone), property, interpolation });
    }
    if !clip.weights.is_empty() && scene.shape_count() > 0 {
        sheet.keyed_weights(scene, clip, mesh_node);
    }
    if let Some((skeleton, _)) = scene.skin.filter(|_| sheet.channels.is_empty()) {
        // A clip without tracks is still a clip.
        sheet.frames = 1;
        sheet.channel(index(0), Property::Scale, &[skeleton.bones()[0].rest.scale.to_array()]);
    }
    sheet.finish(name, packer)
}

fn interpolation_name(interpolation: TrackInterpolation) -> Interpolation {
    match interpolation {
        TrackInterpolation::Step => Interpolation::Step,
        TrackInterpolation::Linear => Interpolation::Linear,
        TrackInterpolation::CubicSpline => Interpolation::CubicSpline,
    }
}

impl Sheet {
    fn new(frames: usize, rate: f32) -> Self {
        let (values, drafts, channels) = (Vec::new(), Vec::new(), Vec::new());
        Self { values, drafts, channels, inputs: HashMap::new(), frames, rate }
    }

    /// The draft of a row of times, written once.
    fn input(&mut self, times: &[f32]) -> usize {
        let bits: Vec<u32> = times.iter().map(|time| time.to_bits()).collect();
        if let Some(input) = self.inputs.get(&bits) {
            return *input;
        }
        let limits = bounds(times.iter().map(|time| [*time]));
        let input = self.draft(times, times.len(), Type::Scalar, limits);
        self.inputs.insert(bits, input);
        input
    }

    /// Weights of all targets of the one mesh that is written. Tracks of one kind on the same keys are put
    /// side by side; others meet on all of their keys, which loses nothing between linear ones. Splines and
    /// steps that do not agree get a key per frame beside them.
    fn keyed_weights(&mut self, scene: &GltfScene<'_>, clip: &KeyedClip, node: Index<Node>) {
        let tracks = || clip.weights.iter().map(|weights| &weights.track);
        let first = &clip.weights[0].track;
        let rest = scene.rest_shape_weights();
        let correctives = scene.target_weights(&rest).len() > rest.len();
        let kind = first.interpolation();
        let same_kind = tracks().all(|track| track.interpolation() == kind);
        let same_keys = tracks().all(|track| track.times() == first.times());
        let spline = kind == TrackInterpolation::CubicSpline;
        let (times, rows, interpolation) = if same_kind && same_keys && !(spline && correctives) {
            let copies = if spline { 3 } else { 1 };
            let row = |place: usize| {
                // Tangents of a weight that rests are zero.
                let tangent = spline && place % 3 != 1;
                let mut row = if tangent { vec![0.0; rest.len()] } else { rest.clone() };
                for weights in &clip.weights {
                    let width = weights.track.width();
                    let values = &weights.track.values()[place * width..(place + 1) * width];
                    for (shape, &value) in weights.shapes.iter().zip(values) {
                        shape.iter().for_each(|shape| row[*shape] = value);
                    }
                }
                scene.target_weights(&row)
            };
            let rows = (0..copies * first.times().len()).map(row).collect::<Vec<_>>();
            (first.times().to_vec(), rows, interpolation_name(kind))
        } else {
            let mut times: Vec<f32> = tracks().flat_map(|track| track.times()).copied().collect();
            if !tracks().all(|track| track.interpolation() == TrackInterpolation::Linear) {
                times
                    .extend((0..clip.own_frames()).map(|frame| (frame as f64 / f64::from(clip.rate)) as f32));
            }
            times.sort_by(f32::total_cmp);
            times.dedup();
            let row = |time: &f32| scene.target_weights(&clip.weights_at(f64::from(*time), &rest));
            let rows = times.iter().map(row).collect();
            (times, rows, Interpolation::Linear)
        };
        let input = self.input(&times);
        let values = rows.concat();
        let output = self.draft(&values, values.len(), Type::Scalar, None);
        let property = Property::MorphTargetWeights;
        self.channels.push(DraftChannel { input, output, node, property, interpolation });
    }

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
        let interpolation = Interpolation::Linear;
        self.channels.push(DraftChannel { input, output, node, property, interpolation });
    }

    fn weights(&mut self, node: Index<Node>, rows: &[Vec<f32>]) {
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let (input, rows) = self.thin_out(&rows);
        let values = rows.concat();
        let output = self.draft(&values, values.len(), Type::Scalar, None);
        let (property, interpolation) = (Property::MorphTargetWeights, Interpolation::Linear);
        self.channels.push(DraftChannel { input, output, node, property, interpolation });
    }

    /// Times and rows of the keys that are needed: all, or the first and the last.
    fn thin_out<'v>(&mut self, rows: &[&'v [f32]]) -> (usize, Vec<&'v [f32]>) {
        let still = rows.len() > 2 && rows.iter().all(|row| *row == rows[0]);
        let ends = [0, self.frames - 1];
        let kept: Vec<&[f32]> = if still { ends.map(|frame| rows[frame]).to_vec() } else { rows.to_vec() };
        let at = |frame: usize| (frame as f64 / f64::from(self.rate)) as f32;
        let times: Vec<f32> = if still { ends.map(at).to_vec() } else { (0..self.frames).map(at).collect() };
        let input = self.input(&times);
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
        for DraftChannel { input, output, node, property, interpolation } in self.channels {
            channels.push(Channel {
                sampler: index(samplers.len()),
                target: Target { node, path: Valid(property), extensions: None, extras: None },
                extensions: None,
                extras: None,
            });
            samplers.push(Sampler {
                input: accessors[input],
                output: accessors[output],
                interpolation: Valid(interpolation),
                extensions: None,
                extras: None,
            });
        }
        let extras = raw(&AnimationExtras { rate: Some(self.rate) });
        Some(Animation { name: Some(name), channels, samplers, extras, extensions: None })
    }
}
