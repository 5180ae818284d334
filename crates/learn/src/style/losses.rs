//! What is asked of a model of style transfer (6.9): pictures whose features look alike, key points that follow a bent picture,
//! keep their distance (6.11), leave the ground alone (6.10), and Jacobians near the identity (6.12). Every loss comes with its
//! gradient; means over images.

use super::hourglass::Hourglass;
use super::motion::{inverse, matrix, times, transposed};
use super::resample::{halved, halved_back};
use super::tape::{Mode, Tape};
use super::tensor::Tensor;
use super::thin_plate::ThinPlate;
use serde::{Deserialize, Serialize};

/// Key points of pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPoints {
    /// μ, `[images, points, 2, 1]`, −1 to 1.
    pub points: Tensor,
    /// J, `[images, points, 4, 1]` by rows.
    pub jacobians: Tensor,
}

/// Weights of the losses, and T of (6.11).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossWeights {
    /// Of features and pixels.
    pub perceptual: f32,
    /// Of places in bent pictures.
    pub place: f32,
    /// Of Jacobians in bent pictures.
    pub jacobian: f32,
    /// λ of (6.11).
    pub distance: f32,
    /// T of (6.11), per square of half a picture.
    pub sharpness: f32,
    /// λ of (6.10).
    pub ground: f32,
    /// λ of (6.12).
    pub regulariser: f32,
}

impl Default for LossWeights {
    fn default() -> Self {
        Self {
            perceptual: 10.0,
            place: 10.0,
            jacobian: 10.0,
            distance: 1.0,
            sharpness: 100.0,
            ground: 1.0,
            regulariser: 0.1,
        }
    }
}

impl LossWeights {
    /// The first order model without the thesis's own terms.
    pub fn first_order() -> Self {
        Self { distance: 0.0, ground: 0.0, regulariser: 0.0, ..Self::default() }
    }
}

/// Costs of a batch, weights included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Losses {
    /// Features and pixels.
    pub perceptual: f64,
    /// Places, Jacobians.
    pub equivariance: [f64; 2],
    /// (6.11).
    pub distance: f64,
    /// (6.10).
    pub ground: f64,
    /// (6.12).
    pub regulariser: f64,
}

impl Losses {
    /// (6.9).
    pub fn total(&self) -> f64 {
        self.perceptual
            + self.equivariance.iter().sum::<f64>()
            + self.distance
            + self.ground
            + self.regulariser
    }
}

/// Features that are compared: the first levels of a net that learned something else and stays as it is.
#[derive(Debug, Clone)]
pub struct Features {
    net: Hourglass,
}

impl Features {
    /// Of a net that is at hand, such as the one of landmarks.
    pub fn of(net: Hourglass) -> Self {
        Self { net }
    }
}

/// Sizes at which pictures are compared: the whole and its half.
const SCALES: usize = 2;

pub(super) struct TransferLoss<'a> {
    pub weights: &'a LossWeights,
    pub features: &'a Features,
}

