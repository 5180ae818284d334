//! Makes the fuzz corpus: for every reader a few tiny files, `good-*` that it accepts and `bad-*` that it
//! refuses, each bad one a mistake that people or hostile programs make.

use crate::alembic_support::{self as abc, Archive, compound, f32s, f64s, i32s};
use crate::packed;
use flate2::{Compression, Crc, write::DeflateEncoder};
use serde_json::{Value, json};
use std::io::Write as _;
use understudy_core::{
    BlendshapeRig, Bone, Corrective, Face, JointClip, JointPose, JointTransform, Mesh, MeshParts, Quat,
    Segments, Shape, Skeleton, SkinWeights, SparseDeltas, Vec2, Vec3,
};
use understudy_io::gltf::{GltfScene, to_glb_bytes};
use understudy_io::npz::NpzWriter;
use understudy_io::tensors::TensorWriter;
use understudy_io::{blendshape_npz, bvh, dataset, live_link, obj};

/// Target, file name, bytes.
type Sample = (&'static str, &'static str, Vec<u8>);

/// The whole corpus.
pub fn all() -> Vec<Sample> {
    [
        gltf(),
        texts(),
        npz(),
        blendshapes(),
        sequences(),
        real(),
        tensors(),
        datasets(),
        motion(),
        captures(),
        caches(),
        scenes(),
    ]
    .concat()
}

fn mesh() -> Mesh {
    let faces = vec![Face::quad(0, 1, 2, 3), Face::triangle(2, 3, 4)];
    MeshParts {
        positions: (0..5).map(|i| Vec3::new((i % 2) as f32, i as f32 * 0.5, (i * i) as f32 * 0.1)).collect(),
        uvs: (0..5).map(|i| Vec2::new(i as f32 * 0.2, 0.5)).collect(),
        face_uvs: faces.clone(),
        faces,
        segments: Segments { names: vec!["skin".into(), "tooth".into()], of_vertex: vec![0, 0, 0, 0, 1] },
    }
    .build()
    .expect("a valid mesh")
}

fn rig(mesh: &Mesh) -> BlendshapeRig {
    let deltas =
        |vertex: u32| SparseDeltas { vertices: vec![vertex], deltas: vec![Vec3::new(0.1, -0.2, 0.3)] };
    let shape = |name: &str, vertex| Shape { name: name.into(), deltas: deltas(vertex) };
    let pair = Corrective { shapes: vec![0, 1], deltas: deltas(4) };
    BlendshapeRig::new(mesh.positions().to_vec(), vec![shape("jawOpen", 0), shape("smile", 2)], vec![pair])
        .expect("a valid rig")
}

fn skeleton() -> Skeleton {
    let bone = |name: &str, parent| Bone {
        name: name.into(),
        parent,
        rest: JointTransform {
            rotation: Quat::from_rotation_z(0.3),
            ..JointTransform::from_translation(Vec3::new(0.0, 80.0, 1.0))
        },
    };
    Skeleton::new(vec![bone("hip", None), bone("knee", Some(0))]).expect("a tree")
}

fn weights() -> SkinWeights {
    SkinWeights::from_rows(&vec![vec![(0, 0.25), (1, 0.75)]; 5], 2).expect("convex rows")
}

fn clip(shapes: bool) -> JointClip {
    let pose = |angle: f32| {
        let mut pose = skeleton().rest_pose();
        pose.0[1].rotation = Quat::from_rotation_x(angle);
        pose
    };
    let poses: Vec<JointPose> = vec![pose(0.0), pose(0.7), pose(-0.4)];
    let shape_weights =
        if shapes { vec![vec![0.0, 0.5], vec![1.0, 0.2], vec![0.3, 0.0]] } else { Vec::new() };
    JointClip { name: "kick".into(), rate: 30.0, poses, shape_weights }
}

fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().chain([0, 0].iter()).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { letter as char } else { '=' });
        }
    }
    out
}

