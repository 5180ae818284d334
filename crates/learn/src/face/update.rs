//! Adam's step (Kingma and Ba 2015), fused with the product that gives a dense layer's derivative: a
//! gradient of millions of weights is never written to memory. Start at [`Step`].

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The learning rate.
    pub rate: f32,
    /// What the averages lack in the first steps.
    pub correction_1: f32,
    /// The same of the squares.
    pub correction_2: f32,
}

/// How much of the average of gradients stays.
pub const BETA_1: f32 = 0.9;
/// How much of the average of their squares stays.
pub const BETA_2: f32 = 0.999;
/// Keeps small gradients from large steps.
pub const EPSILON: f32 = 1e-8;

/// What one pose leaves for the weights of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelFactors<'a> {
    /// `[pixels][hidden]`.
    pub features: &'a [f32],
    /// What all pixels read, `[shared]`.
    pub shared: &'a [f32],
    /// Derivatives by the map, `[pixels][outputs]`.
    pub slopes: &'a [f32],
}

/// Averages of a gradient and of its square.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moments {
    /// Of the gradient.
    pub first: Vec<f32>,
    /// Of its square.
    pub second: Vec<f32>,
}

impl Moments {
    /// Zero, for so many parameters.
    pub fn new(count: usize) -> Self {
        Self { first: vec![0.0; count], second: vec![0.0; count] }
    }
}

impl Step {
    /// Number `step`, counted from 1, at a learning rate.
    pub fn new(step: usize, rate: f32) -> Self {
        let power = step.clamp(1, i32::MAX as usize) as i32;
        Self {
            rate,
            correction_1: 1.0 / (1.0 - BETA_1.powi(power)),
            correction_2: 1.0 / (1.0 - BETA_2.powi(power)),
        }
    }

    fn one(&self, parameter: &mut f32, gradient: f32, first: &mut f32, second: &mut f32) {
        *first = BETA_1 * *first + (1.0 - BETA_1) * gradient;
        *second = BETA_2 * *second + (1.0 - BETA_2) * gradient * gradient;
        let root = (*second * self.correction_2).sqrt() + EPSILON;
        *parameter -= self.rate * *first * self.correction_1 / root;
    }

