//! One frame's coordinate descent in table look-ups. The cost sees the mesh only through inner products:
//! with `p_k` the product of term `k`, `G` the Gram matrix and `c_k = b_kᵀb̂`, the vector
//! `g = G p − c` holds `b_kᵀ(f(w) − b̂)` for every term, and a step needs nothing else.
//!
//! For shape `i`, with `q_k = p_k / w_i` for the terms that contain it:
//! `φᵢᵀ(f − b̂) = Σ q_k g_k`, `‖φᵢ‖² = Σ q_k q_l G_kl`, and eq. 10 with its sign corrected,
//! `w_i ← clamp((−φᵢᵀψᵢ − α)/‖φᵢ‖²)`, is `clamp(w_i − (Σ q_k g_k + α)/‖φᵢ‖²)`.
//! The orders of visits live in [`super::order`].

use super::gram::Gram;
use super::kernels::add_scaled;
use super::polynomial::least_quartic;
use super::settings::Plan;
use super::terms::TermTable;

/// What every frame shares.
#[derive(Clone, Copy)]
pub(crate) struct Model<'a> {
    pub(crate) table: &'a TermTable,
    pub(crate) gram: &'a Gram,
    pub(crate) plan: &'a Plan,
    /// Below this `‖φᵢ‖²` is rounding, `[m]`.
    pub(crate) zero_norm: &'a [f64],
}

/// What an update would do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Proposal {
    /// Where the weight would go.
    pub(crate) weight: f64,
    /// Derivative of the cost at the present weight.
    pub(crate) slope: f64,
    /// How much the cost would fall, ≥ 0 up to rounding.
    pub(crate) gain: f64,
}

/// The state of one frame. All buffers are made once.
#[derive(Debug, Clone)]
pub(crate) struct Descent {
    /// `w`, `[m]`.
    pub(crate) weights: Vec<f64>,
    /// `p`, `[count]`.
    pub(crate) products: Vec<f64>,
    /// `g = G p − c`, `[count]`.
    pub(crate) residuals: Vec<f64>,
    /// `½‖f − b̂‖² + α 1ᵀw`, and the soft pairs' share.
    pub(crate) objective: f64,
    /// Terms with the shape at hand and their `q_k`.
    active: Vec<(u32, f64)>,
    /// Of a tied pair: terms with both.
    joint: Vec<(u32, f64)>,
    saved: Vec<f64>,
}

impl Descent {
    pub(crate) fn new(table: &TermTable, count: usize) -> Self {
        let shapes = table.shape_count();
        Self {
            weights: vec![0.0; shapes],
            products: vec![0.0; count],
            residuals: vec![0.0; count],
            objective: 0.0,
            active: Vec::with_capacity(2 * table.len()),
            joint: Vec::with_capacity(table.len()),
            saved: Vec::with_capacity(shapes + 2 * count),
        }
    }

    /// Begins a frame at `weights` (already set): `projection` is `c`, `energy` is `‖b̂‖²`.
    pub(crate) fn begin(&mut self, model: &Model<'_>, projection: &[f64], energy: f64) {
        let count = self.products.len();
        for (residual, projected) in self.residuals.iter_mut().zip(projection) {
            *residual = -projected;
        }
        for term in 0..count {
            self.products[term] = model.table.product(term, &self.weights);
            if self.products[term] != 0.0 {
                add_scaled(&mut self.residuals, self.products[term], model.gram.row(term));
            }
        }
        let fit: f64 = (0..count).map(|k| self.products[k] * (self.residuals[k] - projection[k])).sum();
        self.objective = 0.5 * (energy + fit) + self.penalty(model.plan);
    }

    /// `α 1ᵀw + ½ s Σ (w_i − w_j)²`.
    pub(crate) fn penalty(&self, plan: &Plan) -> f64 {
        let sum: f64 = self.weights.iter().sum();
        let apart = |shape: usize| {
            let other = plan.soft(shape).filter(|other| *other > shape);
            other.map_or(0.0, |other| (self.weights[shape] - self.weights[other]).powi(2))
        };
        plan.alpha * sum + 0.5 * plan.strength.min(f64::MAX) * (0..self.weights.len()).map(apart).sum::<f64>()
    }

    /// `(φᵢᵀ(f − b̂), ‖φᵢ‖²)`.
    pub(crate) fn probe(&mut self, model: &Model<'_>, shape: usize) -> (f64, f64) {
        self.active.clear();
        for term in model.table.uses(shape) {
            if *term as usize >= self.products.len() {
                break;
            }
            let rest = model.table.product_without(*term as usize, shape, &self.weights);
            if rest != 0.0 {
                self.active.push((*term, rest));
            }
        }
        let along = self.active.iter().map(|(term, rest)| rest * self.residuals[*term as usize]).sum();
        (along, inner(model, &self.active, &self.active))
    }

