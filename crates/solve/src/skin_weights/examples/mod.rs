//! Weights from examples (Yuan et al. 2019): handle weights, affine handle transforms of every example and rotations of
//! groups of edges, one after the other, so that the printed energy (eq. 11) never rises:
//!
//! `E = Σ_k ( Σ_i ‖p'_i − q_i‖² + μ Σ_ij w_ij ‖T_j p_i − q_i‖² + λ₂ Σ_ij w̃_ij ‖(p'_i − p'_j) − R_g (p_i − p_j)‖² ) + m λ₁ Σ_j |L w_j|₁`,
//! `p'_i = Σ_j w_ij T_j [p_i; 1]`.
//!
//! Where we differ: the paper stacks `λ₂ L p' = λ₂ b` as rows (eq. 18), which is another energy; we solve
//! `(I + λ₂ L) p' = q + λ₂ b` and so minimise what is printed. Handle conditions (eq. 3) hold in every weight step: without
//! them `W → W G, T → G⁻¹ T` lowers the l1 term for nothing. An edge between two groups counts half in each. `λ` have no
//! unit: lengths are those of a mesh with a diagonal of one, and both are multiplied by the number of nodes. `μ` is ours
//! and small: the printed energy has valleys along which maps bend and weights soften without any misfit, and l1 alone
//! leads down them; `μ = 0` is the paper's energy.
//!
//! Start at [`optimise_weights`]; the three steps are in `problem`, the weight step's splitting in `splitting`.

mod clusters;
mod problem;
mod splitting;
#[cfg(test)]
mod tests;

use super::domain::{Domain, Surface};
use super::simplex::project;
use super::{Hear, SolvedWeights, WeightsError, WeightsProgress, normalise};
use clusters::cluster;
use problem::{Problem, State};
use serde::{Deserialize, Serialize};
use splitting::Splitting;
use understudy_core::{Affine3A, DMat3, DVec3, Mesh, Vec3};

/// Most memory for what a weight step keeps, GB.
const MOST_GB: f64 = 4.0;
/// Rounds in a row that gain next to nothing before the end.
const QUIET: usize = 4;

/// What keeps handles from reaching far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sparsity {
    /// `|L w|₁`, the paper's: bends are few.
    #[default]
    L1,
    /// `|L w|₂²`, for comparison: bends are small.
    L2,
}

/// How to optimise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExampleSettings {
    /// Of the data term: 1, or 0 for comparison.
    pub data: f64,
    /// `λ₁`, without a unit.
    pub sparsity: f64,
    /// Which norm.
    pub norm: Sparsity,
    /// `λ₂`, without a unit.
    pub rigidity: f64,
    /// `μ`: how much every handle should explain alone what follows it, as a share of the data term. Examples leave
    /// valleys of maps and soft weights that fit equally well; this decides for weights that mix no more than they must.
    pub mixing: f64,
    /// Groups of edges that share a rotation; `None` for four per handle, at least 16 and at most 120.
    pub groups: Option<usize>,
    /// Rounds of the three steps at most.
    pub rounds: usize,
    /// Iterations inside a weight step.
    pub weight_iterations: usize,
    /// Done when rounds lower the energy by less than this share.
    pub tolerance: f64,
    /// Handles per vertex at most: the rest is optimised again on the largest.
    pub max_influences: Option<usize>,
}

impl Default for ExampleSettings {
    fn default() -> Self {
        Self {
            data: 1.0,
            sparsity: 4e-9,
            norm: Sparsity::L1,
            rigidity: 3e-5,
            mixing: 0.02,
            groups: None,
            rounds: 80,
            weight_iterations: 60,
            tolerance: 1e-3,
            max_influences: None,
        }
    }
}

