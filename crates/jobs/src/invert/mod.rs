//! Blendshape weights from meshes: opens a rig and targets, solves the take, writes weights and a report.
//! Start at [`invert`]. The solver lives in `understudy_solve`; the comparison of methods in `study`,
//! the page in `page`.

mod failure;
mod hints;
mod output;
pub mod page;
pub mod session;
mod shapes;
pub mod study;
mod targets;

pub use output::Layout;
pub use shapes::shapes_of;

/// The solver's settings, for those who fill a configuration.
pub mod solver {
    pub use understudy_solve::inverse_rig::rigid::{RigidFit, RigidSettings};
    pub use understudy_solve::inverse_rig::take::TakeSettings;
    pub use understudy_solve::inverse_rig::{Alpha, InverseSettings, Method, Missing, Order, Symmetry};
}

use crate::outputs::{check_distinct, check_file};
use crate::rigs::{self, OpenRig};
use crate::watch::Remember;
use crate::{Event, JobError, Watch, threads};
use failure::Failure;
use hints::{alpha_note, hint_at_head_motion, warn_of_held, warn_of_unsettled};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;
use targets::Targets;
use understudy_core::{BlendshapeRig, Random, Vec3};
use understudy_io::Format;
use understudy_solve::inverse_rig::metrics::{FrameMetrics, TakeMetrics, measure};
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::tradeoff::AlphaChoice;
use understudy_solve::inverse_rig::{
    Alpha, InverseError, InverseRig, InverseSettings, SmoothReport, SolveReport,
};

/// What to invert and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InvertConfig {
    /// A rig with blendshapes, by name or file.
    pub rig: String,
    /// Meshes to match, in order: `.npz` with `vertices [frames, n, 3]`, `.obj`, `.glb` or `.gltf`.
    pub targets: Vec<PathBuf>,
    /// Weights, as `.csv` or `.npz`.
    pub output: PathBuf,
    /// Method, α, passes, order and the like.
    pub settings: InverseSettings,
    /// Take α from the knee of the trade-off curve instead.
    pub choose_alpha: bool,
    /// Smoothing, warm start and head motion.
    pub take: TakeSettings,
    /// An `.npz` with `weights [n]`: how much each vertex counts.
    pub vertex_weights: Option<PathBuf>,
    /// Hold shapes together whose names differ only in left and right.
    pub symmetric_by_name: bool,
    /// Which animation of a glTF target; `None` for its first.
    pub clip: Option<String>,
    /// Frames a second of the weights, where the targets do not say.
    pub rate: f32,
    /// How a `.csv` is laid out.
    pub layout: Layout,
    /// Standard deviation of noise added to the targets, cm; errors are then against the clean meshes.
    pub noise_cm: f64,
    /// Seeds the noise.
    pub noise_seed: u64,
    /// An HTML page that compares methods and orders on this take.
    pub report: Option<PathBuf>,
    /// Threads; the weights do not depend on it.
    pub threads: usize,
    /// What was typed, for the page.
    pub command: String,
}

