//! Training of the differential network: features in, whitened coefficients of the differential coordinates out, frozen
//! components behind it, L1 loss (section 3.2.3).
//!
//! The loss is on all `3V` coordinates, and a decode of all of them is most of a step's work. A step looks at the
//! coordinates of some vertices drawn at random instead: the expected gradient is the same, and with 256 vertices of
//! 12,000 the decode costs a fiftieth. What the truncated components leave of the truth is left out of the loss.

use super::{DiffSettings, Loss};
use crate::dense::{Adam, Net, Pass};
use crate::matrix::{View, multiply};
use rayon::prelude::*;
use understudy_core::Random;
use understudy_runtime::diff::LayerNumbers;

/// Parts of a batch whose gradients are worked out side by side and summed in order: the same numbers for any number of
/// threads.
const SHARDS: usize = 4;

/// What the network learns.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// `[N × F]`.
    pub inputs: &'a [f32],
    /// Number of features.
    pub features: usize,
    /// Coefficients of unit variance, `[N × K]`.
    pub targets: &'a [f32],
    /// What a coefficient does, `[3V × K]`.
    pub decoder: &'a [f32],
    /// Number of coefficients.
    pub count: usize,
    /// Root mean square of a coordinate of a vertex that moves: losses and their gradients are in these units.
    pub unit: f32,
    /// Vertices that move at all.
    pub moving: &'a [u32],
    /// Poses that are trained on, and those that are held back.
    pub trained: &'a [usize],
    /// See `trained`.
    pub held: &'a [usize],
}

/// Where training stands.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainerState {
    /// Steps done.
    pub step: usize,
    /// Of the network.
    pub parameters: Vec<f32>,
    /// Of the optimiser.
    pub averages: [Vec<f32>; 2],
}

/// A training run.
pub struct Trainer<'a> {
    problem: Problem<'a>,
    settings: &'a DiffSettings,
    net: Net,
    optimiser: Adam,
    step: usize,
    steps: usize,
    shards: Vec<Shard>,
    /// Rows of the decoder that a step looks at, `[R × K]`.
    decoder: Vec<f32>,
}

/// Memory for a part of a batch.
struct Shard {
    pass: Pass,
    inputs: Vec<f32>,
    misses: Vec<f32>,
    errors: Vec<f32>,
    gradient: Vec<f32>,
    loss: f64,
}

impl<'a> Trainer<'a> {
    /// An untrained network.
    pub fn new(problem: Problem<'a>, settings: &'a DiffSettings) -> Self {
        let mut sizes = vec![problem.features];
        sizes.extend(&settings.widths);
        sizes.push(problem.count);
        let net =
            Net::with_activation(&sizes, settings.activation, &mut Random::stream(settings.seed, 0xd1ff));
        let batch = settings.batch.clamp(1, problem.trained.len());
        let rows = batch.div_ceil(SHARDS);
        let vertices = Self::vertices(&problem, settings);
        let shard = |_| Shard {
            pass: Pass::new(&net, rows),
            inputs: vec![0.0; rows * problem.features],
            misses: vec![0.0; rows * problem.count],
            errors: vec![0.0; rows * 3 * vertices],
            gradient: vec![0.0; net.parameters.len()],
            loss: 0.0,
        };
        Self {
            optimiser: Adam::with_optimiser(settings.optimiser, net.parameters.len()),
            step: 0,
            steps: settings.steps_for(problem.trained.len()),
            shards: (0..batch.div_ceil(rows)).map(shard).collect(),
            decoder: vec![0.0; 3 * vertices * problem.count],
            net,
            problem,
            settings,
        }
    }

    /// Vertices that a step looks at.
    fn vertices(problem: &Problem<'_>, settings: &DiffSettings) -> usize {
        match settings.loss_vertices {
            0 => problem.moving.len(),
            some => some.min(problem.moving.len()),
        }
    }

    /// Steps done.
    pub fn done(&self) -> usize {
        self.step
    }

    /// Steps in all.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Where it stands.
    pub fn state(&self) -> TrainerState {
        TrainerState {
            step: self.step,
            parameters: self.net.parameters.clone(),
            averages: self.optimiser.averages().map(<[f32]>::to_vec),
        }
    }

    /// Goes on from there; `None` where that was another network.
    pub fn restore(mut self, state: TrainerState) -> Option<Self> {
        if state.parameters.len() != self.net.parameters.len() || state.step > self.steps {
            return None;
        }
        self.net.parameters = state.parameters;
        self.optimiser = self.optimiser.restore(state.averages, state.step)?;
        self.step = state.step;
        Some(self)
    }

    /// Makes at most so many steps; gives the mean loss of a coordinate.
    pub fn run(&mut self, steps: usize) -> f64 {
        let end = self.steps.min(self.step + steps);
        let (mut loss, count) = (0.0, (end - self.step).max(1));
        while self.step < end {
            loss += self.one();
            self.step += 1;
        }
        loss / count as f64
    }

