//! Convolution at chosen pixels of a padded image with interleaved channels: the one kernel that draws
//! maps, runs them backwards and trains them. Start at [`Stencil`]; [`mod@reference`] is the slow truth.
//!
//! A pixel is `stride` numbers in a row; a frame of zeros around an image stands for what lies outside.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod four_lanes;
pub mod reference;
pub mod tiled;
mod transform;

use crate::dense::Kernel;

/// Output channels that are summed together: two AVX2 registers.
pub const LANES: usize = 16;

/// The channels of a pixel as they are stored: whole lanes.
pub fn stride(channels: usize) -> usize {
    channels.next_multiple_of(LANES)
}

/// What follows the sums of a stencil.
#[derive(Debug, Clone, Copy)]
pub enum After<'a> {
    /// `x` where it is positive, `slope · x` elsewhere.
    Leaky(f32),
    /// The derivative of [`After::Leaky`]: the sum times one or `slope`, by the sign of the number that
    /// stands in the same place of these outputs of the forward pass.
    Slope(f32, &'a [f32]),
}

/// `y[b + o] = bias[o] + Σ_t Σ_c w[t][c][o] · x[a + tap_t + c]` for every place `(a, b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Stencil {
    taps: Vec<u32>,
    inputs: usize,
    /// Whole lanes.
    outputs: usize,
    /// `[panel][tap][input][LANES]`.
    weights: Vec<f32>,
    /// `[outputs]`.
    bias: Vec<f32>,
}

impl Stencil {
    /// Zero weights. `taps`: where a place reads, from its own number on. `outputs`: padded to whole lanes.
    pub fn new(taps: Vec<u32>, inputs: usize, outputs: usize) -> Self {
        let outputs = stride(outputs);
        let weights = vec![0.0; taps.len() * inputs * outputs];
        Self { taps, inputs, outputs, weights, bias: vec![0.0; outputs] }
    }

    /// Where places read.
    pub fn taps(&self) -> &[u32] {
        &self.taps
    }

    /// Input channels.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Output channels, whole lanes.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Weights `[panel][tap][input][LANES]`.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Bias `[outputs]`.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Bias, to be written.
    pub fn bias_mut(&mut self) -> &mut [f32] {
        &mut self.bias
    }

    /// Where the weight of a tap, an input and an output lies.
    pub fn place(&self, tap: usize, input: usize, output: usize) -> usize {
        let panel = output / LANES;
        ((panel * self.taps.len() + tap) * self.inputs + input) * LANES + output % LANES
    }

    /// Sets a weight.
    pub fn set(&mut self, tap: usize, input: usize, output: usize, weight: f32) {
        let place = self.place(tap, input, output);
        self.weights[place] = weight;
    }

    /// Sums at all places.
    ///
    /// # Panics
    /// When an image is too short for the places.
    pub fn apply(&self, kernel: Kernel, x: &[f32], places: &Places, y: &mut [f32], after: After<'_>) {
        let reach = self.taps.iter().copied().max().unwrap_or(0) as usize + self.inputs;
        assert!(places.input_reach + reach <= x.len() || places.pairs.is_empty(), "places lie in the input");
        assert!(
            places.output_reach + self.outputs <= y.len() || places.pairs.is_empty(),
            "places lie in the output"
        );
        if let After::Slope(_, forward) = after {
            assert!(forward.len() >= y.len(), "the forward pass has the same places");
        }
        #[cfg(target_arch = "x86_64")]
        if kernel.has_avx2() {
            // SAFETY: the instructions are there, and the assertions keep every place inside its image.
            return unsafe { avx2::apply(self, x, &places.pairs, y, after) };
        }
        match kernel.has_four_lanes() {
            // SAFETY: the assertions keep every place inside its image.
            true => unsafe { four_lanes::apply(self, x, &places.pairs, y, after) },
            false => reference::apply(self, x, &places.pairs, y, after),
        }
    }

