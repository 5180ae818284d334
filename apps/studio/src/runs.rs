//! Jobs in the background: started by a page, watched by every tab, cancelled by any, and still there after a reload.
//! Start at [`Runs::start`]; what can be asked for is an [`Order`].

use crate::error::Refusal;
use crate::library::lock;
use crate::project::Project;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::broadcast;
use understudy_jobs::invert::solver::{Alpha, InverseSettings};
use understudy_jobs::invert::{InvertConfig, invert};
use understudy_jobs::sample::{Method, SampleConfig, sample};
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::auto::{AutoConfig, learn_auto, method_for};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::{Event, JobError, Watch, rigs};

/// Runs at one time.
const RUNNING: usize = 3;
/// Runs that are remembered.
const REMEMBERED: usize = 100;
/// Points of a curve; of a longer one every other is dropped.
const POINTS: usize = 400;
/// Curves and lines of a run that are kept.
const CURVES: usize = 16;
const LINES: usize = 200;
/// Listeners hear of steps at most so often.
const PACE: Duration = Duration::from_millis(150);
/// Poses of a test set, where a rig has no clip for it.
const TEST_POSES: u64 = 100;

/// What a page can ask for. Files are named inside the project.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Sample a rig, or take a dataset; learn a twin; weigh it on poses that it has not seen.
    Learn { rig: String, data: Option<String>, method: String, poses: u64, minutes: f64 },
    /// Record a dataset.
    Sample { rig: String, poses: u64 },
    /// Weigh a twin on a clip.
    Eval { twin: String, rig: String, clip: String },
    /// Weights from meshes, as the command `invert` writes them.
    Invert { rig: String, targets: Vec<String>, alpha: Option<f64>, smooth: Option<f64> },
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Running,
    Done,
    Failed,
    Cancelled,
}

/// What a page knows of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Snapshot {
    pub id: u64,
    pub job: &'static str,
    pub title: String,
    pub state: State,
    /// Seconds since 1970.
    pub started: u64,
    pub seconds: f64,
    /// The piece of work.
    pub what: String,
    pub done: u64,
    pub total: u64,
    pub unit: String,
    pub status: String,
    pub seconds_left: Option<f64>,
    /// Seconds and values, by name.
    pub curves: BTreeMap<String, Vec<[f64; 2]>>,
    pub lines: Vec<String>,
    pub error: Option<String>,
    pub result: Option<Value>,
}

/// One run.
struct Run {
    snapshot: Mutex<Snapshot>,
    begin: Instant,
    stop: AtomicBool,
    /// When listeners heard of it last.
    told: Mutex<Instant>,
    changes: broadcast::Sender<u64>,
}

/// All runs of this server.
pub(crate) struct Runs {
    list: Mutex<Vec<Arc<Run>>>,
    changes: broadcast::Sender<u64>,
    next: AtomicU64,
    running: Arc<AtomicUsize>,
}

impl Default for Runs {
    fn default() -> Self {
        let (list, next, running) = (Mutex::default(), AtomicU64::new(1), Arc::default());
        Self { list, changes: broadcast::channel(256).0, next, running }
    }
}

