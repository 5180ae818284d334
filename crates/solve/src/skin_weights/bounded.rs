//! Bounded biharmonic weights, one handle at a time: `min ½ wᵀ A w`, `A = L M⁻¹ L`, with given values at handles and
//! `0 ≤ w ≤ 1` (eqs. 3, 5, 6). A primal-dual active set method: nodes at a bound are taken out, the others solve a
//! linear system, and nodes change sides until every sign is right. All handles share the first factor; after that only
//! the nodes that a handle really reaches are in its systems, so each is small.

use super::WeightsError;
use understudy_core::laplacian::SparseRows;
use understudy_core::sparse_cholesky::SparseCholesky;

/// Rounds before nodes change sides in halves, which ends cycles.
const CAREFUL_AFTER: usize = 25;
/// Rounds at most.
const MOST_ROUNDS: usize = 80;

/// What is known and what is wanted.
pub(super) struct System<'a> {
    /// `A`, `[N][N]`.
    pub stiffness: &'a SparseRows,
    /// Nodes that are solved for, ascending: neither held nor out of every handle's reach.
    pub free: &'a [u32],
    /// Factor of `A` on all free nodes.
    pub factor: &'a SparseCholesky,
    /// How wrong a weight may be, about.
    pub tolerance: f64,
}

/// Which side of its bounds a node is on.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Held,
    Free,
    AtZero,
    AtOne,
}

/// What a solve left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    pub rounds: usize,
    /// Whether every sign is right.
    pub settled: bool,
}

impl System<'_> {
    /// Weights of one handle, `[N]`: `w` holds its values at handles and zero elsewhere.
    pub fn solve(&self, w: &mut [f64]) -> Result<Left, WeightsError> {
        let n = w.len();
        let mut side = vec![Side::Held; n];
        self.free.iter().for_each(|node| side[*node as usize] = Side::Free);
        // Without bounds first: what is positive there and hangs together with the handle is where it reaches.
        let mut right: Vec<f64> = {
            let pull = self.stiffness.times(w);
            self.free.iter().map(|node| -pull[*node as usize]).collect()
        };
        self.factor.solve(&mut right);
        self.free.iter().zip(&right).for_each(|(node, x)| w[*node as usize] = *x);
        let within = |w: &[f64]| w.iter().all(|w| (-self.tolerance..=1.0 + self.tolerance).contains(w));
        if within(w) {
            return Ok(Left { rounds: 1, settled: true });
        }
        self.start(w, &mut side);
        let diagonal = self.stiffness.diagonal();
        let (wrong, lets_go) = (self.tolerance, 0.1 * self.tolerance);
        let mut fewest = usize::MAX;
        let mut since = 0;
        for round in 2..=MOST_ROUNDS {
            let free: Vec<u32> =
                self.free.iter().copied().filter(|node| side[*node as usize] == Side::Free).collect();
            for &node in self.free {
                match side[node as usize] {
                    Side::AtOne => w[node as usize] = 1.0,
                    _ => w[node as usize] = 0.0,
                }
            }
            let pull = self.stiffness.times(w);
            let mut right: Vec<f64> = free.iter().map(|node| -pull[*node as usize]).collect();
            let matrix = self.stiffness.principal(&free);
            let factor = SparseCholesky::new(&matrix).ok_or(WeightsError::Factor {
                unknowns: free.len(),
                why: "a part of the mesh is degenerate",
            })?;
            factor.solve(&mut right);
            free.iter().zip(&right).for_each(|(node, x)| w[*node as usize] = *x);
            let slope = self.stiffness.times(w);
            // How wrong each node is: beyond a bound, or held at one that it wants to leave.
            let mut moves: Vec<(f64, u32, Side)> = Vec::new();
            for &node in self.free {
                let at = node as usize;
                let pushes = slope[at] / diagonal[at];
                match side[at] {
                    Side::Free if w[at] < -wrong => moves.push((-w[at], node, Side::AtZero)),
                    Side::Free if w[at] > 1.0 + wrong => moves.push((w[at] - 1.0, node, Side::AtOne)),
                    Side::AtZero if pushes < -lets_go => moves.push((-pushes, node, Side::Free)),
                    Side::AtOne if pushes > lets_go => moves.push((pushes, node, Side::Free)),
                    _ => {}
                }
            }
            if moves.is_empty() {
                w.iter_mut().for_each(|w| *w = w.clamp(0.0, 1.0));
                return Ok(Left { rounds: round, settled: true });
            }
            (fewest, since) = if moves.len() < fewest { (moves.len(), 0) } else { (fewest, since + 1) };
            if since > 8 || round > CAREFUL_AFTER {
                // The worst half: for ever fewer, down to one at a time, that ends (Murty's rule).
                moves.sort_by(|a, b| b.0.total_cmp(&a.0));
                moves.truncate(moves.len().div_ceil(2));
            }
            moves.iter().for_each(|(_, node, to)| side[*node as usize] = *to);
        }
        w.iter_mut().for_each(|w| *w = w.clamp(0.0, 1.0));
        Ok(Left { rounds: MOST_ROUNDS, settled: false })
    }

    /// Takes nodes that the handle does not reach to zero: those that are not positive, and positive ones beyond them.
    fn start(&self, w: &[f64], side: &mut [Side]) {
        let mut reached = vec![false; w.len()];
        let mut stack: Vec<usize> =
            (0..w.len()).filter(|node| side[*node] == Side::Held && w[*node] > 0.0).collect();
        stack.iter().for_each(|node| reached[*node] = true);
        while let Some(node) = stack.pop() {
            for (next, _) in self.stiffness.row(node) {
                if !reached[next] && side[next] == Side::Free && w[next] > self.tolerance {
                    reached[next] = true;
                    stack.push(next);
                }
            }
        }
        // And a ring (in `A`: two of the mesh) around them, where bounds bend the solution outwards.
        let mut near = reached.clone();
        for node in (0..w.len()).filter(|node| reached[*node]) {
            self.stiffness.row(node).for_each(|(next, _)| near[next] = true);
        }
        for &node in self.free {
            let at = node as usize;
            if !near[at] {
                side[at] = Side::AtZero;
            } else if w[at] > 1.0 + self.tolerance {
                side[at] = Side::AtOne;
            }
        }
    }
}
