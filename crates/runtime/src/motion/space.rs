//! A latent space at run time: the likeliest pose at a point, how likely the point is and where that grows, and the point
//! of a pose. The Gaussian process behind it was learned elsewhere; here are sums over its centres.
//!
//! With `k_m(x) = σ² exp(−‖x − c_m‖² / 2l²)` the mean is `α k(x)` (`α = Yᵀ K⁻¹`), the variance
//! `σ²(x) = σ² + s² − ‖F k(x)‖²` (5.8, corrected), with `FᵀF ≈ K⁻¹`: only the directions that matter are in `F`, which
//! makes the density several times cheaper than `N²`. A sparse model has fewer centres than frames, and otherwise
//! nothing is different.

use super::error::MotionFileError;
use super::lanes::{back, covariances, dots, padded, slope};
use super::path::{Edges, PathSearch};
use super::point::{LatentPoint, MOST_DIMENSIONS};
use serde::{Deserialize, Serialize};

/// More frames or centres than this are no file of motion.
const MOST: usize = 1 << 20;

/// Hyper-parameters of the covariance (5.5).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Covariance {
    /// `σ²`.
    pub variance: f64,
    /// `l²`.
    pub length_squared: f64,
    /// `s²`.
    pub white: f64,
}

/// What a file holds of a space.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceParts {
    /// `q`.
    pub dimensions: usize,
    /// Where the training frames lie, `[N][q]`.
    pub points: Vec<f32>,
    /// Centres of the covariance, `[M][q]`, where they are not the training frames.
    pub centres: Option<Vec<f32>>,
    /// The covariance.
    pub covariance: Covariance,
    /// What outputs are multiplied by.
    pub unit: f32,
    /// `α`, `[d][M]`.
    pub weights: Vec<f32>,
    /// `F`, `[R][M]`.
    pub certainty: Vec<f32>,
    /// Pairs of training frames that a shortest way may join.
    pub edges: Vec<[u32; 2]>,
}

/// A latent space.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    parts: SpaceParts,
    frames: usize,
    centres: usize,
    outputs: usize,
    /// `[q][row]`.
    coordinates: Vec<f32>,
    /// `[d][row]`.
    weights: Vec<f32>,
    /// `[R][row]`.
    certainty: Vec<f32>,
    edges: Edges,
}

/// Memory for the work on one frame of any model of a [`Motion`](super::Motion).
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    k: Vec<f32>,
    pulls: Vec<f32>,
    features: Vec<f32>,
    pub(super) mean: Vec<f32>,
    pub(super) moving: Vec<f32>,
    /// Controls of a second pose, `[C]`.
    pub(super) controls: Vec<f32>,
    pub(super) search: PathSearch,
}

impl Workspace {
    /// For any of these models.
    pub fn new(motion: &super::Motion) -> Self {
        let mut work = Self { controls: vec![0.0; motion.controls().len()], ..Self::default() };
        for model in motion.models() {
            work.fit(model.space());
            let moving = model.basis().moving().len();
            work.moving.resize(work.moving.len().max(moving), 0.0);
        }
        work
    }

    fn fit(&mut self, space: &Space) {
        let row = padded(space.centres);
        let grow = |list: &mut Vec<f32>, length: usize| list.resize(list.len().max(length), 0.0);
        grow(&mut self.k, row);
        grow(&mut self.pulls, row);
        grow(&mut self.features, space.rank());
        grow(&mut self.mean, space.outputs);
        self.search.fit(space.frames, &space.edges);
    }

    /// For one space.
    pub fn of(space: &Space) -> Self {
        let mut work = Self::default();
        work.fit(space);
        work
    }
}

/// `[rows][count]` to `[rows][padded]`, or its transpose to that.
fn pad(rows: usize, count: usize, value: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let row = padded(count);
    let mut out = vec![0.0; rows * row];
    for r in 0..rows {
        (0..count).for_each(|m| out[r * row + m] = value(r, m));
    }
    out
}

