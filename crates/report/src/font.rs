//! Text in pictures: an open font that is part of the program (`crates/report/fonts`), drawn anti-aliased at any
//! size. Start at [`TextStyle::draw`].

use crate::Picture;
use ab_glyph::{Font, FontRef, GlyphId, PxScale, point};
use std::sync::LazyLock;

static REGULAR: LazyLock<FontRef<'static>> =
    LazyLock::new(|| embedded(include_bytes!("../fonts/DejaVuSansCondensed.ttf")));
static BOLD: LazyLock<FontRef<'static>> =
    LazyLock::new(|| embedded(include_bytes!("../fonts/DejaVuSansCondensed-Bold.ttf")));

fn embedded(bytes: &'static [u8]) -> FontRef<'static> {
    FontRef::try_from_slice(bytes).expect("the embedded font is a font")
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextStyle {
    /// Size in pixels, as a style sheet counts it: capitals are about 0.7 of it.
    pub size: f32,
    /// Colour, sRGB with alpha.
    pub colour: [u8; 4],
    /// Whether strokes are heavy.
    pub bold: bool,
}

impl TextStyle {
    /// Regular text. Sizes are brought into 6..=400 pixels.
    pub fn new(size: f32, colour: [u8; 4]) -> Self {
        let size = if size.is_finite() { size.clamp(6.0, 400.0) } else { 13.0 };
        Self { size, colour, bold: false }
    }

    /// The same in bold.
    pub fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    fn font(&self) -> &'static FontRef<'static> {
        if self.bold { &BOLD } else { &REGULAR }
    }

    /// Pixels per unit of the font.
    fn unit(&self) -> f32 {
        self.size / self.font().units_per_em().expect("the embedded font states its units")
    }

    /// The glyph of a character; an open box for one that is not in the font.
    fn glyph(&self, character: char) -> GlyphId {
        self.font().glyph_id(if character.is_whitespace() { ' ' } else { character })
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
    fn advance(&self, glyph: GlyphId) -> f32 {
        self.font().h_advance_unscaled(glyph) * self.unit()
    }

    /// Width of a line of text, pixels.
    pub fn width(&self, text: &str) -> usize {
        if text.is_empty() {
            return 0;
        }
        let width: f32 = text.chars().map(|character| self.advance(self.glyph(character))).sum();
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
            let glyph = self.glyph(character);
            self.draw_glyph(picture, at, baseline, glyph);
            at += self.advance(glyph);
        }
        (at - x as f32).ceil() as usize
    }

    /// Draws one glyph whose space starts at `x`; its left edge, mostly a stem, goes to a whole pixel, its advance
    /// does not, so that words keep an even rhythm.
    fn draw_glyph(&self, picture: &mut Picture, x: f32, baseline: usize, glyph: GlyphId) {
        let font = self.font();
        let Some(outline) = font.outline(glyph) else { return };
        let left = outline.bounds.min.x * self.unit();
        let place = point((x + left).round() - left, baseline as f32);
        // A scale of the font counts from its lowest to its highest point, not ems.
        let scale = PxScale::from(font.height_unscaled() * self.unit());
        let Some(outlined) = font.outline_glyph(glyph.with_scale_and_position(scale, place)) else { return };
        let corner = outlined.px_bounds().min;
        outlined.draw(|column, row, coverage| {
            let (column, row) = (corner.x as i64 + i64::from(column), corner.y as i64 + i64::from(row));
            let (Ok(column), Ok(row)) = (usize::try_from(column), usize::try_from(row)) else { return };
            picture.blend_pixel(column, row, self.colour, coverage);
        });
    }
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

    #[test]
    fn characters_have_glyphs_of_their_own_and_strangers_a_box() {
        for style in [TextStyle::new(13.0, INK), TextStyle::new(13.0, INK).bold()] {
            let stranger = style.glyph('漢');
            assert_eq!(style.glyph('\u{1F600}'), stranger);
            for character in "AZaz09 ~äßéŁőμΔσπ×±°²³–—−…·→≤≥“’".chars() {
                assert_ne!(style.glyph(character), stranger, "{character}");
            }
            let mut picture = Picture::new(30, 24, [255; 4]);
            style.draw(&mut picture, 2, 18, "漢");
            assert!(picture.pixels().iter().any(|value| *value < 128), "the box has ink");
        }
    }

    #[test]
    fn bold_is_darker() {
        let ink = |style: TextStyle| -> u64 {
            let mut picture = Picture::new(200, 24, [255; 4]);
            style.draw(&mut picture, 2, 18, "mean error");
            picture.pixels().iter().map(|value| u64::from(255 - value)).sum()
        };
        let style = TextStyle::new(14.0, INK);
        assert!(ink(style.bold()) * 4 > ink(style) * 5);
    }
}
