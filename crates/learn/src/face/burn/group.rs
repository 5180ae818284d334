//! Networks of one shape as one: the same products for all, inputs padded with zeros to the widest. A
//! weight of an input that is always zero has no slope and never moves, so that padding changes nothing.
//!
//! What networks give is one array `[poses, 3, sources]`, in their own units: pixels of maps, or the
//! vertices of dense networks. Where it goes is for [`super::sparse`].

use super::super::Recording;
use super::super::net::NetSpec;
use super::super::parameters::ParameterLayout;
use super::point::{self, Read};
use super::stage::{Stage, StageTape, doubled, rectify, rows_of_pixels, sum_rows, unrectify};
use burn_tensor::backend::Backend;
use burn_tensor::{Bool, Tensor, TensorData};
use understudy_runtime::face::map_decoder::MapShape;

/// One array of parameters of a group inside all parameters.
#[derive(Clone, Copy)]
struct Slot {
    start: usize,
    size: usize,
}

/// Networks of one shape.
pub(super) struct Group<B: Backend> {
    /// Which networks of the problem.
    pub nets: Vec<usize>,
    /// Sizes of dense layers, the widest of all networks.
    sizes: Vec<usize>,
    shape: Option<MapShape>,
    /// Weights and bias, layer after layer; then the decoder's.
    slots: Vec<Slot>,
    stages: Vec<Stage<B>>,
    /// Where the map's pixels stand, by rows.
    places: Vec<usize>,
    /// `[all poses, networks, inputs]`, mean and scale applied.
    inputs: Tensor<B, 3>,
}

/// What the derivatives need of a pass.
pub(super) struct GroupTape<B: Backend> {
    poses: usize,
    /// Inputs of dense layers, `[networks, poses, size]`.
    rows: Vec<Tensor<B, 3>>,
    /// Where the rectifiers of dense layers were below zero.
    below: Vec<Option<Tensor<B, 3, Bool>>>,
    /// The same of the first image.
    image_below: Option<Tensor<B, 3, Bool>>,
    stages: Vec<StageTape<B>>,
    /// The last image, `[networks, poses, pixels, hidden]`, and what all pixels read, `[networks, poses,
    /// common]`, where there is something.
    read: Option<Read<B>>,
}

/// Sorts networks into groups: those that draw maps of one shape, those that draw none.
pub(super) fn sort(layouts: &[ParameterLayout]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (net, layout) in layouts.iter().enumerate() {
        let same = |group: &&mut Vec<usize>| layouts[group[0]].shape == layout.shape;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(net),
            None => groups.push(vec![net]),
        }
    }
    groups
}

impl<B: Backend> Group<B> {
    /// `start`: where its parameters begin among all; the second answer is where they end.
    pub fn new(
        nets: Vec<usize>,
        specs: &[NetSpec],
        layouts: &[ParameterLayout],
        poses: &Recording,
        start: usize,
        device: &B::Device,
    ) -> (Self, usize) {
        let networks = nets.len();
        let shape = layouts[nets[0]].shape;
        let layers = layouts[nets[0]].sizes.len();
        let widest = |layer: usize| nets.iter().map(|net| layouts[*net].sizes[layer]).max().unwrap_or(0);
        // A product over no inputs at all is not every backend's strength.
        let sizes: Vec<usize> = (0..layers).map(|layer| widest(layer).max(1)).collect();
        let mut slots = Vec::new();
        let mut end = start;
        let mut add = |size: usize| {
            slots.push(Slot { start: end, size: networks * size });
            end += networks * size;
        };
        for pair in sizes.windows(2) {
            add(pair[0] * pair[1]);
            add(pair[1]);
        }
        let (mut stages, mut places) = (Vec::new(), Vec::new());
        if let Some(shape) = &shape {
            let mut side = shape.side;
            places = rows_of_pixels(side);
            for convolution in 0..shape.convolutions() {
                let (inputs, upsampled) = (shape.inputs_of(convolution), convolution < shape.doublings);
                add(9 * inputs * shape.hidden);
                add(shape.hidden);
                stages.push(Stage::new(networks, inputs, shape.hidden, &places, side, upsampled, device));
                if upsampled {
                    places = doubled(&places, side);
                    side *= 2;
                }
            }
            add(shape.sets() * shape.outputs * shape.reads());
            add(shape.sets() * shape.outputs);
        }
        let mut inputs = vec![0.0f32; poses.len() * networks * sizes[0]];
        for (row, slots) in inputs.chunks_exact_mut(sizes[0]).enumerate() {
            let (pose, spec) = (row / networks, &specs[nets[row % networks]]);
            let controls = poses.controls_of(pose);
            let wanted = spec.inputs.iter().zip(spec.mean.iter().zip(&spec.scale));
            for (slot, (input, (mean, scale))) in slots.iter_mut().zip(wanted) {
                *slot = (controls[*input as usize] - mean) * scale;
            }
        }
        let inputs = TensorData::new(inputs, [poses.len(), networks, sizes[0]]);
        let inputs = Tensor::from_data(inputs, device);
        (Self { nets, sizes, shape, slots, stages, places, inputs }, end)
    }

