//! Weights of the human (or Rook) for the same body decimated and for a shell one centimetre outside, where the truth
//! is known.

use crate::console::{Console, print, table};
use anyhow::{Result, anyhow};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;
use understudy_core::{Face, Mesh, MeshParts, SkinWeights, Vec3, normals};
use understudy_jobs::rigs;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Sheet};
use understudy_solve::skin_weights::transfer::{TransferSettings, transfer_weights};

pub fn run(folder: &Path) -> Result<()> {
    let (name, rig) = match rigs::open("human", &Console) {
        Ok(rig) => ("human", rig.rig),
        Err(_) => ("rook", rigs::open("rook", &Console)?.rig),
    };
    let weights = rig.skin_weights().ok_or_else(|| anyhow!("{name} has no weights"))?;
    let mesh = rig.mesh();
    let mut directions = vec![Vec3::ZERO; mesh.vertex_count()];
    normals::vertex_normals_into(mesh.faces(), mesh.positions(), &mut directions);
    let outward: Vec<Vec3> = mesh.positions().iter().zip(&directions).map(|(p, n)| *p + *n).collect();
    let shell = mesh.with_positions(&outward)?;
    let mut rows = Vec::new();
    let mut measure = |what: &str, target: &Mesh, truth: &SkinWeights| -> Result<SkinWeights> {
        let start = Instant::now();
        let got = transfer_weights(mesh, weights, target, &TransferSettings::default(), &|_| true)?;
        let seconds = start.elapsed().as_secs_f64();
        let mut errors: Vec<f64> = (0..target.vertex_count())
            .map(|vertex| {
                let mut row = vec![0.0f64; weights.bone_count()];
                got.weights.row(vertex).for_each(|(bone, w)| row[bone] += f64::from(w));
                truth.row(vertex).for_each(|(bone, w)| row[bone] -= f64::from(w));
                // Half the sum: the share of the weight that went elsewhere.
                row.iter().map(|e| e.abs()).sum::<f64>() / 2.0
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let filled = got.matched.iter().filter(|matched| !**matched).count();
        rows.push(vec![
            what.to_owned(),
            target.vertex_count().to_string(),
            filled.to_string(),
            format!("{:.4}", errors.iter().sum::<f64>() / errors.len() as f64),
            format!("{:.3}", errors[errors.len() * 95 / 100]),
            format!("{seconds:.2}"),
        ]);
        Ok(got.weights)
    };
    let on_shell = measure("a shell 1 cm outside", &shell, weights)?;
    let coarse = coarser(mesh, weights)?;
    measure("decimated", &coarse.0, &coarse.1)?;
    print(&table(&["target", "vertices", "filled in", "mean weight error", "95 %", "seconds"], &rows));
    let arm = rig.skeleton().and_then(|skeleton| {
        let named = |part: &str| skeleton.bones().iter().position(|b| b.name.to_lowercase().contains(part));
        named("upperarm").or_else(|| named("upper_arm")).or_else(|| named("arm"))
    });
    if let Some(bone) = arm {
        let scale = HeatScale::new(0.0, 1.0, "weight of an arm");
        let camera = Camera::framing_points(mesh.positions(), 20.0, 5.0, 1.0);
        let settings = RenderSettings { width: 520, height: 520, ..RenderSettings::default() };
        let of = |weights: &SkinWeights, v: usize| -> f32 {
            weights.row(v).filter(|(b, _)| *b == bone).map(|(_, w)| w).sum()
        };
        let values = |weights: &SkinWeights, n: usize| (0..n).map(|v| of(weights, v)).collect::<Vec<f32>>();
        let body = values(weights, mesh.vertex_count());
        let outer = values(&on_shell, shell.vertex_count());
        let draw = |mesh: &Mesh, values: &[f32]| {
            render(&[Actor::new(mesh.faces(), mesh.positions()).heat(values, &scale)], &camera, &settings)
        };
        let sheet = Sheet::new(2).title(format!("{name}: weights of an arm")).colour_bar(&scale);
        let sheet = sheet.cell(draw(mesh, &body), "source").cell(draw(&shell, &outer), "shell 1 cm outside");
        std::fs::write(folder.join("transfer.png"), sheet.build().to_png())?;
    }
    Ok(())
}

/// The mesh with one vertex per cell of a grid, and that vertex's weights: the truth of a level of detail.
fn coarser(mesh: &Mesh, weights: &SkinWeights) -> Result<(Mesh, SkinWeights)> {
    const CELL_CM: f32 = 1.8;
    let mut cells: HashMap<[i32; 3], Vec<u32>> = HashMap::new();
    for (vertex, p) in (0u32..).zip(mesh.positions()) {
        cells.entry((*p / CELL_CM).floor().as_ivec3().to_array()).or_default().push(vertex);
    }
    let mut cells: Vec<Vec<u32>> = cells.into_values().collect();
    cells.sort_unstable();
    let mut place = vec![0u32; mesh.vertex_count()];
    let mut parts = MeshParts::default();
    let mut rows = Vec::new();
    for (new, members) in (0u32..).zip(&cells) {
        let at = |v: u32| mesh.positions()[v as usize];
        let middle = members.iter().map(|v| at(*v)).sum::<Vec3>() / members.len() as f32;
        let nearest = members
            .iter()
            .copied()
            .min_by(|a, b| at(*a).distance_squared(middle).total_cmp(&at(*b).distance_squared(middle)));
        let kept = nearest.unwrap_or(members[0]);
        parts.positions.push(at(kept));
        rows.push(weights.row(kept as usize).map(|(bone, w)| (bone as u16, w)).collect::<Vec<_>>());
        members.iter().for_each(|v| place[*v as usize] = new);
    }
    for [a, b, c] in mesh.triangles().into_iter().map(|t| t.map(|v| place[v as usize])) {
        if a != b && b != c && c != a {
            parts.faces.push(Face::triangle(a, b, c));
        }
    }
    Ok((parts.build()?, SkinWeights::from_rows(&rows, weights.bone_count())?))
}
