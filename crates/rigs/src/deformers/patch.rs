//! A part of a mesh that a deformer looks at closely: normals of a few vertices without touching the
//! whole mesh, and distances along edges for masks that follow the surface.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use understudy_core::normals::face_area_vector;
use understudy_core::{Adjacency, Face, Mesh, Vec3};

/// Normals of some vertices of a posed mesh.
#[derive(Debug, Clone, Default)]
pub(crate) struct PatchNormals {
    /// Vertices whose normals are wanted, ascending.
    pub vertices: Vec<u32>,
    /// Faces that touch one of them.
    faces: Vec<Face>,
    /// For every corner of those faces the place in `vertices`, or `u32::MAX`.
    slots: Vec<[u32; 4]>,
}

impl PatchNormals {
    pub fn new(mesh: &Mesh, mut vertices: Vec<u32>) -> Self {
        vertices.sort_unstable();
        vertices.dedup();
        let slot = |vertex: &u32| vertices.binary_search(vertex).map_or(u32::MAX, |place| place as u32);
        let mut faces = Vec::new();
        let mut slots = Vec::new();
        for face in mesh.faces() {
            let mut places = [u32::MAX; 4];
            for (place, corner) in places.iter_mut().zip(face.corners()) {
                *place = slot(corner);
            }
            if places.iter().any(|place| *place != u32::MAX) {
                faces.push(*face);
                slots.push(places);
            }
        }
        Self { vertices, faces, slots }
    }

    /// The place of a vertex among [`Self::vertices`].
    pub fn slot(&self, vertex: u32) -> Option<u32> {
        self.vertices.binary_search(&vertex).ok().map(|place| place as u32)
    }

    /// Unit area-weighted normals in the order of [`Self::vertices`]; near zero where faces cancel.
    pub fn compute(&self, positions: &[Vec3], out: &mut Vec<Vec3>) {
        out.clear();
        out.resize(self.vertices.len(), Vec3::ZERO);
        for (face, slots) in self.faces.iter().zip(&self.slots) {
            let area = face_area_vector(face, positions);
            for slot in slots {
                if *slot != u32::MAX {
                    out[*slot as usize] += area;
                }
            }
        }
        for normal in out {
            *normal = soft_normalize(*normal, 1e-6);
        }
    }
}

/// `v / √(|v|² + ε²)`: a unit vector that shrinks to zero, without a jump, where `v` has no direction.
pub(crate) fn soft_normalize(vector: Vec3, epsilon: f32) -> Vec3 {
    vector / (vector.length_squared() + epsilon * epsilon).sqrt()
}

#[derive(PartialEq)]
struct Visit {
    distance: f32,
    vertex: u32,
}

impl Eq for Visit {}

impl PartialOrd for Visit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Visit {
    /// Nearest first in a max-heap; ties by vertex, so that the order never changes.
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.vertex.cmp(&self.vertex))
    }
}

/// Shortest way along edges from a set of vertices to every vertex within `reach` cm, `[V]`;
/// infinite beyond (Dijkstra).
pub fn distances_along_edges(
    adjacency: &Adjacency,
    positions: &[Vec3],
    sources: &[u32],
    reach: f32,
) -> Vec<f32> {
    let mut distance = vec![f32::INFINITY; positions.len()];
    let mut heap = BinaryHeap::new();
    for &vertex in sources {
        distance[vertex as usize] = 0.0;
        heap.push(Visit { distance: 0.0, vertex });
    }
    while let Some(Visit { distance: so_far, vertex }) = heap.pop() {
        if so_far > distance[vertex as usize] {
            continue;
        }
        for &next in adjacency.neighbours(vertex as usize) {
            let step = (positions[next as usize] - positions[vertex as usize]).length();
            let longer = so_far + step;
            if longer <= reach && longer < distance[next as usize] {
                distance[next as usize] = longer;
                heap.push(Visit { distance: longer, vertex: next });
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::super::test_support::tube;
    use super::*;
    use understudy_core::normals::vertex_normals;

    #[test]
    fn a_patch_has_the_normals_of_the_mesh() {
        let mesh = tube();
        let patch = PatchNormals::new(&mesh, vec![40, 3, 41, 40]);
        let (mut found, all) = (Vec::new(), vertex_normals(mesh.faces(), mesh.positions()));
        patch.compute(mesh.positions(), &mut found);
        assert_eq!(patch.vertices, [3, 40, 41]);
        for (vertex, normal) in patch.vertices.iter().zip(&found) {
            assert!((all[*vertex as usize] - *normal).length() < 1e-5);
        }
        assert_eq!((patch.slot(41), patch.slot(5)), (Some(2), None));
    }

    #[test]
    fn distances_run_along_the_tube() {
        let mesh = tube();
        let distance = distances_along_edges(&mesh.adjacency(), mesh.positions(), &[0], 10.5);
        assert!((distance[16 * 5] - 10.0).abs() < 1e-4);
        assert_eq!(distance[16 * 6], f32::INFINITY);
    }
}
