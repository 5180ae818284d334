//! Small dense networks that see controls: what several kinds of twins have in common. Parts, packing and checks are here,
//! files in `file.rs`, derivatives in `gradient.rs`, rigid motions that such networks give in `motion.rs`.

pub(crate) mod file;
pub(crate) mod gradient;
pub mod motion;

use super::shared::{check_finite, check_length};
use crate::TwinError;
use crate::dense::{Activation, Layer, Precision};

/// A dense layer before it is packed: weights `[rows × columns]` by rows, then the bias.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DenseParts {
    /// `[rows × columns]`.
    pub weights: Vec<f32>,
    /// `[rows]`.
    pub bias: Vec<f32>,
}

/// The controls that a network sees, and how it normalises each.
#[derive(Debug, Clone)]
pub(crate) struct NormalisedInputs {
    pub(crate) inputs: Vec<u32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) scale: Vec<f32>,
}

impl NormalisedInputs {
    /// What the network reads: the controls that it sees, normalised.
    pub(crate) fn features(&self, controls: &[f32], out: &mut [f32]) {
        let normalised = self.inputs.iter().zip(self.mean.iter().zip(&self.scale));
        for (slot, (input, (mean, scale))) in out.iter_mut().zip(normalised) {
            *slot = (controls[*input as usize] - mean) * scale;
        }
    }
}

/// Packs a chain of dense layers; `tanh` follows all but the last where it is asked for.
pub(crate) fn pack_dense(
    name: &str,
    layers: &[DenseParts],
    inputs: usize,
    tanh: bool,
    precision: Precision,
) -> Result<Vec<Layer>, TwinError> {
    let mut columns = inputs;
    let mut out = Vec::with_capacity(layers.len());
    for (layer, data) in layers.iter().enumerate() {
        let inner = layer + 1 < layers.len();
        let activation = if tanh && inner { Activation::Tanh } else { Activation::None };
        let packed = Layer::pack(&data.weights, &data.bias, columns, activation, precision)
            .map_err(|error| TwinError::Layer { network: name.into(), layer, error })?;
        columns = packed.rows();
        out.push(packed);
    }
    Ok(out)
}

/// The reverse of [`pack_dense`].
pub(crate) fn unpack_dense<'a>(layers: impl IntoIterator<Item = &'a Layer>) -> Vec<DenseParts> {
    let layer = |layer: &Layer| {
        let (weights, bias) = layer.unpack();
        DenseParts { weights, bias }
    };
    layers.into_iter().map(layer).collect()
}

/// Every input is a control and has a mean and a scale.
pub(crate) fn check_inputs(
    name: &str,
    inputs: &[u32],
    mean: &[f32],
    scale: &[f32],
    controls: usize,
) -> Result<(), TwinError> {
    if let Some(&index) = inputs.iter().find(|input| **input as usize >= controls) {
        let what = format!("{name}: input");
        return Err(TwinError::Index { what, index: index as usize, count: controls });
    }
    for (what, numbers) in [("mean", mean), ("scale", scale)] {
        let what = format!("{name}: {what}");
        check_finite(&what, numbers.iter().map(|n| n.is_finite()))?;
        check_length(&what, numbers.len(), inputs.len())?;
    }
    Ok(())
}

/// Layers fit each other and end in so many numbers; their content is checked when they are packed.
pub(crate) fn check_chain(
    name: &str,
    layers: &[DenseParts],
    inputs: usize,
    outputs: usize,
) -> Result<(), TwinError> {
    let mut columns = inputs;
    for (layer, data) in layers.iter().enumerate() {
        let rows = data.bias.len();
        check_length(&format!("{name}: weights of layer {layer}"), data.weights.len(), rows * columns)?;
        columns = rows;
    }
    let last = if layers.is_empty() { 0 } else { columns };
    check_length(&format!("{name}: outputs of the last layer"), last, outputs)
}
