//! Pictures of a face in the rendered style: albedo × openness × light by spherical harmonics (6.2), in linear light, through
//! a perspective camera, with the exact motion of every pixel from one frame to the next. Same input, same bytes.

mod light;
mod texture;

pub use light::{Light, TERMS};
pub use texture::Texture;

use crate::{Camera, Image};
use rayon::prelude::*;
use understudy_core::normals::vertex_normals;
use understudy_core::{Face, Vec2, Vec3};
use understudy_report::raster::visibility::{NOTHING, SAMPLE_PLACES, SAMPLES, Setup, Visibility};

/// What stays while a face moves: which triangles are drawn, and their paint.
#[derive(Debug, Clone)]
pub struct Look {
    /// All faces of the mesh: normals are theirs, drawn or not.
    pub faces: Vec<Face>,
    /// What is drawn.
    pub triangles: Vec<[u32; 3]>,
    /// For every triangle its texture and the UVs of its corners; `None` paints it by `colours`.
    pub painted: Vec<Option<(u32, [Vec2; 3])>>,
    /// Maps of albedo.
    pub textures: Vec<Texture>,
    /// Albedo of every vertex in linear light, `[V]`, where no texture is.
    pub colours: Vec<[f32; 3]>,
    /// Ambient occlusion of every vertex, `[V]`: the share of an even sky that it sees.
    pub openness: Vec<f32>,
}

/// A picture and what is seen where.
pub struct Rendered {
    /// In linear light.
    pub image: Image,
    /// The samples behind it.
    pub visibility: Visibility,
}

/// Motion of every pixel from one frame to the next, pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowField {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// `[height][width]` of right, down.
    pub motion: Vec<[f32; 2]>,
    /// Where it is known: a surface is seen there, and still seen in the next frame.
    pub known: Vec<bool>,
}

impl FlowField {
    /// The length of the motion at a place, pixels; bilinear, nothing where no motion is known.
    pub fn length_at(&self, place: [f64; 2]) -> f64 {
        let [x, y] = self.at(place);
        x.hypot(y)
    }

    /// The motion at a place, pixels.
    pub fn at(&self, place: [f64; 2]) -> [f64; 2] {
        let (x, y) = ((place[0] - 0.5).max(0.0), (place[1] - 0.5).max(0.0));
        let (column, row) = ((x as usize).min(self.width - 1), (y as usize).min(self.height - 1));
        let (right, below) = ((column + 1).min(self.width - 1), (row + 1).min(self.height - 1));
        let (u, v) = ((x - column as f64).min(1.0), (y - row as f64).min(1.0));
        let of = |x: usize, y: usize| self.motion[y * self.width + x].map(f64::from);
        let (a, b, c, d) = (of(column, row), of(right, row), of(column, below), of(right, below));
        [0, 1].map(|k| {
            let (top, bottom) = (a[k] + (b[k] - a[k]) * u, c[k] + (d[k] - c[k]) * u);
            top + (bottom - top) * v
        })
    }

    /// The mean distance from another field where both are known, pixels; `None` where that is nowhere.
    pub fn end_point_error(&self, exact: &FlowField) -> Option<f64> {
        let both = self.known.iter().zip(&exact.known).map(|(a, b)| *a && *b);
        let of = |((a, b), both): ((&[f32; 2], &[f32; 2]), bool)| {
            both.then(|| f64::from((a[0] - b[0]).hypot(a[1] - b[1])))
        };
        let errors: Vec<f64> = self.motion.iter().zip(&exact.motion).zip(both).filter_map(of).collect();
        (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64)
    }
}

impl Look {
    /// A mesh that is painted by its vertices, in linear light.
    pub fn plain(faces: &[Face], colours: Vec<[f32; 3]>, openness: Vec<f32>) -> Self {
        let triangles: Vec<[u32; 3]> = faces.iter().flat_map(Face::triangles).collect();
        let painted = vec![None; triangles.len()];
        Self { faces: faces.to_vec(), triangles, painted, textures: Vec::new(), colours, openness }
    }

    /// Albedo × openness at a point of a triangle; `level` is the version of its texture, see [`Look::level`].
    pub fn paint(&self, triangle: usize, shares: [f32; 3], level: f32) -> [f32; 3] {
        let corners = self.triangles[triangle].map(|corner| corner as usize);
        let mix = |values: [f32; 3]| values[0] * shares[0] + values[1] * shares[1] + values[2] * shares[2];
        let open = mix(corners.map(|corner| self.openness[corner]));
        let albedo = match &self.painted[triangle] {
            Some((texture, uvs)) => {
                let uv = uvs[0] * shares[0] + uvs[1] * shares[1] + uvs[2] * shares[2];
                self.textures[*texture as usize].at(uv, level)
            }
            None => [0, 1, 2].map(|c| mix(corners.map(|corner| self.colours[corner][c]))),
        };
        albedo.map(|value| value * open)
    }

