//! A network's convolutions: an image of dense numbers grows, by nearest upsampling and 3×3 convolutions,
//! into a map of offsets. Only pixels that some vertex samples are evaluated. Start at [`MapDecoder`].
//!
//! A 3×3 convolution after nearest ×2 upsampling is four 2×2 convolutions of the small image, one for each
//! parity of the output pixel: with kernel rows `k₀ k₁ k₂`, even output rows see `k₀` above and `k₁ + k₂`
//! at their own row, odd ones `k₀ + k₁` and then `k₂` below; columns alike. That is 4/9 of the work.

use super::point::Point;
use super::stencil::tiled::{Kind, TiledConvolution};
use super::stencil::{self, After, Places, Stencil, stride};
use crate::dense::{Kernel, Precision};
use serde::{Deserialize, Serialize};

/// Far beyond any map of ours: a file of a few bytes must not ask for more.
const MOST_PARAMETERS: usize = 1 << 24;

/// Sizes of a network that decodes a map. Defaults are those of a coarse network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapShape {
    /// Side of the first image, pixels.
    pub side: usize,
    /// Channels of the first image.
    pub channels: usize,
    /// Channels of all further images.
    pub hidden: usize,
    /// How often the image doubles; each time a convolution follows, and one more at the end.
    pub doublings: usize,
    /// Channels of the map: an offset, and a normal where the twin carries them.
    pub outputs: usize,
    /// Whether every pixel of the map reads the features with weights of its own. The paper's are shared.
    #[serde(default)]
    pub untied: bool,
    /// Dense numbers that every pixel of the map reads besides its features, with weights of its own: large
    /// motions need not come from convolutions. No rectifier follows them: they are to be the principal
    /// components of what the vertices do, or a turn of these. The paper has none.
    #[serde(default, alias = "common")]
    pub shared_features: usize,
}

impl Default for MapShape {
    fn default() -> Self {
        Self { side: 8, channels: 8, hidden: 16, doublings: 2, outputs: 3, untied: false, shared_features: 0 }
    }
}

impl MapShape {
    /// The sizes of a refinement network: a map of 64×64.
    pub fn refinement() -> Self {
        Self { doublings: 3, ..Self::default() }
    }

    /// Side of the map, pixels.
    pub fn map_side(&self) -> usize {
        self.side << self.doublings
    }

    /// Numbers of the first image.
    pub fn first_image(&self) -> usize {
        self.side * self.side * self.channels
    }

    /// Numbers that the dense layers give: the first image, then the shared features.
    pub fn dense_numbers(&self) -> usize {
        self.first_image() + self.shared_features
    }

    /// Numbers that a pixel of the map reads: its features, then the shared features.
    pub fn reads(&self) -> usize {
        self.hidden + self.shared_features
    }

    /// Convolutions with 3×3 kernels.
    pub fn convolutions(&self) -> usize {
        self.doublings + 1
    }

    /// Input channels of a convolution.
    pub fn inputs_of(&self, convolution: usize) -> usize {
        if convolution == 0 { self.channels } else { self.hidden }
    }

    /// Numbers of all parameters: per convolution weights `[out][in][3][3]` and bias `[out]`, then the
    /// 1×1 convolution, weights `[sets][outputs][hidden + shared_features]` and bias `[sets][outputs]`.
    pub fn parameter_count(&self) -> usize {
        self.convolution_parameters() + self.sets() * self.outputs * (self.reads() + 1)
    }

    /// Numbers of the parameters before the 1×1 convolution.
    pub fn convolution_parameters(&self) -> usize {
        (0..self.convolutions()).map(|c| self.hidden * (9 * self.inputs_of(c) + 1)).sum()
    }

    /// Sets of weights of the 1×1 convolution: one, or one a pixel of the map.
    pub fn sets(&self) -> usize {
        if self.untied { self.map_side().pow(2) } else { 1 }
    }

