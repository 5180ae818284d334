//! What a network computed, in order, so that derivatives can be taken backwards. A network is a function that calls these
//! operations; the tape holds every value until it is dropped.

use super::norm::Statistics;
use super::parameters::{Parameters, RunningSlot, Slot};
use super::tensor::Tensor;
use super::{convolution, heat_maps, motion, norm, resample};
use rayon::prelude::*;

/// A value on a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Var(usize);

/// What batch norms go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The batch.
    Training,
    /// Figures of the training.
    Use,
}

enum Operation {
    Constant,
    Input,
    Convolution { x: Var, weights: Slot, bias: Option<Slot>, kernel: usize },
    Norm { x: Var, scale: Slot, shift: Slot, used: Statistics },
    Leaky { x: Var, slope: f32 },
    Sigmoid(Var),
    Add(Var, Var),
    Multiply(Var, Var),
    Concat(Vec<Var>),
    Halved(Var),
    Doubled(Var),
    Reshaped(Var),
    Softmax(Var),
    Expected(Var),
    Averaged(Var, Var),
    Sampled(Var, Var),
    Scaled(Var, f32),
    Divided(Var, Var),
    Bells { points: Var, variance: f32 },
    Motions { from: Var, turn: Var, to: Var },
    Shares(Var),
    Mixed(Var, Var),
}

struct Node {
    value: Tensor,
    operation: Operation,
    /// Whether a gradient must reach it.
    wanted: bool,
}

/// Values in the order of their making.
pub struct Tape<'a> {
    parameters: &'a Parameters,
    mode: Mode,
    nodes: Vec<Node>,
    seen: Vec<(RunningSlot, Statistics)>,
}

/// What [`Tape::backward`] gives.
pub struct TapeGradients {
    /// By parameter.
    pub parameters: Vec<f32>,
    values: Vec<Option<Tensor>>,
}

impl TapeGradients {
    /// By a value, where one reaches it.
    pub fn of(&self, var: Var) -> Option<&Tensor> {
        self.values[var.0].as_ref()
    }
}

impl<'a> Tape<'a> {
    /// An empty one.
    pub fn new(parameters: &'a Parameters, mode: Mode) -> Self {
        Self { parameters, mode, nodes: Vec::new(), seen: Vec::new() }
    }

    /// A value.
    pub fn value(&self, var: Var) -> &Tensor {
        &self.nodes[var.0].value
    }

    /// What batch norms saw, for [`Parameters::remember`].
    pub fn into_seen(self) -> Vec<(RunningSlot, Statistics)> {
        self.seen
    }

    fn push(&mut self, value: Tensor, operation: Operation, wanted: bool) -> Var {
        self.nodes.push(Node { value, operation, wanted });
        Var(self.nodes.len() - 1)
    }

    fn is_wanted(&self, of: &[Var]) -> bool {
        of.iter().any(|var| self.nodes[var.0].wanted)
    }

    /// What no gradient is wanted of: a picture.
    pub fn constant(&mut self, value: Tensor) -> Var {
        self.push(value, Operation::Constant, false)
    }

    /// What a gradient is wanted of.
    pub fn input(&mut self, value: Tensor) -> Var {
        self.push(value, Operation::Input, true)
    }

    /// A convolution of stride 1 with zeros around; `kernel` is odd.
    pub fn convolution(&mut self, x: Var, weights: Slot, bias: Option<Slot>, kernel: usize) -> Var {
        let bias_values = bias.map(|bias| self.parameters.of(bias));
        let value = convolution::forward(self.value(x), self.parameters.of(weights), bias_values, kernel);
        self.push(value, Operation::Convolution { x, weights, bias, kernel }, true)
    }

    /// Batch norm.
    pub fn norm(&mut self, x: Var, scale: Slot, shift: Slot, running: RunningSlot) -> Var {
        let used = match self.mode {
            Mode::Training => {
                let seen = norm::statistics(self.value(x));
                self.seen.push((running, seen.clone()));
                seen
            }
            Mode::Use => {
                let (mean, variance) = self.parameters.running_of(running);
                Statistics { mean: mean.to_vec(), variance: variance.to_vec() }
            }
        };
        let parameters = self.parameters;
        let value = norm::forward(self.value(x), &used, parameters.of(scale), parameters.of(shift));
        self.push(value, Operation::Norm { x, scale, shift, used }, true)
    }

