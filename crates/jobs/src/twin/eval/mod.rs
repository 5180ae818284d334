//! `eval`: a twin of any kind and everything that it is compared with, on the same held-out poses. Start at [`eval`];
//! who is compared is in `contestants`, what else is measured in `figures`, the page in `page`.

mod clean;
mod contestants;
pub(crate) mod figures;
pub(crate) mod gaps;
mod page;
pub(crate) mod pictures;
pub mod posing;
pub(crate) mod seams;
mod segments;
mod spectrum;

use super::data::{Loaded, match_twin, named_or_live_rig, open_twin};
use super::kinds::kind;
use super::learn::recorded_rig_ms;
use crate::outputs::check_folder;
use crate::sample::KEPT_FOR_TESTS;
use crate::{Event, JobError, Watch, threads};
use clean::Origin;
use contestants::{Contestant, Contestants};
use figures::{Figures, Posed, Study};
use pictures::{Exhibit, shown_poses};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use understudy_core::metrics::{
    best_bones, distances, enveloping_error, normal_angles, squared_distance, summarise,
};
use understudy_core::{Affine3A, Vec3};
use understudy_learn::{Frame, Method, PosedRig, Recording};
use understudy_rigs::Rig;
use understudy_runtime::Twin;

pub use contestants::FitFacts;
pub use understudy_learn::baselines::Baseline;

