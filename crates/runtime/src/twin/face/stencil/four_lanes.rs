//! [`Stencil::apply`] with four numbers in a register: ARM, WebAssembly, and x86-64 without AVX2. Derivatives by weights are
//! for training, and left to the reference.

use super::{After, LANES, Stencil};
use crate::four_lanes::{FOUR, Four, add_products};

/// Pixels that share one pass over the weights, half a panel at a time: eight sums.
const TILE: usize = 4;
/// Registers of half a panel.
const HALF: usize = LANES / FOUR / 2;

/// # Safety
/// Every place lies inside `x` and `y` (and the forward pass of `after`).
pub unsafe fn apply(stencil: &Stencil, x: &[f32], places: &[[u32; 2]], y: &mut [f32], after: After<'_>) {
    let (input, output) = (x.as_ptr(), y.as_mut_ptr());
    for panel in 0..stencil.outputs() / LANES {
        for places in places.chunks(TILE) {
            // SAFETY: promised by the caller.
            unsafe {
                match places.len() {
                    4 => tile::<4>(stencil, panel, input, places, output, after),
                    3 => tile::<3>(stencil, panel, input, places, output, after),
                    2 => tile::<2>(stencil, panel, input, places, output, after),
                    _ => tile::<1>(stencil, panel, input, places, output, after),
                }
            }
        }
    }
}

/// `N` pixels of one panel.
///
/// # Safety
/// There are `N` places, inside the images.
unsafe fn tile<const N: usize>(
    stencil: &Stencil,
    panel: usize,
    x: *const f32,
    places: &[[u32; 2]],
    y: *mut f32,
    after: After<'_>,
) {
    let inputs = stencil.inputs();
    for half in (0..LANES).step_by(HALF * FOUR) {
        // SAFETY: promised by the caller; the stencil's arrays fit its own sizes.
        unsafe {
            let bias = stencil.bias().as_ptr().add(panel * LANES + half);
            let mut sums: [[Four; HALF]; N] = [[Four::load(bias), Four::load(bias.add(FOUR))]; N];
            let mut weights = stencil.weights().as_ptr().add(stencil.place(0, 0, panel * LANES) + half);
            for &tap in stencil.taps() {
                let mut sources = [x; N];
                for (source, place) in sources.iter_mut().zip(places) {
                    *source = x.add((place[0] + tap) as usize);
                }
                add_products(weights, LANES, sources, inputs, &mut sums);
                weights = weights.add(inputs * LANES);
            }
            for (place, sums) in places.iter().zip(sums) {
                let start = place[1] as usize + panel * LANES + half;
                for (quarter, sum) in sums.into_iter().enumerate() {
                    let at = start + quarter * FOUR;
                    let result = match after {
                        After::Leaky(slope) => sum.leaky(Four::splat(slope)),
                        After::Slope(slope, forward) => {
                            Four::load(forward.as_ptr().add(at)).choose(sum, sum * Four::splat(slope))
                        }
                    };
                    result.store(y.add(at));
                }
            }
        }
    }
}
