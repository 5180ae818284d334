//! From checked parts to a packed face twin and back.

use super::map_decoder::MapDecoder;
use super::sample::{self, BilinearSample};
use super::{
    FaceParts, FaceTwin, LEAK, Map, MapParts, Net, NetParts, RigidBody, RigidBodyParts, check, pixel_weights,
};
use crate::TwinError;
use crate::dense::{Kernel, LayerError, Packed, Precision};
use crate::twin::network::motion::MotionNet;
use crate::twin::network::{NormalisedInputs, pack_dense, unpack_dense};
use half::f16;

impl FaceTwin {
    /// Checks all parts and packs the networks.
    pub fn new(parts: FaceParts, precision: Precision) -> Result<Self, TwinError> {
        Self::for_kernel(parts, precision, Kernel::detect())
    }

    /// Packs for a kernel that the machine has.
    pub(super) fn for_kernel(
        parts: FaceParts,
        precision: Precision,
        kernel: Kernel,
    ) -> Result<Self, TwinError> {
        check::parts(&parts)?;
        let FaceParts { header, mesh, frame, nets, bodies, rigid } = parts;
        let with_normals = nets.iter().filter_map(|net| net.map.as_ref()).any(|map| map.shape.outputs == 6);
        let nets = nets.into_iter().map(|net| Net::new(net, precision, kernel)).collect::<Result<_, _>>()?;
        let frame = frame.map(|frame| MotionNet::new("frame", frame, precision)).transpose()?;
        let body = |body: RigidBodyParts| {
            let motion = MotionNet::new(&body.name, body.motion, precision)?;
            Ok(RigidBody { name: body.name, vertices: body.vertices, motion })
        };
        let bodies = bodies.into_iter().map(body).collect::<Result<_, TwinError>>()?;
        let rest_normals = match with_normals {
            true => understudy_core::normals::vertex_normals(mesh.faces(), mesh.positions()),
            false => Vec::new(),
        };
        Ok(Self { header, mesh, precision, kernel, nets, frame, bodies, rigid, rest_normals, with_normals })
    }

    /// The parts that it is made of, unpacked, for saving, exporting and transferring. Weights are as the twin keeps
    /// them: of a twin in 16 bits, rounded. Weights of pixels that no vertex samples follow from their neighbours'.
    pub fn parts(&self) -> FaceParts {
        let body = |body: &RigidBody| RigidBodyParts {
            name: body.name.clone(),
            vertices: body.vertices.clone(),
            motion: body.motion.parts(),
        };
        FaceParts {
            header: self.header.clone(),
            mesh: self.mesh.clone(),
            frame: self.frame.as_ref().map(MotionNet::parts),
            nets: self.nets.iter().map(Net::parts).collect(),
            bodies: self.bodies.iter().map(body).collect(),
            rigid: self.rigid.clone(),
        }
    }
}

impl Net {
    fn new(parts: NetParts, precision: Precision, kernel: Kernel) -> Result<Self, TwinError> {
        let layers = pack_dense(&parts.name, &parts.dense, parts.inputs.len(), false, precision)?;
        let rectified = (0..layers.len()).map(|layer| parts.rectified(layer)).collect();
        let NetParts { name, stage, vertices, inputs, mean, scale, dense: _, map } = parts;
        let inputs = NormalisedInputs { inputs, mean, scale };
        let too_large = |p: &f32| precision == Precision::Half && !f16::from_f32(*p).is_finite();
        if let Some(index) = map.as_ref().and_then(|map| map.parameters.iter().position(too_large)) {
            let error = LayerError::NonFinite { what: "parameters of the map in 16 bits", index };
            return Err(TwinError::Layer { network: name, layer: layers.len(), error });
        }
        Ok(Self {
            name,
            stage,
            vertices,
            inputs,
            layers,
            rectified,
            map: map.map(|map| Map::new(map, precision, kernel)),
        })
    }

    pub(super) fn parts(&self) -> NetParts {
        NetParts {
            name: self.name.clone(),
            stage: self.stage,
            vertices: self.vertices.clone(),
            inputs: self.inputs.inputs.clone(),
            mean: self.inputs.mean.clone(),
            scale: self.inputs.scale.clone(),
            dense: unpack_dense(&self.layers),
            map: self.map.as_ref().map(Map::parts),
        }
    }
}

impl Map {
    fn new(parts: MapParts, precision: Precision, kernel: Kernel) -> Self {
        let MapParts { shape, parameters, coordinates } = parts;
        let side = shape.map_side();
        let samples: Vec<BilinearSample> = coordinates.iter().map(|c| BilinearSample::at(*c, side)).collect();
        let sampled = sample::sampled_pixels(&samples, side);
        let parameters = rounded(parameters, precision);
        let decoder = MapDecoder::for_evaluation(shape, LEAK, &sampled, &parameters, precision, kernel);
        let kept = if shape.untied { shape.convolution_parameters() } else { parameters.len() };
        let parameters = match precision {
            Precision::Single => Packed::Single(parameters[..kept].to_vec()),
            Precision::Half => Packed::half(parameters[..kept].to_vec()),
        };
        Self { decoder, samples, parameters, coordinates }
    }

    pub(super) fn parts(&self) -> MapParts {
        let shape = *self.decoder.shape();
        let kept = &self.parameters;
        let mut parameters: Vec<f32> = (0..kept.count()).map(|place| kept.number(place)).collect();
        if shape.untied {
            parameters.extend(self.decoder.pixel_weights());
        }
        let parameters = pixel_weights::unpack(&shape, parameters, &self.coordinates);
        MapParts { shape, parameters, coordinates: self.coordinates.clone() }
    }
}

/// Numbers as the file keeps them: what is evaluated is what was saved.
fn rounded(mut numbers: Vec<f32>, precision: Precision) -> Vec<f32> {
    if precision == Precision::Half {
        numbers.iter_mut().for_each(|number| *number = f16::from_f32(*number).to_f32());
    }
    numbers
}
