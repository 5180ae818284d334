//! A take as its camera sees it: pictures with a sensor's noise, landmarks as a detector of some error would give them, and the
//! exact motion from frame to frame.

use super::{Actor, Take};
use crate::inverse_rendering::Detected;
use crate::render::FlowField;
use crate::{Camera, Frame, HeadPose, Image};
use understudy_core::{DVec3, Random, Vec3};
use understudy_report::raster::visibility::Visibility;

/// What is wrong with a camera and a detector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Spread of the sensor's noise in 8-bit sRGB values, over 255.
    pub picture: f32,
    /// Spread of landmarks, pixels in a picture of 512 rows, in x and in y.
    pub marks: f64,
    /// Of both.
    pub seed: u64,
}

impl Default for Noise {
    fn default() -> Self {
        Self { picture: 2.0 / 255.0, marks: 1.0, seed: 1 }
    }
}

/// An actor who plays a take.
#[derive(Clone)]
pub struct Performance {
    /// Who.
    pub actor: Actor,
    /// What.
    pub take: Take,
    /// How well it is seen.
    pub noise: Noise,
}

/// A frame of it.
pub struct Played {
    /// As the camera gives it.
    pub frame: Frame,
    /// Vertices as the head stands, before it turns, cm.
    pub shape: Vec<Vec3>,
    /// Vertices before the camera, cm.
    pub positions: Vec<Vec3>,
    /// The camera.
    pub camera: Camera,
    /// How the head stands.
    pub head: HeadPose,
    /// What a detector finds.
    pub detected: Detected,
    /// What is seen where.
    pub visibility: Visibility,
}

impl Performance {
    /// Number of frames.
    pub fn len(&self) -> usize {
        self.take.frames.len()
    }

    /// Whether nothing is played.
    pub fn is_empty(&self) -> bool {
        self.take.frames.is_empty()
    }

    /// About what a head turns: the middle of its vertices.
    pub fn pivot(&self) -> DVec3 {
        let rest = self.actor.head.mesh.positions();
        rest.iter().map(|p| p.as_dvec3()).sum::<DVec3>() / rest.len().max(1) as f64
    }

    /// Vertices of a frame before the head turns, cm.
    pub fn shape(&self, index: usize) -> Vec<Vec3> {
        let mut shape = self.actor.head.mesh.positions().to_vec();
        self.actor.head.pose(&self.take.frames[index].weights, None, &mut shape);
        shape
    }

    /// Draws a frame. Frames do not depend on each other: any may be drawn at any time, always the same.
    pub fn play(&self, index: usize) -> Played {
        let now = &self.take.frames[index];
        let camera = now.camera(&self.actor.camera);
        let shape = self.shape(index);
        let head = HeadPose::rest(self.pivot()).moved(now.turn, DVec3::ZERO);
        let positions: Vec<Vec3> = shape.iter().map(|p| head.apply(p.as_dvec3()).as_vec3()).collect();
        let drawn = self.actor.look.render(&positions, &camera, &self.actor.light, [0.0; 3]);
        let mut random = Random::stream(self.noise.seed ^ 0x6e6f_6973, index as u64);
        let mut frame = drawn.image.to_frame();
        if self.noise.picture > 0.0 {
            let spread = f64::from(self.noise.picture) * 255.0;
            for byte in frame.rgb_mut() {
                *byte = (f64::from(*byte) + spread * random.normal()).round().clamp(0.0, 255.0) as u8;
            }
        }
        let spread = self.noise.marks * camera.size[1] as f64 / 512.0;
        let exact = Detected::exact(&self.actor.head.marks, &positions, &camera);
        let detected = exact.shifted(|place| place.map(|value| value + spread * random.normal()));
        Played { frame, shape, positions, camera, head, detected, visibility: drawn.visibility }
    }

    /// Exact landmarks of a frame, without drawing it.
    pub fn marks(&self, index: usize) -> Detected {
        let now = &self.take.frames[index];
        let head = HeadPose::rest(self.pivot()).moved(now.turn, DVec3::ZERO);
        let turned = |p: &Vec3| head.apply(p.as_dvec3()).as_vec3();
        let positions: Vec<Vec3> = self.shape(index).iter().map(turned).collect();
        Detected::exact(&self.actor.head.marks, &positions, &now.camera(&self.actor.camera))
    }

    /// The exact motion from one frame to another.
    pub fn flow(&self, from: &Played, to: &Played) -> FlowField {
        self.actor.look.flow((&from.visibility, &from.camera), (&to.positions, &to.visibility, &to.camera))
    }
}

impl Played {
    /// In linear light.
    pub fn image(&self) -> Image {
        Image::from_frame(&self.frame)
    }
}

/// Points that errors are measured on (6.15): evenly over the front of a face, and its landmarks.
#[derive(Debug, Clone)]
pub struct FacePoints {
    front: Vec<([u32; 3], [f32; 3])>,
    landmarks: Vec<u32>,
}

/// Mean distances of a frame, cm.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FaceError {
    /// Of the points on the front.
    pub front: f64,
    /// Of the 68 landmarks.
    pub landmarks: f64,
}

impl FacePoints {
    /// `count` points on the triangles whose corners are in `region` and that face +Z.
    pub fn new(
        triangles: &[[u32; 3]],
        rest: &[Vec3],
        region: &[bool],
        landmarks: &[u32],
        count: usize,
        seed: u64,
    ) -> Self {
        let at = |vertex: u32| rest[vertex as usize];
        let mut total = 0.0f64;
        let mut reach = Vec::with_capacity(triangles.len());
        for triangle in triangles {
            let [a, b, c] = triangle.map(at);
            let area = (b - a).cross(c - a);
            if area.z > 0.2 * area.length() && triangle.iter().all(|corner| region[*corner as usize]) {
                total += f64::from(area.length());
            }
            reach.push(total);
        }
        let mut random = Random::stream(seed, 0x706f_696e_7473);
        let count = if total > 0.0 { count } else { 0 };
        let one = |_| {
            let wanted = random.unit() * total;
            let triangle = reach.partition_point(|sum| *sum <= wanted).min(reach.len() - 1);
            let (u, v) = (random.unit().sqrt() as f32, random.unit() as f32);
            (triangles[triangle], [1.0 - u, u * (1.0 - v), u * v])
        };
        Self { front: (0..count).map(one).collect(), landmarks: landmarks.to_vec() }
    }

    /// Distances between two shapes of one topology.
    pub fn error(&self, a: &[Vec3], b: &[Vec3]) -> FaceError {
        let place = |positions: &[Vec3], (corners, shares): &([u32; 3], [f32; 3])| -> Vec3 {
            (0..3).map(|k| positions[corners[k] as usize] * shares[k]).sum()
        };
        let mean = |sum: f32, count: usize| f64::from(sum) / count.max(1) as f64;
        let front: f32 = self.front.iter().map(|point| (place(a, point) - place(b, point)).length()).sum();
        let landmarks: f32 = self.landmarks.iter().map(|v| (a[*v as usize] - b[*v as usize]).length()).sum();
        FaceError { front: mean(front, self.front.len()), landmarks: mean(landmarks, self.landmarks.len()) }
    }
}
