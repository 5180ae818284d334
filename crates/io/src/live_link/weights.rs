//! Tables of weights: a header of control names, a row per frame. An optional first column `time`
//! (seconds) or `frame` gives the rate.

use super::csv::{Table, at, check_names, number};
use crate::Dim::{Any, Exactly};
use crate::arrays::in_array;
use crate::npz::NpzReader;
use crate::{ParseError, ReadError, WriteError, read_bytes, write_atomic};
use std::fmt::Write as _;
use std::path::Path;

/// A table of weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WeightTable {
    /// Control names, as the file has them.
    pub names: Vec<String>,
    /// One row per frame, one value a name.
    pub frames: Vec<Vec<f32>>,
    /// Frames a second, where a `time` column tells it.
    pub rate: Option<f32>,
}

/// Reads a table.
pub fn read_weights(path: &Path) -> Result<WeightTable, ReadError> {
    parse_weights(&read_bytes(path)?).map_err(ReadError::content(path))
}

/// [`read_weights`] on bytes.
pub fn parse_weights(bytes: &[u8]) -> Result<WeightTable, ParseError> {
    let table = Table::parse(bytes)?;
    let first = table.header[0].to_ascii_lowercase();
    let skipped = usize::from(first == "time" || first == "frame");
    let names: Vec<String> = table.header[skipped..].iter().map(|name| (*name).to_owned()).collect();
    if names.is_empty() {
        return Err(at(1, 1, "the header names no control"));
    }
    check_names(&names, skipped + 1)?;
    let mut frames = Vec::with_capacity(table.rows.len());
    let mut times = Vec::with_capacity(table.rows.len());
    for (line, cells) in &table.rows {
        let mut row = Vec::with_capacity(cells.len());
        for (place, cell) in cells.iter().enumerate() {
            row.push(number(cell, *line, place + 1)?);
        }
        if skipped == 1 {
            let time = row.remove(0);
            if times.last().is_some_and(|last| time <= *last) {
                return Err(at(*line, 1, format!("'{first}' does not ascend")));
            }
            times.push(time);
        }
        frames.push(row);
    }
    if frames.is_empty() {
        return Err(at(1, 1, "there is no row below the header"));
    }
    let rate = (first == "time").then(|| mean_rate(&times)).flatten();
    Ok(WeightTable { names, frames, rate })
}

/// Reads a table that is an archive in memory; see [`crate::open`].
pub fn parse_weights_archive(bytes: Vec<u8>) -> Result<WeightTable, ParseError> {
    weights_from_archive(&NpzReader::parse(bytes)?)
}

/// A table as an archive: `names [m]`, `weights [f,m]` and, where it is known, `rate []`.
pub(crate) fn weights_from_archive(npz: &NpzReader) -> Result<WeightTable, ParseError> {
    npz.check_shapes(&[("names", &[Any("m")]), ("weights", &[Any("f"), Any("m")]), ("rate", &[])])?;
    let names = npz.strings("names", &[Any("m")])?.data;
    let weights = npz.f32("weights", &[Any("f"), Exactly(names.len())])?.data;
    if names.is_empty() || weights.is_empty() {
        return Err(in_array("weights", "there is no frame, or no control"));
    }
    let rate = if npz.contains("rate") { Some(npz.f32("rate", &[])?.data[0]) } else { None };
    if let Some(rate) = rate.filter(|rate| *rate <= 0.0) {
        return Err(in_array("rate", format!("{rate} frames per second")));
    }
    let frames = weights.chunks_exact(names.len()).map(<[f32]>::to_vec).collect();
    Ok(WeightTable { names, frames, rate })
}

/// Frames a second over the whole table; `None` for a single row.
fn mean_rate(times: &[f32]) -> Option<f32> {
    let span = f64::from(*times.last()?) - f64::from(*times.first()?);
    let rate = (times.len() - 1) as f64 / span;
    let whole = rate.round();
    let rate = if (rate - whole).abs() < 1e-3 * whole { whole } else { rate } as f32;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// The text of a table, with a `time` column where the rate is known. Values come back bit for bit.
pub fn weights_to_text(table: &WeightTable) -> Result<String, String> {
    if let Some(name) =
        table.names.iter().find(|name| name.contains([',', '"', '\n', '\r']) || name.trim() != *name)
    {
        return Err(format!("the name '{name}' has a comma, a quote, a line break or a space at its end"));
    }
    let mut out = String::new();
    if let Some(rate) = table.rate {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(format!("a frame rate of {rate}"));
        }
        out.push_str("time,");
    }
    out.push_str(&table.names.join(","));
    out.push('\n');
    for (frame, row) in table.frames.iter().enumerate() {
        if row.len() != table.names.len() || row.iter().any(|value| !value.is_finite()) {
            return Err(format!("frame {frame} has a wrong number of values, or one that is not finite"));
        }
        if let Some(rate) = table.rate {
            let _ = write!(out, "{:.6},", frame as f64 / f64::from(rate));
        }
        let cells: Vec<String> = row.iter().map(f32::to_string).collect();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    Ok(out)
}

/// Writes a table, whole or not at all.
pub fn write_weights(path: &Path, table: &WeightTable) -> Result<(), WriteError> {
    let text = weights_to_text(table).map_err(|problem| WriteError::new(path, problem))?;
    write_atomic(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn save_load_save_is_the_identity(
            rows in prop::collection::vec(prop::array::uniform3(-1e9f32..1e9), 2..30), timed: bool,
        ) {
            let names = ["jaw open", "é", "x"].map(str::to_owned).to_vec();
            let frames: Vec<Vec<f32>> = rows.iter().map(|row| row.to_vec()).collect();
            let table = WeightTable { names, frames, rate: timed.then_some(24.0) };
            let text = weights_to_text(&table).expect("valid");
            let back = parse_weights(text.as_bytes()).expect("just written");
            prop_assert_eq!(&back, &table);
            prop_assert_eq!(weights_to_text(&back).expect("valid"), text);
        }
    }

    #[test]
    fn bad_tables_are_named() {
        for (text, message) in [
            ("", "line 1, column 1: the file is empty"),
            ("time", "line 1, column 1: the header names no control"),
            ("a,b", "line 1, column 1: there is no row below the header"),
            ("a,b\n1,2,3", "line 2, column 3: 2 columns expected, 3 found"),
            ("a,a\n1,2", "line 1, column 2: a second column 'a'"),
            ("a,\n1,2", "line 1, column 2: a column without a name"),
            ("a,b\n1,inf", "line 2, column 2: 'inf' is not finite"),
            ("time,b\n1,2\n1,2", "line 3, column 1: 'time' does not ascend"),
        ] {
            assert_eq!(parse_weights(text.as_bytes()).expect_err(text).to_string(), message);
        }
        let comma = WeightTable { names: vec!["a,b".into()], ..WeightTable::default() };
        assert!(weights_to_text(&comma).is_err());
    }
}
