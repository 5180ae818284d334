//! Sleeve, gauntlet and glove: eight-sided rings from the armhole to the wrist, a palm, four fingers
//! that grow out of the knuckles and a thumb out of the palm's side.

use super::plan;
use super::sculpt::{Row, Sculpt, UvBox, mixed};
use std::f32::consts::TAU;
use understudy_core::Vec3;

const SLEEVE_UV: UvBox = UvBox(0.005, 0.465, 0.125, 0.76);
const PALM_UV: UvBox = UvBox(0.135, 0.465, 0.255, 0.60);
const FINGER_UV: UvBox = UvBox(0.135, 0.61, 0.255, 0.90);
const THUMB_UV: UvBox = UvBox(0.005, 0.77, 0.125, 0.90);

/// Distance from the shoulder, radius up, radius to the front, segment of the band that ends here.
const RINGS: [(f32, f32, f32, &str); 9] = [
    (4.5, 7.9, 7.9, "coat"),
    (13.0, 6.9, 6.9, "coat"),
    (23.5, 6.3, 6.3, "coat"),
    (29.0, 6.1, 6.3, "coat"),
    (34.5, 6.2, 6.2, "coat"),
    (42.0, 5.4, 5.5, "coat"),
    (39.6, 8.0, 8.2, "gauntlet"),
    (48.5, 5.6, 5.9, "gauntlet"),
    (55.0, 3.5, 4.5, "glove"),
];

fn sleeve_weights(sculpt: &Sculpt<'_>, ring: usize, around: usize) -> Row {
    let named = |weights: &[(&str, f32)]| sculpt.row(weights);
    match ring {
        0 => {
            // The armpit follows the chest a little longer than the shoulder's top.
            let under = [0.0, 0.0, 0.1, 0.2, 0.25, 0.2, 0.1, 0.0][around];
            let row = named(&[("shoulder_helper_l", 0.55), ("upper_arm_twist_1_l", 0.45)]);
            mixed(&row, &named(&[("chest", 1.0)]), under)
        }
        1 => named(&[("upper_arm_twist_1_l", 0.7), ("upper_arm_twist_2_l", 0.3)]),
        2 => named(&[("upper_arm_twist_2_l", 0.4), ("upper_arm_l", 0.5), ("elbow_helper_l", 0.1)]),
        3 => named(&[("upper_arm_l", 0.22), ("elbow_helper_l", 0.56), ("forearm_l", 0.22)]),
        4 => named(&[("elbow_helper_l", 0.1), ("forearm_l", 0.55), ("forearm_twist_1_l", 0.35)]),
        5 | 6 => named(&[("forearm_twist_1_l", 0.8), ("forearm_twist_2_l", 0.2)]),
        7 => named(&[("forearm_twist_2_l", 1.0)]),
        _ => named(&[("forearm_twist_2_l", 0.15), ("wrist_helper_l", 0.6), ("hand_l", 0.25)]),
    }
}

/// Adds the arm on the armhole.
pub fn build(sculpt: &mut Sculpt<'_>, armhole: &[u32]) {
    let mut last = armhole.to_vec();
    let total = 55.0;
    let mut before = 0.0;
    for (index, (distance, up, front, segment)) in RINGS.into_iter().enumerate() {
        let (centre, axis) = on_arm(distance);
        let top = Vec3::new(1.0, 1.0, 0.0).normalize();
        let [_, back, _] = plan::hand_axes();
        let turn = ((distance - 30.0) / 25.0).clamp(0.0, 1.0);
        let top = top.lerp(back, turn);
        let top = (top - axis * axis.dot(top)).normalize();
        let side = axis.cross(top);
        let mut ring = Vec::new();
        for around in 0..8 {
            let (sin, cos) = (TAU * around as f32 / 8.0).sin_cos();
            let point = centre + top * (up * cos) + side * (front * sin);
            let weights = sleeve_weights(sculpt, index, around);
            ring.push(sculpt.vertex(point, weights));
        }
        let now = (before + 0.01f32).max(distance / total);
        sculpt.band(&last, &ring, true, segment, SLEEVE_UV, (before, now.min(1.0)));
        before = now;
        last = ring;
    }
    hand(sculpt, &last);
}

/// Centre and direction of the arm at a distance from the shoulder.
fn on_arm(distance: f32) -> (Vec3, Vec3) {
    let (upper, lower) = (plan::upper_arm_direction(), plan::forearm_direction());
    let bend = ((distance - plan::UPPER_ARM) / 10.0 + 0.5).clamp(0.0, 1.0);
    let axis = upper.lerp(lower, bend).normalize();
    if distance < plan::UPPER_ARM {
        (plan::SHOULDER + upper * distance, axis)
    } else {
        (plan::elbow() + lower * (distance - plan::UPPER_ARM), axis)
    }
}

