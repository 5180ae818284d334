//! Bone heat (Baran and Popović 2007): every vertex is heated by the nearest handle that it sees,
//! `(L + M H) w_j = M H p_j` with `H = c / d²`. What Maya's and Blender's users know; where no handle is seen it takes
//! the nearest one instead of failing.

use super::domain::{Domain, Surface};
use super::handles::{Handle, HandleShape, nearest_on_segment};
use super::{WeightsError, keep_largest_of_columns};
use crate::closest::TriangleTree;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use understudy_core::DVec3;
use understudy_core::sparse_cholesky::SparseCholesky;

/// Handles whose distances differ by less than this share heat together.
const TOGETHER: f64 = 1e-4;

/// Nodes between two looks at whether to go on.
const LOOK: usize = 512;

/// Weights of all handles on a surface, `[columns][N]`, and how many nodes see no handle. With at most `most` handles per
/// node, what is kept is heated again by itself. `hear` gets nodes that are done; `false` ends it.
pub(super) fn heat(
    handles: &[Handle],
    surface: &Surface,
    domain: &Domain,
    most: Option<usize>,
    hear: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Result<(Vec<f64>, usize), WeightsError> {
    let n = domain.points.len();
    let tree = TriangleTree::new(&surface.points, &surface.triangles);
    let at = |v: u32| surface.points[v as usize];
    let nearest = |handle: &Handle, p: DVec3| -> Result<DVec3, WeightsError> {
        Ok(match &handle.shape {
            HandleShape::Vertex(vertex) => at(*vertex),
            HandleShape::Point(place) => surface.inward(*place),
            HandleShape::Bone { head, tail } => {
                nearest_on_segment(p, surface.inward(*head), surface.inward(*tail))
            }
            HandleShape::Region(vertices) => {
                let distance = |v: &u32| (at(*v) - p).length_squared();
                let vertex = vertices.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
                at(*vertex.expect("regions hold vertices"))
            }
            HandleShape::Cage { .. } => {
                return Err(WeightsError::NeedsVolume {
                    handle: handle.name.clone(),
                    problem: "is a cage, which heat does not know",
                });
            }
        })
    };
    let h = handles.len();
    let done = AtomicUsize::new(0);
    let rows: Vec<(Vec<f64>, f64, bool)> = (0..n)
        .into_par_iter()
        .map(|node| {
            let before = done.fetch_add(1, Ordering::Relaxed);
            if before.is_multiple_of(LOOK) && !hear(before, n) {
                return Err(WeightsError::Stopped);
            }
            let p = domain.points[node];
            let places: Vec<DVec3> =
                handles.iter().map(|handle| nearest(handle, p)).collect::<Result<_, _>>()?;
            let distances: Vec<f64> = places.iter().map(|q| (*q - p).length()).collect();
            let mut order: Vec<usize> = (0..h).collect();
            order.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]));
            let seen = order.iter().find(|j| !tree.crosses(p, places[**j], 1e-3));
            let best = distances[*seen.unwrap_or(&order[0])].max(1e-6);
            let alike: Vec<bool> = distances
                .iter()
                .map(|d| *d >= best * (1.0 - TOGETHER) && *d <= best * (1.0 + TOGETHER))
                .collect();
            let count = alike.iter().filter(|alike| **alike).count().max(1) as f64;
            Ok((
                alike.iter().map(|a| f64::from(u8::from(*a)) / count).collect(),
                1.0 / (best * best),
                seen.is_none(),
            ))
        })
        .collect::<Result<_, WeightsError>>()?;
    let unseen = rows.iter().filter(|row| row.2).count();
    let heat: Vec<f64> = rows.iter().zip(&domain.mass).map(|(row, mass)| row.1 * mass).collect();
    let matrix = domain.laplacian.scaled_plus_diagonal(1.0, &heat);
    let factor = SparseCholesky::new(&matrix)
        .ok_or(WeightsError::Factor { unknowns: n, why: "a part of the mesh is degenerate" })?;
    let mut weights: Vec<f64> = (0..h * n).map(|k| heat[k % n] * rows[k % n].0[k / n]).collect();
    weights.par_chunks_mut(n).for_each(|column| factor.solve(column));
    if !hear(n, n) {
        return Err(WeightsError::Stopped);
    }
    let Some(most) = most.filter(|most| *most < h) else { return Ok((weights, unseen)) };
    keep_largest_of_columns(&mut weights, n, most);
    let solve = |(j, column): (usize, &mut [f64])| -> Result<(), WeightsError> {
        let kept: Vec<u32> = (0..n as u32).filter(|node| column[*node as usize] > 0.0).collect();
        if kept.is_empty() {
            return Ok(());
        }
        let mut right: Vec<f64> =
            kept.iter().map(|node| heat[*node as usize] * rows[*node as usize].0[j]).collect();
        let factor = SparseCholesky::new(&matrix.principal(&kept))
            .ok_or(WeightsError::Factor { unknowns: kept.len(), why: "a part of the mesh is degenerate" })?;
        factor.solve(&mut right);
        kept.iter().zip(&right).for_each(|(node, w)| column[*node as usize] = w.max(0.0));
        Ok(())
    };
    weights.par_chunks_mut(n).enumerate().map(solve).collect::<Result<(), WeightsError>>()?;
    Ok((weights, unseen))
}
