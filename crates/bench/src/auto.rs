//! `bench auto`: whether `learn auto` chooses the right kind. On each rig it chooses and finishes a twin; every kind that
//! the data allows is then learned for as long from the same poses, and all are weighed on poses that none of them saw.

use crate::console::{Console, complain, print, table};
use crate::kept;
use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use understudy_core::Clip;
use understudy_io::write_atomic;
use understudy_jobs::JobError;
use understudy_jobs::rigs;
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::auto::{AutoConfig, Limits, learn_auto};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::{Learning, open_twin};

/// What to learn.
#[derive(Debug, Args)]
pub struct AutoArguments {
    /// Characters; human and ict need their data.
    #[arg(default_values_t = ["rook", "human", "mira", "ict"].map(String::from))]
    rigs: Vec<String>,
    /// Poses to learn from.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    poses: u64,
    /// About how long every kind is learned, on two cores.
    #[arg(long, value_name = "M", default_value_t = 10.0)]
    minutes: f64,
    /// About how long a trial is.
    #[arg(long, value_name = "M", default_value_t = 1.0)]
    trial_minutes: f64,
    /// Folder of recordings and twins; what is there is used again.
    #[arg(long, value_name = "DIR", default_value = "target/bench/auto")]
    folder: PathBuf,
}

/// Poses that all are weighed on.
const TEST_POSES: u64 = 300;

/// One rig after another.
pub fn run(arguments: &AutoArguments) -> Result<()> {
    let hours =
        arguments.rigs.len() as f64 * (5.0 * arguments.minutes + 4.0 * arguments.trial_minutes) / 60.0;
    print(&format!("about {hours:.1} hours on two idle cores"));
    for rig in &arguments.rigs {
        one(rig, arguments)?;
    }
    Ok(())
}

/// A kind, where its twin is, and how it was found.
struct Row {
    name: String,
    twin: PathBuf,
}

fn one(rig: &str, arguments: &AutoArguments) -> Result<()> {
    let folder = arguments.folder.join(rig);
    let [data, test] = record(rig, arguments.poses, &folder)?;
    let chosen = folder.join("auto.twin");
    let config = AutoConfig {
        data: Some(data.clone()),
        output: chosen.clone(),
        limits: Limits::default(),
        trial_minutes: arguments.trial_minutes,
        minutes: arguments.minutes,
        ..AutoConfig::default()
    };
    let settings =
        json!({"data": data, "minutes": arguments.minutes, "trial minutes": arguments.trial_minutes});
    if !kept::is_kept(&chosen, &settings) {
        let report = learn_auto(&config, &Console)?;
        write_atomic(&chosen.with_extension("txt"), report.why.as_bytes())?;
        kept::keep(&chosen, &settings, report.seconds / 60.0)?;
    }
    let why = std::fs::read_to_string(chosen.with_extension("txt"))?;
    let kind = open_twin(&chosen)?.method();
    let mut rows = vec![Row { name: format!("auto: {kind}"), twin: chosen.clone() }];
    for learning in Learning::all() {
        let name = learning.name();
        if name == kind {
            // The chosen one was learned with the very settings that it would be learned with now.
            rows.push(Row { name: name.into(), twin: chosen.clone() });
            continue;
        }
        let twin = folder.join(format!("{name}.twin"));
        match kept::learned(&twin, &data, learning.limited(arguments.minutes)) {
            Ok(()) => {}
            // The data does not suit every kind: that is no failure of this comparison.
            Err(error @ (JobError::Unusable { .. } | JobError::Setting { .. })) => {
                complain(&format!("{name} is left out: {error}"));
                continue;
            }
            Err(other) => return Err(other.into()),
        }
        rows.push(Row { name: name.into(), twin });
    }
    weigh(rig, &rows, &test, &why)
}

/// Training poses, and as many others of the same kind as tests need.
fn record(rig: &str, poses: u64, folder: &Path) -> Result<[PathBuf; 2]> {
    let opened = rigs::open(rig, &Console)?.rig;
    let clips = opened.clips().iter().any(Clip::is_for_training);
    let set = |name: &str, poses: u64, seed: u64| -> Result<PathBuf> {
        let output = folder.join(name);
        let method = Some(if clips { Method::Noise } else { Method::Sparse });
        let rig = rig.to_owned();
        let poses = Some(poses);
        sample(
            &SampleConfig { rig, output: output.clone(), poses, method, seed, ..SampleConfig::default() },
            &Console,
        )?;
        Ok(output)
    };
    Ok([set("train", poses, 1)?, set("test", TEST_POSES, 2)?])
}

fn weigh(rig: &str, rows: &[Row], test: &Path, why: &str) -> Result<()> {
    let mut cells = Vec::new();
    let mut means = Vec::new();
    for row in rows {
        let config = EvalConfig { twin: row.twin.clone(), test: vec![test.into()], ..EvalConfig::default() };
        let report = eval(&config, &Console)?;
        let figures = report.methods.get("twin").context("a twin is its own first row")?;
        means.push(figures.mean_mm);
        cells.push(vec![
            row.name.clone(),
            format!("{:.3}", figures.mean_mm),
            format!("{:.2}", figures.max_mm),
            format!("{:.3}", figures.ms),
            format!("{:.2}", figures.bytes as f64 / 1e6),
        ]);
    }
    let best = means[1..].iter().copied().fold(f64::INFINITY, f64::min);
    print(&format!(
        "{rig}, {TEST_POSES} poses that none was learned from\n{}\n{why}\nthe chosen twin's mean is {:.2} times that of the \
         best kind",
        table(&["", "mean mm", "max", "ms", "MB"], &cells),
        means[0] / best
    ));
    Ok(())
}
