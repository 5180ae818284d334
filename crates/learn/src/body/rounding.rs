//! A trained group in 16 bits. Hidden layers become f16, rounded so that outputs change least; the frozen last
//! layer becomes fixed point, its columns stretched to the range −1 … 1 and the layer before shrunk by as much.

use super::{Plan, Recording};
use crate::dense::rounding::round_to_half;
use crate::matrix::{View, multiply};
use understudy_runtime::body::{GroupParts, Storage};
use understudy_runtime::dense::Activation;

/// The same network with a last layer that fixed point holds; nothing is rounded but that layer.
pub(super) fn with_fixed_point(parts: &GroupParts) -> GroupParts {
    let mut out = parts.clone();
    let [.., before, last] = &mut out.layers[..] else { return out };
    let columns = before.bias.len();
    if columns == 0 {
        return out;
    }
    let mut largest = vec![0.0f32; columns];
    for row in last.weights.chunks_exact(columns) {
        largest.iter_mut().zip(row).for_each(|(largest, w)| *largest = largest.max(w.abs()));
    }
    // One itself is just out of range.
    let units: Vec<f32> =
        largest.iter().map(|l| if *l > 0.0 { l * (32768.0 / 32767.0) } else { 1.0 }).collect();
    for row in last.weights.chunks_exact_mut(columns) {
        for (weight, unit) in row.iter_mut().zip(&units) {
            *weight = Storage::fixed(*weight / unit).unwrap_or_default();
        }
    }
    last.storage = Storage::Fixed;
    let inputs = before.weights.len() / columns;
    for (row, unit) in before.weights.chunks_exact_mut(inputs.max(1)).zip(&units) {
        row.iter_mut().for_each(|weight| *weight *= unit);
    }
    before.bias.iter_mut().zip(&units).for_each(|(bias, unit)| *bias *= unit);
    out
}

impl Plan {
    /// A group with the weights of its f16 layers rounded so that its outputs change least over the poses.
    pub fn round_group(&self, poses: &Recording, group: usize, parts: &GroupParts) -> GroupParts {
        const SAMPLES: usize = 1500;
        let mut out = parts.clone();
        if parts.inputs.is_empty() {
            return out;
        }
        let chosen = poses.spread(SAMPLES);
        let mut x = self.seen(poses, group, parts, &chosen);
        let mut columns = parts.inputs.len();
        let last = parts.layers.len().saturating_sub(1);
        for (index, layer) in out.layers.iter_mut().enumerate() {
            if layer.storage == Storage::Plain {
                // Coefficients go together with nothing: the last layer's weights each go to their nearest.
                let samples: &[f32] = if index == last { &[] } else { &x };
                round_to_half(&mut layer.weights, columns, samples);
            }
            if index == last {
                break;
            }
            // What the next layer sees comes from the rounded weights, so that it can make good for them.
            let rows = layer.bias.len();
            let mut next = vec![0.0f32; chosen.len() * rows];
            next.chunks_exact_mut(rows.max(1)).for_each(|row| row.copy_from_slice(&layer.bias));
            let (a, b) = (View::new(&x, chosen.len(), columns), View::new(&layer.weights, rows, columns));
            multiply(&mut next, 1.0, a, b.transposed());
            if layer.activation == Activation::Tanh {
                next.iter_mut().for_each(|value| *value = value.tanh());
            }
            (x, columns) = (next, rows);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_runtime::body::LayerParts;

    #[test]
    fn fixed_point_leaves_the_network_what_it_was() {
        let (inputs, count, outputs) = (6, 4, 30);
        let mut random = Random::new(2);
        let mut layer = |rows: usize, columns: usize, scale: f32| LayerParts {
            weights: (0..rows * columns).map(|_| random.uniform(-scale, scale)).collect(),
            bias: (0..rows).map(|_| random.uniform(-1.0, 1.0)).collect(),
            activation: Activation::None,
            storage: Storage::Plain,
        };
        let mut layers = vec![layer(count, inputs, 3.0), layer(outputs, count, 7.0)];
        // A component that no vertex uses.
        layers[1].weights.iter_mut().skip(2).step_by(count).for_each(|w| *w = 0.0);
        let parts = GroupParts {
            bone: 0,
            vertices: (0..10).collect(),
            ghosts: vec![],
            inputs: (0..6).collect(),
            mean: vec![0.0; 6],
            scale: vec![1.0; 6],
            layers,
        };
        let fixed = with_fixed_point(&parts);
        let run = |parts: &GroupParts| {
            let mut x = vec![0.3, -0.7, 0.9, 0.1, -0.2, 0.5];
            for layer in &parts.layers {
                let row =
                    |(row, bias): (&[f32], &f32)| bias + row.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>();
                x = layer.weights.chunks_exact(x.len()).zip(&layer.bias).map(row).collect::<Vec<f32>>();
            }
            x
        };
        assert_eq!(fixed.layers[1].storage, Storage::Fixed);
        assert!(fixed.layers[1].weights.iter().all(|w| Storage::fixed(*w) == Some(*w)));
        let (a, b) = (run(&parts), run(&fixed));
        // Four coefficients up to 10, weights up to 7, half a step of 2⁻¹⁵ each.
        let tolerance = 4.0 * 10.0 * 7.0 / 65536.0;
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < tolerance), "{a:?}\n{b:?}");
    }
}
