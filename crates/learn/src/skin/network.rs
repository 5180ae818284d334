//! From controls to whitened bones: linear regression first, then a network with tanh for what that leaves. Both end in one
//! layer that reads the controls beside the hidden features.

use super::design::Targets;
use super::{SkinLearnError, SkinSettings};
use crate::Recording;
use crate::cholesky::Cholesky;
use crate::dense::Net;
use crate::dense::train::{Epoch, Stop, train_watched};
use crate::face::inputs::NormalisedControls;
use crate::matrix::{View, multiply};
use understudy_core::Random;
use understudy_runtime::DenseParts;

/// How strongly regression is drawn to zero, relative to the mean square of the inputs: what tells controls apart that always
/// move together.
const RIDGE: f64 = 1e-6;

/// A trained network.
pub(super) struct Trained {
    pub hidden: Vec<DenseParts>,
    /// Reads inputs, then the last hidden layer.
    pub output: DenseParts,
    /// On held-back poses, root mean square over vertices, mean over poses, cm.
    pub rmse_cm: f64,
    pub linear_rmse_cm: f64,
    pub epochs: usize,
}

/// Linear regression of what the network is to learn, and what that leaves.
struct Regressed {
    /// What the network sees of all poses, `[N × inputs]`.
    x: Vec<f32>,
    linear: DenseParts,
    /// `[N × height]`.
    left: Vec<f32>,
    /// Of held-back poses, root mean square over vertices, mean over poses, cm.
    miss_cm: f64,
}

fn regress(
    poses: &Recording,
    (inputs, mean, scale): &NormalisedControls,
    targets: &Targets,
    held: &[u32],
) -> Regressed {
    let (width, height) = (inputs.len(), targets.height);
    let seen = |pose: usize| {
        let controls = poses.controls_of(pose);
        let one = |((i, m), s): ((&u32, &f32), &f32)| (controls[*i as usize] - m) * s;
        inputs.iter().zip(mean).zip(scale).map(one).collect::<Vec<f32>>()
    };
    let x: Vec<f32> = (0..poses.len()).flat_map(seen).collect();
    let linear = regression(&x, width, targets, held);
    let mut left = targets.numbers.clone();
    for (x, y) in x.chunks_exact(width).zip(left.chunks_exact_mut(height)) {
        subtract(&linear, x, y);
    }
    let miss = |row: &u32| squares(&left[*row as usize * height..][..height]).sqrt();
    let miss_cm = held.iter().map(miss).sum::<f64>() / held.len().max(1) as f64;
    Regressed { x, linear, left, miss_cm }
}

/// What linear regression misses of held-back poses, root mean square over vertices, mean over poses, cm.
pub(super) fn linear_miss_cm(
    poses: &Recording,
    inputs: &NormalisedControls,
    targets: &Targets,
    held: &[u32],
) -> f64 {
    regress(poses, inputs, targets, held).miss_cm
}

fn squares(numbers: &[f32]) -> f64 {
    numbers.iter().map(|y| f64::from(*y).powi(2)).sum()
}

