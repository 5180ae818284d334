//! Four numbers in a register: what kernels are written in where nothing wider is at hand. NEON on ARM, SIMD128 in
//! WebAssembly (with relaxed SIMD a multiply-add is one step), SSE2 on x86-64 without AVX2, plain arrays elsewhere. Kernels
//! are in the `four_lanes.rs` of each part of the run time; what differs between processors is here alone.

use crate::dense::tanh::{DENOMINATOR, LIMIT, NUMERATOR};

#[cfg_attr(target_arch = "x86_64", path = "four_lanes/sse2.rs")]
#[cfg_attr(target_arch = "aarch64", path = "four_lanes/neon.rs")]
#[cfg_attr(all(target_arch = "wasm32", target_feature = "simd128"), path = "four_lanes/simd128.rs")]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )),
    path = "four_lanes/arrays.rs"
)]
mod registers;

/// The name of these registers, for reports.
pub use registers::NAME;
pub use registers::Register;

/// Lanes.
pub const FOUR: usize = 4;

/// What multiplies the bits of a 16-bit float that were put where a 32-bit one has them.
const F16_UNIT: f32 = f32::from_bits((127 + 112) << 23);

/// Four numbers.
#[derive(Clone, Copy)]
pub struct Four(Register);

/// Weights as they lie in memory.
pub trait Weight: Copy {
    /// # Safety
    /// Four weights can be read at `from`.
    unsafe fn four(from: *const Self) -> Four;
}

impl Weight for f32 {
    #[inline(always)]
    unsafe fn four(from: *const Self) -> Four {
        // SAFETY: promised by the caller.
        unsafe { Four(registers::load(from)) }
    }
}

/// Bits of f16, all finite.
impl Weight for u16 {
    #[inline(always)]
    unsafe fn four(from: *const Self) -> Four {
        // SAFETY: promised by the caller.
        unsafe { Four(registers::load_f16_bits(from)) * Four::splat(F16_UNIT) }
    }
}

impl Weight for i16 {
    #[inline(always)]
    unsafe fn four(from: *const Self) -> Four {
        // SAFETY: promised by the caller.
        unsafe { Four(registers::load_i16(from)) }
    }
}

/// Whole numbers without a sign.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Whole(pub u16);

impl Weight for Whole {
    #[inline(always)]
    unsafe fn four(from: *const Self) -> Four {
        // SAFETY: promised by the caller; `Whole` is a u16 in memory.
        unsafe { Four(registers::load_u16(from.cast())) }
    }
}

impl std::ops::Add for Four {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(registers::add(self.0, other.0))
    }
}

impl std::ops::Sub for Four {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(registers::sub(self.0, other.0))
    }
}

impl std::ops::Mul for Four {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(registers::mul(self.0, other.0))
    }
}

impl Four {
    /// The same number four times.
    #[inline(always)]
    pub fn splat(number: f32) -> Self {
        Self(registers::splat(number))
    }

