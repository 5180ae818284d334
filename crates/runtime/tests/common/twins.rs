//! Twins of the size that film characters have, with weights that mean nothing.

// Not every test that shares this file plays both kinds.
#![allow(dead_code)]

use understudy_core::{ControlSpec, ControlSpecs, Face, MeshParts, SkinWeights, Vec2};
use understudy_runtime::body::{
    BodyParts, BodyTwin, GroupParts, InputFrame, LayerParts, SeamCorrection, Storage,
};
use understudy_runtime::face::{
    DenseParts, FaceParts, FaceTwin, MapParts, MapShape, MotionParts, NetParts, RigidBodyParts, RigidParts,
    Stage,
};
use understudy_runtime::{Activation, Affine3A, BoneHeader, Header, Inputs, Precision, Training, Twin, Vec3};

pub const BONES: usize = 40;
const PER_GROUP: usize = 330;

/// The size of a film character: 40 groups, 13,200 vertices.
pub fn body() -> Twin {
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
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs { bones, controls: ControlSpecs::new(vec![]).expect("none are valid") },
            training: Training::default(),
        },
        frame: InputFrame::Group,
        rigid_frames: false,
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
    BodyTwin::new(parts, Precision::Half).expect("a valid twin").into()
}

/// Two bones a vertex.
fn skin() -> SkinWeights {
    let row = |v: usize| vec![((v % BONES) as u16, 0.75), (((v + 1) % BONES) as u16, 0.25)];
    let rows: Vec<Vec<(u16, f32)>> = (0..BONES * PER_GROUP).map(row).collect();
    SkinWeights::from_rows(&rows, BONES).expect("convex rows")
}

pub const CONTROLS: usize = 200;
pub const VERTICES: usize = 12_020;

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) * 2e-3).collect()
}

fn layer(rows: usize, columns: usize) -> DenseParts {
    DenseParts { weights: numbers(rows * columns), bias: numbers(rows) }
}

fn net(name: String, stage: Stage, vertices: Vec<u32>, shape: MapShape) -> NetParts {
    let far = (shape.map_side() - 1) as f32;
    // At steps of 1/512 of a pixel, as texture coordinates are.
    let place = |v: &u32| {
        let spread = |step: f32| ((*v as f32 * step).fract() * far * 512.0).round() / 512.0;
        Vec2::new(spread(0.754_877_7), spread(0.569_840_3))
    };
    NetParts {
        name,
        stage,
        inputs: (0..CONTROLS as u32 / 2).collect(),
        mean: vec![0.0; CONTROLS / 2],
        scale: vec![1.0; CONTROLS / 2],
        dense: vec![layer(256, CONTROLS / 2), layer(shape.dense_numbers(), 256)],
        map: Some(MapParts {
            shape,
            parameters: numbers(shape.parameter_count()),
            coordinates: vertices.iter().map(place).collect(),
        }),
        vertices,
    }
}

/// The size of a film face: sixteen coarse networks, eight refinements, 12,000 vertices.
pub fn face() -> Twin {
    let positions = (0..VERTICES).map(|v| Vec3::new((v % 20) as f32, (v / 20) as f32, 0.1 * (v % 7) as f32));
    let faces = (0..VERTICES as u32 - 21).map(|v| Face::quad(v, v + 1, v + 21, v + 20)).collect();
    let mesh = MeshParts { positions: positions.collect(), faces, ..MeshParts::default() };
    let controls = (0..CONTROLS).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    let shape = MapShape { untied: true, shared_features: 40, ..MapShape::default() };
    let fine = MapShape { untied: true, shared_features: 40, ..MapShape::refinement() };
    let range = |index: u32, count: u32| (index * count..(index + 1) * count).collect::<Vec<u32>>();
    let coarse = (0..16).map(|n| net(format!("segment {n}"), Stage::Coarse, range(n, 750), shape));
    let refinement = (0..8).map(|n| net(format!("region {n}"), Stage::Refinement, range(n, 800), fine));
    let parts = FaceParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs {
                bones: Vec::new(),
                controls: ControlSpecs::new(controls).expect("valid controls"),
            },
            training: Training::default(),
        },
        mesh: mesh.build().expect("a valid mesh"),
        frame: Some(MotionParts {
            pivot: Vec3::ZERO,
            inputs: vec![0, 3],
            mean: vec![0.0; 2],
            scale: vec![1.0; 2],
            layers: vec![layer(16, 2), layer(6, 16)],
        }),
        nets: coarse.chain(refinement).collect(),
        bodies: vec![RigidBodyParts {
            name: "eye".into(),
            vertices: (12_010..12_020).collect(),
            motion: MotionParts {
                pivot: Vec3::ONE,
                inputs: vec![1, 2, 5],
                mean: vec![0.0; 3],
                scale: vec![1.0; 3],
                layers: vec![layer(16, 3), layer(6, 16)],
            },
        }],
        rigid: vec![RigidParts {
            name: "tooth".into(),
            vertices: (12_000..12_010).collect(),
            follows: (10..20).collect(),
        }],
    };
    FaceTwin::new(parts, Precision::Half).expect("a valid twin").into()
}
