//! Where things are on the model and how influence spreads over it: landmarks, masks with falloffs along
//! the surface, the mirror image of every vertex, and what brows, lashes and ears hang on.

use super::cage::Patch;
use super::model::Model;
use std::collections::HashMap;
use understudy_core::{Adjacency, Face, Vec3, normals};
use understudy_rigs::deformers::{distances_along_edges, smooth_step};

/// A weight for every vertex of the mesh.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mask(pub Vec<f32>);

impl Mask {
    /// The product with a function of the vertex.
    pub fn times(mut self, factor: impl Fn(usize) -> f32) -> Self {
        self.0.iter_mut().enumerate().for_each(|(vertex, weight)| {
            if *weight != 0.0 {
                *weight *= factor(vertex);
            }
        });
        self
    }

    /// The larger of two masks.
    pub fn or(mut self, other: &Mask) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a = a.max(*b));
        self
    }
}

/// The model with its neighbourhoods.
pub(super) struct Anatomy<'a> {
    pub model: &'a Model,
    pub normals: Vec<Vec3>,
    /// Edges and diagonals of the skin; other parts have none.
    ways: Adjacency,
    /// The vertex at the mirrored place, or itself where there is none (hair).
    pub mirror: Vec<u32>,
    /// For vertices of brows, lashes and ears: the skin vertices they hang on, with weights.
    hangs_on: Vec<(u32, Vec<(u32, f32)>)>,
}

impl<'a> Anatomy<'a> {
    pub fn new(model: &'a Model) -> Self {
        let mesh = &model.mesh;
        let skin_count = model.places.len();
        let mut triangles = Vec::new();
        for face in mesh.faces().iter().filter(|face| (face.corners()[0] as usize) < skin_count) {
            match *face.corners() {
                [a, b, c, d] => triangles.extend([
                    Face::triangle(a, b, c),
                    Face::triangle(b, c, d),
                    Face::triangle(c, d, a),
                ]),
                _ => triangles.push(*face),
            }
        }
        let ways = Adjacency::from_faces(mesh.vertex_count(), &triangles);
        let normals = normals::vertex_normals(mesh.faces(), mesh.positions());
        let mut anatomy =
            Self { model, normals, ways, mirror: mirror_images(mesh.positions()), hangs_on: Vec::new() };
        for segment in ["brow_L", "brow_R", "lashes_L", "lashes_R", "ear_L", "ear_R"] {
            for vertex in model.segment(segment) {
                anatomy.hangs_on.push((vertex, anatomy.nearest_skin(mesh.positions()[vertex as usize])));
            }
        }
        anatomy
    }

    fn positions(&self) -> &[Vec3] {
        self.model.mesh.positions()
    }

    /// Number of skin vertices, which come first.
    pub fn skin_count(&self) -> usize {
        self.model.places.len()
    }

    /// The four nearest outer skin vertices, weighted by nearness.
    fn nearest_skin(&self, point: Vec3) -> Vec<(u32, f32)> {
        let mut found: Vec<(f32, u32)> = Vec::new();
        for (vertex, place) in (0u32..).zip(&self.model.places) {
            let inner = match place.patch {
                Patch::Grid => false,
                Patch::Eye => place.across > 4.2,
                Patch::Mouth => place.across > 4.2,
            };
            let distance = self.positions()[vertex as usize].distance_squared(point);
            if !inner && (found.len() < 4 || distance < found[3].0) {
                found.push((distance, vertex));
                found.sort_by(|a, b| a.0.total_cmp(&b.0));
                found.truncate(4);
            }
        }
        let weigh = |distance: f32| 1.0 / (distance + 1e-3);
        let total: f32 = found.iter().map(|f| weigh(f.0)).sum();
        found.iter().map(|f| (f.1, weigh(f.0) / total)).collect()
    }

    /// The skin vertex nearest to a point.
    pub fn landmark(&self, point: Vec3) -> u32 {
        self.nearest_skin(point)[0].0
    }

    /// Skin vertices of a patch whose place satisfies a test; `side` is 1 her left, −1 her right, 0 both.
    pub fn select(&self, patch: Patch, side: f32, test: impl Fn(f32, f32) -> bool) -> Vec<u32> {
        let fits = |vertex: usize| {
            let (place, x) = (&self.model.places[vertex], self.positions()[vertex].x);
            place.patch == patch && x * side >= -1e-4 && test(place.along, place.across)
        };
        (0..self.skin_count()).filter(|v| fits(*v)).map(|v| v as u32).collect()
    }

