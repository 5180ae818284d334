//! Where weights are solved: the surface of the mesh or a lattice of tetrahedra around it, with its Laplacian and
//! mass, and how the mesh's vertices hang on its nodes. Lengths are those of a mesh whose box has a diagonal of one.

use super::WeightsError;
use super::lattice::Lattice;
use crate::closest::TriangleTree;
use std::collections::HashMap;
use understudy_core::laplacian::{
    SparseRows, tetrahedral_laplacian, tetrahedral_mass, triangle_laplacian, voronoi_mass,
};
use understudy_core::{DVec3, Mesh};

/// A triangle whose height is less than this share of its longest side has no usable angles.
const FLATTEST: f64 = 1e-6;
/// Nodes have at least this share of the mean mass: a tiny triangle must not make a huge number.
const LEAST_MASS: f64 = 1e-6;

/// The mesh as triangles of unit size, repaired where that is needed and said in `notes`.
pub(super) struct Surface {
    /// `[V]`, the box's diagonal is one.
    pub points: Vec<DVec3>,
    /// Triangles with an area; vertices as in the mesh.
    pub triangles: Vec<[u32; 3]>,
    /// Every vertex's stand-in: seams are sewn up, vertices without a face stand for their nearest neighbour.
    pub stand_in: Vec<u32>,
    /// Middle of the box and one over its diagonal, in the mesh's unit.
    pub centre: DVec3,
    pub scale: f64,
    /// What was mended.
    pub notes: Vec<String>,
}

impl Surface {
    pub fn new(mesh: &Mesh) -> Result<Self, WeightsError> {
        let (low, high) = mesh.bounds();
        let (low, high) = (low.as_dvec3(), high.as_dvec3());
        let diagonal = (high - low).length();
        if diagonal.is_nan() || diagonal <= 0.0 {
            return Err(WeightsError::NoArea);
        }
        let (centre, scale) = ((low + high) / 2.0, 1.0 / diagonal);
        let points: Vec<DVec3> = mesh.positions().iter().map(|p| (p.as_dvec3() - centre) * scale).collect();
        let all = mesh.triangles();
        let usable = |t: &[u32; 3]| {
            let [a, b, c] = t.map(|v| points[v as usize]);
            let longest =
                (b - a).length_squared().max((c - a).length_squared()).max((c - b).length_squared());
            (b - a).cross(c - a).length() > FLATTEST * longest
        };
        let triangles: Vec<[u32; 3]> = all.iter().copied().filter(usable).collect();
        if triangles.is_empty() {
            return Err(WeightsError::NoArea);
        }
        let mut notes = Vec::new();
        let flat = all.len() - triangles.len();
        if flat > 0 {
            notes.push(format!("{flat} of {} triangles have no area and are left out", all.len()));
        }
        let mut surface = Self { points, triangles, stand_in: Vec::new(), centre, scale, notes };
        surface.sew();
        Ok(surface)
    }

    /// Takes a point of the mesh's space.
    pub fn inward(&self, p: DVec3) -> DVec3 {
        (p - self.centre) * self.scale
    }

    /// Sews seams: vertices of one position on open edges become one; then finds stand-ins for vertices without a face.
    fn sew(&mut self) {
        let n = self.points.len();
        let mut uses: HashMap<(u32, u32), u32> = HashMap::new();
        for t in &self.triangles {
            for corner in 0..3 {
                let (a, b) = (t[corner], t[(corner + 1) % 3]);
                *uses.entry((a.min(b), a.max(b))).or_default() += 1;
            }
        }
        let branching = uses.values().filter(|count| **count > 2).count();
        if branching > 0 {
            self.notes.push(format!(
                "{branching} edges have more than two faces: weights flow through all of them"
            ));
        }
        let mut open = vec![false; n];
        for ((a, b), _) in uses.iter().filter(|(_, count)| **count == 1) {
            open[*a as usize] = true;
            open[*b as usize] = true;
        }
        self.stand_in = (0..n as u32).collect();
        let mut at: HashMap<[u64; 3], u32> = HashMap::new();
        let mut sewn = 0;
        for vertex in (0..n).filter(|v| open[*v]) {
            let key = self.points[vertex].to_array().map(|x| (x + 0.0).to_bits());
            let first = *at.entry(key).or_insert(vertex as u32);
            self.stand_in[vertex] = first;
            sewn += usize::from(first != vertex as u32);
        }
        if sewn > 0 {
            self.notes
                .push(format!("{sewn} vertices lie on another one across a seam and share its weights"));
        }
        let mut used = vec![false; n];
        self.triangles.iter().flatten().for_each(|v| used[self.stand_in[*v as usize] as usize] = true);
        let lone: Vec<usize> = (0..n).filter(|v| self.stand_in[*v] as usize == *v && !used[*v]).collect();
        if !lone.is_empty() {
            self.notes.push(format!(
                "{} vertices belong to no face with an area and follow their neighbours",
                lone.len()
            ));
            let tree = TriangleTree::new(&self.points, &self.triangles);
            for vertex in lone {
                let nearest = nearest_corner(&tree, &self.triangles, self.points[vertex]);
                self.stand_in[vertex] = nearest.map_or(vertex as u32, |v| self.stand_in[v as usize]);
            }
        }
    }
}

