//! Unseen poses by dragging control points: weights from examples beside FAST (bounded biharmonic weights at the same run time),
//! as-rigid-as-possible on the full mesh, and MeshIK on the same examples; and what skinning decomposition makes of the examples.
//! Shapes made by code, the human with few and many examples, and the fox with bones and points on its tail. Every method is
//! prepared once per shape; what is timed is a pose.

use super::mesh_ik::MeshIk;
use super::shapes::{Shape, figure, hand, pants};
use crate::console::{Console, print, table};
use anyhow::{Result, anyhow, bail};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;
use understudy_core::{Affine3A, Controls, GlobalPose, Mesh, MeshParts, SkinWeights, Vec3};
use understudy_jobs::rigs;
use understudy_learn::decomposition::{DecompositionSettings, decompose};
use understudy_report::raster::{Actor, Camera, RenderSettings, render};
use understudy_report::{HeatScale, Picture, Sheet};
use understudy_rigs::{Rig, RigPose};
use understudy_runtime::drag::{DragRig, DragSettings};
use understudy_solve::arap::Arap;
use understudy_solve::skin_weights::examples::{ExampleSettings, optimise_weights};
use understudy_solve::skin_weights::{Handle, HandleShape, WeightSettings, solve_weights};

/// Goals of the control points in, vertices out.
type Deform<'a> = Box<dyn FnMut(&[Vec3]) -> Result<Vec<Vec3>> + 'a>;

/// A mesh with control points, poses to learn from and poses to reach.
struct Scene {
    name: String,
    mesh: Mesh,
    /// What weights are solved for.
    handles: Vec<Handle>,
    /// The vertex that stands for each handle where a method knows vertices only.
    held: Vec<u32>,
    examples: Vec<Vec<Vec3>>,
    tests: Vec<Vec<Vec3>>,
    /// Where handles go in the tests, if not with their vertices.
    goals: Option<Vec<Vec<Vec3>>>,
    /// Where it is seen best.
    view: [f32; 2],
    /// Of whose weights a map is drawn.
    shown: usize,
    rounds: usize,
}

