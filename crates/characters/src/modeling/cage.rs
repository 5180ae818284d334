//! A coarse mesh under construction: positions, faces with a UV a corner and a segment name.

use std::collections::HashMap;
use understudy_core::{Face, Mesh, MeshError, MeshParts, Segments, Vec2, Vec3};

/// A face of a cage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CageFace {
    /// Three or four vertices, counter-clockwise seen from outside.
    pub face: Face,
    /// UV of each corner; the fourth is unused for a triangle.
    pub uvs: [Vec2; 4],
    /// Index into [`Cage::segments`].
    pub segment: u32,
}

/// A mesh under construction. Nothing is checked until [`Cage::build`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cage {
    /// cm.
    pub positions: Vec<Vec3>,
    /// Triangles and quads.
    pub faces: Vec<CageFace>,
    /// Names of segments.
    pub segments: Vec<String>,
}

impl Cage {
    /// The number of a segment, made when it is new.
    pub fn segment(&mut self, name: &str) -> u32 {
        let found = self.segments.iter().position(|s| s == name);
        found.unwrap_or_else(|| {
            self.segments.push(name.into());
            self.segments.len() - 1
        }) as u32
    }

    /// Adds a vertex and gives its index.
    pub fn vertex(&mut self, position: Vec3) -> u32 {
        self.positions.push(position);
        self.positions.len() as u32 - 1
    }

    /// Adds a quad.
    pub fn quad(&mut self, corners: [u32; 4], uvs: [Vec2; 4], segment: u32) {
        let [a, b, c, d] = corners;
        self.faces.push(CageFace { face: Face::quad(a, b, c, d), uvs, segment });
    }

    /// Adds a triangle.
    pub fn triangle(&mut self, corners: [u32; 3], uvs: [Vec2; 3], segment: u32) {
        let ([a, b, c], [s, t, u]) = (corners, uvs);
        self.faces.push(CageFace { face: Face::triangle(a, b, c), uvs: [s, t, u, Vec2::ZERO], segment });
    }

    /// A grid of quads over rows of vertices that exist already; rows have equal length. `closed` joins
    /// the last column to the first. `uv(row, column)` is asked with `column` up to the row's length when
    /// closed. Corners run row, row+1 upward: seen from outside, rows go up and columns to the right.
    pub fn skin_rows(
        &mut self,
        rows: &[Vec<u32>],
        closed: bool,
        segment: u32,
        uv: impl Fn(usize, usize) -> Vec2,
    ) {
        for (row, pair) in rows.windows(2).enumerate() {
            let columns = pair[0].len();
            for column in 0..if closed { columns } else { columns - 1 } {
                let next = (column + 1) % columns;
                let corners = [pair[0][column], pair[0][next], pair[1][next], pair[1][column]];
                let uvs =
                    [uv(row, column), uv(row, column + 1), uv(row + 1, column + 1), uv(row + 1, column)];
                self.quad(corners, uvs, segment);
            }
        }
    }

    /// Adds everything of another cage; segments are joined by name. Gives the index of its first vertex.
    pub fn append(&mut self, other: &Cage) -> u32 {
        let first = self.positions.len() as u32;
        let segments: Vec<u32> = other.segments.iter().map(|name| self.segment(name)).collect();
        self.positions.extend_from_slice(&other.positions);
        self.faces.extend(other.faces.iter().map(|face| CageFace {
            face: face.face.map(|corner| corner + first),
            uvs: face.uvs,
            segment: segments[face.segment as usize],
        }));
        first
    }

    /// Adds the mirror image across `x = 0`; vertices within `weld` cm of the plane are put on it and
    /// shared. `uv` says where the mirrored half lies in the texture. Gives for every vertex of the
    /// original half the index of its image.
    pub fn mirror(&mut self, weld: f32, uv: impl Fn(Vec2) -> Vec2) -> Vec<u32> {
        let count = self.positions.len();
        let mut image = Vec::with_capacity(count);
        for index in 0..count {
            let position = self.positions[index];
            if position.x.abs() <= weld {
                self.positions[index].x = 0.0;
                image.push(index as u32);
            } else {
                image.push(self.vertex(Vec3::new(-position.x, position.y, position.z)));
            }
        }
        for index in 0..self.faces.len() {
            let CageFace { face, uvs, segment } = self.faces[index];
            let [a, b, c, d] = uvs.map(&uv);
            match *face.corners() {
                [p, q, r] => {
                    self.triangle([p, r, q].map(|v| image[v as usize]), [a, c, b], segment);
                }
                [p, q, r, s] => {
                    self.quad([p, s, r, q].map(|v| image[v as usize]), [a, d, c, b], segment);
                }
                _ => {}
            }
        }
        image
    }

