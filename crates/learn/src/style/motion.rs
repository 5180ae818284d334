//! Motion between two pictures from a few key points (Siarohin et al. 2019): near key point k the source lies at
//! `T_k(z) = μ_s + M (z − μ_d)` with `M = J_s J_d⁻¹`; weights that sum to one mix these maps and the identity to one field.
//! Places are −1 to 1.

use super::heat_maps::cell;
use super::tensor::Tensor;

/// Smallest determinant that is divided by: a Jacobian that folds has no inverse.
const LEAST: f32 = 1e-3;

/// `[a b; c d]` by rows.
type Matrix = [f32; 4];

pub(super) fn matrix(values: &[f32]) -> Matrix {
    [values[0], values[1], values[2], values[3]]
}

pub(super) fn times(a: Matrix, b: Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
    ]
}

pub(super) fn transposed(a: Matrix) -> Matrix {
    [a[0], a[2], a[1], a[3]]
}

pub(super) fn inverse(a: Matrix) -> Matrix {
    let determinant = a[0] * a[3] - a[1] * a[2];
    let safe = if determinant.abs() < LEAST { LEAST.copysign(determinant) } else { determinant };
    [a[3] / safe, -a[1] / safe, -a[2] / safe, a[0] / safe]
}

/// `A B⁻¹` per point, `[images, points, 4, 1]`.
pub(super) fn divided(a: &Tensor, b: &Tensor) -> Tensor {
    let mut out = Tensor::zeros(a.shape());
    let pairs = a.data().chunks_exact(4).zip(b.data().chunks_exact(4));
    for (out, (a, b)) in out.data_mut().chunks_exact_mut(4).zip(pairs) {
        out.copy_from_slice(&times(matrix(a), inverse(matrix(b))));
    }
    out
}

/// `∂A = ∂M B⁻ᵀ`, `∂B = −Mᵀ ∂M B⁻ᵀ`.
pub(super) fn divided_back(quotient: &Tensor, b: &Tensor, by: &Tensor) -> (Tensor, Tensor) {
    let (mut by_a, mut by_b) = (Tensor::zeros(b.shape()), Tensor::zeros(b.shape()));
    for (index, b) in b.data().chunks_exact(4).enumerate() {
        let at = 4 * index..4 * index + 4;
        let right = times(matrix(&by.data()[at.clone()]), transposed(inverse(matrix(b))));
        let left = times(transposed(matrix(&quotient.data()[at.clone()])), right);
        by_a.data_mut()[at.clone()].copy_from_slice(&right);
        by_b.data_mut()[at].iter_mut().zip(left).for_each(|(out, value)| *out = -value);
    }
    (by_a, by_b)
}

/// Places of pixels, row by row.
fn pixels([rows, columns]: [usize; 2]) -> impl Iterator<Item = [f32; 2]> {
    (0..rows * columns).map(move |k| [cell(k % columns, columns), cell(k / columns, rows)])
}

/// `exp(−½ |z − μ|² / v)`, `[images, points, rows, columns]`.
pub(super) fn bells(points: &Tensor, size: [usize; 2], variance: f32) -> Tensor {
    let [images, count, ..] = points.shape();
    let mut out = Tensor::zeros([images, count, size[0], size[1]]);
    let plane = (size[0] * size[1]).max(1);
    for (map, point) in out.data_mut().chunks_exact_mut(plane).zip(points.data().chunks_exact(2)) {
        for (value, at) in map.iter_mut().zip(pixels(size)) {
            let square = (at[0] - point[0]).powi(2) + (at[1] - point[1]).powi(2);
            *value = (-0.5 * square / variance).exp();
        }
    }
    out
}

pub(super) fn bells_back(points: &Tensor, maps: &Tensor, by: &Tensor, variance: f32) -> Tensor {
    let [.., rows, columns] = maps.shape();
    let mut out = Tensor::zeros(points.shape());
    let plane = (rows * columns).max(1);
    let planes = maps.data().chunks_exact(plane).zip(by.data().chunks_exact(plane));
    let pairs = points.data().chunks_exact(2).zip(planes);
    for (out, (point, (map, by))) in out.data_mut().chunks_exact_mut(2).zip(pairs) {
        for ((value, by), at) in map.iter().zip(by).zip(pixels([rows, columns])) {
            (0..2).for_each(|axis| out[axis] += by * value * (at[axis] - point[axis]) / variance);
        }
    }
    out
}

/// The identity and `T_k` of every point as places, `[images, 2 (points + 1), rows, columns]`.
pub(super) fn motions(from: &Tensor, turn: &Tensor, to: &Tensor, size: [usize; 2]) -> Tensor {
    let [images, points, ..] = from.shape();
    let plane = size[0] * size[1];
    let mut out = Tensor::zeros([images, 2 * (points + 1), size[0], size[1]]);
    for (image, out) in out.data_mut().chunks_exact_mut((2 * (points + 1) * plane).max(1)).enumerate() {
        for (k, pair) in out.chunks_exact_mut(2 * plane).enumerate() {
            let (across, down) = pair.split_at_mut(plane);
            let at = image * points + k.saturating_sub(1);
            let (turn, from, to) = match k {
                0 => ([1.0, 0.0, 0.0, 1.0], [0.0; 2], [0.0; 2]),
                _ => (
                    matrix(&turn.data()[4 * at..]),
                    [from.data()[2 * at], from.data()[2 * at + 1]],
                    [to.data()[2 * at], to.data()[2 * at + 1]],
                ),
            };
            for ((x, y), place) in across.iter_mut().zip(down).zip(pixels(size)) {
                let off = [place[0] - to[0], place[1] - to[1]];
                *x = from[0] + turn[0] * off[0] + turn[1] * off[1];
                *y = from[1] + turn[2] * off[0] + turn[3] * off[1];
            }
        }
    }
    out
}

