//! Laws of dragging: rigid drags are rigid, handles arrive, energy settles, bad input is refused.

use super::*;

use understudy_core::{EulerRot, Face, Mesh, MeshParts, Quat, SkinWeights};

fn bar(n: usize) -> (Mesh, SkinWeights, [Vec3; 3]) {
    let positions: Vec<Vec3> =
        (0..4 * n).map(|i| Vec3::new((i / 4) as f32, (i % 4 / 2) as f32, (i % 4 % 2) as f32)).collect();
    let sides = [[0u32, 1], [1, 3], [3, 2], [2, 0]];
    let faces = (0..n as u32 - 1)
        .flat_map(|ring| {
            sides.map(|[a, b]| Face::quad(4 * ring + a, 4 * ring + 4 + a, 4 * ring + 4 + b, 4 * ring + b))
        })
        .collect();
    let mesh = MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a bar");
    let length = (n - 1) as f32;
    let row = |vertex: usize| {
        let x = (vertex / 4) as f32 / length * 2.0;
        let hat = |at: f32| (1.0 - (x - at).abs()).max(0.0);
        (0..3u16).map(|j| (j, hat(f32::from(j)))).collect::<Vec<_>>()
    };
    let rows: Vec<_> = (0..4 * n).map(row).collect();
    let weights = SkinWeights::from_rows(&rows, 3).expect("convex");
    (mesh, weights, [0.0, 0.5, 1.0].map(|x| Vec3::new(x * length, 0.5, 0.5)))
}

#[test]
fn a_rigid_drag_is_rigid_and_rest_is_rest() {
    let (mesh, weights, places) = bar(21);
    let settings = DragSettings { iterations: 60, ..DragSettings::default() };
    let rig = DragRig::new(&mesh, &weights, &places, &[0, 1, 2], &settings).expect("a rig");
    let mut drag = rig.start();
    let mut out = vec![Vec3::ZERO; rig.vertex_count()];
    drag.update(&rig, &places, &mut out).expect("rest");
    assert!(out.iter().zip(mesh.positions()).all(|(a, b)| a.distance(*b) < 1e-3));
    let turn = Quat::from_rotation_z(0.9);
    let shift = Vec3::new(4.0, -7.0, 2.0);
    drag.update(&rig, &places.map(|p| turn * p + shift), &mut out).expect("moved");
    let worst =
        out.iter().zip(mesh.positions()).fold(0.0f32, |w, (a, b)| w.max(a.distance(turn * *b + shift)));
    assert!(worst < 0.02, "{worst}");
}

#[test]
fn handles_arrive_where_they_are_dragged_and_repeating_changes_little() {
    let (mesh, weights, places) = bar(21);
    let rig = DragRig::new(&mesh, &weights, &places, &[2, 0], &DragSettings::default()).expect("a rig");
    let mut drag = rig.start();
    let mut out = vec![Vec3::ZERO; rig.vertex_count()];
    let targets = [Vec3::new(14.0, 11.0, 3.0), places[0]];
    let mut last = Vec::new();
    for _ in 0..30 {
        last.clone_from(&out);
        drag.update(&rig, &targets, &mut out).expect("dragged");
    }
    for (handle, target) in [(2, targets[0]), (0, targets[1])] {
        let at = drag.transforms()[handle].transform_point3(places[handle]);
        assert!(at.distance(target) < 1e-2, "{at} {target}");
    }
    let change = out.iter().zip(&last).fold(0.0f32, |w, (a, b)| w.max(a.distance(*b)));
    assert!(change < 0.05, "{change}");
    // The skin is the reference's.
    let mut reference = vec![Vec3::ZERO; out.len()];
    weights.linear_blend(drag.transforms(), mesh.positions(), &mut reference);
    assert!(out.iter().zip(&reference).all(|(a, b)| a.distance(*b) < 1e-3));
}

#[test]
fn rotations_are_those_of_singular_values() {
    use understudy_core::rotation::best_rotation;
    let mut seed = 1u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    for _ in 0..300 {
        let turn = Quat::from_euler(EulerRot::XYZ, random(), random(), random());
        let stretch =
            Mat3::from_diagonal(Vec3::new(1.0 + 0.6 * random(), 1.0 + 0.6 * random(), 1.0 + 0.6 * random()));
        // From rest to posed edges, as the covariance has it: R maximises tr(Rᵀ A).
        let a = Mat3::from_quat(turn) * stretch;
        let mut found = Mat3::IDENTITY;
        (0..6).for_each(|_| found = rotation::nearest(a, found));
        let want = best_rotation(a.as_dmat3().transpose()).as_mat3();
        assert!(found.abs_diff_eq(want, 1e-3), "{found} {want}");
    }
    assert_eq!(rotation::nearest(Mat3::ZERO, Mat3::IDENTITY), Mat3::IDENTITY);
}

