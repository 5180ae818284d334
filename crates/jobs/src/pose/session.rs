//! Hands, feet and torso of an open rig, moved pose by pose: what the command does for its files, for programs that drag.

use super::Reached;
use crate::JobError;
use serde::Serialize;
use std::sync::Arc;
use understudy_core::{Affine3A, ControlSpecs, Controls, JointPose, Skeleton, Vec3};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::ik::{Anchor, Goal, Handles, Outcome, Place, Poser};

/// The handles of a rig.
pub struct HandleSession {
    rig: Arc<dyn Rig>,
    handles: Handles,
}

/// A handle, for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandleName {
    /// `hand_L`.
    pub name: String,
    /// Its bone in the rig's skeleton.
    pub bone: usize,
    /// In the rest pose, cm.
    pub rest: [f32; 3],
}

impl HandleSession {
    /// Finds hands, feet and torso by the names of the bones; nothing where there are none that its controls move.
    pub fn open(rig: Arc<dyn Rig>) -> Option<Self> {
        let skeleton = rig.skeleton()?;
        let bones = skeleton.bones().iter().map(|bone| (bone.name.as_str(), bone.parent));
        let handles = Handles::find(bones).moved_by(rig.specs(), skeleton);
        (!handles.names().is_empty()).then_some(Self { rig, handles })
    }

    /// What can be moved.
    pub fn names(&self) -> Vec<HandleName> {
        let skeleton = self.skeleton();
        let name = |name: &&str| {
            let bone = self.handles.bone(name)?;
            let rest = skeleton.rest_global()[bone].translation.to_array();
            Some(HandleName { name: (*name).into(), bone, rest })
        };
        self.handles.names().iter().filter_map(name).collect()
    }

    fn skeleton(&self) -> &Skeleton {
        self.rig.skeleton().expect("handles were found among its bones")
    }

    /// Moves handles from a pose: those of `reach` to their places, while those of `lock` stay where they stand in it. Gives
    /// the controls, and what became of every handle that was named.
    pub fn reach(
        &self,
        controls: &[f32],
        reach: &[(String, Vec3)],
        lock: &[String],
        soft: f32,
    ) -> Result<(Vec<f32>, Vec<Reached>), JobError> {
        let specs = self.rig.specs();
        let mut controls = Controls(controls.to_vec());
        specs.check(&controls).map_err(|error| JobError::setting("pose", error))?;
        let known = self.handles.names();
        for name in reach.iter().map(|(name, _)| name).chain(lock) {
            if !known.contains(&name.as_str()) {
                return Err(super::unknown("handle", name, self.rig.name(), &known));
            }
        }
        let mut goals = standing(self.rig.as_ref(), &self.handles, &controls.0, lock)?;
        let place =
            |(name, at): &(String, Vec3)| Goal { handle: name.clone(), place: Place::At(*at), pole: None };
        // What is dragged is not locked at the same time.
        goals.retain(|goal| !reach.iter().any(|(name, _)| *name == goal.handle));
        goals.extend(reach.iter().map(place));
        let outcomes = solve(self.rig.as_ref(), &self.handles, specs, soft, &goals, &mut controls.0)?;
        Ok((controls.0, outcomes.into_iter().map(Reached::from).collect()))
    }
}

/// World transforms of a rig's bones: by its mechanism alone where it has one, which costs next to nothing.
fn placer(rig: &dyn Rig) -> impl FnMut(&[f32], &mut Vec<Affine3A>) -> Result<(), JobError> + '_ {
    let (mut pose, mut joints) = (RigPose::default(), JointPose::default());
    move |controls, world| {
        match rig.mechanism() {
            Some(mechanism) => mechanism.evaluate(controls, &mut joints, &mut pose.global),
            None => {
                rig.evaluate(&Controls(controls.to_vec()), &mut pose).map_err(JobError::rig(rig.name()))?;
            }
        }
        world.clone_from(&pose.global.0);
        Ok(())
    }
}

/// Where a handle stands; a foot at least at the height at which it rests: the ground.
pub(super) fn anchor(
    rig: &dyn Rig,
    handles: &Handles,
    controls: &[f32],
    name: &str,
) -> Result<Anchor, JobError> {
    let mut world = Vec::new();
    placer(rig)(controls, &mut world)?;
    let bone = handles.bone(name).expect("checked before");
    let rest = |bone: usize| rig.skeleton().map(|skeleton| skeleton.rest_global()[bone].translation.y);
    Ok(Anchor::of(world[bone], name.starts_with("foot").then(|| rest(bone)).flatten()))
}

fn standing(
    rig: &dyn Rig,
    handles: &Handles,
    controls: &[f32],
    lock: &[String],
) -> Result<Vec<Goal>, JobError> {
    let goal = |name: &String| {
        let place = Place::Locked(anchor(rig, handles, controls, name)?);
        Ok(Goal { handle: name.clone(), place, pole: None })
    };
    lock.iter().map(goal).collect()
}

/// Moves handles of a rig within the ranges of `specs`.
pub(super) fn solve(
    rig: &dyn Rig,
    handles: &Handles,
    specs: &ControlSpecs,
    soft: f32,
    goals: &[Goal],
    controls: &mut Vec<f32>,
) -> Result<Vec<Outcome>, JobError> {
    let skeleton = rig.skeleton().expect("handles were found among its bones");
    let mut poser = Poser::new(specs, skeleton, handles);
    poser.soft = soft;
    poser.solve(goals, controls, &mut placer(rig))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Silent, rigs};

    #[test]
    fn a_session_drags_as_the_command_does_and_names_what_is_wrong() {
        let rig: Arc<dyn Rig> = Arc::from(rigs::open("rook", &Silent).expect("a rig").rig);
        let session = HandleSession::open(Arc::clone(&rig)).expect("a body");
        let names: Vec<String> = session.names().into_iter().map(|handle| handle.name).collect();
        assert_eq!(names.len(), 5, "{names:?}");
        let start = rig.specs().defaults().0;
        let reach = [("torso".to_owned(), Vec3::new(0.0, 88.0, 2.0))];
        let lock = ["foot_L".to_owned(), "foot_R".to_owned()];
        let (controls, reached) = session.reach(&start, &reach, &lock, 0.0).expect("a pose");
        assert!(reached.len() == 3 && reached.iter().all(|r| r.distance_mm < 0.1), "{reached:?}");
        assert_ne!(controls, start);
        // From the first pose again: nothing is remembered.
        assert_eq!(session.reach(&start, &reach, &lock, 0.0).expect("a pose").0, controls);
        let refused = |start: &[f32], name: &str, at: Vec3| {
            let error = session.reach(start, &[(name.to_owned(), at)], &[], 0.0).expect_err("refused");
            assert!(error.is_bad_input());
            error.to_string()
        };
        assert!(refused(&start, "hand", Vec3::ZERO).contains("no such handle"));
        assert!(refused(&start, "hand_L", Vec3::splat(f32::NAN)).contains("finite"));
        assert!(refused(&start[1..], "hand_L", Vec3::ZERO).contains("controls"));
        let head: Arc<dyn Rig> = Arc::from(rigs::open("mira", &Silent).expect("a rig").rig);
        // Her skeleton has a root, but no control carries it.
        let limbs = HandleSession::open(head).map(|session| session.names());
        assert_eq!(limbs, None);
    }
}
