//! Playing a twin. A player owns its twin and its working memory: memory of one twin cannot meet another, whatever
//! safe code does. There is no way to name it from outside, to lend it or to exchange it:
//!
//! ```compile_fail
//! use understudy_runtime::body::Workspace;
//! ```

use crate::error::check_count;
use crate::mechanism::Mechanism;
use crate::mechanism::poser::{CROWD_BLOCK, Poser};
use crate::workers::Workers;
use crate::{PoseError, Twin};
use std::sync::Arc;
use understudy_core::{Affine3A, Vec3};

/// One pose, or several one after another in every array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pose<'a> {
    /// For twins with bones.
    Bones {
        /// World transforms, `[J]`, in the order of the header.
        bones: &'a [Affine3A],
        /// Values of the header's controls, which matter beside the bones.
        extras: &'a [f32],
    },
    /// Values of all of the rig's controls, in the order of
    /// [`Twin::posing_controls`](crate::Twin::posing_controls). A twin with bones takes them where it has a
    /// [`Mechanism`](crate::Mechanism).
    Controls(&'a [f32]),
}

/// A twin with the memory to play it. Nothing is allocated per pose; memory for crowds and for gradients is made when
/// they are first asked for.
pub struct Player {
    workers: Option<Workers>,
    memory: Box<dyn Play>,
    /// From controls to bones.
    poser: Option<Box<Poser>>,
    twin: Twin,
}

/// What a loss does: it is given vertices and writes its derivatives by them.
pub(crate) type Loss<'a> = dyn FnMut(&[Vec3], &mut [Vec3]) + 'a;

/// A twin and the memory that belongs to it alone.
pub(crate) trait Play: Send + Sync {
    fn pose(&mut self, pose: Pose<'_>, workers: Option<&Workers>, out: &mut [Vec3]) -> Result<(), PoseError>;
    fn crowd(
        &mut self,
        poses: Pose<'_>,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError>;
    fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), PoseError>;
    fn gradient(
        &mut self,
        _pose: Pose<'_>,
        _loss: &mut Loss<'_>,
        _by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        Err(NO_GRADIENT)
    }
    /// Derivatives by the numbers of the bones, `[J]`, and by the controls beside them.
    fn bone_gradient(
        &mut self,
        _pose: (&[Affine3A], &[f32]),
        _loss: &mut Loss<'_>,
        _by_bones: &mut [Affine3A],
        _by_extras: &mut [f32],
    ) -> Result<(), PoseError> {
        Err(NO_GRADIENT)
    }
    /// Of the first vertices: where they are, and their derivatives, three rows each.
    fn jacobian(
        &mut self,
        pose: Pose<'_>,
        vertices: &mut [Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        let width = by_controls.len() / (3 * vertices.len()).max(1);
        for (row, by_controls) in by_controls.chunks_exact_mut(width.max(1)).enumerate() {
            let mut one = |places: &[Vec3], slopes: &mut [Vec3]| {
                vertices.copy_from_slice(&places[..vertices.len()]);
                slopes[row / 3][row % 3] = 1.0;
            };
            self.gradient(pose, &mut one, by_controls)?;
        }
        Ok(())
    }
}

const NO_GRADIENT: PoseError = PoseError::Kind("twins of this kind have no gradient");

/// What a twin with bones says of controls alone.
#[cfg(any(feature = "body", feature = "diff"))]
pub(crate) const WANTS_BONES: PoseError =
    PoseError::Kind("this twin has no mechanism: it is posed by bones, not by controls alone");
/// What a twin without mechanism says of its bones.
const NO_MECHANISM: PoseError = PoseError::Kind("this twin has no mechanism that gives its bones");
/// What a twin with controls says of bones.
#[cfg(any(feature = "diff", feature = "face", feature = "skin"))]
pub(crate) const WANTS_CONTROLS: PoseError = PoseError::Kind("this twin is posed by controls, not by bones");

impl Player {
    pub(crate) fn new(
        twin: Twin,
        threads: usize,
        mechanism: Option<&Arc<Mechanism>>,
        memory: impl FnOnce(usize) -> Box<dyn Play>,
    ) -> Self {
        let workers = (threads > 1).then(|| Workers::new(threads)).and_then(Result::ok);
        let tasks = workers.as_ref().map_or(1, Workers::threads);
        let poser = mechanism.map(|mechanism| {
            // It was checked to know them all.
            let places = twin.header().inputs.controls.iter();
            let places = places.filter_map(|spec| mechanism.specs().find(&spec.name)).collect();
            Box::new(Poser::new(Arc::clone(mechanism), places, tasks))
        });
        Self { workers, memory: memory(tasks), poser, twin }
    }

    /// What it plays.
    pub fn twin(&self) -> &Twin {
        &self.twin
    }

    /// Threads in all, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.as_ref().map_or(1, Workers::threads)
    }

    /// Moves the vertices for one pose. `out`: `[V]` cm.
    pub fn pose(&mut self, pose: Pose<'_>, out: &mut [Vec3]) -> Result<(), PoseError> {
        match (&mut self.poser, pose) {
            (Some(poser), Pose::Controls(controls)) => {
                let (bones, extras) = poser.pose(controls)?;
                self.memory.pose(Pose::Bones { bones, extras }, self.workers.as_ref(), out)
            }
            (_, pose) => self.memory.pose(pose, self.workers.as_ref(), out),
        }
    }

    /// World transforms of the bones that controls give, `[J]` cm, without the vertices.
    pub fn pose_bones(&mut self, controls: &[f32]) -> Result<&[Affine3A], PoseError> {
        let poser = self.poser.as_mut().ok_or(NO_MECHANISM)?;
        poser.pose(controls).map(|(bones, _)| bones)
    }

    /// World transforms of the bones of the pose that was last played by controls, `[J]` cm; empty before the first, after
    /// a crowd, and of twins without a [`Mechanism`].
    pub fn bones(&self) -> &[Affine3A] {
        self.poser.as_ref().map_or(&[], |poser| poser.bones())
    }

    /// Moves the vertices for many poses, which lie one after another in every array: `bones` `[B · J]`, `extras` and
    /// `controls` `[B · C]`, `out` `[B · V]`, best a [`VertexBuffer`](crate::VertexBuffer).
    pub fn crowd(&mut self, poses: Pose<'_>, out: &mut [Vec3]) -> Result<(), PoseError> {
        let (Some(poser), Pose::Controls(controls)) = (&mut self.poser, poses) else {
            return self.memory.crowd(poses, self.workers.as_ref(), out);
        };
        let (vertices, width, workers) =
            (self.twin.vertex_count(), poser.control_count(), self.workers.as_ref());
        let count = out.len().checked_div(vertices).unwrap_or(0);
        check_count("vertices of the crowd", out.len(), count * vertices)?;
        check_count("controls of the crowd", controls.len(), count * width)?;
        for first in (0..count).step_by(CROWD_BLOCK) {
            let end = count.min(first + CROWD_BLOCK);
            let (bones, extras) = poser.block(&controls[first * width..end * width], end - first, workers)?;
            let out = &mut out[first * vertices..end * vertices];
            self.memory.crowd(Pose::Bones { bones, extras }, workers, out)?;
        }
        poser.forget();
        Ok(())
    }

    /// Unit vertex normals of the pose that was played last, whose `vertices` are given: from the maps where they carry
    /// normals, else from the faces around each vertex; zero where there are none.
    pub fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), PoseError> {
        self.memory.normals(vertices, out)
    }

