//! A model from a file as a rig: its shapes and its animated bones become controls, its animations become clips of
//! those controls. Start at [`model_rig`].

use crate::convert::stick_figure;
use std::sync::Arc;
use understudy_core::control_map::{joint_channels, turn_between};
use understudy_core::{
    BoneTrack, Channel, Clip, ControlMap, ControlSpec, ControlSpecs, JointPose, JointProperty, KeyedClip,
    Motion, Purpose, Skeleton, SkinWeights, Track, TrackInterpolation, Vec3,
};
use understudy_io::Model;
use understudy_io::bvh::Bvh;
use understudy_rigs::deformers::{Blendshapes, RigSize, Skinning};
use understudy_rigs::{RigError, StackParts, StackRig};

/// A channel that moves no vertex further than this share of the rig's size is rounding, not animation: two
/// thousandths of a millimetre on a person.
const NOISE: f32 = 1e-6;

/// Range of a rotation that no clip shows, degrees.
const FREE_ROTATION: f32 = 45.0;

/// The most that random poses turn the figure as a whole about one axis, degrees; the bones that carry most of it
/// share this, since their turns add up along the spine.
const WHOLE_FIGURE_TURN: f32 = 60.0;

/// A rotation with a gap smaller than this, degrees, goes all the way round.
const FULL_TURN_GAP: f32 = 30.0;

/// Builds the rig. A bone gets a control for every channel that some clip moves and that moves some vertex
/// by more than rounding, with the range that `angle_range` and `shown_range` find; in a file without
/// animation every joint of a skin gets its three rotations. A shape's range is 0 to 1, wider where a clip
/// goes further.
pub fn model_rig(name: &str, model: &Model) -> Result<StackRig, RigError> {
    let rest = Arc::new(model.rest_pose());
    let mut specs = match model.bound() {
        None => Vec::new(),
        Some((skeleton, _)) if model.clips.is_empty() => free_joints(model, skeleton),
        Some((skeleton, skin)) => shown_joints(model, skeleton, skin, &rest),
    };
    let shapes = model.shapes.iter().flat_map(|shapes| shapes.shapes());
    let mut ranges: Vec<(f32, f32)> = model.rest_weights.iter().map(|w| (w.min(0.0), w.max(1.0))).collect();
    for clip in &model.clips {
        for time in moments(clip) {
            for ((low, high), weight) in ranges.iter_mut().zip(clip.weights_at(time, &model.rest_weights)) {
                (*low, *high) = (low.min(weight), high.max(weight));
            }
        }
    }
    for ((shape, (low, high)), default) in shapes.zip(ranges).zip(&model.rest_weights) {
        specs.push(ControlSpec::number(&shape.name, low, high, *default));
    }
    let specs = ControlSpecs::new(specs)?;

    let map = Arc::new(ControlMap::new(&specs, model.skeleton.as_ref(), model.shapes.as_ref()));
    let rest_weights: Arc<[f32]> = model.rest_weights.clone().into();
    let clips = model.clips.iter().map(|clip| Clip {
        name: clip.name.clone(),
        duration: clip.duration() as f32,
        rate: Some(clip.rate),
        curves: Vec::new(),
        motion: Some(Motion {
            keys: clip.clone(),
            rest: rest.clone(),
            rest_weights: rest_weights.clone(),
            map: map.clone(),
        }),
        purpose: Purpose::Training,
    });
    let clips = clips.collect();

    let size = RigSize::new(&model.mesh, model.skeleton.as_ref(), &specs);
    let mut parts = StackParts {
        skeleton: model.skeleton.clone(),
        weights: model.skin.clone(),
        blendshapes: model.shapes.clone(),
        clips,
        colours: model.colours.iter().flatten().map(|colour| to_srgb(*colour)).collect(),
        ..StackParts::default()
    };
    if let Some(shapes) = &model.shapes {
        parts.deformers.push(Box::new(Blendshapes::by_name(shapes.clone(), &specs, &size)?));
    }
    if let Some(skin) = &model.skin {
        parts.deformers.push(Box::new(Skinning::linear(skin.clone(), &size)?));
    }
    StackRig::new(name, model.mesh.clone(), specs, parts)
}

