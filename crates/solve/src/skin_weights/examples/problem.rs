//! The energy, and the steps that are linear least squares (transforms) or decompositions (rotations).

use super::super::domain::{Domain, Surface};
use super::super::simplex::normalise;
use super::super::{SolvedWeights, WeightsError, keep_largest};
use super::{EnergyAfter, ExampleSettings, Sparsity, Step};
use rayon::prelude::*;
use understudy_core::laplacian::SparseRows;
use understudy_core::linear_algebra::Cholesky;
use understudy_core::rotation::best_rotation;
use understudy_core::{DMat3, DVec3, Vec3};

/// Share of the mean diagonal by which transforms are held to their last value: flat examples leave some undetermined.
const DAMPING: f64 = 1e-7;
/// A handle without a vertex of its own holds those that follow it by more than this.
const HOLDS: f64 = 0.995;
/// Or, where none does, the one that follows it most, if by more than this.
const NEARLY: f64 = 0.9;

/// How a node is held (eq. 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It follows one handle alone.
    Wholly(u32),
    /// Its weights stay what they are: those of cages and of weak bones are nowhere one, and without any condition the
    /// l1 term would take them away.
    AsItIs,
}

/// What does not change.
pub(super) struct Problem<'a> {
    pub laplacian: &'a SparseRows,
    /// Rest positions of nodes.
    pub points: &'a [DVec3],
    /// Examples, `[m][N]`.
    pub examples: Vec<Vec<DVec3>>,
    /// Nodes whose weights do not change.
    pub held: Vec<Option<Hold>>,
    columns: usize,
    /// With the number of nodes in them.
    pub sparsity: f64,
    pub rigidity: f64,
    pub settings: ExampleSettings,
}

/// What does.
#[derive(Clone)]
pub(super) struct State {
    /// `[N][columns]` by rows.
    pub weights: Vec<f64>,
    /// `[m][4 columns][3]`: rows of `T` for x, y, z and 1 of every handle.
    pub transforms: Vec<Vec<f64>>,
    /// `[m][groups]`.
    pub rotations: Vec<Vec<DMat3>>,
    /// The group of every node.
    pub groups: Vec<u32>,
    /// Handles that a node may follow, where not all.
    pub allowed: Option<Vec<bool>>,
}

/// Parts of the energy, not divided by anything.
#[derive(Clone, Copy)]
pub(super) struct Energy {
    data: f64,
    sparsity: f64,
    rigidity: f64,
    mixing: f64,
    count: f64,
}

impl Energy {
    pub fn total(&self) -> f64 {
        self.data + self.sparsity + self.rigidity + self.mixing
    }

    pub fn after(&self, step: Step) -> EnergyAfter {
        let Self { data, sparsity, rigidity, mixing, count } = *self;
        EnergyAfter {
            step,
            data: data / count,
            sparsity: sparsity / count,
            rigidity: rigidity / count,
            mixing: mixing / count,
        }
    }
}

impl State {
    pub fn new(problem: &Problem<'_>, initial: &SolvedWeights, domain: &Domain) -> Self {
        let (n, h, m) = (problem.nodes(), problem.columns, problem.examples.len());
        let mut weights = vec![0.0; n * h];
        for (vertex, node) in domain.node_of_vertex.iter().enumerate() {
            let node = *node as usize;
            weights[node * h..(node + 1) * h].copy_from_slice(initial.row(vertex));
        }
        for (row, held) in weights.chunks_exact_mut(h).zip(&problem.held) {
            if let Some(Hold::Wholly(column)) = held {
                row.fill(0.0);
                row[*column as usize] = 1.0;
            }
        }
        let identity: Vec<f64> =
            (0..12 * h).map(|k| f64::from(u8::from(k % 12 < 9 && k % 12 / 3 == k % 3))).collect();
        Self {
            weights,
            transforms: vec![identity; m],
            rotations: vec![Vec::new(); m],
            groups: vec![0; n],
            allowed: None,
        }
    }

    /// Leaves the largest weights of every node, which are the only ones from now on.
    pub fn keep(&mut self, problem: &Problem<'_>, most: usize) {
        for row in self.weights.chunks_exact_mut(problem.columns) {
            keep_largest(row, most);
            normalise(row);
        }
        self.allowed = Some(self.weights.iter().map(|w| *w > 0.0).collect());
    }
}

