//! Parts of twins, derivatives of single vertices, and networks that pose a face by points.

#[path = "common/twins.rs"]
mod twins;

use std::sync::Arc;
use understudy_core::{Affine3A, Quat, Random};
use understudy_runtime::face::MapShape;
use understudy_runtime::ik::{
    ControlPoint, Correction, PointDrag, PointIk, PointIkParts, PointSolver, RegionParts, Wanted,
};
use understudy_runtime::{DenseParts, Pose, Precision, Twin, TwinError, Vec3};

const CONTROLS: usize = 24;

/// Small ones of every kind that is posed by controls.
fn all() -> Vec<Twin> {
    let shape = MapShape { untied: true, shared_features: 5, ..MapShape::default() };
    vec![
        twins::sized_face(CONTROLS, [40, 3], [50, 2], shape, 24),
        twins::sized_face(CONTROLS, [40, 3], [50, 2], MapShape::default(), 24),
        twins::sized_skin(CONTROLS, 300, 9, 4),
        twins::sized_diff(0, CONTROLS, 700, [32, 20], 6),
    ]
}

fn random_pose(seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..CONTROLS).map(|_| random.uniform(-0.5, 0.5)).collect()
}

#[test]
fn a_part_of_a_twin_moves_as_the_whole_does() {
    for twin in all() {
        let count = twin.vertex_count() as u32;
        // The last of a face are bodies and a rigid tooth.
        let wanted = [7, 3, count - 1, 60, 90, count - 18, 0];
        let part = twin.of_vertices(&wanted).expect("a part");
        assert!(part.vertex_count() < 30, "{}: {}", twin.method(), part.vertex_count());
        assert!(part.multiply_adds() <= twin.multiply_adds());
        let (mut whole, mut few) = (twin.player(1), part.player(1));
        let mut all = vec![Vec3::ZERO; twin.vertex_count()];
        let mut some = vec![Vec3::ZERO; part.vertex_count()];
        for seed in 0..4 {
            let pose = random_pose(seed);
            whole.pose(Pose::Controls(&pose), &mut all).expect("a pose");
            few.pose(Pose::Controls(&pose), &mut some).expect("a pose");
            for (place, vertex) in wanted.iter().enumerate() {
                // Mixes of a differential twin are rounded to 16 bits once more.
                let size = all[*vertex as usize].length() + 1.0;
                let miss = all[*vertex as usize].distance(some[place]);
                assert!(miss < 2e-3 * size, "{} {vertex}: {miss}", twin.method());
            }
        }
    }
}

#[test]
fn parts_that_are_none_are_refused() {
    for twin in all() {
        let beyond = twin.of_vertices(&[twin.vertex_count() as u32]);
        assert!(matches!(beyond, Err(TwinError::Index { .. })));
        assert!(matches!(twin.of_vertices(&[1, 2, 1]), Err(TwinError::Cover { .. })));
    }
    assert!(matches!(twins::body().of_vertices(&[1]), Err(TwinError::Kind(_))));
}

#[test]
fn derivatives_of_single_vertices_are_those_of_the_gradient() {
    for twin in all() {
        let count = twin.vertex_count() as u32;
        let part = twin.of_vertices(&[7, count - 1, 45, count - 18]).expect("a part");
        let mut player = part.player(1);
        for seed in 5..8 {
            let pose = random_pose(seed);
            let mut places = [Vec3::ZERO; 4];
            let mut rows = vec![0.0; 12 * CONTROLS];
            player.jacobian(Pose::Controls(&pose), &mut places, &mut rows).expect("derivatives");
            let mut row = vec![0.0; CONTROLS];
            for (index, own) in rows.chunks_exact(CONTROLS).enumerate() {
                let one = |places: &[Vec3], slopes: &mut [Vec3]| {
                    slopes[index / 3][index % 3] = 1.0;
                    places[index / 3]
                };
                let place = player.gradient(Pose::Controls(&pose), one, &mut row).expect("a gradient");
                assert_eq!(place, places[index / 3]);
                let size = row.iter().fold(1e-3f32, |most, slope| most.max(slope.abs()));
                for (a, b) in own.iter().zip(&row) {
                    assert!((a - b).abs() < 2e-3 * size, "{} row {index}: {a} {b}", twin.method());
                }
            }
        }
        assert!(
            player.jacobian(Pose::Controls(&[0.0; CONTROLS]), &mut [Vec3::ZERO; 2], &mut [0.0; 3]).is_err()
        );
    }
}

