//! Hair, brows, lashes and ears: what makes the head somebody. Hair is a solid, stylised shape: a cap
//! combed back into a bun, a fringe of locks and two loose strands at the temples.

use super::head::{curve, eye_point, lid_contour};
use super::sculpt::{EYE_RADIUS, gradient, project, skin, skull};
use crate::modeling::{Cage, ellipsoid, tube};
use std::f32::consts::{PI, TAU};
use understudy_core::{Quat, Vec2, Vec3};

/// Where the hair is combed to.
const BUN: Vec3 = Vec3::new(0.0, 10.6, -4.9);
/// Centre from which the cap is measured.
const CROWN: Vec3 = Vec3::new(0.0, 2.0, -1.0);
const CAP_COLUMNS: usize = 84;
const CAP_ROWS: usize = 12;

/// The hairline on her left from the forehead over the temple and around the ear to the nape.
const HAIRLINE: [(f32, f32, f32); 11] = [
    (0.0, 6.75, 6.1),
    (1.8, 6.7, 5.8),
    (3.6, 5.9, 5.0),
    (5.2, 4.4, 3.9),
    (5.9, 2.9, 3.2),
    (6.35, 1.1, 2.2),
    (6.7, -0.6, 1.2),
    (7.1, 1.2, -0.9),
    (6.6, 0.0, -3.0),
    (4.6, -3.6, -4.6),
    (0.0, -5.2, -5.4),
];

/// The whole hair: segments `hair` (cap), `hair_bun` and `hair_locks`.
pub(super) fn hair() -> Cage {
    let mut cage = cap();
    cage.append(&bun());
    cage.append(&locks());
    cage
}

/// The angle around the bun at which a point lies: constant along a strand.
pub(super) fn combed_angle(p: Vec3) -> f32 {
    let turned = Quat::from_rotation_arc((BUN - CROWN).normalize(), Vec3::Y) * (p - CROWN);
    turned.x.atan2(turned.z)
}

/// A point of the hairline: 0 forehead, 0.5 nape, 1 forehead again after the other side.
fn hairline(place: f32) -> Vec3 {
    let (half, side) = if place <= 0.5 { (place * 2.0, 1.0) } else { (2.0 - place * 2.0, -1.0) };
    let points: Vec<Vec3> = HAIRLINE.iter().map(|&(x, y, z)| Vec3::new(x, y, z)).collect();
    let point = project(skin, curve(&points, half * (points.len() - 1) as f32));
    point * Vec3::new(side, 1.0, 1.0)
}

fn cap() -> Cage {
    let mut cage = Cage::default();
    let segment = cage.segment("hair");
    let bun_way = (BUN - CROWN).normalize();
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); CAP_ROWS + 1];
    for column in 0..CAP_COLUMNS {
        let place = column as f32 / CAP_COLUMNS as f32;
        let start = hairline(place);
        let start_way = (start - CROWN).normalize();
        let across = start_way - bun_way * bun_way.dot(start_way);
        let end_way = (bun_way + across.normalize() * 0.2).normalize();
        let whole = Quat::from_rotation_arc(start_way, end_way);
        // Strands: broad waves with finer ones between them, strongest at the hairline's edge.
        let angle = TAU * place;
        let strand = 0.6 * (angle * 9.0 + 0.8 * (angle * 2.0).sin()).sin().abs() + 0.4 * (angle * 21.0).sin();
        for (row, ids) in rows.iter_mut().enumerate() {
            let s = (row as f32 - 1.0).max(0.0) / (CAP_ROWS as f32 - 1.0);
            let way = Quat::IDENTITY.slerp(whole, s.powf(0.92)) * start_way;
            let shell = shell_radius(way);
            let rise = (s / 0.16).min(1.0);
            let body = 0.24 + 0.5 * (PI * s).sin() + 0.25 * way.y.max(0.0);
            let lift = if row == 0 {
                -0.25
            } else {
                body * (rise * (2.0 - rise)) + 0.05 + 0.15 * strand * (1.0 - 0.4 * s)
            };
            ids.push(cage.vertex(CROWN + way * (shell + lift)));
        }
    }
    let low = Vec2::new(0.765, 0.25);
    cage.skin_rows(&rows, true, segment, |row, column| {
        low + Vec2::new(0.225 * column as f32 / CAP_COLUMNS as f32, 0.24 * row as f32 / CAP_ROWS as f32)
    });
    cage
}

