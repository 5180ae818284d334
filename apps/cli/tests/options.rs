//! No option is taken and ignored, and a wrong name or number says what would be right.

mod common;

use common::{TinyGltf, holds_only, json, refuse, run, succeed, text};

#[test]
fn options_that_change_nothing_are_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let [data, mesh, baked, frames] = ["data", "tiny.obj", "baked.npz", "frames.npz"].map(path);
    let baked_glb = path("baked.glb");
    succeed(&["sample", text(&rig), "-o", text(&data), "--poses", "20"]);
    succeed(&["convert", text(&rig), "-o", text(&mesh)]);
    succeed(&["convert", text(&rig), "-o", text(&baked_glb), "--bake", "bend"]);
    succeed(&["convert", text(&baked_glb), "-o", text(&baked)]);
    succeed(&["convert", text(&data), "-o", text(&frames)]);
    let (out, glb, npz, obj) = (path("out"), path("out.glb"), path("out.npz"), path("out.obj"));
    let [png, twin] = ["out.png", "out.twin"].map(path);
    let (rig, data, mesh, baked) = (text(&rig), text(&data), text(&mesh), text(&baked));
    let (out, glb, npz, obj) = (text(&out), text(&glb), text(&npz), text(&obj));
    let (png, twin, frames) = (text(&png), text(&twin), text(&frames));
    for (arguments, option) in [
        (vec!["sample", rig, "-o", out, "--clip", "bend", "--seed", "3"], "seed"),
        (vec!["sample", rig, "-o", out, "--rate", "24"], "rate"),
        (vec!["sample", rig, "-o", out, "--mix", "0.1"], "mix"),
        (vec!["sample", rig, "-o", out, "--stray", "0.1"], "stray"),
        (vec!["sample", rig, "-o", out, "--method", "uniform", "--exclude", "bend"], "uniform"),
        (vec!["sample", rig, "-o", out, "--active", "--workers", "2"], "--workers"),
        (vec!["sample", rig, "-o", out, "--active", "--timeout", "9"], "--timeout"),
        (vec!["sample", rig, "-o", out, "--active", "--skip-failed"], "--skip-failed"),
        (vec!["sample", rig, "-o", out, "--active", "--method", "sparse", "--exclude", "bend"], "sparse"),
        (vec!["sample", rig, "-o", out, "--method", "uniform", "--clip", "bend"], "uniform"),
        (vec!["convert", data, "-o", npz, "--clip", "bend"], "clip"),
        (vec!["convert", data, "-o", npz, "--rate", "24"], "rate"),
        (vec!["convert", mesh, "-o", glb, "--clip", "bend"], "clip"),
        (vec!["convert", mesh, "-o", glb, "--rate", "24"], "rate"),
        (vec!["convert", baked, "-o", glb, "--clip", "bend"], "clip"),
        (vec!["convert", rig, "-o", glb, "--clip", "bend"], "clip"),
        (vec!["convert", rig, "-o", obj, "--clip", "bend"], "clip"),
        (vec!["convert", rig, "-o", glb, "--tolerance-mm", "1"], "--bake"),
        (vec!["convert", rig, "-o", glb, "--remesh"], ".obj"),
        (vec!["render", data, "-o", png, "--clip", "bend"], "clips"),
        (vec!["render", data, "-o", png, "--set", "tip.rotate_z=1"], "controls"),
        (vec!["render", mesh, "-o", png, "--clip", "bend"], "clips"),
        (vec!["info", mesh, "--verify"], "verify"),
        (vec!["info", "rook", "--verify"], "verify"),
        (vec!["invert", baked, frames, "-o", npz, "--clip", "bend"], "clip"),
        (vec!["invert", baked, mesh, "-o", npz, "--clip", "bend"], "clip"),
        (vec!["invert", baked, mesh, "-o", npz, "--layout", "plain"], "layout"),
        (vec!["learn", "lbs", data, "-o", glb, "--clip", "bend"], "clip"),
        (vec!["learn", "lbs", frames, "-o", glb, "--clip", "bend"], "clip"),
        (vec!["learn", "lbs", mesh, "-o", glb, "--clip", "bend"], "clip"),
        (vec!["learn", "face", data, "-o", twin, "--dense", "--regions", "3"], "--regions"),
        (
            vec!["learn", "face", data, "-o", twin, "--coarse-only", "--refinement-steps", "3"],
            "--refinement-steps",
        ),
        (vec!["eval", "x.twin", data, "--baseline", "lbs4"], "--train"),
        (vec!["export", "x.twin", "--onnx", out, "--rate", "24"], "--glb"),
        (vec!["export", "x.twin", "--onnx", out, "--threads", "1"], "--glb"),
        (vec!["completions", "bash", "--json"], "--json"),
    ] {
        let line = refuse(&arguments);
        assert!(line.contains(option), "{arguments:?}: {line}");
    }
    holds_only(
        folder.path(),
        &["tiny.gltf", "tiny.bin", "data", "tiny.obj", "baked.glb", "baked.npz", "frames.npz"],
    );
}

