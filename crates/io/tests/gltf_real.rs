//! Real glTF files: every one of the shared samples loads, poses finitely and moves as its name says.

use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::Model;
use understudy_io::gltf::{self, ReadOptions, to_glb_bytes};
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

fn sample(name: &str) -> Option<Model> {
    let path = shared_data()?.join(name);
    Some(gltf::read(&path).unwrap_or_else(|error| panic!("{error}")))
}

fn furthest(a: &[Vec3], b: &[Vec3]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

fn bounds(points: &[Vec3]) -> (Vec3, Vec3) {
    points.iter().fold((points[0], points[0]), |(low, high), p| (low.min(*p), high.max(*p)))
}

/// Diagonal of the bounding box.
fn size(points: &[Vec3]) -> f32 {
    let (low, high) = bounds(points);
    low.distance(high)
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
        let size = size(&asset.rest_vertices());
        assert!(!asset.clips.is_empty(), "{}", path.display());
        for clip in &asset.clips {
            let count = clip.own_frames();
            for frame in [0, count / 3, count / 2, count - 1] {
                let posed = asset.evaluate(clip, frame);
                let place = format!("{} '{}' frame {frame}", path.display(), clip.name);
                assert!(posed.iter().all(|p| p.is_finite()), "{place}");
                // A wrong bind matrix or unit throws vertices far away.
                assert!(furthest(&posed, asset.mesh.positions()) < 4.0 * size, "{place}");
            }
        }
        // Written and read again, the file deforms as before.
        let again = to_glb_bytes(&asset.scene("again")).unwrap_or_else(|error| panic!("{error}"));
        let again = gltf::parse(&again, &|_| Err("nothing is outside".into()))
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.mesh.topology_hash(), asset.mesh.topology_hash());
        for (before, after) in asset.clips.iter().zip(&again.clips) {
            let frame = before.own_frames() / 2;
            let off = furthest(&asset.evaluate(before, frame), &again.evaluate(after, frame));
            assert!(off < 1e-3 * (size / 200.0).max(1.0), "{}: {off} cm of {size}", path.display());
        }
    }
}

#[test]
fn kaykit_characters_have_41_joints_and_76_clips() {
    for (name, skinned) in [("Knight", 6), ("Rogue", 6)] {
        let Some(asset) = sample(&format!("kaykit/{name}.glb")) else { return };
        assert_eq!((asset.joints.len(), asset.clips.len()), (41, 76));
        assert_eq!(asset.warnings, [""; 0]);
        let segments = &asset.mesh.segments().names;
        let body = segments.iter().filter(|segment| segment.starts_with(name)).count();
        assert!(body > skinned && asset.mesh.has_uvs(), "{segments:?}");
        let walk = asset.find_clip("Walking_A").expect("a walk");
        assert_eq!(walk.rate, 30.0);
        let (start, half) = (asset.evaluate(walk, 0), asset.evaluate(walk, walk.own_frames() / 2));
        let step = furthest(&start, &half);
        assert!(step > 20.0 && step < 200.0, "{name} walks {step} cm");
        // A held weapon is no part of a skin: it rides on the hand, rigidly.
        let held = segments.iter().position(|s| s.contains("1H_") || s.contains("Knife")).expect("a weapon");
        let points = asset.mesh.segments().vertices(held);
        let length =
            |pose: &[Vec3]| pose[points[0] as usize].distance(pose[points[points.len() / 2] as usize]);
        assert!((length(&start) - length(&half)).abs() < 1e-2 && furthest(&start, &half) > 1.0);
    }
}

#[test]
fn the_fox_is_as_long_as_its_file_says_and_runs() {
    let Some(asset) = sample("gltf/Fox/Fox.glb") else { return };
    assert_eq!((asset.joints.len(), asset.clips.len(), asset.mesh.vertex_count()), (24, 3, 1728));
    let names: Vec<&str> = asset.clips.iter().map(|clip| clip.name.as_str()).collect();
    assert_eq!(names, ["Survey", "Walk", "Run"]);
    let low_and_high =
        asset.rest_vertices().iter().map(|p| p.z).fold((0.0f32, 0.0f32), |(l, h), z| (l.min(z), h.max(z)));
    assert!((low_and_high.1 - low_and_high.0 - 15_472.0).abs() < 100.0, "{low_and_high:?}");
    let run = &asset.clips[2];
    assert!((run.duration() - 1.1583).abs() < 0.01, "{}", run.duration());
    let moved = furthest(&asset.evaluate(run, 0), &asset.evaluate(run, run.own_frames() / 2));
    assert!(moved > 1000.0, "{moved}");
}

