//! The face twin: small networks decode maps of offsets in texture space, vertices sample them.
//!
//! `V(p) = F(p) · (V⁰ + Σ sample(map(p), U))`: a coarse network per segment decodes 32×32 pixels, refinement
//! networks 64×64 for crowded regions, rigid segments follow ten vertices each. Ours: where
//! the whole head moves a small network gives its frame `F`, and a body like an eye has one of its own. Start at
//! [`FaceTwin::new`]; a [`Player`](crate::Player) evaluates it and its derivative by the controls. The file format is in
//! `file.rs`, checks are in `check.rs`, packing is in `pack.rs`.

mod check;
mod evaluate;
pub(crate) mod file;
mod gradient;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod map_decoder;
#[cfg(not(feature = "internals"))]
mod map_decoder;
mod pack;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod pixel_weights;
#[cfg(not(feature = "internals"))]
mod pixel_weights;
mod play;
mod point;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod rigid;
#[cfg(not(feature = "internals"))]
mod rigid;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod sample;
#[cfg(not(feature = "internals"))]
mod sample;
mod stencil;

pub(crate) use evaluate::Workspace;
pub use file::to_bytes;
pub(crate) use gradient::{GradientSpace, LocalDecoders};
pub use map_decoder::MapShape;

use crate::Header;
use crate::dense::{Kernel, Layer, Packed, Precision};
use crate::twin::network::motion::{MotionNet, MotionParts};
use crate::twin::network::{DenseParts, NormalisedInputs};
use map_decoder::MapDecoder;
use sample::BilinearSample;
use serde::{Deserialize, Serialize};
use understudy_core::{Mesh, Vec2, Vec3};

/// Slope of the rectifiers below zero.
pub const LEAK: f32 = 0.2;

/// When a network was trained, and what it adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Offsets from the rest pose.
    Coarse,
    /// What the coarse networks leave.
    Refinement,
}

/// The convolutions of a network and where its vertices sample.
#[derive(Debug, Clone, PartialEq)]
pub struct MapParts {
    /// Sizes.
    pub shape: MapShape,
    /// As [`MapShape::parameter_count`] orders them.
    pub parameters: Vec<f32>,
    /// Where each vertex samples, in pixels of the map, `[P]`.
    pub coordinates: Vec<Vec2>,
}

/// One network: controls in, offsets of its vertices out.
#[derive(Debug, Clone, PartialEq)]
pub struct NetParts {
    /// The segment or region.
    pub name: String,
    /// What it adds to.
    pub stage: Stage,
    /// Which vertices.
    pub vertices: Vec<u32>,
    /// The controls that it sees.
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// The dense layers; see [`NetParts::rectified`] for what stands between them.
    pub dense: Vec<DenseParts>,
    /// The map that the dense layers begin; `None`: the last layer gives three numbers per vertex.
    pub map: Option<MapParts>,
}

impl NetParts {
    /// How many of a dense layer's outputs a leaky rectifier follows: all of them, but not the numbers that all
    /// pixels of a map read, nor three numbers per vertex.
    pub fn rectified(&self, layer: usize) -> usize {
        match &self.map {
            _ if layer + 1 < self.dense.len() => self.dense[layer].bias.len(),
            Some(map) => map.shape.first_image(),
            None => 0,
        }
    }
}

/// A segment that moves rigidly with some vertices of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigidParts {
    /// The segment.
    pub name: String,
    /// Which vertices.
    pub vertices: Vec<u32>,
    /// Whose motion they follow.
    pub follows: Vec<u32>,
}

/// A segment that moves rigidly by a motion of its own, inside the head's: an eye, gums.
#[derive(Debug, Clone, PartialEq)]
pub struct RigidBodyParts {
    /// The segment.
    pub name: String,
    /// Which vertices.
    pub vertices: Vec<u32>,
    /// How they move.
    pub motion: MotionParts,
}

