//! Skin weights and the two ways in which bones move vertices: linear blend and dual quaternion.

use crate::skeleton::rotation_of;
use glam::{Affine3A, Quat, Vec3, Vec3A};
use thiserror::Error;

/// What is wrong with skin weights.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SkinError {
    /// Weights of a vertex do not sum to one.
    #[error("the weights of vertex {vertex} sum to {sum}, not to 1")]
    WeightSum {
        /// The vertex.
        vertex: usize,
        /// The sum found.
        sum: f32,
    },
    /// A weight is negative or not finite.
    #[error("vertex {vertex} has weight {weight}")]
    BadWeight {
        /// The vertex.
        vertex: usize,
        /// The weight found.
        weight: f32,
    },
    /// A vertex follows a bone that does not exist.
    #[error("vertex {vertex} follows bone {bone}, but there are {count}")]
    BoneIndex {
        /// The vertex.
        vertex: usize,
        /// The bone it names.
        bone: usize,
        /// How many bones exist.
        count: usize,
    },
    /// Compressed rows that do not fit together.
    #[error("the rows of the weights do not ascend to their {bones} bones and {weights} weights")]
    Offsets {
        /// Entries in the list of bones.
        bones: usize,
        /// Entries in the list of weights.
        weights: usize,
    },
}

/// Convex weights of bones for every vertex in compressed rows; any number of influences.
#[derive(Debug, Clone, PartialEq)]
pub struct SkinWeights {
    offsets: Vec<u32>,
    bones: Vec<u16>,
    weights: Vec<f32>,
    bone_count: usize,
}

impl SkinWeights {
    /// How far a row's sum may be from one: files store weights in 8 or 16 bits.
    pub const SUM_TOLERANCE: f32 = 0.02;
    /// What rounding leaves of a normalised row of up to a hundred weights.
    const ROUNDING: f32 = 1e-5;

    /// Checks rows of `(bone, weight)`, drops zeros and makes each sum exactly one (to rounding).
    pub fn from_rows(rows: &[Vec<(u16, f32)>], bone_count: usize) -> Result<Self, SkinError> {
        let mut out = Self { offsets: vec![0], bones: Vec::new(), weights: Vec::new(), bone_count };
        for (vertex, row) in rows.iter().enumerate() {
            let mut sum = 0.0f32;
            for &(bone, weight) in row {
                if !weight.is_finite() || weight < 0.0 {
                    return Err(SkinError::BadWeight { vertex, weight });
                }
                if usize::from(bone) >= bone_count {
                    return Err(SkinError::BoneIndex { vertex, bone: bone.into(), count: bone_count });
                }
                sum += weight;
            }
            if (sum - 1.0).abs() > Self::SUM_TOLERANCE {
                return Err(SkinError::WeightSum { vertex, sum });
            }
            for &(bone, weight) in row.iter().filter(|(_, weight)| *weight > 0.0) {
                out.bones.push(bone);
                out.weights.push(weight / sum);
            }
            out.offsets.push(out.bones.len() as u32);
        }
        Ok(out)
    }

    /// Takes compressed rows as [`Self::compressed`] gives them, bit for bit: nothing is normalised, so
    /// that saving and loading is the identity. Rows must sum to one but for rounding.
    pub fn from_compressed(
        offsets: Vec<u32>,
        bones: Vec<u16>,
        weights: Vec<f32>,
        bone_count: usize,
    ) -> Result<Self, SkinError> {
        let (count, ascending) = (bones.len(), offsets.windows(2).all(|pair| pair[0] <= pair[1]));
        let covers = offsets.first() == Some(&0) && offsets.last().is_some_and(|end| *end as usize == count);
        if !ascending || !covers || weights.len() != count {
            return Err(SkinError::Offsets { bones: count, weights: weights.len() });
        }
        let out = Self { offsets, bones, weights, bone_count };
        for vertex in 0..out.vertex_count() {
            let mut sum = 0.0f32;
            for (bone, weight) in out.row(vertex) {
                if !weight.is_finite() || weight < 0.0 {
                    return Err(SkinError::BadWeight { vertex, weight });
                }
                if bone >= bone_count {
                    return Err(SkinError::BoneIndex { vertex, bone, count: bone_count });
                }
                sum += weight;
            }
            if (sum - 1.0).abs() > Self::ROUNDING {
                return Err(SkinError::WeightSum { vertex, sum });
            }
        }
        Ok(out)
    }

