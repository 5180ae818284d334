//! `--clip FILE`: a Live Link Face take, a motion file and another model's animation, played by rigs that were not made
//! for them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use understudy_core::{
    Affine3A, Bone, Controls, Face, JointTransform, MeshParts, Quat, Skeleton, SkinWeights, Vec3, arkit,
};
use understudy_io::gltf::{GltfScene, write_glb};
use understudy_jobs::clips::resolve;
use understudy_jobs::convert::{ConvertConfig, convert};
use understudy_jobs::{Event, Silent, Watch, rigs};
use understudy_rigs::{Rig, RigPose};
use understudy_testkit::shared_data;

const RATE: usize = 60;
const SECONDS: usize = 30;
const ROTATIONS: [&str; 9] = [
    "HeadYaw",
    "HeadPitch",
    "HeadRoll",
    "LeftEyeYaw",
    "LeftEyePitch",
    "LeftEyeRoll",
    "RightEyeYaw",
    "RightEyePitch",
    "RightEyeRoll",
];

/// What the take shows of a column, at a time in seconds.
fn value(name: &str, time: f32) -> f32 {
    match name {
        "jawOpen" => 0.5 - 0.5 * (time * 2.0).cos(),
        "mouthSmileLeft" => 0.25,
        "browInnerUp" => 0.75,
        "HeadYaw" => 0.3 * time.sin(),
        "HeadPitch" => 0.1,
        "LeftEyeYaw" | "RightEyeYaw" => 0.2,
        _ => 0.0,
    }
}

/// Thirty seconds as the app writes them: 61 columns, timecodes, capitals.
fn write_take(folder: &Path) -> PathBuf {
    let mut text = String::from("Timecode,BlendShapeCount");
    for shape in arkit::SHAPES {
        let _ = write!(text, ",{}{}", shape[..1].to_uppercase(), &shape[1..]);
    }
    ROTATIONS.iter().for_each(|name| text += &format!(",{name}"));
    text.push('\n');
    for frame in 0..=SECONDS * RATE {
        let (second, time) = (frame / RATE, frame as f32 / RATE as f32);
        let _ = write!(text, "17:{:02}:{:02}:{:02}.000,61", 4 + second / 60, second % 60, frame % RATE);
        for name in arkit::SHAPES.iter().chain(&ROTATIONS) {
            let _ = write!(text, ",{:.6}", value(name, time));
        }
        text.push('\n');
    }
    let path = folder.join("take.csv");
    std::fs::write(&path, text).expect("writable");
    path
}

/// Remembers what was said.
#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl Watch for Listener {
    fn event(&self, event: Event<'_>) {
        if let Event::Warning { message } | Event::Note { message } = event {
            self.0.lock().expect("one thread").push(message.into());
        }
    }
}

impl Listener {
    fn line(&self, word: &str) -> String {
        let said = self.0.lock().expect("one thread");
        said.iter().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}: {said:?}")).clone()
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("scratch paths are text").into()
}

/// The faces that can be opened here.
fn faces() -> Vec<(&'static str, Box<dyn Rig>)> {
    let mut faces = vec![("mira", rigs::open("mira", &Silent).expect("embedded").rig)];
    if let Some(data) = shared_data() {
        for name in ["ict", "human"] {
            faces.push((name, rigs::open_real_in(name, &data, &Silent).expect("shared data").rig));
        }
    }
    faces
}

fn bone(rig: &dyn Rig, controls: &Controls, name: &str) -> Affine3A {
    let mut pose = RigPose::default();
    rig.evaluate(controls, &mut pose).expect("a pose");
    pose.global.0[rig.skeleton().and_then(|skeleton| skeleton.find(name)).expect(name)]
}

/// By how much a bone turned in the world.
fn turn(rig: &dyn Rig, controls: &Controls, name: &str) -> Quat {
    let (now, rest) = (bone(rig, controls, name), bone(rig, &rig.specs().defaults(), name));
    Quat::from_mat3a(&(now.matrix3 * rest.matrix3.inverse())).normalize()
}

