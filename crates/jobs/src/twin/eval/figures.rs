//! More to say of an error than how far vertices are from their places: kept up pose by pose, told at the end.

use super::pictures::Exhibit;
use serde_json::Value;
use understudy_core::{Mesh, Vec3};
use understudy_learn::Recording;
use understudy_report::html::Section;

/// What is weighed.
pub(crate) struct Study<'a> {
    /// The rest mesh.
    pub mesh: &'a Mesh,
    /// The test sets.
    pub sets: &'a [(String, Recording)],
    /// Names of the methods in the order of the tables, the twin first.
    pub names: &'a [String],
}

impl Study<'_> {
    /// Poses of all sets.
    pub fn poses(&self) -> usize {
        self.sets.iter().map(|(_, poses)| poses.len()).sum()
    }
}

/// What one method made of one pose.
pub(crate) struct Posed<'a> {
    /// Counts the poses of all sets.
    pub number: usize,
    /// Where the vertices belong, cm.
    pub truth: &'a [Vec3],
    /// Where they are, cm.
    pub vertices: &'a [Vec3],
    /// How far faces are turned away, degrees.
    pub angles: &'a [f32],
}

/// One kind of figures.
pub(crate) trait Figures: Send {
    /// Adds what a method made of a pose.
    fn add(&mut self, method: usize, posed: &Posed<'_>);

    /// What came out: fields of the report, and lines for people.
    fn findings(&self) -> Findings;

    /// The same on a page.
    fn section(&self, exhibits: &[Exhibit]) -> Option<Section>;
}

/// What came out.
#[derive(Default)]
pub(crate) struct Findings {
    /// Fields of the report.
    pub fields: Vec<(&'static str, Value)>,
    /// For people.
    pub lines: Vec<String>,
}

impl Findings {
    /// One field.
    pub fn field(mut self, name: &'static str, value: &impl serde::Serialize) -> Self {
        self.fields.push((name, serde_json::to_value(value).unwrap_or_default()));
        self
    }

    /// One line.
    pub fn line(mut self, line: String) -> Self {
        self.lines.push(line);
        self
    }
}
