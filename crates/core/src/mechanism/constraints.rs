//! Bones that no animator touches: drivers, twist bones and helper bones. Each constraint changes local
//! transforms after the joint controls and before forward kinematics. Bones that cloth hangs on are in `skirt`.

use super::SkirtFollow;
use crate::skeleton::rotation_of;
use crate::{Channel, JointPose, JointTransform, Quat, Skeleton, Vec3};
use serde::{Deserialize, Serialize};

/// Changes local transforms; sees the controls and what earlier constraints did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// A control moves a bone.
    Drive(Drive),
    /// A bone takes a share of another's twist.
    Twist(Twist),
    /// A bone takes a share of another's rotation.
    Helper(Helper),
    /// Chains of bones follow two legs.
    Skirt(SkirtFollow),
}

impl Constraint {
    /// Applies itself to the pose.
    pub fn apply(&self, controls: &[f32], pose: &mut JointPose) {
        match self {
            Self::Drive(drive) => drive.apply(controls, pose),
            Self::Twist(twist) => twist.apply(pose),
            Self::Helper(helper) => helper.apply(pose),
            Self::Skirt(skirt) => skirt.apply(controls, pose),
        }
    }

    /// The bones and the controls that it names.
    pub(super) fn named(&self) -> (Vec<usize>, Vec<usize>) {
        match self {
            Self::Drive(drive) => (vec![drive.bone], vec![drive.control]),
            Self::Twist(twist) => (vec![twist.source, twist.target], Vec::new()),
            Self::Helper(helper) => (vec![helper.source, helper.target], Vec::new()),
            Self::Skirt(skirt) => skirt.named(),
        }
    }
}

/// What joint channels add to a bone's transform.
#[derive(Debug, Clone, Copy, Default)]
pub struct JointChange {
    degrees: Vec3,
    translation: Vec3,
    scale: Vec3,
}

impl JointChange {
    /// Adds a value to a channel.
    pub fn set(&mut self, channel: Channel, value: f32) {
        let part = match channel {
            Channel::RotateX => &mut self.degrees.x,
            Channel::RotateY => &mut self.degrees.y,
            Channel::RotateZ => &mut self.degrees.z,
            Channel::TranslateX => &mut self.translation.x,
            Channel::TranslateY => &mut self.translation.y,
            Channel::TranslateZ => &mut self.translation.z,
            Channel::ScaleX => &mut self.scale.x,
            Channel::ScaleY => &mut self.scale.y,
            Channel::ScaleZ => &mut self.scale.z,
        };
        *part += value;
    }

    /// Changes a transform: rotation `R · R_z R_y R_x`, translation added, scale times `1 + s`.
    pub fn apply(&self, joint: &mut JointTransform) {
        let [x, y, z] = self.degrees.to_array().map(f32::to_radians);
        let turn = Quat::from_rotation_z(z) * Quat::from_rotation_y(y) * Quat::from_rotation_x(x);
        joint.rotation = (joint.rotation * turn).normalize();
        joint.translation += self.translation;
        joint.scale *= Vec3::ONE + self.scale;
    }
}

/// A number control that turns, moves or scales a bone: `channel += gain · control`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Index of the control.
    pub control: usize,
    /// The bone it moves.
    pub bone: usize,
    /// How.
    pub channel: Channel,
    /// Degrees, cm or scale a unit of the control.
    pub gain: f32,
}

impl Drive {
    fn apply(&self, controls: &[f32], pose: &mut JointPose) {
        let mut change = JointChange::default();
        change.set(self.channel, self.gain * controls[self.control]);
        change.apply(&mut pose.0[self.bone]);
    }
}

/// The signed angle of the twist of `rotation` about `axis`, radians, −π to π.
pub fn twist_angle(rotation: Quat, axis: Vec3) -> f32 {
    let along = Vec3::new(rotation.x, rotation.y, rotation.z).dot(axis);
    let angle = 2.0 * along.atan2(rotation.w);
    if angle > std::f32::consts::PI {
        angle - std::f32::consts::TAU
    } else if angle < -std::f32::consts::PI {
        angle + std::f32::consts::TAU
    } else {
        angle
    }
}

/// A twist bone: takes a share of the twist of another bone about its long axis. A child of the forearm
/// takes the hand's twist (share > 0); a child of the upper arm takes its parent's twist back (share < 0).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Twist {
    /// The bone that turns.
    pub source: usize,
    /// The source's rotation in the rest pose; the twist is measured against it.
    pub source_rest: Quat,
    /// The twist bone.
    pub target: usize,
    /// Unit vector along the source bone, in its frame.
    pub axis: Vec3,
    /// The same direction in the target's frame.
    pub target_axis: Vec3,
    /// Share of the twist, −1 to 1.
    pub share: f32,
}

impl Twist {
    /// A twist about `axis` of the source's frame, for bones whose frames are aligned in the rest pose.
    pub fn new(skeleton: &Skeleton, source: usize, target: usize, axis: Vec3, share: f32) -> Self {
        let source_rest = skeleton.bones()[source].rest.rotation;
        let rotation = |bone: usize| rotation_of(&skeleton.rest_global()[bone]);
        let target_axis = rotation(target).inverse() * (rotation(source) * axis);
        Self { source, source_rest, target, axis, target_axis, share }
    }

    fn apply(&self, pose: &mut JointPose) {
        let moved = self.source_rest.inverse() * pose.0[self.source].rotation;
        let angle = twist_angle(moved, self.axis) * self.share;
        let target = &mut pose.0[self.target];
        target.rotation = (target.rotation * Quat::from_axis_angle(self.target_axis, angle)).normalize();
    }
}

/// A helper bone at a joint: takes a share of the joint's whole rotation and is pushed out as the joint
/// bends, so that an elbow or a knee keeps its point. It is a child of the joint's parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Helper {
    /// The joint.
    pub source: usize,
    /// Its rotation in the rest pose.
    pub source_rest: Quat,
    /// The helper bone.
    pub target: usize,
    /// Share of the rotation, usually ½.
    pub share: f32,
    /// cm at a bend of 90°, in the frame of the helper's parent; grows with `1 − cos`.
    pub push: Vec3,
}

impl Helper {
    /// A helper that measures its joint against the rest pose.
    pub fn new(skeleton: &Skeleton, source: usize, target: usize, share: f32, push: Vec3) -> Self {
        let source_rest = skeleton.bones()[source].rest.rotation;
        Self { source, source_rest, target, share, push }
    }

    fn apply(&self, pose: &mut JointPose) {
        let now = pose.0[self.source].rotation;
        let moved = now * self.source_rest.inverse();
        let share = Quat::IDENTITY.slerp(if moved.w < 0.0 { -moved } else { moved }, self.share);
        let bend = 1.0 - (2.0 * moved.w * moved.w - 1.0);
        let target = &mut pose.0[self.target];
        target.rotation = (share * target.rotation).normalize();
        target.translation += self.push * bend;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twist_of_a_swing_and_a_twist_is_the_twist() {
        let rotation = Quat::from_rotation_x(0.7) * Quat::from_rotation_y(-1.1);
        assert!((twist_angle(rotation, Vec3::Y) + 1.1).abs() < 1e-5);
    }

    #[test]
    fn twist_angle_is_continuous_through_zero_and_bounded() {
        for step in -31..=31 {
            let angle = step as f32 * 0.1;
            assert!((twist_angle(Quat::from_rotation_z(angle), Vec3::Z) - angle).abs() < 1e-4);
        }
    }
}
