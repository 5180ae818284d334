//! The last layer of a group's network together with what follows it: coefficients in, vertices in the
//! world out. Weights lie in panels of eight vertices, x of all eight, then y, then z, so that a bone's
//! transform is applied to eight sums while they are still in registers and no offset is ever stored.

#[cfg(target_arch = "x86_64")]
#[macro_use]
mod prefetch;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod four_lanes;
mod portable;

use crate::dense::{Kernel, LayerError, Packed};
use half::f16;
use std::collections::HashMap;
use std::ops::Range;
use understudy_core::Vec3;

pub use super::super::skinning::{LANES, NUMBERS, rows};

/// Numbers per pair of panels and column.
const PAIR: usize = 2 * NUMBERS;

/// Which lane of its panel a vertex is in: when eight places are turned into triples, x is where it belongs, and y and
/// z are a turn of the register away.
pub const fn lane_of(vertex: usize) -> usize {
    3 * vertex % LANES
}

/// How the weights of a decoder are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// f16.
    Half,
    /// f32.
    Single,
    /// Sixteen bits between −1 and 1, evenly spaced: what f16 spends on small numbers goes to large ones.
    Fixed,
}

/// What one step of [`Form::Fixed`] is worth.
pub const STEP: f32 = 1.0 / 32768.0;

/// A weight as a number of steps; `None` where it is not in range.
pub fn to_fixed(weight: f32) -> Option<i16> {
    let steps = (weight / STEP).round();
    (f32::from(i16::MIN)..=f32::from(i16::MAX)).contains(&steps).then_some(steps as i16)
}

#[derive(Debug, Clone)]
enum Weights {
    Plain(Packed),
    Fixed(Vec<i16>),
}

impl Weights {
    fn number(&self, place: usize) -> f32 {
        match self {
            Self::Plain(numbers) => numbers.number(place),
            Self::Fixed(steps) => f32::from(steps[place]) * STEP,
        }
    }
}

/// Which of a panel's targets follow each other: those are stored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    /// All eight.
    Whole,
    /// The first four, and the last four.
    Halves,
    /// Two by two.
    Pairs,
    /// None need to.
    Single,
}

/// A packed last layer.
#[derive(Debug, Clone)]
pub struct Decoder {
    columns: usize,
    /// Panel after panel, [`NUMBERS`] per column.
    weights: Weights,
    /// Where each panel's columns start, and the end of the last, `[panels + 1]`. A panel ends at its last
    /// column that is not zero: most components leave most of a group alone.
    starts: Vec<usize>,
    /// Places in the bone's frame without any coefficient, `[panels · NUMBERS]`.
    bias: Vec<f32>,
    /// Where the vertices of a panel's lanes go, `[panels · LANES]`.
    targets: Vec<u32>,
    /// How the places of a panel follow each other, `[panels]`.
    runs: Vec<Run>,
    /// Panels that are unpacked together for many poses.
    batches: Vec<Range<usize>>,
    /// Memory that each panel writes to.
    #[cfg(target_arch = "x86_64")]
    lines: prefetch::Lines,
}

/// Coefficients of some poses and the bones that transform them.
#[derive(Clone, Copy)]
pub struct Coefficients<'a> {
    /// Pose `i` at `i · stride`.
    pub numbers: &'a [f32],
    /// From one pose to the next.
    pub stride: usize,
    /// The bone of each pose, see [`rows`].
    pub frames: &'a [[f32; 12]],
}

