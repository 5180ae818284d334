//! One network while it is trained: parameters, passes over a batch of poses, and its step.
//!
//! Parameters lie in one array: dense layers (weights `[out × in]` by rows, bias), then the drawing's.

use super::update::{Moments, Step};
use super::{FacePoses, rows};
use understudy_core::{Random, Vec2, Vec3, Vec3A};
use understudy_runtime::dense::Kernel;
use understudy_runtime::face::drawing::{Drawing, DrawingShape, DrawingSums, Images};
use understudy_runtime::face::sample::{self, Look};
use understudy_runtime::face::{DenseParts, LEAK, MapParts, NetParts, Stage};

/// What a network draws.
#[derive(Debug, Clone, PartialEq)]
pub enum NetKind {
    /// A map that vertices sample.
    Map {
        /// Its sizes.
        shape: DrawingShape,
        /// Where each vertex looks, pixels.
        coordinates: Vec<Vec2>,
    },
    /// Three numbers a vertex, the baseline of the paper.
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
    /// What it draws.
    pub kind: NetKind,
}

/// A network in training.
pub(super) struct TrainNet {
    pub spec: NetSpec,
    /// Its vertices among those of the problem.
    pub members: Vec<u32>,
    sizes: Vec<usize>,
    offsets: Vec<usize>,
    pub parameters: Vec<f32>,
    pub moments: Moments,
    /// The parameters that were best so far.
    pub best: Vec<f32>,
    drawing: Option<(Drawing, Vec<Look>)>,
    /// Outputs of the layers, inputs first, `[poses × size]`.
    outputs: Vec<Vec<f32>>,
    slopes: Vec<Vec<f32>>,
    sums: Option<DrawingSums>,
    /// By the parameters that pixels share.
    gradient: Vec<f32>,
    /// The pixels that are drawn, where each has weights of its own.
    pixels: Vec<usize>,
}

/// Memory in which a network works on one pose.
pub(super) struct PoseTape {
    drawing: Option<DrawingTape>,
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
    sums: Option<DrawingSums>,
    by_numbers: Vec<f32>,
    /// Of pixels with weights of their own, in the drawing's order.
    features: Vec<f32>,
    by_pixels: Vec<f32>,
}

impl TrainNet {
    /// Weights uniform in the bounds of He et al. 2015 for leaky rectifiers, biases zero, the last layer
    /// ten times smaller: the twin starts near the rest pose.
    pub fn new(spec: NetSpec, members: Vec<u32>, hidden: usize, batch: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (sizes, drawing) = match &spec.kind {
            NetKind::Map { shape, coordinates } => {
                let side = shape.map_side();
                let looks: Vec<Look> = coordinates.iter().map(|c| Look::at(*c, side)).collect();
                let drawing = Drawing::new(*shape, LEAK, &sample::seen(&looks, side));
                (vec![spec.inputs.len(), hidden, shape.first_image()], Some((drawing, looks)))
            }
            NetKind::Dense => (vec![spec.inputs.len(), hidden, hidden, 3 * spec.vertices.len()], None),
        };
        let (mut offsets, mut parameters) = (Vec::new(), Vec::new());
        let bound = |fan: usize| (6.0 / ((1.0 + LEAK * LEAK) * fan.max(1) as f32)).sqrt();
        for (layer, pair) in sizes.windows(2).enumerate() {
            offsets.push(parameters.len());
            let last = drawing.is_none() && layer + 2 == sizes.len();
            let limit = bound(pair[0]) * if last { 0.1 } else { 1.0 };
            parameters.extend((0..pair[0] * pair[1]).map(|_| random.uniform(-limit, limit)));
            parameters.extend(std::iter::repeat_n(0.0, pair[1]));
        }
        offsets.push(parameters.len());
        if let Some((drawing, _)) = &drawing {
            let shape = drawing.shape();
            for convolution in 0..shape.convolutions() {
                let inputs = shape.inputs_of(convolution);
                let limit = bound(9 * inputs);
                parameters.extend((0..shape.hidden * inputs * 9).map(|_| random.uniform(-limit, limit)));
                parameters.extend(std::iter::repeat_n(0.0, shape.hidden));
            }
            // Pixels with weights of their own start alike: what tells them apart is learned.
            let limit = bound(shape.hidden) * 0.1;
            let set: Vec<f32> =
                (0..shape.outputs * shape.hidden).map(|_| random.uniform(-limit, limit)).collect();
            parameters.extend(set.repeat(shape.sets()));
            parameters.extend(std::iter::repeat_n(0.0, shape.sets() * shape.outputs));
        }
        let buffers = || sizes.iter().map(|size| vec![0.0; batch * size]).collect::<Vec<_>>();
        let gradient = vec![0.0; drawing.as_ref().map_or(0, |(d, _)| d.shared_parameters())];
        let pixels = match &drawing {
            Some((drawing, _)) if drawing.shape().untied => drawing.seen_pixels(),
            _ => Vec::new(),
        };
        Self {
            outputs: buffers(),
            slopes: buffers(),
            sums: drawing.as_ref().map(|(drawing, _)| drawing.sums()),
            gradient,
            pixels,
            moments: Moments::new(parameters.len()),
            best: parameters.clone(),
            spec,
            members,
            sizes,
            offsets,
            parameters,
            drawing,
        }
    }

