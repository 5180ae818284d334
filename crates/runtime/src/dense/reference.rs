//! The slow truth: plain loops over the packed weights, sums in f64.

use super::{Activation, Layer, PANEL};

/// One weight of the packed storage.
pub fn weight(layer: &Layer, row: usize, column: usize) -> f32 {
    let place = (row / PANEL * layer.columns() + column) * PANEL + row % PANEL;
    layer.weights().number(place)
}

/// `y = a(W x + b)`, padding included.
pub fn apply(layer: &Layer, x: &[f32], y: &mut [f32]) {
    for (row, out) in y.iter_mut().enumerate() {
        let mut sum = f64::from(layer.bias()[row]);
        for (column, &value) in x.iter().enumerate() {
            sum += f64::from(weight(layer, row, column)) * f64::from(value);
        }
        *out = match layer.activation() {
            Activation::None => sum as f32,
            Activation::Tanh => sum.tanh() as f32,
        };
    }
}
