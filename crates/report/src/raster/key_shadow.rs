//! What the key light sees: a depth map along its direction, so that a nose or an arm casts a shadow
//! on the character itself. The softness comes from several looks at the map, smoothed later by
//! [`super::openness`].

use rayon::prelude::*;
use understudy_core::Vec3;

/// Cells along each side of the map.
const CELLS: usize = 512;

/// Rows that one task fills.
const BAND: usize = 32;

/// How far along the light, per cell, the nearest surface is.
pub(super) struct KeyShadow {
    across: Vec3,
    along: Vec3,
    key: Vec3,
    low: [f32; 2],
    cell: f32,
    depth: Vec<f32>,
}

impl KeyShadow {
    /// The map of triangles lit from the unit direction `key`; `None` without any.
    pub fn cast(positions: &[Vec3], triangles: &[[u32; 3]], key: Vec3) -> Option<Self> {
        let (across, along) = key.any_orthonormal_pair();
        let places: Vec<[f32; 3]> =
            positions.iter().map(|p| [p.dot(across), p.dot(along), p.dot(key)]).collect();
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for &corner in triangles.iter().flatten() {
            let point = places[corner as usize];
            for axis in 0..2 {
                low[axis] = low[axis].min(point[axis]);
                high[axis] = high[axis].max(point[axis]);
            }
        }
        let span = (high[0] - low[0]).max(high[1] - low[1]);
        if !(span > 0.0 && span.is_finite()) {
            return None;
        }
        let cell = span / (CELLS - 4) as f32;
        let origin = [low[0] - 2.0 * cell, low[1] - 2.0 * cell];
        let inverse = 1.0 / cell;
        let flat: Vec<[f32; 3]> = places
            .iter()
            .map(|[x, y, z]| [(x - origin[0]) * inverse, (y - origin[1]) * inverse, *z])
            .collect();
        let mut bands = vec![Vec::new(); CELLS / BAND];
        for (index, triangle) in (0u32..).zip(triangles) {
            let rows = triangle.map(|corner| (flat[corner as usize][1] as usize).min(CELLS - 1) / BAND);
            let first = rows[0].min(rows[1]).min(rows[2]);
            for band in &mut bands[first..=rows[0].max(rows[1]).max(rows[2])] {
                band.push(index);
            }
        }
        let mut depth = vec![f32::NEG_INFINITY; CELLS * CELLS];
        depth.par_chunks_mut(CELLS * BAND).zip(&bands).enumerate().for_each(|(band, (chunk, members))| {
            for &index in members {
                fill(triangles[index as usize].map(|corner| flat[corner as usize]), band * BAND, chunk);
            }
        });
        Some(Self { across, along, key, low: origin, cell, depth })
    }

    /// The unit direction to the light.
    pub fn key(&self) -> Vec3 {
        self.key
    }

    /// The share of `offsets` (two steps in cm across the light, and their length) from which the key light
    /// is seen at a point.
    pub fn visible(&self, point: Vec3, offsets: impl Iterator<Item = [f32; 3]>) -> f32 {
        let (x, y) = (point.dot(self.across) - self.low[0], point.dot(self.along) - self.low[1]);
        let (z, inverse) = (point.dot(self.key), 1.0 / self.cell);
        let (mut seen, mut count) = (0.0f32, 0.0f32);
        for [dx, dy, length] in offsets {
            let (column, row) = ((x + dx) * inverse, (y + dy) * inverse);
            // A wider look meets the surface's own slope further away.
            let slack = self.cell + 0.6 * length;
            let inside = column >= 0.0 && row >= 0.0 && column < CELLS as f32 && row < CELLS as f32;
            let blocked = inside && self.depth[row as usize * CELLS + column as usize] > z + slack;
            seen += if blocked { 0.0 } else { 1.0 };
            count += 1.0;
        }
        if count > 0.0 { seen / count } else { 1.0 }
    }
}

/// Raises the cells of one band that a triangle covers to its depth.
fn fill([a, b, c]: [[f32; 3]; 3], top: usize, band: &mut [f32]) {
    let area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if area == 0.0 || !area.is_finite() {
        return;
    }
    let rows = band.len() / CELLS;
    let least = |axis: usize| a[axis].min(b[axis]).min(c[axis]);
    let most = |axis: usize| a[axis].max(b[axis]).max(c[axis]);
    // A cell is covered when its centre is; adding a half and cutting finds those in the range.
    let inverse = 1.0 / area;
    for row in ((least(1) + 0.5) as usize).max(top)..((most(1) + 0.5) as usize).min(top + rows) {
        let y = row as f32 + 0.5;
        for column in (least(0) + 0.5) as usize..((most(0) + 0.5) as usize).min(CELLS) {
            let x = column as f32 + 0.5;
            let s = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) * inverse;
            let t = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) * inverse;
            if s >= 0.0 && t >= 0.0 && s + t <= 1.0 {
                let depth = a[2] + s * (b[2] - a[2]) + t * (c[2] - a[2]);
                let cell = &mut band[(row - top) * CELLS + column];
                *cell = cell.max(depth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plate_hides_what_is_below_it() {
        let positions = [[-9.0, -9.0], [9.0, -9.0], [0.0, 9.0]].map(|[x, z]| Vec3::new(x, 5.0, z));
        let shadow = KeyShadow::cast(&positions, &[[0, 1, 2]], Vec3::Y).expect("a plate");
        let look = |point| shadow.visible(point, [[0.0, 0.0, 0.0], [0.1, 0.0, 0.1]].into_iter());
        assert_eq!(look(Vec3::ZERO), 0.0);
        assert_eq!(look(Vec3::new(0.0, 5.0, 0.0)), 1.0, "a plate does not shadow itself");
        assert_eq!(look(Vec3::new(0.0, 8.0, 0.0)), 1.0);
        assert_eq!(look(Vec3::new(100.0, 0.0, 0.0)), 1.0);
    }

    #[test]
    fn nothing_casts_nothing() {
        assert!(KeyShadow::cast(&[], &[], Vec3::Y).is_none());
        assert!(KeyShadow::cast(&[Vec3::ONE], &[[0, 0, 0]], Vec3::Y).is_none());
    }
}
