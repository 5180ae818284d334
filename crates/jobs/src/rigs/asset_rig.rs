//! A glTF file as a rig: its morph targets and its animated bones become controls, its animations become
//! clips of those controls. Start at [`asset_rig`].

use understudy_core::skeleton::JointTransform;
use understudy_core::{
    Channel, Clip, ControlSpec, ControlSpecs, Curve, Interpolation, JointClip, Key, Skeleton, Vec3,
};
use understudy_io::gltf::GltfAsset;
use understudy_rigs::deformers::{Blendshapes, RigSize, Skinning};
use understudy_rigs::{RigError, StackParts, StackRig};

/// The channels of a bone in the order in which they are measured.
const CHANNELS: [(Channel, &str); 9] = [
    (Channel::RotateX, "rotate_x"),
    (Channel::RotateY, "rotate_y"),
    (Channel::RotateZ, "rotate_z"),
    (Channel::TranslateX, "translate_x"),
    (Channel::TranslateY, "translate_y"),
    (Channel::TranslateZ, "translate_z"),
    (Channel::ScaleX, "scale_x"),
    (Channel::ScaleY, "scale_y"),
    (Channel::ScaleZ, "scale_z"),
];

/// A channel that stays nearer to rest than this (degrees, cm, or scale) is no animation.
const STILL: f32 = 1e-3;

/// Range of a rotation that no clip shows, degrees.
const FREE_ROTATION: f32 = 45.0;

/// Builds the rig. A bone gets a control for every channel that some clip moves, with the range that
/// the clips show and a tenth more; in a file without animation every joint of a skin gets its three
/// rotations. A shape's range is 0 to 1, wider where a clip goes further.
pub fn asset_rig(name: &str, asset: &GltfAsset) -> Result<StackRig, RigError> {
    let skeleton = &asset.skeleton;
    let measured: Vec<Vec<Vec<[f32; 9]>>> =
        asset.clips.iter().map(|clip| measure_clip(skeleton, clip)).collect();
    let mut specs = Vec::new();
    let mut sources = Vec::new();
    for (bone, data) in skeleton.bones().iter().enumerate() {
        for (place, (channel, label)) in CHANNELS.iter().enumerate() {
            let values = measured.iter().flat_map(|frames| frames.iter().map(|f| f[bone][place]));
            let range = if asset.clips.is_empty() {
                let free = place < 3 && asset.joints.contains(&bone);
                free.then_some((-FREE_ROTATION, FREE_ROTATION))
            } else {
                shown_range(values)
            };
            if let Some((low, high)) = range {
                specs.push(ControlSpec::joint(
                    format!("{}.{label}", data.name),
                    &data.name,
                    *channel,
                    low,
                    high,
                ));
                sources.push((bone, place));
            }
        }
    }
    let joint_controls = specs.len();
    let shape_names: Vec<&str> =
        asset.shapes.iter().flat_map(|shapes| shapes.shapes()).map(|shape| shape.name.as_str()).collect();
    for (shape, name) in shape_names.iter().enumerate() {
        let rows = asset.clips.iter().flat_map(|clip| &clip.shape_weights);
        let default = asset.rest_weights[shape];
        let (low, high) = rows.fold((default.min(0.0), default.max(1.0)), |(low, high), row| {
            (low.min(row[shape]), high.max(row[shape]))
        });
        specs.push(ControlSpec::number(*name, low, high, default));
    }
    let specs = ControlSpecs::new(specs)?;

    let clips = asset.clips.iter().zip(&measured).map(|(clip, frames)| {
        let rows = frames.len().max(clip.shape_weights.len());
        let time = |frame: usize| frame as f32 / clip.rate;
        let curve = |control: usize, value: &dyn Fn(usize) -> f32| Curve {
            control: specs.get(control).name.clone(),
            keys: (0..rows).map(|frame| Key { time: time(frame), value: value(frame) }).collect(),
            interpolation: Interpolation::Linear,
        };
        let mut curves = Vec::new();
        for (control, &(bone, place)) in sources.iter().enumerate() {
            if frames.iter().any(|frame| frame[bone][place].abs() > STILL) {
                curves.push(curve(control, &|frame| frames[frame][bone][place]));
            }
        }
        if !clip.shape_weights.is_empty() {
            for shape in 0..shape_names.len() {
                curves.push(curve(joint_controls + shape, &|frame| clip.shape_weights[frame][shape]));
            }
        }
        Clip { name: clip.name.clone(), duration: time(rows.saturating_sub(1)), curves }
    });
    let clips = clips.collect();

    let size = RigSize::new(&asset.mesh, Some(skeleton), &specs);
    let mut parts = StackParts {
        skeleton: Some(skeleton.clone()),
        weights: Some(asset.skin.clone()),
        blendshapes: asset.shapes.clone(),
        clips,
        colours: asset.colours.iter().flatten().map(|colour| to_srgb(*colour)).collect(),
        ..StackParts::default()
    };
    if let Some(shapes) = &asset.shapes {
        parts.deformers.push(Box::new(Blendshapes::by_name(shapes.clone(), &specs, &size)?));
    }
    parts.deformers.push(Box::new(Skinning::linear(asset.skin.clone(), &size)?));
    StackRig::new(name, asset.mesh.clone(), specs, parts)
}

