//! Kernel for aarch64: NEON is always there. f16 weights are widened in software-free form by the
//! compiler where it can; the sums run in four lanes.

use super::{Activation, Layer, PANEL, Packed, tanh};
use half::f16;
use std::arch::aarch64::*;

/// One pose.
pub fn apply(layer: &Layer, x: &[f32], y: &mut [f32]) {
    let columns = x.len();
    for (panel, out) in y.chunks_exact_mut(PANEL).enumerate() {
        let first = panel * columns * PANEL;
        // SAFETY: NEON is part of the aarch64 baseline; all addresses lie inside the slices, whose lengths
        // the packing fixed.
        unsafe {
            let bias = layer.bias().as_ptr().add(panel * PANEL);
            let mut sums = [0, 4, 8, 12].map(|lane| vld1q_f32(bias.add(lane)));
            for (column, &value) in x.iter().enumerate() {
                let place = first + column * PANEL;
                let mut widened = [0.0f32; PANEL];
                let weights = match layer.weights() {
                    Packed::Single(numbers) => numbers.as_ptr().add(place),
                    Packed::Half(bits) => {
                        for (wide, bits) in widened.iter_mut().zip(&bits[place..place + PANEL]) {
                            *wide = f16::from_bits(*bits).to_f32();
                        }
                        widened.as_ptr()
                    }
                };
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum = vfmaq_n_f32(*sum, vld1q_f32(weights.add(lane * 4)), value);
                }
            }
            for (lane, sum) in sums.iter().enumerate() {
                vst1q_f32(out.as_mut_ptr().add(lane * 4), *sum);
            }
        }
        if layer.activation() == Activation::Tanh {
            out.iter_mut().for_each(|value| *value = tanh::tanh(*value));
        }
    }
}
