//! The coarse quads of half a head: one grid from the neck to the crown with a hole for the eye and one
//! for half the mouth, each filled by concentric loops. Every corner carries its texture coordinate and,
//! in a twin cage, its place in the topology, so that fine vertices know where they are.

use super::sculpt::{EYE_CENTRE, front_depth, project, skin};
use crate::modeling::{Cage, subdivide};
use understudy_core::{Vec2, Vec3};

/// Columns of the grid from the face's midline (0) to the back of the head.
pub(super) const COLUMNS: usize = 12;
/// Rows of the grid from the base of the neck (0) to the crown.
pub(super) const ROWS: usize = 18;
/// Loops around the eye: 2 is the crease, 4 the outer and 5 the inner edge of the lid, 6 behind it.
pub(super) const EYE_LOOPS: usize = 6;
/// Vertices around the eye; 0 is the inner corner, 6 the outer, 1 to 5 the upper lid.
pub(super) const EYE_AROUND: usize = 12;
/// Loops of the mouth: 2 is the vermilion border, 3 the crest, 4 the line of contact, then the bag.
pub(super) const MOUTH_LOOPS: usize = 9;
/// Pieces around half the mouth; 0 is the middle of the lower lip, 4 the corner, 8 the middle above.
pub(super) const MOUTH_AROUND: usize = 8;

/// Marks a depth that is read off the form.
const F: f32 = f32::NAN;

