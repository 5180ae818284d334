//! The objective (6.4) of one frame with its derivatives, and its minimisation: Gauss–Newton steps inside bounds, shortened by
//! bisection until the cost falls.

use super::deformation::Deformation;
use super::qp::box_qp;
use super::samples::{Evaluated, SamplePoint, Samples};
use super::settings::{Ended, FrameReport, Freedom, RenderSettings, Terms};
use super::{RenderError, State};
use crate::Image;
use crate::render::Light;
use understudy_core::{DMat3, DVec3};

/// A mark in chosen vertices, with shares.
pub(super) type LocalMark = ([u32; 4], [f64; 4]);

/// What weights are held to.
#[derive(Debug, Clone)]
pub(super) struct Anchor {
    pub weights: Vec<f64>,
    /// `exp(−Σ α μ / σ)` of (6.8).
    pub stiffness: Vec<f64>,
}

/// The objective of a frame: what is seen and which silhouettes count is frozen.
pub(super) struct Energy<'a> {
    pub samples: &'a Samples,
    pub light: &'a Light,
    pub image: &'a Image,
    pub settings: &'a RenderSettings,
    /// Points that are seen.
    pub visible: &'a [u32],
    /// Marks and where they were detected, pixels.
    pub marks: &'a [(LocalMark, [f64; 2])],
    pub anchors: &'a [Anchor],
}

/// Slope and curvature of the objective in all unknowns: weights, then camera or head.
pub(super) struct Quadratic {
    pub hessian: Vec<f64>,
    pub gradient: Vec<f64>,
}

/// Rows of the least-squares problem, gathered before they are multiplied out.
struct Rows {
    /// Length of a row: weights padded to whole vectors, then the camera's unknowns, padded.
    width: usize,
    data: Vec<f32>,
    hessian: Vec<f32>,
    gradient: Vec<f64>,
}

const BLOCK: usize = 64;

impl Rows {
    fn new(width: usize) -> Self {
        Self {
            width,
            data: Vec::with_capacity(width * BLOCK),
            hessian: vec![0.0; width * width],
            gradient: vec![0.0; width],
        }
    }

    /// Adds `curvature JᵀJ` and `slope J`.
    fn add(&mut self, row: &[f32], slope: f64, curvature: f64) {
        let root = curvature.sqrt() as f32;
        self.data.extend(row.iter().map(|value| value * root));
        for (sum, value) in self.gradient.iter_mut().zip(row) {
            *sum += slope * f64::from(*value);
        }
        if self.data.len() == self.width * BLOCK {
            self.flush();
        }
    }

    /// Multiplies the gathered rows out, four at a time; the upper triangle alone.
    fn flush(&mut self) {
        let width = self.width;
        let missing = self.data.len() / width % 4;
        if missing > 0 {
            self.data.resize(self.data.len() + (4 - missing) * width, 0.0);
        }
        for four in self.data.chunks_exact(4 * width) {
            let (a, rest) = four.split_at(width);
            let (b, rest) = rest.split_at(width);
            let (c, d) = rest.split_at(width);
            for i in 0..width {
                let (p, q, r, s) = (a[i], b[i], c[i], d[i]);
                if p == 0.0 && q == 0.0 && r == 0.0 && s == 0.0 {
                    continue;
                }
                // From the start of i's vector on, so that vectors stay whole.
                let from = i / 8 * 8;
                let out = &mut self.hessian[i * width + from..(i + 1) * width];
                let (a, b, c, d) = (&a[from..], &b[from..], &c[from..], &d[from..]);
                for j in 0..out.len() {
                    out[j] += p * a[j] + q * b[j] + r * c[j] + s * d[j];
                }
            }
        }
        self.data.clear();
    }
}

