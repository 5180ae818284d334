//! What a fuzzer runs on the rig protocol: a stream of a worker's answers in, and nothing may panic.
//!
//! Two programs share this file: the fuzz target beside it, and `crates/rigs/tests/fuzz.rs`, which drives it with the
//! committed corpus and fixed mutations in ordinary test runs.

use understudy_rigs::RigPose;
use understudy_rigs::external::Description;
use understudy_rigs::external::protocol::{Frame, PosesShape, Tag};

/// Tells whether the stream is a description and any number of answers that fit it.
pub fn protocol(mut bytes: &[u8]) -> bool {
    let mut shape = None;
    while !bytes.is_empty() {
        let Ok(frame) = Frame::read(&mut bytes) else { return false };
        let again = frame.to_bytes();
        assert_eq!(Frame::read(&mut &again[..]).expect("we read what we write"), frame);
        if let Ok(payload) = frame.expect(Tag::Rig) {
            let Ok(rig) = Description::parse(payload) else { return false };
            let guides = rig.guides.len();
            let bones = rig.skeleton.as_ref().map_or(0, |skeleton| skeleton.len()) + guides;
            shape = Some(PosesShape { poses: 1, vertices: rig.mesh.vertex_count(), bones, guides });
            continue;
        }
        let Some(shape) = shape else { return false };
        match frame.expect(Tag::Poses) {
            Ok(payload) => {
                // Any number of poses may have been asked for; the first four bytes say how many this claims.
                let claimed =
                    payload.first_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count) as usize);
                let shape = PosesShape { poses: claimed, ..shape };
                let held = payload.len() / shape.bytes_per_pose().max(1);
                if shape.parse(payload, &mut vec![RigPose::default(); held]).is_err() {
                    return false;
                }
            }
            Err(problem) if frame.tag == Tag::Failed => assert!(problem.pose().is_some()),
            Err(_) => return false,
        }
    }
    shape.is_some()
}
