//! The feathers of Rook's mantle: two rows of leaf-shaped pieces that overlap like a crow's wing, and
//! the brooch that closes the mantle.

use super::fixtures::{Fixtures, anchors, ring};
use super::paint;
use super::sculpt::FineBody;
use super::surface::{Surface, frame};
use crate::modeling::{Cage, ellipsoid};
use std::f32::consts::TAU;
use understudy_core::{Affine3A, Mat3, Vec2, Vec3};

/// A feather along −Y, its root at the origin, its back towards +Z: a leaf with a ridge, a notch in the
/// outline and a tip that bends away from the body.
fn feather(length: f32, width: f32, cell: (Vec2, Vec2)) -> Cage {
    let mut cage = Cage::default();
    let segment = cage.segment("feather");
    let outline = [0.55f32, 0.95, 1.0, 0.72, 0.04];
    let mut rows = Vec::new();
    for (index, wide) in outline.into_iter().enumerate().rev() {
        let t = index as f32 / (outline.len() - 1) as f32;
        let lift = 0.35 + 0.9 * t * t;
        let at = |side: f32| Vec3::new(side * wide * width, -t * length, lift - 0.45 * side * side * wide);
        rows.push([-1.0f32, 0.0, 1.0].map(|side| cage.vertex(at(side))).to_vec());
    }
    let size = cell.1 - cell.0;
    let uv = |row: usize, column: usize| {
        let place = Vec2::new(column as f32 / 2.0, row as f32 / (outline.len() - 1) as f32);
        cell.0 + size * place
    };
    cage.skin_rows(&rows, false, segment, uv);
    cage
}

/// Adds the feathers and the brooch.
pub fn build(fixtures: &mut Fixtures, body: &FineBody) {
    let mantle = Surface::new(&body.cage, &["mantle", "hood"]);
    let centre = Vec3::new(0.0, 136.0, -1.5);
    // Rows from the lower to the upper; degrees up from the horizon in front, at the side and behind.
    for (row, heights) in
        [[3.0f32, 24.0, 5.0], [24.0, 36.0, 25.0], [42.0, 50.0, 41.0]].into_iter().enumerate()
    {
        let count = [12, 11, 9][row];
        for sign in [1.0f32, -1.0] {
            for index in 0..count {
                let shift = [0.5, 0.85, 0.5][row];
                let around = (4.0 + 174.0 * (index as f32 + shift) / count as f32).to_radians();
                let (sin, cos) = around.sin_cos();
                let level = if cos > 0.0 { heights[0] } else { heights[2] };
                let height = heights[1] + (level - heights[1]) * cos * cos;
                let height = height.to_radians();
                let direction = Vec3::new(sign * sin * height.cos(), height.sin(), cos * height.cos());
                let Some(place) = mantle.hit(centre + direction * 70.0, -direction) else { continue };
                // Down the slope and outward, so that the row fans over the shoulder.
                let flat = Vec3::new(direction.x, 0.0, direction.z).normalize();
                let at = frame(&place, Vec3::Y * 0.7 - flat * 0.75);
                let held = anchors(&mantle, &place, 2.0);
                let length = [12.0, 10.5, 9.5][row];
                let piece = feather(length, [2.9, 2.7, 2.4][row], fixtures.cell());
                let tint = 0.88 + 0.24 * ((index * 7 + row * 3) % 5) as f32 / 4.0;
                fixtures.hard(piece, at, held, paint::FEATHER * (0.8 * tint));
            }
        }
    }
    cowl(fixtures, &mantle);
    if let Some(place) = mantle.hit(Vec3::new(0.0, 153.5, 60.0), Vec3::NEG_Z) {
        let held = anchors(&mantle, &place, 2.0);
        let at = frame(&place, Vec3::Y) * Affine3A::from_mat3_translation(Mat3::IDENTITY, Vec3::Z * 0.5);
        let (low, high) = fixtures.cell();
        fixtures.hard(
            ellipsoid("brooch", Vec3::new(2.6, 2.6, 0.9), 14, 6, low, high),
            at,
            held,
            paint::BRASS,
        );
        let (low, high) = fixtures.cell();
        let gem = at * Affine3A::from_translation(Vec3::Z * 0.6);
        fixtures.hard(ellipsoid("gem", Vec3::new(1.5, 1.5, 0.9), 12, 6, low, high), gem, held, paint::GEM);
    }
}

/// The rolled cloth around the neck that hides the roots of the feathers.
fn cowl(fixtures: &mut Fixtures, mantle: &Surface<'_>) {
    const COUNT: usize = 28;
    let centre = Vec3::new(0.0, 150.0, -1.5);
    let mut places = Vec::new();
    for step in 0..COUNT {
        let (sin, cos) = (TAU * step as f32 / COUNT as f32).sin_cos();
        // Lower in front, where it hangs.
        let height = (42.0 - 7.0 * cos.max(0.0)).to_radians();
        let direction = Vec3::new(sin * height.cos(), height.sin(), cos * height.cos());
        let Some(place) = mantle.hit(centre + direction * 60.0, -direction) else { return };
        places.push(place);
    }
    let points: Vec<Vec3> = places
        .iter()
        .enumerate()
        .map(|(step, place)| place.point + place.normal * (0.15 + 0.2 * (step as f32 * 1.7).sin()))
        .collect();
    let roll = ring("cowl", &points, 1.7, fixtures.cell());
    let sides = roll.positions.len() / COUNT;
    let followed: Vec<_> = (0..roll.positions.len()).map(|vertex| places[vertex / sides]).collect();
    fixtures.soft(&roll, &followed, paint::COAT * 0.8);
}
