//! As-rigid-as-possible deformation of the full mesh beside libigl's, with the same constraints and the same kind of energy
//! (spokes), alternating in one run.

use super::card;
use crate::console::{Console, print, table};
use crate::environment::{LIBIGL, Script};
use anyhow::{Result, anyhow};
use std::path::Path;
use std::time::Instant;
use understudy_core::{Quat, Vec3};
use understudy_io::Dim;
use understudy_io::npz::{NpzReader, NpzWriter};
use understudy_solve::arap::Arap;

const SCRIPT: &str = include_str!("../python/arap.py");
const SIDE: usize = 100;
const ITERATIONS: usize = 100;
/// Rounds; in each every contestant runs once.
const ROUNDS: usize = 3;

pub fn run(folder: &Path) -> Result<()> {
    // A card whose two ends are held, one of them lifted and turned.
    let mesh = card(SIDE, SIDE)?;
    let held: Vec<u32> =
        (0..SIDE as u32).flat_map(|row| [row * SIDE as u32, row * SIDE as u32 + SIDE as u32 - 1]).collect();
    let turn = Quat::from_rotation_z(0.9) * Quat::from_rotation_x(0.4);
    let end = Vec3::new(SIDE as f32 - 1.0, 0.0, SIDE as f32 / 2.0);
    let target = |v: &u32| {
        let p = mesh.positions()[*v as usize];
        if p.x < 0.5 { p } else { Vec3::new(70.0, 40.0, 50.0) + turn * (p - end) }
    };
    let targets: Vec<Vec3> = held.iter().map(target).collect();
    let flat = |points: &[Vec3]| points.iter().flat_map(|p| p.to_array()).collect::<Vec<f32>>();
    let faces: Vec<i32> = mesh.triangles().into_iter().flatten().map(|v| v as i32).collect();
    let named: Vec<i32> = held.iter().map(|v| *v as i32).collect();
    let mut npz = NpzWriter::new();
    npz.f32("points", &[mesh.vertex_count(), 3], &flat(mesh.positions()));
    npz.i32("faces", &[faces.len() / 3, 3], &faces).i32("held", &[named.len()], &named);
    npz.f32("targets", &[targets.len(), 3], &flat(&targets));
    let path = folder.join("arap-problem.npz");
    npz.write(&path)?;
    let mut script = Script::start_with(LIBIGL, folder, "arap.py", SCRIPT, &path, &Console)?;
    if script.line()? != "ready" {
        return Err(anyhow!("arap.py did not start"));
    }
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (mut ours, mut theirs) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
    let mut energy = 0.0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut arap = one.install(|| Arap::new(&mesh, &held))?;
        ours[1] = ours[1].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        one.install(|| arap.deform(&targets, ITERATIONS))?;
        ours[0] = ours[0].min(start.elapsed().as_secs_f64());
        energy = arap.energy(&arap.positions());
        let answer = script.ask(&format!("solve {ITERATIONS}"))?;
        for (best, key) in theirs.iter_mut().zip(["seconds", "prepared"]) {
            *best = best.min(answer[key].as_f64().unwrap_or(f64::INFINITY));
        }
    }
    let archive = NpzReader::read(&folder.join("libigl-arap.npz"))?;
    let want = [Dim::Exactly(mesh.vertex_count()), Dim::Exactly(3)];
    let vertices = archive.f32("vertices", &want)?.data;
    let vertices: Vec<Vec3> = vertices.chunks_exact(3).map(|p| Vec3::new(p[0], p[1], p[2])).collect();
    let judge = Arap::new(&mesh, &held)?;
    let other = judge.energy(&vertices);
    let line = |name: &str, [iterations, prepared]: [f64; 2], energy: f64| {
        let each = 1e3 * iterations / ITERATIONS as f64;
        vec![name.to_owned(), format!("{each:.3}"), format!("{:.1}", 1e3 * prepared), format!("{energy:.4}")]
    };
    print(&format!(
        "{} vertices, {} held, {ITERATIONS} iterations from rest, one thread, best of {ROUNDS}",
        SIDE * SIDE,
        held.len()
    ));
    let lines = [line("libigl 2.6.3, spokes", theirs, other), line("ours", ours, energy)];
    print(&table(&["", "ms per iteration", "ms to prepare", "energy"], &lines));
    print(&format!(
        "ours takes {:.2} of libigl's time per iteration; energies differ by {:.3} %",
        ours[0] / theirs[0],
        100.0 * (energy - other).abs() / other
    ));
    Ok(())
}
