//! A differential twin beside onnxruntime on the folded graph, and beside onnxruntime and SuperLU as the paper has it:
//! networks and the decode of differential coordinates, then two triangular solves. In one alternating run.

use crate::RaceArguments;
use crate::body_peers::{Peers, rows};
use crate::times::{OURS, Times};
use anyhow::{Context as _, Result};
use std::time::Instant;
use understudy_core::{Face, Mesh, MeshParts, Random, Vec3};
use understudy_io::npz::NpzWriter;
use understudy_io::write_atomic;
use understudy_jobs::twin::bench::{BenchPoses, original, time};
use understudy_jobs::twin::export::onnx_graph;
use understudy_jobs::{Event, Watch};
use understudy_learn::diff::Coordinates;
use understudy_learn::diff::anchors::choose;
use understudy_learn::diff::graph::{Graph, Reconstruction};
use understudy_learn::diff::timing::{MapOrFactor, map_ms, solve_ms};
use understudy_runtime::Twin;
use understudy_runtime::diff::{DiffParts, DiffTwin};

const SCRIPT: &str = include_str!("../python/diff.py");
const POSES: usize = 48;
const SUPERLU: &str = "onnxruntime + SuperLU";
const ORT: &str = "onnxruntime";

/// What was measured.
pub struct DiffRace {
    /// Milliseconds per pose.
    pub times: Times,
    /// Coefficients and anchors to vertices before skinning, one thread, ms.
    pub reconstruction_ms: f64,
    /// Factoring `L̃ᵀL̃` once, ms.
    pub factor_ms: f64,
    /// Two triangular solves for x, y and z with that factor, one thread, ms: what the map takes the place of, without the
    /// decode of differential coordinates before it.
    pub solve_ms: f64,
    /// Largest distance between our vertices and onnxruntime's, mm.
    pub onnx_error_mm: f64,
    /// Components of the differential coordinates.
    pub components: usize,
}

/// Races.
pub fn race_diff(config: &RaceArguments, twin: &DiffTwin, watch: &dyn Watch) -> Result<DiffRace> {
    let whole = Twin::from(twin.clone());
    let rig = original(&whole, &config.twin);
    let poses = BenchPoses::draw(&whole, rig.as_deref(), POSES)?;
    let parts = twin.parts();
    let report =
        parts.header.training.details.get("report").context("the twin's file says nothing of learning")?;
    let components = report["components"].as_u64().context("components are missing")? as usize;
    let mesh = mesh_of(&parts)?;
    write_atomic(&config.peers.join("diff.onnx"), &onnx_graph(&whole))?;
    write_atomic(&config.peers.join("delta.onnx"), &differential_alone(&parts, components)?)?;
    hand_over(config, &parts, &poses, &mesh)?;
    let mut peers = Peers::launch(&config.peers, "diff.py", SCRIPT, watch)?;
    let mut players = [whole.player(1), whole.player(2)];
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    let mut times = Times::default();
    watch.event(Event::Started { what: "racing", total: config.rounds as u64, unit: "rounds" });
    for round in 0..config.rounds {
        for player in &mut players {
            let threads = player.threads();
            let key = format!("one pose, {threads} thread(s)");
            let mut run = |index: usize| poses.play(player, index, &mut out);
            time(20, &mut run);
            times.add(&key, OURS, time(20, &mut run));
            times.add(&key, ORT, peers.time(ORT, threads, 1)?);
            if threads == 1 {
                times.add(&key, SUPERLU, peers.time("superlu", threads, 1)?);
            }
        }
        watch.event(Event::Step { done: round as u64 + 1 });
    }
    watch.event(Event::Finished);
    poses.play(&mut players[0], 0, &mut out);
    let [factor_ms, solve_ms] = factor_and_solve_ms(&mesh, config.rounds)?;
    Ok(DiffRace {
        times,
        reconstruction_ms: map_ms(&parts, twin.precision(), config.rounds)?,
        factor_ms,
        solve_ms,
        onnx_error_mm: peers.error_mm(&out)?,
        components,
    })
}

