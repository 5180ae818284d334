//! The MakeHuman body as a film rig; skipped where the shared data is absent.

use super::*;
use std::sync::OnceLock;
use understudy_core::{Bone, Controls, JointTransform, MeshParts, Random};
use understudy_io::real::RealBody;
use understudy_rigs::{Rig, RigPose};
use understudy_testkit::shared_data;

/// The body and the rig on it, built once for all tests.
fn human() -> Option<&'static (RealBody, StackRig)> {
    static HUMAN: OnceLock<Option<(RealBody, StackRig)>> = OnceLock::new();
    let build = || {
        let real =
            understudy_io::real::human(&shared_data()?.join("makehuman/human.npz")).expect("a valid file");
        let RealBody { mesh, skeleton, weights, shapes, .. } = real.clone();
        Some((real, body("human", mesh, skeleton, weights, Some(shapes)).expect("a rig")))
    };
    HUMAN.get_or_init(build).as_ref()
}

fn evaluate(rig: &StackRig, controls: &Controls) -> RigPose {
    let mut out = RigPose::default();
    rig.evaluate(controls, &mut out).expect("poses");
    out
}

fn pose(rig: &StackRig, changes: &[(&str, f32)]) -> RigPose {
    evaluate(rig, &rig.specs().with(changes.iter().copied()).expect("in range"))
}