    /// One on the sources, falling smoothly to zero at `reach` cm along the skin; brows, lashes and ears
    /// take what the skin under them has.
    pub fn around(&self, sources: &[u32], reach: f32) -> Mask {
        let distance = distances_along_edges(&self.ways, self.positions(), sources, reach);
        let mut mask: Vec<f32> =
            distance.iter().map(|d| if d.is_finite() { smooth_step(reach, 0.0, *d) } else { 0.0 }).collect();
        self.smooth(&mut mask, 3);
        self.hang(&mut mask);
        Mask(mask)
    }

    /// [`Self::around`] the skin nearest to a point.
    pub fn near(&self, point: Vec3, reach: f32) -> Mask {
        self.around(&[self.landmark(point)], reach)
    }

    /// A mask from a function of the skin's vertices.
    pub fn skin_mask(&self, weight: impl Fn(usize) -> f32) -> Mask {
        let mut mask = vec![0.0; self.positions().len()];
        mask[..self.skin_count()].iter_mut().enumerate().for_each(|(vertex, w)| *w = weight(vertex));
        self.hang(&mut mask);
        Mask(mask)
    }

    /// A mask of one segment by a function of the rest position.
    pub fn part(&self, segment: &str, weight: impl Fn(Vec3) -> f32) -> Mask {
        let mut mask = vec![0.0; self.positions().len()];
        for vertex in self.model.segment(segment) {
            mask[vertex as usize] = weight(self.positions()[vertex as usize]);
        }
        Mask(mask)
    }

    fn hang(&self, mask: &mut [f32]) {
        for (vertex, on) in &self.hangs_on {
            mask[*vertex as usize] = on.iter().map(|(v, w)| mask[*v as usize] * w).sum();
        }
    }

    /// Averages values over the skin's edges.
    pub fn smooth(&self, values: &mut [f32], rounds: usize) {
        for _ in 0..rounds {
            let before = values.to_vec();
            for vertex in 0..self.skin_count() {
                let neighbours = self.ways.neighbours(vertex);
                let sum: f32 = neighbours.iter().map(|n| before[*n as usize]).sum();
                values[vertex] = 0.5 * before[vertex] + 0.5 * sum / neighbours.len().max(1) as f32;
            }
        }
    }

    /// Values that are as smooth as possible between fixed ones (harmonic, by relaxation).
    pub fn fill(&self, fixed: &HashMap<usize, f32>, start: impl Fn(usize) -> f32, rounds: usize) -> Vec<f32> {
        let mut values: Vec<f32> =
            (0..self.skin_count()).map(|v| fixed.get(&v).copied().unwrap_or_else(|| start(v))).collect();
        let free: Vec<usize> = (0..self.skin_count()).filter(|v| !fixed.contains_key(v)).collect();
        for _ in 0..rounds {
            for &vertex in &free {
                let neighbours = self.ways.neighbours(vertex);
                let sum: f32 = neighbours.iter().map(|n| values[*n as usize]).sum();
                let mean = sum / neighbours.len().max(1) as f32;
                values[vertex] += 1.6 * (mean - values[vertex]);
            }
        }
        values.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
        values
    }
}

/// For every vertex the one at the mirrored place.
fn mirror_images(positions: &[Vec3]) -> Vec<u32> {
    const CELL: f32 = 0.02;
    let cell = |p: Vec3| (p / CELL).floor().as_ivec3().to_array();
    let mut cells: HashMap<[i32; 3], Vec<u32>> = HashMap::new();
    for (vertex, p) in (0u32..).zip(positions) {
        cells.entry(cell(*p)).or_default().push(vertex);
    }
    let image = |vertex: u32, p: Vec3| {
        let target = Vec3::new(-p.x, p.y, p.z);
        let [x, y, z] = cell(target);
        let mut best = (CELL * CELL * 0.1, vertex);
        for key in (0..27).map(|i| [x + i % 3 - 1, y + i / 3 % 3 - 1, z + i / 9 - 1]) {
            for &other in cells.get(&key).into_iter().flatten() {
                let distance = positions[other as usize].distance_squared(target);
                if distance < best.0 {
                    best = (distance, other);
                }
            }
        }
        best.1
    };
    (0u32..).zip(positions).map(|(vertex, p)| image(vertex, *p)).collect()
}
