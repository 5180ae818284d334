//! The way back through dense layers: from derivatives by their outputs to those by controls, without allocating.

use super::DenseParts;
use super::motion::{Motion, MotionNet};
use crate::dense::{Activation, Kernel, Layer, Precision};

/// Dense layers with what their reverse needs.
pub(crate) struct Chain {
    transposed: Vec<Layer>,
    /// `outputs[0]` are the inputs.
    pub(crate) outputs: Vec<Vec<f32>>,
    pub(crate) slopes: Vec<Vec<f32>>,
}

/// Rows of derivatives that go back through one network together, so that its weights are read once for all of them.
#[derive(Default)]
pub(crate) struct Rows {
    stride: usize,
    numbers: Vec<f32>,
    /// Which row of the whole each of them is.
    of: Vec<usize>,
    next: Vec<f32>,
    panel: Vec<f32>,
}

impl Rows {
    /// None yet, of so many numbers each.
    pub(crate) fn begin(&mut self, stride: usize) {
        self.stride = stride;
        self.numbers.clear();
        self.of.clear();
    }

    /// One more, of zeros.
    pub(crate) fn add(&mut self, of: usize) -> &mut [f32] {
        let start = self.numbers.len();
        self.numbers.resize(start + self.stride, 0.0);
        self.of.push(of);
        &mut self.numbers[start..]
    }

    /// The same as others.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.stride = other.stride;
        self.numbers.clone_from(&other.numbers);
        self.of.clone_from(&other.of);
    }

    /// Which row of the whole each is, and its numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.of.iter().copied().zip(self.numbers.chunks_exact(self.stride.max(1)))
    }

    /// From derivatives by what comes out of layers to derivatives by what goes in. `outputs`: of the pose, `outputs[0]` are
    /// the inputs; `slope`: of the activation between two layers by its value.
    pub(crate) fn back(
        &mut self,
        kernel: Kernel,
        transposed: &[Layer],
        outputs: &[Vec<f32>],
        slope: impl Fn(f32) -> f32,
    ) {
        for (index, layer) in transposed.iter().enumerate().rev() {
            let (count, stride) = (self.of.len(), outputs[index].len());
            self.next.resize(count * stride, 0.0);
            if self.panel.len() < layer.working_size() {
                self.panel.resize(layer.working_size(), 0.0);
            }
            layer.apply_batch(
                kernel,
                count,
                &self.numbers,
                self.stride,
                &mut self.next,
                stride,
                &mut self.panel,
            );
            if index > 0 {
                for row in self.next.chunks_exact_mut(stride.max(1)) {
                    row.iter_mut().zip(&outputs[index]).for_each(|(slot, y)| *slot *= slope(*y));
                }
            }
            std::mem::swap(&mut self.numbers, &mut self.next);
            self.stride = stride;
        }
    }
}

/// What stands between the layers of a chain.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Between {
    Tanh,
    /// Going forward, after so many numbers of the last layer too.
    Leaky {
        /// Below zero.
        slope: f32,
        of_last: usize,
    },
}

impl Between {
    /// Its derivative, by the value that it gave.
    fn slope(self, y: f32) -> f32 {
        match self {
            Self::Tanh => 1.0 - y * y,
            Self::Leaky { .. } if y > 0.0 => 1.0,
            Self::Leaky { slope, .. } => slope,
        }
    }
}

impl Chain {
    pub(crate) fn new(parts: &[DenseParts], inputs: usize, precision: Precision) -> Self {
        let mut columns = inputs;
        let mut chain = Self { transposed: Vec::new(), outputs: Vec::new(), slopes: Vec::new() };
        let padded = |size: usize| size.next_multiple_of(crate::dense::PANEL);
        chain.outputs.push(vec![0.0; padded(inputs)]);
        chain.slopes.push(vec![0.0; padded(inputs)]);
        for data in parts {
            let rows = data.bias.len();
            let mut turned = vec![0.0; data.weights.len()];
            for row in 0..rows {
                for column in 0..columns {
                    turned[column * rows + row] = data.weights[row * columns + column];
                }
            }
            let zero = vec![0.0; columns];
            let packed = Layer::pack(&turned, &zero, rows, Activation::None, precision)
                .expect("weights that were packed once fit");
            chain.transposed.push(packed);
            chain.outputs.push(vec![0.0; padded(rows)]);
            chain.slopes.push(vec![0.0; padded(rows)]);
            columns = rows;
        }
        chain
    }

    pub(crate) fn forward(&mut self, kernel: Kernel, layers: &[Layer], between: Between) {
        for (index, layer) in layers.iter().enumerate() {
            let (before, after) = self.outputs.split_at_mut(index + 1);
            layer.apply(kernel, &before[index], &mut after[0]);
            // tanh is part of the packed layer.
            if let Between::Leaky { slope, of_last } = between {
                let count = if index + 1 == layers.len() { of_last } else { layer.rows() };
                after[0][..count].iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { slope * *x });
            }
        }
    }

    /// Many rows of derivatives at once, from the last of `outputs` (before its rectifier, where it has one) to the first.
    pub(crate) fn backward_rows(&self, kernel: Kernel, between: Between, rows: &mut Rows) {
        rows.back(kernel, &self.transposed, &self.outputs, |y| between.slope(y));
    }

    /// The motion that a network of six numbers gives.
    pub(crate) fn motion(&mut self, kernel: Kernel, net: &MotionNet, controls: &[f32]) -> Motion {
        net.inputs.features(controls, &mut self.outputs[0]);
        self.forward(kernel, &net.layers, Between::Tanh);
        Motion::new(self.outputs.last().expect("inputs at least"), net.pivot)
    }

    /// From derivatives by the six numbers to those by controls, which are added to.
    pub(crate) fn backward_motion(
        &mut self,
        kernel: Kernel,
        net: &MotionNet,
        six: [f64; 6],
        by_controls: &mut [f32],
    ) {
        let last = self.slopes.last_mut().expect("inputs at least");
        last.iter_mut().zip(six).for_each(|(slot, slope)| *slot = slope as f32);
        self.backward(kernel, Between::Tanh);
        spread(&self.slopes[0], &net.inputs.inputs, &net.inputs.scale, by_controls);
    }

    /// From the last of `slopes` (before its rectifier, where it has one) to the first.
    pub(crate) fn backward(&mut self, kernel: Kernel, between: Between) {
        for index in (0..self.transposed.len()).rev() {
            let (before, after) = self.slopes.split_at_mut(index + 1);
            let (own, layer) = (&mut before[index], &self.transposed[index]);
            layer.apply(kernel, &after[0], own);
            if index > 0 {
                let through = own.iter_mut().zip(&self.outputs[index]);
                through.for_each(|(slope, y)| *slope *= between.slope(*y));
            }
        }
    }
}

/// Derivatives by normalised inputs become derivatives by controls.
pub(crate) fn spread(slopes: &[f32], inputs: &[u32], scale: &[f32], by_controls: &mut [f32]) {
    for (slope, (input, scale)) in slopes.iter().zip(inputs.iter().zip(scale)) {
        by_controls[*input as usize] += slope * scale;
    }
}
