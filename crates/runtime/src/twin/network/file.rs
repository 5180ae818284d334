//! Dense layers and motions in the files of twins.

use super::DenseParts;
use super::motion::MotionParts;
use crate::TwinError;
use crate::container::{Array, Opened};
use crate::dense::Precision;
use understudy_core::Vec3;

/// Arrays under construction.
pub(crate) struct Writer {
    arrays: Vec<(String, Array)>,
    precision: Precision,
}

impl Writer {
    pub(crate) fn new(precision: Precision) -> Self {
        Self { arrays: Vec::new(), precision }
    }

    pub(crate) fn finish(self) -> Vec<(String, Array)> {
        self.arrays
    }

    pub(crate) fn push(&mut self, name: String, array: Array) {
        self.arrays.push((name, array));
    }

    pub(crate) fn row(&mut self, name: String, numbers: &[f32]) {
        self.push(name, Array::floats(&[numbers.len()], numbers.iter().copied()));
    }

    pub(crate) fn points(&mut self, name: String, points: &[Vec3]) {
        self.push(name, Array::floats(&[points.len(), 3], points.iter().flat_map(|point| point.to_array())));
    }

    pub(crate) fn list(&mut self, name: String, numbers: &[u32]) {
        self.push(name, Array::integers(numbers.iter().copied()));
    }

    pub(crate) fn layers(&mut self, name: &str, layers: &[DenseParts]) {
        for (index, layer) in layers.iter().enumerate() {
            let rows = layer.bias.len();
            let shape = [rows, layer.weights.len() / rows.max(1)];
            let weights = Array::weights(&shape, &layer.weights, self.precision);
            self.push(format!("{name}.{index}.weights"), weights);
            self.row(format!("{name}.{index}.bias"), &layer.bias);
        }
    }

    pub(crate) fn motion(&mut self, name: &str, motion: &MotionParts) {
        self.row(format!("{name}.pivot"), &motion.pivot.to_array());
        self.list(format!("{name}.inputs"), &motion.inputs);
        self.row(format!("{name}.mean"), &motion.mean);
        self.row(format!("{name}.scale"), &motion.scale);
        self.layers(name, &motion.layers);
    }
}

/// A motion that [`Writer::motion`] wrote.
pub(crate) fn read_motion(
    file: &Opened<'_>,
    name: &str,
    count: usize,
    precision: &mut Precision,
) -> Result<MotionParts, TwinError> {
    let pivot = file.floats(&format!("{name}.pivot"), Some(3))?;
    let [x, y, z] = pivot[..] else {
        let problem = format!("{} numbers instead of 3", pivot.len());
        return Err(TwinError::Tensor { name: format!("{name}.pivot"), problem });
    };
    Ok(MotionParts {
        pivot: Vec3::new(x, y, z),
        inputs: file.integers(&format!("{name}.inputs"))?,
        mean: file.floats(&format!("{name}.mean"), None)?,
        scale: file.floats(&format!("{name}.scale"), None)?,
        layers: read_layers(file, name, count, precision)?,
    })
}

/// So many layers that [`Writer::layers`] wrote; of weights in 16 bits `precision` hears.
pub(crate) fn read_layers(
    file: &Opened<'_>,
    name: &str,
    count: usize,
    precision: &mut Precision,
) -> Result<Vec<DenseParts>, TwinError> {
    let mut out = Vec::new();
    for index in 0..count {
        let weights = format!("{name}.{index}.weights");
        if file.precision(&weights)? == Precision::Half {
            *precision = Precision::Half;
        }
        let bias = file.floats(&format!("{name}.{index}.bias"), None)?;
        out.push(DenseParts { weights: file.floats(&weights, None)?, bias });
    }
    Ok(out)
}
