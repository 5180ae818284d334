//! Batch norm: `y = γ (x − μ)/√(σ² + ε) + β` per channel, with the batch's own figures in training and the running ones after
//! it (Ioffe and Szegedy 2015).

use super::tensor::Tensor;
use rayon::prelude::*;

/// ε.
const EPSILON: f32 = 1e-5;

/// Mean and variance per channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// μ.
    pub mean: Vec<f32>,
    /// σ², biased.
    pub variance: Vec<f32>,
}

/// `[channel]` sums over images of what `each` says of an image's plane, in the order of images.
fn sums(x: &Tensor, each: impl Fn(usize, usize) -> [f64; 2] + Sync) -> Vec<[f64; 2]> {
    let [images, channels, ..] = x.shape();
    let one = |image: usize| (0..channels).map(|channel| each(image, channel)).collect::<Vec<_>>();
    let parts: Vec<Vec<[f64; 2]>> = (0..images).into_par_iter().map(one).collect();
    let mut total = vec![[0.0; 2]; channels];
    for part in parts {
        for (total, part) in total.iter_mut().zip(part) {
            (0..2).for_each(|k| total[k] += part[k]);
        }
    }
    total
}

/// `Σ f(x, y)` in short runs of eight lanes: exact enough in f32, and fast.
fn sum_of(x: &[f32], y: &[f32], each: impl Fn(f32, f32) -> f32) -> f64 {
    let mut total = 0.0f64;
    for (x, y) in x.chunks(512).zip(y.chunks(512)) {
        let mut lanes = [0.0f32; 8];
        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
        for (x, y) in x.iter().zip(y) {
            for lane in 0..8 {
                lanes[lane] += each(x[lane], y[lane]);
            }
        }
        let rest: f32 = x_rest.iter().zip(y_rest).map(|(x, y)| each(*x, *y)).sum();
        total += f64::from(lanes.iter().sum::<f32>() + rest);
    }
    total
}

/// The batch's own figures.
pub(super) fn statistics(x: &Tensor) -> Statistics {
    let count = (x.shape()[0] * x.plane_len()).max(1) as f64;
    let mean: Vec<f32> = sums(x, |image, channel| {
        let x = x.plane(image, channel);
        [sum_of(x, x, |x, _| x), 0.0]
    })
    .iter()
    .map(|[sum, _]| (sum / count) as f32)
    .collect();
    let variance = sums(x, |image, channel| {
        let mean = mean[channel];
        let x = x.plane(image, channel);
        [sum_of(x, x, |x, _| (x - mean) * (x - mean)), 0.0]
    });
    Statistics { variance: variance.iter().map(|[sum, _]| (sum / count) as f32).collect(), mean }
}

pub(super) fn forward(x: &Tensor, used: &Statistics, scale: &[f32], shift: &[f32]) -> Tensor {
    let mut out = x.clone();
    let (plane, channels) = (x.plane_len().max(1), x.shape()[1]);
    out.data_mut().par_chunks_mut((channels * plane).max(1)).for_each(|image| {
        for (channel, values) in image.chunks_exact_mut(plane).enumerate() {
            let factor = scale[channel] / (used.variance[channel] + EPSILON).sqrt();
            let offset = shift[channel] - used.mean[channel] * factor;
            values.iter_mut().for_each(|value| *value = *value * factor + offset);
        }
    });
    out
}

/// Gradients of input, scale and shift. `own`: whether the figures are the batch's own, which move with it.
pub(super) fn backward(
    x: &Tensor,
    used: &Statistics,
    scale: &[f32],
    by_output: &Tensor,
    own: bool,
) -> (Tensor, Vec<f32>, Vec<f32>) {
    let inverse: Vec<f32> = used.variance.iter().map(|v| 1.0 / (v + EPSILON).sqrt()).collect();
    let totals = sums(x, |image, channel| {
        let (x, by_y) = (x.plane(image, channel), by_output.plane(image, channel));
        let mean = used.mean[channel];
        let along = sum_of(x, by_y, |x, by_y| (x - mean) * by_y);
        [sum_of(by_y, by_y, |by_y, _| by_y), along * f64::from(inverse[channel])]
    });
    let count = (x.shape()[0] * x.plane_len()).max(1) as f32;
    let mut by_x = by_output.clone();
    let (plane, length) = (x.plane_len().max(1), x.image_len().max(1));
    by_x.data_mut().par_chunks_mut(length).zip(x.data().par_chunks(length)).for_each(|(by_x, x)| {
        for (channel, (by_x, x)) in by_x.chunks_exact_mut(plane).zip(x.chunks_exact(plane)).enumerate() {
            let factor = scale[channel] * inverse[channel];
            let (mut level, mut slope) = (0.0, 0.0);
            if own {
                level = totals[channel][0] as f32 / count;
                slope = totals[channel][1] as f32 / count * inverse[channel];
            }
            let mean = used.mean[channel];
            for (by_x, x) in by_x.iter_mut().zip(x) {
                *by_x = factor * (*by_x - level - slope * (x - mean));
            }
        }
    });
    let of = |k: usize| totals.iter().map(|total| total[k] as f32).collect();
    (by_x, of(1), of(0))
}
