//! The camera that films an actor: a pinhole whose in-plane rotation and centre of projection are solved for, and a head
//! that may turn before it. Pixels run right and down; the middle of the first pixel is (½, ½).

use understudy_core::{DMat3, DQuat, DVec3, Vec3};

/// `p(v) = o + f Rot(θ) (x/z, −y/z)` with `(x, y, z) = A (v − t)` (6.3): rotation A and place t of the camera stay, the
/// in-plane rotation θ and the centre of projection o are solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Camera {
    /// Where the eye is, cm.
    pub position: DVec3,
    /// World to camera: rows right, up, into the picture.
    pub axes: DMat3,
    /// Focal length, pixels.
    pub focal: f64,
    /// In-plane rotation θ, radians, clockwise in the picture.
    pub roll: f64,
    /// Centre of projection o, pixels.
    pub centre: [f64; 2],
    /// Size of the picture, pixels.
    pub size: [usize; 2],
}

/// A point of the picture with its derivatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projected {
    /// Pixels.
    pub place: [f64; 2],
    /// Depth, cm.
    pub depth: f64,
    /// `∂p/∂v`: one row for x, one for y, pixels per cm.
    pub by_point: [DVec3; 2],
    /// `∂p/∂θ`, pixels per radian.
    pub by_roll: [f64; 2],
}

impl Camera {
    /// The nearest depth that is seen, cm.
    const NEAR: f64 = 1e-3;

    /// A camera before a face that looks along +Z: `height` cm around `target` fill the picture from a distance, cm.
    pub fn portrait(target: DVec3, height: f64, distance: f64, side: usize) -> Self {
        Self {
            position: target + DVec3::Z * distance,
            axes: DMat3::from_cols(DVec3::X, DVec3::Y, DVec3::NEG_Z),
            focal: side as f64 * distance / height,
            roll: 0.0,
            centre: [side as f64 / 2.0; 2],
            size: [side, side],
        }
    }

    /// The same camera with a picture that is `factor` times as large.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            focal: self.focal * factor,
            centre: self.centre.map(|value| value * factor),
            size: self.size.map(|value| ((value as f64 * factor).round() as usize).max(1)),
            ..*self
        }
    }

    /// World to camera, cm.
    pub fn to_camera(&self, point: DVec3) -> DVec3 {
        self.axes * (point - self.position)
    }

    /// Pixels of a point; `None` behind the eye.
    pub fn project(&self, point: DVec3) -> Option<[f64; 2]> {
        let eye = self.to_camera(point);
        (eye.z > Self::NEAR).then(|| self.place(eye))
    }

    fn place(&self, eye: DVec3) -> [f64; 2] {
        let (sine, cosine) = self.roll.sin_cos();
        let (x, y) = (self.focal * eye.x / eye.z, -self.focal * eye.y / eye.z);
        [self.centre[0] + cosine * x - sine * y, self.centre[1] + sine * x + cosine * y]
    }

    /// [`Camera::project`] with derivatives.
    pub fn project_with_derivatives(&self, point: DVec3) -> Option<Projected> {
        let eye = self.to_camera(point);
        if eye.z <= Self::NEAR {
            return None;
        }
        let place = self.place(eye);
        let (sine, cosine) = self.roll.sin_cos();
        let scale = self.focal / eye.z;
        // Rows of ∂(f x/z, −f y/z)/∂(x, y, z), brought into world space by the axes.
        let across = self.axes.transpose() * DVec3::new(scale, 0.0, -scale * eye.x / eye.z);
        let down = self.axes.transpose() * DVec3::new(0.0, -scale, scale * eye.y / eye.z);
        Some(Projected {
            place,
            depth: eye.z,
            by_point: [across * cosine - down * sine, across * sine + down * cosine],
            by_roll: [-(place[1] - self.centre[1]), place[0] - self.centre[0]],
        })
    }

    /// The unit direction in which a pixel looks.
    pub fn ray(&self, place: [f64; 2]) -> DVec3 {
        let (sine, cosine) = self.roll.sin_cos();
        let (x, y) = (place[0] - self.centre[0], place[1] - self.centre[1]);
        let (x, y) = (cosine * x + sine * y, -sine * x + cosine * y);
        (self.axes.transpose() * DVec3::new(x / self.focal, -y / self.focal, 1.0)).normalize()
    }

    /// Camera space for a rasteriser whose projection is centred and upright: roll and centre are sheared into x and y, so
    /// that `w/2 + f x/z` and `h/2 − f y/z` are this camera's pixels.
    pub fn to_centred(&self, point: Vec3) -> Vec3 {
        let eye = self.to_camera(point.as_dvec3());
        let (sine, cosine) = self.roll.sin_cos();
        let offset = |axis: usize| (self.centre[axis] - self.size[axis] as f64 / 2.0) / self.focal;
        let x = cosine * eye.x + sine * eye.y + offset(0) * eye.z;
        let y = -sine * eye.x + cosine * eye.y - offset(1) * eye.z;
        DVec3::new(x, y, eye.z).as_vec3()
    }
}

