//! Pictures as an animated GIF: one palette for all frames, by median cut, and LZW. For a take that shall be seen in any
//! browser or chat; a film of many frames is better an mp4.

use crate::Picture;
use std::collections::HashMap;

/// Colours of the palette.
const COLOURS: usize = 256;
/// Bits of a channel that colours are told apart by.
const KEPT: u32 = 5;
/// Codes of LZW have at most so many bits.
const MOST_BITS: u32 = 12;

/// Frames on their way into a file. The first decides the size and, with those given to [`Gif::new`], the colours.
#[derive(Debug)]
pub struct Gif {
    bytes: Vec<u8>,
    size: (usize, usize),
    palette: Vec<[u8; 3]>,
    /// Place in the palette of a colour cut to [`KEPT`] bits.
    known: HashMap<u16, u8>,
    delay: u16,
}

impl Gif {
    /// Begins a film. `samples`: some of its frames, of which the colours are taken; `rate`: frames per second, which GIF
    /// rounds to hundredths of a second. `None` where there is no frame, or one is too large for the format.
    pub fn new(samples: &[&Picture], rate: f32) -> Option<Self> {
        let first = samples.first()?;
        let size = (first.width(), first.height());
        let (width, height) = (u16::try_from(size.0).ok()?, u16::try_from(size.1).ok()?);
        let palette = palette(samples);
        let mut bytes = b"GIF89a".to_vec();
        bytes.extend(width.to_le_bytes());
        bytes.extend(height.to_le_bytes());
        // A global palette of 2^8 colours; background 0, no aspect ratio.
        bytes.extend([0b1111_0111, 0, 0]);
        (0..COLOURS).for_each(|place| bytes.extend(palette.get(place).copied().unwrap_or_default()));
        // Play for ever.
        bytes.extend([0x21, 0xff, 11]);
        bytes.extend(b"NETSCAPE2.0");
        bytes.extend([3, 1, 0, 0, 0]);
        let delay = (100.0 / rate.clamp(1.0, 50.0)).round() as u16;
        Some(Self { bytes, size, palette, known: HashMap::new(), delay })
    }

    /// Adds a frame; one of another size is left out, and false.
    pub fn add(&mut self, picture: &Picture) -> bool {
        if (picture.width(), picture.height()) != self.size {
            return false;
        }
        let places: Vec<u8> = picture
            .pixels()
            .chunks_exact(4)
            .map(|pixel| self.place([pixel[0], pixel[1], pixel[2]]))
            .collect();
        self.bytes.extend([0x21, 0xf9, 4, 0]);
        self.bytes.extend(self.delay.to_le_bytes());
        self.bytes.extend([0, 0, 0x2c, 0, 0, 0, 0]);
        self.bytes.extend((self.size.0 as u16).to_le_bytes());
        self.bytes.extend((self.size.1 as u16).to_le_bytes());
        self.bytes.extend([0, 8]);
        let data = compress(&places);
        for block in data.chunks(255) {
            self.bytes.push(block.len() as u8);
            self.bytes.extend(block);
        }
        self.bytes.push(0);
        true
    }

    /// The file.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0x3b);
        self.bytes
    }

    fn place(&mut self, colour: [u8; 3]) -> u8 {
        let key = cut(colour);
        if let Some(place) = self.known.get(&key) {
            return *place;
        }
        let middle = widen(key);
        let apart = |other: &[u8; 3]| -> u32 {
            middle.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
        };
        let nearest = (0..self.palette.len()).min_by_key(|place| apart(&self.palette[*place])).unwrap_or(0);
        self.known.insert(key, nearest as u8);
        nearest as u8
    }
}

fn cut(colour: [u8; 3]) -> u16 {
    colour.iter().fold(0, |key, channel| key << KEPT | u16::from(channel >> (8 - KEPT)))
}

/// The middle of the colours that are cut to this.
fn widen(key: u16) -> [u8; 3] {
    [2, 1, 0].map(|channel| {
        let bits = key >> (KEPT * channel) & ((1 << KEPT) - 1);
        (bits << (8 - KEPT) | 1 << (7 - KEPT)) as u8
    })
}

/// Colours by median cut: the box with most to lose is halved until there are enough.
fn palette(samples: &[&Picture]) -> Vec<[u8; 3]> {
    let mut counts: HashMap<u16, u32> = HashMap::new();
    for pixel in samples.iter().flat_map(|picture| picture.pixels().chunks_exact(4)) {
        *counts.entry(cut([pixel[0], pixel[1], pixel[2]])).or_default() += 1;
    }
    let mut colours: Vec<([u8; 3], u32)> =
        counts.into_iter().map(|(key, count)| (widen(key), count)).collect();
    colours.sort_unstable();
    let mut boxes = vec![colours];
    while boxes.len() < COLOURS {
        // The widest channel of a box, and how much its width matters.
        let spread = |list: &Vec<([u8; 3], u32)>| {
            let range = |channel: usize| {
                let values = list.iter().map(|(colour, _)| colour[channel]);
                values.clone().max().unwrap_or(0) - values.min().unwrap_or(0)
            };
            let widest = (0..3).max_by_key(|channel| range(*channel)).unwrap_or(0);
            let pixels: u32 = list.iter().map(|(_, count)| *count).sum();
            // The root keeps large plain areas from taking every colour.
            (f64::from(range(widest)) * f64::from(pixels).sqrt(), widest)
        };
        let worst = (0..boxes.len()).filter(|i| boxes[*i].len() > 1);
        let Some(worst) = worst.max_by(|a, b| spread(&boxes[*a]).0.total_cmp(&spread(&boxes[*b]).0)) else {
            break;
        };
        let mut list = boxes.swap_remove(worst);
        let channel = spread(&list).1;
        list.sort_unstable_by_key(|(colour, _)| (colour[channel], *colour));
        let half = list.iter().map(|(_, count)| u64::from(*count)).sum::<u64>() / 2;
        let mut passed = 0;
        let middle = list.iter().position(|(_, count)| {
            passed += u64::from(*count);
            passed >= half
        });
        let middle = (middle.unwrap_or(0) + 1).clamp(1, list.len() - 1);
        let rest = list.split_off(middle);
        boxes.extend([list, rest]);
    }
    let mean = |list: &Vec<([u8; 3], u32)>| {
        let pixels: u64 = list.iter().map(|(_, count)| u64::from(*count)).sum();
        [0, 1, 2].map(|channel| {
            let sum: u64 =
                list.iter().map(|(colour, count)| u64::from(colour[channel]) * u64::from(*count)).sum();
            (sum / pixels.max(1)) as u8
        })
    };
    boxes.iter().map(mean).collect()
}

