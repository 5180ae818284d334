//! The latent space of some clips: a Gaussian process latent variable model, learned by scaled conjugate gradient. Start
//! at [`LatentSpace::learn`]; then [`LatentSpace::mean`] gives the likeliest pose at a point, [`LatentSpace::density`]
//! how likely a point is, [`LatentSpace::project`] the point of a pose.
//!
//! `log p(Y|X) = −d/2 log|K| − ½ tr(K⁻¹ Y Yᵀ)` (5.4, corrected; `Y` has one row per frame here), with
//! `k(x, x') = σ² exp(−‖x − x'‖² / 2l²) + δ s²` (5.5), plus both priors (5.7). Outputs are divided by their common
//! root mean square, so that `σ = l = 1` is a good start whatever the rig's size.

use crate::MotionError;
use crate::conjugate::{ConjugateConfig, Minimum, Stop, minimise};
use crate::matrix::{dot, product, product_transposed, squared_distance};
use crate::priors::{Dynamics, PriorConfig, add_connectivity};
use serde::{Deserialize, Serialize};
use understudy_core::linear_algebra::Cholesky;

/// Settings of learning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentConfig {
    /// Dimensions of the latent space.
    pub dimensions: usize,
    /// Most iterations.
    pub iterations: usize,
    /// The priors.
    pub priors: PriorConfig,
}

impl Default for LatentConfig {
    fn default() -> Self {
        Self { dimensions: 3, iterations: 150, priors: PriorConfig::default() }
    }
}

/// Added to the white variance: a kernel of coinciding points must still be invertible.
const JITTER: f64 = 1e-6;
/// Logarithms of hyper-parameters stay within this.
const LOG_RANGE: f64 = 14.0;
/// Starts of a projection: the training points with the nearest poses.
const STARTS: usize = 5;

/// Hyper-parameters of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// `σ²`.
    pub variance: f64,
    /// `l²`.
    pub length_squared: f64,
    /// `s²`.
    pub white: f64,
}

impl Kernel {
    fn from_logs(logs: &[f64]) -> Self {
        let [variance, length_squared, white] = [0, 1, 2].map(|i| logs[i].clamp(-LOG_RANGE, LOG_RANGE).exp());
        Self { variance, length_squared, white }
    }

    fn smooth(&self, a: &[f64], b: &[f64]) -> f64 {
        self.variance * (-0.5 * squared_distance(a, b) / self.length_squared).exp()
    }

    /// `K`, `[N][N]`.
    fn matrix(&self, x: &[f64], q: usize) -> Vec<f64> {
        let n = x.len() / q;
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..i {
                let k = self.smooth(&x[i * q..(i + 1) * q], &x[j * q..(j + 1) * q]);
                matrix[i * n + j] = k;
                matrix[j * n + i] = k;
            }
            matrix[i * n + i] = self.variance + self.white + JITTER;
        }
        matrix
    }
}

/// What is maximised, as a function of the latent points and the logarithms of `σ²`, `l²`, `s²`.
pub(crate) struct Objective<'a> {
    y: &'a [f64],
    q: usize,
    d: usize,
    dynamics: Option<Dynamics>,
    priors: PriorConfig,
}

impl<'a> Objective<'a> {
    pub fn new(
        y: &'a [f64],
        d: usize,
        lengths: &[usize],
        q: usize,
        priors: PriorConfig,
    ) -> Result<Self, MotionError> {
        let dynamics = (priors.dynamics > 0.0).then(|| Dynamics::new(lengths, &priors)).transpose()?;
        Ok(Self { y, q, d, dynamics, priors })
    }

