//! Hood and mask: the hood rises from the mantle's collar around the head, folds inward at the face and
//! becomes the mask, whose rings close around the beak.

use super::coat::COLUMNS;
use super::sculpt::{Row, Sculpt, UvBox};
use std::f32::consts::PI;
use understudy_core::Vec3;

const HOOD_UV: UvBox = UvBox(0.265, 0.31, 0.395, 0.52);
const MASK_UV: UvBox = UvBox(0.405, 0.31, 0.495, 0.52);

/// Height, half width, depth behind, middle z of the hood's rings; the front is the opening.
const RINGS: [[f32; 4]; 5] = [
    [163.2, 11.4, 12.2, -0.6],
    [168.6, 13.2, 14.2, -0.8],
    [175.0, 13.6, 15.4, -1.0],
    [181.2, 12.6, 15.6, -1.4],
    [186.4, 9.6, 14.0, -2.0],
];

/// The border of the face from the chin over the left cheek to the brow.
const OPENING: [[f32; 3]; 11] = [
    [0.0, 162.2, 11.6],
    [4.4, 162.8, 11.4],
    [8.2, 164.6, 10.2],
    [10.4, 167.4, 8.8],
    [11.4, 171.0, 8.8],
    [11.5, 175.4, 9.6],
    [10.8, 180.0, 10.8],
    [9.0, 183.6, 12.0],
    [6.4, 186.2, 13.2],
    [3.4, 187.8, 14.6],
    [0.0, 188.6, 16.2],
];

fn hood_weights(sculpt: &Sculpt<'_>, ring: usize, column: usize) -> Row {
    let named = |weights: &[(&str, f32)]| sculpt.row(weights);
    match (ring, column) {
        (0, 0..=2) => named(&[("neck_1", 0.2), ("neck_2", 0.35), ("head", 0.45)]),
        (0, _) => named(&[("neck_1", 0.3), ("neck_2", 0.45), ("head", 0.25)]),
        (1, 7..) => named(&[("neck_2", 0.35), ("head", 0.65)]),
        (1 | 2, 3..=4) => named(&[("head", 0.65), ("hood_l", 0.35)]),
        (3, 7..) => named(&[("head", 0.6), ("hood_back", 0.4)]),
        (4, 0..=2) => named(&[("head", 0.6), ("hood_front", 0.4)]),
        (4, 5..) => named(&[("head", 0.5), ("hood_back", 0.5)]),
        _ => named(&[("head", 1.0)]),
    }
}

/// Adds hood and mask on the collar.
pub fn build(sculpt: &mut Sculpt<'_>, collar: &[u32]) {
    // Columns 0 to 3 of the lowest and the highest ring and column 3 of all lie on the border.
    let border_index = |ring: usize, column: usize| match (ring, column) {
        (0, column) if column <= 3 => Some(column),
        (4, column) if column <= 3 => Some(10 - column),
        (ring, 3) => Some(3 + ring),
        _ => None,
    };
    let mut rings: Vec<Vec<u32>> = Vec::new();
    let mut border = vec![u32::MAX; 11];
    for (index, [y, width, back, z]) in RINGS.into_iter().enumerate() {
        let mut row = Vec::new();
        for column in 0..COLUMNS {
            let on_border = border_index(index, column);
            if on_border.is_none() && column < 3 {
                row.push(u32::MAX);
                continue;
            }
            let (sin, cos) = (PI * column as f32 / 8.0).sin_cos();
            let mut point = Vec3::new(width * sin.max(0.0), y, z + back * cos);
            // The nape hangs in a soft fold; the hood's tip stands out behind.
            point.y -= (-cos).max(0.0) * 1.5;
            if column >= 7 {
                point.z -= [0.0, 0.0, 0.6, 1.8, 3.4][index] * (column - 6) as f32 * 0.5;
            }
            if let Some(place) = on_border {
                point = OPENING[place].into();
            }
            let weights = hood_weights(sculpt, index, column);
            let vertex = sculpt.vertex(point, weights);
            if let Some(place) = on_border {
                border[place] = vertex;
            }
            row.push(vertex);
        }
        rings.push(row);
    }
    sculpt.band(collar, &rings[0], false, "hood", HOOD_UV, (0.0, 0.16));
    for index in 0..4 {
        let rows = (0.16 + 0.18 * index as f32, 0.16 + 0.18 * (index + 1) as f32);
        let part = HOOD_UV.0 + (HOOD_UV.2 - HOOD_UV.0) * 3.0 / 8.0;
        let uv = UvBox(part, HOOD_UV.1, HOOD_UV.2, HOOD_UV.3);
        let (lower, upper) = (rings[index].clone(), rings[index + 1].clone());
        sculpt.band(&lower[3..], &upper[3..], false, "hood", uv, rows);
    }
    let crown = sculpt.row(&[("head", 0.4), ("hood_back", 0.6)]);
    let mut cap = Vec::new();
    for column in 0..COLUMNS {
        let (sin, cos) = (PI * column as f32 / 8.0).sin_cos();
        let y = 190.6 - 1.2 * sin + if cos < 0.0 { 1.6 * cos } else { 0.0 };
        let weights = sculpt.row(&[("head", 0.6), (if cos > 0.0 { "hood_front" } else { "hood_back" }, 0.4)]);
        cap.push(sculpt.vertex(Vec3::new(5.6 * sin.max(0.0), y, -3.0 + 9.0 * cos), weights));
    }
    let crown = sculpt.vertex(Vec3::new(0.0, 191.4, -4.0), crown);
    sculpt.band(&rings[4], &cap, false, "hood", HOOD_UV, (0.88, 0.95));
    sculpt.fan(&cap, crown, false, "hood", HOOD_UV, (0.95, 1.0));
    mask(sculpt, &border);
}

