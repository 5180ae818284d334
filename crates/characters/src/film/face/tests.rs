//! The ICT head as a film rig; skipped where the shared data is absent.

use super::*;
use std::sync::OnceLock;
use understudy_core::{Controls, Random};
use understudy_io::real::RealFace;
use understudy_rigs::{Rig, RigPose};
use understudy_testkit::shared_data;

/// The head and the rig on it, built once for all tests.
fn ict() -> Option<&'static (RealFace, StackRig)> {
    static ICT: OnceLock<Option<(RealFace, StackRig)>> = OnceLock::new();
    let build = || {
        let real =
            understudy_io::real::ict(&shared_data()?.join("ict-facekit/face.npz")).expect("a valid file");
        let hints = FaceHints::ict(real.landmarks);
        let rig = face("ict", real.mesh.clone(), real.shapes.clone(), &hints).expect("a rig");
        Some((real, rig))
    };
    ICT.get_or_init(build).as_ref()
}

fn pose(rig: &StackRig, changes: &[(&str, f32)]) -> Vec<Vec3> {
    evaluate(rig, &rig.specs().with(changes.iter().copied()).expect("in range"))
}

fn evaluate(rig: &StackRig, controls: &Controls) -> Vec<Vec3> {
    let mut out = RigPose::default();
    rig.evaluate(controls, &mut out).expect("poses");
    out.vertices
}

fn segment(rig: &StackRig, name: &str) -> Vec<u32> {
    rig.mesh().segments().vertices(rig.mesh().segments().find(name).expect(name))
}

/// The largest distance between two poses over some vertices.
fn apart(a: &[Vec3], b: &[Vec3], vertices: &[u32]) -> f32 {
    vertices.iter().map(|v| a[*v as usize].distance(b[*v as usize])).fold(0.0, f32::max)
}

/// Neutral plus whole shapes of the file.
fn summed(real: &RealFace, names: &[&str]) -> Vec<Vec3> {
    let mut out = real.mesh.positions().to_vec();
    for name in names {
        let shape = real.shapes.find(name).expect(name);
        real.shapes.shapes()[shape].deltas.add_scaled(1.0, &mut out);
    }
    out
}

#[test]
fn counts_and_rest() {
    let Some((real, rig)) = ict() else { return };
    assert_eq!((rig.mesh().vertex_count(), rig.specs().len()), (26_719, 10 + 57 + 7));
    assert_eq!(rig.skeleton().map(Skeleton::len), Some(5));
    assert_eq!(
        rig.deformer_names(),
        ["blendshapes", "eyelid slide", "skinning", "sticky lips", "wrinkles", "lattice"]
    );
    let names: Vec<&str> = rig.clips().iter().map(|clip| clip.name.as_str()).collect();
    assert_eq!(names, ["talk", "smile", "surprise", "roar", "blink", "test"]);
    assert!(rig.blendshapes().expect("a layer").correctives().len() >= 40);
    assert_eq!(rig.mesh().topology_hash(), real.mesh.topology_hash());
    let all: Vec<u32> = (0..26_719).collect();
    assert!(apart(&pose(rig, &[]), rig.mesh().positions(), &all) < 1e-3);
}

/// Joint plus what is left of the shape is the shape: on the skin exactly, on lids up to contact.
#[test]
fn joints_and_residuals_give_the_shapes_back() {
    let Some((real, rig)) = ict() else { return };
    let skin = segment(rig, "face");
    for (names, tolerance) in [
        (&["jawOpen"][..], 0.01),
        (&["jawLeft"], 0.01),
        (&["jawForward"], 0.01),
        (&["eyeBlink_L"], 0.15),
        (&["eyeLookDown_R"], 0.15),
        (&["jawOpen", "mouthClose"], 0.02),
    ] {
        let changes: Vec<(&str, f32)> = names.iter().map(|name| (*name, 1.0)).collect();
        let miss = apart(&pose(rig, &changes), &summed(real, names), &skin);
        assert!(miss < tolerance, "{names:?}: {miss} cm");
    }
}

