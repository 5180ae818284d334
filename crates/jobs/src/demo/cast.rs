//! The characters on the demo's page: the rest pose, a sheet of every clip, and how far the clips move the
//! vertices.

use super::DemoConfig;
use crate::render::clip_moments;
use crate::stage::{Shot, Stage, View};
use crate::{Event, JobError, Watch};
use std::path::Path;
use understudy_core::{Clip, Controls, metrics};
use understudy_io::write_atomic;
use understudy_report::Picture;
use understudy_report::html::Section;
use understudy_report::plot::{Histogram, LinePlot, Series};
use understudy_rigs::{Rig, RigPose};

/// Frames a contact sheet.
const FRAMES: usize = 8;

/// Three views of the rest pose, a sheet of every clip, and how far the clips move the vertices.
pub(super) fn show_character(
    rig: &dyn Rig,
    config: &DemoConfig,
    watch: &dyn Watch,
) -> Result<Section, JobError> {
    let (name, out) = (rig.name(), &config.output);
    let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: config.size, dark: false };
    let views = ["front", "three-quarter", "side"].map(View::named);
    let mut pose = RigPose::default();
    rig.evaluate(&rig.specs().defaults(), &mut pose).map_err(JobError::rig(name))?;
    let rest = [Shot { vertices: pose.vertices.clone(), caption: "rest".into() }];
    let what = format!("drawing {name}");
    let clips: Vec<&Clip> = rig.clips().iter().filter(|clip| !clip.is_for_motion()).collect();
    watch.event(Event::Started { what: &what, total: clips.len() as u64 + 1, unit: "sheets" });
    let picture = stage.sheet(name, "rest pose", &rest, &views);
    save(out, &format!("{name}-rest"), &picture)?;
    let mut section = Section::new(capitalised(name)).picture(&picture, "The rest pose from three views.");
    let mut motion =
        LinePlot::new("How far vertices move").x_label("seconds").y_label("mean distance from rest, cm");
    let mut displacements = Vec::new();
    for (index, clip) in clips.into_iter().enumerate() {
        let shots = clip_shots(rig, clip)?;
        let sheet =
            stage.sheet(&format!("{name}, {}", clip.name), "", &shots, &[View::named("three-quarter")]);
        save(out, &format!("{name}-{}", clip.name), &sheet)?;
        section = section.picture(&sheet, &format!("{}, {:.1} s.", clip.name, clip.duration));
        let (curve, distances) = clip_motion(rig, clip)?;
        motion = motion.series(Series::new(clip.name.clone(), curve));
        displacements.extend(distances);
        watch.event(Event::Step { done: index as u64 + 2 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    let histogram = Histogram::new("Distance of a vertex from rest", "cm, all clips", &displacements);
    Ok(section
        .plot(&motion, "Mean over all vertices, frame by frame.")
        .plot(&histogram, "Vertices of all frames of all clips, every fortieth."))
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Writes a picture beside the page.
pub(super) fn save(out: &Path, name: &str, picture: &Picture) -> Result<(), JobError> {
    Ok(write_atomic(&out.join("pictures").join(format!("{name}.png")), &picture.to_png())?)
}

fn clip_shots(rig: &dyn Rig, clip: &Clip) -> Result<Vec<Shot>, JobError> {
    let mut pose = RigPose::default();
    let shoot = |(controls, caption): (Controls, String)| {
        rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
        Ok(Shot { vertices: pose.vertices.clone(), caption })
    };
    clip_moments(rig, clip, None, Some(FRAMES))?.into_iter().map(shoot).collect()
}

/// Mean distance from rest at every fifth frame, and some of the single distances.
fn clip_motion(rig: &dyn Rig, clip: &Clip) -> Result<(Vec<[f64; 2]>, Vec<f64>), JobError> {
    let failed = JobError::rig(rig.name());
    let frames = clip.sample(rig.specs(), 30.0).map_err(|error| failed(error.into()))?;
    let rest = rig.mesh().positions();
    let (mut curve, mut distances) = (Vec::new(), Vec::new());
    let mut pose = RigPose::default();
    for (index, controls) in frames.frames.iter().enumerate().step_by(5) {
        rig.evaluate(controls, &mut pose).map_err(&failed)?;
        let misses = metrics::distances(&pose.vertices, rest);
        let mean = misses.iter().map(|d| f64::from(*d)).sum::<f64>() / misses.len() as f64;
        curve.push([f64::from(index as f32 / frames.rate), mean]);
        distances.extend(misses.iter().step_by(40).map(|d| f64::from(*d)));
    }
    Ok((curve, distances))
}
