//! The coat's skirt: chains of bones that both legs push and gravity pulls ([`HemFollow`]), and
//! [`Collide`], which keeps cloth outside of the limbs under it.

use super::plan;
use understudy_core::{JointPose, Quat, Skeleton, Vec3};
use understudy_rigs::constraints::PoseConstraint;
use understudy_rigs::deformers::smooth_step;
use understudy_rigs::{Deformer, Frame, Scratch};

/// The angle by which a direction leans towards `outward`, radians.
fn lean(direction: Vec3, outward: Vec3) -> f32 {
    (0.995 * direction.dot(outward)).clamp(-0.999, 0.999).asin()
}

/// One leg: thigh and calf, and the direction of each in its own frame and, at rest, in the hips' frame.
struct Leg {
    bones: [usize; 2],
    along: [Vec3; 2],
    rest: [Vec3; 2],
    side: f32,
}

struct Chain {
    bones: [usize; 3],
    /// Horizontal, away from the body, in the frame of the hips.
    outward: Vec3,
    /// The turning axes (hips' frame) for outward and sideways.
    axes: [Vec3; 2],
    /// The way a positive turn about the second axis moves the chain's end.
    sideways: Vec3,
    /// The hip joint that the chain's root turns about when its thigh lifts it, hips' frame.
    hip: Vec3,
    /// Influence of the two legs, 0 to 1.
    influence: [f32; 2],
}

/// Swings the hem chains. A leg that moves towards a chain carries it along: the upper bones ride on the
/// thigh (their root turns about the hip joint), the last one hangs from the knee or lies on the calf.
/// Both legs add up; what no leg carries hangs down. Everything is a smooth function of the pose.
pub struct HemFollow {
    root: usize,
    hips: usize,
    legs: [Leg; 2],
    chains: Vec<Chain>,
    flare: usize,
    wind: [usize; 2],
}

impl HemFollow {
    /// Finds the chains; `controls` are the indices of flare, wind sideways and wind forward.
    pub fn new(skeleton: &Skeleton, controls: [usize; 3]) -> Self {
        let bone = |name: &str| skeleton.find(name).expect("a bone of Rook's own skeleton");
        let hips = bone("hips");
        let rest = skeleton.rest_pose();
        let leg = |suffix: &str, side: f32| {
            let mirror = Vec3::new(side, 1.0, 1.0);
            let bones = [bone(&format!("thigh_{suffix}")), bone(&format!("calf_{suffix}"))];
            let thigh = rest.0[bones[0]].rotation;
            let calf = thigh * rest.0[bones[1]].rotation;
            let upper = ((plan::KNEE - plan::HIP) * mirror).normalize();
            let lower = ((plan::ANKLE - plan::KNEE) * mirror).normalize();
            let along = [thigh.inverse() * upper, calf.inverse() * lower];
            Leg { bones, along, rest: [upper, lower], side }
        };
        let legs = [leg("l", 1.0), leg("r", -1.0)];
        let mut chains = Vec::new();
        for (leg, (side, sign)) in [("l", 1.0f32), ("r", -1.0)].into_iter().enumerate() {
            for (stem, _) in plan::HEM {
                let bones = [1, 2, 3].map(|joint| bone(&format!("{stem}_{side}_{joint}")));
                let frame = rest.0[bones[0]].rotation;
                let place = rest.0[bones[0]].translation;
                let outward = Vec3::new(place.x, 0.0, place.z).normalize();
                // On the right the bone's y axis runs against the chain (mirrored frames).
                let along = frame * (Vec3::Y * sign);
                let axes = [frame * Vec3::X, frame * Vec3::Z];
                let influence =
                    legs.each_ref().map(|leg| (0.55 + 1.1 * outward.x * leg.side).clamp(0.1, 1.0));
                let hip = rest.0[legs[leg].bones[0]].translation;
                let sideways = axes[1].cross(along);
                let sideways = Vec3::new(sideways.x, 0.0, sideways.z).normalize();
                chains.push(Chain { bones, outward, axes, sideways, hip, influence });
            }
        }
        let [flare, wind_x, wind_z] = controls;
        Self { root: bone("root"), hips, legs, chains, flare, wind: [wind_x, wind_z] }
    }

