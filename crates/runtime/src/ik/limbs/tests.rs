//! Handles are found by names of many rigs, and move bones and controls to where they are asked to be.

use super::*;
use crate::ik::Reach;
use understudy_core::{
    Bone, Channel, ControlSpec, ControlSpecs, Controls, GlobalPose, JointPose, JointTransform, Random,
    Skeleton,
};

fn named(names: &[(&str, Option<usize>)]) -> Handles {
    Handles::find(names.iter().copied())
}

#[test]
fn usual_names_are_found() {
    let spellings: [[&str; 4]; 6] = [
        ["hips", "upper_arm_l", "forearm_l", "hand_l"],
        ["mixamorig:Hips", "mixamorig:LeftArm", "mixamorig:LeftForeArm", "mixamorig:LeftHand"],
        ["pelvis", "upperarm_l", "lowerarm_l", "hand_l"],
        ["root", "upperarm01.L", "lowerarm01.L", "wrist.L"],
        ["Hips", "UpperArm.L", "LowerArm.L", "Palm.L"],
        ["DEF-hips", "DEF-upper_arm.L", "DEF-forearm.L", "DEF-hand.L"],
    ];
    for [torso, upper, lower, hand] in spellings {
        let handles = named(&[(torso, None), (upper, Some(0)), (lower, Some(1)), (hand, Some(2))]);
        assert_eq!(handles.torso, Some(0), "{torso}");
        assert_eq!(handles.names(), ["hand_L", "torso"], "{upper}");
        assert_eq!(handles.limbs[0].bones, [1, 2, 3]);
    }
    let legs =
        named(&[("Hips", None), ("RightUpLeg", Some(0)), ("RightLeg", Some(1)), ("RightFoot", Some(2))]);
    assert_eq!(legs.names(), ["foot_R", "torso"]);
    // Bones of these names that do not hang on each other are no limb.
    assert!(named(&[("thigh_l", None), ("calf_l", None), ("foot_l", Some(1))]).limbs.is_empty());
}

#[test]
fn other_names_are_spelled() {
    let bones = [("base", None), ("a1", Some(0)), ("a2", Some(1)), ("a3", Some(2))];
    let spelling = |limb: [&str; 3], torso: &str| Spelling {
        torso: Some(torso.into()),
        limbs: [("hand_L".to_owned(), limb.map(String::from))].into(),
    };
    let handles = Handles::spelled(&bones, &spelling(["a1", "a2", "a3"], "base")).expect("they exist");
    assert_eq!((handles.torso, handles.bone("hand_L")), (Some(0), Some(3)));
    assert!(Handles::spelled(&bones, &spelling(["a1", "a2", "no"], "base")).is_err());
    assert!(Handles::spelled(&bones, &spelling(["a3", "a2", "a1"], "base")).is_err());
}

/// A trunk that moves, an arm of a shoulder with three turns and a hinge, a hand with three turns. Frames are rolled.
fn arm() -> (Skeleton, ControlSpecs) {
    let roll = |angle: f32| Quat::from_scaled_axis(Vec3::new(0.3, angle, -0.2));
    let bone = |name: &str, parent, translation, rotation| Bone {
        name: name.into(),
        parent,
        rest: JointTransform { rotation, translation, scale: Vec3::ONE },
    };
    let bones = vec![
        bone("hips", None, Vec3::Y * 100.0, Quat::IDENTITY),
        bone("upper_arm_l", Some(0), Vec3::new(20.0, 40.0, 0.0), roll(0.4)),
        bone("forearm_l", Some(1), Vec3::new(1.0, 28.0, 0.5), Quat::from_rotation_x(0.15)),
        bone("hand_l", Some(2), Vec3::Y * 24.0, roll(-0.3)),
    ];
    let mut specs = Vec::new();
    for (channel, low, high) in [(Channel::TranslateX, -20.0, 20.0), (Channel::TranslateY, -40.0, 10.0)] {
        specs.push(ControlSpec::joint(format!("hips.{}", channel.label()), "hips", channel, low, high));
    }
    for bone in ["upper_arm_l", "hand_l"] {
        for channel in &Channel::ALL[..3] {
            specs.push(ControlSpec::joint(
                format!("{bone}.{}", channel.label()),
                bone,
                *channel,
                -170.0,
                170.0,
            ));
        }
    }
    specs.push(ControlSpec::joint("elbow", "forearm_l", Channel::RotateX, -5.0, 140.0));
    (Skeleton::new(bones).expect("a tree"), ControlSpecs::new(specs).expect("controls"))
}

