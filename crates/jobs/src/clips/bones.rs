//! Motion of other bones on a rig's own. Rotations are carried in the axes of the world at rest, so that bones of the
//! same name move alike whatever their own axes are; where both rest alike, numbers come through as they are.

use super::names::{Rotation, bone};
use std::sync::Arc;
use understudy_core::arkit::Side;
use understudy_core::skeleton::rotation_of;
use understudy_core::{
    BoneTrack, ControlKind, ControlSpecs, JointPose, JointProperty, KeyedClip, Skeleton, Track,
    TrackInterpolation,
};
use understudy_core::{DQuat, Vec3};
use understudy_io::bvh::Bvh;
use understudy_rigs::Rig;

/// The bones of a rig that controls move.
pub(super) struct Joints<'a> {
    skeleton: &'a Skeleton,
    specs: &'a ControlSpecs,
    moved: Vec<usize>,
}

impl<'a> Joints<'a> {
    /// `None` for a rig without bones.
    pub fn new(rig: &'a dyn Rig) -> Option<Self> {
        let (skeleton, specs) = (rig.skeleton()?, rig.specs());
        let joint = |kind: &ControlKind| match kind {
            ControlKind::Joint { bone, .. } => skeleton.find(bone),
            ControlKind::Number => None,
        };
        let mut moved: Vec<usize> = specs.iter().filter_map(|spec| joint(&spec.kind)).collect();
        moved.sort_unstable();
        moved.dedup();
        Some(Self { skeleton, specs, moved })
    }

    /// The bone of a name without a side, and a side.
    pub fn find(&self, name: &str, side: Option<Side>) -> Option<usize> {
        let wanted = (name.to_owned(), side);
        self.moved.iter().copied().find(|own| bone(&self.skeleton.bones()[*own].name) == wanted)
    }

    /// The bone that a name of another skeleton means.
    pub fn find_name(&self, name: &str) -> Option<usize> {
        let same = self.moved.iter().copied().find(|own| self.skeleton.bones()[*own].name == name);
        same.or_else(|| {
            let (stem, side) = bone(name);
            self.find(&stem, side)
        })
    }

    /// The controls of a bone.
    pub fn controls_of(&self, bone: usize) -> impl Iterator<Item = usize> {
        let name = &self.skeleton.bones()[bone].name;
        let of = move |kind: &ControlKind| matches!(kind, ControlKind::Joint { bone, .. } if bone == name);
        self.specs.iter().enumerate().filter(move |(_, spec)| of(&spec.kind)).map(|(control, _)| control)
    }

    /// A bone turned by yaw, pitch and roll (about the vertical, the sideways and the forward axis of a character that
    /// faces +Z, right-handed): `R = R_y R_x R_z` in the axes of the world at rest.
    pub fn turned(
        &self,
        bone: usize,
        part: &Rotation,
        frames: &[Vec<f32>],
        times: &[f32],
    ) -> Result<BoneTrack, String> {
        let above = rest_above(self.skeleton, bone);
        let rest = self.skeleton.bones()[bone].rest.rotation.as_dquat();
        let value = |frame: &Vec<f32>| {
            let [yaw, pitch, roll] = part.of(frame);
            let turn =
                DQuat::from_rotation_y(yaw) * DQuat::from_rotation_x(pitch) * DQuat::from_rotation_z(roll);
            (above.inverse() * turn * above * rest).normalize().to_array().map(|v| v as f32)
        };
        let values = frames.iter().flat_map(value).collect();
        let track = Track::rotations(times, values, TrackInterpolation::Linear)?;
        Ok(BoneTrack { bone, property: JointProperty::Rotation, track })
    }

    /// A track of a bone of another skeleton for our bone `own`.
    pub fn carried(&self, own: usize, track: &BoneTrack, source: &Source<'_>) -> Result<BoneTrack, String> {
        let Source { skeleton, rest, same_axes, scale } = source;
        if *same_axes {
            return Ok(BoneTrack { bone: own, ..track.clone() });
        }
        let (from, to) = (&rest.0[track.bone], &self.skeleton.bones()[own].rest);
        let (from_above, to_above) = (rest_above(skeleton, track.bone), rest_above(self.skeleton, own));
        // From the parent's axes there to the parent's axes here.
        let across = to_above.inverse() * from_above;
        let behind = from.rotation.as_dquat().inverse() * across.inverse() * to.rotation.as_dquat();
        let (width, interpolation) = (track.track.width(), track.track.interpolation());
        let cubic = interpolation == TrackInterpolation::CubicSpline;
        let mut values = track.track.values().to_vec();
        for (place, row) in values.chunks_exact_mut(width).enumerate() {
            let tangent = cubic && place % 3 != 1;
            match track.property {
                // A product with constants, so that it holds for tangents as well.
                JointProperty::Rotation => {
                    let turn = DQuat::from_array(std::array::from_fn(|i| f64::from(row[i])));
                    row.copy_from_slice(&(across * turn * behind).to_array().map(|v| v as f32));
                }
                JointProperty::Translation => {
                    let (start, end) =
                        if tangent { (Vec3::ZERO, Vec3::ZERO) } else { (from.translation, to.translation) };
                    let moved = across.as_quat() * (Vec3::from_slice(row) - start) * *scale;
                    row.copy_from_slice(&(moved + end).to_array());
                }
                JointProperty::Scale => {
                    let ratio = to.scale / from.scale;
                    (0..3).for_each(|axis| row[axis] *= ratio[axis]);
                }
            }
        }
        let times = track.track.times();
        let carried = match track.property {
            JointProperty::Rotation => Track::rotations(times, values, interpolation)?,
            _ => Track::new(times, values, width, interpolation)?,
        };
        Ok(BoneTrack { bone: own, property: track.property, track: carried })
    }

