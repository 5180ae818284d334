//! Finding places on the finished body: where a ray meets a garment, and the frames in which sewn-on
//! parts are built there.

use crate::modeling::Cage;
use understudy_core::{Affine3A, Mat3, Vec3};

/// A place on the body.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Where, cm.
    pub point: Vec3,
    /// Outward.
    pub normal: Vec3,
    /// The triangle that was hit.
    pub corners: [u32; 3],
}

/// Triangles of some segments of the body.
pub struct Surface<'a> {
    positions: &'a [Vec3],
    triangles: Vec<[u32; 3]>,
}

impl<'a> Surface<'a> {
    /// The triangles of the named segments.
    pub fn new(cage: &'a Cage, segments: &[&str]) -> Self {
        let wanted: Vec<bool> = cage.segments.iter().map(|name| segments.contains(&name.as_str())).collect();
        let faces = cage.faces.iter().filter(|face| wanted[face.segment as usize]);
        let triangles = faces.flat_map(|face| face.face.triangles()).collect();
        Self { positions: &cage.positions, triangles }
    }

    /// The same without triangles that have a corner for which `keep` is false.
    pub fn only(mut self, keep: impl Fn(Vec3) -> bool) -> Self {
        let positions = self.positions;
        self.triangles.retain(|corners| corners.iter().all(|corner| keep(positions[*corner as usize])));
        self
    }

    /// The first triangle that a ray meets from outside.
    pub fn hit(&self, origin: Vec3, direction: Vec3) -> Option<Place> {
        let direction = direction.normalize();
        let mut best: Option<(f32, Place)> = None;
        for &corners in &self.triangles {
            let [a, b, c] = corners.map(|corner| self.positions[corner as usize]);
            let (first, second) = (b - a, c - a);
            let normal = first.cross(second);
            let facing = normal.dot(direction);
            if facing >= 0.0 {
                continue;
            }
            let distance = (a - origin).dot(normal) / facing;
            if distance <= 0.0 || best.as_ref().is_some_and(|(known, _)| *known <= distance) {
                continue;
            }
            let point = origin + direction * distance;
            // A ray through an edge must not slip between the two triangles.
            let slack = -1e-5 * normal.length_squared();
            let inside = |from: Vec3, to: Vec3| (to - from).cross(point - from).dot(normal) >= slack;
            if inside(a, b) && inside(b, c) && inside(c, a) {
                best = Some((distance, Place { point, normal: normal.normalize(), corners }));
            }
        }
        best.map(|(_, place)| place)
    }

    /// The triangle nearest to a point by its centre.
    pub fn nearest(&self, point: Vec3) -> Option<Place> {
        let centre =
            |corners: &[u32; 3]| corners.map(|c| self.positions[c as usize]).iter().sum::<Vec3>() / 3.0;
        let away = |corners: &[u32; 3]| centre(corners).distance_squared(point);
        let corners = *self.triangles.iter().min_by(|a, b| away(a).total_cmp(&away(b)))?;
        let [a, b, c] = corners.map(|corner| self.positions[corner as usize]);
        Some(Place { point: centre(&corners), normal: (b - a).cross(c - a).normalize(), corners })
    }
}

/// A frame on a place: z out of the surface, y as near to `up` as it gets.
pub fn frame(place: &Place, up: Vec3) -> Affine3A {
    let z = place.normal;
    let y = (up - z * z.dot(up)).normalize_or(z.any_orthonormal_vector());
    Affine3A::from_mat3_translation(Mat3::from_cols(y.cross(z), y, z), place.point)
}
