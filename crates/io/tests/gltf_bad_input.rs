//! Bad glTF files: each is refused with one line that names the place, and nothing panics.

mod gltf_support;

use gltf_support::{Character, Size};
use serde_json::{Value, json};
use understudy_core::Random;
use understudy_io::Model;
use understudy_io::gltf::{parse, read, to_glb_bytes};
use understudy_io::{ParseError, ReadError};

fn good() -> Vec<u8> {
    to_glb_bytes(&Character::new(Size::SMALL, 21).scene()).expect("a valid scene")
}

fn parse_alone(bytes: &[u8]) -> Result<Model, ParseError> {
    parse(bytes, &|uri| Err(format!("no file '{uri}'")))
}

/// JSON and binary chunk of a GLB.
fn split(glb: &[u8]) -> (Value, Vec<u8>) {
    let length = u32::from_le_bytes(glb[12..16].try_into().expect("4 bytes")) as usize;
    (serde_json::from_slice(&glb[20..20 + length]).expect("JSON"), glb[28 + length..].to_vec())
}

fn join(json: &Value, blob: &[u8]) -> Vec<u8> {
    let mut text = json.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    let mut out = b"glTF\x02\0\0\0".to_vec();
    out.extend((28 + text.len() as u32 + blob.len() as u32).to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(b"JSON");
    out.extend(text);
    out.extend((blob.len() as u32).to_le_bytes());
    out.extend(b"BIN\0");
    out.extend(blob);
    out
}

/// The error of the good file with one value of its JSON replaced.
fn edited(pointer: &str, value: Value) -> ParseError {
    let (mut json, blob) = split(&good());
    *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is in the file")) = value;
    let error = parse_alone(&join(&json, &blob)).err().unwrap_or_else(|| panic!("{pointer} is bad"));
    assert!(!error.to_string().contains('\n'), "{error}");
    error
}

/// The accessor of an attribute of the only primitive.
fn accessor(json: &Value, attribute: &str) -> usize {
    json["meshes"][0]["primitives"][0]["attributes"][attribute].as_u64().expect("an index") as usize
}

#[test]
fn the_editing_itself_is_harmless() {
    let (json, blob) = split(&good());
    assert!(parse_alone(&join(&json, &blob)).is_ok());
}

#[test]
fn every_truncation_is_refused() {
    let bytes = good();
    for length in (0..bytes.len()).step_by(7).chain(0..200) {
        let error = parse_alone(&bytes[..length]).expect_err("a part of a file");
        assert!(!error.place.is_empty() && !error.problem.is_empty());
    }
    let error = parse_alone(&bytes[..bytes.len() / 2]).expect_err("half");
    assert_eq!(error.place, "byte 8");
}

#[test]
fn numbers_that_are_not_finite_name_their_accessor() {
    let (json, blob) = split(&good());
    for attribute in ["POSITION", "TEXCOORD_0", "WEIGHTS_0"] {
        let index = accessor(&json, attribute);
        let view = json["accessors"][index]["bufferView"].as_u64().expect("a view") as usize;
        let offset = json["bufferViews"][view]["byteOffset"].as_u64().unwrap_or(0) as usize;
        let mut blob = blob.clone();
        blob[offset + 4..offset + 8].copy_from_slice(&f32::NAN.to_le_bytes());
        let error = parse_alone(&join(&json, &blob)).expect_err("NaN");
        assert_eq!(error, ParseError::new(format!("accessor {index}"), "element 0 is not finite"));
    }
}

#[test]
fn indices_out_of_range_are_named() {
    let (json, mut blob) = split(&good());
    let index = json["meshes"][0]["primitives"][0]["indices"].as_u64().expect("indices") as usize;
    let view = json["accessors"][index]["bufferView"].as_u64().expect("a view") as usize;
    let offset = json["bufferViews"][view]["byteOffset"].as_u64().unwrap_or(0) as usize;
    blob[offset + 6..offset + 8].copy_from_slice(&60_000u16.to_le_bytes());
    let error = parse_alone(&join(&json, &blob)).expect_err("vertex 60000");
    assert!(error.to_string().starts_with("mesh 0 primitive 0: index 3 names vertex 60000"), "{error}");

    assert_eq!(edited("/meshes/0/primitives/0/attributes/POSITION", json!(999)).place, "mesh 0 primitive 0");
    assert!(edited("/meshes/0/primitives/0/attributes/JOINTS_0", json!(999)).place.contains("JOINTS_0"));
    assert!(edited("/nodes/5/mesh", json!(3)).place.contains("nodes[5].mesh"));
    assert!(edited("/skins/0/joints/1", json!(77)).place.contains("joints[1]"));
    let error = edited("/animations/0/channels/0/target/node", json!(77));
    assert_eq!(error.to_string(), "animation 0 ('walk'): channel 0 moves node 77, which does not exist");
    assert!(edited("/animations/0/channels/0/sampler", json!(1000)).place.contains("channels[0].sampler"));
}

#[test]
fn views_counts_and_buffers_that_do_not_fit() {
    let (json, _) = split(&good());
    let position = accessor(&json, "POSITION");
    let count = format!("/accessors/{position}/count");
    for huge in [json!(10_000), json!(4_000_000_000u64), json!(u64::MAX)] {
        assert_eq!(edited(&count, huge).place, format!("accessor {position}"));
    }
    assert!(edited(&count, json!(-5)).place.starts_with("JSON line 1"));
    assert!(edited(&count, json!(2.5)).place.starts_with("JSON line 1"));
    assert!(
        edited("/bufferViews/3/byteLength", json!(u64::MAX)).problem.contains("buffer view 3 ends beyond")
    );
    assert!(edited("/bufferViews/3/byteLength", json!(8)).problem.contains("need more than the 8 bytes"));
    assert_eq!(edited("/buffers/0/byteLength", json!(1_000_000_000)).place, "buffer 0");
    assert_eq!(edited("/buffers/0", json!({"byteLength": 4, "uri": "beside.bin"})).place, "buffer 0");
    let animated = edited("/animations/0/samplers/0/output", json!(0));
    assert!(
        animated.place.starts_with("accessor") || animated.place.starts_with("animation 0"),
        "{animated}"
    );
}

#[test]
fn trees_that_are_none() {
    let cycle = edited("/nodes/0/children", json!([0]));
    assert_eq!(cycle.to_string(), "node 0 ('bone 0'): is its own ancestor");
    let (mut json, blob) = split(&good());
    json["nodes"][4]["children"] = json!([0]);
    let error = parse_alone(&join(&json, &blob)).expect_err("a cycle");
    assert_eq!(error.problem, "is its own ancestor");
    assert_eq!(edited("/scenes/0/nodes", json!([])).to_string(), "scene: has no triangles");
    assert_eq!(edited("/asset/version", json!("3.0")).place, "asset.version");
}

/// A tiny file whose nodes all show the same mesh must not fill the memory.
#[test]
fn instances_are_counted() {
    let count = 3_000_000;
    let blob = vec![0u8; 36];
    let bomb = json!({
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": (0..200).collect::<Vec<u32>>()}],
        "nodes": (0..200).map(|_| json!({"mesh": 0})).collect::<Vec<_>>(),
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"componentType": 5126, "type": "VEC3", "count": count, "min": [0, 0, 0], "max": [0, 0, 0]}],
        "buffers": [{"byteLength": 36}],
    });
    let error = parse_alone(&join(&bomb, &blob)).expect_err("600 million vertices");
    assert!(error.problem.contains("more than a file of this size may"), "{error}");
}

