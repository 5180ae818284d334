//! Twins of the size that film characters have, with weights that mean nothing.

// Not every test that shares this file plays all kinds.
#![allow(dead_code)]

use understudy_core::mechanism::{Drive, Helper, Twist};
use understudy_core::{
    Bone, Channel, Constraint, ControlSpec, ControlSpecs, Face, JointMechanism, JointTransform, MeshParts,
    Random, Skeleton, SkinWeights, Vec2,
};
use understudy_runtime::body::{
    BodyParts, BodyTwin, GroupParts, InputFrame, LayerParts, SeamCorrection, Storage,
};
use understudy_runtime::diff::{
    AnchorParts, BLOCK_VERTICES, DiffParts, DiffTwin, FeatureParts, HiddenActivation, LayerNumbers,
    LinearSkinParts,
};
use understudy_runtime::face::{
    FaceParts, FaceTwin, MapParts, MapShape, NetParts, RigidBodyParts, RigidParts, Stage,
};
use understudy_runtime::mechanism::learned::{Aim, Factor, LearnedBoneParts, Moves, NONE};
use understudy_runtime::skin::{BONE_NUMBERS, SkinParts, SkinTwin};
use understudy_runtime::{
    Activation, Affine3A, BoneHeader, DenseParts, Header, Inputs, Mechanism, MotionParts, Precision,
    Training, Twin, Vec3,
};

pub const BONES: usize = 40;
const PER_GROUP: usize = 330;

/// The size of a film character: 40 groups, 13,200 vertices.
pub fn body() -> Twin {
    sized_body(BONES, PER_GROUP, [240, 128, 25])
}

/// So many bones with a group each. Widths: of inputs, hidden layers and components.
pub fn sized_body(bones: usize, per_group: usize, [inputs, hidden, components]: [usize; 3]) -> Twin {
    let vertices = bones * per_group;
    let layer = |rows: usize, columns: usize, activation| LayerParts {
        weights: (0..rows * columns).map(|i| ((i * 37 % 101) as f32 - 50.0) * 1e-3).collect(),
        bias: vec![0.01; rows],
        activation,
        storage: Storage::Plain,
    };
    let group = |index: usize| GroupParts {
        bone: index,
        vertices: (0..per_group).map(|v| (v * bones + index) as u32).collect(),
        ghosts: vec![((index + 1) % bones) as u32],
        inputs: (0..inputs).map(|i| ((i + index * 12) % (bones * 12)) as u32).collect(),
        mean: vec![0.0; inputs],
        scale: vec![0.1; inputs],
        layers: vec![
            layer(hidden, inputs, Activation::Tanh),
            layer(hidden, hidden, Activation::Tanh),
            layer(components, hidden, Activation::None),
            layer(3 * (per_group + 1), components, Activation::None),
        ],
    };
    // Two bones per vertex.
    let row = |v: usize| vec![((v % bones) as u16, 0.75), (((v + 1) % bones) as u16, 0.25)];
    let rows: Vec<Vec<(u16, f32)>> = (0..vertices).map(row).collect();
    let name = |b: usize| BoneHeader { name: format!("b{b}"), parent: b.checked_sub(1) };
    let (all, border) = (2 * bones as u32, bones as u32);
    let parts = BodyParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs {
                bones: (0..bones).map(name).collect(),
                controls: ControlSpecs::new(vec![]).expect("none are valid"),
            },
            training: Training::default(),
        },
        frame: InputFrame::Group,
        rigid_frames: false,
        rest_vertices: (0..vertices).map(|v| Vec3::splat(v as f32 * 0.01)).collect(),
        rest_bones: vec![Affine3A::IDENTITY; bones],
        base: Some(SkinWeights::from_rows(&rows, bones).expect("convex rows")),
        faces: (2..vertices as u32).map(|v| Face::triangle(v - 2, v - 1, v)).collect(),
        // The first vertex of every group at a border, a second one behind it.
        seams: Some(SeamCorrection {
            vertices: (0..all).collect(),
            border: bones,
            shares: vec![1.0; 2 * bones],
            offsets: (0..=all).collect(),
            sources: (0..border).chain(0..border).collect(),
        }),
        groups: (0..bones).map(group).collect(),
    };
    BodyTwin::new(parts, Precision::Half).expect("a valid twin").into()
}