/// Rough places of the grid from row 2 up; the form corrects them.
#[rustfmt::skip]
const GRID: [[(f32, f32, f32); COLUMNS + 1]; ROWS - 1] = [
    [(0.0, -10.6, 1.2), (0.5, -10.7, 1.1), (0.95, -10.9, 1.0), (1.35, -11.1, 0.7), (1.7, -11.4, 0.4), (2.05, -11.8, 0.0), (2.4, -12.2, -0.4), (2.7, -12.6, -1.0), (3.0, -13.0, -1.8), (3.15, -13.4, -2.8), (2.95, -13.7, -4.3), (1.75, -14.0, -6.3), (0.0, -14.1, -6.8)],
    [(0.0, -9.4, 4.6), (0.5, -9.4, 4.5), (1.0, -9.4, 4.2), (1.4, -9.45, 3.7), (1.7, -9.7, 3.0), (2.0, -10.1, 2.2), (2.35, -10.7, 1.4), (2.6, -11.2, 0.4), (2.95, -11.7, -0.7), (3.2, -12.2, -2.0), (3.05, -12.6, -3.9), (1.8, -13.0, -6.2), (0.0, -13.1, -6.7)],
    [(0.0, -9.1, 6.2), (0.55, -9.05, 6.0), (1.05, -8.95, 5.7), (1.5, -8.85, 5.2), (1.9, -8.9, 4.5), (2.2, -9.1, 3.7), (2.6, -9.3, 2.7), (2.9, -9.6, 1.6), (3.1, -10.1, 0.3), (3.2, -10.7, -1.4), (3.05, -11.4, -3.6), (1.8, -12.0, -6.0), (0.0, -12.1, -6.6)],
    [(0.0, -8.1, F), (0.6, -8.1, F), (1.2, -8.0, F), (1.8, -7.85, F), (2.3, -8.0, 5.2), (2.7, -8.2, 4.3), (3.15, -8.3, 3.3), (3.5, -8.4, 2.1), (3.6, -8.8, 0.6), (3.4, -9.4, -1.2), (3.1, -10.2, -3.4), (1.8, -10.9, -5.8), (0.0, -11.0, -6.4)],
    [(0.0, -7.0, F), (0.6, -7.0, F), (1.3, -6.95, F), (2.3, -6.75, F), (2.9, -7.0, F), (3.35, -7.25, 4.7), (3.8, -7.4, 3.7), (4.15, -7.4, 2.4), (4.2, -7.7, 0.8), (3.7, -8.4, -1.0), (3.15, -9.3, -3.3), (1.85, -10.0, -5.6), (0.0, -10.2, -6.2)],
    [(0.0, -5.6, F), (0.0, -5.6, F), (0.0, -5.6, F), (2.95, -5.75, F), (3.4, -6.1, F), (3.85, -6.35, 4.8), (4.3, -6.45, 3.8), (4.7, -6.4, 2.6), (4.8, -6.7, 1.0), (4.2, -7.5, -0.8), (3.2, -8.4, -3.1), (1.85, -9.1, -5.3), (0.0, -9.3, -5.9)],
    [(0.0, -4.05, F), (0.52, -4.1, F), (1.15, -4.25, F), (2.15, -4.65, F), (2.95, -5.25, F), (3.65, -5.5, 5.0), (4.3, -5.6, 4.1), (4.9, -5.5, 2.9), (5.2, -5.6, 1.2), (4.6, -6.5, -0.6), (3.4, -7.5, -3.0), (1.9, -8.2, -5.0), (0.0, -8.4, -5.6)],
    [(0.0, -3.5, 7.8), (0.46, -3.5, 7.7), (0.92, -3.5, 7.2), (1.5, -3.75, F), (2.5, -4.4, F), (3.4, -4.65, F), (4.25, -4.7, 4.4), (5.0, -4.6, 3.1), (5.5, -4.7, 1.4), (5.0, -5.6, -0.5), (3.7, -6.5, -3.0), (2.0, -7.2, -4.9), (0.0, -7.4, -5.4)],
    [(0.0, -2.85, 8.7), (0.46, -2.9, 8.4), (1.08, -2.98, 7.4), (1.5, -3.15, F), (2.4, -3.65, F), (3.3, -3.85, F), (4.25, -3.8, 4.6), (5.1, -3.6, 3.3), (5.8, -3.7, 1.5), (5.5, -4.5, -0.6), (4.2, -5.2, -3.2), (2.2, -5.9, -5.0), (0.0, -6.1, -5.5)],
    [(0.0, -2.15, F), (0.46, -2.2, F), (0.98, -2.35, F), (1.5, -2.5, F), (2.35, -2.9, F), (3.25, -3.05, F), (4.2, -2.9, F), (5.1, -2.6, 3.6), (5.95, -2.8, 1.5), (6.0, -3.2, -0.8), (4.7, -3.9, -3.6), (2.5, -4.6, -5.6), (0.0, -4.8, -6.1)],
    [(0.0, -1.3, F), (0.48, -1.35, F), (0.95, -1.45, F), (1.45, -1.5, F), (2.35, -2.0, F), (3.25, -2.15, F), (4.2, -1.95, F), (5.1, -1.35, 4.0), (6.2, -1.7, 1.5), (6.4, -2.0, -1.1), (5.2, -2.6, -4.0), (2.8, -3.2, -6.2), (0.0, -3.4, -6.9)],
    [(0.0, 0.0, F), (0.42, 0.0, F), (0.82, -0.05, F), (1.15, -0.1, F), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (5.5, 0.2, 3.7), (6.4, -0.5, 1.2), (6.75, -0.8, -1.4), (5.7, -1.2, -4.4), (3.0, -1.8, -7.0), (0.0, -2.0, -7.8)],
    [(0.0, 1.4, F), (0.55, 1.45, F), (1.05, 1.5, F), (1.6, 1.55, F), (2.4, 2.05, F), (3.25, 2.25, F), (4.2, 2.1, F), (5.25, 1.5, 4.0), (6.5, 0.6, 1.2), (6.95, 0.4, -1.6), (6.1, 0.2, -4.8), (3.3, -0.4, -7.8), (0.0, -0.6, -8.7)],
    [(0.0, 3.0, F), (0.75, 3.05, F), (1.45, 3.1, F), (2.2, 3.15, F), (3.1, 3.3, F), (4.0, 3.3, F), (4.9, 3.0, 4.6), (5.8, 2.5, 3.2), (6.8, 2.0, 1.0), (7.1, 1.8, -1.8), (6.3, 1.6, -5.2), (3.5, 1.2, -8.3), (0.0, 1.0, -9.3)],
    [(0.0, 5.2, F), (0.8, 5.2, F), (1.6, 5.2, F), (2.4, 5.15, F), (3.3, 5.1, F), (4.2, 4.9, F), (5.0, 4.6, 4.0), (5.8, 4.2, 2.6), (6.7, 3.8, 0.8), (7.1, 3.6, -1.8), (6.4, 3.4, -5.4), (3.5, 3.0, -8.6), (0.0, 2.8, -9.7)],
    [(0.0, 7.6, F), (0.7, 7.6, F), (1.4, 7.55, F), (2.1, 7.5, F), (3.0, 7.3, F), (3.9, 6.9, 4.3), (4.8, 6.3, 3.4), (5.6, 5.6, 2.2), (6.4, 5.0, 0.6), (6.9, 5.0, -1.8), (6.2, 5.0, -5.6), (3.4, 4.8, -8.7), (0.0, 4.5, -9.7)],
    [(0.0, 8.8, 3.6), (0.0, 9.1, 3.0), (0.0, 9.4, 2.3), (0.0, 9.6, 1.6), (0.0, 9.8, 0.8), (0.0, 9.95, 0.0), (0.0, 10.0, -1.0), (0.0, 9.9, -2.2), (0.0, 9.6, -3.6), (0.0, 9.0, -5.2), (0.0, 8.0, -6.9), (0.0, 6.9, -8.2), (0.0, 5.6, -9.1)],
];

