//! A place in a latent space: up to [`MOST_DIMENSIONS`] numbers, the rest zero, so that no step of a particle allocates.

use std::ops::{Add, AddAssign, Mul, Sub};

/// The most dimensions of a latent space.
pub const MOST_DIMENSIONS: usize = 8;

/// A place, a velocity or a force in a latent space; coordinates beyond its dimensions are zero.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LatentPoint(pub [f64; MOST_DIMENSIONS]);

impl LatentPoint {
    /// From at most [`MOST_DIMENSIONS`] coordinates; more are left out.
    pub fn new(coordinates: &[f64]) -> Self {
        let mut point = Self::default();
        point.0.iter_mut().zip(coordinates).for_each(|(slot, value)| *slot = *value);
        point
    }

    /// From single precision.
    pub(super) fn of_singles(coordinates: &[f32]) -> Self {
        let mut point = Self::default();
        point.0.iter_mut().zip(coordinates).for_each(|(slot, value)| *slot = f64::from(*value));
        point
    }

    /// The first so many coordinates.
    pub fn coordinates(&self, dimensions: usize) -> &[f64] {
        &self.0[..dimensions.min(MOST_DIMENSIONS)]
    }

    /// Scalar product.
    pub fn dot(self, other: Self) -> f64 {
        self.0.iter().zip(other.0).map(|(a, b)| a * b).sum()
    }

    /// Squared length.
    pub fn length_squared(self) -> f64 {
        self.dot(self)
    }

    /// Length.
    pub fn length(self) -> f64 {
        self.length_squared().sqrt()
    }

    /// Distance.
    pub fn distance(self, other: Self) -> f64 {
        (self - other).length()
    }

    /// Finite, and zero beyond so many coordinates.
    pub(super) fn fits(&self, dimensions: usize) -> bool {
        self.0.iter().all(|v| v.is_finite()) && self.0.iter().skip(dimensions).all(|v| *v == 0.0)
    }
}

impl Add for LatentPoint {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl AddAssign for LatentPoint {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for LatentPoint {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }
}

impl Mul<f64> for LatentPoint {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0.map(|v| v * factor))
    }
}
