//! BVH motion files: a skeleton, the channels of every joint in the file's own order, and a clip.
//! Start at [`read`] and [`fn@write`]. Rotation orders are kept per joint and written back as they were.
//!
//! A joint's transform is `T(offset) · R₁ · R₂ · R₃` with one axis rotation for every rotation channel, in
//! the order of the channels. Position channels replace the offset on their axis, as the common
//! exporters mean it; the rest pose is the one with all rotations zero.

mod euler;
mod parse;
mod units;
mod write;

pub use parse::{BvhOptions, parse, read};
pub use write::{to_text, write};

use crate::Conversion;
use understudy_core::{JointClip, JointTransform, Skeleton, Vec3};

/// What a joint's number moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BvhChannel {
    /// A position along an axis of the parent: 0, 1, 2 for X, Y, Z.
    Position(usize),
    /// A rotation about an axis, in degrees: 0, 1, 2 for X, Y, Z.
    Rotation(usize),
}

impl BvhChannel {
    const NAMES: [(&'static str, Self); 6] = [
        ("Xposition", Self::Position(0)),
        ("Yposition", Self::Position(1)),
        ("Zposition", Self::Position(2)),
        ("Xrotation", Self::Rotation(0)),
        ("Yrotation", Self::Rotation(1)),
        ("Zrotation", Self::Rotation(2)),
    ];

    /// The channel of that name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, channel)| *channel)
    }

    /// As files write it.
    pub fn name(&self) -> &'static str {
        Self::NAMES.iter().find(|(_, channel)| channel == self).map_or("", |(name, _)| name)
    }
}

/// A parsed file in cm and Y-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Bvh {
    /// One bone per joint, parents before children; end sites are no bones.
    pub skeleton: Skeleton,
    /// The channels of every joint, in the file's order.
    pub channels: Vec<Vec<BvhChannel>>,
    /// `(joint, offset in cm)` of every end site.
    pub end_sites: Vec<(usize, Vec3)>,
    /// The motion.
    pub clip: JointClip,
    /// What was done to the file's units and axes, and how we know.
    pub conversion: Conversion,
    /// What was odd but could be read: names made unique, a unit that fits nobody.
    pub warnings: Vec<String>,
}

impl Bvh {
    /// A file for any clip: roots get positions and rotations, other joints rotations in the given
    /// order (axes 0, 1, 2; `[2, 0, 1]` is the usual ZXY), and positions where the clip moves them.
    /// End sites are left out: a skeleton does not know where its last bones end.
    pub fn from_clip(skeleton: Skeleton, clip: JointClip, order: [usize; 3]) -> Self {
        let moves = |bone: usize| {
            let rest = skeleton.bones()[bone].rest.translation;
            clip.poses.iter().any(|pose| pose.0[bone].translation.distance(rest) > write::POSITION_TOLERANCE)
        };
        let channels = (0..skeleton.len()).map(|bone| {
            let positions = skeleton.bones()[bone].parent.is_none() || moves(bone);
            let positions = if positions { 0..3 } else { 0..0 };
            positions.map(BvhChannel::Position).chain(order.map(BvhChannel::Rotation)).collect()
        });
        let channels = channels.collect();
        let conversion = Conversion::none("made from a clip in centimetres");
        Self { channels, end_sites: Vec::new(), skeleton, clip, conversion, warnings: Vec::new() }
    }
}

/// The transform that a joint's numbers stand for. `values` has one number for each channel; positions are
/// already in cm.
fn transform(offset: Vec3, channels: &[BvhChannel], values: &[f64]) -> JointTransform {
    let mut translation = offset;
    let mut rotation = glam::DQuat::IDENTITY;
    for (channel, value) in channels.iter().zip(values) {
        match *channel {
            BvhChannel::Position(axis) => translation[axis] = *value as f32,
            BvhChannel::Rotation(axis) => {
                rotation *= glam::DQuat::from_axis_angle(euler::AXES[axis], value.to_radians());
            }
        }
    }
    JointTransform { rotation: rotation.normalize().as_quat(), translation, scale: Vec3::ONE }
}

#[cfg(test)]
mod tests;
