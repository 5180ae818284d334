use super::first_order::moved;
use super::heat_maps::cell;
use super::losses::TransferLoss;
use super::tests::{F32_DIFFERENCE, check, noise, tiny, to_f32, to_f64};
use super::*;
use understudy_core::Random;
use understudy_testkit::gradient::directional_miss;

fn none(_: &mut Parameters, _: &mut Random) -> Vec<Slot> {
    Vec::new()
}

/// Jacobians near the identity, so that none folds.
fn upright(tape: &mut Tape<'_>, x: Var) -> Var {
    let shape = tape.value(x).shape();
    let identity = (0..shape.iter().product()).map(|k| if k % 4 == 0 || k % 4 == 3 { 1.0 } else { 0.0 });
    let identity = tape.constant(Tensor::new(shape, identity.collect()));
    let little = tape.scaled(x, 0.2);
    tape.add(little, identity)
}

#[test]
fn motions_have_right_derivatives() {
    let (points, matrices) = ([2, 3, 2, 1], [2, 3, 4, 1]);
    check(&[points], Mode::Use, none, |tape, x, _| tape.scaled(x[0], -1.7));
    check(&[matrices, matrices], Mode::Use, none, |tape, x, _| {
        let (a, b) = (upright(tape, x[0]), upright(tape, x[1]));
        tape.divided(a, b)
    });
    check(&[points], Mode::Use, none, |tape, x, _| {
        let near = tape.scaled(x[0], 0.5);
        tape.bells(near, [4, 5], 0.3)
    });
    check(&[points, matrices, points], Mode::Use, none, |tape, x, _| tape.motions(x[0], x[1], x[2], [3, 4]));
    check(&[[2, 4, 3, 3]], Mode::Use, none, |tape, x, _| tape.shares(x[0]));
    check(&[[2, 4, 3, 3], [2, 8, 3, 3]], Mode::Use, none, |tape, x, _| tape.mixed(x[0], x[1]));
}

#[test]
fn motions_carry_a_key_point_onto_its_source() {
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters, Mode::Use);
    // The middle of a pixel of a map of 4 × 4.
    let to = tape.constant(Tensor::new([1, 1, 2, 1], vec![cell(2, 4), cell(1, 4)]));
    let from = tape.constant(Tensor::new([1, 1, 2, 1], vec![-0.3, 0.9]));
    let turn = tape.constant(Tensor::new([1, 1, 4, 1], vec![0.0, -1.0, 1.0, 0.0]));
    let motions = tape.motions(from, turn, to, [4, 4]);
    let value = tape.value(motions);
    assert!((value.plane(0, 2)[6] + 0.3).abs() < 1e-6 && (value.plane(0, 3)[6] - 0.9).abs() < 1e-6);
    // A pixel to the right is seen below.
    assert!((value.plane(0, 3)[7] - value.plane(0, 3)[6] - 0.5).abs() < 1e-6);
    assert_eq!(value.plane(0, 0)[1], cell(1, 4));
}

#[test]
fn bent_pictures_have_right_slopes_and_curvatures() {
    let bend = ThinPlate::random(0.1, 0.05, &mut Random::new(4));
    for place in [[0.21f64, -0.37], [-0.72, 0.11], [0.9, 0.83]] {
        let at = |x: &[f64]| bend.at([x[0] as f32, x[1] as f32]);
        let here = at(&place);
        for row in 0..2 {
            let slope = to_f64(&here.slope[2 * row..2 * row + 2]);
            let cost = |x: &[f64]| f64::from(at(x).place[row]);
            assert!(directional_miss(cost, &place, &slope, 5e-3, 6, 1) < F32_DIFFERENCE);
        }
        for entry in 0..4 {
            let slope = to_f64(&[here.curvature[0][entry], here.curvature[1][entry]]);
            let cost = |x: &[f64]| f64::from(at(x).slope[entry]);
            assert!(directional_miss(cost, &place, &slope, 5e-3, 6, 1) < F32_DIFFERENCE);
        }
    }
    let still = ThinPlate::random(0.0, 0.0, &mut Random::new(4));
    assert_eq!(still.at([0.3, -0.2]).place, [0.3, -0.2]);
}

fn eye() -> Features {
    Features::of(Hourglass::new(tiny(), 3).expect("a shape"))
}

fn near_identity(seed: u64) -> Tensor {
    let mut out = noise([2, 3, 4, 1], seed);
    for (k, value) in out.data_mut().iter_mut().enumerate() {
        *value = 0.3 * *value + if k % 4 == 0 || k % 4 == 3 { 1.0 } else { 0.0 };
    }
    out
}

