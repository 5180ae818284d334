//! The sculptor's hand: a shape is a few strokes, each a mask and a movement. Shapes of her left side are
//! authored once; the right side is their mirror image.

use super::anatomy::{Anatomy, Mask};
use understudy_core::{Quat, SparseDeltas, Vec3};

/// Offsets below this length are left out, cm.
const THRESHOLD: f32 = 2e-4;

/// How a stroke moves the skin at full weight.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    /// Straight, cm.
    Shift(Vec3),
    /// Along the outward normal, cm.
    Inflate(f32),
    /// Around an axis through a point, degrees: skin that slides over a round form.
    Turn { pivot: Vec3, axis: Vec3, degrees: f32 },
    /// Away from (or towards) a point, by a factor an axis added to one.
    Scale { centre: Vec3, by: Vec3 },
}

/// A shape under the sculptor's hand: dense offsets.
pub(super) struct Sculpture<'a, 'b> {
    anatomy: &'b Anatomy<'a>,
    deltas: Vec<Vec3>,
}

impl<'a, 'b> Sculpture<'a, 'b> {
    pub fn new(anatomy: &'b Anatomy<'a>) -> Self {
        Self { anatomy, deltas: vec![Vec3::ZERO; anatomy.model.mesh.vertex_count()] }
    }

    /// Adds a stroke.
    pub fn stroke(mut self, mask: &Mask, movement: Move) -> Self {
        let positions = self.anatomy.model.mesh.positions();
        for (vertex, &weight) in mask.0.iter().enumerate() {
            if weight != 0.0 {
                let p = positions[vertex];
                let (way, weight) = match movement {
                    Move::Shift(way) => (way, weight),
                    Move::Inflate(height) => (self.anatomy.normals[vertex] * height, weight),
                    // The angle is scaled, not the chord, so that partial weights stay on the arc.
                    Move::Turn { pivot, axis, degrees } => {
                        let turn = Quat::from_axis_angle(axis.normalize(), (degrees * weight).to_radians());
                        (turn * (p - pivot) - (p - pivot), 1.0)
                    }
                    Move::Scale { centre, by } => ((p - centre) * by, weight),
                };
                self.deltas[vertex] += way * weight;
            }
        }
        self
    }

    /// Adds the mirror image of what is there.
    pub fn both_sides(mut self) -> Self {
        let image = mirrored(self.anatomy, &self.deltas);
        self.deltas.iter_mut().zip(image).for_each(|(delta, other)| *delta += other);
        self
    }

    /// The offsets as they are and mirrored.
    pub fn finish(self) -> (SparseDeltas, SparseDeltas) {
        let other = mirrored(self.anatomy, &self.deltas);
        (SparseDeltas::from_dense(&self.deltas, THRESHOLD), SparseDeltas::from_dense(&other, THRESHOLD))
    }
}

fn mirrored(anatomy: &Anatomy, deltas: &[Vec3]) -> Vec<Vec3> {
    let flip = |image: &u32| deltas[*image as usize] * Vec3::new(-1.0, 1.0, 1.0);
    anatomy.mirror.iter().map(flip).collect()
}
