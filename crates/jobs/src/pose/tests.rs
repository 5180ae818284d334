//! Poses of the embedded body, of a real one and of files, and what is refused.

use super::*;
use crate::Silent;
use understudy_testkit::shared_data;

fn place(name: &str, at: [f32; 3]) -> (String, Vec<f32>) {
    (name.into(), at.to_vec())
}

fn posed(config: PoseConfig) -> PoseReport {
    pose(&config, &Silent).expect("a pose")
}

#[test]
fn rook_squats_with_locked_feet_and_reaches() {
    let config = PoseConfig {
        rig: "rook".into(),
        reach: vec![place("torso", [0.0, 84.0, 2.0]), place("hand_L", [45.0, 120.0, 35.0])],
        lock: vec!["foot_L".into(), "foot_R".into()],
        ..PoseConfig::default()
    };
    let report = posed(config);
    assert_eq!(report.frames[0].len(), 4);
    for reached in &report.frames[0] {
        assert!(reached.distance_mm < 0.1, "{reached:?}");
    }
    // Knees bend forwards, by controls within their ranges.
    assert!(report.controls["knee_l.bend"] > 20.0, "{:?}", report.controls);
    assert!((report.controls["knee_l.bend"] - report.controls["knee_r.bend"]).abs() < 1.0);
    let rig = rigs::open("rook", &Silent).expect("a rig").rig;
    let set = report.controls.iter().map(|(name, value)| (name.as_str(), *value));
    rig.specs().with(set).expect("within the ranges");
}

#[test]
fn the_human_reaches_by_hinges_and_a_twist_on_a_second_bone() {
    if shared_data().is_none() {
        return;
    }
    let list =
        handles(&PoseConfig { rig: "human".into(), ..PoseConfig::default() }, &Silent).expect("handles");
    let rest = |name: &str| list.iter().find(|facts| facts.name == name).expect("a handle").rest;
    let hand = rest("hand_R");
    let target = [hand[0] + 8.0, hand[1] + 12.0, hand[2] + 18.0];
    let config =
        PoseConfig { rig: "human".into(), reach: vec![place("hand_R", target)], ..PoseConfig::default() };
    let reached = posed(config).frames.remove(0).remove(0);
    assert!(reached.distance_mm < 0.5, "{reached:?}");
    let torso = rest("torso");
    let config = PoseConfig {
        rig: "human".into(),
        reach: vec![place("torso", [torso[0], torso[1] - 12.0, torso[2]])],
        lock: vec!["foot_L".into(), "foot_R".into()],
        ..PoseConfig::default()
    };
    for reached in &posed(config).frames[0] {
        assert!(reached.distance_mm < 0.5, "{reached:?}");
    }
}

#[test]
fn models_and_motion_files_have_limbs_too() {
    let Some(data) = shared_data() else { return };
    // The feet of the robot hang on a bone of their own: they are no limbs.
    let five = &["hand_L", "hand_R", "foot_L", "foot_R", "torso"][..];
    for (file, names) in [
        ("kaykit/Rogue.glb", five),
        ("gltf/RobotExpressive.glb", &["hand_L", "torso"]),
        ("mocap/07_01.bvh", five),
    ] {
        let rig = data.join(file).display().to_string();
        let config = PoseConfig { rig: rig.clone(), ..PoseConfig::default() };
        let list = handles(&config, &Silent).expect("handles");
        for name in names {
            assert!(list.iter().any(|facts| facts.name == *name), "{file} has no {name}: {list:?}");
        }
        let shoulder_to = list.iter().find(|facts| facts.name == "hand_L").expect("a hand").rest;
        let target = shoulder_to.map(|x| 0.9 * x);
        let config = PoseConfig { reach: vec![place("hand_L", target)], limits: false, ..config };
        let reached = posed(config).frames.remove(0).remove(0);
        let size = list.iter().map(|facts| facts.rest[1].abs()).fold(0.0, f32::max);
        // Nine tenths of the way to the hand is within an arm's reach.
        assert_eq!(reached.reach, Some("exact"), "{file}: {reached:?}");
        assert!(reached.distance_mm < 0.01 * 10.0 * size, "{file}: {reached:?}");
    }
}