/// Controls of [`mechanism`].
pub const POSING_CONTROLS: usize = 7;

/// Moves so many bones in a chain, of which the header knows nothing but names: joint channels, a twist, a helper and a
/// drive. What a twin sees beside its bones, `extras`, it knows too.
pub fn mechanism(bones: usize, extras: &[&str]) -> Mechanism {
    let bone = |b: usize| Bone {
        name: format!("b{b}"),
        parent: b.checked_sub(1),
        rest: JointTransform::from_translation(Vec3::new(0.3, 0.5, 0.1 * b as f32)),
    };
    let skeleton = Skeleton::new((0..bones).map(bone).collect()).expect("a chain");
    let joint = |name: &str, bone: usize, channel| {
        ControlSpec::joint(name, format!("b{}", bone % bones), channel, -90.0, 90.0)
    };
    let mut specs = vec![
        joint("lift", 0, Channel::TranslateY),
        joint("nod", 1, Channel::RotateX),
        joint("turn", 1, Channel::RotateY),
        joint("bend", 2, Channel::RotateZ),
        joint("grow", 2, Channel::ScaleX),
        ControlSpec::number("wag", -1.0, 1.0, 0.0),
        ControlSpec::number("idle", -1.0, 1.0, 0.0),
    ];
    assert_eq!(specs.len(), POSING_CONTROLS);
    specs.extend(extras.iter().map(|name| ControlSpec::number(*name, -1.0, 1.0, 0.0)));
    let constraints = vec![
        Constraint::Twist(Twist::new(&skeleton, 1 % bones, bones - 1, Vec3::Y, -0.5)),
        Constraint::Helper(Helper::new(&skeleton, 2 % bones, bones / 2, 0.5, Vec3::Z)),
        Constraint::Drive(Drive { control: 5, bone: bones - 1, channel: Channel::RotateY, gain: 40.0 }),
    ];
    let specs = ControlSpecs::new(specs).expect("valid specs");
    let exact = JointMechanism::new(skeleton, &specs, constraints).expect("a valid mechanism");
    Mechanism::exact(specs, exact.parts()).expect("a valid mechanism")
}

/// Numbers that mean nothing, of every form: fixed, turning, stretching and collapsing bones, with and without a network.
pub fn learned_mechanism(extras: &[&str]) -> Mechanism {
    let numbers = |count: usize, seed: u64| -> Vec<f32> {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.uniform(-0.2, 0.2)).collect()
    };
    let bone = |index: usize| {
        let moves = Moves {
            turns: [1, 2].contains(&index),
            stretches: index == 2,
            collapses: index == 3,
            shifts: [0, 3].contains(&index),
        };
        let (numbers_out, inputs) = (moves.numbers(), if index == 4 { 0 } else { 3 });
        let layer = |rows: usize, columns: usize| DenseParts {
            weights: numbers(rows * columns, index as u64),
            bias: numbers(rows, 50 + index as u64),
        };
        let factors = vec![(0, Factor::Sine(0.3)), (1, Factor::Cosine(0.3)), (2, Factor::Power(2))];
        let terms = vec![[0, NONE, NONE], [0, 1, NONE], [0, 1, 2]];
        LearnedBoneParts {
            // Children may come before their parents.
            parent: [Some(1), None, Some(0), Some(2), Some(3)][index],
            rest: Affine3A::from_translation(Vec3::X * index as f32),
            moves,
            // The third bone points to the second and sees how far that is, and how it is turned.
            aim: (index == 2).then_some(Aim {
                base: Vec3::new(0.3, 0.2, -0.1),
                axis: Vec3::new(0.6, 0.0, 0.8),
                reach: 40.0,
                target: 1,
            }),
            inputs: match index {
                2 => vec![1, POSING_CONTROLS as u32, POSING_CONTROLS as u32 + 6],
                _ => (0..inputs).map(|input| (input + index as u32) % POSING_CONTROLS as u32).collect(),
            },
            mean: numbers(inputs as usize, 3),
            scale: numbers(inputs as usize, 4),
            factors: if inputs > 0 { factors } else { Vec::new() },
            terms: if inputs > 0 { terms.clone() } else { Vec::new() },
            closed: layer(numbers_out, if inputs > 0 { terms.len() } else { 0 }),
            layers: match index {
                1 | 3 => vec![layer(5, 3), layer(numbers_out, 5)],
                _ => Vec::new(),
            },
        }
    };
    let specs = mechanism(5, extras).specs().clone();
    Mechanism::learned(specs, (0..5).map(bone).collect()).expect("valid parts")
}

