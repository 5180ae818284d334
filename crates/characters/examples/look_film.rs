//! Looks at the film rigs on real meshes: rest, poses and clips of `ict` and `human` as PNG sheets.
//! `cargo run -p understudy-characters --example look_film -- FOLDER [face|body]…`; needs the shared data.

use std::error::Error;
use std::path::{Path, PathBuf};
use understudy_characters::film::{self, FaceHints};
use understudy_core::{Controls, Vec3};
use understudy_report::Picture;
use understudy_report::raster::{Actor, Camera, Ground, RenderSettings, render};
use understudy_rigs::{Rig, RigPose, StackRig};

type Changes = &'static [(&'static str, f32)];

const FACES: [(&str, Changes); 16] = [
    ("rest", &[]),
    ("jaw", &[("jawOpen", 1.0)]),
    ("blink", &[("eyeBlink_L", 1.0), ("eyeBlink_R", 0.5)]),
    (
        "shut and squint",
        &[("eyeBlink_L", 1.0), ("eyeSquint_L", 1.0), ("eyeBlink_R", 1.0), ("eyeLookDown_R", 1.0)],
    ),
    (
        "smile",
        &[
            ("mouthSmile_L", 1.0),
            ("mouthSmile_R", 1.0),
            ("cheekSquint_L", 0.7),
            ("cheekSquint_R", 0.7),
            ("eyeSquint_L", 0.6),
            ("eyeSquint_R", 0.6),
        ],
    ),
    (
        "laugh",
        &[
            ("mouthSmile_L", 1.0),
            ("mouthSmile_R", 1.0),
            ("jawOpen", 0.6),
            ("eyeSquint_L", 0.8),
            ("eyeSquint_R", 0.8),
        ],
    ),
    (
        "surprise",
        &[
            ("browInnerUp_L", 1.0),
            ("browInnerUp_R", 1.0),
            ("browOuterUp_L", 1.0),
            ("browOuterUp_R", 1.0),
            ("eyeWide_L", 1.0),
            ("eyeWide_R", 1.0),
            ("jawOpen", 0.5),
        ],
    ),
    (
        "anger",
        &[
            ("browDown_L", 1.0),
            ("browDown_R", 1.0),
            ("noseSneer_L", 1.0),
            ("noseSneer_R", 1.0),
            ("mouthFrown_L", 0.8),
            ("mouthFrown_R", 0.8),
        ],
    ),
    ("closed", &[("jawOpen", 1.0), ("mouthClose", 1.0)]),
    ("zip", &[("jawOpen", 0.5), ("lips_zip_l", 0.6), ("lips_zip_r", 0.6)]),
    ("half zip", &[("jawOpen", 0.5), ("lips_zip_l", 0.8)]),
    ("pucker", &[("mouthPucker", 1.0), ("mouthFunnel", 0.5)]),
    ("gaze", &[("eye_l.yaw", 25.0), ("eye_r.yaw", 25.0), ("eye_l.pitch", -15.0), ("eye_r.pitch", -15.0)]),
    ("down", &[("eyeLookDown_L", 1.0), ("eyeLookDown_R", 1.0), ("head.nod", 10.0)]),
    ("squash", &[("squash", -1.0), ("jawOpen", 0.4), ("eyeBlink_L", 0.7)]),
    ("stretch", &[("squash", 1.0), ("head.turn", 35.0), ("twist", 0.6), ("jawOpen", 0.7)]),
];

