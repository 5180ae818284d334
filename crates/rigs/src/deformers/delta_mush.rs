//! Delta mush (Mancewicz et al. 2014): smooths the posed mesh and puts the rest pose's detail back in
//! the smoothed surface's own frames. Takes the creases out of skinning. Usually the dearest layer.

use super::driver::{RigSize, unknown};
use crate::rig::RigError;
use crate::stack::{Deformer, Frame, Scratch};
use understudy_core::laplacian::cotangent_laplacian;
use understudy_core::normals::vertex_normals;
use understudy_core::{Adjacency, Mesh, Vec3, Vec3A};

/// How neighbours count when a vertex is smoothed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SmoothingWeights {
    /// All the same: fast and even; pulls vertices together where the mesh is dense.
    #[default]
    Uniform,
    /// By the cotangents of the rest mesh: keeps the spacing of an uneven mesh.
    Cotangent,
}

/// Settings of [`DeltaMush`].
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaMushConfig {
    /// Rounds of smoothing.
    pub iterations: usize,
    /// How far a vertex goes towards its neighbours in each round, 0 to 1.
    pub step: f32,
    /// How neighbours count.
    pub weights: SmoothingWeights,
    /// How much each vertex takes of the result, `[V]`, 0 to 1; empty means all of it.
    pub mask: Vec<f32>,
    /// Connected islands with fewer vertices than this are left alone: buckles, teeth.
    pub smallest_island: usize,
}

impl Default for DeltaMushConfig {
    fn default() -> Self {
        Self {
            iterations: 10,
            step: 0.6,
            weights: SmoothingWeights::Uniform,
            mask: Vec::new(),
            smallest_island: 0,
        }
    }
}

/// `v ← v + mask (s + R δ − v)`: `s` the smoothed pose, `R` its local frame, `δ` the rest pose's detail
/// in the smoothed rest pose's frame. Identity at rest, and it commutes with rigid motion.
///
/// The frame is the rotation of the least-squares map from the smoothed rest neighbourhood's tangent
/// plane to the posed one, so it depends smoothly on every neighbour and needs no face normals.
/// Vertices on an open border are smoothed along the border only.
pub struct DeltaMush {
    iterations: usize,
    step: f32,
    /// Mesh vertices that take part; other arrays use places in this list.
    active: Vec<u32>,
    /// Places with exactly four evenly weighted neighbours: most of a quad mesh.
    fours: Vec<(u32, [u32; 4])>,
    /// The other places, and their neighbours with weights.
    others: Vec<u32>,
    other_offsets: Vec<u32>,
    other_neighbours: Vec<(u32, f32)>,
    /// Vertices that take the result.
    results: Vec<Detail>,
    frame_neighbours: Vec<FrameNeighbour>,
}

struct Detail {
    place: u32,
    mask: f32,
    delta: Vec3A,
    frame: std::ops::Range<u32>,
}

/// A neighbour's share in the two tangents.
#[derive(Clone, Copy)]
struct FrameNeighbour {
    place: u32,
    first: f32,
    second: f32,
}

impl DeltaMush {
    /// Checks the settings, smooths the rest mesh and stores its detail.
    pub fn new(config: DeltaMushConfig, mesh: &Mesh, size: &RigSize) -> Result<Self, RigError> {
        const PART: &str = "delta mush";
        size.check_mesh(PART, mesh)?;
        if !(0.0..=1.0).contains(&config.step) || config.iterations > 1000 {
            return Err(unknown(PART, format!("step {} × {} rounds", config.step, config.iterations)));
        }
        if !config.mask.is_empty() && config.mask.len() != size.vertices {
            let (got, want) = (config.mask.len(), size.vertices);
            return Err(RigError::Count { what: "delta mush: mask".into(), got, want });
        }
        if let Some(vertex) = config.mask.iter().position(|weight| !(0.0..=1.0).contains(weight)) {
            return Err(unknown(PART, format!("mask of vertex {vertex} = {}", config.mask[vertex])));
        }
        let adjacency = mesh.adjacency();
        let mask = effective_mask(&config, mesh);
        let active = within_rings(&adjacency, &mask, config.iterations + 1);
        let mut place = vec![u32::MAX; size.vertices];
        for (index, &vertex) in (0u32..).zip(&active) {
            place[vertex as usize] = index;
        }
        let mut mush = Self {
            iterations: config.iterations,
            step: config.step,
            fours: Vec::new(),
            others: Vec::new(),
            other_offsets: vec![0],
            other_neighbours: Vec::new(),
            results: Vec::new(),
            frame_neighbours: Vec::new(),
            active,
        };
        mush.gather_neighbours(config.weights, mesh, &adjacency, &place);
        mush.store_detail(mesh, &adjacency, &place, &mask);
        Ok(mush)
    }

