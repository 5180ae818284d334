//! A polygon mesh of triangles and quads with per-corner UVs and named segments, checked once when
//! it is built. Start at [`MeshParts::build`]. Normals live in [`crate::normals`], operators in
//! [`crate::laplacian`].

use glam::{Vec2, Vec3};
use thiserror::Error;

/// What is wrong with the parts of a mesh.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MeshError {
    /// The mesh has no vertices or no faces.
    #[error("the mesh is empty ({vertices} vertices, {faces} faces)")]
    Empty {
        /// Number of vertices.
        vertices: usize,
        /// Number of faces.
        faces: usize,
    },
    /// A position is NaN or infinite.
    #[error("vertex {vertex} has a position that is not finite")]
    NonFinite {
        /// The vertex.
        vertex: usize,
    },
    /// A UV coordinate is NaN or infinite.
    #[error("texture coordinate {index} is not finite")]
    NonFiniteUv {
        /// Index into the UV table.
        index: usize,
    },
    /// A face names a vertex that does not exist.
    #[error("face {face} names vertex {index}, but there are {count}")]
    FaceIndex {
        /// The face.
        face: usize,
        /// What it names.
        index: u32,
        /// How many vertices exist.
        count: usize,
    },
    /// A face names the same vertex twice.
    #[error("face {face} names vertex {index} twice")]
    FaceRepeats {
        /// The face.
        face: usize,
        /// The vertex named twice.
        index: u32,
    },
    /// A corner names a UV that does not exist.
    #[error("face {face} names texture coordinate {index}, but there are {count}")]
    UvIndex {
        /// The face.
        face: usize,
        /// What it names.
        index: u32,
        /// How many UVs exist.
        count: usize,
    },
    /// UV corners are given for another number of faces.
    #[error("{got} faces have texture corners, but the mesh has {want} faces")]
    UvFaces {
        /// Faces with UV corners.
        got: usize,
        /// Faces.
        want: usize,
    },
    /// Segments do not cover the vertices.
    #[error("segments are given for {got} vertices, but the mesh has {want}")]
    SegmentCount {
        /// Vertices with a segment.
        got: usize,
        /// Vertices.
        want: usize,
    },
    /// A vertex names a segment that does not exist.
    #[error("vertex {vertex} is in segment {segment}, but there are {count}")]
    SegmentIndex {
        /// The vertex.
        vertex: usize,
        /// The segment it names.
        segment: u32,
        /// How many segments exist.
        count: usize,
    },
    /// Positions for another number of vertices.
    #[error("{got} positions for a mesh of {want} vertices")]
    PositionCount {
        /// Given.
        got: usize,
        /// Needed.
        want: usize,
    },
}

/// A triangle or a quad: three or four vertex indices, counter-clockwise seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Face([u32; 4]);

impl Face {
    /// The value that stands in the fourth corner of a triangle.
    pub const NONE: u32 = u32::MAX;

    /// A triangle.
    pub fn triangle(a: u32, b: u32, c: u32) -> Self {
        Self([a, b, c, Self::NONE])
    }

    /// A quad.
    pub fn quad(a: u32, b: u32, c: u32, d: u32) -> Self {
        Self([a, b, c, d])
    }

    /// Three or four corners, in order.
    pub fn corners(&self) -> &[u32] {
        &self.0[..self.corner_count()]
    }

    /// 3 or 4.
    pub fn corner_count(&self) -> usize {
        if self.0[3] == Self::NONE { 3 } else { 4 }
    }

    /// The four stored numbers; the last is [`Face::NONE`] for a triangle.
    pub fn raw(&self) -> [u32; 4] {
        self.0
    }

    /// A face with every corner replaced by `map(corner)`.
    pub fn map(&self, map: impl Fn(u32) -> u32) -> Self {
        let mut out = self.0;
        for corner in &mut out[..self.corner_count()] {
            *corner = map(*corner);
        }
        Self(out)
    }

    /// One or two triangles that fan out from the first corner.
    pub fn triangles(&self) -> impl Iterator<Item = [u32; 3]> + use<> {
        let [a, b, c, d] = self.0;
        let second = (d != Self::NONE).then_some([a, c, d]);
        std::iter::once([a, b, c]).chain(second)
    }
}

/// Named groups that partition the vertices: skin, gums, each tooth, a buckle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments {
    /// One name a segment.
    pub names: Vec<String>,
    /// For every vertex the index of its segment.
    pub of_vertex: Vec<u32>,
}

impl Segments {
    /// Number of segments.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no segment.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The vertices of one segment, ascending.
    pub fn vertices(&self, segment: usize) -> Vec<u32> {
        let wanted = segment as u32;
        (0u32..).zip(&self.of_vertex).filter(|(_, s)| **s == wanted).map(|(v, _)| v).collect()
    }

    /// The segment of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }
}

/// The parts of a mesh before they are checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeshParts {
    /// Rest positions in cm.
    pub positions: Vec<Vec3>,
    /// Triangles and quads.
    pub faces: Vec<Face>,
    /// The table of texture coordinates; empty when there are none.
    pub uvs: Vec<Vec2>,
    /// For every face the UV index of each corner; empty when there are no UVs.
    pub face_uvs: Vec<Face>,
    /// Named groups; left empty, the whole mesh becomes one segment `all`.
    pub segments: Segments,
}

