//! USD: what we write reads back as the same model, and layers as exporters write them are what they say.

use understudy_core::{
    BlendshapeRig, Bone, BoneTrack, Face, JointProperty, JointTransform, KeyedClip, MeshParts, Quat, Shape,
    Skeleton, SkinWeights, SparseDeltas, Track, TrackInterpolation, Vec2, Vec3, WeightTrack,
};
use understudy_io::{Conversion, Model, usd};

/// Five vertices, two bones of which one is bound off its rest, two shapes, an animation of both.
fn model() -> Model {
    let faces = vec![Face::quad(0, 1, 2, 3), Face::triangle(2, 3, 4)];
    let positions: Vec<Vec3> =
        (0..5).map(|i| Vec3::new((i % 2) as f32, i as f32 * 0.5, (i * i) as f32 * 0.1)).collect();
    let mesh = MeshParts {
        positions: positions.clone(),
        uvs: (0..5).map(|i| Vec2::new(i as f32 * 0.2, 0.5)).collect(),
        face_uvs: faces.clone(),
        faces,
        ..MeshParts::default()
    };
    let bone = |name: &str, parent, y: f32| Bone {
        name: name.into(),
        parent,
        rest: JointTransform {
            rotation: Quat::from_rotation_z(0.3),
            ..JointTransform::from_translation(Vec3::new(0.0, y, 1.0))
        },
    };
    let skeleton =
        Skeleton::new(vec![bone("hip.L", None, 80.0), bone("knee", Some(0), 40.0)]).expect("a tree");
    let mut binds = skeleton.inverse_bind().to_vec();
    binds[1].translation.x += 0.25;
    let skeleton = skeleton.with_inverse_bind(binds).expect("finite");
    let skin = SkinWeights::from_rows(&vec![vec![(0, 0.25), (1, 0.75)]; 5], 2).expect("convex rows");
    let shape = |name: &str, vertex: u32| Shape {
        name: name.into(),
        deltas: SparseDeltas { vertices: vec![vertex], deltas: vec![Vec3::new(0.1, -0.2, 0.3)] },
    };
    let shapes = BlendshapeRig::new(positions, vec![shape("jaw Open", 0), shape("smile", 2)], Vec::new());
    let times: Vec<f32> = vec![0.0, 0.5, 1.0];
    let turn: Vec<f32> =
        [0.3f32, 1.0, -0.4].iter().flat_map(|a| Quat::from_rotation_x(*a).to_array()).collect();
    let rotation =
        Track::rotations(times.clone(), turn, TrackInterpolation::Linear).expect("unit quaternions");
    let weights = Track::new(times, vec![0.0, 0.5, 1.0, 0.25, 0.5, 0.0], 2, TrackInterpolation::Linear);
    let clip = KeyedClip {
        name: "kick".into(),
        rate: 24.0,
        bones: vec![BoneTrack { bone: 1, property: JointProperty::Rotation, track: rotation }],
        weights: vec![WeightTrack { shapes: vec![Some(0), Some(1)], track: weights.expect("ascending") }],
    };
    Model {
        joints: vec![0, 1],
        skeleton: Some(skeleton),
        skin: Some(skin),
        shapes: Some(shapes.expect("valid shapes")),
        rest_weights: vec![0.0; 2],
        clips: vec![clip],
        ..Model::still(mesh.build().expect("a valid mesh"), Conversion::none("made in a test"))
    }
}

#[test]
fn what_is_written_reads_back_as_the_same_model() {
    let model = model();
    let text = usd::to_usda_string(&model, "my hero").expect("no correctives");
    let back = usd::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(back.mesh.positions(), model.mesh.positions());
    assert_eq!((back.mesh.faces(), back.mesh.face_uvs()), (model.mesh.faces(), model.mesh.face_uvs()));
    assert_eq!(back.mesh.uvs(), model.mesh.uvs());
    let names = |model: &Model| -> Vec<String> {
        let bones = model.skeleton.iter().flat_map(|s| s.bones()).map(|bone| bone.name.clone());
        bones.chain(model.shapes.iter().flat_map(|s| s.shapes()).map(|shape| shape.name.clone())).collect()
    };
    assert_eq!(names(&back), names(&model));
    assert_eq!((back.warnings.len(), back.clips.len(), back.clips[0].name.as_str()), (0, 1, "kick"));
    for frame in [0, 7, 12, 24] {
        let (a, b) = (model.evaluate(&model.clips[0], frame), back.evaluate(&back.clips[0], frame));
        for (a, b) in a.iter().zip(&b) {
            assert!(a.distance(*b) < 1e-4, "frame {frame}: {a} {b}");
        }
    }
    // Written once more, it is the same text but for the rounding of rotations.
    same_but_for_rounding(&usd::to_usda_string(&back, "my hero").expect("the same"), &text);
}

/// The same words, and numbers that differ by single-precision rounding alone.
fn same_but_for_rounding(a: &str, b: &str) {
    let words = |text: &str| -> Vec<String> {
        let word = |c: char| c.is_whitespace() || "()[],".contains(c);
        text.split(word).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (a, b) = (words(a), words(b));
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(x), Ok(y)) => assert!((x - y).abs() <= 1e-5 + 1e-6 * x.abs(), "{x} {y}"),
            _ => assert_eq!(a, b),
        }
    }
}

