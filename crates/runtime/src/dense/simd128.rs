//! Kernel for browsers: WebAssembly SIMD, four lanes, no fused multiply-add in the baseline.

use super::{Activation, Layer, PANEL, Packed, tanh};
use half::f16;
use std::arch::wasm32::*;

/// One pose.
pub fn apply(layer: &Layer, x: &[f32], y: &mut [f32]) {
    let columns = x.len();
    for (panel, out) in y.chunks_exact_mut(PANEL).enumerate() {
        let first = panel * columns * PANEL;
        let bias = &layer.bias()[panel * PANEL..(panel + 1) * PANEL];
        let lanes = |w: &[f32], lane: usize| f32x4(w[lane], w[lane + 1], w[lane + 2], w[lane + 3]);
        let mut sums = [0, 4, 8, 12].map(|lane| lanes(bias, lane));
        let mut widened = [0.0f32; PANEL];
        for (column, &value) in x.iter().enumerate() {
            let place = first + column * PANEL;
            let value = f32x4_splat(value);
            let weights = match layer.weights() {
                Packed::Single(numbers) => &numbers[place..place + PANEL],
                Packed::Half(bits) => {
                    for (wide, bits) in widened.iter_mut().zip(&bits[place..place + PANEL]) {
                        *wide = f16::from_bits(*bits).to_f32();
                    }
                    &widened[..]
                }
            };
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = f32x4_add(*sum, f32x4_mul(lanes(weights, lane * 4), value));
            }
        }
        for (lane, sum) in sums.iter().enumerate() {
            let values = [
                f32x4_extract_lane::<0>(*sum),
                f32x4_extract_lane::<1>(*sum),
                f32x4_extract_lane::<2>(*sum),
                f32x4_extract_lane::<3>(*sum),
            ];
            out[lane * 4..lane * 4 + 4].copy_from_slice(&values);
        }
        if layer.activation() == Activation::Tanh {
            out.iter_mut().for_each(|value| *value = tanh::tanh(*value));
        }
    }
}
