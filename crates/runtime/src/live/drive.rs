//! A performance on a character: controls that have the name of a score take it, the head's own controls its turn, and where a twin
//! knows points of its face, they follow the actor's points by inverse kinematics. What turns head and eyes stays out of
//! that: the points are those of a head that rests.

use super::follow::{FollowSettings, Follower, Observation, Performance};
use super::geometry::FaceGeometry;
use super::retarget::Retarget;
use crate::PoseError;
use crate::ik::{Correction, PointIk, PointSolver};
use std::sync::Arc;
use thiserror::Error;
use understudy_core::{Channel, ControlKind, ControlSpecs, Vec3, arkit};

/// How much a point counts that follows no landmark.
const PINNED: f32 = 0.1;

/// Why a character cannot be driven.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DriveError {
    /// Neither scores nor points move it.
    #[error("no control has the name of an ARKit shape, and no twin with points is given")]
    Nothing,
    /// Its points are not those of a face.
    #[error("{0}")]
    Points(String),
    /// The twin's controls are others.
    #[error("the twin has {twin} controls, the rig {rig}")]
    Controls {
        /// Of the twin.
        twin: usize,
        /// Of the rig.
        rig: usize,
    },
}

/// What drives a control by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByName {
    Nothing,
    /// A shape of [`arkit::SHAPES`].
    Shape(usize),
    /// Yaw, pitch or roll of the head.
    Head(usize),
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Driven {
    /// How far the points are from where the actor's are, in the mean, mm: by inverse kinematics, and by scores alone.
    pub points_mm: Option<[f32; 2]>,
}

/// Drives one character by one actor. Nothing is allocated per frame once the first has come.
pub struct Driver {
    follower: Follower,
    by_name: Vec<ByName>,
    ranges: Vec<(f32, f32, f32)>,
    points: Option<Points>,
    /// How points are corrected.
    pub correction: Correction,
}

struct Points {
    solver: PointSolver,
    retarget: Retarget,
    targets: Vec<Vec3>,
    places: Vec<Vec3>,
    solved: Vec<f32>,
    scores: Vec<f32>,
    /// Which controls the points give.
    given: Vec<bool>,
}

impl Driver {
    /// For a character's controls; `ik` where a twin of it knows points.
    pub fn new(
        specs: &ControlSpecs,
        geometry: FaceGeometry,
        ik: Option<Arc<PointIk>>,
        settings: FollowSettings,
    ) -> Result<Self, DriveError> {
        let by_name: Vec<ByName> = specs.iter().map(by_name).collect();
        let points = ik.map(|ik| Points::new(ik, specs, &by_name)).transpose()?;
        if points.is_none() && !by_name.iter().any(|by| matches!(by, ByName::Shape(_))) {
            return Err(DriveError::Nothing);
        }
        Ok(Self {
            follower: Follower::new(geometry, settings),
            ranges: specs.iter().map(|spec| (spec.low, spec.high, spec.default)).collect(),
            by_name,
            points,
            // Another face can never be matched exactly: controls stay calm where a last millimetre would cost much.
            correction: Correction { steps: 3, damping: 2e-3, ..Correction::default() },
        })
    }

    /// Who is followed.
    pub fn follower(&self) -> &Follower {
        &self.follower
    }

    /// Controls that follow a score by its name.
    pub fn named(&self) -> usize {
        self.by_name.iter().filter(|by| matches!(by, ByName::Shape(_))).count()
    }

    /// Points that follow a landmark.
    pub fn points(&self) -> usize {
        self.points.as_ref().map_or(0, |points| points.retarget.known().filter(|known| *known).count())
    }

    /// Size of the character's face to the canonical one, once the actor's rest is known.
    pub fn scale(&self) -> Option<f64> {
        let points = self.points.as_ref()?;
        self.follower.rest().map(|_| points.retarget.scale())
    }

    /// Takes what is seen as the actor at rest; `false` where it cannot be used.
    pub fn set_rest(&mut self, seen: &Observation) -> bool {
        if !self.follower.set_rest(seen) {
            return false;
        }
        let (Some(points), Some(rest)) = (&mut self.points, self.follower.rest()) else { return true };
        points.retarget.set_rest(rest)
    }

    /// The next frame, `seconds` after the last; nothing seen is `None`. `controls`: all of the character's.
    pub fn drive(
        &mut self,
        seen: Option<&Observation>,
        seconds: f32,
        controls: &mut [f32],
    ) -> Result<Driven, PoseError> {
        crate::error::check_count("controls", controls.len(), self.by_name.len())?;
        let first = self.follower.rest().is_none();
        self.follower.follow(seen, seconds);
        if let (true, Some(points), Some(rest)) = (first, &mut self.points, self.follower.rest()) {
            points.retarget.set_rest(rest);
        }
        let now = self.follower.now();
        for ((control, by), (low, high, default)) in controls.iter_mut().zip(&self.by_name).zip(&self.ranges)
        {
            let value = match by {
                ByName::Nothing => *default,
                // A score is a share of the way from rest to the far end.
                ByName::Shape(shape) => {
                    let score = now.shapes.get(*shape).copied().unwrap_or(0.0);
                    default + score * (high - default)
                }
                ByName::Head(axis) => default + now.head[*axis],
            };
            *control = value.clamp(*low, *high);
        }
        match &mut self.points {
            Some(points) if !now.local.is_empty() => points.solve(now, &self.correction, controls),
            _ => Ok(Driven::default()),
        }
    }