    /// The rows end to end: where each starts (and the end), bones, weights.
    pub fn compressed(&self) -> (&[u32], &[u16], &[f32]) {
        (&self.offsets, &self.bones, &self.weights)
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of bones of the skeleton that these weights are for.
    pub fn bone_count(&self) -> usize {
        self.bone_count
    }

    /// Bones and weights of one vertex.
    pub fn row(&self, vertex: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize;
        self.bones[range.clone()].iter().map(|b| usize::from(*b)).zip(self.weights[range].iter().copied())
    }

    /// The same with at most `most` influences a vertex, the largest, scaled to sum to one: what an engine that
    /// knows no more of them plays. The first of equal ones stays.
    ///
    /// # Panics
    /// When `most` is zero.
    pub fn strongest(&self, most: usize) -> Self {
        assert!(most > 0, "a vertex follows at least one bone");
        let row = |vertex: usize| {
            let mut row: Vec<(u16, f32)> = self.row(vertex).map(|(bone, w)| (bone as u16, w)).collect();
            row.sort_by(|a, b| b.1.total_cmp(&a.1));
            row.truncate(most);
            let sum: f32 = row.iter().map(|(_, weight)| weight).sum();
            row.iter_mut().for_each(|(_, weight)| *weight /= sum);
            row
        };
        let rows: Vec<Vec<(u16, f32)>> = (0..self.vertex_count()).map(row).collect();
        Self::from_rows(&rows, self.bone_count).expect("the largest of convex weights are positive")
    }

    /// The largest number of influences that any vertex has.
    pub fn max_influences(&self) -> usize {
        self.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }

    /// Linear blend skinning, `v_i = Σ_j w_ij M_j u_i`.
    /// `rest`: `[V]` cm. `matrices`: `[J]` rest→pose, inverse bind included. `out`: `[V]`.
    ///
    /// # Panics
    /// When the lengths disagree: callers own all three arrays.
    pub fn linear_blend(&self, matrices: &[Affine3A], rest: &[Vec3], out: &mut [Vec3]) {
        self.check_lengths(matrices.len(), rest.len(), out.len());
        for vertex in 0..out.len() {
            let point = Vec3A::from(rest[vertex]);
            let mut sum = Vec3A::ZERO;
            for (bone, weight) in self.row(vertex) {
                sum += matrices[bone].transform_point3a(point) * weight;
            }
            out[vertex] = sum.into();
        }
    }

    /// Dual-quaternion skinning (Kavan et al. 2008) of the rigid part of every matrix; no candy-wrapper
    /// collapse. Scale in the matrices is ignored.
    ///
    /// # Panics
    /// When the lengths disagree.
    pub fn dual_quaternion(&self, matrices: &[Affine3A], rest: &[Vec3], out: &mut [Vec3]) {
        let dual: Vec<DualQuaternion> = matrices.iter().map(DualQuaternion::from_affine).collect();
        self.dual_quaternion_prepared(&dual, rest, out);
    }

    /// [`Self::dual_quaternion`] with matrices already converted, for callers that must not allocate.
    ///
    /// # Panics
    /// When the lengths disagree.
    pub fn dual_quaternion_prepared(&self, dual: &[DualQuaternion], rest: &[Vec3], out: &mut [Vec3]) {
        self.check_lengths(dual.len(), rest.len(), out.len());
        for vertex in 0..out.len() {
            out[vertex] = self.blend_dual(dual, vertex).transform_point(rest[vertex]);
        }
    }

    /// The blended dual quaternion of one vertex, signs aligned with its first bone.
    pub fn blend_dual(&self, dual: &[DualQuaternion], vertex: usize) -> DualQuaternion {
        let mut row = self.row(vertex);
        let Some((first, weight)) = row.next() else { return DualQuaternion::IDENTITY };
        let pivot = dual[first].real;
        let mut real = pivot * weight;
        let mut moment = dual[first].dual * weight;
        for (bone, weight) in row {
            let signed = if pivot.dot(dual[bone].real) < 0.0 { -weight } else { weight };
            real += dual[bone].real * signed;
            moment += dual[bone].dual * signed;
        }
        let length = real.length().max(f32::MIN_POSITIVE);
        DualQuaternion { real: real * length.recip(), dual: moment * length.recip() }
    }

    fn check_lengths(&self, matrices: usize, rest: usize, out: usize) {
        assert_eq!(matrices, self.bone_count, "one matrix a bone");
        assert_eq!(rest, self.vertex_count(), "one rest position a vertex");
        assert_eq!(out, self.vertex_count(), "one result a vertex");
    }
}

/// A rigid motion as a unit dual quaternion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualQuaternion {
    /// Rotation.
    pub real: Quat,
    /// `½ t q`.
    pub dual: Quat,
}

