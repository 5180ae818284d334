//! Laws of playing: kernels and threads agree, crowds are poses, gradients meet the checker, files come back.

use super::*;
use crate::dense::Kernel;
use crate::{BoneHeader, Inputs, Pose, Training, Twin};
use understudy_core::{ControlSpec, ControlSpecs, Quat, Random};
use understudy_testkit::gradient::directional_miss;

/// A twin of random weights; with bones it has a skin.
fn parts(bones: usize, vertices: usize, activation: HiddenActivation) -> DiffParts {
    let mut random = Random::new(7);
    let (controls, rank, anchors) = (5, 6, 3);
    let mut numbers =
        |count: usize, size: f32| -> Vec<f32> { (0..count).map(|_| random.uniform(-size, size)).collect() };
    let mut layer = |rows: usize, columns: usize| LayerNumbers {
        weights: numbers(rows * columns, 0.6),
        bias: numbers(rows, 0.3),
    };
    let first = 12 * bones as u32;
    let inputs: Vec<u32> = (12.min(first)..first).chain(first..first + controls).collect();
    let count = inputs.len();
    let differential = vec![layer(9, count), layer(11, 9), layer(rank, 11)];
    let anchors: Vec<AnchorParts> = (0..anchors)
        .map(|index| {
            let features: Vec<u32> = (index..count as u32).step_by(2).collect();
            let layers = vec![layer(4, features.len()), layer(4, 4), layer(3, 4)];
            AnchorParts { vertex: index, features, layers }
        })
        .collect();
    let runs: Vec<usize> =
        (0..vertices).step_by(BLOCK_VERTICES).map(|first| BLOCK_VERTICES.min(vertices - first)).collect();
    let ranks: Vec<u32> = (0..runs.len() as u32).map(|run| 2 + run % 3).collect();
    let spec = |c: u32| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0);
    let rows: Vec<Vec<(u16, f32)>> = (0..vertices)
        .map(|v| vec![((v % bones.max(1)) as u16, 0.7), (((v + 1) % bones.max(1)) as u16, 0.3)])
        .collect();
    DiffParts {
        header: Header {
            rig: "test".into(),
            topology_hash: 0,
            units: "cm".into(),
            inputs: Inputs {
                bones: (0..bones)
                    .map(|b| BoneHeader { name: format!("b{b}"), parent: b.checked_sub(1) })
                    .collect(),
                controls: ControlSpecs::new((0..controls).map(spec).collect()).expect("valid controls"),
            },
            training: Training::default(),
        },
        faces: vec![Face::triangle(0, 1, 2)],
        skin: (bones > 0).then(|| LinearSkinParts {
            rest_bones: (0..bones).map(|b| Affine3A::from_translation(Vec3::splat(b as f32))).collect(),
            weights: SkinWeights::from_rows(&rows, bones).expect("convex rows"),
        }),
        features: FeatureParts { mean: numbers(count, 0.1), scale: numbers(count, 2.0), inputs },
        activation,
        differential,
        subspace: numbers(rank * 3 * anchors.len(), 0.5),
        anchors,
        linear: if bones % 2 == 1 { Vec::new() } else { numbers(rank * count, 0.3) },
        // Several runs of vertices only in large twins; with bones each has coefficients of its own.
        block_ranks: if bones == 0 { Vec::new() } else { ranks.clone() },
        mixes: if bones == 0 { Vec::new() } else { numbers(ranks.iter().sum::<u32>() as usize * rank, 0.5) },
        basis: match bones {
            0 => numbers(3 * vertices * rank, 1.0),
            _ => numbers(runs.iter().zip(&ranks).map(|(n, r)| 3 * n * *r as usize).sum(), 1.0),
        },
        places: numbers(3 * vertices, 20.0).chunks_exact(3).map(Vec3::from_slice).collect(),
    }
}

fn poses(bones: usize, count: usize) -> (Vec<Affine3A>, Vec<f32>) {
    let mut random = Random::new(3);
    let mut vector = |s: f32| Vec3::from_array([0; 3].map(|_| random.uniform(-s, s)));
    let turned = |vector: &mut dyn FnMut(f32) -> Vec3| {
        Affine3A::from_rotation_translation(Quat::from_scaled_axis(vector(0.5)), vector(2.0))
    };
    let bones = (0..bones * count).map(|_| turned(&mut vector)).collect();
    let controls = (0..count * 5).map(|_| vector(1.0).x).collect();
    (bones, controls)
}

fn pose<'a>(bones: &'a [Affine3A], controls: &'a [f32]) -> Pose<'a> {
    match bones.is_empty() {
        true => Pose::Controls(controls),
        false => Pose::Bones { bones, extras: controls },
    }
}

