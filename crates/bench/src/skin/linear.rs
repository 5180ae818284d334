//! The cheapest models that a skin twin must beat, fitted to all training poses: linear regression from the controls to
//! every vertex, and principal components whose coefficients are regressed in the same way. Both are evaluated by our own
//! packed kernels with weights in 16 bits, as a twin's are.

use anyhow::{Result, anyhow};
use rayon::prelude::*;
use std::path::Path;
use understudy_core::linear_algebra::{Cholesky, SymmetricEigen};
use understudy_io::dataset::DatasetReader;
use understudy_runtime::dense::{Activation, Kernel, Layer, Precision};

/// How strongly regression is drawn to zero, relative to the mean square of the inputs.
const RIDGE: f64 = 1e-6;
/// Poses that principal components are found in.
const COMPONENT_POSES: usize = 400;
/// Numbers of a pose that are summed together: what stays in a core's cache for all inputs.
const BLOCK: usize = 1024;

/// `vertices = W controls + b`, or the same by components, as dense layers one after another.
pub struct LinearModel {
    layers: Vec<Layer>,
    buffers: [Vec<f32>; 2],
}

impl LinearModel {
    fn new(layers: Vec<Layer>) -> Self {
        let widest = layers.iter().map(|layer| layer.padded_rows().max(layer.columns())).max().unwrap_or(0);
        Self { layers, buffers: [vec![0.0; widest], vec![0.0; widest]] }
    }

    /// Size of the model.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(Layer::bytes).sum()
    }

    /// Places of all vertices, `[3 V]` cm.
    pub fn evaluate(&mut self, controls: &[f32]) -> &[f32] {
        let kernel = Kernel::detect();
        let [front, back] = &mut self.buffers;
        front[..controls.len()].copy_from_slice(controls);
        let (mut read, mut write) = (front, back);
        for layer in &self.layers {
            layer.apply(kernel, read, write);
            std::mem::swap(&mut read, &mut write);
        }
        &read[..self.layers.last().map_or(0, Layer::rows)]
    }
}

/// What both models are made of.
pub struct Fit {
    controls: usize,
    numbers: usize,
    /// Weights and bias, `[C + 1 × 3 V]`.
    weights: Vec<f64>,
    /// The longest first, of unit length, `[K][3 V]`.
    basis: Vec<Vec<f64>>,
}

impl Fit {
    /// To all poses of a dataset, a chunk in memory at a time.
    pub fn new(folder: &Path) -> Result<Self> {
        let reader = DatasetReader::open(folder)?;
        let (controls, poses) = (reader.header().controls.len(), reader.header().poses);
        let numbers = 3 * reader.rest().mesh.vertex_count();
        let wide = controls + 1;
        let (mut gram, mut weights) = (vec![0.0; wide * wide], vec![0.0; wide * numbers]);
        let mut examples: Vec<Vec<f32>> = Vec::new();
        let every = poses.div_ceil(COMPONENT_POSES).max(1);
        // Column blocks of the products, so that each is summed by one thread.
        for index in 0..reader.chunk_count() {
            let chunk = reader.chunk(index)?;
            let x: Vec<Vec<f64>> = chunk
                .poses()
                .chunks_exact(controls)
                .map(|pose| pose.iter().map(|c| f64::from(*c)).chain([1.0]).collect())
                .collect();
            for x in &x {
                for (row, a) in gram.chunks_exact_mut(wide).zip(x) {
                    row.iter_mut().zip(x).for_each(|(sum, b)| *sum += a * b);
                }
            }
            let y = chunk.vertices();
            let mut blocks: Vec<Vec<&mut [f64]>> = Vec::new();
            blocks.resize_with(numbers.div_ceil(BLOCK), Vec::new);
            for row in weights.chunks_exact_mut(numbers) {
                row.chunks_mut(BLOCK).zip(&mut blocks).for_each(|(part, block)| block.push(part));
            }
            blocks.into_par_iter().enumerate().for_each(|(block, mut rows)| {
                for (pose, x) in x.iter().enumerate() {
                    let y = &y[pose * numbers + block * BLOCK..];
                    for (row, x) in rows.iter_mut().zip(x).filter(|(_, x)| **x != 0.0) {
                        row.iter_mut().zip(y).for_each(|(sum, y)| *sum += x * f64::from(*y));
                    }
                }
            });
            let first = reader.header().chunk_poses(index).start;
            let chosen = y.chunks_exact(numbers).enumerate().filter(|(pose, _)| (first + pose) % every == 0);
            examples.extend(chosen.map(|(_, pose)| pose.to_vec()));
        }
        let ridge = RIDGE * (0..controls).map(|i| gram[i * wide + i]).sum::<f64>() / controls.max(1) as f64;
        (0..controls).for_each(|i| gram[i * wide + i] += ridge + f64::MIN_POSITIVE);
        let cholesky =
            Cholesky::new(&gram, wide).ok_or_else(|| anyhow!("the controls cannot be told apart"))?;
        cholesky.solve(&mut weights, numbers);
        Ok(Self { controls, numbers, weights, basis: principal(examples)? })
    }