/// Where ranges are measured: every frame and halfway between, because a turn between two keys may lean
/// further than either.
fn moments(clip: &KeyedClip) -> impl Iterator<Item = f64> {
    let step = 0.5 / f64::from(clip.rate);
    (0..2 * clip.own_frames() - 1).map(move |half| half as f64 * step)
}

/// Bones that move without a mesh, as a figure of sticks: what a motion file can be posed by.
pub(super) fn stick_model(motion: &Bvh) -> Result<Model, String> {
    let skeleton = &motion.skeleton;
    let (mesh, skin) = stick_figure(skeleton).map_err(|error| error.to_string())?;
    let poses = &motion.clip.poses;
    let times: Arc<[f32]> = (0..poses.len()).map(|frame| frame as f32 / motion.clip.rate).collect();
    let mut bones = Vec::new();
    for (bone, data) in skeleton.bones().iter().enumerate().filter(|_| !poses.is_empty()) {
        let turns = poses.iter().flat_map(|pose| pose.0[bone].rotation.to_array()).collect();
        let track = Track::rotations(times.clone(), turns, TrackInterpolation::Linear)?;
        bones.push(BoneTrack { bone, property: JointProperty::Rotation, track });
        if data.parent.is_none() {
            let places = poses.iter().flat_map(|pose| pose.0[bone].translation.to_array()).collect();
            let track = Track::new(times.clone(), places, 3, TrackInterpolation::Linear)?;
            bones.push(BoneTrack { bone, property: JointProperty::Translation, track });
        }
    }
    let clip =
        KeyedClip { name: motion.clip.name.clone(), rate: motion.clip.rate, bones, weights: Vec::new() };
    Ok(Model {
        skeleton: Some(skeleton.clone()),
        joints: (0..skeleton.len()).collect(),
        skin: Some(skin),
        clips: if poses.is_empty() { Vec::new() } else { vec![clip] },
        warnings: motion.warnings.clone(),
        ..Model::still(mesh, motion.conversion.clone())
    })
}

fn control(skeleton: &Skeleton, bone: usize, channel: Channel, (low, high): (f32, f32)) -> ControlSpec {
    let bone = &skeleton.bones()[bone].name;
    ControlSpec::joint(format!("{bone}.{}", channel.label()), bone, channel, low, high)
}

/// The rotations of every joint of a skin.
fn free_joints(model: &Model, skeleton: &Skeleton) -> Vec<ControlSpec> {
    let rotations = &Channel::ALL[..3];
    let joints =
        model.joints.iter().flat_map(|joint| rotations.iter().map(move |channel| (*joint, *channel)));
    joints.map(|(j, channel)| control(skeleton, j, channel, (-FREE_ROTATION, FREE_ROTATION))).collect()
}

