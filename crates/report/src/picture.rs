//! An RGBA picture in memory: what the rasteriser fills, sheets arrange and pages embed. It becomes a
//! PNG in memory; writing files is left to the caller.

use std::fmt;

/// The longest side of a picture; larger requests are cut to it.
const LONGEST_SIDE: usize = 16_384;

/// Pixels with 8 bits per channel, sRGB with straight alpha, rows from the top.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl fmt::Debug for Picture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Picture({} x {})", self.width, self.height)
    }
}

impl Picture {
    /// A picture of one colour. Sides are brought into 1..=16384 pixels.
    pub fn new(width: usize, height: usize, fill: [u8; 4]) -> Self {
        let width = width.clamp(1, LONGEST_SIDE);
        let height = height.clamp(1, LONGEST_SIDE);
        Self { width, height, pixels: fill.repeat(width * height) }
    }

    /// Width in pixels, at least one.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels, at least one.
    pub fn height(&self) -> usize {
        self.height
    }

    /// All channels, `[height][width][4]`.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// All channels, to write.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// One pixel; `None` outside.
    pub fn pixel(&self, x: usize, y: usize) -> Option<[u8; 4]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let at = (y * self.width + x) * 4;
        self.pixels[at..at + 4].try_into().ok()
    }

    /// Sets one pixel; outside nothing happens.
    pub fn set_pixel(&mut self, x: usize, y: usize, value: [u8; 4]) {
        if x < self.width && y < self.height {
            let at = (y * self.width + x) * 4;
            self.pixels[at..at + 4].copy_from_slice(&value);
        }
    }

    /// Lays `colour` with `coverage` in 0..=1 over one pixel; outside nothing happens.
    pub fn blend_pixel(&mut self, x: usize, y: usize, colour: [u8; 4], coverage: f32) {
        let Some(under) = self.pixel(x, y) else { return };
        let alpha = f32::from(colour[3]) / 255.0 * coverage.clamp(0.0, 1.0);
        let alpha_under = f32::from(under[3]) / 255.0 * (1.0 - alpha);
        let total = alpha + alpha_under;
        if total <= 0.0 {
            return;
        }
        let mut out = [0u8; 4];
        for channel in 0..3 {
            let mixed = f32::from(colour[channel]) * alpha + f32::from(under[channel]) * alpha_under;
            out[channel] = (mixed / total + 0.5) as u8;
        }
        out[3] = (total * 255.0 + 0.5) as u8;
        self.set_pixel(x, y, out);
    }

    /// Lays another picture over this one with its upper left corner at `(left, top)`; what falls
    /// outside is cut.
    pub fn paste(&mut self, other: &Picture, left: usize, top: usize) {
        for y in 0..other.height.min(self.height.saturating_sub(top)) {
            for x in 0..other.width.min(self.width.saturating_sub(left)) {
                if let Some(pixel) = other.pixel(x, y) {
                    self.blend_pixel(left + x, top + y, pixel, 1.0);
                }
            }
        }
    }

    /// Fills a rectangle; what falls outside is cut.
    pub fn fill_rectangle(&mut self, left: usize, top: usize, width: usize, height: usize, colour: [u8; 4]) {
        for y in top..top.saturating_add(height).min(self.height) {
            for x in left..left.saturating_add(width).min(self.width) {
                self.blend_pixel(x, y, colour, 1.0);
            }
        }
    }

    /// The picture smaller by a whole factor: every pixel is the mean of a square of `factor` pixels,
    /// taken with premultiplied alpha.
    pub fn shrunk(&self, factor: usize) -> Picture {
        let factor = factor.max(1);
        let mut out = Picture::new(self.width.div_ceil(factor), self.height.div_ceil(factor), [0; 4]);
        for y in 0..out.height {
            for x in 0..out.width {
                let (mut sum, mut alpha, mut count) = ([0u64; 3], 0u64, 0u64);
                for row in y * factor..((y + 1) * factor).min(self.height) {
                    for pixel in self.pixels[row * self.width * 4..][..self.width * 4]
                        .chunks_exact(4)
                        .skip(x * factor)
                        .take(factor)
                    {
                        let weight = u64::from(pixel[3]);
                        (0..3).for_each(|channel| sum[channel] += u64::from(pixel[channel]) * weight);
                        alpha += weight;
                        count += 1;
                    }
                }
                if alpha > 0 {
                    let [r, g, b] = sum.map(|value| ((value + alpha / 2) / alpha) as u8);
                    out.set_pixel(x, y, [r, g, b, ((alpha + count / 2) / count) as u8]);
                }
            }
        }
        out
    }

    /// The picture as a PNG file in memory (8-bit RGBA, sRGB).
    pub fn to_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&self.pixels))
            .expect("a picture with at least one pixel, written to memory, always encodes");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_png_decodes_to_the_same_pixels() {
        let mut picture = Picture::new(37, 21, [0; 4]);
        for (index, value) in picture.pixels_mut().iter_mut().enumerate() {
            *value = (index * 73 % 251) as u8;
        }
        let png = picture.to_png();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a header");
        let mut decoded = vec![0; reader.output_buffer_size().expect("a small picture")];
        let info = reader.next_frame(&mut decoded).expect("one frame");
        assert_eq!((info.width, info.height), (37, 21));
        assert_eq!(decoded, picture.pixels());
    }

    #[test]
    fn sides_are_kept_in_bounds() {
        assert_eq!(Picture::new(0, 0, [1, 2, 3, 4]).pixels(), [1, 2, 3, 4]);
        assert!(!Picture::new(0, 3, [0; 4]).to_png().is_empty());
    }

    #[test]
    fn shrinking_takes_the_mean() {
        let mut picture = Picture::new(3, 2, [0, 0, 0, 255]);
        picture.set_pixel(0, 0, [200, 100, 40, 255]);
        picture.set_pixel(2, 0, [9, 9, 9, 0]);
        picture.set_pixel(2, 1, [80, 80, 80, 255]);
        let half = picture.shrunk(2);
        assert_eq!((half.width(), half.height()), (2, 1));
        assert_eq!(half.pixel(0, 0), Some([50, 25, 10, 255]));
        assert_eq!(half.pixel(1, 0), Some([80, 80, 80, 128]));
    }

    #[test]
    fn pasting_cuts_and_blends() {
        let mut sheet = Picture::new(4, 4, [0, 0, 0, 255]);
        sheet.paste(&Picture::new(4, 4, [255, 255, 255, 128]), 2, 3);
        assert_eq!(sheet.pixel(1, 3), Some([0, 0, 0, 255]));
        assert_eq!(sheet.pixel(3, 3), Some([128, 128, 128, 255]));
        sheet.paste(&Picture::new(1, 1, [9; 4]), 100, 100);
    }
}
