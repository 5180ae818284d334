//! Captured motion on rigs that were not captured: laws on a motion whose answer is known, and the mocap files on Rook
//! and on a human.

use understudy_core::{
    Bone, Clip, ControlKind, EulerRot, GlobalPose, JointPose, JointTransform, Quat, Skeleton, Vec3,
};
use understudy_jobs::clips::{resolve, resolve_retargeted};
use understudy_jobs::retarget::{RetargetJob, retarget as retarget_job};
use understudy_jobs::{Silent, rigs};
use understudy_rigs::retarget::{RetargetConfig, Source, Start, retarget};
use understudy_rigs::{Rig, RigPose};
use understudy_testkit::shared_data;

const RATE: f32 = 30.0;

/// Local transforms of Rook's bones along his own walk.
fn walk(rig: &dyn Rig) -> Vec<JointPose> {
    let skeleton = rig.skeleton().expect("a body");
    let clip = rig.find_clip("walk").expect("Rook walks");
    let mut pose = RigPose::default();
    let mut local = Vec::new();
    let frames = clip.sample(rig.specs(), RATE).expect("frames").frames;
    let one = |controls: &understudy_core::Controls| {
        rig.evaluate_bones(controls, &mut pose).expect("a pose");
        skeleton.relative_to_parent(&pose.global, &mut local);
        let joint = |bone: &understudy_core::Affine3A| {
            let (scale, rotation, translation) = bone.to_scale_rotation_translation();
            JointTransform { scale, rotation, translation }
        };
        JointPose(local.iter().map(joint).collect())
    };
    frames.iter().take(40).map(one).collect()
}

/// The same motion in another size, turned about the vertical and put elsewhere, on bones whose axes are rolled.
fn disguised(skeleton: &Skeleton, poses: &[JointPose], size: f32, yaw: f32) -> (Skeleton, Vec<JointPose>) {
    let roll = |bone: usize| Quat::from_scaled_axis(Vec3::new(0.3, -0.2, 0.5) * (1.0 + bone as f32 % 5.0));
    let moved = |bone: usize, joint: &JointTransform| {
        let parent = skeleton.bones()[bone].parent;
        let above = parent.map_or(Quat::IDENTITY, roll).inverse();
        let (rotation, translation) =
            (above * joint.rotation * roll(bone), above * (joint.translation * size));
        if parent.is_some() {
            return JointTransform { rotation, translation, scale: joint.scale };
        }
        let world = Quat::from_rotation_y(yaw);
        let translation = world * translation + Vec3::new(300.0, 0.0, -120.0) * size;
        JointTransform { rotation: world * rotation, translation, scale: joint.scale }
    };
    let bones = skeleton.bones().iter().enumerate().map(|(index, bone)| Bone {
        name: bone.name.clone(),
        parent: bone.parent,
        rest: moved(index, &bone.rest),
    });
    let other = Skeleton::new(bones.collect()).expect("a tree");
    let pose = |pose: &JointPose| {
        JointPose(pose.0.iter().enumerate().map(|(bone, joint)| moved(bone, joint)).collect())
    };
    (other, poses.iter().map(pose).collect())
}

fn globals(skeleton: &Skeleton, poses: &[JointPose]) -> Vec<GlobalPose> {
    let forward = |pose: &JointPose| {
        let mut global = GlobalPose::default();
        skeleton.forward(pose, &mut global).expect("one transform per bone");
        global
    };
    poses.iter().map(forward).collect()
}

