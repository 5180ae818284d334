//! Round trips, rotation orders, real files and bad ones.

use super::*;
use crate::Axis;
use proptest::prelude::*;
use understudy_core::{Affine3A, Bone, GlobalPose, JointPose, Quat, Random};
use understudy_testkit::{Tol, shared_data};

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

fn options(cm_per_unit: f32) -> BvhOptions {
    BvhOptions { cm_per_unit: Some(cm_per_unit), up: None }
}

/// The furthest that a joint of one clip is from the same joint of another, over all frames, cm.
fn furthest(a: &Bvh, b: &Bvh) -> f32 {
    let (mut ours, mut theirs) = (GlobalPose::default(), GlobalPose::default());
    let mut worst = 0.0f32;
    for (left, right) in a.clip.poses.iter().zip(&b.clip.poses) {
        a.skeleton.forward(left, &mut ours).expect("fits");
        b.skeleton.forward(right, &mut theirs).expect("fits");
        let place = |transform: &Affine3A| Vec3::from(transform.translation);
        for (left, right) in ours.0.iter().zip(&theirs.0) {
            worst = worst.max(place(left).distance(place(right)));
        }
    }
    worst
}

proptest! {
    /// The law: a BVH's written rotation orders are kept, whatever they are and wherever positions stand.
    #[test]
    fn rotation_orders_are_kept(orders in prop::collection::vec(0usize..6, 4), positions: bool, seed: u64) {
        let mut random = Random::new(seed);
        let bone = |joint: usize| Bone {
            name: format!("joint {joint}"),
            parent: joint.checked_sub(1).map(|parent| parent / 2 * 2),
            rest: JointTransform::from_translation(Vec3::new(1.0, 20.0, -3.0 * joint as f32)),
        };
        let skeleton = Skeleton::new((0..4).map(bone).collect()).expect("a tree");
        let mut pose = || {
            let mut turn = || {
                let axis = Vec3::new(random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0));
                Quat::from_axis_angle(axis.try_normalize().unwrap_or(Vec3::X), random.uniform(-3.0, 3.0))
            };
            let mut pose = skeleton.rest_pose();
            pose.0.iter_mut().for_each(|joint| joint.rotation = turn());
            // The middle of every order at its pole, for one joint.
            pose.0[2].rotation = euler_at_pole(ORDERS[orders[2]]);
            pose
        };
        let poses = vec![pose(), pose(), pose()];
        let clip = JointClip { name: String::new(), rate: 60.0, poses, shape_weights: Vec::new() };
        let mut bvh = Bvh::from_clip(skeleton.clone(), clip, ORDERS[0]);
        for (channels, order) in bvh.channels.iter_mut().zip(&orders) {
            channels.retain(|channel| matches!(channel, BvhChannel::Position(_)));
            channels.extend(ORDERS[*order].map(BvhChannel::Rotation));
            if positions {
                *channels = [ORDERS[*order].map(BvhChannel::Rotation), ORDERS[5].map(BvhChannel::Position)].concat();
            }
        }
        bvh.end_sites = vec![(3, Vec3::Y)];
        let text = to_text(&bvh, 1.0).expect("can be said");
        let back = parse(text.as_bytes(), options(1.0)).expect("just written");
        prop_assert_eq!(&back.channels, &bvh.channels);
        prop_assert_eq!(&back.end_sites, &bvh.end_sites);
        prop_assert_eq!(back.clip.rate, 60.0);
        prop_assert!(furthest(&bvh, &back) < 1e-3, "{}", furthest(&bvh, &back));
    }
}

fn euler_at_pole(order: [usize; 3]) -> Quat {
    let axes = [Vec3::X, Vec3::Y, Vec3::Z];
    let turn = |place: usize, angle: f32| Quat::from_axis_angle(axes[order[place]], angle);
    turn(0, 0.4) * turn(1, std::f32::consts::FRAC_PI_2) * turn(2, -1.1)
}

#[test]
fn real_files_make_the_round_trip() {
    let Some(data) = shared_data() else { return };
    let mut names: Vec<_> = std::fs::read_dir(data.join("mocap"))
        .expect("a folder")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|end| end == "bvh"))
        .collect();
    names.sort();
    assert!(names.len() >= 7);
    for path in names {
        let start = std::time::Instant::now();
        let bvh = read(&path, BvhOptions::default()).expect("valid file");
        assert!(start.elapsed().as_secs_f32() < 1.0, "{} took {:?}", path.display(), start.elapsed());
        assert_eq!((bvh.skeleton.len(), bvh.clip.rate), (31, 120.0));
        assert!(bvh.conversion.reason.contains("CMU"), "{}", bvh.conversion);
        assert!(bvh.warnings.is_empty(), "{:?}", bvh.warnings);
        for unit in [1.0, bvh.conversion.scale] {
            let text = to_text(&bvh, unit).expect("can be said");
            let back = parse(text.as_bytes(), BvhOptions::default()).expect("just written");
            assert_eq!(back.channels, bvh.channels);
            assert!((back.conversion.scale - unit).abs() < 1e-4);
            assert!(furthest(&bvh, &back) < 0.01, "{}: {} cm", path.display(), furthest(&bvh, &back));
        }
    }
}

