//! Optical flow between two frames, from coarse to fine: a robust brightness error and a robust smoothness, linearised about
//! the flow so far and relaxed (after Brox, Bruhn, Papenberg and Weickert 2004). Deterministic.

use crate::Image;
use crate::render::FlowField;

/// How flow is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowSettings {
    /// Weight of smoothness against brightness (0 to 1, about linear in what the eye sees).
    pub smoothness: f32,
    /// Linearisations per level.
    pub warps: usize,
    /// Relaxations per linearisation.
    pub sweeps: usize,
    /// Halvings before the finest level that is worked on; the rest is interpolated.
    pub skipped: usize,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self { smoothness: 0.06, warps: 3, sweeps: 20, skipped: 0 }
    }
}

/// Where a robust error turns from a parabola to a line: brightness, and pixels per pixel.
const BRIGHTNESS_CORNER: f32 = 0.004;
const BEND_CORNER: f32 = 0.01;
/// Over-relaxation.
const OVER: f32 = 1.85;
/// The side below which a level is not halved again.
const COARSEST: usize = 14;

/// One channel.
struct Plane {
    width: usize,
    height: usize,
    values: Vec<f32>,
}

impl Plane {
    /// Brightness as the eye sees it, smoothed once: noise in light is no motion.
    fn of(image: &Image) -> Self {
        let smooth = image.smoothed(1);
        let bright = |p: &[f32; 3]| (0.2126 * p[0] + 0.7152 * p[1] + 0.0722 * p[2]).max(0.0).sqrt();
        Self {
            width: image.width(),
            height: image.height(),
            values: smooth.pixels().iter().map(bright).collect(),
        }
    }

    fn halved(&self) -> Self {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        let mut values = Vec::with_capacity(width * height);
        for y in 0..height {
            let (top, below) = (2 * y * self.width, (2 * y + 1).min(self.height - 1) * self.width);
            for x in 0..width {
                let (left, right) = (2 * x, (2 * x + 1).min(self.width - 1));
                let v = &self.values;
                values.push(0.25 * (v[top + left] + v[top + right] + v[below + left] + v[below + right]));
            }
        }
        Self { width, height, values }
    }

    /// Bilinear at pixel coordinates whose integers are pixel middles; `None` outside.
    fn at(&self, x: f32, y: f32) -> Option<(f32, f32, f32)> {
        let inside = x >= 0.0 && y >= 0.0 && x <= (self.width - 1) as f32 && y <= (self.height - 1) as f32;
        if !inside {
            return None;
        }
        let (column, row) =
            ((x as usize).min(self.width.saturating_sub(2)), (y as usize).min(self.height.saturating_sub(2)));
        let (u, v) = (x - column as f32, y - row as f32);
        let at = row * self.width + column;
        let (a, b, c, d) = (
            self.values[at],
            self.values[at + 1],
            self.values[at + self.width],
            self.values[at + self.width + 1],
        );
        let (top, bottom) = (a + (b - a) * u, c + (d - c) * u);
        Some((top + (bottom - top) * v, (b - a) * (1.0 - v) + (d - c) * v, bottom - top))
    }
}

/// Flow from one frame to the next of its size.
pub fn flow(from: &Image, to: &Image, settings: &FlowSettings) -> FlowField {
    let (width, height) = (from.width(), from.height());
    let mut levels = vec![[Plane::of(from), Plane::of(to)]];
    while let Some([a, _]) = levels.last().filter(|[a, _]| a.width.min(a.height) / 2 >= COARSEST) {
        let _ = a;
        let [a, b] = &levels[levels.len() - 1];
        let half = [a.halved(), b.halved()];
        levels.push(half);
    }
    let finest = settings.skipped.min(levels.len() - 1);
    let mut motion: Vec<[f32; 2]> = Vec::new();
    let mut size = (0, 0);
    for [a, b] in levels[finest..].iter().rev() {
        motion = match motion.is_empty() {
            true => vec![[0.0; 2]; a.width * a.height],
            false => doubled(&motion, size, (a.width, a.height)),
        };
        size = (a.width, a.height);
        if size.0 >= 2 && size.1 >= 2 {
            for _ in 0..settings.warps {
                refine(a, b, settings, &mut motion);
            }
        }
    }
    for [a, _] in levels[..finest].iter().rev() {
        motion = doubled(&motion, size, (a.width, a.height));
        size = (a.width, a.height);
    }
    FlowField { width, height, motion, known: vec![true; width * height] }
}

