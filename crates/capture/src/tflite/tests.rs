//! Networks on random numbers: joined steps and fast kernels against plain ones, damaged files, and models that cannot be.

use super::Network;
use super::kernels::{Activation, Convolution, Depthwise, Elementwise, Lanes, MaxPool};
use super::model::Binary;
use understudy_core::Random;
use understudy_io::zip;
use understudy_testkit::{Tol, shared_data};

fn random(random: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.uniform(-1.0, 1.0)).collect()
}

/// A convolution as it is defined, one number after another, in double precision.
fn plainly(c: &Convolution, weights: &[f32], bias: &[f32], x: &[f32], residual: Option<&[f32]>) -> Vec<f32> {
    let [height, width, depth] = c.input;
    let channels = bias.len();
    let mut out = Vec::new();
    for row in 0..c.output[0] {
        for column in 0..c.output[1] {
            for channel in 0..channels {
                let mut sum = f64::from(bias[channel]);
                for i in 0..c.window[0] {
                    for j in 0..c.window[1] {
                        let y = (row * c.stride[0] + i * c.dilation[0]) as i64 - c.before[0] as i64;
                        let z = (column * c.stride[1] + j * c.dilation[1]) as i64 - c.before[1] as i64;
                        if y < 0 || z < 0 || y >= height as i64 || z >= width as i64 {
                            continue;
                        }
                        for k in 0..depth {
                            let from = x[(y as usize * width + z as usize) * depth + k];
                            let weight = weights[((channel * c.window[0] + i) * c.window[1] + j) * depth + k];
                            sum += f64::from(from) * f64::from(weight);
                        }
                    }
                }
                sum += residual.map_or(0.0, |residual| f64::from(residual[out.len()]));
                let slope = match &c.activation {
                    Activation::None => 1.0,
                    Activation::Relu | Activation::Relu6 => 0.0,
                    Activation::Prelu(slopes) => f64::from(slopes[channel]),
                };
                let most = if c.activation == Activation::Relu6 { 6.0 } else { f64::INFINITY };
                out.push((sum.max(0.0) + slope * sum.min(0.0)).min(most) as f32);
            }
        }
    }
    out
}

