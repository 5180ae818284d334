//! The trade-off between error and cardinality as α grows (the paper's figures 5 to 10), and the α at its
//! knee for those who do not want to choose.

use super::InverseRig;
use super::descent::Descent;
use super::error::InverseError;
use super::kernels::project;
use super::settings::{Alpha, InverseSettings, Method};
use super::solver::Solver;
use rayon::prelude::*;
use serde::Serialize;
use understudy_core::Vec3;

/// One α.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TradeoffPoint {
    /// The regularisation.
    pub alpha: Alpha,
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
    /// The α to use, a share of the shape energy.
    pub alpha: Alpha,
    /// Which of the points it is.
    pub chosen: usize,
    /// The point where the curve bends most. Another than the chosen one where it would have cost too much.
    pub knee: usize,
    /// The curve, α ascending from zero.
    pub points: Vec<TradeoffPoint>,
}

/// Frames that stand for a take when α is chosen.
const SAMPLE_FRAMES: usize = 24;
/// What fewer weights may cost: this many times the error without α. Where targets have noise it is the
/// floor of every α, and the knee lies below; clean targets have none, and stay clean.
const MOST_ERROR: f64 = 2.0;

impl InverseRig {
    /// The trade-off over given α, targets `[F][V]`. Costs one projection per frame and one solve per frame
    /// and α; no mesh is rebuilt.
    pub fn tradeoff<T: AsRef<[Vec3]> + Sync>(
        &self,
        targets: &[T],
        settings: &InverseSettings,
        alphas: &[Alpha],
    ) -> Result<Vec<TradeoffPoint>, InverseError> {
        let table = &self.tables.table;
        let solver = self.solver(settings)?;
        let frame = |solver: &mut Solver, (index, target): (usize, &T)| {
            let target = target.as_ref();
            // What a frame gives must not hang on the frames that this thread happened to solve before.
            solver.forget_holes();
            solver.see(target).map_err(|error| error.in_frame(index))?;
            let energy = solver.energy(target);
            let mut projection = vec![0.0; table.len()];
            project(&self.tables.shapes, self.neutral(), solver.seen_weights(), target, &mut projection);
            let mut whole = Descent::new(table, table.len());
            let mut points = Vec::with_capacity(alphas.len());
            for alpha in alphas {
                solver.set_alpha(*alpha);
                solver.set_frame(index as u64);
                let known = solver.term_count();
                let report = solver.solve_projected(&projection[..known], energy, target, None, |_| ());
                whole.weights.copy_from_slice(solver.weights());
                whole.begin(&solver.model(), &projection, energy);
                let error = (whole.squared_error(solver.plan()) / solver.seen_total()).sqrt();
                points.push([error, report.cardinality as f64, solver.weights().iter().sum()]);
            }
            Ok(points)
        };
        let frames: Vec<_> = targets
            .par_iter()
            .enumerate()
            .map_init(|| solver.clone(), frame)
            .collect::<Result<_, InverseError>>()?;
        let count = frames.len().max(1) as f64;
        let mean =
            |point: usize, value: usize| frames.iter().map(|frame| frame[point][value]).sum::<f64>() / count;
        let point = |(index, alpha): (usize, &Alpha)| TradeoffPoint {
            alpha: *alpha,
            rmse_cm: mean(index, 0),
            cardinality: mean(index, 1),
            l1: mean(index, 2),
        };
        Ok(alphas.iter().enumerate().map(point).collect())
    }

    /// Chooses α for a take: the knee of its trade-off curve over frames spread through it, from α = 0 to the
    /// α that switches everything off; a smaller one where the knee would more than double the error that is
    /// left without α.
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
            project(&self.tables.shapes, self.neutral(), solver.seen_weights(), target, &mut projection);
            largest = projection.iter().fold(largest, |a, b| a.max(*b / solver.seen_energy()));
        }
        // From every weight on to every weight off, three steps per power of ten.
        let grid = (-27..=0).map(|third| Alpha::Share(largest * 10f64.powf(f64::from(third) / 3.0)));
        let alphas: Vec<Alpha> = std::iter::once(Alpha::Share(0.0)).chain(grid).collect();
        let points = self.tradeoff(&sample, settings, &alphas)?;
        let knee = knee(&points);
        let affordable = |point: &TradeoffPoint| point.rmse_cm <= MOST_ERROR * points[0].rmse_cm;
        let most = points.iter().rposition(affordable).unwrap_or(0);
        let chosen = knee.min(most);
        Ok(AlphaChoice { alpha: points[chosen].alpha, chosen, knee, points })
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