impl Decoder {
    /// Packs weights `[3 P × columns]` by rows and places `[P]` (the layer's bias included) of vertices that
    /// go to `targets` `[P]`.
    pub fn pack(
        weights: &[f32],
        places: &[Vec3],
        targets: &[u32],
        columns: usize,
        form: Form,
    ) -> Result<Self, LayerError> {
        let count = targets.len();
        for (what, got, want) in
            [("weights", weights.len(), 3 * count * columns), ("bias", 3 * places.len(), 3 * count)]
        {
            if got != want {
                return Err(LayerError::Count { what, got, want });
            }
        }
        if let Some(index) = weights.iter().position(|w| !w.is_finite()) {
            return Err(LayerError::NonFinite { what: "weights", index });
        }
        if let Some(index) = places.iter().position(|p| !p.is_finite()) {
            return Err(LayerError::NonFinite { what: "bias", index });
        }
        let (order, runs) = arrange(targets);
        let panels = runs.len();
        let used = |place: usize| {
            let rows = &weights[3 * place * columns..3 * (place + 1) * columns];
            // By bits: a weight of -0 comes back from `unpack`.
            let column = |row: &[f32]| row.iter().rposition(|w| w.to_bits() != 0).map_or(0, |last| last + 1);
            rows.chunks_exact(columns.max(1)).map(column).max().unwrap_or(0)
        };
        let mut starts = vec![0];
        for places in order.chunks_exact(LANES) {
            let most = places.iter().map(|place| used(*place)).max().unwrap_or(0);
            starts.push(starts[starts.len() - 1] + most);
        }
        let mut packed = vec![0.0f32; starts[panels] * NUMBERS];
        let mut bias = vec![0.0f32; panels * NUMBERS];
        let mut slots = vec![0; panels * LANES];
        for (slot, &place) in order.iter().enumerate() {
            let (panel, lane) = (slot / LANES, lane_of(slot % LANES));
            slots[panel * LANES + lane] = targets[place];
            for axis in 0..3 {
                bias[panel * NUMBERS + axis * LANES + lane] = places[place][axis];
                for column in 0..starts[panel + 1] - starts[panel] {
                    packed[(starts[panel] + column) * NUMBERS + axis * LANES + lane] =
                        weights[(3 * place + axis) * columns + column];
                }
            }
        }
        let weights = match form {
            Form::Single => Weights::Plain(Packed::Single(packed)),
            Form::Half => {
                if let Some(index) = weights.iter().position(|w| !f16::from_f32(*w).is_finite()) {
                    return Err(LayerError::NonFinite { what: "weights in 16 bits", index });
                }
                Weights::Plain(Packed::half(packed))
            }
            Form::Fixed => {
                if let Some(index) = weights.iter().position(|w| to_fixed(*w).is_none()) {
                    return Err(LayerError::Range { what: "weights in fixed point", index });
                }
                Weights::Fixed(packed.into_iter().map(|w| to_fixed(w).unwrap_or(0)).collect())
            }
        };
        let batches = batches(&starts);
        #[cfg(target_arch = "x86_64")]
        let lines = prefetch::Lines::new(&order.iter().map(|place| targets[*place]).collect::<Vec<u32>>());
        Ok(Self {
            columns,
            weights,
            starts,
            bias,
            targets: slots,
            runs,
            batches,
            #[cfg(target_arch = "x86_64")]
            lines,
        })
    }

    /// Weights `[3 P × columns]` by rows and places `[P]`, flat, of the vertices that go to `targets`, as they were packed
    /// but for the rounding of their form.
    pub fn unpack(&self, targets: &[u32]) -> (Vec<f32>, Vec<f32>) {
        let place_of: HashMap<u32, usize> = targets.iter().enumerate().map(|(p, t)| (*t, p)).collect();
        let mut weights = vec![0.0; 3 * targets.len() * self.columns];
        let mut places = vec![0.0; 3 * targets.len()];
        for (slot, target) in self.targets.iter().enumerate() {
            let (panel, lane, place) = (slot / LANES, slot % LANES, place_of[target]);
            for axis in 0..3 {
                places[3 * place + axis] = self.bias[panel * NUMBERS + axis * LANES + lane];
                for column in 0..self.starts[panel + 1] - self.starts[panel] {
                    let packed = (self.starts[panel] + column) * NUMBERS + axis * LANES + lane;
                    weights[(3 * place + axis) * self.columns + column] = self.weights.number(packed);
                }
            }
        }
        (weights, places)
    }

    /// How its weights are stored.
    pub fn form(&self) -> Form {
        match &self.weights {
            Weights::Plain(numbers) if numbers.is_half() => Form::Half,
            Weights::Plain(_) => Form::Single,
            Weights::Fixed(_) => Form::Fixed,
        }
    }

    /// Coefficients that it takes.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers of working memory that [`Self::apply`] wants for many poses.
    pub fn working_size(&self) -> usize {
        let size = |batch: &Range<usize>| {
            batch.clone().step_by(2).map(|first| PAIR * (1 + self.pair_columns(first))).sum()
        };
        self.batches.iter().map(size).max().unwrap_or(0)
    }

    /// Columns of the longer of two panels, the second of which may be missing.
    fn pair_columns(&self, first: usize) -> usize {
        pair_columns(&self.starts, first)
    }

    /// Multiply-adds per pose.
    pub fn multiply_adds(&self) -> usize {
        self.starts[self.runs.len()] * NUMBERS
    }

    /// Bytes of weights and places.
    pub fn bytes(&self) -> usize {
        let weights = match &self.weights {
            Weights::Plain(numbers) => numbers.bytes(),
            Weights::Fixed(steps) => steps.len() * 2,
        };
        weights + self.bias.len() * 4
    }

