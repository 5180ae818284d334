//! Adam (Kingma and Ba 2015), and plain gradient descent for recipes of papers that have it.

use serde::{Deserialize, Serialize};

/// How parameters follow the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimiser {
    /// With averages of the gradient and its square.
    #[default]
    Adam,
    /// Stochastic gradient descent without momentum.
    Sgd,
}

/// State of the optimiser: β₁ = 0.9, β₂ = 0.999, ε = 1e-8, as the body-twin paper has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: i32,
    optimiser: Optimiser,
}

impl Adam {
    const BETA_1: f32 = 0.9;
    const BETA_2: f32 = 0.999;
    const EPSILON: f32 = 1e-8;

    /// For that many parameters.
    pub fn new(count: usize) -> Self {
        Self::with_optimiser(Optimiser::Adam, count)
    }

    /// The state of an optimiser; gradient descent has none.
    pub fn with_optimiser(optimiser: Optimiser, count: usize) -> Self {
        let count = if optimiser == Optimiser::Adam { count } else { 0 };
        Self { first: vec![0.0; count], second: vec![0.0; count], steps: 0, optimiser }
    }

    /// Averages of the gradient and of its square, for checkpoints.
    pub fn averages(&self) -> [&[f32]; 2] {
        [&self.first, &self.second]
    }

    /// Goes on where [`Adam::averages`] were taken; `None` where they are of another network.
    pub fn restore(mut self, [first, second]: [Vec<f32>; 2], steps: usize) -> Option<Self> {
        let fits = first.len() == self.first.len() && second.len() == self.second.len();
        (self.first, self.second, self.steps) = (first, second, i32::try_from(steps).ok()?);
        fits.then_some(self)
    }

    /// One step down the gradient. `decay` draws every parameter towards zero by `rate · decay`, apart
    /// from the gradient (Loshchilov and Hutter 2019).
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32, decay: f32) {
        let keep = 1.0 - rate * decay;
        if self.optimiser == Optimiser::Sgd {
            parameters.iter_mut().zip(gradient).for_each(|(p, g)| *p = keep * *p - rate * g);
            return;
        }
        self.steps += 1;
        let correction_1 = 1.0 / (1.0 - Self::BETA_1.powi(self.steps));
        let correction_2 = 1.0 / (1.0 - Self::BETA_2.powi(self.steps));
        let moments = self.first.iter_mut().zip(self.second.iter_mut());
        for ((parameter, g), (m, v)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *m = Self::BETA_1 * *m + (1.0 - Self::BETA_1) * g;
            *v = Self::BETA_2 * *v + (1.0 - Self::BETA_2) * g * g;
            *parameter =
                keep * *parameter - rate * *m * correction_1 / ((*v * correction_2).sqrt() + Self::EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_rate_and_a_parabola_is_solved() {
        let mut adam = Adam::new(1);
        let mut x = [3.0f32];
        adam.step(&mut x, &[6.0], 0.1, 0.0);
        assert!((x[0] - 2.9).abs() < 1e-6);
        for _ in 0..500 {
            let g = [2.0 * x[0]];
            adam.step(&mut x, &g, 0.05, 0.0);
        }
        assert!(x[0].abs() < 1e-2, "{}", x[0]);
    }
}
