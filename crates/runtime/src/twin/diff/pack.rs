//! From parts to a packed differential twin and back: everything that could be wrong is checked once, here.

use super::super::shared::{check_faces, check_finite, check_length, check_tree};
use super::super::skinning::{LANES, NUMBERS, Skin};
use super::{
    Anchor, AnchorParts, BLOCK_VERTICES, BONE_INPUTS, Block, DiffParts, DiffTwin, HiddenActivation,
    LayerNumbers, LinearSkinParts, PackedSkin,
};
use crate::TwinError;
use crate::dense::{Activation, Layer, LayerError, Precision};
use understudy_core::{Affine3A, Vec3};

impl DiffTwin {
    /// Checks all parts and packs the networks.
    pub fn new(parts: DiffParts, precision: Precision) -> Result<Self, TwinError> {
        let inputs = &parts.header.inputs;
        let (vertices, bones) = (parts.places.len(), inputs.bones.len());
        check_tree(&inputs.bones)?;
        check_finite("places", parts.places.iter().map(|v| v.is_finite()))?;
        check_faces(&parts.faces, vertices)?;
        let skin = match &parts.skin {
            None => {
                check_length("bones of a twin without skin", bones, 0)?;
                None
            }
            Some(skin) => Some(pack_skin(skin, bones, &parts.places)?),
        };
        let features = &parts.features;
        check_length("means of features", features.mean.len(), features.inputs.len())?;
        check_length("scales of features", features.scale.len(), features.inputs.len())?;
        check_finite("means of features", features.mean.iter().map(|n| n.is_finite()))?;
        check_finite("scales of features", features.scale.iter().map(|n| n.is_finite()))?;
        let count = bones * BONE_INPUTS + inputs.controls.len();
        let mut seen_bones = Vec::new();
        for input in &features.inputs {
            let index = *input as usize;
            if index >= count {
                return Err(TwinError::Index { what: "input of a feature".into(), index, count });
            }
            if index < bones * BONE_INPUTS {
                let bone = index / BONE_INPUTS;
                let Some(parent) = inputs.bones[bone].parent else {
                    let problem = format!("bone {bone} has no parent in whose frame it could be seen");
                    return Err(TwinError::Part { what: "features".into(), problem });
                };
                seen_bones.push((bone, parent));
            }
        }
        seen_bones.sort_unstable();
        seen_bones.dedup();
        let activation = parts.activation;
        let differential =
            pack_network("differential", &parts.differential, features.inputs.len(), activation, precision)?;
        let rank = differential.last().map_or(0, Layer::rows);
        let mut anchors = Vec::with_capacity(parts.anchors.len());
        for (index, anchor) in parts.anchors.iter().enumerate() {
            anchors.push(pack_anchor(&parts, index, anchor, precision)?);
        }
        check_length("subspace", parts.subspace.len(), rank * 3 * anchors.len())?;
        let subspace = match anchors.is_empty() {
            true => None,
            false => Some(
                Layer::pack(
                    &parts.subspace,
                    &vec![0.0; rank],
                    3 * anchors.len(),
                    Activation::None,
                    precision,
                )
                .map_err(in_layer("subspace", 0))?,
            ),
        };
        let linear = match parts.linear.is_empty() {
            true => None,
            false => {
                let columns = features.inputs.len();
                check_length("linear", parts.linear.len(), rank * columns)?;
                let layer =
                    Layer::pack(&parts.linear, &vec![0.0; rank], columns, Activation::None, precision);
                Some(layer.map_err(in_layer("linear", 0))?)
            }
        };
        let blocks = pack_blocks(&parts, rank, precision)?;
        Ok(Self {
            header: parts.header,
            mechanism: None,
            precision,
            faces: parts.faces,
            skin,
            features: parts.features,
            seen_bones,
            activation,
            differential,
            anchors,
            subspace,
            linear,
            blocks,
            vertex_count: vertices,
            rank,
        })
    }