impl Space {
    /// Checks the parts against each other.
    pub fn new(parts: SpaceParts) -> Result<Self, MotionFileError> {
        let wrong = |place: &str, problem: &str| Err(MotionFileError::new(place, problem));
        let q = parts.dimensions;
        if !(1..=MOST_DIMENSIONS).contains(&q) {
            return wrong("dimensions", &format!("{q}; 1 to {MOST_DIMENSIONS} are possible"));
        }
        let centres = parts.centres.as_ref().unwrap_or(&parts.points);
        let (n, m) = (parts.points.len() / q, centres.len() / q);
        if n == 0 || m == 0 || n > MOST || m > MOST || parts.points.len() != n * q || centres.len() != m * q {
            return wrong("points", "their number does not fit the dimensions");
        }
        let d = parts.weights.len() / m;
        if d == 0 || parts.weights.len() != d * m || !parts.certainty.len().is_multiple_of(m) {
            return wrong("weights", "their number does not fit the centres");
        }
        let lists = [&parts.points, centres, &parts.weights, &parts.certainty];
        if !lists.iter().all(|list| list.iter().all(|v| v.is_finite())) {
            return wrong("numbers", "some are not finite");
        }
        let Covariance { variance, length_squared, white } = parts.covariance;
        let positive = [variance, length_squared, white, f64::from(parts.unit)];
        if !positive.iter().all(|v| (1e-30..1e30).contains(v)) {
            return wrong("covariance", "a hyper-parameter is not positive");
        }
        if parts.edges.iter().flatten().any(|frame| *frame as usize >= n) {
            return wrong("edges", "one leads to a frame that there is not");
        }
        let rank = parts.certainty.len() / m;
        let coordinates = pad(q, m, |k, c| centres[c * q + k]);
        let weights = pad(d, m, |k, c| parts.weights[k * m + c]);
        let certainty = pad(rank, m, |k, c| parts.certainty[k * m + c]);
        let edges = Edges::new(n, &parts.edges);
        Ok(Self { frames: n, centres: m, outputs: d, coordinates, weights, certainty, edges, parts })
    }

    /// What its file holds.
    pub fn parts(&self) -> &SpaceParts {
        &self.parts
    }

    /// Dimensions.
    pub fn dimensions(&self) -> usize {
        self.parts.dimensions
    }

    /// Training frames.
    pub fn len(&self) -> usize {
        self.frames
    }

    /// Never: a space has a frame at least.
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Centres of the covariance: the training frames, or fewer in a sparse model.
    pub fn centres(&self) -> usize {
        self.centres
    }

    /// Numbers of a pose.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Directions that the density is made of.
    pub fn rank(&self) -> usize {
        self.parts.certainty.len() / self.centres
    }

    /// The covariance.
    pub fn covariance(&self) -> Covariance {
        self.parts.covariance
    }

    pub(super) fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Where a training frame lies.
    ///
    /// # Panics
    /// Where there is no such frame.
    pub fn point(&self, frame: usize) -> LatentPoint {
        let q = self.parts.dimensions;
        LatentPoint::of_singles(&self.parts.points[frame * q..(frame + 1) * q])
    }

    fn singles(&self, x: LatentPoint) -> [f32; MOST_DIMENSIONS] {
        x.0.map(|v| v as f32)
    }

