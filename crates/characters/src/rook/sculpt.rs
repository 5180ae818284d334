//! The half cage under construction: every vertex is drawn together with the bones that it follows, so
//! that weights, masks and shape stay in one place. [`Sculpt::finish`] mirrors it and subdivides twice,
//! carrying everything along.

use super::bones::other_side;
use crate::modeling::{Cage, CageFace, Stencil, subdivide};
use std::collections::HashMap;
use understudy_core::{Skeleton, Vec2, Vec3};

/// Bones and weights of one vertex.
pub type Row = Vec<(u16, f32)>;

/// A box of the texture; `at(0..1, 0..1)` is inside.
#[derive(Debug, Clone, Copy)]
pub struct UvBox(pub f32, pub f32, pub f32, pub f32);

impl UvBox {
    /// A place in the box.
    pub fn at(&self, u: f32, v: f32) -> Vec2 {
        Vec2::new(self.0 + (self.2 - self.0) * u, self.1 + (self.3 - self.1) * v)
    }
}

/// Masks that colours and deformers read, carried from the cage to the fine mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mask {
    /// One on the borders of the coat and the mantle.
    Trim,
    /// One on the free part of the coat's skirt.
    Skirt,
    /// Column of the skirt, front to back, 0 to 1.
    Column,
    /// Row of the skirt, belt to hem, 0 to 1.
    Row,
}

const MASKS: usize = 4;

/// The half cage.
pub struct Sculpt<'a> {
    skeleton: &'a Skeleton,
    /// Positions, faces, segments.
    pub cage: Cage,
    rows: Vec<Row>,
    masks: [Vec<f32>; MASKS],
}

/// The mirrored and subdivided body.
pub struct FineBody {
    /// The fine mesh.
    pub cage: Cage,
    /// Weights a fine vertex.
    pub rows: Vec<Row>,
    masks: [Vec<f32>; MASKS],
}

impl FineBody {
    /// A mask a vertex, 0 to 1.
    pub fn mask(&self, mask: Mask) -> &[f32] {
        &self.masks[mask as usize]
    }
}

impl<'a> Sculpt<'a> {
    /// An empty half.
    pub fn new(skeleton: &'a Skeleton) -> Self {
        Self { skeleton, cage: Cage::default(), rows: Vec::new(), masks: Default::default() }
    }

    /// Weights by bone name; they need not sum to one.
    ///
    /// # Panics
    /// When a bone is not part of Rook: the names are literals of this module.
    pub fn row(&self, weights: &[(&str, f32)]) -> Row {
        let mut row = Row::new();
        for &(name, weight) in weights {
            let bone = self.skeleton.find(name).unwrap_or_else(|| panic!("Rook has no bone '{name}'"));
            row.push((bone as u16, weight));
        }
        normalised(row)
    }

    /// Weights between the two bones of `knots` around `place`; knots ascend.
    pub fn between(&self, knots: &[(f32, &str)], place: f32) -> Row {
        let after = knots.partition_point(|knot| knot.0 <= place);
        if after == 0 {
            return self.row(&[(knots[0].1, 1.0)]);
        }
        if after == knots.len() {
            return self.row(&[(knots[after - 1].1, 1.0)]);
        }
        let (a, b) = (knots[after - 1], knots[after]);
        let t = (place - a.0) / (b.0 - a.0);
        self.row(&[(a.1, 1.0 - t), (b.1, t)])
    }

    /// Adds a vertex with its weights.
    pub fn vertex(&mut self, position: Vec3, row: Row) -> u32 {
        self.rows.push(row);
        self.masks.iter_mut().for_each(|mask| mask.push(0.0));
        self.cage.vertex(position)
    }

    /// Sets a mask of a vertex.
    pub fn mark(&mut self, vertex: u32, mask: Mask, value: f32) {
        self.masks[mask as usize][vertex as usize] = value;
    }

    /// Joins two rows of equal length by quads.
    pub fn band(
        &mut self,
        lower: &[u32],
        upper: &[u32],
        closed: bool,
        segment: &str,
        uv: UvBox,
        rows: (f32, f32),
    ) {
        let count = lower.len();
        let columns = if closed { count } else { count - 1 };
        let segment = self.cage.segment(segment);
        for column in 0..columns {
            let next = (column + 1) % count;
            let (u, w) = (column as f32 / columns as f32, (column + 1) as f32 / columns as f32);
            let corners = [lower[column], lower[next], upper[next], upper[column]];
            let uvs = [uv.at(u, rows.0), uv.at(w, rows.0), uv.at(w, rows.1), uv.at(u, rows.1)];
            self.cage.quad(corners, uvs, segment);
        }
    }

    /// Closes a ring, or a half ring, by triangles to one point.
    pub fn fan(&mut self, ring: &[u32], tip: u32, closed: bool, segment: &str, uv: UvBox, rows: (f32, f32)) {
        let count = ring.len();
        let columns = if closed { count } else { count - 1 };
        let segment = self.cage.segment(segment);
        for column in 0..columns {
            let next = (column + 1) % count;
            let (u, w) = (column as f32 / columns as f32, (column + 1) as f32 / columns as f32);
            let uvs = [uv.at(u, rows.0), uv.at(w, rows.0), uv.at((u + w) / 2.0, rows.1)];
            self.cage.triangle([ring[column], ring[next], tip], uvs, segment);
        }
    }

