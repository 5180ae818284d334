//! Laws of skinning weights: sums, bounds, units, handles, agreement of the modes with an interior-point solver.

use super::*;
use understudy_core::laplacian::SparseRows;
use understudy_core::{Face, MeshParts, Vec3};

/// A flat grid of quads, `[nx × ny]` vertices a unit apart.
pub(crate) fn card(nx: usize, ny: usize) -> Mesh {
    let positions = (0..nx * ny).map(|i| Vec3::new((i % nx) as f32, (i / nx) as f32, 0.0)).collect();
    let quad = |i: usize| {
        let at = (i / (nx - 1) * nx + i % (nx - 1)) as u32;
        // Diagonals turn from cell to cell, so that no direction is better than another.
        let (a, b, c, d) = (at, at + 1, at + nx as u32 + 1, at + nx as u32);
        match (i / (nx - 1) + i % (nx - 1)) % 2 {
            0 => [Face::triangle(a, b, c), Face::triangle(a, c, d)],
            _ => [Face::triangle(a, b, d), Face::triangle(b, c, d)],
        }
    };
    let faces = (0..(nx - 1) * (ny - 1)).flat_map(quad).collect();
    MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a card")
}

/// A closed tube around the y axis with caps.
pub(super) fn tube(radius: f32, height: f32, around: usize, along: usize) -> Mesh {
    let mut positions = Vec::new();
    for ring in 0..along {
        for side in 0..around {
            let angle = side as f32 / around as f32 * std::f32::consts::TAU;
            let y = ring as f32 / (along - 1) as f32 * height;
            positions.push(Vec3::new(radius * angle.cos(), y, radius * angle.sin()));
        }
    }
    let (bottom, top) = (positions.len() as u32, positions.len() as u32 + 1);
    positions.extend([Vec3::ZERO, Vec3::Y * height]);
    let at = |ring: usize, side: usize| (ring * around + side % around) as u32;
    let mut faces = Vec::new();
    for side in 0..around {
        for ring in 0..along - 1 {
            faces.push(Face::quad(
                at(ring, side),
                at(ring + 1, side),
                at(ring + 1, side + 1),
                at(ring, side + 1),
            ));
        }
        faces.push(Face::triangle(bottom, at(0, side), at(0, side + 1)));
        faces.push(Face::triangle(top, at(along - 1, side + 1), at(along - 1, side)));
    }
    MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a tube")
}

fn two_bones(height: f64) -> Vec<Handle> {
    let bone = |name: &str, from: f64, to: f64| {
        let (head, tail) = (DVec3::Y * from * height, DVec3::Y * to * height);
        Handle::new(name, HandleShape::Bone { head, tail })
    };
    vec![bone("lower", 0.02, 0.5), bone("upper", 0.5, 0.98)]
}

fn solved(mesh: &Mesh, handles: &[Handle], settings: &WeightSettings) -> SolvedWeights {
    solve_weights(mesh, handles, settings, &|_| true).unwrap_or_else(|error| panic!("{error}"))
}

fn check_rows(weights: &SolvedWeights) {
    for row in weights.values.chunks_exact(weights.columns()) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{row:?}");
        assert!(row.iter().all(|w| (0.0..=1.0).contains(w)), "{row:?}");
    }
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

#[test]
fn every_kind_and_domain_gives_rows_that_sum_to_one_and_falls_from_its_handle() {
    let mesh = tube(1.0, 10.0, 16, 40);
    let handles = two_bones(10.0);
    for kind in [WeightKind::Bbw, WeightKind::Quasi, WeightKind::Heat] {
        let weights =
            solved(&mesh, &handles, &WeightSettings { kind, cells: 40, ..WeightSettings::default() });
        check_rows(&weights);
        let of_ring = |ring: usize| weights.row(ring * 16)[0];
        assert!(of_ring(4) > 0.95 && of_ring(35) < 0.05, "{kind:?}: {} {}", of_ring(4), of_ring(35));
        let middle = (of_ring(19) + of_ring(20)) / 2.0;
        assert!((middle - 0.5).abs() < 0.05, "{kind:?}: {middle}");
        assert!((1..40).all(|ring| of_ring(ring) <= of_ring(ring - 1) + 0.02), "{kind:?} does not fall");
    }
}

