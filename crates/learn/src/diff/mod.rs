//! The differential twin (Song, Shi and Reed 2020, "Deep Differential Subspace Reconstruction").
//!
//! The way: [`skin`] finds the `T_i` that the twin will evaluate → [`nonlinear`] takes them out of the vertices (eq. 14) →
//! [`features`] makes what networks see (eq. 9) → [`linear`] takes out what is linear in these → [`graph`] is the Laplacian and its factor (eq. 4, 15) → [`anchors`]
//! chooses anchors and [`influence`] what moves each → [`components`] compresses the differential coordinates →
//! [`differential`] trains the one deep network, [`Plan::train_anchor`] the mini-networks → [`fold`] turns the solve into
//! a small linear map → [`Plan::finish`] makes the parts of a twin.

pub mod anchors;
pub mod components;
pub mod differential;
pub mod features;
pub mod fold;
pub mod graph;
pub mod influence;
pub mod linear;
pub mod nonlinear;
mod plan;
mod settings;
pub mod skin;
mod subspace;
#[cfg(test)]
mod tests;
pub mod timing;

pub use differential::{Trainer, TrainerState};
pub use fold::FoldReport;
pub use plan::{DiffReport, Plan, held_back};
pub use settings::{Coordinates, DiffSettings, Loss, SkinSource};
pub use subspace::TrainedAnchor;

use crate::RecordingError;
use thiserror::Error;
use understudy_rigs::RigError;
use understudy_runtime::{PoseError, TwinError};

/// Why a differential twin could not be learned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DiffLearnError {
    /// A setting that makes no sense.
    #[error("the {what} is {value}; {want} is wanted")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it should be: `more than 0`.
        want: &'static str,
    },
    /// The recording cannot be learned from.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Nothing to learn.
    #[error("no vertex moves in these poses beyond its bones; there is nothing to learn")]
    NothingMoves,
    /// Nothing to learn from.
    #[error("no control and no bone takes more than one value in these poses")]
    NothingSeen,
    /// The `T_i` were to come from a place that has none.
    #[error("skinning was to come from {wanted}, but {problem}")]
    Skin {
        /// As it was asked for.
        wanted: &'static str,
        /// What is missing.
        problem: &'static str,
    },
    /// A chosen anchor does not exist.
    #[error("anchor {vertex} is no vertex; the mesh has {count}")]
    Anchor {
        /// As it was given.
        vertex: u32,
        /// Of the mesh.
        count: usize,
    },
    /// Training left every good place.
    #[error(
        "training diverged: at a learning rate of {rate} the network became worse than none; take a lower rate"
    )]
    Diverged {
        /// The learning rate.
        rate: f32,
    },
    /// The live rig failed while it was probed.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The parts do not make a twin.
    #[error(transparent)]
    Twin(#[from] TwinError),
    /// A finished twin does not take a recorded pose.
    #[error(transparent)]
    Pose(#[from] PoseError),
    /// Training was told to stop.
    #[error("stopped")]
    Stopped,
}

/// Fewer poses would leave nothing to hold back, or nothing to learn from.
pub const FEWEST_POSES: usize = 30;
