//! The file of a differential twin, inside the `container` of all twins.
//!
//! Metadata: `method` is `diff`, `structure` is JSON: the activation and the widths of the mini-networks. Tensors:
//! `places [V,3]`, optionally `faces [4 F]`, with a skin `rest_bones [J,12]` and `skin.lengths`, `skin.bones`,
//! `skin.weights`; `features.inputs`, `features.mean`, `features.scale`; `differential.l.weights [rows,columns]` and
//! `differential.l.bias` for layer `l`; `anchors.vertices`, `anchors.lengths` (features of each), `anchors.features`,
//! `anchors.weights` and `anchors.bias` (of all mini-networks one after another, layer by layer), `subspace [R,3A]`,
//! optionally `linear [R,F]`; `basis`, of one run of vertices `[3n,r]` after another, and optionally `blocks.ranks` (`r` of
//! each run) with `blocks.mixes`, `[r,R]` after another.

use super::super::shared::{check_length, read_faces, read_skin, write_faces, write_skin};
use super::{
    AnchorParts, DiffParts, DiffTwin, FeatureParts, HiddenActivation, LayerNumbers, LinearSkinParts,
};
use crate::TwinError;
use crate::container::{Array, Opened, write};
use crate::dense::Precision;
use crate::mechanism::file::Section;
use serde::{Deserialize, Serialize};
use understudy_core::{Affine3A, Vec3};

/// The name of the kind in a file.
pub(crate) const METHOD: &str = "diff";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    activation: HiddenActivation,
    /// Layers of the differential network.
    layers: usize,
    /// Outputs of every layer of a mini-network.
    anchor_widths: Vec<usize>,
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &DiffParts, precision: Precision) -> Result<Vec<u8>, TwinError> {
    with_section(parts, precision, Section::default())
}

/// [`to_bytes`] with what the file holds besides.
pub(super) fn with_section(
    parts: &DiffParts,
    precision: Precision,
    section: Section,
) -> Result<Vec<u8>, TwinError> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut push = |name: &str, array: Array| arrays.push((name.to_owned(), array));
    let row = |numbers: &[f32]| Array::floats(&[numbers.len()], numbers.iter().copied());
    push("places", Array::floats(&[parts.places.len(), 3], parts.places.iter().flat_map(|v| v.to_array())));
    if !parts.faces.is_empty() {
        push("faces", write_faces(&parts.faces));
    }
    if let Some(skin) = &parts.skin {
        let bones = skin.rest_bones.iter().flat_map(|b| b.to_cols_array());
        push("rest_bones", Array::floats(&[skin.rest_bones.len(), 12], bones));
        write_skin("skin", &skin.weights).into_iter().for_each(|(name, array)| push(&name, array));
    }
    push("features.inputs", Array::integers(parts.features.inputs.iter().copied()));
    push("features.mean", row(&parts.features.mean));
    push("features.scale", row(&parts.features.scale));
    for (index, layer) in parts.differential.iter().enumerate() {
        let rows = layer.bias.len();
        let shape = [rows, layer.weights.len() / rows.max(1)];
        push(&format!("differential.{index}.weights"), Array::weights(&shape, &layer.weights, precision));
        push(&format!("differential.{index}.bias"), row(&layer.bias));
    }
    let anchors = &parts.anchors;
    push("anchors.vertices", Array::integers(anchors.iter().map(|anchor| anchor.vertex)));
    push("anchors.lengths", Array::integers(anchors.iter().map(|anchor| anchor.features.len() as u32)));
    push("anchors.features", Array::integers(anchors.iter().flat_map(|anchor| anchor.features.clone())));
    let layers = || anchors.iter().flat_map(|anchor| &anchor.layers);
    let weights: Vec<f32> = layers().flat_map(|layer| layer.weights.iter().copied()).collect();
    push("anchors.weights", Array::weights(&[weights.len()], &weights, precision));
    let bias: Vec<f32> = layers().flat_map(|layer| layer.bias.iter().copied()).collect();
    push("anchors.bias", row(&bias));
    let rank = parts.differential.last().map_or(0, |layer| layer.bias.len());
    push("subspace", Array::weights(&[rank, 3 * anchors.len()], &parts.subspace, precision));
    if !parts.linear.is_empty() {
        let shape = [rank, parts.features.inputs.len()];
        push("linear", Array::weights(&shape, &parts.linear, precision));
    }
    if !parts.block_ranks.is_empty() {
        push("blocks.ranks", Array::integers(parts.block_ranks.iter().copied()));
        push("blocks.mixes", Array::weights(&[parts.mixes.len()], &parts.mixes, precision));
    }
    push("basis", Array::weights(&[parts.basis.len()], &parts.basis, precision));
    let widths = |anchor: &AnchorParts| anchor.layers.iter().map(|layer| layer.bias.len()).collect();
    let structure = Structure {
        activation: parts.activation,
        layers: parts.differential.len(),
        anchor_widths: anchors.first().map_or_else(Vec::new, widths),
    };
    write(METHOD, &parts.header, &structure, arrays, section)
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub(crate) fn read(file: &Opened<'_>) -> Result<DiffTwin, TwinError> {
    let (header, structure) = (file.json::<crate::Header>("header")?, file.json::<Structure>("structure")?);
    let places = file.floats("places", Some(3))?.chunks_exact(3).map(Vec3::from_slice).collect();
    let skin = match read_skin(file, "skin", header.inputs.bones.len())? {
        None => None,
        Some(weights) => {
            let bones = file.floats("rest_bones", Some(12))?;
            let rest_bones = bones.chunks_exact(12).map(Affine3A::from_cols_slice).collect();
            Some(LinearSkinParts { rest_bones, weights })
        }
    };
    let mut differential = Vec::new();
    for layer in 0..structure.layers {
        let weights = file.floats(&format!("differential.{layer}.weights"), None)?;
        differential
            .push(LayerNumbers { weights, bias: file.floats(&format!("differential.{layer}.bias"), None)? });
    }
    let mixed = file.contains("blocks.ranks");
    let parts = DiffParts {
        header,
        faces: read_faces(file, "faces")?,
        skin,
        features: FeatureParts {
            inputs: file.integers("features.inputs")?,
            mean: file.floats("features.mean", None)?,
            scale: file.floats("features.scale", None)?,
        },
        activation: structure.activation,
        differential,
        anchors: anchors(file, &structure.anchor_widths)?,
        subspace: file.floats("subspace", None)?,
        linear: if file.contains("linear") { file.floats("linear", None)? } else { Vec::new() },
        block_ranks: if mixed { file.integers("blocks.ranks")? } else { Vec::new() },
        mixes: if mixed { file.floats("blocks.mixes", None)? } else { Vec::new() },
        basis: file.floats("basis", None)?,
        places,
    };
    DiffTwin::new(parts, file.precision("basis")?)
}

