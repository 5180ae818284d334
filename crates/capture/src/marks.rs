//! Points of a face that a picture shows: the 68 landmarks, the outer contour of the lips, which stays on the mesh, and the
//! inner one, which is a silhouette and wanders over it (section 6.3), and the pupils.

use crate::Camera;
use thiserror::Error;
use understudy_core::{DVec3, Face, Mesh, Vec3};

/// What is wrong with marks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MarkError {
    /// A mark on a vertex that does not exist.
    #[error("{mark} is vertex {vertex}, the mesh has {count}")]
    Vertex {
        /// Which mark.
        mark: String,
        /// Named.
        vertex: u32,
        /// How many exist.
        count: usize,
    },
}

/// A point that is a mean of up to four vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarkPoint {
    /// Vertices; those without a share repeat the first.
    pub vertices: [u32; 4],
    /// Shares, which sum to one.
    pub shares: [f32; 4],
}

impl MarkPoint {
    /// On a vertex.
    pub fn vertex(vertex: u32) -> Self {
        Self { vertices: [vertex; 4], shares: [1.0, 0.0, 0.0, 0.0] }
    }

    /// Where it is, cm.
    pub fn place(&self, positions: &[Vec3]) -> DVec3 {
        let point =
            |(vertex, share): (&u32, &f32)| positions[*vertex as usize].as_dvec3() * f64::from(*share);
        self.vertices.iter().zip(&self.shares).map(point).sum()
    }
}

/// Columns of vertices that run over one lip, from the skin into the mouth.
#[derive(Debug, Clone, PartialEq, Default)]
struct Lip {
    /// From the character's right corner to the left one.
    strips: Vec<Vec<u32>>,
}

/// The marks of a face.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceMarks {
    /// The 68 landmarks.
    pub points: [u32; 68],
    /// Fixed points along the border between lips and skin.
    pub outer_lips: Vec<u32>,
    /// Middles of the pupils: the character's left, right.
    pub pupils: Option<[u32; 2]>,
    lips: [Lip; 2],
    /// For every vertex of a strip the faces around it, `(vertex, faces)` ascending.
    rings: Vec<(u32, Vec<Face>)>,
}

/// Points on each lip's silhouette.
const INNER_POINTS: usize = 15;

/// Rows from the mouth's inside that are followed outwards.
const LONGEST_STRIP: usize = 24;

impl FaceMarks {
    /// Finds the lips in the segment `skin` of a mesh, which must have a hole where the mouth is; without one there are no
    /// contours.
    pub fn new(
        mesh: &Mesh,
        points: [u32; 68],
        skin: Option<u32>,
        pupils: Option<[u32; 2]>,
    ) -> Result<Self, MarkError> {
        let count = mesh.vertex_count();
        let named = points.iter().enumerate().map(|(at, vertex)| (format!("landmark {at}"), *vertex));
        let named = named.chain(pupils.iter().flatten().map(|vertex| ("a pupil".to_owned(), *vertex)));
        for (mark, vertex) in named {
            if vertex as usize >= count {
                return Err(MarkError::Vertex { mark, vertex, count });
            }
        }
        let mut marks = Self {
            points,
            outer_lips: Vec::new(),
            pupils,
            lips: [Lip::default(), Lip::default()],
            rings: Vec::new(),
        };
        if let Some(skin) = skin {
            marks.find_lips(mesh, skin);
        }
        Ok(marks)
    }

    /// Points that stay on the mesh: 60 landmarks (the inner lips are silhouettes) and the outer contour of the lips.
    pub fn fixed(&self) -> Vec<MarkPoint> {
        self.points[..60].iter().chain(&self.outer_lips).map(|vertex| MarkPoint::vertex(*vertex)).collect()
    }

