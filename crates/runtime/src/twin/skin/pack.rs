//! From parts to a packed skin twin and back: everything that could be wrong is checked once, here.

use super::{BONE_NUMBERS, SkinParts, SkinTwin};
use crate::TwinError;
use crate::dense::{Activation, Kernel, Layer, Precision};
use crate::twin::network::motion::MotionNet;
use crate::twin::network::{NormalisedInputs, check_inputs, unpack_dense};
use crate::twin::shared::{check_faces, check_finite, check_length};
use crate::twin::skinning::Skin;

impl SkinTwin {
    /// Checks all parts and packs the networks.
    pub fn new(parts: SkinParts, precision: Precision) -> Result<Self, TwinError> {
        Self::for_kernel(parts, precision, Kernel::detect())
    }

    /// Packs for a kernel that the machine has.
    pub(super) fn for_kernel(
        parts: SkinParts,
        precision: Precision,
        kernel: Kernel,
    ) -> Result<Self, TwinError> {
        check(&parts)?;
        let (vertex_count, components) = (parts.rest_vertices.len(), parts.component_count());
        let SkinParts { header, rest_vertices, faces, weights, centres, .. } = parts;
        let network = |layer: usize| {
            move |error| TwinError::Layer { network: "the network of the bones".into(), layer, error }
        };
        let mut columns = parts.inputs.len();
        let mut hidden = Vec::with_capacity(parts.hidden.len());
        for (index, layer) in parts.hidden.iter().enumerate() {
            let packed = Layer::pack(&layer.weights, &layer.bias, columns, Activation::Tanh, precision);
            hidden.push(packed.map_err(network(index))?);
            columns = layer.bias.len();
        }
        let columns = parts.inputs.len() + hidden.last().map_or(0, Layer::rows);
        let output = &parts.output;
        let output = Layer::pack(&output.weights, &output.bias, columns, Activation::None, precision)
            .map_err(network(hidden.len()))?;
        let pack = |basis: &[f32]| {
            Layer::pack(basis, &vec![0.0; 3 * vertex_count], components, Activation::None, precision)
                .map_err(|error| TwinError::Layer { network: "the components".into(), layer: 0, error })
        };
        Ok(Self {
            precision,
            kernel,
            vertex_count,
            faces,
            skin: Skin::new(&weights, &rest_vertices),
            centres,
            frame: parts.frame.map(|frame| MotionNet::new("frame", frame, precision)).transpose()?,
            inputs: NormalisedInputs { inputs: parts.inputs, mean: parts.mean, scale: parts.scale },
            hidden,
            output,
            components: (components > 0).then(|| pack(&parts.components)).transpose()?,
            header,
        })
    }

    /// The parts that it is made of, unpacked, for saving and exporting. Weights are as the twin keeps them: of a twin in
    /// 16 bits, rounded.
    pub fn parts(&self) -> SkinParts {
        let (rest_vertices, weights) = self.skin.unpack(self.vertex_count, self.bone_count());
        let mut layers = unpack_dense(self.hidden.iter().chain([&self.output]));
        let output = layers.pop().expect("the last one");
        let NormalisedInputs { inputs, mean, scale } = self.inputs.clone();
        SkinParts {
            header: self.header.clone(),
            rest_vertices,
            faces: self.faces.clone(),
            weights,
            centres: self.centres.clone(),
            frame: self.frame.as_ref().map(MotionNet::parts),
            inputs,
            mean,
            scale,
            hidden: layers,
            output,
            components: self.components.as_ref().map_or(Vec::new(), |basis| basis.unpack().0),
        }
    }
}

fn check(parts: &SkinParts) -> Result<(), TwinError> {
    let (vertices, bones) = (parts.rest_vertices.len(), parts.centres.len());
    let controls = parts.header.inputs.controls.len();
    check_length("bones that a pose gives", parts.header.inputs.bones.len(), 0)?;
    check_length("skin weights", parts.weights.vertex_count(), vertices)?;
    check_length("bones of the skin weights", parts.weights.bone_count(), bones)?;
    check_finite("rest vertices", parts.rest_vertices.iter().map(|v| v.is_finite()))?;
    check_finite("centres of the bones", parts.centres.iter().map(|c| c.is_finite()))?;
    check_faces(&parts.faces, vertices)?;
    if let Some(frame) = &parts.frame {
        frame.check("frame", controls)?;
    }
    check_inputs("the network of the bones", &parts.inputs, &parts.mean, &parts.scale, controls)?;
    let mut columns = parts.inputs.len();
    for (layer, data) in parts.hidden.iter().enumerate() {
        let rows = data.bias.len();
        check_length(&format!("weights of hidden layer {layer}"), data.weights.len(), rows * columns)?;
        columns = rows;
    }
    let read = parts.inputs.len() + parts.hidden.last().map_or(0, |last| last.bias.len());
    let components = parts.component_count();
    let rows = BONE_NUMBERS * bones + components;
    check_length("numbers of the bones and components", parts.output.bias.len(), rows)?;
    check_length("weights of the last layer", parts.output.weights.len(), rows * read)?;
    check_length("components", parts.components.len(), 3 * vertices * components)
}