/// A triangle as JSON with its buffer inside; the second morph target is sparse.
fn gltf_json() -> Value {
    let mut buffer: Vec<u8> = Vec::new();
    let mut floats = |values: &[f32]| buffer.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    floats(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    floats(&[0.0, 0.5, 0.0]);
    buffer.extend([0, 0, 1, 0, 2, 0, 2, 0]);
    let uri = format!("data:application/octet-stream;base64,{}", base64(&buffer));
    json!({
        "asset": { "version": "2.0" },
        "scene": 0,
        "scenes": [{ "nodes": [0] }],
        "nodes": [{ "mesh": 0, "name": "triangle" }],
        "meshes": [{
            "primitives": [{ "attributes": { "POSITION": 0 }, "indices": 1, "targets": [{ "POSITION": 2 }] }],
            "weights": [0.5],
            "extras": { "targetNames": ["up"] },
        }],
        "buffers": [{ "uri": uri, "byteLength": buffer.len() }],
        "bufferViews": [
            { "buffer": 0, "byteOffset": 0, "byteLength": 36 },
            { "buffer": 0, "byteOffset": 48, "byteLength": 6 },
            { "buffer": 0, "byteOffset": 54, "byteLength": 2 },
            { "buffer": 0, "byteOffset": 36, "byteLength": 12 },
        ],
        "accessors": [
            { "bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0] },
            { "bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR" },
            {
                "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [0, 0.5, 0],
                "sparse": {
                    "count": 1,
                    "indices": { "bufferView": 2, "componentType": 5123 },
                    "values": { "bufferView": 3 },
                },
            },
        ],
    })
}

fn gltf() -> Vec<Sample> {
    let (mesh, skeleton, weights) = (mesh(), skeleton(), weights());
    let (rig, clips) = (rig(&mesh), [clip(true)]);
    let scene = GltfScene {
        skin: Some((&skeleton, &weights)),
        shapes: Some(&rig),
        clips: &clips,
        ..GltfScene::new("corpus", &mesh)
    };
    let whole = to_glb_bytes(&scene).expect("a valid scene");
    let plain = to_glb_bytes(&GltfScene::new("plain", &mesh)).expect("a valid scene");
    let changed = |pointer: &str, value: Value| {
        let mut document = gltf_json();
        *document.pointer_mut(pointer).expect("in the document") = value;
        document.to_string().into_bytes()
    };
    let mut points = packed::draco();
    points.json["accessors"][0]["count"] = json!(48);
    let mut bomb = packed::meshopt();
    bomb.json["bufferViews"][0]["extensions"]["EXT_meshopt_compression"]["count"] = json!(1u64 << 33);
    vec![
        ("gltf", "good-quantised.glb", packed::quantised().glb()),
        ("gltf", "good-meshopt.glb", packed::meshopt().glb()),
        ("gltf", "good-draco.glb", packed::draco().glb()),
        ("gltf", "bad-draco-points.glb", points.glb()),
        ("gltf", "bad-meshopt-bomb.glb", bomb.glb()),
        ("gltf", "good-skin-shapes-clip.glb", whole.clone()),
        ("gltf", "good-mesh.glb", plain),
        ("gltf", "good-sparse.gltf", gltf_json().to_string().into_bytes()),
        ("gltf", "bad-truncated.glb", whole[..whole.len() * 2 / 3].to_vec()),
        ("gltf", "bad-index.gltf", changed("/accessors/1/count", json!(4_000_000_000u64))),
        ("gltf", "bad-cycle.gltf", changed("/nodes", json!([{ "mesh": 0, "children": [0] }]))),
        ("gltf", "bad-sparse-count.gltf", changed("/accessors/2/sparse/count", json!(9_999_999))),
        ("gltf", "bad-empty.gltf", b"{}".to_vec()),
    ]
}

fn texts() -> Vec<Sample> {
    let good = obj::to_obj_string(&mesh()).into_bytes();
    let hand = b"# by hand\no thing\nv 0 0 0 0.5 0.5 0.5\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\ng side\nf -4//1 -3//1 -2//1\n\
                 s off\nusemtl skin\nf 1 3 \\\n 4\n"
        .to_vec();
    vec![
        ("obj", "good-mesh.obj", good.clone()),
        ("obj", "good-by-hand.obj", hand),
        ("obj", "bad-empty.obj", Vec::new()),
        ("obj", "bad-index.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n".to_vec()),
        ("obj", "bad-nan.obj", b"v 0 nan 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n".to_vec()),
        ("obj", "bad-zero.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n".to_vec()),
    ]
}

/// A zip archive with one deflated `.npy`.
fn deflated(descr: &str, shape: &str, elements: &[u8], claimed: Option<u32>) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': ({shape}), }}");
    while (text.len() + 11) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut member = b"\x93NUMPY\x01\0".to_vec();
    member.extend((text.len() as u16).to_le_bytes());
    member.extend(text.as_bytes());
    member.extend(elements);
    let mut crc = Crc::new();
    crc.update(&member);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&member).expect("memory");
    let packed = encoder.finish().expect("memory");
    let mut common = Vec::new();
    for half in [20u16, 0, 8, 0, 33] {
        common.extend(half.to_le_bytes());
    }
    for word in [crc.sum(), packed.len() as u32, claimed.unwrap_or(member.len() as u32)] {
        common.extend(word.to_le_bytes());
    }
    common.extend([5, 0, 0, 0]);
    let mut out = [b"PK\x03\x04", common.as_slice(), b"a.npy", &packed].concat();
    let directory =
        [b"PK\x01\x02\x14\0", common.as_slice(), &[0; 10], &0u32.to_le_bytes(), b"a.npy"].concat();
    let offset = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn npz() -> Vec<Sample> {
    let mut npz = NpzWriter::new();
    npz.f32("x", &[2, 3], &[1.0, 2.0, 3.0, -1.0, 0.5, 0.25]).i32("i", &[3], &[1, -1, 7]);
    let stored = npz.strings("names", &["smile", "Zähne"]);
    let stored = std::mem::take(stored).finish().expect("valid");
    let six: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    vec![
        ("npz", "good-stored.npz", stored.clone()),
        ("npz", "good-deflated-fortran.npz", deflated("<f8", "3, 2", &six, None)),
        ("npz", "good-big-endian.npz", deflated(">i2", "4,", &[0, 1, 255, 254, 0, 3, 0, 4], None)),
        ("npz", "bad-truncated.npz", stored[..stored.len() - 30].to_vec()),
        ("npz", "bad-object.npz", deflated("|O", "3,", &[0; 24], None)),
        ("npz", "bad-bomb.npz", deflated("<f8", "500000000,", &six, Some(4_000_000_128))),
        ("npz", "bad-shape.npz", deflated("<f8", "7,", &six, None)),
        ("npz", "bad-nested.npz", deflated("((((((((((((((((((((((((((((((", "6,", &six, None)),
    ]
}

fn blendshapes() -> Vec<Sample> {
    let mesh = mesh();
    let good = blendshape_npz::to_bytes(&mesh, &rig(&mesh)).expect("valid");
    let bare = |faces: &[i32], deltas: &[f32], shape: &[usize]| {
        let mut npz = NpzWriter::new();
        npz.f32("neutral", &[3, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
            .i32("faces", &[1, 3], faces)
            .strings("names", &["a"])
            .f32("deltas", shape, deltas);
        npz.finish().expect("valid arrays")
    };
    vec![
        ("blendshape_npz", "good-correctives.npz", good.clone()),
        ("blendshape_npz", "good-bare.npz", bare(&[0, 1, 2], &[0.5; 9], &[1, 3, 3])),
        ("blendshape_npz", "bad-shape.npz", bare(&[0, 1, 2], &[0.5; 6], &[1, 3, 2])),
        ("blendshape_npz", "bad-face.npz", bare(&[0, 1, 3], &[0.5; 9], &[1, 3, 3])),
        ("blendshape_npz", "bad-nan.npz", bare(&[0, 1, 2], &[f32::NAN; 9], &[1, 3, 3])),
        ("blendshape_npz", "bad-truncated.npz", good[..good.len() / 2].to_vec()),
    ]
}

fn sequences() -> Vec<Sample> {
    let sequence = |faces: &[i32], positions: &[f32], frames: usize| {
        let mut npz = NpzWriter::new();
        npz.f32("vertices", &[frames, 3, 3], positions).i32("faces", &[1, 3], faces).f32(
            "rate",
            &[],
            &[24.0],
        );
        npz.finish().expect("valid arrays")
    };
    let numbers: Vec<f32> = (0..18).map(|i| i as f32 * 0.5).collect();
    let good = sequence(&[0, 1, 2], &numbers, 2);
    vec![
        ("mesh_sequence", "bad-face.npz", sequence(&[0, 1, 3], &numbers, 2)),
        ("mesh_sequence", "bad-empty.npz", sequence(&[0, 1, 2], &[], 0)),
        ("mesh_sequence", "bad-truncated.npz", good[..good.len() / 2].to_vec()),
        ("mesh_sequence", "good-two-frames.npz", good),
    ]
}

fn real() -> Vec<Sample> {
    let human = |parents: &[i32], weight: f32| {
        let mut npz = NpzWriter::new();
        npz.f32("verts", &[4, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
            .i32("quads", &[1, 4], &[0, 1, 2, 3])
            .strings("quad_group", &["body"])
            .strings("bone_names", &["root", "tip"])
            .i32("bone_parent", &[2], parents)
            .f32("bone_head", &[2, 3], &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
            .f32("bone_tail", &[2, 3], &[0.0, 1.0, 0.0, 0.0, 2.0, 0.0])
            .i32("skin_bone_idx", &[4, 1], &[0, 1, 0, 1])
            .f32("skin_weight", &[4, 1], &[weight, 1.0, 1.0, 1.0])
            .strings("arkit_names", &["jawOpen"])
            .f32("arkit_deltas", &[1, 4, 3], &[0.1; 12]);
        npz.finish().expect("valid arrays")
    };
    let face = |end: i32| {
        let mut npz = NpzWriter::new();
        npz.f32("neutral", &[4, 3], &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
            .i32("quads", &[1, 4], &[0, 1, 2, -1])
            .i32("quad_uv", &[1, 4], &[0, 1, 0, -1])
            .f32("uv", &[2, 2], &[0.0, 0.0, 1.0, 1.0])
            .i32("quad_material", &[1], &[0])
            .strings("material_names", &["skin"])
            .strings("expression_names", &["jawOpen"])
            .f32("expression_deltas", &[1, 4, 3], &[0.1; 12])
            .i32("landmarks68", &[68], &[1; 68])
            .strings("part_names", &["face", "teeth"])
            .i32("part_start", &[2], &[0, 2])
            .i32("part_end", &[2], &[2, end])
            .i32("tooth_start", &[3], &[2, 3, 4]);
        npz.finish().expect("valid arrays")
    };
    vec![
        ("real", "good-human.npz", human(&[-1, 0], 1.0)),
        ("real", "good-face.npz", face(4)),
        ("real", "bad-cycle.npz", human(&[1, 0], 1.0)),
        ("real", "bad-weight.npz", human(&[-1, 0], 0.0)),
        ("real", "bad-part.npz", face(900)),
    ]
}

fn tensors() -> Vec<Sample> {
    let mut file = TensorWriter::new();
    file.f32("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0]).u16("i", &[3], &[1, 2, 3]).metadata("note", "tiny");
    let good = file.finish().expect("valid");
    let raw = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    };
    let huge =
        r#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#;
    vec![
        ("safetensors", "good-two.safetensors", good.clone()),
        ("safetensors", "good-empty.safetensors", raw("{}", 0)),
        ("safetensors", "bad-truncated.safetensors", good[..good.len() - 3].to_vec()),
        ("safetensors", "bad-huge.safetensors", raw(huge, 8)),
        ("safetensors", "bad-length.safetensors", u64::MAX.to_le_bytes().to_vec()),
        ("safetensors", "bad-json.safetensors", raw("[[[[[[[[", 0)),
    ]
}

fn datasets() -> Vec<Sample> {
    let folder = tempfile::tempdir().expect("a folder");
    let rest = dataset::DatasetRest { mesh: mesh(), skeleton: Some(skeleton()), weights: Some(weights()) };
    let controls = vec![
        understudy_core::ControlSpec::number("smile", 0.0, 1.0, 0.0),
        understudy_core::ControlSpec::joint("turn", "hip", understudy_core::Channel::RotateY, -30.0, 30.0),
    ];
    let header = dataset::DatasetHeader {
        rig: "corpus".into(),
        rig_file: None,
        method: "uniform".into(),
        seed: 1,
        settings: Default::default(),
        controls: understudy_core::ControlSpecs::new(controls).expect("valid specs"),
        poses: 2,
        chunk_size: 2,
    };
    let writer = dataset::DatasetWriter::create(folder.path(), &header, &rest).expect("created");
    let mut chunk = dataset::Chunk::with_capacity(writer.shape(), 2);
    for pose in 0..2 {
        let global = understudy_core::GlobalPose(skeleton().rest_global().to_vec());
        let controls = understudy_core::Controls(vec![0.5, pose as f32]);
        chunk.push(&controls, &global, rest.mesh.positions()).expect("fits");
    }
    writer.write_chunk(0, &chunk).expect("written");
    writer.finish().expect("complete");
    let file = |name: &str| std::fs::read(folder.path().join(name)).expect("just written");
    let (chunk, manifest) = (file("chunk-000000.safetensors"), file("dataset.toml"));
    let mut flipped = chunk.clone();
    *flipped.last_mut().expect("not empty") ^= 1;
    vec![
        ("dataset", "good-chunk.safetensors", chunk.clone()),
        ("dataset", "good-rest.safetensors", file("rest.safetensors")),
        ("dataset", "good-dataset.toml", manifest.clone()),
        ("dataset", "bad-flipped.safetensors", flipped),
        ("dataset", "bad-truncated.safetensors", chunk[..chunk.len() / 2].to_vec()),
        ("dataset", "bad-version.toml", replace(&manifest, "format = 1", "format = 9")),
        ("dataset", "bad-counts.toml", replace(&manifest, "poses = 2", "poses = 9000000000000000000")),
        ("dataset", "bad-range.toml", replace(&manifest, "high = 1.0", "high = nan")),
    ]
}

fn motion() -> Vec<Sample> {
    let mut bvh = bvh::Bvh::from_clip(skeleton(), clip(false), [2, 0, 1]);
    bvh.end_sites.push((1, Vec3::new(0.0, -40.0, 0.0)));
    let good = bvh::to_text(&bvh, 1.0).expect("valid").into_bytes();
    let odd = b"HIERARCHY ROOT a b{ OFFSET 0 0 0\nCHANNELS 2 Yposition Zrotation\nJOINT a b {\nOFFSET 0 1.7 0\nCHANNELS 0\n}}\n\
                MOTION\nFrames: 2\nFrame Time: .0083333\n1 90\n2 -450\n";
    vec![
        ("bvh", "good-written.bvh", good.clone()),
        ("bvh", "good-odd.bvh", odd.to_vec()),
        ("bvh", "bad-channels.bvh", replace(&good, "CHANNELS 3", "CHANNELS 4")),
        ("bvh", "bad-frames.bvh", replace(&good, "Frames: 3", "Frames: 4000000000")),
        ("bvh", "bad-nan.bvh", replace(&good, "OFFSET 0.000000", "OFFSET nan")),
        ("bvh", "bad-nesting.bvh", replace(&good, "}\n", "")),
        ("bvh", "bad-truncated.bvh", good[..good.len() / 2].to_vec()),
    ]
}

fn captures() -> Vec<Sample> {
    let take = live_link::LiveLinkTake {
        names: vec!["jawOpen".into(), "HeadYaw".into()],
        frames: vec![vec![0.1, 0.2], vec![0.3, -0.4], vec![0.5, 0.0]],
        times: vec![0.0, 1.0 / 60.0, 2.0 / 60.0],
        rate: 60.0,
        rate_reason: String::new(),
        start: 43_199.98,
    };
    let good = live_link::to_text(&take).expect("valid").into_bytes();
    vec![
        ("live_link", "good-take.csv", good.clone()),
        ("live_link", "good-weights.csv", b"time,smile,jaw\n0,0.5,1\n0.04,0.25,1e-3\n".to_vec()),
        ("live_link", "bad-nan.csv", b"smile\nnan\n".to_vec()),
        ("live_link", "bad-columns.csv", b"smile,jaw\n1,2,3\n".to_vec()),
        ("live_link", "bad-timecode.csv", b"Timecode,BlendShapeCount,JawOpen\n99:99:99:99,1,0.5\n".to_vec()),
        ("live_link", "bad-truncated.csv", good[..good.len() - 200].to_vec()),
    ]
}

fn caches() -> Vec<Sample> {
    let square = |z: f32| f32s(&[0.0, 0.0, z, 1.0, 0.0, z, 1.0, 1.0, z, 0.0, 1.0, z]);
    let faces: (&[i32], &[i32]) = (&[4], &[3, 2, 1, 0]);
    let other: (&[i32], &[i32]) = (&[3], &[2, 1, 0]);
    let heights = || vec![square(0.0), square(1.0), square(0.5)];
    let moves = vec![f64s(&[1.0, 0.0, 0.0, 90.0]), f64s(&[2.0, 0.0, 0.0, 80.0])];
    let mut body = abc::mesh("bodyShape", 1, heights(), &[faces, faces, faces]);
    let uv = compound(
        "uv",
        vec![
            abc::array(".vals", abc::F32, 2, 0, vec![f32s(&[0.0, 0.0, 1.0, 0.5])]),
            abc::array(".indices", abc::U32, 1, 0, vec![i32s(&[0, 1, 1, 0])]),
        ],
    );
    if let abc::Content::Properties(inner) = &mut body.properties[0].content {
        inner.push(uv);
    }
    let moved = abc::transform("body", 1, &[1, 6], moves, vec![body]);
    let whole =
        Archive::new(0.1, 24.0, vec![moved, abc::mesh("hat", 0, vec![square(2.0)], &[faces])]).bytes();
    let mut fine = Archive::new(0.0, 24.0, vec![abc::mesh("a", 2, heights(), &[faces])]);
    fine.samplings.push((None, vec![0.0, 0.01, 0.5]));
    let changing = Archive::new(0.0, 24.0, vec![abc::mesh("a", 1, heights(), &[faces, other, faces])]);
    let mut open = whole.clone();
    open[5] = 0;
    // The object below itself: its group names its own place.
    let mut round = whole.clone();
    let place =
        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let root = place(&round, 8) as usize;
    let top = place(&round, root + 8 + 16) as usize;
    let own = (top as u64).to_le_bytes();
    round[top + 16..top + 24].copy_from_slice(&own);
    vec![
        ("alembic", "good-objects.abc", whole.clone()),
        ("alembic", "good-times.abc", fine.bytes()),
        ("alembic", "bad-faces-change.abc", changing.bytes()),
        ("alembic", "bad-never-closed.abc", open),
        ("alembic", "bad-round.abc", round),
        ("alembic", "bad-truncated.abc", whole[..whole.len() * 2 / 3].to_vec()),
        ("alembic", "bad-hdf5.abc", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\0\0\0".to_vec()),
    ]
}

/// FBX and USD: files that are read by libraries of others.
fn scenes() -> Vec<Sample> {
    let fbx = include_bytes!("../fbx_support/lift.fbx");
    let text = include_str!("../usd_support/armature.usda");
    let layer = openusd::usda::parse(text).expect("a layer");
    let mut binary = std::io::Cursor::new(Vec::new());
    openusd::usdc::CrateWriter::write(&layer, &mut binary).expect("written");
    let binary = binary.into_inner();
    let deep = format!("#usda 1.0\ndef Mesh \"a\" {{ int[] x = {}", "[".repeat(3000));
    vec![
        ("fbx", "good-lift.fbx", fbx.to_vec()),
        ("fbx", "bad-no-objects.fbx", b"; FBX 7.4.0 project file\nObjects: {\n}\n".to_vec()),
        ("fbx", "bad-face.fbx", replace(fbx, "a: 0,1,2,-4", "a: 0,1,9,-4")),
        ("fbx", "bad-magic.fbx", b"Kaydara FBX Binary  \0\x1a\0".to_vec()),
        ("usd", "good-armature.usda", text.as_bytes().to_vec()),
        ("usd", "good-armature.usdc", binary.clone()),
        ("usd", "bad-face.usda", replace(text.as_bytes(), "[0, 1, 2, 3]", "[0, 1, 2, 7]")),
        ("usd", "bad-truncated.usdc", binary[..binary.len() * 2 / 3].to_vec()),
        ("usd", "bad-deep.usda", deep.into_bytes()),
        ("usd", "bad-empty.usda", b"#usda 1.0\n".to_vec()),
    ]
}
