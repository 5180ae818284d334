//! Map or factor: how long each takes on this machine, on one thread, from what the networks say to displaced vertices. The
//! map is what a twin stores; the factor is what the paper solves with in every pose.

use super::graph::Reconstruction;
use super::{DiffLearnError, Plan};
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use std::time::Instant;
use understudy_core::{ControlSpec, ControlSpecs, Vec3};
use understudy_runtime::diff::{AnchorParts, DiffParts, DiffTwin, FeatureParts, LayerNumbers};
use understudy_runtime::{Header, Inputs, Pose, Precision, Twin};

/// Repetitions of a measurement; the median of several counts.
const REPETITIONS: usize = 20;
/// Measurements of a comparison that is made in passing.
const ROUNDS: usize = 5;

/// Milliseconds per pose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MapOrFactor {
    /// The folded map: coefficients and anchors to vertices before skinning.
    pub map_ms: f64,
    /// Two triangular solves for x, y and z. Differential coordinates, which the map never makes, come on top.
    pub factor_ms: f64,
}

impl MapOrFactor {
    /// Which of both measured faster.
    pub fn faster(self) -> &'static str {
        if self.map_ms <= self.factor_ms { "the map" } else { "the factor" }
    }
}

/// Both, of a finished twin. `None` without anchors: then nothing is solved.
pub fn map_or_factor(
    plan: &Plan,
    parts: &DiffParts,
    precision: Precision,
) -> Result<Option<MapOrFactor>, DiffLearnError> {
    let anchors: Vec<(u32, f64)> = plan.anchors.iter().map(|vertex| (*vertex, 1.0)).collect();
    if anchors.is_empty() {
        return Ok(None);
    }
    let Some(system) = Reconstruction::new(&plan.graph, &anchors) else { return Ok(None) };
    let (map_ms, factor_ms) = (map_ms(parts, precision, ROUNDS)?, solve_ms(&system, ROUNDS));
    Ok(Some(MapOrFactor { map_ms, factor_ms }))
}

/// The same twin without hidden layers and without a skin: what is left is the map.
pub fn map_ms(parts: &DiffParts, precision: Precision, rounds: usize) -> Result<f64, DiffLearnError> {
    let rank = parts.differential.last().map_or(0, |layer| layer.bias.len());
    let layer = |rows: usize| LayerNumbers { weights: vec![0.5; rows], bias: vec![0.1; rows] };
    let anchor = |anchor: &AnchorParts| AnchorParts {
        vertex: anchor.vertex,
        features: vec![0],
        layers: vec![layer(3)],
    };
    let alone = DiffParts {
        header: one_control(&parts.header),
        skin: None,
        features: FeatureParts { inputs: vec![0], mean: vec![0.0], scale: vec![1.0] },
        differential: vec![layer(rank)],
        anchors: parts.anchors.iter().map(anchor).collect(),
        linear: Vec::new(),
        ..parts.clone()
    };
    let mut player = Twin::from(DiffTwin::new(alone, precision)?).player(1);
    let mut out = vec![Vec3::ZERO; parts.places.len()];
    let mut run = |index: usize| player.pose(Pose::Controls(&[0.01 * index as f32]), &mut out);
    run(0)?;
    Ok(median_ms(rounds, |index| run(index).expect("one control is one control")))
}

/// A header of one control and no bones.
fn one_control(header: &Header) -> Header {
    let spec = ControlSpec::number("control", -1.0, 1.0, 0.0);
    let controls = ControlSpecs::new(vec![spec]).expect("one control with a range is valid");
    Header { inputs: Inputs { bones: Vec::new(), controls }, ..header.clone() }
}

/// Two triangular solves for x, y and z, on one thread.
pub fn solve_ms(system: &Reconstruction<'_>, rounds: usize) -> f64 {
    let column =
        |axis: usize| (0..system.vertex_count()).map(|v| ((v * 7 + axis) % 11) as f64 - 5.0).collect();
    let right: Vec<Vec<f64>> = (0..3).map(column).collect();
    let measure = || {
        let mut columns = right.clone();
        median_ms(rounds, |_| {
            columns.iter_mut().zip(&right).for_each(|(column, right)| column.copy_from_slice(right));
            system.solve(&mut columns);
        })
    };
    match ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(measure),
        // Without a pool of one thread the solve is faster than it is on one: it is not put at a disadvantage.
        Err(_) => measure(),
    }
}

/// The median of some measurements after a warm-up, ms per repetition.
fn median_ms(rounds: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut time = || {
        let start = Instant::now();
        (0..REPETITIONS).for_each(&mut work);
        start.elapsed().as_secs_f64() * 1e3 / REPETITIONS as f64
    };
    time();
    let mut times: Vec<f64> = (0..rounds.max(1)).map(|_| time()).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
