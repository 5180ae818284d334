//! A particle that walks a latent space: it follows a path within a radius, is drawn to where poses are likely, and is
//! nudged by a smooth random force, so that no repetition is like the last. One Runge–Kutta step per frame.
//!
//! The path constraint `‖x − p(t)‖ ≤ r` adds `F_c = λ g`, `g = x − p`, `λ = −(gᵀF + G) / gᵀg` (5.9, whose sign is
//! wrong in print), `G = ‖ẋ − ṗ‖² + 2α gᵀ(ẋ − ṗ) + ½ β² (gᵀg − r²)` (5.10), `β = α²`, and only where it pulls
//! towards the path. It acts beyond `0.98 r`, where `g` is no longer small. One step per frame is too long for a constraint
//! that sets in within it: a frame that leads there is integrated again in [`SUBSTEPS`] steps, with the forces of the first
//! (the likelihood, which is what costs, is not asked again). What is still overshot is projected back at the frame's end.
//!
//! A path that goes further in a frame than its radius is wide carries the particle along: motion is relative to the path,
//! and of a change of the path's pace at most [`SLIP`] is felt.

use super::point::LatentPoint;
use serde::{Deserialize, Serialize};

/// The path constraint acts beyond this share of the radius.
pub const ACTIVE: f64 = 0.98;
/// Fastest motion relative to the path, radii per frame: a path that starts or stops is faster than its radius is
/// wide, and no integration of one step per frame survives that.
const FASTEST: f64 = 0.5;
/// What of a change of the path's pace the particle feels, radii per frame at most.
const SLIP: f64 = 0.3;
/// Steps of a frame in which the constraint acts.
const SUBSTEPS: usize = 16;

/// Forces on a particle; lengths are radii of the path, times are frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Forces {
    /// `α`, per frame; the constraint stops what leads out in about half of its inverse.
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
        Self { stiffness: 4.0, drag: 0.15, random: 0.015, random_frames: 10.0, likelihood: 0.02 }
    }
}

/// Where the path is at the beginning of a frame, and how far it goes during it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathPiece {
    /// `p` at the beginning.
    pub from: LatentPoint,
    /// `p` at the end.
    pub to: LatentPoint,
    /// `r`.
    pub radius: f64,
}

impl PathPiece {
    /// `ṗ`, per frame.
    fn pace(&self) -> LatentPoint {
        self.to - self.from
    }
}

/// A point with a velocity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Particle {
    /// Place.
    pub x: LatentPoint,
    /// Per frame.
    pub v: LatentPoint,
    /// What the path went in the last frame.
    carried: LatentPoint,
}

impl Particle {
    /// At rest.
    pub fn new(x: LatentPoint) -> Self {
        Self::moving(x, LatentPoint::default())
    }

    /// On its own way, which no path carried it.
    pub fn moving(x: LatentPoint, v: LatentPoint) -> Self {
        Self { x, v, carried: LatentPoint::default() }
    }

    /// Moves on by one frame; `force(t, x)` with `t` from 0 to 1 within the frame. Gives how far the projection at the
    /// end moved it.
    pub fn frame(
        &mut self,
        path: PathPiece,
        forces: &Forces,
        mut force: impl FnMut(f64, LatentPoint) -> LatentPoint,
    ) -> f64 {
        self.carry(path);
        self.slow_down(path);
        let before = *self;
        // The three moments that a step of fourth order asks for: beginning, middle (the later of two answers), end.
        let mut felt = [LatentPoint::default(); 3];
        self.advance(path, forces, 0.0, 1.0, &mut |t, x| {
            let answer = force(t, x);
            felt[(2.0 * t).round() as usize] = answer;
            answer
        });
        if before.leaves(path, 0.0) || self.leaves(path, 1.0) {
            *self = before;
            let step = 1.0 / SUBSTEPS as f64;
            for index in 0..SUBSTEPS {
                self.advance(path, forces, index as f64 * step, step, &mut |t, _| between(felt, t));
            }
        }
        let moved = self.project(path);
        self.slow_down(path);
        moved
    }

    /// Takes the particle along where the path changes its pace.
    fn carry(&mut self, path: PathPiece) {
        let change = path.pace() - self.carried;
        let (size, most) = (change.length(), SLIP * path.radius);
        self.v += change * (1.0 - (most / size.max(f64::MIN_POSITIVE)).min(1.0));
        self.carried = path.pace();
    }

    /// Whether it is where the constraint acts, at a moment of the frame.
    fn leaves(&self, path: PathPiece, t: f64) -> bool {
        (self.x - (path.from + path.pace() * t)).length() > ACTIVE * path.radius
    }

    /// Bounds the velocity relative to the path.
    fn slow_down(&mut self, path: PathPiece) {
        let relative = self.v - path.pace();
        let (speed, most) = (relative.length(), FASTEST * path.radius);
        if speed > most {
            self.v = path.pace() + relative * (most / speed);
        }
    }

