//! Where faces are: a net gives boxes and six points relative to 896 anchors, and a score for each; boxes that overlap are
//! averaged by their scores.

use super::region::{Border, Region};
use crate::Frame;
use crate::tflite::Network;
use understudy_io::ParseError;

/// Side of what the detector sees, pixels.
const SIDE: usize = 128;
const ANCHORS: usize = 896;
/// Numbers per anchor: a box and six points.
const NUMBERS: usize = 16;
/// Boxes whose overlap is more than this share of their union are one face.
const OVERLAP: f32 = 0.3;
/// Scores beyond this are as sure as it gets.
const SUREST: f32 = 100.0;

/// A face: its box and its points, in shares of the frame's size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detection {
    /// 0 to 1.
    pub score: f32,
    /// Left and top.
    pub low: [f32; 2],
    /// Right and bottom.
    pub high: [f32; 2],
    /// The actor's right eye, left eye, nose, mouth, right and left ear.
    pub points: [[f32; 2]; 6],
}

impl Detection {
    /// The rectangle around it that the points' net is shown.
    pub fn region(&self, frame: [f32; 2]) -> Region {
        Region::around(self.low, self.high, self.points[0], self.points[1], frame).grown(1.5)
    }

    fn overlap(&self, other: &Self) -> f32 {
        let area = |low: [f32; 2], high: [f32; 2]| (high[0] - low[0]).max(0.0) * (high[1] - low[1]).max(0.0);
        let low = [self.low[0].max(other.low[0]), self.low[1].max(other.low[1])];
        let high = [self.high[0].min(other.high[0]), self.high[1].min(other.high[1])];
        let both = area(low, high);
        let union = area(self.low, self.high) + area(other.low, other.high) - both;
        if union > 0.0 { both / union } else { 0.0 }
    }
}

/// The detector with its memory.
#[derive(Debug, Clone)]
pub(super) struct Detector {
    network: Network,
    anchors: Vec<[f32; 2]>,
    /// Which output holds the boxes and which the scores.
    boxes: usize,
    scores: usize,
}

impl Detector {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let network = Network::parse(bytes)?;
        super::landmarker::expect_square(&network, SIDE)?;
        let find = |numbers: usize| {
            let want = [1, ANCHORS, numbers];
            network.outputs().position(|(_, shape)| shape == want)
        };
        let (Some(boxes), Some(scores)) = (find(NUMBERS), find(1)) else {
            let problem = format!("{ANCHORS} boxes of {NUMBERS} numbers with a score each are wanted");
            return Err(ParseError::new("outputs", problem));
        };
        Ok(Self { anchors: anchors(), network, boxes, scores })
    }

    /// Faces with at least that score, the surest first.
    pub fn detect(&mut self, frame: &Frame, least: f32) -> Vec<Detection> {
        let size = [frame.width() as f32, frame.height() as f32];
        let region = Region::letterbox(size);
        region.sample(frame, SIDE, Border::Black, [-1.0, 1.0], self.network.input());
        self.network.run();
        let scores = self.network.output(self.scores).expect("checked when it was read");
        let boxes = self.network.output(self.boxes).expect("checked when it was read");
        let mut found = Vec::new();
        for (index, score) in scores.iter().enumerate() {
            let score = 1.0 / (1.0 + (-score.clamp(-SUREST, SUREST)).exp());
            if score < least {
                continue;
            }
            let numbers = &boxes[index * NUMBERS..][..NUMBERS];
            let anchor = self.anchors[index];
            let place = |at: usize| [0, 1].map(|axis| numbers[at + axis] / SIDE as f32 + anchor[axis]);
            let (centre, extent) = (place(0), [0, 1].map(|axis| 0.5 * numbers[2 + axis] / SIDE as f32));
            let low = [centre[0] - extent[0], centre[1] - extent[1]];
            let high = [centre[0] + extent[0], centre[1] + extent[1]];
            let points = std::array::from_fn(|point| place(4 + 2 * point));
            let sound =
                low.iter().chain(&high).all(|x| x.is_finite()) && low[0] < high[0] && low[1] < high[1];
            if sound {
                found.push(Detection { score, low, high, points });
            }
        }
        let mut faces = merged(found);
        let turned = |place: [f32; 2]| region.to_frame(place, size);
        for face in &mut faces {
            (face.low, face.high) = (turned(face.low), turned(face.high));
            face.points = face.points.map(turned);
        }
        faces
    }
}

/// Middles of the anchors: two per place of a 16 × 16 grid, six per place of an 8 × 8 grid.
fn anchors() -> Vec<[f32; 2]> {
    let mut out = Vec::with_capacity(ANCHORS);
    for (side, many) in [(16, 2), (8, 6)] {
        for place in 0..side * side {
            let middle = |at: usize| (at as f32 + 0.5) / side as f32;
            out.extend(std::iter::repeat_n([middle(place % side), middle(place / side)], many));
        }
    }
    out
}

/// Weighted non-maximum suppression: what overlaps the surest box is averaged with it, by the scores.
fn merged(mut found: Vec<Detection>) -> Vec<Detection> {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut faces = Vec::new();
    while let Some(surest) = found.first().copied() {
        let (same, rest): (Vec<Detection>, Vec<Detection>) =
            found.iter().partition(|other| surest.overlap(other) > OVERLAP);
        let total: f32 = same.iter().map(|face| face.score).sum();
        let mean = |of: &dyn Fn(&Detection) -> f32| {
            same.iter().map(|face| face.score * of(face)).sum::<f32>() / total
        };
        faces.push(Detection {
            score: surest.score,
            low: [0, 1].map(|axis| mean(&|face| face.low[axis])),
            high: [0, 1].map(|axis| mean(&|face| face.high[axis])),
            points: std::array::from_fn(|point| [0, 1].map(|axis| mean(&|face| face.points[point][axis]))),
        });
        // A box that overlaps nothing, itself included, has no area: it cannot be here, and must not loop.
        found = if rest.len() < found.len() { rest } else { Vec::new() };
    }
    faces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(score: f32, x: f32) -> Detection {
        Detection { score, low: [x, 0.0], high: [x + 1.0, 1.0], points: [[x, 0.5]; 6] }
    }

    #[test]
    fn anchors_stand_where_the_grids_do() {
        let anchors = anchors();
        assert_eq!(anchors.len(), ANCHORS);
        assert_eq!((anchors[0], anchors[2]), ([0.03125, 0.03125], [0.09375, 0.03125]));
        assert_eq!((anchors[512], anchors[895]), ([0.0625, 0.0625], [0.9375, 0.9375]));
    }

    #[test]
    fn boxes_that_overlap_become_their_weighted_mean_and_others_stay() {
        let faces = merged(vec![face(0.5, 0.1), face(1.0, 0.0), face(0.7, 5.0)]);
        assert_eq!(faces.len(), 2);
        assert!((faces[0].low[0] - 0.1 * 0.5 / 1.5).abs() < 1e-6, "{:?}", faces[0]);
        assert_eq!((faces[0].score, faces[1].score), (1.0, 0.7));
        assert!(merged(Vec::new()).is_empty());
    }
}
