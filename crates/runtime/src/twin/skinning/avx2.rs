//! Skinning for x86-64 with AVX2, FMA and F16C.

use super::super::lanes::{store, triples};
use super::{LANES, NUMBERS, Skin, WEIGHT_UNITS, Weights};
use std::arch::x86_64::*;
use std::ops::Range;
use understudy_core::Vec3;

/// # Safety
/// The machine has AVX2, FMA and F16C; the panels exist, hold all of `out` and have their places in `rest`, and every
/// bone of theirs has a matrix.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn add(
    skin: &Skin,
    panels: Range<usize>,
    rest: &[f32],
    skinning_matrices: &[[f32; 12]],
    out: &mut [Vec3],
) {
    let places = rest.chunks_exact(NUMBERS);
    for ((panel, rest), out) in panels.zip(places).zip(out.chunks_mut(LANES)) {
        // SAFETY: the panel exists, so its entries and its rest places do; `out` holds `out.len()` places.
        unsafe {
            let places = match &skin.weights {
                Weights::Single(weights) => skinned(skin, panel, rest, skinning_matrices, |entry| {
                    _mm256_loadu_ps(weights.get_unchecked(entry).as_ptr())
                }),
                Weights::Whole(weights) => {
                    // In units that are taken out at the end: a power of two changes no digit.
                    let units = skinned(skin, panel, rest, skinning_matrices, |entry| {
                        let eight = _mm_loadu_si128(weights.get_unchecked(entry).as_ptr().cast());
                        _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(eight))
                    });
                    units.map(|sum| _mm256_mul_ps(sum, _mm256_set1_ps(1.0 / WEIGHT_UNITS)))
                }
            };
            let [a, b, c] = triples(places);
            if out.len() == LANES {
                let from = out.as_ptr().cast::<f32>();
                let sums = [
                    _mm256_add_ps(a, _mm256_loadu_ps(from)),
                    _mm256_add_ps(b, _mm256_loadu_ps(from.add(8))),
                    _mm256_add_ps(c, _mm256_loadu_ps(from.add(16))),
                ];
                store(out.as_mut_ptr(), sums);
            } else {
                let mut eight = [Vec3::ZERO; LANES];
                store(eight.as_mut_ptr(), [a, b, c]);
                out.iter_mut().zip(eight).for_each(|(place, skinned)| *place += skinned);
            }
        }
    }
}

/// Eight places, x, y and z apart. `weights_of`: the eight weights of an entry.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn skinned(
    skin: &Skin,
    panel: usize,
    rest: &[f32],
    skinning_matrices: &[[f32; 12]],
    weights_of: impl Fn(usize) -> __m256,
) -> [__m256; 3] {
    // SAFETY: promised by the caller.
    unsafe {
        // Twelve sums, a weight and a number: fourteen of the sixteen registers.
        let mut blend = [_mm256_setzero_ps(); 12];
        let entries = *skin.starts.get_unchecked(panel)..*skin.starts.get_unchecked(panel + 1);
        for entry in entries.start as usize..entries.end as usize {
            let matrix = skinning_matrices.get_unchecked(*skin.bones.get_unchecked(entry) as usize);
            let weights = weights_of(entry);
            for (sum, number) in blend.iter_mut().zip(matrix) {
                *sum = _mm256_fmadd_ps(weights, _mm256_broadcast_ss(number), *sum);
            }
        }
        let rest = rest.as_ptr();
        let [x, y, z] = [_mm256_loadu_ps(rest), _mm256_loadu_ps(rest.add(8)), _mm256_loadu_ps(rest.add(16))];
        let row = |row: usize| {
            let sum = _mm256_fmadd_ps(x, blend[row], blend[row + 3]);
            _mm256_fmadd_ps(z, blend[row + 2], _mm256_fmadd_ps(y, blend[row + 1], sum))
        };
        [row(0), row(4), row(8)]
    }
}
