//! Linear blend skinning of a mesh whose vertices are sorted by their number of handles: rows of equal length follow one
//! another, so that nothing is looked up but matrices.

use understudy_core::{Affine3A, SkinWeights, Vec3, Vec3A};

/// Vertices and weights.
#[derive(Debug, Clone)]
pub(super) struct Skin {
    rest: Vec<Vec3A>,
    offsets: Vec<u32>,
    handles: Vec<u16>,
    weights: Vec<f32>,
}

impl Skin {
    pub fn new(weights: &SkinWeights, rest: &[Vec3]) -> Self {
        let (offsets, handles, values) = weights.compressed();
        Self {
            rest: rest.iter().map(|p| Vec3A::from(*p)).collect(),
            offsets: offsets.to_vec(),
            handles: handles.to_vec(),
            weights: values.to_vec(),
        }
    }

    pub fn vertex_count(&self) -> usize {
        self.rest.len()
    }

    /// `v_i = (Σ_j w_ij M_j) u_i`: blending matrices first costs half of moving every point by every handle.
    pub fn pose(&self, matrices: &[Affine3A], out: &mut [Vec3]) {
        for (vertex, out) in out.iter_mut().enumerate() {
            let row = self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize;
            let (handles, weights) = (&self.handles[row.clone()], &self.weights[row]);
            let mut columns = [Vec3A::ZERO; 4];
            for (handle, weight) in handles.iter().zip(weights) {
                let matrix = &matrices[*handle as usize];
                columns[0] += matrix.matrix3.x_axis * *weight;
                columns[1] += matrix.matrix3.y_axis * *weight;
                columns[2] += matrix.matrix3.z_axis * *weight;
                columns[3] += matrix.translation * *weight;
            }
            let p = self.rest[vertex];
            *out = (columns[0] * p.x + columns[1] * p.y + columns[2] * p.z + columns[3]).into();
        }
    }
}
