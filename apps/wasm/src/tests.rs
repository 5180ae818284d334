//! The border from inside: the same functions that a browser calls, natively. One test after another: they share handles.

use super::*;

const FACE: &[u8] = include_bytes!("../../../crates/runtime/tests/golden/face-v3.twin");
const BODY: &[u8] = include_bytes!("../../../crates/runtime/tests/golden/body-v3.twin");

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
    refused(understudy_buffer(handle, 14, 1), "no array of number 14");
    refused(understudy_buffer(handle, 13, 1), "names of limbs");
    refused(understudy_reach(handle, 0), "names of limbs");
    refused(understudy_buffer(handle, 11, 1), "nobody drives this twin");
    refused(understudy_live_follow(handle, 1, 1), "nobody drives this twin");
    refused(understudy_live(handle), "canonical face");
    refused(understudy_buffer(handle, 9, 1), "not learned to follow points");
    refused(understudy_hold(handle), "not learned to follow points");
    refused(understudy_drag(handle, 2), "not learned to follow points");
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
    assert_eq!(understudy_free(handle), 1);
    points_are_dragged();
    hands_reach();
    motion::characters_play_and_mistakes_are_told();
}

/// The golden face with a network that says nothing: corrections alone bring its points home.
fn following_face() -> Vec<u8> {
    use understudy_runtime::ik::{ControlPoint, PointIk, PointIkParts, RegionParts};
    let twin = understudy_runtime::Twin::parse(FACE).expect("a twin");
    let count = twin.header().inputs.controls.len() as u32;
    let points: Vec<ControlPoint> =
        [2, 9].map(|vertex| ControlPoint { name: format!("p{vertex}"), vertex }).to_vec();
    let silent = understudy_runtime::DenseParts {
        weights: vec![0.0; 6 * count as usize],
        bias: vec![0.0; count as usize],
    };
    let region = RegionParts {
        name: "all".into(),
        points: vec![0, 1],
        controls: (0..count).collect(),
        layers: vec![silent],
    };
    let mut rest = vec![understudy_runtime::Vec3::ZERO; twin.vertex_count()];
    let neutral: Vec<f32> = twin.header().inputs.controls.iter().map(|spec| spec.default).collect();
    let pose = understudy_runtime::Pose::Controls(&neutral);
    twin.player(1).pose(pose, &mut rest).expect("the neutral pose");
    let parts = PointIkParts {
        topology_hash: twin.header().topology_hash,
        dimensions: 3,
        rest: points.iter().map(|point| rest[point.vertex as usize]).collect(),
        points,
        regions: vec![region],
        training: serde_json::Value::Null,
    };
    let ik = PointIk::new(parts, understudy_runtime::Precision::Single, &twin).expect("it fits");
    ik.file_with(&twin).expect("a file")
}

fn points_are_dragged() {
    let handle = load(&following_face());
    assert_ne!(handle, 0, "{}", text());
    assert_eq!(understudy_describe(handle), 1);
    let description: serde_json::Value = serde_json::from_str(&text()).expect("JSON");
    assert_eq!(description["points"][1]["name"], "p9");
    assert_eq!((understudy_buffer_size(handle, 9), understudy_buffer_size(handle, 10)), (7, 15));
    assert_eq!(understudy_drag(handle, 2), 0);
    assert!(text().contains("no pose is held"), "{}", text());
    let with = |work: &mut dyn FnMut(&mut Loaded)| {
        work(lock(&TWINS)[handle - 1].as_mut().expect("was loaded"));
    };
    // A pose that the twin can take says where the points can go.
    let mut wanted = Vec::new();
    with(&mut |twin| {
        twin.address(Buffer::Controls, 1).expect("there is memory");
        twin.set_first_control(0.4);
        twin.hold().expect("a pose");
        wanted = twin.points().to_vec();
        twin.set_first_control(0.0);
    });
    assert_eq!(understudy_hold(handle), 1, "{}", text());
    with(&mut |twin| {
        let [a, b] = [wanted[0], wanted[1]];
        twin.ask(0, [2.0, a.x, a.y, a.z, 0.0, 0.0, 0.0]);
        twin.ask(1, [2.0, b.x, b.y, b.z, 0.0, 0.0, 1.0]);
    });
    let off = |places: &[understudy_runtime::Vec3]| places[0].distance(wanted[0]);
    let mut before = 0.0;
    with(&mut |twin| before = off(twin.points()));
    assert_eq!(understudy_drag(handle, 8), 1, "{}", text());
    with(&mut |twin| {
        let after = off(twin.points());
        assert!(before > 1e-3 && after < 0.7 * before, "{before} cm, then {after}");
        twin.ask(0, [2.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0]);
    });
    assert_eq!(understudy_drag(handle, 2), 0);
    assert!(text().contains("not finite"), "{}", text());
    with(&mut |twin| twin.ask(0, [5.0; 7]));
    assert_eq!(understudy_drag(handle, 2), 0);
    assert!(text().contains("5 is asked"), "{}", text());
    assert_eq!(understudy_free(handle), 1);
}

