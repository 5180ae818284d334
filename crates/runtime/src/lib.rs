//! The twin at run time: loads what training made and moves vertices, hundreds of times a second on one
//! core, in any engine or a browser. Knows no files and no tensors.
//!
//! Start at [`body::BodyTwin`] and [`face::FaceTwin`]; the kernels are in [`dense`].

pub mod body;
pub mod container;
pub mod dense;
pub mod face;
pub mod large_pages;
pub mod workers;
