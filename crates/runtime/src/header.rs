//! What a twin says about itself, the same for every kind; kept as JSON in its file.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use understudy_core::{ControlSpec, ControlSpecs};

/// What a twin is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The rig that it was learned from.
    pub rig: String,
    /// Hash of the topology of the mesh that it moves (`Mesh::topology_hash`).
    pub topology_hash: u64,
    /// Always `cm`.
    pub units: String,
    /// What a pose consists of.
    pub inputs: Inputs,
    /// How it was trained and how well.
    #[serde(default, deserialize_with = "null_as_default")]
    pub training: Training,
}

/// What a pose consists of; either may be empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The skeleton, in the order in which a pose gives world transforms.
    pub bones: Vec<BoneHeader>,
    /// The controls, in the order in which a pose gives their values: of a face all of the rig's, of a body those
    /// that matter beside its bones.
    pub controls: ControlSpecs,
}

/// A bone as a twin knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoneHeader {
    /// Its name in the rig.
    pub name: String,
    /// `None` for a root.
    pub parent: Option<usize>,
}

/// How a twin was trained and how well.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// Poses that it was trained on.
    pub poses: usize,
    /// Whether inputs were found on the live rig; estimated from the poses otherwise.
    pub inputs_probed: bool,
    /// What 16-bit weights cost against 32 bits; `None` where weights have 32.
    pub half_error_mm: Option<Distances>,
    /// Weights that stay in 32 bits because 16 would show.
    pub weights_in_32_bits: usize,
    /// Mean angles to the true normals on validation poses, degrees: of the maps' normals, and of those from faces.
    pub normal_angles_deg: Option<[f64; 2]>,
    /// Hash of the topology that it was transferred from.
    pub transferred_from: Option<String>,
    /// Settings and reports in the method's own terms, for people.
    #[serde(flatten)]
    pub details: BTreeMap<String, serde_json::Value>,
}

/// Distances between vertices over some poses, mm. Files of version 3 may have them as a pair of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Distances {
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
}

fn null_as_default<'de, D: Deserializer<'de>>(input: D) -> Result<Training, D::Error> {
    Ok(Option::<Training>::deserialize(input)?.unwrap_or_default())
}

/// The header of files before version 4: one shape for bodies, another for faces.
#[derive(Deserialize)]
pub(crate) struct HeaderBefore4<K> {
    rig: String,
    topology_hash: u64,
    units: String,
    #[serde(default)]
    bones: Vec<BoneHeader>,
    controls: ControlsBefore4,
    /// What only one kind had.
    #[serde(flatten)]
    pub kind: K,
    #[serde(default, deserialize_with = "null_as_default")]
    training: Training,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ControlsBefore4 {
    /// Bodies: the names alone.
    Names(Vec<String>),
    /// Faces.
    Specs(ControlSpecs),
}

impl<K> HeaderBefore4<K> {
    /// The same as it is told today, or why that cannot be. Of controls whose file does not tell a range any value may
    /// come.
    pub fn into_header(self) -> Result<(Header, K), String> {
        let controls = match self.controls {
            ControlsBefore4::Specs(specs) => specs,
            ControlsBefore4::Names(names) => {
                let spec = |name: String| ControlSpec::number(name, f32::MIN, f32::MAX, 0.0);
                ControlSpecs::new(names.into_iter().map(spec).collect()).map_err(|error| error.to_string())?
            }
        };
        let inputs = Inputs { bones: self.bones, controls };
        let (rig, topology_hash, units) = (self.rig, self.topology_hash, self.units);
        Ok((Header { rig, topology_hash, units, inputs, training: self.training }, self.kind))
    }
}
