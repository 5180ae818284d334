//! glTF as the web has it: quantised, and packed with meshopt or Draco. Small files are made here; the shared
//! samples, packed by gltf-transform, need npm and run in `cargo xtask test --all`.

#[path = "gltf_support/packed.rs"]
mod packed;

use packed::{Packed, draco, meshopt, plain, quantised};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use understudy_core::Vec3;
use understudy_io::{Model, ParseError, gltf};
use understudy_testkit::shared_data;

fn parse(packed: &Packed) -> Result<Model, ParseError> {
    gltf::parse(&packed.glb(), &|_| Err("no files here".into()))
}

/// The largest distance from each vertex of one list to the nearest of the other, cm.
fn apart(from: &[Vec3], to: &[Vec3]) -> f32 {
    let nearest = |a: &Vec3| to.iter().map(|b| a.distance(*b)).fold(f32::INFINITY, f32::min);
    from.iter().map(nearest).fold(0.0, f32::max)
}

#[test]
fn packed_files_are_read_like_plain_ones() {
    let want = parse(&plain()).expect("a plain file");
    // Half a step of 14 or 15 bits over 1.5 m on every axis, in cm; meshopt without a filter loses nothing.
    for (name, file, step) in
        [("quantised", quantised(), 0.005), ("meshopt", meshopt(), 0.0), ("draco", draco(), 0.01)]
    {
        let read = parse(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read.warnings, [""; 0], "{name}");
        assert_eq!(read.mesh.faces().len(), want.mesh.faces().len(), "{name}");
        let (a, b) = (read.rest_vertices(), want.rest_vertices());
        assert_eq!(a.len(), b.len(), "{name}");
        let worst = apart(&a, &b).max(apart(&b, &a));
        assert!(worst <= step, "{name}: {worst} cm");
        assert!(file.glb().len() < 20_000);
    }
    assert_eq!(parse(&meshopt()).expect("good").mesh.positions(), want.mesh.positions());
}

#[test]
fn what_the_document_announces_must_be_what_is_packed() {
    let refused = |mut file: Packed, pointer: &str, value: serde_json::Value| {
        *file.json.pointer_mut(pointer).expect(pointer) = value;
        parse(&file).expect_err(pointer).to_string()
    };
    let extension = "/meshes/0/primitives/0/extensions/KHR_draco_mesh_compression";
    for (pointer, value, word) in [
        ("/accessors/0/count", json!(48), "49 points, but 48 values of POSITION"),
        ("/accessors/1/count", json!(3), "72 triangles, but 3 indices"),
        ("/accessors/0/count", json!(1u64 << 40), "more than a file of this size may"),
        (&format!("{extension}/bufferView"), json!(7), "ends beyond its buffer"),
        (&format!("{extension}/attributes/POSITION"), json!(5), "no attribute for POSITION"),
        ("/meshes/0/primitives/0/attributes", json!({}), "POSITION has no accessor"),
    ] {
        let error = refused(draco(), pointer, value);
        assert!(error.starts_with("mesh 0 primitive 0: Draco data: ") && error.contains(word), "{error}");
    }
    let extension = "/bufferViews/0/extensions/EXT_meshopt_compression";
    let error = refused(meshopt(), &format!("{extension}/byteLength"), json!(9));
    assert_eq!(error, "buffer view 0: meshopt data: packed vertices are damaged");
    let error = refused(meshopt(), &format!("{extension}/buffer"), json!(1));
    assert_eq!(error, "buffer view 0: meshopt data: ends beyond its buffer");
    for end in (0..draco().bytes.len()).step_by(7) {
        let mut file = draco();
        file.bytes[end..].fill(0x5a);
        let _ = parse(&file);
    }
}

/// gltf-transform, installed from the pinned lock file.
fn gltf_transform() -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/gltf-compress");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gltf-compress");
    std::fs::create_dir_all(&folder).expect("a scratch folder");
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(tool.join(file), folder.join(file)).expect(file);
    }
    let program = folder.join("node_modules/.bin/gltf-transform");
    if !program.exists() {
        let npm = Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder).status();
        assert!(npm.is_ok_and(|status| status.success()), "npm ci in {}", folder.display());
    }
    program
}

#[test]
#[ignore = "needs npm: cargo xtask test --all"]
fn samples_packed_by_gltf_transform_move_as_the_originals_do() {
    let Some(data) = shared_data() else { return };
    let program = gltf_transform();
    let files = tempfile::tempdir().expect("a scratch folder");
    for sample in [
        "gltf/Fox/Fox.glb",
        "gltf/RobotExpressive.glb",
        "gltf/MorphStressTest/MorphStressTest.glb",
        "kaykit/Knight.glb",
    ] {
        let original = gltf::read(&data.join(sample)).expect("a good file");
        let (low, high) = original.mesh.bounds();
        // 14 bits a side, and weights of bones in 8 bits, which move far vertices a little more.
        let tolerance = low.distance(high) * 4e-3;
        for pack in ["quantize", "meshopt", "draco"] {
            let path = files.path().join(format!("{pack}.glb"));
            let made = Command::new(&program)
                .arg(pack)
                .arg(data.join(sample))
                .arg(&path)
                .output()
                .expect("it starts");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let read = gltf::read(&path).unwrap_or_else(|error| panic!("{sample}, {pack}: {error}"));
            let check = |what: &str, a: Vec<Vec3>, b: Vec<Vec3>| {
                let worst = apart(&a, &b).max(apart(&b, &a));
                assert!(worst <= tolerance, "{sample}, {pack}, {what}: {worst} cm of {tolerance}");
            };
            check("rest", read.rest_vertices(), original.rest_vertices());
            assert_eq!(read.clips.len(), original.clips.len());
            for (a, b) in read.clips.iter().zip(&original.clips).take(2) {
                let time = b.duration() * 0.6;
                check(&b.name, read.evaluate_at(a, time), original.evaluate_at(b, time));
            }
        }
    }
}
