//! Jobs: a configuration as JSON in, a report as JSON out. The job works in a thread of its own without Python's lock; the
//! caller's thread hands its events to a function, and Ctrl-C to the job, which ends at the next good place.

use crate::problem::{bad, of_job};
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use understudy_jobs::twin::Learning;
use understudy_jobs::twin::active::{ActiveConfig, sample_actively};
use understudy_jobs::twin::auto::{AutoConfig, learn_auto};
use understudy_jobs::twin::bench::{BenchConfig, bench_twin};
use understudy_jobs::twin::eval::{EvalConfig, eval};
use understudy_jobs::twin::export::{ExportConfig, export};
use understudy_jobs::twin::ik::{LearnIkConfig, learn_ik};
use understudy_jobs::twin::learn::{LearnConfig, learn};
use understudy_jobs::{Event, JobError, Watch};
use understudy_jobs::{convert, info, invert, merge, motion, pose, render, sample, weights};

/// Events wait here for Python; steps that find no room are left out, as the next one says more.
const WAITING: usize = 256;
/// How often signals are looked at.
const PULSE: Duration = Duration::from_millis(50);
/// Of the job's thread: as large as a program's first one.
const STACK: usize = 16 << 20;

/// Sends a job's events to the caller's thread.
struct Listener {
    events: SyncSender<Value>,
    stop: AtomicBool,
}

