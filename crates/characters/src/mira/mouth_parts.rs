//! What is inside the face: eyeballs, 28 teeth, gums and tongue. Parametric, each its own island.

use super::sculpt::{EYE_CENTRE, EYE_RADIUS};
use crate::modeling::{Cage, ellipsoid, tube};
use std::f32::consts::TAU;
use understudy_core::{Vec2, Vec3};

/// Angles from the pupil's centre at which the eyeball has rings, degrees.
#[rustfmt::skip]
const EYE_RINGS: [f32; 18] = [
    4.0, 8.0, 11.0, 12.6, 16.0, 20.0, 23.5, 26.0, 28.0, 34.0, 43.0, 54.0, 67.0, 82.0, 100.0, 120.0, 142.0, 162.0,
];
const EYE_COLUMNS: usize = 28;
/// Edge of the pupil and of the iris, degrees from the centre.
pub(super) const PUPIL_DEGREES: f32 = 11.8;
/// See [`PUPIL_DEGREES`].
pub(super) const IRIS_DEGREES: f32 = 27.0;

/// An eyeball that looks along +Z; `side` is 1 for her left, −1 for her right.
pub(super) fn eyeball(segment: &str, side: f32, chart_centre: Vec2) -> Cage {
    let mut cage = Cage::default();
    let segment = cage.segment(segment);
    let centre = EYE_CENTRE * Vec3::new(side, 1.0, 1.0);
    let chart = |degrees: f32, column: f32| {
        let angle = TAU * column / EYE_COLUMNS as f32;
        chart_centre + Vec2::new(angle.sin(), angle.cos()) * (0.1 * degrees / 180.0)
    };
    let front = cage.vertex(centre + Vec3::Z * EYE_RADIUS);
    let rings: Vec<Vec<u32>> = EYE_RINGS
        .iter()
        .map(|degrees| {
            let (sin, cos) = degrees.to_radians().sin_cos();
            let ring = |column: usize| {
                let angle = TAU * column as f32 / EYE_COLUMNS as f32;
                centre + Vec3::new(angle.sin() * sin, angle.cos() * sin, cos) * EYE_RADIUS
            };
            (0..EYE_COLUMNS).map(|column| cage.vertex(ring(column))).collect()
        })
        .collect();
    let back = cage.vertex(centre - Vec3::Z * EYE_RADIUS);
    let inward: Vec<Vec<u32>> = rings.iter().rev().cloned().collect();
    let last = EYE_RINGS.len() - 1;
    cage.skin_rows(&inward, true, segment, |row, column| chart(EYE_RINGS[last - row], column as f32));
    for column in 0..EYE_COLUMNS {
        let next = (column + 1) % EYE_COLUMNS;
        let (c, n) = (column as f32, column as f32 + 1.0);
        let near = EYE_RINGS[0];
        let uvs = [chart(0.0, c), chart(near, n), chart(near, c)];
        cage.triangle([front, rings[0][column], rings[0][next]], [uvs[0], uvs[2], uvs[1]], segment);
        let far = EYE_RINGS[last];
        let uvs = [chart(179.0, c + 0.5), chart(far, c), chart(far, n)];
        cage.triangle([back, rings[last][next], rings[last][column]], [uvs[0], uvs[2], uvs[1]], segment);
    }
    cage
}

/// Names of the teeth of one quarter from the middle to the back, with width, height and depth in cm.
const TEETH: [(&str, Vec3); 7] = [
    ("incisor_central", Vec3::new(0.64, 0.92, 0.36)),
    ("incisor_lateral", Vec3::new(0.52, 0.84, 0.34)),
    ("canine", Vec3::new(0.54, 0.92, 0.42)),
    ("premolar_first", Vec3::new(0.52, 0.78, 0.56)),
    ("premolar_second", Vec3::new(0.52, 0.74, 0.6)),
    ("molar_first", Vec3::new(0.74, 0.7, 0.72)),
    ("molar_second", Vec3::new(0.7, 0.66, 0.7)),
];

/// A row of teeth: an ellipse seen from above.
#[derive(Clone, Copy)]
struct Arch {
    half_width: f32,
    depth: f32,
    back: f32,
    gum_line: f32,
    /// 1 for the upper row, whose teeth hang down; −1 for the lower.
    up: f32,
}

const UPPER: Arch = Arch { half_width: 2.5, depth: 3.05, back: 3.35, gum_line: -4.95, up: 1.0 };
const LOWER: Arch = Arch { half_width: 2.38, depth: 2.92, back: 3.3, gum_line: -6.68, up: -1.0 };

impl Arch {
    fn at(&self, angle: f32) -> Vec3 {
        let (sin, cos) = angle.sin_cos();
        Vec3::new(self.half_width * sin, self.gum_line, self.back + self.depth * cos)
    }

    /// Walks along the arch from `angle` by `length` cm.
    fn walk(&self, mut angle: f32, length: f32) -> f32 {
        let pieces = 24;
        for _ in 0..pieces {
            let speed = Vec2::new(self.half_width * angle.cos(), self.depth * angle.sin()).length();
            angle += length / pieces as f32 / speed;
        }
        angle
    }
}

