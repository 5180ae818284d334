//! Burn's way against ours: the same parameters and poses give the same loss, the same derivatives and, step
//! after step, the same networks. Runs on burn's CPU backend; the GPU's differs by its rounding only.

use super::super::inputs::Influences;
use super::super::loss::Cost;
use super::super::net::{NetKind, NetSpec};
use super::super::tests::{SmallFace, small_face};
use super::super::train::{Device, Train};
use super::super::trainer::Problem;
use super::super::{FaceSettings, Plan, Progress, Recording, Schedule, schedule};
use super::sparse::{Sparse, transposed};
use burn_flex::Flex;
use burn_tensor::{Tensor, TensorData};
use understudy_core::Vec2;
use understudy_runtime::face::map_decoder::MapShape;

/// Sums of f32 in another order.
const CLOSE: f32 = 2e-4;

fn settings() -> FaceSettings {
    FaceSettings { batch: 3, hidden: 12, frame: false, ..FaceSettings::default() }
}

/// Networks that overlap, of two shapes of maps or none, with different inputs and units.
fn networks(plan: &Plan, poses: &Recording, dense: bool, untied: bool) -> Vec<NetSpec> {
    let whole = &plan.coarse[0];
    let uvs = poses.mesh.vertex_uvs().expect("has UVs");
    let common = if untied { 6 } else { 0 };
    let small = MapShape {
        side: 2,
        channels: 3,
        hidden: 5,
        doublings: 2,
        outputs: 3,
        untied,
        shared_features: common,
    };
    let large = MapShape {
        side: 4,
        channels: 2,
        hidden: 7,
        doublings: 1,
        untied: false,
        shared_features: 0,
        ..small
    };
    let part = |name: &str, from: usize, to: usize, inputs: usize, unit: f32, shape: MapShape| {
        let vertices = whole.vertices[from..to].to_vec();
        let edge = (shape.map_side() - 1) as f32;
        let place = |v: &u32| (uvs[*v as usize] * 1.2 * edge).min(Vec2::splat(edge));
        let coordinates = vertices.iter().map(place).collect();
        NetSpec {
            name: name.into(),
            kind: if dense { NetKind::Dense } else { NetKind::Map { shape, coordinates } },
            vertices,
            inputs: whole.inputs[..inputs].to_vec(),
            mean: whole.mean[..inputs].to_vec(),
            scale: whole.scale[..inputs].to_vec(),
            unit,
            ..whole.clone()
        }
    };
    let count = whole.vertices.len();
    vec![
        part("a", 0, count * 2 / 3, whole.inputs.len(), 0.3, small),
        part("b", count / 2, count - 5, 2, 0.7, large),
        part("c", count / 4, count / 2, 1, 0.2, small),
    ]
}

fn planned(face: &SmallFace) -> (Recording, Plan) {
    let poses = face.poses();
    let influences = Influences::new(&poses, None).expect("enough poses");
    let plan = Plan::new(&poses, &influences, &settings()).expect("something moves");
    (poses, plan)
}

fn trainer<'a>(device: Device, problem: Problem<'a>, specs: &[NetSpec]) -> Box<dyn Train + 'a> {
    device.trainer(problem, specs.to_vec(), 12, 3, 5, 2).expect("built in")
}

/// The largest difference, by the size of the numbers.
fn miss(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let size = a.iter().fold(0.0f32, |size, n| size.max(n.abs()));
    a.iter().zip(b).fold(0.0f32, |miss, (a, b)| miss.max((a - b).abs())) / size.max(1e-6)
}

fn same_cost(a: Cost, b: Cost) {
    assert!((a.position - b.position).abs() < 1e-5 * a.position, "{a:?} {b:?}");
    assert!((a.normal - b.normal).abs() <= 1e-5 * a.normal, "{a:?} {b:?}");
}

#[test]
fn loss_and_derivatives_are_those_of_our_own_trainer() {
    let face = small_face(1, 20);
    let (poses, plan) = planned(&face);
    for (dense, untied, normal_weight) in
        [(false, false, 5.0), (false, true, 5.0), (true, false, 5.0), (false, true, 0.0)]
    {
        let specs = networks(&plan, &poses, dense, untied);
        let settings = FaceSettings { normal_weight, ..settings() };
        let [own, burn] = [Device::Cpu, Device::Burn]
            .map(|device| trainer(device, plan.coarse_problem(&poses, &settings), &specs));
        // Almost no step: parameters stay, and the first moment is a tenth of the gradient.
        let batch = [1, 7, 4];
        same_cost(own.step(&batch, 1, 1e-30), burn.step(&batch, 1, 1e-30));
        let (a, b) = (own.state(), burn.state());
        assert_eq!(a.len(), 3);
        for (net, (a, b)) in a.iter().zip(&b).enumerate() {
            // A bias that began at zero is as large as that step, and only so far the same.
            assert!(miss(&a[0], &b[0]) < 1e-7, "the same seed begins with the same parameters");
            assert!(a[1].iter().any(|slope| slope.abs() > 1e-6), "network {net} has a slope");
            let miss = miss(&a[1], &b[1]);
            assert!(miss < CLOSE, "dense {dense}, untied {untied}, α {normal_weight}, network {net}: {miss}");
        }
        let all: Vec<usize> = (0..poses.len()).collect();
        same_cost(own.measure(&all), burn.measure(&all));
    }
}

