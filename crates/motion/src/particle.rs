//! A particle that walks a latent space: it follows a path within a radius, is drawn to where poses are likely, and is
//! nudged by a smooth random force, so that no repetition is like the last. One Runge–Kutta step per frame.
//!
//! The path constraint `‖x − p(t)‖ ≤ r` adds `F_c = λ g`, `g = x − p`, `λ = −(gᵀF + G) / gᵀg` (5.9, whose sign is
//! wrong in print), `G = ‖ẋ − ṗ‖² + 2α gᵀ(ẋ − ṗ) + ½ β² (gᵀg − r²)` (5.10), `β = α²`, and only where it pulls
//! towards the path. It acts beyond `0.98 r`, where `g` is no longer small, and what one frame still overshoots is
//! projected back at its end.

use crate::matrix::dot;
use serde::{Deserialize, Serialize};
use understudy_core::Random;

/// The path constraint acts beyond this share of the radius.
pub const ACTIVE: f64 = 0.98;
/// Fastest motion relative to the path, radii per frame: a path that starts or stops is faster than its radius is
/// wide, and no integration of one step per frame survives that.
const FASTEST: f64 = 0.5;

/// Forces on a particle; lengths are those of the latent space, times are frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Forces {
    /// `α`, per frame.
    pub stiffness: f64,
    /// Drag on the motion relative to the path, per frame: what the random force adds must go somewhere.
    pub drag: f64,
    /// Size of the random force, in radii per frame².
    pub random: f64,
    /// `√γ`: the random force keeps its direction for about so many frames.
    pub random_frames: f64,
    /// `a`, in radii per frame².
    pub likelihood: f64,
}

impl Default for Forces {
    fn default() -> Self {
        Self { stiffness: 0.5, drag: 0.15, random: 0.015, random_frames: 10.0, likelihood: 0.02 }
    }
}

/// A smooth random force as a Gaussian process in time, `k(t, t') = a² exp(−(t − t')² / 2γ)`, by random Fourier
/// features: a sum of waves whose frequencies are drawn from the kernel's spectrum. It needs no end and no memory.
#[derive(Debug, Clone)]
pub struct RandomForce {
    /// Frequency and phase per wave, per dimension.
    waves: Vec<Vec<(f64, f64)>>,
    size: f64,
}

impl RandomForce {
    const WAVES: usize = 48;

    /// The force of a seed.
    pub fn new(seed: u64, dimensions: usize, size: f64, frames: f64) -> Self {
        let mut random = Random::stream(seed, 0x666f_7263);
        let mut wave = || (random.normal() / frames, random.unit() * std::f64::consts::TAU);
        let waves = (0..dimensions).map(|_| (0..Self::WAVES).map(|_| wave()).collect()).collect();
        Self { waves, size }
    }

    /// At a time in frames.
    pub fn at(&self, time: f64) -> Vec<f64> {
        let scale = self.size * (2.0 / Self::WAVES as f64).sqrt();
        let sum = |waves: &Vec<(f64, f64)>| {
            scale * waves.iter().map(|(frequency, phase)| (frequency * time + phase).cos()).sum::<f64>()
        };
        self.waves.iter().map(sum).collect()
    }
}

/// Where the path is at the beginning of a frame, and how far it goes during it.
#[derive(Debug, Clone, Copy)]
pub struct PathPiece<'a> {
    /// `p` at the beginning.
    pub from: &'a [f64],
    /// `p` at the end.
    pub to: &'a [f64],
    /// `r`.
    pub radius: f64,
}

/// A point with a velocity.
#[derive(Debug, Clone, PartialEq)]
pub struct Particle {
    /// Place.
    pub x: Vec<f64>,
    /// Per frame.
    pub v: Vec<f64>,
}

impl Particle {
    /// At rest.
    pub fn new(x: Vec<f64>) -> Self {
        Self { v: vec![0.0; x.len()], x }
    }

