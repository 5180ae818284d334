//! All blendshapes of Mira. Each is a control of the same name; her left side is authored, the right is
//! mirrored. Start at [`all`].

mod brows_and_eyes;
mod correctives;
mod face;
mod lips;
mod tongue;

use super::anatomy::{Anatomy, Mask};
use super::cage::Patch;
use super::sculpt::front_depth;
use super::strokes::Sculpture;
use understudy_core::{BlendshapeRig, Corrective, Shape, SparseDeltas, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::smooth_step;

/// Shapes and correctives as they are made.
pub(super) struct Collection<'a, 'b> {
    pub anatomy: &'b Anatomy<'a>,
    pub shapes: Vec<Shape>,
    pub correctives: Vec<Corrective>,
}

impl<'a, 'b> Collection<'a, 'b> {
    /// A blank sculpture.
    pub fn sculpt(&self) -> Sculpture<'a, 'b> {
        Sculpture::new(self.anatomy)
    }

    /// Adds a shape that has no side.
    pub fn centre(&mut self, name: &str, sculpture: Sculpture) {
        let (deltas, _) = sculpture.finish();
        self.shapes.push(Shape { name: name.into(), deltas });
    }

    /// Adds `name_L` as sculpted and `name_R` mirrored.
    pub fn pair(&mut self, name: &str, sculpture: Sculpture) {
        let (left, right) = sculpture.finish();
        self.shapes.push(Shape { name: format!("{name}_L"), deltas: left });
        self.shapes.push(Shape { name: format!("{name}_R"), deltas: right });
    }

    /// Adds a corrective of the named shapes.
    fn correct(&mut self, names: &[String], deltas: SparseDeltas) -> Result<(), RigError> {
        let mut shapes = Vec::new();
        for name in names {
            let found = self.shapes.iter().position(|shape| &shape.name == name);
            let missing = || RigError::Unknown { part: "a corrective of Mira".into(), name: name.clone() };
            shapes.push(found.ok_or_else(missing)? as u32);
        }
        shapes.sort_unstable();
        self.correctives.push(Corrective { shapes, deltas });
        Ok(())
    }
}

/// Makes the whole blendshape layer.
pub(super) fn all(anatomy: &Anatomy) -> Result<BlendshapeRig, RigError> {
    let mut collection = Collection { anatomy, shapes: Vec::new(), correctives: Vec::new() };
    brows_and_eyes::add(&mut collection);
    face::add(&mut collection);
    lips::add(&mut collection);
    tongue::add(&mut collection);
    correctives::add(&mut collection)?;
    let Collection { shapes, correctives, .. } = collection;
    Ok(BlendshapeRig::new(anatomy.model.mesh.positions().to_vec(), shapes, correctives)?)
}

/// A point of the face as seen from the front.
pub(super) fn on_face(x: f32, y: f32) -> Vec3 {
    Vec3::new(x, y, front_depth(x, y))
}

/// Masks that many shapes share.
impl Anatomy<'_> {
    /// Around a point of the face given by what a viewer sees.
    pub fn at(&self, x: f32, y: f32, reach: f32) -> Mask {
        self.near(on_face(x, y), reach)
    }

    /// 1 on her left, ½ in the middle, 0 on her right, over `width` cm.
    pub fn left(&self, vertex: usize, width: f32) -> f32 {
        smooth_step(-width, width, self.model.mesh.positions()[vertex].x)
    }

    /// 1 above the mouth's line, 0 below; ½ at the corners.
    pub fn above_mouth(&self, vertex: usize) -> f32 {
        match self.model.places.get(vertex) {
            Some(place) if place.patch == Patch::Mouth => smooth_step(3.3, 4.7, place.along),
            _ => smooth_step(-6.3, -4.9, self.model.mesh.positions()[vertex].y),
        }
    }

    /// One lip with its surroundings: `above` picks the upper one. Ends in the bag behind the teeth.
    pub fn lip(&self, above: bool, reach: f32) -> Mask {
        let sources = self.select(Patch::Mouth, 0.0, |along, across| {
            (along > 4.0) == above && (2.0..5.1).contains(&across)
        });
        self.around(&sources, reach).times(|v| {
            let share = self.above_mouth(v);
            if above { share } else { 1.0 - share }
        })
    }

    /// Both lips with their surroundings.
    pub fn lips(&self, reach: f32) -> Mask {
        self.around(&self.select(Patch::Mouth, 0.0, |_, across| (2.0..5.1).contains(&across)), reach)
    }

    /// A section of a lip around `x` (cm from the middle, negative on her right).
    pub fn lip_section(&self, above: bool, x: f32, reach: f32) -> Mask {
        let positions = self.model.mesh.positions();
        let line = self.select(Patch::Mouth, 0.0, |along, across| (along > 4.0) == above && across == 3.0);
        let nearest = line.iter().copied().min_by(|a, b| {
            let distance = |v: &u32| (positions[*v as usize].x - x).abs();
            distance(a).total_cmp(&distance(b))
        });
        let centre = nearest.map(|v| self.model.places[v as usize].along).unwrap_or(0.0);
        let sources = self.select(Patch::Mouth, if x == 0.0 { 0.0 } else { x.signum() }, |along, across| {
            (along - centre).abs() < 0.3 && (2.0..5.1).contains(&across)
        });
        self.around(&sources, reach).times(|v| {
            let share = self.above_mouth(v);
            if above { share } else { 1.0 - share }
        })
    }

    /// The corner of the mouth on her left.
    pub fn corner(&self, reach: f32) -> Mask {
        let sources = self.select(Patch::Mouth, 1.0, |along, across| {
            (along - 4.0).abs() < 0.3 && (2.0..5.1).contains(&across)
        });
        self.around(&sources, reach)
    }
}
