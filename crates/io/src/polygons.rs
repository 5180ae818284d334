//! Polygons as files have them, with any number of corners, as faces of a mesh: what the readers of OBJ, Alembic, FBX
//! and USD share.

use crate::faces::{dropped_warning, names_a_vertex_twice};
use understudy_core::{Face, MeshParts, Vec2};

/// One corner of a polygon: a vertex and its texture coordinate, which may be missing.
pub(crate) type Corner = (usize, Option<usize>);

/// Collects polygons; [`Self::finish`] gives faces and texture corners.
#[derive(Default)]
pub(crate) struct Polygons {
    faces: Vec<Face>,
    face_uvs: Vec<Face>,
    count: usize,
    bare: usize,
    dropped: usize,
}

impl Polygons {
    /// Adds a polygon of three corners or more as one face, or as a fan of triangles where there are more than four.
    /// Tells how many faces it became: none where it names a vertex twice.
    pub fn add(&mut self, corners: &[Corner]) -> usize {
        let before = self.faces.len();
        self.count += 1;
        let textured = corners.iter().all(|(_, uv)| uv.is_some());
        self.bare += usize::from(!textured);
        for piece in pieces(corners) {
            let face = face_of(&piece, |(vertex, _)| vertex as u32);
            if names_a_vertex_twice(&face) {
                self.dropped += 1;
                continue;
            }
            let uv = |(_, uv): Corner| uv.filter(|_| textured).map_or(Face::NONE, |uv| uv as u32);
            self.face_uvs.push(face_of(&piece, uv));
            self.faces.push(face);
        }
        self.faces.len() - before
    }

    /// Faces with the table of texture coordinates that their corners name, and what was mended. Faces without
    /// coordinates among faces with them share one.
    pub fn finish(self, uvs: Vec<Vec2>) -> (MeshParts, Vec<String>) {
        let Self { faces, face_uvs, count, bare, dropped } = self;
        let mut parts = MeshParts { faces, face_uvs, uvs, ..MeshParts::default() };
        let mut warnings: Vec<String> = dropped_warning(dropped).into_iter().collect();
        if bare == count {
            parts.face_uvs.clear();
        } else if bare > 0 {
            warnings.push(format!("{bare} faces have no texture coordinates and share (0, 0)"));
            let origin = parts.uvs.len() as u32;
            parts.uvs.push(Vec2::ZERO);
            for (uv, face) in parts.face_uvs.iter_mut().zip(&parts.faces) {
                if uv.raw()[0] == Face::NONE {
                    *uv = face.map(|_| origin);
                }
            }
        }
        (parts, warnings)
    }
}

/// A triangle or a quad as it is, more corners as a fan of triangles.
fn pieces(corners: &[Corner]) -> Vec<Vec<Corner>> {
    if corners.len() <= 4 {
        return vec![corners.to_vec()];
    }
    (1..corners.len() - 1).map(|i| vec![corners[0], corners[i], corners[i + 1]]).collect()
}

fn face_of(corners: &[Corner], map: impl Fn(Corner) -> u32) -> Face {
    match *corners {
        [a, b, c, d] => Face::quad(map(a), map(b), map(c), map(d)),
        [a, b, c, ..] => Face::triangle(map(a), map(b), map(c)),
        _ => unreachable!("faces of fewer corners are refused where they are read"),
    }
}
