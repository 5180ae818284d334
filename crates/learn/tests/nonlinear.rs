//! The characters are worth learning: the best that linear methods can do leaves a lot.

// The figures are the point of these tests: `cargo test -- --nocapture` shows them.
#![allow(clippy::print_stdout)]

use rayon::prelude::*;
use understudy_characters::{mira, rook};
use understudy_core::{Affine3A, Controls, Random, Vec3};
use understudy_learn::baselines::regression::regression_residual;
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

#[test]
fn mira_defies_linear_regression() {
    const STEP: usize = 11;
    let rig = mira::build().expect("Mira builds");
    let rest = thin(rig.mesh().positions(), STEP);
    let prepare = |range| -> Vec<(Vec<f32>, Vec<Vec3>)> {
        poses(&rig, range).into_iter().map(|(c, pose)| (c.0, thin(&pose.vertices, STEP))).collect()
    };
    let (train, test) = (prepare(0..1500), prepare(1500..1600));
    let share = regression_residual(&rest, &train, &test);
    println!("Mira: linear regression from controls leaves {:.1} % of the displacement", share * 100.0);
    assert!(share > 0.15, "{share}");
}
