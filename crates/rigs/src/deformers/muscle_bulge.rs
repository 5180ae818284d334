//! Muscles that swell as they shorten. A muscle runs between two points that follow bones; the vertices
//! of its mask move out of its axis so that its volume is kept. Runs after skinning.

use super::driver::{Driver, RigSize, VertexWeights, check_finite, check_positive, unknown};
use super::smooth_step;
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::Vec3;

/// A point that follows a bone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attachment {
    /// The bone.
    pub bone: usize,
    /// World position in the rest pose, cm.
    pub point: Vec3,
}

/// One muscle.
#[derive(Debug, Clone, PartialEq)]
pub struct Muscle {
    /// For messages.
    pub name: String,
    /// One end.
    pub origin: Attachment,
    /// The other end.
    pub insertion: Attachment,
    /// Which vertices swell, 0 to 1; see [`spindle_mask`].
    pub mask: VertexWeights,
    /// 1 keeps the volume: thickness grows with `√(rest length / length)`. More exaggerates.
    pub volume: f32,
    /// Added to the swelling: a share of the distance from the axis, at `flex` = 1.
    pub flex_swelling: f32,
    /// Tensing without movement.
    pub flex: Driver,
    /// The most that thickness grows or shrinks, as a share of the distance from the axis (0 to 1);
    /// approached smoothly.
    pub limit: f32,
}

/// Swells muscles: `v += mask · s · r`, where `r` is the vertex's offset from the muscle's axis and
/// `s = (L₀/L)^(volume/2) − 1 + flex`, held smoothly under the limit. Zero at rest.
pub struct MuscleBulge {
    muscles: Vec<Muscle>,
}

impl MuscleBulge {
    /// Checks the muscles.
    pub fn new(muscles: Vec<Muscle>, size: &RigSize) -> Result<Self, RigError> {
        for muscle in &muscles {
            let part = format!("muscle '{}'", muscle.name);
            size.check_bone(&part, muscle.origin.bone)?;
            size.check_bone(&part, muscle.insertion.bone)?;
            size.check_weights(&part, &muscle.mask)?;
            muscle.flex.check(&part, size)?;
            check_positive(&part, "limit", muscle.limit)?;
            check_positive(&part, "length", (muscle.insertion.point - muscle.origin.point).length())?;
            check_finite(&part, "volume", muscle.volume)?;
            check_finite(&part, "flex swelling", muscle.flex_swelling)?;
            if muscle.limit >= 1.0 {
                return Err(unknown(&part, format!("limit = {}, which must be below 1", muscle.limit)));
            }
        }
        Ok(Self { muscles })
    }
}

/// How much a muscle swells: `limit · tanh(s / limit)`.
fn swelling(muscle: &Muscle, length: f32, flex: f32) -> f32 {
    let rest_length = (muscle.insertion.point - muscle.origin.point).length();
    // A muscle cannot shorten to nothing: below a fifth of its length it swells no more.
    let ratio = rest_length / length.max(0.2 * rest_length);
    let raw = ratio.powf(0.5 * muscle.volume) - 1.0 + flex * muscle.flex_swelling;
    muscle.limit * (raw / muscle.limit).tanh()
}

impl Deformer for MuscleBulge {
    fn name(&self) -> &str {
        "muscle bulge"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
        for muscle in &self.muscles {
            let place = |end: &Attachment| frame.matrices[end.bone].transform_point3(end.point);
            let (origin, insertion) = (place(&muscle.origin), place(&muscle.insertion));
            let along = insertion - origin;
            let length = along.length();
            let grow = swelling(muscle, length, muscle.flex.value(frame.controls));
            if grow == 0.0 {
                continue;
            }
            let axis = along / length.max(1e-6);
            for &(vertex, weight) in &muscle.mask {
                let offset = vertices[vertex as usize] - origin;
                let radial = offset - axis * axis.dot(offset);
                vertices[vertex as usize] += radial * (grow * weight);
            }
        }
    }
}

