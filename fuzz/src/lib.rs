//! What the fuzzers run: readers of files in [`targets`], twins in [`twin`], answers of rigs in [`protocol`].

pub mod protocol;
pub mod targets;
pub mod twin;
