//! `pose` and `learn ik` at the command line: a body by its handles, a face by its points, and what is refused.

mod common;

use common::{json, refuse, run, succeed, text};

#[test]
fn a_body_is_posed_by_its_handles() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let list = json(&["pose", "rook", "--list"]);
    assert_eq!(list.as_array().map(Vec::len), Some(5));
    assert!(succeed(&["pose", "rook", "--list"]).contains("foot_R"));
    let wanted =
        ["--reach", "hand_L=45,120,35", "--reach", "torso=0,85,0", "--lock", "foot_L", "--lock", "foot_R"];
    for name in ["pose.csv", "pose.png", "pose.glb"] {
        let file = at(name);
        let words = [&["pose", "rook", "-o", text(&file), "--size", "64", "--markers"], &wanted[..]].concat();
        let report = json(&words);
        let reached = report["frames"][0].as_array().expect("one frame");
        assert_eq!(reached.len(), 4);
        assert!(reached.iter().all(|one| one["distance_mm"].as_f64().expect("a distance") < 0.5), "{report}");
        assert!(file.is_file());
    }
    // The table is a pose of the rig, and the model can be read again.
    succeed(&[
        "render",
        "rook",
        "-o",
        text(&at("again.png")),
        "--size",
        "32",
        "--clip",
        text(&at("pose.csv")),
    ]);
    succeed(&["info", text(&at("pose.glb"))]);
}

#[test]
fn a_face_follows_its_points() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (data, twin, follows) = (at("data"), at("skin.twin"), at("follows.twin"));
    succeed(&["sample", "mira", "-o", &data, "--method", "noise", "--poses", "80"]);
    succeed(&["learn", "skin", &data, "-o", &twin, "--bones", "12", "--epochs", "5"]);
    let report = json(&["learn", "ik", &twin, &data, "-o", &follows, "--steps", "40"]);
    assert_eq!((report["points"].as_u64(), report["kind"].as_str()), (Some(54), Some("skin")));
    let list = json(&["pose", &follows, "--list"]);
    // Eighty poses teach a twin in which nearly every control moves every region a little. A point of each is held, so that
    // none of the controls is left to a region that nobody asked for.
    const HELD: [&str; 8] =
        ["eye_L_inner", "eye_R_inner", "brow_L_1", "brow_R_1", "nose_tip", "chin", "jaw_L", "jaw_R"];
    let place = |name: &str, by: f64| {
        let one = list.as_array().expect("a list").iter().find(|one| one["name"] == name).expect("a point");
        let rest = one["rest"].as_array().expect("a place");
        let rest: Vec<f64> = rest.iter().filter_map(|x| x.as_f64()).collect();
        format!("{name}={},{},{}", rest[0] + by, rest[1] + by, rest[2])
    };
    let smile = at("smile.csv");
    let mut words = vec!["pose", &follows, "-o", &smile];
    let corner = place("mouth_corner_L", 0.2);
    let held = HELD.map(|name| place(name, 0.0));
    for point in std::iter::once(&corner).chain(&held) {
        words.extend(["--point", point.as_str()]);
    }
    let posed = json(&words);
    let frame = posed["frames"][0].as_array().expect("a frame");
    assert_eq!(frame.len(), 9, "{posed}");
    // The network hardly learned anything; the corrections bring the corner, which was 2.8 mm away, most of the way.
    assert!(frame.iter().all(|one| one["distance_mm"].as_f64().expect("a distance") < 0.8), "{posed}");
    let told = succeed(&["eval", &follows, &data]);
    assert!(told.contains("25 sets of dragged points"), "{told}");

    // What does not fit is told in one line.
    let points = at("points.toml");
    for (content, word) in [
        ("point = 3", "line 1"),
        ("[[point]]\nname = 'a'\nvertex = 999999\nregion = 'r'", "999999"),
        (
            "[[point]]\nname = 'a'\nvertex = 1\nregion = 'r'\n[[point]]\nname = 'a'\nvertex = 2\nregion = 'r'",
            "'a'",
        ),
    ] {
        std::fs::write(&points, content).expect("writable");
        let error = refuse(&["learn", "ik", &twin, &data, "-o", &at("x.twin"), "--points", &points]);
        assert!(error.contains(word), "{error}");
    }
    assert!(refuse(&["pose", &twin, "--point", &corner, "-o", &at("x.csv")]).contains("learn ik"));
    assert!(refuse(&["pose", &follows, "--point", "mouth_corner_L=NaN,0,0"]).contains("finite"));
    assert!(refuse(&["pose", &follows, "--point", &corner, "--point", &corner]).contains("twice"));
    assert!(refuse(&["pose", &follows, "--point", "mouth_corner_L=1,2"]).contains("X,Y,Z"));
    assert!(refuse(&["pose", &follows, "--point", "mouth_korner_L=1,2,3"]).contains("mouth_corner_L"));
    assert!(
        refuse(&["learn", "ik", &twin, &data, "-o", &at("x.twin"), "--dimensions", "4"]).contains("2 or 3")
    );
}