#[test]
fn a_table_of_targets_becomes_a_clip() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (table, take) = (folder.path().join("targets.csv"), folder.path().join("take.csv"));
    let mut text = String::from("time,hand_L.x,hand_L.y,hand_L.z\n");
    for frame in 0..5 {
        text += &format!("{},{},130,30\n", frame as f32 / 24.0, 40.0 + frame as f32);
    }
    std::fs::write(&table, text).expect("writable");
    let config = PoseConfig {
        rig: "rook".into(),
        output: Some(take.clone()),
        targets: Some(table.clone()),
        lock: vec!["foot_R".into()],
        clip: Some("walk".into()),
        ..PoseConfig::default()
    };
    let report = posed(config.clone());
    assert_eq!((report.frames.len(), report.rate), (5, Some(24.0)));
    // The foot stays where it stood in the first frame while the clip walks on.
    assert!(report.frames.iter().all(|frame| frame[0].target == report.frames[0][0].target), "{report:?}");
    assert!(report.frames.iter().flatten().all(|reached| reached.distance_mm < 1.0), "{report:?}");
    let rig = rigs::open("rook", &Silent).expect("a rig").rig;
    let clip = clips::resolve(rig.as_ref(), &take.display().to_string(), &Silent).expect("a clip");
    assert!((clip.duration - 4.0 / 24.0).abs() < 1e-3);
    std::fs::write(&table, "time,hand_L.x,hand_L.y\n0,1,2\n").expect("writable");
    let error = pose(&config, &Silent).expect_err("no depth").to_string();
    assert!(error.contains("lacks a coordinate"), "{error}");
}

#[test]
fn what_cannot_be_posed_is_named() {
    let refused = |change: &dyn Fn(&mut PoseConfig)| {
        let mut config = PoseConfig { rig: "rook".into(), ..PoseConfig::default() };
        change(&mut config);
        let error = pose(&config, &Silent).expect_err("refused");
        assert!(error.is_bad_input(), "{error}");
        error.to_string()
    };
    assert!(refused(&|_| {}).contains("nothing is asked for"));
    assert!(refused(&|c| c.reach = vec![place("hand_l", [0.0; 3])]).contains("did you mean 'hand_L'"));
    assert!(refused(&|c| c.reach = vec![place("hand_L", [f32::NAN, 0.0, 0.0])]).contains("finite"));
    assert!(refused(&|c| c.reach = vec![("hand_L".into(), vec![1.0])]).contains("X,Y,Z"));
    assert!(refused(&|c| c.reach = vec![place("hand_L", [1e12, 0.0, 0.0])]).contains("farther"));
    assert!(refused(&|c| c.lock = vec!["hand_L".into(), "hand_L".into()]).contains("twice"));
    assert!(refused(&|c| c.points = vec![place("chin", [0.0; 3])]).contains("learn ik"));
    assert!(
        refused(&|c| {
            c.lock = vec!["hand_L".into()];
            c.soft = 0.9;
        })
        .contains("soft")
    );
    let error = pose(
        &PoseConfig { rig: "mira".into(), lock: vec!["hand_L".into()], ..PoseConfig::default() },
        &Silent,
    );
    let error = error.expect_err("a head").to_string();
    // Her root has the name of a torso, but nothing moves it.
    assert!(error.contains("no limbs"), "{error}");
    let list = handles(&PoseConfig { rig: "mira".into(), ..PoseConfig::default() }, &Silent);
    assert!(list.expect_err("a head").to_string().contains("no limbs"));
}

#[test]
fn a_foot_is_locked_over_a_whole_clip() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let take = folder.path().join("take.csv");
    let config = PoseConfig {
        rig: "rook".into(),
        output: Some(take.clone()),
        lock: vec!["foot_R".into()],
        clip: Some("walk".into()),
        limits: false,
        ..PoseConfig::default()
    };
    let report = posed(config.clone());
    let rig = rigs::open("rook", &Silent).expect("a rig").rig;
    let duration = |name: &str| clips::resolve(rig.as_ref(), name, &Silent).expect("a clip").duration;
    let (walk, rate) = (duration("walk"), report.rate.expect("several frames"));
    assert_eq!(report.frames.len(), (walk * rate).round() as usize + 1);
    assert!(report.frames.iter().all(|frame| frame[0].target == report.frames[0][0].target), "{report:?}");
    assert!((duration(&take.display().to_string()) - walk).abs() < 1.0 / rate);
    // A moment is one frame, as ever.
    assert_eq!(posed(PoseConfig { time: Some(0.5), ..config }).frames.len(), 1);
}
