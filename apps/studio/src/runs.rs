//! Jobs in the background: started by a page, watched by every tab, cancelled by any, and still there after a reload.
//! Start at [`Runs::start`]; what can be asked for is in `orders.rs`.

use crate::error::Refusal;
use crate::library::lock;
use crate::orders::{Order, Plan};
use crate::project::Project;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::broadcast;
use understudy_jobs::{Event, JobError, Watch};

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
        let plan = order.plan(project)?;
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
        let Plan { work: job, given, .. } = plan;
        let work = move || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(&project, &*run)));
            // Before anybody hears that it ended: what was written keeps its name by itself.
            drop(given);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn project(root: &std::path::Path) -> Arc<Project> {
        let limits = crate::project::UploadLimits::default();
        Arc::new(Project::open(root, Vec::new(), limits).expect("a folder"))
    }

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
        let project = project(folder.path());
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
    fn two_jobs_of_one_kind_write_to_names_of_their_own() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (project, runs) = (project(folder.path()), Runs::default());
        // Both are ordered before either has made its folder.
        let start = || runs.start(Order::Sample { rig: "mira".into(), poses: 60 }, &project).expect("a rig");
        let (first, second) = (start(), start());
        let data = |id| {
            let end = wait(&runs, id);
            assert_eq!((end.state, end.error.clone()), (State::Done, None));
            end.result.expect("a dataset")["data"].clone()
        };
        assert_ne!(data(first), data(second));
    }

    #[test]
    fn orders_that_make_no_sense_start_nothing() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let project = project(folder.path());
        let runs = Runs::default();
        let learn = |rig: &str, method: &str, poses, minutes| Order::Learn {
            rig: rig.into(),
            data: None,
            method: method.into(),
            poses,
            minutes,
            follow: false,
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
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (_, given) = project(folder.path()).fresh("mira", "data").expect("free");
        let plan =
            Plan { job: "sample", title: String::new(), work: Box::new(|_, _| Ok(Value::Null)), given };
        let run = Run::new(1, &plan, broadcast::channel(4).0);
        for step in 0..5000 {
            run.event(Event::Figure { name: "loss", value: f64::from(step) });
        }
        let curve = &run.seen().curves["loss"];
        assert!(curve.len() <= POINTS && curve.len() > POINTS / 3);
        assert!(curve.windows(2).all(|pair| pair[0][1] < pair[1][1]) && curve[curve.len() - 1][1] == 4999.0);
    }
}
