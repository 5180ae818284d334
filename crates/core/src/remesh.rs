//! The same surface with another topology: what a model looks like after somebody else has cut it up. Start
//! at [`remeshed`]; twins are transferred to such meshes, and tests want one that shares nothing but the
//! texture.

use crate::{Face, Mesh, MeshParts, Segments, Vec2, Vec3};
use std::collections::HashMap;

/// How far a vertex slides towards the middle of one of its faces.
const SLIDE: f32 = 0.25;

/// Triangles around the middle of every face, with every edge of the old mesh turned into one between two
/// middles, and with the old vertices slid aside: of the old edges only borders and texture seams are left,
/// and a vertex that lies on neither is where no vertex was. All new vertices lie on the old surface (quads
/// split from their first corner) and on the same place of the texture.
pub fn remeshed(mesh: &Mesh) -> Mesh {
    let old = Corners::new(mesh);
    let edges = old.edges();
    let middles: Vec<Spot> = (0..mesh.faces().len()).map(|face| old.middle(face)).collect();
    let mut out = MeshParts {
        positions: mesh.positions().to_vec(),
        segments: mesh.segments().clone(),
        ..MeshParts::default()
    };
    let slid: Vec<Option<Vec2>> = slide(&old, &edges, &middles, &mut out.positions);
    add_middles(mesh, &middles, &mut out.positions, &mut out.segments);

    let mut uvs = UvTable::default();
    let first = mesh.vertex_count() as u32;
    for (face, middle) in middles.iter().enumerate() {
        let count = mesh.faces()[face].corner_count();
        for place in 0..count {
            let next = (place + 1) % count;
            let corner = |place: usize| {
                let (vertex, uv) = (old.vertex(face, place), old.uv(face, place));
                (vertex, slid[vertex as usize].unwrap_or(uv))
            };
            let (a, b) = (corner(place), corner(next));
            let own = (first + face as u32, middle.uv);
            match old.across(&edges, face, place) {
                // The other face has made both triangles.
                Some(other) if other < face => {}
                Some(other) => {
                    let far = (first + other as u32, middles[other].uv);
                    push(&mut out, &mut uvs, [a, far, own]);
                    push(&mut out, &mut uvs, [far, b, own]);
                }
                None => push(&mut out, &mut uvs, [a, b, own]),
            }
        }
    }
    if mesh.has_uvs() {
        out.uvs = uvs.entries;
    } else {
        out.face_uvs.clear();
    }
    out.build().expect("corners are in range and finite where those of the old mesh were")
}

/// A point of the surface and of the texture.
struct Spot {
    position: Vec3,
    uv: Vec2,
}

/// The corners of a mesh, with and without texture.
struct Corners<'a> {
    mesh: &'a Mesh,
}

/// Faces and places at which an edge starts, by its vertices, the lower first.
type Edges = HashMap<(u32, u32), Vec<(usize, usize)>>;

impl<'a> Corners<'a> {
    fn new(mesh: &'a Mesh) -> Self {
        Self { mesh }
    }

    fn vertex(&self, face: usize, place: usize) -> u32 {
        self.mesh.faces()[face].corners()[place]
    }

    fn uv(&self, face: usize, place: usize) -> Vec2 {
        let index = |corners: &Face| corners.raw()[place] as usize;
        self.mesh.face_uvs().get(face).map_or(Vec2::ZERO, |corners| self.mesh.uvs()[index(corners)])
    }

    fn edges(&self) -> Edges {
        let mut out = Edges::new();
        for (index, face) in self.mesh.faces().iter().enumerate() {
            let corners = face.corners();
            for place in 0..corners.len() {
                let (a, b) = (corners[place], corners[(place + 1) % corners.len()]);
                out.entry((a.min(b), a.max(b))).or_default().push((index, place));
            }
        }
        out
    }

