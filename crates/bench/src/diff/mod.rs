//! `bench diff`: differential twins in the form of the paper's tables and figures, in parts that run singly. Recordings
//! and twins stay in the folder, so that a run that was interrupted goes on, and a second run only weighs. Races against
//! other programs are in `race.rs`; start at [`run`].

mod face;
pub mod race;
mod rook;
mod study;
mod tables;

use crate::console::{Console, complain, print, table};
use crate::{RaceArguments, kept};
use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use tables::Budget;
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::auto::method_for;
use understudy_jobs::twin::body::BodyLearning;
use understudy_jobs::twin::diff::{Coordinates, DiffLearning};
use understudy_jobs::twin::eval::{EvalConfig, EvalReport, eval};
use understudy_jobs::twin::face::FaceLearning;
use understudy_jobs::twin::open_twin;

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Mira at a small budget: components, layers, anchors, weights, losses, Laplacians, amounts of data.
    Tables,
    /// Mira at a small budget: differential coordinates against local offsets, three seeds.
    Local,
    /// Mira and ict at full size beside the face twin, on clips that no twin saw.
    Clips,
    /// Mira: 9,800 poses of random controls to learn from, 200 to test on.
    Gaussian,
    /// Rook beside body twins, and with a control that training held still; probed skinning beside the rig's.
    Rook,
    /// Mira's twin and the human's against onnxruntime and SuperLU.
    Speed,
}

impl Part {
    const ALL: [Self; 6] = [Self::Local, Self::Tables, Self::Rook, Self::Gaussian, Self::Clips, Self::Speed];

    /// Minutes on two idle cores, from nothing.
    fn minutes(self) -> u32 {
        match self {
            Self::Tables => 60,
            Self::Local => 15,
            Self::Clips => 240,
            Self::Gaussian => 60,
            Self::Rook => 60,
            Self::Speed => 15,
        }
    }
}

/// A twin of `clips`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contestant {
    /// Ours.
    Diff,
    /// The one beside which it is weighed.
    Face,
}

/// What to run.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// Parts [default: all].
    parts: Vec<Part>,
    /// Poses of the parts at a small budget.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    poses: u64,
    /// Steps of the differential network in the parts at a small budget; mini-networks have half as many.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    steps: usize,
    /// All of Mira in the parts at a small budget, instead of a face of as many vertices as the paper's.
    #[arg(long)]
    whole: bool,
    /// Poses of the parts at full size.
    #[arg(long, value_name = "N", default_value_t = 25_000)]
    full_poses: u64,
    /// Poses of Rook's parts.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    rook_poses: u64,
    /// Passes of the body twins over these [default: as `learn body`].
    #[arg(long, value_name = "N")]
    body_epochs: Option<usize>,
    /// Random poses of `gaussian` to learn from, and to test on.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [9800, 200])]
    gaussian_poses: Vec<u64>,
    /// Comparison methods of `clips` and `gaussian`, as `eval` has them.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_values_t = ["all".to_owned()])]
    baselines: Vec<String>,
    /// Steps of the twins at full size, as `learn diff` has them; mini-networks have a quarter as many.
    #[arg(long, value_name = "N")]
    full_steps: Option<usize>,
    /// Minutes of the face twin beside which the twins of `clips` are weighed.
    #[arg(long, value_name = "M", default_value_t = 36.0)]
    face_minutes: f64,
    /// Only these characters in `clips`.
    #[arg(long, value_name = "RIG,RIG", value_delimiter = ',', default_values_t = ["mira".to_owned(), "ict".to_owned()])]
    rigs: Vec<String>,
    /// Only these characters in `speed`.
    #[arg(long, value_name = "RIG,RIG", value_delimiter = ',', default_values_t = ["mira".to_owned(), "human".to_owned()])]
    raced: Vec<String>,
    /// Of `clips`, only learn this twin and stop: two runs side by side fill a machine of many cores.
    #[arg(long, value_name = "KIND")]
    only_learn: Option<Contestant>,
    /// Folder of recordings and twins.
    #[arg(long, value_name = "DIR", default_value = "target/bench/diff")]
    folder: PathBuf,
}

impl DiffArguments {
    fn budget(&self) -> Budget {
        Budget { poses: self.poses, steps: self.steps, whole: self.whole }
    }

    /// Our recipe for the parts at full size.
    fn full_size(&self) -> DiffLearning {
        let mut learning = DiffLearning::default();
        if let Some(steps) = self.full_steps {
            (learning.settings.steps, learning.settings.anchor_steps) = (steps, steps.div_ceil(4));
        }
        learning
    }

