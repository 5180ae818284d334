//! Which triangle is seen at every sample of every pixel. Homogeneous edge functions (Olano and
//! Greer 1997) need no clipping at the eye; bands of rows are filled independently, so the result is
//! the same whatever the number of threads.

use rayon::prelude::*;
use understudy_core::Vec3;

/// Samples a pixel.
pub const SAMPLES: usize = 4;

/// Where the samples lie in a pixel: a rotated grid, so that near-horizontal and near-vertical edges
/// both get four steps.
pub const SAMPLE_PLACES: [(f32, f32); SAMPLES] =
    [(0.375, 0.125), (0.875, 0.375), (0.125, 0.625), (0.625, 0.875)];

/// The lowest and highest coordinate of a sample in its pixel.
const FIRST_PLACE: f64 = 0.125;
const LAST_PLACE: f64 = 0.875;

/// The value of [`Sample::triangle`] where nothing is seen.
pub const NOTHING: u32 = u32::MAX;

/// Rows of pixels that one task fills.
const BAND: usize = 16;

/// The nearest triangle at one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// One over the depth along the line of sight; larger is nearer, 0 is nothing.
    pub inverse_depth: f32,
    /// Index into the triangles, or [`NOTHING`].
    pub triangle: u32,
}

/// A triangle ready to be filled: three edge functions `a x + b y + c` over pixels, all positive
/// inside, whose shares of their sum are the perspective-correct barycentric coordinates.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    edges: [[f64; 3]; 3],
    inverse_depth: [f64; 3],
    low: [u32; 2],
    high: [u32; 2],
}

impl Setup {
    /// `None` when the triangle is edge-on, behind the eye or outside the picture.
    fn new(corners: [Vec3; 3], width: usize, height: usize, scale: [f64; 2]) -> Option<Self> {
        // Homogeneous pixel coordinates: pixel = (x, y) / w with w the depth.
        let points = corners.map(|c| {
            let w = f64::from(c.z);
            let x = f64::from(c.x) * scale[0] + 0.5 * width as f64 * w;
            let y = -f64::from(c.y) * scale[1] + 0.5 * height as f64 * w;
            [x, y, w]
        });
        if points.iter().all(|p| p[2] <= 0.0) {
            return None;
        }
        let mut edges =
            [cross(points[1], points[2]), cross(points[2], points[0]), cross(points[0], points[1])];
        let determinant: f64 = (0..3).map(|i| points[0][i] * edges[0][i]).sum();
        if determinant == 0.0 || !determinant.is_finite() {
            return None;
        }
        if determinant < 0.0 {
            edges.iter_mut().flatten().for_each(|value| *value = -*value);
        }
        let inverse = 1.0 / determinant.abs();
        let inverse_depth = std::array::from_fn(|i| (edges[0][i] + edges[1][i] + edges[2][i]) * inverse);

        let (mut low, mut high) = ([0.0, 0.0], [width as f64, height as f64]);
        // Only a triangle wholly before the eye has a bounded outline.
        if points.iter().all(|p| p[2] > 1e-6) {
            for axis in 0..2 {
                let places = points.map(|p| p[axis] / p[2]);
                low[axis] = places.iter().copied().fold(f64::INFINITY, f64::min).max(0.0);
                high[axis] = places.iter().copied().fold(f64::NEG_INFINITY, f64::max).min(high[axis]);
            }
        }
        if low[0] >= high[0] || low[1] >= high[1] {
            return None;
        }
        // Only pixels of which some sample may be covered.
        let reach = |value: f64| (value + 1.0 - FIRST_PLACE) as u32;
        Some(Self {
            edges,
            inverse_depth,
            low: low.map(|value| (value + 1.0 - LAST_PLACE) as u32),
            high: [reach(high[0]).min(width as u32), reach(high[1]).min(height as u32)],
        })
    }

    /// Perspective-correct barycentric coordinates at a place of the picture, brought into the triangle.
    pub fn barycentric(&self, x: f32, y: f32) -> [f32; 3] {
        let (x, y) = (f64::from(x), f64::from(y));
        let raw = self.edges.map(|[a, b, c]| (a * x + (b * y + c)).max(0.0));
        let sum: f64 = raw.iter().sum();
        if sum > 0.0 { raw.map(|value| (value / sum) as f32) } else { [1.0 / 3.0; 3] }
    }