impl Runs {
    /// Starts a job on a thread of its own; gives its number.
    pub fn start(&self, order: Order, project: &Arc<Project>) -> Result<u64, Refusal> {
        let plan = Plan::new(order, project)?;
        if self.running.fetch_add(1, Ordering::SeqCst) >= RUNNING {
            self.running.fetch_sub(1, Ordering::SeqCst);
            let message = format!("{RUNNING} jobs are running already; wait for one, or cancel it");
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let run = Arc::new(Run::new(id, &plan, self.changes.clone()));
        let mut list = lock(&self.list);
        list.push(Arc::clone(&run));
        if list.len() > REMEMBERED
            && let Some(old) = list.iter().position(|run| lock(&run.snapshot).state != State::Running)
        {
            list.remove(old);
        }
        drop(list);
        let (project, running) = (Arc::clone(project), Arc::clone(&self.running));
        let work = move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| plan.run(&project, &*run)));
            run.end(
                result.unwrap_or_else(|_| Err(JobError::Machine("the job broke off; this is a bug".into()))),
            );
            running.fetch_sub(1, Ordering::SeqCst);
        };
        let thread = std::thread::Builder::new().name(format!("job {id}"));
        if let Err(error) = thread.spawn(work) {
            self.running.fetch_sub(1, Ordering::SeqCst);
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()));
        }
        let _ = self.changes.send(id);
        Ok(id)
    }

    /// Asks a run to stop at the next good place.
    pub fn cancel(&self, id: u64) -> Result<(), Refusal> {
        let run = self.find(id).ok_or_else(|| Refusal::missing(format!("there is no job {id}")))?;
        run.stop.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub fn snapshot(&self, id: u64) -> Option<Snapshot> {
        self.find(id).map(|run| run.seen())
    }

    /// All of them, the last one first.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        lock(&self.list).iter().rev().map(|run| run.seen()).collect()
    }

    /// Numbers of runs that changed.
    pub fn listen(&self) -> broadcast::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Stops everything, and waits a while for it.
    pub fn stop_all(&self, patience: Duration) {
        lock(&self.list).iter().for_each(|run| run.stop.store(true, Ordering::Relaxed));
        let end = Instant::now() + patience;
        while self.running.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn find(&self, id: u64) -> Option<Arc<Run>> {
        lock(&self.list).iter().find(|run| lock(&run.snapshot).id == id).cloned()
    }
}

impl Run {
    fn new(id: u64, plan: &Plan, changes: broadcast::Sender<u64>) -> Self {
        let now = SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let snapshot = Snapshot {
            id,
            job: plan.job,
            title: plan.title.clone(),
            state: State::Running,
            started: now.as_secs(),
            seconds: 0.0,
            what: "starting".into(),
            done: 0,
            total: 0,
            unit: String::new(),
            status: String::new(),
            seconds_left: None,
            curves: BTreeMap::new(),
            lines: Vec::new(),
            error: None,
            result: None,
        };
        let begin = Instant::now();
        let (snapshot, stop, told) = (Mutex::new(snapshot), AtomicBool::new(false), Mutex::new(begin));
        Self { snapshot, begin, stop, told, changes }
    }

    fn seen(&self) -> Snapshot {
        let mut snapshot = lock(&self.snapshot).clone();
        if snapshot.state == State::Running {
            snapshot.seconds = self.begin.elapsed().as_secs_f64();
        }
        snapshot
    }

    fn tell(&self, at_once: bool) {
        let mut told = lock(&self.told);
        if at_once || told.elapsed() >= PACE {
            *told = Instant::now();
            drop(told);
            let id = lock(&self.snapshot).id;
            // Nobody listens where no tab is open.
            let _ = self.changes.send(id);
        }
    }

    fn end(&self, result: Result<Value, JobError>) {
        let mut snapshot = lock(&self.snapshot);
        snapshot.seconds = self.begin.elapsed().as_secs_f64();
        snapshot.seconds_left = None;
        match result {
            Ok(result) => (snapshot.state, snapshot.result) = (State::Done, Some(result)),
            Err(JobError::Stopped) => snapshot.state = State::Cancelled,
            Err(error) => (snapshot.state, snapshot.error) = (State::Failed, Some(error.to_string())),
        }
        drop(snapshot);
        self.tell(true);
    }
}

