//! How the controls of a rig move its bones: joint channels, then constraints that no animator touches, then forward
//! kinematics. Rigs that we build pose their bones by it, and a twin's file carries it, so that a twin is posed by the
//! same code without the rig. Start at [`JointMechanism`]; constraints are in `constraints` and `skirt`.

mod constraints;
mod gradient;
mod skirt;

pub use constraints::{Constraint, Drive, Helper, JointChange, Twist, twist_angle};
pub use gradient::MechanismTrace;
pub use skirt::{SkirtChain, SkirtFollow, SkirtLeg};

use crate::skeleton::{Bone, GlobalPose, JointPose, JointTransform, Skeleton, SkeletonError};
use crate::{Channel, ControlKind, ControlSpecs};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// `3t² − 2t³` of `t = (x − from)/(to − from)` held in 0 to 1. `from` may be above `to`.
pub fn smooth_step(from: f32, to: f32, x: f32) -> f32 {
    let t = ((x - from) / (to - from)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// What is wrong with a mechanism.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MechanismError {
    /// Bones that form no tree.
    #[error(transparent)]
    Skeleton(#[from] SkeletonError),
    /// A joint control of a bone that there is not.
    #[error("control '{control}' names the bone '{bone}', which does not exist")]
    Bone {
        /// The control.
        control: String,
        /// The bone.
        bone: String,
    },
    /// A constraint that names a bone or a control that there is not.
    #[error("constraint {constraint} names {what} {index}, there are {count}")]
    Index {
        /// Its place in the list.
        constraint: usize,
        /// `bone` or `control`.
        what: &'static str,
        /// The number.
        index: usize,
        /// How many there are.
        count: usize,
    },
}

/// Bones, the joint channels that controls are, and constraints.
#[derive(Debug, Clone, PartialEq)]
pub struct JointMechanism {
    skeleton: Skeleton,
    controls: usize,
    /// Control, bone and channel, in the order of the controls.
    channels: Vec<(usize, usize, Channel)>,
    constraints: Vec<Constraint>,
}

/// A mechanism as it is written down; the joint channels are told by the controls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointMechanismParts {
    /// In any order.
    pub bones: Vec<MechanismBone>,
    /// Applied in order.
    pub constraints: Vec<Constraint>,
}

/// A bone of a [`JointMechanismParts`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanismBone {
    /// Unique.
    pub name: String,
    /// `None` for a root.
    pub parent: Option<usize>,
    /// In the parent's frame.
    pub rest: JointTransform,
}

impl JointMechanism {
    /// Checks that everything that is named exists.
    pub fn new(
        skeleton: Skeleton,
        specs: &ControlSpecs,
        constraints: Vec<Constraint>,
    ) -> Result<Self, MechanismError> {
        let mut channels = Vec::new();
        for (control, spec) in specs.iter().enumerate() {
            if let ControlKind::Joint { bone, channel } = &spec.kind {
                let missing = || MechanismError::Bone { control: spec.name.clone(), bone: bone.clone() };
                channels.push((control, skeleton.find(bone).ok_or_else(missing)?, *channel));
            }
        }
        for (constraint, named) in constraints.iter().map(Constraint::named).enumerate() {
            for (what, indices, count) in
                [("bone", named.0, skeleton.len()), ("control", named.1, specs.len())]
            {
                if let Some(&index) = indices.iter().find(|index| **index >= count) {
                    return Err(MechanismError::Index { constraint, what, index, count });
                }
            }
        }
        Ok(Self { skeleton, controls: specs.len(), channels, constraints })
    }

    /// From what was written down.
    pub fn from_parts(parts: JointMechanismParts, specs: &ControlSpecs) -> Result<Self, MechanismError> {
        let bone = |MechanismBone { name, parent, rest }| Bone { name, parent, rest };
        Self::new(Skeleton::new(parts.bones.into_iter().map(bone).collect())?, specs, parts.constraints)
    }

    /// To be written down.
    pub fn parts(&self) -> JointMechanismParts {
        let bone =
            |bone: &Bone| MechanismBone { name: bone.name.clone(), parent: bone.parent, rest: bone.rest };
        JointMechanismParts {
            bones: self.skeleton.bones().iter().map(bone).collect(),
            constraints: self.constraints.clone(),
        }
    }

    /// The bones at rest.
    pub fn skeleton(&self) -> &Skeleton {
        &self.skeleton
    }

    /// What moves bones that no animator touches.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Number of controls.
    pub fn control_count(&self) -> usize {
        self.controls
    }

    /// Local transforms of all bones: per bone `R = R_rest · R_z R_y R_x`, translations added, scales multiplied by
    /// `1 + s`, then constraints in their order.
    ///
    /// # Panics
    /// When there are fewer control values than controls.
    pub fn joints(&self, controls: &[f32], pose: &mut JointPose) {
        pose.0.clear();
        pose.0.extend(self.skeleton.bones().iter().map(|bone| bone.rest));
        let mut place = 0;
        while place < self.channels.len() {
            let bone = self.channels[place].1;
            let mut change = JointChange::default();
            // Specs list a bone's channels together; a bone listed again later composes on top.
            while place < self.channels.len() && self.channels[place].1 == bone {
                let (control, _, channel) = self.channels[place];
                change.set(channel, controls[control]);
                place += 1;
            }
            change.apply(&mut pose.0[bone]);
        }
        for constraint in &self.constraints {
            constraint.apply(controls, pose);
        }
    }

    /// Local and world transforms of all bones. Allocates only where arrays are too short.
    ///
    /// # Panics
    /// When there are fewer control values than controls.
    pub fn evaluate(&self, controls: &[f32], pose: &mut JointPose, global: &mut GlobalPose) {
        self.joints(controls, pose);
        self.skeleton.forward(pose, global).expect("a pose of its own bones");
    }
}

#[cfg(test)]
mod tests;
