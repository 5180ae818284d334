//! Line plots: one or more series over a common axis.

use super::axis::{Axis, Scale};
use super::frame::{Around, Frame, Key, Look, label_room, left_out};
use super::svg::number;
use super::{DEFAULT_SIZE, Plot};
use std::fmt::Write;

/// Points are marked when a series has no more of them than this.
const MARKED: usize = 40;

/// A named sequence of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: String,
    points: Vec<[f64; 2]>,
}

impl Series {
    /// Points `[x, y]` in drawing order. A point that is not a number interrupts the line.
    pub fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points }
    }

    /// Values over their index.
    pub fn over_index(name: impl Into<String>, values: &[f64]) -> Self {
        Self::new(name, values.iter().enumerate().map(|(index, value)| [index as f64, *value]).collect())
    }
}

/// A line plot in the making.
///
/// ```
/// use understudy_report::plot::{LinePlot, Plot, Scale, Series};
/// let plot = LinePlot::new("Training").x_label("step").y_label("loss, cm²").y_scale(Scale::Log);
/// let svg = plot.series(Series::over_index("twin", &[1.0, 0.2, 0.05])).to_svg();
/// assert!(svg.starts_with("<svg"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinePlot {
    title: String,
    x_label: String,
    y_label: String,
    x_scale: Scale,
    y_scale: Scale,
    from_zero: bool,
    series: Vec<Series>,
    size: (f64, f64),
}

impl LinePlot {
    /// An empty plot.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x_label: String::new(),
            y_label: String::new(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            from_zero: false,
            series: Vec::new(),
            size: DEFAULT_SIZE,
        }
    }

    /// What runs along the bottom, with its unit.
    pub fn x_label(mut self, label: impl Into<String>) -> Self {
        self.x_label = label.into();
        self
    }

    /// What runs upward, with its unit.
    pub fn y_label(mut self, label: impl Into<String>) -> Self {
        self.y_label = label.into();
        self
    }

    /// The scale of the bottom axis.
    pub fn x_scale(mut self, scale: Scale) -> Self {
        self.x_scale = scale;
        self
    }

    /// The scale of the upward axis.
    pub fn y_scale(mut self, scale: Scale) -> Self {
        self.y_scale = scale;
        self
    }

    /// Keeps zero on the upward axis, so that heights can be compared.
    pub fn from_zero(mut self) -> Self {
        self.from_zero = true;
        self
    }

    /// Adds a series.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Width and height in CSS pixels, brought into 160..=4000.
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.size = (width.clamp(160.0, 4000.0), height.clamp(160.0, 4000.0));
        self
    }

    /// Whether a point can be drawn.
    fn shows(&self, point: &[f64; 2]) -> bool {
        Axis::shows(point[0], self.x_scale) && Axis::shows(point[1], self.y_scale)
    }

    /// The lines and markers of one series.
    fn draw_series(&self, out: &mut String, frame: &Frame, x: &Axis, y: &Axis, index: usize) {
        let look = Look::new(index);
        let series = &self.series[index];
        let mut path = String::new();
        for run in series.points.split(|point| !self.shows(point)) {
            let places: Vec<(f64, f64)> = run.iter().map(|p| (frame.x(x, p[0]), frame.y(y, p[1]))).collect();
            for (step, place) in thin(&places).iter().enumerate() {
                let command = if step == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{command}{} {}", number(place.0), number(place.1));
            }
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"line {}\"{} d=\"{path}\"/>", look.stroke(), look.dashes());
        }
        let shown = || series.points.iter().filter(|point| self.shows(point));
        if shown().count() <= MARKED {
            for point in shown() {
                look.marker(out, frame.x(x, point[0]), frame.y(y, point[1]));
            }
        }
    }
}

/// Keeps, of many points in one pixel column, the first, the lowest, the highest and the last: the drawing
/// stays the same and the file small.
fn thin(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    let mut start = 0;
    while start < places.len() {
        let column = places[start].0.floor();
        let length = places[start..].iter().take_while(|place| place.0.floor() == column).count();
        let group = &places[start..start + length];
        if length <= 4 {
            out.extend_from_slice(group);
        } else {
            let by_height = |a: &&usize, b: &&usize| group[**a].1.total_cmp(&group[**b].1);
            let all: Vec<usize> = (0..length).collect();
            let lowest = all.iter().min_by(by_height).copied().unwrap_or(0);
            let highest = all.iter().max_by(by_height).copied().unwrap_or(0);
            let mut kept = [0, lowest.min(highest), lowest.max(highest), length - 1].to_vec();
            kept.dedup();
            out.extend(kept.into_iter().map(|place| group[place]));
        }
        start += length;
    }
    out
}

