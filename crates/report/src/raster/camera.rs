//! The perspective camera and the framing of a box. World space is centimetres with Y up; a character
//! looks along +Z, so that a camera at yaw 0 sees its face.

use understudy_core::{Mat3, Vec2, Vec3};

/// A pinhole camera that looks at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Camera {
    /// Where the eye is, cm.
    pub position: Vec3,
    /// Unit vector to the right of the picture.
    pub right: Vec3,
    /// Unit vector to the top of the picture.
    pub up: Vec3,
    /// Unit vector into the picture.
    pub forward: Vec3,
    /// Tangent of half the vertical angle of view.
    pub half_height: f32,
    /// Width of the picture over its height.
    pub aspect: f32,
}

impl Camera {
    /// Vertical angle of view of [`Camera::framing`], degrees: a portrait lens, so that faces keep
    /// their proportions.
    pub const ANGLE_OF_VIEW: f32 = 22.0;

    /// How much of the picture's half width or height the framed box fills.
    const FILL: f32 = 0.92;

    /// A camera that sees a whole box. `yaw_degrees` 0 is from the front (+Z), 90 from +X;
    /// `pitch_degrees` above 0 looks down from above. Bad numbers give a camera on the unit box.
    pub fn framing(low: Vec3, high: Vec3, yaw_degrees: f32, pitch_degrees: f32, aspect: f32) -> Self {
        Self::framing_points(&box_corners(low, high), yaw_degrees, pitch_degrees, aspect)
    }

    /// A camera that sees all finite points, tighter than a box around them; otherwise as
    /// [`Camera::framing`]. Several poses are framed together by joining their points.
    pub fn framing_points(points: &[Vec3], yaw_degrees: f32, pitch_degrees: f32, aspect: f32) -> Self {
        let unit_box = box_corners(Vec3::splat(-0.5), Vec3::splat(0.5));
        let (points, (low, high)) = match bounds(points) {
            Some(bounds) => (points, bounds),
            None => (&unit_box[..], (unit_box[0], unit_box[7])),
        };
        let finite = |value: f32, default: f32| if value.is_finite() { value } else { default };
        let yaw = finite(yaw_degrees, 0.0).to_radians();
        let pitch = finite(pitch_degrees, 0.0).clamp(-89.0, 89.0).to_radians();
        let aspect = finite(aspect, 1.0).clamp(0.05, 20.0);
        let forward = -Vec3::new(yaw.sin() * pitch.cos(), pitch.sin(), yaw.cos() * pitch.cos());
        let right = Vec3::new(yaw.cos(), 0.0, -yaw.sin());
        let up = right.cross(forward);
        let half_height = (Self::ANGLE_OF_VIEW.to_radians() / 2.0).tan();
        let (tangent_x, tangent_y) = (half_height * aspect * Self::FILL, half_height * Self::FILL);

        let size = (high - low).max_element().max(1e-4);
        let mut target = (low + high) / 2.0;
        let mut distance = 0.0;
        // Perspective makes the near side larger, so the box's centre is not the picture's: a few
        // rounds of fitting and centring settle it.
        let seen: Vec<Vec3> = points
            .iter()
            .filter(|p| p.is_finite())
            .map(|p| Vec3::new(p.dot(right), p.dot(up), p.dot(forward)))
            .collect();
        for round in 0..8 {
            let centre = Vec3::new(target.dot(right), target.dot(up), target.dot(forward));
            distance = size * 0.05;
            for point in &seen {
                let offset = (*point - centre).abs();
                distance =
                    distance.max((offset.x / tangent_x).max(offset.y / tangent_y) - point.z + centre.z);
            }
            if round == 7 {
                break;
            }
            let (mut low, mut high) = (Vec2::INFINITY, Vec2::NEG_INFINITY);
            for point in &seen {
                let offset = *point - centre;
                let place = offset.truncate() / (distance + offset.z).max(size * 0.02);
                (low, high) = (low.min(place), high.max(place));
            }
            let shift = (low + high) * (0.5 * distance);
            target += right * shift.x + up * shift.y;
        }
        Self { position: target - forward * distance, right, up, forward, half_height, aspect }
    }

    /// A camera at a place that looks at another, with a vertical angle of view in degrees.
    pub fn looking_at(position: Vec3, target: Vec3, angle_of_view_degrees: f32, aspect: f32) -> Self {
        let forward = (target - position).try_normalize().unwrap_or(Vec3::NEG_Z);
        let right = forward.cross(Vec3::Y).try_normalize().unwrap_or(Vec3::X);
        let half_height = (angle_of_view_degrees.clamp(1.0, 150.0).to_radians() / 2.0).tan();
        Self { position, right, up: right.cross(forward), forward, half_height, aspect }
    }

    /// World point to camera space: x right, y up, z depth along the line of sight, cm.
    pub fn to_camera(&self, point: Vec3) -> Vec3 {
        let offset = point - self.position;
        Vec3::new(offset.dot(self.right), offset.dot(self.up), offset.dot(self.forward))
    }

    /// Pixels across and down of one cm at depth one cm.
    pub fn pixels(&self, width: usize, height: usize) -> [f64; 2] {
        let across = width as f64 / (2.0 * f64::from(self.half_height) * f64::from(self.aspect));
        [across, height as f64 / (2.0 * f64::from(self.half_height))]
    }

