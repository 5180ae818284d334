//! The paper's card (2,500 vertices, folded once): how sharp weights become, how flat halves stay when it is folded to
//! other angles, and what each term is worth.

use super::card;
use crate::console::{print, table};
use anyhow::Result;
use std::path::Path;
use understudy_core::{Affine3A, Mesh, Quat, SkinWeights, Vec3};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Sheet};
use understudy_solve::skin_weights::examples::{ExampleSettings, Sparsity, optimise_weights};
use understudy_solve::skin_weights::{Handle, HandleShape, SolvedWeights, WeightSettings, solve_weights};

const SIDE: usize = 50;
const ANGLES: [f32; 3] = [30.0, 60.0, 120.0];

fn fold(p: Vec3, degrees: f32) -> Vec3 {
    let middle = (SIDE - 1) as f32 / 2.0;
    let (sine, cosine) = degrees.to_radians().sin_cos();
    let beyond = p.x - middle;
    if beyond <= 0.0 { p } else { Vec3::new(middle + beyond * cosine, beyond * sine, p.z) }
}

/// The rigid motion of the half that folds.
fn hinge(degrees: f32) -> Affine3A {
    let middle = Vec3::X * ((SIDE - 1) as f32 / 2.0);
    Affine3A::from_translation(middle)
        * Affine3A::from_quat(Quat::from_rotation_z(degrees.to_radians()))
        * Affine3A::from_translation(-middle)
}

pub fn run(folder: &Path) -> Result<()> {
    let mesh = card(SIDE, SIDE)?;
    let example: Vec<Vec3> = mesh.positions().iter().map(|p| fold(*p, 70.0)).collect();
    // Handles that hold the ends of the card, and the paper's: two points in the middle of its sides.
    let columns = |x: usize| {
        let row = |y: usize| (0..3).map(move |step| (y * SIDE + x + step) as u32);
        HandleShape::Region((0..SIDE).flat_map(row).collect())
    };
    let handles = [Handle::new("left", columns(0)), Handle::new("right", columns(SIDE - 3))];
    let initial = solve_weights(&mesh, &handles, &WeightSettings::default(), &|_| true)?;
    let plain = ExampleSettings::default();
    let optimise =
        |initial: &SolvedWeights, example: &[Vec3], settings: &ExampleSettings| -> Result<Vec<f64>> {
            Ok(optimise_weights(&mesh, initial, &[example], settings, &|_| true)?.values)
        };
    let full = optimise(&initial, &example, &plain)?;
    let no_sparsity = optimise(&initial, &example, &ExampleSettings { sparsity: 0.0, ..plain })?;
    let middle = (SIDE / 2 * SIDE) as u32;
    let points = [
        Handle::new("left", HandleShape::Vertex(middle)),
        Handle::new("right", HandleShape::Vertex(middle + SIDE as u32 - 1)),
    ];
    let from_points = solve_weights(&mesh, &points, &WeightSettings::default(), &|_| true)?;
    let cases: Vec<(&str, Vec<f64>)> = vec![
        ("bbw alone", initial.values.clone()),
        ("all terms", full),
        ("without l1", no_sparsity),
        ("l2 for l1", optimise(&initial, &example, &ExampleSettings { norm: Sparsity::L2, ..plain })?),
        ("without rigidity", optimise(&initial, &example, &ExampleSettings { rigidity: 0.0, ..plain })?),
        ("without mixing", optimise(&initial, &example, &ExampleSettings { mixing: 0.0, ..plain })?),
        ("without data", optimise(&initial, &example, &ExampleSettings { data: 0.0, ..plain })?),
        ("two points: bbw", from_points.values.clone()),
        ("two points: all terms", optimise(&from_points, &example, &plain)?),
    ];
    let mut rows = Vec::new();
    for (name, values) in &cases {
        let count = |limit: f64| values.iter().filter(|w| **w < limit).count().to_string();
        let mut row = vec![(*name).to_owned(), format!("{:.1} %", 100.0 * crisp(values))];
        row.extend([transition(values).to_string(), count(0.1), count(0.05)]);
        for angle in ANGLES {
            let posed = reconstruct(&mesh, values, angle)?;
            row.push(format!("{:.2} %", 100.0 * bumpiness(&posed)));
        }
        rows.push(row);
    }
    let head = ["weights", "> .95 or < .05", "columns between", "< 0.1", "< 0.05", "bump 30°", "60°", "120°"];
    print(&table(&head, &rows));
    print(
        "bump: the farthest that a vertex of a half lies off the plane of that half, as a share of the half's width",
    );
    let scale = HeatScale::new(0.0, 1.0, "weight of 'right'");
    let settings = RenderSettings { width: 420, height: 420, ..RenderSettings::default() };
    let shown = &cases[..2];
    let mut sheet = Sheet::new(4).title("A card folded once").colour_bar(&scale);
    for (name, values) in shown {
        let heat: Vec<f32> = values.chunks_exact(2).map(|row| row[1] as f32).collect();
        for angle in [0.0, 30.0, 60.0, 120.0] {
            let posed = reconstruct(&mesh, values, angle)?;
            let camera = Camera::framing_points(&posed, 25.0, 35.0, 1.0);
            let actor = Actor::new(mesh.faces(), &posed).heat(&heat, &scale);
            sheet = sheet.cell(render(&[actor], &camera, &settings), format!("{name}, {angle:.0}°"));
        }
    }
    std::fs::write(folder.join("card.png"), sheet.build().to_png())?;
    Ok(())
}

