//! What a twin is compared with, fitted to the same poses: rigid and linear blend skinning, rotational
//! regression, weighted pose-space deformation, linear regression.

mod pose_space;
pub mod regression;
mod rotational;
pub mod skinning;

pub use pose_space::PoseSpace;
pub use rotational::RotationalRegression;
pub use skinning::Skinned;

use crate::body::Poses;
use understudy_core::{Affine3A, Vec3};

/// Something that moves vertices from bones, fitted to examples.
pub trait Approximation: Send + Sync {
    /// Short, for tables and JSON.
    fn name(&self) -> &str;

    /// Size of the model.
    fn bytes(&self) -> usize;

    /// Moves the vertices: `bones` are world transforms `[J]`, `out` `[V]`.
    fn evaluate(&self, bones: &[Affine3A], out: &mut [Vec3]);
}

/// Poses to fit to.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The recorded poses.
    pub poses: &'a Poses<'a>,
    /// `[V]` cm.
    pub rest: &'a [Vec3],
    /// World → bone in the rest pose, `[J]`.
    pub inverse_rest: &'a [Affine3A],
}

impl Examples<'_> {
    /// Skinning matrices and vertices of at most `most` poses, spread evenly.
    pub fn skinning(&self, most: usize) -> Vec<(Vec<Affine3A>, Vec<Vec3>)> {
        let matrices = |pose: usize| {
            self.poses
                .bones_of(pose)
                .iter()
                .zip(self.inverse_rest)
                .map(|(bone, rest)| *bone * *rest)
                .collect()
        };
        let chosen = self.poses.spread(most);
        chosen.iter().map(|pose| (matrices(*pose), self.poses.vertices_of(*pose).to_vec())).collect()
    }
}
