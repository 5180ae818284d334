//! The characters are worth learning: the best that linear methods can do leaves a lot.

// The figures are the point of these tests: `cargo test -- --nocapture` shows them.
#![allow(clippy::print_stdout)]

use rayon::prelude::*;
use understudy_characters::{mira, rook};
use understudy_core::linear_algebra::Cholesky;
use understudy_core::{Affine3A, Controls, Random, Vec3};
use understudy_learn::skinning::{fit_skinning, skinning_error};
use understudy_rigs::{Rig, RigPose};

/// Random poses: truncated Gaussian, one stream a pose. Training and test poses differ in their index.
fn poses(rig: &dyn Rig, range: std::ops::Range<u64>) -> Vec<(Controls, RigPose)> {
    range
        .into_par_iter()
        .map(|index| {
            let mut random = Random::stream(77, index);
            let controls = rig.specs().iter().map(|s| random.truncated_normal(s.low, s.high)).collect();
            let controls = Controls(controls);
            let mut pose = RigPose::default();
            rig.evaluate(&controls, &mut pose).expect("controls in range");
            (controls, pose)
        })
        .collect()
}

/// Every `step`-th entry: a mesh of 13,000 vertices is sampled, not thinned at random.
fn thin(vertices: &[Vec3], step: usize) -> Vec<Vec3> {
    vertices.iter().step_by(step).copied().collect()
}

#[test]
fn rook_defies_linear_blend_skinning() {
    const STEP: usize = 5;
    let rig = rook::build().expect("Rook builds");
    let skeleton = rig.skeleton().expect("Rook has bones");
    let rest = thin(rig.mesh().positions(), STEP);
    let prepare = |range| -> Vec<(Vec<Affine3A>, Vec<Vec3>)> {
        let matrices = |pose: &RigPose| {
            let mut out = Vec::new();
            skeleton.skinning_matrices(&pose.global, &mut out);
            out
        };
        poses(&rig, range).iter().map(|(_, pose)| (matrices(pose), thin(&pose.vertices, STEP))).collect()
    };
    let (train, test) = (prepare(0..200), prepare(200..260));
    let fitted = fit_skinning(&rest, &train, 4, 16);
    let (enveloping, mean) = skinning_error(&rest, &fitted, &test);
    println!(
        "Rook: best LBS with 4 influences leaves an enveloping error of {enveloping:.1}, mean {mean:.3} cm"
    );
    assert!(enveloping > 30.0, "{enveloping}");
}

type ControlPose = (Vec<f32>, Vec<Vec3>);

/// Linear regression `v = v₀ + B [p; 1]` by normal equations with a trace of ridge. Gives on the test
/// poses the share of the displacement from rest that it leaves: `sqrt(Σ‖v − v̂‖² / Σ‖v − v₀‖²)`.
fn regression_residual(rest: &[Vec3], train: &[ControlPose], test: &[ControlPose]) -> f64 {
    let (inputs, outputs) = (train[0].0.len() + 1, rest.len() * 3);
    let extended = |controls: &[f32]| -> Vec<f64> {
        controls.iter().map(|c| f64::from(*c)).chain(std::iter::once(1.0)).collect()
    };
    let displacement = |vertices: &[Vec3]| -> Vec<f64> {
        vertices.iter().zip(rest).flat_map(|(v, r)| (*v - *r).as_dvec3().to_array()).collect()
    };
    let mut gram = vec![0.0; inputs * inputs];
    let mut fitted = vec![0.0; inputs * outputs];
    for (controls, vertices) in train {
        let (x, y) = (extended(controls), displacement(vertices));
        for i in (0..inputs).filter(|i| x[*i] != 0.0) {
            let row = &mut gram[i * inputs..(i + 1) * inputs];
            row.iter_mut().zip(&x).for_each(|(sum, other)| *sum += x[i] * other);
            let row = &mut fitted[i * outputs..(i + 1) * outputs];
            row.iter_mut().zip(&y).for_each(|(sum, y)| *sum += x[i] * y);
        }
    }
    (0..inputs).for_each(|i| gram[i * inputs + i] *= 1.0 + 1e-9);
    Cholesky::new(&gram, inputs).expect("more poses than controls").solve(&mut fitted, outputs);
    let (mut left, mut whole) = (0.0, 0.0);
    for (controls, vertices) in test {
        let mut miss = displacement(vertices);
        whole += miss.iter().map(|y| y * y).sum::<f64>();
        for (x, row) in extended(controls).iter().zip(fitted.chunks_exact(outputs)) {
            miss.iter_mut().zip(row).for_each(|(miss, b)| *miss -= x * b);
        }
        left += miss.iter().map(|y| y * y).sum::<f64>();
    }
    (left / whole).sqrt()
}

#[test]
fn regression_recovers_a_linear_map_and_not_a_square() {
    let mut random = Random::new(8);
    let mut poses = |square: f32| -> Vec<ControlPose> {
        let mut pose = || {
            let p = [random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)];
            (p.to_vec(), vec![Vec3::new(p[0] + 2.0 * p[1], square * p[0] * p[0], 0.3)])
        };
        (0..200).map(|_| pose()).collect()
    };
    for (poses, expected) in [(poses(0.0), 0.0..1e-5), (poses(3.0), 0.2..1.0)] {
        assert!(expected.contains(&regression_residual(&[Vec3::ZERO], &poses[..100], &poses[100..])));
    }
}

#[test]
fn mira_defies_linear_regression() {
    const STEP: usize = 11;
    let rig = mira::build().expect("Mira builds");
    let rest = thin(rig.mesh().positions(), STEP);
    let prepare = |range| -> Vec<ControlPose> {
        poses(&rig, range).into_iter().map(|(c, pose)| (c.0, thin(&pose.vertices, STEP))).collect()
    };
    let (train, test) = (prepare(0..1500), prepare(1500..1600));
    let share = regression_residual(&rest, &train, &test);
    println!("Mira: linear regression from controls leaves {:.1} % of the displacement", share * 100.0);
    assert!(share > 0.15, "{share}");
}
