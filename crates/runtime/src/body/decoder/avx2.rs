//! The decoder for x86-64 with AVX2, FMA and F16C.

use super::{Coefficients, Decoder, LANES, NUMBERS};
use crate::dense::Packed;
use std::arch::x86_64::*;
use understudy_core::Vec3;

/// Poses that share one pass over a panel: 3 × 3 sums, three weights and a value need thirteen of the sixteen
/// registers. With four poses the compiler keeps a sum in memory, which costs half of the speed.
const TILE: usize = 3;

/// # Safety
/// As [`Decoder::apply`], whose assertions hold; the machine has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn apply(
    decoder: &Decoder,
    coefficients: Coefficients<'_>,
    out: *mut Vec3,
    out_stride: usize,
    scratch: &mut [f32],
) {
    let (columns, poses) = (decoder.columns, coefficients.frames.len());
    let panel = |index: usize| {
        // SAFETY: the packing made bias and targets for every panel.
        let (bias, targets) = unsafe {
            (decoder.bias.as_ptr().add(index * NUMBERS), decoder.targets.as_ptr().add(index * LANES))
        };
        Panel { bias, targets, run: decoder.runs[index], columns, coefficients, out, out_stride }
    };
    let size = columns * NUMBERS;
    if let (Packed::Half(bits), 1) = (&decoder.weights, poses) {
        for index in 0..decoder.runs.len() {
            // SAFETY: weights hold `size` numbers a panel, coefficients the one pose.
            unsafe { panel(index).one_of_halves(bits.as_ptr().add(index * size)) };
        }
        return;
    }
    // Some panels at a time: they stay in the cache while all poses pass, and a pose's vertices are
    // written one after another.
    let together = decoder.panels_together();
    for start in (0..decoder.runs.len()).step_by(together) {
        let end = decoder.runs.len().min(start + together);
        // SAFETY: weights hold `size` numbers a panel, scratch that many for `together` panels, and every
        // tile of poses lies inside the coefficients.
        unsafe {
            let weights = match &decoder.weights {
                Packed::Single(numbers) => numbers.as_ptr().add(start * size),
                Packed::Half(bits) => {
                    let from = bits.as_ptr().add(start * size);
                    for block in 0..(end - start) * columns * 3 {
                        let eight = _mm_loadu_si128(from.add(block * 8).cast());
                        _mm256_storeu_ps(scratch.as_mut_ptr().add(block * 8), _mm256_cvtph_ps(eight));
                    }
                    scratch.as_ptr()
                }
            };
            let mut pose = 0;
            while pose + TILE <= poses {
                for index in start..end {
                    panel(index).tile::<TILE>(weights.add((index - start) * size), pose);
                }
                pose += TILE;
            }
            while pose < poses {
                for index in start..end {
                    panel(index).tile::<1>(weights.add((index - start) * size), pose);
                }
                pose += 1;
            }
        }
    }
}

/// One panel of eight vertices.
#[derive(Clone, Copy)]
struct Panel<'a> {
    bias: *const f32,
    targets: *const u32,
    run: bool,
    columns: usize,
    coefficients: Coefficients<'a>,
    out: *mut Vec3,
    out_stride: usize,
}

