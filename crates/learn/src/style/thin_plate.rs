//! Random smooth maps of the picture onto itself, for losses that ask a net to see the same points in a bent picture: an affine map and
//! a thin-plate spline, `T(x) = A x + t + Σ_j c_j U(|x − p_j|²)`, `U(q) = ½ q log(q + ε)`, with first and second derivatives.

use super::heat_maps::cell;
use super::tensor::Tensor;
use understudy_core::Random;

/// ε of U, squares of half a picture.
const EPSILON: f32 = 1e-6;
/// Control points along a side.
const SIDE: usize = 5;

/// A map of places in −1 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinPlate {
    linear: [f32; 4],
    shift: [f32; 2],
    /// Control points and what they add.
    bends: Vec<([f32; 2], [f32; 2])>,
}

/// A map at a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bent {
    pub place: [f32; 2],
    /// `T'`, by rows.
    pub slope: [f32; 4],
    /// `∂T'/∂x` and `∂T'/∂y`.
    pub curvature: [[f32; 4]; 2],
}

impl ThinPlate {
    /// With these spreads of the affine part and of the bends.
    pub fn random(affine: f32, bend: f32, random: &mut Random) -> Self {
        let mut normal = |spread: f32| random.normal() as f32 * spread;
        let linear = [1.0 + normal(affine), normal(affine), normal(affine), 1.0 + normal(affine)];
        let shift = [normal(affine), normal(affine)];
        let bends = (0..SIDE * SIDE).map(|k| {
            let at = |k: usize| 2.0 * k as f32 / (SIDE - 1) as f32 - 1.0;
            ([at(k % SIDE), at(k / SIDE)], [normal(bend), normal(bend)])
        });
        Self { linear, shift, bends: bends.collect() }
    }

    pub(super) fn at(&self, [x, y]: [f32; 2]) -> Bent {
        let l = self.linear;
        let mut out = Bent {
            place: [l[0] * x + l[1] * y + self.shift[0], l[2] * x + l[3] * y + self.shift[1]],
            slope: l,
            curvature: [[0.0; 4]; 2],
        };
        for (point, add) in &self.bends {
            let d = [x - point[0], y - point[1]];
            let square = d[0] * d[0] + d[1] * d[1];
            let safe = square + EPSILON;
            let bend = 0.5 * square * safe.ln();
            // ∇U = g d, and ∂(g d_b)/∂x_a = g δ_ab + 2 g' d_a d_b with g' by the square.
            let g = safe.ln() + square / safe;
            let by_square = 1.0 / safe + EPSILON / (safe * safe);
            for row in 0..2 {
                out.place[row] += add[row] * bend;
                for column in 0..2 {
                    out.slope[2 * row + column] += add[row] * g * d[column];
                }
            }
            // Derivatives of the slope: third derivatives of U are not needed, second ones of ∇U are.
            for axis in 0..2 {
                for row in 0..2 {
                    for column in 0..2 {
                        let same = if axis == column { g } else { 0.0 };
                        let value = same + 2.0 * by_square * d[axis] * d[column];
                        out.curvature[axis][2 * row + column] += add[row] * value;
                    }
                }
            }
        }
        out
    }

    /// Where every pixel of a picture comes from, `[1, 2, rows, columns]`.
    pub fn grid(&self, rows: usize, columns: usize) -> Tensor {
        let places =
            (0..rows * columns).map(|k| self.at([cell(k % columns, columns), cell(k / columns, rows)]).place);
        let places: Vec<[f32; 2]> = places.collect();
        let axis = |axis: usize| places.iter().map(move |place| place[axis]);
        Tensor::new([1, 2, rows, columns], axis(0).chain(axis(1)).collect())
    }
}
