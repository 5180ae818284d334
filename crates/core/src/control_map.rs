//! A rig's bones and shapes read as its controls: which values make the rig take a given pose. Motion
//! from files is played through this, one moment at a time, so that no rotation is ever blended as
//! angles.

use crate::blendshapes::BlendshapeRig;
use crate::controls::{Channel, ControlKind, ControlSpecs, Controls};
use crate::skeleton::{JointPose, JointTransform, Skeleton};
use glam::{DMat3, DQuat, DVec3};

/// Which controls move which bones and shapes.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlMap {
    joints: Vec<JointControls>,
    /// The control of each shape.
    shapes: Vec<Option<usize>>,
    controls: usize,
}

/// The controls of one bone.
#[derive(Debug, Clone, PartialEq)]
struct JointControls {
    bone: usize,
    rest: JointTransform,
    /// In the order of [`Channel::ALL`].
    channels: [Option<JointControl>; 9],
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct JointControl {
    control: usize,
    low: f32,
    high: f32,
}

impl ControlMap {
    /// Joint controls by the bone that they name, shapes by their own names.
    pub fn new(specs: &ControlSpecs, skeleton: Option<&Skeleton>, shapes: Option<&BlendshapeRig>) -> Self {
        let mut joints: Vec<JointControls> = Vec::new();
        for (control, spec) in specs.iter().enumerate() {
            let ControlKind::Joint { bone, channel } = &spec.kind else { continue };
            let Some((bone, data)) = skeleton.and_then(|s| Some((s.find(bone)?, s))) else { continue };
            let place = joints.iter().position(|joint| joint.bone == bone).unwrap_or_else(|| {
                joints.push(JointControls { bone, rest: data.bones()[bone].rest, channels: [None; 9] });
                joints.len() - 1
            });
            let slot = &mut joints[place].channels[*channel as usize];
            slot.get_or_insert(JointControl { control, low: spec.low, high: spec.high });
        }
        let shapes = shapes.map(BlendshapeRig::shapes).unwrap_or_default();
        let shapes = shapes.iter().map(|shape| specs.find(&shape.name)).collect();
        Self { joints, shapes, controls: specs.len() }
    }

    /// Number of controls of the rig.
    pub fn control_count(&self) -> usize {
        self.controls
    }

    /// Sets the joint controls so that the rig's bones take `pose`, as far as they have controls. Of the
    /// angles that stand for one rotation, those inside the controls' ranges are taken, or else the
    /// smallest.
    pub fn set_pose(&self, pose: &JointPose, controls: &mut Controls) {
        for joint in &self.joints {
            let values = joint.values(&pose.0[joint.bone]);
            for (channel, value) in joint.channels.iter().zip(values) {
                if let Some(channel) = channel {
                    controls.0[channel.control] = value;
                }
            }
        }
    }

    /// Sets the controls of shapes, one weight per shape of the rig.
    pub fn set_weights(&self, weights: &[f32], controls: &mut Controls) {
        for (control, &weight) in self.shapes.iter().zip(weights) {
            if let Some(control) = control {
                controls.0[*control] = weight;
            }
        }
    }
}

impl JointControls {
    fn values(&self, joint: &JointTransform) -> [f32; 9] {
        let mut values = joint_offsets(&self.rest, joint);
        let mut best = (f64::INFINITY, f64::INFINITY);
        for angles in euler_angles(turn_between(&self.rest, joint)) {
            let (mut outside, mut settled) = (0.0, [0.0; 3]);
            for (axis, angle) in angles.into_iter().enumerate() {
                let (low, high) = self.channels[axis].map_or((0.0, 0.0), |c| (c.low.into(), c.high.into()));
                let middle: f64 = 0.5 * (low + high);
                settled[axis] = angle + 360.0 * ((middle - angle) / 360.0).round();
                outside += (low - settled[axis]).max(settled[axis] - high).max(0.0);
            }
            // Rounding at an end of a range must not outweigh a much smaller turn.
            let rank = ((outside * 100.0).round(), settled.iter().map(|a| a * a).sum::<f64>());
            if rank < best {
                best = rank;
                values[..3].copy_from_slice(&settled.map(|a| a as f32));
            }
        }
        values
    }
}

/// What the nine channels of a joint hold, in the order and units of [`Channel`], when it stands at
/// `joint` instead of `rest`. Of the two triples of angles that every rotation has, the smaller one, each
/// angle from −180° to 180°: no history, so that a moment has the same values whatever came before.
pub fn joint_channels(rest: &JointTransform, joint: &JointTransform) -> [f32; 9] {
    let mut values = joint_offsets(rest, joint);
    let size = |angles: &[f64; 3]| angles.iter().map(|a| a * a).sum::<f64>();
    let [one, other] = euler_angles(turn_between(rest, joint));
    let angles = if size(&one) <= size(&other) { one } else { other };
    values[..3].copy_from_slice(&angles.map(|a| a as f32));
    values
}

/// The rotation that the joint controls add: `R_rest⁻¹ R`.
pub fn turn_between(rest: &JointTransform, joint: &JointTransform) -> DQuat {
    (rest.rotation.as_dquat().normalize().inverse() * joint.rotation.as_dquat().normalize()).normalize()
}

/// Translation and scale channels; the first three are left at zero.
fn joint_offsets(rest: &JointTransform, joint: &JointTransform) -> [f32; 9] {
    let moved = joint.translation - rest.translation;
    let ratio = |now: f32, rest: f32| if rest == 0.0 { 0.0 } else { now / rest - 1.0 };
    let [sx, sy, sz] = std::array::from_fn(|axis| ratio(joint.scale[axis], rest.scale[axis]));
    [0.0, 0.0, 0.0, moved.x, moved.y, moved.z, sx, sy, sz]
}

/// The two triples `(x, y, z)` in degrees, each from −180 to 180, with `R = R_z R_y R_x`.
fn euler_angles(turn: DQuat) -> [[f64; 3]; 2] {
    let r = DMat3::from_quat(turn);
    let [c0, c1, c2] = [r.x_axis, r.y_axis, r.z_axis];
    let level = c0.x.hypot(c0.y);
    let y = (-c0.z).atan2(level);
    // At ±90° only x − z or x + z is determined: the two share it.
    let x = if level > 1e-9 {
        c1.z.atan2(c2.z)
    } else {
        0.5 * if y > 0.0 { c1.x.atan2(c1.y) } else { (-c1.x).atan2(c1.y) }
    };
    // From what is left after x is undone, so that an error of x near ±90° is made good by z.
    let second = DVec3::new(c1.x, c1.y, c1.z) * x.cos() - DVec3::new(c2.x, c2.y, c2.z) * x.sin();
    let z = (-second.x).atan2(second.y);
    let wrap = |angle: f64| angle - 360.0 * (angle / 360.0).round();
    let [x, y, z] = [x, y, z].map(f64::to_degrees);
    [[x, y, z], [wrap(x + 180.0), wrap(180.0 - y), wrap(z + 180.0)]]
}

impl Channel {
    /// All channels, in the order in which they are measured.
    pub const ALL: [Self; 9] = [
        Self::RotateX,
        Self::RotateY,
        Self::RotateZ,
        Self::TranslateX,
        Self::TranslateY,
        Self::TranslateZ,
        Self::ScaleX,
        Self::ScaleY,
        Self::ScaleZ,
    ];