impl Watch for Run {
    fn event(&self, event: Event<'_>) {
        let mut snapshot = lock(&self.snapshot);
        let mut at_once = false;
        match event {
            Event::Started { what, total, unit } => {
                (snapshot.what, snapshot.total, snapshot.done) = (what.into(), total, 0);
                (snapshot.unit, snapshot.status) = (unit.into(), String::new());
                at_once = true;
            }
            Event::Step { done } => snapshot.done = done,
            Event::Status { message } => snapshot.status = message.into(),
            Event::TimeLeft { seconds } => snapshot.seconds_left = seconds.is_finite().then_some(seconds),
            Event::Figure { name, value } => {
                let now = self.begin.elapsed().as_secs_f64();
                if value.is_finite() && (snapshot.curves.contains_key(name) || snapshot.curves.len() < CURVES)
                {
                    let curve = snapshot.curves.entry(name.into()).or_default();
                    if curve.len() >= POINTS {
                        let mut keep = false;
                        curve.retain(|_| {
                            keep = !keep;
                            keep
                        });
                    }
                    curve.push([now, value]);
                }
            }
            Event::Note { message } | Event::Warning { message } => {
                if snapshot.lines.len() >= LINES {
                    snapshot.lines.remove(0);
                }
                snapshot.lines.push(message.into());
            }
            Event::Finished => snapshot.done = snapshot.total,
        }
        drop(snapshot);
        self.tell(at_once);
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// An order whose names were resolved.
struct Plan {
    job: &'static str,
    title: String,
    work: Work,
}

// One is made per job: their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Work {
    Learn {
        rig: String,
        data: Option<PathBuf>,
        learning: Option<Learning>,
        poses: u64,
        minutes: f64,
        twin: PathBuf,
    },
    Sample {
        rig: String,
        poses: u64,
        output: PathBuf,
    },
    Eval {
        twin: PathBuf,
        rig: String,
        clip: String,
        report: PathBuf,
    },
    Invert(Box<InvertConfig>),
}

impl Plan {
    fn new(order: Order, project: &Project) -> Result<Self, Refusal> {
        let poses_fit = |poses: u64| match (1..=1_000_000).contains(&poses) {
            true => Ok(poses),
            false => Err(Refusal::bad(format!("{poses} poses; 1 to 1,000,000 are possible"))),
        };
        Ok(match order {
            Order::Learn { rig, data, method, poses, minutes } => {
                let learning = match method.as_str() {
                    "auto" => None,
                    name => Some(
                        Learning::all()
                            .into_iter()
                            .find(|learning| learning.name() == name)
                            .ok_or_else(|| Refusal::bad(format!("there is no kind of twin '{name}'")))?,
                    ),
                };
                if !(minutes.is_finite() && minutes > 0.0 && minutes <= 10_000.0) {
                    return Err(Refusal::bad(format!("{minutes} minutes; more than 0 is wanted")));
                }
                let data = data.map(|name| project.resolve(&name)).transpose()?;
                let stem = format!("{}-{method}", short(&rig));
                let (opened, twin) = (project.rig(&rig)?, project.fresh(&stem, "twin")?);
                let (title, poses) = (format!("{method} twin of {}", short(&rig)), poses_fit(poses)?);
                Self {
                    job: "learn",
                    title,
                    work: Work::Learn { rig: opened, data, learning, poses, minutes, twin },
                }
            }
            Order::Sample { rig, poses } => {
                let output = project.fresh(&short(&rig), "data")?;
                let work = Work::Sample { rig: project.rig(&rig)?, poses: poses_fit(poses)?, output };
                Self { job: "sample", title: format!("poses of {}", short(&rig)), work }
            }
            Order::Eval { twin, rig, clip } => {
                let title = format!("{} on {}", short(&twin), short(&clip));
                let report = project.fresh(&format!("{}-{}", short(&twin), short(&clip)), "report")?;
                let work = Work::Eval {
                    twin: project.resolve(&twin)?,
                    rig: project.rig(&rig)?,
                    clip: project.clip(&clip)?,
                    report,
                };
                Self { job: "eval", title, work }
            }
            Order::Invert { rig, targets, alpha, smooth } => {
                let mut config = InvertConfig {
                    rig: project.rig(&rig)?,
                    output: project.fresh(&format!("{}-weights", short(&rig)), "csv")?,
                    targets: targets.iter().map(|name| project.resolve(name)).collect::<Result<_, _>>()?,
                    settings: settings(alpha),
                    ..InvertConfig::default()
                };
                config.take.smooth = smooth.unwrap_or(0.0);
                Self {
                    job: "invert",
                    title: format!("weights of {}", short(&rig)),
                    work: Work::Invert(Box::new(config)),
                }
            }
        })
    }

