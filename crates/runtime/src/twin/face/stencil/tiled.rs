//! Convolutions to sixteen channels, tile by tile of 2×2 pixels, with fewer products than taps (see
//! `transform.rs`). [`super::Stencil`] is the slow truth, and what runs where pixels are few and far between.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod four_lanes;

use super::LANES;
use super::transform::{Doubled, Transform, Winograd};
use crate::dense::Kernel;

/// A tile takes as long as this many pixels by themselves.
const WORTH: f64 = 2.5;

/// Points of the transform that has most.
const MOST_POINTS: usize = Winograd::POINTS;

/// What is convolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A 3×3 convolution.
    Plain,
    /// The same after nearest ×2 upsampling.
    Doubled,
}

/// Tiles of 2×2 pixels and the weights of their convolution.
#[derive(Debug, Clone, PartialEq)]
pub struct TiledConvolution {
    kind: Kind,
    /// Where the window of a tile begins in the input, and its first pixel in the output.
    tiles: Vec<[u32; 2]>,
    /// Numbers from one row to the next, of the input and of the output.
    rows: [usize; 2],
    inputs: usize,
    /// `[point][input][output]`.
    weights: Vec<f32>,
    bias: [f32; LANES],
    /// The longest that images must be.
    reach: [usize; 2],
}

impl TiledConvolution {
    /// For the pixels of a square map that are `wanted`, from at most sixteen channels to sixteen; both images
    /// have a stride of sixteen and a frame of one pixel. `None` where too few pixels lie together, or the side
    /// is odd. Weights are zero.
    pub fn new(kind: Kind, inputs: usize, side: usize, wanted: &[bool]) -> Option<Self> {
        if side % 2 == 1 || inputs > LANES {
            return None;
        }
        // A window of 4×4 begins at the frame's pixel before a tile's first; one of 3×3 likewise, half as far.
        let (small, window, points) = match kind {
            Kind::Plain => (side, 4, Winograd::POINTS),
            Kind::Doubled => (side / 2, 3, Doubled::POINTS),
        };
        let rows = [small, side].map(|side| (side + 2) * LANES);
        let mut tiles = Vec::new();
        for (top, left) in (0..side).step_by(2).flat_map(|top| (0..side).step_by(2).map(move |l| (top, l))) {
            let first = top * side + left;
            if [first, first + 1, first + side, first + side + 1].iter().any(|pixel| wanted[*pixel]) {
                let from = top * small / side * rows[0] + left * small / side * LANES;
                tiles.push([from as u32, ((top + 1) * rows[1] + (left + 1) * LANES) as u32]);
            }
        }
        let pixels = wanted.iter().filter(|wanted| **wanted).count();
        let most = |which: usize| tiles.iter().map(|tile| tile[which] as usize).max().unwrap_or(0);
        let reach = [most(0) + (window - 1) * rows[0] + window * LANES, most(1) + rows[1] + 2 * LANES];
        let worth = tiles.len() as f64 * WORTH <= pixels as f64;
        let weights = vec![0.0; points * inputs * LANES];
        worth.then_some(Self { kind, tiles, rows, inputs, weights, bias: [0.0; LANES], reach })
    }

    /// Takes one 3×3 kernel over.
    pub fn set(&mut self, output: usize, input: usize, kernel: &[f32; 9]) {
        let inputs = self.inputs;
        let mut put = |(point, number): (usize, f32)| {
            self.weights[(point * inputs + input) * LANES + output] = number;
        };
        match self.kind {
            Kind::Plain => Winograd::kernel(kernel).enumerate().for_each(&mut put),
            Kind::Doubled => Doubled::kernel(kernel).enumerate().for_each(&mut put),
        }
    }

    /// Takes the bias over.
    pub fn set_bias(&mut self, bias: &[f32]) {
        self.bias[..bias.len()].copy_from_slice(bias);
    }