impl Plot for LinePlot {
    fn draw(&self) -> (String, f64, f64) {
        let (width, height) = self.size;
        let mut out = String::new();
        let all = || self.series.iter().flat_map(|series| &series.points);
        let shown = || all().filter(|point| self.shows(point));
        let axis = |axis: usize, scale: Scale| Axis::covering(shown().map(|p| p[axis]), scale);
        let log = self.x_scale == Scale::Log || self.y_scale == Scale::Log;
        let marked = self.series.iter().any(|s| s.points.len() <= MARKED);
        // One series needs no legend when the axis names it.
        let single = self.series.len() == 1 && !self.y_label.is_empty();
        let around = Around {
            title: &self.title,
            x_label: &self.x_label,
            y_label: &self.y_label,
            names: if single { Vec::new() } else { self.series.iter().map(|s| s.name.as_str()).collect() },
            key: if marked { Key::Marked } else { Key::Line },
            notes: left_out(all().count() - shown().count(), log).into_iter().collect(),
            width,
            height,
        };
        let (Some(x_axis), Some(y_axis)) = (axis(0, self.x_scale), axis(1, self.y_scale)) else {
            around.draw(&mut out, 0.0).empty(&mut out);
            return (out, width, height);
        };
        let y_axis = if self.from_zero { y_axis.with_zero() } else { y_axis };
        let count = ((height / 56.0) as usize).clamp(2, 10);
        let y_axis = y_axis.rounded(count);
        let frame = around.draw(&mut out, label_room(&y_axis, count));
        frame.y_axis(&mut out, &y_axis, count);
        frame.x_axis(&mut out, &x_axis, false);
        for index in 0..self.series.len() {
            self.draw_series(&mut out, &frame, &x_axis, &y_axis, index);
        }
        (out, width, height)
    }

    fn description(&self) -> String {
        let names: Vec<&str> =
            self.series.iter().map(|s| s.name.as_str()).filter(|n| !n.is_empty()).collect();
        format!("Line plot. {}: {}", self.title, names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_interrupts_the_line_and_is_noted() {
        let series = Series::over_index("a", &[1.0, 2.0, f64::NAN, 3.0, 4.0]);
        let svg = LinePlot::new("t").series(series).to_svg();
        let path = svg.split("class=\"line s0\"").nth(2).expect("the line, after the legend's");
        assert_eq!(path.split("/>").next().map(|p| p.matches('M').count()), Some(2));
        assert!(svg.contains("1 value is left out: not a number"));
    }

    #[test]
    fn thinning_keeps_extremes_and_ends() {
        let places: Vec<(f64, f64)> =
            (0..10_000).map(|i| (i as f64 / 100.0, ((i * 37) % 1000) as f64)).collect();
        let thin = thin(&places);
        assert!(thin.len() <= 400);
        assert_eq!((thin[0], thin[thin.len() - 1]), (places[0], places[9999]));
        assert!(thin.iter().any(|p| p.1 == 0.0) && thin.iter().any(|p| p.1 == 999.0));
    }

    #[test]
    fn points_land_inside_the_picture() {
        let plot =
            LinePlot::new("t").series(Series::new("a", vec![[0.0, 10.0], [5.0, 20.0]])).size(400.0, 300.0);
        let svg = plot.to_inline_svg();
        for part in svg.split("<circle").skip(2) {
            let value = |name: &str| {
                let rest = part.split(&format!("{name}=\"")).nth(1).and_then(|r| r.split('"').next());
                rest.and_then(|r| r.parse::<f64>().ok()).expect("a number")
            };
            assert!((0.0..400.0).contains(&value("cx")) && (0.0..300.0).contains(&value("cy")));
        }
        assert_eq!(svg.matches("<circle").count(), 3);
    }
}