    /// `max(x, slope · x)`; a slope of 0 is ReLU.
    pub fn leaky(&mut self, x: Var, slope: f32) -> Var {
        let value = map(self.value(x), |x| if x > 0.0 { x } else { slope * x });
        let wanted = self.is_wanted(&[x]);
        self.push(value, Operation::Leaky { x, slope }, wanted)
    }

    /// `1 / (1 + exp(−x))`.
    pub fn sigmoid(&mut self, x: Var) -> Var {
        let value = map(self.value(x), |x| 1.0 / (1.0 + (-x).exp()));
        let wanted = self.is_wanted(&[x]);
        self.push(value, Operation::Sigmoid(x), wanted)
    }

    /// The sum of two of one shape.
    pub fn add(&mut self, a: Var, b: Var) -> Var {
        let mut value = self.value(a).clone();
        value.add(self.value(b));
        let wanted = self.is_wanted(&[a, b]);
        self.push(value, Operation::Add(a, b), wanted)
    }

    /// The product, number by number; `b` may have one channel for all of `a`'s.
    pub fn multiply(&mut self, a: Var, b: Var) -> Var {
        let value = product(self.value(a), self.value(b));
        let wanted = self.is_wanted(&[a, b]);
        self.push(value, Operation::Multiply(a, b), wanted)
    }

    /// Channels one after the other.
    pub fn concat(&mut self, parts: &[Var]) -> Var {
        let [images, _, rows, columns] = self.value(parts[0]).shape();
        let channels = parts.iter().map(|part| self.value(*part).shape()[1]).sum();
        let mut data = Vec::with_capacity(images * channels * rows * columns);
        for image in 0..images {
            for part in parts {
                let part = self.value(*part);
                data.extend_from_slice(&part.data()[image * part.image_len()..][..part.image_len()]);
            }
        }
        let wanted = self.is_wanted(parts);
        let value = Tensor::new([images, channels, rows, columns], data);
        self.push(value, Operation::Concat(parts.to_vec()), wanted)
    }

    /// Half the size, means of four pixels.
    pub fn halved(&mut self, x: Var) -> Var {
        let (value, wanted) = (resample::halved(self.value(x)), self.is_wanted(&[x]));
        self.push(value, Operation::Halved(x), wanted)
    }

    /// Twice the size, nearest neighbours.
    pub fn doubled(&mut self, x: Var) -> Var {
        let (value, wanted) = (resample::doubled(self.value(x)), self.is_wanted(&[x]));
        self.push(value, Operation::Doubled(x), wanted)
    }

    /// The same numbers in another shape.
    pub fn reshaped(&mut self, x: Var, shape: [usize; 4]) -> Var {
        let (value, wanted) = (self.value(x).clone().reshaped(shape), self.is_wanted(&[x]));
        self.push(value, Operation::Reshaped(x), wanted)
    }

    /// Softmax over each plane.
    pub fn softmax(&mut self, x: Var) -> Var {
        let (value, wanted) = (heat_maps::softmax(self.value(x)), self.is_wanted(&[x]));
        self.push(value, Operation::Softmax(x), wanted)
    }

    /// Places expected under maps, `[images, points, 2, 1]`.
    pub fn expected(&mut self, maps: Var) -> Var {
        let (value, wanted) = (heat_maps::expected(self.value(maps)), self.is_wanted(&[maps]));
        self.push(value, Operation::Expected(maps), wanted)
    }

    /// Means of values under maps, `[images, points, m, 1]`: Jacobians of key points.
    pub fn averaged(&mut self, maps: Var, values: Var) -> Var {
        let value = heat_maps::averaged(self.value(maps), self.value(values));
        let wanted = self.is_wanted(&[maps, values]);
        self.push(value, Operation::Averaged(maps, values), wanted)
    }

    /// Bilinear samples at places in −1 to 1, `[images, 2, rows, columns]`.
    pub fn sampled(&mut self, x: Var, grid: Var) -> Var {
        let value = resample::sampled(self.value(x), self.value(grid));
        let wanted = self.is_wanted(&[x, grid]);
        self.push(value, Operation::Sampled(x, grid), wanted)
    }

    /// Every number times a factor.
    pub fn scaled(&mut self, x: Var, factor: f32) -> Var {
        let (value, wanted) = (map(self.value(x), |x| factor * x), self.is_wanted(&[x]));
        self.push(value, Operation::Scaled(x, factor), wanted)
    }

    /// `A B⁻¹` per point, both `[images, points, 4, 1]`.
    pub fn divided(&mut self, a: Var, b: Var) -> Var {
        let value = motion::divided(self.value(a), self.value(b));
        let wanted = self.is_wanted(&[a, b]);
        self.push(value, Operation::Divided(a, b), wanted)
    }