#[test]
fn convolutions_are_what_they_are_defined_as_at_every_edge_of_the_lanes() {
    let mut generator = Random::new(5);
    // Channels in and out around 8 and 16, rows around 6 and 8, windows with and without borders, strides, dilation.
    for (index, (channels, depth)) in
        [(1, 1), (7, 3), (8, 8), (9, 5), (16, 8), (17, 16), (33, 2), (96, 7)].into_iter().enumerate()
    {
        for (window, stride, dilation, before) in [
            ([1, 1], [1, 1], [1, 1], [0, 0]),
            ([3, 3], [1, 1], [1, 1], [1, 1]),
            ([3, 3], [2, 2], [1, 1], [0, 0]),
            ([2, 2], [2, 2], [1, 1], [0, 0]),
            ([3, 2], [1, 1], [2, 1], [2, 0]),
        ] {
            let input = [7 + index % 3, 9, depth];
            let size = |axis: usize| {
                (input[axis] + 2 * before[axis] - (window[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1
            };
            let output = [size(0), size(1)];
            let activation = match index % 4 {
                0 => Activation::None,
                1 => Activation::Relu,
                2 => Activation::Relu6,
                _ => Activation::Prelu(random(&mut generator, channels)),
            };
            let weights = random(&mut generator, channels * window[0] * window[1] * depth);
            let bias = random(&mut generator, channels);
            let convolution = Convolution::new(
                input, output, window, stride, dilation, before, &weights, &bias, activation,
            );
            let x = random(&mut generator, input.iter().product());
            let count = output[0] * output[1] * channels;
            let residual = (index % 2 == 1).then(|| random(&mut generator, count));
            let want = plainly(&convolution, &weights, &bias, &x, residual.as_deref());
            let mut scratch = vec![0.0; convolution.scratch()];
            for lanes in [Lanes::Portable, Lanes::detect()] {
                let mut out = vec![f32::NAN; count];
                convolution.run(lanes, &x, residual.as_deref(), &mut out, &mut scratch);
                let most = window[0] * window[1] * depth + 2;
                for (place, (out, want)) in out.iter().zip(&want).enumerate() {
                    let off = (out - want).abs();
                    assert!(
                        off <= most as f32 * Tol::f32_sum(most),
                        "{lanes:?} {channels} {window:?} at {place}: {out} {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn depthwise_convolutions_are_convolutions_of_one_channel_each() {
    let mut generator = Random::new(6);
    for channels in [1, 7, 8, 9, 24] {
        for (stride, before) in [([1, 1], [1, 1]), ([2, 2], [0, 0])] {
            let input = [6, 5, channels];
            let output = if stride == [1, 1] { [6, 5] } else { [2, 2] };
            let (weights, bias) = (random(&mut generator, 9 * channels), random(&mut generator, channels));
            let depthwise = Depthwise {
                input,
                output,
                window: [3, 3],
                stride,
                dilation: [1, 1],
                before,
                weights: weights.clone(),
                bias: bias.clone(),
                activation: Activation::Prelu(random(&mut generator, channels)),
            };
            let x = random(&mut generator, input.iter().product());
            for lanes in [Lanes::Portable, Lanes::detect()] {
                let mut out = vec![f32::NAN; output[0] * output[1] * channels];
                depthwise.run(lanes, &x, &mut out);
                for channel in 0..channels {
                    let pick = |all: &[f32]| -> Vec<f32> {
                        all.iter().skip(channel).step_by(channels).copied().collect()
                    };
                    let Activation::Prelu(slopes) = &depthwise.activation else {
                        unreachable!("it was made so")
                    };
                    let activation = Activation::Prelu(vec![slopes[channel]]);
                    let (weights, bias) = (pick(&weights), [bias[channel]]);
                    let single = Convolution::new(
                        [6, 5, 1],
                        output,
                        [3, 3],
                        stride,
                        [1, 1],
                        before,
                        &weights,
                        &bias,
                        activation,
                    );
                    let want = plainly(&single, &weights, &bias, &pick(&x), None);
                    let worst = pick(&out).iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(worst <= 10.0 * Tol::f32_sum(10), "{lanes:?} {channels} {channel}: {worst}");
                }
            }
        }
    }
}

#[test]
fn tensors_of_two_shapes_are_stretched_to_each_other() {
    let run = |a: &[usize], b: &[usize], shape: &[usize]| {
        let numbers =
            |shape: &[usize]| (0..shape.iter().product::<usize>()).map(|i| i as f32).collect::<Vec<_>>();
        let made = Elementwise::new(Binary::Subtract, [a, b], shape, Activation::None).expect("they fit");
        let mut out = vec![f32::NAN; shape.iter().product()];
        made.run(&numbers(a), &numbers(b), &mut out, 1);
        out
    };
    assert_eq!(run(&[2, 2], &[2, 2], &[2, 2]), [0.0; 4]);
    assert_eq!(run(&[2, 3], &[3], &[2, 3]), [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
    assert_eq!(run(&[2, 3], &[2, 1], &[2, 3]), [0.0, 1.0, 2.0, 2.0, 3.0, 4.0]);
    assert_eq!(run(&[], &[2], &[2]), [0.0, -1.0]);
    assert_eq!(
        run(&[2, 1, 2], &[1, 3, 1], &[2, 3, 2]),
        [0.0, 1.0, -1.0, 0.0, -2.0, -1.0, 2.0, 3.0, 1.0, 2.0, 0.0, 1.0]
    );
    assert!(Elementwise::new(Binary::Add, [&[2], &[3]], &[3], Activation::None).is_none());
}

#[test]
fn the_largest_of_a_window_minds_no_border() {
    let pool = MaxPool {
        input: [3, 3, 1],
        output: [2, 2],
        window: [2, 2],
        stride: [2, 2],
        before: [0, 0],
        activation: Activation::None,
    };
    let mut out = [0.0; 4];
    pool.run(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0], &mut out);
    assert_eq!(out, [-1.0, -3.0, -7.0, -9.0]);
}

/// The nets of a real `.task` file, where it is at hand.
fn nets() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = shared_data() else { return Vec::new() };
    let task = std::fs::read(folder.join("mediapipe/face_landmarker_v2_with_blendshapes_float16.task"));
    let task = task.expect("the shared data has it");
    let members = zip::members(&task).expect("an archive");
    let nets = members.iter().filter(|member| member.name.ends_with(".tflite"));
    nets.map(|member| (member.name.clone(), zip::unpack(&task, member).expect("whole"))).collect()
}

#[test]
fn joined_steps_and_fast_kernels_change_nothing() {
    for (name, bytes) in nets() {
        let mut plain = Network::parse_plainly(&bytes).expect("a model");
        let mut fast = Network::parse(&bytes).expect("a model");
        let mut generator = Random::new(9);
        for _ in 0..2 {
            let x = random(&mut generator, plain.input().len());
            for network in [&mut plain, &mut fast] {
                network.input().copy_from_slice(&x);
                network.run();
            }
            for index in 0..plain.outputs().count() {
                let (a, b) = (plain.output(index).expect("there"), fast.output(index).expect("there"));
                let size = a.iter().fold(1.0f32, |most, x| most.max(x.abs()));
                let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(worst <= size * Tol::f32_sum(4000), "{name}, output {index}: {worst} of {size}");
            }
        }
    }
}

#[test]
fn all_models_at_hand_are_read_or_refused_by_name() {
    let Some(folder) = shared_data() else { return };
    let read = |name: &str| {
        let bytes = std::fs::read(folder.join("mediapipe").join(name)).expect("the shared data has it");
        Network::parse(&bytes)
    };
    for name in ["face_detection_short_range.tflite", "face_landmark.tflite", "iris_landmark.tflite"] {
        let mut network = read(name).expect(name);
        network.input().fill(0.5);
        network.run();
        let finite = (0..network.outputs().count())
            .all(|index| network.output(index).expect("there").iter().all(|x| x.is_finite()));
        assert!(finite, "{name}");
    }
    let error = read("face_landmark_with_attention.tflite").expect_err("has operators of its own");
    assert!(error.problem.contains("custom operator"), "{error}");
}

#[test]
fn damaged_models_are_refused_or_run_but_never_panic() {
    for (name, bytes) in nets() {
        let mut generator = Random::new(11);
        for end in [0, 4, 8, 9, 100, bytes.len() / 2, bytes.len() - 1] {
            // The last bytes of a model may be padding.
            let read = Network::parse(&bytes[..end]);
            assert!(read.is_err() || end == bytes.len() - 1, "{name} cut at {end}");
        }
        // Tables lie at the end and at the start, constants between: both ends are hit more often.
        for round in 0..60 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + generator.below(4) {
                let reach = if round % 2 == 0 { 4000.min(damaged.len()) } else { damaged.len() };
                let from_end = generator.below(2) == 0;
                let place = generator.below(reach);
                let place = if from_end { damaged.len() - 1 - place } else { place };
                damaged[place] = generator.below(256) as u8;
            }
            if let Ok(mut network) = Network::parse(&damaged) {
                network.input().fill(0.25);
                network.run();
            }
        }
    }
}