    /// Whether sizes are small enough to be a network of ours and not a slip or an attack.
    pub fn is_sane(&self) -> bool {
        let small = |size: usize, most: usize| (1..=most).contains(&size);
        small(self.side, 64)
            && small(self.channels, 64)
            && small(self.hidden, 64)
            && self.doublings <= 5
            && self.map_side() >= 2
            && small(self.map_side(), 512)
            && (self.outputs == 3 || self.outputs == 6)
            && (self.shared_features == 0 || (self.untied && self.shared_features <= 256))
            && self.parameter_count() <= MOST_PARAMETERS
    }

    /// Numbers of a stored image: a frame of one pixel of zeros around it.
    fn image_len(&self, side: usize, channels: usize) -> usize {
        (side + 2) * (side + 2) * stride(channels)
    }
}

/// One convolution of a decoder with its pixels.
#[derive(Debug, Clone, PartialEq)]
struct Convolution {
    /// Four parities after an upsampling, one stencil without.
    forward: Vec<(Stencil, Places)>,
    /// The same as a single stencil with fewer products, where that is worth it.
    tiled: Option<TiledConvolution>,
    /// From derivatives by the output to derivatives by the input; `None` where a decoder only evaluates.
    backward: Option<(Stencil, Places)>,
}

/// The convolutions of a network and the pixels at which they are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct MapDecoder {
    shape: MapShape,
    slope: f32,
    convolutions: Vec<Convolution>,
    /// Pixels of the map that are evaluated: where their features stand, and where the map has them.
    sampled: Vec<[u32; 2]>,
    point: Point,
    multiply_adds: usize,
}

/// Images of one pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Images {
    /// The first, then the output of every stage.
    layers: Vec<Vec<f32>>,
    /// Shared features, padded with zeros.
    shared_features: Vec<f32>,
}

impl Images {
    /// All zero again.
    pub fn clear(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.fill(0.0));
        self.shared_features.fill(0.0);
    }
}

/// Numbers per pixel of the map: offset, normal where there is one, padding.
pub fn map_stride(outputs: usize) -> usize {
    outputs.next_multiple_of(4)
}

/// Lanes of shared features.
fn shared_stride(shared_features: usize) -> usize {
    shared_features.next_multiple_of(8)
}

/// The frame of zeros moves every pixel by one.
fn pixel(side: usize, stride: usize, row: usize, column: usize) -> u32 {
    ((row * (side + 2) + column) * stride) as u32
}

impl MapDecoder {
    /// Weights are zero until [`MapDecoder::load`]. `sampled`: for every pixel of the map whether it is wanted.
    ///
    /// # Panics
    /// When `sampled` is not the map's size.
    pub fn new(shape: MapShape, slope: f32, sampled: &[bool]) -> Self {
        let map = shape.map_side();
        assert_eq!(sampled.len(), map * map, "one answer per pixel");
        let hidden = stride(shape.hidden);
        let places = sampled.iter().enumerate().filter(|(_, sampled)| **sampled);
        let place = |(index, _): (usize, &bool)| {
            let (row, column) = (index / map, index % map);
            [pixel(map, hidden, row + 1, column + 1), (index * map_stride(shape.outputs)) as u32]
        };
        let evaluated = places.map(place).collect();
        let mut wanted = sampled.to_vec();
        let mut convolutions = vec![plain(&shape, &mut wanted)];
        for convolution in (0..shape.doublings).rev() {
            convolutions.push(doubling(&shape, convolution, &mut wanted));
        }
        convolutions.reverse();
        let sampled: Vec<[u32; 2]> = evaluated;
        let point = Point::new(
            shape.outputs,
            [hidden, shared_stride(shape.shared_features)],
            shape.untied.then_some(sampled.len()),
        );
        let stencils = convolutions.iter().flat_map(|convolution| &convolution.forward);
        let sums = |(s, p): &(Stencil, Places)| p.len() * s.taps().len() * s.inputs() * s.outputs();
        let multiply_adds = stencils.map(sums).sum::<usize>() + sampled.len() * point.work();
        Self { shape, slope, convolutions, sampled, point, multiply_adds }
    }