    /// The derivative of a loss by the controls, `∂L/∂p` `[C]`. `loss` is given the vertices of the pose and writes
    /// `∂L/∂V` `[V]`; what it returns (the loss, say) comes back. Twins that are posed by controls have one; of a
    /// differential twin with bones it goes through its mechanism where the pose is of controls (but not through skirts),
    /// else it is the derivative by the controls beside the bones. Bodies have none.
    pub fn gradient<L>(
        &mut self,
        pose: Pose<'_>,
        loss: impl FnOnce(&[Vec3], &mut [Vec3]) -> L,
        by_controls: &mut [f32],
    ) -> Result<L, PoseError> {
        let (mut loss, mut value) = (Some(loss), None);
        let mut once = |vertices: &[Vec3], by_vertices: &mut [Vec3]| {
            value = loss.take().map(|loss| loss(vertices, by_vertices));
        };
        match (&mut self.poser, pose) {
            (Some(poser), Pose::Controls(controls)) => {
                poser.gradient(controls, &mut *self.memory, &mut once, by_controls)?;
            }
            (_, pose) => self.memory.gradient(pose, &mut once, by_controls)?,
        }
        Ok(value.expect("a kind that has a gradient asks for the loss once"))
    }

    /// The first vertices of the pose, as many as `vertices` holds, and their derivatives by the controls, `∂v/∂p`: rows
    /// x, y, z of the first vertex, then of the next, `[3 n × C]`. Meant for few vertices: see [`Twin::of_vertices`].
    pub fn jacobian(
        &mut self,
        pose: Pose<'_>,
        vertices: &mut [Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        let most = self.twin.vertex_count();
        if vertices.len() > most {
            return Err(PoseError::Count { what: "vertices", got: vertices.len(), want: most });
        }
        let want = 3 * vertices.len() * self.twin.header().inputs.controls.len();
        crate::error::check_count("derivatives by controls", by_controls.len(), want)?;
        self.memory.jacobian(pose, vertices, by_controls)
    }
}