/// Where columns and rows lie in the texture: half the chart's width, and its height.
#[rustfmt::skip]
const COLUMN_U: [f32; COLUMNS + 1] = [0.0, 0.03, 0.06, 0.092, 0.134, 0.176, 0.22, 0.272, 0.328, 0.372, 0.414, 0.458, 0.495];
#[rustfmt::skip]
const ROW_V: [f32; ROWS + 1] = [0.0, 0.055, 0.11, 0.155, 0.2, 0.245, 0.295, 0.355, 0.415, 0.455, 0.495, 0.54, 0.59, 0.66, 0.73, 0.785, 0.85, 0.92, 0.99];

/// The skin's chart in the texture.
const CHART_LOW: Vec2 = Vec2::new(0.01, 0.3);
const CHART_SIZE: Vec2 = Vec2::new(0.74, 0.69);

/// Which piece of the topology a vertex lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Patch {
    /// `along` is the column, `across` the row.
    Grid,
    /// `along` runs around the eye, `across` counts loops inward.
    Eye,
    /// `along` runs around half the mouth, `across` counts loops inward.
    Mouth,
}

/// The place of a fine vertex in the coarse topology.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub patch: Patch,
    pub along: f32,
    pub across: f32,
}

/// The head after two subdivisions, not yet sculpted: cage and the place of every vertex.
pub(super) fn fine_head() -> (Cage, Vec<Place>) {
    let (mut cage, mut twin) = half();
    cage.mirror(1e-4, |uv| Vec2::new(2.0 * CHART_LOW.x + CHART_SIZE.x - uv.x, uv.y));
    twin.mirror(1e-4, |place| place);
    for _ in 0..2 {
        cage = subdivide(&cage).0;
        twin = subdivide(&twin).0;
    }
    let nowhere = Place { patch: Patch::Grid, along: 0.0, across: 0.0 };
    let mut places = vec![nowhere; cage.positions.len()];
    for face in &twin.faces {
        let patch = [Patch::Grid, Patch::Eye, Patch::Mouth][face.segment as usize];
        for (&corner, uv) in face.face.corners().iter().zip(&face.uvs) {
            let place = &mut places[corner as usize];
            if patch >= place.patch {
                *place = Place { patch, along: uv.x, across: uv.y };
            }
        }
    }
    (cage, places)
}

