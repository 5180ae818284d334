//! The decoder of crowds for x86-64 with AVX-512: two panels side by side, sixteen vertices, in eight poses at a time.
//! One pose alone waits for memory: it stays with [`super::avx2`].

use super::super::super::lanes::{Eight, store};
use super::avx2::{Panel, panel};
use super::prefetch::{COLUMNS_PER_LINE, Prefetch, rows};
use super::{Coefficients, Decoder, NUMBERS, PAIR, Run, STEP, Weights};
use crate::dense::Packed;
use std::arch::asm;
use std::arch::x86_64::*;
use understudy_core::Vec3;

/// Poses that share one pass over a pair of panels: 8 × 3 sums of the 32 registers.
const TILE: usize = 8;

/// # Safety
/// As [`Decoder::apply`], whose assertions hold; the machine has AVX-512 F, AVX2, FMA and F16C.
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
pub unsafe fn apply(
    decoder: &Decoder,
    coefficients: Coefficients<'_>,
    out: *mut Vec3,
    out_stride: usize,
    scratch: &mut [f32],
) {
    let poses = coefficients.frames.len();
    // As many pairs at a time as stay in the cache while all poses pass.
    for batch in &decoder.batches {
        let pairs = batch.clone().step_by(2);
        // SAFETY: weights hold the columns of all panels, scratch those of a batch, and every tile of poses lies
        // inside the coefficients.
        unsafe {
            let mut to = scratch.as_mut_ptr();
            for first in pairs.clone() {
                let panels = first..batch.end.min(first + 2);
                match &decoder.weights {
                    Weights::Plain(Packed::Half(bits)) => unpack(decoder, panels, bits.as_ptr(), 1.0, to),
                    Weights::Fixed(steps) => unpack(decoder, panels, steps.as_ptr(), STEP, to),
                    Weights::Plain(Packed::Single(numbers) | Packed::Widened(numbers)) => {
                        unpack(decoder, panels, numbers.as_ptr(), 1.0, to)
                    }
                }
                to = to.add(PAIR * (1 + decoder.pair_columns(first)));
            }
            let rows = |first: usize| rows::<TILE>(first, &coefficients, out, out_stride);
            let (mut pose, mut here) = (0, rows(0));
            while pose < poses {
                let count = match poses - pose {
                    TILE.. => TILE,
                    4.. => 4,
                    2.. => 2,
                    _ => 1,
                };
                let next = rows(pose + count);
                let mut weights = scratch.as_ptr();
                for first in pairs.clone() {
                    let columns = decoder.pair_columns(first);
                    let one = |index: usize| panel(decoder, index, coefficients, out, out_stride);
                    let second = (first + 1 < batch.end).then(|| one(first + 1));
                    // What comes next: another pair in these poses, or the first one in the next.
                    let (later, rows) =
                        if first + 2 < batch.end { (first + 2, &here) } else { (batch.start, &next) };
                    let ahead = Prefetch::new(decoder, later..batch.end.min(later + 2), columns, rows);
                    let pair = Pair { panels: (one(first), second), columns, weights, ahead };
                    match count {
                        TILE => pair.tile::<TILE>(pose),
                        4 => pair.tile::<4>(pose),
                        2 => pair.tile::<2>(pose),
                        _ => pair.tile::<1>(pose),
                    }
                    weights = weights.add(PAIR * (1 + columns));
                }
                (pose, here) = (pose + count, next);
            }
        }
    }
}

/// Widens a pair of panels: the bias as the first column, then as many columns as the longer one has.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
unsafe fn unpack<W: Eight>(
    decoder: &Decoder,
    panels: std::ops::Range<usize>,
    weights: *const W,
    unit: f32,
    to: *mut f32,
) {
    let columns = decoder.pair_columns(panels.start);
    let unit = _mm256_set1_ps(unit);
    for half in 0..2 {
        let panel = panels.start + half;
        let own = if panel < panels.end { decoder.starts[panel + 1] - decoder.starts[panel] } else { 0 };
        // SAFETY: weights and bias hold every panel, and working memory a pair's columns and its bias.
        unsafe {
            for axis in 0..3 {
                let bias = match panel < panels.end {
                    true => _mm256_loadu_ps(decoder.bias.as_ptr().add(panel * NUMBERS + 8 * axis)),
                    false => _mm256_setzero_ps(),
                };
                _mm256_storeu_ps(to.add(16 * axis + 8 * half), bias);
            }
            let to = to.add(PAIR + 8 * half);
            for column in 0..own {
                let from = weights.add((decoder.starts[panel] + column) * NUMBERS);
                for axis in 0..3 {
                    let eight = _mm256_mul_ps(W::load(from.add(8 * axis)), unit);
                    _mm256_storeu_ps(to.add(column * PAIR + 16 * axis), eight);
                }
            }
            for column in own..columns {
                for axis in 0..3 {
                    _mm256_storeu_ps(to.add(column * PAIR + 16 * axis), _mm256_setzero_ps());
                }
            }
        }
    }
}

