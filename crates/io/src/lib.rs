//! File formats in and out. All input is checked here: what leaves this crate is a valid core type.
//!
//! [`open`] is the door: it reads every format into a [`Scene`]. Beneath it every reader has the form
//! `read(path) -> Result<T, ReadError>` with a `parse(bytes)` that opens no file (the fuzzers call that); every
//! writer goes through [`write_atomic`]. Readers convert to centimetres and Y-up and say what they did in a
//! [`Conversion`].

pub mod alembic;
mod arrays;
mod assembly;
pub mod blendshape_npz;
pub mod bvh;
pub mod dataset;
mod error;
mod faces;
pub mod fbx;
pub mod gltf;
pub mod handles;
pub mod live_link;
pub mod mesh_sequence;
mod model;
mod names;
pub mod npz;
pub mod obj;
pub mod onnx;
pub mod picture;
mod polygons;
pub mod real;
mod scene;
pub mod tensors;
mod units;
pub mod usd;
pub mod zip;

pub use arrays::{Array, Dim};
pub use error::{ParseError, ReadError, WriteError, output_target, read_bytes, write_atomic};
pub use model::Model;
pub use scene::{Format, OpenOptions, Scene, open, open_with};
pub use units::{Axis, Conversion};
