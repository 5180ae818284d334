//! The file of a body twin: one safetensors file with JSON metadata.
//!
//! Metadata: `understudy` is the version of the format, `method` is `body`, `header` is [`BodyHeader`] as
//! JSON, `groups` a JSON list of `{bone, layers: [{activation}]}`. Tensors: `rest_vertices [V,3]`,
//! `rest_bones [J,12]`, optionally `base.offsets`, `base.bones`, `base.weights`, and for group `g` and
//! layer `l` `group.g.vertices`, `group.g.inputs`, `group.g.mean`, `group.g.scale`,
//! `group.g.l.weights [rows,columns]` (f16 or f32), `group.g.l.bias`.

use super::{BodyHeader, BodyParts, BodyTwin, GroupParts, LayerParts, TwinError};
use crate::dense::{Activation, Precision};
use half::f16;
use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use thiserror::Error;
use understudy_core::{Affine3A, SkinWeights, Vec3};

/// The version that this build writes. Older ones keep loading.
pub const VERSION: u32 = 1;

/// Why a file is not a twin that we can load.
#[derive(Debug, Error)]
pub enum FileError {
    /// Not safetensors, or damaged.
    #[error("not a readable safetensors file: {0}")]
    Container(String),
    /// Not written by Understudy, or another method's twin.
    #[error("{0}")]
    Kind(String),
    /// Written by a newer version.
    #[error("the twin has format version {found}; this program reads up to {VERSION}")]
    Version {
        /// What the file says.
        found: u32,
    },
    /// A tensor is missing or has another shape or type.
    #[error("tensor '{name}': {problem}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The parts do not fit together.
    #[error(transparent)]
    Twin(#[from] TwinError),
    /// The content does not match its checksum.
    #[error("the content does not match its checksum: the file is damaged")]
    Checksum,
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

/// An array on its way to the file.
struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for &Array {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

fn floats(shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Array {
    let bytes = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
    Array { dtype: Dtype::F32, shape: shape.to_vec(), bytes }
}

fn integers(numbers: impl IntoIterator<Item = u32>) -> Array {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    Array { dtype: Dtype::U32, shape: vec![bytes.len() / 4], bytes }
}

/// The bytes of a file. Same twin, same bytes.
pub fn to_bytes(parts: &BodyParts, precision: Precision) -> Result<Vec<u8>, FileError> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut push = |name: String, array: Array| arrays.push((name, array));
    let vertices = parts.rest_vertices.iter().flat_map(|v| v.to_array());
    push("rest_vertices".into(), floats(&[parts.rest_vertices.len(), 3], vertices));
    let bones = parts.rest_bones.iter().flat_map(|b| b.to_cols_array());
    push("rest_bones".into(), floats(&[parts.rest_bones.len(), 12], bones));
    if let Some(base) = &parts.base {
        let rows = || (0..base.vertex_count()).flat_map(|v| base.row(v));
        let lengths = (0..base.vertex_count()).map(|v| base.row(v).count() as u32);
        push("base.lengths".into(), integers(lengths));
        push("base.bones".into(), integers(rows().map(|(bone, _)| bone as u32)));
        let weights: Vec<f32> = rows().map(|(_, weight)| weight).collect();
        push("base.weights".into(), floats(&[weights.len()], weights));
    }
    let mut headers = Vec::new();
    for (index, group) in parts.groups.iter().enumerate() {
        push(format!("group.{index}.vertices"), integers(group.vertices.iter().copied()));
        push(format!("group.{index}.inputs"), integers(group.inputs.iter().copied()));
        push(format!("group.{index}.mean"), floats(&[group.mean.len()], group.mean.iter().copied()));
        push(format!("group.{index}.scale"), floats(&[group.scale.len()], group.scale.iter().copied()));
        let mut activations = Vec::new();
        for (layer, data) in group.layers.iter().enumerate() {
            let rows = data.bias.len();
            let shape = [rows, data.weights.len() / rows.max(1)];
            let weights = match precision {
                Precision::Single => floats(&shape, data.weights.iter().copied()),
                Precision::Half => Array {
                    dtype: Dtype::F16,
                    shape: shape.to_vec(),
                    bytes: data.weights.iter().flat_map(|w| f16::from_f32(*w).to_le_bytes()).collect(),
                },
            };
            push(format!("group.{index}.{layer}.weights"), weights);
            push(format!("group.{index}.{layer}.bias"), floats(&[rows], data.bias.iter().copied()));
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
    let checksum = checksum(&header, &groups, arrays.iter().map(|(name, a)| (name.as_str(), &a.bytes[..])));
    let metadata = HashMap::from([
        ("understudy".to_owned(), VERSION.to_string()),
        ("method".to_owned(), "body".to_owned()),
        ("header".to_owned(), header),
        ("groups".to_owned(), groups),
        ("checksum".to_owned(), checksum),
    ]);
    let views = arrays.iter().map(|(name, array)| (name.as_str(), array));
    let bytes =
        safetensors::serialize(views, Some(metadata)).map_err(|e| FileError::Container(e.to_string()))?;
    Ok(sort_metadata(bytes))
}

/// A hash over everything that the header and the tensors say, whatever their order in the file.
fn checksum<'a>(header: &str, groups: &str, arrays: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut sorted: Vec<(&str, &[u8])> = arrays.collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = understudy_core::mesh::Fnv::default();
    hash.write(header.as_bytes());
    hash.write(groups.as_bytes());
    for (name, bytes) in sorted {
        hash.write(name.as_bytes());
        hash.write(bytes);
    }
    format!("{:016x}", hash.finish())
}

/// The container keeps metadata in a hash map, whose order changes from run to run: writes the header
/// again with sorted keys, so that the same twin gives the same bytes.
fn sort_metadata(bytes: Vec<u8>) -> Vec<u8> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return bytes };
    let length = u64::from_le_bytes(*length) as usize;
    let Ok(header) = serde_json::from_slice::<serde_json::Value>(&rest[..length]) else { return bytes };
    // serde_json's map is ordered by key.
    let mut sorted = header.to_string().into_bytes();
    sorted.resize(sorted.len().next_multiple_of(8), b' ');
    let mut out = (sorted.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&sorted);
    out.extend_from_slice(&rest[length..]);
    out
}

/// Reads a twin and checks everything about it. Weights stay in the precision of the file.
pub fn parse(bytes: &[u8]) -> Result<BodyTwin, FileError> {
    let damaged = |error: safetensors::SafeTensorError| FileError::Container(error.to_string());
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let metadata = metadata.metadata().clone().unwrap_or_default();
    let text = |key: &str| {
        metadata.get(key).ok_or_else(|| FileError::Kind(format!("not a twin: metadata '{key}' is missing")))
    };
    let version: u32 =
        text("understudy")?.parse().map_err(|_| FileError::Kind("not a twin: no version".into()))?;
    if version == 0 || version > VERSION {
        return Err(FileError::Version { found: version });
    }
    if text("method")? != "body" {
        return Err(FileError::Kind(format!("a twin of method '{}', not of 'body'", text("method")?)));
    }
    let arrays =
        tensors.names().into_iter().filter_map(|name| Some((name, tensors.tensor(name).ok()?.data())));
    if checksum(text("header")?, text("groups")?, arrays) != *text("checksum")? {
        return Err(FileError::Checksum);
    }
    let json = |key: &str, error: serde_json::Error| FileError::Kind(format!("metadata '{key}': {error}"));
    let header: BodyHeader = serde_json::from_str(text("header")?).map_err(|e| json("header", e))?;
    let headers: Vec<GroupHeader> = serde_json::from_str(text("groups")?).map_err(|e| json("groups", e))?;
    let reader = Reader(&tensors);
    let triple = |n: &[f32]| Vec3::new(n[0], n[1], n[2]);
    let rest_vertices = reader.floats("rest_vertices", Some(3))?.chunks_exact(3).map(triple).collect();
    let affine = |n: &[f32]| Affine3A::from_cols_slice(n);
    let rest_bones = reader.floats("rest_bones", Some(12))?.chunks_exact(12).map(affine).collect();
    let base =
        if tensors.tensor("base.lengths").is_ok() { Some(reader.base(header.bones.len())?) } else { None };
    let mut precision = Precision::Single;
    let mut groups = Vec::with_capacity(headers.len());
    for (index, group) in headers.into_iter().enumerate() {
        let mut layers = Vec::new();
        for (layer, activation) in group.activations.iter().enumerate() {
            let name = format!("group.{index}.{layer}.weights");
            if reader.dtype(&name)? == Dtype::F16 {
                precision = Precision::Half;
            }
            layers.push(LayerParts {
                weights: reader.floats(&name, None)?,
                bias: reader.floats(&format!("group.{index}.{layer}.bias"), None)?,
                activation: match activation {
                    ActivationName::None => Activation::None,
                    ActivationName::Tanh => Activation::Tanh,
                },
            });
        }
        groups.push(GroupParts {
            bone: group.bone,
            vertices: reader.integers(&format!("group.{index}.vertices"))?,
            inputs: reader.integers(&format!("group.{index}.inputs"))?,
            mean: reader.floats(&format!("group.{index}.mean"), None)?,
            scale: reader.floats(&format!("group.{index}.scale"), None)?,
            layers,
        });
    }
    let parts = BodyParts { header, rest_vertices, rest_bones, base, groups };
    Ok(BodyTwin::new(parts, precision)?)
}

/// Typed access to tensors.
struct Reader<'a>(&'a SafeTensors<'a>);

impl Reader<'_> {
    fn tensor(&self, name: &str) -> Result<safetensors::tensor::TensorView<'_>, FileError> {
        self.0
            .tensor(name)
            .map_err(|error| FileError::Tensor { name: name.into(), problem: error.to_string() })
    }