fn hands_reach() {
    let handle = load(BODY);
    assert_ne!(handle, 0, "{}", text());
    let refused = |answer: usize, part: &str| {
        assert_eq!(answer, 0);
        assert!(text().contains(part), "{}", text());
    };
    let spell = |spelling: &[u8]| {
        assert_ne!(understudy_incoming(spelling.len()), 0);
        lock(&INCOMING).copy_from_slice(spelling);
        understudy_limbs(handle)
    };
    refused(understudy_reach(handle, 0), "names of limbs");
    refused(spell(b"{}"), "names of limbs");
    refused(spell(b"[]"), "spelling: ");
    refused(spell(b"\xff"), "not UTF-8");
    refused(spell(br#"{"hand_L": ["bone1", "bone3", "nobody"]}"#), "there is no bone 'nobody'");
    assert_eq!(spell(br#"{"hand_L": ["bone1", "bone3", "bone6"], "torso": "bone0"}"#), 1, "{}", text());
    assert_eq!(understudy_describe(handle), 1);
    let description: serde_json::Value = serde_json::from_str(&text()).expect("JSON");
    let want = serde_json::json!([{ "name": "hand_L", "bone": 6 }, { "name": "torso", "bone": 0 }]);
    assert_eq!(description["handles"], want);
    // A crowd before, whose array is longer than one pose.
    assert_ne!(understudy_buffer(handle, 1, 3), 0);
    let with = |work: &mut dyn FnMut(&mut Loaded)| {
        work(lock(&TWINS)[handle - 1].as_mut().expect("was loaded"));
    };
    let mut target = [0.0; 3];
    with(&mut |twin| {
        twin.rest_again();
        let [start, end] = [1, 6].map(|bone| twin.bone_place(bone));
        target = (start + 0.8 * (end - start)).to_array();
        twin.aim([target[0], target[1], target[2], 0.0, 0.0, 1.0, 0.0, 1.0]);
    });
    assert_eq!(understudy_reach(handle, 0), 1, "{}", text());
    with(&mut |twin| {
        let off = twin.bone_place(6).distance(target.into());
        assert!(off < 1e-3, "{off} cm");
        twin.aim([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    });
    assert_eq!(understudy_reach(handle, 1), 1);
    with(&mut |twin| {
        assert!(twin.bone_place(0).distance(understudy_runtime::Vec3::new(1.0, 2.0, 3.0)) < 1e-4)
    });
    assert_eq!(understudy_pose(handle, 1, 1), 1, "{}", text());
    refused(understudy_reach(handle, 2), "there is no handle 2");
    with(&mut |twin| twin.aim([f32::NAN, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]));
    refused(understudy_reach(handle, 0), "not finite");
    refused(understudy_reach(handle, 1), "not finite");
    assert_eq!(understudy_free(handle), 1);
}
