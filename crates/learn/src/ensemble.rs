//! A learner that takes a second: a few linear regressions on random features, whose disagreement says where they know
//! little. For choosing poses, not for playing them. Start at [`Ensemble::fit`].

use crate::diff::components::Basis;
use crate::matrix::{View, multiply};
use rayon::prelude::*;
use understudy_core::Random;
use understudy_core::linear_algebra::Cholesky;

/// Sizes of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnsembleSettings {
    /// Regressions.
    pub members: usize,
    /// Random features of each, beside the inputs themselves.
    pub features: usize,
    /// Principal components of what is learned.
    pub components: usize,
    /// Same seed, same ensemble.
    pub seed: u64,
}

impl Default for EnsembleSettings {
    fn default() -> Self {
        Self { members: 5, features: 256, components: 64, seed: 1 }
    }
}

/// Rows that components are found in.
const COMPONENT_ROWS: usize = 400;
/// Strengths of the ridge that are tried, as shares of the mean diagonal.
const RIDGES: [f64; 4] = [1e-5, 1e-4, 1e-3, 1e-2];

/// `y ≈ mean + Bᵀ Wᵀ φ(x)`, with `φ` the inputs, a one and random features `tanh(A x + b)`; each member has features and a
/// resample of the rows of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Ensemble {
    mean: Vec<f32>,
    /// `[K × width]`.
    basis: Vec<f32>,
    components: usize,
    input_mean: Vec<f32>,
    input_scale: Vec<f32>,
    members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq)]
struct Member {
    /// `[H × (inputs + 1)]`, the last number is added.
    random: Vec<f32>,
    /// `[(inputs + 1 + H) × K]`.
    weights: Vec<f32>,
}

impl Ensemble {
    /// Learns `y` `[n × width]` from `x` `[n × inputs]`.
    ///
    /// # Panics
    /// Without rows, or when the arrays have other sizes.
    pub fn fit(x: &[f32], inputs: usize, y: &[f32], width: usize, settings: &EnsembleSettings) -> Self {
        let n = y.len() / width;
        assert!(
            n > 0 && x.len() == n * inputs && y.len() == n * width,
            "one row of inputs per row of outputs"
        );
        let (input_mean, input_scale) = normalisation(x, inputs, n);
        let chosen = n.min(COMPONENT_ROWS);
        let mut some: Vec<f32> =
            (0..chosen).flat_map(|i| y[i * n / chosen * width..][..width].iter().copied()).collect();
        let Basis { mean, rows: basis, deviations } = Basis::new(&mut some, width, settings.components);
        let components = deviations.len();
        let mut out = Self { mean, basis, components, input_mean, input_scale, members: Vec::new() };
        let normal: Vec<f32> = x.chunks_exact(inputs.max(1)).flat_map(|row| out.normalised(row)).collect();
        let targets = out.project(y, n);
        out.members = (0..settings.members)
            .into_par_iter()
            .map(|member| Member::fit(&normal, inputs, &targets, components, n, member as u64, settings))
            .collect();
        out
    }

    fn normalised(&self, row: &[f32]) -> Vec<f32> {
        let numbers = row.iter().zip(self.input_mean.iter().zip(&self.input_scale));
        numbers.map(|(value, (mean, scale))| (value - mean) * scale).collect()
    }

    /// Coefficients of rows, `[n × K]`.
    fn project(&self, y: &[f32], n: usize) -> Vec<f32> {
        let (width, k) = (self.mean.len(), self.components);
        let mut out = vec![0.0f32; n * k];
        if k == 0 {
            return out;
        }
        out.par_chunks_mut(64 * k).zip(y.par_chunks(64 * width)).for_each(|(out, rows)| {
            let about: Vec<f32> = rows
                .chunks_exact(width)
                .flat_map(|row| row.iter().zip(&self.mean).map(|(r, m)| r - m))
                .collect();
            let count = rows.len() / width;
            let basis = View::new(&self.basis, k, width);
            multiply(out, 0.0, View::new(&about, count, width), basis.transposed());
        });
        out
    }

