//! `eval`: a twin and every baseline on the same held-out poses. Start at [`eval`]; the page of pictures is
//! in `eval_page`.

use super::data::{Loaded, open_body_twin};
use super::eval_page;
use crate::fit_cache::FitCache;
use crate::outputs::check_folder;
use crate::{Event, JobError, Watch, names, threads};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use understudy_core::metrics::{best_bones, distances, enveloping_error, squared_distance, summarise};
use understudy_core::{Affine3A, Vec3};
pub use understudy_learn::baselines::Baseline;
use understudy_learn::baselines::{Approximation, Examples, Fitter, Parameters};
use understudy_learn::{Method, PlayedTwin, Recording};
use understudy_runtime::body::BodyTwin;
use understudy_runtime::{Pose, Twin};

/// What to weigh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalConfig {
    /// The twin's file.
    pub twin: PathBuf,
    /// Datasets of held-out poses.
    pub test: Vec<PathBuf>,
    /// The dataset that the baselines are fitted to: the twin's own; `None` weighs the twin alone. Fits are kept
    /// beside it.
    pub train: Option<PathBuf>,
    /// Baselines to fit by name, or `all`; those of [`Baseline::USUAL`] when empty.
    pub baselines: Vec<String>,
    /// Folder for the HTML page and its pictures; none when absent.
    pub report: Option<PathBuf>,
    /// Threads for fitting; results do not depend on it.
    pub threads: usize,
    /// Shown on the page.
    pub command: String,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            twin: PathBuf::new(),
            test: Vec::new(),
            train: None,
            baselines: Vec::new(),
            report: None,
            threads: threads::available(),
            command: String::new(),
        }
    }
}

/// How a baseline was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FitFacts {
    /// Training poses that it was fitted to, spread evenly.
    pub poses: usize,
    /// Duration of the fit, or of reading it.
    pub seconds: f64,
    /// Whether it was kept from an earlier run.
    pub kept: bool,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodFigures {
    /// Mean distance of a vertex, cm.
    pub mean_cm: f64,
    /// 95 % of the vertices are nearer, cm.
    pub p95_cm: f64,
    /// The worst vertex of all frames, cm.
    pub max_cm: f64,
    /// Enveloping error (2.9) over these poses: 100 is as good as the best single bone of every vertex.
    pub ee: f64,
    /// Milliseconds a pose on one thread, median.
    pub ms: f64,
    /// Size of the model.
    pub bytes: usize,
}

/// How much the error jumps along edges, cm: across borders of groups and inside them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seams {
    /// Mean over edges between groups.
    pub border_cm: f64,
    /// Mean over edges inside groups.
    pub inside_cm: f64,
    /// Their ratio: each border against the insides of the two groups that meet there. Where a rig is hard to
    /// follow groups are small and borders many; only neighbours compare.
    pub ratio: f64,
    /// The plain ratio of the two means.
    pub plain_ratio: f64,
    /// The plain ratio of fitted skinning with four influences on the very same edges, where it was weighed: it
    /// has no groups, so what exceeds 1 says how much harder the rig is to follow where our borders lie.
    pub control_ratio: Option<f64>,
    /// The plain ratio as a multiple of that: what the borders themselves add.
    pub against_control: Option<f64>,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalReport {
    /// Figures over all test poses.
    pub methods: BTreeMap<String, MethodFigures>,
    /// Figures of each test set.
    pub sets: BTreeMap<String, BTreeMap<String, MethodFigures>>,
    /// Where groups meet.
    pub seams: Seams,
    /// Names of the methods in the order of the table, the twin first.
    pub order: Vec<String>,
    /// How the baselines were fitted.
    pub fits: BTreeMap<String, FitFacts>,
    /// Poses of the training set, where one was named.
    pub training_poses: Option<usize>,
    /// Test poses.
    pub poses: usize,
    /// The page, where one was asked for and could be written.
    pub page: Option<PathBuf>,
    /// Why a page that was asked for is not there: the figures are worth having all the same.
    pub page_problem: Option<String>,
}

