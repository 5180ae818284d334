//! Face captures as text: Live Link Face CSV, which phones record and engines import, and plain tables of
//! weights (a header of control names, a row per frame). Start at [`read`] and [`read_weights`].
//!
//! Live Link Face writes `Timecode, BlendShapeCount`, the 52 ARKit shapes (0 to 1) and nine rotations:
//! `HeadYaw, HeadPitch, HeadRoll` and the same three for `LeftEye` and `RightEye`, in radians.
//! A timecode is `hours:minutes:seconds:frame.thousandths-of-a-frame`.

mod csv;
mod timecode;
mod weights;

pub(crate) use weights::weights_from_archive;
pub use weights::{
    WeightTable, parse_weights, parse_weights_archive, read_weights, weights_to_text, write_weights,
};

use crate::{ParseError, ReadError, WriteError, read_bytes, write_atomic};
use csv::{Table, at, number};
use std::fmt::Write as _;
use std::path::Path;
use understudy_core::arkit;

/// The rotations behind the shapes, in radians.
pub const ROTATIONS: [&str; 9] = [
    "HeadYaw",
    "HeadPitch",
    "HeadRoll",
    "LeftEyeYaw",
    "LeftEyePitch",
    "LeftEyeRoll",
    "RightEyeYaw",
    "RightEyePitch",
    "RightEyeRoll",
];

/// A recorded face.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveLinkTake {
    /// Names of the columns: ARKit shapes by their canonical names, [`ROTATIONS`] as they are, others as
    /// the file has them.
    pub names: Vec<String>,
    /// One row per frame, one value a name.
    pub frames: Vec<Vec<f32>>,
    /// Seconds of every frame after the first, from the timecodes: rows may be missing where the phone
    /// dropped a frame.
    pub times: Vec<f64>,
    /// Frames a second.
    pub rate: f32,
    /// How the rate is known.
    pub rate_reason: String,
    /// The timecode of the first frame: seconds since midnight.
    pub start: f64,
}

impl LiveLinkTake {
    /// The column of that name, in any of its spellings.
    pub fn find(&self, name: &str) -> Option<usize> {
        let name = column_name(name);
        self.names.iter().position(|other| *other == name)
    }
}

/// Canonical where it is an ARKit shape or one of the rotations, else unchanged.
fn column_name(name: &str) -> String {
    if let Some(shape) = arkit::canonical(name) {
        return shape.into();
    }
    let rotation = ROTATIONS.into_iter().find(|rotation| rotation.eq_ignore_ascii_case(name));
    rotation.unwrap_or(name).into()
}

