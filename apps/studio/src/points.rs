//! Points of a face on the rig itself. The page solves a drag through a twin; where the rig is what is seen, [`RigDrag`] takes the
//! twin's controls on to where the rig's own vertices are under the cursor: damped Gauss–Newton steps
//!
//! `Δp = S (S Jᵀ W² J S + μ 1)⁻¹ S Jᵀ W² e`, `e = V̄ − V(p)`
//!
//! with `S` the ranges of the controls and `W` what a point counts, as in `runtime::ik`. A rig has no derivatives: columns of `J`
//! are differences, measured once per drag, and every evaluation after that corrects them (Broyden 1965). Every place of the cursor
//! is solved from the twin's controls for it, so that going back gives the first pose again.

use crate::error::Refusal;
use serde::Deserialize;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Controls, DVec3, Vec3};
use understudy_rigs::{Rig, RigPose};

/// What a point counts that nobody holds, and what of an offset counts along the line of sight: as when a twin is dragged.
const LOOSE: f64 = 0.1;
const ALONG_SIGHT: f64 = 0.05;
/// Points that are so near need no step, cm.
const ENOUGH_CM: f64 = 0.003;
/// Damping of the first step, cm²: how far points may stay off where controls would go through their whole range.
const DAMPING: f64 = 1e-4;
/// Evaluations of the rig per place of the cursor, beside those that measure derivatives.
const MOST_EVALUATIONS: usize = 12;
/// How long derivatives may take, about: a rig that answers slowly has those measured that matter most.
const PATIENCE: Duration = Duration::from_millis(700);
/// Of at least so many controls.
const LEAST_CONTROLS: usize = 8;
/// What a difference moves a control by, a share of its range.
const DIFFERENCE: f32 = 0.02;
/// Points that a page may name: a face has 54.
const MOST_POINTS: usize = 1000;

/// A point of the face that is dragged.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    pub vertex: usize,
    /// Where it shall be, cm.
    pub place: [f32; 3],
    /// The direction in which it is looked at; zero where depth counts as much as the rest.
    pub sight: [f32; 3],
}

/// One place of the cursor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// The pose in which the drag began.
    pub start: Vec<f32>,
    /// What the twin says.
    pub controls: Vec<f32>,
    /// Which controls may be moved: those of the regions that are dragged.
    pub free: Vec<usize>,
    #[serde(rename = "move")]
    pub moved: Vec<Move>,
    /// Vertices that stay firmly where they were.
    #[serde(default)]
    pub pinned: Vec<usize>,
    /// Vertices that stay about there.
    #[serde(default)]
    pub loose: Vec<usize>,
}

/// A drag: what is known of the rig about the pose in which it began.
pub(crate) struct RigDrag {
    start: Vec<f32>,
    /// The points that are watched, and where they were.
    vertices: Vec<usize>,
    places: Vec<DVec3>,
    /// Controls that may move, and for each how far the points go while it goes through its range.
    free: Vec<usize>,
    slopes: Vec<Vec<DVec3>>,
    pose: RigPose,
}

/// A point as it is looked at.
struct Goal {
    place: DVec3,
    weight: f64,
    sight: DVec3,
}

impl Goal {
    /// What counts of an offset.
    fn weighed(&self, off: DVec3) -> DVec3 {
        self.weight * (off - (1.0 - ALONG_SIGHT) * self.sight * self.sight.dot(off))
    }

    fn seen(&self, off: DVec3) -> DVec3 {
        off - self.sight * self.sight.dot(off)
    }
}

impl RigDrag {
    /// Whether a wish belongs to this drag.
    pub fn is_of(&self, wish: &Wish) -> bool {
        self.start == wish.start
            && self.vertices == watched(wish)
            && wish.free.iter().all(|control| self.free.contains(control))
    }

    /// Looks at the pose in which the drag begins, and how the rig moves where the twin took it.
    pub fn begin(rig: &dyn Rig, wish: &Wish) -> Result<Self, Refusal> {
        let vertices = watched(wish);
        let (count, controls) = (rig.mesh().vertex_count(), rig.specs().len());
        if vertices.len() > MOST_POINTS {
            return Err(Refusal::bad(format!("{} points; {MOST_POINTS} are possible", vertices.len())));
        }
        if let Some(vertex) = vertices.iter().find(|vertex| **vertex >= count) {
            return Err(Refusal::bad(format!("there is no vertex {vertex}; the mesh has {count}")));
        }
        if let Some(control) = wish.free.iter().find(|control| **control >= controls) {
            return Err(Refusal::bad(format!("there is no control {control}; the rig has {controls}")));
        }
        let mut drag = Self {
            start: wish.start.clone(),
            vertices,
            places: Vec::new(),
            free: wish.free.clone(),
            slopes: Vec::new(),
            pose: RigPose::default(),
        };
        drag.free.sort_unstable();
        drag.free.dedup();
        drag.free.retain(|control| {
            let (low, high) = range(rig, *control);
            (high - low).is_finite() && high > low
        });
        drag.places = drag.evaluate(rig, &wish.start)?;
        let before = Instant::now();
        drag.evaluate(rig, &wish.controls)?;
        drag.keep_most(rig, wish, before.elapsed());
        drag.measure(rig, &wish.controls)?;
        Ok(drag)
    }

