//! Pictures in linear light, as renderers and solvers work on them, to and from the 8-bit sRGB of cameras.

use crate::Frame;
use std::sync::OnceLock;

/// RGB in linear light, rows from the top, 0 black and 1 white.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    width: usize,
    height: usize,
    pixels: Vec<[f32; 3]>,
}

/// A colour between pixels with its derivatives by place, per pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampled {
    /// The colour.
    pub colour: [f64; 3],
    /// By x.
    pub by_x: [f64; 3],
    /// By y.
    pub by_y: [f64; 3],
}

impl Image {
    /// A picture of one colour.
    pub fn new(width: usize, height: usize, colour: [f32; 3]) -> Self {
        Self { width, height, pixels: vec![colour; width * height] }
    }

    /// From pixels; `None` where their number is not that of the size, or the size is zero.
    pub fn from_pixels(width: usize, height: usize, pixels: Vec<[f32; 3]>) -> Option<Self> {
        let count = width.checked_mul(height)?;
        (count > 0 && pixels.len() == count).then_some(Self { width, height, pixels })
    }

    /// A camera's frame in linear light.
    pub fn from_frame(frame: &Frame) -> Self {
        let table = linear_table();
        let pixels = frame.rgb().chunks_exact(3).map(|rgb| [0, 1, 2].map(|c| table[rgb[c] as usize]));
        Self { width: frame.width(), height: frame.height(), pixels: pixels.collect() }
    }

    /// As a camera would give it.
    pub fn to_frame(&self) -> Frame {
        let mut frame = Frame::black(self.width, self.height);
        for (bytes, pixel) in frame.rgb_mut().chunks_exact_mut(3).zip(&self.pixels) {
            for (byte, value) in bytes.iter_mut().zip(pixel) {
                *byte = (to_srgb(*value) * 255.0 + 0.5) as u8;
            }
        }
        frame
    }

    /// Pixels across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Pixels down.
    pub fn height(&self) -> usize {
        self.height
    }

    /// All pixels, `[height][width]`.
    pub fn pixels(&self) -> &[[f32; 3]] {
        &self.pixels
    }

    /// The same, to write to.
    pub fn pixels_mut(&mut self) -> &mut [[f32; 3]] {
        &mut self.pixels
    }

    /// The bilinear colour at a place in pixels; the border goes on for ever.
    pub fn at(&self, place: [f64; 2]) -> Sampled {
        let (x, y) = (place[0] - 0.5, place[1] - 0.5);
        let last = [self.width as f64 - 1.0, self.height as f64 - 1.0];
        let inside = [x >= 0.0 && x <= last[0], y >= 0.0 && y <= last[1]];
        // NaN goes to the corner: a place that is no number has no colour that matters.
        let (x, y) = (x.max(0.0).min(last[0]), y.max(0.0).min(last[1]));
        let (column, row) = (x as usize, y as usize);
        let (u, v) = (x - column as f64, y - row as f64);
        let right = (column + 1).min(self.width - 1);
        let below = (row + 1).min(self.height - 1);
        let (a, b) = (&self.pixels[row * self.width + column], &self.pixels[row * self.width + right]);
        let (c, d) = (&self.pixels[below * self.width + column], &self.pixels[below * self.width + right]);
        let mut out = Sampled { colour: [0.0; 3], by_x: [0.0; 3], by_y: [0.0; 3] };
        for channel in 0..3 {
            let [a, b, c, d] = [a, b, c, d].map(|pixel| f64::from(pixel[channel]));
            let (top, bottom) = (a + (b - a) * u, c + (d - c) * u);
            out.colour[channel] = top + (bottom - top) * v;
            if inside[0] {
                out.by_x[channel] = (b - a) * (1.0 - v) + (d - c) * v;
            }
            if inside[1] {
                out.by_y[channel] = bottom - top;
            }
        }
        out
    }

    /// The picture at half the size: means of squares of four pixels.
    pub fn halved(&self) -> Self {
        let (width, height) = (self.width.div_ceil(2), self.height.div_ceil(2));
        let mut pixels = Vec::with_capacity(width * height);
        for y in 0..height {
            for x in 0..width {
                let (right, below) = ((2 * x + 1).min(self.width - 1), (2 * y + 1).min(self.height - 1));
                let four = [[2 * x, 2 * y], [right, 2 * y], [2 * x, below], [right, below]];
                let four = four.map(|[x, y]| self.pixels[y * self.width + x]);
                pixels.push([0, 1, 2].map(|c| four.iter().map(|pixel| pixel[c]).sum::<f32>() / 4.0));
            }
        }
        Self { width, height, pixels }
    }