/// All 28 teeth, one segment each: `tooth_upper_L_canine` and so on.
pub(super) fn teeth() -> Cage {
    let mut cage = Cage::default();
    for (jaw, arch) in [("upper", UPPER), ("lower", LOWER)] {
        for (side, sign) in [("L", 1.0), ("R", -1.0)] {
            let mut angle = 0.0;
            for (place, (name, size)) in TEETH.iter().enumerate() {
                let narrow = if arch.up < 0.0 && place < 3 { 0.8 } else { 0.96 };
                let size = *size * Vec3::new(narrow, if arch.up < 0.0 { 0.92 } else { 1.0 }, 0.9);
                let middle = arch.walk(angle, size.x * 0.5);
                angle = arch.walk(angle, size.x * 1.02);
                let column = if side == "L" { 7 + place } else { 6 - place };
                let low = Vec2::new(0.01 + 0.0525 * column as f32, if arch.up > 0.0 { 0.075 } else { 0.01 });
                let segment = format!("tooth_{jaw}_{side}_{name}");
                let tooth = tooth(&segment, size, place, &arch, middle, sign, low);
                cage.append(&tooth);
            }
        }
    }
    cage
}

/// A rounded box with a flat crown: a super-ellipsoid bent onto its arch.
fn tooth(segment: &str, size: Vec3, place: usize, arch: &Arch, angle: f32, sign: f32, low: Vec2) -> Cage {
    let mut cage = ellipsoid(segment, Vec3::ONE, 10, 7, low, low + Vec2::new(0.048, 0.055));
    let ahead = arch.at(angle + 0.01) - arch.at(angle - 0.01);
    let along = ahead.normalize();
    let outward = Vec3::new(-along.z, 0.0, along.x) * -1.0;
    let centre = arch.at(angle);
    for position in &mut cage.positions {
        let soft = |v: f32, power: f32| v.signum() * v.abs().powf(power);
        // The tip of the crown is at −y for an upper tooth.
        let tip = -position.y * arch.up;
        let p = Vec3::new(soft(position.x, 0.5), soft(position.y, 0.55), soft(position.z, 0.6));
        let neck = 1.0 - 0.16 * (-tip).max(0.0);
        let blade = if place < 3 { 1.0 - 0.55 * tip.max(0.0) } else { 1.0 };
        let point = if place == 2 { 1.0 - 0.28 * tip.max(0.0).powi(2) } else { 1.0 };
        let x = p.x * size.x * 0.5 * neck * point;
        let y = p.y * size.y * 0.5 - arch.up * size.y * 0.36;
        let lean = if place < 3 { 0.06 * tip } else { 0.0 };
        let z = p.z * size.z * 0.5 * neck * blade + lean;
        let mut world = centre + along * x + outward * z + Vec3::Y * y;
        world.x *= sign;
        *position = world;
    }
    if sign < 0.0 {
        flip(&mut cage);
    }
    cage
}

/// Turns faces around after a reflection.
fn flip(cage: &mut Cage) {
    for face in &mut cage.faces {
        let (corners, uvs) = (face.face.corners().to_vec(), face.uvs);
        match corners[..] {
            [a, b, c] => {
                face.face = understudy_core::Face::triangle(a, c, b);
                face.uvs = [uvs[0], uvs[2], uvs[1], uvs[3]];
            }
            [a, b, c, d] => {
                face.face = understudy_core::Face::quad(a, d, c, b);
                face.uvs = [uvs[0], uvs[3], uvs[2], uvs[1]];
            }
            _ => {}
        }
    }
}

/// The gums of both jaws, each a bent tube in which the teeth stand.
pub(super) fn gums() -> Cage {
    let mut cage = Cage::default();
    for (name, arch, low) in
        [("gums_upper", UPPER, Vec2::new(0.01, 0.14)), ("gums_lower", LOWER, Vec2::new(0.39, 0.14))]
    {
        let stations = 18;
        let centres: Vec<Vec3> = (0..=stations)
            .map(|i| {
                let angle = (i as f32 / stations as f32 * 2.0 - 1.0) * 1.52;
                arch.at(angle) + Vec3::Y * (arch.up * 0.22) - Vec3::Z * 0.04
            })
            .collect();
        let radii = vec![Vec2::new(0.36, 0.27); stations + 1];
        let part = tube(name, &centres, &radii, Vec3::Y, 8, true, low, low + Vec2::new(0.36, 0.06));
        cage.append(&part);
    }
    cage
}

/// The tongue: a flattened tube with a groove, from the throat to just behind the lower teeth.
pub(super) fn tongue() -> Cage {
    let path = [
        (-7.6, 0.6),
        (-6.9, 1.0),
        (-6.45, 1.7),
        (-6.3, 2.5),
        (-6.25, 3.3),
        (-6.25, 4.0),
        (-6.25, 4.6),
        (-6.25, 5.05),
        (-6.27, 5.4),
        (-6.3, 5.62),
        (-6.33, 5.74),
    ];
    let wide = [0.8, 1.05, 1.25, 1.38, 1.42, 1.38, 1.26, 1.06, 0.8, 0.5, 0.2];
    let thick = [0.6, 0.6, 0.55, 0.5, 0.46, 0.42, 0.37, 0.31, 0.25, 0.18, 0.08];
    let centres: Vec<Vec3> = path.iter().map(|&(y, z)| Vec3::new(0.0, y, z)).collect();
    let radii: Vec<Vec2> = wide.iter().zip(&thick).map(|(w, t)| Vec2::new(*w, *t)).collect();
    let low = Vec2::new(0.01, 0.21);
    let mut cage = tube("tongue", &centres, &radii, Vec3::X, 14, true, low, low + Vec2::new(0.36, 0.08));
    for p in &mut cage.positions {
        let groove = (-(p.x / 0.3).powi(2)).exp() * 0.1;
        if p.y > -6.2 && p.z > 1.5 {
            p.y -= groove;
        }
    }
    cage
}
