//! Convolutions of 2×2 pixels with fewer products: the window and the kernel are transformed, multiplied point
//! by point, and the products folded into pixels. Sums of pixels cost one register each, products of sixteen
//! channels with sixteen cost thirty-two. See [`Transform`].

use super::LANES;
use std::arch::x86_64::*;

/// One way to convolve a tile of 2×2 pixels.
pub trait Transform {
    /// Products per tile, for each pair of channels.
    const POINTS: usize;

    /// The kernel by points.
    fn kernel(kernel: &[f32; 9]) -> impl Iterator<Item = f32>;

    /// Eight channels of the window by points.
    ///
    /// # Safety
    /// The machine has AVX2 and FMA; the window, whose rows are `row` numbers apart, lies in an image.
    unsafe fn sample(from: *const f32, row: usize, give: impl FnMut(usize, __m256));

    /// Four pixels by rows from the products, eight channels.
    ///
    /// # Safety
    /// The machine has AVX2 and FMA.
    unsafe fn fold(at: impl Fn(usize) -> __m256) -> [__m256; 4];
}

/// Applies a map of three numbers to the columns of a 3×3 kernel, then to the rows of what comes out.
fn both_ways<const N: usize>(kernel: &[f32; 9], map: fn([f32; 3]) -> [f32; N]) -> impl Iterator<Item = f32> {
    let columns = [0, 1, 2].map(|column| map([0, 3, 6].map(|row| kernel[row + column])));
    (0..N).flat_map(move |row| map(columns.map(|numbers| numbers[row])))
}

/// A 3×3 convolution: 16 products instead of 36 (Winograd's F(2×2, 3×3); Lavin and Gray 2016), `Y =
/// Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A`. The window is 4×4 pixels.
pub struct Winograd;

impl Transform for Winograd {
    const POINTS: usize = 16;

    fn kernel(kernel: &[f32; 9]) -> impl Iterator<Item = f32> {
        both_ways(kernel, |[a, b, c]| [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c])
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn sample(from: *const f32, row: usize, mut give: impl FnMut(usize, __m256)) {
        // SAFETY: the caller's window is 4×4 pixels.
        unsafe {
            let at = |down: usize, across: usize| _mm256_loadu_ps(from.add(down * row + across * LANES));
            for column in 0..4 {
                let across = |row: usize| match column {
                    0 => _mm256_sub_ps(at(row, 0), at(row, 2)),
                    1 => _mm256_add_ps(at(row, 1), at(row, 2)),
                    2 => _mm256_sub_ps(at(row, 2), at(row, 1)),
                    _ => _mm256_sub_ps(at(row, 1), at(row, 3)),
                };
                let rows = [across(0), across(1), across(2), across(3)];
                give(column, _mm256_sub_ps(rows[0], rows[2]));
                give(4 + column, _mm256_add_ps(rows[1], rows[2]));
                give(8 + column, _mm256_sub_ps(rows[2], rows[1]));
                give(12 + column, _mm256_sub_ps(rows[1], rows[3]));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn fold(at: impl Fn(usize) -> __m256) -> [__m256; 4] {
        let upper = |column: usize| _mm256_add_ps(_mm256_add_ps(at(column), at(4 + column)), at(8 + column));
        let lower =
            |column: usize| _mm256_sub_ps(_mm256_sub_ps(at(4 + column), at(8 + column)), at(12 + column));
        let across = |[a, b, c, d]: [__m256; 4]| {
            [_mm256_add_ps(_mm256_add_ps(a, b), c), _mm256_sub_ps(_mm256_sub_ps(b, c), d)]
        };
        let [one, two] = across([upper(0), upper(1), upper(2), upper(3)]);
        let [three, four] = across([lower(0), lower(1), lower(2), lower(3)]);
        [one, two, three, four]
    }
}

/// A 3×3 convolution after nearest ×2 upsampling: the four pixels that one small pixel becomes, with 9
/// products instead of the 16 of four 2×2 convolutions (or 36). Along one line, with small pixels `x₀ x₁ x₂` and
/// `s = k₀ + k₁ + k₂`: `k₀x₀ + (k₁ + k₂)x₁ = k₀(x₀ − x₁) + s·x₁` and `(k₀ + k₁)x₁ + k₂x₂ = s·x₁ + k₂(x₂ − x₁)`
/// share a product. The window is 3×3 small pixels.
pub struct Doubled;

impl Transform for Doubled {
    const POINTS: usize = 9;

    fn kernel(kernel: &[f32; 9]) -> impl Iterator<Item = f32> {
        both_ways(kernel, |[a, b, c]| [a, a + b + c, c])
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn sample(from: *const f32, row: usize, mut give: impl FnMut(usize, __m256)) {
        // SAFETY: the caller's window is 3×3 pixels.
        unsafe {
            let at = |down: usize, across: usize| _mm256_loadu_ps(from.add(down * row + across * LANES));
            for column in 0..3 {
                let across = |row: usize| match column {
                    0 => _mm256_sub_ps(at(row, 0), at(row, 1)),
                    1 => at(row, 1),
                    _ => _mm256_sub_ps(at(row, 2), at(row, 1)),
                };
                let rows = [across(0), across(1), across(2)];
                give(column, _mm256_sub_ps(rows[0], rows[1]));
                give(3 + column, rows[1]);
                give(6 + column, _mm256_sub_ps(rows[2], rows[1]));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn fold(at: impl Fn(usize) -> __m256) -> [__m256; 4] {
        let upper = |column: usize| _mm256_add_ps(at(column), at(3 + column));
        let lower = |column: usize| _mm256_add_ps(at(3 + column), at(6 + column));
        let across = |[a, b, c]: [__m256; 3]| [_mm256_add_ps(a, b), _mm256_add_ps(b, c)];
        let [one, two] = across([upper(0), upper(1), upper(2)]);
        let [three, four] = across([lower(0), lower(1), lower(2)]);
        [one, two, three, four]
    }
}