/// Distance from the crown's centre to the skin (or skull) along a direction.
fn shell_radius(way: Vec3) -> f32 {
    let field = |p: Vec3| skin(p).min(skull(p));
    let mut radius = 13.0;
    for _ in 0..40 {
        let distance = field(CROWN + way * radius);
        if distance < 1e-3 {
            break;
        }
        radius -= distance * 0.8;
    }
    radius
}

fn bun() -> Cage {
    let (low, high) = (Vec2::new(0.765, 0.13), Vec2::new(0.99, 0.24));
    let mut cage = ellipsoid("hair_bun", Vec3::ONE, 24, 14, low, high);
    let way = (BUN - CROWN).normalize();
    let turn = Quat::from_rotation_arc(Vec3::Y, way);
    for p in &mut cage.positions {
        let angle = p.x.atan2(p.z);
        let swirl = (angle * 4.0 + p.y * 5.5).sin();
        let radius = 1.0 + 0.05 * swirl * (1.0 - p.y * p.y);
        *p = BUN + turn * (*p * radius * Vec3::new(2.7, 2.2, 2.7));
    }
    cage
}

/// Paths of the locks over the forehead and in front of the ears: points near the skin, width, thickness.
struct Lock {
    path: &'static [(f32, f32, f32)],
    width: f32,
    thickness: f32,
    lift: f32,
}

const LOCKS: [Lock; 6] = [
    Lock {
        path: &[
            (2.2, 8.6, 3.4),
            (1.2, 8.2, 4.9),
            (-1.4, 6.9, 6.3),
            (-3.9, 5.2, 5.3),
            (-5.6, 3.3, 3.6),
            (-6.4, 1.6, 2.2),
        ],
        width: 1.25,
        thickness: 0.42,
        lift: 0.35,
    },
    Lock {
        path: &[
            (2.4, 8.9, 2.6),
            (0.9, 8.9, 3.9),
            (-2.2, 8.0, 4.6),
            (-4.6, 6.3, 3.9),
            (-6.2, 4.0, 2.2),
            (-6.9, 2.0, 0.8),
        ],
        width: 1.5,
        thickness: 0.45,
        lift: 0.55,
    },
    Lock {
        path: &[
            (2.1, 8.5, 3.8),
            (2.6, 7.7, 5.2),
            (3.7, 6.3, 5.0),
            (4.9, 4.7, 4.2),
            (5.8, 3.0, 3.2),
            (6.3, 1.4, 2.3),
        ],
        width: 1.15,
        thickness: 0.4,
        lift: 0.32,
    },
    Lock {
        path: &[
            (2.4, 8.9, 2.8),
            (3.4, 8.2, 3.8),
            (4.7, 6.8, 3.5),
            (5.9, 4.9, 2.6),
            (6.7, 2.8, 1.2),
            (7.0, 1.2, 0.2),
        ],
        width: 1.3,
        thickness: 0.42,
        lift: 0.5,
    },
    Lock {
        path: &[
            (6.2, 2.6, 2.6),
            (6.7, 1.0, 2.2),
            (6.75, -1.2, 2.0),
            (6.3, -3.4, 1.9),
            (6.1, -5.2, 2.2),
            (6.3, -6.6, 2.6),
        ],
        width: 0.42,
        thickness: 0.2,
        lift: 0.18,
    },
    Lock {
        path: &[
            (-6.2, 2.6, 2.6),
            (-6.7, 1.0, 2.2),
            (-6.75, -1.2, 2.0),
            (-6.3, -3.4, 1.9),
            (-6.1, -5.2, 2.2),
            (-6.3, -6.6, 2.6),
        ],
        width: 0.42,
        thickness: 0.2,
        lift: 0.18,
    },
];

fn locks() -> Cage {
    let mut cage = Cage::default();
    for (index, lock) in LOCKS.iter().enumerate() {
        let points: Vec<Vec3> = lock.path.iter().map(|&(x, y, z)| Vec3::new(x, y, z)).collect();
        let stations = 13;
        let centres: Vec<Vec3> = (0..=stations)
            .map(|i| {
                let s = i as f32 / stations as f32;
                let point = curve(&points, s * (points.len() - 1) as f32);
                // Keep clear of the skin, or fall freely where the path already is.
                let height = skin(point);
                if height < lock.lift { project(|p| skin(p) - lock.lift, point) } else { point }
            })
            .collect();
        let profile = |s: f32| (PI * (0.12 + 0.88 * s)).sin().max(0.03).powf(0.75);
        let radii: Vec<Vec2> = (0..=stations)
            .map(|i| Vec2::new(lock.width, lock.thickness) * profile(i as f32 / stations as f32))
            .collect();
        let out = gradient(skin, centres[0]);
        let along = (centres[1] - centres[0]).normalize();
        let low = Vec2::new(0.39 + 0.06 * index as f32, 0.21);
        let part = tube(
            "hair_locks",
            &centres,
            &radii,
            along.cross(out),
            8,
            true,
            low,
            low + Vec2::new(0.055, 0.08),
        );
        cage.append(&part);
    }
    cage
}