#[test]
fn derivatives_of_single_vertices_go_through_a_skin_and_over_blocks() {
    const BONES: usize = 5;
    let twin = twins::sized_diff(BONES, CONTROLS, 700, [32, 20], 6);
    let bone = |index: usize| {
        let turn = Quat::from_rotation_y(0.3 * index as f32);
        Affine3A::from_rotation_translation(turn, Vec3::new(index as f32, 2.0, -0.5))
    };
    let bones: Vec<Affine3A> = (0..BONES).map(bone).collect();
    let extras = random_pose(2);
    let pose = Pose::Bones { bones: &bones, extras: &extras };
    let mut player = twin.player(1);
    // The first block has 512 vertices.
    let mut places = vec![Vec3::ZERO; 520];
    let mut rows = vec![0.0; 3 * places.len() * CONTROLS];
    player.jacobian(pose, &mut places, &mut rows).expect("derivatives");
    let mut row = vec![0.0; CONTROLS];
    for vertex in [0, 17, 511, 512, 519] {
        for axis in 0..3 {
            let one = |_: &[Vec3], slopes: &mut [Vec3]| slopes[vertex][axis] = 1.0;
            player.gradient(pose, one, &mut row).expect("a gradient");
            let own = &rows[(3 * vertex + axis) * CONTROLS..][..CONTROLS];
            let size = row.iter().fold(1e-3f32, |most, slope| most.max(slope.abs()));
            for (a, b) in own.iter().zip(&row) {
                assert!((a - b).abs() < 2e-3 * size, "vertex {vertex} axis {axis}: {a} {b}");
            }
        }
    }
}

/// Two regions; two controls belong to both.
fn parts(twin: &Twin, dimensions: usize) -> PointIkParts {
    let mut random = Random::new(3);
    let names = ["eye_a", "eye_b", "mouth_a", "mouth_b", "mouth_c"];
    let vertices = [3, 9, 50, 55, 70];
    let point = |(name, vertex): (&&str, &u32)| ControlPoint { name: (*name).into(), vertex: *vertex };
    let mut layer = |rows: usize, columns: usize| DenseParts {
        weights: (0..rows * columns).map(|_| random.uniform(-0.3, 0.3)).collect(),
        bias: (0..rows).map(|_| random.uniform(-0.01, 0.01)).collect(),
    };
    let mut region = |name: &str, points: Vec<u32>, controls: Vec<u32>| RegionParts {
        layers: vec![layer(16, points.len() * dimensions), layer(16, 16), layer(controls.len(), 16)],
        name: name.into(),
        points,
        controls,
    };
    let regions =
        vec![region("eye", vec![0, 1], (0..9).collect()), region("mouth", vec![2, 3, 4], (7..20).collect())];
    let mut places = vec![Vec3::ZERO; twin.vertex_count()];
    twin.player(1).pose(Pose::Controls(&[0.0; CONTROLS]), &mut places).expect("a pose");
    PointIkParts {
        topology_hash: twin.header().topology_hash,
        dimensions,
        points: names.iter().zip(&vertices).map(point).collect(),
        rest: vertices.iter().map(|vertex| places[*vertex as usize]).collect(),
        regions,
        training: serde_json::json!({"noise_mm": 4.5}),
    }
}

#[test]
fn a_point_of_one_region_changes_no_control_of_another() {
    for twin in all() {
        for dimensions in [2, 3] {
            let ik = PointIk::new(parts(&twin, dimensions), Precision::Half, &twin).expect("valid");
            let ik = Arc::new(ik);
            let mut solver = ik.solver();
            let mut targets = ik.rest().to_vec();
            targets[3] += Vec3::new(0.4, -0.2, 0.1);
            let (mut before, mut after) = (vec![0.0; CONTROLS], vec![0.0; CONTROLS]);
            solver.solve(&targets, &mut before).expect("a pose");
            targets[0] += Vec3::new(-0.3, 0.5, 0.2);
            solver.solve(&targets, &mut after).expect("a pose");
            assert_eq!(before[9..], after[9..], "the mouth's own controls stay, bit by bit");
            assert_ne!(before[..7], after[..7]);
            // Nor does correcting the eye, which leaves what both share alone as well.
            let how = Correction::default();
            let mut corrected = after.clone();
            solver.correct(&targets, &[0], &how, &mut corrected).expect("steps");
            assert_eq!(corrected[7..], after[7..]);
            assert_ne!(corrected[..7], after[..7]);
            // Depth does not count for points on a screen.
            if dimensions == 2 {
                targets[0].z += 5.0;
                let mut flat = vec![0.0; CONTROLS];
                solver.solve(&targets, &mut flat).expect("a pose");
                assert_eq!(flat, after);
            }
        }
    }
}

