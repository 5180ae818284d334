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

#[test]
fn examples_do_not_tear_a_vertex_out_for_every_corner_of_a_cage() {
    use super::super::tests::{box_cage, tube};
    let mesh = tube(0.6, 2.0, 12, 10);
    let (cage, corners) = box_cage();
    let settings = WeightSettings { cells: 10, ..WeightSettings::default() };
    let initial = solve_weights(&mesh, &[cage], &settings, &|_| true).expect("weights");
    // The cage sheared and its top pulled up.
    let moved: Vec<DVec3> = corners.iter().map(|c| *c + DVec3::new(0.2 * c.y, 0.1 * c.y, 0.0)).collect();
    let example: Vec<Vec3> = (0..mesh.vertex_count())
        .map(|v| {
            let shift = initial.row(v).iter().zip(corners.iter().zip(&moved));
            mesh.positions()[v] + shift.map(|(w, (a, b))| (*b - *a) * *w).sum::<DVec3>().as_vec3()
        })
        .collect();
    let settings = ExampleSettings { rounds: 3, weight_iterations: 20, ..ExampleSettings::default() };
    let best = optimise_weights(&mesh, &initial, &[&example], &settings, &|_| true).expect("optimised");
    let largest = |values: &[f64]| values.iter().fold(0.0f64, |most, w| most.max(*w));
    assert!(largest(&initial.values) < 0.6, "{}", largest(&initial.values));
    assert!(largest(&best.values) < 0.75, "{}", largest(&best.values));
    for pair in best.history.windows(2) {
        assert!(pair[1].total() <= pair[0].total() * (1.0 + 1e-9) + 1e-15, "{pair:?}");
    }
}

#[test]
fn fewer_influences_get_their_own_rounds_and_a_start_can_be_stopped() {
    use std::sync::Mutex;
    let (mesh, weights, example) = fold(1.0);
    let settings = ExampleSettings {
        rounds: 2,
        weight_iterations: 15,
        max_influences: Some(1),
        tolerance: 0.0,
        ..ExampleSettings::default()
    };
    let said = Mutex::new(Vec::new());
    let best = optimise_weights(&mesh, &weights, &[&example], &settings, &|progress| {
        said.lock().expect("no panic").push(progress);
        true
    })
    .expect("optimised");
    // Two rounds and a quarter of that, rounded up, with one handle per vertex.
    assert_eq!((best.rounds, best.stop), (3, ExampleStop::Rounds));
    assert!(best.values.iter().all(|w| *w == 0.0 || *w == 1.0));
    let said = said.into_inner().expect("no panic");
    assert!(said.iter().all(|progress| progress.done <= progress.total));
    let pieces: Vec<&str> = said.iter().map(|progress| progress.what).collect();
    assert!(pieces.contains(&"looking for a start") && pieces.contains(&"learning from examples"));
    // Long before the first round ends.
    let stopped = optimise_weights(&mesh, &weights, &[&example], &settings, &|progress| {
        assert_eq!((progress.what, progress.done), ("looking for a start", 15));
        false
    });
    assert_eq!(stopped, Err(WeightsError::Stopped));
    let many: Vec<&[Vec3]> = vec![example.as_slice(); 150_000];
    let refused = optimise_weights(&mesh, &weights, &many, &settings, &|_| true).expect_err("too many");
    assert!(refused.to_string().contains("GB"), "{refused}");
}