    /// Turns of the three bones from rest, as rotation vectors in the hips' frame.
    fn turns(&self, chain: &Chain, pose: &JointPose) -> [Vec3; 3] {
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

impl PoseConstraint for HemFollow {
    fn apply(&self, controls: &[f32], pose: &mut JointPose) {
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

/// A limb that cloth must not enter: a cone with round ends.
#[derive(Debug, Clone)]
pub struct Limb {
    /// The bone it follows.
    pub bone: usize,
    /// Ends at rest, cm.
    pub ends: [Vec3; 2],
    /// Radii at the ends, cm.
    pub radii: [f32; 2],
}

/// A vertex of cloth.
#[derive(Debug, Clone, Copy)]
pub struct Cloth {
    /// Which.
    pub vertex: u32,
    /// The way it is pushed, at rest.
    pub outward: Vec3,
    /// How much of the push it takes, 0 to 1.
    pub share: f32,
    /// Distance kept to a limb, cm.
    pub gap: f32,
}

/// Pushes cloth out of limbs along its own outward direction, which follows a bone. Each round measures
/// the depth `d = radius + gap − distance` to every limb and moves by half of `Σ ½(d + √(d² + s))`, less
/// the same sum at rest, so that the rest pose stays.
pub struct Collide {
    bone: usize,
    limbs: Vec<Limb>,
    cloth: Vec<(Cloth, f32)>,
}

impl Collide {
    const ROUNDS: usize = 3;
    const SOFTNESS: f32 = 1.2;

    /// `rest`: positions of the mesh; `bone` carries the outward directions.
    pub fn new(bone: usize, limbs: Vec<Limb>, cloth: Vec<Cloth>, rest: &[Vec3]) -> Self {
        let ends: Vec<[Vec3; 2]> = limbs.iter().map(|limb| limb.ends).collect();
        let with_rest = |cloth: Cloth| (cloth, push(rest[cloth.vertex as usize], &ends, &limbs, cloth.gap));
        let cloth = cloth.into_iter().map(with_rest).collect();
        Self { bone, limbs, cloth }
    }
}

fn push(point: Vec3, ends: &[[Vec3; 2]], limbs: &[Limb], gap: f32) -> f32 {
    let mut total = 0.0;
    for (ends, limb) in ends.iter().zip(limbs) {
        let along = ends[1] - ends[0];
        let t = ((point - ends[0]).dot(along) / along.length_squared()).clamp(0.0, 1.0);
        let away = point - (ends[0] + along * t);
        let depth = limb.radii[0] + (limb.radii[1] - limb.radii[0]) * t + gap - away.length();
        total += 0.5 * (depth + (depth * depth + Collide::SOFTNESS).sqrt());
    }
    total
}

impl Deformer for Collide {
    fn name(&self) -> &str {
        "cloth collision"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
        let carrier = frame.matrices[self.bone];
        let mut ends = [[Vec3::ZERO; 2]; 8];
        for (ends, limb) in ends.iter_mut().zip(&self.limbs) {
            *ends = limb.ends.map(|end| frame.matrices[limb.bone].transform_point3(end));
        }
        for (cloth, rest) in &self.cloth {
            let outward = carrier.transform_vector3(cloth.outward);
            let point = &mut vertices[cloth.vertex as usize];
            for _ in 0..Self::ROUNDS {
                let by = push(*point, &ends, &self.limbs, cloth.gap) - rest;
                *point += outward * (by.max(0.0) * cloth.share * 0.5);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_thigh_lifts_the_front_of_its_side_and_the_rest_pose_stays() {
        let skeleton = super::super::bones::skeleton().expect("a tree");
        let hem = HemFollow::new(&skeleton, [0, 1, 2]);
        let mut pose = skeleton.rest_pose();
        hem.apply(&[0.0; 3], &mut pose);
        for (moved, rest) in pose.0.iter().zip(&skeleton.rest_pose().0) {
            assert!(moved.rotation.angle_between(rest.rotation) < 1e-3);
        }
        let thigh = skeleton.find("thigh_l").expect("a thigh");
        let mut pose = skeleton.rest_pose();
        pose.0[thigh].rotation *= Quat::from_rotation_x(1.2);
        hem.apply(&[0.0; 3], &mut pose);
        let turned = |name: &str| {
            let bone = skeleton.find(name).expect("a chain");
            pose.0[bone].rotation.angle_between(skeleton.bones()[bone].rest.rotation)
        };
        assert!(turned("hem_front_l_1") > 0.6, "{}", turned("hem_front_l_1"));
        assert!(turned("hem_front_r_1") < 0.35 * turned("hem_front_l_1"));
        assert!(turned("hem_tail_l_1") < 0.2);
    }
}
