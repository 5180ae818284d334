//! Twins with bones that are posed by controls alone.

#[path = "common/twins.rs"]
mod twins;

use twins::{BONES, POSING_CONTROLS, learned_mechanism, mechanism};
use understudy_core::{GlobalPose, JointPose, Mat3A, Random, Vec3A};
use understudy_runtime::mechanism::learned::{Factor, LearnedBoneParts};
use understudy_runtime::{Mechanism, MechanismKind, Pose, PoseError, Twin, TwinError, Vec3};

/// More than a block of a crowd.
const POSES: usize = 261;

fn controls(count: usize) -> Vec<f32> {
    let mut random = Random::new(8);
    (0..count * POSING_CONTROLS).map(|_| random.uniform(-1.0, 1.0)).collect()
}

fn small() -> Twin {
    twins::sized_body(5, 3, [13, 8, 4]).with_mechanism(mechanism(5, &[])).expect("it fits")
}

#[test]
fn controls_pose_what_the_bones_of_the_rig_pose() {
    for twin in
        [small(), twins::sized_diff(5, 0, 40, [5, 4], 2).with_mechanism(mechanism(5, &[])).expect("fits")]
    {
        let MechanismKind::Exact(exact) = twin.mechanism().expect("it has one").kind() else {
            panic!("an exact one is wanted")
        };
        let values = controls(POSES);
        let (mut joints, mut global) = (JointPose::default(), GlobalPose::default());
        let mut bones = Vec::new();
        for pose in values.chunks_exact(POSING_CONTROLS) {
            exact.evaluate(pose, &mut joints, &mut global);
            bones.extend_from_slice(&global.0);
        }
        let vertices = twin.vertex_count();
        let mut by_bones = vec![Vec3::ZERO; POSES * vertices];
        let crowd = Pose::Bones { bones: &bones, extras: &[] };
        twin.player(1).crowd(crowd, &mut by_bones).expect("valid poses");
        for threads in [1, 2, 3] {
            let mut player = twin.player(threads);
            assert!(player.bones().is_empty(), "nothing was posed yet");
            let mut out = by_bones.clone();
            out.fill(Vec3::ZERO);
            player.crowd(Pose::Controls(&values), &mut out).expect("valid poses");
            assert!(out == by_bones, "a crowd of {threads} threads");
            assert!(player.bones().is_empty(), "a crowd has many bones");
            let pose = &values[3 * POSING_CONTROLS..][..POSING_CONTROLS];
            let mut other = vec![Vec3::ZERO; vertices];
            player.pose(Pose::Controls(pose), &mut out[..vertices]).expect("a valid pose");
            let bones = &bones[15..20];
            assert_eq!(player.bones(), bones);
            player.pose(Pose::Bones { bones, extras: &[] }, &mut other).expect("a valid pose");
            assert!(out[..vertices] == other[..], "one pose");
            assert_eq!(player.pose_bones(pose).expect("a valid pose"), bones);
        }
    }
}

#[test]
fn the_file_has_it_and_files_without_keep_loading() {
    let bare = twins::sized_body(5, 3, [13, 8, 4]);
    assert!(bare.mechanism().is_none() && bare.posing_controls().is_none());
    let twin = small();
    let bytes = twin.to_bytes().expect("a valid twin");
    let again = Twin::parse(&bytes).expect("what we wrote");
    assert_eq!(again.mechanism(), twin.mechanism());
    assert_eq!(again.to_bytes().expect("a valid twin"), bytes);
    let specs = again.posing_controls().expect("it has a mechanism");
    assert_eq!((specs.len(), specs.get(1).name.as_str(), specs.get(1).high), (POSING_CONTROLS, "nod", 90.0));
    assert!(
        Twin::parse(&bare.to_bytes().expect("a valid twin")).expect("what we wrote").mechanism().is_none()
    );
    // Of a face they are the header's.
    let face = twins::face();
    assert_eq!(face.posing_controls(), Some(&face.header().inputs.controls));
}

