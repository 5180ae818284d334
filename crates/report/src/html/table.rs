//! Tables: words on the left, numbers on the right with one number of decimals a column, the best value
//! of a column set off.

use crate::plot::axis::group_thousands;
use crate::plot::escape;
use std::fmt::Write;

/// Which value of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Best {
    /// The smallest, as for errors.
    Lowest,
    /// The largest, as for speeds.
    Highest,
}

/// A column's heading and how its cells are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    name: String,
    decimals: Option<usize>,
    best: Option<Best>,
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), decimals: None, best: None }
    }

    /// A column of numbers with so many decimals.
    pub fn number(name: impl Into<String>, decimals: usize) -> Self {
        Self { name: name.into(), decimals: Some(decimals.min(12)), best: None }
    }

    /// Sets the smallest value off.
    pub fn lowest_is_best(mut self) -> Self {
        self.best = Some(Best::Lowest);
        self
    }

    /// Sets the largest value off.
    pub fn highest_is_best(mut self) -> Self {
        self.best = Some(Best::Highest);
        self
    }
}

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number; one that is not finite is shown as "n/a".
    Number(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<f32> for Cell {
    fn from(value: f32) -> Self {
        Self::Number(f64::from(value))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

/// A table in the making. Rows that are too short are filled with empty cells; cells beyond the last
/// column are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), ..Self::default() }
    }

    /// A line above the table.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Adds a row.
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// How a number of a column is written; the same text means the same value to a reader.
    fn written(column: &Column, value: f64) -> String {
        if !value.is_finite() {
            return "n/a".into();
        }
        let decimals = column.decimals.unwrap_or(0);
        if value.abs() >= 1e15 {
            return format!("{value:.3e}").replace('-', "−");
        }
        let text = format!("{value:.decimals$}");
        // A negative number that rounds to zero has no sign.
        let zero = !text.contains(|c: char| c.is_ascii_digit() && c != '0');
        group_thousands(if zero { text.trim_start_matches('-') } else { &text })
    }

    /// The best value of a column, if it has one and there is something to compare.
    fn best(&self, index: usize) -> Option<f64> {
        let best = self.columns[index].best?;
        let values: Vec<f64> = self
            .rows
            .iter()
            .filter_map(|row| match row.get(index) {
                Some(Cell::Number(value)) if value.is_finite() => Some(*value),
                _ => None,
            })
            .collect();
        if values.len() < 2 {
            return None;
        }
        values.into_iter().reduce(match best {
            Best::Lowest => f64::min,
            Best::Highest => f64::max,
        })
    }

    /// Writes the table as HTML.
    pub(super) fn write(&self, out: &mut String) {
        out.push_str("<div class=\"scroll\"><table>");
        if !self.caption.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", escape(&self.caption));
        }
        out.push_str("<thead><tr>");
        for column in &self.columns {
            let class = if column.decimals.is_some() { " class=\"number\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&column.name));
        }
        out.push_str("</tr></thead><tbody>\n");
        let best: Vec<Option<String>> = (0..self.columns.len())
            .map(|index| self.best(index).map(|value| Self::written(&self.columns[index], value)))
            .collect();
        for row in &self.rows {
            out.push_str("<tr>");
            for (index, column) in self.columns.iter().enumerate() {
                match row.get(index) {
                    Some(Cell::Number(value)) => {
                        let text = Self::written(column, *value);
                        // Values that read the same share the honour.
                        if best[index].as_ref() == Some(&text) {
                            let _ = write!(out, "<td class=\"number best\"><strong>{text}</strong></td>");
                        } else {
                            let _ = write!(out, "<td class=\"number\">{text}</td>");
                        }
                    }
                    Some(Cell::Text(text)) => {
                        let class = if column.decimals.is_some() { " class=\"number\"" } else { "" };
                        let _ = write!(out, "<td{class}>{}</td>", escape(text));
                    }
                    None => out.push_str("<td></td>"),
                }
            }
            out.push_str("</tr>\n");
        }
        if self.rows.is_empty() {
            let _ = writeln!(out, "<tr><td colspan=\"{}\">no rows</td></tr>", self.columns.len().max(1));
        }
        out.push_str("</tbody></table></div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(table: &Table) -> String {
        let mut out = String::new();
        table.write(&mut out);
        out
    }

    #[test]
    fn the_best_value_is_set_off_with_its_ties() {
        let column = || Column::number("mean", 1);
        let rows = [3.0, 1.24, 1.21, f64::NAN];
        let fill =
            |column: Column| rows.iter().fold(Table::new([column]), |table, v| table.row([(*v).into()]));
        let lowest = html(&fill(column().lowest_is_best()));
        assert_eq!(lowest.matches("<strong>1.2</strong>").count(), 2);
        assert!(lowest.contains("n/a"));
        assert!(html(&fill(column().highest_is_best())).contains("<strong>3.0</strong>"));
        assert!(!html(&fill(column())).contains("<strong>"));
        let lonely = Table::new([column().lowest_is_best()]).row([1.0.into()]);
        assert!(!html(&lonely).contains("<strong>"), "one value is no contest");
    }

    #[test]
    fn numbers_are_written_for_people() {
        let write = |value: f64, decimals| Table::written(&Column::number("", decimals), value);
        assert_eq!(write(1_234_567.891, 2), "1,234,567.89");
        assert_eq!(write(-1234.0, 0), "−1234");
        assert_eq!(write(-0.001, 1), "0.0");
        assert_eq!(write(f64::INFINITY, 1), "n/a");
        assert_eq!(write(1e200, 2), "1.000e200");
    }

    #[test]
    fn rows_of_any_length_fit() {
        let table = Table::new([Column::text("a"), Column::text("b")]);
        assert!(html(&table).contains("no rows"));
        let table = table.row(["x".into()]).row(["1".into(), "2".into(), "3".into()]);
        assert_eq!(html(&table).matches("<td>").count(), 4);
    }
}
