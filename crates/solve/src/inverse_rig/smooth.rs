//! Smoothing in time over a whole take: the frames' costs plus `½ λ Σ_t ‖w_{t−1} − 2w_t + w_{t+1}‖²`.
//!
//! Block coordinate descent, one shape's whole curve at a time: with the other shapes fixed the cost of a
//! curve `x` is `Σ ½a_t x_t² − r_t x_t + ½λ‖D x‖²` in a box, a banded convex problem that
//! [`super::curve`] solves exactly, so every step lowers the joint cost whatever `λ` is. Tied pairs and
//! frames with holes go point by point, which lowers it too but takes more sweeps for a large `λ`.

use super::curve::{Curve, second_difference_diagonal, second_difference_gradient};
use super::descent::Descent;
use super::error::InverseError;
use super::solver::Solver;
use super::take::{SolvedFrame, TakeSettings};
use rayon::prelude::*;
use serde::Serialize;

/// How a smoothing went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SmoothReport {
    /// Sweeps over all curves.
    pub sweeps: usize,
    /// Whether it ended because nothing moved any more.
    pub converged: bool,
    /// The joint cost before, cm².
    pub objective_before: f64,
    /// And after.
    pub objective_after: f64,
}

/// A weight that moves less than this in a sweep stands still.
const STILL: f64 = 1e-5;

/// The take as the smoothing sees it.
struct Joint<'s> {
    solver: &'s mut Solver,
    states: Vec<Descent>,
    smooth: f64,
}

