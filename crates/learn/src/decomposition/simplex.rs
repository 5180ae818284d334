//! Convex weights of one vertex: `min wᵀ G w` over `w ≥ 0`, `Σ w = 1`, with at most so many of them above
//! zero. An active-set method; `G` is the Gram matrix of what each bone alone would miss by.

/// Singular Gram matrices (two bones that move alike) get this much of their largest entry on the diagonal.
const RIDGE: f64 = 1e-13;
/// A bone must lower the slope by this much of the largest entry to join.
const TOLERANCE: f64 = 1e-11;

/// Bones and weights of a vertex.
pub type Row = Vec<(u16, f64)>;

/// Symmetric positive semi-definite, `[count × count]`.
#[derive(Debug, Clone, Copy)]
pub struct Gram<'a> {
    pub entries: &'a [f64],
    pub count: usize,
}

impl Gram<'_> {
    fn at(&self, row: u16, column: u16) -> f64 {
        self.entries[usize::from(row) * self.count + usize::from(column)]
    }

    fn row(&self, bone: u16) -> &[f64] {
        &self.entries[usize::from(bone) * self.count..][..self.count]
    }

    /// `wᵀ G w`.
    pub fn cost(&self, row: &[(u16, f64)]) -> f64 {
        let inner = |j: u16| row.iter().map(|(k, w)| w * self.at(j, *k)).sum::<f64>();
        row.iter().map(|(j, w)| w * inner(*j)).sum()
    }

    /// The squared distance that the best single bone but `bone` would leave.
    pub fn best_other(&self, bone: u16) -> f64 {
        let others = (0..self.count as u16).filter(|other| *other != bone);
        others.map(|other| self.at(other, other)).fold(f64::INFINITY, f64::min)
    }

    fn largest(&self) -> f64 {
        (0..self.count as u16).map(|j| self.at(j, j)).fold(0.0, f64::max)
    }
}

/// Room for [`Simplex::solve`], kept from vertex to vertex.
#[derive(Debug, Default)]
pub struct Simplex {
    /// Lower Cholesky factor, a row of `stride` numbers per bone of `factored`.
    factor: Vec<f64>,
    factored: Vec<u16>,
    stride: usize,
    ridge: f64,
    ones: Vec<f64>,
    slopes: Vec<f64>,
    /// See [`Simplex::losses`].
    projected: Vec<f64>,
    column: Vec<f64>,
}

impl Simplex {
    /// Better weights with at most `influences` bones: first for the bones of the row as it came; then with
    /// all bones, of which those that are missed least are dropped until few enough are left. The better of
    /// both is kept, and the cost never rises. Returns it.
    pub fn solve(&mut self, gram: &Gram<'_>, row: &mut Row, influences: usize) -> f64 {
        let before = gram.cost(row);
        self.begin(gram);
        let mut best = row.clone();
        let bones = best.len();
        self.improve(gram, &mut best, bones);
        let mut cost = gram.cost(&best);
        let mut wide = best.clone();
        self.improve(gram, &mut wide, gram.count);
        if wide.len() > influences {
            self.thin_out(gram, &mut wide, influences);
            self.improve(gram, &mut wide, influences);
        }
        let wide_cost = gram.cost(&wide);
        if wide_cost < cost {
            (best, cost) = (wide, wide_cost);
        }
        if before <= cost {
            return before;
        }
        best.sort_by_key(|(bone, _)| *bone);
        *row = best;
        cost
    }

    /// Forgets the last vertex.
    fn begin(&mut self, gram: &Gram<'_>) {
        self.factored.clear();
        self.stride = gram.count;
        self.factor.resize(gram.count * gram.count, 0.0);
        self.ridge = (RIDGE * gram.largest()).max(f64::MIN_POSITIVE);
    }

