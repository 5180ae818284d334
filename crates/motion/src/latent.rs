//! The latent space of some clips: a Gaussian process latent variable model, learned by scaled conjugate gradient. Start
//! at [`LatentSpace::learn`]; then [`LatentSpace::mean`] gives the likeliest pose at a point and
//! [`LatentSpace::density`] how likely a point is, both in f64: the reference that the run time's `Space` is held to.
//!
//! What is maximised is `log p(Y|X)` (`dense`, or `sparse` for many frames) plus both priors (5.7) over the latent points
//! and `σ², l², s²`. Outputs are divided by their common root mean square, so that `σ = l = 1` is a good start whatever
//! the rig's size.

use crate::conjugate::{ConjugateConfig, Minimum, Stop, minimise};
use crate::matrix::{dot, product, squared_distance};
use crate::priors::{Dynamics, PriorConfig};
use crate::{MotionError, connectivity, dense, sparse};
use serde::{Deserialize, Serialize};
use understudy_core::linear_algebra::Cholesky;
use understudy_runtime::motion::{Covariance, MOST_DIMENSIONS};

/// Settings of learning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentConfig {
    /// Dimensions of the latent space.
    pub dimensions: usize,
    /// Most iterations.
    pub iterations: usize,
    /// Inducing points; where left out every frame speaks for itself up to [`LatentConfig::DENSE`] frames, and
    /// [`LatentConfig::INDUCING`] points for more.
    pub inducing: Option<usize>,
    /// The priors.
    pub priors: PriorConfig,
}

impl LatentConfig {
    /// So many frames are learned without inducing points.
    pub const DENSE: usize = 800;
    /// Inducing points for more.
    pub const INDUCING: usize = 150;
}

impl Default for LatentConfig {
    fn default() -> Self {
        Self { dimensions: 3, iterations: 150, inducing: None, priors: PriorConfig::default() }
    }
}

/// Added to the white variance: a kernel of coinciding points must still be invertible.
pub(crate) const JITTER: f64 = 1e-6;
/// Logarithms of hyper-parameters stay within this.
const LOG_RANGE: f64 = 14.0;

/// Derivatives by the logarithms of `σ²`, `l²`, `s²`.
pub(crate) type Logs = [f64; 3];

fn covariance(logs: &[f64]) -> Covariance {
    let [variance, length_squared, white] = [0, 1, 2].map(|i| logs[i].clamp(-LOG_RANGE, LOG_RANGE).exp());
    Covariance { variance, length_squared, white }
}

/// What is maximised, as a function of the latent points, the inducing points and the logarithms of `σ²`, `l²`, `s²`.
pub(crate) struct Objective<'a> {
    y: &'a [f64],
    q: usize,
    /// Frames and inducing points, none where every frame speaks for itself.
    counts: (usize, usize),
    dynamics: Option<Dynamics>,
    nodes: Vec<usize>,
    priors: PriorConfig,
}

impl<'a> Objective<'a> {
    pub fn new(
        y: &'a [f64],
        d: usize,
        lengths: &[usize],
        q: usize,
        inducing: usize,
        priors: PriorConfig,
    ) -> Result<Self, MotionError> {
        let dynamics = (priors.dynamics > 0.0).then(|| Dynamics::new(lengths, &priors)).transpose()?;
        let nodes = connectivity::nodes(lengths, priors.nodes);
        // The likelihood grows with every number of every frame; the prior is to keep up with it.
        let priors = PriorConfig { connectivity: priors.connectivity * y.len() as f64, ..priors };
        Ok(Self { y, q, counts: (y.len() / d, inducing), dynamics, nodes, priors })
    }

