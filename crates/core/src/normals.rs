//! Face and vertex normals.

use crate::mesh::Face;
use glam::Vec3;

/// Twice the area times the unit normal of a face; quads by the cross product of their diagonals.
pub fn face_area_vector(face: &Face, positions: &[Vec3]) -> Vec3 {
    let at = |corner: u32| positions[corner as usize];
    match *face.corners() {
        [a, b, c] => (at(b) - at(a)).cross(at(c) - at(a)),
        [a, b, c, d] => (at(c) - at(a)).cross(at(d) - at(b)),
        _ => Vec3::ZERO,
    }
}

/// Unit normals of faces; zero for a face without area. `[F]`.
pub fn face_normals(faces: &[Face], positions: &[Vec3]) -> Vec<Vec3> {
    faces.iter().map(|face| face_area_vector(face, positions).normalize_or_zero()).collect()
}

/// Area-weighted vertex normals into `out`, `[V]`; zero for a vertex without a face.
pub fn vertex_normals_into(faces: &[Face], positions: &[Vec3], out: &mut [Vec3]) {
    out.fill(Vec3::ZERO);
    for face in faces {
        let normal = face_area_vector(face, positions);
        for &corner in face.corners() {
            out[corner as usize] += normal;
        }
    }
    for normal in out {
        *normal = normal.normalize_or_zero();
    }
}

/// Area-weighted vertex normals, `[V]`.
pub fn vertex_normals(faces: &[Face], positions: &[Vec3]) -> Vec<Vec3> {
    let mut out = vec![Vec3::ZERO; positions.len()];
    vertex_normals_into(faces, positions, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quad_and_its_two_triangles_agree() {
        let p = [Vec3::ZERO, Vec3::X, Vec3::X + Vec3::Y, Vec3::Y];
        let quad = face_area_vector(&Face::quad(0, 1, 2, 3), &p);
        let split =
            face_area_vector(&Face::triangle(0, 1, 2), &p) + face_area_vector(&Face::triangle(0, 2, 3), &p);
        assert_eq!(quad, split);
        assert_eq!(vertex_normals(&[Face::quad(0, 1, 2, 3)], &p), vec![Vec3::Z; 4]);
    }
}
