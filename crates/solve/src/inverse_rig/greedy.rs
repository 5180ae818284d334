//! Gauss–Southwell and maximum improvement: every weight is tried, the best is moved. The paper calls them
//! wasteful; in table form a trial needs only the products `q_k` and `‖φ‖²` of its shape, which change
//! with the shapes it shares terms with and are kept until then.

use super::descent::{Descent, Model};
use super::order::{Course, Stop, Visit};
use super::settings::Order;
use super::terms::TermTable;

/// A weight that moves less than this does not move: the loop would go on for ever.
const STILL: f64 = 1e-12;

/// What a trial needs, shape by shape.
#[derive(Debug, Clone)]
pub(crate) struct Greedy {
    /// `q_k` of every use of every shape, flat.
    rests: Vec<f64>,
    /// `‖φ‖²`, `[m]`.
    norms: Vec<f64>,
    stale: Vec<bool>,
}

impl Greedy {
    pub(crate) fn new(table: &TermTable) -> Self {
        let shapes = table.shape_count();
        Self { rests: vec![0.0; table.use_count()], norms: vec![0.0; shapes], stale: vec![true; shapes] }
    }

    /// Runs a frame to its end.
    pub(crate) fn run(
        &mut self,
        model: &Model<'_>,
        state: &mut Descent,
        passes: usize,
        watch: &mut impl FnMut(Visit),
    ) -> Course {
        let plan = model.plan;
        let shapes = state.weights.len();
        let budget = passes * shapes;
        // Pairs change what a trial is; they are tried without the tables.
        let plain = plan.partner.iter().all(|partner| *partner == super::settings::NONE);
        self.stale.fill(true);
        for visits in 0..budget {
            let mut best: Option<(f64, usize, f64)> = None;
            let mut largest = 0.0f64;
            for shape in 0..shapes {
                if !state.is_candidate(model, shape) {
                    continue;
                }
                let here = state.weights[shape];
                let (weight, slope, gain) = if plain {
                    self.try_shape(model, state, shape)
                } else {
                    let proposal = state.propose(model, shape);
                    (proposal.weight, proposal.slope, proposal.gain)
                };
                // A weight at its bound whose slope points outside stays: it is no candidate.
                let step = (weight - here).abs();
                if step == 0.0 {
                    continue;
                }
                largest = largest.max(step);
                let key = if plan.order == Order::GaussSouthwell { slope.abs() } else { gain };
                if best.is_none_or(|(best, ..)| key > best) {
                    best = Some((key, shape, weight));
                }
            }
            let Some((_, shape, weight)) = best.filter(|_| largest > plan.tolerance.max(STILL)) else {
                let passes = visits.div_ceil(shapes);
                return Course { stop: Stop::Converged, passes, visits, newton_steps: 0 };
            };
            state.apply(model, shape, weight);
            for term in model.table.uses(shape) {
                for other in model.table.factors(*term as usize) {
                    self.stale[*other as usize] = true;
                }
            }
            watch(Visit { shape, weight, objective: state.objective });
        }
        Course { stop: Stop::Passes, passes, visits: budget, newton_steps: 0 }
    }

    /// Where the weight would go, the slope and the gain; as [`Descent::propose`].
    fn try_shape(&mut self, model: &Model<'_>, state: &Descent, shape: usize) -> (f64, f64, f64) {
        let uses = model.table.uses(shape);
        let known = uses.partition_point(|term| (*term as usize) < state.products.len());
        let uses = &uses[..known];
        let start = model.table.use_range(shape).start;
        let rests = &mut self.rests[start..start + known];
        if std::mem::replace(&mut self.stale[shape], false) {
            for (rest, term) in rests.iter_mut().zip(uses) {
                *rest = model.table.product_without(*term as usize, shape, &state.weights);
            }
            let row = |(term, rest): (&u32, &f64)| {
                let row = model.gram.row(*term as usize);
                let sum: f64 =
                    uses.iter().zip(rests.iter()).map(|(other, rest)| rest * row[*other as usize]).sum();
                rest * sum
            };
            self.norms[shape] =
                uses.iter().zip(rests.iter()).filter(|(_, rest)| **rest != 0.0).map(row).sum();
        }
        let here = state.weights[shape];
        let norm = self.norms[shape];
        if norm <= model.zero_norm[shape] {
            // Nothing is seen of it: it goes to zero where α pulls, and stays otherwise.
            let weight = if model.plan.alpha > 0.0 { 0.0 } else { here };
            return (weight, model.plan.alpha, (here - weight) * model.plan.alpha);
        }
        let along: f64 =
            uses.iter().zip(rests.iter()).map(|(term, rest)| rest * state.residuals[*term as usize]).sum();
        let slope = along + model.plan.alpha;
        let weight = (here - slope / norm).clamp(0.0, model.plan.upper);
        let step = weight - here;
        (weight, slope, -step * (slope + 0.5 * norm * step))
    }
}