    /// Improves `row` until nothing gains, adding bones as long as there are fewer than `most`. The cost never
    /// rises, which bounds the number of steps; there is a cap besides.
    fn improve(&mut self, gram: &Gram<'_>, row: &mut Row, most: usize) {
        let tolerance = TOLERANCE / RIDGE * self.ridge;
        for _step in 0..4 * gram.count + 8 {
            self.settle(gram, row);
            if row.len() >= most {
                return;
            }
            // A bone outside gains where its slope is below the common one.
            self.slopes.clear();
            self.slopes.resize(gram.count, 0.0);
            for (bone, weight) in row.iter() {
                self.slopes
                    .iter_mut()
                    .zip(gram.row(*bone))
                    .for_each(|(slope, entry)| *slope += weight * entry);
            }
            let level: f64 = row.iter().map(|(bone, weight)| weight * self.slopes[usize::from(*bone)]).sum();
            row.iter().for_each(|(bone, _)| self.slopes[usize::from(*bone)] = f64::INFINITY);
            let steepest = (0..gram.count).min_by(|a, b| self.slopes[*a].total_cmp(&self.slopes[*b]));
            match steepest {
                Some(bone) if self.slopes[bone] < level - tolerance => row.push((bone as u16, 0.0)),
                _ => return,
            }
        }
    }

    /// The best weights on the bones of the row; those that would turn negative leave it.
    fn settle(&mut self, gram: &Gram<'_>, row: &mut Row) {
        while row.len() > 1 {
            self.equality_solution(gram, row);
            let mut step = 1.0f64;
            let mut blocking = None;
            for (place, ((_, weight), target)) in row.iter().zip(&self.ones).enumerate() {
                let reach = weight / (weight - target);
                if *target < 0.0 && (reach < step || blocking.is_none()) {
                    (step, blocking) = (reach.min(step), Some(place));
                }
            }
            for ((_, weight), target) in row.iter_mut().zip(&self.ones) {
                *weight = (*weight + step * (target - *weight)).max(0.0);
            }
            match blocking {
                Some(place) => {
                    row.remove(place);
                }
                None => break,
            }
        }
        normalise(row);
    }

    /// The weights that are best when only their sum is held, `G⁻¹ 1 / 1ᵀ G⁻¹ 1`, into `ones`.
    fn equality_solution(&mut self, gram: &Gram<'_>, row: &[(u16, f64)]) {
        self.factorise(gram, row);
        self.solve_for_ones(row.len());
        let sum: f64 = self.ones.iter().sum();
        self.ones.iter_mut().for_each(|weight| *weight /= sum);
    }

    /// Cholesky factor of the Gram matrix on the bones of the row, with a ridge. Rows that the last call left
    /// for the same first bones are kept.
    fn factorise(&mut self, gram: &Gram<'_>, row: &[(u16, f64)]) {
        let known = self.factored.iter().zip(row).take_while(|(old, (new, _))| *old == new).count();
        self.factored.truncate(known);
        self.factored.extend(row[known..].iter().map(|(bone, _)| *bone));
        for i in known..row.len() {
            let (above, rest) = self.factor.split_at_mut(i * self.stride);
            let current = &mut rest[..=i];
            for j in 0..i {
                let earlier = &above[j * self.stride..][..=j];
                let sum = gram.at(row[i].0, row[j].0) - dot(&current[..j], &earlier[..j]);
                current[j] = sum / earlier[j];
            }
            let pivot = gram.at(row[i].0, row[i].0) + self.ridge - dot(&current[..i], &current[..i]);
            current[i] = pivot.max(self.ridge).sqrt();
        }
    }

    /// `L Lᵀ x = 1`, into `ones`.
    fn solve_for_ones(&mut self, count: usize) {
        let x = &mut self.ones;
        x.clear();
        for i in 0..count {
            let line = &self.factor[i * self.stride..][..=i];
            x.push((1.0 - dot(&line[..i], x)) / line[i]);
        }
        for i in (0..count).rev() {
            let line = &self.factor[i * self.stride..][..=i];
            x[i] /= line[i];
            let value = x[i];
            x[..i].iter_mut().zip(line).for_each(|(x, l)| *x -= l * value);
        }
    }

