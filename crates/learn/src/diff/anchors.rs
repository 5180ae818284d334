//! Which vertices are anchors: spread over the mesh, densely where the displacement before skinning has much energy, and
//! at least one on every island, which the reconstruction could not place otherwise.

use super::DiffLearnError;
use super::graph::Graph;
use understudy_core::Vec3;

/// A vertex that never moves counts as much as this share of the mean energy: anchors there hold the mesh in place.
const CALM: f64 = 0.1;

/// So many anchors, ascending; more where there are more islands. `energy`: mean square of the displacement of every
/// vertex, cm². Greedy: the next anchor is where energy times squared distance to the nearest anchor is largest, so that
/// the density of anchors follows the energy.
pub fn choose(graph: &Graph, rest: &[Vec3], energy: &[f64], count: usize) -> Vec<u32> {
    let mean = energy.iter().sum::<f64>() / energy.len().max(1) as f64;
    let weight = |vertex: usize| energy[vertex] + CALM * mean + f64::MIN_POSITIVE;
    let mut chosen: Vec<u32> = first_of_islands(graph, energy);
    let mut nearest = vec![f64::INFINITY; rest.len()];
    let settle = |anchor: u32, nearest: &mut [f64]| {
        let place = rest[anchor as usize];
        for (vertex, distance) in nearest.iter_mut().enumerate() {
            // An anchor of another island holds nothing here.
            if graph.island[vertex] == graph.island[anchor as usize] {
                *distance = distance.min(f64::from(place.distance_squared(rest[vertex])));
            }
        }
    };
    chosen.iter().for_each(|anchor| settle(*anchor, &mut nearest));
    while chosen.len() < count.min(rest.len()) {
        let score = |vertex: usize| weight(vertex) * nearest[vertex];
        let best = (0..rest.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)).then(b.cmp(a)));
        let Some(best) = best.filter(|best| nearest[*best] > 0.0) else { break };
        chosen.push(best as u32);
        settle(best as u32, &mut nearest);
    }
    chosen.sort_unstable();
    chosen
}

/// The vertex of most energy on every island.
fn first_of_islands(graph: &Graph, energy: &[f64]) -> Vec<u32> {
    let mut first: Vec<Option<u32>> = vec![None; graph.islands];
    for vertex in 0..energy.len() {
        let best = &mut first[graph.island[vertex] as usize];
        if best.is_none_or(|best| energy[vertex] > energy[best as usize]) {
            *best = Some(vertex as u32);
        }
    }
    first.into_iter().flatten().collect()
}

/// The user's anchors, ascending and each once, with one more for every island that has none; and how many were added.
pub fn complete(graph: &Graph, energy: &[f64], chosen: &[u32]) -> Result<(Vec<u32>, usize), DiffLearnError> {
    let count = graph.len();
    if let Some(vertex) = chosen.iter().find(|vertex| **vertex as usize >= count) {
        return Err(DiffLearnError::Anchor { vertex: *vertex, count });
    }
    let mut held = vec![false; graph.islands];
    chosen.iter().for_each(|vertex| held[graph.island[*vertex as usize] as usize] = true);
    let first = first_of_islands(graph, energy);
    let added: Vec<u32> =
        first.into_iter().filter(|vertex| !held[graph.island[*vertex as usize] as usize]).collect();
    let mut all = chosen.to_vec();
    all.extend(&added);
    all.sort_unstable();
    all.dedup();
    Ok((all, added.len()))
}
