//! The kinds of twins, and what each supplies. Every command is written once, over `Kind`; a kind is a variant of
//! [`runtime::Twin`](understudy_runtime::Twin), a module beside this file, and a line in each of the places below.

pub mod body;
pub mod face;

use super::eval::figures::{Figures, Study};
use super::learn::Learn;
use crate::info::NetworkFacts;
use body::{BodyDetails, BodyLearning};
use face::{FaceDetails, FaceLearning};
use serde::{Deserialize, Serialize};
use understudy_core::{Mesh, SkinWeights};
use understudy_io::onnx::Graph;
use understudy_runtime::Twin;

/// What the commands ask of a twin of some kind, beyond what every [`Twin`] can do.
pub(crate) trait Kind {
    /// Draws it as an ONNX graph: inputs `bones` and `controls`, output `vertices`.
    fn draw(&self, graph: &mut Graph);

    /// Its networks.
    fn networks(&self) -> Vec<NetworkFacts>;

    /// What it consists of, for the table on a page.
    fn statistics(&self) -> Vec<(&'static str, usize)>;

    /// Twins inside it that are worth a row of their own, by name.
    fn inner_twins(&self) -> Vec<(&'static str, Twin)> {
        Vec::new()
    }

    /// Figures that only make sense of this kind.
    fn figures(&self, _study: &Study<'_>) -> Vec<Box<dyn Figures>> {
        Vec::new()
    }

    /// For every segment of the mesh what moves it; nothing where nobody could tell.
    fn movers(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Vertices that every picture must show; all where it is empty.
    fn subject(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Its mesh, where the file holds one.
    fn stored_mesh(&self) -> Option<&Mesh> {
        None
    }

    /// Segments that move rigidly: by a motion of their own, and with others.
    fn rigid(&self) -> [usize; 2] {
        [0, 0]
    }

    /// Skinning inside it that an engine can play without any network.
    fn skin(&self) -> Option<SkinWeights> {
        None
    }
}

/// The kind of a twin.
pub(crate) fn kind(twin: &Twin) -> &dyn Kind {
    match twin {
        Twin::Body(twin) => &**twin,
        Twin::Face(twin) => &**twin,
    }
}

/// How to learn a twin: one variant per kind, with its own settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Learning {
    /// Networks on groups of vertices, posed by bones.
    Body(BodyLearning),
    /// Maps in texture space, posed by controls.
    Face(FaceLearning),
}

impl Learning {
    pub(crate) fn job(&self) -> &dyn Learn {
        match self {
            Self::Body(body) => body,
            Self::Face(face) => face,
        }
    }
}

/// What only one kind has to report of learning.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LearnDetails {
    /// Of a body.
    Body(BodyDetails),
    /// Of a face.
    Face(Box<FaceDetails>),
}

impl LearnDetails {
    /// What people should read, a line each.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Body(body) => body.lines(),
            Self::Face(face) => face.lines(),
        }
    }
}
