//! Where results go: never over an input, never over what is no file, through links, and a page that cannot be
//! written costs no figures.

mod common;

use common::{TinyGltf, all_bytes, holds_only, refuse, run, succeed, text};
use std::path::{Path, PathBuf};

/// Everything in a folder stays as it is while all commands are refused.
fn refuse_all(folder: &Path, commands: &[Vec<&str>], word: &str) {
    let before = all_bytes(folder);
    for arguments in commands {
        let line = refuse(arguments);
        assert!(line.contains(word), "{arguments:?}: {line}");
    }
    assert_eq!(all_bytes(folder), before, "something was written");
}

#[test]
fn no_output_replaces_an_input() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let source = TinyGltf::default().write(folder.path(), "tiny");
    let [model, data, mesh, chunk, same] = ["m.glb", "data", "m.obj", "chunk.glb", "same.glb"].map(path);
    succeed(&["convert", text(&source), "-o", text(&model)]);
    succeed(&["convert", text(&source), "-o", text(&mesh)]);
    succeed(&["sample", text(&source), "-o", text(&data), "--poses", "20"]);
    std::fs::hard_link(data.join("chunk-000000.safetensors"), &chunk).expect("a link");
    std::fs::hard_link(&model, &same).expect("a link");
    let round = path("data/../m.glb");
    let header = data.join("dataset.toml");
    let (twin, npz) = (path("t.twin"), path("t.npz"));
    std::fs::write(&twin, b"any file").expect("writable");
    std::fs::write(&npz, b"any file").expect("writable");
    let (out, facts) = (path("out.csv"), path("facts.json"));
    std::fs::hard_link(&npz, &facts).expect("a link");
    let from = text(&twin);
    refuse_all(
        folder.path(),
        &[
            vec!["convert", text(&model), "-o", text(&model)],
            vec!["convert", text(&model), "-o", text(&round)],
            vec!["convert", text(&model), "-o", text(&same)],
            vec!["convert", text(&mesh), "-o", text(&mesh), "--remesh"],
            vec!["learn", "lbs", text(&model), "-o", text(&model)],
            vec!["learn", "lbs", text(&data), "-o", text(&chunk)],
            vec!["learn", "body", text(&data), "-o", text(&header)],
            vec!["learn", "body", text(&data), "-o", text(&source)],
            vec!["learn", "face", text(&data), "-o", text(&header)],
            vec!["learn", "face", text(&data), "-o", from, "--from", from],
            vec!["transfer", from, text(&mesh), "-o", from],
            vec!["transfer", from, text(&mesh), "-o", text(&mesh)],
            vec!["invert", "mira", text(&npz), "-o", text(&npz)],
            vec!["invert", "mira", text(&npz), "-o", text(&out), "--json", text(&facts)],
            vec!["invert", text(&npz), text(&mesh), "-o", text(&npz)],
        ],
        "is the input",
    );
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_and_links_are_followed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let source = TinyGltf::default().write(folder.path(), "tiny");
    let data = path("data");
    succeed(&["sample", text(&source), "-o", text(&data), "--poses", "20"]);
    let pipe = path("pipe.glb");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
    assert!(made.success());
    let device = path("null.glb");
    std::os::unix::fs::symlink("/dev/null", &device).expect("a link");
    let inner = path("folder.glb");
    std::fs::create_dir(&inner).expect("writable");
    for (output, word) in [(&pipe, "named pipe"), (&device, "device"), (&inner, "folder")] {
        for arguments in [
            vec!["convert", text(&source), "-o", text(output)],
            vec!["learn", "lbs", text(&data), "-o", text(output)],
            vec!["learn", "body", text(&data), "-o", text(output)],
            vec!["learn", "face", text(&data), "-o", text(output)],
        ] {
            let line = refuse(&arguments);
            assert!(line.contains(word) && line.contains(text(output)), "{line}");
        }
    }
    let (link, real) = (path("link.glb"), path("deep/real.glb"));
    std::os::unix::fs::symlink("deep/real.glb", &link).expect("a link");
    succeed(&["convert", text(&source), "-o", text(&link)]);
    assert!(link.is_symlink() && std::fs::read(&real).expect("written there").starts_with(b"glTF"));
    holds_only(
        folder.path(),
        &["tiny.gltf", "tiny.bin", "data", "pipe.glb", "null.glb", "folder.glb", "link.glb", "deep"],
    );
}

#[test]
fn a_page_is_checked_first_and_its_loss_costs_no_figures() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name);
    let source = TinyGltf::default().write(folder.path(), "tiny");
    let [train, test, twin, page] = ["train", "test", "tiny.twin", "page"].map(path);
    succeed(&["sample", text(&source), "-o", text(&train), "--poses", "40"]);
    succeed(&["sample", text(&source), "-o", text(&test), "--poses", "5", "--seed", "2"]);
    succeed(&["learn", "body", text(&train), "-o", text(&twin), "--epochs", "3"]);
    let weigh = |report: &PathBuf| run(&["eval", text(&twin), text(&test), "--report", text(report)]);
    // The target is checked before any poses are read.
    let line = refuse(&["eval", text(&twin), text(&path("none")), "--report", text(&source)]);
    assert!(line.contains("tiny.gltf"), "{line}");
    std::fs::create_dir_all(page.join("eval.html")).expect("writable");
    let output = weigh(&page);
    assert_eq!(output.status.code(), Some(1), "the page is missing");
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("mean") && shown.contains("twin"), "{shown}");
    assert!(said.contains("eval.html"), "{said}");

    let (onnx, glb) = (path("a.glb"), path("train/../a.glb"));
    let (model, chunk) = (text(&twin), train.join("chunk-000000.safetensors"));
    refuse_all(
        folder.path(),
        &[
            vec!["export", model, "--onnx", model],
            vec!["export", model, "--onnx", text(&onnx), "--glb", text(&glb)],
            vec!["export", model, "--glb", text(&chunk), "--train", text(&train)],
        ],
        "is the",
    );
}
