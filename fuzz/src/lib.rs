//! What the fuzzers run: readers of files in [`targets`], twins in [`twin`], files of motion in [`motion`], answers of rigs in [`protocol`].

pub mod motion;
pub mod protocol;
pub mod targets;
pub mod twin;
