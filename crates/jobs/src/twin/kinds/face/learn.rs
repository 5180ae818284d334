//! `learn face`: maps of offsets in texture space (`docs/methods/face-twin.md`).

use super::checkpoint::{self, Clock, Standing};
use super::open_face_twin;
use super::report::{FaceDetails, FrameReport, StageReport};
use crate::twin::checkpoint::Checkpoints;
use crate::twin::kinds::{LearnDetails, Learning};
use crate::twin::learn::{Learn, Learned, Run};
use crate::{Event, JobError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use understudy_learn::Recording;
use understudy_learn::face::inputs::Influences;
use understudy_learn::face::motion::Size;
use understudy_learn::face::net::NetSpec;
use understudy_learn::face::schedule::{self, End, Next};
use understudy_learn::face::trainer::{NetState, Problem, Trainer};
use understudy_learn::face::{
    FaceLearnError, FaceSettings, Plan, Progress, Schedule, Truth, check, frame, half_error, motion, normals,
    segments,
};
use understudy_rigs::Rig;
use understudy_runtime::MotionParts;
use understudy_runtime::Training;
use understudy_runtime::face::{FaceParts, NetParts, RigidBodyParts, to_bytes};

/// How to learn a face.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaceLearning {
    /// A twin whose coarse networks, head and bodies are kept: only what refines them is learned.
    pub from: Option<PathBuf>,
    /// How long learning may take, minutes, interruptions not counted; it ends sooner when nothing is gained any more.
    /// The twin then depends on the machine. `None` for the schedule's own numbers of steps.
    pub minutes: Option<f64>,
    /// Sizes and training.
    pub settings: FaceSettings,
}

impl FaceLearning {
    /// The paper's recipe: [`FaceSettings::paper`]. It has weights of 32 bits.
    pub fn paper() -> Self {
        Self { settings: FaceSettings::paper(), ..Self::default() }
    }
}

impl Learn for FaceLearning {
    fn inputs(&self) -> Vec<&Path> {
        self.from.as_deref().into_iter().collect()
    }

    fn check(&self) -> Result<(), JobError> {
        self.settings.check().map_err(|error| JobError::setting("learn face", error))?;
        if let Some(minutes) = self.minutes.filter(|m| !(m.is_finite() && *m > 0.0)) {
            return Err(JobError::setting("minutes", format!("{minutes} minutes; more than 0 is wanted")));
        }
        if self.from.is_some() && (self.settings.dense || !self.settings.refine) {
            let problem = "only networks that refine others can be learned beside a twin";
            return Err(JobError::setting("from", problem));
        }
        Ok(())
    }

    fn limited(&self, minutes: f64) -> Learning {
        let minutes = self.minutes.map_or(minutes, |own| own.min(minutes));
        Learning::Face(Self { minutes: Some(minutes), ..self.clone() })
    }

    fn learn(&self, run: &Run<'_>, poses: Recording, rig: Option<&dyn Rig>) -> Result<Learned, JobError> {
        FaceRun { own: self, run, earlier: AtomicU64::new(0) }.learn(poses, rig)
    }
}

/// Seconds between two checkpoints.
const SAVE_EVERY: Duration = Duration::from_secs(15);
/// Seconds between two lines in a log, which has no status line.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Share of a given time that training may use: the rest is for measuring and writing the twin.
const TRAINING_SHARE: f64 = 0.97;
/// Poses by which it is measured what the coarse networks leave.
const REGION_POSES: usize = 200;
/// Share of the time that the coarse networks get where both stages share a given time.
const COARSE_SHARE: f64 = 0.5;
/// Share of the time that normals get where maps carry them.
const NORMALS_SHARE: f64 = 0.1;

struct FaceRun<'a> {
    own: &'a FaceLearning,
    run: &'a Run<'a>,
    /// Milliseconds that interrupted runs took before this one.
    earlier: AtomicU64,
}

