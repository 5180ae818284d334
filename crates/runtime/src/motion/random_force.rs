//! A smooth random force: a Gaussian process in time by random Fourier features, advanced by half frames.

use super::point::{LatentPoint, MOST_DIMENSIONS};
use understudy_core::Random;

/// Waves per dimension.
const WAVES: usize = 48;
/// Frames after which rounding of the waves' lengths is mended.
const MEND: u64 = 4096;

/// A smooth random force as a Gaussian process in time, `k(t, t') = a² exp(−(t − t')² / 2γ)`: a sum of waves whose
/// frequencies are drawn from the kernel's spectrum. It needs no end and no memory of what was; times are frames.
#[derive(Debug, Clone)]
pub struct RandomForce {
    dimensions: usize,
    size: f64,
    /// Cosine and sine of every wave now, `[dimension][wave]`.
    waves: Vec<[f64; 2]>,
    /// What half a frame turns them by.
    turns: Vec<[f64; 2]>,
    halves: u64,
}

impl RandomForce {
    /// The force of a seed: of size `a` in every dimension, keeping its direction for about `frames` = √γ.
    pub fn new(seed: u64, dimensions: usize, size: f64, frames: f64) -> Self {
        let mut random = Random::stream(seed, 0x666f_7263);
        let count = dimensions.min(MOST_DIMENSIONS) * WAVES;
        let (mut waves, mut turns) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let (frequency, phase) = (random.normal() / frames, random.unit() * std::f64::consts::TAU);
            waves.push([phase.cos(), phase.sin()]);
            turns.push([(0.5 * frequency).cos(), (0.5 * frequency).sin()]);
        }
        Self { dimensions: dimensions.min(MOST_DIMENSIONS), size, waves, turns, halves: 0 }
    }

    /// The force now.
    pub fn now(&self) -> LatentPoint {
        let scale = self.size * (2.0 / WAVES as f64).sqrt();
        let mut force = LatentPoint::default();
        for (slot, waves) in force.0.iter_mut().take(self.dimensions).zip(self.waves.chunks_exact(WAVES)) {
            *slot = scale * waves.iter().map(|wave| wave[0]).sum::<f64>();
        }
        force
    }

    /// Half a frame on.
    pub fn advance_half(&mut self) {
        for (wave, turn) in self.waves.iter_mut().zip(&self.turns) {
            *wave = [wave[0] * turn[0] - wave[1] * turn[1], wave[0] * turn[1] + wave[1] * turn[0]];
        }
        self.halves += 1;
        if self.halves.is_multiple_of(2 * MEND) {
            for wave in &mut self.waves {
                let length = wave[0].hypot(wave[1]);
                *wave = wave.map(|v| v / length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_process_of_the_kernel_and_of_the_seed() {
        let (size, frames) = (0.7, 10.0);
        let (mut same, mut apart, mut count) = (0.0, 0.0, 0.0);
        for seed in 0..600 {
            let mut force = RandomForce::new(seed, 2, size, frames);
            for _ in 0..3 {
                let early = force.now();
                (0..20).for_each(|_| force.advance_half());
                for k in 0..2 {
                    same += early.0[k].powi(2);
                    apart += early.0[k] * force.now().0[k];
                    count += 1.0;
                }
            }
        }
        // Monte Carlo over 3,600 draws: a few per cent.
        assert!((same / count / (size * size) - 1.0).abs() < 0.1);
        assert!((apart / count / (size * size) - (-0.5f64).exp()).abs() < 0.1);
        assert_eq!(RandomForce::new(3, 2, 1.0, 5.0).now(), RandomForce::new(3, 2, 1.0, 5.0).now());
        assert_ne!(RandomForce::new(3, 2, 1.0, 5.0).now(), RandomForce::new(4, 2, 1.0, 5.0).now());
    }

    #[test]
    fn a_hundred_thousand_frames_on_it_is_where_the_waves_are() {
        let mut force = RandomForce::new(9, 1, 1.0, 8.0);
        let start = force.clone();
        (0..200_000).for_each(|_| force.advance_half());
        let mut random = Random::stream(9, 0x666f_7263);
        let mut sum = 0.0;
        for _ in 0..WAVES {
            let (frequency, phase) = (random.normal() / 8.0, random.unit() * std::f64::consts::TAU);
            sum += (frequency * 100_000.0 + phase).cos();
        }
        let want = sum * (2.0 / WAVES as f64).sqrt();
        // Each turn rounds by 1e-16 of an angle; 200,000 of them and the sum of 48 stay below 1e-8.
        assert!((force.now().0[0] - want).abs() < 1e-8, "{} {want}", force.now().0[0]);
        assert_ne!(force.now(), start.now());
    }
}