/// What to weigh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// Datasets of held-out poses.
    pub test: Vec<PathBuf>,
    /// The original, where it is not where the twin says; clips are played on it.
    pub rig: Option<String>,
    /// Clips of the rig, by name or from a file, that are recorded in memory and weighed like datasets.
    pub clips: Vec<String>,
    /// Other twins of the same mesh, with the names that they go by in the table.
    pub against: Vec<(String, PathBuf)>,
    /// The dataset that the baselines are fitted to: the twin's own; `None` weighs twins alone. Fits are kept
    /// beside it.
    pub train: Option<PathBuf>,
    /// Baselines to fit by name ([`Baseline`]), or `all`; the usual ones when empty. Twins that are posed by controls
    /// alone also have skinning decompositions, `lbs` and a number of bones.
    pub baselines: Vec<String>,
    /// Whether the baselines are fitted to each test set itself too, in rows of their own: a protocol that favours them.
    pub fit_on_test: bool,
    /// Folder for the HTML page and its pictures; none when absent.
    pub report: Option<PathBuf>,
    /// Threads; results do not depend on it.
    pub threads: usize,
    /// Shown on the page.
    pub command: String,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            twin: PathBuf::new(),
            test: Vec::new(),
            rig: None,
            clips: Vec::new(),
            against: Vec::new(),
            train: None,
            baselines: Vec::new(),
            fit_on_test: false,
            report: None,
            threads: threads::available(),
            command: String::new(),
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodFigures {
    /// Mean distance of a vertex, mm.
    pub mean_mm: f64,
    /// 95 % of the vertices are nearer, mm.
    pub p95_mm: f64,
    /// The worst vertex of all poses, mm.
    pub max_mm: f64,
    /// Mean angle between face normals, degrees.
    pub normal_deg: f64,
    /// Enveloping error over these poses, where they have bones: 100 is as good as the best single bone of every vertex.
    pub ee: Option<f64>,
    /// Milliseconds a pose on one thread, median.
    pub ms: f64,
    /// Size of the model.
    pub bytes: usize,
    /// Poses that it learned from or was fitted to; `None` for what needs none, and over several sets for what is fitted
    /// to each of them.
    pub poses: Option<usize>,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalReport {
    /// The kind of the twin, as files have it.
    pub kind: &'static str,
    /// Figures over all test poses.
    pub methods: BTreeMap<String, MethodFigures>,
    /// Figures of each test set.
    pub sets: BTreeMap<String, BTreeMap<String, MethodFigures>>,
    /// Sets of a clip that is kept for tests; the others are for validation, settings may have been chosen by them.
    pub kept_for_tests: Vec<String>,
    /// Names of the methods in the order of the table, the twin first.
    pub order: Vec<String>,
    /// Milliseconds a pose of the rig itself on one thread, median, where it is at hand.
    pub original_ms: Option<f64>,
    /// How the baselines were fitted.
    pub fits: BTreeMap<String, FitFacts>,
    /// Poses of the training set, where one was named.
    pub training_poses: Option<usize>,
    /// Test poses.
    pub poses: usize,
    /// What else was measured: `spectrum`, `segments`, `rigid`, `teeth`; of bodies `seams`, of faces `gaps`.
    #[serde(flatten)]
    pub findings: BTreeMap<&'static str, serde_json::Value>,
    /// The same for people, a line each.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// The page, where one was asked for and could be written.
    pub page: Option<PathBuf>,
    /// Why a page that was asked for is not there: the figures are worth having all the same.
    pub page_problem: Option<String>,
}

/// A report, and what pictures are made of.
pub(crate) struct Weighed {
    pub report: EvalReport,
    pub twin: Twin,
    pub exhibits: Vec<Exhibit>,
    figures: Vec<Box<dyn Figures>>,
    /// Distances of all vertices, by method, cm.
    errors: Vec<Vec<f32>>,
    mesh: understudy_core::Mesh,
}

impl Weighed {
    /// The rest mesh.
    pub fn mesh(&self) -> &understudy_core::Mesh {
        &self.mesh
    }
}

/// Weighs a twin, and writes its page where one is asked for.
pub fn eval(config: &EvalConfig, watch: &dyn Watch) -> Result<EvalReport, JobError> {
    config.report.as_deref().map(check_folder).transpose()?;
    let mut weighed = weigh(config, watch)?;
    if let Some(folder) = &config.report {
        watch.event(Event::Started { what: "drawing heat maps", total: 1, unit: "page" });
        let rig = named_or_live_rig(&weighed.twin, &config.twin, config.rig.as_deref(), &crate::Silent);
        let page = rig.and_then(|rig| {
            let colours = rig.as_ref().and_then(|rig| rig.colours());
            page::write(folder, &config.command, &weighed, colours)
        });
        match page {
            Ok(page) => weighed.report.page = Some(page),
            Err(error) => weighed.report.page_problem = Some(error.to_string()),
        }
        watch.event(Event::Finished);
    }
    Ok(weighed.report)
}

/// [`eval`] without a page.
pub(crate) fn weigh(config: &EvalConfig, watch: &dyn Watch) -> Result<Weighed, JobError> {
    if config.test.is_empty() && config.clips.is_empty() {
        return Err(JobError::setting("test", "no dataset of held-out poses is named, and no clip"));
    }
    let twin = open_twin(&config.twin)?;
    let baselines = contestants::Baselines::wanted(config, &twin)?;
    if config.train.as_ref().is_some_and(|folder| config.test.contains(folder)) {
        return Err(JobError::setting("test", "the training poses are among the test poses"));
    }
    let pool = threads::pool(config.threads)?;
    pool.install(|| {
        let rig = named_or_live_rig(&twin, &config.twin, config.rig.as_deref(), watch)?;
        let (sets, origins) = test_sets(config, &twin, rig.as_deref(), watch)?;
        clean::check("the twin", &twin, &origins, watch)?;
        let contestants = contestants::all(config, &twin, &baselines, (&sets, &origins), watch)?;
        sets.iter().try_for_each(|(name, poses)| contestants.check(name, poses))?;
        let posing = posing::weigh(config, &twin, rig.as_deref())?;
        let mut weighed = compare(twin, sets, &contestants, rig.as_deref(), watch)?;
        if let Some(posing) = posing {
            weighed.report.lines.extend(posing.lines());
            weighed.report.findings.insert("posing", serde_json::to_value(&posing).unwrap_or_default());
        }
        let kept = origins.into_iter().filter(|origin| !origin.kept.is_empty());
        weighed.report.kept_for_tests = kept.map(|origin| origin.set).collect();
        Ok(weighed)
    })
}

/// Sets with their names, and where each comes from.
type TestSets = (Vec<(String, Recording)>, Vec<Origin>);

/// Datasets from disk, and clips recorded in memory.
fn test_sets(
    config: &EvalConfig,
    twin: &Twin,
    rig: Option<&dyn Rig>,
    watch: &dyn Watch,
) -> Result<TestSets, JobError> {
    let (mut sets, mut origins): TestSets = Default::default();
    let mut push = |origin: Origin, recording: Recording| {
        let name = origin.set.clone();
        if sets.iter().any(|(other, _)| *other == name) {
            return Err(JobError::setting("test", format!("two sets are named '{name}'")));
        }
        origins.push(origin);
        sets.push((name, recording));
        Ok(())
    };
    for folder in &config.test {
        let loaded = Loaded::read_for(twin, folder, usize::MAX, watch)?;
        let origin = Origin::of_dataset(set_name(folder), &loaded.header.settings, KEPT_FOR_TESTS);
        push(origin, loaded.recording)?;
    }
    for clip in &config.clips {
        let rig = rig.ok_or_else(|| {
            let problem = format!(
                "the rig '{}' that it is played on is not at hand; name it with --rig",
                twin.header().rig
            );
            JobError::setting(format!("clip '{clip}'"), problem)
        })?;
        let (name, mut recording) = super::record::record_clip(rig, clip, watch)?;
        match_twin(twin, &mut recording).map_err(|problem| JobError::unusable(rig.name(), problem))?;
        let kept = rig.find_clip(clip).filter(|clip| clip.is_for_test()).map(|clip| clip.name.clone());
        let clips = vec![clip.clone()];
        push(Origin { set: name, clips, held_out: false, kept: kept.into_iter().collect() }, recording)?;
    }
    Ok((sets, origins))
}

/// What a set is called in tables: its folder.
pub(super) fn set_name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Sums of one method over poses.
#[derive(Default)]
struct Tally {
    distances: Vec<f32>,
    squared: f64,
    angles: (f64, usize),
    milliseconds: Vec<f64>,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.distances.extend_from_slice(&outcome.misses);
        self.squared += outcome.squared;
        self.angles.0 += outcome.angles.iter().map(|a| f64::from(*a)).sum::<f64>();
        self.angles.1 += outcome.angles.len();
    }

    fn append(&mut self, other: Self) {
        self.squared += other.squared;
        self.angles = (self.angles.0 + other.angles.0, self.angles.1 + other.angles.1);
        self.milliseconds.extend(other.milliseconds);
        match self.distances.is_empty() {
            true => self.distances = other.distances,
            false => self.distances.extend(other.distances),
        }
    }

    fn figures(
        &mut self,
        of: &Contestant,
        poses: Option<usize>,
        rigid_squared: Option<f64>,
    ) -> MethodFigures {
        let summary = summarise(&self.distances);
        self.milliseconds.sort_by(f64::total_cmp);
        MethodFigures {
            mean_mm: summary.mean * 10.0,
            p95_mm: summary.p95 * 10.0,
            max_mm: summary.max * 10.0,
            normal_deg: self.angles.0 / self.angles.1.max(1) as f64,
            ee: rigid_squared.map(|rigid| enveloping_error(self.squared, rigid)),
            ms: self.milliseconds.get(self.milliseconds.len() / 2).copied().unwrap_or(0.0),
            bytes: of.bytes,
            poses,
        }
    }
}

