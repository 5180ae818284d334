//! Hands, feet and torso as handles of a skeleton. Which bones they are is in `names.rs`; [`PlacedBones`] moves the world
//! transforms that a body twin takes, [`Poser`] (in `poser.rs`) the controls of a rig with its limits.

mod names;
mod poser;

pub use names::{Handles, LimbBones, Spelling};
pub use poser::{Anchor, Goal, Outcome, Place, Poser};

use super::two_bone::{Bend, LimbError, LimbPose, TwoBone};
use understudy_core::{Affine3A, Quat, Vec3};

/// World transforms of all bones, which handles move: the input of a body twin. Bones below a limb's follow rigidly, as in
/// the paper; twist and helper bones of a rig are its own affair.
#[derive(Debug, Clone)]
pub struct PlacedBones<'a> {
    parents: &'a [Option<usize>],
    /// `[J]` cm.
    pub world: Vec<Affine3A>,
}

impl<'a> PlacedBones<'a> {
    /// Bones as they stand.
    ///
    /// # Panics
    /// When there is not one parent per bone.
    pub fn new(parents: &'a [Option<usize>], world: Vec<Affine3A>) -> Self {
        assert_eq!(parents.len(), world.len(), "one parent per bone");
        Self { parents, world }
    }

    fn place(&self, bone: usize) -> Vec3 {
        self.world[bone].translation.into()
    }

    /// Moves everything: the torso's handle.
    pub fn offset(&mut self, by: Vec3) {
        self.world.iter_mut().for_each(|bone| bone.translation += by.to_vec3a());
    }

    /// Puts the end of a limb on a target. The end keeps its orientation where `keep` says so.
    pub fn reach(
        &mut self,
        limb: &LimbBones,
        target: Vec3,
        bend: Bend,
        soft: f32,
        keep: bool,
    ) -> Result<LimbPose, LimbError> {
        let [upper, lower, end] = limb.bones;
        let (origin, middle, tip) = (self.place(upper), self.place(lower), self.place(end));
        let bones = TwoBone::new(origin.distance(middle), middle.distance(tip))?.with_soft_reach(soft)?;
        let pose = bones.solve(origin, target, bend)?;
        let held = self.world[end];
        self.turn(upper, arc(middle - origin, pose.middle - origin));
        let (middle, tip) = (self.place(lower), self.place(end));
        self.turn(lower, arc(tip - middle, pose.end - middle));
        if keep {
            let place = self.world[end].translation;
            let back = held.matrix3 * self.world[end].matrix3.inverse();
            if back.is_finite() {
                self.carry(end, Affine3A { matrix3: back, translation: place - back * place });
            }
        }
        Ok(pose)
    }

    fn turn(&mut self, bone: usize, by: Quat) {
        let about = self.world[bone].translation;
        let turn = Affine3A::from_quat(by);
        self.carry(bone, Affine3A { matrix3: turn.matrix3, translation: about - turn.matrix3 * about });
    }

    /// Moves a bone and all below it.
    fn carry(&mut self, bone: usize, by: Affine3A) {
        for other in 0..self.world.len() {
            if is_below(self.parents, other, bone) {
                self.world[other] = by * self.world[other];
            }
        }
    }
}

/// Whether `bone` is `top` or hangs below it.
pub(crate) fn is_below(parents: &[Option<usize>], bone: usize, top: usize) -> bool {
    let mut at = Some(bone);
    // A cycle is no tree of ours; it ends here all the same.
    for _ in 0..=parents.len() {
        match at {
            Some(bone) if bone == top => return true,
            Some(bone) => at = parents[bone],
            None => return false,
        }
    }
    false
}

/// The shortest turn from one direction to another; none where one of them is no direction.
pub(crate) fn arc(from: Vec3, to: Vec3) -> Quat {
    match (from.try_normalize(), to.try_normalize()) {
        (Some(from), Some(to)) => Quat::from_rotation_arc(from, to),
        _ => Quat::IDENTITY,
    }
}

#[cfg(test)]
mod tests;
