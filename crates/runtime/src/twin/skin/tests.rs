//! A small skin twin against plain arithmetic, on every kernel; its file and its derivative.

use super::*;
use crate::{Inputs, Pose, Training, Twin, TwinError};
use understudy_core::{ControlSpec, ControlSpecs, Random};
use understudy_testkit::Tol;
use understudy_testkit::gradient::directional_miss;

const CONTROLS: usize = 5;
const BONES: usize = 6;
const VERTICES: usize = 37;

/// With a motion of the whole and with components, where they are wanted.
fn parts(hidden: &[usize], with_frame: bool, components: usize) -> SkinParts {
    let mut random = Random::new(9);
    let mut numbers = |count: usize, size: f32| -> Vec<f32> {
        (0..count).map(|_| (random.uniform(-size, size) * 64.0).round() / 64.0).collect()
    };
    let inputs = vec![0u32, 1, 3, 4];
    let mut columns = inputs.len();
    let mut layers = Vec::new();
    for &rows in hidden {
        layers.push(DenseParts { weights: numbers(rows * columns, 0.5), bias: numbers(rows, 0.5) });
        columns = rows;
    }
    let read = inputs.len() + hidden.last().copied().unwrap_or(0);
    let rows = BONE_NUMBERS * BONES + components;
    let output = DenseParts { weights: numbers(rows * read, 0.3), bias: numbers(rows, 0.1) };
    let layer = |weights: Vec<f32>, bias: Vec<f32>| DenseParts { weights, bias };
    let frame = with_frame.then(|| MotionParts {
        pivot: Vec3::new(0.0, 1.0, 0.5),
        inputs: vec![2, 1],
        mean: vec![0.0, 0.1],
        scale: vec![1.0, 2.0],
        layers: vec![layer(numbers(6, 1.0), numbers(3, 0.5)), layer(numbers(18, 0.4), numbers(6, 0.2))],
    });
    let points = |count: usize, flat: Vec<f32>| -> Vec<Vec3> {
        (0..count).map(|i| Vec3::from_slice(&flat[3 * i..])).collect()
    };
    let row = |v: usize| {
        let (first, second) = ((v % BONES) as u16, ((v + 2) % BONES) as u16);
        // A packed skin lists the bones of a vertex in ascending order.
        let mut row = vec![(first, 0.75), (second, 0.25)];
        row.sort_by_key(|(bone, _)| *bone);
        if v.is_multiple_of(3) { vec![(first, 1.0)] } else { row }
    };
    let rows: Vec<Vec<(u16, f32)>> = (0..VERTICES).map(row).collect();
    let spec = |c: usize| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0);
    SkinParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 7,
            units: "cm".into(),
            inputs: Inputs {
                bones: Vec::new(),
                controls: ControlSpecs::new((0..CONTROLS).map(spec).collect()).expect("valid controls"),
            },
            training: Training::default(),
        },
        rest_vertices: points(VERTICES, numbers(3 * VERTICES, 8.0)),
        faces: (2..VERTICES as u32).map(|v| Face::triangle(v - 2, v - 1, v)).collect(),
        weights: SkinWeights::from_rows(&rows, BONES).expect("convex rows"),
        centres: points(BONES, numbers(3 * BONES, 6.0)),
        frame,
        mean: numbers(inputs.len(), 0.2),
        scale: numbers(inputs.len(), 2.0),
        inputs,
        hidden: layers,
        output,
        components: numbers(3 * VERTICES * components, 1.0),
    }
}

/// Written down once more, in double precision.
fn plain(parts: &SkinParts, controls: &[f64]) -> Vec<[f64; 3]> {
    let dense = |layer: &DenseParts, x: &[f64]| -> Vec<f64> {
        let row = |r: usize| {
            let weights = &layer.weights[r * x.len()..(r + 1) * x.len()];
            f64::from(layer.bias[r]) + weights.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>()
        };
        (0..layer.bias.len()).map(row).collect()
    };
    let seen = |inputs: &[u32], mean: &[f32], scale: &[f32]| -> Vec<f64> {
        let one = |i: usize| (controls[inputs[i] as usize] - f64::from(mean[i])) * f64::from(scale[i]);
        (0..inputs.len()).map(one).collect()
    };
    let inputs = seen(&parts.inputs, &parts.mean, &parts.scale);
    let mut hidden = inputs.clone();
    for layer in &parts.hidden {
        hidden = dense(layer, &hidden).into_iter().map(f64::tanh).collect();
    }
    let mut features = inputs;
    if !parts.hidden.is_empty() {
        features.extend(hidden);
    }
    let numbers = dense(&parts.output, &features);
    let whole = parts.frame.as_ref().map(|frame| {
        let mut x = seen(&frame.inputs, &frame.mean, &frame.scale);
        for (index, layer) in frame.layers.iter().enumerate() {
            x = dense(layer, &x);
            if index + 1 < frame.layers.len() {
                x.iter_mut().for_each(|x| *x = x.tanh());
            }
        }
        let turn = understudy_core::DQuat::from_scaled_axis(understudy_core::DVec3::from_slice(&x));
        (turn, understudy_core::DVec3::from_slice(&x[3..]), frame.pivot.as_dvec3())
    });
    let count = parts.component_count();
    let place = |v: usize| {
        let rest = parts.rest_vertices[v].as_dvec3();
        let mut sum = understudy_core::DVec3::ZERO;
        for (bone, weight) in parts.weights.row(v) {
            let (n, centre) = (&numbers[BONE_NUMBERS * bone..], parts.centres[bone].as_dvec3());
            let local = rest - centre;
            for axis in 0..3 {
                let row = &n[4 * axis..4 * axis + 4];
                let moved = rest[axis] + row[0] * local.x + row[1] * local.y + row[2] * local.z + row[3];
                sum[axis] += f64::from(weight) * moved;
            }
        }
        for axis in 0..3 {
            let basis = &parts.components[(3 * v + axis) * count..(3 * v + axis + 1) * count];
            let coefficients = &numbers[BONE_NUMBERS * BONES..];
            sum[axis] += basis.iter().zip(coefficients).map(|(m, c)| f64::from(*m) * c).sum::<f64>();
        }
        if let Some((turn, shift, pivot)) = whole {
            sum = turn * (sum - pivot) + pivot + shift;
        }
        sum.to_array()
    };
    (0..VERTICES).map(place).collect()
}

