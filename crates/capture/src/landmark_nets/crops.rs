//! Turned squares of a frame: what a net sees, and what is done to it in training.

use crate::Frame;
use understudy_core::Random;

/// A turned square, pixels of the frame; mirrored where `mirror`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crop {
    /// Middle.
    pub centre: [f32; 2],
    /// Length of a side.
    pub side: f32,
    /// Clockwise in the picture, radians.
    pub turn: f32,
    /// Whether left and right are exchanged.
    pub mirror: bool,
}

/// Samples along a side of a pixel at most.
const MOST_TAPS: usize = 6;

impl Crop {
    /// Where a place inside, −1 to 1, lies in the frame.
    pub fn to_frame(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        let (sine, cosine) = self.turn.sin_cos();
        let half = 0.5 * self.side;
        let x = if self.mirror { -x } else { x };
        [self.centre[0] + half * (cosine * x - sine * y), self.centre[1] + half * (sine * x + cosine * y)]
    }

    /// Where a place of the frame lies inside.
    pub fn from_frame(&self, place: [f32; 2]) -> [f32; 2] {
        let (sine, cosine) = self.turn.sin_cos();
        let (x, y) = (place[0] - self.centre[0], place[1] - self.centre[1]);
        let scale = 2.0 / self.side;
        let across = scale * (cosine * x + sine * y);
        [if self.mirror { -across } else { across }, scale * (cosine * y - sine * x)]
    }

    /// Whether it is a square near a frame of that size.
    pub(super) fn is_sound(&self, frame: &Frame) -> bool {
        let numbers = [self.centre[0], self.centre[1], self.side, self.turn];
        let longest = frame.width().max(frame.height()) as f32;
        numbers.iter().all(|value| value.is_finite())
            && (4.0..4.0 * longest).contains(&self.side)
            && self.centre.iter().all(|value| (-longest..2.0 * longest).contains(value))
    }

    /// The picture under it, `[3][side][side]` in 0 to 1; the frame's border goes on outside, at most half a frame away, and is
    /// black beyond.
    pub(super) fn sample(&self, frame: &Frame, side: usize, out: &mut [f32]) {
        let taps = ((self.side / side as f32).round() as usize).clamp(1, MOST_TAPS);
        let step = 2.0 / (side * taps) as f32;
        let origin = self.to_frame([-1.0 + 0.5 * step, -1.0 + 0.5 * step]);
        let across = self.to_frame([-1.0 + 1.5 * step, -1.0 + 0.5 * step]);
        let down = self.to_frame([-1.0 + 0.5 * step, -1.0 + 1.5 * step]);
        let across = [across[0] - origin[0], across[1] - origin[1]];
        let down = [down[0] - origin[0], down[1] - origin[1]];
        let (width, height) = (frame.width(), frame.height());
        let reach = [0.5 * width as f32, 0.5 * height as f32];
        let last = [(width - 1) as f32, (height - 1) as f32];
        let plane = side * side;
        let factor = 1.0 / (255 * taps * taps) as f32;
        let pixels = frame.rgb();
        for row in 0..side {
            for column in 0..side {
                let mut sum = [0.0f32; 3];
                for tap in 0..taps * taps {
                    let (right, below) =
                        ((column * taps + tap % taps) as f32, (row * taps + tap / taps) as f32);
                    let x = origin[0] + across[0] * right + down[0] * below - 0.5;
                    let y = origin[1] + across[1] * right + down[1] * below - 0.5;
                    let near =
                        |value: f32, axis: usize| (-reach[axis]..last[axis] + reach[axis]).contains(&value);
                    if !near(x, 0) || !near(y, 1) {
                        continue;
                    }
                    let (x, y) = (x.clamp(0.0, last[0]), y.clamp(0.0, last[1]));
                    let (left, top) = (x as usize, y as usize);
                    let (u, v) = (x - left as f32, y - top as f32);
                    let (next, under) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
                    let corners = [(left, top), (next, top), (left, under), (next, under)];
                    let shares = [(1.0 - u) * (1.0 - v), u * (1.0 - v), (1.0 - u) * v, u * v];
                    for ((x, y), share) in corners.into_iter().zip(shares) {
                        let at = 3 * (y * width + x);
                        (0..3).for_each(|c| sum[c] += share * f32::from(pixels[at + c]));
                    }
                }
                (0..3).for_each(|c| out[c * plane + row * side + column] = sum[c] * factor);
            }
        }
    }
}

