//! The decoder in plain loops of eight: the reference, and what NEON and SIMD128 are compiled from.

use super::{Coefficients, Decoder, LANES, NUMBERS};
use crate::dense::Packed;
use half::f16;
use understudy_core::Vec3;

/// # Safety
/// As [`Decoder::apply`], whose assertions hold.
pub unsafe fn apply(decoder: &Decoder, coefficients: Coefficients<'_>, out: *mut Vec3, out_stride: usize) {
    let columns = decoder.columns;
    for panel in 0..decoder.runs.len() {
        let bias = &decoder.bias[panel * NUMBERS..][..NUMBERS];
        let targets = &decoder.targets[panel * LANES..][..LANES];
        for (pose, frame) in coefficients.frames.iter().enumerate() {
            let mut sums = [0.0f32; NUMBERS];
            sums.copy_from_slice(bias);
            let x = &coefficients.numbers[pose * coefficients.stride..][..columns];
            let first = panel * columns * NUMBERS;
            match &decoder.weights {
                Packed::Single(numbers) => {
                    for (weights, value) in numbers[first..].chunks_exact(NUMBERS).zip(x) {
                        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * value);
                    }
                }
                Packed::Half(bits) => {
                    for (weights, value) in bits[first..].chunks_exact(NUMBERS).zip(x) {
                        let pairs = sums.iter_mut().zip(weights);
                        pairs.for_each(|(sum, bits)| *sum += f16::from_bits(*bits).to_f32() * value);
                    }
                }
            }
            for (lane, &target) in targets.iter().enumerate() {
                let local = Vec3::new(sums[lane], sums[LANES + lane], sums[2 * LANES + lane]);
                let row = |row: usize| {
                    let [x, y, z, t] = [frame[row], frame[row + 1], frame[row + 2], frame[row + 3]];
                    x * local.x + y * local.y + z * local.z + t
                };
                // SAFETY: the caller owns every target of every pose.
                unsafe { *out.add(pose * out_stride + target as usize) = Vec3::new(row(0), row(4), row(8)) };
            }
        }
    }
}
