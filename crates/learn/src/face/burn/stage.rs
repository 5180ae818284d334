//! One 3×3 convolution of many networks at once, with or without nearest ×2 upsampling before it, and its
//! derivatives. Images are `[networks, poses, pixels, channels]`.
//!
//! After an upsampling a 3×3 convolution is, for each of the four parities of the output pixel, a 2×2
//! convolution of the small image; here all four are one product of 3×3 patches of the small image with
//! kernels that hold the folded weights. The four outputs of a pixel stay next to each other: the order of
//! pixels in memory is that of repeated quartering, and only tables know where a pixel stands.

use burn_tensor::backend::Backend;
use burn_tensor::{Int, Tensor, TensorData};
use understudy_runtime::face::LEAK;

/// Offsets of a kernel.
const TAPS: usize = 9;
/// Output pixels of one pixel after an upsampling.
const PARITIES: usize = 4;

/// Where the pixels of an image stand: `[side · side]`, by rows.
pub(super) fn rows_of_pixels(side: usize) -> Vec<usize> {
    (0..side * side).collect()
}

/// The same of the image twice its size that a stage with an upsampling draws.
pub(super) fn doubled(places: &[usize], side: usize) -> Vec<usize> {
    let place = |pixel: usize| {
        let (row, column) = (pixel / (2 * side), pixel % (2 * side));
        places[row / 2 * side + column / 2] * PARITIES + row % 2 * 2 + column % 2
    };
    (0..4 * side * side).map(place).collect()
}

/// `x`, or `LEAK · x` below zero; and where that is.
pub(super) fn rectify<B: Backend, const D: usize>(
    x: Tensor<B, D>,
) -> (Tensor<B, D>, Tensor<B, D, burn_tensor::Bool>) {
    let below = x.clone().lower_equal_elem(0.0);
    (x.clone().mask_where(below.clone(), x.mul_scalar(LEAK)), below)
}

/// Its derivative.
pub(super) fn unrectify<B: Backend, const D: usize>(
    slopes: Tensor<B, D>,
    below: Tensor<B, D, burn_tensor::Bool>,
) -> Tensor<B, D> {
    slopes.clone().mask_where(below, slopes.mul_scalar(LEAK))
}

/// Rows that are summed by one thread: `[n, rows, columns]` to `[n, 1, columns]`.
pub(super) fn sum_rows<B: Backend>(x: Tensor<B, 3>) -> Tensor<B, 3> {
    const PIECE: usize = 32;
    let [n, rows, columns] = x.dims();
    if !rows.is_multiple_of(PIECE) {
        return x.sum_dim(1);
    }
    let pieces = x.reshape([n, rows / PIECE, PIECE, columns]).sum_dim(2);
    pieces.reshape([n, rows / PIECE, columns]).sum_dim(1)
}

/// A convolution of all networks of a group.
pub(super) struct Stage<B: Backend> {
    pub inputs: usize,
    pub outputs: usize,
    upsampled: bool,
    pixels: usize,
    /// For every pixel and tap: which pixel, and whether there is one.
    patches: Table<B>,
    /// For every pixel and tap: which entry of the patches the pixel went to.
    back: Table<B>,
    /// `[networks, 36, 9]`: folded weights by plain ones.
    fold: Option<Tensor<B, 3>>,
}

/// What the derivatives need of a pass.
pub(super) struct StageTape<B: Backend> {
    /// `[networks, poses, pixels, 9 · inputs]`.
    patches: Tensor<B, 4>,
    /// Folded weights `[networks, 9 · inputs, outputs]`.
    weights: Tensor<B, 3>,
    below: Tensor<B, 4, burn_tensor::Bool>,
}

/// Derivatives of a stage.
pub(super) struct StageSlopes<B: Backend> {
    /// By its input image.
    pub image: Tensor<B, 4>,
    /// `[networks, 9, inputs, outputs]`, flat.
    pub kernel: Tensor<B, 1>,
    /// `[networks, outputs]`, flat.
    pub bias: Tensor<B, 1>,
}

struct Table<B: Backend> {
    indices: Tensor<B, 1, Int>,
    /// `[1, 1, entries, 1]`.
    there: Tensor<B, 4>,
}

impl<B: Backend> Table<B> {
    fn new(entries: &[Option<usize>], device: &B::Device) -> Self {
        let count = entries.len();
        let indices: Vec<i32> = entries.iter().map(|entry| entry.unwrap_or(0) as i32).collect();
        let there: Vec<f32> = entries.iter().map(|entry| f32::from(u8::from(entry.is_some()))).collect();
        Self {
            indices: Tensor::from_data(TensorData::new(indices, [count]), device),
            there: Tensor::from_data(TensorData::new(there, [1, 1, count, 1]), device),
        }
    }

    /// Along the third axis.
    fn take(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        x.select(2, self.indices.clone()).mul(self.there.clone())
    }
}