/// Mean 0 and spread 1 over all channels: light and exposure leave.
pub(super) fn normalise(picture: &mut [f32]) {
    let count = picture.len().max(1) as f32;
    let mean = picture.iter().sum::<f32>() / count;
    let spread = (picture.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / count).sqrt();
    let factor = 1.0 / (spread + 0.02);
    picture.iter_mut().for_each(|value| *value = (*value - mean) * factor);
}

/// Other exposure, colour and contrast, blur, noise of a sensor, and things before the lens.
pub(super) fn disturb(picture: &mut [f32], side: usize, random: &mut Random) {
    let plane = side * side;
    if random.unit() < 0.3 {
        for _ in 0..1 + random.below(2) {
            picture.chunks_exact_mut(plane).for_each(|channel| blur(channel, side));
        }
    }
    let grey = if random.unit() < 0.15 { random.uniform(0.5, 1.0) } else { 0.0 };
    let gamma = random.uniform(-0.4, 0.4).exp();
    let all = random.uniform(-0.3, 0.3).exp();
    let gains = [0; 3].map(|_| all * random.uniform(-0.18, 0.18).exp());
    let lift = random.uniform(0.0, 0.1);
    for pixel in 0..plane {
        let colour = [0, 1, 2].map(|c| picture[c * plane + pixel]);
        let mean = (colour[0] + colour[1] + colour[2]) / 3.0;
        for c in 0..3 {
            let value = colour[c] + grey * (mean - colour[c]);
            picture[c * plane + pixel] = lift + gains[c] * value.max(0.0).powf(gamma);
        }
    }
    if random.unit() < 0.25 {
        let size = [0; 2].map(|_| random.uniform(0.05, 0.35) * side as f32);
        let corner = [0, 1].map(|axis| random.uniform(-0.5 * size[axis], side as f32 - 0.5 * size[axis]));
        let colour = [0; 3].map(|_| random.uniform(0.0, 1.0));
        for pixel in 0..plane {
            let place = [(pixel % side) as f32, (pixel / side) as f32];
            if (0..2).all(|axis| (corner[axis]..corner[axis] + size[axis]).contains(&place[axis])) {
                (0..3).for_each(|c| picture[c * plane + pixel] = colour[c]);
            }
        }
    }
    let noise = if random.unit() < 0.5 { random.uniform(0.0, 0.05) } else { 0.006 };
    for value in picture.iter_mut() {
        // Near enough to normal, and cheap: the sum of four.
        let bits = random.next_u64();
        let sum: f32 = (0..4).map(|k| ((bits >> (16 * k)) & 0xffff) as f32 / 65535.0 - 0.5).sum();
        *value += noise * 1.732 * sum;
    }
}

fn blur(channel: &mut [f32], side: usize) {
    let before = channel.to_vec();
    let at = |x: isize, y: isize| {
        let last = side as isize - 1;
        before[y.clamp(0, last) as usize * side + x.clamp(0, last) as usize]
    };
    for y in 0..side as isize {
        for x in 0..side as isize {
            let line = |y: isize| 0.25 * (at(x - 1, y) + at(x + 1, y)) + 0.5 * at(x, y);
            channel[y as usize * side + x as usize] = 0.25 * (line(y - 1) + line(y + 1)) + 0.5 * line(y);
        }
    }
}