    /// `−log p`, constants left out; infinite where the kernel cannot be inverted.
    pub fn cost(&self, unknowns: &[f64], gradient: &mut [f64]) -> f64 {
        let (q, (n, m)) = (self.q, self.counts);
        let (x, rest) = unknowns.split_at(n * q);
        let (z, logs) = rest.split_at(m * q);
        gradient.fill(0.0);
        let kernel = covariance(logs);
        let (by_x, rest) = gradient.split_at_mut(n * q);
        let (by_z, by_logs) = rest.split_at_mut(m * q);
        let mut slopes = Logs::default();
        let likelihood = match m {
            0 => dense::likelihood(&kernel, x, self.y, q, by_x, &mut slopes),
            _ => sparse::bound(&kernel, x, z, self.y, q, by_x, by_z, &mut slopes),
        };
        let Some(mut value) = likelihood else { return f64::INFINITY };
        for ((slot, slope), log) in by_logs.iter_mut().zip(slopes).zip(logs) {
            *slot = if log.abs() < LOG_RANGE { slope } else { 0.0 };
        }
        if let Some(dynamics) = &self.dynamics {
            value += dynamics.add(x, q, by_x);
        }
        if self.priors.connectivity > 0.0 {
            match connectivity::add_over(&self.nodes, x, q, &self.priors, by_x) {
                Ok(more) => value += more,
                Err(_) => return f64::INFINITY,
            }
        }
        gradient.iter_mut().for_each(|g| *g = -*g);
        -value
    }
}

/// What learning found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// `log p(X, θ | Y)` before, constants left out.
    pub before: f64,
    /// And after.
    pub after: f64,
    /// Iterations used.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: Stop,
}

/// A learned latent space.
#[derive(Debug, Clone, PartialEq)]
pub struct LatentSpace {
    q: usize,
    d: usize,
    /// `[N][q]`.
    points: Vec<f64>,
    /// Inducing points, `[M][q]`; empty where every frame speaks for itself.
    inducing: Vec<f64>,
    unit: f64,
    kernel: Covariance,
    /// `K⁻¹ Y`, `[M][d]`.
    weights: Vec<f64>,
    /// What the variance loses to the data is `kᵀ P k`, `[M][M]`: `K⁻¹` of a dense model.
    precision: Vec<f64>,
}

/// The unit of outputs: their root mean square.
fn unit(flat: &[f64]) -> Option<f64> {
    let unit = (dot(flat, flat) / flat.len().max(1) as f64).sqrt();
    (unit > 1e-12 && unit.is_finite()).then_some(unit)
}

/// First latent points: the first components, of variance one together.
fn first_points(outputs: &[Vec<f64>], q: usize) -> Vec<f64> {
    let mut start: Vec<f64> = outputs.iter().flat_map(|row| row[..q].to_vec()).collect();
    let spread = (dot(&start, &start) / start.len() as f64).sqrt().max(1e-12);
    start.iter_mut().for_each(|v| *v /= spread);
    start
}

impl LatentSpace {
    /// More frames than this in one space would need more memory than anybody has.
    pub const MAX_FRAMES: usize = 20_000;

    /// Learns from poses. `outputs`: `[N][d]`, the first components largest; `lengths`: frames of every clip.
    /// `step` hears the iteration and `log p`, and may say stop.
    pub fn learn(
        outputs: &[Vec<f64>],
        lengths: &[usize],
        config: &LatentConfig,
        mut step: impl FnMut(usize, f64) -> bool,
    ) -> Result<(Self, Learned), MotionError> {
        let n = outputs.len();
        if n < 2 || lengths.iter().sum::<usize>() != n {
            return Err(MotionError::TooFew { frames: n });
        }
        if n > Self::MAX_FRAMES {
            return Err(MotionError::TooMany { frames: n, most: Self::MAX_FRAMES });
        }
        let d = outputs[0].len();
        let q = config.dimensions.min(d).clamp(1, MOST_DIMENSIONS);
        let flat: Vec<f64> = outputs.iter().flatten().copied().collect();
        let unit = unit(&flat).ok_or(MotionError::Still)?;
        let y: Vec<f64> = flat.iter().map(|v| v / unit).collect();
        let mut unknowns = first_points(outputs, q);
        let automatic = if n > LatentConfig::DENSE { LatentConfig::INDUCING } else { 0 };
        let inducing = match config.inducing.unwrap_or(automatic) {
            count if count >= n => 0,
            count => count,
        };
        if inducing > 0 {
            let chosen = sparse::spread(&unknowns, q, inducing);
            let z: Vec<f64> = chosen.iter().flat_map(|i| unknowns[i * q..(i + 1) * q].to_vec()).collect();
            unknowns.extend(z);
        }
        unknowns.extend([0.0, 0.0, 0.01f64.ln()]);
        let objective = Objective::new(&y, d, lengths, q, inducing, config.priors)?;
        let settings =
            ConjugateConfig { iterations: config.iterations, gain: 1e-7, ..ConjugateConfig::default() };
        let before = -objective.cost(&unknowns, &mut vec![0.0; unknowns.len()]);
        let Minimum { cost, iterations, stop } = minimise(
            &mut unknowns,
            &settings,
            |x, gradient| objective.cost(x, gradient),
            |iteration, cost| step(iteration, -cost),
        );
        let kernel = covariance(&unknowns[(n + inducing) * q..]);
        unknowns.truncate((n + inducing) * q);
        let z = unknowns.split_off(n * q);
        let space = Self::assemble(q, d, unknowns, z, &y, unit, kernel)?;
        Ok((space, Learned { before, after: -cost, iterations, stop }))
    }

