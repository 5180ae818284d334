//! The same in registers, for x86-64 with AVX2 and FMA.

use super::{Frame, Group, LANES, Lanes, Map, place};
use std::arch::x86_64::*;

/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn products(group: &Group, frame: Frame<'_>, bones: &[Map], out: &mut [Lanes]) {
    let (from, to_group) = match frame {
        Frame::Bone(map) => (map, inverse(map)),
        Frame::Rigid(map) => (map, columns(map)),
    };
    let mut start = 0;
    for seen in &group.bone_inputs {
        if let Some(bone) = bones.get(seen.bone) {
            match <&mut Map>::try_from(&mut out[start..seen.end]) {
                Ok(out) if seen.whole => {
                    for (number, out) in (0u8..).zip(out) {
                        set(out, product(&to_group, from, bone, number));
                    }
                }
                _ => {
                    for slot in start..seen.end {
                        set(&mut out[slot], product(&to_group, from, bone, group.numbers[slot]));
                    }
                }
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
fn columns(map: &Map) -> [[__m256; 3]; 3] {
    // No closures: they would not become part of this function.
    [
        [get(&map[0]), get(&map[1]), get(&map[2])],
        [get(&map[3]), get(&map[4]), get(&map[5])],
        [get(&map[6]), get(&map[7]), get(&map[8])],
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn inverse(map: &Map) -> [[__m256; 3]; 3] {
    let [a, b, c] = columns(map);
    let rows = [cross(b, c), cross(c, a), cross(a, b)];
    let size = _mm256_mul_ps(rows[0][0], a[0]);
    let size = _mm256_fmadd_ps(rows[0][1], a[1], size);
    let share = _mm256_div_ps(_mm256_set1_ps(1.0), _mm256_fmadd_ps(rows[0][2], a[2], size));
    [times(rows[0], share), times(rows[1], share), times(rows[2], share)]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn cross(a: [__m256; 3], b: [__m256; 3]) -> [__m256; 3] {
    [
        _mm256_fmsub_ps(a[1], b[2], _mm256_mul_ps(a[2], b[1])),
        _mm256_fmsub_ps(a[2], b[0], _mm256_mul_ps(a[0], b[2])),
        _mm256_fmsub_ps(a[0], b[1], _mm256_mul_ps(a[1], b[0])),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn times([x, y, z]: [__m256; 3], share: __m256) -> [__m256; 3] {
    [_mm256_mul_ps(x, share), _mm256_mul_ps(y, share), _mm256_mul_ps(z, share)]
}

/// All lanes. The last eight inputs may be among those before them, too: they are written twice, with the same numbers.
///
/// # Safety
/// The machine has AVX2; there are eight inputs or more, means and scales for all of them, and eight rows for them.
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn spread(inputs: &[Lanes], (mean, scale): (&[f32], &[f32]), rows: &mut [f32], stride: usize) {
    let last = inputs.len() - LANES;
    for first in (0..last).step_by(LANES).chain([last]) {
        // SAFETY: `first + LANES` is at most the number of inputs, and every row has room for all of them.
        unsafe {
            let turned = transpose(&*inputs.as_ptr().add(first).cast());
            let (mean, scale) =
                (_mm256_loadu_ps(mean.as_ptr().add(first)), _mm256_loadu_ps(scale.as_ptr().add(first)));
            let to = rows.as_mut_ptr().add(first);
            for (lane, numbers) in turned.into_iter().enumerate() {
                let numbers = _mm256_mul_ps(_mm256_sub_ps(numbers, mean), scale);
                _mm256_storeu_ps(to.add(lane * stride), numbers);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn transpose(block: &[Lanes; LANES]) -> [__m256; LANES] {
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
    let low = |i: usize| _mm256_permute2f128_ps::<0x20>(fours[0][i], fours[1][i]);
    let high = |i: usize| _mm256_permute2f128_ps::<0x31>(fours[0][i], fours[1][i]);
    [low(0), low(1), low(2), low(3), high(0), high(1), high(2), high(3)]
}
