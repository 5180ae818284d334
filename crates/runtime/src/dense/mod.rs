//! Dense layers at run time: weights packed for the machine, one pose (matrix × vector) or many at once
//! (matrix × matrix). Start at [`Layer`]. [`mod@reference`] is the slow truth that every fast kernel must
//! match; [`Kernel::detect`] chooses at run time.
//!
//! Packing: rows in panels of [`PANEL`] with zeros beneath the last; inside a panel column after
//! column, so that a kernel reads memory straight through and keeps a panel's sums in registers.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod four_lanes;
pub mod reference;
pub mod tanh;

use half::f16;
use thiserror::Error;

/// Rows per panel: two AVX2 registers of sums.
pub const PANEL: usize = 16;

/// Panels that kernels of crowds unpack together at most.
const UNPACKED: usize = 2;

/// What is wrong with the parts of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayerError {
    /// An array of the wrong length.
    #[error("{what}: {got} numbers, {want} expected")]
    Count {
        /// Weights or bias.
        what: &'static str,
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
    /// A number that is not finite (or becomes so in 16 bits).
    #[error("{what}: number {index} is not finite")]
    NonFinite {
        /// Weights or bias.
        what: &'static str,
        /// Where.
        index: usize,
    },
    /// A number that its form of storage does not reach.
    #[error("{what}: number {index} is out of range")]
    Range {
        /// Weights in fixed point.
        what: &'static str,
        /// Where.
        index: usize,
    },
}

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Two bytes per weight: half the memory traffic, which is what bounds a single pose.
    #[default]
    Half,
    /// Four bytes per weight.
    Single,
}

/// What follows the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    None,
    /// [`tanh::tanh`].
    Tanh,
}

/// Packed weights.
#[derive(Debug, Clone, PartialEq)]
pub enum Packed {
    /// Bits of f16.
    Half(Vec<u16>),
    /// f32.
    Single(Vec<f32>),
    /// f32 that came from f16: see `WIDENS`.
    Widened(Vec<f32>),
}

/// Whether weights of 16 bits take 32 in memory. WebAssembly has no instruction that widens an f16, and the four that do it
/// together cost more than the bytes that they save.
pub(crate) const WIDENS: bool = cfg!(target_arch = "wasm32");

impl Packed {
    /// Keeps numbers as f16, or what f16 would leave of them.
    pub fn half(numbers: Vec<f32>) -> Self {
        let bits = numbers.iter().map(|number| f16::from_f32(*number));
        match WIDENS {
            true => Self::Widened(bits.map(f16::to_f32).collect()),
            false => Self::Half(bits.map(f16::to_bits).collect()),
        }
    }

    /// Whether they have the 16 bits of f16.
    pub fn is_half(&self) -> bool {
        !matches!(self, Self::Single(_))
    }

    /// One of the numbers.
    pub fn number(&self, place: usize) -> f32 {
        match self {
            Self::Half(bits) => f16::from_bits(bits[place]).to_f32(),
            Self::Single(numbers) | Self::Widened(numbers) => numbers[place],
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        match self {
            Self::Half(bits) => bits.len(),
            Self::Single(numbers) | Self::Widened(numbers) => numbers.len(),
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Half(bits) => bits.len() * 2,
            Self::Single(numbers) | Self::Widened(numbers) => numbers.len() * 4,
        }
    }
}

/// `y = a(W x + b)` with `W` `[rows × columns]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    rows: usize,
    columns: usize,
    /// `[panels · columns · PANEL]`.
    weights: Packed,
    /// Padded to whole panels.
    bias: Vec<f32>,
    activation: Activation,
}

