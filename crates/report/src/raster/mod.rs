//! A software rasteriser: perspective, anti-aliased, smooth shading, soft ground shadow, no GPU.
//!
//! ```
//! use understudy_core::{Face, Vec3};
//! use understudy_report::raster::{Actor, Camera, RenderSettings, bounds, render};
//! let positions = [Vec3::ZERO, Vec3::X, Vec3::Y];
//! let (low, high) = bounds(&positions).expect("finite points");
//! let camera = Camera::framing(low, high, 30.0, 10.0, 1.0); // yaw, pitch in degrees; width / height
//! let actor = Actor::new(&[Face::triangle(0, 1, 2)], &positions); // .colours(&srgb) paints vertices
//! let png = render(&[actor], &camera, &RenderSettings::default()).to_png(); // std::fs::write("a.png", png)
//! # assert!(png.len() > 100);
//! ```
//!
//! Start at [`render`]. Yaw 0 looks at the front (+Z), 90 at the side (from +X). Frames of a clip share
//! one camera when [`bounds`] is taken over all of them. Settings of interest: `width`, `height`,
//! `backdrop` (light, dark or transparent), `wireframe`.

mod camera;
mod shade;
mod shadow;
mod visibility;

pub use camera::{Camera, bounds};

use crate::Picture;
use rayon::prelude::*;
use shade::{Studio, Surface, roll_off, to_linear, to_srgb};
use shadow::GroundShadow;
use understudy_core::{Face, Vec3, normals};
use visibility::{NOTHING, SAMPLE_PLACES, SAMPLES, Visibility};

/// sRGB colour of an actor without colours: warm clay.
pub const CLAY: Vec3 = Vec3::new(0.80, 0.75, 0.70);

/// A mesh in a pose. Faces that name a missing vertex or a position that is not finite are left out.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// Triangles and quads; both sides are seen.
    pub faces: &'a [Face],
    /// Posed vertices, cm.
    pub positions: &'a [Vec3],
    /// sRGB in 0..=1 a vertex; vertices beyond the end are clay.
    pub colours: Option<&'a [Vec3]>,
    /// 0 is chalk, 1 is polished.
    pub shine: f32,
}

impl<'a> Actor<'a> {
    /// A clay figure.
    pub fn new(faces: &'a [Face], positions: &'a [Vec3]) -> Self {
        Self { faces, positions, colours: None, shine: 0.25 }
    }

    /// Paints every vertex, sRGB in 0..=1.
    pub fn colours(mut self, colours: &'a [Vec3]) -> Self {
        self.colours = Some(colours);
        self
    }

    /// Sets the shine: 0 is chalk, 1 is polished.
    pub fn shine(mut self, shine: f32) -> Self {
        self.shine = shine;
        self
    }
}

/// What is behind the actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backdrop {
    /// A pale grey gradient.
    #[default]
    Light,
    /// A charcoal gradient.
    Dark,
    /// Nothing: alpha 0 (the ground shadow is a translucent black).
    Transparent,
}

/// Where the floor is that receives the shadow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Ground {
    /// At the lowest point of the actors.
    #[default]
    Auto,
    /// At a height, cm; the same for all frames of a clip.
    At(f32),
    /// No floor and no shadow.
    None,
}

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RenderSettings {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// What is behind.
    pub backdrop: Backdrop,
    /// Where the shadow falls.
    pub ground: Ground,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self { width: 512, height: 512, backdrop: Backdrop::Light, ground: Ground::Auto }
    }
}

/// All actors in one list of checked triangles.
#[derive(Default)]
struct Stage {
    positions: Vec<Vec3>,
    normals: Vec<Vec3>,
    colours: Vec<Vec3>,
    shine: Vec<f32>,
    triangles: Vec<[u32; 3]>,
}

impl Stage {
    /// Checks and joins the actors.
    fn new(actors: &[Actor]) -> Self {
        let mut stage = Self::default();
        for actor in actors {
            let first = stage.positions.len() as u32;
            let good = |corner: &u32| actor.positions.get(*corner as usize).is_some_and(|p| p.is_finite());
            let faces: Vec<Face> =
                actor.faces.iter().filter(|face| face.corners().iter().all(good)).copied().collect();
            stage.positions.extend_from_slice(actor.positions);
            stage.normals.extend(normals::vertex_normals(&faces, actor.positions));
            let colour = |vertex: usize| actor.colours.and_then(|c| c.get(vertex)).copied().unwrap_or(CLAY);
            stage.colours.extend((0..actor.positions.len()).map(|vertex| to_linear(colour(vertex))));
            stage.shine.resize(stage.positions.len(), actor.shine.clamp(0.0, 1.0));
            let triangles = faces.iter().flat_map(Face::triangles);
            stage.triangles.extend(triangles.map(|t| t.map(|corner| corner + first)));
        }
        stage
    }
}