impl<'a> Problem<'a> {
    pub fn new(
        surface: &Surface,
        domain: &'a Domain,
        initial: &SolvedWeights,
        examples: &[&[Vec3]],
        settings: &ExampleSettings,
    ) -> Result<Self, WeightsError> {
        let n = domain.points.len();
        let columns = initial.columns();
        let mut vertex_of = vec![0; n];
        for (vertex, node) in domain.node_of_vertex.iter().enumerate().rev() {
            if surface.stand_in[vertex] as usize == vertex {
                vertex_of[*node as usize] = vertex;
            }
        }
        let inward = |positions: &&[Vec3]| -> Vec<DVec3> {
            vertex_of.iter().map(|vertex| surface.inward(positions[*vertex].as_dvec3())).collect()
        };
        let mut held = vec![None; n];
        let mut holds = vec![false; columns];
        for (vertex, column) in &initial.held {
            held[domain.node_of_vertex[*vertex as usize] as usize] = Some(Hold::Wholly(*column));
            holds[*column as usize] = true;
        }
        // A bone holds no vertex by itself: those that follow it most stand for it. A cage's vertex or a weak bone has none
        // that follows it wholly: making one do so would tear it out of the mesh.
        for column in (0..columns).filter(|column| !holds[*column]) {
            let weight = |node: usize| initial.row(vertex_of[node])[column];
            let open: Vec<usize> = (0..n).filter(|node| held[*node].is_none()).collect();
            let best = open.iter().copied().max_by(|a, b| weight(*a).total_cmp(&weight(*b)));
            for node in open {
                if weight(node) > HOLDS || (Some(node) == best && weight(node) > NEARLY) {
                    held[node] = Some(Hold::Wholly(column as u32));
                } else if Some(node) == best {
                    held[node] = Some(Hold::AsItIs);
                }
            }
        }
        Ok(Self {
            laplacian: &domain.laplacian,
            points: &domain.points,
            examples: examples.iter().map(inward).collect(),
            held,
            columns,
            sparsity: settings.sparsity * n as f64,
            rigidity: settings.rigidity * n as f64,
            settings: *settings,
        })
    }

