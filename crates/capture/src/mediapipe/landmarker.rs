//! From a frame to points, scores and where to look next: the detector finds a face, the points' net places it, and as long as it
//! is sure of what it sees, the next frame is cut out around these points and the detector rests.

use super::POINTS;
use super::detector::{Detection, Detector};
use super::region::{Border, Region};
use super::scores::READ;
use crate::Frame;
use crate::tflite::Network;
use understudy_core::Vec3;
use understudy_io::{ParseError, zip};
use understudy_runtime::live::FaceGeometry;

/// Side of what the points' net sees, pixels.
const SIDE: usize = 256;
/// Scores of a face from which on it is one.
const SURE: f32 = 0.5;
/// Outer corners of the actor's right and left eye.
const CORNERS: [usize; 2] = [33, 263];

/// What a `.task` file holds, by the names inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts;

impl Parts {
    /// Finds faces.
    pub const DETECTOR: &str = "face_detector.tflite";
    /// Places points.
    pub const POINTS: &str = "face_landmarks_detector.tflite";
    /// Scores expressions.
    pub const SCORES: &str = "face_blendshapes.tflite";
    /// The canonical face.
    pub const GEOMETRY: &str = "geometry_pipeline_metadata_landmarks.binarypb";
}

/// How frames follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Not at all: every picture is searched for faces.
    Pictures,
    /// A face is where it was.
    Video,
}

/// A face in a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Face {
    /// 478 points: x and y in shares of the frame's size, z of its width, towards the camera negative.
    pub points: Vec<Vec3>,
    /// 52, 0 to 1, named by [`super::SCORES`].
    pub scores: Vec<f32>,
    /// How sure the net is that there is a face, 0 to 1.
    pub presence: f32,
    /// Where it looked.
    pub region: Region,
}

/// Which face is followed where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// None: there must be one alone.
    Only,
    /// The largest in the picture.
    Largest,
    /// The one furthest to the left of the picture.
    Left,
    /// The one furthest to the right.
    Right,
}

/// What was seen in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// So many faces, where one alone was wanted.
    Several(usize),
    /// The face that is followed.
    Followed,
    /// A face that was searched for, and how many there were.
    Found(usize),
    /// No face.
    None,
}

/// The nets with their memory: one per thread.
#[derive(Debug, Clone)]
pub struct Landmarker {
    detector: Detector,
    points: Network,
    scores: Network,
    geometry: FaceGeometry,
    mode: Mode,
    next: Option<Region>,
    face: Face,
}

impl Landmarker {
    /// Reads a `.task` file.
    pub fn parse(bytes: &[u8], mode: Mode) -> Result<Self, ParseError> {
        let members = zip::members(bytes)?;
        let member = |name: &str| {
            let found = members.iter().find(|member| member.name == name);
            let found = found.ok_or_else(|| {
                ParseError::new(
                    format!("member '{name}'"),
                    "is missing: this is no face landmarker of MediaPipe",
                )
            })?;
            zip::unpack(bytes, found)
        };
        let inside = |name: &str, error: ParseError| {
            ParseError::new(format!("{name}: {}", error.place), error.problem)
        };
        let network = |name: &str| Network::parse(&member(name)?).map_err(|error| inside(name, error));
        let detector =
            Detector::parse(&member(Parts::DETECTOR)?).map_err(|error| inside(Parts::DETECTOR, error))?;
        let (points, scores) = (network(Parts::POINTS)?, network(Parts::SCORES)?);
        let expect = |network: &Network, name: &str, input: &[usize], outputs: &[usize]| {
            let counts: Vec<usize> = network.outputs().map(|(_, shape)| shape.iter().product()).collect();
            if network.input_shape() != input || counts.get(..outputs.len()) != Some(outputs) {
                let problem =
                    format!("{:?} to {counts:?}, expected {input:?} to {outputs:?}", network.input_shape());
                return Err(inside(name, ParseError::new("shapes", problem)));
            }
            Ok(())
        };
        expect(&points, Parts::POINTS, &[1, SIDE, SIDE, 3], &[3 * POINTS, 1])?;
        expect(&scores, Parts::SCORES, &[1, READ.len(), 2], &[52])?;
        let geometry = FaceGeometry::parse(&member(Parts::GEOMETRY)?)
            .map_err(|problem| inside(Parts::GEOMETRY, ParseError::new("canonical face", problem)))?;
        let face = Face {
            points: vec![Vec3::ZERO; POINTS],
            scores: vec![0.0; 52],
            presence: 0.0,
            region: Region { centre: [0.5; 2], size: [1.0; 2], turn: 0.0 },
        };
        Ok(Self { detector, points, scores, geometry, mode, next: None, face })
    }

