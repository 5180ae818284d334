//! The same in registers, for x86-64 with AVX2 and FMA.

use super::{CROSSED, Group, LANES, Lanes, Map, place};
use std::arch::x86_64::*;

/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn products(group: &Group, bones: &[Map], out: &mut [Lanes]) {
    let (from, to_group) = (&bones[group.bone], inverse(&bones[group.bone]));
    let mut start = 0;
    for seen in &group.seen {
        if let Some(bone) = bones.get(seen.bone) {
            for slot in start..seen.end {
                set(&mut out[slot], product(&to_group, from, bone, group.numbers[slot]));
            }
        }
        start = seen.end;
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn get(numbers: &Lanes) -> __m256 {
    // SAFETY: there are eight of them.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn set(to: &mut Lanes, numbers: __m256) {
    // SAFETY: there is room for eight.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), numbers) };
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn product(a: &[[__m256; 3]; 3], from: &Map, b: &Map, number: u8) -> __m256 {
    let (column, row) = place(number);
    let mut along = [0, 1, 2].map(|axis| get(&b[3 * column + axis]));
    if column == 3 {
        along = [0, 1, 2].map(|axis| _mm256_sub_ps(along[axis], get(&from[9 + axis])));
    }
    let sum = _mm256_mul_ps(a[row][0], along[0]);
    let sum = _mm256_fmadd_ps(a[row][1], along[1], sum);
    _mm256_fmadd_ps(a[row][2], along[2], sum)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn inverse(map: &Map) -> [[__m256; 3]; 3] {
    let at = |column: usize, row: usize| get(&map[3 * column + row]);
    let cross = |a: usize, b: usize, row: usize| {
        let (next, last) = ((row + 1) % 3, (row + 2) % 3);
        _mm256_fmsub_ps(at(a, next), at(b, last), _mm256_mul_ps(at(a, last), at(b, next)))
    };
    let rows = CROSSED.map(|(a, b)| [0, 1, 2].map(|row| cross(a, b, row)));
    let size = _mm256_mul_ps(rows[0][0], at(0, 0));
    let size = _mm256_fmadd_ps(rows[0][1], at(0, 1), size);
    let share = _mm256_div_ps(_mm256_set1_ps(1.0), _mm256_fmadd_ps(rows[0][2], at(0, 2), size));
    rows.map(|row| row.map(|number| _mm256_mul_ps(number, share)))
}

/// # Safety
/// The machine has AVX2.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn transpose(block: &[Lanes; LANES]) -> [Lanes; LANES] {
    let row = |index: usize| get(&block[index]);
    let pairs = [0, 2, 4, 6].map(|i| {
        let (a, b) = (row(i), row(i + 1));
        [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)]
    });
    let fours = [0, 2].map(|i| {
        let join = |half: usize| {
            let (a, b) = (pairs[i][half], pairs[i + 1][half]);
            [_mm256_shuffle_ps::<0b01_00_01_00>(a, b), _mm256_shuffle_ps::<0b11_10_11_10>(a, b)]
        };
        let ([a, b], [c, d]) = (join(0), join(1));
        [a, b, c, d]
    });
    let mut out = [Lanes::default(); LANES];
    for i in 0..LANES / 2 {
        set(&mut out[i], _mm256_permute2f128_ps::<0x20>(fours[0][i], fours[1][i]));
        set(&mut out[i + 4], _mm256_permute2f128_ps::<0x31>(fours[0][i], fours[1][i]));
    }
    out
}
