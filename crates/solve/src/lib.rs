//! Solvers that turn a shape back into the controls that made it. Start at [`inverse_rig`]: blendshape
//! weights from a mesh, in real time, for correctives of any level.
//!
//! Nothing here opens a file. Solvers work in f64; lengths are centimetres, as everywhere.

pub mod inverse_rig;

pub use inverse_rig::{InverseError, InverseRig, InverseSettings, Method, Order, SolveReport, Solver, Stop};