    fn dtype(&self, name: &str) -> Result<Dtype, FileError> {
        Ok(self.tensor(name)?.dtype())
    }

    /// f32 or f16 numbers; `width` is what the last axis must be.
    fn floats(&self, name: &str, width: Option<usize>) -> Result<Vec<f32>, FileError> {
        let tensor = self.tensor(name)?;
        if let Some(width) = width.filter(|width| tensor.shape().last() != Some(width)) {
            let problem = format!("shape {:?}, the last axis should be {width}", tensor.shape());
            return Err(FileError::Tensor { name: name.into(), problem });
        }
        match tensor.dtype() {
            Dtype::F32 => {
                let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Ok(tensor.data().chunks_exact(4).map(number).collect())
            }
            Dtype::F16 => {
                let number = |b: &[u8]| f16::from_le_bytes([b[0], b[1]]).to_f32();
                Ok(tensor.data().chunks_exact(2).map(number).collect())
            }
            other => Err(FileError::Tensor {
                name: name.into(),
                problem: format!("type {other:?}, not f32 or f16"),
            }),
        }
    }

    fn integers(&self, name: &str) -> Result<Vec<u32>, FileError> {
        let tensor = self.tensor(name)?;
        if tensor.dtype() != Dtype::U32 {
            let problem = format!("type {:?}, not u32", tensor.dtype());
            return Err(FileError::Tensor { name: name.into(), problem });
        }
        let number = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(tensor.data().chunks_exact(4).map(number).collect())
    }

    fn base(&self, bones: usize) -> Result<SkinWeights, FileError> {
        let lengths = self.integers("base.lengths")?;
        let (indices, weights) = (self.integers("base.bones")?, self.floats("base.weights", None)?);
        let whole: u64 = lengths.iter().map(|l| u64::from(*l)).sum();
        if whole != indices.len() as u64 || indices.len() != weights.len() {
            let problem =
                format!("rows of {whole} entries, {} bones, {} weights", indices.len(), weights.len());
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
}
