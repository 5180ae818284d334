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

#[cfg(test)]
mod tests {
    use super::super::test_support::*;
    use super::*;
    use crate::rig::{Rig, RigPose};

    fn skinned(dual: Vec<f32>) -> crate::StackRig {
        let mesh = tube();
        let skinning = Skinning::new(weights(&mesh), dual, &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(skinning)])
    }

    #[test]
    fn both_ends_of_the_blend_are_the_kinds_of_the_core() {
        let mesh = tube();
        let changes = [("swing", 40.0), ("shift", 12.0), ("bend", 100.0), ("twist", 70.0)];
        type Kind = fn(&SkinWeights, &[understudy_core::Affine3A], &[Vec3], &mut [Vec3]);
        for (blend, kind) in
            [(0.0, SkinWeights::linear_blend as Kind), (1.0, SkinWeights::dual_quaternion as Kind)]
        {
            let rig = skinned(vec![blend; mesh.vertex_count()]);
            let mut out = RigPose::default();
            rig.evaluate(&rig.specs().with(changes).expect("in range"), &mut out).expect("poses");
            let mut matrices = Vec::new();
            skeleton().skinning_matrices(&out.global, &mut matrices);
            let mut expected = vec![Vec3::ZERO; mesh.vertex_count()];
            kind(&weights(&mesh), &matrices, mesh.positions(), &mut expected);
            assert_eq!(out.vertices, expected);
        }
    }

    #[test]
    fn the_blend_lies_between_and_dual_quaternions_keep_the_girth() {
        let count = tube().vertex_count();
        let changes = [("twist", 80.0), ("bend", 120.0)];
        let [linear, half, dual] = [0.0, 0.5, 1.0].map(|blend| pose(&skinned(vec![blend; count]), &changes));
        for ((l, h), d) in linear.iter().zip(&half).zip(&dual) {
            assert!(((*l + *d) * 0.5 - *h).length() < understudy_testkit::Tol::position_cm(8));
        }
        let girth = |vertices: &[Vec3]| {
            let ring = &vertices[(10 * AROUND) as usize..(11 * AROUND) as usize];
            let centre = ring.iter().sum::<Vec3>() / AROUND as f32;
            ring.iter().map(|v| (*v - centre).length()).sum::<f32>() / AROUND as f32
        };
        assert!(girth(&dual) > 1.05 * girth(&linear), "{} {}", girth(&dual), girth(&linear));
    }

    #[test]
    fn identity_at_rest_and_continuous() {
        let blend: Vec<f32> = tube().positions().iter().map(|p| p.y / 40.0).collect();
        let rig = skinned(blend);
        assert_identity_at_rest(&rig, 1e-4);
        assert_continuous(&rig, 0.06);
    }

    #[test]
    fn bad_blends_are_named() {
        let mesh = tube();
        let new = |dual| Skinning::new(weights(&mesh), dual, &size(&mesh)).err().expect("must fail");
        assert!(matches!(new(vec![0.5]), RigError::Count { got: 1, .. }));
        let mut blend = vec![0.0; mesh.vertex_count()];
        blend[3] = f32::NAN;
        assert!(new(blend).to_string().contains("vertex 3"));
    }
}