#[test]
fn weights_know_no_unit_and_no_place() {
    let mesh = tube(1.0, 6.0, 12, 24);
    let moved: Vec<Vec3> = mesh.positions().iter().map(|p| *p * 100.0 + Vec3::new(3e3, -2e2, 7e1)).collect();
    let large = mesh.with_positions(&moved).expect("the same topology");
    let points = [Handle::new("a", HandleShape::Vertex(3)), Handle::new("b", HandleShape::Vertex(200))];
    for kind in [WeightKind::Bbw, WeightKind::Quasi] {
        for domain in [DomainKind::Surface, DomainKind::Volume] {
            let settings = WeightSettings { kind, domain, cells: 20, ..WeightSettings::default() };
            let (a, b) = (solved(&mesh, &points, &settings), solved(&large, &points, &settings));
            let difference = largest_difference(&a.values, &b.values);
            assert!(difference < 1e-4, "{kind:?} {domain:?}: {difference}");
        }
    }
}

#[test]
fn every_handle_holds_its_place_and_threads_change_nothing() {
    let mesh = card(21, 13);
    let handles = [
        Handle::new("corner", HandleShape::Vertex(0)),
        Handle::new("middle", HandleShape::Point(DVec3::new(10.1, 6.05, 0.0))),
        Handle::new("edge", HandleShape::Region((0..13).map(|row| row * 21 + 20).collect())),
        Handle::new(
            "stick",
            HandleShape::Bone { head: DVec3::new(2.0, 12.0, 0.0), tail: DVec3::new(8.0, 12.0, 0.0) },
        ),
    ];
    let settings = WeightSettings { domain: DomainKind::Surface, ..WeightSettings::default() };
    let weights = solved(&mesh, &handles, &settings);
    check_rows(&weights);
    assert_eq!(weights.row(0), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(weights.row(6 * 21 + 10), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(weights.row(5 * 21 + 20), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(weights.row(12 * 21 + 5), [0.0, 0.0, 0.0, 1.0]);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    assert_eq!(one.install(|| solved(&mesh, &handles, &settings)), weights);
    // Fewer influences: kept ones are solved again, the rest is zero.
    let few = solved(&mesh, &handles, &WeightSettings { max_influences: Some(2), ..settings });
    check_rows(&few);
    assert!(few.values.chunks_exact(4).all(|row| row.iter().filter(|w| **w > 0.0).count() <= 2));
    assert_eq!(few.row(0), [1.0, 0.0, 0.0, 0.0]);
}

/// A box around a tube of two units, and its corners.
pub(super) fn box_cage() -> (Handle, Vec<DVec3>) {
    let corner = |i: u32| {
        DVec3::new(
            f64::from(i & 1) * 4.0 - 2.0,
            f64::from(i >> 1 & 1) * 4.0 - 1.0,
            f64::from(i >> 2) * 4.0 - 2.0,
        )
    };
    let vertices: Vec<DVec3> = (0..8).map(corner).collect();
    let quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];
    let faces = quads.iter().flat_map(|[a, b, c, d]| [[*a, *b, *c], [*a, *c, *d]]).collect();
    (Handle::new("box", HandleShape::Cage { vertices: vertices.clone(), faces }), vertices)
}

#[test]
fn a_cage_moves_everything_inside_it_linearly() {
    // The mesh sits in a box whose corners move linearly: coordinates of every vertex reproduce the vertex.
    let mesh = tube(0.6, 2.0, 12, 10);
    let (cage, vertices) = box_cage();
    let weights = solved(&mesh, &[cage], &WeightSettings { cells: 20, ..WeightSettings::default() });
    check_rows(&weights);
    assert_eq!(weights.names[7], "box.7");
    for (vertex, p) in mesh.positions().iter().enumerate() {
        let back: DVec3 = weights.row(vertex).iter().zip(&vertices).map(|(w, v)| *v * *w).sum();
        assert!((back - p.as_dvec3()).length() < 0.35, "{p} {back}");
    }
}

#[test]
fn islands_without_a_handle_take_the_weights_of_the_volume() {
    let body = tube(1.0, 10.0, 16, 40);
    let mut parts = body.clone().into_parts();
    // A button just outside the upper half.
    let first = parts.positions.len() as u32;
    parts.positions.extend([Vec3::new(1.05, 8.0, 0.0), Vec3::new(1.05, 8.4, 0.0), Vec3::new(1.05, 8.2, 0.3)]);
    parts.faces.push(Face::triangle(first, first + 1, first + 2));
    // And a vertex that no face uses.
    parts.positions.push(Vec3::new(0.5, 0.1, 0.8));
    parts.segments = Default::default();
    let mesh = parts.build().expect("two islands");
    let handles =
        [Handle::new("low", HandleShape::Vertex(0)), Handle::new("high", HandleShape::Vertex(39 * 16))];
    let settings = WeightSettings { domain: DomainKind::Surface, cells: 30, ..WeightSettings::default() };
    let weights = solved(&mesh, &handles, &settings);
    check_rows(&weights);
    assert_eq!((weights.report.parts, weights.report.parts_without_handle), (2, 1));
    assert!(weights.report.notes.iter().any(|note| note.contains("take the weights of the volume")));
    assert!(weights.report.notes.iter().any(|note| note.contains("1 vertices belong to no face")));
    let (button, beside) = (weights.row(first as usize)[1], weights.row(31 * 16)[1]);
    assert!(button > 0.6 && (button - beside).abs() < 0.2, "{button} {beside}");
    assert!(weights.row(first as usize + 3)[0] > 0.6);
}

#[test]
fn a_seam_is_sewn_and_damage_is_said() {
    // The same card, cut along a column whose vertices exist twice.
    let whole = card(11, 7);
    let mut parts = whole.clone().into_parts();
    let mut twins = Vec::new();
    for row in 0..7u32 {
        twins.push(parts.positions.len() as u32);
        parts.positions.push(parts.positions[(row * 11 + 5) as usize]);
    }
    let positions = parts.positions.clone();
    for face in &mut parts.faces {
        let right = face.corners().iter().any(|v| *v < 77 && v % 11 > 5);
        let twin = |v: u32| if right && v < 77 && v % 11 == 5 { twins[(v / 11) as usize] } else { v };
        *face = face.map(twin);
    }
    parts.positions = positions;
    // A triangle without area.
    parts.faces.push(Face::triangle(0, 1, 2));
    parts.segments = Default::default();
    let cut = parts.build().expect("a cut card");
    let handles = [Handle::new("a", HandleShape::Vertex(33)), Handle::new("b", HandleShape::Vertex(43))];
    let settings = WeightSettings::default();
    let (a, b) = (solved(&whole, &handles, &settings), solved(&cut, &handles, &settings));
    assert!(largest_difference(&a.values, &b.values[..a.values.len()]) < 1e-9);
    assert_eq!(b.row(33), a.row(33));
    assert!(
        b.report.notes.iter().any(|note| note.contains("1 of 121 triangles have no area")),
        "{:?}",
        b.report.notes
    );
    assert!(b.report.notes.iter().any(|note| note.contains("across a seam")));
    // A handle holds both sides of the seam, and two handles cannot hold one side each.
    let on_seam = |name: &str, v: u32| Handle::new(name, HandleShape::Vertex(v));
    let twin = twins[3];
    let held = solved(&cut, &[on_seam("a", twin), on_seam("b", 33)], &settings);
    assert_eq!((held.row(twin as usize), held.row(3 * 11 + 5)), (&[1.0, 0.0][..], &[1.0, 0.0][..]));
    let torn = solve_weights(&cut, &[on_seam("a", twin), on_seam("b", 38)], &settings, &|_| true);
    assert_eq!(torn.expect_err("one place").to_string(), "handles 'a' and 'b' share vertex 38");
}

#[test]
fn what_is_kept_is_solved_again_whatever_the_kind() {
    let mesh = card(15, 15);
    let handles: Vec<Handle> =
        [0, 14, 112, 210, 224].map(|v| Handle::new(format!("h{v}"), HandleShape::Vertex(v))).to_vec();
    for kind in [WeightKind::Bbw, WeightKind::Quasi, WeightKind::Heat] {
        let settings = WeightSettings { kind, ..WeightSettings::default() };
        let all = solved(&mesh, &handles, &settings);
        let few = solved(&mesh, &handles, &WeightSettings { max_influences: Some(2), ..settings });
        check_rows(&few);
        let mut cut = all.values.clone();
        for row in cut.chunks_exact_mut(5) {
            keep_largest(row, 2);
            normalise(row);
        }
        assert!(few.values.chunks_exact(5).all(|row| row.iter().filter(|w| **w > 0.0).count() <= 2));
        // Cutting leaves steps where handles end; solving again lets them fall to zero there.
        assert!(largest_difference(&few.values, &cut) > 0.01, "{kind:?} is only cut");
    }
}

#[test]
fn regions_that_hold_the_whole_mesh_leave_nothing_to_solve() {
    let mesh = card(6, 4);
    let half = |name: &str, low: u32| {
        let vertices = (0..24u32).filter(|v| (v % 6 < 3) == (low == 0)).collect();
        Handle::new(name, HandleShape::Region(vertices))
    };
    for joint in [false, true] {
        let settings = WeightSettings { joint, ..WeightSettings::default() };
        let weights = solved(&mesh, &[half("left", 0), half("right", 1)], &settings);
        assert!((0..24).all(|v| weights.row(v)[usize::from(v % 6 > 2)] == 1.0));
    }
}

#[test]
fn bones_that_share_their_only_place_are_weighed_and_said() {
    // Five bones within one cell of the lattice, and one that fills the rest.
    let mesh = tube(1.0, 10.0, 12, 20);
    let small = |k: i32| {
        let head = DVec3::new(0.02 * f64::from(k), 9.0, 0.0);
        Handle::new(format!("finger {k}"), HandleShape::Bone { head, tail: head + DVec3::Y * 0.01 })
    };
    let mut handles: Vec<Handle> = (-2..3).map(small).collect();
    handles.push(Handle::new("body", HandleShape::Bone { head: DVec3::Y * 0.5, tail: DVec3::Y * 7.0 }));
    let weights = solved(&mesh, &handles, &WeightSettings { cells: 8, ..WeightSettings::default() });
    check_rows(&weights);
    assert!((0..5).all(|j| weights.values.chunks_exact(6).any(|row| row[j] > 0.02)));
    assert!(weights.report.notes.iter().any(|note| note.contains("more cells")), "{:?}", weights.report);
}

#[test]
fn progress_never_passes_its_total_and_pieces_have_names() {
    use std::sync::Mutex;
    let mesh = card(12, 9);
    let handles: Vec<Handle> =
        [0, 11, 60, 107].map(|v| Handle::new(format!("h{v}"), HandleShape::Vertex(v))).to_vec();
    let joint = WeightSettings { joint: true, max_influences: Some(2), ..WeightSettings::default() };
    let quasi = WeightSettings { kind: WeightKind::Quasi, ..WeightSettings::default() };
    for (settings, piece) in [(joint, "all handles at once"), (quasi, "quasi-harmonic weights")] {
        let said = Mutex::new(Vec::new());
        solve_weights(&mesh, &handles, &settings, &|progress| {
            said.lock().expect("no panic").push(progress);
            true
        })
        .expect("solved");
        let said = said.into_inner().expect("no panic");
        assert!(said.iter().all(|progress| progress.done <= progress.total), "{said:?}");
        assert!(said.iter().any(|progress| progress.what == piece), "{said:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let mesh = card(6, 5);
    let refuse = |handles: &[Handle], settings: WeightSettings| {
        solve_weights(&mesh, handles, &settings, &|_| true).expect_err("bad input").to_string()
    };
    let vertex = |name: &str, v: u32| Handle::new(name, HandleShape::Vertex(v));
    let plain = WeightSettings::default();
    assert_eq!(refuse(&[], plain), "there is no handle");
    assert_eq!(refuse(&[vertex("a", 0), vertex("b", 0)], plain), "handles 'a' and 'b' share vertex 0");
    assert_eq!(refuse(&[vertex("a", 0), vertex("a", 1)], plain), "two handles are named 'a'");
    assert_eq!(refuse(&[vertex("a", 99)], plain), "handle 'a' names vertex 99, but there are 30");
    let point = |p: DVec3| Handle::new("p", HandleShape::Point(p));
    assert!(refuse(&[vertex("a", 0), point(DVec3::splat(50.0))], plain).contains("'p' is 8"));
    assert!(refuse(&[point(DVec3::splat(f64::NAN))], plain).contains("not finite"));
    let bone = Handle::new("b", HandleShape::Bone { head: DVec3::Z * 2.0, tail: DVec3::Z * 3.0 });
    let surface = WeightSettings { domain: DomainKind::Surface, ..plain };
    assert!(refuse(&[vertex("a", 0), bone], surface).contains("touches no vertex: it needs the volume"));
    assert!(refuse(&[vertex("a", 0)], WeightSettings { cells: 0, ..plain }).contains("number of cells"));
    let far = Handle::new("r", HandleShape::Region(Vec::new()));
    assert!(refuse(&[far], plain).contains("has no vertices"));
    for kind in [WeightKind::Bbw, WeightKind::Quasi, WeightKind::Heat] {
        let settings = WeightSettings { kind, ..plain };
        let stopped = solve_weights(&mesh, &[vertex("a", 0), vertex("b", 29)], &settings, &|_| false);
        assert_eq!(stopped, Err(WeightsError::Stopped), "{kind:?}");
    }
    // Two places that are nearest to one vertex: a finer lattice would not help on a surface.
    let near = |name: &str, x: f64| Handle::new(name, HandleShape::Point(DVec3::new(x, 2.0, 0.0)));
    let shared = refuse(&[near("a", 2.1), near("b", 2.2)], surface);
    assert_eq!(shared, "handles 'a' and 'b' share vertex 14");
}

/// `min ½ Σ_j w_jᵀ A w_j` with held rows, bounds and, where `joint`, a sum of one, by clarabel: `[columns][N]`.
fn interior_point(a: &SparseRows, held: &[(u32, Vec<f64>)], columns: usize, joint: bool) -> Vec<f64> {
    use clarabel::algebra::CscMatrix;
    use clarabel::solver::{
        DefaultSettingsBuilder, DefaultSolver, IPSolver as _, SolverStatus, SupportedConeT,
    };
    let n = a.size();
    let size = n * columns;
    let matrix = |rows: usize, mut entries: Vec<(usize, usize, f64)>| {
        entries.sort_by_key(|(row, column, _)| (*column, *row));
        let (r, rest): (Vec<usize>, Vec<(usize, f64)>) =
            entries.into_iter().map(|(r, c, v)| (r, (c, v))).unzip();
        let (c, v): (Vec<usize>, Vec<f64>) = rest.into_iter().unzip();
        CscMatrix::new_from_triplets(rows, size, r, c, v)
    };
    let mut cost = Vec::new();
    for j in 0..columns {
        for row in 0..n {
            cost.extend(a.row(row).filter(|(c, _)| *c >= row).map(|(c, v)| (j * n + row, j * n + c, v)));
        }
    }
    let (mut rows, mut right) = (Vec::new(), Vec::new());
    for (node, values) in held {
        for (j, value) in values.iter().enumerate() {
            rows.push((right.len(), j * n + *node as usize, 1.0));
            right.push(*value);
        }
    }
    if joint {
        for node in (0..n).filter(|node| held.iter().all(|(other, _)| *other as usize != *node)) {
            (0..columns).for_each(|j| rows.push((right.len(), j * n + node, 1.0)));
            right.push(1.0);
        }
    }
    let equal = right.len();
    // A bound that other conditions imply only makes the problem degenerate: held nodes have none, and with a sum of one
    // nothing exceeds one.
    for k in (0..size).filter(|k| held.iter().all(|(node, _)| *node as usize != k % n)) {
        rows.push((right.len(), k, -1.0));
        right.push(0.0);
        if !joint {
            rows.push((right.len(), k, 1.0));
            right.push(1.0);
        }
    }
    let cones = [SupportedConeT::ZeroConeT(equal), SupportedConeT::NonnegativeConeT(right.len() - equal)];
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-9)
        .tol_gap_rel(1e-9)
        .tol_feas(1e-9)
        .build()
        .expect("settings");
    let constraints = matrix(right.len(), rows);
    let mut solver =
        DefaultSolver::new(&matrix(size, cost), &vec![0.0; size], &constraints, &right, &cones, settings)
            .expect("a problem");
    solver.solve();
    let status = solver.solution.status;
    assert!(matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved), "{status:?}");
    solver.solution.x.clone()
}

#[test]
fn both_modes_agree_with_an_interior_point_solver() {
    let mesh = card(20, 10);
    let surface = Surface::new(&mesh).expect("a card");
    let domain = Domain::of_surface(&surface);
    let stiffness = domain.stiffness();
    let at = [(0, 0), (19, 0), (9, 5), (14, 9)].map(|(x, y)| y * 20 + x);
    let handles: Vec<Handle> =
        at.iter().map(|v| Handle::new(format!("h{v}"), HandleShape::Vertex(*v))).collect();
    // Nodes are numbered by the faces.
    let node = |vertex: u32| domain.node_of_vertex[vertex as usize];
    let row = |k: usize| (0..4).map(|j| f64::from(u8::from(j == k))).collect::<Vec<f64>>();
    let held: Vec<(u32, Vec<f64>)> = at.iter().enumerate().map(|(k, v)| (node(*v), row(k))).collect();
    for joint in [false, true] {
        let truth = interior_point(&stiffness, &held, 4, joint);
        let settings =
            WeightSettings { joint, tolerance: 1e-5, joint_iterations: 20_000, ..WeightSettings::default() };
        let weights = solved(&mesh, &handles, &settings);
        let mut want: Vec<f64> = Vec::new();
        for vertex in 0..200 {
            let mut row: Vec<f64> = (0..4).map(|j| truth[j * 200 + node(vertex) as usize]).collect();
            normalise(&mut row);
            want.extend(row);
        }
        let difference = largest_difference(&weights.values, &want);
        assert!(difference < 1e-4, "joint {joint}: {difference}, {:?}", weights.report);
        if joint {
            // The sum of one inside the problem costs energy that making it at the end does not see.
            let apart = solved(&mesh, &handles, &WeightSettings::default());
            assert!(weights.report.energy <= apart.report.energy * (1.0 + 1e-9));
        }
    }
}
