//! The gradient checker that every derivative must meet.

use understudy_core::Random;

/// Compares a gradient with central differences along random directions. `cost` is evaluated at `x ± h d`
/// with unit `d`; gives the largest relative miss `|g·d − Δ| / (|g·d| + |Δ| + floor)`. Keep `x` away from
/// kinks.
pub fn directional_miss(
    mut cost: impl FnMut(&[f64]) -> f64,
    x: &[f64],
    gradient: &[f64],
    step: f64,
    directions: usize,
    seed: u64,
) -> f64 {
    assert_eq!(x.len(), gradient.len(), "one derivative a variable");
    let mut random = Random::new(seed);
    let scale = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    let mut worst = 0.0f64;
    for _ in 0..directions {
        let mut direction: Vec<f64> = x.iter().map(|_| random.normal()).collect();
        let length = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
        direction.iter_mut().for_each(|d| *d /= length);
        let mut at = |sign: f64| {
            let moved: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + sign * step * d).collect();
            cost(&moved)
        };
        let difference = (at(1.0) - at(-1.0)) / (2.0 * step);
        let slope: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        // A direction nearly across the gradient has a tiny slope: measure it against the typical one.
        let floor = scale / (x.len() as f64).sqrt() * 0.1;
        worst = worst.max((slope - difference).abs() / (slope.abs() + difference.abs() + floor + 1e-300));
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_gradient_passes_and_a_wrong_one_does_not() {
        let cost = |x: &[f64]| x[0] * x[0] * x[1] + x[1].sin();
        let x = [0.7f64, -0.4];
        let right = [2.0 * x[0] * x[1], x[0] * x[0] + x[1].cos()];
        assert!(directional_miss(cost, &x, &right, 1e-5, 20, 1) < 1e-8);
        assert!(directional_miss(cost, &x, &[right[0], right[1] * 1.01], 1e-5, 20, 1) > 1e-3);
    }
}
