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
                for (slope, y) in own.iter_mut().zip(&self.outputs[index]) {
                    *slope *= match between {
                        Between::Tanh => 1.0 - y * y,
                        Between::Leaky { .. } if *y > 0.0 => 1.0,
                        Between::Leaky { slope, .. } => slope,
                    };
                }
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