/// A card of 21 × 5 vertices, and weights that change from one half to the other at once.
fn card() -> (Mesh, SkinWeights, [Vec3; 2]) {
    let positions: Vec<Vec3> = (0..105).map(|i| Vec3::new((i % 21) as f32, 0.0, (i / 21) as f32)).collect();
    let cells = (0..104u32).filter(|i| i % 21 < 20 && i / 21 < 4);
    let faces = cells.map(|i| Face::quad(i, i + 21, i + 22, i + 1)).collect();
    let mesh = MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a card");
    let rows: Vec<_> = (0..105).map(|i| vec![(u16::from(i % 21 > 10), 1.0)]).collect();
    let weights = SkinWeights::from_rows(&rows, 2).expect("convex");
    (mesh, weights, [Vec3::new(2.0, 0.0, 2.0), Vec3::new(18.0, 0.0, 2.0)])
}

/// A turn about an axis along z through a place.
fn hinge(at: Vec3, degrees: f32) -> Affine3A {
    Affine3A::from_translation(at)
        * Affine3A::from_quat(Quat::from_rotation_z(degrees.to_radians()))
        * Affine3A::from_translation(-at)
}

#[test]
fn two_affine_handles_refold_a_card_and_positions_alone_do_not_say_how_an_end_turns() {
    let (mesh, weights, places) = card();
    let settings = DragSettings::default();
    let rig = DragRig::with_turned(&mesh, &weights, &places, &[], &[0, 1], &settings).expect("a rig");
    let mut out = vec![Vec3::ZERO; rig.vertex_count()];
    for degrees in [30.0f32, 60.0, 120.0] {
        // Both halves turned against each other, neither where it was.
        let first = Affine3A::from_translation(Vec3::new(3.0, -2.0, 1.0)) * hinge(Vec3::ZERO, 25.0);
        let second = first * hinge(Vec3::X * 10.5, degrees);
        rig.start().update_turned(&rig, &[], &[first, second], &mut out).expect("folded");
        for (vertex, p) in mesh.positions().iter().enumerate() {
            let want = if vertex % 21 > 10 { second } else { first }.transform_point3(*p);
            assert!(out[vertex].distance(want) < 1e-3, "{degrees}: {vertex} {} {want}", out[vertex]);
        }
    }
    // One end of a bar turned about itself where it is: it takes the turn exactly, the far end stays.
    let (mesh, weights, places) = bar(21);
    let rig = DragRig::with_turned(&mesh, &weights, &places, &[0], &[2], &settings).expect("a rig");
    let mut drag = rig.start();
    let mut out = vec![Vec3::ZERO; rig.vertex_count()];
    let turn = hinge(places[2], 50.0);
    drag.update_turned(&rig, &[places[0]], &[turn], &mut out).expect("turned");
    assert!(drag.transforms()[2].abs_diff_eq(turn, 1e-3), "{}", drag.transforms()[2]);
    assert!(drag.transforms()[0].transform_point3(places[0]).distance(places[0]) < 1e-2);
    let held = DragRig::new(&mesh, &weights, &places, &[0, 2], &settings).expect("a rig");
    let mut still = vec![Vec3::ZERO; held.vertex_count()];
    held.start().update(&held, &[places[0], places[2]], &mut still).expect("held");
    let most = out.iter().zip(&still).fold(0.0f32, |most, (a, b)| most.max(a.distance(*b)));
    assert!(most > 0.3, "{most}");
}

#[test]
fn bad_input_is_refused() {
    let (mesh, weights, places) = bar(5);
    let make = |places: &[Vec3], dragged: &[usize]| {
        DragRig::new(&mesh, &weights, places, dragged, &DragSettings::default()).err()
    };
    assert_eq!(make(&places, &[]), Some(DragError::Nothing));
    assert_eq!(make(&places, &[3]), Some(DragError::Handle { handle: 3, count: 3 }));
    assert_eq!(make(&places, &[1, 1]), Some(DragError::Handle { handle: 1, count: 3 }));
    assert!(matches!(make(&places[1..], &[0]), Some(DragError::Count { got: 2, want: 3, .. })));
    let rig = DragRig::new(&mesh, &weights, &places, &[0], &DragSettings::default()).expect("a rig");
    let mut out = vec![Vec3::ZERO; rig.vertex_count()];
    let mut drag = rig.start();
    assert!(drag.update(&rig, &[], &mut out).is_err());
    assert_eq!(drag.update(&rig, &[Vec3::NAN], &mut out), Err(DragError::NotFinite { handle: 0 }));
    assert!(drag.update(&rig, &[places[0]], &mut out[1..]).is_err());
    let both = DragRig::with_turned(&mesh, &weights, &places, &[0, 1], &[1], &DragSettings::default());
    assert_eq!(both.err(), Some(DragError::Handle { handle: 1, count: 3 }));
    let turned = DragRig::with_turned(&mesh, &weights, &places, &[], &[2], &DragSettings::default());
    let turned = turned.expect("a rig");
    let mut drag = turned.start();
    assert!(matches!(drag.update(&turned, &[], &mut out), Err(DragError::Count { what: "transforms", .. })));
    let bad = Affine3A::from_translation(Vec3::NAN);
    let bad = drag.update_turned(&turned, &[], &[bad], &mut out);
    assert_eq!(bad, Err(DragError::TransformNotFinite { handle: 0 }));
}
