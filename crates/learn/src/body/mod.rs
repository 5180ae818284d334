//! The body twin (`docs/methods/body-twin.md`, body-twin paper chapter 2).
//!
//! The way: [`Recording`] in memory, whose bones are taken as [`Armature`] says → [`assign`] gives every vertex one bone and drops bones with few →
//! [`influence`] says what each group's network must see → [`borders`] moves groups' borders to where little
//! happens → [`seams`] says what a network says of its neighbours → [`components`] compresses its residuals →
//! [`Plan::train_group`] trains one network → [`Plan::finish`] makes the parts of a twin.

mod armature;
pub mod assign;
mod bone_pairs;
pub mod borders;
pub mod components;
mod f16_rounding;
mod features;
mod held_back;
pub mod influence;
mod plan;
mod rounding;
pub mod seams;
mod tree;

pub use armature::Armature;
pub use bone_pairs::BonePairs;
pub use f16_rounding::round_to_half;
pub use held_back::{Unexplained, held_back};
pub use influence::GroupInputs;
pub use plan::{BodySettings, GroupReport, Plan, TrainedGroup};

use crate::{Recording, RecordingError};
use thiserror::Error;
use understudy_core::{Affine3A, Vec3};
use understudy_rigs::RigError;
use understudy_runtime::{PoseError, TwinError};

/// Why a body twin could not be learned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LearnError {
    /// A setting that makes no sense.
    #[error("the {what} is {value}; {want} is wanted")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it should be: `more than 0`.
        want: &'static str,
    },
    /// The recording cannot be learned from.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Training left every good place.
    #[error(
        "training diverged: at a learning rate of {rate} the network of bone '{bone}' became worse than none; \
         take a lower rate"
    )]
    Diverged {
        /// Bone of the group.
        bone: String,
        /// The learning rate.
        rate: f32,
    },
    /// The live rig failed while it was probed.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The parts do not make a twin.
    #[error(transparent)]
    Twin(#[from] TwinError),
    /// A finished twin does not take a recorded pose.
    #[error(transparent)]
    Pose(#[from] PoseError),
    /// Training was told to stop.
    #[error("stopped")]
    Stopped,
}

/// Fewer poses would leave nothing to hold back, or nothing to learn from.
pub const FEWEST_POSES: usize = 30;

/// Skinning matrices and vertices of some poses.
fn skinned(poses: &Recording, armature: &Armature, chosen: &[usize]) -> Vec<(Vec<Affine3A>, Vec<Vec3>)> {
    let one = |pose: &usize| (armature.carriers(poses.bones_of(*pose)), poses.vertices_of(*pose).to_vec());
    chosen.iter().map(one).collect()
}