/// Draws actors. The same input gives the same bytes whatever the number of threads.
pub fn render(actors: &[Actor], camera: &Camera, settings: &RenderSettings) -> Picture {
    let mut picture = Picture::new(settings.width, settings.height, [0; 4]);
    let (width, height) = (picture.width(), picture.height());
    let stage = Stage::new(actors);
    let eye: Vec<Vec3> = stage.positions.iter().map(|p| camera.to_camera(*p)).collect();
    let visibility = Visibility::compute(&eye, &stage.triangles, camera, width, height);
    let studio = Studio::new(camera);
    let lowest = || stage.triangles.iter().flatten().map(|c| stage.positions[*c as usize].y).reduce(f32::min);
    let floor = match settings.ground {
        Ground::Auto => lowest(),
        Ground::At(level) => level.is_finite().then_some(level),
        Ground::None => None,
    };
    let shadow =
        floor.and_then(|level| GroundShadow::cast(&stage.positions, &stage.triangles, level, studio.key));
    let scene = Scene { stage: &stage, visibility: &visibility, studio: &studio, shadow: shadow.as_ref(), camera };
    picture.pixels_mut().par_chunks_mut(width * 4).enumerate().for_each(|(row, line)| {
        for (column, pixel) in line.chunks_exact_mut(4).enumerate() {
            pixel.copy_from_slice(&scene.pixel(column, row, width, height, settings.backdrop));
        }
    });
    picture
}

/// Everything a pixel needs to know.
struct Scene<'a> {
    stage: &'a Stage,
    visibility: &'a Visibility,
    studio: &'a Studio,
    shadow: Option<&'a GroundShadow>,
    camera: &'a Camera,
}

impl Scene<'_> {
    /// Resolves the samples of one pixel.
    fn pixel(&self, column: usize, row: usize, width: usize, height: usize, backdrop: Backdrop) -> [u8; 4] {
        let samples = &self.visibility.samples[(row * width + column) * SAMPLES..][..SAMPLES];
        let mut light = Vec3::ZERO;
        let mut alpha = 0.0;
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
                let (colour, opacity) = self.behind(x / width as f32, y / height as f32, backdrop);
                light += colour * share;
                alpha += opacity * share;
            } else {
                light += self.surface(sample.triangle, x, y) * share;
                alpha += share;
            }
        }
        let straight = if alpha > 0.0 { to_srgb(light / alpha) } else { Vec3::ZERO };
        let [r, g, b] = straight.to_array().map(|v| (v * 255.0 + 0.5) as u8);
        [r, g, b, (alpha * 255.0 + 0.5) as u8]
    }

    /// Linear light of a triangle at a place of the picture.
    fn surface(&self, triangle: u32, x: f32, y: f32) -> Vec3 {
        let corners = self.stage.triangles[triangle as usize];
        let weights = match &self.visibility.setups[triangle as usize] {
            Some(setup) => setup.barycentric(x, y),
            None => [1.0 / 3.0; 3],
        };
        let blend = |table: &[Vec3]| {
            (0..3).map(|i| table[corners[i] as usize] * weights[i]).fold(Vec3::ZERO, |sum, v| sum + v)
        };
        let position = blend(&self.stage.positions);
        let to_eye = (self.camera.position - position).normalize_or_zero();
        let [a, b, c] = corners.map(|corner| self.stage.positions[corner as usize]);
        let flat = (b - a).cross(c - a);
        let facing = if flat.dot(to_eye) < 0.0 { -1.0 } else { 1.0 };
        let normal = (blend(&self.stage.normals) * facing).try_normalize().unwrap_or(to_eye);
        let surface = Surface {
            normal,
            to_eye,
            colour: blend(&self.stage.colours),
            shine: self.stage.shine[corners[0] as usize],
            openness: 1.0,
            key_visible: 1.0,
        };
        roll_off(self.studio.shade(&surface))
    }

    /// Linear light, times its opacity, of the backdrop at a place in 0..=1 of the picture.
    fn behind(&self, x: f32, y: f32, backdrop: Backdrop) -> (Vec3, f32) {
        let ray = self.camera.ray(2.0 * x - 1.0, 1.0 - 2.0 * y);
        let dark = self.shadow.map_or(0.0, |shadow| shadow.along(self.camera.position, ray));
        let (top, bottom, rim) = match backdrop {
            Backdrop::Light => (0.90, 0.72, 0.05),
            Backdrop::Dark => (0.028, 0.012, 0.006),
            Backdrop::Transparent => return (Vec3::ZERO, dark * 0.6),
        };
        let centre = ((x - 0.5).powi(2) + (y - 0.45).powi(2)).min(0.5) * 2.0;
        let level = top + (bottom - top) * y - rim * centre;
        (Vec3::new(0.985, 0.995, 1.015) * level * (1.0 - dark), 1.0)
    }
}
