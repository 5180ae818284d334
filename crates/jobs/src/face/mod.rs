//! Face twins: learning them from datasets, weighing them, timing them, sending them into other programs
//! and onto other meshes. One file per command; bodies have theirs in [`crate::twin`].

pub mod bench;
mod checkpoint;
mod data;
pub mod eval;
mod eval_methods;
mod eval_page;
pub(crate) mod eval_pictures;
pub mod export;
pub mod gaps;
pub mod learn;
mod learn_report;
mod onnx;
pub mod rigidity;
pub mod spectrum;
pub mod transfer;

pub use data::open_face_twin;
