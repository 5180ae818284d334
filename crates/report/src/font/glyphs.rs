//! The letters: centre lines of strokes on a grid where capitals are 7 high, small letters 5 and the
//! baseline is 0. One row a glyph.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Strokes of one glyph in grid units, y up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Glyph {
    /// Distance between the outermost centre lines.
    pub width: f32,
    /// Free space before the first centre line.
    pub before: f32,
    /// Free space after the last.
    pub after: f32,
    /// Polylines.
    pub lines: Vec<Vec<[f32; 2]>>,
    /// Centres of dots.
    pub dots: Vec<[f32; 2]>,
}

/// The glyph of a character; an open box for one that is not in the font.
pub(super) fn glyph(character: char) -> &'static Glyph {
    static GLYPHS: OnceLock<BTreeMap<char, Glyph>> = OnceLock::new();
    static UNKNOWN: OnceLock<Glyph> = OnceLock::new();
    let all = GLYPHS.get_or_init(|| ROWS.iter().map(|row| (row.0, parse(row.1, row.2, row.3))).collect());
    let same = match character {
        'μ' => 'µ',
        '\u{a0}' | '\t' | '\n' | '\r' => ' ',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        '‐' | '‑' => '-',
        other => other,
    };
    all.get(&same).unwrap_or_else(|| UNKNOWN.get_or_init(|| parse(3.6, "ss", "M0 0 L3.6 0 L3.6 7 L0 7 L0 0")))
}

/// Reads a row. `sides` says how each side looks (`s`traight, `r`ound, `d`iagonal or open), which sets
/// the free space. The path: `M x y` and `L x y` as in SVG, `C` a cubic curve, `A cx cy rx ry from to`
/// an arc in degrees joined to the line so far, `N` lifts the pen, `D x y` a dot.
fn parse(width: f32, sides: &str, path: &str) -> Glyph {
    let space = |side: Option<char>| match side {
        Some('r') => 0.86,
        Some('d') => 0.62,
        _ => 1.08,
    };
    let mut glyph = Glyph {
        width,
        before: space(sides.chars().next()),
        after: space(sides.chars().nth(1)),
        ..Glyph::default()
    };
    let mut line: Vec<[f32; 2]> = Vec::new();
    for command in commands(path) {
        let n = &command.numbers;
        match (command.letter, n.as_slice()) {
            ('M', &[x, y]) => {
                glyph.lines.push(std::mem::replace(&mut line, vec![[x, y]]));
            }
            ('L', &[x, y]) => line.push([x, y]),
            ('C', &[x1, y1, x2, y2, x, y]) => {
                let [x0, y0] = line.last().copied().unwrap_or([x1, y1]);
                line.extend((1..=14).map(|step| {
                    let t = step as f32 / 14.0;
                    let u = 1.0 - t;
                    let mix = |a: f32, b: f32, c: f32, d: f32| {
                        u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
                    };
                    [mix(x0, x1, x2, x), mix(y0, y1, y2, y)]
                }));
            }
            ('A', &[cx, cy, rx, ry, from, to]) => {
                let steps = ((to - from).abs() / 9.0).ceil().max(1.0) as usize;
                line.extend((0..=steps).map(|step| {
                    let angle = (from + (to - from) * step as f32 / steps as f32).to_radians();
                    [cx + rx * angle.cos(), cy + ry * angle.sin()]
                }));
            }
            ('N', &[]) => glyph.lines.push(std::mem::take(&mut line)),
            ('D', &[x, y]) => glyph.dots.push([x, y]),
            (letter, numbers) => {
                debug_assert!(false, "no such stroke: {letter} with {} numbers", numbers.len());
            }
        }
    }
    glyph.lines.push(line);
    glyph.lines.retain(|line| line.len() > 1);
    glyph
}

/// One letter of a path with its numbers.
struct Command {
    letter: char,
    numbers: Vec<f32>,
}

/// Splits a path into commands.
fn commands(path: &str) -> Vec<Command> {
    let mut out: Vec<Command> = Vec::new();
    let mut number = String::new();
    for character in path.chars().chain(std::iter::once(' ')) {
        if character.is_ascii_digit() || character == '.' || character == '-' {
            number.push(character);
            continue;
        }
        if let (Some(last), Ok(value)) = (out.last_mut(), number.parse()) {
            last.numbers.push(value);
        }
        number.clear();
        if character.is_ascii_uppercase() {
            out.push(Command { letter: character, numbers: Vec::new() });
        }
    }
    out
}