#[test]
fn a_rigs_own_walk_comes_back_from_another_body() {
    let rig = rigs::open("rook", &Silent).expect("embedded").rig;
    let rig = rig.as_ref();
    let skeleton = rig.skeleton().expect("a body");
    let poses = walk(rig);
    let truth = globals(skeleton, &poses);
    let mut answers = Vec::new();
    for (size, yaw) in [(1.0, 0.0), (0.4, 0.0), (2.5, 1.9)] {
        let (other, moved) = disguised(skeleton, &poses, size, yaw);
        let source = Source { skeleton: &other, rest: other.rest_pose(), poses: moved, rate: RATE };
        let config = RetargetConfig { lock: false, ..RetargetConfig::default() };
        let done = retarget(rig, &source, &config, &mut |_| true).expect("two bodies").expect("not stopped");
        assert!((done.report.scale * size - 1.0).abs() < 1e-4, "{}", done.report.scale);
        let rest = skeleton.rest_pose();
        let keys = done.keys;
        let found: Vec<JointPose> =
            (0..poses.len()).map(|frame| keys.pose_at(frame as f64 / f64::from(RATE), &rest)).collect();
        // Ankles, wrists and the skull seen from the hips: what a limit or a twist would change.
        let found = globals(skeleton, &found);
        for name in ["foot_l", "foot_r", "hand_l", "hand_r", "head"] {
            let (bone, hips) = (skeleton.find(name).expect(name), skeleton.find("hips").expect("hips"));
            let seen = |pose: &GlobalPose| pose.0[hips].inverse() * pose.0[bone];
            for (frame, (a, b)) in found.iter().zip(&truth).enumerate() {
                let (a, b) = (seen(a), seen(b));
                let miss = (a.translation - b.translation).length();
                // The animator put the pelvis's sway on the hips; retargeting leaves them to the root.
                assert!(miss < 4.0, "{name}, frame {frame}, size {size}: {miss} cm");
            }
        }
        answers.push(found);
    }
    // Neither size nor place of the file matter.
    for other in &answers[1..] {
        for (a, b) in answers[0].iter().zip(other) {
            let miss = a.0.iter().zip(&b.0).map(|(a, b)| (a.translation - b.translation).length());
            let worst = miss.fold(0.0f32, f32::max);
            assert!(worst < 0.5, "{worst} cm");
        }
    }
}

#[test]
fn the_files_own_place_is_kept_when_asked_for() {
    let rig = rigs::open("rook", &Silent).expect("embedded").rig;
    let rig = rig.as_ref();
    let skeleton = rig.skeleton().expect("a body");
    let (other, poses) = disguised(skeleton, &walk(rig)[..5], 0.5, 1.2);
    let source = Source { skeleton: &other, rest: other.rest_pose(), poses: poses.clone(), rate: RATE };
    let config = RetargetConfig { start: Start::File, ..RetargetConfig::default() };
    let done = retarget(rig, &source, &config, &mut |_| true).expect("two bodies").expect("not stopped");
    let found = globals(skeleton, &[done.keys.pose_at(0.0, &skeleton.rest_pose())]);
    let hips = skeleton.find("hips").expect("hips");
    let want = globals(&other, &poses[..1])[0].0[hips].translation / 0.5;
    let miss = found[0].0[hips].translation - want;
    assert!(miss.length() < 2.0, "{miss} cm");
    let stopped = retarget(rig, &source, &config, &mut |done| done < 2).expect("two bodies");
    assert!(stopped.is_none(), "who says stop is heard");
}

/// The largest way of a joint from frame to frame in a file, cm; its first frame is a pose of its own.
fn largest_step(path: &std::path::Path) -> f32 {
    let file = understudy_io::bvh::read(path, Default::default()).expect("a motion file");
    let places = globals(&file.skeleton, &file.clip.poses[1..]);
    let step = |pair: &[GlobalPose]| {
        let joints = pair[0].0.iter().zip(&pair[1].0);
        joints.map(|(a, b)| (a.translation - b.translation).length()).fold(0.0, f32::max)
    };
    places.windows(2).map(step).fold(0.0, f32::max)
}

