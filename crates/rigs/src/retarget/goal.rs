//! What a frame asks of the body: directions of segments, turns of bones, places of points, all as distances in cm, so
//! that one weighted sum of squares compares them.

use understudy_core::{Affine3A, DQuat, DVec3};

/// A point of the body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Point {
    /// Halfway between the hip joints: bones' own origins differ from rig to rig.
    MidHips([usize; 2]),
    /// The origin of a bone.
    Bone(usize),
}

impl Point {
    pub fn at(self, globals: &[Affine3A]) -> DVec3 {
        match self {
            Self::MidHips([left, right]) => 0.5 * (place(globals, left) + place(globals, right)),
            Self::Bone(bone) => place(globals, bone),
        }
    }
}

/// Where a bone is, cm.
pub(super) fn place(globals: &[Affine3A], bone: usize) -> DVec3 {
    globals[bone].translation.as_dvec3()
}

/// A bone's rotation in the world.
pub(super) fn turn(globals: &[Affine3A], bone: usize) -> DQuat {
    understudy_core::skeleton::rotation_of(&globals[bone]).as_dquat().normalize()
}

/// From bone `from` to bone `to` along a unit vector: `w · length · (d − wanted)`.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub from: usize,
    pub to: usize,
    pub wanted: DVec3,
    pub length: f64,
}

/// A bone's rotation: `radius · log(R · R_wanted⁻¹)`.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub bone: usize,
    pub wanted: DQuat,
    /// cm per radian.
    pub radius: f64,
}

/// A point's place: `weight · (p − wanted)`.
#[derive(Debug, Clone)]
pub(super) struct Pin {
    pub point: Point,
    pub wanted: DVec3,
    pub weight: f64,
}

/// All that a frame asks.
#[derive(Debug, Clone, Default)]
pub(super) struct Goal {
    pub segments: Vec<Segment>,
    pub turns: Vec<Turn>,
    pub pins: Vec<Pin>,
}

impl Goal {
    /// How many numbers [`Self::residuals`] gives.
    pub fn len(&self) -> usize {
        3 * (self.segments.len() + self.turns.len() + self.pins.len())
    }

    /// What is left to do, cm.
    pub fn residuals(&self, globals: &[Affine3A], out: &mut Vec<f64>) {
        out.clear();
        for segment in &self.segments {
            let along = place(globals, segment.to) - place(globals, segment.from);
            let miss = segment.length * (along.normalize_or_zero() - segment.wanted);
            out.extend(miss.to_array());
        }
        for wanted in &self.turns {
            let miss = wanted.radius * rotation_vector(turn(globals, wanted.bone) * wanted.wanted.inverse());
            out.extend(miss.to_array());
        }
        for pin in &self.pins {
            out.extend((pin.weight * (pin.point.at(globals) - pin.wanted)).to_array());
        }
    }

    /// Angles between what is and what is wanted, degrees: segments, then turns.
    pub fn angles(&self, globals: &[Affine3A]) -> impl Iterator<Item = f64> {
        let segments = self.segments.iter().map(|segment| {
            let along = place(globals, segment.to) - place(globals, segment.from);
            along.angle_between(segment.wanted).to_degrees()
        });
        let turns = self.turns.iter().map(|wanted| {
            rotation_vector(turn(globals, wanted.bone) * wanted.wanted.inverse()).length().to_degrees()
        });
        segments.chain(turns)
    }
}

/// `log R`: the axis times the angle, 0 to π.
pub(super) fn rotation_vector(turn: DQuat) -> DVec3 {
    let turn = if turn.w < 0.0 { -turn } else { turn };
    let axis = DVec3::new(turn.x, turn.y, turn.z);
    let sine = axis.length();
    if sine < 1e-12 { 2.0 * axis } else { axis * (2.0 * sine.atan2(turn.w) / sine) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rotation_vector_is_the_logarithm() {
        for vector in [DVec3::ZERO, DVec3::new(1e-9, 0.0, 0.0), DVec3::new(0.3, -1.2, 2.0), DVec3::X * 3.1] {
            let there = rotation_vector(DQuat::from_scaled_axis(vector));
            assert!(there.distance(vector) < 1e-9, "{vector}");
            assert!(rotation_vector(-DQuat::from_scaled_axis(vector)).distance(vector) < 1e-9);
        }
    }
}
