//! The body twin (METHODS M1): every vertex follows one bone, and a small network a group of vertices
//! adds what the bone does not explain, in that bone's frame:
//!
//! `d̃_k(S) = d̂_k(S) + X_b n_k(S)` (body-twin paper, eq. 2.4).
//!
//! Start at [`BodyTwin::new`] and [`BodyTwin::evaluate`]. The file format is in [`mod@file`].

mod decoder;
mod evaluate;
pub mod file;
mod input_features;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod seam_correction;
mod skin;

pub use evaluate::{BLOCK, Workspace};
pub use seam_correction::SeamCorrection;

use crate::dense::{Activation, Layer, LayerError, Precision};
use decoder::{Decoder, Form};
use seam_correction::PackedSeams;
use serde::{Deserialize, Serialize};
use skin::Skin;
use thiserror::Error;
use understudy_core::{Affine3A, Face, SkinWeights, Vec3};

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
    /// How networks see the bones.
    #[serde(default)]
    pub frame: InputFrame,
    /// Whether frames of bones are taken without scale and shear (`rigid_frame` in core): networks then see and say
    /// lengths in cm. Where no bone stretches both are the same and this is off; twins of before had no choice.
    #[serde(default)]
    pub rigid_frames: bool,
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
    /// The last gives three numbers a vertex, ghosts after the group's own; empty for a group that only
    /// follows its bone.
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
    /// The faces, for normals; may be empty.
    pub faces: Vec<Face>,
    /// Together they hold every vertex once.
    pub groups: Vec<GroupParts>,
    /// What closes the seams between groups; `None` leaves them as they are.
    pub seams: Option<SeamCorrection>,
}

/// A checked, packed twin.
#[derive(Debug, Clone)]
pub struct BodyTwin {
    parts: BodyParts,
    precision: Precision,
    inverse_rest: Vec<Affine3A>,
    /// The linear base, packed.
    skin: Option<Skin>,
    groups: Vec<Group>,
    /// Number of ghosts of all groups.
    ghosts: usize,
    seams: Option<PackedSeams>,
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
    /// Bones that it sees, in the order of its inputs.
    bone_inputs: Vec<BoneInputs>,
    /// Which of its bone's twelve numbers each input is.
    numbers: Vec<u8>,
    /// All but the last.
    layers: Vec<Layer>,
    /// The last layer and the bone's motion of the group's own vertices.
    decoder: Decoder,
    /// The same of the ghosts, which go to their places in the list of all ghosts.
    ghosts: Decoder,
}

