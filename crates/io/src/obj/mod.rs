//! Wavefront OBJ in and out: polygons, texture coordinates and groups; normals and materials are not
//! kept. Start at [`read`] and [`fn@write`].
//!
//! The format knows no units: numbers are taken as cm. What is written reads back as the same mesh, number for number.

mod parse;
mod segments;
mod write;

use crate::{Conversion, ParseError, ReadError, read_bytes};
use std::path::Path;
use understudy_core::Mesh;
pub use write::{to_obj_string, write};

/// A mesh from an OBJ file.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjMesh {
    /// Triangles and quads; a segment a group.
    pub mesh: Mesh,
    /// What was skipped or mended.
    pub warnings: Vec<String>,
    /// How lengths became cm.
    pub conversion: Conversion,
}

/// Reads a file whose numbers are cm.
pub fn read(path: &Path) -> Result<ObjMesh, ReadError> {
    parse(&read_bytes(path)?).map_err(ReadError::content(path))
}

/// Reads OBJ text in memory.
pub fn parse(bytes: &[u8]) -> Result<ObjMesh, ParseError> {
    parse::parse(bytes)
}
