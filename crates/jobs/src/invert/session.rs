//! A rig and a take held ready for solving again and again, as somebody moves α: what [`super::invert`] does for a
//! command, without files. Start at [`Session::open`].

use super::failure::Failure;
use super::targets::Targets;
use super::{InvertConfig, shapes_of, solve};
use crate::{JobError, Watch, clips, threads};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use understudy_core::{BlendshapeRig, Vec3};
use understudy_rigs::Rig;
use understudy_solve::inverse_rig::metrics::{FrameMetrics, TakeMetrics, measure};
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{InverseRig, InverseSettings, Solver};

/// What is solved, with the tables of its rig.
pub struct Session {
    name: String,
    shapes: BlendshapeRig,
    inverse: InverseRig,
    targets: Targets,
    pool: rayon::ThreadPool,
    /// The last settings with a solver for them.
    solver: Mutex<Option<(InverseSettings, Solver)>>,
}

/// A take, solved.
pub struct SolvedTake {
    /// `[F][m]`.
    pub weights: Vec<Vec<f64>>,
    /// Errors against the targets, over the take.
    pub metrics: TakeMetrics,
    /// The same, frame by frame.
    pub frames: Vec<FrameMetrics>,
}

impl Session {
    /// Reads targets for a rig: files as `invert` reads them.
    pub fn open(
        name: &str,
        rig: Arc<dyn Rig>,
        targets: &[PathBuf],
        watch: &dyn Watch,
    ) -> Result<Self, JobError> {
        let config = InvertConfig { rig: name.into(), targets: targets.to_vec(), ..InvertConfig::default() };
        if targets.is_empty() {
            return Err(JobError::setting("targets", "there are none"));
        }
        let shapes = shapes_of(rig.as_ref(), watch)?;
        let targets = Targets::read(&config, shapes.neutral().len(), watch)?;
        Self::new(name, shapes, targets)
    }

    /// Takes what the shapes alone make of one of the rig's own clips: a take whose weights are known.
    pub fn of_clip(name: &str, rig: Arc<dyn Rig>, clip: &str, watch: &dyn Watch) -> Result<Self, JobError> {
        let shapes = shapes_of(rig.as_ref(), watch)?;
        let clip = clips::resolve(rig.as_ref(), clip, watch)?;
        let rate = clip.own_rate();
        let sampled = clip.sample(rig.specs(), rate).map_err(|error| JobError::setting("rate", error))?;
        let columns: Vec<Option<usize>> =
            shapes.shapes().iter().map(|shape| rig.specs().find(&shape.name)).collect();
        let frame = |controls: &understudy_core::Controls| {
            let weight = |column: &Option<usize>| column.map_or(0.0, |c| controls.0[c].clamp(0.0, 1.0));
            let weights: Vec<f32> = columns.iter().map(weight).collect();
            let mut vertices = vec![Vec3::ZERO; shapes.neutral().len()];
            shapes.evaluate(&weights, &mut vertices);
            vertices
        };
        let frames = sampled.frames.iter().map(frame).collect();
        Self::new(name, shapes, Targets::of_frames(frames, rate, PathBuf::from(&clip.name)))
    }

    fn new(name: &str, shapes: BlendshapeRig, targets: Targets) -> Result<Self, JobError> {
        let pool = threads::pool(threads::available())?;
        let failure = Failure { rig: name, targets: &targets };
        let prepared = pool.install(|| InverseRig::prepare(&shapes)).map_err(|error| failure.of(error));
        Ok(Self { name: name.into(), inverse: prepared?, shapes, targets, pool, solver: Mutex::new(None) })
    }

    /// The shapes that weights belong to.
    pub fn shapes(&self) -> &BlendshapeRig {
        &self.shapes
    }

    /// Frames of the take.
    pub fn frame_count(&self) -> usize {
        self.targets.frames.len()
    }

    /// Frames a second, where a file says.
    pub fn rate(&self) -> Option<f32> {
        self.targets.rate
    }

    /// A frame of the take, `[V]` cm; `None` past its end.
    pub fn target(&self, frame: usize) -> Option<&[Vec3]> {
        self.targets.frames.get(frame).map(Vec::as_slice)
    }

    /// Solves one frame alone: its weights, `[m]`.
    pub fn solve_frame(&self, frame: usize, settings: &InverseSettings) -> Result<Vec<f64>, JobError> {
        let failure = Failure { rig: &self.name, targets: &self.targets };
        let Some(target) = self.targets.frames.get(frame) else {
            let problem =
                format!("{frame} is past the last, {}", self.targets.frames.len().saturating_sub(1));
            return Err(JobError::setting("frame", problem));
        };
        let mut kept = self.solver.lock().unwrap_or_else(PoisonError::into_inner);
        let solver = match kept.take().filter(|(known, _)| known == settings) {
            Some((_, solver)) => solver,
            None => self.inverse.solver(settings).map_err(|error| failure.of(error))?,
        };
        let (_, solver) = kept.insert((settings.clone(), solver));
        solver.set_frame(frame as u64);
        solver.solve(target).map_err(|error| failure.of(error.in_frame(frame)))?;
        Ok(solver.weights().to_vec())
    }

    /// Solves the whole take, as `invert` does.
    pub fn solve_take(
        &self,
        settings: &InverseSettings,
        take: &TakeSettings,
        watch: &dyn Watch,
    ) -> Result<SolvedTake, JobError> {
        let failure = Failure { rig: &self.name, targets: &self.targets };
        let solved = solve(&self.pool, &self.inverse, &self.targets.frames, settings, take, watch)
            .map_err(|error| failure.of(error))?;
        let mut clean = self.targets.frames.clone();
        for (frame, motion) in clean.iter_mut().zip(&solved.motions) {
            frame.iter_mut().for_each(|vertex| *vertex = motion.apply(*vertex));
        }
        let measured = self.pool.install(|| measure(self.shapes(), &solved.weights, &clean));
        let (metrics, frames) = measured.map_err(|error| failure.of(error))?;
        Ok(SolvedTake { weights: solved.weights, metrics, frames })
    }
}
