//! The border as C sees it: what comes back for NULL, wrong lengths and damaged files, and that vertices are the run time's.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use understudy::*;
use understudy_runtime::{Pose, Twin, Vec3};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/runtime/tests/golden")).join(name)
}

fn load(name: &str) -> *mut UnderstudyTwin {
    let path = CString::new(golden(name).to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: a text that ends with NUL.
    unsafe { understudy_twin_load(path.as_ptr()) }
}

fn last_error() -> String {
    // SAFETY: it always leads to a text.
    unsafe { CStr::from_ptr(understudy_last_error()) }.to_string_lossy().into_owned()
}

#[test]
fn vertices_are_those_of_the_run_time() {
    let twin = load("face-v3.twin");
    assert!(!twin.is_null(), "{}", last_error());
    // SAFETY: live handles and arrays of the lengths that are given.
    unsafe {
        let (count, controls) = (understudy_twin_vertex_count(twin), understudy_twin_control_count(twin, 0));
        let mut ranges = vec![0.0; 3 * controls];
        assert_eq!(
            understudy_twin_control_ranges(twin, 0, ranges.as_mut_ptr(), ranges.len()),
            UnderstudyStatus::Ok
        );
        let pose: Vec<f32> = ranges.chunks(3).map(|range| 0.3 * range[0] + 0.7 * range[1]).collect();
        let player = understudy_player_new(twin, 2);
        // A player outlives its twin.
        understudy_twin_free(twin);
        let mut out = vec![0.0; 3 * count];
        let done = |poses, controls: &[f32], out: &mut [f32]| {
            understudy_pose_controls(
                player,
                controls.as_ptr(),
                controls.len(),
                poses,
                out.as_mut_ptr(),
                out.len(),
            )
        };
        assert_eq!(done(1, &pose, &mut out), UnderstudyStatus::Ok);
        let expected = Twin::parse(&std::fs::read(golden("face-v3.twin")).expect("a file")).expect("a twin");
        let mut vertices = vec![Vec3::ZERO; count];
        expected.player(1).pose(Pose::Controls(&pose), &mut vertices).expect("a pose");
        assert!(out.iter().eq(vertices.iter().flat_map(|vertex| vertex.as_ref())), "bit for bit");

        let mut crowd = vec![0.0; 6 * count];
        let both = [&pose[..], &pose[..]].concat();
        assert_eq!(done(2, &both, &mut crowd), UnderstudyStatus::Ok);
        assert!(crowd.iter().zip(out.iter().chain(&out)).all(|(a, b)| (a - b).abs() < 1e-4));
        assert_eq!(done(3, &both, &mut crowd), UnderstudyStatus::BadInput);
        assert_eq!(done(usize::MAX, &both, &mut crowd), UnderstudyStatus::BadInput);

        let mut normals = vec![0.0; 3 * count];
        let made = understudy_normals(player, out.as_ptr(), out.len(), normals.as_mut_ptr(), normals.len());
        assert_eq!(made, UnderstudyStatus::Ok);
        let mut slopes = vec![0.0; pose.len()];
        let made = understudy_gradient(
            player,
            pose.as_ptr(),
            pose.len(),
            normals.as_ptr(),
            normals.len(),
            slopes.as_mut_ptr(),
            slopes.len(),
        );
        assert_eq!(made, UnderstudyStatus::Ok);
        assert!(slopes.iter().any(|slope| *slope != 0.0));

        let mut short = vec![0.0; 3];
        assert_eq!(done(1, &pose, &mut short), UnderstudyStatus::BadInput);
        assert!(last_error().contains("expected"), "{}", last_error());
        let mut wrong = pose.clone();
        wrong[1] = f32::NAN;
        assert_eq!(done(1, &wrong, &mut out), UnderstudyStatus::BadInput);
        assert!(last_error().contains("entry 1 is not finite"), "{}", last_error());
        let overlapping =
            understudy_pose_controls(player, out.as_ptr(), pose.len(), 1, out.as_mut_ptr(), out.len());
        assert_eq!(overlapping, UnderstudyStatus::BadInput);
        assert_eq!(
            understudy_pose_controls(player, null(), pose.len(), 1, out.as_mut_ptr(), out.len()),
            UnderstudyStatus::Null
        );
        understudy_player_free(player);
    }
}

#[test]
fn bones_come_as_matrices_by_columns() {
    let twin = load("body-v3.twin");
    // SAFETY: live handles and arrays of the lengths that are given.
    unsafe {
        let bones = understudy_twin_bone_count(twin);
        assert!(bones > 0);
        assert!(!understudy_twin_bone_name(twin, bones - 1).is_null());
        assert!(understudy_twin_bone_name(twin, bones).is_null());
        assert!(understudy_twin_bone_parent(twin, 0) >= -1);
        assert_eq!(understudy_twin_bone_parent(twin, bones), -2);
        let mut rest = vec![0.0; 16 * bones];
        assert_eq!(understudy_twin_rest_bones(twin, rest.as_mut_ptr(), rest.len()), UnderstudyStatus::Ok);
        assert!(rest.chunks(16).all(|m| m[15] == 1.0 && m[3] == 0.0));
        let extras = vec![0.0; understudy_twin_control_count(twin, 1)];
        let player = understudy_player_new(twin, 1);
        let mut out = vec![0.0; 3 * understudy_twin_vertex_count(twin)];
        let mut pose = |bones: &[f32]| {
            understudy_pose_bones(
                player,
                bones.as_ptr(),
                bones.len(),
                extras.as_ptr(),
                extras.len(),
                1,
                out.as_mut_ptr(),
                out.len(),
            )
        };
        assert_eq!(pose(&rest), UnderstudyStatus::Ok);
        assert_eq!(pose(&rest[1..]), UnderstudyStatus::BadInput);
        assert_eq!(pose(&rest[16..]), UnderstudyStatus::BadInput);
        understudy_player_free(player);
        understudy_twin_free(twin);
    }
}

#[test]
fn what_is_wrong_is_told() {
    // SAFETY: NULL, and texts that end with NUL.
    unsafe {
        assert!(understudy_twin_load(null()).is_null());
        assert_eq!(last_error(), "path is NULL");
        assert!(understudy_twin_load(c"/nowhere/at.twin".as_ptr()).is_null());
        assert!(last_error().starts_with("/nowhere/at.twin: "), "{}", last_error());
        let bytes = std::fs::read(golden("face-v3.twin")).expect("a file");
        for end in [0, 7, 100, bytes.len() - 1] {
            assert!(understudy_twin_parse(bytes.as_ptr(), end).is_null(), "{end} bytes");
            assert!(!last_error().is_empty());
        }
        assert_eq!(understudy_twin_vertex_count(null()), 0);
        assert!(understudy_twin_describe(null()).is_null());
        assert!(understudy_player_new(null(), 1).is_null());
        assert!(understudy_ik_new(null()).is_null());
        understudy_twin_free(null_mut());
        understudy_player_free(null_mut());
        understudy_ik_free(null_mut());
        let twin = load("face-v3.twin");
        assert_eq!(understudy_twin_control_count(twin, 7), 0);
        assert!(last_error().contains("not 7"), "{}", last_error());
        assert!(understudy_ik_new(twin).is_null());
        assert!(last_error().contains("no points"), "{}", last_error());
        understudy_twin_free(twin);
    }
}

/// Bones of the golden body that hang on each other, called as limbs are.
const SPELLING: &CStr = c"{\"hand_L\": [\"bone1\", \"bone3\", \"bone6\"], \"torso\": \"bone0\"}";

#[test]
fn limbs_move_bones_as_the_run_time_does() {
    use understudy_runtime::ik::{Bend, LimbBones, PlacedBones};
    let twin = load("body-v3.twin");
    // SAFETY: live handles and arrays of the lengths that are given.
    unsafe {
        assert!(understudy_limbs_new(twin, null()).is_null());
        assert!(last_error().contains("a spelling says"), "{}", last_error());
        for wrong in [c"{\"torso\": \"nobody\"}", c"{\"hand_L\": [\"bone6\", \"bone3\", \"bone1\"]}", c"no"] {
            assert!(understudy_limbs_new(twin, wrong.as_ptr()).is_null());
        }
        let limbs = understudy_limbs_new(twin, SPELLING.as_ptr());
        assert!(!limbs.is_null(), "{}", last_error());
        assert_eq!(understudy_limbs_count(limbs), 2);
        assert_eq!(CStr::from_ptr(understudy_limbs_name(limbs, 0)), c"hand_L");
        assert_eq!(CStr::from_ptr(understudy_limbs_name(limbs, 1)), c"torso");
        assert!(understudy_limbs_name(limbs, 2).is_null());
        assert_eq!([0, 1, 2].map(|handle| understudy_limbs_bone(limbs, handle)), [6, 0, -2]);

        let bones = understudy_twin_bone_count(twin);
        let mut rest = vec![0.0; 16 * bones];
        assert_eq!(understudy_twin_rest_bones(twin, rest.as_mut_ptr(), rest.len()), UnderstudyStatus::Ok);
        let at = |matrices: &[f32], bone: usize| Vec3::from_slice(&matrices[16 * bone + 12..]);
        let reach = |handle: usize, target: &[f32], pole: Option<Vec3>, matrices: &mut [f32]| {
            let pole = pole.map(|pole| pole.to_array());
            let mut how = -1;
            let done = understudy_limbs_reach(
                limbs,
                handle,
                target.as_ptr(),
                target.len(),
                pole.as_ref().map_or(null(), |pole| pole.as_ptr()),
                3,
                0.0,
                1,
                matrices.as_mut_ptr(),
                matrices.len(),
                &mut how,
            );
            (done, how)
        };
        // Halfway to the shoulder: in reach of two bones that are not too unlike.
        let (start, end) = (at(&rest, 1), at(&rest, 6));
        let longest = start.distance(at(&rest, 3)) + at(&rest, 3).distance(end);
        let shortest = (start.distance(at(&rest, 3)) - at(&rest, 3).distance(end)).abs();
        let target = start + Vec3::new(0.2, -0.9, 0.3).normalize() * 0.5 * (longest + shortest);
        let mut moved = rest.clone();
        let done = reach(0, &target.to_array(), Some(Vec3::Z), &mut moved);
        assert_eq!(done, (UnderstudyStatus::Ok, UnderstudyReach::Exact as i32), "{}", last_error());
        assert!(at(&moved, 6).distance(target) < 1e-5 * longest, "{}", at(&moved, 6));
        assert_eq!(at(&moved, 4), at(&rest, 4), "what hangs on none of its bones stays");
        for turned in 0..12 {
            // The hand keeps its orientation.
            assert!((moved[16 * 6 + turned] - rest[16 * 6 + turned]).abs() < 1e-4);
        }
        let expected = Twin::parse(&std::fs::read(golden("body-v3.twin")).expect("a file")).expect("a twin");
        let parents: Vec<_> = expected.header().inputs.bones.iter().map(|bone| bone.parent).collect();
        let mut placed = PlacedBones::new(&parents, expected.rest_bones().to_vec());
        let limb = LimbBones { name: "hand_L".into(), bones: [1, 3, 6] };
        placed.reach(&limb, target, Bend::Pole(Vec3::Z), 0.0, true).expect("a pose");
        for (bone, placed) in placed.world.iter().enumerate() {
            assert_eq!(at(&moved, bone).to_array(), placed.translation.to_array(), "bit for bit");
        }
        // As it bends now; the torso takes all along; too far is told.
        let mut again = moved.clone();
        assert_eq!(reach(0, &target.to_array(), None, &mut again).0, UnderstudyStatus::Ok);
        assert!((0..bones).all(|bone| at(&again, bone).distance(at(&moved, bone)) < 1e-3 * longest));
        let there = at(&moved, 0) + Vec3::new(3.0, 0.0, -1.0);
        assert_eq!(reach(1, &there.to_array(), None, &mut again).0, UnderstudyStatus::Ok);
        assert!((0..bones).all(|bone| {
            (at(&again, bone) - at(&moved, bone)).abs_diff_eq(Vec3::new(3.0, 0.0, -1.0), 1e-3 * longest)
        }));
        let far = reach(0, &(start + 3.0 * longest).to_array(), None, &mut again);
        assert_eq!(far, (UnderstudyStatus::Ok, UnderstudyReach::TooFar as i32));

        let kept = again.clone();
        assert_eq!(reach(0, &[f32::NAN, 0.0, 0.0], None, &mut again).0, UnderstudyStatus::BadInput);
        assert!(last_error().contains("the target"), "{}", last_error());
        assert_eq!(reach(1, &[f32::INFINITY, 0.0, 0.0], None, &mut again).0, UnderstudyStatus::BadInput);
        let pole = reach(0, &target.to_array(), Some(Vec3::NAN), &mut again);
        assert!(
            pole.0 == UnderstudyStatus::BadInput && last_error().contains("the pole"),
            "{}",
            last_error()
        );
        assert_eq!(reach(0, &[0.0; 2], None, &mut again).0, UnderstudyStatus::BadInput);
        assert_eq!(last_error(), "target: 2 numbers, 3 expected");
        assert_eq!(reach(2, &[0.0; 3], None, &mut again).0, UnderstudyStatus::BadInput);
        assert_eq!(reach(0, &[0.0; 3], None, &mut again[16..]).0, UnderstudyStatus::BadInput);
        assert_eq!(last_error(), format!("bones: {} entries, {bones} expected", bones - 1));
        assert_eq!(again, kept, "a call that fails changes nothing");
        again[5] = f32::NAN;
        assert_eq!(reach(0, &[0.0; 3], None, &mut again).0, UnderstudyStatus::BadInput);
        assert_eq!(last_error(), "bones: entry 0 is not finite");
        let nobody =
            understudy_limbs_reach(null_mut(), 0, null(), 3, null(), 0, 0.0, 0, null_mut(), 0, null_mut());
        assert_eq!((nobody, last_error().as_str()), (UnderstudyStatus::Null, "limbs is NULL"));
        assert_eq!((understudy_limbs_count(null()), understudy_limbs_bone(null(), 0)), (0, -2));
        understudy_limbs_free(limbs);
        understudy_limbs_free(null_mut());
        understudy_twin_free(twin);
        let face = load("face-v3.twin");
        assert!(understudy_limbs_new(face, null()).is_null());
        assert_eq!(last_error(), "the twin has no bones, and so no limbs");
        understudy_twin_free(face);
    }
}

#[test]
fn characters_play_the_frames_of_the_run_time() {
    use understudy_runtime::motion::{Motion, MotionPlayer, PlayConfig};
    let bytes = std::fs::read(golden("sway.motion")).expect("a file");
    let path = CString::new(golden("sway.motion").to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: live handles, texts that end with NUL, and arrays of the lengths that are given.
    unsafe {
        let motion = understudy_motion_load(path.as_ptr());
        assert!(!motion.is_null(), "{}", last_error());
        let said = |text: *const std::ffi::c_char| -> serde_json::Value {
            serde_json::from_slice(CStr::from_ptr(text).to_bytes()).expect("JSON")
        };
        let about = said(understudy_motion_describe(motion));
        assert_eq!(about["labels"].as_array().map(Vec::len), Some(3));
        assert_eq!((understudy_motion_rate(motion), understudy_motion_control_count(motion)), (24.0, 4));
        assert_eq!(about["rig"].as_str(), CStr::from_ptr(understudy_motion_rig(motion)).to_str().ok());
        let name = CStr::from_ptr(understudy_motion_control_name(motion, 3)).to_str().expect("UTF-8");
        assert_eq!(about["controls"][3]["name"], name);
        assert!(understudy_motion_control_name(motion, 4).is_null());

        let character = understudy_character_new(motion, c"nod".as_ptr(), 7);
        assert!(understudy_character_new(motion, c"cry".as_ptr(), 7).is_null());
        assert!(last_error().contains("there is no label 'cry'"), "{}", last_error());
        // A character outlives its motion.
        understudy_motion_free(motion);
        let config = PlayConfig { seed: 7, ..PlayConfig::default() };
        let expected = Motion::parse(&bytes).expect("a motion").shared();
        let mut expected = MotionPlayer::new(expected, Some("nod"), config).expect("a character");
        let script = c"transition turn; idle 1s; play turn_0";
        assert_eq!(understudy_character_script(character, script.as_ptr()), UnderstudyStatus::Ok);
        expected.script(script.to_str().expect("UTF-8")).expect("a script");
        let mut controls = [0.0; 4];
        for _ in 0..100 {
            assert_eq!(understudy_character_step(character, 4), UnderstudyStatus::Ok);
            (0..4).for_each(|_| expected.step());
            let copied = understudy_character_controls(character, controls.as_mut_ptr(), controls.len());
            assert_eq!(copied, UnderstudyStatus::Ok);
            assert_eq!(controls[..], *expected.controls(), "bit for bit");
        }
        let now = said(understudy_character_situation(character));
        assert_eq!((now["label"].as_str(), now["busy"].as_bool()), (Some("turn"), Some(false)));
        let sent = |json: &CStr| understudy_character_command(character, json.as_ptr());
        assert_eq!(sent(c"{\"command\":\"idle\",\"seconds\":1}"), UnderstudyStatus::Ok);
        assert_eq!(sent(c"{\"command\":\"transition\",\"label\":\"cry\"}"), UnderstudyStatus::BadInput);
        assert!(last_error().contains("there is no label 'cry'"), "{}", last_error());
        assert_eq!(
            understudy_character_script(character, c"idle 1s\nfly".as_ptr()),
            UnderstudyStatus::BadInput
        );
        assert!(last_error().starts_with("line 2: "), "{}", last_error());
        assert_eq!(understudy_character_command(character, null()), UnderstudyStatus::Null);
        assert_eq!(
            understudy_character_controls(character, controls.as_mut_ptr(), 3),
            UnderstudyStatus::BadInput
        );
        assert_eq!(last_error(), "controls: 3 entries, 4 expected");
        assert_eq!(understudy_character_step(null_mut(), 1), UnderstudyStatus::Null);
        assert!(understudy_character_situation(null_mut()).is_null());
        understudy_character_free(character);
        understudy_character_free(null_mut());

        for end in [0, 7, 100, bytes.len() - 1] {
            assert!(understudy_motion_parse(bytes.as_ptr(), end).is_null(), "{end} bytes");
            let error = Motion::parse(&bytes[..end]).expect_err("half a file");
            assert_eq!(
                last_error(),
                error.to_string(),
                "the run time's words, which the command line prints"
            );
        }
        assert!(understudy_motion_load(c"/nowhere/at.motion".as_ptr()).is_null());
        assert!(last_error().starts_with("/nowhere/at.motion: "), "{}", last_error());
        assert!(understudy_motion_load(null()).is_null());
        assert!(understudy_motion_describe(null()).is_null());
        assert_eq!(understudy_motion_rate(null()), 0.0);
        assert!(understudy_character_new(null(), null(), 0).is_null());
        understudy_motion_free(null_mut());
    }
}
