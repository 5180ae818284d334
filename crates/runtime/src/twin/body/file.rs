//! The file of a body twin, inside the `container` of all twins.
//!
//! Metadata: `method` is `body`, `structure` is JSON: how networks see the bones, and of every group its bone and
//! activations. Tensors: `rest_vertices [V,3]`, `rest_bones [J,12]`, optionally `base.lengths`, `base.bones`,
//! `base.weights`, `faces [4 F]`, `seams.*` (the fields of [`SeamCorrection`], `stitch.*` before version 4), and for group
//! `g` and layer `l` `group.g.vertices`, `group.g.inputs`, `group.g.mean`, `group.g.scale`,
//! `group.g.l.weights [rows,columns]` (f16, f32, or i16 in units of 2⁻¹⁵), `group.g.l.bias`.

use super::decoder::Form;
use super::{BodyParts, BodyTwin, GroupParts, InputFrame, LayerParts, SeamCorrection, Storage};
use crate::container::{Array, Numbers, Opened, write};
use crate::dense::{Activation, Precision};
use crate::header::HeaderBefore4;
use crate::{Header, TwinError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use understudy_core::{Affine3A, Face, SkinWeights, Vec3};

/// The name of the kind in a file.
pub(crate) const METHOD: &str = "body";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    frame: InputFrame,
    rigid_frames: bool,
    groups: Vec<GroupHeader>,
}

/// What the header of a body had of its own before version 4.
#[derive(Deserialize)]
struct OwnBefore4 {
    #[serde(default)]
    frame: InputFrame,
    #[serde(default)]
    rigid_frames: bool,
}

#[derive(Serialize, Deserialize)]
struct GroupHeader {
    bone: usize,
    activations: Vec<ActivationName>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum ActivationName {
    None,
    Tanh,
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &BodyParts, precision: Precision) -> Result<Vec<u8>, TwinError> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut push = |name: String, array: Array| arrays.push((name, array));
    let vertices = parts.rest_vertices.iter().flat_map(|v| v.to_array());
    push("rest_vertices".into(), Array::floats(&[parts.rest_vertices.len(), 3], vertices));
    let bones = parts.rest_bones.iter().flat_map(|b| b.to_cols_array());
    push("rest_bones".into(), Array::floats(&[parts.rest_bones.len(), 12], bones));
    if let Some(base) = &parts.base {
        // By bones in ascending order, as the packed twin has them: saved again, the bytes are the same.
        let rows: Vec<BTreeMap<usize, f32>> = (0..base.vertex_count()).map(|v| merged(base.row(v))).collect();
        push("base.lengths".into(), Array::integers(rows.iter().map(|row| row.len() as u32)));
        push("base.bones".into(), Array::integers(rows.iter().flatten().map(|(bone, _)| *bone as u32)));
        let weights: Vec<f32> = rows.iter().flatten().map(|(_, weight)| *weight).collect();
        push("base.weights".into(), Array::floats(&[weights.len()], weights));
    }
    if !parts.faces.is_empty() {
        let corner = |face: &Face| [0, 1, 2, 3].map(|c| face.corners().get(c).copied().unwrap_or(Face::NONE));
        push("faces".into(), Array::integers(parts.faces.iter().flat_map(corner)));
    }
    if let Some(seams) = &parts.seams {
        push("seams.vertices".into(), Array::integers(seams.vertices.iter().copied()));
        push("seams.border".into(), Array::integers([seams.border as u32]));
        push("seams.shares".into(), Array::floats(&[seams.shares.len()], seams.shares.iter().copied()));
        push("seams.offsets".into(), Array::integers(seams.offsets.iter().copied()));
        push("seams.sources".into(), Array::integers(seams.sources.iter().copied()));
    }
    let mut headers = Vec::new();
    for (index, group) in parts.groups.iter().enumerate() {
        push(format!("group.{index}.vertices"), Array::integers(group.vertices.iter().copied()));
        push(format!("group.{index}.ghosts"), Array::integers(group.ghosts.iter().copied()));
        push(format!("group.{index}.inputs"), Array::integers(group.inputs.iter().copied()));
        let row = |numbers: &[f32]| Array::floats(&[numbers.len()], numbers.iter().copied());
        push(format!("group.{index}.mean"), row(&group.mean));
        push(format!("group.{index}.scale"), row(&group.scale));
        let mut activations = Vec::new();
        for (layer, data) in group.layers.iter().enumerate() {
            let rows = data.bias.len();
            let shape = [rows, data.weights.len() / rows.max(1)];
            let weights = match data.form(precision) {
                Form::Half => Array::weights(&shape, &data.weights, Precision::Half),
                Form::Single => Array::weights(&shape, &data.weights, Precision::Single),
                Form::Fixed => Array::fixed(&shape, &data.weights),
            };
            push(format!("group.{index}.{layer}.weights"), weights);
            push(format!("group.{index}.{layer}.bias"), row(&data.bias));
            activations.push(match data.activation {
                Activation::None => ActivationName::None,
                Activation::Tanh => ActivationName::Tanh,
            });
        }
        headers.push(GroupHeader { bone: group.bone, activations });
    }
    let structure = Structure { frame: parts.frame, rigid_frames: parts.rigid_frames, groups: headers };
    write(METHOD, &parts.header, &structure, arrays)
}

