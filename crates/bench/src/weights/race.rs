//! libigl's bounded biharmonic weights on the same tetrahedra, one thread each, alternating in one run.

use crate::console::{Console, print, table};
use crate::environment::{LIBIGL, Script};
use anyhow::{Result, anyhow};
use std::path::Path;
use std::time::Instant;
use understudy_core::Vec3;
use understudy_io::npz::{NpzReader, NpzWriter};
use understudy_jobs::rigs;
use understudy_solve::skin_weights::{Handle, HandleShape, VolumeProblem, WeightKind};

const SCRIPT: &str = include_str!("../python/weights.py");
/// Rounds; in each every contestant runs once.
const ROUNDS: usize = 3;
const BONES: usize = 20;
const QUASI_STEPS: usize = 8;

pub fn run(folder: &Path) -> Result<()> {
    let (name, rig) = match rigs::open("human", &Console) {
        Ok(rig) => ("human", rig.rig),
        Err(_) => ("rook", rigs::open("rook", &Console)?.rig),
    };
    let skeleton = rig.skeleton().ok_or_else(|| anyhow!("{name} has no bones"))?;
    // The longest bones, from joint to first child.
    let place = |bone: usize| Vec3::from(skeleton.rest_global()[bone].translation);
    let mut bones: Vec<(f32, Handle)> = (0..skeleton.len())
        .filter_map(|child| {
            let parent = skeleton.bones()[child].parent?;
            let (head, tail) = (place(parent), place(child));
            let shape = HandleShape::Bone { head: head.as_dvec3(), tail: tail.as_dvec3() };
            let name = format!("{} {}", skeleton.bones()[parent].name, skeleton.bones()[child].name);
            Some((head.distance(tail), Handle::new(name, shape)))
        })
        .collect();
    bones.sort_by(|a, b| b.0.total_cmp(&a.0));
    let handles: Vec<Handle> = bones.into_iter().take(BONES).map(|(_, handle)| handle).collect();
    // About as many nodes as the paper's meshes have.
    let mut problem = VolumeProblem::new(rig.mesh(), &handles, 30)?;
    for cells in 31..=80 {
        if problem.points.len() >= 7000 {
            break;
        }
        problem = VolumeProblem::new(rig.mesh(), &handles, cells)?;
    }
    let n = problem.points.len();
    let mut npz = NpzWriter::new();
    let points: Vec<f32> = problem.points.iter().flat_map(|p| p.as_vec3().to_array()).collect();
    let tetrahedra: Vec<i32> = problem.tetrahedra.iter().flatten().map(|v| *v as i32).collect();
    let nodes: Vec<i32> = problem.nodes.iter().map(|v| *v as i32).collect();
    let rows: Vec<f32> = problem.rows.iter().map(|w| *w as f32).collect();
    npz.f32("points", &[n, 3], &points).i32("tetrahedra", &[problem.tetrahedra.len(), 4], &tetrahedra);
    npz.i32("nodes", &[nodes.len()], &nodes).f32("rows", &[nodes.len(), BONES], &rows);
    let path = folder.join("problem.npz");
    npz.write(&path)?;
    // Both get the points as they were written.
    for (to, from) in problem.points.iter_mut().zip(points.chunks_exact(3)) {
        *to = Vec3::new(from[0], from[1], from[2]).as_dvec3();
    }
    let mut script = Script::start_with(LIBIGL, folder, "weights.py", SCRIPT, &path, &Console)?;
    if script.line()? != "ready" {
        return Err(anyhow!("weights.py did not start"));
    }
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (mut ours, mut quasi, mut theirs) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    let mut weights = Vec::new();
    let mut quasi_weights = Vec::new();
    let timed = |best: &mut f64, kind| -> Result<Vec<f64>> {
        let start = Instant::now();
        let weights = one.install(|| problem.solve(kind, 1e-4, QUASI_STEPS))?;
        *best = best.min(start.elapsed().as_secs_f64());
        Ok(weights)
    };
    for _ in 0..ROUNDS {
        weights = timed(&mut ours, WeightKind::Bbw)?;
        quasi_weights = timed(&mut quasi, WeightKind::Quasi)?;
        let answer = script.ask("solve 100")?;
        theirs = theirs.min(answer["seconds"].as_f64().unwrap_or(f64::INFINITY));
    }
    let archive = NpzReader::read(&folder.join("libigl.npz"))?;
    let want =
        archive.f32("values", &[understudy_io::Dim::Exactly(n), understudy_io::Dim::Exactly(BONES)])?.data;
    let mut worst = 0.0f64;
    let mut rows_off = 0.0f64;
    let mut libigl = vec![0.0; n * BONES];
    for node in 0..n {
        let row = |j: usize| f64::from(want[node * BONES + j]);
        let (sum_ours, sum_theirs): (f64, f64) =
            ((0..BONES).map(|j| weights[j * n + node]).sum(), (0..BONES).map(row).sum());
        rows_off = rows_off.max((sum_theirs - 1.0).abs());
        for j in 0..BONES {
            libigl[j * n + node] = row(j);
            worst = worst.max((weights[j * n + node] / sum_ours - row(j) / sum_theirs).abs());
        }
    }
    let energy = |w: &[f64]| format!("{:.1}", problem.energy(w));
    let line = |name: &str, seconds: f64, energy: String| {
        vec![name.to_owned(), format!("{seconds:.3}"), format!("{:.4}", seconds / theirs), energy]
    };
    print(&format!(
        "{name}: {BONES} bones, {n} nodes, {} tetrahedra, one thread, best of {ROUNDS}",
        problem.tetrahedra.len()
    ));
    let lines = [
        line("libigl 2.6.3 bbw", theirs, energy(&libigl)),
        line("ours, bbw", ours, energy(&weights)),
        line("ours, quasi-harmonic", quasi, energy(&quasi_weights)),
    ];
    print(&table(&["", "seconds", "of libigl's time", "Laplacian energy"], &lines));
    print(&format!(
        "largest difference of a weight after rows are made one: {worst:.2e}; libigl's rows are off by up to {rows_off:.2} before"
    ));
    Ok(())
}