    fn gather_neighbours(
        &mut self,
        weights: SmoothingWeights,
        mesh: &Mesh,
        adjacency: &Adjacency,
        place: &[u32],
    ) {
        let rows = smoothing_rows(weights, mesh, adjacency);
        for (index, &vertex) in (0u32..).zip(&self.active) {
            let mut row: Vec<(u32, f32)> = rows[vertex as usize]
                .iter()
                .map(|&(neighbour, weight)| (place[neighbour as usize], weight))
                .filter(|(neighbour, _)| *neighbour != u32::MAX)
                .collect();
            let sum: f32 = row.iter().map(|(_, weight)| weight).sum();
            for (_, weight) in &mut row {
                *weight /= sum;
            }
            match row[..] {
                [(a, w), (b, x), (c, y), (d, z)] if [w, x, y, z].iter().all(|w| *w == 0.25) => {
                    self.fours.push((index, [a, b, c, d]));
                }
                // Without neighbours it stays where it is.
                [] => {}
                _ => {
                    self.others.push(index);
                    self.other_neighbours.extend(row);
                    self.other_offsets.push(self.other_neighbours.len() as u32);
                }
            }
        }
    }

    fn store_detail(&mut self, mesh: &Mesh, adjacency: &Adjacency, place: &[u32], mask: &[f32]) {
        let (mut points, mut spare) = (Vec::new(), Vec::new());
        self.smooth(mesh.positions(), &mut points, &mut spare);
        let mut smoothed = mesh.positions().to_vec();
        for (&vertex, &point) in self.active.iter().zip(&points) {
            smoothed[vertex as usize] = point.into();
        }
        let normals = vertex_normals(mesh.faces(), &smoothed);
        for (index, &vertex) in (0u32..).zip(&self.active) {
            let weight = mask[vertex as usize];
            if weight == 0.0 {
                continue;
            }
            let here = smoothed[vertex as usize];
            let ring: Vec<u32> = adjacency.neighbours(vertex as usize).to_vec();
            let offsets: Vec<Vec3> = ring.iter().map(|n| smoothed[*n as usize] - here).collect();
            // A vertex without a proper neighbourhood has no frame: it is left alone.
            let Some(coefficients) = tangent_coefficients(&offsets, normals[vertex as usize]) else {
                continue;
            };
            let start = self.frame_neighbours.len() as u32;
            for (neighbour, [first, second]) in ring.iter().zip(coefficients) {
                self.frame_neighbours.push(FrameNeighbour {
                    place: place[*neighbour as usize],
                    first,
                    second,
                });
            }
            let range = start..self.frame_neighbours.len() as u32;
            let frame = self.frame(&points, index, &range);
            let offset = Vec3A::from(mesh.positions()[vertex as usize]) - points[index as usize];
            let delta = Vec3A::new(frame[0].dot(offset), frame[1].dot(offset), frame[2].dot(offset));
            self.results.push(Detail { place: index, mask: weight, delta, frame: range });
        }
    }

    /// Smoothed positions of the active vertices end up in `points`.
    fn smooth(&self, vertices: &[Vec3], points: &mut Vec<Vec3A>, spare: &mut Vec<Vec3A>) {
        points.clear();
        points.extend(self.active.iter().map(|v| Vec3A::from(vertices[*v as usize])));
        spare.clear();
        spare.extend_from_slice(points);
        let (keep, quarter) = (1.0 - self.step, 0.25 * self.step);
        for _ in 0..self.iterations {
            for &(place, [a, b, c, d]) in &self.fours {
                let sum =
                    (points[a as usize] + points[b as usize]) + (points[c as usize] + points[d as usize]);
                spare[place as usize] = points[place as usize] * keep + sum * quarter;
            }
            for (row, &place) in self.others.iter().enumerate() {
                let range = self.other_offsets[row] as usize..self.other_offsets[row + 1] as usize;
                let mut sum = Vec3A::ZERO;
                for &(neighbour, weight) in &self.other_neighbours[range] {
                    sum += points[neighbour as usize] * weight;
                }
                spare[place as usize] = points[place as usize] * keep + sum * self.step;
            }
            std::mem::swap(points, spare);
        }
    }