    /// Turns all faces outward, mirrors the half and subdivides it twice.
    pub fn finish(mut self) -> FineBody {
        orient(&mut self.cage);
        let image = self.cage.mirror(1e-3, |uv| Vec2::new(1.0 - uv.x, uv.y));
        let count = self.cage.positions.len();
        let names: Vec<String> = self.skeleton.bones().iter().map(|bone| bone.name.clone()).collect();
        let other: Vec<u16> = names
            .iter()
            .map(|name| self.skeleton.find(&other_side(name)).expect("every bone has a mirror image") as u16)
            .collect();
        let half = self.rows.len();
        self.rows.resize(count, Row::new());
        self.masks.iter_mut().for_each(|mask| mask.resize(count, 0.0));
        for vertex in 0..half {
            let mirror: Row = self.rows[vertex].iter().map(|&(bone, w)| (other[bone as usize], w)).collect();
            let to = image[vertex] as usize;
            if to == vertex {
                // On the middle both sides pull equally.
                self.rows[vertex].extend(mirror);
                self.rows[vertex] = normalised(std::mem::take(&mut self.rows[vertex]));
            } else {
                self.rows[to] = mirror;
                for mask in &mut self.masks {
                    mask[to] = mask[vertex];
                }
            }
        }
        let (middle, first) = subdivide(&self.cage);
        let (cage, second) = subdivide(&middle);
        let rows = carry(&second, &carry(&first, &self.rows));
        let masks = self.masks.map(|mask| second.apply(&first.apply(&mask)));
        FineBody { cage, rows, masks }
    }
}

/// Adds up repeated bones, drops what is negligible and makes the sum one.
pub fn normalised(mut row: Row) -> Row {
    row.sort_by_key(|(bone, _)| *bone);
    row.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    let sum: f32 = row.iter().map(|(_, weight)| weight).sum();
    row.iter_mut().for_each(|(_, weight)| *weight /= sum);
    row.retain(|(_, weight)| *weight > 1e-4);
    row
}

/// Mixes two rows.
pub fn mixed(a: &Row, b: &Row, share: f32) -> Row {
    let scaled = |row: &Row, by: f32| row.iter().map(|&(bone, weight)| (bone, weight * by)).collect::<Row>();
    let mut row = scaled(a, 1.0 - share);
    row.extend(scaled(b, share));
    normalised(row)
}

fn carry(stencil: &Stencil, rows: &[Row]) -> Vec<Row> {
    let mix = |entries: &Vec<(u32, f32)>| {
        let all = entries.iter().flat_map(|&(vertex, weight)| {
            rows[vertex as usize].iter().map(move |&(bone, share)| (bone, share * weight))
        });
        normalised(all.collect())
    };
    stencil.rows().iter().map(mix).collect()
}

/// Walks over shared edges and turns every face the way of its neighbour, then all of them outward:
/// the face farthest from the middle plane must look away from it.
fn orient(cage: &mut Cage) {
    let mut by_edge: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    let edges = |face: &CageFace| -> Vec<(u32, u32)> {
        let corners = face.face.corners();
        (0..corners.len()).map(|i| (corners[i], corners[(i + 1) % corners.len()])).collect()
    };
    for (index, face) in cage.faces.iter().enumerate() {
        for (a, b) in edges(face) {
            by_edge.entry((a.min(b), a.max(b))).or_default().push(index);
        }
    }
    let middle = |face: &CageFace, cage: &Cage| {
        let corners = face.face.corners();
        corners.iter().map(|c| cage.positions[*c as usize]).sum::<Vec3>() / corners.len() as f32
    };
    let outermost = (0..cage.faces.len())
        .max_by(|a, b| {
            let x = |face: usize| middle(&cage.faces[face], cage).x;
            x(*a).total_cmp(&x(*b))
        })
        .expect("the cage has faces");
    let face = &cage.faces[outermost];
    let area = understudy_core::normals::face_area_vector(&face.face, &cage.positions);
    if area.x < 0.0 {
        flip(&mut cage.faces[outermost]);
    }
    let mut seen = vec![false; cage.faces.len()];
    seen[outermost] = true;
    let mut queue = vec![outermost];
    while let Some(current) = queue.pop() {
        for (a, b) in edges(&cage.faces[current]) {
            for &neighbour in &by_edge[&(a.min(b), a.max(b))] {
                if seen[neighbour] {
                    continue;
                }
                seen[neighbour] = true;
                // A neighbour that runs along the edge the same way looks the other way.
                if edges(&cage.faces[neighbour]).contains(&(a, b)) {
                    flip(&mut cage.faces[neighbour]);
                }
                queue.push(neighbour);
            }
        }
    }
}

fn flip(face: &mut CageFace) {
    let corners = face.face.corners().to_vec();
    let count = corners.len();
    let uvs = face.uvs;
    let turned: Vec<u32> = corners.iter().rev().copied().collect();
    for place in 0..count {
        face.uvs[place] = uvs[count - 1 - place];
    }
    face.face = match turned[..] {
        [a, b, c] => understudy_core::Face::triangle(a, b, c),
        [a, b, c, d] => understudy_core::Face::quad(a, b, c, d),
        _ => face.face,
    };
}
