//! The form of Mira's head as a signed distance field: skull, face, jaw, nose and neck as soft unions.
//! The mesh gets its topology elsewhere ([`super::head`]) and is pulled onto this form.
//!
//! Space: centimetres, Y up, facing +Z, her left is +X. The eye line is at `y = 0`.

use understudy_core::Vec3;

/// Centre of her left eyeball; the right one is its mirror image.
pub(super) const EYE_CENTRE: Vec3 = Vec3::new(3.08, 0.0, 4.1);
/// Radius of the eyeball.
pub(super) const EYE_RADIUS: f32 = 2.15;

fn ellipsoid(p: Vec3, centre: Vec3, radii: Vec3) -> f32 {
    let q = p - centre;
    let near = (q / radii).length();
    let far = (q / (radii * radii)).length();
    if far < 1e-6 { -radii.min_element() } else { near * (near - 1.0) / far }
}

fn ball(p: Vec3, centre: Vec3, radius: f32) -> f32 {
    p.distance(centre) - radius
}

/// A capsule whose radius changes linearly from `a` to `b`.
fn cone(p: Vec3, a: Vec3, b: Vec3, radius_a: f32, radius_b: f32) -> f32 {
    let along = b - a;
    let t = ((p - a).dot(along) / along.length_squared()).clamp(0.0, 1.0);
    p.distance(a + along * t) - (radius_a + (radius_b - radius_a) * t)
}

/// Soft union: the sharp minimum rounded over `k` cm.
fn join(a: f32, b: f32, k: f32) -> f32 {
    let h = (k - (a - b).abs()).max(0.0) / k;
    a.min(b) - h * h * h * k / 6.0
}

/// Soft difference: `a` without `b`.
fn carve(a: f32, b: f32, k: f32) -> f32 {
    -join(-a, b, k)
}

/// The skull alone: what the hair lies on.
pub(super) fn skull(p: Vec3) -> f32 {
    let p = Vec3::new(p.x.abs(), p.y, p.z);
    let cranium = ellipsoid(p, Vec3::new(0.0, 2.7, -1.3), Vec3::new(7.25, 7.4, 8.5));
    let occiput = ball(p, Vec3::new(0.0, 0.6, -3.6), 5.7);
    join(cranium, occiput, 2.0)
}

/// Signed distance to the skin, without lips, eyelids, ears and hair; negative inside.
pub(super) fn skin(p: Vec3) -> f32 {
    let p = Vec3::new(p.x.abs(), p.y, p.z);
    let v = Vec3::new;
    let mut d = skull(p);
    d = join(d, ellipsoid(p, v(0.0, -2.2, 0.4), v(5.75, 6.6, 6.2)), 2.2);
    // Jaw and chin.
    d = join(d, cone(p, v(4.3, -4.6, 0.0), v(0.8, -7.75, 4.7), 1.1, 1.1), 2.6);
    d = join(d, ellipsoid(p, v(0.0, -7.95, 5.6), v(1.15, 1.1, 1.25)), 1.4);
    // Neck, wider towards the shoulders, with the two muscles that run to the collar bones.
    let flare = ((-11.5 - p.y) / 5.0).clamp(0.0, 1.0);
    let neck = cone(p, v(0.0, -4.5, -2.3), v(0.0, -18.0, -3.6), 2.85, 2.95) - 0.9 * flare * flare;
    d = join(d, neck, 2.2);
    d = join(d, cone(p, v(2.6, -10.0, -2.4), v(0.9, -16.5, -0.7), 0.3, 0.5), 2.4);
    // Cheeks.
    d = join(d, ball(p, v(3.35, -2.75, 3.75), 2.45), 2.0);
    d = join(d, ball(p, v(4.85, -1.2, 2.2), 1.5), 2.6);
    // The muzzle that carries the lips, and the dip below the lower lip.
    d = join(d, ellipsoid(p, v(0.0, -5.45, 4.25), v(2.7, 2.2, 2.62)), 1.8);
    d = carve(d, cone(p, v(0.0, -7.0, 7.75), v(1.5, -6.9, 7.0), 0.5, 0.4), 1.0);
    // Brow ridge, then the sockets, then the lids' bed around the eyeball.
    d = join(d, cone(p, v(1.5, 2.0, 6.0), v(4.5, 2.2, 4.5), 0.75, 0.7), 1.6);
    let eye = EYE_CENTRE;
    d = carve(d, ellipsoid(p, eye + v(0.0, 0.1, 3.0), v(2.35, 1.75, 1.25)), 1.5);
    d = carve(d, ball(p, v(1.4, 0.3, 7.15), 0.55), 1.0);
    d = join(d, ball(p, eye, EYE_RADIUS + 0.14), 0.6);
    nose(p, d)
}

/// Adds the nose to the face.
fn nose(p: Vec3, face: f32) -> f32 {
    let v = Vec3::new;
    let bridge = cone(p, v(0.0, 0.8, 6.25), v(0.0, -2.0, 7.35), 0.56, 0.52);
    let mut d = join(face, bridge, 1.3);
    let tip = ellipsoid(p, v(0.0, -2.78, 7.98), v(0.68, 0.6, 0.72));
    d = join(d, tip, 1.0);
    let wing = ellipsoid(p, v(0.72, -2.98, 7.1), v(0.4, 0.42, 0.66));
    d = join(d, wing, 0.75);
    let septum = cone(p, v(0.0, -3.1, 8.0), v(0.0, -3.55, 7.0), 0.27, 0.27);
    d = join(d, septum, 0.35);
    // Philtrum: a shallow groove between nose and lip.
    carve(d, cone(p, v(0.0, -3.9, 7.5), v(0.0, -4.85, 7.42), 0.2, 0.24), 0.4)
}

/// Direction of steepest increase of a distance field.
pub(super) fn gradient(field: impl Fn(Vec3) -> f32, p: Vec3) -> Vec3 {
    let e = 0.01;
    let part = |axis: Vec3| field(p + axis * e) - field(p - axis * e);
    Vec3::new(part(Vec3::X), part(Vec3::Y), part(Vec3::Z)).normalize_or(Vec3::Z)
}

/// The nearest point of the form, by a few damped Newton steps.
pub(super) fn project(field: impl Fn(Vec3) -> f32 + Copy, mut p: Vec3) -> Vec3 {
    for _ in 0..8 {
        let distance = field(p);
        if distance.abs() < 1e-3 {
            break;
        }
        p -= gradient(field, p) * distance * 0.9;
    }
    p
}

/// Where a line from far in front hits the skin; the skin's depth at `(x, y)`.
pub(super) fn front_depth(x: f32, y: f32) -> f32 {
    let mut z = 12.0;
    for _ in 0..60 {
        let distance = skin(Vec3::new(x, y, z));
        if distance < 2e-4 || z < -4.0 {
            break;
        }
        z -= distance * 0.8;
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_pulled_onto_the_form() {
        for start in [Vec3::new(0.3, -3.0, 10.0), Vec3::new(-6.0, 3.0, 2.0), Vec3::new(2.0, -9.0, 4.0)] {
            assert!(skin(project(skin, start)).abs() < 0.01, "{start}");
        }
        assert!(front_depth(0.0, -3.0) > front_depth(0.0, 0.0), "the nose sticks out");
    }
}
