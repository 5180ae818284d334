//! Reconstruction as one small linear map. The solve (eq. 16) is linear in what the networks say, `V = M c + N a`, and
//! the vertices that come out of it move in far fewer ways than there are coefficients: with the principal components
//! `Φ` of reconstructed training poses, `V ≈ v̄ + Φᵀ z` and `z = Φ (M c + N a − v̄)`, of which everything but `Φᵀ z` goes
//! into the last layer of the networks. All of it is worked out in f64.

use super::components::Basis;
use super::graph::Reconstruction;
use super::linear::Linear;
use crate::matrix::{View, multiply};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use understudy_runtime::diff::LayerNumbers;

/// What compression may cost: almost all vertices of training poses stay within the first, all within the second, mm.
const ALMOST_ALL_MM: f32 = 0.05;
const ALL_MM: f32 = 0.5;
const ALMOST_ALL: f64 = 0.999;

/// What the folded map costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldReport {
    /// Coefficients that vertices are decoded from.
    pub rank: usize,
    /// Training poses whose solve was compared with the map.
    pub poses: usize,
    /// Share of their vertices within 0.05 mm of the solve.
    pub within_limit: f64,
    /// The farthest vertex, mm.
    pub max_mm: f64,
}

/// What networks say of one pose.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Differential coordinates, `[3V]` cm.
    pub delta: Vec<f32>,
    /// Displacements of all anchors, `[3A]` cm.
    pub anchors: Vec<f32>,
}

/// The map.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// Last layer of the differential network, `[R × hidden]`.
    pub last: LayerNumbers,
    /// `[R × 3A]`.
    pub subspace: Vec<f32>,
    /// What features add by themselves, `[R × F]`; empty without a linear part.
    pub linear: Vec<f32>,
    /// `[3V × R]`.
    pub basis: Vec<f32>,
    /// Displacements when all coefficients are zero, `[3V]` cm.
    pub mean: Vec<f32>,
    /// What it costs.
    pub report: FoldReport,
}

/// The displacements that the solve gives, `[3V]` cm for every pose.
pub fn reconstruct(system: &Reconstruction<'_>, said: &[Said]) -> Vec<f32> {
    let column = |said: &Said, axis: usize| {
        let every = |numbers: &[f32]| -> Vec<f64> {
            numbers.iter().skip(axis).step_by(3).map(|n| f64::from(*n)).collect()
        };
        system.right_side(&every(&said.delta), &every(&said.anchors))
    };
    let mut columns: Vec<Vec<f64>> =
        said.par_iter().flat_map_iter(|said| (0..3).map(move |axis| column(said, axis))).collect();
    system.solve(&mut columns);
    let pose = |axes: &[Vec<f64>]| -> Vec<f32> {
        (0..axes[0].len()).flat_map(|v| [axes[0][v] as f32, axes[1][v] as f32, axes[2][v] as f32]).collect()
    };
    columns.chunks_exact(3).flat_map(pose).collect()
}

/// What makes differential coordinates of coefficients.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    /// `[3V × K]` cm.
    pub weights: &'a [f32],
    /// `[3V]` cm.
    pub mean: &'a [f32],
}

