//! The kinds of twins, and what each supplies. Every command is written once, over `Kind`; a kind is a variant of
//! [`runtime::Twin`](understudy_runtime::Twin), a module beside this file, and a line in each of the places below.

pub mod body;
pub mod diff;
pub mod face;
pub mod skin;

use super::eval::figures::{Figures, Study};
use super::learn::Learn;
use crate::info::NetworkFacts;
use body::{BodyDetails, BodyLearning};
use diff::{DiffDetails, DiffLearning};
use face::{FaceDetails, FaceLearning};
use serde::{Deserialize, Serialize};
use skin::{SkinDetails, SkinLearning};
use understudy_core::{JointPose, Mesh, Skeleton, SkinWeights};
use understudy_io::onnx::Graph;
use understudy_runtime::{PoseError, Twin};

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

    /// Bones of its own, which an engine can skin with.
    fn own_skin(&self) -> Option<OwnSkin> {
        None
    }

    /// Draws its own bones alone as an ONNX graph: input `controls`, output `bones`. Tells whether it has some.
    fn draw_bones(&self, _graph: &mut Graph) -> bool {
        false
    }

    /// Skinning inside it that an engine can play without any network.
    fn skin(&self) -> Option<SkinWeights> {
        None
    }
}

/// A skin whose joints are a twin's own, not the rig's.
pub(crate) struct OwnSkin {
    /// The twin's mesh, without what only the rig knows of it.
    pub mesh: Mesh,
    /// As a GLB has them.
    pub skeleton: Skeleton,
    /// For these joints.
    pub weights: SkinWeights,
    /// Where the joints are in a pose of the twin.
    pub pose: Box<JointsOf>,
}

/// Joints of controls.
pub(crate) type JointsOf = dyn FnMut(&[f32]) -> Result<JointPose, PoseError>;

/// The kind of a twin.
pub(crate) fn kind(twin: &Twin) -> &dyn Kind {
    match twin {
        Twin::Body(twin) => &**twin,
        Twin::Diff(twin) => &**twin,
        Twin::Face(twin) => &**twin,
        Twin::Skin(twin) => &**twin,
    }
}

/// How to learn a twin: one variant per kind, with its own settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Learning {
    /// Networks on groups of vertices, posed by bones.
    Body(BodyLearning),
    /// One network in Laplacian coordinates with anchors, posed by bones and controls or by controls alone.
    Diff(DiffLearning),
    /// Maps in texture space, posed by controls.
    Face(FaceLearning),
    /// Bones of its own, moved by a network, posed by controls.
    Skin(SkinLearning),
}

impl Learning {
    /// Every kind with its usual settings, in the order of tables: what `learn auto` tries.
    pub fn all() -> Vec<Self> {
        vec![
            Self::Body(BodyLearning::default()),
            Self::Diff(DiffLearning::default()),
            Self::Face(FaceLearning::default()),
            Self::Skin(SkinLearning::default()),
        ]
    }

    /// The kind, as files have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Body(_) => "body",
            Self::Diff(_) => "diff",
            Self::Face(_) => "face",
            Self::Skin(_) => "skin",
        }
    }

    /// The same, to be learned in about so many minutes on two cores.
    pub fn limited(&self, minutes: f64) -> Self {
        self.job().limited(minutes)
    }

    pub(crate) fn job(&self) -> &dyn Learn {
        match self {
            Self::Body(body) => body,
            Self::Diff(diff) => diff,
            Self::Face(face) => face,
            Self::Skin(skin) => skin,
        }
    }
}

/// What only one kind has to report of learning.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LearnDetails {
    /// Of a body.
    Body(BodyDetails),
    /// Of a differential twin.
    Diff(Box<DiffDetails>),
    /// Of a face.
    Face(Box<FaceDetails>),
    /// Of a skin twin.
    Skin(SkinDetails),
}

impl LearnDetails {
    /// What people should read, a line each.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Body(body) => body.lines(),
            Self::Diff(diff) => diff.lines(),
            Self::Face(face) => face.lines(),
            Self::Skin(skin) => skin.lines(),
        }
    }
}
