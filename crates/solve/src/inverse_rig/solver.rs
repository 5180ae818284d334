//! One frame after the other without allocating: check, project, solve.

use super::InverseRig;
use super::descent::{Descent, Model};
use super::error::InverseError;
use super::gram::Gram;
use super::kernels::project;
use super::lmmm::LmmmScratch;
use super::order::{Course, Sequence, Stop, Visit};
use super::ridge::Spectrum;
use super::settings::{Method, Missing, Plan};
use serde::Serialize;
use std::sync::Arc;
use understudy_core::Vec3;

/// How a solve went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SolveReport {
    /// Why it ended.
    pub stop: Stop,
    /// Passes over the weights, or iterations.
    pub passes: usize,
    /// Single weight updates, or iterations.
    pub visits: usize,
    /// `½‖f(w) − b̂‖² + α 1ᵀw` in the model that was solved, cm².
    pub objective: f64,
    /// `sqrt(Σ ω‖f(w) − b̂‖² / Σ ω)` against the target as it was given, in the model that was solved (a
    /// linear method does not know the correctives), cm.
    pub rms_cm: f64,
    /// Weights that are not zero.
    pub cardinality: usize,
}

/// The Gram matrix: the rig's, or one of our own once a frame had holes.
#[derive(Debug, Clone)]
enum Table<'a> {
    Shared(&'a Gram),
    Own(Box<Gram>),
}

impl Table<'_> {
    fn get(&self) -> &Gram {
        match self {
            Self::Shared(gram) => gram,
            Self::Own(gram) => gram,
        }
    }
}

/// Solves targets of one rig with one group of settings. The update is
/// `w_i ← clamp₀¹((−φᵢᵀψᵢ − α)/‖φᵢ‖²)`: the paper prints eq. 10 and 13 without the first minus. Clone it for
/// another thread.
#[derive(Debug, Clone)]
pub struct Solver<'a> {
    rig: &'a InverseRig,
    plan: Arc<Plan>,
    gram: Table<'a>,
    zero_norm: Arc<Vec<f64>>,
    spectrum: Option<Arc<Spectrum>>,
    sequence: Sequence,
    pub(super) state: Descent,
    projection: Vec<f64>,
    coordinates: Vec<f64>,
    lmmm: Option<LmmmScratch>,
    frame: u64,
}

impl<'a> Solver<'a> {
    pub(super) fn new(rig: &'a InverseRig, plan: Plan) -> Result<Self, InverseError> {
        let shapes = rig.shape_count();
        let spectrum = match plan.method {
            Method::Joshi | Method::Cetinaslan | Method::Lmmm => {
                Some(Arc::new(Spectrum::new(&rig.gram, shapes)?))
            }
            _ => None,
        };
        let lmmm = (plan.method == Method::Lmmm).then(|| {
            rig.curvature();
            LmmmScratch::new(&rig.table, plan.count, rig.vertex_count())
        });
        Ok(Self {
            rig,
            gram: Table::Shared(&rig.gram),
            zero_norm: Arc::new(rig.zero_norms()),
            spectrum,
            sequence: Sequence::new(shapes),
            state: Descent::new(&rig.table, plan.count),
            projection: vec![0.0; plan.count],
            coordinates: vec![0.0; shapes],
            lmmm,
            frame: 0,
            plan: Arc::new(plan),
        })
    }

    /// The weights of the last solve, `[m]`.
    pub fn weights(&self) -> &[f64] {
        &self.state.weights
    }

