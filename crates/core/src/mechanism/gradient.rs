//! From derivatives by the bones of a [`JointMechanism`] to those by its controls, by the chain rule backwards through
//! forward kinematics, constraints and joint channels. In double precision; nothing is allocated once memory is there.
//!
//! Derivatives by a quaternion are four numbers. Of a product `c = a b` of unit quaternions they are `ā = c̄ b*` and
//! `b̄ = a* c̄`; normalising takes away what points along the quaternion.

use super::constraints::{Drive, Helper, Twist};
use super::{Constraint, JointMechanism};
use crate::{Affine3A, Channel, DMat3, DQuat, DVec3};

/// Working memory of [`JointMechanism::backward`].
#[derive(Debug, Clone, Default)]
pub struct MechanismTrace {
    joints: Vec<Joint>,
    by_joints: Vec<Joint>,
    /// What each step found where it changed a joint.
    before: Vec<Joint>,
    by_controls: Vec<f64>,
}

/// A local transform, or the derivatives by it.
#[derive(Debug, Clone, Copy)]
struct Joint {
    rotation: DQuat,
    translation: DVec3,
    scale: DVec3,
}

const NOTHING: DQuat = DQuat::from_xyzw(0.0, 0.0, 0.0, 0.0);
const STILL: Joint = Joint { rotation: NOTHING, translation: DVec3::ZERO, scale: DVec3::ZERO };

/// What a joint's channels, or one drive, are at.
#[derive(Default, Clone, Copy)]
struct Change {
    radians: DVec3,
    translation: DVec3,
    scale: DVec3,
}

impl Change {
    fn part(&mut self, channel: Channel) -> (&mut f64, f64) {
        let degree = std::f64::consts::PI / 180.0;
        match channel {
            Channel::RotateX => (&mut self.radians.x, degree),
            Channel::RotateY => (&mut self.radians.y, degree),
            Channel::RotateZ => (&mut self.radians.z, degree),
            Channel::TranslateX => (&mut self.translation.x, 1.0),
            Channel::TranslateY => (&mut self.translation.y, 1.0),
            Channel::TranslateZ => (&mut self.translation.z, 1.0),
            Channel::ScaleX => (&mut self.scale.x, 1.0),
            Channel::ScaleY => (&mut self.scale.y, 1.0),
            Channel::ScaleZ => (&mut self.scale.z, 1.0),
        }
    }

    fn set(&mut self, channel: Channel, value: f64) {
        let (part, unit) = self.part(channel);
        *part += unit * value;
    }

    fn turns(&self) -> [DQuat; 3] {
        let [x, y, z] = self.radians.to_array();
        [DQuat::from_rotation_x(x), DQuat::from_rotation_y(y), DQuat::from_rotation_z(z)]
    }

    fn apply(&self, joint: &mut Joint) {
        let [x, y, z] = self.turns();
        joint.rotation = (joint.rotation * (z * y * x)).normalize();
        joint.translation += self.translation;
        joint.scale *= DVec3::ONE + self.scale;
    }

    /// Derivatives by the channels; those by the joint become those by what it was.
    fn backward(&self, before: &Joint, by: &mut Joint) -> Self {
        let [x, y, z] = self.turns();
        let turn = z * y * x;
        let by_product = normalised_backward(before.rotation * turn, by.rotation);
        let by_turn = times(conjugate(before.rotation), by_product);
        let along = |by: DQuat, own: DQuat, axis: DVec3| {
            0.5 * by.dot(times(own, DQuat::from_xyzw(axis.x, axis.y, axis.z, 0.0)))
        };
        let by_x = times(conjugate(z * y), by_turn);
        let by_y = times(times(conjugate(z), by_turn), conjugate(x));
        let by_z = times(by_turn, conjugate(y * x));
        let change = Self {
            radians: DVec3::new(along(by_x, x, DVec3::X), along(by_y, y, DVec3::Y), along(by_z, z, DVec3::Z)),
            translation: by.translation,
            scale: by.scale * before.scale,
        };
        by.rotation = times(by_product, conjugate(turn));
        by.scale *= DVec3::ONE + self.scale;
        change
    }
}

fn conjugate(q: DQuat) -> DQuat {
    DQuat::from_xyzw(-q.x, -q.y, -q.z, q.w)
}

