//! What the run time asks of a body.

use super::{BodyTwin, Workspace, file};
use crate::error::check_count;
use crate::mechanism::{Mechanism, file as section};
use crate::player::{Play, WANTS_BONES};
use crate::twin::Kind;
use crate::workers::Workers;
use crate::{Header, Pose, PoseError, Precision, TwinError};
use std::sync::Arc;
use understudy_core::{Affine3A, Face, Vec3};

impl Kind for BodyTwin {
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
        self.faces()
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
        Box::new(BodyPlay { one: Workspace::new(&self, tasks), crowd: None, tasks, twin: self })
    }
}

/// A body with its memory.
struct BodyPlay {
    twin: Arc<BodyTwin>,
    tasks: usize,
    one: Workspace,
    crowd: Option<Workspace>,
}

impl Play for BodyPlay {
    fn pose(&mut self, pose: Pose<'_>, workers: Option<&Workers>, out: &mut [Vec3]) -> Result<(), PoseError> {
        let Pose::Bones { bones, extras } = pose else { return Err(WANTS_BONES) };
        self.twin.evaluate(bones, extras, &mut self.one, workers, out)
    }

    fn crowd(
        &mut self,
        poses: Pose<'_>,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        let Pose::Bones { bones, extras } = poses else { return Err(WANTS_BONES) };
        let crowd = self.crowd.get_or_insert_with(|| Workspace::for_crowd(&self.twin, self.tasks));
        self.twin.evaluate_crowd(bones, extras, crowd, workers, out)
    }

    fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), PoseError> {
        check_count("vertices", vertices.len(), self.twin.vertex_count())?;
        check_count("normals", out.len(), self.twin.vertex_count())?;
        understudy_core::normals::vertex_normals_into(self.twin.faces(), vertices, out);
        Ok(())
    }
}
