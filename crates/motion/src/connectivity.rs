//! The connectivity prior (Levine et al. 2012): similar frames of different clips find each other, by a diffusion over the
//! graph of all latent points.
//!
//! `W_ij = (‖x_i − x_j‖² + ε²)^(−p/2)` with zero diagonal, `D` its row sums, `H = D^-½ (W − D) D^-½`, `K = exp(β H)`,
//! `ψ = w Σ_ij ln max(K_ij, 1e-16)`, which is maximised: what diffuses easily is likely. `w ∝ 1/N²`, `β ∝ N`. The
//! gradient uses the divided differences of `exp(βλ)`.

use crate::MotionError;
use crate::matrix::{product, product_transposed, squared_distance, transposed_product};
use crate::priors::PriorConfig;
use understudy_core::linear_algebra::SymmetricEigen;

/// Smaller diffusion counts as this.
const LEAST: f64 = 1e-16;

/// Adds the gradient of the connectivity prior to `[N][q]` and returns its value.
pub(crate) fn add(
    x: &[f64],
    q: usize,
    config: &PriorConfig,
    gradient: &mut [f64],
) -> Result<f64, MotionError> {
    let n = x.len() / q;
    let point = |i: usize| &x[i * q..(i + 1) * q];
    let half = 0.5 * config.power;
    let guard = config.guard * config.guard;
    let mut weights = vec![0.0; n * n];
    let mut degree = vec![0.0; n];
    for i in 0..n {
        for j in 0..i {
            let w = (squared_distance(point(i), point(j)) + guard).powf(-half);
            weights[i * n + j] = w;
            weights[j * n + i] = w;
            degree[i] += w;
            degree[j] += w;
        }
    }
    let root: Vec<f64> = degree.iter().map(|d| 1.0 / d.max(1e-300).sqrt()).collect();
    let mut normal = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            normal[i * n + j] = weights[i * n + j] * root[i] * root[j];
        }
    }
    let mut laplacian = normal.clone();
    (0..n).for_each(|i| laplacian[i * n + i] -= 1.0);
    let eigen = SymmetricEigen::new(&laplacian, n).map_err(|_| MotionError::Numbers)?;
    let beta = config.diffusion * n as f64;
    let grown: Vec<f64> = eigen.values.iter().map(|v| (beta * v.min(0.0)).exp()).collect();
    // Rows of `vectors` are eigenvectors: K = Vᵀ diag V.
    let mut scaled = eigen.vectors.clone();
    for (row, grown) in scaled.chunks_exact_mut(n).zip(&grown) {
        row.iter_mut().for_each(|v| *v *= grown);
    }
    let kernel = transposed_product(&eigen.vectors, &scaled, n, n, n);
    let weight = config.connectivity / (n * n) as f64;
    let mut value = 0.0;
    let slope: Vec<f64> = kernel
        .iter()
        .map(|k| {
            value += weight * k.max(LEAST).ln();
            if *k > LEAST { weight / k } else { 0.0 }
        })
        .collect();
    // ∂ψ/∂H = Vᵀ [(V P Vᵀ) ∘ Φ] V with the divided differences Φ of exp(βλ).
    let left = product(&eigen.vectors, &slope, n, n, n);
    let mut middle = product_transposed(&left, &eigen.vectors, n, n, n);
    for i in 0..n {
        for j in 0..n {
            let (a, b) = (eigen.values[i], eigen.values[j]);
            let gap = a - b;
            middle[i * n + j] *= if (beta * gap).abs() < 1e-6 {
                beta * (0.5 * beta * (a + b).min(0.0)).exp()
            } else {
                (grown[i] - grown[j]) / gap
            };
        }
    }
    let half_way = transposed_product(&eigen.vectors, &middle, n, n, n);
    let by_laplacian = product(&half_way, &eigen.vectors, n, n, n);
    let by_degree: Vec<f64> = (0..n)
        .map(|k| {
            let row = k * n..(k + 1) * n;
            let sum: f64 = by_laplacian[row.clone()].iter().zip(&normal[row]).map(|(q, h)| q * h).sum();
            -sum / degree[k].max(1e-300)
        })
        .collect();
    for i in 0..n {
        for j in 0..n {
            if i == j {
                continue;
            }
            let pair = (by_laplacian[i * n + j] + by_laplacian[j * n + i]) * root[i] * root[j]
                + by_degree[i]
                + by_degree[j];
            let squared = squared_distance(point(i), point(j)) + guard;
            let bend = -config.power * weights[i * n + j] / squared * pair;
            for k in 0..q {
                gradient[i * q + k] += bend * (x[i * q + k] - x[j * q + k]);
            }
        }
    }
    Ok(value)
}