    /// Memory for one pose.
    pub fn tape(&self) -> PoseTape {
        let tape = |drawing: &Drawing| DrawingTape {
            images: drawing.images(),
            slopes: drawing.images(),
            map: drawing.map(),
            by_map: drawing.map(),
        };
        let blank = || vec![Vec3::ZERO; self.members.len()];
        PoseTape {
            drawing: self.drawing.as_ref().map(|(drawing, _)| tape(drawing)),
            offsets: blank(),
            by_offsets: blank(),
        }
    }

    /// Memory for the derivatives of one pose.
    pub fn harvest(&self) -> NetHarvest {
        let numbers = self.sizes[self.layers()];
        let (hidden, outputs) =
            self.drawing.as_ref().map_or((0, 0), |(d, _)| (d.shape().hidden, d.shape().outputs));
        NetHarvest {
            sums: self.drawing.as_ref().map(|(d, _)| d.sums()),
            by_numbers: vec![0.0; numbers],
            features: vec![0.0; self.pixels.len() * hidden],
            by_pixels: vec![0.0; self.pixels.len() * outputs],
        }
    }

    /// Multiply-adds of a pose, for sharing work.
    pub fn work(&self) -> usize {
        let dense: usize = self.sizes.windows(2).map(|pair| pair[0] * pair[1]).sum();
        dense + self.drawing.as_ref().map_or(0, |(drawing, _)| drawing.multiply_adds())
    }

    fn layer(&self, layer: usize) -> (&[f32], &[f32]) {
        let weights = self.sizes[layer] * self.sizes[layer + 1];
        self.parameters[self.offsets[layer]..self.offsets[layer + 1]].split_at(weights)
    }

    fn layers(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Whether a rectifier follows a layer.
    fn rectified(&self, layer: usize) -> bool {
        self.drawing.is_some() || layer + 1 < self.layers()
    }

    /// The dense layers for a batch of poses; the drawing takes the current parameters over.
    pub fn begin(&mut self, poses: &FacePoses<'_>, batch: &[usize]) {
        let inputs = self.sizes[0];
        for (row, pose) in batch.iter().enumerate() {
            let controls = poses.controls_of(*pose);
            let row = &mut self.outputs[0][row * inputs..(row + 1) * inputs];
            let wanted = self.spec.inputs.iter().zip(self.spec.mean.iter().zip(&self.spec.scale));
            for (slot, (input, (mean, scale))) in row.iter_mut().zip(wanted) {
                *slot = (controls[*input as usize] - mean) * scale;
            }
        }
        let poses = batch.len();
        for layer in 0..self.layers() {
            let (size, next) = (self.sizes[layer], self.sizes[layer + 1]);
            let rectified = self.rectified(layer);
            let (before, after) = self.outputs.split_at_mut(layer + 1);
            let out = &mut after[0][..poses * next];
            let range = self.offsets[layer]..self.offsets[layer + 1];
            let (weights, bias) = self.parameters[range].split_at(size * next);
            rows::forward(out, weights, bias, &before[layer], poses, size);
            if rectified {
                out.iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { *x * LEAK });
            }
        }
        if let Some((drawing, _)) = &mut self.drawing {
            drawing.load(&self.parameters[self.offsets[self.sizes.len() - 1]..]);
        }
    }

