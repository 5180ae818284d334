//! What is inside a twin.

use super::{ControlFacts, InfoReport, MeshFacts};
use crate::JobError;
use crate::twin::open_twin;
use serde::Serialize;
use std::path::Path;
use understudy_runtime::body::BodyTwin;
use understudy_runtime::face::{FaceTwin, Stage};
use understudy_runtime::{Precision, Twin};

/// About a twin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwinFacts {
    /// `body` or `face`.
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
    let controls = twin.header().inputs.controls.iter().map(ControlFacts::new).collect();
    let report = InfoReport { kind: "twin", ..InfoReport::default() };
    Ok(match &twin {
        Twin::Body(body_twin) => InfoReport { twin: Some(body(body_twin, bytes)), ..report },
        Twin::Face(face_twin) => {
            let mesh = Some(MeshFacts::new(face_twin.mesh()));
            InfoReport { mesh, controls, twin: Some(face(face_twin, bytes)), ..report }
        }
    })
}

fn bits(precision: Precision) -> u32 {
    match precision {
        Precision::Half => 16,
        Precision::Single => 32,
    }
}

fn face(twin: &FaceTwin, bytes: u64) -> TwinFacts {
    let parts = twin.parts();
    let networks = parts.nets.iter().map(|net| NetworkFacts {
        name: net.name.clone(),
        stage: match net.stage {
            Stage::Coarse => "coarse",
            Stage::Refinement => "refinement",
        },
        vertices: net.vertices.len(),
        inputs: net.inputs.len(),
        layers: net.dense.iter().map(|layer| layer.bias.len()).collect(),
        map: net.map.as_ref().map(|map| map.shape.map_side()),
        shared_features: net.map.as_ref().map(|map| map.shape.shared_features),
    });
    TwinFacts {
        method: "face",
        rig: twin.header().rig.clone(),
        vertices: twin.vertex_count(),
        weight_bits: bits(twin.precision()),
        bytes,
        multiply_adds: twin.multiply_adds(),
        networks: networks.collect(),
        rigid: [parts.bodies.len(), parts.rigid.len()],
    }
}

fn body(twin: &BodyTwin, bytes: u64) -> TwinFacts {
    let groups = twin.parts().groups;
    let networks = groups.iter().map(|group| NetworkFacts {
        name: twin.header().inputs.bones[group.bone].name.clone(),
        stage: "group",
        vertices: group.vertices.len(),
        inputs: group.inputs.len(),
        layers: group.layers.iter().map(|layer| layer.bias.len()).collect(),
        map: None,
        shared_features: None,
    });
    TwinFacts {
        method: "body",
        rig: twin.header().rig.clone(),
        vertices: twin.vertex_count(),
        weight_bits: bits(twin.precision()),
        bytes,
        multiply_adds: twin.multiply_adds(),
        networks: networks.collect(),
        rigid: [0, 0],
    }
}
