//! Products of a layer's weights with a small batch of poses. A general matrix product packs its operands
//! first, which costs more than eight rows are worth; here weights are read straight through, once.

use crate::matrix::{View, multiply};

/// `out[b][r] = bias[r] + Σ_c w[r][c] · x[b][c]` for `poses` rows `b`.
///
/// # Panics
/// When an array is too short.
pub fn forward(out: &mut [f32], weights: &[f32], bias: &[f32], x: &[f32], poses: usize, columns: usize) {
    let rows = bias.len();
    assert!(weights.len() >= rows * columns && x.len() >= poses * columns && out.len() >= poses * rows);
    #[cfg(target_arch = "x86_64")]
    if is_fast() {
        // SAFETY: the instructions are there, and the assertion holds every index inside its array.
        return unsafe { avx2::forward(out, weights, bias, x, poses, columns) };
    }
    for row in out[..poses * rows].chunks_exact_mut(rows.max(1)) {
        row.copy_from_slice(bias);
    }
    if columns > 0 && rows > 0 {
        let own = View::new(&x[..poses * columns], poses, columns);
        multiply(out, 1.0, own, View::new(weights, rows, columns).transposed());
    }
}

/// `out[b][c] = Σ_r d[b][r] · w[r][c]`.
///
/// # Panics
/// When an array is too short.
pub fn backward(out: &mut [f32], weights: &[f32], d: &[f32], poses: usize, rows: usize, columns: usize) {
    assert!(weights.len() >= rows * columns && d.len() >= poses * rows && out.len() >= poses * columns);
    #[cfg(target_arch = "x86_64")]
    if is_fast() {
        // SAFETY: as above.
        return unsafe { avx2::backward(out, weights, d, poses, rows, columns) };
    }
    multiply(out, 0.0, View::new(&d[..poses * rows], poses, rows), View::new(weights, rows, columns));
}

