//! Starts, bounds, symmetric pairs, exclusive groups, vertex weights, holes and bad input.

use proptest::prelude::*;
use understudy_core::{BlendshapeError, BlendshapeRig, Corrective, Random, Shape, SparseDeltas, Vec3};
use understudy_solve::inverse_rig::direct::DirectRig;
use understudy_solve::inverse_rig::{
    Alpha, InverseError, InverseRig, InverseSettings, Method, Missing, Stop, Symmetry, invert,
};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

fn pose(rig: &BlendshapeRig, weights: &[f32]) -> Vec<Vec3> {
    let mut target = vec![Vec3::ZERO; rig.neutral().len()];
    rig.evaluate(weights, &mut target);
    target
}

fn scene(seed: u64) -> (BlendshapeRig, Vec<Vec3>) {
    let rig = random_rig(&SyntheticRig { vertices: 90, ..SyntheticRig::small(seed) });
    let mut random = Random::stream(seed, 3);
    let weights: Vec<f32> = (0..rig.shapes().len()).map(|_| (random.uniform(-0.5, 1.0)).max(0.0)).collect();
    let target = pose(&rig, &weights);
    (rig, target)
}

fn names(rig: &BlendshapeRig, shapes: &[usize]) -> Vec<String> {
    shapes.iter().map(|shape| rig.shapes()[*shape].name.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn pairs_and_groups_hold_and_the_cost_never_rises(seed in 0u64..5000, alpha in 0.0f64..1.0, soft in any::<bool>(), newton in any::<bool>()) {
        let (rig, target) = scene(seed);
        let strength = 2.5;
        let settings = InverseSettings {
            alpha: Alpha::Absolute(alpha),
            passes: 8,
            newton,
            symmetric: vec![[names(&rig, &[0]).remove(0), names(&rig, &[4]).remove(0)]],
            symmetry: if soft { Symmetry::Soft(strength) } else { Symmetry::Tied },
            exclusive: vec![names(&rig, &[1, 2, 3]), names(&rig, &[7, 8])],
            ..InverseSettings::paper()
        };
        let prepared = InverseRig::prepare(&rig).expect("valid rig");
        let mut solver = prepared.solver(&settings).expect("valid settings");
        let direct = DirectRig::new(&rig);
        let mut objectives = Vec::new();
        let report = solver.solve_watched(&target, None, |visit| objectives.push(visit.objective)).expect("valid target");
        let weights = solver.weights();
        prop_assert!(soft || weights[0] == weights[4]);
        for group in [&[1, 2, 3][..], &[7, 8]] {
            prop_assert!(group.iter().filter(|shape| weights[**shape] > 0.0).count() <= 1);
        }
        let apart = if soft { 0.5 * strength * (weights[0] - weights[4]).powi(2) } else { 0.0 };
        let end = direct.objective(&target, weights, alpha, usize::MAX) + apart;
        let scale = direct.objective(&target, &[0.0; 9], 0.0, 1);
        prop_assert!((report.objective - end).abs() <= 1e-9 * scale.max(1.0));
        prop_assert!(objectives.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12 * scale));
        // No tied weight can be moved to lower the cost further once the passes have settled.
        let mut settled = prepared.solver(&InverseSettings { passes: 4000, tolerance: 1e-9, ..settings.clone() }).expect("valid settings");
        prop_assert_eq!(settled.solve(&target).expect("valid target").stop, Stop::Converged);
        if !soft {
            let base = settled.weights().to_vec();
            let least = direct.objective(&target, &base, alpha, usize::MAX);
            for step in 0..=40 {
                let mut trial = base.clone();
                trial[0] = f64::from(step) / 40.0;
                trial[4] = trial[0];
                prop_assert!(direct.objective(&target, &trial, alpha, usize::MAX) >= least - 1e-7 * scale.max(1.0));
            }
        }
    }

    #[test]
    fn vertex_weights_are_those_of_a_scaled_mesh(seed in 0u64..5000) {
        // Weight ω on a vertex is the same as its deltas and offsets times √ω.
        let (rig, target) = scene(seed);
        let mut random = Random::stream(seed, 9);
        let weights: Vec<f32> = (0..90).map(|_| [0.0, 0.25, 1.0, 4.0][random.below(4)]).collect();
        let scaled = |deltas: &SparseDeltas| SparseDeltas {
            vertices: deltas.vertices.clone(),
            deltas: deltas.vertices.iter().zip(&deltas.deltas).map(|(v, d)| *d * weights[*v as usize].sqrt()).collect(),
        };
        let shapes = rig.shapes().iter().map(|s| Shape { name: s.name.clone(), deltas: scaled(&s.deltas) }).collect();
        let correctives = rig.correctives().iter().map(|c| Corrective { shapes: c.shapes.clone(), deltas: scaled(&c.deltas) }).collect();
        let other = BlendshapeRig::new(vec![Vec3::ZERO; 90], shapes, correctives).expect("valid rig");
        let offset: Vec<Vec3> = (0..90).map(|v| (target[v] - rig.neutral()[v]) * weights[v].sqrt()).collect();
        // √ω is 0, ½, 1 or 2: exact in f32. The offset itself rounds once.
        let want = {
            let prepared = InverseRig::prepare(&other).expect("valid rig");
            let mut solver = prepared.solver(&InverseSettings::paper()).expect("valid settings");
            solver.solve(&offset).expect("valid target");
            solver.weights().to_vec()
        };
        let mut prepared = InverseRig::prepare(&rig).expect("valid rig");
        prop_assert!(prepared.set_vertex_weights(&weights).expect("valid weights"));
        let mut solver = prepared.solver(&InverseSettings::paper()).expect("valid settings");
        solver.solve(&target).expect("valid target");
        for (a, b) in solver.weights().iter().zip(&want) {
            prop_assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }
}

#[test]
fn holes_are_vertices_without_weight() {
    let (rig, target) = scene(17);
    let mut prepared = InverseRig::prepare(&rig).expect("valid rig");
    let mut holey = target.clone();
    let mut weights = vec![1.0f32; 90];
    for vertex in [3, 4, 5, 60, 61, 89] {
        holey[vertex] = Vec3::new(f32::NAN, 0.0, 0.0);
        weights[vertex] = 0.0;
    }
    let ignore = InverseSettings { missing: Missing::Ignore, ..InverseSettings::paper() };
    let found = {
        let mut solver = prepared.solver(&ignore).expect("valid settings");
        solver.solve(&target).expect("whole");
        let report = solver.solve(&holey).expect("holes are ignored");
        assert!(report.rms_cm.is_finite());
        solver.weights().to_vec()
    };
    prepared.set_vertex_weights(&weights).expect("valid weights");
    let mut solver = prepared.solver(&InverseSettings::paper()).expect("valid settings");
    solver.solve(&holey).expect("NaN where nothing counts is no error");
    assert!(found.iter().zip(solver.weights()).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn a_marker_set_of_few_vertices_recovers_what_it_sees() {
    let rig = random_rig(&SyntheticRig {
        vertices: 2000,
        shapes: 12,
        radius: (6.0, 12.0),
        ..SyntheticRig::small(21)
    });
    let truth: Vec<f32> = (0..12).map(|i| if i % 3 == 0 { 0.7 } else { 0.0 }).collect();
    let target = pose(&rig, &truth);
    let mut prepared = InverseRig::prepare(&rig).expect("valid rig");
    let mut weights = vec![0.0f32; 2000];
    (0..2000).step_by(40).for_each(|vertex| weights[vertex] = 1.0);
    prepared.set_vertex_weights(&weights).expect("valid weights");
    let settings = InverseSettings { alpha: Alpha::ZERO, passes: 500, ..InverseSettings::paper() };
    let mut solver = prepared.solver(&settings).expect("valid settings");
    solver.solve(&target).expect("valid target");
    assert!(solver.weights().iter().zip(&truth).all(|(a, b)| (a - f64::from(*b)).abs() < 0.01));
}

#[test]
fn any_start_is_taken_and_the_truth_is_a_fixed_point() {
    let (rig, _) = scene(2);
    let truth: Vec<f32> = random_take(9, 100, 1).swap_remove(50);
    let target = pose(&rig, &truth);
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let settings = InverseSettings { alpha: Alpha::ZERO, tolerance: 1e-3, ..InverseSettings::paper() };
    let mut solver = prepared.solver(&settings).expect("valid settings");
    let start: Vec<f64> = truth.iter().map(|w| f64::from(*w)).collect();
    let report = solver.solve_from(&target, &start).expect("valid start");
    assert_eq!((report.stop, report.passes), (Stop::Converged, 1));
    assert!(solver.weights().iter().zip(&start).all(|(a, b)| (a - b).abs() < 1e-3));
    let outside = solver.solve_from(&target, &[2.0; 9]);
    assert!(matches!(outside, Err(InverseError::Start { value: 2.0, .. })));
    let short = solver.solve_from(&target, &[0.0; 4]);
    assert!(matches!(short, Err(InverseError::Count { got: 4, want: 9, .. })));
}

#[test]
fn bad_rigs_targets_and_settings_are_named() {
    let (rig, target) = scene(5);
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let solve = |target: &[Vec3]| prepared.solver(&InverseSettings::paper()).expect("valid").solve(target);
    assert_eq!(solve(&target[1..]), Err(InverseError::VertexCount { got: 89, want: 90 }));
    let mut broken = target.clone();
    broken[7].y = f32::NAN;
    assert_eq!(solve(&broken), Err(InverseError::NonFinite { vertex: 7 }));
    broken.fill(Vec3::NAN);
    let ignore = InverseSettings { missing: Missing::Ignore, ..InverseSettings::paper() };
    let nothing = prepared.solver(&ignore).expect("valid").solve(&broken);
    assert_eq!(nothing, Err(InverseError::NothingSeen));

    let with = |change: fn(&mut InverseSettings)| {
        let mut settings = InverseSettings::paper();
        change(&mut settings);
        prepared.solver(&settings).map(|_| ()).expect_err("bad settings")
    };
    let setting = |error: InverseError| match error {
        InverseError::Setting { name, .. } => name,
        other => panic!("{other}"),
    };
    assert_eq!(setting(with(|s| s.alpha = Alpha::Share(-1.0))), "alpha");
    assert_eq!(setting(with(|s| s.alpha = Alpha::Absolute(f64::NAN))), "alpha");
    assert_eq!(setting(with(|s| s.passes = 0)), "passes");
    assert_eq!(setting(with(|s| s.tolerance = f64::INFINITY)), "tolerance");
    assert_eq!(setting(with(|s| s.upper = Some(0.0))), "upper");
    assert_eq!(setting(with(|s| s.max_level = Some(0))), "max_level");
    let pairs = |s: &mut InverseSettings| s.symmetric = vec![["shape_000".into(), "shape_001".into()]];
    let mut joshi = InverseSettings::paper_with(Method::Joshi);
    pairs(&mut joshi);
    assert_eq!(setting(prepared.solver(&joshi).map(|_| ()).expect_err("no pairs")), "method");
    let mut negative = InverseSettings { symmetry: Symmetry::Soft(-1.0), ..InverseSettings::paper() };
    pairs(&mut negative);
    assert_eq!(setting(prepared.solver(&negative).map(|_| ()).expect_err("negative")), "symmetry");
    let unknown = with(|s| s.exclusive = vec![vec!["shape_000".into(), "frown".into()]]);
    assert!(matches!(unknown, InverseError::UnknownShape { ref name, .. } if name == "frown"));
    let twice = with(|s| s.symmetric = vec![["shape_000".into(), "shape_000".into()]]);
    assert!(matches!(twice, InverseError::Overlap { .. }));

    let mut own = InverseRig::prepare(&rig).expect("valid rig");
    let bad = own.set_vertex_weights(&[-1.0; 90]);
    assert_eq!(bad, Err(InverseError::VertexWeight { vertex: 0, weight: -1.0 }));
    assert_eq!(own.set_vertex_weights(&[0.0; 90]), Err(InverseError::NothingSeen));
    assert!(matches!(own.set_vertex_weights(&[1.0; 3]), Err(InverseError::Count { .. })));

    let shape = |name: &str, deltas| Shape { name: name.into(), deltas };
    let some = || SparseDeltas { vertices: vec![0], deltas: vec![Vec3::X] };
    let rig = |shapes, correctives| BlendshapeRig::new(vec![Vec3::ZERO; 2], shapes, correctives);
    let zero = rig(vec![shape("a", some()), shape("flat", SparseDeltas::default())], vec![]).expect("a rig");
    let held = invert(&zero, &[Vec3::X, Vec3::ZERO], &InverseSettings::default()).expect("one shape moves");
    assert!((held[0] - 1.0).abs() < 1e-4 && held[1] == 0.0, "{held:?}");
    assert_eq!(InverseRig::prepare(&zero).expect("one shape moves").unseen_shapes(), ["flat"]);
    let flat = rig(vec![shape("flat", SparseDeltas::default())], vec![]).expect("a rig");
    for none in [rig(vec![], vec![]).expect("a rig"), flat] {
        assert_eq!(InverseRig::prepare(&none).map(|_| ()).expect_err("no shapes"), InverseError::NoShapes);
    }
    // Doubled names and correctives of unknown shapes do not even make a rig.
    let doubled = rig(vec![shape("a", some()), shape("a", some())], vec![]);
    assert_eq!(doubled, Err(BlendshapeError::DuplicateName { name: "a".into() }));
    let lost = rig(vec![shape("a", some())], vec![Corrective { shapes: vec![0, 4], deltas: some() }]);
    assert!(matches!(lost, Err(BlendshapeError::Corrective { .. })));
}
