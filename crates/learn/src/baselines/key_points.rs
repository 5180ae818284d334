//! Key-point subspace acceleration (Meyer and Anderson 2007): a point of a linear subspace is found from a few vertices
//! by least squares. The true ones are those of the rig, which an engine would have to evaluate for them; predicted ones
//! come from ridge regression and a small network for what it leaves, as no twin may ask the rig.

use super::subspace::{Subspace, ridge_regression};
use super::{Approximation, Examples, Parameters};
use crate::dense::train::{TrainSettings, train};
use crate::dense::{Net, Pass};
use crate::diff::components::Basis;
use crate::matrix::{View, multiply};
use crate::{Frame, Recording};
use rayon::prelude::*;
use std::sync::Arc;
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Random, Vec3};

/// Key points, as the differential-twin paper has them.
const KEY_POINTS: usize = 274;
/// Keeps the least-squares problem solvable where key points tell vectors apart badly: a share of its mean diagonal.
const RIDGE: f64 = 1e-6;
/// Most numbers that the network sees: principal components of what a pose is told by.
const SEEN: usize = 512;
/// Its two hidden layers.
const HIDDEN: usize = 128;
const EPOCHS: usize = 80;

/// `kpsa` where the key points are the true ones, `kpsa_predicted` where they are predicted.
///
/// Key points are chosen greedily: the vertex whose three rows of the basis are least explained by those chosen before,
/// and from the beginning again once all vectors are told apart. (The paper rotates the basis by varimax and takes its
/// extrema.)
pub struct KeyPointSubspace {
    subspace: Arc<Subspace>,
    points: Vec<u32>,
    /// From the key points' offsets to coefficients, `[K × 3 P]`.
    solve: Vec<f32>,
    predictor: Option<Predictor>,
}

/// From a pose's numbers to the key points' offsets: a linear function, and a network for what it leaves.
struct Predictor {
    /// `[F × 3 P]`.
    linear: Vec<f32>,
    /// Rows `[S × F]` that the numbers are projected on.
    projection: Vec<f32>,
    net: Net,
    /// What the network's outputs are multiplied by, cm; zero where it does not beat the linear function on poses that it
    /// did not see.
    scale: f32,
}

impl KeyPointSubspace {
    /// With the true key points.
    pub(super) fn fit(subspace: &Arc<Subspace>) -> Self {
        let points = choose(subspace, KEY_POINTS);
        let solve = solver(subspace, &points);
        Self { subspace: Arc::clone(subspace), points, solve, predictor: None }
    }

    /// With key points that are predicted, by what is fitted to the same poses.
    pub(super) fn fit_predicted(poses: &Recording, subspace: &Arc<Subspace>) -> Self {
        let mut out = Self::fit(subspace);
        out.predictor = Some(Predictor::fit(poses, &out));
        out
    }

    /// Offsets of the key points from their means in a pose, without the root's motion.
    fn true_offsets(&self, frame: Frame<'_>) -> Vec<f32> {
        let back = self.subspace.root().motion(frame).inverse();
        let offset = |point: &u32| {
            let place = back.transform_point3(frame.vertices[*point as usize]);
            let mean = Vec3::from_slice(&self.subspace.mean[3 * *point as usize..]);
            (place - mean).to_array()
        };
        self.points.iter().flat_map(offset).collect()
    }

    /// From what [`Approximation::parameters`] gave.
    pub(super) fn restore(examples: &Examples<'_>, parameters: &Parameters, predicted: bool) -> Option<Self> {
        let subspace = Subspace::restore(examples, parameters)?;
        let points = parameters.integers.get(1)?.clone();
        let solve = parameters.floats.get(4)?.clone();
        let fits = points.iter().all(|point| (*point as usize) < examples.rest.len())
            && solve.len() == subspace.count() * 3 * points.len();
        if !fits {
            return None;
        }
        let predictor = match predicted {
            true => Some(Predictor::restore(parameters, subspace.numbers.count(), 3 * points.len())?),
            false => None,
        };
        Some(Self { subspace: Arc::new(subspace), points, solve, predictor })
    }
}

impl Approximation for KeyPointSubspace {
    fn name(&self) -> &str {
        if self.predictor.is_some() { "kpsa_predicted" } else { "kpsa" }
    }

    fn bytes(&self) -> usize {
        let predictor = self.predictor.as_ref().map_or(0, |p| {
            p.linear.len() + if p.scale > 0.0 { p.projection.len() + p.net.parameters.len() } else { 0 }
        });
        self.subspace.bytes() + 4 * (self.points.len() + self.solve.len() + predictor)
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        let offsets = match &self.predictor {
            None => self.true_offsets(frame),
            Some(predictor) => predictor.offsets(&self.subspace.numbers.values(frame)),
        };
        let dot = |row: &[f32]| row.iter().zip(&offsets).map(|(a, b)| a * b).sum::<f32>();
        let coefficients: Vec<f32> = self.solve.chunks_exact(offsets.len().max(1)).map(dot).collect();
        self.subspace.place(frame, &coefficients, out);
    }

