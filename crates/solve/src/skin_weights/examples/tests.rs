//! Laws of the optimisation: the energy never rises, units do not matter, a fold becomes a sharper line.

use super::super::tests::card;
use super::super::{Handle, HandleShape, WeightSettings, solve_weights};
use super::*;

const NX: usize = 26;
const NY: usize = 26;

/// The card folded along its middle by an angle; its handles are two opposite sides.
fn folded(mesh: &Mesh, degrees: f32) -> Vec<Vec3> {
    let middle = (NX - 1) as f32 / 2.0;
    let (sine, cosine) = degrees.to_radians().sin_cos();
    let turn = |p: &Vec3| {
        let beyond = p.x - middle;
        if beyond <= 0.0 { *p } else { Vec3::new(middle + beyond * cosine, p.y, beyond * sine) }
    };
    mesh.positions().iter().map(turn).collect()
}

fn fold(scale: f32) -> (Mesh, SolvedWeights, Vec<Vec3>) {
    let mesh = card(NX, NY);
    let scaled: Vec<Vec3> = mesh.positions().iter().map(|p| *p * scale).collect();
    let example: Vec<Vec3> = folded(&mesh, 70.0).iter().map(|p| *p * scale).collect();
    let mesh = mesh.with_positions(&scaled).expect("the same topology");
    // Three columns determine an affine map of a card; one point would leave it open.
    let columns = |x: usize| {
        HandleShape::Region(
            (0..NY).flat_map(|y| [y * NX + x, y * NX + x + 1, y * NX + x + 2]).map(|v| v as u32).collect(),
        )
    };
    let handles = [Handle::new("left", columns(0)), Handle::new("right", columns(NX - 3))];
    let weights = solve_weights(&mesh, &handles, &WeightSettings::default(), &|_| true).expect("weights");
    (mesh, weights, example)
}

fn crisp(values: &[f64]) -> f64 {
    values.iter().filter(|w| **w > 0.95 || **w < 0.05).count() as f64 / values.len() as f64
}

#[test]
fn a_card_folded_once_gets_a_sharper_line_and_no_step_raises_the_energy() {
    let (mesh, weights, example) = fold(1.0);
    let settings = ExampleSettings::default();
    let best = optimise_weights(&mesh, &weights, &[&example], &settings, &|_| true).expect("optimised");
    for pair in best.history.windows(2) {
        assert!(pair[1].total() <= pair[0].total() * (1.0 + 1e-9) + 1e-15, "{pair:?}");
    }
    for row in best.values.chunks_exact(2) {
        assert!((row[0] + row[1] - 1.0).abs() < 1e-6 && row[0] >= 0.0 && row[1] >= 0.0);
    }
    let (before, after) = (crisp(&weights.values), crisp(&best.values));
    // Two columns of 26 are 8 %.
    assert!(before < 0.4 && after > 0.91, "{before} {after}");
}

#[test]
fn weights_from_examples_know_no_unit() {
    let (mesh, weights, example) = fold(1.0);
    let settings = ExampleSettings { rounds: 4, weight_iterations: 20, ..ExampleSettings::default() };
    let one = optimise_weights(&mesh, &weights, &[&example], &settings, &|_| true).expect("optimised");
    let (mesh, weights, example) = fold(100.0);
    let hundred = optimise_weights(&mesh, &weights, &[&example], &settings, &|_| true).expect("optimised");
    let difference =
        one.values.iter().zip(&hundred.values).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
    assert!(difference < 1e-4, "{difference}");
    assert!((hundred.rmse / one.rmse - 100.0).abs() < 0.1);
}

#[test]
fn wrong_examples_are_named_and_a_listener_can_stop() {
    let (mesh, weights, example) = fold(1.0);
    let settings = ExampleSettings::default();
    let refuse = |examples: &[&[Vec3]], settings: &ExampleSettings| {
        optimise_weights(&mesh, &weights, examples, settings, &|_| true).expect_err("bad input").to_string()
    };
    assert_eq!(refuse(&[&example, &example[1..]], &settings), "example 1 has 675 vertices, the mesh 676");
    let mut broken = example.clone();
    broken[3].y = f32::NAN;
    assert_eq!(refuse(&[&broken], &settings), "example 0: vertex 3 is not finite");
    assert!(refuse(&[], &settings).contains("examples is empty"));
    let bad = ExampleSettings { sparsity: -1.0, ..settings };
    assert!(refuse(&[&example], &bad).contains("the sparsity is -1"));
    let stopped = optimise_weights(&mesh, &weights, &[&example], &settings, &|_| false);
    assert_eq!(stopped, Err(WeightsError::Stopped));
}