    /// Regression of every number.
    pub fn regression(&self) -> Result<LinearModel> {
        let at = |row: usize, column: usize| self.weights[column * self.numbers + row] as f32;
        let rows = (0..self.numbers).flat_map(|row| (0..self.controls).map(move |column| at(row, column)));
        let bias: Vec<f32> = (0..self.numbers).map(|row| at(row, self.controls)).collect();
        Ok(LinearModel::new(vec![pack(&rows.collect::<Vec<f32>>(), &bias, self.controls)?]))
    }

    /// Regression of so many components' coefficients about the regression's own bias.
    pub fn components(&self, count: usize) -> Result<LinearModel> {
        let basis = &self.basis[..count.min(self.basis.len())];
        let coefficients = |way: &Vec<f64>| {
            let rows = self.weights.chunks_exact(self.numbers).take(self.controls);
            rows.map(|row| row.iter().zip(way).map(|(w, b)| w * b).sum::<f64>() as f32).collect::<Vec<f32>>()
        };
        let first: Vec<f32> = basis.par_iter().flat_map_iter(coefficients).collect();
        let bias: Vec<f32> = self.weights[self.controls * self.numbers..].iter().map(|b| *b as f32).collect();
        let second: Vec<f32> =
            (0..self.numbers).flat_map(|row| basis.iter().map(move |way| way[row] as f32)).collect();
        let layers =
            vec![pack(&first, &vec![0.0; basis.len()], self.controls)?, pack(&second, &bias, basis.len())?];
        Ok(LinearModel::new(layers))
    }
}

fn pack(weights: &[f32], bias: &[f32], columns: usize) -> Result<Layer> {
    Ok(Layer::pack(weights, bias, columns, Activation::None, Precision::Half)?)
}

/// Principal components, of unit length.
fn principal(mut poses: Vec<Vec<f32>>) -> Result<Vec<Vec<f64>>> {
    let (count, width) = (poses.len(), poses.first().map_or(0, Vec::len));
    let mut mean = vec![0.0f64; width];
    for pose in &poses {
        mean.iter_mut().zip(pose).for_each(|(sum, y)| *sum += f64::from(*y) / count as f64);
    }
    for pose in &mut poses {
        pose.iter_mut().zip(&mean).for_each(|(y, mean)| *y -= *mean as f32);
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let row = |i: usize| (0..count).map(|j| dot(&poses[i], &poses[j])).collect::<Vec<f64>>();
    let gram: Vec<f64> = (0..count).into_par_iter().flat_map_iter(row).collect();
    let eigen = SymmetricEigen::new(&gram, count).map_err(|error| anyhow!("{error}"))?;
    let least = 1e-9 * eigen.values.first().copied().unwrap_or(0.0);
    let kept = eigen.values.iter().take_while(|value| **value > least).count();
    let way = |k: usize| {
        let mut way = vec![0.0f64; width];
        for (pose, share) in poses.iter().zip(eigen.vector(k)) {
            way.iter_mut().zip(pose).for_each(|(sum, y)| *sum += share * f64::from(*y));
        }
        let length = way.iter().map(|w| w * w).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        way.iter_mut().for_each(|w| *w /= length);
        way
    };
    Ok((0..kept).into_par_iter().map(way).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_jobs::Silent;
    use understudy_jobs::sample::{SampleConfig, sample};

    #[test]
    fn more_components_are_nearer_to_the_regression_and_all_of_them_are_it() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let data = folder.path().join("data");
        let config = SampleConfig {
            rig: "rook".into(),
            output: data.clone(),
            poses: Some(90),
            ..SampleConfig::default()
        };
        sample(&config, &Silent).expect("rook is always there");
        let fit = Fit::new(&data).expect("it can be fitted");
        let record = DatasetReader::open(&data).expect("was written").chunk(0).expect("was written");
        let controls = &record.poses()[..fit.controls];
        let whole = fit.regression().expect("weights fit").evaluate(controls).to_vec();
        let misses = [2, 20, usize::MAX].map(|count| {
            let mut model = fit.components(count).expect("weights fit");
            let pairs = model.evaluate(controls).iter().zip(&whole);
            pairs.map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / whole.len() as f64
        });
        assert!(misses[0] > 2.0 * misses[1] && misses[2] < 0.05, "{misses:?}");
        // More controls than poses: what was trained on is met.
        let truth = &record.vertices()[..fit.numbers];
        let miss = whole.iter().zip(truth).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>();
        assert!(miss / (fit.numbers as f64) < 0.5, "{miss}");
    }
}
