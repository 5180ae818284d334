//! Makes the pictures of `docs/guides/when-a-twin-pays.md`: what errors of 0.1, 0.5 and 2 mm look like.
//!
//! ```text
//! cargo run -p understudy-jobs --example visible_errors -- docs/pictures
//! ```
//!
//! The error is that of skinning fitted to Mira's roar (`learn lbs`), in its widest frame, scaled to a mean of the wanted
//! size: where an approximation is wrong and how neighbours differ is real, its size is chosen.

use std::error::Error;
use std::path::Path;
use understudy_core::Vec3;
use understudy_core::metrics::distances;
use understudy_jobs::{Silent, rigs};
use understudy_learn::decomposition::{DecompositionSettings, decompose};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Sheet};
use understudy_rigs::RigPose;

/// Side of a picture, pixels.
const SIZE: usize = 480;
/// Bones of the skinning: few enough that it is wrong everywhere.
const BONES: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("visible_errors FOLDER")?;
    let rig = rigs::open("mira", &Silent)?.rig;
    let clip = rig.find_clip("roar").ok_or("mira roars")?;
    let mut frames = Vec::new();
    for controls in clip.sample(rig.specs(), 15.0)?.frames {
        let mut pose = RigPose::default();
        rig.evaluate(&controls, &mut pose)?;
        frames.push(pose.vertices);
    }
    let rest = rig.mesh().positions();
    let skinning = DecompositionSettings { bones: BONES, ..DecompositionSettings::default() };
    let views: Vec<&[Vec3]> = frames.iter().map(Vec::as_slice).collect();
    let fitted = decompose(rest, &views, &skinning, |_| true)?;
    let mean_mm = |frame: usize| {
        let misses = distances(&fitted.frame(frame), &frames[frame]);
        10.0 * misses.iter().sum::<f32>() / misses.len() as f32
    };
    let widest =
        (0..frames.len()).max_by(|a, b| mean_mm(*a).total_cmp(&mean_mm(*b))).ok_or("a clip has frames")?;
    let (truth, predicted, mean_mm) = (&frames[widest], fitted.frame(widest), mean_mm(widest));
    let misses = distances(&predicted, truth);
    eprintln!("frame {widest}: skinning with {BONES} bones is {mean_mm:.3} mm off on average");

    let settings = RenderSettings { width: SIZE, height: SIZE, ..RenderSettings::default() };
    let camera = Camera::framing_points(truth, 22.0, 4.0, 1.0);
    for want_mm in [0.1f32, 0.5, 2.0] {
        let scale = want_mm / mean_mm;
        let wrong: Vec<Vec3> = truth.iter().zip(&predicted).map(|(t, p)| *t + (*p - *t) * scale).collect();
        let errors: Vec<f32> = misses.iter().map(|miss| 10.0 * miss * scale).collect();
        let heat = HeatScale::covering(&errors, 99.0, "mm");
        let draw = |vertices: &[Vec3], heated: bool| {
            let mut actor = Actor::new(rig.mesh().faces(), vertices);
            actor = match (heated, rig.colours()) {
                (true, _) => actor.heat(&errors, &heat),
                (false, Some(colours)) => actor.colours(colours),
                (false, None) => actor,
            };
            render(&[actor], &camera, &settings)
        };
        let sheet = Sheet::new(3)
            .title(format!("A mean error of {want_mm} mm"))
            .cell(draw(truth, false), "original")
            .cell(draw(&wrong, false), format!("{want_mm} mm off on average"))
            .cell(draw(&wrong, true), "where")
            .colour_bar(&heat)
            .build();
        let path = Path::new(&folder).join(format!("error-{want_mm}mm.png"));
        understudy_io::write_atomic(&path, &sheet.to_png())?;
        eprintln!("{}", path.display());
    }
    Ok(())
}
