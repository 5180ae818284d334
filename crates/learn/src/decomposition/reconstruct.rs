//! A decomposition weighed on meshes that it has not seen: the weights stay, the bones move to where they fit
//! the mesh best. That is the most that linear blend skinning with these weights can do, as Le and Deng
//! compare; nothing has to guess the bones from controls.

use super::animation::Animation;
use super::bones::{WeightTables, members, targets};
use super::{Decomposed, DecompositionError, DecompositionSettings, decompose};
use understudy_core::{Affine3A, Vec3};

/// Passes over the bones of a mesh.
const PASSES: usize = 300;
/// A pass that moves the vertices by less than this share of the mesh's displacement is the last.
const SHARE: f64 = 1e-5;

/// Something that comes as near to a given mesh as it can: a baseline that is shown the answer.
pub trait Reconstruction: Send + Sync {
    /// Short, for tables and JSON.
    fn name(&self) -> &str;

    /// Size of the model, without what is fitted to each mesh.
    fn bytes(&self) -> usize;

    /// The nearest mesh that it can make; `truth` and `out`: `[V]`.
    ///
    /// # Panics
    /// When the lengths are not the model's.
    fn reconstruct(&self, truth: &[Vec3], out: &mut [Vec3]);
}

/// The skin of a decomposition, ready to follow other meshes of the same topology.
pub struct DecomposedSkin {
    name: String,
    decomposed: Decomposed,
    tables: WeightTables,
    members: Vec<Vec<(u32, f64)>>,
}

impl DecomposedSkin {
    /// Decomposes training meshes, `[F][V]`, under a name for tables.
    pub fn fit(
        name: &str,
        rest: &[Vec3],
        frames: &[&[Vec3]],
        settings: &DecompositionSettings,
    ) -> Result<Self, DecompositionError> {
        decompose(rest, frames, settings, |_| true).map(|decomposed| Self::new(name, decomposed))
    }

    /// Takes a decomposition that is there already.
    pub fn new(name: &str, decomposed: Decomposed) -> Self {
        let weights = &decomposed.weights;
        let row = |vertex: usize| weights.row(vertex).map(|(bone, w)| (bone as u16, f64::from(w))).collect();
        let rows: Vec<super::simplex::Row> = (0..weights.vertex_count()).map(row).collect();
        let members = members(weights.bone_count(), &rows);
        let centre = super::animation::mean(&decomposed.rest);
        let point = |vertex: usize| {
            let p = decomposed.rest[vertex].as_dvec3() - centre;
            [p.x, p.y, p.z, 1.0]
        };
        let tables = WeightTables::new(weights.bone_count(), &rows, &members, point);
        Self { name: name.into(), tables, members, decomposed }
    }

    /// The bones and weights.
    pub fn decomposed(&self) -> &Decomposed {
        &self.decomposed
    }

    /// The rigid motions that bring the skin nearest to a mesh, `[B]`.
    pub fn pose(&self, truth: &[Vec3]) -> Result<Vec<Affine3A>, DecompositionError> {
        let animation = Animation::new(&self.decomposed.rest, &[truth])?;
        let targets = targets(&animation, &self.members);
        let mut offsets = vec![[0.0; 12]; self.members.len()];
        let moved = animation.rmse(animation.squares.iter().sum());
        self.tables.settle(&targets, &mut offsets, animation.vertices(), SHARE * moved, PASSES);
        Ok(offsets.iter().map(|offset| animation.to_affine(0, offset)).collect())
    }
}

impl Reconstruction for DecomposedSkin {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        let (_, bones, weights) = self.decomposed.weights.compressed();
        self.decomposed.rest.len() * 12 + bones.len() * 2 + weights.len() * 4
    }

    fn reconstruct(&self, truth: &[Vec3], out: &mut [Vec3]) {
        let motions = self.pose(truth).expect("a finite mesh of the model's topology");
        self.decomposed.weights.linear_blend(&motions, &self.decomposed.rest, out);
    }
}
