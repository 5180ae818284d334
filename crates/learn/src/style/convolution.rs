//! Convolutions of stride 1 with zeros around the picture, as matrix products on `gemm`: for a band of rows the neighbours of
//! every pixel are laid out in columns, small enough to stay in the cache, and multiplied with the weights.
//!
//! `y_o(p) = b_o + Σ_c Σ_d w_ocd x_c(p + d)`, weights `[out][in · k · k]`. Images go over threads; sums over images are taken in
//! groups whose number does not depend on the threads, so that the same batch gives the same bytes everywhere.

use super::tensor::Tensor;
use crate::matrix::{View, multiply};
use rayon::prelude::*;
use std::cell::RefCell;

/// Numbers in the columns of a band.
const BAND: usize = 1 << 16;

/// Groups of images whose gradients are summed apart.
pub(super) const GROUPS: usize = 4;

thread_local! {
    /// Columns and products of a band: kept, because fresh pages cost more than what is done with them.
    static SCRATCH: RefCell<[Vec<f32>; 2]> = const { RefCell::new([const { Vec::new() }; 2]) };
}

/// The first `count` numbers of a vector that only grows.
fn room(scratch: &mut Vec<f32>, count: usize) -> &mut [f32] {
    if scratch.len() < count {
        scratch.resize(count, 0.0);
    }
    &mut scratch[..count]
}

/// A layer's sizes.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    inputs: usize,
    outputs: usize,
    rows: usize,
    columns: usize,
    kernel: usize,
}

impl Sizes {
    fn new(x: &Tensor, weights: usize, kernel: usize) -> Self {
        let [_, inputs, rows, columns] = x.shape();
        let reach = inputs * kernel * kernel;
        assert!(kernel % 2 == 1 && reach > 0 && weights.is_multiple_of(reach), "weights of this layer");
        Self { inputs, outputs: weights / reach, rows, columns, kernel }
    }

    fn reach(&self) -> usize {
        self.inputs * self.kernel * self.kernel
    }

    /// First rows and heights of bands.
    fn bands(&self) -> impl Iterator<Item = (usize, usize)> {
        let height = (BAND / (self.reach() * self.columns)).clamp(1, self.rows);
        let rows = self.rows;
        (0..rows.div_ceil(height)).map(move |band| (band * height, height.min(rows - band * height)))
    }

    /// For every row of a band and shift of the kernel, the columns that lie inside: calls
    /// `each(place in columns, place in x, count)`.
    fn spans(&self, first: usize, height: usize, mut each: impl FnMut(usize, Option<usize>, [usize; 3])) {
        let half = (self.kernel / 2) as isize;
        let width = self.columns;
        for entry in 0..self.reach() {
            let channel = entry / (self.kernel * self.kernel);
            let shift = entry % (self.kernel * self.kernel);
            let (down, right) =
                ((shift / self.kernel) as isize - half, (shift % self.kernel) as isize - half);
            let left = ((-right).max(0) as usize).min(width);
            let end = ((width as isize - right.max(0)).max(0) as usize).max(left);
            for row in 0..height {
                let to = (entry * height + row) * width;
                let source = (first + row) as isize + down;
                let from = (0..self.rows as isize).contains(&source).then(|| {
                    (channel * self.rows + source as usize) * width + (left as isize + right) as usize
                });
                each(to, from, [left, end, width]);
            }
        }
    }
}

fn spread(x: &[f32], sizes: &Sizes, first: usize, height: usize, columns: &mut [f32]) {
    sizes.spans(first, height, |to, from, [left, end, width]| {
        let out = &mut columns[to..to + width];
        match from {
            None => out.fill(0.0),
            Some(from) => {
                out[..left].fill(0.0);
                out[end..].fill(0.0);
                if end > left {
                    out[left..end].copy_from_slice(&x[from..from + end - left]);
                }
            }
        }
    });
}

fn gather(columns: &[f32], sizes: &Sizes, first: usize, height: usize, x: &mut [f32]) {
    sizes.spans(first, height, |to, from, [left, end, _]| {
        let Some(from) = from.filter(|_| end > left) else { return };
        let out = &mut x[from..from + end - left];
        out.iter_mut().zip(&columns[to + left..to + end]).for_each(|(x, column)| *x += column);
    });
}

/// The layer's output.
pub(super) fn forward(x: &Tensor, weights: &[f32], bias: Option<&[f32]>, kernel: usize) -> Tensor {
    let sizes = Sizes::new(x, weights.len(), kernel);
    let mut out = Tensor::zeros([x.shape()[0], sizes.outputs, sizes.rows, sizes.columns]);
    let (from, to) = (x.image_len().max(1), out.image_len().max(1));
    out.data_mut().par_chunks_mut(to).zip(x.data().par_chunks(from)).for_each(|(y, x)| {
        one_image(x, weights, bias, &sizes, y);
    });
    out
}