#[cfg(target_arch = "x86_64")]
fn is_fast() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Tiles of sums in registers.

    use std::arch::x86_64::*;

    /// Rows of weights and poses that are summed together forwards: twelve sums.
    const ROWS: usize = 3;
    const POSES: usize = 4;

    /// # Safety
    /// The machine has AVX2 and FMA; arrays are as long as [`super::forward`] asks.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn forward(
        out: &mut [f32],
        weights: &[f32],
        bias: &[f32],
        x: &[f32],
        poses: usize,
        columns: usize,
    ) {
        let rows = bias.len();
        let mut row = 0;
        while row < rows {
            let height = ROWS.min(rows - row);
            let mut pose = 0;
            while pose < poses {
                let width = POSES.min(poses - pose);
                // SAFETY: `row + height ≤ rows` and `pose + width ≤ poses`.
                unsafe {
                    let own = weights.as_ptr().add(row * columns);
                    let input = x.as_ptr().add(pose * columns);
                    let result = out.as_mut_ptr().add(pose * rows + row);
                    let start = bias.as_ptr().add(row);
                    match (height, width) {
                        (3, 4) => tile::<3, 4>(result, rows, own, start, input, columns),
                        (3, _) => {
                            for lane in 0..width {
                                let (result, input) = (result.add(lane * rows), input.add(lane * columns));
                                tile::<3, 1>(result, rows, own, start, input, columns);
                            }
                        }
                        _ => {
                            for lane in 0..width * height {
                                let (line, lane) = (lane % height, lane / height);
                                tile::<1, 1>(
                                    result.add(lane * rows + line),
                                    rows,
                                    own.add(line * columns),
                                    start.add(line),
                                    input.add(lane * columns),
                                    columns,
                                );
                            }
                        }
                    }
                }
                pose += width;
            }
            row += height;
        }
    }

    /// `R` rows of weights against `P` poses.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const R: usize, const P: usize>(
        out: *mut f32,
        stride: usize,
        weights: *const f32,
        bias: *const f32,
        x: *const f32,
        columns: usize,
    ) {
        // SAFETY: the caller of this private function passes addresses that hold for R rows and P poses.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); P]; R];
            let mut column = 0;
            while column + 8 <= columns {
                let mut own = [_mm256_setzero_ps(); R];
                for row in 0..R {
                    own[row] = _mm256_loadu_ps(weights.add(row * columns + column));
                }
                for pose in 0..P {
                    let values = _mm256_loadu_ps(x.add(pose * columns + column));
                    for row in 0..R {
                        sums[row][pose] = _mm256_fmadd_ps(own[row], values, sums[row][pose]);
                    }
                }
                column += 8;
            }
            for row in 0..R {
                for pose in 0..P {
                    let wide = sums[row][pose];
                    let four = _mm_add_ps(_mm256_castps256_ps128(wide), _mm256_extractf128_ps::<1>(wide));
                    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                    let mut sum = _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
                    for rest in column..columns {
                        sum += *weights.add(row * columns + rest) * *x.add(pose * columns + rest);
                    }
                    *out.add(pose * stride + row) = sum + *bias.add(row);
                }
            }
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA; arrays are as long as [`super::backward`] asks.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn backward(
        out: &mut [f32],
        weights: &[f32],
        d: &[f32],
        poses: usize,
        rows: usize,
        columns: usize,
    ) {
        let whole = columns / 16 * 16;
        let mut pose = 0;
        while pose < poses {
            let width = if poses - pose >= POSES { POSES } else { 1 };
            let mut column = 0;
            while column < whole {
                // SAFETY: `column + 16 ≤ columns` and `pose + width ≤ poses`.
                unsafe {
                    let result = out.as_mut_ptr().add(pose * columns + column);
                    let own = weights.as_ptr().add(column);
                    let slopes = d.as_ptr().add(pose * rows);
                    match width {
                        4 => strip::<4>(result, own, slopes, rows, columns),
                        _ => strip::<1>(result, own, slopes, rows, columns),
                    }
                }
                column += 16;
            }
            for lane in pose..pose + width {
                for column in whole..columns {
                    let sum =
                        (0..rows).map(|row| d[lane * rows + row] * weights[row * columns + column]).sum();
                    out[lane * columns + column] = sum;
                }
            }
            pose += width;
        }
    }

    /// Sixteen columns for `P` poses, over all rows.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn strip<const P: usize>(
        out: *mut f32,
        weights: *const f32,
        d: *const f32,
        rows: usize,
        columns: usize,
    ) {
        // SAFETY: the caller of this private function passes addresses that hold for P poses.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; P];
            for row in 0..rows {
                let start = weights.add(row * columns);
                let own = [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))];
                for pose in 0..P {
                    let slope = _mm256_broadcast_ss(&*d.add(pose * rows + row));
                    sums[pose][0] = _mm256_fmadd_ps(own[0], slope, sums[pose][0]);
                    sums[pose][1] = _mm256_fmadd_ps(own[1], slope, sums[pose][1]);
                }
            }
            for pose in 0..P {
                _mm256_storeu_ps(out.add(pose * columns), sums[pose][0]);
                _mm256_storeu_ps(out.add(pose * columns + 8), sums[pose][1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn products_match_the_definition_at_every_edge() {
        let mut random = Random::new(3);
        for (poses, rows, columns) in
            [(1, 1, 1), (8, 3, 8), (8, 256, 58), (5, 7, 100), (4, 9, 16), (8, 100, 7), (3, 2, 33), (8, 4, 0)]
        {
            let mut draw =
                |count: usize| -> Vec<f32> { (0..count).map(|_| random.uniform(-1.0, 1.0)).collect() };
            let (weights, bias) = (draw(rows * columns), draw(rows));
            let (x, d) = (draw(poses * columns), draw(poses * rows));
            let (mut out, mut back) = (vec![9.0; poses * rows], vec![9.0; poses * columns]);
            forward(&mut out, &weights, &bias, &x, poses, columns);
            backward(&mut back, &weights, &d, poses, rows, columns);
            for pose in 0..poses {
                for row in 0..rows {
                    let sum: f32 =
                        (0..columns).map(|c| weights[row * columns + c] * x[pose * columns + c]).sum();
                    assert!((out[pose * rows + row] - sum - bias[row]).abs() < 1e-4);
                }
                for column in 0..columns {
                    let sum: f32 =
                        (0..rows).map(|r| weights[r * columns + column] * d[pose * rows + r]).sum();
                    assert!((back[pose * columns + column] - sum).abs() < 1e-4);
                }
            }
        }
    }
}