const BODIES: [(&str, Changes); 12] = [
    ("rest", &[]),
    ("stand", &[("shoulder.up", -30.0), ("elbow.bend", -30.0), ("hip.out", -10.0)]),
    ("arms up", &[("shoulder.up", 90.0), ("clavicle.up", 20.0), ("elbow.bend", -40.0)]),
    ("forward", &[("shoulder.forward", 80.0), ("elbow.bend", -40.0)]),
    ("elbows", &[("elbow.bend", 80.0), ("wrist.twist", 40.0)]),
    ("knees", &[("hip.forward", 80.0), ("knee.bend", 120.0)]),
    ("split", &[("hip.out", 35.0), ("hip_l.forward", 60.0), ("hip_r.forward", -25.0)]),
    (
        "bow",
        &[
            ("root.pitch", 25.0),
            ("spine_1.bend", 16.0),
            ("spine_2.bend", 16.0),
            ("chest.bend", 16.0),
            ("head.nod", 20.0),
        ],
    ),
    (
        "turn",
        &[
            ("spine_1.turn", 10.0),
            ("spine_2.turn", 14.0),
            ("chest.turn", 16.0),
            ("neck.turn", 14.0),
            ("head.turn", 35.0),
        ],
    ),
    (
        "fists",
        &[
            ("index.bend", 70.0),
            ("middle.bend", 70.0),
            ("ring.bend", 70.0),
            ("pinky.bend", 70.0),
            ("thumb.bend", 30.0),
            ("flex", 1.0),
        ],
    ),
    ("breath", &[("breathe", 1.0), ("jawOpen", 1.0), ("mouthSmileLeft", 1.0)]),
    (
        "lean",
        &[
            ("spine_1.lean", 10.0),
            ("spine_2.lean", 12.0),
            ("chest.lean", 12.0),
            ("hip_l.out", 20.0),
            ("ankle.up", -30.0),
        ],
    ),
];

/// Values on a body: both sides where none is named.
fn natural(rig: &StackRig, changes: Changes) -> Result<Controls, Box<dyn Error>> {
    let mut full = Vec::new();
    for (name, value) in changes {
        if rig.specs().find(name).is_some() {
            full.push(((*name).to_string(), *value));
            continue;
        }
        for side in ["l", "r"] {
            let sided = name.split_once('.');
            full.push((
                sided.map_or(format!("{name}_{side}"), |(joint, motion)| format!("{joint}_{side}.{motion}")),
                *value,
            ));
        }
    }
    let mut controls = rig.specs().defaults();
    for (name, value) in full {
        let index = rig.specs().find(&name).ok_or(format!("no control {name}"))?;
        controls.0[index] = value;
    }
    rig.specs().check_range(&controls)?;
    Ok(controls)
}

fn look_at_body(folder: &Path, part: &str) -> Result<(), Box<dyn Error>> {
    let groups = ["body", "helper-l-eye", "helper-r-eye"];
    let real = understudy_io::real::human_with(&data().join("makehuman/human.npz"), &groups)?;
    let rig = film::body("human", real.mesh, real.skeleton, real.weights, Some(real.shapes))?;
    if part == "poses" {
        let all = BODIES.iter().map(|(_, changes)| evaluate(&rig, &natural(&rig, changes)?));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        let points: Vec<Vec3> = all.iter().flatten().copied().collect();
        for (name, yaw) in [("front", 15.0), ("back", 150.0)] {
            let camera = Camera::framing_points(&points, yaw, 5.0, 0.9);
            let pictures: Vec<Picture> = all.iter().map(|v| shot(&rig, v, &camera, (360, 400))).collect();
            std::fs::write(folder.join(format!("human_{name}.png")), sheet(&pictures, 4).to_png())?;
        }
        return Ok(());
    }
    for clip in rig.clips() {
        let picture = frames(&rig, &clip.name, 50.0, (300, 380))?;
        std::fs::write(folder.join(format!("human_{}.png", clip.name)), picture.to_png())?;
    }
    Ok(())
}

fn evaluate(rig: &StackRig, controls: &Controls) -> Result<Vec<Vec3>, Box<dyn Error>> {
    let mut pose = RigPose::default();
    rig.evaluate(controls, &mut pose)?;
    Ok(pose.vertices)
}

fn shot(rig: &StackRig, vertices: &[Vec3], camera: &Camera, size: (usize, usize)) -> Picture {
    let mut actor = Actor::new(rig.mesh().faces(), vertices);
    if let Some(colours) = rig.colours() {
        actor = actor.colours(colours);
    }
    let settings =
        RenderSettings { width: size.0, height: size.1, ground: Ground::None, ..RenderSettings::default() };
    render(&[actor], camera, &settings)
}