pub fn run(folder: &Path) -> Result<()> {
    let head = ["shape", "examples", "method", "RMSE of unseen poses, mm", "worst vertex, mm", "ms per pose"];
    let mut failed = Vec::new();
    for scene in scenes()? {
        // One shape that fails does not lose the others.
        match compare(&scene, folder) {
            Ok(rows) => print(&table(&head, &rows)),
            Err(error) => failed.push(format!("{}: {error}", scene.name)),
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}

fn points(handles: &[(String, u32)]) -> (Vec<Handle>, Vec<u32>) {
    handles.iter().map(|(name, v)| (Handle::new(name.clone(), HandleShape::Vertex(*v)), *v)).unzip()
}

fn scenes() -> Result<Vec<Scene>> {
    let of = |shape: &Shape, poses: &[Vec<f32>]| poses.iter().map(|p| shape.bent(p)).collect::<Vec<_>>();
    let mut scenes = Vec::new();
    let mut add = |shape: Shape, learned: &[Vec<f32>], unseen: &[Vec<f32>], view: [f32; 2], shown: usize| {
        let (examples, tests) = (of(&shape, learned), of(&shape, unseen));
        let (handles, held) = points(&shape.handles);
        scenes.push(Scene {
            name: shape.name.into(),
            mesh: shape.mesh,
            handles,
            held,
            examples,
            tests,
            goals: None,
            view,
            shown,
            rounds: 40,
        });
    };
    // One kick; then another kick and a squat.
    add(
        pants()?,
        &[vec![-80.0, 55.0, 10.0, 10.0]],
        &[vec![-60.0, 20.0, 15.0, 30.0], vec![-75.0, 95.0, -75.0, 95.0]],
        [50.0, 8.0],
        3,
    );
    // Six examples: every finger by itself and a half fist.
    let hand = hand()?;
    let one = |finger: usize| {
        (0..hand.angles()).map(|k| if k / 3 == finger { 65.0 } else { 4.0 }).collect::<Vec<f32>>()
    };
    let mut learned: Vec<Vec<f32>> = (0..5).map(one).collect();
    learned.push(vec![35.0; hand.angles()]);
    let point: Vec<f32> = (0..hand.angles()).map(|k| if k / 3 == 1 { 5.0 } else { 60.0 }).collect();
    add(hand, &learned, &[point, (0..15).map(|k| 15.0 * (k / 3) as f32).collect()], [160.0, 15.0], 5);
    add(
        figure()?,
        &[
            vec![60.0, 40.0, -40.0, -30.0, 25.0, -40.0, -20.0, 0.0],
            vec![-45.0, -60.0, 50.0, 45.0, -10.0, 0.0, 35.0, -50.0],
        ],
        &[
            vec![30.0, 70.0, 60.0, 20.0, 30.0, -25.0, 10.0, -30.0],
            vec![-60.0, 0.0, -60.0, 0.0, 30.0, 0.0, 30.0, 0.0],
        ],
        [0.0, 0.0],
        3,
    );
    if let Ok(rig) = rigs::open("human", &Console) {
        for (count, rounds) in [(5, 12), (40, 5)] {
            scenes.push(human(rig.rig.as_ref(), count, rounds)?);
        }
    }
    match fox() {
        Ok(fox) => scenes.push(fox),
        Err(error) => print(&format!("no fox: {error}")),
    }
    Ok(scenes)
}

/// The sample model of a fox (`shared/data/gltf/Fox`): long bones of its rig and points along the tail, three frames of each
/// of two clips to learn from and three of the third. It is 155 m long; here a hundredth of that.
fn fox() -> Result<Scene> {
    const SCALE: f32 = 0.01;
    let data = rigs::data_folder().ok_or_else(|| anyhow!("there is no folder of sample models"))?;
    let model = understudy_io::gltf::read(&data.join("gltf/Fox/Fox.glb"))?;
    let skeleton = model.skeleton.as_ref().ok_or_else(|| anyhow!("it has no bones"))?;
    let scaled = |all: Vec<Vec3>| -> Vec<Vec3> { all.into_iter().map(|p| p * SCALE).collect() };
    // Every triangle of the file has vertices of its own: those at one place are one here.
    let (mesh, kept) = welded(&model.mesh.with_positions(&scaled(model.rest_vertices()))?)?;
    let vertices_of = |all: Vec<Vec3>| -> Vec<Vec3> {
        let all = scaled(all);
        kept.iter().map(|v| all[*v]).collect()
    };
    let places = |globals: &[Affine3A]| scaled(globals.iter().map(|g| Vec3::from(g.translation)).collect());
    let rest = places(skeleton.rest_global());
    let (low, high) = mesh.bounds();
    let bones = skeleton.bones();
    // A bone from its joint to its first child's, where both are inside the animal.
    let inside = |p: Vec3| p.cmpge(low).all() && p.cmple(high).all();
    let long = 0.03 * (high - low).length();
    let chosen: Vec<(usize, usize)> = (0..bones.len())
        .filter(|head| !bones[*head].name.to_lowercase().contains("tail"))
        .filter_map(|head| Some((head, (0..bones.len()).find(|child| bones[*child].parent == Some(head))?)))
        .filter(|(head, tail)| inside(rest[*head]) && inside(rest[*tail]))
        .filter(|(head, tail)| rest[*head].distance(rest[*tail]) > long)
        .collect();
    let tails = (0..bones.len()).filter(|bone| bones[*bone].name.to_lowercase().contains("tail"));
    let mut held: Vec<u32> = Vec::new();
    let mut nearest = |p: Vec3| {
        let distance = |v: &u32| mesh.positions()[*v as usize].distance_squared(p);
        let open = (0..mesh.vertex_count() as u32).filter(|v| !held.contains(v));
        let vertex = open.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0);
        held.push(vertex);
        vertex
    };
    let mut handles = Vec::new();
    for (head, tail) in &chosen {
        let shape = HandleShape::Bone { head: rest[*head].as_dvec3(), tail: rest[*tail].as_dvec3() };
        handles.push(Handle::new(bones[*head].name.clone(), shape));
        nearest(rest[*head]);
    }
    for bone in tails {
        let vertex = nearest(rest[bone]);
        handles.push(Handle::new(format!("point of {}", bones[bone].name), HandleShape::Vertex(vertex)));
    }
    let (mut examples, mut tests, mut goals) = (Vec::new(), Vec::new(), Vec::new());
    for (number, clip) in model.clips.iter().enumerate().take(3) {
        for share in [0.2, 0.45, 0.8] {
            let time = share * clip.duration();
            let vertices = vertices_of(model.evaluate_at(clip, time));
            if number < 2 {
                examples.push(vertices);
                continue;
            }
            let mut globals = GlobalPose::default();
            skeleton.forward(&clip.pose_at(time, &model.rest_pose()), &mut globals)?;
            let joints = places(&globals.0);
            let heads = chosen.iter().map(|(head, _)| joints[*head]);
            goals.push(heads.chain(held[chosen.len()..].iter().map(|v| vertices[*v as usize])).collect());
            tests.push(vertices);
        }
    }
    Ok(Scene {
        name: "fox, bones and points".into(),
        mesh,
        shown: handles.len() - 1,
        handles,
        held,
        examples,
        tests,
        goals: Some(goals),
        view: [90.0, 5.0],
        rounds: 40,
    })
}

/// The mesh with one vertex at every place, and which of the old ones each is.
fn welded(mesh: &Mesh) -> Result<(Mesh, Vec<usize>)> {
    let mut kept: Vec<usize> = Vec::new();
    let mut first = HashMap::new();
    let new: Vec<u32> = mesh
        .positions()
        .iter()
        .enumerate()
        .map(|(vertex, place)| {
            *first.entry(place.to_array().map(f32::to_bits)).or_insert_with(|| {
                kept.push(vertex);
                kept.len() as u32 - 1
            })
        })
        .collect();
    let faces = mesh.faces().iter().map(|face| face.map(|corner| new[corner as usize])).collect();
    let positions = kept.iter().map(|vertex| mesh.positions()[*vertex]).collect();
    Ok((MeshParts { positions, faces, ..MeshParts::default() }.build()?, kept))
}

/// Random poses of the limbs; control points spread over the body.
fn human(rig: &dyn Rig, count: usize, rounds: usize) -> Result<Scene> {
    let parts =
        ["arm", "leg", "thigh", "calf", "shin", "spine", "neck", "head", "foot", "hand", "elbow", "knee"];
    let specs: Vec<_> = rig.specs().iter().collect();
    let moving: Vec<usize> = (0..specs.len())
        .filter(|k| {
            let name = specs[*k].name.to_lowercase();
            parts.iter().any(|part| name.contains(part)) && !name.contains("finger")
        })
        .collect();
    let mut seed = 20_190_601u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as f32 / (1u64 << 31) as f32
    };
    let mut pose = || -> Result<Vec<Vec3>> {
        let mut controls: Controls = rig.specs().defaults();
        for &k in &moving {
            let (low, high) = (specs[k].low, specs[k].high);
            if random() < 0.3 {
                let reach = 0.35 * (low + (high - low) * random());
                controls.0[k] = (specs[k].default + reach).clamp(low, high);
            }
        }
        let mut out = RigPose::default();
        rig.evaluate(&controls, &mut out)?;
        Ok(out.vertices)
    };
    let tests: Vec<Vec<Vec3>> = (0..3).map(|_| pose()).collect::<Result<_>>()?;
    let examples = (0..count).map(|_| pose()).collect::<Result<_>>()?;
    let named = spread(rig.mesh().positions(), 16).into_iter().enumerate();
    let named: Vec<(String, u32)> = named.map(|(k, v)| (format!("point {}", k + 1), v)).collect();
    let (handles, held) = points(&named);
    Ok(Scene {
        name: format!("human, {count} examples"),
        mesh: rig.mesh().clone(),
        handles,
        held,
        examples,
        tests,
        goals: None,
        view: [25.0, 5.0],
        shown: 2,
        rounds,
    })
}

