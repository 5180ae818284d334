//! Real glTF files: every one of the shared samples loads, poses finitely and moves as its name says.

use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::gltf::{self, GltfAsset};
use understudy_testkit::shared_data;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            files(&path, found);
        } else if kind == "glb" || kind == "gltf" {
            found.push(path);
        }
    }
}

fn sample(name: &str) -> Option<GltfAsset> {
    let path = shared_data()?.join(name);
    Some(gltf::read(&path).unwrap_or_else(|error| panic!("{error}")))
}

fn furthest(a: &[Vec3], b: &[Vec3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

fn bounds(points: &[Vec3]) -> (Vec3, Vec3) {
    points.iter().fold((points[0], points[0]), |(low, high), p| (low.min(*p), high.max(*p)))
}

#[test]
fn every_sample_loads_and_poses_finitely() {
    let Some(data) = shared_data() else { return };
    let mut found = Vec::new();
    files(&data.join("gltf"), &mut found);
    files(&data.join("kaykit"), &mut found);
    assert!(found.len() >= 8, "{found:?}");
    for path in found {
        let asset = gltf::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let rest = asset.rest_vertices();
        let (low, high) = bounds(&rest);
        eprintln!(
            "{}: {} v {} f, {} bones, {} joints, {:?} shapes, {} clips, {low} to {high}, {:?}",
            path.display(),
            rest.len(),
            asset.mesh.faces().len(),
            asset.skeleton.bones().len(),
            asset.joints.len(),
            asset.shapes.as_ref().map(|s| s.shapes().len()),
            asset.clips.len(),
            asset.warnings
        );
        for clip in asset.clips.iter() {
            eprintln!("   {} {} fps {} frames", clip.name, clip.rate, clip.poses.len());
            for frame in [0, clip.poses.len() / 3, clip.poses.len() / 2, clip.poses.len() - 1] {
                let posed = asset.evaluate(clip, frame);
                assert!(posed.iter().all(|p| p.is_finite()), "{} {} {frame}", path.display(), clip.name);
            }
        }
    }
}
