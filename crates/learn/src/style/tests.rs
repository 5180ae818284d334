use super::*;
use understudy_core::Random;
use understudy_testkit::gradient::directional_miss;

/// Central differences of sums in f32 over some hundred numbers.
pub(super) const F32_DIFFERENCE: f64 = 2e-2;

pub(super) fn noise(shape: [usize; 4], seed: u64) -> Tensor {
    let mut random = Random::new(seed);
    let count = shape.iter().product();
    Tensor::new(shape, (0..count).map(|_| random.normal() as f32).collect())
}

/// `Σ k · value`, in f64.
fn dot(a: &Tensor, b: &Tensor) -> f64 {
    a.data().iter().zip(b.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

pub(super) fn to_f64(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

pub(super) fn to_f32(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// Checks derivatives by inputs of these shapes and by parameters, of a random sum of what `run` gives.
pub(super) fn check(
    shapes: &[[usize; 4]],
    mode: Mode,
    build: impl Fn(&mut Parameters, &mut Random) -> Vec<Slot>,
    run: impl Fn(&mut Tape<'_>, &[Var], &[Slot]) -> Var,
) {
    let mut parameters = Parameters::default();
    let slots = build(&mut parameters, &mut Random::new(5));
    let inputs: Vec<Tensor> = shapes.iter().zip(0..).map(|(shape, seed)| noise(*shape, 10 + seed)).collect();
    let counts: Vec<usize> = inputs.iter().map(|input| input.data().len()).collect();
    let all: Vec<f32> =
        inputs.iter().flat_map(|input| input.data()).chain(parameters.values()).copied().collect();
    let evaluate = |all: &[f32], wants: bool| {
        let mut own = parameters.clone();
        let mut rest = all;
        let mut inputs = Vec::new();
        for (shape, count) in shapes.iter().zip(&counts) {
            let (head, tail) = rest.split_at(*count);
            inputs.push(Tensor::new(*shape, head.to_vec()));
            rest = tail;
        }
        own.values_mut().copy_from_slice(rest);
        let mut tape = Tape::new(&own, mode);
        let vars: Vec<Var> = inputs.into_iter().map(|input| tape.input(input)).collect();
        let out = run(&mut tape, &vars, &slots);
        let weights = noise(tape.value(out).shape(), 77);
        let cost = dot(tape.value(out), &weights);
        let gradient = wants.then(|| {
            let gradients = tape.backward(vec![(out, weights)]);
            let mut all = Vec::new();
            for (var, count) in vars.iter().zip(&counts) {
                match gradients.of(*var) {
                    Some(gradient) => all.extend_from_slice(gradient.data()),
                    None => all.resize(all.len() + count, 0.0),
                }
            }
            all.extend_from_slice(&gradients.parameters);
            all
        });
        (cost, gradient)
    };
    let gradient = evaluate(&all, true).1.expect("asked for");
    assert!(gradient.iter().any(|g| *g != 0.0), "something is learned");
    let cost = |x: &[f64]| evaluate(&to_f32(x), false).0;
    let miss = directional_miss(cost, &to_f64(&all), &to_f64(&gradient), 2e-2, 12, 3);
    assert!(miss < F32_DIFFERENCE, "{miss}");
}

#[test]
fn convolutions_have_right_derivatives_at_every_kernel() {
    for (kernel, shape) in [(1, [2, 3, 4, 5]), (3, [3, 2, 5, 4]), (7, [2, 2, 4, 3])] {
        check(
            &[shape],
            Mode::Training,
            |p, r| vec![p.normal(4 * shape[1] * kernel * kernel, 0.4, r), p.normal(4, 0.4, r)],
            |tape, x, slots| tape.convolution(x[0], slots[0], Some(slots[1]), kernel),
        );
    }
}

#[test]
fn a_convolution_is_the_sum_that_it_says() {
    let (x, weights) = (noise([2, 3, 6, 5], 1), noise([4, 3, 3, 3], 2));
    let out = convolution::forward(&x, weights.data(), Some(&[0.5, 0.0, -1.0, 2.0]), 3);
    for (image, channel, row, column) in [(0, 0, 0, 0), (1, 3, 5, 4), (1, 2, 3, 0), (0, 1, 2, 2)] {
        let mut sum = [0.5, 0.0, -1.0, 2.0][channel];
        for input in 0..3 {
            for (down, right) in (0..3).flat_map(|down| (0..3).map(move |right| (down, right))) {
                let (y, x_at) = (row + down, column + right);
                if (1..=6).contains(&y) && (1..=5).contains(&x_at) {
                    sum += weights.plane(channel, input)[3 * down + right]
                        * x.plane(image, input)[(y - 1) * 5 + x_at - 1];
                }
            }
        }
        let got = out.plane(image, channel)[row * 5 + column];
        assert!((got - sum).abs() < 1e-4, "{got} {sum}");
    }
}

#[test]
fn batch_norm_has_right_derivatives_in_training_and_in_use() {
    for mode in [Mode::Training, Mode::Use] {
        check(
            &[[3, 2, 4, 3]],
            mode,
            |p, r| {
                p.running(2);
                vec![p.normal(2, 1.0, r), p.normal(2, 1.0, r)]
            },
            |tape, x, slots| tape.norm(x[0], slots[0], slots[1], RunningSlot { start: 0, channels: 2 }),
        );
    }
}

#[test]
fn the_rest_of_the_operations_have_right_derivatives() {
    let none = |_: &mut Parameters, _: &mut Random| Vec::new();
    let two = [[2, 3, 4, 4], [2, 3, 4, 4]];
    check(&[two[0]], Mode::Use, none, |tape, x, _| tape.sigmoid(x[0]));
    check(&two, Mode::Use, none, |tape, x, _| tape.add(x[0], x[1]));
    check(&two, Mode::Use, none, |tape, x, _| tape.multiply(x[0], x[1]));
    check(&[two[0], [2, 1, 4, 4]], Mode::Use, none, |tape, x, _| tape.multiply(x[0], x[1]));
    check(&[two[0], [2, 1, 4, 4]], Mode::Use, none, |tape, x, _| tape.concat(&[x[0], x[1], x[0]]));
    check(&[two[0]], Mode::Use, none, |tape, x, _| tape.halved(x[0]));
    check(&[two[0]], Mode::Use, none, |tape, x, _| tape.doubled(x[0]));
    check(&[two[0]], Mode::Use, none, |tape, x, _| tape.softmax(x[0]));
    check(&[two[0]], Mode::Use, none, |tape, x, _| {
        let maps = tape.softmax(x[0]);
        tape.expected(maps)
    });
    check(&[two[0], [2, 12, 4, 4]], Mode::Use, none, |tape, x, _| {
        let maps = tape.softmax(x[0]);
        tape.averaged(maps, x[1])
    });
    // Away from the kink.
    check(&[two[0]], Mode::Use, none, |tape, x, _| {
        let up = tape.constant(Tensor::new(two[0], vec![6.0; 96]));
        let above = tape.add(x[0], up);
        let down = tape.constant(Tensor::new(two[0], vec![-6.0; 96]));
        let below = tape.add(x[0], down);
        let (above, below) = (tape.leaky(above, 0.1), tape.leaky(below, 0.1));
        tape.add(above, below)
    });
}

#[test]
fn samples_have_right_derivatives_of_picture_and_place() {
    let none = |_: &mut Parameters, _: &mut Random| Vec::new();
    // Places near the middles between pixels, where nothing jumps within the checker's step.
    let middles: Vec<f32> = (0..2 * 2 * 9).map(|k| [-0.5f32, 0.0, 0.5][(k * 7 / 3) % 3]).collect();
    check(&[[2, 3, 4, 4], [2, 2, 3, 3]], Mode::Use, none, |tape, x, _| {
        let small = tape.constant(Tensor::new([2, 2, 3, 3], vec![0.05; 36]));
        let little = tape.multiply(x[1], small);
        let middles = tape.constant(Tensor::new([2, 2, 3, 3], middles.clone()));
        let grid = tape.add(middles, little);
        tape.sampled(x[0], grid)
    });
    let parameters = Parameters::default();
    let mut tape = Tape::new(&parameters, Mode::Use);
    let picture = noise([1, 2, 3, 4], 1);
    let x = tape.constant(picture.clone());
    let places = (0..24).map(|k| match k < 12 {
        true => heat_maps::cell(k % 4, 4),
        false => heat_maps::cell((k - 12) / 4, 3),
    });
    let grid = tape.constant(Tensor::new([1, 2, 3, 4], places.collect()));
    let same = tape.sampled(x, grid);
    let off = tape.value(same).data().iter().zip(picture.data()).map(|(a, b)| (a - b).abs());
    assert!(off.fold(0.0, f32::max) < 1e-5, "the middles of pixels give the picture");
}

#[test]
fn the_loss_of_heat_maps_has_the_right_derivative() {
    let logits = noise([2, 3, 5, 6], 4);
    let targets = [
        Target::At([0.2, -0.3]),
        Target::Nowhere,
        Target::Unknown,
        Target::At([-0.7, 0.6]),
        Target::At([1.4, 0.0]),
        Target::Nowhere,
    ];
    let loss = HeatMapLoss { spread: 1.2, place: 0.7 };
    let (_, gradient) = loss.evaluate(&logits, &targets);
    let cost = |x: &[f64]| loss.evaluate(&Tensor::new([2, 3, 5, 6], to_f32(x)), &targets).0;
    let miss = directional_miss(cost, &to_f64(logits.data()), &to_f64(gradient.data()), 1e-2, 12, 1);
    assert!(miss < F32_DIFFERENCE, "{miss}");
    let maps = noise([1, 1, 5, 6], 9);
    let (at_peak, _) = loss.evaluate(&maps, &[Target::Unknown]);
    assert_eq!(at_peak, 0.0);
}

pub(super) fn tiny() -> HourglassShape {
    HourglassShape { side: 16, channels: vec![6, 8, 12], heat_level: 1, points: 2, scores: 1 }
}

/// A bright and a dark spot on a grey picture; the score is whether the bright one is on the right.
fn spots(count: usize, random: &mut Random) -> HourglassBatch {
    let mut batch =
        HourglassBatch { pictures: Tensor::zeros([count, 3, 16, 16]), ..HourglassBatch::default() };
    for image in 0..count {
        let places = [0; 2].map(|_| [0; 2].map(|_| random.uniform(-0.7, 0.7)));
        for (index, value) in batch.pictures.data_mut()[image * 768..][..768].iter_mut().enumerate() {
            let pixel = [heat_maps::cell(index % 16, 16), heat_maps::cell(index % 256 / 16, 16)];
            let heat = |place: [f32; 2]| {
                (-((pixel[0] - place[0]).powi(2) + (pixel[1] - place[1]).powi(2)) / 0.02).exp()
            };
            *value = heat(places[0]) - heat(places[1]) + 0.05 * random.normal() as f32;
        }
        batch.targets.extend(places.map(Target::At));
        batch.scores.push(if places[0][0] > 0.0 { 1.0 } else { 0.0 });
    }
    batch
}

fn error(net: &Hourglass, batch: &HourglassBatch) -> f32 {
    let answer = net.look(batch.pictures.clone());
    let images = batch.pictures.shape()[0];
    let found: Vec<Found> = (0..images).flat_map(|image| answer.points(image)).collect();
    let off = found.iter().zip(&batch.targets).map(|(found, target)| match target {
        Target::At(place) => (found.place[0] - place[0]).hypot(found.place[1] - place[1]),
        _ => 0.0,
    });
    off.sum::<f32>() / found.len() as f32
}

#[test]
fn a_tiny_net_learns_where_spots_are() {
    let mut trainer = HourglassTrainer::new(
        Hourglass::new(tiny(), 1).expect("a shape"),
        HeatMapLoss { spread: 1.0, place: 0.5 },
    );
    let test = spots(32, &mut Random::new(99));
    let before = error(trainer.net(), &test);
    let mut random = Random::new(7);
    for step in 0..150 {
        trainer.step(&spots(16, &mut random), if step < 110 { 8e-3 } else { 1e-3 });
    }
    let after = error(trainer.net(), &test);
    assert!(after < 0.2 * before && after < 0.08, "{before} to {after}");
    let answer = trainer.net().look(test.pictures.clone());
    let right = (0..32).filter(|image| (answer.scores(*image)[0] > 0.5) == (test.scores[*image] > 0.5));
    assert!(right.count() >= 26);
}

#[test]
fn the_same_seed_learns_the_same_on_any_threads_and_after_a_checkpoint() {
    let loss = HeatMapLoss { spread: 1.0, place: 0.5 };
    let run = |threads: usize, stop: Option<usize>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut trainer = HourglassTrainer::new(Hourglass::new(tiny(), 1).expect("a shape"), loss);
            for step in 0..6u64 {
                if Some(step as usize) == stop {
                    let (values, running) = trainer.net().numbers();
                    let averages = trainer.averages().map(<[f32]>::to_vec);
                    let mut other = HourglassTrainer::new(Hourglass::new(tiny(), 2).expect("a shape"), loss);
                    other.restore(values, running, averages, trainer.steps()).expect("of this net");
                    trainer = other;
                }
                trainer.step(&spots(9, &mut Random::new(step)), 1e-2);
            }
            let (values, running) = trainer.net().numbers();
            (values.to_vec(), running.to_vec())
        })
    };
    let one = run(1, None);
    assert!(one == run(3, None) && one == run(2, Some(4)));
    let mut net = Hourglass::new(tiny(), 1).expect("a shape");
    assert!(net.restore(&one.0[1..], &one.1).is_err());
    assert!(net.restore(&vec![f32::NAN; one.0.len()], &one.1).is_err());
}

#[test]
fn shapes_that_no_net_has_are_told() {
    let wrong = |change: fn(&mut HourglassShape)| {
        let mut shape = tiny();
        change(&mut shape);
        let text = Hourglass::new(shape, 1).expect_err("no such net").to_string();
        assert!(!text.contains('\n'), "{text}");
    };
    wrong(|shape| shape.side = 18);
    wrong(|shape| shape.side = 0);
    wrong(|shape| shape.channels.clear());
    wrong(|shape| shape.channels[1] = 0);
    wrong(|shape| shape.heat_level = 3);
    wrong(|shape| shape.points = 0);
    wrong(|shape| shape.scores = usize::MAX);
}
