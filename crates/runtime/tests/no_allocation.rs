//! A counting allocator proves that playing allocates nothing, on one thread, on two and for a crowd; gradients
//! by controls neither.

#[path = "common/counting.rs"]
mod counting;
#[path = "common/twins.rs"]
mod twins;

use counting::allocations;
use std::sync::Arc;
use twins::{BONES, CONTROLS};
use understudy_core::Quat;
use understudy_runtime::motion::{Command, Crowd, Motion, PlayConfig};
use understudy_runtime::{Affine3A, Pose, Twin, Vec3, VertexBuffer};

/// One test, as all tests of a program share its allocator.
#[test]
fn playing_allocates_nothing() {
    let twin = twins::body();
    let crowd_size = 60;
    let bones: Vec<Affine3A> = (0..BONES * crowd_size)
        .map(|i| Affine3A::from_quat(Quat::from_rotation_x(i as f32 * 0.01)))
        .collect();
    let mut players = [twin.player(1), twin.player(2)];
    let mut out = VertexBuffer::new(twin.vertex_count() * crowd_size);
    let mut normals = vec![Vec3::ZERO; twin.vertex_count()];
    allocates_nothing("a body", 10, || {
        for player in &mut players {
            let single = &mut out[..twin.vertex_count()];
            let pose = Pose::Bones { bones: &bones[..BONES], extras: &[] };
            player.pose(pose, single).expect("a valid pose");
            player.normals(single, &mut normals).expect("lengths fit");
            player.crowd(Pose::Bones { bones: &bones, extras: &[] }, &mut out).expect("valid poses");
        }
    });

    let twin = twin.with_mechanism(twins::mechanism(BONES, &[])).expect("it fits");
    let values = vec![0.4; twins::POSING_CONTROLS * crowd_size];
    let mut players = [twin.player(1), twin.player(2)];
    allocates_nothing("a body by controls", 10, || {
        for player in &mut players {
            let single = &mut out[..twin.vertex_count()];
            let pose = Pose::Controls(&values[..twins::POSING_CONTROLS]);
            player.pose(pose, single).expect("a valid pose");
            player.crowd(Pose::Controls(&values), &mut out).expect("valid poses");
        }
    });

    for (what, twin) in [("a face", twins::face()), ("a skin", twins::skin())] {
        posed_by_controls(what, &twin);
    }
    motion();
}

/// Idling around several poses plans ways as it goes: no frame of it allocates either.
fn motion() {
    let file = include_bytes!("golden/sway.motion");
    let motion = Arc::new(Motion::parse(file).expect("a sound file"));
    let mut crowd = Crowd::new(motion.clone(), 6, PlayConfig::default()).expect("it has labels");
    let clips: Vec<&str> = motion.models().iter().map(|model| model.clips()[0].name.as_str()).collect();
    for character in 0..crowd.len() {
        let around = clips[character % clips.len()];
        let json = format!(r#"{{"command":"idle","around":["{around}","{around}@0.2s"],"dwell":0.3}}"#);
        crowd.command(character, Command::from_json(&json).expect("a command")).expect("it can");
    }
    (0..100).for_each(|_| crowd.step());
    allocates_nothing("a crowd in motion", 500, || crowd.step());
}

fn posed_by_controls(what: &str, twin: &Twin) {
    let mut players = [twin.player(1), twin.player(2)];
    let poses: Vec<f32> = (0..2 * CONTROLS).map(|c| (c as f32).sin()).collect();
    let pose = Pose::Controls(&poses[..CONTROLS]);
    let mut out = vec![Vec3::ZERO; 2 * twin.vertex_count()];
    let mut normals = vec![Vec3::ZERO; twin.vertex_count()];
    let mut by_controls = vec![0.0; CONTROLS];
    let loss = |vertices: &[Vec3], by_vertices: &mut [Vec3]| {
        by_vertices.fill(Vec3::ONE);
        vertices.iter().map(|v| v.element_sum()).sum::<f32>()
    };
    allocates_nothing(what, 3, || {
        for player in &mut players {
            let single = &mut out[..twin.vertex_count()];
            player.pose(pose, single).expect("a valid pose");
            player.normals(single, &mut normals).expect("fitting arrays");
            player.crowd(Pose::Controls(&poses), &mut out).expect("valid poses");
            player.gradient(pose, loss, &mut by_controls).expect("a valid pose");
        }
    });

    let twin = twins::diff();
    let mut players = [twin.player(1), twin.player(2)];
    let mut out = vec![Vec3::ZERO; 2 * twin.vertex_count()];
    let mut normals = vec![Vec3::ZERO; twin.vertex_count()];
    allocates_nothing("a differential twin", 3, || {
        for player in &mut players {
            let single = &mut out[..twin.vertex_count()];
            player.pose(pose, single).expect("a valid pose");
            player.normals(single, &mut normals).expect("fitting arrays");
            player.crowd(Pose::Controls(&poses), &mut out).expect("valid poses");
            player.gradient(pose, loss, &mut by_controls).expect("a valid pose");
        }
    });
}

fn allocates_nothing(what: &str, times: usize, mut frame: impl FnMut()) {
    // Memory of crowds and gradients is made when they are first asked for.
    frame();
    let before = allocations();
    (0..times).for_each(|_| frame());
    assert_eq!(allocations() - before, 0, "{what}");
}