    /// Steps down a gradient.
    pub fn apply(&self, parameters: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]) {
        let moments = first.iter_mut().zip(second);
        for ((parameter, gradient), (first, second)) in parameters.iter_mut().zip(gradient).zip(moments) {
            self.one(parameter, *gradient, first, second);
        }
    }

    /// Steps down the derivative by the weights of a dense layer, `g[r][c] = Σ_b d[b][r] · x[b][c]`.
    /// `d`: `[poses × rows]`, `x`: `[poses × columns]`, weights and moments `[rows × columns]`.
    ///
    /// # Panics
    /// When an array is too short.
    pub fn apply_product(
        &self,
        weights: &mut [f32],
        d: &[f32],
        x: &[f32],
        rows: usize,
        columns: usize,
        first: &mut [f32],
        second: &mut [f32],
    ) {
        if rows == 0 || columns == 0 {
            return;
        }
        let poses = d.len() / rows;
        assert!(x.len() >= poses * columns, "inputs of all poses");
        let size = rows * columns;
        assert!(weights.len() == size && first.len() == size && second.len() == size, "same shapes");
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the instructions are there, and the assertions hold every index inside its array.
            unsafe { avx2::apply_product(self, weights, d, x, rows, columns, first, second) };
            return;
        }
        for row in 0..rows {
            for column in 0..columns {
                let gradient = (0..poses).map(|b| d[b * rows + row] * x[b * columns + column]).sum();
                let place = row * columns + column;
                self.one(&mut weights[place], gradient, &mut first[place], &mut second[place]);
            }
        }
    }

    /// Steps down the derivatives of a 1×1 convolution with weights of its own in every pixel, `g[o][c] =
    /// Σ_b d[o] · f[c]`. `parameters` and moments: weights `[sets][outputs][hidden + shared]`, then bias
    /// `[sets][outputs]`. `pixels`: the sets that have a derivative, with `factors` of each pose. `sizes`: sets,
    /// outputs, hidden, shared.
    ///
    /// # Panics
    /// When an array is too short.
    pub fn apply_pixels(
        &self,
        parameters: &mut [f32],
        pixels: &[usize],
        factors: &[PixelFactors<'_>],
        [sets, outputs, hidden, shared]: [usize; 4],
        first: &mut [f32],
        second: &mut [f32],
    ) {
        let reads = hidden + shared;
        let weights = sets * outputs * reads;
        for own in factors {
            assert!(own.features.len() == pixels.len() * hidden, "features of all pixels");
            assert!(own.shared.len() == shared, "what all pixels read");
            assert!(own.slopes.len() == pixels.len() * outputs, "derivatives of all pixels");
        }
        // One pixel is a dense layer of its own: what it read in each pose, and the derivatives.
        let mut read = vec![0.0f32; factors.len() * reads];
        let mut by = vec![0.0f32; factors.len() * outputs];
        for (row, own) in read.chunks_exact_mut(reads).zip(factors) {
            row[hidden..].copy_from_slice(own.shared);
        }
        for (index, pixel) in pixels.iter().enumerate() {
            let rows = read.chunks_exact_mut(reads).zip(by.chunks_exact_mut(outputs));
            for ((read, by), own) in rows.zip(factors) {
                read[..hidden].copy_from_slice(&own.features[index * hidden..(index + 1) * hidden]);
                by.copy_from_slice(&own.slopes[index * outputs..(index + 1) * outputs]);
            }
            let range = pixel * outputs * reads..(pixel + 1) * outputs * reads;
            let (m, v) = (&mut first[range.clone()], &mut second[range.clone()]);
            self.apply_product(&mut parameters[range], &by, &read, outputs, reads, m, v);
            for output in 0..outputs {
                let place = weights + pixel * outputs + output;
                let gradient = by.iter().skip(output).step_by(outputs).sum();
                self.one(&mut parameters[place], gradient, &mut first[place], &mut second[place]);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Eight weights at a time.

    use super::{BETA_1, BETA_2, EPSILON, Step};
    use std::arch::x86_64::*;

    /// Poses whose factors stay in registers.
    const BLOCK: usize = 8;

    /// # Safety
    /// The machine has AVX2 and FMA; arrays have the shapes that [`Step::apply_product`] asks for.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn apply_product(
        step: &Step,
        weights: &mut [f32],
        d: &[f32],
        x: &[f32],
        rows: usize,
        columns: usize,
        first: &mut [f32],
        second: &mut [f32],
    ) {
        let poses = d.len() / rows;
        let whole = columns / 8 * 8;
        for row in 0..rows {
            let start = row * columns;
            let mut column = 0;
            while column < whole {
                // SAFETY: `column + 8 ≤ columns`, `row < rows`, and the caller promised the shapes.
                unsafe {
                    let mut gradient = [_mm256_setzero_ps(); 2];
                    let mut pose = 0;
                    while pose + BLOCK <= poses {
                        for lane in 0..BLOCK {
                            let factor = _mm256_broadcast_ss(d.get_unchecked((pose + lane) * rows + row));
                            let values = _mm256_loadu_ps(x.as_ptr().add((pose + lane) * columns + column));
                            gradient[lane % 2] = _mm256_fmadd_ps(factor, values, gradient[lane % 2]);
                        }
                        pose += BLOCK;
                    }
                    while pose < poses {
                        let factor = _mm256_broadcast_ss(d.get_unchecked(pose * rows + row));
                        let values = _mm256_loadu_ps(x.as_ptr().add(pose * columns + column));
                        gradient[0] = _mm256_fmadd_ps(factor, values, gradient[0]);
                        pose += 1;
                    }
                    let g = _mm256_add_ps(gradient[0], gradient[1]);
                    let set = |value: f32| _mm256_set1_ps(value);
                    let place = start + column;
                    let (m, v, w) = (
                        first.as_mut_ptr().add(place),
                        second.as_mut_ptr().add(place),
                        weights.as_mut_ptr().add(place),
                    );
                    let mean =
                        _mm256_fmadd_ps(set(BETA_1), _mm256_loadu_ps(m), _mm256_mul_ps(set(1.0 - BETA_1), g));
                    let square = _mm256_fmadd_ps(
                        set(BETA_2),
                        _mm256_loadu_ps(v),
                        _mm256_mul_ps(set(1.0 - BETA_2), _mm256_mul_ps(g, g)),
                    );
                    _mm256_storeu_ps(m, mean);
                    _mm256_storeu_ps(v, square);
                    let root = _mm256_sqrt_ps(_mm256_mul_ps(square, set(step.correction_2)));
                    let go = _mm256_mul_ps(mean, set(step.rate * step.correction_1));
                    let change = _mm256_div_ps(go, _mm256_add_ps(root, set(EPSILON)));
                    _mm256_storeu_ps(w, _mm256_sub_ps(_mm256_loadu_ps(w), change));
                }
                column += 8;
            }
            for column in whole..columns {
                let gradient = (0..poses).map(|b| d[b * rows + row] * x[b * columns + column]).sum();
                let place = start + column;
                step.one(&mut weights[place], gradient, &mut first[place], &mut second[place]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    #[test]
    fn the_fused_step_is_the_plain_one() {
        let mut random = Random::new(2);
        for (poses, rows, columns) in [(1, 1, 1), (8, 3, 7), (8, 5, 8), (3, 4, 9), (16, 2, 100), (11, 6, 33)]
        {
            let mut draw =
                |count: usize| -> Vec<f32> { (0..count).map(|_| random.uniform(-1.0, 1.0)).collect() };
            let (d, x, mut fused) = (draw(poses * rows), draw(poses * columns), draw(rows * columns));
            let mut plain = fused.clone();
            let (mut a, mut b) = (Moments::new(rows * columns), Moments::new(rows * columns));
            let mut gradient = vec![0.0; rows * columns];
            for pose in 0..poses {
                for place in 0..rows * columns {
                    let (row, column) = (place / columns, place % columns);
                    gradient[place] += d[pose * rows + row] * x[pose * columns + column];
                }
            }
            for number in 1..4 {
                let step = Step::new(number, 0.01);
                step.apply(&mut plain, &gradient, &mut a.first, &mut a.second);
                step.apply_product(&mut fused, &d, &x, rows, columns, &mut b.first, &mut b.second);
            }
            assert!(plain.iter().zip(&fused).all(|(a, b)| (a - b).abs() < 1e-5), "{poses} {rows} {columns}");
        }
    }

    #[test]
    fn the_first_step_is_the_rate_and_a_parabola_is_solved() {
        let (mut x, mut moments) = ([3.0f32], Moments::new(1));
        for number in 1..600 {
            let gradient = [2.0 * x[0]];
            Step::new(number, 0.05).apply(&mut x, &gradient, &mut moments.first, &mut moments.second);
            assert!(number > 1 || (x[0] - 2.95).abs() < 1e-6);
        }
        assert!(x[0].abs() < 1e-2, "{}", x[0]);
    }
}
