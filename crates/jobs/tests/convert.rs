//! Files that `convert` writes deform as their sources do when they are read back.

use std::path::Path;
use understudy_core::{BlendshapeRig, Corrective, Face, MeshParts, Random, Shape, SparseDeltas, Vec3};
use understudy_io::gltf;
use understudy_jobs::convert::{ConvertConfig, ConvertReport, convert};
use understudy_jobs::rigs::open;
use understudy_jobs::{JobError, Silent};
use understudy_rigs::RigPose;
use understudy_testkit::shared_data;

/// A hundredth of a millimetre.
const EXACT_CM: f32 = 1e-3;

fn run(input: &str, output: &Path, more: ConvertConfig) -> Result<ConvertReport, JobError> {
    convert(&ConvertConfig { input: input.into(), output: output.into(), ..more }, &Silent)
}

fn apart(a: &[Vec3], b: &[Vec3]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max)
}

/// Every frame of a baked file against the rig itself.
fn check_bake(name: &str, clip: &str, rate: f32, tolerance_mm: f32) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("baked.glb");
    let config =
        ConvertConfig { bake: Some(clip.into()), tolerance_mm, rate: Some(rate), ..ConvertConfig::default() };
    let report = run(name, &path, config).expect("baked").baked.expect("a bake");
    assert!(report.max_error_mm <= tolerance_mm);

    let rig = open(name, &Silent).expect("it opens").rig;
    let asset = gltf::read(&path).expect("a good file");
    assert_eq!(asset.mesh.topology_hash(), rig.mesh().topology_hash(), "quads and seams come back");
    let sampled = rig.find_clip(clip).expect("there").sample(rig.specs(), rate).expect("in range");
    let take = asset.find_clip(clip).expect("there");
    assert_eq!((take.own_frames(), take.rate), (sampled.frames.len(), rate));
    let mut pose = RigPose::default();
    let mut worst = 0.0f32;
    for (frame, controls) in sampled.frames.iter().enumerate() {
        rig.evaluate(controls, &mut pose).expect("finite");
        worst = worst.max(apart(&pose.vertices, &asset.evaluate(take, frame)));
    }
    eprintln!(
        "{name}, {clip}: {} targets for {} frames, {:.4} mm promised, {:.4} mm read back",
        report.targets,
        report.frames,
        report.max_error_mm,
        worst * 10.0
    );
    assert!(worst * 10.0 <= tolerance_mm + 10.0 * EXACT_CM, "{worst} cm");
}

#[test]
fn baked_clips_come_back_within_the_tolerance() {
    check_bake("mira", "roar", 12.0, 0.1);
    check_bake("rook", "kick", 12.0, 0.1);
    check_bake("mira", "blink", 24.0, 1.0);
}

/// A made-up face: correctives up to four shapes, quads and a triangle.
fn shapes_file(folder: &Path) -> (std::path::PathBuf, BlendshapeRig) {
    let mut random = Random::new(5);
    let positions: Vec<Vec3> = (0..60)
        .map(|i| Vec3::new((i % 10) as f32, (i / 10) as f32, random.normal() as f32 * 0.2) * 2.0)
        .collect();
    let quad = |i: u32| Face::quad(i, i + 1, i + 11, i + 10);
    let mut faces: Vec<Face> = (0..50).filter(|i| i % 10 != 9).map(quad).collect();
    faces.push(Face::triangle(0, 10, 1));
    let mut deltas = |count: usize| -> SparseDeltas {
        let vertices: Vec<u32> = (0..60).filter(|_| random.unit() < count as f64 / 60.0).collect();
        let deltas = vertices
            .iter()
            .map(|_| Vec3::from_array(std::array::from_fn(|_| random.normal() as f32)))
            .collect();
        SparseDeltas { vertices, deltas }
    };
    let names = ["browUp", "jawOpen", "smile", "puff", "blink"];
    let shapes = names.map(|name| Shape { name: name.into(), deltas: deltas(40) }).to_vec();
    let lists: [&[u32]; 4] = [&[0, 1], &[1, 2], &[0, 2, 3], &[1, 2, 3, 4]];
    let correctives = lists.map(|list| Corrective { shapes: list.to_vec(), deltas: deltas(20) }).to_vec();
    let rig = BlendshapeRig::new(positions.clone(), shapes, correctives).expect("valid shapes");
    let mesh = MeshParts { positions, faces, ..MeshParts::default() }.build().expect("valid mesh");
    let path = folder.join("face.npz");
    understudy_io::blendshape_npz::write(&path, &mesh, &rig).expect("writable");
    (path, rig)
}