/// The seven files on both rigs: feet that stand do not slide, controls stay within their limits, nothing jumps.
#[test]
fn mocap_plays_on_rook_and_human() {
    let Some(data) = shared_data() else { return };
    let rook = rigs::open("rook", &Silent).expect("embedded").rig;
    let human = rigs::open_real_in("human", &data, &Silent).expect("shared data").rig;
    let mut files: Vec<_> = std::fs::read_dir(data.join("mocap")).expect("the folder").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    assert_eq!(files.len(), 7);
    for file in files {
        let path = file.path().display().to_string();
        for rig in [rook.as_ref(), human.as_ref()] {
            let place = format!("{path} on {}", rig.name());
            let config = RetargetConfig::default();
            let (clip, report) = resolve_retargeted(rig, &path, &config, &Silent).expect(&place);
            assert_eq!(resolve(rig, &path, &Silent).expect(&place), clip, "--clip plays the same");
            assert_eq!(
                (report.file_names, report.reference, report.skipped_frames),
                ("CMU", "first frame", 1)
            );
            let slides = understudy_rigs::retarget::slides(rig, &clip, &report.contacts).expect("poses");
            let feet = report.contacts.iter().zip(&slides).filter(|(c, _)| !c.point.ends_with("hand"));
            let worst = feet.map(|(_, slide)| *slide).fold(0.0, f32::max);
            assert!(worst < 1.0 && !report.contacts.is_empty(), "{place}: feet slide {worst} cm");

            let specs = rig.specs();
            let frames = clip.sample(specs, clip.own_rate()).expect("frames").frames;
            let root = clip.motion.as_ref().and_then(|motion| motion.keys.bones.last()).expect("keys").bone;
            let root = &rig.skeleton().expect("a body").bones()[root].name;
            let is_root =
                |kind: &ControlKind| matches!(kind, ControlKind::Joint { bone, .. } if bone == root);
            // A spine that leaves a limit settles within two frames: 8 cm per frame at the human's shoulder in 07_04.
            let most = 2.0 * largest_step(&file.path()) * report.scale + 3.0;
            let mut before: Option<Vec<Vec3>> = None;
            let mut pose = RigPose::default();
            for (frame, controls) in frames.iter().enumerate() {
                for (spec, value) in specs.iter().zip(&controls.0).filter(|(spec, _)| !is_root(&spec.kind)) {
                    let range = spec.low - 0.05..=spec.high + 0.05;
                    assert!(range.contains(value), "{place}, frame {frame}: {} is {value}", spec.name);
                }
                rig.evaluate_bones(controls, &mut pose).expect("a pose");
                let now: Vec<Vec3> = pose.global.0.iter().map(|bone| bone.translation.into()).collect();
                if let Some(before) = &before {
                    let step = now.iter().zip(before).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
                    // Captures have jumps of their own: 16_01 lost the left arm for 18 frames. Coats swing wider.
                    assert!(
                        step < most,
                        "{place}: a bone jumps by {step} cm at frame {frame}, {most} allowed"
                    );
                }
                before = Some(now);
            }
        }
    }
}

#[test]
fn a_cartwheel_goes_all_the_way_over() {
    let Some(data) = shared_data() else { return };
    let rig = rigs::open("rook", &Silent).expect("embedded").rig;
    let rig = rig.as_ref();
    let path = data.join("mocap/49_06.bvh").display().to_string();
    let clip = resolve(rig, &path, &Silent).expect("a cartwheel");
    let skeleton = rig.skeleton().expect("a body");
    let bone = |name: &str| skeleton.find(name).expect(name);
    let (head, feet, hands) =
        (bone("head"), [bone("foot_l"), bone("foot_r")], [bone("hand_l"), bone("hand_r")]);
    let frames = clip.sample(rig.specs(), 30.0).expect("frames").frames;
    let mut pose = RigPose::default();
    let mut over = 0;
    for controls in &frames {
        rig.evaluate_bones(controls, &mut pose).expect("a pose");
        let height = |bone: usize| pose.global.0[bone].translation.y;
        let upside_down = feet.iter().all(|foot| height(*foot) > height(head) + 20.0);
        let on_hands = hands.iter().any(|hand| height(*hand) < 25.0);
        over += usize::from(upside_down && on_hands);
    }
    assert!((4..25).contains(&over), "{over} of {} frames upside down on the hands", frames.len());
    for frame in [0, frames.len() - 1] {
        rig.evaluate_bones(&frames[frame], &mut pose).expect("a pose");
        let head = pose.global.0[head].translation;
        assert!(head.y > 150.0, "stands at both ends: {head}");
    }
}