    /// A decoder with these parameters that only goes forwards: of every weight it keeps the one form that this kernel
    /// reads, and in 16 bits what pixels have of their own. It cannot load others.
    pub(super) fn for_evaluation(
        shape: MapShape,
        slope: f32,
        sampled: &[bool],
        parameters: &[f32],
        precision: Precision,
        kernel: Kernel,
    ) -> Self {
        let mut decoder = Self::new(shape, slope, sampled);
        decoder.load(parameters);
        for convolution in &mut decoder.convolutions {
            convolution.backward = None;
            if kernel != Kernel::REFERENCE && convolution.tiled.is_some() {
                convolution.forward = Vec::new();
            } else {
                convolution.tiled = None;
            }
        }
        if precision == Precision::Half {
            decoder.point.store_f16();
        }
        decoder
    }

    /// Weights, then biases, that sampled pixels have of their own, pixel after pixel: as files keep them.
    pub(super) fn pixel_weights(&self) -> Vec<f32> {
        let (outputs, hidden, shared) = (self.shape.outputs, self.shape.hidden, self.shape.shared_features);
        let [features, lanes] = self.point.lanes();
        let mut out = Vec::with_capacity(self.sampled.len() * outputs * (self.shape.reads() + 1));
        for row in (0..self.sampled.len() * outputs).map(|row| row * lanes) {
            let read = (row..row + hidden).chain(row + features..row + features + shared);
            out.extend(read.map(|place| self.point.weight(place)));
        }
        out.extend_from_slice(&self.point.bias);
        out
    }

    /// Its sizes.
    pub fn shape(&self) -> &MapShape {
        &self.shape
    }

    /// Multiply-adds of one map as it is written down; the fast kernel does fewer.
    pub fn multiply_adds(&self) -> usize {
        self.multiply_adds
    }

    /// Images for one pass, zero.
    pub fn images(&self) -> Images {
        let mut out = vec![vec![0.0; self.shape.image_len(self.shape.side, self.shape.channels)]];
        for convolution in 0..self.shape.convolutions() {
            let side = self.shape.side << (convolution + 1).min(self.shape.doublings);
            out.push(vec![0.0; self.shape.image_len(side, self.shape.hidden)]);
        }
        Images { layers: out, shared_features: vec![0.0; shared_stride(self.shape.shared_features)] }
    }

    /// A map, zero.
    pub fn map(&self) -> Vec<f32> {
        vec![0.0; self.shape.map_side().pow(2) * map_stride(self.shape.outputs)]
    }

    /// Takes parameters over, in the order of [`MapShape::parameter_count`]. Allocates nothing.
    ///
    /// # Panics
    /// When there are not that many.
    pub fn load(&mut self, parameters: &[f32]) {
        assert_eq!(parameters.len(), self.shape.parameter_count(), "all parameters");
        let hidden = self.shape.hidden;
        let mut rest = parameters;
        for (convolution, stage) in self.convolutions.iter_mut().enumerate() {
            let inputs = self.shape.inputs_of(convolution);
            let (weights, after) = rest.split_at(hidden * inputs * 9);
            let (bias, after) = after.split_at(hidden);
            rest = after;
            let kernels = weights.as_chunks::<9>().0;
            for (stencil, _) in &mut stage.forward {
                stencil.bias_mut()[..hidden].copy_from_slice(bias);
            }
            if let Some(tiled) = &mut stage.tiled {
                tiled.set_bias(bias);
            }
            for output in 0..hidden {
                for input in 0..inputs {
                    let kernel = &kernels[output * inputs + input];
                    stage.set(output, input, kernel);
                }
            }
        }
        let (outputs, reads) = (self.shape.outputs, self.shape.reads());
        let [features, lanes] = self.point.lanes();
        let (weights, bias) = rest.split_at(self.shape.sets() * outputs * reads);
        let pixels = self.sampled_pixels();
        let sets: &mut dyn Iterator<Item = usize> =
            if self.shape.untied { &mut pixels.into_iter() } else { &mut std::iter::once(0) };
        let own = self.point.weights.chunks_exact_mut(outputs * lanes);
        for (set, (own, own_bias)) in sets.zip(own.zip(self.point.bias.chunks_exact_mut(outputs))) {
            let rows = weights[set * outputs * reads..].chunks_exact(reads);
            for (row, weights) in own.chunks_exact_mut(lanes).zip(rows) {
                row[..hidden].copy_from_slice(&weights[..hidden]);
                row[features..features + self.shape.shared_features].copy_from_slice(&weights[hidden..]);
            }
            own_bias.copy_from_slice(&bias[set * outputs..(set + 1) * outputs]);
        }
    }

