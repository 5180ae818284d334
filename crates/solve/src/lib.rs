//! Solvers that turn a shape back into what made it. Start at [`inverse_rig`] for blendshape weights from a mesh, in
//! real time, for correctives of any level, and at [`skin_weights`] for the weights with which handles move a mesh;
//! [`arap`] deforms a whole mesh by some of its vertices.
//!
//! Nothing here opens a file. Solvers work in f64; lengths are centimetres, as everywhere.

pub mod arap;
pub mod closest;
pub mod inverse_rig;
pub mod skin_weights;

pub use inverse_rig::{InverseError, InverseRig, InverseSettings, Method, Order, SolveReport, Solver, Stop};
