//! The nonlinear displacement before skinning, `v_nl = T_i⁻¹ ṽ_i − v_i` (eq. 14), with a guard where a blend of bones is
//! near-singular.

use understudy_core::{Affine3A, Mat3, SkinWeights, Vec3};

/// A blend whose volume is below this share of what its size suggests flattens what it moves: opposite rotations cancel.
const SINGULAR: f32 = 0.05;
/// How strongly the displacement is then held at zero, as a share of the blend's size.
const DAMPING: f32 = 0.3;

/// `T_i` of every vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct Unskinning {
    /// What the twin will evaluate; `None` where it has no bones, and `T_i` is the identity.
    pub weights: Option<SkinWeights>,
    /// World → bone where the mesh is bound, `[J]`.
    pub inverse_bind: Vec<Affine3A>,
    /// The rest mesh, `[V]` cm.
    pub rest: Vec<Vec3>,
}

impl Unskinning {
    /// Rest → pose of every bone, `[J]`.
    pub fn skinning_matrices(&self, bones: &[Affine3A]) -> Vec<Affine3A> {
        bones.iter().zip(&self.inverse_bind).map(|(bone, bind)| *bone * *bind).collect()
    }

    /// `T_i` of one vertex.
    pub fn transform(&self, vertex: usize, matrices: &[Affine3A]) -> Affine3A {
        let Some(weights) = &self.weights else { return Affine3A::IDENTITY };
        let mut sum = Affine3A::from_mat3_translation(Mat3::ZERO, Vec3::ZERO);
        for (bone, weight) in weights.row(vertex) {
            sum.matrix3 += matrices[bone].matrix3 * weight;
            sum.translation += matrices[bone].translation * weight;
        }
        sum
    }

    /// `v_nl` of one vertex that the rig moved to `moved`, and whether its blend was near-singular.
    pub fn displacement(&self, vertex: usize, matrices: &[Affine3A], moved: Vec3) -> (Vec3, bool) {
        let rest = self.rest[vertex];
        if self.weights.is_none() {
            return (moved - rest, false);
        }
        let blend = self.transform(vertex, matrices);
        let linear = Mat3::from(blend.matrix3);
        let target = moved - Vec3::from(blend.translation);
        let squares: f32 = linear.to_cols_array().iter().map(|n| n * n).sum();
        let size = (squares / 3.0).sqrt();
        if linear.determinant().abs() > SINGULAR * size.powi(3) {
            return (linear.inverse() * target - rest, false);
        }
        // min ‖X (v + d) − target‖² + λ ‖d‖²: bounded whatever X is.
        let damping = (DAMPING * size).powi(2).max(f32::MIN_POSITIVE);
        let normal = linear.transpose() * linear + Mat3::from_diagonal(Vec3::splat(damping));
        let right = linear.transpose() * (target - linear * rest);
        let damped = normal.inverse() * right;
        (if damped.is_finite() { damped } else { Vec3::ZERO }, true)
    }

    /// `v_nl` of all vertices of a pose, `[V]` cm, and how many blends were near-singular.
    pub fn displacements(&self, bones: &[Affine3A], vertices: &[Vec3]) -> (Vec<Vec3>, usize) {
        let matrices = self.skinning_matrices(bones);
        let mut singular = 0;
        let mut one = |(vertex, moved): (usize, &Vec3)| {
            let (displacement, guarded) = self.displacement(vertex, &matrices, *moved);
            singular += usize::from(guarded);
            displacement
        };
        let all = vertices.iter().enumerate().map(&mut one).collect();
        (all, singular)
    }

    /// `T_i v_i` of all vertices: what skinning alone gives.
    pub fn skinned(&self, bones: &[Affine3A], out: &mut [Vec3]) {
        match &self.weights {
            None => out.copy_from_slice(&self.rest),
            Some(weights) => weights.linear_blend(&self.skinning_matrices(bones), &self.rest, out),
        }
    }
}