impl MeshParts {
    /// Checks everything once; a [`Mesh`] never has to be checked again.
    pub fn build(mut self) -> Result<Mesh, MeshError> {
        let vertices = self.positions.len();
        if vertices == 0 || self.faces.is_empty() {
            return Err(MeshError::Empty { vertices, faces: self.faces.len() });
        }
        if let Some(vertex) = self.positions.iter().position(|p| !p.is_finite()) {
            return Err(MeshError::NonFinite { vertex });
        }
        if let Some(index) = self.uvs.iter().position(|uv| !uv.is_finite()) {
            return Err(MeshError::NonFiniteUv { index });
        }
        for (face, corners) in self.faces.iter().enumerate() {
            let corners = corners.corners();
            for (place, &index) in corners.iter().enumerate() {
                if index as usize >= vertices {
                    return Err(MeshError::FaceIndex { face, index, count: vertices });
                }
                if corners[..place].contains(&index) {
                    return Err(MeshError::FaceRepeats { face, index });
                }
            }
        }
        if !self.face_uvs.is_empty() {
            if self.face_uvs.len() != self.faces.len() {
                return Err(MeshError::UvFaces { got: self.face_uvs.len(), want: self.faces.len() });
            }
            for (face, (corners, shape)) in self.face_uvs.iter().zip(&self.faces).enumerate() {
                for &index in &corners.raw()[..shape.corner_count()] {
                    if index as usize >= self.uvs.len() {
                        return Err(MeshError::UvIndex { face, index, count: self.uvs.len() });
                    }
                }
            }
        }
        if self.segments.is_empty() {
            self.segments = Segments { names: vec!["all".into()], of_vertex: vec![0; vertices] };
        }
        if self.segments.of_vertex.len() != vertices {
            return Err(MeshError::SegmentCount { got: self.segments.of_vertex.len(), want: vertices });
        }
        let count = self.segments.len();
        for (vertex, &segment) in self.segments.of_vertex.iter().enumerate() {
            if segment as usize >= count {
                return Err(MeshError::SegmentIndex { vertex, segment, count });
            }
        }
        Ok(Mesh { parts: self })
    }
}

/// A checked mesh: every index is in range, every number finite, every vertex in one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    parts: MeshParts,
}

impl Mesh {
    /// Rest positions, `[V]` cm.
    pub fn positions(&self) -> &[Vec3] {
        &self.parts.positions
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.parts.positions.len()
    }

    /// Triangles and quads.
    pub fn faces(&self) -> &[Face] {
        &self.parts.faces
    }

    /// The table of texture coordinates.
    pub fn uvs(&self) -> &[Vec2] {
        &self.parts.uvs
    }

    /// UV indices a corner, one entry a face; empty without UVs.
    pub fn face_uvs(&self) -> &[Face] {
        &self.parts.face_uvs
    }

    /// Whether the corners have texture coordinates.
    pub fn has_uvs(&self) -> bool {
        !self.parts.face_uvs.is_empty()
    }

    /// Named groups that partition the vertices.
    pub fn segments(&self) -> &Segments {
        &self.parts.segments
    }

    /// Takes the mesh apart again, to change it and check it anew.
    pub fn into_parts(self) -> MeshParts {
        self.parts
    }

    /// The same topology with other positions.
    pub fn with_positions(&self, positions: &[Vec3]) -> Result<Mesh, MeshError> {
        if positions.len() != self.vertex_count() {
            return Err(MeshError::PositionCount { got: positions.len(), want: self.vertex_count() });
        }
        if let Some(vertex) = positions.iter().position(|p| !p.is_finite()) {
            return Err(MeshError::NonFinite { vertex });
        }
        let mut parts = self.parts.clone();
        parts.positions.copy_from_slice(positions);
        Ok(Mesh { parts })
    }

    /// All faces as triangles; quads are split from their first corner.
    pub fn triangles(&self) -> Vec<[u32; 3]> {
        self.parts.faces.iter().flat_map(Face::triangles).collect()
    }

    /// Lower and upper corner of the bounding box, cm.
    pub fn bounds(&self) -> (Vec3, Vec3) {
        let first = self.parts.positions[0];
        self.parts.positions.iter().fold((first, first), |(low, high), &p| (low.min(p), high.max(p)))
    }

    /// One UV a vertex: that of its first corner, `(0, 0)` for a vertex without a face.
    /// `None` without UVs. At a seam, where corners disagree, the first face wins.
    pub fn vertex_uvs(&self) -> Option<Vec<Vec2>> {
        if !self.has_uvs() {
            return None;
        }
        let mut out = vec![Vec2::ZERO; self.vertex_count()];
        let mut seen = vec![false; self.vertex_count()];
        for (face, corners) in self.parts.faces.iter().zip(&self.parts.face_uvs) {
            for (&vertex, &uv) in face.corners().iter().zip(&corners.raw()) {
                if !std::mem::replace(&mut seen[vertex as usize], true) {
                    out[vertex as usize] = self.parts.uvs[uv as usize];
                }
            }
        }
        Some(out)
    }