    /// Such as `rotate_x`.
    pub fn label(self) -> &'static str {
        [
            "rotate_x",
            "rotate_y",
            "rotate_z",
            "translate_x",
            "translate_y",
            "translate_z",
            "scale_x",
            "scale_y",
            "scale_z",
        ][self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::ControlSpec;
    use crate::random::Random;
    use crate::skeleton::Bone;
    use glam::{Quat, Vec3};

    fn turn([x, y, z]: [f64; 3]) -> DQuat {
        let [x, y, z] = [x, y, z].map(f64::to_radians);
        DQuat::from_rotation_z(z) * DQuat::from_rotation_y(y) * DQuat::from_rotation_x(x)
    }

    #[test]
    fn both_triples_stand_for_the_rotation_everywhere() {
        let mut random = Random::new(3);
        let mut angles: Vec<[f64; 3]> =
            (0..500).map(|_| std::array::from_fn(|_| random.normal() * 90.0)).collect();
        // Near and at the poles, where x and z run into each other.
        for tilt in [90.0, -90.0, 89.999, -89.999_99, 90.000_001] {
            angles.extend([[0.0, tilt, 0.0], [30.0, tilt, -70.0], [-179.0, tilt, 5.0]]);
        }
        for wanted in angles {
            let whole = turn(wanted);
            for triple in euler_angles(whole) {
                let miss = turn(triple).angle_between(whole).min(turn(triple).angle_between(-whole));
                assert!(miss < 1e-7, "{wanted:?} became {triple:?}: {miss}");
                assert!(triple.iter().all(|a| a.abs() <= 180.0 + 1e-9));
            }
        }
    }

    #[test]
    fn values_stay_in_range_where_some_angles_of_the_rotation_do() {
        let bones = vec![Bone { name: "arm".into(), parent: None, rest: JointTransform::IDENTITY }];
        let skeleton = Skeleton::new(bones).expect("a bone");
        let control =
            |channel: Channel, low, high| ControlSpec::joint(channel.label(), "arm", channel, low, high);
        let specs = ControlSpecs::new(vec![
            control(Channel::RotateX, 0.0, 250.0),
            control(Channel::RotateZ, -20.0, 20.0),
            control(Channel::TranslateY, -1.0, 1.0),
        ]);
        let specs = specs.expect("valid");
        let map = ControlMap::new(&specs, Some(&skeleton), None);
        for x in [1.0, 100.0, 179.0, 181.0, 249.0f64] {
            let mut controls = specs.defaults();
            let rotation = turn([x, 0.0, 10.0]).as_quat();
            let joint = JointTransform { rotation, translation: Vec3::Y * 0.5, scale: Vec3::ONE };
            map.set_pose(&JointPose(vec![joint]), &mut controls);
            let wanted = [x as f32, 10.0, 0.5];
            assert!(controls.0.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-3), "{x}: {controls:?}");
        }
    }

    #[test]
    fn channels_hold_offsets_from_rest() {
        let rest = JointTransform {
            rotation: Quat::from_rotation_y(0.4),
            translation: Vec3::new(1.0, 2.0, 3.0),
            scale: Vec3::new(1.0, 2.0, 0.5),
        };
        assert!(joint_channels(&rest, &rest).iter().all(|value| value.abs() < 1e-5));
        let joint = JointTransform {
            rotation: rest.rotation * Quat::from_rotation_y(170f32.to_radians()),
            translation: Vec3::new(1.0, 2.0, 4.0),
            scale: Vec3::new(1.0, 3.0, 0.5),
        };
        let wanted = [0.0, 170.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.0];
        let got = joint_channels(&rest, &joint);
        assert!(got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-3), "{got:?}");
    }
}
