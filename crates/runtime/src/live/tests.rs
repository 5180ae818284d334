//! An actor made of numbers: a canonical face of 468 points and two irises, symmetric, seen by the camera that the geometry
//! assumes.

use super::FaceGeometry;
use understudy_core::{DMat3, DVec3, Random, Vec3, arkit};

/// Of the picture.
pub const SIZE: [f32; 2] = [640.0, 480.0];

/// Points of the right half and of the left that are each other's mirror.
const PAIRS: [(usize, usize); 26] = [
    (149, 378),
    (70, 300),
    (63, 293),
    (105, 334),
    (66, 296),
    (107, 336),
    (98, 327),
    (97, 326),
    (33, 263),
    (160, 387),
    (158, 385),
    (133, 362),
    (153, 380),
    (144, 373),
    (61, 291),
    (39, 269),
    (37, 267),
    (84, 314),
    (181, 405),
    (78, 308),
    (82, 312),
    (87, 317),
    (468, 473),
    (469, 474),
    (470, 475),
    (471, 476),
];
const MIDDLE: [usize; 11] = [152, 168, 197, 5, 4, 2, 0, 17, 13, 14, 10];

/// A face on an egg, 478 points; the basis is some of the first 468.
pub fn actor() -> (FaceGeometry, Vec<Vec3>) {
    let mut random = Random::new(7);
    let mut on_egg = || {
        let (x, y) = (random.uniform(-6.0, 6.0), random.uniform(-8.0, 8.0));
        let z = 6.0 * (1.0 - (x / 9.0) * (x / 9.0) - (y / 12.0) * (y / 12.0));
        Vec3::new(x, y, z)
    };
    let mut face: Vec<Vec3> = (0..478).map(|_| on_egg()).collect();
    for (right, left) in PAIRS {
        face[right].x = -face[right].x.abs() - 0.3;
        face[left] = face[right] * Vec3::new(-1.0, 1.0, 1.0);
    }
    MIDDLE.iter().for_each(|point| face[*point].x = 0.0);
    let basis = (0..468).step_by(9).map(|point| (point, 1.0)).collect();
    (FaceGeometry::new(face[..468].to_vec(), basis).expect("a face"), face)
}

/// What a detector would say of the face, turned (yaw, pitch, roll, degrees) and of that size, half a metre away.
pub fn seen(face: &[Vec3], turn: [f32; 3], scale: f32) -> Vec<Vec3> {
    let [yaw, pitch, roll] = turn.map(|angle| f64::from(angle).to_radians());
    let rotation = DMat3::from_rotation_y(yaw) * DMat3::from_rotation_x(pitch) * DMat3::from_rotation_z(roll);
    let height = 2.0 * 31.5f64.to_radians().tan();
    let width = height * f64::from(SIZE[0] / SIZE[1]);
    let distance = 60.0;
    let placed: Vec<DVec3> = face
        .iter()
        .map(|point| rotation * (f64::from(scale) * point.as_dvec3()) - DVec3::new(0.0, 0.0, distance))
        .collect();
    let middle = placed.iter().map(|point| -point.z).sum::<f64>() / placed.len() as f64;
    placed
        .iter()
        .map(|point| {
            let depth = -point.z;
            let (x, y) = (point.x / depth / width + 0.5, 0.5 - point.y / depth / height);
            Vec3::new(x as f32, y as f32, ((depth - middle) / middle / width) as f32)
        })
        .collect()
}

/// All scores alike.
pub fn shapes(value: f32) -> Vec<f32> {
    vec![value; arkit::SHAPES.len()]
}

#[test]
fn a_canonical_face_is_read_from_its_message_and_damage_is_told() {
    let mut message = Vec::new();
    let mut mesh = Vec::new();
    for vertex in [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]] {
        for number in vertex.into_iter().chain([0.5, 0.5]) {
            mesh.push(0x1d);
            mesh.extend(number.to_le_bytes());
        }
    }
    message.extend([0x0a, mesh.len() as u8]);
    message.extend(mesh);
    for point in 0..3u8 {
        message.extend([0x12, 7, 0x08, point, 0x15]);
        message.extend(0.25f32.to_le_bytes());
    }
    let geometry = FaceGeometry::parse(&message).expect("a face");
    assert_eq!(geometry.vertices()[2], Vec3::new(0.0, 1.0, 0.5));
    for end in 0..message.len() {
        // Cut between two entries it is a face of fewer weighted points, which are too few.
        assert!(FaceGeometry::parse(&message[..end]).is_err(), "cut at {end}");
    }
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let mut damaged = message.clone();
        let place = (random.uniform(0.0, damaged.len() as f32) as usize).min(damaged.len() - 1);
        damaged[place] = random.uniform(0.0, 256.0) as u8;
        let _ = FaceGeometry::parse(&damaged);
    }
}

#[test]
fn points_that_are_no_face_have_no_pose() {
    let (geometry, face) = actor();
    let mut local = Vec::new();
    assert!(geometry.solve(&face[..100], SIZE, &mut local).is_none(), "too few");
    let mut points = seen(&face, [0.0; 3], 1.0);
    points[3].x = f32::NAN;
    assert!(geometry.solve(&points, SIZE, &mut local).is_none(), "not finite");
    let flat = vec![Vec3::splat(0.5); 478];
    assert!(geometry.solve(&flat, SIZE, &mut local).is_none(), "all in one place");
}
