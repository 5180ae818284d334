//! Training of one dense network on arrays in memory: shuffled batches, a schedule of rates, early stop on
//! a validation split, the best parameters kept.

use super::{Adam, Net, Optimiser, Pass};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use understudy_core::Random;

/// How the learning rate goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSchedule {
    /// After a short warm-up it falls to a thousandth by half a cosine.
    #[default]
    Cosine,
    /// It stays, as in the body-twin paper.
    Constant,
    /// `1 / (1 + 1e-6 t)`, as in the paper of the differential twin.
    InverseTime,
}

impl RateSchedule {
    /// The share of the first rate at a step of `whole`.
    pub(crate) fn at(self, step: usize, whole: f32) -> f32 {
        match self {
            Self::Constant => 1.0,
            Self::InverseTime => 1.0 / (1.0 + 1e-6 * step as f32),
            Self::Cosine => {
                let cosine = 0.5 + 0.5 * (std::f32::consts::PI * step as f32 / whole).cos();
                // The first steps go gently: Adam's averages are still empty.
                let warm = ((step + 1) as f32 / 50.0).min(1.0);
                warm * (0.001 + 0.999 * cosine)
            }
        }
    }
}

/// How to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainSettings {
    /// Passes over the training rows.
    pub epochs: usize,
    /// Rows a step.
    pub batch: usize,
    /// How parameters follow the gradient.
    pub optimiser: Optimiser,
    /// First learning rate.
    pub rate: f32,
    /// How it goes on.
    pub schedule: RateSchedule,
    /// How strongly parameters are drawn towards zero, in the optimiser's own way.
    pub decay: f32,
    /// How strongly weights of the first layer are drawn to zero by the sum of their absolute values, relative to what a
    /// network that says zero costs: then every hidden unit reads few inputs (Tibshirani 1996).
    pub sparsity: f32,
    /// Share of the rows that are held back to watch for over-fitting.
    pub validation: f32,
    /// Judge epochs by the mean distance of held-back rows in place of its root mean square, which one row far from all
    /// others decides.
    pub judge_by_mean: bool,
    /// Stop after that many epochs without a better validation error.
    pub patience: usize,
    /// Same seed, same network.
    pub seed: u64,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            epochs: 200,
            batch: 128,
            optimiser: Optimiser::Adam,
            rate: 0.002,
            schedule: RateSchedule::Cosine,
            decay: 0.1,
            sparsity: 0.0,
            validation: 0.05,
            judge_by_mean: false,
            patience: 40,
            seed: 1,
        }
    }
}

/// How training went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainReport {
    /// Epochs run.
    pub epochs: usize,
    /// Steps taken.
    pub steps: usize,
    /// Root of the mean squared distance of a validation row, or its mean, in the targets' unit, at the best epoch.
    pub validation: f64,
    /// Why it ended.
    pub stop: Stop,
}

/// Why training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// All epochs done.
    Epochs,
    /// No better validation error for `patience` epochs.
    Patience,
    /// The watcher said so.
    Asked,
    /// Errors grew beyond all bounds: what was learned is worth nothing.
    Diverged,
}

/// How many times worse than silence an error must be for training to have diverged: over-fitting is never so bad.
const DIVERGED: f64 = 2.0;

impl TrainSettings {
    /// Fewer rows than this say nothing about over-fitting, where there are enough to hold back.
    const FEWEST_HELD: usize = 8;

    /// Rows to hold back of that many, ascending: a random share; none of so few that nothing would be left.
    pub fn held_back(&self, rows: usize) -> Vec<u32> {
        let fewest = Self::FEWEST_HELD.min(rows / 4);
        let held =
            if rows < 4 { 0 } else { ((rows as f32 * self.validation) as usize).clamp(fewest, rows / 2) };
        let mut order: Vec<u32> = (0..rows as u32).collect();
        shuffle(&mut order, &mut Random::stream(self.seed, u64::MAX));
        order.truncate(held);
        order.sort_unstable();
        order
    }
}

/// An epoch that was trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// From 0.
    pub number: usize,
    /// Error of the rows that are trained on, each as the network was when its batch came.
    pub loss: f64,
    /// The same error of the rows that are held back, after the epoch.
    pub validation: f64,
}

/// Trains `net` on rows of `inputs` and `targets` but for those held back. `watch(epoch, validation)` is called
/// after every epoch and may stop it by answering `false`.
///
/// # Panics
/// When the arrays do not hold the same number of rows, or none to train on.
pub fn train(
    net: &mut Net,
    inputs: &[f32],
    targets: &[f32],
    held_back: &[u32],
    settings: &TrainSettings,
    mut watch: impl FnMut(usize, f64) -> bool,
) -> TrainReport {
    let watch = |epoch: Epoch| watch(epoch.number, epoch.validation);
    train_watched(net, inputs, targets, held_back, settings, watch)
}

