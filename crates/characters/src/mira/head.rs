//! Sculpts the fine head: the grid is pulled onto the form, eyelids are laid on the eyeball and lips are
//! rolled from their border over the crest into the mouth.

use super::cage::{MOUTH_AROUND, Patch, Place, fine_head};
use super::sculpt::{EYE_CENTRE, EYE_RADIUS, front_depth, gradient, project, skin};
use crate::modeling::Cage;
use std::collections::HashMap;
use understudy_core::{Adjacency, Vec3};
use understudy_rigs::deformers::smooth_step;

/// Gap between the eyeball and the inner side of the lid, cm.
pub(super) const LID_GAP: f32 = 0.02;
/// Half the width of the mouth at the line of contact, cm.
pub(super) const MOUTH_HALF_WIDTH: f32 = 2.05;

/// The sculpted skin with lids, lips and the bag of the mouth.
pub(super) struct Head {
    pub cage: Cage,
    pub places: Vec<Place>,
}

/// Makes the head.
pub(super) fn sculpt_head() -> Head {
    let (mut cage, places) = fine_head();
    let faces: Vec<_> = cage.faces.iter().map(|face| face.face).collect();
    let adjacency = Adjacency::from_faces(cage.positions.len(), &faces);
    let neck_edge = |place: &Place| place.patch == Patch::Grid && place.across == 0.0;
    let on_form = |place: &Place| !neck_edge(place) && (place.patch == Patch::Grid || place.across == 0.0);

    for round in 0..9 {
        let before = cage.positions.clone();
        for (vertex, place) in places.iter().enumerate() {
            if !on_form(place) {
                continue;
            }
            let mut target = before[vertex];
            if round > 0 && place.patch == Patch::Grid {
                let neighbours = adjacency.neighbours(vertex);
                let mean =
                    neighbours.iter().map(|n| before[*n as usize]).sum::<Vec3>() / neighbours.len() as f32;
                let normal = gradient(skin, target);
                let pull = mean - target;
                target += (pull - normal * normal.dot(pull)) * 0.6;
            }
            let middle = before[vertex].x.abs() < 1e-5;
            cage.positions[vertex] = project(skin, target);
            if middle {
                cage.positions[vertex].x = 0.0;
            }
        }
    }

    // The edge of each hole, by its place around and its side.
    let key =
        |place: &Place, x: f32| (place.patch == Patch::Eye, (place.along * 4.0).round() as i32, x < -1e-5);
    let mut edges = HashMap::new();
    for (vertex, place) in places.iter().enumerate() {
        if place.patch != Patch::Grid && place.across == 0.0 {
            let position = cage.positions[vertex];
            edges.insert(key(place, position.x), position);
            if place.patch == Patch::Eye && place.along == 0.0 {
                let around = Place { along: 12.0, ..*place };
                edges.insert(key(&around, position.x), position);
            }
        }
    }
    for (vertex, place) in places.iter().enumerate() {
        if place.patch == Patch::Grid || place.across == 0.0 {
            continue;
        }
        let x = cage.positions[vertex].x;
        let side = if x < -1e-5 { -1.0 } else { 1.0 };
        let edge = edges[&key(place, x)] * Vec3::new(side, 1.0, 1.0);
        let sculpted = match place.patch {
            Patch::Eye => lid(place.along, place.across, edge),
            _ => lip(place.along, place.across, edge),
        };
        cage.positions[vertex] = sculpted * Vec3::new(side, 1.0, 1.0);
        if x.abs() < 1e-5 {
            cage.positions[vertex].x = 0.0;
        }
    }
    soften(&mut cage, &places, &adjacency);
    for position in &mut cage.positions {
        *position += Vec3::new(0.0, 0.34, -0.1) * nostril(*position);
    }
    Head { cage, places }
}

/// 1 in the middle of a nostril, 0 from its rim on.
pub(super) fn nostril(p: Vec3) -> f32 {
    if !(-3.9..-2.9).contains(&p.y) {
        return 0.0;
    }
    let across = ((p.x.abs() - 0.43) / 0.24).powi(2) + ((p.z - 7.42) / 0.36).powi(2);
    smooth_step(1.2, 0.25, across.sqrt()) * smooth_step(-2.95, -3.2, p.y) * smooth_step(-3.8, -3.6, p.y)
}

