//! How good a finished face twin is on the poses that were held back, and what 16-bit weights cost it. Training takes the head's motion out of the
//! recorded vertices and later makes normals of them, so the truth is set aside before.

use super::plan::split;
use super::{FaceSettings, Recording};
use crate::HeldBack;
use understudy_core::Vec3;
use understudy_runtime::face::{FaceParts, FaceTwin};
use understudy_runtime::{Distances, Precision, Twin, TwinError};

/// Poses as they were recorded.
pub struct Truth {
    rest: Vec<Vec3>,
    /// Controls and vertices of each.
    poses: Vec<(Vec<f32>, Vec<Vec3>)>,
}

impl Truth {
    /// Sets the poses aside that training will hold back.
    pub fn of(poses: &Recording, settings: &FaceSettings) -> Self {
        let (_, chosen) = split(poses.len(), settings);
        let one = |pose: &usize| (poses.controls_of(*pose).to_vec(), poses.vertices_of(*pose).to_vec());
        Self { rest: poses.mesh.positions().to_vec(), poses: chosen.iter().map(one).collect() }
    }

    /// Measures a finished twin against them, and a face that stays at rest.
    pub fn measure(&self, parts: &FaceParts, precision: Precision) -> Result<HeldBack, TwinError> {
        let twin = Twin::from(FaceTwin::new(parts.clone(), precision)?);
        Ok(HeldBack::measure(&twin, &self.rest, &self.poses))
    }
}

/// Distances between weights in 16 and in 32 bits on some of the poses.
pub fn half_error(parts: &FaceParts, poses: &Recording) -> Result<Distances, TwinError> {
    let twin = |precision| Ok(Twin::from(FaceTwin::new(parts.clone(), precision)?));
    let (half, single) = (twin(Precision::Half)?, twin(Precision::Single)?);
    Ok(crate::held_back::half_error([&half, &single], poses))
}