    /// Keeps as many controls as can be measured in time: those that the twin moved most.
    fn keep_most(&mut self, rig: &dyn Rig, wish: &Wish, each: Duration) {
        let at_once = threads() as f64;
        let most = PATIENCE.as_secs_f64() * at_once / each.as_secs_f64().max(1e-9);
        if (self.free.len() as f64) <= most {
            return;
        }
        let moved = |control: &usize| {
            let spec = rig.specs().get(*control);
            (wish.controls[*control] - wish.start[*control]).abs() / (spec.high - spec.low)
        };
        self.free.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
        self.free.truncate((most as usize).max(LEAST_CONTROLS));
    }

    fn evaluate(&mut self, rig: &dyn Rig, controls: &[f32]) -> Result<Vec<DVec3>, Refusal> {
        places(rig, controls, &self.vertices, &mut self.pose)
    }

    /// How the points move with every free control, by differences towards the inside of its range.
    fn measure(&mut self, rig: &dyn Rig, at: &[f32]) -> Result<(), Refusal> {
        let here = self.evaluate(rig, at)?;
        let (vertices, share) = (&self.vertices, self.free.len().div_ceil(threads()).max(1));
        let column = |control: usize, pose: &mut RigPose| {
            let (low, high) = range(rig, control);
            let step = DIFFERENCE * (high - low);
            let mut moved = at.to_vec();
            moved[control] += if at[control] + step <= high { step } else { -step };
            let done = f64::from(moved[control] - at[control]) / f64::from(high - low);
            let there = places(rig, &moved, vertices, pose)?;
            let slope = |(there, here): (&DVec3, &DVec3)| match done == 0.0 {
                true => DVec3::ZERO,
                false => (*there - *here) / done,
            };
            Ok(there.iter().zip(&here).map(slope).collect())
        };
        let work = |own: &[usize]| {
            let mut pose = RigPose::default();
            own.iter().map(|control| column(*control, &mut pose)).collect()
        };
        let columns: Vec<Result<Vec<Vec<DVec3>>, Refusal>> = std::thread::scope(|scope| {
            let work = &work;
            let running: Vec<_> = self.free.chunks(share).map(|own| scope.spawn(move || work(own))).collect();
            running
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        let columns: Vec<_> = columns.into_iter().collect::<Result<_, _>>()?;
        self.slopes = columns.into_iter().flatten().collect();
        Ok(())
    }

    /// The controls that bring the rig's points to their places, and how far the dragged ones are off across the line of
    /// sight, mm.
    pub fn solve(&mut self, rig: &dyn Rig, wish: &Wish) -> Result<(Vec<f32>, Vec<f64>), Refusal> {
        let finite = |moved: &Move| moved.place.iter().chain(&moved.sight).all(|x| x.is_finite());
        if let Some(moved) = wish.moved.iter().find(|moved| !finite(moved)) {
            return Err(Refusal::bad(format!("vertex {} shall go where nothing is", moved.vertex)));
        }
        let goals = self.goals(wish);
        let mut controls = wish.controls.clone();
        let mut now = self.evaluate(rig, &controls)?;
        let cost = |places: &[DVec3]| -> f64 {
            let square = |(goal, place): (&Goal, &DVec3)| goal.weighed(goal.place - *place).length_squared();
            goals.iter().zip(places).map(square).sum()
        };
        let (mut damping, mut fresh, mut left) = (DAMPING, false, MOST_EVALUATIONS);
        while left > 0 && !done(&goals, &now) {
            let Some(step) = self.step(rig, &goals, &now, &controls, damping) else { break };
            let mut tried = controls.clone();
            step.iter().for_each(|(control, by)| {
                let (low, high) = range(rig, *control);
                // What was out of its range stays where it was, or comes nearer.
                let here = controls[*control];
                tried[*control] = (here + *by).clamp(low.min(here), high.max(here));
            });
            let there = self.evaluate(rig, &tried)?;
            left -= 1;
            let (before, after) = (cost(&now), cost(&there));
            self.learn(rig, &controls, &tried, &now, &there);
            if after < before {
                (controls, now) = (tried, there);
                damping = (damping * 0.3).max(DAMPING * 0.01);
                // Who holds still far from the goal is at the end of what the rig can do.
                if after > before * 0.999 {
                    break;
                }
            } else if !fresh {
                // Differences of another pose are no help here.
                self.measure(rig, &controls)?;
                fresh = true;
            } else {
                damping *= 10.0;
            }
        }
        let off = wish.moved.iter().map(|moved| {
            let place = self.vertices.iter().position(|vertex| *vertex == moved.vertex);
            place.map_or(0.0, |place| goals[place].seen(goals[place].place - now[place]).length() * 10.0)
        });
        Ok((controls, off.collect()))
    }

    fn goals(&self, wish: &Wish) -> Vec<Goal> {
        let goal = |(vertex, place): (&usize, &DVec3)| match wish.moved.iter().find(|m| m.vertex == *vertex) {
            Some(moved) => {
                let (place, sight) = (Vec3::from_array(moved.place), Vec3::from_array(moved.sight));
                Goal { place: place.as_dvec3(), weight: 1.0, sight: sight.as_dvec3().normalize_or_zero() }
            }
            None => {
                let weight = if wish.pinned.contains(vertex) { 1.0 } else { LOOSE };
                Goal { place: *place, weight, sight: DVec3::ZERO }
            }
        };
        self.vertices.iter().zip(&self.places).map(goal).collect()
    }

    /// One step from here: a change per free control that is not held by the end of its range.
    fn step(
        &self,
        rig: &dyn Rig,
        goals: &[Goal],
        now: &[DVec3],
        controls: &[f32],
        damping: f64,
    ) -> Option<Vec<(usize, f32)>> {
        let off: Vec<DVec3> =
            goals.iter().zip(now).map(|(goal, now)| goal.weighed(goal.place - *now)).collect();
        let all: Vec<Vec<DVec3>> = self
            .slopes
            .iter()
            .map(|slopes| goals.iter().zip(slopes).map(|(goal, slope)| goal.weighed(*slope)).collect())
            .collect();
        let dot = |a: &[DVec3], b: &[DVec3]| -> f64 { a.iter().zip(b).map(|(a, b)| a.dot(*b)).sum() };
        let mut open: Vec<usize> = (0..self.free.len()).collect();
        // What would leave its range is held, and the others solved again.
        loop {
            let n = open.len();
            if n == 0 {
                return None;
            }
            let mut matrix = vec![0.0; n * n];
            for (i, a) in open.iter().enumerate() {
                for (j, b) in open[..=i].iter().enumerate() {
                    matrix[i * n + j] = dot(&all[*a], &all[*b]);
                }
                matrix[i * n + i] += damping;
            }
            let mut step: Vec<f64> = open.iter().map(|a| dot(&all[*a], &off)).collect();
            Cholesky::new(&matrix, n)?.solve(&mut step, 1);
            let span = |place: usize| {
                let (low, high) = range(rig, self.free[place]);
                (controls[self.free[place]], low, high)
            };
            let stays = |(place, share): (&usize, &f64)| {
                let (here, low, high) = span(*place);
                !((here <= low && *share < 0.0) || (here >= high && *share > 0.0))
            };
            let kept: Vec<usize> =
                open.iter().zip(&step).filter(|pair| stays(*pair)).map(|(place, _)| *place).collect();
            if kept.len() == n {
                let change = |(place, share): (&usize, &f64)| {
                    let (_, low, high) = span(*place);
                    (self.free[*place], (f64::from(high - low) * share) as f32)
                };
                return Some(open.iter().zip(&step).map(change).collect());
            }
            open = kept;
        }
    }

    /// Corrects the derivatives by what a step did: `J ← J + (Δy − J Δp) Δpᵀ / |Δp|²`.
    fn learn(&mut self, rig: &dyn Rig, from: &[f32], to: &[f32], before: &[DVec3], after: &[DVec3]) {
        let share = |control: &usize| {
            let (low, high) = range(rig, *control);
            f64::from(to[*control] - from[*control]) / f64::from(high - low)
        };
        let shares: Vec<f64> = self.free.iter().map(share).collect();
        let square: f64 = shares.iter().map(|share| share * share).sum();
        // Noise of single precision says nothing.
        if square < 1e-8 {
            return;
        }
        for point in 0..self.vertices.len() {
            let said: DVec3 =
                self.slopes.iter().zip(&shares).map(|(slope, share)| slope[point] * *share).sum();
            let missed = (after[point] - before[point] - said) / square;
            self.slopes.iter_mut().zip(&shares).for_each(|(slope, share)| slope[point] += missed * *share);
        }
    }
}

/// Whether everything that is held is where it shall be.
fn done(goals: &[Goal], now: &[DVec3]) -> bool {
    let held = goals.iter().zip(now).filter(|(goal, _)| goal.weight == 1.0);
    held.into_iter().all(|(goal, now)| goal.seen(goal.place - *now).length() <= ENOUGH_CM)
}

/// The vertices that a wish is about, each once.
fn watched(wish: &Wish) -> Vec<usize> {
    let moved = wish.moved.iter().map(|moved| &moved.vertex);
    let mut all: Vec<usize> = moved.chain(&wish.pinned).chain(&wish.loose).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn places(
    rig: &dyn Rig,
    controls: &[f32],
    vertices: &[usize],
    pose: &mut RigPose,
) -> Result<Vec<DVec3>, Refusal> {
    let controls = Controls(controls.to_vec());
    rig.specs().check(&controls).map_err(|error| Refusal::bad(error.to_string()))?;
    rig.evaluate(&controls, pose).map_err(|error| Refusal::bad(error.to_string()))?;
    Ok(vertices.iter().map(|vertex| pose.vertices[*vertex].as_dvec3()).collect())
}

fn range(rig: &dyn Rig, control: usize) -> (f32, f32) {
    let spec = rig.specs().get(control);
    (spec.low, spec.high)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8)
}