fn one_image(x: &[f32], weights: &[f32], bias: Option<&[f32]>, sizes: &Sizes, y: &mut [f32]) {
    let plane = sizes.rows * sizes.columns;
    let weight = View::new(weights, sizes.outputs, sizes.reach());
    if sizes.kernel == 1 {
        multiply(y, 0.0, weight, View::new(x, sizes.inputs, plane));
    } else {
        SCRATCH.with_borrow_mut(|[columns, part]| {
            for (first, height) in sizes.bands() {
                let count = height * sizes.columns;
                let columns = room(columns, sizes.reach() * count);
                let part = room(part, sizes.outputs * count);
                spread(x, sizes, first, height, columns);
                multiply(part, 0.0, weight, View::new(columns, sizes.reach(), count));
                for (channel, part) in part.chunks_exact(count).enumerate() {
                    y[channel * plane + first * sizes.columns..][..count].copy_from_slice(part);
                }
            }
        });
    }
    for (y, bias) in y.chunks_exact_mut(plane).zip(bias.into_iter().flatten()) {
        y.iter_mut().for_each(|y| *y += bias);
    }
}

/// Gradients of weights and bias, and of the input where it is wanted.
pub(super) struct Gradients {
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
    pub input: Option<Tensor>,
}

/// From the gradient of the output.
pub(super) fn backward(
    x: &Tensor,
    weights: &[f32],
    kernel: usize,
    by_output: &Tensor,
    wants_input: bool,
) -> Gradients {
    let sizes = Sizes::new(x, weights.len(), kernel);
    let images = x.shape()[0];
    let per_group = images.div_ceil(GROUPS).max(1);
    let mut input = wants_input.then(|| Tensor::zeros(x.shape()));
    let (from, to) = (x.image_len(), by_output.image_len());
    let groups = images.div_ceil(per_group);
    let mut by_input: Vec<Option<&mut [f32]>> = match &mut input {
        Some(input) => input.data_mut().chunks_mut((per_group * from).max(1)).map(Some).collect(),
        None => (0..groups).map(|_| None).collect(),
    };
    let one_group = |(group, by_input): (usize, &mut Option<&mut [f32]>)| {
        let (mut by_weights, mut by_bias) = (vec![0.0; weights.len()], vec![0.0; sizes.outputs]);
        let range = group * per_group..((group + 1) * per_group).min(images);
        for image in range.clone() {
            let x = &x.data()[image * from..][..from];
            let by_y = &by_output.data()[image * to..][..to];
            let at = (image - range.start) * from;
            let by_x = by_input.as_deref_mut().map(|all| &mut all[at..at + from]);
            one_image_back(x, weights, by_y, &sizes, &mut by_weights, &mut by_bias, by_x);
        }
        (by_weights, by_bias)
    };
    let parts: Vec<(Vec<f32>, Vec<f32>)> = by_input.par_iter_mut().enumerate().map(one_group).collect();
    let (mut by_weights, mut by_bias) = (vec![0.0; weights.len()], vec![0.0; sizes.outputs]);
    for (weights, bias) in parts {
        by_weights.iter_mut().zip(weights).for_each(|(sum, part)| *sum += part);
        by_bias.iter_mut().zip(bias).for_each(|(sum, part)| *sum += part);
    }
    Gradients { weights: by_weights, bias: by_bias, input }
}

fn one_image_back(
    x: &[f32],
    weights: &[f32],
    by_y: &[f32],
    sizes: &Sizes,
    by_weights: &mut [f32],
    by_bias: &mut [f32],
    mut by_x: Option<&mut [f32]>,
) {
    let (plane, reach) = (sizes.rows * sizes.columns, sizes.reach());
    for (sum, by_y) in by_bias.iter_mut().zip(by_y.chunks_exact(plane)) {
        *sum += by_y.iter().sum::<f32>();
    }
    let weight = View::new(weights, sizes.outputs, reach);
    if sizes.kernel == 1 {
        let by_y = View::new(by_y, sizes.outputs, plane);
        multiply(by_weights, 1.0, by_y, View::new(x, sizes.inputs, plane).transposed());
        if let Some(by_x) = by_x {
            multiply(by_x, 0.0, weight.transposed(), by_y);
        }
        return;
    }
    SCRATCH.with_borrow_mut(|[columns, part]| {
        for (first, height) in sizes.bands() {
            let count = height * sizes.columns;
            let columns = room(columns, reach * count);
            let part = room(part, sizes.outputs * count);
            for (channel, part) in part.chunks_exact_mut(count).enumerate() {
                part.copy_from_slice(&by_y[channel * plane + first * sizes.columns..][..count]);
            }
            let by_part = View::new(part, sizes.outputs, count);
            spread(x, sizes, first, height, columns);
            multiply(by_weights, 1.0, by_part, View::new(columns, reach, count).transposed());
            if let Some(by_x) = by_x.as_deref_mut() {
                multiply(columns, 0.0, weight.transposed(), by_part);
                gather(columns, sizes, first, height, by_x);
            }
        }
    });
}
