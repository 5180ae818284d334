//! Differential twins: what the commands ask of this kind.

mod checkpoint;
mod learn;
mod onnx;

use super::Kind;
use crate::info::NetworkFacts;
use understudy_core::SkinWeights;
use understudy_io::onnx::Graph;
use understudy_runtime::diff::DiffTwin;

pub use learn::{DiffDetails, DiffLearning};
pub use understudy_learn::diff::{Coordinates, DiffSettings, Loss, SkinSource};

impl Kind for DiffTwin {
    fn draw(&self, graph: &mut Graph) {
        onnx::draw(graph, &self.parts());
    }

    fn networks(&self) -> Vec<NetworkFacts> {
        let parts = self.parts();
        let facts = |name: String, stage, vertices, inputs, layers: &[_]| NetworkFacts {
            name,
            stage,
            vertices,
            inputs,
            layers: layers
                .iter()
                .map(|layer: &understudy_runtime::diff::LayerNumbers| layer.bias.len())
                .collect(),
            map: None,
            shared_features: None,
        };
        let differential = facts(
            "all vertices".into(),
            "differential",
            self.vertex_count(),
            parts.features.inputs.len(),
            &parts.differential,
        );
        let anchor = |anchor: &understudy_runtime::diff::AnchorParts| {
            let name = format!("vertex {}", anchor.vertex);
            facts(name, "anchor", 1, anchor.features.len(), &anchor.layers)
        };
        std::iter::once(differential).chain(parts.anchors.iter().map(anchor)).collect()
    }

    fn statistics(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("anchors, one mini-network each", self.anchor_count()),
            ("coefficients that vertices are decoded from", self.rank()),
        ]
    }

    fn skin(&self) -> Option<SkinWeights> {
        self.parts().skin.map(|skin| skin.weights)
    }
}