impl Energy<'_> {
    fn evaluate(
        &self,
        deformation: &mut dyn Deformation,
        state: &State,
        at: &mut Evaluated,
    ) -> Result<(), RenderError> {
        at.places.resize(self.samples.vertices.len(), DVec3::ZERO);
        deformation.places(&state.weights, &mut at.places)?;
        if self.settings.freedom == Freedom::Head {
            at.places.iter_mut().for_each(|place| *place = state.head.apply(*place));
        }
        self.samples.shape(at);
        Ok(())
    }

    /// Weight of one point's and of one mark's error.
    fn shares(&self, state: &State) -> (f64, f64) {
        let scale = 512.0 / state.camera.size[1] as f64;
        let photo = self.settings.photo / self.visible.len().max(1) as f64;
        (photo, self.settings.land * scale * scale / self.marks.len().max(1) as f64)
    }

    /// Smoothed L1, `√(r² + ε²) − ε`: its value, slope and the curvature of the parabola that touches it from above.
    fn smoothed(&self, residual: f64) -> (f64, f64, f64) {
        let corner = self.settings.corner;
        let length = (residual * residual + corner * corner).sqrt();
        (length - corner, residual / length, 1.0 / length)
    }

    /// The terms of the objective.
    pub fn cost(
        &self,
        deformation: &mut dyn Deformation,
        state: &State,
        at: &mut Evaluated,
    ) -> Result<Terms, RenderError> {
        self.evaluate(deformation, state, at)?;
        let (photo, land) = self.shares(state);
        let mut terms = Terms::default();
        for index in self.visible {
            let point = &self.samples.points[*index as usize];
            let Some(pixel) = state.camera.project(Samples::place(point, at)) else { continue };
            let seen = self.image.at(pixel).colour;
            let (light, _) = self.light.irradiance_with_slopes(Samples::normal(point, at).0);
            terms.photo +=
                (0..3).map(|c| self.smoothed(seen[c] - point.paint[c] * light[c]).0).sum::<f64>() * photo;
        }
        for ((vertices, shares), wanted) in self.marks {
            let place: DVec3 = (0..4).map(|k| at.places[vertices[k] as usize] * shares[k]).sum();
            let Some(pixel) = state.camera.project(place) else { continue };
            terms.land += land * ((pixel[0] - wanted[0]).powi(2) + (pixel[1] - wanted[1]).powi(2));
        }
        for anchor in self.anchors {
            let moved = state.weights.iter().zip(&anchor.weights).zip(&anchor.stiffness);
            terms.smooth +=
                self.settings.smooth * moved.map(|((x, old), firm)| firm * (x - old).powi(2)).sum::<f64>();
        }
        for (weight, value) in state.weights.iter().enumerate() {
            terms.sparse += self.settings.sparse * value.abs() / full(deformation, weight);
        }
        Ok(terms)
    }

    /// Slopes and Gauss–Newton curvature at a state that [`Energy::cost`] has just evaluated into `at`.
    pub fn quadratic(
        &self,
        deformation: &mut dyn Deformation,
        state: &State,
        at: &Evaluated,
    ) -> Result<Quadratic, RenderError> {
        let (count, stride) = (deformation.count(), deformation.stride());
        let outer = self.settings.freedom.count();
        let width = stride + 8;
        let turned = self.settings.freedom == Freedom::Head;
        let back = DMat3::from_quat(state.head.rotation).transpose();
        let (photo, land) = self.shares(state);
        let table = deformation.derivatives(&state.weights)?;
        let mut rows = Rows::new(width);
        let mut lines = vec![0.0f32; 3 * width];
        let mut slots: [Vec<DVec3>; 3] = Default::default();
        for index in self.visible {
            let point = &self.samples.points[*index as usize];
            let place = Samples::place(point, at);
            let Some(projected) = state.camera.project_with_derivatives(place) else { continue };
            let seen = self.image.at(projected.place);
            let (normal, _) = Samples::normal(point, at);
            let (light, by_normal) = self.light.irradiance_with_slopes(normal);
            lines.fill(0.0);
            for c in 0..3 {
                let by_place = projected.by_point[0] * seen.by_x[c] + projected.by_point[1] * seen.by_y[c];
                let by_normal = by_normal[c] * -point.paint[c];
                slots[c].clear();
                slots[c].resize(point.ring.len(), DVec3::ZERO);
                for k in 0..3 {
                    slots[c][usize::from(point.corner_slots[k])] += by_place * point.shares[k];
                }
                self.samples.pull_back_normal(point, at, by_normal, &mut slots[c]);
                let line = &mut lines[c * width + stride..][..outer];
                if turned {
                    let arm = place - state.head.pivot - state.head.translation;
                    let turn = arm.cross(by_place) + normal.cross(by_normal);
                    for axis in 0..3 {
                        line[axis] = turn[axis] as f32;
                        line[3 + axis] = by_place[axis] as f32;
                    }
                } else {
                    let roll = seen.by_x[c] * projected.by_roll[0] + seen.by_y[c] * projected.by_roll[1];
                    (line[0], line[1], line[2]) = (roll as f32, seen.by_x[c] as f32, seen.by_y[c] as f32);
                }
            }
            if turned {
                slots.iter_mut().flatten().for_each(|row| *row = back * *row);
            }
            pull_back(point, &slots, table, stride, &mut lines, width);
            for c in 0..3 {
                let (_, slope, curvature) = self.smoothed(seen.colour[c] - point.paint[c] * light[c]);
                rows.add(&lines[c * width..(c + 1) * width], photo * slope, photo * curvature);
            }
        }
        for ((vertices, shares), wanted) in self.marks {
            let place: DVec3 = (0..4).map(|k| at.places[vertices[k] as usize] * shares[k]).sum();
            let Some(projected) = state.camera.project_with_derivatives(place) else { continue };
            for axis in 0..2 {
                let line = &mut lines[..width];
                line.fill(0.0);
                let by_place = projected.by_point[axis];
                let by_vertex = if turned { back * by_place } else { by_place };
                for k in 0..4 {
                    if shares[k] == 0.0 {
                        continue;
                    }
                    for xyz in 0..3 {
                        let factor = (by_vertex[xyz] * shares[k]) as f32;
                        let from = &table[(3 * vertices[k] as usize + xyz) * stride..][..stride];
                        line[..stride].iter_mut().zip(from).for_each(|(to, value)| *to += factor * value);
                    }
                }
                if turned {
                    let turn = (place - state.head.pivot - state.head.translation).cross(by_place);
                    for xyz in 0..3 {
                        line[stride + xyz] = turn[xyz] as f32;
                        line[stride + 3 + xyz] = by_place[xyz] as f32;
                    }
                } else {
                    line[stride] = projected.by_roll[axis] as f32;
                    line[stride + 1 + axis] = 1.0;
                }
                rows.add(line, 2.0 * land * (projected.place[axis] - wanted[axis]), 2.0 * land);
            }
        }
        rows.flush();
        // From padded rows to the unknowns.
        let n = count + outer;
        let column = |unknown: usize| if unknown < count { unknown } else { stride + unknown - count };
        let mut out = Quadratic { hessian: vec![0.0; n * n], gradient: vec![0.0; n] };
        for i in 0..n {
            out.gradient[i] = rows.gradient[column(i)];
            for j in i..n {
                let value = f64::from(rows.hessian[column(i) * width + column(j)]);
                out.hessian[i * n + j] = value;
                out.hessian[j * n + i] = value;
            }
        }
        for anchor in self.anchors {
            for k in 0..count {
                let firm = 2.0 * self.settings.smooth * anchor.stiffness[k];
                out.gradient[k] += firm * (state.weights[k] - anchor.weights[k]);
                out.hessian[k * n + k] += firm;
            }
        }
        for k in 0..count {
            out.gradient[k] += self.settings.sparse * slope_of_length(state.weights[k], deformation.range(k))
                / full(deformation, k);
        }
        Ok(out)
    }

    /// Newton steps inside the bounds until the cost settles. The cost never rises.
    pub fn minimise(
        &mut self,
        deformation: &mut dyn Deformation,
        state: &mut State,
        most: usize,
    ) -> Result<FrameReport, RenderError> {
        let count = deformation.count();
        let mut at = Evaluated::default();
        let mut terms = self.cost(deformation, state, &mut at)?;
        let mut costs = vec![terms.total()];
        let mut ended = Ended::Iterations;
        for _ in 0..most {
            let mut quadratic = self.quadratic(deformation, state, &at)?;
            let n = quadratic.gradient.len();
            let typical = (0..n).map(|i| quadratic.hessian[i * n + i]).sum::<f64>() / n as f64;
            for i in 0..n {
                // What nothing in the picture tells of stays where it is.
                quadratic.hessian[i * n + i] += 1e-7 * (typical + quadratic.hessian[i * n + i]) + 1e-12;
            }
            let (mut low, mut high) = (vec![f64::NEG_INFINITY; n], vec![f64::INFINITY; n]);
            for k in 0..count {
                let [least, greatest] = deformation.range(k);
                // Across zero the price of a weight bends: a step ends there.
                let (least, greatest) = match state.weights[k] {
                    value if least < 0.0 && value > 0.0 => (0.0, greatest),
                    value if least < 0.0 && value < 0.0 => (least, greatest.min(0.0)),
                    _ => (least, greatest),
                };
                (low[k], high[k]) = (least - state.weights[k], greatest - state.weights[k]);
            }
            let step = box_qp(&quadratic.hessian, &quadratic.gradient, &low, &high);
            let mut length = 1.0;
            let mut lower = None;
            for _ in 0..10 {
                let tried = moved(state, &step, length, self.settings.freedom, |k| deformation.range(k));
                let trial = self.cost(deformation, &tried, &mut at)?;
                if trial.total() < terms.total() {
                    lower = Some((tried, trial));
                    break;
                }
                length *= 0.5;
            }
            let Some((next, trial)) = lower else {
                ended = Ended::NoStep;
                break;
            };
            let fell = terms.total() - trial.total();
            (*state, terms) = (next, trial);
            costs.push(terms.total());
            if fell < self.settings.tolerance * terms.total() {
                ended = Ended::Settled;
                break;
            }
        }
        debug_assert!(costs.windows(2).all(|pair| pair[1] <= pair[0]), "the cost rose: {costs:?}");
        Ok(FrameReport { ended, costs, terms, visible: self.visible.len() })
    }
}