#[test]
fn mapping_files_say_what_names_do_not() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = rigs::open("rook", &Silent).expect("embedded").rig;
    let rig = rig.as_ref();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path.display().to_string()
    };
    // A body of strange names, its legs 60 units long: it bends one knee.
    let joint = |name: &str, offset: &str, inside: &str| {
        format!("JOINT {name}\n{{\nOFFSET {offset}\nCHANNELS 3 Zrotation Xrotation Yrotation\n{inside}}}\n")
    };
    let end = "End Site\n{\nOFFSET 0 -4 14\n}\n";
    let leg = |side: &str, x: &str| {
        let foot = joint(&format!("f{side}"), "0 -43 0", end);
        joint(&format!("u{side}"), &format!("{x} 0 0"), &joint(&format!("l{side}"), "0 -43 0", &foot))
    };
    let text = format!(
        "HIERARCHY\nROOT belly\n{{\nOFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation \
         Yrotation\n{}{}{}}}\nMOTION\nFrames: 2\nFrame Time: 0.04\n{}\n{}\n",
        leg("l", "10"),
        leg("r", "-10"),
        joint("skull", "0 70 0", "End Site\n{\nOFFSET 0 20 0\n}\n"),
        ["0 90 0", &"0 ".repeat(24)].join(" "),
        ["0 90 0", "0 0 0", "0 -30 0", "0 60 0", &"0 ".repeat(15)].join(" "),
    );
    write("strange.bvh", &text);
    let error = resolve(rig, &folder.path().join("strange.bvh").display().to_string(), &Silent);
    assert!(error.expect_err("nothing is known").to_string().contains("nothing in it matches"));
    let bones = "[retarget.file_bones]\nhips = \"belly\"\nhead = \"skull\"\n\
                 [retarget.file_bones.left]\nthigh = \"ul\"\nshin = \"ll\"\nfoot = \"fl\"\n\
                 [retarget.file_bones.right]\nthigh = \"ur\"\nshin = \"lr\"\nfoot = \"fr\"\n";
    let map = write("map.toml", &format!("clip = \"strange.bvh\"\n{bones}"));
    let clip = resolve(rig, &map, &Silent).expect("a mapped body");
    let controls = clip.at([0.04], rig.specs()).expect("a moment").remove(0);
    let value = |name: &str| controls.0[rig.specs().find(name).expect(name)];
    assert!((value("knee_l.bend") - 60.0).abs() < 12.0, "{}", value("knee_l.bend"));
    assert!(value("knee_r.bend").abs() < 12.0 && value("hip_l.forward") > 15.0);

    let found = folder.path().join("found.toml");
    let job = RetargetJob {
        rig: "rook".into(),
        motion: map,
        write_map: Some(found.clone()),
        ..RetargetJob::default()
    };
    let report = retarget_job(&job, &Silent).expect("a mapped body");
    assert!(report.bones.contains(&["left thigh".into(), "ul".into(), "thigh_l".into()]));
    let again = resolve(rig, &found.display().to_string(), &Silent).expect("its own mapping file");
    let again = again.at([0.04], rig.specs()).expect("a moment").remove(0);
    let worst = again.0.iter().zip(&controls.0).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 0.01, "the written scale is rounded, and nothing else differs: {worst}");

    for (text, word) in [
        (bones.to_owned(), "names no motion"),
        (
            format!("clip = \"strange.bvh\"\n{}", bones.replace("\"fr\"", "\"fx\"")),
            "no bone 'fx' (named for right.foot)",
        ),
        ("clip = \"strange.bvh\"\n[retarget]\nscael = 2\n".into(), "line 3"),
        (format!("clip = \"strange.bvh\"\n[retarget]\nscale = -1\n{bones}"), "the scale is -1"),
        (format!("clip = \"absent.bvh\"\n{bones}"), "absent.bvh"),
    ] {
        let error = resolve(rig, &write("bad.toml", &text), &Silent).expect_err(word);
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    }
    let absent = resolve(rig, &folder.path().join("no.toml").display().to_string(), &Silent);
    assert!(absent.expect_err("no such file").is_bad_input());
}

