//! What of the displacement before skinning is linear in the features: `v_nl ≈ v̄ + B x`, by ridge regression in closed
//! form. Most of a face rig is a sum of shapes, which a network of rectifiers only comes near; with this part taken out
//! first, networks learn what is left, and beyond the training poses the sum of shapes goes on as the rig does. It
//! passes through the reconstruction unchanged, so folding makes one small matrix of it.

use super::features::Features;
use super::nonlinear::Unskinning;
use super::plan::spread;
use crate::Recording;
use crate::matrix::{View, multiply};
use rayon::prelude::*;
use understudy_core::linear_algebra::SymmetricEigen;

/// Poses that the fit sees at most, those that choose the ridge, and vertices that it is chosen on.
const FITTED: usize = 4000;
const CHOOSING: usize = 200;
const CHOOSING_VERTICES: usize = 300;
/// Strengths of the ridge that are tried, of features of about unit variance.
const RIDGES: [f64; 6] = [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2];
/// A fit that leaves more of the squares on held-back poses than this is none.
const WORTH: f64 = 0.95;
/// Poses that are worked on together, and outputs.
const BLOCK: usize = 32;
const COLUMNS: usize = 3072;

/// The linear part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Linear {
    /// What it gives where all features are zero, `[3V]` cm; empty where there is no linear part.
    pub mean: Vec<f32>,
    /// `[3V × F]`; empty where there is no linear part.
    pub weights: Vec<f32>,
    /// Root of the share of the squares that it leaves on held-back poses; one without it.
    pub left: f64,
}

/// Displacements of poses, less their linear part.
#[derive(Clone, Copy)]
pub(super) struct Remainder<'a> {
    pub poses: &'a Recording,
    pub unskinning: &'a Unskinning,
    pub features: &'a Features,
    pub linear: &'a Linear,
}

impl Remainder<'_> {
    /// Of some poses, `[n × 3V]` cm, and how many blends were near-singular.
    pub fn of(&self, poses: &[usize]) -> (Vec<f32>, usize) {
        let (mut rows, singular) = displacements(self.poses, self.unskinning, poses);
        self.linear.add(self.features, poses, -1.0, &mut rows);
        (rows, singular)
    }
}

/// Whole displacements of some poses, `[n × 3V]` cm, and how many blends were near-singular.
fn displacements(poses: &Recording, unskinning: &Unskinning, chosen: &[usize]) -> (Vec<f32>, usize) {
    let mut rows = Vec::with_capacity(chosen.len() * 3 * poses.mesh.vertex_count());
    let mut singular = 0;
    for pose in chosen {
        let bones = if unskinning.weights.is_some() { poses.bones_of(*pose) } else { &[] };
        let (all, guarded) = unskinning.displacements(bones, poses.vertices_of(*pose));
        rows.extend(all.iter().flat_map(|v| v.to_array()));
        singular += guarded;
    }
    (rows, singular)
}

impl Linear {
    /// None.
    pub fn none() -> Self {
        Self { left: 1.0, ..Self::default() }
    }

    /// Adds it to rows of displacements, times `sign`: `[n × 3V]` cm of so many poses.
    pub fn add(&self, features: &Features, poses: &[usize], sign: f32, rows: &mut [f32]) {
        if self.weights.is_empty() {
            return;
        }
        let (width, count) = (self.mean.len(), features.count());
        for (poses, rows) in poses.chunks(BLOCK).zip(rows.chunks_mut(BLOCK * width)) {
            let seen: Vec<f32> =
                poses.iter().flat_map(|pose| features.of(*pose).iter().map(|x| sign * x)).collect();
            let weights = View::new(&self.weights, width, count).transposed();
            multiply(rows, 1.0, View::new(&seen, poses.len(), count), weights);
            for row in rows.chunks_exact_mut(width) {
                row.iter_mut().zip(&self.mean).for_each(|(out, mean)| *out += sign * mean);
            }
        }
    }

