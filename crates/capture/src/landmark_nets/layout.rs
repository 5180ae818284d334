//! Which point is which: 60 of the 68 landmarks that stay on the skin, the outer contour of the lips, the inner one, the
//! pupils. The eight landmarks of the inner lips are read off the inner contour, which is what a picture shows.

use crate::inverse_rendering::Detected;

/// Landmarks that stay on the skin.
pub(super) const SKIN: usize = 60;
/// Points along the border between lips and skin.
pub(super) const OUTER: usize = 24;
/// Points along one lip's inner silhouette.
pub(super) const INNER: usize = 15;
/// First point of the outer contour.
const FIRST_OUTER: usize = SKIN;
/// First point of the inner contour, upper lip, then the lower one, each from the character's right to the left.
const FIRST_INNER: usize = FIRST_OUTER + OUTER;
/// The pupils: the character's left, right.
pub(super) const PUPILS: [usize; 2] = [FIRST_INNER + 2 * INNER, FIRST_INNER + 2 * INNER + 1];
/// All points.
pub const POINTS: usize = FIRST_INNER + 2 * INNER + 2;

/// What the first net places: the landmarks on the skin and the pupils.
pub(super) fn coarse() -> Vec<usize> {
    (0..SKIN).chain(PUPILS).collect()
}

/// The brow, lids and pupil of the character's right eye.
const RIGHT_EYE: [usize; 12] = [17, 18, 19, 20, 21, 36, 37, 38, 39, 40, 41, PUPILS[1]];
/// The left eye's in the order of the right one's mirror images.
const LEFT_EYE: [usize; 12] = [26, 25, 24, 23, 22, 45, 44, 43, 42, 47, 46, PUPILS[0]];

/// A part of the face that a net looks at closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// The right eye and brow.
    RightEye,
    /// The left eye and brow, which the right eye's net sees in a mirror.
    LeftEye,
    /// The nose.
    Nose,
    /// Both contours of the lips.
    Mouth,
    /// The contour of the face.
    Jaw,
}

impl Region {
    /// All.
    pub const ALL: [Self; 5] = [Self::RightEye, Self::LeftEye, Self::Nose, Self::Mouth, Self::Jaw];
    /// Those with a net of their own.
    pub(super) const NETS: [Self; 4] = [Self::RightEye, Self::Nose, Self::Mouth, Self::Jaw];

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RightEye => "right eye",
            Self::LeftEye => "left eye",
            Self::Nose => "nose",
            Self::Mouth => "lips",
            Self::Jaw => "jaw",
        }
    }

    /// Its points, in the order of its net.
    pub fn points(self) -> Vec<usize> {
        match self {
            Self::RightEye => RIGHT_EYE.to_vec(),
            Self::LeftEye => LEFT_EYE.to_vec(),
            Self::Nose => (27..36).collect(),
            Self::Mouth => (48..60).chain(FIRST_OUTER..PUPILS[0]).collect(),
            Self::Jaw => (0..17).collect(),
        }
    }

    /// Those of its points that the first net knows: what it is cut out by.
    pub(super) fn anchors(self) -> Vec<usize> {
        self.points().into_iter().filter(|point| *point < SKIN).collect()
    }

    /// Which net looks at it, among [`Region::NETS`], and whether in a mirror.
    pub(super) fn net(self) -> (usize, bool) {
        match self {
            Self::RightEye => (0, false),
            Self::LeftEye => (0, true),
            Self::Nose => (1, false),
            Self::Mouth => (2, false),
            Self::Jaw => (3, false),
        }
    }
}

/// All points of what was seen, pixels; `None` where one is missing.
pub(super) fn points_of(seen: &Detected) -> Option<Vec<[f32; 2]>> {
    let of = |points: &[Option<[f64; 2]>], count: usize| -> Option<Vec<[f32; 2]>> {
        (points.len() == count).then_some(())?;
        points.iter().map(|point| point.map(|place| place.map(|value| value as f32))).collect()
    };
    let mut all = of(&seen.fixed, SKIN + OUTER)?;
    all.extend(of(&seen.inner_lips, 2 * INNER)?);
    all.extend(of(&seen.pupils, 2)?);
    Some(all)
}

/// The inner landmarks 60 to 67 as places on the inner contour: the corners, and three points on each lip.
const INNER_LANDMARKS: [[usize; 2]; 8] =
    [[0, 15], [3, 3], [7, 7], [11, 11], [14, 29], [26, 26], [22, 22], [18, 18]];

/// The 68 landmarks of Multi-PIE from all points.
pub fn multi_pie(points: &[[f32; 2]]) -> Option<[[f32; 2]; 68]> {
    (points.len() == POINTS).then_some(())?;
    let mut out = [[0.0; 2]; 68];
    out[..SKIN].copy_from_slice(&points[..SKIN]);
    for (out, pair) in out[SKIN..].iter_mut().zip(INNER_LANDMARKS) {
        let [a, b] = pair.map(|place| points[FIRST_INNER + place]);
        *out = [0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])];
    }
    Some(out)
}

/// MediaPipe's number of 54 of the 68 landmarks.
pub(super) const MEDIAPIPE: [(usize, u16); 54] = [
    (6, 149),
    (8, 152),
    (10, 378),
    (17, 70),
    (18, 63),
    (19, 105),
    (20, 66),
    (21, 107),
    (22, 336),
    (23, 296),
    (24, 334),
    (25, 293),
    (26, 300),
    (27, 168),
    (28, 197),
    (29, 5),
    (30, 4),
    (31, 98),
    (32, 97),
    (33, 2),
    (34, 326),
    (35, 327),
    (36, 33),
    (37, 160),
    (38, 158),
    (39, 133),
    (40, 153),
    (41, 144),
    (42, 362),
    (43, 385),
    (44, 387),
    (45, 263),
    (46, 373),
    (47, 380),
    (48, 61),
    (49, 39),
    (50, 37),
    (51, 0),
    (52, 267),
    (53, 269),
    (54, 291),
    (55, 405),
    (56, 314),
    (57, 17),
    (58, 84),
    (59, 181),
    (60, 78),
    (61, 82),
    (62, 13),
    (63, 312),
    (64, 308),
    (65, 317),
    (66, 14),
    (67, 87),
];
