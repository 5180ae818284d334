//! A rig so small that tests can say what it must do: two bones, four vertices, two controls, one clip.

use understudy_core::{
    Bone, Channel, Clip, ControlSpec, ControlSpecs, Curve, Face, JointTransform, MeshParts, Skeleton,
    SkinWeights, Vec3,
};
use understudy_rigs::deformers::{RigSize, Skinning};
use understudy_rigs::{StackParts, StackRig};

/// Builds it.
pub(crate) fn small_rig() -> StackRig {
    let bone = |name: &str, parent| Bone {
        name: name.into(),
        parent,
        rest: JointTransform::from_translation(Vec3::Y * 10.0),
    };
    let skeleton = Skeleton::new(vec![bone("root", None), bone("tip", Some(0))]).expect("a chain");
    let mesh = MeshParts {
        positions: vec![Vec3::ZERO, Vec3::X, Vec3::new(1.0, 25.0, 0.0), Vec3::Y * 25.0],
        faces: vec![Face::quad(0, 1, 2, 3)],
        ..MeshParts::default()
    };
    let mesh = mesh.build().expect("a quad");
    let specs = ControlSpecs::new(vec![
        ControlSpec::joint("bend", "tip", Channel::RotateZ, -90.0, 90.0),
        ControlSpec::joint("lift", "root", Channel::TranslateY, -5.0, 20.0),
    ]);
    let specs = specs.expect("valid specs");
    let rows = vec![vec![(0, 1.0)], vec![(0, 1.0)], vec![(0, 0.5), (1, 0.5)], vec![(1, 1.0)]];
    let weights = SkinWeights::from_rows(&rows, 2).expect("valid weights");
    let size = RigSize::new(&mesh, Some(&skeleton), &specs);
    let curve = Curve::smooth("bend", &[(0.0, 0.0), (0.5, 60.0), (1.0, 0.0)]);
    let nod = Clip::new("nod", 1.0, vec![curve]);
    let parts = StackParts {
        skeleton: Some(skeleton),
        weights: Some(weights.clone()),
        deformers: vec![Box::new(Skinning::linear(weights, &size).expect("fits"))],
        clips: vec![nod],
        ..StackParts::default()
    };
    StackRig::new("small", mesh, specs, parts).expect("parts fit")
}