    /// The pixels of the map that are evaluated, by number, in their order.
    pub fn sampled_pixels(&self) -> Vec<usize> {
        let stride = map_stride(self.shape.outputs);
        self.sampled.iter().map(|[_, place]| *place as usize / stride).collect()
    }

    /// After [`MapDecoder::forward`] and [`MapDecoder::backward`], for weights that every pixel has of its own:
    /// the factors of the derivative of each sampled pixel, features `[sampled][hidden]`, shared features
    /// `[shared_features]`, and derivatives by the map `[sampled][outputs]`.
    pub fn factors(
        &self,
        images: &Images,
        by_map: &[f32],
        features: &mut [f32],
        shared_features: &mut [f32],
        slopes: &mut [f32],
    ) {
        let (hidden, outputs) = (self.shape.hidden, self.shape.outputs);
        shared_features.copy_from_slice(&images.shared_features[..self.shape.shared_features]);
        let image = images.layers.last().expect("there are images");
        let out = features.chunks_exact_mut(hidden).zip(slopes.chunks_exact_mut(outputs));
        for (&[from, to], (features, slopes)) in self.sampled.iter().zip(out) {
            features.copy_from_slice(&image[from as usize..from as usize + hidden]);
            slopes.copy_from_slice(&by_map[to as usize..to as usize + outputs]);
        }
    }

    /// Takes dense numbers over: `[side][side][channels]` of the first image, then shared features.
    pub fn load_input(&self, numbers: &[f32], images: &mut Images) {
        let (side, channels) = (self.shape.side, self.shape.channels);
        let lanes = stride(channels);
        for (index, values) in numbers.chunks_exact(channels).take(side * side).enumerate() {
            let start = pixel(side, lanes, index / side + 1, index % side + 1) as usize;
            images.layers[0][start..start + channels].copy_from_slice(values);
        }
        let shared_features = &numbers[self.shape.first_image()..self.shape.dense_numbers()];
        images.shared_features[..shared_features.len()].copy_from_slice(shared_features);
    }

    /// Gives derivatives by dense numbers, in their order, from images of derivatives.
    pub fn store_input_gradients(&self, images: &Images, numbers: &mut [f32]) {
        let (side, channels) = (self.shape.side, self.shape.channels);
        let lanes = stride(channels);
        for (index, values) in numbers.chunks_exact_mut(channels).take(side * side).enumerate() {
            let start = pixel(side, lanes, index / side + 1, index % side + 1) as usize;
            values.copy_from_slice(&images.layers[0][start..start + channels]);
        }
        let shared_features = &mut numbers[self.shape.first_image()..self.shape.dense_numbers()];
        shared_features.copy_from_slice(&images.shared_features[..self.shape.shared_features]);
    }

    /// Evaluates the map from the first image. All images keep what the backward pass needs.
    pub fn forward(&self, kernel: Kernel, images: &mut Images, map: &mut [f32]) {
        for (index, stage) in self.convolutions.iter().enumerate() {
            let (before, after) = images.layers.split_at_mut(index + 1);
            stage.forward(kernel, &before[index], &mut after[0], self.slope);
        }
        let features = images.layers.last().expect("there are images");
        self.point.forward(kernel, &self.sampled, features, &images.shared_features, map);
    }