/// Ring order as on the sleeve: back of the hand, towards the thumb, palm, little finger.
fn palm_ring(sculpt: &mut Sculpt<'_>, along: f32, width: [f32; 2], thick: [f32; 2], row: &Row) -> Vec<u32> {
    let shape = [
        (-0.1, 1.0),
        (0.72, 0.82),
        (1.0, 0.0),
        (0.74, -0.85),
        (-0.1, -1.0),
        (-0.76, -0.85),
        (-1.0, 0.0),
        (-0.76, 0.78),
    ];
    shape
        .map(|(side, back): (f32, f32)| {
            let side = side * if side > 0.0 { width[0] } else { width[1] };
            let back = back * if back > 0.0 { thick[0] } else { thick[1] };
            sculpt.vertex(plan::in_hand(along, side, back), row.clone())
        })
        .to_vec()
}

fn hand(sculpt: &mut Sculpt<'_>, wrist: &[u32]) {
    let hand = sculpt.row(&[("hand_l", 1.0)]);
    let heel_row = sculpt.row(&[("hand_l", 0.9), ("thumb_1_l", 0.1)]);
    let heel = palm_ring(sculpt, 3.0, [4.5, 4.4], [2.1, 2.5], &heel_row);
    let palm = palm_ring(sculpt, 7.2, [5.0, 5.0], [2.2, 2.4], &hand);
    sculpt.band(wrist, &heel, true, "glove", PALM_UV, (0.0, 0.3));
    // All around but the two faces out of which the thumb grows.
    let around = [3usize, 4, 5, 6, 7, 0, 1];
    let pick = |ring: &[u32]| around.map(|place| ring[place]).to_vec();
    sculpt.band(&pick(&heel), &pick(&palm), false, "glove", PALM_UV, (0.3, 0.65));
    thumb(sculpt, [heel[1], heel[2], heel[3], palm[3], palm[2], palm[1]]);
    let knuckles = knuckles(sculpt, &palm);
    for (index, finger) in plan::fingers().iter().enumerate() {
        let (back, front) = (&knuckles.0, &knuckles.1);
        let base = [back[index], back[index + 1], front[index + 1], front[index]];
        let width = (FINGER_UV.2 - FINGER_UV.0) / 4.0;
        let left = FINGER_UV.0 + width * index as f32;
        let uv = UvBox(left, FINGER_UV.1, left + width * 0.92, FINGER_UV.3);
        finger_tube(sculpt, finger, base, uv);
    }
}

/// Five vertices on the back and five on the palm's side, thumb first, joined to the palm ring.
fn knuckles(sculpt: &mut Sculpt<'_>, palm: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let along = [10.0, 10.5, 10.6, 10.0, 8.8];
    let side = [4.95, 2.5, 0.0, -2.45, -4.75];
    let names = ["index", "middle", "ring", "pinky"].map(|name| format!("{name}_1_l"));
    let mut back = Vec::new();
    let mut front = Vec::new();
    for place in 0..5usize {
        let near = [place.saturating_sub(1), place.min(3)];
        let finger = near.map(|index| sculpt.row(&[(names[index].as_str(), 1.0)]));
        let row = mixed(&sculpt.row(&[("hand_l", 1.0)]), &mixed(&finger[0], &finger[1], 0.5), 0.4);
        let outer = place == 0 || place == 4;
        let high = if outer { 1.2 } else { 1.7 };
        back.push(sculpt.vertex(plan::in_hand(along[place], side[place], high), row.clone()));
        let low = if outer { -1.2 } else { -1.6 };
        front.push(sculpt.vertex(plan::in_hand(along[place] - 0.4, side[place], low), row));
    }
    let segment = sculpt.cage.segment("glove");
    let uv = |u: f32, v: f32| PALM_UV.at(u, v);
    let (l, h) = (0.68, 1.0);
    // palm: 0 back middle, 1 back thumb, 2 thumb side, 3 palm thumb, 4 palm middle, 5 palm little,
    // 6 little side, 7 back little.
    let quads = [
        ([palm[1], palm[0], back[2], back[1]], [uv(0.1, l), uv(0.2, l), uv(0.2, h), uv(0.15, h)]),
        ([palm[0], palm[7], back[3], back[2]], [uv(0.2, l), uv(0.3, l), uv(0.25, h), uv(0.2, h)]),
        ([palm[4], palm[3], front[1], front[2]], [uv(0.7, l), uv(0.8, l), uv(0.75, h), uv(0.7, h)]),
        ([palm[5], palm[4], front[2], front[3]], [uv(0.6, l), uv(0.7, l), uv(0.7, h), uv(0.65, h)]),
        ([palm[2], palm[1], back[0], front[0]], [uv(0.0, l), uv(0.1, l), uv(0.1, h), uv(0.03, h)]),
        ([palm[7], palm[6], front[4], back[4]], [uv(0.3, l), uv(0.4, l), uv(0.37, h), uv(0.33, h)]),
    ];
    for (corners, uvs) in quads {
        sculpt.cage.quad(corners, uvs, segment);
    }
    let triangles = [
        ([palm[1], back[1], back[0]], [uv(0.1, l), uv(0.15, h), uv(0.1, h)]),
        ([palm[7], back[4], back[3]], [uv(0.3, l), uv(0.33, h), uv(0.25, h)]),
        ([palm[3], front[0], front[1]], [uv(0.8, l), uv(0.85, h), uv(0.75, h)]),
        ([palm[5], front[3], front[4]], [uv(0.6, l), uv(0.65, h), uv(0.55, h)]),
        ([palm[3], palm[2], front[0]], [uv(0.8, l), uv(0.95, l), uv(0.85, h)]),
        ([palm[6], palm[5], front[4]], [uv(0.5, l), uv(0.6, l), uv(0.55, h)]),
    ];
    for (corners, uvs) in triangles {
        sculpt.cage.triangle(corners, uvs, segment);
    }
    (back, front)
}