    fn assemble(
        q: usize,
        d: usize,
        points: Vec<f64>,
        inducing: Vec<f64>,
        y: &[f64],
        unit: f64,
        kernel: Covariance,
    ) -> Result<Self, MotionError> {
        let n = points.len() / q;
        let (weights, precision) = if inducing.is_empty() {
            let mut k = dense::smooth(&kernel, &points, None, q);
            (0..n).for_each(|i| k[i * n + i] += kernel.white + JITTER);
            let inverse = Cholesky::new(&k, n).ok_or(MotionError::Numbers)?.inverse();
            (product(&inverse, y, n, n, d), inverse)
        } else {
            sparse::predictor(&kernel, &points, &inducing, y, q).ok_or(MotionError::Numbers)?
        };
        Ok(Self { q, d, points, inducing, unit, kernel, weights, precision })
    }

    /// Dimensions of the latent space.
    pub fn dimensions(&self) -> usize {
        self.q
    }

    /// Training frames.
    pub fn len(&self) -> usize {
        self.points.len() / self.q
    }

    /// Never: a space has two frames at least.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Numbers of a pose.
    pub fn outputs(&self) -> usize {
        self.d
    }

    /// Where a training frame lies, `[q]`.
    pub fn point(&self, frame: usize) -> &[f64] {
        &self.points[frame * self.q..(frame + 1) * self.q]
    }

    /// All of them, `[N][q]`.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// Inducing points, `[M][q]`; empty where every frame speaks for itself.
    pub fn inducing(&self) -> &[f64] {
        &self.inducing
    }

    /// The covariance.
    pub fn kernel(&self) -> Covariance {
        self.kernel
    }

    /// What outputs are multiplied by.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }

    /// `[M][d]`.
    pub(crate) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// `[M][M]`.
    pub(crate) fn precision(&self) -> &[f64] {
        &self.precision
    }

    /// Centres of the covariance, `[M][q]`.
    pub(crate) fn centres(&self) -> &[f64] {
        if self.inducing.is_empty() { &self.points } else { &self.inducing }
    }

    /// `k(x)`, `[M]`.
    pub(crate) fn covariances(&self, x: &[f64]) -> Vec<f64> {
        dense::smooth(&self.kernel, x, Some(self.centres()), self.q)
    }

    /// The likeliest pose at a point, `Yᵀ K⁻¹ k(x)`, `[d]`.
    pub fn mean(&self, x: &[f64]) -> Vec<f64> {
        let k = self.covariances(x);
        let mut mean = product(&k, &self.weights, 1, k.len(), self.d);
        mean.iter_mut().for_each(|v| *v *= self.unit);
        mean
    }

    /// `σ²(x) = k(x, x) − kᵀ K⁻¹ k` (5.8, corrected), with the white part; in the unit of the outputs squared.
    pub fn variance(&self, x: &[f64]) -> f64 {
        self.relative_variance(x).0 * self.unit * self.unit
    }

