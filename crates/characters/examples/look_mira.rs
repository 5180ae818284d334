//! Renders Mira for the eye: rest from several sides, expressions, close-ups and clip frames.

use std::path::{Path, PathBuf};
use understudy_characters::mira;
use understudy_core::Vec3;
use understudy_report::Picture;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_rigs::{Rig, RigPose, StackRig};

type Failure = Box<dyn std::error::Error>;
type Expression<'a> = (&'a str, &'a [(&'a str, f32)]);

const EXPRESSIONS: [Expression; 12] = [
    ("jaw open", &[("jawOpen", 1.0)]),
    ("smile", &[("mouthSmile_*", 1.0), ("cheekSquint_*", 0.6), ("eyeSquint_*", 0.4)]),
    (
        "laugh",
        &[
            ("jawOpen", 0.6),
            ("mouthSmile_*", 1.0),
            ("cheekSquint_*", 0.8),
            ("eyeSquint_*", 0.5),
            ("mouthUpperUp_*", 0.4),
        ],
    ),
    (
        "grumpy",
        &[
            ("browDown_*", 1.0),
            ("browFurrow_*", 0.6),
            ("mouthFrown_*", 1.0),
            ("mouthShrugLower", 0.5),
            ("eyeSquint_*", 0.4),
        ],
    ),
    ("surprise", &[("browUp_*", 1.0), ("eyeWide_*", 1.0), ("jawOpen", 0.6), ("mouthFunnel", 0.5)]),
    (
        "roar",
        &[
            ("jawOpen", 1.0),
            ("browDown_*", 1.0),
            ("noseSneer_*", 1.0),
            ("mouthUpperUp_*", 0.9),
            ("mouthLowerDown_*", 0.7),
            ("mouthStretch_*", 0.6),
            ("eyeSquint_*", 0.6),
        ],
    ),
    ("blink", &[("eyeBlink_*", 1.0)]),
    ("pucker", &[("mouthPucker", 1.0), ("browInnerUp_*", 0.8)]),
    ("puff", &[("cheekPuff_*", 1.0), ("eyeWide_*", 0.4)]),
    (
        "look",
        &[
            ("eyeLookUp_*", 0.8),
            ("eyeLookOut_L", 0.8),
            ("eyeLookIn_R", 0.8),
            ("cornerUp_L", 1.0),
            ("browUp_L", 1.0),
        ],
    ),
    ("squash", &[("headStretch", -0.3), ("mouthStretch_*", 0.7), ("eyeBlink_*", 0.6)]),
    ("tongue", &[("jawOpen", 0.5), ("tongueOut", 1.0), ("eyeBlink_L", 1.0), ("mouthSmile_*", 0.5)]),
];

fn pose(rig: &StackRig, changes: &[(&str, f32)]) -> Result<RigPose, Failure> {
    let mut flat: Vec<(String, f32)> = Vec::new();
    for (name, value) in changes {
        match name.strip_suffix("_*") {
            Some(stem) => flat.extend(["_L", "_R"].map(|side| (format!("{stem}{side}"), *value))),
            None => flat.push(((*name).into(), *value)),
        }
    }
    let controls = rig.specs().with(flat.iter().map(|(name, value)| (name.as_str(), *value)))?;
    let mut out = RigPose::default();
    rig.evaluate(&controls, &mut out)?;
    Ok(out)
}

struct Sheet<'a> {
    rig: &'a StackRig,
    settings: RenderSettings,
    columns: usize,
    shots: Vec<Picture>,
}

impl<'a> Sheet<'a> {
    fn new(rig: &'a StackRig, columns: usize, width: usize, height: usize) -> Self {
        let settings = RenderSettings { width, height, ..RenderSettings::default() };
        Self { rig, settings, columns, shots: Vec::new() }
    }

    fn shoot(&mut self, vertices: &[Vec3], camera: &Camera, clay: bool) {
        let mut actor = Actor::new(self.rig.mesh().faces(), vertices);
        if let (false, Some(colours)) = (clay, self.rig.colours()) {
            actor = actor.colours(colours);
        }
        self.shots.push(render(&[actor], camera, &self.settings));
    }

    fn save(&self, path: &Path) -> Result<(), Failure> {
        let (w, h) = (self.settings.width, self.settings.height);
        let rows = self.shots.len().div_ceil(self.columns);
        let mut sheet = Picture::new(w * self.columns, h * rows, [255; 4]);
        for (index, shot) in self.shots.iter().enumerate() {
            sheet.paste(shot, index % self.columns * w, index / self.columns * h);
        }
        Ok(std::fs::write(path, sheet.to_png())?)
    }
}