    /// The parts that it is made of, unpacked, for saving and exporting. Weights are as the twin keeps them: of a twin
    /// in 16 bits, rounded.
    pub fn parts(&self) -> DiffParts {
        let anchor = |anchor: &Anchor| AnchorParts {
            vertex: anchor.vertex,
            features: anchor.features.clone(),
            layers: anchor.layers.iter().map(unpack).collect(),
        };
        let (mut basis, mut places) = (Vec::new(), Vec::new());
        let (mut block_ranks, mut mixes) = (Vec::new(), Vec::new());
        for (index, block) in self.blocks.iter().enumerate() {
            let (weights, bias) = block.decode.unpack();
            let (first, rank) = (index * BLOCK_VERTICES, block.decode.columns());
            for vertex in first..self.vertex_count.min(first + BLOCK_VERTICES) {
                let rows = [0, 1, 2].map(|axis| row_of(vertex - first, axis));
                places.push(Vec3::from_array(rows.map(|row| bias[row])));
                rows.iter().for_each(|row| basis.extend_from_slice(&weights[row * rank..][..rank]));
            }
            if let Some(mix) = &block.mix {
                block_ranks.push(rank as u32);
                mixes.extend(mix.unpack().0);
            }
        }
        DiffParts {
            header: self.header.clone(),
            faces: self.faces.clone(),
            skin: self.skin.as_ref().map(|skin| LinearSkinParts {
                rest_bones: skin.rest_bones.clone(),
                weights: skin.weights.unpack(self.vertex_count, self.bone_count()).1,
            }),
            features: self.features.clone(),
            activation: self.activation,
            differential: self.differential.iter().map(unpack).collect(),
            anchors: self.anchors.iter().map(anchor).collect(),
            subspace: self.subspace.as_ref().map_or_else(Vec::new, |layer| layer.unpack().0),
            linear: self.linear.as_ref().map_or_else(Vec::new, |layer| layer.unpack().0),
            block_ranks,
            mixes,
            basis,
            places,
        }
    }
}

/// The row of a number of a vertex inside its block: x of eight vertices, then y, then z.
pub(super) fn row_of(vertex: usize, axis: usize) -> usize {
    vertex / LANES * NUMBERS + axis * LANES + vertex % LANES
}

fn unpack(layer: &Layer) -> LayerNumbers {
    let (weights, bias) = layer.unpack();
    LayerNumbers { weights, bias }
}

fn in_layer(network: &str, layer: usize) -> impl FnOnce(LayerError) -> TwinError + use<'_> {
    move |error| TwinError::Layer { network: network.into(), layer, error }
}

fn pack_skin(skin: &LinearSkinParts, bones: usize, places: &[Vec3]) -> Result<PackedSkin, TwinError> {
    check_length("rest bones", skin.rest_bones.len(), bones)?;
    let sound = |bone: &Affine3A| bone.is_finite() && bone.inverse().is_finite();
    check_finite("rest bones", skin.rest_bones.iter().map(sound))?;
    check_length("skin weights", skin.weights.vertex_count(), places.len())?;
    check_length("bones of the skin", skin.weights.bone_count(), bones)?;
    Ok(PackedSkin {
        rest_bones: skin.rest_bones.clone(),
        inverse_rest: skin.rest_bones.iter().map(Affine3A::inverse).collect(),
        weights: Skin::new(&skin.weights, places),
    })
}

fn pack_network(
    name: &str,
    layers: &[LayerNumbers],
    inputs: usize,
    activation: HiddenActivation,
    precision: Precision,
) -> Result<Vec<Layer>, TwinError> {
    if layers.is_empty() {
        let problem = "there is no layer".into();
        return Err(TwinError::Part { what: format!("network {name}"), problem });
    }
    let mut columns = inputs;
    let mut packed = Vec::with_capacity(layers.len());
    for (index, layer) in layers.iter().enumerate() {
        // Tanh is part of a packed layer, the rectifier is applied after it.
        let follows = match activation {
            HiddenActivation::Tanh if index + 1 < layers.len() => Activation::Tanh,
            _ => Activation::None,
        };
        let layer = Layer::pack(&layer.weights, &layer.bias, columns, follows, precision)
            .map_err(in_layer(name, index))?;
        columns = layer.rows();
        packed.push(layer);
    }
    Ok(packed)
}

