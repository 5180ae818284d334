//! Pairs of lip vertices that touch when the mouth is shut, found by walking along the inner lips from
//! landmark to landmark.

use understudy_core::{Adjacency, Mesh};
use understudy_rigs::deformers::{Driver, LipPair, StickyLipsConfig, distances_along_edges};

/// Inner lips of the Multi-PIE 68: right corner, over the upper lip, left corner.
const UPPER: [usize; 5] = [60, 61, 62, 63, 64];
/// The same corners by way of the lower lip.
const LOWER: [usize; 5] = [60, 67, 66, 65, 64];

/// The settings, or `None` where the lips cannot be walked or have fewer than three pairs.
pub(super) fn sticky_lips(
    mesh: &Mesh,
    landmarks: &[u32; 68],
    zip_right: Driver,
    zip_left: Driver,
) -> Option<StickyLipsConfig> {
    let adjacency = mesh.adjacency();
    let upper = chain(mesh, &adjacency, UPPER.map(|l| landmarks[l]))?;
    let lower = chain(mesh, &adjacency, LOWER.map(|l| landmarks[l]))?;
    let pairs = pair_up(mesh, &upper, &lower);
    let width = mesh.positions()[landmarks[60] as usize].distance(mesh.positions()[landmarks[64] as usize]);
    (pairs.len() >= 3).then_some(StickyLipsConfig {
        pairs,
        zip_first: zip_right,
        zip_second: zip_left,
        seam: 0.5,
        spread: 0.35 * width,
        tear: f32::INFINITY,
    })
}

/// The vertices of the shortest way along edges through all stops; `None` where there is no way.
fn chain(mesh: &Mesh, adjacency: &Adjacency, stops: [u32; 5]) -> Option<Vec<u32>> {
    let mut walked = vec![stops[0]];
    for stop in &stops[1..] {
        let to_stop = distances_along_edges(adjacency, mesh.positions(), &[*stop], f32::INFINITY);
        let mut here = *walked.last()?;
        while here != *stop {
            let ring = adjacency.neighbours(here as usize);
            let step = |next: &u32| {
                let edge = mesh.positions()[*next as usize].distance(mesh.positions()[here as usize]);
                edge + to_stop[*next as usize]
            };
            here = *ring.iter().min_by(|a, b| step(a).total_cmp(&step(b)))?;
            // A walk that comes back to itself has lost the lip.
            if !to_stop[here as usize].is_finite() || walked.contains(&here) {
                return None;
            }
            walked.push(here);
        }
    }
    Some(walked)
}

/// How far along its chain each vertex is, 0 to 1.
fn places(mesh: &Mesh, chain: &[u32]) -> Vec<f32> {
    let at = |vertex: u32| mesh.positions()[vertex as usize];
    let mut walked = vec![0.0];
    for pair in chain.windows(2) {
        walked.push(walked[walked.len() - 1] + at(pair[0]).distance(at(pair[1])));
    }
    let whole = walked[walked.len() - 1].max(1e-6);
    walked.into_iter().map(|w| w / whole).collect()
}

/// Each vertex of the shorter chain with the nearest one of the longer chain that comes after the last
/// one taken. Corners belong to both lips and need no glue.
fn pair_up(mesh: &Mesh, upper: &[u32], lower: &[u32]) -> Vec<LipPair> {
    let swap = upper.len() > lower.len();
    let (short, long) = if swap { (lower, upper) } else { (upper, lower) };
    let (short_places, long_places) = (places(mesh, short), places(mesh, long));
    let mut pairs = Vec::new();
    let mut next = 1;
    for own in 1..short.len() - 1 {
        let left = short.len() - 1 - own;
        // Leave enough vertices for the pairs that are still to come.
        let last = (long.len() - 1).saturating_sub(left);
        let gap = |other: &usize| (long_places[*other] - short_places[own]).abs();
        let Some(other) = (next..=last).min_by(|a, b| gap(a).total_cmp(&gap(b))) else { break };
        let (a, b) = (short[own], long[other]);
        next = other + 1;
        if a != b && !upper.contains(&a).eq(&upper.contains(&b)) {
            let place = 0.5 * (short_places[own] + long_places[other]);
            let (upper, lower) = if swap { (b, a) } else { (a, b) };
            pairs.push(LipPair { upper, lower, place });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::{Face, MeshParts, Vec3};

    /// A ring of quads around a slit: 12 inner vertices, 12 outer ones.
    fn ring() -> Mesh {
        let place = |step: u32, size: f32| {
            let angle = std::f32::consts::PI + step as f32 * std::f32::consts::TAU / 12.0;
            Vec3::new(2.0 * size * angle.cos(), -0.3 * size * angle.sin(), 0.0)
        };
        let inner = (0..12).map(|step| place(step, 1.0));
        let positions = inner.chain((0..12).map(|step| place(step, 2.0))).collect();
        let faces = (0..12).map(|a| Face::quad(a, (a + 1) % 12, 12 + (a + 1) % 12, 12 + a)).collect();
        MeshParts { positions, faces, ..MeshParts::default() }.build().expect("a ring is valid")
    }

    #[test]
    fn pairs_lie_opposite_each_other() {
        let mesh = ring();
        let mut landmarks = [0u32; 68];
        for (landmark, vertex) in [(60, 0), (61, 2), (62, 3), (63, 4), (64, 6), (65, 8), (66, 9), (67, 10)] {
            landmarks[landmark] = vertex;
        }
        let config =
            sticky_lips(&mesh, &landmarks, Driver::constant(0.0), Driver::constant(0.0)).expect("lips");
        let found: Vec<(u32, u32)> = config.pairs.iter().map(|p| (p.upper, p.lower)).collect();
        assert_eq!(found, [(1, 11), (2, 10), (3, 9), (4, 8), (5, 7)]);
        assert!((config.pairs[2].place - 0.5).abs() < 1e-5);
    }
}