#[test]
fn a_learned_mechanism_is_saved_and_played_without_the_rig() {
    let twin = twins::sized_body(5, 3, [13, 8, 4]).with_mechanism(learned_mechanism(&[])).expect("it fits");
    let bytes = twin.to_bytes().expect("a valid twin");
    let again = Twin::parse(&bytes).expect("what we wrote");
    assert_eq!(again.mechanism(), twin.mechanism());
    assert_eq!(again.to_bytes().expect("a valid twin"), bytes);
    let mut player = again.player(2);
    let values = controls(1);
    let bones = player.pose_bones(&values).expect("a valid pose").to_vec();
    assert_eq!(bones, learned_mechanism(&[]).evaluate(&values));
    // By hand: the first bone is moved by its terms in the frame of the second, which turns.
    let MechanismKind::Learned(parts) = again.mechanism().expect("it has one").kind() else {
        panic!("a learned one is wanted")
    };
    let first = &parts.parts()[0];
    let p = |place: usize| values[first.inputs[place] as usize];
    let x = (p(2) - first.mean[2]) * first.scale[2];
    let factors = [(0.3 * p(0)).sin(), (0.3 * p(1)).cos(), x * x];
    let terms = [factors[0], factors[0] * factors[1], factors[0] * factors[1] * factors[2]];
    let number = |n: usize| {
        let weights = &first.closed.weights[3 * n..][..3];
        first.closed.bias[n] + weights.iter().zip(terms).map(|(w, t)| w * t).sum::<f32>()
    };
    let place = first.rest.translation + Vec3A::new(number(0), number(1), number(2));
    let want = bones[1].transform_point3a(place);
    assert!(bones[0].translation.distance(want) < 1e-5, "{} {want}", bones[0].translation);
    // Bones that only turn have no scale.
    assert!((bones[1].matrix3.determinant() - 1.0).abs() < 1e-5);
    let mut out = vec![Vec3::ZERO; again.vertex_count()];
    player.pose(Pose::Controls(&values), &mut out).expect("a valid pose");
    assert!(out.iter().all(|v| v.is_finite()));
}

/// The last bones are guides: they are evaluated, and nobody sees them.
#[test]
fn guides_are_kept_to_the_mechanism_itself() {
    let MechanismKind::Learned(all) = learned_mechanism(&[]).kind().clone() else { panic!("it is learned") };
    let whole = learned_mechanism(&[]);
    let specs = whole.specs().clone();
    let mut random = Random::new(3);
    let values: Vec<f32> = (0..specs.len()).map(|_| random.uniform(-1.0, 1.0)).collect();
    let fewer = Mechanism::learned_with_guides(specs, all.parts(), 2).expect("three bones and two guides");
    assert_eq!(fewer.bone_count(), 3);
    assert_eq!(fewer.evaluate(&values), whole.evaluate(&values)[..3]);
}

/// Through the networks of a differential twin, its skin, forward kinematics and what moves each bone.
#[test]
fn gradients_by_all_controls_meet_the_checker() {
    for mechanism in [mechanism(5, &["c0", "c1"]), learned_mechanism(&["c0", "c1"])] {
        let twin = twins::sized_diff(5, 2, 40, [5, 4], 2).with_mechanism(mechanism).expect("it fits");
        let width = twin.posing_controls().expect("it has a mechanism").len();
        let mut random = Random::new(5);
        let at: Vec<f64> = (0..width).map(|_| f64::from(random.uniform(-0.8, 0.8))).collect();
        let slopes: Vec<Vec3> = (0..twin.vertex_count())
            .map(|_| Vec3::from_array([0; 3].map(|_| random.uniform(-1.0, 1.0))))
            .collect();
        let mut player = twin.player(1);
        let single = |x: &[f64]| -> Vec<f32> { x.iter().map(|value| *value as f32).collect() };
        let mut gradient = vec![0.0f32; width];
        let loss = |vertices: &[Vec3], by_vertices: &mut [Vec3]| {
            by_vertices.copy_from_slice(&slopes);
            vertices.len()
        };
        let seen = player.gradient(Pose::Controls(&single(&at)), loss, &mut gradient).expect("a gradient");
        assert_eq!(seen, twin.vertex_count());
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        let mut cost = |x: &[f64]| -> f64 {
            player.pose(Pose::Controls(&single(x)), &mut out).expect("a valid pose");
            out.iter().zip(&slopes).map(|(v, s)| f64::from(v.dot(*s))).sum()
        };
        for control in 0..width {
            let mut difference = |step: f64| {
                let mut moved = |by: f64| {
                    let mut x = at.clone();
                    x[control] += by;
                    cost(&x)
                };
                (moved(step) - moved(-step)) / (2.0 * step)
            };
            let want = (4.0 * difference(0.04) - difference(0.08)) / 3.0;
            let got = f64::from(gradient[control]);
            assert!((got - want).abs() < 0.02 * want.abs().max(0.5), "control {control}: {got} {want}");
        }
        let mut short = [0.0];
        let refused = player.gradient(Pose::Controls(&single(&at)), loss, &mut short);
        assert!(matches!(refused, Err(PoseError::Count { .. })));
    }
}

