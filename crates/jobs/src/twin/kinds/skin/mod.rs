//! Skin twins: what the commands ask of this kind.

mod glb;
mod learn;
mod onnx;

use super::{Kind, OwnSkin};
use crate::info::NetworkFacts;
use understudy_io::onnx::Graph;
use understudy_runtime::skin::SkinTwin;

pub use learn::{SkinDetails, SkinLearning};

impl Kind for SkinTwin {
    fn draw(&self, graph: &mut Graph) {
        onnx::draw(graph, &self.parts());
    }

    fn networks(&self) -> Vec<NetworkFacts> {
        let parts = self.parts();
        let facts = |name: &str, stage, vertices, inputs, layers| NetworkFacts {
            name: name.into(),
            stage,
            vertices,
            inputs,
            layers,
            map: None,
            shared_features: None,
        };
        let hidden = parts.hidden.iter().chain([&parts.output]).map(|layer| layer.bias.len()).collect();
        let bones = facts("bones", "bones", self.vertex_count(), parts.inputs.len(), hidden);
        let whole = parts.frame.as_ref().map(|frame| {
            let layers = frame.layers.iter().map(|layer| layer.bias.len()).collect();
            facts("motion of the whole", "whole", self.vertex_count(), frame.inputs.len(), layers)
        });
        [bones].into_iter().chain(whole).collect()
    }

    fn statistics(&self) -> Vec<(&'static str, usize)> {
        let influences = self.parts().weights.max_influences();
        vec![
            ("bones", self.bone_count()),
            ("bones per vertex at most", influences),
            ("principal components", self.component_count()),
        ]
    }

    fn own_skin(&self) -> Option<OwnSkin> {
        glb::own_skin(self)
    }

    fn draw_bones(&self, graph: &mut Graph) -> bool {
        onnx::draw_bones(graph, &self.parts());
        true
    }
}