/// Targets that some pose reaches are reached, and each step lowers what is left.
#[test]
fn steps_bring_points_to_their_targets() {
    for twin in all() {
        let ik = Arc::new(PointIk::new(parts(&twin, 3), Precision::Single, &twin).expect("valid"));
        let mut solver = ik.solver();
        let mut targets = vec![Vec3::ZERO; 5];
        let mut truth = random_pose(11);
        truth.iter_mut().for_each(|value| *value *= 0.2);
        solver.points(&truth, &mut targets).expect("points");
        let mut controls = vec![0.0; CONTROLS];
        let how = Correction { steps: 0, ..Correction::default() };
        let mut left = solver.correct(&targets, &[], &how, &mut controls).expect("no steps");
        let first = left;
        for _ in 0..8 {
            let how = Correction { steps: 1, damping: 1e-8, enough_cm: 0.0, ..how };
            let now = solver.correct(&targets, &[], &how, &mut controls).expect("a step");
            assert!(now <= left * 1.5 + 1e-4, "{}: {now} after {left}", twin.method());
            left = now;
        }
        assert!(left < 0.02 * first, "{}: {left} of {first}", twin.method());
        assert!(controls.iter().all(|value| (-1.0..=1.0).contains(value)));
    }
}

/// Where the points of a pose are, and a drag that began there.
fn held(twin: &Twin, pose: &[f32]) -> (PointSolver, PointDrag, Vec<Vec3>) {
    let ik = Arc::new(PointIk::new(parts(twin, 3), Precision::Single, twin).expect("valid"));
    let mut solver = ik.solver();
    let drag = PointDrag::begin(&mut solver, pose).expect("a pose");
    let places = drag.places().0.to_vec();
    (solver, drag, places)
}

#[test]
fn a_drag_moves_what_is_dragged_and_goes_back() {
    for twin in all() {
        let start: Vec<f32> = random_pose(21).iter().map(|value| 0.3 * value).collect();
        let (mut solver, mut drag, places) = held(&twin, &start);
        let how = Correction {
            steps: 12,
            keep_derivatives: false,
            enough_cm: 0.0,
            damping: 1e-8,
            ..Correction::default()
        };
        // Where a pose nearby has the point: it can be reached.
        let mut near = start.clone();
        (0..7).for_each(|control| near[control] += 0.1);
        let mut wanted = vec![Vec3::ZERO; 5];
        solver.points(&near, &mut wanted).expect("points");
        let to = |point: usize, sight: Vec3| Wanted { point, place: wanted[point], sight };
        let mut controls = vec![0.0; CONTROLS];
        drag.to(&mut solver, &[to(0, Vec3::ZERO)], &[], &how, &mut controls).expect("a pose");
        let mut now = vec![Vec3::ZERO; 5];
        solver.points(&controls, &mut now).expect("points");
        let (before, after) = (places[0].distance(wanted[0]), now[0].distance(wanted[0]));
        assert!(after < 0.3 * before, "{}: {after} of {before}", twin.method());
        // What only the mouth gives, and what nobody gives, stays as it was, bit by bit.
        assert_eq!(controls[9..], start[9..]);
        // A pinned neighbour moves less than one that nobody holds.
        let mut firm = vec![0.0; CONTROLS];
        drag.to(&mut solver, &[to(0, Vec3::ZERO)], &[1], &how, &mut firm).expect("a pose");
        let mut pinned = vec![Vec3::ZERO; 5];
        solver.points(&firm, &mut pinned).expect("points");
        let (loose, tight) = (now[1].distance(places[1]), pinned[1].distance(places[1]));
        assert!(tight <= loose + 1e-4, "{}: {tight} pinned, {loose} loose", twin.method());
        // Back where it began: the pose that it began with.
        let home = Wanted { point: 0, place: places[0], sight: Vec3::ZERO };
        drag.to(&mut solver, &[home], &[], &how, &mut controls).expect("a pose");
        let off = controls.iter().zip(&start).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-3, "{}: {off} after going back", twin.method());
    }
}

#[test]
fn depth_hardly_counts_along_the_line_of_sight() {
    for twin in all() {
        let (mut solver, mut drag, places) = held(&twin, &[0.0; CONTROLS]);
        let how = Correction { steps: 12, keep_derivatives: false, ..Correction::default() };
        let mut near = vec![0.0; CONTROLS];
        (0..7).for_each(|control| near[control] = 0.15);
        let mut wanted = vec![Vec3::ZERO; 5];
        solver.points(&near, &mut wanted).expect("points");
        let sight = Vec3::new(0.3, -0.2, -1.0).normalize();
        // The cursor says nothing of depth: the plane through where the point began is as good as any.
        let deep = wanted[0] + sight * (places[0] - wanted[0]).dot(sight) + sight * 0.5;
        let mut left = |sight: Vec3| {
            let mut controls = vec![0.0; CONTROLS];
            let asked = [Wanted { point: 0, place: deep, sight }];
            drag.to(&mut solver, &asked, &[], &how, &mut controls).expect("a pose");
            let mut now = vec![Vec3::ZERO; 5];
            solver.points(&controls, &mut now).expect("points");
            now[0] - deep
        };
        let across = |off: Vec3| (off - sight * sight.dot(off)).length();
        let (seen, whole) = (across(left(sight)), across(left(Vec3::ZERO)));
        assert!(seen <= whole + 1e-3, "{}: {seen} across the line of sight, {whole} without", twin.method());
    }
}

