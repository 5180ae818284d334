//! Whole takes: all frames projected eight at a time on all cores, then solved; smoothing in time over the
//! whole take; head motion removed first. The weights do not depend on the number of threads.

use super::error::InverseError;
use super::kernels::{FRAMES, project_many};
use super::rigid::RigidSettings;
use super::settings::{InverseSettings, Method};
use super::smooth::{self, SmoothReport};
use super::solver::Solver;
use super::{InverseRig, SolveReport};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_core::Vec3;
use understudy_core::rotation::RigidMotion;

/// What belongs to a take rather than to a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TakeSettings {
    /// Start every frame from the one before. Faster curves, but the caveat of [`Solver::solve_from`]: shapes
    /// that exclude each other may stay on together, and one bad frame is felt by all that follow.
    pub warm_start: bool,
    /// `λ ≥ 0` of `½ λ Σ_t ‖w_{t−1} − 2w_t + w_{t+1}‖²`, cm²; 0 leaves frames independent.
    pub smooth: f64,
    /// At most so many sweeps of the smoothing over all curves.
    pub sweeps: usize,
    /// Removes the motion of the head first.
    pub rigid: Option<RigidSettings>,
}

impl Default for TakeSettings {
    fn default() -> Self {
        Self { warm_start: false, smooth: 0.0, sweeps: 20, rigid: None }
    }
}

/// A solved take.
#[derive(Debug, Clone, PartialEq)]
pub struct Take {
    /// `[F][m]`.
    pub weights: Vec<Vec<f64>>,
    /// How each frame's own solve went, before smoothing.
    pub reports: Vec<SolveReport>,
    /// Target to neutral head, one a frame; empty where it was not asked for.
    pub motions: Vec<RigidMotion>,
    /// How the smoothing went.
    pub smoothing: Option<SmoothReport>,
}

/// One frame between its solve and the smoothing.
pub(crate) struct SolvedFrame<'a> {
    pub(crate) weights: Vec<f64>,
    /// `c`, all of the solve's terms.
    pub(crate) projection: Vec<f64>,
    pub(crate) energy: f64,
    pub(crate) target: std::borrow::Cow<'a, [Vec3]>,
    /// Whether the frame has vertices that are missing.
    pub(crate) holes: bool,
    report: SolveReport,
    motion: Option<RigidMotion>,
}

