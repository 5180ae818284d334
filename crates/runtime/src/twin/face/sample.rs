//! Bilinear sampling of maps at vertices, and back. Pixel `(i, j)` stands at coordinates `(i, j)`: a vertex
//! at the edge of its map sees the pixels of that edge.

use super::map_decoder::map_stride;
use crate::container::PLACE_STEPS;
use understudy_core::{Vec2, Vec3};

/// The nearest place that a file keeps in 16 bits: places are rounded when they are chosen, so that nothing changes when
/// they are stored.
pub fn stepped(place: Vec2) -> Vec2 {
    (place * PLACE_STEPS).round() / PLACE_STEPS
}

/// Where one vertex samples: the pixel at its lower corner and the weights of the four around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BilinearSample {
    /// Number of the lower corner in the map, `row · side + column`.
    pub corner: u32,
    /// Of `(column, row)`, `(column + 1, row)`, `(column, row + 1)`, `(column + 1, row + 1)`.
    pub weights: [f32; 4],
}

impl BilinearSample {
    /// At coordinates in pixels, clamped into a map of `side` ≥ 2.
    pub fn at(coordinates: Vec2, side: usize) -> Self {
        let place = coordinates.clamp(Vec2::ZERO, Vec2::splat((side - 1) as f32));
        let corner = place.floor().min(Vec2::splat((side - 2) as f32));
        let (x, y) = (place.x - corner.x, place.y - corner.y);
        Self {
            corner: corner.y as u32 * side as u32 + corner.x as u32,
            weights: [(1.0 - x) * (1.0 - y), x * (1.0 - y), (1.0 - x) * y, x * y],
        }
    }

    /// The four pixels.
    pub fn pixels(&self, side: usize) -> [usize; 4] {
        let corner = self.corner as usize;
        [corner, corner + 1, corner + side, corner + side + 1]
    }
}

/// Which pixels of a map some vertex sees.
pub fn sampled_pixels(samples: &[BilinearSample], side: usize) -> Vec<bool> {
    let mut out = vec![false; side * side];
    for sample in samples {
        for (pixel, weight) in sample.pixels(side).into_iter().zip(sample.weights) {
            out[pixel] |= weight != 0.0;
        }
    }
    out
}

/// Samples three channels from `first` on.
pub fn gather(
    map: &[f32],
    side: usize,
    outputs: usize,
    first: usize,
    samples: &[BilinearSample],
    out: &mut [Vec3],
) {
    let wide = map_stride(outputs);
    for (slot, sample) in out.iter_mut().zip(samples) {
        let mut sum = Vec3::ZERO;
        for (pixel, weight) in sample.pixels(side).into_iter().zip(sample.weights) {
            let start = pixel * wide + first;
            sum += Vec3::new(map[start], map[start + 1], map[start + 2]) * weight;
        }
        *slot = sum;
    }
}

/// The reverse of [`gather`]: adds derivatives by the samples to derivatives by the map.
pub fn scatter(
    by_samples: &[Vec3],
    side: usize,
    outputs: usize,
    first: usize,
    samples: &[BilinearSample],
    by_map: &mut [f32],
) {
    let wide = map_stride(outputs);
    for (slope, sample) in by_samples.iter().zip(samples) {
        for (pixel, weight) in sample.pixels(side).into_iter().zip(sample.weights) {
            let start = pixel * wide + first;
            by_map[start] += slope.x * weight;
            by_map[start + 1] += slope.y * weight;
            by_map[start + 2] += slope.z * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_map_is_read_exactly_and_edges_hold() {
        let side = 5;
        let mut map = vec![0.0; side * side * 4];
        for (index, pixel) in map.chunks_exact_mut(4).enumerate() {
            let (x, y) = ((index % side) as f32, (index / side) as f32);
            pixel[..3].copy_from_slice(&[x, y, 2.0 * x - y]);
        }
        for (at, want) in [
            (Vec2::new(0.0, 0.0), Vec3::ZERO),
            (Vec2::new(4.0, 4.0), Vec3::new(4.0, 4.0, 4.0)),
            (Vec2::new(1.25, 3.5), Vec3::new(1.25, 3.5, -1.0)),
            (Vec2::new(-3.0, 9.0), Vec3::new(0.0, 4.0, -4.0)),
        ] {
            let mut out = [Vec3::ZERO];
            gather(&map, side, 3, 0, &[BilinearSample::at(at, side)], &mut out);
            assert!(out[0].distance(want) < 1e-6, "{at}: {}", out[0]);
        }
    }

    #[test]
    fn only_pixels_with_weight_are_seen() {
        let samples =
            [BilinearSample::at(Vec2::new(2.0, 1.0), 4), BilinearSample::at(Vec2::new(0.5, 3.0), 4)];
        let seen = sampled_pixels(&samples, 4);
        assert_eq!(seen.iter().filter(|s| **s).count(), 3);
        assert!(seen[4 + 2] && seen[12] && seen[13]);
    }
}
