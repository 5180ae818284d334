//! Alembic caches (`.abc`, the Ogawa container): meshes with positions that move over time, as Maya, Houdini and
//! Blender bake them. Start at [`AlembicCache::open`].
//!
//! ```no_run
//! use understudy_io::alembic::{AlembicCache, AlembicOptions};
//! let cache = AlembicCache::open("body.abc".as_ref(), &AlembicOptions::default())?;
//! let mut vertices = Vec::new();
//! for frame in 0..cache.len() {
//!     cache.frame(frame, &mut vertices)?; // [V] cm, read from the file now
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file stays open and a frame is read when it is asked for: a cache of any length takes the memory of one frame.
//! All objects become one mesh with a segment each, in the world and in centimetres. A mesh may be written anew in
//! every frame as long as its faces stay the same; samples may lie anywhere between frames, and every moment at which
//! some object has one is a frame. Not read: curves, points, cameras, instances, the HDF5 container.
//!
//! `ogawa` reads the container, `archive` the objects and properties in it, `mesh` and `transform` two of Alembic's
//! schemas, `cache` joins them.

mod archive;
mod cache;
mod mesh;
mod ogawa;
mod transform;
mod values;

pub use cache::{AlembicCache, AlembicOptions};
