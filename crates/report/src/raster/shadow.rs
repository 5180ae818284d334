//! The soft shadow on the ground: the characters are pressed along the key light onto a grid on the
//! floor, then blurred; what touches the floor gets a second, tighter and darker one.

use rayon::prelude::*;
use understudy_core::Vec3;

/// Cells along each side of the grid.
const CELLS: usize = 192;

/// How dark the ground is, on a grid over the floor.
pub(super) struct GroundShadow {
    height: f32,
    low: [f32; 2],
    cell: f32,
    darkness: Vec<f32>,
}

impl GroundShadow {
    /// The shadow of triangles on the plane `y = height`, lit from the direction `key`. `None` when
    /// there is nothing to cast one.
    pub fn cast(positions: &[Vec3], triangles: &[[u32; 3]], height: f32, key: Vec3) -> Option<Self> {
        if key.y <= 0.05 || triangles.is_empty() {
            return None;
        }
        // Half the key's slant: a long shadow would leave most pictures.
        let slant = [0.5 * key.x / key.y, 0.5 * key.z / key.y];
        let press = |p: Vec3| {
            let above = (p.y - height).max(0.0);
            [p.x - slant[0] * above, p.z - slant[1] * above, above]
        };
        let mut low = [f32::INFINITY; 2];
        let mut high = [f32::NEG_INFINITY; 2];
        let mut tall = 0.0f32;
        for &corner in triangles.iter().flatten() {
            let point = positions[corner as usize];
            let pressed = press(point);
            tall = tall.max(pressed[2]);
            for (axis, straight) in [point.x, point.z].into_iter().enumerate() {
                low[axis] = low[axis].min(pressed[axis]).min(straight);
                high[axis] = high[axis].max(pressed[axis]).max(straight);
            }
        }
        let span = (high[0] - low[0]).max(high[1] - low[1]).max(tall * 0.1);
        if !(span > 0.0 && span.is_finite()) {
            return None;
        }
        let margin = span * 0.3;
        let cell = (span + 2.0 * margin) / CELLS as f32;
        let origin = [low[0] - margin, low[1] - margin];
        let to_cell = |p: [f32; 2]| [(p[0] - origin[0]) / cell, (p[1] - origin[1]) / cell];

        let mut slanted = vec![0.0f32; CELLS * CELLS];
        let mut contact = vec![0.0f32; CELLS * CELLS];
        let reach = (tall * 0.12).max(span * 0.02);
        for triangle in triangles {
            let corners = triangle.map(|corner| positions[corner as usize]);
            let pressed = corners.map(press);
            cover(pressed.map(|p| to_cell([p[0], p[1]])), |at| slanted[at] = 1.0);
            let lowest = pressed.iter().map(|p| p[2]).fold(f32::INFINITY, f32::min);
            let near = 1.0 - lowest / reach;
            if near > 0.0 {
                cover(corners.map(|p| to_cell([p.x, p.z])), |at| contact[at] = contact[at].max(near * near));
            }
        }
        let soft = blur(&slanted, (span * 0.045 / cell).ceil() as usize);
        let tight = blur(&contact, (span * 0.014 / cell).ceil() as usize);
        let darkness =
            soft.iter().zip(&tight).map(|(s, t)| 1.0 - (1.0 - 0.42 * s) * (1.0 - 0.55 * t)).collect();
        Some(Self { height, low: origin, cell, darkness })
    }

    /// Darkness in 0..=1 where a ray from `eye` meets the floor; 0 where it does not.
    pub fn along(&self, eye: Vec3, direction: Vec3) -> f32 {
        let fall = self.height - eye.y;
        if fall * direction.y <= 0.0 || direction.y >= -1e-3 {
            return 0.0;
        }
        let point = eye + direction * (fall / direction.y);
        self.at(point.x, point.z)
    }

    /// Darkness at a place of the floor, between the four nearest cells.
    fn at(&self, x: f32, z: f32) -> f32 {
        let column = (x - self.low[0]) / self.cell - 0.5;
        let row = (z - self.low[1]) / self.cell - 0.5;
        let last = (CELLS - 1) as f32;
        if !(column >= 0.0 && row >= 0.0 && column < last && row < last) {
            return 0.0;
        }
        let (i, j) = (column as usize, row as usize);
        let (s, t) = (column - i as f32, row - j as f32);
        let get = |i: usize, j: usize| self.darkness[j * CELLS + i];
        let near = get(i, j) * (1.0 - s) + get(i + 1, j) * s;
        let far = get(i, j + 1) * (1.0 - s) + get(i + 1, j + 1) * s;
        near * (1.0 - t) + far * t
    }
}

