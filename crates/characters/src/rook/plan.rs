//! Where Rook's joints are: the left half in centimetres, Y up, looking along +Z. The skeleton, the
//! cage and the deformers all take their measures from here.

use understudy_core::{Quat, Vec3};

/// Left shoulder.
pub const SHOULDER: Vec3 = Vec3::new(18.0, 147.5, -1.5);
/// Length of the upper arm.
pub const UPPER_ARM: f32 = 29.0;
/// Length of the forearm.
pub const FOREARM: f32 = 26.5;
/// Left hip.
pub const HIP: Vec3 = Vec3::new(9.6, 97.0, 0.0);
/// Left knee.
pub const KNEE: Vec3 = Vec3::new(11.0, 53.0, 0.8);
/// Left ankle.
pub const ANKLE: Vec3 = Vec3::new(11.9, 10.5, -2.0);
/// Left ball of the foot.
pub const BALL: Vec3 = Vec3::new(13.0, 2.6, 12.5);
/// The head's turning point.
pub const HEAD: Vec3 = Vec3::new(0.0, 165.0, -1.0);
/// Pivot of the beak.
pub const BEAK: Vec3 = Vec3::new(0.0, 171.5, 9.0);

/// Heights at which a bone of the spine owns the surface, bottom to top.
pub const SPINE: [(f32, &str); 8] = [
    (98.0, "hips"),
    (108.0, "spine_1"),
    (117.0, "spine_2"),
    (126.0, "spine_3"),
    (139.0, "chest"),
    (157.0, "neck_1"),
    (161.5, "neck_2"),
    (167.0, "head"),
];

/// Direction of the upper arm: 45 degrees down.
pub fn upper_arm_direction() -> Vec3 {
    Vec3::new(1.0, -1.0, -0.042).normalize()
}

/// Direction of the forearm: the elbow rests a little bent.
pub fn forearm_direction() -> Vec3 {
    Vec3::new(0.68, -0.71, 0.15).normalize()
}

/// Left elbow.
pub fn elbow() -> Vec3 {
    SHOULDER + upper_arm_direction() * UPPER_ARM
}

/// Left wrist.
pub fn wrist() -> Vec3 {
    elbow() + forearm_direction() * FOREARM
}

/// Axes of the left hand: along the fingers, out of the back of the hand, towards the thumb.
pub fn hand_axes() -> [Vec3; 3] {
    let along = forearm_direction();
    let back = Vec3::new(0.72, 0.68, 0.08);
    let back = (back - along * along.dot(back)).normalize();
    [along, back, along.cross(back)]
}

/// A point of the left hand: `along`, `thumb` and `back` in cm from the wrist.
pub fn in_hand(along: f32, thumb: f32, back: f32) -> Vec3 {
    let [a, b, t] = hand_axes();
    wrist() + a * along + t * thumb + b * back
}

/// A finger's joints and tip, base first.
#[derive(Debug, Clone, Copy)]
pub struct Finger {
    /// Name of the finger.
    pub name: &'static str,
    /// Base, second and third joint, tip.
    pub joints: [Vec3; 4],
}

/// The four fingers, index first. They rest a little curled and fanned.
pub fn fingers() -> [Finger; 4] {
    let [along, back, thumb] = hand_axes();
    let finger = |name, start: f32, side: f32, length: f32, fan: f32| {
        let base = in_hand(start, side, 0.1);
        let mut joints = [base; 4];
        let mut at = base;
        for (place, (share, curl)) in [(0.45, 5.0f32), (0.30, 16.0), (0.25, 26.0)].into_iter().enumerate() {
            let straight = (along + thumb * fan).normalize();
            let curl = curl.to_radians();
            at += (straight * curl.cos() - back * curl.sin()) * (length * share);
            joints[place + 1] = at;
        }
        Finger { name, joints }
    };
    [
        finger("index", 10.0, 3.75, 9.4, 0.09),
        finger("middle", 10.5, 1.25, 10.2, 0.02),
        finger("ring", 10.1, -1.25, 9.6, -0.05),
        finger("pinky", 9.1, -3.65, 7.8, -0.13),
    ]
}

/// The thumb: root in the palm, two joints, tip.
pub fn thumb() -> Finger {
    let joints =
        [in_hand(2.2, 2.8, -0.8), in_hand(5.6, 5.9, -1.7), in_hand(8.4, 7.7, -2.4), in_hand(11.0, 8.7, -3.1)];
    Finger { name: "thumb", joints }
}

/// A bone's frame: y along the bone, and a positive turn about x bends it towards `flex`.
pub fn frame(along: Vec3, flex: Vec3) -> Quat {
    let y = along.normalize();
    let x = y.cross(flex).normalize();
    Quat::from_mat3(&understudy_core::Mat3::from_cols(x, y, x.cross(y))).normalize()
}

/// The hem chains of the left half, front to back: name and the column of the coat each hangs in.
pub const HEM: [(&str, usize); 4] = [("hem_front", 1), ("hem_side", 3), ("hem_rear", 5), ("hem_tail", 7)];
