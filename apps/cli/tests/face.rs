//! Face twins on the command line: what can be wrong with what is typed, and with what is named.

mod common;

use common::{TinyGltf, holds_only, refuse, succeed, text};

#[test]
fn meshes_and_datasets_that_are_no_face() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let (bare, one, out) = (path("bare"), path("one"), path("out.twin"));
    succeed(&["sample", text(&rig), "-o", text(&bare), "--poses", "20"]);
    let line = refuse(&["learn", "face", text(&bare), "-o", text(&out)]);
    assert!(line.contains("bare") && line.contains("texture coordinates"), "{line}");
    succeed(&["sample", "mira", "-o", text(&one), "--poses", "1"]);
    let line = refuse(&["learn", "face", text(&one), "-o", text(&out)]);
    assert!(line.contains("one") && line.contains("1 poses"), "{line}");
    let line = refuse(&["learn", "face", text(&path("nowhere")), "-o", text(&out)]);
    assert!(line.contains("nowhere"), "{line}");
    holds_only(folder.path(), &["tiny.gltf", "tiny.bin", "bare", "one"]);
}

#[test]
fn numbers_that_make_no_sense() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let data = folder.path().join("data");
    succeed(&["sample", "mira", "-o", text(&data), "--poses", "9"]);
    let out = folder.path().join("out.twin");
    for wrong in [
        ["--minutes", "0"],
        ["--minutes", "-3"],
        ["--minutes", "NaN"],
        ["--normal-weight", "NaN"],
        ["--normal-weight", "-1"],
        ["--batch", "0"],
        ["--threads", "0"],
        ["--coarse-steps", "many"],
    ] {
        let line = refuse(&[&["learn", "face", text(&data), "-o", text(&out)], &wrong[..]].concat());
        let name = wrong[0].trim_start_matches('-').replace('-', " ");
        let words = ["weight of normals", &name, wrong[0]];
        assert!(words.iter().any(|word| line.contains(word)), "{wrong:?}: {line}");
    }
    holds_only(folder.path(), &["data"]);
}

#[test]
fn files_that_are_no_twin() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let (twin, mesh, out) = (path("junk.twin"), path("mira.obj"), path("out.twin"));
    std::fs::write(&twin, b"\x20\0\0\0\0\0\0\0{\"__metadata__\":{}} and so on").expect("writable");
    for arguments in [
        vec!["eval", text(&twin), "data"],
        vec!["bench", text(&twin)],
        vec!["info", text(&twin)],
        vec!["export", text(&twin), "--onnx", text(&out)],
    ] {
        let line = refuse(&arguments);
        assert!(line.contains("junk.twin"), "{line}");
    }
    succeed(&["convert", "mira", "-o", text(&mesh), "--remesh"]);
    let line = refuse(&["transfer", text(&twin), text(&mesh), "-o", text(&out)]);
    assert!(line.contains("junk.twin"), "{line}");
    let glb = path("mira.glb");
    let line = refuse(&["convert", "mira", "-o", text(&glb), "--remesh"]);
    assert!(line.contains(".obj"), "{line}");
    refuse(&["sample", "mira", "-o", text(&path("data")), "--held-out"]);
    refuse(&["eval", text(&twin), "data", "--against", "dense"]);
    holds_only(folder.path(), &["junk.twin", "mira.obj"]);
}