/// Share of vertices whose weights are near 0 or 1.
fn crisp(values: &[f64]) -> f64 {
    values.iter().filter(|w| **w > 0.95 || **w < 0.05).count() as f64 / values.len() as f64
}

/// The most vertices of a row of the card that are neither left nor right.
fn transition(values: &[f64]) -> usize {
    let between =
        |row: usize| (0..SIDE).filter(|x| (0.05..=0.95).contains(&values[2 * (row * SIDE + x)])).count();
    (0..SIDE).map(between).max().unwrap_or(0)
}

/// The card with its right handle turned about the fold.
fn reconstruct(mesh: &Mesh, values: &[f64], degrees: f32) -> Result<Vec<Vec3>> {
    let rows: Vec<_> =
        values.chunks_exact(2).map(|row| vec![(0u16, row[0] as f32), (1, row[1] as f32)]).collect();
    let skin = SkinWeights::from_rows(&rows, 2)?;
    let mut out = vec![Vec3::ZERO; mesh.vertex_count()];
    skin.linear_blend(&[Affine3A::IDENTITY, hinge(degrees)], mesh.positions(), &mut out);
    Ok(out)
}

/// How far vertices lie off the plane that fits their half best.
fn bumpiness(posed: &[Vec3]) -> f32 {
    let middle = SIDE / 2;
    let half = |range: std::ops::Range<usize>| {
        let points: Vec<Vec3> =
            (0..posed.len()).filter(|v| range.contains(&(v % SIDE))).map(|v| posed[v]).collect();
        // A half is flat in z already: fit a line in x and y.
        let n = points.len() as f32;
        let centre = points.iter().sum::<Vec3>() / n;
        let (mut xx, mut xy, mut yy) = (0.0f32, 0.0, 0.0);
        for p in &points {
            let d = *p - centre;
            xx += d.x * d.x;
            xy += d.x * d.y;
            yy += d.y * d.y;
        }
        let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
        let normal = Vec3::new(-angle.sin(), angle.cos(), 0.0);
        points.iter().fold(0.0f32, |most, p| most.max((*p - centre).dot(normal).abs()))
    };
    half(0..middle).max(half(middle..SIDE)) / (SIDE / 2) as f32
}