    /// Writes the vertices of all poses: vertex `t` of pose `i` to `out + i · out_stride + t`.
    ///
    /// # Panics
    /// When coefficients or working memory are too short.
    ///
    /// # Safety
    /// `out` is valid for writing at every target of every pose, and nothing else accesses those places
    /// meanwhile. The kernel is one that the machine has.
    pub unsafe fn apply(
        &self,
        kernel: Kernel,
        coefficients: Coefficients<'_>,
        out: *mut Vec3,
        out_stride: usize,
        panel: &mut [f32],
    ) {
        let poses = coefficients.frames.len();
        if poses == 0 || self.runs.is_empty() {
            return;
        }
        let needed = (poses - 1) * coefficients.stride + self.columns;
        assert!(coefficients.numbers.len() >= needed, "coefficients hold every pose");
        assert!(panel.len() >= self.working_size(), "working memory is as large as asked for");
        // SAFETY: lengths were asserted, the rest is promised by the caller.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if kernel.has_avx512() && poses > 1 {
                return avx512::apply(self, coefficients, out, out_stride, panel);
            }
            #[cfg(target_arch = "x86_64")]
            if kernel.has_avx2() {
                return avx2::apply(self, coefficients, out, out_stride, panel);
            }
            if kernel.has_four_lanes() {
                return four_lanes::apply(self, coefficients, out, out_stride);
            }
            portable::apply(self, coefficients, out, out_stride);
        }
    }
}

/// Runs of panels, two by two, whose unpacked columns fill an eighth of a second-level cache of a megabyte: few, so that
/// what a pose's vertices share, lines and pages of memory, is visited once.
fn batches(starts: &[usize]) -> Vec<Range<usize>> {
    const COLUMNS_IN_CACHE: usize = (32 << 10) / PAIR;
    let panels = starts.len() - 1;
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut filled = 0;
    for first in (0..panels).step_by(2) {
        // Columns and a bias.
        let (end, columns) = (panels.min(first + 2), 1 + pair_columns(starts, first));
        match out.last_mut() {
            Some(batch) if filled + columns <= COLUMNS_IN_CACHE => {
                (batch.end, filled) = (end, filled + columns)
            }
            _ => {
                out.push(first..end);
                filled = columns;
            }
        }
    }
    out
}