/// The parts of a face twin before they are checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceParts {
    /// What it is.
    pub header: Header,
    /// The rest mesh: positions, faces, texture coordinates, segments.
    pub mesh: Mesh,
    /// The motion of the whole head, where it has one.
    pub frame: Option<MotionParts>,
    /// A vertex belongs to at most one network of each stage; one in none stays where it rests.
    pub nets: Vec<NetParts>,
    /// Vertices of bodies belong to no network.
    pub bodies: Vec<RigidBodyParts>,
    /// Vertices of rigid segments belong to no network and no body.
    pub rigid: Vec<RigidParts>,
}

/// A checked, packed face twin. Weights are in memory once, as kernels read them; [`FaceTwin::parts`] unpacks them.
/// Played by a [`Player`](crate::Player).
#[derive(Debug, Clone)]
pub struct FaceTwin {
    header: Header,
    mesh: Mesh,
    precision: Precision,
    /// What it was packed for.
    kernel: Kernel,
    nets: Vec<Net>,
    frame: Option<MotionNet>,
    bodies: Vec<RigidBody>,
    rigid: Vec<RigidParts>,
    rest_normals: Vec<Vec3>,
    /// Whether the maps carry normals.
    with_normals: bool,
}

/// A network as evaluation wants it.
#[derive(Debug, Clone)]
struct Net {
    name: String,
    stage: Stage,
    vertices: Vec<u32>,
    inputs: NormalisedInputs,
    layers: Vec<Layer>,
    /// How many of each layer's outputs a leaky rectifier follows.
    rectified: Vec<usize>,
    map: Option<Map>,
}

/// The map of a network and where its vertices sample it.
#[derive(Debug, Clone)]
struct Map {
    decoder: MapDecoder,
    samples: Vec<BilinearSample>,
    /// What the decoder has only in another form: the convolutions' parameters, and those of the last one where pixels
    /// share them.
    parameters: Packed,
    coordinates: Vec<Vec2>,
}

/// A rigid body as evaluation wants it.
#[derive(Debug, Clone)]
struct RigidBody {
    name: String,
    vertices: Vec<u32>,
    motion: MotionNet,
}

impl FaceTwin {
    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The rest mesh: positions, faces, texture coordinates, segments.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// How its weights are kept.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.mesh.vertex_count()
    }

    /// Number of controls.
    pub fn control_count(&self) -> usize {
        self.header.inputs.controls.len()
    }

    /// Whether some of its networks refine what the others give.
    pub fn has_refinement(&self) -> bool {
        self.nets.iter().any(|net| net.stage == Stage::Refinement)
    }

    /// The twin without its refinement networks: the coarse twin that the paper compares with.
    pub fn coarse(&self) -> Self {
        let nets = self.nets.iter().filter(|net| net.stage == Stage::Coarse).cloned().collect();
        Self { nets, ..self.clone() }
    }

    fn motions(&self) -> impl Iterator<Item = &MotionNet> {
        self.frame.iter().chain(self.bodies.iter().map(|body| &body.motion))
    }

    /// Multiply-adds of all networks for one pose, pixels that nobody samples left out.
    pub fn multiply_adds(&self) -> usize {
        let motions = self.motions().flat_map(|net| &net.layers);
        self.nets.iter().map(Net::multiply_adds).sum::<usize>()
            + motions.map(|l| l.rows() * l.columns()).sum::<usize>()
    }

    /// Bytes of packed weights.
    pub fn network_bytes(&self) -> usize {
        let decoder = |net: &Net| net.map.as_ref().map_or(0, |map| map.decoder.shape().parameter_count() * 4);
        let motions = self.motions().flat_map(|net| &net.layers);
        let layers = self.nets.iter().flat_map(|net| &net.layers).chain(motions);
        layers.map(Layer::bytes).sum::<usize>() + self.nets.iter().map(decoder).sum::<usize>()
    }
}

impl Net {
    fn multiply_adds(&self) -> usize {
        let dense: usize = self.layers.iter().map(|l| l.rows() * l.columns()).sum();
        dense + self.map.as_ref().map_or(0, |map| map.decoder.multiply_adds())
    }
}

#[cfg(test)]
pub(crate) mod tests;
