//! A skirt's chains of bones, which both legs push and gravity pulls.

use super::smooth_step;
use crate::{JointPose, Quat, Vec3};
use serde::{Deserialize, Serialize};

/// The angle by which a direction leans towards `outward`, radians.
fn lean(direction: Vec3, outward: Vec3) -> f32 {
    (0.995 * direction.dot(outward)).clamp(-0.999, 0.999).asin()
}

/// One leg: thigh and calf, and the direction of each in its own frame and, at rest, in the hips' frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkirtLeg {
    /// Thigh, a child of the hips, and calf, a child of the thigh.
    pub bones: [usize; 2],
    /// Along each bone, in its own frame.
    pub along: [Vec3; 2],
    /// The same at rest, in the hips' frame.
    pub rest: [Vec3; 2],
}

/// Three bones, each a child of the one before, the first of the hips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkirtChain {
    /// From the hips down.
    pub bones: [usize; 3],
    /// Horizontal, away from the body, in the frame of the hips.
    pub outward: Vec3,
    /// The turning axes (hips' frame) for outward and sideways.
    pub axes: [Vec3; 2],
    /// The way a positive turn about the second axis moves the chain's end.
    pub sideways: Vec3,
    /// The hip joint that the chain's root turns about when its thigh lifts it, hips' frame.
    pub hip: Vec3,
    /// Influence of the two legs, 0 to 1.
    pub influence: [f32; 2],
}

/// Swings the chains of a skirt. A leg that moves towards a chain carries it along: the upper bones ride on the
/// thigh (their root turns about the hip joint), the last one hangs from the knee or lies on the calf.
/// Both legs add up; what no leg carries hangs down. Everything is a smooth function of the pose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkirtFollow {
    /// The bone whose frame has the y axis upwards at rest; the hips are its child.
    pub root: usize,
    /// What legs and chains hang on.
    pub hips: usize,
    /// Left and right.
    pub legs: [SkirtLeg; 2],
    /// All of the skirt.
    pub chains: Vec<SkirtChain>,
    /// The control that spreads the skirt.
    pub flare: usize,
    /// The controls that blow it, along x and along z.
    pub wind: [usize; 2],
}

impl SkirtFollow {
    /// The bones and the controls that it names.
    pub(super) fn named(&self) -> (Vec<usize>, Vec<usize>) {
        let legs = self.legs.iter().flat_map(|leg| leg.bones);
        let chains = self.chains.iter().flat_map(|chain| chain.bones);
        let [x, z] = self.wind;
        ([self.root, self.hips].into_iter().chain(legs).chain(chains).collect(), vec![self.flare, x, z])
    }

    /// Turns of the three bones from rest, as rotation vectors in the hips' frame.
    fn turns(&self, chain: &SkirtChain, pose: &JointPose) -> [Vec3; 3] {
        let mut thighs = Vec3::ZERO;
        let mut calves = Vec3::ZERO;
        for (leg, influence) in self.legs.iter().zip(chain.influence) {
            let thigh = pose.0[leg.bones[0]].rotation;
            let calf = thigh * pose.0[leg.bones[1]].rotation;
            thighs += carried(leg.rest[0], thigh * leg.along[0], chain.outward) * influence;
            calves += carried(leg.rest[1], calf * leg.along[1], chain.outward) * influence;
        }
        let upright = pose.0[self.root].rotation * pose.0[self.hips].rotation;
        let down = upright.inverse() * Vec3::NEG_Y;
        let hang = chain.axes[0] * (0.8 * lean(down, chain.outward))
            + chain.axes[1] * (0.6 * lean(down, chain.sideways));
        // Cloth that a leg carries does not hang.
        let free = |by: Vec3| hang / (1.0 + by.length_squared() / 0.12);
        let upper = thighs + free(thighs);
        let middle = upper + calves * (0.35 / (1.0 + thighs.length_squared() / 0.09));
        let lower = thighs * 0.35 + calves * 0.65;
        [upper, middle, lower + free(lower)]
    }

    pub(super) fn apply(&self, controls: &[f32], pose: &mut JointPose) {
        let flare = controls[self.flare];
        let wind = Vec3::new(controls[self.wind[0]], 0.0, controls[self.wind[1]]);
        for chain in &self.chains {
            let turns = self.turns(chain, pose).map(Quat::from_scaled_axis);
            let blown = wind.dot(chain.outward);
            let sway = 0.2 * wind.dot(chain.sideways);
            let extra = [
                Quat::from_rotation_z(sway) * Quat::from_rotation_x(0.26 * flare + 0.30 * blown),
                Quat::from_rotation_x(0.10 * flare + 0.22 * blown),
                Quat::from_rotation_x(0.06 * flare + 0.16 * blown),
            ];
            let first = &mut pose.0[chain.bones[0]];
            let lifted = chain.hip + turns[0] * (first.translation - chain.hip);
            first.translation = first.translation.lerp(lifted, 0.7);
            // From the turns in the hips' frame to each bone's own: R' = P⁻¹ A R, P the parent's turn.
            let mut rest = Quat::IDENTITY;
            let mut parent = Quat::IDENTITY;
            for ((&bone, turn), extra) in chain.bones.iter().zip(turns).zip(extra) {
                let joint = &mut pose.0[bone];
                let own = joint.rotation;
                let relative = rest.inverse() * (parent.inverse() * turn) * rest;
                joint.rotation = (relative * own * extra).normalize();
                rest *= own;
                parent = turn;
            }
        }
    }
}

/// The turn that takes `rest` to `now`, as a rotation vector, as far as it moves towards `outward`: cloth
/// in front of a limb is carried, cloth behind it is not.
fn carried(rest: Vec3, now: Vec3, outward: Vec3) -> Vec3 {
    const NOTHING: f32 = 0.12;
    let moved = now - rest;
    let moved = Vec3::new(moved.x, 0.0, moved.z);
    let towards = moved.dot(outward) / (moved.length_squared() + NOTHING * NOTHING).sqrt();
    Quat::from_rotation_arc(rest, now.normalize()).to_scaled_axis() * smooth_step(-0.1, 0.6, towards)
}
