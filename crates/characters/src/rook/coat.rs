//! The coat: skirt with a split front and a vent behind, its lining, the belt, the torso with the
//! armhole, and the feathered mantle over the shoulders. All rings have nine vertices from the front
//! middle (column 0) over the left side (4) to the back middle (8).

use super::plan::SPINE;
use super::sculpt::{Mask, Row, Sculpt, UvBox, mixed};
use std::f32::consts::PI;
use understudy_core::Vec3;

/// Columns of a half ring.
pub const COLUMNS: usize = 9;

const TORSO_UV: UvBox = UvBox(0.005, 0.005, 0.165, 0.30);
const SKIRT_UV: UvBox = UvBox(0.175, 0.005, 0.335, 0.30);
const LINING_UV: UvBox = UvBox(0.345, 0.005, 0.495, 0.30);
const MANTLE_UV: UvBox = UvBox(0.005, 0.31, 0.125, 0.44);
const MANTLE_LINING_UV: UvBox = UvBox(0.135, 0.31, 0.255, 0.44);
const EDGE_UV: UvBox = UvBox(0.005, 0.445, 0.255, 0.455);

/// Height, half width, depth in front, depth behind, middle z.
type Ring = (f32, f32, f32, f32, f32);

/// The skirt from the belt to the hem.
const SKIRT: [Ring; 5] = [
    (102.6, 15.2, 11.2, 10.6, 0.0),
    (93.5, 18.6, 13.4, 14.0, 0.0),
    (77.0, 22.0, 16.2, 18.6, -0.5),
    (59.5, 26.0, 19.5, 23.5, -1.0),
    (42.0, 30.0, 22.5, 28.5, -1.5),
];

/// The torso from under the belt to the neck.
const TORSO: [Ring; 9] = [
    SKIRT[0],
    (103.2, 15.9, 12.3, 11.5, 0.0),
    (109.2, 15.3, 11.9, 11.0, 0.0),
    (109.9, 13.9, 10.9, 9.8, 0.0),
    (118.0, 15.2, 11.7, 10.6, -0.3),
    (128.0, 17.8, 13.4, 11.8, -0.8),
    (139.0, 18.6, 13.4, 12.6, -1.2),
    (149.5, 16.2, 9.2, 10.6, -1.4),
    (155.8, 8.6, 7.0, 7.4, -1.6),
];

fn on_ring(ring: Ring, angle: f32) -> Vec3 {
    let (y, width, front, back, z) = ring;
    let (sin, cos) = angle.sin_cos();
    let depth = if cos > 0.0 { front } else { back };
    // Slightly squarer than an ellipse: a body is no barrel.
    let soft = |value: f32| value.abs().powf(0.88).copysign(value);
    Vec3::new(width * soft(sin).max(0.0), y, z + depth * soft(cos))
}

/// A point of the outer skirt; row 0 is under the belt, row 4 the hem.
pub fn skirt_point(row: usize, column: usize) -> Vec3 {
    let open = [0.0, 0.0, 0.10, 0.22, 0.34][row];
    let vent = [0.0, 0.0, 0.0, 0.06, 0.10][row];
    let t = column as f32 / 8.0;
    let angle = open + (PI - open - vent) * t;
    let mut point = on_ring(SKIRT[row], angle);
    // Flutes: odd columns swing out and hang lower, like feathers.
    let flute = [0.0, 0.0, 0.02, 0.045, 0.07][row];
    let outward = if column % 2 == 1 { 1.0 + flute } else { 1.0 - flute };
    point.x *= outward;
    point.z *= outward;
    if row == 4 {
        point.y += if column % 2 == 1 { -7.5 } else { 4.0 };
        // Longer behind than in front: a tail.
        point.y += 4.0 - 9.0 * t;
    }
    point
}

/// Adds coat, lining and mantle. Gives what other parts grow from.
pub fn build(sculpt: &mut Sculpt<'_>) -> CoatEnds {
    let skirt = skirt(sculpt);
    let (armhole, neck) = torso(sculpt, &skirt.belt);
    let collar = mantle(sculpt, &neck);
    CoatEnds { waist: skirt.lining, armhole, collar }
}

/// Open rings of the coat.
pub struct CoatEnds {
    /// Upper end of the lining, nine vertices.
    pub waist: Vec<u32>,
    /// Eight vertices from the top over the front.
    pub armhole: Vec<u32>,
    /// Upper end of the mantle, nine vertices.
    pub collar: Vec<u32>,
}

