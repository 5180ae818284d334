//! Skins that are known: what was put in must come out, and recordings that hold nothing must be called so.

use super::*;
use crate::HeldBack;
use understudy_core::{Affine3A, ControlSpec, ControlSpecs, Face, Mat3, MeshParts, Random};
use understudy_runtime::Pose;

const CONTROLS: usize = 4;

/// A strip that two affine bones bend and stretch: linear in three of the controls, with a product of two where it is
/// curved. The fourth control moves nothing. The first vertices are there twice.
fn recording(poses: usize, curved: bool, moving: bool) -> Recording {
    let point = |i: usize| Vec3::new((i / 5) as f32 * 0.7, (i % 5) as f32, ((i * 7) % 3) as f32 * 0.5);
    let mut rest: Vec<Vec3> = (0..60).map(point).collect();
    rest.extend_from_within(..6);
    let faces = (2..rest.len() as u32).map(|v| Face::triangle(v - 2, v - 1, v)).collect();
    let mesh = MeshParts { positions: rest.clone(), faces, ..MeshParts::default() }.build().expect("a strip");
    let spec = |c: usize| ControlSpec::number(format!("c{c}"), -1.0, 1.0, 0.0);
    let specs = ControlSpecs::new((0..CONTROLS).map(spec).collect()).expect("valid controls");
    let mut random = Random::new(3);
    let (mut controls, mut vertices) = (Vec::new(), Vec::new());
    for _ in 0..poses {
        let p: Vec<f32> = (0..CONTROLS).map(|_| random.uniform(-1.0, 1.0)).collect();
        let (a, b, c) = if moving { (p[0], p[1], p[2]) } else { (0.0, 0.0, 0.0) };
        let product = if curved { 0.4 * a * b } else { 0.0 };
        let near = Mat3::from_cols(Vec3::X, Vec3::new(0.0, 1.0 + 0.2 * a, 0.1 * b), Vec3::Z);
        let far = Mat3::from_cols(
            Vec3::new(1.0, 0.3 * b, product),
            Vec3::Y,
            Vec3::new(0.0, 0.1 * c, 1.0 + 0.1 * a),
        );
        let bones = [
            Affine3A::from_mat3_translation(near, Vec3::new(0.0, 0.5 * c, 0.0)),
            Affine3A::from_mat3_translation(far, Vec3::new(0.3 * a, product, 0.2 * b)),
        ];
        controls.extend(p);
        vertices.extend(rest.iter().map(|v| {
            let share = (v.x / 8.0).clamp(0.0, 1.0);
            bones[0].transform_point3(*v) * (1.0 - share) + bones[1].transform_point3(*v) * share
        }));
    }
    Recording { mesh, skeleton: None, specs, bones: Vec::new(), controls, vertices }
}

fn settings(bones: usize) -> SkinSettings {
    let train = TrainSettings { epochs: 150, patience: 150, batch: 32, ..TrainSettings::default() };
    SkinSettings { bones, widths: vec![24, 24], train, frame: false, ..SkinSettings::default() }
}

fn measured(poses: &Recording, parts: SkinParts, precision: Precision) -> HeldBack {
    let truth: Vec<(Vec<f32>, Vec<Vec3>)> =
        (0..40).map(|pose| (poses.controls_of(pose).to_vec(), poses.vertices_of(pose).to_vec())).collect();
    let twin = Twin::from(SkinTwin::new(parts, precision).expect("a valid twin"));
    HeldBack::measure(&twin, poses.mesh.positions(), &truth)
}

#[test]
fn what_is_linear_is_exact_and_what_is_not_is_learned() {
    let poses = recording(400, false, true);
    let learned = learn(poses.clone(), None, "strip", &settings(4), &|_| true).expect("it can be learned");
    let found = measured(&poses, learned.parts.clone(), Precision::Single);
    assert!(found.mean_mm < 0.02, "{found:?} {:?}", learned.report);
    assert!(measured(&poses, learned.parts, Precision::Half).mean_mm < 0.03);

    let poses = recording(600, true, true);
    let curved = learn(poses.clone(), None, "strip", &settings(4), &|_| true).expect("it can be learned");
    let found = measured(&poses, curved.parts, Precision::Half);
    assert!(curved.report.network_rmse_mm < 0.3 * curved.report.linear_rmse_mm, "{:?}", curved.report);
    assert!(found.mean_mm < 0.05 * found.base_mean_mm, "{found:?}");
}

#[test]
fn components_add_what_a_skin_cannot() {
    let poses = recording(300, true, true);
    let one = settings(1);
    let bare = SkinSettings { components: Some(0), ..one.clone() };
    let bare = learn(poses.clone(), None, "strip", &bare, &|_| true).expect("it can be learned");
    let more = SkinSettings { components: Some(6), ..one };
    let more = learn(poses.clone(), None, "strip", &more, &|_| true).expect("it can be learned");
    // Two bones that blend along the strip, one of which is curved: four ways, and no more are made up.
    assert_eq!(more.report.components, 4);
    let [bare, more] = [bare, more].map(|learned| measured(&poses, learned.parts, Precision::Half).mean_mm);
    assert!(more < 0.3 * bare, "{bare} mm without components, {more} mm with them");
}