/// Bones and their frames as FBX text without a mesh, as "without skin" downloads of animation libraries are.
fn fbx_of_bones(skeleton: &Skeleton, named: &dyn Fn(&str) -> String, poses: &[JointPose]) -> String {
    // A second of FBX, and its rotation order: R = R_z R_y R_x, in degrees.
    const SECOND: f64 = 46_186_158_000.0;
    let degrees = |turn: Quat| {
        let (z, y, x) = turn.to_euler(EulerRot::ZYX);
        [x, y, z].map(f32::to_degrees)
    };
    let list = |values: &[f32]| values.iter().map(|v| format!("{v:.6}")).collect::<Vec<_>>().join(",");
    let times: Vec<String> =
        (0..poses.len()).map(|f| format!("{:.0}", f as f64 / f64::from(RATE) * SECOND)).collect();
    let (mut objects, mut links, mut next) = (String::new(), String::new(), 10_000);
    for (index, bone) in skeleton.bones().iter().enumerate() {
        let (name, model, parent) = (named(&bone.name), 1000 + index, bone.parent.map_or(0, |p| 1000 + p));
        let property = |kind: &str, value: [f32; 3]| {
            format!("P: \"Lcl {kind}\", \"Lcl {kind}\", \"\", \"A\",{}\n", list(&value))
        };
        objects += &format!(
            "Model: {model}, \"Model::{name}\", \"LimbNode\" {{\nVersion: 232\nProperties70:  {{\n{}{}{}}}\n}}\n\
             NodeAttribute: {}, \"NodeAttribute::{name}\", \"LimbNode\" {{\nTypeFlags: \"Skeleton\"\n}}\n",
            property("Translation", bone.rest.translation.to_array()),
            property("Rotation", degrees(bone.rest.rotation)),
            property("Scaling", bone.rest.scale.to_array()),
            model + 1000
        );
        links += &format!("C: \"OO\",{model},{parent}\nC: \"OO\",{},{model}\n", model + 1000);
        let translations = poses.iter().map(|pose| pose.0[index].translation.to_array());
        let rotations = poses.iter().map(|pose| degrees(pose.0[index].rotation));
        let channels: [(&str, Vec<[f32; 3]>); 2] =
            [("Translation", translations.collect()), ("Rotation", rotations.collect())];
        for (kind, values) in channels.iter().filter(|(_, values)| !values.is_empty()) {
            objects += &format!(
                "AnimationCurveNode: {next}, \"AnimCurveNode::{kind}\", \"\" {{\nProperties70:  {{\n}}\n}}\n"
            );
            links += &format!("C: \"OO\",{next},401\nC: \"OP\",{next},{model}, \"Lcl {kind}\"\n");
            for (axis, letter) in ["X", "Y", "Z"].into_iter().enumerate() {
                let keys: Vec<f32> = values.iter().map(|value| value[axis]).collect();
                let (curve, count) = (next + 1 + axis, keys.len());
                objects += &format!(
                    "AnimationCurve: {curve}, \"AnimCurve::\", \"\" {{\nDefault: 0\nKeyVer: 4008\nKeyTime: *{count} {{\na: {}\n}}\n\
                     KeyValueFloat: *{count} {{\na: {}\n}}\nKeyAttrFlags: *1 {{\na: 260\n}}\nKeyAttrDataFloat: *4 {{\na: 0,0,0,0\n}}\n\
                     KeyAttrRefCount: *1 {{\na: {count}\n}}\n}}\n",
                    times.join(","),
                    list(&keys)
                );
                links += &format!("C: \"OP\",{curve},{next}, \"d|{letter}\"\n");
            }
            next += 10;
        }
    }
    if let Some(last) = times.last() {
        objects += &format!(
            "AnimationStack: 400, \"AnimStack::take\", \"\" {{\nProperties70:  {{\nP: \"LocalStop\", \"KTime\", \"Time\", \"\",{last}\n}}\n}}\n\
             AnimationLayer: 401, \"AnimLayer::base\", \"\" {{\n}}\n"
        );
        links += "C: \"OO\",401,400\n";
    }
    // Centimetres, Y-up, 30 frames per second.
    format!(
        "; FBX 7.4.0 project file\nFBXHeaderExtension:  {{\nFBXHeaderVersion: 1003\nFBXVersion: 7400\n}}\n\
         GlobalSettings:  {{\nVersion: 1000\nProperties70:  {{\nP: \"UpAxis\", \"int\", \"Integer\", \"\",1\n\
         P: \"UpAxisSign\", \"int\", \"Integer\", \"\",1\nP: \"FrontAxis\", \"int\", \"Integer\", \"\",2\n\
         P: \"FrontAxisSign\", \"int\", \"Integer\", \"\",1\nP: \"CoordAxis\", \"int\", \"Integer\", \"\",0\n\
         P: \"CoordAxisSign\", \"int\", \"Integer\", \"\",1\nP: \"UnitScaleFactor\", \"double\", \"Number\", \"\",1\n\
         P: \"TimeMode\", \"enum\", \"\", \"\",6\n}}\n}}\nObjects:  {{\n{objects}}}\nConnections:  {{\n{links}}}\n"
    )
}