/// A level's flow on the next finer one.
fn doubled(
    motion: &[[f32; 2]],
    (width, height): (usize, usize),
    (to_width, to_height): (usize, usize),
) -> Vec<[f32; 2]> {
    let mut out = Vec::with_capacity(to_width * to_height);
    for y in 0..to_height {
        for x in 0..to_width {
            let place = |value: usize, size: usize| (0.5 * value as f32 - 0.25).clamp(0.0, (size - 1) as f32);
            let (px, py) = (place(x, width), place(y, height));
            let (column, row) = (px as usize, py as usize);
            let (right, below) = ((column + 1).min(width - 1), (row + 1).min(height - 1));
            let (u, v) = (px - column as f32, py - row as f32);
            let of = |x: usize, y: usize| motion[y * width + x];
            let (a, b, c, d) = (of(column, row), of(right, row), of(column, below), of(right, below));
            out.push([0, 1].map(|k| {
                let (top, bottom) = (a[k] + (b[k] - a[k]) * u, c[k] + (d[k] - c[k]) * u);
                2.0 * (top + (bottom - top) * v)
            }));
        }
    }
    out
}

/// One linearisation about `motion`, relaxed.
fn refine(from: &Plane, to: &Plane, settings: &FlowSettings, motion: &mut [[f32; 2]]) {
    let (width, height) = (from.width, from.height);
    // Slopes and difference in time, with the weight of the data: nothing where the picture ends.
    let mut data = vec![[0.0f32; 3]; width * height];
    for y in 0..height {
        for x in 0..width {
            let at = y * width + x;
            let [u, v] = motion[at];
            let Some((value, by_x, by_y)) = to.at(x as f32 + u, y as f32 + v) else { continue };
            let before = |low: usize, high: usize, span: usize| {
                (from.values[high] - from.values[low]) / span.max(1) as f32
            };
            let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
            let (above, below) = (y.saturating_sub(1), (y + 1).min(height - 1));
            let own_x = before(y * width + left, y * width + right, right - left);
            let own_y = before(above * width + x, below * width + x, below - above);
            data[at] = [0.5 * (by_x + own_x), 0.5 * (by_y + own_y), value - from.values[at]];
        }
    }
    let start = motion.to_vec();
    let mut bend = vec![0.0f32; width * height];
    let mut trust = vec![0.0f32; width * height];
    for sweep in 0..settings.sweeps {
        if sweep % 5 == 0 {
            for y in 0..height {
                for x in 0..width {
                    let at = y * width + x;
                    let (right, below) =
                        (y * width + (x + 1).min(width - 1), (y + 1).min(height - 1) * width + x);
                    let square: f32 = (0..2)
                        .map(|k| {
                            (motion[right][k] - motion[at][k]).powi(2)
                                + (motion[below][k] - motion[at][k]).powi(2)
                        })
                        .sum();
                    bend[at] =
                        settings.smoothness / (square + BEND_CORNER * BEND_CORNER).sqrt() * BEND_CORNER;
                    let [ix, iy, it] = data[at];
                    let rest = it + ix * (motion[at][0] - start[at][0]) + iy * (motion[at][1] - start[at][1]);
                    trust[at] = 1.0 / (rest * rest + BRIGHTNESS_CORNER * BRIGHTNESS_CORNER).sqrt();
                }
            }
        }
        for y in 0..height {
            for x in 0..width {
                let at = y * width + x;
                let (mut sum, mut total) = ([0.0f32; 2], 0.0f32);
                let mut add = |other: usize, weight: f32| {
                    sum[0] += weight * motion[other][0];
                    sum[1] += weight * motion[other][1];
                    total += weight;
                };
                if x > 0 {
                    add(at - 1, bend[at - 1]);
                }
                if y > 0 {
                    add(at - width, bend[at - width]);
                }
                if x + 1 < width {
                    add(at + 1, bend[at]);
                }
                if y + 1 < height {
                    add(at + width, bend[at]);
                }
                let ([ix, iy, it], trust, [u0, v0]) = (data[at], trust[at], start[at]);
                let it = it - ix * u0 - iy * v0;
                // Two unknowns: solved together.
                let (a, b, c) = (total + trust * ix * ix, trust * ix * iy, total + trust * iy * iy);
                let (p, q) = (sum[0] - trust * ix * it, sum[1] - trust * iy * it);
                let determinant = (a * c - b * b).max(1e-20);
                let next = [(c * p - b * q) / determinant, (a * q - b * p) / determinant];
                (0..2).for_each(|k| motion[at][k] += OVER * (next[k] - motion[at][k]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    /// Smooth blobs, moved by a constant and a slow turn.
    fn scene(turn: f64, shift: [f64; 2]) -> (Image, Image, FlowField) {
        let side = 96;
        let mut random = Random::new(9);
        let blobs: Vec<[f64; 4]> = (0..120)
            .map(|_| {
                [
                    random.unit() * 120.0 - 12.0,
                    random.unit() * 120.0 - 12.0,
                    2.0 + 4.0 * random.unit(),
                    random.unit(),
                ]
            })
            .collect();
        let colour = |x: f64, y: f64| -> f32 {
            let sum: f64 = blobs
                .iter()
                .map(|[bx, by, r, v]| v * (-((x - bx).powi(2) + (y - by).powi(2)) / (r * r)).exp())
                .sum();
            (0.1 + 0.4 * sum) as f32
        };
        let (sine, cosine) = turn.sin_cos();
        let forward = |x: f64, y: f64| {
            let (dx, dy) = (x - 48.0, y - 48.0);
            [48.0 + cosine * dx - sine * dy + shift[0], 48.0 + sine * dx + cosine * dy + shift[1]]
        };
        let backward = |x: f64, y: f64| {
            let (dx, dy) = (x - 48.0 - shift[0], y - 48.0 - shift[1]);
            [48.0 + cosine * dx + sine * dy, 48.0 - sine * dx + cosine * dy]
        };
        let each = |f: &dyn Fn(f64, f64) -> [f32; 3]| {
            let pixels = (0..side * side).map(|at| f((at % side) as f64 + 0.5, (at / side) as f64 + 0.5));
            Image::from_pixels(side, side, pixels.collect()).expect("a square")
        };
        let from = each(&|x, y| [colour(x, y); 3]);
        let to = each(&|x, y| {
            let [x, y] = backward(x, y);
            [colour(x, y); 3]
        });
        let place = |at: usize| ((at % side) as f64 + 0.5, (at / side) as f64 + 0.5);
        let motion = (0..side * side).map(|at| {
            let (x, y) = place(at);
            let [a, b] = forward(x, y);
            [(a - x) as f32, (b - y) as f32]
        });
        let inside = (0..side * side).map(|at| {
            let [x, y] = forward(place(at).0, place(at).1);
            (2.0..94.0).contains(&x) && (2.0..94.0).contains(&y)
        });
        (from, to, FlowField { width: side, height: side, motion: motion.collect(), known: inside.collect() })
    }

    #[test]
    fn shifts_and_turns_are_found() {
        // Blobs have less to hold on to than faces: what lies between them must follow.
        let settings = FlowSettings { smoothness: 1.0, ..FlowSettings::default() };
        for (turn, shift) in [(0.0, [0.4, -0.3]), (0.0, [6.0, 3.5]), (0.05, [-2.0, 1.0])] {
            let (from, to, exact) = scene(turn, shift);
            let found = flow(&from, &to, &settings);
            let error = found.end_point_error(&exact).expect("known somewhere");
            assert!(error < 0.15, "{turn} {shift:?}: {error} px");
            // Coarser work gives coarser flow, but flow.
            let coarse = flow(&from, &to, &FlowSettings { skipped: 1, ..settings });
            assert!(coarse.end_point_error(&exact).expect("known") < 0.6);
        }
    }

    #[test]
    fn nothing_moves_in_equal_frames_and_tiny_ones_are_no_trouble() {
        let (from, ..) = scene(0.0, [0.0; 2]);
        assert!(flow(&from, &from, &FlowSettings::default()).motion.iter().flatten().all(|v| v.abs() < 1e-3));
        let tiny = Image::new(1, 3, [0.5; 3]);
        assert_eq!(flow(&tiny, &tiny, &FlowSettings::default()).motion, vec![[0.0; 2]; 3]);
    }
}