#[test]
fn bad_poses_are_refused_in_one_line() {
    assert!(refuse(&["pose", "rook"]).contains("nothing is asked for"));
    assert!(refuse(&["pose", "rook", "--reach", "hand_L=1,2"]).contains("X,Y,Z"));
    assert!(refuse(&["pose", "rook", "--reach", "hand_L=inf,2,3"]).contains("finite"));
    assert!(refuse(&["pose", "rook", "--reach", "head=1,2,3"]).contains("head"));
    assert!(refuse(&["pose", "rook", "--lock", "foot_L", "-o", "pose.obj"]).contains(".csv"));
    assert!(refuse(&["pose", "rook", "--lock", "foot_L", "--soft", "2"]).contains("soft"));
    assert!(refuse(&["pose", "mira", "--point", "chin=0,-8,5"]).contains("learn ik"));
    assert!(refuse(&["pose", "mira", "--reach", "torso=0,1,2"]).contains("no limbs"));
    assert!(refuse(&["pose", "mira", "--list"]).contains("no limbs"));
}

/// An arm whose forearm has no length.
const STUMP: &str = "HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT LeftArm
  {
    OFFSET 10 40 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    JOINT LeftForeArm
    {
      OFFSET 25 0 0
      CHANNELS 3 Zrotation Xrotation Yrotation
      JOINT LeftHand
      {
        OFFSET 0 0 0
        CHANNELS 3 Zrotation Xrotation Yrotation
        End Site
        {
          OFFSET 8 0 0
        }
      }
    }
  }
}
MOTION
Frames: 1
Frame Time: 0.0333333
0 90 0 0 0 0 0 0 0 0 0 0 0 0 0
";

#[test]
fn limbs_without_length_and_twins_without_gradient_are_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let stump = at("stump.bvh");
    std::fs::write(&stump, STUMP).expect("writable");
    // A bone without length makes no limb: what is left to hold is the torso.
    let listed = succeed(&["pose", &stump, "--list"]);
    assert!(listed.contains("torso") && !listed.contains("hand_L"), "{listed}");
    let error = run(&["pose", &stump, "--reach", "hand_L=20,130,10", "-o", &at("x.csv")]);
    let said = String::from_utf8_lossy(&error.stderr).into_owned();
    assert_eq!(error.status.code(), Some(2), "{said}");
    assert!(
        said.contains("error: handle 'hand_L'") && said.contains("no such handle (it has torso)"),
        "{said}"
    );

    let (data, twin) = (at("data"), at("rook.twin"));
    succeed(&["sample", "rook", "-o", &data, "--poses", "60", "--method", "sparse"]);
    succeed(&["learn", "body", &data, "-o", &twin, "--epochs", "1"]);
    let error = refuse(&["learn", "ik", &twin, &data, "-o", &at("x.twin")]);
    assert!(error.contains("no gradient"), "{error}");
}