    /// From derivatives by the map to derivatives by the first image. `slopes`: images of derivatives, zero
    /// at pixels that this decoder does not evaluate (as [`MapDecoder::images`] gives them).
    pub fn backward(&self, kernel: Kernel, images: &Images, by_map: &[f32], slopes: &mut Images) {
        let features = images.layers.last().expect("there are images");
        let last = slopes.layers.last_mut().expect("as many slopes");
        self.point.backward(
            kernel,
            &self.sampled,
            self.slope,
            features,
            by_map,
            last,
            &mut slopes.shared_features,
        );
        for (index, stage) in self.convolutions.iter().enumerate().rev() {
            let (before, after) = slopes.layers.split_at_mut(index + 1);
            let (stencil, places) = stage.backward.as_ref().expect("made for derivatives too");
            stencil.apply(
                kernel,
                &after[0],
                places,
                &mut before[index],
                After::Slope(self.slope, &images.layers[index]),
            );
        }
    }

    /// After [`MapDecoder::backward`]: adds the derivatives by all shared parameters, as the stencils have them.
    pub fn accumulate(
        &self,
        kernel: Kernel,
        images: &Images,
        by_map: &[f32],
        slopes: &Images,
        sums: &mut MapGradients,
    ) {
        let mut own = sums.stencils.iter_mut();
        for (index, stage) in self.convolutions.iter().enumerate() {
            for ((stencil, places), (weights, bias)) in stage.forward.iter().zip(own.by_ref()) {
                let (image, by_image) = (&images.layers[index], &slopes.layers[index + 1]);
                stencil.accumulate(kernel, image, places, by_image, weights, bias);
            }
        }
        if let Some(sums) = &mut sums.point {
            let features = images.layers.last().expect("there are images");
            self.point.accumulate(kernel, &self.sampled, features, by_map, sums);
        }
    }

    /// Sums for [`MapDecoder::accumulate`], zero.
    pub fn sums(&self) -> MapGradients {
        let stencils = self.convolutions.iter().flat_map(|stage| &stage.forward);
        let zero = |(s, _): &(Stencil, Places)| (vec![0.0; s.weights().len()], vec![0.0; s.outputs()]);
        MapGradients {
            stencils: stencils.map(zero).collect(),
            point: (!self.shape.untied)
                .then(|| Point::new(self.shape.outputs, [stride(self.shape.hidden), 0], None)),
        }
    }

    /// Numbers of the parameters that pixels share: all but weights that each has of its own.
    pub fn shared_parameters(&self) -> usize {
        if self.shape.untied { self.shape.convolution_parameters() } else { self.shape.parameter_count() }
    }

    /// Derivatives by all shared parameters in their order, from those by the stencils.
    ///
    /// # Panics
    /// When `out` is not as long as there are shared parameters.
    pub fn fold(&self, sums: &MapGradients, out: &mut [f32]) {
        assert_eq!(out.len(), self.shared_parameters(), "all shared parameters");
        out.fill(0.0);
        let hidden = self.shape.hidden;
        let mut own = sums.stencils.iter();
        let mut rest = out;
        for (index, stage) in self.convolutions.iter().enumerate() {
            let inputs = self.shape.inputs_of(index);
            let (weights, after) = rest.split_at_mut(hidden * inputs * 9);
            let (bias, after) = after.split_at_mut(hidden);
            rest = after;
            let kernels = weights.as_chunks_mut::<9>().0;
            let doubled = stage.forward.len() == 4;
            for (parity, ((stencil, _), (by_weights, by_bias))) in
                stage.forward.iter().zip(own.by_ref()).enumerate()
            {
                bias.iter_mut().zip(by_bias).for_each(|(sum, d)| *sum += d);
                for tap in 0..stencil.taps().len() {
                    for input in 0..inputs {
                        for output in 0..hidden {
                            let slope = by_weights[stencil.place(tap, input, output)];
                            spread(doubled, parity, tap, slope, &mut kernels[output * inputs + input]);
                        }
                    }
                }
            }
        }
        if let Some(point) = &sums.point {
            let lanes = stride(hidden);
            let (weights, bias) = rest.split_at_mut(self.shape.outputs * hidden);
            for (row, own) in weights.chunks_exact_mut(hidden).zip(point.weights.chunks_exact(lanes)) {
                row.copy_from_slice(&own[..hidden]);
            }
            bias.copy_from_slice(&point.bias);
        }
    }
}