impl TransferLoss<'_> {
    /// `w Σ_scales (mean |x − y| + Σ_levels mean |f(x) − f(y)|)`, where `region` is 1.
    pub fn perceptual(&self, drawn: &Tensor, wanted: &Tensor, region: Option<&Tensor>) -> (f64, Tensor) {
        let masked = |picture: &Tensor| match region {
            Some(region) => under(picture, region),
            None => picture.clone(),
        };
        let (mut own, mut goal) = (masked(drawn), masked(wanted));
        let (mut cost, mut by): (f64, Vec<Tensor>) = (0.0, Vec::new());
        for scale in 0..SCALES {
            if scale > 0 {
                (own, goal) = (halved(&own), halved(&goal));
            }
            let (part, slope) = self.one_scale(&own, &goal);
            cost += part;
            by.push(slope);
        }
        let mut total = by.pop().expect("a scale");
        while let Some(above) = by.pop() {
            let mut sum = halved_back(&total);
            sum.add(&above);
            total = sum;
        }
        (cost, masked(&total))
    }

    fn one_scale(&self, own: &Tensor, goal: &Tensor) -> (f64, Tensor) {
        let (mut cost, mut by) = absolute(own, goal, self.weights.perceptual);
        let net = &self.features.net;
        let mut goal_tape = Tape::new(net.parameters(), Mode::Use);
        let picture = goal_tape.constant(goal.clone());
        let wanted = net.features(&mut goal_tape, picture);
        let mut tape = Tape::new(net.parameters(), Mode::Use);
        let picture = tape.input(own.clone());
        let seen = net.features(&mut tape, picture);
        let mut seeds = Vec::new();
        for (seen, wanted) in seen.into_iter().zip(wanted) {
            let (part, slope) = absolute(tape.value(seen), goal_tape.value(wanted), self.weights.perceptual);
            cost += part;
            seeds.push((seen, slope));
        }
        if let Some(slope) = tape.backward(seeds).of(picture) {
            by.add(slope);
        }
        (cost, by)
    }

    /// `w₁ mean |μ_d − T(μ_t)| + w₂ mean |1 − J_d⁻¹ T'(μ_t) J_t|`: costs, gradients by the driving picture's key points and by the
    /// bent one's.
    pub fn equivariance(
        &self,
        driving: &KeyPoints,
        bent: &KeyPoints,
        bends: &[ThinPlate],
    ) -> ([f64; 2], KeyPoints, KeyPoints) {
        let [images, points, ..] = driving.points.shape();
        let zeros = || KeyPoints {
            points: Tensor::zeros(driving.points.shape()),
            jacobians: Tensor::zeros(driving.jacobians.shape()),
        };
        let (mut by_driving, mut by_bent) = (zeros(), zeros());
        let mut costs = [0.0; 2];
        let count = (images * points).max(1) as f32;
        let (place_weight, jacobian_weight) =
            (self.weights.place / (2.0 * count), self.weights.jacobian / (4.0 * count));
        for at in 0..images * points {
            let pair = |seen: &Tensor| [seen.data()[2 * at], seen.data()[2 * at + 1]];
            let (here, there) = (pair(&driving.points), pair(&bent.points));
            let map = bends[at / points].at(there);
            let mut by_place = [0.0; 2];
            for axis in 0..2 {
                let off = here[axis] - map.place[axis];
                costs[0] += f64::from(place_weight * off.abs());
                by_place[axis] = -place_weight * sign(off);
                by_driving.points.data_mut()[2 * at + axis] = place_weight * sign(off);
            }
            let inner = inverse(matrix(&driving.jacobians.data()[4 * at..]));
            let own = matrix(&bent.jacobians.data()[4 * at..]);
            let carried = times(map.slope, own);
            let product = times(inner, carried);
            let identity = [1.0, 0.0, 0.0, 1.0];
            let mut by_product = [0.0; 4];
            for k in 0..4 {
                let off = product[k] - identity[k];
                costs[1] += f64::from(jacobian_weight * off.abs());
                by_product[k] = jacobian_weight * sign(off);
            }
            // P = X C with X = J_d⁻¹ and C = T' J_t.
            let by_inner = times(by_product, transposed(carried));
            let by_carried = times(transposed(inner), by_product);
            let by_matrix = times(times(transposed(inner), by_inner), transposed(inner));
            let by_own = times(transposed(map.slope), by_carried);
            let by_slope = times(by_carried, transposed(own));
            for k in 0..4 {
                by_driving.jacobians.data_mut()[4 * at + k] = -by_matrix[k];
                by_bent.jacobians.data_mut()[4 * at + k] = by_own[k];
            }
            for axis in 0..2 {
                let through_place = by_place[0] * map.slope[axis] + by_place[1] * map.slope[2 + axis];
                let through_slope: f32 = by_slope.iter().zip(map.curvature[axis]).map(|(by, c)| by * c).sum();
                by_bent.points.data_mut()[2 * at + axis] = through_place + through_slope;
            }
        }
        (costs, by_driving, by_bent)
    }

    /// (6.11): `λ Σ_{i<j} exp(−T |μ_i − μ_j|²)`.
    pub fn distance(&self, points: &Tensor) -> (f64, Tensor) {
        let [images, count, ..] = points.shape();
        let mut by = Tensor::zeros(points.shape());
        let factor = self.weights.distance / images.max(1) as f32;
        let mut cost = 0.0;
        for image in 0..images {
            let all = &points.data()[2 * image * count..2 * (image + 1) * count];
            let by = &mut by.data_mut()[2 * image * count..2 * (image + 1) * count];
            for i in 0..count {
                for j in i + 1..count {
                    let off = [all[2 * i] - all[2 * j], all[2 * i + 1] - all[2 * j + 1]];
                    let near = (-self.weights.sharpness * (off[0] * off[0] + off[1] * off[1])).exp() * factor;
                    cost += f64::from(near);
                    for axis in 0..2 {
                        let slope = -2.0 * self.weights.sharpness * near * off[axis];
                        by[2 * i + axis] += slope;
                        by[2 * j + axis] -= slope;
                    }
                }
            }
        }
        (cost, by)
    }

    /// (6.10): `λ Σ_i Σ C_i · M`, M the share of ground under every cell.
    pub fn ground(&self, maps: &Tensor, ground: &Tensor, halvings: usize) -> (f64, Tensor) {
        let mut mask = ground.clone();
        for _ in 0..halvings {
            mask = halved(&mask);
        }
        let [images, points, ..] = maps.shape();
        let factor = self.weights.ground / images.max(1) as f32;
        let mut by = Tensor::zeros(maps.shape());
        let plane = maps.plane_len().max(1);
        let mut cost = 0.0;
        for (index, by) in by.data_mut().chunks_exact_mut(plane).enumerate() {
            let (mask, map) = (mask.plane(index / points, 0), maps.plane(index / points, index % points));
            for ((by, mask), map) in by.iter_mut().zip(mask).zip(map) {
                *by = factor * mask;
                cost += f64::from(*by * map);
            }
        }
        (cost, by)
    }

    /// (6.12): `λ Σ ‖J − 1‖²`.
    pub fn regulariser(&self, jacobians: &Tensor) -> (f64, Tensor) {
        let factor = self.weights.regulariser / jacobians.shape()[0].max(1) as f32;
        let mut by = jacobians.clone();
        let mut cost = 0.0;
        for (k, value) in by.data_mut().iter_mut().enumerate() {
            let off = *value - if k % 4 == 0 || k % 4 == 3 { 1.0 } else { 0.0 };
            cost += f64::from(factor * off * off);
            *value = 2.0 * factor * off;
        }
        (cost, by)
    }
}

fn sign(value: f32) -> f32 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

/// `w · mean |x − y|` and its gradient by x.
fn absolute(x: &Tensor, y: &Tensor, weight: f32) -> (f64, Tensor) {
    let factor = weight / x.data().len().max(1) as f32;
    let (mut cost, mut by) = (0.0, x.clone());
    for (by, y) in by.data_mut().iter_mut().zip(y.data()) {
        let off = *by - y;
        cost += f64::from(off.abs());
        *by = factor * sign(off);
    }
    (cost * f64::from(factor), by)
}

/// A picture times a mask of one channel.
fn under(picture: &Tensor, mask: &Tensor) -> Tensor {
    let mut out = picture.clone();
    let (plane, channels) = (picture.plane_len().max(1), picture.shape()[1]);
    for (index, out) in out.data_mut().chunks_exact_mut(plane).enumerate() {
        out.iter_mut().zip(mask.plane(index / channels, 0)).for_each(|(out, mask)| *out *= mask);
    }
    out
}
