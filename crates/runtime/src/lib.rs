//! Plays twins: loads what training made and moves vertices, hundreds of times a second on one core, in any engine or
//! a browser. Opens no files and knows no tensor library.
//!
//! ```
//! use understudy_runtime::{Affine3A, Pose, Twin, Vec3};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/body-v3.twin");
//!     let twin = Twin::parse(&std::fs::read(file)?)?; // `file`: what `understudy learn` wrote
//!     let mut player = twin.player(2); // two threads
//!     let mut vertices = vec![Vec3::ZERO; twin.vertex_count()];
//!     let inputs = &twin.header().inputs;
//!     let bones = vec![Affine3A::IDENTITY; inputs.bones.len()]; // world transforms, cm, from your skeleton
//!     let controls = inputs.controls.defaults().0;
//!     let pose = if bones.is_empty() { Pose::Controls(&controls) } else { Pose::Bones { bones: &bones, extras: &controls } };
//!     player.pose(pose, &mut vertices)?;
//!     println!("{}: the first vertex is at {}", twin.header().rig, vertices[0]);
//!     Ok(())
//! }
//! ```
//!
//! A [`Twin`] is shared (cloning it copies nothing), a [`Player`] is one for each thread or character: it owns its twin
//! and its working memory. Clips, crowds and gradients are in `examples/`. [`body`], [`diff`], [`face`] and [`skin`] hold the kinds, each
//! behind a cargo feature of its name; making and exporting twins goes through their parts. [`motion`] moves controls by
//! themselves: latent spaces of an artist's clips, walked on command.

// What training and benchmarks alone use is dead code to an engine, and is not in its program.
#![cfg_attr(not(feature = "internals"), allow(dead_code))]

mod container;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod dense;
#[cfg(not(feature = "internals"))]
mod dense;
pub mod drag;
mod error;
mod four_lanes;
mod header;
pub mod ik;
mod large_pages;
pub mod live;
pub mod mechanism;
#[cfg(feature = "motion")]
pub mod motion;
mod player;
mod twin;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod workers;
#[cfg(not(feature = "internals"))]
mod workers;

pub use container::VERSION;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub use container::with_right_checksum;
pub use dense::{Activation, LayerError, Precision};
pub use error::{PoseError, TwinError};
pub use header::{BoneHeader, Distances, Header, Inputs, Training};
pub use large_pages::VertexBuffer;

pub use mechanism::{Mechanism, MechanismFigures, MechanismKind};
pub use player::{Player, Pose};
pub use twin::*;
pub use understudy_core::{Affine3A, ControlSpec, ControlSpecs, Vec3};
