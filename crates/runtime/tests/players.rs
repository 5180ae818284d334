//! What a player refuses, and what it cannot be made to do.

#[path = "common/twins.rs"]
mod twins;

use std::sync::Arc;
use understudy_core::Quat;
use understudy_runtime::body::{BodyParts, BodyTwin, SeamCorrection};
use understudy_runtime::{Affine3A, Pose, PoseError, Precision, Twin, Vec3};

fn body_parts(twin: &Twin) -> BodyParts {
    match twin {
        Twin::Body(twin) => twin.parts(),
        _ => panic!("a body is wanted"),
    }
}

/// A twin of the same rig with other seams needs other memory: once it could be given the memory of one without any
/// seams, and wrote its corrections and ghosts beyond the end. Memory now belongs to a player, which plays one twin for
/// good; two players of one rig in turn give what each gives alone.
#[test]
fn memory_of_one_twin_never_meets_another() {
    let with_seams = twins::body();
    let bare = BodyParts { seams: None::<SeamCorrection>, ..body_parts(&with_seams) };
    let mut bare = BodyParts { groups: bare.groups.clone(), ..bare };
    for group in &mut bare.groups {
        let own = 3 * group.vertices.len();
        group.ghosts.clear();
        let last = group.layers.last_mut().expect("a network");
        let columns = last.weights.len() / last.bias.len();
        last.weights.truncate(own * columns);
        last.bias.truncate(own);
    }
    let bare = Twin::from(BodyTwin::new(bare, Precision::Half).expect("a valid twin"));
    let bones: Vec<Affine3A> =
        (0..2 * twins::BONES).map(|i| Affine3A::from_quat(Quat::from_rotation_y(i as f32 * 0.03))).collect();
    let poses = Pose::Bones { bones: &bones, extras: &[] };
    let alone = |twin: &Twin| {
        let mut out = vec![Vec3::ZERO; 2 * twin.vertex_count()];
        twin.player(2).crowd(poses, &mut out).expect("valid poses");
        out
    };
    let truths = [alone(&bare), alone(&with_seams)];
    assert!(truths[0] != truths[1], "seams change something");
    let mut players = [bare.player(2), with_seams.player(2)];
    let mut out = vec![Vec3::ZERO; truths[0].len()];
    for turn in 0..4 {
        players[turn % 2].crowd(poses, &mut out).expect("valid poses");
        assert!(out == truths[turn % 2], "turn {turn}");
        // What a player plays cannot be exchanged: the twin inside is shared, and only lent.
        assert_eq!(players[turn % 2].twin().vertex_count(), bare.vertex_count());
    }
}

#[test]
fn poses_of_another_kind_or_length_are_refused() {
    let (body, face) = (twins::body(), twins::face());
    let bones = vec![Affine3A::IDENTITY; twins::BONES];
    let controls = vec![0.0; twins::CONTROLS];
    let of_bones = Pose::Bones { bones: &bones, extras: &[] };
    let of_controls = Pose::Controls(&controls);
    let mut out = vec![Vec3::ZERO; body.vertex_count()];
    let mut player = body.player(1);
    assert!(matches!(player.pose(of_controls, &mut out), Err(PoseError::Kind(_))));
    assert!(matches!(player.crowd(of_controls, &mut out), Err(PoseError::Kind(_))));
    assert!(matches!(player.gradient(of_bones, |_, _| (), &mut []), Err(PoseError::Kind(_))));
    assert!(matches!(player.pose(of_bones, &mut out[1..]), Err(PoseError::Count { .. })));
    assert!(matches!(player.crowd(of_bones, &mut out[1..]), Err(PoseError::Count { .. })));
    assert!(matches!(player.normals(&out[1..], &mut [Vec3::ZERO; 3]), Err(PoseError::Count { .. })));
    player.pose(of_bones, &mut out).expect("a valid pose");

    let mut out = vec![Vec3::ZERO; face.vertex_count()];
    let mut player = face.player(2);
    assert_eq!(player.threads(), 2);
    assert!(matches!(player.pose(of_bones, &mut out), Err(PoseError::Kind(_))));
    assert!(matches!(player.pose(Pose::Controls(&controls[1..]), &mut out), Err(PoseError::Count { .. })));
    assert!(matches!(player.crowd(Pose::Controls(&controls[1..]), &mut out), Err(PoseError::Count { .. })));
    let nan = vec![f32::NAN; twins::CONTROLS];
    assert!(matches!(
        player.pose(Pose::Controls(&nan), &mut out),
        Err(PoseError::NonFinite { index: 0, .. })
    ));
    let wrong = player.gradient(of_controls, |_, _| (), &mut [0.0]);
    assert!(matches!(wrong, Err(PoseError::Count { .. })));
    player.pose(of_controls, &mut out).expect("a valid pose");
}

#[test]
fn a_twin_is_shared_between_threads() {
    let twin = twins::face();
    let controls = vec![0.3; twins::CONTROLS];
    let play = |twin: Twin| {
        let mut out = vec![Vec3::ZERO; twin.vertex_count()];
        twin.player(1).pose(Pose::Controls(&controls), &mut out).expect("a valid pose");
        out
    };
    let truth = play(twin.clone());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(play(twin.clone()) == truth));
        }
    });
    let Twin::Face(shared) = &twin else { panic!("a face is wanted") };
    assert_eq!(Arc::strong_count(shared), 1, "players have given it back");
}
