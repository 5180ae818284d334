//! From an actor's points to a character's: `c = c⁰ + s R (l − l⁰)`. The similarity that carries the actor's rest onto the
//! character's says how large the character's face is (`s`) and how it stands (`R`); the paper's own formula is `s = 1`, `R = 1`.

use crate::ik::ControlPoint;
use understudy_core::rotation::best_rotation;
use understudy_core::{DMat3, DVec3, Vec3};

/// Which of MediaPipe's points are the 54 of Multi-PIE, by the names of control points.
const LANDMARKS: [(&str, u16); 54] = [
    ("jaw_R", 149),
    ("chin", 152),
    ("jaw_L", 378),
    ("brow_R_5", 70),
    ("brow_R_4", 63),
    ("brow_R_3", 105),
    ("brow_R_2", 66),
    ("brow_R_1", 107),
    ("brow_L_1", 336),
    ("brow_L_2", 296),
    ("brow_L_3", 334),
    ("brow_L_4", 293),
    ("brow_L_5", 300),
    ("nose_bridge_1", 168),
    ("nose_bridge_2", 197),
    ("nose_bridge_3", 5),
    ("nose_tip", 4),
    ("nose_base_2_R", 98),
    ("nose_base_1_R", 97),
    ("nose_base", 2),
    ("nose_base_1_L", 326),
    ("nose_base_2_L", 327),
    ("eye_R_outer", 33),
    ("eye_R_upper_outer", 160),
    ("eye_R_upper_inner", 158),
    ("eye_R_inner", 133),
    ("eye_R_lower_inner", 153),
    ("eye_R_lower_outer", 144),
    ("eye_L_inner", 362),
    ("eye_L_upper_inner", 385),
    ("eye_L_upper_outer", 387),
    ("eye_L_outer", 263),
    ("eye_L_lower_outer", 373),
    ("eye_L_lower_inner", 380),
    ("mouth_corner_R", 61),
    ("lip_upper_2_R", 39),
    ("lip_upper_1_R", 37),
    ("lip_upper", 0),
    ("lip_upper_1_L", 267),
    ("lip_upper_2_L", 269),
    ("mouth_corner_L", 291),
    ("lip_lower_2_L", 405),
    ("lip_lower_1_L", 314),
    ("lip_lower", 17),
    ("lip_lower_1_R", 84),
    ("lip_lower_2_R", 181),
    ("mouth_inner_R", 78),
    ("lip_upper_inner_1_R", 82),
    ("lip_upper_inner", 13),
    ("lip_upper_inner_1_L", 312),
    ("mouth_inner_L", 308),
    ("lip_lower_inner_1_L", 317),
    ("lip_lower_inner", 14),
    ("lip_lower_inner_1_R", 87),
];

/// Points that have to be known for sizes to be compared.
const LEAST: usize = 4;

/// The landmark of a control point: by its name, or `mediapipe_61` for point 61.
pub fn landmark_of(name: &str) -> Option<usize> {
    if let Some(number) = name.strip_prefix("mediapipe_") {
        return number.parse().ok().filter(|number| *number < 478);
    }
    LANDMARKS.iter().find(|(known, _)| *known == name).map(|(_, landmark)| usize::from(*landmark))
}

/// From the points of one actor to those of one character.
#[derive(Debug, Clone, PartialEq)]
pub struct Retarget {
    landmarks: Vec<Option<usize>>,
    rest: Vec<Vec3>,
    /// The actor's points at rest; empty until they are known.
    actor: Vec<Vec3>,
    /// `s R`.
    turn: DMat3,
    scale: f64,
}

impl Retarget {
    /// For a character's control points and where they rest; an error where too few of them are known.
    pub fn new(points: &[ControlPoint], rest: &[Vec3]) -> Result<Self, String> {
        let landmarks: Vec<Option<usize>> = points.iter().map(|point| landmark_of(&point.name)).collect();
        let known = landmarks.iter().flatten().count();
        if known < LEAST || rest.len() != points.len() {
            return Err(format!(
                "{known} of {} points have the name of a landmark (mouth_corner_L, … or mediapipe_61); {LEAST} at least are needed",
                points.len()
            ));
        }
        Ok(Self { landmarks, rest: rest.to_vec(), actor: Vec::new(), turn: DMat3::IDENTITY, scale: 1.0 })
    }

    /// Which points follow a landmark.
    pub fn known(&self) -> impl Iterator<Item = bool> {
        self.landmarks.iter().map(Option::is_some)
    }

