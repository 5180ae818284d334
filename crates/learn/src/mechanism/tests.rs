use super::*;
use understudy_core::mechanism::{Drive, Helper, Twist};
use understudy_core::{
    Bone, Channel, Constraint, ControlSpec, GlobalPose, JointMechanism, JointPose, JointTransform, Quat,
    Random, Skeleton, Vec3,
};
use understudy_runtime::MechanismKind;

/// An arm on a moving root: joints with three axes, a twist bone, a helper, a bone that a number stretches, and one that
/// never moves. Some controls move nothing.
fn arm() -> (ControlSpecs, JointMechanism) {
    let bone = |name: &str, parent: Option<usize>| Bone {
        name: name.into(),
        parent,
        rest: JointTransform {
            rotation: Quat::from_rotation_z(0.4),
            translation: Vec3::new(2.0, 25.0, 0.0),
            scale: Vec3::ONE,
        },
    };
    let names = [("root", None), ("upper", Some(0)), ("lower", Some(1)), ("hand", Some(2))];
    let more = [("twist", Some(1)), ("elbow", Some(1)), ("belly", Some(0)), ("badge", Some(0))];
    let bones = names.into_iter().chain(more).map(|(name, parent)| bone(name, parent)).collect();
    let skeleton = Skeleton::new(bones).expect("a tree");
    let mut specs = vec![
        ControlSpec::joint("walk", "root", Channel::TranslateZ, -100.0, 100.0),
        ControlSpec::joint("face", "root", Channel::RotateY, -180.0, 180.0),
    ];
    let axes = [Channel::RotateX, Channel::RotateY, Channel::RotateZ];
    for name in ["upper", "lower", "hand"] {
        for (axis, channel) in axes.into_iter().enumerate() {
            specs.push(ControlSpec::joint(format!("{name}.{axis}"), name, channel, -70.0, 70.0));
        }
    }
    specs.push(ControlSpec::number("breathe", -1.0, 1.0, 0.0));
    specs.push(ControlSpec::number("smile", 0.0, 1.0, 0.0));
    specs.push(ControlSpec::number("frown", 0.0, 1.0, 0.0));
    let breathe = specs.len() - 3;
    let specs = ControlSpecs::new(specs).expect("valid specs");
    let constraints = vec![
        Constraint::Twist(Twist::new(&skeleton, 3, 4, Vec3::Y, 0.5)),
        Constraint::Helper(Helper::new(&skeleton, 2, 5, 0.5, Vec3::Z)),
        Constraint::Drive(Drive { control: breathe, bone: 6, channel: Channel::ScaleX, gain: 0.2 }),
    ];
    let mechanism = JointMechanism::new(skeleton, &specs, constraints).expect("valid");
    (specs, mechanism)
}

fn record(specs: &ControlSpecs, mechanism: &JointMechanism, count: u64) -> PosedBones {
    let (mut joints, mut global) = (JointPose::default(), GlobalPose::default());
    let (mut bones, mut controls) = (Vec::new(), Vec::new());
    for pose in 0..count {
        let mut random = Random::stream(4, pose);
        let draw: Vec<f32> = specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
        mechanism.evaluate(&draw, &mut joints, &mut global);
        bones.extend_from_slice(&global.0);
        controls.extend(draw);
    }
    let skeleton = mechanism.skeleton();
    PosedBones {
        specs: specs.clone(),
        names: skeleton.bones().iter().map(|bone| bone.name.clone()).collect(),
        parents: skeleton.bones().iter().map(|bone| bone.parent).collect(),
        rest: skeleton.rest_global().to_vec(),
        bones,
        controls,
        guides: 0,
    }
}

