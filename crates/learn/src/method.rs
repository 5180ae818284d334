//! Whatever poses a mesh: twins, baselines and original rigs are all "a pose in, vertices out", so that one table weighs
//! them and one race times them.

use crate::baselines::Approximation;
use thiserror::Error;
use understudy_core::{Controls, Vec3};
use understudy_rigs::{Rig, RigError, RigPose};
use understudy_runtime::{Player, Pose, PoseError};

/// Why a pose could not be taken.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MethodError {
    /// A pose that does not fit.
    #[error(transparent)]
    Pose(#[from] PoseError),
    /// The rig failed.
    #[error(transparent)]
    Rig(#[from] RigError),
}

/// A pose in, vertices out.
pub trait Method {
    /// Short, for tables and JSON.
    fn name(&self) -> &str;

    /// Size of the model; 0 for a rig.
    fn bytes(&self) -> usize;

    /// Moves the vertices, `[V]` cm.
    fn pose(&mut self, pose: Pose<'_>, out: &mut [Vec3]) -> Result<(), MethodError>;
}

/// A twin of any kind.
pub struct PlayedTwin {
    /// What the tables call it.
    pub name: String,
    /// Size of its file.
    pub bytes: usize,
    /// Who plays it.
    pub player: Player,
}

impl Method for PlayedTwin {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn pose(&mut self, pose: Pose<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        Ok(self.player.pose(pose, out)?)
    }
}

/// A baseline that was fitted to bones. Any number of threads pose the same fit.
impl Method for &dyn Approximation {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn bytes(&self) -> usize {
        (**self).bytes()
    }

    fn pose(&mut self, pose: Pose<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        match pose {
            Pose::Bones { bones, .. } => self.evaluate(bones, out),
            Pose::Controls(_) => return Err(PoseError::Kind("a baseline is posed by bones").into()),
        }
        Ok(())
    }
}

/// The original.
pub struct PosedRig<'a> {
    rig: &'a dyn Rig,
    pose: RigPose,
}

impl<'a> PosedRig<'a> {
    /// Of a rig.
    pub fn new(rig: &'a dyn Rig) -> Self {
        Self { rig, pose: RigPose::default() }
    }
}

impl Method for PosedRig<'_> {
    fn name(&self) -> &str {
        self.rig.name()
    }

    fn bytes(&self) -> usize {
        0
    }

    fn pose(&mut self, pose: Pose<'_>, out: &mut [Vec3]) -> Result<(), MethodError> {
        let Pose::Controls(controls) = pose else {
            return Err(PoseError::Kind("a rig is posed by its controls").into());
        };
        self.rig.evaluate(&Controls(controls.to_vec()), &mut self.pose)?;
        let (got, want) = (out.len(), self.pose.vertices.len());
        if got != want {
            return Err(PoseError::Count { what: "vertices", got, want }.into());
        }
        out.copy_from_slice(&self.pose.vertices);
        Ok(())
    }
}