/// What one method makes of one pose.
struct Outcome {
    vertices: Vec<Vec3>,
    misses: Vec<f32>,
    angles: Vec<f32>,
    squared: f64,
}

/// Poses that are timed, one at a time on one thread, a set; all are weighed.
const TIMED: usize = 24;

fn compare(
    twin: Twin,
    sets: Vec<(String, Recording)>,
    contestants: &Contestants,
    rig: Option<&dyn Rig>,
    watch: &dyn Watch,
) -> Result<Weighed, JobError> {
    let all = &contestants.all;
    let names: Vec<String> = all.iter().map(|contestant| contestant.name.clone()).collect();
    let mesh = sets[0].1.mesh.clone();
    let study = Study { mesh: &mesh, sets: &sets, names: &names };
    let mut figures: Vec<Box<dyn Figures>> =
        vec![Box::new(spectrum::Spectra::new(&study)), Box::new(segments::Segments::new(&study, &twin))];
    figures.extend(kind(&twin).figures(&study));
    let edges: Vec<(u32, u32)> = mesh.adjacency().edges().collect();
    // The enveloping error is about bones: of twins that are posed by them.
    let carried: Option<Vec<Vec<SkinnedPose<'_>>>> = (!twin.header().inputs.bones.is_empty())
        .then(|| sets.iter().map(|(_, poses)| skinned_poses(poses)).collect());
    let tallies = || -> Vec<Tally> { names.iter().map(|_| Tally::default()).collect() };
    let (mut whole, mut exhibits, mut by_set, mut number) = (tallies(), Vec::new(), BTreeMap::new(), 0);
    for (index, (name, poses)) in sets.iter().enumerate() {
        let mut own = tallies();
        let shown = shown_poses(poses, &edges);
        let mut drawn: Vec<Exhibit> = Vec::new();
        weigh_set(name, poses, all, watch, |pose, outcomes| {
            let truth = poses.vertices_of(pose);
            for ((method, tally), outcome) in own.iter_mut().enumerate().zip(&outcomes) {
                tally.add(outcome);
                let Outcome { vertices, angles, .. } = outcome;
                let posed = Posed { number, truth, vertices, angles };
                figures.iter_mut().for_each(|figures| figures.add(method, &posed));
            }
            number += 1;
            if shown.contains(&pose) {
                drawn.push(Exhibit {
                    set: name.clone(),
                    caption: format!("{name}, frame {pose}"),
                    truth: truth.to_vec(),
                    methods: outcomes.into_iter().map(|outcome| outcome.vertices).collect(),
                });
            }
        })?;
        // The strongest expression first.
        drawn.sort_by_key(|exhibit| exhibit.truth != poses.vertices_of(shown[0]));
        exhibits.extend(drawn);
        time_methods(name, poses, all, &mut own)?;
        let rigid = carried.as_ref().map(|sets| best_bones(mesh.positions(), &sets[index]).squared);
        let rows = own.iter_mut().zip(all);
        let rows = rows.map(|(t, c)| (c.name.clone(), t.figures(c, c.poses(Some(name)), rigid)));
        by_set.insert(name.clone(), rows.collect());
        whole.iter_mut().zip(own).for_each(|(whole, tally)| whole.append(tally));
    }
    let methods = match (by_set.len(), by_set.values().next()) {
        (1, Some(figures)) => BTreeMap::clone(figures),
        _ => {
            let rigid = carried.as_ref().map(|sets| best_bones(mesh.positions(), &sets.concat()).squared);
            let rows = whole.iter_mut().zip(all);
            let rows = rows.map(|(t, c)| (c.name.clone(), t.figures(c, c.poses(None), rigid)));
            rows.collect()
        }
    };
    let told: Vec<_> = figures.iter().map(|figures| figures.findings()).collect();
    let report = EvalReport {
        kind: twin.method(),
        methods,
        sets: by_set,
        kept_for_tests: Vec::new(),
        order: names.clone(),
        original_ms: rig.and_then(|rig| original_ms(rig, &sets[0].1)).or_else(|| recorded_rig_ms(&twin)),
        fits: contestants.fits.clone(),
        training_poses: contestants.training_poses,
        poses: number,
        findings: told.iter().flat_map(|told| told.fields.iter().cloned()).collect(),
        lines: told.into_iter().flat_map(|told| told.lines).collect(),
        page: None,
        page_problem: None,
    };
    let errors = whole.into_iter().map(|tally| tally.distances).collect();
    Ok(Weighed { report, twin, exhibits, figures, errors, mesh })
}

