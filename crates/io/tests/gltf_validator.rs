//! The Khronos validator on what we write: no errors and no warnings. Needs node and npm; where they are
//! absent the test says so and passes, except in CI.

mod gltf_support;

use gltf_support::{Character, Size};
use std::path::{Path, PathBuf};
use std::process::Command;
use understudy_io::gltf::{self, GltfScene, write_glb};
use understudy_testkit::shared_data;

/// A folder with the validator installed, or why there is none.
fn install() -> Result<PathBuf, String> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/gltf-validate");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gltf-validate");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for file in ["package.json", "package-lock.json", "validate.mjs"] {
        std::fs::copy(tool.join(file), folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    }
    if !folder.join("node_modules/gltf-validator/index.js").is_file() {
        let mut npm = Command::new("npm");
        let output = npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder).output();
        let output = output.map_err(|error| format!("npm: {error}"))?;
        if !output.status.success() {
            return Err(format!("npm ci: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(folder)
}

#[test]
fn khronos_finds_no_fault() {
    let folder = match install() {
        Ok(folder) => folder,
        Err(why) if std::env::var("CI").as_deref() == Ok("true") => panic!("{why}"),
        Err(why) => return eprintln!("skipped khronos_finds_no_fault: {why}"),
    };
    let files = tempfile::tempdir().expect("a scratch folder");
    let mut paths = Vec::new();
    let mut write = |name: &str, scene: &GltfScene<'_>| {
        let path = files.path().join(format!("{name}.glb"));
        write_glb(&path, scene).unwrap_or_else(|error| panic!("{error}"));
        paths.push(path);
    };
    let full = Character::new(Size::FULL, 11);
    write("full", &full.scene());
    let small = Character::new(Size::SMALL, 12);
    write("small", &small.scene());
    write("body", &GltfScene { shapes: None, clips: &[], colours: None, ..small.scene() });
    let mut clips = small.clips.clone();
    clips.iter_mut().for_each(|clip| clip.poses.clear());
    write("face", &GltfScene { skin: None, clips: &clips, rest_weights: &[0.5, 0.0, 1.0], ..small.scene() });
    write("mesh", &GltfScene::new("mesh", &small.mesh));
    let wide = Character::new(Size { bones: 300, ..Size::SMALL }, 13);
    write("wide", &wide.scene());
    for sample in [
        "gltf/RobotExpressive.glb",
        "gltf/Fox/Fox.glb",
        "kaykit/Knight.glb",
        "gltf/MorphStressTest/MorphStressTest.glb",
    ] {
        if let Some(data) = shared_data() {
            let asset = gltf::read(&data.join(sample)).unwrap_or_else(|error| panic!("{error}"));
            write(&sample.replace('/', "_"), &asset.scene("rewritten"));
        }
    }
    let output = Command::new("node").arg("validate.mjs").args(&paths).current_dir(&folder).output();
    let output = output.expect("npm is here, so node is");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let clean = text.lines().filter(|line| line.contains(": 0 errors, 0 warnings")).count();
    assert_eq!(clean, paths.len(), "{text}");

    // The tool must be able to fail, or the above says nothing.
    let mut broken = std::fs::read(&paths[1]).expect("just written");
    let half = broken.len() / 2;
    broken.truncate(half);
    let path = files.path().join("broken.glb");
    std::fs::write(&path, broken).expect("a scratch file");
    let output =
        Command::new("node").arg("validate.mjs").arg(&path).current_dir(&folder).output().expect("node");
    assert!(!output.status.success(), "half a file is no file");
}
