//! Laws of the decomposition, and a skin that must be found again.

use super::*;
use understudy_core::{Quat, Random};

/// A bent tube that is skinned by construction: smooth weights of two or three bones, rigid motions that are
/// smooth in time.
struct Skinned {
    rest: Vec<Vec3>,
    weights: SkinWeights,
    frames: Vec<Vec<Vec3>>,
}

fn skinned(bones: usize, rings: usize, frames: usize, seed: u64) -> Skinned {
    let mut random = Random::new(seed);
    let (mut rest, mut rows) = (Vec::new(), Vec::new());
    for ring in 0..rings {
        let along = ring as f32 / (rings - 1) as f32;
        // The middle third of every bone's stretch is its own; blends lie between.
        let place = along * bones as f32 - 0.5;
        let first = place.floor().clamp(0.0, (bones - 1) as f32);
        let blend = (((place - first) - 0.33) / 0.34).clamp(0.0, 1.0);
        let blend = blend * blend * (3.0 - 2.0 * blend);
        for side in 0..10 {
            let angle = side as f32 * 0.628;
            rest.push(Vec3::new(4.0 * angle.cos(), along * 20.0 * bones as f32, 4.0 * angle.sin()));
            let next = (first as usize + 1).min(bones - 1) as u16;
            rows.push(if next as f32 == first || blend == 0.0 {
                vec![(first as u16, 1.0)]
            } else {
                vec![(first as u16, 1.0 - blend), (next, blend)]
            });
        }
    }
    let mut vector = |scale: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-scale, scale)));
    let waves: Vec<[Vec3; 4]> =
        (0..bones).map(|_| [vector(0.5), vector(0.5), vector(6.0), vector(6.0)]).collect();
    let weights = SkinWeights::from_rows(&rows, bones).expect("convex rows");
    let frame = |t: usize| {
        let (slow, fast) = ((t as f32 * 0.21).sin(), (t as f32 * 0.37).cos());
        let motion = |wave: &[Vec3; 4]| {
            let turn = Quat::from_scaled_axis(wave[0] * slow + wave[1] * fast);
            Affine3A::from_rotation_translation(turn, wave[2] * fast + wave[3] * slow)
        };
        let matrices: Vec<Affine3A> = waves.iter().map(motion).collect();
        let mut out = vec![Vec3::ZERO; rest.len()];
        weights.linear_blend(&matrices, &rest, &mut out);
        out
    };
    let frames = (0..frames).map(frame).collect();
    Skinned { rest, weights, frames }
}

/// Vertices that no skin can follow.
fn noise(vertices: usize, frames: usize, seed: u64) -> (Vec<Vec3>, Vec<Vec<Vec3>>) {
    let mut random = Random::new(seed);
    let mut point = |scale: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-scale, scale)));
    let rest: Vec<Vec3> = (0..vertices).map(|_| point(30.0)).collect();
    let frames = (0..frames).map(|_| rest.iter().map(|p| *p + point(3.0)).collect()).collect();
    (rest, frames)
}

fn views(frames: &[Vec<Vec3>]) -> Vec<&[Vec3]> {
    frames.iter().map(Vec::as_slice).collect()
}

fn run(rest: &[Vec3], frames: &[Vec<Vec3>], settings: &DecompositionSettings) -> Decomposed {
    decompose(rest, &views(frames), settings, |_| true).expect("good input")
}

fn rmse(result: &Decomposed, frames: &[Vec<Vec3>]) -> f64 {
    let mut squares = 0.0;
    for (index, frame) in frames.iter().enumerate() {
        let played = result.frame(index);
        squares += played.iter().zip(frame).map(|(a, b)| f64::from(a.distance_squared(*b))).sum::<f64>();
    }
    (squares / (frames.len() * result.rest.len()) as f64).sqrt()
}

fn assert_laws(result: &Decomposed, frames: &[Vec<Vec3>], settings: &DecompositionSettings) {
    let pairs = result.history.windows(2);
    assert!(pairs.clone().all(|pair| pair[1] <= pair[0]), "the error rose: {:?}", result.history);
    let (said, found) = (result.history[result.history.len() - 1], rmse(result, frames));
    assert!((said - found).abs() < 1e-4 + 1e-3 * said, "said {said}, played {found}");
    assert!(result.weights.max_influences() <= settings.influences);
    assert!(result.iterations <= settings.iterations);
    assert_eq!((result.weights.bone_count(), result.centres.len()), (settings.bones, settings.bones));
    for motion in result.motions.iter().flatten() {
        let turn = motion.matrix3;
        assert!(motion.is_finite() && (turn.determinant() - 1.0).abs() < 1e-4, "not rigid: {motion:?}");
        assert!((turn.transpose() * turn).abs_diff_eq(Affine3A::IDENTITY.matrix3, 1e-4));
    }
}

#[test]
fn a_skinned_animation_is_found_again() {
    let truth = skinned(4, 41, 40, 8);
    let settings = DecompositionSettings { bones: 4, iterations: 300, tolerance: 1e-6, ..Default::default() };
    let result = run(&truth.rest, &truth.frames, &settings);
    assert_laws(&result, &truth.frames, &settings);
    // The tube is 80 cm long and its ends move by several cm.
    let error = rmse(&result, &truth.frames);
    assert!(error < 1e-3, "{error} cm left after {} iterations", result.iterations);
    assert!(truth.weights.max_influences() == 2);
}

