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
        let [height, width, channels] = self.input;
        for (row, line) in out.chunks_exact_mut(self.output[1] * channels).enumerate() {
            for (column, pixel) in line.chunks_exact_mut(channels).enumerate() {
                let top = (row * self.stride[0]).wrapping_sub(self.before[0]);
                let left = (column * self.stride[1]).wrapping_sub(self.before[1]);
                let mut channel = 0;
                while channel + BLOCK <= channels {
                    let mut sums: [f32; BLOCK] = self.bias[channel..][..BLOCK].try_into().expect("a block");
                    for i in 0..self.window[0] {
                        let y = top.wrapping_add(i * self.dilation[0]);
                        if y >= height {
                            continue;
                        }
                        for j in 0..self.window[1] {
                            let at = left.wrapping_add(j * self.dilation[1]);
                            if at >= width {
                                continue;
                            }
                            let from: &[f32; BLOCK] =
                                x[(y * width + at) * channels + channel..].first_chunk().expect("a block");
                            let weights: &[f32; BLOCK] = self.weights
                                [(i * self.window[1] + j) * channels + channel..]
                                .first_chunk()
                                .expect("a block");
                            for lane in 0..BLOCK {
                                sums[lane] = match FUSED {
                                    true => from[lane].mul_add(weights[lane], sums[lane]),
                                    false => sums[lane] + from[lane] * weights[lane],
                                };
                            }
                        }
                    }
                    pixel[channel..channel + BLOCK].copy_from_slice(&sums);
                    channel += BLOCK;
                }
                for channel in channel..channels {
                    let mut sum = self.bias[channel];
                    for i in 0..self.window[0] {
                        let y = top.wrapping_add(i * self.dilation[0]);
                        for j in 0..self.window[1] {
                            let at = left.wrapping_add(j * self.dilation[1]);
                            if y < height && at < width {
                                sum += x[(y * width + at) * channels + channel]
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