    /// Offsets of the vertices in one pose of the batch, cm.
    pub fn draw(&self, kernel: Kernel, pose: usize, tape: &mut PoseTape) {
        let size = self.sizes[self.layers()];
        let numbers = &self.outputs[self.layers()][pose * size..(pose + 1) * size];
        match (&self.drawing, &mut tape.drawing) {
            (Some((drawing, looks)), Some(DrawingTape { images, map, .. })) => {
                drawing.fill_first(numbers, images);
                drawing.forward(kernel, images, map);
                let shape = drawing.shape();
                sample::gather(map, shape.map_side(), shape.outputs, 0, looks, &mut tape.offsets);
                tape.offsets.iter_mut().for_each(|offset| *offset *= self.spec.unit);
            }
            _ => {
                for (offset, three) in tape.offsets.iter_mut().zip(numbers.chunks_exact(3)) {
                    *offset = Vec3::from_slice(three) * self.spec.unit;
                }
            }
        }
    }

    /// From derivatives by the problem's vertices to those by the drawing's parameters and by the dense
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
        match (&self.drawing, &mut tape.drawing, &mut harvest.sums) {
            (Some((drawing, looks)), Some(tape_of_drawing), Some(sums)) => {
                let DrawingTape { images, slopes, by_map, .. } = tape_of_drawing;
                let shape = drawing.shape();
                by_map.fill(0.0);
                sample::scatter(&tape.by_offsets, shape.map_side(), shape.outputs, 0, looks, by_map);
                drawing.backward(kernel, images, by_map, slopes);
                sums.clear();
                drawing.accumulate(kernel, images, by_map, slopes, sums);
                if !self.pixels.is_empty() {
                    drawing.factors(images, by_map, &mut harvest.features, &mut harvest.by_pixels);
                }
                drawing.take_first(slopes, &mut harvest.by_numbers);
            }
            _ => {
                for (slope, three) in tape.by_offsets.iter().zip(harvest.by_numbers.chunks_exact_mut(3)) {
                    three.copy_from_slice(&slope.to_array());
                }
            }
        }
    }

    /// One step down, from what the poses of a batch left behind; sums depend on their order.
    pub fn finish(&mut self, harvests: &[&NetHarvest], step: Step) {
        let poses = harvests.len();
        let slopes = self.slopes.last_mut().expect("there are layers");
        for (pose, harvest) in harvests.iter().enumerate() {
            let size = harvest.by_numbers.len();
            slopes[pose * size..(pose + 1) * size].copy_from_slice(&harvest.by_numbers);
        }
        if let (Some((drawing, _)), Some(sums)) = (&self.drawing, &mut self.sums) {
            sums.clear();
            harvests.iter().filter_map(|harvest| harvest.sums.as_ref()).for_each(|own| sums.add(own));
            drawing.fold(sums, &mut self.gradient);
        }
        for layer in (0..self.layers()).rev() {
            let (size, next) = (self.sizes[layer], self.sizes[layer + 1]);
            let start = self.offsets[layer];
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
            let end = self.offsets[layer + 1];
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
        let (start, own) = (self.offsets[self.layers()], self.offsets[self.layers()] + self.gradient.len());
        step.apply(
            &mut self.parameters[start..own],
            &self.gradient,
            &mut self.moments.first[start..own],
            &mut self.moments.second[start..own],
        );
        if let Some((drawing, _)) = self.drawing.as_ref().filter(|_| !self.pixels.is_empty()) {
            let factors: Vec<(&[f32], &[f32])> =
                harvests.iter().map(|harvest| (&harvest.features[..], &harvest.by_pixels[..])).collect();
            step.apply_pixels(
                &mut self.parameters[own..],
                &self.pixels,
                &factors,
                (drawing.shape().sets(), drawing.shape().outputs, drawing.shape().hidden),
                &mut self.moments.first[own..],
                &mut self.moments.second[own..],
            );
        }
    }

    /// The network for a twin, in cm.
    pub fn parts(&self) -> NetParts {
        let unit = self.spec.unit;
        let scaled = |numbers: &[f32], factor: f32| numbers.iter().map(|n| n * factor).collect::<Vec<f32>>();
        let dense = (0..self.layers()).map(|layer| {
            let (weights, bias) = self.layer(layer);
            let factor = if self.rectified(layer) { 1.0 } else { unit };
            DenseParts { weights: scaled(weights, factor), bias: scaled(bias, factor) }
        });
        let map = match &self.spec.kind {
            NetKind::Dense => None,
            NetKind::Map { shape, coordinates } => {
                let mut parameters = self.parameters[self.offsets[self.layers()]..].to_vec();
                let point = &mut parameters[shape.convolution_parameters()..];
                point.iter_mut().for_each(|p| *p *= unit);
                if shape.untied {
                    let (weights, bias) = point.split_at_mut(shape.sets() * shape.outputs * shape.hidden);
                    spread_sets(weights, shape.outputs * shape.hidden, shape.map_side(), &self.pixels);
                    spread_sets(bias, shape.outputs, shape.map_side(), &self.pixels);
                }
                Some(MapParts { shape: *shape, parameters, coordinates: coordinates.clone() })
            }
        };
        NetParts {
            name: self.spec.name.clone(),
            stage: self.spec.stage,
            vertices: self.spec.vertices.clone(),
            inputs: self.spec.inputs.clone(),
            mean: self.spec.mean.clone(),
            scale: self.spec.scale.clone(),
            dense: dense.collect(),
            map,
        }
    }
}

