//! Head motion taken out before the shapes are solved: a rigid fit to the neutral mesh, then rounds of
//! solving and fitting again to the posed mesh, because an open jaw drags a plain fit along.

use super::error::InverseError;
use super::solver::Solver;
use super::{InverseRig, SolveReport};
use serde::{Deserialize, Serialize};
use understudy_core::Vec3;
use understudy_core::rotation::{RigidMotion, fit_rigid_weighted};

/// Which vertices carry the head.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RigidFit {
    /// All that are seen.
    #[default]
    AllVertices,
    /// These alone: points on the skull that expressions move little.
    Landmarks(Vec<u32>),
}

/// How rigid motion is removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RigidSettings {
    /// Fitted to what.
    pub fit: RigidFit,
    /// After the fit to the neutral, so many rounds of solve and fit to the posed mesh at most. Each lowers
    /// the cost; rounds end when the fit moves no vertex by more than a thousandth of a millimetre.
    pub rounds: usize,
}

impl Default for RigidSettings {
    fn default() -> Self {
        Self { fit: RigidFit::AllVertices, rounds: 30 }
    }
}

impl RigidSettings {
    /// Vertex motion that counts as none, cm.
    const STILL_CM: f32 = 1e-4;

    /// Checks the landmarks: at least three of them, all vertices of the rig.
    pub(crate) fn check(&self, rig: &InverseRig) -> Result<(), InverseError> {
        let RigidFit::Landmarks(landmarks) = &self.fit else { return Ok(()) };
        if landmarks.len() < 3 {
            let value = landmarks.len().to_string();
            return Err(InverseError::Setting {
                name: "landmarks",
                value,
                want: "a rigid fit needs three at least",
            });
        }
        if let Some(vertex) = landmarks.iter().find(|vertex| **vertex as usize >= rig.vertex_count()) {
            let want = "landmarks are vertices of the rig";
            return Err(InverseError::Setting { name: "landmarks", value: vertex.to_string(), want });
        }
        Ok(())
    }

    /// Moves `target` back to the neutral head in `moved`, with the motion and the report of the last
    /// solve, which starts from zero on the aligned target.
    pub(crate) fn align(
        &self,
        solver: &mut Solver,
        target: &[Vec3],
        moved: &mut Vec<Vec3>,
    ) -> Result<(RigidMotion, SolveReport), InverseError> {
        solver.see(target)?;
        let rig = solver.rig().clone();
        let mut counts: Vec<f64> = solver.seen_weights().iter().map(|weight| f64::from(*weight)).collect();
        if let RigidFit::Landmarks(landmarks) = &self.fit {
            let mut chosen = vec![0.0; counts.len()];
            landmarks.iter().for_each(|v| chosen[*v as usize] = counts[*v as usize].min(1.0));
            counts = chosen;
        }
        let mut motion = fit_rigid_weighted(target, rig.neutral(), |vertex| counts[vertex]);
        apply(&motion, target, moved);
        let mut report = solver.solve(moved)?;
        for _ in 0..self.rounds {
            let posed = solver.reconstruct();
            let next = fit_rigid_weighted(target, &posed, |vertex| counts[vertex]);
            let before = std::mem::take(moved);
            apply(&next, target, moved);
            motion = next;
            let shift = |(a, b): (&Vec3, &Vec3)| if a.is_finite() { a.distance(*b) } else { 0.0 };
            let still = before.iter().zip(moved.iter()).map(shift).fold(0.0, f32::max) <= Self::STILL_CM;
            if still {
                break;
            }
            let start = solver.weights().to_vec();
            report = solver.solve_from(moved, &start)?;
        }
        if self.rounds > 0 {
            report = solver.solve(moved)?;
        }
        Ok((motion, report))
    }
}

fn apply(motion: &RigidMotion, target: &[Vec3], moved: &mut Vec<Vec3>) {
    moved.clear();
    moved.extend(target.iter().map(|vertex| motion.apply(*vertex)));
}