    /// Orthonormal columns: two tangents and the normal of the smoothed surface.
    fn frame(&self, points: &[Vec3A], place: u32, range: &std::ops::Range<u32>) -> [Vec3A; 3] {
        let here = points[place as usize];
        let (mut first, mut second) = (Vec3A::ZERO, Vec3A::ZERO);
        for neighbour in &self.frame_neighbours[range.start as usize..range.end as usize] {
            let offset = points[neighbour.place as usize] - here;
            first += offset * neighbour.first;
            second += offset * neighbour.second;
        }
        let normal = soft_unit(first.cross(second));
        // The rotation closest to the map in the tangent plane (its polar factor).
        let tangent = soft_unit(first + second.cross(normal));
        [tangent, normal.cross(tangent), normal]
    }
}

/// A unit vector that shrinks to zero without a jump where the surface has collapsed to a line.
fn soft_unit(vector: Vec3A) -> Vec3A {
    vector / (vector.length_squared() + 1e-8).sqrt()
}

fn effective_mask(config: &DeltaMushConfig, mesh: &Mesh) -> Vec<f32> {
    let mut mask = if config.mask.is_empty() { vec![1.0; mesh.vertex_count()] } else { config.mask.clone() };
    let (island, count) = mesh.islands();
    let mut sizes = vec![0usize; count];
    for &island in &island {
        sizes[island as usize] += 1;
    }
    for (weight, &island) in mask.iter_mut().zip(&island) {
        if sizes[island as usize] < config.smallest_island {
            *weight = 0.0;
        }
    }
    mask
}

/// Vertices at most so many edges away from one with a mask, ascending.
fn within_rings(adjacency: &Adjacency, mask: &[f32], rings: usize) -> Vec<u32> {
    let mut inside: Vec<bool> = mask.iter().map(|weight| *weight > 0.0).collect();
    let mut fresh: Vec<u32> = (0u32..).zip(&inside).filter(|(_, i)| **i).map(|(v, _)| v).collect();
    for _ in 0..rings {
        let mut next = Vec::new();
        for vertex in fresh {
            for &neighbour in adjacency.neighbours(vertex as usize) {
                if !std::mem::replace(&mut inside[neighbour as usize], true) {
                    next.push(neighbour);
                }
            }
        }
        fresh = next;
    }
    (0u32..).zip(inside).filter(|(_, inside)| *inside).map(|(vertex, _)| vertex).collect()
}

/// Who pulls on whom while smoothing, with weights that sum to one.
fn smoothing_rows(weights: SmoothingWeights, mesh: &Mesh, adjacency: &Adjacency) -> Vec<Vec<(u32, f32)>> {
    let mut rows: Vec<Vec<(u32, f32)>> = match weights {
        SmoothingWeights::Uniform => (0..mesh.vertex_count())
            .map(|vertex| adjacency.neighbours(vertex).iter().map(|n| (*n, 1.0)).collect())
            .collect(),
        SmoothingWeights::Cotangent => {
            let laplacian = cotangent_laplacian(mesh);
            let row = |vertex: usize| {
                let others = laplacian.row(vertex).filter(move |(column, _)| *column != vertex);
                // Obtuse corners give negative weights, which would make smoothing diverge.
                others.map(|(column, value)| (column as u32, (-value).max(0.0) as f32))
            };
            (0..mesh.vertex_count()).map(|vertex| row(vertex).filter(|(_, w)| *w > 0.0).collect()).collect()
        }
    };
    for (vertex, border) in border_neighbours(mesh).into_iter().enumerate() {
        if !border.is_empty() {
            rows[vertex] = border.into_iter().map(|neighbour| (neighbour, 1.0)).collect();
        }
        let sum: f32 = rows[vertex].iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut rows[vertex] {
            *weight /= sum;
        }
    }
    rows
}

