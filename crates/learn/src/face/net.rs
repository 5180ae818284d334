//! One network while it is trained: parameters, passes over a batch of poses, and its step.
//! How parameters lie in their array is said in `parameters`.

use super::parameters::ParameterLayout;
use super::update::{Moments, PixelFactors, Step};
use super::{Recording, rows};
use understudy_core::{Vec2, Vec3, Vec3A};
use understudy_runtime::dense::Kernel;
use understudy_runtime::face::map_decoder::{Images, MapDecoder, MapGradients, MapShape};
use understudy_runtime::face::sample::{self, BilinearSample};
use understudy_runtime::face::{LEAK, NetParts, Stage};

/// What a network draws.
#[derive(Debug, Clone, PartialEq)]
pub enum NetKind {
    /// A map that vertices sample.
    Map {
        /// Its sizes.
        shape: MapShape,
        /// Where each vertex samples, pixels.
        coordinates: Vec<Vec2>,
    },
    /// Three numbers per vertex, the baseline of the paper.
    Dense,
}

/// What a network is to learn.
#[derive(Debug, Clone, PartialEq)]
pub struct NetSpec {
    /// The segment or region.
    pub name: String,
    /// What it adds to.
    pub stage: Stage,
    /// Which vertices of the mesh.
    pub vertices: Vec<u32>,
    /// The controls that it sees.
    pub inputs: Vec<u32>,
    /// Subtracted from each.
    pub mean: Vec<f32>,
    /// Then multiplied.
    pub scale: Vec<f32>,
    /// The size of its offsets, cm: the network speaks in this unit.
    pub unit: f32,
    /// Most hidden units of a network that draws a map, whatever the settings allow.
    pub most_units: usize,
    /// What it draws.
    pub kind: NetKind,
}

impl NetSpec {
    /// What a trained network that draws three channels learned; it speaks in cm.
    pub fn of(net: &NetParts) -> Self {
        Self {
            name: net.name.clone(),
            stage: net.stage,
            vertices: net.vertices.clone(),
            inputs: net.inputs.clone(),
            mean: net.mean.clone(),
            scale: net.scale.clone(),
            unit: 1.0,
            most_units: net.dense.first().map_or(usize::MAX, |layer| layer.bias.len()),
            kind: match &net.map {
                Some(map) => NetKind::Map {
                    shape: MapShape { outputs: 3, ..map.shape },
                    coordinates: map.coordinates.clone(),
                },
                None => NetKind::Dense,
            },
        }
    }
}

/// A network in training.
pub(super) struct TrainNet {
    pub spec: NetSpec,
    /// Its vertices among those of the problem.
    pub members: Vec<u32>,
    layout: ParameterLayout,
    pub parameters: Vec<f32>,
    pub moments: Moments,
    /// The parameters that were best so far.
    pub best: Vec<f32>,
    decoder: Option<(MapDecoder, Vec<BilinearSample>)>,
    /// Outputs of the layers, inputs first, `[poses × size]`.
    outputs: Vec<Vec<f32>>,
    slopes: Vec<Vec<f32>>,
    sums: Option<MapGradients>,
    /// By the parameters that pixels share.
    gradient: Vec<f32>,
    /// The pixels that are drawn, where each has weights of its own.
    pixels: Vec<usize>,
    /// Whether nothing is learned but how pixels read the features.
    frozen: bool,
}

/// Memory in which a network works on one pose.
pub(super) struct PoseTape {
    decoder: Option<DrawingTape>,
    pub offsets: Vec<Vec3>,
    by_offsets: Vec<Vec3>,
}

struct DrawingTape {
    images: Images,
    slopes: Images,
    map: Vec<f32>,
    by_map: Vec<f32>,
}

/// What one pose leaves for one network's step.
pub(super) struct NetHarvest {
    sums: Option<MapGradients>,
    by_numbers: Vec<f32>,
    /// Of pixels with weights of their own, in the decoder's order.
    features: Vec<f32>,
    /// What all of them read.
    shared: Vec<f32>,
    by_pixels: Vec<f32>,
}