/// Two panels of eight vertices, or one and an empty one.
#[derive(Clone, Copy)]
struct Pair<'a> {
    panels: (Panel<'a>, Option<Panel<'a>>),
    columns: usize,
    /// The bias, then columns.
    weights: *const f32,
    ahead: Prefetch<'a, TILE>,
}

/// What one column adds, as text: of the poses four follow `x` and four follow `y`.
macro_rules! eight {
    ($column:literal) => {
        column!(
            "64", $column;
            "a" "{x}", "b" "{x} + {stride}", "c" "{x} + 2 * {stride}", "d" "{x} + {thrice}",
            "e" "{y}", "f" "{y} + {stride}", "g" "{y} + 2 * {stride}", "h" "{y} + {thrice}"
        )
    };
}

/// Adds all columns to the sums of eight poses, and asks for lines on the way. Compilers load ahead and then keep sums in
/// memory: here every register is named.
///
/// # Safety
/// Weights hold the columns of a pair, `x` those of eight poses, and there are [`COLUMNS_PER_LINE`] columns for
/// every early line.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
unsafe fn add_eight<const N: usize>(
    sums: &mut [[__m512; 3]; N],
    weights: *const f32,
    columns: usize,
    x: *const f32,
    stride: usize,
    ahead: Prefetch<'_, TILE>,
) {
    let [
        [a0, a1, a2],
        [b0, b1, b2],
        [c0, c1, c2],
        [d0, d1, d2],
        [e0, e1, e2],
        [f0, f1, f2],
        [g0, g1, g2],
        [h0, h1, h2],
    ] = sums.first_chunk_mut::<TILE>().expect("eight poses");
    let bytes = stride * size_of::<f32>();
    // SAFETY: promised by the caller: the loops end after the columns of early lines and after the rest.
    unsafe {
        asm!(
            "test {early}, {early}",
            "jz 3f",
            "2:",
            "mov {line:e}, [{lines}]",
            prefetch!("0"), prefetch!("1"), eight!("0"),
            prefetch!("2"), prefetch!("3"), eight!("1"),
            prefetch!("4"), prefetch!("5"), eight!("2"),
            prefetch!("6"), prefetch!("7"), eight!("3"),
            "add {weights}, 4 * 192",
            "add {x}, 4 * 4",
            "add {y}, 4 * 4",
            "add {lines}, 4",
            "dec {early}",
            "jnz 2b",
            "3:",
            "test {rest}, {rest}",
            "jz 5f",
            "4:",
            eight!("0"),
            "add {weights}, 192",
            "add {x}, 4",
            "add {y}, 4",
            "dec {rest}",
            "jnz 4b",
            "5:",
            a0 = inout(zmm_reg) *a0, a1 = inout(zmm_reg) *a1, a2 = inout(zmm_reg) *a2,
            b0 = inout(zmm_reg) *b0, b1 = inout(zmm_reg) *b1, b2 = inout(zmm_reg) *b2,
            c0 = inout(zmm_reg) *c0, c1 = inout(zmm_reg) *c1, c2 = inout(zmm_reg) *c2,
            d0 = inout(zmm_reg) *d0, d1 = inout(zmm_reg) *d1, d2 = inout(zmm_reg) *d2,
            e0 = inout(zmm_reg) *e0, e1 = inout(zmm_reg) *e1, e2 = inout(zmm_reg) *e2,
            f0 = inout(zmm_reg) *f0, f1 = inout(zmm_reg) *f1, f2 = inout(zmm_reg) *f2,
            g0 = inout(zmm_reg) *g0, g1 = inout(zmm_reg) *g1, g2 = inout(zmm_reg) *g2,
            h0 = inout(zmm_reg) *h0, h1 = inout(zmm_reg) *h1, h2 = inout(zmm_reg) *h2,
            w0 = out(zmm_reg) _, w1 = out(zmm_reg) _, w2 = out(zmm_reg) _, value = out(zmm_reg) _,
            weights = inout(reg) weights => _,
            x = inout(reg) x => _,
            y = inout(reg) x.add(4 * stride) => _,
            stride = in(reg) bytes,
            thrice = in(reg) 3 * bytes,
            rows = in(reg) ahead.rows.as_ptr(),
            lines = inout(reg) ahead.early.as_ptr() => _,
            early = inout(reg) ahead.early.len() => _,
            rest = inout(reg) columns - COLUMNS_PER_LINE * ahead.early.len() => _,
            row = out(reg) _,
            line = out(reg) _,
            options(readonly, nostack),
        );
    }
}

