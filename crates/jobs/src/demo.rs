//! Everything on the embedded characters: pictures of every clip, small datasets, a body twin beside its
//! original, and one page that shows it all. Start at [`demo`].

use crate::characters::{Character, CharactersConfig, characters};
use crate::outputs::check_folder;
use crate::render::clip_moments;
use crate::rigs;
use crate::sample::{Method, SampleConfig, SampleReport, sample};
use crate::stage::{Shot, Stage, View};
use crate::twin::eval::{EvalConfig, EvalReport, eval};
use crate::twin::learn::{LearnBodyConfig, LearnBodyReport, learn_body};
use crate::{Event, JobError, Watch, threads};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::{Clip, Controls, metrics};
use understudy_io::write_atomic;
use understudy_report::Picture;
use understudy_report::html::{Cell, Column, Page, Section, Table};
use understudy_report::plot::{BarChart, BarSeries, Histogram, LinePlot, Series};
use understudy_rigs::{Rig, RigPose};

/// What to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DemoConfig {
    /// Folder for pictures, datasets, the twin and the report.
    pub output: PathBuf,
    /// Poses a dataset.
    pub poses: u64,
    /// Threads.
    pub threads: usize,
    /// Shown on the page.
    pub command: String,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self { output: "demo".into(), poses: 1200, threads: threads::available(), command: String::new() }
    }
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemoReport {
    /// The page.
    pub report: PathBuf,
    /// Figures of the characters.
    pub characters: Vec<Character>,
    /// The datasets.
    pub datasets: Vec<SampleReport>,
    /// The twin of Rook.
    pub twin: LearnBodyReport,
    /// The twin against fitted skinning on clips that it was not trained on.
    pub eval: EvalReport,
    /// Duration.
    pub seconds: f64,
}

/// Frames a contact sheet.
const FRAMES: usize = 8;
/// Side of a picture on a contact sheet, pixels.
const SIZE: usize = 256;
/// Clips that the twin is tried on; it is trained on random poses alone.
const TEST_CLIPS: [&str; 2] = ["walk", "kick"];
/// Epochs of the demo's twin: enough to beat skinning clearly, few enough to wait for.
const EPOCHS: usize = 40;

/// Runs everything.
pub fn demo(config: &DemoConfig, watch: &dyn Watch) -> Result<DemoReport, JobError> {
    check_folder(&config.output)?;
    let start = Instant::now();
    let out = &config.output;
    let names = ["rook", "mira"].map(String::from).to_vec();
    let figures =
        characters(&CharactersConfig { names: names.clone(), ..CharactersConfig::default() }, watch)?;
    let pool = threads::pool(config.threads)?;
    let mut sections = Vec::new();
    for name in &names {
        let rig = rigs::open(name, watch)?.rig;
        sections.push(pool.install(|| show_character(rig.as_ref(), out, watch))?);
    }
    let datasets = record(config, watch)?;
    let twin = learn_body(&twin_config(config), watch)?;
    let eval = eval(
        &EvalConfig {
            twin: twin.output.clone(),
            test: TEST_CLIPS.map(|clip| out.join(format!("data/rook-{clip}"))).to_vec(),
            train: Some(out.join("data/rook")),
            baselines: vec!["lbs4".into()],
            report: Some(out.join("twin")),
            threads: config.threads,
            command: config.command.clone(),
        },
        watch,
    )?;
    let report = out.join("report.html");
    let page = page(config, &figures, &datasets, &twin, &eval, sections, start.elapsed().as_secs_f64());
    write_atomic(&report, page.to_html().as_bytes())?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(DemoReport { report, characters: figures, datasets, twin, eval, seconds })
}

fn twin_config(config: &DemoConfig) -> LearnBodyConfig {
    let mut twin = LearnBodyConfig {
        data: config.output.join("data/rook"),
        output: config.output.join("rook.twin"),
        threads: config.threads,
        ..LearnBodyConfig::default()
    };
    twin.settings.train.epochs = EPOCHS;
    twin.settings.train.batch = 64;
    twin.settings.train.rate = 0.004;
    twin
}

/// Random poses of both characters, and the clips that the twin is tried on.
fn record(config: &DemoConfig, watch: &dyn Watch) -> Result<Vec<SampleReport>, JobError> {
    let data = config.output.join("data");
    let base = SampleConfig { threads: config.threads, ..SampleConfig::default() };
    let mut wanted = vec![
        SampleConfig {
            rig: "rook".into(),
            output: data.join("rook"),
            poses: Some(config.poses),
            method: Some(Method::Sparse),
            ..base.clone()
        },
        SampleConfig {
            rig: "mira".into(),
            output: data.join("mira"),
            poses: Some(config.poses.div_ceil(4)),
            method: Some(Method::Noise),
            ..base.clone()
        },
    ];
    wanted.extend(TEST_CLIPS.map(|clip| SampleConfig {
        rig: "rook".into(),
        output: data.join(format!("rook-{clip}")),
        clips: vec![clip.into()],
        ..base.clone()
    }));
    wanted.iter().map(|config| sample(config, watch)).collect()
}