    /// `∂p_k/∂w` of one weight (of both of a tied pair moving together) for the terms where it is not zero.
    pub(crate) fn push_derivative(&self, model: &Model<'_>, shape: usize, list: &mut Vec<(u32, f64)>) {
        let known = |one: usize| {
            model.table.uses(one).iter().take_while(|term| (**term as usize) < self.products.len())
        };
        let other = model.plan.tied(shape);
        for (first, one) in [Some(shape), other].into_iter().flatten().enumerate() {
            for term in known(one) {
                let joint = other.is_some_and(|other| {
                    let both = [shape as u32, other as u32];
                    both.iter().all(|member| model.table.factors(*term as usize).contains(member))
                });
                // A term with both shapes is `w²` times the rest: listed once, with its derivative.
                if joint && first == 1 {
                    continue;
                }
                let rest = model.table.product_without(*term as usize, one, &self.weights);
                let derivative = if joint { 2.0 * rest } else { rest };
                if derivative != 0.0 {
                    list.push((*term, derivative));
                }
            }
        }
    }

    /// First and second derivative of the cost by one weight that is not tied.
    pub(crate) fn slope_and_curvature(&mut self, model: &Model<'_>, shape: usize) -> (f64, f64) {
        let plan = model.plan;
        let (mut slope, mut curvature) = self.probe(model, shape);
        if curvature <= model.zero_norm[shape] {
            (slope, curvature) = (0.0, 0.0);
        }
        slope += plan.alpha;
        if let Some(other) = plan.soft(shape) {
            slope += plan.strength * (self.weights[shape] - self.weights[other]);
            curvature += plan.strength;
        }
        (slope, curvature)
    }

    /// The best place for one weight (both weights of a tied pair), the others fixed.
    pub(crate) fn propose(&mut self, model: &Model<'_>, shape: usize) -> Proposal {
        self.propose_with(model, shape, 0.0, 0.0)
    }

    /// [`Self::propose`] where the cost gains `slope · d + ½ curvature · d²` for a move by `d`.
    pub(crate) fn propose_with(
        &mut self,
        model: &Model<'_>,
        shape: usize,
        extra_slope: f64,
        extra_curvature: f64,
    ) -> Proposal {
        if let Some(other) = model.plan.tied(shape) {
            return self.propose_tied(model, shape, other, extra_slope, extra_curvature);
        }
        let here = self.weights[shape];
        let (mut slope, mut norm) = self.slope_and_curvature(model, shape);
        slope += extra_slope;
        norm += extra_curvature;
        let weight = if norm > 0.0 {
            (here - slope / norm).clamp(0.0, model.plan.upper)
        } else if slope > 0.0 {
            0.0
        } else {
            here
        };
        let step = weight - here;
        Proposal { weight, slope, gain: -step * (slope + 0.5 * norm * step) }
    }

    /// A tied pair is one weight that enters the terms with both shapes squared: `f` moves by
    /// `d u + d² v` with `u = φ + 2wφ₂`, `v = φ₂`, so the cost is a quartic in `d`, minimised exactly.
    fn propose_tied(
        &mut self,
        model: &Model<'_>,
        shape: usize,
        other: usize,
        extra_slope: f64,
        extra_curvature: f64,
    ) -> Proposal {
        let here = self.weights[shape];
        let (mut single, mut joint) = (std::mem::take(&mut self.active), std::mem::take(&mut self.joint));
        single.clear();
        joint.clear();
        for (one, two) in [(shape, other), (other, shape)] {
            for term in model.table.uses(one).iter().take_while(|t| (**t as usize) < self.products.len()) {
                let factors = model.table.factors(*term as usize);
                let rest = factors.iter().filter(|f| **f as usize != one && **f as usize != two);
                let rest: f64 = rest.map(|f| self.weights[*f as usize]).product();
                if rest == 0.0 {
                    continue;
                }
                if !factors.contains(&(two as u32)) {
                    single.push((*term, rest));
                } else if one == shape {
                    single.push((*term, 2.0 * here * rest));
                    joint.push((*term, rest));
                }
            }
        }
        let along = |list: &[(u32, f64)]| -> f64 {
            list.iter().map(|(term, rest)| rest * self.residuals[*term as usize]).sum()
        };
        let slope = along(&single) + 2.0 * model.plan.alpha + extra_slope;
        let square = 0.5 * inner(model, &single, &single) + along(&joint) + 0.5 * extra_curvature;
        let cubic = inner(model, &single, &joint);
        let quartic = 0.5 * inner(model, &joint, &joint);
        (self.active, self.joint) = (single, joint);
        let (step, change) = least_quartic([slope, square, cubic, quartic], -here, model.plan.upper - here);
        let weight = (here + step).clamp(0.0, model.plan.upper);
        Proposal { weight, slope, gain: -change }
    }