#[test]
fn a_very_long_animation_is_refused() {
    let (json, mut blob) = split(&good());
    let input = json["animations"][0]["samplers"][0]["input"].as_u64().expect("an index") as usize;
    let accessor = &json["accessors"][input];
    let view = accessor["bufferView"].as_u64().expect("a view") as usize;
    let start = json["bufferViews"][view]["byteOffset"].as_u64().unwrap_or(0)
        + accessor["byteOffset"].as_u64().unwrap_or(0);
    let last = start as usize + 4 * (accessor["count"].as_u64().expect("keys") as usize - 1);
    blob[last..last + 4].copy_from_slice(&1e30f32.to_le_bytes());
    let error = parse_alone(&join(&json, &blob)).expect_err("1e30 s");
    assert!(error.place.starts_with("animation 0 ('walk')"), "{error}");
}

#[test]
fn files_are_named_and_may_not_lead_elsewhere() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::create_dir(folder.path().join("inner")).expect("a folder");
    std::fs::write(folder.path().join("secret.bin"), [0; 4]).expect("a file");
    let path = folder.path().join("inner/bad.gltf");
    let document = r#"{"asset":{"version":"2.0"},"buffers":[{"byteLength":4,"uri":"../secret.bin"}]}"#;
    std::fs::write(&path, document).expect("a file");
    let error = read(&path).expect_err("a path that climbs");
    assert!(matches!(error, ReadError::Content { .. }));
    assert!(
        error.to_string().contains("bad.gltf: buffer 0: the buffer '../secret.bin' leads out"),
        "{error}"
    );
    assert!(matches!(read(&folder.path().join("absent.glb")), Err(ReadError::Open { .. })));
}

/// Random damage to both chunks: any answer will do, a panic will not.
#[test]
fn damage_never_panics() {
    let bytes = good();
    let json_end = 20 + u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes")) as usize;
    let mut random = Random::new(5);
    let mut refused = 0;
    for round in 0..3000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(4) {
            let range = if round % 2 == 0 { 20..json_end } else { json_end + 8..bytes.len() };
            let place = range.start + random.below(range.len());
            // Digits hit counts and indices far more often than random bytes do.
            damaged[place] = match damaged[place] {
                b'0'..=b'9' => b'0' + random.below(10) as u8,
                _ if round % 2 == 0 && random.unit() < 0.7 => damaged[place],
                _ => random.next_u64() as u8,
            };
        }
        match parse_alone(&damaged) {
            Ok(asset) => assert_eq!(asset.skin.expect("a skin").vertex_count(), asset.mesh.vertex_count()),
            Err(error) => {
                assert!(!error.place.is_empty());
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
