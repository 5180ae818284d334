//! Makes the picture of `docs/guides/when-a-twin-pays.md`: what errors of 0.1, 0.5 and 2 mm look like.
//!
//! ```text
//! cargo run -p understudy-jobs --example visible_errors -- docs/pictures
//! ```
//!
//! Two errors of the same mean, in the widest frame of Mira's roar: an expression that is too weak, as of a twin that was
//! trained too little (smooth), and what skinning leaves, scaled (neighbours disagree).

use std::error::Error;
use std::path::Path;
use understudy_core::metrics::distances;
use understudy_core::{ControlKind, Controls, Vec3};
use understudy_jobs::{Silent, rigs};
use understudy_learn::decomposition::{DecompositionSettings, decompose};
use understudy_report::Sheet;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_rigs::{Rig, RigPose};

/// Side of a picture, pixels.
const SIZE: usize = 300;
/// Bones of the skinning: few enough that it is wrong everywhere.
const BONES: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("visible_errors FOLDER")?;
    let rig = rigs::open("mira", &Silent)?.rig;
    let clip = rig.find_clip("roar").ok_or("mira roars")?;
    let controls = clip.sample(rig.specs(), 15.0)?.frames;
    let frames = controls.iter().map(|frame| posed(rig.as_ref(), frame)).collect::<Result<Vec<_>, _>>()?;
    let rest = posed(rig.as_ref(), &rig.specs().defaults())?;
    let widest = (0..frames.len()).max_by(|a, b| {
        mean_mm(&weakened(rig.as_ref(), &controls[*a], 1.0).unwrap_or_default(), &frames[*a])
            .total_cmp(&mean_mm(&weakened(rig.as_ref(), &controls[*b], 1.0).unwrap_or_default(), &frames[*b]))
    });
    let widest = widest.ok_or("a clip has frames")?;
    let truth = &frames[widest];
    let skinning = DecompositionSettings { bones: BONES, ..DecompositionSettings::default() };
    let views: Vec<&[Vec3]> = frames.iter().map(Vec::as_slice).collect();
    let skinned = decompose(&rest, &views, &skinning, |_| true)?.frame(widest);

    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    let camera = Camera::framing_points(truth, 22.0, 4.0, 1.0);
    let draw = |vertices: &[Vec3]| {
        let actor = Actor::new(rig.mesh().faces(), vertices);
        let actor = match rig.colours() {
            Some(colours) => actor.colours(colours),
            None => actor,
        };
        render(&[actor], &camera, &settings)
    };
    let labels = ["original", "a smooth error", "neighbours disagree"];
    let mut sheet = Sheet::new(3).title("The same mean error, twice").column_labels(labels);
    for want_mm in [0.1f32, 0.5, 2.0] {
        // The mean grows with the share that is missing: halve the interval.
        let (mut low, mut high) = (0.0f32, 1.0f32);
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            let miss = mean_mm(&weakened(rig.as_ref(), &controls[widest], middle)?, truth);
            if miss < want_mm { low = middle } else { high = middle }
        }
        let smooth = weakened(rig.as_ref(), &controls[widest], low)?;
        let scale = want_mm / mean_mm(&skinned, truth);
        let noisy: Vec<Vec3> = truth.iter().zip(&skinned).map(|(t, p)| *t + (*p - *t) * scale).collect();
        sheet = sheet
            .cell(draw(truth), "")
            .cell(draw(&smooth), format!("{:.1} mm on average", mean_mm(&smooth, truth)))
            .cell(draw(&noisy), format!("{:.1} mm on average", mean_mm(&noisy, truth)));
    }
    let path = Path::new(&folder).join("visible-errors.png");
    understudy_io::write_atomic(&path, &sheet.build().to_png())?;
    eprintln!("{}", path.display());
    Ok(())
}

fn posed(rig: &dyn Rig, controls: &Controls) -> Result<Vec<Vec3>, Box<dyn Error>> {
    let mut pose = RigPose::default();
    rig.evaluate(controls, &mut pose)?;
    Ok(pose.vertices)
}

/// The pose with a share of its expression missing; joints, which carry the head, stay where they are.
fn weakened(rig: &dyn Rig, controls: &Controls, missing: f32) -> Result<Vec<Vec3>, Box<dyn Error>> {
    let value = |(spec, value): (&understudy_core::ControlSpec, &f32)| match spec.kind {
        ControlKind::Number => value + missing * (spec.default - value),
        ControlKind::Joint { .. } => *value,
    };
    posed(rig, &Controls(rig.specs().iter().zip(&controls.0).map(value).collect()))
}

fn mean_mm(a: &[Vec3], b: &[Vec3]) -> f32 {
    10.0 * distances(a, b).iter().sum::<f32>() / b.len().max(1) as f32
}
