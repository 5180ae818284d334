//! Skinning with four numbers in a register: ARM, WebAssembly, and x86-64 without AVX2. Sixteen registers do not hold twelve
//! blended numbers of eight vertices; here every bone moves the weighted places, `v = Σ_j M_j (w_j u)`, which takes six sums.

use super::{LANES, NUMBERS, Skin, WEIGHT_UNITS, Weights};
use crate::four_lanes::{FOUR, Four, Weight, Whole};
use std::ops::Range;
use understudy_core::Vec3;

/// Halves of a panel.
const HALVES: usize = LANES / FOUR;

/// # Safety
/// The panels exist, hold all of `out` and have their places in `rest`, and every bone of theirs has a matrix.
pub unsafe fn add(
    skin: &Skin,
    panels: Range<usize>,
    rest: &[f32],
    skinning_matrices: &[[f32; 12]],
    out: &mut [Vec3],
) {
    // SAFETY: promised by the caller; a weight in units is a u16 in memory.
    unsafe {
        match &skin.weights {
            Weights::Single(weights) => {
                add_panels(skin, weights.as_ptr().cast::<f32>(), 1.0, panels, rest, skinning_matrices, out)
            }
            // In units that are taken out at the end: a power of two changes no digit.
            Weights::Whole(weights) => {
                let weights = weights.as_ptr().cast::<Whole>();
                add_panels(skin, weights, 1.0 / WEIGHT_UNITS, panels, rest, skinning_matrices, out)
            }
        }
    }
}

/// # Safety
/// As [`add`]; there are eight weights for every entry of the skin.
#[inline(always)]
unsafe fn add_panels<W: Weight>(
    skin: &Skin,
    weights: *const W,
    unit: f32,
    panels: Range<usize>,
    rest: &[f32],
    skinning_matrices: &[[f32; 12]],
    out: &mut [Vec3],
) {
    let unit = Four::splat(unit);
    let places = rest.chunks_exact(NUMBERS);
    for ((panel, rest), out) in panels.zip(places).zip(out.chunks_mut(LANES)) {
        // SAFETY: the panel exists, so its entries and its rest places do; `out` holds `out.len()` places.
        unsafe {
            let entries = *skin.starts.get_unchecked(panel)..*skin.starts.get_unchecked(panel + 1);
            let mut sums = [[Four::splat(0.0); 3]; HALVES];
            for entry in entries.start as usize..entries.end as usize {
                let bone = *skin.bones.get_unchecked(entry) as usize;
                add_bone(&mut sums, weights.add(entry * LANES), rest, skinning_matrices.get_unchecked(bone));
            }
            let mut eight = [Vec3::ZERO; LANES];
            let whole = out.len() == LANES;
            let to = if whole { out.as_mut_ptr() } else { eight.as_mut_ptr() }.cast::<f32>();
            for (half, [x, y, z]) in sums.into_iter().enumerate() {
                for (index, triples) in Four::triples([x * unit, y * unit, z * unit]).into_iter().enumerate()
                {
                    let to = to.add(half * 3 * FOUR + index * FOUR);
                    (Four::load(to) + triples).store(to);
                }
            }
            if !whole {
                out.iter_mut().zip(eight).for_each(|(place, skinned)| *place += skinned);
            }
        }
    }
}

/// Adds what one bone gives to eight vertices.
///
/// # Safety
/// Eight weights can be read; `rest` has a panel's numbers.
#[inline(always)]
unsafe fn add_bone<W: Weight>(
    sums: &mut [[Four; 3]; HALVES],
    weights: *const W,
    rest: &[f32],
    matrix: &[f32; 12],
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut weighted = [[Four::splat(0.0); 4]; HALVES];
        for (half, [x, y, z, weight]) in weighted.iter_mut().enumerate() {
            *weight = W::four(weights.add(half * FOUR));
            for (axis, place) in [x, y, z].into_iter().enumerate() {
                *place = Four::load(rest.as_ptr().add(axis * LANES + half * FOUR)) * *weight;
            }
        }
        for row in 0..3 {
            for column in 0..4 {
                let number = Four::repeat(matrix.as_ptr().add(4 * row + column));
                for (sums, weighted) in sums.iter_mut().zip(&weighted) {
                    sums[row] = weighted[column].times_plus(number, sums[row]);
                }
            }
        }
    }
}