    /// A bell about every point, `[images, points, rows, columns]`.
    pub fn bells(&mut self, points: Var, size: [usize; 2], variance: f32) -> Var {
        let value = motion::bells(self.value(points), size, variance);
        let wanted = self.is_wanted(&[points]);
        self.push(value, Operation::Bells { points, variance }, wanted)
    }

    /// The identity and `from + turn (z − to)` per point, `[images, 2 (points + 1), rows, columns]`.
    pub fn motions(&mut self, from: Var, turn: Var, to: Var, size: [usize; 2]) -> Var {
        let value = motion::motions(self.value(from), self.value(turn), self.value(to), size);
        let wanted = self.is_wanted(&[from, turn, to]);
        self.push(value, Operation::Motions { from, turn, to }, wanted)
    }

    /// Softmax over the channels of every pixel.
    pub fn shares(&mut self, x: Var) -> Var {
        let (value, wanted) = (motion::shares(self.value(x)), self.is_wanted(&[x]));
        self.push(value, Operation::Shares(x), wanted)
    }

    /// Motions mixed by weights, `[images, 2, rows, columns]`.
    pub fn mixed(&mut self, shares: Var, motions: Var) -> Var {
        let value = motion::mixed(self.value(shares), self.value(motions));
        let wanted = self.is_wanted(&[shares, motions]);
        self.push(value, Operation::Mixed(shares, motions), wanted)
    }

    /// Derivatives of `Σ seed · value` by all parameters and inputs.
    pub fn backward(&self, seeds: Vec<(Var, Tensor)>) -> TapeGradients {
        let mut parameters = vec![0.0; self.parameters.values().len()];
        let mut values: Vec<Option<Tensor>> = self.nodes.iter().map(|_| None).collect();
        for (var, seed) in seeds {
            assert_eq!(seed.shape(), self.value(var).shape(), "a seed of the value's shape");
            accumulate(&mut values[var.0], seed);
        }
        for index in (0..self.nodes.len()).rev() {
            let node = &self.nodes[index];
            if !node.wanted || matches!(node.operation, Operation::Input) {
                continue;
            }
            let Some(by) = values[index].take() else { continue };
            self.back(
                node,
                by,
                &mut |var: Var, gradient| {
                    if self.nodes[var.0].wanted {
                        accumulate(&mut values[var.0], gradient);
                    }
                },
                &mut parameters,
            );
        }
        TapeGradients { parameters, values }
    }

