//! The rotation that is nearest to a 3×3 matrix, starting from the last one: a few turns towards it (Müller et al. 2016),
//! no singular values. Where the matrix is flat, what it leaves open stays as it was.

use understudy_core::{Mat3, Quat};

/// Turns at most; from one frame to the next two or three are enough.
const TURNS: usize = 8;
/// A turn smaller than this is the last.
const SMALLEST: f32 = 1e-6;

/// Turns `start` until its columns fit those of `a` best: `max tr(Rᵀ A)`.
pub(super) fn nearest(a: Mat3, start: Mat3) -> Mat3 {
    let size = a.x_axis.length_squared() + a.y_axis.length_squared() + a.z_axis.length_squared();
    if !size.is_normal() {
        return start;
    }
    let mut rotation = start;
    for _ in 0..TURNS {
        let torque = rotation.x_axis.cross(a.x_axis)
            + rotation.y_axis.cross(a.y_axis)
            + rotation.z_axis.cross(a.z_axis);
        let along =
            rotation.x_axis.dot(a.x_axis) + rotation.y_axis.dot(a.y_axis) + rotation.z_axis.dot(a.z_axis);
        // The paper divides by the trace; where that is near zero half a turn away, a step of one is a fair one.
        let turn = torque / (along.abs() + 1e-9 * size.sqrt()).max(0.2 * size.sqrt());
        let angle = turn.length();
        if angle < SMALLEST {
            break;
        }
        rotation = Mat3::from_quat(Quat::from_axis_angle(turn / angle, angle)) * rotation;
    }
    // Rounding adds up over frames.
    let x = rotation.x_axis.normalize();
    let y = (rotation.y_axis - x * x.dot(rotation.y_axis)).normalize();
    Mat3::from_cols(x, y, x.cross(y))
}
