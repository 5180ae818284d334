//! Capture by landmarks of pictures that were drawn: one face, two faces, and what a failed capture leaves behind.

use std::path::{Path, PathBuf};
use understudy_jobs::capture::{Actor, ActorConfig, CaptureConfig, Source, WhichFace, capture, draw_actor};
use understudy_jobs::{JobError, Silent};
use understudy_report::Picture;
use understudy_testkit::shared_data;

/// Frames of two actors side by side, and MediaPipe's file.
fn two_faces(folder: &Path) -> Option<PathBuf> {
    let data = shared_data()?;
    let mut sides = Vec::new();
    for name in ["synthetic:7", "synthetic:3"] {
        let output = folder.join(name.replace(':', "-"));
        let actor = Actor { name: name.into(), seconds: 0.1, truth: None };
        draw_actor(&ActorConfig { actor, output: output.clone(), side: 384, turning: false }, &Silent)
            .expect("draws");
        sides.push(output);
    }
    let both = folder.join("both");
    std::fs::create_dir(&both).expect("writable");
    for index in 0..3 {
        let mut sheet = Picture::new(768, 384, [0, 0, 0, 255]);
        for (column, side) in sides.iter().enumerate() {
            let bytes = std::fs::read(side.join(format!("frame-{index:06}.png"))).expect("was drawn");
            let mut reader = understudy_io::picture::PictureReader::parse(bytes).expect("a picture");
            let mut rgb = Vec::new();
            assert!(reader.next_frame(&mut rgb).expect("readable"));
            for row in 0..384 {
                for x in 0..384 {
                    let (from, to) = (3 * (row * 384 + x), 4 * (row * 768 + column * 384 + x));
                    sheet.pixels_mut()[to..to + 3].copy_from_slice(&rgb[from..from + 3]);
                }
            }
        }
        std::fs::write(both.join(format!("frame-{index:06}.png")), sheet.to_png()).expect("writable");
    }
    Some(data.join("mediapipe/face_landmarker_v2_with_blendshapes_float16.task"))
}

#[test]
fn of_two_faces_one_must_be_chosen() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let Some(landmarks) = two_faces(folder.path()) else { return };
    let take = folder.path().join("take.csv");
    let config = CaptureConfig {
        landmarks: Some(landmarks),
        output: Some(take.clone()),
        ..CaptureConfig::new(Source::Video(folder.path().join("both")), "mira")
    };
    let error = capture(&config, &Silent).expect_err("two faces");
    assert!(matches!(error, JobError::Unusable { .. }), "{error:?}");
    assert!(error.to_string().contains("2 faces") && error.to_string().contains("--face"), "{error}");
    assert!(!take.exists());
    // Each of them can be followed, and they are not the same person.
    let follow = |face| {
        let report = capture(&CaptureConfig { face, ..config.clone() }, &Silent).expect("captures");
        assert_eq!((report.frames, report.seen), (3, 3));
        std::fs::read_to_string(&take).expect("the take")
    };
    let (left, right) = (follow(WhichFace::Left), follow(WhichFace::Right));
    assert_ne!(left, right);
}

#[test]
fn the_truth_of_an_actor_appears_with_the_take_alone() {
    let Some(data) = shared_data() else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let truth = folder.path().join("truth.csv");
    let actor = Actor { name: "synthetic:7".into(), seconds: 0.1, truth: Some(truth.clone()) };
    let task = data.join("mediapipe/face_landmarker_v2_with_blendshapes_float16.task");
    let config = CaptureConfig {
        landmarks: Some(task),
        neutral: understudy_jobs::capture::Neutral::Frame(99),
        ..CaptureConfig::new(Source::Actor(actor), "mira")
    };
    capture(&config, &Silent).expect_err("there is no frame 99");
    assert!(!truth.exists(), "a capture that failed left its truth behind");
    let config = CaptureConfig { neutral: understudy_jobs::capture::Neutral::Frame(0), ..config };
    capture(&config, &Silent).expect("captures");
    assert!(truth.is_file());
}
