//! A jaw joint found in blendshapes. The lower teeth move rigidly in the jaw shapes: that motion gives
//! the hinge; how far the skin goes along gives the weights; what is left stays a shape.

use crate::film::smooth;
use understudy_core::mechanism::{Constraint, Drive};
use understudy_core::rotation::{RigidMotion, fit_rigid};
use understudy_core::{Affine3A, BlendshapeRig, Channel, EulerRot, Mat3, Mesh, Quat, Vec3};
use understudy_rigs::RigError;

/// Shapes that move the jaw.
pub(super) const JAW_SHAPES: [&str; 4] = ["jawOpen", "jawForward", "jawLeft", "jawRight"];

/// The joint.
pub(super) struct Jaw {
    /// Where it hinges, cm.
    pub pivot: Vec3,
    /// How far each vertex follows, `[V]`.
    pub weights: Vec<f32>,
    /// The motion of each jaw shape that the rig has: shape index and rest → full.
    pub motions: Vec<(usize, JawMotion)>,
}

/// What a jaw shape does to the joint when it is fully on.
#[derive(Clone, Copy)]
pub(super) struct JawMotion {
    /// Degrees about x, y and z, applied z first.
    pub degrees: Vec3,
    /// cm.
    pub translation: Vec3,
}

impl JawMotion {
    fn from_rigid(motion: &RigidMotion, pivot: Vec3) -> Self {
        let rotation = Quat::from_mat3(&motion.rotation.as_mat3());
        let (z, y, x) = rotation.to_euler(EulerRot::ZYX);
        let translation = motion.apply(pivot) - pivot;
        Self { degrees: Vec3::new(x, y, z) * 1f32.to_degrees(), translation }
    }

    /// Rest → pose of the joint.
    pub fn matrix(&self, pivot: Vec3) -> Affine3A {
        let [x, y, z] = self.degrees.to_array().map(f32::to_radians);
        let turn = Quat::from_rotation_z(z) * Quat::from_rotation_y(y) * Quat::from_rotation_x(x);
        Affine3A::from_translation(pivot + self.translation)
            * Affine3A::from_quat(turn)
            * Affine3A::from_translation(-pivot)
    }

    /// Drivers of the bone from the control of the shape, in the order of [`JawMotion::matrix`].
    pub fn drives(&self, control: usize, bone: usize) -> Vec<Constraint> {
        let parts = [
            (Channel::RotateZ, self.degrees.z),
            (Channel::RotateY, self.degrees.y),
            (Channel::RotateX, self.degrees.x),
            (Channel::TranslateX, self.translation.x),
            (Channel::TranslateY, self.translation.y),
            (Channel::TranslateZ, self.translation.z),
        ];
        let drive = |(channel, gain)| Constraint::Drive(Drive { control, bone, channel, gain });
        parts.into_iter().filter(|(_, gain)| gain.abs() > 1e-4).map(drive).collect()
    }
}

impl Jaw {
    /// Finds the joint. `teeth`: vertices of the lower teeth; `rigid`: vertices (teeth, gums, tongue)
    /// that belong wholly to the jaw or wholly to the skull.
    pub fn fit(mesh: &Mesh, shapes: &BlendshapeRig, teeth: &[u32], rigid: &[bool]) -> Result<Self, RigError> {
        let missing = |name: &str| RigError::Unknown { part: "the jaw".into(), name: name.into() };
        let open = shapes.find("jawOpen").ok_or_else(|| missing("shape jawOpen"))?;
        if teeth.is_empty() {
            return Err(missing("lower teeth"));
        }
        let full = motion_of(mesh, shapes, open, teeth);
        let pivot = hinge(&full).ok_or_else(|| missing("a turning jaw in shape jawOpen"))?;
        let weights = weights(mesh, shapes, open, &full, rigid);
        let found = JAW_SHAPES.iter().filter_map(|name| shapes.find(name));
        let motions = found
            .map(|shape| (shape, JawMotion::from_rigid(&motion_of(mesh, shapes, shape, teeth), pivot)))
            .collect();
        Ok(Self { pivot, weights, motions })
    }

