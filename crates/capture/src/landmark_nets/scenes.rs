//! Pictures to learn from: people of a cast who are nobody's synthetic actor by number, in random rooms, before cluttered
//! grounds, turned, playing, and what is true of every picture.

use super::layout::{POINTS, points_of};
use crate::actors::{Actor, Cast, CastError, take};
use crate::inverse_rendering::Detected;
use crate::render::Light;
use crate::{Camera, Frame, HeadPose};
use rayon::prelude::*;
use understudy_core::{DVec3, Random, Vec3, arkit};
use understudy_report::raster::visibility::{NOTHING, SAMPLES};

/// How pictures are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SceneSettings {
    /// Side of a picture, pixels.
    pub side: usize,
    /// Pictures of each person.
    pub each: usize,
    /// Whose people: two seeds share none.
    pub seed: u64,
}

impl Default for SceneSettings {
    fn default() -> Self {
        Self { side: 320, each: 24, seed: 1 }
    }
}

/// A picture and what is true of it.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The picture.
    pub frame: Frame,
    /// All [`POINTS`], pixels.
    pub points: Vec<[f32; 2]>,
    /// Of [`arkit::SHAPES`]; NaN where the head model has no such shape.
    pub shapes: Vec<f32>,
}

/// How much more than a helmet's camera is seen.
const WIDER: f64 = 0.7;
/// Where people for training begin: beyond the numbers that anybody types.
const FIRST_PERSON: u64 = 1 << 40;
/// People of one seed.
const PEOPLE: u64 = 1 << 20;
/// Seconds of a take that moments are picked from.
const SECONDS: f64 = 6.0;

/// Draws scenes.
pub struct SceneMaker<'a> {
    cast: &'a Cast,
    settings: SceneSettings,
    names: Vec<String>,
}

impl<'a> SceneMaker<'a> {
    /// With people of a cast.
    pub fn new(cast: &'a Cast, settings: SceneSettings) -> Self {
        Self { cast, settings, names: cast.shape_names() }
    }

    /// All pictures of a person.
    pub fn person(&self, number: u64) -> Result<Vec<Scene>, CastError> {
        let person = FIRST_PERSON + self.settings.seed * PEOPLE + number;
        let actor = self.cast.actor(person, self.settings.side)?;
        let moments = take(&self.names, SECONDS, 30.0, person, false);
        let one = |index: usize| {
            let mut random = Random::stream(person, index as u64);
            let frame = random.below(moments.frames.len());
            let weights: Vec<f32> = match random.unit() < 0.08 {
                true => vec![0.0; self.names.len()],
                false => moments.frames[frame].weights.clone(),
            };
            self.scene(&actor, &weights, &mut random)
        };
        Ok((0..self.settings.each).into_par_iter().filter_map(one).collect())
    }

    /// One picture; nothing where a point lies behind the camera.
    fn scene(&self, actor: &Actor, weights: &[f32], random: &mut Random) -> Option<Scene> {
        let mut shape = actor.head.mesh.positions().to_vec();
        actor.head.pose(weights, None, &mut shape);
        let pivot = shape.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / shape.len().max(1) as f64;
        let turn = DVec3::new(
            f64::from(random.uniform(-0.3, 0.3)),
            f64::from(random.uniform(-0.55, 0.55)),
            f64::from(random.uniform(-0.15, 0.15)),
        ) * random.unit().sqrt();
        let head = HeadPose::rest(pivot).moved(turn, DVec3::ZERO);
        let positions: Vec<Vec3> = shape.iter().map(|p| head.apply(p.as_dvec3()).as_vec3()).collect();
        // Nearer and further, through a longer or shorter lens: faces of another perspective.
        let camera = {
            let near = 0.75 + 0.9 * random.unit();
            let shift = DVec3::Z * (actor.camera.position.z - shape_front(&shape)) * (near - 1.0);
            let zoom = WIDER * near;
            Camera {
                position: actor.camera.position + shift,
                focal: actor.camera.focal * zoom,
                ..actor.camera
            }
        };
        let light = Light::room(random);
        let drawn = actor.look.render(&positions, &camera, &light, [0.2; 3]);
        let mut frame = drawn.image.to_frame();
        let seen = |pixel: usize| {
            drawn.visibility.samples[pixel * SAMPLES..][..SAMPLES].iter().any(|s| s.triangle != NOTHING)
        };
        let ground = clutter(frame.width(), frame.height(), random);
        for (pixel, rgb) in frame.rgb_mut().chunks_exact_mut(3).enumerate() {
            if !seen(pixel) {
                rgb.copy_from_slice(&ground.rgb()[3 * pixel..3 * pixel + 3]);
            }
        }
        let points = points_of(&Detected::exact(&actor.head.marks, &positions, &camera))?;
        debug_assert_eq!(points.len(), POINTS);
        Some(Scene { frame, points, shapes: known_shapes(&self.names, weights) })
    }
}

fn shape_front(shape: &[Vec3]) -> f64 {
    f64::from(shape.iter().map(|p| p.z).fold(f32::MIN, f32::max))
}

/// Weights of ARKit's shapes, NaN where there is none, from those of a model that may have them in halves.
pub fn known_shapes(names: &[String], weights: &[f32]) -> Vec<f32> {
    let mut out = vec![f32::NAN; arkit::SHAPES.len()];
    for (name, weight) in names.iter().zip(weights) {
        let shape = arkit::canonical(name).or_else(|| arkit::half_of(name).map(|(shape, _)| shape));
        if let Some(place) = shape.and_then(|shape| arkit::SHAPES.iter().position(|other| *other == shape)) {
            out[place] = out[place].max(*weight);
        }
    }
    out
}

/// A ground of gradients, blots and lines, or one colour.
pub(super) fn clutter(width: usize, height: usize, random: &mut Random) -> Frame {
    let mut frame = Frame::black(width, height);
    let colour = |random: &mut Random| [0; 3].map(|_| random.uniform(0.0, 255.0));
    let (a, b) = (colour(random), colour(random));
    let plain = random.unit() < 0.35;
    let black = random.unit() < 0.3;
    let angle = random.uniform(0.0, std::f32::consts::TAU);
    let (sine, cosine) = angle.sin_cos();
    let longest = width.max(height) as f32;
    let blots: Vec<([f32; 2], f32, f32, [f32; 3])> = (0..if plain { 0 } else { 4 + random.below(14) })
        .map(|_| {
            let place = [random.uniform(0.0, width as f32), random.uniform(0.0, height as f32)];
            let size = longest * random.uniform(0.02, 0.3);
            (place, size, random.uniform(0.3, 3.0), colour(random))
        })
        .collect();
    for (index, rgb) in frame.rgb_mut().chunks_exact_mut(3).enumerate() {
        let (x, y) = ((index % width) as f32, (index / width) as f32);
        let share = (0.5 + (cosine * (x - 0.5 * width as f32) + sine * (y - 0.5 * height as f32)) / longest)
            .clamp(0.0, 1.0);
        let mut out = [0, 1, 2].map(|c| match (black && plain, plain) {
            (true, _) => 0.0,
            (_, true) => a[c],
            _ => a[c] + share * (b[c] - a[c]),
        });
        for (place, size, form, colour) in &blots {
            // From a round blot to a box.
            let (dx, dy) = (((x - place[0]) / size).abs(), ((y - place[1]) / (size * form)).abs());
            if dx.max(dy) < 1.0 && (*form > 1.2 || dx * dx + dy * dy < 1.0) {
                out = *colour;
            }
        }
        (0..3).for_each(|c| rgb[c] = out[c] as u8);
    }
    frame
}
