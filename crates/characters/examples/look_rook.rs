//! Looks at Rook: rest from four sides, a sheet of poses and a sheet a clip, as PNG files.
//! `cargo run -p understudy-characters --example look_rook -- FOLDER [rest|close|joints|poses|clips]…`

use std::error::Error;
use std::path::Path;
use understudy_characters::rook;
use understudy_core::{Controls, Vec3};
use understudy_report::Picture;
use understudy_report::raster::{Actor, Camera, Ground, RenderSettings, bounds, render};
use understudy_rigs::{Rig, RigPose, StackRig};

type Pose = (&'static str, &'static [(&'static str, f32)]);

const POSES: [Pose; 12] = [
    ("elbows", &[("elbow_l.bend", 120.0), ("elbow_r.bend", 90.0), ("wrist_r.twist", 60.0)]),
    ("overhead", &[("shoulder_l.up", 100.0), ("clavicle_l.up", 25.0), ("shoulder_r.up", 60.0)]),
    ("down", &[("shoulder_l.up", -38.0), ("shoulder_r.up", -38.0), ("elbow_r.bend", 25.0)]),
    ("forward", &[("shoulder_l.forward", 90.0), ("shoulder_r.forward", 60.0), ("elbow_r.bend", 60.0)]),
    ("knee", &[("hip_l.forward", 90.0), ("knee_l.bend", 120.0)]),
    ("knees", &[("knee_l.bend", 120.0), ("hip_r.forward", 40.0), ("knee_r.bend", 60.0)]),
    ("split", &[("hip_l.out", 45.0), ("hip_r.forward", -30.0), ("hip_r.out", 10.0)]),
    (
        "bow",
        &[
            ("hips.pitch", 25.0),
            ("spine_1.bend", 18.0),
            ("spine_3.bend", 20.0),
            ("chest.bend", 18.0),
            ("head.nod", 20.0),
        ],
    ),
    (
        "twist",
        &[
            ("spine_1.turn", 12.0),
            ("spine_3.turn", 18.0),
            ("chest.turn", 18.0),
            ("head.turn", 40.0),
            ("neck.turn", 20.0),
        ],
    ),
    (
        "fist",
        &[
            ("index_1.bend", 80.0),
            ("index_2.bend", 95.0),
            ("index_3.bend", 60.0),
            ("middle_1.bend", 80.0),
            ("middle_2.bend", 95.0),
            ("middle_3.bend", 60.0),
            ("ring_1.bend", 80.0),
            ("ring_2.bend", 95.0),
            ("ring_3.bend", 60.0),
            ("pinky_1.bend", 80.0),
            ("pinky_2.bend", 95.0),
            ("pinky_3.bend", 60.0),
            ("thumb_1.bend", 25.0),
            ("thumb_2.bend", 45.0),
            ("thumb_3.bend", 40.0),
        ],
    ),
    ("wind", &[("hem_flare", 1.0), ("coat_wind_z", -0.8), ("hood_forward", 0.8)]),
    (
        "kneel",
        &[("hip_l.forward", 95.0), ("knee_l.bend", 100.0), ("hip_r.forward", 5.0), ("knee_r.bend", 110.0)],
    ),
];

fn posed(rig: &StackRig, changes: &[(&str, f32)]) -> Result<Vec<Vec3>, Box<dyn Error>> {
    let mut full = Vec::new();
    for &(name, value) in changes {
        let sided = rig.specs().find(name).is_none();
        let (joint, motion) = name.split_once('.').unwrap_or((name, ""));
        if sided {
            full.extend(["l", "r"].map(|side| (format!("{joint}_{side}.{motion}"), value)));
        } else {
            full.push((name.to_string(), value));
        }
    }
    let controls = rig.specs().with(full.iter().map(|(name, value)| (name.as_str(), *value)))?;
    evaluate(rig, &controls)
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
    let settings = RenderSettings {
        width: size.0,
        height: size.1,
        ground: Ground::At(0.0),
        ..RenderSettings::default()
    };
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

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("give a folder")?;
    let wants = |what: &str| arguments.len() == 1 || arguments.iter().any(|a| a == what);
    std::fs::create_dir_all(folder)?;
    let write = |name: &str, picture: &Picture| {
        std::fs::write(Path::new(folder).join(format!("{name}.png")), picture.to_png())
    };
    let rig = rook::build()?;
    let rest = evaluate(&rig, &rig.specs().defaults())?;
    if wants("rest") {
        let (low, high) = (Vec3::new(-78.0, 0.0, -40.0), Vec3::new(78.0, 191.0, 40.0));
        let views: Vec<Picture> = [0.0, 40.0, 90.0, 180.0]
            .iter()
            .map(|yaw| shot(&rig, &rest, &Camera::framing(low, high, *yaw, 6.0, 0.8), (560, 700)))
            .collect();
        write("rest", &sheet(&views, 4))?;
    }
    if wants("close") {
        let look = |from: Vec3, at: Vec3, angle: f32| {
            shot(&rig, &rest, &Camera::looking_at(from, at, angle, 1.0), (600, 600))
        };
        let head = Vec3::new(0.0, 172.0, 0.0);
        let hand = Vec3::new(64.0, 104.0, 3.0);
        let chest = Vec3::new(0.0, 130.0, 0.0);
        let boots = Vec3::new(0.0, 30.0, 0.0);
        let views = [
            look(head + Vec3::new(30.0, 10.0, 150.0), head, 18.0),
            look(head + Vec3::new(140.0, 5.0, 60.0), head, 18.0),
            look(hand + Vec3::new(60.0, 60.0, 70.0), hand, 20.0),
            look(hand + Vec3::new(-60.0, -60.0, 60.0), hand, 20.0),
            look(chest + Vec3::new(40.0, 20.0, 180.0), chest, 25.0),
            look(boots + Vec3::new(120.0, 30.0, 140.0), boots, 25.0),
        ];
        write("close", &sheet(&views, 3))?;
    }
    if wants("joints") {
        // Pose, camera offset and target.
        let views: [(usize, [f32; 3], [f32; 3]); 9] = [
            (0, [60.0, 40.0, 120.0], [30.0, 130.0, 5.0]),
            (0, [100.0, 30.0, -90.0], [30.0, 130.0, 5.0]),
            (1, [20.0, 20.0, 150.0], [15.0, 155.0, 0.0]),
            (1, [20.0, 30.0, -150.0], [15.0, 155.0, 0.0]),
            (3, [110.0, 60.0, 100.0], [15.0, 145.0, 5.0]),
            (4, [110.0, 20.0, 110.0], [8.0, 75.0, 20.0]),
            (7, [140.0, 40.0, 70.0], [0.0, 120.0, 20.0]),
            (9, [-20.0, 50.0, 70.0], [64.0, 104.0, 3.0]),
            (11, [110.0, 10.0, -110.0], [0.0, 70.0, 0.0]),
        ];
        let mut pictures = Vec::new();
        for (pose, from, at) in views {
            let vertices = posed(&rig, POSES[pose].1)?;
            let at = Vec3::from(at);
            let camera = Camera::looking_at(at + Vec3::from(from), at, 26.0, 1.0);
            pictures.push(shot(&rig, &vertices, &camera, (520, 520)));
        }
        write("joints", &sheet(&pictures, 3))?;
    }
    if wants("poses") {
        for (name, yaw) in [("poses_front", 30.0), ("poses_back", 205.0)] {
            let mut pictures = Vec::new();
            for (_, changes) in POSES {
                let vertices = posed(&rig, changes)?;
                let (low, high) = (Vec3::new(-62.0, 5.0, -40.0), Vec3::new(62.0, 200.0, 40.0));
                pictures.push(shot(&rig, &vertices, &Camera::framing(low, high, yaw, 8.0, 0.8), (480, 600)));
            }
            write(name, &sheet(&pictures, 6))?;
        }
    }
    if wants("clips") {
        for clip in rig.clips() {
            let frames = clip.sample(rig.specs(), 30.0)?.frames;
            let mut all = Vec::new();
            for index in 0..16 {
                all.push(evaluate(&rig, &frames[index * (frames.len() - 1) / 15])?);
            }
            let (low, high) = bounds(&all.concat()).ok_or("no points")?;
            for (view, yaw) in [("front", 30.0), ("side", 90.0)] {
                let camera = Camera::framing(low, high, yaw, 6.0, 0.75);
                let pictures: Vec<Picture> =
                    all.iter().map(|vertices| shot(&rig, vertices, &camera, (300, 400))).collect();
                write(&format!("clip_{}_{view}", clip.name), &sheet(&pictures, 8))?;
            }
        }
    }
    Ok(())
}
