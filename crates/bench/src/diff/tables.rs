//! What each choice of the paper is worth, in the form of its tables 2 to 4 and 6: Mira at a small budget.

use super::{VALIDATION, Workshop, between_neighbours, learned};
use crate::console::{Console, print, table};
use anyhow::Result;
use std::path::{Path, PathBuf};
use understudy_io::dataset::DatasetReader;
use understudy_io::write_atomic;
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::diff::{Coordinates, DiffLearning, Loss};
use understudy_jobs::twin::eval::{EvalConfig, eval};

/// A name, and what it changes.
type Change = (&'static str, fn(&mut DiffLearning));

/// The first is ours as it is.
const CHANGES: [Change; 22] = [
    ("ours", |_| {}),
    ("1 % components", |c| c.settings.components_percent = 1.0),
    ("2 % components", |c| c.settings.components_percent = 2.0),
    ("3 % components", |c| c.settings.components_percent = 3.0),
    ("10 % components", |c| c.settings.components_percent = 10.0),
    ("1 hidden layer", |c| c.settings.widths = layers(c, 1)),
    ("3 hidden layers", |c| c.settings.widths = layers(c, 3)),
    ("4 hidden layers", |c| c.settings.widths = layers(c, 4)),
    ("5 hidden layers", |c| c.settings.widths = layers(c, 5)),
    ("1 % anchors", |c| c.settings.anchors_percent = 1.0),
    ("5 % anchors", |c| c.settings.anchors_percent = 5.0),
    ("one network for all anchors", |c| {
        (c.settings.single_network, c.settings.anchor_widths) = (true, vec![128; 2]);
    }),
    ("anchor weight 0.1", |c| c.settings.anchor_weight = Some(0.1)),
    ("anchor weight 0.3", |c| c.settings.anchor_weight = Some(0.3)),
    ("anchor weight 1", |c| c.settings.anchor_weight = Some(1.0)),
    ("anchor weight 3", |c| c.settings.anchor_weight = Some(3.0)),
    ("anchor weight 10", |c| c.settings.anchor_weight = Some(10.0)),
    ("L2 loss", |c| c.settings.loss = Loss::L2),
    ("all vertices in the loss", |c| c.settings.loss_vertices = 0),
    ("cotangent Laplacian", |c| c.settings.coordinates = Coordinates::Cotangent),
    ("local offsets", |c| c.settings.coordinates = Coordinates::Local),
    ("tanh", |c| c.settings.activation = understudy_runtime::diff::HiddenActivation::Tanh),
];
/// Amounts of data, per cent.
const DATA: [u64; 3] = [25, 50, 75];
/// Seeds of the comparison with local offsets.
const SEEDS: [u64; 3] = [1, 2, 3];

fn layers(learning: &DiffLearning, count: usize) -> Vec<usize> {
    vec![learning.settings.widths.first().copied().unwrap_or(512); count]
}

/// Our recipe with so many steps.
fn brief(steps: usize) -> DiffLearning {
    let mut learning = DiffLearning::default();
    (learning.settings.steps, learning.settings.anchor_steps) = (steps, steps.div_ceil(2));
    learning
}

/// A budget in a file's name.
fn named(name: &str, poses: u64, steps: usize) -> String {
    format!("mira-{poses}-{steps}-{}", name.replace([' ', '%', '.'], "-"))
}

/// Our twin at a small budget.
pub fn ours(workshop: &Workshop, poses: u64, steps: usize) -> Result<PathBuf> {
    let [train, ..] = workshop.face_data("mira", poses)?;
    workshop.learn(&named("ours", poses, steps), &train, Learning::Diff(brief(steps)))
}

/// One row: prediction errors as tables 2 to 4 have them, then vertices on the two tests.
fn weigh(name: &str, twin: &Path, tests: &[PathBuf]) -> Result<Vec<String>> {
    let report =
        eval(&EvalConfig { twin: twin.into(), test: tests.to_vec(), ..EvalConfig::default() }, &Console)?;
    let mut row =
        vec![name.to_owned(), learned(twin, "differential_miss")?, learned(twin, "anchor_error_mm")?];
    for set in report.sets.values() {
        row.extend([format!("{:.3}", set["twin"].mean_mm), format!("{:.2}", set["twin"].max_mm)]);
    }
    let power = between_neighbours(&report, "twin");
    row.push(power.map_or_else(|| "-".into(), |power| format!("{power:.3}")));
    let figures = &report.methods["twin"];
    row.extend([format!("{:.1}", figures.bytes as f64 / 1e6), format!("{:.2}", figures.ms)]);
    Ok(row)
}

const HEAD: [&str; 10] = [
    "",
    "differential",
    "subspace mm",
    "held out: mean mm",
    "max",
    "roar: mean mm",
    "max",
    "neighbours, 1/1000 mm²",
    "MB",
    "ms",
];

/// Every change.
pub fn tables(workshop: &Workshop, poses: u64, steps: usize) -> Result<()> {
    let [train, held_out, validation] = workshop.face_data("mira", poses)?;
    let tests = [held_out, validation];
    let mut rows = Vec::new();
    let mut one = |name: &str, data: &Path, learning: DiffLearning| -> Result<()> {
        let twin = workshop.learn(&named(name, poses, steps), data, Learning::Diff(learning))?;
        rows.push(weigh(name, &twin, &tests)?);
        Ok(())
    };
    for (name, change) in CHANGES {
        let mut learning = brief(steps);
        change(&mut learning);
        one(name, &train, learning)?;
    }
    let badly = workshop.at("mira-back-of-head.txt");
    write_atomic(&badly, back_of_head(&train, brief(steps).settings.anchors_percent)?.as_bytes())?;
    one("anchors on the back of the head", &train, DiffLearning { anchors: Some(badly), ..brief(steps) })?;
    for share in DATA {
        let [fewer, ..] = workshop.face_data("mira", poses * share / 100)?;
        one(&format!("{share} % of the poses"), &fewer, brief(steps))?;
    }
    print(&format!("mira, {poses} poses, {steps} steps\n{}", table(&HEAD, &rows)));
    print(
        "differential: mean miss of held-back differential coordinates as a share of that of their mean; subspace: of \
         anchors",
    );
    Ok(())
}

/// Anchors where the face hardly moves: so many vertices, evenly by number, of those behind the middle of the head.
fn back_of_head(data: &Path, percent: f64) -> Result<String> {
    let dataset = DatasetReader::open(data)?;
    let places = dataset.rest().mesh.positions();
    let middle = places.iter().map(|place| f64::from(place.z)).sum::<f64>() / places.len() as f64;
    let behind: Vec<usize> = (0..places.len()).filter(|v| f64::from(places[*v].z) < middle).collect();
    let count = ((percent / 100.0 * places.len() as f64) as usize).clamp(1, behind.len());
    let chosen = (0..count).map(|index| behind[index * behind.len() / count].to_string());
    Ok(chosen.collect::<Vec<_>>().join("\n"))
}

/// Differential coordinates against local offsets (table 6), over three seeds.
pub fn local(workshop: &Workshop, poses: u64, steps: usize) -> Result<()> {
    let [train, held_out, validation] = workshop.face_data("mira", poses)?;
    let (mut rows, mut sums) = (Vec::new(), [[0.0f64; 3]; 2]);
    for seed in SEEDS {
        for (side, coordinates) in [Coordinates::Uniform, Coordinates::Local].into_iter().enumerate() {
            let mut learning = brief(steps);
            (learning.settings.seed, learning.settings.coordinates) = (seed, coordinates);
            let name = format!("{} seed {seed}", ["ours", "local"][side]);
            let twin = workshop.learn(&named(&name, poses, steps), &train, Learning::Diff(learning))?;
            let test = vec![held_out.clone(), validation.clone()];
            let report = eval(&EvalConfig { twin, test, ..EvalConfig::default() }, &Console)?;
            let figures = &report.methods["twin"];
            let power = between_neighbours(&report, "twin").unwrap_or(f64::NAN);
            let numbers = [figures.mean_mm, figures.max_mm, power];
            sums[side].iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n / SEEDS.len() as f64);
            rows.push(std::iter::once(name).chain(numbers.map(|n| format!("{n:.4}"))).collect());
        }
    }
    let [ours, theirs] = sums;
    let shares = [0, 1, 2].map(|figure| format!("{:.3}", ours[figure] / theirs[figure]));
    rows.push(std::iter::once("ours as a share of local".to_owned()).chain(shares).collect());
    let head = ["", "mean mm", "max mm", "neighbours, 1/1000 mm²"];
    print(&format!(
        "mira, {poses} poses, {steps} steps; held-out frames and {VALIDATION}\n{}",
        table(&head, &rows)
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_changes_something_and_makes_sense() {
        let learnings: Vec<DiffLearning> = CHANGES
            .iter()
            .map(|(_, change)| {
                let mut learning = brief(7);
                change(&mut learning);
                learning
            })
            .collect();
        for (index, learning) in learnings.iter().enumerate() {
            learning.settings.check().expect("its numbers make sense");
            assert!(learnings[..index].iter().all(|other| other != learning), "{}", CHANGES[index].0);
        }
    }
}