    /// Size of the character's face to the canonical one.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The actor's points at rest, in the frame of the canonical face; `false` where they cannot be compared.
    pub fn set_rest(&mut self, local: &[Vec3]) -> bool {
        let pairs: Option<Vec<(DVec3, DVec3)>> = (self.landmarks.iter().zip(&self.rest))
            .filter_map(|(landmark, rest)| landmark.map(|landmark| (landmark, rest)))
            .map(|(landmark, rest)| Some((local.get(landmark)?.as_dvec3(), rest.as_dvec3())))
            .collect();
        let Some(pairs) = pairs else { return false };
        let count = pairs.len() as f64;
        let from = pairs.iter().map(|(from, _)| *from).sum::<DVec3>() / count;
        let to = pairs.iter().map(|(_, to)| *to).sum::<DVec3>() / count;
        let (mut covariance, mut spread) = (DMat3::ZERO, 0.0);
        for (a, b) in &pairs {
            let (a, b) = (*a - from, *b - to);
            covariance += DMat3::from_cols(a * b.x, a * b.y, a * b.z);
            spread += a.length_squared();
        }
        if !covariance.is_finite() || spread < 1e-9 {
            return false;
        }
        let rotation = best_rotation(covariance);
        let turned = rotation * covariance;
        let scale = (turned.x_axis.x + turned.y_axis.y + turned.z_axis.z) / spread;
        if !(scale.is_finite() && scale > 1e-6) {
            return false;
        }
        (self.scale, self.turn) = (scale, rotation * scale);
        self.actor = local.to_vec();
        true
    }

    /// Where the character's points shall be; those that follow nothing rest. `false`, with nothing written, before the actor's
    /// rest is known.
    pub fn targets(&self, local: &[Vec3], out: &mut [Vec3]) -> bool {
        if self.actor.is_empty() || local.len() != self.actor.len() || out.len() != self.rest.len() {
            return false;
        }
        for ((landmark, rest), out) in self.landmarks.iter().zip(&self.rest).zip(out) {
            *out = match landmark {
                Some(landmark) => {
                    let moved = (local[*landmark] - self.actor[*landmark]).as_dvec3();
                    (rest.as_dvec3() + self.turn * moved).as_vec3()
                }
                None => *rest,
            };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::actor;
    use super::*;

    fn points() -> Vec<ControlPoint> {
        LANDMARKS.iter().map(|(name, _)| ControlPoint { name: (*name).into(), vertex: 0 }).collect()
    }

    #[test]
    fn what_an_actor_of_another_size_moves_is_moved_in_the_characters_size() {
        let (_, face) = actor();
        let turn = DMat3::from_rotation_y(0.7);
        let rest: Vec<Vec3> = LANDMARKS
            .iter()
            .map(|(_, landmark)| (2.5 * (turn * face[usize::from(*landmark)].as_dvec3())).as_vec3() + Vec3::Y)
            .collect();
        let mut retarget = Retarget::new(&points(), &rest).expect("all are known");
        let mut out = vec![Vec3::ZERO; rest.len()];
        assert!(!retarget.targets(&face, &mut out), "no rest yet");
        assert!(retarget.set_rest(&face) && (retarget.scale() - 2.5).abs() < 1e-5);
        assert!(retarget.targets(&face, &mut out));
        out.iter().zip(&rest).for_each(|(out, rest)| assert!(out.distance(*rest) < 1e-5));
        let mut smile = face.clone();
        smile[61] += Vec3::new(-0.5, 0.3, 0.1);
        assert!(retarget.targets(&smile, &mut out));
        let corner = LANDMARKS.iter().position(|(name, _)| *name == "mouth_corner_R").expect("known");
        let want = rest[corner] + (2.5 * (turn * DVec3::new(-0.5, 0.3, 0.1))).as_vec3();
        assert!(out[corner].distance(want) < 1e-5);
    }

    #[test]
    fn left_is_the_characters_left() {
        let (_, face) = actor();
        for (name, landmark) in LANDMARKS {
            let x = face[usize::from(landmark)].x;
            if name.contains("_L") {
                assert!(x > 0.0, "{name}");
            } else if name.contains("_R") {
                assert!(x < 0.0, "{name}");
            } else {
                assert!(x.abs() < 1e-3, "{name}");
            }
        }
    }

    #[test]
    fn too_few_known_points_are_told() {
        let strangers: Vec<ControlPoint> =
            (0..9).map(|i| ControlPoint { name: format!("p{i}"), vertex: i }).collect();
        let error = Retarget::new(&strangers, &[Vec3::ZERO; 9]).expect_err("none is known");
        assert!(error.starts_with("0 of 9"), "{error}");
        assert_eq!((landmark_of("mediapipe_61"), landmark_of("mediapipe_478")), (Some(61), None));
    }
}