    fn run(&self, project: &Project, watch: &dyn Watch) -> Result<Value, JobError> {
        match &self.work {
            Work::Learn { rig, data, learning: None, poses, minutes, twin } => {
                let config = AutoConfig {
                    rig: Some(rig.clone()),
                    data: data.clone(),
                    output: twin.clone(),
                    poses: *poses,
                    trial_minutes: (minutes / 8.0).min(1.0),
                    minutes: *minutes,
                    trial_poses: (*poses as usize).min(AutoConfig::default().trial_poses),
                    report: Some(twin.with_extension("report")),
                    ..AutoConfig::default()
                };
                let report = learn_auto(&config, watch)?;
                Ok(json!({
                    "twin": project.name_of(twin), "kind": report.learned.kind, "rig": self.rig_name(project),
                    "page": report.page.map(|page| project.name_of(&page)), "why": report.why,
                    "held_back_mm": report.learned.held_back.mean_mm, "ms": report.ms, "bytes": report.learned.bytes,
                }))
            }
            Work::Learn { rig, data, learning: Some(learning), poses, minutes, twin } => {
                let data = match data {
                    Some(data) => data.clone(),
                    None => record(rig, *poses, 1, &twin.with_extension("data"), None, watch)?,
                };
                let learned = learn(
                    &LearnConfig {
                        rig: Some(rig.clone()),
                        ..LearnConfig::new(data, twin.clone(), learning.limited(*minutes))
                    },
                    watch,
                )?;
                let weighed = weigh(rig, twin, watch)?;
                let own = &weighed.methods[&weighed.order[0]];
                Ok(json!({
                    "twin": project.name_of(twin), "kind": learned.kind, "rig": self.rig_name(project),
                    "page": weighed.page.map(|page| project.name_of(&page)),
                    "held_back_mm": learned.held_back.mean_mm, "test_mm": own.mean_mm, "test_max_mm": own.max_mm,
                    "ms": own.ms, "original_ms": weighed.original_ms, "bytes": learned.bytes,
                }))
            }
            Work::Sample { rig, poses, output } => {
                let data = record(rig, *poses, 1, output, None, watch)?;
                Ok(json!({ "data": project.name_of(&data) }))
            }
            Work::Eval { twin, rig, clip, report } => {
                let config = EvalConfig {
                    twin: twin.clone(),
                    rig: Some(rig.clone()),
                    clips: vec![clip.clone()],
                    report: Some(report.clone()),
                    ..EvalConfig::default()
                };
                let weighed = eval(&config, watch)?;
                let own = &weighed.methods[&weighed.order[0]];
                Ok(json!({
                    "page": weighed.page.map(|page| project.name_of(&page)),
                    "test_mm": own.mean_mm, "test_max_mm": own.max_mm, "ms": own.ms,
                    "original_ms": weighed.original_ms,
                }))
            }
            Work::Invert(config) => {
                let report = invert(config, watch)?;
                Ok(json!({
                    "file": project.name_of(&report.file), "frames": report.frames,
                    "rmse_mm": report.metrics.rmse_cm * 10.0, "max_mm": report.metrics.max_cm * 10.0,
                    "ms_per_frame": report.solve_ms_per_frame,
                }))
            }
        }
    }