/// The channels that clips move.
fn shown_joints(
    model: &Model,
    skeleton: &Skeleton,
    skin: &SkinWeights,
    rest: &JointPose,
) -> Vec<ControlSpec> {
    let mut shown = vec![Shown::default(); skeleton.len()];
    for clip in &model.clips {
        let mut moved: Vec<usize> = clip.bones.iter().map(|track| track.bone).collect();
        moved.sort_unstable();
        moved.dedup();
        for time in moments(clip) {
            let pose = clip.pose_at(time, rest);
            for &bone in &moved {
                let (from, to) = (&rest.0[bone], &pose.0[bone]);
                let angle = turn_between(from, to).w.abs().min(1.0).acos() * 2.0;
                shown[bone].largest_turn = shown[bone].largest_turn.max(angle.to_degrees() as f32);
                let values = joint_channels(from, to);
                shown[bone].channels.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
            }
        }
    }
    let (low, high) = model.mesh.bounds();
    let noise = NOISE * low.distance(high);
    let reach = reaches(&model.rest_vertices(), skeleton, skin);
    let carries_most = |bone: usize| 2 * reach[bone].carried > model.mesh.vertex_count();
    let turning = |bone: &usize| carries_most(*bone) && shown[*bone].largest_turn > 1.0;
    let share = WHOLE_FIGURE_TURN / (0..skeleton.len()).filter(turning).count().max(1) as f32;
    let mut specs = Vec::new();
    for (bone, Shown { channels, mut largest_turn }) in shown.into_iter().enumerate() {
        // Lying down and somersaults are turns of the whole figure: they show nothing of how it bends, and
        // drawn at random, bone by bone, they would stand it on its head.
        if carries_most(bone) {
            largest_turn = largest_turn.min(share.min(FREE_ROTATION));
        }
        for (channel, mut values) in Channel::ALL.into_iter().zip(channels) {
            let most = values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let (effect, range) = match channel as usize {
                0..3 => (most.to_radians() * reach[bone].turned, angle_range(&mut values, largest_turn)),
                3..6 => (most * reach[bone].moved, shown_range(&values)),
                _ => (most * reach[bone].turned, shown_range(&values)),
            };
            if effect > noise {
                specs.push(control(skeleton, bone, channel, range));
            }
        }
    }
    specs
}

/// What clips show of a bone.
#[derive(Clone, Default)]
struct Shown {
    /// All values of every channel.
    channels: [Vec<f32>; 9],
    /// The largest angle between the bone and its rest, degrees.
    largest_turn: f32,
}

/// What a bone does to vertices, its own and those of the bones below it: nothing where there are none.
#[derive(Clone, Default)]
struct Reach {
    /// How far a vertex moves when the bone moves by 1 in its parent's frame.
    moved: f32,
    /// How far a vertex moves at most when the bone turns by one radian.
    turned: f32,
    /// Vertices that move with the bone.
    carried: usize,
}

fn reaches(vertices: &[Vec3], skeleton: &Skeleton, skin: &SkinWeights) -> Vec<Reach> {
    let rest = skeleton.rest_global();
    let mut reaches = vec![Reach::default(); skeleton.len()];
    let mut last = vec![usize::MAX; skeleton.len()];
    for (vertex, position) in vertices.iter().enumerate() {
        for (bone, weight) in skin.row(vertex) {
            let mut above = Some(bone).filter(|_| weight > 0.0);
            // Another influence of the vertex may have gone up here already.
            while let Some(bone) = above.filter(|bone| last[*bone] != vertex) {
                last[bone] = vertex;
                reaches[bone].carried += 1;
                let distance = position.distance(rest[bone].translation.into());
                reaches[bone].turned = reaches[bone].turned.max(distance);
                above = skeleton.bones()[bone].parent;
            }
        }
    }
    for (bone, reach) in reaches.iter_mut().enumerate().filter(|(_, reach)| reach.carried > 0) {
        let parent = skeleton.bones()[bone].parent.map(|parent| rest[parent].matrix3);
        reach.moved = parent.map_or(1.0, |m| (0..3).map(|axis| m.col(axis).length()).fold(0.0, f32::max));
    }
    reaches
}

/// The range of a rotation about one axis, degrees: the shortest arc that holds rest and every angle that
/// clips show, and a tenth more; but never further from rest than the bone as a whole ever turns. Angles
/// have no history here, so that a bone that goes round twice has the range of one turn, and where two axes
/// meet (a turn of 90° about y) their angles, which may be anything there, widen no range. Random poses
/// are therefore no wilder than what some clip does with that bone, and the bones that carry most of the
/// figure share 60°, so that it stays upright; poses of clips may leave the range.
fn angle_range(angles: &mut Vec<f32>, largest_turn: f32) -> (f32, f32) {
    angles.push(0.0);
    angles.iter_mut().for_each(|angle| *angle = angle.rem_euclid(360.0));
    angles.sort_by(f32::total_cmp);
    let after = |place: usize| angles.get(place + 1).copied().unwrap_or(360.0);
    let gap = |place: usize| after(place) - angles[place];
    let widest = (0..angles.len()).max_by(|a, b| gap(*a).total_cmp(&gap(*b))).unwrap_or(0);
    let (mut low, mut high) = (after(widest) - 360.0, angles[widest]);
    if gap(widest) < FULL_TURN_GAP {
        (low, high) = (-180.0, 180.0);
    }
    let more = (high - low) * 0.1;
    let limit = (largest_turn * 1.1).min(180.0);
    ((low - more).max(-limit), (high + more).min(limit))
}

