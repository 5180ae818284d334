//! Points of the surface whose colour is compared with a picture, and the vertices and faces that their places and normals
//! depend on.

use super::deformation::Deformation;
use crate::render::Look;
use crate::{Camera, MarkPoint};
use understudy_core::{DVec3, Face, Random, Vec3};
use understudy_runtime::PoseError;

/// A corner of a face that is missing.
const NONE: u32 = u32::MAX;

/// A sampled point.
#[derive(Debug, Clone)]
pub(super) struct SamplePoint {
    /// Places in [`Samples::corners`].
    pub corners: [u32; 3],
    /// Barycentric shares.
    pub shares: [f64; 3],
    /// Albedo × openness.
    pub paint: [f64; 3],
    /// Chosen vertices that its place or normal depend on.
    pub ring: Vec<u32>,
    /// Where its corners are in `ring`.
    pub corner_slots: [u8; 3],
    /// For each corner's faces: the corner 0..3, the face, where the face's corners are in `ring`.
    pub parts: Vec<(u8, u32, [u8; 4])>,
}

/// Everything that a solver evaluates.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    /// Vertices of the mesh, ascending: the chosen ones.
    pub vertices: Vec<u32>,
    pub points: Vec<SamplePoint>,
    /// Chosen vertices that carry a normal, with their faces in `faces`.
    pub corners: Vec<(u32, Vec<u32>)>,
    /// Corners as chosen vertices; [`NONE`] in the fourth place of a triangle.
    pub faces: Vec<[u32; 4]>,
}

/// Places, face areas and normals of one state.
#[derive(Debug, Clone, Default)]
pub(super) struct Evaluated {
    /// Chosen vertices in the world, cm.
    pub places: Vec<DVec3>,
    /// Twice the area times the normal of every face.
    pub areas: Vec<DVec3>,
    /// Unit normal and length before it was made one, of every corner.
    pub normals: Vec<(DVec3, f64)>,
}

impl Samples {
    /// Draws points evenly over the area of the look's triangles that `region` names and that face the camera at rest.
    /// `more` are vertices that are needed beside them.
    pub fn draw(
        look: &Look,
        rest: &[Vec3],
        region: &[bool],
        camera: &Camera,
        count: usize,
        more: &[u32],
        smoothing: usize,
        seed: u64,
    ) -> Self {
        let eye = camera.position.as_vec3();
        let at = |vertex: u32| rest[vertex as usize];
        let mut reach = Vec::with_capacity(look.triangles.len());
        let mut total = 0.0f64;
        for triangle in &look.triangles {
            let [a, b, c] = triangle.map(at);
            let area = (b - a).cross(c - a);
            let towards = (eye - (a + b + c) / 3.0).normalize_or_zero();
            let faces_camera = area.normalize_or_zero().dot(towards) > 0.15;
            if faces_camera && triangle.iter().all(|corner| region[*corner as usize]) {
                total += f64::from(area.length());
            }
            reach.push(total);
        }
        let mut random = Random::stream(seed, 0x7361_6d70);
        let mut drawn: Vec<(usize, [f64; 3])> = Vec::new();
        if total > 0.0 {
            for _ in 0..count {
                let wanted = random.unit() * total;
                let triangle = reach.partition_point(|sum| *sum <= wanted).min(reach.len() - 1);
                let (u, v) = (random.unit().sqrt(), random.unit());
                drawn.push((triangle, [1.0 - u, u * (1.0 - v), u * v]));
            }
        }
        Self::build(look, rest, camera, &drawn, more, smoothing)
    }

    fn build(
        look: &Look,
        rest: &[Vec3],
        camera: &Camera,
        drawn: &[(usize, [f64; 3])],
        more: &[u32],
        smoothing: usize,
    ) -> Self {
        let mut corner_vertices: Vec<u32> = drawn.iter().flat_map(|(t, _)| look.triangles[*t]).collect();
        corner_vertices.sort_unstable();
        corner_vertices.dedup();
        let mut owned: Vec<Vec<u32>> = vec![Vec::new(); corner_vertices.len()];
        let mut faces: Vec<Face> = Vec::new();
        for face in &look.faces {
            let mut used = false;
            for corner in face.corners() {
                if let Ok(place) = corner_vertices.binary_search(corner) {
                    owned[place].push(faces.len() as u32);
                    used = true;
                }
            }
            if used {
                faces.push(*face);
            }
        }
        let mut vertices: Vec<u32> =
            faces.iter().flat_map(|face| face.corners().to_vec()).chain(more.iter().copied()).collect();
        vertices.sort_unstable();
        vertices.dedup();
        let local = |vertex: u32| vertices.binary_search(&vertex).map_or(NONE, |place| place as u32);
        let faces: Vec<[u32; 4]> = faces
            .iter()
            .map(|face| face.raw().map(|corner| if corner == Face::NONE { NONE } else { local(corner) }))
            .collect();
        let corners: Vec<(u32, Vec<u32>)> =
            corner_vertices.iter().map(|vertex| local(*vertex)).zip(owned).collect();
        let place = |vertex: u32| camera.project(rest[vertex as usize].as_dvec3()).unwrap_or([0.0; 2]);
        let point = |(triangle, shares): &(usize, [f64; 3])| {
            let of = look.triangles[*triangle];
            // Smoothed pictures are compared with paint that is as smooth.
            let level = look.level(*triangle, of.map(place)) + 0.5 * smoothing as f32;
            let paint = look.paint(*triangle, shares.map(|share| share as f32), level).map(f64::from);
            let of = of
                .map(|vertex| corner_vertices.binary_search(&vertex).expect("corners were collected") as u32);
            let mut ring: Vec<u32> = Vec::new();
            let mut slot = |vertex: u32| {
                if vertex == NONE {
                    return u8::MAX;
                }
                let found = ring.iter().position(|other| *other == vertex).unwrap_or_else(|| {
                    ring.push(vertex);
                    ring.len() - 1
                });
                found.min(usize::from(u8::MAX) - 1) as u8
            };
            let corner_slots = of.map(|corner| slot(corners[corner as usize].0));
            let mut parts = Vec::new();
            for (place, corner) in (0u8..).zip(of) {
                for &face in &corners[corner as usize].1 {
                    parts.push((place, face, faces[face as usize].map(&mut slot)));
                }
            }
            SamplePoint { corners: of, shares: *shares, paint, ring, corner_slots, parts }
        };
        let points =
            drawn.iter().map(point).filter(|point| point.ring.len() < usize::from(u8::MAX)).collect();
        Self { vertices, points, corners, faces }
    }