/// Character, width, sides, path.
type Row = (char, f32, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (' ', 0.9, "ss", ""),
    ('!', 0.0, "ss", "M0 7 L0 2.3 D0 .1"),
    ('"', 1.7, "ss", "M0 7 L0 5 M1.7 7 L1.7 5"),
    ('#', 4.8, "dd", "M1.2 0 L2.1 7 M3 0 L3.9 7 M.3 4.7 L4.8 4.7 M0 2.3 L4.5 2.3"),
    ('$', 4.4, "rr", "M4.2 5.6 C3.9 6.5 3.1 7 2.2 7 C1 7 .2 6.2 .2 5.25 C.2 4 1.3 3.75 2.3 3.5 C3.5 3.2 4.4 2.9 4.4 1.75 C4.4 .7 3.5 0 2.2 0 C1 0 .2 .6 0 1.6 M2.2 8 L2.2 -1"),
    ('%', 6.6, "rr", "N A1.35 5.45 1.35 1.55 0 360 N A5.25 1.55 1.35 1.55 0 360 M5.4 7 L1.2 0"),
    ('&', 5.2, "rd", "M5.2 0 L1.4 4.6 C.6 5.6 1 7 2.2 7 C3.4 7 3.9 5.7 3 4.8 C2.4 4.2 0 3.6 0 1.8 C0 .7 .8 0 1.9 0 C3.5 0 4.7 1.4 4.9 3.2"),
    ('\'', 0.0, "ss", "M0 7 L0 5"),
    ('(', 1.5, "rd", "M1.5 7.8 C-.5 5 -.5 1.2 1.5 -1.6"),
    (')', 1.5, "dr", "M0 7.8 C2 5 2 1.2 0 -1.6"),
    ('*', 2.8, "dd", "M1.4 7 L1.4 4 M.1 6.3 L2.7 4.7 M.1 4.7 L2.7 6.3"),
    ('+', 4.0, "rr", "M2 .8 L2 4.8 M0 2.8 L4 2.8"),
    (',', 0.4, "dr", "M.4 .3 L0 -1.3"),
    ('-', 2.2, "dd", "M0 2.6 L2.2 2.6"),
    ('.', 0.0, "rr", "D0 .1"),
    ('/', 2.7, "dd", "M0 -.9 L2.7 7.6"),
    ('0', 4.0, "rr", "N A2 3.5 2 3.5 0 360"),
    ('1', 4.0, "rr", "M.6 5.6 L2.4 7 L2.4 0"),
    ('2', 4.0, "rr", "N A2 5.1 1.85 1.9 165 -15 C3.4 3.5 1.6 2 .1 0 L4 0"),
    ('3', 4.0, "rr", "N A1.95 5.25 1.75 1.75 150 -90 L1.4 3.5 M1.95 3.5 A1.95 1.75 2 1.75 90 -155"),
    ('4', 4.0, "rr", "M3.1 0 L3.1 7 L0 2 L4.1 2"),
    ('5', 4.0, "rr", "M3.6 7 L.6 7 L.3 3.8 C.8 4.2 1.3 4.5 2 4.5 A2 2.25 1.95 2.25 90 -152"),
    ('6', 4.0, "rr", "M3.5 6.2 C3.2 6.75 2.7 7 2.15 7 C.8 7 0 5.6 0 2.9 L0 2.2 A2 2.2 2 2.2 180 -180"),
    ('7', 4.0, "rr", "M0 7 L4 7 L1.4 0"),
    ('8', 4.0, "rr", "N A2 5.3 1.7 1.7 0 360 N A2 1.8 2 1.8 0 360"),
    ('9', 4.0, "rr", "M.5 .8 C.8 .25 1.3 0 1.85 0 C3.2 0 4 1.4 4 4.1 L4 4.8 A2 4.8 2 2.2 0 360"),
    (':', 0.0, "rr", "D0 .1 D0 4.3"),
    (';', 0.4, "rr", "M.4 .3 L0 -1.3 D.3 4.3"),
    ('<', 3.8, "rr", "M3.8 5 L0 2.8 L3.8 .6"),
    ('=', 4.0, "rr", "M0 1.9 L4 1.9 M0 3.9 L4 3.9"),
    ('>', 3.8, "rr", "M0 5 L3.8 2.8 L0 .6"),
    ('?', 3.6, "rr", "N A1.8 5.2 1.8 1.8 165 -40 C2.6 3.5 1.8 3.2 1.8 2.2 D1.8 .1"),
    ('@', 6.4, "rr", "N A3.2 2.7 1.5 1.7 0 360 M4.7 4.3 L4.7 1.9 C4.8 .7 6.4 .9 6.4 2.9 A3.2 2.9 3.2 3.7 0 300"),
    ('A', 5.4, "dd", "M0 0 L2.7 7 L5.4 0 M.95 2.4 L4.45 2.4"),
    ('B', 4.4, "sr", "M0 0 L0 7 L2.4 7 A2.4 5.3 1.75 1.7 90 -90 L0 3.6 M2.4 3.6 A2.55 1.8 1.85 1.8 90 -90 L0 0"),
    ('C', 4.9, "rd", "N A2.9 3.5 2.9 3.5 47 313"),
    ('D', 5.0, "sr", "M0 0 L0 7 L1.8 7 A1.8 3.5 3.2 3.5 90 -90 L0 0"),
    ('E', 3.9, "sd", "M3.9 7 L0 7 L0 0 L3.9 0 M0 3.6 L3.4 3.6"),
    ('F', 3.8, "sd", "M3.8 7 L0 7 L0 0 M0 3.5 L3.3 3.5"),
    ('G', 5.3, "rs", "N A2.9 3.5 2.9 3.5 47 325 L5.3 3.3 L3.3 3.3"),
    ('H', 4.9, "ss", "M0 0 L0 7 M4.9 0 L4.9 7 M0 3.6 L4.9 3.6"),
    ('I', 0.0, "ss", "M0 0 L0 7"),
    ('J', 3.0, "rs", "M3 7 L3 1.9 A1.5 1.9 1.5 1.9 0 -165"),
    ('K', 4.7, "sd", "M0 0 L0 7 M4.5 7 L0 2.6 M1.7 4.26 L4.7 0"),
    ('L', 3.6, "sd", "M0 7 L0 0 L3.6 0"),
    ('M', 5.9, "ss", "M0 0 L0 7 L2.95 1.8 L5.9 7 L5.9 0"),
    ('N', 4.9, "ss", "M0 0 L0 7 L4.9 0 L4.9 7"),
    ('O', 5.8, "rr", "N A2.9 3.5 2.9 3.5 0 360"),
    ('P', 4.35, "sr", "M0 0 L0 7 L2.4 7 A2.4 5.05 1.95 1.95 90 -90 L0 3.1"),
    ('Q', 5.8, "rr", "N A2.9 3.5 2.9 3.5 0 360 M3.6 1.8 L5.8 -.6"),
    ('R', 4.5, "sd", "M0 0 L0 7 L2.4 7 A2.4 5.1 1.9 1.9 90 -90 L0 3.2 M2.4 3.2 L4.5 0"),
    ('S', 4.4, "rr", "M4.2 5.6 C3.9 6.5 3.1 7 2.2 7 C1 7 .2 6.2 .2 5.25 C.2 4 1.3 3.75 2.3 3.5 C3.5 3.2 4.4 2.9 4.4 1.75 C4.4 .7 3.5 0 2.2 0 C1 0 .2 .6 0 1.6"),
    ('T', 4.8, "dd", "M0 7 L4.8 7 M2.4 7 L2.4 0"),
    ('U', 4.8, "ss", "M0 7 L0 2.4 A2.4 2.4 2.4 2.4 180 360 L4.8 7"),
    ('V', 5.2, "dd", "M0 7 L2.6 0 L5.2 7"),
    ('W', 7.6, "dd", "M0 7 L1.9 0 L3.8 6.4 L5.7 0 L7.6 7"),
    ('X', 4.8, "dd", "M0 0 L4.8 7 M0 7 L4.8 0"),
    ('Y', 5.0, "dd", "M0 7 L2.5 3.3 L5 7 M2.5 3.3 L2.5 0"),
    ('Z', 4.5, "dd", "M0 7 L4.5 7 L0 0 L4.5 0"),
    ('[', 1.4, "sd", "M1.4 7.8 L0 7.8 L0 -1.5 L1.4 -1.5"),
    ('\\', 2.7, "dd", "M0 7.6 L2.7 -.9"),
    (']', 1.4, "ds", "M0 7.8 L1.4 7.8 L1.4 -1.5 L0 -1.5"),
    ('^', 3.4, "dd", "M0 4.6 L1.7 7 L3.4 4.6"),
    ('_', 4.2, "dd", "M0 -1.2 L4.2 -1.2"),
    ('`', 1.0, "rr", "M0 7.4 L1 6.2"),
    ('a', 3.5, "rs", "M.3 4.1 C.6 4.7 1.1 5 1.8 5 C3 5 3.5 4.4 3.5 3.4 L3.5 0 M3.5 2.95 L1.9 2.85 C.7 2.75 0 2.2 0 1.4 C0 .5 .6 0 1.5 0 C2.7 0 3.5 .8 3.5 1.9"),
    ('b', 3.8, "sr", "M0 7.3 L0 0 N A1.9 2.5 1.9 2.5 0 360"),
    ('c', 3.2, "rd", "N A1.9 2.5 1.9 2.5 48 312"),
    ('d', 3.8, "rs", "M3.8 7.3 L3.8 0 N A1.9 2.5 1.9 2.5 0 360"),
    ('e', 3.8, "rr", "M0 2.6 L3.8 2.6 A1.9 2.5 1.9 2.5 2 318"),
    ('f', 2.4, "dd", "M2.4 7.25 C1.4 7.4 .9 6.9 .9 5.9 L.9 0 M0 5 L2.3 5"),
    ('g', 3.8, "rs", "M3.8 5 L3.8 -.3 A1.95 -.3 1.85 1.8 0 -155 N A1.9 2.5 1.9 2.5 0 360"),
    ('h', 3.6, "ss", "M0 7.3 L0 0 M0 3 A1.8 3 1.8 2 180 0 L3.6 0"),
    ('i', 0.0, "ss", "M0 5 L0 0 D0 7"),
    ('j', 1.0, "ds", "M1 5 L1 -.8 A0 -.8 1 1.2 0 -90 D1 7"),
    ('k', 3.4, "sd", "M0 7.3 L0 0 M3.2 5 L0 1.9 M1.2 3.05 L3.4 0"),
    ('l', 1.0, "sd", "M0 7.3 L0 1 A1 1 1 1 180 270"),
    ('m', 5.8, "ss", "M0 5 L0 0 M0 3.1 A1.45 3.1 1.45 1.9 180 0 L2.9 0 M2.9 3.1 A4.35 3.1 1.45 1.9 180 0 L5.8 0"),
    ('n', 3.6, "ss", "M0 5 L0 0 M0 3 A1.8 3 1.8 2 180 0 L3.6 0"),
    ('o', 3.9, "rr", "N A1.95 2.5 1.95 2.5 0 360"),
    ('p', 3.8, "sr", "M0 5 L0 -2 N A1.9 2.5 1.9 2.5 0 360"),
    ('q', 3.8, "rs", "M3.8 5 L3.8 -2 N A1.9 2.5 1.9 2.5 0 360"),
    ('r', 2.2, "sd", "M0 5 L0 0 M0 2.9 A1.9 2.9 1.9 2.1 180 80"),
    ('s', 3.2, "rr", "M3.05 4 C2.8 4.7 2.3 5 1.6 5 C.75 5 .15 4.5 .15 3.75 C.15 2.9 .9 2.75 1.65 2.55 C2.5 2.35 3.2 2.1 3.2 1.25 C3.2 .5 2.5 0 1.6 0 C.8 0 .2 .35 0 1"),
    ('t', 2.2, "dd", "M.8 6.6 L.8 1.2 A2 1.2 1.2 1.2 180 275 M0 5 L2.2 5"),
    ('u', 3.6, "ss", "M0 5 L0 2 A1.8 2 1.8 2 180 360 M3.6 5 L3.6 0"),
    ('v', 3.8, "dd", "M0 5 L1.9 0 L3.8 5"),
    ('w', 5.8, "dd", "M0 5 L1.45 0 L2.9 4.8 L4.35 0 L5.8 5"),
    ('x', 3.5, "dd", "M0 5 L3.5 0 M0 0 L3.5 5"),
    ('y', 3.8, "dd", "M0 5 L1.95 .1 M3.8 5 L1.6 -1 C1.3 -1.8 .8 -2.05 .1 -1.9"),
    ('z', 3.3, "dd", "M0 5 L3.3 5 L0 0 L3.3 0"),
    ('{', 1.8, "dd", "M1.8 7.8 C.2 7.8 1.1 5.6 .8 4.2 C.7 3.5 .4 3.15 0 3.15 C.4 3.15 .7 2.8 .8 2.1 C1.1 .8 .2 -1.5 1.8 -1.5"),
    ('|', 0.0, "ss", "M0 7.8 L0 -1.8"),
    ('}', 1.8, "dd", "M0 7.8 C1.6 7.8 .7 5.6 1 4.2 C1.1 3.5 1.4 3.15 1.8 3.15 C1.4 3.15 1.1 2.8 1 2.1 C.7 .8 1.6 -1.5 0 -1.5"),
    ('~', 4.0, "rr", "M0 2.4 C.6 3.8 1.5 3.6 2 3 C2.5 2.4 3.4 2.2 4 3.6"),
    ('×', 3.4, "rr", "M0 1.1 L3.4 4.5 M0 4.5 L3.4 1.1"),
    ('±', 4.0, "rr", "M2 2.2 L2 6.2 M0 4.2 L4 4.2 M0 .5 L4 .5"),
    ('°', 2.1, "rr", "N A1.05 5.85 1.05 1.15 0 360"),
    ('µ', 3.6, "ss", "M0 5 L0 -2 M0 2 A1.8 2 1.8 2 180 360 M3.6 5 L3.6 0"),
    ('–', 4.0, "dd", "M0 2.6 L4 2.6"),
    ('—', 6.6, "dd", "M0 2.6 L6.6 2.6"),
    ('−', 4.0, "rr", "M0 2.8 L4 2.8"),
    ('…', 4.2, "rr", "D0 .1 D2.1 .1 D4.2 .1"),
    ('·', 0.0, "rr", "D0 2.8"),
    ('→', 5.0, "rr", "M0 2.8 L5 2.8 M3.2 4.6 L5 2.8 L3.2 1"),
    ('≤', 3.8, "rr", "M3.8 5.8 L0 3.8 L3.8 1.8 M0 .2 L3.8 .2"),
    ('≥', 3.8, "rr", "M0 5.8 L3.8 3.8 L0 1.8 M0 .2 L3.8 .2"),
    ('²', 2.2, "rr", "N A1.1 6.2 1.05 1.1 165 -25 L0 3.9 L2.2 3.9"),
    ('³', 2.2, "rr", "N A1.1 6.35 .95 .95 150 -90 M1.1 5.4 A1.1 4.6 1.1 .85 90 -150"),
    ('Δ', 5.4, "dd", "M0 0 L2.7 7 L5.4 0 L0 0"),
    ('σ', 4.6, "rd", "N A1.9 2.5 1.9 2.5 90 450 L4.6 5"),
    ('π', 4.4, "dd", "M0 5 L4.4 5 M1.1 5 L1.1 0 M3.3 5 L3.3 0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_strokes_within_its_box() {
        let unknown = glyph('\u{4e00}');
        for character in ('!'..='~').chain("×±°µ–—−…·→≤≥²³Δσπ".chars()) {
            let glyph = glyph(character);
            assert_ne!(glyph, unknown, "{character}");
            let points = glyph.lines.iter().flatten().chain(&glyph.dots);
            assert!(points.clone().next().is_some(), "{character} is empty");
            for point in points {
                let wide = (-0.15..=glyph.width + 0.15).contains(&point[0]);
                assert!(wide && (-2.2..=8.1).contains(&point[1]), "{character}: {point:?}");
            }
        }
    }

    #[test]
    fn digits_are_tabular() {
        let advance = |c| glyph(c).before + glyph(c).width + glyph(c).after;
        assert!(('0'..='9').all(|c| advance(c) == advance('0')));
    }
}