#[test]
fn a_take_plays_on_every_face() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let take = write_take(folder.path());
    for (name, rig) in faces() {
        let heard = Listener::default();
        let clip = resolve(rig.as_ref(), &text(&take), &heard).expect("a take");
        assert_eq!((clip.name.as_str(), clip.rate, clip.duration), ("take", Some(60.0), 30.0), "{name}");
        assert!(heard.line("rest:").contains("controls of"), "what the file does not move is said");

        let frames = clip.sample(rig.specs(), 60.0).expect("frames").frames;
        assert_eq!(frames.len(), SECONDS * RATE + 1);
        let control = |shape: &str| {
            let found = |spec: &str| arkit::canonical(spec) == Some(shape);
            rig.specs().iter().position(|spec| found(&spec.name))
        };
        for (frame, controls) in frames.iter().enumerate().step_by(97) {
            let time = frame as f32 / RATE as f32;
            for shape in arkit::SHAPES {
                if let Some(control) = control(shape) {
                    let miss = (controls.0[control] - value(shape, time)).abs();
                    assert!(miss < 2e-5, "{name}, {shape}, {time} s: {miss}");
                }
            }
        }
        assert!(control("jawOpen").is_some() && control("mouthSmileLeft").is_some(), "{name}");
        // Where a rig has both halves of a brow, both go up.
        let half = rig.specs().find("browInnerUp_L").or(rig.specs().find("browInnerUp"));
        assert_eq!(half.map(|control| frames[5].0[control]), Some(0.75), "{name}");
    }
}

#[test]
fn the_head_turns_as_the_phone_saw_it_and_eyes_look_once() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let take = write_take(folder.path());
    let time = 1.5f32;
    let want = Quat::from_rotation_y(value("HeadYaw", time)) * Quat::from_rotation_x(0.1);
    for (name, rig) in faces() {
        let rig = rig.as_ref();
        let clip = resolve(rig, &text(&take), &Silent).expect("a take");
        let controls = clip.at([f64::from(time)], rig.specs()).expect("a moment").remove(0);
        let head = turn(rig, &controls, "head");
        assert!(head.angle_between(want) < 0.02, "{name}: {head} instead of {want}");
        // Gaze shapes of these two turn the eyes, and rest in this take: the rotations would turn them twice.
        if let Some(eye) = match name {
            "mira" => Some("eye_L"),
            "ict" => Some("eye_l"),
            _ => None,
        } {
            assert!(turn(rig, &controls, eye).angle_between(head) < 0.02, "{name}");
        }
    }

    // A puppet of bones alone, whose head lies on its side in axes of its own.
    let bone = |name: &str, parent, rotation: Quat, translation: Vec3| Bone {
        name: name.into(),
        parent,
        rest: JointTransform { rotation, translation, scale: Vec3::ONE },
    };
    let skeleton = Skeleton::new(vec![
        bone("spine", None, Quat::from_rotation_z(0.7), Vec3::Y * 50.0),
        bone("Head", Some(0), Quat::from_rotation_x(1.1), Vec3::Y * 10.0),
        bone("LeftEye", Some(1), Quat::from_rotation_y(-0.4), Vec3::Z * 3.0),
    ])
    .expect("a tree");
    let positions: Vec<Vec3> = (0..3).map(|bone| skeleton.rest_global()[bone].translation.into()).collect();
    let mesh = MeshParts { positions, faces: vec![Face::triangle(0, 1, 2)], ..MeshParts::default() };
    let rows: Vec<Vec<(u16, f32)>> = (0..3).map(|bone| vec![(bone, 1.0)]).collect();
    let weights = SkinWeights::from_rows(&rows, 3).expect("one bone each");
    let (mesh, puppet) = (mesh.build().expect("a triangle"), folder.path().join("puppet.glb"));
    let scene = GltfScene { skin: Some((&skeleton, &weights)), ..GltfScene::new("puppet", &mesh) };
    write_glb(&puppet, &scene).expect("writable");
    let rig = rigs::open(&text(&puppet), &Silent).expect("a rig").rig;
    let heard = Listener::default();
    let clip = resolve(rig.as_ref(), &text(&take), &heard).expect("a take");
    let controls = clip.at([f64::from(time)], rig.specs()).expect("a moment").remove(0);
    let head = turn(rig.as_ref(), &controls, "Head");
    assert!(head.angle_between(want) < 1e-3, "{head} instead of {want}");
    // The eye turns in its head, which is turned already.
    let eye = turn(rig.as_ref(), &controls, "LeftEye");
    assert!(eye.angle_between(want * Quat::from_rotation_y(0.2)) < 1e-3, "{eye}");
    assert!(heard.line("match no control").contains("55 of 61 names"), "52 shapes and the right eye");
}

