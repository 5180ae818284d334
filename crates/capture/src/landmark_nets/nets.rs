//! The nets on frames: where the face is, its points coarsely, then every part of it closely. A face that was found is followed
//! from frame to frame; one that is lost is searched for in windows of several sizes.

use super::crops::{Crop, normalise};
use super::file::{self, FileError};
use super::layout::{POINTS, PUPILS, Region, SKIN, coarse};
use super::pose::MeanFace;
use super::training::{NetSettings, Progress};
use crate::Frame;
use crate::mediapipe::Sighting;
use serde::{Deserialize, Serialize};
use understudy_core::{Vec3, arkit};
use understudy_learn::style::{Hourglass, HourglassShape, Tensor};
use understudy_runtime::live::FaceGeometry;

/// Side of a face's picture to the spread of its landmarks.
pub(super) const FACE_SIDE: f32 = 3.6;

/// Nets: the face's, then [`Region::NETS`].
pub(super) const NETS: usize = 5;

/// What is written before the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub settings: NetSettings,
    pub shapes: Vec<HourglassShape>,
    /// Weights and running figures of every net.
    pub counts: Vec<[usize; 2]>,
    /// Sides of the regions' pictures to the spread of the landmarks.
    pub sides: Vec<f32>,
    /// Certainty from which on there is a face.
    pub presence: f32,
    /// The mean face, cm.
    pub places: Vec<[f32; 3]>,
    /// Where a training stands; nothing when it is over.
    pub progress: Option<Progress>,
}

/// A face in a frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetFace {
    /// [`POINTS`] places, pixels of the frame.
    pub points: Vec<[f32; 2]>,
    /// MediaPipe's 478: x and y in shares of the frame's size, z of its width, towards the camera negative.
    pub lifted: Vec<Vec3>,
    /// Of [`arkit::SHAPES`], 0 to 1.
    pub shapes: Vec<f32>,
    /// How sure the net is, 0 to 1.
    pub certainty: f32,
}

/// The nets with their memory: one per thread.
#[derive(Debug, Clone)]
pub struct LandmarkNets {
    pub(super) header: Header,
    pub(super) nets: Vec<Hourglass>,
    mean: MeanFace,
    next: Option<Crop>,
    face: NetFace,
}

/// Where a face stands by its landmarks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stance {
    pub centre: [f32; 2],
    /// Root of the mean square distance from the centre.
    pub radius: f32,
    pub turn: f32,
}

impl Stance {
    /// From the landmarks on the skin, which come first.
    pub fn of(points: &[[f32; 2]]) -> Self {
        let mean = |range: std::ops::Range<usize>| {
            let count = range.len() as f32;
            points[range].iter().fold([0.0; 2], |sum, p| [sum[0] + p[0] / count, sum[1] + p[1] / count])
        };
        let centre = mean(0..SKIN);
        let squares = points[..SKIN].iter().map(|p| (p[0] - centre[0]).powi(2) + (p[1] - centre[1]).powi(2));
        let (right, left) = (mean(36..42), mean(42..48));
        Self {
            centre,
            radius: (squares.sum::<f32>() / SKIN as f32).sqrt(),
            turn: (left[1] - right[1]).atan2(left[0] - right[0]),
        }
    }

    pub fn crop(&self) -> Crop {
        Crop { centre: self.centre, side: FACE_SIDE * self.radius, turn: self.turn, mirror: false }
    }

    /// The picture of a region whose anchors are known.
    pub fn region(&self, region: Region, points: &[[f32; 2]], side: f32) -> Crop {
        let anchors = region.anchors();
        let count = anchors.len() as f32;
        let centre = anchors.iter().fold([0.0; 2], |sum, point| {
            [sum[0] + points[*point][0] / count, sum[1] + points[*point][1] / count]
        });
        Crop { centre, side: side * self.radius, turn: self.turn, mirror: region.net().1 }
    }
}

