//! The trade-off between error and cardinality as α grows (the paper's figures 5 to 10), and the α at its
//! knee for those who do not want to choose.

use super::InverseRig;
use super::descent::Descent;
use super::error::InverseError;
use super::kernels::project;
use super::settings::{InverseSettings, Method};
use rayon::prelude::*;
use serde::Serialize;
use understudy_core::Vec3;

/// One α.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TradeoffPoint {
    /// The regularisation.
    pub alpha: f64,
    /// Mean over the frames of the root mean squared distance to the targets as given, whole rig, cm.
    pub rmse_cm: f64,
    /// Mean number of weights that are not zero.
    pub cardinality: f64,
    /// Mean `Σ|w_i|`.
    pub l1: f64,
}

/// The α that was chosen, and from what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlphaChoice {
    /// The α at the knee.
    pub alpha: f64,
    /// The curve, α ascending.
    pub points: Vec<TradeoffPoint>,
}

/// Frames that stand for a take when α is chosen.
const SAMPLE_FRAMES: usize = 48;

impl InverseRig {
    /// The trade-off over given α, targets `[F][V]`. Costs one projection a frame and one solve a frame and
    /// α; no mesh is rebuilt. Targets must be whole.
    pub fn tradeoff<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
        alphas: &[f64],
    ) -> Result<Vec<TradeoffPoint>, InverseError> {
        let mut solvers = Vec::new();
        for alpha in alphas {
            solvers.push(self.solver(&InverseSettings { alpha: *alpha, ..settings.clone() })?);
        }
        let frame = |(index, target): (usize, &T)| -> Result<Vec<[f64; 3]>, InverseError> {
            let target = target.as_ref();
            let mut solvers = solvers.clone();
            let mut whole = Descent::new(&self.table, self.table.len());
            let mut projection = vec![0.0; self.table.len()];
            let mut points = Vec::with_capacity(solvers.len());
            for solver in &mut solvers {
                if points.is_empty() {
                    solver.see(target).map_err(|error| error.in_frame(index))?;
                    project(&self.shapes, &self.neutral, self.vertex_weights(), target, &mut projection);
                }
                let energy = solver.energy(target);
                solver.set_frame(index as u64);
                let known = solver.term_count();
                let report = solver.solve_projected(&projection[..known], energy, target, None, |_| ());
                whole.weights.copy_from_slice(solver.weights());
                whole.begin(&solver.model(), &projection, energy);
                let error = (whole.squared_error(solver.plan()) / self.gram.total_weight()).sqrt();
                points.push([error, report.cardinality as f64, solver.weights().iter().sum()]);
            }
            Ok(points)
        };
        let frames: Vec<_> = targets.par_iter().enumerate().map(frame).collect::<Result<_, _>>()?;
        let count = frames.len().max(1) as f64;
        let mean =
            |point: usize, value: usize| frames.iter().map(|frame| frame[point][value]).sum::<f64>() / count;
        let point = |(index, alpha): (usize, &f64)| TradeoffPoint {
            alpha: *alpha,
            rmse_cm: mean(index, 0),
            cardinality: mean(index, 1),
            l1: mean(index, 2),
        };
        Ok(alphas.iter().enumerate().map(point).collect())
    }

    /// Chooses α for a take: the knee of its trade-off curve over frames spread through it, from α = 0 to the
    /// α that switches everything off.
    pub fn choose_alpha<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
    ) -> Result<AlphaChoice, InverseError> {
        if matches!(settings.method, Method::Seol | Method::Joshi) {
            let want = "only a method with an alpha can choose it";
            return Err(InverseError::Setting {
                name: "method",
                value: settings.method.title().into(),
                want,
            });
        }
        let step = targets.len().div_ceil(SAMPLE_FRAMES).max(1);
        let sample: Vec<&[Vec3]> = targets.iter().step_by(step).map(AsRef::as_ref).collect();
        let mut largest = 0.0f64;
        let mut projection = vec![0.0; self.shape_count()];
        let mut solver = self.solver(settings)?;
        for (index, target) in sample.iter().enumerate() {
            solver.see(target).map_err(|error| error.in_frame(index * step))?;
            project(&self.shapes, &self.neutral, self.vertex_weights(), target, &mut projection);
            largest = projection.iter().fold(largest, |a, b| a.max(*b));
        }
        // From every weight on to every weight off: below a millionth of the largest pull, α does nothing.
        let steps = 25;
        let grid = (0..=steps).map(|i| largest * 10f64.powf(6.0 * (f64::from(i) / f64::from(steps) - 1.0)));
        let alphas: Vec<f64> = std::iter::once(0.0).chain(grid).collect();
        let points = self.tradeoff(&sample, settings, &alphas)?;
        let alpha = points[knee(&points)].alpha;
        Ok(AlphaChoice { alpha, points })
    }
}

/// The point where a curve of error (rising) against cardinality (falling) bends most: both axes scaled to
/// `[0, 1]`, the error by its logarithm, because a doubled error looks as bad on a subtle frame as on a
/// strong one; the knee is furthest below the line from end to end.
pub fn knee(points: &[TradeoffPoint]) -> usize {
    let log_error = |p: &TradeoffPoint| p.rmse_cm.max(1e-9).ln();
    let range = |value: &dyn Fn(&TradeoffPoint) -> f64| {
        let low = points.iter().map(value).fold(f64::INFINITY, f64::min);
        let high = points.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
        (low, (high - low).max(1e-12))
    };
    let (error_low, error_span) = range(&log_error);
    let (count_low, count_span) = range(&|p| p.cardinality);
    let height = |p: &TradeoffPoint| {
        (log_error(p) - error_low) / error_span + (p.cardinality - count_low) / count_span
    };
    let lower =
        |best: usize, next: usize| if height(&points[next]) < height(&points[best]) { next } else { best };
    (0..points.len()).reduce(lower).unwrap_or(0)
}