    /// Coefficients by every member, `[members][K]`.
    fn coefficients(&self, x: &[f32]) -> Vec<Vec<f32>> {
        let normal = self.normalised(x);
        self.members.iter().map(|member| member.coefficients(&normal, self.components)).collect()
    }

    /// What the members say on average, into `out` `[width]`.
    pub fn predict(&self, x: &[f32], out: &mut [f32]) {
        let all = self.coefficients(x);
        out.copy_from_slice(&self.mean);
        let share = 1.0 / all.len().max(1) as f32;
        for (k, row) in self.basis.chunks_exact(self.mean.len().max(1)).enumerate() {
            let coefficient = share * all.iter().map(|one| one[k]).sum::<f32>();
            out.iter_mut().zip(row).for_each(|(out, r)| *out += coefficient * r);
        }
    }

    /// Root mean square distance of the members from their mean, over all outputs, in their unit.
    pub fn disagreement(&self, x: &[f32]) -> f64 {
        let all = self.coefficients(x);
        let count = all.len().max(1) as f64;
        let variance = |k: usize| {
            let mean = all.iter().map(|one| f64::from(one[k])).sum::<f64>() / count;
            all.iter().map(|one| (f64::from(one[k]) - mean).powi(2)).sum::<f64>() / count
        };
        // The basis is orthonormal: squares of coefficients are squares of outputs.
        ((0..self.components).map(variance).sum::<f64>() / self.mean.len().max(1) as f64).sqrt()
    }
}

impl Member {
    fn fit(
        x: &[f32],
        inputs: usize,
        y: &[f32],
        k: usize,
        n: usize,
        member: u64,
        settings: &EnsembleSettings,
    ) -> Self {
        let mut random = Random::stream(settings.seed, member);
        let strength = 1.0 / (inputs.max(1) as f32).sqrt();
        let weights = (0..settings.features * (inputs + 1)).map(|_| 1.5 * strength * random.normal() as f32);
        let mut out = Self { random: weights.collect(), weights: Vec::new() };
        // A resample of the rows, as many as there are.
        let rows: Vec<usize> = (0..n).map(|_| random.below(n)).collect();
        let p = inputs + 1 + settings.features;
        let features: Vec<f64> = rows
            .iter()
            .flat_map(|row| out.features(&x[row * inputs..(row + 1) * inputs]))
            .map(f64::from)
            .collect();
        let targets: Vec<f64> =
            rows.iter().flat_map(|row| &y[row * k..(row + 1) * k]).map(|v| f64::from(*v)).collect();
        // Rows that were not drawn judge the ridge.
        let mut drawn = vec![false; n];
        rows.iter().for_each(|row| drawn[*row] = true);
        let judges: Vec<usize> = (0..n).filter(|row| !drawn[*row]).take(300).collect();
        let (mut gram, mut right) = (vec![0.0; p * p], vec![0.0; p * k]);
        let view = View::new(&features, n, p);
        multiply(&mut gram, 0.0, view.transposed(), view);
        if k > 0 {
            multiply(&mut right, 0.0, view.transposed(), View::new(&targets, n, k));
        }
        let diagonal = (0..p).map(|i| gram[i * p + i]).sum::<f64>() / p as f64;
        let mut best: (f64, Vec<f32>) = (f64::INFINITY, vec![0.0; p * k]);
        for share in RIDGES {
            let mut system = gram.clone();
            (0..p).for_each(|i| system[i * p + i] += share * diagonal + f64::MIN_POSITIVE);
            let mut solution = right.clone();
            let Some(factor) = Cholesky::new(&system, p) else { continue };
            factor.solve(&mut solution, k);
            let tried = Self { weights: solution.iter().map(|s| *s as f32).collect(), ..out.clone() };
            let miss = |row: &usize| {
                let said = tried.coefficients(&x[row * inputs..(row + 1) * inputs], k);
                said.iter().zip(&y[row * k..]).map(|(a, b)| f64::from((a - b) * (a - b))).sum::<f64>()
            };
            let error: f64 = judges.iter().map(miss).sum();
            if error < best.0 {
                best = (error, tried.weights);
            }
        }
        out.weights = best.1;
        out
    }