/// Half the cage, and its twin whose texture coordinates are places and whose segments are patches.
fn half() -> (Cage, Cage) {
    let mut cage = Cage::default();
    let skin_segment = cage.segment("skin");
    let lids = cage.segment("eyelids");
    let lips = cage.segment("lips");
    let interior = cage.segment("mouth_interior");
    let mut twin = Cage::default();
    for patch in ["grid", "eye", "mouth"] {
        twin.segment(patch);
    }

    let mut positions = Vec::new();
    let mut grid = [[u32::MAX; COLUMNS + 1]; ROWS + 1];
    for row in 0..=ROWS {
        for column in 0..=COLUMNS {
            if !in_hole(row, column) {
                grid[row][column] = positions.len() as u32;
                positions.push(grid_position(row, column));
            }
        }
    }
    let chart = |along: f32, up: f32| CHART_LOW + CHART_SIZE * Vec2::new(0.5 + along, up);
    let mut add = |corners: [u32; 4], uvs: [Vec2; 4], places: [Vec2; 4], segment: u32, patch: u32| {
        if corners[3] == corners[2] {
            cage.triangle([corners[0], corners[1], corners[2]], [uvs[0], uvs[1], uvs[2]], segment);
            twin.triangle([corners[0], corners[1], corners[2]], [places[0], places[1], places[2]], patch);
        } else {
            cage.quad(corners, uvs, segment);
            twin.quad(corners, places, patch);
        }
    };
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            let spots = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)];
            let eye_cell = (12..14).contains(&row) && (3..7).contains(&column);
            let mouth_cell = (6..8).contains(&row) && column < 3;
            if !eye_cell && !mouth_cell {
                add(
                    spots.map(|(r, c)| grid[r][c]),
                    spots.map(|(r, c)| chart(COLUMN_U[c], ROW_V[r])),
                    spots.map(|(r, c)| Vec2::new(c as f32, r as f32)),
                    skin_segment,
                    0,
                );
            }
        }
    }

    // Loops: the hole's edge, then copies drawn in towards a centre; the sculptor moves them later.
    let mut loops = |edge: &[(usize, usize)], count: usize, centre: Vec3, chart_centre: Vec2| {
        let mut ids: Vec<Vec<u32>> = vec![edge.iter().map(|&(r, c)| grid[r][c]).collect()];
        let mut uvs: Vec<Vec<Vec2>> = vec![edge.iter().map(|&(r, c)| chart(COLUMN_U[c], ROW_V[r])).collect()];
        for step in 1..=count {
            let inward = step as f32 / count as f32 * 0.92;
            let ring = (0..edge.len()).map(|k| {
                let start = positions[ids[0][k] as usize];
                let mut target = start.lerp(centre, inward);
                target.x *= f32::from(u8::from(start.x > 1e-4));
                positions.push(target);
                positions.len() as u32 - 1
            });
            let ring = ring.collect();
            ids.push(ring);
            uvs.push((0..edge.len()).map(|k| uvs[0][k].lerp(chart_centre, inward)).collect());
        }
        (ids, uvs)
    };
    let eye_edge: Vec<(usize, usize)> = std::iter::once((13, 3))
        .chain((3..=7).map(|c| (14, c)))
        .chain(std::iter::once((13, 7)))
        .chain((3..=7).rev().map(|c| (12, c)))
        .collect();
    let eye_middle = chart((COLUMN_U[3] + COLUMN_U[7]) / 2.0, ROW_V[13]);
    let eye_front = EYE_CENTRE + Vec3::Z * 2.0;
    let (eye_ids, eye_uvs) = loops(&eye_edge, EYE_LOOPS, eye_front, eye_middle);
    let mouth_edge: Vec<(usize, usize)> =
        (0..=3).map(|c| (6, c)).chain(std::iter::once((7, 3))).chain((0..=3).rev().map(|c| (8, c))).collect();
    let mouth_middle = Vec3::new(0.0, -5.6, 5.0);
    let (mouth_ids, mouth_uvs) = loops(&mouth_edge, MOUTH_LOOPS, mouth_middle, chart(0.0, ROW_V[7]));
    for step in 0..EYE_LOOPS {
        for k in 0..EYE_AROUND {
            let n = (k + 1) % EYE_AROUND;
            let corners = [eye_ids[step + 1][k], eye_ids[step + 1][n], eye_ids[step][n], eye_ids[step][k]];
            let uvs = [eye_uvs[step + 1][k], eye_uvs[step + 1][n], eye_uvs[step][n], eye_uvs[step][k]];
            let [a, b, r, s] = [k as f32, k as f32 + 1.0, step as f32, step as f32 + 1.0];
            let places = [Vec2::new(a, s), Vec2::new(b, s), Vec2::new(b, r), Vec2::new(a, r)];
            add(corners, uvs, places, if step < 2 { skin_segment } else { lids }, 1);
        }
    }
    for step in 0..MOUTH_LOOPS {
        for k in 0..MOUTH_AROUND {
            let n = k + 1;
            let corners =
                [mouth_ids[step][k], mouth_ids[step][n], mouth_ids[step + 1][n], mouth_ids[step + 1][k]];
            let uvs =
                [mouth_uvs[step][k], mouth_uvs[step][n], mouth_uvs[step + 1][n], mouth_uvs[step + 1][k]];
            let [a, b, r, s] = [k as f32, n as f32, step as f32, step as f32 + 1.0];
            let places = [Vec2::new(a, r), Vec2::new(b, r), Vec2::new(b, s), Vec2::new(a, s)];
            let segment = [skin_segment, skin_segment, lips, lips][step.min(3)];
            add(corners, uvs, places, if step > 3 { interior } else { segment }, 2);
        }
    }
    // The back of the bag: the last loop is closed from side to side.
    let (last, last_uvs) = (&mouth_ids[MOUTH_LOOPS], &mouth_uvs[MOUTH_LOOPS]);
    for k in 0..MOUTH_AROUND / 2 {
        let spots = [k, k + 1, MOUTH_AROUND - 1 - k, MOUTH_AROUND - k];
        let spots = if spots[1] == spots[2] { [k, k + 1, spots[3], spots[3]] } else { spots };
        let place = |k: usize| Vec2::new(k as f32, MOUTH_LOOPS as f32);
        add(spots.map(|k| last[k]), spots.map(|k| last_uvs[k]), spots.map(place), interior, 2);
    }
    cage.positions.clone_from(&positions);
    twin.positions = positions;
    (cage, twin)
}

/// Grid places that the loops replace.
fn in_hole(row: usize, column: usize) -> bool {
    (row == 13 && (4..=6).contains(&column)) || (row == 7 && column < 3)
}

/// The rough place of a grid vertex, pulled onto the form.
fn grid_position(row: usize, column: usize) -> Vec3 {
    let rough = if row < 2 {
        let angle = std::f32::consts::PI * column as f32 / COLUMNS as f32;
        let (front, back, radius) = if row == 0 { (-15.4, -15.7, 3.7) } else { (-13.1, -14.8, 3.2) };
        let height = front + (back - front) * (1.0 - angle.cos()) / 2.0;
        Vec3::new(angle.sin() * radius, height, angle.cos() * radius - 3.4)
    } else {
        let (x, y, z) = GRID[row - 2][column];
        Vec3::new(x, y, if z.is_nan() { front_depth(x, y) } else { z })
    };
    let height = rough.y;
    let mut place = project(skin, rough);
    if row == 0 {
        place.y = height;
    }
    if rough.x.abs() < 1e-4 || column == COLUMNS {
        place.x = 0.0;
    }
    place
}