    /// # Safety
    /// Four numbers can be read at `from`.
    #[inline(always)]
    pub unsafe fn load(from: *const f32) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self(registers::load(from)) }
    }

    /// The number at an address four times.
    ///
    /// # Safety
    /// A number can be read at `from`.
    #[inline(always)]
    pub unsafe fn repeat(from: *const f32) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self(registers::repeat(from)) }
    }

    /// # Safety
    /// Four numbers can be written at `to`.
    #[inline(always)]
    pub unsafe fn store(self, to: *mut f32) {
        // SAFETY: promised by the caller.
        unsafe { registers::store(to, self.0) }
    }

    /// Writes the first three.
    ///
    /// # Safety
    /// Three numbers can be written at `to`.
    #[inline(always)]
    pub unsafe fn store_three(self, to: *mut f32) {
        // SAFETY: promised by the caller.
        unsafe { registers::store_three(to, self.0) }
    }

    /// `self · factor + sum`, rounded once or twice.
    #[inline(always)]
    pub fn times_plus(self, factor: Self, sum: Self) -> Self {
        Self(registers::multiply_add(self.0, factor.0, sum.0))
    }

    /// `positive` in lanes where `self` is above zero, `other` elsewhere.
    #[inline(always)]
    pub fn choose(self, positive: Self, other: Self) -> Self {
        Self(registers::choose(self.0, positive.0, other.0))
    }

    /// The leaky rectifier.
    #[inline(always)]
    pub fn leaky(self, slope: Self) -> Self {
        self.choose(self, self * slope)
    }

    /// Between two limits; what is no number stays so.
    #[inline(always)]
    fn clamp(self, low: f32, high: f32) -> Self {
        Self(registers::clamp(self.0, registers::splat(low), registers::splat(high)))
    }

    /// [`crate::dense::tanh::tanh`] in lanes.
    #[inline(always)]
    pub fn tanh(self) -> Self {
        let x = self.clamp(-LIMIT, LIMIT);
        let square = x * x;
        let (mut over, mut under) = (Self::splat(NUMERATOR[0]), Self::splat(DENOMINATOR[0]));
        for degree in 1..NUMERATOR.len() {
            over = over.times_plus(square, Self::splat(NUMERATOR[degree]));
            under = under.times_plus(square, Self::splat(DENOMINATOR[degree]));
        }
        Self(registers::div((x * over).0, under.0))
    }

    /// Rows become columns.
    #[inline(always)]
    pub fn transpose([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        registers::transpose([a.0, b.0, c.0, d.0]).map(Self)
    }

    /// The sum of the lanes of each.
    #[inline(always)]
    pub fn sums(rows: [Self; 4]) -> Self {
        let [a, b, c, d] = Self::transpose(rows);
        (a + b) + (c + d)
    }

    /// From rows of x, y and z to four triples as they lie in memory.
    #[inline(always)]
    pub fn triples([x, y, z]: [Self; 3]) -> [Self; 3] {
        registers::triples([x.0, y.0, z.0]).map(Self)
    }
}

/// `sums[n][h] += Σ_i weights[i · step + 4 h …] · x_n[i]` for `count` numbers of `N` rows: sums stay in registers while each
/// weight is read once.
///
/// # Safety
/// `count` numbers can be read at each of `x`, and `4 H` weights at every step.
#[inline(always)]
pub unsafe fn add_products<const N: usize, const H: usize>(
    weights: *const f32,
    step: usize,
    x: [*const f32; N],
    count: usize,
    sums: &mut [[Four; H]; N],
) {
    // Not unrolled: compilers then sum one row after another, and no register is left for what all of them read.
    for index in 0..count {
        // SAFETY: promised by the caller.
        unsafe { add_product(weights.add(index * step), x, index, sums) };
    }
}

