//! Whole takes: batches against single frames, threads, warm start, head motion, and the choice of α.

use understudy_core::rotation::RigidMotion;
use understudy_core::{BlendshapeRig, DMat3, DVec3, Random, Vec3};
use understudy_solve::inverse_rig::rigid::{RigidFit, RigidSettings};
use understudy_solve::inverse_rig::take::{Take, TakeSettings};
use understudy_solve::inverse_rig::tradeoff::knee;
use understudy_solve::inverse_rig::{
    Alpha, InverseError, InverseRig, InverseSettings, Method, Missing, Order,
};
use understudy_testkit::synthetic::{SyntheticRig, random_rig, random_take};

struct Scene {
    rig: BlendshapeRig,
    truth: Vec<Vec<f32>>,
    targets: Vec<Vec<Vec3>>,
}

fn scene(size: &SyntheticRig, frames: usize, noise: f64) -> Scene {
    let rig = random_rig(size);
    let truth = random_take(rig.shapes().len(), frames, size.seed);
    let mut random = Random::stream(size.seed, 4);
    let mut targets = vec![vec![Vec3::ZERO; rig.neutral().len()]; frames];
    truth.iter().zip(&mut targets).for_each(|(weights, mesh)| rig.evaluate(weights, mesh));
    for vertex in targets.iter_mut().flatten() {
        *vertex += Vec3::from_array([0; 3].map(|_| (random.normal() * noise) as f32));
    }
    Scene { rig, truth, targets }
}

fn with_threads(count: usize, work: impl FnOnce() -> Take + Send) -> Take {
    rayon::ThreadPoolBuilder::new().num_threads(count).build().expect("threads").install(work)
}

