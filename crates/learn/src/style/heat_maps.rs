//! Points as heat maps: a softmax over the picture, the place expected under it, and what a field of numbers is there on
//! average, which is how a key point gets its Jacobian (Siarohin et al. 2019; section 6.4). And the loss that teaches heat maps
//! where a point lies.

use super::tensor::Tensor;
use rayon::prelude::*;

/// `p = exp(z) / Σ exp(z)` over each plane.
pub(super) fn softmax(x: &Tensor) -> Tensor {
    let mut out = x.clone();
    out.data_mut().par_chunks_mut(x.plane_len().max(1)).for_each(softmax_of);
    out
}

fn softmax_of(plane: &mut [f32]) {
    let most = plane.iter().copied().fold(f32::MIN, f32::max);
    plane.iter_mut().for_each(|value| *value = (*value - most).exp());
    let factor = 1.0 / plane.iter().sum::<f32>();
    plane.iter_mut().for_each(|value| *value *= factor);
}

/// `∂z = p (∂p − Σ p ∂p)`.
pub(super) fn softmax_back(maps: &Tensor, by_output: &Tensor) -> Tensor {
    let mut out = by_output.clone();
    let plane = maps.plane_len().max(1);
    out.data_mut().par_chunks_mut(plane).zip(maps.data().par_chunks(plane)).for_each(|(by, p)| {
        let mean: f32 = by.iter().zip(p).map(|(by, p)| by * p).sum();
        by.iter_mut().zip(p).for_each(|(by, p)| *by = p * (*by - mean));
    });
    out
}

/// The middle of a cell in −1 to 1.
pub(super) fn cell(index: usize, count: usize) -> f32 {
    (2 * index + 1) as f32 / count as f32 - 1.0
}

/// `μ = Σ p (x, y)`, `[images, points, 2, 1]`, x and y in −1 to 1.
pub(super) fn expected(maps: &Tensor) -> Tensor {
    let [images, points, rows, columns] = maps.shape();
    let mut out = Tensor::zeros([images, points, 2, 1]);
    let planes = maps.data().chunks_exact((rows * columns).max(1));
    for (place, plane) in out.data_mut().chunks_exact_mut(2).zip(planes) {
        for (row, line) in plane.chunks_exact(columns).enumerate() {
            let (mut mass, mut across) = (0.0, 0.0);
            for (column, p) in line.iter().enumerate() {
                mass += p;
                across += p * cell(column, columns);
            }
            place[0] += across;
            place[1] += mass * cell(row, rows);
        }
    }
    out
}

pub(super) fn expected_back(maps: &Tensor, by_output: &Tensor) -> Tensor {
    let [_, _, rows, columns] = maps.shape();
    let mut out = Tensor::zeros(maps.shape());
    let planes = out.data_mut().chunks_exact_mut((rows * columns).max(1));
    for (plane, by) in planes.zip(by_output.data().chunks_exact(2)) {
        for (index, value) in plane.iter_mut().enumerate() {
            *value = by[0] * cell(index % columns, columns) + by[1] * cell(index / columns, rows);
        }
    }
    out
}

/// `Σ p v`: maps `[images, points, …]`, values `[images, points · m, …]`, out `[images, points, m, 1]`.
pub(super) fn averaged(maps: &Tensor, values: &Tensor) -> Tensor {
    let [images, points, ..] = maps.shape();
    let each = values.shape()[1] / points.max(1);
    let mut out = Tensor::zeros([images, points, each, 1]);
    for (index, out) in out.data_mut().iter_mut().enumerate() {
        let (image, channel) = (index / (points * each), index % (points * each));
        let (p, v) = (maps.plane(image, channel / each), values.plane(image, channel));
        *out = p.iter().zip(v).map(|(p, v)| p * v).sum();
    }
    out
}

/// Gradients of maps and values.
pub(super) fn averaged_back(maps: &Tensor, values: &Tensor, by_output: &Tensor) -> (Tensor, Tensor) {
    let [_, points, ..] = maps.shape();
    let each = values.shape()[1] / points.max(1);
    let plane = maps.plane_len();
    let (mut by_maps, mut by_values) = (Tensor::zeros(maps.shape()), Tensor::zeros(values.shape()));
    for (index, by) in by_output.data().iter().enumerate() {
        let (image, channel) = (index / (points * each), index % (points * each));
        let point = channel / each;
        let (p, v) = (maps.plane(image, point), values.plane(image, channel));
        let at = (image * points + point) * plane;
        by_maps.data_mut()[at..at + plane].iter_mut().zip(v).for_each(|(sum, v)| *sum += by * v);
        let at = index * plane;
        by_values.data_mut()[at..at + plane].iter_mut().zip(p).for_each(|(out, p)| *out = by * p);
    }
    (by_maps, by_values)
}