impl Watch for Listener {
    fn event(&self, event: Event<'_>) {
        let may_be_lost = matches!(event, Event::Step { .. } | Event::Status { .. } | Event::TimeLeft { .. });
        let event = match event {
            Event::Started { what, total, unit } => {
                json!({"event": "started", "what": what, "total": total, "unit": unit})
            }
            Event::Step { done } => json!({"event": "step", "done": done}),
            Event::Status { message } => json!({"event": "status", "message": message}),
            Event::Figure { name, value } => json!({"event": "figure", "name": name, "value": value}),
            Event::TimeLeft { seconds } => json!({"event": "time_left", "seconds": seconds}),
            Event::Note { message } => json!({"event": "note", "message": message}),
            Event::Warning { message } => json!({"event": "warning", "message": message}),
            Event::Finished => json!({"event": "finished"}),
        };
        // A caller that has gone away is no reason to fail: it asked to stop.
        match self.events.try_send(event) {
            Err(TrySendError::Full(event)) if !may_be_lost => drop(self.events.send(event)),
            _ => {}
        }
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Writes what is given over what is usual, object by object.
fn overlay(usual: &mut Value, given: Value) {
    match (usual, given) {
        (Value::Object(usual), Value::Object(given)) => {
            for (key, value) in given {
                match usual.get_mut(&key) {
                    Some(old) => overlay(old, value),
                    None => drop(usual.insert(key, value)),
                }
            }
        }
        (usual, given) => *usual = given,
    }
}

/// A configuration: what is given, over what is usual.
fn configured<C: Serialize + DeserializeOwned>(usual: &C, given: Value) -> Result<C, JobError> {
    let wrong = |error: serde_json::Error| JobError::setting("settings", error);
    let mut whole = serde_json::to_value(usual).map_err(wrong)?;
    overlay(&mut whole, given);
    serde_json::from_value(whole).map_err(wrong)
}

fn report<R: Serialize>(report: &R) -> Result<String, JobError> {
    serde_json::to_string(report).map_err(|error| JobError::Machine(error.to_string()))
}

/// `learn` has a kind besides its settings: which defaults hold is told by it.
fn learning(given: &Value) -> Result<LearnConfig, JobError> {
    let kind =
        given["learning"].as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_default();
    let known = Learning::all().into_iter().find(|learning| learning.name() == kind);
    let unknown = || JobError::setting("kind", format!("there is no kind of twin '{kind}'"));
    Ok(LearnConfig::new("", "", known.ok_or_else(unknown)?))
}

/// Runs a job by its name.
fn work(name: &str, given: Value, watch: &dyn Watch) -> Result<String, JobError> {
    macro_rules! usual {
        ($config:ty, $job:path) => {
            report(&$job(&configured(&<$config>::default(), given)?, watch)?)
        };
    }
    match name {
        "sample" => usual!(sample::SampleConfig, sample::sample),
        "sample_actively" => usual!(ActiveConfig, sample_actively),
        "merge" => usual!(merge::MergeConfig, merge::merge),
        "render" => usual!(render::RenderConfig, render::render),
        "convert" => usual!(convert::ConvertConfig, convert::convert),
        "info" => usual!(info::InfoConfig, info::info),
        "invert" => usual!(invert::InvertConfig, invert::invert),
        "pose" => usual!(pose::PoseConfig, pose::pose),
        "weights" => usual!(weights::WeightsConfig, weights::weights),
        "transfer_weights" => usual!(weights::transfer::WeightTransferConfig, weights::transfer::transfer),
        "deform" => usual!(weights::deform::DeformConfig, weights::deform::deform),
        "learn_motion" => usual!(motion::LearnMotionConfig, motion::learn),
        "play_motion" => usual!(motion::PlayMotionConfig, motion::play),
        "learn_auto" => usual!(AutoConfig, learn_auto),
        "eval" => usual!(EvalConfig, eval),
        "bench" => usual!(BenchConfig, bench_twin),
        "export" => usual!(ExportConfig, export),
        "learn" => report(&learn(&configured(&learning(&given)?, given)?, watch)?),
        "learn_ik" => report(&learn_ik(&configured(&LearnIkConfig::new("", "", ""), given)?, watch)?),
        other => Err(JobError::setting("job", format!("there is no job '{other}'"))),
    }
}

/// What the settings of a job are where nothing is given, as JSON.
#[pyfunction]
pub fn defaults(name: &str) -> PyResult<String> {
    let usual = match name {
        "sample" => serde_json::to_value(sample::SampleConfig::default()),
        "invert" => serde_json::to_value(invert::InvertConfig::default()),
        "weights" => serde_json::to_value(weights::WeightsConfig::default()),
        "learn_motion" => serde_json::to_value(motion::LearnMotionConfig::default()),
        "learn_auto" => serde_json::to_value(AutoConfig::default()),
        "eval" => serde_json::to_value(EvalConfig::default()),
        _ => {
            let learning = Learning::all().into_iter().find(|learning| learning.name() == name);
            let learning = learning.ok_or_else(|| bad(format!("there is no job or kind '{name}'")))?;
            serde_json::to_value(learning)
        }
    };
    usual.map(|value| value.to_string()).map_err(bad)
}

/// Runs a job. `listener` is called with the JSON text of every event, in the thread of the caller.
#[pyfunction]
#[pyo3(signature = (name, config, listener=None))]
pub fn run(py: Python<'_>, name: &str, config: &str, listener: Option<Py<PyAny>>) -> PyResult<String> {
    let given: Value = serde_json::from_str(config).map_err(bad)?;
    let (sender, receiver) = sync_channel(WAITING);
    let watch = Listener { events: sender, stop: AtomicBool::new(false) };
    let receiver = Mutex::new(receiver);
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (watch, finished) = (&watch, &finished);
        let job = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
            let _end = OnDrop(finished);
            work(name, given, watch)
        })?;
        let mut raised = None;
        loop {
            // Looked at before the events: none of them comes after the end.
            let over = finished.load(Ordering::Acquire);
            let event = py.detach(|| next(&receiver, if over { Duration::ZERO } else { PULSE }));
            let told = match (event, &listener) {
                (Some(event), Some(listener)) => listener.call1(py, (event.to_string(),)).map(drop),
                (Some(_), None) => Ok(()),
                (None, _) if over => break,
                (None, _) => Ok(()),
            };
            if raised.is_none() {
                raised = told.and_then(|()| py.check_signals()).err();
                watch.stop.store(raised.is_some(), Ordering::Relaxed);
            }
        }
        let result = job.join();
        match (raised, result) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => result.map_err(|error| of_job(&error)),
            (None, Err(_)) => {
                Err(crate::problem::UnderstudyError::new_err("a bug of Understudy: the job panicked"))
            }
        }
    })
}

/// Says that the job's thread has ended, even by a panic.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn next(receiver: &Mutex<Receiver<Value>>, patience: Duration) -> Option<Value> {
    let receiver = receiver.lock().expect("one thread alone uses it");
    receiver.recv_timeout(patience).ok()
}
