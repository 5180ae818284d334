//! A 3×3 convolution of sixteen channels to sixteen, four pixels at a time with 16 products a channel pair
//! instead of 36 (Winograd's F(2×2, 3×3); Lavin and Gray 2016): `Y = Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A`. For x86-64 with
//! AVX2 and FMA. [`super::Stencil`] is the slow truth, and what runs where pixels are few and far between.

use super::LANES;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Numbers a transformed window: 4×4.
const POINTS: usize = 16;
/// Windows that share each pair of weight registers: 2 × 6 sums fill twelve of the sixteen registers.
const TILE: usize = 6;
/// A tile takes as long as this many pixels by themselves.
const WORTH: f64 = 2.5;

/// Tiles of 2×2 pixels and the weights that draw them.
#[derive(Debug, Clone, PartialEq)]
pub struct Winograd {
    /// Where the 4×4 window of a tile begins in the input, and its first pixel in the output.
    tiles: Vec<[u32; 2]>,
    /// Numbers from one row of an image to the next.
    row: usize,
    /// `[point][input][output]`.
    weights: Vec<f32>,
    bias: [f32; LANES],
    /// The longest that images must be.
    reach: [usize; 2],
}

/// Sixteen channels.
type Pixel = [__m256; 2];

impl Winograd {
    /// For the pixels of a square image that are `wanted`; both images have sixteen channels and a frame of one
    /// pixel. `None` where too few of them lie together, or the side is odd. Weights are zero.
    pub fn new(side: usize, wanted: &[bool]) -> Option<Self> {
        if side % 2 == 1 {
            return None;
        }
        let row = (side + 2) * LANES;
        let mut tiles = Vec::new();
        for (top, left) in (0..side).step_by(2).flat_map(|top| (0..side).step_by(2).map(move |l| (top, l))) {
            let first = top * side + left;
            if [first, first + 1, first + side, first + side + 1].iter().any(|pixel| wanted[*pixel]) {
                let corner = top * row + left * LANES;
                tiles.push([corner as u32, (corner + row + LANES) as u32]);
            }
        }
        let pixels = wanted.iter().filter(|wanted| **wanted).count();
        let most = |which: usize| tiles.iter().map(|tile| tile[which] as usize).max().unwrap_or(0);
        let reach = [most(0) + 3 * row + 4 * LANES, most(1) + row + 2 * LANES];
        let worth = tiles.len() as f64 * WORTH <= pixels as f64;
        let weights = vec![0.0; POINTS * LANES * LANES];
        worth.then_some(Self { tiles, row, weights, bias: [0.0; LANES], reach })
    }

    /// Takes one 3×3 kernel over: `G g Gᵀ`.
    pub fn set(&mut self, output: usize, input: usize, kernel: &[f32; 9]) {
        let four = |[a, b, c]: [f32; 3]| [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c];
        let columns = [0, 1, 2].map(|column| four([0, 3, 6].map(|row| kernel[row + column])));
        for row in 0..4 {
            for (column, number) in four(columns.map(|numbers| numbers[row])).into_iter().enumerate() {
                self.weights[((row * 4 + column) * LANES + input) * LANES + output] = number;
            }
        }
    }

    /// Takes the bias over.
    pub fn set_bias(&mut self, bias: &[f32]) {
        self.bias[..bias.len()].copy_from_slice(bias);
    }