#[test]
fn blendshape_rigs_come_back_exactly() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (npz, shapes) = shapes_file(folder.path());
    let glb = folder.path().join("face.glb");
    run(npz.to_str().expect("text"), &glb, ConvertConfig::default()).expect("converted");
    let asset = gltf::read(&glb).expect("a good file");
    let again = asset.shapes.as_ref().expect("morph targets");
    assert_eq!((again.shapes().len(), again.correctives().len()), (5, 4));
    let mut random = Random::new(9);
    for _ in 0..20 {
        let weights: Vec<f32> = (0..5).map(|_| random.unit() as f32).collect();
        let mut truth = vec![Vec3::ZERO; 60];
        shapes.evaluate(&weights, &mut truth);
        let found = asset.deform(&asset.rest_pose(), &weights).expect("the rest pose fits");
        assert!(apart(&truth, &found) <= EXACT_CM);
    }
    // And back to an archive: the same shapes again.
    let back = folder.path().join("back.npz");
    run(glb.to_str().expect("text"), &back, ConvertConfig::default()).expect("converted");
    let file = understudy_io::blendshape_npz::read(&back, None).expect("a good file");
    assert_eq!(file.rig.shapes().len(), 5);
    for (a, b) in shapes.shapes().iter().zip(file.rig.shapes()) {
        assert_eq!(a.name, b.name);
        assert!(apart(&a.deltas.to_dense(60), &b.deltas.to_dense(60)) <= EXACT_CM);
    }
}

#[test]
fn real_files_come_back_exactly() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for file in ["gltf/RobotExpressive.glb", "kaykit/Rogue.glb", "gltf/SimpleMorph/SimpleMorph.gltf"] {
        let input = data.join(file);
        let output = folder.path().join("again.glb");
        run(input.to_str().expect("text"), &output, ConvertConfig::default()).expect("converted");
        let (before, after) = (gltf::read(&input).expect("good"), gltf::read(&output).expect("good"));
        assert_eq!(before.clips.len(), after.clips.len(), "{file}");
        for (a, b) in before.clips.iter().zip(&after.clips).take(8) {
            for frame in (0..a.own_frames()).step_by(5) {
                let worst = apart(&before.evaluate(a, frame), &after.evaluate(b, frame));
                assert!(worst <= EXACT_CM, "{file}, '{}', frame {frame}: {worst} cm", a.name);
            }
        }
    }
}

#[test]
fn motion_survives_the_way_through_a_glb() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (glb, bvh) = (folder.path().join("run.glb"), folder.path().join("run.bvh"));
    let input = data.join("mocap/35_17.bvh");
    run(input.to_str().expect("text"), &glb, ConvertConfig::default()).expect("converted");
    run(glb.to_str().expect("text"), &bvh, ConvertConfig::default()).expect("converted");
    let read = |path: &Path| {
        understudy_io::bvh::read(path, understudy_io::bvh::BvhOptions::default()).expect("good")
    };
    let first = read(&input);
    // The second file is in centimetres, and says nothing about it; only the caller can.
    let options = understudy_io::bvh::BvhOptions { cm_per_unit: Some(1.0), ..Default::default() };
    let second = understudy_io::bvh::read(&bvh, options).expect("good");
    assert_eq!(first.clip.poses.len(), second.clip.poses.len());
    let (mut a, mut b) = Default::default();
    for frame in (0..first.clip.poses.len()).step_by(20) {
        first.skeleton.forward(&first.clip.poses[frame], &mut a).expect("fits");
        second.skeleton.forward(&second.clip.poses[frame], &mut b).expect("fits");
        for (bone, place) in first.skeleton.bones().iter().zip(&a.0) {
            let other = second.skeleton.find(&bone.name).expect("the same bones");
            let distance = place.translation.distance(b.0[other].translation);
            assert!(distance < 0.01, "frame {frame}, '{}': {distance} cm", bone.name);
        }
    }
}

