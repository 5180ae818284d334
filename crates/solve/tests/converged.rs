//! The default settings: weights settle at a minimum, on any scale of the rig, and clean targets give their
//! weights back.

use proptest::prelude::*;
use understudy_core::{BlendshapeRig, Corrective, Random, Shape, SparseDeltas, Vec3};
use understudy_solve::Solver;
use understudy_solve::inverse_rig::direct::DirectRig;
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{Alpha, InverseRig, InverseSettings, Missing, Order, Stop};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

fn pose(rig: &BlendshapeRig, weights: &[f32]) -> Vec<Vec3> {
    let mut target = vec![Vec3::ZERO; rig.neutral().len()];
    rig.evaluate(weights, &mut target);
    target
}

fn shaken(target: &[Vec3], seed: u64, noise: f64) -> Vec<Vec3> {
    let mut random = Random::stream(seed, 5);
    let mut shake = |v: &Vec3| *v + Vec3::from_array([0; 3].map(|_| (random.normal() * noise) as f32));
    target.iter().map(&mut shake).collect()
}

/// Shapes in pairs of opposites, as brow up and brow down are, and a blend of two others: no weight but one
/// of each has to be on, and passes over single weights hardly move.
fn opposites(seed: u64) -> BlendshapeRig {
    let rig = random_rig(&SyntheticRig { vertices: 150, ..SyntheticRig::small(seed) });
    let mut shapes = rig.shapes().to_vec();
    let scaled = |deltas: &SparseDeltas, by: f32, bend: f32| SparseDeltas {
        vertices: deltas.vertices.clone(),
        deltas: (0..)
            .zip(&deltas.deltas)
            .map(|(i, d): (i32, _)| *d * by * (1.0 + bend * (i as f32).sin()))
            .collect(),
    };
    for shape in 0..4 {
        let deltas = scaled(&rig.shapes()[shape].deltas, -0.8, 0.02);
        shapes.push(Shape { name: format!("opposite_{shape}"), deltas });
    }
    BlendshapeRig::new(rig.neutral().to_vec(), shapes, rig.correctives().to_vec()).expect("valid rig")
}

fn truth(rig: &BlendshapeRig, seed: u64) -> Vec<f32> {
    let mut random = Random::stream(seed, 8);
    let mut weights: Vec<f32> = (0..rig.shapes().len()).map(|_| random.uniform(-0.6, 1.0).max(0.0)).collect();
    let opposite = weights.len() - 4;
    (0..4).for_each(|shape| weights[opposite + shape] = 0.0);
    weights
}

fn mean_error(found: &[f64], truth: &[f32]) -> f64 {
    found.iter().zip(truth).map(|(a, b)| (a - f64::from(*b)).abs()).sum::<f64>() / truth.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_cost_never_rises_and_ends_at_a_minimum(
        seed in 0u64..5000, noise in prop::sample::select(vec![0.0, 0.02]), order in 0usize..7,
    ) {
        let rig = opposites(seed);
        let target = shaken(&pose(&rig, &truth(&rig, seed)), seed, noise);
        let prepared = InverseRig::prepare(&rig).expect("valid rig");
        let settings = InverseSettings { order: Order::ALL[order], ..InverseSettings::default() };
        let mut solver = prepared.solver(&settings).expect("valid settings");
        let mut objectives = Vec::new();
        let report = solver.solve_watched(&target, None, |visit| objectives.push(visit.objective)).expect("valid target");
        prop_assert_eq!(report.stop, Stop::Converged);
        prop_assert!(report.newton_steps > 0 && report.passes < 100);
        let alpha = settings.alpha.in_square_centimetres(prepared.shape_energy());
        let direct = DirectRig::new(&rig);
        let scale = direct.objective(&target, &vec![0.0; rig.shapes().len()], 0.0, 1);
        prop_assert!(objectives.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12 * scale));
        // The cost of the meshes, not our own book-keeping; no single weight and no pair can lower it.
        let least = direct.objective(&target, solver.weights(), alpha, usize::MAX);
        prop_assert!((least - report.objective).abs() <= 1e-9 * scale);
        let mut random = Random::stream(seed, 6);
        for _ in 0..200 {
            let mut trial = solver.weights().to_vec();
            for _ in 0..1 + random.below(2) {
                let shape = random.below(trial.len());
                trial[shape] = (trial[shape] + random.normal() * 1e-3).clamp(0.0, 1.0);
            }
            prop_assert!(direct.objective(&target, &trial, alpha, usize::MAX) >= least - 1e-9 * scale);
        }
    }

    #[test]
    fn a_rig_a_hundred_times_as_large_has_the_same_weights(seed in 0u64..5000, noise in prop::sample::select(vec![0.0, 0.02])) {
        let rig = random_rig(&SyntheticRig { vertices: 150, ..SyntheticRig::small(seed) });
        let target = shaken(&pose(&rig, &truth(&rig, seed)), seed, noise);
        let large = |deltas: &SparseDeltas| SparseDeltas { vertices: deltas.vertices.clone(), deltas: deltas.deltas.iter().map(|d| *d * 100.0).collect() };
        let shapes = rig.shapes().iter().map(|s| Shape { name: s.name.clone(), deltas: large(&s.deltas) }).collect();
        let correctives = rig.correctives().iter().map(|c| Corrective { shapes: c.shapes.clone(), deltas: large(&c.deltas) }).collect();
        // Offsets, so that only the deltas round: a neutral far from the origin would round its own way.
        let offset: Vec<Vec3> = target.iter().zip(rig.neutral()).map(|(to, from)| *to - *from).collect();
        let zero = vec![Vec3::ZERO; offset.len()];
        let small = BlendshapeRig::new(zero.clone(), rig.shapes().to_vec(), rig.correctives().to_vec()).expect("valid rig");
        let large = BlendshapeRig::new(zero, shapes, correctives).expect("valid rig");
        let solve = |rig: &BlendshapeRig, target: &[Vec3]| {
            understudy_solve::inverse_rig::invert(rig, target, &InverseSettings::default()).expect("valid target")
        };
        let far: Vec<Vec3> = offset.iter().map(|v| *v * 100.0).collect();
        for (a, b) in solve(&small, &offset).iter().zip(&solve(&large, &far)) {
            prop_assert!((a - b).abs() <= 1e-6, "{a} {b}");
        }
    }
}

