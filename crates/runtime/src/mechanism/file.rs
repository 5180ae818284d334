//! The mechanism in the file of a twin, which may have one whatever its kind: metadata `mechanism`, JSON with the rig's
//! controls and either `exact`, its bones and constraints, or what networks need. Programs that know none ignore it.

use super::{Mechanism, MechanismKind};
use crate::TwinError;
use crate::container::{Array, Opened};
use serde::{Deserialize, Serialize};
use understudy_core::ControlSpecs;
use understudy_core::mechanism::JointMechanismParts;

/// The key of the metadata.
const KEY: &str = "mechanism";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    controls: ControlSpecs,
    #[serde(flatten)]
    kind: KindText,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindText {
    Exact(JointMechanismParts),
}

/// What a file holds besides its kind's own.
#[derive(Default)]
pub(crate) struct Section {
    /// Of the metadata.
    pub text: Option<(&'static str, String)>,
    /// With names.
    pub arrays: Vec<(String, Array)>,
}

/// The section of a twin with that mechanism.
pub(crate) fn write(mechanism: Option<&Mechanism>) -> Result<Section, TwinError> {
    let Some(mechanism) = mechanism else { return Ok(Section::default()) };
    let kind = match &mechanism.kind {
        MechanismKind::Exact(exact) => KindText::Exact(exact.parts()),
    };
    let text = Text { controls: mechanism.specs.clone(), kind };
    let text = serde_json::to_string(&text).map_err(|error| TwinError::Kind(error.to_string()))?;
    Ok(Section { text: Some((KEY, text)), arrays: Vec::new() })
}

/// The mechanism of a file, where it has one.
pub(crate) fn read(file: &Opened<'_>) -> Result<Option<Mechanism>, TwinError> {
    if !file.has_text(KEY) {
        return Ok(None);
    }
    let Text { controls, kind } = file.json(KEY)?;
    match kind {
        KindText::Exact(parts) => Mechanism::exact(controls, parts).map(Some),
    }
}
