//! Training of twins: poses of a rig in, parts of a twin out. Opens no files; the only crate that may
//! know a tensor library.
//!
//! Start at [`body::Plan`] for the body twin (METHODS M1). Dense networks train on the CPU in [`dense`],
//! one network per thread.

pub mod baselines;
pub mod body;
pub mod decomposition;
pub mod dense;
pub mod face;
mod held_back;
mod matrix;

pub use held_back::HeldBack;

/// Lengths beyond this are no character's, cm: their squares would not fit into single precision.
const LARGEST_CM: f32 = 1e9;
