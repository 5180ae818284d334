//! Meshes made in code: a coarse cage of quads with UVs and segments, mirrored, subdivided by
//! Catmull–Clark, and parametric parts put beside it. Start at [`Cage`].

mod cage;
mod parts;
mod subdivide;

pub use cage::{Cage, CageFace};
pub use parts::{ellipsoid, tube};
pub use subdivide::{Stencil, subdivide};
