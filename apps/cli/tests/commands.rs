//! The other commands on good input.

mod common;

use common::{TinyGltf, json, refuse, run, succeed, text};
use serde_json::Value;

fn picture_size(path: &std::path::Path) -> (u32, u32) {
    let bytes = std::fs::read(path).expect("a picture");
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn characters_are_listed_with_their_figures() {
    let list = json(&["characters"]);
    let find = |name: &str| -> Value {
        let list = list.as_array().expect("a list");
        list.iter().find(|c| c["name"] == name).expect("it is there").clone()
    };
    let number = |character: &Value, key: &str| character[key].as_f64().expect("a number");
    let rook = find("rook");
    assert!(number(&rook, "vertices") >= 13_000.0 && number(&rook, "bones") >= 100.0);
    assert!(number(&rook, "islands") >= 4.0, "a body and at least three loose parts");
    let mira = find("mira");
    assert!(number(&mira, "vertices") >= 12_000.0 && number(&mira, "segments") >= 30.0);
    assert!((230.0..=300.0).contains(&number(&mira, "controls")));
    for (character, clips) in [
        (&rook, vec!["walk", "reach", "kick", "crouch", "test"]),
        (&mira, vec!["talk", "smile", "grumpy", "surprise", "roar", "blink", "idle", "test"]),
    ] {
        let names: Vec<&str> =
            character["clips"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        assert!(clips.iter().all(|clip| names.contains(clip)), "{names:?}");
        assert!(number(character, "evaluate_ms") > 0.0 && number(character, "faces") > 1000.0);
    }
    let table = succeed(&["characters"]);
    assert!(table.lines().count() >= 3 && table.starts_with("name"), "{table}");
    assert!(table.contains("test, motion/happy_1…4, motion/grumpy_1…3"), "{table}");
}

#[test]
fn pictures_of_poses_clips_and_views() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let out = folder.path().join("out.png");
    let report = json(&["render", text(&rig), "-o", text(&out), "--size", "64"]);
    assert_eq!((report["width"].as_u64(), report["pictures"].as_u64()), (Some(64), Some(1)));
    assert_eq!(picture_size(&out), (64, 64));
    let rest = std::fs::read(&out).expect("a picture");
    succeed(&["render", text(&rig), "-o", text(&out), "--size", "64", "--set", "tip.rotate_z=60"]);
    assert_ne!(std::fs::read(&out).expect("a picture"), rest, "a control changes nothing");
    succeed(&["render", text(&rig), "-o", text(&out), "--size", "64", "--clip", "bend", "--time", "0"]);
    assert_eq!(std::fs::read(&out).expect("a picture"), rest, "the clip starts at rest");
    let sheet = ["render", text(&rig), "-o", text(&out), "--size", "64", "--clip", "bend", "--frames", "6"];
    let views = ["--view", "front", "--view", "-45,10"];
    let report = json(&[&sheet[..], &views[..]].concat());
    assert_eq!(report["pictures"], 12);
    let (width, height) = picture_size(&out);
    assert!(width > 128 && height > 6 * 64);
}

#[test]
fn conversions_keep_what_the_formats_hold() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let convert = |from: &std::path::Path, to: &str, more: &[&str]| {
        let output = at(to);
        json(&[&["convert", text(from), "-o", text(&output)], more].concat())
    };
    let report = convert(&rig, "tiny.glb", &[]);
    let notes = report["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|n| n.as_str().is_some_and(|n| n.contains("metres"))), "{notes:?}");
    let (before, after) = (json(&["info", text(&rig)]), json(&["info", text(&at("tiny.glb"))]));
    for key in ["controls", "clips", "skeleton"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_eq!(before["mesh"]["vertices"], after["mesh"]["vertices"]);
    assert_eq!(before["mesh"]["size_cm"], after["mesh"]["size_cm"]);

    convert(&at("tiny.glb"), "tiny.obj", &[]);
    assert_eq!(json(&["info", text(&at("tiny.obj"))])["mesh"]["vertices"], before["mesh"]["vertices"]);
    convert(&at("tiny.obj"), "mesh.glb", &[]);
    convert(&at("tiny.glb"), "bend.bvh", &[]);
    let motion = json(&["info", text(&at("bend.bvh"))]);
    assert_eq!(
        (motion["kind"].as_str(), &motion["clips"][0]["frames"]),
        (Some("motion"), &before["clips"][0]["frames"])
    );
    convert(&at("bend.bvh"), "sticks.glb", &[]);
    assert_eq!(
        json(&["info", text(&at("sticks.glb"))])["clips"][0]["seconds"],
        motion["clips"][0]["seconds"]
    );

    let baked = convert(&at("tiny.glb"), "baked.glb", &["--bake", "bend", "--tolerance-mm", "0.05"]);
    let error = baked["baked"]["max_error_mm"].as_f64().expect("a number");
    let targets = baked["baked"]["targets"].as_u64().expect("a number");
    assert!(error <= 0.05 && (1..=3).contains(&targets), "{error} mm with {targets} targets");
    let facts = json(&["info", text(&at("baked.glb"))]);
    assert_eq!(facts["shapes"]["names"].as_array().expect("names").len() as u64, targets);
    convert(&at("baked.glb"), "shapes.npz", &[]);
    convert(&at("shapes.npz"), "again.glb", &[]);
    convert(&at("baked.glb"), "weights.csv", &[]);
    assert_eq!(
        json(&["info", text(&at("weights.csv"))])["columns"].as_array().map(Vec::len),
        Some(targets as usize)
    );

    let data = at("data");
    succeed(&["sample", text(&rig), "-o", text(&data), "--poses", "20"]);
    convert(&data, "data.npz", &[]);
    let arrays = json(&["info", text(&at("data.npz"))]);
    let names: Vec<&str> =
        arrays["arrays"].as_array().expect("arrays").iter().filter_map(|a| a["name"].as_str()).collect();
    assert!(["poses", "vertices", "skeletons"].iter().all(|name| names.contains(name)), "{names:?}");

    let refused = refuse(&["convert", text(&at("tiny.obj")), "-o", text(&at("no.npz"))]);
    assert!(refused.contains("tiny.obj"), "{refused}");
}

#[test]
fn a_full_stack_is_baked_or_refused_with_a_hint() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("rook.glb");
    let line = refuse(&["convert", "rook", "-o", text(&out)]);
    assert!(line.contains("--bake") && !out.exists(), "{line}");
    let report = json(&["convert", "mira", "-o", text(&out), "--bake", "blink", "--rate", "12"]);
    let number = |key: &str| report["baked"][key].as_f64().expect("a number");
    assert!(number("max_error_mm") <= 0.1 && number("targets") >= 2.0, "{report}");
    assert!(number("targets") < number("frames"), "{report}");
    let facts = json(&["info", text(&out)]);
    assert_eq!(facts["clips"][0]["name"], "blink");
    let first = std::fs::read(&out).expect("written");
    succeed(&["convert", "mira", "-o", text(&out), "--bake", "blink", "--rate", "12"]);
    assert_eq!(std::fs::read(&out).expect("written"), first, "the same command gives other bytes");
}

#[test]
fn completions_and_help() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(succeed(&["completions", shell]).contains("understudy"));
    }
    for command in ["characters", "sample", "render", "convert", "info", "demo", "completions"] {
        let help = succeed(&[command, "--help"]);
        assert!(help.contains("Example"), "{command} has no example");
    }
    assert_eq!(run(&[]).status.code(), Some(2));
    assert!(succeed(&["--version"]).starts_with("understudy "));
}
