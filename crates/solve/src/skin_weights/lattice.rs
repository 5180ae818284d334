//! A lattice of tetrahedra around a mesh: body-centred cubic, so every tetrahedron has the same good shape, no
//! tetrahedraliser is needed, and meshes with holes, islands and parts that touch are as good as any.

use std::collections::HashMap;
use understudy_core::DVec3;

/// More cells along an axis than this is taken for a slip: a lattice of so many has millions of nodes.
pub const MAX_CELLS: usize = 160;
/// Points at which a triangle is looked at, per cell and direction.
const SAMPLES: f64 = 3.0;
/// Empty cells around the mesh.
const MARGIN: usize = 2;

/// Cubes that hold the surface or lie inside it, and the tetrahedra across their faces.
#[derive(Debug, Clone)]
pub(super) struct Lattice {
    /// Corners and centres of cubes.
    pub points: Vec<DVec3>,
    /// Two centres of neighbouring cubes and an edge of the face between them.
    pub tetrahedra: Vec<[u32; 4]>,
    /// Side of a cube.
    pub cell: f64,
    origin: DVec3,
    counts: [usize; 3],
    /// Corner nodes and centre nodes by the place of their cube.
    corners: HashMap<u64, u32>,
    centres: HashMap<u64, u32>,
}

impl Lattice {
    /// Around triangles, with so many cells along the longest side of their box.
    pub fn around(points: &[DVec3], triangles: &[[u32; 3]], cells: usize) -> Self {
        let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
        for corner in triangles.iter().flatten() {
            low = low.min(points[*corner as usize]);
            high = high.max(points[*corner as usize]);
        }
        let cell = (high - low).max_element() / cells.max(1) as f64;
        let counts = ((high - low) / cell).to_array().map(|side| side.floor() as usize + 1 + 2 * MARGIN);
        // The mesh sits in the middle of its cells, whatever is rounded.
        let slack = DVec3::from_array(counts.map(|count| count as f64 * cell)) - (high - low);
        let mut lattice = Self {
            points: Vec::new(),
            tetrahedra: Vec::new(),
            cell,
            origin: low - slack / 2.0,
            counts,
            corners: HashMap::new(),
            centres: HashMap::new(),
        };
        let kept = lattice.kept_cubes(points, triangles);
        lattice.fill(&kept);
        lattice
    }

    fn key(&self, at: [usize; 3]) -> u64 {
        ((at[0] as u64 * (self.counts[1] as u64 + 2)) + at[1] as u64) * (self.counts[2] as u64 + 2)
            + at[2] as u64
    }

    fn cube_of(&self, p: DVec3) -> Option<[usize; 3]> {
        let place = ((p - self.origin) / self.cell).to_array();
        let inside = (0..3).all(|k| place[k] >= 0.0 && place[k] < self.counts[k] as f64);
        inside.then(|| place.map(|x| x as usize))
    }

    fn index(&self, at: [usize; 3]) -> usize {
        (at[0] * self.counts[1] + at[1]) * self.counts[2] + at[2]
    }

    /// Cubes with a piece of the surface in them, and those that cannot be reached from outside.
    fn kept_cubes(&self, points: &[DVec3], triangles: &[[u32; 3]]) -> Vec<bool> {
        let total = self.counts.iter().product();
        let mut surface = vec![false; total];
        for triangle in triangles {
            let [a, b, c] = triangle.map(|v| points[v as usize]);
            let longest = (b - a).length().max((c - a).length()).max((c - b).length());
            let steps = ((longest / self.cell * SAMPLES).ceil() as usize).max(1);
            for i in 0..=steps {
                for j in 0..=steps - i {
                    let (u, v) = (i as f64 / steps as f64, j as f64 / steps as f64);
                    if let Some(cube) = self.cube_of(a + (b - a) * u + (c - a) * v) {
                        surface[self.index(cube)] = true;
                    }
                }
            }
        }
        let mut outside = vec![false; total];
        let mut stack = vec![[0usize; 3]];
        outside[0] = true;
        while let Some(cube) = stack.pop() {
            for axis in 0..3 {
                for step in [-1isize, 1] {
                    let moved = cube[axis] as isize + step;
                    if moved < 0 || moved as usize >= self.counts[axis] {
                        continue;
                    }
                    let mut next = cube;
                    next[axis] = moved as usize;
                    let place = self.index(next);
                    if !outside[place] && !surface[place] {
                        outside[place] = true;
                        stack.push(next);
                    }
                }
            }
        }
        outside.iter().map(|outside| !outside).collect()
    }

    fn corner(&mut self, at: [usize; 3]) -> u32 {
        let (key, place) = (self.key(at), at.map(|x| x as f64));
        let point = self.origin + DVec3::from_array(place) * self.cell;
        let next = self.points.len() as u32;
        let node = *self.corners.entry(key).or_insert(next);
        if node == next {
            self.points.push(point);
        }
        node
    }

    fn centre(&mut self, at: [usize; 3]) -> u32 {
        let (key, place) = (self.key(at), at.map(|x| x as f64 + 0.5));
        let point = self.origin + DVec3::from_array(place) * self.cell;
        let next = self.points.len() as u32;
        let node = *self.centres.entry(key).or_insert(next);
        if node == next {
            self.points.push(point);
        }
        node
    }

