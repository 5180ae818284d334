//! Skinned meshes as baselines: linear blend skinning and rigid skinning, its case of one influence. How weights are
//! fitted is in [`crate::skinning`].

use super::{Approximation, Examples, Parameters, SKINNING_POSES};
use crate::Frame;
use crate::skinning::fit_skinning;
use understudy_core::metrics::best_bones;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// A skinned mesh: what every engine can play.
#[derive(Debug, Clone)]
pub struct Skinned {
    /// `lbs`, `lbs4`, `lbs_all`, `rigid`.
    pub name: String,
    /// `[V]` cm.
    pub rest: Vec<Vec3>,
    /// World → bone in the rest pose, `[J]`.
    pub inverse_rest: Vec<Affine3A>,
    /// Convex weights.
    pub weights: SkinWeights,
}

impl Skinned {
    /// The best single bone a vertex.
    pub fn rigid(examples: &Examples<'_>) -> Self {
        let poses = examples.skinning(SKINNING_POSES);
        let best = best_bones(examples.rest, &poses);
        let rows: Vec<Vec<(u16, f32)>> = best.bones.iter().map(|bone| vec![(*bone as u16, 1.0)]).collect();
        Self::new("rigid", examples, &rows)
    }

    /// The best `influences` bones a vertex, chosen among the `candidates` that explain it best alone.
    pub fn fit(name: &str, examples: &Examples<'_>, influences: usize, candidates: usize) -> Self {
        let poses = examples.skinning(SKINNING_POSES);
        let weights = fit_skinning(examples.rest, &poses, influences, candidates);
        let rest = examples.rest.to_vec();
        Self { name: name.into(), rest, inverse_rest: examples.inverse_rest.to_vec(), weights }
    }

    /// A skin from what [`Approximation::parameters`] gave; `None` where it is of another mesh or skeleton.
    pub fn restore(name: &str, examples: &Examples<'_>, parameters: &Parameters) -> Option<Self> {
        let ([offsets, bones], [weights]) = (&parameters.integers[..], &parameters.floats[..]) else {
            return None;
        };
        let bones = bones.iter().map(|bone| u16::try_from(*bone).ok()).collect::<Option<Vec<u16>>>()?;
        let count = examples.inverse_rest.len();
        let weights = SkinWeights::from_compressed(offsets.clone(), bones, weights.clone(), count).ok()?;
        let (rest, inverse_rest) = (examples.rest.to_vec(), examples.inverse_rest.to_vec());
        (weights.vertex_count() == rest.len()).then(|| Self {
            name: name.into(),
            rest,
            inverse_rest,
            weights,
        })
    }

    /// Moves the vertices by the bones' world transforms.
    pub fn skin(&self, bones: &[Affine3A], out: &mut [Vec3]) {
        let matrices: Vec<Affine3A> = bones.iter().zip(&self.inverse_rest).map(|(b, r)| *b * *r).collect();
        self.weights.linear_blend(&matrices, &self.rest, out);
    }

    fn new(name: &str, examples: &Examples<'_>, rows: &[Vec<(u16, f32)>]) -> Self {
        let weights = SkinWeights::from_rows(rows, examples.inverse_rest.len()).expect("one bone a vertex");
        let rest = examples.rest.to_vec();
        Self { name: name.into(), rest, inverse_rest: examples.inverse_rest.to_vec(), weights }
    }
}

impl Approximation for Skinned {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let entries: usize = (0..self.rest.len()).map(|v| self.weights.row(v).count()).sum();
        entries * 6 + self.rest.len() * 12
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        self.skin(frame.bones, out);
    }

    fn parameters(&self) -> Parameters {
        let (offsets, bones, weights) = self.weights.compressed();
        let bones = bones.iter().map(|bone| u32::from(*bone)).collect();
        Parameters { integers: vec![offsets.to_vec(), bones], floats: vec![weights.to_vec()] }
    }
}
