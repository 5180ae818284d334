//! What a twin with bones gets so that controls alone pose it: the rig's own mechanism where the rig shows it. Start at
//! [`Posing`]; `learn` attaches what comes out to the twin.

use crate::JobError;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use understudy_core::{ControlSpecs, Skeleton};
use understudy_learn::Recording;
use understudy_rigs::Rig;
use understudy_runtime::{Mechanism, Twin};

/// Which mechanism a twin with bones gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MechanismChoice {
    /// The rig's own where it shows one.
    #[default]
    Auto,
    /// None: the twin is posed by bones alone.
    None,
}

impl FromStr for MechanismChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            _ => Err("auto or none is wanted".into()),
        }
    }
}

/// What a twin got.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MechanismReport {
    /// `exact`.
    pub kind: &'static str,
    /// Controls that pose the twin.
    pub controls: usize,
    /// Bones that they move.
    pub bones: usize,
}

/// What a mechanism is made from, kept while a twin is trained.
pub(super) struct Posing {
    skeleton: Skeleton,
    specs: ControlSpecs,
}

impl Posing {
    /// Of poses with bones; `None` of others and where no mechanism is wanted.
    pub fn keep(poses: &Recording, choice: MechanismChoice) -> Option<Self> {
        let skeleton = poses.skeleton.clone().filter(|_| choice != MechanismChoice::None)?;
        Some(Self { skeleton, specs: poses.specs.clone() })
    }

    /// The twin with its mechanism; as it was where it has no bones or none can be found.
    pub fn attach(
        self,
        twin: Twin,
        rig: Option<&dyn Rig>,
    ) -> Result<(Twin, Option<MechanismReport>), JobError> {
        if twin.header().inputs.bones.is_empty() {
            return Ok((twin, None));
        }
        let own = rig.and_then(Rig::mechanism).filter(|own| {
            let names = |skeleton: &Skeleton| -> Vec<String> {
                skeleton.bones().iter().map(|bone| bone.name.clone()).collect()
            };
            names(own.skeleton()) == names(&self.skeleton)
        });
        let Some(own) = own else { return Ok((twin, None)) };
        let mechanism = Mechanism::exact(self.specs, own.parts());
        let twin = mechanism.and_then(|mechanism| twin.with_mechanism(mechanism));
        let twin = twin.map_err(|error| JobError::Machine(error.to_string()))?;
        let report = twin.mechanism().map(|mechanism| MechanismReport {
            kind: mechanism.kind().name(),
            controls: mechanism.specs().len(),
            bones: mechanism.bone_count(),
        });
        Ok((twin, report))
    }
}