impl Pair<'_> {
    #[inline]
    #[target_feature(enable = "avx512f,avx2,fma,f16c")]
    unsafe fn tile<const N: usize>(self, first: usize) {
        let (low, high) = self.panels;
        let Coefficients { numbers, stride, frames } = low.coefficients;
        // SAFETY: weights hold `columns` blocks, coefficients the poses `first .. first + N`.
        unsafe {
            let block = |column: usize| {
                let block = self.weights.add(column * PAIR);
                [_mm512_loadu_ps(block), _mm512_loadu_ps(block.add(16)), _mm512_loadu_ps(block.add(32))]
            };
            let mut sums = [block(0); N];
            let x = numbers.as_ptr().add(first * stride);
            if N == TILE {
                add_eight(&mut sums, self.weights.add(PAIR), self.columns, x, stride, self.ahead);
                self.ahead.fetch_rest();
            } else {
                for column in 0..self.columns {
                    let [a, b, c] = block(1 + column);
                    for pose in 0..N {
                        let value = _mm512_set1_ps(*x.add(pose * stride + column));
                        sums[pose][0] = _mm512_fmadd_ps(a, value, sums[pose][0]);
                        sums[pose][1] = _mm512_fmadd_ps(b, value, sums[pose][1]);
                        sums[pose][2] = _mm512_fmadd_ps(c, value, sums[pose][2]);
                    }
                }
            }
            // A register counted through by a loop lives in memory: only what the compiler unrolls may follow.
            if let Some(second) = high.filter(|high| low.run == Run::Whole && high.run == Run::Whole) {
                let (to, then) = (low.target(0, 0), second.target(0, 0));
                let one = |pose: usize, sum: [__m512; 3]| {
                    let [a, b, c] = triples_of_thirds(carry(frames.get_unchecked(first + pose), sum));
                    let (a, b, c) = (halves(a), halves(b), halves(c));
                    let row = (first + pose) * low.out_stride;
                    store(to.add(row), [a.0, b.0, c.0]);
                    store(then.add(row), [a.1, b.1, c.1]);
                };
                macro_rules! each {
                    ($($pose:literal)*) => { $(if $pose < N { one($pose, sums[$pose]); })* };
                }
                each!(0 1 2 3 4 5 6 7);
                return;
            }
            let mut carried = [[[0.0f32; 16]; 3]; N];
            for pose in 0..N {
                let places = carry(frames.get_unchecked(first + pose), sums[pose]);
                for axis in 0..3 {
                    _mm512_storeu_ps(carried[pose][axis].as_mut_ptr(), places[axis]);
                }
            }
            for pose in 0..N {
                let part = |half: usize| {
                    let own = |axis: usize| _mm256_loadu_ps(carried[pose][axis].as_ptr().add(8 * half));
                    [own(0), own(1), own(2)]
                };
                low.write(first + pose, part(0));
                if let Some(high) = high {
                    high.write(first + pose, part(1));
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn halves(sixteen: __m512) -> (__m256, __m256) {
    let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sixteen));
    (_mm512_castps512_ps256(sixteen), _mm256_castpd_ps(high))
}

/// Sixteen points through an affine map, given by its rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn carry(rows: &[f32; 12], [x, y, z]: [__m512; 3]) -> [__m512; 3] {
    let set = |index: usize| _mm512_set1_ps(rows[index]);
    let along = |row: usize| {
        let sum = _mm512_fmadd_ps(x, set(row), set(row + 3));
        _mm512_fmadd_ps(z, set(row + 2), _mm512_fmadd_ps(y, set(row + 1), sum))
    };
    [along(0), along(4), along(8)]
}

/// [`super::super::super::lanes::triples_of_thirds`] of either half.
#[inline]
#[target_feature(enable = "avx512f")]
fn triples_of_thirds([x, y, z]: [__m512; 3]) -> [__m512; 3] {
    let y = _mm512_permutexvar_ps(_mm512_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14), y);
    let z = _mm512_permutexvar_ps(_mm512_setr_epi32(6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13), z);
    let choose = |a, b, c| {
        let both = _mm512_mask_blend_ps(0b1001_0010_1001_0010, a, b);
        _mm512_mask_blend_ps(0b0010_0100_0010_0100, both, c)
    };
    [choose(x, y, z), choose(z, x, y), choose(y, z, x)]
}
