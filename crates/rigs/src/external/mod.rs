//! Rigs that live in another program and answer by the rig protocol: `docs/guides/rig-protocol.md`. Start at
//! [`ExternalRig::open`]. Frames are in [`protocol`], what a rig says about itself in [`Description`], where it is
//! found in [`Address`].
//!
//! A worker that crashes, hangs or answers nonsense is replaced and the pose is tried again, so that what is recorded
//! does not depend on such accidents; a pose that fails every time is an error that names it.

mod address;
mod description;
pub mod protocol;
mod worker;

pub use address::Address;
pub use description::{Description, Space};

use crate::{Guide, Incident, Rig, RigError, RigPose};
use protocol::{Frame, PosesShape, Tag};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use understudy_core::{Clip, ControlSpecs, Controls, Mesh, Skeleton, SkinWeights, Vec3};
use worker::{Worker, WorkerError};

/// How often a pose is tried before it counts as failed.
const ATTEMPTS: usize = 3;
/// A batch should take so long: long enough that the way to the worker costs nothing, and short enough that little is
/// done again where one is lost.
const BATCH_TIME: Duration = Duration::from_millis(200);
const LARGEST_BATCH: usize = 64;
/// Bytes of an answer that a batch should not exceed.
const BATCH_BYTES: usize = 32 << 20;

/// How a rig in another program is used.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalOptions {
    /// Processes or connections at a time.
    pub workers: usize,
    /// How long one answer may take.
    pub patience: Duration,
    /// How long the description may take: a program may load for a while.
    pub start_patience: Duration,
}

impl Default for ExternalOptions {
    fn default() -> Self {
        Self { workers: 1, patience: Duration::from_secs(60), start_patience: Duration::from_secs(300) }
    }
}

/// A rig in another program.
pub struct ExternalRig {
    address: Address,
    options: ExternalOptions,
    description: Description,
    /// Workers that nobody uses; `None` for one that is still to be started.
    idle: Mutex<Vec<Option<Worker>>>,
    returned: Condvar,
    /// Mean time of a pose, ns, over the last few; 0 before the first.
    pose_time: AtomicU64,
}

impl ExternalRig {
    /// Starts the first worker and asks it for its description; the others start when they are needed.
    pub fn open(address: Address, options: ExternalOptions) -> Result<Self, RigError> {
        let rig = address.to_string();
        let failed = |error: WorkerError| RigError::External { rig: rig.clone(), problem: error.to_string() };
        let (worker, description) = start(&address, &options).map_err(failed)?;
        let mut idle: Vec<Option<Worker>> = (1..options.workers.max(1)).map(|_| None).collect();
        idle.push(Some(worker));
        Ok(Self {
            address,
            options,
            description,
            idle: Mutex::new(idle),
            returned: Condvar::new(),
            pose_time: AtomicU64::new(0),
        })
    }

    /// What the rig said about itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// A worker's place, when one is free.
    fn take(&self) -> Place<'_> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match idle.pop() {
                Some(worker) => return Place { rig: self, worker },
                None => idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn shape(&self, poses: usize) -> PosesShape {
        let guides = self.description.guides.len();
        let bones = self.description.skeleton.as_ref().map_or(0, Skeleton::len) + guides;
        PosesShape { poses, vertices: self.description.mesh.vertex_count(), bones, guides }
    }

    fn error(&self, error: &WorkerError) -> RigError {
        RigError::External { rig: self.description.name.clone(), problem: error.to_string() }
    }
}

/// Starts a worker and asks for its description.
fn start(address: &Address, options: &ExternalOptions) -> Result<(Worker, Description), WorkerError> {
    let mut worker = Worker::start(address)?;
    let answer = worker.ask(&Frame::describe(), options.start_patience);
    match answer.and_then(|frame| Ok(Description::parse(frame.expect(Tag::Rig)?)?)) {
        Ok(description) => Ok((worker, description)),
        Err(error) => {
            worker.kill();
            Err(error)
        }
    }
}

/// A worker in use, given back when it is dropped.
struct Place<'a> {
    rig: &'a ExternalRig,
    worker: Option<Worker>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut idle = self.rig.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(self.worker.take());
        self.rig.returned.notify_one();
    }
}