fn close(x: f32, y: f32, from: Vec3, angle: f32) -> Camera {
    let target = Vec3::new(x, y, 5.0);
    Camera::looking_at(target + from, target, angle, 0.8)
}

fn main() -> Result<(), Failure> {
    let folder =
        PathBuf::from(std::env::args().nth(1).ok_or("usage: look_mira FOLDER [rest|faces|mouth|clips]")?);
    let what = std::env::args().nth(2).unwrap_or_default();
    let wanted = |name: &str| what.is_empty() || what.contains(name);
    std::fs::create_dir_all(&folder)?;
    let start = std::time::Instant::now();
    let rig = mira::build()?;
    let blend = rig.blendshapes().ok_or("shapes")?;
    eprintln!(
        "{} vertices, {} controls, {} shapes, {} correctives, {} segments, built in {:?}",
        rig.mesh().vertex_count(),
        rig.specs().len(),
        blend.shapes().len(),
        blend.correctives().len(),
        rig.mesh().segments().len(),
        start.elapsed()
    );
    let rest = pose(&rig, &[])?.vertices;
    let start = std::time::Instant::now();
    for _ in 0..20 {
        pose(&rig, EXPRESSIONS[2].1)?;
    }
    eprintln!("evaluate {:?}", start.elapsed() / 20);
    let (low, high) = rig.mesh().bounds();
    if wanted("rest") {
        let mut sheet = Sheet::new(&rig, 3, 560, 700);
        for yaw in [0.0, 35.0, 90.0] {
            sheet.shoot(&rest, &Camera::framing(low, high, yaw, 0.0, 0.8), false);
        }
        sheet.shoot(&rest, &close(0.0, -1.5, Vec3::new(0.0, 0.0, 55.0), 15.0), true);
        sheet.shoot(&rest, &close(3.0, 0.0, Vec3::new(8.0, 4.0, 40.0), 9.0), false);
        sheet.shoot(&rest, &close(0.0, -4.0, Vec3::new(14.0, -6.0, 40.0), 11.0), false);
        sheet.shoot(&rest, &close(6.0, -1.0, Vec3::new(40.0, 0.0, 6.0) - Vec3::Z * 4.0, 22.0), false);
        sheet.shoot(&rest, &close(0.0, -3.5, Vec3::new(10.0, -26.0, 40.0), 8.0), false);
        sheet.shoot(&rest, &close(0.0, 2.0, Vec3::new(20.0, 10.0, -50.0), 26.0), false);
        sheet.save(&folder.join("rest.png"))?;
    }
    let front = close(0.0, -2.5, Vec3::new(12.0, 1.0, 60.0), 19.0);
    if wanted("faces") {
        let mut sheet = Sheet::new(&rig, 4, 400, 480);
        for (_, changes) in EXPRESSIONS {
            sheet.shoot(&pose(&rig, changes)?.vertices, &front, false);
        }
        sheet.save(&folder.join("faces.png"))?;
    }
    if wanted("mouth") {
        let mut sheet = Sheet::new(&rig, 3, 520, 600);
        for (index, x) in [(1, 4.0), (2, 14.0), (5, 4.0), (6, 10.0), (4, 14.0), (7, 20.0)] {
            let camera = if index == 6 {
                close(3.0, 0.0, Vec3::new(x, 0.0, 40.0), 9.0)
            } else {
                close(0.0, -6.0, Vec3::new(x, 0.0, 40.0), 13.0)
            };
            sheet.shoot(&pose(&rig, EXPRESSIONS[index].1)?.vertices, &camera, false);
        }
        sheet.save(&folder.join("mouth.png"))?;
    }
    if wanted("clips") {
        let mut sheet = Sheet::new(&rig, 7, 260, 310);
        for clip in rig.clips() {
            let time = |step: i32| f64::from(clip.duration) * (f64::from(step) + 0.7) / 7.5;
            for controls in clip.at((0..7).map(time), rig.specs())? {
                let mut out = RigPose::default();
                rig.evaluate(&controls, &mut out)?;
                sheet.shoot(&out.vertices, &front, false);
            }
        }
        sheet.save(&folder.join("clips.png"))?;
    }
    Ok(())
}
