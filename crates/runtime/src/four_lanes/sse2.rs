//! SSE2, which every x86-64 has.

use std::arch::x86_64::*;

pub type Register = __m128;
pub const NAME: &str = "SSE2";

#[inline(always)]
pub fn splat(number: f32) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_set1_ps(number) }
}

/// # Safety
/// Four numbers can be read.
#[inline(always)]
pub unsafe fn load(from: *const f32) -> Register {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe { _mm_loadu_ps(from) }
}

/// # Safety
/// A number can be read.
#[inline(always)]
pub unsafe fn repeat(from: *const f32) -> Register {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe { _mm_set1_ps(*from) }
}

/// # Safety
/// Four numbers can be written.
#[inline(always)]
pub unsafe fn store(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe { _mm_storeu_ps(to, of) }
}

/// # Safety
/// Three numbers can be written.
#[inline(always)]
pub unsafe fn store_three(to: *mut f32, of: Register) {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe {
        _mm_storel_pd(to.cast(), _mm_castps_pd(of));
        _mm_store_ss(to.add(2), _mm_movehl_ps(of, of));
    }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_f16_bits(from: *const u16) -> Register {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe {
        let bits = _mm_loadl_epi64(from.cast());
        let high = _mm_unpacklo_epi16(_mm_setzero_si128(), bits);
        _mm_castsi128_ps(_mm_and_si128(_mm_srai_epi32::<3>(high), _mm_set1_epi32(0x8fff_ffffu32 as i32)))
    }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_i16(from: *const i16) -> Register {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe {
        let bits = _mm_loadl_epi64(from.cast());
        _mm_cvtepi32_ps(_mm_srai_epi32::<16>(_mm_unpacklo_epi16(_mm_setzero_si128(), bits)))
    }
}

/// # Safety
/// Four times sixteen bits can be read.
#[inline(always)]
pub unsafe fn load_u16(from: *const u16) -> Register {
    // SAFETY: promised by the caller; every x86-64 has SSE2.
    unsafe {
        let bits = _mm_loadl_epi64(from.cast());
        _mm_cvtepi32_ps(_mm_unpacklo_epi16(bits, _mm_setzero_si128()))
    }
}

#[inline(always)]
pub fn add(a: Register, b: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_add_ps(a, b) }
}

#[inline(always)]
pub fn sub(a: Register, b: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_sub_ps(a, b) }
}

#[inline(always)]
pub fn mul(a: Register, b: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_mul_ps(a, b) }
}

#[inline(always)]
pub fn div(a: Register, b: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_div_ps(a, b) }
}

#[inline(always)]
pub fn multiply_add(a: Register, b: Register, sum: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_add_ps(_mm_mul_ps(a, b), sum) }
}

#[inline(always)]
pub fn choose(by: Register, positive: Register, other: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe {
        let mask = _mm_cmpgt_ps(by, _mm_setzero_ps());
        _mm_or_ps(_mm_and_ps(mask, positive), _mm_andnot_ps(mask, other))
    }
}

#[inline(always)]
pub fn clamp(x: Register, low: Register, high: Register) -> Register {
    // SAFETY: every x86-64 has SSE2.
    unsafe {
        // `max(low, x)` with x second keeps a NaN in x.
        _mm_min_ps(high, _mm_max_ps(low, x))
    }
}

#[inline(always)]
pub fn transpose([a, b, c, d]: [Register; 4]) -> [Register; 4] {
    // SAFETY: every x86-64 has SSE2.
    unsafe {
        let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
        [
            _mm_movelh_ps(ab, cd),
            _mm_movehl_ps(cd, ab),
            _mm_movelh_ps(ab_high, cd_high),
            _mm_movehl_ps(cd_high, ab_high),
        ]
    }
}

#[inline(always)]
pub fn triples([x, y, z]: [Register; 3]) -> [Register; 3] {
    // SAFETY: every x86-64 has SSE2.
    unsafe {
        let xy = _mm_shuffle_ps::<0b10_00_10_00>(x, y);
        let yz = _mm_shuffle_ps::<0b11_01_11_01>(y, z);
        let zx = _mm_shuffle_ps::<0b11_01_10_00>(z, x);
        [
            _mm_shuffle_ps::<0b10_00_10_00>(xy, zx),
            _mm_shuffle_ps::<0b11_01_10_00>(yz, xy),
            _mm_shuffle_ps::<0b11_01_11_01>(zx, yz),
        ]
    }
}
