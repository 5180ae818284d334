//! The working memory with which a player turns controls into bones: one pose, or a block of a crowd on all threads.

use super::{Mechanism, MechanismGradient, MechanismSpace};
use crate::PoseError;
use crate::error::{check_count, check_finite};
use crate::player::{Loss, Play};
use crate::workers::Workers;
use std::sync::{Arc, Mutex, PoisonError};
use understudy_core::Affine3A;

/// Poses of a crowd whose bones are in memory at a time.
pub(crate) const CROWD_BLOCK: usize = 256;

/// A mechanism and its memory.
pub(crate) struct Poser {
    mechanism: Arc<Mechanism>,
    /// For every control that the twin sees beside the bones its place among all.
    places: Vec<usize>,
    /// One for each thread.
    spaces: Vec<Mutex<MechanismSpace>>,
    /// Of the poses at hand, `[B · J]`.
    bones: Vec<Affine3A>,
    /// `[B · E]`.
    extras: Vec<f32>,
    /// Bones of how many poses are known.
    posed: usize,
    gradient: Option<Box<GradientMemory>>,
}

/// Memory for the way back, made when it is first asked for.
struct GradientMemory {
    by_bones: Vec<Affine3A>,
    by_extras: Vec<f32>,
    mechanism: MechanismGradient,
}

impl Poser {
    /// `places`: of the controls that the twin sees beside the bones.
    pub fn new(mechanism: Arc<Mechanism>, places: Vec<usize>, tasks: usize) -> Self {
        let mut poser = Self {
            spaces: (0..tasks.max(1)).map(|_| Mutex::default()).collect(),
            bones: vec![Affine3A::IDENTITY; mechanism.bone_count()],
            extras: vec![0.0; places.len()],
            posed: 0,
            gradient: None,
            mechanism,
            places,
        };
        // What the memory of a pose is made of, is made now.
        let defaults = poser.mechanism.specs().defaults().0;
        for space in &mut poser.spaces {
            let space = space.get_mut().unwrap_or_else(PoisonError::into_inner);
            poser.mechanism.pose(&defaults, space, &mut poser.bones);
        }
        poser
    }

    /// Number of controls of a pose.
    pub fn control_count(&self) -> usize {
        self.mechanism.specs().len()
    }

    /// The bones of the first of the poses at hand, `[J]`; none before any was posed.
    pub fn bones(&self) -> &[Affine3A] {
        if self.posed == 0 { &[] } else { &self.bones[..self.mechanism.bone_count()] }
    }

    /// Knows of no pose any more.
    pub fn forget(&mut self) {
        self.posed = 0;
    }

    /// Bones and extra controls of one pose.
    pub fn pose(&mut self, controls: &[f32]) -> Result<(&[Affine3A], &[f32]), PoseError> {
        self.block(controls, 1, None)
    }

    /// The derivative of a loss by all controls, `[C]`, through the bones of the twin that `memory` plays.
    pub fn gradient(
        &mut self,
        controls: &[f32],
        memory: &mut dyn Play,
        loss: &mut Loss<'_>,
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        if !self.mechanism.has_gradient() {
            return Err(PoseError::Kind("this twin's mechanism follows a skirt, which has no gradient"));
        }
        check_count("derivatives by controls", by_controls.len(), self.control_count())?;
        self.pose(controls)?;
        let (joints, extra) = (self.mechanism.bone_count(), self.places.len());
        let own = self.gradient.get_or_insert_with(|| {
            Box::new(GradientMemory {
                by_bones: vec![Affine3A::ZERO; joints],
                by_extras: vec![0.0; extra],
                mechanism: MechanismGradient::default(),
            })
        });
        let (bones, extras) = (&self.bones[..joints], &self.extras[..extra]);
        memory.bone_gradient((bones, extras), loss, &mut own.by_bones, &mut own.by_extras)?;
        self.mechanism.backward(controls, &mut own.by_bones, &mut own.mechanism, by_controls);
        for (slope, place) in own.by_extras.iter().zip(&self.places) {
            by_controls[*place] += slope;
        }
        Ok(())
    }

    /// Bones and extra controls of some poses, [`CROWD_BLOCK`] at most.
    pub fn block(
        &mut self,
        controls: &[f32],
        poses: usize,
        workers: Option<&Workers>,
    ) -> Result<(&[Affine3A], &[f32]), PoseError> {
        let (width, joints, extra) = (self.control_count(), self.mechanism.bone_count(), self.places.len());
        check_count("controls of the pose", controls.len(), poses * width)?;
        check_finite("controls of the pose", controls.iter().map(|control| control.is_finite()))?;
        if poses > 1 && self.bones.len() < CROWD_BLOCK * joints {
            self.bones.resize(CROWD_BLOCK * joints, Affine3A::IDENTITY);
            self.extras.resize(CROWD_BLOCK * extra, 0.0);
        }
        self.posed = 0;
        let tasks = if workers.is_some() { self.spaces.len().min(poses) } else { 1 };
        let rows = poses.div_ceil(tasks.max(1));
        let (bones, mechanism) = (&mut self.bones[..poses * joints], &self.mechanism);
        let run = |space: &Mutex<MechanismSpace>, controls: &[f32], bones: &mut [Affine3A]| {
            let mut space = space.lock().unwrap_or_else(PoisonError::into_inner);
            for (pose, bones) in bones.chunks_exact_mut(joints.max(1)).enumerate() {
                mechanism.pose(&controls[pose * width..][..width], &mut space, bones);
            }
        };
        match workers {
            Some(workers) if tasks > 1 => {
                let shares =
                    BoneShares { bones: bones.as_mut_ptr(), each: rows * joints, count: bones.len() };
                workers.run(tasks, &|task| {
                    let first = (task * rows).min(poses);
                    let end = (first + rows).min(poses);
                    // SAFETY: every task has a share of its own, and all are borrowed until the tasks have ended.
                    let own = unsafe { shares.of(task) };
                    run(&self.spaces[task], &controls[first * width..end * width], own);
                });
            }
            _ => run(&self.spaces[0], controls, bones),
        }
        for pose in 0..poses {
            let values = &controls[pose * width..][..width];
            let slots = self.extras[pose * extra..][..extra].iter_mut().zip(&self.places);
            slots.for_each(|(slot, place)| *slot = values[*place]);
        }
        self.posed = poses;
        Ok((&self.bones[..poses * joints], &self.extras[..poses * extra]))
    }
}

/// One array in shares that follow each other.
struct BoneShares {
    bones: *mut Affine3A,
    each: usize,
    count: usize,
}

// SAFETY: see `of`: no two tasks have a share in common.
unsafe impl Sync for BoneShares {}

impl BoneShares {
    /// # Safety
    /// No task asks for another's share, and the array outlives what is given.
    #[allow(clippy::mut_from_ref)] // The shares do not overlap.
    unsafe fn of(&self, task: usize) -> &mut [Affine3A] {
        let first = (task * self.each).min(self.count);
        let end = (first + self.each).min(self.count);
        // SAFETY: inside the array; the rest is promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.bones.add(first), end - first) }
    }
}
