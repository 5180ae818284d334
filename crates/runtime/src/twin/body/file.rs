//! The file of a body twin, inside the `container` of all twins.
//!
//! Metadata: `method` is `body`, `structure` is JSON: how networks see the bones, and of every group its bone and
//! activations. Tensors: `rest_vertices [V,3]`, `rest_bones [J,12]`, optionally `base.lengths`, `base.bones`,
//! `base.weights`, `faces [4 F]`, `seams.*` (the fields of [`SeamCorrection`], `stitch.*` before version 4), and for group
//! `g` and layer `l` `group.g.vertices`, `group.g.inputs`, `group.g.mean`, `group.g.scale`,
//! `group.g.l.weights [rows,columns]` (f16, f32, or i16 in units of 2⁻¹⁵), `group.g.l.bias`.

use super::super::shared::{read_faces, read_skin, write_faces, write_skin};
use super::decoder::Form;
use super::{BodyParts, BodyTwin, GroupParts, InputFrame, LayerParts, SeamCorrection, Storage};
use crate::container::{Array, Numbers, Opened, write};
use crate::dense::{Activation, Precision};
use crate::header::HeaderBefore4;
use crate::mechanism::file::Section;
use crate::{Header, TwinError};
use serde::{Deserialize, Serialize};
use understudy_core::{Affine3A, Vec3};

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
    with_section(parts, precision, Section::default())
}

/// [`to_bytes`] with what the file holds besides.
pub(super) fn with_section(
    parts: &BodyParts,
    precision: Precision,
    section: Section,
) -> Result<Vec<u8>, TwinError> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut push = |name: String, array: Array| arrays.push((name, array));
    let vertices = parts.rest_vertices.iter().flat_map(|v| v.to_array());
    push("rest_vertices".into(), Array::floats(&[parts.rest_vertices.len(), 3], vertices));
    let bones = parts.rest_bones.iter().flat_map(|b| b.to_cols_array());
    push("rest_bones".into(), Array::floats(&[parts.rest_bones.len(), 12], bones));
    if let Some(base) = &parts.base {
        write_skin("base", base).into_iter().for_each(|(name, array)| push(name, array));
    }
    if !parts.faces.is_empty() {
        push("faces".into(), write_faces(&parts.faces));
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
    write(METHOD, &parts.header, &structure, arrays, section)
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
    let base = read_skin(file, "base", header.inputs.bones.len())?;
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
                    Numbers::Single | Numbers::Whole => Storage::Single,
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
    let faces = read_faces(file, "faces")?;
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