/// Weighs a twin.
pub fn eval(config: &EvalConfig, watch: &dyn Watch) -> Result<EvalReport, JobError> {
    config.report.as_deref().map(check_folder).transpose()?;
    let twin = open_body_twin(&config.twin)?;
    if config.test.is_empty() {
        return Err(JobError::setting("test", "no dataset of held-out poses is named"));
    }
    let wanted = wanted_baselines(config)?;
    let mut sets = Vec::new();
    for folder in &config.test {
        let loaded = Loaded::read_for(&twin, folder, usize::MAX, watch)?;
        sets.push((set_name(folder), loaded));
    }
    if config.train.as_ref().is_some_and(|folder| config.test.contains(folder)) {
        return Err(JobError::setting("test", "the training poses are among the test poses"));
    }
    let pool = threads::pool(config.threads)?;
    let fitted = match &config.train {
        None => Fits::default(),
        Some(folder) => pool.install(|| fit_baselines(&twin, folder, &wanted, watch))?,
    };
    pool.install(|| weigh(config, &twin, sets, &fitted, watch))
}

/// The baselines that the configuration names.
fn wanted_baselines(config: &EvalConfig) -> Result<Vec<Baseline>, JobError> {
    let named = &config.baselines;
    if config.train.is_none() && !named.is_empty() {
        return Err(JobError::setting(
            "baselines",
            "they are fitted to a training set: name it with --train",
        ));
    }
    match named.first().map(String::as_str) {
        None => return Ok(Baseline::USUAL.to_vec()),
        Some("all") if named.len() == 1 => return Ok(Baseline::ALL.to_vec()),
        _ => {}
    }
    let known = Baseline::ALL.map(|baseline| baseline.to_string());
    let parse = |name: &String| {
        let unknown = || names::unknown("baseline", name, "a body", known.iter().map(String::as_str));
        Baseline::parse(name).ok_or_else(unknown)
    };
    let parsed: Vec<Baseline> = named.iter().map(parse).collect::<Result<_, _>>()?;
    // Once each, in the order of the tables.
    Ok(Baseline::ALL.into_iter().filter(|baseline| parsed.contains(baseline)).collect())
}

fn set_name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The baselines, ready.
#[derive(Default)]
struct Fits {
    methods: Vec<Box<dyn Approximation>>,
    facts: BTreeMap<String, FitFacts>,
    training_poses: Option<usize>,
}