    /// Body twins by default and in the paper's recipe.
    fn bodies(&self) -> [(&'static str, Learning); 2] {
        let own = |mut learning: BodyLearning| {
            let epochs = &mut learning.settings.train.epochs;
            *epochs = self.body_epochs.unwrap_or(*epochs);
            Learning::Body(learning)
        };
        [("body-paper", own(BodyLearning::paper())), ("body", own(BodyLearning::default()))]
    }
}

/// Runs the parts.
pub fn run(arguments: &DiffArguments) -> Result<()> {
    let parts = if arguments.parts.is_empty() { &Part::ALL[..] } else { &arguments.parts };
    let minutes: u32 = parts.iter().map(|part| part.minutes()).sum();
    print(&format!(
        "at most {:.1} hours on two idle cores; what an earlier run left in {} is used again",
        f64::from(minutes) / 60.0,
        arguments.folder.display()
    ));
    let workshop = Workshop { folder: arguments.folder.clone() };
    for part in parts {
        match part {
            Part::Tables => tables::tables(&workshop, arguments.budget())?,
            Part::Local => tables::local(&workshop, arguments.budget())?,
            Part::Clips => {
                for rig in &arguments.rigs {
                    clips(&workshop, rig, arguments)?;
                }
            }
            Part::Gaussian => gaussian(&workshop, arguments)?,
            Part::Rook => rook::rook(&workshop, arguments)?,
            Part::Speed => speed(&workshop, arguments)?,
        }
    }
    Ok(())
}

/// Makes recordings and twins, each once.
struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A recording; one that is complete is only looked at.
    fn record(&self, name: &str, config: SampleConfig) -> Result<PathBuf> {
        let output = self.at(name);
        sample(&SampleConfig { output: output.clone(), ..config }, &Console)?;
        Ok(output)
    }

    /// Training poses of a face's clips × noise, frames that were held out of them, and the clip for validation.
    fn face_data(&self, rig: &str, poses: u64) -> Result<[PathBuf; 3]> {
        let [train, held_out, validation] = face_samples(rig, poses);
        Ok([
            self.record(&format!("{rig}-{poses}"), train)?,
            self.record(&format!("{rig}-held-out"), held_out)?,
            self.record(&format!("{rig}-{VALIDATION}"), validation)?,
        ])
    }

    /// A twin. One that was learned from the same data with the same settings is used again.
    fn learn(&self, name: &str, data: &Path, learning: Learning) -> Result<PathBuf> {
        let output = self.at(&format!("{name}.twin"));
        kept::learned(&output, data, learning)?;
        Ok(output)
    }
}

/// How a face's training poses, held-out frames and validation are recorded.
fn face_samples(rig: &str, poses: u64) -> [SampleConfig; 3] {
    let stray = if rig == "ict" { 0.1 } else { SampleConfig::default().stray };
    let base = SampleConfig { rig: rig.into(), stray, ..SampleConfig::default() };
    let left_out = SampleConfig { exclude: vec![VALIDATION.into()], hold_out: 0.1, ..base.clone() };
    let noise = SampleConfig { poses: Some(poses), method: Some(Method::Noise), ..left_out.clone() };
    [
        noise,
        SampleConfig { held_out: true, ..left_out },
        SampleConfig { clips: vec![VALIDATION.into()], ..base },
    ]
}

/// The clip that settings were chosen on, and no twin learned from.
const VALIDATION: &str = "roar";

/// Of a twin what its file says about learning.
fn learned(twin: &Path, key: &str) -> Result<String> {
    let opened = open_twin(twin)?;
    let value = opened.header().training.details.get("report").and_then(|report| report[key].as_f64());
    Ok(value.map_or_else(|| "-".into(), |value| format!("{value:.4}")))
}

/// How a twin's solve became a map, in a line.
fn reconstruction(twin: &Path) -> Result<String> {
    let opened = open_twin(twin)?;
    let report = opened.header().training.details.get("report").context("it says nothing of learning")?;
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let fold = &report["fold"];
    Ok(format!(
        "anchor weight {}, condition number {:.1e}; folded to rank {} ({:.0} in a run of vertices): {:.3} % of the vertices of {} \
         training poses within 0.05 mm of the solve, the farthest {:.3} mm",
        number(&report["anchor_weight"]),
        number(&report["condition"]),
        number(&fold["rank"]),
        number(&fold["run_rank"]),
        100.0 * number(&fold["within_limit"]),
        number(&fold["poses"]),
        number(&fold["max_mm"])
    ))
}

/// Power of a method's error between neighbours, 1/1000 mm².
fn between_neighbours(report: &EvalReport, method: &str) -> Option<f64> {
    Some(report.findings.get("spectrum")?[method]["high_power"].as_f64()? * 1e3)
}

/// All methods of a report, test set by test set.
fn all_methods(report: &EvalReport) -> String {
    let sets: Vec<&String> = report.sets.keys().collect();
    let mut head = vec![String::new()];
    for set in &sets {
        head.extend([format!("{set}: mean mm"), "95 %".into(), "max".into()]);
    }
    head.extend(["neighbours, 1/1000 mm²", "MB", "ms"].map(String::from));
    let row = |name: &String| {
        let mut cells = vec![name.clone()];
        for set in &sets {
            let figures = &report.sets[*set][name];
            cells.extend([
                format!("{:.3}", figures.mean_mm),
                format!("{:.3}", figures.p95_mm),
                format!("{:.2}", figures.max_mm),
            ]);
        }
        let figures = &report.methods[name];
        let power = between_neighbours(report, name);
        cells.push(power.map_or_else(|| "-".into(), |power| format!("{power:.3}")));
        cells.extend([format!("{:.2}", figures.bytes as f64 / 1e6), format!("{:.3}", figures.ms)]);
        cells
    };
    let rows: Vec<Vec<String>> = report.order.iter().map(row).collect();
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows)
}

