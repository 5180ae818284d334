//! The figures of the inverse rig: speed beside the direct form and NumPy, recovery of known weights, and
//! whether the paper's findings hold on Mira, on real faces and on a quartic rig. Start at [`bench_inverse`].

mod numpy;
mod speed;
pub(crate) mod truth;

pub use speed::Speed;
pub use truth::TruthRun;
pub use understudy_jobs::invert::study::{Study, StudyRow};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use understudy_core::{BlendshapeRig, Mesh, Vec3};
use understudy_jobs::invert::add_noise;
use understudy_jobs::invert::page::sections;
use understudy_jobs::invert::study::{AlphaBy, Effort, Scene, knee_alpha, study};
use understudy_jobs::{Event, JobError, Watch, rigs, threads};
use understudy_report::html::{Column, Page, Section, Table};
use understudy_solve::inverse_rig::{InverseError, InverseRig, InverseSettings};
use understudy_testkit::synthetic::random_take;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchInverseConfig {
    /// Folder of the Python environment and of the pages.
    pub folder: PathBuf,
    /// Run NumPy beside us.
    pub numpy: bool,
    /// Alternating rounds of the timing.
    pub rounds: usize,
    /// Frames of the timed batch.
    pub batch_frames: usize,
    /// Noise on the targets, standard deviation a coordinate, cm.
    pub noise_cm: f64,
    /// The same in the sweep; none for no sweep.
    pub noises_cm: Vec<f64>,
    /// Characters of the studies; all where none is named.
    pub characters: Vec<String>,
    /// Frames of every take whose weights are known.
    pub truth_frames: usize,
    /// Threads.
    pub threads: usize,
    /// What was typed, for the pages.
    pub command: String,
}

impl Default for BenchInverseConfig {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("run/bench-inverse"),
            numpy: true,
            rounds: 3,
            batch_frames: 600,
            noise_cm: 0.03,
            noises_cm: vec![0.0, 0.01, 0.03, 0.1],
            characters: Vec::new(),
            truth_frames: 200,
            threads: threads::available(),
            command: String::new(),
        }
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchInverseReport {
    /// Time.
    pub speed: Speed,
    /// Known takes.
    pub truth: Vec<TruthRun>,
    /// Name and findings of every character whose data is present.
    pub studies: Vec<(String, Study)>,
    /// The pages.
    pub pages: Vec<PathBuf>,
}

/// Measures everything and writes the pages.
pub fn bench_inverse(config: &BenchInverseConfig, watch: &dyn Watch) -> Result<BenchInverseReport, JobError> {
    if config.rounds == 0 || config.batch_frames == 0 || config.truth_frames == 0 {
        return Err(JobError::setting("rounds", "rounds and frames must be one or more"));
    }
    if let Some(name) = config.characters.iter().find(|name| !CHARACTERS.contains(&name.as_str())) {
        let problem = format!("'{name}' is none of {}", CHARACTERS.join(", "));
        return Err(JobError::setting("characters", problem));
    }
    let speed = speed::measure(config, watch)?;
    let pool = threads::pool(config.threads)?;
    let truth = pool.install(|| truth::measure(config, watch))?;
    let mut report = BenchInverseReport { speed, truth, studies: Vec::new(), pages: Vec::new() };
    for name in CHARACTERS.into_iter().filter(|name| config.asks(name)) {
        let Some(Character { rig, mesh, take }) = character(name, watch)? else { continue };
        let studied = pool.install(|| compare(name, &rig, &take, config, watch))?;
        let path = config.folder.join(format!("{name}.html"));
        let page = page(name, &rig, mesh.as_ref(), &take, &studied, config)?;
        understudy_io::write_atomic(&path, page.to_html().as_bytes())?;
        report.studies.push((name.into(), studied));
        report.pages.push(path);
    }
    Ok(report)
}

/// Whose takes are studied. Other identities of ict are not among them: identity moves the neutral mesh alone, the
/// solver sees offsets from it, and so their tables would be hers.
const CHARACTERS: [&str; 4] = ["mira", "ict", "aura", "quartic"];

impl BenchInverseConfig {
    fn asks(&self, name: &str) -> bool {
        self.characters.is_empty() || self.characters.iter().any(|own| own == name)
    }
}

/// A rig, its mesh where it has faces, and weights of a take that is known.
struct Character {
    rig: BlendshapeRig,
    mesh: Option<Mesh>,
    take: Vec<Vec<f32>>,
}

/// Consecutive frames of a long take, from its middle.
const MOST_FRAMES: usize = 480;

