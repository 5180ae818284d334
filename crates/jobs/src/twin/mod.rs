//! Twins: learning them from datasets, weighing them against baselines, timing them, sending them out into other
//! programs. One file per command, for every kind; what differs between kinds is in `kinds`.

pub mod active;
pub mod auto;
pub mod bandwidth;
pub mod bench;
mod checkpoint;
pub(crate) mod data;
pub mod eval;
pub mod export;
pub mod export_blender;
pub mod export_glb;
pub mod ik;
pub(crate) mod kinds;
pub mod learn;
pub mod mechanism;
mod record;

pub use data::{open_twin, read_recording};
pub use kinds::*;
pub use understudy_runtime::{Distances, Twin};
