//! The slow truth of [`super::Stencil`], and the kernel where no other is made for the machine.

use super::{After, LANES, Stencil};

/// [`Stencil::apply`], one place at a time.
pub fn apply(stencil: &Stencil, x: &[f32], places: &[[u32; 2]], y: &mut [f32], after: After<'_>) {
    let per_tap = stencil.inputs() * LANES;
    for &[from, to] in places {
        for panel in 0..stencil.outputs() / LANES {
            let mut sums = [0.0f32; LANES];
            sums.copy_from_slice(&stencil.bias()[panel * LANES..(panel + 1) * LANES]);
            for (tap, offset) in stencil.taps().iter().enumerate() {
                let start = (panel * stencil.taps().len() + tap) * per_tap;
                let weights = stencil.weights()[start..start + per_tap].as_chunks::<LANES>().0;
                let source = &x[(from + offset) as usize..][..stencil.inputs()];
                for (value, weights) in source.iter().zip(weights) {
                    sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * value);
                }
            }
            let start = to as usize + panel * LANES;
            for lane in 0..LANES {
                let sum = sums[lane];
                y[start + lane] = match after {
                    After::Leaky(slope) => leaky(sum, slope),
                    After::Slope(slope, forward) => {
                        if forward[start + lane] > 0.0 {
                            sum
                        } else {
                            sum * slope
                        }
                    }
                };
            }
        }
    }
}

/// The leaky rectifier.
pub fn leaky(x: f32, slope: f32) -> f32 {
    if x > 0.0 { x } else { x * slope }
}

/// [`Stencil::accumulate`], one place at a time.
pub fn accumulate(
    stencil: &Stencil,
    x: &[f32],
    places: &[[u32; 2]],
    d: &[f32],
    by_weights: &mut [f32],
    by_bias: &mut [f32],
) {
    let per_tap = stencil.inputs() * LANES;
    for &[from, to] in places {
        for panel in 0..stencil.outputs() / LANES {
            let slopes = &d[to as usize + panel * LANES..][..LANES];
            let bias = &mut by_bias[panel * LANES..(panel + 1) * LANES];
            bias.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope);
            for (tap, offset) in stencil.taps().iter().enumerate() {
                let start = (panel * stencil.taps().len() + tap) * per_tap;
                let sums = by_weights[start..start + per_tap].as_chunks_mut::<LANES>().0;
                let source = &x[(from + offset) as usize..][..stencil.inputs()];
                for (value, sums) in source.iter().zip(sums) {
                    sums.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += slope * value);
                }
            }
        }
    }
}