    /// The middle of a triangle, or of a quad's diagonal, which lies on the surface however bent it is.
    fn middle(&self, face: usize) -> Spot {
        let corners: &[usize] = match self.mesh.faces()[face].corner_count() {
            3 => &[0, 1, 2],
            _ => &[0, 2],
        };
        let share = (corners.len() as f32).recip();
        let position = |place: &usize| self.mesh.positions()[self.vertex(face, *place) as usize];
        Spot {
            position: corners.iter().map(position).sum::<Vec3>() * share,
            uv: corners.iter().map(|place| self.uv(face, *place)).sum::<Vec2>() * share,
        }
    }

    /// The one face on the other side of an edge, where surface and texture go on without a break.
    fn across(&self, edges: &Edges, face: usize, place: usize) -> Option<usize> {
        let count = self.mesh.faces()[face].corner_count();
        let (a, b) = (self.vertex(face, place), self.vertex(face, (place + 1) % count));
        let [one, two] = edges[&(a.min(b), a.max(b))][..] else { return None };
        let (other, start) = if one.0 == face { two } else { one };
        let end = (start + 1) % self.mesh.faces()[other].corner_count();
        let turned = self.vertex(other, start) == b && self.vertex(other, end) == a;
        let joined = self.uv(other, start) == self.uv(face, (place + 1) % count)
            && self.uv(other, end) == self.uv(face, place);
        (other != face && turned && joined).then_some(other)
    }
}

/// Slides vertices whose edges can all be crossed; gives their new texture coordinates.
fn slide(old: &Corners, edges: &Edges, middles: &[Spot], positions: &mut [Vec3]) -> Vec<Option<Vec2>> {
    let mut fixed = vec![false; positions.len()];
    let mut target: Vec<Option<(usize, Vec2)>> = vec![None; positions.len()];
    for (index, face) in old.mesh.faces().iter().enumerate() {
        let count = face.corner_count();
        for place in 0..count {
            let vertex = old.vertex(index, place);
            target[vertex as usize].get_or_insert((index, old.uv(index, place)));
            if old.across(edges, index, place).is_none() {
                fixed[vertex as usize] = true;
                fixed[old.vertex(index, (place + 1) % count) as usize] = true;
            }
        }
    }
    let one = |(vertex, target): (usize, Option<(usize, Vec2)>)| {
        let (face, uv) = target.filter(|_| !fixed[vertex])?;
        positions[vertex] = positions[vertex].lerp(middles[face].position, SLIDE);
        Some(uv.lerp(middles[face].uv, SLIDE))
    };
    target.into_iter().enumerate().map(one).collect()
}

/// A middle belongs where the face's first corner does.
fn add_middles(mesh: &Mesh, middles: &[Spot], positions: &mut Vec<Vec3>, segments: &mut Segments) {
    positions.extend(middles.iter().map(|middle| middle.position));
    for face in mesh.faces() {
        segments.of_vertex.push(mesh.segments().of_vertex[face.corners()[0] as usize]);
    }
}

/// Texture coordinates without repetitions at a vertex.
#[derive(Default)]
struct UvTable {
    entries: Vec<Vec2>,
    known: HashMap<(u32, [u32; 2]), u32>,
}

impl UvTable {
    fn index(&mut self, vertex: u32, uv: Vec2) -> u32 {
        let next = self.entries.len() as u32;
        let index = *self.known.entry((vertex, uv.to_array().map(f32::to_bits))).or_insert(next);
        if index == next {
            self.entries.push(uv);
        }
        index
    }
}

