//! From points of a picture to what the live path takes: MediaPipe's 478 places with depths. A picture has no depth: that of the
//! mean face is taken, turned as the points say by scaled orthography, `p = s R c + t` (DeMenthon and Davis 1995).

use super::layout::{MEDIAPIPE, POINTS, PUPILS, multi_pie};
use crate::mediapipe;
use understudy_core::{DMat3, DVec3, Vec3};
use understudy_runtime::live::FaceGeometry;

/// Points of MediaPipe's face without the irises.
const FACE: usize = 468;
/// MediaPipe's points in the middle of the irises: of the actor's right and left eye.
const IRISES: [usize; 2] = [468, 473];
/// Landmarks that say how a head stands, with their weights: what expressions move least.
const STEADY: [(usize, f32); 15] = [
    (27, 1.0),
    (28, 1.0),
    (29, 1.0),
    (30, 1.0),
    (31, 0.5),
    (33, 0.7),
    (35, 0.5),
    (36, 1.0),
    (39, 1.0),
    (42, 1.0),
    (45, 1.0),
    (17, 0.2),
    (26, 0.2),
    (51, 0.3),
    (8, 0.1),
];

/// The mean face: places of all points, cm, and the same as the live path knows a face.
#[derive(Debug, Clone)]
pub(super) struct MeanFace {
    /// [`POINTS`] places, then the eight inner landmarks.
    places: Vec<DVec3>,
    landmarks: [DVec3; 68],
    geometry: FaceGeometry,
}

impl MeanFace {
    /// From places of all points; an error where they are no face.
    pub fn new(places: &[[f32; 3]]) -> Result<Self, String> {
        if places.len() != POINTS {
            return Err(format!("{} places, a face has {POINTS}", places.len()));
        }
        let middle = places.iter().map(|place| Vec3::from(*place)).sum::<Vec3>() / POINTS as f32;
        let places: Vec<Vec3> = places.iter().map(|place| Vec3::from(*place) - middle).collect();
        // Inner landmarks are read off the contour in x and y; the same twice gives their depth.
        let plane = |a: usize, b: usize| -> Vec<[f32; 2]> { places.iter().map(|p| [p[a], p[b]]).collect() };
        let (front, side) = (multi_pie(&plane(0, 1)), multi_pie(&plane(2, 1)));
        let (front, side) = front.zip(side).ok_or("no landmarks")?;
        let landmarks: [Vec3; 68] = std::array::from_fn(|k| Vec3::new(front[k][0], front[k][1], side[k][0]));
        let mut vertices = vec![Vec3::ZERO; FACE];
        for (landmark, place) in MEDIAPIPE {
            vertices[usize::from(place)] = landmarks[landmark];
        }
        let number = |landmark: usize| MEDIAPIPE.iter().find(|(of, _)| *of == landmark);
        let basis = STEADY.iter().filter_map(|(landmark, weight)| {
            number(*landmark).map(|(_, place)| (u32::from(*place), *weight))
        });
        let geometry = FaceGeometry::new(vertices, basis.collect())?;
        let places = places.iter().map(|place| place.as_dvec3()).collect();
        Ok(Self { places, landmarks: landmarks.map(|place| place.as_dvec3()), geometry })
    }

    pub fn geometry(&self) -> &FaceGeometry {
        &self.geometry
    }

    /// MediaPipe's points of a frame of `[width, height]` pixels; `false` where the points are no face.
    pub fn lift(&self, points: &[[f32; 2]], size: [f32; 2], out: &mut Vec<Vec3>) -> bool {
        let Some(landmarks) = multi_pie(points) else { return false };
        let Some((scale, rotation)) = stance(&landmarks, &self.landmarks) else { return false };
        let turned = |place: DVec3| rotation * place * scale;
        let total: f64 = STEADY.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let mut middle = [0.0; 2];
        for (landmark, weight) in STEADY {
            let model = turned(self.landmarks[landmark]);
            let [x, y] = landmarks[landmark].map(f64::from);
            middle[0] += f64::from(weight) * (x - model.x) / total;
            middle[1] += f64::from(weight) * (y + model.y) / total;
        }
        let share =
            |x: f64, y: f64, z: f64| Vec3::new(x as f32 / size[0], y as f32 / size[1], -z as f32 / size[0]);
        out.clear();
        out.resize(mediapipe::POINTS, share(middle[0], middle[1], 0.0));
        for (landmark, place) in MEDIAPIPE {
            let [x, y] = landmarks[landmark].map(f64::from);
            out[usize::from(place)] = share(x, y, turned(self.landmarks[landmark]).z);
        }
        for (iris, pupil) in IRISES.into_iter().zip([PUPILS[1], PUPILS[0]]) {
            let [x, y] = points[pupil].map(f64::from);
            let at = share(x, y, turned(self.places[pupil]).z);
            out[iris..iris + 5].fill(at);
        }
        out.iter().all(|point| point.is_finite())
    }
}

/// Scale (pixels per cm) and rotation of a head whose landmarks lie there.
fn stance(seen: &[[f32; 2]; 68], model: &[DVec3; 68]) -> Option<(f64, DMat3)> {
    let total: f64 = STEADY.iter().map(|(_, weight)| f64::from(*weight)).sum();
    let mean = STEADY.iter().fold((DVec3::ZERO, [0.0; 2]), |(c, p), (k, weight)| {
        let weight = f64::from(*weight) / total;
        let [x, y] = seen[*k].map(f64::from);
        (c + model[*k] * weight, [p[0] + weight * x, p[1] - weight * y])
    });
    // Rows of s R by least squares: (Σ ω c cᵀ) r = Σ ω c p.
    let (mut moments, mut right) = (DMat3::ZERO, [DVec3::ZERO; 2]);
    for (k, weight) in STEADY {
        let (weight, c) = (f64::from(weight), model[k] - mean.0);
        let [x, y] = seen[k].map(f64::from);
        moments += DMat3::from_cols(c * c.x, c * c.y, c * c.z) * weight;
        right[0] += c * (weight * (x - mean.1[0]));
        right[1] += c * (weight * (-y - mean.1[1]));
    }
    let inverse = moments.inverse();
    let rows = right.map(|right| inverse * right);
    let scale = (rows[0].length() * rows[1].length()).sqrt();
    if !(scale.is_finite() && scale > 1e-6) {
        return None;
    }
    // The nearest rotation whose first two rows these are: both turned towards each other's side by half of what is missing.
    let (a, b) = (rows[0].normalize(), rows[1].normalize());
    let (sum, difference) = ((a + b).normalize(), (a - b).normalize());
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let (across, up) = ((sum + difference) * half, (sum - difference) * half);
    let rotation = DMat3::from_cols(across, up, across.cross(up)).transpose();
    (rotation.is_finite()).then_some((scale, rotation))
}