/// Middle line of her left brow, then its half width.
const BROW: [(f32, f32, f32); 6] = [
    (1.25, 2.58, 0.24),
    (1.95, 2.76, 0.31),
    (2.8, 2.98, 0.32),
    (3.7, 3.1, 0.27),
    (4.6, 2.9, 0.18),
    (5.3, 2.42, 0.05),
];
const BROW_STATIONS: usize = 18;

/// One brow that hugs the skin; `side` 1 is her left.
pub(super) fn brow(segment: &str, side: f32) -> Cage {
    let points: Vec<Vec3> = BROW.iter().map(|&(x, y, _)| Vec3::new(x, y, 6.0)).collect();
    let widths: Vec<Vec3> = BROW.iter().map(|b| Vec3::splat(b.2)).collect();
    let place = |s: f32| {
        let mut p = curve(&points, s * (points.len() - 1) as f32);
        p.z = super::sculpt::front_depth(p.x, p.y);
        p
    };
    let around = 8;
    let mut cage = Cage::default();
    let id = cage.segment(segment);
    let mut rows = Vec::new();
    for station in 0..=BROW_STATIONS {
        let s = station as f32 / BROW_STATIONS as f32;
        let centre = place(s);
        let along = (place((s + 0.01).min(1.0)) - place((s - 0.01).max(0.0))).normalize();
        let normal = gradient(skin, centre);
        let up = normal.cross(along).normalize();
        let round = (s / 0.05).min(1.0).sqrt().max(0.35);
        let half = curve(&widths, s * (widths.len() - 1) as f32).x * round;
        let ring = (0..around).map(|step| {
            let angle = TAU * step as f32 / around as f32;
            let p = project(skin, centre + up * (half * angle.cos()));
            let world = p + normal * (0.02 + 0.09 * angle.sin().max(-0.6) * (0.5 + 0.5 * round));
            cage.vertex(world * Vec3::new(side, 1.0, 1.0))
        });
        rows.push(ring.collect::<Vec<u32>>());
    }
    if side < 0.0 {
        rows.reverse();
    }
    let low = Vec2::new(if side > 0.0 { 0.765 } else { 0.88 }, 0.095);
    cage.skin_rows(&rows, true, id, |row, column| {
        low + Vec2::new(0.11 * row as f32 / BROW_STATIONS as f32, 0.03 * column as f32 / around as f32)
    });
    for (row, outward) in [(0, false), (BROW_STATIONS, true)] {
        let ring = rows[row].clone();
        let mean = ring.iter().map(|v| cage.positions[*v as usize]).sum::<Vec3>() / around as f32;
        let middle = cage.vertex(mean);
        let at = low + Vec2::new(0.11 * row as f32 / BROW_STATIONS as f32, 0.015);
        for step in 0..around {
            let (a, b) = (ring[step], ring[(step + 1) % around]);
            let corners = if outward { [middle, a, b] } else { [middle, b, a] };
            cage.triangle(corners, [at; 3], id);
        }
    }
    cage
}

/// Places around the lid where lashes stand.
pub(super) const LASH_STATIONS: usize = 42;

/// The place around the lid of a lash station.
pub(super) fn lash_place(station: usize) -> f32 {
    0.5 + 5.4 * station as f32 / LASH_STATIONS as f32
}