/// What Mixamo calls a bone of Rook's; helpers have names that say nothing.
fn mixamo(name: &str) -> String {
    let (part, side) = match name.rsplit_once('_') {
        Some((part, "l")) => (part, "Left"),
        Some((part, "r")) => (part, "Right"),
        _ => (name, ""),
    };
    let known = [
        ("hips", "Hips"),
        ("spine_1", "Spine"),
        ("spine_2", "Spine1"),
        ("chest", "Spine2"),
        ("neck_1", "Neck"),
        ("head", "Head"),
        ("clavicle", "Shoulder"),
        ("upper_arm", "Arm"),
        ("forearm", "ForeArm"),
        ("hand", "Hand"),
        ("thigh", "UpLeg"),
        ("calf", "Leg"),
        ("foot", "Foot"),
        ("toe", "ToeBase"),
    ];
    let found = known.into_iter().find(|(own, _)| *own == part);
    found.map_or_else(|| format!("joint_{name}"), |(_, theirs)| format!("mixamorig:{side}{theirs}"))
}

#[test]
fn an_fbx_file_of_bones_alone_is_a_clip_and_is_retargeted() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = rigs::open("rook", &Silent).expect("embedded").rig;
    let rig = rig.as_ref();
    let skeleton = rig.skeleton().expect("a body");
    let poses = walk(rig);
    let truth = globals(skeleton, &poses);
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path.display().to_string()
    };
    // How far feet, hands and head are from the walk's, seen from the hips, cm.
    let miss = |clip: &Clip| {
        let frames = clip.sample(rig.specs(), RATE).expect("frames").frames;
        assert_eq!(frames.len(), poses.len());
        let (hips, mut pose, mut worst) = (skeleton.find("hips").expect("hips"), RigPose::default(), 0.0f32);
        for (controls, truth) in frames.iter().zip(&truth) {
            rig.evaluate_bones(controls, &mut pose).expect("a pose");
            let seen = |pose: &GlobalPose, bone: usize| (pose.0[hips].inverse() * pose.0[bone]).translation;
            for name in ["foot_l", "foot_r", "hand_l", "hand_r", "head"] {
                let bone = skeleton.find(name).expect(name);
                worst = worst.max(seen(&pose.global, bone).distance(seen(truth, bone)));
            }
        }
        worst
    };

    let other = write("mixamo.fbx", fbx_of_bones(skeleton, &mixamo, &poses));
    let config = RetargetConfig { lock: false, ..RetargetConfig::default() };
    let (clip, report) = resolve_retargeted(rig, &other, &config, &Silent).expect("a body");
    assert_eq!((report.file_names, report.frames), ("Mixamo", poses.len()));
    assert!((report.scale - 1.0).abs() < 1e-3, "{}", report.scale);
    let far = miss(&clip);
    assert!(far < 4.0, "{far} cm");
    let clip = resolve(rig, &format!("{other}:take"), &Silent).expect("its take");
    assert_eq!((clip.name.as_str(), clip.rate), ("mixamo take", Some(RATE)));
    assert!(resolve(rig, &format!("{other}:run"), &Silent).expect_err("no such take").is_bad_input());

    // Bones of the rig's own names are played number by number.
    let own = write("own.fbx", fbx_of_bones(skeleton, &str::to_owned, &poses));
    let far = miss(&resolve(rig, &own, &Silent).expect("its own bones"));
    assert!(far < 0.1, "{far} cm");

    let still = write("still.fbx", fbx_of_bones(skeleton, &mixamo, &[]));
    for error in [
        resolve(rig, &still, &Silent).expect_err("nothing moves"),
        resolve_retargeted(rig, &still, &config, &Silent).expect_err("nothing moves"),
    ] {
        assert!(error.is_bad_input() && error.to_string().contains("no animation"), "{error}");
    }
    let broken = write("broken.fbx", "; FBX 7.4.0 project file\n".into());
    assert!(resolve(rig, &broken, &Silent).expect_err("no scene").is_bad_input());
}
