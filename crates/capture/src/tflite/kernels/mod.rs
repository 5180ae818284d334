//! What operators compute, on arrays whose sizes the plan has checked. Images are rows of pixels of channels, as the format
//! has them. Each kernel is written once over fixed-size arrays and built twice: for any processor, and with AVX2 and fused
//! multiply-adds, which the processor is asked for once.

mod convolution;
mod depthwise;
mod elementwise;
mod gemm;
mod layout;

pub(super) use convolution::Convolution;
pub(super) use depthwise::Depthwise;
pub(super) use elementwise::{Elementwise, unary};
pub(super) use gemm::Lanes;
pub(super) use layout::{MaxPool, Pad, Reduce, copy_into, gather};

/// What follows an operator, per channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Activation {
    None,
    Relu,
    Relu6,
    /// `max(x, 0) + slope · min(x, 0)`, a slope per channel.
    Prelu(Vec<f32>),
}

impl Activation {
    /// On pixels of `channels` numbers.
    #[inline(always)]
    pub fn apply(&self, values: &mut [f32], channels: usize) {
        match self {
            Self::None => {}
            Self::Relu => {
                for x in values {
                    *x = x.max(0.0);
                }
            }
            Self::Relu6 => {
                for x in values {
                    *x = x.clamp(0.0, 6.0);
                }
            }
            Self::Prelu(slopes) => {
                for pixel in values.chunks_exact_mut(channels) {
                    for (x, slope) in pixel.iter_mut().zip(slopes) {
                        *x = x.max(0.0) + slope * x.min(0.0);
                    }
                }
            }
        }
    }
}