    /// Moves a weight (both of a tied pair) and all that hangs on it.
    pub(crate) fn apply(&mut self, model: &Model<'_>, shape: usize, weight: f64) {
        let plan = model.plan;
        if let Some(other) = plan.soft(shape) {
            let apart = |w: f64| 0.5 * plan.strength * (w - self.weights[other]).powi(2);
            self.objective += apart(weight) - apart(self.weights[shape]);
        }
        let pair = [Some(shape), plan.tied(shape)];
        for member in pair.into_iter().flatten() {
            self.objective += plan.alpha * (weight - self.weights[member]);
            self.weights[member] = weight;
        }
        for member in pair.into_iter().flatten() {
            for term in model.table.uses(member) {
                let term = *term as usize;
                if term >= self.products.len() {
                    break;
                }
                let product = model.table.product(term, &self.weights);
                let change = product - self.products[term];
                if change != 0.0 {
                    self.objective +=
                        change * (self.residuals[term] + 0.5 * change * model.gram.at(term, term));
                    self.products[term] = product;
                    add_scaled(&mut self.residuals, change, model.gram.row(term));
                }
            }
        }
    }

    /// Visits a shape: moves it to its best place, in an exclusive group only where that beats the shape
    /// that is on already. Gives how far it moved; the cost never rises.
    pub(crate) fn visit(&mut self, model: &Model<'_>, shape: usize) -> f64 {
        // A tied pair is visited once, through the shape that comes first.
        if model.plan.tied(shape).is_some_and(|other| other < shape) {
            return 0.0;
        }
        if let Some(rival) = model.plan.rivals(shape).find(|rival| self.weights[*rival] != 0.0) {
            return self.challenge(model, shape, rival);
        }
        let here = self.weights[shape];
        let proposal = self.propose(model, shape);
        if proposal.weight != here {
            self.apply(model, shape, proposal.weight);
        }
        (proposal.weight - here).abs()
    }

    /// Tries a shape in place of the one of its group that is on, and goes back unless the cost fell.
    fn challenge(&mut self, model: &Model<'_>, shape: usize, rival: usize) -> f64 {
        let before = self.objective;
        self.saved.clear();
        self.saved.extend_from_slice(&self.weights);
        self.saved.extend_from_slice(&self.products);
        self.saved.extend_from_slice(&self.residuals);
        self.apply(model, rival, 0.0);
        let proposal = self.propose(model, shape);
        if proposal.weight > 0.0 {
            self.apply(model, shape, proposal.weight);
        }
        if proposal.weight > 0.0 && self.objective < before {
            return proposal.weight;
        }
        let (shapes, count) = (self.weights.len(), self.products.len());
        self.weights.copy_from_slice(&self.saved[..shapes]);
        self.products.copy_from_slice(&self.saved[shapes..shapes + count]);
        self.residuals.copy_from_slice(&self.saved[shapes + count..]);
        self.objective = before;
        0.0
    }

    /// Whether the shape may be chosen by a greedy order: not the second of a tied pair, no rival on.
    pub(crate) fn is_candidate(&self, model: &Model<'_>, shape: usize) -> bool {
        model.plan.tied(shape).is_none_or(|other| shape < other)
            && !model.plan.rivals(shape).any(|rival| self.weights[rival] != 0.0)
    }

    /// `‖f − b̂‖²` as the solve sees it, never negative.
    pub(crate) fn squared_error(&self, plan: &Plan) -> f64 {
        (2.0 * (self.objective - self.penalty(plan))).max(0.0)
    }
}

/// `Σ_kl x_k y_l G_kl` of two sparse vectors of terms.
fn inner(model: &Model<'_>, left: &[(u32, f64)], right: &[(u32, f64)]) -> f64 {
    let row = |(term, value): &(u32, f64)| {
        let row = model.gram.row(*term as usize);
        value * right.iter().map(|(other, value)| value * row[*other as usize]).sum::<f64>()
    };
    left.iter().map(row).sum()
}
