//! What an animator moves: one number a blendshape, joints, sticky lips and the lattice.

use understudy_core::{BlendshapeRig, Channel, ControlSpec, ControlSpecs};
use understudy_rigs::RigError;

/// A bone, the first part of its controls' names, and for each the rest of the name, channel and range.
type Joint<'a> = (&'a str, &'a str, &'a [(&'a str, Channel, f32, f32)]);

/// All controls; those with a shape first, in the order of the shapes.
pub(super) fn specs(shapes: &BlendshapeRig) -> Result<ControlSpecs, RigError> {
    use Channel::{RotateX, RotateY, RotateZ, TranslateX, TranslateY, TranslateZ};
    let mut list: Vec<ControlSpec> =
        shapes.shapes().iter().map(|shape| ControlSpec::number(shape.name.as_str(), 0.0, 1.0, 0.0)).collect();
    for name in ["lipsSticky_L", "lipsSticky_R"] {
        list.push(ControlSpec::number(name, 0.0, 1.0, 0.0));
    }
    for (name, low, high) in [
        ("headStretch", -0.35, 0.35),
        ("headTaper", -0.3, 0.3),
        ("headBendFront", -18.0, 18.0),
        ("headBendSide", -18.0, 18.0),
        ("headTwist", -20.0, 20.0),
        ("craniumGrow", -1.0, 1.0),
        ("jawGrow", -1.0, 1.0),
        ("faceWiden", -1.0, 1.0),
    ] {
        list.push(ControlSpec::number(name, low, high, 0.0));
    }
    let joints: [Joint; 6] = [
        (
            "neck",
            "neck",
            &[("Pitch", RotateX, -25.0, 25.0), ("Yaw", RotateY, -30.0, 30.0), ("Roll", RotateZ, -20.0, 20.0)],
        ),
        (
            "head",
            "head",
            &[
                ("Pitch", RotateX, -30.0, 30.0),
                ("Yaw", RotateY, -40.0, 40.0),
                ("Roll", RotateZ, -25.0, 25.0),
                ("Forward", TranslateZ, -1.0, 1.5),
            ],
        ),
        (
            "jaw",
            "jaw",
            &[
                ("Pitch", RotateX, -1.0, 12.0),
                ("Yaw", RotateY, -5.0, 5.0),
                ("Roll", RotateZ, -4.0, 4.0),
                ("Side", TranslateX, -0.4, 0.4),
                ("Height", TranslateY, -0.4, 0.1),
                ("Depth", TranslateZ, -0.3, 0.5),
            ],
        ),
        ("eye_L", "eye", &[("Pitch_L", RotateX, -20.0, 20.0), ("Yaw_L", RotateY, -25.0, 25.0)]),
        ("eye_R", "eye", &[("Pitch_R", RotateX, -20.0, 20.0), ("Yaw_R", RotateY, -25.0, 25.0)]),
        ("hair_bun", "bun", &[("Pitch", RotateX, -12.0, 12.0), ("Roll", RotateZ, -12.0, 12.0)]),
    ];
    for (bone, name, channels) in joints {
        for (channel_name, channel, low, high) in channels {
            list.push(ControlSpec::joint(format!("{name}{channel_name}"), bone, *channel, *low, *high));
        }
    }
    Ok(ControlSpecs::new(list)?)
}
