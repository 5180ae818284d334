//! From controls to bones, so that a twin that is posed by bones needs no rig to be posed: the rig's own joint channels
//! and constraints where they are known ([`JointMechanism`]), else networks that learned them. A twin's file may have
//! one (`file.rs`); a [`Player`](crate::Player) runs it without allocating (`poser.rs`).

pub(crate) mod file;
pub(crate) mod poser;

use crate::{Header, TwinError};
use understudy_core::mechanism::JointMechanismParts;
use understudy_core::{Affine3A, ControlSpecs, GlobalPose, JointMechanism, JointPose};

/// What turns all of a rig's controls into the world transforms of a twin's bones.
#[derive(Debug, Clone, PartialEq)]
pub struct Mechanism {
    specs: ControlSpecs,
    kind: MechanismKind,
}

/// How.
#[derive(Debug, Clone, PartialEq)]
pub enum MechanismKind {
    /// As the rig itself does it.
    Exact(JointMechanism),
}

impl MechanismKind {
    /// A word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
        }
    }
}

/// Working memory of a mechanism.
#[derive(Debug, Default)]
pub(crate) struct MechanismSpace {
    joints: JointPose,
    global: GlobalPose,
}

impl Mechanism {
    /// The rig's own channels and constraints.
    pub fn exact(specs: ControlSpecs, parts: JointMechanismParts) -> Result<Self, TwinError> {
        let mechanism = JointMechanism::from_parts(parts, &specs)
            .map_err(|error| TwinError::Part { what: "mechanism".into(), problem: error.to_string() })?;
        Ok(Self { specs, kind: MechanismKind::Exact(mechanism) })
    }

    /// The controls, in the order in which a pose gives their values.
    pub fn specs(&self) -> &ControlSpecs {
        &self.specs
    }

    /// How it turns controls into bones.
    pub fn kind(&self) -> &MechanismKind {
        &self.kind
    }

    /// Number of bones.
    pub fn bone_count(&self) -> usize {
        match &self.kind {
            MechanismKind::Exact(mechanism) => mechanism.skeleton().len(),
        }
    }

    /// Its bones are the twin's, in their order, and it knows every control that the twin sees beside them.
    pub(crate) fn check(&self, header: &Header) -> Result<(), TwinError> {
        let part = |problem: String| TwinError::Part { what: "mechanism".into(), problem };
        let bones = &header.inputs.bones;
        if bones.len() != self.bone_count() {
            return Err(part(format!("it moves {} bones, the twin has {}", self.bone_count(), bones.len())));
        }
        let MechanismKind::Exact(exact) = &self.kind;
        let pairs = bones.iter().zip(exact.skeleton().bones());
        if let Some((want, got)) = pairs.clone().find(|(want, got)| want.name != got.name) {
            return Err(part(format!("it has the bone '{}' where the twin has '{}'", got.name, want.name)));
        }
        let missing = header.inputs.controls.iter().find(|spec| self.specs.find(&spec.name).is_none());
        match missing {
            Some(spec) => Err(part(format!("it has no control '{}', which the twin sees", spec.name))),
            None => Ok(()),
        }
    }

    /// World transforms of all bones, `[J]`, from the values of all controls, `[C]`.
    pub(crate) fn pose(&self, controls: &[f32], space: &mut MechanismSpace, bones: &mut [Affine3A]) {
        match &self.kind {
            MechanismKind::Exact(mechanism) => {
                mechanism.evaluate(controls, &mut space.joints, &mut space.global);
                bones.copy_from_slice(&space.global.0);
            }
        }
    }
}
