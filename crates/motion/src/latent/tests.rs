//! Laws of latent spaces on small clips.

use super::*;
use understudy_core::Random;
use understudy_testkit::gradient::directional_miss;

/// Two clips on one curve in five dimensions: the second is the first, a little beside it.
fn clips(frames: usize) -> (Vec<Vec<f64>>, Vec<usize>) {
    let at = |t: f64, beside: f64| {
        vec![3.0 * t.cos(), 3.0 * t.sin(), (2.0 * t).sin() + beside, 0.5 * (3.0 * t).cos(), 0.3 * t]
    };
    let one = |beside: f64| (0..frames).map(move |i| at(i as f64 * 0.12, beside));
    (one(0.0).chain(one(0.2)).collect(), vec![frames, frames])
}

/// The gradient of everything, and the hyper-parameters by themselves: among many points their share would not show.
fn check(inducing: usize, priors: PriorConfig) {
    let (outputs, lengths) = clips(8);
    let flat: Vec<f64> = outputs.iter().flatten().copied().collect();
    let (n, q, d) = (16, 3, 5);
    let objective = Objective::new(&flat, d, &lengths, q, inducing, priors).expect("sound");
    let mut random = Random::new(9);
    let mut x: Vec<f64> = (0..(n + inducing) * q).map(|_| random.normal()).collect();
    x.extend([0.3, -0.2, -2.0]);
    let mut gradient = vec![0.0; x.len()];
    objective.cost(&x, &mut gradient);
    let value = |x: &[f64]| objective.cost(x, &mut vec![0.0; x.len()]);
    let miss = directional_miss(value, &x, &gradient, 1e-5, 16, 1);
    assert!(miss < 1e-5, "{miss}");
    for which in x.len() - 3..x.len() {
        let mut moved = x.clone();
        let mut at = |h: f64| {
            moved[which] = x[which] + h;
            value(&moved)
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        let own = gradient[which];
        assert!((slope - own).abs() < 1e-4 * (1.0 + own.abs()), "{which}: {slope} {own}");
    }
}

#[test]
fn the_whole_objective_meets_the_gradient_checker() {
    let priors = PriorConfig { connectivity: 0.6, diffusion: 0.3, ..PriorConfig::default() };
    check(0, priors);
    check(6, priors);
    check(5, PriorConfig { dynamics: 0.0, connectivity: 0.0, ..priors });
    check(0, PriorConfig { nodes: 5, ..priors });
}

#[test]
fn the_sparse_bound_lies_below_and_touches_where_the_inducing_points_are_the_frames() {
    let (outputs, _) = clips(12);
    let flat: Vec<f64> = outputs.iter().flatten().copied().collect();
    let x = first_points(&outputs, 2);
    let kernel = Covariance { variance: 1.3, length_squared: 0.8, white: 0.05 };
    let dense = dense::likelihood(&kernel, &x, &flat, 2, &mut vec![0.0; x.len()], &mut Logs::default());
    let dense = dense.expect("positive definite");
    let bound = |z: &[f64]| {
        let (mut by_x, mut by_z) = (vec![0.0; x.len()], vec![0.0; z.len()]);
        let found = sparse::bound(&kernel, &x, z, &flat, 2, &mut by_x, &mut by_z, &mut Logs::default());
        found.expect("positive definite")
    };
    let whole = bound(&x);
    // The bound's K_uu has a jitter of 1e-6 of σ², divided by s² over 24 frames and 5 outputs.
    assert!((whole - dense).abs() < 1e-2, "{whole} {dense}");
    let mut last = whole;
    for count in [16, 8, 4] {
        let chosen = sparse::spread(&x, 2, count);
        let z: Vec<f64> = chosen.iter().flat_map(|i| x[i * 2..i * 2 + 2].to_vec()).collect();
        let value = bound(&z);
        assert!(value <= dense + 1e-6 && value <= last + 1e-6, "{count}: {value} after {last}");
        last = value;
    }
}

#[test]
fn a_learned_space_gives_its_poses_back_and_knows_where_they_are() {
    let (outputs, lengths) = clips(30);
    for inducing in [None, Some(20)] {
        let config = LatentConfig { dimensions: 2, iterations: 120, inducing, ..LatentConfig::default() };
        let (space, learned) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
        assert!(learned.after > learned.before, "{learned:?}");
        let miss = |(frame, output): (usize, &Vec<f64>)| {
            squared_distance(&space.mean(space.point(frame)), output).sqrt()
        };
        let worst = outputs.iter().enumerate().map(miss).fold(0.0, f64::max);
        assert!(worst < 0.35, "{inducing:?}: {worst}");
        let far = vec![50.0, 50.0];
        let (inside, outside) = (space.density(space.point(10)), space.density(&far));
        assert!(inside.0 > outside.0 && outside.1.iter().all(|g| *g == 0.0), "far away nothing pulls");
        assert!(
            space.variance(&far) > space.variance(space.point(10)) && space.variance(space.point(3)) > 0.0
        );
        let x: Vec<f64> = space.point(7).iter().map(|v| v + 0.3).collect();
        let (_, gradient) = space.density(&x);
        // The variance is a small difference of large numbers: shorter steps would measure its rounding.
        let miss = directional_miss(|x| space.density(x).0, &x, &gradient, 1e-3, 6, 2);
        assert!(miss < 1e-3, "density: {miss}");
    }
}

#[test]
fn the_dynamics_prior_keeps_consecutive_frames_close() {
    let (mut outputs, lengths) = clips(30);
    let mut random = Random::new(4);
    outputs.iter_mut().flatten().for_each(|value| *value += 0.25 * random.normal());
    let step = |dynamics| {
        let priors = PriorConfig { dynamics, ..PriorConfig::default() };
        let config = LatentConfig { dimensions: 2, iterations: 100, priors, ..LatentConfig::default() };
        let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
        space.consecutive(&lengths)
    };
    let (with, without) = (step(1.0), step(0.0));
    assert!(with < without, "from frame to frame: {with} with, {without} without the prior");
}

/// Four performances of one movement in sixteen dimensions, each with its own speed, strength and posture.
fn performances(seed: u64) -> (Vec<Vec<f64>>, Vec<usize>) {
    let mut random = Random::new(seed);
    let (d, frames) = (16, 30);
    let mut draw = |size: f64| size * random.normal();
    let shape: Vec<[f64; 4]> =
        (0..d).map(|k| [draw(1.0), draw(1.0), draw(1.0), 1.5 / (1.0 + 0.3 * f64::from(k))]).collect();
    let mut outputs = Vec::new();
    for _ in 0..4 {
        let speed = 1.0 + draw(0.1);
        let own: Vec<[f64; 2]> = (0..d).map(|_| [1.0 + draw(0.15), draw(0.25)]).collect();
        for frame in 0..frames {
            let t = f64::from(frame) / f64::from(frames) * speed * 6.0;
            let waves = [1.0 - t.cos(), (1.3 * t).sin(), (0.7 * t).cos()];
            let value = |([a, b, c, size], [strength, posture]): (&[f64; 4], &[f64; 2])| {
                size * (strength * (a * waves[0] + b * waves[1] + c * waves[2]) + posture)
            };
            outputs.push(shape.iter().zip(&own).map(value).collect());
        }
    }
    (outputs, vec![frames as usize; 4])
}

#[test]
fn the_connectivity_prior_brings_like_poses_of_different_clips_together() {
    // Where a search ends is a matter of its start too: several sets of clips, and their mean.
    const SETS: u64 = 6;
    // A weight that outdoes the likelihood's own pull, and a small ε; the default is what serves real clips.
    let own = PriorConfig { connectivity: 3.0, guard: 0.03, ..PriorConfig::default() };
    let (mut near, mut next, mut gap) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for seed in 7..7 + SETS {
        let (outputs, lengths) = performances(seed);
        for (place, connectivity) in [own.connectivity, 0.0].into_iter().enumerate() {
            let priors = PriorConfig { connectivity, ..own };
            let config = LatentConfig { iterations: 80, priors, ..LatentConfig::default() };
            let (space, _) = LatentSpace::learn(&outputs, &lengths, &config, |_, _| true).expect("learns");
            near[place] += space.kinship(&outputs, &lengths).expect("four clips") / SETS as f64;
            next[place] += space.consecutive(&lengths) / SETS as f64;
            gap[place] += space.widest_gap() / SETS as f64;
        }
    }
    assert!(gap[0] < 0.95 * gap[1], "the widest gap between frames, with and without the prior: {gap:?}");
    assert!(near[0] < 0.9 * near[1], "like poses of other clips, with and without the prior: {near:?}");
    assert!(next[0] < 1.3 * next[1], "and frames stay by the next: {next:?}");
}

#[test]
fn bad_data_is_refused_and_identical_clips_are_not() {
    let config = LatentConfig { iterations: 20, ..LatentConfig::default() };
    let one = LatentSpace::learn(&[vec![1.0]], &[1], &config, |_, _| true);
    assert_eq!(one.expect_err("one frame"), MotionError::TooFew { frames: 1 });
    let still = LatentSpace::learn(&[vec![0.0; 3], vec![0.0; 3]], &[2], &config, |_, _| true);
    assert_eq!(still.expect_err("nothing moves"), MotionError::Still);
    let (half, _) = clips(10);
    let twice: Vec<Vec<f64>> = half[..10].iter().chain(&half[..10]).cloned().collect();
    let (space, _) = LatentSpace::learn(&twice, &[10, 10], &config, |_, _| true).expect("identical clips");
    assert!(space.mean(space.point(3)).iter().all(|v| v.is_finite()));
}
