//! Bar charts: horizontal, so that long names stay readable, with the value at the end of each bar.

use super::axis::{Axis, Scale, format_number};
use super::frame::{Around, Frame, Key, Look, left_out};
use super::svg::{rectangle, rule, shorten, text, text_width};
use super::{DEFAULT_SIZE, Plot};

/// Height of a bar, CSS pixels.
const BAR: f64 = 16.0;

/// Free space between groups of bars.
const GROUP_GAP: f64 = 10.0;

/// One value a category.
#[derive(Debug, Clone, PartialEq)]
pub struct BarSeries {
    name: String,
    values: Vec<f64>,
}

impl BarSeries {
    /// Values in the order of the categories.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), values }
    }
}

/// A bar chart in the making.
///
/// ```
/// use understudy_report::plot::{BarChart, BarSeries, Plot};
/// let chart = BarChart::new("Error on held-out poses", "mean, mm").categories(["skinning", "twin"]);
/// assert!(chart.series(BarSeries::new("Rook", vec![6.2, 0.4])).to_svg().contains("skinning"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    title: String,
    label: String,
    categories: Vec<String>,
    series: Vec<BarSeries>,
    scale: Scale,
    width: f64,
}

impl BarChart {
    /// An empty chart; `label` says what the values are, with their unit.
    pub fn new(title: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            label: label.into(),
            categories: Vec::new(),
            series: Vec::new(),
            scale: Scale::Linear,
            width: DEFAULT_SIZE.0,
        }
    }

    /// Names of the groups, from the top.
    pub fn categories(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.categories = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a bar to every group.
    pub fn series(mut self, series: BarSeries) -> Self {
        self.series.push(series);
        self
    }

    /// The scale of the values.
    pub fn scale(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// Width in CSS pixels, brought into 160..=4000; the height follows from the bars.
    pub fn width(mut self, width: f64) -> Self {
        self.width = width.clamp(160.0, 4000.0);
        self
    }

    /// The value of a bar; NaN where a series is too short.
    fn value(&self, series: usize, category: usize) -> f64 {
        self.series[series].values.get(category).copied().unwrap_or(f64::NAN)
    }

    /// The bars of all groups; names end at `names_right`.
    fn draw_bars(&self, out: &mut String, frame: &Frame, axis: &Axis, names_right: f64, name_room: f64) {
        let group = self.series.len() as f64 * BAR + GROUP_GAP;
        // On a log scale bars start at the lower end; there is no zero.
        let base = if self.scale == Scale::Log { axis.low() } else { 0.0 };
        let start = frame.x(axis, base);
        for (category, name) in self.categories.iter().enumerate() {
            let top = frame.top + group * category as f64 + GROUP_GAP / 2.0;
            let middle = top + self.series.len() as f64 * BAR / 2.0;
            text(out, "end", names_right, middle + 4.0, &shorten(name, name_room));
            for series in 0..self.series.len() {
                let value = self.value(series, category);
                let y = top + series as f64 * BAR;
                if !Axis::shows(value, self.scale) {
                    text(out, "muted", start + 5.0, y + 12.0, "n/a");
                    continue;
                }
                let end = frame.x(axis, value);
                let (left, right) = (start.min(end), start.max(end));
                rectangle(out, &Look::new(series).fill(), left, y + 1.0, (right - left).max(1.0), BAR - 2.0);
                let label = format_number(value, 3);
                if value < base {
                    text(out, "muted halo end", left - 4.0, y + 12.0, &label);
                } else {
                    text(out, "muted halo", right + 4.0, y + 12.0, &label);
                }
            }
        }
        rule(out, "axis", (start, frame.top), (start, frame.bottom));
    }
}

impl Plot for BarChart {
    fn draw(&self) -> (String, f64, f64) {
        let mut out = String::new();
        let names = self.categories.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        let name_room = names.min(self.width * 0.4);
        let values: Vec<f64> = (0..self.series.len())
            .flat_map(|series| (0..self.categories.len()).map(move |category| (series, category)))
            .map(|(series, category)| self.value(series, category))
            .collect();
        let bad = values.iter().filter(|v| !Axis::shows(**v, self.scale)).count();
        let legend: Vec<&str> = match self.series.len() {
            1 => Vec::new(),
            _ => self.series.iter().map(|s| s.name.as_str()).collect(),
        };
        let mut around = Around {
            title: &self.title,
            x_label: &self.label,
            y_label: "",
            names: legend,
            key: Key::Box,
            notes: left_out(bad, self.scale == Scale::Log).into_iter().collect(),
            width: self.width,
            height: 0.0,
        };
        let rows = self.categories.len() as f64 * (self.series.len() as f64 * BAR + GROUP_GAP);
        // A trial drawing tells how much the texts around the bars take.
        around.height = 2000.0;
        let trial = around.draw(&mut String::new(), name_room + 8.0);
        let height = (2000.0 - (trial.bottom - trial.top) + rows.max(60.0)).ceil();
        around.height = height;
        let frame = around.draw(&mut out, name_room + 8.0);
        let Some(axis) = Axis::covering(values.iter().copied(), self.scale) else {
            frame.empty(&mut out);
            return (out, self.width, height);
        };
        // Room at the ends for the numbers beside the bars.
        let numbers = values.iter().map(|v| text_width(&format_number(*v, 3))).fold(0.0, f64::max) + 10.0;
        let axis = match self.scale {
            Scale::Linear => axis.with_zero(),
            Scale::Log => axis.rounded(5),
        };
        let negative = axis.low() < 0.0;
        let inner = Frame {
            left: if negative { frame.left + numbers } else { frame.left },
            right: (frame.right - numbers).max(frame.left + 40.0),
            ..frame
        };
        inner.x_axis(&mut out, &axis, true);
        self.draw_bars(&mut out, &inner, &axis, frame.left - 8.0, name_room);
        (out, self.width, height)
    }

    fn description(&self) -> String {
        format!("Bar chart. {}: {}", self.title, self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar_widths(svg: &str) -> Vec<f64> {
        let bars = svg.split("<rect class=\"f0\"").skip(1);
        let width = |part: &str| part.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        bars.filter_map(width).collect()
    }

    #[test]
    fn lengths_are_proportional() {
        let chart = BarChart::new("t", "mm").categories(["a", "b", "c"]);
        let svg = chart.series(BarSeries::new("x", vec![1.0, 2.0, 4.0])).to_inline_svg();
        let widths = bar_widths(&svg);
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01 && (widths[2] / widths[0] - 4.0).abs() < 0.01);
    }

    #[test]
    fn a_missing_value_is_said() {
        let chart = BarChart::new("t", "mm").categories(["a", "b"]);
        let svg = chart.series(BarSeries::new("x", vec![1.0])).to_inline_svg();
        assert!(svg.contains("n/a") && svg.contains("1 value is left out"));
    }
}