/// Vertices as far as can be from each other.
fn spread(positions: &[Vec3], count: usize) -> Vec<u32> {
    let mut far = vec![f32::INFINITY; positions.len()];
    let mut next =
        (0..positions.len()).max_by(|a, b| positions[*a].y.total_cmp(&positions[*b].y)).unwrap_or(0);
    let mut chosen = Vec::new();
    while chosen.len() < count {
        chosen.push(next as u32);
        let at = positions[next];
        far.iter_mut().zip(positions).for_each(|(far, p)| *far = far.min(p.distance_squared(at)));
        next = (0..far.len()).max_by(|a, b| far[*a].total_cmp(&far[*b])).unwrap_or(0);
    }
    chosen
}

fn skin_of(values: &[f64], h: usize) -> Result<SkinWeights> {
    let row = |row: &[f64]| {
        let kept = row.iter().enumerate().filter(|(_, w)| **w >= 1e-4);
        let sum: f64 = kept.clone().map(|(_, w)| w).sum();
        kept.map(|(j, w)| (j as u16, (w / sum) as f32)).collect::<Vec<_>>()
    };
    Ok(SkinWeights::from_rows(&values.chunks_exact(h).map(row).collect::<Vec<_>>(), h)?)
}

fn compare(scene: &Scene, folder: &Path) -> Result<Vec<Vec<String>>> {
    let (mesh, h) = (&scene.mesh, scene.handles.len());
    let held = &scene.held;
    let initial = solve_weights(mesh, &scene.handles, &WeightSettings::default(), &|_| true)?;
    let slices: Vec<&[Vec3]> = scene.examples.iter().map(Vec::as_slice).collect();
    let started = Instant::now();
    let example_settings = ExampleSettings { rounds: scene.rounds, ..ExampleSettings::default() };
    let best = optimise_weights(mesh, &initial, &slices, &example_settings, &|_| true)?;
    print(&format!(
        "{}: {} vertices, {h} handles, {} examples: {} rounds in {:.0} s, RMSE of the examples {:.2} mm",
        scene.name,
        mesh.vertex_count(),
        slices.len(),
        best.rounds,
        started.elapsed().as_secs_f64(),
        10.0 * best.rmse
    ));
    let decomposed = decompose(
        mesh.positions(),
        &slices,
        &DecompositionSettings { bones: h, ..DecompositionSettings::default() },
        |_| true,
    );
    if let Ok(decomposed) = decomposed {
        print(&format!(
            "  skinning decomposition into {h} bones: RMSE of the examples {:.2} mm; its bones are nobody's handles",
            10.0 * decomposed.history.last().copied().unwrap_or(f64::NAN)
        ));
    }
    let places: Vec<Vec3> = initial.places.iter().map(|p| p.as_vec3()).collect();
    let at_rest: Vec<Vec3> = held.iter().map(|v| mesh.positions()[*v as usize]).collect();
    let all: Vec<usize> = (0..h).collect();
    let n = mesh.vertex_count();
    let drag = |values: &[f64]| -> Result<DragRig> {
        let settings = DragSettings { iterations: 100, ..DragSettings::default() };
        Ok(DragRig::new(mesh, &skin_of(values, h)?, &places, &all, &settings)?)
    };
    let (fast, ours) = (drag(&initial.values)?, drag(&best.values)?);
    // A part that nothing is held of is nowhere for a method that knows the surface alone.
    let resting = match Arap::new(mesh, held) {
        Ok(resting) => Some(resting),
        Err(problem) => {
            print(&format!("  as rigid as possible: {problem}"));
            None
        }
    };
    let mut mesh_ik = MeshIk::new(mesh, &slices, held)?;
    // Whether it is given where handles go, or where their vertices do.
    let mut methods: Vec<(&str, bool, Deform)> = vec![
        (
            "FAST",
            true,
            Box::new(|targets| {
                let mut out = vec![Vec3::ZERO; n];
                fast.start().update(&fast, targets, &mut out)?;
                Ok(out)
            }),
        ),
        (
            "ours",
            true,
            Box::new(|targets| {
                let mut out = vec![Vec3::ZERO; n];
                ours.start().update(&ours, targets, &mut out)?;
                Ok(out)
            }),
        ),
        (
            "MeshIK",
            false,
            Box::new(|targets| {
                mesh_ik.restart();
                Ok(mesh_ik.solve(targets, 8))
            }),
        ),
    ];
    if let Some(resting) = &resting {
        methods.insert(
            2,
            (
                "ARAP, full mesh",
                false,
                Box::new(|targets| {
                    let mut arap = resting.clone();
                    // The targets are far: half way first.
                    for share in [0.25, 0.5, 0.75] {
                        let near: Vec<Vec3> =
                            at_rest.iter().zip(targets).map(|(a, b)| a.lerp(*b, share)).collect();
                        arap.deform(&near, 40)?;
                    }
                    arap.deform(targets, 200)?;
                    Ok(arap.positions())
                }),
            ),
        );
    }
    let given = |test: usize, by_handle: bool| -> Vec<Vec3> {
        match &scene.goals {
            Some(goals) if by_handle => goals[test].clone(),
            _ => held.iter().map(|v| scene.tests[test][*v as usize]).collect(),
        }
    };
    let camera = Camera::framing_points(mesh.positions(), scene.view[0], scene.view[1], 1.0);
    let settings = RenderSettings { width: 380, height: 380, ..RenderSettings::default() };
    let draw = |vertices: &[Vec3]| -> Picture {
        let camera = Camera::framing_points(vertices, scene.view[0], scene.view[1], 1.0);
        render(&[Actor::new(mesh.faces(), vertices)], &camera, &settings)
    };
    let mut sheet = Sheet::new(5).title(format!("{}: an unseen pose by {h} handles", scene.name));
    for (test, truth) in scene.tests.iter().enumerate().take(2) {
        sheet = sheet.cell(draw(truth), "what it should be");
        for (name, by_handle, method) in &mut methods {
            sheet = sheet.cell(draw(&method(&given(test, *by_handle))?), *name);
        }
    }
    let file = scene.name.replace([' ', ','], "-");
    std::fs::write(folder.join(format!("compare-{file}.png")), sheet.build().to_png())?;
    let scale = HeatScale::new(0.0, 1.0, format!("weight of {}", scene.handles[scene.shown].name));
    let mut maps = Sheet::new(2).title(scene.name.clone()).colour_bar(&scale);
    for (name, values) in [("bounded biharmonic", &initial.values), ("with examples", &best.values)] {
        let of: Vec<f32> = values.chunks_exact(h).map(|row| row[scene.shown] as f32).collect();
        let actor = Actor::new(mesh.faces(), mesh.positions()).heat(&of, &scale);
        maps = maps.cell(render(&[actor], &camera, &settings), name);
    }
    std::fs::write(folder.join(format!("maps-{file}.png")), maps.build().to_png())?;
    let mut rows = Vec::new();
    for (name, by_handle, method) in &mut methods {
        let (mut squared, mut worst, mut seconds) = (0.0f64, 0.0f32, 0.0);
        for (test, truth) in scene.tests.iter().enumerate() {
            let targets = given(test, *by_handle);
            let start = Instant::now();
            let out = method(&targets)?;
            seconds += start.elapsed().as_secs_f64();
            for (a, b) in out.iter().zip(truth) {
                squared += f64::from(a.distance_squared(*b));
                worst = worst.max(a.distance(*b));
            }
        }
        let count = scene.tests.len() as f64;
        rows.push(vec![
            scene.name.clone(),
            slices.len().to_string(),
            (*name).to_owned(),
            format!("{:.2}", 10.0 * (squared / (count * n as f64)).sqrt()),
            format!("{:.1}", 10.0 * worst),
            format!("{:.2}", 1e3 * seconds / count),
        ]);
    }
    Ok(rows)
}
