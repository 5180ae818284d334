//! The seven orders in which weights are visited (section 4.4) and the loop over passes. The two that try
//! every weight before each move live in [`super::greedy`].

use super::descent::{Descent, Model};
use super::greedy::Greedy;
use super::settings::Order;
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
}

/// Buffers for the orders that depend on the frame.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    list: Vec<u32>,
    keys: Vec<f64>,
    visited: Vec<bool>,
    greedy: Greedy,
}

impl Sequence {
    pub(crate) fn new(table: &TermTable) -> Self {
        let shape_count = table.shape_count();
        Self {
            list: (0..shape_count as u32).collect(),
            keys: vec![0.0; shape_count],
            visited: vec![false; shape_count],
            greedy: Greedy::new(table),
        }
    }

    /// Runs a frame to its end. `frame` seeds the random order; `projection` is `c`.
    pub(crate) fn run(
        &mut self,
        model: &Model<'_>,
        state: &mut Descent,
        projection: &[f64],
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
            Order::IterationCorrelation | Order::GaussSouthwell | Order::MaximumImprovement => {}
        }
        match plan.order {
            Order::GaussSouthwell | Order::MaximumImprovement => self.greedy.run(model, state, watch),
            Order::IterationCorrelation => self.by_residual(model, state, watch),
            _ => {
                let mut visits = 0;
                for pass in 1..=plan.passes {
                    let mut largest = 0.0f64;
                    for shape in &self.list {
                        let shape = *shape as usize;
                        largest = largest.max(state.visit(model, shape));
                        visits += 1;
                        watch(Visit { shape, weight: state.weights[shape], objective: state.objective });
                    }
                    if largest <= plan.tolerance {
                        return Course { stop: Stop::Converged, passes: pass, visits };
                    }
                }
                Course { stop: Stop::Passes, passes: plan.passes, visits }
            }
        }
    }

    fn by_residual(
        &mut self,
        model: &Model<'_>,
        state: &mut Descent,
        mut watch: impl FnMut(Visit),
    ) -> Course {
        let mut visits = 0;
        for pass in 1..=model.plan.passes {
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
                return Course { stop: Stop::Converged, passes: pass, visits };
            }
        }
        Course { stop: Stop::Passes, passes: model.plan.passes, visits }
    }
}

/// `b_iᵀ x / ‖b_i‖` for a given `b_iᵀ x`; 0 for a shape that moves nothing we see.
fn correlation(model: &Model<'_>, shape: usize, product: f64) -> f64 {
    let norm = model.gram.at(shape, shape);
    if norm <= model.zero_norm[shape] { 0.0 } else { product / norm.sqrt() }
}