/// How a head stands before the camera: `v' = R (v − pivot) + pivot + t`. Light and camera stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadPose {
    /// R.
    pub rotation: DQuat,
    /// t, cm.
    pub translation: DVec3,
    /// About which it turns, cm.
    pub pivot: DVec3,
}

impl HeadPose {
    /// At rest.
    pub fn rest(pivot: DVec3) -> Self {
        Self { rotation: DQuat::IDENTITY, translation: DVec3::ZERO, pivot }
    }

    /// Where a point goes.
    pub fn apply(&self, point: DVec3) -> DVec3 {
        self.rotation * (point - self.pivot) + self.pivot + self.translation
    }

    /// Where a point of the turned head comes from.
    pub fn undo(&self, point: DVec3) -> DVec3 {
        self.rotation.inverse() * (point - self.pivot - self.translation) + self.pivot
    }

    /// The pose after a turn by a rotation vector (radians, on the left) and a shift.
    pub fn moved(&self, turn: DVec3, shift: DVec3) -> Self {
        let turn = DQuat::from_scaled_axis(turn);
        Self { rotation: (turn * self.rotation).normalize(), translation: self.translation + shift, ..*self }
    }

    /// Yaw, pitch and roll, degrees: about Y, then X, then Z.
    pub fn degrees(&self) -> [f64; 3] {
        let (yaw, pitch, roll) = self.rotation.to_euler(understudy_core::EulerRot::YXZ);
        [yaw.to_degrees(), pitch.to_degrees(), roll.to_degrees()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::gradient::directional_miss;

    fn camera() -> Camera {
        let mut camera = Camera::portrait(DVec3::new(0.0, 1.0, 5.0), 26.0, 60.0, 512);
        camera.roll = 0.07;
        camera.centre = [250.0, 263.0];
        camera
    }

    #[test]
    fn projection_has_right_derivatives() {
        let camera = camera();
        let point = DVec3::new(3.0, -4.0, 8.0);
        let projected = camera.project_with_derivatives(point).expect("in front");
        for axis in 0..2 {
            let gradient =
                [projected.by_point[axis].to_array().to_vec(), vec![projected.by_roll[axis]]].concat();
            let cost = |x: &[f64]| {
                let moved = Camera { roll: x[3], ..camera };
                moved.project(DVec3::new(x[0], x[1], x[2])).expect("in front")[axis]
            };
            let x = [3.0, -4.0, 8.0, camera.roll];
            assert!(directional_miss(cost, &x, &gradient, 1e-4, 10, 3) < 1e-7);
        }
    }

    #[test]
    fn rays_go_through_their_pixels_and_rasterisers_agree() {
        let camera = camera();
        for point in [DVec3::new(3.0, -4.0, 8.0), DVec3::new(-6.0, 9.0, -2.0)] {
            let place = camera.project(point).expect("in front");
            let distance = (point - camera.position).length();
            assert!((camera.position + camera.ray(place) * distance - point).length() < 1e-9);
            let eye = camera.to_centred(point.as_vec3()).as_dvec3();
            let x = 256.0 + camera.focal * eye.x / eye.z;
            let y = 256.0 - camera.focal * eye.y / eye.z;
            assert!((x - place[0]).abs() < 1e-3 && (y - place[1]).abs() < 1e-3, "{x} {y} {place:?}");
        }
        assert_eq!(camera.project(DVec3::Z * 1000.0), None);
    }

    #[test]
    fn heads_turn_and_turn_back() {
        let head = HeadPose::rest(DVec3::new(0.0, -3.0, 2.0)).moved(DVec3::new(0.1, 0.3, -0.05), DVec3::ONE);
        let point = DVec3::new(4.0, 2.0, 9.0);
        assert!((head.undo(head.apply(point)) - point).length() < 1e-12);
        assert!(head.degrees()[0] > 10.0);
    }
}