#[test]
fn what_cannot_be_converted_is_said_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = |name: &str| folder.path().join(name);
    for (input, output) in [("rook", "a.glb"), ("mira", "a.npz"), ("rook", "a.bvh"), ("mira", "a.csv")] {
        let error = run(input, &out(output), ConvertConfig::default()).expect_err("refused");
        assert!(error.is_bad_input() && error.to_string().starts_with(input), "{error}");
    }
    let bake = ConvertConfig { bake: Some("dance".into()), ..ConvertConfig::default() };
    let error = run("mira", &out("a.glb"), bake).expect_err("no such clip").to_string();
    assert!(error.contains("dance") && error.contains("no such clip") && error.contains("info"), "{error}");
    let fine = ConvertConfig {
        bake: Some("blink".into()),
        tolerance_mm: 1e-7,
        rate: Some(5.0),
        ..ConvertConfig::default()
    };
    let error = run("mira", &out("a.glb"), fine).expect_err("below rounding").to_string();
    assert!(error.contains("tolerance"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}

/// JSON and binary chunk of a GLB.
fn chunks(path: &Path) -> (serde_json::Value, Vec<u8>) {
    let bytes = std::fs::read(path).expect("a file");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let end = 20 + word(12);
    let json = serde_json::from_slice(&bytes[20..end]).expect("JSON");
    (json, bytes[end + 8..].to_vec())
}

/// The bytes of every image.
fn images((json, bytes): &(serde_json::Value, Vec<u8>)) -> Vec<Vec<u8>> {
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0) as usize;
    let image = |image: &serde_json::Value| {
        let view = &json["bufferViews"][number(&image["bufferView"])];
        bytes[number(&view["byteOffset"])..][..number(&view["byteLength"])].to_vec()
    };
    json["images"].as_array().map(|list| list.iter().map(image).collect()).unwrap_or_default()
}

/// The material of every triangle, in order.
fn triangle_materials((json, _): &(serde_json::Value, Vec<u8>)) -> Vec<Option<u64>> {
    let mut out = Vec::new();
    let nodes = json["nodes"].as_array().expect("nodes").iter();
    for mesh in nodes.filter_map(|node| node["mesh"].as_u64()) {
        for primitive in json["meshes"][mesh as usize]["primitives"].as_array().expect("primitives") {
            let count = match primitive["indices"].as_u64() {
                Some(indices) => json["accessors"][indices as usize]["count"].as_u64(),
                None => {
                    let position = primitive["attributes"]["POSITION"].as_u64().expect("positions");
                    json["accessors"][position as usize]["count"].as_u64()
                }
            };
            let triangles = count.expect("a count") as usize / 3;
            out.extend(std::iter::repeat_n(primitive["material"].as_u64(), triangles));
        }
    }
    out
}

