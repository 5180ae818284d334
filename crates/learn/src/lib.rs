//! Training of twins: poses of a rig in, parts of a twin out. Opens no files; the only crate that may
//! know a tensor library.
//!
//! Start at [`body::Plan`] for the body twin. Dense networks train on the CPU in [`dense`],
//! one network per thread.

pub mod baselines;
pub mod body;
mod cholesky;
pub mod decomposition;
pub mod dense;
pub mod diff;
pub mod ensemble;
pub mod face;
mod held_back;
pub mod ik;
mod matrix;
pub mod mechanism;
mod method;
mod recording;
pub mod skin;
pub mod skinning;
pub mod style;

pub use held_back::HeldBack;
pub use method::{FollowingSkin, Frame, Method, MethodError, PlayedTwin, PosedRig};
pub use recording::{Recording, RecordingError};