#[test]
fn bones_are_learned_from_poses_alone_and_keep_their_lengths() {
    let (specs, mechanism) = arm();
    let poses = record(&specs, &mechanism, 1200);
    let settings = MechanismSettings { steps: 1500, ..MechanismSettings::default() };
    let learned = learn_mechanism(&poses, None, &settings, &|_| true).expect("learned");
    let fit = |name: &str| learned.fits.iter().find(|fit| fit.name == name);
    // Euler angles are found in closed form, exactly the controls that move a bone are seen.
    for (name, inputs) in
        [("upper", 3), ("lower", 3), ("hand", 3), ("root", 2), ("belly", 1), ("twist", 3), ("elbow", 3)]
    {
        let fit = fit(name).expect("it moves");
        assert_eq!(fit.inputs, inputs, "{fit:?}");
        let shares = ["twist", "elbow"].contains(&name);
        assert!(shares || fit.network.is_none() && fit.closed < settings.enough, "{fit:?}");
    }
    assert!(fit("badge").is_none(), "what never moves is not learned");
    let figures = learned.mechanism.figures.expect("was measured");
    assert!(figures.mean_degrees < 0.06 && figures.mean_origin_mm < 0.15, "{figures:?}, {:?}", learned.fits);
    // A limb whose bones only turn keeps its lengths, also far outside of what was learned.
    let far: Vec<f32> = specs.iter().map(|spec| 1.6 * spec.high).collect();
    let bones = learned.mechanism.evaluate(&far);
    let length = |a: usize, b: usize| bones[a].translation.distance(bones[b].translation);
    let rest = mechanism.skeleton().rest_global();
    for (a, b) in [(1, 2), (2, 3)] {
        let want = rest[a].translation.distance(rest[b].translation);
        assert!((length(a, b) - want).abs() < 1e-3, "{} {want}", length(a, b));
    }
    // Each bone is a rotation, but for the one that is stretched.
    let MechanismKind::Learned(parts) = learned.mechanism.kind() else { panic!("it was learned") };
    let stretched: Vec<bool> = parts.parts().iter().map(|bone| bone.moves.stretches).collect();
    assert_eq!(stretched, [false, false, false, false, false, false, true, false]);
}

#[test]
fn a_listener_stops_it_and_few_poses_are_refused() {
    let (specs, mechanism) = arm();
    let stopped =
        learn_mechanism(&record(&specs, &mechanism, 60), None, &MechanismSettings::default(), &|_| false);
    assert!(matches!(stopped, Err(MechanismLearnError::Stopped)));
    let few = learn_mechanism(&record(&specs, &mechanism, 9), None, &MechanismSettings::default(), &|_| true);
    assert!(matches!(few, Err(MechanismLearnError::TooFewPoses(9))));
}

#[test]
fn a_bone_that_shrinks_to_nothing_and_one_that_is_mirrored_are_learned() {
    let specs = ControlSpecs::new(vec![
        ControlSpec::number("show", 0.0, 1.0, 0.0),
        ControlSpec::number("turn", -2.0, 2.0, 0.0),
    ])
    .expect("valid specs");
    let (mut bones, mut controls) = (Vec::new(), Vec::new());
    for pose in 0..300 {
        let mut random = Random::stream(9, pose);
        let (show, turn) = (random.uniform(0.0, 1.0).max(0.2) - 0.2, random.uniform(-2.0, 2.0));
        let root = Affine3A::from_translation(Vec3::Y * turn);
        let mirrored = Affine3A::from_scale_rotation_translation(
            Vec3::new(1.0, 1.0, -1.0),
            Quat::from_rotation_x(turn),
            Vec3::X * 5.0,
        );
        // A child of a bone that may have no size.
        let child = Affine3A::from_translation(Vec3::Z * turn);
        bones.extend([root, root * Affine3A::from_scale(Vec3::splat(show)), root * mirrored, child]);
        controls.extend([show + 0.2, turn]);
    }
    let mut rest = bones[..4].to_vec();
    rest[1] = rest[0];
    let poses = PosedBones {
        specs,
        names: ["root", "hidden", "mirror", "child"].map(String::from).to_vec(),
        parents: vec![None, Some(0), Some(0), Some(1)],
        rest,
        bones,
        controls,
        guides: 0,
    };
    let learned =
        learn_mechanism(&poses, None, &MechanismSettings::default(), &|_| true).expect("learned").mechanism;
    for pose in [5, 25, 105] {
        let own = learned.evaluate(poses.controls_of(pose));
        for (bone, (own, truth)) in own.iter().zip(poses.bones_of(pose)).enumerate() {
            assert!(own.abs_diff_eq(*truth, 0.02), "bone {bone}: {own} {truth}");
        }
    }
}
