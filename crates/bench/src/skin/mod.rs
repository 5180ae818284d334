//! `bench skin`: skin twins on clips that they have not seen, beside linear regression, principal components, a skin whose
//! bones are fitted to every pose, and the rig. Datasets and twins are kept: what is there is not made again.

mod aura;
mod linear;
pub mod race;

use crate::console::{Console, print, table};
use anyhow::{Context as _, Result};
use clap::Args;
use linear::{Fit, LinearModel};
use std::path::{Path, PathBuf};
use understudy_core::Vec3;
use understudy_io::dataset::DatasetReader;
use understudy_io::write_atomic;
use understudy_jobs::rigs::data_folder;
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::bench::{BenchConfig, bench_twin, time};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::twin::skin::SkinLearning;
use understudy_jobs::twin::{Learning, open_twin};
use understudy_report::plot::{LinePlot, Plot as _, Scale, Series};

/// The clip that no twin ever sees.
const UNSEEN: &str = "roar";
/// Components of the second linear model: as many as the paper of the differential twin takes.
const COMPONENTS: usize = 200;

/// What to learn and weigh.
#[derive(Debug, Args)]
pub struct SkinArguments {
    /// Characters; ict and aura need their data.
    #[arg(default_values_t = ["mira".to_owned(), "ict".to_owned(), "aura".to_owned()])]
    rigs: Vec<String>,
    /// Poses to learn from.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    poses: u64,
    /// Folder of datasets and twins.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    folder: PathBuf,
    /// Other twins of the same character beside it, `name=FILE.twin`; of the first character.
    #[arg(long, value_name = "NAME=FILE", value_delimiter = ',')]
    against: Vec<String>,
    /// Instead of the table: one twin for each number of bones, bones per vertex, and hidden widths.
    #[arg(long)]
    sweep: bool,
}

/// Where the data and the twins of a character are.
struct Place {
    rig: String,
    folder: PathBuf,
}

impl Place {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Poses of noise on clips without the unseen one and a tenth of all frames; that tenth; the unseen clip.
    fn record(&self, poses: u64) -> Result<()> {
        let base = SampleConfig {
            rig: self.rig.clone(),
            exclude: vec![UNSEEN.into()],
            hold_out: 0.1,
            // As `bench face`: the clips of ict leave many controls alone.
            stray: if self.rig == "ict" { 0.1 } else { 0.03 },
            ..SampleConfig::default()
        };
        let train = SampleConfig {
            output: self.at("train"),
            poses: Some(poses),
            method: Some(Method::Noise),
            ..base.clone()
        };
        sample(&train, &Console)?;
        sample(&SampleConfig { output: self.at("held-out"), held_out: true, ..base }, &Console)?;
        let rig = self.rig.clone();
        let clips = vec![UNSEEN.into()];
        sample(&SampleConfig { rig, output: self.at(UNSEEN), clips, ..SampleConfig::default() }, &Console)?;
        Ok(())
    }

    /// Learns a twin, unless one with these settings is there.
    fn twin(&self, name: &str, learning: SkinLearning) -> Result<PathBuf> {
        let path = self.at(&format!("{name}.twin"));
        let settings = serde_json::to_value(&learning.settings)?;
        let same = |path: &Path| {
            open_twin(path)
                .is_ok_and(|twin| twin.header().training.details.get("settings") == Some(&settings))
        };
        if !same(&path) {
            learn(&LearnConfig::new(self.at("train"), &path, Learning::Skin(learning)), &Console)?;
        }
        Ok(path)
    }
}

/// Learns, weighs and prints.
pub fn run(arguments: &SkinArguments) -> Result<()> {
    for (index, rig) in arguments.rigs.iter().enumerate() {
        if rig == "aura" {
            weigh_aura()?;
            continue;
        }
        let folder = arguments.folder.join(format!("skin-{rig}-{}", arguments.poses));
        let place = Place { rig: rig.clone(), folder };
        place.record(arguments.poses)?;
        match arguments.sweep {
            true => sweep(&place)?,
            false => weigh(&place, if index == 0 { &arguments.against } else { &[] })?,
        }
    }
    Ok(())
}

/// Frames of Aura's take: every fourth.
const AURA_FRAMES: usize = 700;
/// Principal components of what Aura's bones leave, one twin each: by default first.
const AURA_COMPONENTS: [Option<usize>; 3] = [None, Some(0), Some(16)];