    /// Draws all tiles; what is negative is multiplied by `slope`.
    ///
    /// # Panics
    /// When an image is too short.
    ///
    /// # Safety
    /// The machine has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn apply(&self, x: &[f32], y: &mut [f32], slope: f32) {
        if self.tiles.is_empty() {
            return;
        }
        assert!(x.len() >= self.reach[0] && y.len() >= self.reach[1], "tiles lie in the images");
        for tiles in self.tiles.chunks(TILE) {
            // SAFETY: the assertion keeps every window and every pixel inside its image.
            unsafe {
                let (x, y) = (x.as_ptr(), y.as_mut_ptr());
                match tiles.len() {
                    6 => self.some::<6>(x, tiles, y, slope),
                    5 => self.some::<5>(x, tiles, y, slope),
                    4 => self.some::<4>(x, tiles, y, slope),
                    3 => self.some::<3>(x, tiles, y, slope),
                    2 => self.some::<2>(x, tiles, y, slope),
                    _ => self.some::<1>(x, tiles, y, slope),
                }
            }
        }
    }

    /// `N` tiles.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn some<const N: usize>(&self, x: *const f32, tiles: &[[u32; 2]], y: *mut f32, slope: f32) {
        let mut windows: MaybeUninit<[[Pixel; N]; POINTS]> = MaybeUninit::uninit();
        let mut products: MaybeUninit<[[Pixel; N]; POINTS]> = MaybeUninit::uninit();
        let (window, product) =
            (windows.as_mut_ptr().cast::<[Pixel; N]>(), products.as_mut_ptr().cast::<[Pixel; N]>());
        // SAFETY: there are `N` tiles inside the images; every point of every window is written before it is
        // read, and so is every product.
        unsafe {
            for (place, tile) in tiles.iter().enumerate().take(N) {
                for half in 0..2 {
                    self.look(x.add(tile[0] as usize + half * 8), |point, number| {
                        (*window.add(point))[place][half] = number;
                    });
                }
            }
            for point in 0..POINTS {
                let weights = self.weights.as_ptr().add(point * LANES * LANES);
                let values = window.add(point).cast::<f32>();
                let mut sums = [[_mm256_setzero_ps(); 2]; N];
                for input in 0..LANES {
                    let low = _mm256_loadu_ps(weights.add(input * LANES));
                    let high = _mm256_loadu_ps(weights.add(input * LANES + 8));
                    for (place, sum) in sums.iter_mut().enumerate() {
                        let value = _mm256_broadcast_ss(&*values.add(place * LANES + input));
                        sum[0] = _mm256_fmadd_ps(low, value, sum[0]);
                        sum[1] = _mm256_fmadd_ps(high, value, sum[1]);
                    }
                }
                *product.add(point) = sums;
            }
            for (place, tile) in tiles.iter().enumerate().take(N) {
                for half in 0..2 {
                    let bias = _mm256_loadu_ps(self.bias.as_ptr().add(half * 8));
                    let pixels = fold(|point| (*product.add(point))[place][half]);
                    for (index, sum) in pixels.into_iter().enumerate() {
                        let sum = _mm256_add_ps(sum, bias);
                        let scaled = _mm256_mul_ps(sum, _mm256_set1_ps(slope));
                        let to = tile[1] as usize + index / 2 * self.row + index % 2 * LANES + half * 8;
                        // The sign bit of `sum` chooses.
                        _mm256_storeu_ps(y.add(to), _mm256_blendv_ps(sum, scaled, sum));
                    }
                }
            }
        }
    }

    /// `Bᵀ d B` of eight channels of a window.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn look(&self, from: *const f32, mut give: impl FnMut(usize, __m256)) {
        // SAFETY: the caller's window is 4×4 pixels.
        unsafe {
            let at = |row: usize, column: usize| _mm256_loadu_ps(from.add(row * self.row + column * LANES));
            for column in 0..4 {
                let across = |row: usize| match column {
                    0 => _mm256_sub_ps(at(row, 0), at(row, 2)),
                    1 => _mm256_add_ps(at(row, 1), at(row, 2)),
                    2 => _mm256_sub_ps(at(row, 2), at(row, 1)),
                    _ => _mm256_sub_ps(at(row, 1), at(row, 3)),
                };
                let rows = [across(0), across(1), across(2), across(3)];
                give(column, _mm256_sub_ps(rows[0], rows[2]));
                give(4 + column, _mm256_add_ps(rows[1], rows[2]));
                give(8 + column, _mm256_sub_ps(rows[2], rows[1]));
                give(12 + column, _mm256_sub_ps(rows[1], rows[3]));
            }
        }
    }
}

