//! Poses as points of a linear subspace: principal components of where the vertices are once the motion of the root is
//! taken out. [`LinearSubspace`] predicts the point by linear regression; `key_points` finds it from a few vertices.

use super::{Approximation, Examples, Parameters};
use crate::diff::components::Basis;
use crate::matrix::{View, multiply};
use crate::{Frame, Recording};
use std::sync::Arc;
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Affine3A, Vec3};

/// Vectors of the subspace: as many as the differential-twin paper gives to key-point acceleration.
pub(super) const VECTORS: usize = 200;
/// Numbers of a bone's transform.
const BONE_NUMBERS: usize = 12;
/// A number that varies by less, root mean square, is taken for constant.
const CONSTANT: f64 = 1e-5;
/// Strengths of the ridge that are tried, as shares of the mean of the kernel's diagonal.
const RIDGES: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];

/// What a pose is told by: the twelve numbers of every bone in the root's frame, and the controls. Normalised, without
/// those that never change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PoseNumbers {
    root: Root,
    inputs: Vec<u32>,
    mean: Vec<f32>,
    scale: Vec<f32>,
}

/// The bone whose motion is taken out, where there is exactly one that no other moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Root {
    bone: Option<(usize, Affine3A)>,
}

impl Root {
    fn of(examples: &Examples<'_>) -> Self {
        let skeleton = examples.poses.skeleton.as_ref();
        let mut roots = skeleton.into_iter().flat_map(|skeleton| {
            skeleton.bones().iter().enumerate().filter(|(_, bone)| bone.parent.is_none())
        });
        let bone = match (roots.next(), roots.next()) {
            (Some((root, _)), None) => Some((root, examples.inverse_rest[root])),
            _ => None,
        };
        Self { bone }
    }

    /// From the rest place of the root to the pose's; nothing where it cannot be undone.
    pub fn motion(&self, frame: Frame<'_>) -> Affine3A {
        let motion = self.bone.map(|(bone, inverse_rest)| frame.bones[bone] * inverse_rest);
        motion.filter(|m| m.matrix3.determinant().abs() > 1e-6).unwrap_or(Affine3A::IDENTITY)
    }
}

impl PoseNumbers {
    fn of(examples: &Examples<'_>) -> Self {
        let (poses, root) = (examples.poses, Root::of(examples));
        let mut all = Self { root, inputs: Vec::new(), mean: Vec::new(), scale: Vec::new() };
        let rows: Vec<Vec<f32>> = (0..poses.len()).map(|pose| all.raw(poses.frame(pose))).collect();
        let count = rows.len().max(1) as f64;
        for number in 0..rows.first().map_or(0, Vec::len) {
            let column = || rows.iter().map(|row| f64::from(row[number]));
            let mean = column().sum::<f64>() / count;
            let deviation = (column().map(|n| (n - mean).powi(2)).sum::<f64>() / count).sqrt();
            if deviation > CONSTANT {
                all.inputs.push(number as u32);
                all.mean.push(mean as f32);
                all.scale.push((1.0 / deviation) as f32);
            }
        }
        all
    }

    fn raw(&self, frame: Frame<'_>) -> Vec<f32> {
        let to_root = self.root.motion(frame).inverse();
        let mut numbers = Vec::with_capacity(frame.bones.len() * BONE_NUMBERS + frame.controls.len());
        frame.bones.iter().for_each(|bone| numbers.extend((to_root * *bone).to_cols_array()));
        numbers.extend_from_slice(frame.controls);
        numbers
    }

    /// `[F]`.
    pub fn values(&self, frame: Frame<'_>) -> Vec<f32> {
        let raw = self.raw(frame);
        let numbers = self.inputs.iter().zip(self.mean.iter().zip(&self.scale));
        numbers.map(|(input, (mean, scale))| (raw[*input as usize] - mean) * scale).collect()
    }

    pub fn count(&self) -> usize {
        self.inputs.len()
    }

    fn restore(examples: &Examples<'_>, inputs: &[u32], mean: &[f32], scale: &[f32]) -> Option<Self> {
        let poses = examples.poses;
        let most = poses.bone_count() * BONE_NUMBERS + poses.specs.len();
        let fits = inputs.iter().all(|input| (*input as usize) < most);
        (fits && mean.len() == inputs.len() && scale.len() == inputs.len()).then(|| Self {
            root: Root::of(examples),
            inputs: inputs.to_vec(),
            mean: mean.to_vec(),
            scale: scale.to_vec(),
        })
    }
}