/// What every method makes of every pose, told in the order of the poses.
fn weigh_set(
    name: &str,
    poses: &Recording,
    contestants: &[Contestant],
    watch: &dyn Watch,
    mut tell: impl FnMut(usize, Vec<Outcome>),
) -> Result<(), JobError> {
    let faces = poses.mesh.faces();
    let outcome = |methods: &mut Methods, pose: usize| -> Result<Vec<Outcome>, JobError> {
        let frame = poses.frame(pose);
        let one = |method: &mut Box<dyn Method>| {
            let mut vertices = vec![Vec3::ZERO; frame.vertices.len()];
            let posed = method.prepare(frame).and_then(|()| method.pose(frame, &mut vertices));
            posed.map_err(|error| JobError::unusable(name, format!("pose {pose}: {error}")))?;
            Ok(Outcome {
                misses: distances(&vertices, frame.vertices),
                angles: normal_angles(faces, frame.vertices, &vertices),
                squared: squared_distance(frame.vertices, &vertices),
                vertices,
            })
        };
        methods.as_mut().map_err(|error| JobError::unusable(name, &*error))?.iter_mut().map(one).collect()
    };
    let what = format!("weighing {name}");
    watch.event(Event::Started { what: &what, total: poses.len() as u64, unit: "poses" });
    // As many at a time as bound the memory; their order is kept, so threads change no sum.
    let batch = 8 * rayon::current_num_threads();
    for first in (0..poses.len()).step_by(batch) {
        let range = first..(first + batch).min(poses.len());
        let make = || methods(name, contestants, poses);
        let outcomes: Vec<Vec<Outcome>> =
            range.clone().into_par_iter().map_init(make, outcome).collect::<Result<_, JobError>>()?;
        range.clone().zip(outcomes).for_each(|(pose, outcomes)| tell(pose, outcomes));
        watch.event(Event::Step { done: range.end as u64 });
        if watch.should_stop() {
            return Err(JobError::Stopped);
        }
    }
    watch.event(Event::Finished);
    Ok(())
}