#[test]
fn drags_of_nobody_are_refused() {
    let (mut solver, mut drag, places) = held(&all().remove(2), &[0.0; CONTROLS]);
    let mut controls = vec![0.0; CONTROLS];
    let how = Correction::default();
    let wanted = |point: usize, place: Vec3| [Wanted { point, place, sight: Vec3::ZERO }];
    assert!(drag.to(&mut solver, &wanted(5, Vec3::ZERO), &[], &how, &mut controls).is_err());
    assert!(drag.to(&mut solver, &wanted(0, Vec3::ZERO), &[9], &how, &mut controls).is_err());
    assert!(drag.to(&mut solver, &wanted(0, Vec3::NAN.with_z(0.0)), &[], &how, &mut controls).is_err());
    assert!(drag.to(&mut solver, &wanted(0, places[0]), &[], &how, &mut controls[1..]).is_err());
    // A depth that is not given is the one that the point has.
    drag.to(&mut solver, &wanted(0, places[0].with_z(f32::NAN)), &[], &how, &mut controls).expect("a pose");
    assert!(controls.iter().all(|value| value.abs() < 1e-4));
    assert!(PointDrag::begin(&mut solver, &[f32::NAN; CONTROLS]).is_err());
    assert!(PointDrag::begin(&mut solver, &[0.0; 3]).is_err());
}

#[test]
fn the_section_lives_in_the_twins_file() {
    for twin in all() {
        let ik = PointIk::new(parts(&twin, 3), Precision::Half, &twin).expect("valid");
        let bytes = ik.file_with(&twin).expect("bytes");
        let again = Twin::parse(&bytes).expect("still the twin");
        assert_eq!(again.to_bytes().expect("bytes"), twin.to_bytes().expect("bytes"));
        let read = PointIk::read(&bytes, &again).expect("readable").expect("there");
        assert_eq!(read.parts(), ik.parts());
        assert_eq!(read.file_with(&again).expect("bytes"), bytes, "save, load, save");
        assert!(PointIk::read(&twin.to_bytes().expect("bytes"), &twin).expect("readable").is_none());
        // Any damage is seen.
        let mut broken = bytes.clone();
        let last = broken.len() - 5;
        broken[last] ^= 1;
        assert!(matches!(PointIk::read(&broken, &twin), Err(TwinError::Checksum)));
    }
}

#[test]
fn points_that_do_not_fit_are_named() {
    let twin = all().remove(2);
    let good = parts(&twin, 3);
    let refused = |change: &dyn Fn(&mut PointIkParts)| {
        let mut parts = good.clone();
        change(&mut parts);
        PointIk::new(parts, Precision::Half, &twin).expect_err("does not fit").to_string()
    };
    assert!(refused(&|parts| parts.topology_hash = 1).contains("topology"));
    assert!(refused(&|parts| parts.dimensions = 4).contains("dimensions"));
    assert!(refused(&|parts| parts.points[1].vertex = 3).contains("two points"));
    assert!(refused(&|parts| parts.points[1].vertex = 99_999).contains("out of range"));
    assert!(refused(&|parts| parts.regions[1].points[0] = 0).contains("twice"));
    assert!(refused(&|parts| parts.regions[1].controls[0] = 900).contains("control 900"));
    assert!(refused(&|parts| parts.regions[0].layers[1].bias.push(0.0)).contains("eye"));
    assert!(refused(&|parts| parts.rest[0].x = f32::NAN).contains("not finite"));
    let solver = &mut Arc::new(PointIk::new(good.clone(), Precision::Half, &twin).expect("valid")).solver();
    let mut controls = vec![0.0; CONTROLS];
    for bad in [f32::NAN, f32::INFINITY] {
        let targets = [Vec3::splat(bad); 5];
        assert!(solver.solve(&targets, &mut controls).is_err());
        assert!(solver.correct(&targets, &[], &Correction::default(), &mut controls).is_err());
    }
    assert!(solver.solve(&[Vec3::ZERO; 4], &mut controls).is_err());
    assert!(solver.weigh(&[1.0; 3]).is_err() && solver.weigh(&[f32::NAN; 5]).is_err());
}