impl Place<'_> {
    /// Asks for poses, of a new worker where there is none. One that did not answer as it should is ended: what else
    /// is wrong with it, nobody knows.
    fn evaluate(&mut self, controls: &[Controls], out: &mut [RigPose]) -> Result<(), WorkerError> {
        let result = self.try_evaluate(controls, out);
        let sane =
            matches!(&result, Ok(()) | Err(WorkerError::Protocol(protocol::ProtocolError::Failed { .. })));
        if !sane && let Some(mut worker) = self.worker.take() {
            worker.kill();
        }
        result
    }

    fn try_evaluate(&mut self, controls: &[Controls], out: &mut [RigPose]) -> Result<(), WorkerError> {
        let rig = self.rig;
        let worker = match &mut self.worker {
            Some(worker) => worker,
            empty => empty.insert(rig.restart()?),
        };
        let scaled: Vec<Controls> = controls
            .iter()
            .map(|pose| {
                let scales = &rig.description.control_scale;
                Controls(pose.0.iter().zip(scales).map(|(value, scale)| value * scale).collect())
            })
            .collect();
        let start = Instant::now();
        let request = Frame::evaluate(scaled.iter(), rig.description.specs.len());
        let answer = worker.ask(&request, rig.options.patience)?;
        rig.shape(controls.len()).parse(answer.expect(Tag::Poses)?, out)?;
        rig.note_time(start.elapsed(), controls.len());
        let space = &rig.description.space;
        for pose in out {
            pose.vertices.iter_mut().for_each(|vertex| *vertex = space.point(*vertex));
            pose.global.0.iter_mut().chain(&mut pose.guides).for_each(|bone| *bone = space.bone(bone));
        }
        Ok(())
    }
}

impl ExternalRig {
    /// Another worker of the same rig. A socket's server may itself be starting again: it has as long as an answer.
    fn restart(&self) -> Result<Worker, WorkerError> {
        let deadline = Instant::now() + self.options.patience;
        let socket = !matches!(self.address, Address::Command(_));
        loop {
            match start(&self.address, &self.options) {
                Ok((_, other)) if other != self.description => {
                    return Err(WorkerError::Start("it describes another rig than at first".into()));
                }
                Ok((worker, _)) => return Ok(worker),
                Err(WorkerError::Start(_)) if socket && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the time of an answer into the mean that [`Rig::batch`] is chosen by.
    fn note_time(&self, time: Duration, poses: usize) {
        let each = (time.as_nanos() as u64 / poses as u64).max(1);
        let old = self.pose_time.load(Ordering::Relaxed);
        let new = if old == 0 { each } else { (3 * old + each) / 4 };
        self.pose_time.store(new, Ordering::Relaxed);
    }
}

impl Rig for ExternalRig {
    fn name(&self) -> &str {
        &self.description.name
    }

    fn specs(&self) -> &ControlSpecs {
        &self.description.specs
    }

    fn mesh(&self) -> &Mesh {
        &self.description.mesh
    }

    fn skeleton(&self) -> Option<&Skeleton> {
        self.description.skeleton.as_ref()
    }

    fn guides(&self) -> &[Guide] {
        &self.description.guides
    }

    fn skin_weights(&self) -> Option<&SkinWeights> {
        self.description.weights.as_ref()
    }

    fn clips(&self) -> &[Clip] {
        &self.description.clips
    }

    fn workers(&self) -> Option<usize> {
        Some(self.options.workers.max(1))
    }

    fn pose_ms(&self) -> Option<f64> {
        Some(self.pose_time.load(Ordering::Relaxed)).filter(|time| *time > 0).map(|time| time as f64 * 1e-6)
    }

    fn batch(&self) -> usize {
        let fast = match self.pose_time.load(Ordering::Relaxed) {
            0 => 1,
            time => (BATCH_TIME.as_nanos() as u64 / time) as usize,
        };
        let small = BATCH_BYTES / self.shape(1).bytes_per_pose().max(1);
        fast.min(small).clamp(1, LARGEST_BATCH)
    }

    fn evaluate(&self, controls: &Controls, out: &mut RigPose) -> Result<(), RigError> {
        let batch = std::slice::from_ref(controls);
        self.evaluate_batch(batch, std::slice::from_mut(out), &mut |_| ()).map_err(|(_, error)| error)
    }

    fn evaluate_from(&self, _: &[Vec3], _: &Controls, _: &mut RigPose) -> Result<(), RigError> {
        Err(RigError::Unsupported {
            rig: self.description.name.clone(),
            what: "start from another rest mesh",
        })
    }

    /// All at once; where that fails, one by one, each as often as `ATTEMPTS` says.
    fn evaluate_batch(
        &self,
        controls: &[Controls],
        out: &mut [RigPose],
        hear: &mut dyn FnMut(Incident),
    ) -> Result<(), (usize, RigError)> {
        for (index, pose) in controls.iter().enumerate() {
            self.description.specs.check(pose).map_err(|error| (index, error.into()))?;
        }
        let out = &mut out[..controls.len()];
        let mut place = self.take();
        if controls.len() > 1 {
            match place.evaluate(controls, out) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let at_fault = match &error {
                        WorkerError::Protocol(error) => error.pose().filter(|pose| *pose < controls.len()),
                        _ => None,
                    };
                    let poses = at_fault.map_or(0..controls.len(), |pose| pose..pose + 1);
                    hear(Incident { poses, problem: error.to_string() });
                }
            }
        }
        for index in 0..controls.len() {
            let mut attempt = 1;
            let single = index..index + 1;
            while let Err(error) = place.evaluate(&controls[single.clone()], &mut out[single.clone()]) {
                hear(Incident { poses: single.clone(), problem: error.to_string() });
                if attempt == ATTEMPTS {
                    return Err((index, self.error(&error)));
                }
                attempt += 1;
            }
        }
        Ok(())
    }
}
