//! The coat's skirt: chains of bones that both legs push and gravity pulls ([`hem_follow`]), and
//! [`Collide`], which keeps cloth outside of the limbs under it.

use super::plan;
use understudy_core::mechanism::{SkirtChain, SkirtFollow, SkirtLeg};
use understudy_core::{Skeleton, Vec3};
use understudy_rigs::{Deformer, Frame, Scratch};

/// The constraint that swings the hem; `controls` are the indices of flare, wind sideways and wind forward.
pub fn hem_follow(skeleton: &Skeleton, controls: [usize; 3]) -> SkirtFollow {
    let bone = |name: &str| skeleton.find(name).expect("a bone of Rook's own skeleton");
    let hips = bone("hips");
    let rest = skeleton.rest_pose();
    let sides = [1.0f32, -1.0];
    let leg = |suffix: &str, side: f32| {
        let mirror = Vec3::new(side, 1.0, 1.0);
        let bones = [bone(&format!("thigh_{suffix}")), bone(&format!("calf_{suffix}"))];
        let thigh = rest.0[bones[0]].rotation;
        let calf = thigh * rest.0[bones[1]].rotation;
        let upper = ((plan::KNEE - plan::HIP) * mirror).normalize();
        let lower = ((plan::ANKLE - plan::KNEE) * mirror).normalize();
        let along = [thigh.inverse() * upper, calf.inverse() * lower];
        SkirtLeg { bones, along, rest: [upper, lower] }
    };
    let legs = [leg("l", sides[0]), leg("r", sides[1])];
    let mut chains = Vec::new();
    for (leg, (side, sign)) in ["l", "r"].into_iter().zip(sides).enumerate() {
        for (stem, _) in plan::HEM {
            let bones = [1, 2, 3].map(|joint| bone(&format!("{stem}_{side}_{joint}")));
            let frame = rest.0[bones[0]].rotation;
            let place = rest.0[bones[0]].translation;
            let outward = Vec3::new(place.x, 0.0, place.z).normalize();
            // On the right the bone's y axis runs against the chain (mirrored frames).
            let along = frame * (Vec3::Y * sign);
            let axes = [frame * Vec3::X, frame * Vec3::Z];
            let influence = sides.map(|side| (0.55 + 1.1 * outward.x * side).clamp(0.1, 1.0));
            let hip = rest.0[legs[leg].bones[0]].translation;
            let sideways = axes[1].cross(along);
            let sideways = Vec3::new(sideways.x, 0.0, sideways.z).normalize();
            chains.push(SkirtChain { bones, outward, axes, sideways, hip, influence });
        }
    }
    let [flare, wind_x, wind_z] = controls;
    SkirtFollow { root: bone("root"), hips, legs, chains, flare, wind: [wind_x, wind_z] }
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
    use understudy_core::Quat;
    use understudy_core::mechanism::Constraint;

    #[test]
    fn a_raised_thigh_lifts_the_front_of_its_side_and_the_rest_pose_stays() {
        let skeleton = super::super::bones::skeleton().expect("a tree");
        let hem = Constraint::Skirt(hem_follow(&skeleton, [0, 1, 2]));
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