/// The product also where one of them is no rotation.
fn times(a: DQuat, b: DQuat) -> DQuat {
    let (u, v) = (DVec3::new(a.x, a.y, a.z), DVec3::new(b.x, b.y, b.z));
    let vector = v * a.w + u * b.w + u.cross(v);
    DQuat::from_xyzw(vector.x, vector.y, vector.z, a.w * b.w - u.dot(v))
}

fn normalised_backward(q: DQuat, by: DQuat) -> DQuat {
    let length = q.length();
    let unit = q / length;
    (by - unit * unit.dot(by)) / length
}

/// Derivatives by a unit quaternion of a rotation matrix.
fn rotation_backward(q: DQuat, by: &DMat3) -> DQuat {
    let DQuat { x, y, z, w } = q;
    let at = |row: usize, column: usize| by.col(column)[row];
    let (xy, xz, yz) = (at(0, 1) + at(1, 0), at(0, 2) + at(2, 0), at(1, 2) + at(2, 1));
    let (wx, wy, wz) = (at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1));
    DQuat::from_xyzw(
        2.0 * (y * xy + z * xz - 2.0 * x * (at(1, 1) + at(2, 2)) + w * wx),
        2.0 * (x * xy + z * yz - 2.0 * y * (at(0, 0) + at(2, 2)) + w * wy),
        2.0 * (x * xz + y * yz - 2.0 * z * (at(0, 0) + at(1, 1)) + w * wz),
        2.0 * (x * wx + y * wy + z * wz),
    )
}

/// The twist's angle about an axis, and its derivatives by the quaternion.
fn twist(q: DQuat, axis: DVec3) -> (f64, DQuat) {
    let along = DVec3::new(q.x, q.y, q.z).dot(axis);
    let size = (along * along + q.w * q.w).max(1e-30);
    let by_vector = axis * (2.0 * q.w / size);
    let angle = 2.0 * along.atan2(q.w);
    let pi = std::f64::consts::PI;
    let angle = if angle.abs() > pi { angle - 2.0 * pi * angle.signum() } else { angle };
    (angle, DQuat::from_xyzw(by_vector.x, by_vector.y, by_vector.z, -2.0 * along / size))
}

/// A share of a rotation, and the derivatives by it of something whose derivatives by the share are `by`.
fn share(q: DQuat, share: f64, by: DQuat) -> (DQuat, DQuat) {
    let sign = if q.w < 0.0 { -1.0 } else { 1.0 };
    let q = q * sign;
    let v = DVec3::new(q.x, q.y, q.z);
    let (sine, angle) = (v.length(), v.length().atan2(q.w));
    let axis = if sine > 1e-12 { v / sine } else { DVec3::X };
    let (part_sine, part_cosine) = (share * angle).sin_cos();
    let part = axis * part_sine;
    let by_v = DVec3::new(by.x, by.y, by.z);
    let by_angle = share * (part_cosine * axis.dot(by_v) - part_sine * by.w);
    let across = if sine > 1e-12 { part_sine / sine } else { share };
    let by_vector = (axis * (by_angle * q.w) + (by_v - axis * axis.dot(by_v)) * across) * sign;
    let back = DQuat::from_xyzw(by_vector.x, by_vector.y, by_vector.z, -by_angle * sine * sign);
    (DQuat::from_xyzw(part.x, part.y, part.z, part_cosine), back)
}

impl JointMechanism {
    /// Whether [`JointMechanism::backward`] is there: not through skirts.
    pub fn has_gradient(&self) -> bool {
        !self.constraints.iter().any(|constraint| matches!(constraint, Constraint::Skirt(_)))
    }

