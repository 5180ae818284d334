//! Tables of numbers as comma-separated text: a header, then rows of as many cells, errors with line and
//! column. Quotes are taken off; commas inside quotes do not occur in these files and are not read.
//! The crate `csv` loses count of lines at blank ones and at `\r\n`, so its errors would name the wrong place.

use crate::ParseError;
use std::collections::HashSet;

pub(super) struct Table<'a> {
    pub header: Vec<&'a str>,
    /// Line numbers and cells; every row has as many as the header.
    pub rows: Vec<(usize, Vec<&'a str>)>,
}

/// A problem at a line and a column, both counted from one.
pub(super) fn at(line: usize, column: usize, problem: impl ToString) -> ParseError {
    ParseError::new(format!("line {line}, column {column}"), problem)
}

/// A finite number.
pub(super) fn number(cell: &str, line: usize, column: usize) -> Result<f32, ParseError> {
    let value: f32 =
        cell.parse().map_err(|_| at(line, column, format!("'{}' is not a number", shorten(cell))))?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(at(line, column, format!("'{}' is not finite", shorten(cell))))
    }
}

pub(super) fn shorten(cell: &str) -> String {
    cell.chars().take(32).collect()
}

/// Names that are not empty and differ; `first` is the column of the first one.
pub(super) fn check_names(names: &[String], first: usize) -> Result<(), ParseError> {
    let mut seen = HashSet::new();
    for (place, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(at(1, first + place, "a column without a name"));
        }
        if !seen.insert(name) {
            return Err(at(1, first + place, format!("a second column '{}'", shorten(name))));
        }
    }
    Ok(())
}

impl<'a> Table<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| ParseError::new(format!("byte {}", error.valid_up_to()), "is not UTF-8 text"))?;
        let mut lines = text.trim_start_matches('\u{feff}').lines().zip(1usize..);
        let (header, _) = lines.next().ok_or_else(|| at(1, 1, "the file is empty"))?;
        let header: Vec<&str> = header.split(',').map(clean).collect();
        let mut rows = Vec::new();
        for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
            let cells: Vec<&str> = line.split(',').map(clean).collect();
            if cells.len() != header.len() {
                let column = cells.len().min(header.len()) + 1;
                let problem = format!("{} columns expected, {} found", header.len(), cells.len());
                return Err(at(number, column, problem));
            }
            rows.push((number, cells));
        }
        Ok(Self { header, rows })
    }
}

fn clean(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(cell)
}
