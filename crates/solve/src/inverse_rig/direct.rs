//! The slow reference: Algorithm 1 as printed (but for its sign), with whole mesh vectors `φ` and `ψ` in
//! every step, and Seol's greedy pass with its residual. Nothing here is shared with the fast form; tests
//! and benchmarks hold the two against each other.

use super::Visit;
use super::settings::{InverseSettings, Method, Order};
use understudy_core::{BlendshapeRig, Random, Shape, SparseDeltas, Vec3};

/// A rig to be inverted directly.
#[derive(Debug, Clone, Copy)]
pub struct DirectRig<'a> {
    rig: &'a BlendshapeRig,
}

/// A mesh vector, `[3n]`.
type MeshVector = Vec<f64>;

impl<'a> DirectRig<'a> {
    /// A borrow is all it needs.
    pub fn new(rig: &'a BlendshapeRig) -> Self {
        Self { rig }
    }

    /// α in cm².
    fn alpha(&self, settings: &InverseSettings) -> f64 {
        let square = |shape: &Shape| shape.deltas.deltas.iter().map(|d| d.as_dvec3().length_squared()).sum();
        let norms: Vec<f64> = self.rig.shapes().iter().map(square).filter(|norm| *norm > 0.0).collect();
        settings.alpha.in_square_centimetres(norms.iter().sum::<f64>() / norms.len().max(1) as f64)
    }

    /// Weights of a target, `[m]`. Takes the settings of a coordinate descent on the whole rig or its
    /// linear part: `alpha`, `passes` (all of them: no tolerance, no Newton step), `order`, `seed` (as frame 0), `upper`, `max_level`.
    pub fn solve(
        &self,
        target: &[Vec3],
        settings: &InverseSettings,
        mut watch: impl FnMut(Visit),
    ) -> Vec<f64> {
        let level = match settings.method {
            Method::Linear => 1,
            _ => settings.max_level.unwrap_or(usize::MAX),
        };
        let frame = Frame { rig: self.rig, level, alpha: self.alpha(settings), wanted: self.offset(target) };
        let upper = settings.upper.unwrap_or(f64::INFINITY);
        let count = self.rig.shapes().len();
        let mut weights = vec![0.0; count];
        let update = |weights: &mut Vec<f64>, shape: usize, watch: &mut dyn FnMut(Visit)| {
            weights[shape] = frame.best(weights, shape, upper);
            watch(Visit { shape, weight: weights[shape], objective: frame.objective(weights) });
        };
        let list = self.list(settings, &frame.wanted);
        for _pass in 0..settings.passes {
            let mut left = vec![true; count];
            for place in 0..count {
                let next = match settings.order {
                    Order::IterationCorrelation => frame.most_correlated(&weights, &left, upper),
                    Order::GaussSouthwell => frame.steepest(&weights, upper),
                    Order::MaximumImprovement => frame.most_improving(&weights, upper),
                    _ => Some(list[place]),
                };
                let Some(shape) = next else { break };
                left[shape] = false;
                update(&mut weights, shape, &mut watch);
            }
        }
        weights
    }

    /// Seol's two steps a shape (eq. 4): fit what is left, take it away. One pass, largest shape first.
    pub fn seol(&self, target: &[Vec3]) -> Vec<f64> {
        let mut residual = self.offset(target);
        let mut weights = vec![0.0; self.rig.shapes().len()];
        let settings = InverseSettings::paper();
        for shape in self.list(&settings, &residual) {
            let deltas = self.dense(&self.rig.shapes()[shape].deltas);
            weights[shape] = (dot(&deltas, &residual) / dot(&deltas, &deltas)).max(0.0);
            residual.iter_mut().zip(&deltas).for_each(|(left, delta)| *left -= weights[shape] * delta);
        }
        weights
    }

    /// `½‖f(w) − b̂‖² + α 1ᵀw` from the mesh, correctives up to `level` factors.
    pub fn objective(&self, target: &[Vec3], weights: &[f64], alpha: f64, level: usize) -> f64 {
        Frame { rig: self.rig, level, alpha, wanted: self.offset(target) }.objective(weights)
    }

    fn offset(&self, target: &[Vec3]) -> MeshVector {
        let from = self.rig.neutral().iter();
        target.iter().zip(from).flat_map(|(to, from)| (to.as_dvec3() - from.as_dvec3()).to_array()).collect()
    }

    fn dense(&self, deltas: &SparseDeltas) -> MeshVector {
        let mut dense = vec![0.0; 3 * self.rig.neutral().len()];
        add(&mut dense, 1.0, deltas);
        dense
    }

    fn list(&self, settings: &InverseSettings, wanted: &[f64]) -> Vec<usize> {
        let mut list: Vec<usize> = (0..self.rig.shapes().len()).collect();
        let square = |shape: usize| -> f64 {
            self.rig.shapes()[shape].deltas.deltas.iter().map(|d| d.as_dvec3().length_squared()).sum()
        };
        match settings.order {
            Order::Random => {
                let mut random = Random::stream(settings.seed, 0);
                for last in (1..list.len()).rev() {
                    list.swap(last, random.below(last + 1));
                }
            }
            Order::FrameCorrelation => {
                let along = |shape: usize| dot(&self.dense(&self.rig.shapes()[shape].deltas), wanted);
                let keys: Vec<f64> = list.iter().map(|s| along(*s) / square(*s).sqrt()).collect();
                list.sort_by(|a, b| keys[*b].total_cmp(&keys[*a]));
            }
            Order::Increasing => list.sort_by(|a, b| square(*a).total_cmp(&square(*b)).then(b.cmp(a))),
            _ => list.sort_by(|a, b| square(*b).total_cmp(&square(*a)).then(a.cmp(b))),
        }
        list
    }
}