/// `Aᵀ m A` of eight channels: four pixels by rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fold(at: impl Fn(usize) -> __m256) -> [__m256; 4] {
    let upper = |column: usize| _mm256_add_ps(_mm256_add_ps(at(column), at(4 + column)), at(8 + column));
    let lower = |column: usize| _mm256_sub_ps(_mm256_sub_ps(at(4 + column), at(8 + column)), at(12 + column));
    let across = |[a, b, c, d]: [__m256; 4]| {
        [_mm256_add_ps(_mm256_add_ps(a, b), c), _mm256_sub_ps(_mm256_sub_ps(b, c), d)]
    };
    let [one, two] = across([upper(0), upper(1), upper(2), upper(3)]);
    let [three, four] = across([lower(0), lower(1), lower(2), lower(3)]);
    [one, two, three, four]
}

#[cfg(test)]
mod tests {
    use super::super::{After, Places, Stencil, fast};
    use super::*;
    use crate::dense::Kernel;
    use understudy_core::Random;

    #[test]
    fn few_products_give_what_many_give() {
        if !fast(Kernel::detect()) {
            return;
        }
        let mut random = Random::new(7);
        for (side, share) in [(2, 1.0), (6, 1.0), (8, 0.9), (16, 0.85), (32, 1.0)] {
            let wanted: Vec<bool> = (0..side * side).map(|_| random.unit() < share).collect();
            let mut quick = Winograd::new(side, &wanted).expect("most pixels are wanted");
            let at = |row: usize, column: usize| ((row * (side + 2) + column) * LANES) as u32;
            let taps = (0..9).map(|tap| at(tap / 3, tap % 3)).collect();
            let mut stencil = Stencil::new(taps, LANES, LANES);
            let bias: Vec<f32> = (0..LANES).map(|_| random.uniform(-1.0, 1.0)).collect();
            stencil.bias_mut().copy_from_slice(&bias);
            quick.set_bias(&bias);
            for (output, input) in (0..LANES).flat_map(|o| (0..LANES).map(move |i| (o, i))) {
                let kernel = [0; 9].map(|_| random.uniform(-1.0, 1.0));
                (0..9).for_each(|tap| stencil.set(tap, input, output, kernel[tap]));
                quick.set(output, input, &kernel);
            }
            let places = (0..side * side).filter(|pixel| wanted[*pixel]);
            let pair = |p: usize| [at(p / side, p % side), at(p / side + 1, p % side + 1)];
            let places = Places::new(places.map(pair).collect());
            let mut x = vec![0.0; (side + 2) * (side + 2) * LANES];
            for pixel in 0..side * side {
                let start = at(pixel / side + 1, pixel % side + 1) as usize;
                x[start..start + LANES].iter_mut().for_each(|x| *x = random.uniform(-1.0, 1.0));
            }
            let (mut truth, mut got) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            stencil.apply(Kernel::REFERENCE, &x, &places, &mut truth, After::Leaky(0.2));
            // SAFETY: the machine has the instructions.
            unsafe { quick.apply(&x, &mut got, 0.2) };
            for [_, pixel] in places.pairs() {
                for lane in *pixel as usize..*pixel as usize + LANES {
                    assert!((truth[lane] - got[lane]).abs() < 1e-4, "{side}: {} {}", truth[lane], got[lane]);
                }
            }
            // The frame of zeros stays.
            assert!(got[..(side + 2) * LANES].iter().all(|number| *number == 0.0));
        }
    }

    #[test]
    fn pixels_far_apart_are_left_to_the_stencil() {
        let sparse: Vec<bool> = (0..64).map(|pixel| pixel % 4 == 0).collect();
        assert_eq!(Winograd::new(8, &sparse), None);
        assert_eq!(Winograd::new(7, &[true; 49]), None);
        assert!(Winograd::new(8, &[false; 64]).is_some_and(|empty| empty.tiles.is_empty()));
    }
}