/// Calls `visit` for every cell whose centre a triangle covers, and for the cells of its corners, so
/// that slivers leave a mark.
fn cover(points: [[f32; 2]; 3], mut visit: impl FnMut(usize)) {
    let index = |x: f32, y: f32| {
        let inside = x >= 0.0 && y >= 0.0 && x < CELLS as f32 && y < CELLS as f32;
        inside.then(|| y as usize * CELLS + x as usize)
    };
    for point in points {
        if let Some(at) = index(point[0], point[1]) {
            visit(at);
        }
    }
    let low = |axis: usize| points.iter().map(|p| p[axis]).fold(f32::INFINITY, f32::min).max(0.0) as usize;
    let high =
        |axis: usize| points.iter().map(|p| p[axis]).fold(0.0, f32::max).min((CELLS - 1) as f32) as usize;
    let edge =
        |a: [f32; 2], b: [f32; 2], x: f32, y: f32| (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
    for row in low(1)..=high(1) {
        for column in low(0)..=high(0) {
            let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
            let sides = [
                edge(points[0], points[1], x, y),
                edge(points[1], points[2], x, y),
                edge(points[2], points[0], x, y),
            ];
            if sides.iter().all(|s| *s >= 0.0) || sides.iter().all(|s| *s <= 0.0) {
                visit(row * CELLS + column);
            }
        }
    }
}

/// Three box blurs in each direction: close to a Gaussian.
fn blur(values: &[f32], radius: usize) -> Vec<f32> {
    let mut out = values.to_vec();
    for _ in 0..3 {
        out = transpose(&blur_rows(&out, radius));
        out = transpose(&blur_rows(&out, radius));
    }
    out
}

/// One box blur of every row.
fn blur_rows(values: &[f32], radius: usize) -> Vec<f32> {
    let mut out = vec![0.0; values.len()];
    let width = (2 * radius + 1) as f32;
    out.par_chunks_mut(CELLS).zip(values.par_chunks(CELLS)).with_min_len(32).for_each(|(to, from)| {
        let mut sum: f32 = from[..radius.min(CELLS)].iter().sum();
        for x in 0..CELLS {
            if x + radius < CELLS {
                sum += from[x + radius];
            }
            to[x] = (sum / width).clamp(0.0, 1.0);
            if x >= radius {
                sum -= from[x - radius];
            }
        }
    });
    out
}

/// Rows become columns.
fn transpose(values: &[f32]) -> Vec<f32> {
    (0..values.len()).map(|at| values[at % CELLS * CELLS + at / CELLS]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plate(y: f32) -> Option<GroundShadow> {
        let corners = [[-5.0, -5.0], [5.0, -5.0], [5.0, 5.0], [-5.0, 5.0]];
        let positions = corners.map(|[x, z]| Vec3::new(x, y, z));
        GroundShadow::cast(&positions, &[[0, 1, 2], [0, 2, 3]], 0.0, Vec3::new(-0.5, 0.8, 0.3).normalize())
    }

    #[test]
    fn it_is_dark_below_and_light_far_away() {
        let shadow = plate(0.0).expect("a plate casts a shadow");
        let down = |x, z| shadow.along(Vec3::new(x, 20.0, z), Vec3::NEG_Y);
        assert!(down(0.0, 0.0) > 0.6);
        assert!(down(5.0, 0.0) < down(2.0, 0.0));
        assert_eq!(down(100.0, 0.0), 0.0);
        assert_eq!(shadow.along(Vec3::new(0.0, 20.0, 0.0), Vec3::Y), 0.0);
    }

    #[test]
    fn contact_is_darker_than_a_raised_plate() {
        let at = |y| plate(y).expect("a shadow").along(Vec3::new(0.0, 50.0, 0.0), Vec3::NEG_Y);
        assert!(at(0.0) > at(8.0) + 0.1, "{} {}", at(0.0), at(8.0));
    }

    #[test]
    fn nothing_casts_nothing() {
        assert!(GroundShadow::cast(&[], &[], 0.0, Vec3::Y).is_none());
        assert!(GroundShadow::cast(&[Vec3::ZERO], &[[0, 0, 0]], 0.0, Vec3::Y).is_none());
    }
}
