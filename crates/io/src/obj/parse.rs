//! OBJ text line by line, with the line in every error.

use super::ObjMesh;
use super::segments::{Labels, Notes};
use crate::polygons::{Corner, Polygons};
use crate::{Conversion, ParseError};
use understudy_core::{Vec2, Vec3};

#[derive(Default)]
struct Parser {
    positions: Vec<Vec3>,
    uvs: Vec<Vec2>,
    corners: Vec<Corner>,
    /// Line and first corner of every polygon.
    polygons: Vec<(usize, usize)>,
    labels: Labels,
    notes: Notes,
    skipped: usize,
}

pub(super) fn parse(bytes: &[u8]) -> Result<ObjMesh, ParseError> {
    let mut parser = Parser::default();
    for (number, line) in logical_lines(bytes) {
        parser.statement(number, &line)?;
    }
    parser.finish()
}

/// Lines with their number, those that end in a backslash joined with the next.
fn logical_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate();
    std::iter::from_fn(move || {
        let (number, first) = lines.next()?;
        let mut text = String::new();
        let mut line = first;
        loop {
            let part = String::from_utf8_lossy(line);
            let part = part.trim_end_matches('\r');
            match part.strip_suffix('\\') {
                Some(part) => {
                    text.push_str(part);
                    text.push(' ');
                    match lines.next() {
                        Some((_, next)) => line = next,
                        None => break,
                    }
                }
                None => {
                    text.push_str(part);
                    break;
                }
            }
        }
        Some((number + 1, text))
    })
}

impl Parser {
    fn statement(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let fail = |problem: String| ParseError::new(format!("line {number}"), problem);
        let line = line.trim();
        if let Some(note) = line.strip_prefix(Notes::PREFIX) {
            return self.notes.read(note).map_err(fail);
        }
        let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match keyword {
            "v" => {
                let [x, y, z] = numbers(rest, 3).map_err(fail)?;
                self.positions.push(Vec3::new(x, y, z));
            }
            "vt" => {
                let [u, v, _] = numbers(rest, 1).map_err(fail)?;
                self.uvs.push(Vec2::new(u, v));
            }
            "f" => {
                self.polygons.push((number, self.corners.len()));
                for word in before_comment(rest).split_whitespace() {
                    let corner = self.corner(word).map_err(fail)?;
                    self.corners.push(corner);
                }
                let count = self.corners.len() - self.polygons.last().map_or(0, |(_, first)| *first);
                if count < 3 {
                    return Err(fail(format!("a face of {count} corners")));
                }
                self.labels.face();
            }
            "g" | "o" | "usemtl" => self.labels.name(keyword, rest),
            "l" | "p" | "curv" | "curv2" | "surf" => self.skipped += 1,
            _ => {}
        }
        Ok(())
    }

    fn corner(&self, word: &str) -> Result<Corner, String> {
        let mut parts = word.split('/');
        let index = |text: &str, count: usize, what: &str| -> Result<usize, String> {
            let value: i64 = text.parse().map_err(|_| format!("'{word}' is not a corner of a face"))?;
            match value {
                0 => Err(format!("'{word}' names {what} 0; they count from 1")),
                1.. => Ok(value as usize - 1),
                _ => count.checked_sub(value.unsigned_abs() as usize).ok_or_else(|| {
                    format!(
                        "'{word}' counts back {} {what} entries, but there are {count} so far",
                        value.unsigned_abs()
                    )
                }),
            }
        };
        let vertex = index(parts.next().unwrap_or_default(), self.positions.len(), "vertex")?;
        let texture = match parts.next().filter(|text| !text.is_empty()) {
            Some(text) => Some(index(text, self.uvs.len(), "texture")?),
            None => None,
        };
        if parts.next().is_some() && parts.next().is_some() {
            return Err(format!("'{word}' is not a corner of a face"));
        }
        Ok((vertex, texture))
    }

    fn finish(self) -> Result<ObjMesh, ParseError> {
        if self.polygons.is_empty() {
            let problem = format!("{} vertices and no faces", self.positions.len());
            return Err(ParseError::new("end of file", problem));
        }
        let mut warnings = Vec::new();
        if self.skipped > 0 {
            warnings.push(format!("{} points, lines or curves are skipped", self.skipped));
        }
        let mut polygons = Polygons::default();
        let mut labels = Vec::new();
        let ends = self.polygons.iter().skip(1).map(|(_, first)| *first).chain([self.corners.len()]);
        for (polygon, (&(line, first), end)) in self.polygons.iter().zip(ends).enumerate() {
            let corners = &self.corners[first..end];
            check_corners(corners, self.positions.len(), self.uvs.len())
                .map_err(|problem| ParseError::new(format!("line {line}"), problem))?;
            labels.extend(std::iter::repeat_n(polygon, polygons.add(corners)));
        }
        let (mut parts, mended) = polygons.finish(self.uvs);
        warnings.extend(mended);
        parts.positions = self.positions;
        parts.segments = match self.notes.segments(parts.positions.len()) {
            Some(noted) => noted.map_err(|problem| ParseError::new("segment notes", problem))?,
            None => self.labels.segments(&parts.faces, &labels, parts.positions.len()),
        };
        let mesh = parts.build().map_err(|error| ParseError::new("mesh", error))?;
        Ok(ObjMesh { mesh, warnings, conversion: Conversion::none("OBJ has no units: taken as cm") })
    }
}