    /// Distances in pixels to the three edges' lines, each opposite a corner.
    pub fn edge_distances(&self, x: f32, y: f32) -> [f32; 3] {
        let (x, y) = (f64::from(x), f64::from(y));
        self.edges.map(|[a, b, c]| ((a * x + (b * y + c)) / a.hypot(b).max(f64::MIN_POSITIVE)) as f32)
    }

    /// Fills the rows `top..top + rows` of a band.
    fn fill(&self, triangle: u32, top: usize, width: usize, band: &mut [Sample]) {
        let rows = band.len() / (width * SAMPLES);
        let first = (self.low[1] as usize).max(top);
        let last = (self.high[1] as usize).min(top + rows);
        let shift = |[a, b, _]: [f64; 3]| SAMPLE_PLACES.map(|(x, y)| a * f64::from(x) + b * f64::from(y));
        let [shift0, shift1, shift2] = self.edges.map(shift);
        let depth_shift = shift(self.inverse_depth).map(|value| value as f32);
        for row in first..last {
            let line = &mut band[(row - top) * width * SAMPLES..][..width * SAMPLES];
            let y = row as f64;
            // Every operation is odd in the edge's sign, so a shared edge is exactly opposite in both
            // triangles: no sample falls between them.
            let [e0, e1, e2] = self.edges.map(|[a, b, c]| (a, b * y + c));
            let (depth_a, depth_b) =
                (self.inverse_depth[0], self.inverse_depth[1] * y + self.inverse_depth[2]);
            for column in self.low[0] as usize..self.high[0] as usize {
                let x = column as f64;
                let (at0, at1, at2) = (e0.0 * x + e0.1, e1.0 * x + e1.1, e2.0 * x + e2.1);
                let inside: [f64; SAMPLES] = std::array::from_fn(|place| {
                    smaller(smaller(at0 + shift0[place], at1 + shift1[place]), at2 + shift2[place])
                });
                if inside.iter().all(|value| *value < 0.0) {
                    continue;
                }
                let depth = (depth_a * x + depth_b) as f32;
                let samples = &mut line[column * SAMPLES..][..SAMPLES];
                for (place, sample) in samples.iter_mut().enumerate() {
                    let inverse_depth = depth + depth_shift[place];
                    if inside[place] >= 0.0 && inverse_depth > sample.inverse_depth {
                        *sample = Sample { inverse_depth, triangle };
                    }
                }
            }
        }
    }
}

/// The smaller of two numbers, in the form that compiles to one instruction.
fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The picture's samples and the triangles behind them.
pub struct Visibility {
    /// `[height][width][SAMPLES]`.
    pub samples: Vec<Sample>,
    /// `[T]`, `None` for a triangle that cannot be seen.
    pub setups: Vec<Option<Setup>>,
}

impl Visibility {
    /// Finds the nearest triangle everywhere. `eye` are the corners in camera space (x right, y up, z depth); `scale` the
    /// pixels across and down of one unit at depth one, about the middle of the picture. Every index in `triangles` must
    /// be in range and its corners finite.
    pub fn compute(
        eye: &[Vec3],
        triangles: &[[u32; 3]],
        scale: [f64; 2],
        width: usize,
        height: usize,
    ) -> Self {
        let setups: Vec<Option<Setup>> = triangles
            .par_iter()
            .with_min_len(1024)
            .map(|t| Setup::new(t.map(|corner| eye[corner as usize]), width, height, scale))
            .collect();
        let mut bands = vec![Vec::new(); height.div_ceil(BAND)];
        for (index, setup) in (0u32..).zip(&setups) {
            if let Some(setup) = setup {
                let rows = setup.low[1] as usize..setup.high[1] as usize;
                for band in &mut bands[rows.start / BAND..rows.end.div_ceil(BAND)] {
                    band.push(index);
                }
            }
        }
        let empty = Sample { inverse_depth: 0.0, triangle: NOTHING };
        let mut samples = vec![empty; width * height * SAMPLES];
        samples.par_chunks_mut(width * SAMPLES * BAND).zip(&bands).enumerate().for_each(
            |(band, (chunk, members))| {
                for &index in members {
                    if let Some(setup) = &setups[index as usize] {
                        setup.fill(index, band * BAND, width, chunk);
                    }
                }
            },
        );
        Self { samples, setups }
    }
}

/// The cross product in the order that makes `cross(a, b) == -cross(b, a)` to the last bit.
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
