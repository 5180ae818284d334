//! FBX files of Maya: skins, bones and animation against the cache that was baked of the same scene, and damaged files.

use understudy_core::Vec3;
use understudy_io::alembic::{AlembicCache, AlembicOptions};
use understudy_io::{Scene, fbx};

fn data() -> Option<std::path::PathBuf> {
    Some(understudy_testkit::shared_data()?.join("dem-bones"))
}

#[test]
fn a_decomposition_moves_as_its_makers_say() {
    let Some(data) = data() else { return };
    let cache = AlembicCache::open(&data.join("Bone_Anim.abc"), &AlembicOptions::default()).expect("a cache");
    // Errors of the reference decompositions against the frames they were made of: RMSE, mean, largest.
    for (file, bones, rmse, mean, most) in [
        ("Decomposition_05.fbx", 5, 0.0267, 0.0205, 0.178),
        ("Decomposition_10.fbx", 10, 0.0155, 0.0118, 0.130),
        ("Decomposition_20.fbx", 20, 0.0099, 0.0073, 0.093),
    ] {
        let options = fbx::FbxOptions { file_times: true, ..fbx::FbxOptions::default() };
        let model = fbx::read_with(&data.join(file), &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(model.mesh.vertex_count(), 754, "{file}");
        assert!(model.joints.len() >= bones, "{file}: {} joints", model.joints.len());
        let clip = model.clips.first().expect("an animation");
        let (mut sum, mut squares, mut largest, mut count) = (0.0f64, 0.0f64, 0.0f64, 0);
        let mut truth = Vec::new();
        for frame in (0..cache.len()).step_by(7) {
            cache.frame(frame, &mut truth).expect("a frame");
            let posed = model.evaluate_at(clip, cache.times()[frame]);
            for (a, b) in posed.iter().zip(&truth) {
                let distance = f64::from(a.distance(*b));
                (sum, squares, largest) =
                    (sum + distance, squares + distance * distance, largest.max(distance));
                count += 1;
            }
        }
        let found = ((squares / f64::from(count)).sqrt(), sum / f64::from(count), largest);
        assert!((found.0 - rmse).abs() < 0.002 && (found.1 - mean).abs() < 0.002, "{file}: {found:?}");
        assert!(found.2 < most * 1.02, "{file}: {found:?}");
    }
}

#[test]
fn one_door_reads_meshes_skins_and_bones() {
    let Some(data) = data() else { return };
    let Scene::Model(model) = understudy_io::open(&data.join("Bone_Skin.fbx")).expect("a skin") else {
        panic!("a model")
    };
    let (skeleton, skin) = model.bound().expect("bones and weights");
    assert_eq!((model.mesh.vertex_count(), skin.vertex_count()), (754, 754));
    for vertex in 0..754 {
        let sum: f32 = skin.row(vertex).map(|(_, weight)| weight).sum();
        assert!((sum - 1.0).abs() < 1e-5);
    }
    assert!(
        skeleton.len() >= 2 && model.conversion.reason.contains("the file says so"),
        "{}",
        model.conversion
    );
    let geometry = fbx::read(&data.join("Bone_Geom.fbx")).expect("a mesh");
    assert!(geometry.skin.is_none() && geometry.mesh.has_uvs(), "a mesh that nothing moves");
    let bones = fbx::read_bones(&data.join("Bone_All.fbx"), &fbx::FbxOptions::default()).expect("bones");
    assert!(bones.skeleton.len() >= 2 && !bones.clips.is_empty());
    assert_eq!(bones.clips[0].bones[0].track.times()[0], 0.0, "clips begin at zero");
}

#[test]
fn a_text_file_with_a_skin_and_a_shape_is_what_it_says() {
    let model = fbx::parse(include_bytes!("fbx_support/lift.fbx")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((model.mesh.vertex_count(), model.mesh.faces().len()), (4, 1));
    let names: Vec<&str> = model.shapes.iter().flat_map(|s| s.shapes()).map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["bulge"]);
    // Metres and Z-up in the file: (1, 1, 0) stands at (100, 0, -100).
    assert!(
        (model.mesh.positions()[2] - Vec3::new(100.0, 0.0, -100.0)).length() < 1e-3,
        "{:?}",
        model.mesh.positions()
    );
    assert_eq!((model.conversion.scale, model.conversion.up), (100.0, understudy_io::Axis::Z));
    let clip = &model.clips[0];
    // In half a second the bone goes up by one metre and the shape comes in by a half.
    let start = model.evaluate_at(clip, 0.0);
    let middle = model.evaluate_at(clip, 0.25);
    let end = model.evaluate_at(clip, 0.5);
    assert!((end[0] - start[0] - Vec3::Y * 100.0).length() < 1e-2, "{} {}", start[0], end[0]);
    assert!((middle[0] - start[0] - Vec3::Y * 50.0).length() < 1e-2, "{}", middle[0]);
    // The shape lifts vertex 1 by two metres along the file's Z at full weight.
    assert!((end[1] - start[1] - Vec3::Y * 200.0).length() < 1e-2, "{} {}", start[1], end[1]);
}

#[test]
fn what_is_no_fbx_is_said() {
    for bytes in [
        b"".as_slice(),
        b"v 0 0 0\nf 1 1 1\n",
        b"Kaydara FBX Binary  \0\x1a\0",
        b"; FBX 7.4.0 project file\n",
    ] {
        let error = fbx::parse(bytes).expect_err("no scene").to_string();
        assert!(!error.is_empty() && !error.contains('\n'), "{error}");
    }
}
