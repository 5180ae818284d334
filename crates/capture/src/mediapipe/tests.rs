//! The landmarker against MediaPipe's own golden vectors, and on pictures that are no faces.

use super::landmarker::score;
use super::*;
use crate::Frame;
use crate::tflite::Network;
use std::path::PathBuf;
use understudy_core::{Random, Vec3};
use understudy_io::zip;
use understudy_runtime::live::FaceGeometry;
use understudy_testkit::shared_data;

fn folder() -> Option<PathBuf> {
    Some(shared_data()?.join("mediapipe"))
}

fn task() -> Option<Vec<u8>> {
    let path = folder()?.join("face_landmarker_v2_with_blendshapes_float16.task");
    Some(std::fs::read(path).expect("the shared data has it"))
}

fn member(task: &[u8], name: &str) -> Vec<u8> {
    let members = zip::members(task).expect("an archive");
    let member = members.iter().find(|member| member.name == name).expect("a member");
    zip::unpack(task, member).expect("whole")
}

/// The numbers behind a name in a message as text.
fn numbers(file: &str, name: &str) -> Vec<f32> {
    let path = folder().expect("present").join("testdata").join(file);
    let text = std::fs::read_to_string(path).expect("the shared data has it");
    let start = format!("{name}: ");
    text.lines().filter_map(|line| line.trim().strip_prefix(&start)?.parse().ok()).collect()
}

fn points(file: &str) -> Vec<Vec3> {
    let (x, y, z) = (numbers(file, "x"), numbers(file, "y"), numbers(file, "z"));
    (0..x.len()).map(|i| Vec3::new(x[i], y[i], z.get(i).copied().unwrap_or(0.0))).collect()
}

/// Of the portrait that the vectors were made from, pixels.
const PORTRAIT: [f32; 2] = [820.0, 1024.0];

#[test]
fn scores_of_golden_points_are_the_golden_scores() {
    let Some(task) = task() else { return };
    let mut network = Network::parse(&member(&task, Parts::SCORES)).expect("a net");
    // The portrait's points and scores were not written by one version of the nets: they agree as far as MediaPipe's own tests ask.
    for (points_of, scores_of, tolerance) in [
        ("face_blendshapes_in_landmarks.prototxt", "face_blendshapes_out.prototxt", GOLDEN_SCORE),
        ("portrait_expected_face_landmarks.pbtxt", "portrait_expected_blendshapes.pbtxt", OTHER_VERSION),
    ] {
        let want = numbers(scores_of, "score");
        assert_eq!(want.len(), 52);
        let mut out = vec![0.0; 52];
        score(&mut network, &points(points_of), PORTRAIT, &mut out);
        for ((name, got), want) in SCORES.iter().zip(&out).zip(&want) {
            assert!((got - want).abs() < tolerance, "{scores_of}, {name}: {got} instead of {want}");
        }
    }
}

/// What a golden score may differ: the nets' weights have 11 bits.
const GOLDEN_SCORE: f32 = 1e-3;
/// And where another version of the nets placed the points.
const OTHER_VERSION: f32 = 0.03;

#[test]
fn the_head_of_golden_points_stands_where_the_golden_matrix_says() {
    let Some(task) = task() else { return };
    let geometry = FaceGeometry::parse(&member(&task, Parts::GEOMETRY)).expect("a face");
    let mut local = Vec::new();
    let face = points("face_blendshapes_in_landmarks.prototxt");
    let pose = geometry.solve(&face, PORTRAIT, &mut local).expect("a head");
    let want = numbers("face_geometry_expected_out.pbtxt", "packed_data");
    let got = pose.rotation * pose.scale;
    for (column, want) in want.chunks_exact(4).enumerate() {
        for axis in 0..3 {
            let (got, tolerance) = match column {
                // A hundredth of a degree, and half a millimetre at 66 cm.
                3 => (pose.translation[axis], 0.05),
                _ => (got.col(column)[axis], 2e-4),
            };
            assert!((got - f64::from(want[axis])).abs() < tolerance, "{column} {axis}: {got} {}", want[axis]);
        }
    }
    let vertices = numbers("face_geometry_expected_out.pbtxt", "vertex_buffer");
    for (vertex, want) in local.iter().zip(vertices.chunks_exact(5)) {
        let off = vertex.distance(Vec3::from_slice(want));
        assert!(off < 0.02, "{vertex} instead of {want:?}");
    }
}

#[test]
fn pictures_without_a_face_show_none() {
    let Some(task) = task() else { return };
    let mut landmarker = Landmarker::parse(&task, Mode::Video).expect("a landmarker");
    let mut random = Random::new(2);
    for (width, height) in [(64, 64), (640, 360), (1, 1), (33, 700)] {
        let noise = (0..3 * width * height).map(|_| random.below(256) as u8).collect();
        let frames = [Frame::black(width, height), Frame::new(width, height, noise).expect("its size")];
        for frame in &frames {
            assert_eq!(landmarker.look(frame, Choice::Largest), Sighting::None, "{width} × {height}");
        }
    }
}

#[test]
fn damaged_task_files_are_refused_by_the_member() {
    let Some(task) = task() else { return };
    let refused = |bytes: &[u8], part: &str| {
        let error = Landmarker::parse(bytes, Mode::Pictures).expect_err("damaged").to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    };
    refused(&[], "too short");
    refused(&task[..task.len() / 2], "no directory");
    let mut damaged = task.clone();
    damaged[100_000] ^= 1;
    refused(&damaged, "checksum");
    // An archive of other things.
    let mut other = task.clone();
    let name = b"face_blendshapes.tflite";
    for place in 0..other.len() - name.len() {
        if &other[place..place + name.len()] == name {
            other[place] = b'F';
        }
    }
    refused(&other, "'face_blendshapes.tflite': is missing");
}

#[test]
fn every_score_but_the_first_is_an_arkit_shape_and_none_is_twice() {
    let mut shapes: Vec<usize> = (1..52).map(|score| shape_of(score).expect("a shape")).collect();
    assert_eq!((shape_of(0), shape_of(52)), (None, None));
    shapes.sort_unstable();
    shapes.dedup();
    assert_eq!(shapes.len(), 51);
}
