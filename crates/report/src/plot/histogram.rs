//! Histograms: how often values fall into bins of equal width.

use super::axis::{Axis, Scale, format_number};
use super::frame::{Around, Key, label_room, left_out};
use super::svg::{rectangle, rule, text, text_width};
use super::{DEFAULT_SIZE, Plot};

/// A histogram in the making.
///
/// ```
/// use understudy_report::plot::{Histogram, Plot};
/// let histogram = Histogram::new("Vertex error", "error, mm", &[0.1, 0.2, 0.2, 0.7]).mark("mean", 0.3);
/// assert!(histogram.to_svg().contains("mean"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    title: String,
    label: String,
    values: Vec<f64>,
    left_out: usize,
    bins: Option<usize>,
    count_scale: Scale,
    marks: Vec<(String, f64)>,
    size: (f64, f64),
}

impl Histogram {
    /// A histogram of the finite values; `label` says what they are, with their unit.
    pub fn new(title: impl Into<String>, label: impl Into<String>, values: &[f64]) -> Self {
        let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        Self {
            title: title.into(),
            label: label.into(),
            left_out: values.len() - finite.len(),
            values: finite,
            bins: None,
            count_scale: Scale::Linear,
            marks: Vec::new(),
            size: DEFAULT_SIZE,
        }
    }

    /// Sets the number of bins, 1 to 400, instead of choosing by the spread of the values.
    pub fn bins(mut self, bins: usize) -> Self {
        self.bins = Some(bins.clamp(1, 400));
        self
    }

    /// The scale of the counts; a logarithmic one shows rare bins.
    pub fn count_scale(mut self, scale: Scale) -> Self {
        self.count_scale = scale;
        self
    }

    /// Marks a value with a vertical line: a mean, a percentile, a limit.
    pub fn mark(mut self, name: impl Into<String>, value: f64) -> Self {
        self.marks.push((name.into(), value));
        self
    }

    /// Width and height in CSS pixels, brought into 160..=4000.
    pub fn size(mut self, width: f64, height: f64) -> Self {
        self.size = (width.clamp(160.0, 4000.0), height.clamp(160.0, 4000.0));
        self
    }

    /// How many values fall into each bin of the axis.
    fn counts(&self, axis: &Axis) -> Vec<usize> {
        let bins = self.bins.unwrap_or_else(|| choose_bins(&self.values, axis));
        let mut counts = vec![0; bins];
        for value in &self.values {
            let place = axis.place(*value) * bins as f64;
            counts[(place.max(0.0) as usize).min(bins - 1)] += 1;
        }
        counts
    }
}

/// Bin width by Freedman and Diaconis (1981), `2 IQR n^(-1/3)`, between 5 and 80 bins.
fn choose_bins(values: &[f64], axis: &Axis) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let spread = axis.place(at(0.75)) - axis.place(at(0.25));
    let width = 2.0 * spread / (sorted.len() as f64).cbrt();
    if width > 0.0 { (1.0 / width).ceil().clamp(5.0, 80.0) as usize } else { 20 }
}

impl Plot for Histogram {
    fn draw(&self) -> (String, f64, f64) {
        let (width, height) = self.size;
        let mut out = String::new();
        let around = Around {
            title: &self.title,
            x_label: &self.label,
            y_label: "count",
            names: Vec::new(),
            key: Key::Box,
            notes: left_out(self.left_out, false).into_iter().collect(),
            width,
            height,
        };
        let Some(axis) = Axis::covering(self.values.iter().copied(), Scale::Linear) else {
            around.draw(&mut out, 0.0).empty(&mut out);
            return (out, width, height);
        };
        // Amounts that start near zero start at zero.
        let axis = if axis.low() > 0.0 && axis.low() < 0.3 * axis.high() { axis.with_zero() } else { axis };
        let counts = self.counts(&axis);
        let most = counts.iter().copied().max().unwrap_or(1) as f64;
        let ticks = ((height / 60.0) as usize).clamp(2, 8);
        let count_axis = match self.count_scale {
            Scale::Linear => Axis::new(0.0, most, Scale::Linear).rounded(ticks),
            // Half a value lies below the smallest bin, so that a bin of one has a height.
            Scale::Log => Axis::new(0.5, most.max(1.0) * 1.3, Scale::Log),
        };
        let frame = around.draw(&mut out, label_room(&count_axis, ticks));
        frame.y_axis(&mut out, &count_axis, ticks);
        let step = (frame.right - frame.left) / counts.len() as f64;
        let gap = if step > 6.0 { 1.0 } else { 0.0 };
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let top = frame.y(&count_axis, *count as f64);
            rectangle(&mut out, "f0", frame.left + step * bin as f64, top, step - gap, frame.bottom - top);
        }
        frame.x_axis(&mut out, &axis, false);
        let mut used: Vec<(f64, f64, f64)> = Vec::new();
        let mut labels = Vec::new();
        for (name, value) in &self.marks {
            let place = axis.place(*value);
            if !(0.0..=1.0).contains(&place) {
                continue;
            }
            let x = frame.x(&axis, *value);
            rule(&mut out, "s1", (x, frame.top), (x, frame.bottom));
            let label = format!("{name} {}", format_number(*value, 3));
            let wide = text_width(&label) + 8.0;
            let left = if x + wide > frame.right { x - wide } else { x + 5.0 };
            // Labels that would meet go one line lower.
            let mut y = frame.top + 11.0;
            while used.iter().any(|(l, r, line)| left < *r && left + wide > *l && (y - line).abs() < 14.0) {
                y += 15.0;
            }
            used.push((left, left + wide, y));
            labels.push((left, y, label));
        }
        // After all lines, so that no line runs through a label.
        for (left, y, label) in &labels {
            text(&mut out, "halo", *left, *y, label);
        }
        (out, width, height)
    }

    fn description(&self) -> String {
        format!("Histogram. {}: {} values of {}", self.title, self.values.len(), self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_once() {
        let values: Vec<f64> =
            (0..1000).map(|i| ((i * 7919) % 1000) as f64 / 10.0).chain([f64::NAN]).collect();
        for bins in [None, Some(1), Some(7), Some(400)] {
            let mut histogram = Histogram::new("t", "x", &values);
            histogram.bins = bins;
            let axis = Axis::covering(values.iter().copied(), Scale::Linear).expect("values");
            let counts = histogram.counts(&axis);
            assert_eq!(counts.iter().sum::<usize>(), 1000);
        }
        let even = Histogram::new("t", "x", &values).bins(4);
        let counts = even.counts(&Axis::new(0.0, 100.0, Scale::Linear));
        assert_eq!(counts, [250, 250, 250, 250]);
        assert!(even.to_svg().contains("1 value is left out"));
    }
}
