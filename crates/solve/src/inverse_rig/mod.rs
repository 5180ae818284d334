//! The inverse rig: blendshape weights from a mesh, for rigs with correctives of any level (Racković et
//! al. 2023, "High-fidelity interpretable inverse rig").
//!
//! `minimise ½‖f(w) − b̂‖² + α 1ᵀw` over `0 ≤ w ≤ 1`, one weight after the other in closed form. The cost
//! depends on the mesh only through inner products, so [`InverseRig::prepare`] tabulates them once and a
//! [`Solver`] projects each target once; every step is a few table look-ups, with the same iterates as the
//! direct method to round-off. Whole takes, smoothing in time and rigid head motion: [`take`]. The slow
//! reference: [`direct`]. Equations 10 and 13 of the paper lack a minus sign; see [`Solver`].

mod blocks;
mod curve;
mod descent;
pub mod direct;
mod error;
mod gram;
mod greedy;
mod kernels;
mod lmmm;
pub mod metrics;
mod newton;
mod order;
mod polynomial;
mod ridge;
pub mod rigid;
mod settings;
mod smooth;
mod solver;
pub mod take;
mod terms;
pub mod tradeoff;

pub use error::InverseError;
pub use order::{Stop, Visit};
pub use settings::{Alpha, InverseSettings, Method, Missing, Order, Symmetry};
pub use smooth::SmoothReport;
pub use solver::{SolveReport, Solver};

use blocks::ShapeBlocks;
use gram::Gram;
use lmmm::Curvature;
use settings::Plan;
use std::sync::{Arc, OnceLock};
use terms::TermTable;
use understudy_core::{BlendshapeRig, Vec3};

/// A rig prepared for inversion: blocked shapes, the Gram matrix and the tables of terms. A handle: clones
/// share everything, so that solvers can hold one each.
#[derive(Debug, Clone)]
pub struct InverseRig {
    tables: Arc<Tables>,
    gram: Arc<Gram>,
}

/// What does not depend on vertex weights.
#[derive(Debug)]
struct Tables {
    names: Vec<String>,
    neutral: Vec<Vec3>,
    table: TermTable,
    shapes: ShapeBlocks,
    /// `Σ_k G_kk` over the terms of a shape, under unit vertex weights: the scale of its `‖φ‖²`.
    scale: Vec<f64>,
    curvature: OnceLock<Curvature>,
}

impl InverseRig {
    /// More terms than this would need over two gigabytes of table.
    pub const MAX_TERMS: usize = 16_384;
    /// `‖φ‖²` below this share of the shape's scale is rounding, not a shape.
    const ZERO_SHARE: f64 = 1e-12;

    /// Tabulates everything that does not depend on the target. All vertices count the same. A shape that
    /// moves no vertex is no mistake (a face without a tongue): its weight stays at zero, and
    /// [`Self::unseen_shapes`] names it.
    pub fn prepare(rig: &BlendshapeRig) -> Result<Self, InverseError> {
        let table = TermTable::new(rig);
        if table.shape_count() == 0 {
            return Err(InverseError::NoShapes);
        }
        if table.len() > Self::MAX_TERMS {
            return Err(InverseError::TooManyTerms { count: table.len(), limit: Self::MAX_TERMS });
        }
        let shapes = ShapeBlocks::new(rig, &table);
        let gram = Gram::new(&shapes, table.len(), vec![1.0; rig.neutral().len()]);
        if (0..table.shape_count()).all(|shape| gram.at(shape, shape) == 0.0) {
            return Err(InverseError::NoShapes);
        }
        let scale = |shape: usize| table.uses(shape).iter().map(|k| gram.at(*k as usize, *k as usize)).sum();
        let scale = (0..table.shape_count()).map(scale).collect();
        let names = rig.shapes().iter().map(|shape| shape.name.clone()).collect();
        let neutral = rig.neutral().to_vec();
        let tables = Tables { names, neutral, table, shapes, scale, curvature: OnceLock::new() };
        Ok(Self { tables: Arc::new(tables), gram: Arc::new(gram) })
    }

