//! Memory that a decoder will write next. Poses lie far apart, and nothing but the decoder foresees it. Kernels ask for
//! one line in one or two poses a column: a core waits for so many lines at once and no more, and asked for all at
//! once they would hold up what follows.

use super::{Coefficients, Decoder};
use std::ops::Range;
use understudy_core::Vec3;

/// Columns in which one line is asked for in all poses of a tile.
pub const ASKED: usize = 4;

/// Where the poses of a tile start.
pub type Rows<const N: usize> = [*mut u8; N];

/// Of `N` poses from `first` on; beyond the last it is once more the last.
pub fn rows<const N: usize>(
    first: usize,
    coefficients: &Coefficients<'_>,
    out: *mut Vec3,
    out_stride: usize,
) -> Rows<N> {
    let last = coefficients.frames.len() - 1;
    std::array::from_fn(|next| out.wrapping_add((first + next).min(last) * out_stride).cast())
}

/// What the next panels will write.
#[derive(Clone, Copy)]
pub struct Ahead<'a, const N: usize> {
    /// Lines that are asked for on the way, each for [`ASKED`] columns.
    pub early: &'a [u32],
    /// Those for which there are too few columns.
    late: &'a [u32],
    /// Poses that the next panels are for.
    pub rows: &'a Rows<N>,
}

impl<'a, const N: usize> Ahead<'a, N> {
    /// While some columns are added.
    pub fn new(decoder: &'a Decoder, panels: Range<usize>, columns: usize, rows: &'a Rows<N>) -> Self {
        let lines = &decoder.lines[decoder.line_starts[panels.start]..decoder.line_starts[panels.end]];
        let (early, late) = lines.split_at(lines.len().min(columns / ASKED));
        Self { early, late, rows }
    }

    /// Asks for the lines that are left.
    #[inline]
    pub fn ask_late(self) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in self.late {
            for row in self.rows {
                // SAFETY: nothing is accessed; whatever the address, a machine with SSE only takes note of it.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(*line as usize).cast()) };
            }
        }
    }
}
