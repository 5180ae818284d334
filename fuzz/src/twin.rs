//! What a fuzzer runs on twins: bytes in, and nothing may panic; what is accepted is played, saved, and read again.
//!
//! The checksum would stop nearly every mutation before it reaches a parser, so each input runs a second time with it
//! put right. Two programs share this file: the fuzz target beside it, and `crates/runtime/tests/fuzz.rs`, which drives
//! it with the committed corpus and fixed mutations in ordinary test runs.

use understudy_runtime::{Affine3A, Pose, Twin, Vec3, with_right_checksum};

/// Tells whether the bytes, as they are, were accepted.
pub fn twin(bytes: &[u8]) -> bool {
    once(&with_right_checksum(bytes));
    once(bytes)
}

fn once(bytes: &[u8]) -> bool {
    let Ok(twin) = Twin::parse(bytes) else { return false };
    let inputs = &twin.header().inputs;
    let bones = vec![Affine3A::IDENTITY; 2 * inputs.bones.len()];
    let values = inputs.controls.defaults().0.repeat(2);
    let [mut one, mut two] = [1, 2].map(|poses| vec![Vec3::ZERO; poses * twin.vertex_count()]);
    let (mut normals, mut by_controls) = (one.clone(), vec![0.0; inputs.controls.len()]);
    let pose = |poses: usize| {
        let (bones, values) =
            (&bones[..poses * inputs.bones.len()], &values[..poses * inputs.controls.len()]);
        match inputs.bones.is_empty() && !matches!(twin, Twin::Body(_)) {
            true => Pose::Controls(values),
            false => Pose::Bones { bones, extras: values },
        }
    };
    let mut player = twin.player(1);
    player.pose(pose(1), &mut one).expect("a pose of the twin's own inputs");
    player.crowd(pose(2), &mut two).expect("two of them");
    player.normals(&one, &mut normals).expect("arrays of the twin's size");
    if !matches!(twin, Twin::Body(_)) {
        let loss = |vertices: &[Vec3], by_vertices: &mut [Vec3]| by_vertices.copy_from_slice(vertices);
        player.gradient(pose(1), loss, &mut by_controls).expect("a pose of the twin's own inputs");
    }
    if let (Some(_), Some(specs)) = (twin.mechanism(), twin.posing_controls()) {
        // Bones of a mechanism may be anything, also beyond what is finite: then the pose is refused.
        let values = specs.defaults().0.repeat(2);
        let _ = player.pose(Pose::Controls(&values[..specs.len()]), &mut one);
        let _ = player.crowd(Pose::Controls(&values), &mut two);
        let mut by_all = vec![0.0; specs.len()];
        let loss = |vertices: &[Vec3], by_vertices: &mut [Vec3]| by_vertices.copy_from_slice(vertices);
        let _ = player.gradient(Pose::Controls(&values[..specs.len()]), loss, &mut by_all);
    }
    let bytes = twin.to_bytes().expect("what was loaded can be saved");
    let again = Twin::parse(&bytes).expect("we read what we write");
    assert!(again.to_bytes().expect("and save it") == bytes, "saving and loading is the identity");
    true
}