    /// `−log p`, constants left out; infinite where the kernel cannot be inverted.
    pub fn cost(&self, unknowns: &[f64], gradient: &mut [f64]) -> f64 {
        let (q, d, n) = (self.q, self.d, self.y.len() / self.d);
        let (x, logs) = unknowns.split_at(n * q);
        gradient.fill(0.0);
        let kernel = Kernel::from_logs(logs);
        let matrix = kernel.matrix(x, q);
        let Some(factor) = Cholesky::new(&matrix, n) else { return f64::INFINITY };
        let lower = factor.lower();
        let log_determinant: f64 = (0..n).map(|i| 2.0 * lower[i * n + i].ln()).sum();
        let inverse = factor.inverse();
        let solved = product(&inverse, self.y, n, n, d);
        let mut likelihood = -0.5 * d as f64 * log_determinant - 0.5 * dot(&solved, self.y);
        // ∂ log p / ∂K = ½ (A Aᵀ − d K⁻¹), A = K⁻¹ Y.
        let outer = product_transposed(&solved, &solved, n, d, n);
        let (by_x, by_logs) = gradient.split_at_mut(n * q);
        for i in 0..n {
            for j in 0..n {
                let slope = 0.5 * (outer[i * n + j] - d as f64 * inverse[i * n + j]);
                let smooth = if i == j { kernel.variance } else { matrix[i * n + j] };
                let (a, b) = (&x[i * q..(i + 1) * q], &x[j * q..(j + 1) * q]);
                by_logs[0] += slope * smooth;
                by_logs[1] += slope * smooth * 0.5 * squared_distance(a, b) / kernel.length_squared;
                if i == j {
                    by_logs[2] += slope * kernel.white;
                    continue;
                }
                let pull = -2.0 * slope * smooth / kernel.length_squared;
                for k in 0..q {
                    by_x[i * q + k] += pull * (a[k] - b[k]);
                }
            }
        }
        if let Some(dynamics) = &self.dynamics {
            likelihood += dynamics.add(x, q, by_x);
        }
        if self.priors.connectivity > 0.0 {
            match add_connectivity(x, q, &self.priors, by_x) {
                Ok(value) => likelihood += value,
                Err(_) => return f64::INFINITY,
            }
        }
        gradient.iter_mut().for_each(|g| *g = -*g);
        -likelihood
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredSpace", into = "StoredSpace")]
pub struct LatentSpace {
    q: usize,
    d: usize,
    /// `[N][q]`.
    points: Vec<f64>,
    /// `[N][d]`, divided by `unit`.
    outputs: Vec<f64>,
    unit: f64,
    kernel: Kernel,
    /// `K⁻¹`, `[N][N]`.
    inverse: Vec<f64>,
    /// `K⁻¹ Y`, `[N][d]`.
    solved: Vec<f64>,
}

/// What a file holds of it: the rest follows.
#[derive(Clone, Serialize, Deserialize)]
struct StoredSpace {
    dimensions: usize,
    points: Vec<f64>,
    outputs: Vec<f64>,
    unit: f64,
    kernel: Kernel,
}

impl TryFrom<StoredSpace> for LatentSpace {
    type Error = MotionError;

    fn try_from(stored: StoredSpace) -> Result<Self, MotionError> {
        let StoredSpace { dimensions: q, points, outputs, unit, kernel } = stored;
        let n = points.len().checked_div(q).unwrap_or(0);
        let finite = points.iter().chain(&outputs).all(|v| v.is_finite());
        let sound = [kernel.variance, kernel.length_squared, kernel.white, unit]
            .iter()
            .all(|v| *v > 0.0 && v.is_finite());
        if n == 0
            || n > Self::MAX_FRAMES
            || points.len() != n * q
            || !outputs.len().is_multiple_of(n)
            || outputs.is_empty()
            || !finite
            || !sound
        {
            return Err(MotionError::Stored);
        }
        let d = outputs.len() / n;
        Self::assemble(q, d, points, outputs, unit, kernel)
    }
}

impl From<LatentSpace> for StoredSpace {
    fn from(space: LatentSpace) -> Self {
        let LatentSpace { q, points, outputs, unit, kernel, .. } = space;
        Self { dimensions: q, points, outputs, unit, kernel }
    }
}

impl LatentSpace {
    /// More frames than this in one space would need more memory and time than anybody has.
    pub const MAX_FRAMES: usize = 4000;

    fn assemble(
        q: usize,
        d: usize,
        points: Vec<f64>,
        outputs: Vec<f64>,
        unit: f64,
        kernel: Kernel,
    ) -> Result<Self, MotionError> {
        let n = points.len() / q;
        let factor = Cholesky::new(&kernel.matrix(&points, q), n).ok_or(MotionError::Numbers)?;
        let inverse = factor.inverse();
        let solved = product(&inverse, &outputs, n, n, d);
        Ok(Self { q, d, points, outputs, unit, kernel, inverse, solved })
    }

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
        let q = config.dimensions.min(d).max(1);
        let flat: Vec<f64> = outputs.iter().flatten().copied().collect();
        let unit = (dot(&flat, &flat) / flat.len().max(1) as f64).sqrt();
        if !(unit > 1e-12 && unit.is_finite()) {
            return Err(MotionError::Still);
        }
        let y: Vec<f64> = flat.iter().map(|v| v / unit).collect();
        // The first components, of variance one together.
        let mut start: Vec<f64> = outputs.iter().flat_map(|row| row[..q].to_vec()).collect();
        let spread = (dot(&start, &start) / start.len() as f64).sqrt().max(1e-12);
        start.iter_mut().for_each(|v| *v /= spread);
        start.extend([0.0, 0.0, 0.01f64.ln()]);
        let objective = Objective::new(&y, d, lengths, q, config.priors)?;
        let settings =
            ConjugateConfig { iterations: config.iterations, gain: 1e-7, ..ConjugateConfig::default() };
        let before = -objective.cost(&start, &mut vec![0.0; start.len()]);
        let Minimum { cost, iterations, stop } = minimise(
            &mut start,
            &settings,
            |x, gradient| objective.cost(x, gradient),
            |iteration, cost| step(iteration, -cost),
        );
        let kernel = Kernel::from_logs(&start[n * q..]);
        start.truncate(n * q);
        let space = Self::assemble(q, d, start, y, unit, kernel)?;
        Ok((space, Learned { before, after: -cost, iterations, stop }))
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

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    fn covariances(&self, x: &[f64]) -> Vec<f64> {
        (0..self.len()).map(|frame| self.kernel.smooth(self.point(frame), x)).collect()
    }

    /// The likeliest pose at a point, `Yᵀ K⁻¹ k(x)`, `[d]`.
    pub fn mean(&self, x: &[f64]) -> Vec<f64> {
        let k = self.covariances(x);
        let mut mean = product(&k, &self.solved, 1, k.len(), self.d);
        mean.iter_mut().for_each(|v| *v *= self.unit);
        mean
    }

    /// `σ²(x) = k(x, x) − kᵀ K⁻¹ k` (5.8, corrected), with the white part; in the unit of the outputs squared.
    pub fn variance(&self, x: &[f64]) -> f64 {
        self.relative_variance(x).0 * self.unit * self.unit
    }

    /// Variance over `unit²`, and its gradient.
    fn relative_variance(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let n = self.len();
        let k = self.covariances(x);
        let pulled = product(&self.inverse, &k, n, n, 1);
        let most = self.kernel.variance + self.kernel.white;
        let variance = (most - dot(&k, &pulled)).max(1e-12 * most);
        let mut gradient = vec![0.0; self.q];
        for frame in 0..n {
            let factor = 2.0 * pulled[frame] * k[frame] / self.kernel.length_squared;
            for (slot, (x, point)) in gradient.iter_mut().zip(x.iter().zip(self.point(frame))) {
                *slot += factor * (x - point);
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

    /// `‖y − f(x)‖² / unit²` and its gradient (5.15).
    fn miss(&self, y: &[f64], x: &[f64], gradient: &mut [f64]) -> f64 {
        let k = self.covariances(x);
        let mean = product(&k, &self.solved, 1, k.len(), self.d);
        let left: Vec<f64> = mean.iter().zip(y).map(|(mean, y)| mean - y / self.unit).collect();
        let pull = product(&self.solved, &left, k.len(), self.d, 1);
        gradient.fill(0.0);
        for frame in 0..k.len() {
            let factor = -2.0 * pull[frame] * k[frame] / self.kernel.length_squared;
            for (slot, (x, point)) in gradient.iter_mut().zip(x.iter().zip(self.point(frame))) {
                *slot += factor * (x - point);
            }
        }
        dot(&left, &left)
    }

    /// The point whose pose is nearest to `y`, and the distance in the unit of the outputs: searched from the training
    /// frames with the nearest poses, in steps no longer than half a length scale, since the gradient vanishes away
    /// from the data.
    pub fn project(&self, y: &[f64]) -> (Vec<f64>, f64) {
        let target: Vec<f64> = y.iter().map(|v| v / self.unit).collect();
        let mut near: Vec<(f64, usize)> = self
            .outputs
            .chunks_exact(self.d)
            .enumerate()
            .map(|(frame, output)| (squared_distance(output, &target), frame))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Neighbours in time are one start: take them apart.
        let mut starts: Vec<usize> = Vec::new();
        for (_, frame) in near {
            if starts.len() < STARTS && starts.iter().all(|other| other.abs_diff(frame) > 4) {
                starts.push(frame);
            }
        }
        let longest_step = 0.5 * self.kernel.length_squared.sqrt();
        let config =
            ConjugateConfig { iterations: 40, gain: 1e-6, longest_step, ..ConjugateConfig::default() };
        let mut best = (self.point(starts[0]).to_vec(), f64::INFINITY);
        for start in starts {
            let mut x = self.point(start).to_vec();
            let found = minimise(&mut x, &config, |x, gradient| self.miss(y, x, gradient), |_, _| true);
            if found.cost < best.1 {
                best = (x, found.cost);
            }
        }
        (best.0, best.1.max(0.0).sqrt() * self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_testkit::gradient::directional_miss;

    /// Two clips on one curve in five dimensions: the second is the first, a little beside it.
    fn clips(frames: usize) -> (Vec<Vec<f64>>, Vec<usize>) {
        let at = |t: f64, beside: f64| {
            vec![3.0 * t.cos(), 3.0 * t.sin(), (2.0 * t).sin() + beside, 0.5 * (3.0 * t).cos(), 0.3 * t]
        };
        let one = |beside: f64| (0..frames).map(move |i| at(i as f64 * 0.12, beside));
        (one(0.0).chain(one(0.2)).collect(), vec![frames, frames])
    }

    #[test]
    fn the_whole_objective_meets_the_gradient_checker() {
        let (outputs, lengths) = clips(8);
        let flat: Vec<f64> = outputs.iter().flatten().copied().collect();
        let priors = PriorConfig { connectivity: 1.0, diffusion: 0.3, ..PriorConfig::default() };
        let (n, q, d) = (16, 3, 5);
        let objective = Objective::new(&flat, d, &lengths, q, priors).expect("sound");
        let mut random = Random::new(9);
        let mut x: Vec<f64> = (0..n * q).map(|_| random.normal()).collect();
        x.extend([0.3, -0.2, -2.0]);
        let mut gradient = vec![0.0; x.len()];
        objective.cost(&x, &mut gradient);
        let value = |x: &[f64]| objective.cost(x, &mut vec![0.0; x.len()]);
        let miss = directional_miss(value, &x, &gradient, 1e-5, 16, 1);
        assert!(miss < 1e-5, "{miss}");
        // The hyper-parameters by themselves: among many points their share would not show.
        for which in 0..3 {
            let mut moved = x.clone();
            let mut at = |h: f64| {
                moved[n * q + which] = x[n * q + which] + h;
                value(&moved)
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            let own = gradient[n * q + which];
            assert!((slope - own).abs() < 1e-4 * (1.0 + own.abs()), "{which}: {slope} {own}");
        }
    }

    #[test]
    fn a_learned_space_gives_its_poses_back_and_knows_where_they_are() {
        let (outputs, lengths) = clips(30);
        let config = LatentConfig { dimensions: 2, iterations: 120, ..LatentConfig::default() };
        let (space, learned) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
        assert!(learned.after > learned.before, "{learned:?}");
        let mut worst = 0.0f64;
        for (frame, output) in outputs.iter().enumerate() {
            worst = worst.max(squared_distance(&space.mean(space.point(frame)), output).sqrt());
            let (x, miss) = space.project(output);
            assert!(miss <= squared_distance(&space.mean(space.point(frame)), output).sqrt() + 1e-6);
            assert_eq!(x.len(), 2);
        }
        assert!(worst < 0.35, "{worst}");
        let far = vec![50.0, 50.0];
        let (inside, outside) = (space.density(space.point(10)), space.density(&far));
        assert!(inside.0 > outside.0 && outside.1.iter().all(|g| *g == 0.0), "far away nothing pulls");
        assert!(
            space.variance(&far) > space.variance(space.point(10)) && space.variance(space.point(3)) > 0.0
        );
        let x: Vec<f64> = space.point(7).iter().map(|v| v + 0.3).collect();
        let (_, gradient) = space.density(&x);
        // The variance is a small difference of large numbers: shorter steps would measure its rounding.
        let miss = directional_miss(|x| space.density(x).0, &x, &gradient, 1e-3, 6, 2);
        assert!(miss < 1e-3, "density: {miss}");
        let mut gradient = vec![0.0; 2];
        space.miss(&outputs[4], &x, &mut gradient);
        let miss = directional_miss(|x| space.miss(&outputs[4], x, &mut [0.0; 2]), &x, &gradient, 1e-5, 6, 2);
        assert!(miss < 1e-5, "projection: {miss}");
    }

    #[test]
    fn the_dynamics_prior_keeps_consecutive_frames_close() {
        let (mut outputs, lengths) = clips(30);
        let mut random = Random::new(4);
        outputs.iter_mut().flatten().for_each(|value| *value += 0.25 * random.normal());
        let step = |dynamics| {
            let priors = PriorConfig { dynamics, ..PriorConfig::default() };
            let config = LatentConfig { dimensions: 2, iterations: 100, priors };
            let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
            let size = (dot(&space.points, &space.points) / space.len() as f64).sqrt();
            (1..30).map(|i| squared_distance(space.point(i), space.point(i - 1)).sqrt()).sum::<f64>() / size
        };
        let (with, without) = (step(1.0), step(0.0));
        assert!(with < without, "way through the space: {with} with, {without} without the prior");
    }

    #[test]
    fn bad_data_is_refused_and_identical_clips_are_not() {
        let config = LatentConfig { iterations: 20, ..LatentConfig::default() };
        let one = LatentSpace::learn(&[vec![1.0]], &[1], &config, |_, _| true);
        assert_eq!(one.expect_err("one frame"), MotionError::TooFew { frames: 1 });
        let still = LatentSpace::learn(&[vec![0.0; 3], vec![0.0; 3]], &[2], &config, |_, _| true);
        assert_eq!(still.expect_err("nothing moves"), MotionError::Still);
        let (half, _) = clips(10);
        let twice: Vec<Vec<f64>> = half[..10].iter().chain(&half[..10]).cloned().collect();
        let (space, _) =
            LatentSpace::learn(&twice, &[10, 10], &config, |_, _| true).expect("identical clips");
        assert!(space.mean(space.point(3)).iter().all(|v| v.is_finite()));
        let text = serde_json_like(&space);
        assert!(text, "what is stored comes back");
    }

    /// Stored and loaded again, it gives the same poses.
    fn serde_json_like(space: &LatentSpace) -> bool {
        let stored = StoredSpace::from(space.clone());
        let mut broken = stored.clone();
        broken.points.pop();
        let back = LatentSpace::try_from(stored).expect("sound");
        LatentSpace::try_from(broken).is_err() && back.mean(space.point(1)) == space.mean(space.point(1))
    }
}