/// One target and the part of the rig that is solved.
struct Frame<'a> {
    rig: &'a BlendshapeRig,
    level: usize,
    alpha: f64,
    wanted: MeshVector,
}

impl Frame<'_> {
    /// `φ_i` (eq. 8).
    fn phi(&self, weights: &[f64], shape: usize) -> MeshVector {
        let mut phi = vec![0.0; self.wanted.len()];
        add(&mut phi, 1.0, &self.rig.shapes()[shape].deltas);
        for corrective in self.rig.correctives().iter().filter(|c| c.shapes.len() <= self.level) {
            if corrective.shapes.contains(&(shape as u32)) {
                let others = corrective.shapes.iter().filter(|other| **other as usize != shape);
                add(&mut phi, others.map(|other| weights[*other as usize]).product(), &corrective.deltas);
            }
        }
        phi
    }

    /// `ψ_i` (eq. 9).
    fn psi(&self, weights: &[f64], shape: usize) -> MeshVector {
        let mut psi: MeshVector = self.wanted.iter().map(|value| -value).collect();
        for (other, target) in self.rig.shapes().iter().enumerate() {
            if other != shape {
                add(&mut psi, weights[other], &target.deltas);
            }
        }
        for corrective in self.rig.correctives().iter().filter(|c| c.shapes.len() <= self.level) {
            if !corrective.shapes.contains(&(shape as u32)) {
                let product = corrective.shapes.iter().map(|other| weights[*other as usize]).product();
                add(&mut psi, product, &corrective.deltas);
            }
        }
        psi
    }

    /// Eq. 10 with its minus sign.
    fn best(&self, weights: &[f64], shape: usize, upper: f64) -> f64 {
        let (phi, psi) = (self.phi(weights, shape), self.psi(weights, shape));
        let square = dot(&phi, &phi);
        if square <= 1e-20 {
            return if self.alpha > 0.0 { 0.0 } else { weights[shape] };
        }
        ((-dot(&phi, &psi) - self.alpha) / square).clamp(0.0, upper)
    }

    /// `f(w) − b̂`.
    fn residual(&self, weights: &[f64]) -> MeshVector {
        let mut residual: MeshVector = self.wanted.iter().map(|value| -value).collect();
        for (shape, weight) in self.rig.shapes().iter().zip(weights) {
            add(&mut residual, *weight, &shape.deltas);
        }
        for corrective in self.rig.correctives().iter().filter(|c| c.shapes.len() <= self.level) {
            let product = corrective.shapes.iter().map(|other| weights[*other as usize]).product();
            add(&mut residual, product, &corrective.deltas);
        }
        residual
    }

    fn objective(&self, weights: &[f64]) -> f64 {
        let residual = self.residual(weights);
        0.5 * dot(&residual, &residual) + self.alpha * weights.iter().sum::<f64>()
    }

    fn most_correlated(&self, weights: &[f64], left: &[bool], upper: f64) -> Option<usize> {
        let residual = self.residual(weights);
        let key = |shape: usize| {
            let deltas = &self.rig.shapes()[shape].deltas;
            let mut dense = vec![0.0; residual.len()];
            add(&mut dense, 1.0, deltas);
            -dot(&dense, &residual) / dot(&dense, &dense).sqrt()
        };
        let free =
            |key: f64, shape: usize| if key > 0.0 { weights[shape] < upper } else { weights[shape] > 0.0 };
        largest((0..weights.len()).filter(|s| left[*s]).filter_map(|shape| {
            let key = key(shape);
            (key != 0.0 && free(key, shape)).then_some((key.abs(), shape))
        }))
    }

    fn steepest(&self, weights: &[f64], upper: f64) -> Option<usize> {
        let residual = self.residual(weights);
        let candidates =
            (0..weights.len()).map(|shape| (shape, dot(&self.phi(weights, shape), &residual) + self.alpha));
        let feasible =
            candidates.filter(
                |(shape, slope)| {
                    if *slope > 0.0 { weights[*shape] > 0.0 } else { weights[*shape] < upper }
                },
            );
        largest(feasible.map(|(shape, slope)| (slope.abs(), shape)))
    }

    fn most_improving(&self, weights: &[f64], upper: f64) -> Option<usize> {
        let before = self.objective(weights);
        largest((0..weights.len()).map(|shape| {
            let mut trial = weights.to_vec();
            trial[shape] = self.best(weights, shape, upper);
            (before - self.objective(&trial), shape)
        }))
    }
}

fn largest(keys: impl Iterator<Item = (f64, usize)>) -> Option<usize> {
    let better = |best: (f64, usize), next: (f64, usize)| if next.0 > best.0 { next } else { best };
    keys.reduce(better).map(|(_, shape)| shape)
}

fn add(vector: &mut [f64], factor: f64, deltas: &SparseDeltas) {
    for (vertex, delta) in deltas.vertices.iter().zip(&deltas.deltas) {
        for (axis, value) in delta.to_array().into_iter().enumerate() {
            vector[3 * *vertex as usize + axis] += factor * f64::from(value);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
