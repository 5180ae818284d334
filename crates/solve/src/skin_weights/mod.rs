//! Skinning weights from handles: points, bones, regions and cages in, how much every vertex follows each of them out.
//! Start at [`solve_weights`]; weights that examples improve are in `examples`, weights from another mesh in
//! `transfer`.
//!
//! Bounded biharmonic weights (Jacobson et al. 2011; eqs. 2 to 6 of Yuan et al. 2019) minimise
//! `½ Σ_j w_jᵀ L M⁻¹ L w_j` with `w_j = δ_jk` on handle `k`, `0 ≤ w ≤ 1` and a sum of one, on the surface or in a
//! volume around it. Beside them: quasi-harmonic weights and bone heat.

mod bounded;
mod conditions;
mod domain;
mod error;
pub mod examples;
mod handles;
mod heat;
mod joint;
mod lattice;
mod quasi;
mod simplex;
#[cfg(test)]
pub(crate) mod tests;
pub mod transfer;
mod volume_problem;

pub use error::WeightsError;
pub use handles::{Handle, HandleShape, column_names, column_places};
pub use lattice::MAX_CELLS;
pub use volume_problem::VolumeProblem;

use crate::closest::TriangleTree;
use bounded::System;
use conditions::Conditions;
use domain::{Domain, Surface, nearest_corner};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use simplex::normalise;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use understudy_core::laplacian::SparseRows;
use understudy_core::sparse_cholesky::SparseCholesky;
use understudy_core::{DVec3, Mesh};

/// Which weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightKind {
    /// Bounded biharmonic: the smoothest.
    #[default]
    Bbw,
    /// Quasi-harmonic: nearly as smooth, and faster.
    Quasi,
    /// Bone heat, on the surface.
    Heat,
}

/// Where they are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DomainKind {
    /// The volume where there are bones or cages, the surface otherwise.
    #[default]
    Auto,
    /// The mesh itself.
    Surface,
    /// A lattice of tetrahedra around it.
    Volume,
}

/// How to solve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WeightSettings {
    /// Which weights.
    pub kind: WeightKind,
    /// Where.
    pub domain: DomainKind,
    /// Whether the sum of one is inside the problem (eq. 4) or made at the end, handle by handle.
    pub joint: bool,
    /// Cells of the lattice along the longest side of the mesh.
    pub cells: usize,
    /// How wrong a weight may be.
    pub tolerance: f64,
    /// Handles per vertex at most: the largest are kept, and each is solved again where it is kept.
    pub max_influences: Option<usize>,
    /// Iterations of the joint mode at most.
    pub joint_iterations: usize,
    /// Steps of quasi-harmonic weights.
    pub quasi_steps: usize,
}

impl Default for WeightSettings {
    fn default() -> Self {
        Self {
            kind: WeightKind::Bbw,
            domain: DomainKind::Auto,
            joint: false,
            cells: 48,
            tolerance: 1e-4,
            max_influences: None,
            joint_iterations: 2000,
            quasi_steps: 8,
        }
    }
}

impl WeightSettings {
    /// What makes no sense, before any work.
    pub fn check(&self) -> Result<(), WeightsError> {
        let bad = |name, problem: String| Err(WeightsError::Setting { name, problem });
        if !(2..=MAX_CELLS).contains(&self.cells) {
            return bad("the number of cells", format!("{}, not between 2 and {MAX_CELLS}", self.cells));
        }
        if !(self.tolerance > 0.0 && self.tolerance <= 0.1) {
            return bad("the tolerance", format!("{}, not between 0 and 0.1", self.tolerance));
        }
        if self.max_influences == Some(0) {
            return bad("the number of influences", "0; at least 1 is wanted".into());
        }
        Ok(())
    }
}

/// How far a solve is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightsProgress {
    /// The piece of work; another one begins where it changes.
    pub what: &'static str,
    /// What is counted: handles, iterations, steps.
    pub unit: &'static str,
    /// How many are done.
    pub done: usize,
    /// Of how many.
    pub total: usize,
}

/// Hears of progress, from any thread; `false` ends the work.
pub type Hear<'a> = &'a (dyn Fn(WeightsProgress) -> bool + Sync);

