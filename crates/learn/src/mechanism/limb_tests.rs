//! A limb under inverse kinematics, whose bones are functions of everything that moves its root or its goal: learned from
//! the live rig with the goal's bone as a guide.

use super::*;
use understudy_core::{
    Bone, ControlSpec, Controls, Face, JointTransform, Mesh, MeshParts, Quat, Random, Skeleton, Vec3,
};
use understudy_rigs::{Guide, RigError, RigPose};
use understudy_runtime::MechanismKind;

const UPPER: f32 = 30.0;
const LOWER: f32 = 26.0;

/// A root that goes anywhere, a shoulder on it, an arm of two bones that reaches for a goal on the root.
struct Reaching {
    specs: ControlSpecs,
    mesh: Mesh,
    skeleton: Skeleton,
    guides: Vec<Guide>,
}

fn degrees(x: f32, y: f32, z: f32) -> Quat {
    Quat::from_rotation_z(z.to_radians())
        * Quat::from_rotation_y(y.to_radians())
        * Quat::from_rotation_x(x.to_radians())
}

/// World transforms of shoulder, upper, lower, hand, and of root and goal.
fn bones(c: &[f32]) -> Vec<Affine3A> {
    let root = Affine3A::from_rotation_translation(degrees(c[0], c[1], c[2]), Vec3::new(c[3], c[4], c[5]));
    let turn = degrees(c[6], c[7], c[8]);
    let shoulder = root * Affine3A::from_rotation_translation(turn, Vec3::new(5.0, 40.0, 0.0));
    let place = Vec3::new(45.0 + c[9], 30.0 + c[10], 8.0 + c[11]);
    let goal = root * Affine3A::from_rotation_translation(degrees(c[12], c[13], 0.0), place);
    let hip = Vec3::from(shoulder.transform_point3a(Vec3::new(6.0, 0.0, 0.0).into()));
    let away = Vec3::from(goal.translation) - hip;
    let distance = away.length().clamp(UPPER - LOWER + 1e-3, UPPER + LOWER - 1e-3);
    // The limb swings by the smallest turn from where it lies at rest in the shoulder's frame, and bends in its plane.
    let (_, carried, _) = shoulder.to_scale_rotation_translation();
    let seen = carried.inverse() * away.normalize();
    let swing = carried * Quat::from_rotation_arc(Vec3::X, seen);
    let angle = |a: f32, b: f32, c: f32| ((a * a + b * b - c * c) / (2.0 * a * b)).clamp(-1.0, 1.0).acos();
    let first = swing * Quat::from_rotation_z(-angle(UPPER, distance, LOWER));
    let upper = Affine3A::from_rotation_translation(first, hip);
    let elbow = Vec3::from(upper.transform_point3a(Vec3::new(UPPER, 0.0, 0.0).into()));
    let bend = std::f32::consts::PI - angle(UPPER, LOWER, distance);
    let second = first * Quat::from_rotation_z(bend);
    let lower = Affine3A::from_rotation_translation(second, elbow);
    let wrist = Vec3::from(lower.transform_point3a(Vec3::new(LOWER, 0.0, 0.0).into()));
    let (_, palm, _) = goal.to_scale_rotation_translation();
    let hand = Affine3A::from_rotation_translation(palm, wrist);
    vec![shoulder, upper, lower, hand, root, goal]
}