/// The range that values show, with rest in it and a tenth more.
fn shown_range(values: &[f32]) -> (f32, f32) {
    let (low, high) = values.iter().fold((0.0f32, 0.0f32), |(low, high), v| (low.min(*v), high.max(*v)));
    let more = (high - low) * 0.1;
    (low - more, high + more)
}

/// Files hold linear light; pictures want sRGB.
fn to_srgb(linear: Vec3) -> Vec3 {
    let channel = |v: f32| {
        let v = v.clamp(0.0, 1.0);
        if v <= 0.003_130_8 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 }
    };
    Vec3::new(channel(linear.x), channel(linear.y), channel(linear.z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{BlendshapeRig, Controls, Corrective, Face, MeshParts, Shape, SparseDeltas};
    use understudy_io::Conversion;
    use understudy_rigs::{Rig, RigPose};

    #[test]
    fn ranges_are_arcs_and_not_unwrapped_curves() {
        let range = |angles: &[f32], turn| angle_range(&mut angles.to_vec(), turn);
        let near = |(a, b): (f32, f32), (c, d): (f32, f32)| (a - c).abs() < 1e-3 && (b - d).abs() < 1e-3;
        assert!(near(range(&[-20.0, 5.0, 30.0], 30.0), (-25.0, 33.0)));
        // Across the seam at ±180° the arc goes on.
        assert!(near(range(&[60.0, 120.0, 170.0, -170.0], 180.0), (-19.0, 180.0)));
        // All the way round.
        let spin: Vec<f32> = (0..36).map(|step| step as f32 * 10.0 - 170.0).collect();
        assert_eq!(range(&spin, 180.0), (-180.0, 180.0));
        // Where two axes meet, angles mean nothing by themselves.
        let anything: Vec<f32> = (0..11).map(|step| step as f32 * 30.0 - 150.0).collect();
        assert!(near(range(&anything, 92.0), (-101.2, 101.2)));
    }

    #[test]
    fn shapes_and_correctives_move_the_mesh() {
        let positions = vec![Vec3::ZERO, Vec3::X, Vec3::Y];
        let mesh = MeshParts {
            positions: positions.clone(),
            faces: vec![Face::triangle(0, 1, 2)],
            ..MeshParts::default()
        };
        let deltas = |vertex: u32, delta: Vec3| SparseDeltas { vertices: vec![vertex], deltas: vec![delta] };
        let shape = |name: &str, vertex| Shape { name: name.into(), deltas: deltas(vertex, Vec3::Z) };
        let corrective = Corrective { shapes: vec![0, 1], deltas: deltas(2, Vec3::Z) };
        let rig = BlendshapeRig::new(positions, vec![shape("a", 0), shape("b", 1)], vec![corrective]);
        let model = Model {
            shapes: Some(rig.expect("valid shapes")),
            rest_weights: vec![0.0; 2],
            ..Model::still(mesh.build().expect("a triangle"), Conversion::none("made in a test"))
        };
        let rig = model_rig("test", &model).expect("a good rig");
        let mut pose = RigPose::default();
        rig.evaluate(&Controls(vec![0.5, 0.25]), &mut pose).expect("finite");
        let heights: Vec<f32> = pose.vertices.iter().map(|v| v.z).collect();
        assert_eq!(heights, [0.5, 0.25, 0.125]);
    }
}