/// How it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkinWeightsReport {
    /// `surface` or `volume`.
    pub domain: DomainKind,
    /// Nodes of the domain.
    pub nodes: usize,
    /// Nodes that handles hold.
    pub held_nodes: usize,
    /// Connected parts of the domain, and how many of them hold no handle.
    pub parts: usize,
    /// Parts without a handle.
    pub parts_without_handle: usize,
    /// Most rounds that a handle took, or iterations or steps of all together.
    pub rounds: usize,
    /// Whether every handle is within the tolerance.
    pub settled: bool,
    /// How far the sum of a node's weights was from one before it was made one.
    pub row_error: f64,
    /// `½ Σ_j w_jᵀ L M⁻¹ L w_j` of the result in the domain, of a mesh with a diagonal of one.
    pub energy: f64,
    /// What was mended or taken from elsewhere.
    pub notes: Vec<String>,
}

impl SkinWeightsReport {
    fn of(domain: &Domain) -> Self {
        Self {
            domain: if domain.lattice.is_some() { DomainKind::Volume } else { DomainKind::Surface },
            nodes: domain.points.len(),
            held_nodes: 0,
            parts: domain.parts,
            parts_without_handle: 0,
            rounds: 0,
            settled: true,
            row_error: 0.0,
            energy: 0.0,
            notes: Vec::new(),
        }
    }
}

/// Weights of every vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct SolvedWeights {
    /// One name a column.
    pub names: Vec<String>,
    /// Where each column rests, in the mesh's unit.
    pub places: Vec<DVec3>,
    /// `[V][columns]` by rows; every row is not negative and sums to one.
    pub values: Vec<f64>,
    /// Vertices that follow one handle wholly, ascending, and its column.
    pub held: Vec<(u32, u32)>,
    /// How it went.
    pub report: SkinWeightsReport,
}

impl SolvedWeights {
    /// Number of handles.
    pub fn columns(&self) -> usize {
        self.names.len()
    }

    /// Weights of one vertex.
    pub fn row(&self, vertex: usize) -> &[f64] {
        &self.values[vertex * self.columns()..(vertex + 1) * self.columns()]
    }
}

/// Weights of a mesh for handles, in the mesh's unit.
///
/// ```
/// use understudy_core::{DVec3, Face, MeshParts, Vec3};
/// use understudy_solve::skin_weights::{Handle, HandleShape, WeightSettings, solve_weights};
///
/// // A strip of 2 × 20 vertices with a handle at either end.
/// let positions = (0..40).map(|i| Vec3::new((i / 2) as f32, (i % 2) as f32, 0.0)).collect();
/// let faces = (0..19).map(|i| Face::quad(2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1)).collect();
/// let mesh = MeshParts { positions, faces, ..MeshParts::default() }.build()?;
/// let handles = [
///     Handle::new("left", HandleShape::Region(vec![0, 1])),
///     Handle::new("right", HandleShape::Point(DVec3::new(19.0, 0.5, 0.0))),
/// ];
/// let weights = solve_weights(&mesh, &handles, &WeightSettings::default(), &|_| true)?;
/// assert_eq!(weights.row(0), [1.0, 0.0]);
/// assert!(weights.row(20).iter().all(|w| (w - 0.5).abs() < 0.1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve_weights(
    mesh: &Mesh,
    handles: &[Handle],
    settings: &WeightSettings,
    hear: Hear<'_>,
) -> Result<SolvedWeights, WeightsError> {
    settings.check()?;
    handles::check(handles, mesh.vertex_count())?;
    let surface = Surface::new(mesh)?;
    let volume = match settings.domain {
        DomainKind::Surface => false,
        DomainKind::Volume => true,
        DomainKind::Auto => {
            let inner =
                |handle: &Handle| matches!(handle.shape, HandleShape::Bone { .. } | HandleShape::Cage { .. });
            settings.kind != WeightKind::Heat && handles.iter().any(inner)
        }
    };
    if volume && settings.kind == WeightKind::Heat {
        let problem = "volume; bone heat is for the surface".into();
        return Err(WeightsError::Setting { name: "the domain", problem });
    }
    let (mut values, mut report, conditions) = in_domain(&surface, handles, settings, volume, hear)?;
    // Where a handle holds a vertex, it holds it wholly.
    let names = column_names(handles);
    for &(vertex, column) in &conditions.vertices {
        let row = &mut values[vertex as usize * names.len()..(vertex as usize + 1) * names.len()];
        row.fill(0.0);
        row[column as usize] = 1.0;
    }
    if let Some(most) = settings.max_influences {
        for row in values.chunks_exact_mut(names.len()) {
            keep_largest(row, most);
            normalise(row);
        }
    }
    report.notes.splice(0..0, surface.notes.iter().cloned());
    for (column, name) in names.iter().enumerate() {
        let largest = values.chunks_exact(names.len()).fold(0.0f64, |most, row| most.max(row[column]));
        if largest <= 0.0 {
            return Err(WeightsError::Unreached { handle: name.clone() });
        }
        if largest < 0.05 {
            report.notes.push(format!("handle '{name}' moves nothing by more than {:.1} %", 100.0 * largest));
        }
    }
    let points: Vec<DVec3> = mesh.positions().iter().map(|p| p.as_dvec3()).collect();
    let places = column_places(handles, &points);
    Ok(SolvedWeights { names, places, values, held: conditions.vertices, report })
}

