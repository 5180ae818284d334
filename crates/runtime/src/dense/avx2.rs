//! Kernels for x86-64 with AVX2, FMA and F16C.

use super::tanh::{DENOMINATOR, LIMIT, NUMERATOR};
use super::{Activation, CHAINS, Layer, PANEL, Packed};
use std::arch::x86_64::*;
use std::hint::black_box;

/// Poses that share one pass over a panel: 2 × 6 sums fill twelve of the sixteen registers.
const TILE: usize = 6;

/// Columns that are summed apart, to hide the latency of the fused multiply-add.
const UNROLL: usize = 4;

/// A source of sixteen weights.
trait Source: Copy {
    /// # Safety
    /// `self` is readable for [`PANEL`] weights and the machine has AVX2 and F16C.
    unsafe fn load(self) -> (__m256, __m256);
    /// # Safety
    /// The result stays inside the packed weights.
    unsafe fn add(self, weights: usize) -> Self;
}

impl Source for *const u16 {
    #[inline(always)]
    unsafe fn load(self) -> (__m256, __m256) {
        // SAFETY: promised by the caller.
        unsafe {
            let low = _mm_loadu_si128(self.cast());
            let high = _mm_loadu_si128(self.add(8).cast());
            (_mm256_cvtph_ps(low), _mm256_cvtph_ps(high))
        }
    }

    #[inline(always)]
    unsafe fn add(self, weights: usize) -> Self {
        // SAFETY: promised by the caller.
        unsafe { <*const u16>::add(self, weights) }
    }
}

impl Source for *const f32 {
    #[inline(always)]
    unsafe fn load(self) -> (__m256, __m256) {
        // SAFETY: promised by the caller.
        unsafe { (_mm256_loadu_ps(self), _mm256_loadu_ps(self.add(8))) }
    }

    #[inline(always)]
    unsafe fn add(self, weights: usize) -> Self {
        // SAFETY: promised by the caller.
        unsafe { <*const f32>::add(self, weights) }
    }
}

