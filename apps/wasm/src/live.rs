//! A twin that an actor drives, in the browser: points and scores of a face go in through an array of numbers, controls come out.

use std::sync::Arc;
use understudy_core::{ControlSpecs, arkit};
use understudy_runtime::Vec3;
use understudy_runtime::ik::PointIk;
use understudy_runtime::live::{Driver, FaceGeometry, FollowSettings, Observation};

/// Points that a face has.
const POINTS: usize = 478;
/// Most seconds between two frames: a page that slept begins anew.
const MOST_SECONDS: f32 = 1.0;

/// Drives a twin.
pub struct Live {
    driver: Driver,
    points: Vec<Vec3>,
    /// x, y and z of every point in shares of the picture, width and height of the picture, and the scores of ARKit's shapes
    /// in the order of Live Link Face.
    pub input: Vec<f32>,
    /// Yaw, pitch and roll of the head, yaw and pitch of the left and the right eye (degrees), how much a face is seen (0 to
    /// 1), how far points are off by inverse kinematics and by scores (mm, −1 where nothing is known), and the scores with
    /// the actor's rest taken off.
    pub output: Vec<f32>,
}

impl Live {
    /// Numbers that go in.
    pub const INPUT: usize = 3 * POINTS + 2 + arkit::SHAPES.len();
    /// Numbers that come out beside the controls.
    pub const OUTPUT: usize = 10 + arkit::SHAPES.len();

    /// `geometry`: the canonical face of a `.task` file.
    pub fn new(geometry: &[u8], specs: &ControlSpecs, ik: Option<Arc<PointIk>>) -> Result<Self, String> {
        let geometry =
            FaceGeometry::parse(geometry).map_err(|problem| format!("canonical face: {problem}"))?;
        let driver = Driver::new(specs, geometry, ik, FollowSettings::default());
        Ok(Self {
            driver: driver.map_err(|error| error.to_string())?,
            points: vec![Vec3::ZERO; POINTS],
            input: vec![0.0; Self::INPUT],
            output: vec![0.0; Self::OUTPUT],
        })
    }

    fn read(&mut self) -> Result<([f32; 2], std::ops::Range<usize>), String> {
        let (points, rest) = self.input.split_at(3 * POINTS);
        if !self.input.iter().all(|number| number.is_finite()) {
            return Err("the face has a number that is not finite".into());
        }
        if !(rest[0] >= 1.0 && rest[1] >= 1.0) {
            return Err(format!("a picture of {} × {} pixels", rest[0], rest[1]));
        }
        self.points
            .iter_mut()
            .zip(points.chunks_exact(3))
            .for_each(|(point, p)| *point = Vec3::from_slice(p));
        Ok(([rest[0], rest[1]], 3 * POINTS + 2..Self::INPUT))
    }

    /// Takes the face in the array as the actor at rest.
    pub fn rest(&mut self) -> Result<usize, String> {
        let (size, shapes) = self.read()?;
        let seen = Observation { points: &self.points, size, shapes: &self.input[shapes] };
        match self.driver.set_rest(&seen) {
            true => Ok(1),
            false => Err("this face cannot be taken as the actor at rest".into()),
        }
    }

    /// The next frame: the face in the array, or none.
    pub fn follow(&mut self, seen: bool, seconds: f32, controls: &mut [f32]) -> Result<usize, String> {
        let seconds = seconds.clamp(0.0, MOST_SECONDS);
        let driven = if seen {
            let (size, shapes) = self.read()?;
            let seen = Observation { points: &self.points, size, shapes: &self.input[shapes] };
            self.driver.drive(Some(&seen), seconds, controls)
        } else {
            self.driver.drive(None, seconds, controls)
        };
        let driven = driven.map_err(|error| error.to_string())?;
        let now = self.driver.performance();
        let [by_points, by_scores] = driven.points_mm.unwrap_or([-1.0; 2]);
        self.output.fill(0.0);
        self.output[..3].copy_from_slice(&now.head);
        self.output[3..7].copy_from_slice(now.gaze.as_flattened());
        self.output[7..10].copy_from_slice(&[now.strength, by_points, by_scores]);
        self.output[10..].iter_mut().zip(&now.shapes).for_each(|(out, shape)| *out = *shape);
        Ok(1)
    }
}