/// A spindle about the line from `origin` to `insertion`: full in the middle of the muscle and on its
/// axis, zero at both ends and `radius` cm away from the axis.
pub fn spindle_mask(positions: &[Vec3], origin: Vec3, insertion: Vec3, radius: f32) -> VertexWeights {
    let along = insertion - origin;
    let length_squared = along.length_squared().max(f32::MIN_POSITIVE);
    let weight = |point: Vec3| {
        let t = (point - origin).dot(along) / length_squared;
        let away = (point - origin - along * t).length();
        let belly = smooth_step(0.0, 0.5, t) * smooth_step(1.0, 0.5, t);
        belly * smooth_step(radius, 0.4 * radius, away)
    };
    let weights = (0u32..).zip(positions).map(|(vertex, point)| (vertex, weight(*point)));
    weights.filter(|(_, weight)| *weight > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Skinning;
    use super::super::test_support::*;
    use super::*;

    fn biceps() -> Muscle {
        let mesh = tube();
        let (origin, insertion) = (Vec3::new(0.0, 4.0, 3.0), Vec3::new(0.0, 23.0, 3.0));
        Muscle {
            name: "biceps".into(),
            origin: Attachment { bone: 0, point: origin },
            insertion: Attachment { bone: 1, point: insertion },
            mask: spindle_mask(mesh.positions(), origin, insertion, 5.0),
            volume: 2.0,
            flex_swelling: 0.5,
            flex: Driver::control(control("a")),
            limit: 0.8,
        }
    }

    fn arm(muscles: Vec<Muscle>) -> crate::StackRig {
        let mesh = tube();
        let skinning = Skinning::linear(weights(&mesh), &size(&mesh)).expect("fits");
        let bulge = MuscleBulge::new(muscles, &size(&mesh)).expect("fits");
        rig(mesh, vec![Box::new(skinning), Box::new(bulge)])
    }

    /// The vertex in the middle of the muscle, on the +z side of the tube.
    const BELLY: usize = (6 * AROUND + AROUND / 4) as usize;

    #[test]
    fn zero_at_rest_and_continuous() {
        let rig = arm(vec![biceps()]);
        assert_identity_at_rest(&rig, 1e-4);
        assert_continuous(&rig, 0.08);
    }

    #[test]
    fn bending_and_flexing_swell_it_up_to_the_limit() {
        let (with, without) = (arm(vec![biceps()]), arm(vec![]));
        let swell =
            |changes: &[(&str, f32)]| (pose(&with, changes)[BELLY] - pose(&without, changes)[BELLY]).length();
        let series = [10.0, 40.0, 80.0, 120.0].map(|bend| swell(&[("bend", bend)]));
        assert!(series.windows(2).all(|pair| pair[1] > pair[0]), "{series:?}");
        assert!(swell(&[("a", 1.0)]) > 0.3);
        // Twice the radius is the furthest a masked vertex can be from the axis.
        assert!(swell(&[("bend", 130.0), ("a", 1.0)]) < 0.8 * 10.0);
    }

    #[test]
    fn vertices_outside_the_mask_stay() {
        let (with, without) = (arm(vec![biceps()]), arm(vec![]));
        let changes = [("bend", 100.0), ("a", 1.0)];
        let (a, b) = (pose(&with, &changes), pose(&without, &changes));
        let masked: Vec<u32> = biceps().mask.iter().map(|w| w.0).collect();
        for vertex in (0..a.len()).filter(|v| !masked.contains(&(*v as u32))) {
            assert_eq!(a[vertex], b[vertex]);
        }
        assert!(masked.len() > 20);
    }

    #[test]
    fn bad_muscles_are_named() {
        let mesh = tube();
        let new = |muscle| MuscleBulge::new(vec![muscle], &size(&mesh)).err().expect("must fail").to_string();
        let far = Attachment { bone: 9, point: Vec3::ZERO };
        assert!(new(Muscle { origin: far, ..biceps() }).contains("muscle 'biceps' names 'bone 9'"));
        assert!(new(Muscle { limit: 1.5, ..biceps() }).contains("limit"));
        assert!(new(Muscle { insertion: biceps().origin, ..biceps() }).contains("length = 0"));
    }
}