    /// Which version of its texture has about one texel per pixel on a triangle; corners in pixels.
    pub fn level(&self, triangle: usize, corners: [[f64; 2]; 3]) -> f32 {
        let Some((texture, uvs)) = &self.painted[triangle] else { return 0.0 };
        let side = self.textures[*texture as usize].width() as f32;
        let texels = (uvs[1] - uvs[0]).perp_dot(uvs[2] - uvs[0]).abs() * side * side;
        let [a, b, c] = corners;
        let pixels = ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])).abs().max(1e-3);
        (0.5 * (f64::from(texels) / pixels).max(1e-6).log2()).clamp(0.0, 4.0) as f32
    }

    /// Draws a pose before one colour. Every sample of a pixel's border is shaded, the middle of its inside.
    pub fn render(
        &self,
        positions: &[Vec3],
        camera: &Camera,
        light: &Light,
        background: [f32; 3],
    ) -> Rendered {
        let [width, height] = camera.size;
        let visibility = self.visibility(positions, camera);
        let normals = vertex_normals(&self.faces, positions);
        let places: Vec<[f64; 2]> =
            positions.iter().map(|p| camera.project(p.as_dvec3()).unwrap_or([0.0; 2])).collect();
        let shade = |triangle: u32, setup: &Setup, x: f32, y: f32| {
            let corners = self.triangles[triangle as usize].map(|corner| corner as usize);
            let shares = setup.barycentric(x, y);
            let normal = (0..3).map(|c| normals[corners[c]] * shares[c]).sum::<Vec3>().normalize_or_zero();
            let level = self.level(triangle as usize, corners.map(|corner| places[corner]));
            let (paint, light) = (self.paint(triangle as usize, shares, level), light.irradiance(normal));
            [0, 1, 2].map(|c| paint[c] * light[c])
        };
        let mut image = Image::new(width, height, background);
        image.pixels_mut().par_chunks_mut(width).enumerate().for_each(|(row, line)| {
            for (column, pixel) in line.iter_mut().enumerate() {
                let samples = &visibility.samples[(row * width + column) * SAMPLES..][..SAMPLES];
                let first = samples[0].triangle;
                let setup = |triangle: u32| visibility.setups.get(triangle as usize).and_then(Option::as_ref);
                if samples.iter().all(|sample| sample.triangle == first) {
                    if let Some(setup) = setup(first) {
                        *pixel = shade(first, setup, column as f32 + 0.5, row as f32 + 0.5);
                    }
                    continue;
                }
                let mut sum = [0.0f32; 3];
                for (sample, (x, y)) in samples.iter().zip(SAMPLE_PLACES) {
                    let colour = match setup(sample.triangle) {
                        Some(setup) => shade(sample.triangle, setup, column as f32 + x, row as f32 + y),
                        None => background,
                    };
                    (0..3).for_each(|c| sum[c] += colour[c] / SAMPLES as f32);
                }
                *pixel = sum;
            }
        });
        Rendered { image, visibility }
    }

    /// Which triangle is seen at every sample.
    pub fn visibility(&self, positions: &[Vec3], camera: &Camera) -> Visibility {
        let eye: Vec<Vec3> = positions.iter().map(|point| camera.to_centred(*point)).collect();
        Visibility::compute(&eye, &self.triangles, [camera.focal; 2], camera.size[0], camera.size[1])
    }

    /// The exact motion of what each pixel's middle shows, from a frame (its visibility) to the next.
    pub fn flow(&self, from: (&Visibility, &Camera), to: (&[Vec3], &Visibility, &Camera)) -> FlowField {
        let [width, height] = from.1.size;
        let (next, seen, camera) = to;
        let one = |at: usize| {
            let (column, row) = (at % width, at / width);
            let nearest = |place: [f64; 2]| {
                let inside = place[0] >= 0.0 && place[1] >= 0.0;
                let (x, y) = (place[0] as usize, place[1] as usize);
                (inside && x < width && y < height)
                    .then(|| &seen.samples[(y * width + x) * SAMPLES..][..SAMPLES])
            };
            let sample = from.0.samples[at * SAMPLES..][..SAMPLES].iter().find(|s| s.triangle != NOTHING)?;
            let setup = from.0.setups[sample.triangle as usize].as_ref()?;
            let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
            let shares = setup.barycentric(x, y);
            let corners = self.triangles[sample.triangle as usize];
            let point: Vec3 = (0..3).map(|c| next[corners[c] as usize] * shares[c]).sum();
            let place = camera.project(point.as_dvec3())?;
            let depth = camera.to_camera(point.as_dvec3()).z as f32;
            // Hidden in the next frame where every sample there is clearly nearer.
            let seen = nearest(place)?.iter().any(|s| s.inverse_depth * depth < 1.0 + 0.3 / depth);
            let motion = [(place[0] - f64::from(x)) as f32, (place[1] - f64::from(y)) as f32];
            Some((motion, seen))
        };
        let all: Vec<Option<([f32; 2], bool)>> = (0..width * height).into_par_iter().map(one).collect();
        FlowField {
            width,
            height,
            motion: all.iter().map(|flow| flow.map_or([0.0; 2], |(motion, _)| motion)).collect(),
            known: all.iter().map(|flow| flow.is_some_and(|(_, seen)| seen)).collect(),
        }
    }
}
