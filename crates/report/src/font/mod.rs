//! Text in pictures: a stroke font of our own, drawn anti-aliased at any size, with stems and bars
//! moved onto whole pixels so that labels of 12 to 16 pixels stay crisp. Start at [`TextStyle::draw`].

mod glyphs;

use crate::Picture;
use glyphs::{Glyph, glyph};

/// Grid units an em: capitals, 7 units high plus a stroke, are about 0.7 em.
const UNITS: f32 = 10.5;

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextStyle {
    /// Size in pixels, as a style sheet counts it: capitals are about 0.7 of it.
    pub size: f32,
    /// Colour, sRGB with alpha.
    pub colour: [u8; 4],
    /// Width of the strokes against the regular one; 1.6 is bold.
    pub weight: f32,
}

impl TextStyle {
    /// Regular text. Sizes are brought into 6..=400 pixels.
    pub fn new(size: f32, colour: [u8; 4]) -> Self {
        let size = if size.is_finite() { size.clamp(6.0, 400.0) } else { 13.0 };
        Self { size, colour, weight: 1.0 }
    }

    /// The same in bold.
    pub fn bold(mut self) -> Self {
        self.weight = 1.6;
        self
    }

    /// Pixels a grid unit.
    fn unit(&self) -> f32 {
        self.size / UNITS
    }

    /// Width of a stroke in pixels.
    fn stroke(&self) -> f32 {
        (self.size * 0.078 * self.weight).max(1.0)
    }

    /// From baseline to baseline, pixels.
    pub fn line_height(&self) -> usize {
        (self.size * 1.35).round() as usize
    }

    /// From the top of a line to its baseline, pixels.
    pub fn ascent(&self) -> usize {
        (self.size * 0.95).round() as usize
    }

    /// Pixels, with a fraction, from the start of one glyph to the next.
    fn advance(&self, glyph: &Glyph) -> f32 {
        let extra = (self.weight - 1.0) * 0.5;
        (glyph.before + glyph.width + glyph.after + extra) * self.unit()
    }

    /// Width of a line of text, pixels.
    pub fn width(&self, text: &str) -> usize {
        if text.is_empty() {
            return 0;
        }
        let width: f32 = text.chars().map(|character| self.advance(glyph(character))).sum();
        // Half a pixel more: the last glyph may have been moved that far onto the grid.
        (width + 0.5).ceil() as usize
    }

    /// The text, or as much of it as fits with an ellipsis; empty where not even that fits.
    pub fn fit(&self, text: &str, width: usize) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let mut kept = text;
        while let Some((cut, _)) = kept.char_indices().next_back() {
            kept = kept[..cut].trim_end();
            let shorter = format!("{kept}…");
            if self.width(&shorter) <= width {
                return shorter;
            }
        }
        String::new()
    }

    /// Breaks text between words into lines that fit a width; longer words end in an ellipsis.
    pub fn wrap(&self, text: &str, width: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if self.width(line) + self.width(" ") + self.width(word) <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(self.fit(word, width)),
            }
        }
        lines
    }

    /// Draws a line of text with its left end at `x` and its baseline at `baseline`, in pixels from the
    /// upper left corner; what falls outside is cut. Returns the width.
    pub fn draw(&self, picture: &mut Picture, x: usize, baseline: usize, text: &str) -> usize {
        let mut at = x as f32;
        for character in text.chars() {
            let shape = glyph(character);
            self.draw_glyph(picture, at, baseline, shape);
            at += self.advance(shape);
        }
        (at - x as f32).ceil() as usize
    }

    /// Draws one glyph whose space starts at `x`; its stems go to whole pixels, its advance does not, so
    /// that words keep an even rhythm.
    fn draw_glyph(&self, picture: &mut Picture, x: f32, baseline: usize, glyph: &Glyph) {
        let (unit, stroke) = (self.unit(), self.stroke());
        // A stroke of odd width is crisp on the middle of a pixel, an even one between two.
        let snap = if stroke.round() as usize % 2 == 1 { 0.5 } else { 0.0 };
        let across = Hints::new(glyph, 0, unit);
        let upward = Hints::new(glyph, 1, unit);
        let left = (x + glyph.before * unit).round() + snap;
        let bottom = baseline as f32 - 1.0 + snap;
        let place = |p: &[f32; 2]| [left + across.map(p[0]), bottom - upward.map(p[1])];
        let mut segments: Vec<[[f32; 2]; 2]> = Vec::new();
        for line in &glyph.lines {
            let points: Vec<[f32; 2]> = line.iter().map(place).collect();
            segments.extend(points.windows(2).map(|pair| [pair[0], pair[1]]));
        }
        let radius = stroke / 2.0;
        let dot_radius = radius * 1.25;
        let dots: Vec<[f32; 2]> = glyph.dots.iter().map(place).collect();
        let all = segments.iter().flatten().chain(&dots);
        let Some((low, high)) = extent(all, dot_radius + 1.0) else { return };
        for row in low[1]..high[1].min(picture.height()) {
            for column in low[0]..high[0].min(picture.width()) {
                let centre = [column as f32 + 0.5, row as f32 + 0.5];
                let line =
                    segments.iter().map(|s| distance(centre, s[0], s[1])).fold(f32::MAX, f32::min) - radius;
                let dot = dots.iter().map(|d| distance(centre, *d, *d)).fold(f32::MAX, f32::min) - dot_radius;
                let coverage = (0.5 - line.min(dot)).clamp(0.0, 1.0);
                if coverage > 0.0 {
                    picture.blend_pixel(column, row, self.colour, coverage);
                }
            }
        }
    }
}