impl Layer {
    /// Packs row-major weights `[rows × columns]` and a bias `[rows]`.
    pub fn pack(
        weights: &[f32],
        bias: &[f32],
        columns: usize,
        activation: Activation,
        precision: Precision,
    ) -> Result<Self, LayerError> {
        let rows = bias.len();
        if weights.len() != rows * columns {
            return Err(LayerError::Count { what: "weights", got: weights.len(), want: rows * columns });
        }
        for (what, numbers) in [("weights", weights), ("bias", bias)] {
            if let Some(index) = numbers.iter().position(|n| !n.is_finite()) {
                return Err(LayerError::NonFinite { what, index });
            }
        }
        let panels = rows.div_ceil(PANEL);
        let mut packed = vec![0.0f32; panels * columns * PANEL];
        for row in 0..rows {
            for column in 0..columns {
                let place = (row / PANEL * columns + column) * PANEL + row % PANEL;
                packed[place] = weights[row * columns + column];
            }
        }
        let weights = match precision {
            Precision::Single => Packed::Single(packed),
            Precision::Half => {
                if let Some(index) = weights.iter().position(|w| !f16::from_f32(*w).is_finite()) {
                    return Err(LayerError::NonFinite { what: "weights in 16 bits", index });
                }
                Packed::half(packed)
            }
        };
        let mut padded = bias.to_vec();
        padded.resize(panels * PANEL, 0.0);
        Ok(Self { rows, columns, weights, bias: padded, activation })
    }

    /// Row-major weights `[rows × columns]` and the bias, as they were packed but for rounding to the precision.
    pub fn unpack(&self) -> (Vec<f32>, Vec<f32>) {
        let mut weights = Vec::with_capacity(self.rows * self.columns);
        for row in 0..self.rows {
            for column in 0..self.columns {
                let place = (row / PANEL * self.columns + column) * PANEL + row % PANEL;
                weights.push(self.weights.number(place));
            }
        }
        (weights, self.bias[..self.rows].to_vec())
    }

    /// Number of outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of outputs with padding: the length of an output buffer.
    pub fn padded_rows(&self) -> usize {
        self.bias.len()
    }

    /// Number of inputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// What follows the sum.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Weights as packed.
    pub fn weights(&self) -> &Packed {
        &self.weights
    }

    /// Bias, padded with zeros.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Numbers of working memory that [`Self::apply_batch`] wants.
    pub fn working_size(&self) -> usize {
        UNPACKED * self.columns * PANEL
    }

    /// Bytes of weights and bias.
    pub fn bytes(&self) -> usize {
        self.weights.bytes() + self.bias.len() * 4
    }

    /// One pose. `x`: `[columns]` or longer. `y`: `[padded_rows]` or longer; the padding is written too.
    ///
    /// # Panics
    /// When a buffer is too short: callers size them once from the layer.
    pub fn apply(&self, kernel: Kernel, x: &[f32], y: &mut [f32]) {
        let (x, y) = (&x[..self.columns], &mut y[..self.bias.len()]);
        match kernel.0 {
            Choice::Reference => reference::apply(self, x, y),
            // SAFETY: the kernel was chosen because the machine has the instructions, and the slices
            // above have the lengths that the packing was made for.
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2 | Choice::Avx512 => unsafe { avx2::apply(self, x, y) },
            Choice::FourLanes => four_lanes::apply(self, x, y),
        }
    }

    /// Many poses. `x`: pose `i` at `i · x_stride`. `y`: pose `i` at `i · y_stride`, padding written too.
    /// `panel`: working memory of [`Self::working_size`], for weights unpacked once per panel.
    ///
    /// # Panics
    /// When a buffer is too short.
    pub fn apply_batch(
        &self,
        kernel: Kernel,
        poses: usize,
        x: &[f32],
        x_stride: usize,
        y: &mut [f32],
        y_stride: usize,
        panel: &mut [f32],
    ) {
        if poses == 0 {
            return;
        }
        assert!(x_stride >= self.columns && y_stride >= self.bias.len(), "strides hold a pose");
        let x = &x[..(poses - 1) * x_stride + self.columns];
        let y = &mut y[..(poses - 1) * y_stride + self.bias.len()];
        assert!(panel.len() >= self.working_size(), "working memory holds as many panels as are unpacked");
        match kernel.0 {
            // SAFETY: as in `apply`.
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2 => unsafe { avx2::apply_batch(self, poses, x, x_stride, y, y_stride, panel) },
            // SAFETY: as in `apply`.
            #[cfg(target_arch = "x86_64")]
            Choice::Avx512 => unsafe { avx512::apply_batch(self, poses, x, x_stride, y, y_stride, panel) },
            // SAFETY: lengths were asserted.
            Choice::FourLanes => unsafe {
                four_lanes::apply_batch(self, poses, x, x_stride, y, y_stride, panel)
            },
            Choice::Reference => {
                for pose in 0..poses {
                    self.apply(kernel, &x[pose * x_stride..], &mut y[pose * y_stride..]);
                }
            }
        }
    }
}

