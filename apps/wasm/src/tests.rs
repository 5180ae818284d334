//! The border from inside: the same functions that a browser calls, natively. One test after another: they share handles.

use super::*;

const FACE: &[u8] = include_bytes!("../../../crates/runtime/tests/golden/face-v3.twin");

fn text() -> String {
    lock(&TEXT).clone()
}

fn load(bytes: &[u8]) -> usize {
    assert_ne!(understudy_incoming(bytes.len()), 0);
    lock(&INCOMING).copy_from_slice(bytes);
    understudy_load()
}

/// Everything in one test: the module has one text and one place for bytes, as it has one thread.
#[test]
fn what_is_wrong_is_a_zero_and_a_text() {
    let handle = load(FACE);
    assert_ne!(handle, 0, "{}", text());
    assert_eq!(understudy_describe(handle), 1);
    let description: serde_json::Value = serde_json::from_str(&text()).expect("JSON");
    assert_eq!(description["method"], "face");
    assert_eq!(description["header"]["topology_hash"].as_str().map(str::is_empty), Some(false));
    let vertices = description["vertices"].as_u64().expect("a number") as usize;
    assert_eq!(understudy_buffer_size(handle, 2), 3 * vertices + 1);
    assert_ne!(understudy_buffer(handle, 0, 1), 0);
    assert_eq!(understudy_pose(handle, 0, 1), 1);
    assert_eq!(understudy_normals(handle), 1);
    assert_eq!(understudy_pose(handle, 0, 3), 1);
    assert_eq!(understudy_pose(handle, 0, 0), 1);
    assert_eq!(understudy_gradient(handle, 0), 1);

    let refused = |answer: usize, part: &str| {
        assert_eq!(answer, 0);
        assert!(text().contains(part), "{}", text());
    };
    refused(understudy_pose(handle, 1, 1), "posed by controls, not by bones");
    refused(understudy_pose(handle, 2, 1), "not by 2");
    refused(understudy_pose(handle, 0, usize::MAX), "no memory");
    refused(understudy_buffer(handle, 2, usize::MAX / 8), "no memory");
    refused(understudy_buffer(handle, 9, 1), "no array of number 9");
    refused(understudy_buffer_size(0, 0), "no twin of handle 0");
    refused(understudy_pose(handle + 1, 0, 1), "no twin of handle");
    refused(understudy_incoming(usize::MAX), "no memory");
    refused(load(&FACE[..FACE.len() - 1]), "safetensors");
    refused(load(b""), "safetensors");
    let mut damaged = FACE.to_vec();
    damaged[FACE.len() - 1] ^= 1;
    refused(load(&damaged), "checksum");

    // What was lent is found again, and a handle is used anew.
    assert_eq!((understudy_free(handle), understudy_free(handle), understudy_free(0)), (1, 0, 0));
    refused(understudy_pose(handle, 0, 1), "was freed");
    assert_eq!(load(FACE), handle);
    let nan = {
        let mut twins = lock(&TWINS);
        let twin = twins[handle - 1].as_mut().expect("was loaded");
        twin.address(Buffer::Controls, 1).expect("there is memory");
        twin.set_first_control(f32::NAN);
        twin.pose(By::Controls, 1)
    };
    assert!(nan.expect_err("is refused").contains("not finite"));
    crate::motion::characters_play_and_mistakes_are_told();
}