/// Evens out the bands between the grid and the sculpted loops, and the places where the form folds in
/// on itself: under the jaw and beside the nostrils.
fn soften(cage: &mut Cage, places: &[Place], adjacency: &Adjacency) {
    let strength = |place: &Place, p: Vec3| match place.patch {
        Patch::Eye => 0.5 * smooth_step(1.9, 1.2, place.across),
        Patch::Mouth => 0.5 * smooth_step(2.0, 1.6, place.across),
        Patch::Grid => {
            let jaw = smooth_step(0.6, 1.4, place.across) * smooth_step(4.3, 3.2, place.across);
            let left = Vec3::new(p.x.abs(), p.y, p.z);
            let wing = smooth_step(1.1, 0.5, left.distance(Vec3::new(0.95, -3.7, 7.0)));
            let groove = smooth_step(0.9, 0.4, left.distance(Vec3::new(1.25, -2.4, 6.6)));
            0.5 * jaw.max(wing).max(groove)
        }
    };
    let strengths: Vec<f32> =
        places.iter().zip(&cage.positions).map(|(place, p)| strength(place, *p)).collect();
    for _ in 0..6 {
        let before = cage.positions.clone();
        for (vertex, &strength) in strengths.iter().enumerate() {
            if strength > 0.0 {
                let neighbours = adjacency.neighbours(vertex);
                let mean =
                    neighbours.iter().map(|n| before[*n as usize]).sum::<Vec3>() / neighbours.len() as f32;
                cage.positions[vertex] = before[vertex].lerp(mean, strength);
            }
        }
    }
}

/// A point given by azimuth and elevation (degrees) seen from the eye's centre. The opening looks a
/// little outward, as the face curves away.
pub(super) fn eye_point(azimuth: f32, elevation: f32, radius: f32) -> Vec3 {
    let (a, e) = ((azimuth + 6.0).to_radians(), elevation.to_radians());
    EYE_CENTRE + Vec3::new(a.sin() * e.cos(), e.sin(), a.cos() * e.cos()) * radius
}

/// The edge of the open lids, azimuth and elevation in degrees: 0 inner corner, 6 outer, 12 inner again.
pub(super) fn lid_contour(along: f32) -> (f32, f32) {
    let upper = along <= 6.0;
    let s = if upper { along / 6.0 } else { (12.0 - along) / 6.0 };
    let spread = 0.7 * s + 0.3 * (1.0 - (std::f32::consts::PI * s).cos()) / 2.0;
    let azimuth = -50.0 + 103.0 * spread;
    let tilt = -5.0 + 9.0 * s;
    let arch = |skew: f32, power: f32| (std::f32::consts::PI * s.powf(skew)).sin().max(0.0).powf(power);
    let elevation = if upper { tilt + 29.0 * arch(0.9, 0.72) } else { tilt - 24.0 * arch(1.15, 0.8) };
    (azimuth, elevation)
}

/// Positions of the lid's loops; `edge` is the hole's edge at the same place around.
fn lid(along: f32, across: f32, edge: Vec3) -> Vec3 {
    let (azimuth, elevation) = lid_contour(along);
    let upper = along <= 6.0;
    let s = if upper { along / 6.0 } else { (12.0 - along) / 6.0 };
    let bow = (std::f32::consts::PI * s).sin().max(0.0).sqrt();
    let outward = if upper { 1.0 } else { -1.0 };
    let corner = (2.0 * s - 1.0) * (1.0 - bow);
    // How far the contour is pushed out from the edge, degrees, and the height above the eyeball.
    let ring = |push_bow: f32, push_corner: f32, height: f32| {
        eye_point(azimuth + push_corner * corner, elevation + outward * push_bow * bow, EYE_RADIUS + height)
    };
    let crease = if upper { ring(13.0, 7.0, 0.09) } else { ring(14.0, 7.0, 0.13) };
    let middle = if upper { ring(7.0, 4.0, 0.17) } else { ring(6.0, 3.5, 0.14) };
    let outer = ring(1.0, 1.5, if upper { 0.15 } else { 0.11 });
    let inner = ring(0.0, 0.0, LID_GAP);
    let behind = ring(16.0, 8.0, LID_GAP + 0.01);
    if across < 2.0 {
        let blend = edge.lerp(crease, across / 2.0);
        return blend.lerp(project(skin, blend), 1.0 - (across / 2.0).powi(2));
    }
    // The curve's chord would dip into the eyeball between two loops.
    let offset = curve(&[edge, crease, middle, outer, inner, behind], across - 1.0) - EYE_CENTRE;
    EYE_CENTRE + offset.normalize() * offset.length().max(EYE_RADIUS + LID_GAP)
}