#[test]
fn a_batch_gives_the_bits_of_single_frames_on_any_number_of_threads() {
    let size = SyntheticRig { vertices: 700, ..SyntheticRig::paper() };
    for frames in [0, 1, 7, 8, 9, 29] {
        let Scene { rig, mut targets, .. } = scene(&size, frames, 0.02);
        // Frames with holes among whole ones.
        for (t, target) in targets.iter_mut().enumerate().skip(10).step_by(3) {
            target[t..5 * t].fill(Vec3::NAN);
        }
        let prepared = InverseRig::prepare(&rig).expect("valid rig");
        for (method, order) in [
            (Method::Quartic, Order::Decreasing),
            (Method::Linear, Order::Random),
            (Method::Cetinaslan, Order::Decreasing),
            (Method::Lmmm, Order::Decreasing),
        ] {
            let settings =
                InverseSettings { method, order, missing: Missing::Ignore, ..InverseSettings::paper() };
            let solve =
                || prepared.solve_take(&targets, &settings, &TakeSettings::default()).expect("valid take");
            let (one, three) = (with_threads(1, solve), with_threads(3, solve));
            assert_eq!(one, three);
            for (t, target) in targets.iter().enumerate() {
                let mut solver = prepared.solver(&settings).expect("valid settings");
                solver.set_frame(t as u64);
                let report = solver.solve(target).expect("valid target");
                let whole = target.iter().all(|vertex| vertex.is_finite());
                if whole {
                    assert_eq!((solver.weights(), report), (&one.weights[t][..], one.reports[t]));
                }
                // The table of a frame with holes comes from the frame before it, to round-off.
                assert!(solver.weights().iter().zip(&one.weights[t]).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}

#[test]
fn a_smoothed_take_does_not_depend_on_threads() {
    let Scene { rig, targets, .. } =
        scene(&SyntheticRig { vertices: 150, ..SyntheticRig::small(3) }, 70, 0.1);
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let take = TakeSettings { smooth: 5.0, ..Default::default() };
    let solve = || prepared.solve_take(&targets, &InverseSettings::paper(), &take).expect("valid take");
    assert_eq!(with_threads(1, solve), with_threads(3, solve));
}

#[test]
fn a_warm_start_begins_where_the_last_frame_ended() {
    let Scene { rig, targets, .. } =
        scene(&SyntheticRig { vertices: 300, ..SyntheticRig::small(5) }, 50, 0.0);
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let settings = InverseSettings { alpha: Alpha::ZERO, ..InverseSettings::paper() };
    let warm = TakeSettings { warm_start: true, ..Default::default() };
    let solved = prepared.solve_take(&targets, &settings, &warm).expect("valid take");
    let mut solver = prepared.solver(&settings).expect("valid settings");
    let mut last = vec![0.0; rig.shapes().len()];
    for (t, target) in targets.iter().enumerate() {
        let report = solver.solve_from(target, &last).expect("valid target");
        last.copy_from_slice(solver.weights());
        assert_eq!((&last, report), (&solved.weights[t], solved.reports[t]));
    }
    let cold = prepared.solve_take(&targets, &settings, &TakeSettings::default()).expect("valid take");
    let sum = |take: &Take| take.reports.iter().map(|report| report.rms_cm).sum::<f64>();
    assert!(sum(&solved) < sum(&cold), "without noise, five passes more for every frame fit better");
}

#[test]
fn head_motion_is_taken_out_and_found() {
    let Scene { rig, truth, targets } = scene(
        &SyntheticRig { vertices: 900, shapes: 14, radius: (3.0, 6.0), ..SyntheticRig::small(8) },
        30,
        0.0,
    );
    let motion = |t: usize| RigidMotion {
        rotation: DMat3::from_rotation_y(0.5 * (t as f64 * 0.3).sin()) * DMat3::from_rotation_x(0.2),
        translation: DVec3::new(3.0, t as f64 * 0.5, -2.0),
    };
    let mut moved = targets.clone();
    for (t, target) in moved.iter_mut().enumerate() {
        target.iter_mut().for_each(|vertex| *vertex = motion(t).apply(*vertex));
    }
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let settings = InverseSettings { alpha: Alpha::ZERO, passes: 20, ..InverseSettings::paper() };
    let error = |take: &Take| -> f64 {
        let pairs = take.weights.iter().flatten().zip(truth.iter().flatten());
        pairs.map(|(a, b)| (a - f64::from(*b)).abs()).sum::<f64>() / (30.0 * truth[0].len() as f64)
    };
    let run = |rigid: RigidSettings| {
        let take = TakeSettings { rigid: Some(rigid), ..Default::default() };
        prepared.solve_take(&moved, &settings, &take).expect("valid take")
    };
    let plain = run(RigidSettings { rounds: 0, ..Default::default() });
    let rounds = run(RigidSettings::default());
    assert!(
        error(&rounds) < 0.005 && error(&rounds) < 0.5 * error(&plain),
        "{} {}",
        error(&rounds),
        error(&plain)
    );
    for (t, found) in rounds.motions.iter().enumerate() {
        let there = motion(t).apply(Vec3::new(1.0, 2.0, 3.0));
        assert!((found.apply(there) - Vec3::new(1.0, 2.0, 3.0)).length() < 0.05);
    }
    // Landmarks that no shape moves give the motion at once.
    let still = |vertex: &u32| rig.shapes().iter().all(|s| !s.deltas.vertices.contains(vertex));
    let landmarks: Vec<u32> = (0..900).filter(still).step_by(5).collect();
    assert!(landmarks.len() >= 3);
    let exact = run(RigidSettings { fit: RigidFit::Landmarks(landmarks), rounds: 0 });
    assert!(error(&exact) < 0.005, "{}", error(&exact));
    let few = TakeSettings {
        rigid: Some(RigidSettings { fit: RigidFit::Landmarks(vec![1, 2]), rounds: 0 }),
        ..Default::default()
    };
    assert!(matches!(prepared.solve_take(&moved, &settings, &few), Err(InverseError::Setting { .. })));
}

#[test]
fn the_knee_lies_where_error_begins_to_grow() {
    let Scene { rig, targets, .. } =
        scene(&SyntheticRig { vertices: 1200, seed: 3, ..SyntheticRig::paper() }, 60, 0.03);
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let choice = prepared.choose_alpha(&targets, &InverseSettings::paper()).expect("valid take");
    let first = &choice.points[0];
    assert_eq!((choice.chosen, choice.knee), (knee(&choice.points), knee(&choice.points)));
    let chosen = &choice.points[choice.chosen];
    let last = &choice.points[choice.points.len() - 1];
    assert_eq!((first.alpha, last.cardinality), (Alpha::Share(0.0), 0.0));
    assert!(choice.points.windows(2).all(|pair| pair[1].rmse_cm >= 0.98 * pair[0].rmse_cm));
    assert!(chosen.cardinality < 0.75 * first.cardinality && chosen.cardinality > 0.2 * first.cardinality);
    assert!(chosen.rmse_cm < 1.5 * first.rmse_cm, "{chosen:?} {first:?}");
    let refused = prepared.choose_alpha(&targets, &InverseSettings::paper_with(Method::Joshi));
    assert!(matches!(refused, Err(InverseError::Setting { .. })));
}

#[test]
fn bad_frames_are_numbered_and_a_take_can_be_stopped() {
    let Scene { rig, mut targets, .. } = scene(&SyntheticRig::small(2), 20, 0.0);
    let prepared = InverseRig::prepare(&rig).expect("valid rig");
    let settings = InverseSettings::paper();
    let solve = |targets: &[Vec<Vec3>]| prepared.solve_take(targets, &settings, &TakeSettings::default());
    let stopped =
        prepared.solve_take_watched(&targets, &settings, &TakeSettings::default(), &|done| done < 8);
    assert_eq!(stopped, Err(InverseError::Stopped));
    let rough = TakeSettings { smooth: f64::NAN, ..Default::default() };
    assert!(matches!(prepared.solve_take(&targets, &settings, &rough), Err(InverseError::Setting { .. })));
    let joshi = InverseSettings::paper_with(Method::Joshi);
    let smooth = TakeSettings { smooth: 1.0, ..Default::default() };
    assert!(matches!(prepared.solve_take(&targets, &joshi, &smooth), Err(InverseError::Setting { .. })));
    targets[13][5].z = f32::INFINITY;
    let error = solve(&targets).expect_err("not finite");
    assert_eq!(error.to_string().split(':').next(), Some("frame 13"));
    targets[13].pop();
    let error = solve(&targets).expect_err("another mesh");
    assert!(matches!(error, InverseError::Frame { frame: 13, .. }));
}
