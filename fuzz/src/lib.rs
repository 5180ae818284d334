//! What the fuzzers run: readers of files in [`targets`], twins in [`twin`].

pub mod targets;
pub mod twin;
