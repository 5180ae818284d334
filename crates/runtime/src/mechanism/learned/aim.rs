//! The frame of a limb that reaches for a goal. A thigh under inverse kinematics is a function of forty controls in the
//! frame of the pelvis, but of little more than the distance between hip and ankle in the frame that points from one to
//! the other: the knee's angle follows from three sides of a triangle.

use understudy_core::{Affine3A, DMat3, DVec3, Mat3A, Vec3, Vec3A};

/// Numbers that a bone sees of where it points: the distance, the root of what is missing to a straight limb, the
/// direction in the parent's frame, and two columns of the goal's own rotation as seen in the limb's frame.
pub const AIM_INPUTS: usize = 11;

/// Numbers of an affine map.
const MAP: usize = 12;

/// Where a bone's frame points from and to.
#[derive(Debug, Clone, PartialEq)]
pub struct Aim {
    /// The place that it points from, in the frame of the bone's parent.
    pub base: Vec3,
    /// Direction of the goal at rest, a unit vector in the parent's rotation.
    pub axis: Vec3,
    /// Distance at which the limb is straight, cm.
    pub reach: f32,
    /// The bone whose origin it points to.
    pub target: usize,
}

/// What pointing gives, in 64 bits, so that its slopes can be had by differences.
struct Looking {
    turn: DMat3,
    place: DVec3,
    inputs: [f64; AIM_INPUTS],
}

impl Aim {
    /// The limb's frame and what is seen in it.
    pub fn look(&self, parent: &Affine3A, target: &Affine3A) -> (Affine3A, [f32; AIM_INPUTS]) {
        let seen = self.looking(&numbers(parent), &numbers(target));
        let frame = Affine3A {
            matrix3: Mat3A::from(seen.turn.as_mat3()),
            translation: Vec3A::from(seen.place.as_vec3()),
        };
        (frame, seen.inputs.map(|number| number as f32))
    }

    fn looking(&self, parent: &[f64; MAP], target: &[f64; MAP]) -> Looking {
        let (matrix, at) = map(parent);
        let turn = rotation(&matrix);
        let (goal, goal_at) = map(target);
        let place = matrix * self.base.as_dvec3() + at;
        let away = goal_at - place;
        let distance = away.length();
        let axis = self.axis.as_dvec3();
        let direction = match distance > 1e-9 {
            true => turn.transpose() * (away / distance),
            false => axis,
        };
        let frame = turn * shortest_arc(axis, direction);
        let seen = frame.transpose() * goal;
        // The angle of a knee grows like this root where the limb begins to bend.
        let slack = (f64::from(self.reach) - distance).max(0.0);
        let [x, y] = [seen.x_axis, seen.y_axis];
        let inputs = [
            distance,
            // Its slope has no bound at zero.
            (slack + 1e-4).sqrt(),
            direction.x,
            direction.y,
            direction.z,
            x.x,
            x.y,
            x.z,
            y.x,
            y.y,
            y.z,
        ];
        Looking { turn: frame, place, inputs }
    }

    /// Adds to the derivatives by parent and target those that come through the frame and what is seen in it. By central
    /// differences in 64 bits, which are good to nine digits.
    pub(super) fn backward(
        &self,
        (parent, target): (&Affine3A, &Affine3A),
        by_frame: &Affine3A,
        by_inputs: &[f32],
        (by_parent, by_target): (&mut Affine3A, &mut Affine3A),
    ) {
        let by_turn = by_frame.matrix3.to_cols_array().map(f64::from);
        let by_place = Vec3::from(by_frame.translation).as_dvec3();
        let (parent, target) = (numbers(parent), numbers(target));
        let value = |parent: &[f64; MAP], target: &[f64; MAP]| -> f64 {
            let seen = self.looking(parent, target);
            let turn: f64 = seen.turn.to_cols_array().iter().zip(&by_turn).map(|(a, b)| a * b).sum();
            let inputs: f64 = seen.inputs.iter().zip(by_inputs).map(|(a, b)| a * f64::from(*b)).sum();
            turn + seen.place.dot(by_place) + inputs
        };
        let slopes = |of_parent: bool| -> [f32; MAP] {
            std::array::from_fn(|number| {
                let at = if of_parent { parent[number] } else { target[number] };
                let step = 1e-6 * at.abs().max(1.0);
                let moved = |by: f64| {
                    let (mut parent, mut target) = (parent, target);
                    if of_parent {
                        parent[number] += by
                    } else {
                        target[number] += by
                    }
                    value(&parent, &target)
                };
                ((moved(step) - moved(-step)) / (2.0 * step)) as f32
            })
        };
        for (by, slopes) in [(by_parent, slopes(true)), (by_target, slopes(false))] {
            by.matrix3 += Mat3A::from_cols_slice(&slopes[..9]);
            by.translation += Vec3A::from_slice(&slopes[9..]);
        }
    }

    /// Its numbers in a file: base, axis, reach.
    pub(crate) fn numbers(&self) -> [f32; 7] {
        let (b, a) = (self.base, self.axis);
        [b.x, b.y, b.z, a.x, a.y, a.z, self.reach]
    }

    /// The reverse of [`Aim::numbers`].
    pub(crate) fn from_numbers(numbers: &[f32], target: usize) -> Self {
        Self {
            base: Vec3::from_slice(numbers),
            axis: Vec3::from_slice(&numbers[3..]),
            reach: numbers[6],
            target,
        }
    }

    /// Whether it can be evaluated.
    pub(super) fn is_sane(&self) -> bool {
        self.base.is_finite() && self.reach.is_finite() && (self.axis.length() - 1.0).abs() < 1e-3
    }
}

fn numbers(map: &Affine3A) -> [f64; MAP] {
    map.to_cols_array().map(f64::from)
}

fn map(numbers: &[f64; MAP]) -> (DMat3, DVec3) {
    (DMat3::from_cols_slice(&numbers[..9]), DVec3::from_slice(&numbers[9..]))
}

/// The rotation of a matrix: its first column, and the second as far as it is perpendicular.
fn rotation(matrix: &DMat3) -> DMat3 {
    let x = matrix.x_axis.normalize_or(DVec3::X);
    let y = (matrix.y_axis - x * x.dot(matrix.y_axis)).try_normalize();
    let y = y.unwrap_or_else(|| x.any_orthonormal_vector());
    DMat3::from_cols(x, y, x.cross(y))
}

/// The smallest rotation from one unit vector to another.
fn shortest_arc(from: DVec3, to: DVec3) -> DMat3 {
    let cosine = from.dot(to);
    if cosine < -0.9999 {
        // Backwards, about any axis: half a turn.
        let side = from.any_orthonormal_vector();
        return DMat3::from_cols_array(&std::array::from_fn(|place| {
            let (row, column) = (place % 3, place / 3);
            2.0 * side[row] * side[column] - f64::from(u8::from(row == column))
        }));
    }
    let v = from.cross(to);
    let cross =
        DMat3::from_cols(DVec3::new(0.0, v.z, -v.y), DVec3::new(-v.z, 0.0, v.x), DVec3::new(v.y, -v.x, 0.0));
    DMat3::IDENTITY + cross + cross * cross * (1.0 / (1.0 + cosine))
}
