//! Kernels with four numbers in a register: ARM, WebAssembly, and x86-64 without AVX2.

use super::{Activation, Layer, PANEL, Packed};
use crate::four_lanes::{FOUR, Four, Weight, add_products};

/// Registers of a panel.
const QUARTERS: usize = PANEL / FOUR;

/// Columns that are summed apart, so that additions need not wait for each other.
const UNROLL: usize = 2;

/// Poses that share one pass over half a panel: 2 × 4 sums, two weights and a value stay in registers everywhere.
const TILE: usize = 4;
/// Registers of half a panel.
const HALF: usize = QUARTERS / 2;

/// One pose. `x`: `[columns]`. `y`: `[padded_rows]`.
pub fn apply(layer: &Layer, x: &[f32], y: &mut [f32]) {
    assert!(x.len() == layer.columns && y.len() == layer.bias.len(), "buffers of the layer's size");
    // SAFETY: packing made as many weights as the asserted lengths want.
    unsafe {
        match &layer.weights {
            Packed::Half(bits) => matrix_vector(layer, bits.as_ptr(), x, y),
            Packed::Single(numbers) | Packed::Widened(numbers) => {
                matrix_vector(layer, numbers.as_ptr(), x, y)
            }
        }
    }
}

/// # Safety
/// `[panels · columns · PANEL]` weights can be read.
#[inline(always)]
unsafe fn matrix_vector<W: Weight>(layer: &Layer, weights: *const W, x: &[f32], y: &mut [f32]) {
    let columns = x.len();
    for (panel, (y, bias)) in y.chunks_exact_mut(PANEL).zip(layer.bias.chunks_exact(PANEL)).enumerate() {
        // SAFETY: the panel's columns lie in the weights, `bias` and `y` are panels.
        unsafe {
            let weights = weights.add(panel * columns * PANEL);
            let mut sums = [[Four::splat(0.0); QUARTERS]; UNROLL];
            for (quarter, sum) in sums[0].iter_mut().enumerate() {
                *sum = Four::load(bias.as_ptr().add(quarter * FOUR));
            }
            let mut column = 0;
            while column + UNROLL <= columns {
                for (lane, sums) in sums.iter_mut().enumerate() {
                    add_column(sums, weights.add((column + lane) * PANEL), x.as_ptr().add(column + lane));
                }
                column += UNROLL;
            }
            if column < columns {
                add_column(&mut sums[0], weights.add(column * PANEL), x.as_ptr().add(column));
            }
            for quarter in 0..QUARTERS {
                let sum = activate(layer.activation, sums[0][quarter] + sums[1][quarter]);
                sum.store(y.as_mut_ptr().add(quarter * FOUR));
            }
        }
    }
}

/// # Safety
/// A panel of weights and a number can be read.
#[inline(always)]
unsafe fn add_column<W: Weight>(sums: &mut [Four; QUARTERS], weights: *const W, x: *const f32) {
    // SAFETY: promised by the caller.
    unsafe {
        let value = Four::repeat(x);
        for (quarter, sum) in sums.iter_mut().enumerate() {
            *sum = W::four(weights.add(quarter * FOUR)).times_plus(value, *sum);
        }
    }
}

/// Many poses.
///
/// # Safety
/// `x` reaches to the end of the last pose's columns, `y` to the end of the last pose's padded rows, `panel` is
/// `[columns · PANEL]`.
pub unsafe fn apply_batch(
    layer: &Layer,
    poses: usize,
    x: &[f32],
    x_stride: usize,
    y: &mut [f32],
    y_stride: usize,
    panel: &mut [f32],
) {
    let columns = layer.columns;
    for index in 0..layer.bias.len() / PANEL {
        let first = index * columns * PANEL;
        let weights = match &layer.weights {
            Packed::Single(numbers) | Packed::Widened(numbers) => &numbers[first..first + columns * PANEL],
            Packed::Half(bits) => {
                let panel = &mut panel[..columns * PANEL];
                for (to, from) in panel.chunks_exact_mut(FOUR).zip(bits[first..].chunks_exact(FOUR)) {
                    // SAFETY: chunks of four.
                    unsafe { u16::four(from.as_ptr()).store(to.as_mut_ptr()) };
                }
                &*panel
            }
        };
        let mut pose = 0;
        while pose < poses {
            let count = TILE.min(poses - pose);
            // SAFETY: `pose + count ≤ poses`, and the caller promised the buffers for all poses.
            unsafe {
                let bias = layer.bias.as_ptr().add(index * PANEL);
                let input = x.as_ptr().add(pose * x_stride);
                let output = y.as_mut_ptr().add(pose * y_stride + index * PANEL);
                let tile = match count {
                    4 => tile::<4>,
                    3 => tile::<3>,
                    2 => tile::<2>,
                    _ => tile::<1>,
                };
                tile(weights.as_ptr(), bias, layer.activation, columns, input, x_stride, output, y_stride);
            }
            pose += count;
        }
    }
}

/// One panel for `N` poses.
///
/// # Safety
/// A panel of weights and bias, and the numbers of `N` poses, can be read and written.
unsafe fn tile<const N: usize>(
    weights: *const f32,
    bias: *const f32,
    activation: Activation,
    columns: usize,
    x: *const f32,
    x_stride: usize,
    y: *mut f32,
    y_stride: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut rows = [x; N];
        for (pose, row) in rows.iter_mut().enumerate() {
            *row = x.add(pose * x_stride);
        }
        for half in (0..PANEL).step_by(HALF * FOUR) {
            let start = [Four::load(bias.add(half)), Four::load(bias.add(half + FOUR))];
            let mut sums: [[Four; HALF]; N] = [start; N];
            add_products(weights.add(half), PANEL, rows, columns, &mut sums);
            for (pose, sums) in sums.into_iter().enumerate() {
                for (quarter, sum) in sums.into_iter().enumerate() {
                    activate(activation, sum).store(y.add(pose * y_stride + half + quarter * FOUR));
                }
            }
        }
    }
}

/// The tangent of every number, in place.
pub fn tanh_all(numbers: &mut [f32]) {
    let (fours, rest) = numbers.as_chunks_mut::<FOUR>();
    for four in fours {
        // SAFETY: a chunk holds four numbers.
        unsafe { Four::load(four.as_ptr()).tanh().store(four.as_mut_ptr()) };
    }
    rest.iter_mut().for_each(|number| *number = super::tanh::tanh(*number));
}

#[inline(always)]
fn activate(activation: Activation, x: Four) -> Four {
    match activation {
        Activation::None => x,
        Activation::Tanh => x.tanh(),
    }
}