    /// The inner contour of a pose as a camera sees it: on every strip the edge where the surface turns away, joined to a
    /// line along each lip, and points spread evenly along the line by its length in space.
    pub fn inner_lips(&self, positions: &[Vec3], camera: &Camera) -> Vec<MarkPoint> {
        let mut out = Vec::new();
        for lip in &self.lips {
            let crossings: Vec<(u32, u32, f32)> =
                lip.strips.iter().map(|strip| self.crossing(strip, positions, camera)).collect();
            let place = |(a, b, t): &(u32, u32, f32)| positions[*a as usize].lerp(positions[*b as usize], *t);
            let places: Vec<Vec3> = crossings.iter().map(place).collect();
            let mut length = vec![0.0f32];
            for pair in places.windows(2) {
                length.push(length[length.len() - 1] + (pair[1] - pair[0]).length());
            }
            let Some(total) = length.last().copied().filter(|total| *total > 0.0 && places.len() > 1) else {
                continue;
            };
            let mut piece = 0;
            for index in 0..INNER_POINTS {
                let wanted = total * (index as f32 + 0.5) / INNER_POINTS as f32;
                while piece + 2 < length.len() && length[piece + 1] < wanted {
                    piece += 1;
                }
                let step = (length[piece + 1] - length[piece]).max(1e-9);
                let share = ((wanted - length[piece]) / step).clamp(0.0, 1.0);
                let ((a, b, s), (c, d, t)) = (crossings[piece], crossings[piece + 1]);
                let (left, right) = (1.0 - share, share);
                out.push(MarkPoint {
                    vertices: [a, b, c, d],
                    shares: [left * (1.0 - s), left * s, right * (1.0 - t), right * t],
                });
            }
        }
        out
    }

