//! USD (`.usda`, `.usdc`): meshes with UsdSkel skins, blendshapes and animation, in and out. Start at [`read`] and
//! [`fn@write`].
//!
//! One layer is read, as exporters write it; layers, references and payloads that it names are not opened. Text is parsed by
//! `openusd`, the binary form by our own checked code; this module reads UsdSkel from either. Time is seconds: time codes divided by their rate.
//! What is written is text.

mod crate_file;
mod crate_values;
mod layer;
mod skel;
mod write;

use crate::{Model, ParseError, ReadError, read_bytes};
use std::path::Path;

pub use write::{to_usda_string, write};

/// Reads a file, by its content text or binary.
pub fn read(path: &Path) -> Result<Model, ReadError> {
    parse(&read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`read`] on bytes.
pub fn parse(bytes: &[u8]) -> Result<Model, ParseError> {
    skel::model(&layer::Layer::parse(bytes)?)
}
