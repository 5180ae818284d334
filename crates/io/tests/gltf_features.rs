//! Parts of the format that the shared samples do not show, in small documents made here.

use serde_json::{Value, json};
use understudy_core::{Face, Vec3};
use understudy_io::Model;
use understudy_io::gltf::parse;

/// A document under construction; its only buffer lies outside and is handed over on request.
struct Document {
    json: Value,
    bytes: Vec<u8>,
}

impl Document {
    fn new(nodes: Value) -> Self {
        let json = json!({
            "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes,
            "meshes": [], "accessors": [], "bufferViews": [], "buffers": [],
        });
        Self { json, bytes: Vec::new() }
    }

    fn push(&mut self, list: &str, value: Value) -> usize {
        let list = self.json.as_object_mut().expect("an object").entry(list).or_insert(json!([]));
        let list = list.as_array_mut().expect("a list");
        list.push(value);
        list.len() - 1
    }

    fn bytes(&mut self, bytes: &[u8], component: u32, kind: &str, count: usize, normalized: bool) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let offset = self.bytes.len();
        self.bytes.extend(bytes);
        let view =
            self.push("bufferViews", json!({"buffer": 0, "byteOffset": offset, "byteLength": bytes.len()}));
        let accessor = json!({"bufferView": view, "componentType": component, "type": kind, "count": count,
            "normalized": normalized, "min": [0, 0, 0], "max": [0, 0, 0]});
        self.push("accessors", accessor)
    }

    fn floats(&mut self, kind: &str, values: &[f32]) -> usize {
        let width = match kind {
            "SCALAR" => 1,
            "VEC3" => 3,
            "VEC4" => 4,
            _ => 16,
        };
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(&bytes, 5126, kind, values.len() / width, false)
    }

    /// Points of a triangle in the plane of x and y, moved aside; returns its accessor.
    fn triangle(&mut self, x: f32) -> usize {
        self.floats("VEC3", &[x, 0.0, 0.0, x + 1.0, 0.0, 0.0, x, 1.0, 0.0])
    }

    fn read(mut self) -> Model {
        self.json["buffers"] = json!([{"byteLength": self.bytes.len(), "uri": "all.bin"}]);
        let bytes = self.bytes;
        let beside = |uri: &str| if uri == "all.bin" { Ok(bytes.clone()) } else { Err("unknown".into()) };
        parse(self.json.to_string().as_bytes(), &beside).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn close(a: Vec3, b: Vec3) -> bool {
    a.distance(b) < 1e-3
}

#[test]
fn strips_fans_and_lines() {
    let mut document = Document::new(json!([{"mesh": 0, "name": "shape"}]));
    let square = document.floats("VEC3", &[0., 0., 0., 1., 0., 0., 0., 1., 0., 1., 1., 0., 0., 2., 0.]);
    let fan = document.bytes(&[0, 1, 3, 2], 5121, "SCALAR", 4, false);
    document.push("materials", json!({"name": "cloth"}));
    let attributes = json!({"POSITION": square});
    document.push(
        "meshes",
        json!({"primitives": [
            {"attributes": attributes, "mode": 5, "material": 0},
            {"attributes": attributes, "mode": 6, "indices": fan},
            {"attributes": attributes, "mode": 1},
        ]}),
    );
    let asset = document.read();
    let strip = [Face::triangle(0, 1, 2), Face::triangle(1, 3, 2), Face::triangle(2, 3, 4)];
    assert_eq!(asset.mesh.faces()[..3], strip);
    assert_eq!(asset.mesh.faces()[3..], [Face::triangle(6, 8, 5), Face::triangle(8, 7, 5)]);
    assert_eq!(asset.mesh.segments().names, ["shape cloth", "shape 1"]);
    assert_eq!(asset.warnings, ["mesh 0 primitive 2: points and lines are skipped"]);
    assert!(
        asset.mesh.faces().iter().all(|f| understudy_core::normals::face_area_vector(
            f,
            asset.mesh.positions()
        )
        .z > 0.0)
    );
}

#[test]
fn a_mesh_without_a_skin_rides_on_its_node() {
    let half = std::f32::consts::FRAC_1_SQRT_2;
    let mut document = Document::new(json!([
        {"children": [1], "name": "root", "translation": [0, 1, 0]},
        {"children": [2], "name": "turned", "matrix": [0, 2, 0, 0, -2, 0, 0, 0, 0, 0, 2, 0, 3, 0, 0, 1]},
        {"mesh": 0, "name": "blade"},
        {"mesh": 0, "name": "in no scene"},
    ]));
    let position = document.triangle(0.0);
    document.push("meshes", json!({"primitives": [{"attributes": {"POSITION": position}}]}));
    let (times, turns) = (document.floats("SCALAR", &[0.0, 1.0]), [0., 0., 0., 1., 0., 0., half, half]);
    let turns = document.floats("VEC4", &turns);
    document.push(
        "animations",
        json!({
            "channels": [{"sampler": 0, "target": {"node": 0, "path": "rotation"}}],
            "samplers": [{"input": times, "output": turns}],
        }),
    );
    let asset = document.read();
    let names: Vec<&str> =
        asset.skeleton.as_ref().expect("bones").bones().iter().map(|bone| bone.name.as_str()).collect();
    assert_eq!((names.as_slice(), asset.mesh.vertex_count()), (&["root", "turned", "blade"][..], 3));
    // World of a point: twice its size, a quarter turn about z, then (3, 1, 0) m.
    let expected = [Vec3::new(300.0, 100.0, 0.0), Vec3::new(300.0, 300.0, 0.0), Vec3::new(100.0, 100.0, 0.0)];
    assert!(
        asset.mesh.positions().iter().zip(expected).all(|(a, b)| close(*a, b)),
        "{:?}",
        asset.mesh.positions()
    );
    let turned = asset.evaluate(&asset.clips[0], 30);
    assert!(close(turned[0], Vec3::new(0.0, 400.0, 0.0)), "{}", turned[0]);
    assert!(asset.evaluate(&asset.clips[0], 0).iter().zip(expected).all(|(a, b)| close(*a, b)));
}

/// Two skins share two joints; they agree on the first and disagree on the second.
#[test]
fn joints_bound_twice_get_a_bone_each() {
    let mut document = Document::new(json!([
        {"children": [1, 2, 3], "name": "root"},
        {"name": "arm", "translation": [0, 2, 0]},
        {"mesh": 0, "skin": 0},
        {"mesh": 1, "skin": 1},
    ]));
    let identity = [1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1.];
    let moved = |y: f32| {
        let mut matrix = identity;
        matrix[13] = y;
        matrix
    };
    for (index, y) in [-2.0, 1.0].into_iter().enumerate() {
        let matrices = document.floats("MAT4", &[identity, moved(y)].concat());
        document.push("skins", json!({"joints": [0, 1], "inverseBindMatrices": matrices}));
        let position = document.triangle(index as f32);
        // Two vertices on the root, so that it decides on the space, and one on the arm.
        let joints = document.bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 5121, "VEC4", 3, false);
        let weights = document.bytes(&[255, 0, 0, 0].repeat(3), 5121, "VEC4", 3, true);
        document.push(
            "meshes",
            json!({"primitives": [
            {"attributes": {"POSITION": position, "JOINTS_0": joints, "WEIGHTS_0": weights}}]}),
        );
    }
    let asset = document.read();
    let names: Vec<&str> =
        asset.skeleton.as_ref().expect("bones").bones().iter().map(|bone| bone.name.as_str()).collect();
    assert_eq!(names, ["root", "arm", "arm bind"]);
    assert_eq!(asset.joints, [0, 1]);
    let rest = asset.rest_vertices();
    // Arm at 2 m: the first skin takes that away again, the second adds another metre.
    assert!(close(rest[2], Vec3::new(0.0, 100.0, 0.0)), "{}", rest[2]);
    assert!(close(rest[5], Vec3::new(100.0, 400.0, 0.0)), "{}", rest[5]);
    let mut pose = asset.rest_pose();
    pose.0[1].translation += Vec3::X * 7.0;
    let moved = asset.deform(&pose, &[]).expect("a pose of this skeleton");
    assert!(close(moved[2], rest[2] + Vec3::X * 7.0) && close(moved[5], rest[5] + Vec3::X * 7.0));
    assert_eq!(moved[0], rest[0]);
}