    /// `P = G⁻¹ − G⁻¹ 1 1ᵀ G⁻¹ / 1ᵀ G⁻¹ 1` on the bones of the row, `[n × n]`, into `projected`.
    fn project(&mut self, gram: &Gram<'_>, row: &[(u16, f64)]) {
        let count = row.len();
        self.factorise(gram, row);
        self.solve_for_ones(count);
        let sum: f64 = self.ones.iter().sum();
        self.projected.clear();
        self.projected.resize(count * count, 0.0);
        for j in 0..count {
            // Column j of L⁻¹, then of (L Lᵀ)⁻¹ from its last entry up to the diagonal.
            self.column.clear();
            self.column.resize(count, 0.0);
            for i in j..count {
                let line = &self.factor[i * self.stride..][..=i];
                let start = if i == j { 1.0 } else { 0.0 };
                self.column[i] = (start - dot(&line[j..i], &self.column[j..i])) / line[i];
            }
            for i in (j..count).rev() {
                let line = &self.factor[i * self.stride..][..=i];
                self.column[i] /= line[i];
                let value = self.column[i];
                self.column[j..i].iter_mut().zip(&line[j..i]).for_each(|(x, l)| *x -= l * value);
                let entry = value - self.ones[i] * self.ones[j] / sum;
                self.projected[i * count + j] = entry;
                self.projected[j * count + i] = entry;
            }
        }
    }

    /// How much the cost grows when each bone of a solved row is taken away and the others make up for it as
    /// well as they can, regardless of signs: `w_j² / P_jj`.
    pub fn losses(&mut self, gram: &Gram<'_>, row: &[(u16, f64)], out: &mut Vec<f64>) {
        out.clear();
        if let [(bone, _)] = row {
            // A vertex that has one bone alone would go to the next best.
            return out.push((gram.best_other(*bone) - gram.cost(row)).max(0.0));
        }
        self.begin(gram);
        self.project(gram, row);
        out.extend(
            row.iter().enumerate().map(|(j, (_, weight))| loss(*weight, self.projected[j * row.len() + j])),
        );
    }

    /// Drops the bones that are missed least, one by one; the others make up for each by
    /// `w ← w − P_j w_j / P_jj`, and `P` is brought up to date by a matrix of rank one.
    fn thin_out(&mut self, gram: &Gram<'_>, row: &mut Row, most: usize) {
        self.project(gram, row);
        let full = row.len();
        let mut left: Vec<usize> = (0..full).collect();
        while left.len() > most {
            let own = |j: usize| self.projected[j * full + j];
            // A weight that has turned negative goes first.
            let rank = |j: usize| if row[j].1 < 0.0 { row[j].1 } else { loss(row[j].1, own(j)) };
            let place = (0..left.len()).min_by(|a, b| rank(left[*a]).total_cmp(&rank(left[*b])));
            let dropped = left.remove(place.expect("more are left than wanted"));
            let pivot = self.projected[dropped * full + dropped];
            self.column.clear();
            self.column.extend_from_slice(&self.projected[dropped * full..(dropped + 1) * full]);
            let weight = row[dropped].1;
            if pivot > 0.0 {
                for &i in &left {
                    let factor = self.column[i] / pivot;
                    row[i].1 -= factor * weight;
                    for &j in &left {
                        self.projected[i * full + j] -= factor * self.column[j];
                    }
                }
            }
        }
        *row = left.iter().map(|place| (row[*place].0, row[*place].1.max(0.0))).collect();
        normalise(row);
    }
}

