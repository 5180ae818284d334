//! Twins with bones that are posed by controls alone.

#[path = "common/twins.rs"]
mod twins;

use twins::{BONES, POSING_CONTROLS, mechanism};
use understudy_core::{GlobalPose, JointPose, Random};
use understudy_runtime::{MechanismKind, Pose, PoseError, Twin, TwinError, Vec3};

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
        let MechanismKind::Exact(exact) = twin.mechanism().expect("it has one").kind();
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