#[test]
fn influences_of_several_sets_add_up() {
    let mut document = Document::new(json!([
        {"children": [1, 2], "name": "root"}, {"name": "arm"}, {"mesh": 0, "skin": 0},
    ]));
    document.push("skins", json!({"joints": [0, 1]}));
    let position = document.triangle(0.0);
    let joints = document.bytes(&[0; 12], 5121, "VEC4", 3, false);
    let others = document.bytes(&[1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0], 5121, "VEC4", 3, false);
    // The first vertex 0.75 : 0.25, the second of no weight, the third three times too heavy.
    let first = document.floats("VEC4", &[0.75, 0., 0., 0., 0., 0., 0., 0., 1.5, 0., 0., 0.]);
    let second = document.floats("VEC4", &[0.25, 0., 0., 0., 0., 0., 0., 0., 0.75, 0.75, 0., 0.]);
    document.push(
        "meshes",
        json!({"primitives": [{"attributes": {"POSITION": position,
        "JOINTS_0": joints, "WEIGHTS_0": first, "JOINTS_1": others, "WEIGHTS_1": second}}]}),
    );
    let asset = document.read();
    let rows: Vec<Vec<(usize, f32)>> =
        (0..3).map(|v| asset.skin.as_ref().expect("a skin").row(v).collect()).collect();
    assert_eq!(rows, [vec![(0, 0.75), (1, 0.25)], vec![(0, 1.0)], vec![(0, 0.5), (1, 0.5)]]);
    assert_eq!(asset.warnings.len(), 2, "{:?}", asset.warnings);
}