/// See [`Decoder::pair_columns`].
fn pair_columns(starts: &[usize], first: usize) -> usize {
    starts[first..].windows(2).take(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

/// Which vertex sits in which slot: whole panels of eight neighbouring targets first, as a straight store
/// costs a third of eight single ones, then panels of two times four, of four times two, then the rest. The last panel
/// is filled up with its last vertex, which is then written more than once, with the same place: no lane needs a question.
fn arrange(targets: &[u32]) -> (Vec<usize>, Vec<Run>) {
    let mut sorted: Vec<usize> = (0..targets.len()).collect();
    sorted.sort_unstable_by_key(|place| targets[*place]);
    let (mut order, mut runs) = (Vec::new(), Vec::new());
    for (run, length) in [(Run::Whole, LANES), (Run::Halves, LANES / 2), (Run::Pairs, 2)] {
        let (mut found, mut rest) = neighbours(targets, &sorted, length);
        // Runs that fill no panel are looked at once more for shorter ones.
        rest.extend(found.drain(found.len() / LANES * LANES..));
        rest.sort_unstable_by_key(|place| targets[*place]);
        runs.resize(runs.len() + found.len() / LANES, run);
        order.extend(found);
        sorted = rest;
    }
    if let Some(&last) = sorted.last() {
        sorted.resize(sorted.len().next_multiple_of(LANES), last);
    }
    runs.resize(runs.len() + sorted.len() / LANES, Run::Single);
    order.extend(sorted);
    (order, runs)
}

/// Of places in the order of their targets those that form runs of `length` targets, run after run, and the others.
fn neighbours(targets: &[u32], sorted: &[usize], length: usize) -> (Vec<usize>, Vec<usize>) {
    let (mut runs, mut rest) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < sorted.len() {
        let first = targets[sorted[start]];
        let fits = start + length <= sorted.len()
            && (0..length).all(|step| targets[sorted[start + step]].checked_sub(first) == Some(step as u32));
        let (to, count) = if fits { (&mut runs, length) } else { (&mut rest, 1) };
        to.extend_from_slice(&sorted[start..start + count]);
        start += count;
    }
    (runs, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Affine3A, Quat, Random};

    #[test]
    fn every_kernel_matches_plain_products_at_every_size() {
        let (counts, widths): (&[usize], &[usize]) = match cfg!(miri) {
            // A thousand vertices are widened in two batches.
            false => (&[0, 1, 7, 8, 9, 15, 16, 100, 1000], &[0, 1, 7, 16, 33]),
            true => (&[0, 1, 8, 13], &[0, 5]),
        };
        for &count in counts {
            for &columns in widths {
                for form in [Form::Half, Form::Single, Form::Fixed] {
                    check(count, columns, form);
                }
            }
        }
    }

    fn check(count: usize, columns: usize, form: Form) {
        let mut random = Random::new((count * 100 + columns) as u64);
        let mut number = || random.uniform(-1.0, 1.0);
        // Runs of fourteen consecutive targets with holes between them: eight, four and two.
        let targets: Vec<u32> = (0..count as u32).map(|t| t + t / 14 * 3).collect();
        let room = targets.last().map_or(1, |t| *t as usize + 2);
        let rounded = |w: f32| match form {
            Form::Half => f16::from_f32(w).to_f32(),
            Form::Single => w,
            Form::Fixed => f32::from(to_fixed(w).expect("in range")) * STEP,
        };
        let mut weights: Vec<f32> = (0..3 * count * columns).map(|_| number()).collect();
        // Vertices from the tenth on use half of the columns: their panels end early.
        for row in weights.chunks_exact_mut(columns.max(1)).skip(30) {
            row[columns / 2..].fill(0.0);
        }
        let places: Vec<Vec3> = (0..count).map(|_| Vec3::new(number(), number(), number())).collect();
        // Tiles of eight, of four, of two, and one; and of four, and three.
        let poses = if cfg!(miri) { 7 } else { 23 };
        let stride = columns + 3;
        let x: Vec<f32> = (0..poses * stride).map(|_| number()).collect();
        let frames: Vec<Affine3A> = (0..poses)
            .map(|_| {
                let turn = Quat::from_scaled_axis(Vec3::new(number(), number(), number()));
                Affine3A::from_rotation_translation(turn, Vec3::new(number(), number(), number()))
            })
            .collect();
        let decoder = Decoder::pack(&weights, &places, &targets, columns, form).expect("fits");
        for kernel in Kernel::all() {
            let mut out = vec![Vec3::splat(99.0); poses * room];
            let mut panel = vec![0.0; decoder.working_size()];
            let by_rows: Vec<[f32; 12]> = frames.iter().map(rows).collect();
            let coefficients = Coefficients { numbers: &x, stride, frames: &by_rows };
            // SAFETY: every target is below `room`.
            unsafe { decoder.apply(kernel, coefficients, out.as_mut_ptr(), room, &mut panel) };
            for pose in 0..poses {
                let mut written = vec![false; room];
                for (place, target) in targets.iter().enumerate() {
                    let row = |axis: usize| -> f32 {
                        let row = &weights[(3 * place + axis) * columns..][..columns];
                        row.iter().zip(&x[pose * stride..]).map(|(w, x)| rounded(*w) * x).sum()
                    };
                    let local = places[place] + Vec3::new(row(0), row(1), row(2));
                    let truth = frames[pose].transform_point3(local);
                    let got = out[pose * room + *target as usize];
                    assert!(
                        truth.distance(got) < 2e-5,
                        "{count} × {columns}, {}: {truth} {got}",
                        kernel.name()
                    );
                    written[*target as usize] = true;
                }
                for (slot, written) in written.iter().enumerate() {
                    assert!(*written || out[pose * room + slot] == Vec3::splat(99.0), "{slot} was not ours");
                }
            }
        }
    }

    #[test]
    fn sizes_that_disagree_are_named() {
        let wrong = Decoder::pack(&[0.0; 5], &[Vec3::ZERO], &[0], 2, Form::Half).map(|_| ());
        assert_eq!(wrong, Err(LayerError::Count { what: "weights", got: 5, want: 6 }));
        let nan = Decoder::pack(&[0.0, f32::NAN, 0.0], &[Vec3::ZERO], &[0], 1, Form::Half).map(|_| ());
        assert_eq!(nan, Err(LayerError::NonFinite { what: "weights", index: 1 }));
        let wide = Decoder::pack(&[0.0, 1.01, 0.0], &[Vec3::ZERO], &[0], 1, Form::Fixed).map(|_| ());
        assert_eq!(wide, Err(LayerError::Range { what: "weights in fixed point", index: 1 }));
    }
}
