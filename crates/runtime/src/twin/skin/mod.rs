//! The skin twin: a small network moves bones that were found by skinning decomposition, and linear blend skinning moves
//! the vertices:
//!
//! `v_i(p) = F(p) (Σ_j w_ij M_j(p) v_i⁰ + Σ_k c_k(p) m_ik)`.
//!
//! `M_j` is affine: `M_j v = (1 + A_j)(v − centre_j) + centre_j + t_j`, twelve numbers per bone. The last layer of the
//! network reads the controls beside the hidden features, so that what is linear in the controls costs no hidden unit. `F`
//! is the motion of the whole, where there is one (as in a face twin); `m_k` are principal components of what the skin
//! leaves, where they are wanted. Start at [`SkinTwin::new`]; a [`Player`](crate::Player) evaluates it and its derivative by
//! the controls. The file format is in `file.rs`, checks and packing are in `pack.rs`.

mod evaluate;
pub(crate) mod file;
mod gradient;
mod pack;
mod play;

pub use super::shared::WEIGHT_UNITS;
pub use file::to_bytes;

use crate::Header;
use crate::dense::{Kernel, Layer, Precision};
use crate::twin::network::motion::{MotionNet, MotionParts};
use crate::twin::network::{DenseParts, NormalisedInputs};
use crate::twin::skinning::Skin;
use understudy_core::{Face, SkinWeights, Vec3};

/// Numbers of a bone: `[A | t]` by rows.
pub const BONE_NUMBERS: usize = 12;

/// The parts of a skin twin before they are checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct SkinParts {
    /// What it is. It has no bones as inputs: those that it moves are its own.
    pub header: Header,
    /// `[V]` cm.
    pub rest_vertices: Vec<Vec3>,
    /// The faces of the mesh.
    pub faces: Vec<Face>,
    /// Convex weights of the twin's own bones.
    pub weights: SkinWeights,
    /// The point of each bone about which its numbers are meant, `[B]` cm.
    pub centres: Vec<Vec3>,
    /// The motion of the whole, where it has one.
    pub frame: Option<MotionParts>,
    /// The controls that the network sees.
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// Hidden layers, tanh after each; there may be none.
    pub hidden: Vec<DenseParts>,
    /// The last layer: columns are the inputs, then the last hidden layer; rows are twelve numbers per bone, then
    /// coefficients of the components.
    pub output: DenseParts,
    /// Principal components of what the skin leaves, before the motion of the whole: `[3 V × K]` by rows, cm.
    pub components: Vec<f32>,
}

impl SkinParts {
    /// Number of components.
    pub fn component_count(&self) -> usize {
        self.components.len() / (3 * self.rest_vertices.len()).max(1)
    }
}

/// A checked, packed skin twin. Played by a [`Player`](crate::Player).
#[derive(Debug, Clone)]
pub struct SkinTwin {
    header: Header,
    precision: Precision,
    /// What it runs on.
    kernel: Kernel,
    vertex_count: usize,
    faces: Vec<Face>,
    skin: Skin,
    centres: Vec<Vec3>,
    frame: Option<MotionNet>,
    inputs: NormalisedInputs,
    hidden: Vec<Layer>,
    output: Layer,
    components: Option<Layer>,
}

impl SkinTwin {
    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How its weights are kept.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.vertex_count
    }

    /// Number of controls.
    pub fn control_count(&self) -> usize {
        self.header.inputs.controls.len()
    }

    /// Number of its own bones.
    pub fn bone_count(&self) -> usize {
        self.centres.len()
    }

    /// Number of principal components.
    pub fn component_count(&self) -> usize {
        self.components.as_ref().map_or(0, Layer::columns)
    }

    /// Bytes of its weights in memory, each of which a pose reads: of its networks and of its skin.
    pub fn network_bytes(&self) -> usize {
        self.layers().map(Layer::bytes).sum::<usize>() + self.skin.bytes()
    }

    fn layers(&self) -> impl Iterator<Item = &Layer> {
        let frame = self.frame.iter().flat_map(|frame| &frame.layers);
        self.hidden.iter().chain([&self.output]).chain(&self.components).chain(frame)
    }

    /// Multiply-adds of its networks per pose; skinning is not counted.
    pub fn multiply_adds(&self) -> usize {
        self.layers().map(|layer| layer.rows() * layer.columns()).sum()
    }
}

#[cfg(test)]
mod tests;