fn loss(weight: f64, projected: f64) -> f64 {
    if projected > 0.0 { weight * weight / projected } else { f64::INFINITY }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Weights above zero that sum to one; evenly where nothing is left.
fn normalise(row: &mut Row) {
    let sum: f64 = row.iter().map(|(_, weight)| weight).sum();
    if sum > 0.0 {
        row.retain(|(_, weight)| *weight > 0.0);
        row.iter_mut().for_each(|(_, weight)| *weight /= sum);
    } else {
        let even = 1.0 / row.len() as f64;
        row.iter_mut().for_each(|(_, weight)| *weight = even);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    /// `AᵀA` of random columns, the first of which may repeat.
    fn random_gram(random: &mut Random, count: usize, rows: usize, repeat: bool) -> Vec<f64> {
        let mut columns: Vec<Vec<f64>> =
            (0..count).map(|_| (0..rows).map(|_| random.normal() + 0.3).collect()).collect();
        if repeat {
            columns[1] = columns[0].clone();
        }
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        (0..count * count).map(|i| dot(&columns[i / count], &columns[i % count])).collect()
    }

    /// The lowest cost over all supports, by brute force over equality solutions.
    fn brute(gram: &Gram<'_>, influences: usize) -> f64 {
        let mut best = f64::INFINITY;
        for mask in 1u32..1 << gram.count {
            if mask.count_ones() as usize > influences {
                continue;
            }
            let row: Row = (0..gram.count as u16).filter(|j| mask >> j & 1 == 1).map(|j| (j, 1.0)).collect();
            let mut simplex = Simplex::default();
            simplex.begin(gram);
            simplex.equality_solution(gram, &row);
            if simplex.ones.iter().all(|weight| *weight >= 0.0) {
                let row: Row = row.iter().zip(&simplex.ones).map(|((j, _), w)| (*j, *w)).collect();
                best = best.min(gram.cost(&row));
            }
        }
        best
    }

    #[test]
    fn the_optimum_is_found_where_all_bones_may_be_used() {
        let mut random = Random::new(3);
        for case in 0..200 {
            let count = 2 + case % 7;
            let entries = random_gram(&mut random, count, 3 + case % 9, case % 5 == 0);
            let gram = Gram { entries: &entries, count };
            let mut row = vec![((case % count) as u16, 1.0)];
            let cost = Simplex::default().solve(&gram, &mut row, count);
            let sum: f64 = row.iter().map(|(_, weight)| weight).sum();
            assert!((sum - 1.0).abs() < 1e-12 && row.iter().all(|(_, weight)| *weight > 0.0), "{row:?}");
            let best = brute(&gram, count);
            assert!(cost <= best + 1e-8 * gram.largest(), "case {case}: {cost} above {best}");
        }
    }

    #[test]
    fn few_bones_cost_little_more_and_never_more_than_before() {
        let mut random = Random::new(4);
        let (mut ours, mut optimum) = (0.0, 0.0);
        for case in 0..200 {
            let count = 8;
            let entries = random_gram(&mut random, count, 20, false);
            let gram = Gram { entries: &entries, count };
            let mut row = vec![((case % count) as u16, 0.25), (((case + 3) % count) as u16, 0.75)];
            let before = gram.cost(&row);
            let cost = Simplex::default().solve(&gram, &mut row, 3);
            assert!(row.len() <= 3 && cost <= before && (cost - gram.cost(&row)).abs() < 1e-12 * before);
            ours += cost;
            optimum += brute(&gram, 3);
        }
        assert!(ours < 1.02 * optimum, "dropping bones one by one: {ours}, the best triples: {optimum}");
    }

    #[test]
    fn the_loss_is_what_dropping_a_bone_costs() {
        let mut random = Random::new(6);
        let entries = random_gram(&mut random, 6, 30, false);
        let gram = Gram { entries: &entries, count: 6 };
        let mut row = vec![(0, 1.0)];
        let mut simplex = Simplex::default();
        let cost = simplex.solve(&gram, &mut row, 6);
        let mut losses = Vec::new();
        simplex.losses(&gram, &row, &mut losses);
        for (place, loss) in losses.iter().enumerate() {
            let mut fewer = row.clone();
            fewer.remove(place);
            simplex.begin(&gram);
            simplex.equality_solution(&gram, &fewer);
            let fewer: Row = fewer.iter().zip(&simplex.ones).map(|((j, _), w)| (*j, *w)).collect();
            let rise = gram.cost(&fewer) - cost;
            assert!((rise - loss).abs() < 1e-9 * gram.largest(), "bone {place}: {rise} {loss}");
        }
    }

    #[test]
    fn nothing_moves_when_nothing_is_missed() {
        let entries = [0.0; 9];
        let gram = Gram { entries: &entries, count: 3 };
        let mut row = vec![(2, 1.0)];
        let cost = Simplex::default().solve(&gram, &mut row, 2);
        assert_eq!((cost, row), (0.0, vec![(2, 1.0)]));
    }
}