#[test]
fn losses_have_right_derivatives() {
    let (weights, features) = (LossWeights { sharpness: 3.0, ..LossWeights::default() }, eye());
    let loss = TransferLoss { weights: &weights, features: &features };
    let meets = |name: &str, x: &[f32], gradient: &[f32], cost: &dyn Fn(&[f32]) -> f64| {
        let cost = |x: &[f64]| cost(&to_f32(x));
        let miss = directional_miss(cost, &to_f64(x), &to_f64(gradient), 5e-3, 12, 2);
        assert!(miss < F32_DIFFERENCE, "{name}: {miss}");
    };
    let mut points = noise([2, 3, 2, 1], 1);
    points.data_mut().iter_mut().for_each(|value| *value *= 0.4);
    let of = |x: &[f32]| Tensor::new([2, 3, 2, 1], x.to_vec());
    meets("distance", points.data(), loss.distance(&points).1.data(), &|x| loss.distance(&of(x)).0);
    let jacobians = near_identity(2);
    let matrices = |x: &[f32]| Tensor::new([2, 3, 4, 1], x.to_vec());
    meets("regulariser", jacobians.data(), loss.regulariser(&jacobians).1.data(), &|x| {
        loss.regulariser(&matrices(x)).0
    });
    let ground = Tensor::new([2, 1, 8, 8], (0..128).map(|k| (k % 3 % 2) as f32).collect());
    let maps = noise([2, 3, 4, 4], 3);
    meets("ground", maps.data(), loss.ground(&maps, &ground, 1).1.data(), &|x| {
        loss.ground(&Tensor::new([2, 3, 4, 4], x.to_vec()), &ground, 1).0
    });
    // Four things move at once in the equivariance.
    let mut random = Random::new(8);
    let bends = [0; 2].map(|_| ThinPlate::random(0.2, 0.05, &mut random));
    let mut bent = noise([2, 3, 2, 1], 5);
    bent.data_mut().iter_mut().for_each(|value| *value *= 0.4);
    let others = near_identity(6);
    let all = [points.data(), jacobians.data(), bent.data(), others.data()].concat();
    let split = |x: &[f32]| {
        let seen = |x: &[f32]| KeyPoints { points: of(&x[..12]), jacobians: matrices(&x[12..36]) };
        (seen(&x[..36]), seen(&x[36..]))
    };
    let (driving, other) = split(&all);
    let (_, a, b) = loss.equivariance(&driving, &other, &bends);
    let gradient = [a.points.data(), a.jacobians.data(), b.points.data(), b.jacobians.data()].concat();
    meets("equivariance", &all, &gradient, &|x| {
        let (driving, other) = split(x);
        loss.equivariance(&driving, &other, &bends).0.iter().sum()
    });
}

#[test]
fn pictures_are_compared_by_what_the_net_sees_in_the_region_alone() {
    let (weights, features) = (LossWeights::default(), eye());
    let loss = TransferLoss { weights: &weights, features: &features };
    let (drawn, wanted) = (noise([1, 3, 16, 16], 1), noise([1, 3, 16, 16], 2));
    let half = Tensor::new([1, 1, 16, 16], (0..256).map(|k| if k % 16 < 8 { 1.0 } else { 0.0 }).collect());
    for region in [None, Some(&half)] {
        let (_, gradient) = loss.perceptual(&drawn, &wanted, region);
        let cost = |x: &[f64]| loss.perceptual(&Tensor::new([1, 3, 16, 16], to_f32(x)), &wanted, region).0;
        let miss = directional_miss(cost, &to_f64(drawn.data()), &to_f64(gradient.data()), 2e-2, 8, 2);
        assert!(miss < 2.0 * F32_DIFFERENCE, "{miss}");
        if region.is_some() {
            assert!(gradient.plane(0, 1).iter().enumerate().all(|(k, by)| k % 16 < 8 || *by == 0.0));
        }
    }
    assert_eq!(loss.perceptual(&drawn, &drawn, None).0, 0.0);
}

/// A light disc with a dark spot, at a place and of a size, and where there is none of it.
fn disc(place: [f32; 2], size: f32) -> (Vec<f32>, Vec<f32>) {
    let mut picture = vec![0.0; 3 * 576];
    let mut ground = vec![0.0; 576];
    for pixel in 0..576 {
        let at = [cell(pixel % 24, 24) - place[0], cell(pixel / 24, 24) - place[1]];
        let within = at[0].hypot(at[1]) / size;
        let inside = (6.0 * (1.0 - within)).clamp(0.0, 1.0);
        let spot = (8.0 * (0.4 - (at[0] / size - 0.3).hypot(at[1] / size))).clamp(0.0, 1.0);
        ground[pixel] = 1.0 - inside;
        picture[pixel] = inside * (1.0 - 0.8 * spot);
        picture[576 + pixel] = inside * 0.7;
        picture[1152 + pixel] = inside * (0.4 + 0.5 * spot);
    }
    (picture, ground)
}