/// The frames that are points of the graph: all of them, or evenly thinned ones of every clip.
pub(crate) fn nodes(lengths: &[usize], most: usize) -> Vec<usize> {
    let frames: usize = lengths.iter().sum();
    let step = frames.div_ceil(most.max(1)).max(1);
    let mut first = 0;
    let mut out = Vec::new();
    for length in lengths {
        out.extend((first..first + length).step_by(step));
        first += length;
    }
    out
}

/// [`add`] over some of the points.
pub(crate) fn add_over(
    nodes: &[usize],
    x: &[f64],
    q: usize,
    config: &PriorConfig,
    gradient: &mut [f64],
) -> Result<f64, MotionError> {
    if nodes.len() * q == x.len() {
        return add(x, q, config, gradient);
    }
    let some: Vec<f64> = nodes.iter().flat_map(|node| x[node * q..(node + 1) * q].iter().copied()).collect();
    let mut slope = vec![0.0; some.len()];
    let value = add(&some, q, config, &mut slope)?;
    for (node, slope) in nodes.iter().zip(slope.chunks_exact(q)) {
        gradient[node * q..(node + 1) * q].iter_mut().zip(slope).for_each(|(slot, s)| *slot += s);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_testkit::gradient::directional_miss;

    #[test]
    fn the_gradient_is_the_derivative() {
        let (n, q) = (14, 3);
        let mut random = Random::new(5);
        let x: Vec<f64> = (0..n * q).map(|_| random.normal()).collect();
        for (diffusion, guard) in [(0.4, 0.01), (0.05, 0.3), (3.0, 0.1)] {
            let config = PriorConfig { connectivity: 30.0, diffusion, guard, ..PriorConfig::default() };
            let mut gradient = vec![0.0; n * q];
            add(&x, q, &config, &mut gradient).expect("finite");
            let value = |x: &[f64]| add(x, q, &config, &mut vec![0.0; n * q]).expect("finite");
            let miss = directional_miss(value, &x, &gradient, 1e-5, 12, 3);
            assert!(miss < 1e-5, "{miss}");
            let some = [0, 3, 4, 9, 13];
            let mut gradient = vec![0.0; n * q];
            add_over(&some, &x, q, &config, &mut gradient).expect("finite");
            let value = |x: &[f64]| add_over(&some, x, q, &config, &mut vec![0.0; n * q]).expect("finite");
            let miss = directional_miss(value, &x, &gradient, 1e-5, 12, 3);
            assert!(miss < 1e-5, "over some: {miss}");
        }
    }

    #[test]
    fn nearer_heaps_are_likelier_and_coinciding_points_do_no_harm() {
        let (n, q) = (20, 2);
        let config = PriorConfig { connectivity: 400.0, ..PriorConfig::default() };
        let heaps = |gap: f64| -> Vec<f64> {
            (0..n * q).map(|i| 0.1 * ((i * i) as f64).sin() + if i < n { 0.0 } else { gap }).collect()
        };
        let connected = |x: &[f64]| add(x, q, &config, &mut vec![0.0; n * q]).expect("finite");
        assert!(connected(&heaps(1.0)) > connected(&heaps(3.0)) + 1.0);
        assert!(connected(&vec![0.5; n * q]).is_finite());
    }

    #[test]
    fn long_clips_are_thinned_evenly() {
        assert_eq!(nodes(&[3, 2], 10), [0, 1, 2, 3, 4]);
        assert_eq!(nodes(&[5, 4], 5), [0, 2, 4, 5, 7]);
    }
}
