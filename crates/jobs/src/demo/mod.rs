//! Everything on the embedded characters: pictures of every clip, small datasets, a body twin and a face
//! twin beside their originals, a script of motion, and one page that shows it all. Start at [`demo`].

mod cast;
mod face;
mod motion;
mod page;
mod pose;
mod weights;

pub use pose::HandPoses;

use crate::characters::{Character, CharactersConfig, characters};
use crate::motion::{LearnMotionReport, PlayMotionReport};
use crate::outputs::check_folder;
use crate::rigs;
use crate::sample::{Method, SampleConfig, SampleReport, sample};
use crate::twin::Learning;
use crate::twin::body::BodyLearning;
use crate::twin::eval::{EvalConfig, EvalReport, eval};
use crate::twin::learn::{LearnConfig, LearnReport, learn};
use crate::weights::WeightsReport;
use crate::{JobError, Watch, threads};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;
use understudy_io::write_atomic;

/// What to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DemoConfig {
    /// Folder for pictures, datasets, the twins and the report.
    pub output: PathBuf,
    /// Poses of Rook's training set; Mira's has two and a half times as many.
    pub poses: u64,
    /// Training steps of the face's coarse networks and of those that refine them.
    pub face_steps: [usize; 2],
    /// Iterations of learning motion, per label.
    pub motion_iterations: usize,
    /// Side of a picture on a contact sheet, pixels.
    pub size: usize,
    /// Threads.
    pub threads: usize,
    /// Shown on the page.
    pub command: String,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self {
            output: "demo".into(),
            poses: 1200,
            face_steps: [1400, 900],
            motion_iterations: 60,
            size: 256,
            threads: threads::available(),
            command: String::new(),
        }
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
    pub twin: LearnReport,
    /// The twin against fitted skinning on clips that it was not trained on.
    pub eval: EvalReport,
    /// The twin of Mira's face.
    pub face: LearnReport,
    /// Mira's twin against its coarse part and skinning.
    pub face_eval: EvalReport,
    /// Latent spaces of Mira's clips.
    pub motion: LearnMotionReport,
    /// A script that walks them.
    pub take: PlayMotionReport,
    /// Weights of points on Mira.
    pub weights: WeightsReport,
    /// Rook by his handles, Mira by her points.
    pub posed: HandPoses,
    /// Duration.
    pub seconds: f64,
}

/// Clips that Rook's twin is tried on; it is trained on random poses alone.
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
        sections.push(pool.install(|| cast::show_character(rig.as_ref(), config, watch))?);
    }
    let datasets = record(config, watch)?;
    let twin = learn(&twin_config(config), watch)?;
    let eval = eval(
        &EvalConfig {
            twin: twin.output.clone(),
            test: TEST_CLIPS.map(|clip| out.join(format!("data/rook-{clip}"))).to_vec(),
            train: Some(out.join("data/rook")),
            baselines: vec!["lbs4".into()],
            report: Some(out.join("twin")),
            threads: config.threads,
            command: config.command.clone(),
            ..EvalConfig::default()
        },
        watch,
    )?;
    let (face, face_eval, face_section) = pool.install(|| face::show(config, watch))?;
    let (posed, posed_section) = pool.install(|| pose::show(config, &face::skin_twin(config), watch))?;
    let (motion, take, motion_section) = pool.install(|| motion::show(config, watch))?;
    let (weights, weights_section) = weights::show(config, watch)?;
    let mut report = DemoReport {
        report: out.join("report.html"),
        characters: figures,
        datasets,
        twin,
        eval,
        face,
        face_eval,
        motion,
        take,
        weights,
        posed,
        seconds: start.elapsed().as_secs_f64(),
    };
    let more = [face_section, posed_section, motion_section, weights_section];
    let page = page::page(config, &report, sections, more);
    write_atomic(&report.report, page.to_html().as_bytes())?;
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

fn twin_config(config: &DemoConfig) -> LearnConfig {
    let mut body = BodyLearning::default();
    body.settings.train.epochs = EPOCHS;
    body.settings.train.batch = 64;
    body.settings.train.rate = 0.004;
    let (data, output) = (config.output.join("data/rook"), config.output.join("rook.twin"));
    LearnConfig { threads: config.threads, ..LearnConfig::new(data, output, Learning::Body(body)) }
}

/// Training poses of both characters, and the clips that their twins are tried on.
fn record(config: &DemoConfig, watch: &dyn Watch) -> Result<Vec<SampleReport>, JobError> {
    let data = config.output.join("data");
    let base = SampleConfig { threads: config.threads, ..SampleConfig::default() };
    let mut wanted = vec![SampleConfig {
        rig: "rook".into(),
        output: data.join("rook"),
        poses: Some(config.poses),
        method: Some(Method::Sparse),
        ..base.clone()
    }];
    wanted.extend(TEST_CLIPS.map(|clip| SampleConfig {
        rig: "rook".into(),
        output: data.join(format!("rook-{clip}")),
        clips: vec![clip.into()],
        ..base.clone()
    }));
    wanted.extend(face::datasets(config, &base));
    wanted.iter().map(|config| sample(config, watch)).collect()
}