fn finger_tube(sculpt: &mut Sculpt<'_>, finger: &plan::Finger, base: [u32; 4], uv: UvBox) {
    let [_, back, _] = plan::hand_axes();
    let name = |joint: usize| format!("{}_{joint}_l", finger.name);
    let [first, second, third] = [1, 2, 3].map(|joint| sculpt.row(&[(name(joint).as_str(), 1.0)]));
    let [a, b, c, tip] = finger.joints;
    let stations = [
        (a.lerp(b, 0.82), c - a, 1.26, mixed(&first, &second, 0.32)),
        (c, tip - b, 1.14, mixed(&second, &third, 0.5)),
        (tip, tip - c, 0.86, third),
    ];
    let mut last = base.to_vec();
    for (index, (centre, axis, radius, row)) in stations.into_iter().enumerate() {
        let axis = axis.normalize();
        let up = (back - axis * axis.dot(back)).normalize();
        let side = axis.cross(up);
        let corners = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)];
        let ring: Vec<u32> = corners
            .map(|(s, u): (f32, f32)| {
                let point = centre + (side * s + up * u) * radius;
                sculpt.vertex(point, row.clone())
            })
            .to_vec();
        let (low, high) = (index as f32 * 0.29, (index + 1) as f32 * 0.29);
        sculpt.band(&last, &ring, true, "glove", uv, (low, high));
        last = ring;
    }
    let segment = sculpt.cage.segment("glove");
    let cap = [uv.at(0.3, 0.9), uv.at(0.7, 0.9), uv.at(0.7, 1.0), uv.at(0.3, 1.0)];
    sculpt.cage.quad([last[0], last[1], last[2], last[3]], cap, segment);
}

fn thumb(sculpt: &mut Sculpt<'_>, base: [u32; 6]) {
    let [along, back, side] = plan::hand_axes();
    let [first, second, third] =
        [1, 2, 3].map(|joint| sculpt.row(&[(format!("thumb_{joint}_l").as_str(), 1.0)]));
    let hand = sculpt.row(&[("hand_l", 1.0)]);
    let joints = plan::thumb().joints;
    let stations = [
        (
            joints[0].lerp(joints[1], 0.8),
            joints[1] - joints[0],
            1.75,
            mixed(&mixed(&hand, &first, 0.85), &second, 0.2),
        ),
        (joints[1].lerp(joints[2], 0.55), joints[2] - joints[1], 1.5, second.clone()),
        (joints[2], joints[3] - joints[1], 1.42, mixed(&second, &third, 0.5)),
        (joints[3], joints[3] - joints[2], 0.95, third),
    ];
    let mut last = base.to_vec();
    for (index, (centre, axis, radius, row)) in stations.into_iter().enumerate() {
        let axis = axis.normalize();
        // Towards the fingers, and out of the back of the hand.
        let fingers = along * 0.8 - side * 0.6;
        let right = (fingers - axis * axis.dot(fingers)).normalize();
        let up = (back - axis * axis.dot(back) - right * right.dot(back)).normalize();
        let angles = [120.0f32, 180.0, 240.0, 300.0, 0.0, 60.0];
        let ring: Vec<u32> = angles
            .map(|angle| {
                let (sin, cos) = angle.to_radians().sin_cos();
                sculpt.vertex(centre + (right * cos + up * sin) * radius, row.clone())
            })
            .to_vec();
        let (low, high) = (index as f32 * 0.21, (index + 1) as f32 * 0.21);
        sculpt.band(&last, &ring, true, "glove", THUMB_UV, (low, high));
        last = ring;
    }
    let segment = sculpt.cage.segment("glove");
    let uv = |u: f32, v: f32| THUMB_UV.at(u, v);
    let (l, h) = (0.88, 1.0);
    let first = [last[0], last[1], last[2], last[3]];
    sculpt.cage.quad(first, [uv(0.2, l), uv(0.4, l), uv(0.4, h), uv(0.2, h)], segment);
    let second = [last[3], last[4], last[5], last[0]];
    sculpt.cage.quad(second, [uv(0.6, l), uv(0.8, l), uv(0.8, h), uv(0.6, h)], segment);
}
