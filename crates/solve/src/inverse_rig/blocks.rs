//! All shape and corrective vectors in one array, cut so that every product with a mesh is a run of small
//! dense tiles: eight neighbouring vertices a block, eight terms a panel. Terms that do not touch a block
//! are not stored there. The kernels live in [`super::kernels`].

use super::terms::TermTable;
use understudy_core::{BlendshapeRig, SparseDeltas, Vec3};

/// Vertices a block.
pub(crate) const BLOCK: usize = 8;
/// Coordinates a block.
pub(crate) const COORDINATES: usize = 3 * BLOCK;
/// Terms a panel.
pub(crate) const WIDTH: usize = 8;
/// Where a block or panel is not full.
pub(crate) const PAD: u32 = u32::MAX;

/// `[coordinate][term]`, cm: the deltas of eight terms on the vertices of one block.
pub(crate) type Panel = [[f32; WIDTH]; COORDINATES];

/// Eight vertices and where their panels are.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) vertices: [u32; BLOCK],
    pub(crate) panels: std::ops::Range<usize>,
}

/// The deltas of every term, blocked.
#[derive(Debug, Clone)]
pub(crate) struct ShapeBlocks {
    pub(crate) blocks: Vec<Block>,
    pub(crate) panels: Vec<Panel>,
    /// The terms of every panel, ascending within a block; [`PAD`] at the end.
    pub(crate) terms: Vec<[u32; WIDTH]>,
    /// `block · 8 + lane` of every vertex; [`PAD`] for one that no term moves.
    pub(crate) place: Vec<u32>,
}

impl ShapeBlocks {
    pub(crate) fn new(rig: &BlendshapeRig, table: &TermTable) -> Self {
        let vertex_count = rig.neutral().len();
        let deltas = |term: usize| -> &SparseDeltas {
            match table.corrective(term) {
                Some(corrective) => &rig.correctives()[corrective].deltas,
                None => &rig.shapes()[term].deltas,
            }
        };
        // The same entries sorted by vertex, terms ascending within each.
        let mut start = vec![0usize; vertex_count + 1];
        for term in 0..table.len() {
            deltas(term).vertices.iter().for_each(|v| start[*v as usize + 1] += 1);
        }
        for vertex in 0..vertex_count {
            start[vertex + 1] += start[vertex];
        }
        let mut fill = start.clone();
        let mut entries = vec![(0u32, Vec3::ZERO); start[vertex_count]];
        for term in 0..table.len() {
            let list = deltas(term);
            for (vertex, delta) in list.vertices.iter().zip(&list.deltas) {
                entries[fill[*vertex as usize]] = (term as u32, *delta);
                fill[*vertex as usize] += 1;
            }
        }
        let of_vertex = |v: u32| &entries[start[v as usize]..start[v as usize + 1]];

        let mut moving: Vec<u32> = (0..vertex_count as u32).filter(|v| !of_vertex(*v).is_empty()).collect();
        sort_along_a_curve(&mut moving, rig.neutral());
        let mut blocks = Self {
            blocks: Vec::new(),
            panels: Vec::new(),
            terms: Vec::new(),
            place: vec![PAD; vertex_count],
        };
        for vertices in moving.chunks(BLOCK) {
            blocks.push(vertices, of_vertex);
        }
        blocks
    }

    fn push<'a>(&mut self, vertices: &[u32], of_vertex: impl Fn(u32) -> &'a [(u32, Vec3)]) {
        let block = self.blocks.len();
        let mut active: Vec<u32> = vertices.iter().flat_map(|v| of_vertex(*v).iter().map(|e| e.0)).collect();
        active.sort_unstable();
        active.dedup();
        let first = self.panels.len();
        for terms in active.chunks(WIDTH) {
            let mut list = [PAD; WIDTH];
            list[..terms.len()].copy_from_slice(terms);
            self.terms.push(list);
            self.panels.push([[0.0; WIDTH]; COORDINATES]);
        }
        let mut padded = [PAD; BLOCK];
        padded[..vertices.len()].copy_from_slice(vertices);
        for (lane, vertex) in vertices.iter().enumerate() {
            self.place[*vertex as usize] = (block * BLOCK + lane) as u32;
            for (term, delta) in of_vertex(*vertex) {
                let column = active.binary_search(term).expect("the list holds every term of the block");
                let panel = &mut self.panels[first + column / WIDTH];
                for (axis, value) in delta.to_array().into_iter().enumerate() {
                    panel[3 * lane + axis][column % WIDTH] = value;
                }
            }
        }
        self.blocks.push(Block { vertices: padded, panels: first..self.panels.len() });
    }

    /// The panels of a block that hold terms below `count`.
    pub(crate) fn panels_below(&self, block: usize, count: usize) -> std::ops::Range<usize> {
        let all = self.blocks[block].panels.clone();
        let kept = self.terms[all.clone()].partition_point(|terms| (terms[0] as usize) < count);
        all.start..all.start + kept
    }
}

/// Sorts vertices along a Z-curve through the neutral mesh: vertices of one block lie together, so they
/// share their terms whatever order the artist's mesh has.
fn sort_along_a_curve(vertices: &mut [u32], neutral: &[Vec3]) {
    let (mut low, mut high) = (Vec3::INFINITY, Vec3::NEG_INFINITY);
    for vertex in vertices.iter() {
        low = low.min(neutral[*vertex as usize]);
        high = high.max(neutral[*vertex as usize]);
    }
    let size = (high - low).max_element().max(f32::MIN_POSITIVE);
    let spread = |value: f32| (0..10).fold(0u32, |code, bit| code | ((value as u32 >> bit) & 1) << (3 * bit));
    let code = |vertex: &u32| {
        let cell = (neutral[*vertex as usize] - low) / size * 1023.0;
        (spread(cell.x) | spread(cell.y) << 1 | spread(cell.z) << 2, *vertex)
    };
    vertices.sort_by_cached_key(code);
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_testkit::synthetic::{SyntheticRig, random_rig};

    #[test]
    fn every_delta_is_stored_once_at_its_place() {
        let rig = random_rig(&SyntheticRig { vertices: 101, ..SyntheticRig::small(5) });
        let table = TermTable::new(&rig);
        let blocks = ShapeBlocks::new(&rig, &table);
        let mut found = vec![vec![Vec3::ZERO; 101]; table.len()];
        for block in &blocks.blocks {
            for panel in block.panels.clone() {
                for (column, term) in blocks.terms[panel].iter().enumerate() {
                    for (lane, vertex) in block.vertices.iter().enumerate() {
                        let at = |axis: usize| blocks.panels[panel][3 * lane + axis][column];
                        let delta = Vec3::new(at(0), at(1), at(2));
                        if *term == PAD || *vertex == PAD {
                            assert_eq!(delta, Vec3::ZERO);
                        } else {
                            found[*term as usize][*vertex as usize] += delta;
                        }
                    }
                }
            }
        }
        for term in 0..table.len() {
            let deltas = match table.corrective(term) {
                Some(corrective) => &rig.correctives()[corrective].deltas,
                None => &rig.shapes()[term].deltas,
            };
            assert_eq!(found[term], deltas.to_dense(101));
        }
    }
}