/// For every vertex its neighbours along an open border (edges with one face); empty inside.
fn border_neighbours(mesh: &Mesh) -> Vec<Vec<u32>> {
    let mut edges = Vec::new();
    for face in mesh.faces() {
        let corners = face.corners();
        for (place, &a) in corners.iter().enumerate() {
            let b = corners[(place + 1) % corners.len()];
            edges.push((a.min(b), a.max(b)));
        }
    }
    edges.sort_unstable();
    let mut border = vec![Vec::new(); mesh.vertex_count()];
    for group in edges.chunk_by(|a, b| a == b).filter(|group| group.len() == 1) {
        let (a, b) = group[0];
        border[a as usize].push(b);
        border[b as usize].push(a);
    }
    border
}

/// For every neighbour its share in two tangents: `[t₁ t₂] = Σ d_j x_jᵀ (Σ x_j x_jᵀ)⁻¹`, where `x_j` are
/// the neighbour's rest coordinates in the tangent plane. `None` when the neighbours lie on a line.
fn tangent_coefficients(offsets: &[Vec3], normal: Vec3) -> Option<Vec<[f32; 2]>> {
    if normal.length_squared() < 0.5 {
        return None;
    }
    let (first, second) = normal.any_orthonormal_pair();
    let plane: Vec<[f32; 2]> = offsets.iter().map(|d| [d.dot(first), d.dot(second)]).collect();
    let sum = |a: usize, b: usize| plane.iter().map(|x| x[a] * x[b]).sum::<f32>();
    let (xx, xy, yy) = (sum(0, 0), sum(0, 1), sum(1, 1));
    let determinant = xx * yy - xy * xy;
    if determinant <= 1e-4 * (xx + yy) * (xx + yy) {
        return None;
    }
    let share = |x: &[f32; 2]| [(yy * x[0] - xy * x[1]) / determinant, (xx * x[1] - xy * x[0]) / determinant];
    Some(plane.iter().map(share).collect())
}

impl Deformer for DeltaMush {
    fn name(&self) -> &str {
        "delta mush"
    }

