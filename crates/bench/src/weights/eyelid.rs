//! Mira's left upper lid: how much of the weight of a handle on it stays inside the lids, and the error on poses that
//! were not learned from, with each term of the energy and without.

use crate::console::{Console, print, table};
use anyhow::{Result, anyhow};
use std::path::Path;
use understudy_core::metrics::squared_distance;
use understudy_core::{Mesh, MeshParts, Segments, Vec3};
use understudy_jobs::rigs;
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Sheet};
use understudy_rigs::RigPose;
use understudy_runtime::drag::{DragRig, DragSettings};
use understudy_solve::skin_weights::examples::{ExampleSettings, Sparsity, optimise_weights};
use understudy_solve::skin_weights::{Handle, HandleShape, WeightSettings, solve_weights};

/// How much of the face around the eye belongs to the patch, cm.
const REACH: f32 = 4.5;
/// Blinks that are learned from, and one that is not.
const LEARNED: [f32; 3] = [0.3, 0.6, 1.0];
const HELD_OUT: [f32; 2] = [0.45, 0.8];

pub fn run(folder: &Path) -> Result<()> {
    let rig = rigs::open("mira", &Console)?.rig;
    let pose = |amount: f32| -> Result<Vec<Vec3>> {
        let mut controls = rig.specs().defaults();
        let place = rig.specs().iter().position(|spec| spec.name == "eyeBlink_L");
        controls.0[place.ok_or_else(|| anyhow!("Mira has no eyeBlink_L"))?] = amount;
        let mut out = RigPose::default();
        rig.evaluate(&controls, &mut out)?;
        Ok(out.vertices)
    };
    let rest = pose(0.0)?;
    let blink = pose(1.0)?;
    let patch = Patch::around_left_lid(rig.mesh(), &rest, &blink)?;
    let moved = |v: usize| patch.take(&blink)[v].distance(patch.mesh.positions()[v]);
    let n = patch.mesh.vertex_count();
    let lid = (0..n).filter(|v| patch.in_lid[*v]).max_by(|a, b| moved(*a).total_cmp(&moved(*b)));
    let lid = lid.ok_or_else(|| anyhow!("no vertex of the lid moves"))?;
    // Handles on the lid and on the still skin around it.
    let centre = patch.mesh.positions()[lid];
    let mut handles = vec![Handle::new("lid", HandleShape::Vertex(lid as u32))];
    for (index, angle) in (0..6).map(|k| k as f32 * 60.0_f32).enumerate() {
        let (sine, cosine) = angle.to_radians().sin_cos();
        let wanted = centre + Vec3::new(cosine, sine, 0.0) * (0.75 * REACH);
        let distance = |v: &usize| patch.mesh.positions()[*v].distance(wanted);
        let skin = (0..n).filter(|v| !patch.in_lid[*v] && moved(*v) < 0.02);
        let vertex = skin.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let vertex = vertex.ok_or_else(|| anyhow!("no still skin around the lid"))?;
        if handles.iter().all(|handle| handle.shape != HandleShape::Vertex(vertex as u32)) {
            handles.push(Handle::new(format!("skin {index}"), HandleShape::Vertex(vertex as u32)));
        }
    }
    let initial = solve_weights(&patch.mesh, &handles, &WeightSettings::default(), &|_| true)?;
    let examples: Vec<Vec<Vec3>> =
        LEARNED.iter().map(|a| Ok(patch.take(&pose(*a)?))).collect::<Result<_>>()?;
    let held: Vec<Vec<Vec3>> = HELD_OUT.iter().map(|a| Ok(patch.take(&pose(*a)?))).collect::<Result<_>>()?;
    let all: Vec<&[Vec3]> = examples.iter().map(Vec::as_slice).collect();
    let plain = ExampleSettings::default();
    let mut rows = Vec::new();
    let scale = HeatScale::new(0.0, 1.0, "weight of the lid");
    let camera = Camera::framing_points(patch.mesh.positions(), 0.0, 3.0, 1.0);
    let settings = RenderSettings { width: 360, height: 360, ..RenderSettings::default() };
    let mut sheet = Sheet::new(6).title("A handle on Mira's left upper lid").colour_bar(&scale);
    let cases = [
        ("bbw alone", None),
        ("all terms", Some(plain)),
        ("without data", Some(ExampleSettings { data: 0.0, ..plain })),
        ("without l1", Some(ExampleSettings { sparsity: 0.0, ..plain })),
        ("l2 for l1", Some(ExampleSettings { norm: Sparsity::L2, ..plain })),
        ("without rigidity", Some(ExampleSettings { rigidity: 0.0, ..plain })),
        ("without mixing", Some(ExampleSettings { mixing: 0.0, ..plain })),
        ("sparsified afterwards", None),
    ];
    // Table 1: optimised without anything that keeps handles from reaching far; then that alone, on what came out.
    let dense = ExampleSettings { sparsity: 0.0, mixing: 0.0, ..plain };
    let before = optimise_weights(&patch.mesh, &initial, &all, &dense, &|_| true)?;
    let afterwards = {
        let h = handles.len();
        let rows: Vec<_> = before
            .values
            .chunks_exact(h)
            .map(|row| row.iter().enumerate().map(|(j, w)| (j as u16, *w as f32)).collect::<Vec<_>>())
            .collect();
        let skin = understudy_core::SkinWeights::from_rows(&rows, h)?;
        let carried: Vec<Vec<Vec3>> = before
            .transforms
            .iter()
            .map(|transforms| {
                let mut out = vec![Vec3::ZERO; n];
                skin.linear_blend(transforms, patch.mesh.positions(), &mut out);
                out
            })
            .collect();
        let slices: Vec<&[Vec3]> = carried.iter().map(Vec::as_slice).collect();
        let start = understudy_solve::skin_weights::SolvedWeights {
            values: before.values.clone(),
            ..initial.clone()
        };
        let once = ExampleSettings { rounds: 1, mixing: 0.0, ..plain };
        optimise_weights(&patch.mesh, &start, &slices, &once, &|_| true)?.values
    };
    for (name, settings_of) in cases {
        let values = match settings_of {
            None if name == "sparsified afterwards" => afterwards.clone(),
            None => initial.values.clone(),
            Some(settings) => optimise_weights(&patch.mesh, &initial, &all, &settings, &|_| true)?.values,
        };
        let h = handles.len();
        let of_lid: Vec<f32> = values.chunks_exact(h).map(|row| row[0] as f32).collect();
        let total: f32 = of_lid.iter().sum();
        let inside: f32 = (0..n).filter(|v| patch.in_lid[*v]).map(|v| of_lid[v]).sum();
        // Unseen blinks by dragging the handles to where they are in them.
        let sparse: Vec<_> = values
            .chunks_exact(h)
            .map(|row| row.iter().enumerate().map(|(j, w)| (j as u16, *w as f32)).collect::<Vec<_>>())
            .collect();
        let skin = understudy_core::SkinWeights::from_rows(&sparse, h)?;
        let places: Vec<Vec3> = initial.places.iter().map(|p| p.as_vec3()).collect();
        let dragged: Vec<usize> = (0..h).collect();
        let drag_settings = DragSettings { iterations: 30, ..DragSettings::default() };
        let drag_rig = DragRig::new(&patch.mesh, &skin, &places, &dragged, &drag_settings)?;
        let mut squared = 0.0;
        for truth in &held {
            let targets: Vec<Vec3> = handles
                .iter()
                .map(|handle| match handle.shape {
                    HandleShape::Vertex(v) => truth[v as usize],
                    _ => Vec3::ZERO,
                })
                .collect();
            let mut out = vec![Vec3::ZERO; n];
            drag_rig.start().update(&drag_rig, &targets, &mut out)?;
            squared += squared_distance(&out, truth);
        }
        let rmse = (squared / (held.len() * n) as f64).sqrt();
        rows.push(vec![
            name.to_owned(),
            format!("{:.1} %", 100.0 * inside / total.max(1e-9)),
            of_lid.iter().filter(|w| **w < 0.1).count().to_string(),
            of_lid.iter().filter(|w| **w < 0.05).count().to_string(),
            format!("{:.4}", rmse * 10.0),
        ]);
        let actor = Actor::new(patch.mesh.faces(), patch.mesh.positions()).heat(&of_lid, &scale);
        sheet = sheet.cell(render(&[actor], &camera, &settings), name);
    }
    print(&table(&["weights", "inside the lids", "< 0.1", "< 0.05", "RMSE of unseen blinks, mm"], &rows));
    print("< 0.1 and < 0.05: vertices of the patch by their weight for the lid's handle (Table 1)");
    std::fs::write(folder.join("eyelid.png"), sheet.build().to_png())?;
    Ok(())
}

