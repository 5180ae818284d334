//! glTF 2.0 in and out. Start at [`read`] for a file, [`crate::Model::evaluate`] to pose it and
//! [`write_glb`] to leave for another program. Quantised and compressed files (meshopt, Draco) are read like any
//! other.
//!
//! A file becomes one mesh, one skeleton, one set of skin weights and one blendshape rig, whatever the
//! number of nodes it is spread over; a deformation is: shapes first, in bind space, then skinning.
//! Lengths are turned from metres into cm. Texture coordinates have their origin at the bottom, as in
//! OBJ, so the second one is flipped on the way in and out.

mod accessor;
mod animation;
mod asset;
mod compressed;
mod document;
mod draco;
mod extras;
mod geometry;
mod metres;
mod morph;
mod nodes;
mod rate;
mod skin;
mod surface;
mod uri;
mod write;

pub use asset::{ReadOptions, parse, parse_with, read, read_with};
pub use document::Resolve;
pub use surface::Surface;
pub use write::{GltfScene, SceneError, to_glb_bytes, write_glb};