/// Zeroes all but the largest of a row.
fn keep_largest(row: &mut [f64], most: usize) {
    if row.len() <= most {
        return;
    }
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
    order[most..].iter().for_each(|column| row[*column] = 0.0);
}

/// [`keep_largest`] of every node of weights `[columns][n]`.
fn keep_largest_of_columns(nodes: &mut [f64], n: usize, most: usize) {
    let columns = nodes.len() / n.max(1);
    let mut row = vec![0.0; columns];
    for node in 0..n {
        (0..columns).for_each(|column| row[column] = nodes[column * n + node]);
        keep_largest(&mut row, most);
        (0..columns).for_each(|column| nodes[column * n + node] = row[column]);
    }
}

/// Solves on the surface or in a volume; rows of the mesh's vertices sum to one.
fn in_domain(
    surface: &Surface,
    handles: &[Handle],
    settings: &WeightSettings,
    volume: bool,
    hear: Hear<'_>,
) -> Result<(Vec<f64>, SkinWeightsReport, Conditions), WeightsError> {
    let columns = handles.iter().map(Handle::column_count).sum();
    let domain = match volume {
        false => Domain::of_surface(surface),
        true => {
            let cage = |handle: &Handle| match &handle.shape {
                HandleShape::Cage { vertices, faces } => {
                    Some((vertices.iter().map(|v| surface.inward(*v)).collect(), faces.clone()))
                }
                _ => None,
            };
            let cages: Vec<_> = handles.iter().filter_map(cage).collect();
            Domain::of_volume(surface, &cages, settings.cells)
        }
    };
    let n = domain.points.len();
    let mut report = SkinWeightsReport::of(&domain);
    if settings.kind == WeightKind::Heat {
        let vertices = Conditions { nodes: Vec::new(), rows: Vec::new(), vertices: Vec::new() };
        let count = |done, total| hear(WeightsProgress { what: "bone heat", unit: "vertices", done, total });
        let (mut nodes, unseen) = heat::heat(handles, surface, &domain, settings.max_influences, &count)?;
        if unseen > 0 {
            report.notes.push(format!("{unseen} vertices see no handle and take the nearest"));
        }
        let reached = vec![true; domain.parts];
        make_rows_one_where(&mut nodes, n, columns, &reached, &domain.part, &mut report);
        return Ok((domain.to_mesh(&nodes, columns), report, vertices));
    }
    let conditions = conditions::conditions(handles, surface, &domain, &mut report)?;
    let mut reached = vec![false; domain.parts];
    conditions.nodes.iter().for_each(|node| reached[domain.part[*node as usize] as usize] = true);
    report.parts_without_handle = reached.iter().filter(|reached| !**reached).count();
    let mut held = vec![false; n];
    conditions.nodes.iter().for_each(|node| held[*node as usize] = true);
    let is_free = |node: &u32| !held[*node as usize] && reached[domain.part[*node as usize] as usize];
    let free: Vec<u32> = (0..n as u32).filter(is_free).collect();
    let mut nodes = vec![0.0; columns * n];
    for (node, row) in conditions.nodes.iter().zip(conditions.rows.chunks_exact(columns)) {
        (0..columns).for_each(|column| nodes[column * n + *node as usize] = row[column]);
    }
    let stiffness = domain.stiffness();
    let hear_of = |what, unit| move |done, total| hear(WeightsProgress { what, unit, done, total });
    let mut operator = None;
    match settings.kind {
        WeightKind::Quasi => {
            let laplacian = &domain.laplacian;
            let steps = settings.quasi_steps;
            let system = quasi::QuasiSystem { laplacian, stiffness: &stiffness, free: &free, columns, steps };
            let left = system.solve(&mut nodes, &hear_of("quasi-harmonic weights", "steps"))?;
            report.rounds = left.energies.len() - 1;
            operator = settings.max_influences.is_some().then(|| left.operator(n));
        }
        // Handles may hold every node.
        _ if free.is_empty() => {}
        _ => bounded_weights(&domain, &stiffness, &free, columns, settings, &mut nodes, &mut report, hear)?,
    }
    make_rows_one_where(&mut nodes, n, columns, &reached, &domain.part, &mut report);
    if settings.kind == WeightKind::Bbw && settings.joint && !free.is_empty() {
        let initial = &mut nodes;
        let system = joint::JointSystem {
            stiffness: &stiffness,
            mass: &domain.mass,
            free: &free,
            columns,
            tolerance: settings.tolerance,
            iterations: settings.joint_iterations,
        };
        let left = system.solve(initial, &hear_of("all handles at once", "iterations"))?;
        report.rounds = left.iterations;
        report.settled = left.residual < settings.tolerance;
    }
    if let Some(most) = settings.max_influences.filter(|most| *most < columns) {
        let operator = operator.as_ref();
        let kept = Kept { stiffness: &stiffness, operator, free: &free, tolerance: settings.tolerance };
        keep_largest_of_columns(&mut nodes, n, most);
        kept.solve(&mut nodes, n, hear)?;
        if settings.joint {
            report.notes.push(format!(
                "at most {most} handles per vertex: those are solved one by one, and rows then made to sum to one"
            ));
        }
        make_rows_one_where(&mut nodes, n, columns, &reached, &domain.part, &mut report);
    }
    report.energy = nodes
        .chunks_exact(n)
        .map(|w| 0.5 * stiffness.times(w).iter().zip(w).map(|(a, b)| a * b).sum::<f64>())
        .sum();
    let mut values = domain.to_mesh(&nodes, columns);
    if report.parts_without_handle > 0 {
        elsewhere(surface, handles, settings, &domain, &reached, &mut values, &mut report, hear)?;
    }
    values.par_chunks_mut(columns).for_each(|row| {
        normalise(row);
    });
    Ok((values, report, conditions))
}

