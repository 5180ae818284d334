//! Kernels of [`super::Stencil`] for x86-64 with AVX2 and FMA: six pixels at a time share each pair of
//! weight registers, which keeps twelve sums in flight and the multiply-add units busy.

use super::{After, LANES, Stencil};
use std::arch::x86_64::*;

/// Pixels that share one pass over the weights: 2 × 6 sums fill twelve of the sixteen registers.
const TILE: usize = 6;

/// Input channels whose derivatives are summed together, for the same reason.
const ROWS: usize = 6;

/// [`Stencil::apply`].
///
/// # Safety
/// The machine has AVX2 and FMA; every place lies inside `x` and `y` (and the forward pass of `after`).
#[target_feature(enable = "avx2,fma")]
pub unsafe fn apply(stencil: &Stencil, x: &[f32], places: &[[u32; 2]], y: &mut [f32], after: After<'_>) {
    let (input, output) = (x.as_ptr(), y.as_mut_ptr());
    for panel in 0..stencil.outputs() / LANES {
        let mut rest = places;
        while !rest.is_empty() {
            let count = TILE.min(rest.len());
            // SAFETY: promised by the caller; `rest` holds at least `count` places.
            unsafe {
                match count {
                    6 => tile::<6>(stencil, panel, input, rest, output, after),
                    5 => tile::<5>(stencil, panel, input, rest, output, after),
                    4 => tile::<4>(stencil, panel, input, rest, output, after),
                    3 => tile::<3>(stencil, panel, input, rest, output, after),
                    2 => tile::<2>(stencil, panel, input, rest, output, after),
                    _ => tile::<1>(stencil, panel, input, rest, output, after),
                }
            }
            rest = &rest[count..];
        }
    }
}

/// `N` pixels of one panel.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const N: usize>(
    stencil: &Stencil,
    panel: usize,
    x: *const f32,
    places: &[[u32; 2]],
    y: *mut f32,
    after: After<'_>,
) {
    let inputs = stencil.inputs();
    // SAFETY: the caller promises `N` places inside the images; the stencil's arrays fit its own sizes.
    unsafe {
        let bias = stencil.bias().as_ptr().add(panel * LANES);
        let mut sums = [[_mm256_loadu_ps(bias), _mm256_loadu_ps(bias.add(8))]; N];
        let mut weights = stencil.weights().as_ptr().add(panel * stencil.taps().len() * inputs * LANES);
        let mut bases = [x; N];
        for pixel in 0..N {
            bases[pixel] = x.add(places[pixel][0] as usize);
        }
        for &tap in stencil.taps() {
            let mut sources = bases;
            for source in &mut sources {
                *source = source.add(tap as usize);
            }
            for channel in 0..inputs {
                let (low, high) = (_mm256_loadu_ps(weights), _mm256_loadu_ps(weights.add(8)));
                weights = weights.add(LANES);
                for pixel in 0..N {
                    let value = _mm256_broadcast_ss(&*sources[pixel].add(channel));
                    sums[pixel][0] = _mm256_fmadd_ps(low, value, sums[pixel][0]);
                    sums[pixel][1] = _mm256_fmadd_ps(high, value, sums[pixel][1]);
                }
            }
        }
        for pixel in 0..N {
            let start = places[pixel][1] as usize + panel * LANES;
            for half in 0..2 {
                let sum = sums[pixel][half];
                let result = match after {
                    After::Leaky(slope) => {
                        let scaled = _mm256_mul_ps(sum, _mm256_set1_ps(slope));
                        // The sign bit of `sum` chooses.
                        _mm256_blendv_ps(sum, scaled, sum)
                    }
                    After::Slope(slope, forward) => {
                        let scaled = _mm256_mul_ps(sum, _mm256_set1_ps(slope));
                        let before = _mm256_loadu_ps(forward.as_ptr().add(start + half * 8));
                        let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(before, _mm256_setzero_ps());
                        _mm256_blendv_ps(scaled, sum, positive)
                    }
                };
                _mm256_storeu_ps(y.add(start + half * 8), result);
            }
        }
    }
}

/// [`Stencil::accumulate`].
///
/// # Safety
/// The machine has AVX2 and FMA; every place lies inside `x` and `d`; the derivatives have the stencil's
/// shapes.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn accumulate(
    stencil: &Stencil,
    x: &[f32],
    places: &[[u32; 2]],
    d: &[f32],
    by_weights: &mut [f32],
    by_bias: &mut [f32],
) {
    let (inputs, taps) = (stencil.inputs(), stencil.taps());
    for panel in 0..stencil.outputs() / LANES {
        // SAFETY: promised by the caller.
        unsafe {
            let slopes = d.as_ptr().add(panel * LANES);
            let bias = by_bias.as_mut_ptr().add(panel * LANES);
            let mut sums = [_mm256_loadu_ps(bias), _mm256_loadu_ps(bias.add(8))];
            for place in places {
                let slope = slopes.add(place[1] as usize);
                sums[0] = _mm256_add_ps(sums[0], _mm256_loadu_ps(slope));
                sums[1] = _mm256_add_ps(sums[1], _mm256_loadu_ps(slope.add(8)));
            }
            _mm256_storeu_ps(bias, sums[0]);
            _mm256_storeu_ps(bias.add(8), sums[1]);
            for (index, tap) in taps.iter().enumerate() {
                // Blocks of about equal size: a small last one would wait for its own sums.
                let mut blocks = inputs.div_ceil(ROWS);
                let mut channel = 0;
                while channel < inputs {
                    let count = (inputs - channel).div_ceil(blocks);
                    blocks -= 1;
                    let source = x.as_ptr().add(*tap as usize + channel);
                    let first = ((panel * taps.len() + index) * inputs + channel) * LANES;
                    let out = by_weights.as_mut_ptr().add(first);
                    match count {
                        6 => rows::<6>(source, places, slopes, out),
                        5 => rows::<5>(source, places, slopes, out),
                        4 => rows::<4>(source, places, slopes, out),
                        3 => rows::<3>(source, places, slopes, out),
                        2 => rows::<2>(source, places, slopes, out),
                        _ => rows::<1>(source, places, slopes, out),
                    }
                    channel += count;
                }
            }
        }
    }
}

/// `N` input channels against sixteen outputs, over all places.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const N: usize>(x: *const f32, places: &[[u32; 2]], d: *const f32, out: *mut f32) {
    // SAFETY: promised by the caller of this private function.
    unsafe {
        let mut sums = [[_mm256_setzero_ps(); 2]; N];
        for row in 0..N {
            sums[row] = [_mm256_loadu_ps(out.add(row * LANES)), _mm256_loadu_ps(out.add(row * LANES + 8))];
        }
        for place in places {
            let (source, slope) = (x.add(place[0] as usize), d.add(place[1] as usize));
            let (low, high) = (_mm256_loadu_ps(slope), _mm256_loadu_ps(slope.add(8)));
            for row in 0..N {
                let value = _mm256_broadcast_ss(&*source.add(row));
                sums[row][0] = _mm256_fmadd_ps(low, value, sums[row][0]);
                sums[row][1] = _mm256_fmadd_ps(high, value, sums[row][1]);
            }
        }
        for row in 0..N {
            _mm256_storeu_ps(out.add(row * LANES), sums[row][0]);
            _mm256_storeu_ps(out.add(row * LANES + 8), sums[row][1]);
        }
    }
}
