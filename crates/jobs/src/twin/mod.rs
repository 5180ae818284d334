//! Twins: learning them from datasets, weighing them against baselines, timing them, sending them out
//! into other programs. One file per command.

pub mod bench;
mod checkpoint;
pub(crate) mod data;
pub mod eval;
mod eval_page;
pub mod export;
pub mod export_glb;
pub mod learn;
pub(crate) mod onnx;
pub(crate) mod peers;
pub(crate) mod race;

pub use data::{open_body_twin, open_twin};
pub use understudy_runtime::{Distances, Twin};