/// A piecewise-linear map from grid units to pixels that brings stems (or bars) onto whole pixels.
struct Hints {
    knots: Vec<(f32, f32)>,
    unit: f32,
}

impl Hints {
    /// Collects the places along an axis (0 across, 1 upward) where strokes run straight along the other.
    fn new(glyph: &Glyph, axis: usize, unit: f32) -> Self {
        let mut places: Vec<f32> = if axis == 0 { vec![0.0, glyph.width] } else { vec![0.0, 5.0, 7.0] };
        for line in &glyph.lines {
            for pair in line.windows(2) {
                let long = (pair[0][1 - axis] - pair[1][1 - axis]).abs() > 0.8;
                if long && (pair[0][axis] - pair[1][axis]).abs() < 1e-3 {
                    places.push(pair[0][axis]);
                }
            }
        }
        places.sort_unstable_by(f32::total_cmp);
        // Knots closer than two pixels would fight over one.
        let mut knots: Vec<(f32, f32)> = Vec::new();
        for place in places {
            let pixel = (place * unit).round();
            match knots.last() {
                Some(&(last, last_pixel)) if place - last < 1e-3 || pixel - last_pixel < 1.5 => {}
                _ => knots.push((place, pixel)),
            }
        }
        Self { knots, unit }
    }

    /// Grid units to pixels.
    fn map(&self, value: f32) -> f32 {
        let after = self.knots.partition_point(|knot| knot.0 <= value);
        let Some(&(low, low_pixel)) = after.checked_sub(1).and_then(|i| self.knots.get(i)) else {
            return self.knots.first().map_or(0.0, |first| first.1 + (value - first.0) * self.unit);
        };
        match self.knots.get(after) {
            Some(&(high, high_pixel)) => low_pixel + (high_pixel - low_pixel) * (value - low) / (high - low),
            None => low_pixel + (value - low) * self.unit,
        }
    }
}

/// The pixels that points with a margin reach; `None` without points.
fn extent<'a>(points: impl Iterator<Item = &'a [f32; 2]>, margin: f32) -> Option<([usize; 2], [usize; 2])> {
    let mut bounds: Option<([f32; 2], [f32; 2])> = None;
    for p in points {
        let (low, high) = bounds.get_or_insert((*p, *p));
        for axis in 0..2 {
            low[axis] = low[axis].min(p[axis]);
            high[axis] = high[axis].max(p[axis]);
        }
    }
    bounds.map(|(low, high)| {
        (low.map(|v| (v - margin).max(0.0) as usize), high.map(|v| (v + margin).max(0.0) as usize + 1))
    })
}

/// Distance from a point to a line segment.
fn distance(point: [f32; 2], a: [f32; 2], b: [f32; 2]) -> f32 {
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let (px, py) = (point[0] - a[0], point[1] - a[1]);
    let length = dx * dx + dy * dy;
    let t = if length > 0.0 { ((px * dx + py * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    ((px - t * dx).powi(2) + (py - t * dy).powi(2)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INK: [u8; 4] = [0, 0, 0, 255];

    #[test]
    fn a_fitted_text_fits_and_says_that_it_was_cut() {
        let style = TextStyle::new(13.0, INK);
        let text = "left elbow, mean error over 400 poses";
        for width in 0..style.width(text) + 5 {
            let fitted = style.fit(text, width);
            assert!(style.width(&fitted) <= width);
            assert!(fitted == text || fitted.is_empty() || fitted.ends_with('…'));
        }
        for line in style.wrap(text, 80) {
            assert!(style.width(&line) <= 80, "{line}");
        }
    }

    #[test]
    fn ink_stays_inside_the_measured_box() {
        for size in [9.0, 12.0, 13.0, 16.0, 31.0] {
            let style = TextStyle::new(size, INK).bold();
            let text = "gjQ|_@Wfy(]%";
            let (width, height) = (style.width(text), style.line_height());
            let mut picture = Picture::new(width + 40, height + 40, [255; 4]);
            style.draw(&mut picture, 20, style.ascent() + 20, text);
            for y in 0..picture.height() {
                for x in 0..picture.width() {
                    let inside = (20..20 + width).contains(&x) && (20..20 + height).contains(&y);
                    assert!(inside || picture.pixel(x, y) == Some([255; 4]), "size {size}: ink at {x}, {y}");
                }
            }
        }
    }

    #[test]
    fn stems_are_crisp_at_label_sizes() {
        for size in [12.0, 13.0, 14.0, 15.0] {
            let mut picture = Picture::new(60, 24, [255; 4]);
            TextStyle::new(size, INK).draw(&mut picture, 2, 18, "HIl");
            let darkest = picture.pixels().chunks(4).map(|p| p[0]).min();
            assert!(darkest.is_some_and(|d| d < 30), "size {size}: {darkest:?}");
        }
    }

    #[test]
    fn drawing_outside_is_cut() {
        let mut picture = Picture::new(4, 4, [255; 4]);
        TextStyle::new(f32::NAN, INK).draw(&mut picture, 1000, 0, "far away");
        assert!(picture.pixels().iter().all(|v| *v == 255));
    }
}
