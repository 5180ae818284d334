//! The body twin (METHODS M1): every vertex follows one bone, and a small network a group of vertices
//! adds what the bone does not explain, in that bone's frame:
//!
//! `d̃_k(S) = d̂_k(S) + X_b n_k(S)` (body-twin paper, eq. 2.4).
//!
//! Start at [`BodyTwin::new`] and [`BodyTwin::evaluate`]. The file format is in [`mod@file`].

mod evaluate;
pub mod file;

pub use evaluate::Workspace;

use crate::dense::{Activation, Layer, LayerError, Precision};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// Numbers a bone gives to a network: its transform in its parent's frame, column by column.
pub const BONE_INPUTS: usize = 12;

/// What is wrong with the parts of a twin or a pose for it.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TwinError {
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
    /// A vertex in no group or in two.
    #[error("vertex {vertex} is in {groups} groups, not in one")]
    Cover {
        /// The vertex.
        vertex: usize,
        /// How many groups hold it.
        groups: usize,
    },
    /// A layer that is not valid.
    #[error("group {group}, layer {layer}: {error}")]
    Layer {
        /// The group.
        group: usize,
        /// The layer.
        layer: usize,
        /// Why.
        error: LayerError,
    },
    /// A number that is not finite.
    #[error("{what}: entry {index} is not finite")]
    NonFinite {
        /// Which array.
        what: String,
        /// Where.
        index: usize,
    },
    /// The bones' parents form no tree.
    #[error("bone {bone} is its own ancestor")]
    Cycle {
        /// A bone on the cycle.
        bone: usize,
    },
}

/// A bone as the twin knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoneHeader {
    /// Its name in the rig.
    pub name: String,
    /// `None` for a root.
    pub parent: Option<usize>,
}

/// Everything about a twin but its numbers; kept as JSON in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BodyHeader {
    /// The rig it was learned from.
    pub rig: String,
    /// Hash of the mesh's topology.
    pub topology_hash: u64,
    /// Always `cm`.
    pub units: String,
    /// The skeleton.
    pub bones: Vec<BoneHeader>,
    /// Names of controls that are inputs beside the bones.
    pub controls: Vec<String>,
    /// How it was trained and how well: free form, for people and reports.
    pub training: serde_json::Value,
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
}

/// The vertices of one bone and their network.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupParts {
    /// The bone in whose frame the network speaks.
    pub bone: usize,
    /// Which vertices.
    pub vertices: Vec<u32>,
    /// Indices into the inputs of the whole twin: `12 · bone + number`, then controls.
    pub inputs: Vec<u32>,
    /// Subtracted from each input.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// The last gives three numbers a vertex; empty for a group that only follows its bone.
    pub layers: Vec<LayerParts>,
}

/// The parts of a twin before they are checked and packed.
#[derive(Debug, Clone, PartialEq)]
pub struct BodyParts {
    /// What it is.
    pub header: BodyHeader,
    /// `[V]` cm.
    pub rest_vertices: Vec<Vec3>,
    /// World transforms in the rest pose, `[J]`.
    pub rest_bones: Vec<Affine3A>,
    /// The linear base: `None` follows the group's one bone, else linear blend skinning.
    pub base: Option<SkinWeights>,
    /// Together they hold every vertex once.
    pub groups: Vec<GroupParts>,
}

/// A checked, packed twin.
#[derive(Debug, Clone)]
pub struct BodyTwin {
    parts: BodyParts,
    inverse_rest: Vec<Affine3A>,
    groups: Vec<Group>,
}

/// A group as evaluation wants it.
#[derive(Debug, Clone)]
struct Group {
    bone: usize,
    /// Rest positions in the bone's frame, `[P]`; zeros when there is a linear base.
    local_rest: Vec<Vec3>,
    layers: Vec<Layer>,
}