#[test]
fn real_models_keep_their_motion() {
    let Some(data) = understudy_testkit::shared_data() else { return };
    let model = understudy_io::gltf::read(&data.join("gltf/Fox/Fox.glb")).expect("a fox");
    let text = usd::to_usda_string(&model, "fox").expect("no correctives");
    let back = usd::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(back.clips.len(), model.clips.len());
    // Rotations are stored as quaternions in single precision.
    let (low, high) = model.mesh.bounds();
    let tolerance = 1e-6 * low.distance(high);
    for clip in &model.clips {
        let other = back.find_clip(&clip.name).expect("the same clips");
        for frame in [0, 5, 11] {
            let (a, b) =
                (model.evaluate(clip, frame), back.evaluate_at(other, frame as f64 / f64::from(clip.rate)));
            let most = a.iter().zip(&b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            assert!(most < tolerance, "{}: frame {frame}: {most} cm, not {tolerance}", clip.name);
        }
    }
}

/// As Blender writes it: metres, Z-up, an animated skeleton below a turned Xform.
const LAYER: &str = include_str!("usd_support/armature.usda");

#[test]
fn a_layer_of_an_exporter_is_what_it_says() {
    let model = usd::parse(LAYER.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(model.mesh.segments().names, ["Body"]);
    assert_eq!(model.conversion.scale, 100.0);
    // Bound two metres up, in a root one metre up: Z of the file is Y here, Y of the file is −Z.
    assert!((model.mesh.positions()[2] - Vec3::new(100.0, 300.0, -100.0)).length() < 1e-3);
    let clip = &model.clips[0];
    let at = |seconds: f64| model.evaluate_at(clip, seconds);
    for (vertex, rest) in model.mesh.positions().iter().enumerate() {
        assert!((at(0.0)[vertex] - *rest).length() < 1e-3, "vertex {vertex}");
    }
    // The hip rises by three metres, the knee by one more, the shape lifts vertex 1 by a half.
    let rises: Vec<f32> = at(0.5).iter().zip(model.mesh.positions()).map(|(a, b)| (*a - *b).y).collect();
    for (rise, want) in rises.iter().zip([300.0, 350.0, 400.0, 400.0]) {
        assert!((rise - want).abs() < 1e-2, "{rises:?}");
    }
    assert_eq!(model.skeleton.as_ref().map(|s| s.len()), Some(3), "the skeleton's own place is a bone");
}

#[test]
fn bad_layers_are_named() {
    let error = |text: &str| usd::parse(text.as_bytes()).expect_err("no model").to_string();
    assert!(error("hello").contains("#usda"));
    assert!(error("#usda 1.0\n").contains("no mesh"));
    assert!(error("PK\u{3}\u{4}").contains("usdz"));
    assert!(
        error(&format!("#usda 1.0\ndef Mesh \"a\" {{ int[] x = {}", "[".repeat(100_000))).contains("nested")
    );
    for (from, to, word) in [
        ("[0, 1, 2, 3]", "[0, 1, 2, 7]", "names point 7"),
        ("= [4]", "= [5]", "4 corners"),
        ("[0, 0, 1, 1]", "[0, 0, 1, 9]", "joint 9"),
        ("pointIndices = [1]", "pointIndices = [4]", "point 4"),
        ("[1, 1, 1, 1]", "[1, 1, 1]", "weights"),
    ] {
        let found = error(&LAYER.replacen(from, to, 1));
        assert!(found.contains(word), "{found}");
    }
    let mut model = model();
    let shapes = model.shapes.take().expect("shapes");
    let both = understudy_core::Corrective { shapes: vec![0, 1], deltas: shapes.shapes()[0].deltas.clone() };
    model.shapes = BlendshapeRig::new(shapes.neutral().to_vec(), shapes.shapes().to_vec(), vec![both]).ok();
    assert!(usd::to_usda_string(&model, "hero").expect_err("correctives").contains("correctives"));
}

/// The same layer as Blender's USD library packs it.
#[test]
fn the_binary_form_says_what_the_text_says() {
    let packed = usd::parse(include_bytes!("../../../fuzz/corpus/usd/good-armature.usdc"))
        .unwrap_or_else(|error| panic!("{error}"));
    let text = usd::parse(include_bytes!("../../../fuzz/corpus/usd/good-armature.usda"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((packed.mesh.faces(), packed.mesh.uvs()), (text.mesh.faces(), text.mesh.uvs()));
    assert_eq!((packed.clips.len(), &packed.warnings), (1, &text.warnings));
    for seconds in [0.0, 0.25, 0.5] {
        let (a, b) =
            (packed.evaluate_at(&packed.clips[0], seconds), text.evaluate_at(&text.clips[0], seconds));
        for (a, b) in a.iter().zip(&b) {
            assert!(a.distance(*b) < 1e-3, "{seconds} s: {a} {b}");
        }
    }
}
