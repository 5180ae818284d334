//! The face twin (METHODS M2): small networks draw maps of offsets in texture space, vertices sample them.
//!
//! `V(p) = F(p) · (V⁰ + Σ sample(map(p), U))`: a coarse network a segment draws 32×32 pixels, refinement
//! networks draw 64×64 for crowded regions, rigid segments follow ten vertices each. Ours: where
//! the whole head moves a small network gives its frame `F`, and a body like an eye has one of its own. Start at [`FaceTwin::new`] and
//! [`FaceTwin::evaluate`]; the derivative by the controls is [`FaceTwin::backward`], the file format is in
//! [`mod@file`].

mod check;
mod evaluate;
pub mod file;
mod gradient;
pub mod map_decoder;
pub mod motion;
pub mod pixel_weights;
mod point;
pub mod rigid;
pub mod sample;
pub mod stencil;

pub use evaluate::Workspace;
pub use gradient::GradientSpace;

use crate::dense::{Layer, LayerError, Precision};
use map_decoder::{MapDecoder, MapShape};
use motion::MotionNet;
use sample::BilinearSample;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::{ControlSpecs, Mesh, Vec2, Vec3};

/// Slope of the rectifiers below zero.
pub const LEAK: f32 = 0.2;

/// What is wrong with the parts of a face twin or a pose for it.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FaceError {
    /// An array of the wrong length.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: String,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// An index out of range.
    #[error("{what}: {index} is out of range, there are {count}")]
    Index {
        /// What it names.
        what: String,
        /// The index.
        index: usize,
        /// How many exist.
        count: usize,
    },
    /// Two parts of the twin claim one vertex.
    #[error("vertex {vertex} is moved by two {what}")]
    Cover {
        /// The vertex.
        vertex: usize,
        /// Networks of one stage, or rigid segments.
        what: &'static str,
    },
    /// A rigid segment follows itself or another one.
    #[error("rigid segment {segment} follows vertex {vertex}, which is rigid itself")]
    FollowsRigid {
        /// The segment.
        segment: usize,
        /// The vertex.
        vertex: usize,
    },
    /// A layer that is not valid.
    #[error("{network}, layer {layer}: {error}")]
    Layer {
        /// The network.
        network: String,
        /// The layer.
        layer: usize,
        /// Why.
        error: LayerError,
    },
    /// Sizes of a decoder network that make no sense.
    #[error("{network}: a decoder of {shape:?}")]
    Shape {
        /// The network.
        network: String,
        /// Its sizes.
        shape: MapShape,
    },
    /// A number that is not finite.
    #[error("{what}: entry {index} is not finite")]
    NonFinite {
        /// Which array.
        what: String,
        /// Where.
        index: usize,
    },
    /// Some networks transform normals and some do not.
    #[error("{network}: some networks draw normals and some do not")]
    Normals {
        /// The first that differs.
        network: String,
    },
}

/// Everything about a face twin but its numbers; kept as JSON in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaceHeader {
    /// The rig it was learned from.
    pub rig: String,
    /// Hash of the topology of the mesh that it was learned from.
    pub topology_hash: u64,
    /// Always `cm`.
    pub units: String,
    /// The rig's controls, in the order in which a pose gives their values.
    pub controls: ControlSpecs,
    /// How it was trained and how well: free form, for people and reports.
    pub training: serde_json::Value,
}

/// When a network was trained, and what it adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Offsets from the rest pose.
    Coarse,
    /// What the coarse networks leave.
    Refinement,
}

/// A dense layer before it is packed: weights `[rows × columns]` by rows, then the bias.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DenseParts {
    /// `[rows × columns]`.
    pub weights: Vec<f32>,
    /// `[rows]`.
    pub bias: Vec<f32>,
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
    /// The map that the dense layers begin; `None`: the last layer gives three numbers a vertex.
    pub map: Option<MapParts>,
}