#[test]
fn a_pose_that_it_has_not_seen_is_followed() {
    let truth = skinned(4, 41, 60, 8);
    let settings = DecompositionSettings { bones: 4, iterations: 300, tolerance: 1e-6, ..Default::default() };
    let skin =
        DecomposedSkin::fit("lbs4", &truth.rest, &views(&truth.frames[..40]), &settings).expect("good input");
    let mut out = vec![Vec3::ZERO; truth.rest.len()];
    for frame in &truth.frames[40..] {
        let motions = skin.pose(frame).expect("a mesh of the model's topology");
        skin.weights().linear_blend(&motions, skin.rest(), &mut out);
        let furthest = out.iter().zip(frame).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
        assert!(furthest < 0.05, "{furthest} cm");
    }
    assert_eq!(skin.name(), "lbs4");
    assert!(skin.bytes() > truth.rest.len() * 18);
}

#[test]
fn the_laws_hold_where_no_skin_fits() {
    for (case, (bones, influences)) in [(1, 1), (3, 1), (3, 2), (6, 4), (9, 8)].into_iter().enumerate() {
        let (rest, frames) = noise(60, 1 + case * 4, case as u64);
        let settings = DecompositionSettings { bones, influences, iterations: 25, ..Default::default() };
        assert_laws(&run(&rest, &frames, &settings), &frames, &settings);
    }
}

#[test]
fn more_bones_never_fit_much_worse() {
    let truth = skinned(6, 49, 30, 5);
    let fit = |bones: usize| {
        let settings = DecompositionSettings { bones, iterations: 30, ..Default::default() };
        rmse(&run(&truth.rest, &truth.frames, &settings), &truth.frames)
    };
    let (two, four, eight) = (fit(2), fit(4), fit(8));
    assert!(two > four && four > eight, "{two} {four} {eight}");
}

#[test]
fn threads_change_nothing() {
    let truth = skinned(5, 41, 20, 7);
    let settings = DecompositionSettings { bones: 6, iterations: 12, ..Default::default() };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| run(&truth.rest, &truth.frames, &settings))
    };
    assert!(on(1) == on(3));
}

#[test]
fn odd_input_ends_well() {
    let settings = |bones| DecompositionSettings { bones, iterations: 8, ..Default::default() };
    let corners = [Vec3::ZERO, Vec3::X, Vec3::Y, Vec3::Z];
    // More bones than vertices, vertices in one place, nothing that moves, one vertex, one frame.
    for rest in [corners.to_vec(), vec![Vec3::ONE; 5], vec![Vec3::ONE]] {
        let moved: Vec<Vec3> = rest.iter().map(|p| *p * 2.0 + Vec3::Y).collect();
        for frames in [vec![rest.clone(); 3], vec![moved.clone()], vec![rest.clone(), moved]] {
            for bones in [1, 7] {
                assert_laws(&run(&rest, &frames, &settings(bones)), &frames, &settings(bones));
            }
        }
    }
    // A rigid motion needs one bone.
    let motion = Affine3A::from_rotation_translation(Quat::from_rotation_x(1.0), Vec3::new(5.0, 6.0, 7.0));
    let rigid = vec![corners.map(|p| motion.transform_point3(p)).to_vec()];
    assert!(rmse(&run(&corners, &rigid, &settings(1)), &rigid) < 1e-5);
}

#[test]
fn bad_settings_and_stops() {
    let rest = [Vec3::ZERO, Vec3::X, Vec3::Y];
    let frames: [&[Vec3]; 1] = [&rest];
    let good = DecompositionSettings::default();
    for bad in [
        DecompositionSettings { bones: 0, ..good.clone() },
        DecompositionSettings { bones: 100_000, ..good.clone() },
        DecompositionSettings { influences: 0, ..good.clone() },
        DecompositionSettings { iterations: 0, ..good.clone() },
        DecompositionSettings { tolerance: f64::NAN, ..good.clone() },
    ] {
        assert!(matches!(decompose(&rest, &frames, &bad, |_| true), Err(DecompositionError::Setting { .. })));
    }
    let far = [Vec3::ZERO, Vec3::X * 1e20, Vec3::Y];
    let error = decompose(&rest, &[&far], &good, |_| true);
    assert!(matches!(error, Err(DecompositionError::TooFar { frame: Some(0), vertex: 1, .. })), "{error:?}");
    let (rest, frames) = noise(40, 6, 1);
    let settings = DecompositionSettings { bones: 3, ..good };
    let stopped = decompose(&rest, &views(&frames), &settings, |progress| progress.iteration < 2);
    let stopped = stopped.expect("what there is is good");
    assert_eq!((stopped.stop, stopped.iterations), (Stop::Asked, 2));
    assert_laws(&stopped, &frames, &settings);
    // Before the first iteration as well, while bones are still found: with those that there are.
    let mut splits = 0;
    let early = decompose(&rest, &views(&frames), &settings, |progress| {
        splits += 1;
        assert_eq!(progress.iteration, 0);
        splits < 2
    });
    let early = early.expect("what there is is good");
    assert_eq!((early.stop, early.iterations, early.centres.len()), (Stop::Asked, 0, 2));
    assert_laws(&early, &frames, &DecompositionSettings { bones: 2, ..settings });
}