/// The formula at the top of the module, in f64 and without any packing.
fn truth(parts: &DiffParts, bones: &[Affine3A], controls: &[f64]) -> Vec<understudy_core::DVec3> {
    let inputs: Vec<f64> = parts
        .header
        .inputs
        .bones
        .iter()
        .zip(bones)
        .flat_map(|(header, bone)| {
            let relative = header.parent.map_or(*bone, |parent| bones[parent].inverse() * *bone);
            relative.to_cols_array().map(f64::from)
        })
        .chain(controls.iter().copied())
        .collect();
    let features: Vec<f64> = parts
        .features
        .inputs
        .iter()
        .zip(parts.features.mean.iter().zip(&parts.features.scale))
        .map(|(input, (mean, scale))| (inputs[*input as usize] - f64::from(*mean)) * f64::from(*scale))
        .collect();
    let network = |layers: &[LayerNumbers], mut x: Vec<f64>| {
        for (index, layer) in layers.iter().enumerate() {
            let columns = x.len();
            let row = |(row, bias): (usize, &f32)| {
                let weights = &layer.weights[row * columns..(row + 1) * columns];
                let sum: f64 = weights.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum();
                match (index + 1 == layers.len(), parts.activation) {
                    (true, _) => sum + f64::from(*bias),
                    (_, HiddenActivation::Relu) => (sum + f64::from(*bias)).max(0.0),
                    (_, HiddenActivation::Tanh) => (sum + f64::from(*bias)).tanh(),
                }
            };
            x = layer.bias.iter().enumerate().map(row).collect();
        }
        x
    };
    let mut coefficients = network(&parts.differential, features.clone());
    let anchors: Vec<f64> = parts
        .anchors
        .iter()
        .flat_map(|a| network(&a.layers, a.features.iter().map(|f| features[*f as usize]).collect()))
        .collect();
    for (row, sum) in coefficients.iter_mut().enumerate() {
        let own = &parts.subspace[row * anchors.len()..][..anchors.len()];
        *sum += own.iter().zip(&anchors).map(|(s, a)| f64::from(*s) * a).sum::<f64>();
        if !parts.linear.is_empty() {
            let own = &parts.linear[row * features.len()..][..features.len()];
            *sum += own.iter().zip(&features).map(|(g, x)| f64::from(*g) * x).sum::<f64>();
        }
    }
    let rank = coefficients.len();
    (0..parts.places.len())
        .map(|v| {
            // The run of the vertex: where its numbers begin, and its own coefficients.
            let (mut basis, mut mixes, mut own) = (&parts.basis[..], &parts.mixes[..], coefficients.clone());
            for (run, ranks) in parts.block_ranks.iter().enumerate() {
                let (n, r) = (BLOCK_VERTICES.min(parts.places.len() - run * BLOCK_VERTICES), *ranks as usize);
                if run == v / BLOCK_VERTICES {
                    let row =
                        |row: &[f32]| row.iter().zip(&coefficients).map(|(m, c)| f64::from(*m) * c).sum();
                    own = mixes[..r * rank].chunks_exact(rank).map(row).collect();
                    break;
                }
                (basis, mixes) = (&basis[3 * n * r..], &mixes[r * rank..]);
            }
            let in_run = if parts.block_ranks.is_empty() { v } else { v % BLOCK_VERTICES };
            let number = |axis: usize| {
                let row = &basis[(3 * in_run + axis) * own.len()..][..own.len()];
                f64::from(parts.places[v][axis])
                    + row.iter().zip(&own).map(|(b, c)| f64::from(*b) * c).sum::<f64>()
            };
            let place = understudy_core::DVec3::new(number(0), number(1), number(2));
            match &parts.skin {
                None => place,
                Some(skin) => skin
                    .weights
                    .row(v)
                    .map(|(bone, weight)| {
                        let matrix = bones[bone] * skin.rest_bones[bone].inverse();
                        (understudy_core::DMat3::from_cols(
                            matrix.matrix3.x_axis.as_dvec3(),
                            matrix.matrix3.y_axis.as_dvec3(),
                            matrix.matrix3.z_axis.as_dvec3(),
                        ) * place
                            + matrix.translation.as_dvec3())
                            * f64::from(weight)
                    })
                    .sum(),
            }
        })
        .collect()
}

