//! Learns motion from an artist's clips: latent spaces, and bridges between them.
//!
//! Poses become few numbers twice: linearly ([`linear::fit`], scaled by what each control does to the mesh), then by a
//! Gaussian process latent variable model ([`LatentSpace`]) whose points keep the order of time and the likeness of
//! clips. [`label`] makes of both what the run time plays, [`bridge`] joins labels; paths, particles, commands and files
//! are `understudy_runtime::motion`, which this crate uses too. [`motion_graph`] is the baseline. This crate opens no
//! files and knows no rig: whoever learns says what a control does to the mesh.

pub mod bridge;
pub mod conjugate;
mod connectivity;
mod dense;
mod label;
mod latent;
pub mod linear;
mod matrix;
pub mod motion_graph;
mod priors;
mod sparse;

pub use conjugate::Stop;
pub use label::label;
pub use latent::{LatentConfig, LatentSpace, Learned};
pub use linear::{PROBES, influence, statistics};
pub use priors::PriorConfig;
pub use understudy_runtime::motion::Covariance;

use thiserror::Error;

/// Why a latent space could not be learned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MotionError {
    /// Nothing in the clips moves.
    #[error("nothing moves in the clips")]
    Still,
    /// Fewer than two frames.
    #[error("{frames} frames are too few: a latent space needs two at least")]
    TooFew {
        /// How many there are.
        frames: usize,
    },
    /// More frames than one space takes.
    #[error("{frames} frames are too many: a latent space takes {most}; lower the rate or the clips")]
    TooMany {
        /// How many there are.
        frames: usize,
        /// The most.
        most: usize,
    },
    /// A matrix could not be factored.
    #[error("the numbers of the clips make no covariance that can be inverted")]
    Numbers,
    /// What was learned is nothing that can be played.
    #[error("{0}")]
    Unplayable(#[from] understudy_runtime::motion::MotionFileError),
}