    /// Smoothed by (1 2 1)/4 along rows and columns, `times` times: what noise of a camera leaves is a third after one.
    pub fn smoothed(&self, times: usize) -> Self {
        let mut out = self.clone();
        let mut line = Vec::new();
        for _ in 0..times {
            for row in out.pixels.chunks_exact_mut(self.width) {
                line.clear();
                line.extend_from_slice(row);
                for x in 0..self.width {
                    let (before, after) = (line[x.saturating_sub(1)], line[(x + 1).min(self.width - 1)]);
                    row[x] = [0, 1, 2].map(|c| 0.25 * (before[c] + after[c]) + 0.5 * line[x][c]);
                }
            }
            let mut above = out.pixels[..self.width].to_vec();
            for y in 0..self.height {
                let (start, below) = (y * self.width, (y + 1).min(self.height - 1) * self.width);
                line.clear();
                line.extend_from_slice(&out.pixels[start..start + self.width]);
                for x in 0..self.width {
                    let after = out.pixels[below + x];
                    let pixel = [0, 1, 2].map(|c| 0.25 * (above[x][c] + after[c]) + 0.5 * line[x][c]);
                    out.pixels[start + x] = pixel;
                }
                std::mem::swap(&mut above, &mut line);
            }
        }
        out
    }
}

/// sRGB, 0 to 1, to linear light.
pub fn to_linear(value: f32) -> f32 {
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// Linear light to sRGB, cut to 0 to 1.
pub fn to_srgb(value: f32) -> f32 {
    let value = value.clamp(0.0, 1.0);
    if value <= 0.003_130_8 { value * 12.92 } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 }
}

/// An sRGB colour as on a web page in linear light.
pub fn hex(colour: u32) -> [f32; 3] {
    [16, 8, 0].map(|shift| to_linear((colour >> shift & 255) as f32 / 255.0))
}

fn linear_table() -> &'static [f32; 256] {
    static TABLE: OnceLock<[f32; 256]> = OnceLock::new();
    TABLE.get_or_init(|| std::array::from_fn(|byte| to_linear(byte as f32 / 255.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;
    use understudy_testkit::gradient::directional_miss;

    fn noise(width: usize, height: usize) -> Image {
        let mut random = Random::new(3);
        let pixels = (0..width * height).map(|_| [0; 3].map(|_| random.uniform(0.0, 1.0))).collect();
        Image::from_pixels(width, height, pixels).expect("as many pixels as the size says")
    }

    #[test]
    fn colours_between_pixels_have_right_derivatives() {
        let image = noise(9, 7);
        for place in [[3.3, 2.7], [7.9, 5.1], [0.6, 6.4]] {
            let sampled = image.at(place);
            for channel in 0..3 {
                let gradient = [sampled.by_x[channel], sampled.by_y[channel]];
                let cost = |x: &[f64]| image.at([x[0], x[1]]).colour[channel];
                assert!(directional_miss(cost, &place, &gradient, 1e-5, 8, 1) < 1e-8);
            }
        }
        assert_eq!(image.at([f64::NAN, -9.0]).by_y, [0.0; 3]);
        assert_eq!(image.at([1e9, 6.5]).colour, image.pixels()[62].map(f64::from));
    }

    #[test]
    fn frames_come_back_and_smoothing_keeps_the_mean_of_a_plane() {
        let rgb = (0..3 * 256).map(|i| (i / 3) as u8).collect();
        let frame = Frame::new(256, 1, rgb).expect("a row");
        assert_eq!(Image::from_frame(&frame).to_frame(), frame);
        let plane = Image::new(5, 4, [0.25, 0.5, 0.75]);
        assert_eq!(plane.smoothed(3), plane);
        assert_eq!(plane.halved(), Image::new(3, 2, [0.25, 0.5, 0.75]));
        let smooth = noise(64, 64).smoothed(1);
        let spread = |image: &Image| image.pixels().iter().map(|p| (p[0] - 0.5).powi(2)).sum::<f32>().sqrt();
        let ratio = spread(&smooth) / spread(&noise(64, 64));
        // (1 2 1)/4 twice leaves 3/8 of white noise.
        assert!((ratio - 0.375).abs() < 0.05, "{ratio}");
    }
}