/// Joint channels on the rest pose, as rigs do it.
fn forward(skeleton: &Skeleton, specs: &ControlSpecs, controls: &[f32], world: &mut Vec<Affine3A>) {
    let mut pose: JointPose = skeleton.rest_pose();
    for (index, bone) in skeleton.bones().iter().enumerate() {
        let mut degrees = Vec3::ZERO;
        for (spec, value) in specs.iter().zip(controls) {
            let understudy_core::ControlKind::Joint { bone: of, channel } = &spec.kind else { continue };
            if *of == bone.name {
                match *channel as usize {
                    axis @ 0..3 => degrees[axis] = value.to_radians(),
                    axis => pose.0[index].translation[axis - 3] += value,
                }
            }
        }
        pose.0[index].rotation *= Quat::from_rotation_z(degrees.z)
            * Quat::from_rotation_y(degrees.y)
            * Quat::from_rotation_x(degrees.x);
    }
    let mut global = GlobalPose::default();
    skeleton.forward(&pose, &mut global).expect("one transform per bone");
    *world = global.0;
}

#[test]
fn controls_put_the_hand_where_it_is_asked_to_be() {
    let (skeleton, specs) = arm();
    let handles = Handles::find(skeleton.bones().iter().map(|b| (b.name.as_str(), b.parent)));
    let poser = Poser::new(&specs, &skeleton, &handles);
    let mut place = |controls: &[f32], world: &mut Vec<Affine3A>| -> Result<(), LimbError> {
        forward(&skeleton, &specs, controls, world);
        Ok(())
    };
    let mut random = Random::new(4);
    let shoulder = Vec3::from(skeleton.rest_global()[1].translation);
    let mut near = 0;
    for _ in 0..60 {
        let away = Vec3::from_array(std::array::from_fn(|_| random.normal() as f32)).normalize();
        let target = shoulder + away * (15.0 + 35.0 * random.unit() as f32);
        let mut controls = specs.defaults().0;
        let goal = Goal {
            handle: "hand_L".into(),
            place: Place::At(target),
            pole: Some(Vec3::new(0.2, -0.5, -1.0)),
        };
        let outcome = poser.solve(&[goal], &mut controls, &mut place).expect("finite").remove(0);
        assert_eq!(outcome.reach, Some(Reach::Exact));
        near += usize::from(outcome.distance_mm() < 0.01);
        specs.check_range(&Controls(controls)).expect("within the ranges");
    }
    assert!(near >= 57, "{near} of 60 targets in reach were reached");
    // Out of reach: straight towards the target.
    let target = shoulder + Vec3::new(200.0, 30.0, 10.0);
    let mut controls = specs.defaults().0;
    let goal = Goal { handle: "hand_L".into(), place: Place::At(target), pole: None };
    let outcome = poser.solve(&[goal], &mut controls, &mut place).expect("finite").remove(0);
    assert_eq!(outcome.reach, Some(Reach::TooFar));
    assert!((outcome.reached - shoulder).angle_between(target - shoulder) < 2e-2, "{outcome:?}");
}

#[test]
fn a_lock_holds_while_the_torso_moves() {
    let (skeleton, specs) = arm();
    let handles = Handles::find(skeleton.bones().iter().map(|b| (b.name.as_str(), b.parent)));
    let poser = Poser::new(&specs, &skeleton, &handles);
    let mut place = |controls: &[f32], world: &mut Vec<Affine3A>| -> Result<(), LimbError> {
        forward(&skeleton, &specs, controls, world);
        Ok(())
    };
    let mut controls = specs.defaults().0;
    controls[specs.find("elbow").expect("a control")] = 60.0;
    let mut world = Vec::new();
    place(&controls, &mut world).expect("finite");
    let anchor = Anchor::of(world[3], None);
    let torso = Vec3::from(world[0].translation) + Vec3::new(6.0, -8.0, 0.0);
    let goals = [
        Goal { handle: "hand_L".into(), place: Place::Locked(anchor), pole: None },
        Goal { handle: "torso".into(), place: Place::At(torso), pole: None },
    ];
    let outcomes = poser.solve(&goals, &mut controls, &mut place).expect("finite");
    assert!(outcomes.iter().all(|o| o.distance_mm() < 0.02), "{outcomes:?}");
    place(&controls, &mut world).expect("finite");
    assert!(world[3].abs_diff_eq(anchor.world, 1e-2), "{:?} {:?}", world[3], anchor.world);
    let turned = |handle: &str| outcomes.iter().find(|o| o.handle == handle).expect("asked for").turned_deg;
    assert!(turned("hand_L").expect("of a lock") < 0.2 && turned("torso").is_none(), "{outcomes:?}");
    // The trunk cannot go that far: its limit is told.
    let goal = Goal { handle: "torso".into(), place: Place::At(Vec3::new(90.0, 100.0, 0.0)), pole: None };
    let outcome = poser.solve(&[goal], &mut controls, &mut place).expect("finite").remove(0);
    assert_eq!(outcome.at_limits, ["hips.translate_x"]);
    assert!((outcome.reached.x - 20.0).abs() < 1e-3);
}

