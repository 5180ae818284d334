//! Weights from one mesh to another (Abdrashitov et al. 2023): clothes and levels of detail take their body's. Vertices
//! whose closest point on the source is near and faces the same way (not merely along the same line) take its weights; the rest is filled in smoothly
//! from those, `min Σ_j w_jᵀ (L + L M⁻¹ L) w_j`, so that the far side of an armpit never bleeds in.

use super::domain::{Domain, Surface, nearest_node};
use super::simplex::normalise;
use super::{Hear, WeightsError, WeightsProgress, keep_largest};
use crate::closest::TriangleTree;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_core::sparse_cholesky::SparseCholesky;
use understudy_core::{DVec3, Mesh, SkinWeights};

/// Vertices between two looks at whether to go on.
const LOOK: usize = 1024;

/// What counts as a match.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferSettings {
    /// How far a match may be, as a share of the target's diagonal.
    pub distance: f64,
    /// By how much the normals of a match may differ, degrees.
    pub degrees: f64,
    /// Whether a surface that faces the opposite way matches, too: for cloth whose faces point either way. Where parts of
    /// the source face each other, as an arm and the side do, it lets one bleed into the other.
    pub two_sided: bool,
    /// Handles per vertex at most.
    pub max_influences: Option<usize>,
}

impl Default for TransferSettings {
    fn default() -> Self {
        Self { distance: 0.05, degrees: 30.0, two_sided: false, max_influences: None }
    }
}

/// Transferred weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Transferred {
    /// Of every vertex of the target.
    pub weights: SkinWeights,
    /// Which vertices matched; the others were filled in.
    pub matched: Vec<bool>,
    /// What was mended or stands alone.
    pub notes: Vec<String>,
}

