//! Where groups should meet: not where a fold or a swinging hem makes neighbours move differently, but where
//! they move alike. Two networks then have little to disagree on, and a border does not show.

use super::seams;
use super::{Armature, Recording};
use rayon::prelude::*;
use understudy_core::{Adjacency, SkinWeights, Vec3};

/// Poses that suffice to see where neighbours move differently.
const MOST_POSES: usize = 200;
/// Rounds in which a vertex takes the mean of its neighbours: borders should follow the lie of the land and not
/// every pebble.
const SMOOTHING: usize = 2;
/// What an edge that no border cuts yet counts more, as a share of the mean strain: where it is calm
/// everywhere, borders stay.
const STAY: f64 = 0.3;

/// How differently from its neighbours each vertex moves beyond what `base` explains, cm.
pub fn strain(poses: &Recording, armature: &Armature, adjacency: &Adjacency, base: &SkinWeights) -> Vec<f64> {
    let rest = poses.mesh.positions();
    let chosen = poses.spread(MOST_POSES);
    let one = |pose: &usize| -> Vec<f64> {
        let carriers = armature.carriers(poses.bones_of(*pose));
        let mut left = vec![Vec3::ZERO; rest.len()];
        base.linear_blend(&carriers, rest, &mut left);
        left.iter_mut().zip(poses.vertices_of(*pose)).for_each(|(place, truth)| *place = *truth - *place);
        let jump = |vertex: usize| {
            let near = adjacency.neighbours(vertex);
            let sum: f32 = near.iter().map(|n| left[*n as usize].distance(left[vertex])).sum();
            f64::from(sum) / near.len().max(1) as f64
        };
        (0..rest.len()).map(jump).collect()
    };
    let rows: Vec<Vec<f64>> = chosen.par_iter().map(one).collect();
    let mut out = vec![0.0; rest.len()];
    for row in &rows {
        out.iter_mut().zip(row).for_each(|(sum, jump)| *sum += jump / rows.len() as f64);
    }
    for _ in 0..SMOOTHING {
        let mean = |vertex: usize| {
            let near = adjacency.neighbours(vertex);
            let sum: f64 = near.iter().map(|n| out[*n as usize]).sum();
            0.5 * out[vertex] + 0.5 * sum / near.len().max(1) as f64
        };
        out = (0..out.len()).map(mean).collect();
    }
    out
}

/// Moves the borders of groups by up to `rings` rings to where there is little strain. Vertices deeper inside
/// keep their group; the others join them one edge after another, those with most strain first, until only
/// the edges with least are left to be cut: a maximum spanning forest, rooted in the groups.
pub fn settle(adjacency: &Adjacency, owner: &[u32], strain: &[f64], rings: usize) -> Vec<u32> {
    let mut forest =
        Forest { parent: (0..owner.len() as u32).collect(), label: roots(adjacency, owner, rings) };
    let stay = STAY * 2.0 * strain.iter().sum::<f64>() / strain.len().max(1) as f64;
    let edge = |(a, b): (u32, u32)| {
        let (one, other) = (a as usize, b as usize);
        let own = if owner[one] == owner[other] { stay } else { 0.0 };
        (strain[one] + strain[other] + own, a, b)
    };
    let mut edges: Vec<(f64, u32, u32)> = adjacency.edges().map(edge).collect();
    edges.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    for (_, a, b) in edges {
        forest.join(a, b);
    }
    let label = |vertex: u32| {
        let root = forest.root(vertex);
        // A part of the mesh without any root stays what it was.
        forest.label[root as usize].unwrap_or(owner[vertex as usize])
    };
    (0..owner.len() as u32).map(label).collect()
}