impl Reaching {
    fn new() -> Self {
        let number = |name: &str, reach: f32| ControlSpec::number(name, -reach, reach, 0.0);
        let names = ["root.rx", "root.ry", "root.rz", "root.x", "root.y", "root.z"];
        let mut specs: Vec<ControlSpec> = names.into_iter().map(|name| number(name, 25.0)).collect();
        specs.extend(["shoulder.rx", "shoulder.ry", "shoulder.rz"].map(|name| number(name, 20.0)));
        specs.extend(["goal.x", "goal.y", "goal.z"].map(|name| number(name, 12.0)));
        specs.extend(["goal.rx", "goal.ry", "nothing"].map(|name| number(name, 40.0)));
        let specs = ControlSpecs::new(specs).expect("valid specs");
        let rest = bones(&specs.defaults().0);
        let bone = |(name, rest): (&str, &Affine3A)| {
            let (scale, rotation, translation) = rest.to_scale_rotation_translation();
            Bone { name: name.into(), parent: None, rest: JointTransform { rotation, translation, scale } }
        };
        let names = ["shoulder", "upper", "lower", "hand"];
        let skeleton = Skeleton::new(names.into_iter().zip(&rest).map(bone).collect()).expect("roots");
        let guide = |(name, rest): (&str, &Affine3A)| Guide { name: name.into(), rest: *rest };
        let guides = ["root", "goal"].into_iter().zip(&rest[4..]).map(guide).collect();
        let mesh = MeshParts {
            positions: vec![Vec3::ZERO, Vec3::X, Vec3::Y],
            faces: vec![Face::triangle(0, 1, 2)],
            ..MeshParts::default()
        };
        Self { specs, mesh: mesh.build().expect("a triangle"), skeleton, guides }
    }

    fn record(&self, count: u64) -> PosedBones {
        let (mut all, mut controls) = (Vec::new(), Vec::new());
        for pose in 0..count {
            let mut random = Random::stream(8, pose);
            let draw: Vec<f32> = self.specs.iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
            all.extend(bones(&draw));
            controls.extend(draw);
        }
        let names = self.skeleton.bones().iter().map(|bone| bone.name.clone());
        PosedBones {
            specs: self.specs.clone(),
            names: names.chain(self.guides.iter().map(|guide| guide.name.clone())).collect(),
            parents: vec![None, Some(0), Some(1), Some(2), None, None],
            rest: bones(&self.specs.defaults().0),
            bones: all,
            controls,
            guides: 2,
        }
    }
}

impl Rig for Reaching {
    fn name(&self) -> &str {
        "reaching"
    }

    fn specs(&self) -> &ControlSpecs {
        &self.specs
    }

    fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        Some(&self.skeleton)
    }

    fn guides(&self) -> &[Guide] {
        &self.guides
    }

    fn evaluate_from(&self, rest: &[Vec3], controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        let mut all = bones(&controls.0);
        out.guides = all.split_off(4);
        out.global.0 = all;
        out.vertices = rest.to_vec();
        Ok(())
    }
}

#[test]
fn a_limb_that_reaches_for_a_goal_is_learned_in_the_frame_that_points_there() {
    let rig = Reaching::new();
    let poses = rig.record(1200);
    let settings = MechanismSettings { steps: 1200, ..MechanismSettings::default() };
    let learned = learn_mechanism(&poses, Some(&rig), &settings, &|_| true).expect("learned");
    assert!(learned.probed);
    let MechanismKind::Learned(parts) = learned.mechanism.kind() else { panic!("it was learned") };
    assert_eq!((parts.bone_count(), parts.guide_count()), (4, 2));
    let parts = parts.parts();
    // The limb points from the shoulder. The hand has the rotation of its goal, and its place wherever it reaches it: the goal
    // hangs on the root, or on the hand.
    for limb in [1, 2] {
        assert!(parts[limb].aim.is_some(), "bone {limb}: {:?}", learned.fits);
    }
    assert_eq!(parts[4].parent, None);
    assert!(matches!(parts[5].parent, Some(3 | 4)), "{:?}", parts[5].parent);
    let figures = learned.mechanism.figures.expect("was measured");
    assert!(figures.mean_degrees < 0.5 && figures.mean_origin_mm < 1.5, "{figures:?}, {:?}", learned.fits);
    // Without the rig nobody knows what guides are for: much worse, but learned.
    let blind = learn_mechanism(&poses, None, &settings, &|_| true).expect("learned").mechanism;
    let without = blind.figures.expect("was measured");
    assert_eq!(blind.bone_count(), 4);
    assert!(without.mean_degrees > 3.0 * figures.mean_degrees, "{without:?} {figures:?}");
}