/// `least` to three finite numbers; further ones (a weight, a colour) are not used.
fn numbers(text: &str, least: usize) -> Result<[f32; 3], String> {
    let mut out = [0.0; 3];
    let mut found = 0;
    for word in before_comment(text).split_whitespace().take(3) {
        let value: f32 = word.parse().map_err(|_| format!("'{word}' is not a number"))?;
        if !value.is_finite() {
            return Err(format!("'{word}' is not a finite number"));
        }
        out[found] = value;
        found += 1;
    }
    if found < least { Err(format!("{least} numbers expected, {found} found")) } else { Ok(out) }
}

fn before_comment(text: &str) -> &str {
    text.split('#').next().unwrap_or_default()
}

fn check_corners(corners: &[Corner], positions: usize, uvs: usize) -> Result<(), String> {
    for &(vertex, uv) in corners {
        if vertex >= positions {
            return Err(format!("vertex {} is named, but there are {positions}", vertex + 1));
        }
        if let Some(uv) = uv.filter(|uv| *uv >= uvs) {
            return Err(format!("texture coordinate {} is named, but there are {uvs}", uv + 1));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use understudy_core::Face;

    fn mesh(text: &str) -> ObjMesh {
        parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(text: &str) -> String {
        parse(text.as_bytes()).err().unwrap_or_else(|| panic!("{text} is bad")).to_string()
    }

    const SQUARE: &str = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n";

    #[test]
    fn corners_in_every_form() {
        let texture = "vt 0 0\nvt 1 0\nvt 1 1\nvn 0 0 1\n";
        for face in [
            "f 1/1/1 2/2/1 3/3/1",
            "f 1/1 2/2 3/3",
            "f -4/-3 -3/-2 -2/-1",
            "f 1/1/ 2/2/-1 3/3 # last",
            "f 1/1 2/2 \\\n 3/3",
        ] {
            let read = mesh(&format!("{SQUARE}{texture}{face}"));
            assert_eq!(read.mesh.faces(), [Face::triangle(0, 1, 2)], "{face}");
            assert_eq!(read.mesh.face_uvs(), [Face::triangle(0, 1, 2)], "{face}");
        }
        let read = mesh(&format!("{SQUARE}f 1//1 2//1 3//1 4//1\r\n"));
        assert_eq!((read.mesh.faces(), read.mesh.has_uvs()), (&[Face::quad(0, 1, 2, 3)][..], false));
        assert_eq!(read.conversion.reason, "OBJ has no units: taken as cm");
    }

    #[test]
    fn polygons_become_fans_and_mixed_texture_is_mended() {
        let read =
            mesh(&format!("{SQUARE}v 0 2 0\nvt 0.5 0.5\nf 1 2 3 5 4\nf 1/1 2/1 3/1\nf 1 1 2\nl 1 2\n"));
        assert_eq!(
            read.mesh.faces()[..3],
            [Face::triangle(0, 1, 2), Face::triangle(0, 2, 4), Face::triangle(0, 4, 3)]
        );
        assert_eq!((read.mesh.uvs().len(), read.mesh.face_uvs()[0]), (2, Face::triangle(1, 1, 1)));
        assert_eq!(read.warnings.len(), 3);
    }

    #[test]
    fn bad_text_names_the_line() {
        assert_eq!(error(""), "end of file: 0 vertices and no faces");
        assert_eq!(error("v 1 2 3\n"), "end of file: 1 vertices and no faces");
        assert_eq!(error("\n\nv 1 2\n"), "line 3: 3 numbers expected, 2 found");
        assert_eq!(error("v 1 x 2\n"), "line 1: 'x' is not a number");
        assert_eq!(error("v 1 nan 2\n"), "line 1: 'nan' is not a finite number");
        assert_eq!(error("v 1 1e39 2\n"), "line 1: '1e39' is not a finite number");
        assert_eq!(error(&format!("{SQUARE}f 1 2 5\n")), "line 5: vertex 5 is named, but there are 4");
        assert_eq!(
            error(&format!("{SQUARE}f 1/1 2/1 3/1")),
            "line 5: texture coordinate 1 is named, but there are 0"
        );
        assert!(error(&format!("{SQUARE}f 0 1 2")).contains("line 5: '0' names vertex 0"));
        assert!(error(&format!("{SQUARE}f -5 1 2")).contains("line 5: '-5' counts back 5"));
        assert!(error(&format!("{SQUARE}f 1 2 -99999999999999999999")).contains("line 5"));
        assert!(error(&format!("{SQUARE}f 1 2 9223372036854775807")).contains("line 5"));
        assert_eq!(error(&format!("{SQUARE}f 1 2")), "line 5: a face of 2 corners");
        assert!(error(&format!("{SQUARE}f 1/2/3/4 2 3")).contains("'1/2/3/4' is not a corner"));
        assert!(error(&format!("{SQUARE}f a b c")).contains("'a' is not a corner"));
        assert!(error(&format!("{SQUARE}f 1 1 2")).contains("the mesh is empty"));
        assert_eq!(
            error("f 1 2 \\\n3\nv 0 0 0"),
            "line 1: vertex 1 is named, but there are 1".replace("vertex 1", "vertex 2")
        );
    }
}