fn push(out: &mut MeshParts, uvs: &mut UvTable, corners: [(u32, Vec2); 3]) {
    let [a, b, c] = corners.map(|(vertex, _)| vertex);
    out.faces.push(Face::triangle(a, b, c));
    let [a, b, c] = corners.map(|(vertex, uv)| uvs.index(vertex, uv));
    out.face_uvs.push(Face::triangle(a, b, c));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bent sheet of quads and triangles with a texture seam along a column of vertices.
    fn sheet(with_uvs: bool) -> Mesh {
        const SIDE: u32 = 6;
        let mut parts = MeshParts::default();
        for index in 0..SIDE * SIDE {
            let (x, y) = ((index % SIDE) as f32, (index / SIDE) as f32);
            parts.positions.push(Vec3::new(x, y, 0.3 * x * y));
            parts.uvs.push(Vec2::new(x, y) / 20.0);
        }
        for row in 0..SIDE - 1 {
            for column in 0..SIDE - 1 {
                let a = row * SIDE + column;
                if column == 4 {
                    parts.faces.push(Face::triangle(a, a + 1, a + 1 + SIDE));
                    parts.faces.push(Face::triangle(a, a + 1 + SIDE, a + SIDE));
                } else {
                    parts.faces.push(Face::quad(a, a + 1, a + 1 + SIDE, a + SIDE));
                }
            }
        }
        parts.face_uvs = parts.faces.clone();
        // Right of the third column the texture lies elsewhere.
        let shifted = parts.uvs.iter().map(|uv| *uv + Vec2::new(0.5, 0.0)).collect::<Vec<_>>();
        let count = parts.uvs.len() as u32;
        parts.uvs.extend(shifted);
        for face in &mut parts.face_uvs {
            if face.corners().iter().all(|v| v % SIDE >= 3) {
                *face = face.map(|v| v + count);
            }
        }
        if !with_uvs {
            (parts.uvs, parts.face_uvs) = (vec![], vec![]);
        }
        parts.build().expect("a valid sheet")
    }

    fn area(mesh: &Mesh) -> f32 {
        let area = |face: &Face| -> f32 {
            let at = |corner: usize| mesh.uvs()[face.raw()[corner] as usize];
            let of = |[a, b, c]: [usize; 3]| (at(b) - at(a)).perp_dot(at(c) - at(a)) / 2.0;
            of([0, 1, 2]) + if face.corner_count() == 4 { of([0, 2, 3]) } else { 0.0 }
        };
        assert!(mesh.face_uvs().iter().all(|face| area(face) > 0.0), "a triangle is turned over");
        mesh.face_uvs().iter().map(area).sum()
    }

    #[test]
    fn the_surface_stays_and_the_topology_goes() {
        let old = sheet(true);
        let new = remeshed(&old);
        assert_eq!(new.vertex_count(), old.vertex_count() + old.faces().len());
        assert!(new.faces().iter().all(|face| face.corner_count() == 3));
        assert!((area(&new) - area(&old)).abs() < 1e-5, "the texture is covered once");
        // Every vertex lies on a triangle of the old mesh.
        let on_surface = |p: &Vec3| {
            old.triangles().iter().any(|corners| {
                let [a, b, c] = corners.map(|v| old.positions()[v as usize]);
                let normal = (b - a).cross(c - a);
                let whole = normal.length_squared();
                let of = |from: Vec3, to: Vec3| (to - from).cross(*p - from).dot(normal) / whole;
                (*p - a).dot(normal).abs() < 1e-4 && [of(a, b), of(b, c), of(c, a)].iter().all(|w| *w > -1e-4)
            })
        };
        assert!(new.positions().iter().all(on_surface));
        // 16 vertices have faces all around them, of which four lie on the seam.
        let kept = old.positions().iter().zip(new.positions()).filter(|(a, b)| a == b).count();
        assert_eq!(kept, 36 - 12);
        // An edge of the old mesh is left only on a border or the seam.
        let old_edges = Corners::new(&old).edges();
        let left = new.adjacency().edges().filter(|edge| old_edges.contains_key(edge)).count();
        assert_eq!(left, 4 * 5 + 5);
    }

    #[test]
    fn a_mesh_without_texture_is_cut_up_as_well() {
        let new = remeshed(&sheet(false));
        assert!(!new.has_uvs() && new.uvs().is_empty());
        assert_eq!(new.segments().of_vertex.len(), new.vertex_count());
        // Again and again: triangles among triangles.
        let again = remeshed(&new);
        assert_eq!(again.vertex_count(), new.vertex_count() + new.faces().len());
    }
}