fn apart(a: &[Vec3], b: &[Vec3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

fn bone_place(rig: &StackRig, pose: &RigPose, name: &str) -> Vec3 {
    let bone = rig.skeleton().and_then(|skeleton| skeleton.find(name)).expect(name);
    pose.global.0[bone].translation.into()
}

#[test]
fn counts_and_rest() {
    let Some((real, rig)) = human() else { return };
    assert_eq!((rig.mesh().vertex_count(), rig.skeleton().map(Skeleton::len)), (13_380, Some(163)));
    let joints = rig.specs().iter().filter(|spec| spec.name.contains('.')).count();
    assert_eq!(rig.specs().len(), joints + 52 + 1 + 2);
    assert!(joints >= 70, "{joints} joint controls");
    let names = rig.deformer_names();
    for layer in ["blendshapes", "joint offset", "skinning", "muscle bulge", "skin slide", "delta mush"] {
        assert!(names.contains(&layer), "{names:?}");
    }
    let clips: Vec<&str> = rig.clips().iter().map(|clip| clip.name.as_str()).collect();
    assert_eq!(clips, ["walk", "reach", "kick", "test"]);
    assert!(apart(&pose(rig, &[]).vertices, real.mesh.positions()) < 2e-3);
}

/// Positive values bend joints the natural way, on both sides alike.
#[test]
fn equal_values_make_mirrored_poses() {
    let Some((_, rig)) = human() else { return };
    let mut random = Random::new(5);
    let mut changes = Vec::new();
    for spec in rig.specs().iter().filter(|spec| spec.name.contains("_l.")) {
        let value = random.uniform(spec.low, spec.high);
        changes.extend([(spec.name.clone(), value), (spec.name.replace("_l.", "_r."), value)]);
    }
    let changes: Vec<(&str, f32)> = changes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let posed = pose(rig, &changes);
    for bone in
        ["upperarm02", "lowerarm01", "wrist", "finger2-3", "finger1-2", "lowerleg01", "foot", "toe1-2"]
    {
        let left = bone_place(rig, &posed, &format!("{bone}.L"));
        let right = bone_place(rig, &posed, &format!("{bone}.R"));
        assert!((left * Vec3::new(-1.0, 1.0, 1.0) - right).length() < 0.05, "{bone}: {left} {right}");
    }
}

#[test]
fn joints_go_the_way_they_are_named() {
    let Some((_, rig)) = human() else { return };
    let rest = pose(rig, &[]);
    let moved = |control: &str, value: f32, bone: &str| {
        bone_place(rig, &pose(rig, &[(control, value)]), bone) - bone_place(rig, &rest, bone)
    };
    assert!(moved("shoulder_l.up", 60.0, "wrist.L").y > 15.0);
    assert!(moved("shoulder_r.forward", 60.0, "wrist.R").z > 10.0);
    assert!(moved("hip_l.forward", 60.0, "foot.L").z > 30.0);
    assert!(moved("hip_r.out", 30.0, "foot.R").x < -20.0);
    assert!(moved("knee_l.bend", 90.0, "foot.L").z < -20.0);
    assert!(moved("ankle_r.up", 20.0, "toe1-1.R").y > 2.0);
    assert!(moved("chest.bend", 15.0, "head").z > 3.0);
    assert!(moved("root.move_y", -20.0, "head").y < -19.0);
}

/// Random poses: finite, nowhere further than a body height, small steps for small changes.
#[test]
fn random_poses_are_sound() {
    let Some((_, rig)) = human() else { return };
    let (low, high) = rig.mesh().bounds();
    let mut random = Random::new(17);
    let mut steepest = 0.0f32;
    for _ in 0..25 {
        let draw = |spec: &ControlSpec, random: &mut Random| random.truncated_normal(spec.low, spec.high);
        let controls = Controls(rig.specs().iter().map(|spec| draw(spec, &mut random)).collect());
        let posed = evaluate(rig, &controls).vertices;
        assert!(apart(&posed, rig.mesh().positions()) < 1.5 * (high.y - low.y));
        let mut near = controls.clone();
        for (value, spec) in near.0.iter_mut().zip(rig.specs().iter()) {
            *value += random.uniform(-1e-4, 1e-4) * (spec.high - spec.low);
        }
        steepest = steepest.max(apart(&evaluate(rig, &near).vertices, &posed));
    }
    assert!(steepest < 0.15, "a step of 1e-4 of the ranges moves a vertex by {steepest} cm");
}

/// Flexing swells the arm and nothing far from it; breath swells the chest and not the hand.
#[test]
fn muscles_and_breath_work() {
    let Some((_, rig)) = human() else { return };
    let rest = pose(rig, &[]).vertices;
    let flexed = pose(rig, &[("flex_l", 1.0)]).vertices;
    let moved: Vec<usize> = (0..rest.len()).filter(|v| flexed[*v].distance(rest[*v]) > 0.2).collect();
    assert!(moved.len() > 50 && moved.iter().all(|v| rest[*v].x > 0.0), "{} vertices", moved.len());
    let breath = pose(rig, &[("breathe", 1.0)]).vertices;
    let wrist = bone_place(rig, &pose(rig, &[]), "wrist.L");
    for (before, after) in rest.iter().zip(&breath).filter(|(before, _)| before.distance(wrist) < 8.0) {
        assert!(before.distance(*after) < 0.05);
    }
    assert!(apart(&rest, &breath) > 0.6);
}

/// A bare rig of other names works as well; one without any known bone says so.
#[test]
fn other_names_are_known_and_strangers_are_refused() {
    let mesh = || {
        let positions =
            (0..12).map(|i| Vec3::new((i % 2) as f32, (i / 2) as f32 * 8.0, (i % 3) as f32)).collect();
        let quad = |i: u32| understudy_core::Face::quad(2 * i, 2 * i + 1, 2 * i + 3, 2 * i + 2);
        MeshParts { positions, faces: (0..5).map(quad).collect(), ..MeshParts::default() }
            .build()
            .expect("a strip")
    };
    let bones = |names: [&str; 3]| {
        let bone = |(index, name): (usize, &&str)| Bone {
            name: (*name).into(),
            parent: index.checked_sub(1),
            rest: JointTransform::from_translation(Vec3::Y * 15.0),
        };
        Skeleton::new(names.iter().enumerate().map(bone).collect()).expect("a chain")
    };
    let weights = || {
        let row = |i: usize| vec![((i / 4) as u16, 1.0)];
        SkinWeights::from_rows(&(0..12).map(row).collect::<Vec<_>>(), 3).expect("rows sum to one")
    };
    let known =
        body("strip", mesh(), bones(["hips", "spine_1", "head"]), weights(), None).expect("known names");
    assert!(known.specs().find("head.nod").is_some() && known.specs().find("breathe").is_none());
    let strange = body("strip", mesh(), bones(["a", "b", "c"]), weights(), None).err().expect("must fail");
    assert!(matches!(strange, RigError::Unknown { .. }));
    let few = body(
        "strip",
        mesh(),
        bones(["hips", "b", "c"]),
        SkinWeights::from_rows(&[], 3).expect("empty"),
        None,
    );
    assert!(matches!(few.err(), Some(RigError::Count { got: 0, want: 12, .. })));
}
