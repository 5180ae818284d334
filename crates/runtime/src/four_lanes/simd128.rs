//! WebAssembly's SIMD128. Without relaxed SIMD there is no fused multiply-add.

use std::arch::wasm32::*;

pub type Register = v128;
pub const NAME: &str = if cfg!(target_feature = "relaxed-simd") { "SIMD128, relaxed" } else { "SIMD128" };

#[inline(always)]
pub fn splat(number: f32) -> Register {
    f32x4_splat(number)
}

/// # Safety
/// Four numbers can be read.
#[inline(always)]
pub unsafe fn load(from: *const f32) -> Register {
    // SAFETY: promised by the caller; the instruction wants no alignment.
    unsafe { v128_load(from.cast()) }
}

/// # Safety
/// A number can be read.
#[inline(always)]
pub unsafe fn repeat(from: *const f32) -> Register {
    // SAFETY: promised by the caller.
    unsafe { v128_load32_splat(from.cast()) }
}

/// # Safety
/// Four numbers can be written.
#[inline(always)]
pub unsafe fn store(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller.
    unsafe { v128_store(to.cast(), of) }
}

/// # Safety
/// Three numbers can be written.
#[inline(always)]
pub unsafe fn store_three(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller.
    unsafe {
        v128_store64_lane::<0>(of, to.cast());
        v128_store32_lane::<2>(of, to.add(2).cast());
    }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_f16_bits(from: *const u16) -> Register {
    // SAFETY: promised by the caller.
    let wide = unsafe { i32x4_load_extend_i16x4(from.cast()) };
    v128_and(i32x4_shl(wide, 13), u32x4_splat(0x8fff_ffff))
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_i16(from: *const i16) -> Register {
    // SAFETY: promised by the caller.
    f32x4_convert_i32x4(unsafe { i32x4_load_extend_i16x4(from) })
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_u16(from: *const u16) -> Register {
    // Below 2³¹ both conversions are the same, and the signed one is one instruction.
    // SAFETY: promised by the caller.
    f32x4_convert_i32x4(unsafe { u32x4_load_extend_u16x4(from) })
}

#[inline(always)]
pub fn add(a: Register, b: Register) -> Register {
    f32x4_add(a, b)
}

#[inline(always)]
pub fn sub(a: Register, b: Register) -> Register {
    f32x4_sub(a, b)
}

#[inline(always)]
pub fn mul(a: Register, b: Register) -> Register {
    f32x4_mul(a, b)
}

#[inline(always)]
pub fn div(a: Register, b: Register) -> Register {
    f32x4_div(a, b)
}

#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
pub fn multiply_add(a: Register, b: Register, sum: Register) -> Register {
    f32x4_relaxed_madd(a, b, sum)
}

#[cfg(not(target_feature = "relaxed-simd"))]
#[inline(always)]
pub fn multiply_add(a: Register, b: Register, sum: Register) -> Register {
    f32x4_add(f32x4_mul(a, b), sum)
}

#[inline(always)]
pub fn choose(by: Register, positive: Register, other: Register) -> Register {
    v128_bitselect(positive, other, f32x4_gt(by, f32x4_splat(0.0)))
}

#[inline(always)]
pub fn clamp(x: Register, low: Register, high: Register) -> Register {
    // With relaxed SIMD the compiler takes minima that lose a NaN for these: one in x stays by choice.
    v128_bitselect(f32x4_pmin(f32x4_pmax(x, low), high), x, f32x4_eq(x, x))
}

#[inline(always)]
pub fn transpose([a, b, c, d]: [Register; 4]) -> [Register; 4] {
    let (ab, cd) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<0, 4, 1, 5>(c, d));
    let (ab_high, cd_high) = (i32x4_shuffle::<2, 6, 3, 7>(a, b), i32x4_shuffle::<2, 6, 3, 7>(c, d));
    [
        i64x2_shuffle::<0, 2>(ab, cd),
        i64x2_shuffle::<1, 3>(ab, cd),
        i64x2_shuffle::<0, 2>(ab_high, cd_high),
        i64x2_shuffle::<1, 3>(ab_high, cd_high),
    ]
}

#[inline(always)]
pub fn triples([x, y, z]: [Register; 3]) -> [Register; 3] {
    let xy = i32x4_shuffle::<0, 2, 4, 6>(x, y);
    let yz = i32x4_shuffle::<1, 3, 5, 7>(y, z);
    let zx = i32x4_shuffle::<0, 2, 5, 7>(z, x);
    [
        i32x4_shuffle::<0, 2, 4, 6>(xy, zx),
        i32x4_shuffle::<0, 2, 5, 7>(yz, xy),
        i32x4_shuffle::<1, 3, 5, 7>(zx, yz),
    ]
}
