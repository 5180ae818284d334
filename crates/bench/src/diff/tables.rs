//! What each choice of the paper is worth, in the form of its tables 2 to 4 and 6: Mira at a small budget.

use super::face::FaceOf;
use super::study::{NotTrained, Study, Variation};
use super::{VALIDATION, Workshop, between_neighbours, face_samples, learned, reconstruction};
use crate::console::{Console, complain, print, table};
use anyhow::Result;
use std::path::{Path, PathBuf};
use understudy_io::dataset::DatasetReader;
use understudy_io::write_atomic;
use understudy_jobs::sample::{SampleConfig, record};
use understudy_jobs::twin::diff::{Coordinates, DiffSettings, Loss};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::{Silent, rigs};
use understudy_report::plot::{LinePlot, Plot as _, Scale, Series};
use understudy_rigs::Rig;

/// A name, and what it changes.
type Change = (&'static str, fn(&mut DiffSettings));

/// The first is ours as it is. Those that share most of the work with their neighbours are next to each other.
const CHANGES: [Change; 31] = [
    (OURS, |_| {}),
    ("1 hidden layer", |s| s.widths = layers(s, 1)),
    ("3 hidden layers", |s| s.widths = layers(s, 3)),
    ("4 hidden layers", |s| s.widths = layers(s, 4)),
    ("5 hidden layers", |s| s.widths = layers(s, 5)),
    ("128 wide", |s| s.widths = wide(s, 128)),
    ("256 wide", |s| s.widths = wide(s, 256)),
    ("1024 wide", |s| s.widths = wide(s, 1024)),
    ("SGD as in the paper, as many steps", |s| {
        let DiffSettings { optimiser, schedule, rate, .. } = DiffSettings::paper();
        (s.optimiser, s.schedule, s.rate) = (optimiser, schedule, rate);
    }),
    ("L2 loss", |s| s.loss = Loss::L2),
    ("64 vertices in the loss", |s| s.loss_vertices = 64),
    ("1024 vertices in the loss", |s| s.loss_vertices = 1024),
    ("anchor weight 0.001", |s| s.anchor_weight = Some(0.001)),
    ("anchor weight 0.003", |s| s.anchor_weight = Some(0.003)),
    ("anchor weight 0.01", |s| s.anchor_weight = Some(0.01)),
    ("anchor weight 0.03", |s| s.anchor_weight = Some(0.03)),
    ("anchor weight 0.1", |s| s.anchor_weight = Some(0.1)),
    ("anchor weight 0.3", |s| s.anchor_weight = Some(0.3)),
    ("anchor weight 1", |s| s.anchor_weight = Some(1.0)),
    ("anchor weight 10", |s| s.anchor_weight = Some(10.0)),
    ("1 % anchors", |s| s.anchors_percent = 1.0),
    ("5 % anchors", |s| s.anchors_percent = 5.0),
    ("one network for all anchors", |s| (s.single_network, s.anchor_widths) = (true, vec![128; 2])),
    ("no linear part", |s| s.linear = false),
    ("1 % components", |s| s.components_percent = 1.0),
    ("2 % components", |s| s.components_percent = 2.0),
    ("3 % components", |s| s.components_percent = 3.0),
    ("8 % components", |s| s.components_percent = 8.0),
    ("10 % components", |s| s.components_percent = 10.0),
    ("cotangent Laplacian", |s| s.coordinates = Coordinates::Cotangent),
    ("local offsets", |s| s.coordinates = Coordinates::Local),
];
/// Amounts of data, per cent.
const DATA: [usize; 3] = [25, 50, 75];
/// Seeds of the comparison with local offsets.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The row that all others are beside.
const OURS: &str = "ours";

/// A curve over rows: its name, which rows are points of it (what stands before and behind the number in a row's name), and
/// the number of our own row.
struct Sweep {
    name: &'static str,
    around: [&'static str; 2],
    ours: Option<fn(&DiffSettings) -> f64>,
}

const SWEEPS: [Sweep; 6] = [
    Sweep {
        name: "components, per cent",
        around: ["", " % components"],
        ours: Some(|s| s.components_percent),
    },
    Sweep { name: "hidden layers", around: ["", " hidden layer"], ours: Some(|s| s.widths.len() as f64) },
    Sweep { name: "width", around: ["", " wide"], ours: Some(|s| s.widths[0] as f64) },
    Sweep { name: "anchors, per cent", around: ["", " % anchors"], ours: Some(|s| s.anchors_percent) },
    // Ours is chosen on held-back poses, anchor by anchor.
    Sweep { name: "anchor weight", around: ["anchor weight ", ""], ours: None },
    Sweep { name: "poses, per cent", around: ["", " % of the poses"], ours: Some(|_| 100.0) },
];

impl Sweep {
    /// Where a row lies on the curve.
    fn place(&self, row: &str) -> Option<f64> {
        if row == OURS {
            return self.ours.map(|ours| ours(&DiffSettings::default()));
        }
        let [before, behind] = self.around;
        let number = row.trim_end_matches('s').strip_prefix(before)?;
        number.strip_suffix(behind.trim_end_matches('s'))?.parse().ok()
    }

    /// Mean errors of the two tests; `None` where there are not two points to join.
    fn plot(&self, rows: &[Vec<String>], about: &str) -> Option<LinePlot> {
        /// Where the mean errors stand in a row.
        const TESTS: [(&str, usize); 2] = [("held-out frames", 3), (VALIDATION, 5)];
        let log = matches!(self.name, "anchor weight" | "width");
        let mut plot = LinePlot::new(about).x_label(self.name).y_label("mean error, mm").x_scale(if log {
            Scale::Log
        } else {
            Scale::Linear
        });
        for (test, column) in TESTS {
            let point = |row: &Vec<String>| Some([self.place(&row[0])?, row.get(column)?.parse().ok()?]);
            let mut points: Vec<[f64; 2]> = rows.iter().filter_map(point).collect();
            points.sort_by(|a, b| a[0].total_cmp(&b[0]));
            if points.len() < 2 {
                return None;
            }
            plot = plot.series(Series::new(test, points));
        }
        Some(plot)
    }

    /// The picture's file.
    fn file(&self) -> String {
        let words = self.name.split(',').next().unwrap_or(self.name).replace(' ', "-");
        format!("tables-{words}.svg")
    }
}

fn wide(settings: &DiffSettings, width: usize) -> Vec<usize> {
    vec![width; settings.widths.len()]
}

fn layers(settings: &DiffSettings, count: usize) -> Vec<usize> {
    vec![settings.widths.first().copied().unwrap_or(512); count]
}

/// Our recipe with so many steps.
pub fn brief(steps: usize) -> DiffSettings {
    DiffSettings { steps, anchor_steps: steps.div_ceil(2), ..DiffSettings::default() }
}

/// What is learned and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Training poses.
    pub poses: u64,
    /// Steps of the differential network; mini-networks have half as many.
    pub steps: usize,
    /// All of Mira instead of her face.
    pub whole: bool,
}

impl Budget {
    fn rig(self) -> Result<Box<dyn Rig>> {
        let rig = rigs::open("mira", &Silent)?.rig;
        Ok(if self.whole { rig } else { Box::new(FaceOf::new(rig)?) })
    }

    fn short(self) -> &'static str {
        if self.whole { "mira" } else { "mira-face" }
    }

    /// A name of a twin's file.
    fn named(self, name: &str) -> String {
        format!("{}-{}-{}-{}", self.short(), self.poses, self.steps, name.replace([' ', '%', '.'], "-"))
    }

    /// Training poses, held-out frames, and the clip for validation.
    fn data(self, workshop: &Workshop) -> Result<[PathBuf; 3]> {
        if self.whole {
            return workshop.face_data("mira", self.poses);
        }
        let rig = self.rig()?;
        let record_part = |name: String, config: SampleConfig| -> Result<PathBuf> {
            let output = workshop.at(&name);
            record(rig.as_ref(), &SampleConfig { output: output.clone(), ..config }, &|_| Ok(()), &Console)?;
            Ok(output)
        };
        let [train, held_out, validation] = face_samples("mira", self.poses);
        let short = self.short();
        Ok([
            record_part(format!("{short}-{}", self.poses), train)?,
            record_part(format!("{short}-held-out"), held_out)?,
            record_part(format!("{short}-{VALIDATION}"), validation)?,
        ])
    }

    /// For people.
    fn text(self, vertices: usize) -> String {
        let Self { poses, steps, .. } = self;
        let what = if self.whole { "mira" } else { "mira's face" };
        format!("{what}, {vertices} vertices, {poses} poses, {steps} steps")
    }
}