    /// Numbers that one network gives, three channels each.
    pub fn sources(&self) -> usize {
        match &self.shape {
            Some(shape) => shape.map_side() * shape.map_side(),
            None => self.sizes[self.sizes.len() - 1] / 3,
        }
    }

    /// Where a pixel of a map, by rows, stands among the sources of a network.
    pub fn place(&self, pixel: usize) -> usize {
        self.places.get(pixel).copied().unwrap_or(pixel)
    }

    /// Where the parameters of the group's network number `index` stand among all.
    pub fn parameter_places(&self, index: usize, layout: &ParameterLayout) -> Vec<usize> {
        let mut out = Vec::with_capacity(layout.count());
        let mut slots = self.slots.iter();
        let mut next = || slots.next().expect("a slot for every array").start;
        for (own, wide) in layout.sizes.windows(2).zip(self.sizes.windows(2)) {
            let (weights, bias) = (next(), next());
            let rows = (0..own[1]).map(|row| weights + (index * wide[1] + row) * wide[0]);
            out.extend(rows.flat_map(|start| start..start + own[0]));
            out.extend((0..own[1]).map(|row| bias + index * wide[1] + row));
        }
        for stage in &self.stages {
            let (weights, bias) = (next(), next());
            for output in 0..stage.outputs {
                for input in 0..stage.inputs {
                    let tap = |tap: usize| ((index * 9 + tap) * stage.inputs + input) * stage.outputs;
                    out.extend((0..9).map(|number| weights + tap(number) + output));
                }
            }
            out.extend((0..stage.outputs).map(|output| bias + index * stage.outputs + output));
        }
        if let Some(shape) = &self.shape {
            let (weights, bias) = (next(), next());
            // Sets of pixels stand where their pixels do.
            let set = |pixel: usize| index * shape.sets() + if shape.untied { self.places[pixel] } else { 0 };
            for (start, size) in [(weights, shape.outputs * shape.reads()), (bias, shape.outputs)] {
                let sets = (0..shape.sets()).map(|pixel| start + set(pixel) * size);
                out.extend(sets.flat_map(|start| start..start + size));
            }
        }
        out
    }

    fn array<const D: usize>(&self, all: &Tensor<B, 1>, slot: usize, shape: [usize; D]) -> Tensor<B, D> {
        let Slot { start, size } = self.slots[slot];
        all.clone().slice([start..start + size]).reshape(shape)
    }

