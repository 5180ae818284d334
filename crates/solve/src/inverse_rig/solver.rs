//! One frame after the other without allocating: check, project, solve.

use super::descent::{Descent, Model};
use super::error::InverseError;
use super::gram::Gram;
use super::kernels::{offsets, project};
use super::lmmm::LmmmScratch;
use super::order::{Course, Sequence, Stop, Visit};
use super::ridge::Spectrum;
use super::settings::{Alpha, Method, Missing, Plan};
use super::{InverseRig, shape_energy};
use serde::Serialize;
use std::sync::Arc;
use understudy_core::{DVec3, Vec3};

/// How a solve went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SolveReport {
    /// Why it ended.
    pub stop: Stop,
    /// Passes over the weights, or iterations.
    pub passes: usize,
    /// Single weight updates, or iterations.
    pub visits: usize,
    /// Newton steps on all weights at once, between the passes.
    pub newton_steps: usize,
    /// `½‖f(w) − b̂‖² + α 1ᵀw` in the model that was solved, cm².
    pub objective: f64,
    /// `sqrt(Σ ω‖f(w) − b̂‖² / Σ ω)` against the target as it was given, in the model that was solved (a
    /// linear method does not know the correctives), cm.
    pub rms_cm: f64,
    /// Weights that are not zero.
    pub cardinality: usize,
}

/// The Gram matrix: the rig's, or our own copy while a frame has holes.
#[derive(Debug, Clone)]
struct Table {
    shared: Arc<Gram>,
    own: Option<Box<Gram>>,
    holes: bool,
}

impl Table {
    fn get(&self) -> &Gram {
        match &self.own {
            Some(own) if self.holes => own,
            _ => &self.shared,
        }
    }

    /// Our own copy; it begins as the rig's, and goes on from the last frame while frames have holes.
    fn get_own(&mut self) -> &mut Gram {
        let begun = std::mem::replace(&mut self.holes, true);
        let own = self.own.get_or_insert_with(|| Box::new(self.shared.as_ref().clone()));
        if !begun {
            own.as_mut().clone_from(&self.shared);
        }
        own
    }
}

/// Solves targets of one rig with one group of settings. The update is
/// `w_i ← clamp₀¹((−φᵢᵀψᵢ − α)/‖φᵢ‖²)`: the paper prints eq. 10 and 13 without the first minus. Clone it for
/// another thread. It holds all it needs and borrows nothing: keep it in a struct.
#[derive(Debug, Clone)]
pub struct Solver {
    rig: InverseRig,
    alpha: Alpha,
    plan: Arc<Plan>,
    gram: Table,
    zero_norm: Arc<Vec<f64>>,
    spectrum: Option<Arc<Spectrum>>,
    whole_spectrum: Option<Arc<Spectrum>>,
    sequence: Sequence,
    state: Descent,
    projection: Vec<f64>,
    coordinates: Vec<f64>,
    lmmm: Option<LmmmScratch>,
    frame: u64,
}

impl Solver {
    pub(super) fn new(rig: InverseRig, alpha: Alpha, plan: Plan) -> Result<Self, InverseError> {
        // A method without an α keeps none.
        let alpha = if plan.method == Method::Seol { Alpha::ZERO } else { alpha };
        let shapes = rig.shape_count();
        let spectrum = match plan.method {
            Method::Joshi | Method::Cetinaslan | Method::Lmmm => {
                Some(Arc::new(Spectrum::new(&rig.gram, shapes)?))
            }
            _ => None,
        };
        let lmmm = (plan.method == Method::Lmmm).then(|| {
            rig.curvature();
            LmmmScratch::new(&rig.tables.table, plan.count, rig.vertex_count())
        });
        Ok(Self {
            gram: Table { shared: rig.gram.clone(), own: None, holes: false },
            zero_norm: Arc::new(rig.zero_norms()),
            whole_spectrum: spectrum.clone(),
            spectrum,
            sequence: Sequence::new(&rig.tables.table, &plan),
            state: Descent::new(&rig.tables.table, plan.count),
            projection: vec![0.0; plan.count],
            coordinates: vec![0.0; shapes],
            lmmm,
            frame: 0,
            alpha,
            plan: Arc::new(plan),
            rig,
        })
    }

    /// The weights of the last solve, `[m]`.
    pub fn weights(&self) -> &[f64] {
        &self.state.weights
    }

