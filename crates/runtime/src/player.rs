//! Playing a twin. A player owns its twin and its working memory: memory of one twin cannot meet another, whatever
//! safe code does. There is no way to name it from outside, to lend it or to exchange it:
//!
//! ```compile_fail
//! use understudy_runtime::body::Workspace;
//! ```

use crate::error::check_count;
use crate::workers::Workers;
use crate::{PoseError, Twin};
use understudy_core::{Affine3A, Vec3};

#[cfg(feature = "body")]
use crate::body::{self, BodyTwin};
#[cfg(feature = "face")]
use crate::face::{self, FaceTwin};
#[cfg(any(feature = "body", feature = "face"))]
use std::sync::Arc;

/// One pose, or several one after another in every array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pose<'a> {
    /// For bodies.
    Bones {
        /// World transforms, `[J]`, in the order of the header.
        bones: &'a [Affine3A],
        /// Values of the header's controls, which matter beside the bones.
        extras: &'a [f32],
    },
    /// For faces: values of all of the rig's controls, in the order of the header.
    Controls(&'a [f32]),
}

/// A twin with the memory to play it. Nothing is allocated per pose; memory for crowds and for gradients is made when
/// they are first asked for.
pub struct Player {
    workers: Option<Workers>,
    memory: Memory,
    twin: Twin,
}

/// A twin and what belongs to it alone.
enum Memory {
    #[cfg(feature = "body")]
    Body { twin: Arc<BodyTwin>, one: Box<body::Workspace>, crowd: Option<Box<body::Workspace>> },
    #[cfg(feature = "face")]
    Face { twin: Arc<FaceTwin>, one: Box<face::Workspace>, gradient: Option<Box<Gradient>> },
}

#[cfg(feature = "face")]
struct Gradient {
    space: face::GradientSpace,
    vertices: Vec<Vec3>,
    by_vertices: Vec<Vec3>,
}

const WANTS_BONES: PoseError = PoseError::Kind("this twin is posed by bones, not by controls alone");
const WANTS_CONTROLS: PoseError = PoseError::Kind("this twin is posed by controls, not by bones");
const NO_GRADIENT: PoseError = PoseError::Kind("twins of this kind have no gradient");

impl Player {
    pub(crate) fn new(twin: Twin, threads: usize) -> Self {
        let workers = (threads > 1).then(|| Workers::new(threads)).and_then(Result::ok);
        let tasks = workers.as_ref().map_or(1, Workers::threads);
        let memory = match &twin {
            #[cfg(feature = "body")]
            Twin::Body(twin) => Memory::Body {
                one: Box::new(body::Workspace::new(twin, tasks)),
                crowd: None,
                twin: Arc::clone(twin),
            },
            #[cfg(feature = "face")]
            Twin::Face(twin) => Memory::Face {
                one: Box::new(face::Workspace::new(twin, tasks)),
                gradient: None,
                twin: Arc::clone(twin),
            },
        };
        Self { workers, memory, twin }
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
        let workers = self.workers.as_ref();
        match (&mut self.memory, pose) {
            #[cfg(feature = "body")]
            (Memory::Body { twin, one, .. }, Pose::Bones { bones, extras }) => {
                twin.evaluate(bones, extras, one, workers, out)
            }
            #[cfg(feature = "body")]
            (Memory::Body { .. }, Pose::Controls(_)) => Err(WANTS_BONES),
            #[cfg(feature = "face")]
            (Memory::Face { twin, one, .. }, Pose::Controls(controls)) => {
                twin.evaluate(controls, one, workers, out)
            }
            #[cfg(feature = "face")]
            (Memory::Face { .. }, Pose::Bones { .. }) => Err(WANTS_CONTROLS),
        }
    }

    /// Moves the vertices for many poses, which lie one after another in every array: `bones` `[B · J]`, `extras` and
    /// `controls` `[B · C]`, `out` `[B · V]`, best a [`VertexBuffer`](crate::VertexBuffer).
    pub fn crowd(&mut self, poses: Pose<'_>, out: &mut [Vec3]) -> Result<(), PoseError> {
        let workers = self.workers.as_ref();
        match (&mut self.memory, poses) {
            #[cfg(feature = "body")]
            (Memory::Body { twin, crowd, .. }, Pose::Bones { bones, extras }) => {
                let tasks = workers.map_or(1, Workers::threads);
                let make = || Box::new(body::Workspace::for_crowd(twin, tasks));
                twin.evaluate_crowd(bones, extras, crowd.get_or_insert_with(make), workers, out)
            }
            #[cfg(feature = "body")]
            (Memory::Body { .. }, Pose::Controls(_)) => Err(WANTS_BONES),
            #[cfg(feature = "face")]
            (Memory::Face { twin, one, .. }, Pose::Controls(controls)) => {
                let (width, height) = (twin.control_count(), twin.vertex_count());
                let poses = out.len().checked_div(height).unwrap_or(0);
                check_count("vertices of the crowd", out.len(), poses * height)?;
                check_count("controls of the crowd", controls.len(), poses * width)?;
                for (pose, out) in out.chunks_exact_mut(height.max(1)).enumerate() {
                    twin.evaluate(&controls[pose * width..(pose + 1) * width], one, workers, out)?;
                }
                Ok(())
            }
            #[cfg(feature = "face")]
            (Memory::Face { .. }, Pose::Bones { .. }) => Err(WANTS_CONTROLS),
        }
    }

    /// Unit vertex normals of the pose that was played last, whose `vertices` are given: from the maps where they carry
    /// normals, else from the faces around each vertex; zero where there are none.
    pub fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), PoseError> {
        match &self.memory {
            #[cfg(feature = "body")]
            Memory::Body { twin, .. } => {
                check_count("vertices", vertices.len(), twin.vertex_count())?;
                check_count("normals", out.len(), twin.vertex_count())?;
                understudy_core::normals::vertex_normals_into(twin.faces(), vertices, out);
                Ok(())
            }
            #[cfg(feature = "face")]
            Memory::Face { twin, one, .. } => twin.normals(one, vertices, out),
        }
    }

    /// The derivative of a loss by the controls, `∂L/∂p` `[C]`. `loss` is given the vertices of the pose and writes
    /// `∂L/∂V` `[V]`; what it returns (the loss, say) comes back. Faces have one, bodies do not.
    pub fn gradient<L>(
        &mut self,
        pose: Pose<'_>,
        loss: impl FnOnce(&[Vec3], &mut [Vec3]) -> L,
        by_controls: &mut [f32],
    ) -> Result<L, PoseError> {
        match (&mut self.memory, pose) {
            #[cfg(feature = "body")]
            (Memory::Body { .. }, _) => {
                let _ = (loss, by_controls);
                Err(NO_GRADIENT)
            }
            #[cfg(feature = "face")]
            (Memory::Face { twin, gradient, .. }, Pose::Controls(controls)) => {
                let make = || {
                    Box::new(Gradient {
                        space: face::GradientSpace::new(twin),
                        vertices: vec![Vec3::ZERO; twin.vertex_count()],
                        by_vertices: vec![Vec3::ZERO; twin.vertex_count()],
                    })
                };
                let Gradient { space, vertices, by_vertices } = &mut **gradient.get_or_insert_with(make);
                twin.forward(controls, space, vertices)?;
                by_vertices.fill(Vec3::ZERO);
                let value = loss(vertices, by_vertices);
                twin.backward(space, by_vertices, by_controls)?;
                Ok(value)
            }
            #[cfg(feature = "face")]
            (Memory::Face { .. }, Pose::Bones { .. }) => Err(WANTS_CONTROLS),
        }
    }
}