    /// The inputs, a one, and the random features.
    fn features(&self, x: &[f32]) -> Vec<f32> {
        let mut out = x.to_vec();
        out.push(1.0);
        let feature = |row: &[f32]| {
            let (shift, weights) = row.split_last().expect("a shift at least");
            (weights.iter().zip(x).map(|(w, x)| w * x).sum::<f32>() + shift).tanh()
        };
        let features: Vec<f32> = self.random.chunks_exact(x.len() + 1).map(feature).collect();
        out.extend(features);
        out
    }

    fn coefficients(&self, x: &[f32], k: usize) -> Vec<f32> {
        let mut out = vec![0.0; k];
        for (feature, row) in self.features(x).iter().zip(self.weights.chunks_exact(k.max(1))) {
            out.iter_mut().zip(row).for_each(|(sum, w)| *sum += feature * w);
        }
        out
    }
}

/// Means and one over deviations of columns; columns that never change are left at zero.
fn normalisation(x: &[f32], inputs: usize, n: usize) -> (Vec<f32>, Vec<f32>) {
    let column = |i: usize| x.iter().skip(i).step_by(inputs.max(1)).map(|v| f64::from(*v));
    let one = |i: usize| {
        let mean = column(i).sum::<f64>() / n as f64;
        let deviation = (column(i).map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        (mean as f32, if deviation > 1e-6 { (1.0 / deviation) as f32 } else { 0.0 })
    };
    (0..inputs).map(one).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two numbers from two inputs, smooth but not linear.
    fn rows(n: usize, reach: f32, seed: u64) -> (Vec<f32>, Vec<f32>) {
        let mut random = Random::new(seed);
        let x: Vec<f32> = (0..2 * n).map(|_| random.uniform(-reach, reach)).collect();
        let y = x.chunks(2).flat_map(|p| [(1.5 * p[0]).sin(), p[0] * p[1], 0.5 * p[1]]).collect();
        (x, y)
    }

    #[test]
    fn it_learns_and_disagrees_where_it_has_seen_nothing() {
        let settings = EnsembleSettings { features: 80, ..EnsembleSettings::default() };
        let (x, y) = rows(400, 1.0, 1);
        let ensemble = Ensemble::fit(&x, 2, &y, 3, &settings);
        let (test, truth) = rows(100, 1.0, 2);
        let mut out = [0.0; 3];
        let mut error = 0.0f32;
        for (x, y) in test.chunks(2).zip(truth.chunks(3)) {
            ensemble.predict(x, &mut out);
            error += out.iter().zip(y).map(|(a, b)| (a - b).abs()).sum::<f32>() / 300.0;
        }
        assert!(error < 0.05, "{error}");
        let inside = ensemble.disagreement(&[0.2, -0.3]);
        let outside = ensemble.disagreement(&[2.5, -2.5]);
        assert!(outside > 5.0 * inside && inside > 0.0, "{inside} {outside}");
        assert_eq!(ensemble, Ensemble::fit(&x, 2, &y, 3, &settings), "same seed, same ensemble");
    }

    #[test]
    fn constants_and_a_single_row_are_fine() {
        let settings = EnsembleSettings { features: 8, ..EnsembleSettings::default() };
        for (x, y) in [(vec![0.5; 6], vec![2.0; 9]), (vec![0.1, 0.2], vec![1.0, 2.0, 3.0])] {
            let ensemble = Ensemble::fit(&x, 2, &y, 3, &settings);
            let mut out = [0.0; 3];
            ensemble.predict(&[0.3, 0.3], &mut out);
            assert!(out.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-4), "{out:?}");
            assert_eq!(ensemble.disagreement(&[1.0, 1.0]), 0.0);
        }
    }
}
