//! Posing by hand: bodies by their hands, feet and torso, faces by points that are dragged.
//!
//! [`two_bone`] is the closed form of a limb; [`limbs`] finds limbs by the names of their bones and moves bones or
//! controls so that hands and feet go where they are asked to. What a face does is in [`points`]: a network that gives
//! controls from points, and steps along the twin's gradient that correct it.

pub mod limbs;
pub mod points;
pub mod small;
pub mod two_bone;

pub use limbs::{Anchor, Goal, Handles, LimbBones, Outcome, Place, PlacedBones, Poser, Spelling};
pub use points::{
    ControlPoint, Correction, PointDrag, PointIk, PointIkParts, PointSolver, RegionParts, Wanted,
};
pub use two_bone::{Bend, LimbError, LimbPose, Reach, TwoBone};
