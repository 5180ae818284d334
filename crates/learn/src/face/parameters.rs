//! How the parameters of one network lie in one array, what they begin as and what becomes of them in a
//! twin. Every way of training shares it: a state can be handed from one to another.
//!
//! Dense layers come first (weights `[out × in]` by rows, bias), then the decoder's.

use super::net::{NetKind, NetSpec};
use understudy_core::Random;
use understudy_runtime::DenseParts;
use understudy_runtime::face::map_decoder::MapShape;
use understudy_runtime::face::{LEAK, MapParts, NetParts, pixel_weights};

/// Hidden units that suffice for so many inputs: what few controls move has little to say.
pub(super) fn enough_units(inputs: usize) -> usize {
    /// Hidden units an input.
    const UNITS: usize = 4;
    /// Narrower networks save nothing that counts.
    const NARROWEST: usize = 64;
    (UNITS * inputs).next_multiple_of(16).max(NARROWEST)
}

/// The array of one network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParameterLayout {
    /// Sizes of the dense layers' inputs and of the last one's outputs.
    pub sizes: Vec<usize>,
    /// Where each dense layer begins, and where they end.
    pub offsets: Vec<usize>,
    /// What is drawn after the dense layers.
    pub shape: Option<MapShape>,
}

impl ParameterLayout {
    /// `hidden`: width of the dense layers, at most.
    pub fn new(spec: &NetSpec, hidden: usize) -> Self {
        let (sizes, shape) = match &spec.kind {
            NetKind::Map { shape, .. } => {
                (vec![spec.inputs.len(), hidden.min(spec.most_units), shape.dense_numbers()], Some(*shape))
            }
            NetKind::Dense => (vec![spec.inputs.len(), hidden, hidden, 3 * spec.vertices.len()], None),
        };
        let mut offsets = vec![0];
        for pair in sizes.windows(2) {
            offsets.push(offsets[offsets.len() - 1] + (pair[0] + 1) * pair[1]);
        }
        Self { sizes, offsets, shape }
    }

    /// Number of dense layers.
    pub fn layers(&self) -> usize {
        self.sizes.len() - 1
    }

    /// How many of a dense layer's outputs a rectifier follows: not the numbers that all pixels read, nor offsets.
    pub fn rectified(&self, layer: usize) -> usize {
        let image = || self.shape.map_or(0, |shape| shape.first_image());
        if layer + 1 < self.layers() { self.sizes[layer + 1] } else { image() }
    }

    /// Numbers of all parameters.
    pub fn count(&self) -> usize {
        self.drawing_start() + self.shape.map_or(0, |shape| shape.parameter_count())
    }

    /// Where the decoder's parameters begin.
    pub fn drawing_start(&self) -> usize {
        self.offsets[self.layers()]
    }

    /// Weights uniform in the bounds of He et al. 2015 for leaky rectifiers, biases zero, what no rectifier
    /// follows ten times smaller: the twin starts near the rest pose.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        let mut parameters = Vec::with_capacity(self.count());
        let bound = |fan: usize| (6.0 / ((1.0 + LEAK * LEAK) * fan.max(1) as f32)).sqrt();
        let add =
            |parameters: &mut Vec<f32>, random: &mut Random, weights: usize, bias: usize, limit: f32| {
                parameters.extend((0..weights).map(|_| random.uniform(-limit, limit)));
                parameters.extend(std::iter::repeat_n(0.0, bias));
            };
        for (layer, pair) in self.sizes.windows(2).enumerate() {
            let limit = bound(pair[0]);
            let start = parameters.len();
            add(&mut parameters, &mut random, pair[0] * pair[1], pair[1], limit);
            let straight = start + pair[0] * self.rectified(layer)..start + pair[0] * pair[1];
            parameters[straight].iter_mut().for_each(|weight| *weight *= 0.1);
        }
        if let Some(shape) = &self.shape {
            for convolution in 0..shape.convolutions() {
                let inputs = shape.inputs_of(convolution);
                add(&mut parameters, &mut random, shape.hidden * inputs * 9, shape.hidden, bound(9 * inputs));
            }
            // Pixels with weights of their own start alike, and do not read the shared features yet: what tells
            // them apart is learned.
            let start = parameters.len();
            for _ in 0..shape.outputs {
                let limit = bound(shape.hidden) * 0.1;
                parameters.extend((0..shape.hidden).map(|_| random.uniform(-limit, limit)));
                parameters.extend(std::iter::repeat_n(0.0, shape.shared_features));
            }
            let set = parameters[start..].to_vec();
            parameters.extend(set.repeat(shape.sets() - 1));
            parameters.extend(std::iter::repeat_n(0.0, shape.sets() * shape.outputs));
        }
        parameters
    }

    /// Weights and bias of a dense layer.
    pub fn dense<'p>(&self, layer: usize, parameters: &'p [f32]) -> (&'p [f32], &'p [f32]) {
        let weights = self.sizes[layer] * self.sizes[layer + 1];
        parameters[self.offsets[layer]..self.offsets[layer + 1]].split_at(weights)
    }

    /// The network for a twin, in cm.
    pub fn parts(&self, spec: &NetSpec, parameters: &[f32]) -> NetParts {
        let unit = spec.unit;
        let scaled = |numbers: &[f32], factor: f32| numbers.iter().map(|n| n * factor).collect::<Vec<f32>>();
        let dense = (0..self.layers()).map(|layer| {
            let (weights, bias) = self.dense(layer, parameters);
            let offsets = self.shape.is_none() && layer + 1 == self.layers();
            let factor = if offsets { unit } else { 1.0 };
            DenseParts { weights: scaled(weights, factor), bias: scaled(bias, factor) }
        });
        let map = match &spec.kind {
            NetKind::Dense => None,
            NetKind::Map { shape, coordinates } => {
                let mut parameters = parameters[self.drawing_start()..].to_vec();
                let point = &mut parameters[shape.convolution_parameters()..];
                point.iter_mut().for_each(|p| *p *= unit);
                pixel_weights::complete(shape, &mut parameters, coordinates);
                Some(MapParts { shape: *shape, parameters, coordinates: coordinates.clone() })
            }
        };
        NetParts {
            name: spec.name.clone(),
            stage: spec.stage,
            vertices: spec.vertices.clone(),
            inputs: spec.inputs.clone(),
            mean: spec.mean.clone(),
            scale: spec.scale.clone(),
            dense: dense.collect(),
            map,
        }
    }
}
