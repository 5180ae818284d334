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
use understudy_core::linear_algebra::SymmetricEigen;
use understudy_runtime::diff::{BLOCK_VERTICES, LayerNumbers};

/// What compression may cost: almost all vertices of training poses stay within the first, all within the second, mm.
const ALMOST_ALL_MM: f32 = 0.05;
const ALL_MM: f32 = 0.5;
const ALMOST_ALL: f64 = 0.999;
/// The share of these that coefficients of the whole mesh may take; the rest is for those of runs of vertices.
const OF_WHOLE: f32 = 0.5;

/// What the folded map costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldReport {
    /// Coefficients of the whole mesh.
    pub rank: usize,
    /// Coefficients that a run of vertices is decoded from, on average.
    pub run_rank: f64,
    /// Training poses whose solve was compared with the map.
    pub poses: usize,
    /// Share of their vertices within 0.05 mm of the solve.
    pub within_limit: f64,
    /// The farthest vertex, mm.
    pub max_mm: f64,
}

impl FoldReport {
    /// Which of the two limits the map does not keep, in one line.
    pub fn missed(&self) -> Option<String> {
        let kept = self.within_limit >= ALMOST_ALL && self.max_mm <= f64::from(ALL_MM);
        (!kept).then(|| {
            format!(
                "the folded reconstruction is not as near the solve as it should be: {:.3} % of the vertices of {} poses lie \
                 within {ALMOST_ALL_MM} mm of it ({:.1} % are wanted), the farthest is {:.3} mm away ({ALL_MM} at most)",
                100.0 * self.within_limit,
                self.poses,
                100.0 * ALMOST_ALL,
                self.max_mm
            )
        })
    }
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
    /// As `DiffParts` has them.
    pub block_ranks: Vec<u32>,
    /// As `DiffParts` has them.
    pub mixes: Vec<f32>,
    /// As `DiffParts` has it.
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
    let count = last.bias.len();
    let mut rows = solved;
    let poses = rows.len() / width;
    let mut basis = Basis::new(&mut rows, width, most);
    let mut scores = vec![0.0f32; poses * basis.count()];
    scores.par_chunks_mut((16 * basis.count()).max(1)).zip(rows.par_chunks(16 * width)).for_each(
        |(scores, rows)| {
            let axes = View::new(&basis.rows, basis.count(), width);
            multiply(scores, 0.0, View::new(rows, rows.len() / width, width), axes.transposed());
        },
    );
    let all = basis.count();
    let enough = |rows: &[f32]| Nearness::of(rows, &[]).enough(OF_WHOLE);
    let rank = basis.fewest(&mut rows, enough).max(1).min(all.max(1));
    basis.truncate(rank);
    let rank = basis.count();
    let scores: Vec<f32> = scores.chunks_exact(all.max(1)).flat_map(|row| row[..rank].to_vec()).collect();
    let starts: Vec<usize> = (0..width).step_by(3 * BLOCK_VERTICES).collect();
    let runs: Vec<Run> = starts.par_iter().map(|start| Run::new(&basis, &scores, &rows, *start)).collect();
    drop(rows);
    let nearness = runs.iter().fold(Nearness::default(), |sum, run| sum.with(&run.nearness));
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
    // Coefficients arrive as many times as large as the whole mesh's components were made.
    let mixes = runs.iter().flat_map(|run| {
        let row = |row: &[f32]| row.iter().zip(&sizes).map(|(m, size)| m / size).collect::<Vec<f32>>();
        run.mix.chunks_exact(rank.max(1)).flat_map(row).collect::<Vec<f32>>()
    });
    Folded {
        last: LayerNumbers { weights: scaled(&weights, hidden), bias: scaled(&bias, 1) },
        subspace: scaled(&subspace, 3 * system.anchors.len()),
        linear: scaled(&by_features, features),
        block_ranks: runs.iter().map(|run| run.rank as u32).collect(),
        mixes: mixes.collect(),
        basis: runs.iter().flat_map(|run| run.decode.iter().copied()).collect(),
        mean: basis.mean,
        report: FoldReport {
            rank,
            run_rank: runs.iter().map(|run| run.rank as f64).sum::<f64>() / runs.len().max(1) as f64,
            poses,
            within_limit: nearness.share(),
            max_mm: f64::from(nearness.most),
        },
    }
}

/// How near vertices are to the solve.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Nearness {
    all: usize,
    /// Within the limit of almost all, and within its share for the whole mesh.
    near: [usize; 2],
    /// The farthest, mm.
    most: f32,
}

