//! The file of a body twin, inside the [`crate::container`] of all twins.
//!
//! Metadata: `method` is `body`, `header` is [`BodyHeader`] as JSON, `groups` a JSON list of
//! `{bone, activations}`. Tensors: `rest_vertices [V,3]`, `rest_bones [J,12]`, optionally `base.lengths`,
//! `base.bones`, `base.weights`, `faces [4 F]`, `seams.*` (the fields of [`SeamCorrection`]), and for group `g` and
//! layer `l` `group.g.vertices`, `group.g.inputs`, `group.g.mean`, `group.g.scale`,
//! `group.g.l.weights [rows,columns]` (f16, f32, or i16 in units of 2⁻¹⁵), `group.g.l.bias`.

use super::decoder::Form;
use super::{BodyHeader, BodyParts, BodyTwin, GroupParts, LayerParts, SeamCorrection, Storage, TwinError};
use crate::container::{Array, Numbers, Opened, write};
use crate::dense::{Activation, Precision};
use serde::{Deserialize, Serialize};
use understudy_core::{Affine3A, Face, SkinWeights, Vec3};

pub use crate::container::VERSION;

/// Why a file is not a body twin that we can load.
pub type FileError = crate::container::FileError<TwinError>;

const METHOD: &str = "body";

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
pub fn to_bytes(parts: &BodyParts, precision: Precision) -> Result<Vec<u8>, FileError> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut push = |name: String, array: Array| arrays.push((name, array));
    let vertices = parts.rest_vertices.iter().flat_map(|v| v.to_array());
    push("rest_vertices".into(), Array::floats(&[parts.rest_vertices.len(), 3], vertices));
    let bones = parts.rest_bones.iter().flat_map(|b| b.to_cols_array());
    push("rest_bones".into(), Array::floats(&[parts.rest_bones.len(), 12], bones));
    if let Some(base) = &parts.base {
        let rows = || (0..base.vertex_count()).flat_map(|v| base.row(v));
        let lengths = (0..base.vertex_count()).map(|v| base.row(v).count() as u32);
        push("base.lengths".into(), Array::integers(lengths));
        push("base.bones".into(), Array::integers(rows().map(|(bone, _)| bone as u32)));
        let weights: Vec<f32> = rows().map(|(_, weight)| weight).collect();
        push("base.weights".into(), Array::floats(&[weights.len()], weights));
    }
    if !parts.faces.is_empty() {
        let corner = |face: &Face| [0, 1, 2, 3].map(|c| face.corners().get(c).copied().unwrap_or(Face::NONE));
        push("faces".into(), Array::integers(parts.faces.iter().flat_map(corner)));
    }
    if let Some(seams) = &parts.seams {
        push("stitch.vertices".into(), Array::integers(seams.vertices.iter().copied()));
        push("stitch.border".into(), Array::integers([seams.border as u32]));
        push("stitch.shares".into(), Array::floats(&[seams.shares.len()], seams.shares.iter().copied()));
        push("stitch.offsets".into(), Array::integers(seams.offsets.iter().copied()));
        push("stitch.sources".into(), Array::integers(seams.sources.iter().copied()));
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
    let json = |error: serde_json::Error| FileError::Kind(error.to_string());
    let header = serde_json::to_string(&parts.header).map_err(json)?;
    let groups = serde_json::to_string(&headers).map_err(json)?;
    write(METHOD, &[("header", header), ("groups", groups)], &arrays)
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub fn parse(bytes: &[u8]) -> Result<BodyTwin, FileError> {
    let file = Opened::parse(bytes, METHOD, &["header", "groups"])?;
    let header: BodyHeader = file.json("header")?;
    let headers: Vec<GroupHeader> = file.json("groups")?;
    let triple = |n: &[f32]| Vec3::new(n[0], n[1], n[2]);
    let rest_vertices = file.floats("rest_vertices", Some(3))?.chunks_exact(3).map(triple).collect();
    let affine = |n: &[f32]| Affine3A::from_cols_slice(n);
    let rest_bones = file.floats("rest_bones", Some(12))?.chunks_exact(12).map(affine).collect();
    let base = if file.contains("base.lengths") { Some(base(&file, header.bones.len())?) } else { None };
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
    let seams = match file.contains("stitch.vertices") {
        false => None,
        true => Some(SeamCorrection {
            vertices: file.integers("stitch.vertices")?,
            border: file.integers("stitch.border")?.first().map_or(0, |border| *border as usize),
            shares: file.floats("stitch.shares", None)?,
            offsets: file.integers("stitch.offsets")?,
            sources: file.integers("stitch.sources")?,
        }),
    };
    let faces = if file.contains("faces") { faces(&file)? } else { Vec::new() };
    if precision == Precision::Single {
        // Then it is the twin that is exact, not some of its layers.
        let layers = groups.iter_mut().flat_map(|group| &mut group.layers);
        let single = layers.filter(|layer| layer.storage == Storage::Single);
        single.for_each(|layer| layer.storage = Storage::Plain);
    }
    let parts = BodyParts { header, rest_vertices, rest_bones, base, faces, groups, seams };
    Ok(BodyTwin::new(parts, precision)?)
}

fn faces(file: &Opened<'_>) -> Result<Vec<Face>, FileError> {
    let corners = file.integers("faces")?;
    let (quads, rest) = corners.as_chunks::<4>();
    if !rest.is_empty() {
        let problem = format!("{} corners are no whole number of faces", corners.len());
        return Err(FileError::Tensor { name: "faces".into(), problem });
    }
    let face = |[a, b, c, d]: &[u32; 4]| match *d {
        Face::NONE => Face::triangle(*a, *b, *c),
        _ => Face::quad(*a, *b, *c, *d),
    };
    Ok(quads.iter().map(face).collect())
}

fn base(file: &Opened<'_>, bones: usize) -> Result<SkinWeights, FileError> {
    let lengths = file.integers("base.lengths")?;
    let (indices, weights) = (file.integers("base.bones")?, file.floats("base.weights", None)?);
    let whole: u64 = lengths.iter().map(|l| u64::from(*l)).sum();
    if whole != indices.len() as u64 || indices.len() != weights.len() {
        let problem = format!("rows of {whole} entries, {} bones, {} weights", indices.len(), weights.len());
        return Err(FileError::Tensor { name: "base.lengths".into(), problem });
    }
    let mut pairs = indices.iter().zip(&weights);
    let mut rows = Vec::with_capacity(lengths.len());
    for &length in &lengths {
        let mut row = Vec::new();
        for (&bone, &weight) in pairs.by_ref().take(length as usize) {
            let bone = u16::try_from(bone).map_err(|_| FileError::Tensor {
                name: "base.bones".into(),
                problem: format!("bone {bone} is out of range"),
            })?;
            row.push((bone, weight));
        }
        rows.push(row);
    }
    SkinWeights::from_rows(&rows, bones)
        .map_err(|error| FileError::Tensor { name: "base.weights".into(), problem: error.to_string() })
}
