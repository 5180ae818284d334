//! The decoder in plain loops of eight: the reference.

use super::{Coefficients, Decoder, LANES, NUMBERS};
use understudy_core::Vec3;

/// # Safety
/// As [`Decoder::apply`], whose assertions hold.
pub unsafe fn apply(decoder: &Decoder, coefficients: Coefficients<'_>, out: *mut Vec3, out_stride: usize) {
    for panel in 0..decoder.runs.len() {
        let bias = &decoder.bias[panel * NUMBERS..][..NUMBERS];
        let targets = &decoder.targets[panel * LANES..][..LANES];
        for (pose, frame) in coefficients.frames.iter().enumerate() {
            let mut sums = [0.0f32; NUMBERS];
            sums.copy_from_slice(bias);
            let (first, end) = (decoder.starts[panel], decoder.starts[panel + 1]);
            let x = &coefficients.numbers[pose * coefficients.stride..][..end - first];
            let (first, end) = (first * NUMBERS, end * NUMBERS);
            for (value, column) in x.iter().zip((first..end).step_by(NUMBERS)) {
                let weights = (column..column + NUMBERS).map(|place| decoder.weights.number(place));
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * value);
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
