//! What the run time asks of a differential twin.

use super::evaluate::Workspace;
use super::gradient::GradientSpace;
use super::{DiffTwin, file};
use crate::error::check_count;
use crate::mechanism::{Mechanism, file as section};
use crate::player::{Loss, Play, WANTS_BONES, WANTS_CONTROLS};
use crate::twin::Kind;
use crate::workers::Workers;
use crate::{Header, Pose, PoseError, Precision, TwinError};
use std::sync::Arc;
use understudy_core::{Affine3A, Face, Vec3};

impl Kind for DiffTwin {
    fn method(&self) -> &'static str {
        file::METHOD
    }

    fn header(&self) -> &Header {
        self.header()
    }

    fn vertex_count(&self) -> usize {
        self.vertex_count()
    }

    fn faces(&self) -> &[Face] {
        &self.faces
    }

    fn precision(&self) -> Precision {
        self.precision()
    }

    fn multiply_adds(&self) -> usize {
        self.multiply_adds()
    }

    fn network_bytes(&self) -> usize {
        self.network_bytes()
    }

    fn rest_bones(&self) -> &[Affine3A] {
        self.rest_bones()
    }

    fn mechanism(&self) -> Option<&Arc<Mechanism>> {
        self.mechanism.as_ref()
    }

    fn to_bytes(&self) -> Result<Vec<u8>, TwinError> {
        file::with_section(&self.parts(), self.precision(), section::write(self.mechanism.as_deref())?)
    }

    fn play(self: Arc<Self>, tasks: usize) -> Box<dyn Play> {
        let one = Workspace::new(&self, tasks);
        Box::new(DiffPlay { one, crowd: None, gradient: None, tasks, twin: self })
    }
}

/// A differential twin with its memory.
struct DiffPlay {
    twin: Arc<DiffTwin>,
    tasks: usize,
    one: Workspace,
    crowd: Option<Workspace>,
    gradient: Option<Box<GradientSpace>>,
}

impl DiffPlay {
    /// Bones and controls of a pose, where it is of the twin's kind.
    fn inputs<'a>(&self, pose: Pose<'a>) -> Result<(&'a [Affine3A], &'a [f32]), PoseError> {
        match (pose, self.twin.skin.is_some()) {
            (Pose::Bones { bones, extras }, true) => Ok((bones, extras)),
            (Pose::Controls(controls), false) => Ok((&[], controls)),
            (Pose::Controls(_), true) => Err(WANTS_BONES),
            (Pose::Bones { .. }, false) => Err(WANTS_CONTROLS),
        }
    }
}

impl Play for DiffPlay {
    fn pose(&mut self, pose: Pose<'_>, workers: Option<&Workers>, out: &mut [Vec3]) -> Result<(), PoseError> {
        let (bones, controls) = self.inputs(pose)?;
        self.twin.evaluate(bones, controls, &mut self.one, workers, out)
    }

    fn crowd(
        &mut self,
        poses: Pose<'_>,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        let (bones, controls) = self.inputs(poses)?;
        let crowd = self.crowd.get_or_insert_with(|| Workspace::for_crowd(&self.twin, self.tasks));
        self.twin.evaluate(bones, controls, crowd, workers, out)
    }

    fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), PoseError> {
        check_count("vertices", vertices.len(), self.twin.vertex_count())?;
        check_count("normals", out.len(), self.twin.vertex_count())?;
        understudy_core::normals::vertex_normals_into(&self.twin.faces, vertices, out);
        Ok(())
    }

    fn gradient(
        &mut self,
        pose: Pose<'_>,
        loss: &mut Loss<'_>,
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        let (bones, controls) = self.inputs(pose)?;
        let space = self.gradient.get_or_insert_with(|| Box::new(GradientSpace::new(&self.twin)));
        self.twin.gradient(bones, controls, space, loss, (None, by_controls))
    }

    fn jacobian(
        &mut self,
        pose: Pose<'_>,
        vertices: &mut [Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        let (bones, controls) = self.inputs(pose)?;
        let space = self.gradient.get_or_insert_with(|| Box::new(GradientSpace::new(&self.twin)));
        self.twin.jacobian(bones, controls, space, vertices, by_controls)
    }

    fn bone_gradient(
        &mut self,
        (bones, extras): (&[Affine3A], &[f32]),
        loss: &mut Loss<'_>,
        by_bones: &mut [Affine3A],
        by_extras: &mut [f32],
    ) -> Result<(), PoseError> {
        let space = self.gradient.get_or_insert_with(|| Box::new(GradientSpace::new(&self.twin)));
        self.twin.gradient(bones, extras, space, loss, (Some(by_bones), by_extras))
    }
}
