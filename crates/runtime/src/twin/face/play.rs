//! What the run time asks of a face.

use super::{FaceTwin, GradientSpace, LocalDecoders, Workspace, file, to_bytes};
use crate::error::check_count;
use crate::player::{Loss, Play, WANTS_CONTROLS};
use crate::twin::Kind;
use crate::workers::Workers;
use crate::{Header, Pose, PoseError, Precision, TwinError};
use std::sync::Arc;
use understudy_core::{Face, Vec3};

impl Kind for FaceTwin {
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
        self.mesh().faces()
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
        Box::new(FacePlay { one: Workspace::new(&self, tasks), gradient: None, twin: self })
    }
}

/// A face with its memory.
struct FacePlay {
    twin: Arc<FaceTwin>,
    one: Workspace,
    gradient: Option<Box<Gradient>>,
}

struct Gradient {
    space: GradientSpace,
    /// For derivatives of single vertices, where they are asked for.
    local: Option<LocalDecoders>,
    vertices: Vec<Vec3>,
    by_vertices: Vec<Vec3>,
}

impl Gradient {
    fn new(twin: &FaceTwin) -> Box<Self> {
        let zeros = vec![Vec3::ZERO; twin.vertex_count()];
        let space = GradientSpace::new(twin);
        Box::new(Self { space, local: None, vertices: zeros.clone(), by_vertices: zeros })
    }
}

impl Play for FacePlay {
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
        let (width, height) = (self.twin.control_count(), self.twin.vertex_count());
        let poses = out.len().checked_div(height).unwrap_or(0);
        check_count("vertices of the crowd", out.len(), poses * height)?;
        check_count("controls of the crowd", controls.len(), poses * width)?;
        for (pose, out) in out.chunks_exact_mut(height.max(1)).enumerate() {
            let controls = &controls[pose * width..(pose + 1) * width];
            self.twin.evaluate(controls, &mut self.one, workers, out)?;
        }
        Ok(())
    }

    fn normals(&self, vertices: &[Vec3], out: &mut [Vec3]) -> Result<(), PoseError> {
        self.twin.normals(&self.one, vertices, out)
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
        let Gradient { space, vertices, by_vertices, .. } = &mut **memory;
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
        let Gradient { space, local, vertices, .. } = &mut **memory;
        if local.as_ref().is_none_or(|local| local.len() < out.len()) {
            *local = Some(LocalDecoders::new(twin, out.len()));
        }
        twin.forward(controls, space, vertices)?;
        out.copy_from_slice(&vertices[..out.len()]);
        let local = local.as_mut().expect("it was just made");
        twin.jacobian(space, local, out.len(), by_controls)
    }
}