#[test]
fn steps_predictions_and_states_agree() {
    let face = small_face(2, 40);
    let (poses, plan) = planned(&face);
    let specs = networks(&plan, &poses, false, true);
    let [own, burn] = [Device::Cpu, Device::Burn]
        .map(|device| trainer(device, plan.coarse_problem(&poses, &settings()), &specs));
    for number in 1..=20 {
        let batch = [number % 40, number * 7 % 40, number * 13 % 40];
        own.step(&batch, number, 1e-3);
        burn.step(&batch, number, 1e-3);
    }
    let all: Vec<usize> = (0..poses.len()).collect();
    let (a, b) = (own.measure(&all).total(), burn.measure(&all).total());
    assert!((a - b).abs() < 1e-2 * a, "{a} {b}");
    // A state that was handed over is the same network.
    assert!(burn.set_state(&own.state()));
    assert_eq!(burn.state(), own.state());
    assert!(burn.parts() == own.parts());
    assert!(!burn.set_state(&own.state()[..2]));
    same_cost(own.measure(&all), burn.measure(&all));
    let wanted = burn.locals(&specs[1].vertices);
    let predict = |trainer: &dyn Train| trainer.predict(&wanted, &mut |_| true).expect("not stopped");
    let (a, b) = (predict(&*own), predict(&*burn));
    assert_eq!(a.len(), 40 * wanted.len());
    assert!(a.iter().zip(&b).all(|(a, b)| a.distance(*b) < 1e-4));
    // Networks that refine have a base of their own in every pose.
    let problem = || {
        let mut problem = plan.refinement_problem(&poses, &specs[1..2], &settings());
        problem.base = own.predict(&own.locals(&problem.members), &mut |_| true).expect("not stopped");
        problem
    };
    let [own, burn] = [Device::Cpu, Device::Burn].map(|device| trainer(device, problem(), &specs[1..2]));
    same_cost(own.step(&[3, 30], 1, 1e-30), burn.step(&[3, 30], 1, 1e-30));
    assert!(miss(&own.state()[0][1], &burn.state()[0][1]) < CLOSE);
}

#[test]
fn a_schedule_runs_and_goes_on_where_it_stopped() {
    let face = small_face(6, 60);
    let (poses, plan) = planned(&face);
    let specs = networks(&plan, &poses, false, true);
    let fresh = || trainer(Device::Burn, plan.coarse_problem(&poses, &settings()), &specs);
    let schedule = Schedule { caps: vec![200, 20, 5], check_every: 10, ..Schedule::default() };
    let go = |trainer: &dyn Train, progress: &mut Progress, stop: usize| {
        let validation = &plan.validation[..1];
        schedule::run(trainer, &plan.balance, validation, &schedule, 3, 3, progress, |p, _| p.steps != stop)
    };
    let (whole, mut progress) = (fresh(), Progress::default());
    let before = whole.measure(&plan.validation[..1]).total();
    go(&*whole, &mut progress, usize::MAX).expect("runs to its end");
    assert!(f64::from(progress.best) < 0.8 * before, "{} {before}", progress.best);
    let (first, mut kept) = (fresh(), Progress::default());
    assert!(go(&*first, &mut kept, 63).is_err());
    let second = fresh();
    assert!(second.set_state(&first.state()));
    go(&*second, &mut kept, usize::MAX).expect("runs to its end");
    assert_eq!(kept, progress);
    assert!(whole.parts() == second.parts());
}

#[test]
fn sparse_products_are_sums_over_their_entries() {
    let device = Default::default();
    // Rows of no, one, some and very many entries.
    let row = |count: u32| (0..count).map(|k| (k * 7 % 90, 0.1 * k as f32 - 1.0)).collect::<Vec<_>>();
    let rows = vec![row(0), row(1), row(5), row(90), row(2), row(3000), row(4)];
    let x: Vec<f32> = (0..2 * 3 * 90).map(|k| (k as f32 * 0.37).sin()).collect();
    let check = |rows: &Vec<Vec<(u32, f32)>>, x: &[f32], columns: usize| {
        let sparse = Sparse::<Flex>::new(rows.clone(), &device);
        let out = sparse.apply(Tensor::from_data(TensorData::new(x.to_vec(), [2, 3, columns]), &device));
        assert_eq!(out.dims(), [2, 3, rows.len()]);
        let out = out.into_data().to_vec::<f32>().expect("f32");
        for (place, got) in out.iter().enumerate() {
            let (line, row) = (place / rows.len(), place % rows.len());
            let terms = rows[row].iter().map(|(column, w)| w * x[line * columns + *column as usize]);
            let (sum, size) = terms.fold((0.0, 1.0f32), |(sum, size), term| (sum + term, size + term.abs()));
            assert!((got - sum).abs() < 1e-5 * size, "{got} {sum}");
        }
    };
    check(&rows, &x, 90);
    let turned = transposed(&rows, 90);
    check(&turned, &x[..2 * 3 * 7], 7);
    // Nearly all rows short: pieces must still be longer than one entry.
    let rows: Vec<_> = (0..200).map(|index| row(if index == 70 { 3 } else { 1 })).collect();
    check(&rows, &x, 90);
}