    /// The rig.
    pub fn rig(&self) -> &InverseRig {
        &self.rig
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
            self.plan.check_start(start, &self.rig.tables.names)?;
        }
        self.see(target)?;
        let energy = self.energy(target);
        let mut projection = std::mem::take(&mut self.projection);
        let vertex_weights = self.gram.get().vertex_weights();
        project(&self.rig.tables.shapes, &self.rig.tables.neutral, vertex_weights, target, &mut projection);
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
        let seen = |vertex: usize| base[vertex] > 0.0 && target[vertex].is_finite();
        let hole = (0..want).find(|vertex| base[*vertex] > 0.0 && !target[*vertex].is_finite());
        let changed = match hole {
            Some(vertex) if self.plan.missing == Missing::Refuse => {
                return Err(InverseError::NonFinite { vertex });
            }
            Some(_) if !(0..want).any(seen) => return Err(InverseError::NothingSeen),
            Some(_) => {
                let weight = |vertex: usize| if seen(vertex) { base[vertex] } else { 0.0 };
                self.gram.get_own().reweight(&self.rig.tables.shapes, weight)
            }
            None => std::mem::replace(&mut self.gram.holes, false),
        };
        if changed {
            self.set_alpha(self.alpha);
            if self.spectrum.is_some() {
                self.spectrum = Some(Arc::new(Spectrum::new(self.gram.get(), self.rig.shape_count())?));
            }
        }
        Ok(())
    }

    /// Takes the next frame as the first: what it gives then depends on nothing before it.
    pub(super) fn forget_holes(&mut self) {
        if self.gram.holes {
            self.gram.holes = false;
            self.spectrum = self.whole_spectrum.clone();
            self.set_alpha(self.alpha);
        }
    }

    /// Takes another α from now on: of a share, what it is without the present holes.
    pub(super) fn set_alpha(&mut self, alpha: Alpha) {
        self.alpha = alpha;
        let in_force = alpha.in_square_centimetres(self.seen_energy());
        if self.plan.alpha != in_force {
            Arc::make_mut(&mut self.plan).alpha = in_force;
        }
    }

    /// [`InverseRig::shape_energy`] without the present holes.
    pub(super) fn seen_energy(&self) -> f64 {
        shape_energy(self.gram.get(), self.rig.shape_count())
    }

    /// `Σ ω` without the present holes.
    pub(super) fn seen_total(&self) -> f64 {
        self.gram.get().total_weight()
    }

    /// `ω` without the present holes, `[V]`.
    pub(super) fn seen_weights(&self) -> &[f32] {
        self.gram.get().vertex_weights()
    }

    /// The posed mesh of the last solve, with the terms that it knew, `[V]` cm.
    pub(super) fn reconstruct(&self) -> Vec<Vec3> {
        let mut moved = vec![[0.0; 3]; self.rig.vertex_count()];
        offsets(&self.rig.tables.shapes, &self.state.products, &mut moved);
        let place = |(from, by): (&Vec3, &[f64; 3])| (from.as_dvec3() + DVec3::from(*by)).as_vec3();
        self.rig.neutral().iter().zip(&moved).map(place).collect()
    }

    /// Number of terms that a solve knows.
    pub(super) fn term_count(&self) -> usize {
        self.plan.count
    }

    /// The projection of the last target, `[term_count]`.
    pub(super) fn projection(&self) -> &[f64] {
        &self.projection
    }

    /// Remembers a projection that was made elsewhere.
    pub(super) fn keep_projection(&mut self, projection: Vec<f64>) {
        self.projection = projection;
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The state at given weights of a frame that [`Self::see`] has seen.
    pub(super) fn state_at(&self, weights: &[f64], projection: &[f64], energy: f64) -> Descent {
        let mut state = Descent::new(&self.rig.tables.table, self.plan.count);
        state.weights.copy_from_slice(weights);
        state.begin(&self.model(), projection, energy);
        state
    }

    /// `‖b̂‖² = Σ ω_v ‖target_v − neutral_v‖²` over the vertices that count.
    pub(super) fn energy(&self, target: &[Vec3]) -> f64 {
        let weights = self.gram.get().vertex_weights();
        let vertices =
            target.iter().zip(&self.rig.tables.neutral).zip(weights).filter(|(_, weight)| **weight > 0.0);
        let square = |((to, from), weight): ((&Vec3, &Vec3), &f32)| {
            (to.as_dvec3() - from.as_dvec3()).length_squared() * f64::from(*weight)
        };
        vertices.map(square).sum()
    }

    pub(super) fn model(&self) -> Model<'_> {
        Model {
            table: &self.rig.tables.table,
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
        let model = Model { table: &self.rig.tables.table, gram, plan: &plan, zero_norm: &self.zero_norm };
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
                self.sequence.run(&model, state, projection, energy, self.frame, watch)
            }
            Method::Joshi | Method::Cetinaslan => {
                Course { stop: Stop::ClosedForm, passes: 0, visits: 0, newton_steps: 0 }
            }
            Method::Lmmm => {
                let scratch = self.lmmm.as_mut().expect("made with the solver");
                let (shapes, neutral) = (&self.rig.tables.shapes, &self.rig.tables.neutral);
                self.rig.curvature().run(&model, shapes, neutral, target, projection, energy, state, scratch)
            }
        };
        self.frame += 1;
        SolveReport {
            stop: course.stop,
            passes: course.passes,
            visits: course.visits,
            newton_steps: course.newton_steps,
            objective: state.objective,
            rms_cm: (state.squared_error(&plan) / gram.total_weight()).sqrt(),
            cardinality: state.weights.iter().filter(|weight| **weight != 0.0).count(),
        }
    }
}
