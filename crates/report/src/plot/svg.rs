//! SVG as text: escaping, numbers, the few elements that plots are made of, and their colours.

use std::fmt::Write;

/// Series colours on light and on dark paper: hues of Okabe and Ito's colour-blind-safe set, moved in
/// lightness until each has a contrast of 3 or more against its paper.
pub(super) const PALETTE: [(&str, &str); 6] = [
    ("#0072b2", "#4ea8de"),
    ("#d55e00", "#ff9350"),
    ("#008a64", "#3ccb9f"),
    ("#b0528a", "#e59ac6"),
    ("#b57a00", "#f0b93a"),
    ("#2f8fc4", "#9ad7fb"),
];

/// Dashes that tell series apart when colours start again.
pub(super) const DASHES: [&str; 3] = ["", "6 4", "2 3"];

/// The part of the style that does not depend on the colours.
const STYLE_SHAPE: &str = "\
.plot text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}\
.plot .title{font-size:14px;font-weight:600}\
.plot .line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\
.plot .rule{stroke-width:1;shape-rendering:crispEdges}\
.plot .halo{paint-order:stroke;stroke-width:4;stroke-linejoin:round}\
.plot .end{text-anchor:end}.plot .middle{text-anchor:middle}";

/// Rules for one scheme: paper, ink, muted ink, grid, axis, and the series by number.
fn colours([paper, ink, muted, grid, axis]: [&str; 5], series: impl Fn(usize) -> String) -> String {
    let mut out = format!(
        ".plot .paper{{fill:{paper}}}.plot text{{fill:{ink}}}.plot .muted{{fill:{muted}}}\
         .plot .grid{{stroke:{grid}}}.plot .axis{{stroke:{axis}}}.plot .hollow,.plot .halo{{stroke:{paper}}}"
    );
    for index in 0..PALETTE.len() {
        let colour = series(index);
        let _ = write!(out, ".plot .s{index}{{stroke:{colour}}}.plot .f{index}{{fill:{colour}}}");
    }
    out
}

/// The style of a plot that stands alone.
pub(super) fn style_alone() -> String {
    let light = ["#ffffff", "#1c212a", "#5c6470", "#e6e9ed", "#aab2bd"];
    let light = colours(light, |index| PALETTE[index].0.into());
    let dark = ["#16181c", "#e8eaee", "#a0a7b2", "#2a2e35", "#5a626e"];
    let dark = colours(dark, |index| PALETTE[index].1.into());
    format!("<style>{STYLE_SHAPE}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>")
}

/// The style that a page includes once for all its plots. The page defines the variables `--paper`,
/// `--ink`, `--muted`, `--grid` and `--axis`, and includes [`series_variables`].
pub(crate) fn style_inline() -> String {
    let names = ["var(--paper)", "var(--ink)", "var(--muted)", "var(--grid)", "var(--axis)"];
    format!("{STYLE_SHAPE}{}", colours(names, |index| format!("var(--s{index})")))
}

/// Definitions of the series colours, `--s0` and so on, for light or dark paper.
pub(crate) fn series_variables(dark: bool) -> String {
    let mut out = String::new();
    for (index, pair) in PALETTE.iter().enumerate() {
        let _ = write!(out, "--s{index}:{};", if dark { pair.1 } else { pair.0 });
    }
    out
}

/// Text that means itself in HTML and SVG, in elements and quoted attributes. Control characters that
/// XML forbids become the replacement character.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most two decimals.
pub(super) fn number(value: f64) -> String {
    let rounded = format!("{:.2}", if value.is_finite() { value } else { 0.0 });
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// Width of text in a proportional system font of 12 pixels, estimated on the wide side so that what is
/// laid out by it never overlaps.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | '(' | ')' | ' ' => 3.9,
            'f' | 't' | 'r' | '-' | '[' | ']' | '/' => 5.0,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 11.2,
            c if c.is_ascii_uppercase() => 8.6,
            c if c.is_ascii() => 7.1,
            '−' | '–' | '±' | '×' | '°' | 'µ' | '·' => 7.5,
            _ => 12.0,
        })
        .sum()
}

/// Text cut with an ellipsis to an estimated width.
pub(super) fn shorten(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = text_width("…");
    for character in text.chars() {
        used += text_width(character.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        out.push(character);
    }
    out.trim_end().to_owned() + "…"
}

/// A straight line.
pub(super) fn rule(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = write!(
        out,
        "<line class=\"rule {class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
        number(from.0),
        number(from.1),
        number(to.0),
        number(to.1)
    );
}

/// A line of text; the class may hold `end` or `middle` to anchor it there.
pub(super) fn text(out: &mut String, class: &str, x: f64, y: f64, content: &str) {
    let (x, y) = (number(x), number(y));
    let _ = write!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(content));
}

/// A rectangle with slightly round corners.
pub(super) fn rectangle(out: &mut String, class: &str, x: f64, y: f64, width: f64, height: f64) {
    let _ = write!(
        out,
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"1.5\"/>",
        number(x),
        number(y),
        number(width.max(0.0)),
        number(height.max(0.0))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escape("<script>&\"'\u{1}</script>"),
            "&lt;script&gt;&amp;&quot;&#39;\u{fffd}&lt;/script&gt;"
        );
    }

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!([1.0, -0.001, 2.345_6, f64::NAN].map(number), ["1", "0", "2.35", "0"]);
    }

    #[test]
    fn shortened_text_fits() {
        for width in [0.0, 20.0, 60.0, 500.0] {
            let text = shorten("left upper eyelid corrective", width);
            assert!(text_width(&text) <= width.max(12.0), "{text}");
        }
    }

    /// WCAG relative luminance of `#rrggbb`.
    fn luminance(colour: &str) -> f64 {
        let value = u32::from_str_radix(&colour[1..], 16).expect("six hexadecimal digits");
        let channel = |shift: u32| {
            let v = f64::from(value >> shift & 255) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0)
    }

    #[test]
    fn series_stand_out_from_their_paper() {
        for (light, dark) in PALETTE {
            assert!(1.05 / (luminance(light) + 0.05) >= 3.0, "{light} on white");
            assert!((luminance(dark) + 0.05) / (luminance("#16181c") + 0.05) >= 3.0, "{dark} on charcoal");
        }
    }

    #[test]
    fn a_page_sets_every_series_colour() {
        let rules = style_inline();
        let variables = series_variables(false);
        for index in 0..PALETTE.len() {
            assert!(rules.contains(&format!("stroke:var(--s{index})")));
            assert!(variables.contains(&format!("--s{index}:#")));
        }
        assert!(!rules.contains("stroke:}"));
    }
}
