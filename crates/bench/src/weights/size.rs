//! Full sizes: 10,000 vertices, 20 handles and 10 examples at the settings of the command, and 50,000 vertices with fewer
//! rounds and examples. Memory is the process's: run this section by itself.

use super::card;
use crate::console::print;
use anyhow::Result;
use std::time::Instant;
use understudy_core::{Mesh, Quat, Vec3};
use understudy_solve::skin_weights::examples::{ExampleSettings, ExampleStop, optimise_weights};
use understudy_solve::skin_weights::{Handle, HandleShape, WeightSettings, solve_weights};

pub fn run() -> Result<()> {
    for (side, columns, examples, rounds) in [(100, 20, 10, None), (224, 20, 2, Some(2))] {
        let mesh = card(side, side)?;
        let handles = grid(side, columns);
        let start = Instant::now();
        let initial = solve_weights(&mesh, &handles, &WeightSettings::default(), &|_| true)?;
        let solved = start.elapsed().as_secs_f64();
        let all: Vec<Vec<Vec3>> = (0..examples).map(|k| bent(&mesh, side, k)).collect();
        let slices: Vec<&[Vec3]> = all.iter().map(Vec::as_slice).collect();
        let usual = ExampleSettings::default();
        let settings = ExampleSettings { rounds: rounds.unwrap_or(usual.rounds), ..usual };
        let start = Instant::now();
        let best = optimise_weights(&mesh, &initial, &slices, &settings, &|_| true)?;
        let seconds = start.elapsed().as_secs_f64();
        print(&format!(
            "{} vertices, {columns} handles, {examples} examples, {} threads: bbw {solved:.1} s; {} of at most \
             {} rounds in {seconds:.1} s, stopped by {}; RMSE {:.3} of {side}, peak memory {}",
            mesh.vertex_count(),
            rayon::current_num_threads(),
            best.rounds,
            settings.rounds,
            match best.stop {
                ExampleStop::Converged => "convergence",
                ExampleStop::Rounds => "the limit of rounds",
            },
            best.rmse,
            peak_memory().map_or("unknown".into(), |mb| format!("{mb:.0} MB"))
        ));
    }
    Ok(())
}

fn grid(side: usize, count: usize) -> Vec<Handle> {
    let (nx, ny) = (5, count / 5);
    let at = |k: usize, n: usize| (side - 1) * (2 * k + 1) / (2 * n);
    (0..count)
        .map(|k| {
            Handle::new(format!("h{k}"), HandleShape::Vertex((at(k / nx, ny) * side + at(k % nx, nx)) as u32))
        })
        .collect()
}

/// The card bent by two folds at angles of the example.
fn bent(mesh: &Mesh, side: usize, example: usize) -> Vec<Vec3> {
    let angle = 0.15 + 0.11 * example as f32;
    let folds = [(0.35, angle), (0.7, -0.8 * angle)];
    let move_point = |p: &Vec3| {
        let mut p = *p;
        for (place, angle) in folds.iter().rev() {
            let axis = Vec3::X * (place * side as f32);
            if p.x > axis.x {
                p = axis + Quat::from_rotation_z(*angle) * (p - axis);
            }
        }
        p
    };
    mesh.positions().iter().map(move_point).collect()
}

/// The most memory that this process has held, MB.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}
