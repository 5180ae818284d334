//! A counting allocator proves that evaluating a twin allocates nothing, on one thread, on two and for a
//! crowd.

#[path = "common/counting.rs"]
mod counting;

use counting::allocations;
use understudy_core::{Affine3A, Face, Quat, SkinWeights, Vec3};
use understudy_runtime::body::{
    BodyHeader, BodyParts, BodyTwin, BoneHeader, GroupParts, InputFrame, LayerParts, SeamCorrection, Storage,
    Workspace,
};
use understudy_runtime::dense::{Activation, Precision};
use understudy_runtime::workers::Workers;

const BONES: usize = 40;
const PER_GROUP: usize = 330;

/// The size of a film character: 40 groups, 13,200 vertices.
fn twin() -> BodyTwin {
    let layer = |rows: usize, columns: usize, activation| LayerParts {
        weights: (0..rows * columns).map(|i| ((i * 37 % 101) as f32 - 50.0) * 1e-3).collect(),
        bias: vec![0.01; rows],
        activation,
        storage: Storage::Plain,
    };
    let group = |index: usize| GroupParts {
        bone: index,
        vertices: (0..PER_GROUP as u32).map(|v| (v as usize * BONES + index) as u32).collect(),
        ghosts: vec![((index + 1) % BONES) as u32],
        inputs: (0..20 * 12).map(|i| ((i + index * 12) % (BONES * 12)) as u32).collect(),
        mean: vec![0.0; 240],
        scale: vec![0.1; 240],
        layers: vec![
            layer(128, 240, Activation::Tanh),
            layer(128, 128, Activation::Tanh),
            layer(25, 128, Activation::None),
            layer(3 * (PER_GROUP + 1), 25, Activation::None),
        ],
    };
    let bones = (0..BONES).map(|b| BoneHeader { name: format!("b{b}"), parent: b.checked_sub(1) }).collect();
    let parts = BodyParts {
        header: BodyHeader {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            bones,
            controls: vec![],
            frame: InputFrame::Group,
            rigid_frames: false,
            training: serde_json::Value::Null,
        },
        rest_vertices: (0..BONES * PER_GROUP).map(|v| Vec3::splat(v as f32 * 0.01)).collect(),
        rest_bones: vec![Affine3A::IDENTITY; BONES],
        base: Some(skin()),
        faces: (0..13_000).map(|v| Face::triangle(v, v + 1, v + 2)).collect(),
        // The first vertex of every group at a border, a second one behind it.
        seams: Some(SeamCorrection {
            vertices: (0..2 * BONES as u32).collect(),
            border: BONES,
            shares: vec![1.0; 2 * BONES],
            offsets: (0..=2 * BONES as u32).collect(),
            sources: (0..BONES as u32).chain(0..BONES as u32).collect(),
        }),
        groups: (0..BONES).map(group).collect(),
    };
    BodyTwin::new(parts, Precision::Half).expect("a valid twin")
}

/// Two bones a vertex.
fn skin() -> SkinWeights {
    let row = |v: usize| vec![((v % BONES) as u16, 0.75), (((v + 1) % BONES) as u16, 0.25)];
    let rows: Vec<Vec<(u16, f32)>> = (0..BONES * PER_GROUP).map(row).collect();
    SkinWeights::from_rows(&rows, BONES).expect("convex rows")
}

#[test]
fn a_pose_allocates_nothing() {
    let twin = twin();
    let workers = Workers::new(2).expect("threads start");
    let crowd_size = 60;
    let bones: Vec<Affine3A> = (0..BONES * crowd_size)
        .map(|i| Affine3A::from_quat(Quat::from_rotation_x(i as f32 * 0.01)))
        .collect();
    let (mut one, mut two) = (Workspace::new(&twin, 1), Workspace::new(&twin, 2));
    let mut crowd = Workspace::for_crowd(&twin, 2);
    let mut out = vec![Vec3::ZERO; twin.vertex_count() * crowd_size];
    let mut normals = vec![Vec3::ZERO; twin.vertex_count()];
    let mut frame = |times: usize| {
        for _ in 0..times {
            let (pose, single) = (&bones[..BONES], &mut out[..twin.vertex_count()]);
            twin.evaluate(pose, &[], &mut one, None, single).expect("a valid pose");
            twin.evaluate(pose, &[], &mut two, Some(&workers), single).expect("a valid pose");
            twin.normals(single, &mut normals).expect("lengths fit");
            twin.evaluate_crowd(&bones, &[], &mut crowd, Some(&workers), &mut out).expect("valid poses");
        }
    };
    frame(1);
    let before = allocations();
    frame(20);
    assert_eq!(allocations() - before, 0);
}
