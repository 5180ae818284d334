//! How the parameters of one network lie in one array, what they begin as and what becomes of them in a
//! twin. Every way of training shares it: a state can be handed from one to another.
//!
//! Dense layers come first (weights `[out × in]` by rows, bias), then the drawing's.

use super::net::{NetKind, NetSpec};
use understudy_core::Random;
use understudy_runtime::face::drawing::DrawingShape;
use understudy_runtime::face::sample::{self, Look};
use understudy_runtime::face::{DenseParts, LEAK, MapParts, NetParts};

/// Hidden units an input: a network that sees few controls is narrower.
const UNITS: usize = 4;
/// Narrower networks save nothing that counts.
const NARROWEST: usize = 64;

/// The array of one network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParameterLayout {
    /// Sizes of the dense layers' inputs and of the last one's outputs.
    pub sizes: Vec<usize>,
    /// Where each dense layer begins, and where they end.
    pub offsets: Vec<usize>,
    /// What is drawn after the dense layers.
    pub shape: Option<DrawingShape>,
}

impl ParameterLayout {
    /// `hidden`: width of the dense layers, at most.
    pub fn new(spec: &NetSpec, hidden: usize) -> Self {
        let (sizes, shape) = match &spec.kind {
            NetKind::Map { shape, .. } => {
                // What few controls move has little to say.
                let enough = (UNITS * spec.inputs.len()).next_multiple_of(16).max(NARROWEST);
                (vec![spec.inputs.len(), hidden.min(enough), shape.first_image()], Some(*shape))
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

    /// Whether a rectifier follows a dense layer.
    pub fn rectified(&self, layer: usize) -> bool {
        self.shape.is_some() || layer + 1 < self.layers()
    }

    /// Numbers of all parameters.
    pub fn count(&self) -> usize {
        self.drawing_start() + self.shape.map_or(0, |shape| shape.parameter_count())
    }

    /// Where the drawing's parameters begin.
    pub fn drawing_start(&self) -> usize {
        self.offsets[self.layers()]
    }

    /// Weights uniform in the bounds of He et al. 2015 for leaky rectifiers, biases zero, the last layer
    /// ten times smaller: the twin starts near the rest pose.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        let mut parameters = Vec::with_capacity(self.count());
        let bound = |fan: usize| (6.0 / ((1.0 + LEAK * LEAK) * fan.max(1) as f32)).sqrt();
        let mut add = |weights: usize, bias: usize, limit: f32| {
            parameters.extend((0..weights).map(|_| random.uniform(-limit, limit)));
            parameters.extend(std::iter::repeat_n(0.0, bias));
        };
        for (layer, pair) in self.sizes.windows(2).enumerate() {
            let limit = bound(pair[0]) * if self.rectified(layer) { 1.0 } else { 0.1 };
            add(pair[0] * pair[1], pair[1], limit);
        }
        if let Some(shape) = &self.shape {
            for convolution in 0..shape.convolutions() {
                let inputs = shape.inputs_of(convolution);
                add(shape.hidden * inputs * 9, shape.hidden, bound(9 * inputs));
            }
            add(shape.outputs * shape.hidden, 0, bound(shape.hidden) * 0.1);
            // Pixels with weights of their own start alike: what tells them apart is learned.
            let set = parameters[parameters.len() - shape.outputs * shape.hidden..].to_vec();
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
            let factor = if self.rectified(layer) { 1.0 } else { unit };
            DenseParts { weights: scaled(weights, factor), bias: scaled(bias, factor) }
        });
        let map = match &spec.kind {
            NetKind::Dense => None,
            NetKind::Map { shape, coordinates } => {
                let mut parameters = parameters[self.drawing_start()..].to_vec();
                let point = &mut parameters[shape.convolution_parameters()..];
                point.iter_mut().for_each(|p| *p *= unit);
                if shape.untied {
                    let side = shape.map_side();
                    let looks: Vec<Look> = coordinates.iter().map(|c| Look::at(*c, side)).collect();
                    let seen = sample::seen(&looks, side);
                    let (weights, bias) = point.split_at_mut(shape.sets() * shape.outputs * shape.hidden);
                    spread_sets(weights, shape.outputs * shape.hidden, side, &seen);
                    spread_sets(bias, shape.outputs, side, &seen);
                }
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

/// Gives pixels that no vertex looks at the mean of their neighbours, ring by ring: vertices of another mesh
/// may look at them. `sets`: `[side²][size]`.
fn spread_sets(sets: &mut [f32], size: usize, side: usize, seen: &[bool]) {
    let mut known = seen.to_vec();
    let mut ring: Vec<usize> = Vec::new();
    while known.contains(&true) && known.contains(&false) {
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
        let mut seen = [false; 16];
        (seen[0], seen[15]) = (true, true);
        spread_sets(&mut sets, 2, 4, &seen);
        let of = |pixel: usize| sets[2 * pixel];
        assert_eq!((of(0), of(15), of(1), of(14)), (2.0, 6.0, 2.0, 6.0));
        // Between both: the mean of its neighbours.
        assert!(sets.iter().all(|value| (2.0..=6.0).contains(value)));
        assert!((of(3) - 4.0).abs() < 2.0 && of(5) < of(10));
    }
}
