//! Eye tracking (end of section 6.3): the turn of an eyeball that brings its pupil to where a picture shows it, first about X,
//! then about Y. Every case has a defined answer, and says which case it was.

use crate::actors::{Eye, Gaze};
use crate::{Camera, HeadPose};
use serde::Serialize;
use understudy_core::{DVec3, Vec3};

/// How a gaze came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GazeCase {
    /// The pupil's ray meets the eyeball.
    Met,
    /// The ray misses the eyeball: the nearest place on it.
    Missed,
    /// The place is higher or lower than a turn about X can bring the pupil: as far as it can.
    OutOfTilt,
    /// The other eye's, because the two disagreed.
    OtherEye,
    /// Not seen: as it was in the frame before.
    Unseen,
}

/// The turn about X and Y, radians, that brings `pupil` onto the ray of a pixel. `centre` and `pupil` are at rest, cm.
///
/// The pupil p turns about X to **a** and then about Y to t (all from the centre): a has p's x, for a turn about X keeps it,
/// and t's y, for a turn about Y keeps that; of the two such points on the sphere a is the one on p's side of z = 0 (the
/// paper's "side of x = 0" does not tell them apart).
pub fn gaze_of(
    camera: &Camera,
    head: &HeadPose,
    centre: DVec3,
    pupil: DVec3,
    place: [f64; 2],
) -> (Gaze, GazeCase) {
    let back = head.rotation.inverse();
    let (origin, ray) = (head.undo(camera.position) - centre, back * camera.ray(place));
    let p = pupil - centre;
    let radius = p.length();
    let mut case = GazeCase::Met;
    let along = -origin.dot(ray);
    let nearest = origin + ray * along;
    let depth = radius * radius - nearest.length_squared();
    let t = if depth >= 0.0 {
        nearest - ray * depth.sqrt()
    } else {
        case = GazeCase::Missed;
        nearest.normalize_or(p.normalize_or_zero()) * radius
    };
    let across = radius * radius - p.x * p.x;
    let mut y = t.y;
    if y * y > across {
        if case == GazeCase::Met {
            case = GazeCase::OutOfTilt;
        }
        y = across.sqrt() * t.y.signum();
    }
    let a = DVec3::new(p.x, y, (across - y * y).max(0.0).sqrt() * if p.z < 0.0 { -1.0 } else { 1.0 });
    let about_x = wrapped(a.z.atan2(a.y) - p.z.atan2(p.y));
    let about_y = wrapped(t.x.atan2(t.z) - a.x.atan2(a.z));
    ([about_x, about_y], case)
}

/// An angle in −π to π.
fn wrapped(angle: f64) -> f64 {
    (angle + std::f64::consts::PI).rem_euclid(std::f64::consts::TAU) - std::f64::consts::PI
}

/// Beyond these the eyes do not belong together, radians: more crossed, more apart, or one higher than the other.
const CROSSED: f64 = 0.30;
const APART: f64 = 0.10;
const UNLEVEL: f64 = 0.12;

/// Both gazes of a frame; `last` are those of the frame before.
///
/// Where the two disagree (a detector has misplaced a pupil) the one that moved less serves both; where one is not seen,
/// the other one serves; where none is, they stay.
pub fn gazes(
    camera: &Camera,
    head: &HeadPose,
    eyes: &[Eye; 2],
    rest: &[Vec3],
    pupils: [Option<[f64; 2]>; 2],
    last: [Gaze; 2],
) -> [(Gaze, GazeCase); 2] {
    let one = |side: usize| {
        let place = pupils[side].filter(|place| place.iter().all(|value| value.is_finite()))?;
        let eye = &eyes[side];
        Some(gaze_of(camera, head, eye.centre, rest[eye.pupil as usize].as_dvec3(), place))
    };
    match [one(0), one(1)] {
        [None, None] => [(last[0], GazeCase::Unseen), (last[1], GazeCase::Unseen)],
        [Some(left), None] => [left, (left.0, GazeCase::OtherEye)],
        [None, Some(right)] => [(right.0, GazeCase::OtherEye), right],
        [Some(left), Some(right)] => {
            // The character's left eye is at +X: eyes that cross turn it to −X.
            let crossed = right.0[1] - left.0[1];
            let together = (-APART..=CROSSED).contains(&crossed) && (left.0[0] - right.0[0]).abs() <= UNLEVEL;
            if together {
                return [left, right];
            }
            let moved = |gaze: Gaze, last: Gaze| (gaze[0] - last[0]).hypot(gaze[1] - last[1]);
            if moved(left.0, last[0]) <= moved(right.0, last[1]) {
                [left, (left.0, GazeCase::OtherEye)]
            } else {
                [(right.0, GazeCase::OtherEye), right]
            }
        }
    }
}