    /// Lets vertices count differently from now on: `ω_v ≥ 0`, `[V]`. Only what changed is computed again.
    /// Says whether anything did. Solvers made before keep the weights they were made with.
    pub fn set_vertex_weights(&mut self, weights: &[f32]) -> Result<bool, InverseError> {
        let want = self.vertex_count();
        if weights.len() != want {
            return Err(InverseError::Count { what: "vertex weights", got: weights.len(), want });
        }
        if let Some(vertex) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(InverseError::VertexWeight { vertex, weight: weights[vertex] });
        }
        if weights.iter().all(|w| *w == 0.0) {
            return Err(InverseError::NothingSeen);
        }
        Ok(Arc::make_mut(&mut self.gram).reweight(&self.tables.shapes, |vertex| weights[vertex]))
    }

    /// `ω`, `[V]`.
    pub fn vertex_weights(&self) -> &[f32] {
        self.gram.vertex_weights()
    }

    /// The shapes' names, `[m]`.
    pub fn shape_names(&self) -> &[String] {
        &self.tables.names
    }

    /// `m`.
    pub fn shape_count(&self) -> usize {
        self.tables.names.len()
    }

    /// Shapes and correctives.
    pub fn term_count(&self) -> usize {
        self.tables.table.len()
    }

    /// The number of factors of the highest corrective; 1 for a linear rig.
    pub fn highest_level(&self) -> usize {
        self.tables.table.highest_level()
    }

    /// `n`.
    pub fn vertex_count(&self) -> usize {
        self.tables.neutral.len()
    }

    /// The neutral mesh, `[V]` cm.
    pub fn neutral(&self) -> &[Vec3] {
        &self.tables.neutral
    }

    /// Mean `‖b_i‖²` over the shapes that are seen, under the present vertex weights, cm²: the energy of which
    /// [`Alpha::Share`] is a share.
    pub fn shape_energy(&self) -> f64 {
        shape_energy(&self.gram, self.shape_count())
    }

    /// Shapes that no vertex with weight shows: their weights stay where they start.
    pub fn unseen_shapes(&self) -> Vec<&str> {
        let zero = self.zero_norms();
        let unseen = |shape: &usize| self.gram.at(*shape, *shape) <= zero[*shape];
        (0..self.shape_count()).filter(unseen).map(|shape| self.tables.names[shape].as_str()).collect()
    }

    /// The number of directions in which the shapes move the mesh; below `m` where shapes are dependent.
    pub fn rank(&self) -> Result<usize, InverseError> {
        Ok(ridge::Spectrum::new(&self.gram, self.shape_count())?.rank())
    }

    /// A solver for these settings, with all its buffers.
    pub fn solver(&self, settings: &InverseSettings) -> Result<Solver, InverseError> {
        let plan = Plan::new(settings, &self.tables.names, &self.tables.table, &self.gram)?;
        Solver::new(self.clone(), settings.alpha, plan)
    }

    pub(crate) fn zero_norms(&self) -> Vec<f64> {
        let largest = self.gram.vertex_weights().iter().fold(0.0f32, |a, b| a.max(*b));
        self.tables.scale.iter().map(|scale| scale * Self::ZERO_SHARE * f64::from(largest)).collect()
    }

    fn curvature(&self) -> &Curvature {
        self.tables.curvature.get_or_init(|| Curvature::new(&self.tables.shapes, &self.tables.table))
    }
}

/// Mean `‖b_i‖²` over the shapes that move anything.
fn shape_energy(gram: &Gram, shapes: usize) -> f64 {
    let seen = || (0..shapes).map(|shape| gram.at(shape, shape)).filter(|norm| *norm > 0.0);
    seen().sum::<f64>() / seen().count().max(1) as f64
}

/// Weights of one target, `[m]`, with everything prepared for it alone. For more than a few frames prepare
/// once and keep the [`Solver`].
pub fn invert(
    rig: &BlendshapeRig,
    target: &[Vec3],
    settings: &InverseSettings,
) -> Result<Vec<f64>, InverseError> {
    let prepared = InverseRig::prepare(rig)?;
    let mut solver = prepared.solver(settings)?;
    solver.solve(target)?;
    Ok(solver.weights().to_vec())
}