impl ExampleSettings {
    /// What makes no sense, before any work.
    pub fn check(&self) -> Result<(), WeightsError> {
        let named = [
            ("the weight of the data", self.data),
            ("the sparsity", self.sparsity),
            ("the rigidity", self.rigidity),
            ("the price of mixing", self.mixing),
            ("the tolerance", self.tolerance),
        ];
        for (name, value) in named {
            if !(value.is_finite() && value >= 0.0) {
                return Err(WeightsError::Setting { name, problem: format!("{value}; 0 or more is wanted") });
            }
        }
        for (name, count) in [
            ("the number of groups", self.groups.unwrap_or(1)),
            ("the number of rounds", self.rounds),
            ("the number of weight iterations", self.weight_iterations),
            ("the number of influences", self.max_influences.unwrap_or(1)),
        ] {
            if count == 0 {
                return Err(WeightsError::Setting { name, problem: "0; at least 1 is wanted".into() });
            }
        }
        Ok(())
    }
}

/// A step of the optimisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Before the first.
    Start,
    /// Further along the way of the last round; kept only where the energy falls.
    Extrapolation,
    /// Affine transforms of handles.
    Transforms,
    /// Rotations of groups.
    Rotations,
    /// Weights.
    Weights,
    /// Groups anew; kept only where the energy does not rise.
    Groups,
    /// Fewer handles per vertex: the one step that may raise the energy.
    Influences,
}

/// The energy after a step, per node and example, of a mesh with a diagonal of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EnergyAfter {
    /// After which step.
    pub step: Step,
    /// `Σ ‖p' − q‖²`.
    pub data: f64,
    /// `λ₁` times the l1 norm.
    pub sparsity: f64,
    /// `λ₂` times the rigidity.
    pub rigidity: f64,
    /// `μ` times what handles alone miss.
    pub mixing: f64,
}

impl EnergyAfter {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.data + self.sparsity + self.rigidity + self.mixing
    }
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExampleStop {
    /// A round gained next to nothing.
    Converged,
    /// The rounds were used up.
    Rounds,
}

/// What examples made of weights.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimisedWeights {
    /// `[V][columns]` by rows; every row is not negative and sums to one.
    pub values: Vec<f64>,
    /// Energy after every step.
    pub history: Vec<EnergyAfter>,
    /// Rest → example of every handle, `[m][columns]`, in the mesh's unit.
    pub transforms: Vec<Vec<Affine3A>>,
    /// The group of every vertex.
    pub groups: Vec<u32>,
    /// Why it ended.
    pub stop: ExampleStop,
    /// Rounds used.
    pub rounds: usize,
    /// Root of the mean squared distance between examples and their reconstruction, in the mesh's unit.
    pub rmse: f64,
}