    fn back(&self, node: &Node, by: Tensor, give: &mut dyn FnMut(Var, Tensor), parameters: &mut [f32]) {
        let value = |var: &Var| &self.nodes[var.0].value;
        let mut learn = |slot: Slot, gradient: &[f32]| {
            let own = &mut parameters[slot.start..slot.start + slot.length];
            own.iter_mut().zip(gradient).for_each(|(own, gradient)| *own += gradient);
        };
        match &node.operation {
            Operation::Constant | Operation::Input => {}
            Operation::Convolution { x, weights, bias, kernel } => {
                let wanted = self.nodes[x.0].wanted;
                let gradients =
                    convolution::backward(value(x), self.parameters.of(*weights), *kernel, &by, wanted);
                learn(*weights, &gradients.weights);
                if let Some(bias) = bias {
                    learn(*bias, &gradients.bias);
                }
                if let Some(input) = gradients.input {
                    give(*x, input);
                }
            }
            Operation::Norm { x, scale, shift, used } => {
                let own = self.mode == Mode::Training;
                let (by_x, by_scale, by_shift) =
                    norm::backward(value(x), used, self.parameters.of(*scale), &by, own);
                learn(*scale, &by_scale);
                learn(*shift, &by_shift);
                give(*x, by_x);
            }
            Operation::Leaky { x, slope } => {
                give(*x, zipped(by, value(x), |by, x| if x > 0.0 { by } else { slope * by }));
            }
            Operation::Sigmoid(x) => give(*x, zipped(by, &node.value, |by, y| by * y * (1.0 - y))),
            Operation::Add(a, b) => {
                give(*b, by.clone());
                give(*a, by);
            }
            Operation::Multiply(a, b) => {
                give(*b, folded(zipped(by.clone(), value(a), |by, a| by * a), value(b).shape()));
                give(*a, product(&by, value(b)));
            }
            Operation::Concat(parts) => {
                let mut first = 0;
                for part in parts {
                    let shape = value(part).shape();
                    let mut gradient = Tensor::zeros(shape);
                    let (length, whole) = (gradient.image_len().max(1), by.image_len());
                    for (image, out) in gradient.data_mut().chunks_exact_mut(length).enumerate() {
                        out.copy_from_slice(&by.data()[image * whole + first..][..length]);
                    }
                    first += length;
                    give(*part, gradient);
                }
            }
            Operation::Halved(x) => give(*x, resample::halved_back(&by)),
            Operation::Doubled(x) => give(*x, resample::doubled_back(&by)),
            Operation::Reshaped(x) => {
                let shape = value(x).shape();
                give(*x, by.reshaped(shape));
            }
            Operation::Softmax(x) => give(*x, heat_maps::softmax_back(&node.value, &by)),
            Operation::Expected(maps) => give(*maps, heat_maps::expected_back(value(maps), &by)),
            Operation::Averaged(maps, values) => {
                let (by_maps, by_values) = heat_maps::averaged_back(value(maps), value(values), &by);
                give(*maps, by_maps);
                give(*values, by_values);
            }
            Operation::Sampled(x, grid) => {
                let (by_x, by_grid) = resample::sampled_back(value(x), value(grid), &by);
                give(*x, by_x);
                give(*grid, by_grid);
            }
            Operation::Scaled(x, factor) => give(*x, map(&by, |by| factor * by)),
            Operation::Divided(a, b) => {
                let (by_a, by_b) = motion::divided_back(&node.value, value(b), &by);
                give(*a, by_a);
                give(*b, by_b);
            }
            Operation::Bells { points, variance } => {
                give(*points, motion::bells_back(value(points), &node.value, &by, *variance));
            }
            Operation::Motions { from, turn, to } => {
                let [by_from, by_turn, by_to] = motion::motions_back(value(turn), value(to), &by);
                give(*from, by_from);
                give(*turn, by_turn);
                give(*to, by_to);
            }
            Operation::Shares(x) => give(*x, motion::shares_back(&node.value, &by)),
            Operation::Mixed(shares, motions) => {
                let (by_shares, by_motions) = motion::mixed_back(value(shares), value(motions), &by);
                give(*shares, by_shares);
                give(*motions, by_motions);
            }
        }
    }
}

fn accumulate(sum: &mut Option<Tensor>, part: Tensor) {
    match sum {
        Some(sum) => sum.add(&part),
        None => *sum = Some(part),
    }
}

/// Numbers per piece of work of a thread.
const PIECE: usize = 1 << 14;

fn map(x: &Tensor, each: impl Fn(f32) -> f32 + Sync) -> Tensor {
    let mut out = x.clone();
    out.data_mut().par_chunks_mut(PIECE).for_each(|piece| piece.iter_mut().for_each(|x| *x = each(*x)));
    out
}

fn zipped(mut by: Tensor, other: &Tensor, each: impl Fn(f32, f32) -> f32 + Sync) -> Tensor {
    by.data_mut().par_chunks_mut(PIECE).zip(other.data().par_chunks(PIECE)).for_each(|(by, other)| {
        by.iter_mut().zip(other).for_each(|(by, other)| *by = each(*by, *other));
    });
    by
}

/// `a · b`, where `b` may have one channel for all.
fn product(a: &Tensor, b: &Tensor) -> Tensor {
    if a.shape() == b.shape() {
        return zipped(a.clone(), b, |a, b| a * b);
    }
    let [images, channels, rows, columns] = a.shape();
    assert_eq!(b.shape(), [images, 1, rows, columns], "one shape, or one channel for all");
    let mut out = a.clone();
    let plane = a.plane_len().max(1);
    for (index, out) in out.data_mut().chunks_exact_mut(plane).enumerate() {
        let b = &b.data()[index / channels * plane..][..plane];
        out.iter_mut().zip(b).for_each(|(out, b)| *out *= b);
    }
    out
}

/// A gradient summed over channels where the factor had one for all.
fn folded(by: Tensor, shape: [usize; 4]) -> Tensor {
    if by.shape() == shape {
        return by;
    }
    let mut out = Tensor::zeros(shape);
    let (plane, channels) = (by.plane_len().max(1), by.shape()[1]);
    for (index, by) in by.data().chunks_exact(plane).enumerate() {
        let out = &mut out.data_mut()[index / channels * plane..][..plane];
        out.iter_mut().zip(by).for_each(|(out, by)| *out += by);
    }
    out
}