    /// Offsets of all sources, `[poses, 3, networks · sources]`, in the networks' units.
    pub fn forward(
        &self,
        parameters: &Tensor<B, 1>,
        poses: Tensor<B, 1, burn_tensor::Int>,
    ) -> (Tensor<B, 3>, GroupTape<B>) {
        let n = self.nets.len();
        let count = poses.dims()[0];
        let layers = self.sizes.len() - 1;
        let mut tape = GroupTape {
            poses: count,
            rows: Vec::new(),
            below: Vec::new(),
            image_below: None,
            stages: Vec::new(),
            read: None,
        };
        let mut rows = self.inputs.clone().select(0, poses).swap_dims(0, 1);
        for layer in 0..layers {
            let (size, next) = (self.sizes[layer], self.sizes[layer + 1]);
            let weights = self.array(parameters, 2 * layer, [n, next, size]);
            let sums = rows.clone().matmul(weights.swap_dims(1, 2))
                + self.array(parameters, 2 * layer + 1, [n, 1, next]);
            tape.rows.push(rows);
            if layer + 1 < layers {
                let (rectified, below) = rectify(sums);
                tape.below.push(Some(below));
                rows = rectified;
            } else {
                tape.below.push(None);
                rows = sums;
            }
        }
        let Some(shape) = &self.shape else {
            let vertices = self.sources();
            let offsets = rows.reshape([n, count, vertices, 3]).permute([1, 3, 0, 2]);
            return (offsets.reshape([count, 3, n * vertices]), tape);
        };
        let common = (shape.shared_features > 0)
            .then(|| rows.clone().narrow(2, shape.first_image(), shape.shared_features));
        let image = if shape.shared_features > 0 { rows.narrow(2, 0, shape.first_image()) } else { rows };
        // No rectifier follows what all pixels read.
        let (image, below) = rectify(image);
        tape.image_below = Some(below);
        let mut image = image.reshape([n, count, shape.side * shape.side, shape.channels]);
        for (index, stage) in self.stages.iter().enumerate() {
            let slot = 2 * (layers + index);
            let kernel = self.array(parameters, slot, [n, 9, stage.inputs, stage.outputs]);
            let bias = self.array(parameters, slot + 1, [n, stage.outputs]);
            let (drawn, stage_tape) = stage.forward(image, kernel, bias);
            tape.stages.push(stage_tape);
            image = drawn;
        }
        let (weights, bias) = self.point(shape, parameters);
        let read = Read { features: image, common };
        tape.read = Some(read.clone());
        let mut map = point::forward(shape, read, weights, bias);
        if shape.outputs > 3 {
            map = map.narrow(3, 0, 3);
        }
        (map.permute([1, 3, 0, 2]).reshape([count, 3, n * self.sources()]), tape)
    }

    /// Weights and bias of the 1×1 convolution.
    fn point(&self, shape: &MapShape, parameters: &Tensor<B, 1>) -> (Tensor<B, 4>, Tensor<B, 3>) {
        let slot = 2 * (self.sizes.len() - 1 + self.stages.len());
        let (n, sets) = (self.nets.len(), shape.sets());
        let weights = self.array(parameters, slot, [n, sets, shape.outputs, shape.reads()]);
        (weights, self.array(parameters, slot + 1, [n, sets, shape.outputs]))
    }

    /// Derivatives by all parameters of the group, flat, from those by its sources.
    pub fn backward(
        &self,
        parameters: &Tensor<B, 1>,
        slopes: Tensor<B, 3>,
        tape: GroupTape<B>,
    ) -> Vec<Tensor<B, 1>> {
        let (n, count) = (self.nets.len(), tape.poses);
        let sources = self.sources();
        let slopes = slopes.reshape([count, 3, n, sources]).permute([2, 0, 3, 1]);
        // From the last array to the first.
        let mut out: Vec<Tensor<B, 1>> = Vec::new();
        let flat = |x: Tensor<B, 3>| {
            let size = x.shape().num_elements();
            x.reshape([size])
        };
        let mut rows = match (&self.shape, tape.read.zip(tape.image_below)) {
            (Some(shape), Some((read, below))) => {
                let mut by_map = slopes;
                if shape.outputs > 3 {
                    // Channels of normals are not trained.
                    let rest = Tensor::zeros([n, count, sources, shape.outputs - 3], &by_map.device());
                    by_map = Tensor::cat(vec![by_map, rest], 3);
                }
                let (weights, _) = self.point(shape, parameters);
                let by = point::backward(shape, read, weights, by_map);
                out.extend([by.bias, by.weights]);
                let Read { features: mut image, common } = by.read;
                for (stage, stage_tape) in self.stages.iter().zip(tape.stages).rev() {
                    let by = stage.backward(image, stage_tape);
                    out.extend([by.bias, by.kernel]);
                    image = by.image;
                }
                let image = unrectify(image.reshape([n, count, shape.first_image()]), below);
                match common {
                    Some(common) => Tensor::cat(vec![image, common], 2),
                    None => image,
                }
            }
            _ => slopes.reshape([n, count, 3 * sources]),
        };
        for (layer, (inputs, below)) in tape.rows.into_iter().zip(tape.below).enumerate().rev() {
            let delta = match below {
                Some(below) => unrectify(rows, below),
                None => rows,
            };
            out.push(flat(sum_rows(delta.clone())));
            out.push(flat(delta.clone().swap_dims(1, 2).matmul(inputs)));
            rows = delta;
            if layer > 0 {
                let weights =
                    self.array(parameters, 2 * layer, [n, self.sizes[layer + 1], self.sizes[layer]]);
                rows = rows.matmul(weights);
            }
        }
        out.reverse();
        out
    }
}
