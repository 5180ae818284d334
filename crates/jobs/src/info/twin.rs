//! What is inside a twin.

use super::{ControlFacts, InfoReport, MeshFacts};
use crate::JobError;
use crate::twin::kinds::kind;
use crate::twin::mechanism::MechanismReport;
use crate::twin::open_twin;
use serde::Serialize;
use std::path::Path;
use understudy_runtime::Precision;

/// About a twin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwinFacts {
    /// Its kind: `body` or `face`.
    pub method: &'static str,
    /// What it is a twin of.
    pub rig: String,
    /// Of the mesh that it moves.
    pub vertices: usize,
    /// Bits a weight, mostly.
    pub weight_bits: u32,
    /// Of the file.
    pub bytes: u64,
    /// Multiply-adds a pose as the networks are written down.
    pub multiply_adds: usize,
    /// Its networks.
    pub networks: Vec<NetworkFacts>,
    /// What poses a twin with bones by controls alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<MechanismReport>,
    /// Segments that move rigidly by a motion of their own, and with others.
    pub rigid: [usize; 2],
}

/// About one network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkFacts {
    /// Of its segment, region or bone.
    pub name: String,
    /// `coarse` or `refinement` in a face, `group` in a body.
    pub stage: &'static str,
    /// That it moves.
    pub vertices: usize,
    /// That it sees.
    pub inputs: usize,
    /// Outputs of its dense layers.
    pub layers: Vec<usize>,
    /// Side of its map, pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<usize>,
    /// Numbers that all pixels of its map read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_features: Option<usize>,
}

/// Looks into the file of a twin.
pub fn look(path: &Path) -> Result<InfoReport, JobError> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let twin = open_twin(path)?;
    let own = kind(&twin);
    let facts = TwinFacts {
        method: twin.method(),
        rig: twin.header().rig.clone(),
        vertices: twin.vertex_count(),
        weight_bits: match twin.precision() {
            Precision::Half => 16,
            Precision::Single => 32,
        },
        bytes,
        multiply_adds: twin.multiply_adds(),
        networks: own.networks(),
        mechanism: MechanismReport::of(&twin),
        rigid: own.rigid(),
    };
    // What poses it, where that is more than it sees beside its bones.
    let controls = twin.posing_controls().unwrap_or(&twin.header().inputs.controls);
    Ok(InfoReport {
        kind: "twin",
        mesh: own.stored_mesh().map(MeshFacts::new),
        controls: controls.iter().map(ControlFacts::new).collect(),
        twin: Some(facts),
        ..InfoReport::default()
    })
}