/// The subspace, and what poses are told by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Subspace {
    pub numbers: PoseNumbers,
    /// `[3 V]`.
    pub mean: Vec<f32>,
    /// `[K × 3 V]`, rows orthonormal, most variance first.
    pub rows: Vec<f32>,
}

/// Vertices of a pose without the root's motion, as numbers.
fn still(root: &Root, frame: Frame<'_>) -> impl Iterator<Item = f32> {
    let back = root.motion(frame).inverse();
    frame.vertices.iter().flat_map(move |v| back.transform_point3(*v).to_array())
}

impl Subspace {
    /// Of all examples, and the coefficients of each, `[N × K]`.
    pub fn fit(examples: &Examples<'_>, vectors: usize) -> (Self, Vec<f32>) {
        let (poses, numbers) = (examples.poses, PoseNumbers::of(examples));
        let width = 3 * poses.mesh.vertex_count();
        let mut rows: Vec<f32> = Vec::with_capacity(poses.len() * width);
        (0..poses.len()).for_each(|pose| rows.extend(still(&numbers.root, poses.frame(pose))));
        let Basis { mean, rows: basis, deviations } = Basis::new(&mut rows, width, vectors);
        let (n, k) = (poses.len(), deviations.len());
        let mut coefficients = vec![0.0; n * k];
        if k > 0 {
            let basis = View::new(&basis, k, width);
            multiply(&mut coefficients, 0.0, View::new(&rows, n, width), basis.transposed());
        }
        (Self { numbers, mean, rows: basis }, coefficients)
    }

    /// Number of vectors.
    pub fn count(&self) -> usize {
        self.rows.len() / self.mean.len().max(1)
    }

    /// Root of the motion that is taken out.
    pub fn root(&self) -> &Root {
        &self.numbers.root
    }

    /// The vertices at a point of the subspace, with the root's motion again.
    pub fn place(&self, frame: Frame<'_>, coefficients: &[f32], out: &mut [Vec3]) {
        let mut flat = self.mean.clone();
        for (coefficient, row) in coefficients.iter().zip(self.rows.chunks_exact(self.mean.len().max(1))) {
            flat.iter_mut().zip(row).for_each(|(sum, r)| *sum += coefficient * r);
        }
        let motion = self.numbers.root.motion(frame);
        for (vertex, place) in out.iter_mut().zip(flat.chunks_exact(3)) {
            *vertex = motion.transform_point3(Vec3::from_slice(place));
        }
    }

    pub fn bytes(&self) -> usize {
        4 * (self.mean.len() + self.rows.len() + 2 * self.numbers.count())
    }

    pub fn parameters(&self) -> Parameters {
        let PoseNumbers { inputs, mean, scale, .. } = &self.numbers;
        Parameters {
            integers: vec![inputs.clone()],
            floats: vec![mean.clone(), scale.clone(), self.mean.clone(), self.rows.clone()],
        }
    }

    /// The first lists of `parameters`; `None` where they are of another mesh or rig.
    pub fn restore(examples: &Examples<'_>, parameters: &Parameters) -> Option<Self> {
        let [inputs, ..] = &parameters.integers[..] else { return None };
        let [number_mean, scale, mean, rows, ..] = &parameters.floats[..] else { return None };
        let numbers = PoseNumbers::restore(examples, inputs, number_mean, scale)?;
        let width = 3 * examples.rest.len();
        (mean.len() == width && rows.len() % width.max(1) == 0).then(|| Self {
            numbers,
            mean: mean.clone(),
            rows: rows.clone(),
        })
    }
}

/// `pca`: principal components of the vertices whose coefficients are a linear function of bones and controls, found by
/// ridge regression. A fifth of the poses, held back, chooses the ridge.
pub struct LinearSubspace {
    subspace: Arc<Subspace>,
    /// `[F × K]`.
    weights: Vec<f32>,
}

impl LinearSubspace {
    /// On a subspace that was fitted to the same examples, with their coefficients.
    pub(super) fn fit(poses: &Recording, subspace: &Arc<Subspace>, coefficients: &[f32]) -> Self {
        let (n, k) = (poses.len(), subspace.count());
        let numbers: Vec<f32> = (0..n).flat_map(|pose| subspace.numbers.values(poses.frame(pose))).collect();
        let weights = ridge_regression(&numbers, coefficients, n, subspace.numbers.count(), k);
        Self { subspace: Arc::clone(subspace), weights }
    }