    /// Moves on by one frame; `force(t, x)` with `t` from 0 to 1 within the frame. Gives how far the projection at the
    /// end moved it.
    pub fn frame(
        &mut self,
        path: PathPiece<'_>,
        forces: &Forces,
        force: impl Fn(f64, &[f64]) -> Vec<f64>,
    ) -> f64 {
        self.slow_down(path);
        self.advance(path, forces, 0.0, 1.0, &force);
        let moved = self.project(path);
        self.slow_down(path);
        moved
    }

    /// Bounds the velocity relative to the path.
    fn slow_down(&mut self, path: PathPiece<'_>) {
        let pace = |i: usize| path.to[i] - path.from[i];
        let relative: Vec<f64> = (0..self.v.len()).map(|i| self.v[i] - pace(i)).collect();
        let speed = dot(&relative, &relative).sqrt();
        let most = FASTEST * path.radius;
        if speed > most {
            (0..self.v.len()).for_each(|i| self.v[i] = pace(i) + relative[i] * most / speed);
        }
    }

    /// A step of the fourth-order Runge–Kutta method from `start` to `start + step`, in frames.
    pub fn advance(
        &mut self,
        path: PathPiece<'_>,
        forces: &Forces,
        start: f64,
        step: f64,
        force: &impl Fn(f64, &[f64]) -> Vec<f64>,
    ) {
        let n = self.x.len();
        let slope = |t: f64, x: &[f64], v: &[f64]| acceleration(path, forces, t, x, v, force(t, x));
        let moved = |a: &[f64], b: &[f64], h: f64| -> Vec<f64> { (0..n).map(|i| a[i] + h * b[i]).collect() };
        let (x, v) = (&self.x, &self.v);
        let a1 = slope(start, x, v);
        let (x2, v2) = (moved(x, v, 0.5 * step), moved(v, &a1, 0.5 * step));
        let a2 = slope(start + 0.5 * step, &x2, &v2);
        let (x3, v3) = (moved(x, &v2, 0.5 * step), moved(v, &a2, 0.5 * step));
        let a3 = slope(start + 0.5 * step, &x3, &v3);
        let (x4, v4) = (moved(x, &v3, step), moved(v, &a3, step));
        let a4 = slope(start + step, &x4, &v4);
        let sixth = step / 6.0;
        self.x =
            (0..n).map(|i| self.x[i] + sixth * (self.v[i] + 2.0 * v2[i] + 2.0 * v3[i] + v4[i])).collect();
        self.v = (0..n).map(|i| self.v[i] + sixth * (a1[i] + 2.0 * a2[i] + 2.0 * a3[i] + a4[i])).collect();
    }

    /// Back onto the radius, without the speed that led out.
    fn project(&mut self, path: PathPiece<'_>) -> f64 {
        let g: Vec<f64> = self.x.iter().zip(path.to).map(|(x, p)| x - p).collect();
        let away = dot(&g, &g).sqrt();
        if away <= path.radius {
            return 0.0;
        }
        let outward: f64 =
            (0..g.len()).map(|i| g[i] / away * (self.v[i] - (path.to[i] - path.from[i]))).sum();
        for i in 0..g.len() {
            self.x[i] = path.to[i] + g[i] * path.radius / away;
            self.v[i] -= outward.max(0.0) * g[i] / away;
        }
        away - path.radius
    }
}

