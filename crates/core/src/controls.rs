//! What an animator moves: named numbers with a kind, a range and a default.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is wrong with control specifications or values.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ControlError {
    /// Another number of values than controls.
    #[error("{got} control values, but the rig has {want} controls")]
    Count {
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A value is NaN or infinite.
    #[error("control '{name}' is {value}")]
    NonFinite {
        /// The control.
        name: String,
        /// Its value.
        value: f32,
    },
    /// A value is outside the control's range.
    #[error("control '{name}' is {value}, outside its range {low} to {high}")]
    Range {
        /// The control.
        name: String,
        /// Its value.
        value: f32,
        /// Lower end.
        low: f32,
        /// Upper end.
        high: f32,
    },
    /// No control of that name.
    #[error("there is no control '{name}'")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Two controls of one name.
    #[error("two controls are named '{name}'")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Range or default that make no sense.
    #[error("control '{name}' has range {low} to {high} and default {default}")]
    BadSpec {
        /// The control.
        name: String,
        /// Lower end.
        low: f32,
        /// Upper end.
        high: f32,
        /// Default value.
        default: f32,
    },
}

/// What a joint control changes. Rotations are degrees, translations cm, both on top of the rest pose;
/// scales are added to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Rotation about the bone's x axis.
    RotateX,
    /// Rotation about the bone's y axis.
    RotateY,
    /// Rotation about the bone's z axis.
    RotateZ,
    /// Translation along the parent's x axis.
    TranslateX,
    /// Translation along the parent's y axis.
    TranslateY,
    /// Translation along the parent's z axis.
    TranslateZ,
    /// Scale along the bone's x axis.
    ScaleX,
    /// Scale along the bone's y axis.
    ScaleY,
    /// Scale along the bone's z axis.
    ScaleZ,
}

/// What a control is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ControlKind {
    /// A number that shapes, drivers or deformers read.
    Number,
    /// One channel of a joint.
    Joint {
        /// The bone's name.
        bone: String,
        /// What it changes.
        channel: Channel,
    },
}

/// One control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlSpec {
    /// Unique in its rig.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: ControlKind,
    /// Lower end of its range.
    pub low: f32,
    /// Upper end of its range.
    pub high: f32,
    /// Value in the rest pose.
    pub default: f32,
}

impl ControlSpec {
    /// A number.
    pub fn number(name: impl Into<String>, low: f32, high: f32, default: f32) -> Self {
        Self { name: name.into(), kind: ControlKind::Number, low, high, default }
    }

    /// A joint channel that rests at zero.
    pub fn joint(
        name: impl Into<String>,
        bone: impl Into<String>,
        channel: Channel,
        low: f32,
        high: f32,
    ) -> Self {
        let kind = ControlKind::Joint { bone: bone.into(), channel };
        Self { name: name.into(), kind, low, high, default: 0.0 }
    }
}

/// Values of all controls, in the order of their [`ControlSpecs`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Controls(pub Vec<f32>);

/// The checked list of a rig's controls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<ControlSpec>", into = "Vec<ControlSpec>")]
pub struct ControlSpecs(Vec<ControlSpec>);

impl TryFrom<Vec<ControlSpec>> for ControlSpecs {
    type Error = ControlError;

    fn try_from(specs: Vec<ControlSpec>) -> Result<Self, ControlError> {
        Self::new(specs)
    }
}

impl From<ControlSpecs> for Vec<ControlSpec> {
    fn from(specs: ControlSpecs) -> Self {
        specs.0
    }
}

impl ControlSpecs {
    /// Checks names, ranges and defaults.
    pub fn new(specs: Vec<ControlSpec>) -> Result<Self, ControlError> {
        let mut names: Vec<&str> = specs.iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ControlError::DuplicateName { name: pair[0].into() });
        }
        for spec in &specs {
            let ControlSpec { name, low, high, default, .. } = spec.clone();
            let finite = low.is_finite() && high.is_finite();
            if !finite || low >= high || !(low..=high).contains(&default) {
                return Err(ControlError::BadSpec { name, low, high, default });
            }
        }
        Ok(Self(specs))
    }

    /// Number of controls.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no control.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The controls in order.
    pub fn iter(&self) -> std::slice::Iter<'_, ControlSpec> {
        self.0.iter()
    }

    /// The control at an index.
    pub fn get(&self, index: usize) -> &ControlSpec {
        &self.0[index]
    }

    /// Index of the control of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|s| s.name == name)
    }

    /// The rest pose.
    pub fn defaults(&self) -> Controls {
        Controls(self.0.iter().map(|s| s.default).collect())
    }

    /// The rest pose with some controls changed by name, each checked against its range.
    pub fn with<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, f32)>,
    ) -> Result<Controls, ControlError> {
        let mut controls = self.defaults();
        for (name, value) in changes {
            let index = self.find(name).ok_or_else(|| ControlError::Unknown { name: name.into() })?;
            controls.0[index] = value;
        }
        self.check_range(&controls)?;
        Ok(controls)
    }

    /// The right number of finite values.
    pub fn check(&self, controls: &Controls) -> Result<(), ControlError> {
        if controls.0.len() != self.0.len() {
            return Err(ControlError::Count { got: controls.0.len(), want: self.0.len() });
        }
        match self.0.iter().zip(&controls.0).find(|(_, value)| !value.is_finite()) {
            Some((spec, &value)) => Err(ControlError::NonFinite { name: spec.name.clone(), value }),
            None => Ok(()),
        }
    }

    /// [`Self::check`], and every value inside its range.
    pub fn check_range(&self, controls: &Controls) -> Result<(), ControlError> {
        self.check(controls)?;
        for (spec, &value) in self.0.iter().zip(&controls.0) {
            if value < spec.low || value > spec.high {
                let ControlSpec { name, low, high, .. } = spec.clone();
                return Err(ControlError::Range { name, value, low, high });
            }
        }
        Ok(())
    }

    /// [`Self::check`], and every number inside its range. Joints may leave theirs, which are for random poses: a figure that
    /// lies down does.
    pub fn check_played(&self, controls: &Controls) -> Result<(), ControlError> {
        self.check(controls)?;
        for (spec, &value) in self.0.iter().zip(&controls.0) {
            if spec.kind == ControlKind::Number && !(spec.low..=spec.high).contains(&value) {
                let ControlSpec { name, low, high, .. } = spec.clone();
                return Err(ControlError::Range { name, value, low, high });
            }
        }
        Ok(())
    }

    /// Moves every value into its range.
    pub fn clamp(&self, controls: &mut Controls) {
        for (spec, value) in self.0.iter().zip(&mut controls.0) {
            *value = value.clamp(spec.low, spec.high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_are_named() {
        let specs = ControlSpecs::new(vec![
            ControlSpec::number("smile", 0.0, 1.0, 0.0),
            ControlSpec::joint("jaw", "jaw", Channel::RotateX, -5.0, 30.0),
        ])
        .expect("valid specs");
        let range = specs.with([("smile", 1.5)]);
        assert!(matches!(range, Err(ControlError::Range { ref name, .. }) if name == "smile"));
        assert!(matches!(specs.with([("frown", 0.0)]), Err(ControlError::Unknown { .. })));
        assert!(matches!(specs.with([("jaw", f32::NAN)]), Err(ControlError::NonFinite { .. })));
        assert_eq!(specs.check(&Controls(vec![0.0])), Err(ControlError::Count { got: 1, want: 2 }));
        let bad = ControlSpecs::new(vec![ControlSpec::number("x", 1.0, f32::NAN, 1.0)]);
        assert!(matches!(bad, Err(ControlError::BadSpec { .. })));
    }
}