/// The angle between two gazes of a pupil, degrees.
pub fn degrees_between(eye: &Eye, rest: &[Vec3], a: Gaze, b: Gaze) -> f64 {
    let p = rest[eye.pupil as usize].as_dvec3() - eye.centre;
    let (a, b) = (crate::actors::rotation(a) * p, crate::actors::rotation(b) * p);
    a.angle_between(b).to_degrees()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::rotation;

    fn scene() -> (Camera, HeadPose, DVec3, DVec3) {
        let mut camera = Camera::portrait(DVec3::new(0.0, 2.0, 5.0), 26.0, 60.0, 512);
        (camera.roll, camera.centre) = (0.05, [260.0, 250.0]);
        let head =
            HeadPose::rest(DVec3::ZERO).moved(DVec3::new(0.05, -0.2, 0.03), DVec3::new(0.3, -0.2, 1.0));
        let centre = DVec3::new(3.1, 3.6, 8.0);
        (camera, head, centre, centre + DVec3::new(0.12, -0.08, 1.5))
    }

    #[test]
    fn a_turned_eye_is_found_again() {
        let (camera, head, centre, pupil) = scene();
        for gaze in [[0.0, 0.0], [0.3, -0.4], [-0.35, 0.5], [0.1, 0.02]] {
            let turned = rotation(gaze) * (pupil - centre) + centre;
            let place = camera.project(head.apply(turned)).expect("in front");
            let (found, case) = gaze_of(&camera, &head, centre, pupil, place);
            assert_eq!(case, GazeCase::Met);
            assert!(
                (found[0] - gaze[0]).abs() < 1e-9 && (found[1] - gaze[1]).abs() < 1e-9,
                "{gaze:?} {found:?}"
            );
        }
    }

    #[test]
    fn failures_have_answers() {
        let (camera, head, centre, pupil) = scene();
        let middle = camera.project(head.apply(centre)).expect("in front");
        let (gaze, case) = gaze_of(&camera, &head, centre, pupil, [middle[0] + 60.0, middle[1]]);
        assert_eq!(case, GazeCase::Missed);
        assert!(gaze[1] > 1.2 && gaze.iter().all(|angle| angle.is_finite()));
        // A pupil far to the side leaves little height for a turn about X.
        let sideways = centre + DVec3::new(1.3, 0.0, 0.7);
        let (gaze, case) = gaze_of(&camera, &head, centre, sideways, [middle[0], middle[1] - 25.0]);
        assert_eq!(case, GazeCase::OutOfTilt);
        assert!(gaze.iter().all(|angle| angle.is_finite()));
    }

    #[test]
    fn eyes_that_disagree_follow_the_one_that_moved_less() {
        let camera = scene().0;
        let head = HeadPose::rest(DVec3::ZERO);
        let centres = [DVec3::new(3.1, 3.6, 8.0), DVec3::new(-3.1, 3.6, 8.0)];
        let rest: Vec<Vec3> = centres.iter().map(|c| (*c + DVec3::Z * 1.5).as_vec3()).collect();
        let eye =
            |side: usize| Eye { vertices: vec![], pupil: side as u32, centre: centres[side], looks: vec![] };
        let eyes = [eye(0), eye(1)];
        let see = |side: usize, gaze: Gaze| {
            let p = rest[side].as_dvec3() - centres[side];
            camera.project(rotation(gaze) * p + centres[side])
        };
        let last = [[0.0, 0.1]; 2];
        let good = gazes(&camera, &head, &eyes, &rest, [see(0, [0.1, 0.2]), see(1, [0.1, 0.25])], last);
        assert!(good.iter().all(|(_, case)| *case == GazeCase::Met));
        let bad = gazes(&camera, &head, &eyes, &rest, [see(0, [0.0, 0.15]), see(1, [0.1, 0.7])], last);
        assert_eq!(bad[1], (bad[0].0, GazeCase::OtherEye));
        assert!((bad[0].0[1] - 0.15).abs() < 1e-6);
        let one = gazes(&camera, &head, &eyes, &rest, [None, see(1, [0.1, 0.3])], last);
        assert_eq!((one[0].1, one[1].1), (GazeCase::OtherEye, GazeCase::Met));
        let none = gazes(&camera, &head, &eyes, &rest, [None, Some([f64::NAN, 0.0])], last);
        assert_eq!(none, [(last[0], GazeCase::Unseen), (last[1], GazeCase::Unseen)]);
    }
}
