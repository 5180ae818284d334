//! Depthwise convolutions: every channel has a window of its own. Eight channels of a pixel at a time.

use super::Activation;
use super::gemm::Lanes;

const BLOCK: usize = 8;

/// A depthwise convolution with what follows it.
#[derive(Debug, Clone)]
pub(in super::super) struct Depthwise {
    pub input: [usize; 3],
    pub output: [usize; 2],
    pub window: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    pub before: [usize; 2],
    /// `[window rows × window columns × channels]`.
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
    pub activation: Activation,
}

impl Depthwise {
    pub fn run(&self, lanes: Lanes, x: &[f32], out: &mut [f32]) {
        match lanes {
            Lanes::Portable => self.walk::<false>(x, out),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Lanes::detect` gives this value only where the processor has both features.
            Lanes::Avx2 => unsafe { self.walk_avx2(x, out) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn walk_avx2(&self, x: &[f32], out: &mut [f32]) {
        self.walk::<true>(x, out);
    }

    #[inline(always)]
    fn walk<const FUSED: bool>(&self, x: &[f32], out: &mut [f32]) {
        let small = self.window == [3, 3] && self.stride == [1, 1] && self.dilation == [1, 1];
        let padded = self.before == [1, 1] && self.output == [self.input[0], self.input[1]];
        match small && padded && self.input[2] >= BLOCK {
            true => self.walk_small::<FUSED>(x, out),
            false => self.walk_any::<FUSED>(x, out),
        }
    }

    /// Windows of 3 × 3 with a border of zeros: the weights of a block of channels stay in registers along a row. The last block
    /// overlaps the one before it where the channels are no multiple: both write the same.
    #[inline(always)]
    fn walk_small<const FUSED: bool>(&self, x: &[f32], out: &mut [f32]) {
        let [height, width, channels] = self.input;
        let line = width * channels;
        for row in 0..height {
            let first = row.saturating_sub(1);
            let last = (row + 1).min(height - 1);
            let result = &mut out[row * line..][..line];
            let mut start = 0;
            while start < channels {
                let block = start.min(channels - BLOCK);
                start += BLOCK;
                let mut taps = [[0.0f32; BLOCK]; 9];
                for tap in 0..9 {
                    taps[tap] = *at(&self.weights, tap * channels + block);
                }
                let bias = at(&self.bias, block);
                for column in 0..width {
                    let mut sums = *bias;
                    let place = column * channels + block;
                    for y in first..=last {
                        let from = &x[y * line..][..line];
                        let tap = 3 * (y + 1 - row);
                        if column > 0 {
                            add::<FUSED>(&mut sums, at(from, place - channels), &taps[tap]);
                        }
                        add::<FUSED>(&mut sums, at(from, place), &taps[tap + 1]);
                        if column + 1 < width {
                            add::<FUSED>(&mut sums, at(from, place + channels), &taps[tap + 2]);
                        }
                    }
                    result[place..place + BLOCK].copy_from_slice(&sums);
                }
            }
            self.activation.apply(result, channels);
        }
    }

    #[inline(always)]
    fn walk_any<const FUSED: bool>(&self, x: &[f32], out: &mut [f32]) {
        let [height, width, channels] = self.input;
        for (row, line) in out.chunks_exact_mut(self.output[1] * channels).enumerate() {
            for (column, pixel) in line.chunks_exact_mut(channels).enumerate() {
                let top = (row * self.stride[0]).wrapping_sub(self.before[0]);
                let left = (column * self.stride[1]).wrapping_sub(self.before[1]);
                let mut start = 0;
                while start < channels && channels >= BLOCK {
                    let channel = start.min(channels - BLOCK);
                    start += BLOCK;
                    let mut sums = *at(&self.bias, channel);
                    for i in 0..self.window[0] {
                        let y = top.wrapping_add(i * self.dilation[0]);
                        if y >= height {
                            continue;
                        }
                        for j in 0..self.window[1] {
                            let column = left.wrapping_add(j * self.dilation[1]);
                            if column < width {
                                let from = at(x, (y * width + column) * channels + channel);
                                let weights =
                                    at(&self.weights, (i * self.window[1] + j) * channels + channel);
                                add::<FUSED>(&mut sums, from, weights);
                            }
                        }
                    }
                    pixel[channel..channel + BLOCK].copy_from_slice(&sums);
                }
                for channel in start..channels {
                    let mut sum = self.bias[channel];
                    for i in 0..self.window[0] {
                        let y = top.wrapping_add(i * self.dilation[0]);
                        for j in 0..self.window[1] {
                            let column = left.wrapping_add(j * self.dilation[1]);
                            if y < height && column < width {
                                sum += x[(y * width + column) * channels + channel]
                                    * self.weights[(i * self.window[1] + j) * channels + channel];
                            }
                        }
                    }
                    pixel[channel] = sum;
                }
                self.activation.apply(pixel, channels);
            }
        }
    }
}

#[inline(always)]
fn add<const FUSED: bool>(sums: &mut [f32; BLOCK], from: &[f32; BLOCK], weights: &[f32; BLOCK]) {
    for lane in 0..BLOCK {
        sums[lane] = match FUSED {
            true => from[lane].mul_add(weights[lane], sums[lane]),
            false => sums[lane] + from[lane] * weights[lane],
        };
    }
}

/// A block of numbers from there on.
#[inline(always)]
fn at(numbers: &[f32], place: usize) -> &[f32; BLOCK] {
    numbers[place..].first_chunk().expect("a block of channels lies inside a pixel")
}
