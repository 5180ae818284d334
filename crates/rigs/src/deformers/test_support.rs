//! For the tests of the deformers: a forearm-like tube on two bones, and checks that every layer must
//! pass: identity at rest and small steps for small changes.

use super::RigSize;
use crate::rig::{Rig, RigPose};
use crate::stack::{Deformer, StackParts, StackRig};
use understudy_core::{
    Bone, Channel, ControlSpec, ControlSpecs, Controls, Face, JointTransform, Mesh, MeshParts, Random,
    Skeleton, SkinWeights, Vec3,
};

pub(super) const AROUND: u32 = 16;
pub(super) const RINGS: u32 = 21;

/// A tube along y, 40 cm high, radius 5 cm, open at both ends.
pub(super) fn tube() -> Mesh {
    let mut parts = MeshParts::default();
    for ring in 0..RINGS {
        for step in 0..AROUND {
            let angle = std::f32::consts::TAU * step as f32 / AROUND as f32;
            parts.positions.push(Vec3::new(5.0 * angle.cos(), 2.0 * ring as f32, 5.0 * angle.sin()));
        }
    }
    for ring in 0..RINGS - 1 {
        for step in 0..AROUND {
            let (a, b) = (ring * AROUND + step, ring * AROUND + (step + 1) % AROUND);
            parts.faces.push(Face::quad(a, a + AROUND, b + AROUND, b));
        }
    }
    parts.build().expect("a tube is valid")
}

/// `upper` from the ground, `fore` from 20 cm up, and `head`, a child of `upper` like `fore` but still.
pub(super) fn skeleton() -> Skeleton {
    let bone = |name: &str, parent, height| Bone {
        name: name.into(),
        parent,
        rest: JointTransform::from_translation(Vec3::Y * height),
    };
    Skeleton::new(vec![bone("upper", None, 0.0), bone("fore", Some(0), 20.0), bone("eye", Some(0), 20.0)])
        .expect("a tree")
}

pub(super) fn weights(mesh: &Mesh) -> SkinWeights {
    let row = |point: &Vec3| {
        let fore = super::smooth_step(14.0, 26.0, point.y);
        vec![(0, 1.0 - fore), (1, fore)]
    };
    let rows: Vec<Vec<(u16, f32)>> = mesh.positions().iter().map(row).collect();
    SkinWeights::from_rows(&rows, 3).expect("rows sum to one")
}

/// Controls: the whole arm about x and moved along z, the elbow about x and its twist, the eye about
/// x and y, and three numbers.
pub(super) fn specs() -> ControlSpecs {
    ControlSpecs::new(vec![
        ControlSpec::joint("swing", "upper", Channel::RotateX, -120.0, 120.0),
        ControlSpec::joint("shift", "upper", Channel::TranslateZ, -50.0, 50.0),
        ControlSpec::joint("bend", "fore", Channel::RotateX, -10.0, 130.0),
        ControlSpec::joint("twist", "fore", Channel::RotateY, -80.0, 80.0),
        ControlSpec::joint("look_x", "eye", Channel::RotateX, -30.0, 30.0),
        ControlSpec::joint("look_y", "eye", Channel::RotateY, -40.0, 40.0),
        ControlSpec::number("a", 0.0, 1.0, 0.0),
        ControlSpec::number("b", 0.0, 1.0, 0.0),
        ControlSpec::number("c", -1.0, 1.0, 0.0),
    ])
    .expect("valid specs")
}

/// Index of a control of [`specs`].
pub(super) fn control(name: &str) -> usize {
    specs().find(name).expect("a control of the test rig")
}

pub(super) fn size(mesh: &Mesh) -> RigSize {
    RigSize::new(mesh, Some(&skeleton()), &specs())
}

pub(super) fn rig(mesh: Mesh, deformers: Vec<Box<dyn Deformer>>) -> StackRig {
    let parts = StackParts { skeleton: Some(skeleton()), deformers, ..StackParts::default() };
    StackRig::new("test", mesh, specs(), parts).expect("parts fit")
}

pub(super) fn pose(rig: &StackRig, changes: &[(&str, f32)]) -> Vec<Vec3> {
    let controls = rig.specs().with(changes.iter().copied()).expect("in range");
    evaluate(rig, &controls)
}

pub(super) fn evaluate(rig: &StackRig, controls: &Controls) -> Vec<Vec3> {
    let mut out = RigPose::default();
    rig.evaluate(controls, &mut out).expect("poses");
    out.vertices
}

pub(super) fn largest_difference(a: &[Vec3], b: &[Vec3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (*a - *b).length()).fold(0.0, f32::max)
}

/// The rest pose moves no vertex by more than `tolerance` cm.
pub(super) fn assert_identity_at_rest(rig: &StackRig, tolerance: f32) {
    let moved = largest_difference(&pose(rig, &[]), rig.mesh().positions());
    assert!(moved <= tolerance, "the rest pose moves a vertex by {moved} cm");
}

/// Random controls in their ranges.
pub(super) fn random_controls(specs: &ControlSpecs, random: &mut Random) -> Controls {
    Controls(specs.iter().map(|spec| random.uniform(spec.low, spec.high)).collect())
}

/// Steps of 1e-4 of every control's range move no vertex by more than `bound` cm, plus rounding.
pub(super) fn assert_continuous(rig: &StackRig, bound: f32) {
    let rounding = 20.0 * understudy_testkit::Tol::position_cm(1);
    let mut random = Random::new(7);
    for _ in 0..60 {
        let here = random_controls(rig.specs(), &mut random);
        let mut there = here.clone();
        for (value, spec) in there.0.iter_mut().zip(rig.specs().iter()) {
            *value += random.uniform(-1e-4, 1e-4) * (spec.high - spec.low);
        }
        let moved = largest_difference(&evaluate(rig, &here), &evaluate(rig, &there));
        assert!(moved < bound + rounding, "a small step moves a vertex by {moved} cm");
    }
}