/// Weights of `source` for `target`; both in one space and unit. `hear` may end it.
pub fn transfer_weights(
    source: &Mesh,
    weights: &SkinWeights,
    target: &Mesh,
    settings: &TransferSettings,
    hear: Hear<'_>,
) -> Result<Transferred, WeightsError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(settings.distance) || !positive(settings.degrees) {
        let problem = format!("{} and {}; more than 0 is wanted", settings.distance, settings.degrees);
        return Err(WeightsError::Setting { name: "the distance and the angle of a match", problem });
    }
    if settings.max_influences == Some(0) {
        let problem = "0; at least 1 is wanted".into();
        return Err(WeightsError::Setting { name: "the number of influences", problem });
    }
    if weights.vertex_count() != source.vertex_count() {
        let (got, want) = (weights.vertex_count().to_string(), source.vertex_count().to_string());
        return Err(WeightsError::Shape { got, want });
    }
    let surface = Surface::new(target)?;
    let domain = Domain::of_surface(&surface);
    let h = weights.bone_count();
    let points: Vec<DVec3> = source.positions().iter().map(|p| surface.inward(p.as_dvec3())).collect();
    let triangles = source.triangles();
    let tree = TriangleTree::new(&points, &triangles);
    let source_normals = normals(&points, &triangles);
    let node_triangles: Vec<[u32; 3]> =
        surface.triangles.iter().map(|t| t.map(|v| domain.node_of_vertex[v as usize])).collect();
    let target_normals = normals(&domain.points, &node_triangles);
    let least = settings.degrees.min(180.0).to_radians().cos();
    let (done, total) = (AtomicUsize::new(0), domain.points.len());
    let heard = |what, unit, done, total| match hear(WeightsProgress { what, unit, done, total }) {
        true => Ok(()),
        false => Err(WeightsError::Stopped),
    };
    let found: Vec<(Vec<f64>, bool)> = domain
        .points
        .par_iter()
        .zip(&target_normals)
        .map(|(p, normal)| {
            let before = done.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(LOOK) {
                heard("matching", "vertices", before, total)?;
            }
            let mut row = vec![0.0; h];
            let Some(hit) = tree.closest(*p) else { return Ok((row, false)) };
            let corners = triangles[hit.triangle];
            let mut there = DVec3::ZERO;
            for (corner, share) in corners.iter().zip(hit.weights) {
                there += source_normals[*corner as usize] * share;
                weights.row(*corner as usize).for_each(|(bone, w)| row[bone] += share * f64::from(w));
            }
            let along = there.normalize_or_zero().dot(*normal);
            let faces = if settings.two_sided { along.abs() } else { along } >= least;
            Ok((row, faces && hit.squared_distance <= settings.distance * settings.distance))
        })
        .collect::<Result<_, WeightsError>>()?;
    let mut notes = surface.notes.clone();
    let mut is_matched: Vec<bool> = found.iter().map(|row| row.1).collect();
    // A part without a match takes what is closest, however far.
    let mut reached = vec![false; domain.parts];
    (0..is_matched.len()).filter(|v| is_matched[*v]).for_each(|v| reached[domain.part[v] as usize] = true);
    let alone = (0..is_matched.len()).filter(|v| !reached[domain.part[*v] as usize]);
    let alone: Vec<usize> = alone.collect();
    if !alone.is_empty() {
        let parts = reached.iter().filter(|reached| !**reached).count();
        notes
            .push(format!("{parts} parts ({} vertices) match nothing and take what is nearest", alone.len()));
        if !settings.two_sided {
            notes.push("faces that point the other way match with a two-sided transfer only".into());
        }
    }
    let by_match = is_matched.clone();
    alone.iter().for_each(|v| is_matched[*v] = true);
    let n = domain.points.len();
    let mut nodes = vec![0.0; n * h];
    for (node, (row, _)) in found.iter().enumerate().filter(|(node, _)| is_matched[*node]) {
        (0..h).for_each(|j| nodes[j * n + node] = row[j]);
    }
    let free: Vec<u32> = (0..n as u32).filter(|node| !is_matched[*node as usize]).collect();
    if !free.is_empty() {
        let bend = domain.stiffness();
        // Both operators in one pattern.
        let shift = sum(&bend, &domain.laplacian);
        let factor = SparseCholesky::new(&shift.principal(&free))
            .ok_or(WeightsError::Factor { unknowns: free.len(), why: "a part of the mesh is degenerate" })?;
        let done = AtomicUsize::new(0);
        let fill = |column: &mut [f64]| -> Result<(), WeightsError> {
            heard("filling in", "bones", done.fetch_add(1, Ordering::Relaxed), h)?;
            if column.iter().all(|w| *w == 0.0) {
                return Ok(());
            }
            let pull = shift.times(column);
            let mut right: Vec<f64> = free.iter().map(|node| -pull[*node as usize]).collect();
            factor.solve(&mut right);
            free.iter().zip(&right).for_each(|(node, w)| column[*node as usize] = *w);
            Ok(())
        };
        nodes.par_chunks_mut(n).map(fill).collect::<Result<(), WeightsError>>()?;
    }
    let mut rows = Vec::with_capacity(target.vertex_count());
    let mut matched = Vec::with_capacity(target.vertex_count());
    for node in &domain.node_of_vertex {
        let node = *node as usize;
        let mut row: Vec<f64> = (0..h).map(|j| nodes[j * n + node]).collect();
        if row.iter().all(|w| *w <= 0.0) {
            let nearest = nearest_node(&points, domain.points[node]) as usize;
            weights.row(nearest).for_each(|(bone, w)| row[bone] = f64::from(w));
        }
        if let Some(most) = settings.max_influences {
            keep_largest(&mut row, most);
        }
        normalise(&mut row);
        // What is too small to see only costs.
        row.iter_mut().for_each(|w| *w = if *w < 1e-4 { 0.0 } else { *w });
        normalise(&mut row);
        rows.push(row.iter().enumerate().map(|(bone, w)| (bone as u16, *w as f32)).collect::<Vec<_>>());
        matched.push(by_match[node]);
    }
    let weights = SkinWeights::from_rows(&rows, h).map_err(|error| WeightsError::Shape {
        got: error.to_string(),
        want: "rows that sum to one".into(),
    })?;
    Ok(Transferred { weights, matched, notes })
}

