//! Character rigs: what an animator moves, and the vertices that follow.
//!
//! Start at [`Rig`], the black box that everything else watches, and at [`StackRig`], the rig that we
//! build ourselves: joint controls → constraints ([`understudy_core::mechanism`]) → forward kinematics → a stack of [`deformers`].
//! [`sampling`] poses a rig at random, [`probe`] finds which inputs move which vertices. The characters
//! themselves live in `understudy-characters`; a rig in another program is an [`external::ExternalRig`].

pub mod anatomy;
pub mod deformers;
pub mod external;
pub mod probe;
pub mod retarget;
mod rig;
pub mod sampling;
mod stack;

pub use rig::{Guide, Incident, Rig, RigError, RigPose};
pub use stack::{Deformer, Frame, Scratch, StackParts, StackRig};