/// Upper lashes: a fringe that stands on the outer edge of the lid, longer towards the temple. Rows run
/// root, middle, tip, `LASH_STATIONS + 1` vertices each.
pub(super) fn lashes(segment: &str, side: f32) -> Cage {
    let mut cage = Cage::default();
    let id = cage.segment(segment);
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); 3];
    for station in 0..=LASH_STATIONS {
        let along = lash_place(station);
        let (azimuth, elevation) = lid_contour(along);
        let s = along / 6.0;
        let spike = 1.0 - 0.32 * (station as f32 * 2.1).sin().powi(2);
        let ends = (PI * s).sin().max(0.0).powf(0.4);
        let length = (0.14 + 0.5 * s * s) * spike * ends + 0.07;
        let fan = (s - 0.4) * 26.0;
        let root = eye_point(azimuth, elevation + 0.5, EYE_RADIUS + 0.1);
        let out =
            (eye_point(azimuth + fan, elevation + 20.0, EYE_RADIUS) - eye_point(0.0, 0.0, 0.0)).normalize();
        let middle = root + out * length * 0.6;
        let tip = root + out * length + Vec3::Y * length * 0.25;
        for (row, p) in rows.iter_mut().zip([root, middle, tip]) {
            row.push(cage.vertex(p * Vec3::new(side, 1.0, 1.0)));
        }
    }
    if side < 0.0 {
        rows.iter_mut().for_each(|row| row.reverse());
    }
    let low = Vec2::new(if side > 0.0 { 0.765 } else { 0.88 }, 0.06);
    cage.skin_rows(&rows, false, id, |row, column| {
        low + Vec2::new(0.11 * column as f32 / LASH_STATIONS as f32, 0.03 * row as f32 / 2.0)
    });
    cage
}

const EAR_AROUND: usize = 24;
/// Rings of the ear from its hidden root over the helix into the hollow: scale, height.
const EAR_RINGS: [(f32, f32); 9] = [
    (0.72, -0.75),
    (0.86, -0.1),
    (1.0, 0.32),
    (0.97, 0.5),
    (0.86, 0.48),
    (0.76, 0.24),
    (0.6, 0.36),
    (0.42, 0.1),
    (0.2, -0.12),
];

/// One ear, a shell that grows out of the side of the head.
pub(super) fn ear(segment: &str, side: f32) -> Cage {
    let mut cage = Cage::default();
    let id = cage.segment(segment);
    let outward = Vec3::new(0.86, 0.06, 0.36).normalize();
    let back = Vec3::new(0.34, 0.12, -0.88);
    let back = (back - outward * outward.dot(back)).normalize();
    let up = back.cross(outward) * -1.0;
    let up = if up.y < 0.0 { -up } else { up };
    let centre = Vec3::new(6.5, -1.15, -1.25);
    let mut rows = Vec::new();
    for &(scale, height) in &EAR_RINGS {
        let ring = (0..EAR_AROUND).map(|step| {
            let angle = TAU * step as f32 / EAR_AROUND as f32;
            let (sin, cos) = angle.sin_cos();
            // Wide above, a small lobe below, flat in front where it is attached.
            let tall = if cos > 0.0 { 1.75 } else { 1.7 };
            let wide = if sin > 0.0 { 1.25 - 0.3 * (-cos).max(0.0) } else { 0.62 };
            let front_low = if sin < 0.0 { -0.3 * (-sin) * height.max(0.0) } else { 0.0 };
            let p = up * (tall * cos * scale)
                + back * (wide * sin * scale + 0.16 * cos)
                + outward * (height + front_low);
            cage.vertex((centre + p) * Vec3::new(side, 1.0, 1.0))
        });
        rows.push(ring.collect::<Vec<u32>>());
    }
    let mid = rows[EAR_RINGS.len() - 1].iter().map(|v| cage.positions[*v as usize]).sum::<Vec3>()
        / EAR_AROUND as f32;
    let middle = cage.vertex(mid - outward * Vec3::new(side, 1.0, 1.0) * 0.1);
    if side > 0.0 {
        rows.iter_mut().for_each(|row| row.reverse());
    }
    let uv_centre = Vec2::new(if side > 0.0 { 0.82 } else { 0.935 }, 0.03);
    let chart = |row: usize, column: f32| {
        let angle = TAU * column / EAR_AROUND as f32;
        let radius = 0.027 * (1.0 - row as f32 / EAR_RINGS.len() as f32 * 0.9);
        uv_centre + Vec2::new(angle.sin(), angle.cos()) * radius
    };
    cage.skin_rows(&rows, true, id, |row, column| chart(row, column as f32));
    let last = &rows[EAR_RINGS.len() - 1];
    for step in 0..EAR_AROUND {
        let next = (step + 1) % EAR_AROUND;
        let r = EAR_RINGS.len() - 1;
        let uvs = [uv_centre, chart(r, step as f32), chart(r, step as f32 + 1.0)];
        cage.triangle([middle, last[step], last[next]], uvs, id);
    }
    cage
}
