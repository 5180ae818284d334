//! The controls of a Blender file as TOML that people edit: ranges, defaults, and which are sampled at all.

use super::survey::BlenderFacts;
use crate::JobError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use understudy_io::{ParseError, ReadError, read_bytes, write_atomic};

/// A file of controls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlsFile {
    /// In the order of the rig.
    #[serde(default, rename = "control")]
    pub controls: Vec<EditedControl>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditedControl {
    /// As the survey calls it: `hand_ik.L.translate_x`, `head["squash"]`, `Body:smile`.
    pub name: String,
    /// Whether poses vary it; held at rest otherwise.
    #[serde(default = "yes")]
    pub sample: bool,
    /// Lower end of its range: degrees, centimetres, factors or the property's own unit.
    #[serde(default)]
    pub low: f32,
    /// Upper end of its range.
    #[serde(default)]
    pub high: f32,
    /// Value at rest.
    #[serde(default)]
    pub default: f32,
}

fn yes() -> bool {
    true
}

/// The same as workers read it.
#[derive(Debug, Serialize)]
pub(super) struct Edit {
    sample: bool,
    low: f32,
    high: f32,
    default: f32,
}

impl ControlsFile {
    /// What a survey found: what is sampled with its ranges, and what is held, to be switched on.
    pub fn of(facts: &BlenderFacts) -> Self {
        let sampled = facts.controls.iter().map(|control| EditedControl {
            name: control.name.clone(),
            sample: true,
            low: control.low,
            high: control.high,
            default: control.default,
        });
        // A held channel's range is a proposal: 0.8 to 1.2 for scale, of which most are.
        let held = facts.held.iter().map(|held| EditedControl {
            name: held.name.clone(),
            sample: false,
            low: 0.8,
            high: 1.2,
            default: 1.0,
        });
        let switches = facts.switches.iter().map(|switch| EditedControl {
            name: switch.name.clone(),
            sample: false,
            low: switch.low,
            high: switch.high,
            default: switch.value,
        });
        Self { controls: sampled.chain(held).chain(switches).collect() }
    }

    /// Reads a file where there is one.
    pub fn read_if_there(path: &Path) -> Result<Option<Self>, JobError> {
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read_bytes(path)?;
        Ok(Some(Self::parse(&String::from_utf8_lossy(&bytes)).map_err(ReadError::content(path))?))
    }

    /// Reads and checks the text of a file.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let file: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            ParseError::new(format!("line {line}"), error.message())
        })?;
        let mut seen = BTreeMap::new();
        for control in &file.controls {
            let bad = |problem: String| Err(ParseError::new(format!("control '{}'", control.name), problem));
            let EditedControl { low, high, default, .. } = *control;
            if seen.insert(control.name.as_str(), ()).is_some() {
                return bad("is there twice".into());
            }
            if control.sample && !(low < high && (low..=high).contains(&default)) {
                return bad(format!("low {low}, default {default} and high {high} are not in order"));
            }
        }
        Ok(file)
    }

    /// Writes it with a few words on how it is edited.
    pub fn write(&self, path: &Path, rig: &Path) -> Result<(), JobError> {
        let content = toml::to_string(self).map_err(|error| JobError::Machine(error.to_string()))?;
        let text = format!(
            "# Controls of {}, read by the next run that names this file.\n\
             # low, high, default: degrees for rotate, cm for translate, factors for scale, else the property's own unit.\n\
             # sample = false holds a control at rest; entries that are missing here are used as the rig says.\n\n{content}",
            rig.display()
        );
        Ok(write_atomic(path, text.as_bytes())?)
    }

    /// For the request of a survey.
    pub(super) fn edits(&self) -> BTreeMap<&str, Edit> {
        let edit =
            |c: &EditedControl| Edit { sample: c.sample, low: c.low, high: c.high, default: c.default };
        self.controls.iter().map(|control| (control.name.as_str(), edit(control))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_and_mistakes_are_named() {
        let control = |name: &str, sample| EditedControl {
            name: name.into(),
            sample,
            low: -1.5,
            high: 2.0,
            default: 0.25,
        };
        let file = ControlsFile {
            controls: vec![control("hand_ik.L.translate_x", true), control("head[\"squash\"]", false)],
        };
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("hero.toml");
        assert_eq!(ControlsFile::read_if_there(&path).expect("no file is no mistake"), None);
        file.write(&path, Path::new("hero.blend")).expect("writable");
        assert_eq!(ControlsFile::read_if_there(&path).expect("valid"), Some(file));
        for (text, says) in [
            ("[[control]]\nname = 'a'\nlow = 2\nhigh = 1", "not in order"),
            ("[[control]]\nname = 'a'\nlow = 0\nhigh = nan", "not in order"),
            ("[[control]]\nname = 'a'\nsample = false\n[[control]]\nname = 'a'\nsample = false", "twice"),
            ("[[control]]\nname = 'a'\nrange = 1", "line 3"),
        ] {
            let problem = ControlsFile::parse(text).expect_err("a mistake").to_string();
            assert!(problem.contains(says), "{problem}");
        }
    }
}