    /// Tetrahedra across every face of a kept cube.
    fn fill(&mut self, kept: &[bool]) {
        let [nx, ny, nz] = self.counts;
        for x in 0..nx - 1 {
            for y in 0..ny - 1 {
                for z in 0..nz - 1 {
                    let cube = [x, y, z];
                    for axis in 0..3 {
                        let mut next = cube;
                        next[axis] += 1;
                        if !kept[self.index(cube)] && !kept[self.index(next)] {
                            continue;
                        }
                        let (first, second) = (self.centre(cube), self.centre(next));
                        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
                        let ring = [[0, 0], [1, 0], [1, 1], [0, 1]].map(|[du, dv]| {
                            let mut at = next;
                            at[u] += du;
                            at[v] += dv;
                            self.corner(at)
                        });
                        for edge in 0..4 {
                            self.tetrahedra.push([first, second, ring[edge], ring[(edge + 1) % 4]]);
                        }
                    }
                }
            }
        }
    }

    /// The tetrahedron around a point and its barycentric coordinates there; `None` outside.
    pub fn locate(&self, p: DVec3) -> Option<([u32; 4], [f64; 4])> {
        let cube = self.cube_of(p)?;
        let place = (p - self.origin) / self.cell;
        let inside: [f64; 3] = std::array::from_fn(|k| place[k] - cube[k] as f64 - 0.5);
        let axis = (0..3).max_by(|a, b| inside[*a].abs().total_cmp(&inside[*b].abs()))?;
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut next = cube;
        let up = inside[axis] >= 0.0;
        next[axis] = if up { cube[axis] + 1 } else { cube[axis].checked_sub(1)? };
        let centres = [*self.centres.get(&self.key(cube))?, *self.centres.get(&self.key(next))?];
        let mut base = cube;
        base[axis] += usize::from(up);
        let (first, second) = match inside[u].abs() > inside[v].abs() {
            true => ([usize::from(inside[u] > 0.0), 0], [usize::from(inside[u] > 0.0), 1]),
            false => ([0, usize::from(inside[v] > 0.0)], [1, usize::from(inside[v] > 0.0)]),
        };
        let corner = |step: [usize; 2]| {
            let mut at = base;
            at[u] += step[0];
            at[v] += step[1];
            self.corners.get(&self.key(at)).copied()
        };
        let nodes = [centres[0], centres[1], corner(first)?, corner(second)?];
        let [a, b, c, d] = nodes.map(|node| self.points[node as usize]);
        let volume = (b - a).dot((c - a).cross(d - a));
        let share = |x: DVec3, y: DVec3, z: DVec3| (x - p).dot((y - p).cross(z - p)) / volume;
        let weights = [share(b, c, d), -share(a, c, d), share(a, b, d), -share(a, b, c)];
        let weights = weights.map(|w| w.max(0.0));
        let sum: f64 = weights.iter().sum();
        Some((nodes, weights.map(|w| w / sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    /// A box of 12 triangles.
    fn cube(half: DVec3) -> (Vec<DVec3>, Vec<[u32; 3]>) {
        let points = (0..8)
            .map(|i| {
                half * DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2)) * 2.0 - half
            })
            .collect();
        let quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];
        (points, quads.iter().flat_map(|[a, b, c, d]| [[*a, *b, *c], [*a, *c, *d]]).collect())
    }

    #[test]
    fn every_point_of_a_solid_is_in_a_tetrahedron_that_holds_it() {
        let (points, triangles) = cube(DVec3::new(1.0, 0.6, 0.3));
        let lattice = Lattice::around(&points, &triangles, 12);
        let mut random = Random::new(3);
        let mut coordinate = |half: f64| half * (2.0 * random.unit() - 1.0);
        for _ in 0..2000 {
            let p = DVec3::new(coordinate(1.0), coordinate(0.6), coordinate(0.3));
            let (nodes, weights) = lattice.locate(p).expect("inside");
            let back: DVec3 =
                nodes.iter().zip(weights).map(|(node, w)| lattice.points[*node as usize] * w).sum();
            assert!((back - p).length() < 1e-9, "{p} {back}");
            let mut sorted = nodes;
            sorted.sort_unstable();
            assert!(lattice.tetrahedra.iter().any(|tetrahedron| {
                let mut other = *tetrahedron;
                other.sort_unstable();
                other == sorted
            }));
        }
        assert!(lattice.locate(DVec3::splat(5.0)).is_none());
        let volume = |t: &[u32; 4]| {
            let [a, b, c, d] = t.map(|v| lattice.points[v as usize]);
            (b - a).dot((c - a).cross(d - a)).abs() / 6.0
        };
        let first = volume(&lattice.tetrahedra[0]);
        assert!(lattice.tetrahedra.iter().all(|t| (volume(t) - first).abs() < 1e-9 * first), "all are alike");
    }

    #[test]
    fn a_box_with_a_hole_is_a_shell_and_a_closed_one_is_full() {
        let (points, triangles) = cube(DVec3::ONE);
        let closed = Lattice::around(&points, &triangles, 14);
        assert!(closed.locate(DVec3::ZERO).is_some());
        let open = Lattice::around(&points, &triangles[2..], 14);
        assert!(open.locate(DVec3::ZERO).is_none());
        assert!(open.locate(DVec3::new(0.0, 1.0, 0.0)).is_some());
    }
}