/// The larger end of a weight's range: sparsity counts shares of it.
fn full(deformation: &dyn Deformation, weight: usize) -> f64 {
    let [low, high] = deformation.range(weight);
    low.abs().max(high.abs()).max(1e-9)
}

/// The slope of |x|; at zero the side on which x may move.
fn slope_of_length(value: f64, range: [f64; 2]) -> f64 {
    if value == 0.0 { if range[0] < 0.0 { 0.0 } else { 1.0 } } else { value.signum() }
}

/// A state after a part of a step.
pub(super) fn moved(
    state: &State,
    step: &[f64],
    length: f64,
    freedom: Freedom,
    range: impl Fn(usize) -> [f64; 2],
) -> State {
    let mut next = state.clone();
    let count = next.weights.len();
    for (k, weight) in next.weights.iter_mut().enumerate() {
        let [low, high] = range(k);
        *weight = (*weight + length * step[k]).clamp(low, high);
    }
    let outer: Vec<f64> = step[count..].iter().map(|value| value * length).collect();
    match freedom {
        Freedom::InPlane => {
            next.camera.roll += outer[0];
            next.camera.centre[0] += outer[1];
            next.camera.centre[1] += outer[2];
        }
        Freedom::Head => {
            let turn = DVec3::new(outer[0], outer[1], outer[2]);
            next.head = next.head.moved(turn, DVec3::new(outer[3], outer[4], outer[5]));
        }
    }
    next
}

/// From slopes by a ring's vertices to slopes by weights, three colours at once: `J = Σ_v M_v ∂v/∂w`.
fn pull_back(
    point: &SamplePoint,
    slots: &[Vec<DVec3>; 3],
    table: &[f32],
    stride: usize,
    lines: &mut [f32],
    width: usize,
) {
    let (red, rest) = lines.split_at_mut(width);
    let (green, blue) = rest.split_at_mut(width);
    let (red, green, blue) = (&mut red[..stride], &mut green[..stride], &mut blue[..stride]);
    for (slot, vertex) in point.ring.iter().enumerate() {
        let [r, g, b] = [0, 1, 2].map(|c| slots[c][slot].as_vec3().to_array());
        let rows = &table[3 * *vertex as usize * stride..][..3 * stride];
        let (x, rest) = rows.split_at(stride);
        let (y, z) = rest.split_at(stride);
        for k in 0..stride {
            red[k] += r[0] * x[k] + r[1] * y[k] + r[2] * z[k];
            green[k] += g[0] * x[k] + g[1] * y[k] + g[2] * z[k];
            blue[k] += b[0] * x[k] + b[1] * y[k] + b[2] * z[k];
        }
    }
}
