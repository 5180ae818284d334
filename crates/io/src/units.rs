//! Units and axes: what a file used, what we made of it, said out loud.

use std::fmt;
use understudy_core::Vec3;

/// Which axis points up in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// As inside Understudy.
    Y,
    /// Blender, Maya's option: `(x, y, z)` becomes `(x, z, −y)`.
    Z,
}

/// How a file's lengths and axes were turned into centimetres and Y-up, and how we know.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// Multiplier from the file's unit to centimetres.
    pub scale: f32,
    /// The file's up axis.
    pub up: Axis,
    /// Why: "glTF is in metres", "given by the caller", "the figure would be 1.8 units tall".
    pub reason: String,
}

impl Conversion {
    /// Nothing to convert.
    pub fn none(reason: impl Into<String>) -> Self {
        Self { scale: 1.0, up: Axis::Y, reason: reason.into() }
    }

    /// A scale, Y-up already.
    pub fn scaled(scale: f32, reason: impl Into<String>) -> Self {
        Self { scale, up: Axis::Y, reason: reason.into() }
    }

    /// A point or an offset of the file, in cm and Y-up.
    pub fn apply(&self, p: Vec3) -> Vec3 {
        let turned = match self.up {
            Axis::Y => p,
            Axis::Z => Vec3::new(p.x, p.z, -p.y),
        };
        turned * self.scale
    }
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up = match self.up {
            Axis::Y => "Y-up",
            Axis::Z => "Z-up turned to Y-up",
        };
        write!(f, "lengths × {} to cm, {up} ({})", self.scale, self.reason)
    }
}
