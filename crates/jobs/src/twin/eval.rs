//! `eval`: a twin and every baseline on the same held-out poses. Start at [`eval`]; the page of pictures is
//! in `eval_page`.

use super::data::{Loaded, open_body_twin};
use super::eval_page;
use crate::outputs::check_folder;
use crate::{Event, JobError, Watch, names, threads};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use understudy_core::metrics::{EnvelopingError, distances, summarise};
use understudy_core::{Affine3A, Vec3};
use understudy_learn::baselines::{Approximation, Examples, PoseSpace, RotationalRegression, Skinned};
use understudy_learn::body::Poses;
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
    /// The dataset that the baselines are fitted to: the twin's own; `None` weighs the twin alone.
    pub train: Option<PathBuf>,
    /// Baselines to fit; all when empty.
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

/// Names of the baselines, in the order of the table.
pub const BASELINES: [&str; 8] = ["rigid", "lbs4", "lbs_all", "rr2", "rr15", "wpsd10", "wpsd50", "wpsd100"];

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodFigures {
    /// Mean distance of a vertex, cm.
    pub mean_cm: f64,
    /// 95 % of the vertices are nearer, cm.
    pub p95_cm: f64,
    /// The worst vertex of all frames, cm.
    pub max_cm: f64,
    /// Enveloping error (2.9): 100 is as good as rigid skinning.
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
    for name in &config.baselines {
        if !BASELINES.contains(&name.as_str()) {
            return Err(names::unknown("baseline", name, "a body", BASELINES));
        }
    }
    let mut sets = Vec::new();
    for folder in &config.test {
        let loaded = Loaded::read(folder, watch)?;
        check_fits(&twin, &loaded, folder)?;
        sets.push((set_name(folder), loaded));
    }
    let train = match &config.train {
        None => None,
        Some(folder) => {
            if config.test.contains(folder) {
                return Err(JobError::setting("test", "the training poses are among the test poses"));
            }
            let loaded = Loaded::read(folder, watch)?;
            check_fits(&twin, &loaded, folder)?;
            Some(loaded)
        }
    };
    let pool = threads::pool(config.threads)?;
    let baselines = match train {
        None => Vec::new(),
        Some(mut train) => {
            let poses = train.poses();
            pool.install(|| fit_baselines(config, &poses, watch))
        }
    };
    weigh(config, &twin, sets, &baselines, watch)
}

fn set_name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Whether a dataset has the mesh of the twin.
pub(super) fn check_fits(twin: &BodyTwin, loaded: &Loaded, folder: &Path) -> Result<(), JobError> {
    if loaded.mesh.topology_hash() != twin.header().topology_hash {
        let want = (twin.vertex_count(), twin.header().topology_hash);
        return Err(JobError::other_topology(folder, &loaded.mesh, "the twin's", want));
    }
    Ok(())
}

fn fit_baselines(config: &EvalConfig, poses: &Poses<'_>, watch: &dyn Watch) -> Vec<Box<dyn Approximation>> {
    let inverse_rest: Vec<Affine3A> = poses.skeleton.rest_global().iter().map(Affine3A::inverse).collect();
    let examples = Examples { poses, rest: poses.mesh.positions(), inverse_rest: &inverse_rest };
    let wanted = |name: &str| config.baselines.is_empty() || config.baselines.iter().any(|b| b == name);
    watch.event(Event::Started {
        what: "fitting baselines",
        total: BASELINES.len() as u64,
        unit: "baselines",
    });
    let rigid = Skinned::rigid(&examples);
    let lbs4 = Skinned::fit("lbs4", &examples, 4, 16);
    let mut out: Vec<Box<dyn Approximation>> = Vec::new();
    for (index, name) in BASELINES.iter().enumerate().filter(|(_, name)| wanted(name)) {
        out.push(match *name {
            "rigid" => Box::new(rigid.clone()),
            "lbs4" => Box::new(lbs4.clone()),
            "lbs_all" => Box::new(Skinned::fit("lbs_all", &examples, usize::MAX, usize::MAX)),
            "rr2" => Box::new(RotationalRegression::fit("rr2", &examples, &rigid, 2)),
            "rr15" => Box::new(RotationalRegression::fit("rr15", &examples, &rigid, 15)),
            "wpsd10" => Box::new(PoseSpace::fit("wpsd10", &examples, &lbs4, 10)),
            "wpsd50" => Box::new(PoseSpace::fit("wpsd50", &examples, &lbs4, 50)),
            _ => Box::new(PoseSpace::fit("wpsd100", &examples, &lbs4, 100)),
        });
        watch.event(Event::Step { done: index as u64 + 1 });
    }
    watch.event(Event::Finished);
    out
}

/// Sums of one method over poses.
#[derive(Default)]
struct Tally {
    distances: Vec<f32>,
    enveloping: EnvelopingError,
    milliseconds: Vec<f64>,
}