fn anchors(file: &Opened<'_>, widths: &[usize]) -> Result<Vec<AnchorParts>, TwinError> {
    let (vertices, lengths) = (file.integers("anchors.vertices")?, file.integers("anchors.lengths")?);
    check_length("anchors.lengths", lengths.len(), vertices.len())?;
    let features = file.integers("anchors.features")?;
    let (weights, bias) = (file.floats("anchors.weights", None)?, file.floats("anchors.bias", None)?);
    let short = |name: &str| TwinError::Tensor { name: name.into(), problem: "is too short".into() };
    let (mut features, mut weights, mut bias) = (&features[..], &weights[..], &bias[..]);
    let mut anchors = Vec::with_capacity(vertices.len());
    for (vertex, length) in vertices.into_iter().zip(lengths) {
        let own = take(&mut features, length as usize).ok_or_else(|| short("anchors.features"))?;
        let (mut columns, mut layers) = (own.len(), Vec::with_capacity(widths.len()));
        for rows in widths {
            let size = rows.checked_mul(columns);
            let weights = size.and_then(|size| take(&mut weights, size));
            layers.push(LayerNumbers {
                weights: weights.ok_or_else(|| short("anchors.weights"))?.to_vec(),
                bias: take(&mut bias, *rows).ok_or_else(|| short("anchors.bias"))?.to_vec(),
            });
            columns = *rows;
        }
        anchors.push(AnchorParts { vertex, features: own.to_vec(), layers });
    }
    for (name, left) in [
        ("anchors.features", features.len()),
        ("anchors.weights", weights.len()),
        ("anchors.bias", bias.len()),
    ] {
        check_length(&format!("{name} beyond the last anchor"), left, 0)?;
    }
    Ok(anchors)
}

/// The first numbers of a list, which then begins after them.
fn take<'a, T>(from: &mut &'a [T], count: usize) -> Option<&'a [T]> {
    let (first, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(first)
}