impl InverseRig {
    /// Solves all frames, `[F][V]` cm.
    pub fn solve_take<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
        take: &TakeSettings,
    ) -> Result<Take, InverseError> {
        self.solve_take_watched(targets, settings, take, &|_| true)
    }

    /// [`Self::solve_take`]; `progress` hears how many frames are solved and says whether to go on.
    pub fn solve_take_watched<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
        take: &TakeSettings,
        progress: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Take, InverseError> {
        self.run_take(targets, settings, take, progress, |_| ())
    }

    /// [`Self::solve_take`] with a look at the joint cost after every step of the smoothing.
    #[cfg(test)]
    pub(crate) fn solve_take_inspected<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
        take: &TakeSettings,
        inspect: impl FnMut(&dyn Fn() -> f64),
    ) -> Result<Take, InverseError> {
        self.run_take(targets, settings, take, &|_| true, inspect)
    }

    fn run_take<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
        take: &TakeSettings,
        progress: &(dyn Fn(usize) -> bool + Sync),
        inspect: impl FnMut(&dyn Fn() -> f64),
    ) -> Result<Take, InverseError> {
        if !take.smooth.is_finite() || take.smooth < 0.0 {
            let want = "it must be finite and not negative";
            return Err(InverseError::Setting { name: "smooth", value: take.smooth.to_string(), want });
        }
        if take.smooth > 0.0 && !matches!(settings.method, Method::Quartic | Method::Linear) {
            let want = "smoothing in time needs quartic or linear";
            return Err(InverseError::Setting {
                name: "method",
                value: settings.method.title().into(),
                want,
            });
        }
        if let Some(rigid) = &take.rigid {
            rigid.check(self)?;
        }
        let solver = self.solver(settings)?;
        let done = AtomicUsize::new(0);
        let keep = take.smooth > 0.0;
        let chunk = |solver: &mut Solver, index: usize, previous: Option<&[f64]>| {
            let first = index * FRAMES;
            let frames = &targets[first..(first + FRAMES).min(targets.len())];
            let solved = self.solve_chunk(solver, frames, first, take, previous, keep)?;
            let count = done.fetch_add(frames.len(), Ordering::Relaxed) + frames.len();
            if progress(count) { Ok(solved) } else { Err(InverseError::Stopped) }
        };
        let chunks = targets.len().div_ceil(FRAMES);
        let mut frames: Vec<SolvedFrame<'_>> = Vec::with_capacity(targets.len());
        if take.warm_start {
            let mut solver = solver.clone();
            for index in 0..chunks {
                let previous = frames.last().map(|frame| frame.weights.clone());
                frames.extend(chunk(&mut solver, index, previous.as_deref())?);
            }
        } else {
            let solve = |solver: &mut Solver, index: usize| chunk(solver, index, None);
            let solved: Vec<_> = (0..chunks).into_par_iter().map_init(|| solver.clone(), solve).collect();
            for chunk in solved {
                frames.extend(chunk?);
            }
        }
        let smoothing = match keep {
            true => Some(smooth::run(&mut solver.clone(), &mut frames, take, inspect)?),
            false => None,
        };
        let motions = frames.iter().filter_map(|frame| frame.motion).collect();
        let (weights, reports) = frames.into_iter().map(|frame| (frame.weights, frame.report)).unzip();
        Ok(Take { weights, reports, motions, smoothing })
    }

    /// Up to eight frames, the `first` of them numbered so.
    fn solve_chunk<'t, T: AsRef<[Vec3]>>(
        &self,
        solver: &mut Solver,
        targets: &'t [T],
        first: usize,
        take: &TakeSettings,
        previous: Option<&[f64]>,
        keep: bool,
    ) -> Result<Vec<SolvedFrame<'t>>, InverseError> {
        // What a chunk gives must not hang on the chunks that this thread happened to solve before.
        solver.forget_holes();
        let mut start: Option<Vec<f64>> = previous.map(<[f64]>::to_vec);
        let together = take.rigid.is_none() && self.are_whole(targets, first)?;
        let mut columns = Vec::new();
        if together {
            let list: Vec<&[Vec3]> = targets.iter().map(AsRef::as_ref).collect();
            columns = vec![[0.0; FRAMES]; solver.term_count()];
            let (shapes, neutral) = (&self.tables.shapes, self.neutral());
            project_many(shapes, neutral, self.vertex_weights(), &list, &mut columns);
        }
        let mut frames = Vec::with_capacity(targets.len());
        for (place, target) in targets.iter().enumerate() {
            let target = target.as_ref();
            let frame = first + place;
            solver.set_frame(frame as u64);
            let begin = if take.warm_start { start.as_deref() } else { None };
            let mut aligned: std::borrow::Cow<'t, [Vec3]> = target.into();
            let mut motion = None;
            let in_frame = |error: InverseError| error.in_frame(frame);
            let report = if together {
                let projection: Vec<f64> = columns.iter().map(|row| row[place]).collect();
                solver.see(target).map_err(in_frame)?;
                let energy = solver.energy(target);
                let report = solver.solve_projected(&projection, energy, target, begin, |_| ());
                solver.keep_projection(projection);
                report
            } else {
                if let Some(rigid) = &take.rigid {
                    let mut moved = Vec::new();
                    motion = Some(rigid.align(solver, target, &mut moved).map_err(in_frame)?.0);
                    aligned = moved.into();
                }
                solver.set_frame(frame as u64);
                solver.solve_watched(&aligned, begin, |_| ()).map_err(in_frame)?
            };
            if take.warm_start {
                start = Some(solver.weights().to_vec());
            }
            frames.push(SolvedFrame {
                weights: solver.weights().to_vec(),
                projection: if keep { solver.projection().to_vec() } else { Vec::new() },
                energy: if keep { solver.energy(&aligned) } else { 0.0 },
                holes: !together && self.has_holes(&aligned),
                target: if keep { aligned } else { (&[][..]).into() },
                report,
                motion,
            });
        }
        Ok(frames)
    }

    /// Whether every vertex that counts is finite in every frame. Counts are checked here.
    fn are_whole<T: AsRef<[Vec3]>>(&self, targets: &[T], first: usize) -> Result<bool, InverseError> {
        let mut whole = true;
        for (place, target) in targets.iter().enumerate() {
            let (got, want) = (target.as_ref().len(), self.vertex_count());
            if got != want {
                return Err(InverseError::VertexCount { got, want }.in_frame(first + place));
            }
            whole &= !self.has_holes(target.as_ref());
        }
        Ok(whole)
    }

    fn has_holes(&self, target: &[Vec3]) -> bool {
        target.iter().zip(self.vertex_weights()).any(|(vertex, weight)| *weight > 0.0 && !vertex.is_finite())
    }
}
