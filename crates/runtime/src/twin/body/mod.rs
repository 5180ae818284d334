//! The body twin: every vertex follows one bone, and a small network per group of vertices
//! adds what the bone does not explain, in that bone's frame:
//!
//! `d̃_k(S) = d̂_k(S) + X_b n_k(S)` (body-twin paper, eq. 2.4).
//!
//! Start at [`BodyTwin::new`]; a [`Player`](crate::Player) evaluates it. The file format is in `file.rs`, checks and packing
//! are in `pack.rs`.

mod decoder;
mod evaluate;
pub(crate) mod file;
mod input_features;
mod pack;
mod play;
mod seam_correction;

#[doc(hidden)]
pub use evaluate::BLOCK;
pub(crate) use evaluate::Workspace;
pub use file::to_bytes;
pub use seam_correction::SeamCorrection;

use super::skinning::Skin;
use crate::Header;
use crate::dense::{Activation, Layer, Precision};
use crate::mechanism::Mechanism;
use decoder::{Decoder, Form};
use seam_correction::PackedSeams;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use understudy_core::{Affine3A, Face, SkinWeights, Vec3};

/// Numbers that a bone gives to a network: its transform in its parent's frame, column by column.
pub const BONE_INPUTS: usize = 12;

/// The frame in which a network sees the bones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputFrame {
    /// Each bone in its parent's frame, as the paper has it.
    #[default]
    Parent,
    /// Each bone in the frame of the group's own bone: what touches the group lies there at once, and no
    /// network has to learn the composition of a chain of rotations.
    Group,
}

/// One layer before it is packed: row-major weights `[rows × columns]`.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerParts {
    /// `[rows × columns]`.
    pub weights: Vec<f32>,
    /// `[rows]`.
    pub bias: Vec<f32>,
    /// What follows.
    pub activation: Activation,
    /// How its weights are stored.
    pub storage: Storage,
}

/// How the weights of one layer are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// In the twin's precision.
    #[default]
    Plain,
    /// In 32 bits, whatever the twin's precision: where 16 would show.
    Single,
    /// In 16 bits as multiples of 2⁻¹⁵ between −1 and 1. Only a group's last layer may be: what a column is
    /// multiplied with goes to the layer before.
    Fixed,
}

impl Storage {
    /// The nearest weight that [`Storage::Fixed`] holds; `None` beyond −1 and 1.
    pub fn fixed(weight: f32) -> Option<f32> {
        decoder::to_fixed(weight).map(|steps| f32::from(steps) * decoder::STEP)
    }
}

impl LayerParts {
    /// How its weights are stored in a twin of that precision.
    fn form(&self, twin: Precision) -> Form {
        match (self.storage, twin) {
            (Storage::Fixed, _) => Form::Fixed,
            (Storage::Plain, Precision::Half) => Form::Half,
            (Storage::Plain, Precision::Single) | (Storage::Single, _) => Form::Single,
        }
    }
}

/// The vertices of one bone and their network.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupParts {
    /// The bone in whose frame the network speaks.
    pub bone: usize,
    /// Which vertices.
    pub vertices: Vec<u32>,
    /// Vertices of other groups that the network speaks of too, for [`SeamCorrection`].
    pub ghosts: Vec<u32>,
    /// Indices into the inputs of the whole twin: `12 · bone + number`, then controls.
    pub inputs: Vec<u32>,
    /// Subtracted from each input.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// The last gives three numbers per vertex, ghosts after the group's own; empty for a group that only
    /// follows its bone.
    pub layers: Vec<LayerParts>,
}

/// The parts of a twin before they are checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct BodyParts {
    /// What it is; its controls are those that are inputs beside the bones.
    pub header: Header,
    /// How networks see the bones.
    pub frame: InputFrame,
    /// Whether frames of bones are taken without scale and shear (`rigid_frame` in core): networks then see and say
    /// lengths in cm. Where no bone stretches both are the same and this is off; twins of before had no choice.
    pub rigid_frames: bool,
    /// `[V]` cm.
    pub rest_vertices: Vec<Vec3>,
    /// World transforms in the rest pose, `[J]`.
    pub rest_bones: Vec<Affine3A>,
    /// The linear base: `None` follows the group's one bone, else linear blend skinning.
    pub base: Option<SkinWeights>,
    /// The faces, for normals; may be empty.
    pub faces: Vec<Face>,
    /// Together they hold every vertex once.
    pub groups: Vec<GroupParts>,
    /// What closes the seams between groups; `None` leaves them as they are.
    pub seams: Option<SeamCorrection>,
}