/// # Safety
/// A number can be read at each of `x`, and `4 H` weights.
#[inline(always)]
unsafe fn add_product<const N: usize, const H: usize>(
    weights: *const f32,
    x: [*const f32; N],
    index: usize,
    sums: &mut [[Four; H]; N],
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut row = [Four::splat(0.0); H];
        for (half, row) in row.iter_mut().enumerate() {
            *row = Four::load(weights.add(half * FOUR));
        }
        for (x, sums) in x.iter().zip(sums) {
            let value = Four::repeat(x.add(index));
            for (sum, row) in sums.iter_mut().zip(row) {
                *sum = row.times_plus(value, *sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    fn numbers(four: Four) -> [f32; 4] {
        let mut out = [0.0; 4];
        // SAFETY: there is room for four.
        unsafe { four.store(out.as_mut_ptr()) };
        out
    }

    fn four(numbers: [f32; 4]) -> Four {
        // SAFETY: there are four.
        unsafe { Four::load(numbers.as_ptr()) }
    }

    #[test]
    fn every_finite_f16_is_widened_exactly() {
        let step = if cfg!(miri) { 997 } else { 4 };
        for first in (0..=u16::MAX - 3).step_by(step) {
            let bits = [0, 1, 2, 3].map(|lane| first + lane);
            let want = bits.map(|b| f16::from_bits(b).to_f32());
            if want.iter().all(|number| number.is_finite()) {
                // SAFETY: there are four.
                let got = numbers(unsafe { u16::four(bits.as_ptr()) });
                assert_eq!(got.map(f32::to_bits), want.map(f32::to_bits));
            }
        }
    }

    #[test]
    fn lanes_do_what_numbers_do() {
        let (a, b, c) = ([1.5, -2.0, 0.0, -0.25], [3.0, 0.5, 7.0, -8.0], [0.125, 4.0, -1.0, 2.0]);
        let [x, y, z] = [a, b, c].map(four);
        let each = |of: fn(f32, f32, f32) -> f32| [0, 1, 2, 3].map(|i| of(a[i], b[i], c[i]));
        assert_eq!(numbers(x + y), each(|a, b, _| a + b));
        assert_eq!(numbers(x - y), each(|a, b, _| a - b));
        assert_eq!(numbers(x.times_plus(y, z)), each(|a, b, c| a * b + c));
        assert_eq!(numbers(x.choose(y, z)), each(|a, b, c| if a > 0.0 { b } else { c }));
        assert_eq!(numbers(x.leaky(Four::splat(0.5))), each(|a, _, _| if a > 0.0 { a } else { a * 0.5 }));
        assert_eq!(numbers(Four::sums([x, y, z, Four::splat(1.0)])), [-0.75, 2.5, 5.125, 4.0]);
        let columns = Four::transpose([x, y, z, Four::splat(9.0)]).map(numbers);
        assert_eq!(columns[1], [-2.0, 0.5, 4.0, 9.0]);
        let triples = Four::triples([x, y, z]).map(numbers).concat();
        let want: Vec<f32> = (0..4).flat_map(|i| [a[i], b[i], c[i]]).collect();
        assert_eq!(triples, want);
        // SAFETY: two arrays of four.
        unsafe {
            assert_eq!(numbers(Four::repeat(&b[1])), [0.5; 4]);
            assert_eq!(numbers(i16::four([-3i16, 0, 7, i16::MIN].as_ptr())), [-3.0, 0.0, 7.0, -32768.0]);
            assert_eq!(
                numbers(Whole::four([3, 0, 7, u16::MAX].map(Whole).as_ptr())),
                [3.0, 0.0, 7.0, 65535.0]
            );
            let mut out = [9.0f32; 4];
            x.store_three(out.as_mut_ptr());
            assert_eq!(out, [1.5, -2.0, 0.0, 9.0]);
        }
        let tangents = numbers(four([f32::NAN, 20.0, -20.0, 0.3]).tanh());
        assert!(tangents[0].is_nan(), "{tangents:?}");
        for (got, want) in tangents[1..].iter().zip([1.0, -1.0, 0.3f32.tanh()]) {
            assert!((got - want).abs() <= crate::dense::tanh::MAX_ERROR, "{tangents:?}");
        }
    }

    #[test]
    fn products_are_summed_at_every_count() {
        for count in [0usize, 1, 3, 4, 5, 8, 17] {
            let weights: Vec<f32> = (0..count * 9).map(|i| (i % 7) as f32 - 3.0).collect();
            let rows: Vec<Vec<f32>> =
                (0..3).map(|n| (0..count).map(|i| (i + n) as f32 * 0.5).collect()).collect();
            let mut sums = [[Four::splat(1.0); 2]; 3];
            let x = [0, 1, 2].map(|n: usize| rows[n].as_ptr());
            // SAFETY: eight of nine weights of every step are read.
            unsafe { add_products(weights.as_ptr(), 9, x, count, &mut sums) };
            for (row, sums) in rows.iter().zip(sums) {
                let got = sums.map(numbers).concat();
                for (lane, got) in got.iter().enumerate() {
                    let want = 1.0 + (0..count).map(|i| weights[i * 9 + lane] * row[i]).sum::<f32>();
                    assert!((got - want).abs() < 1e-4, "{count}: {got} {want}");
                }
            }
        }
    }
}