impl Tally {
    fn figures(&mut self, bytes: usize) -> MethodFigures {
        let summary = summarise(&self.distances);
        self.milliseconds.sort_by(f64::total_cmp);
        let middle = self.milliseconds.len() / 2;
        MethodFigures {
            mean_cm: summary.mean,
            p95_cm: summary.p95,
            max_cm: summary.max,
            ee: self.enveloping.value(),
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

fn weigh(
    config: &EvalConfig,
    twin: &Arc<BodyTwin>,
    sets: Vec<(String, Loaded)>,
    baselines: &[Box<dyn Approximation>],
    watch: &dyn Watch,
) -> Result<EvalReport, JobError> {
    let bytes = std::fs::metadata(&config.twin).map_or(0, |data| data.len() as usize);
    let mut names = vec!["twin".to_owned()];
    names.extend(baselines.iter().map(|b| b.name().to_owned()));
    let sizes: Vec<usize> = std::iter::once(bytes).chain(baselines.iter().map(|b| b.bytes())).collect();
    let owner = owners(twin);
    let adjacency = sets[0].1.mesh.adjacency();
    let mesh = sets[0].1.mesh.clone();
    let mut whole: Vec<Tally> = names.iter().map(|_| Tally::default()).collect();
    let edges: Vec<(u32, u32)> = adjacency.edges().collect();
    let (mut seams, mut control) = (Jumps::default(), Jumps::default());
    let mut exhibits = Vec::new();
    let mut by_set = BTreeMap::new();
    let mut poses_seen = 0;
    let mut player = Twin::from(Arc::clone(twin)).player(1);
    let (mut out, mut rigid) = (vec![Vec3::ZERO; twin.vertex_count()], vec![Vec3::ZERO; twin.vertex_count()]);
    for (name, mut loaded) in sets {
        let specs = loaded.header.controls.clone();
        let controls = twin.header().inputs.controls.iter().map(|control| {
            specs
                .find(&control.name)
                .ok_or_else(|| JobError::unusable(&name, format!("has no control '{}'", control.name)))
        });
        let controls = controls.collect::<Result<Vec<usize>, JobError>>()?;
        let poses = loaded.poses();
        let inverse_rest: Vec<Affine3A> =
            poses.skeleton.rest_global().iter().map(Affine3A::inverse).collect();
        let mut tallies: Vec<Tally> = names.iter().map(|_| Tally::default()).collect();
        let what = format!("weighing {name}");
        watch.event(Event::Started { what: &what, total: poses.len() as u64, unit: "poses" });
        for pose in 0..poses.len() {
            let (bones, truth) = (poses.bones_of(pose), poses.vertices_of(pose));
            for vertex in 0..truth.len() {
                let bone = owner[vertex] as usize;
                let local = inverse_rest[bone].transform_point3(poses.mesh.positions()[vertex]);
                rigid[vertex] = bones[bone].transform_point3(local);
            }
            let shown = poses.len().div_ceil(4).max(1);
            let mut exhibit = (pose % shown == shown / 2).then(|| Exhibit {
                caption: format!("{name}, frame {pose}"),
                truth: truth.to_vec(),
                twin: Vec::new(),
                skinned: None,
            });
            for (method, method_name) in names.iter().enumerate() {
                let mut milliseconds = 0.0;
                // The second of two runs is timed: others have emptied the caches.
                for _ in 0..2 {
                    let start = Instant::now();
                    if method == 0 {
                        let extra: Vec<f32> = controls.iter().map(|c| poses.controls_of(pose)[*c]).collect();
                        player
                            .pose(Pose::Bones { bones, extras: &extra }, &mut out)
                            .map_err(|error| JobError::unusable(&name, format!("pose {pose}: {error}")))?;
                    } else {
                        baselines[method - 1].evaluate(bones, &mut out);
                    }
                    milliseconds = start.elapsed().as_secs_f64() * 1e3;
                }
                let misses = distances(&out, truth);
                for tally in [&mut whole[method], &mut tallies[method]] {
                    tally.distances.extend_from_slice(&misses);
                    tally.enveloping.add(truth, &out, &rigid);
                    tally.milliseconds.push(milliseconds);
                }
                match method_name.as_str() {
                    "twin" => seams.add_pose(&edges, &owner, &out, truth),
                    "lbs4" => control.add_pose(&edges, &owner, &out, truth),
                    _ => {}
                }
                if let Some(exhibit) = &mut exhibit {
                    match method_name.as_str() {
                        "twin" => exhibit.twin.clone_from(&out),
                        "lbs4" => exhibit.skinned = Some(out.clone()),
                        _ => {}
                    }
                }
            }
            exhibits.extend(exhibit);
            watch.event(Event::Step { done: pose as u64 + 1 });
            if watch.should_stop() {
                return Err(JobError::Stopped);
            }
        }
        watch.event(Event::Finished);
        poses_seen += poses.len();
        let figures = names.iter().cloned().zip(tallies.iter_mut().zip(&sizes).map(|(t, s)| t.figures(*s)));
        by_set.insert(name, figures.collect());
    }
    let seams = seams.summary(&control);
    let figures: Vec<MethodFigures> = whole.iter_mut().zip(&sizes).map(|(t, s)| t.figures(*s)).collect();
    let mut report = EvalReport {
        methods: names.iter().cloned().zip(figures).collect(),
        sets: by_set,
        seams,
        poses: poses_seen,
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

/// Sums of error jumps along edges: by group, and by pair of groups that meet.
#[derive(Default)]
struct Jumps {
    inside: BTreeMap<u32, (f64, usize)>,
    border: BTreeMap<(u32, u32), (f64, usize)>,
}

impl Jumps {
    fn add_pose(&mut self, edges: &[(u32, u32)], owner: &[u32], out: &[Vec3], truth: &[Vec3]) {
        for (a, b) in edges {
            let (a, b) = (*a as usize, *b as usize);
            let jump = ((out[a] - truth[a]) - (out[b] - truth[b])).length();
            self.add(owner[a], owner[b], f64::from(jump));
        }
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
