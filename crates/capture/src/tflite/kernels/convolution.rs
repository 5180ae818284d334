//! Convolutions: pixels under the window are laid side by side, a row of the output at a time, and multiplied by the weights. A
//! window of one pixel needs no laying out.

use super::Activation;
use super::gemm::{Lanes, Packed};

/// A convolution with what follows it: `act(X W + b (+ R))`.
#[derive(Debug, Clone)]
pub(in super::super) struct Convolution {
    /// Rows, columns and channels that come in.
    pub input: [usize; 3],
    /// Rows and columns that go out.
    pub output: [usize; 2],
    /// Rows and columns of the window.
    pub window: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    /// Zeros above and left of the image.
    pub before: [usize; 2],
    packed: Packed,
    pub activation: Activation,
    pub residual: bool,
}

impl Convolution {
    /// `weights`: `[channels out × window rows × window columns × channels in]`.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        input: [usize; 3],
        output: [usize; 2],
        window: [usize; 2],
        stride: [usize; 2],
        dilation: [usize; 2],
        before: [usize; 2],
        weights: &[f32],
        bias: &[f32],
        activation: Activation,
    ) -> Self {
        let depth = window[0] * window[1] * input[2];
        let packed = Packed::new(weights, bias, depth);
        Self { input, output, window, stride, dilation, before, packed, activation, residual: false }
    }

    fn is_plain(&self) -> bool {
        self.window == [1, 1] && self.stride == [1, 1] && self.before == [0, 0]
    }

    /// Numbers of memory for a row of the output.
    pub fn scratch(&self) -> usize {
        if self.is_plain() { 0 } else { self.output[1] * self.packed.depth() }
    }

    pub fn run(
        &self,
        lanes: Lanes,
        x: &[f32],
        residual: Option<&[f32]>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) {
        if self.is_plain() {
            return self.packed.multiply(lanes, x, residual, &self.activation, out);
        }
        let scratch = &mut scratch[..self.scratch()];
        let row = self.output[1] * self.packed.columns();
        for (y, out) in out.chunks_exact_mut(row).enumerate() {
            self.lay_out(x, y, scratch);
            let residual = residual.map(|residual| &residual[y * row..][..row]);
            self.packed.multiply(lanes, scratch, residual, &self.activation, out);
        }
    }

    fn lay_out(&self, x: &[f32], row: usize, scratch: &mut [f32]) {
        let [height, width, channels] = self.input;
        let depth = self.packed.depth();
        for (column, patch) in scratch.chunks_exact_mut(depth).enumerate() {
            for (index, slot) in patch.chunks_exact_mut(self.window[1] * channels).enumerate() {
                let y = (row * self.stride[0] + index * self.dilation[0]).wrapping_sub(self.before[0]);
                if y >= height {
                    slot.fill(0.0);
                    continue;
                }
                let line = &x[y * width * channels..][..width * channels];
                let first = (column * self.stride[1]).wrapping_sub(self.before[1]);
                if self.dilation[1] == 1 && first.checked_add(self.window[1]).is_some_and(|end| end <= width)
                {
                    slot.copy_from_slice(&line[first * channels..][..slot.len()]);
                    continue;
                }
                for (place, pixel) in slot.chunks_exact_mut(channels).enumerate() {
                    let x = first.wrapping_add(place * self.dilation[1]);
                    match x < width {
                        true => pixel.copy_from_slice(&line[x * channels..][..channels]),
                        false => pixel.fill(0.0),
                    }
                }
            }
        }
    }
}
