//! From controls to bones, so that a twin that is posed by bones needs no rig to be posed: the rig's own joint channels
//! and constraints where they are known ([`JointMechanism`]), else networks that learned them. A twin's file may have
//! one (`file.rs`); a [`Player`](crate::Player) runs it without allocating (`poser.rs`).

pub(crate) mod file;
pub mod learned;
pub(crate) mod poser;

use crate::{Distances, Header, TwinError};
use learned::{LearnedBoneParts, LearnedGradient, LearnedMechanism, LearnedSpace};
use serde::{Deserialize, Serialize};
use understudy_core::mechanism::{JointMechanismParts, MechanismTrace};
use understudy_core::{Affine3A, ControlSpecs, GlobalPose, JointMechanism, JointPose};

/// What turns all of a rig's controls into the world transforms of a twin's bones.
#[derive(Debug, Clone, PartialEq)]
pub struct Mechanism {
    specs: ControlSpecs,
    kind: MechanismKind,
    /// How far it is from the rig on poses that it was not learned from; `None` of an exact one.
    pub figures: Option<MechanismFigures>,
}

/// How far a learned mechanism is from the rig, on poses that were held back.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanismFigures {
    /// Poses.
    pub poses: usize,
    /// Mean angle between a bone and the rig's, in the world, degrees.
    pub mean_degrees: f64,
    /// Largest.
    pub max_degrees: f64,
    /// Mean distance between origins of bones, mm.
    pub mean_origin_mm: f64,
    /// Distances between the twin's vertices posed by controls and posed by the rig's bones, mm.
    pub vertices_mm: Distances,
    /// What it adds to the twin's mean distance from the rig's vertices, mm.
    pub added_mm: f64,
}

/// How.
#[derive(Debug, Clone, PartialEq)]
pub enum MechanismKind {
    /// As the rig itself does it.
    Exact(JointMechanism),
    /// By what was learned of recorded poses.
    Learned(LearnedMechanism),
}

impl MechanismKind {
    /// A word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Learned(_) => "learned",
        }
    }
}

/// Memory for the way back, made when it is first asked for.
#[derive(Default)]
pub(crate) struct MechanismGradient {
    learned: Option<LearnedGradient>,
    trace: MechanismTrace,
}

/// Working memory of a mechanism.
#[derive(Debug, Default)]
pub(crate) struct MechanismSpace {
    joints: JointPose,
    global: GlobalPose,
    learned: Option<LearnedSpace>,
}

impl Mechanism {
    /// The rig's own channels and constraints.
    pub fn exact(specs: ControlSpecs, parts: JointMechanismParts) -> Result<Self, TwinError> {
        let mechanism = JointMechanism::from_parts(parts, &specs)
            .map_err(|error| TwinError::Part { what: "mechanism".into(), problem: error.to_string() })?;
        Ok(Self { specs, kind: MechanismKind::Exact(mechanism), figures: None })
    }

    /// What was learned of recorded poses; bones in the twin's order.
    pub fn learned(specs: ControlSpecs, bones: Vec<LearnedBoneParts>) -> Result<Self, TwinError> {
        Self::learned_with_guides(specs, bones, 0)
    }

    /// The same with so many guides behind the twin's bones: bones that only others need.
    pub fn learned_with_guides(
        specs: ControlSpecs,
        bones: Vec<LearnedBoneParts>,
        guides: usize,
    ) -> Result<Self, TwinError> {
        let mechanism = LearnedMechanism::new(bones, specs.len(), guides)?;
        Ok(Self { specs, kind: MechanismKind::Learned(mechanism), figures: None })
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
            MechanismKind::Learned(mechanism) => mechanism.bone_count(),
        }
    }

    /// Its bones are the twin's, in their order, and it knows every control that the twin sees beside them.
    pub(crate) fn check(&self, header: &Header) -> Result<(), TwinError> {
        let part = |problem: String| TwinError::Part { what: "mechanism".into(), problem };
        let bones = &header.inputs.bones;
        if bones.len() != self.bone_count() {
            return Err(part(format!("it moves {} bones, the twin has {}", self.bone_count(), bones.len())));
        }
        // Learned bones have no names of their own.
        let own = match &self.kind {
            MechanismKind::Exact(exact) => exact.skeleton().bones(),
            MechanismKind::Learned(_) => &[],
        };
        if let Some((want, got)) = bones.iter().zip(own).find(|(want, got)| want.name != got.name) {
            return Err(part(format!("it has the bone '{}' where the twin has '{}'", got.name, want.name)));
        }
        let missing = header.inputs.controls.iter().find(|spec| self.specs.find(&spec.name).is_none());
        match missing {
            Some(spec) => Err(part(format!("it has no control '{}', which the twin sees", spec.name))),
            None => Ok(()),
        }
    }

    /// World transforms of all bones, `[J]` cm, from the values of all controls, `[C]`; a
    /// [`Player`](crate::Player) does it without allocating.
    ///
    /// # Panics
    /// When there are fewer values than controls.
    pub fn evaluate(&self, controls: &[f32]) -> Vec<Affine3A> {
        let mut bones = vec![Affine3A::IDENTITY; self.bone_count()];
        self.pose(controls, &mut MechanismSpace::default(), &mut bones);
        bones
    }

    /// World transforms of all bones, `[J]`, from the values of all controls, `[C]`.
    pub(crate) fn pose(&self, controls: &[f32], space: &mut MechanismSpace, bones: &mut [Affine3A]) {
        match &self.kind {
            MechanismKind::Exact(mechanism) => {
                mechanism.evaluate(controls, &mut space.joints, &mut space.global);
                bones.copy_from_slice(&space.global.0);
            }
            MechanismKind::Learned(mechanism) => {
                let space = space.learned.get_or_insert_with(|| mechanism.space());
                mechanism.pose(controls, space, bones);
            }
        }
    }

    /// Whether derivatives by bones become derivatives by controls: not through the skirts of our own rigs.
    pub fn has_gradient(&self) -> bool {
        match &self.kind {
            MechanismKind::Exact(mechanism) => mechanism.has_gradient(),
            MechanismKind::Learned(_) => true,
        }
    }

    /// Derivatives by the controls, `[C]`, of what has the derivatives `by_bones` by the numbers of the world transforms,
    /// `[J]`, that the controls give; `by_bones` are changed on the way.
    pub(crate) fn backward(
        &self,
        controls: &[f32],
        by_bones: &mut [Affine3A],
        memory: &mut MechanismGradient,
        by_controls: &mut [f32],
    ) {
        match &self.kind {
            MechanismKind::Exact(mechanism) => {
                mechanism.backward(controls, by_bones, &mut memory.trace, by_controls);
            }
            MechanismKind::Learned(mechanism) => {
                let memory = memory.learned.get_or_insert_with(|| mechanism.gradient_space());
                mechanism.backward(controls, by_bones, memory, by_controls);
            }
        }
    }
}
