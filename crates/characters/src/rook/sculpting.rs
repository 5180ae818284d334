//! Folds on the fine mesh: smooth waves along the normals where cloth is worn: sleeves about the elbow,
//! the skirt's pleats, trousers at the knee, boots at the ankle, the hood's neck.

use super::plan;
use super::sculpt::FineBody;
use std::f32::consts::TAU;
use understudy_core::Vec3;
use understudy_core::normals::vertex_normals;
use understudy_rigs::deformers::smooth_step;

/// A bump around `centre` with half width `width`.
fn near(value: f32, centre: f32, width: f32) -> f32 {
    smooth_step(width, 0.0, (value - centre).abs())
}

/// Distance along the left arm and angle around it of a point (mirrored to the left).
fn along_arm(point: Vec3) -> (f32, f32) {
    let upper = plan::upper_arm_direction();
    let offset = point - plan::SHOULDER;
    let along = offset.dot(upper);
    let away = offset - upper * along;
    let top = Vec3::new(1.0, 1.0, 0.0).normalize();
    (along, away.z.atan2(away.dot(top)))
}

/// Pleats of the skirt, deeper towards the knees.
fn pleat(side: Vec3, position: Vec3) -> f32 {
    let angle = side.x.atan2(position.z);
    // None at the very hem, where outside and lining meet.
    let depth = smooth_step(99.0, 56.0, side.y) * smooth_step(44.0, 56.0, side.y);
    depth * 0.55 * (angle * 11.0 + 0.6 * (side.y * 0.08).sin()).sin()
}

/// The height of the fold at a vertex, cm outward.
fn fold(segment: &str, position: Vec3) -> f32 {
    let side = Vec3::new(position.x.abs(), position.y, position.z);
    let sleeve = segment == "coat" && side.x + side.y > 166.5 && side.x > 19.0;
    if sleeve {
        let (along, around) = along_arm(side);
        // Folds wind around the arm: deep inside the elbow, shallow outside.
        let inner = 0.55 + 0.45 * around.sin();
        let waves = (TAU * along / 5.2 + 1.1 * around.cos()).sin();
        let elbow = near(along, 29.0, 11.0) * inner;
        let upper = 0.35 * near(along, 12.0, 9.0);
        return waves * (0.42 * elbow + 0.3 * upper);
    }
    match segment {
        // The lining looks inward and follows the outside.
        "lining" if side.y < 101.0 => -pleat(side, position),
        "coat" if side.y < 101.0 => pleat(side, position),
        "coat" if side.y < 133.0 => {
            // Cloth gathers above the belt.
            let angle = side.x.atan2(position.z);
            near(side.y, 113.5, 5.0) * 0.3 * (angle * 9.0 + side.y * 0.3).sin()
        }
        "trousers" => {
            let knee = near(side.y, 50.5, 9.0);
            let waves = (TAU * side.y / 4.6 + 0.8 * (side.x - 11.0) * 0.3).sin();
            let behind = 0.5 - 0.5 * (position.z / 7.0).clamp(-1.0, 1.0);
            waves * 0.4 * knee * (0.45 + 0.55 * behind)
        }
        "boot" => {
            let ankle = near(side.y, 18.5, 8.0);
            (TAU * side.y / 4.2 + 0.25 * position.z).sin() * 0.3 * ankle
        }
        "hood" => {
            let neck = near(side.y, 161.5, 5.0);
            (TAU * (side.y - 0.25 * position.z.abs()) / 4.4).sin() * 0.35 * neck
        }
        _ => 0.0,
    }
}

/// Moves the body's vertices along their normals.
pub fn add_folds(body: &mut FineBody, of_vertex: &[u32]) {
    let faces: Vec<_> = body.cage.faces.iter().map(|face| face.face).collect();
    let normals = vertex_normals(&faces, &body.cage.positions);
    for (vertex, normal) in normals.into_iter().enumerate() {
        let position = body.cage.positions[vertex];
        let segment = body.cage.segments[of_vertex[vertex] as usize].as_str();
        let mut moved = position + normal * fold(segment, position);
        if position.x == 0.0 {
            moved.x = 0.0;
        }
        body.cage.positions[vertex] = moved;
    }
}
