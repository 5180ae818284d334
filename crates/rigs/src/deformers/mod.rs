//! Layers of the stack, one file each. Every layer is generic: it is told at construction which vertices,
//! bones and controls it works on, and all of that is checked once against the [`RigSize`].
//!
//! Usual order. In rest space: [`Blendshapes`], [`JointOffset`]; then [`Skinning`]; then in the pose:
//! [`EyelidSlide`], [`MuscleBulge`], [`SkinSlide`], [`StickyLips`], [`DeltaMush`], [`Wrinkles`],
//! [`Lattice`].

mod blendshapes;
mod delta_mush;
mod driver;
mod eyelid_slide;
mod joint_offset;
mod lattice;
mod muscle_bulge;
mod patch;
mod skin_slide;
mod skinning;
mod sticky_lips;
#[cfg(test)]
mod test_support;
mod wrinkles;

pub use blendshapes::Blendshapes;
pub use delta_mush::{DeltaMush, DeltaMushConfig, SmoothingWeights};
pub use driver::{Driver, Response, RigSize, VertexWeights};
pub use eyelid_slide::{Eye, EyelidSlide, Lid, elevation_degrees};
pub use joint_offset::{JointOffset, JointOffsetConfig, PoseTarget};
pub use lattice::{Lattice, LatticeConfig, LatticeHandle};
pub use muscle_bulge::{Attachment, Muscle, MuscleBulge, spindle_mask};
pub use patch::distances_along_edges;
pub use skin_slide::{SkinSlide, Slide};
pub use skinning::Skinning;
pub use sticky_lips::{LipPair, StickyLips, StickyLipsConfig};
pub use understudy_core::mechanism::smooth_step;
pub use wrinkles::{Activation, Wrinkle, WrinkleGroup, Wrinkles};