/// Derivatives by the weights of all stencils.
#[derive(Debug, Clone, PartialEq)]
pub struct MapGradients {
    /// Weights and bias of every stencil, stage by stage.
    stencils: Vec<(Vec<f32>, Vec<f32>)>,
    /// Of the 1×1 convolution, where its weights are shared.
    point: Option<Point>,
}

impl MapGradients {
    fn arrays(&mut self) -> impl Iterator<Item = &mut Vec<f32>> {
        let stencils = self.stencils.iter_mut().flat_map(|(weights, bias)| [weights, bias]);
        let point = self.point.iter_mut().flat_map(|point| [&mut point.weights, &mut point.bias]);
        stencils.chain(point)
    }

    /// Back to zero.
    pub fn clear(&mut self) {
        self.arrays().for_each(|array| array.fill(0.0));
    }

    /// Adds other sums of the same decoder.
    pub fn add(&mut self, other: &Self) {
        let others = other.stencils.iter().flat_map(|(weights, bias)| [weights, bias]);
        let others = others.chain(other.point.iter().flat_map(|point| [&point.weights, &point.bias]));
        for (own, other) in self.arrays().zip(others) {
            own.iter_mut().zip(other).for_each(|(a, b)| *a += b);
        }
    }
}

/// Kernel rows (or columns) that an output of a parity sees through its first and second tap.
const PARITY_ROWS: [[&[usize]; 2]; 2] = [[&[0], &[1, 2]], [&[0, 1], &[2]]];
/// Kernel rows by which one small pixel reaches the four output rows around it.
const REACHED_ROWS: [&[usize]; 4] = [&[2], &[1, 2], &[0, 1], &[0]];

/// Adds the derivative by a stencil's weight to the 3×3 kernel that it was made of.
fn spread(doubled: bool, parity: usize, tap: usize, slope: f32, kernel: &mut [f32; 9]) {
    if !doubled {
        kernel[tap] += slope;
        return;
    }
    for row in PARITY_ROWS[parity / 2][tap / 2] {
        for column in PARITY_ROWS[parity % 2][tap % 2] {
            kernel[row * 3 + column] += slope;
        }
    }
}

impl Convolution {
    /// Sums at all its pixels, and a leaky rectifier.
    fn forward(&self, kernel: Kernel, x: &[f32], y: &mut [f32], slope: f32) {
        if let (Some(tiled), true) = (&self.tiled, kernel != Kernel::REFERENCE) {
            return tiled.apply(kernel, x, y, slope);
        }
        for (stencil, places) in &self.forward {
            stencil.apply(kernel, x, places, y, After::Leaky(slope));
        }
    }

    /// Takes one 3×3 kernel over.
    fn set(&mut self, output: usize, input: usize, kernel: &[f32; 9]) {
        if let Some(tiled) = &mut self.tiled {
            tiled.set(output, input, kernel);
        }
        let sum = |rows: &[usize], columns: &[usize]| -> f32 {
            rows.iter().map(|row| columns.iter().map(|column| kernel[row * 3 + column]).sum::<f32>()).sum()
        };
        if self.forward.len() == 1 {
            for tap in 0..9 {
                self.forward[0].0.set(tap, input, output, kernel[tap]);
                // Backwards the kernel is turned by half a turn.
                if let Some((backward, _)) = &mut self.backward {
                    backward.set(8 - tap, output, input, kernel[tap]);
                }
            }
            return;
        }
        for (parity, (stencil, _)) in self.forward.iter_mut().enumerate() {
            for tap in 0..4 {
                let weight = sum(PARITY_ROWS[parity / 2][tap / 2], PARITY_ROWS[parity % 2][tap % 2]);
                stencil.set(tap, input, output, weight);
            }
        }
        for tap in 0..16 {
            let weight = sum(REACHED_ROWS[tap / 4], REACHED_ROWS[tap % 4]);
            if let Some((backward, _)) = &mut self.backward {
                backward.set(tap, output, input, weight);
            }
        }
    }
}

