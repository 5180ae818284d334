//! The decoder for x86-64 with AVX2, FMA and F16C.

use super::super::super::lanes::{Eight, scatter, store, store_halves, store_pairs, triples_of_thirds};
use super::prefetch::{COLUMNS_PER_LINE, Prefetch, rows};
use super::{Coefficients, Decoder, LANES, NUMBERS, Run, STEP, Weights, lane_of};
use crate::dense::Packed;
use std::arch::asm;
use std::arch::x86_64::*;
use understudy_core::Vec3;

/// Poses that share one pass over a panel: 4 × 3 sums, three weights and a value fill all sixteen registers, and
/// twelve sums hide the latency of the fused multiply-add, which nine do not.
const TILE: usize = 4;

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
    let panel = |index: usize| panel(decoder, index, coefficients, out, out_stride);
    if poses == 1 {
        for index in 0..decoder.runs.len() {
            let first = decoder.starts[index] * NUMBERS;
            // SAFETY: weights hold the panel's columns, coefficients the one pose.
            unsafe {
                match &decoder.weights {
                    Weights::Plain(Packed::Half(bits)) => panel(index).one(bits.as_ptr().add(first), 1.0),
                    Weights::Fixed(steps) => panel(index).one(steps.as_ptr().add(first), STEP),
                    Weights::Plain(Packed::Single(numbers) | Packed::Widened(numbers)) => {
                        panel(index).one(numbers.as_ptr().add(first), 1.0)
                    }
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
                Weights::Plain(Packed::Single(numbers) | Packed::Widened(numbers)) => {
                    numbers.as_ptr().add(first * NUMBERS)
                }
                Weights::Plain(Packed::Half(bits)) => {
                    unpack(bits.as_ptr().add(first * NUMBERS), last - first, 1.0, scratch)
                }
                Weights::Fixed(steps) => {
                    unpack(steps.as_ptr().add(first * NUMBERS), last - first, STEP, scratch)
                }
            };
            let at = |index: usize| weights.add((decoder.starts[index] - first) * NUMBERS);
            let rows = |first: usize| rows::<TILE>(first, &coefficients, out, out_stride);
            let (mut pose, mut here) = (0, rows(0));
            while pose + TILE <= poses {
                let next = rows(pose + TILE);
                for index in batch.clone() {
                    let panel = panel(index);
                    // What comes next: another panel in these poses, or the first one in the next.
                    let (later, rows) =
                        if index + 1 < batch.end { (index + 1, &here) } else { (batch.start, &next) };
                    panel.four(
                        at(index),
                        pose,
                        Prefetch::new(decoder, later..later + 1, panel.columns, rows),
                    );
                }
                (pose, here) = (pose + TILE, next);
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

/// What one column adds in four poses, as text.
macro_rules! four {
    ($column:literal) => {
        column!("32", $column; "a" "{x}", "b" "{x} + {stride}", "c" "{x} + 2 * {stride}", "d" "{x} + {thrice}")
    };
}

/// One panel of eight vertices.
#[derive(Clone, Copy)]
pub struct Panel<'a> {
    bias: *const f32,
    targets: *const u32,
    pub run: Run,
    columns: usize,
    pub coefficients: Coefficients<'a>,
    out: *mut Vec3,
    pub out_stride: usize,
}

/// A panel of a decoder and what it works on.
#[inline]
pub fn panel<'a>(
    decoder: &Decoder,
    index: usize,
    coefficients: Coefficients<'a>,
    out: *mut Vec3,
    out_stride: usize,
) -> Panel<'a> {
    let columns = decoder.starts[index + 1] - decoder.starts[index];
    let (bias, targets) =
        (decoder.bias[index * NUMBERS..].as_ptr(), decoder.targets[index * LANES..].as_ptr());
    Panel { bias, targets, run: decoder.runs[index], columns, coefficients, out, out_stride }
}

impl Panel<'_> {
    /// Where a vertex of the panel goes in a pose.
    ///
    /// # Safety
    /// The caller of [`Decoder::apply`] owns the targets.
    #[inline]
    pub unsafe fn target(self, pose: usize, vertex: usize) -> *mut Vec3 {
        // SAFETY: a panel has eight targets; the rest is promised by the caller.
        unsafe { self.out.add(pose * self.out_stride + *self.targets.add(lane_of(vertex)) as usize) }
    }

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

    /// A whole tile. Compilers load ahead and then keep a sum in memory, which costs half of the speed: here every
    /// register is named.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn four(self, weights: *const f32, first: usize, ahead: Prefetch<'_, TILE>) {
        // SAFETY: weights hold `columns` blocks, coefficients the poses `first .. first + TILE`. The loops read those,
        // early lines and the rows' addresses alone, and end after the columns of early lines and after the rest.
        unsafe {
            let start = |axis: usize| _mm256_loadu_ps(self.bias.add(8 * axis));
            let mut sums = [[start(0), start(1), start(2)]; TILE];
            let [[a0, a1, a2], [b0, b1, b2], [c0, c1, c2], [d0, d1, d2]] = &mut sums;
            let stride = self.coefficients.stride * size_of::<f32>();
            asm!(
                "test {early}, {early}",
                "jz 3f",
                "2:",
                "mov {line:e}, [{lines}]",
                prefetch!("0"), four!("0"), prefetch!("1"), four!("1"), prefetch!("2"), four!("2"), prefetch!("3"), four!("3"),
                "add {weights}, 4 * 96",
                "add {x}, 4 * 4",
                "add {lines}, 4",
                "dec {early}",
                "jnz 2b",
                "3:",
                "test {rest}, {rest}",
                "jz 5f",
                "4:",
                four!("0"),
                "add {weights}, 96",
                "add {x}, 4",
                "dec {rest}",
                "jnz 4b",
                "5:",
                a0 = inout(ymm_reg) *a0, a1 = inout(ymm_reg) *a1, a2 = inout(ymm_reg) *a2,
                b0 = inout(ymm_reg) *b0, b1 = inout(ymm_reg) *b1, b2 = inout(ymm_reg) *b2,
                c0 = inout(ymm_reg) *c0, c1 = inout(ymm_reg) *c1, c2 = inout(ymm_reg) *c2,
                d0 = inout(ymm_reg) *d0, d1 = inout(ymm_reg) *d1, d2 = inout(ymm_reg) *d2,
                w0 = out(ymm_reg) _, w1 = out(ymm_reg) _, w2 = out(ymm_reg) _, value = out(ymm_reg) _,
                weights = inout(reg) weights => _,
                x = inout(reg) self.coefficients.numbers.as_ptr().add(first * self.coefficients.stride) => _,
                stride = in(reg) stride,
                thrice = in(reg) 3 * stride,
                rows = in(reg) ahead.rows.as_ptr(),
                lines = inout(reg) ahead.early.as_ptr() => _,
                early = inout(reg) ahead.early.len() => _,
                rest = inout(reg) self.columns - COLUMNS_PER_LINE * ahead.early.len() => _,
                row = out(reg) _,
                line = out(reg) _,
                options(readonly, nostack),
            );
            ahead.fetch_rest();
            // One by one, and the question before: a loop would keep the sums in memory.
            let [a, b, c, d] = sums;
            let all = [(first, a), (first + 1, b), (first + 2, c), (first + 3, d)];
            match self.run {
                Run::Whole => self.finish_whole(all),
                _ => all.into_iter().for_each(|(pose, sum)| self.finish(pose, sum)),
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

    /// [`Self::finish`] for four poses of neighbours.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn finish_whole(self, [a, b, c, d]: [(usize, [__m256; 3]); TILE]) {
        // SAFETY: the poses have frames, and the caller of `apply` owns the targets.
        unsafe {
            let to = self.target(0, 0);
            let one = |(pose, local): (usize, [__m256; 3])| {
                let places = carry(self.coefficients.frames.get_unchecked(pose), local);
                store(to.add(pose * self.out_stride), triples_of_thirds(places));
            };
            one(a);
            one(b);
            one(c);
            one(d);
        }
    }

    /// Carries eight places by the pose's bone and stores them.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn finish(self, pose: usize, local: [__m256; 3]) {
        // SAFETY: the pose has a frame, and the caller of `apply` owns the targets.
        unsafe {
            self.write(pose, carry(self.coefficients.frames.get_unchecked(pose), local));
        }
    }

    /// Stores eight places of a pose.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C, and the caller of [`Decoder::apply`] owns the targets of this pose.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn write(self, pose: usize, places: [__m256; 3]) {
        // SAFETY: promised by the caller.
        unsafe {
            let at = |vertex: usize| self.target(pose, vertex);
            match self.run {
                Run::Whole => store(at(0), triples_of_thirds(places)),
                Run::Halves => store_halves([0, LANES / 2].map(at), triples_of_thirds(places)),
                Run::Pairs => store_pairs([0, 2, 4, 6].map(at), triples_of_thirds(places)),
                Run::Single => {
                    let out = self.out.add(pose * self.out_stride);
                    scatter(out, &*self.targets.cast::<[u32; LANES]>(), places);
                }
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
