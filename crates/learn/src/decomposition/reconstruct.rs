//! A decomposition weighed on meshes that it has not seen: the weights stay, the bones move to where they fit
//! the mesh best. That is the most that linear blend skinning with these weights can do, as Le and Deng
//! compare; nothing has to guess the bones from controls.

use super::animation::Animation;
use super::bones::{WeightTables, members, targets};
use super::{DecompositionError, DecompositionSettings, decompose};
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Passes over the bones of a mesh.
const PASSES: usize = 300;
/// A pass that moves the vertices by less than this share of the mesh's displacement is the last.
const SHARE: f64 = 1e-5;

/// The skin of a decomposition, ready to follow other meshes of the same topology.
pub struct DecomposedSkin {
    name: String,
    rest: Vec<Vec3>,
    weights: SkinWeights,
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
        decompose(rest, frames, settings, |_| true)
            .map(|decomposed| Self::new(name, decomposed.rest, decomposed.weights))
    }

    /// Takes the weights of a decomposition that is there already, one row for every rest vertex.
    pub fn new(name: &str, rest: Vec<Vec3>, weights: SkinWeights) -> Self {
        let row = |vertex: usize| weights.row(vertex).map(|(bone, w)| (bone as u16, f64::from(w))).collect();
        let rows: Vec<super::simplex::Row> = (0..weights.vertex_count()).map(row).collect();
        let members = members(weights.bone_count(), &rows);
        let centre = super::animation::mean(&rest);
        let point = |vertex: usize| {
            let p = rest[vertex].as_dvec3() - centre;
            [p.x, p.y, p.z, 1.0]
        };
        let tables = WeightTables::new(weights.bone_count(), &rows, &members, point);
        Self { name: name.into(), tables, members, rest, weights }
    }

    /// The rest pose, `[V]`.
    pub fn rest(&self) -> &[Vec3] {
        &self.rest
    }

    /// Its weights.
    pub fn weights(&self) -> &SkinWeights {
        &self.weights
    }

    /// The rigid motions that bring the skin nearest to a mesh, `[B]`.
    pub fn pose(&self, truth: &[Vec3]) -> Result<Vec<Affine3A>, DecompositionError> {
        let animation = Animation::new(&self.rest, &[truth])?;
        let targets = targets(&animation, &self.members);
        let mut offsets = vec![[0.0; 12]; self.members.len()];
        let moved = animation.rmse(animation.squares.iter().sum());
        self.tables.settle(&targets, &mut offsets, animation.vertices(), SHARE * moved, PASSES);
        Ok(offsets.iter().map(|offset| animation.to_affine(0, offset)).collect())
    }

    /// Short, for tables and JSON.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size of the model, without what is fitted to each mesh.
    pub fn bytes(&self) -> usize {
        let (_, bones, weights) = self.weights.compressed();
        self.rest.len() * 12 + bones.len() * 2 + weights.len() * 4
    }
}