impl Nearness {
    /// Of errors in cm, or of the sum of two of equal length.
    fn of(rows: &[f32], more: &[f32]) -> Self {
        let distance = |index: usize| {
            let at =
                |axis: usize| rows[3 * index + axis] + more.get(3 * index + axis).copied().unwrap_or(0.0);
            10.0 * (at(0).powi(2) + at(1).powi(2) + at(2).powi(2)).sqrt()
        };
        let add = |sum: Self, index: usize| {
            let far = distance(index);
            let near = [ALMOST_ALL_MM, OF_WHOLE * ALMOST_ALL_MM];
            let near = [0, 1].map(|limit| sum.near[limit] + usize::from(far <= near[limit]));
            Self { all: sum.all + 1, near, most: sum.most.max(far) }
        };
        (0..rows.len() / 3).into_par_iter().fold(Self::default, add).reduce(Self::default, |a, b| a.with(&b))
    }

    fn with(self, other: &Self) -> Self {
        let near = [0, 1].map(|limit| self.near[limit] + other.near[limit]);
        Self { all: self.all + other.all, near, most: self.most.max(other.most) }
    }

    /// Share within the limit of almost all.
    fn share(&self) -> f64 {
        self.near[0] as f64 / self.all.max(1) as f64
    }

    /// Whether both limits are kept: the whole of them, or their share for the whole mesh.
    fn enough(&self, share: f32) -> bool {
        let near = if share < 1.0 { self.near[1] } else { self.near[0] };
        near as f64 >= ALMOST_ALL * self.all as f64 && self.most <= share * ALL_MM
    }
}

/// A run of vertices with coefficients of its own: with `Y = Φ_bᵀ S` (its rows of the components times their deviations)
/// `= U Σ Eᵀ`, the first columns of `U` decode `Uᵀ Φ_bᵀ z`. A brow moves in far fewer ways than a face.
struct Run {
    rank: usize,
    /// `[r × R]`.
    mix: Vec<f32>,
    /// `[3n × r]`.
    decode: Vec<f32>,
    nearness: Nearness,
}

impl Run {
    /// From the number `start` on. `scores`: `[poses × R]`; `rest`: what the components leave, `[poses × 3V]` cm.
    fn new(basis: &Basis, scores: &[f32], rest: &[f32], start: usize) -> Self {
        let (all, rank) = (basis.mean.len(), basis.count());
        let width = (3 * BLOCK_VERTICES).min(all - start);
        let poses = scores.len() / rank.max(1);
        let own: Vec<f32> = (0..rank).flat_map(|k| basis.rows[k * all + start..][..width].to_vec()).collect();
        let own = View::new(&own, rank, width);
        let mut products = vec![0.0f32; rank * rank];
        multiply(&mut products, 0.0, own, own.transposed());
        let deviation = |k: usize| basis.deviations[k];
        let weighted: Vec<f64> = (0..rank * rank)
            .map(|at| f64::from(products[at]) * deviation(at / rank) * deviation(at % rank))
            .collect();
        let rest: Vec<f32> =
            rest.chunks_exact(all).flat_map(|row| row[start..start + width].to_vec()).collect();
        let mut moved = vec![0.0f32; poses * width];
        multiply(&mut moved, 0.0, View::new(scores, poses, rank), own);
        // U as rows, `[r × 3n]`: Σ⁻¹ Eᵀ S Φ_b.
        let turn: Vec<f32> = match SymmetricEigen::new(&weighted, rank) {
            Err(_) => Vec::new(),
            Ok(eigen) => {
                let first = eigen.values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
                let some = eigen.values.iter().take_while(|value| **value > 1e-10 * first).count();
                let row = |k: usize| {
                    let size = eigen.values[k].sqrt();
                    eigen.vector(k).iter().enumerate().map(move |(j, e)| (e * deviation(j) / size) as f32)
                };
                (0..some).flat_map(|k| row(k).collect::<Vec<f32>>()).collect()
            }
        };
        let count = turn.len() / rank.max(1);
        let mut rows = vec![0.0f32; count * width];
        multiply(&mut rows, 0.0, View::new(&turn, count, rank), own);
        let mut local = Basis { mean: vec![0.0; width], rows, deviations: vec![1.0; count] };
        let rank_of_run =
            local.fewest(&mut moved, |moved| Nearness::of(moved, &rest).enough(1.0)).clamp(1, count.max(1));
        local.truncate(rank_of_run);
        let nearness = Nearness::of(&moved, &rest);
        let run = local.count();
        let mut mix = vec![0.0f32; run * rank];
        multiply(&mut mix, 0.0, View::new(&local.rows, run, width), own.transposed());
        // The largest number of every direction becomes one.
        let mut decode = vec![0.0f32; width * run];
        for k in 0..run {
            let row = &local.rows[k * width..][..width];
            let size = row.iter().fold(0.0f32, |most, n| most.max(n.abs())).max(f32::MIN_POSITIVE);
            row.iter().enumerate().for_each(|(output, n)| decode[output * run + k] = n / size);
            mix[k * rank..][..rank].iter_mut().for_each(|m| *m *= size);
        }
        Self { rank: run, mix, decode, nearness }
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