impl Group {
    fn multiply_adds(&self) -> usize {
        let hidden: usize = self.layers.iter().map(|l| l.rows() * l.columns()).sum();
        hidden + self.decoder.multiply_adds() + self.ghosts.multiply_adds()
    }
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
        for (face, corner) in
            parts.faces.iter().enumerate().flat_map(|(f, face)| face.corners().iter().map(move |c| (f, *c)))
        {
            if corner as usize >= vertices {
                let what = format!("corner of face {face}");
                return Err(TwinError::Index { what, index: corner as usize, count: vertices });
            }
        }
        if parts.header.rigid_frames && parts.base.is_none() {
            // Without one a vertex would follow the frame, not the bone.
            count("base weights of a twin in rigid frames", 0, vertices)?;
        }
        if let Some(base) = &parts.base {
            count("base weights", base.vertex_count(), vertices)?;
            count("bones of the base", base.bone_count(), bones)?;
        }
        let inputs = bones * BONE_INPUTS + parts.header.controls.len();
        let mut cover = vec![0usize; vertices];
        let mut groups = Vec::with_capacity(parts.groups.len());
        let mut ghosts = 0;
        for (index, group) in parts.groups.iter().enumerate() {
            groups.push(check_group(&parts, index, group, inputs, ghosts, precision, &mut cover)?);
            ghosts += group.ghosts.len();
        }
        if let Some(seams) = &parts.seams {
            seams.check(vertices, ghosts)?;
        }
        if let Some(vertex) = cover.iter().position(|groups| *groups != 1) {
            return Err(TwinError::Cover { vertex, groups: cover[vertex] });
        }
        let inverse_rest = parts.rest_bones.iter().map(Affine3A::inverse).collect();
        let seams = parts.seams.as_ref().map(PackedSeams::new);
        let skin = parts.base.as_ref().map(|base| Skin::new(base, &parts.rest_vertices));
        Ok(Self { parts, precision, inverse_rest, skin, groups, ghosts, seams })
    }

    /// What it is.
    pub fn header(&self) -> &BodyHeader {
        &self.parts.header
    }

    /// The parts it was made of, for saving and exporting.
    pub fn parts(&self) -> &BodyParts {
        &self.parts
    }

    /// The precision that it was packed in, but for layers that say otherwise ([`Storage`]).
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.parts.rest_vertices.len()
    }

    /// Unit vertex normals of a pose, from the faces around each vertex; zero where the twin has no faces.
    pub fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), TwinError> {
        for got in [vertices.len(), out.len()] {
            if got != self.vertex_count() {
                return Err(TwinError::Count { what: "vertices".into(), got, want: self.vertex_count() });
            }
        }
        understudy_core::normals::vertex_normals_into(&self.parts.faces, vertices, out);
        Ok(())
    }

    /// Number of bones.
    pub fn bone_count(&self) -> usize {
        self.parts.header.bones.len()
    }

    /// Bytes of packed weights and biases, those of the linear base too.
    pub fn network_bytes(&self) -> usize {
        let layers = |g: &Group| g.layers.iter().map(Layer::bytes).sum::<usize>();
        let groups = self.groups.iter().map(|g| layers(g) + g.decoder.bytes() + g.ghosts.bytes());
        groups.sum::<usize>() + self.skin.as_ref().map_or(0, Skin::bytes)
    }

    /// Multiply-adds of all networks for one pose.
    pub fn multiply_adds(&self) -> usize {
        self.groups.iter().map(Group::multiply_adds).sum()
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
    first_ghost: usize,
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
    if let Some(&ghost) = group.ghosts.iter().find(|ghost| **ghost as usize >= parts.rest_vertices.len()) {
        let count = parts.rest_vertices.len();
        return Err(TwinError::Index { what: named("ghost"), index: ghost as usize, count });
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
    let wrap = |layer: usize| move |error| TwinError::Layer { group: index, layer, error };
    let hidden = group.layers.len().saturating_sub(1);
    for (layer, data) in group.layers[..hidden].iter().enumerate() {
        let precision = match data.form(precision) {
            Form::Half => Precision::Half,
            Form::Single => Precision::Single,
            Form::Fixed => {
                let error = LayerError::Range { what: "fixed point in a hidden layer", index: 0 };
                return Err(TwinError::Layer { group: index, layer, error });
            }
        };
        let packed = Layer::pack(&data.weights, &data.bias, columns, data.activation, precision)
            .map_err(wrap(layer))?;
        columns = packed.rows();
        layers.push(packed);
    }
    let to_bone = parts.rest_bones[group.bone].inverse();
    let local = |v: &u32| match parts.base {
        None => to_bone.transform_point3(parts.rest_vertices[*v as usize]),
        Some(_) => Vec3::ZERO,
    };
    let mut places: Vec<Vec3> = group.vertices.iter().chain(&group.ghosts).map(local).collect();
    let weights: &[f32] = match group.layers.last() {
        // A group without a network only follows its bone.
        None => {
            columns = 0;
            &[]
        }
        Some(last) => {
            if last.activation != Activation::None {
                let what = named("last layer's activation");
                return Err(TwinError::Count { what, got: 1, want: 0 });
            }
            let want = 3 * places.len();
            if last.bias.len() != want {
                return Err(TwinError::Count { what: named("outputs"), got: last.bias.len(), want });
            }
            if last.weights.len() != want * columns {
                let what = named("weights of the last layer");
                return Err(TwinError::Count { what, got: last.weights.len(), want: want * columns });
            }
            let bias = last.bias.chunks_exact(3).map(Vec3::from_slice);
            places.iter_mut().zip(bias).for_each(|(place, bias)| *place += bias);
            &last.weights
        }
    };
    let form = group.layers.last().map_or(Form::Single, |last| last.form(precision));
    let own = group.vertices.len();
    let slots: Vec<u32> = (0..group.ghosts.len()).map(|ghost| (first_ghost + ghost) as u32).collect();
    let (own_weights, ghost_weights) = weights.split_at(3 * own * columns);
    let decoder =
        Decoder::pack(own_weights, &places[..own], &group.vertices, columns, form).map_err(wrap(hidden))?;
    let ghosts = Decoder::pack(ghost_weights, &places[own..], &slots, columns, form).map_err(wrap(hidden))?;
    let numbers: Vec<u8> = group.inputs.iter().map(|input| (*input as usize % BONE_INPUTS) as u8).collect();
    let mut bone_inputs: Vec<BoneInputs> = Vec::new();
    for (slot, input) in group.inputs.iter().enumerate() {
        let bone = (*input as usize / BONE_INPUTS).min(bones);
        match bone_inputs.last_mut() {
            Some(last) if last.bone == bone => last.end = slot + 1,
            _ => bone_inputs.push(BoneInputs { bone, end: slot + 1, whole: false }),
        }
    }
    let mut start = 0;
    for run in &mut bone_inputs {
        run.whole = run.bone < bones && numbers[start..run.end].iter().copied().eq(0..BONE_INPUTS as u8);
        start = run.end;
    }
    Ok(Group { bone: group.bone, bone_inputs, numbers, layers, decoder, ghosts })
}

#[cfg(test)]
pub(crate) mod tests;
