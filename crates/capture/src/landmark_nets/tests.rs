use super::crops::{Crop, normalise};
use super::layout::{self, MEDIAPIPE, POINTS, Region, coarse, multi_pie};
use super::nets::{FACE_SIDE, Stance};
use super::pose::MeanFace;
use super::{FileError, LandmarkNets, NetSettings, file, is_landmark_file};
use crate::Frame;
use understudy_core::{DMat3, DVec3, Vec3};
use understudy_runtime::live::landmark_of;

/// Rounding of a place in f32 after a rotation and back, of 1.
const F32_PLACE: f32 = 1e-4;

/// A face of some depth: landmarks on an ellipsoid, about where they are on people, cm.
fn face() -> Vec<[f32; 3]> {
    let mut places = vec![[0.0; 3]; POINTS];
    let on = |x: f32, y: f32| [x, y, 10.0 - 0.05 * (x * x + 0.6 * y * y)];
    for (k, place) in places.iter_mut().enumerate().take(17) {
        let angle = std::f32::consts::PI * (1.0 + k as f32 / 16.0);
        *place = on(7.0 * angle.cos(), 2.0 + 8.0 * angle.sin());
    }
    for k in 0..5 {
        places[17 + k] = on(-6.0 + 1.1 * k as f32, 4.5);
        places[22 + k] = on(1.6 + 1.1 * k as f32, 4.5);
    }
    for k in 0..4 {
        places[27 + k] = [0.0, 3.0 - k as f32, 10.2 + 0.6 * k as f32];
    }
    for k in 0..5 {
        places[31 + k] = on(-1.4 + 0.7 * k as f32, -1.0);
    }
    for k in 0..6 {
        let angle = std::f32::consts::PI * (1.0 - k as f32 / 3.0);
        places[36 + k] = on(-3.5 + 1.4 * angle.cos(), 3.0 + 0.5 * angle.sin());
        places[42 + k] = on(3.5 + 1.4 * angle.cos(), 3.0 + 0.5 * angle.sin());
    }
    for (k, place) in places[48..114].iter_mut().enumerate() {
        let angle = 0.4 * k as f32;
        *place = on(2.5 * angle.cos(), -3.5 + angle.sin());
    }
    places[114] = on(3.5, 3.0);
    places[115] = on(-3.5, 3.0);
    places
}

fn flat(places: &[[f32; 3]], turn: DMat3, scale: f64, middle: [f64; 2]) -> Vec<[f32; 2]> {
    let project = |place: &[f32; 3]| {
        let at = turn * Vec3::from(*place).as_dvec3();
        [(middle[0] + scale * at.x) as f32, (middle[1] - scale * at.y) as f32]
    };
    places.iter().map(project).collect()
}

#[test]
fn places_go_into_a_crop_and_back() {
    for mirror in [false, true] {
        let crop = Crop { centre: [31.0, 17.5], side: 22.0, turn: 0.7, mirror };
        for place in [[0.3f32, -0.8], [-1.0, 1.0], [0.0, 0.0]] {
            let back = crop.from_frame(crop.to_frame(place));
            assert!((0..2).all(|k| (back[k] - place[k]).abs() < F32_PLACE), "{back:?}");
        }
    }
    let mirrored = Crop { centre: [0.0; 2], side: 2.0, turn: 0.0, mirror: true };
    assert_eq!(mirrored.to_frame([1.0, 0.5]), [-1.0, 0.5]);
}

#[test]
fn a_crop_of_the_whole_frame_is_the_frame_and_ends_at_its_border() {
    let mut frame = Frame::black(8, 8);
    frame.rgb_mut().iter_mut().zip(0..).for_each(|(byte, k)| *byte = (k * 37 % 256) as u8);
    let whole = Crop { centre: [4.0; 2], side: 8.0, turn: 0.0, mirror: false };
    let mut picture = vec![0.0; 3 * 64];
    whole.sample(&frame, 8, &mut picture);
    for (pixel, rgb) in frame.rgb().chunks_exact(3).enumerate() {
        for channel in 0..3 {
            let want = f32::from(rgb[channel]) / 255.0;
            assert!((picture[channel * 64 + pixel] - want).abs() < F32_PLACE);
        }
    }
    // A mean over many pixels keeps the mean; far outside there is nothing.
    whole.sample(&frame, 2, &mut picture[..12]);
    let mean = frame.rgb().iter().map(|byte| f32::from(*byte)).sum::<f32>() / 255.0 / 192.0;
    assert!((picture[..12].iter().sum::<f32>() / 12.0 - mean).abs() < 0.02);
    let away = Crop { centre: [400.0; 2], ..whole };
    away.sample(&frame, 8, &mut picture);
    assert!(picture.iter().all(|value| *value == 0.0));
    picture[..96].fill(3.0);
    normalise(&mut picture);
    assert!(picture.iter().sum::<f32>().abs() < 1e-2);
}

#[test]
fn every_point_is_looked_at_and_eyes_are_mirror_images() {
    let mut seen = [0; POINTS];
    Region::ALL.iter().flat_map(|region| region.points()).for_each(|point| seen[point] += 1);
    assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
    assert_eq!(coarse().len(), 62);
    let places = face();
    for (right, left) in Region::RightEye.points().into_iter().zip(Region::LeftEye.points()) {
        let (right, left) = (places[right], places[left]);
        assert!((right[0] + left[0]).abs() < F32_PLACE && (right[1] - left[1]).abs() < F32_PLACE);
    }
}