/// Codes of any length, one after another, the lowest bit first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    buffer: u32,
    filled: u32,
}

impl Bits {
    fn put(&mut self, code: u16, bits: u32) {
        self.buffer |= u32::from(code) << self.filled;
        self.filled += bits;
        while self.filled >= 8 {
            self.bytes.push(self.buffer as u8);
            self.buffer >>= 8;
            self.filled -= 8;
        }
    }
}

/// LZW with codes of growing length, as GIF has it.
fn compress(places: &[u8]) -> Vec<u8> {
    const CLEAR: u16 = 256;
    let mut out = Bits::default();
    let mut table: HashMap<(u16, u8), u16> = HashMap::new();
    let (mut bits, mut next) = (9, CLEAR + 2);
    out.put(CLEAR, bits);
    let mut current: Option<u16> = None;
    for &place in places {
        let Some(prefix) = current else {
            current = Some(place.into());
            continue;
        };
        if let Some(code) = table.get(&(prefix, place)) {
            current = Some(*code);
            continue;
        }
        out.put(prefix, bits);
        table.insert((prefix, place), next);
        // The decoder knows a code one later than we do.
        if next == 1 << bits && bits < MOST_BITS {
            bits += 1;
        }
        next += 1;
        if next == 1 << MOST_BITS {
            out.put(CLEAR, bits);
            table.clear();
            (bits, next) = (9, CLEAR + 2);
        }
        current = Some(place.into());
    }
    if let Some(code) = current {
        out.put(code, bits);
        if next == 1 << bits && bits < MOST_BITS {
            bits += 1;
        }
    }
    out.put(CLEAR + 1, bits);
    if out.filled > 0 {
        out.bytes.push(out.buffer as u8);
    }
    out.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow reference: what a decoder makes of it.
    fn expand(data: &[u8]) -> Vec<u8> {
        let (mut bits, mut at) = (9, 0usize);
        let mut table: Vec<Vec<u8>> = Vec::new();
        let reset = || (0..258).map(|i| if i < 256 { vec![i as u8] } else { Vec::new() }).collect::<Vec<_>>();
        let mut out = Vec::new();
        let mut last: Option<usize> = None;
        loop {
            let code = (0..bits).fold(0usize, |code, bit| {
                code | usize::from(data[(at + bit) / 8] >> ((at + bit) % 8) & 1) << bit
            });
            at += bits;
            match code {
                256 => {
                    (table, bits, last) = (reset(), 9, None);
                    continue;
                }
                257 => return out,
                _ => {}
            }
            let entry = match last {
                None => table[code].clone(),
                Some(last) => {
                    let mut known = table[last].clone();
                    let first = if code < table.len() { table[code][0] } else { known[0] };
                    known.push(first);
                    if table.len() < 4096 {
                        table.push(known);
                    }
                    table[code].clone()
                }
            };
            out.extend(&entry);
            last = Some(code);
            if table.len() == 1 << bits && bits < 12 {
                bits += 1;
            }
        }
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let mut random = understudy_core::Random::new(1);
        let noise: Vec<u8> = (0..70_000).map(|_| random.below(256) as u8).collect();
        let runs: Vec<u8> = (0..40_000usize).map(|i| (i / 300 % 7) as u8).collect();
        for places in [vec![3], vec![5; 5000], (0..=255).collect(), noise, runs] {
            assert!(expand(&compress(&places)) == places, "{} places", places.len());
        }
    }

    #[test]
    fn a_film_has_its_frames_and_colours_near_the_true_ones() {
        let mut pictures = Vec::new();
        for shade in 0..3u8 {
            let mut picture = Picture::new(40, 30, [200, 120, 60 * shade, 255]);
            for (place, pixel) in picture.pixels_mut().chunks_exact_mut(4).enumerate() {
                pixel[0] = (place % 40 * 6) as u8;
            }
            pictures.push(picture);
        }
        let samples: Vec<&Picture> = pictures.iter().collect();
        let mut gif = Gif::new(&samples, 24.0).expect("small pictures");
        assert!(pictures.iter().all(|picture| gif.add(picture)));
        assert!(!gif.add(&Picture::new(3, 3, [0; 4])));
        for picture in &pictures {
            for pixel in picture.pixels().chunks_exact(4) {
                let place = gif.place([pixel[0], pixel[1], pixel[2]]);
                let own = gif.palette[place as usize];
                let apart = own.iter().zip(pixel).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
                assert!(apart <= 12, "{pixel:?} became {own:?}");
            }
        }
        let bytes = gif.finish();
        assert!(bytes.starts_with(b"GIF89a") && bytes.ends_with(&[0, 0x3b]));
        assert!(Gif::new(&[], 24.0).is_none());
    }
}