#[test]
fn learned_parts_that_do_not_fit_are_refused() {
    let MechanismKind::Learned(good) = learned_mechanism(&[]).kind().clone() else { panic!("it is learned") };
    let specs = learned_mechanism(&[]).specs().clone();
    let refused = |change: &dyn Fn(&mut Vec<LearnedBoneParts>)| {
        let mut parts = good.parts();
        change(&mut parts);
        assert!(Mechanism::learned(specs.clone(), parts).is_err());
    };
    refused(&|parts| parts[1].parent = Some(4));
    refused(&|parts| parts[1].parent = Some(9));
    refused(&|parts| parts[0].inputs[0] = 99);
    refused(&|parts| parts[0].terms[0][0] = 3);
    refused(&|parts| parts[0].factors[0].0 = 3);
    refused(&|parts| parts[0].factors[0].1 = Factor::Power(1000));
    refused(&|parts| parts[0].factors[0].1 = Factor::Sine(f32::NAN));
    refused(&|parts| parts[0].closed.weights.truncate(1));
    refused(&|parts| parts[1].layers[1].bias.truncate(1));
    refused(&|parts| parts[1].rest.matrix3 = Mat3A::ZERO);
    refused(&|parts| parts[3].moves.turns = true);
    refused(&|parts| parts[0].mean.clear());
    // Goals: a bone that needs itself, one that is not there, numbers of a goal without one.
    refused(&|parts| parts[2].aim.as_mut().expect("a goal").target = 2);
    refused(&|parts| parts[2].aim.as_mut().expect("a goal").target = 3);
    refused(&|parts| parts[2].aim.as_mut().expect("a goal").target = 9);
    refused(&|parts| parts[2].aim.as_mut().expect("a goal").axis *= 2.0);
    refused(&|parts| parts[2].aim = None);
    // More guides than bones.
    assert!(Mechanism::learned_with_guides(specs.clone(), good.parts(), 6).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let body = || twins::sized_body(5, 3, [13, 8, 4]);
    let problem = |twin: Twin, bones: usize| match twin.with_mechanism(mechanism(bones, &[])) {
        Err(TwinError::Part { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert!(problem(body(), 4).contains("4 bones"));
    assert!(problem(twins::sized_diff(0, 4, 40, [5, 4], 2), 5).contains("bones"));
    assert!(problem(twins::sized_diff(5, 2, 40, [5, 4], 2), 5).contains("has no control"));
    let mut player = small().player(1);
    let mut out = vec![Vec3::ZERO; player.twin().vertex_count()];
    let wrong = player.pose(Pose::Controls(&[0.0; 3]), &mut out);
    assert!(matches!(wrong, Err(PoseError::Count { got: 3, want: POSING_CONTROLS, .. })));
    let mut values = [0.0; POSING_CONTROLS];
    values[2] = f32::NAN;
    let wrong = player.pose(Pose::Controls(&values), &mut out);
    assert!(matches!(wrong, Err(PoseError::NonFinite { index: 2, .. })));
    assert!(matches!(body().player(1).pose_bones(&values), Err(PoseError::Kind(_))));
    assert!(twins::sized_body(BONES, 3, [13, 8, 4]).with_mechanism(mechanism(BONES, &[])).is_ok());
}
