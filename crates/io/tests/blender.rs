//! Files that Blender wrote, against what Blender itself evaluates; how they are made: `blender_support/make.py`.

use std::path::PathBuf;
use understudy_core::Vec3;
use understudy_io::alembic::{AlembicCache, AlembicOptions};
use understudy_io::npz::NpzReader;
use understudy_io::{Dim, Model, fbx, usd};

/// A hundredth of a millimetre.
const EXACT_CM: f32 = 0.001;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/blender_support").join(name)
}

/// Blender's vertices in cm and Y-up, frame by frame.
fn truth(name: &str) -> Vec<Vec<Vec3>> {
    let npz = NpzReader::read(&file("truth.npz")).expect("what Blender evaluated");
    let array = npz.f32(name, &[Dim::Any("f"), Dim::Any("n"), Dim::Exactly(3)]).expect("frames");
    let size = array.shape[1] * 3;
    let point = |v: &[f32]| Vec3::new(v[0], v[2], -v[1]) * 100.0;
    array.data.chunks_exact(size).map(|frame| frame.chunks_exact(3).map(point).collect()).collect()
}

fn distance(a: &[Vec3], b: &[Vec3]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

/// The vertices of a segment.
fn segment(mesh: &understudy_core::Mesh, vertices: &[Vec3], name: &str) -> Vec<Vec3> {
    let index = mesh.segments().find(name).unwrap_or_else(|| panic!("{name}: {:?}", mesh.segments().names));
    mesh.segments().vertices(index).iter().map(|vertex| vertices[*vertex as usize]).collect()
}

#[test]
fn alembic_is_what_blender_evaluates() {
    let cache = AlembicCache::open(&file("hero.abc"), &AlembicOptions::default()).expect("a cache");
    assert_eq!((cache.len(), cache.rate(), cache.mesh().has_uvs()), (10, Some(24.0), true));
    assert!(cache.conversion().reason.contains("Blender"), "{}", cache.conversion());
    let mut vertices = Vec::new();
    for (frame, (tube, hat)) in truth("tube").iter().zip(&truth("box")).enumerate() {
        cache.frame(frame, &mut vertices).expect("a frame");
        assert!(distance(&segment(cache.mesh(), &vertices, "tube"), tube) < EXACT_CM, "frame {frame}");
        assert!(distance(&segment(cache.mesh(), &vertices, "box"), hat) < EXACT_CM, "frame {frame}");
    }
    let fine = AlembicCache::open(&file("fine.abc"), &AlembicOptions::default()).expect("sub-frames");
    assert!(fine.len() >= 19, "{} moments", fine.len());
    for (frame, tube) in truth("tube").iter().enumerate() {
        let time = (frame + 1) as f64 / 24.0;
        let near = fine.times().iter().position(|t| (t - time).abs() < 1e-4).expect("whole frames are there");
        fine.frame(near, &mut vertices).expect("a frame");
        assert!(distance(&segment(fine.mesh(), &vertices, "tube"), tube) < EXACT_CM, "frame {frame}");
    }
}

fn moves_as_in_blender(model: &Model, what: &str, start: f64) {
    let clip = model.clips.iter().max_by_key(|clip| clip.bones.len()).expect("an animation");
    let mut worst = 0.0f32;
    for (frame, (tube, hat)) in truth("tube").iter().zip(&truth("box")).enumerate() {
        let posed = model.evaluate_at(clip, start + frame as f64 / 24.0);
        worst = worst.max(distance(&segment(&model.mesh, &posed, "tube"), tube));
        worst = worst.max(distance(&segment(&model.mesh, &posed, "box"), hat));
    }
    assert!(worst < EXACT_CM, "{what}: {worst} cm from Blender");
}

#[test]
fn fbx_moves_as_in_blender() {
    let options = fbx::FbxOptions { file_times: true, ..fbx::FbxOptions::default() };
    let model = fbx::read_with(&file("hero.fbx"), &options).unwrap_or_else(|error| panic!("{error}"));
    let shapes: Vec<&str> = model.shapes.iter().flat_map(|s| s.shapes()).map(|s| s.name.as_str()).collect();
    assert_eq!(shapes, ["bulge"]);
    moves_as_in_blender(&model, "FBX", 1.0 / 24.0);
    moves_as_in_blender(&fbx::read(&file("hero.fbx")).expect("a model"), "FBX from zero", 0.0);
}

#[test]
fn usd_moves_as_in_blender() {
    for name in ["hero.usda", "hero.usdc"] {
        let model = usd::read(&file(name)).unwrap_or_else(|error| panic!("{error}"));
        let shapes: Vec<&str> =
            model.shapes.iter().flat_map(|s| s.shapes()).map(|s| s.name.as_str()).collect();
        assert_eq!(shapes, ["bulge"]);
        moves_as_in_blender(&model, name, 1.0 / 24.0);
    }
}
