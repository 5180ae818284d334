//! Conversion.

pub mod bake;
