//! Eight vertices at a time: how the kernels of AVX2 and of AVX-512 read weights in every form in which they are stored, and
//! how eight places in registers become eight triples in memory.

use std::arch::x86_64::*;
use understudy_core::Vec3;

/// Weights as they lie in memory.
pub trait Eight: Copy {
    /// # Safety
    /// Eight weights can be read at `from`, and the machine has AVX2 and F16C.
    unsafe fn load(from: *const Self) -> __m256;
}

impl Eight for u16 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> __m256 {
        // SAFETY: promised by the caller.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }
}

impl Eight for i16 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> __m256 {
        // SAFETY: promised by the caller.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128(from.cast()))) }
    }
}

impl Eight for f32 {
    #[inline(always)]
    unsafe fn load(from: *const Self) -> __m256 {
        // SAFETY: promised by the caller.
        unsafe { _mm256_loadu_ps(from) }
    }
}

/// From three rows of eight to eight triples, as they lie in memory.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub fn triples([x, y, z]: [__m256; 3]) -> [__m256; 3] {
    let xy = _mm256_shuffle_ps::<0b10_00_10_00>(x, y);
    let yz = _mm256_shuffle_ps::<0b11_01_11_01>(y, z);
    let zx = _mm256_shuffle_ps::<0b11_01_10_00>(z, x);
    let first = _mm256_shuffle_ps::<0b10_00_10_00>(xy, zx);
    let second = _mm256_shuffle_ps::<0b11_01_10_00>(yz, xy);
    let third = _mm256_shuffle_ps::<0b11_01_11_01>(zx, yz);
    [
        _mm256_permute2f128_ps::<0x20>(first, second),
        _mm256_permute2f128_ps::<0x30>(third, first),
        _mm256_permute2f128_ps::<0x31>(second, third),
    ]
}

/// [`triples`] of rows whose lanes hold every third: 0, 3, 6, 1, 4, 7, 2, 5. No lane of x has to move, and y and z turn
/// as a whole; the rest is choices, which any unit makes, while there are few that move lanes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub fn triples_of_thirds([x, y, z]: [__m256; 3]) -> [__m256; 3] {
    let y = _mm256_permutevar8x32_ps(y, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
    let z = _mm256_permutevar8x32_ps(z, _mm256_setr_epi32(6, 7, 0, 1, 2, 3, 4, 5));
    let choose = |a, b, c| {
        let both = _mm256_blend_ps::<0b1001_0010>(a, b);
        _mm256_blend_ps::<0b0010_0100>(both, c)
    };
    [choose(x, y, z), choose(z, x, y), choose(y, z, x)]
}

/// Writes eight triples one after another.
///
/// # Safety
/// Eight places can be written at `to`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn store(to: *mut Vec3, triples: [__m256; 3]) {
    // SAFETY: promised by the caller; a `Vec3` is three numbers without gaps.
    unsafe {
        let to = to.cast::<f32>();
        _mm256_storeu_ps(to, triples[0]);
        _mm256_storeu_ps(to.add(8), triples[1]);
        _mm256_storeu_ps(to.add(16), triples[2]);
    }
}

/// Writes four triples one after another, and four elsewhere.
///
/// # Safety
/// Four places can be written at each of `to`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn store_halves(to: [*mut Vec3; 2], triples: [__m256; 3]) {
    // SAFETY: promised by the caller; a `Vec3` is three numbers without gaps.
    unsafe {
        let [first, second] = to.map(|to| to.cast::<f32>());
        _mm256_storeu_ps(first, triples[0]);
        _mm_storeu_ps(first.add(8), _mm256_castps256_ps128(triples[1]));
        _mm_storeu_ps(second, _mm256_extractf128_ps::<1>(triples[1]));
        _mm256_storeu_ps(second.add(4), triples[2]);
    }
}

/// Writes eight triples two by two.
///
/// # Safety
/// Two places can be written at each of `to`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn store_pairs(to: [*mut Vec3; 4], triples: [__m256; 3]) {
    let halves = |eight: __m256| (_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let [(a, b), (c, d), (e, f)] = triples.map(halves);
    // SAFETY: promised by the caller; a `Vec3` is three numbers without gaps.
    unsafe {
        let [first, second, third, fourth] = to.map(|to| to.cast::<f32>());
        _mm_storeu_ps(first, a);
        _mm_storel_pd(first.add(4).cast(), _mm_castps_pd(b));
        _mm_storeh_pd(second.cast(), _mm_castps_pd(b));
        _mm_storeu_ps(second.add(2), c);
        _mm_storeu_ps(third, d);
        _mm_storel_pd(third.add(4).cast(), _mm_castps_pd(e));
        _mm_storeh_pd(fourth.cast(), _mm_castps_pd(e));
        _mm_storeu_ps(fourth.add(2), f);
    }
}

/// Writes eight places, given by rows of x, y and z, each to its target.
///
/// # Safety
/// Every target can be written.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn scatter(out: *mut Vec3, targets: &[u32; 8], [x, y, z]: [__m256; 3]) {
    // Pairs of x and y: of vertices 0, 1, 4 and 5, and of 2, 3, 6 and 7.
    let (even, odd) = (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
    let halves = |pair: __m256| (_mm256_castps256_ps128(pair), _mm256_extractf128_ps::<1>(pair));
    let ((a, e), (c, g), (low, high)) = (halves(even), halves(odd), halves(z));
    // SAFETY: promised by the caller; a `Vec3` is three numbers without gaps.
    unsafe {
        let to = |lane: usize| out.add(targets[lane] as usize).cast::<f32>();
        for (first, pair) in [(0, a), (2, c), (4, e), (6, g)] {
            _mm_storel_pd(to(first).cast(), _mm_castps_pd(pair));
            _mm_storeh_pd(to(first + 1).cast(), _mm_castps_pd(pair));
        }
        for (first, z) in [(0, low), (4, high)] {
            _mm_store_ss(to(first).add(2), z);
            _mm_store_ss(to(first + 1).add(2), _mm_movehdup_ps(z));
            let upper = _mm_movehl_ps(z, z);
            _mm_store_ss(to(first + 2).add(2), upper);
            _mm_store_ss(to(first + 3).add(2), _mm_movehdup_ps(upper));
        }
    }
}