/// Taps of a square window whose corner is the place itself.
fn window(size: usize, side: usize, stride: usize) -> Vec<u32> {
    (0..size * size).map(|tap| pixel(side, stride, tap / size, tap % size)).collect()
}

/// A convolution with fewer products, where its sizes are the usual ones. `wanted`: pixels at which it is evaluated.
fn tiled(kind: Kind, shape: &MapShape, convolution: usize, wanted: &[bool]) -> Option<TiledConvolution> {
    let side = shape.side << (convolution + 1).min(shape.doublings);
    let inputs = shape.inputs_of(convolution);
    let usual = stride(inputs) == stencil::LANES && stride(shape.hidden) == stencil::LANES;
    usual.then(|| TiledConvolution::new(kind, inputs, side, wanted)).flatten()
}

/// The last convolution, at the map's size. `wanted` becomes what it reads.
fn plain(shape: &MapShape, wanted: &mut Vec<bool>) -> Convolution {
    let side = shape.map_side();
    let inputs = shape.inputs_of(shape.doublings);
    let (from, to) = (stride(inputs), stride(shape.hidden));
    let mut read = vec![false; side * side];
    let mut forward = Vec::new();
    let tiled = tiled(Kind::Plain, shape, shape.doublings, wanted);
    for index in (0..side * side).filter(|index| wanted[*index]) {
        let (row, column) = (index / side, index % side);
        forward.push([pixel(side, from, row, column), pixel(side, to, row + 1, column + 1)]);
        for near_row in row.saturating_sub(1)..=(row + 1).min(side - 1) {
            for near_column in column.saturating_sub(1)..=(column + 1).min(side - 1) {
                read[near_row * side + near_column] = true;
            }
        }
    }
    let mut backward = Vec::new();
    for index in (0..side * side).filter(|index| read[*index]) {
        let (row, column) = (index / side, index % side);
        backward.push([pixel(side, to, row, column), pixel(side, from, row + 1, column + 1)]);
    }
    *wanted = read;
    Convolution {
        forward: vec![(Stencil::new(window(3, side, from), inputs, shape.hidden), Places::new(forward))],
        tiled,
        backward: Some((Stencil::new(window(3, side, to), shape.hidden, inputs), Places::new(backward))),
    }
}

/// A doubling and the convolution after it. `wanted`, at the doubled size, becomes what it reads.
fn doubling(shape: &MapShape, convolution: usize, wanted: &mut Vec<bool>) -> Convolution {
    let small = shape.side << convolution;
    let large = 2 * small;
    let inputs = shape.inputs_of(convolution);
    let (from, to) = (stride(inputs), stride(shape.hidden));
    let mut read = vec![false; small * small];
    let tiled = tiled(Kind::Doubled, shape, convolution, wanted);
    let mut forward: [Vec<[u32; 2]>; 4] = Default::default();
    for index in (0..large * large).filter(|index| wanted[*index]) {
        let (row, column) = (index / large, index % large);
        let (first_row, first_column) = (row / 2 + row % 2, column / 2 + column % 2);
        let place = [pixel(small, from, first_row, first_column), pixel(large, to, row + 1, column + 1)];
        forward[row % 2 * 2 + column % 2].push(place);
        for tap in 0..4 {
            // In framed coordinates a pixel is one further.
            let (row, column) = (first_row + tap / 2, first_column + tap % 2);
            if (1..=small).contains(&row) && (1..=small).contains(&column) {
                read[(row - 1) * small + column - 1] = true;
            }
        }
    }
    let mut backward = Vec::new();
    for index in (0..small * small).filter(|index| read[*index]) {
        let (row, column) = (index / small, index % small);
        backward.push([pixel(large, to, 2 * row, 2 * column), pixel(small, from, row + 1, column + 1)]);
    }
    *wanted = read;
    let parity = |pairs: Vec<[u32; 2]>| {
        (Stencil::new(window(2, small, from), inputs, shape.hidden), Places::new(pairs))
    };
    Convolution {
        forward: forward.map(parity).into(),
        tiled,
        backward: Some((Stencil::new(window(4, large, to), shape.hidden, inputs), Places::new(backward))),
    }
}