impl LandmarkNets {
    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let (header, numbers): (Header, _) = file::read(bytes)?;
        if header.progress.is_some() {
            return Err(FileError::Header("a training that is not over".into()));
        }
        let (nets, rest) = nets_of(&header, &numbers)?;
        if !rest.is_empty() {
            return Err(FileError::Header(format!("{} numbers too many", rest.len())));
        }
        Self::new(header, nets)
    }

    pub(super) fn new(header: Header, nets: Vec<Hourglass>) -> Result<Self, FileError> {
        let mean = MeanFace::new(&header.places).map_err(FileError::Header)?;
        let face = NetFace { points: vec![[0.0; 2]; POINTS], ..NetFace::default() };
        Ok(Self { header, nets, mean, next: None, face })
    }

    /// Writes a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers: Vec<&[f32]> =
            self.nets.iter().flat_map(|net| <[&[f32]; 2]>::from(net.numbers())).collect();
        file::write(&self.header, &numbers)
    }

    /// How they were trained.
    pub fn settings(&self) -> &NetSettings {
        &self.header.settings
    }

    /// The mean face, which head poses are relative to.
    pub fn geometry(&self) -> &FaceGeometry {
        self.mean.geometry()
    }

    /// Forgets where the face was.
    pub fn forget(&mut self) {
        self.next = None;
    }

    /// What was seen last.
    pub fn face(&self) -> &NetFace {
        &self.face
    }

    /// Multiplications of a frame whose face is followed.
    pub fn multiplications(&self) -> usize {
        let of = |net: usize| self.header.shapes[net].multiplications();
        of(0) + Region::ALL.iter().map(|region| of(1 + region.net().0)).sum::<usize>()
    }

    /// Looks at a frame; [`Self::face`] is what was seen, where something was. There is no telling how many faces there are:
    /// the surest is taken.
    pub fn look(&mut self, frame: &Frame) -> Sighting {
        if frame.width() == 0 || frame.height() == 0 {
            return Sighting::None;
        }
        if let Some(crop) = self.next.take().filter(|crop| crop.is_sound(frame))
            && self.place(frame, crop, 1)
        {
            return Sighting::Followed;
        }
        match self.search(frame) {
            Some(crop) if self.place(frame, crop, 3) => Sighting::Found(1),
            _ => Sighting::None,
        }
    }

    /// The window that shows a face best.
    fn search(&self, frame: &Frame) -> Option<Crop> {
        let (width, height) = (frame.width() as f32, frame.height() as f32);
        let (long, short) = (width.max(height), width.min(height));
        let mut windows =
            vec![Crop { centre: [0.5 * width, 0.5 * height], side: long, turn: 0.0, mirror: false }];
        let square = if long > short { short } else { 0.8 * short };
        for side in [square, 0.6 * short] {
            let places = |length: f32| {
                let count = (2.0 * (length - side) / side).ceil() as usize + 1;
                (0..count).map(move |k| match count {
                    1 => 0.5 * length,
                    _ => 0.5 * side + (length - side) * k as f32 / (count - 1) as f32,
                })
            };
            for y in places(height) {
                windows.extend(places(width).map(|x| Crop {
                    centre: [x, y],
                    side,
                    turn: 0.0,
                    mirror: false,
                }));
            }
        }
        let best = windows.into_iter().filter_map(|window| {
            let (points, certainty, _) = self.coarse(frame, window);
            let crop = Stance::of(&points).crop();
            crop.is_sound(frame).then_some((certainty, crop))
        });
        // Not yet as sure as it must be: the face may be small in its window.
        let sure = |best: &(f32, Crop)| best.0 > 0.6 * self.header.presence;
        best.max_by(|a, b| a.0.total_cmp(&b.0)).filter(sure).map(|(_, crop)| crop)
    }

    /// What the first net sees in a picture: its points, pixels of the frame, how sure it is, and scores.
    pub(super) fn coarse(&self, frame: &Frame, crop: Crop) -> (Vec<[f32; 2]>, f32, Vec<f32>) {
        let answer = self.nets[0].look(pictures(frame, &[crop], self.header.shapes[0].side));
        let found = answer.points(0);
        let certainty = found.iter().map(|point| point.certainty).sum::<f32>() / found.len() as f32;
        let places = found.iter().map(|point| crop.to_frame(point.place)).collect();
        (places, certainty, answer.scores(0).to_vec())
    }

    /// Places all points, starting in a picture; `false` where there is no face.
    fn place(&mut self, frame: &Frame, mut crop: Crop, rounds: usize) -> bool {
        let (mut points, mut certainty, mut shapes) = (Vec::new(), 0.0, Vec::new());
        for _ in 0..rounds {
            (points, certainty, shapes) = self.coarse(frame, crop);
            crop = Stance::of(&points).crop();
            if !crop.is_sound(frame) {
                return false;
            }
        }
        if certainty.is_nan() || certainty < self.header.presence {
            return false;
        }
        let all = &mut self.face.points;
        for (point, place) in coarse().into_iter().zip(&points) {
            all[point] = *place;
        }
        let stance = Stance::of(&points);
        for (net, side) in self.header.sides.iter().enumerate() {
            let regions: Vec<Region> =
                Region::ALL.into_iter().filter(|region| region.net().0 == net).collect();
            let crops: Vec<Crop> =
                regions.iter().map(|region| stance.region(*region, &points, *side)).collect();
            if !crops.iter().all(|crop| crop.is_sound(frame)) {
                return false;
            }
            let answer = self.nets[1 + net].look(pictures(frame, &crops, self.header.shapes[1 + net].side));
            for (image, (region, crop)) in regions.iter().zip(&crops).enumerate() {
                for (point, found) in region.points().into_iter().zip(answer.points(image)) {
                    all[point] = crop.to_frame(found.place);
                }
            }
        }
        let size = [frame.width() as f32, frame.height() as f32];
        if !self.mean.lift(&self.face.points, size, &mut self.face.lifted) {
            return false;
        }
        (self.face.shapes, self.face.certainty) = (shapes, certainty);
        self.next = Some(Stance::of(&self.face.points).crop());
        true
    }
}