#[test]
fn components_are_taken_where_bones_are_what_limits_a_twin() {
    // Linear in the controls: regression is exact, and one bone cannot follow two that blend along the strip.
    let poses = recording(300, false, true);
    let by = |bones: usize| {
        learn(poses.clone(), None, "strip", &settings(bones), &|_| true).expect("it can be learned")
    };
    let one = by(1);
    assert!((2..=4).contains(&one.report.components), "{:?}", one.report);
    let found = measured(&poses, one.parts, Precision::Half);
    assert!(found.mean_mm < 0.03, "{found:?} {:?}", one.report);
    // Bones that can be exact need none.
    let four = by(4);
    assert!(four.report.components == 0 || four.report.skin_rmse_mm > 0.002, "{:?}", four.report);
}

#[test]
fn the_same_seed_gives_the_same_twin() {
    let run = || {
        learn(recording(60, true, true), None, "strip", &settings(3), &|_| true).expect("it can be learned")
    };
    assert!(run().parts == run().parts);
}

#[test]
fn recordings_that_hold_nothing_are_called_so() {
    let failed = |poses: Recording| learn(poses, None, "strip", &settings(3), &|_| true).map(|_| ());
    assert!(matches!(
        failed(recording(2, true, true)),
        Err(SkinLearnError::Recording(RecordingError::TooFewPoses { got: 2, .. }))
    ));
    assert_eq!(failed(recording(50, true, false)), Err(SkinLearnError::NothingMoves));
    let mut still = recording(50, true, true);
    still.controls.fill(0.0);
    assert_eq!(failed(still), Err(SkinLearnError::NoControl));
    let mut broken = recording(50, true, true);
    broken.vertices[77].y = f32::NAN;
    assert!(matches!(failed(broken), Err(SkinLearnError::Recording(RecordingError::NonFinite { .. }))));
    let stopped = learn(recording(50, true, true), None, "strip", &settings(3), &|_| false).map(|_| ());
    assert_eq!(stopped, Err(SkinLearnError::Stopped));
    // More bones than vertices, and vertices that are there twice: still a twin.
    let many = learn(recording(50, true, true), None, "strip", &settings(200), &|_| true).expect("a twin");
    assert!(many.parts.output.weights.iter().all(|w| w.is_finite()) && many.report.bones <= 66);
}

#[test]
fn islands_follow_their_own_bones_and_nothing_is_made_up() {
    // Three islands: the strip, a patch that rests, and one that slides along with the first control.
    let mut poses = recording(300, false, true);
    let patch = |x: f32| (0..9).map(move |i| Vec3::new(x + (i / 3) as f32, (i % 3) as f32, 30.0));
    let own = poses.mesh.vertex_count() as u32;
    let mut faces = poses.mesh.faces().to_vec();
    for first in [own, own + 9] {
        let corners = |i: u32| [first + i, first + i + 1, first + i + 4, first + i + 3];
        faces.extend([0, 1, 3, 4].map(corners).map(|[a, b, c, d]| Face::quad(a, b, c, d)));
    }
    let mut vertices = Vec::new();
    for pose in 0..poses.len() {
        let slide = Vec3::new(0.0, 0.0, 2.0 * poses.controls_of(pose)[0]);
        vertices.extend_from_slice(poses.vertices_of(pose));
        vertices.extend(patch(20.0).chain(patch(40.0).map(|v| v + slide)));
    }
    let positions: Vec<Vec3> =
        poses.mesh.positions().iter().copied().chain(patch(20.0)).chain(patch(40.0)).collect();
    poses.mesh = MeshParts { positions, faces, ..MeshParts::default() }.build().expect("three islands");
    poses.vertices = vertices;
    let learned = learn(poses.clone(), None, "islands", &settings(6), &|_| true).expect("it can be learned");
    let found = measured(&poses, learned.parts.clone(), Precision::Half);
    assert!(found.mean_mm.is_finite() && found.max_mm < 0.5, "{found:?} {:?}", learned.report);
    let twin = Twin::from(SkinTwin::new(learned.parts, Precision::Half).expect("a valid twin"));
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    for value in [-1.0, 0.0, 1.0, 50.0] {
        twin.player(1).pose(Pose::Controls(&[value; CONTROLS]), &mut out).expect("a valid pose");
        assert!(out.iter().all(|v| v.is_finite()), "controls of {value}");
        let rests = out[own as usize..own as usize + 9].iter().zip(patch(20.0));
        assert!(value > 1.0 || rests.into_iter().all(|(a, b)| a.distance(b) < 0.02), "controls of {value}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |change: &dyn Fn(&mut SkinSettings)| {
        let mut settings = SkinSettings::default();
        change(&mut settings);
        assert!(matches!(settings.check(), Err(SkinLearnError::Setting { .. })), "{settings:?}");
    };
    refused(&|s| s.bones = 0);
    refused(&|s| s.bones = 257);
    refused(&|s| s.influences = 9);
    refused(&|s| s.components = Some(10_000));
    refused(&|s| s.widths = vec![0]);
    refused(&|s| s.train.rate = f32::NAN);
    refused(&|s| s.train.epochs = 0);
    SkinSettings::default().check().expect("the defaults make sense");
}
