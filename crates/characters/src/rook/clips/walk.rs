//! A walk in place: four strides of contact, down, passing and up, arms against legs, the coat behind
//! the body.

use super::feet::{FootPath, Ground};
use super::{curves, cycle, hand};
use understudy_core::Clip;
use understudy_rigs::RigError;

const STRIDE: f32 = 1.1;
const STRIDES: usize = 4;

/// One foot over a stride, phase 0 at its heel strike: on the ground until 0.6, then forward.
fn foot(shift: f32) -> FootPath {
    let path = |keys: &[(f32, f32)]| cycle("foot", STRIDE, STRIDES, shift, keys);
    // On the ground the foot goes back evenly: keys on a line make the curve a line.
    let forward = path(&[
        (0.0, 27.0),
        (0.1, 18.0),
        (0.2, 9.0),
        (0.3, 0.0),
        (0.4, -9.0),
        (0.5, -18.0),
        (0.6, -27.0),
        (0.68, -29.5),
        (0.8, 2.0),
        (0.93, 31.0),
        (0.97, 29.7),
    ]);
    let lift =
        path(&[(0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.68, 2.5), (0.77, 6.5), (0.88, 3.0), (0.95, 1.0)]);
    let pitch = path(&[
        (0.0, 19.0),
        (0.06, 8.0),
        (0.11, 0.0),
        (0.38, 0.0),
        (0.5, -17.0),
        (0.6, -40.0),
        (0.66, -46.0),
        (0.8, -12.0),
        (0.92, 14.0),
    ]);
    let out = path(&[(0.0, -3.4), (0.3, -3.8), (0.6, -3.4), (0.77, -2.6)]);
    FootPath { curves: [out, lift, forward, pitch] }
}

pub fn clip(ground: &Ground<'_>) -> Result<Clip, RigError> {
    // The left heel strikes at 0, the right one half a stride later.
    let once = |control: &str, keys: &[(f32, f32)]| cycle(control, STRIDE, STRIDES, 0.0, keys);
    let twice = |control: &str, low: f32, high: f32, shift: f32| {
        cycle(control, STRIDE, STRIDES, shift, &[(0.0, low), (0.25, high), (0.5, low), (0.75, high)])
    };
    let wave = |control: &str, size: f32, middle: f32, shift: f32| {
        let keys = [(0.0, middle + size), (0.25, middle), (0.5, middle - size), (0.75, middle)];
        cycle(control, STRIDE, STRIDES, shift, &keys)
    };
    let mut body = vec![
        twice("hips.move_y", -4.6, -1.4, 0.08),
        wave("hips.move_x", 2.0, 0.0, 0.3),
        wave("hips.turn", -7.0, 0.0, 0.0),
        wave("hips.roll", 3.2, 0.0, 0.28),
        twice("hips.pitch", 3.0, 1.5, 0.0),
        wave("spine_1.turn", 4.0, 0.0, 0.02),
        wave("spine_3.turn", 6.0, 0.0, 0.04),
        wave("chest.turn", 5.0, 0.0, 0.06),
        wave("spine_3.lean", -2.5, 0.0, 0.3),
        twice("spine_1.bend", 3.0, 1.5, 0.1),
        twice("chest.bend", 2.5, 0.0, 0.14),
        wave("neck.turn", -3.0, 0.0, 0.06),
        wave("head.turn", -4.5, 0.0, 0.08),
        twice("head.nod", -1.0, 2.5, 0.16),
        wave("head.tilt", 1.8, 0.0, 0.3),
        wave("shoulder_l.forward", -23.0, 3.0, 0.02),
        wave("shoulder_r.forward", 23.0, 3.0, 0.02),
        wave("shoulder_l.up", 2.0, -33.0, 0.02),
        wave("shoulder_r.up", -2.0, -33.0, 0.02),
        wave("elbow_l.bend", -13.0, 24.0, 0.1),
        wave("elbow_r.bend", 13.0, 24.0, 0.1),
        wave("wrist_l.bend", 9.0, 2.0, 0.18),
        wave("wrist_r.bend", -9.0, 2.0, 0.18),
        wave("clavicle_l.forward", -5.0, 0.0, 0.02),
        wave("clavicle_r.forward", 5.0, 0.0, 0.02),
        twice("clavicle_l.up", 0.0, 3.0, 0.1),
        twice("clavicle_r.up", 0.0, 3.0, 0.1),
        // The coat comes after the hips: sideways with the sway, back with the pace.
        wave("coat_wind_x", -0.28, 0.0, 0.42),
        twice("coat_wind_z", -0.42, -0.16, 0.18),
        twice("hem_flare", 0.02, 0.16, 0.2),
        twice("hood_forward", -0.15, 0.25, 0.2),
        once("breathe", &[(0.0, 0.2), (0.5, 0.7)]),
    ];
    for (joint, degrees) in [("shoulder_l.twist", -8.0), ("shoulder_r.twist", -8.0)] {
        body.extend(curves(&[(joint, &[(0.0, degrees)])]));
    }
    for side in ["l", "r"] {
        body.extend(hand(side, &[(0.0, 0.3)]));
    }
    Ok(ground.clip("walk", STRIDE * STRIDES as f32, body, [&foot(0.0), &foot(0.5)]))
}