#[test]
fn targets_of_one_name_are_one_shape() {
    let mut document = Document::new(json!([
        {"children": [1, 2, 3]},
        {"mesh": 0, "name": "face", "weights": [0.5, 0]},
        {"mesh": 1, "name": "teeth", "translation": [1, 0, 0], "scale": [2, 2, 2]},
        {"mesh": 2, "name": "tongue"},
    ]));
    let up = document.floats("VEC3", &[0., 1., 0., 0., 0., 0., 0., 0., 0.]);
    let side = document.floats("VEC3", &[0., 0., 0., 1., 0., 0., 0., 0., 0.]);
    for (targets, names) in [
        (json!([{"POSITION": up}, {"POSITION": side}]), json!({"targetNames": ["open", "smile"]})),
        (json!([{"POSITION": up}]), json!({"targetNames": ["open"]})),
        (json!([{"POSITION": side}]), json!(null)),
    ] {
        let position = document.triangle(0.0);
        document.push("meshes", json!({"extras": names, "primitives": [{"attributes": {"POSITION": position}, "targets": targets}]}));
    }
    let asset = document.read();
    let shapes = asset.shapes.as_ref().expect("shapes").shapes();
    let names: Vec<&str> = shapes.iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(names, ["open", "smile", "mesh 2 target 0"]);
    assert_eq!(shapes[0].deltas.vertices, [0, 3]);
    assert_eq!(
        shapes[0].deltas.deltas,
        [Vec3::Y * 100.0, Vec3::Y * 200.0],
        "deltas turn and grow with their node"
    );
    assert_eq!(asset.rest_weights, [0.5, 0.0, 0.0]);
    assert!(
        asset.warnings.iter().any(|w| w.contains("'teeth'") && w.contains("another weight")),
        "{:?}",
        asset.warnings
    );
}