/// Improves weights by examples: deformed meshes of the same topology, `[m][V]`.
pub fn optimise_weights(
    mesh: &Mesh,
    initial: &SolvedWeights,
    examples: &[&[Vec3]],
    settings: &ExampleSettings,
    hear: Hear<'_>,
) -> Result<OptimisedWeights, WeightsError> {
    settings.check()?;
    let (vertices, columns) = (mesh.vertex_count(), initial.columns());
    if initial.values.len() != vertices * columns {
        let got = format!("{}", initial.values.len());
        return Err(WeightsError::Shape { got, want: format!("{vertices} × {columns}") });
    }
    if examples.is_empty() {
        return Err(WeightsError::Setting { name: "the list of examples", problem: "empty".into() });
    }
    for (example, positions) in examples.iter().enumerate() {
        if positions.len() != vertices {
            return Err(WeightsError::ExampleCount { example, got: positions.len(), want: vertices });
        }
        if let Some(vertex) = positions.iter().position(|p| !p.is_finite()) {
            return Err(WeightsError::ExampleNotFinite { example, vertex });
        }
    }
    // A block of handles per node, and where every handle alone takes every node of every example.
    let (n, h, m) = (vertices as f64, columns as f64, examples.len() as f64);
    let gigabytes = 8.0 * n * (h * h + 3.0 * m * h) / 1e9;
    if gigabytes > MOST_GB {
        let problem = format!(
            "{columns}, which with {vertices} vertices and {} examples needs {gigabytes:.0} GB, more than {MOST_GB}",
            examples.len()
        );
        return Err(WeightsError::Setting { name: "the number of handles", problem });
    }
    let surface = Surface::new(mesh)?;
    let domain = Domain::of_surface(&surface);
    let problem = Problem::new(&surface, &domain, initial, examples, settings)?;
    let group_count = settings.groups.unwrap_or((4 * columns).clamp(16, 120));
    let mut splitting = Splitting::new(&problem)?;
    let mut state = State::new(&problem, initial, &domain);
    state.groups = cluster(&state.weights, columns, group_count);
    let (mut state, mut history) = best_start(&problem, &mut splitting, state, hear)?;
    let mut stop = ExampleStop::Rounds;
    let (mut rounds, mut quiet) = (0, 0);
    let extra = match settings.max_influences.filter(|most| *most < columns) {
        Some(_) => settings.rounds.div_ceil(4),
        None => 0,
    };
    let total = settings.rounds + extra;
    let heard = |done| hear(WeightsProgress { what: "learning from examples", unit: "rounds", done, total });
    let mut fewer = false;
    let mut left = settings.rounds;
    let mut extrapolation = Extrapolation { share: 1.0, last: None };
    loop {
        if left == 0 || stop == ExampleStop::Converged {
            if fewer || extra == 0 {
                break;
            }
            let most = settings.max_influences.unwrap_or(columns);
            state.keep(&problem, most);
            splitting.restart();
            history.push(problem.energy(&state).after(Step::Influences));
            (fewer, left, quiet, stop) = (true, extra, 0, ExampleStop::Rounds);
        }
        let start = history.last().map_or(f64::INFINITY, EnergyAfter::total);
        left -= 1;
        if extrapolation.go_on(&problem, &mut state, fewer) {
            history.push(problem.energy(&state).after(Step::Extrapolation));
        }
        problem.fit_transforms(&mut state)?;
        history.push(problem.energy(&state).after(Step::Transforms));
        problem.fit_rotations(&mut state);
        history.push(problem.energy(&state).after(Step::Rotations));
        splitting.fit_weights(&problem, &mut state, &|_| heard(rounds))?;
        history.push(problem.energy(&state).after(Step::Weights));
        if regroup(&problem, &mut state, group_count) {
            history.push(problem.energy(&state).after(Step::Groups));
        }
        rounds += 1;
        if !heard(rounds) {
            return Err(WeightsError::Stopped);
        }
        let end = history.last().map_or(0.0, EnergyAfter::total);
        // A step back and a longer one take turns: one quiet round says little.
        quiet = if start - end <= settings.tolerance * start.abs() { quiet + 1 } else { 0 };
        if quiet >= QUIET {
            stop = ExampleStop::Converged;
        }
    }
    let mut values = Vec::with_capacity(vertices * columns);
    for vertex in 0..vertices {
        let node = domain.node_of_vertex[vertex] as usize;
        let mut row = state.weights[node * columns..(node + 1) * columns].to_vec();
        normalise(&mut row);
        values.extend(row);
    }
    let groups = domain.node_of_vertex.iter().map(|node| state.groups[*node as usize]).collect();
    let rmse = (problem.misfit(&state) / (problem.nodes() * examples.len()) as f64).sqrt() / surface.scale;
    let transforms = state.transforms.iter().map(|t| outward(t, &surface)).collect();
    Ok(OptimisedWeights { values, history, transforms, groups, stop, rounds, rmse })
}