/// [`fn@train`], whose listener hears of both errors.
///
/// # Panics
/// As [`fn@train`].
pub fn train_watched(
    net: &mut Net,
    inputs: &[f32],
    targets: &[f32],
    held_back: &[u32],
    settings: &TrainSettings,
    mut watch: impl FnMut(Epoch) -> bool,
) -> TrainReport {
    let (width, height) = (net.sizes()[0], net.sizes()[net.layer_count()]);
    let rows = targets.len() / height.max(1);
    let held: HashSet<u32> = held_back.iter().copied().collect();
    let mut training_rows: Vec<u32> = (0..rows as u32).filter(|row| !held.contains(row)).collect();
    assert!(
        !training_rows.is_empty() && inputs.len() == rows * width,
        "one input a target, and at least one"
    );
    let validation_rows = if held.is_empty() { training_rows.clone() } else { held_back.to_vec() };
    // What a network that always says zero would miss by: one that ends far beyond has learned nothing.
    let power = |rows: &[u32]| {
        let row = |row: &u32| &targets[*row as usize * height..(*row as usize + 1) * height];
        let squares: f64 = rows.iter().flat_map(row).map(|t| f64::from(*t).powi(2)).sum();
        (squares / rows.len() as f64).sqrt()
    };
    let silent = power(&validation_rows).max(power(&training_rows));
    let lasso = settings.sparsity * 0.5 * power(&training_rows).powi(2) as f32;
    let first_layer = net.layer(0).0.len();

    let batch = settings.batch.clamp(1, training_rows.len());
    let steps_an_epoch = training_rows.len() / batch;
    let whole = (settings.epochs * steps_an_epoch).max(1) as f32;
    let mut pass = Pass::new(net, batch);
    let mut adam = Adam::with_optimiser(settings.optimiser, net.parameters.len());
    let mut gradient = vec![0.0; net.parameters.len()];
    let (mut x, mut y) = (vec![0.0; batch * width], vec![0.0; batch * height]);
    let mut best = (f64::INFINITY, 0usize, net.parameters.clone());
    let (mut steps, mut stop, mut epochs) = (0, Stop::Epochs, 0);
    // Of some rows: the sum of what the error is the mean of.
    let misses = |outputs: &[f32], targets: &[f32]| -> f64 {
        let rows = outputs.chunks_exact(height.max(1)).zip(targets.chunks_exact(height.max(1)));
        let square = |(a, b): (&[f32], &[f32])| {
            a.iter().zip(b).map(|(a, b)| f64::from((a - b) * (a - b))).sum::<f64>()
        };
        let judged = |square: f64| if settings.judge_by_mean { square.sqrt() } else { square };
        rows.map(|row| judged(square(row))).sum()
    };
    let error = |sum: f64, rows: usize| {
        let mean = sum / rows.max(1) as f64;
        if settings.judge_by_mean { mean } else { mean.sqrt() }
    };
    for epoch in 0..settings.epochs {
        let mut trained = 0.0;
        shuffle(&mut training_rows, &mut Random::stream(settings.seed, epoch as u64));
        for rows in training_rows.chunks_exact(batch) {
            gather(inputs, width, rows, &mut x);
            gather(targets, height, rows, &mut y);
            trained += misses(pass.forward(net, &x, batch), &y);
            pass.backward(net, &x, &y, batch, &mut gradient);
            if lasso > 0.0 {
                let weights = gradient[..first_layer].iter_mut().zip(&net.parameters);
                weights.filter(|(_, w)| **w != 0.0).for_each(|(slope, w)| *slope += lasso * w.signum());
            }
            let rate = settings.rate * settings.schedule.at(steps, whole);
            adam.step(&mut net.parameters, &gradient, rate, settings.decay);
            steps += 1;
        }
        epochs = epoch + 1;
        let mut sum = 0.0;
        for rows in validation_rows.chunks(batch) {
            gather(inputs, width, rows, &mut x);
            gather(targets, height, rows, &mut y);
            sum += misses(pass.forward(net, &x, rows.len()), &y);
        }
        let validation = error(sum, validation_rows.len());
        if validation < best.0 {
            best.0 = validation;
            best.1 = epoch;
            best.2.copy_from_slice(&net.parameters);
        }
        let loss = error(trained, steps_an_epoch * batch);
        if !watch(Epoch { number: epoch, loss, validation }) {
            stop = Stop::Asked;
            break;
        }
        if !validation.is_finite() {
            stop = Stop::Diverged;
            break;
        }
        if epoch - best.1 >= settings.patience {
            stop = Stop::Patience;
            break;
        }
    }
    if best.0.is_finite() {
        net.parameters.copy_from_slice(&best.2);
    }
    if best.0 > DIVERGED * silent && stop != Stop::Asked {
        stop = Stop::Diverged;
    }
    TrainReport { epochs, steps, validation: best.0, stop }
}