impl DualQuaternion {
    /// Nothing moves.
    pub const IDENTITY: Self = Self { real: Quat::IDENTITY, dual: Quat::from_xyzw(0.0, 0.0, 0.0, 0.0) };

    /// The rigid part of an affine map.
    pub fn from_affine(transform: &Affine3A) -> Self {
        let real = rotation_of(transform);
        let t = transform.translation;
        Self { real, dual: Quat::from_xyzw(t.x, t.y, t.z, 0.0) * real * 0.5 }
    }

    /// Rotates and moves a point.
    pub fn transform_point(&self, point: Vec3) -> Vec3 {
        let q = Vec3::new(self.real.x, self.real.y, self.real.z);
        let d = Vec3::new(self.dual.x, self.dual.y, self.dual.z);
        let moved = 2.0 * (self.real.w * d - self.dual.w * q + q.cross(d));
        self.real * point + moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn motion(angle: f32, axis: Vec3, t: Vec3) -> Affine3A {
        Affine3A::from_rotation_translation(Quat::from_axis_angle(axis.normalize(), angle), t)
    }

    fn rig() -> (SkinWeights, Vec<Vec3>, Vec<Affine3A>) {
        let rows = vec![vec![(0, 1.0)], vec![(0, 0.5), (1, 0.5)], vec![(2, 0.2), (1, 0.3), (0, 0.5)]];
        let rest = vec![Vec3::new(10.0, 3.0, -4.0), Vec3::new(-7.0, 80.0, 2.0), Vec3::new(1.0, 150.0, 9.0)];
        let matrices = vec![
            motion(0.4, Vec3::new(1.0, 2.0, 0.5), Vec3::new(3.0, -2.0, 8.0)),
            motion(-1.2, Vec3::new(0.0, 1.0, 1.0), Vec3::new(-5.0, 0.0, 1.0)),
            motion(2.0, Vec3::X, Vec3::new(0.0, 40.0, 0.0)),
        ];
        (SkinWeights::from_rows(&rows, 3).expect("valid rows"), rest, matrices)
    }

    proptest! {
        /// Moving every bone by a rigid motion moves every vertex by it.
        #[test]
        fn rigid_motion_commutes_with_both_kinds(angle in -3.0f32..3.0, x in -1.0f32..1.0,
                                                 tx in -200.0f32..200.0, ty in -200.0f32..200.0) {
            let (weights, rest, matrices) = rig();
            let whole = motion(angle, Vec3::new(x, 1.0, 0.3), Vec3::new(tx, ty, 7.0));
            let moved: Vec<Affine3A> = matrices.iter().map(|m| whole * *m).collect();
            type Kind = fn(&SkinWeights, &[Affine3A], &[Vec3], &mut [Vec3]);
            for kind in [SkinWeights::linear_blend as Kind, SkinWeights::dual_quaternion as Kind] {
                let (mut before, mut after) = (vec![Vec3::ZERO; 3], vec![Vec3::ZERO; 3]);
                kind(&weights, &matrices, &rest, &mut before);
                kind(&weights, &moved, &rest, &mut after);
                for (b, a) in before.iter().zip(&after) {
                    prop_assert!((whole.transform_point3(*b) - *a).length() < 2e-3, "{b} {a}");
                }
            }
        }
    }

    #[test]
    fn one_bone_moves_rigidly_in_both_kinds() {
        let weights = SkinWeights::from_rows(&[vec![(0, 1.0)]], 1).expect("valid rows");
        let (rest, m) = ([Vec3::new(1.0, 2.0, 3.0)], [motion(1.0, Vec3::Z, Vec3::Y)]);
        let (mut linear, mut dual) = ([Vec3::ZERO], [Vec3::ZERO]);
        weights.linear_blend(&m, &rest, &mut linear);
        weights.dual_quaternion(&m, &rest, &mut dual);
        assert!((linear[0] - dual[0]).length() < 1e-5);
    }

    #[test]
    fn the_strongest_influences_stay_and_sum_to_one() {
        let rows = [vec![(0, 0.1), (1, 0.4), (2, 0.2), (3, 0.3)], vec![(2, 1.0)]];
        let weights = SkinWeights::from_rows(&rows, 4).expect("convex rows");
        let two = weights.strongest(2);
        let row: Vec<(usize, f32)> = two.row(0).collect();
        assert_eq!(row.iter().map(|(bone, _)| *bone).collect::<Vec<_>>(), [1, 3]);
        assert!((row[0].1 - 4.0 / 7.0).abs() < 1e-6 && (row[1].1 - 3.0 / 7.0).abs() < 1e-6, "{row:?}");
        assert_eq!(two.row(1).collect::<Vec<_>>(), [(2, 1.0)]);
        assert_eq!(weights.strongest(4).max_influences(), 4);
    }

    #[test]
    fn compressed_rows_come_back_bit_for_bit() {
        let (weights, ..) = rig();
        let (offsets, bones, values) = weights.compressed();
        let (offsets, bones, values) = (offsets.to_vec(), bones.to_vec(), values.to_vec());
        let again = |offsets: &[u32], values: &[f32], count| {
            SkinWeights::from_compressed(offsets.to_vec(), bones.clone(), values.to_vec(), count)
        };
        assert_eq!(again(&offsets, &values, 3), Ok(weights));
        assert!(matches!(again(&[0, 1, 2], &values, 3), Err(SkinError::Offsets { .. })));
        assert!(matches!(again(&[0, 3, 1, 6], &values, 3), Err(SkinError::Offsets { .. })));
        assert!(matches!(again(&[], &values, 3), Err(SkinError::Offsets { .. })));
        assert_eq!(again(&offsets, &values, 2), Err(SkinError::BoneIndex { vertex: 2, bone: 2, count: 2 }));
        let half: Vec<f32> = values.iter().map(|w| w * 0.5).collect();
        assert_eq!(again(&offsets, &half, 3), Err(SkinError::WeightSum { vertex: 0, sum: 0.5 }));
    }

    #[test]
    fn bad_rows_are_named() {
        let bad = |row: Vec<(u16, f32)>| SkinWeights::from_rows(&[vec![(0, 1.0)], row], 2);
        assert_eq!(bad(vec![(0, 0.7)]), Err(SkinError::WeightSum { vertex: 1, sum: 0.7 }));
        assert!(matches!(bad(vec![(0, f32::NAN)]), Err(SkinError::BadWeight { vertex: 1, .. })));
        assert_eq!(bad(vec![(2, 1.0)]), Err(SkinError::BoneIndex { vertex: 1, bone: 2, count: 2 }));
    }
}
