//! Layers that networks are built of: weights in a row of parameters, and how they act on a tape.

use super::parameters::{Parameters, RunningSlot, Slot};
use super::tape::{Tape, Var};
use understudy_core::Random;

/// A convolution with a bias.
#[derive(Debug, Clone, Copy)]
pub struct Convolution {
    weights: Slot,
    bias: Slot,
    kernel: usize,
}

impl Convolution {
    /// Weights as He et al. (2015) draw them, times `gain`.
    pub fn new(
        parameters: &mut Parameters,
        [inputs, outputs]: [usize; 2],
        kernel: usize,
        gain: f32,
        random: &mut Random,
    ) -> Self {
        let reach = inputs * kernel * kernel;
        let weights = parameters.normal(outputs * reach, gain * (2.0 / reach as f32).sqrt(), random);
        Self { weights, bias: parameters.constant(outputs, 0.0), kernel }
    }

    /// Biases, repeated until there are enough.
    pub(super) fn set_bias(&self, parameters: &mut Parameters, values: &[f32]) {
        let own = &mut parameters.values_mut()[self.bias.start..self.bias.start + self.bias.length];
        own.iter_mut().zip(values.iter().cycle()).for_each(|(own, value)| *own = *value);
    }

    /// On a tape.
    pub fn apply(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        tape.convolution(x, self.weights, Some(self.bias), self.kernel)
    }
}

/// Convolution, batch norm, leaky ReLU.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    weights: Slot,
    kernel: usize,
    scale: Slot,
    shift: Slot,
    running: RunningSlot,
}

/// Below zero.
const SLOPE: f32 = 0.1;

impl Block {
    /// From that many channels to that many.
    pub fn new(
        parameters: &mut Parameters,
        [inputs, outputs]: [usize; 2],
        kernel: usize,
        random: &mut Random,
    ) -> Self {
        let reach = inputs * kernel * kernel;
        Self {
            weights: parameters.normal(outputs * reach, (2.0 / reach as f32).sqrt(), random),
            kernel,
            scale: parameters.constant(outputs, 1.0),
            shift: parameters.constant(outputs, 0.0),
            running: parameters.running(outputs),
        }
    }

    fn normed(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let x = tape.convolution(x, self.weights, None, self.kernel);
        tape.norm(x, self.scale, self.shift, self.running)
    }

    /// On a tape.
    pub fn apply(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let x = self.normed(tape, x);
        tape.leaky(x, SLOPE)
    }
}

/// `x + f(x)`, leaky at the end, f of two blocks' convolutions (He et al. 2016).
#[derive(Debug, Clone, Copy)]
pub struct Residual {
    first: Block,
    second: Block,
}

impl Residual {
    /// Of that many channels.
    pub fn new(parameters: &mut Parameters, channels: usize, random: &mut Random) -> Self {
        let first = Block::new(parameters, [channels; 2], 3, random);
        Self { first, second: Block::new(parameters, [channels; 2], 3, random) }
    }

    /// On a tape.
    pub fn apply(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let y = self.first.apply(tape, x);
        let y = self.second.normed(tape, y);
        let sum = tape.add(x, y);
        tape.leaky(sum, SLOPE)
    }
}