    /// Writes `k(x)`, and gives it.
    fn covariances<'a>(&self, x: LatentPoint, k: &'a mut [f32]) -> &'a mut [f32] {
        let k = &mut k[..padded(self.centres)];
        let Covariance { variance, length_squared, .. } = self.parts.covariance;
        let factor = (-0.5 / length_squared) as f32;
        covariances(&self.coordinates, &self.singles(x)[..self.dimensions()], factor, variance as f32, k);
        k
    }

    /// The likeliest pose at a point, `[d]`.
    pub fn mean<'a>(&self, x: LatentPoint, work: &'a mut Workspace) -> &'a [f32] {
        let k = self.covariances(x, &mut work.k);
        let mean = &mut work.mean[..self.outputs];
        dots(&self.weights, k, mean);
        mean.iter_mut().for_each(|v| *v *= self.parts.unit);
        mean
    }

    /// Variance of an output over `unit²`, white part included, and its gradient.
    fn relative_variance(&self, x: LatentPoint, work: &mut Workspace) -> (f64, LatentPoint) {
        let Covariance { variance, length_squared, white } = self.parts.covariance;
        let k = self.covariances(x, &mut work.k);
        let features = &mut work.features[..self.parts.certainty.len() / self.centres];
        dots(&self.certainty, k, features);
        let known: f64 = features.iter().map(|u| f64::from(*u) * f64::from(*u)).sum();
        let left = (variance - known).max(0.0) + white;
        let pulls = &mut work.pulls[..padded(self.centres)];
        back(&self.certainty, features, pulls);
        let mut sums = [0.0f32; MOST_DIMENSIONS];
        let q = self.dimensions();
        slope(&self.coordinates, &self.singles(x)[..q], pulls, k, &mut sums[..q]);
        (left, LatentPoint(sums.map(|sum| 2.0 / length_squared * f64::from(sum))))
    }

    /// `σ²(x)`, white part included, in the unit of the outputs squared.
    pub fn variance(&self, x: LatentPoint, work: &mut Workspace) -> f64 {
        self.relative_variance(x, work).0 * f64::from(self.parts.unit).powi(2)
    }

    /// `log p(x|M) = −(d/2) log σ²(x)` and its gradient: what the likelihood force climbs. The paper leaves the density
    /// undefined.
    pub fn density(&self, x: LatentPoint, work: &mut Workspace) -> (f64, LatentPoint) {
        let (variance, gradient) = self.relative_variance(x, work);
        let half = 0.5 * self.outputs as f64;
        (-half * variance.ln(), gradient * (-half / variance))
    }

    /// The point whose pose is nearest to `y`, `[d]`, and how far that pose is from it in the unit of the outputs (5.15):
    /// Levenberg and Marquardt's method from the training frames with the nearest poses, in steps no longer than half a
    /// length scale, since the slope vanishes away from the data.
    ///
    /// # Panics
    /// Where `y` has not as many numbers as the outputs.
    pub fn project(&self, y: &[f32], work: &mut Workspace) -> (LatentPoint, f64) {
        assert_eq!(y.len(), self.outputs, "a pose of this space");
        let step = self.frames.div_ceil(MOST_STARTS).max(1);
        let mut near: Vec<(f64, usize)> = (0..self.frames)
            .step_by(step)
            .map(|frame| (squared_miss(self.mean(self.point(frame), work), y), frame))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Neighbours in time are one start: take them apart.
        let mut starts: Vec<usize> = Vec::new();
        for (_, frame) in near {
            if starts.len() < STARTS && starts.iter().all(|other| other.abs_diff(frame) > 4) {
                starts.push(frame);
            }
        }
        let found = starts.into_iter().map(|frame| self.refine(self.point(frame), y, work));
        let best = found.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((self.point(0), 0.0));
        (best.0, best.1.sqrt())
    }

    /// Downhill from a start; gives the squared miss.
    fn refine(&self, start: LatentPoint, y: &[f32], work: &mut Workspace) -> (LatentPoint, f64) {
        let (q, d, row) = (self.dimensions(), self.outputs, padded(self.centres));
        let longest = 0.5 * self.parts.covariance.length_squared.sqrt();
        let (mut x, mut damping) = (start, 1e-3);
        let mut miss = squared_miss(self.mean(x, work), y);
        let mut slopes = vec![0.0f64; q * d];
        for _ in 0..30 {
            // J_kq = −unit / l² Σ_m α_km k_m (x_q − c_qm).
            self.mean(x, work);
            let factor = -f64::from(self.parts.unit) / self.parts.covariance.length_squared;
            let at = self.singles(x);
            for k in 0..d {
                let mut sums = [0.0f32; MOST_DIMENSIONS];
                let weights = &self.weights[k * row..(k + 1) * row];
                slope(&self.coordinates, &at[..q], weights, &work.k[..row], &mut sums[..q]);
                (0..q).for_each(|c| slopes[c * d + k] = factor * f64::from(sums[c]));
            }
            let mut normal = [[0.0f64; MOST_DIMENSIONS]; MOST_DIMENSIONS];
            let mut right = [0.0f64; MOST_DIMENSIONS];
            for a in 0..q {
                let own = &slopes[a * d..(a + 1) * d];
                for k in 0..d {
                    right[a] -= own[k] * f64::from(work.mean[k] - y[k]);
                }
                for b in 0..q {
                    normal[a][b] = own.iter().zip(&slopes[b * d..(b + 1) * d]).map(|(a, b)| a * b).sum();
                }
            }
            let size = (0..q).map(|a| normal[a][a]).fold(0.0, f64::max);
            if size < 1e-20 {
                break;
            }
            let before = miss;
            for _ in 0..8 {
                let mut damped = normal;
                (0..q).for_each(|a| damped[a][a] += damping * size);
                let mut step = LatentPoint(solve(damped, right, q));
                let length = step.length();
                if length > longest {
                    step = step * (longest / length);
                }
                let next = squared_miss(self.mean(x + step, work), y);
                if next < miss {
                    (x, miss) = (x + step, next);
                    damping = (damping * 0.2).max(1e-9);
                    break;
                }
                damping = (damping * 5.0).min(1e6);
            }
            if miss > before * (1.0 - 1e-6) {
                break;
            }
        }
        (x, miss)
    }
}

/// Starts of a projection: the training points with the nearest poses.
const STARTS: usize = 5;
/// Training frames whose poses are compared for that.
const MOST_STARTS: usize = 2000;

fn squared_miss(mean: &[f32], y: &[f32]) -> f64 {
    mean.iter().zip(y).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// A small positive definite system by elimination.
fn solve(
    mut a: [[f64; MOST_DIMENSIONS]; MOST_DIMENSIONS],
    mut b: [f64; MOST_DIMENSIONS],
    n: usize,
) -> [f64; MOST_DIMENSIONS] {
    for i in 0..n {
        for j in i + 1..n {
            let factor = a[j][i] / a[i][i];
            for k in i..n {
                a[j][k] -= factor * a[i][k];
            }
            b[j] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}