/// The group of every vertex that keeps it: those `rings` or more behind the border, and in a smaller group
/// those that lie deepest.
fn roots(adjacency: &Adjacency, owner: &[u32], rings: usize) -> Vec<Option<u32>> {
    let groups = owner.iter().max().map_or(0, |last| *last as usize + 1);
    let mut members: Vec<(u32, Vec<u32>)> = (0..groups as u32).map(|group| (group, Vec::new())).collect();
    for (vertex, group) in (0u32..).zip(owner) {
        members[*group as usize].1.push(vertex);
    }
    let ghosts = seams::ghosts(adjacency, &members);
    let mut out = vec![None; owner.len()];
    for ((group, own), ghosts) in members.iter().zip(&ghosts) {
        let depth = seams::rings(adjacency, own, ghosts, rings);
        let deepest = depth.iter().max().copied().unwrap_or(0);
        for (vertex, _) in own.iter().zip(&depth).filter(|(_, depth)| **depth == deepest) {
            out[*vertex as usize] = Some(*group);
        }
    }
    out
}

/// Trees of vertices; a tree has one label or none.
struct Forest {
    parent: Vec<u32>,
    /// Of roots.
    label: Vec<Option<u32>>,
}

impl Forest {
    fn root(&self, mut vertex: u32) -> u32 {
        while self.parent[vertex as usize] != vertex {
            vertex = self.parent[vertex as usize];
        }
        vertex
    }

    /// Makes one tree of two, unless both have labels, and different ones.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.shorten(a), self.shorten(b));
        let (one, other) = (self.label[a as usize], self.label[b as usize]);
        if a == b || (one.is_some() && other.is_some() && one != other) {
            return;
        }
        self.parent[b as usize] = a;
        self.label[a as usize] = one.or(other);
    }

    /// The root, which becomes the parent of all on the way.
    fn shorten(&mut self, vertex: u32) -> u32 {
        let root = self.root(vertex);
        let mut vertex = vertex;
        while vertex != root {
            vertex = std::mem::replace(&mut self.parent[vertex as usize], root);
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Face;

    /// A band of `4 × n` vertices.
    fn band(n: u32) -> Adjacency {
        let quad = |i: u32, j: u32| Face::quad(4 * i + j, 4 * i + j + 1, 4 * i + j + 5, 4 * i + j + 4);
        let faces: Vec<Face> = (0..n - 1).flat_map(|i| (0..3).map(move |j| quad(i, j))).collect();
        Adjacency::from_faces(4 * n as usize, &faces)
    }

    #[test]
    fn a_border_leaves_a_fold() {
        let adjacency = band(12);
        // Groups meet at the sixth column, where a fold lies; it ends two columns further.
        let owner: Vec<u32> = (0..48).map(|v| u32::from(v / 4 >= 6)).collect();
        let strain: Vec<f64> = (0..48).map(|v| if (4..8).contains(&(v / 4)) { 1.0 } else { 0.1 }).collect();
        let settled = settle(&adjacency, &owner, &strain, 4);
        let cut = |owner: &[u32]| -> f64 {
            let near = |v: usize| adjacency.neighbours(v).iter().map(move |n| (v, *n as usize));
            let cut = (0..48).flat_map(near).filter(|(a, b)| owner[*a] != owner[*b]);
            cut.map(|(a, b)| strain[a] + strain[b]).sum()
        };
        assert!(cut(&settled) < 0.6 * cut(&owner), "{} {}", cut(&settled), cut(&owner));
        // What lies deep stays.
        assert!(
            settled[..8].iter().all(|group| *group == 0) && settled[40..].iter().all(|group| *group == 1)
        );
    }

    #[test]
    fn without_strain_or_neighbours_nothing_is_lost() {
        let adjacency = band(6);
        let one = settle(&adjacency, &[0; 24], &[0.0; 24], 3);
        assert_eq!(one, [0; 24]);
        // A group of one vertex keeps it.
        let mut owner = vec![0; 24];
        owner[13] = 1;
        assert!(settle(&adjacency, &owner, &[1.0; 24], 3).contains(&1));
        assert!(settle(&band(1), &[0, 1, 2, 3], &[0.0; 4], 3) == [0, 1, 2, 3]);
    }
}