#[test]
fn defaults_give_clean_weights_back_where_five_passes_do_not() {
    for seed in 0..10 {
        let rig = opposites(seed);
        let want = truth(&rig, seed);
        let target = pose(&rig, &want);
        let prepared = InverseRig::prepare(&rig).expect("valid rig");
        let error = |settings: &InverseSettings| {
            let mut solver = prepared.solver(settings).expect("valid settings");
            solver.solve(&target).expect("valid target");
            mean_error(solver.weights(), &want)
        };
        let settled = error(&InverseSettings::default());
        let five = error(&InverseSettings { alpha: Alpha::ZERO, ..InverseSettings::paper() });
        assert!(settled < 5e-4 && settled < 0.1 * five, "{seed}: {settled} {five}");
    }
}

#[test]
fn an_automatic_alpha_leaves_clean_targets_clean() {
    let rig = random_rig(&SyntheticRig { vertices: 800, seed: 5, ..SyntheticRig::paper() });
    let take = random_take(rig.shapes().len(), 40, 2);
    let mut targets: Vec<Vec<Vec3>> = take.iter().map(|weights| pose(&rig, weights)).collect();
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let settings = InverseSettings { missing: Missing::Ignore, ..InverseSettings::default() };
    let choice = prepared.choose_alpha(&targets, &settings).expect("valid take");
    let [free, chosen] = [0, choice.chosen].map(|at| &choice.points[at]);
    assert!(chosen.rmse_cm <= 2.0 * free.rmse_cm, "{chosen:?} {free:?}");
    assert!(choice.chosen <= choice.knee && chosen.cardinality <= free.cardinality, "{choice:?}");
    let error = |alpha: Alpha| {
        let settings = InverseSettings { alpha, ..settings.clone() };
        let solved = prepared.solve_take(&targets, &settings, &TakeSettings::default()).expect("valid take");
        solved.weights.iter().zip(&take).map(|(found, want)| mean_error(found, want)).sum::<f64>() / 40.0
    };
    assert!(
        error(choice.alpha) <= 2.0 * error(Alpha::ZERO).max(settings.tolerance),
        "{}",
        error(choice.alpha)
    );
    // Holes are no numbers of the curve.
    targets.iter_mut().enumerate().for_each(|(t, target)| target[t..t + 90].fill(Vec3::NAN));
    let holes = prepared.choose_alpha(&targets, &settings).expect("holes are ignored");
    assert!(holes.points.iter().all(|point| point.rmse_cm.is_finite()));
    assert!(holes.points[holes.chosen].rmse_cm <= 2.0 * holes.points[0].rmse_cm);
}

#[test]
fn a_solver_can_be_kept_in_a_struct_and_sent_to_a_thread() {
    struct Tracker {
        solver: Solver,
    }
    let rig = opposites(3);
    let want = truth(&rig, 3);
    let target = pose(&rig, &want);
    let mut prepared = InverseRig::prepare(&rig).expect("valid rig");
    let mut tracker =
        Tracker { solver: prepared.solver(&InverseSettings::default()).expect("valid settings") };
    // What is changed afterwards is not its concern.
    let mut weights = vec![1.0; target.len()];
    weights[..40].fill(0.0);
    prepared.set_vertex_weights(&weights).expect("valid weights");
    drop(prepared);
    let found = std::thread::spawn(move || {
        tracker.solver.solve(&target).expect("valid target");
        tracker.solver.weights().to_vec()
    });
    assert!(mean_error(&found.join().expect("no panic"), &want) < 5e-4);
}
