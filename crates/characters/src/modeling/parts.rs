//! Parametric parts: ellipsoids and tubes, the raw material of eyes, teeth, buckles and spikes.

use super::cage::Cage;
use std::f32::consts::{PI, TAU};
use understudy_core::{Vec2, Vec3};

/// An ellipsoid about the origin with poles on ±Y; `columns` around, `rows` from pole to pole.
/// UVs run around and up inside the box `uv_low..uv_high`.
pub fn ellipsoid(
    segment: &str,
    radii: Vec3,
    columns: usize,
    rows: usize,
    uv_low: Vec2,
    uv_high: Vec2,
) -> Cage {
    let mut cage = Cage::default();
    let segment = cage.segment(segment);
    let uv = |row: f32, column: f32| {
        uv_low + (uv_high - uv_low) * Vec2::new(column / columns as f32, row / rows as f32)
    };
    let south = cage.vertex(Vec3::new(0.0, -radii.y, 0.0));
    let mut rings = Vec::new();
    for row in 1..rows {
        let latitude = PI * (row as f32 / rows as f32 - 0.5);
        let ring = |column: usize| {
            let longitude = TAU * column as f32 / columns as f32;
            Vec3::new(latitude.cos() * longitude.sin(), latitude.sin(), latitude.cos() * longitude.cos())
                * radii
        };
        rings.push((0..columns).map(|column| cage.vertex(ring(column))).collect::<Vec<u32>>());
    }
    let north = cage.vertex(Vec3::new(0.0, radii.y, 0.0));
    cage.skin_rows(&rings, true, segment, |row, column| uv(row as f32 + 1.0, column as f32));
    let (first, last) = (rings[0].clone(), rings[rings.len() - 1].clone());
    for column in 0..columns {
        let next = (column + 1) % columns;
        let (c, middle) = (column as f32, column as f32 + 0.5);
        cage.triangle(
            [south, first[next], first[column]],
            [uv(0.0, middle), uv(1.0, c + 1.0), uv(1.0, c)],
            segment,
        );
        let top = rows as f32;
        let uvs = [uv(top, middle), uv(top - 1.0, c), uv(top - 1.0, c + 1.0)];
        cage.triangle([north, last[column], last[next]], uvs, segment);
    }
    cage
}

/// A tube through `centres` with a radius each, `sides` around, open or capped by a fan at both ends.
/// Frames are carried along the curve without twist, starting from `side`, a direction across the first
/// piece. UVs: around, and along by length, inside `uv_low..uv_high`.
pub fn tube(
    segment: &str,
    centres: &[Vec3],
    radii: &[Vec2],
    side: Vec3,
    sides: usize,
    capped: bool,
    uv_low: Vec2,
    uv_high: Vec2,
) -> Cage {
    let mut cage = Cage::default();
    let segment = cage.segment(segment);
    let lengths: Vec<f32> = std::iter::once(0.0)
        .chain(centres.windows(2).scan(0.0, |sum, pair| {
            *sum += pair[0].distance(pair[1]);
            Some(*sum)
        }))
        .collect();
    let whole = lengths.last().copied().unwrap_or(1.0).max(f32::MIN_POSITIVE);
    let uv = |row: usize, column: f32| {
        uv_low + (uv_high - uv_low) * Vec2::new(column / sides as f32, lengths[row] / whole)
    };
    let mut side = side;
    let mut rings: Vec<Vec<u32>> = Vec::new();
    for (index, (&centre, radius)) in centres.iter().zip(radii).enumerate() {
        let before = centres[index.saturating_sub(1)];
        let after = centres[(index + 1).min(centres.len() - 1)];
        let along = (after - before).normalize_or(Vec3::Y);
        side = (side - along * along.dot(side)).normalize_or(along.any_orthonormal_vector());
        let front = side.cross(along);
        let ring = |step: usize| {
            let angle = TAU * step as f32 / sides as f32;
            centre + side * (radius.x * angle.cos()) - front * (radius.y * angle.sin())
        };
        rings.push((0..sides).map(|step| cage.vertex(ring(step))).collect());
    }
    cage.skin_rows(&rings, true, segment, |row, column| uv(row, column as f32));
    if capped {
        for (row, outward) in [(0, false), (centres.len() - 1, true)] {
            let middle = cage.vertex(centres[row]);
            for step in 0..sides {
                let (a, b) = (rings[row][step], rings[row][(step + 1) % sides]);
                let uvs = [uv(row, step as f32 + 0.5), uv(row, step as f32), uv(row, step as f32 + 1.0)];
                let [m, s, t] = uvs;
                if outward {
                    cage.triangle([middle, a, b], [m, s, t], segment);
                } else {
                    cage.triangle([middle, b, a], [m, t, s], segment);
                }
            }
        }
    }
    cage
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Mesh;

    /// Six times the signed volume: positive when all faces look outward.
    fn volume(mesh: &Mesh) -> f32 {
        let at = |v: u32| mesh.positions()[v as usize];
        mesh.triangles().iter().map(|[a, b, c]| at(*a).dot(at(*b).cross(at(*c)))).sum::<f32>() / 6.0
    }

    #[test]
    fn parts_are_closed_and_look_outward() {
        let (low, high) = (Vec2::ZERO, Vec2::ONE);
        let ball = ellipsoid("eye", Vec3::new(1.0, 2.0, 3.0), 48, 32, low, high).build().expect("valid");
        assert!((volume(&ball) / (4.0 / 3.0 * PI * 6.0) - 1.0).abs() < 0.02, "{}", volume(&ball));
        let centres = [Vec3::ZERO, Vec3::Y * 5.0, Vec3::Y * 10.0];
        let rod = tube("rod", &centres, &[Vec2::splat(2.0); 3], Vec3::X, 64, true, low, high);
        let rod = rod.build().expect("valid");
        assert!((volume(&rod) / (PI * 40.0) - 1.0).abs() < 0.01, "{}", volume(&rod));
    }
}