    /// Derivatives by the controls, `[C]`, of what has the derivatives `by_global` by the numbers of the world transforms,
    /// `[J]`, which are changed on the way.
    ///
    /// # Panics
    /// When an array is too short, or through skirts.
    pub fn backward(
        &self,
        controls: &[f32],
        by_global: &mut [Affine3A],
        trace: &mut MechanismTrace,
        by_controls: &mut [f32],
    ) {
        let MechanismTrace { joints, by_joints, before, by_controls: sums } = trace;
        joints.clear();
        joints.extend(self.skeleton.bones().iter().map(|bone| Joint {
            rotation: bone.rest.rotation.as_dquat(),
            translation: bone.rest.translation.as_dvec3(),
            scale: bone.rest.scale.as_dvec3(),
        }));
        sums.clear();
        sums.resize(self.controls, 0.0);
        before.clear();
        // Forward, with what every step found.
        self.each_change(|bone, places| {
            let change = self.change(places, controls);
            before.push(joints[bone]);
            change.apply(&mut joints[bone]);
        });
        for constraint in &self.constraints {
            match constraint {
                Constraint::Drive(drive) => {
                    before.push(joints[drive.bone]);
                    drive_change(drive, controls).apply(&mut joints[drive.bone]);
                }
                Constraint::Twist(twist) => {
                    before.push(joints[twist.target]);
                    let turn = twist_turn(twist, joints[twist.source].rotation);
                    let target = &mut joints[twist.target];
                    target.rotation = (target.rotation * turn).normalize();
                }
                Constraint::Helper(helper) => {
                    before.push(joints[helper.target]);
                    let moved = joints[helper.source].rotation * conjugate(helper.source_rest.as_dquat());
                    let (part, _) = share(moved, f64::from(helper.share), NOTHING);
                    let target = &mut joints[helper.target];
                    target.rotation = (part * target.rotation).normalize();
                    target.translation += helper.push.as_dvec3() * (2.0 - 2.0 * moved.w * moved.w);
                }
                Constraint::Skirt(_) => panic!("skirts have no gradient"),
            }
        }
        // Backward through forward kinematics: the world transforms again, then children before parents.
        by_joints.clear();
        by_joints.resize(joints.len(), STILL);
        self.kinematics_backward(joints, by_global, by_joints);
        for constraint in self.constraints.iter().rev() {
            let found = before.pop().expect("one of each step");
            match constraint {
                Constraint::Drive(drive) => {
                    let change = drive_change(drive, controls);
                    let mut by = change.backward(&found, &mut by_joints[drive.bone]);
                    let (slope, unit) = by.part(drive.channel);
                    sums[drive.control] += *slope * unit * f64::from(drive.gain);
                    joints[drive.bone] = found;
                }
                Constraint::Twist(twist) => {
                    joints[twist.target] = found;
                    twist_backward(twist, joints, by_joints);
                }
                Constraint::Helper(helper) => {
                    joints[helper.target] = found;
                    helper_backward(helper, joints, by_joints);
                }
                Constraint::Skirt(_) => panic!("skirts have no gradient"),
            }
        }
        // Joint channels of one bone may be listed in several runs, the last of which comes first here.
        let mut runs = before.len();
        while runs > 0 {
            runs -= 1;
            let (bone, places) = self.run(runs);
            let change = self.change(places.clone(), controls);
            let mut by = change.backward(&before[runs], &mut by_joints[bone]);
            for (control, _, channel) in &self.channels[places] {
                let (slope, unit) = by.part(*channel);
                sums[*control] += *slope * unit;
            }
        }
        by_controls.iter_mut().zip(&*sums).for_each(|(slot, sum)| *slot = *sum as f32);
    }

    /// Runs of channels of one bone, in order: the bone and the places of its channels.
    fn each_change(&self, mut take: impl FnMut(usize, std::ops::Range<usize>)) {
        let mut place = 0;
        while place < self.channels.len() {
            let bone = self.channels[place].1;
            let length = self.channels[place..].iter().take_while(|(_, own, _)| *own == bone).count();
            take(bone, place..place + length);
            place += length;
        }
    }

    fn run(&self, number: usize) -> (usize, std::ops::Range<usize>) {
        let (mut found, mut at) = ((0, 0..0), 0);
        self.each_change(|bone, places| {
            if at == number {
                found = (bone, places);
            }
            at += 1;
        });
        found
    }

    fn change(&self, places: std::ops::Range<usize>, controls: &[f32]) -> Change {
        let mut change = Change::default();
        for (control, _, channel) in &self.channels[places] {
            change.set(*channel, f64::from(controls[*control]));
        }
        change
    }