#[test]
fn cubic_and_stepped_keys() {
    let mut document = Document::new(json!([{"mesh": 0}]));
    let position = document.triangle(0.0);
    let target = document.floats("VEC3", &[0., 0., 1., 0., 0., 0., 0., 0., 0.]);
    document.push(
        "meshes",
        json!({"primitives": [{"attributes": {"POSITION": position}, "targets": [{"POSITION": target}]}]}),
    );
    let times = document.floats("SCALAR", &[0.0, 1.0]);
    // From 0 to 1 m along x, starting and ending with a slope of 1 m/s on y: y = s³ − 2s² + s + s³ − s².
    let cubic = [0., 0., 0., 0., 0., 0., 0., 1., 0., 0., 1., 0., 1., 0., 0., 0., 0., 0.];
    let cubic = document.floats("VEC3", &cubic);
    let steps = document.floats("SCALAR", &[0.25, 1.0]);
    document.push(
        "animations",
        json!({"name": "go", "channels": [
            {"sampler": 0, "target": {"node": 0, "path": "translation"}},
            {"sampler": 1, "target": {"node": 0, "path": "weights"}},
        ], "samplers": [
            {"input": times, "output": cubic, "interpolation": "CUBICSPLINE"},
            {"input": times, "output": steps, "interpolation": "STEP"},
        ]}),
    );
    let asset = document.read();
    let clip = asset.find_clip("go").expect("the clip");
    assert_eq!((clip.own_frames(), clip.rate), (31, 30.0));
    let s = 0.4f32;
    let frames = asset.frames(clip, None).expect("its own rate");
    let joint = frames.poses[12].0[0].translation;
    let y = 100.0 * (2.0 * s.powi(3) - 3.0 * s.powi(2) + s);
    assert!(close(joint, Vec3::new(100.0 * (3.0 * s.powi(2) - 2.0 * s.powi(3)), y, 0.0)), "{joint}");
    let weights: Vec<f32> = [0, 29, 30].map(|frame| frames.shape_weights[frame][0]).to_vec();
    assert_eq!(weights, [0.25, 0.25, 1.0]);
    assert!(close(asset.evaluate(clip, 30)[0], Vec3::new(100.0, 0.0, 100.0)));
}

#[test]
fn what_many_parts_share_is_said_once() {
    let mut document = Document::new(json!([{"mesh": 0}, {"mesh": 1}, {"mesh": 0, "children": [3]}, {}]));
    document.json["scenes"][0]["nodes"] = json!([0, 1, 2]);
    let triangle = document.triangle(0.0);
    let twice = document.bytes(&[0, 1, 2, 0, 1, 1], 5121, "SCALAR", 6, false);
    let primitive = json!({"attributes": {"POSITION": triangle}, "indices": twice});
    document.push("meshes", json!({"primitives": [primitive], "name": "hat"}));
    document.push("meshes", json!({"primitives": [primitive]}));
    let times = document.floats("SCALAR", &[0.0, 0.031_7, 0.1]);
    let places = document.floats("VEC3", &[0.0; 9]);
    for node in [0, 1, 3] {
        document.push(
            "animations",
            json!({
                "channels": [{"sampler": 0, "target": {"node": node, "path": "translation"}}],
                "samplers": [{"input": times, "output": places}],
            }),
        );
    }
    let asset = document.read();
    assert_eq!(
        asset.warnings,
        [
            "3 faces that name a vertex twice are dropped",
            "keys of 3 of 3 animations ('animation 0' first) lie on no common frame rate: frames are counted at 30 \
             per second",
        ]
    );
    let skeleton = asset.skeleton.expect("bones");
    let names: Vec<&str> = skeleton.bones().iter().map(|bone| bone.name.as_str()).collect();
    assert_eq!(names, ["hat", "mesh 1", "hat_2", "node 3"]);
    assert_eq!(asset.mesh.segments().names, ["hat", "mesh 1", "hat_2"]);
}
