//! The Gram matrix of all terms under vertex weights, `G_kl = Σ_v ω_v b_k(v)ᵀ b_l(v)`: everything the cost
//! knows about the mesh. Built in parallel; changed from the changed vertices alone.

use super::blocks::ShapeBlocks;
use super::kernels::{add_gram, add_vertex};
use rayon::prelude::*;

/// The matrix and the vertex weights it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Gram {
    count: usize,
    values: Vec<f64>,
    vertex_weights: Vec<f32>,
    total_weight: f64,
    /// Vertices changed since the matrix was last summed from scratch.
    changed: usize,
}

impl Gram {
    /// A vertex changed alone costs about this many times its share of a sum from scratch.
    const UPDATE_COST: usize = 6;
    /// Every update rounds; after this many changes a vertex we sum from scratch, so the drift stays at
    /// a few units in the last place whatever the number of frames.
    const MAX_CHANGES: usize = 16;
    /// Parts that are summed in parallel. Fixed, so that the bits do not depend on the thread count.
    const PARTS: usize = 8;

    /// The matrix of `count` terms.
    pub(crate) fn new(shapes: &ShapeBlocks, count: usize, vertex_weights: Vec<f32>) -> Self {
        let size = shapes.blocks.len().div_ceil(Self::PARTS).max(1);
        let part = |part: usize| {
            let blocks = (part * size).min(shapes.blocks.len())..((part + 1) * size).min(shapes.blocks.len());
            let mut sums = vec![0.0; count * count];
            add_gram(shapes, blocks, &vertex_weights, count, &mut sums);
            sums
        };
        let mut values = vec![0.0; count * count];
        for sums in (0..Self::PARTS).into_par_iter().map(part).collect::<Vec<_>>() {
            values.iter_mut().zip(&sums).for_each(|(value, sum)| *value += sum);
        }
        mirror(&mut values, count);
        let total_weight = total(&vertex_weights);
        Self { count, values, vertex_weights, total_weight, changed: 0 }
    }

    /// Row `k`, `[count]`.
    #[inline]
    pub(crate) fn row(&self, term: usize) -> &[f64] {
        &self.values[term * self.count..(term + 1) * self.count]
    }

    /// `G_kl`.
    #[inline]
    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.count + column]
    }

    /// `ω`, `[V]`.
    pub(crate) fn vertex_weights(&self) -> &[f32] {
        &self.vertex_weights
    }

    /// `Σ ω_v`.
    pub(crate) fn total_weight(&self) -> f64 {
        self.total_weight
    }

    /// Moves to other vertex weights, touching only what changed. Allocates nothing. Says whether anything
    /// did change.
    pub(crate) fn reweight(&mut self, shapes: &ShapeBlocks, weight: impl Fn(usize) -> f32) -> bool {
        let vertex_count = self.vertex_weights.len();
        let changed = (0..vertex_count).filter(|v| weight(*v) != self.vertex_weights[*v]).count();
        if changed == 0 {
            return false;
        }
        self.changed += changed;
        let scratch =
            changed * Self::UPDATE_COST > vertex_count || self.changed > Self::MAX_CHANGES * vertex_count;
        for vertex in 0..vertex_count {
            let (old, new) = (self.vertex_weights[vertex], weight(vertex));
            self.vertex_weights[vertex] = new;
            if new != old && !scratch {
                let change = f64::from(new) - f64::from(old);
                add_vertex(shapes, vertex, change, self.count, &mut self.values);
            }
        }
        if scratch {
            self.values.fill(0.0);
            add_gram(shapes, 0..shapes.blocks.len(), &self.vertex_weights, self.count, &mut self.values);
            mirror(&mut self.values, self.count);
            self.changed = 0;
        }
        self.total_weight = total(&self.vertex_weights);
        true
    }
}

fn total(weights: &[f32]) -> f64 {
    weights.iter().map(|w| f64::from(*w)).sum()
}

fn mirror(values: &mut [f64], count: usize) {
    for row in 0..count {
        for column in 0..row {
            values[row * count + column] = values[column * count + row];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inverse_rig::terms::TermTable;
    use understudy_core::{BlendshapeRig, Random};
    use understudy_testkit::synthetic::{SyntheticRig, random_rig};

    fn dense_gram(rig: &BlendshapeRig, table: &TermTable, weights: &[f32]) -> Vec<f64> {
        let vectors: Vec<_> = (0..table.len())
            .map(|term| match table.corrective(term) {
                Some(corrective) => rig.correctives()[corrective].deltas.to_dense(weights.len()),
                None => rig.shapes()[term].deltas.to_dense(weights.len()),
            })
            .collect();
        let product = |a: &[understudy_core::Vec3], b: &[understudy_core::Vec3]| -> f64 {
            let terms = a.iter().zip(b).zip(weights);
            terms.map(|((a, b), w)| a.as_dvec3().dot(b.as_dvec3()) * f64::from(*w)).sum()
        };
        vectors.iter().flat_map(|a| vectors.iter().map(|b| product(a, b)).collect::<Vec<_>>()).collect()
    }

    fn largest_difference(gram: &Gram, truth: &[f64]) -> f64 {
        gram.values.iter().zip(truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_matrix_is_that_of_the_dense_vectors_and_stays_so_through_many_changes() {
        let rig = random_rig(&SyntheticRig { vertices: 203, radius: (3.0, 9.0), ..SyntheticRig::small(2) });
        let table = TermTable::new(&rig);
        let shapes = ShapeBlocks::new(&rig, &table);
        let mut gram = Gram::new(&shapes, table.len(), vec![1.0; 203]);
        let truth = dense_gram(&rig, &table, &vec![1.0; 203]);
        let scale = truth.iter().fold(0.0f64, |a, b| a.max(*b));
        assert!(largest_difference(&gram, &truth) < 1e-13 * scale);
        let mut random = Random::new(7);
        let mut from_scratch = 0;
        for round in 0..300 {
            let mut weights = gram.vertex_weights().to_vec();
            let changes = if round % 100 == 99 { 150 } else { 20 };
            for _ in 0..changes {
                let choices = [0.0, 1.0, random.uniform(0.0, 2.0)];
                weights[random.below(203)] = choices[random.below(3)];
            }
            gram.reweight(&shapes, |v| weights[v]);
            from_scratch += usize::from(gram.changed == 0);
            let truth = dense_gram(&rig, &table, &weights);
            assert!(largest_difference(&gram, &truth) < 1e-12 * scale);
            assert!((gram.total_weight() - total(&weights)).abs() < 1e-9);
        }
        assert!((1..20).contains(&from_scratch), "both ways were taken: {from_scratch}");
        assert!(!gram.clone().reweight(&shapes, |v| gram.vertex_weights()[v]));
    }
}