pub const CONTROLS: usize = 200;

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) * 2e-3).collect()
}

fn layer(rows: usize, columns: usize) -> DenseParts {
    DenseParts { weights: numbers(rows * columns), bias: numbers(rows) }
}

fn net(
    name: String,
    stage: Stage,
    vertices: Vec<u32>,
    shape: MapShape,
    [inputs, hidden]: [usize; 2],
) -> NetParts {
    let far = (shape.map_side() - 1) as f32;
    // At steps of 1/512 of a pixel, as texture coordinates are.
    let place = |v: &u32| {
        let spread = |step: f32| ((*v as f32 * step).fract() * far * 512.0).round() / 512.0;
        Vec2::new(spread(0.754_877_7), spread(0.569_840_3))
    };
    NetParts {
        name,
        stage,
        inputs: (0..inputs as u32).collect(),
        mean: vec![0.0; inputs],
        scale: vec![1.0; inputs],
        dense: vec![layer(hidden, inputs), layer(shape.dense_numbers(), hidden)],
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
    let shape = MapShape { untied: true, shared_features: 40, ..MapShape::default() };
    sized_face(CONTROLS, [750, 16], [800, 8], shape, 256)
}

/// Coarse and refinement networks: vertices of each and how many, with maps of a shape and twice its side.
pub fn sized_face(
    controls: usize,
    [coarse_size, coarse_count]: [u32; 2],
    [fine_size, fine_count]: [u32; 2],
    shape: MapShape,
    hidden: usize,
) -> Twin {
    let drawn = coarse_size * coarse_count;
    let vertices = drawn + 20;
    let positions = (0..vertices).map(|v| Vec3::new((v % 20) as f32, (v / 20) as f32, 0.1 * (v % 7) as f32));
    let faces = (0..vertices - 21).map(|v| Face::quad(v, v + 1, v + 21, v + 20)).collect();
    let mesh = MeshParts { positions: positions.collect(), faces, ..MeshParts::default() };
    let specs = (0..controls).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    let fine = MapShape { doublings: shape.doublings + 1, ..shape };
    let range = |index: u32, count: u32| (index * count..(index + 1) * count).collect::<Vec<u32>>();
    let widths = [controls / 2, hidden];
    let coarse = (0..coarse_count)
        .map(|n| net(format!("segment {n}"), Stage::Coarse, range(n, coarse_size), shape, widths));
    let refinement = (0..fine_count)
        .map(|n| net(format!("region {n}"), Stage::Refinement, range(n, fine_size), fine, widths));
    let parts = FaceParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs { bones: Vec::new(), controls: ControlSpecs::new(specs).expect("valid controls") },
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
            vertices: (drawn + 10..vertices).collect(),
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
            vertices: (drawn..drawn + 10).collect(),
            follows: (1..11).collect(),
        }],
    };
    FaceTwin::new(parts, Precision::Half).expect("a valid twin").into()
}

/// The size of a film face: 12,000 vertices, 240 anchors, rank 160, posed by controls alone.
pub fn diff() -> Twin {
    sized_diff(0, CONTROLS, 12_000, [512, 160], 240)
}