#[test]
fn the_figure_stands_in_rest() {
    let Some(asset) = sample("gltf/RiggedFigure/RiggedFigure.glb") else { return };
    assert_eq!(asset.joints.len(), 19);
    let rest = asset.rest_vertices();
    let (low, high) = bounds(&rest);
    assert!(low.y.abs() < 1.0 && (high.y - 145.0).abs() < 1.0, "upright, feet on the ground: {low} {high}");
    assert!(furthest(&rest, asset.mesh.positions()) < 1.0, "it is bound as it rests");
    let moved = furthest(&rest, &asset.evaluate(&asset.clips[0], 15));
    assert!(moved > 5.0, "{moved}");
}

#[test]
fn the_simple_skin_bends_at_its_second_joint() {
    let Some(asset) = sample("gltf/SimpleSkin/SimpleSkin.gltf") else { return };
    assert_eq!((asset.joints.len(), asset.mesh.vertex_count(), asset.mesh.faces().len()), (2, 10, 8));
    let clip = &asset.clips[0];
    let (rest, bent) = (asset.rest_vertices(), asset.evaluate(clip, 45));
    // Key at 1.5 s: a quarter turn of the upper joint about z. The foot stays, the top swings over.
    for vertex in 0..10 {
        match rest[vertex].y {
            y if y < 1.0 => assert!(rest[vertex].distance(bent[vertex]) < 1e-3),
            y if y > 199.0 => assert!(bent[vertex].x < -40.0 && bent[vertex].y < 160.0, "{}", bent[vertex]),
            _ => {}
        }
    }
}

#[test]
fn the_simple_morph_moves_by_its_weights() {
    let Some(asset) = sample("gltf/SimpleMorph/SimpleMorph.gltf") else { return };
    let shapes = asset.shapes.as_ref().expect("two targets");
    let names: Vec<&str> = shapes.shapes().iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(
        (names.as_slice(), asset.rest_weights.as_slice()),
        (&["target 0", "target 1"][..], &[0.5, 0.5][..])
    );
    // Both targets pull the third vertex of (0.5, 0.5, 0): by (-1, 1, 0) and (1, 1, 0) metres.
    let tip = |frame: usize| asset.evaluate(&asset.clips[0], frame)[2];
    assert_eq!(asset.clips[0].weights_at(1.0, &asset.rest_weights), [0.0, 1.0]);
    assert_eq!(asset.clips[0].weights_at(2.0, &asset.rest_weights), [1.0, 1.0]);
    assert_eq!(tip(0) + Vec3::new(100.0, 100.0, 0.0), tip(30));
    assert_eq!(tip(30) + Vec3::new(-100.0, 100.0, 0.0), tip(60));
}

#[test]
fn the_morph_stress_test_reaches_each_target() {
    let Some(asset) = sample("gltf/MorphStressTest/MorphStressTest.glb") else { return };
    let shapes = asset.shapes.as_ref().expect("eight targets");
    assert_eq!((shapes.shapes().len(), asset.clips.len(), asset.mesh.segments().len()), (8, 3, 2));
    assert_eq!(shapes.shapes()[0].name, "Key 1");
    let single = asset.find_clip("Individuals").expect("one target at a time");
    let weights = asset.frames(single, None).expect("its own rate").shape_weights;
    for shape in 0..8 {
        let frame = (0..weights.len()).max_by(|a, b| weights[*a][shape].total_cmp(&weights[*b][shape]));
        let frame = frame.expect("frames");
        assert!(weights[frame][shape] > 0.99);
        let moved = furthest(&asset.evaluate(single, frame), asset.mesh.positions());
        assert!(moved > 10.0, "target {shape} moves {moved} cm");
    }
}

#[test]
fn the_robot_keeps_rigid_parts_skinned_hands_and_a_face() {
    let Some(asset) = sample("gltf/RobotExpressive.glb") else { return };
    assert_eq!((asset.joints.len(), asset.clips.len()), (43, 14));
    let names: Vec<&str> = asset.shapes.iter().flat_map(|s| s.shapes()).map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["Angry", "Surprised", "Sad"]);
    // Bound a hundred times smaller and lying down, it must still stand as one figure.
    let rest = asset.rest_vertices();
    let hands = asset.mesh.segments().names.iter().position(|n| n.starts_with("Hand.R")).expect("a hand");
    let (low, high) =
        bounds(&asset.mesh.segments().vertices(hands).iter().map(|v| rest[*v as usize]).collect::<Vec<_>>());
    assert!((high - low).max_element() > 20.0 && (high - low).max_element() < 200.0, "{low} {high}");
    assert!(
        furthest(&rest, asset.mesh.positions()) < 0.2 * size(&rest),
        "the mesh stands where the rest pose is"
    );
}

#[test]
fn a_given_rate_is_kept() {
    let Some(data) = shared_data() else { return };
    let path = data.join("gltf/Fox/Fox.glb");
    let asset = gltf::read_with(&path, &ReadOptions { rate: Some(60.0), ..ReadOptions::default() })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(asset.clips.iter().all(|clip| clip.rate == 60.0));
    assert_eq!(asset.clips[0].own_frames(), 206);
}