/// The weight step as a quadratic program, by clarabel: weights, and a bound on every bend. `[N][columns]`.
fn interior_point(problem: &Problem<'_>, state: &State) -> Vec<f64> {
    use clarabel::algebra::CscMatrix;
    use clarabel::solver::{
        DefaultSettingsBuilder, DefaultSolver, IPSolver as _, SolverStatus, SupportedConeT,
    };
    let (n, h, m) = (problem.nodes(), problem.columns(), problem.examples.len());
    let size = 2 * n * h;
    let matrix = |rows: usize, entries: Vec<(usize, usize, f64)>| {
        let (mut r, mut c, mut v) = (Vec::new(), Vec::new(), Vec::new());
        for (row, column, value) in entries {
            r.push(row);
            c.push(column);
            v.push(value);
        }
        CscMatrix::new_from_triplets(rows, size, r, c, v)
    };
    let carried: Vec<Vec<DVec3>> = state.transforms.iter().map(|t| problem.carried(t)).collect();
    let (mut square, mut linear) = (Vec::new(), vec![0.0; size]);
    for k in 0..m {
        let turned = problem.turned_edges(&state.groups, &state.rotations[k]);
        for i in 0..n {
            let mut row: Vec<(usize, f64)> =
                problem.laplacian.row(i).map(|(o, v)| (o, v * problem.rigidity)).collect();
            row.iter_mut().filter(|(other, _)| *other == i).for_each(|(_, value)| *value += 1.0);
            for (other, value) in row {
                for a in 0..h {
                    for b in 0..h {
                        let (x, y) = (i * h + a, other * h + b);
                        if x <= y {
                            square.push((x, y, 2.0 * value * carried[k][x].dot(carried[k][y])));
                        }
                    }
                }
            }
            let wanted: DVec3 = problem.examples[k][i] + turned[i] * problem.rigidity;
            (0..h).for_each(|j| linear[i * h + j] -= 2.0 * carried[k][i * h + j].dot(wanted));
        }
    }
    let mixing = problem.mixing_costs(&carried);
    for place in 0..n * h {
        linear[place] += mixing[place];
        linear[n * h + place] = m as f64 * problem.sparsity;
    }
    let (mut rows, mut right) = (Vec::new(), Vec::new());
    for (node, held) in problem.held.iter().enumerate() {
        match held {
            Some(_) => (0..h).for_each(|j| {
                rows.push((right.len(), node * h + j, 1.0));
                right.push(state.weights[node * h + j]);
            }),
            None => {
                (0..h).for_each(|j| rows.push((right.len(), node * h + j, 1.0)));
                right.push(1.0);
            }
        }
    }
    let equal = right.len();
    for node in (0..n).filter(|node| problem.held[*node].is_none()) {
        for j in 0..h {
            rows.push((right.len(), node * h + j, -1.0));
            right.push(0.0);
        }
    }
    for node in 0..n {
        for j in 0..h {
            for sign in [1.0, -1.0] {
                problem
                    .laplacian
                    .row(node)
                    .for_each(|(other, v)| rows.push((right.len(), other * h + j, sign * v)));
                rows.push((right.len(), n * h + node * h + j, -1.0));
                right.push(0.0);
            }
        }
    }
    let cones = [SupportedConeT::ZeroConeT(equal), SupportedConeT::NonnegativeConeT(right.len() - equal)];
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .expect("settings");
    let constraints = matrix(right.len(), rows);
    let mut solver =
        DefaultSolver::new(&matrix(size, square), &linear, &constraints, &right, &cones, settings)
            .expect("a problem");
    solver.solve();
    let status = solver.solution.status;
    assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved), "{status:?}");
    solver.solution.x[..n * h].to_vec()
}

#[test]
fn the_weight_step_agrees_with_an_interior_point_solver() {
    let mesh = card(20, 10);
    let example: Vec<Vec3> = mesh
        .positions()
        .iter()
        .map(|p| {
            let beyond = (p.x - 9.5).max(0.0);
            Vec3::new(p.x - beyond + beyond * 0.5, p.y, 0.866 * beyond + 0.02 * p.y * p.y)
        })
        .collect();
    let handles: Vec<Handle> = [(2, 4), (17, 5), (10, 9)]
        .map(|(x, y)| Handle::new(format!("{x}"), HandleShape::Vertex(y * 20 + x)))
        .to_vec();
    let initial = solve_weights(&mesh, &handles, &WeightSettings::default(), &|_| true).expect("weights");
    let settings = ExampleSettings {
        sparsity: 1e-6,
        rigidity: 1e-3,
        weight_iterations: 10_000,
        ..ExampleSettings::default()
    };
    let surface = Surface::new(&mesh).expect("a card");
    let domain = Domain::of_surface(&surface);
    let problem = Problem::new(&surface, &domain, &initial, &[&example], &settings).expect("a problem");
    let mut state = State::new(&problem, &initial, &domain);
    state.groups = cluster(&state.weights, 3, 8);
    problem.move_apart(&mut state);
    problem.fit_rotations(&mut state);
    let truth = interior_point(&problem, &state);
    let want = problem.energy_of(&state, &truth).total();
    Splitting::new(&problem).expect("factors").fit_weights(&problem, &mut state, &|_| true).expect("weights");
    let got = problem.energy(&state).total();
    assert!((got - want).abs() < 1e-5 * want, "{got} instead of {want}");
    let difference = state.weights.iter().zip(&truth).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
    assert!(difference < 1e-4, "{difference}");
}