#[test]
fn mediapipes_numbers_are_those_of_control_points() {
    let named = [
        (8, "chin"),
        (17, "brow_R_5"),
        (22, "brow_L_1"),
        (30, "nose_tip"),
        (36, "eye_R_outer"),
        (41, "eye_R_lower_outer"),
        (45, "eye_L_outer"),
        (47, "eye_L_lower_inner"),
        (48, "mouth_corner_R"),
        (51, "lip_upper"),
        (57, "lip_lower"),
        (62, "lip_upper_inner"),
        (66, "lip_lower_inner"),
        (67, "lip_lower_inner_1_R"),
    ];
    for (landmark, name) in named {
        let found = MEDIAPIPE.iter().find(|(of, _)| *of == landmark).map(|(_, place)| usize::from(*place));
        assert_eq!(found, landmark_of(name), "{name}");
    }
}

#[test]
fn inner_landmarks_lie_on_the_inner_contour() {
    let mut points = vec![[0.0; 2]; POINTS];
    for k in 0..layout::INNER {
        points[84 + k] = [k as f32, 1.0];
        points[84 + layout::INNER + k] = [k as f32, -1.0];
    }
    let landmarks = multi_pie(&points).expect("all points");
    assert_eq!(landmarks[60], [0.0, 0.0]);
    assert_eq!(landmarks[62], [7.0, 1.0]);
    assert_eq!(landmarks[64], [14.0, 0.0]);
    assert_eq!(landmarks[67], [3.0, -1.0]);
    assert_eq!(multi_pie(&points[1..]), None);
}

#[test]
fn a_lifted_face_stands_as_it_stood() {
    let places = face();
    let mean = MeanFace::new(&places).expect("a face");
    let size = [640.0, 480.0];
    let mut lifted = Vec::new();
    let mut local = Vec::new();
    let rest = flat(&places, DMat3::IDENTITY, 9.0, [320.0, 240.0]);
    assert!(mean.lift(&rest, size, &mut lifted));
    let first = mean.geometry().solve(&lifted, size, &mut local).expect("a pose").rotation;
    for turn in [DVec3::new(0.2, 0.3, -0.1), DVec3::new(-0.15, -0.25, 0.3)] {
        let turned = DMat3::from_quat(understudy_core::DQuat::from_scaled_axis(turn));
        // In the middle of the picture: elsewhere the live path's pinhole camera sees another side of the head.
        let points = flat(&places, turned, 7.0, [320.0, 240.0]);
        assert!(mean.lift(&points, size, &mut lifted));
        let pose = mean.geometry().solve(&lifted, size, &mut local).expect("a pose");
        let off = pose.rotation * first.transpose() * turned.transpose();
        let degrees = ((off.x_axis.x + off.y_axis.y + off.z_axis.z - 1.0) / 2.0).clamp(-1.0, 1.0).acos();
        assert!(degrees.to_degrees() < 3.0, "{turn}: {}°", degrees.to_degrees());
        // The chin is where it was seen.
        let chin = lifted[152];
        assert!((chin.x * size[0] - points[8][0]).abs() < 1e-2);
    }
    assert!(!mean.lift(&vec![[5.0; 2]; POINTS], size, &mut lifted));
    assert!(!mean.lift(&vec![[f32::NAN; 2]; POINTS], size, &mut lifted));
    assert!(MeanFace::new(&places[1..]).is_err());
}

#[test]
fn a_stance_turns_and_grows_with_the_face() {
    let places = face();
    let upright = Stance::of(&flat(&places, DMat3::IDENTITY, 9.0, [320.0, 240.0]));
    let roll = DMat3::from_rotation_z(-0.4);
    let rolled = Stance::of(&flat(&places, roll, 18.0, [100.0, 90.0]));
    assert!(upright.turn.abs() < 1e-4 && (rolled.turn - 0.4).abs() < 1e-3);
    assert!((rolled.radius / upright.radius - 2.0).abs() < 1e-3);
    assert!((upright.crop().side - FACE_SIDE * upright.radius).abs() < F32_PLACE);
}

#[test]
fn files_that_are_no_nets_are_told() {
    let header = serde_json::json!({ "x": 1 });
    let bytes = file::write(&header, &[&[1.0, 2.0], &[3.0]]);
    assert!(is_landmark_file(&bytes) && !is_landmark_file(b"PK"));
    let (read, numbers): (serde_json::Value, _) = file::read(&bytes).expect("written");
    assert_eq!((read, numbers), (header, vec![1.0, 2.0, 3.0]));
    let refused = |bytes: &[u8]| LandmarkNets::parse(bytes).expect_err("no nets");
    assert!(matches!(refused(&bytes), FileError::Header(_)));
    assert_eq!(refused(b"nonsense"), FileError::Kind);
    for cut in 0..bytes.len() {
        let error = refused(&bytes[..cut]);
        assert!(matches!(error, FileError::Kind | FileError::Damaged), "{cut}: {error}");
        let mut flipped = bytes.clone();
        flipped[cut] ^= 4;
        assert!(matches!(refused(&flipped), FileError::Kind | FileError::Damaged), "{cut}");
    }
}

#[test]
fn settings_follow_the_minutes() {
    let (short, long) = (NetSettings::for_minutes(1.0, 1), NetSettings::for_minutes(20.0, 1));
    let (short, long) = (short.expect("in range"), long.expect("in range"));
    assert!(long.face_steps > 10 * short.face_steps && long.people > 10 * short.people);
    assert!(short.check().is_ok() && NetSettings { batch: 1, ..short }.check().is_err());
    assert!(NetSettings { width: f32::NAN, ..short }.check().is_err());
}