/// Gradients of `from`, `turn` and `to`.
pub(super) fn motions_back(turn: &Tensor, to: &Tensor, by: &Tensor) -> [Tensor; 3] {
    let [images, points, ..] = to.shape();
    let [.., rows, columns] = by.shape();
    let plane = rows * columns;
    let mut by_from = Tensor::zeros(to.shape());
    let mut by_turn = Tensor::zeros(turn.shape());
    let mut by_to = Tensor::zeros(to.shape());
    for at in 0..images * points {
        let (image, k) = (at / points, at % points + 1);
        let start = (image * (points + 1) + k) * 2 * plane;
        let (across, down) = by.data()[start..start + 2 * plane].split_at(plane);
        let to = [to.data()[2 * at], to.data()[2 * at + 1]];
        let (mut sum, mut outer) = ([0.0f32; 2], [0.0f32; 4]);
        for ((x, y), place) in across.iter().zip(down).zip(pixels([rows, columns])) {
            let off = [place[0] - to[0], place[1] - to[1]];
            sum[0] += x;
            sum[1] += y;
            outer[0] += x * off[0];
            outer[1] += x * off[1];
            outer[2] += y * off[0];
            outer[3] += y * off[1];
        }
        let turn = matrix(&turn.data()[4 * at..]);
        by_from.data_mut()[2 * at..2 * at + 2].copy_from_slice(&sum);
        by_turn.data_mut()[4 * at..4 * at + 4].copy_from_slice(&outer);
        let back = [-(turn[0] * sum[0] + turn[2] * sum[1]), -(turn[1] * sum[0] + turn[3] * sum[1])];
        by_to.data_mut()[2 * at..2 * at + 2].copy_from_slice(&back);
    }
    [by_from, by_turn, by_to]
}

/// Softmax over the channels of every pixel.
pub(super) fn shares(x: &Tensor) -> Tensor {
    let (mut out, plane, length) = (x.clone(), x.plane_len(), x.image_len().max(1));
    for image in out.data_mut().chunks_exact_mut(length) {
        for pixel in 0..plane {
            let most = image[pixel..].iter().step_by(plane).copied().fold(f32::MIN, f32::max);
            let mut total = 0.0;
            for value in image[pixel..].iter_mut().step_by(plane) {
                *value = (*value - most).exp();
                total += *value;
            }
            image[pixel..].iter_mut().step_by(plane).for_each(|value| *value /= total);
        }
    }
    out
}

pub(super) fn shares_back(shares: &Tensor, by: &Tensor) -> Tensor {
    let (mut out, plane, length) = (by.clone(), by.plane_len(), by.image_len().max(1));
    for (out, shares) in out.data_mut().chunks_exact_mut(length).zip(shares.data().chunks_exact(length)) {
        for pixel in 0..plane {
            let pairs = || shares[pixel..].iter().step_by(plane);
            let mean: f32 = out[pixel..].iter().step_by(plane).zip(pairs()).map(|(by, p)| by * p).sum();
            for (by, p) in out[pixel..].iter_mut().step_by(plane).zip(pairs()) {
                *by = p * (*by - mean);
            }
        }
    }
    out
}

/// `Σ_k m_k T_k`, `[images, 2, rows, columns]`.
pub(super) fn mixed(shares: &Tensor, motions: &Tensor) -> Tensor {
    let [images, maps, rows, columns] = shares.shape();
    let plane = rows * columns;
    let mut out = Tensor::zeros([images, 2, rows, columns]);
    for (image, out) in out.data_mut().chunks_exact_mut((2 * plane).max(1)).enumerate() {
        for k in 0..maps {
            let share = shares.plane(image, k);
            for axis in 0..2 {
                let motion = motions.plane(image, 2 * k + axis);
                let out = &mut out[axis * plane..][..plane];
                out.iter_mut().zip(share.iter().zip(motion)).for_each(|(out, (m, t))| *out += m * t);
            }
        }
    }
    out
}

/// Gradients of weights and motions.
pub(super) fn mixed_back(shares: &Tensor, motions: &Tensor, by: &Tensor) -> (Tensor, Tensor) {
    let [images, maps, rows, columns] = shares.shape();
    let plane = rows * columns;
    let (mut by_shares, mut by_motions) = (Tensor::zeros(shares.shape()), Tensor::zeros(motions.shape()));
    for image in 0..images {
        for k in 0..maps {
            let share = shares.plane(image, k);
            for axis in 0..2 {
                let (by, motion) = (by.plane(image, axis), motions.plane(image, 2 * k + axis));
                let at = (image * maps + k) * plane;
                let out = &mut by_shares.data_mut()[at..at + plane];
                out.iter_mut().zip(by.iter().zip(motion)).for_each(|(out, (by, t))| *out += by * t);
                let at = (image * 2 * maps + 2 * k + axis) * plane;
                let out = &mut by_motions.data_mut()[at..at + plane];
                out.iter_mut().zip(by.iter().zip(share)).for_each(|(out, (by, m))| *out = by * m);
            }
        }
    }
    (by_shares, by_motions)
}
