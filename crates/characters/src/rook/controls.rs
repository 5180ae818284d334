//! What an animator moves on Rook: joint channels in degrees (positive bends the natural way, equal on
//! both sides for a symmetric pose) and a few numbers for breath, muscles and cloth.

use understudy_core::{Channel, ControlSpec, ControlSpecs};
use understudy_rigs::RigError;

/// Name of a joint control, its bone, channel and range.
type Joint = (&'static str, &'static str, Channel, f32, f32);

const MIDDLE: [Joint; 29] = [
    ("root.move_x", "root", Channel::TranslateX, -40.0, 40.0),
    ("root.move_y", "root", Channel::TranslateY, -10.0, 30.0),
    ("root.move_z", "root", Channel::TranslateZ, -40.0, 40.0),
    ("root.pitch", "root", Channel::RotateX, -15.0, 15.0),
    ("root.turn", "root", Channel::RotateY, -30.0, 30.0),
    ("root.roll", "root", Channel::RotateZ, -15.0, 15.0),
    ("hips.move_x", "hips", Channel::TranslateX, -12.0, 12.0),
    ("hips.move_y", "hips", Channel::TranslateY, -45.0, 6.0),
    ("hips.move_z", "hips", Channel::TranslateZ, -15.0, 15.0),
    ("hips.pitch", "hips", Channel::RotateX, -20.0, 30.0),
    ("hips.turn", "hips", Channel::RotateY, -25.0, 25.0),
    ("hips.roll", "hips", Channel::RotateZ, -15.0, 15.0),
    ("spine_1.bend", "spine_1", Channel::RotateX, -12.0, 20.0),
    ("spine_1.turn", "spine_1", Channel::RotateY, -12.0, 12.0),
    ("spine_1.lean", "spine_1", Channel::RotateZ, -12.0, 12.0),
    ("spine_3.bend", "spine_3", Channel::RotateX, -14.0, 22.0),
    ("spine_3.turn", "spine_3", Channel::RotateY, -18.0, 18.0),
    ("spine_3.lean", "spine_3", Channel::RotateZ, -14.0, 14.0),
    ("chest.bend", "chest", Channel::RotateX, -14.0, 20.0),
    ("chest.turn", "chest", Channel::RotateY, -18.0, 18.0),
    ("chest.lean", "chest", Channel::RotateZ, -12.0, 12.0),
    ("neck.bend", "neck_1", Channel::RotateX, -20.0, 25.0),
    ("neck.turn", "neck_1", Channel::RotateY, -30.0, 30.0),
    ("neck.lean", "neck_1", Channel::RotateZ, -18.0, 18.0),
    ("head.nod", "head", Channel::RotateX, -28.0, 30.0),
    ("head.turn", "head", Channel::RotateY, -40.0, 40.0),
    ("head.tilt", "head", Channel::RotateZ, -22.0, 22.0),
    ("beak.tilt", "beak", Channel::RotateX, -6.0, 10.0),
    ("beak.turn", "beak", Channel::RotateY, -6.0, 6.0),
];