    fn deform(&self, _frame: &Frame<'_>, vertices: &mut [Vec3], scratch: &mut Scratch) {
        let Scratch { wide: points, more_wide: spare, .. } = scratch;
        self.smooth(vertices, points, spare);
        for detail in &self.results {
            let [tangent, side, normal] = self.frame(points, detail.place, &detail.frame);
            let [x, y, z] = detail.delta.to_array();
            let target = points[detail.place as usize] + tangent * x + side * y + normal * z;
            let vertex = &mut vertices[self.active[detail.place as usize] as usize];
            *vertex += (Vec3::from(target) - *vertex) * detail.mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Skinning;
    use super::super::test_support::*;
    use super::*;
    use crate::StackRig;
    use understudy_core::{Face, Quat, Segments};

    fn mush(config: DeltaMushConfig, mesh: &Mesh) -> DeltaMush {
        DeltaMush::new(config, mesh, &size(mesh)).expect("fits")
    }

    fn skinned(config: DeltaMushConfig) -> StackRig {
        let mesh = tube();
        let skinning = Skinning::linear(weights(&mesh), &size(&mesh)).expect("fits");
        let mush = mush(config, &mesh);
        rig(mesh, vec![Box::new(skinning), Box::new(mush)])
    }

    fn kinds() -> [DeltaMushConfig; 2] {
        [SmoothingWeights::Uniform, SmoothingWeights::Cotangent]
            .map(|weights| DeltaMushConfig { weights, ..DeltaMushConfig::default() })
    }

    #[test]
    fn identity_at_rest_and_continuous() {
        for config in kinds() {
            let rig = skinned(config);
            assert_identity_at_rest(&rig, 1e-4);
            assert_continuous(&rig, 0.06);
        }
    }

    #[test]
    fn commutes_with_rigid_motion() {
        for config in kinds() {
            let rig = skinned(config);
            let elbow = [("bend", 110.0), ("twist", 50.0)];
            let here = pose(&rig, &elbow);
            let moved = pose(&rig, &[elbow[0], elbow[1], ("swing", 75.0), ("shift", -30.0)]);
            let turn = Quat::from_rotation_x(75f32.to_radians());
            let expected: Vec<Vec3> = here.iter().map(|v| turn * *v - Vec3::Z * 30.0).collect();
            let error = largest_difference(&moved, &expected);
            assert!(error < 2e-3, "{error}");
        }
    }

    /// The crease of a linear elbow is rounded out: the sharpest fold along the inside gets blunter.
    #[test]
    fn an_elbow_gets_smoother_and_its_ends_stay() {
        let plain = {
            let mesh = tube();
            let skinning = Skinning::linear(weights(&mesh), &size(&mesh)).expect("fits");
            rig(mesh, vec![Box::new(skinning)])
        };
        let mushed = skinned(DeltaMushConfig { iterations: 20, ..DeltaMushConfig::default() });
        let roughness = |vertices: &[Vec3]| {
            let laplacian = understudy_core::laplacian::uniform_laplacian(&tube().adjacency());
            let middle = (6 * AROUND) as usize..(15 * AROUND) as usize;
            laplacian.apply(vertices)[middle].iter().map(|l| l.length_squared()).sum::<f64>()
        };
        let bend = [("bend", 120.0)];
        let (before, after) = (pose(&plain, &bend), pose(&mushed, &bend));
        assert!(roughness(&after) < 0.9 * roughness(&before), "{} {}", roughness(&before), roughness(&after));
        let shift = (before[0] - after[0]).length();
        assert!(shift < 0.05, "the far end moved by {shift}");
    }

    #[test]
    fn masked_and_loose_vertices_stay_put() {
        let mut parts = tube().into_parts();
        let first = parts.positions.len() as u32;
        parts.positions.extend([
            Vec3::X * 9.0,
            Vec3::X * 10.0,
            Vec3::X * 9.0 + Vec3::Z,
            Vec3::X * 9.0 + Vec3::Y,
        ]);
        for [a, b, c] in [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]] {
            parts.faces.push(Face::triangle(first + a, first + b, first + c));
        }
        parts.segments = Segments::default();
        let mesh = parts.build().expect("a tube and a stud");
        let mut mask = vec![1.0; mesh.vertex_count()];
        mask[..5 * AROUND as usize].fill(0.0);
        let config = DeltaMushConfig { mask, smallest_island: 10, ..DeltaMushConfig::default() };
        let mush = mush(config, &mesh);
        let mut vertices: Vec<Vec3> =
            mesh.positions().iter().map(|p| *p * Vec3::new(1.0, 0.7, 1.3)).collect();
        let before = vertices.clone();
        let pose = understudy_core::JointPose::default();
        let frame = Frame { controls: &[], pose: &pose, global: &[], matrices: &[], rest: mesh.positions() };
        mush.deform(&frame, &mut vertices, &mut Scratch::default());
        assert_eq!(vertices[..5 * AROUND as usize], before[..5 * AROUND as usize]);
        assert_eq!(vertices[first as usize..], before[first as usize..]);
        assert_ne!(vertices[10 * AROUND as usize], before[10 * AROUND as usize]);
    }

    /// Working on the neighbourhood of the mask gives what working on the whole mesh gives.
    #[test]
    fn a_small_mask_gives_the_same_as_the_whole_mesh() {
        let mut mask = vec![0.0; tube().vertex_count()];
        mask[10 * AROUND as usize..12 * AROUND as usize].fill(1.0);
        let small = skinned(DeltaMushConfig { iterations: 4, mask, ..DeltaMushConfig::default() });
        let whole = skinned(DeltaMushConfig { iterations: 4, ..DeltaMushConfig::default() });
        let bend = [("bend", 90.0)];
        let ring = 10 * AROUND as usize..12 * AROUND as usize;
        let (a, b) = (pose(&small, &bend), pose(&whole, &bend));
        assert!(largest_difference(&a[ring.clone()], &b[ring]) < 1e-5);
    }

    #[test]
    fn bad_settings_are_named() {
        let mesh = tube();
        let new = |config| DeltaMush::new(config, &mesh, &size(&mesh)).err().expect("must fail");
        let step = DeltaMushConfig { step: f32::NAN, ..DeltaMushConfig::default() };
        assert!(new(step).to_string().contains("step NaN"));
        let mask = DeltaMushConfig { mask: vec![1.0; 3], ..DeltaMushConfig::default() };
        assert!(matches!(new(mask), RigError::Count { got: 3, .. }));
    }
}