type Methods = Result<Vec<Box<dyn Method>>, String>;

/// All methods, for one thread and one set.
fn methods(set: &str, contestants: &[Contestant], poses: &Recording) -> Methods {
    contestants.iter().map(|contestant| contestant.method(set, &poses.specs)).collect()
}

fn time_methods(
    name: &str,
    poses: &Recording,
    contestants: &[Contestant],
    tallies: &mut [Tally],
) -> Result<(), JobError> {
    let mut methods = methods(name, contestants, poses).map_err(|error| JobError::unusable(name, error))?;
    let mut out = vec![Vec3::ZERO; poses.mesh.vertex_count()];
    for pose in poses.spread(TIMED) {
        for (method, tally) in methods.iter_mut().zip(&mut *tallies) {
            let ms = time(method.as_mut(), poses.frame(pose), &mut out)
                .map_err(|error| JobError::unusable(name, format!("pose {pose}: {error}")))?;
            tally.milliseconds.push(ms);
        }
    }
    Ok(())
}

/// Milliseconds of one pose. The second of two runs is timed: others have emptied the caches.
fn time(
    method: &mut dyn Method,
    frame: Frame<'_>,
    out: &mut [Vec3],
) -> Result<f64, understudy_learn::MethodError> {
    method.prepare(frame)?;
    method.pose(frame, out)?;
    let start = Instant::now();
    method.pose(frame, out)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Milliseconds a pose of the rig itself, median of some.
fn original_ms(rig: &dyn Rig, poses: &Recording) -> Option<f64> {
    let own = poses.specs.iter().map(|spec| &spec.name);
    if !rig.specs().iter().map(|spec| &spec.name).eq(own) {
        return None;
    }
    let mut original = PosedRig::new(rig);
    let mut out = vec![Vec3::ZERO; poses.mesh.vertex_count()];
    let times: Option<Vec<f64>> = poses
        .spread(15)
        .into_iter()
        .map(|pose| time(&mut original, poses.frame(pose), &mut out).ok())
        .collect();
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Skinning matrices and vertices of one pose.
type SkinnedPose<'a> = (Vec<Affine3A>, &'a [Vec3]);

fn skinned_poses(poses: &Recording) -> Vec<SkinnedPose<'_>> {
    let inverse_rest = poses.skeleton().inverse_bind();
    let matrices = |pose: usize| poses.bones_of(pose).iter().zip(inverse_rest).map(|(b, r)| *b * *r);
    (0..poses.len()).map(|pose| (matrices(pose).collect(), poses.vertices_of(pose))).collect()
}
