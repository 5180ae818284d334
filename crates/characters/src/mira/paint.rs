//! Colours a vertex: skin with blush, vermilion, irises, hair. sRGB in 0 to 1.

use super::cage::{Patch, Place};
use super::head::nostril;
use super::mouth_parts::{IRIS_DEGREES, PUPIL_DEGREES};
use super::sculpt::EYE_CENTRE;
use understudy_core::Vec3;
use understudy_rigs::deformers::smooth_step;

const SKIN: Vec3 = Vec3::new(0.90, 0.68, 0.56);
const BLUSH: Vec3 = Vec3::new(0.88, 0.47, 0.41);
const LIPS: Vec3 = Vec3::new(0.77, 0.36, 0.36);
const INSIDE: Vec3 = Vec3::new(0.46, 0.15, 0.16);
const LINER: Vec3 = Vec3::new(0.20, 0.11, 0.09);
const HAIR: Vec3 = Vec3::new(0.34, 0.15, 0.08);
const HAIR_LIGHT: Vec3 = Vec3::new(0.58, 0.29, 0.14);

/// The colour of a vertex of the sculpted skin.
pub(super) fn skin_colour(p: Vec3, place: &Place) -> Vec3 {
    let side = Vec3::new(p.x.abs(), p.y, p.z);
    let spot = |centre: Vec3, radius: f32| (-(side.distance_squared(centre) / (radius * radius))).exp();
    let mut colour = SKIN;
    colour = colour.lerp(BLUSH, 0.50 * spot(Vec3::new(3.9, -2.7, 5.4), 1.9));
    colour = colour.lerp(BLUSH, 0.35 * spot(Vec3::new(0.0, -2.8, 8.4), 0.9));
    colour = colour.lerp(BLUSH, 0.12 * spot(Vec3::new(0.0, -8.4, 6.6), 1.3));
    // The nostril was pushed up from here; look where it was.
    colour = colour.lerp(INSIDE * 0.6, 0.9 * nostril(p - Vec3::Y * 0.2));
    match place.patch {
        Patch::Grid => colour,
        Patch::Eye => {
            let upper = place.along <= 6.0;
            let along = if upper { place.along / 6.0 } else { (12.0 - place.along) / 6.0 };
            let shadow = smooth_step(0.6, 2.4, place.across) * if upper { 0.45 } else { 0.22 };
            let mut lid = colour.lerp(Vec3::new(0.62, 0.34, 0.32), shadow);
            let from = if upper { 3.55 } else { 4.1 };
            let strength = if upper { 0.95 } else { 0.25 + 0.5 * along };
            lid = lid.lerp(LINER, strength * smooth_step(from, from + 0.4, place.across));
            lid.lerp(Vec3::new(0.72, 0.42, 0.38), smooth_step(4.8, 5.2, place.across))
        }
        Patch::Mouth => {
            let lips = colour.lerp(LIPS, smooth_step(1.72, 2.08, place.across));
            let dark = lips.lerp(LIPS * 0.72, smooth_step(3.2, 4.0, place.across));
            dark.lerp(INSIDE, smooth_step(4.2, 5.6, place.across))
        }
    }
}

/// The colour of a vertex of the eyeball that rests at `p`.
pub(super) fn eye_colour(p: Vec3) -> Vec3 {
    let offset = Vec3::new(p.x.abs(), p.y, p.z) - EYE_CENTRE;
    let degrees = offset.z.clamp(-offset.length(), offset.length()).atan2(offset.truncate().length());
    let degrees = 90.0 - degrees.to_degrees();
    let white =
        Vec3::new(0.95, 0.94, 0.92).lerp(Vec3::new(0.86, 0.66, 0.62), smooth_step(45.0, 85.0, degrees));
    if degrees > IRIS_DEGREES {
        return white;
    }
    let up = offset.y / offset.truncate().length().max(1e-4);
    let glow = 0.5 - 0.5 * up;
    let iris = Vec3::new(0.10, 0.34, 0.36).lerp(Vec3::new(0.30, 0.68, 0.56), glow);
    let ring = smooth_step(20.0, IRIS_DEGREES - 1.0, degrees);
    let iris = iris.lerp(Vec3::new(0.03, 0.12, 0.16), ring);
    iris.lerp(Vec3::splat(0.012), smooth_step(PUPIL_DEGREES + 0.6, PUPIL_DEGREES - 0.6, degrees))
}

/// The colour of everything else, by the name of its segment.
pub(super) fn part_colour(segment: &str, p: Vec3) -> Vec3 {
    match segment {
        "tongue" => Vec3::new(0.80, 0.40, 0.40).lerp(Vec3::new(0.55, 0.20, 0.22), smooth_step(4.0, 1.0, p.z)),
        "gums_upper" | "gums_lower" => Vec3::new(0.80, 0.44, 0.43),
        "brow_L" | "brow_R" => HAIR * 0.75,
        "lashes_L" | "lashes_R" => Vec3::new(0.06, 0.035, 0.03),
        "ear_L" | "ear_R" => SKIN.lerp(BLUSH, 0.22),
        _ if segment.starts_with("tooth") => Vec3::new(0.95, 0.93, 0.87),
        _ if segment.starts_with("eye_") => eye_colour(p),
        _ => {
            // Streaks run along the strands: towards the bun.
            let angle = super::hair::combed_angle(p);
            let streak = 0.5 + 0.3 * (angle * 21.0).sin() + 0.2 * (angle * 47.0 + 1.0).sin();
            HAIR.lerp(HAIR_LIGHT, 0.55 * streak + 0.2 * smooth_step(2.0, 11.0, p.y))
        }
    }
}