/// Nodes with operators, and the mesh's vertices as blends of nodes.
pub(super) struct Domain {
    pub points: Vec<DVec3>,
    /// `L`, `[N][N]`.
    pub laplacian: SparseRows,
    /// `M`, `[N]`.
    pub mass: Vec<f64>,
    /// Up to four nodes of every mesh vertex.
    pub embedding: Vec<([u32; 4], [f64; 4])>,
    /// Number of the connected part of every node.
    pub part: Vec<u32>,
    /// How many parts.
    pub parts: usize,
    /// The lattice, where this is a volume.
    pub lattice: Option<Lattice>,
    /// For a surface the node of every mesh vertex.
    pub node_of_vertex: Vec<u32>,
    /// Mean distance between neighbours.
    pub spacing: f64,
}

impl Domain {
    pub fn of_surface(surface: &Surface) -> Self {
        let mut node = vec![u32::MAX; surface.points.len()];
        let mut points = Vec::new();
        let triangles: Vec<[u32; 3]> = surface
            .triangles
            .iter()
            .map(|t| {
                t.map(|v| {
                    let v = surface.stand_in[v as usize] as usize;
                    if node[v] == u32::MAX {
                        node[v] = points.len() as u32;
                        points.push(surface.points[v]);
                    }
                    node[v]
                })
            })
            .collect();
        let node_of_vertex: Vec<u32> = surface.stand_in.iter().map(|v| node[*v as usize]).collect();
        let embedding = node_of_vertex.iter().map(|node| ([*node; 4], [1.0, 0.0, 0.0, 0.0])).collect();
        let laplacian = triangle_laplacian(&points, &triangles);
        let mass = voronoi_mass(&points, &triangles);
        Self::finish(points, laplacian, mass, embedding, None, node_of_vertex)
    }

    /// A lattice around the mesh and, where there are any, around cages.
    pub fn of_volume(surface: &Surface, cages: &[(Vec<DVec3>, Vec<[u32; 3]>)], cells: usize) -> Self {
        let mut points = surface.points.clone();
        let mut triangles = surface.triangles.clone();
        for (corners, faces) in cages {
            let first = points.len() as u32;
            points.extend(corners);
            triangles.extend(faces.iter().map(|face| face.map(|corner| corner + first)));
        }
        let lattice = Lattice::around(&points, &triangles, cells);
        let laplacian = tetrahedral_laplacian(&lattice.points, &lattice.tetrahedra);
        let mass = tetrahedral_mass(&lattice.points, &lattice.tetrahedra);
        let place = |p: &DVec3| {
            lattice.locate(*p).unwrap_or_else(|| {
                let nearest = nearest_node(&lattice.points, *p);
                ([nearest; 4], [1.0, 0.0, 0.0, 0.0])
            })
        };
        let embedding = surface.points.iter().map(place).collect();
        Self::finish(lattice.points.clone(), laplacian, mass, embedding, Some(lattice), Vec::new())
    }

    fn finish(
        points: Vec<DVec3>,
        laplacian: SparseRows,
        mut mass: Vec<f64>,
        embedding: Vec<([u32; 4], [f64; 4])>,
        lattice: Option<Lattice>,
        node_of_vertex: Vec<u32>,
    ) -> Self {
        let mean = mass.iter().sum::<f64>() / mass.len().max(1) as f64;
        mass.iter_mut().for_each(|m| *m = m.max(LEAST_MASS * mean));
        let n = points.len();
        let mut part = vec![u32::MAX; n];
        let (mut parts, mut total, mut edges) = (0, 0.0, 0usize);
        let mut stack = Vec::new();
        for start in 0..n {
            if part[start] != u32::MAX {
                continue;
            }
            part[start] = parts as u32;
            stack.push(start);
            while let Some(node) = stack.pop() {
                for (next, _) in laplacian.row(node) {
                    if next > node {
                        total += (points[next] - points[node]).length();
                        edges += 1;
                    }
                    if part[next] == u32::MAX {
                        part[next] = parts as u32;
                        stack.push(next);
                    }
                }
            }
            parts += 1;
        }
        let spacing = total / edges.max(1) as f64;
        Self { points, laplacian, mass, embedding, part, parts, lattice, node_of_vertex, spacing }
    }

    /// `L M⁻¹ L`: the Laplacian energy of a function is half its square in this matrix, eq. 6 of the paper.
    pub fn stiffness(&self) -> SparseRows {
        let inverse: Vec<f64> = self.mass.iter().map(|m| 1.0 / m).collect();
        self.laplacian.sandwich(&inverse)
    }

    /// Weights of nodes, columns end to end, as weights of the mesh's vertices, `[V][columns]` by rows.
    pub fn to_mesh(&self, nodes: &[f64], columns: usize) -> Vec<f64> {
        let n = self.points.len();
        let mut out = vec![0.0; self.embedding.len() * columns];
        for ((corners, weights), row) in self.embedding.iter().zip(out.chunks_exact_mut(columns.max(1))) {
            for (corner, weight) in corners.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
                for (column, value) in row.iter_mut().enumerate() {
                    *value += weight * nodes[column * n + *corner as usize];
                }
            }
        }
        out
    }
}

/// The corner of the nearest triangle that is nearest to its nearest point; `None` without triangles.
pub(super) fn nearest_corner(tree: &TriangleTree, triangles: &[[u32; 3]], p: DVec3) -> Option<u32> {
    let hit = tree.closest(p)?;
    let largest = (0..3).max_by(|a, b| hit.weights[*a].total_cmp(&hit.weights[*b]))?;
    Some(triangles[hit.triangle][largest])
}

pub(super) fn nearest_node(points: &[DVec3], p: DVec3) -> u32 {
    let distance = |node: &usize| (points[*node] - p).length_squared();
    (0..points.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0) as u32
}
