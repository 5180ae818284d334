//! Where groups meet: which vertices beyond its border a group's network speaks of, and how corrections
//! fade into the groups. The run time's side is `understudy_runtime::body::SeamCorrection`.

use understudy_core::Adjacency;
use understudy_runtime::body::SeamCorrection;

/// No group: for marking.
const NONE: u32 = u32::MAX;

/// The group of every vertex.
pub fn owners(groups: &[(u32, Vec<u32>)], vertices: usize) -> Vec<u32> {
    let mut owner = vec![NONE; vertices];
    for (group, (_, members)) in (0u32..).zip(groups) {
        members.iter().for_each(|vertex| owner[*vertex as usize] = group);
    }
    owner
}

/// For each group the vertices of others that share an edge with it, ascending.
pub fn ghosts(adjacency: &Adjacency, groups: &[(u32, Vec<u32>)]) -> Vec<Vec<u32>> {
    let owner = owners(groups, adjacency.vertex_count());
    let beyond = |(group, (_, members)): (u32, &(u32, Vec<u32>))| {
        let near = members.iter().flat_map(|vertex| adjacency.neighbours(*vertex as usize));
        let mut out: Vec<u32> = near.copied().filter(|vertex| owner[*vertex as usize] != group).collect();
        out.sort_unstable();
        out.dedup();
        out
    };
    (0u32..).zip(groups).map(beyond).collect()
}

/// How many rings each of a group's vertices lies behind its border, `most` where it is that many or more.
pub fn rings(adjacency: &Adjacency, own: &[u32], ghosts: &[u32], most: usize) -> Vec<usize> {
    let mut ring = vec![most; adjacency.vertex_count()];
    let mut inside = vec![false; adjacency.vertex_count()];
    own.iter().for_each(|vertex| inside[*vertex as usize] = true);
    let mut front = ghosts.to_vec();
    for depth in 0..most {
        let near = front.iter().flat_map(|vertex| adjacency.neighbours(*vertex as usize)).copied();
        let next: Vec<u32> = near.filter(|v| inside[*v as usize] && ring[*v as usize] > depth).collect();
        next.iter().for_each(|vertex| ring[*vertex as usize] = depth);
        front = next;
        front.sort_unstable();
        front.dedup();
    }
    own.iter().map(|vertex| ring[*vertex as usize]).collect()
}

/// Corrections that fade linearly over `rings` rings of vertices: all of it at a border, none beyond.
pub fn seam_correction(
    adjacency: &Adjacency,
    groups: &[(u32, Vec<u32>)],
    ghosts: &[Vec<u32>],
    rings: usize,
) -> SeamCorrection {
    let owner = owners(groups, adjacency.vertex_count());
    let mut opinions: Vec<(u32, u32)> = Vec::new();
    for ghost in ghosts.iter().flatten() {
        opinions.push((*ghost, opinions.len() as u32));
    }
    opinions.sort_unstable();
    // Entry of every vertex, and the ring that it lies in.
    let mut entry = vec![NONE; adjacency.vertex_count()];
    let mut out = SeamCorrection { offsets: vec![0], ..SeamCorrection::default() };
    for (vertex, place) in opinions {
        if out.vertices.last() != Some(&vertex) {
            entry[vertex as usize] = out.vertices.len() as u32;
            out.vertices.push(vertex);
            out.shares.push(1.0);
            out.offsets.push(out.sources.len() as u32);
        }
        out.sources.push(place);
        if let Some(end) = out.offsets.last_mut() {
            *end = out.sources.len() as u32;
        }
    }
    out.border = out.vertices.len();
    let mut ring: Vec<u32> = out.vertices.clone();
    for depth in 1..rings {
        let inward = |vertex: &u32| {
            let (own, near) = (owner[*vertex as usize], adjacency.neighbours(*vertex as usize).iter());
            near.copied()
                .filter(|n| owner[*n as usize] == own && entry[*n as usize] == NONE)
                .collect::<Vec<_>>()
        };
        let mut next: Vec<u32> = ring.iter().flat_map(inward).collect();
        next.sort_unstable();
        next.dedup();
        let first = out.vertices.len();
        for vertex in &next {
            let before = adjacency.neighbours(*vertex as usize).iter().filter_map(|near| {
                let (near, own) = (*near as usize, owner[*vertex as usize]);
                (owner[near] == own && entry[near] != NONE).then_some(entry[near])
            });
            out.sources.extend(before);
            out.offsets.push(out.sources.len() as u32);
            out.vertices.push(*vertex);
            out.shares.push(1.0 - depth as f32 / rings as f32);
        }
        // Only now: a ring looks at the one before, not at itself.
        for (place, vertex) in next.iter().enumerate() {
            entry[*vertex as usize] = (first + place) as u32;
        }
        ring = next;
    }
    group_by_group(&out, &owner)
}

