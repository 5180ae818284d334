//! Body twins: what the commands ask of this kind.

mod checkpoint;
mod learn;
pub(super) mod onnx;

use super::Kind;
use crate::info::NetworkFacts;
use crate::twin::eval::figures::{Figures, Study};
use crate::twin::eval::seams::SeamFigures;
use understudy_core::SkinWeights;
use understudy_io::onnx::Graph;
use understudy_runtime::body::BodyTwin;

pub use learn::{Base, BodyDetails, BodyLearning};
pub use understudy_runtime::body::InputFrame;

impl Kind for BodyTwin {
    fn draw(&self, graph: &mut Graph) {
        onnx::draw(graph, &self.parts());
    }

    fn networks(&self) -> Vec<NetworkFacts> {
        let facts = |group: &understudy_runtime::body::GroupParts| NetworkFacts {
            name: self.header().inputs.bones[group.bone].name.clone(),
            stage: "group",
            vertices: group.vertices.len(),
            inputs: group.inputs.len(),
            layers: group.layers.iter().map(|layer| layer.bias.len()).collect(),
            map: None,
            shared_features: None,
        };
        self.parts().groups.iter().map(facts).collect()
    }

    fn statistics(&self) -> Vec<(&'static str, usize)> {
        vec![("groups of vertices, one network each", self.parts().groups.len())]
    }

    fn figures(&self, study: &Study<'_>) -> Vec<Box<dyn Figures>> {
        let mut owner = vec![0u32; self.vertex_count()];
        for group in &self.parts().groups {
            group.vertices.iter().for_each(|v| owner[*v as usize] = group.bone as u32);
        }
        vec![Box::new(SeamFigures::new(study, owner))]
    }

    fn skin(&self) -> Option<SkinWeights> {
        self.parts().base
    }
}