/// Smooths the frames' weights. `watch` may ask for the joint cost after every step.
pub(crate) fn run(
    solver: &mut Solver,
    frames: &mut [SolvedFrame<'_>],
    settings: &TakeSettings,
    mut watch: impl FnMut(&dyn Fn() -> f64),
) -> Result<SmoothReport, InverseError> {
    solver.forget_holes();
    let any_holes = frames.iter().any(|frame| frame.holes);
    let mut states = Vec::with_capacity(frames.len());
    for (index, frame) in frames.iter().enumerate() {
        solver.see(&frame.target).map_err(|error| error.in_frame(index))?;
        states.push(solver.state_at(&frame.weights, &frame.projection, frame.energy));
    }
    let mut joint = Joint { solver, states, smooth: settings.smooth };
    let objective_before = joint.objective();
    watch(&|| objective_before);
    let mut report =
        SmoothReport { sweeps: 0, converged: false, objective_before, objective_after: objective_before };
    while report.sweeps < settings.sweeps && !report.converged {
        let moved = match any_holes {
            true => joint.sweep_frames(frames, report.sweeps % 2 == 1, &mut watch)?,
            false => joint.sweep_curves(&mut watch),
        };
        report.sweeps += 1;
        report.converged = moved <= STILL;
    }
    report.objective_after = joint.objective();
    for (frame, state) in frames.iter_mut().zip(joint.states) {
        frame.weights = state.weights;
    }
    Ok(report)
}

impl Joint<'_> {
    fn objective(&self) -> f64 {
        let frames: f64 = self.states.iter().map(|state| state.objective).sum();
        let shapes = self.states.first().map_or(0, |state| state.weights.len());
        let rough: f64 = (0..shapes)
            .flat_map(|shape| self.states.windows(3).map(move |w| [0, 1, 2].map(|t| w[t].weights[shape])))
            .map(|w| (w[0] - 2.0 * w[1] + w[2]).powi(2))
            .sum();
        frames + 0.5 * self.smooth * rough
    }

    /// Every curve once, largest shape first. Gives the largest move of any weight.
    fn sweep_curves(&mut self, watch: &mut impl FnMut(&dyn Fn() -> f64)) -> f64 {
        let order = self.solver.plan().by_norm.clone();
        let mut largest = 0.0f64;
        for shape in order {
            let shape = shape as usize;
            largest = largest.max(match self.solver.plan().tied(shape) {
                Some(other) if other < shape => continue,
                Some(_) => {
                    (0..self.states.len()).fold(0.0, |most: f64, t| most.max(self.move_point(shape, t)))
                }
                None => self.move_curve(shape),
            });
            watch(&|| self.objective());
        }
        largest
    }

    /// Moves one curve to its best place.
    fn move_curve(&mut self, shape: usize) -> f64 {
        let model = self.solver.model();
        let probe = |state: &mut Descent| {
            let here = state.weights[shape];
            let (slope, curvature) = state.slope_and_curvature(&model, shape);
            let rival = model.plan.rivals(shape).any(|rival| state.weights[rival] != 0.0);
            let upper = if rival { here } else { model.plan.upper };
            (here, slope, curvature, upper)
        };
        let points: Vec<_> = self.states.par_iter_mut().with_min_len(16).map(probe).collect();
        let mut curve = Curve::new(self.smooth, points.len());
        for (here, slope, curvature, upper) in points {
            curve.push(here, slope, curvature, upper);
        }
        curve.minimise();
        let apply = |(state, weight): (&mut Descent, &f64)| {
            let step = weight - state.weights[shape];
            if step != 0.0 {
                state.apply(&model, shape, *weight);
            }
            step.abs()
        };
        let steps = self.states.par_iter_mut().zip(curve.values()).with_min_len(16).map(apply);
        steps.reduce(|| 0.0, f64::max)
    }

    /// Every weight of every frame once, frame by frame, each with its own holes.
    fn sweep_frames(
        &mut self,
        frames: &[SolvedFrame<'_>],
        backwards: bool,
        watch: &mut impl FnMut(&dyn Fn() -> f64),
    ) -> Result<f64, InverseError> {
        let order = self.solver.plan().by_norm.clone();
        let mut largest = 0.0f64;
        for place in 0..frames.len() {
            let t = if backwards { frames.len() - 1 - place } else { place };
            self.solver.see(&frames[t].target).map_err(|error| error.in_frame(t))?;
            for shape in &order {
                largest = largest.max(self.move_point(*shape as usize, t));
            }
            watch(&|| self.objective());
        }
        Ok(largest)
    }

    /// Moves one weight of one frame to its best place, its neighbours in time fixed.
    fn move_point(&mut self, shape: usize, t: usize) -> f64 {
        let model = self.solver.model();
        if !self.states[t].is_candidate(&model, shape) {
            return 0.0;
        }
        // Both curves of a tied pair bend.
        let curves = if model.plan.tied(shape).is_some() { 2.0 } else { 1.0 };
        let at = |t: usize| self.states[t].weights[shape];
        let slope = second_difference_gradient(self.states.len(), t, at) * self.smooth * curves;
        let curvature = second_difference_diagonal(self.states.len(), t) * self.smooth * curves;
        let here = at(t);
        let state = &mut self.states[t];
        let proposal = state.propose_with(&model, shape, slope, curvature);
        if proposal.weight != here {
            state.apply(&model, shape, proposal.weight);
        }
        (proposal.weight - here).abs()
    }
}

#[cfg(test)]
mod tests {
    use crate::inverse_rig::direct::DirectRig;
    use crate::inverse_rig::metrics::measure;
    use crate::inverse_rig::take::TakeSettings;
    use crate::inverse_rig::{InverseRig, InverseSettings, Missing, Symmetry};
    use understudy_core::{BlendshapeRig, Random, Vec3};
    use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

    struct Scene {
        rig: BlendshapeRig,
        clean: Vec<Vec<Vec3>>,
        noisy: Vec<Vec<Vec3>>,
    }

    fn scene(seed: u64, frames: usize) -> Scene {
        let rig = random_rig(&SyntheticRig { vertices: 80, ..SyntheticRig::small(seed) });
        let mut random = Random::stream(seed, 4);
        let mut shake =
            |vertex: &Vec3| *vertex + Vec3::from_array([0; 3].map(|_| (random.normal() * 0.2) as f32));
        let mut clean = vec![vec![Vec3::ZERO; 80]; frames];
        let take = random_take(rig.shapes().len(), frames, seed);
        take.iter().zip(&mut clean).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));
        let noisy = clean.iter().map(|mesh| mesh.iter().map(&mut shake).collect()).collect();
        Scene { rig, clean, noisy }
    }

    fn bend(weights: &[Vec<f64>]) -> f64 {
        let second = |w: &[Vec<f64>], shape: usize| (w[0][shape] - 2.0 * w[1][shape] + w[2][shape]).powi(2);
        weights.windows(3).map(|w| (0..w[0].len()).map(|shape| second(w, shape)).sum::<f64>()).sum()
    }

    #[test]
    fn the_joint_cost_never_rises_and_is_that_of_the_meshes() {
        for (seed, smooth) in [(1, 0.1), (2, 3.0), (3, 300.0)] {
            let scene = scene(seed, 40);
            let name = |shape: usize| scene.rig.shapes()[shape].name.clone();
            let prepared = InverseRig::prepare(&scene.rig).expect("valid rig");
            let direct = DirectRig::new(&scene.rig);
            for (tied, holes) in [(false, false), (true, false), (true, true)] {
                let settings = InverseSettings {
                    symmetric: if tied { vec![[name(0), name(5)]] } else { vec![] },
                    symmetry: Symmetry::Tied,
                    exclusive: vec![vec![name(1), name(2)]],
                    missing: Missing::Ignore,
                    ..InverseSettings::paper()
                };
                let mut targets = scene.noisy.clone();
                if holes {
                    targets.iter_mut().enumerate().for_each(|(t, target)| target[t % 11] = Vec3::NAN);
                }
                let take = TakeSettings { smooth, sweeps: 6, ..Default::default() };
                let costs = std::cell::RefCell::new(Vec::new());
                let solved = prepared
                    .solve_take_inspected(&targets, &settings, &take, |cost| costs.borrow_mut().push(cost()))
                    .expect("valid take");
                let costs = costs.into_inner();
                let drop = costs[0] - costs[costs.len() - 1];
                assert!(costs.len() > 20 && drop > 0.0);
                assert!(
                    costs.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-12)),
                    "{seed} {tied} {holes}"
                );
                let report = solved.smoothing.expect("it was smoothed");
                assert!(report.objective_after <= report.objective_before);
                if !holes {
                    let frames = targets.iter().zip(&solved.weights);
                    let fit: f64 = frames.map(|(t, w)| direct.objective(t, w, 0.5, usize::MAX)).sum();
                    let whole = fit + 0.5 * smooth * bend(&solved.weights);
                    assert!((whole - report.objective_after).abs() < 1e-9 * whole, "{whole} {report:?}");
                }
                for weights in &solved.weights {
                    assert!(weights.iter().all(|w| (0.0..=1.0).contains(w)));
                    assert!(!tied || weights[0] == weights[5]);
                    assert!(weights[1] == 0.0 || weights[2] == 0.0);
                }
            }
        }
    }

    #[test]
    fn smoothing_lowers_roughness_and_the_error_against_the_clean_take() {
        let scene = scene(9, 120);
        let prepared = InverseRig::prepare(&scene.rig).expect("valid rig");
        let run = |smooth: f64| {
            let take = TakeSettings { smooth, ..Default::default() };
            let solved =
                prepared.solve_take(&scene.noisy, &InverseSettings::paper(), &take).expect("valid take");
            measure(&scene.rig, &solved.weights, &scene.clean).expect("they fit").0
        };
        let (rough, fine) = (run(0.0), run(30.0));
        assert!(fine.roughness < 0.1 * rough.roughness, "{fine:?} {rough:?}");
        assert!(fine.rmse_cm < rough.rmse_cm, "{fine:?} {rough:?}");
    }
}