/// The jaw swings on an arc: half open, the chin is where half the angle puts it, not half the chord.
#[test]
fn the_jaw_turns_and_takes_teeth_and_tongue_along() {
    let Some((_, rig)) = ict() else { return };
    let tooth = segment(rig, "tooth_25")[0] as usize;
    let skeleton = rig.skeleton().expect("bones");
    let pivot = Vec3::from(skeleton.rest_global()[skeleton.find("jaw").expect("a jaw")].translation);
    let lever = |open: f32| pose(rig, &[("jawOpen", open)])[tooth].distance(pivot);
    assert!((lever(0.5) - lever(0.0)).abs() < 0.02 && (lever(1.0) - lever(0.0)).abs() < 0.02);
    let chord = (pose(rig, &[("jawOpen", 1.0)])[tooth] + rig.mesh().positions()[tooth]) * 0.5;
    assert!(pose(rig, &[("jawOpen", 0.5)])[tooth].distance(chord) > 0.1);
}

/// Random poses: finite, near the head, every tooth as hard as at rest, small steps for small changes.
#[test]
fn random_poses_are_sound() {
    let Some((_, rig)) = ict() else { return };
    let teeth: Vec<Vec<u32>> = (1..=32).map(|tooth| segment(rig, &format!("tooth_{tooth:02}"))).collect();
    let all: Vec<u32> = (0..26_719).collect();
    let rest = rig.mesh().positions();
    let mut random = Random::new(11);
    let mut steepest = 0.0f32;
    for _ in 0..25 {
        let draw = |spec: &ControlSpec, random: &mut Random| random.truncated_normal(spec.low, spec.high);
        let controls = Controls(rig.specs().iter().map(|spec| draw(spec, &mut random)).collect());
        let posed = evaluate(rig, &controls);
        assert!(apart(&posed, rest, &all) < 30.0);
        for tooth in &teeth {
            for pair in tooth.windows(2) {
                let [a, b] = [pair[0] as usize, pair[1] as usize];
                assert!((posed[a].distance(posed[b]) - rest[a].distance(rest[b])).abs() < 1e-3);
            }
        }
        let mut near = controls.clone();
        for (value, spec) in near.0.iter_mut().zip(rig.specs().iter()) {
            *value += random.uniform(-1e-4, 1e-4) * (spec.high - spec.low);
        }
        steepest = steepest.max(apart(&evaluate(rig, &near), &posed, &all));
    }
    assert!(steepest < 0.02, "a step of 1e-4 of the ranges moves a vertex by {steepest} cm");
}

#[test]
fn folds_and_lids_do_something() {
    let Some((real, rig)) = ict() else { return };
    let skin = segment(rig, "face");
    let brows = ["browInnerUp_L", "browInnerUp_R", "browOuterUp_L", "browOuterUp_R"];
    let raised = pose(rig, &brows.map(|name| (name, 1.0)));
    // Folds are part of what the shapes alone do not give.
    assert!(apart(&raised, &summed(real, &brows), &skin) > 0.05);
    let shut = pose(rig, &[("eyeBlink_L", 1.0), ("eye_l.pitch", 20.0)]);
    let lids = [43, 44].map(|landmark| real.landmarks[landmark]);
    assert!(apart(&shut, &pose(rig, &[("eyeBlink_L", 1.0)]), &lids) < 0.05);
    let open = pose(rig, &[("eye_l.pitch", 20.0)]);
    assert!(apart(&open, rig.mesh().positions(), &lids) > 0.15);
}

#[test]
fn wrong_hints_are_named() {
    let Some((real, _)) = ict() else { return };
    let new = |hints: FaceHints| {
        face("ict", real.mesh.clone(), real.shapes.clone(), &hints).err().expect("must fail")
    };
    let mut unknown = FaceHints::ict(real.landmarks);
    unknown.lower_teeth.push("tusk".into());
    assert!(new(unknown).to_string().contains("segment tusk"));
    let mut far = FaceHints::ict(real.landmarks);
    far.landmarks[3] = 99_999;
    assert!(new(far).to_string().contains("vertex 99999"));
}