impl NetParts {
    /// How many of a dense layer's outputs a leaky rectifier follows: all of them, but not the numbers that all
    /// pixels of a map read, nor three numbers a vertex.
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

/// A rigid motion as a small network: a rotation vector and a translation.
#[derive(Debug, Clone, PartialEq)]
pub struct MotionParts {
    /// The point about which it turns, cm.
    pub pivot: Vec3,
    /// The controls that it sees.
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// tanh after all but the last, which gives six numbers: rotation vector (radians), translation (cm).
    pub layers: Vec<DenseParts>,
}

/// The parts of a face twin before they are checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceParts {
    /// What it is.
    pub header: FaceHeader,
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

/// A checked, packed face twin.
#[derive(Debug, Clone)]
pub struct FaceTwin {
    parts: FaceParts,
    precision: Precision,
    nets: Vec<Net>,
    frame: Option<MotionNet>,
    bodies: Vec<MotionNet>,
    rest_normals: Vec<Vec3>,
    /// Whether the maps transform normals.
    with_normals: bool,
}

/// A network as evaluation wants it.
#[derive(Debug, Clone)]
struct Net {
    layers: Vec<Layer>,
    map: Option<(MapDecoder, Vec<BilinearSample>)>,
}

impl FaceTwin {
    /// Checks all parts and packs the networks.
    pub fn new(parts: FaceParts, precision: Precision) -> Result<Self, FaceError> {
        check::parts(&parts)?;
        let nets = parts.nets.iter().map(|net| Net::new(net, precision)).collect::<Result<Vec<_>, _>>()?;
        let frame = match &parts.frame {
            Some(frame) => Some(MotionNet::new("frame", frame, precision)?),
            None => None,
        };
        let body = |body: &RigidBodyParts| MotionNet::new(&body.name, &body.motion, precision);
        let bodies = parts.bodies.iter().map(body).collect::<Result<Vec<_>, _>>()?;
        let with_normals = parts.nets.iter().filter_map(|net| net.map.as_ref()).any(|m| m.shape.outputs == 6);
        let rest_normals = match with_normals {
            true => understudy_core::normals::vertex_normals(parts.mesh.faces(), parts.mesh.positions()),
            false => Vec::new(),
        };
        Ok(Self { parts, precision, nets, frame, bodies, rest_normals, with_normals })
    }

    /// What it is.
    pub fn header(&self) -> &FaceHeader {
        &self.parts.header
    }

    /// The parts it was made of, for saving, exporting and transferring.
    pub fn parts(&self) -> &FaceParts {
        &self.parts
    }

    /// How its weights are kept.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.parts.mesh.vertex_count()
    }

    /// Number of controls.
    pub fn control_count(&self) -> usize {
        self.parts.header.controls.len()
    }

    /// Whether its maps transform normals.
    pub fn has_normals(&self) -> bool {
        self.with_normals
    }

    /// Multiply-adds of all networks for one pose, pixels that nobody sees left out.
    pub fn multiply_adds(&self) -> usize {
        let motions = self.frame.iter().chain(&self.bodies).flat_map(|net| &net.layers);
        self.nets.iter().map(Net::multiply_adds).sum::<usize>()
            + motions.map(|l| l.rows() * l.columns()).sum::<usize>()
    }

    /// Bytes of packed weights.
    pub fn network_bytes(&self) -> usize {
        let decoder = |net: &Net| net.map.as_ref().map_or(0, |(d, _)| d.shape().parameter_count() * 4);
        let motions = self.frame.iter().chain(&self.bodies).flat_map(|net| &net.layers);
        let layers = self.nets.iter().flat_map(|net| &net.layers).chain(motions);
        layers.map(Layer::bytes).sum::<usize>() + self.nets.iter().map(decoder).sum::<usize>()
    }
}

impl Net {
    fn new(parts: &NetParts, precision: Precision) -> Result<Self, FaceError> {
        let layers = pack_dense(&parts.name, &parts.dense, parts.inputs.len(), false, precision)?;
        let map = parts.map.as_ref().map(|map| {
            let side = map.shape.map_side();
            let samples: Vec<BilinearSample> =
                map.coordinates.iter().map(|c| BilinearSample::at(*c, side)).collect();
            let mut decoder = MapDecoder::new(map.shape, LEAK, &sample::sampled_pixels(&samples, side));
            decoder.load(&rounded(&map.parameters, precision));
            if precision == Precision::Half {
                decoder.store_f16();
            }
            (decoder, samples)
        });
        Ok(Self { layers, map })
    }

    fn multiply_adds(&self) -> usize {
        let dense: usize = self.layers.iter().map(|l| l.rows() * l.columns()).sum();
        dense + self.map.as_ref().map_or(0, |(decoder, _)| decoder.multiply_adds())
    }
}

/// Packs a chain of dense layers; `tanh` follows all but the last where it is asked for.
fn pack_dense(
    name: &str,
    layers: &[DenseParts],
    inputs: usize,
    tanh: bool,
    precision: Precision,
) -> Result<Vec<Layer>, FaceError> {
    use crate::dense::Activation;
    let mut columns = inputs;
    let mut out = Vec::with_capacity(layers.len());
    for (layer, data) in layers.iter().enumerate() {
        let inner = layer + 1 < layers.len();
        let activation = if tanh && inner { Activation::Tanh } else { Activation::None };
        let packed = Layer::pack(&data.weights, &data.bias, columns, activation, precision)
            .map_err(|error| FaceError::Layer { network: name.into(), layer, error })?;
        columns = packed.rows();
        out.push(packed);
    }
    Ok(out)
}

/// Numbers as the file keeps them: what is evaluated is what was saved.
fn rounded(numbers: &[f32], precision: Precision) -> Vec<f32> {
    match precision {
        Precision::Single => numbers.to_vec(),
        Precision::Half => numbers.iter().map(|n| half::f16::from_f32(*n).to_f32()).collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
