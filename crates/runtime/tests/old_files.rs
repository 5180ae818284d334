//! Twins of format 3 keep loading and keep giving the same vertices; see `golden/README.md` for what they are.

use understudy_runtime::{Affine3A, Distances, Pose, Twin, TwinError, VERSION, Vec3};

const BODY: &[u8] = include_bytes!("golden/body-v3.twin");
const FACE: &[u8] = include_bytes!("golden/face-v3.twin");

fn numbers(json: &serde_json::Value) -> Vec<f32> {
    let list = json.as_array().expect("a list");
    list.iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

fn points(json: &serde_json::Value) -> Vec<Vec3> {
    json.as_array().expect("a list").iter().map(|point| Vec3::from_slice(&numbers(point))).collect()
}

fn close(got: &[Vec3], want: &[Vec3]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!(got.distance(*want) < 1e-3, "{got}, {want}");
    }
}

#[test]
fn a_body_of_format_3_still_plays() {
    let twin = Twin::parse(BODY).expect("an old twin");
    let header = twin.header();
    assert_eq!((header.rig.as_str(), header.topology_hash, header.units.as_str()), ("test", 7, "cm"));
    assert_eq!((header.inputs.bones.len(), header.inputs.controls.len()), (9, 4));
    assert_eq!(header.inputs.controls.get(2).name, "control2");
    assert_eq!((header.training.poses, header.training.inputs_probed), (600, true));
    assert_eq!(header.training.half_error_mm, Some(Distances { mean: 0.0021, max: 0.0175 }));
    assert_eq!(header.training.weights_in_32_bits, 480);
    assert_eq!(header.training.details["groups"][0]["bone"], "bone0");
    let json: serde_json::Value =
        serde_json::from_str(include_str!("golden/body-v3.json")).expect("the golden pose");
    let bones: Vec<Affine3A> = json["bones"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|bone| Affine3A::from_cols_slice(&numbers(bone)))
        .collect();
    let extras = numbers(&json["controls"]);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    twin.player(1).pose(Pose::Bones { bones: &bones, extras: &extras }, &mut out).expect("a valid pose");
    close(&out, &points(&json["vertices"]));
    same_in_the_new_format(&twin, BODY);
}

#[test]
fn a_face_of_format_3_still_plays() {
    let twin = Twin::parse(FACE).expect("an old twin");
    let training = &twin.header().training;
    assert_eq!(training.half_error_mm, Some(Distances { mean: 0.0011, max: 0.0189 }));
    assert_eq!((training.poses, training.normal_angles_deg), (400, Some([0.5, 0.6])));
    let json: serde_json::Value =
        serde_json::from_str(include_str!("golden/face-v3.json")).expect("the golden pose");
    let mut player = twin.player(1);
    let mut out = vec![Vec3::ZERO; twin.vertex_count()];
    player.pose(Pose::Controls(&numbers(&json["controls"])), &mut out).expect("a valid pose");
    close(&out, &points(&json["vertices"]));
    let mut normals = out.clone();
    player.normals(&out, &mut normals).expect("arrays fit");
    close(&normals, &points(&json["normals"]));
    same_in_the_new_format(&twin, FACE);
}

/// Saved again it is of today's format, and nothing else changes.
fn same_in_the_new_format(twin: &Twin, old: &[u8]) {
    let bytes = twin.to_bytes().expect("a valid twin");
    let text = String::from_utf8_lossy(&bytes[..20_000]);
    assert!(text.contains(&format!("\"understudy\":\"{VERSION}\"")) && bytes != old);
    let again = Twin::parse(&bytes).expect("what we wrote");
    assert_eq!(again.header(), twin.header());
    assert_eq!(again.to_bytes().expect("a valid twin"), bytes);
}

/// Format 3 is held to its own checksum: what that covers must not change.
#[test]
fn damaged_old_files_are_found() {
    for file in [BODY, FACE] {
        let length = u64::from_le_bytes(file[..8].try_into().expect("eight bytes")) as usize;
        let mut damaged = file.to_vec();
        for place in (8 + length..file.len()).step_by(97) {
            damaged[place] ^= 1;
            assert_eq!(Twin::parse(&damaged).map(|_| ()), Err(TwinError::Checksum), "byte {place}");
            damaged[place] ^= 1;
        }
    }
}
