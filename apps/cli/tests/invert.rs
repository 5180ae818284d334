//! `understudy invert` as it is typed: files, JSON and refusals.

mod common;

use common::{TinyGltf, holds_only, json, refuse, succeed, text};

#[test]
fn a_neutral_mesh_needs_no_weights() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rest = folder.path().join("rest.obj");
    let weights = folder.path().join("weights.csv");
    let report = folder.path().join("report.json");
    succeed(&["convert", "mira", "-o", text(&rest)]);

    let found = json(&["invert", "mira", text(&rest), "-o", text(&weights), "--method", "linear"]);
    assert_eq!((found["frames"].as_u64(), found["metrics"]["cardinality"].as_f64()), (Some(1), Some(0.0)));
    assert_eq!(found["settings"]["method"], "linear");
    let table = std::fs::read_to_string(&weights).expect("a table");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].split(',').count() as u64, found["shapes"].as_u64().expect("a number"));
    assert!(lines[1].split(',').all(|weight| weight == "0"));

    // `--json FILE` writes the document there, wherever it stands, and text to standard output.
    std::fs::remove_file(&weights).expect("it is there");
    for places in [
        ["invert", "mira", text(&rest), "-o", text(&weights), "--json", text(&report)],
        ["invert", "--json", text(&report), "mira", text(&rest), "-o", text(&weights)],
    ] {
        let said = succeed(&places);
        assert!(said.contains("1 frame of") && said.contains("Quartic"), "{said}");
        let document = std::fs::read(&report).expect("a report");
        let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
        assert_eq!(document["rig"], "mira");
        std::fs::remove_file(&report).expect("it is there");
    }
    holds_only(folder.path(), &["rest.obj", "weights.csv"]);
}

#[test]
fn defaults_settle_and_the_paper_makes_five_passes() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let posed = folder.path().join("rest.obj");
    let weights = folder.path().join("weights.csv");
    succeed(&["convert", "mira", "-o", text(&posed)]);
    let run = |more: &[&str]| json(&[&["invert", "mira", text(&posed), "-o", text(&weights)], more].concat());
    let settled = run(&[]);
    assert_eq!(settled["solves"][0]["stop"], "converged");
    assert!(settled["settings"]["alpha"]["share"].as_f64().is_some_and(|share| share > 0.0), "{settled}");
    let paper = run(&["--paper"]);
    assert_eq!(paper["settings"]["alpha"]["absolute"], 0.5);
    assert_eq!((&paper["settings"]["passes"], &paper["settings"]["newton"]), (&5.into(), &false.into()));
    let given = run(&["--paper", "--alpha", "2", "--passes", "3"]);
    assert_eq!(given["settings"]["alpha"]["absolute"], 2.0);
    assert_eq!(given["settings"]["passes"], 3);
    assert_eq!(run(&["--alpha", "0.01"])["settings"]["alpha"]["share"], 0.01);
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let tiny = TinyGltf::default().write(folder.path(), "tiny");
    let before: Vec<String> = std::fs::read_dir(folder.path())
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    let out = folder.path().join("weights.csv");
    let refused = |rest: &[&str], words: &[&str]| {
        let error = refuse(&[&["invert"], rest, &["-o", text(&out)]].concat());
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    refused(&["mira", text(&tiny)], &["tiny", "vertices", "mira"]);
    refused(&["mira", "nothing.npz"], &["nothing.npz"]);
    refused(&["rook", text(&tiny)], &["tiny", "vertices", "rook"]);
    refused(&[text(&tiny), text(&tiny)], &["tiny", "blendshapes", "no control that acts like one"]);
    refused(&["mira", text(&tiny), "--alpha", "much"], &["--alpha"]);
    refused(&["mira", text(&tiny), "--symmetric", "smile"], &["--symmetric"]);
    refused(&["mira", text(&tiny), "--head", "nose"], &["--head"]);
    refused(&["mira", text(&tiny), "--method", "magic"], &["magic"]);
    let names: Vec<&str> = before.iter().map(String::as_str).collect();
    holds_only(folder.path(), &names);
}
