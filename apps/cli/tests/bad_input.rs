//! Bad input and bad usage: exit code 2, one line that names the file and the place, nothing written.

mod common;

use common::{TinyGltf, floats, holds_only, integers, json, refuse, succeed, text, unicode, write_npz};
use std::path::Path;

/// Every command that reads a file refuses it, names it and the place, and writes nothing.
fn refuse_everywhere(file: &Path, places: &[&str]) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let picture = folder.path().join("out.png");
    let converted = folder.path().join("out.glb");
    for arguments in [
        vec!["info", text(file)],
        vec!["info", text(file), "--json"],
        vec!["convert", text(file), "-o", text(&converted)],
    ] {
        check(&arguments, file, places);
    }
    if !text(file).ends_with(".bvh") {
        check(&["render", text(file), "-o", text(&picture)], file, places);
    }
    if !text(file).ends_with(".obj") && !text(file).ends_with(".bvh") {
        let data = folder.path().join("data");
        check(&["sample", text(file), "-o", text(&data), "--poses", "3"], file, places);
    }
    holds_only(folder.path(), &[]);
}

fn check(arguments: &[&str], file: &Path, places: &[&str]) {
    let line = refuse(arguments);
    assert!(line.contains(text(file)), "{arguments:?} does not name the file: {line}");
    for place in places {
        assert!(line.contains(place), "{arguments:?} does not name '{place}': {line}");
    }
}

#[test]
fn missing_files() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for name in ["none.glb", "none.gltf", "none.npz", "none.obj", "none.bvh"] {
        refuse_everywhere(&folder.path().join(name), &[]);
    }
    let line = refuse(&["info", "nobody"]);
    assert!(line.contains("rook") && line.contains("mira"), "{line}");
}

#[test]
fn truncated_glb() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let good = folder.path().join("good.glb");
    let source = TinyGltf::default().write(folder.path(), "tiny");
    succeed(&["convert", text(&source), "-o", text(&good)]);
    let bytes = std::fs::read(&good).expect("written");
    for keep in [0, 3, 12, 19, bytes.len() / 2, bytes.len() - 1] {
        let cut = folder.path().join("cut.glb");
        std::fs::write(&cut, &bytes[..keep]).expect("writable");
        refuse_everywhere(&cut, &[]);
    }
}

#[test]
fn numbers_that_are_not_finite() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let mut tiny = TinyGltf::default();
    tiny.positions[2][1] = f32::NAN;
    refuse_everywhere(&tiny.write(folder.path(), "nan"), &["accessor"]);
}

#[test]
fn indices_out_of_range() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let tiny = TinyGltf { indices: [0, 1, 2, 0, 2, 77], ..TinyGltf::default() };
    refuse_everywhere(&tiny.write(folder.path(), "index"), &["77"]);
}

#[test]
fn cyclic_skeletons() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let tiny = TinyGltf { children_of_tip: vec![1], ..TinyGltf::default() };
    refuse_everywhere(&tiny.write(folder.path(), "cycle"), &["node"]);
}

#[test]
fn bvh_without_channels() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("bad.bvh");
    let lines = [
        "HIERARCHY",
        "ROOT hip",
        "{",
        "  OFFSET 0 0 0",
        "  JOINT knee",
        "  {",
        "    OFFSET 0 -40 0",
        "    CHANNELS 3 Zrotation Xrotation Yrotation",
        "    End Site",
        "    {",
        "      OFFSET 0 -40 0",
        "    }",
        "  }",
        "}",
        "MOTION",
        "Frames: 1",
        "Frame Time: 0.0333",
        "0 0 0 0 0 0",
    ];
    std::fs::write(&path, lines.join("\n")).expect("writable");
    refuse_everywhere(&path, &["line"]);
}

#[test]
fn archives_with_wrong_shapes() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("bad.npz");
    let arrays = |deltas: &'static str, count: usize| {
        vec![
            ("neutral", "<f4", "(3, 3)", floats(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0])),
            ("faces", "<i4", "(1, 3)", integers(&[0, 1, 2])),
            ("names", "<U4", "(1,)", unicode(&["grin"], 4)),
            ("deltas", "<f4", deltas, floats(&vec![0.5; count])),
        ]
    };
    write_npz(&path, &arrays("(1, 3, 3)", 9));
    succeed(&["info", text(&path)]);
    write_npz(&path, &arrays("(1, 2, 3)", 6));
    refuse_everywhere(&path, &["deltas"]);
    write_npz(&path, &arrays("(1, 3, 3)", 7));
    refuse_everywhere(&path, &["deltas"]);
}