fn sheet(pictures: &[Picture], columns: usize) -> Picture {
    let (width, height) = (pictures[0].width(), pictures[0].height());
    let mut sheet = Picture::new(width * columns, height * pictures.len().div_ceil(columns), [255; 4]);
    for (index, picture) in pictures.iter().enumerate() {
        sheet.paste(picture, index % columns * width, index / columns * height);
    }
    sheet
}

/// Poses seen from one camera.
fn poses(
    rig: &StackRig,
    poses: &[(&str, Changes)],
    yaw: f32,
    size: (usize, usize),
) -> Result<Vec<Picture>, Box<dyn Error>> {
    let (low, high) = rig.mesh().bounds();
    let camera = Camera::framing(low, high, yaw, 5.0, size.0 as f32 / size.1 as f32);
    let picture = |(_, changes): &(&str, Changes)| {
        let controls = rig.specs().with(changes.iter().copied())?;
        Ok(shot(rig, &evaluate(rig, &controls)?, &camera, size))
    };
    poses.iter().map(picture).collect()
}

/// Eight moments of a clip.
fn frames(rig: &StackRig, clip: &str, yaw: f32, size: (usize, usize)) -> Result<Picture, Box<dyn Error>> {
    let clip = rig.find_clip(clip).ok_or("no such clip")?;
    let moments = clip.at((0..8).map(|i| f64::from(clip.duration) * f64::from(i) / 7.0), rig.specs())?;
    let moments = moments.iter().map(|controls| evaluate(rig, controls));
    let moments = moments.collect::<Result<Vec<_>, _>>()?;
    let all: Vec<Vec3> = moments.iter().flatten().copied().collect();
    let camera = Camera::framing_points(&all, yaw, 8.0, size.0 as f32 / size.1 as f32);
    let pictures: Vec<Picture> = moments.iter().map(|vertices| shot(rig, vertices, &camera, size)).collect();
    Ok(sheet(&pictures, 4))
}

fn data() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("UNDERSTUDY_DATA").map_or(beside, PathBuf::from)
}

fn look_at_face(folder: &Path, close: bool) -> Result<(), Box<dyn Error>> {
    let real = understudy_io::real::ict(&data().join("ict-facekit/face.npz"))?;
    let rig = film::face("ict", real.mesh, real.shapes, &FaceHints::ict(real.landmarks))?;
    let size = (300, 380);
    if close {
        let camera = Camera::framing(Vec3::new(-6.0, 0.5, 5.0), Vec3::new(6.0, 6.5, 12.0), 15.0, 0.0, 1.6);
        let pictures = FACES[..8].iter().map(|(_, changes)| {
            let controls = rig.specs().with(changes.iter().copied())?;
            Ok(shot(&rig, &evaluate(&rig, &controls)?, &camera, (560, 350)))
        });
        let pictures = pictures.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        std::fs::write(folder.join("ict_close.png"), sheet(&pictures, 3).to_png())?;
        return Ok(());
    }
    for (name, yaw) in [("front", 0.0), ("three_quarter", 40.0)] {
        let pictures = poses(&rig, &FACES, yaw, size)?;
        std::fs::write(folder.join(format!("ict_{name}.png")), sheet(&pictures, 4).to_png())?;
    }
    for clip in rig.clips() {
        let picture = frames(&rig, &clip.name, 20.0, (260, 330))?;
        std::fs::write(folder.join(format!("ict_{}.png", clip.name)), picture.to_png())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: look_film FOLDER [face|body|close]…")?);
    let wanted: Vec<String> = arguments.collect();
    let wants = |what: &str| wanted.is_empty() || wanted.iter().any(|w| w == what);
    std::fs::create_dir_all(&folder)?;
    if wants("face") {
        look_at_face(&folder, false)?;
    }
    if wants("close") {
        look_at_face(&folder, true)?;
    }
    for part in ["poses", "clips"].into_iter().filter(|part| wants("body") || wants(part)) {
        look_at_body(&folder, part)?;
    }
    Ok(())
}