/// Bounded biharmonic weights handle by handle.
fn bounded_weights(
    domain: &Domain,
    stiffness: &SparseRows,
    free: &[u32],
    columns: usize,
    settings: &WeightSettings,
    nodes: &mut [f64],
    report: &mut SkinWeightsReport,
    hear: Hear<'_>,
) -> Result<(), WeightsError> {
    let n = domain.points.len();
    let factor = SparseCholesky::new(&stiffness.principal(free))
        .ok_or(WeightsError::Factor { unknowns: free.len(), why: "a part of the mesh is degenerate" })?;
    let system = System { stiffness, free, factor: &factor, tolerance: settings.tolerance };
    let (done, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let solve = |w: &mut [f64]| {
        if stopped.load(Ordering::Relaxed) {
            return Err(WeightsError::Stopped);
        }
        let left = system.solve(w)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        let what = "bounded biharmonic weights";
        if !hear(WeightsProgress { what, unit: "handles", done, total: columns }) {
            stopped.store(true, Ordering::Relaxed);
            return Err(WeightsError::Stopped);
        }
        Ok(left)
    };
    let left: Vec<bounded::Left> = nodes.par_chunks_mut(n).map(solve).collect::<Result<_, _>>()?;
    report.rounds = left.iter().map(|left| left.rounds).max().unwrap_or(0);
    report.settled = left.iter().all(|left| left.settled);
    if !report.settled {
        report.notes.push(
            "some handles are not within the tolerance; their weights still are between 0 and 1".into(),
        );
    }
    Ok(())
}

/// Solves every handle again on the nodes where it is kept.
struct Kept<'a> {
    stiffness: &'a SparseRows,
    /// Of quasi-harmonic weights: what they solve, without bounds.
    operator: Option<&'a SparseRows>,
    free: &'a [u32],
    tolerance: f64,
}

