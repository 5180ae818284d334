//! Twins: learning them from datasets, weighing them against baselines, timing them, sending them out
//! into other programs. One file a command.

pub mod bench;
mod checkpoint;
mod data;
pub mod eval;
mod eval_page;
pub mod export;
pub mod export_glb;
pub mod learn;
mod onnx;
mod peers;
mod race;
mod sight;

pub use data::open_twin;