    /// Fits it to poses that are trained on; the ridge is what leaves least on held-back ones, and where nothing leaves
    /// less than the mean does there is no linear part.
    pub fn fit(
        poses: &Recording,
        unskinning: &Unskinning,
        features: &Features,
        trained: &[usize],
        held: &[usize],
    ) -> Self {
        let (width, count) = (3 * poses.mesh.vertex_count(), features.count());
        let chosen = spread(trained, FITTED);
        if held.is_empty() || chosen.len() < 2 * FEWEST {
            return Self::none();
        }
        let n = chosen.len() as f64;
        let mut middle = vec![0.0f64; count];
        for pose in &chosen {
            middle.iter_mut().zip(features.of(*pose)).for_each(|(sum, x)| *sum += f64::from(*x) / n);
        }
        let centred = |poses: &[usize]| -> Vec<f64> {
            let one = |pose: &usize| features.of(*pose).iter().zip(&middle).map(|(x, m)| f64::from(*x) - m);
            poses.iter().flat_map(one).collect()
        };
        // Xᵀ X, Xᵀ V and the mean of V, in f64: the inverse amplifies what rounding leaves.
        let (mut gram, mut cross) = (vec![0.0f64; count * count], vec![0.0f64; count * width]);
        let mut sums = vec![0.0f64; width];
        for block in chosen.chunks(4 * BLOCK) {
            let seen = centred(block);
            let seen = View::new(&seen, block.len(), count);
            multiply(&mut gram, 1.0, seen.transposed(), seen);
            let rows: Vec<Vec<f32>> =
                block.par_iter().map(|pose| displacements(poses, unskinning, &[*pose]).0).collect();
            // Column-wise parts of the products, one after another in `cross`.
            let parts = cross.par_chunks_mut(count * COLUMNS).zip(sums.par_chunks_mut(COLUMNS));
            parts.enumerate().for_each(|(part, (cross, sums))| {
                let columns = part * COLUMNS..part * COLUMNS + sums.len();
                let own: Vec<f64> =
                    rows.iter().flat_map(|row| row[columns.clone()].iter().map(|v| f64::from(*v))).collect();
                for row in own.chunks_exact(sums.len()) {
                    sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += v / n);
                }
                multiply(cross, 1.0, seen.transposed(), View::new(&own, block.len(), sums.len()));
            });
        }
        let Ok(eigen) = SymmetricEigen::new(&gram, count) else { return Self::none() };
        let inverse = |ridge: f64| -> Vec<f64> {
            let scaled: Vec<f64> = (0..count)
                .flat_map(|k| {
                    let size = eigen.values[k].max(0.0) + ridge * n;
                    eigen.vector(k).iter().map(move |q| q / size)
                })
                .collect();
            let plain: Vec<f64> = (0..count).flat_map(|k| eigen.vector(k).to_vec()).collect();
            let mut out = vec![0.0f64; count * count];
            multiply(
                &mut out,
                0.0,
                View::new(&scaled, count, count).transposed(),
                View::new(&plain, count, count),
            );
            out
        };
        // The ridge, on some outputs and held-back poses.
        let held = spread(held, CHOOSING);
        let vertices = spread(&(0..width / 3).collect::<Vec<_>>(), CHOOSING_VERTICES);
        let outputs: Vec<usize> = vertices.iter().flat_map(|v| [3 * v, 3 * v + 1, 3 * v + 2]).collect();
        let at = |feature: usize, output: usize| {
            let (part, size) = (output / COLUMNS, COLUMNS.min(width - output / COLUMNS * COLUMNS));
            part * count * COLUMNS + feature * size + output % COLUMNS
        };
        let some: Vec<f64> = (0..count)
            .flat_map(|feature| outputs.iter().map(move |o| (feature, *o)))
            .map(|(f, o)| cross[at(f, o)])
            .collect();
        let truth: Vec<f64> = held
            .iter()
            .flat_map(|pose| {
                let row = displacements(poses, unskinning, &[*pose]).0;
                outputs.iter().map(|o| f64::from(row[*o]) - sums[*o]).collect::<Vec<_>>()
            })
            .collect();
        let seen = centred(&held);
        let squares = |numbers: &[f64]| numbers.iter().map(|v| v * v).sum::<f64>();
        let left = |ridge: f64| {
            let mut weights = vec![0.0f64; count * outputs.len()];
            let inverse = inverse(ridge);
            multiply(
                &mut weights,
                0.0,
                View::new(&inverse, count, count),
                View::new(&some, count, outputs.len()),
            );
            let mut rows = truth.iter().map(|t| -t).collect::<Vec<f64>>();
            multiply(
                &mut rows,
                1.0,
                View::new(&seen, held.len(), count),
                View::new(&weights, count, outputs.len()),
            );
            squares(&rows)
        };
        let tried = RIDGES.map(|ridge| (left(ridge), ridge));
        let best = tried.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((least, ridge)) = best.filter(|(least, _)| *least < WORTH * squares(&truth)) else {
            return Self::none();
        };
        let inverse = inverse(ridge);
        let mut weights = vec![0.0f32; width * count];
        let mut mean = vec![0.0f32; width];
        let parts = weights.par_chunks_mut(COLUMNS * count).zip(mean.par_chunks_mut(COLUMNS));
        parts.enumerate().for_each(|(part, (weights, mean))| {
            let size = mean.len();
            let own = View::new(&cross[part * count * COLUMNS..][..count * size], count, size);
            let mut solved = vec![0.0f64; size * count];
            // Turned, as outputs are the rows of the weights; the inverse is symmetric.
            multiply(&mut solved, 0.0, own.transposed(), View::new(&inverse, count, count));
            for (output, row) in solved.chunks_exact(count).enumerate() {
                let shift: f64 = row.iter().zip(&middle).map(|(w, m)| w * m).sum();
                mean[output] = (sums[part * COLUMNS + output] - shift) as f32;
            }
            weights.iter_mut().zip(&solved).for_each(|(w, s)| *w = *s as f32);
        });
        Self { mean, weights, left: (least / squares(&truth).max(f64::MIN_POSITIVE)).sqrt() }
    }
}

/// Fewer poses than twice this say nothing about what is linear.
const FEWEST: usize = 20;