#[test]
fn a_clip_of_another_file_moves_bones_of_the_same_name() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (file, clip) in [
        ("gltf/Fox/Fox.glb", "Run"),
        ("kaykit/Rogue.glb", "Walking_A"),
        ("gltf/RobotExpressive.glb", "Dance"),
    ] {
        let path = text(&data.join(file));
        let rig = rigs::open(&path, &Silent).expect("a rig").rig;
        let rig = rig.as_ref();
        let own = rig.find_clip(clip).unwrap_or_else(|| {
            panic!("{file} has {:?}", rig.clips().iter().map(|c| &c.name).collect::<Vec<_>>())
        });
        let motion = folder.path().join("motion.bvh");
        let config = ConvertConfig {
            input: path.clone(),
            output: motion.clone(),
            clip: Some(clip.into()),
            ..ConvertConfig::default()
        };
        // One of them is scaled, which a motion file cannot say.
        let written = convert(&config, &Silent);
        assert_eq!(written.is_ok(), file != "gltf/RobotExpressive.glb", "{file}");
        let sources = [(true, format!("{path}:{clip}"), 1e-5), (written.is_ok(), text(&motion), 2e-3)];
        let (low, high) = rig.mesh().bounds();
        let size = low.distance(high);
        for (_, source, tolerance) in sources.into_iter().filter(|(there, _, _)| *there) {
            let found = resolve(rig, &source, &Silent).unwrap_or_else(|error| panic!("{error}"));
            let time = f64::from(own.duration) * 0.4;
            let time = (time * f64::from(own.own_rate())).round() / f64::from(own.own_rate());
            let vertices = |clip: &understudy_core::Clip| -> Vec<Vec3> {
                let controls = clip.at([time], rig.specs()).expect("a moment").remove(0);
                let mut pose = RigPose::default();
                rig.evaluate(&controls, &mut pose).expect("a pose");
                pose.vertices
            };
            let (a, b) = (vertices(&found), vertices(own));
            let worst = a.iter().zip(&b).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            let moved = a.iter().zip(rig.mesh().positions()).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
            assert!(
                worst <= tolerance * size && moved > 0.01 * size,
                "{source}: {worst} cm apart, {moved} cm from rest"
            );
        }
    }
}

#[test]
fn what_does_not_match_is_said() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let rig = rigs::open("mira", &Silent).expect("embedded").rig;
    let rig = rig.as_ref();
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("writable");
        text(&path)
    };
    let heard = Listener::default();
    let some = write("some.csv", "time,JAWOPEN,Sparkle\n0,0.5,1\n1,7,1\n");
    let clip = resolve(rig, &some, &heard).expect("one name fits");
    assert_eq!((clip.curves.len(), clip.rate), (1, Some(1.0)));
    assert!(heard.line("match no control").ends_with("1 of 2 names match no control of 'mira': Sparkle"));
    assert!(heard.line("ranges").contains("1 values were brought back"));

    for (file, content, word) in [
        ("none.csv", "Sparkle,Glow\n0,1\n", "nothing in it matches a control of 'mira': Sparkle, Glow"),
        ("bad.csv", "time,jawOpen\n0,x\n", "line 2, column 2: 'x' is not a number"),
        ("mesh.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "has no animation"),
    ] {
        let error = resolve(rig, &write(file, content), &Silent).expect_err(word);
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    }
    for (name, word) in [("roarr", "did you mean 'roar'?"), ("absent.csv", "absent.csv")] {
        let error = resolve(rig, name, &Silent).expect_err(word);
        assert!(error.is_bad_input() && error.to_string().contains(word), "{error}");
    }
}