    fn kinematics_backward(&self, joints: &[Joint], by_global: &mut [Affine3A], by_joints: &mut [Joint]) {
        let local = |joint: &Joint| DMat3::from_quat(joint.rotation) * DMat3::from_diagonal(joint.scale);
        // World matrices are needed of parents alone, and rotations of chains are short: they are multiplied again.
        let world = |mut bone: usize| {
            let mut matrix = local(&joints[bone]);
            while let Some(parent) = self.skeleton.bones()[bone].parent {
                matrix = local(&joints[parent]) * matrix;
                bone = parent;
            }
            matrix
        };
        for &bone in self.skeleton.order().iter().rev() {
            let bone = bone as usize;
            let joint = &joints[bone];
            let mut by_matrix = by_global[bone].matrix3;
            let mut by_place = by_global[bone].translation;
            if let Some(parent) = self.skeleton.bones()[bone].parent {
                let place = joint.translation.as_vec3();
                let own = crate::Mat3A::from(local(joint).as_mat3());
                let spread =
                    crate::Mat3A::from_cols(by_place * place.x, by_place * place.y, by_place * place.z);
                by_global[parent].matrix3 += by_matrix * own.transpose() + spread;
                by_global[parent].translation += by_place;
                let above = crate::Mat3A::from(world(parent).transpose().as_mat3());
                (by_matrix, by_place) = (above * by_matrix, above * by_place);
            }
            let rotation = DMat3::from_quat(joint.rotation);
            let columns = [by_matrix.x_axis, by_matrix.y_axis, by_matrix.z_axis];
            let columns = columns.map(|column| crate::Vec3::from(column).as_dvec3());
            let by_rotation = DMat3::from_cols(
                columns[0] * joint.scale.x,
                columns[1] * joint.scale.y,
                columns[2] * joint.scale.z,
            );
            by_joints[bone] = Joint {
                rotation: rotation_backward(joint.rotation, &by_rotation),
                translation: crate::Vec3::from(by_place).as_dvec3(),
                scale: DVec3::from_array(std::array::from_fn(|axis| rotation.col(axis).dot(columns[axis]))),
            };
        }
    }
}

fn drive_change(drive: &Drive, controls: &[f32]) -> Change {
    let mut change = Change::default();
    change.set(drive.channel, f64::from(drive.gain) * f64::from(controls[drive.control]));
    change
}

/// What a twist bone turns by.
fn twist_turn(constraint: &Twist, source: DQuat) -> DQuat {
    let moved = conjugate(constraint.source_rest.as_dquat()) * source;
    let (angle, _) = twist(moved, constraint.axis.as_dvec3());
    DQuat::from_axis_angle(constraint.target_axis.as_dvec3(), angle * f64::from(constraint.share))
}

fn twist_backward(constraint: &Twist, joints: &[Joint], by_joints: &mut [Joint]) {
    let rest = constraint.source_rest.as_dquat();
    let moved = conjugate(rest) * joints[constraint.source].rotation;
    let (_, by_moved) = twist(moved, constraint.axis.as_dvec3());
    let turn = twist_turn(constraint, joints[constraint.source].rotation);
    let before = joints[constraint.target].rotation;
    let by_product = normalised_backward(before * turn, by_joints[constraint.target].rotation);
    let by_turn = times(conjugate(before), by_product);
    let axis = constraint.target_axis.as_dvec3();
    let by_angle = 0.5 * by_turn.dot(times(turn, DQuat::from_xyzw(axis.x, axis.y, axis.z, 0.0)));
    by_joints[constraint.target].rotation = times(by_product, conjugate(turn));
    let by_source = times(rest, by_moved * (by_angle * f64::from(constraint.share)));
    let source = &mut by_joints[constraint.source];
    source.rotation += by_source;
}

fn helper_backward(constraint: &Helper, joints: &[Joint], by_joints: &mut [Joint]) {
    let rest = constraint.source_rest.as_dquat();
    let moved = joints[constraint.source].rotation * conjugate(rest);
    let before = joints[constraint.target].rotation;
    let by = by_joints[constraint.target];
    let amount = f64::from(constraint.share);
    let (part, _) = share(moved, amount, NOTHING);
    let by_product = normalised_backward(part * before, by.rotation);
    let (_, mut by_moved) = share(moved, amount, times(by_product, conjugate(before)));
    by_moved.w -= 4.0 * moved.w * constraint.push.as_dvec3().dot(by.translation);
    by_joints[constraint.target].rotation = times(conjugate(part), by_product);
    let source = &mut by_joints[constraint.source];
    source.rotation += times(by_moved, rest);
}