/// The same corrections with everything behind the borders in the order of the groups: neighbours in
/// memory are then neighbours on the mesh.
fn group_by_group(rings: &SeamCorrection, owner: &[u32]) -> SeamCorrection {
    let mut order: Vec<usize> = (0..rings.vertices.len()).collect();
    order[rings.border..].sort_by_key(|entry| owner[rings.vertices[*entry] as usize]);
    let mut place = vec![0u32; order.len()];
    (0u32..).zip(&order).for_each(|(new, old)| place[*old] = new);
    let mut out = SeamCorrection { border: rings.border, offsets: vec![0], ..SeamCorrection::default() };
    for &entry in &order {
        let sources = &rings.sources[rings.offsets[entry] as usize..rings.offsets[entry + 1] as usize];
        let at_border = entry < rings.border;
        out.sources.extend(sources.iter().map(|s| if at_border { *s } else { place[*s as usize] }));
        out.offsets.push(out.sources.len() as u32);
        out.vertices.push(rings.vertices[entry]);
        out.shares.push(rings.shares[entry]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Face;

    /// A strip of `2 × n` vertices, cut across into groups of the given lengths.
    fn strip(lengths: &[u32]) -> (Adjacency, Vec<(u32, Vec<u32>)>) {
        let n: u32 = lengths.iter().sum();
        let faces: Vec<Face> =
            (0..n - 1).map(|i| Face::quad(2 * i, 2 * i + 1, 2 * i + 3, 2 * i + 2)).collect();
        let mut start = 0;
        let mut groups = Vec::new();
        for (bone, length) in (0u32..).zip(lengths) {
            groups.push((bone, (2 * start..2 * (start + length)).collect()));
            start += length;
        }
        (Adjacency::from_faces(2 * n as usize, &faces), groups)
    }

    #[test]
    fn ghosts_are_the_neighbours_beyond_the_border() {
        let (adjacency, groups) = strip(&[3, 2, 4]);
        let ghosts = ghosts(&adjacency, &groups);
        assert_eq!(ghosts, [vec![6, 7], vec![4, 5, 10, 11], vec![8, 9]]);
        assert_eq!(rings(&adjacency, &groups[0].1, &ghosts[0], 5), [2, 2, 1, 1, 0, 0]);
        assert_eq!(rings(&adjacency, &groups[0].1, &ghosts[0], 1), [1, 1, 1, 1, 0, 0]);
        assert_eq!(rings(&adjacency, &groups[0].1, &[], 3), [3; 6]);
    }

    #[test]
    fn corrections_fade_ring_by_ring_and_stay_in_their_group() {
        let (adjacency, groups) = strip(&[6, 6]);
        let ghosts = ghosts(&adjacency, &groups);
        let seams = seam_correction(&adjacency, &groups, &ghosts, 4);
        assert_eq!(seams.border, 4);
        assert_eq!(&seams.vertices[..4], [10, 11, 12, 13]);
        // Opinions: the first group's on 12 and 13, then the second's on 10 and 11.
        assert_eq!(&seams.sources[..4], [2, 3, 0, 1]);
        assert_eq!(seams.vertices.len(), 16);
        let share = |vertex: u32| {
            let place = seams.vertices.iter().position(|v| *v == vertex);
            place.map(|place| seams.shares[place])
        };
        assert_eq!([10, 8, 6, 4, 2].map(share), [Some(1.0), Some(0.75), Some(0.5), Some(0.25), None]);
        // Behind the border a vertex follows its neighbour in the ring before, on its own side.
        let eight = seams.vertices.iter().position(|v| *v == 8).expect("in the second ring");
        let sources = &seams.sources[seams.offsets[eight] as usize..seams.offsets[eight + 1] as usize];
        assert_eq!(sources.iter().map(|s| seams.vertices[*s as usize]).collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn a_mesh_in_one_group_needs_no_stitch() {
        let (adjacency, groups) = strip(&[5]);
        let ghosts = ghosts(&adjacency, &groups);
        assert!(seam_correction(&adjacency, &groups, &ghosts, 4).vertices.is_empty());
    }
}