/// With a skin where there are bones. Widths: of the hidden layers and of the coefficients.
pub fn sized_diff(
    bones: usize,
    controls: usize,
    vertices: usize,
    [hidden, rank]: [usize; 2],
    anchors: usize,
) -> Twin {
    let layer =
        |rows: usize, columns: usize| LayerNumbers { weights: numbers(rows * columns), bias: numbers(rows) };
    let block_rank = (rank / 2).max(1);
    // The first bone is the root.
    let of_bones = (1..bones as u32).flat_map(|bone| (0..12).map(move |number| 12 * bone + number));
    let inputs: Vec<u32> = of_bones.chain((0..controls as u32).map(|c| 12 * bones as u32 + c)).collect();
    let count = inputs.len();
    let anchor = |index: usize| {
        let features: Vec<u32> = (0..count as u32).skip(index % 3).step_by(3).collect();
        AnchorParts {
            vertex: (index * vertices / anchors) as u32,
            layers: vec![layer(8, features.len()), layer(8, 8), layer(3, 8)],
            features,
        }
    };
    let row = |v: usize| vec![((v % bones) as u16, 0.75), (((v + 1) % bones) as u16, 0.25)];
    let name = |b: usize| BoneHeader { name: format!("b{b}"), parent: b.checked_sub(1) };
    let specs = (0..controls).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    let parts = DiffParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs {
                bones: (0..bones).map(name).collect(),
                controls: ControlSpecs::new(specs).expect("valid controls"),
            },
            training: Training::default(),
        },
        faces: (2..vertices as u32).map(|v| Face::triangle(v - 2, v - 1, v)).collect(),
        skin: (bones > 0).then(|| LinearSkinParts {
            rest_bones: vec![Affine3A::IDENTITY; bones],
            weights: SkinWeights::from_rows(&(0..vertices).map(row).collect::<Vec<_>>(), bones)
                .expect("convex rows"),
        }),
        features: FeatureParts { mean: vec![0.1; count], scale: vec![0.5; count], inputs },
        activation: if bones > 0 { HiddenActivation::Tanh } else { HiddenActivation::Relu },
        differential: vec![layer(hidden, count), layer(hidden, hidden), layer(rank, hidden)],
        anchors: (0..anchors).map(anchor).collect(),
        subspace: numbers(rank * 3 * anchors),
        linear: numbers(rank * count),
        block_ranks: vec![block_rank as u32; vertices.div_ceil(BLOCK_VERTICES)],
        mixes: numbers(vertices.div_ceil(BLOCK_VERTICES) * block_rank * rank),
        basis: numbers(3 * vertices * block_rank),
        places: (0..vertices).map(|v| Vec3::new((v % 20) as f32, (v / 20) as f32, 0.1)).collect(),
    };
    DiffTwin::new(parts, Precision::Half).expect("a valid twin").into()
}

/// The size of a film face: 12,000 vertices, 64 bones, 16 components.
pub fn skin() -> Twin {
    sized_skin(CONTROLS, 12_000, 64, 0)
}

/// So many vertices that follow two bones each.
pub fn sized_skin(controls: usize, vertices: usize, bones: usize, components: usize) -> Twin {
    // Eight bones per vertex, a dozen per eight neighbours.
    let own = if bones < 8 { 2 } else { 8 };
    let row = |v: usize| (0..own).map(|k| (((v / 2 + k) % bones) as u16, 1.0 / own as f32)).collect();
    let rows: Vec<Vec<(u16, f32)>> = (0..vertices).map(row).collect();
    let specs = (0..controls).map(|c| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0)).collect();
    let point = |v: usize| Vec3::new((v % 20) as f32, (v / 20) as f32 * 0.1, 0.1 * (v % 7) as f32);
    let (inputs, hidden) = (controls - 1, [32, 16]);
    let parts = SkinParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs { bones: Vec::new(), controls: ControlSpecs::new(specs).expect("valid controls") },
            training: Training::default(),
        },
        rest_vertices: (0..vertices).map(point).collect(),
        faces: (2..vertices as u32).map(|v| Face::triangle(v - 2, v - 1, v)).collect(),
        weights: SkinWeights::from_rows(&rows, bones).expect("convex rows"),
        centres: (0..bones).map(point).collect(),
        frame: Some(MotionParts {
            pivot: Vec3::ZERO,
            inputs: vec![0, 3],
            mean: vec![0.0; 2],
            scale: vec![1.0; 2],
            layers: vec![layer(16, 2), layer(6, 16)],
        }),
        inputs: (1..controls as u32).collect(),
        mean: vec![0.0; inputs],
        scale: vec![1.0; inputs],
        hidden: vec![layer(hidden[0], inputs), layer(hidden[1], hidden[0])],
        output: layer(BONE_NUMBERS * bones + components, inputs + hidden[1]),
        components: numbers(3 * vertices * components),
    };
    SkinTwin::new(parts, Precision::Half).expect("a valid twin").into()
}