    /// The rig.
    pub fn rig(&self) -> &'a InverseRig {
        self.rig
    }

    /// Numbers the next frame; it seeds the random order and counts up by itself.
    pub fn set_frame(&mut self, frame: u64) {
        self.frame = frame;
    }

    /// Solves a target, `[V]` cm, from zero weights.
    pub fn solve(&mut self, target: &[Vec3]) -> Result<SolveReport, InverseError> {
        self.solve_watched(target, None, |_| ())
    }

    /// Solves a target from given weights. Caveat (paper, section 3): from anywhere but zero, shapes that
    /// exclude each other may both stay on; and methods in closed form have no start.
    pub fn solve_from(&mut self, target: &[Vec3], start: &[f64]) -> Result<SolveReport, InverseError> {
        self.solve_watched(target, Some(start), |_| ())
    }

    /// [`Self::solve`] with a look at every visit of a coordinate descent.
    pub fn solve_watched(
        &mut self,
        target: &[Vec3],
        start: Option<&[f64]>,
        watch: impl FnMut(Visit),
    ) -> Result<SolveReport, InverseError> {
        if let Some(start) = start {
            self.plan.check_start(start, &self.rig.names)?;
        }
        self.see(target)?;
        let energy = self.energy(target);
        let mut projection = std::mem::take(&mut self.projection);
        let vertex_weights = self.gram.get().vertex_weights();
        project(&self.rig.shapes, &self.rig.neutral, vertex_weights, target, &mut projection);
        let report = self.solve_projected(&projection, energy, target, start, watch);
        self.projection = projection;
        Ok(report)
    }

    /// Checks a target and moves to a Gram matrix without its holes.
    pub(super) fn see(&mut self, target: &[Vec3]) -> Result<(), InverseError> {
        let want = self.rig.vertex_count();
        if target.len() != want {
            return Err(InverseError::VertexCount { got: target.len(), want });
        }
        let base = self.rig.gram.vertex_weights();
        let hole = |vertex: &usize| base[*vertex] > 0.0 && !target[*vertex].is_finite();
        if let Some(vertex) = (0..want).find(hole) {
            if self.plan.missing == Missing::Refuse {
                return Err(InverseError::NonFinite { vertex });
            }
            if (0..want).all(|vertex| base[vertex] == 0.0 || !target[vertex].is_finite()) {
                return Err(InverseError::NothingSeen);
            }
            if let Table::Shared(gram) = self.gram {
                self.gram = Table::Own(Box::new(gram.clone()));
            }
        }
        if let Table::Own(gram) = &mut self.gram {
            let weight = |vertex: usize| if target[vertex].is_finite() { base[vertex] } else { 0.0 };
            if gram.reweight(&self.rig.shapes, weight) && self.spectrum.is_some() {
                self.spectrum = Some(Arc::new(Spectrum::new(gram, self.rig.shape_count())?));
            }
        }
        Ok(())
    }

    /// `‖b̂‖² = Σ ω_v ‖target_v − neutral_v‖²` over the vertices that count.
    pub(super) fn energy(&self, target: &[Vec3]) -> f64 {
        let weights = self.gram.get().vertex_weights();
        let vertices = target.iter().zip(&self.rig.neutral).zip(weights).filter(|(_, weight)| **weight > 0.0);
        let square = |((to, from), weight): ((&Vec3, &Vec3), &f32)| {
            (to.as_dvec3() - from.as_dvec3()).length_squared() * f64::from(*weight)
        };
        vertices.map(square).sum()
    }

    pub(super) fn model(&self) -> Model<'_> {
        Model {
            table: &self.rig.table,
            gram: self.gram.get(),
            plan: &self.plan,
            zero_norm: &self.zero_norm,
        }
    }

    /// Solves from a projection `c`, `[count]`, and `‖b̂‖²`. The target itself is needed by LMMM alone.
    pub(super) fn solve_projected(
        &mut self,
        projection: &[f64],
        energy: f64,
        target: &[Vec3],
        start: Option<&[f64]>,
        watch: impl FnMut(Visit),
    ) -> SolveReport {
        let plan = self.plan.clone();
        let gram = self.gram.get();
        let model =
            Model { table: &self.rig.table, gram, plan: &plan, zero_norm: &self.zero_norm };
        let state = &mut self.state;
        match start {
            Some(start) => state.weights.copy_from_slice(start),
            None => state.weights.fill(0.0),
        }
        if let Some(spectrum) = &self.spectrum
            && (start.is_none() || plan.method != Method::Lmmm)
        {
            let alpha = if plan.method == Method::Joshi { 0.0 } else { plan.alpha };
            spectrum.solve(alpha, projection, &mut self.coordinates, &mut state.weights);
            state.weights.iter_mut().for_each(|weight| *weight = weight.clamp(0.0, plan.upper));
        }
        state.begin(&model, projection, energy);
        let course = match plan.method {
            Method::Quartic | Method::Linear | Method::Seol => {
                self.sequence.run(&model, state, projection, self.frame, watch)
            }
            Method::Joshi | Method::Cetinaslan => {
                Course { stop: Stop::ClosedForm, passes: 0, visits: 0 }
            }
            Method::Lmmm => {
                let scratch = self.lmmm.as_mut().expect("made with the solver");
                let (shapes, neutral) = (&self.rig.shapes, &self.rig.neutral);
                self.rig.curvature().run(
                    &model, shapes, neutral, target, projection, energy, state, scratch,
                )
            }
        };
        self.frame += 1;
        SolveReport {
            stop: course.stop,
            passes: course.passes,
            visits: course.visits,
            objective: state.objective,
            rms_cm: (state.squared_error(&plan) / gram.total_weight()).sqrt(),
            cardinality: state.weights.iter().filter(|weight| **weight != 0.0).count(),
        }
    }
}