    /// Convolves all tiles; what is negative is multiplied by `slope`.
    ///
    /// # Panics
    /// When an image is too short, or the kernel is the reference.
    pub fn apply(&self, kernel: Kernel, x: &[f32], y: &mut [f32], slope: f32) {
        if self.tiles.is_empty() {
            return;
        }
        assert!(x.len() >= self.reach[0] && y.len() >= self.reach[1], "tiles lie in the images");
        assert!(kernel != Kernel::REFERENCE, "the reference is a stencil");
        let (x, y) = (x.as_ptr(), y.as_mut_ptr());
        // SAFETY: the assertion keeps every window and every pixel inside its image, and the kernel was chosen because the
        // machine has the instructions.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if kernel.has_avx2() {
                return match self.kind {
                    Kind::Plain => avx2::apply::<Winograd>(self, x, y, slope),
                    Kind::Doubled => avx2::apply::<Doubled>(self, x, y, slope),
                };
            }
            match self.kind {
                Kind::Plain => four_lanes::apply::<Winograd>(self, x, y, slope),
                Kind::Doubled => four_lanes::apply::<Doubled>(self, x, y, slope),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{After, Places, Stencil};
    use super::*;
    use understudy_core::Random;

    fn at(side: usize, row: usize, column: usize) -> usize {
        (row * (side + 2) + column) * LANES
    }

    #[test]
    fn few_products_give_what_many_give() {
        let mut random = Random::new(7);
        for (side, share, inputs) in
            [(2, 1.0, 16), (6, 1.0, 8), (8, 0.9, 16), (8, 1.0, 3), (16, 0.85, 16), (32, 1.0, 16)]
        {
            for kind in [Kind::Plain, Kind::Doubled] {
                let wanted: Vec<bool> = (0..side * side).map(|_| random.unit() < share).collect();
                let mut tiled =
                    TiledConvolution::new(kind, inputs, side, &wanted).expect("most pixels are wanted");
                let taps = (0..9).map(|tap| at(side, tap / 3, tap % 3) as u32).collect();
                let mut stencil = Stencil::new(taps, inputs, LANES);
                let bias: Vec<f32> = (0..LANES).map(|_| random.uniform(-1.0, 1.0)).collect();
                stencil.bias_mut().copy_from_slice(&bias);
                tiled.set_bias(&bias);
                for (output, input) in (0..LANES).flat_map(|o| (0..inputs).map(move |i| (o, i))) {
                    let kernel = [0; 9].map(|_| random.uniform(-1.0, 1.0));
                    (0..9).for_each(|tap| stencil.set(tap, input, output, kernel[tap]));
                    tiled.set(output, input, &kernel);
                }
                let pair = |p: usize| {
                    [at(side, p / side, p % side), at(side, p / side + 1, p % side + 1)].map(|n| n as u32)
                };
                let places = Places::new((0..side * side).filter(|p| wanted[*p]).map(pair).collect());
                // What the convolution sees, and what it is given: the same, or half as large.
                let small = if kind == Kind::Doubled { side / 2 } else { side };
                let mut given = vec![0.0; (small + 2) * (small + 2) * LANES];
                let mut seen = vec![0.0; (side + 2) * (side + 2) * LANES];
                for pixel in 0..small * small {
                    let start = at(small, pixel / small + 1, pixel % small + 1);
                    given[start..start + inputs].iter_mut().for_each(|x| *x = random.uniform(-1.0, 1.0));
                }
                for pixel in 0..side * side {
                    let (row, column) = (pixel / side * small / side, pixel % side * small / side);
                    let from = at(small, row + 1, column + 1);
                    let to = at(side, pixel / side + 1, pixel % side + 1);
                    seen[to..to + LANES].copy_from_slice(&given[from..from + LANES]);
                }
                let mut truth = vec![0.0; seen.len()];
                stencil.apply(Kernel::REFERENCE, &seen, &places, &mut truth, After::Leaky(0.2));
                for fast in Kernel::all().filter(|fast| *fast != Kernel::REFERENCE) {
                    let mut got = vec![0.0; seen.len()];
                    tiled.apply(fast, &given, &mut got, 0.2);
                    for [_, pixel] in places.pairs() {
                        for lane in *pixel as usize..*pixel as usize + LANES {
                            let (truth, got) = (truth[lane], got[lane]);
                            assert!((truth - got).abs() < 1e-4, "{kind:?} {side}: {truth} {got}");
                        }
                    }
                    // The frame of zeros stays.
                    assert!(got[..(side + 2) * LANES].iter().all(|number| *number == 0.0));
                }
            }
        }
    }

    #[test]
    fn pixels_far_apart_are_left_to_the_stencil() {
        let sparse: Vec<bool> = (0..64).map(|pixel| pixel % 4 == 0).collect();
        for kind in [Kind::Plain, Kind::Doubled] {
            let new = |side: usize, wanted: &[bool]| TiledConvolution::new(kind, LANES, side, wanted);
            assert_eq!(new(8, &sparse), None);
            assert_eq!(new(7, &[true; 49]), None);
            assert!(new(8, &[false; 64]).is_some_and(|empty| empty.tiles.is_empty()));
        }
        assert_eq!(TiledConvolution::new(Kind::Plain, LANES + 1, 8, &[true; 64]), None);
    }
}