const SMALL: &str = "HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Left Leg {
    OFFSET 0 -90 0
    CHANNELS 1 Xrotation
    End Site
    {
      OFFSET 0 -80 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.0333333
0 95 0 90 0 0 30
1 95 0 90 0 0 45
";

#[test]
fn a_small_file_is_understood() {
    let bvh = parse(SMALL.as_bytes(), BvhOptions::default()).expect("valid");
    assert_eq!((bvh.clip.rate, bvh.conversion.scale), (30.0, 1.0));
    assert_eq!(bvh.skeleton.bones()[1].name, "Left Leg");
    assert_eq!(bvh.end_sites, [(1, Vec3::new(0.0, -80.0, 0.0))]);
    let mut global = GlobalPose::default();
    bvh.skeleton.forward(&bvh.clip.poses[1], &mut global).expect("fits");
    // Z by 90 degrees turns the leg from −Y to +X.
    let leg = Vec3::from(global.0[1].translation);
    assert!((leg - Vec3::new(91.0, 95.0, 0.0)).length() < Tol::position_cm(10), "{leg}");

    let z_up = BvhOptions { cm_per_unit: Some(10.0), up: Some(Axis::Z) };
    let turned = parse(SMALL.as_bytes(), z_up).expect("valid");
    turned.skeleton.forward(&turned.clip.poses[1], &mut global).expect("fits");
    let leg = Vec3::from(global.0[1].translation);
    assert!((leg - Vec3::new(910.0, 0.0, -950.0)).length() < Tol::position_cm(100), "{leg}");
}

#[test]
fn same_names_become_different() {
    let text = SMALL.replace("Left Leg", "Hips");
    let bvh = parse(text.as_bytes(), BvhOptions::default()).expect("valid");
    assert_eq!(bvh.skeleton.bones()[1].name, "Hips_2");
    assert_eq!(bvh.warnings, ["two joints are named 'Hips': the later one is now 'Hips_2'"]);
}

#[test]
fn what_channels_cannot_say_is_an_error() {
    let mut bvh = parse(SMALL.as_bytes(), BvhOptions::default()).expect("valid");
    bvh.clip.poses[1].0[1].rotation = Quat::from_rotation_y(0.5);
    let error = to_text(&bvh, 1.0).expect_err("turns about y");
    assert_eq!(error, "joint 'Left Leg', frame 1: turns about an axis that its channels do not have");
    bvh.clip.poses[1] = bvh.clip.poses[0].clone();
    bvh.clip.poses[1].0[1].translation.x += 1.0;
    assert!(to_text(&bvh, 1.0).expect_err("moves").contains("moves along an axis"));
    bvh.clip.poses[1] = JointPose(Vec::new());
    assert!(to_text(&bvh, 1.0).is_err());
}

#[test]
fn bad_files_are_named_with_their_line() {
    let change = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        let text = SMALL.replace(from, to);
        parse(text.as_bytes(), BvhOptions::default()).expect_err(to).to_string()
    };
    for (from, to, message) in [
        ("HIERARCHY", "SOLID", "line 1: HIERARCHY expected: this is no BVH file"),
        ("    CHANNELS 1 Xrotation\n", "", "line 6: joint 'Left Leg' has no CHANNELS"),
        ("CHANNELS 1 Xrotation", "CHANNELS 3 Xrotation", "line 8: 3 channels are announced, 1 named"),
        ("CHANNELS 1 Xrotation", "CHANNELS 1 Wrotation", "line 8: there is no channel 'Wrotation'"),
        ("CHANNELS 1 Xrotation", "CHANNELS 2 Xrotation Xrotation", "line 8: channel Xrotation appears twice"),
        ("OFFSET 0 -90 0", "OFFSET 0 -90", "line 7: OFFSET needs 3 numbers, 2 found"),
        ("OFFSET 0 -90 0", "OFFSET 0 nan 0", "line 7: 'nan' is not finite"),
        ("OFFSET 0 -90 0", "OFFSET 0 1e999 0", "line 7: '1e999' is not finite"),
        ("0 95 0 90 0 0 30", "0 95 0 90 0 0", "line 18: 7 numbers expected, 6 found"),
        ("0 95 0 90 0 0 30", "0 95 0 90 0 0 30 1", "line 18: 7 numbers expected, 8 found"),
        ("0 95 0 90 0 0 30", "0 95 x 90 0 0 30", "line 18: 'x' is not a number"),
        ("0 95 0 90 0 0 30", "0 95 inf 90 0 0 30", "line 18: 'inf' is not finite"),
        ("0 95 0 90 0 0 30", "0 95 1e300 90 0 0 30", "line 18: joint 'Hips' is too far away"),
        ("Frames: 2", "Frames: 3", "line 19: 3 frames are announced, 2 found"),
        ("Frames: 2", "Frames: 1", "line 19: more frames than the 1 announced"),
        ("Frames: 2", "Frames: 0", "line 16: the number of frames must be 1 or more"),
        (
            "Frames: 2",
            "Frames: 99999999999",
            "line 17: 99999999999 frames are announced, more than the file can hold",
        ),
        ("Frame Time: 0.0333333", "Frame Time: 0", "line 17: a frame time of 0 s"),
        ("}\nMOTION", "MOTION", "line 14: MOTION, but the block of line 2 is not closed"),
        ("}\nMOTION", "}\n}\nMOTION", "line 15: '}' without '{'"),
        ("JOINT Left Leg {", "JOINT Left Leg", "line 7: '{' of line 6 expected, 'OFFSET' found"),
        ("JOINT Left Leg", "ROOT Left Leg", "line 6: ROOT does not belong here"),
    ] {
        assert_eq!(change(from, to), message);
    }
    for end in 0..SMALL.trim_end().len() - 2 {
        let cut = parse(&SMALL.as_bytes()[..end], BvhOptions::default());
        assert!(cut.is_err(), "truncated at {end}");
    }
    assert!(parse(b"\xff\xfe", BvhOptions::default()).is_err());
    assert!(parse(SMALL.as_bytes(), options(f32::NAN)).is_err());
}