    /// Adds `Σ_places x[a + tap_t + c] · d[b + o]` to the derivative by the weights, `[panel][tap][input]
    /// [LANES]` as in [`Stencil::weights`], and `Σ_places d[b + o]` to that by the bias.
    ///
    /// # Panics
    /// When an image or a derivative is too short.
    pub fn accumulate(
        &self,
        kernel: Kernel,
        x: &[f32],
        places: &Places,
        d: &[f32],
        by_weights: &mut [f32],
        by_bias: &mut [f32],
    ) {
        let reach = self.taps.iter().copied().max().unwrap_or(0) as usize + self.inputs;
        assert!(places.input_reach + reach <= x.len() || places.pairs.is_empty(), "places lie in the input");
        assert!(
            places.output_reach + self.outputs <= d.len() || places.pairs.is_empty(),
            "places lie in the output"
        );
        assert!(by_weights.len() == self.weights.len() && by_bias.len() == self.bias.len(), "same shapes");
        #[cfg(target_arch = "x86_64")]
        if kernel.has_avx2() {
            // SAFETY: as in `apply`.
            return unsafe { avx2::accumulate(self, x, &places.pairs, d, by_weights, by_bias) };
        }
        let _ = kernel;
        reference::accumulate(self, x, &places.pairs, d, by_weights, by_bias);
    }
}

/// Pixels at which a stencil is summed: where each reads and where it writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Places {
    pairs: Vec<[u32; 2]>,
    input_reach: usize,
    output_reach: usize,
}

impl Places {
    /// Pairs of numbers into the input and the output image.
    pub fn new(mut pairs: Vec<[u32; 2]>) -> Self {
        // Twins keep them for good.
        pairs.shrink_to_fit();
        let most = |side: usize| pairs.iter().map(|pair| pair[side] as usize).max().unwrap_or(0);
        Self { input_reach: most(0), output_reach: most(1), pairs }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The pairs.
    #[cfg(test)]
    pub fn pairs(&self) -> &[[u32; 2]] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    /// Lane edges in places, channels and panels.
    #[test]
    fn the_fast_kernel_matches_the_reference() {
        let mut random = Random::new(1);
        let many = if cfg!(miri) { 9 } else { 100 };
        for (places, inputs, outputs, taps) in
            [(0, 8, 16, 4), (1, 1, 3, 9), (5, 16, 16, 9), (6, 8, 16, 4), (7, 16, 16, 16), (many, 16, 32, 9)]
        {
            let taps: Vec<u32> = (0..taps).map(|_| random.below(50) as u32).collect();
            let mut stencil = Stencil::new(taps, inputs, outputs);
            stencil.weights.iter_mut().for_each(|w| *w = random.uniform(-1.0, 1.0));
            stencil.bias.iter_mut().for_each(|b| *b = random.uniform(-1.0, 1.0));
            let x: Vec<f32> = (0..400).map(|_| random.uniform(-1.0, 1.0)).collect();
            let (count, out) = (places as usize, stencil.outputs());
            let pairs = (0..count).map(|p| [random.below(300) as u32, (p * out) as u32]).collect();
            let places = Places::new(pairs);
            let forward: Vec<f32> = (0..count * out).map(|_| random.uniform(-1.0, 1.0)).collect();
            for after in [After::Leaky(0.2), After::Slope(0.2, &forward)] {
                let mut a = vec![9.0; count * out];
                stencil.apply(Kernel::REFERENCE, &x, &places, &mut a, after);
                for fast in Kernel::all() {
                    let mut b = vec![9.0; count * out];
                    stencil.apply(fast, &x, &places, &mut b, after);
                    assert!(
                        a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4),
                        "{count} {inputs} {outputs}"
                    );
                }
            }
            let start: Vec<f32> = (0..stencil.weights.len()).map(|_| random.uniform(-1.0, 1.0)).collect();
            let mut results = [Kernel::REFERENCE, Kernel::detect()].map(|kernel| {
                let (mut by_weights, mut by_bias) = (start.clone(), vec![1.0; out]);
                stencil.accumulate(kernel, &x, &places, &forward, &mut by_weights, &mut by_bias);
                by_weights.extend(by_bias);
                by_weights
            });
            let [a, b] = &mut results;
            assert!(a.iter().zip(b).all(|(a, b)| (*a - *b).abs() < 1e-4), "{count} {inputs} {outputs}");
        }
    }
}
