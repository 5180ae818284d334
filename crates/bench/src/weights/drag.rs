//! Dragging nine handles of 10,000 vertices, ten iterations per update, with weights from 0, 1, 10 and 100 examples.

use super::card;
use crate::console::{print, table};
use anyhow::Result;
use std::time::Instant;
use understudy_core::{Quat, SkinWeights, Vec3};
use understudy_runtime::drag::{DragRig, DragSettings};
use understudy_solve::skin_weights::examples::{ExampleSettings, optimise_weights};
use understudy_solve::skin_weights::{Handle, HandleShape, WeightSettings, solve_weights};

const SIDE: usize = 100;
const UPDATES: usize = 400;

pub fn run() -> Result<()> {
    let mesh = card(SIDE, SIDE)?;
    let at = |k: usize| (SIDE - 1) * (2 * k + 1) / 6;
    let handles: Vec<Handle> = (0..9)
        .map(|k| Handle::new(format!("h{k}"), HandleShape::Vertex((at(k / 3) * SIDE + at(k % 3)) as u32)))
        .collect();
    let initial = solve_weights(&mesh, &handles, &WeightSettings::default(), &|_| true)?;
    let places: Vec<Vec3> = initial.places.iter().map(|p| p.as_vec3()).collect();
    let mut contestants = Vec::new();
    for count in [0, 1, 10, 100] {
        let examples: Vec<Vec<Vec3>> = (0..count).map(|k| bent(mesh.positions(), k)).collect();
        let slices: Vec<&[Vec3]> = examples.iter().map(Vec::as_slice).collect();
        let settings = ExampleSettings { rounds: 1, weight_iterations: 5, ..ExampleSettings::default() };
        let values = match count {
            0 => initial.values.clone(),
            _ => optimise_weights(&mesh, &initial, &slices, &settings, &|_| true)?.values,
        };
        let row = |row: &[f64]| {
            let kept = row.iter().enumerate().filter(|(_, w)| **w >= 1e-4);
            let sum: f64 = kept.clone().map(|(_, w)| w).sum();
            kept.map(|(j, w)| (j as u16, (w / sum) as f32)).collect::<Vec<_>>()
        };
        let rows: Vec<_> = values.chunks_exact(9).map(row).collect();
        let skin = SkinWeights::from_rows(&rows, 9)?;
        let influences = rows.iter().map(Vec::len).sum::<usize>() as f64 / rows.len() as f64;
        let rig =
            DragRig::new(&mesh, &skin, &places, &[0, 1, 2, 3, 4, 5, 6, 7, 8], &DragSettings::default())?;
        contestants.push((count, influences, rig.start(), rig, Vec::with_capacity(UPDATES)));
    }
    let mut out = vec![Vec3::ZERO; mesh.vertex_count()];
    for update in 0..UPDATES {
        let mut targets = places.clone();
        targets[4].y += 20.0 * (update as f32 * 0.05).sin();
        targets[8] += Vec3::new(5.0, 10.0, 3.0) * (update as f32 * 0.03).cos();
        for (_, _, drag, rig, times) in &mut contestants {
            let start = Instant::now();
            drag.update(rig, &targets, &mut out)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let rows: Vec<Vec<String>> = contestants
        .iter_mut()
        .map(|(count, influences, _, _, times)| {
            times.sort_by(f64::total_cmp);
            let at = |share: usize| format!("{:.3}", times[times.len() * share / 100]);
            vec![count.to_string(), format!("{influences:.2}"), at(5), at(50)]
        })
        .collect();
    print(&table(&["examples", "handles per vertex", "ms per update (best 5 %)", "median"], &rows));
    Ok(())
}

fn bent(positions: &[Vec3], example: usize) -> Vec<Vec3> {
    let angle = 0.3 + 0.01 * example as f32;
    let axis = Vec3::X * (SIDE as f32 * 0.5);
    let turn = Quat::from_rotation_z(angle);
    positions.iter().map(|p| if p.x > axis.x { axis + turn * (*p - axis) } else { *p }).collect()
}