/// A checked, packed twin. Weights are in memory once, as kernels read them; [`BodyTwin::parts`] unpacks them. Played by
/// a [`Player`](crate::Player).
#[derive(Debug, Clone)]
pub struct BodyTwin {
    header: Header,
    /// Poses it by controls alone.
    pub(crate) mechanism: Option<Arc<Mechanism>>,
    frame: InputFrame,
    rigid_frames: bool,
    precision: Precision,
    vertex_count: usize,
    rest_bones: Vec<Affine3A>,
    inverse_rest: Vec<Affine3A>,
    faces: Vec<Face>,
    base: Base,
    groups: Vec<Group>,
    /// Number of ghosts of all groups.
    ghosts: usize,
    seams: Option<(SeamCorrection, PackedSeams)>,
}

/// What moves the vertices before networks add to it.
#[derive(Debug, Clone)]
enum Base {
    /// The group's bone: rest places, `[V]` cm.
    Bone(Vec<Vec3>),
    /// Linear blend skinning, which has the rest places.
    Skin(Skin),
}

impl Base {
    fn skin(&self) -> Option<&Skin> {
        match self {
            Self::Bone(_) => None,
            Self::Skin(skin) => Some(skin),
        }
    }
}

/// Inputs of a group that come from one bone.
#[derive(Debug, Clone, Copy)]
struct BoneInputs {
    /// One beyond the last stands for controls.
    bone: usize,
    /// Where they end among all inputs.
    end: usize,
    /// Whether they are its twelve numbers in their order.
    whole: bool,
}

/// A group as evaluation wants it.
#[derive(Debug, Clone)]
struct Group {
    bone: usize,
    /// Its own vertices, and the ghosts, in the order of the parts.
    vertices: [Vec<u32>; 2],
    /// Indices into the inputs of the whole twin, and how each is normalised.
    inputs: Vec<u32>,
    mean: Vec<f32>,
    scale: Vec<f32>,
    /// Bones that it sees, in the order of its inputs.
    bone_inputs: Vec<BoneInputs>,
    /// Which of its bone's twelve numbers each input is.
    numbers: Vec<u8>,
    /// All but the last.
    layers: Vec<Layer>,
    /// Whether there is a last layer; without one the group only follows its bone.
    has_network: bool,
    /// The last layer and the bone's motion of the group's own vertices.
    decoder: Decoder,
    /// The same of the ghosts, which go to their places in the list of all ghosts.
    ghosts: Decoder,
    /// The last layer's bias where decoders have it only with the rest places added, else empty.
    bias: Vec<f32>,
}

impl Group {
    fn multiply_adds(&self) -> usize {
        let hidden: usize = self.layers.iter().map(|l| l.rows() * l.columns()).sum();
        hidden + self.decoder.multiply_adds() + self.ghosts.multiply_adds()
    }
}

impl BodyTwin {
    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The precision that it was packed in, but for layers that say otherwise ([`Storage`]).
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.vertex_count
    }

    /// Number of bones.
    pub fn bone_count(&self) -> usize {
        self.header.inputs.bones.len()
    }

    /// Number of controls that are inputs beside the bones.
    pub(crate) fn extra_count(&self) -> usize {
        self.header.inputs.controls.len()
    }

    /// The faces, for normals; empty where nobody gave any.
    pub fn faces(&self) -> &[Face] {
        &self.faces
    }

    /// World transforms of its bones at rest, cm.
    pub fn rest_bones(&self) -> &[Affine3A] {
        &self.rest_bones
    }

    /// Bytes of packed weights and biases, those of the linear base too.
    pub fn network_bytes(&self) -> usize {
        let layers = |g: &Group| g.layers.iter().map(Layer::bytes).sum::<usize>();
        let groups = self.groups.iter().map(|g| layers(g) + g.decoder.bytes() + g.ghosts.bytes());
        groups.sum::<usize>() + self.base.skin().map_or(0, Skin::bytes)
    }

    /// Multiply-adds of all networks for one pose.
    pub fn multiply_adds(&self) -> usize {
        self.groups.iter().map(Group::multiply_adds).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests;