    /// All vertices that marks and silhouettes need.
    pub fn vertices(&self) -> Vec<u32> {
        let strips = self.lips.iter().flat_map(|lip| lip.strips.iter().flatten());
        let mut all: Vec<u32> = self.points.iter().chain(&self.outer_lips).chain(strips).copied().collect();
        all.extend(self.pupils.iter().flatten());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Where a strip's surface turns away from the camera: two vertices and how far between them.
    fn crossing(&self, strip: &[u32], positions: &[Vec3], camera: &Camera) -> (u32, u32, f32) {
        let eye = camera.position.as_vec3();
        let facing = |vertex: u32| {
            let ring = self.rings.binary_search_by_key(&vertex, |(of, _)| *of);
            let faces = ring.map_or(&[][..], |at| &self.rings[at].1);
            let normal: Vec3 =
                faces.iter().map(|face| understudy_core::normals::face_area_vector(face, positions)).sum();
            normal.normalize_or_zero().dot((eye - positions[vertex as usize]).normalize_or_zero())
        };
        let mut before = facing(strip[0]);
        for pair in strip.windows(2) {
            let here = facing(pair[1]);
            if before > 0.0 && here <= 0.0 {
                return (pair[0], pair[1], before / (before - here));
            }
            before = here;
        }
        let last = strip[strip.len() - 1];
        (last, last, 0.0)
    }

    fn find_lips(&mut self, mesh: &Mesh, skin: u32) {
        let of = &mesh.segments().of_vertex;
        let is_skin = |face: &&Face| face.corners().iter().all(|corner| of[*corner as usize] == skin);
        let faces: Vec<Face> = mesh.faces().iter().filter(is_skin).copied().collect();
        let at = |vertex: u32| mesh.positions()[vertex as usize];
        let middle = self.points[60..68].iter().map(|vertex| at(*vertex)).sum::<Vec3>() / 8.0;
        let centre =
            |ring: &Vec<u32>| ring.iter().map(|vertex| at(*vertex)).sum::<Vec3>() / ring.len() as f32;
        let rings = border_rings(&faces);
        let near = |ring: &Vec<u32>| (centre(ring) - middle).length();
        let Some(ring) = rings.into_iter().min_by(|a, b| near(a).total_cmp(&near(b))) else { return };
        let corner_distance = (at(self.points[54]) - at(self.points[48])).length();
        if near(&ring) > corner_distance || ring.len() < 8 {
            return;
        }
        let neighbours = Neighbours::new(mesh.vertex_count(), &faces);
        let walk = |(place, start): (usize, &u32)| {
            let beside = [ring[(place + 1) % ring.len()], ring[(place + ring.len() - 1) % ring.len()]];
            let mut strip = vec![*start];
            let mut inward = neighbours.of(*start).iter().copied().filter(|next| !beside.contains(next));
            let mut next = inward.next();
            while let Some(vertex) = next.filter(|_| strip.len() < LONGEST_STRIP) {
                let before = strip[strip.len() - 1];
                strip.push(vertex);
                next = neighbours.across(before, vertex);
            }
            strip.reverse();
            strip
        };
        let strips: Vec<Vec<u32>> = ring.iter().enumerate().map(walk).collect();
        // The corners split the ring into the lips.
        let by_x = |a: &&usize, b: &&usize| at(ring[**a]).x.total_cmp(&at(ring[**b]).x);
        let places: Vec<usize> = (0..ring.len()).collect();
        let (Some(&right), Some(&left)) = (places.iter().min_by(by_x), places.iter().max_by(by_x)) else {
            return;
        };
        let run = |from: usize, to: usize| -> Vec<usize> {
            let count = (to + ring.len() - from) % ring.len() + 1;
            (0..count).map(|step| (from + step) % ring.len()).collect()
        };
        let (one, mut other) = (run(right, left), run(left, right));
        other.reverse();
        // Outside, an upper lip's strips lie above a lower one's.
        let height = |run: &[usize]| {
            run.iter().map(|p| at(strips[*p][strips[*p].len() / 2]).y).sum::<f32>() / run.len() as f32
        };
        let (upper, lower) = if height(&one) > height(&other) { (one, other) } else { (other, one) };
        let outline: Vec<Vec3> = (48..60).map(|point| at(self.points[point])).collect();
        let (upper, lower) =
            (trimmed(&upper, &strips, &outline, &at), trimmed(&lower, &strips, &outline, &at));
        let border = upper.iter().map(|strip| strip[0]).chain(lower.iter().rev().map(|strip| strip[0]));
        let mut border: Vec<u32> = border.collect();
        border.dedup();
        let wanted = border.len().min(24);
        self.outer_lips = (0..wanted).map(|index| border[index * border.len() / wanted]).collect();
        self.lips = [Lip { strips: upper }, Lip { strips: lower }];
        let mut around: Vec<u32> =
            self.lips.iter().flat_map(|lip| lip.strips.iter().flatten()).copied().collect();
        around.sort_unstable();
        around.dedup();
        let all = mesh.faces();
        self.rings = around.iter().map(|vertex| (*vertex, Vec::new())).collect();
        for face in all {
            for corner in face.corners() {
                if let Ok(at) = around.binary_search(corner) {
                    self.rings[at].1.push(*face);
                }
            }
        }
    }
}

/// Strips of a lip, cut where they meet the lip's outline on the skin.
fn trimmed(run: &[usize], strips: &[Vec<u32>], outline: &[Vec3], at: &impl Fn(u32) -> Vec3) -> Vec<Vec<u32>> {
    let distance = |point: Vec3| {
        let pieces = (0..outline.len()).map(|i| (outline[i], outline[(i + 1) % outline.len()]));
        pieces.map(|(a, b)| distance_to_piece(point, a, b)).fold(f32::INFINITY, f32::min)
    };
    let cut = |place: &usize| {
        let strip = &strips[*place];
        let nearest =
            (0..strip.len()).min_by(|a, b| distance(at(strip[*a])).total_cmp(&distance(at(strip[*b]))));
        strip[nearest.unwrap_or(0)..].to_vec()
    };
    run.iter().map(cut).filter(|strip| !strip.is_empty()).collect()
}

/// Distance of a point to a piece of a line, cm.
pub(crate) fn distance_to_piece(point: Vec3, a: Vec3, b: Vec3) -> f32 {
    let along = b - a;
    let share = ((point - a).dot(along) / along.length_squared().max(1e-9)).clamp(0.0, 1.0);
    (point - a - along * share).length()
}

/// Rings of edges that belong to one face only.
pub(crate) fn border_rings(faces: &[Face]) -> Vec<Vec<u32>> {
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for face in faces {
        let corners = face.corners();
        for (place, &a) in corners.iter().enumerate() {
            let b = corners[(place + 1) % corners.len()];
            edges.push((a.min(b), a.max(b)));
        }
    }
    edges.sort_unstable();
    let single = |index: &usize| {
        let before = *index > 0 && edges[*index - 1] == edges[*index];
        !before && edges.get(*index + 1) != Some(&edges[*index])
    };
    let border: Vec<(u32, u32)> = (0..edges.len()).filter(single).map(|index| edges[index]).collect();
    let mut both: Vec<(u32, u32)> = border.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
    both.sort_unstable();
    let mut used = vec![false; both.len()];
    let mut rings = Vec::new();
    for first in 0..both.len() {
        if used[first] {
            continue;
        }
        let mut ring = vec![both[first].0];
        let mut edge = first;
        loop {
            let (from, to) = both[edge];
            used[edge] = true;
            if let Ok(back) = both.binary_search(&(to, from)) {
                used[back] = true;
            }
            if to == ring[0] {
                rings.push(ring);
                break;
            }
            ring.push(to);
            let start = both.partition_point(|pair| pair.0 < to);
            let next = (start..both.len()).take_while(|at| both[*at].0 == to).find(|at| !used[*at]);
            let Some(next) = next else { break };
            edge = next;
        }
    }
    rings
}

/// Who is joined to whom by an edge, and what lies straight across a vertex.
struct Neighbours {
    start: Vec<u32>,
    list: Vec<u32>,
    faces_start: Vec<u32>,
    faces_of: Vec<u32>,
    faces: Vec<Face>,
}

impl Neighbours {
    fn new(count: usize, faces: &[Face]) -> Self {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut owners: Vec<(u32, u32)> = Vec::new();
        for (index, face) in (0u32..).zip(faces) {
            let corners = face.corners();
            for (place, &a) in corners.iter().enumerate() {
                let b = corners[(place + 1) % corners.len()];
                pairs.extend([(a, b), (b, a)]);
                owners.push((a, index));
            }
        }
        let (start, list) = table(count, pairs);
        let (faces_start, faces_of) = table(count, owners);
        Self { start, list, faces_start, faces_of, faces: faces.to_vec() }
    }