fn pairs(count: usize, random: &mut Random) -> TransferBatch {
    let (mut source, mut driving, mut ground) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let size = random.uniform(0.4, 0.6);
        let mut place = || [0; 2].map(|_| random.uniform(-0.35, 0.35));
        source.extend(disc(place(), size).0);
        let (picture, none) = disc(place(), size);
        driving.extend(picture);
        ground.extend(none);
    }
    let picture = |data| Tensor::new([count, 3, 24, 24], data);
    TransferBatch {
        source: picture(source),
        driving: picture(driving),
        ground: Some(Tensor::new([count, 1, 24, 24], ground)),
        region: None,
    }
}

fn small() -> FirstOrderShape {
    FirstOrderShape { side: 24, key_points: 3, channels: 6, halvings: 1, blocks: 1 }
}

fn trainer(seed: u64) -> FirstOrderTrainer {
    let model = FirstOrder::new(small(), seed).expect("a shape");
    FirstOrderTrainer::new(model, eye(), LossWeights::default(), 5)
}

#[test]
fn a_small_model_learns_to_move_a_disc() {
    let mut trainer = trainer(1);
    let test = pairs(8, &mut Random::new(99));
    let before = trainer.gradient(&test).0;
    let mut random = Random::new(7);
    for step in 0..120 {
        let losses = trainer.step(&pairs(6, &mut random), if step < 90 { 4e-3 } else { 1e-3 });
        assert!(losses.total().is_finite());
    }
    let after = trainer.gradient(&test).0;
    assert!(after.perceptual < 0.4 * before.perceptual, "{before:?} to {after:?}");
    assert!(after.total() < 0.6 * before.total(), "{before:?} to {after:?}");
}

#[test]
fn training_goes_on_from_a_checkpoint_to_the_same_bytes_on_any_threads() {
    let run = |threads: usize, stop: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut own = trainer(1);
            for step in 0..3 {
                if stop && step == 1 {
                    let (values, running) = own.model().numbers();
                    let averages = own.averages().map(<[f32]>::to_vec);
                    let mut other = trainer(2);
                    other.restore(values, running, averages, own.steps()).expect("of this model");
                    own = other;
                }
                own.step(&pairs(3, &mut Random::new(step)), 1e-3);
            }
            own.model().numbers().0.to_vec()
        })
    };
    let one = run(1, false);
    assert!(one == run(3, false) && one == run(2, true));
}

#[test]
fn an_actor_at_rest_leaves_the_source_as_it_is() {
    let seen = |seed: u64| KeyPoints { points: noise([2, 3, 2, 1], seed), jacobians: near_identity(seed) };
    let (source, rest, driving) = (seen(1), seen(2), seen(3));
    let near = |a: &Tensor, b: &Tensor| {
        a.data().iter().zip(b.data()).all(|(a, b)| (a - b).abs() < 1e-4 * (1.0 + a.abs()))
    };
    let same = moved(&source, &rest, &rest);
    assert!(near(&same.points, &source.points) && near(&same.jacobians, &source.jacobians));
    // A source that shows the actor at rest becomes the driving picture.
    let own = moved(&rest, &rest, &driving);
    assert!(near(&own.points, &driving.points) && near(&own.jacobians, &driving.jacobians));
    let model = FirstOrder::new(small(), 1).expect("a shape");
    let batch = pairs(2, &mut Random::new(1));
    let a = model.transfer(&batch.source, &batch.driving, &batch.driving);
    assert_eq!(a.shape(), [2, 3, 24, 24]);
    assert!(a.data().iter().all(|value| (0.0..=1.0).contains(value)));
}

#[test]
fn regions_are_merged_by_their_masks() {
    let (whole, mouth) = (Tensor::new([1, 2, 1, 2], vec![1.0; 4]), Tensor::new([1, 2, 1, 2], vec![3.0; 4]));
    let mask = Tensor::new([1, 1, 1, 2], vec![1.0, 0.25]);
    assert_eq!(merged(&whole, &[(mouth, mask)]).data(), [3.0, 1.5, 3.0, 1.5]);
}

#[test]
fn shapes_that_no_model_has_are_told() {
    let wrong = |change: fn(&mut FirstOrderShape)| {
        let mut shape = small();
        change(&mut shape);
        assert!(FirstOrder::new(shape, 1).is_err(), "{shape:?}");
    };
    wrong(|shape| shape.side = 20);
    wrong(|shape| shape.key_points = 0);
    wrong(|shape| shape.channels = 1);
    wrong(|shape| shape.halvings = 9);
    wrong(|shape| shape.blocks = 99);
    assert!(FirstOrder::new(FirstOrderShape::test(), 1).is_ok());
    assert!(FirstOrder::new(FirstOrderShape::bench(), 1).is_ok());
}
