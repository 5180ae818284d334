//! Flesh on a skeleton: muscles, sliding skin and pose correctives, placed by where bones and their
//! vertices lie.

use super::joints::{BodyControl, Limbs, trunk};
use understudy_core::{Channel, ControlSpecs, Mesh, Quat, Skeleton, SkinWeights, SparseDeltas, Vec3};
use understudy_rigs::deformers::{
    Attachment, Driver, JointOffsetConfig, Muscle, PoseTarget, Slide, VertexWeights, smooth_step,
    spindle_mask,
};

/// What flesh is put on.
pub(super) struct Flesh<'a> {
    pub mesh: &'a Mesh,
    pub skeleton: &'a Skeleton,
    pub weights: &'a SkinWeights,
    pub specs: &'a ControlSpecs,
    pub controls: &'a [BodyControl],
}

/// A limb between two joints: its bones, ends and thickness.
struct Segment {
    bones: Vec<usize>,
    start: Vec3,
    end: Vec3,
    /// Mean distance of its vertices from its axis, cm.
    thickness: f32,
}

impl Flesh<'_> {
    fn place(&self, bone: usize) -> Vec3 {
        self.skeleton.rest_global()[bone].translation.into()
    }

    /// The bones from `first` down to, not including, `until`.
    fn chain(&self, first: usize, until: usize) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut bone = self.skeleton.bones()[until].parent;
        while let Some(index) = bone {
            chain.push(index);
            if index == first {
                break;
            }
            bone = self.skeleton.bones()[index].parent;
        }
        chain
    }

    /// How much each vertex follows some bones, `[V]`.
    pub fn share(&self, bones: &[usize]) -> Vec<f32> {
        let row =
            |vertex| self.weights.row(vertex).filter(|(bone, _)| bones.contains(bone)).map(|(_, w)| w).sum();
        (0..self.mesh.vertex_count()).map(row).collect()
    }

    fn segment(&self, first: usize, until: usize) -> Segment {
        let bones = self.chain(first, until);
        let (start, end) = (self.place(first), self.place(until));
        let axis = (end - start).normalize_or_zero();
        let share = self.share(&bones);
        let (mut sum, mut count) = (0.0, 0.0f32);
        for (point, share) in self.mesh.positions().iter().zip(&share) {
            let t = (*point - start).dot(axis) / (end - start).length().max(1e-3);
            if *share > 0.6 && (0.2..0.8).contains(&t) {
                sum += (*point - start).reject_from_normalized(axis).length();
                count += 1.0;
            }
        }
        let thickness = if count > 0.0 { sum / count } else { 0.15 * (end - start).length() };
        Segment { bones, start, end, thickness }
    }

    /// Muscles on both sides of upper arms, forearms, thighs and calves.
    pub fn muscles(&self) -> Vec<Muscle> {
        let mut muscles = Vec::new();
        let [root, ..] = trunk(self.skeleton);
        for (left, side) in [(true, "l"), (false, "r")] {
            let limbs = Limbs::find(self.skeleton, left);
            let flex =
                self.specs.find(&format!("flex_{side}")).map_or(Driver::constant(0.0), Driver::control);
            let mut add =
                |name: &str, from: (usize, Vec3), to: (usize, Vec3), segment: &Segment, power: [f32; 2]| {
                    let mask = self.muscle_mask(from.1, to.1, segment);
                    if !mask.is_empty() && from.1.distance(to.1) > 1.0 {
                        muscles.push(Muscle {
                            name: format!("{name}_{side}"),
                            origin: Attachment { bone: from.0, point: from.1 },
                            insertion: Attachment { bone: to.0, point: to.1 },
                            mask,
                            volume: power[0],
                            flex_swelling: power[1],
                            flex: flex.clone(),
                            limit: 0.6,
                        });
                    }
                };
            if let (Some(arm), Some(forearm), Some(hand)) = (limbs.upper_arm, limbs.forearm, limbs.hand) {
                let upper = self.segment(arm, forearm);
                let lower = self.segment(forearm, hand);
                // The side that an elbow folds to.
                let inside = -(upper.end - upper.start).normalize_or_zero();
                let front =
                    (lower.end - lower.start).normalize_or_zero().reject_from(inside).normalize_or_zero();
                let off = front * (0.55 * upper.thickness);
                let below = lower.start.lerp(lower.end, 0.15);
                add("biceps", (arm, upper.start + off), (forearm, below + off * 0.6), &upper, [2.2, 0.45]);
                let back = lower.start - off * 1.2;
                add(
                    "triceps",
                    (limbs.clavicle.unwrap_or(arm), upper.start - off),
                    (forearm, back),
                    &upper,
                    [1.2, 0.3],
                );
                add("forearm", (arm, lower.start), (hand, lower.end + off * 0.3), &lower, [1.5, 0.3]);
            }
            if let (Some(thigh), Some(shin), Some(foot), Some(root)) =
                (limbs.thigh, limbs.shin, limbs.foot, root)
            {
                let upper = self.segment(thigh, shin);
                let lower = self.segment(shin, foot);
                let off = Vec3::Z * (0.5 * upper.thickness);
                let below = lower.start.lerp(lower.end, 0.12);
                add("quadriceps", (root, upper.start + off), (shin, below + off), &upper, [1.2, 0.25]);
                add("hamstring", (root, upper.start - off), (shin, below - off * 0.8), &upper, [1.4, 0.2]);
                let heel = lower.end - Vec3::Z * (0.8 * lower.thickness);
                let calf = Vec3::Z * (0.5 * lower.thickness);
                add("calf", (thigh, lower.start - calf), (foot, heel), &lower, [2.6, 0.3]);
            }
        }
        muscles
    }

    /// A spindle, as far as vertices belong to the limb.
    fn muscle_mask(&self, from: Vec3, to: Vec3, segment: &Segment) -> VertexWeights {
        let share = self.share(&segment.bones);
        let spindle = spindle_mask(self.mesh.positions(), from, to, 1.5 * segment.thickness);
        spindle
            .into_iter()
            .map(|(vertex, weight)| (vertex, weight * smooth_step(0.2, 0.8, share[vertex as usize])))
            .filter(|(_, weight)| *weight > 1e-3)
            .collect()
    }

    /// Skin of the flanks slides with the upper arms, that of the buttocks with the thighs.
    pub fn slides(&self) -> Vec<Slide> {
        let [root, chest, ..] = trunk(self.skeleton);
        let mut slides = Vec::new();
        for (left, side) in [(true, "l"), (false, "r")] {
            let limbs = Limbs::find(self.skeleton, left);
            let mut add =
                |name: &str, bone: Option<usize>, until: Option<usize>, still: Option<usize>, reach: f32| {
                    let (Some(bone), Some(until), Some(reference)) = (bone, until, still) else { return };
                    let own = self.share(&self.chain(bone, until));
                    let centre = self.place(bone);
                    let length = centre.distance(self.place(until));
                    let weight = |(vertex, point): (u32, &Vec3)| {
                        let near = smooth_step(reach * length, 0.25 * reach * length, point.distance(centre));
                        (vertex, near * smooth_step(0.7, 0.1, own[vertex as usize]))
                    };
                    let mask: VertexWeights =
                        (0u32..).zip(self.mesh.positions()).map(weight).filter(|(_, w)| *w > 1e-3).collect();
                    slides.push(Slide {
                        name: format!("{name}_{side}"),
                        bone,
                        reference,
                        mask,
                        amount: 0.07,
                        limit: 1.6,
                    });
                };
            add("flank", limbs.upper_arm, limbs.forearm, chest, 0.9);
            add("buttock", limbs.thigh, limbs.shin, root, 0.55);
        }
        slides
    }

    /// Elbows and knees keep their points: bent by 100°, their outer side is pushed out.
    pub fn joint_offsets(&self) -> Vec<JointOffsetConfig> {
        let mut configs = Vec::new();
        for side in ["l", "r"] {
            let limbs = Limbs::find(self.skeleton, side == "l");
            for (name, joint, end, point) in [
                (format!("elbow_{side}.bend"), limbs.forearm, limbs.hand, 0.28),
                (format!("knee_{side}.bend"), limbs.shin, limbs.foot, 0.2),
            ] {
                let control = self.controls.iter().find(|control| control.name == name);
                let (Some(control), Some(joint), Some(end)) = (control, joint, end) else { continue };
                configs.extend(self.joint_point(control, joint, end, point));
            }
        }
        configs
    }

    fn joint_point(
        &self,
        control: &BodyControl,
        joint: usize,
        end: usize,
        push: f32,
    ) -> Option<JointOffsetConfig> {
        let bend = 90.0f32.to_radians() * control.sign;
        let (turn, axis) = match control.channel {
            Channel::RotateX => (Quat::from_rotation_x(bend), Vec3::X),
            Channel::RotateY => (Quat::from_rotation_y(bend), Vec3::Y),
            Channel::RotateZ => (Quat::from_rotation_z(bend), Vec3::Z),
            _ => return None,
        };
        let frame = &self.skeleton.rest_global()[joint];
        let along = (self.place(end) - self.place(joint)).normalize_or_zero();
        // Bending by +axis carries the far end along axis × along; the point lies on the other side.
        let outside = -(frame.transform_vector3(axis * control.sign).cross(along)).normalize_or_zero();
        let lower = self.segment(joint, end);
        let own = self.share(
            &[lower.bones.clone(), self.skeleton.bones()[joint].parent.into_iter().collect()].concat(),
        );
        let centre = self.place(joint);
        let offset = |(point, own): (&Vec3, &f32)| {
            let away = *point - centre;
            let near = smooth_step(2.2 * lower.thickness, 0.6 * lower.thickness, away.length());
            let facing = away.normalize_or_zero().dot(outside);
            let out = smooth_step(0.1, 0.9, facing) - 0.5 * smooth_step(0.1, 0.9, -facing);
            outside * (push * lower.thickness * near * out * smooth_step(0.2, 0.7, *own))
        };
        let dense: Vec<Vec3> = self.mesh.positions().iter().zip(&own).map(offset).collect();
        Some(JointOffsetConfig {
            name: control.name.clone(),
            bone: joint,
            rest: self.skeleton.bones()[joint].rest.rotation,
            targets: vec![PoseTarget { rotation: turn, deltas: SparseDeltas::from_dense(&dense, 0.01) }],
            reach_degrees: 75.0,
        })
    }
}