/// The line where the lips meet.
fn contact_height(x: f32) -> f32 {
    -5.6 - 0.06 * (-(x / 0.42).powi(2)).exp() + 0.05 * (x / MOUTH_HALF_WIDTH).powi(2)
}

/// Positions of the mouth's loops; `edge` is the hole's edge at the same place around.
fn lip(along: f32, across: f32, edge: Vec3) -> Vec3 {
    let half = MOUTH_AROUND as f32 / 2.0;
    let upper = along > half;
    let sign = if upper { 1.0 } else { -1.0 };
    let a = 1.0 - (along - half).abs() / half;
    let width = |half_width: f32| half_width * (0.55 * a + 0.45 * (a * std::f32::consts::FRAC_PI_2).sin());
    let wide = MOUTH_HALF_WIDTH;
    // Height of the vermilion above (below) the line of contact.
    let height = |x: f32| {
        let t = (x / (wide + 0.12)).min(1.0);
        if upper {
            0.78 * (1.0 - t.powf(1.7)).max(0.0).powf(0.9) - 0.15 * (-(x / 0.24).powi(2)).exp()
        } else {
            0.92 * (1.0 - t.powf(2.4)).max(0.0).powf(0.85)
        }
    };
    let fullness = |x: f32| (1.0 - (x / (wide + 0.1)).powi(2)).max(0.0).powf(0.8);
    let border = {
        let x = width(wide + 0.12);
        let y = contact_height(x.min(wide)) + sign * height(x);
        Vec3::new(x, y, front_depth(x, y) + 0.05)
    };
    let crest = {
        let x = width(wide + 0.04);
        let y = contact_height(x.min(wide)) + sign * height(x) * if upper { 0.42 } else { 0.5 };
        let bulge = if upper { 0.25 + 0.08 * (-(x / 0.5).powi(2)).exp() } else { 0.34 };
        Vec3::new(x, y, front_depth(x, y) + 0.04 + bulge * fullness(x))
    };
    let contact = {
        let x = width(wide);
        let y = contact_height(x);
        Vec3::new(x, y + sign * 0.006, front_depth(x, y) + 0.02 + 0.1 * fullness(x))
    };
    let inside = |inward: f32, shrink: f32, open: f32| {
        let x = width(wide) * shrink;
        let y = contact_height(x) + sign * open * (1.0 - 0.75 * a * a);
        Vec3::new(x, y, contact.z - inward)
    };
    let deep = |z: f32, half_width: f32, open: f32| {
        let angle = a * std::f32::consts::FRAC_PI_2;
        Vec3::new(half_width * angle.sin(), -5.7 + sign * open * angle.cos().max(0.0).powf(0.7), z)
    };
    if across < 2.0 {
        let blend = edge.lerp(border, across / 2.0);
        return blend.lerp(project(skin, blend), 1.0 - (across / 2.0).powi(3));
    }
    let rings = [
        edge,
        border,
        crest,
        contact,
        inside(0.42, 0.985, 0.1),
        inside(0.62, 1.0, 0.55),
        deep(4.6, 3.0, 2.1),
        deep(2.2, 2.9, 2.2),
        deep(0.6, 1.6, 1.4),
    ];
    curve(&rings, across - 1.0)
}

/// Catmull–Rom through points at 0, 1, 2 …
pub(super) fn curve(points: &[Vec3], at: f32) -> Vec3 {
    let last = points.len() - 1;
    let start = (at.floor() as usize).min(last - 1);
    let t = at - start as f32;
    let [p1, p2] = [points[start], points[start + 1]];
    let p0 = if start == 0 { p1 * 2.0 - p2 } else { points[start - 1] };
    let p3 = if start + 2 > last { p2 * 2.0 - p1 } else { points[start + 2] };
    let (a, b) = ((p2 - p0) * 0.5, (p3 - p1) * 0.5);
    let (t2, t3) = (t * t, t * t * t);
    p1 * (2.0 * t3 - 3.0 * t2 + 1.0) + a * (t3 - 2.0 * t2 + t) + p2 * (3.0 * t2 - 2.0 * t3) + b * (t3 - t2)
}
