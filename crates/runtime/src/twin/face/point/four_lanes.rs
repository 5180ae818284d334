//! The usual size with four numbers in a register: ARM, WebAssembly, and x86-64 without AVX2. Sixteen features, shared
//! features by eights, three outputs or six.

use super::{LANES, Pixel, Point};
use crate::four_lanes::{FOUR, Four, Weight};

/// # Safety
/// Sizes are the usual ones; pixels lie in both images and have sets of their own where weights are not shared.
pub unsafe fn forward<const OUTPUTS: usize>(
    point: &Point,
    pixels: &[Pixel],
    features: &[f32],
    shared_features: &[f32],
    map: &mut [f32],
) {
    // SAFETY: promised by the caller; weights are in one of both precisions.
    unsafe {
        match point.half.is_empty() {
            true => rows::<OUTPUTS, f32>(point, &point.weights, pixels, features, shared_features, map),
            false => rows::<OUTPUTS, u16>(point, &point.half, pixels, features, shared_features, map),
        }
    }
}

/// # Safety
/// As [`forward`]; `weights` are all of the point's.
unsafe fn rows<const OUTPUTS: usize, W: Weight>(
    point: &Point,
    weights: &[W],
    pixels: &[Pixel],
    features: &[f32],
    shared_features: &[f32],
    map: &mut [f32],
) {
    let size = LANES + point.shared_features;
    // SAFETY: promised by the caller.
    unsafe {
        for (index, &[from, to]) in pixels.iter().enumerate() {
            let own = features.as_ptr().add(from as usize);
            for channel in (0..OUTPUTS).step_by(3) {
                let first = point.set(index) * OUTPUTS + channel;
                let row = weights.as_ptr().add(first * size);
                let mut sums = [Four::splat(0.0); 3];
                add(&mut sums, row, size, own, LANES);
                add(&mut sums, row.add(LANES), size, shared_features.as_ptr(), point.shared_features);
                let bias = point.bias.as_ptr().add(first);
                let bias = [Four::repeat(bias), Four::repeat(bias.add(1)), Four::repeat(bias.add(2))];
                let bias = Four::transpose([bias[0], bias[1], bias[2], bias[0]])[0];
                let three = Four::sums([sums[0], sums[1], sums[2], sums[0]]) + bias;
                three.store_three(map.as_mut_ptr().add(to as usize + channel));
            }
        }
    }
}

/// Adds products of three rows of weights, `size` apart, with the same numbers.
///
/// # Safety
/// So many numbers and weights can be read, a multiple of eight.
#[inline(always)]
unsafe fn add<W: Weight>(
    sums: &mut [Four; 3],
    weights: *const W,
    size: usize,
    numbers: *const f32,
    count: usize,
) {
    for place in (0..count).step_by(FOUR) {
        // SAFETY: promised by the caller.
        unsafe {
            let four = Four::load(numbers.add(place));
            for (output, sum) in sums.iter_mut().enumerate() {
                *sum = W::four(weights.add(output * size + place)).times_plus(four, *sum);
            }
        }
    }
}

/// # Safety
/// As [`forward`], for all three images.
pub unsafe fn backward(
    point: &Point,
    pixels: &[Pixel],
    slope: f32,
    features: &[f32],
    by_map: &[f32],
    slopes: &mut [f32],
    by_shared_features: &mut [f32],
) {
    // SAFETY: promised by the caller; weights are in one of both precisions.
    unsafe {
        match point.half.is_empty() {
            true => {
                columns(point, &point.weights, pixels, slope, features, by_map, slopes, by_shared_features)
            }
            false => columns(point, &point.half, pixels, slope, features, by_map, slopes, by_shared_features),
        }
    }
}

/// # Safety
/// As [`backward`]; `weights` are all of the point's.
unsafe fn columns<W: Weight>(
    point: &Point,
    weights: &[W],
    pixels: &[Pixel],
    slope: f32,
    features: &[f32],
    by_map: &[f32],
    slopes: &mut [f32],
    by_shared_features: &mut [f32],
) {
    let (size, leak) = (LANES + point.shared_features, Four::splat(slope));
    for (index, &[from, to]) in pixels.iter().enumerate() {
        // SAFETY: promised by the caller.
        unsafe {
            let by = by_map.as_ptr().add(to as usize);
            let set = weights.as_ptr().add(point.set(index) * point.outputs * size);
            let along = |start: Four, place: usize| {
                let mut sum = start;
                for output in 0..point.outputs {
                    sum =
                        W::four(set.add(output * size + place)).times_plus(Four::repeat(by.add(output)), sum);
                }
                sum
            };
            for place in (0..LANES).step_by(FOUR) {
                let sum = along(Four::splat(0.0), place);
                let before = Four::load(features.as_ptr().add(from as usize + place));
                before.choose(sum, sum * leak).store(slopes.as_mut_ptr().add(from as usize + place));
            }
            for place in (0..point.shared_features).step_by(FOUR) {
                let out = by_shared_features.as_mut_ptr().add(place);
                along(Four::load(out), LANES + place).store(out);
            }
        }
    }
}