/// A character at full size: our twin, the face twin and every comparison method on what neither saw.
fn clips(workshop: &Workshop, rig: &str, arguments: &DiffArguments) -> Result<()> {
    let poses = arguments.full_poses;
    let [train, held_out, validation] = workshop.face_data(rig, poses)?;
    let learned = |kind: Contestant| match kind {
        Contestant::Diff => {
            workshop.learn(&format!("{rig}-{poses}-diff"), &train, Learning::Diff(arguments.full_size()))
        }
        Contestant::Face => {
            let face = FaceLearning { minutes: Some(arguments.face_minutes), ..FaceLearning::default() };
            workshop.learn(&format!("{rig}-{poses}-face"), &train, Learning::Face(face))
        }
    };
    if let Some(kind) = arguments.only_learn {
        learned(kind)?;
        return Ok(());
    }
    let (ours, face) = (learned(Contestant::Diff)?, learned(Contestant::Face)?);
    let config = EvalConfig {
        twin: ours.clone(),
        test: vec![held_out, validation],
        train: Some(train.clone()),
        baselines: arguments.baselines.clone(),
        against: vec![("face".into(), face)],
        report: Some(workshop.at(&format!("{rig}-{poses}-report"))),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        ..EvalConfig::default()
    };
    let report = eval(&config, &Console)?;
    print(&format!("{rig}, {poses} poses\n{}\n{}", all_methods(&report), reconstruction(&ours)?));
    if let Some(minutes) = kept::minutes(&ours) {
        print(&format!("the differential twin was learned in {minutes:.0} minutes"));
    }
    Ok(())
}

/// The paper's random poses.
fn gaussian(workshop: &Workshop, arguments: &DiffArguments) -> Result<()> {
    let &[learned_from, tested_on] = arguments.gaussian_poses.as_slice() else {
        anyhow::bail!("--gaussian-poses: two numbers are wanted");
    };
    let poses = |poses, seed| SampleConfig {
        rig: "mira".into(),
        poses: Some(poses),
        method: Some(Method::Gaussian),
        seed,
        ..SampleConfig::default()
    };
    let name = format!("mira-gaussian-{learned_from}");
    let train = workshop.record(&name, poses(learned_from, 1))?;
    let test = workshop.record(&format!("mira-gaussian-test-{tested_on}"), poses(tested_on, 2))?;
    let ours = workshop.learn(&format!("{name}-diff"), &train, Learning::Diff(arguments.full_size()))?;
    // The same network on local offsets, the paper's "Local".
    let mut local = arguments.full_size();
    local.settings.coordinates = Coordinates::Local;
    let local = workshop.learn(&format!("{name}-local"), &train, Learning::Diff(local))?;
    let config = EvalConfig {
        twin: ours.clone(),
        test: vec![test],
        train: Some(train),
        baselines: arguments.baselines.clone(),
        against: vec![("local".into(), local)],
        ..EvalConfig::default()
    };
    let report = all_methods(&eval(&config, &Console)?);
    let fold = reconstruction(&ours)?;
    print(&format!("mira, {learned_from} + {tested_on} random poses\n{report}\n{fold}"));
    Ok(())
}

/// Of Mira the largest twin that is there, else one of the small budget, as of every other character.
fn speed(workshop: &Workshop, arguments: &DiffArguments) -> Result<()> {
    for rig in &arguments.raced {
        let full = workshop.at(&format!("{rig}-{}-diff.twin", arguments.full_poses));
        let twin = match rig.as_str() {
            _ if full.exists() => full,
            "mira" => tables::ours(workshop, Budget { whole: true, ..arguments.budget() })?,
            other => match small(workshop, other, arguments.budget()) {
                Ok(twin) => twin,
                Err(error) => {
                    complain(&format!("{other} is left out: {error:#}"));
                    continue;
                }
            },
        };
        let vertices = open_twin(&twin)?.vertex_count();
        print(&format!("{rig}, {vertices} vertices\n{}", reconstruction(&twin)?));
        let peers = PathBuf::from("target/peers");
        crate::race(&RaceArguments { twin, rounds: 11, peers, training: false })
            .context("the race was not run")?;
    }
    Ok(())
}

/// A character's twin at a small budget.
fn small(workshop: &Workshop, rig: &str, budget: Budget) -> Result<PathBuf> {
    let Budget { poses, steps, .. } = budget;
    let method = Some(method_for(rig, &Console)?);
    let config = SampleConfig { rig: rig.into(), poses: Some(poses), method, ..SampleConfig::default() };
    let data = workshop.record(&format!("{rig}-small-{poses}"), config)?;
    let learning = DiffLearning { settings: tables::brief(steps), ..DiffLearning::default() };
    workshop.learn(&format!("{rig}-small-{poses}-{steps}"), &data, Learning::Diff(learning))
}
