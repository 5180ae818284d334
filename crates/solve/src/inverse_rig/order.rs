//! The seven orders in which weights are visited (section 4.4) and the loop over passes. The two that try
//! every weight before each move live in [`super::greedy`].

use super::descent::{Descent, Model};
use super::greedy::Greedy;
use super::newton::Newton;
use super::settings::{Order, Plan};
use super::terms::TermTable;
use serde::Serialize;
use understudy_core::Random;

/// Why a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// All passes were made.
    Passes,
    /// No weight would move by more than the tolerance.
    Converged,
    /// Closed form: there was nothing to repeat.
    ClosedForm,
}

/// One visit, for whoever watches a solve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visit {
    /// The shape that was updated.
    pub shape: usize,
    /// Its weight afterwards.
    pub weight: f64,
    /// The cost afterwards: `½‖f(w) − b̂‖² + α 1ᵀw` and the soft pairs' share, cm².
    pub objective: f64,
}

/// What the loop did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Course {
    pub(crate) stop: Stop,
    pub(crate) passes: usize,
    pub(crate) visits: usize,
    pub(crate) newton_steps: usize,
}

/// Buffers for the orders that depend on the frame.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    list: Vec<u32>,
    keys: Vec<f64>,
    visited: Vec<bool>,
    greedy: Greedy,
    newton: Option<Newton>,
}

impl Sequence {
    /// Passes before the first Newton step: from zero weights, one at a time, they decide which of several
    /// shapes that could do the same is switched on.
    const OPENING: usize = 5;

    pub(crate) fn new(table: &TermTable, plan: &Plan) -> Self {
        let shape_count = table.shape_count();
        Self {
            list: (0..shape_count as u32).collect(),
            keys: vec![0.0; shape_count],
            visited: vec![false; shape_count],
            greedy: Greedy::new(table),
            newton: if plan.newton { Newton::new(table, plan.count) } else { None },
        }
    }

    /// Runs a frame to its end. `frame` seeds the random order; `projection` is `c`.
    pub(crate) fn run(
        &mut self,
        model: &Model<'_>,
        state: &mut Descent,
        projection: &[f64],
        energy: f64,
        frame: u64,
        mut watch: impl FnMut(Visit),
    ) -> Course {
        let plan = model.plan;
        match plan.order {
            Order::Decreasing | Order::Increasing => self.list.copy_from_slice(&plan.by_norm),
            Order::Random => {
                let mut random = Random::stream(plan.seed, frame);
                self.list.iter_mut().zip(0u32..).for_each(|(shape, index)| *shape = index);
                for last in (1..self.list.len()).rev() {
                    self.list.swap(last, random.below(last + 1));
                }
            }
            Order::FrameCorrelation => {
                for (shape, key) in self.keys.iter_mut().enumerate() {
                    *key = correlation(model, shape, projection[shape]);
                }
                self.list.iter_mut().zip(0u32..).for_each(|(shape, index)| *shape = index);
                let key = |shape: u32| self.keys[shape as usize];
                self.list.sort_unstable_by(|a, b| key(*b).total_cmp(&key(*a)).then(a.cmp(b)));
            }
            // What Newton steps leave is finished in the paper's order.
            Order::IterationCorrelation | Order::GaussSouthwell | Order::MaximumImprovement => {
                self.list.copy_from_slice(&plan.by_norm);
            }
        }
        let mut newton = self.newton.take();
        let passes = if newton.is_some() { plan.passes.min(Self::OPENING) } else { plan.passes };
        let mut course = match plan.order {
            Order::GaussSouthwell | Order::MaximumImprovement => {
                self.greedy.run(model, state, passes, &mut watch)
            }
            Order::IterationCorrelation => self.by_residual(model, state, passes, &mut watch),
            _ => self.in_order(model, state, passes, &mut watch),
        };
        if let Some(newton) = &mut newton {
            course.stop = Stop::Passes;
            while course.passes < plan.passes {
                let far = newton.step(model, state, projection, energy);
                let pass = self.in_order(model, state, 1, &mut watch);
                course.newton_steps += 1;
                course.passes += 1;
                course.visits += pass.visits;
                if far <= plan.tolerance && pass.stop == Stop::Converged {
                    course.stop = Stop::Converged;
                    break;
                }
            }
        }
        self.newton = newton;
        course
    }

    /// Passes over all weights, each in the order of the list.
    fn in_order(
        &self,
        model: &Model<'_>,
        state: &mut Descent,
        passes: usize,
        watch: &mut impl FnMut(Visit),
    ) -> Course {
        let mut course = Course { stop: Stop::Passes, passes: 0, visits: 0, newton_steps: 0 };
        while course.passes < passes && course.stop == Stop::Passes {
            let mut largest = 0.0f64;
            for shape in &self.list {
                let shape = *shape as usize;
                largest = largest.max(state.visit(model, shape));
                course.visits += 1;
                watch(Visit { shape, weight: state.weights[shape], objective: state.objective });
            }
            course.passes += 1;
            if largest <= model.plan.tolerance {
                course.stop = Stop::Converged;
            }
        }
        course
    }

    fn by_residual(
        &mut self,
        model: &Model<'_>,
        state: &mut Descent,
        passes: usize,
        watch: &mut impl FnMut(Visit),
    ) -> Course {
        let mut visits = 0;
        for pass in 1..=passes {
            let mut largest = 0.0f64;
            self.visited.fill(false);
            loop {
                let mut best: Option<(f64, usize)> = None;
                for shape in (0..self.visited.len()).filter(|s| !self.visited[*s]) {
                    let key = correlation(model, shape, -state.residuals[shape]);
                    let weight = state.weights[shape];
                    let free = if key > 0.0 { weight < model.plan.upper } else { weight > 0.0 };
                    if free && key != 0.0 && best.is_none_or(|(best, _)| key.abs() > best) {
                        best = Some((key.abs(), shape));
                    }
                }
                let Some((_, shape)) = best else { break };
                self.visited[shape] = true;
                largest = largest.max(state.visit(model, shape));
                visits += 1;
                watch(Visit { shape, weight: state.weights[shape], objective: state.objective });
            }
            if largest <= model.plan.tolerance {
                return Course { stop: Stop::Converged, passes: pass, visits, newton_steps: 0 };
            }
        }
        Course { stop: Stop::Passes, passes, visits, newton_steps: 0 }
    }
}

/// `b_iᵀ x / ‖b_i‖` for a given `b_iᵀ x`; 0 for a shape that moves nothing we see.
fn correlation(model: &Model<'_>, shape: usize, product: f64) -> f64 {
    let norm = model.gram.at(shape, shape);
    if norm <= model.zero_norm[shape] { 0.0 } else { product / norm.sqrt() }
}
