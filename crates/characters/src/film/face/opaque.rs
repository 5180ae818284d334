//! Parts of a real-time head that only work with transparency, made fit for opaque drawing: shells over
//! the eye are sunk into it, lash cards are trimmed to their roots.

use super::{Anatomy, FaceHints, vertices_of};
use understudy_core::{BlendshapeRig, Mesh, SparseDeltas, Vec3};
use understudy_rigs::RigError;
use understudy_rigs::deformers::distances_along_edges;

/// Length of a lash that is left.
const TRIM: f32 = 0.125;
/// Depth of a sunk shell, as a share of the eyeball's radius.
const SUNK: f32 = 0.7;

/// Changes rest positions and shapes alike; topology and vertex count stay.
pub(super) fn make_opaque(
    mesh: Mesh,
    shapes: BlendshapeRig,
    hints: &FaceHints,
    anatomy: &Anatomy,
) -> Result<(Mesh, BlendshapeRig), RigError> {
    let mut positions = mesh.positions().to_vec();
    let mut sunk = vec![false; positions.len()];
    for vertex in vertices_of(&mesh, &hints.veils)? {
        let point = &mut positions[vertex as usize];
        let distance = |eye: &super::FoundEye| eye.centre.distance(*point);
        let nearest = anatomy.eyes.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(eye) = nearest {
            *point = eye.centre + (*point - eye.centre).normalize_or_zero() * (SUNK * eye.radius);
            sunk[vertex as usize] = true;
        }
    }
    let roots = lash_roots(&mesh, hints, anatomy)?;
    trim(&roots, &mut positions);
    let mut layer = shapes.shapes().to_vec();
    for shape in &mut layer {
        let mut moves = shape.deltas.to_dense(positions.len());
        for (delta, sunk) in moves.iter_mut().zip(&sunk) {
            if *sunk {
                *delta = Vec3::ZERO;
            }
        }
        trim(&roots, &mut moves);
        shape.deltas = SparseDeltas::from_dense(&moves, 0.0);
    }
    let mesh = mesh.with_positions(&positions)?;
    Ok((mesh, BlendshapeRig::new(positions, layer, Vec::new())?))
}

/// Every lash vertex with its root.
fn lash_roots(mesh: &Mesh, hints: &FaceHints, anatomy: &Anatomy) -> Result<Vec<(u32, u32)>, RigError> {
    let lashes = vertices_of(mesh, &hints.lashes)?;
    let skin: Vec<Vec3> = (0..mesh.vertex_count())
        .filter(|v| anatomy.skin[*v])
        .map(|v| mesh.positions()[v])
        .filter(|p| anatomy.eyes.iter().any(|eye| eye.centre.distance(*p) < 2.0 * eye.radius))
        .collect();
    let to_skin = |vertex: u32| {
        let point = mesh.positions()[vertex as usize];
        skin.iter().map(|s| s.distance_squared(point)).fold(f32::INFINITY, f32::min).sqrt()
    };
    let (island, count) = mesh.islands();
    let mut cards: Vec<Vec<u32>> = vec![Vec::new(); count];
    for vertex in lashes {
        cards[island[vertex as usize] as usize].push(vertex);
    }
    let adjacency = mesh.adjacency();
    let mut pairs = Vec::new();
    for card in cards.into_iter().filter(|card| !card.is_empty()) {
        // The border that lies on the lid: the third of the card that is nearest to the skin.
        let mut nearest: Vec<(f32, u32)> = card.iter().map(|v| (to_skin(*v), *v)).collect();
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let roots: Vec<u32> = nearest[..card.len().div_ceil(3)].iter().map(|n| n.1).collect();
        let ways: Vec<Vec<f32>> = roots
            .iter()
            .map(|root| distances_along_edges(&adjacency, mesh.positions(), &[*root], f32::INFINITY))
            .collect();
        for vertex in card {
            let way = |root: &usize| ways[*root][vertex as usize];
            let best = (0..roots.len()).min_by(|a, b| way(a).total_cmp(&way(b)));
            pairs.push((vertex, roots[best.expect("a card has roots")]));
        }
    }
    Ok(pairs)
}

/// Pulls lash vertices to their roots; linear, so it works on positions and on movements.
fn trim(roots: &[(u32, u32)], values: &mut [Vec3]) {
    for &(vertex, root) in roots.iter().filter(|(vertex, root)| vertex != root) {
        let base = values[root as usize];
        values[vertex as usize] = base + (values[vertex as usize] - base) * TRIM;
    }
}
