//! What goes to standard output: one JSON document, or text and tables for people.

use anyhow::{Result, anyhow};
use serde::Serialize;
use std::io::{ErrorKind, Write as _};
use understudy_jobs::JobError;

/// Prints a result as JSON or as text.
pub fn print<T: Serialize>(json: bool, result: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
    let mut out = if json { serde_json::to_string_pretty(result)? } else { text(result) };
    out.push('\n');
    write(&out)
}

/// Fails for the first option that was given but would change nothing: name, whether that is so, why.
pub fn refuse_unused(options: &[(&str, bool, &str)]) -> Result<()> {
    match options.iter().find(|(_, unused, _)| *unused) {
        None => Ok(()),
        Some((option, _, why)) => {
            Err(JobError::Setting { place: (*option).into(), problem: format!("is not used: {why}") }.into())
        }
    }
}

/// Fails for what a command could not do beside its result, once the result is printed.
pub fn complete(problem: Option<String>) -> Result<()> {
    problem.map_or(Ok(()), |problem| Err(anyhow!(problem)))
}

/// Writes text; a reader that went away (`| head`) is no failure.
pub fn write(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Columns as wide as their longest cell; numbers to the right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let numeric = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let line = |cells: Vec<&str>, right: &dyn Fn(usize) -> bool| {
        let padded = cells.iter().enumerate().map(|(column, cell)| {
            let gap = " ".repeat(widths[column] - cell.chars().count());
            if right(column) { format!("{gap}{cell}") } else { format!("{cell}{gap}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    // The first column holds names, even where they begin with a digit.
    let right =
        |column: usize| column > 0 && !rows.is_empty() && rows.iter().all(|row| numeric(&row[column]));
    let mut out = vec![line(head.to_vec(), &right)];
    out.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect(), &right)));
    out.join("\n")
}

/// `1 file`, `2 files`.
pub fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", thousands(number)) }
}

/// `1 vertex`, `2 vertices`.
pub fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number as u64), if number == 1 { one } else { many })
}

/// `13,248`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.5 MB`, in powers of ten.
pub fn bytes(number: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(13_248), "13,248");
        assert_eq!(thousands(999), "999");
        assert_eq!(bytes(1_540_000), "1.5 MB");
        assert_eq!(count(1usize, "pose"), "1 pose");
    }

    #[test]
    fn tables_align() {
        let rows = vec![vec!["rook".into(), "13,248".into()], vec!["mira".into(), "9".into()]];
        assert_eq!(table(&["name", "vertices"], &rows), "name  vertices\nrook    13,248\nmira         9");
    }
}