/// The left side; `_r` twins are made of it.
const SIDE: [Joint; 37] = [
    ("clavicle.forward", "clavicle", Channel::RotateX, -15.0, 20.0),
    ("clavicle.up", "clavicle", Channel::RotateZ, -8.0, 28.0),
    ("shoulder.forward", "upper_arm", Channel::RotateX, -45.0, 95.0),
    ("shoulder.twist", "upper_arm", Channel::RotateY, -45.0, 45.0),
    ("shoulder.up", "upper_arm", Channel::RotateZ, -42.0, 100.0),
    ("elbow.bend", "forearm", Channel::RotateX, -6.0, 135.0),
    ("wrist.bend", "hand", Channel::RotateX, -55.0, 65.0),
    ("wrist.twist", "hand", Channel::RotateY, -75.0, 75.0),
    ("wrist.side", "hand", Channel::RotateZ, -20.0, 20.0),
    ("thumb_1.bend", "thumb_1", Channel::RotateX, -15.0, 35.0),
    ("thumb_1.spread", "thumb_1", Channel::RotateZ, -20.0, 25.0),
    ("thumb_2.bend", "thumb_2", Channel::RotateX, -10.0, 50.0),
    ("thumb_3.bend", "thumb_3", Channel::RotateX, -15.0, 65.0),
    ("index_1.bend", "index_1", Channel::RotateX, -20.0, 85.0),
    ("index_1.spread", "index_1", Channel::RotateZ, -6.0, 14.0),
    ("index_2.bend", "index_2", Channel::RotateX, -5.0, 100.0),
    ("index_3.bend", "index_3", Channel::RotateX, -5.0, 70.0),
    ("middle_1.bend", "middle_1", Channel::RotateX, -20.0, 85.0),
    ("middle_1.spread", "middle_1", Channel::RotateZ, -8.0, 8.0),
    ("middle_2.bend", "middle_2", Channel::RotateX, -5.0, 100.0),
    ("middle_3.bend", "middle_3", Channel::RotateX, -5.0, 70.0),
    ("ring_1.bend", "ring_1", Channel::RotateX, -20.0, 85.0),
    ("ring_1.spread", "ring_1", Channel::RotateZ, -12.0, 6.0),
    ("ring_2.bend", "ring_2", Channel::RotateX, -5.0, 100.0),
    ("ring_3.bend", "ring_3", Channel::RotateX, -5.0, 70.0),
    ("pinky_1.bend", "pinky_1", Channel::RotateX, -20.0, 85.0),
    ("pinky_1.spread", "pinky_1", Channel::RotateZ, -18.0, 6.0),
    ("pinky_2.bend", "pinky_2", Channel::RotateX, -5.0, 95.0),
    ("pinky_3.bend", "pinky_3", Channel::RotateX, -5.0, 70.0),
    ("hip.forward", "thigh", Channel::RotateX, -35.0, 105.0),
    ("hip.twist", "thigh", Channel::RotateY, -35.0, 35.0),
    ("hip.out", "thigh", Channel::RotateZ, -15.0, 50.0),
    ("knee.bend", "calf", Channel::RotateX, -3.0, 135.0),
    ("ankle.up", "foot", Channel::RotateX, -45.0, 45.0),
    ("ankle.roll", "foot", Channel::RotateY, -18.0, 18.0),
    ("ankle.turn", "foot", Channel::RotateZ, -22.0, 22.0),
    ("toe.up", "toe", Channel::RotateX, -20.0, 50.0),
];

/// Numbers: name, low, high, default.
const NUMBERS: [(&str, f32, f32, f32); 10] = [
    ("breathe", 0.0, 1.0, 0.0),
    ("flex_l", 0.0, 1.0, 0.0),
    ("flex_r", 0.0, 1.0, 0.0),
    ("hem_flare", -0.3, 1.0, 0.0),
    ("coat_wind_x", -1.0, 1.0, 0.0),
    ("coat_wind_z", -1.0, 1.0, 0.0),
    ("hood_forward", -1.0, 1.0, 0.0),
    ("hood_open", -0.5, 1.0, 0.0),
    ("mantle_lift_l", 0.0, 1.0, 0.0),
    ("mantle_lift_r", 0.0, 1.0, 0.0),
];

/// The checked list.
pub fn specs() -> Result<ControlSpecs, RigError> {
    let mut specs = Vec::new();
    for (name, bone, channel, low, high) in MIDDLE {
        specs.push(ControlSpec::joint(name, bone, channel, low, high));
    }
    for side in ["l", "r"] {
        for (name, bone, channel, low, high) in SIDE {
            let (joint, motion) = name.split_once('.').expect("names are joint.motion");
            let name = format!("{joint}_{side}.{motion}");
            specs.push(ControlSpec::joint(name, format!("{bone}_{side}"), channel, low, high));
        }
    }
    specs.extend(NUMBERS.map(|(name, low, high, default)| ControlSpec::number(name, low, high, default)));
    Ok(ControlSpecs::new(specs)?)
}