    fn parameters(&self) -> Parameters {
        let mut parameters = self.subspace.parameters();
        parameters.integers.push(self.points.clone());
        parameters.floats.push(self.solve.clone());
        if let Some(predictor) = &self.predictor {
            parameters.floats.push(predictor.linear.clone());
            parameters.floats.push(predictor.projection.clone());
            parameters.floats.push(predictor.net.parameters.clone());
            parameters.floats.push(vec![predictor.scale]);
        }
        parameters
    }
}

impl Predictor {
    fn sizes(seen: usize, outputs: usize) -> [usize; 4] {
        [seen, HIDDEN, HIDDEN, outputs]
    }

    fn fit(poses: &Recording, key_points: &KeyPointSubspace) -> Self {
        let numbers = &key_points.subspace.numbers;
        let (n, f, outputs) = (poses.len(), numbers.count(), 3 * key_points.points.len());
        let rows: Vec<f32> = (0..n).flat_map(|pose| numbers.values(poses.frame(pose))).collect();
        // Where there are few numbers the network sees all of them.
        let projection = match f > SEEN && n > 1 {
            true => Basis::new(&mut rows.clone(), f, SEEN).rows,
            false => (0..f * f).map(|i| f32::from(u8::from(i % (f + 1) == 0))).collect(),
        };
        let seen = projection.len() / f.max(1);
        let mut inputs = vec![0.0f32; n * seen];
        if seen > 0 && f > 0 {
            let projection = View::new(&projection, seen, f);
            multiply(&mut inputs, 0.0, View::new(&rows, n, f), projection.transposed());
        }
        let mut targets: Vec<f32> =
            (0..n).flat_map(|pose| key_points.true_offsets(poses.frame(pose))).collect();
        let settings =
            TrainSettings { epochs: EPOCHS, batch: 32, patience: EPOCHS / 4, ..TrainSettings::default() };
        let held = settings.held_back(n);
        let (kept_numbers, kept_targets) = (without(&rows, f, &held), without(&targets, outputs, &held));
        let linear = ridge_regression(&kept_numbers, &kept_targets, n - held.len(), f, outputs);
        if f > 0 && outputs > 0 {
            let negative: Vec<f32> = linear.iter().map(|weight| -weight).collect();
            multiply(&mut targets, 1.0, View::new(&rows, n, f), View::new(&negative, f, outputs));
        }
        let power = |rows: &[f32]| rows.iter().map(|t| f64::from(*t).powi(2)).sum::<f64>() / n.max(1) as f64;
        let mut scale = (power(&targets) / outputs.max(1) as f64).sqrt() as f32;
        let mut net = Net::new(&Self::sizes(seen, outputs), &mut Random::new(1));
        if seen > 0 && outputs > 0 && scale > 0.0 {
            targets.iter_mut().for_each(|target| *target /= scale);
            let report = train(&mut net, &inputs, &targets, &held, &settings, |_, _| true);
            let judged: Vec<f32> = match held.is_empty() {
                true => targets,
                false => held
                    .iter()
                    .flat_map(|row| targets[*row as usize * outputs..][..outputs].to_vec())
                    .collect(),
            };
            let rows = (judged.len() / outputs).max(1) as f64;
            let silent = (judged.iter().map(|t| f64::from(*t).powi(2)).sum::<f64>() / rows).sqrt();
            if report.validation >= silent || !report.validation.is_finite() {
                scale = 0.0;
            }
        }
        Self { linear, projection, net, scale }
    }

    fn offsets(&self, numbers: &[f32]) -> Vec<f32> {
        let dot = |row: &[f32]| row.iter().zip(numbers).map(|(a, b)| a * b).sum::<f32>();
        let seen: Vec<f32> = self.projection.chunks_exact(numbers.len().max(1)).map(dot).collect();
        let mut out = vec![0.0; self.net.sizes().last().copied().unwrap_or(0)];
        for (number, row) in numbers.iter().zip(self.linear.chunks_exact(out.len().max(1))) {
            out.iter_mut().zip(row).for_each(|(sum, weight)| *sum += number * weight);
        }
        if self.scale > 0.0 {
            let mut pass = Pass::new(&self.net, 1);
            let offsets = pass.forward(&self.net, &seen, 1);
            out.iter_mut().zip(offsets).for_each(|(sum, offset)| *sum += offset * self.scale);
        }
        out
    }

