//! Tiles for x86-64 with AVX2 and FMA.

use super::super::transform::{Channels, Transform};
use super::{LANES, MOST_POINTS, TiledConvolution};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Windows that share each pair of weight registers: 2 × 6 sums fill twelve of the sixteen registers.
const TILE: usize = 6;

/// Sixteen channels.
type Pixel = [__m256; 2];

impl Channels for __m256 {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: promised by the caller.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { _mm256_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        // SAFETY: promised by the caller.
        unsafe { _mm256_sub_ps(self, other) }
    }
}

/// # Safety
/// The machine has AVX2 and FMA; all tiles lie inside the images.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn apply<T: Transform>(convolution: &TiledConvolution, x: *const f32, y: *mut f32, slope: f32) {
    for tiles in convolution.tiles.chunks(TILE) {
        // SAFETY: promised by the caller.
        unsafe {
            match tiles.len() {
                6 => some::<T, 6>(convolution, x, tiles, y, slope),
                5 => some::<T, 5>(convolution, x, tiles, y, slope),
                4 => some::<T, 4>(convolution, x, tiles, y, slope),
                3 => some::<T, 3>(convolution, x, tiles, y, slope),
                2 => some::<T, 2>(convolution, x, tiles, y, slope),
                _ => some::<T, 1>(convolution, x, tiles, y, slope),
            }
        }
    }
}

/// `N` tiles.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn some<T: Transform, const N: usize>(
    convolution: &TiledConvolution,
    x: *const f32,
    tiles: &[[u32; 2]],
    y: *mut f32,
    slope: f32,
) {
    let mut windows: MaybeUninit<[[Pixel; N]; MOST_POINTS]> = MaybeUninit::uninit();
    let mut products: MaybeUninit<[[Pixel; N]; MOST_POINTS]> = MaybeUninit::uninit();
    let (window, product) =
        (windows.as_mut_ptr().cast::<[Pixel; N]>(), products.as_mut_ptr().cast::<[Pixel; N]>());
    let inputs = convolution.inputs;
    // SAFETY: there are `N` tiles inside the images; every point of every window is written before it is
    // read, and so is every product.
    unsafe {
        for (place, tile) in tiles.iter().enumerate().take(N) {
            for half in 0..inputs.div_ceil(8) {
                let to = window.cast::<__m256>().add(2 * place + half);
                T::sample(
                    x.add(tile[0] as usize + half * 8),
                    convolution.rows[0],
                    to,
                    size_of::<[Pixel; N]>(),
                );
            }
        }
        for point in 0..T::POINTS {
            let weights = convolution.weights.as_ptr().add(point * inputs * LANES);
            let values = window.add(point).cast::<f32>();
            let mut sums = [[_mm256_setzero_ps(); 2]; N];
            for input in 0..inputs {
                let low = _mm256_loadu_ps(weights.add(input * LANES));
                let high = _mm256_loadu_ps(weights.add(input * LANES + 8));
                for (place, sum) in sums.iter_mut().enumerate() {
                    let value = _mm256_broadcast_ss(&*values.add(place * LANES + input));
                    sum[0] = _mm256_fmadd_ps(low, value, sum[0]);
                    sum[1] = _mm256_fmadd_ps(high, value, sum[1]);
                }
            }
            *product.add(point) = sums;
        }
        for (place, tile) in tiles.iter().enumerate().take(N) {
            for half in 0..2 {
                let bias = _mm256_loadu_ps(convolution.bias.as_ptr().add(half * 8));
                let from = product.cast::<__m256>().add(2 * place + half);
                let pixels = T::fold(from, size_of::<[Pixel; N]>());
                for (index, sum) in pixels.into_iter().enumerate() {
                    let sum = _mm256_add_ps(sum, bias);
                    let scaled = _mm256_mul_ps(sum, _mm256_set1_ps(slope));
                    let to =
                        tile[1] as usize + index / 2 * convolution.rows[1] + index % 2 * LANES + half * 8;
                    // The sign bit of `sum` chooses.
                    _mm256_storeu_ps(y.add(to), _mm256_blendv_ps(sum, scaled, sum));
                }
            }
        }
    }
}