impl<B: Backend> Stage<B> {
    /// `places`: where pixels of its input stand.
    pub fn new(
        networks: usize,
        inputs: usize,
        outputs: usize,
        places: &[usize],
        side: usize,
        upsampled: bool,
        device: &B::Device,
    ) -> Self {
        let pixels = side * side;
        let (mut patches, mut back) = (vec![None; pixels * TAPS], vec![None; pixels * TAPS]);
        for pixel in 0..pixels {
            for tap in 0..TAPS {
                let [row, column] = [pixel / side + tap / 3, pixel % side + tap % 3];
                if (1..=side).contains(&row) && (1..=side).contains(&column) {
                    let seen = places[(row - 1) * side + column - 1];
                    patches[places[pixel] * TAPS + tap] = Some(seen);
                    back[seen * TAPS + tap] = Some(places[pixel] * TAPS + tap);
                }
            }
        }
        let fold = upsampled.then(|| {
            let numbers = fold_matrix().repeat(networks);
            Tensor::from_data(TensorData::new(numbers, [networks, TAPS * PARITIES, TAPS]), device)
        });
        Self {
            inputs,
            outputs,
            upsampled,
            pixels,
            patches: Table::new(&patches, device),
            back: Table::new(&back, device),
            fold,
        }
    }

    /// Outputs that one pixel of the input has.
    fn parities(&self) -> usize {
        if self.upsampled { PARITIES } else { 1 }
    }

    /// The image after convolution and rectifier. `kernel`: `[networks, 9, inputs, outputs]`, `bias`:
    /// `[networks, outputs]`.
    pub fn forward(
        &self,
        image: Tensor<B, 4>,
        kernel: Tensor<B, 4>,
        bias: Tensor<B, 2>,
    ) -> (Tensor<B, 4>, StageTape<B>) {
        let [networks, poses, pixels, _] = image.dims();
        let (rows, wide) = (TAPS * self.inputs, self.parities() * self.outputs);
        let (weights, bias) = match &self.fold {
            None => (kernel.reshape([networks, rows, wide]), bias),
            Some(fold) => {
                let plain = kernel.reshape([networks, TAPS, self.inputs * self.outputs]);
                let folded = fold.clone().matmul(plain);
                let folded = folded.reshape([networks, TAPS, PARITIES, self.inputs, self.outputs]);
                (folded.swap_dims(2, 3).reshape([networks, rows, wide]), bias.repeat_dim(1, PARITIES))
            }
        };
        let patches = self.patches.take(image).reshape([networks, poses, pixels, rows]);
        let sums = patches.clone().reshape([networks, poses * pixels, rows]).matmul(weights.clone());
        let sums = sums + bias.reshape([networks, 1, wide]);
        let (image, below) = rectify(sums.reshape([networks, poses, pixels, wide]));
        let image = image.reshape([networks, poses, pixels * self.parities(), self.outputs]);
        (image, StageTape { patches, weights, below })
    }

    /// From derivatives by the output image.
    pub fn backward(&self, slopes: Tensor<B, 4>, tape: StageTape<B>) -> StageSlopes<B> {
        let [networks, poses, _, _] = slopes.dims();
        let (rows, wide) = (TAPS * self.inputs, self.parities() * self.outputs);
        let slopes = unrectify(slopes.reshape([networks, poses, self.pixels, wide]), tape.below);
        // A pose at a time first: one long sum would leave most of a GPU idle.
        let by_weights = tape.patches.swap_dims(2, 3).matmul(slopes.clone()).sum_dim(1);
        let flat = slopes.reshape([networks, poses * self.pixels, wide]);
        let by_bias = sum_rows(flat.clone());
        let count = networks * TAPS * self.inputs * self.outputs;
        let (kernel, bias) = match &self.fold {
            None => (by_weights.reshape([count]), by_bias.reshape([networks * self.outputs])),
            Some(fold) => {
                let folded = by_weights.reshape([networks, TAPS, self.inputs, PARITIES, self.outputs]);
                let folded =
                    folded.swap_dims(2, 3).reshape([networks, TAPS * PARITIES, self.inputs * self.outputs]);
                let bias = by_bias.reshape([networks, PARITIES, self.outputs]).sum_dim(1);
                let kernel = fold.clone().swap_dims(1, 2).matmul(folded);
                (kernel.reshape([count]), bias.reshape([networks * self.outputs]))
            }
        };
        let by_patches = flat.matmul(tape.weights.swap_dims(1, 2));
        debug_assert_eq!(by_patches.dims()[2], rows);
        let by_patches = by_patches.reshape([networks, poses, self.pixels * TAPS, self.inputs]);
        let image = self.back.take(by_patches).reshape([networks, poses, self.pixels, TAPS, self.inputs]);
        let image = image.sum_dim(3).reshape([networks, poses, self.pixels, self.inputs]);
        StageSlopes { image, kernel, bias }
    }
}

/// `[36 · 9]`: which plain weights a folded one is the sum of, by (tap of the small image, parity).
fn fold_matrix() -> Vec<f32> {
    // Output row `2y + p` sees rows `2y + p + k − 1` of the large image, which are rows
    // `y + ⌊(p + k − 1)/2⌋` of the small one.
    let meets = |tap: usize, parity: usize, k: usize| (parity + k + 1) / 2 == tap;
    let mut out = Vec::with_capacity(TAPS * PARITIES * TAPS);
    for tap in 0..TAPS {
        for parity in 0..PARITIES {
            for k in 0..TAPS {
                let hit = meets(tap / 3, parity / 2, k / 3) && meets(tap % 3, parity % 2, k % 3);
                out.push(f32::from(u8::from(hit)));
            }
        }
    }
    out
}