fn weigh_aura() -> Result<()> {
    let folder = data_folder().map(|data| data.join("compskin")).filter(|folder| folder.is_dir());
    let Some(folder) = folder else {
        print("no compskin data: Aura is left out");
        return Ok(());
    };
    for components in AURA_COMPONENTS {
        let report = aura::weigh(&folder, AURA_FRAMES, components)?;
        print(&format!(
            "aura: 40 bones and {} components{} learned from {} frames of her take and {} random poses; the best bones leave {:.4} mm (RMS); on \
         the last fifth of the take {:.4} mm on average, {:.3} mm at most; {:.2} MB",
            report.components,
            if components.is_none() { " (by default)" } else { "" },
            report.poses[0],
            report.poses[1],
            report.skin_rmse_mm,
            report.found.mean_mm,
            report.found.max_mm,
            report.bytes as f64 / 1e6
        ));
    }
    Ok(())
}

fn weigh(place: &Place, against: &[String]) -> Result<()> {
    let twin = place.twin("skin", SkinLearning::default())?;
    let timed = bench_twin(&BenchConfig { twin: twin.clone(), ..BenchConfig::default() }, &Console)?;
    let settings = SkinLearning::default().settings;
    let sets = [place.at("held-out"), place.at(UNSEEN)];
    let skin = format!("lbs{}", settings.bones);
    let against = against
        .iter()
        .map(|one| {
            let (name, file) = one.split_once('=').with_context(|| format!("--against {one}: no '='"))?;
            Ok((name.to_owned(), PathBuf::from(file)))
        })
        .collect::<Result<Vec<_>>>()?;
    let weighing = EvalConfig {
        twin: twin.clone(),
        against: against.clone(),
        test: sets.to_vec(),
        train: Some(place.at("train")),
        baselines: vec![skin.clone()],
        ..EvalConfig::default()
    };
    let report = eval(&weighing, &Console)?;
    let number = |digits: usize, number: f64| format!("{number:.digits$}");
    let mut rows = Vec::new();
    for name in &report.order {
        let figures = report
            .sets
            .values()
            .flat_map(|set| set.get(name).map_or([f64::NAN; 2], |m| [m.mean_mm, m.max_mm]));
        let all = &report.methods[name];
        let (shown, ms) = match name.as_str() {
            "twin" => ("skin twin".to_owned(), timed.threads["1"]),
            other => match against.iter().find(|(name, _)| name == other) {
                Some((_, path)) => {
                    let config = BenchConfig { twin: path.clone(), ..BenchConfig::default() };
                    (format!("{other} twin"), bench_twin(&config, &Console)?.threads["1"])
                }
                None => (format!("{other}, bones fitted to each pose"), all.ms),
            },
        };
        let mut row = vec![shown];
        row.extend(figures.map(|f| number(3, f)));
        row.extend([number(3, ms), number(2, all.bytes as f64 / 1e6)]);
        rows.push(row);
    }
    let fit = Fit::new(&place.at("train"))?;
    let models = [
        ("linear regression".to_owned(), fit.regression()?),
        (format!("{COMPONENTS} components, regression"), fit.components(COMPONENTS)?),
    ];
    for (name, mut model) in models {
        let mut row = vec![name];
        for set in &sets {
            row.extend(miss_mm(&mut model, set)?.map(|f| number(3, f)));
        }
        let ms = linear_ms(&mut model, &sets[1])?;
        row.extend([number(3, ms), number(2, model.bytes() as f64 / 1e6)]);
        rows.push(row);
    }
    if let Some(ms) = timed.rig_ms {
        let mut row = vec![format!("the rig, {}", place.rig)];
        row.extend(["-", "-", "-", "-"].map(str::to_owned));
        row.extend([number(3, ms), "-".into()]);
        rows.push(row);
    }
    let names: Vec<&str> = report.sets.keys().map(String::as_str).collect();
    let heads: Vec<String> =
        names.iter().flat_map(|set| [format!("{set}: mean mm"), "max mm".into()]).collect();
    let mut head = vec![""];
    head.extend(heads.iter().map(String::as_str));
    head.extend(["ms per pose", "MB"]);
    print(&format!("{}, {} poses to learn from", place.rig, report.training_poses.unwrap_or(0)));
    print(&table(&head, &rows));
    print(&timed.verdict);
    write_curve(place, &rows)
}

