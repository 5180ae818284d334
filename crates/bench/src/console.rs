//! What the benchmarks say: tables on standard output, how far they are on standard error.

use std::io::Write as _;
use understudy_jobs::{Event, Watch};

/// Listens to jobs: pieces of work and notes, a line each.
pub struct Console;

impl Watch for Console {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Started { what, total, unit } => complain(&format!("{what}: {total} {unit}")),
            Event::Note { message } | Event::Warning { message } => complain(message),
            _ => {}
        }
    }
}

/// A line on standard error.
pub fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Text on standard output.
pub fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Columns as wide as their longest cell, all but the first to the right. A row may end before the last column.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row.get(column).map_or(0, |cell| cell.chars().count()));
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let pad = |(column, cell): (usize, &String)| {
            let gap = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 { format!("{cell}{gap}") } else { format!("{gap}{cell}") }
        };
        cells.iter().enumerate().map(pad).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    std::iter::once(&head).chain(rows).map(|row| line(row)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_end_before_the_last_column() {
        let rows = [
            vec!["at rest".to_owned(), "5.4".to_owned()],
            vec!["network".into(), "0.3".into(), "12.5".into()],
        ];
        let text = table(&["method", "mm", "ms"], &rows);
        assert_eq!(text, "method    mm    ms\nat rest  5.4\nnetwork  0.3  12.5");
    }
}