/// Gives pixels that no vertex looks at the mean of their neighbours, ring by ring: vertices of another mesh
/// may look at them. `sets`: `[side²][size]`.
fn spread_sets(sets: &mut [f32], size: usize, side: usize, seen: &[usize]) {
    let mut known = vec![false; side * side];
    seen.iter().for_each(|pixel| known[*pixel] = true);
    let mut ring: Vec<usize> = Vec::new();
    while !seen.is_empty() && known.contains(&false) {
        ring.clear();
        for pixel in (0..side * side).filter(|pixel| !known[*pixel]) {
            let (row, column) = (pixel / side, pixel % side);
            let rows = row.saturating_sub(1)..=(row + 1).min(side - 1);
            let near = rows.flat_map(|r| {
                (column.saturating_sub(1)..=(column + 1).min(side - 1)).map(move |c| r * side + c)
            });
            let near: Vec<usize> = near.filter(|other| known[*other]).collect();
            if near.is_empty() {
                continue;
            }
            for number in 0..size {
                let sum: f32 = near.iter().map(|other| sets[other * size + number]).sum();
                sets[pixel * size + number] = sum / near.len() as f32;
            }
            ring.push(pixel);
        }
        ring.iter().for_each(|pixel| known[*pixel] = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_that_nobody_sees_take_after_their_neighbours() {
        let mut sets = vec![0.0f32; 2 * 16];
        for (pixel, value) in [(0usize, 2.0f32), (15, 6.0)] {
            sets[2 * pixel..2 * pixel + 2].fill(value);
        }
        spread_sets(&mut sets, 2, 4, &[0, 15]);
        let of = |pixel: usize| sets[2 * pixel];
        assert_eq!((of(0), of(15), of(1), of(14)), (2.0, 6.0, 2.0, 6.0));
        // Between both: the mean of its neighbours.
        assert!(sets.iter().all(|value| (2.0..=6.0).contains(value)));
        assert!((of(3) - 4.0).abs() < 2.0 && of(5) < of(10));
    }
}