fn pack_anchor(
    parts: &DiffParts,
    index: usize,
    anchor: &AnchorParts,
    precision: Precision,
) -> Result<Anchor, TwinError> {
    let name = format!("anchor {index}");
    let outside = |what: &str, index: u32, count: usize| TwinError::Index {
        what: format!("{name}: {what}"),
        index: index as usize,
        count,
    };
    let (vertices, features) = (parts.places.len(), parts.features.inputs.len());
    if anchor.vertex as usize >= vertices {
        return Err(outside("vertex", anchor.vertex, vertices));
    }
    if let Some(feature) = anchor.features.iter().find(|feature| **feature as usize >= features) {
        return Err(outside("feature", *feature, features));
    }
    let layers = pack_network(&name, &anchor.layers, anchor.features.len(), parts.activation, precision)?;
    check_length(&format!("{name}: outputs"), layers.last().map_or(0, Layer::rows), 3)?;
    let hidden = |layers: &[LayerNumbers]| -> Vec<usize> { layers.iter().map(|l| l.bias.len()).collect() };
    if hidden(&anchor.layers) != hidden(&parts.anchors[0].layers) {
        let problem = "other widths than the first anchor's".into();
        return Err(TwinError::Part { what: name, problem });
    }
    Ok(Anchor { vertex: anchor.vertex, features: anchor.features.clone(), layers })
}

fn pack_blocks(parts: &DiffParts, rank: usize, precision: Precision) -> Result<Vec<Block>, TwinError> {
    let count = parts.places.len().div_ceil(BLOCK_VERTICES);
    let own_ranks = !parts.block_ranks.is_empty();
    if own_ranks {
        check_length("block ranks", parts.block_ranks.len(), count)?;
    }
    if let Some(own) = parts.block_ranks.iter().find(|own| **own == 0 || **own as usize > rank) {
        let problem = format!("{own} coefficients of its own; 1 to {rank} are wanted");
        return Err(TwinError::Part { what: "block ranks".into(), problem });
    }
    let rank_of = |block: usize| if own_ranks { parts.block_ranks[block] as usize } else { rank };
    let runs = || parts.places.chunks(BLOCK_VERTICES).enumerate();
    check_length("basis", parts.basis.len(), runs().map(|(b, places)| 3 * places.len() * rank_of(b)).sum())?;
    let mixed: usize = parts.block_ranks.iter().map(|own| *own as usize * rank).sum();
    check_length("mixes", parts.mixes.len(), mixed)?;
    let (mut basis, mut mixes) = (&parts.basis[..], &parts.mixes[..]);
    let mut blocks = Vec::with_capacity(count);
    for (index, places) in runs() {
        let own = rank_of(index);
        let (rows_of_basis, rest) = basis.split_at(3 * places.len() * own);
        basis = rest;
        let rows = places.len().div_ceil(LANES) * NUMBERS;
        let (mut weights, mut bias) = (vec![0.0; rows * own], vec![0.0; rows]);
        for (vertex, place) in places.iter().enumerate() {
            for axis in 0..3 {
                let row = row_of(vertex, axis);
                weights[row * own..][..own]
                    .copy_from_slice(&rows_of_basis[(3 * vertex + axis) * own..][..own]);
                bias[row] = place[axis];
            }
        }
        let decode = Layer::pack(&weights, &bias, own, Activation::None, precision);
        let decode = decode.map_err(in_layer("basis", index))?;
        let mix = match own_ranks {
            false => None,
            true => {
                let (numbers, rest) = mixes.split_at(own * rank);
                mixes = rest;
                let layer = Layer::pack(numbers, &vec![0.0; own], rank, Activation::None, precision);
                Some(layer.map_err(in_layer("mix", index))?)
            }
        };
        blocks.push(Block { mix, decode });
    }
    Ok(blocks)
}