impl Kept<'_> {
    /// Weights `[columns][n]`, zero where a handle is not kept.
    fn solve(&self, nodes: &mut [f64], n: usize, hear: Hear<'_>) -> Result<(), WeightsError> {
        let mut is_free = vec![false; n];
        self.free.iter().for_each(|node| is_free[*node as usize] = true);
        let (done, total) = (AtomicUsize::new(0), nodes.len() / n.max(1));
        let solve = |w: &mut [f64]| -> Result<(), WeightsError> {
            let free: Vec<u32> =
                (0..n as u32).filter(|v| is_free[*v as usize] && w[*v as usize] > 0.0).collect();
            if free.is_empty() {
                return Ok(());
            }
            free.iter().for_each(|node| w[*node as usize] = 0.0);
            let matrix = self.operator.unwrap_or(self.stiffness);
            let factor = SparseCholesky::new(&matrix.principal(&free));
            let factor = factor.ok_or(WeightsError::Factor {
                unknowns: free.len(),
                why: "a part of the mesh is degenerate",
            })?;
            if self.operator.is_some() {
                // Zero where it is not kept: the maximum principle still holds it between 0 and 1.
                let pull = matrix.times(w);
                let mut right: Vec<f64> = free.iter().map(|node| -pull[*node as usize]).collect();
                factor.solve(&mut right);
                free.iter().zip(&right).for_each(|(node, x)| w[*node as usize] = x.clamp(0.0, 1.0));
            } else {
                let system = System {
                    stiffness: self.stiffness,
                    free: &free,
                    factor: &factor,
                    tolerance: self.tolerance,
                };
                system.solve(w)?;
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let progress = WeightsProgress { what: "fewer handles per vertex", unit: "handles", done, total };
            if hear(progress) { Ok(()) } else { Err(WeightsError::Stopped) }
        };
        nodes.par_chunks_mut(n).map(solve).collect()
    }
}

fn make_rows_one_where(
    nodes: &mut [f64],
    n: usize,
    columns: usize,
    reached: &[bool],
    part: &[u32],
    report: &mut SkinWeightsReport,
) {
    let mut row = vec![0.0; columns];
    for node in (0..n).filter(|node| reached[part[*node] as usize]) {
        (0..columns).for_each(|column| row[column] = nodes[column * n + node]);
        report.row_error = report.row_error.max(normalise(&mut row));
        (0..columns).for_each(|column| nodes[column * n + node] = row[column]);
    }
}

/// Vertices on parts without a handle: from the volume where the domain is the surface, else from the nearest vertex
/// that a handle reaches.
fn elsewhere(
    surface: &Surface,
    handles: &[Handle],
    settings: &WeightSettings,
    domain: &Domain,
    reached: &[bool],
    values: &mut [f64],
    report: &mut SkinWeightsReport,
    hear: Hear<'_>,
) -> Result<(), WeightsError> {
    let columns = values.len() / domain.embedding.len().max(1);
    let is_reached = |vertex: usize| {
        let (nodes, _) = domain.embedding[vertex];
        reached[domain.part[nodes[0] as usize] as usize]
    };
    let lost: Vec<usize> = (0..domain.embedding.len()).filter(|v| !is_reached(*v)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let parts = report.parts_without_handle;
    // The same work a second time is another piece of it.
    let in_volume = |progress: WeightsProgress| {
        let what = match progress.what {
            "fewer handles per vertex" => "islands: fewer handles per vertex",
            _ => "islands: weights of the volume",
        };
        hear(WeightsProgress { what, ..progress })
    };
    let alone = WeightSettings { joint: false, ..*settings };
    let from_volume =
        (domain.lattice.is_none()).then(|| in_domain(surface, handles, &alone, true, &in_volume));
    if let Some(result) = from_volume {
        let (volume, inner, _) = result?;
        for &vertex in &lost {
            let place = vertex * columns..(vertex + 1) * columns;
            values[place.clone()].copy_from_slice(&volume[place]);
        }
        report.notes.push(format!(
            "{parts} islands ({} vertices) hold no handle and take the weights of the volume around them",
            lost.len()
        ));
        report.notes.extend(inner.notes);
        return Ok(());
    }
    let known = surface.triangles.iter().filter(|t| t.iter().all(|v| is_reached(*v as usize)));
    let known: Vec<[u32; 3]> = known.copied().collect();
    let tree = TriangleTree::new(&surface.points, &known);
    for &vertex in &lost {
        let Some(from) = nearest_corner(&tree, &known, surface.points[vertex]) else {
            return Err(WeightsError::Unreached { handle: handles[0].name.clone() });
        };
        let from = from as usize;
        values.copy_within(from * columns..(from + 1) * columns, vertex * columns);
    }
    report.notes.push(format!(
        "{parts} parts of the volume ({} vertices) hold no handle and take the weights of their nearest neighbours",
        lost.len()
    ));
    Ok(())
}
