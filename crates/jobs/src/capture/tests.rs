//! What people may give that is no actor, no landmarker or no rig: one line, and nothing written. And a photograph's worth of face.

use super::*;
use crate::Silent;
use understudy_report::Picture;
use understudy_testkit::shared_data;

/// MediaPipe's landmarker, where the shared data has it.
fn task() -> Option<PathBuf> {
    Some(shared_data()?.join("mediapipe/face_landmarker_v2_with_blendshapes_float16.task"))
}

/// A folder with so many grey frames.
fn grey(folder: &Path, count: usize) -> PathBuf {
    let frames = folder.join("frames");
    std::fs::create_dir_all(&frames).expect("writable");
    for index in 0..count {
        let picture = Picture::new(64, 48, [90, 90, 90, 255]);
        std::fs::write(frames.join(format!("{index}.png")), picture.to_png()).expect("writable");
    }
    frames
}

#[track_caller]
fn refused(config: &CaptureConfig, part: &str) {
    let error = capture(config, &Silent).expect_err("bad input");
    let text = error.to_string();
    assert!(error.is_bad_input() && text.contains(part) && !text.contains('\n'), "{text}");
    if let Some(output) = &config.output {
        assert!(!output.exists(), "nothing is written");
    }
}

#[test]
fn bad_input_is_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let video = |path: PathBuf| CaptureConfig {
        output: Some(at("take.csv")),
        ..CaptureConfig::new(Source::Video(path), "mira")
    };
    refused(&video(at("none.mp4")), "no such video");
    let frames = grey(folder.path(), 2);
    refused(&video(frames.clone()), "--landmarks");
    refused(&CaptureConfig { output: Some(at("take.txt")), ..video(frames.clone()) }, ".csv");
    refused(&CaptureConfig { rate: Some(f32::NAN), ..video(frames.clone()) }, "rate");
    refused(&CaptureConfig { seconds: Some(-1.0), ..video(frames.clone()) }, "seconds");
    let rubbish = at("rubbish.task");
    std::fs::write(&rubbish, b"no archive at all, but longer than twenty-two bytes").expect("writable");
    let with = |task: &Path| CaptureConfig { landmarks: Some(task.into()), ..video(frames.clone()) };
    refused(&with(&rubbish), "rubbish.task");
    refused(&with(&at("none.task")), "none.task");
    let Some(task) = task() else { return };
    let bytes = std::fs::read(&task).expect("readable");
    let cut = at("cut.task");
    std::fs::write(&cut, &bytes[..bytes.len() - 100]).expect("writable");
    refused(&with(&cut), "cut.task");
    refused(&with(&task), "no face in any of 2 frames");
    let empty = at("empty");
    std::fs::create_dir(&empty).expect("writable");
    let of = |path: PathBuf| CaptureConfig { landmarks: Some(task.clone()), ..video(path) };
    refused(&of(empty), "no frames");
    let damaged = at("damaged.png");
    std::fs::write(&damaged, &Picture::new(8, 8, [0; 4]).to_png()[..40]).expect("writable");
    refused(&of(damaged), "damaged.png");
    // A body has neither shapes of ARKit's names nor points.
    refused(&CaptureConfig { rig: "rook".into(), ..with(&task) }, "ARKit");
    refused(&CaptureConfig { twin: Some(at("none.twin")), ..with(&task) }, "none.twin");
    refused(&CaptureConfig { source: Source::Camera(at("video9")), ..with(&task) }, "no such camera");
}

#[test]
fn a_lost_face_is_told_in_stretches() {
    let seen = || Some(watching::Seen { points: Vec::new(), shapes: Vec::new() });
    let frames = vec![None, seen(), None, None, seen(), None];
    let watched = watching::Watched {
        source: "x".into(),
        rate: 30.0,
        size: (1, 1),
        frames,
        pictures: Vec::new(),
        searches: 0,
        seconds: 0.0,
    };
    assert_eq!(watched.lost(), [(0, 1), (2, 2), (5, 1)]);
}

#[test]
fn the_neutral_frame_is_a_number_or_found() {
    assert_eq!("auto".parse(), Ok(Neutral::Auto));
    assert_eq!("12".parse(), Ok(Neutral::Frame(12)));
    for bad in ["", "-1", "first", "1.5"] {
        assert!(bad.parse::<Neutral>().is_err(), "{bad}");
    }
}

/// A synthetic actor of the shared head model, by its landmarks, on Mira by the names of scores: whole takes of every kind.
#[test]
fn a_synthetic_actor_drives_mira() {
    let Some(task) = task() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let actor = Actor { name: "synthetic:3".into(), seconds: 0.5, truth: None };
    let config = |name: &str| CaptureConfig {
        landmarks: Some(task.clone()),
        output: Some(folder.path().join(name)),
        ..CaptureConfig::new(Source::Actor(actor.clone()), "mira")
    };
    let report = capture(&config("take.csv"), &Silent).expect("a take");
    assert!(report.frames >= 14 && report.seen * 10 >= report.frames * 9, "{report:?}");
    assert!(report.named > 40 && report.points == 0 && report.points_mm.is_none(), "{report:?}");
    // The table plays on the rig that it was made for.
    let rig = crate::rigs::open("mira", &Silent).expect("a rig").rig;
    let name = folder.path().join("take.csv").to_string_lossy().into_owned();
    let clip = crate::clips::resolve(rig.as_ref(), &name, &Silent).expect("a clip");
    let played = clip.sample(rig.specs(), 30.0).expect("in range");
    assert_eq!(played.frames.len(), report.frames);
    let moves = |name: &str| {
        let control = rig.specs().find(name).expect("a control");
        let values = || played.frames.iter().map(|frame| frame.0[control]);
        values().fold(f32::MIN, f32::max) - values().fold(f32::MAX, f32::min)
    };
    let total: f32 = rig.specs().iter().map(|spec| moves(&spec.name) / (spec.high - spec.low)).sum();
    assert!(total > 0.2, "she moves: {total}");
    // The same actor, the same bytes.
    let again = capture(&config("again.csv"), &Silent).expect("a take");
    assert_eq!(again.neutral, report.neutral);
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect("written");
    assert_eq!(read("take.csv"), read("again.csv"));
    let sheet = capture(&config("sheet.png"), &Silent).expect("a sheet");
    assert!(sheet.file.is_some_and(|file| file.is_file()));
    let live = CaptureConfig { layout: Layout::LiveLink, ..config("phone.csv") };
    capture(&live, &Silent).expect("a take as phones write it");
    assert!(read("phone.csv").starts_with(b"Timecode,BlendShapeCount"));
}