pub(super) fn train_network(
    poses: &Recording,
    inputs: &NormalisedControls,
    targets: &Targets,
    held: &[u32],
    settings: &SkinSettings,
    mut watch: impl FnMut(Epoch) -> bool,
) -> Result<Trained, SkinLearnError> {
    let (width, height, count) = (inputs.0.len(), targets.height, poses.len());
    let Regressed { x, linear, mut left, miss_cm: linear_rmse_cm } = regress(poses, inputs, targets, held);
    let power = |row: usize| squares(&left[row * height..(row + 1) * height]);
    let whole = ((0..count).map(power).sum::<f64>() / count.max(1) as f64).sqrt();
    let done = |epochs| Trained {
        hidden: Vec::new(),
        output: linear.clone(),
        rmse_cm: linear_rmse_cm,
        linear_rmse_cm,
        epochs,
    };
    // What nobody sees is not worth a network.
    if settings.widths.is_empty() || whole < LINEAR_CM {
        return Ok(done(0));
    }
    // Most controls rest in most poses: inputs are made so large that hidden units leave the straight part of tanh, where
    // nothing but regression is learned.
    let seen = squares(&x) / count as f64;
    let gain = {
        // Variance of weights that begin uniform in ±√(6 / (in + out)).
        let variance = 2.0 / (width + settings.widths[0]) as f64;
        (FIRST_ACTIVATION / (variance * seen).sqrt().max(f64::MIN_POSITIVE)) as f32
    };
    let scaled: Vec<f32> = x.iter().map(|x| x * gain).collect();
    // Numbers of size one.
    let unit = (whole / (height as f64).sqrt()) as f32;
    left.iter_mut().for_each(|y| *y /= unit);
    let sizes: Vec<usize> =
        [width].into_iter().chain(settings.widths.iter().copied()).chain([height]).collect();
    let mut net = Net::new(&sizes, &mut Random::stream(settings.train.seed, 0x5c1));
    // The last layer begins at zero: with the regression alone.
    let last = settings.widths.last().copied().unwrap_or(0) * height + height;
    let all = net.parameters.len();
    net.parameters[all - last..].fill(0.0);
    let mut stopped = false;
    let report = train_watched(&mut net, &scaled, &left, held, &settings.train, |epoch| {
        let [loss, validation] = [epoch.loss, epoch.validation].map(|error| error * f64::from(unit));
        let go_on = watch(Epoch { loss, validation, ..epoch });
        stopped |= !go_on;
        go_on
    });
    if stopped {
        return Err(SkinLearnError::Stopped);
    }
    if report.stop == Stop::Diverged {
        return Err(SkinLearnError::Diverged);
    }
    let rmse_cm = report.validation * f64::from(unit);
    if !held.is_empty() && rmse_cm >= linear_rmse_cm {
        return Ok(done(report.epochs));
    }
    let part = |layer: usize| {
        let (weights, bias) = net.layer(layer);
        DenseParts { weights: weights.to_vec(), bias: bias.to_vec() }
    };
    let mut hidden: Vec<DenseParts> = (0..net.layer_count() - 1).map(part).collect();
    hidden[0].weights.iter_mut().for_each(|weight| *weight *= gain);
    let last = part(net.layer_count() - 1);
    let wide = last.weights.len() / height;
    let mut output = DenseParts { weights: Vec::with_capacity(height * (width + wide)), bias: Vec::new() };
    for row in 0..height {
        output.weights.extend_from_slice(&linear.weights[row * width..(row + 1) * width]);
        output.weights.extend(last.weights[row * wide..(row + 1) * wide].iter().map(|w| w * unit));
        output.bias.push(linear.bias[row] + last.bias[row] * unit);
    }
    Ok(Trained { hidden, output, rmse_cm, linear_rmse_cm, epochs: report.epochs })
}

/// Root mean square of what the first hidden units sum at the beginning.
const FIRST_ACTIVATION: f64 = 0.7;
/// Regression that leaves less than this is exact, cm.
const LINEAR_CM: f64 = 1e-4;

/// `y −= W x + b`.
fn subtract(linear: &DenseParts, x: &[f32], y: &mut [f32]) {
    for ((y, weights), bias) in y.iter_mut().zip(linear.weights.chunks_exact(x.len())).zip(&linear.bias) {
        *y -= bias + weights.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
    }
}

/// Least squares over the poses that are not held back, `[height × width]` and a bias.
fn regression(x: &[f32], width: usize, targets: &Targets, held: &[u32]) -> DenseParts {
    let (height, wide) = (targets.height, width + 1);
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let mut rows = 0;
    for (pose, x) in x.chunks_exact(width).enumerate() {
        if held.binary_search(&(pose as u32)).is_err() {
            inputs.extend(x.iter().map(|x| f64::from(*x)).chain([1.0]));
            outputs.extend(targets.numbers[pose * height..(pose + 1) * height].iter().map(|y| f64::from(*y)));
            rows += 1;
        }
    }
    let view = View::new(&inputs, rows, wide);
    let (mut gram, mut right) = (vec![0.0; wide * wide], vec![0.0; wide * height]);
    multiply(&mut gram, 0.0, view.transposed(), view);
    multiply(&mut right, 0.0, view.transposed(), View::new(&outputs, rows, height));
    let ridge = RIDGE * (0..wide).map(|i| gram[i * wide + i]).sum::<f64>() / wide as f64 + f64::MIN_POSITIVE;
    // The bias is free.
    (0..width).for_each(|i| gram[i * wide + i] += ridge);
    Cholesky::new(gram, wide).solve(&mut right, height);
    let weights = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    DenseParts {
        weights: weights.map(|(row, column)| right[column * height + row] as f32).collect(),
        bias: (0..height).map(|row| right[width * height + row] as f32).collect(),
    }
}