    pub fn nodes(&self) -> usize {
        self.points.len()
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// `T_j [p_i; 1]`, where every handle alone would take every node: `[N][columns]`.
    pub fn carried(&self, transforms: &[f64]) -> Vec<DVec3> {
        let of = |p: &DVec3| {
            let p = *p;
            transforms.chunks_exact(12).map(move |t| {
                DVec3::new(
                    p.x * t[0] + p.y * t[3] + p.z * t[6] + t[9],
                    p.x * t[1] + p.y * t[4] + p.z * t[7] + t[10],
                    p.x * t[2] + p.y * t[5] + p.z * t[8] + t[11],
                )
            })
        };
        self.points.iter().flat_map(of).collect()
    }

    /// `p'` of an example, `[N]`.
    pub fn deformed(&self, weights: &[f64], transforms: &[f64]) -> Vec<DVec3> {
        self.blended(weights, &self.carried(transforms))
    }

    fn blended(&self, weights: &[f64], carried: &[DVec3]) -> Vec<DVec3> {
        let h = self.columns;
        let of = |(w, places): (&[f64], &[DVec3])| w.iter().zip(places).map(|(w, p)| *p * *w).sum();
        weights.chunks_exact(h).zip(carried.chunks_exact(h)).map(of).collect()
    }

    /// `μ` of the term that mixing costs; it belongs to the data.
    fn mixing_weight(&self) -> f64 {
        self.settings.mixing * self.settings.data
    }

    /// `Σ_ij w_ij ‖T_j p_i − q_i‖²`.
    fn mixing(&self, weights: &[f64], carried: &[DVec3], example: &[DVec3]) -> f64 {
        if self.mixing_weight() == 0.0 {
            return 0.0;
        }
        let h = self.columns;
        let rows = weights.chunks_exact(h).zip(carried.chunks_exact(h)).zip(example);
        rows.map(|((w, places), q)| {
            w.iter().zip(places).map(|(w, p)| w * (*p - *q).length_squared()).sum::<f64>()
        })
        .sum()
    }

    /// What the same term costs per weight, `μ Σ_k ‖T_j p_i − q_i‖²`, `[N][columns]`.
    pub fn mixing_costs(&self, carried: &[Vec<DVec3>]) -> Vec<f64> {
        let (h, weight) = (self.columns, self.mixing_weight());
        let mut costs = vec![0.0; self.nodes() * h];
        for (places, example) in carried.iter().zip(&self.examples).filter(|_| weight > 0.0) {
            for ((costs, places), q) in costs.chunks_exact_mut(h).zip(places.chunks_exact(h)).zip(example) {
                costs
                    .iter_mut()
                    .zip(places)
                    .for_each(|(cost, p)| *cost += weight * (*p - *q).length_squared());
            }
        }
        costs
    }

    /// `b_i = Σ_j w̃_ij ½(R_i + R_j)(p_i − p_j)`, eq. 17; `[N]`.
    pub fn turned_edges(&self, groups: &[u32], rotations: &[DMat3]) -> Vec<DVec3> {
        let rotation = |node: usize| rotations.get(groups[node] as usize).copied().unwrap_or(DMat3::IDENTITY);
        let of = |node: usize| {
            let row = self.laplacian.row(node).filter(|(other, _)| *other != node);
            row.map(|(other, value)| {
                let both = (rotation(node) + rotation(other)) * 0.5;
                both * (self.points[node] - self.points[other]) * -value
            })
            .sum()
        };
        (0..self.nodes()).map(of).collect()
    }

    /// `Σ x_i · (L y)_i`.
    fn product(&self, x: &[DVec3], y: &[DVec3]) -> f64 {
        let of = |node: usize| -> f64 {
            let sum: DVec3 = self.laplacian.row(node).map(|(other, value)| y[other] * value).sum();
            x[node].dot(sum)
        };
        (0..x.len()).map(of).sum()
    }

    /// The energy of eq. 11, summed over examples.
    pub fn energy(&self, state: &State) -> Energy {
        self.energy_of(state, &state.weights)
    }

    /// The same with other weights.
    pub fn energy_of(&self, state: &State, weights: &[f64]) -> Energy {
        let m = self.examples.len();
        let rest = self.product(self.points, self.points);
        let parts: Vec<[f64; 3]> = (0..m)
            .into_par_iter()
            .map(|k| {
                let carried = self.carried(&state.transforms[k]);
                let deformed = self.blended(weights, &carried);
                let pairs = deformed.iter().zip(&self.examples[k]);
                let data: f64 = pairs.map(|(p, q)| (*p - *q).length_squared()).sum();
                let mixing = self.mixing(weights, &carried, &self.examples[k]);
                if self.rigidity == 0.0 {
                    return [data, 0.0, mixing];
                }
                let turned = self.turned_edges(&state.groups, &state.rotations[k]);
                let across: f64 = deformed.iter().zip(&turned).map(|(p, b)| p.dot(*b)).sum();
                [data, self.product(&deformed, &deformed) - 2.0 * across + rest, mixing]
            })
            .collect();
        let bends = |j: usize| -> f64 {
            let of = |node: usize| -> f64 {
                let bend: f64 =
                    self.laplacian.row(node).map(|(other, v)| v * weights[other * self.columns + j]).sum();
                match self.settings.norm {
                    Sparsity::L1 => bend.abs(),
                    Sparsity::L2 => bend * bend,
                }
            };
            (0..self.nodes()).map(of).sum()
        };
        let sparsity: f64 = match self.sparsity > 0.0 {
            true => (0..self.columns).into_par_iter().map(bends).collect::<Vec<f64>>().iter().sum(),
            false => 0.0,
        };
        Energy {
            data: self.settings.data * parts.iter().map(|p| p[0]).sum::<f64>(),
            sparsity: m as f64 * self.sparsity * sparsity,
            rigidity: self.rigidity * parts.iter().map(|p| p[1]).sum::<f64>(),
            mixing: self.mixing_weight() * parts.iter().map(|p| p[2]).sum::<f64>(),
            count: (self.nodes() * m) as f64,
        }
    }

    /// `Σ_k Σ_i ‖p' − q‖²`.
    pub fn misfit(&self, state: &State) -> f64 {
        let of = |k: usize| -> f64 {
            let deformed = self.deformed(&state.weights, &state.transforms[k]);
            deformed.iter().zip(&self.examples[k]).map(|(p, q)| (*p - *q).length_squared()).sum()
        };
        (0..self.examples.len()).map(of).sum()
    }

    /// Transforms for a start: every handle moves rigidly as the nodes do that follow it most.
    pub fn move_apart(&self, state: &mut State) {
        let h = self.columns;
        let largest = |row: &[f64]| row.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let own: Vec<(usize, f64)> =
            state.weights.chunks_exact(h).map(|row| largest(row).unwrap_or((0, 0.0))).collect();
        for (example, transforms) in self.examples.iter().zip(&mut state.transforms) {
            for column in 0..h {
                let members = || own.iter().enumerate().filter(move |(_, own)| own.0 == column);
                let total: f64 = members().map(|(_, own)| own.1).sum();
                if total <= 0.0 {
                    continue;
                }
                let mean = |points: &[DVec3]| {
                    members().map(|(node, own)| points[node] * own.1).sum::<DVec3>() / total
                };
                let (from, to) = (mean(self.points), mean(example));
                let mut covariance = DMat3::ZERO;
                for (node, own) in members() {
                    let a = (self.points[node] - from) * own.1;
                    let b = example[node] - to;
                    covariance += DMat3::from_cols(a * b.x, a * b.y, a * b.z);
                }
                let rotation = best_rotation(covariance);
                let shift = to - rotation * from;
                let block = &mut transforms[12 * column..12 * (column + 1)];
                // Rows for x, y, z and 1 are columns of the matrix.
                for (row, value) in
                    [rotation.x_axis, rotation.y_axis, rotation.z_axis, shift].iter().enumerate()
                {
                    block[3 * row..3 * row + 3].copy_from_slice(&value.to_array());
                }
            }
        }
    }

    /// Transforms: linear least squares, `Kᵀ(I + λ₂ L)K T = Kᵀ(q + λ₂ b)`, held to their last value a little.
    pub fn fit_transforms(&self, state: &mut State) -> Result<(), WeightsError> {
        let (n, h) = (self.nodes(), self.columns);
        let size = 4 * h;
        // K, `[4 columns][N]`: a weight times x, y, z or 1.
        let k: Vec<f64> = (0..size)
            .into_par_iter()
            .flat_map_iter(|row| {
                let weights = &state.weights;
                (0..n).map(move |node| {
                    let p = self.points[node];
                    let w = weights[node * h + row / 4];
                    w * [p.x, p.y, p.z, 1.0][row % 4]
                })
            })
            .collect();
        let pulled: Vec<f64> = k
            .par_chunks(n)
            .flat_map_iter(|column| {
                let bent = self.laplacian.times(column);
                let data = self.settings.data;
                column.iter().zip(bent).map(move |(k, l)| data * k + self.rigidity * l).collect::<Vec<f64>>()
            })
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut gram: Vec<f64> = (0..size * size)
            .into_par_iter()
            .map(|place| {
                let (row, column) = (place / size, place % size);
                if column > row {
                    0.0
                } else {
                    dot(&k[row * n..(row + 1) * n], &pulled[column * n..(column + 1) * n])
                }
            })
            .collect();
        // Mixing: every handle on its own, weighted by its weights.
        let own = self.mixing_weight();
        let corner = |node: usize, row: usize| {
            let p = self.points[node];
            [p.x, p.y, p.z, 1.0][row % 4]
        };
        for row in (0..size).filter(|_| own > 0.0) {
            for column in row / 4 * 4..=row {
                let weighted = |node: usize| k[row * n + node] * corner(node, column);
                gram[row * size + column] += own * (0..n).map(weighted).sum::<f64>();
            }
        }
        let trace: f64 = (0..size).map(|d| gram[d * size + d]).sum();
        let damping = DAMPING * trace / size as f64;
        (0..size).for_each(|d| gram[d * size + d] += damping);
        let factor = Cholesky::new(&gram, size)
            .ok_or(WeightsError::Factor { unknowns: size, why: "handles move nothing of their own" })?;
        let rotations = &state.rotations;
        let groups = &state.groups;
        let fitted: Vec<Vec<f64>> = state
            .transforms
            .par_iter()
            .enumerate()
            .map(|(example, last)| {
                let turned = self.turned_edges(groups, &rotations[example]);
                // K holds weights once: its product with q is the right side of mixing, too.
                let wanted: Vec<DVec3> = self.examples[example]
                    .iter()
                    .zip(turned)
                    .map(|(q, b)| *q * (self.settings.data + own) + b * self.rigidity)
                    .collect();
                let mut right = vec![0.0; size * 3];
                for row in 0..size {
                    let column = &k[row * n..(row + 1) * n];
                    let sum: DVec3 = column.iter().zip(&wanted).map(|(k, q)| *q * *k).sum();
                    for axis in 0..3 {
                        right[3 * row + axis] = sum[axis] + damping * last[3 * row + axis];
                    }
                }
                factor.solve(&mut right, 3);
                right
            })
            .collect();
        state.transforms = fitted;
        Ok(())
    }

    /// Rotations: of every group the one that turns its edges best, eqs. 21 to 23.
    pub fn fit_rotations(&self, state: &mut State) {
        let count = state.groups.iter().max().map_or(0, |most| *most as usize + 1);
        let weights = &state.weights;
        let groups = &state.groups;
        state.rotations = state
            .transforms
            .par_iter()
            .map(|transforms| {
                let deformed = self.deformed(weights, transforms);
                let mut covariance = vec![DMat3::ZERO; count];
                for node in 0..self.nodes() {
                    for (other, value) in self.laplacian.row(node).filter(|(other, _)| *other > node) {
                        let from = (self.points[node] - self.points[other]) * (-0.5 * value);
                        let to = deformed[node] - deformed[other];
                        let edge = DMat3::from_cols(from * to.x, from * to.y, from * to.z);
                        covariance[groups[node] as usize] += edge;
                        covariance[groups[other] as usize] += edge;
                    }
                }
                covariance.into_iter().map(best_rotation).collect()
            })
            .collect();
    }
}