/// A piece of the face around an eye.
struct Patch {
    mesh: Mesh,
    vertices: Vec<usize>,
    in_lid: Vec<bool>,
}

impl Patch {
    fn around_left_lid(whole: &Mesh, rest: &[Vec3], blink: &[Vec3]) -> Result<Self> {
        let names = &whole.segments().names;
        let lids = names.iter().position(|name| name == "eyelids");
        let lids = lids.ok_or_else(|| anyhow!("Mira has no segment 'eyelids': {}", names.join(", ")))?;
        let of = |v: usize| whole.segments().of_vertex[v] as usize;
        let skin = names.iter().position(|name| name == "skin");
        let moving = (0..rest.len()).filter(|v| of(*v) == lids && rest[*v].x > 0.0);
        let centre =
            moving.max_by(|a, b| rest[*a].distance(blink[*a]).total_cmp(&rest[*b].distance(blink[*b])));
        let centre = rest[centre.ok_or_else(|| anyhow!("the lids do not move"))?];
        let chosen = |v: usize| {
            (of(v) == lids || Some(of(v)) == skin) && rest[v].distance(centre) < REACH && rest[v].x > 0.0
        };
        let vertices: Vec<usize> = (0..rest.len()).filter(|v| chosen(*v)).collect();
        let mut place = vec![u32::MAX; rest.len()];
        (0u32..).zip(&vertices).for_each(|(new, old)| place[*old] = new);
        let inside = whole.faces().iter().filter(|face| face.corners().iter().all(|c| chosen(*c as usize)));
        let faces = inside.map(|face| face.map(|c| place[c as usize])).collect();
        let positions = vertices.iter().map(|v| rest[*v]).collect();
        let parts = MeshParts { positions, faces, segments: Segments::default(), ..MeshParts::default() };
        let in_lid = vertices.iter().map(|v| of(*v) == lids).collect();
        Ok(Self { mesh: parts.build()?, vertices, in_lid })
    }

    fn take(&self, all: &[Vec3]) -> Vec<Vec3> {
        self.vertices.iter().map(|v| all[*v]).collect()
    }
}