    /// A motion file as a source. Such a file knows no rest rotations, and there are two customs: the figure without
    /// any rotation stands as a person does and its axes are the world's (motion capture), or rotations are those of
    /// a rig's own bones, as `convert` writes them. The offsets of the joints tell which.
    pub fn of_motion_file<'s>(&self, file: &'s Bvh) -> Source<'s> {
        let skeleton = &file.skeleton;
        let (mut own_axes, mut world_axes) = (0.0, 0.0);
        for joint in skeleton.bones().iter().filter(|joint| joint.parent.is_some()) {
            let Some(own) = self.find_name(&joint.name) else { continue };
            let here = self.skeleton.bones()[own].rest.translation.normalize_or_zero();
            let there = joint.rest.translation.normalize_or_zero();
            own_axes += 1.0 - here.dot(there);
            world_axes += 1.0 - (rest_above(self.skeleton, own).as_quat() * here).dot(there);
        }
        // Without its rotations the figure hangs from the origin: its lowest point belongs on the ground.
        let ends = file
            .end_sites
            .iter()
            .map(|(joint, offset)| skeleton.rest_global()[*joint].transform_point3(*offset).y);
        let joints = skeleton.rest_global().iter().map(|joint| joint.translation.y);
        let lowest = joints.chain(ends).fold(f32::INFINITY, f32::min);
        let mut rest = skeleton.rest_pose();
        let mut scale = 1.0;
        for (bone, joint) in skeleton.bones().iter().enumerate().filter(|(_, joint)| joint.parent.is_none()) {
            rest.0[bone].translation.y -= lowest;
            // Strides are as long as legs are.
            let own = self.find_name(&joint.name).map(|own| self.skeleton.rest_global()[own].translation.y);
            let (here, there) = (own.unwrap_or(0.0), rest.0[bone].translation.y);
            if here > 0.0 && there > 0.0 {
                scale = here / there;
            }
        }
        Source { skeleton, rest, same_axes: own_axes + 1e-3 < world_axes, scale }
    }
}

/// Where motion of bones comes from.
pub(super) struct Source<'a> {
    pub skeleton: &'a Skeleton,
    /// How its bones rest.
    pub rest: JointPose,
    /// Whether its bones have the axes of the rig's: then transforms are taken as they are.
    pub same_axes: bool,
    /// What distances are multiplied with.
    pub scale: f32,
}

/// How the bone above one rests in the world.
fn rest_above(skeleton: &Skeleton, bone: usize) -> DQuat {
    let above = skeleton.bones()[bone].parent.map(|parent| skeleton.rest_global()[parent]);
    above.map_or(DQuat::IDENTITY, |above| rotation_of(&above).as_dquat().normalize())
}

/// Frames as linear keys: rotations of all bones, and the places of those that move.
pub(super) fn keys_of_frames(poses: &[JointPose], times: &[f32], rate: f32) -> KeyedClip {
    let times: Arc<[f32]> = times.into();
    let mut bones = Vec::new();
    for bone in 0..poses.first().map_or(0, |pose| pose.0.len()) {
        let turns = poses.iter().flat_map(|pose| pose.0[bone].rotation.to_array()).collect();
        let track = Track::rotations(times.clone(), turns, TrackInterpolation::Linear);
        let track = track.expect("the reader checked the frames");
        bones.push(BoneTrack { bone, property: JointProperty::Rotation, track });
        let first = poses[0].0[bone].translation;
        if poses.iter().any(|pose| pose.0[bone].translation != first) {
            let places = poses.iter().flat_map(|pose| pose.0[bone].translation.to_array()).collect();
            let track = Track::new(times.clone(), places, 3, TrackInterpolation::Linear);
            let track = track.expect("the reader checked the frames");
            bones.push(BoneTrack { bone, property: JointProperty::Translation, track });
        }
    }
    KeyedClip { name: String::new(), rate, bones, weights: Vec::new() }
}
