//! A turned rectangle of a frame, and what a net sees of it: the pixels under the rectangle, bilinearly sampled into a square.

use crate::Frame;

/// A turned rectangle, in shares of the frame's size: 0 left and above, 1 right and below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Middle.
    pub centre: [f32; 2],
    /// Width in shares of the frame's width, height in shares of its height.
    pub size: [f32; 2],
    /// Clockwise as one looks at the frame, radians.
    pub turn: f32,
}

/// What lies outside the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border {
    Black,
    Repeat,
}

impl Region {
    /// Around points of a frame of `[width, height]` pixels, upright along the line from `left` to `right`.
    pub(super) fn around(
        low: [f32; 2],
        high: [f32; 2],
        left: [f32; 2],
        right: [f32; 2],
        frame: [f32; 2],
    ) -> Self {
        let turn = ((right[1] - left[1]) * frame[1]).atan2((right[0] - left[0]) * frame[0]);
        let turn =
            turn - std::f32::consts::TAU * ((turn + std::f32::consts::PI) / std::f32::consts::TAU).floor();
        Self {
            centre: [0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1])],
            size: [high[0] - low[0], high[1] - low[1]],
            turn,
        }
    }

    /// Made larger about its middle.
    pub(super) fn grown(self, factor: f32) -> Self {
        Self { size: self.size.map(|size| factor * size), ..self }
    }

    /// A square of its longer side, in pixels.
    pub(super) fn squared(self, frame: [f32; 2]) -> Self {
        let side = (self.size[0] * frame[0]).max(self.size[1] * frame[1]);
        Self { size: [side / frame[0], side / frame[1]], ..self }
    }

    /// The whole of a frame in a square, with bars where it is not one.
    pub(super) fn letterbox(frame: [f32; 2]) -> Self {
        let side = frame[0].max(frame[1]);
        Self { centre: [0.5, 0.5], size: [side / frame[0], side / frame[1]], turn: 0.0 }
    }

    /// Whether a part of the frame lies under it that is worth looking at.
    pub(super) fn is_sound(&self) -> bool {
        let numbers = [self.centre[0], self.centre[1], self.size[0], self.size[1], self.turn];
        numbers.iter().all(|x| x.is_finite())
            && self.size.iter().all(|size| (1e-3..20.0).contains(size))
            && self.centre.iter().all(|place| (-1.0..2.0).contains(place))
    }

    /// A place inside the rectangle, 0 to 1 both ways, as a place of the frame.
    pub fn to_frame(&self, [x, y]: [f32; 2], frame: [f32; 2]) -> [f32; 2] {
        let (sine, cosine) = self.turn.sin_cos();
        // Turned in pixels: a share of the width is another length than a share of the height.
        let (x, y) = ((x - 0.5) * self.size[0] * frame[0], (y - 0.5) * self.size[1] * frame[1]);
        [
            self.centre[0] + (cosine * x - sine * y) / frame[0],
            self.centre[1] + (sine * x + cosine * y) / frame[1],
        ]
    }

    /// Samples a square of `side` pixels and maps bytes to numbers from `range[0]` to `range[1]`.
    pub(super) fn sample(
        &self,
        frame: &Frame,
        side: usize,
        border: Border,
        range: [f32; 2],
        out: &mut [f32],
    ) {
        let size = [frame.width() as f32, frame.height() as f32];
        let scale = (range[1] - range[0]) / 255.0;
        let corner = |x: f32, y: f32| {
            let [x, y] = self.to_frame([x, y], size);
            [x * size[0], y * size[1]]
        };
        let (origin, across, down) = (corner(0.0, 0.0), corner(1.0, 0.0), corner(0.0, 1.0));
        let step = |end: [f32; 2]| [(end[0] - origin[0]) / side as f32, (end[1] - origin[1]) / side as f32];
        let (across, down) = (step(across), step(down));
        let (width, height) = (frame.width() as i32, frame.height() as i32);
        let pixels = frame.rgb();
        for (row, line) in out.chunks_exact_mut(3 * side).enumerate() {
            let start = [origin[0] + down[0] * row as f32, origin[1] + down[1] * row as f32];
            for (column, pixel) in line.chunks_exact_mut(3).enumerate() {
                // Far outside, one place is as good as another.
                let x = (start[0] + across[0] * column as f32).clamp(-2.0, (width + 1) as f32);
                let y = (start[1] + across[1] * column as f32).clamp(-2.0, (height + 1) as f32);
                // Rounded down; neither is below -2.
                let (left, top) = ((x + 2.0) as i32 - 2, (y + 2.0) as i32 - 2);
                let (u, v) = (x - left as f32, y - top as f32);
                let weights = [(1.0 - u) * (1.0 - v), u * (1.0 - v), (1.0 - u) * v, u * v];
                if left >= 0 && top >= 0 && left + 1 < width && top + 1 < height {
                    let place = 3 * (top as usize * width as usize + left as usize);
                    let (above, below) =
                        (&pixels[place..place + 6], &pixels[place + 3 * width as usize..][..6]);
                    for channel in 0..3 {
                        let value = weights[0] * f32::from(above[channel])
                            + weights[1] * f32::from(above[channel + 3])
                            + weights[2] * f32::from(below[channel])
                            + weights[3] * f32::from(below[channel + 3]);
                        pixel[channel] = range[0] + scale * value;
                    }
                    continue;
                }
                let mut sums = [0.0f32; 3];
                for (corner, weight) in weights.iter().enumerate() {
                    let (mut x, mut y) = (left + (corner & 1) as i32, top + (corner >> 1) as i32);
                    let outside = x < 0 || y < 0 || x >= width || y >= height;
                    match border {
                        Border::Black if outside => continue,
                        _ => (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1)),
                    }
                    let from = frame.pixel(x as usize, y as usize);
                    (0..3).for_each(|channel| sums[channel] += weight * f32::from(from[channel]));
                }
                (0..3).for_each(|channel| pixel[channel] = range[0] + scale * sums[channel]);
            }
        }
    }
}
