//! What inverse kinematics is done by otherwise: iterations from the neutral pose through the twin's derivatives. Damped
//! least squares and the pseudo-inverse (4.2) are settings of the run time's own steps; L-BFGS is here.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use understudy_core::Vec3;
use understudy_runtime::PoseError;
use understudy_runtime::ik::{Correction, PointSolver};

/// An iterative method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rival {
    /// Gauss–Newton with damping (Wampler 1986), within the ranges.
    DampedLeastSquares,
    /// (4.2), without damping or ranges.
    PseudoInverse,
    /// Limited-memory quasi-Newton (Liu and Nocedal 1989), within the ranges by projection.
    Lbfgs,
}

impl Rival {
    /// In the order of tables.
    pub const ALL: [Self; 3] = [Self::DampedLeastSquares, Self::PseudoInverse, Self::Lbfgs];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::DampedLeastSquares => "damped least squares",
            Self::PseudoInverse => "pseudo-inverse",
            Self::Lbfgs => "L-BFGS",
        }
    }
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RivalReport {
    /// Derivatives that were evaluated.
    pub iterations: usize,
}

/// Poses by points from the neutral pose; `controls` is filled.
pub fn solve_by(
    rival: Rival,
    solver: &mut PointSolver,
    targets: &[Vec3],
    controls: &mut [f32],
) -> Result<RivalReport, PoseError> {
    controls.copy_from_slice(&solver.neutral());
    let how = Correction { steps: 20, keep_derivatives: false, enough_cm: 0.005, ..Correction::default() };
    let how = match rival {
        Rival::DampedLeastSquares => Correction { damping: 1e-3, ..how },
        // What f32 derivatives do not tell apart is no direction.
        Rival::PseudoInverse => Correction { damping: 1e-9, within_ranges: false, ..how },
        Rival::Lbfgs => return lbfgs(solver, targets, controls),
    };
    solver.correct(targets, &[], &how, controls)?;
    Ok(RivalReport { iterations: how.steps })
}

/// Steps and differences of slopes that are remembered.
const MEMORY: usize = 8;
const MOST: usize = 60;

fn lbfgs(solver: &mut PointSolver, targets: &[Vec3], controls: &mut [f32]) -> Result<RivalReport, PoseError> {
    let ranges = solver.ranges();
    let free: Vec<usize> = (0..controls.len()).filter(|control| ranges[*control].is_some()).collect();
    let ends: Vec<(f32, f32)> = free.iter().filter_map(|control| ranges[*control]).collect();
    // Controls are measured by their ranges.
    let spread = |x: &[f64], controls: &mut [f32]| {
        for ((control, x), (low, high)) in free.iter().zip(x).zip(&ends) {
            controls[*control] = low + (high - low) * *x as f32;
        }
    };
    let mut slopes = vec![0.0; controls.len()];
    let mut cost = |x: &[f64], controls: &mut [f32]| -> Result<(f64, Vec<f64>), PoseError> {
        spread(x, controls);
        let value = solver.cost(targets, controls, &mut slopes)?;
        let by =
            free.iter().zip(&ends).map(|(control, (low, high))| f64::from(slopes[*control] * (high - low)));
        Ok((value, by.collect()))
    };
    let mut x: Vec<f64> = (free.iter().zip(&ends))
        .map(|(control, (low, high))| {
            f64::from((controls[*control] - low) / (high - low).max(f32::MIN_POSITIVE))
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (mut value, mut slope) = cost(&x, controls)?;
    let mut memory: VecDeque<(Vec<f64>, Vec<f64>, f64)> = VecDeque::new();
    let mut iterations = 1;
    while iterations < MOST && value > 1e-6 {
        // The two loops of Nocedal (1980).
        let mut direction = slope.clone();
        let mut shares = Vec::new();
        for (s, y, inverse) in memory.iter().rev() {
            let share = inverse * dot(s, &direction);
            direction.iter_mut().zip(y).for_each(|(d, y)| *d -= share * y);
            shares.push(share);
        }
        let size = memory.back().map_or(0.1 / dot(&slope, &slope).sqrt().max(1e-12), |(_, y, inverse)| {
            1.0 / (inverse * dot(y, y)).max(1e-12)
        });
        direction.iter_mut().for_each(|d| *d *= size);
        for ((s, y, inverse), share) in memory.iter().zip(shares.into_iter().rev()) {
            let other = inverse * dot(y, &direction);
            direction.iter_mut().zip(s).for_each(|(d, s)| *d += (share - other) * s);
        }
        let mut length = 1.0;
        let mut next = None;
        while length > 1e-3 && iterations < MOST {
            let tried: Vec<f64> =
                x.iter().zip(&direction).map(|(x, d)| (x - length * d).clamp(0.0, 1.0)).collect();
            let (there, slope_there) = cost(&tried, controls)?;
            iterations += 1;
            if there < value {
                next = Some((tried, there, slope_there));
                break;
            }
            length *= 0.4;
        }
        let Some((tried, there, slope_there)) = next else { break };
        let s: Vec<f64> = tried.iter().zip(&x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = slope_there.iter().zip(&slope).map(|(a, b)| a - b).collect();
        let curvature = dot(&s, &y);
        if curvature > 1e-12 {
            memory.push_back((s, y, 1.0 / curvature));
            if memory.len() > MEMORY {
                memory.pop_front();
            }
        }
        (x, value, slope) = (tried, there, slope_there);
    }
    spread(&x, controls);
    Ok(RivalReport { iterations })
}