    /// What is left of a jaw shape when the joint does its part: offsets before skinning that make the
    /// skinned vertex arrive where the shape wants it. `wanted`: the offsets of the shape, `[V]`.
    pub fn residual(&self, motion: &JawMotion, rest: &[Vec3], wanted: &[Vec3], rigid: &[bool]) -> Vec<Vec3> {
        let matrix = motion.matrix(self.pivot);
        let each = |vertex: usize| {
            // Rigid parts follow the joint exactly, even where the shape's own motion was not quite rigid.
            if rigid[vertex] {
                return Vec3::ZERO;
            }
            let blended = blend(&matrix, self.weights[vertex]);
            blended.inverse().transform_point3(rest[vertex] + wanted[vertex]) - rest[vertex]
        };
        (0..rest.len()).map(each).collect()
    }
}

/// `(1 − w) I + w M`.
fn blend(matrix: &Affine3A, weight: f32) -> Affine3A {
    let linear = Mat3::IDENTITY * (1.0 - weight) + Mat3::from(matrix.matrix3) * weight;
    Affine3A::from_mat3_translation(linear, Vec3::from(matrix.translation) * weight)
}

fn motion_of(mesh: &Mesh, shapes: &BlendshapeRig, shape: usize, vertices: &[u32]) -> RigidMotion {
    let deltas = shapes.shapes()[shape].deltas.to_dense(mesh.vertex_count());
    let from: Vec<Vec3> = vertices.iter().map(|v| mesh.positions()[*v as usize]).collect();
    let to: Vec<Vec3> = vertices.iter().zip(&from).map(|(v, p)| *p + deltas[*v as usize]).collect();
    fit_rigid(&from, &to)
}

/// The point that a turning motion leaves in place, on the plane of symmetry:
/// `p = ½ (t + cot(θ/2) a × t)` for the part of `t` across the axis `a`. `None` if it hardly turns.
fn hinge(motion: &RigidMotion) -> Option<Vec3> {
    let (axis, angle) = Quat::from_mat3(&motion.rotation.as_mat3()).to_axis_angle();
    if angle < 0.02 {
        return None;
    }
    let translation = motion.translation.as_vec3();
    let across = translation - axis * axis.dot(translation);
    let point = 0.5 * (across + axis.cross(across) / (0.5 * angle).tan());
    Some(point.with_x(0.0))
}

/// How far each vertex goes along with the jaw: `δ·d / (|d|² + ε²)` for its own movement `δ` and that
/// of the rigid jaw `d`, smoothed over the skin.
fn weights(
    mesh: &Mesh,
    shapes: &BlendshapeRig,
    open: usize,
    motion: &RigidMotion,
    rigid: &[bool],
) -> Vec<f32> {
    // Near the hinge the jaw hardly moves: the quotient says nothing there.
    const NEAR_HINGE: f32 = 0.3;
    let deltas = shapes.shapes()[open].deltas.to_dense(mesh.vertex_count());
    let share = |(point, delta): (&Vec3, &Vec3)| {
        let whole = motion.apply(*point) - *point;
        (delta.dot(whole) / (whole.length_squared() + NEAR_HINGE * NEAR_HINGE)).clamp(0.0, 1.0)
    };
    let mut weights: Vec<f32> = mesh.positions().iter().zip(&deltas).map(share).collect();
    for (weight, rigid) in weights.iter_mut().zip(rigid) {
        if *rigid {
            *weight = weight.round();
        }
    }
    smooth(&mesh.adjacency(), &mut weights, rigid, 6);
    for weight in &mut weights {
        // Traces far from the mouth would make every vertex of the head follow two bones.
        if *weight < 0.01 {
            *weight = 0.0;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hinge_of_a_turn_is_found() {
        let pivot = Vec3::new(0.0, -1.5, 2.0);
        let from: Vec<Vec3> = (0..20)
            .map(|i| Vec3::new((i % 5) as f32 - 2.0, -6.0 + (i % 3) as f32 * 0.4, 9.0 - (i / 5) as f32))
            .collect();
        let turn = Quat::from_rotation_x(0.4);
        let to: Vec<Vec3> = from.iter().map(|p| pivot + turn * (*p - pivot)).collect();
        let motion = fit_rigid(&from, &to);
        let found = hinge(&motion).expect("it turns");
        assert!((found - pivot).length() < 1e-3, "{found}");
        let jaw = JawMotion::from_rigid(&motion, pivot);
        assert!((jaw.degrees - Vec3::X * 0.4f32.to_degrees()).length() < 1e-2);
        for (from, to) in from.iter().zip(&to) {
            assert!((jaw.matrix(pivot).transform_point3(*from) - *to).length() < 1e-4);
        }
        assert!(hinge(&fit_rigid(&from, &from)).is_none());
    }
}