    /// Variance over `unit²`, and its gradient.
    fn relative_variance(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let k = self.covariances(x);
        let m = k.len();
        let pulled = product(&self.precision, &k, m, m, 1);
        let variance = (self.kernel.variance - dot(&k, &pulled)).max(0.0) + self.kernel.white;
        let mut gradient = vec![0.0; self.q];
        for (centre, (pull, k)) in self.centres().chunks_exact(self.q).zip(pulled.iter().zip(&k)) {
            let factor = 2.0 * pull * k / self.kernel.length_squared;
            for (slot, (x, c)) in gradient.iter_mut().zip(x.iter().zip(centre)) {
                *slot += factor * (x - c);
            }
        }
        (variance, gradient)
    }

    /// `log p(x|M) = −(d/2) log σ²(x)` and its gradient: what the likelihood force climbs. The paper leaves the density
    /// undefined.
    pub fn density(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let (variance, mut gradient) = self.relative_variance(x);
        let half = 0.5 * self.d as f64;
        gradient.iter_mut().for_each(|g| *g *= -half / variance);
        (-half * variance.ln(), gradient)
    }

    /// Mean distance from frame to frame over the root mean square distance of two frames: how close consecutive frames
    /// are. `lengths`: frames of every clip.
    pub fn consecutive(&self, lengths: &[usize]) -> f64 {
        let (mut sum, mut count, mut first) = (0.0, 0usize, 0);
        for length in lengths {
            for frame in first + 1..first + length {
                sum += squared_distance(self.point(frame), self.point(frame - 1)).sqrt();
                count += 1;
            }
            first += length;
        }
        sum / count.max(1) as f64 / self.extent()
    }

    /// How near similar frames of different clips lie, over the root mean square distance of two frames: the mean over
    /// every frame whose nearest pose in another clip is among the nearest quarter of such pairs. `None` for one clip.
    pub fn kinship(&self, outputs: &[Vec<f64>], lengths: &[usize]) -> Option<f64> {
        let clip: Vec<usize> = lengths.iter().enumerate().flat_map(|(clip, n)| vec![clip; *n]).collect();
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        for i in 0..self.len() {
            let others = (0..self.len()).filter(|j| clip[*j] != clip[i]);
            let near = others
                .map(|j| (squared_distance(&outputs[i], &outputs[j]), j))
                .min_by(|a, b| a.0.total_cmp(&b.0))?;
            pairs.push((near.0, squared_distance(self.point(i), self.point(near.1)).sqrt()));
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        pairs.truncate(pairs.len().div_ceil(4));
        Some(pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64 / self.extent())
    }

    /// The widest gap that a walk over all frames has to cross, over the root mean square distance of two frames: the longest
    /// edge of the shortest tree that joins them. What the connectivity prior narrows.
    pub fn widest_gap(&self) -> f64 {
        let mut open: Vec<(f64, usize)> = (0..self.len()).map(|i| (f64::INFINITY, i)).collect();
        let (mut at, mut widest) = (open.pop().map(|(_, i)| i), 0.0f64);
        while let Some(from) = at {
            for (best, to) in &mut open {
                *best = best.min(squared_distance(self.point(from), self.point(*to)));
            }
            let nearest = (0..open.len()).min_by(|a, b| open[*a].0.total_cmp(&open[*b].0));
            at = nearest.map(|place| {
                let (gap, point) = open.swap_remove(place);
                widest = widest.max(gap);
                point
            });
        }
        widest.sqrt() / self.extent()
    }

    /// Root mean square distance of two frames.
    fn extent(&self) -> f64 {
        let n = self.len() as f64;
        let mean = |c: usize| self.points.iter().skip(c).step_by(self.q).sum::<f64>() / n;
        let middle: Vec<f64> = (0..self.q).map(mean).collect();
        let spread: f64 = (0..self.len()).map(|i| squared_distance(self.point(i), &middle)).sum();
        (2.0 * spread / n).sqrt().max(1e-12)
    }
}

#[cfg(test)]
mod tests;