/// One pose.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; `x` is `[columns]`, `y` `[padded_rows]`.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn apply(layer: &Layer, x: &[f32], y: &mut [f32]) {
    // SAFETY: lengths are promised by the caller, and packing made the weights to fit them.
    unsafe {
        match layer.weights() {
            Packed::Half(bits) => matrix_vector(layer, bits.as_ptr(), x, y),
            Packed::Single(numbers) | Packed::Widened(numbers) => {
                matrix_vector(layer, numbers.as_ptr(), x, y)
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn matrix_vector<S: Source>(layer: &Layer, weights: S, x: &[f32], y: &mut [f32]) {
    let columns = x.len();
    for panel in 0..y.len() / PANEL {
        // SAFETY: panel < panels, so every address below lies inside weights, x, bias and y.
        unsafe {
            let mut source = weights.add(panel * columns * PANEL);
            let mut sums = [_mm256_setzero_ps(); 2 * UNROLL];
            sums[0] = _mm256_loadu_ps(layer.bias().as_ptr().add(panel * PANEL));
            sums[1] = _mm256_loadu_ps(layer.bias().as_ptr().add(panel * PANEL + 8));
            let mut column = 0;
            while column + UNROLL <= columns {
                for lane in 0..UNROLL {
                    let value = _mm256_broadcast_ss(x.get_unchecked(column + lane));
                    let (low, high) = source.add(lane * PANEL).load();
                    sums[2 * lane] = _mm256_fmadd_ps(low, value, sums[2 * lane]);
                    sums[2 * lane + 1] = _mm256_fmadd_ps(high, value, sums[2 * lane + 1]);
                }
                source = source.add(UNROLL * PANEL);
                column += UNROLL;
            }
            while column < columns {
                let value = _mm256_broadcast_ss(x.get_unchecked(column));
                let (low, high) = source.load();
                sums[0] = _mm256_fmadd_ps(low, value, sums[0]);
                sums[1] = _mm256_fmadd_ps(high, value, sums[1]);
                source = source.add(PANEL);
                column += 1;
            }
            for half in 0..2 {
                let left = _mm256_add_ps(sums[half], sums[half + 2]);
                let right = _mm256_add_ps(sums[half + 4], sums[half + 6]);
                let sum = activate(layer.activation(), _mm256_add_ps(left, right));
                _mm256_storeu_ps(y.as_mut_ptr().add(panel * PANEL + half * 8), sum);
            }
        }
    }
}

/// Many poses.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; `x` reaches to the end of the last pose's columns, `y` to the end
/// of the last pose's padded rows, `panel` is `[columns · PANEL]`.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn apply_batch(
    layer: &Layer,
    poses: usize,
    x: &[f32],
    x_stride: usize,
    y: &mut [f32],
    y_stride: usize,
    panel: &mut [f32],
) {
    let columns = layer.columns();
    for index in 0..layer.padded_rows() / PANEL {
        let first = index * columns * PANEL;
        // SAFETY: `first + columns · PANEL` is at most the length of the packed weights.
        let weights = unsafe {
            match layer.weights() {
                Packed::Single(numbers) | Packed::Widened(numbers) => numbers.as_ptr().add(first),
                Packed::Half(bits) => unpack(bits.as_ptr().add(first), columns, panel),
            }
        };
        let mut pose = 0;
        while pose < poses {
            let count = TILE.min(poses - pose);
            // SAFETY: `pose + count ≤ poses`, and the caller promised the buffers for all poses.
            unsafe {
                let bias = layer.bias().as_ptr().add(index * PANEL);
                let input = x.as_ptr().add(pose * x_stride);
                let output = y.as_mut_ptr().add(pose * y_stride + index * PANEL);
                let tile = match count {
                    6 => tile::<6>,
                    5 => tile::<5>,
                    4 => tile::<4>,
                    3 => tile::<3>,
                    2 => tile::<2>,
                    _ => tile::<1>,
                };
                tile(weights, bias, layer.activation(), columns, input, x_stride, output, y_stride);
            }
            pose += count;
        }
    }
}

/// Widens some columns of panels into working memory.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; so many columns start at `bits`, and `panel` holds as many.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn unpack(bits: *const u16, columns: usize, panel: &mut [f32]) -> *const f32 {
    for column in 0..columns {
        // SAFETY: promised by the caller.
        unsafe {
            let (low, high) = bits.add(column * PANEL).load();
            _mm256_storeu_ps(panel.as_mut_ptr().add(column * PANEL), low);
            _mm256_storeu_ps(panel.as_mut_ptr().add(column * PANEL + 8), high);
        }
    }
    panel.as_ptr()
}

/// One panel for `N` poses.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile<const N: usize>(
    weights: *const f32,
    bias: *const f32,
    activation: Activation,
    columns: usize,
    x: *const f32,
    x_stride: usize,
    y: *mut f32,
    y_stride: usize,
) {
    // SAFETY: the caller of this private function passes addresses that hold for N poses.
    unsafe {
        let start = [_mm256_loadu_ps(bias), _mm256_loadu_ps(bias.add(8))];
        let mut sums = [start; N];
        for column in 0..columns {
            let low = _mm256_loadu_ps(weights.add(column * PANEL));
            let high = _mm256_loadu_ps(weights.add(column * PANEL + 8));
            for pose in 0..N {
                let value = _mm256_broadcast_ss(&*x.add(pose * x_stride + column));
                sums[pose][0] = _mm256_fmadd_ps(low, value, sums[pose][0]);
                sums[pose][1] = _mm256_fmadd_ps(high, value, sums[pose][1]);
            }
        }
        for pose in 0..N {
            for half in 0..2 {
                let sum = activate(activation, sums[pose][half]);
                _mm256_storeu_ps(y.add(pose * y_stride + half * 8), sum);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn activate(activation: Activation, x: __m256) -> __m256 {
    match activation {
        Activation::None => x,
        Activation::Tanh => tanh(x),
    }
}

/// The most that this core can do, GFLOP/s: twelve independent chains of fused multiply-adds.
///
/// # Safety
/// The machine has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn peak_gflops() -> f64 {
    let (a, b) = (black_box(_mm256_set1_ps(0.999)), black_box(_mm256_set1_ps(1e-3)));
    super::best_gflops(8, |rounds| {
        let mut sums = [_mm256_set1_ps(0.5); CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, a, b);
            }
        }
        black_box(sums);
    })
}

/// The tangent of every number, in place.
///
/// # Safety
/// The machine has AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn tanh_all(numbers: &mut [f32]) {
    let (lanes, rest) = numbers.as_chunks_mut::<8>();
    for lane in lanes {
        // SAFETY: a chunk holds eight numbers.
        unsafe { _mm256_storeu_ps(lane.as_mut_ptr(), tanh(_mm256_loadu_ps(lane.as_ptr()))) };
    }
    rest.iter_mut().for_each(|number| *number = super::tanh::tanh(*number));
}

/// [`super::tanh::tanh`] in eight lanes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tanh(x: __m256) -> __m256 {
    let set = |value: f32| _mm256_set1_ps(value);
    // `max(x, −L)` with x second keeps a NaN in x.
    let x = _mm256_min_ps(set(LIMIT), _mm256_max_ps(set(-LIMIT), x));
    let square = _mm256_mul_ps(x, x);
    let along = |coefficients: &[f32; 5]| {
        let rest = coefficients[1..].iter();
        rest.fold(set(coefficients[0]), |sum, c| _mm256_fmadd_ps(sum, square, set(*c)))
    };
    _mm256_div_ps(_mm256_mul_ps(x, along(&NUMERATOR)), along(&DENOMINATOR))
}