/// The face under the hood: a shallow bowl turned outward.
fn face_depth(x: f32, y: f32) -> f32 {
    9.6 - 0.050 * x * x - 0.022 * (y - 176.0).powi(2)
}

/// A place on the face by height and side, for lenses.
pub fn on_face(x: f32, y: f32) -> Vec3 {
    Vec3::new(x, y, face_depth(x, y))
}

fn mask(sculpt: &mut Sculpt<'_>, border: &[u32]) {
    let head = sculpt.row(&[("head", 1.0)]);
    let beak = sculpt.row(&[("beak", 1.0)]);
    let half = sculpt.row(&[("head", 0.5), ("beak", 0.5)]);
    let centre = Vec3::new(0.0, 175.0, 0.0);
    let towards = |point: Vec3, share: f32, z: f32| {
        let flat = centre + (Vec3::new(point.x, point.y, 0.0) - centre) * share;
        Vec3::new(flat.x, flat.y, z)
    };
    let mut rim = Vec::new();
    let mut crease = Vec::new();
    let mut cheek = Vec::new();
    let mut rings: Vec<Vec<u32>> = vec![Vec::new(); 3];
    for place in 0..border.len() {
        let edge = Vec3::from(OPENING[place]);
        let edge_row = if place < 3 {
            sculpt.row(&[("neck_2", 0.3), ("head", 0.7)])
        } else if place > 7 {
            sculpt.row(&[("head", 0.6), ("hood_front", 0.4)])
        } else {
            sculpt.row(&[("head", 0.7), ("hood_l", 0.3)])
        };
        rim.push(sculpt.vertex(towards(edge, 0.88, edge.z - 0.4), edge_row));
        crease.push(sculpt.vertex(towards(edge, 0.86, 3.0), head.clone()));
        let angle = PI * (place as f32 / 10.0 - 0.5);
        let (side, up) = (angle.cos().max(0.0), angle.sin());
        let side = if place == 0 || place == 10 { 0.0 } else { side };
        let on_cheek = on_face(7.0 * side, 175.2 + 9.2 * up);
        cheek.push(sculpt.vertex(on_cheek, head.clone()));
        // The beak: base, middle and near the tip, bent downward.
        let sections = [
            (Vec3::new(3.7 * side, 172.8 + 5.0 * up, 10.8), &half),
            (Vec3::new(2.9 * side, 171.6 + 3.3 * up, 16.2 - 0.8 * up.max(0.0)), &beak),
            (Vec3::new(1.7 * side, 169.2 + 1.9 * up, 21.6), &beak),
        ];
        for (ring, (point, row)) in rings.iter_mut().zip(sections) {
            ring.push(sculpt.vertex(point, row.clone()));
        }
    }
    let tip = sculpt.vertex(Vec3::new(0.0, 165.0, 25.2), beak);
    sculpt.band(border, &rim, false, "hood_edge", MASK_UV, (0.0, 0.04));
    sculpt.band(&rim, &crease, false, "lining", MASK_UV, (0.04, 0.2));
    sculpt.band(&crease, &cheek, false, "mask", MASK_UV, (0.2, 0.42));
    sculpt.band(&cheek, &rings[0], false, "mask", MASK_UV, (0.42, 0.62));
    sculpt.band(&rings[0], &rings[1], false, "mask", MASK_UV, (0.62, 0.78));
    sculpt.band(&rings[1], &rings[2], false, "beak", MASK_UV, (0.78, 0.92));
    sculpt.fan(&rings[2], tip, false, "beak", MASK_UV, (0.92, 1.0));
}