struct Skirt {
    belt: Vec<u32>,
    lining: Vec<u32>,
}

fn skirt_row(sculpt: &Sculpt<'_>, row: usize, column: usize) -> Row {
    let chain = |number: usize| -> Row {
        let name = |index: usize| format!("{}_l_{number}", super::plan::HEM[index].0);
        let one = |index: usize| sculpt.row(&[(&name(index), 1.0)]);
        match column {
            0 => one(0),
            8 => one(3),
            odd if odd % 2 == 1 => one(odd / 2),
            even => mixed(&one(even / 2 - 1), &one(even / 2), 0.5),
        }
    };
    let hips = sculpt.row(&[("hips", 1.0)]);
    match row {
        0 => sculpt.row(&[("hips", 0.7), ("spine_1", 0.3)]),
        1 => mixed(&hips, &chain(1), 0.45),
        2 => mixed(&chain(1), &chain(2), 0.2),
        3 => mixed(&chain(2), &chain(3), 0.2),
        _ => chain(3),
    }
}

fn skirt(sculpt: &mut Sculpt<'_>) -> Skirt {
    let mut outer: Vec<Vec<u32>> = Vec::new();
    let mut inner: Vec<Vec<u32>> = Vec::new();
    for row in 0..5 {
        let mut outside = Vec::new();
        let mut inside = Vec::new();
        for column in 0..COLUMNS {
            let weights = skirt_row(sculpt, row, column);
            let point = skirt_point(row, column);
            let lining = lining_point(row, column);
            outside.push(sculpt.vertex(point, weights.clone()));
            inside.push(sculpt.vertex(lining, weights));
            for vertex in [outside[column], inside[column]] {
                sculpt.mark(vertex, Mask::Column, column as f32 / 8.0);
                sculpt.mark(vertex, Mask::Row, row as f32 / 4.0);
                sculpt.mark(vertex, Mask::Skirt, [0.0, 0.35, 1.0, 1.0, 1.0][row]);
            }
            let border = if row == 4 {
                1.0
            } else if column == 0 {
                [0.0, 0.55, 1.0, 1.0][row]
            } else {
                0.0
            };
            sculpt.mark(outside[column], Mask::Trim, border);
        }
        outer.push(outside);
        inner.push(inside);
    }
    for row in 0..4 {
        let rows = (1.0 - row as f32 / 4.0, 1.0 - (row + 1) as f32 / 4.0);
        sculpt.band(&outer[row], &outer[row + 1], false, "coat", SKIRT_UV, rows);
        sculpt.band(&inner[row], &inner[row + 1], false, "lining", LINING_UV, rows);
    }
    // The hem, the split in front from row 1 down and the vent behind from row 2 down have thickness.
    let edge = UvBox(EDGE_UV.0, EDGE_UV.1, EDGE_UV.2, EDGE_UV.1 + 0.003);
    sculpt.band(&outer[4], &inner[4], false, "coat", edge, (0.0, 1.0));
    let column = |rings: &[Vec<u32>], from: usize, column: usize| -> Vec<u32> {
        rings[from..].iter().map(|ring| ring[column]).collect()
    };
    for (place, from, side) in [(0.0035, 1, 0), (0.007, 2, 8)] {
        let edge = UvBox(EDGE_UV.0, EDGE_UV.1 + place, EDGE_UV.2, EDGE_UV.1 + place + 0.003);
        let (out, lining) = (column(&outer, from, side), column(&inner, from, side));
        sculpt.band(&out, &lining, false, "coat", edge, (0.0, 1.0));
    }
    Skirt { belt: outer.swap_remove(0), lining: inner.swap_remove(0) }
}

fn lining_point(row: usize, column: usize) -> Vec3 {
    let outer = skirt_point(row, column);
    let thickness = [1.1, 1.0, 0.9, 0.9, 0.9][row];
    let flat = Vec3::new(outer.x, 0.0, outer.z);
    let mut point = outer - flat.normalize_or_zero() * thickness;
    if row == 0 {
        point.y -= 0.8;
    }
    // Along the split the lining keeps the outer edge's distance from the middle.
    if outer.x == 0.0 {
        point.x = 0.0;
    }
    point
}