/// What a heat map should say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The point is here, −1 to 1.
    At([f32; 2]),
    /// There is no such point: every cell alike.
    Nowhere,
    /// Nobody knows.
    Unknown,
}

/// How heat maps are taught.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatMapLoss {
    /// Spread of the wanted heat, cells.
    pub spread: f32,
    /// Weight of the place beside that of the shape.
    pub place: f32,
}

/// Cells off below which the loss of a place is square.
const CALM: f32 = 0.5;

impl HeatMapLoss {
    /// `Σ −q log p + w · huber(μ − μ*)` with p the softmax of `logits`, q a Gaussian about the target, μ the place expected under
    /// p in cells; the mean over known targets, and its gradient by the logits.
    pub fn evaluate(&self, logits: &Tensor, targets: &[Target]) -> (f64, Tensor) {
        let [images, points, rows, columns] = logits.shape();
        assert_eq!(targets.len(), images * points, "a target per map");
        let known = targets.iter().filter(|target| **target != Target::Unknown).count().max(1) as f32;
        let mut by = softmax(logits);
        let plane = (rows * columns).max(1);
        let one = |(map, target): (&mut [f32], &Target)| match target {
            Target::Unknown => {
                map.fill(0.0);
                0.0
            }
            Target::Nowhere => {
                let even = 1.0 / plane as f32;
                let cost = map.iter().map(|p| -even * p.max(1e-30).ln()).sum::<f32>();
                map.iter_mut().for_each(|p| *p = (*p - even) / known);
                cost
            }
            Target::At(place) => self.one(map, *place, rows, columns, 1.0 / known),
        };
        let costs: Vec<f32> = by.data_mut().par_chunks_mut(plane).zip(targets).map(one).collect();
        (costs.iter().map(|cost| f64::from(*cost)).sum::<f64>() / f64::from(known), by)
    }

    /// The cost of one map of probabilities, which becomes its gradient times `factor`.
    fn one(&self, map: &mut [f32], place: [f32; 2], rows: usize, columns: usize, factor: f32) -> f32 {
        let wanted = [(place[0], columns), (place[1], rows)];
        let wanted = wanted.map(|(place, count)| 0.5 * ((place + 1.0) * count as f32 - 1.0));
        let bell = |wanted: f32, count: usize| -> Vec<f32> {
            let heat = |k: usize| (-0.5 * ((k as f32 - wanted) / self.spread).powi(2)).exp();
            let values: Vec<f32> = (0..count).map(heat).collect();
            let total = values.iter().sum::<f32>().max(1e-30);
            values.iter().map(|value| value / total).collect()
        };
        let (across, down) = (bell(wanted[0], columns), bell(wanted[1], rows));
        let (mut cost, mut mean) = (0.0, [0.0f32; 2]);
        for (row, line) in map.chunks_exact(columns).enumerate() {
            for (column, p) in line.iter().enumerate() {
                let q = across[column] * down[row];
                if q > 1e-8 {
                    cost -= q * p.max(1e-30).ln();
                }
                mean[0] += p * column as f32;
                mean[1] += p * row as f32;
            }
        }
        let mut slope = [0.0; 2];
        for axis in 0..2 {
            let off = mean[axis] - wanted[axis];
            let size = off.abs();
            cost += self.place * if size < CALM { 0.5 * off * off / CALM } else { size - 0.5 * CALM };
            slope[axis] = self.place * (off / CALM).clamp(-1.0, 1.0);
        }
        for (row, line) in map.chunks_exact_mut(columns).enumerate() {
            for (column, p) in line.iter_mut().enumerate() {
                let q = across[column] * down[row];
                let along = slope[0] * (column as f32 - mean[0]) + slope[1] * (row as f32 - mean[1]);
                *p = factor * (*p - q + *p * along);
            }
        }
        cost
    }
}

/// Where a net sees a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// −1 to 1 both ways.
    pub place: [f32; 2],
    /// Share of the heat within two cells of its peak: near 1 where the net is sure, near 0 where it sees nothing.
    pub certainty: f32,
}

/// Places of all points of an image, `[points]`.
pub fn found(logits: &Tensor, image: usize) -> Vec<Found> {
    let [_, points, rows, columns] = logits.shape();
    let one = |point: usize| {
        let mut map = logits.plane(image, point).to_vec();
        softmax_of(&mut map);
        let peak = (0..map.len()).max_by(|a, b| map[*a].total_cmp(&map[*b])).unwrap_or(0);
        let (middle_row, middle) = (peak / columns, peak % columns);
        let (mut place, mut near) = ([0.0; 2], 0.0);
        for (index, p) in map.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            place[0] += p * cell(column, columns);
            place[1] += p * cell(row, rows);
            if row.abs_diff(middle_row) <= 2 && column.abs_diff(middle) <= 2 {
                near += p;
            }
        }
        Found { place, certainty: near }
    };
    (0..points).map(one).collect()
}