/// Every frame of a clip as offsets from the rest pose, `[F][J][channel]`, in the units of controls.
fn measure_clip(skeleton: &Skeleton, clip: &JointClip) -> Vec<Vec<[f32; 9]>> {
    let mut previous = vec![Vec3::ZERO; skeleton.len()];
    let frame = |pose: &understudy_core::JointPose| {
        let bones = skeleton.bones().iter().zip(&pose.0).zip(&mut previous);
        bones.map(|((bone, joint), previous)| measure_joint(&bone.rest, joint, previous)).collect()
    };
    clip.poses.iter().map(frame).collect()
}

/// What joint channels must hold so that they turn `rest` into `joint`. Angles stay near `previous`
/// (degrees), which is replaced: a turn beyond 180° goes on instead of jumping back.
fn measure_joint(rest: &JointTransform, joint: &JointTransform, previous: &mut Vec3) -> [f32; 9] {
    let turn = (rest.rotation.inverse() * joint.rotation).normalize();
    let (z, y, x) = turn.to_euler(understudy_core::EulerRot::ZYX);
    let near = |value: f32, previous: f32| value + 360.0 * ((previous - value) / 360.0).round();
    let settle =
        |x: f32, y: f32, z: f32| Vec3::new(near(x, previous.x), near(y, previous.y), near(z, previous.z));
    let (x, y, z) = (x.to_degrees(), y.to_degrees(), z.to_degrees());
    // Every rotation has two triples of angles; the nearer one continues the motion.
    let (one, other) = (settle(x, y, z), settle(x + 180.0, 180.0 - y, z + 180.0));
    let angles =
        if one.distance_squared(*previous) <= other.distance_squared(*previous) { one } else { other };
    *previous = angles;
    let moved = joint.translation - rest.translation;
    let ratio = |now: f32, rest: f32| if rest == 0.0 { 0.0 } else { now / rest - 1.0 };
    let [sx, sy, sz] = std::array::from_fn(|axis| ratio(joint.scale[axis], rest.scale[axis]));
    [angles.x, angles.y, angles.z, moved.x, moved.y, moved.z, sx, sy, sz]
}

/// The range that values show, with rest in it and a tenth more; `None` when nothing moves.
fn shown_range(values: impl Iterator<Item = f32>) -> Option<(f32, f32)> {
    let (low, high) = values.fold((0.0f32, 0.0f32), |(low, high), v| (low.min(v), high.max(v)));
    let more = (high - low) * 0.1;
    (high - low > STILL).then_some((low - more, high + more))
}

/// Files hold linear light; pictures want sRGB.
fn to_srgb(linear: Vec3) -> Vec3 {
    let channel = |v: f32| {
        let v = v.clamp(0.0, 1.0);
        if v <= 0.003_130_8 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 }
    };
    Vec3::new(channel(linear.x), channel(linear.y), channel(linear.z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Controls, Quat};
    use understudy_rigs::{Rig, RigPose};
    use understudy_testkit::shared_data;

    #[test]
    fn measured_channels_give_the_joint_back() {
        use understudy_rigs::JointChange;
        let rest = JointTransform {
            rotation: Quat::from_rotation_y(0.4) * Quat::from_rotation_x(-1.0),
            translation: Vec3::new(1.0, 2.0, 3.0),
            scale: Vec3::new(1.0, 2.0, 0.5),
        };
        let mut previous = Vec3::ZERO;
        let mut last = Vec3::ZERO;
        for step in 0..80 {
            let angle = step as f32 * 0.1;
            let joint = JointTransform {
                rotation: rest.rotation * Quat::from_axis_angle(Vec3::new(0.2, 0.5, 1.0).normalize(), angle),
                translation: Vec3::new(-4.0, 2.5, angle),
                scale: Vec3::new(1.5, 1.0, 0.5),
            };
            let values = measure_joint(&rest, &joint, &mut previous);
            let mut change = JointChange::default();
            CHANNELS.iter().zip(values).for_each(|((channel, _), value)| change.set(*channel, value));
            let mut again = rest;
            change.apply(&mut again);
            assert!(again.rotation.angle_between(joint.rotation) < 2e-3, "{angle}");
            assert!(again.translation.distance(joint.translation) < 1e-5);
            assert!(again.scale.distance(joint.scale) < 1e-5);
            // Two whole turns without a jump.
            assert!(previous.distance(last) < 40.0, "{last} to {previous}");
            last = previous;
        }
    }

    #[test]
    fn real_files_move_as_they_say() {
        let Some(data) = shared_data() else { return };
        for file in [
            "gltf/Fox/Fox.glb",
            "gltf/RobotExpressive.glb",
            "kaykit/Knight.glb",
            "gltf/MorphStressTest/MorphStressTest.glb",
        ] {
            let asset = understudy_io::gltf::read(&data.join(file)).expect("a good file");
            let rig = asset_rig("test", &asset).expect("a good rig");
            // A channel that stays within a thousandth of a degree counts as still: 2e-5 of a lever.
            let (low, high) = asset.mesh.bounds();
            let tolerance = 3e-5 * low.distance(high).max(asset.rest_vertices()[0].length());
            let mut pose = RigPose::default();
            for (clip, own) in asset.clips.iter().zip(rig.clips()).take(12) {
                let sampled = own.sample(rig.specs(), clip.rate).expect("in range");
                for frame in (0..sampled.frames.len()).step_by(7) {
                    let controls: &Controls = &sampled.frames[frame];
                    rig.evaluate(controls, &mut pose).expect("finite");
                    let truth = asset.evaluate(clip, frame);
                    let worst =
                        truth.iter().zip(&pose.vertices).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
                    assert!(worst < tolerance, "{file}, '{}', frame {frame}: {worst} cm", clip.name);
                }
            }
        }
    }
}
