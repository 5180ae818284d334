//! Convolutions of 2×2 pixels with fewer products: the window and the kernel are transformed, multiplied point
//! by point, and the products folded into pixels. Sums of pixels cost one register each, products of sixteen
//! channels with sixteen cost thirty-two. See [`Transform`].

use super::LANES;
use crate::four_lanes::Four;

/// Some channels of a pixel in a register, of whatever width.
pub trait Channels: Copy {
    /// # Safety
    /// As many numbers as the register has lanes can be read, and the machine has its instructions.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// The machine has the instructions of the register.
    unsafe fn plus(self, other: Self) -> Self;
    /// # Safety
    /// As [`Channels::plus`].
    unsafe fn minus(self, other: Self) -> Self;
}

impl Channels for Four {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::load(from) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        self - other
    }
}

/// One way to convolve a tile of 2×2 pixels. Its functions become part of the kernel that calls them, which knows the
/// machine's instructions: they must be inlined, and so must what they call.
pub trait Transform {
    /// Products per tile, for each pair of channels.
    const POINTS: usize;

    /// The kernel by points.
    fn kernel(kernel: &[f32; 9]) -> impl Iterator<Item = f32>;

    /// Some channels of the window by points, written to `to`, a point every `step` bytes.
    ///
    /// # Safety
    /// The machine has the instructions of the register; the window, whose rows are `row` numbers apart, lies in an image;
    /// all points can be written.
    unsafe fn sample<C: Channels>(from: *const f32, row: usize, to: *mut C, step: usize);

    /// Four pixels by rows from the products, which are read from `from`, a point every `step` bytes.
    ///
    /// # Safety
    /// The machine has the instructions of the register, and all points can be read.
    unsafe fn fold<C: Channels>(from: *const C, step: usize) -> [C; 4];
}

/// Applies a map of three numbers to the columns of a 3×3 kernel, then to the rows of what comes out.
fn both_ways<const N: usize>(kernel: &[f32; 9], map: fn([f32; 3]) -> [f32; N]) -> impl Iterator<Item = f32> {
    let columns = [0, 1, 2].map(|column| map([0, 3, 6].map(|row| kernel[row + column])));
    (0..N).flat_map(move |row| map(columns.map(|numbers| numbers[row])))
}

/// A 3×3 convolution: 16 products instead of 36 (Winograd's F(2×2, 3×3); Lavin and Gray 2016), `Y =
/// Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A`. The window is 4×4 pixels.
pub struct Winograd;

/// `Bᵀ` on four numbers.
#[inline(always)]
unsafe fn spread<C: Channels>([a, b, c, d]: [C; 4]) -> [C; 4] {
    // SAFETY: promised by the caller.
    unsafe { [a.minus(c), b.plus(c), c.minus(b), b.minus(d)] }
}

/// `Aᵀ` on four numbers.
#[inline(always)]
unsafe fn gather<C: Channels>([a, b, c, d]: [C; 4]) -> [C; 2] {
    // SAFETY: promised by the caller.
    unsafe { [a.plus(b).plus(c), b.minus(c).minus(d)] }
}

impl Transform for Winograd {
    const POINTS: usize = 16;

    fn kernel(kernel: &[f32; 9]) -> impl Iterator<Item = f32> {
        both_ways(kernel, |[a, b, c]| [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c])
    }

    #[inline(always)]
    unsafe fn sample<C: Channels>(from: *const f32, row: usize, to: *mut C, step: usize) {
        // SAFETY: the caller's window is 4×4 pixels, and sixteen points can be written.
        unsafe {
            // Column by column: all sixteen pixels do not fit into registers.
            for column in 0..4 {
                let (first, second) = [(0, 2), (1, 2), (2, 1), (1, 3)][column];
                let mut rows = [C::load(from); 4];
                for (down, out) in rows.iter_mut().enumerate() {
                    let from = from.add(down * row);
                    let [a, b] = [C::load(from.add(first * LANES)), C::load(from.add(second * LANES))];
                    *out = if column == 1 { a.plus(b) } else { a.minus(b) };
                }
                let points = spread(rows);
                for (down, point) in points.into_iter().enumerate() {
                    *to.byte_add((4 * down + column) * step) = point;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn fold<C: Channels>(from: *const C, step: usize) -> [C; 4] {
        // SAFETY: sixteen points can be read.
        unsafe {
            let mut columns = [[*from; 2]; 4];
            for (column, out) in columns.iter_mut().enumerate() {
                let first = from.byte_add(column * step);
                let (second, third) = (first.byte_add(4 * step), first.byte_add(8 * step));
                *out = gather([*first, *second, *third, *first.byte_add(12 * step)]);
            }
            let [a, b, c, d] = columns;
            let [one, two] = gather([a[0], b[0], c[0], d[0]]);
            let [three, four] = gather([a[1], b[1], c[1], d[1]]);
            [one, two, three, four]
        }
    }
}

/// A 3×3 convolution after nearest ×2 upsampling: the four pixels that one small pixel becomes, with 9
/// products instead of the 16 of four 2×2 convolutions (or 36). Along one line, with small pixels `x₀ x₁ x₂` and
/// `s = k₀ + k₁ + k₂`: `k₀x₀ + (k₁ + k₂)x₁ = k₀(x₀ − x₁) + s·x₁` and `(k₀ + k₁)x₁ + k₂x₂ = s·x₁ + k₂(x₂ − x₁)`
/// share a product. The window is 3×3 small pixels.
pub struct Doubled;

impl Transform for Doubled {
    const POINTS: usize = 9;

    fn kernel(kernel: &[f32; 9]) -> impl Iterator<Item = f32> {
        both_ways(kernel, |[a, b, c]| [a, a + b + c, c])
    }

    #[inline(always)]
    unsafe fn sample<C: Channels>(from: *const f32, row: usize, to: *mut C, step: usize) {
        // SAFETY: the caller's window is 3×3 pixels, and nine points can be written.
        unsafe {
            for column in 0..3 {
                let mut rows = [C::load(from); 3];
                for (down, out) in rows.iter_mut().enumerate() {
                    let from = from.add(down * row);
                    let own = C::load(from.add(column * LANES));
                    *out = if column == 1 { own } else { own.minus(C::load(from.add(LANES))) };
                }
                let points = [rows[0].minus(rows[1]), rows[1], rows[2].minus(rows[1])];
                for (down, point) in points.into_iter().enumerate() {
                    *to.byte_add((3 * down + column) * step) = point;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn fold<C: Channels>(from: *const C, step: usize) -> [C; 4] {
        // SAFETY: nine points can be read.
        unsafe {
            let mut columns = [[*from; 2]; 3];
            for (column, out) in columns.iter_mut().enumerate() {
                let first = from.byte_add(column * step);
                let middle = *first.byte_add(3 * step);
                *out = [(*first).plus(middle), middle.plus(*first.byte_add(6 * step))];
            }
            let [a, b, c] = columns;
            [a[0].plus(b[0]), b[0].plus(c[0]), a[1].plus(b[1]), b[1].plus(c[1])]
        }
    }
}