impl Default for InvertConfig {
    fn default() -> Self {
        Self {
            rig: String::new(),
            targets: Vec::new(),
            output: PathBuf::new(),
            settings: InverseSettings::default(),
            choose_alpha: false,
            take: TakeSettings::default(),
            vertex_weights: None,
            symmetric_by_name: false,
            clip: None,
            rate: 60.0,
            layout: Layout::Auto,
            noise_cm: 0.0,
            noise_seed: 1,
            report: None,
            threads: threads::available(),
            command: String::new(),
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InvertReport {
    /// The weights' file.
    pub file: PathBuf,
    /// The rig.
    pub rig: String,
    /// Vertices of the rig.
    pub vertices: usize,
    /// Shapes of the rig.
    pub shapes: usize,
    /// Correctives of two, three, … shapes.
    pub correctives: Vec<usize>,
    /// Frames solved.
    pub frames: usize,
    /// How; with the α that was used.
    pub settings: InverseSettings,
    /// The curve behind an automatic α.
    pub alpha_choice: Option<AlphaChoice>,
    /// Smoothing, warm start and head motion.
    pub take: TakeSettings,
    /// How the smoothing went.
    pub smoothing: Option<SmoothReport>,
    /// Errors against the targets (the clean ones, where noise was added), with the whole rig.
    pub metrics: TakeMetrics,
    /// The same, frame by frame.
    pub frame_metrics: Vec<FrameMetrics>,
    /// How each frame's solve ended, before smoothing.
    pub solves: Vec<SolveReport>,
    /// Shapes that no vertex with weight shows.
    pub unseen_shapes: Vec<String>,
    /// Time to tabulate the rig, ms.
    pub prepare_ms: f64,
    /// Time of the whole solve, ms a frame.
    pub solve_ms_per_frame: f64,
    /// The page.
    pub report: Option<PathBuf>,
    /// What was converted, skipped or doubtful.
    pub messages: Vec<String>,
}

/// Solves the take and writes its weights.
pub fn invert(config: &InvertConfig, listener: &dyn Watch) -> Result<InvertReport, JobError> {
    let remember = Remember::new(listener);
    let mut report = run(config, &remember)?;
    report.messages = remember.messages();
    Ok(report)
}

fn run(config: &InvertConfig, watch: &dyn Watch) -> Result<InvertReport, JobError> {
    check(config)?;
    let OpenRig { rig, .. } = rigs::open(&config.rig, watch)?;
    let shapes = &shapes_of(rig.as_ref(), watch)?;
    let mut settings = config.settings.clone();
    if config.symmetric_by_name {
        let pairs = pairs_by_name(shapes);
        let message = format!("{}: {} pairs of left and right shapes", config.rig, pairs.len());
        watch.event(Event::Note { message: &message });
        settings.symmetric.extend(pairs);
    }
    let targets = Targets::read(config, shapes.neutral().len(), watch)?;
    let failure = Failure { rig: &config.rig, targets: &targets };

    let pool = threads::pool(config.threads)?;
    let start = Instant::now();
    let mut inverse = pool.install(|| InverseRig::prepare(shapes)).map_err(|error| failure.of(error))?;
    let prepare_ms = start.elapsed().as_secs_f64() * 1e3;
    warn_of_held(&inverse.unseen_shapes(), &config.rig, "no vertex", watch);
    if let Some(path) = &config.vertex_weights {
        let weights = targets::vertex_weights(path, shapes.neutral().len())?;
        let empty: Vec<String> = inverse.unseen_shapes().into_iter().map(String::from).collect();
        inverse.set_vertex_weights(&weights).map_err(|error| JobError::unusable(path, error))?;
        let mut hidden = inverse.unseen_shapes();
        hidden.retain(|name| !empty.iter().any(|other| other == name));
        warn_of_held(&hidden, &config.rig, "no vertex with weight", watch);
    }
    let unseen_shapes: Vec<String> = inverse.unseen_shapes().into_iter().map(String::from).collect();
    let noisy =
        (config.noise_cm > 0.0).then(|| add_noise(&targets.frames, config.noise_cm, config.noise_seed));
    let seen = noisy.as_ref().unwrap_or(&targets.frames);

    let alpha_choice = match config.choose_alpha {
        true => Some(pool.install(|| inverse.choose_alpha(seen, &settings)).map_err(|e| failure.of(e))?),
        false => None,
    };
    if let Some(choice) = &alpha_choice {
        settings.alpha = choice.alpha;
        watch.event(Event::Note { message: &alpha_note(choice) });
    }
    let start = Instant::now();
    let solved = solve(&pool, &inverse, seen, &settings, &config.take, watch).map_err(|e| failure.of(e))?;
    let solve_ms_per_frame = start.elapsed().as_secs_f64() * 1e3 / seen.len().max(1) as f64;

    let mut clean = targets.frames.clone();
    for (frame, motion) in clean.iter_mut().zip(&solved.motions) {
        frame.iter_mut().for_each(|vertex| *vertex = motion.apply(*vertex));
    }
    let (metrics, frame_metrics) =
        pool.install(|| measure(shapes, &solved.weights, &clean)).map_err(|error| failure.of(error))?;
    warn_of_unsettled(&settings, &solved.reports, watch);
    if config.take.rigid.is_none() {
        hint_at_head_motion(shapes, inverse.vertex_weights(), &solved.weights, &clean, watch);
    }
    let rate = targets.rate.unwrap_or(config.rate);
    output::write(&config.output, config.layout, shapes, &solved.weights, rate, watch)?;

    let report = InvertReport {
        file: config.output.clone(),
        rig: config.rig.clone(),
        vertices: shapes.neutral().len(),
        shapes: shapes.shapes().len(),
        correctives: levels(shapes),
        frames: seen.len(),
        settings,
        alpha_choice,
        take: config.take.clone(),
        smoothing: solved.smoothing,
        metrics,
        frame_metrics,
        solves: solved.reports,
        unseen_shapes,
        prepare_ms,
        solve_ms_per_frame,
        report: config.report.clone(),
        messages: Vec::new(),
    };
    if let Some(path) = &config.report {
        let mut aligned = seen.clone();
        for (frame, motion) in aligned.iter_mut().zip(&solved.motions) {
            frame.iter_mut().for_each(|vertex| *vertex = motion.apply(*vertex));
        }
        let scene =
            study::Scene { rig: shapes, inverse: &inverse, clean: &clean, noisy: &aligned, truth: None };
        let study = || {
            // The comparison is the paper's: its α is the one that was given in its units, or the knee's.
            let alpha = match report.settings.alpha {
                Alpha::Absolute(alpha) => alpha,
                Alpha::Share(_) => study::knee_alpha(&inverse, &aligned, &report.settings)?,
            };
            let by = study::AlphaBy::Given(alpha);
            study::study(&scene, by, &report.settings, &study::Effort::default(), watch)
        };
        let compared = pool.install(study).map_err(|error| failure.of(error))?;
        let page = page::of_take(config, &report, rig.as_ref(), &scene, &solved.weights, &compared);
        understudy_io::write_atomic(path, page.to_html().as_bytes())?;
    }
    Ok(report)
}

fn check(config: &InvertConfig) -> Result<(), JobError> {
    let rig = rigs::source_file(&config.rig);
    let inputs = std::iter::once(rig.as_path()).chain(config.vertex_weights.as_deref());
    let inputs: Vec<&Path> = inputs.chain(config.targets.iter().map(PathBuf::as_path)).collect();
    check_file(&config.output, &inputs)?;
    let format = Format::of(&config.output);
    if !matches!(format, Some(Format::Csv | Format::Npz)) {
        return Err(JobError::unusable(&config.output, "weights are written as .csv or .npz"));
    }
    if config.layout != Layout::Auto && format != Some(Format::Csv) {
        return Err(JobError::setting("layout", "is not used: only a .csv has one"));
    }
    if let Some(path) = &config.report {
        check_file(path, &inputs)?;
        check_distinct(&[("the weights", &config.output), ("the page", path)])?;
    }
    if config.targets.is_empty() {
        return Err(JobError::setting("targets", "there are none"));
    }
    if !config.noise_cm.is_finite() || config.noise_cm < 0.0 {
        return Err(JobError::setting("noise", "must be a number of centimetres, not negative"));
    }
    if !(config.rate.is_finite() && config.rate > 0.0) {
        return Err(JobError::setting("rate", "must be a positive number of frames a second"));
    }
    Ok(())
}

/// The take, on the pool, with progress.
fn solve(
    pool: &rayon::ThreadPool,
    inverse: &InverseRig,
    targets: &[Vec<Vec3>],
    settings: &InverseSettings,
    take: &TakeSettings,
    watch: &dyn Watch,
) -> Result<understudy_solve::inverse_rig::take::Take, InverseError> {
    watch.event(Event::Started { what: "inverting", total: targets.len() as u64, unit: "frames" });
    let done = Mutex::new(0);
    let progress = |count: usize| {
        let mut done = done.lock().expect("no listener panicked");
        if count > *done {
            *done = count;
            watch.event(Event::Step { done: count as u64 });
        }
        !watch.should_stop()
    };
    let solved = pool.install(|| inverse.solve_take_watched(targets, settings, take, &progress))?;
    watch.event(Event::Finished);
    Ok(solved)
}

/// Gaussian noise on every coordinate, from a stream a frame.
pub fn add_noise(frames: &[Vec<Vec3>], sigma_cm: f64, seed: u64) -> Vec<Vec<Vec3>> {
    let frame = |(index, mesh): (usize, &Vec<Vec3>)| {
        let mut random = Random::stream(seed, index as u64);
        let mut shake =
            |vertex: &Vec3| *vertex + Vec3::from_array([0; 3].map(|_| (random.normal() * sigma_cm) as f32));
        mesh.iter().map(&mut shake).collect()
    };
    frames.iter().enumerate().map(frame).collect()
}

/// How many correctives have two, three, … shapes.
pub fn levels(rig: &BlendshapeRig) -> Vec<usize> {
    let mut counts: Vec<usize> = Vec::new();
    for corrective in rig.correctives() {
        let place = corrective.shapes.len() - 2;
        counts.resize(counts.len().max(place + 1), 0);
        counts[place] += 1;
    }
    counts
}

/// Shapes whose names differ only in their side.
fn pairs_by_name(rig: &BlendshapeRig) -> Vec<[String; 2]> {
    const SIDES: [(&str, &str); 6] =
        [("_L", "_R"), (".L", ".R"), ("_l", "_r"), ("Left", "Right"), ("left", "right"), ("_Left", "_Right")];
    let mut pairs: Vec<[String; 2]> = Vec::new();
    for shape in rig.shapes() {
        for (left, right) in SIDES {
            let other = shape.name.strip_suffix(left).map(|stem| format!("{stem}{right}"));
            if let Some(other) = other.filter(|other| rig.find(other).is_some())
                && !pairs.iter().flatten().any(|name| *name == shape.name || *name == other)
            {
                pairs.push([shape.name.clone(), other]);
            }
        }
    }
    pairs
}