    /// A hash of everything but the positions (vertex count, faces, UV corners): two meshes with the
    /// same hash can exchange vertex arrays. FNV-1a, 64 bits, stable across versions and machines.
    pub fn topology_hash(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.write(&(self.vertex_count() as u64).to_le_bytes());
        for face in self.parts.faces.iter().chain(&self.parts.face_uvs) {
            for corner in face.raw() {
                hash.write(&corner.to_le_bytes());
            }
        }
        hash.finish()
    }

    /// Who is next to whom.
    pub fn adjacency(&self) -> Adjacency {
        Adjacency::from_faces(self.vertex_count(), &self.parts.faces)
    }

    /// For every vertex the number of its connected island, and how many islands there are.
    /// Islands are numbered by their lowest vertex.
    pub fn islands(&self) -> (Vec<u32>, usize) {
        let adjacency = self.adjacency();
        let mut island = vec![u32::MAX; self.vertex_count()];
        let mut count = 0;
        let mut stack = Vec::new();
        for start in 0..self.vertex_count() {
            if island[start] != u32::MAX {
                continue;
            }
            island[start] = count;
            stack.push(start as u32);
            while let Some(vertex) = stack.pop() {
                for &next in adjacency.neighbours(vertex as usize) {
                    if island[next as usize] == u32::MAX {
                        island[next as usize] = count;
                        stack.push(next);
                    }
                }
            }
            count += 1;
        }
        (island, count as usize)
    }
}

/// Edges of a mesh in compressed rows: the vertices that share an edge with a vertex, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjacency {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Adjacency {
    /// Collects the edges of faces; diagonals of quads are no edges.
    pub fn from_faces(vertex_count: usize, faces: &[Face]) -> Self {
        let mut pairs = Vec::with_capacity(faces.len() * 8);
        for face in faces {
            let corners = face.corners();
            for (place, &a) in corners.iter().enumerate() {
                let b = corners[(place + 1) % corners.len()];
                pairs.push((a, b));
                pairs.push((b, a));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut offsets = vec![0u32; vertex_count + 1];
        for &(a, _) in &pairs {
            offsets[a as usize + 1] += 1;
        }
        for vertex in 0..vertex_count {
            offsets[vertex + 1] += offsets[vertex];
        }
        Self { offsets, neighbours: pairs.into_iter().map(|(_, b)| b).collect() }
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The vertices that share an edge with `vertex`, ascending.
    pub fn neighbours(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// Every edge once, with `a < b`, ascending.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.vertex_count())
            .flat_map(|a| self.neighbours(a).iter().map(move |&b| (a as u32, b)))
            .filter(|(a, b)| a < b)
    }
}

/// FNV-1a, 64 bits: small, stable, good enough to tell topologies and chunks of a dataset apart.
#[derive(Debug, Clone)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Takes bytes in.
    pub fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of everything written so far.
    pub fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_islands() -> MeshParts {
        MeshParts {
            positions: (0..7).map(|i| Vec3::new(i as f32, (i % 2) as f32, 0.0)).collect(),
            faces: vec![Face::quad(0, 1, 2, 3), Face::triangle(4, 5, 6)],
            ..MeshParts::default()
        }
    }

    #[test]
    fn islands_and_edges_of_a_quad_and_a_triangle() {
        let mesh = two_islands().build().expect("parts are valid");
        assert_eq!(mesh.islands(), (vec![0, 0, 0, 0, 1, 1, 1], 2));
        assert_eq!(mesh.adjacency().edges().count(), 4 + 3);
        assert_eq!(mesh.triangles().len(), 3);
    }

    #[test]
    fn each_bad_part_is_named() {
        let mut parts = two_islands();
        parts.faces[1] = Face::triangle(4, 5, 9);
        assert_eq!(parts.build(), Err(MeshError::FaceIndex { face: 1, index: 9, count: 7 }));
        let mut parts = two_islands();
        parts.faces[0] = Face::quad(0, 1, 1, 3);
        assert_eq!(parts.build(), Err(MeshError::FaceRepeats { face: 0, index: 1 }));
        let mut parts = two_islands();
        parts.positions[3].y = f32::NAN;
        assert_eq!(parts.build(), Err(MeshError::NonFinite { vertex: 3 }));
        assert!(matches!(MeshParts::default().build(), Err(MeshError::Empty { .. })));
    }

    #[test]
    fn topology_hash_ignores_positions_and_sees_faces() {
        let mesh = two_islands().build().expect("parts are valid");
        let moved = mesh.with_positions(&[Vec3::ONE; 7]).expect("same count");
        assert_eq!(mesh.topology_hash(), moved.topology_hash());
        let mut parts = two_islands();
        parts.faces[0] = Face::quad(1, 2, 3, 0);
        assert_ne!(mesh.topology_hash(), parts.build().expect("parts are valid").topology_hash());
    }
}
