//! Which products of weights the rig is a sum of: one *term* a shape and one a corrective,
//! `f(w) = b₀ + Σ_k p_k b_k` with `p_k = Π_{i ∈ S_k} w_i`. Tables in both directions, flat.

use understudy_core::BlendshapeRig;

/// Terms are sorted: the `m` shapes in the rig's order, then correctives by level (pairs, triples, …), so
/// that a rig cut at a level is a prefix.
#[derive(Debug, Clone)]
pub(crate) struct TermTable {
    shape_count: usize,
    /// `[l]`: number of terms with at most `l + 1` factors.
    level_ends: Vec<usize>,
    /// Shapes of term `k`: `factors[factor_start[k]..factor_start[k + 1]]`, ascending.
    factor_start: Vec<u32>,
    factors: Vec<u32>,
    /// Terms with shape `i`: `uses[use_start[i]..use_start[i + 1]]`, ascending; the first is `i` itself.
    use_start: Vec<u32>,
    uses: Vec<u32>,
    /// The rig's corrective of every term past the shapes.
    correctives: Vec<u32>,
}

impl TermTable {
    pub(crate) fn new(rig: &BlendshapeRig) -> Self {
        let shape_count = rig.shapes().len();
        let mut correctives: Vec<u32> = (0..rig.correctives().len() as u32).collect();
        let level = |c: &u32| rig.correctives()[*c as usize].shapes.len();
        correctives.sort_by_key(level);
        let mut level_ends = vec![shape_count];
        for (place, corrective) in correctives.iter().enumerate() {
            let end = shape_count + place;
            level_ends.resize(level_ends.len().max(level(corrective)), end);
            *level_ends.last_mut().expect("linear terms come first") = end + 1;
        }
        let mut factor_start = vec![0];
        let mut factors: Vec<u32> = Vec::new();
        for shape in 0..shape_count as u32 {
            factors.push(shape);
            factor_start.push(factors.len() as u32);
        }
        for corrective in &correctives {
            factors.extend(&rig.correctives()[*corrective as usize].shapes);
            factor_start.push(factors.len() as u32);
        }
        let mut of_shape: Vec<Vec<u32>> = vec![Vec::new(); shape_count];
        for term in 0..factor_start.len() - 1 {
            for factor in &factors[factor_start[term] as usize..factor_start[term + 1] as usize] {
                of_shape[*factor as usize].push(term as u32);
            }
        }
        let mut use_start = vec![0];
        for uses in &of_shape {
            use_start.push(use_start.last().expect("starts at 0") + uses.len() as u32);
        }
        Self {
            shape_count,
            level_ends,
            factor_start,
            factors,
            use_start,
            uses: of_shape.concat(),
            correctives,
        }
    }

    /// `m`.
    pub(crate) fn shape_count(&self) -> usize {
        self.shape_count
    }

    /// Shapes and correctives of all levels.
    pub(crate) fn len(&self) -> usize {
        self.factor_start.len() - 1
    }

    /// The highest number of factors of any term.
    pub(crate) fn highest_level(&self) -> usize {
        self.level_ends.len()
    }

    /// Number of terms with at most `level` factors; `None` is all.
    pub(crate) fn count(&self, level: Option<usize>) -> usize {
        match level {
            Some(level) => self.level_ends[level.clamp(1, self.level_ends.len()) - 1],
            None => self.len(),
        }
    }

    /// The shapes of a term, ascending.
    pub(crate) fn factors(&self, term: usize) -> &[u32] {
        &self.factors[self.factor_start[term] as usize..self.factor_start[term + 1] as usize]
    }

    /// The terms that a shape is a factor of, ascending.
    pub(crate) fn uses(&self, shape: usize) -> &[u32] {
        &self.uses[self.use_start[shape] as usize..self.use_start[shape + 1] as usize]
    }

    /// Where the uses of a shape lie in a flat list of all uses.
    pub(crate) fn use_range(&self, shape: usize) -> std::ops::Range<usize> {
        self.use_start[shape] as usize..self.use_start[shape + 1] as usize
    }

    /// Length of the flat list of all uses.
    pub(crate) fn use_count(&self) -> usize {
        self.uses.len()
    }

    /// The rig's corrective behind a term; `None` for a shape.
    pub(crate) fn corrective(&self, term: usize) -> Option<usize> {
        term.checked_sub(self.shape_count).map(|place| self.correctives[place] as usize)
    }

    /// `p_k`.
    #[inline]
    pub(crate) fn product(&self, term: usize, weights: &[f64]) -> f64 {
        self.factors(term).iter().map(|shape| weights[*shape as usize]).product()
    }

    /// `p_k` without the factor of one shape, `Π_{j ∈ S_k, j ≠ i} w_j`.
    #[inline]
    pub(crate) fn product_without(&self, term: usize, shape: usize, weights: &[f64]) -> f64 {
        let others = self.factors(term).iter().filter(|other| **other as usize != shape);
        others.map(|other| weights[*other as usize]).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Corrective, Shape, SparseDeltas, Vec3};

    #[test]
    fn terms_are_sorted_by_level_and_known_from_both_sides() {
        let shape = |name: &str| Shape { name: name.into(), deltas: SparseDeltas::default() };
        let corrective =
            |shapes: &[u32]| Corrective { shapes: shapes.into(), deltas: SparseDeltas::default() };
        let rig = BlendshapeRig::new(
            vec![Vec3::ZERO],
            ["a", "b", "c", "d"].map(shape).into(),
            vec![corrective(&[0, 1, 2, 3]), corrective(&[1, 2]), corrective(&[0, 3])],
        )
        .expect("valid rig");
        let terms = TermTable::new(&rig);
        assert_eq!((terms.len(), terms.highest_level()), (7, 4));
        assert_eq!([1, 2, 3, 4, 9].map(|level| terms.count(Some(level))), [4, 6, 6, 7, 7]);
        assert_eq!(terms.factors(4), [1, 2]);
        assert_eq!(terms.uses(3), [3, 5, 6]);
        assert_eq!([0, 4, 6].map(|term| terms.corrective(term)), [None, Some(1), Some(0)]);
        let weights = [0.5, 0.25, 1.0, 0.0];
        assert_eq!((terms.product(4, &weights), terms.product(6, &weights)), (0.25, 0.0));
        assert_eq!(terms.product_without(6, 3, &weights), 0.125);
    }
}