#[test]
fn near_misses_are_understood() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let (picture, data) = (folder.path().join("out.png"), folder.path().join("data"));
    let (rig, out, data) = (text(&rig), text(&picture), text(&data));
    let close = folder.path().join("tiyn");
    for (arguments, meant) in [
        (vec!["render", rig, "-o", out, "--set", "tip.rotat_z=1"], "did you mean 'tip.rotate_z'?"),
        (vec!["render", rig, "-o", out, "--clip", "bemd"], "did you mean 'bend'?"),
        (vec!["sample", rig, "-o", data, "--clip", "Bend"], "did you mean 'bend'?"),
        (vec!["sample", rig, "-o", data, "--exclude", "ben"], "did you mean 'bend'?"),
        (vec!["render", "miro", "-o", out], "did you mean 'mira'?"),
        (vec!["info", "rok"], "did you mean 'rook'?"),
        (vec!["sample", rig, "-o", data, "--pose", "3"], "'--poses'"),
    ] {
        let line = refuse(&arguments);
        assert!(line.contains(meant), "{line}");
    }
    std::fs::write(folder.path().join("tiny"), b"").expect("writable");
    let line = refuse(&["info", text(&close)]);
    assert!(line.contains("did you mean 'tiny'?"), "{line}");
}

#[test]
fn numbers_out_of_range_name_the_range() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let [data, twin, glb, out] = ["data", "out.twin", "out.glb", "out"].map(|name| folder.path().join(name));
    let (rig, out, twin, glb) = (text(&rig), text(&out), text(&twin), text(&glb));
    succeed(&["sample", rig, "-o", text(&data), "--poses", "20"]);
    let data = text(&data);
    for (arguments, range) in [
        (vec!["sample", rig, "-o", out, "--clip", "bend", "--rate", "0"], "more than 0"),
        (vec!["sample", rig, "-o", out, "--clip", "bend", "--rate", "1e30"], "; at most 10000000 is wanted"),
        (vec!["sample", rig, "-o", out, "--method", "noise", "--mix", "2"], "0 to 1"),
        (vec!["sample", rig, "-o", out, "--hold-out", "0.9"], "0 to 0.5"),
        (vec!["learn", "body", data, "-o", twin, "--epochs", "0"], "1 or more"),
        (vec!["learn", "face", data, "-o", twin, "--batch", "0"], "1 to 1024"),
        (vec!["learn", "face", data, "-o", twin, "--minutes", "0"], "more than 0"),
        (vec!["learn", "body", data, "-o", twin, "--minutes", "0"], "more than 0"),
        (vec!["learn", "diff", data, "-o", twin, "--minutes", "NaN"], "more than 0"),
        (vec!["learn", "lbs", data, "-o", glb, "--bones", "0"], "1 to 1024"),
        (vec!["learn", "lbs", data, "-o", glb, "--tolerance", "-1"], "0 or more"),
        (vec!["convert", rig, "-o", glb, "--rate", "-1"], "more than 0"),
    ] {
        let line = refuse(&arguments);
        assert!(line.contains(range), "{arguments:?}: {line}");
    }
}

#[test]
fn datasets_are_drawn_and_their_ranges_verified() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let rig = TinyGltf::default().write(folder.path(), "tiny");
    let (data, picture) = (path("data"), path("out.png"));
    succeed(&["sample", text(&rig), "-o", text(&data), "--poses", "20", "--chunk", "8"]);
    let draw = ["render", text(&data), "-o", text(&picture), "--size", "32"];
    assert_eq!(json(&draw)["pictures"], 1);
    assert_eq!(json(&[&draw[..], &["--frames", "6"]].concat())["pictures"], 6);
    let line = refuse(&[&draw[..], &["--frames", "21"]].concat());
    assert!(line.contains("20 poses"), "{line}");

    let whole = json(&["info", text(&data), "--verify"]);
    assert_eq!(whole["dataset"]["outside_range"], 0, "{whole}");
    // A range that was narrowed by hand, in a file without its hash.
    let header = data.join("dataset.toml");
    let content = std::fs::read_to_string(&header).expect("readable");
    let edited: Vec<String> = content
        .lines()
        .skip(1)
        .map(|line| if line.starts_with("high = ") { "high = 45.0".into() } else { line.to_owned() })
        .collect();
    std::fs::write(&header, edited.join("\n")).expect("writable");
    let narrowed = json(&["info", text(&data), "--verify"]);
    let outside = narrowed["dataset"]["outside_range"].as_u64().expect("counted");
    assert!((1..20).contains(&outside), "{outside} of 20 values are above the middle");
    let said = String::from_utf8(run(&["info", text(&data), "--verify"]).stderr).expect("text");
    assert!(
        said.contains("warning") && said.contains("outside their ranges") && said.contains("pose"),
        "{said}"
    );
}