#[test]
fn a_lock_that_its_end_cannot_hold_says_so() {
    let (skeleton, specs) = arm();
    // A wrist that hardly turns.
    let stiff = |spec: &ControlSpec| match spec.name.starts_with("hand_l") {
        true => ControlSpec { low: -2.0, high: 2.0, ..spec.clone() },
        false => spec.clone(),
    };
    let specs = ControlSpecs::new(specs.iter().map(stiff).collect()).expect("controls");
    let handles = Handles::find(skeleton.bones().iter().map(|b| (b.name.as_str(), b.parent)));
    let poser = Poser::new(&specs, &skeleton, &handles);
    let mut place = |controls: &[f32], world: &mut Vec<Affine3A>| -> Result<(), LimbError> {
        forward(&skeleton, &specs, controls, world);
        Ok(())
    };
    let mut controls = specs.defaults().0;
    controls[specs.find("elbow").expect("a control")] = 60.0;
    let mut world = Vec::new();
    place(&controls, &mut world).expect("finite");
    let torso = Vec3::from(world[0].translation) + Vec3::new(6.0, -8.0, 0.0);
    let goals = [
        Goal { handle: "hand_L".into(), place: Place::Locked(Anchor::of(world[3], None)), pole: None },
        Goal { handle: "torso".into(), place: Place::At(torso), pole: None },
    ];
    let outcomes = poser.solve(&goals, &mut controls, &mut place).expect("finite");
    let hand = outcomes.iter().find(|outcome| outcome.handle == "hand_L").expect("asked for");
    assert!(hand.distance_mm() < 0.05, "{hand:?}");
    assert!(hand.turned_deg.expect("of a lock") > 1.0, "{hand:?}");
    assert!(hand.at_limits.iter().any(|name| name.starts_with("hand_l")), "{hand:?}");
}

#[test]
fn only_what_some_control_moves_is_a_handle() {
    let (skeleton, specs) = arm();
    let handles = Handles::find(skeleton.bones().iter().map(|b| (b.name.as_str(), b.parent)));
    assert_eq!(handles.clone().moved_by(&specs, &skeleton), handles);
    let without = |part: &str| {
        let kept = specs.iter().filter(|spec| !spec.name.contains(part)).cloned().collect();
        handles.clone().moved_by(&ControlSpecs::new(kept).expect("controls"), &skeleton).names().join(" ")
    };
    assert_eq!(without("translate"), "hand_L");
    assert_eq!(without("upper_arm"), "hand_L torso");
    let kept = specs.iter().filter(|spec| spec.name.starts_with("hips")).cloned().collect();
    let hips = handles.clone().moved_by(&ControlSpecs::new(kept).expect("controls"), &skeleton);
    assert_eq!(hips.names(), ["torso"]);
}

#[test]
fn bones_alone_reach_and_keep_their_lengths() {
    let (skeleton, _) = arm();
    let parents: Vec<_> = skeleton.bones().iter().map(|bone| bone.parent).collect();
    let handles = Handles::find(skeleton.bones().iter().map(|b| (b.name.as_str(), b.parent)));
    let mut bones = PlacedBones::new(&parents, skeleton.rest_global().to_vec());
    bones.offset(Vec3::new(3.0, -4.0, 0.0));
    let before = bones.world.clone();
    let target = Vec3::from(before[1].translation) + Vec3::new(20.0, -10.0, 25.0);
    let pose = bones.reach(&handles.limbs[0], target, Bend::Pole(Vec3::NEG_Z), 0.0, true).expect("finite");
    assert_eq!(pose.reach, Reach::Exact);
    assert!(Vec3::from(bones.world[3].translation).distance(target) < 1e-3, "{:?}", bones.world[3]);
    assert!(bones.world[3].matrix3.abs_diff_eq(before[3].matrix3, 1e-4), "the hand keeps its orientation");
    for (bone, parent) in [(2, 1), (3, 2)] {
        let length = |world: &[Affine3A]| world[bone].translation.distance(world[parent].translation);
        assert!((length(&bones.world) - length(&before)).abs() < 1e-3);
    }
    assert_eq!(bones.world[0], before[0]);
    let nowhere = bones.reach(&handles.limbs[0], Vec3::NAN, Bend::Pole(Vec3::Z), 0.0, false);
    assert!(matches!(nowhere, Err(LimbError::Point { .. })));
}
