//! Tiles with four numbers in a register: ARM, WebAssembly, and x86-64 without AVX2.

use super::super::transform::Transform;
use super::{LANES, MOST_POINTS, TiledConvolution};
use crate::four_lanes::{FOUR, Four, add_products};
use std::mem::MaybeUninit;

/// Windows that share each weight register, half of the channels at a time: eight sums.
const TILE: usize = 4;
/// Registers of sixteen channels, and of half of them.
const QUARTERS: usize = LANES / FOUR;
const HALF: usize = QUARTERS / 2;

/// Sixteen channels.
type Pixel = [Four; QUARTERS];

/// # Safety
/// All tiles lie inside the images.
pub unsafe fn apply<T: Transform>(convolution: &TiledConvolution, x: *const f32, y: *mut f32, slope: f32) {
    for tiles in convolution.tiles.chunks(TILE) {
        // SAFETY: promised by the caller.
        unsafe {
            match tiles.len() {
                4 => some::<T, 4>(convolution, x, tiles, y, slope),
                3 => some::<T, 3>(convolution, x, tiles, y, slope),
                2 => some::<T, 2>(convolution, x, tiles, y, slope),
                _ => some::<T, 1>(convolution, x, tiles, y, slope),
            }
        }
    }
}

/// `N` tiles.
///
/// # Safety
/// There are so many, inside the images.
unsafe fn some<T: Transform, const N: usize>(
    convolution: &TiledConvolution,
    x: *const f32,
    tiles: &[[u32; 2]],
    y: *mut f32,
    slope: f32,
) {
    let mut windows: MaybeUninit<[[Pixel; N]; MOST_POINTS]> = MaybeUninit::uninit();
    let mut products: MaybeUninit<[[Pixel; N]; MOST_POINTS]> = MaybeUninit::uninit();
    let (window, product) = (windows.as_mut_ptr().cast::<Four>(), products.as_mut_ptr().cast::<Four>());
    let inputs = convolution.inputs;
    // SAFETY: there are `N` tiles inside the images; every point of every window is written before it is read, and so is
    // every product.
    unsafe {
        for (place, tile) in tiles.iter().enumerate().take(N) {
            for quarter in 0..inputs.div_ceil(FOUR) {
                let from = x.add(tile[0] as usize + quarter * FOUR);
                let to = window.add(QUARTERS * place + quarter);
                T::sample(from, convolution.rows[0], to, size_of::<[Pixel; N]>());
            }
        }
        for point in 0..T::POINTS {
            let weights = convolution.weights.as_ptr().add(point * inputs * LANES);
            let values = window.add(point * N * QUARTERS).cast::<f32>().cast_const();
            let mut rows = [values; N];
            for (place, row) in rows.iter_mut().enumerate() {
                *row = values.add(place * LANES);
            }
            for half in 0..QUARTERS / HALF {
                let mut sums = [[Four::splat(0.0); HALF]; N];
                add_products(weights.add(half * HALF * FOUR), LANES, rows, inputs, &mut sums);
                for (place, sums) in sums.into_iter().enumerate() {
                    for (quarter, sum) in sums.into_iter().enumerate() {
                        *product.add((point * N + place) * QUARTERS + half * HALF + quarter) = sum;
                    }
                }
            }
        }
        let slope = Four::splat(slope);
        for (place, tile) in tiles.iter().enumerate().take(N) {
            for quarter in 0..QUARTERS {
                let bias = Four::load(convolution.bias.as_ptr().add(quarter * FOUR));
                let from = product.add(QUARTERS * place + quarter).cast_const();
                let pixels = T::fold(from, size_of::<[Pixel; N]>());
                for (index, sum) in pixels.into_iter().enumerate() {
                    let to = tile[1] as usize
                        + index / 2 * convolution.rows[1]
                        + index % 2 * LANES
                        + quarter * FOUR;
                    (sum + bias).leaky(slope).store(y.add(to));
                }
            }
        }
    }
}