/// Folds. `last`: the last layer of the differential network, which gives coefficients; `constant`: of every anchor what
/// it always says, where it has no network; `solved`: displacements of training poses, linear part included.
pub fn fold(
    system: &Reconstruction<'_>,
    last: &LayerNumbers,
    Decoder { weights: decoder, mean: delta_mean }: Decoder<'_>,
    linear: &Linear,
    constant: &[Option<[f32; 3]>],
    solved: Vec<f32>,
    most: usize,
) -> Folded {
    let width = delta_mean.len();
    let (vertices, count) = (width / 3, last.bias.len());
    let mut rows = solved;
    let poses = rows.len() / width;
    let mut basis = Basis::new(&mut rows, width, most);
    let distances = |rows: &[f32]| {
        let beyond = |v: &[f32]| 10.0 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
        let all = rows.len() / 3;
        let near = rows.par_chunks_exact(3).filter(|v| beyond(v) <= ALMOST_ALL_MM).count();
        let most = rows.par_chunks_exact(3).map(beyond).reduce(|| 0.0, f32::max);
        (near as f64 / all.max(1) as f64, most)
    };
    let enough = |rows: &[f32]| {
        let (near, most) = distances(rows);
        near >= ALMOST_ALL && most <= ALL_MM
    };
    let rank = basis.fewest(&mut rows, enough).max(1).min(basis.count().max(1));
    let (within_limit, max) = distances(&rows);
    drop(rows);
    basis.truncate(rank);
    let rank = basis.count();
    // Z = (L̃ᵀL̃)⁻¹ Φᵀ, one column for every component and axis.
    let mut columns: Vec<Vec<f64>> = (0..3 * rank)
        .map(|column| {
            let row = &basis.rows[column / 3 * width..][..width];
            row.iter().skip(column % 3).step_by(3).map(|n| f64::from(*n)).collect()
        })
        .collect();
    system.solve(&mut columns);
    // Of anchors: ω² Z at the anchor.
    let mut subspace = vec![0.0f64; rank * 3 * system.anchors.len()];
    for (column, z) in columns.iter().enumerate() {
        let (component, axis) = (column / 3, column % 3);
        for (anchor, (vertex, weight)) in system.anchors.iter().enumerate() {
            subspace[(component * system.anchors.len() + anchor) * 3 + axis] =
                weight * weight * z[*vertex as usize];
        }
    }
    // Of differential coordinates: L Z, `[R × 3V]` with x, y and z of a vertex side by side.
    let mut through = vec![0.0f64; rank * width];
    through.par_chunks_mut(width.max(1)).enumerate().for_each(|(component, row)| {
        for axis in 0..3 {
            let applied = system.right_side(&columns[3 * component + axis], &[]);
            applied.iter().enumerate().for_each(|(v, n)| row[3 * v + axis] = *n);
        }
    });
    drop(columns);
    let by_coefficient = product_f64(&through, decoder, rank, width, count);
    // Constants: the mean of the coordinates, anchors without a network, and minus the mean of the vertices.
    let mut bias: Vec<f64> = (0..rank)
        .into_par_iter()
        .map(|component| {
            let own = &through[component * width..][..width];
            let of_mean: f64 = own.iter().zip(delta_mean).map(|(t, d)| t * f64::from(*d)).sum();
            let row = &basis.rows[component * width..][..width];
            let middle: f64 = row.iter().zip(&basis.mean).map(|(r, m)| f64::from(*r) * f64::from(*m)).sum();
            let anchors = subspace[component * 3 * constant.len()..][..3 * constant.len()].chunks_exact(3);
            let of_anchors: f64 = anchors
                .zip(constant)
                .filter_map(|(s, constant)| {
                    constant.map(|c| (0..3).map(|a| s[a] * f64::from(c[a])).sum::<f64>())
                })
                .sum();
            // Empty without a linear part.
            let of_linear: f64 =
                row.iter().zip(&linear.mean).map(|(r, m)| f64::from(*r) * f64::from(*m)).sum();
            of_mean + of_anchors + of_linear - middle
        })
        .collect();
    for (component, sum) in bias.iter_mut().enumerate() {
        let own = &by_coefficient[component * count..][..count];
        *sum += own.iter().zip(&last.bias).map(|(w, b)| w * f64::from(*b)).sum::<f64>();
    }
    let hidden = last.weights.len() / count.max(1);
    let weights = product_f64(&by_coefficient, &last.weights, rank, count, hidden);
    let features = linear.weights.len() / width.max(1);
    let by_features = match features {
        0 => Vec::new(),
        _ => {
            let wide: Vec<f64> = basis.rows.iter().map(|n| f64::from(*n)).collect();
            product_f64(&wide, &linear.weights, rank, width, features)
        }
    };
    // The largest number of every component becomes one: 16 bits then hold what is seen.
    let size = |component: usize| {
        let row = &basis.rows[component * width..][..width];
        row.iter().fold(0.0f32, |most, n| most.max(n.abs())).max(f32::MIN_POSITIVE)
    };
    let sizes: Vec<f32> = (0..rank).map(size).collect();
    let scaled = |numbers: &[f64], width: usize| -> Vec<f32> {
        let row = |(row, size): (&[f64], &f32)| -> Vec<f32> {
            row.iter().map(|n| (n * f64::from(*size)) as f32).collect()
        };
        numbers.chunks_exact(width.max(1)).zip(&sizes).flat_map(row).collect()
    };
    let mut turned = vec![0.0f32; vertices * 3 * rank];
    turned.par_chunks_mut(rank.max(1)).enumerate().for_each(|(output, row)| {
        for (component, slot) in row.iter_mut().enumerate() {
            *slot = basis.rows[component * width + output] / sizes[component];
        }
    });
    Folded {
        last: LayerNumbers { weights: scaled(&weights, hidden), bias: scaled(&bias, 1) },
        subspace: scaled(&subspace, 3 * system.anchors.len()),
        linear: scaled(&by_features, features),
        basis: turned,
        mean: basis.mean,
        report: FoldReport { rank, poses, within_limit, max_mm: f64::from(max) },
    }
}

/// `a · b` in f64, `a` `[rows × inner]`, `b` `[inner × columns]`, in blocks of the inner size.
fn product_f64(a: &[f64], b: &[f32], rows: usize, inner: usize, columns: usize) -> Vec<f64> {
    const BLOCK: usize = 2048;
    let mut out = vec![0.0f64; rows * columns];
    for start in (0..inner).step_by(BLOCK) {
        let size = BLOCK.min(inner - start);
        let wide: Vec<f64> =
            b[start * columns..(start + size) * columns].iter().map(|n| f64::from(*n)).collect();
        out.par_chunks_mut((32 * columns).max(1)).enumerate().for_each(|(block, out)| {
            let own = block * 32..rows.min(block * 32 + 32);
            let part: Vec<f64> =
                own.clone().flat_map(|row| a[row * inner + start..][..size].iter().copied()).collect();
            multiply(out, 1.0, View::new(&part, own.len(), size), View::new(&wide, size, columns));
        });
    }
    out
}
