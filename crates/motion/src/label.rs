//! From a learned latent space to what the run time plays: its numbers in single precision, the directions that its
//! density is made of, the edges that shortest ways need, and the measures of a label that synthesis goes by.

use crate::MotionError;
use crate::latent::LatentSpace;
use crate::matrix::{product_transposed, squared_distance};
use understudy_core::linear_algebra::SymmetricEigen;
use understudy_runtime::motion::{
    BasisParts, ClipFrames, LatentPoint, Model, ModelParts, Space, SpaceParts, Workspace, useful_edges,
};

/// Radius of a path, as a share of the distance that a point of a space has from its middle.
const RADIUS: f64 = 0.06;
/// Quantile of the density below which the likelihood force works.
const LIKELY: f64 = 0.1;
/// Directions are left out of the density as long as no place near the frames changes its variance by more than this.
const VARIANCE_LOST: f64 = 0.02;
/// Places that this is asked of, besides as many beside the path.
const ASKED: usize = 400;

/// A label as the run time plays it. `clips`: names and frames, in order; `controls`: of the rig.
pub fn label(
    label: &str,
    basis: BasisParts,
    learned: &LatentSpace,
    clips: &[(String, usize)],
    controls: usize,
) -> Result<Model, MotionError> {
    let (q, n) = (learned.dimensions(), learned.len());
    let singles = |list: &[f64]| list.iter().map(|v| *v as f32).collect::<Vec<f32>>();
    let points = singles(learned.points());
    let places: Vec<LatentPoint> = points
        .chunks_exact(q)
        .map(|point| LatentPoint::new(&point.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>()))
        .collect();
    let (d, m) = (learned.outputs(), learned.centres().len() / q);
    let weights = (0..d).flat_map(|k| (0..m).map(move |c| (k, c)));
    let weights = weights.map(|(k, c)| learned.weights()[c * d + k] as f32).collect();
    let (mut steps, mut count, mut first) = (0.0, 0usize, 0);
    for (_, frames) in clips {
        for frame in first + 1..first + frames {
            steps += places[frame].distance(places[frame - 1]);
            count += 1;
        }
        first += frames;
    }
    let middle = places.iter().fold(LatentPoint::default(), |sum, p| sum + *p) * (1.0 / n as f64);
    let spread = (places.iter().map(|p| (*p - middle).length_squared()).sum::<f64>() / n as f64).sqrt();
    let radius = (RADIUS * spread).max(1e-9);
    let pace = (steps / count.max(1) as f64).max(1e-3 * spread.max(1e-9));
    let parts = SpaceParts {
        dimensions: q,
        centres: (!learned.inducing().is_empty()).then(|| singles(learned.inducing())),
        covariance: learned.kernel(),
        unit: learned.unit() as f32,
        weights,
        certainty: certainty(learned, radius)?,
        edges: useful_edges(&places),
        points,
    };
    let space = Space::new(parts)?;
    let mut work = Workspace::of(&space);
    let mut densities: Vec<f64> = places.iter().map(|p| space.density(*p, &mut work).0).collect();
    densities.sort_by(f64::total_cmp);
    let quantile = |share: f64| densities[((n - 1) as f64 * share) as usize];
    let poses: Vec<Vec<f32>> = places.iter().map(|p| space.mean(*p, &mut work).to_vec()).collect();
    let mut first = 0;
    let mut named = Vec::new();
    for (name, frames) in clips {
        let away = |frame: &usize| -> f32 {
            poses[*frame].iter().zip(&poses[first]).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        let strongest = (first..first + frames).max_by(|a, b| away(a).total_cmp(&away(b))).unwrap_or(first);
        named.push(ClipFrames { name: name.clone(), first, frames: *frames, strongest });
        first += frames;
    }
    let parts = ModelParts {
        label: label.to_owned(),
        basis,
        space: space.parts().clone(),
        clips: named,
        pace,
        radius,
        likely: quantile(LIKELY),
        softness: (0.5 * (quantile(0.5) - quantile(LIKELY))).max(1e-3),
    };
    Ok(Model::new(parts, controls)?)
}

/// `F`, `[R][M]`, with `FᵀF ≈ P`: of the eigenvectors of `P` those that matter within a few radii of the frames. Most do
/// not: where `k(x)` is smooth, it has no part in directions of quick change.
fn certainty(learned: &LatentSpace, radius: f64) -> Result<Vec<f32>, MotionError> {
    let (q, n) = (learned.dimensions(), learned.len());
    let m = learned.centres().len() / q;
    let eigen = SymmetricEigen::new(learned.precision(), m).map_err(|_| MotionError::Numbers)?;
    let step = n.div_ceil(ASKED).max(1);
    let mut asked: Vec<f64> = Vec::new();
    for frame in (0..n).step_by(step) {
        asked.extend(learned.point(frame));
        // Beside it, in the direction of one axis after another, up to four radii away.
        let mut beside = learned.point(frame).to_vec();
        let far = radius * (1 + frame / step % 4) as f64;
        beside[frame / step % q] += if frame / step % 2 == 0 { far } else { -far };
        asked.extend(beside);
    }
    let count = asked.len() / q;
    let k = crate::dense::smooth(&learned.kernel(), &asked, Some(learned.centres()), q);
    let parts = product_transposed(&k, &eigen.vectors, count, m, m);
    // What direction r takes from the variance at place p.
    let taken = |p: usize, r: usize| eigen.values[r].max(0.0) * parts[p * m + r].powi(2);
    let kernel = learned.kernel();
    let mut room: Vec<f64> = (0..count)
        .map(|p| {
            let left = kernel.variance - (0..m).map(|r| taken(p, r)).sum::<f64>();
            VARIANCE_LOST * (left.max(0.0) + kernel.white)
        })
        .collect();
    let worst = |r: usize| (0..count).map(|p| taken(p, r) / room[p]).fold(0.0, f64::max);
    let mut order: Vec<(f64, usize)> = (0..m).map(|r| (worst(r), r)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<usize> = Vec::new();
    for (_, r) in order {
        if kept.is_empty() && (0..count).all(|p| taken(p, r) <= room[p]) {
            room.iter_mut().enumerate().for_each(|(p, room)| *room -= taken(p, r));
        } else {
            kept.push(r);
        }
    }
    kept.sort_unstable();
    let row = |r: &usize| {
        let root = eigen.values[*r].max(0.0).sqrt();
        eigen.vector(*r).iter().map(move |v| (root * v) as f32).collect::<Vec<f32>>()
    };
    Ok(kept.iter().flat_map(row).collect())
}

/// How far apart two poses are in the numbers of a basis.
pub(crate) fn pose_distance(a: &[f32], b: &[f32]) -> f64 {
    let doubles = |list: &[f32]| list.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
    squared_distance(&doubles(a), &doubles(b)).sqrt()
}

#[cfg(test)]
mod tests;