/// One weight per bone.
fn merged(row: impl Iterator<Item = (usize, f32)>) -> BTreeMap<usize, f32> {
    let mut out = BTreeMap::new();
    row.for_each(|(bone, weight)| *out.entry(bone).or_default() += weight);
    out
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub(crate) fn read(file: &Opened<'_>) -> Result<BodyTwin, TwinError> {
    let (header, structure) = match file.is_before_4() {
        false => (file.json::<Header>("header")?, file.json::<Structure>("structure")?),
        true => {
            let before: HeaderBefore4<OwnBefore4> = file.json("header")?;
            let (header, own) = before.into_header().map_err(TwinError::Kind)?;
            let OwnBefore4 { frame, rigid_frames } = own;
            (header, Structure { frame, rigid_frames, groups: file.json("groups")? })
        }
    };
    let Structure { frame, rigid_frames, groups: headers } = structure;
    let triple = |n: &[f32]| Vec3::new(n[0], n[1], n[2]);
    let rest_vertices = file.floats("rest_vertices", Some(3))?.chunks_exact(3).map(triple).collect();
    let affine = |n: &[f32]| Affine3A::from_cols_slice(n);
    let rest_bones = file.floats("rest_bones", Some(12))?.chunks_exact(12).map(affine).collect();
    let base =
        if file.contains("base.lengths") { Some(base(file, header.inputs.bones.len())?) } else { None };
    let mut precision = Precision::Single;
    let mut groups = Vec::with_capacity(headers.len());
    for (index, group) in headers.into_iter().enumerate() {
        let mut layers = Vec::new();
        for (layer, activation) in group.activations.iter().enumerate() {
            let name = format!("group.{index}.{layer}.weights");
            let stored = file.stored(&name)?;
            if stored == Numbers::Half {
                precision = Precision::Half;
            }
            layers.push(LayerParts {
                weights: file.floats(&name, None)?,
                bias: file.floats(&format!("group.{index}.{layer}.bias"), None)?,
                activation: match activation {
                    ActivationName::None => Activation::None,
                    ActivationName::Tanh => Activation::Tanh,
                },
                storage: match stored {
                    Numbers::Half => Storage::Plain,
                    Numbers::Single => Storage::Single,
                    Numbers::Fixed => Storage::Fixed,
                },
            });
        }
        let ghosts = format!("group.{index}.ghosts");
        groups.push(GroupParts {
            bone: group.bone,
            vertices: file.integers(&format!("group.{index}.vertices"))?,
            // The first twins had none.
            ghosts: if file.contains(&ghosts) { file.integers(&ghosts)? } else { Vec::new() },
            inputs: file.integers(&format!("group.{index}.inputs"))?,
            mean: file.floats(&format!("group.{index}.mean"), None)?,
            scale: file.floats(&format!("group.{index}.scale"), None)?,
            layers,
        });
    }
    let seams = if file.is_before_4() { "stitch" } else { "seams" };
    let seams = match file.contains(&format!("{seams}.vertices")) {
        false => None,
        true => Some(SeamCorrection {
            vertices: file.integers(&format!("{seams}.vertices"))?,
            border: file.integers(&format!("{seams}.border"))?.first().map_or(0, |border| *border as usize),
            shares: file.floats(&format!("{seams}.shares"), None)?,
            offsets: file.integers(&format!("{seams}.offsets"))?,
            sources: file.integers(&format!("{seams}.sources"))?,
        }),
    };
    let faces = if file.contains("faces") { faces(file)? } else { Vec::new() };
    if precision == Precision::Single {
        // Then it is the twin that is exact, not some of its layers.
        let layers = groups.iter_mut().flat_map(|group| &mut group.layers);
        let single = layers.filter(|layer| layer.storage == Storage::Single);
        single.for_each(|layer| layer.storage = Storage::Plain);
    }
    let parts =
        BodyParts { header, frame, rigid_frames, rest_vertices, rest_bones, base, faces, groups, seams };
    BodyTwin::new(parts, precision)
}

fn faces(file: &Opened<'_>) -> Result<Vec<Face>, TwinError> {
    let corners = file.integers("faces")?;
    let (quads, rest) = corners.as_chunks::<4>();
    if !rest.is_empty() {
        let problem = format!("{} corners are no whole number of faces", corners.len());
        return Err(TwinError::Tensor { name: "faces".into(), problem });
    }
    let face = |[a, b, c, d]: &[u32; 4]| match *d {
        Face::NONE => Face::triangle(*a, *b, *c),
        _ => Face::quad(*a, *b, *c, *d),
    };
    Ok(quads.iter().map(face).collect())
}

fn base(file: &Opened<'_>, bones: usize) -> Result<SkinWeights, TwinError> {
    let lengths = file.integers("base.lengths")?;
    let (indices, weights) = (file.integers("base.bones")?, file.floats("base.weights", None)?);
    let whole: u64 = lengths.iter().map(|l| u64::from(*l)).sum();
    if whole > u64::from(u32::MAX) || whole != indices.len() as u64 || indices.len() != weights.len() {
        let problem = format!("rows of {whole} entries, {} bones, {} weights", indices.len(), weights.len());
        return Err(TwinError::Tensor { name: "base.lengths".into(), problem });
    }
    let mut offsets = vec![0u32];
    for length in &lengths {
        offsets.push(offsets[offsets.len() - 1] + length);
    }
    let bone = |bone: &u32| {
        let problem = || TwinError::Tensor {
            name: "base.bones".into(),
            problem: format!("bone {bone} is out of range"),
        };
        u16::try_from(*bone).map_err(|_| problem())
    };
    let indices = indices.iter().map(bone).collect::<Result<Vec<u16>, TwinError>>()?;
    SkinWeights::from_compressed(offsets, indices, weights, bones)
        .map_err(|error| TwinError::Tensor { name: "base.weights".into(), problem: error.to_string() })
}
