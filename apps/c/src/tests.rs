//! The border as C sees it: what comes back for NULL, wrong lengths and damaged files, and that vertices are the run time's.

use crate::*;
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
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