/// Which kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Choice);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Reference,
    FourLanes,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The slow truth.
    pub const REFERENCE: Self = Self(Choice::Reference);

    /// The fastest that this machine has.
    pub fn detect() -> Self {
        Self::all().last().unwrap_or(Self::REFERENCE)
    }

    /// All that this machine has, each faster than the one before: tests run every one of them.
    pub fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let fast = {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma") && has!("f16c");
            [avx2.then_some(Choice::Avx2), (avx2 && has!("avx512f")).then_some(Choice::Avx512)]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let fast: [Option<Choice>; 0] = [];
        let all = [Choice::Reference, Choice::FourLanes].into_iter();
        all.chain(fast.into_iter().flatten()).map(Self)
    }

    /// Whether parts that have a kernel of their own for four lanes use it.
    pub(crate) fn has_four_lanes(&self) -> bool {
        self.0 == Choice::FourLanes
    }

    /// Whether it is the kernel of AVX2, FMA and F16C, or of more: other parts then use these instructions too.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx2(&self) -> bool {
        matches!(self.0, Choice::Avx2 | Choice::Avx512)
    }

    /// Whether crowds go sixteen lanes at a time.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx512(&self) -> bool {
        self.0 == Choice::Avx512
    }

    /// [`tanh::tanh`] of every number, in place.
    pub fn tanh(&self, numbers: &mut [f32]) {
        match self.0 {
            // SAFETY: the kernel was chosen because the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2 | Choice::Avx512 => unsafe { avx2::tanh_all(numbers) },
            Choice::FourLanes => four_lanes::tanh_all(numbers),
            Choice::Reference => numbers.iter_mut().for_each(|number| *number = tanh::tanh(*number)),
        }
    }

    /// For reports.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Choice::Reference => "reference",
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2 => "AVX2 + FMA + F16C",
            #[cfg(target_arch = "x86_64")]
            Choice::Avx512 => "AVX2 + FMA + F16C, AVX-512 for crowds",
            Choice::FourLanes => crate::four_lanes::NAME,
        }
    }
}

/// Fused multiply-adds that one core does at most, GFLOP/s (two a multiply-add), measured: independent
/// sums in registers, nothing from memory, best of several runs. `None` where there is no such kernel.
pub fn peak_gflops() -> Option<f64> {
    match Kernel::detect().0 {
        // SAFETY: the kernel was chosen because the machine has the instructions.
        #[cfg(target_arch = "x86_64")]
        Choice::Avx2 => Some(unsafe { avx2::peak_gflops() }),
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Choice::Avx512 => Some(unsafe { avx2::peak_gflops().max(avx512::peak_gflops()) }),
        _ => None,
    }
}

/// Sums that do not wait for each other.
#[cfg(target_arch = "x86_64")]
const CHAINS: usize = 12;

/// GFLOP/s of the best of ten runs, each of so many rounds of [`CHAINS`] multiply-adds in `lanes` lanes.
#[cfg(target_arch = "x86_64")]
fn best_gflops(lanes: usize, run: impl Fn(usize)) -> f64 {
    const ROUNDS: usize = 200_000;
    let one = |_| {
        let start = std::time::Instant::now();
        run(ROUNDS);
        (ROUNDS * CHAINS * lanes * 2) as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    (0..10).map(one).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
