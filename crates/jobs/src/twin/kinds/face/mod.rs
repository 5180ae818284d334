//! Face twins: what the commands ask of this kind, and `transfer`, which only they know.

mod checkpoint;
mod learn;
pub(crate) mod onnx;
mod report;
pub mod transfer;

use super::Kind;
use crate::info::NetworkFacts;
use crate::twin::eval::figures::{Figures, Findings, Posed, Study};
use crate::twin::eval::gaps::Openings;
use crate::twin::eval::pictures::Exhibit;
use std::sync::Arc;
use understudy_core::{Mesh, Random, Vec3};
use understudy_io::onnx::Graph;
use understudy_report::html::Section;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{Picture, Sheet};
use understudy_runtime::Twin;
use understudy_runtime::face::{FaceTwin, NetParts, Stage};

pub use learn::FaceLearning;
pub use onnx::{UntiedWeights, untied_weights};
pub use report::{FaceDetails, FrameReport, StageReport};
pub use understudy_learn::face::segments::SegmentKind;

impl Kind for FaceTwin {
    fn draw(&self, graph: &mut Graph) {
        onnx::draw(graph, &self.parts());
    }

    fn networks(&self) -> Vec<NetworkFacts> {
        let facts = |net: &NetParts| NetworkFacts {
            name: net.name.clone(),
            stage: match net.stage {
                Stage::Coarse => "coarse",
                Stage::Refinement => "refinement",
            },
            vertices: net.vertices.len(),
            inputs: net.inputs.len(),
            layers: net.dense.iter().map(|layer| layer.bias.len()).collect(),
            map: net.map.as_ref().map(|map| map.shape.map_side()),
            shared_features: net.map.as_ref().map(|map| map.shape.shared_features),
        };
        self.parts().nets.iter().map(facts).collect()
    }

    fn statistics(&self) -> Vec<(&'static str, usize)> {
        let parts = self.parts();
        let count = |stage: Stage| parts.nets.iter().filter(|net| net.stage == stage).count();
        vec![
            ("coarse segments", count(Stage::Coarse)),
            ("refinement segments", count(Stage::Refinement)),
            ("bodies", parts.bodies.len()),
            ("rigid segments that follow", parts.rigid.len()),
        ]
    }

    fn inner_twins(&self) -> Vec<(&'static str, Twin)> {
        if self.has_refinement() { vec![("coarse", Twin::from(self.coarse()))] } else { Vec::new() }
    }

    fn figures(&self, study: &Study<'_>) -> Vec<Box<dyn Figures>> {
        let nets = self.parts().nets;
        vec![Box::new(Openings::new(study)), Box::new(Networks { mesh: study.mesh.clone(), nets })]
    }

    fn movers(&self) -> Vec<&'static str> {
        let (segments, parts) = (self.mesh().segments(), self.parts());
        let mover = |(index, name): (usize, &String)| {
            let first = segments.vertices(index).first().copied();
            let moved = |net: &NetParts| first.is_some_and(|v| net.vertices.contains(&v));
            match parts.rigid.iter().any(|rigid| rigid.name == *name) {
                _ if parts.bodies.iter().any(|body| body.name == *name) => "body",
                true => "rigid",
                false if parts.nets.iter().any(moved) => "network",
                false => "still",
            }
        };
        segments.names.iter().enumerate().map(mover).collect()
    }

    /// The face: where it moves like no rigid body, coarse maps are refined; a twin without refinement is shown whole.
    fn subject(&self) -> Vec<u32> {
        let parts = self.parts();
        let refined = parts.nets.iter().filter(|net| net.stage == Stage::Refinement);
        let mut vertices: Vec<u32> = refined.flat_map(|net| net.vertices.iter().copied()).collect();
        vertices.sort_unstable();
        vertices.dedup();
        vertices
    }

    fn stored_mesh(&self) -> Option<&Mesh> {
        Some(self.mesh())
    }

    fn rigid(&self) -> [usize; 2] {
        let parts = self.parts();
        [parts.bodies.len(), parts.rigid.len()]
    }
}

/// Which network moves what, in colours: nothing to measure.
struct Networks {
    mesh: Mesh,
    nets: Vec<NetParts>,
}

impl Figures for Networks {
    fn add(&mut self, _method: usize, _posed: &Posed<'_>) {}

    fn findings(&self) -> Findings {
        Findings::default()
    }

    fn section(&self, _exhibits: &[Exhibit]) -> Option<Section> {
        let caption =
            "Left: a colour per coarse network, grey for rigid segments. Right: regions that are refined.";
        Some(Section::new("Parts").picture(&self.sheet(), caption))
    }
}

impl Networks {
    fn sheet(&self) -> Picture {
        let Self { mesh, nets } = self;
        let camera = Camera::framing_points(mesh.positions(), 20.0, 4.0, 1.0);
        let settings = RenderSettings { width: 420, height: 420, ..RenderSettings::default() };
        let mut sheet = Sheet::new(2).column_labels(["coarse networks", "refinement networks"]);
        for stage in [Stage::Coarse, Stage::Refinement] {
            let mut colours = vec![Vec3::splat(0.6); mesh.vertex_count()];
            for (index, net) in nets.iter().enumerate().filter(|(_, net)| net.stage == stage) {
                let mut random = Random::stream(5, index as u64);
                let colour = Vec3::from_array([0; 3].map(|_| random.uniform(0.2, 0.95)));
                net.vertices.iter().for_each(|v| colours[*v as usize] = colour);
            }
            let actor = Actor::new(mesh.faces(), mesh.positions()).colours(&colours);
            sheet = sheet.cell(render(&[actor], &camera, &settings), "");
        }
        sheet.build()
    }
}

/// Reads a face twin; every error names the file.
pub fn open_face_twin(path: &std::path::Path) -> Result<Arc<FaceTwin>, crate::JobError> {
    match crate::twin::open_twin(path)? {
        Twin::Face(twin) => Ok(twin),
        other => {
            let problem = format!("is a {} twin; a face twin is needed", other.method());
            Err(crate::JobError::unusable(path, problem))
        }
    }
}