/// Where the sleeve is sewn on, by (ring, column) of the torso.
fn armhole_point(ring: usize, column: usize) -> Option<Vec3> {
    Some(match (ring, column) {
        (5, 3) => Vec3::new(17.2, 131.5, 5.0),
        (5, 4) => Vec3::new(17.8, 129.5, -1.2),
        (5, 5) => Vec3::new(17.2, 131.5, -7.6),
        (6, 3) => Vec3::new(17.4, 141.0, 7.2),
        (6, 5) => Vec3::new(17.4, 141.0, -9.6),
        (7, 3) => Vec3::new(15.6, 150.2, 4.8),
        (7, 4) => Vec3::new(14.8, 153.8, -1.5),
        (7, 5) => Vec3::new(15.6, 150.2, -7.6),
        _ => return None,
    })
}

fn torso_weights(sculpt: &Sculpt<'_>, ring: usize, column: usize, point: Vec3) -> Row {
    let spine = sculpt.between(&SPINE, point.y);
    let named = |weights: &[(&str, f32)]| sculpt.row(weights);
    match (ring, column) {
        (5, 3 | 5) => named(&[("chest", 0.55), ("spine_3", 0.25), ("shoulder_helper_l", 0.2)]),
        (5, 4) => named(&[("chest", 0.45), ("spine_3", 0.2), ("shoulder_helper_l", 0.35)]),
        (6, 3) => named(&[("chest", 0.35), ("clavicle_l", 0.25), ("shoulder_helper_l", 0.4)]),
        (6, 5) => {
            named(&[("chest", 0.2), ("scapula_l", 0.2), ("clavicle_l", 0.2), ("shoulder_helper_l", 0.4)])
        }
        (7, 3..=5) => named(&[("chest", 0.1), ("clavicle_l", 0.55), ("shoulder_helper_l", 0.35)]),
        (7, 2 | 6) => named(&[("chest", 0.55), ("clavicle_l", 0.45)]),
        (6, 2) => named(&[("chest", 0.6), ("breathe", 0.2), ("clavicle_l", 0.2)]),
        (6, 6) => named(&[("chest", 0.5), ("scapula_l", 0.4), ("clavicle_l", 0.1)]),
        (5 | 6, 0..=1) => mixed(&spine, &named(&[("breathe", 1.0)]), 0.4),
        (6, 7) => mixed(&spine, &named(&[("scapula_l", 1.0)]), 0.3),
        (8, 3..=5) => named(&[("chest", 0.35), ("clavicle_l", 0.2), ("neck_1", 0.45)]),
        (8, _) => named(&[("chest", 0.5), ("neck_1", 0.5)]),
        _ => spine,
    }
}

fn torso(sculpt: &mut Sculpt<'_>, belt: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut rings: Vec<Vec<u32>> = vec![belt.to_vec()];
    for (index, ring) in TORSO.iter().enumerate().skip(1) {
        let mut row = Vec::new();
        for column in 0..COLUMNS {
            let mut point = on_ring(*ring, PI * column as f32 / 8.0);
            if index == 8 {
                // The collar line rises towards the back of the neck and the sides.
                point.y += [-1.6, -1.0, 0.4, 1.2, 1.5, 1.6, 1.6, 1.6, 1.6][column];
            }
            let point = armhole_point(index, column).unwrap_or(point);
            let hidden = (index, column) == (6, 4);
            let weights = torso_weights(sculpt, index, column, point);
            row.push(if hidden { u32::MAX } else { sculpt.vertex(point, weights) });
        }
        rings.push(row);
    }
    for index in 0..8 {
        let name = if index < 3 { "belt" } else { "coat" };
        let rows = (index as f32 / 8.0, (index + 1) as f32 / 8.0);
        let (lower, upper) = (rings[index].clone(), rings[index + 1].clone());
        let pieces: &[(usize, usize)] = if index == 5 || index == 6 { &[(0, 3), (5, 8)] } else { &[(0, 8)] };
        for &(from, to) in pieces {
            let part = |u: f32| TORSO_UV.0 + (TORSO_UV.2 - TORSO_UV.0) * u / 8.0;
            let uv = UvBox(part(from as f32), TORSO_UV.1, part(to as f32), TORSO_UV.3);
            sculpt.band(&lower[from..=to], &upper[from..=to], false, name, uv, rows);
        }
    }
    let armhole = [(7, 4), (7, 3), (6, 3), (5, 3), (5, 4), (5, 5), (6, 5), (7, 5)];
    (armhole.map(|(ring, column)| rings[ring][column]).to_vec(), rings.swap_remove(8))
}