    /// What was seen of the actor last.
    pub fn performance(&self) -> &Performance {
        self.follower.now()
    }
}

fn by_name(spec: &understudy_core::ControlSpec) -> ByName {
    match &spec.kind {
        ControlKind::Number => {
            let shape =
                arkit::canonical(&spec.name).or_else(|| arkit::half_of(&spec.name).map(|(shape, _)| shape));
            let place = shape.and_then(|shape| arkit::SHAPES.iter().position(|other| *other == shape));
            place.map_or(ByName::Nothing, ByName::Shape)
        }
        ControlKind::Joint { bone, channel } => {
            let axis = match channel {
                Channel::RotateY => Some(0),
                Channel::RotateX => Some(1),
                Channel::RotateZ => Some(2),
                _ => None,
            };
            let head = bone.rsplit(':').next().is_some_and(|name| name.eq_ignore_ascii_case("head"));
            axis.filter(|_| head).map_or(ByName::Nothing, ByName::Head)
        }
    }
}

impl Points {
    fn new(ik: Arc<PointIk>, specs: &ControlSpecs, by_name: &[ByName]) -> Result<Self, DriveError> {
        let retarget = Retarget::new(ik.points(), ik.rest()).map_err(DriveError::Points)?;
        let mut solver = ik.solver();
        if solver.control_count() != by_name.len() {
            return Err(DriveError::Controls { twin: solver.control_count(), rig: by_name.len() });
        }
        let weights: Vec<f32> = retarget.known().map(|known| if known { 1.0 } else { PINNED }).collect();
        solver.weigh(&weights).expect("a finite weight per point");
        // Head, neck and eyes have sources of their own.
        let held: Vec<usize> = (specs.iter().zip(by_name).enumerate())
            .filter(|(_, (spec, by))| match (&spec.kind, by) {
                (_, ByName::Head(_)) => true,
                (_, ByName::Shape(shape)) => arkit::SHAPES[*shape].starts_with("eyeLook"),
                (ControlKind::Joint { bone, .. }, _) => {
                    let bone = bone.to_lowercase();
                    ["head", "neck", "root", "spine"].iter().any(|part| bone.contains(part))
                }
                (ControlKind::Number, _) => {
                    let name = spec.name.to_lowercase();
                    name.starts_with("head") || name.starts_with("neck")
                }
            })
            .map(|(index, _)| index)
            .collect();
        solver.hold(&held);
        let mut given: Vec<bool> = solver.ranges().iter().map(Option::is_some).collect();
        held.iter().for_each(|control| given[*control] = false);
        let count = ik.points().len();
        Ok(Self {
            retarget,
            targets: vec![Vec3::ZERO; count],
            places: vec![Vec3::ZERO; count],
            solved: vec![0.0; by_name.len()],
            scores: vec![0.0; by_name.len()],
            given,
            solver,
        })
    }

    /// Replaces the controls that points give.
    fn solve(
        &mut self,
        now: &Performance,
        how: &Correction,
        controls: &mut [f32],
    ) -> Result<Driven, PoseError> {
        if !self.retarget.targets(&now.local, &mut self.targets) {
            return Ok(Driven::default());
        }
        self.solver.solve(&self.targets, &mut self.solved)?;
        self.solver.correct(&self.targets, &[], how, &mut self.solved)?;
        // The same by scores alone, in the same head.
        self.scores.copy_from_slice(controls);
        self.solver.held().for_each(|(control, rest)| self.scores[control] = rest);
        let mut off = [0.0; 2];
        for (controls, off) in [&self.solved, &self.scores].into_iter().zip(&mut off) {
            self.solver.points(controls, &mut self.places)?;
            *off = distance(&self.places, &self.targets, &self.retarget, self.solver.ik().dimensions());
        }
        for ((control, solved), given) in controls.iter_mut().zip(&self.solved).zip(&self.given) {
            if *given {
                *control = *solved;
            }
        }
        Ok(Driven { points_mm: Some(off) })
    }
}

/// Mean distance of the points that follow a landmark from their targets, mm.
fn distance(places: &[Vec3], targets: &[Vec3], retarget: &Retarget, dimensions: usize) -> f32 {
    let (mut sum, mut count) = (0.0, 0);
    for ((place, target), known) in places.iter().zip(targets).zip(retarget.known()) {
        if known {
            let off = *place - *target;
            sum += if dimensions == 2 { off.truncate().length() } else { off.length() };
            count += 1;
        }
    }
    10.0 * sum / count.max(1) as f32
}