    fn one(&mut self) -> f64 {
        let Self { problem, settings, net, shards, decoder, .. } = self;
        // A stream for every step: a run that was interrupted goes on with the same numbers.
        let mut random = Random::stream(settings.seed ^ 0x0ba7_c4e5, self.step as u64);
        let batch = settings.batch.clamp(1, problem.trained.len());
        let draw = |random: &mut Random| problem.trained[random.below(problem.trained.len())];
        let poses: Vec<usize> = (0..batch).map(|_| draw(&mut random)).collect();
        let width = 3 * problem.count;
        if settings.loss_vertices == 0 || settings.loss_vertices >= problem.moving.len() {
            if self.step == 0 || decoder.iter().all(|n| *n == 0.0) {
                for (slot, vertex) in decoder.chunks_exact_mut(width).zip(problem.moving) {
                    slot.copy_from_slice(&problem.decoder[*vertex as usize * width..][..width]);
                }
            }
        } else {
            for slot in decoder.chunks_exact_mut(width) {
                let vertex = problem.moving[random.below(problem.moving.len())] as usize;
                slot.copy_from_slice(&problem.decoder[vertex * width..][..width]);
            }
        }
        let rows = poses.len().div_ceil(shards.len());
        let (net_now, decoder) = (&*net, &*decoder);
        let work = shards.par_iter_mut().zip(poses.par_chunks(rows));
        work.for_each(|(shard, poses)| shard.work(problem, settings.loss, net_now, decoder, poses, batch));
        let (first, others) = shards.split_first_mut().expect("a batch has a part");
        for other in others.iter() {
            first.gradient.iter_mut().zip(&other.gradient).for_each(|(sum, own)| *sum += own);
        }
        let rate = settings.rate * settings.schedule.at(self.step, self.steps as f32);
        self.optimiser.step(&mut net.parameters, &first.gradient, rate, 0.0);
        first.loss + others.iter().map(|shard| shard.loss).sum::<f64>()
    }

    /// Mean absolute miss of a coordinate on the poses that were held back, beside that of saying the mean, on some of the
    /// vertices, cm.
    pub fn validation(&self) -> [f64; 2] {
        const VERTICES: usize = 400;
        let problem = &self.problem;
        let held = if problem.held.is_empty() { problem.trained } else { problem.held };
        let step = problem.moving.len().div_ceil(VERTICES).max(1);
        let width = 3 * problem.count;
        let decoder: Vec<f32> = problem
            .moving
            .iter()
            .step_by(step)
            .flat_map(|vertex| &problem.decoder[*vertex as usize * width..][..width])
            .copied()
            .collect();
        let rows = decoder.len() / problem.count.max(1);
        let mut pass = Pass::new(&self.net, 1);
        let mut sums = [0.0; 2];
        let mut decoded = vec![0.0f32; rows];
        for pose in held {
            let truth = &problem.targets[pose * problem.count..][..problem.count];
            let x = &problem.inputs[pose * problem.features..][..problem.features];
            let miss: Vec<f32> =
                pass.forward(&self.net, x, 1).iter().zip(truth).map(|(y, t)| y - t).collect();
            for (sum, coefficients) in sums.iter_mut().zip([&miss[..], truth]) {
                let basis = View::new(&decoder, rows, problem.count);
                multiply(&mut decoded, 0.0, basis, View::new(coefficients, problem.count, 1));
                *sum += decoded.iter().map(|d| f64::from(d.abs())).sum::<f64>();
            }
        }
        sums.map(|sum| sum / (held.len() * rows).max(1) as f64)
    }

    /// The layers of the network.
    pub fn layers(&self) -> Vec<LayerNumbers> {
        let layer = |layer: usize| {
            let (weights, bias) = self.net.layer(layer);
            LayerNumbers { weights: weights.to_vec(), bias: bias.to_vec() }
        };
        (0..self.net.layer_count()).map(layer).collect()
    }
}

impl Shard {
    fn work(
        &mut self,
        problem: &Problem<'_>,
        loss: Loss,
        net: &Net,
        decoder: &[f32],
        poses: &[usize],
        batch: usize,
    ) {
        let (features, count, rows) = (problem.features, problem.count, poses.len());
        for (slot, pose) in self.inputs.chunks_exact_mut(features).zip(poses) {
            slot.copy_from_slice(&problem.inputs[pose * features..][..features]);
        }
        let outputs = self.pass.forward(net, &self.inputs, rows);
        for ((slot, output), pose) in
            self.misses.chunks_exact_mut(count).zip(outputs.chunks_exact(count)).zip(poses)
        {
            let truth = &problem.targets[pose * count..][..count];
            slot.iter_mut().zip(output.iter().zip(truth)).for_each(|(slot, (y, t))| *slot = y - t);
        }
        let coordinates = decoder.len() / count;
        let basis = View::new(decoder, coordinates, count);
        let errors = &mut self.errors[..rows * coordinates];
        multiply(errors, 0.0, View::new(&self.misses, rows, count), basis.transposed());
        let share = 1.0 / ((batch * coordinates) as f32 * problem.unit);
        let mut sum = 0.0;
        for error in errors.iter_mut() {
            let size = error.abs();
            sum += f64::from(if loss == Loss::L1 { size } else { 0.5 * size * size / problem.unit });
            *error = share
                * match loss {
                    Loss::L1 if size > 0.0 => error.signum(),
                    Loss::L1 => 0.0,
                    Loss::L2 => *error / problem.unit,
                };
        }
        self.loss = sum * f64::from(share);
        let slopes = &mut self.pass.output_slopes()[..rows * count];
        multiply(slopes, 0.0, View::new(errors, rows, coordinates), basis);
        self.pass.backward_from_slopes(net, &self.inputs, rows, &mut self.gradient);
    }
}