/// Takes fits that were kept; reads poses and fits where one is missing.
fn fit_baselines(
    twin: &BodyTwin,
    folder: &Path,
    wanted: &[Baseline],
    watch: &dyn Watch,
) -> Result<Fits, JobError> {
    // Fits speak of bones by number: in the twin's order, which is part of the key.
    let bones: Vec<&str> = twin.header().inputs.bones.iter().map(|bone| bone.name.as_str()).collect();
    let cache =
        FitCache::of(folder, &format!("body baselines {} of {}", Baseline::VERSION, bones.join(" ")))?;
    let mut fits = Fits::default();
    let kept: Vec<Option<Parameters>> = wanted.iter().map(|b| cache.load(&b.to_string())).collect();
    let mut most = if kept.iter().all(Option::is_some) { 0 } else { Baseline::MOST_POSES };
    loop {
        let loaded = Loaded::read_for(twin, folder, most, watch)?;
        let available = loaded.header.poses;
        let poses = loaded.recording;
        let inverse_rest = poses.skeleton().inverse_bind();
        let examples = Examples { poses: &poses, rest: poses.mesh.positions(), inverse_rest };
        let fitter = Fitter::new(examples);
        let total = wanted.len() as u64;
        watch.event(Event::Started { what: "fitting baselines", total, unit: "baselines" });
        for (index, (baseline, kept)) in wanted.iter().zip(&kept).enumerate() {
            let (name, start) = (baseline.to_string(), Instant::now());
            watch.event(Event::Status { message: &name });
            let restored = kept.as_ref().and_then(|parameters| fitter.restore(*baseline, parameters));
            let kept = restored.is_some();
            let method = match restored {
                Some(method) => method,
                None if poses.is_empty() => break,
                None => {
                    let method = fitter.fit(*baseline);
                    cache.store(&name, &method.parameters(), watch);
                    method
                }
            };
            let (poses, seconds) = (baseline.poses(available), start.elapsed().as_secs_f64());
            fits.facts.insert(name, FitFacts { poses, seconds, kept });
            fits.methods.push(method);
            watch.event(Event::Step { done: index as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        fits.training_poses = Some(available);
        if fits.methods.len() == wanted.len() {
            return Ok(fits);
        }
        // A file that is whole but of no use: fit after all.
        (most, fits) = (Baseline::MOST_POSES, Fits::default());
    }
}

/// Sums of one method over poses.
#[derive(Default)]
struct Tally {
    distances: Vec<f32>,
    squared: f64,
    milliseconds: Vec<f64>,
}

impl Tally {
    fn append(&mut self, other: Self) {
        self.squared += other.squared;
        self.milliseconds.extend(other.milliseconds);
        match self.distances.is_empty() {
            true => self.distances = other.distances,
            false => self.distances.extend(other.distances),
        }
    }

    fn figures(&mut self, bytes: usize, rigid_squared: f64) -> MethodFigures {
        let summary = summarise(&self.distances);
        self.milliseconds.sort_by(f64::total_cmp);
        let middle = self.milliseconds.len() / 2;
        MethodFigures {
            mean_cm: summary.mean,
            p95_cm: summary.p95,
            max_cm: summary.max,
            ee: enveloping_error(self.squared, rigid_squared),
            ms: self.milliseconds.get(middle).copied().unwrap_or(0.0),
            bytes,
        }
    }
}

/// A pose that the page shows: truth, twin and linear blend skinning.
pub(crate) struct Exhibit {
    pub caption: String,
    pub truth: Vec<Vec3>,
    pub twin: Vec<Vec3>,
    pub skinned: Option<Vec<Vec3>>,
}

/// What one method makes of one pose.
struct Outcome {
    misses: Vec<f32>,
    squared: f64,
    /// Of the twin, and of the skin that it is compared with along borders.
    jumps: Option<Jumps>,
    /// Kept where the page shows the pose.
    vertices: Option<Vec<Vec3>>,
}

/// Poses that are timed, one at a time on one thread, a set; all are weighed.
const TIMED: usize = 24;
/// Poses a page shows of a set.
const SHOWN: usize = 4;

fn weigh(
    config: &EvalConfig,
    twin: &Arc<BodyTwin>,
    sets: Vec<(String, Loaded)>,
    fitted: &Fits,
    watch: &dyn Watch,
) -> Result<EvalReport, JobError> {
    let baselines = &fitted.methods;
    let playable = Twin::from(Arc::clone(twin));
    let bytes = std::fs::metadata(&config.twin).map_or(0, |data| data.len() as usize);
    // Every thread has its own; the fits behind them are shared.
    let methods = || -> Vec<Box<dyn Method + '_>> {
        let twin = PlayedTwin { name: "twin".into(), bytes, player: playable.player(1) };
        let baselines = baselines.iter().map(|baseline| Box::new(&**baseline) as Box<dyn Method + '_>);
        std::iter::once(Box::new(twin) as Box<dyn Method + '_>).chain(baselines).collect()
    };
    let names: Vec<String> = methods().iter().map(|method| method.name().to_owned()).collect();
    let sizes: Vec<usize> = methods().iter().map(|method| method.bytes()).collect();
    let owner = owners(twin);
    let mesh = sets[0].1.recording.mesh.clone();
    let edges: Vec<(u32, u32)> = mesh.adjacency().edges().collect();
    let mut whole: Vec<Tally> = names.iter().map(|_| Tally::default()).collect();
    let (mut seams, mut control) = (Jumps::default(), Jumps::default());
    let mut exhibits = Vec::new();
    let mut by_set = BTreeMap::new();
    let set_names: Vec<String> = sets.iter().map(|(name, _)| name.clone()).collect();
    let recorded: Vec<&Recording> = sets.iter().map(|(_, loaded)| &loaded.recording).collect();
    let carried: Vec<Vec<SkinnedPose<'_>>> = recorded.iter().map(|poses| skinned_poses(poses)).collect();
    for (index, (name, poses)) in set_names.into_iter().zip(&recorded).enumerate() {
        let specs = &poses.specs;
        let controls = twin.header().inputs.controls.iter().map(|control| {
            specs
                .find(&control.name)
                .ok_or_else(|| JobError::unusable(&name, format!("has no control '{}'", control.name)))
        });
        let controls = controls.collect::<Result<Vec<usize>, JobError>>()?;
        let extras = |pose: usize| -> Vec<f32> {
            controls.iter().map(|control| poses.controls_of(pose)[*control]).collect()
        };
        let evaluate = |method: &mut dyn Method, pose: usize, extras: &[f32], out: &mut [Vec3]| {
            let evaluated = method.pose(Pose::Bones { bones: poses.bones_of(pose), extras }, out);
            evaluated.map_err(|error| JobError::unusable(&name, format!("pose {pose}: {error}")))
        };
        let stride = poses.len().div_ceil(SHOWN).max(1);
        let shown = |pose: usize| pose % stride == stride / 2;
        let outcome =
            |methods: &mut Vec<Box<dyn Method + '_>>, pose: usize| -> Result<Vec<Outcome>, JobError> {
                let (truth, extras) = (poses.vertices_of(pose), extras(pose));
                let mut out = vec![Vec3::ZERO; truth.len()];
                let weigh = |method: &mut Box<dyn Method + '_>| {
                    evaluate(&mut **method, pose, &extras, &mut out)?;
                    let compared = method.name() == "twin" || method.name() == "lbs4";
                    Ok(Outcome {
                        misses: distances(&out, truth),
                        squared: squared_distance(truth, &out),
                        jumps: compared.then(|| Jumps::of_pose(&edges, &owner, &out, truth)),
                        vertices: (compared && shown(pose)).then(|| out.clone()),
                    })
                };
                methods.iter_mut().map(weigh).collect()
            };
        let mut tallies: Vec<Tally> = names.iter().map(|_| Tally::default()).collect();
        let what = format!("weighing {name}");
        watch.event(Event::Started { what: &what, total: poses.len() as u64, unit: "poses" });
        // As many at a time as bound the memory; their order is kept, so threads change no sum.
        let batch = 8 * rayon::current_num_threads();
        for first in (0..poses.len()).step_by(batch) {
            let range = first..(first + batch).min(poses.len());
            let outcomes: Vec<Vec<Outcome>> =
                range.clone().into_par_iter().map_init(methods, outcome).collect::<Result<_, JobError>>()?;
            for (pose, outcomes) in range.clone().zip(outcomes) {
                let mut exhibit = shown(pose).then(|| Exhibit {
                    caption: format!("{name}, frame {pose}"),
                    truth: poses.vertices_of(pose).to_vec(),
                    twin: Vec::new(),
                    skinned: None,
                });
                for ((method, tally), outcome) in names.iter().zip(&mut tallies).zip(outcomes) {
                    tally.distances.extend_from_slice(&outcome.misses);
                    tally.squared += outcome.squared;
                    let of_twin = method == "twin";
                    if let Some(jumps) = &outcome.jumps {
                        if of_twin { &mut seams } else { &mut control }.merge(jumps);
                    }
                    if let (Some(exhibit), Some(vertices)) = (&mut exhibit, outcome.vertices) {
                        if of_twin {
                            exhibit.twin = vertices;
                        } else {
                            exhibit.skinned = Some(vertices);
                        }
                    }
                }
                exhibits.extend(exhibit);
            }
            watch.event(Event::Step { done: range.end as u64 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        let mut methods = methods();
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        for pose in poses.spread(TIMED) {
            let extras = extras(pose);
            for (method, tally) in methods.iter_mut().zip(&mut tallies) {
                // The second of two runs is timed: others have emptied the caches.
                evaluate(&mut **method, pose, &extras, &mut out)?;
                let start = Instant::now();
                evaluate(&mut **method, pose, &extras, &mut out)?;
                tally.milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        watch.event(Event::Finished);
        let rigid = best_bones(poses.mesh.positions(), &carried[index]).squared;
        let figures = tallies.iter_mut().zip(&sizes).map(|(t, s)| t.figures(*s, rigid));
        by_set.insert(name, names.iter().cloned().zip(figures).collect());
        whole.iter_mut().zip(tallies).for_each(|(whole, tally)| whole.append(tally));
    }
    let seams = seams.summary(&control);
    let methods = match (by_set.len(), by_set.values().next()) {
        (1, Some(figures)) => BTreeMap::clone(figures),
        _ => {
            let rigid = best_bones(mesh.positions(), &carried.concat()).squared;
            let figures = whole.iter_mut().zip(&sizes).map(|(t, s)| t.figures(*s, rigid));
            names.iter().cloned().zip(figures).collect()
        }
    };
    let mut report = EvalReport {
        methods,
        sets: by_set,
        seams,
        order: names.clone(),
        fits: fitted.facts.clone(),
        training_poses: fitted.training_poses,
        poses: recorded.iter().map(|poses| poses.len()).sum(),
        page: None,
        page_problem: None,
    };
    if let Some(folder) = &config.report {
        let errors: Vec<(&str, &[f32])> =
            names.iter().map(String::as_str).zip(whole.iter().map(|t| &t.distances[..])).collect();
        match eval_page::write(folder, config, &mesh, &names, &report, &errors, &exhibits, &owner) {
            Ok(page) => report.page = Some(page),
            Err(error) => report.page_problem = Some(error.to_string()),
        }
    }
    Ok(report)
}

/// Skinning matrices and vertices of one pose.
type SkinnedPose<'a> = (Vec<Affine3A>, &'a [Vec3]);

fn skinned_poses(poses: &Recording) -> Vec<SkinnedPose<'_>> {
    let inverse_rest = poses.skeleton().inverse_bind();
    let matrices = |pose: usize| poses.bones_of(pose).iter().zip(inverse_rest).map(|(b, r)| *b * *r);
    (0..poses.len()).map(|pose| (matrices(pose).collect(), poses.vertices_of(pose))).collect()
}

/// Sums of error jumps along edges: by group, and by pair of groups that meet.
#[derive(Default)]
struct Jumps {
    inside: BTreeMap<u32, (f64, usize)>,
    border: BTreeMap<(u32, u32), (f64, usize)>,
}

impl Jumps {
    fn of_pose(edges: &[(u32, u32)], owner: &[u32], out: &[Vec3], truth: &[Vec3]) -> Self {
        let mut jumps = Self::default();
        for (a, b) in edges {
            let (a, b) = (*a as usize, *b as usize);
            let jump = ((out[a] - truth[a]) - (out[b] - truth[b])).length();
            jumps.add(owner[a], owner[b], f64::from(jump));
        }
        jumps
    }

    fn merge(&mut self, other: &Self) {
        let add = |slot: &mut (f64, usize), (sum, count): &(f64, usize)| {
            slot.0 += sum;
            slot.1 += count;
        };
        other.inside.iter().for_each(|(group, sums)| add(self.inside.entry(*group).or_default(), sums));
        other.border.iter().for_each(|(pair, sums)| add(self.border.entry(*pair).or_default(), sums));
    }

    fn add(&mut self, a: u32, b: u32, jump: f64) {
        let slot = match a == b {
            true => self.inside.entry(a).or_default(),
            false => self.border.entry((a.min(b), a.max(b))).or_default(),
        };
        slot.0 += jump;
        slot.1 += 1;
    }

    /// Means over all edges between groups and over all inside.
    fn means(&self) -> (f64, f64) {
        let whole = |all: &mut dyn Iterator<Item = &(f64, usize)>| {
            mean(all.fold((0.0, 0), |(sum, count), (s, c)| (sum + s, count + c)))
        };
        (whole(&mut self.border.values()), whole(&mut self.inside.values()))
    }

    fn summary(&self, control: &Self) -> Seams {
        let inside = |group: u32| self.inside.get(&group).copied().map_or(0.0, mean);
        let (mut jumps, mut expected) = (0.0, 0.0);
        for ((a, b), (sum, count)) in &self.border {
            jumps += sum;
            expected += 0.5 * (inside(*a) + inside(*b)) * *count as f64;
        }
        let (border_cm, inside_cm) = self.means();
        let plain_ratio = ratio(border_cm, inside_cm);
        let control_ratio = (!control.border.is_empty()).then(|| ratio(control.means().0, control.means().1));
        Seams {
            border_cm,
            inside_cm,
            ratio: ratio(jumps, expected),
            plain_ratio,
            control_ratio,
            against_control: control_ratio.map(|control| ratio(plain_ratio, control)),
        }
    }
}

fn mean((sum, count): (f64, usize)) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

/// The bone of every vertex's group.
fn owners(twin: &BodyTwin) -> Vec<u32> {
    let mut owner = vec![0u32; twin.vertex_count()];
    for group in &twin.parts().groups {
        group.vertices.iter().for_each(|v| owner[*v as usize] = group.bone as u32);
    }
    owner
}
