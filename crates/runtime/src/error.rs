//! What can be wrong with a twin ([`TwinError`]: its file or its parts) and with a pose ([`PoseError`]); the same
//! for every kind.

use crate::container::VERSION;
use crate::dense::LayerError;
use thiserror::Error;

/// Why bytes or parts are no twin that we can play.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TwinError {
    /// Not safetensors, or damaged.
    #[error("not a readable safetensors file: {0}")]
    Container(String),
    /// Not written by Understudy, or another kind than the one that was asked for.
    #[error("{0}")]
    Kind(String),
    /// Written by a newer version.
    #[error("the twin has format version {found}; this program reads up to {VERSION}")]
    Version {
        /// What the file says.
        found: u32,
    },
    /// Written by an older version, which meant something else by the same numbers.
    #[error(
        "the twin has format version {found}; of its kind this program reads {least} to {VERSION}: learn it again"
    )]
    Old {
        /// What the file says.
        found: u32,
        /// The oldest that can be read.
        least: u32,
    },
    /// The content does not match its checksum.
    #[error("the content does not match its checksum: the file is damaged")]
    Checksum,
    /// A tensor is missing or has another shape or type.
    #[error("tensor '{name}': {problem}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// An array of the wrong length.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: String,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// An index out of range.
    #[error("{what}: {index} is out of range, there are {count}")]
    Index {
        /// What it names.
        what: String,
        /// The index.
        index: usize,
        /// How many exist.
        count: usize,
    },
    /// A vertex that nothing moves, or that two parts move.
    #[error("vertex {vertex} is moved by {what}")]
    Cover {
        /// The vertex.
        vertex: usize,
        /// By what.
        what: String,
    },
    /// A layer that is not valid.
    #[error("{network}, layer {layer}: {error}")]
    Layer {
        /// The group or the network.
        network: String,
        /// The layer.
        layer: usize,
        /// Why.
        error: LayerError,
    },
    /// A number that is not finite.
    #[error("{what}: entry {index} is not finite")]
    NonFinite {
        /// Which array.
        what: String,
        /// Where.
        index: usize,
    },
    /// The bones' parents form no tree.
    #[error("bone {bone} is its own ancestor")]
    Cycle {
        /// A bone on the cycle.
        bone: usize,
    },
    /// Parts that do not fit together in another way.
    #[error("{what}: {problem}")]
    Part {
        /// Which part.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Why a pose cannot be played.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PoseError {
    /// Bones for a twin of controls, or the reverse; a gradient of a kind that has none.
    #[error("{0}")]
    Kind(&'static str),
    /// An array of the wrong length.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A number that is not finite.
    #[error("{what}: entry {index} is not finite")]
    NonFinite {
        /// Which array.
        what: &'static str,
        /// Where.
        index: usize,
    },
}

/// Fails where an array of a pose has another length than the twin wants.
pub(crate) fn check_count(what: &'static str, got: usize, want: usize) -> Result<(), PoseError> {
    if got == want { Ok(()) } else { Err(PoseError::Count { what, got, want }) }
}

/// Fails at the first number of a pose that is not finite.
pub(crate) fn check_finite(
    what: &'static str,
    mut finite: impl Iterator<Item = bool>,
) -> Result<(), PoseError> {
    match finite.position(|finite| !finite) {
        Some(index) => Err(PoseError::NonFinite { what, index }),
        None => Ok(()),
    }
}