    fn of(&self, vertex: u32) -> &[u32] {
        &self.list[self.start[vertex as usize] as usize..self.start[vertex as usize + 1] as usize]
    }

    /// The neighbour of `vertex` that shares no face with `before`: straight on, where four edges meet.
    fn across(&self, before: u32, vertex: u32) -> Option<u32> {
        if self.of(vertex).len() != 4 {
            return None;
        }
        let range =
            self.faces_start[vertex as usize] as usize..self.faces_start[vertex as usize + 1] as usize;
        let faces = self.faces_of[range].iter().map(|face| &self.faces[*face as usize]);
        let beside: Vec<&Face> = faces.filter(|face| face.corners().contains(&before)).collect();
        let shares = |next: &u32| beside.iter().any(|face| face.corners().contains(next));
        self.of(vertex).iter().copied().find(|next| !shares(next))
    }
}

/// Rows of a table, from (row, entry) pairs; entries of a row ascend and are single.
fn table(count: usize, mut pairs: Vec<(u32, u32)>) -> (Vec<u32>, Vec<u32>) {
    pairs.sort_unstable();
    pairs.dedup();
    let mut start = vec![0u32; count + 1];
    pairs.iter().for_each(|(row, _)| start[*row as usize + 1] += 1);
    (0..count).for_each(|row| start[row + 1] += start[row]);
    (start, pairs.into_iter().map(|(_, entry)| entry).collect())
}
