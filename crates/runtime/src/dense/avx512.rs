//! Kernels of crowds for x86-64 with AVX-512: a panel is one register, and there are twice as many registers as
//! AVX2 has. One pose alone waits for memory: it stays with [`super::avx2`].

use super::avx2::unpack;
use super::tanh::{DENOMINATOR, LIMIT, NUMERATOR};
use super::{Activation, CHAINS, Layer, PANEL, Packed, UNPACKED};
use std::arch::x86_64::*;
use std::hint::black_box;

/// Poses that share one pass over two panels: 2 × 12 sums of the 32 registers.
const TILE: usize = 12;

/// Panels of a pass: a coefficient is spread over a register once for both.
const PANELS: usize = UNPACKED;

/// Many poses.
///
/// # Safety
/// The machine has AVX-512 F and what [`super::avx2`] needs; `x` reaches to the end of the last pose's columns, `y`
/// to the end of the last pose's padded rows, `scratch` is `[PANELS · columns · PANEL]`.
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
pub unsafe fn apply_batch(
    layer: &Layer,
    poses: usize,
    x: &[f32],
    x_stride: usize,
    y: &mut [f32],
    y_stride: usize,
    scratch: &mut [f32],
) {
    let (columns, panels) = (layer.columns(), layer.padded_rows() / PANEL);
    for first in (0..panels).step_by(PANELS) {
        let count = PANELS.min(panels - first);
        // SAFETY: the panels' weights are there, and the caller promised the buffers for all poses.
        unsafe {
            let weights = match layer.weights() {
                Packed::Single(numbers) | Packed::Widened(numbers) => {
                    numbers.as_ptr().add(first * columns * PANEL)
                }
                Packed::Half(bits) => {
                    unpack(bits.as_ptr().add(first * columns * PANEL), count * columns, scratch)
                }
            };
            let mut tile = Tile {
                weights,
                bias: layer.bias().as_ptr().add(first * PANEL),
                activation: layer.activation(),
                columns,
                x: x.as_ptr(),
                x_stride,
                y: y.as_mut_ptr().add(first * PANEL),
                y_stride,
            };
            let mut left = poses;
            while left > 0 {
                let poses = match left {
                    TILE.. => TILE,
                    8.. => 8,
                    4.. => 4,
                    2.. => 2,
                    _ => 1,
                };
                match (count, poses) {
                    (PANELS, TILE) => tile.sum::<PANELS, TILE>(),
                    (PANELS, 8) => tile.sum::<PANELS, 8>(),
                    (PANELS, 4) => tile.sum::<PANELS, 4>(),
                    (PANELS, 2) => tile.sum::<PANELS, 2>(),
                    (PANELS, _) => tile.sum::<PANELS, 1>(),
                    (_, TILE) => tile.sum::<1, TILE>(),
                    (_, 8) => tile.sum::<1, 8>(),
                    (_, 4) => tile.sum::<1, 4>(),
                    (_, 2) => tile.sum::<1, 2>(),
                    _ => tile.sum::<1, 1>(),
                }
                tile.x = tile.x.wrapping_add(poses * x_stride);
                tile.y = tile.y.wrapping_add(poses * y_stride);
                left -= poses;
            }
        }
    }
}

/// Some panels and where some poses are read and written.
#[derive(Clone, Copy)]
struct Tile {
    weights: *const f32,
    bias: *const f32,
    activation: Activation,
    columns: usize,
    x: *const f32,
    x_stride: usize,
    y: *mut f32,
    y_stride: usize,
}

impl Tile {
    /// `P` panels in `N` poses.
    #[inline]
    #[target_feature(enable = "avx512f,avx2,fma,f16c")]
    unsafe fn sum<const P: usize, const N: usize>(self) {
        let Self { weights, bias, activation, columns, x, x_stride, y, y_stride } = self;
        // SAFETY: the caller of this private function passes addresses that hold for P panels and N poses.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); P]; N];
            for pose in 0..N {
                for panel in 0..P {
                    sums[pose][panel] = _mm512_loadu_ps(bias.add(panel * PANEL));
                }
            }
            for column in 0..columns {
                let mut own = [_mm512_setzero_ps(); P];
                for panel in 0..P {
                    own[panel] = _mm512_loadu_ps(weights.add((panel * columns + column) * PANEL));
                }
                for pose in 0..N {
                    let value = _mm512_set1_ps(*x.add(pose * x_stride + column));
                    for panel in 0..P {
                        sums[pose][panel] = _mm512_fmadd_ps(own[panel], value, sums[pose][panel]);
                    }
                }
            }
            for pose in 0..N {
                for panel in 0..P {
                    _mm512_storeu_ps(y.add(pose * y_stride + panel * PANEL), sums[pose][panel]);
                }
            }
            // Not in the loop above: the compiler leaves a long one as it is, and sums that a loop counts through
            // live in memory.
            if activation == Activation::Tanh {
                for pose in 0..N {
                    for panel in 0..P {
                        let own = y.add(pose * y_stride + panel * PANEL);
                        _mm512_storeu_ps(own, tanh(_mm512_loadu_ps(own)));
                    }
                }
            }
        }
    }
}

/// [`super::tanh::tanh`] in sixteen lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn tanh(x: __m512) -> __m512 {
    let set = |value: f32| _mm512_set1_ps(value);
    // `max(x, −L)` with x second keeps a NaN in x.
    let x = _mm512_min_ps(set(LIMIT), _mm512_max_ps(set(-LIMIT), x));
    let square = _mm512_mul_ps(x, x);
    let along = |coefficients: &[f32; 5]| {
        let rest = coefficients[1..].iter();
        rest.fold(set(coefficients[0]), |sum, c| _mm512_fmadd_ps(sum, square, set(*c)))
    };
    _mm512_div_ps(_mm512_mul_ps(x, along(&NUMERATOR)), along(&DENOMINATOR))
}

/// As [`super::avx2::peak_gflops`], sixteen lanes at a time.
///
/// # Safety
/// The machine has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub unsafe fn peak_gflops() -> f64 {
    let (a, b) = (black_box(_mm512_set1_ps(0.999)), black_box(_mm512_set1_ps(1e-3)));
    super::best_gflops(16, |rounds| {
        let mut sums = [_mm512_set1_ps(0.5); CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, a, b);
            }
        }
        black_box(sums);
    })
}
