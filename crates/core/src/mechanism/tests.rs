use super::*;
use crate::{Affine3A, ControlSpec, Quat, Random, Vec3};

/// A leg with a twist bone, a helper and a driven tail.
fn mechanism() -> (ControlSpecs, JointMechanism) {
    let bone = |name: &str, parent: Option<usize>| Bone {
        name: name.into(),
        parent,
        rest: JointTransform {
            rotation: Quat::from_rotation_x(0.3),
            translation: Vec3::Y * 3.0,
            scale: Vec3::ONE,
        },
    };
    let bones = vec![
        bone("hips", None),
        bone("thigh", Some(0)),
        bone("calf", Some(1)),
        bone("thigh_twist", Some(1)),
        bone("knee", Some(1)),
        bone("tail", Some(0)),
    ];
    let skeleton = Skeleton::new(bones).expect("a tree");
    let joint = |name: &str, bone: &str, channel| ControlSpec::joint(name, bone, channel, -120.0, 120.0);
    let specs = ControlSpecs::new(vec![
        joint("hips.x", "hips", Channel::TranslateX),
        joint("thigh.x", "thigh", Channel::RotateX),
        joint("thigh.y", "thigh", Channel::RotateY),
        joint("calf.x", "calf", Channel::RotateX),
        ControlSpec::number("wag", -1.0, 1.0, 0.0),
    ])
    .expect("valid specs");
    let constraints = vec![
        Constraint::Twist(Twist::new(&skeleton, 1, 3, Vec3::Y, -0.5)),
        Constraint::Helper(Helper::new(&skeleton, 2, 4, 0.5, Vec3::Z)),
        Constraint::Drive(Drive { control: 4, bone: 5, channel: Channel::RotateY, gain: 40.0 }),
    ];
    let mechanism = JointMechanism::new(skeleton, &specs, constraints).expect("a valid mechanism");
    (specs, mechanism)
}

#[test]
fn what_is_written_down_poses_the_same_bones() {
    let (specs, mechanism) = mechanism();
    let text = serde_json::to_string(&mechanism.parts()).expect("JSON");
    let parts = serde_json::from_str(&text).expect("what we wrote");
    let again = JointMechanism::from_parts(parts, &specs).expect("valid");
    assert_eq!(again, mechanism);
    let mut random = Random::new(5);
    let (mut pose, mut global, mut other) = Default::default();
    for _ in 0..20 {
        let controls: Vec<f32> = specs.iter().map(|spec| random.uniform(spec.low, spec.high)).collect();
        mechanism.evaluate(&controls, &mut pose, &mut global);
        again.evaluate(&controls, &mut pose, &mut other);
        assert_eq!(global, other);
        // The twist bone takes back half of what the thigh turns about its axis; the tail wags.
        let rest = mechanism.skeleton().bones();
        let turned = |bone: usize| rest[bone].rest.rotation.inverse() * pose.0[bone].rotation;
        let along = twist_angle(turned(1), Vec3::Y);
        let axis = match &mechanism.constraints()[0] {
            Constraint::Twist(twist) => twist.target_axis,
            _ => panic!("the first is a twist"),
        };
        assert!((twist_angle(turned(3), axis) + 0.5 * along).abs() < 1e-4);
        assert!((twist_angle(turned(5), Vec3::Y) - (40.0 * controls[4]).to_radians()).abs() < 1e-4);
    }
}

#[test]
fn what_does_not_exist_is_named() {
    let (specs, mechanism) = mechanism();
    let with = |constraint| {
        JointMechanism::new(mechanism.skeleton().clone(), &specs, vec![constraint]).expect_err("is wrong")
    };
    let drive = Drive { control: 5, bone: 0, channel: Channel::ScaleX, gain: 1.0 };
    assert_eq!(
        with(Constraint::Drive(drive)),
        MechanismError::Index { constraint: 0, what: "control", index: 5, count: 5 }
    );
    let mut twist = Twist::new(mechanism.skeleton(), 1, 3, Vec3::Y, 0.5);
    twist.target = 9;
    assert_eq!(
        with(Constraint::Twist(twist)),
        MechanismError::Index { constraint: 0, what: "bone", index: 9, count: 6 }
    );
    let specs = ControlSpecs::new(vec![ControlSpec::joint("a", "arm", Channel::RotateX, 0.0, 1.0)]);
    let error = JointMechanism::new(mechanism.skeleton().clone(), &specs.expect("valid specs"), Vec::new());
    assert_eq!(error, Err(MechanismError::Bone { control: "a".into(), bone: "arm".into() }));
}

#[test]
fn the_way_back_meets_the_checker() {
    let (specs, mechanism) = mechanism();
    let mut random = Random::new(6);
    let count = mechanism.skeleton().len();
    let slopes: Vec<f32> = (0..12 * count).map(|_| random.uniform(-1.0, 1.0)).collect();
    let cost = |x: &[f64]| {
        let controls: Vec<f32> = x.iter().map(|value| *value as f32).collect();
        let (mut pose, mut global) = Default::default();
        mechanism.evaluate(&controls, &mut pose, &mut global);
        let numbers = global.0.iter().flat_map(Affine3A::to_cols_array);
        numbers.zip(&slopes).map(|(number, slope)| f64::from(number) * f64::from(*slope)).sum::<f64>()
    };
    assert!(mechanism.has_gradient());
    let mut trace = MechanismTrace::default();
    for _ in 0..4 {
        let controls: Vec<f32> =
            specs.iter().map(|spec| random.uniform(0.6 * spec.low, 0.6 * spec.high)).collect();
        let mut by_global: Vec<Affine3A> = slopes.chunks_exact(12).map(Affine3A::from_cols_slice).collect();
        let mut gradient = vec![0.0; specs.len()];
        mechanism.backward(&controls, &mut by_global, &mut trace, &mut gradient);
        // Along each control: the mechanism itself is in single precision, its steps must not drown.
        for (control, slope) in gradient.iter().enumerate() {
            let step = if specs.get(control).high > 2.0 { 1.0 } else { 0.02 };
            let at = |sign: f64| {
                let mut moved: Vec<f64> = controls.iter().map(|value| f64::from(*value)).collect();
                moved[control] += sign * step;
                cost(&moved)
            };
            // Of fourth order, so that a wide step does.
            let wide = (at(2.0) - at(-2.0)) / (4.0 * step);
            let near = (at(1.0) - at(-1.0)) / (2.0 * step);
            let want = (4.0 * near - wide) / 3.0;
            let miss = (f64::from(*slope) - want).abs();
            assert!(miss < 2e-3 * want.abs().max(0.1), "control {control}: {slope} {want}");
        }
    }
}