#[test]
fn empty_obj() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("empty.obj");
    for content in ["", "# nothing here\n", "v 0 0 0\nv 1 0 0\nv 0 1 0\n"] {
        std::fs::write(&path, content).expect("writable");
        refuse_everywhere(&path, &[]);
    }
}

#[test]
fn control_values() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("out.png");
    let source = TinyGltf::default().write(folder.path(), "tiny");
    let facts = json(&["info", text(&source)]);
    let control = facts["controls"][0]["name"].as_str().expect("a control").to_owned();
    for value in ["NaN", "inf", "-inf", "1e30"] {
        let setting = format!("{control}={value}");
        let line = refuse(&["render", text(&source), "-o", text(&out), "--set", &setting]);
        assert!(line.contains(&control), "{line}");
    }
    let line = refuse(&["render", text(&source), "-o", text(&out), "--set", "nonsense=1"]);
    assert!(line.contains("nonsense"), "{line}");
    refuse(&["render", text(&source), "-o", text(&out), "--set", "no-value"]);
    let line = refuse(&["render", text(&source), "-o", text(&out), "--clip", "dance"]);
    assert!(line.contains("dance") && line.contains("bend"), "{line}");
    refuse(&["render", text(&source), "-o", text(&out), "--clip", "bend", "--time", "NaN"]);
    refuse(&["render", text(&source), "-o", text(&out), "--view", "inside-out"]);
    holds_only(folder.path(), &["tiny.gltf", "tiny.bin"]);
}

#[test]
fn numbers_out_of_bounds() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let source = TinyGltf::default().write(folder.path(), "tiny");
    let out = folder.path().join("out");
    let sample = ["sample", text(&source), "-o", text(&out)];
    for wrong in [
        ["--poses", "-5"],
        ["--poses", "0"],
        ["--poses", "99999999999999999999"],
        ["--threads", "0"],
        ["--threads", "-1"],
        ["--threads", "100000"],
        ["--chunk", "0"],
        ["--seed", "-1"],
        ["--rate", "0"],
        ["--rate", "NaN"],
        ["--method", "magic"],
        ["--clip", "dance"],
        ["--exclude", "dance"],
        ["--hold-out", "0.9"],
        ["--hold-out", "NaN"],
    ] {
        let arguments = [&sample[..], &wrong[..]].concat();
        let line = refuse(&arguments);
        let (name, value) = (wrong[0].trim_start_matches('-'), wrong[1]);
        assert!(line.contains(name) || line.contains(value), "{wrong:?}: {line}");
    }
    let picture = folder.path().join("out.png");
    for size in ["0", "-3", "1000000", "huge"] {
        refuse(&["render", text(&source), "-o", text(&picture), "--size", size]);
    }
    let baked = folder.path().join("out.glb");
    for tolerance in ["0", "-1", "NaN"] {
        refuse(&[
            "convert",
            text(&source),
            "-o",
            text(&baked),
            "--bake",
            "bend",
            "--tolerance-mm",
            tolerance,
        ]);
    }
    holds_only(folder.path(), &["tiny.gltf", "tiny.bin"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let source = TinyGltf::default().write(folder.path(), "tiny");
    let file = folder.path().join("file");
    std::fs::write(&file, b"in the way").expect("writable");
    let below = file.join("out.png");
    check(&["render", text(&source), "-o", text(&below)], &below, &[]);
    let below = file.join("out.glb");
    check(&["convert", text(&source), "-o", text(&below)], &below, &[]);
    check(&["sample", text(&source), "-o", text(&file), "--poses", "3"], &file, &[]);
    check(&["render", text(&source), "-o", text(folder.path())], folder.path(), &[]);
    check(&["demo", "-o", text(&file)], &file, &[]);
    let odd = folder.path().join("out.xyz");
    check(&["convert", text(&source), "-o", text(&odd)], &odd, &[]);
    check(&["render", text(&source), "-o", text(&odd)], &odd, &[]);
    assert_eq!(std::fs::read(&file).expect("still there"), b"in the way");
    holds_only(folder.path(), &["tiny.gltf", "tiny.bin", "file"]);
}

#[test]
fn usage_errors_are_one_line_too() {
    refuse(&["sample", "rook"]);
    refuse(&["dance"]);
    refuse(&["render", "rook", "-o", "x.png", "--time", "1"]);
    refuse(&["completions", "tcl"]);
}
