//! Latent spaces of an artist's clips, and animation that walks them.
//!
//! Poses become few numbers twice: linearly ([`LinearPoses`], scaled by what each control does to the mesh), then by a
//! Gaussian process latent variable model ([`LatentSpace`]) whose points keep the order of time and the likeness of
//! clips. A [`Particle`](particle::Particle) follows paths through such a space; [`Synthesis`] runs several spaces, one
//! per label, by the commands of a [`script`], and steps from one to another over [`bridge`]s. This crate opens no files
//! and knows no rig: whoever learns says what a control does to the mesh.

pub mod bridge;
pub mod conjugate;
mod latent;
mod linear;
mod matrix;
pub mod particle;
pub mod path;
mod priors;
pub mod script;
mod synthesis;

pub use latent::{Kernel, LatentConfig, LatentSpace, Learned};
pub use linear::{LinearPoses, PROBES, influence, statistics};
pub use priors::PriorConfig;
pub use synthesis::{ClipFrames, MotionFile, MotionModel, Synthesis, SynthesisConfig, SynthesisError};

use thiserror::Error;

/// Why a latent space could not be learned or loaded.
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
    /// A file's parts disagree.
    #[error("the parts of a latent space do not fit together")]
    Stored,
}
