//! The differential twin: networks in Laplacian coordinates, folded at the end of learning into one linear map, so that
//! playing only multiplies:
//!
//! `v_i = T_i (p_i + Σ_k b_ik c_k)`, `c = f(x) + S a(x) + G x` (paper of the method, eq. 10 and 16 folded).
//!
//! `f` is the differential network, `a` the mini-networks of the anchors, `G` what is linear in the features, `S` and `b`
//! what reconstruction and compression leave of the solve, and `T_i` linear blend skinning where the rig has bones. Start at [`DiffTwin::new`]; a
//! [`Player`](crate::Player) evaluates it. The file format is in `file.rs`, checks and packing are in `pack.rs`.

mod evaluate;
pub(crate) mod file;
mod gradient;
mod pack;
mod play;

pub use file::to_bytes;

use super::skinning::Skin;
use crate::Header;
use crate::dense::{Layer, Precision};
use crate::mechanism::Mechanism;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use understudy_core::{Affine3A, Face, SkinWeights, Vec3};

/// Numbers that a bone gives to the networks: its transform in its parent's frame, column by column.
pub const BONE_INPUTS: usize = 12;

/// What follows every layer of a network but the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenActivation {
    /// `max(x, 0)`, as the paper has it.
    #[default]
    Relu,
    /// Smooth, which suits few poses.
    Tanh,
}

/// One layer before it is packed.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNumbers {
    /// `[rows × columns]` by rows.
    pub weights: Vec<f32>,
    /// `[rows]`.
    pub bias: Vec<f32>,
}

/// What the networks see (eq. 9).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FeatureParts {
    /// Indices into the inputs of the whole twin: `12 · bone + number`, then controls.
    pub inputs: Vec<u32>,
    /// Subtracted from each input.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
}

/// The mini-network of an anchor.
#[derive(Debug, Clone, PartialEq)]
pub struct AnchorParts {
    /// The vertex whose displacement it gives.
    pub vertex: u32,
    /// Which features it sees.
    pub features: Vec<u32>,
    /// The last gives three numbers.
    pub layers: Vec<LayerNumbers>,
}

/// `T_i`: linear blend skinning.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearSkinParts {
    /// World transforms where the mesh is bound, `[J]`.
    pub rest_bones: Vec<Affine3A>,
    /// `[V]`.
    pub weights: SkinWeights,
}

/// The parts of a twin before they are checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffParts {
    /// What it is. With bones its controls are those that matter beside them, else all of the rig's.
    pub header: Header,
    /// The faces, for normals; may be empty.
    pub faces: Vec<Face>,
    /// `None` for a rig without bones.
    pub skin: Option<LinearSkinParts>,
    /// What networks see.
    pub features: FeatureParts,
    /// Of all networks.
    pub activation: HiddenActivation,
    /// The differential network; the last layer gives the coefficients.
    pub differential: Vec<LayerNumbers>,
    /// The mini-networks; all have the same hidden widths.
    pub anchors: Vec<AnchorParts>,
    /// What anchors add to the coefficients, `[R × 3A]` by rows.
    pub subspace: Vec<f32>,
    /// What features add to the coefficients without any network, `[R × F]` by rows; empty where nothing.
    pub linear: Vec<f32>,
    /// Of every run of [`BLOCK_VERTICES`] vertices how many coefficients of its own it is decoded from, `r`. Empty where
    /// all are decoded from the `R` of the whole twin.
    pub block_ranks: Vec<u32>,
    /// How these follow from those of the whole twin, `[r × R]` by rows, one run after another; empty with the above.
    pub mixes: Vec<f32>,
    /// `[3n × r]` by rows, one run of `n` vertices after another: x, y and z of a vertex, then the next.
    pub basis: Vec<f32>,
    /// Places before skinning when all coefficients are zero, `[V]` cm.
    pub places: Vec<Vec3>,
}

/// A checked, packed twin. Weights are in memory once, as kernels read them; [`DiffTwin::parts`] unpacks them.
#[derive(Debug, Clone)]
pub struct DiffTwin {
    header: Header,
    /// Poses it by controls alone.
    pub(crate) mechanism: Option<Arc<Mechanism>>,
    precision: Precision,
    faces: Vec<Face>,
    /// With the transforms that bring the bones to rest.
    skin: Option<PackedSkin>,
    features: FeatureParts,
    /// Bones whose numbers are features, each with its parent, ascending.
    seen_bones: Vec<(usize, usize)>,
    activation: HiddenActivation,
    differential: Vec<Layer>,
    anchors: Vec<Anchor>,
    /// `None` without anchors.
    subspace: Option<Layer>,
    /// `None` where features add nothing by themselves.
    linear: Option<Layer>,
    /// Vertices in runs of [`BLOCK_VERTICES`].
    blocks: Vec<Block>,
    vertex_count: usize,
    rank: usize,
}

#[derive(Debug, Clone)]
struct PackedSkin {
    rest_bones: Vec<Affine3A>,
    inverse_rest: Vec<Affine3A>,
    weights: Skin,
}

#[derive(Debug, Clone)]
struct Anchor {
    vertex: u32,
    features: Vec<u32>,
    layers: Vec<Layer>,
}

/// Some vertices.
#[derive(Debug, Clone)]
struct Block {
    /// From coefficients of the whole twin to its own; `None` where they are the same.
    mix: Option<Layer>,
    /// Rows are x of eight vertices, y, z, then the next eight.
    decode: Layer,
}

/// Vertices that one task decodes: a whole number of panels of eight.
pub const BLOCK_VERTICES: usize = 512;

impl DiffTwin {
    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The precision that it was packed in.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.vertex_count
    }

    /// Number of bones; none where it is posed by controls alone.
    pub fn bone_count(&self) -> usize {
        self.header.inputs.bones.len()
    }

    /// World transforms of the bones where the mesh is bound; empty where it is posed by controls alone.
    pub fn rest_bones(&self) -> &[Affine3A] {
        self.skin.as_ref().map_or(&[], |skin| &skin.rest_bones)
    }

    /// Number of anchors.
    pub fn anchor_count(&self) -> usize {
        self.anchors.len()
    }

    /// Number of coefficients that vertices are decoded from.
    pub fn rank(&self) -> usize {
        self.rank
    }

    fn layers(&self) -> impl Iterator<Item = &Layer> {
        let anchors = self.anchors.iter().flat_map(|anchor| &anchor.layers);
        let blocks = self.blocks.iter().flat_map(|block| block.mix.iter().chain([&block.decode]));
        let folded = self.subspace.iter().chain(&self.linear).chain(blocks);
        self.differential.iter().chain(anchors).chain(folded)
    }

    /// Multiply-adds of all networks and of the reconstruction for one pose.
    pub fn multiply_adds(&self) -> usize {
        self.layers().map(|layer| layer.rows() * layer.columns()).sum()
    }

    /// Bytes of packed weights and biases, and of the skin.
    pub fn network_bytes(&self) -> usize {
        let skin = self.skin.as_ref().map_or(0, |skin| skin.weights.bytes());
        self.layers().map(Layer::bytes).sum::<usize>() + skin
    }
}

#[cfg(test)]
pub(crate) mod tests;