/// `A + B`, where `B`'s places are among `A`'s.
fn sum(
    a: &understudy_core::laplacian::SparseRows,
    b: &understudy_core::laplacian::SparseRows,
) -> understudy_core::laplacian::SparseRows {
    let all = |m: &understudy_core::laplacian::SparseRows| -> Vec<(u32, u32, f64)> {
        (0..m.size()).flat_map(|row| m.row(row).map(move |(c, v)| (row as u32, c as u32, v))).collect()
    };
    let mut triplets = all(a);
    triplets.extend(all(b));
    understudy_core::laplacian::SparseRows::from_triplets(a.size(), triplets)
}

/// Area-weighted unit normals, `[V]`.
fn normals(points: &[DVec3], triangles: &[[u32; 3]]) -> Vec<DVec3> {
    let mut out = vec![DVec3::ZERO; points.len()];
    for t in triangles {
        let [a, b, c] = t.map(|v| points[v as usize]);
        let normal = (b - a).cross(c - a);
        t.iter().for_each(|v| out[*v as usize] += normal);
    }
    out.into_iter().map(DVec3::normalize_or_zero).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::tube;
    use super::*;
    use understudy_core::Vec3;

    /// Weights that fall along the tube, from the height alone: true on any mesh of the same space.
    fn truth(p: Vec3) -> f32 {
        ((p.y - 3.0) / 4.0).clamp(0.0, 1.0)
    }

    fn weighted(mesh: &Mesh) -> SkinWeights {
        let rows: Vec<_> =
            mesh.positions().iter().map(|p| vec![(0u16, 1.0 - truth(*p)), (1, truth(*p))]).collect();
        SkinWeights::from_rows(&rows, 2).expect("convex")
    }

    fn mean_error(transferred: &Transferred, target: &Mesh) -> f32 {
        let error = |vertex: usize| {
            let got: f32 = transferred.weights.row(vertex).filter(|(b, _)| *b == 1).map(|(_, w)| w).sum();
            (got - truth(target.positions()[vertex])).abs()
        };
        (0..target.vertex_count()).map(error).sum::<f32>() / target.vertex_count() as f32
    }

    #[test]
    fn coarser_meshes_and_shells_get_the_weights_that_they_should() {
        let body = tube(1.0, 10.0, 32, 60);
        let weights = weighted(&body);
        for target in [tube(1.0, 10.0, 12, 25), tube(1.15, 10.0, 24, 40)] {
            let got = transfer_weights(&body, &weights, &target, &TransferSettings::default(), &|_| true)
                .expect("moved");
            let error = mean_error(&got, &target);
            assert!(error < 0.02, "{error}");
            for vertex in 0..target.vertex_count() {
                let sum: f32 = got.weights.row(vertex).map(|(_, w)| w).sum();
                assert!((sum - 1.0).abs() < 1e-5);
            }
        }
        let one = TransferSettings { max_influences: Some(1), ..TransferSettings::default() };
        let got = transfer_weights(&body, &weights, &body, &one, &|_| true).expect("moved");
        assert_eq!(got.weights.max_influences(), 1);
    }

    /// A sheet of 21 × 11 vertices at heights, facing up or down; the first vertex is `first`.
    fn sheet(parts: &mut understudy_core::MeshParts, faces_up: bool, height: impl Fn(f32) -> f32) {
        let first = parts.positions.len() as u32;
        for place in 0..21 * 11 {
            let (x, z) = ((place % 21) as f32 * 0.5, (place / 21) as f32 * 0.5);
            parts.positions.push(Vec3::new(x, height(x), z));
        }
        for place in (0..20 * 10).map(|k| first + k / 20 * 21 + k % 20) {
            let [a, b, c, d] = [place, place + 21, place + 22, place + 1];
            parts.faces.push(match faces_up {
                true => understudy_core::Face::quad(a, b, c, d),
                false => understudy_core::Face::quad(d, c, b, a),
            });
        }
    }

    #[test]
    fn what_faces_the_other_way_across_a_gap_does_not_bleed() {
        // An armpit: the torso faces up, the arm above it faces down, and a shirt of the torso stands off it so far
        // that, on one half, the arm is nearer.
        let mut parts = understudy_core::MeshParts::default();
        sheet(&mut parts, true, |_| 0.0);
        sheet(&mut parts, false, |_| 1.0);
        let body = parts.build().expect("two sheets");
        let rows: Vec<_> = (0..2 * 231).map(|v| vec![(u16::from(v >= 231), 1.0)]).collect();
        let weights = SkinWeights::from_rows(&rows, 2).expect("convex");
        let mut parts = understudy_core::MeshParts::default();
        sheet(&mut parts, true, |x| if x < 5.0 { 0.1 } else { 0.1 + 0.5 * ((x - 5.0) / 2.0).min(1.0) });
        let shirt = parts.build().expect("a sheet");
        let of_the_arm = |settings: &TransferSettings| {
            let got = transfer_weights(&body, &weights, &shirt, settings, &|_| true).expect("moved");
            let arm = |v: usize| got.weights.row(v).filter(|(b, _)| *b == 1).map(|(_, w)| w).sum::<f32>();
            (0..shirt.vertex_count()).map(arm).fold(0.0f32, f32::max)
        };
        let plain = TransferSettings { distance: 0.2, ..TransferSettings::default() };
        assert!(of_the_arm(&plain) < 1e-3, "{}", of_the_arm(&plain));
        // Without the direction it does: the test would see it.
        assert!(of_the_arm(&TransferSettings { two_sided: true, ..plain }) > 0.9);
        let stopped = transfer_weights(&body, &weights, &shirt, &plain, &|_| false);
        assert_eq!(stopped, Err(WeightsError::Stopped));
    }

    #[test]
    fn what_does_not_match_is_filled_in_and_what_is_far_takes_the_nearest() {
        let body = tube(1.0, 10.0, 32, 60);
        let weights = weighted(&body);
        // A sleeve that stands far off in its middle: the bulge matches nothing.
        let sleeve = tube(1.05, 10.0, 24, 41);
        let bulged: Vec<Vec3> = sleeve
            .positions()
            .iter()
            .map(|p| *p * if (p.y - 5.0).abs() < 1.2 { Vec3::new(2.4, 1.0, 2.4) } else { Vec3::ONE })
            .collect();
        let sleeve = sleeve.with_positions(&bulged).expect("the same topology");
        let got = transfer_weights(&body, &weights, &sleeve, &TransferSettings::default(), &|_| true)
            .expect("moved");
        let filled = got.matched.iter().filter(|m| !**m).count();
        assert!(filled > 100 && filled < got.matched.len() / 2, "{filled}");
        assert!(mean_error(&got, &sleeve) < 0.05, "{}", mean_error(&got, &sleeve));
        // Far away nothing matches: every vertex takes the nearest, and that is said.
        let moved: Vec<Vec3> = body.positions().iter().map(|p| *p + Vec3::X * 50.0).collect();
        let away = body.with_positions(&moved).expect("the same topology");
        let got =
            transfer_weights(&body, &weights, &away, &TransferSettings::default(), &|_| true).expect("moved");
        assert!(
            got.matched.iter().all(|m| !m) && got.notes.iter().any(|note| note.contains("match nothing"))
        );
        let bad = TransferSettings { degrees: 0.0, ..TransferSettings::default() };
        assert!(transfer_weights(&body, &weights, &away, &bad, &|_| true).is_err());
    }
}
