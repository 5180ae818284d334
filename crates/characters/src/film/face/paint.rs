//! Colours for pictures of a face: by segment, with lips and brows tinted from the landmarks and irises
//! from the eyes.

use super::eyes::FoundEye;
use super::{FaceHints, vertices_of};
use crate::film::colour;
use understudy_core::{Mesh, Vec2, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::smooth_step;

const SKIN: u32 = 0xd9a58a;
const LIPS: u32 = 0xb5655e;
const BROWS: u32 = 0x5a4033;
const MOUTH: u32 = 0x8c3f3f;
const GUMS: u32 = 0xc46a68;
const TEETH: u32 = 0xf2ead8;
const SCLERA: u32 = 0xf4f1ec;
const IRIS: u32 = 0x4f7391;
const PUPIL: u32 = 0x15151a;
const LASHES: u32 = 0x453630;
const TEARS: u32 = 0xd99a90;

/// sRGB of every vertex.
pub(super) fn colours(mesh: &Mesh, hints: &FaceHints, eyes: &[FoundEye]) -> Result<Vec<Vec3>, RigError> {
    let mut out = vec![colour(SKIN); mesh.vertex_count()];
    let teeth = [hints.upper_teeth.clone(), hints.lower_teeth.clone()].concat();
    let painted = [(&hints.mouth, MOUTH), (&hints.gums, GUMS), (&teeth, TEETH), (&hints.veils, SCLERA)];
    for (names, hex) in painted {
        for vertex in vertices_of(mesh, names)? {
            out[vertex as usize] = colour(hex);
        }
    }
    for eye in &hints.eyes {
        for name in &eye.attached {
            let hex = if name.contains("lash") { LASHES } else { TEARS };
            for vertex in vertices_of(mesh, std::slice::from_ref(name))? {
                out[vertex as usize] = colour(hex);
            }
        }
    }
    for eye in eyes {
        for &vertex in &eye.ball {
            let offset = mesh.positions()[vertex as usize] - eye.centre;
            let angle = offset.angle_between(Vec3::Z).to_degrees();
            let iris = colour(IRIS).lerp(colour(PUPIL), smooth_step(11.5, 7.5, angle));
            out[vertex as usize] = colour(SCLERA).lerp(iris, smooth_step(25.0, 21.5, angle));
        }
    }
    tint_skin(mesh, hints, &mut out)?;
    Ok(out)
}

fn tint_skin(mesh: &Mesh, hints: &FaceHints, out: &mut [Vec3]) -> Result<(), RigError> {
    let at = |landmark: usize| mesh.positions()[hints.landmarks[landmark] as usize];
    let lips: Vec<Vec2> = (48..60).map(|landmark| at(landmark).truncate()).collect();
    let brows = [[17, 18, 19, 20, 21], [22, 23, 24, 25, 26]];
    let lip_depth = (at(48).z + at(54).z) * 0.5 - 0.6;
    for vertex in vertices_of(mesh, &hints.skin)? {
        let point = mesh.positions()[vertex as usize];
        let place = &mut out[vertex as usize];
        if point.z > lip_depth {
            let inside = -signed_distance(&lips, point.truncate());
            *place = place.lerp(colour(LIPS), smooth_step(-0.12, 0.15, inside));
        }
        for brow in &brows {
            let line: Vec<Vec3> = brow.iter().map(|landmark| at(*landmark)).collect();
            let distance = line
                .windows(2)
                .map(|pair| {
                    let along = pair[1] - pair[0];
                    let t = ((point - pair[0]).dot(along) / along.length_squared().max(1e-6)).clamp(0.0, 1.0);
                    (point - pair[0] - along * t).length()
                })
                .fold(f32::INFINITY, f32::min);
            *place = place.lerp(colour(BROWS), 0.8 * smooth_step(0.5, 0.15, distance));
        }
    }
    Ok(())
}

/// Distance to a closed polygon, negative inside.
fn signed_distance(polygon: &[Vec2], point: Vec2) -> f32 {
    let mut distance = f32::INFINITY;
    let mut inside = false;
    for (index, &a) in polygon.iter().enumerate() {
        let b = polygon[(index + 1) % polygon.len()];
        let along = b - a;
        let t = ((point - a).dot(along) / along.length_squared().max(1e-9)).clamp(0.0, 1.0);
        distance = distance.min((point - a - along * t).length());
        if (a.y > point.y) != (b.y > point.y) && point.x < a.x + along.x * (point.y - a.y) / along.y {
            inside = !inside;
        }
    }
    if inside { -distance } else { distance }
}
