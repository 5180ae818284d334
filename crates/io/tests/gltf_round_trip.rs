//! What is written reads back: the same topology, the same bytes when saved again, and a deformation
//! within a hundredth of a millimetre.

mod gltf_support;

use gltf_support::{Character, Size, furthest};
use proptest::prelude::*;
use understudy_core::{
    Affine3A, Bone, Face, JointClip, JointTransform, MeshParts, Quat, Skeleton, SkinWeights, Vec3,
};
use understudy_io::Model;
use understudy_io::gltf::{GltfScene, SceneError, parse, to_glb_bytes};

/// 0.01 mm.
const LIMIT_CM: f32 = 1e-3;

fn read(bytes: &[u8]) -> Model {
    parse(bytes, &|uri| Err(format!("asked for '{uri}'"))).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_full_size_character_deforms_as_before() {
    let character = Character::new(Size::FULL, 1);
    assert!(character.mesh.vertex_count() >= 13_000 && character.skin.max_influences() == 8);
    let bytes = to_glb_bytes(&character.scene()).expect("a valid scene");
    let asset = read(&bytes);
    assert_eq!(asset.warnings, [""; 0]);
    assert_eq!(asset.mesh.topology_hash(), character.mesh.topology_hash());
    assert_eq!(asset.mesh.segments(), character.mesh.segments());
    assert_eq!(asset.skeleton.as_ref().expect("bones").bones().len(), character.skeleton.bones().len());
    assert_eq!(asset.colours.as_deref(), Some(character.colours.as_slice()));
    let shapes = asset.shapes.as_ref().expect("shapes");
    assert_eq!((shapes.shapes().len(), shapes.correctives().len()), (60, 24));
    let mut worst = 0.0f32;
    for (before, after) in character.clips.iter().zip(&asset.clips) {
        assert_eq!(
            (&before.name, before.rate, before.poses.len()),
            (&after.name, after.rate, after.own_frames())
        );
        for frame in 0..before.poses.len() {
            worst = worst.max(furthest(&character.evaluate(before, frame), &asset.evaluate(after, frame)));
        }
    }
    let moved = furthest(character.mesh.positions(), &character.evaluate(&character.clips[0], 0));
    assert!(moved > 10.0, "the poses move the character: {moved} cm");
    assert!(worst < LIMIT_CM, "{worst} cm");
    eprintln!("{} bytes, furthest vertex {worst} cm off", bytes.len());
    assert!(to_glb_bytes(&asset.scene("character")).expect("a valid scene") == bytes, "saved again");
}

/// Other programs weigh correctives by themselves: the animated weights in the file must be products.
#[test]
fn correctives_are_targets_with_product_weights() {
    let character = Character::new(Size::SMALL, 2);
    let mut bytes = to_glb_bytes(&character.scene()).expect("a valid scene");
    // Without our notes the correctives are shapes like any other.
    let note = b"\"correctives\"";
    let at = bytes.windows(note.len()).position(|window| window == note).expect("the note");
    bytes[at + 1..at + 4].copy_from_slice(b"xxx");
    let plain = read(&bytes);
    let shapes = plain.shapes.as_ref().expect("shapes");
    assert_eq!((shapes.shapes().len(), shapes.correctives().len()), (5, 0));
    for (before, after) in character.clips.iter().zip(&plain.clips) {
        for frame in 0..before.poses.len() {
            let off = furthest(&character.evaluate(before, frame), &plain.evaluate(after, frame));
            assert!(off < LIMIT_CM, "{off} cm");
        }
    }
}

#[test]
fn shapes_without_bones_and_bones_without_shapes() {
    let character = Character::new(Size::SMALL, 3);
    let rest_weights = [0.25, 0.0, 0.5];
    let mut clips = character.clips.clone();
    clips.iter_mut().for_each(|clip| clip.poses.clear());
    let face = GltfScene { skin: None, clips: &clips, rest_weights: &rest_weights, ..character.scene() };
    let asset = read(&to_glb_bytes(&face).expect("a valid scene"));
    assert_eq!((asset.skeleton.as_ref().expect("bones").bones().len(), asset.joints.len()), (1, 0));
    assert_eq!(asset.rest_weights, rest_weights);
    let mut wanted = character.mesh.positions().to_vec();
    character.shapes.evaluate(&clips[1].shape_weights[2], &mut wanted);
    assert!(furthest(&asset.evaluate(&asset.clips[1], 2), &wanted) < LIMIT_CM);

    clips.clone_from(&character.clips);
    clips.iter_mut().for_each(|clip| clip.shape_weights.clear());
    let body = GltfScene { shapes: None, clips: &clips, colours: None, ..character.scene() };
    let asset = read(&to_glb_bytes(&body).expect("a valid scene"));
    assert!(asset.shapes.is_none() && asset.colours.is_none() && asset.clips[0].weights.is_empty());
    assert_eq!(asset.joints.len(), 5);
}

#[test]
fn several_roots_and_another_bind_pose_survive() {
    let rest = |x: f32| JointTransform {
        rotation: Quat::from_rotation_z(x),
        translation: Vec3::X * x,
        scale: Vec3::ONE,
    };
    let bone = |name: &str, x: f32| Bone { name: name.into(), parent: None, rest: rest(x) };
    let skeleton = Skeleton::new(vec![bone("left", 3.0), bone("right", -4.0)]).expect("a forest");
    let bind: Vec<Affine3A> = [1.0, 2.0].map(|t| Affine3A::from_translation(Vec3::Y * t)).to_vec();
    let skeleton = skeleton.with_inverse_bind(bind).expect("invertible");
    let mesh = MeshParts {
        positions: vec![Vec3::ZERO, Vec3::X, Vec3::Y, Vec3::ONE],
        faces: vec![Face::triangle(0, 1, 2)],
        ..MeshParts::default()
    };
    let mesh = mesh.build().expect("a triangle and a loose vertex");
    let rows = [vec![(0, 1.0)], vec![(1, 1.0)], vec![(0, 0.5), (1, 0.5)], vec![(1, 1.0)]];
    let skin = SkinWeights::from_rows(&rows, 2).expect("valid rows");
    let still = JointClip {
        name: "still".into(),
        rate: 12.0,
        poses: vec![skeleton.rest_pose(); 7],
        shape_weights: vec![],
    };
    let clips = [still.clone(), still];
    let scene = GltfScene { skin: Some((&skeleton, &skin)), clips: &clips, ..GltfScene::new("pair", &mesh) };
    let bytes = to_glb_bytes(&scene).expect("a valid scene");
    let asset = read(&bytes);
    assert_eq!(asset.mesh, mesh);
    assert_eq!(asset.skeleton, Some(skeleton));
    assert_eq!(asset.skin, Some(skin));
    let frames = asset.frames(&asset.clips[0], None).expect("its own rate");
    assert_eq!(frames.poses, clips[0].poses);
    assert_eq!((asset.clips[0].rate, asset.clips[1].name.as_str()), (12.0, "still_2"));
    assert!(to_glb_bytes(&asset.scene("pair")).expect("a valid scene") == bytes, "saved again");
}

#[test]
fn more_than_256_bones_take_wider_joints() {
    let size = Size { bones: 300, shapes: 1, correctives: 0, ..Size::SMALL };
    let character = Character::new(size, 4);
    let asset = read(&to_glb_bytes(&character.scene()).expect("a valid scene"));
    let off = furthest(&character.evaluate(&character.clips[0], 1), &asset.evaluate(&asset.clips[0], 1));
    assert!(off < LIMIT_CM, "{off} cm");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let character = Character::new(Size::SMALL, 5);
    let refused = |scene: GltfScene<'_>| to_glb_bytes(&scene).expect_err("a bad scene");
    let other = Character::new(Size { rings: 7, ..Size::SMALL }, 5);
    let error = refused(GltfScene { shapes: Some(&other.shapes), ..character.scene() });
    assert!(matches!(error, SceneError::Count { .. }), "{error}");
    let error = refused(GltfScene { rest_weights: &[1.0], ..character.scene() });
    assert!(matches!(error, SceneError::Count { got: 1, want: 3, .. }), "{error}");
    let mut clips = character.clips.clone();
    clips[0].shape_weights[1][2] = f32::NAN;
    let error = refused(GltfScene { clips: &clips, ..character.scene() });
    assert_eq!(error.to_string(), "clip 'walk': shape weights in frame 1: number 2 is not finite");
    clips[0] = JointClip { rate: 0.0, ..character.clips[0].clone() };
    assert!(matches!(refused(GltfScene { clips: &clips, ..character.scene() }), SceneError::Number { .. }));
    let colours = vec![Vec3::splat(1.5); character.mesh.vertex_count()];
    let error = refused(GltfScene { colours: Some(&colours), ..character.scene() });
    assert!(error.to_string().contains("vertex 0"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Save–load–save is the identity, and the same scene gives the same bytes.
    #[test]
    fn saving_again_changes_nothing(
        seed in any::<u64>(), rings in 2usize..9, sides in 3usize..9, bones in 1usize..12,
        influences in 1usize..10, shapes in 1usize..7, correctives in 0usize..5, frames in 1usize..6,
    ) {
        let correctives = if shapes < 4 { 0 } else { correctives };
        let size = Size { rings, sides, bones, influences, shapes, correctives, frames };
        let character = Character::new(size, seed);
        let first = to_glb_bytes(&character.scene()).expect("a valid scene");
        prop_assert!(to_glb_bytes(&character.scene()).expect("a valid scene") == first);
        let asset = read(&first);
        let second = to_glb_bytes(&asset.scene("character")).expect("a valid scene");
        prop_assert!(first == second);
        prop_assert!(read(&second) == asset);
    }
}

/// Keys of weights go out as they are, and meet on common keys where a file has several rows of them.
#[test]
fn weights_keep_their_splines_and_meet_where_they_differ() {
    use understudy_core::{KeyedClip, Track, TrackInterpolation, WeightTrack};
    let size = Size { correctives: 0, ..Size::SMALL };
    let character = Character::new(size, 5);
    let track = |times: &[f32], width: usize, kind: TrackInterpolation| {
        let copies = if kind == TrackInterpolation::CubicSpline { 3 } else { 1 };
        let values = (0..copies * width * times.len()).map(|i| (i as f32).sin()).collect();
        Track::new(times.to_vec(), values, width, kind).expect("a valid track")
    };
    let weights = |shapes: &[usize], track: Track| WeightTrack {
        shapes: shapes.iter().map(|shape| Some(*shape)).collect(),
        track,
    };
    let (linear, spline) = (TrackInterpolation::Linear, TrackInterpolation::CubicSpline);
    let cases = [
        vec![weights(&[2, 0], track(&[0.0, 0.3, 1.0], 2, spline))],
        vec![
            weights(&[0], track(&[0.0, 1.0], 1, linear)),
            weights(&[1], track(&[0.0, 0.37, 0.8], 1, linear)),
        ],
        vec![weights(&[0], track(&[0.0, 0.5], 1, linear)), weights(&[1], track(&[0.0, 0.5], 1, spline))],
    ];
    for (case, weights) in cases.into_iter().enumerate() {
        let clips = [KeyedClip { name: "keys".into(), rate: 10.0, bones: Vec::new(), weights }];
        let scene = GltfScene { clips: &[], keyed_clips: &clips, ..character.scene() };
        let asset = read(&to_glb_bytes(&scene).expect("a valid scene"));
        let (before, after) = (&clips[0], &asset.clips[0]);
        // Splines beside lines are kept on frames only.
        let moments: Vec<f64> = if case == 2 {
            (0..=5).map(|i| f64::from(i) * 0.1).collect()
        } else {
            vec![0.0, 0.11, 0.45, 0.9]
        };
        for time in moments {
            let (a, b) = (before.weights_at(time, &[0.0; 3]), after.weights_at(time, &asset.rest_weights));
            assert!(
                a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5),
                "case {case}, {time} s: {a:?} {b:?}"
            );
        }
        assert_eq!(after.rate, 10.0);
    }
}
