//! `--clip FILE` at the command line: thirty seconds of a Live Link Face take on every face.

mod common;

use common::{refuse, text, understudy};
use std::fmt::Write as _;
use std::path::Path;

/// The app's 61 columns, in its order.
const COLUMNS: &str = "EyeBlinkLeft,EyeLookDownLeft,EyeLookInLeft,EyeLookOutLeft,EyeLookUpLeft,EyeSquintLeft,EyeWideLeft,\
EyeBlinkRight,EyeLookDownRight,EyeLookInRight,EyeLookOutRight,EyeLookUpRight,EyeSquintRight,EyeWideRight,JawForward,\
JawRight,JawLeft,JawOpen,MouthClose,MouthFunnel,MouthPucker,MouthRight,MouthLeft,MouthSmileLeft,MouthSmileRight,\
MouthFrownLeft,MouthFrownRight,MouthDimpleLeft,MouthDimpleRight,MouthStretchLeft,MouthStretchRight,MouthRollLower,\
MouthRollUpper,MouthShrugLower,MouthShrugUpper,MouthPressLeft,MouthPressRight,MouthLowerDownLeft,MouthLowerDownRight,\
MouthUpperUpLeft,MouthUpperUpRight,BrowDownLeft,BrowDownRight,BrowInnerUp,BrowOuterUpLeft,BrowOuterUpRight,CheekPuff,\
CheekSquintLeft,CheekSquintRight,NoseSneerLeft,NoseSneerRight,TongueOut,HeadYaw,HeadPitch,HeadRoll,LeftEyeYaw,\
LeftEyePitch,LeftEyeRoll,RightEyeYaw,RightEyePitch,RightEyeRoll";

fn write_take(path: &Path) {
    let mut take = format!("Timecode,BlendShapeCount,{COLUMNS}\n");
    for frame in 0..=1800u32 {
        let _ = write!(take, "09:58:{:02}:{:02}.250,61", frame / 60, frame % 60);
        for column in 0..61u32 {
            let _ = write!(take, ",{:.6}", 0.1 + 0.1 * f64::from((frame * 7 + column * 13) % 97) / 97.0);
        }
        take.push('\n');
    }
    std::fs::write(path, take).expect("writable");
}

#[test]
fn a_take_of_thirty_seconds_plays_on_every_face() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let take = at("take.csv");
    write_take(&take);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let faces = if data.is_dir() { &["mira", "ict", "human"][..] } else { &["mira"] };
    for face in faces {
        let run = |arguments: &[&str]| {
            let mut command = understudy(arguments);
            let output = command.arg("--json").env("UNDERSTUDY_DATA", &data).output().expect("it starts");
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("one JSON document")
        };
        let (picture, table, poses) = (at("face.png"), at("face.csv"), at(face));
        let clip = ["--clip", text(&take)];
        let report =
            run(&[&["render", face, "-o", text(&picture), "--size", "32", "--time", "29.99"], &clip[..]]
                .concat());
        assert_eq!(report["pictures"], 1, "{face}");
        // The table holds every frame; a dataset of them all would fill half a gigabyte.
        let report = run(&[&["convert", face, "-o", text(&table)], &clip[..]].concat());
        let line = report["contents"][0].as_str().expect("a line");
        assert!(line.ends_with("1801 frames at 60 a second"), "{face}: {line}");
        let report = run(&[&["sample", face, "-o", text(&poses), "--rate", "0.2"], &clip[..]].concat());
        assert_eq!((report["poses"].as_u64(), report["method"].as_str()), (Some(7), Some("clips")), "{face}");
    }
    let line = refuse(&["render", "mira", "-o", text(&at("x.png")), "--clip", text(&at("absent.csv"))]);
    assert!(line.contains("absent.csv"), "{line}");
    let line = refuse(&["convert", "mira", "-o", text(&take), "--clip", text(&take)]);
    assert!(line.contains("input"), "a take is not overwritten: {line}");
}