#[test]
fn every_kernel_thread_count_and_crowd_gives_what_the_formula_says() {
    for (bones, vertices) in [(0, 3), (0, 8), (4, 9), (4, 1030)] {
        for activation in [HiddenActivation::Relu, HiddenActivation::Tanh] {
            let parts = parts(bones, vertices, activation);
            let (all_bones, controls) = poses(bones, 70);
            let twin = DiffTwin::new(parts.clone(), Precision::Single).expect("a valid twin");
            let mut singles = Vec::new();
            for (pose, controls) in controls.chunks_exact(5).enumerate() {
                let own = &all_bones[pose * bones..(pose + 1) * bones];
                let wide: Vec<f64> = controls.iter().map(|c| f64::from(*c)).collect();
                let truth = truth(&parts, own, &wide);
                for kernel in Kernel::all() {
                    let mut space = evaluate::Workspace::new(&twin, 1).with_kernel(kernel);
                    let mut out = vec![Vec3::ZERO; vertices];
                    twin.evaluate(own, controls, &mut space, None, &mut out).expect("a valid pose");
                    for (a, b) in out.iter().zip(&truth) {
                        let miss = a.as_dvec3().distance(*b);
                        assert!(miss < 1e-4, "{bones} bones, {vertices} vertices, {}: {miss}", kernel.name());
                    }
                    singles.push(out);
                }
            }
            let twin = Twin::from(twin);
            for threads in [1, 2] {
                let mut player = twin.player(threads);
                let mut crowd = vec![Vec3::ZERO; 70 * vertices];
                player.crowd(pose(&all_bones, &controls), &mut crowd).expect("valid poses");
                let kernels = Kernel::all().count();
                for (pose, own) in crowd.chunks_exact(vertices).enumerate() {
                    let single = &singles[(pose + 1) * kernels - 1];
                    let miss = own.iter().zip(single).map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
                    assert!(miss < 1e-4, "pose {pose} of a crowd: {miss}");
                }
            }
        }
    }
}

#[test]
fn the_gradient_meets_the_checker() {
    for bones in [0, 4] {
        let parts = parts(bones, 30, HiddenActivation::Tanh);
        let twin = Twin::from(DiffTwin::new(parts.clone(), Precision::Single).expect("a valid twin"));
        let (bones, controls) = poses(bones, 1);
        let mut by_controls = vec![0.0; 5];
        let pull = |v: usize| Vec3::new((v as f32).sin(), 0.3, (v as f32 * 0.7).cos());
        twin.player(1)
            .gradient(
                pose(&bones, &controls),
                |vertices, by| by.iter_mut().enumerate().take(vertices.len()).for_each(|(v, g)| *g = pull(v)),
                &mut by_controls,
            )
            .expect("a valid pose");
        let cost = |controls: &[f64]| {
            let vertices = truth(&parts, &bones, controls);
            vertices.iter().enumerate().map(|(v, place)| place.dot(pull(v).as_dvec3())).sum()
        };
        let wide = |numbers: &[f32]| -> Vec<f64> { numbers.iter().map(|n| f64::from(*n)).collect() };
        let miss = directional_miss(cost, &wide(&controls), &wide(&by_controls), 1e-5, 20, 5);
        assert!(miss < 1e-4, "{miss}");
    }
}

#[test]
fn parts_and_files_come_back() {
    for bones in [0, 3] {
        for precision in [Precision::Single, Precision::Half] {
            let twin = DiffTwin::new(parts(bones, 21, HiddenActivation::Relu), precision).expect("valid");
            let bytes = to_bytes(&twin.parts(), precision).expect("can be saved");
            let Twin::Diff(again) = Twin::parse(&bytes).expect("we read what we write") else {
                panic!("the kind has changed")
            };
            assert!(again.parts() == twin.parts() && again.precision() == precision);
            assert!(to_bytes(&again.parts(), precision).expect("can be saved") == bytes);
        }
    }
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let good = parts(3, 21, HiddenActivation::Relu);
    let refuse = |change: &dyn Fn(&mut DiffParts), word: &str| {
        let mut parts = good.clone();
        change(&mut parts);
        let error = DiffTwin::new(parts, Precision::Half).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    refuse(&|parts| parts.features.inputs[0] = 3, "no parent");
    refuse(&|parts| parts.features.inputs[0] = 999, "input of a feature");
    refuse(&|parts| parts.anchors[1].features[0] = 999, "anchor 1: feature");
    refuse(&|parts| parts.anchors[2].vertex = 21, "anchor 2: vertex");
    refuse(&|parts| drop(parts.anchors[2].layers.remove(1)), "anchor 2");
    refuse(&|parts| parts.subspace.truncate(1), "subspace");
    refuse(&|parts| parts.basis.truncate(1), "basis");
    refuse(&|parts| parts.basis[5] = f32::NAN, "basis");
    refuse(&|parts| parts.mixes.truncate(1), "mixes");
    refuse(&|parts| parts.block_ranks.push(1), "block ranks");
    refuse(&|parts| parts.block_ranks[0] = 0, "1 to 6 are wanted");
    refuse(&|parts| parts.skin = None, "without skin");
    refuse(&|parts| parts.faces[0] = Face::triangle(0, 1, 21), "corner of face 0");
    refuse(&|parts| parts.differential.clear(), "network differential");
}