/// Pictures of a frame as nets take them.
pub(super) fn pictures(frame: &Frame, crops: &[Crop], side: usize) -> Tensor {
    let length = 3 * side * side;
    let mut data = vec![0.0; crops.len() * length];
    for (crop, picture) in crops.iter().zip(data.chunks_exact_mut(length)) {
        crop.sample(frame, side, picture);
        normalise(picture);
    }
    Tensor::new([crops.len(), 3, side, side], data)
}

/// The nets of a header, and the numbers after theirs.
pub(super) fn nets_of<'a>(
    header: &Header,
    mut numbers: &'a [f32],
) -> Result<(Vec<Hourglass>, &'a [f32]), FileError> {
    let wrong = |problem: String| Err(FileError::Header(problem));
    let count = [header.shapes.len(), header.counts.len(), header.sides.len() + 1];
    if count != [NETS; 3] {
        return wrong(format!("{count:?} nets, there are {NETS}"));
    }
    if !header.sides.iter().all(|side| (0.1..20.0).contains(side)) || !header.presence.is_finite() {
        return wrong("a side or a presence out of range".into());
    }
    let mut nets = Vec::new();
    for (net, (shape, [values, running])) in header.shapes.iter().zip(&header.counts).enumerate() {
        let points = if net == 0 { SKIN + PUPILS.len() } else { Region::NETS[net - 1].points().len() };
        let scores = if net == 0 { arkit::SHAPES.len() } else { 0 };
        if [shape.points, shape.scores] != [points, scores] {
            return wrong(format!("net {net} has {} points and {} scores", shape.points, shape.scores));
        }
        let made = Hourglass::new(shape.clone(), 0).map_err(|error| FileError::Header(error.to_string()))?;
        nets.push(made);
        let split = |numbers: &'a [f32], at: usize| numbers.split_at_checked(at).ok_or(FileError::Damaged);
        let (own, rest) = split(numbers, *values)?;
        let (figures, rest) = split(rest, *running)?;
        nets[net].restore(own, figures).map_err(|error| FileError::Header(error.to_string()))?;
        numbers = rest;
    }
    Ok((nets, numbers))
}