/// The edge of the mantle, column by column; odd columns are the tips of feathers.
const MANTLE_EDGE: [[f32; 3]; 9] = [
    [0.0, 141.0, 14.6],
    [8.2, 134.0, 15.4],
    [16.2, 142.0, 13.0],
    [24.0, 138.2, 9.6],
    [27.0, 148.0, -1.5],
    [24.0, 137.6, -12.4],
    [16.4, 141.0, -15.6],
    [8.4, 131.5, -16.4],
    [0.0, 137.5, -16.0],
];

/// The mantle halfway between neck and edge.
const MANTLE_MIDDLE: [[f32; 3]; 9] = [
    [0.0, 151.0, 10.2],
    [5.2, 151.0, 10.2],
    [10.2, 152.4, 8.2],
    [14.4, 154.2, 4.4],
    [15.8, 156.4, -1.6],
    [14.6, 154.4, -7.2],
    [10.4, 152.4, -11.2],
    [5.2, 151.4, -12.6],
    [0.0, 151.2, -12.8],
];

fn mantle_weights(sculpt: &Sculpt<'_>, edge: bool, column: usize) -> Row {
    let named = |weights: &[(&str, f32)]| sculpt.row(weights);
    match (edge, column) {
        (true, 4) => named(&[("clavicle_l", 0.2), ("mantle_l", 0.5), ("shoulder_helper_l", 0.3)]),
        (true, 3 | 5) => named(&[("chest", 0.15), ("clavicle_l", 0.25), ("mantle_l", 0.6)]),
        (true, 2 | 6) => named(&[("chest", 0.6), ("clavicle_l", 0.3), ("mantle_l", 0.1)]),
        (true, _) => named(&[("chest", 0.9), ("breathe", 0.1)]),
        (false, 3..=5) => named(&[("chest", 0.25), ("clavicle_l", 0.65), ("mantle_l", 0.1)]),
        (false, 2 | 6) => named(&[("chest", 0.65), ("clavicle_l", 0.35)]),
        (false, _) => named(&[("chest", 0.9), ("neck_1", 0.1)]),
    }
}

fn mantle(sculpt: &mut Sculpt<'_>, neck: &[u32]) -> Vec<u32> {
    let mut inner_middle = Vec::new();
    let mut inner_edge = Vec::new();
    let mut outer_edge = Vec::new();
    let mut outer_middle = Vec::new();
    let mut collar = Vec::new();
    for column in 0..COLUMNS {
        let (edge, middle) = (Vec3::from(MANTLE_EDGE[column]), Vec3::from(MANTLE_MIDDLE[column]));
        // Away from the middle of the chest: upward on the shoulder, forward on the breast.
        let away = |point: Vec3| (point - Vec3::new(point.x * 0.45, 132.0, -1.5)).normalize();
        let out = |point: Vec3, by: f32| {
            let mut moved = point + away(point) * by;
            if column == 0 || column == 8 {
                moved.x = 0.0;
            }
            moved
        };
        let middle_row = mantle_weights(sculpt, false, column);
        let edge_row = mantle_weights(sculpt, true, column);
        inner_middle.push(sculpt.vertex(middle, middle_row.clone()));
        inner_edge.push(sculpt.vertex(edge, edge_row.clone()));
        outer_edge.push(sculpt.vertex(out(edge, 1.0), edge_row));
        outer_middle.push(sculpt.vertex(out(middle, 1.4), middle_row));
        let ring = on_ring((158.2, 9.2, 8.6, 8.8, -1.0), PI * column as f32 / 8.0);
        let weights = sculpt.row(&[("chest", 0.2), ("neck_1", 0.8)]);
        collar.push(sculpt.vertex(ring, weights));
    }
    sculpt.band(neck, &inner_middle, false, "lining", MANTLE_LINING_UV, (0.0, 0.45));
    sculpt.band(&inner_middle, &inner_edge, false, "lining", MANTLE_LINING_UV, (0.45, 1.0));
    sculpt.band(&inner_edge, &outer_edge, false, "mantle", MANTLE_UV, (0.0, 0.06));
    sculpt.band(&outer_edge, &outer_middle, false, "mantle", MANTLE_UV, (0.06, 0.6));
    sculpt.band(&outer_middle, &collar, false, "mantle", MANTLE_UV, (0.6, 1.0));
    collar
}