fn shuffle(order: &mut [u32], random: &mut Random) {
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
}

fn gather(source: &[f32], width: usize, rows: &[u32], out: &mut [f32]) {
    for (slot, &row) in out.chunks_exact_mut(width.max(1)).zip(rows) {
        slot.copy_from_slice(&source[row as usize * width..(row as usize + 1) * width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_function_is_learned_and_the_same_seed_gives_the_same_net() {
        let mut random = Random::new(5);
        let inputs: Vec<f32> = (0..2000 * 2).map(|_| random.uniform(-1.0, 1.0)).collect();
        let targets: Vec<f32> = inputs.chunks(2).flat_map(|p| [(2.0 * p[0]).sin(), p[0] * p[1]]).collect();
        let settings = TrainSettings { epochs: 120, batch: 32, rate: 0.01, ..TrainSettings::default() };
        let run = || {
            let mut net = Net::new(&[2, 24, 24, 2], &mut Random::new(1));
            let held = settings.held_back(2000);
            let report = train(&mut net, &inputs, &targets, &held, &settings, |_, _| true);
            (net, report)
        };
        let (net, report) = run();
        assert!(report.validation < 0.03, "{report:?}");
        assert_eq!(net, run().0);
    }

    #[test]
    fn sparse_networks_learn_from_few_rows_which_inputs_matter() {
        // A product of two inputs among forty.
        let mut random = Random::new(8);
        let inputs: Vec<f32> = (0..400 * 40).map(|_| random.uniform(-1.0, 1.0)).collect();
        let targets: Vec<f32> = inputs.chunks(40).map(|p| p[3] * p[17]).collect();
        let error = |sparsity: f32| {
            let settings = TrainSettings {
                epochs: 300,
                patience: 300,
                batch: 32,
                rate: 0.01,
                decay: 0.0,
                sparsity,
                validation: 0.25,
                ..TrainSettings::default()
            };
            let mut net = Net::new(&[40, 24, 1], &mut Random::new(1));
            train(&mut net, &inputs, &targets, &settings.held_back(400), &settings, |_, _| true).validation
        };
        let [plain, sparse] = [0.0, 0.02].map(error);
        assert!(sparse < 0.6 * plain, "{plain} without, {sparse} with");
    }

    #[test]
    fn both_errors_are_told_and_fall_together() {
        let inputs: Vec<f32> = (0..200).map(|i| (i as f32 * 0.37).sin()).collect();
        let targets: Vec<f32> = inputs.iter().map(|x| x * x).collect();
        let settings = TrainSettings { epochs: 200, rate: 0.01, batch: 16, ..TrainSettings::default() };
        let mut net = Net::new(&[1, 8, 1], &mut Random::new(1));
        let mut told = Vec::new();
        let held = settings.held_back(200);
        let report = train_watched(&mut net, &inputs, &targets, &held, &settings, |epoch| {
            told.push(epoch);
            true
        });
        let (first, last) = (told[0], told[told.len() - 1]);
        assert_eq!((first.number, last.number + 1), (0, report.epochs));
        assert!(
            last.loss < 0.5 * first.loss && last.validation < 0.5 * first.validation,
            "{first:?} {last:?}"
        );
        // Nothing in so small a network is learned by heart.
        assert!(last.loss < 3.0 * last.validation && last.validation < 3.0 * last.loss, "{last:?}");
    }

    #[test]
    fn a_single_row_and_a_stop_are_fine() {
        let mut net = Net::new(&[1, 4, 1], &mut Random::new(1));
        let report = train(&mut net, &[0.5], &[0.25], &[], &TrainSettings::default(), |epoch, _| epoch < 3);
        assert_eq!((report.stop, report.epochs), (Stop::Asked, 4));
    }

    #[test]
    fn divergence_is_called_by_its_name() {
        let inputs: Vec<f32> = (0..200).map(|i| (i as f32 * 0.37).sin()).collect();
        let targets: Vec<f32> = inputs.iter().map(|x| x * x).collect();
        for rate in [1e4, 1e30, f32::MAX] {
            let settings = TrainSettings { rate, epochs: 20, ..TrainSettings::default() };
            let mut net = Net::new(&[1, 8, 1], &mut Random::new(1));
            let held = settings.held_back(200);
            let report = train(&mut net, &inputs, &targets, &held, &settings, |_, _| true);
            assert_eq!(report.stop, Stop::Diverged, "{rate}: {report:?}");
        }
    }
}