/// `F + F_c` for a unit mass.
fn acceleration(
    path: PathPiece<'_>,
    forces: &Forces,
    t: f64,
    x: &[f64],
    v: &[f64],
    mut force: Vec<f64>,
) -> Vec<f64> {
    let n = x.len();
    let g: Vec<f64> = (0..n).map(|i| x[i] - (path.from[i] + t * (path.to[i] - path.from[i]))).collect();
    let relative: Vec<f64> = (0..n).map(|i| v[i] - (path.to[i] - path.from[i])).collect();
    (0..n).for_each(|i| force[i] -= forces.drag * relative[i]);
    let squared = dot(&g, &g);
    let radius = path.radius;
    if squared > (ACTIVE * radius).powi(2) && squared > 0.0 {
        let alpha = forces.stiffness;
        let beta_squared = alpha.powi(4);
        let baumgarte = dot(&relative, &relative)
            + 2.0 * alpha * dot(&g, &relative)
            + 0.5 * beta_squared * (squared - radius * radius);
        let lambda = -(dot(&g, &force) + baumgarte) / squared;
        if lambda < 0.0 {
            (0..n).for_each(|i| force[i] += lambda * g[i]);
        }
    }
    force
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::squared_distance;

    #[test]
    fn the_integration_is_of_fourth_order_where_the_constraint_rests() {
        let force = |t: f64, x: &[f64]| vec![(3.0 * t).sin() - 0.8 * x[0].sin(), (2.0 * t).cos() * x[0]];
        let forces = Forces::default();
        let (from, to) = ([0.0, 0.0], [0.3, 0.1]);
        let path = PathPiece { from: &from, to: &to, radius: 100.0 };
        let run = |steps: usize| {
            let mut particle = Particle { x: vec![0.2, -0.1], v: vec![0.5, 0.4] };
            let h = 1.0 / steps as f64;
            (0..steps).for_each(|step| particle.advance(path, &forces, step as f64 * h, h, &force));
            particle.x
        };
        let truth = run(4096);
        let miss = |steps| squared_distance(&run(steps), &truth).sqrt();
        for steps in [8, 16] {
            let order = (miss(steps) / miss(2 * steps)).log2();
            assert!((order - 4.0).abs() <= 0.3, "{steps} steps: order {order}");
        }
    }

    #[test]
    fn the_particle_stays_by_its_path() {
        let forces = Forces::default();
        let radius = 0.1;
        for seed in 1..4 {
            let noise = RandomForce::new(seed, 3, forces.random * radius, forces.random_frames);
            let path = |frame: usize| {
                let t = frame as f64 * 0.01;
                vec![t.cos(), (1.3 * t).sin(), 0.5 * (0.7 * t).sin()]
            };
            let mut particle = Particle::new(path(0));
            let (mut strong, mut moved) = (0, 0.0);
            const FRAMES: usize = 50_000;
            for frame in 0..FRAMES {
                let (from, to) = (path(frame), path(frame + 1));
                let piece = PathPiece { from: &from, to: &to, radius };
                let projected = particle.frame(piece, &forces, |t, _| noise.at(frame as f64 + t));
                strong += usize::from(projected > 0.05 * radius);
                let away = squared_distance(&particle.x, &to).sqrt();
                assert!(away <= 1.01 * radius, "frame {frame}: {away}");
                moved += away;
            }
            assert!(strong * 1000 <= FRAMES, "{strong} of {FRAMES} frames needed much projection");
            assert!(moved / FRAMES as f64 > 0.1 * radius, "it does move about");
        }
    }

    #[test]
    fn the_random_force_is_a_process_of_the_kernel_and_of_the_seed() {
        let (size, frames) = (0.7, 10.0);
        let (mut same, mut apart, mut count) = (0.0, 0.0, 0.0);
        for seed in 0..400 {
            let force = RandomForce::new(seed, 1, size, frames);
            for t in [0.0, 1000.0, 1e6] {
                same += force.at(t)[0].powi(2);
                apart += force.at(t)[0] * force.at(t + 10.0)[0];
                count += 1.0;
            }
        }
        // Monte Carlo over 1,200 draws: a few per cent.
        assert!((same / count / (size * size) - 1.0).abs() < 0.15);
        assert!((apart / count / (size * size) - (-0.5f64).exp()).abs() < 0.15);
        assert_eq!(RandomForce::new(3, 2, 1.0, 5.0).at(7.5), RandomForce::new(3, 2, 1.0, 5.0).at(7.5));
        assert_ne!(RandomForce::new(3, 2, 1.0, 5.0).at(7.5), RandomForce::new(4, 2, 1.0, 5.0).at(7.5));
    }
}
