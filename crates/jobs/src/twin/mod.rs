//! Twins: learning them from datasets, weighing them against baselines, timing them, sending them out into other
//! programs. One file per command, for every kind; what a kind supplies is in `kind`, the kinds are modules of their
//! names.

pub mod bench;
pub mod body;
mod checkpoint;
pub(crate) mod data;
pub mod eval;
pub mod export;
pub mod export_glb;
pub mod face;
pub(crate) mod kind;
pub mod learn;
pub(crate) mod peers;
pub(crate) mod race;
mod record;

pub use data::open_twin;
pub use kind::{LearnDetails, Learning};
pub use understudy_runtime::{Distances, Twin};