    /// A mark's vertices as chosen ones.
    pub fn local(&self, mark: &MarkPoint) -> Option<([u32; 4], [f64; 4])> {
        let mut out = [0; 4];
        for (out, vertex) in out.iter_mut().zip(&mark.vertices) {
            *out = self.vertices.binary_search(vertex).ok()? as u32;
        }
        Some((out, mark.shares.map(f64::from)))
    }

    /// Areas and normals of places.
    pub fn shape(&self, out: &mut Evaluated) {
        out.areas.clear();
        for face in &self.faces {
            let (first, second) = edges(face, &out.places);
            out.areas.push(first.cross(second));
        }
        out.normals.clear();
        for (_, faces) in &self.corners {
            let sum: DVec3 = faces.iter().map(|face| out.areas[*face as usize]).sum();
            let length = sum.length().max(1e-12);
            out.normals.push((sum / length, length));
        }
    }

    /// The normal of a point and its length before it was made one.
    pub fn normal(point: &SamplePoint, at: &Evaluated) -> (DVec3, f64) {
        let sum: DVec3 = (0..3).map(|c| at.normals[point.corners[c] as usize].0 * point.shares[c]).sum();
        let length = sum.length().max(1e-12);
        (sum / length, length)
    }

    /// The place of a point, cm.
    pub fn place(point: &SamplePoint, at: &Evaluated) -> DVec3 {
        (0..3)
            .map(|c| at.places[point.ring[usize::from(point.corner_slots[c])] as usize] * point.shares[c])
            .sum()
    }

    /// How a slope by a point's unit normal comes from the vertices of its ring, added to `rows`.
    pub fn pull_back_normal(
        &self,
        point: &SamplePoint,
        at: &Evaluated,
        by_normal: DVec3,
        rows: &mut [DVec3],
    ) {
        let (normal, length) = Self::normal(point, at);
        let by_sum = (by_normal - normal * normal.dot(by_normal)) / length;
        let by_corner: [DVec3; 3] = std::array::from_fn(|c| {
            let (normal, length) = at.normals[point.corners[c] as usize];
            (by_sum - normal * normal.dot(by_sum)) * (point.shares[c] / length)
        });
        for (corner, face, slots) in &point.parts {
            let by_area = by_corner[usize::from(*corner)];
            let (first, second) = edges(&self.faces[*face as usize], &at.places);
            let (by_first, by_second) = (second.cross(by_area), by_area.cross(first));
            let [a, b, c, d] = slots.map(usize::from);
            if self.faces[*face as usize][3] == NONE {
                rows[b] += by_first;
                rows[c] += by_second;
                rows[a] -= by_first + by_second;
            } else {
                rows[c] += by_first;
                rows[a] -= by_first;
                rows[d] += by_second;
                rows[b] -= by_second;
            }
        }
    }

    /// How much each weight moves each point, normalised over the points (6.7), `[weights][points]`.
    pub fn influence(
        &self,
        deformation: &mut dyn Deformation,
        rest: &[f64],
    ) -> Result<Vec<Vec<f64>>, PoseError> {
        let (count, stride) = (deformation.count(), deformation.stride());
        let rows = deformation.derivatives(rest)?;
        let mut all = vec![vec![0.0; self.points.len()]; count];
        for (index, point) in self.points.iter().enumerate() {
            for (weight, out) in all.iter_mut().enumerate() {
                let mut moved = DVec3::ZERO;
                for c in 0..3 {
                    let vertex = point.ring[usize::from(point.corner_slots[c])] as usize;
                    let at = |axis: usize| f64::from(rows[(3 * vertex + axis) * stride + weight]);
                    moved += DVec3::new(at(0), at(1), at(2)) * point.shares[c];
                }
                out[index] = moved.length();
            }
        }
        for out in &mut all {
            let sum: f64 = out.iter().sum();
            if sum > 0.0 {
                out.iter_mut().for_each(|value| *value /= sum);
            }
        }
        Ok(all)
    }
}

/// The two edges whose cross product is a face's area vector: diagonals of a quad, sides of a triangle.
fn edges(face: &[u32; 4], places: &[DVec3]) -> (DVec3, DVec3) {
    let at = |corner: u32| places[corner as usize];
    match *face {
        [a, b, c, NONE] => (at(b) - at(a), at(c) - at(a)),
        [a, b, c, d] => (at(c) - at(a), at(d) - at(b)),
    }
}
