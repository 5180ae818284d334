//! The coat's skirt: chains of bones that both legs push and gravity pulls ([`HemFollow`]), and a last
//! touch on the vertices that keeps the cloth outside of the legs ([`HemCollide`]).

use super::plan;
use crate::constraints::PoseConstraint;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::{JointPose, Quat, Skeleton, Vec3};

/// Smooth maximum: equals the larger one a little away from the tie, and is smooth everywhere.
fn soft_max(a: f32, b: f32, width: f32) -> f32 {
    0.5 * (a + b + ((a - b) * (a - b) + width * width).sqrt())
}

/// The angle by which a direction leans towards `outward`, radians.
fn lean(direction: Vec3, outward: Vec3) -> f32 {
    (0.995 * direction.dot(outward)).clamp(-0.999, 0.999).asin()
}

/// One leg: thigh and calf, and the direction of each in its own frame.
struct Leg {
    bones: [usize; 2],
    along: [Vec3; 2],
    side: f32,
}

struct Chain {
    bones: [usize; 3],
    /// Horizontal, away from the body, in the frame of the hips.
    outward: Vec3,
    /// The way a positive turn about z moves the chain's end.
    sideways: Vec3,
    /// Influence of the two legs, 0 to 1.
    influence: [f32; 2],
}

/// Swings the hem chains: the thigh pushes the upper bone, the calf the lower ones, cloth that nothing
/// pushes hangs down. Each angle is a smooth maximum over both legs and gravity, so the coat follows
/// whichever leg is under it.
pub struct HemFollow {
    root: usize,
    hips: usize,
    legs: [Leg; 2],
    chains: Vec<Chain>,
    /// Angles at rest of each chain, taken away so that the rest pose stays.
    rest: Vec<[f32; 4]>,
    flare: usize,
    wind: [usize; 2],
}

impl HemFollow {
    const WIDTH: f32 = 0.16;

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
            Leg { bones, along: [thigh.inverse() * upper, calf.inverse() * lower], side }
        };
        let legs = [leg("l", 1.0), leg("r", -1.0)];
        let mut chains = Vec::new();
        for (side, sign) in [("l", 1.0f32), ("r", -1.0)] {
            for (stem, _) in plan::HEM {
                let bones = [1, 2, 3].map(|joint| bone(&format!("{stem}_{side}_{joint}")));
                let frame = rest.0[bones[0]].rotation;
                let place = rest.0[bones[0]].translation;
                let outward = Vec3::new(place.x, 0.0, place.z).normalize();
                // On the right the bone's y axis runs against the chain (mirrored frames).
                let along = frame * (Vec3::Y * sign);
                let sideways = (frame * Vec3::Z).cross(along);
                let influence =
                    legs.each_ref().map(|leg| (0.55 + 1.1 * outward.x * leg.side).clamp(0.12, 1.0));
                chains.push(Chain { bones, outward, sideways, influence });
            }
        }
        let [flare, wind_x, wind_z] = controls;
        let root = bone("root");
        let mut hem = Self { root, hips, legs, chains, rest: Vec::new(), flare, wind: [wind_x, wind_z] };
        hem.rest = hem.chains.iter().map(|chain| hem.angles(chain, &rest)).collect();
        hem
    }

    /// Outward angles of the three bones (absolute) and the sideways angle.
    fn angles(&self, chain: &Chain, pose: &JointPose) -> [f32; 4] {
        let upright = pose.0[self.root].rotation * pose.0[self.hips].rotation;
        let hang = 0.75 * lean(upright.inverse() * Vec3::NEG_Y, chain.outward);
        let mut upper = hang;
        let mut lower = hang;
        let mut sideways = 0.4 * lean(upright.inverse() * Vec3::NEG_Y, chain.sideways);
        // The nearer leg first on both sides, so that a symmetric pose gives a symmetric coat.
        let order = if chain.outward.x > 0.0 { [0, 1] } else { [1, 0] };
        for (leg, influence) in order.map(|leg| (&self.legs[leg], chain.influence[leg])) {
            let thigh = pose.0[leg.bones[0]].rotation;
            let calf = thigh * pose.0[leg.bones[1]].rotation;
            let (thigh, calf) = (thigh * leg.along[0], calf * leg.along[1]);
            upper = soft_max(upper, 0.92 * influence * lean(thigh, chain.outward), Self::WIDTH);
            lower = soft_max(lower, 0.85 * influence * lean(calf, chain.outward), Self::WIDTH);
            sideways += 0.3 * influence * lean(thigh, chain.sideways);
        }
        let middle = soft_max(lower, 0.45 * upper, Self::WIDTH);
        let end = soft_max(lower * 0.9, 0.2 * upper, Self::WIDTH);
        [upper, middle, end, sideways]
    }
}

