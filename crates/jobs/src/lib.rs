//! One typed function per command: configuration in, events and a result out. The door for every
//! application; nothing here parses a command line or draws a progress bar.
//!
//! Start at [`rigs::open`] for how a rig is found, at [`clips::resolve`] for how a clip is, and at [`Watch`] for how
//! long work speaks. The commands:
//! [`characters`], [`sample`], [`merge`], [`mod@import`], [`render`], [`convert`], [`pose()`](pose::pose), [`info`], [`invert`],
//! [`retarget`], [`motion`], [`mod@capture`],
//! [`demo`].

pub mod blender;
pub mod capture;
pub mod characters;
pub mod clips;
mod contact_sheet;
pub mod convert;
pub mod decompose;
pub mod demo;
mod error;
mod failures;
mod fit_cache;
pub mod import;
pub mod info;
mod inputs;
pub mod invert;
pub mod merge;
pub mod motion;
mod names;
mod outputs;
pub mod pose;
pub mod render;
pub mod retarget;
pub mod rigs;
pub mod sample;
mod stage;
#[cfg(test)]
mod test_rig;
pub mod threads;
pub mod twin;
mod watch;
pub mod weights;

pub use error::JobError;
pub use outputs::{BesideFile, checkpoint_folder};
pub use watch::{Event, Silent, Watch};
