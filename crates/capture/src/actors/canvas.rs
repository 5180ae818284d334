//! Where paint goes: for every texel of a head's texture maps the place on the surface at rest that it covers. Made once per
//! topology; painters then work on places in space, so that a brow sits on the brow of everyone.

use super::HeadParts;
use rayon::prelude::*;
use understudy_core::{Vec2, Vec3};

/// A texel's place on the surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Texel {
    /// On the head at rest, cm.
    pub place: Vec3,
    /// Segment of the mesh, [`Texel::NOWHERE`] where no triangle comes near.
    pub segment: u32,
}

impl Texel {
    /// The segment of a texel that nothing uses.
    pub const NOWHERE: u32 = u32::MAX;
    const EMPTY: Self = Self { place: Vec3::ZERO, segment: Self::NOWHERE };
}

/// One square map, rows from the top.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    pub side: usize,
    pub texels: Vec<Texel>,
}

/// A triangle's texture and UVs, as [`crate::render::Look::painted`] wants them.
pub(super) type Painted = Option<(u32, [Vec2; 3])>;

/// Texels by material: the face needs the most.
fn side_of(material: &str) -> usize {
    match material {
        "M_Face" => 1024,
        "M_BackHead" => 512,
        _ => 256,
    }
}

/// Canvases of all materials, and for every triangle of `parts.mesh` its canvas and UVs inside it.
pub(super) fn canvases(parts: &HeadParts) -> (Vec<Canvas>, Vec<Painted>) {
    let mesh = &parts.mesh;
    let mut painted: Vec<Painted> = Vec::new();
    for (face, corners) in mesh.faces().iter().enumerate() {
        let uvs = mesh.face_uvs().get(face).map(|corners| corners.raw());
        let material = parts.face_materials[face];
        // Maps of several parts lie side by side in UV space: the whole part of u names the map.
        let tile = uvs.map(|uvs| mesh.uvs()[uvs[0] as usize].floor());
        let uv = |corner: usize| {
            let uvs = uvs.unwrap_or_default();
            (mesh.uvs()[uvs[corner] as usize] - tile.unwrap_or_default()).clamp(Vec2::ZERO, Vec2::ONE)
        };
        for triangle in 0..corners.corner_count() - 2 {
            let corners = [0, triangle + 1, triangle + 2];
            painted.push(uvs.is_some().then(|| (material, corners.map(uv))));
        }
    }
    let triangles = mesh.triangles();
    let one = |material: usize| {
        let side = side_of(&parts.materials[material]);
        let mut texels = vec![Texel::EMPTY; side * side];
        for (triangle, entry) in triangles.iter().zip(&painted) {
            let Some((of, uvs)) = entry else { continue };
            if *of as usize == material {
                let places = triangle.map(|corner| mesh.positions()[corner as usize]);
                let segment = mesh.segments().of_vertex[triangle[0] as usize];
                fill(&mut texels, side, uvs, places, segment);
            }
        }
        spread(&mut texels, side, 6);
        Canvas { side, texels }
    };
    ((0..parts.materials.len()).into_par_iter().map(one).collect(), painted)
}

/// Fills the texels whose middle lies in a triangle of UV space.
fn fill(texels: &mut [Texel], side: usize, uvs: &[Vec2; 3], places: [Vec3; 3], segment: u32) {
    let points = uvs.map(|uv| Vec2::new(uv.x, 1.0 - uv.y) * side as f32);
    let area = (points[1] - points[0]).perp_dot(points[2] - points[0]);
    if area == 0.0 {
        return;
    }
    let low = points[0].min(points[1]).min(points[2]);
    let high = points[0].max(points[1]).max(points[2]);
    for row in low.y.max(0.0) as usize..(high.y.ceil().max(0.0) as usize).min(side) {
        for column in low.x.max(0.0) as usize..(high.x.ceil().max(0.0) as usize).min(side) {
            let point = Vec2::new(column as f32 + 0.5, row as f32 + 0.5);
            let share = |a: usize, b: usize| (points[b] - point).perp_dot(points[a] - point) / -area;
            let shares = [share(1, 2), share(2, 0), share(0, 1)];
            if shares.iter().all(|share| *share >= -1e-4) {
                let place = places[0] * shares[0] + places[1] * shares[1] + places[2] * shares[2];
                texels[row * side + column] = Texel { place, segment };
            }
        }
    }
}

/// Texels beside a filled one take its place, so that colours between texels do not bleed at a map's border.
fn spread(texels: &mut [Texel], side: usize, rounds: usize) {
    for _ in 0..rounds {
        let before = texels.to_vec();
        for at in 0..texels.len() {
            if before[at].segment != Texel::NOWHERE {
                continue;
            }
            let (x, y) = (at % side, at / side);
            let around = [
                (x > 0).then(|| at - 1),
                (x + 1 < side).then(|| at + 1),
                (y > 0).then(|| at - side),
                (y + 1 < side).then(|| at + side),
            ];
            let filled = |at: &usize| before[*at].segment != Texel::NOWHERE;
            if let Some(near) = around.into_iter().flatten().find(filled) {
                texels[at] = before[near];
            }
        }
    }
}
