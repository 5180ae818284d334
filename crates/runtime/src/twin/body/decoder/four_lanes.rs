//! The decoder with four numbers in a register: ARM, WebAssembly, and x86-64 without AVX2.

use super::{Coefficients, Decoder, LANES, NUMBERS, Run, STEP, Weights, lane_of};
use crate::dense::Packed;
use crate::four_lanes::{FOUR, Four, Weight};
use understudy_core::Vec3;

/// Registers of a column.
const REGISTERS: usize = NUMBERS / FOUR;
/// Poses that share one pass over a panel: twelve sums.
const TILE: usize = 2;

/// # Safety
/// As [`Decoder::apply`], whose assertions hold.
pub unsafe fn apply(decoder: &Decoder, coefficients: Coefficients<'_>, out: *mut Vec3, out_stride: usize) {
    // SAFETY: promised by the caller; of every form there are as many weights as panels have columns.
    unsafe {
        match &decoder.weights {
            Weights::Plain(Packed::Half(bits)) => {
                panels(decoder, bits.as_ptr(), 1.0, coefficients, out, out_stride)
            }
            Weights::Plain(Packed::Single(numbers) | Packed::Widened(numbers)) => {
                panels(decoder, numbers.as_ptr(), 1.0, coefficients, out, out_stride)
            }
            Weights::Fixed(steps) => panels(decoder, steps.as_ptr(), STEP, coefficients, out, out_stride),
        }
    }
}

/// # Safety
/// As [`apply`]; `unit` is what one of the stored weights is worth.
#[inline(always)]
unsafe fn panels<W: Weight>(
    decoder: &Decoder,
    weights: *const W,
    unit: f32,
    coefficients: Coefficients<'_>,
    out: *mut Vec3,
    out_stride: usize,
) {
    let poses = coefficients.frames.len();
    for (index, run) in decoder.runs.iter().enumerate() {
        let (first, end) = (decoder.starts[index], decoder.starts[index + 1]);
        let bias = &decoder.bias[index * NUMBERS..(index + 1) * NUMBERS];
        let targets = &decoder.targets[index * LANES..(index + 1) * LANES];
        // SAFETY: weights hold the panel's columns, coefficients all poses, and the caller owns the targets.
        unsafe {
            let weights = weights.add(first * NUMBERS);
            let x = |pose: usize| coefficients.numbers.as_ptr().add(pose * coefficients.stride);
            let mut pose = 0;
            while pose < poses {
                let write = |pose: usize, sums: &[Four; REGISTERS]| {
                    let places = place(sums, bias, unit, &coefficients.frames[pose]);
                    store(out.add(pose * out_stride), *run, targets, &places);
                };
                if pose + TILE <= poses {
                    let sums = columns(weights, end - first, [x(pose), x(pose + 1)]);
                    write(pose, &sums[0]);
                    write(pose + 1, &sums[1]);
                    pose += TILE;
                } else {
                    let sums = columns(weights, end - first, [x(pose)]);
                    write(pose, &sums[0]);
                    pose += 1;
                }
            }
        }
    }
}

/// Sums over the columns of a panel for `N` poses.
///
/// # Safety
/// The panel has so many columns, and so have the poses' coefficients.
#[inline(always)]
unsafe fn columns<W: Weight, const N: usize>(
    weights: *const W,
    count: usize,
    x: [*const f32; N],
) -> [[Four; REGISTERS]; N] {
    let mut sums = [[Four::splat(0.0); REGISTERS]; N];
    for column in 0..count {
        // SAFETY: promised by the caller.
        unsafe {
            let weights = weights.add(column * NUMBERS);
            let mut values = [Four::splat(0.0); N];
            for (value, x) in values.iter_mut().zip(x) {
                *value = Four::repeat(x.add(column));
            }
            for register in 0..REGISTERS {
                let weight = W::four(weights.add(register * FOUR));
                for (sums, value) in sums.iter_mut().zip(values) {
                    sums[register] = weight.times_plus(value, sums[register]);
                }
            }
        }
    }
    sums
}

/// The places of a panel's lanes in the world, padded to four numbers.
#[inline(always)]
fn place(sums: &[Four; REGISTERS], bias: &[f32], unit: f32, frame: &[f32; 12]) -> [Four; LANES] {
    let unit = Four::splat(unit);
    let mut out = [unit; LANES];
    for half in 0..LANES / FOUR {
        let local = |axis: usize| {
            let register = axis * (LANES / FOUR) + half;
            // SAFETY: a panel's bias has as many numbers as its sums.
            let bias = unsafe { Four::load(bias.as_ptr().add(register * FOUR)) };
            sums[register].times_plus(unit, bias)
        };
        let [x, y, z] = [local(0), local(1), local(2)];
        let row = |row: usize| {
            let number = |column: usize| Four::splat(frame[4 * row + column]);
            let sum = x.times_plus(number(0), number(3));
            z.times_plus(number(2), y.times_plus(number(1), sum))
        };
        let lanes = Four::transpose([row(0), row(1), row(2), Four::splat(0.0)]);
        out[half * FOUR..(half + 1) * FOUR].copy_from_slice(&lanes);
    }
    out
}

/// Stores a panel's places. Where targets follow each other, a place is written with the number behind it, which the next
/// one overwrites.
///
/// # Safety
/// Every target can be written.
#[inline(always)]
unsafe fn store(out: *mut Vec3, run: Run, targets: &[u32], places: &[Four; LANES]) {
    let length = match run {
        Run::Whole => LANES,
        Run::Halves => LANES / 2,
        Run::Pairs => 2,
        Run::Single => 1,
    };
    for vertex in 0..LANES {
        let lane = lane_of(vertex);
        // SAFETY: promised by the caller; within a run the next place is a target too.
        unsafe {
            let to = out.add(targets[lane] as usize).cast::<f32>();
            if (vertex + 1) % length == 0 { places[lane].store_three(to) } else { places[lane].store(to) }
        }
    }
}