impl Panel<'_> {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tile<const N: usize>(self, weights: *const f32, first: usize) {
        // SAFETY: weights hold `columns` blocks, coefficients the poses `first .. first + N`.
        unsafe {
            let start = [
                _mm256_loadu_ps(self.bias),
                _mm256_loadu_ps(self.bias.add(8)),
                _mm256_loadu_ps(self.bias.add(16)),
            ];
            let mut sums = [start; N];
            let x = self.coefficients.numbers.as_ptr().add(first * self.coefficients.stride);
            for column in 0..self.columns {
                let block = weights.add(column * NUMBERS);
                let (a, b, c) =
                    (_mm256_loadu_ps(block), _mm256_loadu_ps(block.add(8)), _mm256_loadu_ps(block.add(16)));
                for (pose, sum) in sums.iter_mut().enumerate() {
                    let value = _mm256_broadcast_ss(&*x.add(pose * self.coefficients.stride + column));
                    sum[0] = _mm256_fmadd_ps(a, value, sum[0]);
                    sum[1] = _mm256_fmadd_ps(b, value, sum[1]);
                    sum[2] = _mm256_fmadd_ps(c, value, sum[2]);
                }
            }
            for (pose, sum) in sums.into_iter().enumerate() {
                self.finish(first + pose, sum);
            }
        }
    }

    /// The first pose alone, from 16-bit weights: four columns at a time hide the latency of the sums.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn one_of_halves(self, weights: *const u16) {
        const UNROLL: usize = 4;
        // SAFETY: weights hold `columns` blocks, coefficients the first pose.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 3]; UNROLL];
            for axis in 0..3 {
                sums[0][axis] = _mm256_loadu_ps(self.bias.add(axis * 8));
            }
            let x = self.coefficients.numbers.as_ptr();
            let whole = self.columns / UNROLL * UNROLL;
            let mut column = 0;
            while column < whole {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    add_halves(sum, weights.add((column + lane) * NUMBERS), &*x.add(column + lane));
                }
                column += UNROLL;
            }
            while column < self.columns {
                add_halves(&mut sums[column % UNROLL], weights.add(column * NUMBERS), &*x.add(column));
                column += 1;
            }
            let mut sum = sums[0];
            for (axis, sum) in sum.iter_mut().enumerate() {
                let left = _mm256_add_ps(*sum, sums[1][axis]);
                *sum = _mm256_add_ps(left, _mm256_add_ps(sums[2][axis], sums[3][axis]));
            }
            self.finish(0, sum);
        }
    }

    /// Carries eight places by the pose's bone and stores them.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn finish(self, pose: usize, local: [__m256; 3]) {
        // SAFETY: the pose has a frame, and the caller of `apply` owns the targets.
        unsafe {
            let [x, y, z] = carry(self.coefficients.frames.get_unchecked(pose), local);
            let out = self.out.add(pose * self.out_stride);
            // From three rows of eight to eight triples.
            let xy = _mm256_shuffle_ps::<0b10_00_10_00>(x, y);
            let yz = _mm256_shuffle_ps::<0b11_01_11_01>(y, z);
            let zx = _mm256_shuffle_ps::<0b11_01_10_00>(z, x);
            let first = _mm256_shuffle_ps::<0b10_00_10_00>(xy, zx);
            let second = _mm256_shuffle_ps::<0b11_01_10_00>(yz, xy);
            let third = _mm256_shuffle_ps::<0b11_01_11_01>(zx, yz);
            let triples = [
                _mm256_permute2f128_ps::<0x20>(first, second),
                _mm256_permute2f128_ps::<0x30>(third, first),
                _mm256_permute2f128_ps::<0x31>(second, third),
            ];
            if self.run {
                let to = out.add(*self.targets as usize).cast::<f32>();
                _mm256_storeu_ps(to, triples[0]);
                _mm256_storeu_ps(to.add(8), triples[1]);
                _mm256_storeu_ps(to.add(16), triples[2]);
            } else {
                let mut places = [Vec3::ZERO; LANES];
                let to = places.as_mut_ptr().cast::<f32>();
                _mm256_storeu_ps(to, triples[0]);
                _mm256_storeu_ps(to.add(8), triples[1]);
                _mm256_storeu_ps(to.add(16), triples[2]);
                for (lane, place) in places.iter().enumerate() {
                    *out.add(*self.targets.add(lane) as usize) = *place;
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_halves(sum: &mut [__m256; 3], weights: *const u16, value: &f32) {
    // SAFETY: a block of 24 weights starts at `weights`.
    unsafe {
        let value = _mm256_broadcast_ss(value);
        for (axis, sum) in sum.iter_mut().enumerate() {
            let eight = _mm256_cvtph_ps(_mm_loadu_si128(weights.add(axis * 8).cast()));
            *sum = _mm256_fmadd_ps(eight, value, *sum);
        }
    }
}

/// Eight points through an affine map, given by its rows.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn carry(rows: &[f32; 12], [x, y, z]: [__m256; 3]) -> [__m256; 3] {
    let set = |index: usize| _mm256_set1_ps(rows[index]);
    let mut out = [set(3), set(7), set(11)];
    out[0] = _mm256_fmadd_ps(x, set(0), out[0]);
    out[1] = _mm256_fmadd_ps(x, set(4), out[1]);
    out[2] = _mm256_fmadd_ps(x, set(8), out[2]);
    out[0] = _mm256_fmadd_ps(y, set(1), out[0]);
    out[1] = _mm256_fmadd_ps(y, set(5), out[1]);
    out[2] = _mm256_fmadd_ps(y, set(9), out[2]);
    out[0] = _mm256_fmadd_ps(z, set(2), out[0]);
    out[1] = _mm256_fmadd_ps(z, set(6), out[1]);
    out[2] = _mm256_fmadd_ps(z, set(10), out[2]);
    out
}
