//! The numbers of the inverse rig's tables (section 4.2 of its paper) straight from their definitions, slow and in f64:
//! what `solve::inverse_rig::metrics` is held to.

use understudy_core::Vec3;

/// How far every vertex is from its clean place, ascending.
fn sorted_distances(mesh: &[Vec3], clean: &[Vec3]) -> Vec<f64> {
    let mut out = Vec::new();
    for vertex in 0..mesh.len() {
        let apart = mesh[vertex].as_dvec3() - clean[vertex].as_dvec3();
        out.push((apart.x * apart.x + apart.y * apart.y + apart.z * apart.z).sqrt());
    }
    out.sort_by(f64::total_cmp);
    out
}

/// `sqrt(‖f(w) − b‖² / n)` (15), cm.
pub fn rmse(mesh: &[Vec3], clean: &[Vec3]) -> f64 {
    let mut sum = 0.0;
    for distance in sorted_distances(mesh, clean) {
        sum += distance * distance;
    }
    (sum / mesh.len() as f64).sqrt()
}

/// The distance that 95 % of the vertices keep, linear between ranks, cm.
pub fn p95(mesh: &[Vec3], clean: &[Vec3]) -> f64 {
    let distances = sorted_distances(mesh, clean);
    let place = 0.95 * (distances.len() - 1) as f64;
    let (below, above) = (distances[place.floor() as usize], distances[place.ceil() as usize]);
    below + (above - below) * (place - place.floor())
}

/// How many weights are on.
pub fn cardinality(weights: &[f64]) -> usize {
    let mut count = 0;
    for weight in weights {
        if *weight != 0.0 {
            count += 1;
        }
    }
    count
}

/// `Σ|w_i|`.
pub fn l1(weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    for weight in weights {
        sum += weight.abs();
    }
    sum
}

/// `Σ_t (w_{t−1} − 2 w_t + w_{t+1})²` (16), mean over the weights; `[F][m]`.
pub fn roughness(take: &[Vec<f64>]) -> f64 {
    let shapes = take[0].len();
    let mut sum = 0.0;
    for shape in 0..shapes {
        for frame in 1..take.len() - 1 {
            let bend = take[frame - 1][shape] - 2.0 * take[frame][shape] + take[frame + 1][shape];
            sum += bend * bend;
        }
    }
    sum / shapes as f64
}