impl PoseConstraint for HemFollow {
    fn apply(&self, controls: &[f32], pose: &mut JointPose) {
        let flare = controls[self.flare];
        let wind = Vec3::new(controls[self.wind[0]], 0.0, controls[self.wind[1]]);
        for (chain, rest) in self.chains.iter().zip(&self.rest) {
            let mut angle = self.angles(chain, pose);
            for (angle, rest) in angle.iter_mut().zip(rest) {
                *angle -= rest;
            }
            let blown = wind.dot(chain.outward);
            let turns = [
                angle[0] + 0.26 * flare + 0.30 * blown,
                angle[1] - angle[0] + 0.10 * flare + 0.22 * blown,
                angle[2] - angle[1] + 0.06 * flare + 0.16 * blown,
            ];
            let sway = angle[3] + 0.2 * wind.dot(chain.sideways);
            for (place, (&bone, turn)) in chain.bones.iter().zip(turns).enumerate() {
                let joint = &mut pose.0[bone];
                let turn = Quat::from_rotation_x(turn);
                let sway = if place == 0 { Quat::from_rotation_z(sway) } else { Quat::IDENTITY };
                joint.rotation = (joint.rotation * sway * turn).normalize();
            }
        }
    }
}

/// A part of a leg that cloth must not enter: a cone with round ends.
struct Limb {
    bone: usize,
    ends: [Vec3; 2],
    radii: [f32; 2],
}

/// Pushes cloth out of the legs along its own outward direction. The depth is measured to smooth cones,
/// and the push grows smoothly from some distance on: `push += softplus(radius + gap − distance)`.
pub struct HemCollide {
    hips: usize,
    limbs: Vec<Limb>,
    /// Vertex, outward direction in the rest pose, share, gap between cloth and leg.
    cloth: Vec<(u32, Vec3, f32, f32)>,
}

impl HemCollide {
    const ROUNDS: usize = 3;
    const SOFTNESS: f32 = 1.2;

    /// `cloth`: vertex, outward direction, share 0 to 1, gap in cm.
    pub fn new(skeleton: &Skeleton, cloth: Vec<(u32, Vec3, f32, f32)>) -> Self {
        let bone = |name: String| skeleton.find(&name).expect("a bone of Rook's own skeleton");
        let mut limbs = Vec::new();
        for (side, sign) in [("l", 1.0), ("r", -1.0)] {
            let mirror = Vec3::new(sign, 1.0, 1.0);
            let thigh = [plan::HIP * mirror, plan::KNEE * mirror];
            limbs.push(Limb { bone: bone(format!("thigh_{side}")), ends: thigh, radii: [8.6, 7.0] });
            let boot_top = [plan::KNEE * mirror, plan::KNEE.lerp(plan::ANKLE, 0.75) * mirror];
            limbs.push(Limb { bone: bone(format!("calf_{side}")), ends: boot_top, radii: [7.4, 7.2] });
        }
        Self { hips: bone("hips".into()), limbs, cloth }
    }
}

impl Deformer for HemCollide {
    fn name(&self) -> &str {
        "hem collision"
    }

    fn deform(&self, frame: &Frame<'_>, vertices: &mut [Vec3], _scratch: &mut Scratch) {
        let hips = frame.matrices[self.hips];
        let mut posed = [[Vec3::ZERO; 2]; 4];
        for (ends, limb) in posed.iter_mut().zip(&self.limbs) {
            *ends = limb.ends.map(|end| frame.matrices[limb.bone].transform_point3(end));
        }
        for &(vertex, outward, share, gap) in &self.cloth {
            let outward = hips.transform_vector3(outward);
            let point = &mut vertices[vertex as usize];
            for _ in 0..Self::ROUNDS {
                let mut total = 0.0;
                for (ends, limb) in posed.iter().zip(&self.limbs) {
                    let along = ends[1] - ends[0];
                    let t = ((*point - ends[0]).dot(along) / along.length_squared()).clamp(0.0, 1.0);
                    let away = *point - (ends[0] + along * t);
                    let radius = limb.radii[0] + (limb.radii[1] - limb.radii[0]) * t + gap;
                    let depth = radius - away.length();
                    let push = 0.5 * (depth + (depth * depth + Self::SOFTNESS).sqrt());
                    total += push;
                }
                *point += outward * (total * share * 0.5);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_max_is_above_both_and_near_the_larger() {
        for (a, b) in [(0.0f32, 0.0), (1.0, -1.0), (-0.3, 0.4)] {
            let m = soft_max(a, b, 0.1);
            assert!(m >= a.max(b) && m <= a.max(b) + 0.051, "{a} {b} {m}");
        }
    }

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