/// The energy has many minima, and alternation stays in the one that it starts in. Two starts get one pass each, and the
/// lower one goes on: transforms of all handles at once from the first weights (the paper's), which share every misfit
/// between neighbours, and rigid motions of every handle from the vertices that follow it most, which find the hinges of
/// what is rigid in pieces.
fn best_start(
    problem: &Problem<'_>,
    splitting: &mut Splitting,
    together: State,
    hear: Hear<'_>,
) -> Result<(State, Vec<EnergyAfter>), WeightsError> {
    let mut apart = together.clone();
    splitting.restart();
    let (iterations, unit) = (splitting.iterations(problem), "iterations");
    let total = if problem.settings.data == 0.0 { iterations } else { 2 * iterations };
    let heard = |done| hear(WeightsProgress { what: "looking for a start", unit, done, total });
    let mut pass = |mut state: State, fit_all: bool| -> Result<(State, Vec<EnergyAfter>), WeightsError> {
        let mut history = vec![problem.energy(&state).after(Step::Start)];
        if fit_all {
            problem.fit_transforms(&mut state)?;
            history.push(problem.energy(&state).after(Step::Transforms));
        }
        problem.fit_rotations(&mut state);
        history.push(problem.energy(&state).after(Step::Rotations));
        splitting.restart();
        let before = if fit_all { 0 } else { iterations };
        splitting.fit_weights(problem, &mut state, &|done| heard(before + done))?;
        history.push(problem.energy(&state).after(Step::Weights));
        Ok((state, history))
    };
    let together = pass(together, true)?;
    if problem.settings.data == 0.0 {
        return Ok(together);
    }
    problem.move_apart(&mut apart);
    let apart = pass(apart, false)?;
    splitting.restart();
    let end =
        |(_, history): &(State, Vec<EnergyAfter>)| history.last().map_or(f64::INFINITY, EnergyAfter::total);
    Ok(if end(&apart) < end(&together) { apart } else { together })
}

/// Rounds creep along a valley where transforms and weights change together: a longer step the same way, as long as
/// that pays.
struct Extrapolation {
    share: f64,
    /// Weights and transforms at the start of the last round.
    last: Option<(Vec<f64>, Vec<Vec<f64>>)>,
}

impl Extrapolation {
    /// Whether it went further.
    fn go_on(&mut self, problem: &Problem<'_>, state: &mut State, stay: bool) -> bool {
        let now = (state.weights.clone(), state.transforms.clone());
        let Some((weights, transforms)) = self.last.replace(now).filter(|_| !stay) else { return false };
        let kept = (state.weights.clone(), state.transforms.clone(), state.rotations.clone());
        let before = problem.energy(state).total();
        let share = self.share;
        let beyond = |now: &mut f64, last: &f64| *now += share * (*now - last);
        state.weights.iter_mut().zip(&weights).for_each(|(now, last)| beyond(now, last));
        state.weights.chunks_exact_mut(problem.columns()).for_each(project);
        for (now, last) in state.transforms.iter_mut().zip(&transforms) {
            now.iter_mut().zip(last).for_each(|(now, last)| beyond(now, last));
        }
        problem.fit_rotations(state);
        if problem.energy(state).total() < before {
            self.share = (1.6 * share).min(30.0);
            return true;
        }
        (state.weights, state.transforms, state.rotations) = kept;
        self.share = (0.5 * share).max(0.25);
        false
    }
}

/// New groups from the weights as they are now, where the energy does not rise.
fn regroup(problem: &Problem<'_>, state: &mut State, count: usize) -> bool {
    let before = problem.energy(state).total();
    let kept = (state.groups.clone(), state.rotations.clone());
    state.groups = cluster(&state.weights, problem.columns(), count);
    problem.fit_rotations(state);
    if problem.energy(state).total() <= before {
        return true;
    }
    (state.groups, state.rotations) = kept;
    false
}

/// Transforms of a mesh of unit size as those of the mesh's own: `x = centre + y / scale`.
fn outward(transforms: &[f64], surface: &Surface) -> Vec<Affine3A> {
    let of = |block: &[f64]| {
        let column = |c: usize| DVec3::new(block[3 * c], block[3 * c + 1], block[3 * c + 2]);
        let linear = DMat3::from_cols(column(0), column(1), column(2));
        let translation = surface.centre + column(3) / surface.scale - linear * surface.centre;
        Affine3A::from_mat3_translation(linear.as_mat3(), translation.as_vec3())
    };
    transforms.chunks_exact(12).map(of).collect()
}