    /// A step of the fourth-order Runge–Kutta method from `start` to `start + step`, in frames.
    pub fn advance(
        &mut self,
        path: PathPiece,
        forces: &Forces,
        start: f64,
        step: f64,
        force: &mut impl FnMut(f64, LatentPoint) -> LatentPoint,
    ) {
        let mut slope =
            |t: f64, x: LatentPoint, v: LatentPoint| acceleration(path, forces, t, x, v, force(t, x));
        let (x, v) = (self.x, self.v);
        let half = 0.5 * step;
        let a1 = slope(start, x, v);
        let v2 = v + a1 * half;
        let a2 = slope(start + half, x + v * half, v2);
        let v3 = v + a2 * half;
        let a3 = slope(start + half, x + v2 * half, v3);
        let v4 = v + a3 * step;
        let a4 = slope(start + step, x + v3 * step, v4);
        self.x += (v + (v2 + v3) * 2.0 + v4) * (step / 6.0);
        self.v += (a1 + (a2 + a3) * 2.0 + a4) * (step / 6.0);
    }

    /// Back onto the radius, without the speed that led out.
    fn project(&mut self, path: PathPiece) -> f64 {
        let g = self.x - path.to;
        let away = g.length();
        if away <= path.radius {
            return 0.0;
        }
        let outward = g.dot(self.v - path.pace()) / away;
        self.x = path.to + g * (path.radius / away);
        self.v = self.v - g * (outward.max(0.0) / away);
        away - path.radius
    }
}

/// The force at a moment of a frame, through those at its beginning, middle and end.
fn between([early, middle, late]: [LatentPoint; 3], t: f64) -> LatentPoint {
    let (a, b) = (2.0 * t - 1.0, t * (1.0 - t));
    early * (-a * (1.0 - t)) + middle * (4.0 * b) + late * (a * t)
}

/// `F + F_c` for a unit mass.
fn acceleration(
    path: PathPiece,
    forces: &Forces,
    t: f64,
    x: LatentPoint,
    v: LatentPoint,
    force: LatentPoint,
) -> LatentPoint {
    let g = x - (path.from + path.pace() * t);
    let relative = v - path.pace();
    let force = force - relative * forces.drag;
    let (squared, radius) = (g.length_squared(), path.radius);
    if squared <= (ACTIVE * radius).powi(2) || squared == 0.0 {
        return force;
    }
    let alpha = forces.stiffness;
    let beta_squared = alpha.powi(4);
    let baumgarte = relative.length_squared()
        + 2.0 * alpha * g.dot(relative)
        + 0.5 * beta_squared * (squared - radius * radius);
    let lambda = -(g.dot(force) + baumgarte) / squared;
    force + g * lambda.min(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::random_force::RandomForce;
    use super::*;

    #[test]
    fn the_integration_is_of_fourth_order_where_the_constraint_rests() {
        let mut force = |t: f64, x: LatentPoint| {
            LatentPoint::new(&[(3.0 * t).sin() - 0.8 * x.0[0].sin(), (2.0 * t).cos() * x.0[0]])
        };
        let forces = Forces::default();
        let (from, to) = (LatentPoint::default(), LatentPoint::new(&[0.3, 0.1]));
        let path = PathPiece { from, to, radius: 100.0 };
        let mut run = |steps: usize| {
            let mut particle =
                Particle::moving(LatentPoint::new(&[0.2, -0.1]), LatentPoint::new(&[0.5, 0.4]));
            let h = 1.0 / steps as f64;
            (0..steps).for_each(|step| particle.advance(path, &forces, step as f64 * h, h, &mut force));
            particle.x
        };
        let truth = run(4096);
        let mut miss = |steps| run(steps).distance(truth);
        for steps in [8, 16] {
            let order = (miss(steps) / miss(2 * steps)).log2();
            assert!((order - 4.0).abs() <= 0.3, "{steps} steps: order {order}");
        }
    }

    #[test]
    fn the_particle_stays_by_its_path() {
        let forces = Forces::default();
        let radius = 0.1;
        // A share of frames: over several seeds, as one has a third more than another.
        const FRAMES: usize = 50_000;
        const SEEDS: usize = 4;
        let mut strong = 0;
        for seed in 1..=SEEDS as u64 {
            let mut noise = RandomForce::new(seed, 3, forces.random * radius, forces.random_frames);
            let path = |frame: usize| {
                let t = frame as f64 * 0.01;
                LatentPoint::new(&[t.cos(), (1.3 * t).sin(), 0.5 * (0.7 * t).sin()])
            };
            let mut particle = Particle::new(path(0));
            let mut moved = 0.0;
            for frame in 0..FRAMES {
                let (from, to) = (path(frame), path(frame + 1));
                let early = noise.now();
                noise.advance_half();
                let middle = noise.now();
                noise.advance_half();
                let late = noise.now();
                let projected = particle.frame(PathPiece { from, to, radius }, &forces, |t, _| match t {
                    0.0 => early,
                    1.0 => late,
                    _ => middle,
                });
                strong += usize::from(projected > 0.05 * radius);
                let away = particle.x.distance(to);
                assert!(away <= 1.01 * radius, "frame {frame}: {away}");
                moved += away;
            }
            assert!(moved / FRAMES as f64 > 0.1 * radius, "it does move about");
        }
        let frames = SEEDS * FRAMES;
        assert!(strong * 1000 <= frames, "{strong} of {frames} frames needed much projection");
    }
}
