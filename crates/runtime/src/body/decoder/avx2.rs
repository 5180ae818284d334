//! The decoder for x86-64 with AVX2, FMA and F16C.

use super::super::lanes::{Eight, scatter, store, triples};
use super::{Coefficients, Decoder, LANES, NUMBERS, STEP, Weights};
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
    let poses = coefficients.frames.len();
    let panel = |index: usize| {
        let columns = decoder.starts[index + 1] - decoder.starts[index];
        // SAFETY: the packing made bias and targets for every panel.
        let (bias, targets) = unsafe {
            (decoder.bias.as_ptr().add(index * NUMBERS), decoder.targets.as_ptr().add(index * LANES))
        };
        Panel { bias, targets, run: decoder.runs[index], columns, coefficients, out, out_stride }
    };
    if poses == 1 {
        for index in 0..decoder.runs.len() {
            let first = decoder.starts[index] * NUMBERS;
            // SAFETY: weights hold the panel's columns, coefficients the one pose.
            unsafe {
                match &decoder.weights {
                    Weights::Half(bits) => panel(index).one(bits.as_ptr().add(first), 1.0),
                    Weights::Fixed(steps) => panel(index).one(steps.as_ptr().add(first), STEP),
                    Weights::Single(numbers) => panel(index).one(numbers.as_ptr().add(first), 1.0),
                }
            }
        }
        return;
    }
    // Some panels at a time: they stay in the cache while all poses pass, and a pose's vertices are
    // written one after another.
    for batch in &decoder.batches {
        let (first, last) = (decoder.starts[batch.start], decoder.starts[batch.end]);
        // SAFETY: weights hold the columns of all panels, scratch those of a batch, and every tile of poses
        // lies inside the coefficients.
        unsafe {
            let weights = match &decoder.weights {
                Weights::Single(numbers) => numbers.as_ptr().add(first * NUMBERS),
                Weights::Half(bits) => unpack(bits.as_ptr().add(first * NUMBERS), last - first, 1.0, scratch),
                Weights::Fixed(steps) => {
                    unpack(steps.as_ptr().add(first * NUMBERS), last - first, STEP, scratch)
                }
            };
            let at = |index: usize| weights.add((decoder.starts[index] - first) * NUMBERS);
            let mut pose = 0;
            while pose + TILE <= poses {
                let later = pose + TILE..poses.min(pose + 2 * TILE);
                for index in batch.clone() {
                    // A few at a time: a core waits for so many lines of memory at once and no more.
                    later.clone().for_each(|next| panel(index).expect(next));
                    panel(index).tile::<TILE>(at(index), pose);
                }
                pose += TILE;
            }
            while pose < poses {
                for index in batch.clone() {
                    panel(index).tile::<1>(at(index), pose);
                }
                pose += 1;
            }
        }
    }
}

/// Widens some columns into working memory.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn unpack<W: Eight>(from: *const W, columns: usize, unit: f32, scratch: &mut [f32]) -> *const f32 {
    let unit = _mm256_set1_ps(unit);
    for block in 0..columns * 3 {
        // SAFETY: the caller has that many columns, and working memory was asserted to hold them.
        unsafe {
            let eight = _mm256_mul_ps(W::load(from.add(block * 8)), unit);
            _mm256_storeu_ps(scratch.as_mut_ptr().add(block * 8), eight);
        }
    }
    scratch.as_ptr()
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

    /// Asks for the memory that a later pose will be written to: poses lie far apart, and nothing else foresees it.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn expect(self, pose: usize) {
        // SAFETY: the pose and its targets are there to be written.
        unsafe {
            let out = self.out.add(pose * self.out_stride);
            let ask = |target: u32| _mm_prefetch::<_MM_HINT_ET0>(out.add(target as usize).cast());
            match self.run {
                true => {
                    ask(*self.targets);
                    ask(*self.targets + LANES as u32 - 1);
                }
                false => (0..LANES).for_each(|lane| ask(*self.targets.add(lane))),
            }
        }
    }

    /// The first pose alone: four columns at a time hide the latency of the sums. `unit` is what one of the
    /// stored weights is worth.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn one<W: Eight>(self, weights: *const W, unit: f32) {
        const UNROLL: usize = 4;
        // SAFETY: weights hold `columns` blocks, coefficients the first pose.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 3]; UNROLL];
            let x = self.coefficients.numbers.as_ptr();
            let whole = self.columns / UNROLL * UNROLL;
            let mut column = 0;
            while column < whole {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    add(sum, weights.add((column + lane) * NUMBERS), &*x.add(column + lane));
                }
                column += UNROLL;
            }
            while column < self.columns {
                add(&mut sums[column % UNROLL], weights.add(column * NUMBERS), &*x.add(column));
                column += 1;
            }
            let unit = _mm256_set1_ps(unit);
            let mut sum = sums[0];
            for (axis, sum) in sum.iter_mut().enumerate() {
                let left = _mm256_add_ps(*sum, sums[1][axis]);
                let whole = _mm256_add_ps(left, _mm256_add_ps(sums[2][axis], sums[3][axis]));
                *sum = _mm256_fmadd_ps(whole, unit, _mm256_loadu_ps(self.bias.add(axis * 8)));
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
            let places = carry(self.coefficients.frames.get_unchecked(pose), local);
            let out = self.out.add(pose * self.out_stride);
            match self.run {
                true => store(out.add(*self.targets as usize), triples(places)),
                false => scatter(out, &*self.targets.cast::<[u32; LANES]>(), places),
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add<W: Eight>(sum: &mut [__m256; 3], weights: *const W, value: &f32) {
    // SAFETY: a block of 24 weights starts at `weights`.
    unsafe {
        let value = _mm256_broadcast_ss(value);
        for (axis, sum) in sum.iter_mut().enumerate() {
            *sum = _mm256_fmadd_ps(W::load(weights.add(axis * 8)), value, *sum);
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
