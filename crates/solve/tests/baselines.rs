//! The baselines against what defines them, and the relations between methods on one synthetic take.

use understudy_core::{BlendshapeRig, Random, Shape, SparseDeltas, Vec3};
use understudy_solve::inverse_rig::direct::DirectRig;
use understudy_solve::inverse_rig::metrics::measure;
use understudy_solve::inverse_rig::take::TakeSettings;
use understudy_solve::inverse_rig::{Alpha, InverseRig, InverseSettings, Method, Stop};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

fn target_of(rig: &BlendshapeRig, weights: &[f32]) -> Vec<Vec3> {
    let mut target = vec![Vec3::ZERO; rig.neutral().len()];
    rig.evaluate(weights, &mut target);
    target
}

fn linear(size: &SyntheticRig) -> BlendshapeRig {
    random_rig(&SyntheticRig { pairs: 0, triples: 0, quadruples: 0, ..*size })
}

fn solve(rig: &BlendshapeRig, target: &[Vec3], settings: &InverseSettings) -> Vec<f64> {
    let prepared = InverseRig::prepare(rig).expect("valid rig");
    let mut solver = prepared.solver(settings).expect("valid settings");
    solver.solve(target).expect("valid target");
    solver.weights().to_vec()
}

#[test]
fn the_pseudo_inverse_recovers_a_linear_rig_exactly() {
    let rig = linear(&SyntheticRig { vertices: 200, ..SyntheticRig::small(4) });
    let truth = [0.0, 0.3, 1.0, 0.0, 0.5, 0.9, 0.1, 0.0, 0.7];
    let joshi = solve(&rig, &target_of(&rig, &truth), &InverseSettings::paper_with(Method::Joshi));
    assert!(joshi.iter().zip(&truth).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-4));
}

#[test]
fn the_ridge_solves_its_own_equation() {
    let rig = linear(&SyntheticRig { vertices: 200, ..SyntheticRig::small(6) });
    let target = target_of(&rig, &[0.4, 0.3, 0.8, 0.2, 0.5, 0.9, 0.3, 0.2, 0.7]);
    let settings =
        InverseSettings { alpha: Alpha::Absolute(0.4), ..InverseSettings::paper_with(Method::Cetinaslan) };
    let weights = solve(&rig, &target, &settings);
    // Inside the box, the gradient of ½‖Bw − b̂‖² + α‖w‖² vanishes (eq. 17).
    let single: Vec<f32> = weights.iter().map(|w| *w as f32).collect();
    let posed = target_of(&rig, &single);
    for (shape, weight) in rig.shapes().iter().zip(&weights) {
        if *weight > 0.0 && *weight < 1.0 {
            let along: f64 = shape
                .deltas
                .vertices
                .iter()
                .zip(&shape.deltas.deltas)
                .map(|(v, d)| f64::from(d.dot(posed[*v as usize] - target[*v as usize])))
                .sum();
            assert!((along + 2.0 * 0.4 * weight).abs() < 1e-3, "{along} {weight}");
        }
    }
}

#[test]
fn dependent_and_empty_shapes_still_solve() {
    let rig = random_rig(&SyntheticRig { vertices: 120, ..SyntheticRig::small(8) });
    let mut shapes = rig.shapes().to_vec();
    shapes.push(Shape { name: "twin".into(), deltas: shapes[0].deltas.clone() });
    shapes.push(Shape { name: "nothing".into(), deltas: SparseDeltas::default() });
    let rig =
        BlendshapeRig::new(rig.neutral().to_vec(), shapes, rig.correctives().to_vec()).expect("valid rig");
    let prepared = InverseRig::prepare(&rig).expect("empty shapes are held");
    assert_eq!(prepared.rank().expect("eigenvalues exist"), rig.shapes().len() - 2);
    assert_eq!(prepared.unseen_shapes(), ["nothing"]);
    let mut truth = vec![0.2f32; rig.shapes().len()];
    truth[3] = 0.0;
    let target = target_of(&rig, &truth);
    for method in Method::ALL {
        let settings =
            InverseSettings { alpha: Alpha::ZERO, passes: 200, ..InverseSettings::paper_with(method) };
        let weights = solve(&rig, &target, &settings);
        assert!(weights.iter().all(|w| w.is_finite() && *w >= 0.0), "{method:?}");
        assert_eq!(weights[rig.shapes().len() - 1], 0.0, "an empty shape stays at zero");
        let (metrics, _) = measure(&rig, &[weights], &[&target]).expect("they fit");
        let limit = if method == Method::Quartic { 0.003 } else { 0.6 };
        assert!(metrics.rmse_cm < limit, "{method:?} {}", metrics.rmse_cm);
    }
}