    /// Camera space to pixels: `(x, y)` from the upper left corner. `None` behind the eye.
    pub fn project(&self, point: Vec3, width: usize, height: usize) -> Option<(f32, f32)> {
        let eye = self.to_camera(point);
        if eye.z <= 0.0 || !eye.is_finite() {
            return None;
        }
        let scale = height as f32 / (2.0 * self.half_height);
        let across = width as f32 / (2.0 * self.half_height * self.aspect);
        Some((width as f32 / 2.0 + across * eye.x / eye.z, height as f32 / 2.0 - scale * eye.y / eye.z))
    }

    /// The direction, with depth one, through a point of the picture; `x` and `y` run from -1 to 1, y up.
    pub fn sight(&self, x: f32, y: f32) -> Vec3 {
        self.forward + self.right * (x * self.half_height * self.aspect) + self.up * (y * self.half_height)
    }

    /// Horizontal frame of the camera: right, world up, and backwards to the viewer. Lights hang on
    /// it, so that every view of a sheet is lit alike.
    pub fn level_frame(&self) -> Mat3 {
        let flat = Vec3::new(self.right.x, 0.0, self.right.z);
        let right = flat.try_normalize().unwrap_or(Vec3::X);
        Mat3::from_cols(right, Vec3::Y, right.cross(Vec3::Y))
    }
}

/// The eight corners of a box.
fn box_corners(low: Vec3, high: Vec3) -> [Vec3; 8] {
    std::array::from_fn(|index| {
        let pick = |bit: usize, a: f32, b: f32| if index >> bit & 1 == 0 { a } else { b };
        Vec3::new(pick(0, low.x, high.x), pick(1, low.y, high.y), pick(2, low.z, high.z))
    })
}

/// Lower and upper corner of the finite points; `None` when there is none. Take the union over the
/// frames of a clip, so that one camera serves them all.
pub fn bounds<'a>(points: impl IntoIterator<Item = &'a Vec3>) -> Option<(Vec3, Vec3)> {
    points.into_iter().filter(|p| p.is_finite()).fold(None, |box_, &p| match box_ {
        None => Some((p, p)),
        Some((low, high)) => Some((low.min(p), high.max(p))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_holds_every_corner_and_fills_the_picture() {
        let (low, high) = (Vec3::new(-30.0, 0.0, -10.0), Vec3::new(40.0, 190.0, 25.0));
        for (yaw, pitch, aspect) in
            [(0.0, 0.0, 1.0), (35.0, 10.0, 0.5), (-120.0, 60.0, 2.0), (90.0, -89.0, 1.0)]
        {
            let camera = Camera::framing(low, high, yaw, pitch, aspect);
            let mut reach = 0.0f32;
            for corner in box_corners(low, high) {
                let (x, y) = camera.project(corner, 200, 100).expect("in front of the eye");
                reach = reach.max((x / 100.0 - 1.0).abs()).max((y / 50.0 - 1.0).abs());
            }
            assert!(reach <= 0.925 && reach > 0.85, "yaw {yaw} pitch {pitch}: {reach}");
        }
    }

    #[test]
    fn framing_points_is_tighter_than_their_box() {
        let ball: Vec<Vec3> = (0..500)
            .map(|i| {
                let (height, turn) = (i as f32 / 250.0 - 1.0, i as f32 * 2.4);
                let radius = (1.0 - height * height).max(0.0).sqrt();
                Vec3::new(radius * turn.cos(), height, radius * turn.sin())
            })
            .chain([Vec3::NAN])
            .collect();
        let (low, high) = bounds(&ball).expect("finite points");
        let boxed = Camera::framing(low, high, 45.0, 0.0, 1.0);
        let tight = Camera::framing_points(&ball, 45.0, 0.0, 1.0);
        assert!(tight.position.length() < 0.9 * boxed.position.length());
        for point in ball.iter().filter(|p| p.is_finite()) {
            let (x, y) = tight.project(*point, 100, 100).expect("in front");
            assert!((3.0..97.0).contains(&x) && (3.0..97.0).contains(&y));
        }
    }

    #[test]
    fn yaw_zero_looks_at_the_front_and_x_is_on_the_right() {
        let camera = Camera::framing(Vec3::splat(-1.0), Vec3::ONE, 0.0, 0.0, 1.0);
        assert!(camera.position.z > 1.0);
        let (right, _) = camera.project(Vec3::X, 100, 100).expect("visible");
        let (_, top) = camera.project(Vec3::Y, 100, 100).expect("visible");
        assert!(right > 50.0 && top < 50.0);
    }

    #[test]
    fn bad_numbers_still_give_a_camera() {
        let nan = Vec3::splat(f32::NAN);
        let camera = Camera::framing(nan, Vec3::ONE, f32::NAN, f32::INFINITY, 0.0);
        assert!(camera.position.is_finite() && camera.aspect > 0.0);
        assert!(Camera::framing(Vec3::ONE, Vec3::ONE, 0.0, 0.0, 1.0).position.is_finite());
        assert_eq!(bounds(&[nan]), None);
    }
}
