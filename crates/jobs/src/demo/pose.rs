//! Posing by hand in the demo: Rook squats with locked feet and reaches, and Mira smiles by points of her mouth and brows, which her
//! skin twin has learned to follow.

use super::DemoConfig;
use super::cast::save;
use crate::pose::{PoseConfig, PoseReport, handles, pose};
use crate::stage::{Shot, Stage, View};
use crate::twin::ik::{LearnIkConfig, LearnIkReport, learn_ik};
use crate::{JobError, Watch, rigs};
use serde::Serialize;
use std::path::Path;
use understudy_report::html::{Cell, Column, Section, Table};
use understudy_rigs::{Rig, RigPose};

/// Points of a smile, and how far each goes from where it rests, cm.
const SMILE: [(&str, [f32; 3]); 4] = [
    ("mouth_corner_L", [0.35, 0.45, 0.0]),
    ("mouth_corner_R", [-0.35, 0.45, 0.0]),
    ("brow_L_3", [0.0, 0.3, 0.0]),
    ("brow_R_3", [0.0, 0.3, 0.0]),
];

/// Points of Mira, and what became of both poses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandPoses {
    /// How her twin learned to follow points.
    pub learned: LearnIkReport,
    /// Rook by his handles.
    pub body: PoseReport,
    /// Mira by her points.
    pub face: PoseReport,
}

/// `skin`: the twin of hers that learns to follow points.
pub(super) fn show(
    config: &DemoConfig,
    skin: &Path,
    watch: &dyn Watch,
) -> Result<(HandPoses, Section), JobError> {
    let squat = PoseConfig {
        rig: "rook".into(),
        reach: vec![
            ("torso".into(), vec![0.0, 84.0, 2.0]),
            ("hand_L".into(), vec![45.0, 120.0, 35.0]),
            ("hand_R".into(), vec![-30.0, 95.0, 40.0]),
        ],
        lock: vec!["foot_L".into(), "foot_R".into()],
        ..PoseConfig::default()
    };
    let body = pose(&squat, watch)?;
    let mut teaching =
        LearnIkConfig::new(skin, config.output.join("data/mira"), config.output.join("mira-follows.twin"));
    teaching.settings.steps = config.face_steps[0].div_ceil(4);
    teaching.threads = config.threads;
    let learned = learn_ik(&teaching, watch)?;
    let mut smile = PoseConfig { rig: learned.output.display().to_string(), ..PoseConfig::default() };
    let rest = handles(&smile, watch)?;
    for (name, by) in SMILE {
        let point = rest.iter().find(|facts| facts.name == name);
        let point = point.ok_or_else(|| JobError::Machine(format!("mira has no point '{name}'")))?;
        let place = (0..3).map(|axis| point.rest[axis] + by[axis]).collect();
        smile.points.push((name.into(), place));
    }
    let face = pose(&smile, watch)?;
    let mut table = Table::new([
        Column::text("handle or point"),
        Column::text("where it should be, cm"),
        Column::number("mm from there", 2),
    ]);
    for reached in body.frames.iter().chain(&face.frames).flatten() {
        let [x, y, z] = reached.target;
        let place = format!("{x:.1}, {y:.1}, {z:.1}");
        let distance = Cell::from(f64::from(reached.distance_mm));
        table = table.row([Cell::from(reached.handle.clone()), Cell::from(place), distance]);
    }
    let mut section = Section::new("Posed by hand")
        .paragraph(format!(
            "Rook by his torso and hands, his feet locked to the ground, in closed form. Mira by {} of {} points: her skin twin \
             learned to follow them in {:.0} s, and the rig itself plays the controls that come out.",
            SMILE.len(),
            learned.points,
            learned.seconds
        ))
        .table(table);
    for (name, report, view, caption) in [
        ("rook", &body, "three-quarter", "Rook squats and reaches; his feet stay where they stood."),
        ("mira", &face, "front", "Mira smiles by the corners of her mouth and her brows."),
    ] {
        let rig = rigs::open(name, watch)?.rig;
        let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: config.size, dark: false };
        let shots = [shot(rig.as_ref(), None, "rest")?, shot(rig.as_ref(), Some(report), "posed")?];
        let sheet = stage.sheet(&format!("{name}, posed by hand"), "", &shots, &[View::named(view)]);
        save(&config.output, &format!("{name}-posed"), &sheet)?;
        section = section.picture(&sheet, caption);
    }
    Ok((HandPoses { learned, body, face }, section))
}

/// A rig at rest, or with the controls that came out.
fn shot(rig: &dyn Rig, report: Option<&PoseReport>, caption: &str) -> Result<Shot, JobError> {
    let set = report.into_iter().flat_map(|report| &report.controls);
    let controls = rig.specs().with(set.map(|(name, value)| (name.as_str(), *value)));
    let controls = controls.map_err(JobError::controls(rig.name(), rig.specs()))?;
    let mut out = RigPose::default();
    rig.evaluate(&controls, &mut out).map_err(JobError::rig(rig.name()))?;
    Ok(Shot { vertices: out.vertices, caption: caption.into() })
}
