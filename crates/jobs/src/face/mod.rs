//! Face twins: learning them from datasets, weighing them, timing them, sending them into other programs
//! and onto other meshes. One file a command; bodies have theirs in [`crate::twin`].

mod checkpoint;
mod data;
pub mod learn;

pub use data::open_face_twin;
