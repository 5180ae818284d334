//! What the run time asks of a skin twin.

use super::evaluate::Workspace;
use super::gradient::GradientSpace;
use super::{SkinTwin, file, to_bytes};
use crate::error::check_count;
use crate::player::{Loss, Play, WANTS_CONTROLS};
use crate::twin::Kind;
use crate::workers::Workers;
use crate::{Header, Pose, PoseError, Precision, TwinError};
use std::sync::Arc;
use understudy_core::{Face, Vec3};

impl Kind for SkinTwin {
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

    fn to_bytes(&self) -> Result<Vec<u8>, TwinError> {
        to_bytes(&self.parts(), self.precision())
    }

    fn play(self: Arc<Self>, tasks: usize) -> Box<dyn Play> {
        let one = Workspace::new(&self, tasks);
        Box::new(SkinPlay { one, crowd: None, gradient: None, tasks, twin: self })
    }
}

/// A skin twin with its memory.
struct SkinPlay {
    twin: Arc<SkinTwin>,
    tasks: usize,
    one: Workspace,
    crowd: Option<Workspace>,
    gradient: Option<Box<Gradient>>,
}

struct Gradient {
    space: GradientSpace,
    vertices: Vec<Vec3>,
    by_vertices: Vec<Vec3>,
}

impl Gradient {
    fn new(twin: &SkinTwin) -> Box<Self> {
        let zeros = vec![Vec3::ZERO; twin.vertex_count()];
        Box::new(Self { space: GradientSpace::new(twin), vertices: zeros.clone(), by_vertices: zeros })
    }
}

impl Play for SkinPlay {
    fn pose(&mut self, pose: Pose<'_>, workers: Option<&Workers>, out: &mut [Vec3]) -> Result<(), PoseError> {
        let Pose::Controls(controls) = pose else { return Err(WANTS_CONTROLS) };
        self.twin.evaluate(controls, &mut self.one, workers, out)
    }

    fn crowd(
        &mut self,
        poses: Pose<'_>,
        workers: Option<&Workers>,
        out: &mut [Vec3],
    ) -> Result<(), PoseError> {
        let Pose::Controls(controls) = poses else { return Err(WANTS_CONTROLS) };
        let crowd = self.crowd.get_or_insert_with(|| Workspace::for_crowd(&self.twin, self.tasks));
        self.twin.evaluate_crowd(controls, crowd, workers, out)
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
        let Pose::Controls(controls) = pose else { return Err(WANTS_CONTROLS) };
        let twin = &self.twin;
        let memory = self.gradient.get_or_insert_with(|| Gradient::new(twin));
        let Gradient { space, vertices, by_vertices } = &mut **memory;
        twin.forward(controls, space, vertices)?;
        by_vertices.fill(Vec3::ZERO);
        loss(vertices, by_vertices);
        twin.backward(space, by_vertices, by_controls)
    }

    fn jacobian(
        &mut self,
        pose: Pose<'_>,
        out: &mut [Vec3],
        by_controls: &mut [f32],
    ) -> Result<(), PoseError> {
        let Pose::Controls(controls) = pose else { return Err(WANTS_CONTROLS) };
        let twin = &self.twin;
        let memory = self.gradient.get_or_insert_with(|| Gradient::new(twin));
        let Gradient { space, vertices, .. } = &mut **memory;
        twin.forward(controls, space, vertices)?;
        out.copy_from_slice(&vertices[..out.len()]);
        twin.jacobian(space, by_controls);
        Ok(())
    }
}
