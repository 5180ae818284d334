//! Scaled conjugate gradient (Møller 1993): minimises a smooth function by its gradient alone, without a line search.
//! The step along a direction comes from the curvature there, which is a difference of two gradients, kept positive by
//! a scale `λ` that follows how well a parabola predicts.

use crate::matrix::dot;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConjugateConfig {
    /// Most iterations.
    pub iterations: usize,
    /// Done when no gradient component is larger.
    pub gradient: f64,
    /// Done when an iteration lowers the cost by less than this share of it, three times running.
    pub gain: f64,
    /// The longest that one iteration may move the unknowns, in their own unit.
    pub longest_step: f64,
}

impl Default for ConjugateConfig {
    fn default() -> Self {
        Self { iterations: 300, gradient: 1e-6, gain: 1e-9, longest_step: f64::INFINITY }
    }
}

/// Why it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Nothing gained any more.
    Converged,
    /// All iterations used.
    Iterations,
    /// The listener asked.
    Asked,
}

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minimum {
    /// The cost at the end.
    pub cost: f64,
    /// Iterations used.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: Stop,
}

const FIRST_PROBE: f64 = 1e-4;
const SCALES: (f64, f64) = (1e-15, 1e15);

/// Minimises from `x` on. `cost` writes the gradient and returns the cost; one that is not finite is never accepted.
/// `step` hears the iteration and the cost and may say stop.
pub fn minimise(
    x: &mut [f64],
    config: &ConjugateConfig,
    mut cost: impl FnMut(&[f64], &mut [f64]) -> f64,
    mut step: impl FnMut(usize, f64) -> bool,
) -> Minimum {
    let n = x.len();
    let mut gradient = vec![0.0; n];
    let mut value = cost(x, &mut gradient);
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let (mut trial, mut there) = (vec![0.0; n], vec![0.0; n]);
    let mut scale = 1.0f64;
    let mut succeeded = true;
    let (mut slope, mut length, mut curvature) = (0.0, 0.0, 0.0);
    let (mut successes, mut still) = (0, 0);
    for iteration in 1..=config.iterations {
        if !step(iteration, value) {
            return Minimum { cost: value, iterations: iteration - 1, stop: Stop::Asked };
        }
        if succeeded {
            slope = dot(&direction, &gradient);
            if slope >= 0.0 {
                direction.iter_mut().zip(&gradient).for_each(|(d, g)| *d = -g);
                slope = dot(&direction, &gradient);
            }
            length = dot(&direction, &direction);
            if length < 1e-30 {
                return Minimum { cost: value, iterations: iteration - 1, stop: Stop::Converged };
            }
            let probe = FIRST_PROBE / length.sqrt();
            for i in 0..n {
                trial[i] = x[i] + probe * direction[i];
            }
            cost(&trial, &mut there);
            let bend: f64 = (0..n).map(|i| direction[i] * (there[i] - gradient[i])).sum();
            curvature = bend / probe;
        }
        let mut scaled = curvature + scale * length;
        if scaled <= 0.0 {
            scaled = scale * length;
            scale -= curvature / length;
        }
        let reach = (-slope / scaled).min(config.longest_step / length.sqrt());
        for i in 0..n {
            trial[i] = x[i] + reach * direction[i];
        }
        let next = cost(&trial, &mut there);
        // How much of the parabola's promise was kept.
        let kept = if next.is_finite() { 2.0 * (next - value) / (reach * slope) } else { -1.0 };
        succeeded = kept >= 0.0 && next <= value;
        if succeeded {
            successes += 1;
            x.copy_from_slice(&trial);
            let gained = value - next;
            value = next;
            let (old, new) = (dot(&gradient, &gradient), dot(&there, &there));
            let mixed = dot(&gradient, &there);
            std::mem::swap(&mut gradient, &mut there);
            if gradient.iter().all(|g| g.abs() < config.gradient) {
                return Minimum { cost: value, iterations: iteration, stop: Stop::Converged };
            }
            still = if gained < config.gain * value.abs().max(1e-12) { still + 1 } else { 0 };
            if still >= 3 {
                return Minimum { cost: value, iterations: iteration, stop: Stop::Converged };
            }
            if successes % n.max(1) == 0 {
                direction.iter_mut().zip(&gradient).for_each(|(d, g)| *d = -g);
            } else {
                let blend = ((new - mixed) / -slope).max(0.0).min(new / old.max(1e-300) * 4.0);
                direction.iter_mut().zip(&gradient).for_each(|(d, g)| *d = blend * *d - g);
            }
        }
        if kept < 0.25 {
            scale = (4.0 * scale).min(SCALES.1);
            if scale >= SCALES.1 {
                return Minimum { cost: value, iterations: iteration, stop: Stop::Converged };
            }
        } else if kept > 0.75 {
            scale = (0.5 * scale).max(SCALES.0);
        }
    }
    Minimum { cost: value, iterations: config.iterations, stop: Stop::Iterations }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_valley_is_followed_to_its_end() {
        let mut x = [-1.2, 1.0];
        let rosenbrock = |x: &[f64], g: &mut [f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            g[0] = -2.0 * a - 400.0 * x[0] * b;
            g[1] = 200.0 * b;
            a * a + 100.0 * b * b
        };
        let config = ConjugateConfig { iterations: 500, ..ConjugateConfig::default() };
        let mut last = f64::INFINITY;
        let found = minimise(&mut x, &config, rosenbrock, |_, cost| {
            assert!(cost <= last, "the cost never rises");
            last = cost;
            true
        });
        assert!(found.cost < 1e-8, "{found:?} at {x:?}");
        assert!((x[0] - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_quadratic_of_n_dimensions_takes_few_iterations_and_a_step_can_be_bounded() {
        let curvature: Vec<f64> = (0..20).map(|i| 1.0 + f64::from(i) * f64::from(i)).collect();
        let quadratic = |x: &[f64], g: &mut [f64]| {
            (0..x.len()).for_each(|i| g[i] = curvature[i] * (x[i] - 1.0));
            (0..x.len()).map(|i| 0.5 * curvature[i] * (x[i] - 1.0).powi(2)).sum::<f64>()
        };
        let mut x = vec![0.0; 20];
        let found = minimise(&mut x, &ConjugateConfig::default(), quadratic, |_, _| true);
        assert!(found.cost < 1e-6 && found.iterations < 120, "{found:?}");
        let mut x = vec![0.0; 20];
        let config = ConjugateConfig { iterations: 3, longest_step: 0.01, ..ConjugateConfig::default() };
        let found = minimise(&mut x, &config, quadratic, |_, _| true);
        let moved = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(moved <= 0.03 + 1e-9 && moved > 0.0, "{moved}");
        assert_eq!(found.stop, Stop::Iterations);
        let stopped = minimise(&mut x, &ConjugateConfig::default(), quadratic, |iteration, _| iteration < 3);
        assert_eq!((stopped.stop, stopped.iterations), (Stop::Asked, 2));
    }
}