    fn restore(parameters: &Parameters, numbers: usize, outputs: usize) -> Option<Self> {
        let [_, _, _, _, _, linear, projection, weights, scale] = &parameters.floats[..] else { return None };
        let seen = projection.len() / numbers.max(1);
        let mut net = Net::new(&Self::sizes(seen, outputs), &mut Random::new(1));
        let fits = linear.len() == numbers * outputs
            && projection.len() == seen * numbers
            && weights.len() == net.parameters.len();
        let scale = *scale.first().filter(|_| fits)?;
        net.parameters.copy_from_slice(weights);
        Some(Self { linear: linear.clone(), projection: projection.clone(), net, scale })
    }
}

/// The rows that are not held back.
fn without(rows: &[f32], width: usize, held: &[u32]) -> Vec<f32> {
    let kept = rows.chunks_exact(width.max(1)).enumerate();
    kept.filter(|(row, _)| held.binary_search(&(*row as u32)).is_err())
        .flat_map(|(_, row)| row.to_vec())
        .collect()
}

/// `(A Aᵀ + ε)⁻¹ A` of the basis' columns `A` `[K × 3 P]` of the key points.
fn solver(subspace: &Subspace, points: &[u32]) -> Vec<f32> {
    let (k, width, columns) = (subspace.count(), subspace.mean.len(), 3 * points.len());
    let mut solve: Vec<f64> = Vec::with_capacity(k * columns);
    for row in subspace.rows.chunks_exact(width.max(1)) {
        let of =
            |point: &u32| row[3 * *point as usize..3 * *point as usize + 3].iter().map(|r| f64::from(*r));
        points.iter().for_each(|point| solve.extend(of(point)));
    }
    let mut gram = vec![0.0; k * k];
    if k > 0 {
        let view = View::new(&solve, k, columns);
        multiply(&mut gram, 0.0, view, view.transposed());
    }
    let ridge = RIDGE * (0..k).map(|i| gram[i * k + i]).sum::<f64>() / k.max(1) as f64 + f64::MIN_POSITIVE;
    (0..k).for_each(|i| gram[i * k + i] += ridge);
    match Cholesky::new(&gram, k) {
        Some(factor) => factor.solve(&mut solve, columns),
        // No key point moves: nothing can be told.
        None => solve.fill(0.0),
    }
    solve.into_iter().map(|s| s as f32).collect()
}

/// Vertices that tell the vectors apart best, in the order of their choice.
fn choose(subspace: &Subspace, wanted: usize) -> Vec<u32> {
    let (k, width) = (subspace.count(), subspace.mean.len());
    let vertices = width / 3;
    let wanted = wanted.min(vertices);
    // Rows of the basis by vertex, `[V][3 × K]`.
    let mut fresh = vec![0.0f32; width * k];
    fresh.par_chunks_mut((3 * k).max(1)).enumerate().for_each(|(vertex, out)| {
        for (axis, row) in out.chunks_exact_mut(k).enumerate() {
            row.iter_mut()
                .enumerate()
                .for_each(|(j, slot)| *slot = subspace.rows[j * width + 3 * vertex + axis]);
        }
    });
    let mut left = fresh.clone();
    let mut taken = vec![false; vertices];
    let (mut points, mut spanned) = (Vec::new(), 0);
    while points.len() < wanted && k > 0 {
        let squares = |rows: &[f32]| rows.iter().map(|r| f64::from(*r).powi(2)).sum::<f64>();
        let energy: Vec<f64> = left.par_chunks(3 * k).map(squares).collect();
        let open = (0..vertices).filter(|vertex| !taken[*vertex]);
        let Some(best) = open.max_by(|a, b| energy[*a].total_cmp(&energy[*b])) else { break };
        // All directions are told apart: the others are chosen as if there were none yet.
        if spanned >= k || energy[best] < 1e-10 {
            if spanned == 0 {
                break;
            }
            left.copy_from_slice(&fresh);
            spanned = 0;
            continue;
        }
        taken[best] = true;
        points.push(best as u32);
        let mut directions: Vec<Vec<f32>> = Vec::new();
        for row in left[best * 3 * k..(best + 1) * 3 * k].chunks_exact(k) {
            let mut row = row.to_vec();
            for direction in &directions {
                let along: f32 = row.iter().zip(direction).map(|(r, d)| r * d).sum();
                row.iter_mut().zip(direction).for_each(|(r, d)| *r -= along * d);
            }
            let length = squares(&row).sqrt() as f32;
            if length > 1e-5 {
                row.iter_mut().for_each(|r| *r /= length);
                directions.push(row);
            }
        }
        spanned += directions.len().max(1);
        left.par_chunks_exact_mut(k).for_each(|row| {
            for direction in &directions {
                let along: f32 = row.iter().zip(direction).map(|(r, d)| r * d).sum();
                row.iter_mut().zip(direction).for_each(|(r, d)| *r -= along * d);
            }
        });
    }
    // Vertices that never move are as good as any: none is needed.
    points
}
