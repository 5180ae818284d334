//! A counting allocator proves that evaluating a face twin allocates nothing, on one thread and on two,
//! and that its derivative does not either.

#[path = "common/counting.rs"]
mod counting;

use counting::allocations;
use understudy_core::{ControlSpec, ControlSpecs, Face, MeshParts, Vec2, Vec3};
use understudy_runtime::dense::Precision;
use understudy_runtime::face::map_decoder::MapShape;
use understudy_runtime::face::{
    DenseParts, FaceHeader, FaceParts, FaceTwin, GradientSpace, MapParts, MotionParts, NetParts,
    RigidBodyParts, RigidParts, Stage, Workspace,
};
use understudy_runtime::workers::Workers;

const CONTROLS: usize = 20;
const VERTICES: usize = 400;

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) * 2e-3).collect()
}

fn layer(rows: usize, columns: usize) -> DenseParts {
    DenseParts { weights: numbers(rows * columns), bias: numbers(rows) }
}

fn net(name: &str, stage: Stage, vertices: Vec<u32>, shape: MapShape) -> NetParts {
    let place = |v: &u32| Vec2::new((v * 7 % 31) as f32, (v * 13 % 31) as f32);
    NetParts {
        name: name.into(),
        stage,
        inputs: (0..CONTROLS as u32).collect(),
        mean: vec![0.0; CONTROLS],
        scale: vec![1.0; CONTROLS],
        dense: vec![layer(64, CONTROLS), layer(shape.dense_numbers(), 64)],
        map: Some(MapParts {
            shape,
            parameters: numbers(shape.parameter_count()),
            coordinates: vertices.iter().map(place).collect(),
        }),
        vertices,
    }
}

fn twin() -> FaceTwin {
    let positions = (0..VERTICES).map(|v| Vec3::new((v % 20) as f32, (v / 20) as f32, 0.1 * (v % 7) as f32));
    let faces = (0..VERTICES as u32 - 21).map(|v| Face::quad(v, v + 1, v + 21, v + 20)).collect();
    let mesh = MeshParts { positions: positions.collect(), faces, ..MeshParts::default() };
    let controls = (0..CONTROLS).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    let parts = FaceParts {
        header: FaceHeader {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            controls: ControlSpecs::new(controls).expect("valid controls"),
            training: serde_json::Value::Null,
        },
        mesh: mesh.build().expect("a valid mesh"),
        frame: Some(MotionParts {
            pivot: Vec3::ZERO,
            inputs: vec![0, 3],
            mean: vec![0.0; 2],
            scale: vec![1.0; 2],
            layers: vec![layer(16, 2), layer(6, 16)],
        }),
        nets: vec![
            net(
                "a",
                Stage::Coarse,
                (0..200).collect(),
                MapShape { untied: true, shared_features: 24, ..MapShape::default() },
            ),
            net("b", Stage::Coarse, (200..380).collect(), MapShape { untied: true, ..MapShape::default() }),
            net("c", Stage::Refinement, (50..150).collect(), MapShape::refinement()),
        ],
        bodies: vec![RigidBodyParts {
            name: "eye".into(),
            vertices: (390..400).collect(),
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
            vertices: (380..390).collect(),
            follows: (10..20).collect(),
        }],
    };
    FaceTwin::new(parts, Precision::Half).expect("a valid twin")
}

#[test]
fn a_pose_and_its_derivative_allocate_nothing() {
    let twin = twin();
    let workers = Workers::new(2).expect("threads start");
    let (mut one, mut two) = (Workspace::new(&twin, 1), Workspace::new(&twin, 2));
    let mut space = GradientSpace::new(&twin).expect("a valid twin");
    let pose: Vec<f32> = (0..CONTROLS).map(|c| (c as f32).sin()).collect();
    let mut out = vec![Vec3::ZERO; VERTICES];
    let mut normals = out.clone();
    let slopes = vec![Vec3::ONE; VERTICES];
    let mut by_controls = vec![0.0; CONTROLS];
    let mut frame = |times: usize| {
        for _ in 0..times {
            twin.evaluate(&pose, &mut one, None, &mut out).expect("a valid pose");
            twin.normals(&one, &out, &mut normals).expect("fitting arrays");
            twin.evaluate(&pose, &mut two, Some(&workers), &mut out).expect("a valid pose");
            twin.forward(&pose, &mut space, &mut out).expect("a valid pose");
            twin.backward(&mut space, &slopes, &mut by_controls).expect("fitting arrays");
        }
    };
    frame(1);
    let before = allocations();
    frame(10);
    assert_eq!(allocations() - before, 0);
}
