//! Catmull–Clark subdivision of cages. The result comes with its stencil, so that skin weights, masks
//! and anything else given on the coarse vertices can be carried to the fine ones.

use super::cage::{Cage, CageFace};
use std::collections::HashMap;
use std::ops::{Add, Mul};
use understudy_core::{Face, Vec2, Vec3};

/// Every fine vertex as a convex sum of coarse vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Stencil {
    rows: Vec<Vec<(u32, f32)>>,
}

impl Stencil {
    /// Rows of `(coarse vertex, weight)`; each sums to one.
    pub fn rows(&self) -> &[Vec<(u32, f32)>] {
        &self.rows
    }

    /// Carries values from coarse to fine vertices.
    ///
    /// # Panics
    /// When there are fewer values than coarse vertices.
    pub fn apply<T>(&self, coarse: &[T]) -> Vec<T>
    where
        T: Copy + Default + Add<Output = T> + Mul<f32, Output = T>,
    {
        let sum = |row: &Vec<(u32, f32)>| {
            row.iter().fold(T::default(), |sum, &(vertex, weight)| sum + coarse[vertex as usize] * weight)
        };
        self.rows.iter().map(sum).collect()
    }
}

/// One step of Catmull–Clark. Edges with one face are borders and follow the cubic B-spline rule, so
/// that open edges stay where they were drawn; so do edges with more than two faces, and edges where two
/// segments meet keep nothing special. UVs are split in the middle, linearly, so that seams stay put.
/// Vertex order of the result: old vertices, then edges (in order of first use), then faces.
pub fn subdivide(cage: &Cage) -> (Cage, Stencil) {
    let coarse = cage.positions.len();
    let mut edges: HashMap<(u32, u32), usize> = HashMap::new();
    let mut ends: Vec<(u32, u32)> = Vec::new();
    let mut edge_faces: Vec<Vec<usize>> = Vec::new();
    for (index, face) in cage.faces.iter().enumerate() {
        for (a, b) in edges_of(&face.face) {
            let key = (a.min(b), a.max(b));
            let edge = *edges.entry(key).or_insert_with(|| {
                ends.push(key);
                edge_faces.push(Vec::new());
                ends.len() - 1
            });
            edge_faces[edge].push(index);
        }
    }
    let face_row = |index: usize| -> Vec<(u32, f32)> {
        let corners = cage.faces[index].face.corners();
        corners.iter().map(|c| (*c, 1.0 / corners.len() as f32)).collect()
    };
    let edge_row = |edge: usize| -> Vec<(u32, f32)> {
        let (a, b) = ends[edge];
        let mut row = vec![(a, 0.5), (b, 0.5)];
        if let [first, second] = edge_faces[edge][..] {
            row.iter_mut().for_each(|entry| entry.1 = 0.25);
            for face in [first, second] {
                row.extend(face_row(face).into_iter().map(|(v, w)| (v, w * 0.25)));
            }
        }
        row
    };

    let mut touching_edges: Vec<Vec<usize>> = vec![Vec::new(); coarse];
    for (edge, &(a, b)) in ends.iter().enumerate() {
        touching_edges[a as usize].push(edge);
        touching_edges[b as usize].push(edge);
    }
    let mut touching_faces: Vec<Vec<usize>> = vec![Vec::new(); coarse];
    for (index, face) in cage.faces.iter().enumerate() {
        for &corner in face.face.corners() {
            touching_faces[corner as usize].push(index);
        }
    }
    let vertex_row = |vertex: usize| -> Vec<(u32, f32)> {
        let own = vertex as u32;
        let other = |edge: usize| if ends[edge].0 == own { ends[edge].1 } else { ends[edge].0 };
        let touching = &touching_edges[vertex];
        let borders: Vec<usize> = touching.iter().copied().filter(|e| edge_faces[*e].len() != 2).collect();
        if touching.is_empty() || (!borders.is_empty() && borders.len() != 2) {
            return vec![(own, 1.0)];
        }
        if let [first, second] = borders[..] {
            // The corner of a single face stays, or a flat card would lose its corners.
            if touching_faces[vertex].len() == 1 {
                return vec![(own, 1.0)];
            }
            return vec![(own, 0.75), (other(first), 0.125), (other(second), 0.125)];
        }
        let n = touching.len() as f32;
        let mut row = vec![(own, (n - 3.0) / n)];
        for &face in &touching_faces[vertex] {
            row.extend(face_row(face).into_iter().map(|(v, w)| (v, w / (n * n))));
        }
        for &edge in touching {
            row.extend([(own, 1.0 / (n * n)), (other(edge), 1.0 / (n * n))]);
        }
        row
    };

    let mut rows: Vec<Vec<(u32, f32)>> = (0..coarse).map(vertex_row).collect();
    rows.extend((0..ends.len()).map(edge_row));
    rows.extend((0..cage.faces.len()).map(face_row));
    rows.iter_mut().for_each(merge);
    let stencil = Stencil { rows };

    let mut fine =
        Cage { positions: stencil.apply::<Vec3>(&cage.positions), faces: Vec::new(), segments: Vec::new() };
    fine.segments.clone_from(&cage.segments);
    for (index, CageFace { face, uvs, segment }) in cage.faces.iter().enumerate() {
        let corners = face.corners();
        let count = corners.len();
        let middle_uv = uvs[..count].iter().sum::<Vec2>() / count as f32;
        let edge_vertex = |a: u32, b: u32| (coarse + edges[&(a.min(b), a.max(b))]) as u32;
        for place in 0..count {
            let (before, after) = ((place + count - 1) % count, (place + 1) % count);
            let quad = [
                corners[place],
                edge_vertex(corners[place], corners[after]),
                (coarse + ends.len() + index) as u32,
                edge_vertex(corners[before], corners[place]),
            ];
            let uv =
                [uvs[place], (uvs[place] + uvs[after]) * 0.5, middle_uv, (uvs[before] + uvs[place]) * 0.5];
            fine.quad(quad, uv, *segment);
        }
    }
    (fine, stencil)
}

fn edges_of(face: &Face) -> impl Iterator<Item = (u32, u32)> + '_ {
    let corners = face.corners();
    (0..corners.len()).map(move |i| (corners[i], corners[(i + 1) % corners.len()]))
}

/// Adds up repeated entries, ascending by vertex.
fn merge(row: &mut Vec<(u32, f32)>) {
    row.sort_by_key(|(vertex, _)| *vertex);
    row.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}
