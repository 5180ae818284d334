//! Videos through stand-ins of `ffmpeg` and `ffprobe`, which do what the programs do with good, cut, damaged and empty videos;
//! what capture refuses; that nothing is left behind. Real pictures: `crates/jobs/tests/capture_landmarks.rs`.

mod common;

use common::{holds_only, text, understudy};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// MediaPipe's file, where the real data lies.
fn landmarks() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("UNDERSTUDY_DATA").map_or(own, PathBuf::from);
    let file = data.join("mediapipe/face_landmarker_v2_with_blendshapes_float16.task");
    let there = file.is_file();
    if !there {
        eprintln!("skipped: {} is absent", file.display());
    }
    there.then_some(file)
}

/// A folder of programs that act as ffmpeg does: `bytes` are what it decodes, then it complains and leaves.
struct StandIn {
    folder: tempfile::TempDir,
}

impl StandIn {
    fn new(probe: &str, bytes: &[u8], complaint: &str, code: i32) -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("video.mp4"), b"not looked at").expect("writable");
        std::fs::write(at("frames.ppm"), bytes).expect("writable");
        let probe = format!("#!/bin/sh\ncat <<'END'\n{probe}\nEND\n");
        let decode = format!(
            "#!/bin/sh\n/bin/cat '{}'\n[ -z '{complaint}' ] || echo '{complaint}' >&2\nexit {code}\n",
            at("frames.ppm").display()
        );
        for (name, script) in [("ffprobe", probe.replace("\ncat", "\n/bin/cat")), ("ffmpeg", decode)] {
            std::fs::write(at(name), script).expect("writable");
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(at(name), all).expect("may be run");
        }
        Self { folder }
    }

    /// The error of a capture of its video, which must end with exit code 2 and leave nothing.
    fn refuse(&self, landmarks: &Path, path: &str) -> String {
        let output = tempfile::tempdir().expect("a scratch folder");
        let take = output.path().join("take.csv");
        let video = self.folder.path().join("video.mp4");
        let words = ["capture", text(&video), "mira", "--landmarks", text(landmarks), "-o", text(&take)];
        let done = understudy(&words).env("PATH", path).output().expect("the program starts");
        let said = String::from_utf8(done.stderr).expect("text");
        assert_eq!(done.status.code(), Some(2), "{said}");
        holds_only(output.path(), &[]);
        said.lines().last().unwrap_or_default().to_string()
    }

    fn path(&self) -> String {
        format!("{}:/bin:/usr/bin", self.folder.path().display())
    }
}

const PROBE: &str =
    r#"{"streams":[{"avg_frame_rate":"30/1","nb_frames":"20"}],"format":{"duration":"0.667"}}"#;

/// Grey frames, 64 × 48.
fn grey(frames: usize) -> Vec<u8> {
    let one = [&b"P6\n64 48\n255\n"[..], &[127u8; 3 * 64 * 48]].concat();
    one.repeat(frames)
}

#[test]
fn a_machine_without_ffmpeg_is_told_how_to_install_it() {
    let Some(landmarks) = landmarks() else { return };
    let video = StandIn::new(PROBE, &grey(20), "", 0);
    let empty = tempfile::tempdir().expect("a scratch folder");
    let said = video.refuse(&landmarks, text(empty.path()));
    assert!(said.contains("apt install ffmpeg") && said.contains("folder of PNG"), "{said}");
}

#[test]
fn videos_that_are_cut_damaged_or_empty_are_refused_by_name() {
    let Some(landmarks) = landmarks() else { return };
    let cut = &grey(20)[..5 * (13 + 3 * 64 * 48) + 100];
    let cases: [(&str, &[u8], &str, i32, &str); 5] = [
        (PROBE, cut, "", 0, "frame 5 is cut short"),
        (PROBE, &grey(5), "[h264 @ 0x1] error while decoding", 0, "5 of 20 frames could be read"),
        (PROBE, &[], "[mov @ 0x1] moov atom not found", 1, "moov atom not found"),
        (PROBE, &[], "", 0, "has no frames"),
        (r#"{"streams":[]}"#, &[], "", 0, "holds no video"),
    ];
    for (probe, bytes, complaint, code, want) in cases {
        let video = StandIn::new(probe, bytes, complaint, code);
        let said = video.refuse(&landmarks, &video.path());
        assert!(said.contains("video.mp4") && said.contains(want), "wanted '{want}': {said}");
    }
}

#[test]
fn a_whole_video_without_a_face_is_told_as_that() {
    let Some(landmarks) = landmarks() else { return };
    let video = StandIn::new(PROBE, &grey(20), "", 0);
    let said = video.refuse(&landmarks, &video.path());
    assert!(said.contains("no face in any of 20 frames"), "{said}");
    // A decoder's remark about the last frames of a variable rate is no damage.
    let video = StandIn::new(PROBE, &grey(18), "deprecated pixel format", 0);
    let said = video.refuse(&landmarks, &video.path());
    assert!(said.contains("no face in any of 18 frames"), "{said}");
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let by_landmarks = ["--actor", "synthetic:7", "--landmarks", "face.task", "mira"];
    let by_rendering = ["--actor", "synthetic:7", "mira"];
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&by_landmarks, &["--turning"], "--turning"),
        (&by_landmarks, &["--fit", "mean"], "--fit"),
        (&by_landmarks, &["--report", "page.html"], "--report"),
        (&by_rendering, &["--mirror"], "--mirror"),
        (&by_rendering, &["--neutral", "3"], "--neutral"),
        (&by_rendering, &["--rate", "24"], "--rate"),
    ];
    for (words, option, want) in cases {
        let said = common::refuse(&[&["capture"], words, option].concat());
        assert!(said.contains(want) && said.contains("no effect"), "{said}");
    }
}