impl BodyTwin {
    /// Checks all parts and packs the networks.
    pub fn new(parts: BodyParts, precision: Precision) -> Result<Self, TwinError> {
        let (vertices, bones) = (parts.rest_vertices.len(), parts.header.bones.len());
        let count = |what: &str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(TwinError::Count { what: what.into(), got, want }) }
        };
        count("rest bones", parts.rest_bones.len(), bones)?;
        check_tree(&parts.header.bones)?;
        check_finite("rest vertices", parts.rest_vertices.iter().map(|v| v.is_finite()))?;
        check_finite(
            "rest bones",
            parts.rest_bones.iter().map(|b| b.is_finite() && b.inverse().is_finite()),
        )?;
        if let Some(base) = &parts.base {
            count("base weights", base.vertex_count(), vertices)?;
            count("bones of the base", base.bone_count(), bones)?;
        }
        let inputs = bones * BONE_INPUTS + parts.header.controls.len();
        let mut cover = vec![0usize; vertices];
        let mut groups = Vec::with_capacity(parts.groups.len());
        for (index, group) in parts.groups.iter().enumerate() {
            groups.push(check_group(&parts, index, group, inputs, precision, &mut cover)?);
        }
        if let Some(vertex) = cover.iter().position(|groups| *groups != 1) {
            return Err(TwinError::Cover { vertex, groups: cover[vertex] });
        }
        let inverse_rest = parts.rest_bones.iter().map(Affine3A::inverse).collect();
        Ok(Self { parts, inverse_rest, groups })
    }

    /// What it is.
    pub fn header(&self) -> &BodyHeader {
        &self.parts.header
    }

    /// The parts it was made of, for saving and exporting.
    pub fn parts(&self) -> &BodyParts {
        &self.parts
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.parts.rest_vertices.len()
    }

    /// Number of bones.
    pub fn bone_count(&self) -> usize {
        self.parts.header.bones.len()
    }

    /// Bytes of packed weights and biases.
    pub fn network_bytes(&self) -> usize {
        self.groups.iter().flat_map(|group| &group.layers).map(Layer::bytes).sum()
    }

    /// Multiply-adds of all networks for one pose.
    pub fn multiply_adds(&self) -> usize {
        self.groups.iter().flat_map(|group| &group.layers).map(|l| l.rows() * l.columns()).sum()
    }
}

fn check_finite(what: &str, finite: impl Iterator<Item = bool>) -> Result<(), TwinError> {
    match finite.enumerate().find(|(_, ok)| !ok) {
        Some((index, _)) => Err(TwinError::NonFinite { what: what.into(), index }),
        None => Ok(()),
    }
}

fn check_tree(bones: &[BoneHeader]) -> Result<(), TwinError> {
    for bone in 0..bones.len() {
        let (mut at, mut steps) = (bone, 0);
        while let Some(parent) = bones[at].parent {
            if parent >= bones.len() {
                let what = format!("parent of bone {at}");
                return Err(TwinError::Index { what, index: parent, count: bones.len() });
            }
            steps += 1;
            if steps > bones.len() {
                return Err(TwinError::Cycle { bone });
            }
            at = parent;
        }
    }
    Ok(())
}

fn check_group(
    parts: &BodyParts,
    index: usize,
    group: &GroupParts,
    inputs: usize,
    precision: Precision,
    cover: &mut [usize],
) -> Result<Group, TwinError> {
    let named = |what: &str| format!("group {index}: {what}");
    let bones = parts.header.bones.len();
    if group.bone >= bones {
        return Err(TwinError::Index { what: named("bone"), index: group.bone, count: bones });
    }
    for &vertex in &group.vertices {
        let slot = cover.get_mut(vertex as usize).ok_or_else(|| TwinError::Index {
            what: named("vertex"),
            index: vertex as usize,
            count: parts.rest_vertices.len(),
        })?;
        *slot += 1;
    }
    if let Some(&input) = group.inputs.iter().find(|input| **input as usize >= inputs) {
        return Err(TwinError::Index { what: named("input"), index: input as usize, count: inputs });
    }
    for (what, numbers) in [("mean", &group.mean), ("scale", &group.scale)] {
        if numbers.len() != group.inputs.len() {
            return Err(TwinError::Count { what: named(what), got: numbers.len(), want: group.inputs.len() });
        }
        check_finite(&named(what), numbers.iter().map(|n| n.is_finite()))?;
    }
    let mut columns = group.inputs.len();
    let mut layers = Vec::with_capacity(group.layers.len());
    for (layer, data) in group.layers.iter().enumerate() {
        let packed = Layer::pack(&data.weights, &data.bias, columns, data.activation, precision)
            .map_err(|error| TwinError::Layer { group: index, layer, error })?;
        columns = packed.rows();
        layers.push(packed);
    }
    if !layers.is_empty() && columns != 3 * group.vertices.len() {
        let want = 3 * group.vertices.len();
        return Err(TwinError::Count { what: named("outputs"), got: columns, want });
    }
    let to_bone = parts.rest_bones[group.bone].inverse();
    let local = |v: &u32| match parts.base {
        None => to_bone.transform_point3(parts.rest_vertices[*v as usize]),
        Some(_) => Vec3::ZERO,
    };
    Ok(Group { bone: group.bone, local_rest: group.vertices.iter().map(local).collect(), layers })
}

#[cfg(test)]
pub(crate) mod tests;