/// Error of the unseen clip against milliseconds, a point per model that moves by controls alone, and whether any is both nearer
/// and faster than the skin twin.
fn write_curve(place: &Place, rows: &[Vec<String>]) -> Result<()> {
    /// Where the mean error of the unseen clip and milliseconds stand in a row.
    const COLUMNS: [usize; 2] = [3, 5];
    let number = |row: &[String], column: usize| row.get(column).and_then(|cell| cell.parse::<f64>().ok());
    let point = |row: &Vec<String>| {
        let [mm, ms] = COLUMNS.map(|column| number(row, column));
        // Bones that are fitted to the true vertices of each pose are no model that an engine has.
        let fitted = row[0].ends_with("fitted to each pose");
        (!fitted).then_some(())?;
        Some((row[0].clone(), [ms?, mm?]))
    };
    let points: Vec<(String, [f64; 2])> = rows.iter().filter_map(point).collect();
    let mut plot = LinePlot::new(format!("{}, a clip that none has seen", place.rig))
        .x_label("ms per pose, one thread")
        .y_label("mean error, mm")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log);
    for (name, point) in &points {
        plot = plot.series(Series::new(name.clone(), vec![*point]));
    }
    write_atomic(&place.at("error-ms.svg"), plot.to_svg().as_bytes())?;
    let (_, own) = points.first().context("the skin twin was weighed")?;
    let better: Vec<&str> = points
        .iter()
        .filter(|(_, other)| other[0] < own[0] && other[1] < own[1])
        .map(|(name, _)| name.as_str())
        .collect();
    match better.is_empty() {
        true => print("nothing is both nearer and faster than the skin twin"),
        false => print(&format!("both nearer and faster than the skin twin: {}", better.join(", "))),
    }
    Ok(())
}

/// Mean and largest distance of a vertex over a dataset, mm.
fn miss_mm(model: &mut LinearModel, folder: &Path) -> Result<[f64; 2]> {
    let (mut sum, mut most, mut count) = (0.0, 0.0f64, 0usize);
    for pose in DatasetReader::open(folder)?.poses() {
        let pose = pose?;
        let places = model.evaluate(&pose.controls.0).chunks_exact(3).map(Vec3::from_slice);
        for (place, truth) in places.zip(&pose.vertices) {
            let miss = f64::from(place.distance(*truth)) * 10.0;
            sum += miss;
            most = most.max(miss);
            count += 1;
        }
    }
    Ok([sum / count.max(1) as f64, most])
}

fn linear_ms(model: &mut LinearModel, folder: &Path) -> Result<f64> {
    let poses: Vec<Vec<f32>> = DatasetReader::open(folder)?
        .poses()
        .take(20)
        .map(|pose| Ok(pose?.controls.0))
        .collect::<Result<_>>()?;
    let mut run = |index: usize| {
        std::hint::black_box(model.evaluate(&poses[index % poses.len()]));
    };
    time(10, &mut run);
    Ok(time(50, run))
}

/// Twins of other sizes: mean error on both sets, time and size.
fn sweep(place: &Place) -> Result<()> {
    let mut rows = Vec::new();
    let sizes: [(usize, usize, &[usize]); 10] = [
        (16, 8, &[128, 128]),
        (32, 8, &[128, 128]),
        (64, 4, &[128, 128]),
        (64, 8, &[128, 128]),
        (96, 8, &[128, 128]),
        (128, 4, &[128, 128]),
        (128, 8, &[128, 128]),
        (64, 8, &[]),
        (64, 8, &[64, 64]),
        (64, 8, &[256, 256]),
    ];
    for (bones, influences, widths) in sizes {
        let mut learning = SkinLearning::default();
        learning.settings.bones = bones;
        learning.settings.influences = influences;
        learning.settings.widths = widths.to_vec();
        let hidden = widths.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let path = place.twin(&format!("skin-{bones}-{influences}-{hidden}"), learning)?;
        let test = vec![place.at("held-out"), place.at(UNSEEN)];
        let report = eval(&EvalConfig { twin: path.clone(), test, ..EvalConfig::default() }, &Console)?;
        let timed = bench_twin(&BenchConfig { twin: path, ..BenchConfig::default() }, &Console)?;
        let mut row = vec![format!("{bones} bones, {influences} per vertex, hidden {hidden}")];
        row.extend(report.sets.values().map(|set| format!("{:.3}", set["twin"].mean_mm)));
        row.push(format!("{:.3}", timed.threads["1"]));
        row.push(format!("{:.2}", report.methods["twin"].bytes as f64 / 1e6));
        print(&row.join("  "));
        rows.push(row);
    }
    print(&table(&[&place.rig, "held-out mm", "roar mm", "ms per pose", "MB"], &rows));
    Ok(())
}