#[test]
fn majorisation_lowers_the_quadratic_objective_from_its_ridge_start() {
    for seed in 0..10 {
        let rig = random_rig(&SyntheticRig { vertices: 150, ..SyntheticRig::small(seed) });
        let take = random_take(rig.shapes().len(), 240, seed);
        let target = target_of(&rig, &take[100]);
        let direct = DirectRig::new(&rig);
        // (18) has no ½ before its square, so α counts half as much as in ours.
        let objective = |weights: &[f64]| direct.objective(&target, weights, 0.5 * 0.2, 2);
        let ridge = InverseSettings {
            alpha: Alpha::Absolute(0.2),
            ..InverseSettings::paper_with(Method::Cetinaslan)
        };
        let start = solve(&rig, &target, &ridge);
        let prepared = InverseRig::prepare(&rig).expect("valid rig");
        let lmmm =
            InverseSettings { alpha: Alpha::Absolute(0.2), ..InverseSettings::paper_with(Method::Lmmm) };
        let mut solver = prepared.solver(&lmmm).expect("valid settings");
        let report = solver.solve(&target).expect("valid target");
        assert!(objective(solver.weights()) <= objective(&start) + 1e-9);
        assert!(report.stop == Stop::Converged || report.passes == 200);
        // It ends near where long coordinate descent on the same rig ends.
        let descent = InverseSettings {
            alpha: Alpha::Absolute(0.1),
            passes: 500,
            max_level: Some(2),
            ..InverseSettings::paper()
        };
        let best = objective(&solve(&rig, &target, &descent));
        assert!(objective(solver.weights()) <= 2.0 * best + 0.05, "{} {best}", objective(solver.weights()));
    }
}

#[test]
fn methods_relate_as_the_paper_says_on_a_noisy_take() {
    let rig = random_rig(&SyntheticRig { vertices: 1200, seed: 3, ..SyntheticRig::paper() });
    let take: Vec<Vec<f32>> = random_take(102, 200, 8).into_iter().skip(20).take(90).collect();
    let clean: Vec<Vec<Vec3>> = take.iter().map(|weights| target_of(&rig, weights)).collect();
    let mut random = Random::new(5);
    let mut shake =
        |vertex: &Vec3| *vertex + Vec3::from_array([0; 3].map(|_| (random.normal() * 0.03) as f32));
    let noisy: Vec<Vec<Vec3>> = clean.iter().map(|mesh| mesh.iter().map(&mut shake).collect()).collect();
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let run = |method: Method| {
        let alpha = if method.is_descent() { 0.1 } else { 0.05 };
        let settings =
            InverseSettings { alpha: Alpha::Absolute(alpha), ..InverseSettings::paper_with(method) };
        let solved = prepared.solve_take(&noisy, &settings, &TakeSettings::default()).expect("valid take");
        measure(&rig, &solved.weights, &clean).expect("they fit").0
    };
    let [quartic, linear, seol, joshi, _cetinaslan, lmmm] = Method::ALL.map(run);
    assert!(quartic.cardinality < joshi.cardinality && quartic.cardinality < lmmm.cardinality);
    assert!(quartic.p95_cm < linear.p95_cm && quartic.p95_cm < seol.p95_cm);
    assert!(quartic.roughness < joshi.roughness);
    assert!(lmmm.rmse_cm < joshi.rmse_cm && lmmm.rmse_cm < linear.rmse_cm);
}
