//! The body twin (METHODS M1, body-twin paper chapter 2).
//!
//! The way: [`Poses`] in memory, whose bones are taken as [`Armature`] says → [`assign`] gives every vertex one bone and drops bones with few →
//! [`influence`] says what each group's network must see → [`borders`] moves groups' borders to where little
//! happens → [`seams`] says what a network says of its neighbours → [`components`] compresses its residuals →
//! [`Plan::train_group`] trains one network → [`Plan::finish`] makes the parts of a twin.

mod armature;
pub mod assign;
pub mod borders;
pub mod components;
mod features;
mod held_back;
pub mod influence;
mod plan;
mod rounding;
pub mod seams;
mod tree;

pub use armature::Armature;
pub use held_back::{Unexplained, held_back};
pub use influence::GroupInputs;
pub use plan::{BodySettings, GroupReport, Plan, TrainedGroup};
pub use rounding::with_fixed_point;

use crate::LARGEST_CM;
use thiserror::Error;
use understudy_core::{Affine3A, ControlSpecs, Mesh, Skeleton, Vec3};
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
    /// Arrays that do not fit.
    #[error("{what}: {got} entries, {want} expected")]
    Count {
        /// Which array.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A number in the data is not finite.
    #[error("pose {pose} has {what} that is not finite")]
    NonFinite {
        /// The pose.
        pose: usize,
        /// What.
        what: &'static str,
    },
    /// Fewer poses than anything can be learned from.
    #[error("{got} poses are too few to learn from and to hold some back; record at least {want}")]
    TooFewPoses {
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A number that squares beyond what single precision holds.
    #[error(
        "pose {pose} has {what} {distance:e} cm from the origin; more than {LARGEST_CM:e} cm cannot be learned"
    )]
    TooFar {
        /// The pose.
        pose: usize,
        /// What.
        what: &'static str,
        /// How far away.
        distance: f32,
    },
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

/// Recorded poses of a rig with bones, all in memory: `vertices` is the bulk, 12 bytes a vertex and pose.
#[derive(Debug, Clone)]
pub struct Poses<'a> {
    /// The rest mesh.
    pub mesh: &'a Mesh,
    /// The bones.
    pub skeleton: &'a Skeleton,
    /// World transforms, `[N · J]`.
    pub bones: Vec<Affine3A>,
    /// Control values, `[N · C]`.
    pub controls: Vec<f32>,
    /// The controls, `[C]`.
    pub specs: ControlSpecs,
    /// `[N · V]` cm.
    pub vertices: Vec<Vec3>,
}

impl Poses<'_> {
    /// Number of poses.
    pub fn len(&self) -> usize {
        self.vertices.len() / self.mesh.vertex_count()
    }

    /// Whether there is no pose.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// World transforms of a pose.
    pub fn bones_of(&self, pose: usize) -> &[Affine3A] {
        let joints = self.skeleton.len();
        &self.bones[pose * joints..(pose + 1) * joints]
    }

    /// Vertices of a pose.
    pub fn vertices_of(&self, pose: usize) -> &[Vec3] {
        let count = self.mesh.vertex_count();
        &self.vertices[pose * count..(pose + 1) * count]
    }

    /// Controls of a pose.
    pub fn controls_of(&self, pose: usize) -> &[f32] {
        let count = self.specs.len();
        &self.controls[pose * count..(pose + 1) * count]
    }

    /// Lengths agree and every number is finite.
    pub fn check(&self) -> Result<(), LearnError> {
        let poses = self.len();
        let count = |what: &'static str, got: usize, want: usize| {
            if got == want { Ok(()) } else { Err(LearnError::Count { what, got, want }) }
        };
        if poses == 0 {
            return Err(LearnError::Count { what: "poses", got: 0, want: 1 });
        }
        count("vertices", self.vertices.len(), poses * self.mesh.vertex_count())?;
        count("bones", self.bones.len(), poses * self.skeleton.len())?;
        count("controls", self.controls.len(), poses * self.specs.len())?;
        for pose in 0..poses {
            let bad = |what| Err(LearnError::NonFinite { pose, what });
            if self.bones_of(pose).iter().any(|b| !b.is_finite()) {
                return bad("a bone");
            }
            if self.controls_of(pose).iter().any(|c| !c.is_finite()) {
                return bad("a control");
            }
            if self.vertices_of(pose).iter().any(|v| !v.is_finite()) {
                return bad("a vertex");
            }
            let far = |what, distance: f32| match distance > LARGEST_CM {
                true => Err(LearnError::TooFar { pose, what, distance }),
                false => Ok(()),
            };
            let reach = |numbers: [f32; 12]| numbers.into_iter().fold(0.0f32, |most, n| most.max(n.abs()));
            far("a bone", self.bones_of(pose).iter().map(|b| reach(b.to_cols_array())).fold(0.0, f32::max))?;
            let reach = |vertex: &Vec3| vertex.abs().max_element();
            far("a vertex", self.vertices_of(pose).iter().map(reach).fold(0.0, f32::max))?;
        }
        Ok(())
    }

    /// At most `most` poses, spread evenly.
    pub fn spread(&self, most: usize) -> Vec<usize> {
        let count = self.len().min(most);
        (0..count).map(|i| i * self.len() / count).collect()
    }

    /// Skinning matrices and vertices of some poses.
    pub(super) fn skinned(&self, armature: &Armature, chosen: &[usize]) -> Vec<(Vec<Affine3A>, Vec<Vec3>)> {
        let one = |pose: &usize| (armature.carriers(self.bones_of(*pose)), self.vertices_of(*pose).to_vec());
        chosen.iter().map(one).collect()
    }
}
