//! A software rasteriser: perspective, anti-aliased, smooth shading with soft shadows, no GPU.
//!
//! ```
//! use understudy_core::{Face, Vec3};
//! use understudy_report::raster::{Actor, Camera, RenderSettings, bounds, render};
//! let positions = [Vec3::ZERO, Vec3::X, Vec3::Y];
//! let (low, high) = bounds(&positions).expect("finite points");
//! let camera = Camera::framing(low, high, 30.0, 10.0, 1.0); // yaw, pitch in degrees; width / height
//! let faces = [Face::triangle(0, 1, 2)];
//! let actor = Actor::new(&faces, &positions); // .colours(&srgb) paints vertices
//! let png = render(&[actor], &camera, &RenderSettings::default()).to_png(); // std::fs::write("a.png", png)
//! # assert!(png.len() > 100);
//! ```
//!
//! Start at [`render`]. Yaw 0 looks at the front (+Z), 90 at the side (from +X). Frames of a clip share
//! one camera when [`bounds`] is taken over all of them. Settings of interest: `width`, `height`,
//! `backdrop` (light, dark or transparent), `ground` (fix its height for a clip), `wireframe`.
//! [`Actor::heat`] paints values by a [`crate::heat::HeatScale`].

mod camera;
mod key_shadow;
mod openness;
mod resolve;
mod shade;
mod shadow;
mod stage;
#[cfg(test)]
mod tests;
mod vertex_openness;
pub mod visibility;

pub use camera::{Camera, bounds};
#[cfg(test)]
pub(crate) use shade::to_linear;
pub(crate) use shade::to_srgb;
pub use stage::{Actor, CLAY, Heat};
pub use vertex_openness::vertex_openness;

use crate::Picture;
use key_shadow::KeyShadow;
use openness::{Reach, Visible, openness};
use rayon::prelude::*;
use resolve::{Findings, Scene};
use shade::Studio;
use shadow::GroundShadow;
use stage::Stage;
use understudy_core::Vec3;
use visibility::Visibility;

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
    /// Darkens creases and lets parts cast shadows on each other.
    pub occlusion: bool,
    /// Draws the edges of the faces on top.
    pub wireframe: bool,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self {
            width: 512,
            height: 512,
            backdrop: Backdrop::Light,
            ground: Ground::Auto,
            occlusion: true,
            wireframe: false,
        }
    }
}

/// Draws actors. The same input gives the same bytes whatever the number of threads.
pub fn render(actors: &[Actor], camera: &Camera, settings: &RenderSettings) -> Picture {
    let mut picture = Picture::new(settings.width, settings.height, [0; 4]);
    let (width, height) = (picture.width(), picture.height());
    let stage = Stage::new(actors);
    let eye: Vec<Vec3> = stage.positions.iter().map(|p| camera.to_camera(*p)).collect();
    let visibility = Visibility::compute(&eye, &stage.triangles, camera.pixels(width, height), width, height);
    let studio = Studio::new(camera);
    let bounds = stage.bounds();
    let size = bounds.map_or(1.0, |(low, high)| (high - low).length());
    let floor = match settings.ground {
        Ground::Auto => bounds.map(|(low, _)| low.y),
        Ground::At(level) => level.is_finite().then_some(level),
        Ground::None => None,
    };
    let shadow =
        floor.and_then(|level| GroundShadow::cast(&stage.positions, &stage.triangles, level, studio.key));
    let scene = Scene {
        stage: &stage,
        visibility: &visibility,
        studio: &studio,
        shadow: shadow.as_ref(),
        camera,
        width,
        height,
        backdrop: settings.backdrop,
        wireframe: settings.wireframe,
        like_depth: 0.0125 * size,
    };
    let visible: Vec<Visible> = (0..width * height)
        .into_par_iter()
        .with_min_len(width)
        .map(|at| scene.visible(at % width, at / width))
        .collect();
    let open = if settings.occlusion && bounds.is_some() {
        scene_openness(&scene, &visible, size)
    } else {
        vec![[1.0; 2]; width * height]
    };
    let findings = Findings { visible, open };
    picture.pixels_mut().par_chunks_mut(width * 4).enumerate().for_each(|(row, line)| {
        for (column, pixel) in line.chunks_exact_mut(4).enumerate() {
            pixel.copy_from_slice(&scene.pixel(column, row, &findings));
        }
    });
    picture
}

/// Occlusion and self-shadow of every pixel for a scene of a size in cm.
fn scene_openness(scene: &Scene, visible: &[Visible], size: f32) -> Vec<[f32; 2]> {
    let key_shadow = KeyShadow::cast(&scene.stage.positions, &scene.stage.triangles, scene.studio.key);
    let reach = Reach {
        occlusion: 0.07 * size,
        penumbra: 0.006 * size,
        pixels: scene.height as f32 / (2.0 * scene.camera.half_height),
    };
    openness(visible, scene.width, &reach, scene.like_depth, key_shadow.as_ref())
}