    /// The rig as a page may ask for it again.
    fn rig_name(&self, project: &Project) -> String {
        match &self.work {
            Work::Learn { rig, .. } | Work::Sample { rig, .. } | Work::Eval { rig, .. } => {
                project.name_of(Path::new(rig))
            }
            Work::Invert(config) => project.name_of(Path::new(&config.rig)),
        }
    }
}

/// Settings that are the command's own, but for α, a share of the shapes' mean energy.
pub(crate) fn settings(alpha: Option<f64>) -> InverseSettings {
    let usual = InverseSettings::default();
    InverseSettings { alpha: alpha.map_or(usual.alpha, Alpha::Share), ..usual }
}

/// Records random poses, or a clip.
fn record(
    rig: &str,
    poses: u64,
    seed: u64,
    output: &Path,
    method: Option<Method>,
    watch: &dyn Watch,
) -> Result<PathBuf, JobError> {
    let method = match method {
        Some(method) => method,
        None => method_for(rig, watch)?,
    };
    let config = SampleConfig {
        rig: rig.into(),
        output: output.into(),
        poses: Some(poses),
        method: Some(method),
        seed,
        ..SampleConfig::default()
    };
    sample(&config, watch)?;
    Ok(output.into())
}

/// Weighs a twin on the clip that its rig keeps for tests, or on other random poses where it has none.
fn weigh(
    rig: &str,
    twin: &Path,
    watch: &dyn Watch,
) -> Result<understudy_jobs::twin::eval::EvalReport, JobError> {
    let kept = rigs::open(rig, watch)?
        .rig
        .clips()
        .iter()
        .find(|clip| clip.is_for_test())
        .map(|clip| clip.name.clone());
    let test = match kept {
        Some(_) => Vec::new(),
        None => {
            let name = twin.with_extension("test.data");
            vec![record(rig, TEST_POSES, 2, &name, Some(Method::Sparse), watch)?]
        }
    };
    let config = EvalConfig {
        twin: twin.into(),
        rig: Some(rig.into()),
        clips: kept.into_iter().collect(),
        test,
        report: Some(twin.with_extension("report")),
        command: "understudy studio".into(),
        ..EvalConfig::default()
    };
    eval(&config, watch)
}

/// A file's name without folders and ending.
fn short(name: &str) -> String {
    let path = Path::new(name);
    path.file_stem().map_or_else(|| "rig".into(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(runs: &Runs, id: u64) -> Snapshot {
        for _ in 0..2400 {
            let snapshot = runs.snapshot(id).expect("it was started");
            if snapshot.state != State::Running {
                return snapshot;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("the job does not end");
    }

    #[test]
    fn a_job_runs_to_its_end_with_progress_and_another_is_cancelled() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let project = Arc::new(Project::open(folder.path(), Vec::new()).expect("a folder"));
        let runs = Runs::default();
        let mut changes = runs.listen();
        let id = runs.start(Order::Sample { rig: "mira".into(), poses: 40 }, &project).expect("a rig");
        let end = wait(&runs, id);
        assert_eq!((end.state, end.error.clone()), (State::Done, None));
        assert!(end.done == 40 && end.total == 40 && end.unit == "poses", "{end:?}");
        let data = end.result.as_ref().and_then(|r| r["data"].as_str()).expect("a dataset").to_owned();
        assert!(project.resolve(&data).is_ok() && changes.try_recv().is_ok());

        let id = runs.start(Order::Sample { rig: "mira".into(), poses: 1_000_000 }, &project).expect("a rig");
        std::thread::sleep(Duration::from_millis(200));
        runs.cancel(id).expect("it runs");
        assert_eq!(wait(&runs, id).state, State::Cancelled);
        assert!(runs.cancel(99).is_err());
        assert_eq!(runs.snapshots().len(), 2);
    }

    #[test]
    fn orders_that_make_no_sense_start_nothing() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let project = Arc::new(Project::open(folder.path(), Vec::new()).expect("a folder"));
        let runs = Runs::default();
        let learn = |rig: &str, method: &str, poses, minutes| Order::Learn {
            rig: rig.into(),
            data: None,
            method: method.into(),
            poses,
            minutes,
        };
        for order in [
            learn("../x.glb", "auto", 10, 1.0),
            learn("mira", "psychic", 10, 1.0),
            learn("mira", "auto", 0, 1.0),
            learn("mira", "auto", 10, f64::NAN),
            learn("cmd:sh", "auto", 10, 1.0),
            Order::Invert {
                rig: "mira".into(),
                targets: vec!["/etc/passwd".into()],
                alpha: None,
                smooth: None,
            },
        ] {
            assert!(runs.start(order.clone(), &project).is_err(), "{order:?}");
        }
        assert!(runs.snapshots().is_empty());
    }

    #[test]
    fn long_curves_are_thinned() {
        let plan = Plan {
            job: "sample",
            title: String::new(),
            work: Work::Sample { rig: String::new(), poses: 1, output: PathBuf::new() },
        };
        let run = Run::new(1, &plan, broadcast::channel(4).0);
        for step in 0..5000 {
            run.event(Event::Figure { name: "loss", value: f64::from(step) });
        }
        let curve = &run.seen().curves["loss"];
        assert!(curve.len() <= POINTS && curve.len() > POINTS / 3);
        assert!(curve.windows(2).all(|pair| pair[0][1] < pair[1][1]) && curve[curve.len() - 1][1] == 4999.0);
    }
}
