//! From samples to pixels: every triangle seen in a pixel is shaded once, weighted by the samples it
//! holds, over a backdrop that carries the ground shadow.

use super::openness::Visible;
use super::shade::{Studio, Surface, roll_off, to_srgb_byte};
use super::shadow::GroundShadow;
use super::stage::{FLAT, Stage};
use super::visibility::{NOTHING, SAMPLE_PLACES, SAMPLES, Visibility};
use super::{Backdrop, Camera};
use understudy_core::Vec3;

/// Everything a pixel needs to know.
pub(super) struct Scene<'a> {
    pub stage: &'a Stage,
    pub visibility: &'a Visibility,
    pub studio: &'a Studio,
    pub shadow: Option<&'a GroundShadow>,
    pub camera: &'a Camera,
    pub width: usize,
    pub height: usize,
    pub backdrop: Backdrop,
    pub wireframe: bool,
    /// Depths closer than this belong to one surface, cm.
    pub like_depth: f32,
}

/// What was found out a pixel before shading, `[height][width]`.
pub(super) struct Findings {
    /// The nearest point.
    pub visible: Vec<Visible>,
    /// Its openness to sky and key light.
    pub open: Vec<[f32; 2]>,
}

impl Scene<'_> {
    /// The nearest point that is seen in a pixel.
    pub fn visible(&self, column: usize, row: usize) -> Visible {
        let samples = self.samples(column, row);
        let mut nearest = 0;
        for (place, sample) in samples.iter().enumerate() {
            if sample.inverse_depth > samples[nearest].inverse_depth {
                nearest = place;
            }
        }
        let sample = samples[nearest];
        if sample.triangle == NOTHING {
            return Visible::NOTHING;
        }
        let (x, y) = SAMPLE_PLACES[nearest];
        let weights = self.weights(sample.triangle, column as f32 + x, row as f32 + y);
        let position = self.blend(&self.stage.positions, sample.triangle, weights);
        let to_eye = (self.camera.position - position).normalize_or_zero();
        let normal = self.normal(sample.triangle, weights, to_eye);
        Visible { position, normal, triangle: sample.triangle, depth: 1.0 / sample.inverse_depth }
    }

    /// Resolves the samples of one pixel.
    pub fn pixel(&self, column: usize, row: usize, findings: &Findings) -> [u8; 4] {
        let seen = &findings.visible[row * self.width + column];
        let samples = self.samples(column, row);
        let (mut light, mut alpha) = (Vec3::ZERO, 0.0);
        let first = samples[0].triangle;
        if samples.iter().all(|sample| sample.triangle == first) {
            let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
            (light, alpha) = match first {
                NOTHING => self.behind(x, y),
                triangle => {
                    (self.surface(triangle, x, y, seen, findings.open[row * self.width + column]), 1.0)
                }
            };
        } else {
            for (first, sample) in samples.iter().enumerate() {
                if samples[..first].iter().any(|s| s.triangle == sample.triangle) {
                    continue;
                }
                let (mut x, mut y, mut count) = (0.0, 0.0, 0.0);
                for (place, other) in SAMPLE_PLACES.iter().zip(samples) {
                    if other.triangle == sample.triangle {
                        x += place.0;
                        y += place.1;
                        count += 1.0;
                    }
                }
                let (x, y) = (column as f32 + x / count, row as f32 + y / count);
                let share = count / SAMPLES as f32;
                if sample.triangle == NOTHING {
                    let (colour, opacity) = self.behind(x, y);
                    light += colour * share;
                    alpha += opacity * share;
                } else {
                    let open = self.open_at(column, row, 1.0 / sample.inverse_depth, findings);
                    light += self.surface(sample.triangle, x, y, seen, open) * share;
                    alpha += share;
                }
            }
        }
        let straight = if alpha > 0.0 { light / alpha } else { Vec3::ZERO };
        let [r, g, b] = straight.to_array().map(to_srgb_byte);
        [r, g, b, (alpha * 255.0 + 0.5) as u8]
    }

    /// The openness of the surface at a depth in a pixel. At the outline of a nearer part the pixel's own
    /// value belongs to that part, so a neighbour on the same surface is asked.
    fn open_at(&self, column: usize, row: usize, depth: f32, findings: &Findings) -> [f32; 2] {
        let away = |at: usize| (findings.visible[at].depth - depth).abs();
        let mut best = row * self.width + column;
        if away(best) < self.like_depth {
            return findings.open[best];
        }
        for other_row in row.saturating_sub(1)..(row + 2).min(self.height) {
            for other_column in column.saturating_sub(1)..(column + 2).min(self.width) {
                let at = other_row * self.width + other_column;
                if away(at) < away(best) {
                    best = at;
                }
            }
        }
        findings.open[best]
    }

    /// The samples of a pixel.
    fn samples(&self, column: usize, row: usize) -> &[super::visibility::Sample] {
        &self.visibility.samples[(row * self.width + column) * SAMPLES..][..SAMPLES]
    }

    /// Perspective-correct shares of a triangle's corners.
    fn weights(&self, triangle: u32, x: f32, y: f32) -> [f32; 3] {
        match &self.visibility.setups[triangle as usize] {
            Some(setup) => setup.barycentric(x, y),
            None => [1.0 / 3.0; 3],
        }
    }

    /// A vertex table between the corners of a triangle.
    fn blend(&self, table: &[Vec3], triangle: u32, weights: [f32; 3]) -> Vec3 {
        let [a, b, c] = self.stage.triangles[triangle as usize].map(|corner| table[corner as usize]);
        a * weights[0] + b * weights[1] + c * weights[2]
    }

    /// The smooth normal on the viewer's side.
    fn normal(&self, triangle: u32, weights: [f32; 3], to_eye: Vec3) -> Vec3 {
        let [a, b, c] =
            self.stage.triangles[triangle as usize].map(|corner| self.stage.positions[corner as usize]);
        let facing = if (b - a).cross(c - a).dot(to_eye) < 0.0 { -1.0 } else { 1.0 };
        let smooth = self.blend(&self.stage.normals, triangle, weights) * facing;
        smooth.try_normalize().unwrap_or(to_eye)
    }

    /// Linear light of a triangle at a place of the picture.
    fn surface(&self, triangle: u32, x: f32, y: f32, seen: &Visible, open: [f32; 2]) -> Vec3 {
        let weights = self.weights(triangle, x, y);
        // The nearest triangle's normal is known already, less than a pixel away.
        let known = triangle == seen.triangle;
        let position =
            if known { seen.position } else { self.blend(&self.stage.positions, triangle, weights) };
        let to_eye = (self.camera.position - position).normalize_or_zero();
        let normal = if known { seen.normal } else { self.normal(triangle, weights, to_eye) };
        let corners = self.stage.triangles[triangle as usize];
        let shines = corners.map(|corner| self.stage.shine[corner as usize]);
        let surface = Surface {
            normal,
            to_eye,
            colour: self.blend(&self.stage.colours, triangle, weights),
            shine: shines[0] * weights[0] + shines[1] * weights[1] + shines[2] * weights[2],
            openness: open[0],
            key_visible: open[1],
        };
        let light = if shines[0] == FLAT {
            self.studio.shade_flat(&surface)
        } else {
            roll_off(self.studio.shade(&surface))
        };
        if self.wireframe { light * (1.0 - 0.7 * self.wire(triangle, x, y)) } else { light }
    }

    /// How much of the line along the nearest face edge is at a place, 0..=1; lines are a pixel wide.
    fn wire(&self, triangle: u32, x: f32, y: f32) -> f32 {
        let Some(setup) = &self.visibility.setups[triangle as usize] else { return 0.0 };
        let distances = setup.edge_distances(x, y);
        let drawn = self.stage.edges[triangle as usize];
        let nearest = (0..3).filter(|i| drawn >> i & 1 == 1).map(|i| distances[i]).fold(f32::MAX, f32::min);
        (1.1 - nearest).clamp(0.0, 1.0)
    }

    /// Linear light, times its opacity, of the backdrop at a place of the picture in pixels.
    fn behind(&self, x: f32, y: f32) -> (Vec3, f32) {
        let (x, y) = (x / self.width as f32, y / self.height as f32);
        let dark = match self.shadow {
            Some(shadow) => {
                shadow.along(self.camera.position, self.camera.sight(2.0 * x - 1.0, 1.0 - 2.0 * y))
            }
            None => 0.0,
        };
        let (top, bottom, vignette, shade) = match self.backdrop {
            Backdrop::Light => (0.84, 0.70, 0.06, 1.0),
            Backdrop::Dark => (0.050, 0.028, 0.014, 1.0),
            Backdrop::Transparent => return (Vec3::ZERO, dark * 0.6),
        };
        let centre = ((x - 0.5).powi(2) + (y - 0.45).powi(2)).min(0.5) * 2.0;
        let level = top + (bottom - top) * y - vignette * centre;
        (Vec3::new(0.985, 0.997, 1.018) * (level * (1.0 - dark * shade)), 1.0)
    }
}