/// `None`, with a warning, where its data is not there.
fn character(name: &str, watch: &dyn Watch) -> Result<Option<Character>, JobError> {
    if matches!(name, "aura" | "quartic") {
        let folder = rigs::data_folder().map(|folder| folder.join("compskin"));
        let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
            watch.event(Event::Warning { message: &format!("left out: no compskin data for {name}") });
            return Ok(None);
        };
        let mut take = truth::animation(&folder, usize::MAX)?;
        let first = take.len().saturating_sub(MOST_FRAMES) / 2;
        take = take.into_iter().skip(first).take(MOST_FRAMES).collect();
        let aura = truth::aura(&folder)?;
        let rig = if name == "aura" { aura } else { truth::of_auras_size(&aura) };
        return Ok(Some(Character { rig, mesh: None, take }));
    }
    let rig = match rigs::open(name, watch) {
        Ok(open) => open.rig,
        Err(error) if name != "mira" => {
            watch.event(Event::Warning { message: &format!("left out: {error}") });
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let shapes = rig.blendshapes().ok_or_else(|| JobError::unusable(name, "has no blendshapes"))?;
    // Mira's clips were made by hand; a face without clips gets drawn curves.
    let take = match rig.clips() {
        [] => random_take(shapes.shapes().len(), 240, 3),
        _ => truth::clips(rig.as_ref(), usize::MAX)?,
    };
    Ok(Some(Character { rig: shapes.clone(), mesh: Some(rig.mesh().clone()), take }))
}

fn meshes(rig: &BlendshapeRig, weights: &[Vec<f32>]) -> Vec<Vec<Vec3>> {
    let mut clean = vec![vec![Vec3::ZERO; rig.neutral().len()]; weights.len()];
    weights.iter().zip(&mut clean).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));
    clean
}

fn prepare(name: &str, rig: &BlendshapeRig) -> Result<InverseRig, JobError> {
    InverseRig::prepare(rig).map_err(|error| JobError::unusable(name, error))
}

fn compare(
    name: &str,
    rig: &BlendshapeRig,
    weights: &[Vec<f32>],
    config: &BenchInverseConfig,
    watch: &dyn Watch,
) -> Result<Study, JobError> {
    let inverse = prepare(name, rig)?;
    let clean = meshes(rig, weights);
    let noisy = add_noise(&clean, config.noise_cm, 7);
    let truth: Vec<Vec<f64>> = weights.iter().map(|f| f.iter().map(|w| f64::from(*w)).collect()).collect();
    let scene = Scene { rig, inverse: &inverse, clean: &clean, noisy: &noisy, truth: Some(&truth) };
    let failed = |error: InverseError| match error {
        InverseError::Stopped => JobError::Stopped,
        other => JobError::unusable(name, other),
    };
    // α is chosen on other frames than those of the tables: the knee of their trade-off, as the paper does, and for every
    // method the one of its least error.
    let effort = Effort { noises_cm: config.noises_cm.clone(), ..Effort::default() };
    let table = effort.table_window(clean.len());
    let training: Vec<&[Vec3]> =
        noisy.iter().enumerate().filter(|(t, _)| !table.contains(t)).map(|(_, f)| f.as_slice()).collect();
    let settings = InverseSettings::paper();
    let knee = match training.is_empty() {
        true => settings.alpha.in_square_centimetres(inverse.shape_energy()),
        false => knee_alpha(&inverse, &training, &settings).map_err(failed)?,
    };
    study(&scene, AlphaBy::CleanError { knee }, &settings, &effort, watch).map_err(failed)
}

fn page(
    name: &str,
    rig: &BlendshapeRig,
    mesh: Option<&Mesh>,
    weights: &[Vec<f32>],
    study: &Study,
    config: &BenchInverseConfig,
) -> Result<Page, JobError> {
    let inverse = prepare(name, rig)?;
    let clean = meshes(rig, weights);
    let truth: Vec<Vec<f64>> = weights.iter().map(|f| f.iter().map(|w| f64::from(*w)).collect()).collect();
    let scene = Scene { rig, inverse: &inverse, clean: &clean, noisy: &clean, truth: Some(&truth) };
    let mut page = Page::new(format!("Inverse rig: {name}"))
        .subtitle(format!(
            "{} vertices, {} shapes, {} correctives",
            rig.neutral().len(),
            rig.shapes().len(),
            rig.correctives().len()
        ))
        .command(config.command.clone())
        .fact("noise σ", format!("{} cm a coordinate", config.noise_cm))
        .fact("α", "for every method the one of its least error on other frames")
        .fact("α at the knee", format!("{:.3}", study.alpha));
    for section in sections(&scene, study, mesh) {
        page = page.section(section);
    }
    Ok(page.section(levels(rig)))
}

fn levels(rig: &BlendshapeRig) -> Section {
    let mut table = Table::new([Column::text("correctives of"), Column::number("count", 0)]);
    for (place, count) in understudy_jobs::invert::levels(rig).into_iter().enumerate() {
        table = table.row([format!("{} shapes", place + 2).into(), count.into()]);
    }
    Section::new("The rig").table(table)
}