    /// Checks the cage and makes it a mesh. Corners with the same vertex and UV share a texture
    /// coordinate; a vertex is in the segment of its first face.
    pub fn build(&self) -> Result<Mesh, MeshError> {
        let mut uvs = Vec::new();
        let mut known = HashMap::new();
        let mut of_vertex = vec![u32::MAX; self.positions.len()];
        let mut faces = Vec::with_capacity(self.faces.len());
        let mut face_uvs = Vec::with_capacity(self.faces.len());
        for CageFace { face, uvs: corner_uvs, segment } in &self.faces {
            let mut indices = [Face::NONE; 4];
            for (place, &vertex) in face.corners().iter().enumerate() {
                let uv = corner_uvs[place];
                let key = (vertex, uv.x.to_bits(), uv.y.to_bits());
                indices[place] = *known.entry(key).or_insert_with(|| {
                    uvs.push(uv);
                    uvs.len() as u32 - 1
                });
                if let Some(slot) = of_vertex.get_mut(vertex as usize) {
                    *slot = (*slot).min(*segment);
                }
            }
            faces.push(*face);
            face_uvs.push(Face::quad(indices[0], indices[1], indices[2], indices[3]));
        }
        // A vertex without a face belongs to the first segment.
        of_vertex.iter_mut().filter(|s| **s == u32::MAX).for_each(|s| *s = 0);
        let segments = Segments { names: self.segments.clone(), of_vertex };
        MeshParts { positions: self.positions.clone(), faces, uvs, face_uvs, segments }.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modeling::subdivide;

    fn half_box() -> Cage {
        let mut cage = Cage::default();
        let skin = cage.segment("skin");
        let rows: Vec<Vec<u32>> = (0..3)
            .map(|y| {
                let at = |x: f32, z: f32| Vec3::new(x, y as f32, z);
                [at(0.0, 1.0), at(1.0, 1.0), at(1.0, -1.0), at(0.0, -1.0)].map(|p| cage.vertex(p)).to_vec()
            })
            .collect();
        cage.skin_rows(&rows, false, skin, |row, column| Vec2::new(column as f32 / 6.0, row as f32 / 2.0));
        cage
    }

    #[test]
    fn a_mirrored_half_is_one_closed_island_with_outward_faces() {
        let mut cage = half_box();
        cage.mirror(1e-4, |uv| Vec2::new(1.0 - uv.x, uv.y));
        let mesh = cage.build().expect("valid cage");
        assert_eq!((mesh.vertex_count(), mesh.faces().len(), mesh.islands().1), (18, 12, 1));
        for face in mesh.faces() {
            let centre: Vec3 =
                face.corners().iter().map(|c| mesh.positions()[*c as usize]).sum::<Vec3>() / 4.0;
            let normal = understudy_core::normals::face_area_vector(face, mesh.positions());
            assert!(normal.dot(Vec3::new(centre.x, 0.0, centre.z)) > 0.0, "{face:?} looks inward");
        }
    }

    #[test]
    fn subdivision_keeps_symmetry_islands_and_partition_of_unity() {
        let mut cage = half_box();
        cage.mirror(1e-4, |uv| Vec2::new(1.0 - uv.x, uv.y));
        let (fine, stencil) = subdivide(&cage);
        assert_eq!(fine.faces.len(), 48);
        let ones = stencil.apply(&vec![1.0f32; cage.positions.len()]);
        assert!(ones.iter().all(|one| (one - 1.0).abs() < 1e-6));
        let again = stencil.apply(&cage.positions);
        assert!(again.iter().zip(&fine.positions).all(|(a, b)| a.distance(*b) < 1e-6));
        assert_eq!(fine.build().expect("valid cage").islands().1, 1);
        let mirrored = fine
            .positions
            .iter()
            .all(|p| fine.positions.iter().any(|q| q.distance(Vec3::new(-p.x, p.y, p.z)) < 1e-5));
        assert!(mirrored);
    }
}