impl DiffRace {
    /// For people.
    pub fn text(&self) -> String {
        let key = "one pose, 1 thread(s)";
        let ratio = self.times.median(key, SUPERLU).zip(self.times.median(key, OURS));
        let slower = ratio.map_or_else(String::new, |(theirs, ours)| {
            format!("{SUPERLU} on one thread: {theirs:.3} ms, times {:.1}\n", theirs / ours)
        });
        format!(
            "{slower}coefficients and anchors to vertices before skinning: folded map {:.3} ms, our own factor {:.3} ms \
             without the decode before it ({} is faster); factoring {:.1} ms; {} components before folding; onnxruntime's \
             vertices differ by {:.5} mm",
            self.reconstruction_ms,
            self.solve_ms,
            MapOrFactor { map_ms: self.reconstruction_ms, factor_ms: self.solve_ms }.faster(),
            self.factor_ms,
            self.components,
            self.onnx_error_mm
        )
    }
}

fn mesh_of(parts: &DiffParts) -> Result<Mesh> {
    let faces: Vec<Face> = parts.faces.clone();
    Ok(MeshParts { positions: parts.places.clone(), faces, ..MeshParts::default() }.build()?)
}

/// Milliseconds of the factorisation with two per cent of anchors, the best of some, and of a solve with it.
fn factor_and_solve_ms(mesh: &Mesh, rounds: usize) -> Result<[f64; 2]> {
    let graph = Graph::new(mesh, Coordinates::Uniform);
    let energy = vec![1.0; mesh.vertex_count()];
    let anchors: Vec<(u32, f64)> = choose(&graph, mesh.positions(), &energy, mesh.vertex_count() / 50)
        .into_iter()
        .map(|vertex| (vertex, 1.0))
        .collect();
    let mut best = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        Reconstruction::new(&graph, &anchors).context("an island has no anchor")?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    let system = Reconstruction::new(&graph, &anchors).context("an island has no anchor")?;
    Ok([best, solve_ms(&system, rounds)])
}

/// The differential network and the decode of differential coordinates before folding, as a graph: features in, `[V,3]`
/// out. The numbers of the last layers are random: sizes are what takes time. Features and anchors come for free.
fn differential_alone(parts: &DiffParts, components: usize) -> Result<Vec<u8>> {
    let mut random = Random::new(5);
    let mut graph = understudy_io::onnx::Graph::default();
    let mut value = graph.input("features", &[1, parts.features.inputs.len()]);
    let mut columns = parts.features.inputs.len();
    let (_, hidden) = parts.differential.split_last().context("a network has a layer")?;
    let widths: Vec<usize> = hidden.iter().map(|layer| layer.bias.len()).collect();
    for (index, rows) in widths.iter().copied().chain([components, 3 * parts.places.len()]).enumerate() {
        let numbers: Vec<f32> = (0..columns * rows).map(|_| random.uniform(-0.01, 0.01)).collect();
        let weights = graph.floats(&[columns, rows], &numbers);
        value = graph.node("MatMul", &[&value, &weights], &[]);
        if index < widths.len() {
            value = graph.node("Relu", &[&value], &[]);
        }
        columns = rows;
    }
    let shape = graph.integers(&[2], &[parts.places.len() as i64, 3]);
    let delta = graph.node("Reshape", &[&value, &shape], &[]);
    graph.output("delta", &delta, &[parts.places.len(), 3]);
    Ok(graph.to_bytes("delta"))
}

/// Poses, edges and anchors as arrays that Python reads.
fn hand_over(config: &RaceArguments, parts: &DiffParts, poses: &BenchPoses, mesh: &Mesh) -> Result<()> {
    let joints = parts.header.inputs.bones.len();
    let mut writer = NpzWriter::new();
    if joints > 0 {
        let numbers: Vec<f32> = poses.bones.iter().flat_map(rows).collect();
        writer.f32("bones", &[POSES, joints, 3, 4], &numbers);
    }
    writer.f32("controls", &[POSES, poses.controls.len() / POSES], &poses.controls);
    let count = parts.features.inputs.len();
    let mut random = Random::new(6);
    let features: Vec<f32> = (0..POSES * count).map(|_| random.uniform(-1.0, 1.0)).collect();
    writer.f32("features", &[POSES, 1, count], &features);
    let edges: Vec<i32> = mesh.adjacency().edges().flat_map(|(a, b)| [a as i32, b as i32]).collect();
    writer.i32("edges", &[edges.len() / 2, 2], &edges);
    let anchors: Vec<i32> = parts.anchors.iter().map(|anchor| anchor.vertex as i32).collect();
    writer.i32("anchors", &[anchors.len()], &anchors);
    writer.i32("vertices", &[], &[parts.places.len() as i32]);
    Ok(writer.write(&config.peers.join("diff.npz"))?)
}
