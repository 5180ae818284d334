//! Rows of pixels times a matrix of weights: `Y = act(X W + b (+ R))`, the product beneath every convolution. Weights are packed
//! in panels of 8 or 16 columns; a tile of a few rows by one panel stays in registers while the depth is walked.

use super::Activation;

/// Which build of the kernels runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Lanes {
    /// Whatever the compiler makes of it.
    Portable,
    /// AVX2 with fused multiply-adds.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Lanes {
    /// The fastest that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return Self::Avx2;
        }
        Self::Portable
    }
}

/// Weights in panels.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    /// Rows of the matrix.
    depth: usize,
    /// Columns that count.
    columns: usize,
    /// Columns of a panel.
    width: usize,
    panels: Vec<f32>,
    /// One per column, zeros behind.
    bias: Vec<f32>,
}

impl Packed {
    /// `weights`: `[columns × depth]`, as the format has them; `bias`: `[columns]`.
    pub fn new(weights: &[f32], bias: &[f32], depth: usize) -> Self {
        let columns = bias.len();
        let width = if columns <= 8 { 8 } else { 16 };
        let padded = columns.next_multiple_of(width);
        let mut panels = vec![0.0; padded * depth];
        for column in 0..columns {
            let panel = &mut panels[column / width * width * depth..];
            for row in 0..depth {
                panel[row * width + column % width] = weights[column * depth + row];
            }
        }
        let mut bias = bias.to_vec();
        bias.resize(padded, 0.0);
        Self { depth, columns, width, panels, bias }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    /// `x`: `[rows × depth]`, `out` and `residual`: `[rows × columns]`.
    pub fn multiply(
        &self,
        lanes: Lanes,
        x: &[f32],
        residual: Option<&[f32]>,
        activation: &Activation,
        out: &mut [f32],
    ) {
        match lanes {
            Lanes::Portable => self.multiply_by::<false>(x, residual, activation, out),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Lanes::detect` gives this value only where the processor has both features.
            Lanes::Avx2 => unsafe { self.multiply_avx2(x, residual, activation, out) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn multiply_avx2(&self, x: &[f32], residual: Option<&[f32]>, activation: &Activation, out: &mut [f32]) {
        self.multiply_by::<true>(x, residual, activation, out);
    }

    #[inline(always)]
    fn multiply_by<const FUSED: bool>(
        &self,
        x: &[f32],
        residual: Option<&[f32]>,
        activation: &Activation,
        out: &mut [f32],
    ) {
        match self.width {
            8 => self.walk::<6, 8, FUSED>(x, residual, activation, out),
            _ => self.walk::<6, 16, FUSED>(x, residual, activation, out),
        }
    }

    #[inline(always)]
    fn walk<const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
        &self,
        x: &[f32],
        residual: Option<&[f32]>,
        activation: &Activation,
        out: &mut [f32],
    ) {
        let (depth, columns) = (self.depth, self.columns);
        let rows = out.len() / columns;
        let mut row = 0;
        while row < rows {
            let many = row + ROWS <= rows;
            let count = if many { ROWS } else { 1 };
            for panel in 0..self.bias.len() / WIDTH {
                let weights = &self.panels[panel * WIDTH * depth..][..WIDTH * depth];
                let bias = &self.bias[panel * WIDTH..][..WIDTH];
                let start = panel * WIDTH;
                let end = columns.min(start + WIDTH);
                // Loops rather than closures: a closure would be built without the features of its caller.
                if many {
                    let sums = tile::<ROWS, WIDTH, FUSED>(&x[row * depth..], depth, weights, bias);
                    for r in 0..ROWS {
                        let place = (row + r) * columns;
                        let slot = &mut out[place + start..place + end];
                        finish(&sums[r], side(residual, place + start, place + end), activation, start, slot);
                    }
                } else {
                    let sums = tile::<1, WIDTH, FUSED>(&x[row * depth..], depth, weights, bias);
                    let place = row * columns;
                    let slot = &mut out[place + start..place + end];
                    finish(&sums[0], side(residual, place + start, place + end), activation, start, slot);
                }
            }
            row += count;
        }
    }
}

#[inline(always)]
fn side(residual: Option<&[f32]>, start: usize, end: usize) -> Option<&[f32]> {
    match residual {
        Some(residual) => Some(&residual[start..end]),
        None => None,
    }
}

/// What comes after the product, for one pixel and one panel.
#[inline(always)]
fn finish<const WIDTH: usize>(
    sums: &[f32; WIDTH],
    residual: Option<&[f32]>,
    activation: &Activation,
    start: usize,
    slot: &mut [f32],
) {
    let mut values = *sums;
    if let Some(residual) = residual {
        if let Some(whole) = residual.first_chunk::<WIDTH>() {
            for lane in 0..WIDTH {
                values[lane] += whole[lane];
            }
        } else {
            for lane in 0..residual.len() {
                values[lane] += residual[lane];
            }
        }
    }
    match activation {
        Activation::None => {}
        Activation::Relu => {
            for lane in 0..WIDTH {
                values[lane] = values[lane].max(0.0);
            }
        }
        Activation::Relu6 => {
            for lane in 0..WIDTH {
                values[lane] = values[lane].clamp(0.0, 6.0);
            }
        }
        Activation::Prelu(slopes) => {
            let slopes = &slopes[start..];
            if let Some(slopes) = slopes.first_chunk::<WIDTH>() {
                for lane in 0..WIDTH {
                    values[lane] = values[lane].max(0.0) + slopes[lane] * values[lane].min(0.0);
                }
            } else {
                for lane in 0..slopes.len() {
                    values[lane] = values[lane].max(0.0) + slopes[lane] * values[lane].min(0.0);
                }
            }
        }
    }
    match slot.first_chunk_mut::<WIDTH>() {
        Some(whole) => *whole = values,
        None => slot.copy_from_slice(&values[..slot.len()]),
    }
}

/// `ROWS × WIDTH` sums.
#[inline(always)]
fn tile<const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
    x: &[f32],
    depth: usize,
    weights: &[f32],
    bias: &[f32],
) -> [[f32; WIDTH]; ROWS] {
    let bias: &[f32; WIDTH] = bias.first_chunk().expect("a panel's bias");
    let mut sums = [*bias; ROWS];
    let rows: [&[f32]; ROWS] = std::array::from_fn(|r| &x[r * depth..][..depth]);
    let (weights, _) = weights.as_chunks::<WIDTH>();
    for (k, weights) in weights.iter().enumerate().take(depth) {
        for r in 0..ROWS {
            let x = rows[r][k];
            for lane in 0..WIDTH {
                sums[r][lane] = match FUSED {
                    true => x.mul_add(weights[lane], sums[r][lane]),
                    false => sums[r][lane] + x * weights[lane],
                };
            }
        }
    }
    sums
}