impl FaceRun<'_> {
    fn error(&self, error: FaceLearnError) -> JobError {
        match error {
            FaceLearnError::Stopped => JobError::Stopped,
            FaceLearnError::Threads { problem } => JobError::Machine(problem),
            diverged @ FaceLearnError::Diverged { .. } => JobError::setting("--rate", diverged),
            other => JobError::unusable(&self.run.config.data, other),
        }
    }

    fn learn(&self, mut poses: Recording, rig: Option<&dyn Rig>) -> Result<Learned, JobError> {
        let settings = &self.own.settings;
        check(&poses).map_err(|error| self.error(error))?;
        let truth = Truth::of(&poses, settings);
        let kept = self.own.from.as_deref().map(|path| self.kept(path, &poses)).transpose()?;
        let checkpoints = self.checkpoints(&poses, kept.as_ref());
        self.run.watch.event(Event::Started { what: "probing", total: 1, unit: "rig" });
        let influences = Influences::new(&poses, rig).map_err(|error| self.error(error))?;
        self.run.watch.event(Event::Finished);
        let (frame_parts, frame_report) = match &kept {
            None => self.frame(&mut poses, &influences)?.unzip(),
            Some(twin) => {
                twin.frame.iter().for_each(|frame| frame::take_away(&mut poses, frame));
                (twin.frame.clone(), None)
            }
        };
        self.run.watch.event(Event::Started { what: "planning", total: 1, unit: "plan" });
        let mut plan = Plan::new(&poses, &influences, settings).map_err(|error| self.error(error))?;
        self.run.watch.event(Event::Finished);
        self.say_plan(&plan);
        let states = kept.as_ref().map(|twin| plan.keep_coarse(twin)).transpose();
        let states = states.map_err(|error| self.unkept(error))?;
        let bodies = match &kept {
            None => self.bodies(&poses, &plan, &influences)?,
            Some(twin) => twin.bodies.clone(),
        };

        let (mut nets, coarse_report, refinement_report) =
            self.maps(&poses, &plan, &influences, &checkpoints, states)?;
        let normals_report = match settings.normals {
            true => Some(self.normals(&mut poses, &plan, &mut nets, &checkpoints)?),
            false => None,
        };
        let details = serde_json::json!({
            "settings": settings,
            "segments": plan.segments,
            "frame": frame_report,
            "coarse": coarse_report,
            "refinement": refinement_report,
            "normals": normals_report,
        });
        let training = Training {
            poses: poses.len(),
            inputs_probed: influences.probed(),
            details: timeless(details),
            ..Training::default()
        };
        let mut parts = plan.finish(&poses, self.run.rig_name, frame_parts, nets, bodies, training);
        let half_error_mm = match self.run.config.half {
            false => None,
            true => Some(half_error(&parts, &poses).map_err(|error| self.run.unfit(&error))?),
        };
        parts.header.training.half_error_mm = half_error_mm;
        let normal_angles = match settings.normals {
            false => None,
            true => Some(
                normals::angles(&parts, &poses, &plan.validation)
                    .map_err(|error| JobError::Machine(error.to_string()))?,
            ),
        };
        parts.header.training.normal_angles_deg = normal_angles;
        let precision = self.run.precision();
        self.run.note_origin(&mut parts.header.training);
        let held_back = truth.measure(&parts, precision).map_err(|error| self.run.unfit(&error))?;
        let stages = [Some(&coarse_report), refinement_report.as_ref(), normals_report.as_ref()];
        let ended = |stage: &StageReport| stage.rates.iter().all(|(_, end)| *end == End::Converged);
        let converged = stages.into_iter().flatten().all(ended);
        Ok(Learned {
            bytes: to_bytes(&parts, precision).map_err(|error| self.run.unfit(&error))?,
            inputs_probed: influences.probed(),
            held_back,
            base: "a face at rest",
            advice: "train longer, or record more poses",
            details: LearnDetails::Face(Box::new(FaceDetails {
                segments: plan.segments.clone(),
                frame: frame_report,
                coarse: coarse_report,
                refinement: refinement_report,
                normals: normals_report,
                normal_angles_deg: normal_angles,
                minutes: self.own.minutes,
                converged,
            })),
            checkpoints,
            seconds: self.elapsed(),
        })
    }

    /// Trains the networks that draw offsets, in both stages.
    fn maps(
        &self,
        poses: &Recording,
        plan: &Plan,
        influences: &Influences,
        checkpoints: &Checkpoints,
        kept: Option<Vec<NetState>>,
    ) -> Result<(Vec<NetParts>, StageReport, Option<StageReport>), JobError> {
        let settings = &self.own.settings;
        let whole = if settings.normals { 1.0 - NORMALS_SHARE } else { 1.0 };
        let both = settings.refine && !settings.dense && kept.is_none();
        // Each stage gets its share of the time that is left when it begins.
        let share = if both { whole * COARSE_SHARE } else { whole };
        let problem = plan.coarse_problem(poses, settings);
        let trainer = self.trainer(problem, plan.coarse.clone(), settings.seed)?;
        let (coarse, coarse_report) = match kept {
            None => self.stage("coarse", plan, trainer, &settings.coarse, share, checkpoints)?,
            Some(states) => self.as_kept(plan, trainer, &states)?,
        };
        let mut nets = coarse.parts();
        let mut refinement_report = None;
        if settings.refine && !settings.dense {
            let chosen: Vec<usize> = poses.spread(REGION_POSES);
            let left = settings.measured_regions.then(|| coarse.left(&chosen)).transpose();
            let left = left.map_err(|error| self.error(error))?;
            let (specs, _) = plan.refinement(poses, influences, settings, left.as_deref());
            if !specs.is_empty() {
                let mut problem = plan.refinement_problem(poses, &specs, settings);
                let wanted = coarse.locals(&problem.members);
                self.run.watch.event(Event::Started {
                    what: "drawing coarse poses",
                    total: poses.len() as u64,
                    unit: "poses",
                });
                let mut step = |done: usize| {
                    self.run.watch.event(Event::Step { done: done as u64 });
                    !self.run.watch.should_stop()
                };
                problem.base = coarse.predict(&wanted, &mut step).map_err(|error| self.error(error))?;
                self.run.watch.event(Event::Finished);
                drop(coarse);
                let trainer = self.trainer(problem, specs, settings.later_seed())?;
                let (fine, report) =
                    self.stage("refinement", plan, trainer, &settings.refinement, whole, checkpoints)?;
                nets.extend(fine.parts());
                refinement_report = Some(report);
            }
        }
        Ok((nets, coarse_report, refinement_report))
    }

    /// The twin whose coarse networks are kept.
    fn kept(&self, path: &Path, poses: &Recording) -> Result<FaceParts, JobError> {
        let parts = open_face_twin(path)?.parts();
        if parts.header.topology_hash != poses.mesh.topology_hash() {
            let want = (poses.mesh.vertex_count(), poses.mesh.topology_hash());
            return Err(JobError::other_topology(path, &parts.mesh, "the dataset's", want));
        }
        if parts.header.inputs.controls != poses.specs {
            let problem = "it has other controls than the dataset".into();
            return Err(JobError::unusable(path, FaceLearnError::Kept { problem }));
        }
        Ok(parts)
    }

    /// An error about the twin that is kept, not about the data.
    fn unkept(&self, error: FaceLearnError) -> JobError {
        match &self.own.from {
            Some(path) => JobError::unusable(path, error),
            None => self.error(error),
        }
    }

    /// Coarse networks as a twin has them.
    fn as_kept<'p>(
        &self,
        plan: &Plan,
        trainer: Trainer<'p>,
        states: &[NetState],
    ) -> Result<(Trainer<'p>, StageReport), JobError> {
        if !trainer.set_state(states) {
            let problem = "they have other widths than these settings give".into();
            return Err(self.unkept(FaceLearnError::Kept { problem }));
        }
        let report = StageReport {
            networks: trainer.network_count(),
            steps: 0,
            rates: Vec::new(),
            validation: trainer.measure(&plan.validation).total(),
            multiply_adds: trainer.multiply_adds(),
            steps_per_second: None,
        };
        Ok((trainer, report))
    }

    /// Learns the head's motion and takes it out of the poses.
    fn frame(
        &self,
        poses: &mut Recording,
        influences: &Influences,
    ) -> Result<Option<(MotionParts, FrameReport)>, JobError> {
        let settings = &self.own.settings;
        if !settings.frame {
            return Ok(None);
        }
        let Some((skull, inputs)) = frame::choose_skull(poses, influences) else { return Ok(None) };
        self.run.watch.event(Event::Started {
            what: "learning the head's motion",
            total: Size::head(poses.len()).epochs as u64,
            unit: "epochs",
        });
        let step = |epoch: usize| {
            self.run.watch.event(Event::Step { done: epoch as u64 + 1 });
            !self.run.watch.should_stop()
        };
        let trained =
            motion::learn(poses, &skull.vertices, inputs, Size::head(poses.len()), settings.seed, step)
                .map_err(|error| self.error(error))?;
        self.run.watch.event(Event::Finished);
        frame::take_away(poses, &trained.parts);
        let report = FrameReport {
            motion_mm: skull.motion_cm * 10.0,
            left_mm: skull.left_cm * 10.0,
            error_mm: trained.error_cm * 10.0,
            inputs: trained.parts.inputs.len(),
        };
        let message = format!(
            "the head's motion is taken out, to {:.2} mm, by {} controls: vertices move {:.1} mm instead of {:.1} mm",
            report.error_mm, report.inputs, report.left_mm, report.motion_mm
        );
        self.run.note(&message);
        Ok(Some((trained.parts, report)))
    }

    /// Learns the motions of bodies.
    fn bodies(
        &self,
        poses: &Recording,
        plan: &Plan,
        influences: &Influences,
    ) -> Result<Vec<RigidBodyParts>, JobError> {
        if plan.bodies.is_empty() {
            return Ok(Vec::new());
        }
        let total = (plan.bodies.len() * Size::body(plan.bodies.len(), poses.len()).epochs) as u64;
        self.run.watch.event(Event::Started { what: "learning motions of bodies", total, unit: "epochs" });
        let order = Mutex::new(0);
        let step = |done: usize| {
            // Events come from one thread at a time, in order.
            let mut last = order.lock().unwrap_or_else(PoisonError::into_inner);
            if done > *last {
                *last = done;
                self.run.watch.event(Event::Step { done: done as u64 });
            }
            !self.run.watch.should_stop()
        };
        let seed = self.own.settings.seed;
        let learned = segments::learn_bodies(poses, &plan.bodies, influences, seed, &step)
            .map_err(|error| self.error(error))?;
        self.run.watch.event(Event::Finished);
        let said: Vec<String> =
            learned.iter().map(|(body, error)| format!("{} to {:.2} mm", body.name, error * 10.0)).collect();
        let message = format!("bodies with a motion of their own: {}", said.join(", "));
        self.run.note(&message);
        Ok(learned.into_iter().map(|(body, _)| body).collect())
    }

    fn say_plan(&self, plan: &Plan) {
        let message = format!(
            "{} networks, {} bodies, {} segments that follow them or others, of {}",
            plan.coarse.len(),
            plan.bodies.len(),
            plan.rigid.len(),
            plan.segments.len()
        );
        self.run.note(&message);
        for segment in &plan.segments {
            let [before, after] = segment.glued;
            if before > 0 {
                let message = format!(
                    "{}: the texture puts {before} pairs of vertices that move apart into common pixels, the \
                     map {after}",
                    segment.name
                );
                self.run.note(&message);
            }
        }
    }

    fn trainer<'p>(
        &self,
        problem: Problem<'p>,
        specs: Vec<NetSpec>,
        seed: u64,
    ) -> Result<Trainer<'p>, JobError> {
        let settings = &self.own.settings;
        Trainer::new(problem, specs, settings.hidden, settings.batch, seed, self.run.config.threads)
            .map_err(|error| self.error(error))
    }

    /// Teaches trained networks to draw normals; turns the poses into normals for it.
    fn normals(
        &self,
        poses: &mut Recording,
        plan: &Plan,
        nets: &mut [NetParts],
        checkpoints: &Checkpoints,
    ) -> Result<StageReport, JobError> {
        let settings = &self.own.settings;
        normals::take_normals(poses);
        let problem = normals::problem(poses, nets);
        let trainer = Trainer::reading(problem, nets, settings.batch, self.run.config.threads)
            .unwrap_or(Err(FaceLearnError::NoFeatures))
            .map_err(|error| self.error(error))?;
        let schedule = &settings.normal_channels;
        let (trainer, report) = self.stage("normals", plan, trainer, schedule, 1.0, checkpoints)?;
        normals::join(nets, &trainer.parts());
        Ok(report)
    }

    /// Seconds that learning took so far, in all its runs.
    fn elapsed(&self) -> f64 {
        self.earlier.load(Ordering::Relaxed) as f64 / 1e3 + self.run.start.elapsed().as_secs_f64()
    }

    /// Seconds that learning may take in all.
    fn limit(&self) -> Option<f64> {
        self.own.minutes.map(|minutes| minutes * 60.0)
    }

    /// Trains the networks of one stage, from a checkpoint where there is one. `share` is what it gets of the time
    /// that is left, where that is limited.
    fn stage<'p>(
        &self,
        name: &str,
        plan: &Plan,
        trainer: Trainer<'p>,
        schedule: &Schedule,
        share: f64,
        checkpoints: &Checkpoints,
    ) -> Result<(Trainer<'p>, StageReport), JobError> {
        let settings = &self.own.settings;
        let seed = if name == "coarse" { settings.seed } else { settings.later_seed() };
        let networks = trainer.network_count();
        let mut schedule = schedule.clone();
        let mut progress = Progress::default();
        let mut end = None;
        if let Some(Standing { progress: kept, schedule: own, clock }) =
            checkpoint::load(checkpoints, name, &trainer)?
        {
            let message = format!("{name} networks go on after step {}", kept.steps);
            self.run.note(&message);
            (progress, schedule) = (kept, own);
            if let Some(clock) = clock {
                let missing = (clock.now - self.elapsed()).max(0.0) * 1e3;
                self.earlier.fetch_add(missing as u64, Ordering::Relaxed);
                end = Some(clock.end);
            }
        } else if let Some(limit) = self.limit() {
            let pace = schedule::pace(&trainer, &plan.balance, settings, limit);
            // What came before may have used up most of it: something must be learned all the same.
            let left = (TRAINING_SHARE * limit - self.elapsed()).max(0.1 * limit);
            let steps = (pace * left * share).max(1.0);
            end = Some(self.elapsed() + left * share);
            // The clock decides; caps are out of its way.
            schedule = schedule.with_total((2.0 * steps) as usize);
            schedule.check_every = schedule.check_every.min(steps as usize / 40 + 1);
        }
        let what = format!("training {name} networks");
        let total = if end.is_some() { schedule.total() / 2 } else { schedule.total() };
        self.run.watch.event(Event::Started { what: &what, total: total as u64, unit: "steps" });
        let (begin, first) = (Instant::now(), progress.steps);
        let (mut saved, mut spoken, mut logged) = (Instant::now(), Instant::now(), Instant::now());
        let mut rate_end = (usize::MAX, 0.0);
        let clock = |end: Option<f64>| end.map(|end| Clock { now: self.elapsed(), end });
        let mut failed = None;
        let mut average = f64::NAN;
        let done = |progress: &Progress| match end {
            Some(_) => progress.steps.min(total),
            None => schedule.caps[..progress.rate].iter().sum::<usize>() + progress.steps_at_rate,
        };
        let outcome = schedule::run(
            &trainer,
            &plan.balance,
            &plan.validation,
            &schedule,
            settings.batch,
            seed,
            &mut progress,
            |progress, loss| {
                average = if average.is_nan() { loss } else { 0.99 * average + 0.01 * loss };
                let (speak, save) =
                    (spoken.elapsed() > Duration::from_millis(500), saved.elapsed() > SAVE_EVERY);
                if speak || save {
                    spoken = Instant::now();
                    self.run.watch.event(Event::Step { done: done(progress) as u64 });
                    if let Some(limit) = self.limit() {
                        self.run.watch.event(Event::TimeLeft { seconds: (limit - self.elapsed()).max(0.0) });
                    }
                    let message = format!(
                        "learning rate {:e}, loss {average:.4}, validation {:.4}",
                        schedule.rates[progress.rate],
                        progress.best.min(99.0)
                    );
                    self.run.watch.event(Event::Status { message: &message });
                    self.run.watch.event(Event::Figure { name: "loss", value: average });
                    if progress.best.is_finite() {
                        let value = f64::from(progress.best);
                        self.run.watch.event(Event::Figure { name: "held-back loss", value });
                    }
                    if logged.elapsed() > LOG_EVERY {
                        logged = Instant::now();
                        let message = format!("step {}: {message}", progress.steps);
                        self.run.note(&message);
                    }
                    if save {
                        saved = Instant::now();
                        failed =
                            checkpoint::save(checkpoints, name, &trainer, progress, &schedule, clock(end))
                                .err();
                    }
                }
                if failed.is_some() || self.run.watch.should_stop() {
                    return Next::Stop;
                }
                let Some(end) = end else { return Next::Step };
                let now = self.elapsed();
                if rate_end.0 != progress.rate {
                    let caps = &schedule.caps[progress.rate..];
                    let share = caps[0] as f64 / caps.iter().sum::<usize>() as f64;
                    rate_end = (progress.rate, now + (end - now) * share);
                }
                if now >= rate_end.1 { Next::Rate } else { Next::Step }
            },
        );
        if let Some(error) = failed {
            return Err(error);
        }
        if outcome == Err(FaceLearnError::Stopped) {
            checkpoint::save(checkpoints, name, &trainer, &progress, &schedule, clock(end))?;
        }
        outcome.map_err(|error| self.error(error))?;
        self.run.watch.event(Event::Finished);
        checkpoint::save(checkpoints, name, &trainer, &progress, &schedule, clock(end))?;
        let steps = (progress.steps - first) as f64;
        let report = StageReport {
            networks,
            steps: progress.steps,
            rates: progress.ended.clone(),
            validation: f64::from(progress.best),
            multiply_adds: trainer.multiply_adds(),
            steps_per_second: (steps > 0.0).then(|| steps / begin.elapsed().as_secs_f64()),
        };
        Ok((trainer, report))
    }

    /// What makes two runs the same: settings, time, what is kept, and the data.
    fn checkpoints(&self, poses: &Recording, kept: Option<&FaceParts>) -> Checkpoints {
        let layers = kept.iter().flat_map(|twin| &twin.nets).flat_map(|net| &net.dense);
        let biases: Vec<u8> =
            layers.flat_map(|layer| &layer.bias).flat_map(|bias| bias.to_le_bytes()).collect();
        let settings = serde_json::to_string(&self.own.settings).unwrap_or_default();
        let minutes = format!("{:?}", self.own.minutes);
        self.run.checkpoints(poses, &[&biases, settings.as_bytes(), minutes.as_bytes()])
    }
}

/// The same twin must have the same bytes however fast the machine was.
fn timeless(mut details: serde_json::Value) -> BTreeMap<String, serde_json::Value> {
    for stage in ["coarse", "refinement", "normals"] {
        if let Some(stage) = details[stage].as_object_mut() {
            stage.remove("steps_per_second");
        }
    }
    let details = details.as_object_mut().map(std::mem::take);
    details.into_iter().flatten().collect()
}
