//! Segments that move rigidly (3.3) and the vertices whose motion tells theirs (3.4).
//!
//! The paper compares a squared Frobenius norm with 0.3 mm; we take the root mean square distance of a
//! vertex for τ, which does not depend on how many vertices a tooth has.

use super::{FaceSettings, Recording};
use rayon::prelude::*;
use understudy_core::Vec3;
use understudy_runtime::face::RigidParts;
use understudy_runtime::face::rigid::RigidFit;

/// Poses that suffice.
const MOST_POSES: usize = 200;

/// Best rigid motions of some vertices over some poses, and their root mean square error, cm.
pub fn fit(poses: &Recording, chosen: &[usize], vertices: &[u32]) -> (Vec<RigidFit>, f64) {
    let rest = poses.mesh.positions();
    let at_rest: Vec<Vec3> = vertices.iter().map(|v| rest[*v as usize]).collect();
    let one = |pose: &usize| {
        let all = poses.vertices_of(*pose);
        let now: Vec<Vec3> = vertices.iter().map(|v| all[*v as usize]).collect();
        let fit = RigidFit::new(&at_rest, &now);
        let miss = |(a, b): (&Vec3, &Vec3)| f64::from(fit.apply(*a).distance_squared(*b));
        (fit, at_rest.iter().zip(&now).map(miss).sum::<f64>())
    };
    let (fits, squares): (Vec<RigidFit>, Vec<f64>) = chosen.par_iter().map(one).unzip();
    let count = (chosen.len() * vertices.len()).max(1) as f64;
    (fits, (squares.iter().sum::<f64>() / count).sqrt())
}

/// The error of the best rigid motion of a segment, cm.
pub fn rigidity(poses: &Recording, vertices: &[u32]) -> f64 {
    fit(poses, &poses.spread(MOST_POSES), vertices).1
}

/// The vertices among `candidates` that follow a segment's motion best (3.4), as many as the settings say, and how
/// far the motion that they give misses the segment, root mean square, cm.
pub fn follow(
    poses: &Recording,
    name: &str,
    vertices: &[u32],
    candidates: &[u32],
    settings: &FaceSettings,
) -> (RigidParts, f64) {
    let count = settings.follows;
    let rest = poses.mesh.positions();
    let chosen = poses.spread(MOST_POSES);
    let (fits, _) = fit(poses, &chosen, vertices);
    let miss = |vertex: &u32| {
        let vertex = *vertex as usize;
        let square = |(fit, pose): (&RigidFit, &usize)| {
            f64::from(fit.apply(rest[vertex]).distance_squared(poses.vertices_of(*pose)[vertex]))
        };
        fits.iter().zip(&chosen).map(square).sum::<f64>() / chosen.len() as f64
    };
    let misses: Vec<f64> = candidates.par_iter().map(miss).collect();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| misses[*a].total_cmp(&misses[*b]).then(a.cmp(b)));
    let plain: Vec<u32> = order.iter().take(count).map(|place| candidates[*place]).collect();
    let measured = |follows| {
        let parts = RigidParts { name: name.into(), vertices: vertices.to_vec(), follows };
        let error = error_of(poses, &chosen, &parts);
        (parts, error)
    };
    let plain = measured(plain);
    if !settings.spread_follows {
        return plain;
    }
    let apart = measured(spread(rest, vertices, candidates, &order, &misses, count));
    if apart.1 <= WORTH_MORE * plain.1 + NEGLIGIBLE { apart } else { plain }
}

/// Vertices that lie apart are preferred while they miss by at most so many times as much as the best ten …
const WORTH_MORE: f64 = 1.5;
/// … or by no more than this, cm.
const NEGLIGIBLE: f64 = 0.005;

/// The best ones, but not all in one spot: neighbours share their errors, and a motion told by a patch of
/// a few millimetres turns with its noise. Among the vertices that are nearly as good as the best, those
/// are taken that lie farthest apart.
fn spread(
    rest: &[Vec3],
    vertices: &[u32],
    candidates: &[u32],
    order: &[usize],
    misses: &[f64],
    count: usize,
) -> Vec<u32> {
    let Some(&last) = order.get(count.saturating_sub(1)).or(order.last()) else { return Vec::new() };
    // Twice the distance of the worst of the best ten, and never less than a tenth of a millimetre.
    let enough = misses[last].max(1e-4) * 4.0;
    let good: Vec<u32> =
        order.iter().take_while(|place| misses[**place] <= enough).map(|place| candidates[*place]).collect();
    let middle = vertices.iter().map(|v| rest[*v as usize]).sum::<Vec3>() / vertices.len().max(1) as f32;
    let mut away: Vec<f32> = good.iter().map(|v| rest[*v as usize].distance(middle)).collect();
    let mut out: Vec<u32> = Vec::new();
    while out.len() < count.min(good.len()) {
        let next = match out.is_empty() {
            // Begin at the nearest: flesh around a tooth knows it best.
            true => (0..good.len()).fold(0, |best, i| if away[i] < away[best] { i } else { best }),
            false => (0..good.len()).fold(0, |best, i| if away[i] > away[best] { i } else { best }),
        };
        if out.is_empty() {
            away.fill(f32::INFINITY);
        }
        out.push(good[next]);
        let at = rest[good[next] as usize];
        for (away, vertex) in away.iter_mut().zip(&good) {
            *away = away.min(rest[*vertex as usize].distance(at));
        }
    }
    out
}

/// How far a rigid segment's motion, told by the true positions of those it follows, misses the truth, cm.
fn error_of(poses: &Recording, chosen: &[usize], parts: &RigidParts) -> f64 {
    let rest = poses.mesh.positions();
    let at_rest: Vec<Vec3> = parts.follows.iter().map(|v| rest[*v as usize]).collect();
    let square = |pose: &usize| {
        let all = poses.vertices_of(*pose);
        let now: Vec<Vec3> = parts.follows.iter().map(|v| all[*v as usize]).collect();
        let fit = RigidFit::new(&at_rest, &now);
        let miss = |v: &u32| f64::from(fit.apply(rest[*v as usize]).distance_squared(all[*v as usize]));
        parts.vertices.iter().map(miss).sum::<f64>()
    };
    let squares: f64 = chosen.par_iter().map(square).collect::<Vec<f64>>().iter().sum();
    (squares / (chosen.len() * parts.vertices.len()).max(1) as f64).sqrt()
}