/// Three views of the rest pose, a sheet of every clip, and how far the clips move the vertices.
fn show_character(rig: &dyn Rig, out: &Path, watch: &dyn Watch) -> Result<Section, JobError> {
    let name = rig.name();
    let stage = Stage { mesh: rig.mesh(), colours: rig.colours(), size: SIZE, dark: false };
    let views = ["front", "three-quarter", "side"].map(View::named);
    let mut pose = RigPose::default();
    rig.evaluate(&rig.specs().defaults(), &mut pose).map_err(JobError::rig(name))?;
    let rest = [Shot { vertices: pose.vertices.clone(), caption: "rest".into() }];
    let what = format!("drawing {name}");
    watch.event(Event::Started { what: &what, total: rig.clips().len() as u64 + 1, unit: "sheets" });
    let picture = stage.sheet(name, "rest pose", &rest, &views);
    save(out, &format!("{name}-rest"), &picture)?;
    let mut section = Section::new(capitalised(name)).picture(&picture, "The rest pose from three views.");
    let mut motion =
        LinePlot::new("How far vertices move").x_label("seconds").y_label("mean distance from rest, cm");
    let mut displacements = Vec::new();
    for (index, clip) in rig.clips().iter().enumerate() {
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

fn save(out: &Path, name: &str, picture: &Picture) -> Result<(), JobError> {
    Ok(write_atomic(&out.join("pictures").join(format!("{name}.png")), &picture.to_png())?)
}

fn clip_shots(rig: &dyn Rig, clip: &Clip) -> Result<Vec<Shot>, JobError> {
    let mut pose = RigPose::default();
    let shoot = |(controls, caption): (Controls, String)| {
        rig.evaluate(&controls, &mut pose).map_err(JobError::rig(rig.name()))?;
        Ok(Shot { vertices: pose.vertices.clone(), caption })
    };
    clip_moments(rig, &clip.name, None, Some(FRAMES))?.into_iter().map(shoot).collect()
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

fn page(
    config: &DemoConfig,
    figures: &[Character],
    datasets: &[SampleReport],
    twin: &LearnBodyReport,
    eval: &EvalReport,
    sections: Vec<Section>,
    seconds: f64,
) -> Page {
    let mut cast = Table::new([
        Column::text("character"),
        Column::number("vertices", 0),
        Column::number("faces", 0),
        Column::number("bones", 0),
        Column::number("controls", 0),
        Column::number("segments", 0),
        Column::number("islands", 0),
        Column::number("ms a pose", 2),
        Column::text("clips"),
    ]);
    for c in figures {
        let numbers = [c.vertices, c.faces, c.bones, c.controls, c.segments, c.islands].map(Cell::from);
        let cells = std::iter::once(Cell::from(c.name.clone())).chain(numbers);
        cast = cast.row(cells.chain([Cell::from(c.evaluate_ms), Cell::from(c.clips.join(", "))]));
    }
    let cost = BarChart::new("Cost of a pose", "ms, one thread")
        .categories(figures.iter().map(|c| c.name.clone()))
        .series(BarSeries::new("rig", figures.iter().map(|c| c.evaluate_ms).collect()));
    let mut recorded = Table::new([
        Column::text("dataset"),
        Column::text("method"),
        Column::number("poses", 0),
        Column::number("MB", 1),
        Column::number("poses a second", 0),
    ]);
    for d in datasets {
        recorded = recorded.row([
            Cell::from(d.folder.display().to_string()),
            Cell::from(format!("{:?}", d.method).to_lowercase()),
            Cell::from(d.poses as usize),
            Cell::from(d.bytes as f64 / 1e6),
            Cell::from(d.poses_per_second),
        ]);
    }
    let mut weighed = Table::new([
        Column::text("clip"),
        Column::text("method"),
        Column::number("mean, cm", 4).lowest_is_best(),
        Column::number("95 %, cm", 4),
        Column::number("max, cm", 2),
        Column::number("ms a pose", 3),
    ]);
    for (set, methods) in &eval.sets {
        for (name, m) in methods {
            let numbers = [m.mean_cm, m.p95_cm, m.max_cm, m.ms].map(Cell::from);
            weighed =
                weighed.row([Cell::from(set.clone()), Cell::from(name.clone())].into_iter().chain(numbers));
        }
    }
    let story = format!(
        "{} networks, trained for {:.0} s on {} random poses; neither clip was among them. A full twin sees \
         10,000 poses. The heat maps are in twin/eval.html.",
        twin.groups, twin.seconds, twin.poses
    );
    let mut page = Page::new("Understudy: the demo")
        .subtitle(format!("Two characters, their clips, datasets and a twin, in {seconds:.0} s"))
        .command(config.command.clone())
        .section(Section::new("The cast").table(cast).plot(&cost, "Median of 21 random poses."));
    for section in sections {
        page = page.section(section);
    }
    page.section(Section::new("Datasets").table(recorded))
        .section(Section::new("Rook's twin").paragraph(story).table(weighed))
}