fn shapes() -> impl Iterator<Item = SkinParts> {
    [(&[][..], false, 0), (&[7][..], true, 0), (&[20, 9][..], false, 3), (&[17, 16][..], true, 17)]
        .into_iter()
        .map(|(hidden, frame, components)| parts(hidden, frame, components))
}

fn controls(seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..CONTROLS).map(|_| random.uniform(-1.0, 1.0)).collect()
}

#[test]
fn every_kernel_and_crowd_gives_what_the_formula_says() {
    for parts in shapes() {
        // Numbers of the test have few bits: sixteen hold them.
        for kernel in Kernel::all() {
            for precision in [Precision::Half, Precision::Single] {
                let twin = SkinTwin::for_kernel(parts.clone(), precision, kernel).expect("a valid twin");
                let twin = Twin::from(twin);
                let poses: Vec<Vec<f32>> = (0..35).map(controls).collect();
                let mut crowd = vec![Vec3::ZERO; poses.len() * VERTICES];
                let mut player = twin.player(2);
                player.crowd(Pose::Controls(&poses.concat()), &mut crowd).expect("valid poses");
                for (pose, crowd) in poses.iter().zip(crowd.chunks(VERTICES)) {
                    let mut out = vec![Vec3::ONE; VERTICES];
                    player.pose(Pose::Controls(pose), &mut out).expect("a valid pose");
                    let wide: Vec<f64> = pose.iter().map(|c| f64::from(*c)).collect();
                    for ((out, crowd), truth) in out.iter().zip(crowd).zip(plain(&parts, &wide)) {
                        let truth = Vec3::from_array(truth.map(|x| x as f32));
                        assert!(
                            out.distance(truth) < Tol::position_cm(8),
                            "{}: {out} {truth}",
                            kernel.name()
                        );
                        assert!(crowd.distance(truth) < Tol::position_cm(8), "crowd: {crowd} {truth}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_comes_back_bit_by_bit() {
    for parts in shapes() {
        let twin = Twin::from(SkinTwin::new(parts.clone(), Precision::Half).expect("a valid twin"));
        let bytes = twin.to_bytes().expect("a valid twin");
        let again = Twin::parse(&bytes).expect("what we wrote");
        assert_eq!(again.method(), "skin");
        assert_eq!(again.to_bytes().expect("a valid twin"), bytes);
        let Twin::Skin(again) = again else { panic!("a skin twin is wanted") };
        assert_eq!(again.parts(), parts);
    }
}

#[test]
fn the_gradient_meets_the_checker() {
    for parts in shapes() {
        let twin = Twin::from(SkinTwin::new(parts.clone(), Precision::Single).expect("a valid twin"));
        let mut random = Random::new(4);
        let wanted: Vec<Vec3> =
            (0..VERTICES).map(|_| Vec3::from_array([0; 3].map(|_| random.uniform(-8.0, 8.0)))).collect();
        let pose = controls(77);
        let mut slopes = vec![0.0; CONTROLS];
        let loss = |vertices: &[Vec3], by_vertices: &mut [Vec3]| {
            let pairs = vertices.iter().zip(&wanted).zip(by_vertices.iter_mut());
            pairs.for_each(|((v, w), slope)| *slope = *v - *w);
        };
        twin.player(1).gradient(Pose::Controls(&pose), loss, &mut slopes).expect("a valid pose");
        let cost = |x: &[f64]| {
            let miss =
                |(v, w): ([f64; 3], &Vec3)| (0..3).map(|a| (v[a] - f64::from(w[a])).powi(2)).sum::<f64>();
            0.5 * plain(&parts, x).into_iter().zip(&wanted).map(miss).sum::<f64>()
        };
        let wide = |numbers: &[f32]| -> Vec<f64> { numbers.iter().map(|n| f64::from(*n)).collect() };
        let miss = directional_miss(cost, &wide(&pose), &wide(&slopes), 1e-5, 20, 3);
        assert!(miss < 1e-4, "{miss}");
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let good = parts(&[7], true, 2);
    let refused = |change: &dyn Fn(&mut SkinParts)| {
        let mut parts = good.clone();
        change(&mut parts);
        SkinTwin::new(parts, Precision::Half).map(|_| ()).expect_err("refused")
    };
    assert!(matches!(refused(&|p| p.inputs[0] = 99), TwinError::Index { index: 99, .. }));
    assert!(matches!(refused(&|p| p.output.bias.truncate(5)), TwinError::Count { .. }));
    assert!(matches!(refused(&|p| p.centres.truncate(2)), TwinError::Count { .. }));
    assert!(matches!(refused(&|p| p.rest_vertices[3].x = f32::NAN), TwinError::NonFinite { .. }));
    assert!(matches!(refused(&|p| p.components.truncate(9)), TwinError::Count { .. }));
    assert!(matches!(refused(&|p| p.hidden[0].weights[0] = 1e9), TwinError::Layer { .. }));
    assert!(matches!(refused(&|p| p.faces.push(Face::triangle(0, 1, 99))), TwinError::Index { .. }));
}
