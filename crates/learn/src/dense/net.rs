//! A dense network and its gradient.

use crate::matrix::{View, multiply};
use understudy_core::Random;
use understudy_runtime::dense::Kernel;
use understudy_runtime::diff::HiddenActivation;

/// What follows every layer but the last.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Between {
    Tanh,
    /// With this slope below zero.
    Rectifier(f32),
}

impl From<HiddenActivation> for Between {
    fn from(activation: HiddenActivation) -> Self {
        match activation {
            HiddenActivation::Tanh => Self::Tanh,
            HiddenActivation::Relu => Self::Rectifier(0.0),
        }
    }
}

/// Layers `sizes[0] → sizes[1] → …`, tanh (or a rectifier) after all but the last. All parameters lie in one array:
/// per layer weights `[out × in]` by rows, then the bias `[out]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Net {
    sizes: Vec<usize>,
    between: Between,
    /// Where each layer starts.
    offsets: Vec<usize>,
    /// All parameters.
    pub parameters: Vec<f32>,
}

impl Net {
    /// Weights uniform in `±sqrt(6/(in + out))` (Glorot and Bengio 2010), biases zero.
    pub fn new(sizes: &[usize], random: &mut Random) -> Self {
        Self::with_activation(sizes, HiddenActivation::Tanh, random)
    }

    /// As [`Net::new`]; before a rectifier, which halves the variance, weights are uniform in `±sqrt(6/in)` (He et al.
    /// 2015).
    pub fn with_activation(sizes: &[usize], activation: HiddenActivation, random: &mut Random) -> Self {
        Self::build(sizes, activation.into(), random)
    }

    /// With rectifiers of this slope below zero.
    pub fn leaky(sizes: &[usize], slope: f32, random: &mut Random) -> Self {
        Self::build(sizes, Between::Rectifier(slope), random)
    }

    fn build(sizes: &[usize], between: Between, random: &mut Random) -> Self {
        let layers = sizes.len() - 1;
        let mut offsets = Vec::new();
        let mut parameters = Vec::new();
        for (layer, pair) in sizes.windows(2).enumerate() {
            offsets.push(parameters.len());
            let fan = match between {
                Between::Rectifier(_) if layer + 1 < layers => pair[0],
                _ => pair[0] + pair[1],
            };
            let limit = (6.0 / fan.max(1) as f32).sqrt();
            parameters.extend((0..pair[0] * pair[1]).map(|_| random.uniform(-limit, limit)));
            parameters.extend(std::iter::repeat_n(0.0, pair[1]));
        }
        Self { sizes: sizes.to_vec(), between, offsets, parameters }
    }

    /// Sizes from input to output.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Number of layers.
    pub fn layer_count(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Weights `[out × in]` and bias `[out]` of a layer.
    pub fn layer(&self, layer: usize) -> (&[f32], &[f32]) {
        let (inputs, outputs) = (self.sizes[layer], self.sizes[layer + 1]);
        let start = self.offsets[layer];
        let bias = start + inputs * outputs;
        (&self.parameters[start..bias], &self.parameters[bias..bias + outputs])
    }
}

/// Memory of a forward and a backward pass for up to `capacity` rows.
#[derive(Debug, Clone)]
pub struct Pass {
    kernel: Kernel,
    /// Outputs of every layer, `[rows × size]`.
    outputs: Vec<Vec<f32>>,
    /// Derivatives by the outputs of every layer.
    deltas: Vec<Vec<f32>>,
}

impl Pass {
    /// Memory for a net.
    pub fn new(net: &Net, capacity: usize) -> Self {
        let buffers = || net.sizes[1..].iter().map(|size| vec![0.0; capacity * size]).collect();
        Self { kernel: Kernel::detect(), outputs: buffers(), deltas: buffers() }
    }

