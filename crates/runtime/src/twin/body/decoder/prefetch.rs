//! Prefetches the cache lines that a decoder will write next. Poses lie far apart in memory, which no hardware prefetcher
//! foresees. Kernels prefetch one line of one or two poses per column: a core has few line-fill buffers, and prefetched all
//! at once the lines would hold up what follows.

use super::{Coefficients, Decoder, LANES, NUMBERS, PAIR};
use std::ops::Range;
use understudy_core::Vec3;

/// Columns during which one line is prefetched in all poses of a tile.
pub const COLUMNS_PER_LINE: usize = 4;

// Loops in assembly count in these: so many columns per line, so many bytes per column.
const _: () =
    assert!(COLUMNS_PER_LINE == 4 && NUMBERS * size_of::<f32>() == 96 && PAIR * size_of::<f32>() == 192);

/// What one column adds to the sums of some poses, as text: bytes of a register, the column, and of each pose the name of
/// its sums and where its coefficients are.
macro_rules! column {
    ($bytes:literal, $column:literal; $($sums:literal $at:literal),*) => {
        concat!(
            "vmovups {w0}, [{weights} + 3 * ", $bytes, " * ", $column, "]\n",
            "vmovups {w1}, [{weights} + 3 * ", $bytes, " * ", $column, " + ", $bytes, "]\n",
            "vmovups {w2}, [{weights} + 3 * ", $bytes, " * ", $column, " + 2 * ", $bytes, "]\n",
            $(
                "vbroadcastss {value}, [", $at, " + 4 * ", $column, "]\n",
                "vfmadd231ps {", $sums, "0}, {w0}, {value}\n",
                "vfmadd231ps {", $sums, "1}, {w1}, {value}\n",
                "vfmadd231ps {", $sums, "2}, {w2}, {value}\n",
            )*
        )
    };
}

/// Prefetches the line at hand in one of the poses, as text.
macro_rules! prefetch {
    ($pose:literal) => {
        concat!("mov {row}, [{rows} + 8 * ", $pose, "]\n", "prefetcht0 [{row} + {line}]\n")
    };
}

/// Bytes at the end of a run whose line is not named.
const SPARED: u64 = 16;

/// A byte of a pose in every line of memory that targets lie in, wherever lines begin, but for short ends.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Panel after panel.
    bytes: Vec<u32>,
    /// Where those of each panel start, and the end of the last, `[panels + 1]`.
    starts: Vec<usize>,
}

impl Lines {
    /// Of the targets of all panels' vertices in their order. A run of neighbours is counted through across panels,
    /// and its end is named apart where more than [`SPARED`] bytes are left: a line that holds less is hardly ever
    /// there. Bytes beyond four gigabytes are not named: asking is not a duty.
    pub fn new(targets: &[u32]) -> Self {
        const LINE: u64 = 64;
        const PLACE: u64 = size_of::<Vec3>() as u64;
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        // The next byte of this run that is in a line of its own.
        let mut next = 0;
        for (slot, target) in targets.iter().enumerate() {
            let neighbour = |other: Option<&u32>, step: i64| {
                other.is_some_and(|o| i64::from(*o) == i64::from(*target) + step)
            };
            let (first, end) = (u64::from(*target) * PLACE, (u64::from(*target) + 1) * PLACE);
            let before = slot.checked_sub(1).and_then(|before| targets.get(before));
            // The last panel is filled up with its last vertex, which needs no line of its own.
            if !neighbour(before, -1) && !neighbour(before, 0) {
                next = first;
            }
            while next < end {
                bytes.extend(u32::try_from(next));
                next += LINE;
            }
            let ends = !neighbour(targets.get(slot + 1), 1) && !neighbour(targets.get(slot + 1), 0);
            if ends && bytes.last().is_some_and(|last| end - u64::from(*last) > SPARED) {
                bytes.extend(u32::try_from(end - 1));
            }
            if slot % LANES == LANES - 1 {
                starts.push(bytes.len());
            }
        }
        Self { bytes, starts }
    }

    fn of(&self, panels: Range<usize>) -> &[u32] {
        &self.bytes[self.starts[panels.start]..self.starts[panels.end]]
    }
}

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
pub struct Prefetch<'a, const N: usize> {
    /// Lines that are asked for on the way, each for [`COLUMNS_PER_LINE`] columns.
    pub early: &'a [u32],
    /// Those for which there are too few columns.
    late: &'a [u32],
    /// Poses that the next panels are for.
    pub rows: &'a Rows<N>,
}

impl<'a, const N: usize> Prefetch<'a, N> {
    /// While some columns are added.
    pub fn new(decoder: &'a Decoder, panels: Range<usize>, columns: usize, rows: &'a Rows<N>) -> Self {
        let lines = decoder.lines.of(panels);
        let (early, late) = lines.split_at(lines.len().min(columns / COLUMNS_PER_LINE));
        Self { early, late, rows }
    }

    /// Asks for the lines that are left.
    #[inline]
    pub fn fetch_rest(self) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in self.late {
            for row in self.rows {
                // SAFETY: nothing is accessed; whatever the address, a machine with SSE only takes note of it.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(*line as usize).cast()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_memory_is_asked_for_and_few_twice() {
        // Two runs that cross panels, one of which ends inside a panel, and single targets.
        let targets: Vec<u32> = (0..21).chain(100..107).chain([200, 300, 300, 300]).collect();
        let Lines { bytes, starts } = Lines::new(&targets);
        assert_eq!(starts, [0, 2, 3, 6, 10]);
        for base in (0..64).step_by(4) {
            let line = |byte: u32| (base + byte) / 64;
            for target in &targets {
                for byte in [target * 12, target * 12 + 11] {
                    let named = |asked: &u32| {
                        line(*asked) == line(byte) || u64::from(byte.wrapping_sub(*asked)) < SPARED
                    };
                    assert!(bytes.iter().any(named), "{base}: {target}");
                }
            }
        }
    }
}
