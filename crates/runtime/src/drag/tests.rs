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
}