impl NetHarvest {
    fn factors(&self) -> PixelFactors<'_> {
        PixelFactors { features: &self.features, shared: &self.shared, slopes: &self.by_pixels }
    }
}

impl TrainNet {
    /// With memory for batches.
    pub fn new(
        spec: NetSpec,
        members: Vec<u32>,
        layout: ParameterLayout,
        parameters: Vec<f32>,
        batch: usize,
    ) -> Self {
        let decoder = match &spec.kind {
            NetKind::Map { shape, coordinates } => {
                let side = shape.map_side();
                let samples: Vec<BilinearSample> =
                    coordinates.iter().map(|c| BilinearSample::at(*c, side)).collect();
                Some((MapDecoder::new(*shape, LEAK, &sample::sampled_pixels(&samples, side)), samples))
            }
            NetKind::Dense => None,
        };
        let buffers = || layout.sizes.iter().map(|size| vec![0.0; batch * size]).collect::<Vec<_>>();
        let gradient = vec![0.0; decoder.as_ref().map_or(0, |(d, _)| d.shared_parameters())];
        let pixels = match &decoder {
            Some((decoder, _)) if decoder.shape().untied => decoder.sampled_pixels(),
            _ => Vec::new(),
        };
        Self {
            outputs: buffers(),
            slopes: buffers(),
            sums: decoder.as_ref().map(|(decoder, _)| decoder.sums()),
            gradient,
            pixels,
            frozen: false,
            moments: Moments::new(parameters.len()),
            best: parameters.clone(),
            spec,
            members,
            layout,
            parameters,
            decoder,
        }
    }

    /// A trained network that learns to read something else off its features: only weights that every pixel has
    /// of its own are learned, from zero.
    pub fn reading(parts: &NetParts, members: Vec<u32>, batch: usize) -> Option<Self> {
        let map = parts.map.as_ref().filter(|map| map.shape.untied)?;
        let spec = NetSpec::of(parts);
        let layout = ParameterLayout::new(&spec, parts.dense.first()?.bias.len());
        let blank = vec![0.0; layout.count()];
        let mut net = Self::new(spec, members, layout, blank, batch);
        let layers = parts.dense.iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
        let convolutions = &map.parameters[..map.shape.convolution_parameters()];
        for (slot, number) in net.parameters.iter_mut().zip(layers.chain(convolutions)) {
            *slot = *number;
        }
        net.best.copy_from_slice(&net.parameters);
        net.frozen = true;
        Some(net)
    }

    /// Memory for one pose.
    pub fn tape(&self) -> PoseTape {
        let tape = |decoder: &MapDecoder| DrawingTape {
            images: decoder.images(),
            slopes: decoder.images(),
            map: decoder.map(),
            by_map: decoder.map(),
        };
        let blank = || vec![Vec3::ZERO; self.members.len()];
        PoseTape {
            decoder: self.decoder.as_ref().map(|(decoder, _)| tape(decoder)),
            offsets: blank(),
            by_offsets: blank(),
        }
    }

    /// Memory for the derivatives of one pose.
    pub fn harvest(&self) -> NetHarvest {
        let numbers = self.layout.sizes[self.layout.layers()];
        let sizes = |(d, _): &(MapDecoder, Vec<BilinearSample>)| {
            [d.shape().hidden, d.shape().shared_features, d.shape().outputs]
        };
        let [hidden, shared, outputs] = self.decoder.as_ref().map_or([0; 3], sizes);
        NetHarvest {
            sums: self.decoder.as_ref().map(|(d, _)| d.sums()),
            by_numbers: vec![0.0; numbers],
            features: vec![0.0; self.pixels.len() * hidden],
            shared: vec![0.0; shared],
            by_pixels: vec![0.0; self.pixels.len() * outputs],
        }
    }