    pub(super) fn restore(examples: &Examples<'_>, parameters: &Parameters) -> Option<Self> {
        let subspace = Subspace::restore(examples, parameters)?;
        let weights = parameters.floats.get(4)?;
        let fits = weights.len() == subspace.numbers.count() * subspace.count();
        fits.then(|| Self { weights: weights.clone(), subspace: Arc::new(subspace) })
    }
}

impl Approximation for LinearSubspace {
    fn name(&self) -> &str {
        "pca"
    }

    fn bytes(&self) -> usize {
        self.subspace.bytes() + 4 * self.weights.len()
    }

    fn evaluate(&self, frame: Frame<'_>, out: &mut [Vec3]) {
        let k = self.subspace.count();
        let mut coefficients = vec![0.0f32; k];
        let numbers = self.subspace.numbers.values(frame);
        for (number, row) in numbers.iter().zip(self.weights.chunks_exact(k.max(1))) {
            coefficients.iter_mut().zip(row).for_each(|(sum, w)| *sum += number * w);
        }
        self.subspace.place(frame, &coefficients, out);
    }

    fn parameters(&self) -> Parameters {
        let mut parameters = self.subspace.parameters();
        parameters.floats.push(self.weights.clone());
        parameters
    }
}

/// `W = Xᵀ (X Xᵀ + λ)⁻¹ Y` of `x` `[n × f]` and `y` `[n × k]`, both about their means: `[f × k]`. The ridge `λ` is the
/// one that predicts a fifth of the rows best when the others are fitted.
pub(crate) fn ridge_regression(x: &[f32], y: &[f32], n: usize, f: usize, k: usize) -> Vec<f32> {
    if n == 0 || f == 0 || k == 0 {
        return vec![0.0; f * k];
    }
    let (x, y): (Vec<f64>, Vec<f64>) =
        (x.iter().map(|v| f64::from(*v)).collect(), y.iter().map(|v| f64::from(*v)).collect());
    let mut kernel = vec![0.0; n * n];
    let view = View::new(&x, n, f);
    multiply(&mut kernel, 0.0, view, view.transposed());
    let diagonal = (0..n).map(|i| kernel[i * n + i]).sum::<f64>() / n as f64;
    let solve = |rows: &[usize], ridge: f64| -> Option<Vec<f64>> {
        let m = rows.len();
        let mut system = vec![0.0; m * m];
        for (i, a) in rows.iter().enumerate() {
            rows.iter().enumerate().for_each(|(j, b)| system[i * m + j] = kernel[a * n + b]);
            system[i * m + i] += ridge;
        }
        let mut right: Vec<f64> = rows.iter().flat_map(|row| y[row * k..(row + 1) * k].to_vec()).collect();
        Cholesky::new(&system, m)?.solve(&mut right, k);
        Some(right)
    };
    let held: Vec<usize> = (0..n).skip(2).step_by(5).collect();
    let fitted: Vec<usize> = (0..n).filter(|row| row % 5 != 2).collect();
    let error = |ridge: f64| -> f64 {
        let Some(dual) = solve(&fitted, ridge) else { return f64::INFINITY };
        let m = fitted.len();
        let across: Vec<f64> =
            held.iter().flat_map(|a| fitted.iter().map(|b| kernel[a * n + b]).collect::<Vec<_>>()).collect();
        let mut predicted = vec![0.0; held.len() * k];
        multiply(&mut predicted, 0.0, View::new(&across, held.len(), m), View::new(&dual, m, k));
        let truth = held.iter().flat_map(|row| &y[row * k..(row + 1) * k]);
        predicted.iter().zip(truth).map(|(p, t)| (p - t).powi(2)).sum()
    };
    let ridges = RIDGES.map(|share| share * diagonal.max(f64::MIN_POSITIVE));
    let best = match held.is_empty() {
        true => ridges[3],
        false => {
            let errors = ridges.map(error);
            let place = (0..ridges.len()).min_by(|a, b| errors[*a].total_cmp(&errors[*b]));
            ridges[place.expect("ridges are tried")]
        }
    };
    let all: Vec<usize> = (0..n).collect();
    let Some(dual) = solve(&all, best) else { return vec![0.0; f * k] };
    let mut weights = vec![0.0; f * k];
    multiply(&mut weights, 0.0, view.transposed(), View::new(&dual, n, k));
    weights.into_iter().map(|w| w as f32).collect()
}
