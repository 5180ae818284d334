//! Pictures as frames: PNG files of any depth, still or animated, as 8 bits of red, green and blue. Transparency is laid on black.
//! Start at [`PictureReader::parse`].

use crate::ParseError;
use png::{BlendOp, Decoder, DisposeOp, Limits, Reader, Transformations};
use std::io::Cursor;

/// Longest side that is read, pixels.
pub const MAX_SIDE: usize = 8192;
/// Most bytes that the decoder may hold.
const MAX_BYTES: usize = 1 << 30;

/// A PNG file whose frames come one after another.
pub struct PictureReader {
    reader: Reader<Cursor<Vec<u8>>>,
    buffer: Vec<u8>,
    frames: usize,
    done: usize,
    rate: Option<f32>,
}

fn wrong(place: impl Into<String>, problem: impl ToString) -> ParseError {
    ParseError::new(place, problem)
}

impl PictureReader {
    /// Reads the header.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MAX_BYTES });
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        let reader = decoder.read_info().map_err(|error| wrong("header", error))?;
        let info = reader.info();
        let size = [info.width as usize, info.height as usize];
        if size.iter().any(|side| *side == 0 || *side > MAX_SIDE) {
            return Err(wrong(
                "header",
                format!("{} × {} pixels; {MAX_SIDE} at most are read", size[0], size[1]),
            ));
        }
        let frames = info.animation_control().map_or(1, |control| control.num_frames as usize);
        if frames == 0 {
            return Err(wrong("header", "an animation of no frames"));
        }
        let rate = info.frame_control().filter(|control| control.delay_num > 0).map(|control| {
            // A denominator of 0 means hundredths.
            let parts = if control.delay_den == 0 { 100.0 } else { f32::from(control.delay_den) };
            parts / f32::from(control.delay_num)
        });
        let length = reader.output_buffer_size().ok_or_else(|| wrong("header", "too large"))?;
        Ok(Self { buffer: vec![0; length], reader, frames, done: 0, rate })
    }

    /// Width and height, pixels.
    pub fn size(&self) -> (usize, usize) {
        let info = self.reader.info();
        (info.width as usize, info.height as usize)
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Frames per second, of an animation.
    pub fn rate(&self) -> Option<f32> {
        self.rate.filter(|_| self.frames > 1)
    }

    /// The next frame into `rgb`, three bytes a pixel; `false` after the last.
    pub fn next_frame(&mut self, rgb: &mut Vec<u8>) -> Result<bool, ParseError> {
        if self.done == self.frames {
            return Ok(false);
        }
        let place = || format!("frame {}", self.done);
        let (width, height) = self.size();
        let output = self.reader.next_frame(&mut self.buffer).map_err(|error| wrong(place(), error))?;
        if let Some(control) = self.reader.info().frame_control() {
            let whole = (control.width, control.height) == (width as u32, height as u32);
            let plain = control.blend_op == BlendOp::Source || control.dispose_op == DisposeOp::Background;
            if !whole || !plain {
                return Err(wrong(place(), "shows a part of the picture only, which is not read"));
            }
        }
        let pixels = &self.buffer[..output.buffer_size()];
        rgb.clear();
        match output.color_type.samples() {
            1 => rgb.extend(pixels.iter().flat_map(|grey| [*grey; 3])),
            2 => rgb.extend(pixels.chunks_exact(2).flat_map(|pair| [over_black(pair[0], pair[1]); 3])),
            3 => rgb.extend_from_slice(pixels),
            _ => rgb.extend(
                pixels.chunks_exact(4).flat_map(|p| [0, 1, 2].map(|channel| over_black(p[channel], p[3]))),
            ),
        }
        if rgb.len() != 3 * width * height {
            return Err(wrong(place(), "has another size than the picture"));
        }
        self.done += 1;
        Ok(true)
    }
}

fn over_black(value: u8, opacity: u8) -> u8 {
    (u16::from(value) * u16::from(opacity) / 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn animation() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 3, 2);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_animated(2, 0).expect("two frames");
        encoder.set_frame_delay(1, 25).expect("a rate");
        let mut writer = encoder.write_header().expect("to memory");
        writer.write_image_data(&[7; 18]).expect("a frame");
        writer.write_image_data(&[9; 18]).expect("a frame");
        writer.finish().expect("to memory");
        bytes
    }

    #[test]
    fn frames_come_one_after_another_and_damage_is_told() {
        let bytes = animation();
        let mut reader = PictureReader::parse(bytes.clone()).expect("valid");
        assert_eq!((reader.size(), reader.frames(), reader.rate()), ((3, 2), 2, Some(25.0)));
        let mut rgb = Vec::new();
        for value in [7, 9] {
            assert!(reader.next_frame(&mut rgb).expect("a frame"));
            assert_eq!(rgb, [value; 18]);
        }
        assert!(!reader.next_frame(&mut rgb).expect("the end"));
        for end in 0..bytes.len() - 12 {
            let read = PictureReader::parse(bytes[..end].to_vec());
            let whole = read.and_then(|mut reader| {
                while reader.next_frame(&mut rgb)? {}
                Ok(())
            });
            assert!(whole.is_err(), "cut at {end} of {}", bytes.len());
        }
    }

    #[test]
    fn grey_and_transparent_pixels_become_colours() {
        let picture = |color: png::ColorType, pixels: &[u8]| {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, 1, 1);
            encoder.set_color(color);
            let mut writer = encoder.write_header().expect("to memory");
            writer.write_image_data(pixels).expect("a pixel");
            drop(writer);
            let mut rgb = Vec::new();
            PictureReader::parse(bytes).expect("valid").next_frame(&mut rgb).expect("a frame");
            rgb
        };
        assert_eq!(picture(png::ColorType::Grayscale, &[80]), [80; 3]);
        assert_eq!(picture(png::ColorType::GrayscaleAlpha, &[80, 0]), [0; 3]);
        assert_eq!(picture(png::ColorType::Rgba, &[10, 20, 30, 255]), [10, 20, 30]);
    }
}