    /// Multiply-adds of a pose, for sharing work.
    pub fn work(&self) -> usize {
        let dense: usize = self.layout.sizes.windows(2).map(|pair| pair[0] * pair[1]).sum();
        dense + self.decoder.as_ref().map_or(0, |(decoder, _)| decoder.multiply_adds())
    }

    /// The dense layers for a batch of poses; the decoder takes the current parameters over.
    pub fn begin(&mut self, poses: &Recording, batch: &[usize]) {
        let inputs = self.layout.sizes[0];
        for (row, pose) in batch.iter().enumerate() {
            let controls = poses.controls_of(*pose);
            let row = &mut self.outputs[0][row * inputs..(row + 1) * inputs];
            let wanted = self.spec.inputs.iter().zip(self.spec.mean.iter().zip(&self.spec.scale));
            for (slot, (input, (mean, scale))) in row.iter_mut().zip(wanted) {
                *slot = (controls[*input as usize] - mean) * scale;
            }
        }
        let poses = batch.len();
        for layer in 0..self.layout.layers() {
            let (size, next) = (self.layout.sizes[layer], self.layout.sizes[layer + 1]);
            let rectified = self.layout.rectified(layer);
            let (before, after) = self.outputs.split_at_mut(layer + 1);
            let out = &mut after[0][..poses * next];
            let range = self.layout.offsets[layer]..self.layout.offsets[layer + 1];
            let (weights, bias) = self.parameters[range].split_at(size * next);
            rows::forward(out, weights, bias, &before[layer], poses, size);
            for row in out.chunks_exact_mut(next) {
                row[..rectified].iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { *x * LEAK });
            }
        }
        if let Some((decoder, _)) = &mut self.decoder {
            decoder.load(&self.parameters[self.layout.drawing_start()..]);
        }
    }

    /// Offsets of the vertices in one pose of the batch, cm.
    pub fn draw(&self, kernel: Kernel, pose: usize, tape: &mut PoseTape) {
        let size = self.layout.sizes[self.layout.layers()];
        let numbers = &self.outputs[self.layout.layers()][pose * size..(pose + 1) * size];
        match (&self.decoder, &mut tape.decoder) {
            (Some((decoder, samples)), Some(DrawingTape { images, map, .. })) => {
                decoder.load_input(numbers, images);
                decoder.forward(kernel, images, map);
                let shape = decoder.shape();
                sample::gather(map, shape.map_side(), shape.outputs, 0, samples, &mut tape.offsets);
                tape.offsets.iter_mut().for_each(|offset| *offset *= self.spec.unit);
            }
            _ => {
                for (offset, three) in tape.offsets.iter_mut().zip(numbers.chunks_exact(3)) {
                    *offset = Vec3::from_slice(three) * self.spec.unit;
                }
            }
        }
    }

    /// From derivatives by the problem's vertices to those by the decoder's parameters and by the dense
    /// layers' outputs.
    pub fn undraw(
        &self,
        kernel: Kernel,
        by_vertices: &[Vec3A],
        tape: &mut PoseTape,
        harvest: &mut NetHarvest,
    ) {
        for (slope, member) in tape.by_offsets.iter_mut().zip(&self.members) {
            *slope = (by_vertices[*member as usize] * self.spec.unit).into();
        }
        let NetHarvest { sums, by_numbers, features, shared, by_pixels } = harvest;
        match (&self.decoder, &mut tape.decoder, sums) {
            (Some((decoder, samples)), Some(tape_of_drawing), Some(sums)) => {
                let DrawingTape { images, slopes, by_map, .. } = tape_of_drawing;
                let shape = decoder.shape();
                by_map.fill(0.0);
                sample::scatter(&tape.by_offsets, shape.map_side(), shape.outputs, 0, samples, by_map);
                if !self.pixels.is_empty() {
                    decoder.factors(images, by_map, features, shared, by_pixels);
                }
                if self.frozen {
                    return;
                }
                decoder.backward(kernel, images, by_map, slopes);
                sums.clear();
                decoder.accumulate(kernel, images, by_map, slopes, sums);
                decoder.store_input_gradients(slopes, by_numbers);
            }
            _ => {
                for (slope, three) in tape.by_offsets.iter().zip(by_numbers.chunks_exact_mut(3)) {
                    three.copy_from_slice(&slope.to_array());
                }
            }
        }
    }

    /// One step down, from what the poses of a batch left behind; sums depend on their order.
    pub fn finish(&mut self, harvests: &[&NetHarvest], step: Step) {
        if !self.frozen {
            self.finish_shared(harvests, step);
        }
        let own = self.layout.drawing_start() + self.gradient.len();
        if let Some((decoder, _)) = self.decoder.as_ref().filter(|_| !self.pixels.is_empty()) {
            let shape = decoder.shape();
            step.apply_pixels(
                &mut self.parameters[own..],
                &self.pixels,
                &harvests.iter().map(|harvest| harvest.factors()).collect::<Vec<_>>(),
                [shape.sets(), shape.outputs, shape.hidden, shape.shared_features],
                &mut self.moments.first[own..],
                &mut self.moments.second[own..],
            );
        }
    }

    /// The step of everything but weights that pixels have of their own.
    fn finish_shared(&mut self, harvests: &[&NetHarvest], step: Step) {
        let poses = harvests.len();
        let slopes = self.slopes.last_mut().expect("there are layers");
        for (pose, harvest) in harvests.iter().enumerate() {
            let size = harvest.by_numbers.len();
            slopes[pose * size..(pose + 1) * size].copy_from_slice(&harvest.by_numbers);
        }
        if let (Some((decoder, _)), Some(sums)) = (&self.decoder, &mut self.sums) {
            sums.clear();
            harvests.iter().filter_map(|harvest| harvest.sums.as_ref()).for_each(|own| sums.add(own));
            decoder.fold(sums, &mut self.gradient);
        }
        for layer in (0..self.layout.layers()).rev() {
            let (size, next) = (self.layout.sizes[layer], self.layout.sizes[layer + 1]);
            let start = self.layout.offsets[layer];
            let (before, after) = self.slopes.split_at_mut(layer + 1);
            let delta = &after[0][..poses * next];
            if layer > 0 {
                let earlier = &mut before[layer][..poses * size];
                let weights = &self.parameters[start..start + size * next];
                rows::backward(earlier, weights, delta, poses, next, size);
                for (d, y) in earlier.iter_mut().zip(&self.outputs[layer]) {
                    *d *= if *y > 0.0 { 1.0 } else { LEAK };
                }
            }
            let end = self.layout.offsets[layer + 1];
            let (weights, bias) = self.parameters[start..end].split_at_mut(size * next);
            let (first, first_bias) = self.moments.first[start..end].split_at_mut(size * next);
            let (second, second_bias) = self.moments.second[start..end].split_at_mut(size * next);
            step.apply_product(
                weights,
                delta,
                &self.outputs[layer][..poses * size],
                next,
                size,
                first,
                second,
            );
            // A bias is the weight of an input that is always one.
            for (output, value) in bias.iter_mut().enumerate() {
                let gradient: f32 = delta.iter().skip(output).step_by(next).sum();
                let (m, v) = (&mut first_bias[output..=output], &mut second_bias[output..=output]);
                step.apply(std::slice::from_mut(value), &[gradient], m, v);
            }
        }
        let (start, own) = (self.layout.drawing_start(), self.layout.drawing_start() + self.gradient.len());
        step.apply(
            &mut self.parameters[start..own],
            &self.gradient,
            &mut self.moments.first[start..own],
            &mut self.moments.second[start..own],
        );
    }

    /// The network for a twin, in cm.
    pub fn parts(&self) -> NetParts {
        self.layout.parts(&self.spec, &self.parameters)
    }
}
