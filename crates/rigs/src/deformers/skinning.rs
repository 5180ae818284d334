//! Bones move vertices: linear blend and dual quaternion, mixed vertex by vertex.

use super::driver::{RigSize, unknown};
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::skinning::DualQuaternion;
use understudy_core::{SkinWeights, Vec3, Vec3A};

/// `v = (1 − β) Σ_j w_j M_j u + β DQ(w, M) u` with a blend `β` for every vertex. Where `β = 1` limbs keep
/// their volume when they twist; scale in the matrices is ignored there.
pub struct Skinning {
    weights: SkinWeights,
    /// `β`, `[V]`; empty means linear everywhere.
    dual: Vec<f32>,
}

impl Skinning {
    /// `dual`: for every vertex 0 (linear) to 1 (dual quaternion); empty means linear everywhere.
    pub fn new(weights: SkinWeights, dual: Vec<f32>, size: &RigSize) -> Result<Self, RigError> {
        let counts = [
            ("skinning: rows", weights.vertex_count(), size.vertices),
            ("skinning: bones", weights.bone_count(), size.bones),
            (
                "skinning: dual blends",
                if dual.is_empty() { size.vertices } else { dual.len() },
                size.vertices,
            ),
        ];
        for (what, got, want) in counts {
            if got != want {
                return Err(RigError::Count { what: what.into(), got, want });
            }
        }
        if let Some(vertex) = dual.iter().position(|blend| !(0.0..=1.0).contains(blend)) {
            return Err(unknown("skinning", format!("blend {} of vertex {vertex}", dual[vertex])));
        }
        let dual = if dual.iter().all(|blend| *blend == 0.0) { Vec::new() } else { dual };
        Ok(Self { weights, dual })
    }

    /// Linear everywhere.
    pub fn linear(weights: SkinWeights, size: &RigSize) -> Result<Self, RigError> {
        Self::new(weights, Vec::new(), size)
    }

    /// The weights.
    pub fn weights(&self) -> &SkinWeights {
        &self.weights
    }
}

impl Deformer for Skinning {
    fn name(&self) -> &str {
        "skinning"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        if !self.dual.is_empty() {
            scratch.dual.clear();
            scratch.dual.extend(frame.matrices.iter().map(DualQuaternion::from_affine));
        }
        for (vertex, place) in vertices.iter_mut().enumerate() {
            let blend = if self.dual.is_empty() { 0.0 } else { self.dual[vertex] };
            let rest = *place;
            let mut linear = Vec3A::ZERO;
            if blend < 1.0 {
                let point = Vec3A::from(rest);
                for (bone, weight) in self.weights.row(vertex) {
                    linear += frame.matrices[bone].transform_point3a(point) * weight;
                }
            }
            *place = linear.into();
            if blend > 0.0 {
                let dual = self.weights.blend_dual(&scratch.dual, vertex).transform_point(rest);
                *place += (dual - *place) * blend;
            }
        }
    }
}
