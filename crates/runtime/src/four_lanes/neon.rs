//! NEON, which every 64-bit ARM has.

use std::arch::aarch64::*;

pub type Register = float32x4_t;
pub const NAME: &str = "NEON";

#[inline(always)]
pub fn splat(number: f32) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vdupq_n_f32(number) }
}

/// # Safety
/// Four numbers can be read.
#[inline(always)]
pub unsafe fn load(from: *const f32) -> Register {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe { vld1q_f32(from) }
}

/// # Safety
/// A number can be read.
#[inline(always)]
pub unsafe fn repeat(from: *const f32) -> Register {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe { vld1q_dup_f32(from) }
}

/// # Safety
/// Four numbers can be written.
#[inline(always)]
pub unsafe fn store(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe { vst1q_f32(to, of) }
}

/// # Safety
/// Three numbers can be written.
#[inline(always)]
pub unsafe fn store_three(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe {
        vst1_f32(to, vget_low_f32(of));
        vst1q_lane_f32::<2>(to.add(2), of);
    }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_f16_bits(from: *const u16) -> Register {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe {
        let wide = vmovl_s16(vld1_s16(from.cast()));
        let bits = vandq_u32(vreinterpretq_u32_s32(vshlq_n_s32::<13>(wide)), vdupq_n_u32(0x8fff_ffff));
        vreinterpretq_f32_u32(bits)
    }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_i16(from: *const i16) -> Register {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe { vcvtq_f32_s32(vmovl_s16(vld1_s16(from))) }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_u16(from: *const u16) -> Register {
    // SAFETY: promised by the caller; every 64-bit ARM has NEON.
    unsafe { vcvtq_f32_u32(vmovl_u16(vld1_u16(from))) }
}

#[inline(always)]
pub fn add(a: Register, b: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vaddq_f32(a, b) }
}

#[inline(always)]
pub fn sub(a: Register, b: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vsubq_f32(a, b) }
}

#[inline(always)]
pub fn mul(a: Register, b: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vmulq_f32(a, b) }
}

#[inline(always)]
pub fn div(a: Register, b: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vdivq_f32(a, b) }
}

#[inline(always)]
pub fn multiply_add(a: Register, b: Register, sum: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vfmaq_f32(sum, a, b) }
}

#[inline(always)]
pub fn choose(by: Register, positive: Register, other: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vbslq_f32(vcgtzq_f32(by), positive, other) }
}

#[inline(always)]
pub fn clamp(x: Register, low: Register, high: Register) -> Register {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { vminq_f32(vmaxq_f32(x, low), high) }
}

#[inline(always)]
pub fn transpose([a, b, c, d]: [Register; 4]) -> [Register; 4] {
    // SAFETY: every 64-bit ARM has NEON.
    unsafe {
        let (ab, cd) = (vzip1q_f32(a, b), vzip1q_f32(c, d));
        let (ab_high, cd_high) = (vzip2q_f32(a, b), vzip2q_f32(c, d));
        [
            vcombine_f32(vget_low_f32(ab), vget_low_f32(cd)),
            vcombine_f32(vget_high_f32(ab), vget_high_f32(cd)),
            vcombine_f32(vget_low_f32(ab_high), vget_low_f32(cd_high)),
            vcombine_f32(vget_high_f32(ab_high), vget_high_f32(cd_high)),
        ]
    }
}

#[inline(always)]
pub fn triples([x, y, z]: [Register; 3]) -> [Register; 3] {
    let mut out = [0.0f32; 12];
    // SAFETY: there is room for twelve numbers, and they are there; every 64-bit ARM has NEON.
    unsafe {
        vst3q_f32(out.as_mut_ptr(), float32x4x3_t(x, y, z));
        [0, 4, 8].map(|first| vld1q_f32(out.as_ptr().add(first)))
    }
}