/// Our twin at a small budget.
pub fn ours(workshop: &Workshop, budget: Budget) -> Result<PathBuf> {
    let [train, ..] = budget.data(workshop)?;
    let mut study = Study::new(workshop, budget.rig()?, &train);
    study.twin(&budget.named(OURS), &Variation::new(brief(budget.steps), budget.poses))
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
pub fn tables(workshop: &Workshop, budget: Budget) -> Result<()> {
    let Budget { poses, steps, .. } = budget;
    let [train, held_out, validation] = budget.data(workshop)?;
    let tests = [held_out, validation];
    let rig = budget.rig()?;
    let vertices = rig.mesh().vertex_count();
    let mut study = Study::new(workshop, rig, &train);
    let mut rows = Vec::new();
    let mut one = |name: &str, variation: Variation| -> Result<()> {
        let twin = match study.twin(&budget.named(name), &variation) {
            Ok(twin) => twin,
            // Says something too, and the other rows stand for themselves.
            Err(error) if error.is::<NotTrained>() => {
                let mut row = vec![format!("{name}: {error}")];
                row.resize(HEAD.len(), "-".to_owned());
                complain(&row[0]);
                rows.push(row);
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        let row = weigh(name, &twin, &tests)?;
        // A run that is interrupted has shown something.
        complain(&row.join("  "));
        rows.push(row);
        Ok(())
    };
    for (name, change) in CHANGES {
        let mut settings = brief(steps);
        change(&mut settings);
        one(name, Variation::new(settings, poses))?;
        if name == "one network for all anchors" {
            let badly = back_of_head(&train, brief(steps).anchors_percent)?;
            let badly = Variation { anchors: Some(badly), ..Variation::new(brief(steps), poses) };
            one("anchors on the back of the head", badly)?;
        }
    }
    for share in DATA {
        let fewer = Variation { poses: poses as usize * share / 100, ..Variation::new(brief(steps), poses) };
        one(&format!("{share} % of the poses"), fewer)?;
    }
    print(&format!("{}\n{}", budget.text(vertices), table(&HEAD, &rows)));
    print(
        "differential: mean miss of held-back differential coordinates as a share of that of their mean; subspace: of \
         anchors",
    );
    print(&reconstruction(&workshop.at(&format!("{}.twin", budget.named(OURS))))?);
    for sweep in SWEEPS {
        if let Some(plot) = sweep.plot(&rows, &budget.text(vertices)) {
            let file = workshop.at(&sweep.file());
            write_atomic(&file, plot.to_svg().as_bytes())?;
            print(&file.display().to_string());
        }
    }
    Ok(())
}

/// Anchors where the face hardly moves: so many vertices, evenly by number, of those behind the middle of the head.
fn back_of_head(data: &Path, percent: f64) -> Result<Vec<u32>> {
    let dataset = DatasetReader::open(data)?;
    let places = dataset.rest().mesh.positions();
    let middle = places.iter().map(|place| f64::from(place.z)).sum::<f64>() / places.len() as f64;
    let behind: Vec<usize> = (0..places.len()).filter(|v| f64::from(places[*v].z) < middle).collect();
    let count = ((percent / 100.0 * places.len() as f64) as usize).clamp(1, behind.len());
    Ok((0..count).map(|index| behind[index * behind.len() / count] as u32).collect())
}

/// Differential coordinates against local offsets (table 6), over three seeds.
pub fn local(workshop: &Workshop, budget: Budget) -> Result<()> {
    let Budget { poses, steps, .. } = budget;
    let [train, held_out, validation] = budget.data(workshop)?;
    let rig = budget.rig()?;
    let vertices = rig.mesh().vertex_count();
    let (mut rows, mut sums) = (Vec::new(), [[0.0f64; 3]; 2]);
    let mut study = Study::new(workshop, rig, &train);
    for seed in SEEDS {
        for (side, coordinates) in [Coordinates::Uniform, Coordinates::Local].into_iter().enumerate() {
            let settings = DiffSettings { seed, coordinates, ..brief(steps) };
            let name = format!("{} seed {seed}", ["ours", "local"][side]);
            let twin = study.twin(&budget.named(&name), &Variation::new(settings, poses))?;
            let test = vec![held_out.clone(), validation.clone()];
            let report = eval(&EvalConfig { twin, test, ..EvalConfig::default() }, &Console)?;
            let figures = &report.methods["twin"];
            let power = between_neighbours(&report, "twin").unwrap_or(f64::NAN);
            let numbers = [figures.mean_mm, figures.max_mm, power];
            sums[side].iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n / SEEDS.len() as f64);
            let row: Vec<String> = std::iter::once(name).chain(numbers.map(|n| format!("{n:.4}"))).collect();
            complain(&row.join("  "));
            rows.push(row);
        }
    }
    let [ours, theirs] = sums;
    let shares = [0, 1, 2].map(|figure| format!("{:.3}", ours[figure] / theirs[figure]));
    rows.push(std::iter::once("ours as a share of local".to_owned()).chain(shares).collect());
    let head = ["", "mean mm", "max mm", "neighbours, 1/1000 mm²"];
    print(&format!("{}; held-out frames and {VALIDATION}\n{}", budget.text(vertices), table(&head, &rows)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_changes_something_and_makes_sense() {
        let changed: Vec<DiffSettings> = CHANGES
            .iter()
            .map(|(_, change)| {
                let mut settings = brief(7);
                change(&mut settings);
                settings
            })
            .collect();
        for (index, settings) in changed.iter().enumerate() {
            settings.check().expect("its numbers make sense");
            assert!(changed[..index].iter().all(|other| other != settings), "{}", CHANGES[index].0);
        }
    }

    #[test]
    fn every_curve_has_its_rows() {
        let row = |name: &str| {
            let mut row = vec![name.to_owned()];
            row.extend((1..HEAD.len()).map(|column| format!("0.{column}")));
            row
        };
        let shares = DATA.map(|share| format!("{share} % of the poses"));
        let names = CHANGES.iter().map(|(name, _)| *name).chain(shares.iter().map(String::as_str));
        let rows: Vec<Vec<String>> = names.map(row).collect();
        let points = |sweep: &Sweep| rows.iter().filter_map(|row| sweep.place(&row[0])).collect::<Vec<f64>>();
        let found: Vec<usize> = SWEEPS.iter().map(|sweep| points(sweep).len()).collect();
        assert_eq!(found, [6, 5, 4, 3, 8, 4]);
        assert_eq!(points(&SWEEPS[1]), [2.0, 1.0, 3.0, 4.0, 5.0]);
        for sweep in SWEEPS {
            let svg = sweep.plot(&rows, "a budget").expect("there are points").to_svg();
            assert!(svg.contains(sweep.name) && svg.contains(VALIDATION), "{}", sweep.file());
            assert!(sweep.plot(&rows[..1], "a budget").is_none(), "one point is no curve");
        }
        let files: std::collections::BTreeSet<String> = SWEEPS.iter().map(Sweep::file).collect();
        assert_eq!(files.len(), SWEEPS.len());
    }
}
