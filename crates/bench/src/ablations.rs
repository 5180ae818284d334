//! What each part of our recipes is worth: twins learned without it, or with the paper's choice, from the same poses and
//! weighed on the same clip. The switches are settings of `learn`; no option of the product turns them.

use crate::console::{Console, complain, print, table};
use crate::kept;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::body::{Base, BodyLearning, InputFrame};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::face::FaceLearning;
use understudy_jobs::twin::skin::SkinLearning;

/// Which recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Rook, weighed on his walk.
    Body,
    /// Mira, weighed on her roar.
    Face,
    /// Mira, weighed on her roar.
    Skin,
}

/// What to learn.
#[derive(Debug, Args)]
pub struct AblationArguments {
    kind: Kind,
    /// Poses to learn from.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    poses: u64,
    /// Passes over the poses; of bodies and skins.
    #[arg(long, value_name = "N", default_value_t = 60)]
    epochs: usize,
    /// Steps of the coarse and of the refinement networks; of faces.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    steps: usize,
    /// Folder of datasets and twins.
    #[arg(long, value_name = "DIR", default_value = "target/bench/ablations")]
    folder: PathBuf,
}

type Change<C> = (&'static str, fn(&mut C));

/// Of body twins; the first is ours with as many passes as the others.
const BODY: [Change<BodyLearning>; 10] = [
    ("ours", |_| {}),
    ("rigid base", |c| c.base = Base::Rigid),
    ("bones in their parents' frames", |c| c.settings.frame = InputFrame::Parent),
    ("open seams", |c| c.settings.seam_rings = 0),
    ("borders where bones meet", |c| c.settings.border_rings = 0),
    ("errors at seams count once", |c| c.settings.seam_weight = 1.0),
    ("components about the mean", |c| c.settings.centred = true),
    ("all inputs", |c| c.settings.input_tolerance = 0.0),
    ("128 units everywhere", |c| c.settings.units_per_component = 0),
    ("the paper's recipe", |c| {
        let epochs = c.settings.train.epochs;
        *c = BodyLearning::paper();
        c.settings.train.epochs = epochs;
    }),
];

/// Of face twins; the first is ours with as many steps as the others.
const FACE: [Change<FaceLearning>; 9] = [
    ("ours", |_| {}),
    ("pixels share their weights", |c| (c.settings.untied, c.settings.shared_features) = (false, 0)),
    ("no shared features", |c| c.settings.shared_features = 0),
    ("texture coordinates as they are", |c| c.settings.cut = false),
    ("head motion left to the maps", |c| c.settings.frame = false),
    ("rigid segments follow vertices", |c| c.settings.bodies = false),
    ("estimated regions", |c| c.settings.measured_regions = false),
    ("maps of the paper's sizes", |c| c.settings.fitted_maps = false),
    ("the paper's recipe", |c| {
        let steps = [c.settings.coarse.total(), c.settings.refinement.total()];
        *c = FaceLearning::paper();
        c.settings.coarse = c.settings.coarse.clone().with_total(steps[0]);
        c.settings.refinement = c.settings.refinement.clone().with_total(steps[1]);
    }),
];

/// Of skin twins; the first is ours as it is.
const SKIN: [Change<SkinLearning>; 10] = [
    ("ours", |_| {}),
    ("weights found with rigid bones", |c| {
        c.settings.rounds = [c.settings.rounds[0] + c.settings.rounds[1], 0]
    }),
    ("regression alone", |c| c.settings.widths.clear()),
    ("first layer not sparse", |c| c.settings.train.sparsity = 0.0),
    ("motion of the whole left to the bones", |c| c.settings.frame = false),
    ("four bones per vertex", |c| c.settings.influences = 4),
    ("32 bones", |c| c.settings.bones = 32),
    ("128 bones", |c| c.settings.bones = 128),
    ("16 components", |c| c.settings.components = Some(16)),
    ("hidden layers of 128 and 64", |c| c.settings.widths = vec![128, 64]),
];

/// Learns and weighs every variation, and prints the table.
pub fn run(arguments: &AblationArguments) -> Result<()> {
    let (rig, clip, method) = match arguments.kind {
        Kind::Body => ("rook", "walk", Method::Sparse),
        Kind::Face | Kind::Skin => ("mira", "roar", Method::Noise),
    };
    let at = |name: &str| arguments.folder.join(format!("{rig}-{}-{name}", arguments.poses));
    let (train, test) = (at("train"), at(clip));
    let exclude = if arguments.kind == Kind::Body { Vec::new() } else { vec![clip.to_owned()] };
    let recording = SampleConfig { rig: rig.into(), output: train.clone(), ..SampleConfig::default() };
    sample(
        &SampleConfig { poses: Some(arguments.poses), method: Some(method), exclude, ..recording.clone() },
        &Console,
    )?;
    sample(&SampleConfig { output: test.clone(), clips: vec![clip.into()], ..recording }, &Console)?;
    let variations: Vec<(&str, Learning)> = match arguments.kind {
        Kind::Body => bodies(arguments.epochs).map(|(name, own)| (name, Learning::Body(own))).collect(),
        Kind::Face => faces(arguments.steps).map(|(name, own)| (name, Learning::Face(own))).collect(),
        Kind::Skin => skins(arguments.epochs).map(|(name, own)| (name, Learning::Skin(own))).collect(),
    };
    let weigh = |(name, learning): (&str, Learning)| {
        let kind = learning.name();
        let twin = arguments.folder.join(format!("{rig}-{kind}-{}.twin", name.replace(' ', "-")));
        kept::learned(&twin, &train, learning)?;
        let report = eval(&EvalConfig { twin, test: vec![test.clone()], ..EvalConfig::default() }, &Console)?;
        let figures = &report.methods["twin"];
        let jumps = report.findings.get("seams").and_then(|seams| seams["plain_ratio"].as_f64());
        let row = vec![
            name.to_owned(),
            format!("{:.3}", figures.mean_mm),
            format!("{:.1}", figures.max_mm),
            format!("{:.3}", figures.normal_deg),
            jumps.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
            format!("{:.2}", figures.bytes as f64 / 1e6),
            format!("{:.3}", figures.ms),
        ];
        complain(&row.join("  "));
        Ok(row)
    };
    let rows = variations.into_iter().map(weigh).collect::<Result<Vec<_>>>()?;
    let budget = match arguments.kind {
        Kind::Face => format!("{} steps of either stage", arguments.steps),
        Kind::Body | Kind::Skin => format!("{} passes", arguments.epochs),
    };
    print(&format!(
        "{rig}, {} poses, {budget}, weighed on the clip '{clip}', which is for validation",
        arguments.poses
    ));
    print(&table(&["", "mean mm", "max mm", "normals °", "seams", "MB", "ms per pose"], &rows));
    print(
        "seams: how far the error jumps along edges between groups of vertices, as a multiple of other edges",
    );
    Ok(())
}

/// Every variation of a body's recipe, with so many passes over the poses.
fn bodies(epochs: usize) -> impl Iterator<Item = (&'static str, BodyLearning)> {
    BODY.iter().map(move |(name, change)| {
        let mut learning = BodyLearning::default();
        learning.settings.train.epochs = epochs;
        change(&mut learning);
        (*name, learning)
    })
}

/// Every variation of a face's recipe, with so many steps of each stage.
fn faces(steps: usize) -> impl Iterator<Item = (&'static str, FaceLearning)> {
    FACE.iter().map(move |(name, change)| {
        let mut learning = FaceLearning::default();
        let settings = &mut learning.settings;
        settings.coarse = settings.coarse.clone().with_total(steps);
        settings.refinement = settings.refinement.clone().with_total(steps);
        change(&mut learning);
        (*name, learning)
    })
}

/// Every variation of a skin's recipe, with so many passes over the poses.
fn skins(epochs: usize) -> impl Iterator<Item = (&'static str, SkinLearning)> {
    SKIN.iter().map(move |(name, change)| {
        let mut learning = SkinLearning::default();
        learning.settings.train.epochs = epochs;
        change(&mut learning);
        (*name, learning)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_changes_something_and_makes_sense() {
        let bodies: Vec<_> = bodies(3).collect();
        for (index, (name, learning)) in bodies.iter().enumerate() {
            learning.settings.check().expect("its numbers make sense");
            assert_eq!(learning.settings.train.epochs, 3, "{name}");
            assert!(bodies[..index].iter().all(|(_, other)| other != learning), "{name}");
        }
        let skins: Vec<_> = skins(3).collect();
        for (index, (name, learning)) in skins.iter().enumerate() {
            learning.settings.check().expect("its numbers make sense");
            assert_eq!(learning.settings.train.epochs, 3, "{name}");
            assert!(skins[..index].iter().all(|(_, other)| other != learning), "{name}");
        }
        let faces: Vec<_> = faces(50).collect();
        for (index, (name, learning)) in faces.iter().enumerate() {
            learning.settings.check().expect("its numbers make sense");
            assert_eq!(learning.settings.coarse.total(), 50, "{name}");
            assert!(faces[..index].iter().all(|(_, other)| other != learning), "{name}");
        }
    }
}