    /// Runs `rows` inputs, `[rows × sizes[0]]`; gives the outputs `[rows × last]`.
    pub fn forward<'a>(&'a mut self, net: &Net, inputs: &[f32], rows: usize) -> &'a [f32] {
        for layer in 0..net.layer_count() {
            let (size, next) = (net.sizes[layer], net.sizes[layer + 1]);
            let (weights, bias) = net.layer(layer);
            let (before, after) = self.outputs.split_at_mut(layer);
            let source = before.last().map_or(inputs, Vec::as_slice);
            let out = &mut after[0][..rows * next];
            for row in out.chunks_exact_mut(next) {
                row.copy_from_slice(bias);
            }
            multiply(out, 1.0, View::new(source, rows, size), View::new(weights, next, size).transposed());
            if layer + 1 < net.layer_count() {
                match net.between {
                    Between::Tanh => self.kernel.tanh(out),
                    Between::Rectifier(slope) => {
                        out.iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { slope * *x });
                    }
                }
            }
        }
        let last = net.layer_count() - 1;
        &self.outputs[last][..rows * net.sizes[last + 1]]
    }

    /// What the last [`Self::forward`] gave, `[capacity × last]`.
    pub fn outputs(&self) -> &[f32] {
        self.outputs.last().expect("a net has a layer")
    }

    /// Half the mean over rows of the squared distance to `targets` after [`Self::forward`] on the same
    /// inputs, and its gradient by all parameters.
    pub fn backward(
        &mut self,
        net: &Net,
        inputs: &[f32],
        targets: &[f32],
        rows: usize,
        gradient: &mut [f32],
    ) -> f64 {
        let last = net.layer_count() - 1;
        let share = 1.0 / rows as f32;
        let mut cost = 0.0;
        let outputs = &self.outputs[last];
        for ((delta, output), target) in self.deltas[last].iter_mut().zip(outputs).zip(targets) {
            let miss = output - target;
            cost += f64::from(miss * miss);
            *delta = miss * share;
        }
        self.backward_from_slopes(net, inputs, rows, gradient);
        0.5 * cost * f64::from(share)
    }

    /// Derivatives of any loss by the outputs of [`Self::forward`], `[rows × last]`, to be filled before
    /// [`Self::backward_from_slopes`].
    pub fn output_slopes(&mut self) -> &mut [f32] {
        self.deltas.last_mut().expect("a net has a layer")
    }

    /// The gradient by all parameters of the loss whose derivatives are in [`Self::output_slopes`].
    pub fn backward_from_slopes(&mut self, net: &Net, inputs: &[f32], rows: usize, gradient: &mut [f32]) {
        let last = net.layer_count() - 1;
        for layer in (0..=last).rev() {
            let (size, next) = (net.sizes[layer], net.sizes[layer + 1]);
            let start = net.offsets[layer];
            let (before, own) = self.deltas.split_at_mut(layer);
            let delta = &own[0][..rows * next];
            let source = if layer == 0 { inputs } else { &self.outputs[layer - 1] };
            let (weights, bias) = gradient[start..start + size * next + next].split_at_mut(size * next);
            multiply(weights, 0.0, View::new(delta, rows, next).transposed(), View::new(source, rows, size));
            bias.fill(0.0);
            for row in delta.chunks_exact(next) {
                bias.iter_mut().zip(row).for_each(|(sum, d)| *sum += d);
            }
            if let Some(earlier) = before.last_mut() {
                let earlier = &mut earlier[..rows * size];
                let (weights, _) = net.layer(layer);
                multiply(earlier, 0.0, View::new(delta, rows, next), View::new(weights, next, size));
                let outputs = earlier.iter_mut().zip(&self.outputs[layer - 1]);
                match net.between {
                    // tanh' = 1 − tanh².
                    Between::Tanh => outputs.for_each(|(d, y)| *d *= 1.0 - y * y),
                    Between::Rectifier(slope) => {
                        outputs.filter(|(_, y)| **y <= 0.0).for_each(|(d, _)| *d *= slope);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn the_gradient_meets_the_checker() {
        let mut random = Random::new(2);
        let mut net = Net::new(&[5, 7, 9, 4], &mut random);
        net.parameters.iter_mut().for_each(|p| *p += random.uniform(-0.1, 0.1));
        let rows = 11;
        let inputs: Vec<f32> = (0..rows * 5).map(|_| random.uniform(-1.0, 1.0)).collect();
        let targets: Vec<f32> = (0..rows * 4).map(|_| random.uniform(-1.0, 1.0)).collect();
        let mut pass = Pass::new(&net, rows);
        let mut gradient = vec![0.0; net.parameters.len()];
        pass.forward(&net, &inputs, rows);
        pass.backward(&net, &inputs, &targets, rows, &mut gradient);
        // The truth in f64, written down once more: f32 differences would drown in rounding.
        let cost = |parameters: &[f64]| {
            let mut total = 0.0;
            for row in 0..rows {
                let mut x: Vec<f64> = inputs[row * 5..(row + 1) * 5].iter().map(|v| f64::from(*v)).collect();
                for layer in 0..3 {
                    let (size, next) = (net.sizes()[layer], net.sizes()[layer + 1]);
                    let start = net.offsets[layer];
                    let unit = |o: usize| {
                        let weights = &parameters[start + o * size..start + (o + 1) * size];
                        let sum = weights.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
                        let sum = sum + parameters[start + size * next + o];
                        if layer < 2 { sum.tanh() } else { sum }
                    };
                    x = (0..next).map(unit).collect();
                }
                let target = &targets[row * 4..(row + 1) * 4];
                total += x.iter().zip(target).map(|(x, t)| (x - f64::from(*t)).powi(2)).sum::<f64>();
            }
            0.5 * total / rows as f64
        };
        let wide = |numbers: &[f32]| -> Vec<f64> { numbers.iter().map(|n| f64::from(*n)).collect() };
        let miss = directional_miss(cost, &wide(&net.parameters), &wide(&gradient), 1e-5, 30, 3);
        assert!(miss < 1e-4, "{miss}");
    }
}