    /// The canonical face, which head poses are relative to.
    pub fn geometry(&self) -> &FaceGeometry {
        &self.geometry
    }

    /// Forgets where the face was.
    pub fn forget(&mut self) {
        self.next = None;
    }

    /// All faces of a frame, the surest first.
    pub fn detect(&mut self, frame: &Frame) -> Vec<Detection> {
        self.detector.detect(frame, SURE)
    }

    /// Looks at a frame; [`Self::face`] is what was seen, where something was.
    pub fn look(&mut self, frame: &Frame, choice: Choice) -> Sighting {
        let size = [frame.width() as f32, frame.height() as f32];
        if self.mode == Mode::Video
            && let Some(region) = self.next.take().filter(Region::is_sound)
            && self.place(frame, region)
        {
            return Sighting::Followed;
        }
        let mut faces = self.detector.detect(frame, SURE);
        let width = |face: &Detection| face.high[0] - face.low[0];
        match choice {
            Choice::Only if faces.len() > 1 => return Sighting::Several(faces.len()),
            Choice::Only => {}
            Choice::Largest => faces.sort_by(|a, b| width(b).total_cmp(&width(a))),
            Choice::Left => faces.sort_by(|a, b| a.low[0].total_cmp(&b.low[0])),
            Choice::Right => faces.sort_by(|a, b| b.high[0].total_cmp(&a.high[0])),
        }
        for face in &faces {
            let region = face.region(size);
            if region.is_sound() && self.place(frame, region) {
                return Sighting::Found(faces.len());
            }
        }
        Sighting::None
    }

    /// What was seen last.
    pub fn face(&self) -> &Face {
        &self.face
    }

    /// Places the points in a region; `false` where there is no face.
    fn place(&mut self, frame: &Frame, region: Region) -> bool {
        let size = [frame.width() as f32, frame.height() as f32];
        region.sample(frame, SIDE, Border::Repeat, [0.0, 1.0], self.points.input());
        self.points.run();
        let output = |index: usize| self.points.output(index).expect("checked when it was read");
        let presence = 1.0 / (1.0 + (-output(1)[0]).exp());
        if presence.is_nan() || presence < SURE {
            return false;
        }
        for (place, point) in output(0).chunks_exact(3).zip(&mut self.face.points) {
            let [x, y, z] = [0, 1, 2].map(|axis| place[axis] / SIDE as f32);
            let [x, y] = region.to_frame([x, y], size);
            *point = Vec3::new(x, y, z * region.size[0]);
        }
        if self.face.points.iter().any(|point| !point.is_finite()) {
            return false;
        }
        self.face.presence = presence;
        self.face.region = region;
        score(&mut self.scores, &self.face.points, size, &mut self.face.scores);
        let span = |axis: usize| {
            let start = (f32::MAX, f32::MIN);
            self.face.points.iter().fold(start, |(low, high), p| (low.min(p[axis]), high.max(p[axis])))
        };
        let ((left, right), (top, bottom)) = (span(0), span(1));
        let [a, b] = CORNERS.map(|corner| self.face.points[corner].truncate().to_array());
        self.next = Some(Region::around([left, top], [right, bottom], a, b, size).squared(size).grown(1.5));
        true
    }
}

/// Scores of points in a frame of `[width, height]` pixels.
pub(super) fn score(network: &mut Network, points: &[Vec3], size: [f32; 2], out: &mut [f32]) {
    for (slot, point) in network.input().chunks_exact_mut(2).zip(READ) {
        let point = points[usize::from(point)];
        slot.copy_from_slice(&[point.x * size[0], point.y * size[1]]);
    }
    network.run();
    let scores = network.output(0).expect("checked when it was read");
    // The net's own limits are open: what is not a number is nothing.
    out.iter_mut().zip(scores).for_each(|(out, score)| *out = if score.is_finite() { *score } else { 0.0 });
}

pub(super) fn expect_square(network: &Network, side: usize) -> Result<(), ParseError> {
    match network.input_shape() == [1, side, side, 3] {
        true => Ok(()),
        false => {
            let problem = format!("{:?}, a picture of {side} × {side} is wanted", network.input_shape());
            Err(ParseError::new("input", problem))
        }
    }
}
