//! What tests of several characters measure.

use understudy_core::{Mesh, Vec2};

/// Samples the texture square: how many places belong to two faces.
///
/// # Panics
/// Where a texture coordinate is missing or lies outside the square.
pub(crate) fn texture_overlaps(mesh: &Mesh) -> usize {
    const SIDE: usize = 1500;
    let in_square = |uv: &Vec2| uv.cmpge(Vec2::ZERO).all() && uv.cmple(Vec2::ONE).all();
    assert!(mesh.has_uvs() && mesh.uvs().iter().all(in_square));
    let mut taken = vec![u32::MAX; SIDE * SIDE];
    let mut overlaps = 0;
    for (index, corners) in (0u32..).zip(mesh.face_uvs()) {
        for triangle in corners.triangles() {
            let [a, b, c] = triangle.map(|corner| mesh.uvs()[corner as usize] * SIDE as f32);
            let (low, high) = (a.min(b).min(c).floor(), a.max(b).max(c).ceil());
            let area = (b - a).perp_dot(c - a);
            if area.abs() < 1e-9 {
                continue;
            }
            for y in low.y as usize..(high.y as usize).min(SIDE) {
                for x in low.x as usize..(high.x as usize).min(SIDE) {
                    let p = Vec2::new(x as f32 + 0.5, y as f32 + 0.5);
                    let inside = |u: Vec2, v: Vec2| (v - u).perp_dot(p - u) / area > 1e-4;
                    if inside(a, b) && inside(b, c) && inside(c, a) {
                        let slot = &mut taken[y * SIDE + x];
                        overlaps += usize::from(*slot != u32::MAX && *slot != index);
                        *slot = index;
                    }
                }
            }
        }
    }
    overlaps
}