#[test]
fn materials_textures_and_images_survive_unchanged() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for file in [
        "gltf/Fox/Fox.glb",
        "gltf/MorphStressTest/MorphStressTest.glb",
        "gltf/RobotExpressive.glb",
        "kaykit/Knight.glb",
    ] {
        let input = data.join(file);
        let (first, second) = (folder.path().join("first.glb"), folder.path().join("second.glb"));
        run(input.to_str().expect("text"), &first, ConvertConfig::default()).expect("converted");
        let (before, after) = (chunks(&input), chunks(&first));
        for part in ["materials", "textures", "samplers"] {
            assert_eq!(before.0[part], after.0[part], "{file}: {part}");
        }
        assert!(!before.0["materials"].as_array().expect("materials").is_empty());
        assert!(images(&before) == images(&after), "{file}: images");
        // Triangles without area are dropped; the others keep their material and order.
        let (mut old, new) = (triangle_materials(&before), triangle_materials(&after));
        if file.contains("Robot") {
            let count = |list: &[Option<u64>], material| list.iter().filter(|m| **m == material).count();
            assert!((0..3).all(|m| count(&old, Some(m)).abs_diff(count(&new, Some(m))) <= 3), "{file}");
            old.clear();
        }
        assert!(old.is_empty() || old == new, "{file}: materials of triangles");
        let attributes = &after.0["meshes"][0]["primitives"][0]["attributes"];
        let had = |name: &str| {
            let meshes = before.0["meshes"].as_array().expect("meshes").iter();
            let mut primitives = meshes.flat_map(|mesh| mesh["primitives"].as_array().expect("primitives"));
            primitives.any(|primitive| primitive["attributes"][name].is_u64())
        };
        for name in ["NORMAL", "TEXCOORD_0", "TEXCOORD_1", "TANGENT"].into_iter().filter(|name| had(name)) {
            assert!(attributes[name].is_u64(), "{file}: {name} is lost");
        }
        // Our own file is read as one mesh again, and a second save changes nothing.
        let (a, b) = (gltf::read(&input).expect("good"), gltf::read(&first).expect("good"));
        assert_eq!(a.mesh.topology_hash(), b.mesh.topology_hash(), "{file}");
        run(first.to_str().expect("text"), &second, ConvertConfig::default()).expect("converted");
        assert_eq!(images(&chunks(&first)), images(&chunks(&second)));
        assert_eq!(chunks(&first).0["materials"], chunks(&second).0["materials"]);
        assert_eq!(triangle_materials(&chunks(&first)), triangle_materials(&chunks(&second)), "{file}");
    }
}

#[test]
fn what_a_file_cannot_keep_is_counted_in_one_warning() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let text = std::fs::read_to_string(data.join("gltf/SimpleSkin/SimpleSkin.gltf")).expect("a text");
    for entry in std::fs::read_dir(data.join("gltf/SimpleSkin")).expect("a folder").flatten() {
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("copied");
    }
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["images"] = serde_json::json!([{"uri": "missing.png"}]);
    json["textures"] = serde_json::json!([{"source": 0}]);
    json["materials"] = serde_json::json!([{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]);
    json["meshes"][0]["primitives"][0]["material"] = 0.into();
    let input = folder.path().join("look.gltf");
    std::fs::write(&input, json.to_string()).expect("writable");
    let output = folder.path().join("look.glb");
    let report = run(input.to_str().expect("text"), &output, ConvertConfig::default()).expect("converted");
    let said: Vec<&String> = report.notes.iter().filter(|note| note.contains("left out")).collect();
    assert_eq!(said.len(), 1, "{:?}", report.notes);
    assert!(said[0].contains("1 images that were not found, 1 materials, 1 textures"), "{said:?}");
    // With the image beside it, it goes into the file.
    std::fs::write(folder.path().join("missing.png"), b"a picture").expect("writable");
    let report = run(input.to_str().expect("text"), &output, ConvertConfig::default()).expect("converted");
    assert!(!report.notes.iter().any(|note| note.contains("left out")), "{:?}", report.notes);
    assert_eq!(images(&chunks(&output)), [b"a picture".to_vec()]);
    assert_eq!(chunks(&output).0["images"][0]["mimeType"], "image/png");
}
