//! Distances between poses as people see them: through the rig, in millimetres.

use crate::JobError;
use understudy_core::Controls;
use understudy_rigs::{Rig, RigPose};

/// How far apart two poses are through a rig.
pub struct MeshDistance<'a> {
    rig: &'a dyn Rig,
    poses: [RigPose; 2],
}

impl<'a> MeshDistance<'a> {
    /// A vertex that moves less than this between two poses counts as still, cm.
    const STILL: f32 = 1e-4;

    /// For a rig.
    pub fn new(rig: &'a dyn Rig) -> Self {
        Self { rig, poses: [RigPose::default(), RigPose::default()] }
    }

    fn squares(&mut self, a: &[f32], b: &[f32]) -> Result<impl Iterator<Item = f32>, JobError> {
        for (pose, controls) in self.poses.iter_mut().zip([a, b]) {
            let controls = Controls(controls.to_vec());
            self.rig.evaluate(&controls, pose).map_err(JobError::rig(self.rig.name()))?;
        }
        let [a, b] = &self.poses;
        Ok(a.vertices.iter().zip(&b.vertices).map(|(a, b)| a.distance_squared(*b)))
    }

    /// Root mean square over the vertices that differ, mm.
    pub fn rms_mm(&mut self, a: &[f32], b: &[f32]) -> Result<f32, JobError> {
        let moved = self.squares(a, b)?.filter(|d| *d > Self::STILL * Self::STILL);
        let (sum, count) = moved.fold((0.0f64, 0usize), |(sum, count), d| (sum + f64::from(d), count + 1));
        Ok(10.0 * (sum / count.max(1) as f64).sqrt() as f32)
    }

    /// Mean over all vertices, mm.
    pub fn mean_mm(&mut self, a: &[f32], b: &[f32]) -> Result<f32, JobError> {
        let squares = self.squares(a, b)?;
        let (sum, count) =
            squares.fold((0.0f64, 0usize), |(sum, count), d| (sum + f64::from(d.sqrt()), count + 1));
        Ok((10.0 * sum / count.max(1) as f64) as f32)
    }
}