/// Reads a take.
pub fn read(path: &Path) -> Result<LiveLinkTake, ReadError> {
    parse(&read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`read`] on bytes.
pub fn parse(bytes: &[u8]) -> Result<LiveLinkTake, ParseError> {
    let table = Table::parse(bytes)?;
    let header = &table.header;
    let begins = header.len() > 2
        && header[0].eq_ignore_ascii_case("Timecode")
        && header[1].eq_ignore_ascii_case("BlendShapeCount");
    if !begins {
        return Err(at(
            1,
            1,
            "a header 'Timecode,BlendShapeCount,…' expected: this is no Live Link Face file",
        ));
    }
    let names: Vec<String> = header[2..].iter().map(|name| column_name(name)).collect();
    csv::check_names(&names, 3)?;
    let (mut frames, mut codes) = (Vec::new(), Vec::new());
    for (line, cells) in &table.rows {
        // A row without values is what the app writes while it sees no face.
        let announced: usize = cells[1]
            .parse()
            .map_err(|_| at(*line, 2, format!("'{}' is not a number of values", csv::shorten(cells[1]))))?;
        if announced == 0 && cells[2..].iter().all(|cell| cell.is_empty()) {
            continue;
        }
        if announced != names.len() && announced != arkit::SHAPES.len() {
            return Err(at(*line, 2, format!("{announced} values announced, {} columns found", names.len())));
        }
        codes.push((*line, timecode::parse(cells[0], *line)?));
        let mut frame = Vec::with_capacity(names.len());
        for (place, cell) in cells[2..].iter().enumerate() {
            frame.push(number(cell, *line, place + 3)?);
        }
        frames.push(frame);
    }
    if frames.is_empty() {
        return Err(at(1, 1, "there is no frame below the header"));
    }
    let timecode::Timing { times, rate, reason, start } = timecode::timing(&codes)?;
    Ok(LiveLinkTake { names, frames, times, rate, rate_reason: reason, start })
}

/// The text of a take: the 61 columns of the app in its order; a column that the take does not have is
/// zero, one that the app does not have is an error.
pub fn to_text(take: &LiveLinkTake) -> Result<String, String> {
    let columns: Vec<&str> = arkit::SHAPES.into_iter().chain(ROTATIONS).collect();
    if let Some(name) = take.names.iter().find(|name| !columns.contains(&name.as_str())) {
        return Err(format!("'{name}' is no Live Link Face column"));
    }
    if !(take.rate.is_finite() && take.rate > 0.0) {
        return Err(format!("a frame rate of {}", take.rate));
    }
    if take.times.len() != take.frames.len() {
        return Err(format!("{} times for {} frames", take.times.len(), take.frames.len()));
    }
    let sources: Vec<Option<usize>> =
        columns.iter().map(|column| take.names.iter().position(|name| name == column)).collect();
    let mut out = String::from("Timecode,BlendShapeCount");
    for column in &columns {
        let _ = write!(out, ",{}", arkit::live_link_name(column));
    }
    out.push('\n');
    for (frame, (values, time)) in take.frames.iter().zip(&take.times).enumerate() {
        if values.len() != take.names.len() || values.iter().any(|value| !value.is_finite()) {
            return Err(format!("frame {frame} has a wrong number of values, or one that is not finite"));
        }
        let code = timecode::format(take.start + time, take.rate)
            .ok_or_else(|| format!("frame {frame} has a time of {time} s"))?;
        let _ = write!(out, "{code},{}", columns.len());
        for source in &sources {
            let _ = write!(out, ",{:.7}", source.map_or(0.0, |column| values[column]));
        }
        out.push('\n');
    }
    Ok(out)
}

/// Writes a take, whole or not at all.
pub fn write(path: &Path, take: &LiveLinkTake) -> Result<(), WriteError> {
    let text = to_text(take).map_err(|problem| WriteError::new(path, problem))?;
    write_atomic(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use understudy_core::Random;

    fn take(rate: f32, frames: usize) -> LiveLinkTake {
        let mut random = Random::new(5);
        let names: Vec<String> = arkit::SHAPES.into_iter().chain(ROTATIONS).map(str::to_owned).collect();
        let rows = (0..frames).map(|_| names.iter().map(|_| random.uniform(0.0, 1.0)).collect()).collect();
        let times = (0..frames).map(|frame| frame as f64 / f64::from(rate)).collect();
        LiveLinkTake { names, frames: rows, times, rate, rate_reason: String::new(), start: 50_632.5 }
    }

    #[test]
    fn takes_come_back_at_every_rate() {
        for rate in [24.0, 25.0, 30.0, 50.0, 60.0, 120.0] {
            for frames in [2, 40, 400] {
                let take = take(rate, frames);
                let text = to_text(&take).expect("valid");
                let back = parse(text.as_bytes()).expect("just written");
                assert_eq!(back.names, take.names);
                if frames > 120 {
                    assert_eq!(back.rate, rate, "{}", back.rate_reason);
                    for (a, b) in back.times.iter().zip(&take.times) {
                        assert!((a - b).abs() < 1e-4, "{a} {b}");
                    }
                    assert_eq!(to_text(&back).expect("valid"), text, "save, load, save");
                }
                let pairs = back.frames.iter().flatten().zip(take.frames.iter().flatten());
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-6));
            }
        }
    }

    #[test]
    fn other_spellings_are_understood() {
        let text = "Timecode,BlendshapeCount,EyeBlinkLeft,jawopen,mouthSmile_R,headyaw,MyOwn\n\
                    10:59:59:29.500,5,0.1,0.2,0.3,-0.4,7\n10:59:59:30.500,5,0,0,0,0,0\n";
        let take = parse(text.as_bytes()).expect("valid");
        assert_eq!(take.names, ["eyeBlinkLeft", "jawOpen", "mouthSmileRight", "HeadYaw", "MyOwn"]);
        assert_eq!(take.find("MouthSmileRight"), Some(2));
        assert_eq!(take.frames[0], [0.1, 0.2, 0.3, -0.4, 7.0]);
        assert!(to_text(&take).expect_err("no such column").contains("'MyOwn'"));
    }

    #[test]
    fn rows_without_a_face_are_left_out() {
        let text = "Timecode,BlendShapeCount,JawOpen\n00:00:01:00,0,\n00:00:01:01,1,0.5\n00:00:01:03,1,0.7\n";
        let take = parse(text.as_bytes()).expect("valid");
        assert_eq!(take.frames, [[0.5], [0.7]]);
    }

    #[test]
    fn bad_takes_are_named_with_line_and_column() {
        let good = "Timecode,BlendShapeCount,JawOpen,HeadYaw\n00:00:00:00.0,2,0.5,0\n00:00:00:01.0,2,0.5,0\n";
        assert!(parse(good.as_bytes()).is_ok());
        for (from, to, message) in [
            (
                "Timecode",
                "Time",
                "line 1, column 1: a header 'Timecode,BlendShapeCount,…' expected: this is no Live Link Face file",
            ),
            ("HeadYaw", "jawOpen", "line 1, column 4: a second column 'jawOpen'"),
            ("00:00:00:01.0,2,0.5,0", "00:00:00:01.0,2,0.5", "line 3, column 4: 4 columns expected, 3 found"),
            ("00:00:00:01.0,2,0.5,0", "00:00:00:01.0,2,0.5,x", "line 3, column 4: 'x' is not a number"),
            ("00:00:00:01.0,2,0.5,0", "00:00:00:01.0,2,NaN,0", "line 3, column 3: 'NaN' is not finite"),
            (
                "00:00:00:01.0,2,0.5,0",
                "00:00:00:01.0,7,0.5,0",
                "line 3, column 2: 7 values announced, 2 columns found",
            ),
            (
                "00:00:00:01.0,2,0.5,0",
                "00:00:01.0,2,0.5,0",
                "line 3, column 1: '00:00:01.0' is not a timecode h:m:s:frame",
            ),
            (
                "00:00:00:01.0,2,0.5,0",
                "00:99:00:01.0,2,0.5,0",
                "line 3, column 1: '00:99:00:01.0' is not a timecode h:m:s:frame",
            ),
            ("00:00:00:00.0", "00:00:09:00.0", "line 3, column 1: the timecode goes back"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_eq!(parse(text.as_bytes()).expect_err(to).to_string(), message);
        }
        assert!(parse(b"").is_err());
        assert!(
            parse(b"Timecode,BlendShapeCount,JawOpen\n")
                .expect_err("no rows")
                .to_string()
                .contains("no frame")
        );
    }
}
